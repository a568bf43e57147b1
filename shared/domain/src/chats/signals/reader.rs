//! Reads a reply as it streams.

use serde_json::{Map, Value};

use super::deliverable::{Deliverable, SignalKind};
use super::payload::{self, Begin, Scan};

/// A complete reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The chat text, without the signals.
    pub text: String,
    pub deliverables: Vec<Deliverable>,
}

impl Reply {
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut reader = SignalReader::default();
        let mut chat = reader.feed(text);
        let rest = reader.finish();
        chat.push_str(&rest.text);
        Self { text: chat, deliverables: rest.deliverables }
    }
}

/// An undecided text of this length, in bytes, is not looked at again with each piece. No usual signal begins with so long a text.
const LONG_REST: usize = 1024;

/// Reads the pieces of a reply and returns the chat text in them. A line that may still become a signal is held back
/// until that is decided. The boundaries between pieces make no difference.
#[derive(Debug, Default)]
pub struct SignalReader {
    /// Text that has arrived but is not decided yet.
    rest: String,
    /// The length of `rest` at which it is looked at again.
    look_at: usize,
    state: State,
    begun: bool,
    deliverables: Vec<Deliverable>,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    LineStart,
    MidLine,
    /// After a tool's name: a JSON object may follow.
    ToolName {
        name: String,
        fences: usize,
    },
    /// After `---`: JSON must follow.
    Delimiter {
        signal: SignalKind,
        fences: usize,
    },
    Json {
        payload: Payload,
        fences: usize,
        scan: Scan,
    },
    /// Key–value lines. Their end is known only when the reply ends.
    KeyValues,
    /// After JSON: the code fences around it are still open.
    Close {
        fences: usize,
    },
}

#[derive(Debug, Clone)]
enum Payload {
    Tool(String),
    Signal(SignalKind),
}

impl SignalReader {
    /// Adds the next piece of the reply. Returns the text to show.
    pub fn feed(&mut self, delta: &str) -> String {
        self.rest.push_str(delta);
        if self.rest.len() < self.look_at { String::new() } else { self.advance(false) }
    }

    /// Ends the reply. Returns the remaining text to show, and all deliverables.
    #[must_use]
    pub fn finish(mut self) -> Reply {
        Reply { text: self.advance(true), deliverables: self.deliverables }
    }

    fn advance(&mut self, end: bool) -> String {
        let mut rest = std::mem::take(&mut self.rest);
        let mut chat = String::new();
        let mut at = 0;
        while at < rest.len() || end {
            match self.step(&rest[at..], end, &mut chat) {
                Step::Go(used) => at += used,
                Step::Wait => break,
            }
        }
        rest.drain(..at);
        // A long text that is not decided is looked at from its beginning. If each piece led to that, it would take quadratic time.
        self.look_at = match self.state {
            State::Json { .. } => 0,
            _ if rest.len() < LONG_REST => 0,
            _ => rest.len() + rest.len() / 2,
        };
        self.rest = rest;
        chat
    }

