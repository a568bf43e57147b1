//! The demo's deliverables: complete texts, made from the request.

use domain::assets::AssetType;

/// Content about `subject`, with a section for each of `points`, or with the default sections if there are none.
pub fn of(asset_type: AssetType, subject: &str, request: &str, points: &[String]) -> String {
    match asset_type {
        AssetType::Document => document(subject, request, points),
        AssetType::Email => email(subject, request),
        AssetType::Prompt => prompt(subject, request),
        AssetType::Code => code(subject, request),
    }
}

fn document(subject: &str, request: &str, points: &[String]) -> String {
    let usual = ["Summary", "Main points", "Next steps"].map(str::to_owned);
    let points = if points.is_empty() { &usual[..] } else { points };
    let sections: Vec<String> =
        points.iter().map(|point| format!("## {}\n\n{}", capital(point), section(subject, point))).collect();
    format!(
        "# {subject}\n\nYou asked: {}\n\n> Lamplighter's demo model wrote this. It follows plain rules and knows nothing about \
         the world, so this is a frame with honest gaps. With a real model, the same request gives you the text itself.\n\n{}\n",
        one_line(request),
        sections.join("\n\n")
    )
}

fn section(subject: &str, point: &str) -> String {
    let point = point.trim().to_lowercase();
    let point =
        ["a ", "an ", "the "].iter().find_map(|article| point.strip_prefix(article)).unwrap_or(&point);
    match point {
        "summary" => format!(
            "{subject}: nothing was looked up for this, because the demo can't reach the web. What you see is how an \
             answer arrives here, and how it is kept."
        ),
        "main points" => {
            "1. What is new, with the old figure beside the new one.\n2. Why it changed, with a source for each claim.\n\
             3. What it means for you, in one sentence."
                .to_owned()
        }
        "next steps" => {
            "- [ ] Set `ANTHROPIC_API_KEY` or `OPENAI_API_KEY`, or `LAMPLIGHTER_MODEL_URL` for a model of your own\n- [ ] Ask for \
             this again\n- [ ] Tell the agent what to change"
                .to_owned()
        }
        point => format!("Here a real model writes about {point}. The demo leaves it open: a guess would not help you."),
    }
}

fn email(subject: &str, request: &str) -> String {
    format!(
        "Subject: {subject}\n\nHello,\n\nthis e-mail is a draft by Lamplighter's demo model, which writes by plain rules. You \
         asked: {}\n\nA real model writes the text itself here. Until then, say in one sentence what you want, and by when \
         you need an answer.\n\nKind regards\n",
        one_line(request)
    )
}

fn prompt(subject: &str, request: &str) -> String {
    format!(
        "You are an expert on this: {subject}.\n\nTask: {}\n\nRules:\n- Ask for what is missing before you begin.\n- Name your \
         sources.\n- Say what you are not sure of.\n\nAnswer with a heading, at most five points, and one next step.\n",
        one_line(request)
    )
}

fn code(subject: &str, request: &str) -> String {
    // A Python string has the same escapes as a JSON string.
    let text = |text: &str| serde_json::Value::from(text).to_string();
    format!(
        "TITLE = {}\nREQUEST = {}\n\nSTEPS = [\n    \"Say what goes in\",\n    \"Say what comes out\",\n    \"Try it on one example\",\n]\n\n\n\
         def main():\n    print(TITLE)\n    print(f\"Asked for: {{REQUEST}}\")\n    for number, step in enumerate(STEPS, start=1):\n        \
         print(f\"{{number}}. {{step}}\")\n\n\nif __name__ == \"__main__\":\n    main()\n",
        text(subject),
        text(&one_line(request))
    )
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn capital(text: &str) -> String {
    let mut characters = text.trim().chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}
