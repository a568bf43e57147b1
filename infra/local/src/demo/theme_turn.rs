//! What was said and done in a turn of the theme agent, as a request has it.

use serde_json::{Value, json};

const BRIEFING: &str = "<lamplighter:briefing>\n";

/// How begins what the model is told of memory.
const MEMORY: &str = "<lamplighter_memory>";

/// How the only message of a person begins in the run of a helper, and what stands before its task.
const HELPER: &str = "# You are: ";
const TASK: &str = "\n# Your task\n";

/// The end of a file, in lines.
const LAST_LINE: u32 = 1_000_000;

/// The longest line that is shown whole, in characters.
const LONGEST_LINE: usize = 2_000;

/// The tools that edit, as far as the demo uses them.
const EDITS: [&str; 2] = ["search_replace", "edit_lines"];

/// What a rule can't go on without: the result of a call, or a place that is not there.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Call(&'static str, Value),
    Say(String),
}

pub type Found<T> = Result<T, Step>;

/// A call with its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub name: String,
    pub input: Value,
    pub result: String,
    pub is_error: bool,
}

/// The newest message of a person, and what was done since.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turn {
    pub said: String,
    /// `code`, `debug`, `ask` or `plan`.
    pub mode: String,
    /// The files of the briefing, each with the reason why it is there.
    pub files: Vec<(String, String)>,
    pub calls: Vec<Call>,
}

/// A line that a search has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    pub path: String,
    pub line: usize,
    pub text: String,
}

/// Lines of a file. The first one has the number 1, unless only a part was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    pub path: String,
    pub version: String,
    pub total: usize,
    pub text: String,
    /// The number of the first line that is missing at the end.
    next: Option<u32>,
}

impl Turn {
    /// `messages` are those of a request in the Anthropic wire format.
    pub fn read(messages: &Value) -> Self {
        let mut turn = Self::default();
        // The blocks of the message before.
        let mut before: &[Value] = &[];
        for message in items(messages) {
            let is_person = message["role"] == "user";
            if let Some(text) = message["content"].as_str() {
                if is_person {
                    turn.begin(&[text]);
                }
                before = &[];
                continue;
            }
            let blocks = items(&message["content"]);
            for block in blocks {
                match block["type"].as_str() {
                    Some("tool_use") => turn.calls.push(Call {
                        name: block["name"].as_str().unwrap_or_default().to_owned(),
                        input: block["input"].clone(),
                        result: String::new(),
                        is_error: true,
                    }),
                    Some("tool_result") => turn.note(block, before),
                    _ => {}
                }
            }
            let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
            if is_person && !texts.is_empty() {
                turn.begin(&texts);
            }
            before = blocks;
        }
        turn
    }

    /// A person has said something, or the platform has.
    fn begin(&mut self, texts: &[&str]) {
        self.calls.clear();
        // What is known from before stands behind the briefing. The demo does not use it.
        let texts = match texts {
            [before @ .., briefing, last] if briefing.starts_with(BRIEFING) && last.starts_with(MEMORY) => {
                [before, &[briefing]].concat()
            }
            texts => texts.to_vec(),
        };
        let (told, said): (Vec<&str>, Vec<&str>) = texts.iter().partition(|text| text.starts_with(BRIEFING));
        // What stands before the newest words is of the platform, such as the time.
        self.said = said.last().map_or("", |text| text.trim()).to_owned();
        if let Some((_, task)) = self.said.split_once(TASK).filter(|_| self.said.starts_with(HELPER)) {
            (self.said, self.mode) = (task.to_owned(), "code".to_owned());
            self.files.clear();
            return;
        }
        (self.mode, self.files) = told.last().map_or_else(Default::default, |text| briefing(text));
    }

    /// Notes a result at its call, which is the first one without a result that has this id.
    fn note(&mut self, block: &Value, before: &[Value]) {
        let calls: Vec<&Value> = before.iter().filter(|block| block["type"] == "tool_use").collect();
        let Some(at) = calls.iter().position(|call| call["id"] == block["tool_use_id"]) else { return };
        let from = self.calls.len().saturating_sub(calls.len());
        let Some(call) = self.calls.get_mut(from + at) else { return };
        call.result = match &block["content"] {
            Value::String(text) => text.clone(),
            blocks => {
                let texts: Vec<&str> =
                    items(blocks).iter().filter_map(|block| block["text"].as_str()).collect();
                texts.join("\n")
            }
        };
        call.is_error = block["is_error"] == true;
    }

