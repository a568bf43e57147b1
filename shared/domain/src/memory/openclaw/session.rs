//! A session: JSON lines with a header and the entries of a tree.

use std::collections::{BTreeSet, HashMap, VecDeque};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::hash_of;
use crate::memory::session::{MAX_MESSAGE, MAX_MESSAGE_ID, MAX_NAME, Said, SaidBy};
use crate::validate::is_sane;

/// The longest line that is read, in bytes. A line may have images, which are left out.
pub const MAX_LINE: usize = 16 << 20;

/// The most messages of a session. Of a longer one, the newest are kept.
const MAX_MESSAGES: usize = 20_000;

/// The most bytes of the texts of a session. Of a longer one, the newest messages are kept.
const MAX_TEXT: usize = 16 << 20;

/// The most entries of the tree that are no messages.
const MAX_LINKS: usize = 200_000;

/// The longest result of a tool that is kept, in bytes, as of conversations on this platform.
const MAX_TOOL: usize = 2_000;

/// What the first user message of a session begins with that a job has begun.
const BY_JOB: &str = "[cron:";

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    id: Option<String>,
    #[serde(default, rename = "parentId")]
    parent_id: Option<String>,
    #[serde(default)]
    timestamp: Option<Value>,
    #[serde(default)]
    message: Option<Message>,
    /// Of the header, if this platform has written it.
    #[serde(default)]
    namespace: Option<String>,
}

#[derive(Deserialize)]
struct Message {
    role: String,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    timestamp: Option<Value>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default, rename = "dateText")]
    date_text: Option<String>,
}

/// A session that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcript {
    /// The id in the header.
    pub id: Option<String>,
    /// The namespace in the header.
    pub namespace: Option<String>,
    /// Its first message of a user says that a job has begun it.
    pub by_job: bool,
    /// Each is valid, and has another id.
    pub messages: Vec<Said>,
    /// The lines that could not be read, and those whose id an earlier one has.
    pub unreadable: u64,
    /// The oldest messages of a session that is too long.
    pub dropped: u64,
}

/// Reads a session line by line.
#[derive(Default)]
pub struct TranscriptReader {
    done: Transcript,
    messages: VecDeque<Said>,
    bytes: usize,
    has_user: bool,
    /// The parents of entries that are no messages, by their ids.
    links: HashMap<String, Option<String>>,
    /// The ids of all messages, also of those that were dropped.
    known: BTreeSet<String>,
    time: Option<Timestamp>,
    line: u64,
}

impl TranscriptReader {
    /// Reads the next line. Empty lines do not count.
    pub fn line(&mut self, line: &[u8]) {
        self.line += 1;
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        match serde_json::from_slice::<Entry>(line) {
            Ok(entry) => self.entry(entry),
            Err(_) => self.done.unreadable += 1,
        }
    }

    /// A line that was too long to be read.
    pub fn too_long(&mut self) {
        self.line += 1;
        self.done.unreadable += 1;
    }

    fn entry(&mut self, entry: Entry) {
        let time = entry.timestamp.as_ref().and_then(instant);
        if entry.kind == "session" {
            self.time = time.or(self.time);
            if self.done.id.is_none() {
                (self.done.id, self.done.namespace) = (entry.id, entry.namespace);
            }
            return;
        }
        let said = match entry.message {
            Some(message) if entry.kind == "message" => self.said(message, time),
            _ => None,
        };
        let parent = entry.parent_id.filter(|parent| !parent.is_empty()).map(valid_id);
        let id = entry.id.filter(|id| !id.is_empty()).map(valid_id);
        match (said, id) {
            (Some(said), id) => {
                // A line keeps its number, because a session only grows.
                let id = id.unwrap_or_else(|| format!("line-{}", self.line));
                self.keep(Said { id, parent_id: parent, ..said });
            }
            (None, Some(id)) if self.links.len() < MAX_LINKS => {
                self.links.entry(id).or_insert(parent);
            }
            (None, _) => {}
        }
    }

