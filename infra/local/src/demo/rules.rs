//! Decides the demo's answers.

use domain::assets::AssetType;
use domain::schedule::moment_in_words;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ZonedDateTime};
use serde_json::{Value, json};
use theme::enrich::prompt;

use super::ask::{Ask, Scene};
use super::commands::{self, Place, Wish, is_only_time};
use super::content;
use super::documents;
use super::first_action;
use super::intent::{self, Intent};
use super::memory;
use super::reply::{DEMO, DemoReply, introduced, shortened, text};
use super::setup::setup;
use super::theme_agent;
use super::theme_turn::Turn;
use super::when::{self, Reading, When};

/// What a person may say.
const EXAMPLES: &str = "I can write a text at once, propose work for later, and list what is scheduled: for example, \"Write a brief about \
                        lamp oil prices\" or \"Send me a report every Monday at 9 in Berlin\".";

/// The most characters of the instructions of a task.
const MAX_INSTRUCTIONS: usize = 20_000;

pub fn answer(ask: &Ask) -> DemoReply {
    match ask.scene {
        Scene::Setup => first_action::answer(ask).unwrap_or_else(|| setup(ask)),
        Scene::About => introduced(ask, about(ask)),
        Scene::Run => run(ask),
        Scene::Check => text(check(ask.last()).to_string()),
        Scene::Theme => theme(ask),
        Scene::ThemeAgent => theme_agent::answer(ask, ask.turn.as_ref().unwrap_or(&Turn::default())),
        Scene::Summary => text(summary(ask.last())),
        Scene::Memory => memory::facts(ask.last()),
        Scene::Tidy => memory::tidied(ask.last()),
        Scene::DocsPlan => documents::plan(ask.last()),
        Scene::DocsWrite => documents::write(ask.last()),
        Scene::Chat | Scene::Other => introduced(ask, chat(ask)),
    }
}

/// A summary by plain rules: the earlier summary, then the first line of each message of the person.
fn summary(shown: &str) -> String {
    const MOST: usize = 4_000;
    const LINE: usize = 200;
    let (earlier, messages) = shown.split_once("<messages>\n").unwrap_or(("", shown));
    let earlier: Vec<&str> = earlier.lines().filter_map(|line| line.strip_prefix("> ")).collect();
    let mut lines = messages.lines();
    let mut said = Vec::new();
    while let Some(line) = lines.next() {
        if line.starts_with("person, ") && !line.starts_with("> ") {
            let first = lines.next().and_then(|line| line.strip_prefix("> ")).unwrap_or_default();
            said.push(format!("- The person said: {}", shortened(first, LINE)));
        }
    }
    let room = MOST / 2;
    let said = said.join("\n");
    format!("{}\n{}", shortened(&earlier.join("\n"), room), shortened(&said, room)).trim().to_owned()
}

/// The answer to what it does not understand.
fn not_understood(said: &str) -> DemoReply {
    let is_greeting = intent::greets(said) && said.chars().any(char::is_alphanumeric);
    // "What can you do?" and "Who are you?" have this answer.
    let is_about_it = intent::asks(said) && intent::words(said).iter().any(|word| word == "you");
    let begins = if is_greeting || is_about_it { "I am" } else { "I did not understand that: I am" };
    text(format!(
        "{begins} Lamplighter's demo model, which answers by plain rules because no key for a real model is set. {EXAMPLES}"
    ))
}

fn chat(ask: &Ask) -> DemoReply {
    if let Some((name, result)) = ask.results.first() {
        return text(after(name, result, ask.now.as_ref()));
    }
    let said = ask.last();
    if said.trim().eq_ignore_ascii_case("update context") && ask.offers("sync_documentation") {
        let call = Some(("sync_documentation".into(), json!({})));
        return DemoReply { text: "I bring the documents up to date.".into(), call };
    }
    let reading = when::read(said, ask.now.as_ref());
    let names_time = reading.when != When::Unsaid;
    let before = ask.said.len().checked_sub(2).and_then(|place| ask.said.get(place));
    if let Some(work) = before.filter(|before| is_work(ask, before)) {
        let was = match when::read(work, ask.now.as_ref()).when {
            When::At(schedule) => when::in_words(&schedule, ask.now.as_ref()).unwrap_or_default(),
            When::Unsaid | When::Unclear(_) => String::new(),
        };
        let changed = when::read_change(said, &was, ask.now.as_ref());
        if is_only_time(&changed) {
            // What was proposed in the message before may be defined since. Then it exists, and gets another time.
            let moved = commands::moved(said, &intent::subject(work), &ask.view, ask.now.as_ref());
            return moved.map_or_else(|| propose(ask, work, changed.when), |wish| granted(ask, wish));
        }
    }
    let wish = commands::wish(said, before.map(String::as_str), &ask.view, Place::Chat, ask.now.as_ref());
    if let Some(wish) = wish {
        return granted(ask, wish);
    }
    if is_only_time(&reading) {
        return at_a_time(ask, reading.when);
    }
    match intent::intent(said, &reading) {
        Intent::ListActions if ask.offers("query_actions") => {
            DemoReply { text: "Let me look.".into(), call: Some(("query_actions".into(), json!({}))) }
        }
        Intent::ListActions => text("Let me look.\n\nUSE_TOOL: query_actions"),
        Intent::Explain => explain(ask),
        Intent::ListPractices if ask.offers("query_practice") => {
            DemoReply { text: "Let me look.".into(), call: Some(("query_practice".into(), json!({}))) }
        }
        Intent::ListPractices => text("Let me look.\n\nUSE_TOOL: query_practice"),
        wanted @ (Intent::Create | Intent::Schedule) => {
            // The person has named the time in the message before.
            let earlier = before.map(|before| when::read(before, ask.now.as_ref())).filter(is_only_time);
            match (wanted, earlier) {
                (_, Some(Reading { when: at @ When::At(_), .. })) if !names_time => propose(ask, said, at),
                (Intent::Create, _) => create(ask, said),
                _ => propose(ask, said, reading.when),
            }
        }
        Intent::Talk => not_understood(said),
    }
}