    /// The first edit, and its place among the calls.
    pub fn edit(&self) -> Option<(usize, &Call)> {
        self.calls.iter().enumerate().find(|(_, call)| EDITS.contains(&call.name.as_str()))
    }

    /// The turn as it was before a call.
    pub fn until(&self, at: usize) -> Self {
        Self { calls: self.calls[..at].to_vec(), ..self.clone() }
    }

    /// What a call has answered. `None`: it was refused.
    pub fn asked(&self, name: &'static str, input: Value) -> Found<Option<&str>> {
        match self.calls.iter().find(|call| call.name == name && call.input == input) {
            Some(call) => Ok((!call.is_error).then_some(call.result.as_str())),
            None => Err(Step::Call(name, input)),
        }
    }

    /// The lines that match. Nothing, if the search was refused.
    pub fn grep(&self, input: Value) -> Found<Vec<Hit>> {
        let told = self.asked("grep_content", input)?.unwrap_or_default();
        Ok(told.lines().filter_map(hit).collect())
    }

    /// The whole of a file. `None`: there is none that can be read.
    pub fn file(&self, path: &str) -> Found<Option<File>> {
        let Some(mut file) = self.lines(path, 1, LAST_LINE)? else { return Ok(None) };
        while let Some(next) = file.next {
            let Some(more) = self.lines(path, next, LAST_LINE)? else { return Ok(None) };
            if more.next.is_some_and(|after| after <= next) {
                return Ok(None);
            }
            file.text = format!("{}\n{}", file.text, more.text);
            file.next = more.next;
        }
        Ok(Some(file))
    }

    /// Some lines of a file. The last ones are left out of a very long answer.
    pub fn lines(&self, path: &str, start: u32, end: u32) -> Found<Option<File>> {
        let input = json!({"reads": [{"path": path, "start": start, "end": end}]});
        let told = self.asked("read_lines", input)?;
        Ok(told.and_then(|told| window(path, told)))
    }
}