    /// Decides the next part of `text`, or reports that it can't decide yet. At the end of the reply it goes on until
    /// nothing is left to decide.
    fn step(&mut self, text: &str, end: bool, chat: &mut String) -> Step {
        match &mut self.state {
            State::LineStart => {
                if text.is_empty() {
                    return Step::Wait;
                }
                match look(text, !self.begun, end) {
                    Look::Wait => return Step::Wait,
                    Look::Chat => self.state = State::MidLine,
                    Look::Signal { state, len } => {
                        self.state = state;
                        self.begun = true;
                        return Step::Go(len);
                    }
                }
                Step::Go(0)
            }
            State::MidLine => {
                self.begun = true;
                let len = match text.find('\n') {
                    Some(newline) => {
                        self.state = State::LineStart;
                        newline + 1
                    }
                    None if text.is_empty() => return Step::Wait,
                    None => text.len(),
                };
                chat.push_str(&text[..len]);
                Step::Go(len)
            }
            State::ToolName { name, fences } => match payload::begin(text, &['{'], end) {
                Begin::Wait => Step::Wait,
                Begin::Not => {
                    let name = std::mem::take(name);
                    self.deliverables.push(Deliverable::UseTool { name, input: Value::Object(Map::new()) });
                    // Without a fence there is nothing to close, and the text continues.
                    self.state =
                        if *fences == 0 { State::LineStart } else { State::Close { fences: *fences } };
                    Step::Go(0)
                }
                Begin::At { offset, fenced } => {
                    let (payload, fences) =
                        (Payload::Tool(std::mem::take(name)), *fences + usize::from(fenced));
                    self.state = State::Json { payload, fences, scan: Scan::default() };
                    Step::Go(offset)
                }
            },
            State::Delimiter { signal, fences } => match payload::begin(text, &['{', '['], end) {
                Begin::Wait => Step::Wait,
                // The end of such a payload is known only when the reply has ended.
                Begin::Not if !end => Step::Wait,
                Begin::Not => {
                    let signal = *signal;
                    let blank = text.trim_matches(|c: char| c == '-' || c.is_whitespace()).is_empty();
                    self.give_up(
                        signal,
                        text,
                        if blank { "it has no payload" } else { "its payload is not JSON" },
                    )
                }
                Begin::At { offset, fenced } => {
                    let (payload, fences) = (Payload::Signal(*signal), *fences + usize::from(fenced));
                    self.state = State::Json { payload, fences, scan: Scan::default() };
                    Step::Go(offset)
                }
            },
            State::Json { payload, fences, scan } => match scan.end(text) {
                Some(len) => {
                    let deliverable = read(payload, &text[..len]);
                    self.deliverables.push(deliverable);
                    self.state = State::Close { fences: *fences };
                    Step::Go(len)
                }
                None if !end => Step::Wait,
                None => {
                    let signal = payload.signal();
                    self.give_up(signal, text, "its JSON is cut off")
                }
            },
            State::KeyValues if !end => Step::Wait,
            State::KeyValues => {
                let (payload, len) = key_values(text);
                self.deliverables.push(Deliverable::from_key_values(payload).unwrap_or_else(|reason| {
                    Deliverable::Invalid { signal: SignalKind::ReadyToCreate, reason, raw_len: payload.len() }
                }));
                self.state = State::LineStart;
                Step::Go(len)
            }
            State::Close { fences } => match close(text, *fences, end) {
                Some(len) => {
                    self.state = if text[..len].ends_with('\n') { State::LineStart } else { State::MidLine };
                    Step::Go(len)
                }
                None => Step::Wait,
            },
        }
    }

    /// Handles a reply that ended within a payload. The payload ends where the next signal begins.
    fn give_up(&mut self, signal: SignalKind, text: &str, reason: &str) -> Step {
        let len = next_signal(text).unwrap_or(text.len());
        self.deliverables.push(Deliverable::Invalid { signal, reason: reason.into(), raw_len: len });
        self.state = State::LineStart;
        Step::Go(len)
    }
}

enum Step {
    /// This many bytes are decided.
    Go(usize),
    Wait,
}

impl Payload {
    const fn signal(&self) -> SignalKind {
        match self {
            Self::Tool(_) => SignalKind::UseTool,
            Self::Signal(signal) => *signal,
        }
    }
}

fn read(payload: &Payload, text: &str) -> Deliverable {
    payload::parse(text)
        .and_then(|value| match payload {
            Payload::Tool(name) => Ok(Deliverable::UseTool { name: name.clone(), input: value }),
            Payload::Signal(signal) => Deliverable::from_json(*signal, &value),
        })
        .unwrap_or_else(|reason| Deliverable::Invalid {
            signal: payload.signal(),
            reason,
            raw_len: text.len(),
        })
}

/// What begins at the start of a line.
enum Look {
    Wait,
    Chat,
    /// A signal. Its payload begins after `len` bytes.
    Signal {
        state: State,
        len: usize,
    },
}

fn look(text: &str, first: bool, end: bool) -> Look {
    // A code fence around a signal belongs to the signal.
    if "```".starts_with(text) {
        return wait(end);
    }
    if !text.starts_with("```") {
        return look_unfenced(text, first, end);
    }
    let fence = text.find('\n').map_or(text.len(), |newline| newline + 1);
    match look_unfenced(&text[fence..], false, end) {
        Look::Signal { state: State::Delimiter { signal, .. }, len } => {
            Look::Signal { state: State::Delimiter { signal, fences: 1 }, len: fence + len }
        }
        Look::Signal { state: State::ToolName { name, .. }, len } => {
            Look::Signal { state: State::ToolName { name, fences: 1 }, len: fence + len }
        }
        undecided_or_chat => undecided_or_chat,
    }
}