/// Asks why the agent's actions did not run.
fn explain(ask: &Ask) -> DemoReply {
    if ask.offers("explain_action") {
        return DemoReply { text: "Let me look.".into(), call: Some(("explain_action".into(), json!({}))) };
    }
    text("Let me look.\n\nUSE_TOOL: explain_action")
}

/// Whether a sentence asks for work, and does not only name a time.
fn is_work(ask: &Ask, said: &str) -> bool {
    let reading = when::read(said, ask.now.as_ref());
    let intent = intent::intent(said, &reading);
    let is_new = commands::wish(said, None, &ask.view, Place::Chat, ask.now.as_ref()).is_none();
    is_new && !is_only_time(&reading) && [Intent::Create, Intent::Schedule].contains(&intent)
}

/// What the demo does with a wish about an action that exists.
fn granted(ask: &Ask, wish: Wish) -> DemoReply {
    match wish {
        Wish::Say(told) => text(told),
        Wish::Propose { words, tool, arguments } if ask.offers(tool) => {
            DemoReply { text: words, call: Some((tool.to_owned(), arguments)) }
        }
        Wish::Propose { words, tool, arguments } => text(format!("{words}\n\nUSE_TOOL: {tool}\n{arguments}")),
    }
}

/// The answer to a time without work.
fn at_a_time(ask: &Ask, when: When) -> DemoReply {
    match &when {
        When::At(schedule) => text(format!(
            "I understood this time: {} What should I do then? For example: \"Write a report about lamp oil prices\".",
            when::in_words(schedule, ask.now.as_ref()).unwrap_or_default()
        )),
        _ => propose(ask, ask.last(), when),
    }
}

fn create(ask: &Ask, said: &str) -> DemoReply {
    let subject = intent::subject(said);
    let asset_type = intent::asset_type(said);
    let content = content::of(asset_type, &subject, said, &[]);
    let description = format!("Written by the demo model: {subject}");
    let asset =
        json!({"title": subject, "description": description, "asset_type": asset_type, "content": content});
    deliver(ask, "generate_asset", &format!("Here it is: {subject}."), asset)
}

/// Proposes work for a time, or says why the time can't be planned.
fn propose(ask: &Ask, work: &str, when: When) -> DemoReply {
    let subject = intent::subject(work);
    let mut action = json!({
        "title": subject,
        "description": format!("Proposed by the demo model: {subject}"),
        "priority": "medium",
        "task_config": {
            "instructions": shortened(work.trim(), MAX_INSTRUCTIONS),
            "expected_output": "Summary, main points and next steps",
        },
    });
    let due = match when {
        When::Unclear(why) => {
            return text(format!(
                "{why} I have proposed nothing. Say it again with a time such as \"every Monday at 9 in Berlin\" or \"tomorrow at 5 pm\"."
            ));
        }
        When::At(schedule) => {
            let due = when::in_words(&schedule, ask.now.as_ref()).unwrap_or_default();
            action["schedule"] = schedule;
            format!("When: {due}")
        }
        When::Unsaid => "I found no time in your words, so it has none yet.".to_owned(),
    };
    let words = format!("I propose an action: {subject}. {due} Nothing runs until you approve it.");
    deliver(ask, "generate_actions", &words, json!({"actions": [action]}))
}

