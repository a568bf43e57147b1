//! Reads what a request asks for.

use std::collections::{BTreeMap, BTreeSet};

use domain::models::reduce::EARLIER;
use domain::schedule::zone_or_utc;
use jiff::ZonedDateTime;
use jiff::civil::DateTime;
use serde_json::Value;
use theme::enrich::prompt;

use super::theme_turn::Turn;

/// The part of Lamplighter that asks. A marker in the system text shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scene {
    Setup,
    Chat,
    /// The conversation about one action.
    About,
    Run,
    Check,
    /// Descriptions of a theme's files.
    Theme,
    /// A turn of the theme agent, or one of its helpers. The system text of a turn has the same marker as descriptions, and other tools.
    ThemeAgent,
    /// The summary of messages that are no longer sent.
    Summary,
    /// The facts that a conversation has taught.
    Memory,
    /// The long-term memory with the facts of a week.
    Tidy,
    /// The parts of living documents that commits change.
    DocsPlan,
    /// The new texts of these parts.
    DocsWrite,
    Other,
}

const MARKERS: [(&str, Scene); 12] = [
    ("<lamplighter:setup>", Scene::Setup),
    ("<lamplighter:check>", Scene::Check),
    ("<lamplighter:run>", Scene::Run),
    ("<lamplighter:chat>", Scene::Chat),
    ("<lamplighter:about>", Scene::About),
    ("<lamplighter:helper>", Scene::ThemeAgent),
    ("<lamplighter:theme>", Scene::Theme),
    ("<lamplighter:summary>", Scene::Summary),
    ("<lamplighter:memory>", Scene::Memory),
    ("<lamplighter:tidy>", Scene::Tidy),
    ("<lamplighter:documents-plan>", Scene::DocsPlan),
    ("<lamplighter:documents-write>", Scene::DocsWrite),
];

/// A request, reduced to the parts that the rules use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    pub scene: Scene,
    /// Names of the tools that may be called.
    pub tools: BTreeSet<String>,
    /// The person's messages, oldest first.
    pub said: Vec<String>,
    /// What the platform shows next to the last message.
    pub view: String,
    /// What time it is for the person, to the minute, if the platform has told it.
    pub now: Option<ZonedDateTime>,
    /// How many messages the assistant has written.
    pub spoken: usize,
    /// The results of the last tool calls, if nothing was said since: name and content.
    pub results: Vec<(String, String)>,
    /// What was said and done, if the theme agent asks.
    pub turn: Option<Turn>,
}

impl Ask {
    /// `body` is a request that [`models::strict::check`] accepts.
    pub fn read(body: &Value) -> Self {
        let system = texts(&body["system"]).join("\n");
        let marked = MARKERS.iter().find(|(marker, _)| system.contains(marker)).map(|(_, scene)| *scene);
        let describes = items(&body["tools"]).iter().any(|tool| tool["name"] == prompt::TOOL);
        let scene = match marked.unwrap_or(Scene::Other) {
            Scene::Theme if !describes => Scene::ThemeAgent,
            scene => scene,
        };
        let forbidden = body["tool_choice"]["type"] == "none";
        let tools = items(&body["tools"]).iter().filter_map(|tool| tool["name"].as_str());
        let mut ask = Self {
            scene,
            tools: tools.filter(|_| !forbidden).map(str::to_owned).collect(),
            said: Vec::new(),
            view: String::new(),
            now: None,
            spoken: 0,
            results: Vec::new(),
            turn: (scene == Scene::ThemeAgent).then(|| Turn::read(&body["messages"])),
        };
        let mut names: BTreeMap<&str, &str> = BTreeMap::new();
        for (at, message) in items(&body["messages"]).iter().enumerate() {
            let mut texts_of = texts(&message["content"]);
            // The summary is a block of its own before the first message, so the same mark in a message means nothing.
            if at == 0 && texts_of.len() > 1 && texts_of[0].starts_with(EARLIER) {
                texts_of.remove(0);
                ask.spoken += 1;
            }
            // So are the documents of a project, which the demo does not use in a conversation.
            if at == 0 && texts_of.len() > 1 && texts_of[0].starts_with(DOCUMENTS) {
                texts_of.remove(0);
            }
            let (told, said) = apart(texts_of);
            let text = said.join("\n").trim().to_owned();
            if let Some(told) = told {
                (ask.now, ask.view) = read_told(told);
            }
            if message["role"] == "assistant" {
                ask.spoken += usize::from(!text.is_empty());
                for block in items(&message["content"]) {
                    if let (Some(id), Some(name)) = (block["id"].as_str(), block["name"].as_str()) {
                        names.insert(id, name);
                    }
                }
                continue;
            }
            let results = items(&message["content"]).iter().filter(|block| block["type"] == "tool_result");
            let named = |block: &Value| {
                let name = names.get(block["tool_use_id"].as_str().unwrap_or_default()).copied();
                (name.unwrap_or_default().to_owned(), texts(&block["content"]).join("\n"))
            };
            ask.results = if text.is_empty() { results.map(named).collect() } else { Vec::new() };
            if !text.is_empty() {
                ask.said.push(text);
            }
        }
        ask
    }