    /// The message in words. `None` if it has none, such as a call of a tool.
    fn said(&mut self, message: Message, time: Option<Timestamp>) -> Option<Said> {
        let role = match message.role.as_str() {
            "user" => SaidBy::Person,
            "assistant" => SaidBy::Agent,
            "toolResult" | "tool" => SaidBy::Tool,
            "system" => SaidBy::System,
            _ => return None,
        };
        let mut text = text_of(message.content)?;
        match role {
            SaidBy::Tool => text.truncate(text.floor_char_boundary(MAX_TOOL)),
            _ => cut(&mut text, MAX_MESSAGE),
        }
        if text.trim().is_empty() {
            return None;
        }
        let at = message.timestamp.as_ref().and_then(instant).or(time);
        let date_text = short(message.date_text);
        // A message without a time is as old as what came before it.
        let at = if at.is_none() && date_text.is_some() { None } else { at.or(self.time) };
        self.time = at.or(self.time);
        let name = short(message.name);
        Some(Said { id: String::new(), parent_id: None, role, name, text, at, date_text })
    }

    fn keep(&mut self, said: Said) {
        if !self.known.insert(said.id.clone()) {
            self.done.unreadable += 1;
            return;
        }
        if said.role == SaidBy::Person && !self.has_user {
            self.has_user = true;
            self.done.by_job = said.text.trim_start().starts_with(BY_JOB);
        }
        self.bytes += said.text.len();
        self.messages.push_back(said);
        while self.messages.len() > MAX_MESSAGES || self.bytes > MAX_TEXT {
            let Some(oldest) = self.messages.pop_front() else { break };
            self.bytes -= oldest.text.len();
            // Its children have the parent that it had.
            if self.links.len() < MAX_LINKS {
                self.links.insert(oldest.id, oldest.parent_id);
            }
            self.done.dropped += 1;
        }
    }

    /// The session. A message whose parent is no message gets the nearest ancestor that is one.
    #[must_use]
    pub fn finish(self) -> Transcript {
        let Self { mut done, messages, mut links, .. } = self;
        let kept: BTreeSet<&str> = messages.iter().map(|said| said.id.as_str()).collect();
        let parents: Vec<Option<String>> = messages
            .iter()
            .map(|said| nearest(said.parent_id.clone(), &kept, &mut links).filter(|it| *it != said.id))
            .collect();
        let with_parent = |(said, parent_id): (Said, Option<String>)| Said { parent_id, ..said };
        done.messages = messages.into_iter().zip(parents).map(with_parent).collect();
        done
    }
}

/// The nearest ancestor that is kept, beginning with `from`. All links on the way lead to it afterwards, so long chains are walked once,
/// and a circle leads to nothing.
fn nearest(
    from: Option<String>,
    kept: &BTreeSet<&str>,
    links: &mut HashMap<String, Option<String>>,
) -> Option<String> {
    let (mut at, mut way) = (from, Vec::new());
    let found = loop {
        match at {
            Some(id) if kept.contains(id.as_str()) => break Some(id),
            Some(id) => {
                // Taken out, so a circle ends where it began.
                let Some((id, next)) = links.remove_entry(&id) else { break None };
                way.push(id);
                at = next;
            }
            None => break None,
        }
    };
    links.extend(way.into_iter().map(|id| (id, found.clone())));
    found
}

/// The texts of a content. `None` if it has none.
fn text_of(content: Value) -> Option<String> {
    match content {
        Value::String(text) => Some(text),
        Value::Array(parts) => {
            let texts =
                parts.iter().filter(|part| part["type"] == "text").filter_map(|part| part["text"].as_str());
            Some(texts.collect::<Vec<_>>().join("\n"))
        }
        _ => None,
    }
}

/// A time as text or in milliseconds.
fn instant(value: &Value) -> Option<Timestamp> {
    let at = match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(millis) => millis.as_i64().and_then(|millis| Timestamp::from_millisecond(millis).ok()),
        _ => None,
    };
    at.filter(|at| is_sane(*at))
}

/// An id that a message may have.
fn valid_id(id: String) -> String {
    let is_valid = id.len() <= MAX_MESSAGE_ID && id.bytes().all(|byte| byte.is_ascii_graphic());
    if is_valid { id } else { hash_of("message", &[&id]) }
}

/// At most `most` characters.
fn cut(text: &mut String, most: usize) {
    if let Some((at, _)) = text.char_indices().nth(most) {
        text.truncate(at);
    }
}

fn short(name: Option<String>) -> Option<String> {
    let mut name = name.filter(|name| !name.trim().is_empty())?;
    cut(&mut name, MAX_NAME);
    Some(name)
}

