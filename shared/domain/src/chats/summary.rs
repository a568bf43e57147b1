//! What becomes of the oldest messages of a long conversation.
//!
//! A model gets the newest messages whole. If they exceed [`MAX_HISTORY`] or [`MAX_HISTORY_BYTES`], the oldest ones are cut in
//! one bite until three quarters of the limit remain. So the beginning of what a model gets stays the same for many turns, and
//! the provider can cache it. A [`Summary`] replaces what was cut. The messages stay stored.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::conversation::{ChatMessage, begins_a_turn, block_bytes};
use crate::ids::{MessageId, RunId};
use crate::models::{Block, Role};
use crate::validate::FieldErrors;

/// The most messages of a conversation that a model gets whole.
pub const MAX_HISTORY: usize = 200;
/// The most bytes of these messages.
pub const MAX_HISTORY_BYTES: usize = 240 * 1024;
/// The longest text of a summary, in bytes.
pub const MAX_SUMMARY: usize = 6_000;

/// The most bytes of messages that the writer of a summary gets.
const MAX_SHOWN: usize = 160_000;
/// The most bytes of one of these messages.
const MAX_ROW: usize = 16_000;
/// Even in a long list, each message has this many bytes.
const MIN_ROW: usize = 200;

/// Who wrote a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SummaryBy {
    Model,
    /// No model could be asked: the beginnings of the messages.
    Program,
}

/// The summary of the oldest messages of a conversation. A model gets it in place of these messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ConversationSummary)]
pub struct Summary {
    /// The first message that it covers.
    pub first: MessageId,
    /// The last message that it covers.
    pub up_to: MessageId,
    /// How many messages it covers. Calls of tools and their results are messages, too.
    pub count: u64,
    /// At most 6,000 bytes.
    pub text: String,
    /// Who wrote it.
    pub by: SummaryBy,
    /// The run that wrote it.
    pub run_id: RunId,
    pub created_at: Timestamp,
}

impl Summary {
    /// Whether it is about the conversation since its last reset.
    #[must_use]
    pub fn is_after(&self, reset_after: Option<MessageId>) -> bool {
        reset_after.is_none_or(|last| self.first > last)
    }

    /// Checks the limits of a summary, wherever it comes from.
    ///
    /// # Errors
    /// Every invalid field with its limit.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        if self.text.len() > MAX_SUMMARY {
            errors.add("text", format!("must be at most {MAX_SUMMARY} bytes, is {}", self.text.len()));
        }
        if self.up_to < self.first {
            errors.add("up_to", "must not be before `first`");
        }
        errors.into_result(())
    }
}

/// Who wrote a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    Person,
    Agent,
    /// The results of calls.
    Tool,
}

impl Speaker {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Agent => "agent",
            Self::Tool => "tool",
        }
    }
}

/// A message in words, perhaps shortened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub id: MessageId,
    pub at: Timestamp,
    pub from: Speaker,
    pub text: String,
    /// The bytes that are missing at the end.
    pub more: usize,
}

impl Row {
    /// At most `max` bytes of a message.
    #[must_use]
    pub fn of(message: &ChatMessage, max: usize) -> Self {
        let mut text = in_words(message);
        let cut = text.floor_char_boundary(max);
        let more = text.len() - cut;
        text.truncate(cut);
        Self { id: message.message_id, at: message.created_at, from: speaker(message), text, more }
    }
}

/// Who wrote this message.
#[must_use]
pub fn speaker(message: &ChatMessage) -> Speaker {
    match message.role {
        Role::Assistant => Speaker::Agent,
        Role::User if begins_a_turn(message) => Speaker::Person,
        Role::User => Speaker::Tool,
    }
}

/// A message as a text: also its calls, their results, and that it has images.
#[must_use]
pub fn in_words(message: &ChatMessage) -> String {
    let words = |block: &Block| match block {
        Block::Text { text } => Some(text.clone()),
        Block::Image(_) => Some("(an image)".to_owned()),
        Block::ToolUse { name, input, .. } => Some(format!("(called {name} with {input})")),
        Block::ToolResult { content, .. } => Some(content.clone()),
        Block::Native { .. } => None,
    };
    message.content.iter().filter_map(words).collect::<Vec<_>>().join("\n")
}

