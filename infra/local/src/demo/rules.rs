//! Decides the demo's answers.

use domain::assets::AssetType;
use serde_json::{Value, json};
use theme::enrich::prompt;

use super::ask::{Ask, Scene};
use super::content;
use super::intent::{self, Intent};

/// An answer: a text, and optionally one tool call after it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DemoReply {
    pub text: String,
    pub call: Option<(String, Value)>,
}

const DEMO: &str = "I am Lamplighter's demo model: I follow plain rules and cost nothing. ";
const QUESTIONS: [&str; 3] = [
    "What should your agent do? For example: a research agent that watches the prices of three competitors.",
    "How will you know that it works? Name what you want to hold in your hands.",
    "Until when do you need it: a date, a range of dates, or Ongoing?",
];

pub fn answer(ask: &Ask) -> DemoReply {
    match ask.scene {
        Scene::Setup => setup(ask),
        Scene::About => introduced(ask, about(ask)),
        Scene::Run => run(ask),
        Scene::Check => text(check(ask.last()).to_string()),
        Scene::Theme => theme(ask),
        Scene::Chat | Scene::Other => introduced(ask, chat(ask)),
    }
}

fn text(text: impl Into<String>) -> DemoReply {
    DemoReply { text: text.into(), call: None }
}

/// The first message of a conversation introduces the demo.
fn introduced(ask: &Ask, mut answer: DemoReply) -> DemoReply {
    if ask.spoken == 0 {
        answer.text.insert_str(0, DEMO);
    }
    answer
}

fn setup(ask: &Ask) -> DemoReply {
    if !ask.results.is_empty() {
        return text("That is all I need. Read the draft, change what you like, and create the agent.");
    }
    if let Some(question) = QUESTIONS.get(ask.spoken) {
        return introduced(ask, text(*question));
    }
    // The first message opened the conversation. The answers follow it.
    let said = |index: usize| ask.said.get(index).map_or("", |said| said.trim());
    let goal = match said(1) {
        goal if goal.to_lowercase().contains("agent that") => goal.to_owned(),
        goal => format!("An assistant agent that takes care of this: {goal}"),
    };
    let title = title(&goal);
    let timeline = if said(3).is_empty() { "Ongoing" } else { said(3) };
    let instructions = format!("{goal}\nIt is a success when: {}", said(2));
    let draft = json!({
        "title": title, "goal": goal, "success_criteria": said(2), "timeline": timeline, "instructions": instructions,
    });
    if ask.offers("ready_to_create") {
        return DemoReply {
            text: "I have what I need.".into(),
            call: Some(("ready_to_create".into(), draft)),
        };
    }
    text(format!(
        "READY_TO_CREATE\n---\nTITLE: {title}\nGOAL: {goal}\nSUCCESS_CRITERIA: {}\nTIMELINE: {timeline}\nINSTRUCTIONS: \
         {instructions}",
        said(2)
    ))
}

/// "A research agent that watches prices" is called "Research agent".
fn title(goal: &str) -> String {
    let lower = goal.to_lowercase();
    // Changing the case can move bytes, so a name is cut only at a position that is valid in both texts.
    let end = lower.find("agent that").map(|at| at + "agent".len()).filter(|end| goal.is_char_boundary(*end));
    intent::subject(&goal[..end.unwrap_or(goal.len())])
}

fn chat(ask: &Ask) -> DemoReply {
    if let Some((name, result)) = ask.results.first() {
        return text(after(name, result));
    }
    let said = ask.last();
    let subject = intent::subject(said);
    match intent::intent(said) {
        Intent::ListActions if ask.offers("query_actions") => {
            DemoReply { text: "Let me look.".into(), call: Some(("query_actions".into(), json!({}))) }
        }
        Intent::ListActions => text("Let me look.\n\nUSE_TOOL: query_actions"),
        Intent::Create => {
            let asset_type = intent::asset_type(said);
            let content = content::of(asset_type, &subject, said, &[]);
            let description = format!("Written by the demo model: {subject}");
            let asset = json!({"title": subject, "description": description, "asset_type": asset_type, "content": content});
            deliver(ask, "generate_asset", &format!("Here it is: {subject}."), asset)
        }
        Intent::Schedule => {
            let mut action = json!({
                "title": subject,
                "description": format!("Proposed by the demo model: {subject}"),
                "priority": "medium",
                "task_config": {
                    "instructions": said.trim(),
                    "expected_output": "Summary, main points and next steps",
                },
            });
            if let Some(schedule) = intent::schedule(said) {
                action["schedule"] = schedule;
            }
            let words = format!("I propose an action: {subject}. Nothing runs until you approve it.");
            deliver(ask, "generate_actions", &words, json!({"actions": [action]}))
        }
        Intent::Talk => text(
            "Ask me to write, draft or create something, and you get it at once; ask me to do something every day or every \
             week, and I propose an action; ask what is scheduled, and I look it up.",
        ),
    }
}