impl File {
    /// Whether a part of the text was shown whole. A line that is too long is shown cut.
    pub fn is_whole(part: &str) -> bool {
        part.lines().all(|line| line.chars().count() < LONGEST_LINE)
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The mode of a briefing, and its files with their reasons. What stands within a fence is text of a file.
fn briefing(text: &str) -> (String, Vec<(String, String)>) {
    let (mut mode, mut files) = (String::new(), Vec::<(String, String)>::new());
    let mut fence: Option<&str> = None;
    for line in text.split('\n') {
        match fence {
            Some(open) if open == line => fence = None,
            Some(_) => {}
            None if line.len() >= 3 && line.bytes().all(|byte| byte == b'`') => fence = Some(line),
            None => {
                if let Some(rest) = line.strip_prefix("# Turn: ") {
                    mode = rest.split(',').next().unwrap_or_default().to_owned();
                } else if let Some(rest) = line.strip_prefix("# File: ") {
                    let mut strings = serde_json::Deserializer::from_str(rest).into_iter::<String>();
                    if let Some(Ok(path)) = strings.next() {
                        files.push((path, String::new()));
                    }
                } else if let Some(why) = line.strip_prefix("Why: ")
                    && let Some((_, reason)) = files.last_mut()
                    && reason.is_empty()
                {
                    why.clone_into(reason);
                }
            }
        }
    }
    (mode, files)
}

/// Reads `sections/a.liquid:12: text`.
fn hit(line: &str) -> Option<Hit> {
    let (place, text) = line.split_once(": ").or_else(|| Some((line.strip_suffix(':')?, "")))?;
    let (path, number) = place.rsplit_once(':')?;
    Some(Hit { path: path.to_owned(), line: number.parse().ok()?, text: text.to_owned() })
}

/// Reads `a.css version 0123 lines 1–2 of 9` and the numbered lines after it.
fn window(path: &str, told: &str) -> Option<File> {
    let (head, body) = told.split_once('\n')?;
    let (version, range) = head.strip_prefix(path)?.strip_prefix(" version ")?.split_once(" lines ")?;
    let total = range.rsplit_once(" of ")?.1.parse().ok()?;
    let (mut lines, mut next) = (Vec::new(), None);
    for line in body.split('\n') {
        match line.split_once('\t') {
            Some((number, text)) if number.bytes().all(|byte| byte.is_ascii_digit()) => lines.push(text),
            _ => {
                let number = line.strip_prefix("(the next line is ").and_then(|rest| rest.strip_suffix(')'));
                next = number.and_then(|number| number.parse().ok()).or(next);
            }
        }
    }
    Some(File { path: path.to_owned(), version: version.to_owned(), total, text: lines.join("\n"), next })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_begins_with_the_newest_words() {
        let briefing = "<lamplighter:briefing>\n# Turn: code, simple, other\nMake it.\n\n# File: \"a \\\"b\\\".css\", version \"1\", whole, 2 lines\n\
                        Why: it is open\n````\n# Turn: ask, simple, other\nWhy: no\n```\n````\n# File: \"c.css\", version \"2\", as above\n\
                        </lamplighter:briefing>\n";
        let text = |text: &str| json!({"type": "text", "text": text});
        let call = |id: &str, path: &str| json!({"type": "tool_use", "id": id, "name": "read_file", "input": {"path": path}});
        let result =
            |id: &str, told: &str| json!({"type": "tool_result", "tool_use_id": id, "content": told});
        let messages = json!([
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": [call("z", "z")]},
            {"role": "user", "content": [result("z", "old")]},
            {"role": "assistant", "content": "Done."},
            {"role": "user", "content": [text("<now>\nIt is late.\n</now>"), text(" two\n"), text(briefing)]},
            {"role": "assistant", "content": [text("Let me look."), call("a", "a"), call("b", "b")]},
            {"role": "user", "content": [result("b", "B"), {"type": "tool_result", "tool_use_id": "a", "content": [text("A")], "is_error": true}]},
        ]);
        let turn = Turn::read(&messages);
        assert_eq!((turn.said.as_str(), turn.mode.as_str()), ("two", "code"));
        let files = [("a \"b\".css", "it is open"), ("c.css", "")];
        assert_eq!(turn.files, files.map(|(path, why)| (path.to_owned(), why.to_owned())));
        let told: Vec<(&str, bool)> =
            turn.calls.iter().map(|call| (call.result.as_str(), call.is_error)).collect();
        assert_eq!(told, [("A", true), ("B", false)]);
        // A person may begin with a sign of markup.
        let said =
            |said: &str| Turn::read(&json!([{"role": "user", "content": [text(said), text(briefing)]}])).said;
        assert_eq!(said("<p>Hello</p>"), "<p>Hello</p>");
        let known = "<lamplighter_memory>\nknown: likes lamps\n</lamplighter_memory>";
        let with_memory = json!([{"role": "user", "content": [text("two"), text(briefing), text(known)]}]);
        assert_eq!(Turn::read(&with_memory).said, "two");
        assert_eq!(Turn::read(&with_memory).mode, "code");
        assert_eq!(Turn::read(&json!("nonsense")), Turn::default());
    }

    #[test]
    fn answers_of_tools_are_read() {
        assert_eq!(
            hit("a:b.css:12:   x: y"),
            Some(Hit { path: "a:b.css".into(), line: 12, text: "  x: y".into() })
        );
        assert_eq!(hit("no line has it"), None);
        let told = "a.css version 0123456789ab lines 1–2 of 9\n1\ta {\n2\t\t}\n(the next line is 3)";
        let file = window("a.css", told).unwrap();
        assert_eq!((file.version.as_str(), file.total, file.text.as_str()), ("0123456789ab", 9, "a {\n\t}"));
        assert_eq!(file.next, Some(3));
        assert_eq!(window("b.css", told), None);
        assert_eq!(window("a.css", "a.css does not exist"), None);
    }
}