/// Where the messages begin that a model still gets: 0 if they are within the limits. Otherwise at most three quarters of each
/// limit remain, and the first of them is a person's. The newest turn always remains.
#[must_use]
pub fn begin(messages: &[ChatMessage], max: usize, max_bytes: usize) -> usize {
    let bytes = |message: &ChatMessage| message.content.iter().map(block_bytes).sum::<usize>();
    if messages.len() <= max && messages.iter().map(bytes).sum::<usize>() <= max_bytes {
        return 0;
    }
    let (keep, keep_bytes) = (max - max / 4, max_bytes - max_bytes / 4);
    let (mut kept, mut start) = (0, None);
    for (at, message) in messages.iter().enumerate().rev() {
        kept += bytes(message);
        if start.is_some() && (messages.len() - at > keep || kept > keep_bytes) {
            break;
        }
        if begins_a_turn(message) {
            start = Some(at);
        }
    }
    start.unwrap_or(0)
}

/// Messages that are to be cut, with the summary of those before them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    pub old: Option<Summary>,
    /// Oldest first.
    rows: Vec<Row>,
    count: u64,
    first: MessageId,
    up_to: MessageId,
    bytes: usize,
}

impl Cut {
    /// Begins with the newest message that is cut.
    #[must_use]
    pub fn from_newest(old: Option<Summary>, newest: &ChatMessage) -> Self {
        let (first, up_to) = (newest.message_id, newest.message_id);
        let mut cut = Self { old, rows: Vec::new(), count: 0, first, up_to, bytes: 0 };
        cut.add_older(newest);
        cut
    }

    /// Adds the message before those that were added. Of a long list, only the newest messages keep their texts.
    pub fn add_older(&mut self, message: &ChatMessage) {
        self.count += 1;
        self.first = message.message_id;
        let max = if self.bytes < MAX_SHOWN { MAX_ROW } else { MIN_ROW };
        if self.rows.len() * MIN_ROW < MAX_SHOWN {
            let row = Row::of(message, max);
            self.bytes += row.text.len();
            // Reversed by `rows`.
            self.rows.push(row);
        }
    }

    /// The messages, oldest first, and how many older ones have no text here.
    pub fn rows(&self) -> (impl Iterator<Item = &Row>, u64) {
        let without = self.count.saturating_sub(self.rows.len() as u64);
        (self.rows.iter().rev(), without)
    }

    /// How many bytes of each message fit into the request for a summary.
    #[must_use]
    pub fn bytes_of_each(&self) -> usize {
        if self.bytes <= MAX_SHOWN { MAX_ROW } else { (MAX_SHOWN / self.rows.len().max(1)).max(MIN_ROW) }
    }

    /// How many messages are cut.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// What replaces the messages. `text` is what a model wrote. If it is not usable, the program writes the summary.
    #[must_use]
    pub fn summary(&self, text: Option<&str>, run_id: RunId, now: Timestamp) -> Summary {
        let (text, by) = match text.and_then(usable) {
            Some(text) => (text, SummaryBy::Model),
            None => (self.by_program(), SummaryBy::Program),
        };
        let (first, before) = self.old.as_ref().map_or((self.first, 0), |old| (old.first, old.count));
        Summary { first, up_to: self.up_to, count: before + self.count, text, by, run_id, created_at: now }
    }

    /// The beginning of the old summary and of each message: most of it of the person's.
    fn by_program(&self) -> String {
        /// Room for the last line.
        const REST: usize = 40;
        let mut text = String::new();
        if let Some(old) = &self.old {
            text.push_str(&beginning(&old.text, MAX_SUMMARY / 2));
            text.push('\n');
        }
        let left = MAX_SUMMARY - REST - text.len();
        let said = |from: Speaker| {
            self.rows.iter().rev().filter(move |row| row.from == from && !row.text.trim().is_empty())
        };
        let (people, agents) = (said(Speaker::Person).count(), said(Speaker::Agent).count());
        let of_person = (left * 3 / 4 / people.max(1)).clamp(60, 800);
        let of_agent = (left / 4 / agents.max(1)).clamp(30, 200);
        let mut omitted = 0;
        for row in self.rows.iter().rev().filter(|row| !row.text.trim().is_empty()) {
            let (who, max) = match row.from {
                Speaker::Person => ("person", of_person),
                Speaker::Agent => ("agent", of_agent),
                Speaker::Tool => continue,
            };
            let words: String = row.text.split_whitespace().collect::<Vec<_>>().join(" ");
            let line = format!("- {who}: ");
            let line = format!("{line}{}\n", beginning(&words, max - line.len() - 1));
            if omitted > 0 || text.len() + line.len() > MAX_SUMMARY - REST {
                omitted += 1;
            } else {
                text.push_str(&line);
            }
        }
        if omitted > 0 {
            text.push_str(&format!("({omitted} more messages)"));
        }
        match text.trim() {
            "" => "(messages without text)".to_owned(),
            text => text.to_owned(),
        }
    }
}