/// The ids of sessions that a job has begun, from `sessions.json`. `None` if it can't be read.
#[must_use]
pub fn scheduled_sessions(json: &[u8]) -> Option<BTreeSet<String>> {
    let keys: HashMap<String, Value> = serde_json::from_slice(json).ok()?;
    let by_job = keys.iter().filter(|(key, _)| key.split(':').any(|part| part == "cron"));
    Some(by_job.filter_map(|(_, of)| of["sessionId"].as_str()).map(str::to_owned).collect())
}

/// The first line of a session that is taken along, with its newline.
#[must_use]
pub fn header(id: &str, namespace: &str, created_at: Timestamp) -> String {
    let mut header = json!({"type": "session", "version": 3, "id": id, "timestamp": created_at, "cwd": "/"});
    if !namespace.is_empty() {
        header["namespace"] = json!(namespace);
    }
    format!("{header}\n")
}

/// The line of a message that is taken along, with its newline.
#[must_use]
pub fn line(said: &Said, parent: Option<&str>) -> String {
    let role = match said.role {
        SaidBy::Tool => "toolResult",
        other => other.as_str(),
    };
    let mut message = json!({"role": role, "content": [{"type": "text", "text": said.text}]});
    let mut entry = json!({"type": "message", "id": said.id, "parentId": parent});
    if let Some(at) = said.at {
        entry["timestamp"] = json!(at);
        message["timestamp"] = json!(at.as_millisecond());
    }
    if let Some(name) = &said.name {
        message["name"] = json!(name);
    }
    if let Some(date) = &said.date_text {
        message["dateText"] = json!(date);
    }
    entry["message"] = message;
    format!("{entry}\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::memory::session::live_branch;

    fn read(lines: &[Value]) -> Transcript {
        let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        read_text(text.as_bytes())
    }

    fn read_text(text: &[u8]) -> Transcript {
        let mut reader = TranscriptReader::default();
        text.split(|byte| *byte == b'\n').for_each(|line| reader.line(line));
        reader.finish()
    }

    fn message(id: &str, parent: Option<&str>, role: &str, content: Value) -> Value {
        json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-04-08T01:03:43.107Z",
            "message": {"role": role, "content": content}})
    }

    fn links(transcript: &Transcript) -> Vec<(&str, Option<&str>)> {
        transcript.messages.iter().map(|said| (said.id.as_str(), said.parent_id.as_deref())).collect()
    }

    #[test]
    fn a_session_is_read() {
        let found = read(&[
            json!({"type": "session", "version": 3, "id": "s1", "timestamp": "2026-04-08T01:03:40Z", "cwd": "/w"}),
            json!({"type": "model_change", "id": "m", "parentId": null, "timestamp": "2026-04-08T01:03:41Z"}),
            json!({"type": "message", "id": "a", "parentId": "m", "timestamp": "2026-04-08T01:03:43.107Z",
                "message": {"role": "user", "content": "Hello", "timestamp": 1_775_609_023_107_i64}}),
            message(
                "b",
                Some("a"),
                "assistant",
                json!([
                    {"type": "thinking", "thinking": "secret"}, {"type": "text", "text": "One"},
                    {"type": "toolCall", "id": "t", "name": "read", "arguments": {}}, {"type": "text", "text": "Two"},
                ]),
            ),
            message("c", Some("b"), "toolResult", json!([{"type": "text", "text": "é".repeat(2_000)}])),
            message("d", Some("c"), "assistant", json!([{"type": "toolCall", "name": "x"}])),
            json!({"type": "compaction", "id": "e", "parentId": "d", "summary": "not taken"}),
            message("f", Some("e"), "system", json!("Note")),
            message("g", Some("f"), "bashExecution", json!("ls")),
            message(
                "h",
                Some("g"),
                "user",
                json!([{"type": "image", "data": "…"}, {"type": "text", "text": "Look"}]),
            ),
        ]);
        assert_eq!((found.id.as_deref(), found.by_job, found.unreadable), (Some("s1"), false, 0));
        assert_eq!(
            links(&found),
            [("a", None), ("b", Some("a")), ("c", Some("b")), ("f", Some("c")), ("h", Some("f"))]
        );
        let texts: Vec<&str> = found.messages.iter().map(|said| said.text.as_str()).collect();
        assert_eq!(texts, ["Hello", "One\nTwo", &"é".repeat(1_000), "Note", "Look"]);
        assert_eq!(found.messages[0].at.unwrap().to_string(), "2026-04-08T00:43:43.107Z");
        assert_eq!(found.messages[1].at.unwrap().to_string(), "2026-04-08T01:03:43.107Z");
        assert!(!format!("{found:?}").contains("secret"));
    }

    #[test]
    fn a_damaged_session_gives_what_can_be_read() {
        let good = message("a", None, "user", json!("Hello")).to_string();
        let text = [
            &b"not json\n{\"type\":\"message\",\"id\":1}\n\xff\xfe\n"[..],
            good.as_bytes(),
            b"\n\n  \n{\"type\":\"message\",\"id\":\"b\",\"mess",
        ]
        .concat();
        let found = read_text(&text);
        assert_eq!((found.unreadable, found.messages.len(), found.id), (4, 1, None));
        // Deeper than any reader goes.
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(read_text(deep.as_bytes()).unreadable, 1);
        // The first message with an id stays.
        let found = read(&[
            message("a", None, "user", json!("1")),
            message("a", None, "user", json!("2")),
            json!({"type": "message", "id": "", "message": {"role": "user", "content": "3"}}),
            message("a b", Some("a"), "user", json!("4")),
            message("c", Some("a b"), "user", json!("5")),
            message("d", None, "user", json!(" \n")),
            message("e", None, "robot", json!("6")),
            message("f", None, "user", json!({"text": "7"})),
            message("g", None, "user", json!([7, null, "x", {"type": "text", "text": 7}, []])),
        ]);
        let texts: Vec<&str> = found.messages.iter().map(|said| said.text.as_str()).collect();
        assert_eq!((texts, found.unreadable), (vec!["1", "3", "4", "5"], 1));
        assert_eq!(found.messages[1].id, "line-3");
        assert_eq!(found.messages[3].parent_id.as_deref(), Some(found.messages[2].id.as_str()));
        found.messages.iter().for_each(|said| said.check().unwrap());
    }

    #[test]
    fn times_that_are_no_times_are_left_out() {
        let at = |stamp: Value| {
            let entry = json!({"type": "message", "id": "a", "timestamp": stamp, "message": {"role": "user", "content": "x"}});
            read(&[json!({"type": "session", "id": "s", "timestamp": "2026-01-02T00:00:00Z"}), entry])
                .messages[0]
                .at
        };
        let header = Some("2026-01-02T00:00:00Z".parse().unwrap());
        for bad in [
            json!("soon"),
            json!(-62_135_596_800_000_i64),
            json!(1e300),
            json!({}),
            json!("9999-01-01T00:00:00Z"),
        ] {
            assert_eq!(at(bad.clone()), header, "{bad}");
        }
        assert_eq!(at(json!(0)), Some(Timestamp::UNIX_EPOCH));
    }

    #[test]
    fn a_parent_is_the_nearest_message() {
        let link = |id: &str, parent: Option<&str>| json!({"type": "custom", "id": id, "parentId": parent});
        let user = |id: &str, parent: Option<&str>| message(id, parent, "user", json!("x"));
        for (lines, expected) in [
            // The link comes after its child.
            (
                vec![user("a", None), user("b", Some("x")), link("x", Some("a"))],
                vec![("a", None), ("b", Some("a"))],
            ),
            // A circle of links, an unknown parent, and a message that is its own parent.
            (vec![link("x", Some("y")), link("y", Some("x")), user("a", Some("x"))], vec![("a", None)]),
            (
                vec![link("x", Some("x")), user("a", Some("x")), user("b", Some("y"))],
                vec![("a", None), ("b", None)],
            ),
            (
                vec![link("x", Some("gone")), user("a", Some("x")), user("b", Some("gone"))],
                vec![("a", None), ("b", None)],
            ),
            (
                vec![user("a", Some("a")), link("x", Some("a")), user("b", Some("x"))],
                vec![("a", None), ("b", Some("a"))],
            ),
            (vec![link("x", Some("a")), user("a", Some("x"))], vec![("a", None)]),
        ] {
            assert_eq!(links(&read(&lines)), expected);
        }
        // A chain that every message shares is walked once.
        let mut lines: Vec<Value> = (0..20_000)
            .map(|n| link(&format!("l{n}"), (n > 0).then(|| format!("l{}", n - 1)).as_deref()))
            .collect();
        lines.extend((0..2_000).map(|n| user(&format!("m{n}"), Some("l19999"))));
        assert_eq!(read(&lines).messages.len(), 2_000);
    }

    #[test]
    fn a_long_session_keeps_its_newest_messages() {
        let text = "x".repeat(30_000);
        let mut reader = TranscriptReader::default();
        let (mut parent, count) = (None, MAX_TEXT / 30_000 + 10);
        for n in 0..count {
            let id = format!("m{n}");
            reader.line(message(&id, parent.as_deref(), "user", json!(text)).to_string().as_bytes());
            parent = Some(id);
        }
        reader.too_long();
        let found = reader.finish();
        assert_eq!((found.messages.len() as u64 + found.dropped, found.unreadable), (count as u64, 1));
        assert!(found.dropped >= 10 && found.messages.len() * 30_000 <= MAX_TEXT);
        assert_eq!(found.messages[0].parent_id, None);
        assert_eq!(live_branch(&found.messages).len(), found.messages.len());
    }

    #[test]
    fn a_session_of_a_job_is_known() {
        let first = |text: &str| {
            read(&[
                message("a", None, "system", json!("s")),
                message("b", Some("a"), "user", json!(text)),
                message("c", Some("b"), "user", json!("[cron:x]")),
            ])
            .by_job
        };
        assert!(first("[cron:9f2 memory-sync-daily] Do it") && !first("Hello [cron:"));
        let keys = json!({
            "agent:main:main": {"sessionId": "a"}, "agent:main:cron:9f2": {"sessionId": "b"},
            "cron:1": {"sessionId": "c", "more": []}, "agent:main:cron:9f2:run:7": {"sessionId": 4}, "cronies": {"sessionId": "d"},
        });
        let found = scheduled_sessions(keys.to_string().as_bytes()).unwrap();
        assert!(found.iter().eq(["b", "c"]));
        for bad in ["", "[]", "{\"a\":", "\"x\""] {
            assert_eq!(scheduled_sessions(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(scheduled_sessions(b"{\"cron:\": 7, \"x:cron:\": null}"), Some(BTreeSet::new()));
    }

    #[test]
    fn what_is_taken_along_reads_back() {
        let said = |id: &str, role, parent: Option<&str>| Said {
            id: id.into(),
            parent_id: parent.map(str::to_owned),
            role,
            name: Some("Ann".into()),
            text: "A \"text\"\nof two lines\u{2028}".into(),
            at: Some("2026-04-08T01:03:43.107Z".parse().unwrap()),
            date_text: None,
        };
        let messages = vec![
            said("1", SaidBy::Person, None),
            said("2", SaidBy::Agent, Some("1")),
            Said { at: None, date_text: Some("8 May, 2023".into()), ..said("3", SaidBy::Tool, Some("2")) },
            said("4", SaidBy::System, Some("3")),
        ];
        let mut text = header("s-1", "work", Timestamp::UNIX_EPOCH);
        messages.iter().for_each(|said| text.push_str(&line(said, said.parent_id.as_deref())));
        let found = read_text(text.as_bytes());
        assert_eq!((found.id.as_deref(), found.namespace.as_deref()), (Some("s-1"), Some("work")));
        assert_eq!(found.messages, messages);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = read_text(&bytes);
            let _ = scheduled_sessions(&bytes);
        }

        #[test]
        fn any_tree_gives_valid_messages(
            entries in proptest::collection::vec((0..3_u8, 0..9_u8, 0..11_u8), 0..30)
        ) {
            let lines: Vec<Value> = entries.iter().map(|(kind, id, parent)| {
                let parent = (*parent < 10).then(|| parent.to_string());
                match kind {
                    0 => json!({"type": "custom", "id": id.to_string(), "parentId": parent}),
                    _ => message(&id.to_string(), parent.as_deref(), "user", json!("x")),
                }
            }).collect();
            let found = read(&lines);
            let ids: BTreeSet<&str> = found.messages.iter().map(|said| said.id.as_str()).collect();
            prop_assert_eq!(ids.len(), found.messages.len());
            for said in &found.messages {
                said.check().unwrap();
                prop_assert!(said.parent_id.as_deref().is_none_or(|parent| parent != said.id && ids.contains(parent)));
            }
            prop_assert_eq!(live_branch(&found.messages).is_empty(), found.messages.is_empty());
        }
    }
}