fn look_unfenced(text: &str, first: bool, end: bool) -> Look {
    for signal in SignalKind::ALL {
        let keyword = signal.keyword();
        if signal == SignalKind::ReadyToCreate && !first {
            continue;
        }
        let Some(after) = text.strip_prefix(keyword) else {
            if keyword.starts_with(text) {
                return wait(end);
            }
            continue;
        };
        if signal == SignalKind::UseTool {
            return tool_name(after, end, keyword.len());
        }
        return match delimiter(after) {
            Delimiter::Wait => wait(end),
            Delimiter::No => Look::Chat,
            Delimiter::After(len) => Look::Signal {
                state: match signal {
                    SignalKind::ReadyToCreate => State::KeyValues,
                    _ => State::Delimiter { signal, fences: 0 },
                },
                len: keyword.len() + len,
            },
        };
    }
    Look::Chat
}

/// Text that can't become a signal any more is chat.
fn wait(end: bool) -> Look {
    if end { Look::Chat } else { Look::Wait }
}

enum Delimiter {
    Wait,
    No,
    After(usize),
}

/// Whether the next non-blank line begins with `---`.
fn delimiter(after_keyword: &str) -> Delimiter {
    let rest = after_keyword.trim_start();
    let skipped = after_keyword.len() - rest.len();
    if rest.is_empty() {
        return Delimiter::Wait;
    }
    if !after_keyword[..skipped].contains('\n') {
        return Delimiter::No;
    }
    match rest.strip_prefix("---") {
        Some(_) => Delimiter::After(skipped + 3),
        None if "---".starts_with(rest) => Delimiter::Wait,
        None => Delimiter::No,
    }
}

/// `: name`, alone on its line.
fn tool_name(after_keyword: &str, end: bool, keyword_len: usize) -> Look {
    let (line, whole) = match after_keyword.find('\n') {
        Some(newline) => (&after_keyword[..=newline], true),
        None => (after_keyword, end),
    };
    let Some(name) = line.strip_prefix(':') else {
        return if line.is_empty() && !end { Look::Wait } else { Look::Chat };
    };
    let name = name.trim();
    let possible = name.len() <= 64 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    match (possible, whole) {
        (false, _) => Look::Chat,
        (true, false) => Look::Wait,
        (true, true) if name.is_empty() => Look::Chat,
        (true, true) => Look::Signal {
            state: State::ToolName { name: name.to_owned(), fences: 0 },
            len: keyword_len + line.len(),
        },
    }
}

/// Where the next signal begins, after the first line.
fn next_signal(text: &str) -> Option<usize> {
    text.match_indices('\n')
        .map(|(newline, _)| newline + 1)
        .find(|&start| matches!(look(&text[start..], false, true), Look::Signal { .. }))
}

/// How much of `text` closes the payload before it: its code fences, and the rest of the line if that is blank. `None`
/// if that is not decided yet.
fn close(text: &str, fences: usize, end: bool) -> Option<usize> {
    let mut len = 0;
    for _ in 0..fences {
        let rest = text[len..].trim_start();
        if let Some(after) = rest.strip_prefix("```") {
            len = text.len() - after.len();
        } else if "```".starts_with(rest) && !end {
            return None;
        } else {
            // Other text follows. It is chat, and so is a fence after it.
            break;
        }
    }
    let rest = text[len..].trim_start_matches([' ', '\t', '\r']);
    match rest.chars().next() {
        Some('\n') => Some(text.len() - rest.len() + 1),
        None if !end => None,
        _ => Some(len),
    }
}

/// The key–value lines after `READY_TO_CREATE` and `---`, and their length in bytes including the line that closes
/// them: the end of their own code fence, or a second `---`. The next signal also closes them.
fn key_values(text: &str) -> (&str, usize) {
    let limit = next_signal(text).unwrap_or(text.len());
    let begin = limit - text[..limit].trim_start().len();
    let fenced = text[begin..limit].starts_with("```");
    let closes = |line: &str| line.trim_end() == "---" || (fenced && line.starts_with("```"));
    let mut end = begin;
    for (index, line) in text[begin..limit].split_inclusive('\n').enumerate() {
        if index > 0 && closes(line) {
            return (&text[begin..end], end + line.len());
        }
        end += line.len();
    }
    (&text[begin..limit], limit)
}