/// At most `max` bytes, with a mark at the end if something is missing.
fn beginning(text: &str, max: usize) -> String {
    const MARK: &str = "…";
    if text.len() <= max {
        return text.to_owned();
    }
    format!("{}{MARK}", &text[..text.floor_char_boundary(max.saturating_sub(MARK.len()))])
}

/// What a model wrote as a summary, without control characters and at most [`MAX_SUMMARY`] bytes. `None` if nothing is left.
fn usable(text: &str) -> Option<String> {
    let text = text.trim();
    let text = &text[..text.floor_char_boundary(MAX_SUMMARY)];
    let text: String = text.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()).collect();
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::memory::told::Told;

    fn message(number: u128, role: Role, content: Vec<Block>) -> ChatMessage {
        ChatMessage {
            author: None,
            message_id: MessageId::from_uuid(Uuid::from_u128(number)),
            role,
            content,
            created_at: Timestamp::UNIX_EPOCH,
            run_id: None,
            told: Told::default(),
        }
    }

    fn id(number: u128) -> MessageId {
        MessageId::from_uuid(Uuid::from_u128(number))
    }

    /// The messages of a turn with so many calls, each text with so many bytes.
    fn turn(messages: &mut Vec<ChatMessage>, calls: usize, bytes: usize) {
        let mut add = |role, block| messages.push(message(messages.len() as u128 + 1, role, vec![block]));
        add(Role::User, Block::text("q".repeat(bytes)));
        for at in 0..calls {
            let id = format!("c{at}");
            add(Role::Assistant, Block::ToolUse { id: id.clone(), name: "look".into(), input: json!({}) });
            let content = "r".repeat(bytes);
            add(Role::User, Block::ToolResult { tool_use_id: id, content, is_error: false });
        }
        add(Role::Assistant, Block::text("a".repeat(bytes)));
    }

    fn cut_of(messages: &[ChatMessage], old: Option<Summary>) -> Cut {
        let (newest, older) = messages.split_last().unwrap();
        let mut cut = Cut::from_newest(old, newest);
        older.iter().rev().for_each(|message| cut.add_older(message));
        cut
    }

    fn summary_of(messages: &[ChatMessage], text: Option<&str>) -> Summary {
        cut_of(messages, None).summary(text, RunId::from_uuid(Uuid::nil()), Timestamp::UNIX_EPOCH)
    }

    proptest! {
        /// As a conversation grows, what a model gets stays within the limits, begins with a person, and moves in bites.
        #[test]
        fn the_window_moves_in_bites(
            turns in prop::collection::vec((0usize..4, 0usize..300), 1..120), max in 20usize..60, max_bytes in 4_000usize..12_000,
        ) {
            let mut messages = Vec::new();
            let (mut start, mut moved_at) = (0, None::<usize>);
            for (calls, bytes) in turns {
                let begins = messages.len();
                turn(&mut messages, calls, bytes);
                // Before the turn's first call, its question is the newest message.
                let asked = &messages[start..=begins];
                let moves = begin(asked, max, max_bytes);
                let kept = &asked[moves..];
                let size = |messages: &[ChatMessage]| -> usize {
                    messages.iter().flat_map(|message| &message.content).map(block_bytes).sum()
                };
                prop_assert!(begins_a_turn(&kept[0]));
                if moves > 0 {
                    prop_assert!(kept.len() <= max - max / 4 && size(kept) <= max_bytes - max_bytes / 4);
                    // At least a quarter of a limit was cut, or was added since the last cut.
                    let added = moved_at.map_or(asked.len(), |at| begins - at);
                    prop_assert!(added + 10 >= max / 4 || size(&messages[start..=begins]) > max_bytes);
                    moved_at = Some(begins);
                    start += moves;
                } else {
                    prop_assert!(kept.len() <= max && size(kept) <= max_bytes);
                }
            }
        }

        /// Whatever was said, a summary has at most its bytes and names its messages.
        #[test]
        fn a_summary_is_bounded(
            texts in prop::collection::vec("\\PC{0,400}", 1..80), old in prop::option::of("\\PC{0,9000}"), by in prop::option::of("\\PC{0,9000}"),
        ) {
            let messages: Vec<_> = texts.iter().enumerate().map(|(at, text)| {
                let role = if at.is_multiple_of(2) { Role::User } else { Role::Assistant };
                message(at as u128 + 10, role, vec![Block::text(text.as_str())])
            }).collect();
            let old = old.map(|old| summary_of(&[message(1, Role::User, vec![])], Some(&old)));
            let cut = cut_of(&messages, old.clone());
            let summary = cut.summary(by.as_deref(), RunId::from_uuid(Uuid::nil()), Timestamp::UNIX_EPOCH);
            prop_assert_eq!(summary.check(), Ok(()));
            prop_assert!(!summary.text.trim().is_empty());
            prop_assert_eq!(summary.first, if old.is_some() { id(1) } else { id(10) });
            prop_assert_eq!(summary.up_to, id(9 + texts.len() as u128));
            prop_assert_eq!(summary.count, texts.len() as u64 + u64::from(old.is_some()));
        }
    }

    #[test]
    fn the_newest_turn_stays_even_if_it_is_larger_than_the_limit() {
        let mut messages = Vec::new();
        turn(&mut messages, 0, 10);
        turn(&mut messages, 0, 10);
        messages.push(message(9, Role::User, vec![Block::text("x".repeat(1_000))]));
        assert_eq!(begin(&messages, 200, 500), 4);
        assert_eq!(begin(&messages[4..], 200, 500), 0);
        // A conversation that no person has begun has nothing to cut.
        assert_eq!(begin(&messages[1..2], 0, 0), 0);
    }

    #[test]
    fn a_program_writes_what_no_model_writes() {
        let mut messages = Vec::new();
        turn(&mut messages, 1, 20);
        let summary = summary_of(&messages, None);
        assert_eq!(summary.by, SummaryBy::Program);
        let call = "- agent: (called look with {})\n";
        let expected = format!("- person: {}\n{call}- agent: {}", "q".repeat(20), "a".repeat(20));
        assert_eq!(summary.text, expected, "the results of tools are left out");
        for useless in ["", " \n ", "\u{0}\u{7}"] {
            assert_eq!(summary_of(&messages, Some(useless)).by, SummaryBy::Program, "{useless:?}");
        }
        let long = summary_of(&messages, Some(&"é".repeat(500_000)));
        assert_eq!((long.by, long.text.len()), (SummaryBy::Model, MAX_SUMMARY));
        assert_eq!(summary_of(&[message(1, Role::User, vec![])], None).text, "(messages without text)");
    }

    #[test]
    fn a_long_conversation_is_read_from_its_end() {
        let messages: Vec<_> =
            (0..5_000).map(|at| message(at + 1, Role::User, vec![Block::text("x".repeat(1_000))])).collect();
        let cut = cut_of(&messages, None);
        let (rows, without) = cut.rows();
        assert_eq!((rows.count() as u64 + without, without > 4_000), (5_000, true));
        assert!(cut.bytes < 2 * MAX_SHOWN && cut.bytes_of_each() >= MIN_ROW);
        let summary = cut.summary(None, RunId::from_uuid(Uuid::nil()), Timestamp::UNIX_EPOCH);
        assert_eq!((summary.count, summary.first, summary.up_to), (5_000, id(1), id(5_000)));
    }

    #[test]
    fn a_reset_voids_a_summary() {
        let summary = summary_of(
            &[message(3, Role::User, vec![Block::text("a")]), message(5, Role::User, vec![])],
            Some("s"),
        );
        assert!(summary.is_after(None) && summary.is_after(Some(id(2))));
        // Also if only its first messages were reset.
        assert!(!summary.is_after(Some(id(3))) && !summary.is_after(Some(id(9))));
    }
}