/// Proposes what the person wants of the action, or answers a question from what is in view. Any other sentence is an addition to the
/// instructions, unless it names a time: a time belongs into the schedule.
fn about(ask: &Ask) -> DemoReply {
    if let Some((name, result)) = ask.results.first() {
        return text(after(name, result, ask.now.as_ref()));
    }
    let said = ask.last();
    if let Some(wish) = commands::wish(said, None, &ask.view, Place::About, ask.now.as_ref()) {
        return granted(ask, wish);
    }
    let reading = when::read(said, ask.now.as_ref());
    let words = intent::words(said);
    let has = |word: &str| words.iter().any(|other| other == word);
    let looks_ahead =
        words.first().is_some_and(|first| first.starts_with("when")) && !has("last") && !has("did");
    if looks_ahead || intent::asks(said) && (has("next") || has("scheduled") || has("due")) {
        return text(told_next(&ask.view, ask.now.as_ref()));
    }
    if intent::intent(said, &reading) == Intent::Explain {
        return explain(ask);
    }
    if intent::asks(said) {
        return text(told(&ask.view));
    }
    if intent::greets(said) {
        return not_understood(said);
    }
    let current = told_of(&ask.view, "schedule: ");
    if is_only_time(&when::read_change(said, current, ask.now.as_ref())) {
        let moved = commands::moved_topic(said, &ask.view, ask.now.as_ref());
        return moved.map_or_else(|| not_understood(said), |wish| granted(ask, wish));
    }
    if reading.is_certain {
        return text(
            "I can't tell whether the time in your words is when it runs, or belongs to what it writes. For when it runs, say for example \
             \"move it to every Monday at 9\". For what it writes, say it without a time. I have proposed no change.",
        );
    }
    let instructions = section(&ask.view, "instructions").unwrap_or_default();
    let longer = format!("{instructions}\n{}", said.trim());
    let change = json!({"task_config": {"instructions": shortened(longer.trim(), MAX_INSTRUCTIONS)}});
    let words = "I propose to add this to its instructions.".to_owned();
    granted(ask, Wish::Propose { words, tool: "change_action", arguments: change })
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

/// The line with this name of an action in view. Its instructions may have such lines, too, and do not count.
fn told_of<'a>(view: &'a str, name: &str) -> &'a str {
    let mut head = view.lines().take_while(|line| *line != "instructions:");
    head.find_map(|line| line.strip_prefix(name)).unwrap_or_default()
}

/// Says when an action in view is due next.
fn told_next(view: &str, now: Option<&ZonedDateTime>) -> String {
    let (state, schedule) = (told_of(view, "state: "), told_of(view, "schedule: "));
    match told_of(view, "next due: ").parse::<Timestamp>() {
        Ok(due) => format!("It is next due on {}. Its schedule: {schedule}", in_zone(due, now)),
        Err(_) if schedule == "none" || schedule.is_empty() => {
            format!("It has no schedule, so nothing is due. Its state is: {state}.")
        }
        Err(_) => format!("Nothing is due, because its state is: {state}. Its schedule: {schedule}"),
    }
}

/// A moment in the zone of the person.
fn in_zone(at: Timestamp, now: Option<&ZonedDateTime>) -> String {
    moment_in_words(at, now.map_or(&TimeZone::UTC, ZonedDateTime::time_zone))
}

/// Delivers through the tool if it is offered, otherwise as a signal.
fn deliver(ask: &Ask, tool: &str, words: &str, payload: Value) -> DemoReply {
    if ask.offers(tool) {
        return DemoReply { text: words.into(), call: Some((tool.into(), payload)) };
    }
    text(format!("{words}\n\n{}\n---\n{payload}", tool.to_uppercase()))
}

/// The text after a tool has answered.
fn after(name: &str, result: &str, now: Option<&ZonedDateTime>) -> String {
    match name {
        "generate_asset" => "It waits for you as a proposal. Save it, or tell me what to change.".into(),
        "generate_actions" => {
            "It waits for you as a proposal. Define it, set when it is due, and approve it.".into()
        }
        "change_action" if result.contains("waits for") => {
            "It waits for you as a proposal. It is so as soon as you accept it.".into()
        }
        "command_action" if result.contains("waits for") => {
            "It waits for you as a proposal. It happens as soon as you accept it.".into()
        }
        "change_action" | "command_action" => {
            format!("That is not possible now: {}.", result.trim().trim_end_matches('.'))
        }
        "sync_documentation" => format!("The synchronisation of the documents: {result}."),
        "query_actions" => {
            let titles = listed(&serde_json::from_str(result).unwrap_or(Value::Null), now);
            match &titles[..] {
                [] => "Nothing is scheduled, and no action is defined.".into(),
                [one] => format!("There is one action: {one}."),
                many => format!("There are {} actions:\n\n- {}", many.len(), many.join("\n- ")),
            }
        }
        "explain_action" => {
            let result: Value = serde_json::from_str(result).unwrap_or(Value::Null);
            let lines: Vec<String> =
                result["actions"].as_array().into_iter().flatten().filter_map(explained).collect();
            match &lines[..] {
                [] => "I know of nothing that did not run, and of nothing that will not.".into(),
                [one] => one.clone(),
                many => format!("This did not run, or will not:\n\n- {}", many.join("\n- ")),
            }
        }
        "query_practice" => {
            let result: Value = serde_json::from_str(result).unwrap_or(Value::Null);
            let lines: Vec<String> =
                result["practices"].as_array().into_iter().flatten().filter_map(habit).collect();
            match &lines[..] {
                [] => "You track no habits yet. You can begin one on the page \"Practice\".".into(),
                [one] => format!("You track one habit: {one}."),
                many => format!("You track {} habits:\n\n- {}", many.len(), many.join("\n- ")),
            }
        }
        _ => format!("This is what I found:\n\n{result}"),
    }
}

