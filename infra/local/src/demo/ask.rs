//! Reads what a request asks for.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

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
    Other,
}

const MARKERS: [(&str, Scene); 6] = [
    ("<lamplighter:setup>", Scene::Setup),
    ("<lamplighter:check>", Scene::Check),
    ("<lamplighter:run>", Scene::Run),
    ("<lamplighter:chat>", Scene::Chat),
    ("<lamplighter:about>", Scene::About),
    ("<lamplighter:theme>", Scene::Theme),
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
    /// How many messages the assistant has written.
    pub spoken: usize,
    /// The results of the last tool calls, if nothing was said since: name and content.
    pub results: Vec<(String, String)>,
}

impl Ask {
    /// `body` is a request that [`models::strict::check`] accepts.
    pub fn read(body: &Value) -> Self {
        let system = texts(&body["system"]).join("\n");
        let scene =
            MARKERS.iter().find(|(marker, _)| system.contains(marker)).map_or(Scene::Other, |(_, s)| *s);
        let forbidden = body["tool_choice"]["type"] == "none";
        let tools = items(&body["tools"]).iter().filter_map(|tool| tool["name"].as_str());
        let mut ask = Self {
            scene,
            tools: tools.filter(|_| !forbidden).map(str::to_owned).collect(),
            said: Vec::new(),
            view: String::new(),
            spoken: 0,
            results: Vec::new(),
        };
        let mut names: BTreeMap<&str, &str> = BTreeMap::new();
        for message in items(&body["messages"]) {
            let (text, view) = apart(&texts(&message["content"]).join("\n"));
            if !view.is_empty() {
                ask.view = view;
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

/// Separates the person's message from what the platform shows next to it.
fn apart(text: &str) -> (String, String) {
    let (text, _) = without(text, "<now>", "</now>");
    without(&text, "<in_view>", "</in_view>")
}

/// A text without the part between two marks, and that part.
fn without(text: &str, begins: &str, ends: &str) -> (String, String) {
    let (before, part, after) = match (text.find(begins), text.rfind(ends)) {
        (Some(begin), Some(end)) if begin < end => {
            (&text[..begin], &text[begin + begins.len()..end], &text[end + ends.len()..])
        }
        _ => (text, "", ""),
    };
    (format!("{before}{after}").trim().to_owned(), part.trim().to_owned())
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
            spoken: 1,
            results: vec![("query_actions".into(), "[]".into())],
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
}