/// Answers a question from what is in view. Anything else is a change: of the schedule if it names times, otherwise of
/// the instructions.
fn about(ask: &Ask) -> DemoReply {
    if let Some((name, result)) = ask.results.first() {
        return text(after(name, result));
    }
    let said = ask.last();
    if intent::asks(said) {
        return text(told(&ask.view));
    }
    let change = match intent::schedule(said) {
        Some(schedule) => json!({ "schedule": schedule }),
        None => {
            let instructions = section(&ask.view, "instructions").unwrap_or_default();
            json!({"task_config": {"instructions": format!("{instructions}\n{}", said.trim()).trim()}})
        }
    };
    let words = "I propose to change the action like this.";
    if ask.offers("change_action") {
        return DemoReply { text: words.into(), call: Some(("change_action".into(), change)) };
    }
    text(format!("{words}\n\nUSE_TOOL: change_action\n{change}"))
}

/// Describes the runs of an action that are in view, in a sentence or two.
fn told(view: &str) -> String {
    let mut runs = view.lines().skip_while(|line| *line != "last runs:").skip(1);
    let Some(last) = runs.next().and_then(|line| line.strip_prefix("- due ")) else {
        let state = view.lines().find_map(|line| line.strip_prefix("state: ")).unwrap_or("unknown");
        return format!("It has not run yet. Its state is: {state}.");
    };
    match runs.next().and_then(|line| line.strip_prefix("  saved ")) {
        Some(saved) => {
            let title = saved.split_once(' ').map_or(saved, |(_, title)| title.trim_matches('"'));
            format!("The last run was due {last}. It saved this: {title}.")
        }
        None => format!("The last run was due {last}. It saved nothing."),
    }
}

/// Delivers through the tool if it is offered, otherwise as a signal.
fn deliver(ask: &Ask, tool: &str, words: &str, payload: Value) -> DemoReply {
    if ask.offers(tool) {
        return DemoReply { text: words.into(), call: Some((tool.into(), payload)) };
    }
    text(format!("{words}\n\n{}\n---\n{payload}", tool.to_uppercase()))
}

/// The text after a tool has answered.
fn after(name: &str, result: &str) -> String {
    match name {
        "generate_asset" => "It waits for you as a proposal. Save it, or tell me what to change.".into(),
        "generate_actions" => {
            "It waits for you as a proposal. Define it, set when it is due, and approve it.".into()
        }
        "change_action" if result.contains("waits for") => {
            "It waits for you as a proposal. Take it over and approve the action again, and it runs like this.".into()
        }
        "query_actions" => {
            let titles = titles(&serde_json::from_str(result).unwrap_or(Value::Null));
            match &titles[..] {
                [] => "Nothing is scheduled, and no action is defined.".into(),
                [one] => format!("There is one action: {one}."),
                many => format!("There are {} actions:\n\n- {}", many.len(), many.join("\n- ")),
            }
        }
        _ => format!("This is what I found:\n\n{result}"),
    }
}