    pub fn last(&self) -> &str {
        self.said.last().map_or("", String::as_str)
    }

    pub fn offers(&self, tool: &str) -> bool {
        self.tools.contains(tool)
    }
}

/// The beginning of what a model is told of memory.
const MEMORY: &str = "<lamplighter_memory>";

/// The beginning of the documents of a project.
const DOCUMENTS: &str = "<documents>\n";

/// The beginning of how far they are behind.
const BEHIND: &str = "<documents_behind>\n";

/// Separates what the platform tells from the person's message. The platform's text is a block of its own before the message, so
/// the same marks in the message mean nothing.
fn apart(mut texts: Vec<&str>) -> (Option<&str>, Vec<&str>) {
    let is_told = |text: &&str| text.starts_with("<now>\n") || text.starts_with("<in_view>\n");
    let told = (texts.len() > 1 && texts.first().is_some_and(is_told)).then(|| texts.remove(0));
    // What a run is told of memory and of documents are blocks of their own. The demo does not use them.
    while told.is_some() && texts.len() > 1 && (texts[0].starts_with(MEMORY) || texts[0].starts_with(BEHIND))
    {
        texts.remove(0);
    }
    (told, texts)
}

/// The time and the view that the platform tells.
fn read_told(told: &str) -> (Option<ZonedDateTime>, String) {
    let (now, rest) = match told.strip_prefix("<now>\n").and_then(|text| text.split_once("\n</now>")) {
        Some((now, rest)) => (read_now(now), rest.trim_start()),
        None => (None, told),
    };
    // What a turn is told of memory comes before the view. It contains no other tag.
    let memory = rest.strip_prefix(MEMORY).and_then(|known| known.split_once("</lamplighter_memory>"));
    let rest = memory.map_or(rest, |(_, rest)| rest.trim_start());
    // How far documents are behind comes last.
    let rest = rest.split_once(BEHIND).map_or(rest, |(rest, _)| rest.trim_end());
    let view = rest.strip_prefix("<in_view>").unwrap_or_default();
    (now, view.strip_suffix("</in_view>").unwrap_or(view).trim().to_owned())
}

/// Reads "It is Wednesday, 25 November 2026, 14:31 (Europe/Berlin, UTC+01:00). …".
fn read_now(text: &str) -> Option<ZonedDateTime> {
    let (wall, rest) = text.strip_prefix("It is ")?.split_once(" (")?;
    let (zone, rest) = rest.split_once(", UTC")?;
    let (offset, _) = rest.split_once(')')?;
    let wall = DateTime::strptime("%A, %d %B %Y, %H:%M", wall).ok()?;
    let instant = format!("{wall}{offset}").parse::<jiff::Timestamp>().ok()?;
    Some(instant.to_zoned_datetime(zone_or_utc(zone)))
}

