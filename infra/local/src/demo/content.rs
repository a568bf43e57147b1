//! What the demo delivers: whole texts, made from what was asked.

use domain::assets::AssetType;

/// Content about `subject`, with a section for each of `points`; where there are none, with the usual ones.
pub fn of(asset_type: AssetType, subject: &str, request: &str, points: &[String]) -> String {
    match asset_type {
        AssetType::Document => document(subject, request, points),
        AssetType::Email => email(subject, request),
        AssetType::Prompt => prompt(subject, request),
        AssetType::Code => code(subject, request),
    }
}

fn document(subject: &str, request: &str, points: &[String]) -> String {
    let usual = ["Purpose", "Who it is for", "Main points", "Next steps"].map(str::to_owned);
    let points = if points.is_empty() { &usual[..] } else { points };
    let sections: Vec<String> =
        points.iter().map(|point| format!("## {}\n\n{}", capital(point), section(subject, point))).collect();
    format!("# {subject}\n\nThis was asked for: {}\n\n{}\n", one_line(request), sections.join("\n\n"))
}

fn section(subject: &str, point: &str) -> String {
    match point {
        "Purpose" => format!("To have one place that says what matters about this: {subject}."),
        "Who it is for" => "Whoever asked for it, and whoever has to act on it.".to_owned(),
        "Main points" => format!(
            "1. What it is: {subject}.\n2. Why now: somebody asked, so somebody waits.\n3. What would make it good: short, \
             true, and with a date on it."
        ),
        "Next steps" => {
            "- [ ] Read it once\n- [ ] Change what is wrong\n- [ ] Decide who does what, and by when"
                .to_owned()
        }
        point => format!(
            "On {}: what there is to say about it here follows from the request itself ({subject}).",
            point.trim()
        ),
    }
}

fn email(subject: &str, request: &str) -> String {
    format!(
        "Subject: {subject}\n\nHello,\n\nthis is about: {subject}.\n\nThe request behind it was: {}\n\nPlease answer by the \
         end of the week, so that the next step can be settled.\n\nKind regards\n",
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
    // What stands in a string of Python is escaped as in a string of JSON.
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