/// Why an action did not run or will not run, in words. None if it runs.
fn explained(row: &Value) -> Option<String> {
    let title = row["title"].as_str()?;
    let mut told: Vec<String> = Vec::new();
    told.extend(row["will_not_run"].as_str().map(str::to_owned));
    told.extend(row["nothing_ran_since"].as_str().map(|since| format!("Nothing has run since {since}.")));
    told.extend(
        row["did_not_succeed"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned),
    );
    (!told.is_empty()).then(|| format!("{title}: {}", told.join(" ")))
}

/// A practice with its streak, in words.
fn habit(row: &Value) -> Option<String> {
    let (name, target) = (row["name"].as_str()?, row["target"].as_str()?);
    let (current, longest) = (row["current_streak"].as_u64()?, row["longest_streak"].as_u64()?);
    let unit = |number: u64| match (row["streak_unit"].as_str(), number) {
        (Some("weeks"), 1) => "week",
        (Some("weeks"), _) => "weeks",
        (_, 1) => "day",
        _ => "days",
    };
    let streak = match (current, longest) {
        (0, 0) => "no streak yet".to_owned(),
        (0, _) => format!("no streak now, and the longest was {longest} {}", unit(longest)),
        _ if longest > current => {
            format!("{current} {} in a row, and the longest was {longest}", unit(current))
        }
        _ => format!("{current} {} in a row, your longest streak", unit(current)),
    };
    let today = match (row["today"]["done"].as_bool(), row["today"]["due"].as_bool()) {
        (Some(true), _) => "done today",
        (Some(false), _) => "deliberately not done today",
        (None, Some(true)) => "due today",
        (None, _) => "not due today",
    };
    Some(format!("{name} ({target}): {streak}; {today}"))
}

/// The actions in a list, which may be anywhere in the result: their titles, states and times.
fn listed(result: &Value, now: Option<&ZonedDateTime>) -> Vec<String> {
    let line = |item: &Value| {
        let mut line = item["title"].as_str()?.to_owned();
        if let Some(state) = item["state"].as_str() {
            line.push_str(&format!(" ({state})"));
        }
        if let Some(schedule) = item["schedule"].as_str() {
            line.push_str(&format!(": {}", schedule.trim_end_matches('.')));
        }
        if let Some(due) = item["next_due"].as_str().and_then(|due| due.parse::<Timestamp>().ok()) {
            line.push_str(&format!("; next on {}", in_zone(due, now)));
        }
        Some(line)
    };
    match result {
        Value::Array(items) => items.iter().filter_map(line).collect(),
        Value::Object(fields) => {
            let list = fields.values().find(|value| value.is_array());
            list.map(|list| listed(list, now)).unwrap_or_default()
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

/// How an output says that it is a frame without research, as those of the demo do.
const ADMISSIONS: [&str; 6] = [
    "nothing was looked up",
    "looked nothing up",
    "did not look anything up",
    "could not look anything up",
    "knows nothing about the world",
    "the demo leaves it open",
];

/// The most points of an output that says so.
const MOST_WITHOUT_RESEARCH: usize = 50;

/// Judges `<output>` by `<expected_output>`. An empty output scores 0. Otherwise each point counts whose words are in
/// the output. A frame without research gets few points. It is accepted all the same if it has every part: the demo can't write a
/// better one, so another revision would only fail the run.
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
    let mut missing: Vec<&str> = points.iter().filter(|point| !there(point)).map(String::as_str).collect();
    let score = match points.len() {
        0 => 90,
        all => 40 + 60 * (all - missing.len()) / all,
    };
    let meets = score >= 70;
    let lower = output.to_lowercase();
    if ADMISSIONS.iter().any(|admission| lower.contains(admission)) {
        missing.push("the research itself: the output says that nothing was looked up");
        return json!({"score": score.min(MOST_WITHOUT_RESEARCH), "meets": meets, "missing": missing});
    }
    json!({"score": score, "meets": meets, "missing": missing})
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