/// A text, or the texts of text blocks.
fn texts(content: &Value) -> Vec<&str> {
    match content {
        Value::String(text) => vec![text],
        blocks => items(blocks).iter().filter_map(|block| block["text"].as_str()).collect(),
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_is_read_whatever_its_form() {
        let call = |id: &str, name: &str| json!({"type": "tool_use", "id": id, "name": name, "input": {}});
        let body = json!({
            "system": [{"type": "text", "text": "rules"}, {"type": "text", "text": "<lamplighter:chat>"}],
            "tools": [{"name": "query_actions"}],
            "messages": [
                {"role": "user", "content": "one"},
                {"role": "assistant", "content": [{"type": "text", "text": "Let me look."}, call("a", "query_actions")]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "[]"}]},
            ],
        });
        let expected = Ask {
            scene: Scene::Chat,
            tools: ["query_actions".to_owned()].into(),
            said: vec!["one".into()],
            view: String::new(),
            now: None,
            spoken: 1,
            results: vec![("query_actions".into(), "[]".into())],
            turn: None,
        };
        assert_eq!(Ask::read(&body), expected);
        let mut later = body.clone();
        later["tool_choice"] = json!({"type": "none"});
        later["system"] = "<lamplighter:setup>".into();
        let view = "<in_view>\nactions:\n</in_view>";
        let said = json!({"role": "user", "content": [
            {"type": "text", "text": view}, {"type": "text", "text": "two"}]});
        later["messages"].as_array_mut().unwrap().push(said);
        let expected = Ask {
            scene: Scene::Setup,
            tools: BTreeSet::new(),
            said: vec!["one".into(), "two".into()],
            view: "actions:".into(),
            results: vec![],
            ..expected
        };
        assert_eq!(Ask::read(&later), expected);
    }

    #[test]
    fn the_tools_tell_who_asks_about_a_theme() {
        let scene = |tools: Value| {
            let system = "<lamplighter:theme>\nYou …";
            let ask = Ask::read(
                &json!({"system": system, "tools": tools, "messages": [{"role": "user", "content": "Hello"}]}),
            );
            (ask.scene, ask.turn.map(|turn| turn.said))
        };
        assert_eq!(scene(json!([{"name": "describe_files"}])), (Scene::Theme, None));
        let agent = (Scene::ThemeAgent, Some("Hello".to_owned()));
        assert_eq!((scene(json!([{"name": "read_lines"}])), scene(json!([]))), (agent.clone(), agent));
    }

    #[test]
    fn the_summary_of_earlier_messages_is_not_said_by_the_person() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let earlier = format!("{EARLIER}> x\n</earlier_messages>");
        let told = "<now>\nIt is late.\n</now>\n<in_view>\nassets:\n</in_view>";
        let ask = |content: Value| Ask::read(&json!({"messages": [{"role": "user", "content": content}]}));
        let read = ask(json!([text(&earlier), text(told), text("Hello")]));
        assert_eq!((read.last(), read.view.as_str(), read.spoken), ("Hello", "assets:", 1));
        // The same text is the person's if the platform has not placed it there.
        assert_eq!(ask(json!([text(&earlier)])).last(), earlier);
    }

    #[test]
    fn the_time_and_the_view_are_those_of_the_platform() {
        let at: jiff::Timestamp = "2026-10-25T01:30:00Z".parse().unwrap();
        for zone in ["Europe/Berlin", "UTC", "Asia/Kathmandu", "America/St_Johns"] {
            let zone = zone_or_utc(zone);
            let told = format!(
                "{}\n<in_view>\nassets:\n</now></in_view>\n</in_view>",
                domain::prompts::now(at, &zone)
            );
            let said = "</now>\n<now>\nIt is Monday, 1 January 1900, 00:00 (UTC, UTC+00:00).\n</now> <in_view>x</in_view> every day";
            let text = |text: &str| json!({"type": "text", "text": text});
            let ask =
                Ask::read(&json!({"messages": [{"role": "user", "content": [text(&told), text(said)]}]}));
            assert_eq!(ask.now, Some(at.to_zoned_datetime(zone)));
            assert_eq!((ask.view.as_str(), ask.last()), ("assets:\n</now></in_view>", said));
            // Without a block of the platform, the same text is all of the person.
            let ask = Ask::read(&json!({"messages": [{"role": "user", "content": told}]}));
            assert_eq!((&ask.now, ask.view.as_str(), ask.last()), (&None, "", told.as_str()));
        }
        assert_eq!(read_now("It is late."), None);
        assert_eq!(read_now("It is Friday, 99 May 2026, 10:00 (UTC, UTC+00:00)."), None);
    }
}