/// The titles in a list, which may be anywhere in the result.
fn titles(result: &Value) -> Vec<String> {
    match result {
        Value::Array(items) => items
            .iter()
            .filter_map(|item| {
                let state = item["state"].as_str().map(|state| format!(" ({state})")).unwrap_or_default();
                Some(format!("{}{state}", item["title"].as_str()?))
            })
            .collect(),
        Value::Object(fields) => {
            fields.values().find(|value| value.is_array()).map(titles).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

fn run(ask: &Ask) -> DemoReply {
    if ask.results.iter().any(|(name, _)| name == "save_output") {
        return text("The output is saved.");
    }
    // Later messages ask for a better version of the same output.
    let (instructions, expected) = split_task(ask.said.first().map_or("", String::as_str));
    let subject = intent::subject(instructions);
    let content = content::of(AssetType::Document, &subject, instructions, &points(expected));
    if ask.offers("save_output") {
        let output = json!({"title": subject, "content": content, "asset_type": "document"});
        return DemoReply {
            text: "I have written what was asked for.".into(),
            call: Some(("save_output".into(), output)),
        };
    }
    text(content)
}

/// Describes each file from the line above it: `=== path (kind, lines)`.
fn theme(ask: &Ask) -> DemoReply {
    let heads = ask.last().lines().filter_map(|line| line.strip_prefix("=== ")?.rsplit_once(" ("));
    let describe = |(path, about): (&str, &str)| {
        let mut keywords = intent::words(path);
        keywords.retain(|word| word.chars().count() > 2);
        let about = about.trim_end_matches(')');
        json!({
            "path": path,
            "purpose": format!("{DEMO}All I know of this file is its name, and that it is a {about}."),
            "features": [],
            "keywords": keywords,
        })
    };
    let files: Vec<Value> = heads.map(describe).collect();
    DemoReply { text: String::new(), call: Some((prompt::TOOL.to_owned(), json!({ "files": files }))) }
}

/// The instructions and the expected output. A text without headings is all instructions.
fn split_task(text: &str) -> (&str, &str) {
    let expected = section(text, "expected output").unwrap_or_default();
    (section(text, "instructions").unwrap_or(text.trim()), expected)
}

/// The text after the heading `# name`, or after `name:`, up to the next heading or tag.
fn section<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut begin = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let plain = line.trim_start_matches(['#', '*', ' ']);
        // Only ASCII letters are lower-cased, so that no byte moves.
        let heading = |name: &str| {
            let lower = plain.to_ascii_lowercase();
            let rest = lower.strip_prefix(name)?;
            (plain.len() < line.len() || rest.starts_with(':')).then_some(rest.len())
        };
        match (begin, heading(name)) {
            (None, Some(rest)) => begin = Some(at + line.len() - rest),
            (Some(begin), _)
                if line.starts_with("# ")
                    || line.starts_with('<')
                    || HEADINGS.iter().any(|h| heading(h).is_some()) =>
            {
                return Some(trimmed(&text[begin..at]));
            }
            _ => {}
        }
        at += line.len();
    }
    begin.map(|begin| trimmed(&text[begin..]))
}

const HEADINGS: [&str; 3] = ["expected output", "instructions", "output"];

fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || matches!(c, ':' | '*'))
}

fn tagged<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let begin = text.find(&format!("<{tag}>"))? + tag.len() + 2;
    let end = begin + text[begin..].find(&format!("</{tag}>"))?;
    Some(text[begin..end].trim())
}

/// The required points of an output.
fn points(expected: &str) -> Vec<String> {
    expected
        .split(['\n', ',', ';', '.'])
        .flat_map(|part| part.split(" and "))
        .map(|part| part.trim().trim_start_matches(['-', '*', '#', ' ']).to_owned())
        .filter(|part| part.chars().any(char::is_alphabetic))
        .take(12)
        .collect()
}

/// Judges `<output>` by `<expected_output>`. An empty output scores 0. Otherwise each point counts whose words are in
/// the output.
fn check(text: &str) -> Value {
    let output = tagged(text, "output").or_else(|| section(text, "output")).unwrap_or_default();
    if output.is_empty() {
        return json!({"score": 0, "meets": false, "missing": ["the output is empty"]});
    }
    let known = intent::words(output);
    let there = |point: &String| {
        let words = intent::words(point);
        let long = words.iter().filter(|word| word.chars().count() > 3);
        long.clone().count() == 0
            || long.clone().filter(|word| known.contains(word)).count() * 2 >= long.count()
    };
    let points = points(split_task(text).1);
    let missing: Vec<&String> = points.iter().filter(|point| !there(point)).collect();
    let score = match points.len() {
        0 => 90,
        all => 40 + 60 * (all - missing.len()) / all,
    };
    json!({"score": score, "meets": score >= 70, "missing": missing})
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
