//! Memory: what is remembered of conversations, and how it is kept short and true.
//!
//! Once a day, a model reads the conversations of the day and says what it has learned: a [`Block`] of [`Fact`]s for each conversation.
//! A program rejects facts that the conversation does not contain. Once a week, the facts of the week go into the long-term
//! memory ([`LongTerm`]), which stays within [`MAX_LINES`] and [`MAX_BYTES`]. Work that was delegated or scheduled gets a [`Card`].
//!
//! Everything that is shown is built from facts: blocks, the long-term memory and the summaries of weeks name the facts that each
//! line comes from. So a fact that is deleted or corrected disappears from all of them, and a [`tombstone::Tombstone`] keeps it away.

mod dates;
mod grounds;
pub mod learn;
#[cfg(test)]
mod learn_tests;
pub mod markdown;
pub mod openclaw;
pub mod part;
pub mod recall;
pub mod session;
pub mod tidy;
#[cfg(test)]
mod tidy_tests;
pub mod told;
pub mod tombstone;
pub mod when;
mod words;

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::ToSchema;

use crate::ids::{ActionId, BlockId, CardId, ChatId, FactId, RunId, TidyId};
use crate::log::SessionId;
use crate::threads::Thread;
use crate::validate::FieldErrors;

/// The longest fact or line of the long-term memory, in bytes.
pub const MAX_FACT: usize = 500;
/// The most messages that a fact names as its sources.
pub const MAX_SOURCES: usize = 20;
/// The fewest facts that a model should give of a conversation.
pub const MIN_FACTS: usize = 3;
/// The most facts of a block.
pub const MAX_FACTS: usize = 8;
/// The most lines of the long-term memory, with its headings and empty lines.
pub const MAX_LINES: usize = 80;
/// The most bytes of the long-term memory as Markdown.
pub const MAX_BYTES: usize = 5_000;
/// The longest title of a card, in bytes.
pub const MAX_CARD_TITLE: usize = 200;
/// The longest name of a namespace, in bytes.
pub const MAX_NAMESPACE: usize = 64;

/// What messages come from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    Chat(ChatId),
    /// The conversation about an action.
    Action(ActionId),
    /// A run that a schedule began.
    Run(RunId),
    /// A session of another program, by the name that the program gave it.
    Outside(SessionId),
}

/// The prefix of the names of outside sessions.
const OUTSIDE: &str = "ext:";

impl From<Thread> for Source {
    fn from(thread: Thread) -> Self {
        match thread {
            Thread::Chat(id) => Self::Chat(id),
            Thread::Action(id) => Self::Action(id),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chat(id) => id.fmt(f),
            Self::Action(id) => id.fmt(f),
            Self::Run(id) => id.fmt(f),
            Self::Outside(id) => write!(f, "{OUTSIDE}{id}"),
        }
    }
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid =
            || "must be the id of a chat, an action or a run, or `ext:` and the name of a session".to_owned();
        if let Some(name) = text.strip_prefix(OUTSIDE) {
            return name.parse().map(Self::Outside).map_err(|_| invalid());
        }
        let known = (text.parse().map(Self::Chat).ok())
            .or_else(|| text.parse().map(Self::Action).ok())
            .or_else(|| text.parse().map(Self::Run).ok());
        known.ok_or_else(invalid)
    }
}

impl Serialize for Source {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Source {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The messages of a source that a fact comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Quoted {
    /// The id of a chat, an action or a run, or `ext:` and the name of an outside session.
    #[schema(value_type = String, example = "cht_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c")]
    pub source: Source,
    /// The ids of the messages, at most 20.
    pub message_ids: Vec<String>,
}

/// Who says that a fact is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = FactOrigin)]
pub enum Origin {
    /// A model has found it in what the person wrote here.
    Conversation,
    /// A model has found it in an outside session. It is not used until a person confirms it.
    Outside,
    /// The person wrote it into memory.
    Person,
}

/// What has become of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum FactState {
    Current,
    /// It waits until a person confirms it. It is found by a search, and nothing else uses it.
    Unconfirmed,
    /// It was true until another fact replaced it.
    Corrected {
        /// The fact that replaces it.
        by: FactId,
        /// The day of the correction.
        #[schema(value_type = String, format = Date)]
        on: Date,
    },
}

/// One thing that memory knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Fact {
    /// The id of the fact.
    pub fact_id: FactId,
    /// At most 500 bytes, in one line.
    pub text: String,
    /// Where it comes from. Empty if the person wrote it into memory.
    #[serde(default)]
    pub sources: Vec<Quoted>,
    /// Who says that it is true.
    pub origin: Origin,
    #[serde(flatten)]
    pub state: FactState,
    /// The day on which it was learned, in the person's time zone.
    #[schema(value_type = String, format = Date)]
    pub date: Date,
    /// When the newest of its messages was written.
    pub said_at: Timestamp,
    /// The block that it belongs to. `None` if the person wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_id: Option<BlockId>,
    /// The fact that it corrects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrects: Option<FactId>,
    /// The namespace of its source. Empty for the person's own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The last day on which a model was told it or a search has found it, in the person's time zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Date)]
    pub used_on: Option<Date>,
    pub created_at: Timestamp,
}

impl Fact {
    /// Whether it may be told to a model as true.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.state == FactState::Current
    }

    /// Whether a person has written it as a line of the long-term memory, so that it stands nowhere else.
    #[must_use]
    pub fn is_only_a_line(&self) -> bool {
        self.origin == Origin::Person
            && self.sources.is_empty()
            && self.block_id.is_none()
            && self.corrects.is_none()
    }
}

/// What one synchronisation has learned from one conversation. Its id is derived from the conversation and its fingerprint, so the
/// same state of a conversation has at most one block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = MemoryBlock)]
pub struct Block {
    pub block_id: BlockId,
    /// The day that it belongs to, in the person's time zone.
    #[schema(value_type = String, format = Date)]
    pub date: Date,
    #[schema(value_type = String, example = "cht_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c")]
    pub source: Source,
    /// What the conversation was about.
    pub title: String,
    /// The fingerprint of the conversation.
    pub fingerprint: String,
    /// Its facts, in order.
    pub facts: Vec<FactId>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    pub created_at: Timestamp,
    /// The clean-up that has archived it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived_by: Option<TidyId>,
}

/// The result of work that was delegated or scheduled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = MemoryCard)]
pub struct Card {
    /// The id of the card.
    pub card_id: CardId,
    /// The day of the work, in the person's time zone.
    #[schema(value_type = String, format = Date)]
    pub date: Date,
    /// The time of its end: `HH:MM`.
    pub time: String,
    /// What the work was, at most 200 bytes.
    pub title: String,
    #[serde(flatten)]
    pub text: CardText,
    /// What it comes from. `None` if a client wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "run_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c")]
    pub source: Option<Source>,
    /// What it belongs to. Absent for the person's own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    pub created_at: Timestamp,
}

/// The texts of a card, each at most 500 bytes. Those that are empty are not shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = MemoryCardText)]
pub struct CardText {
    /// What should be reached.
    pub goal: String,
    /// What was not to be touched.
    pub boundary: String,
    /// How the result is judged.
    pub acceptance: String,
    /// What was done.
    pub actions: String,
    /// What it has made: names or links.
    pub artifacts: String,
    /// How it ended.
    pub status: String,
    /// What is left to do.
    pub next: String,
}

/// A line of the long-term memory or of a summary of a week.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = MemoryLine)]
pub struct Line {
    /// At most 500 bytes.
    pub text: String,
    /// The facts that it comes from, at least one.
    pub facts: Vec<FactId>,
}

/// A part of the long-term memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = MemorySection)]
pub struct Section {
    /// Its heading. Empty for lines before the first heading.
    pub title: String,
    /// The person has written it. No clean-up changes it.
    #[serde(default)]
    pub by_hand: bool,
    pub lines: Vec<Line>,
}

/// The long-term memory. Each change makes a new version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = LongTermMemory)]
pub struct LongTerm {
    pub sections: Vec<Section>,
}

/// The summary of a week.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = MemoryWeek)]
pub struct Week {
    /// The Monday that the week begins with.
    #[schema(value_type = String, format = Date)]
    pub monday: Date,
    pub lines: Vec<Line>,
    pub tidy_id: TidyId,
    pub created_at: Timestamp,
}

impl Fact {
    /// Checks the limits of every fact, wherever it comes from.
    ///
    /// # Errors
    /// Every invalid field with its limit.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        check_text(&mut errors, "text", &self.text, 1);
        let messages: usize = self.sources.iter().map(|quoted| quoted.message_ids.len()).sum();
        errors.most("sources", messages as u64, MAX_SOURCES as u64);
        check_namespace(&mut errors, &self.namespace);
        errors.into_result(())
    }
}

/// The title of a block whose conversation has a deleted fact: a better one may say what the fact said.
pub const UNTITLED: &str = "Conversation";

impl Block {
    /// # Errors
    /// Every invalid field with its limit.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        check_text(&mut errors, "title", &self.title, 0);
        check_text(&mut errors, "fingerprint", &self.fingerprint, 1);
        errors.most("facts", self.facts.len() as u64, MAX_FACTS as u64);
        check_namespace(&mut errors, &self.namespace);
        errors.into_result(())
    }
}

impl Card {
    /// # Errors
    /// Every invalid field with its limit.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        if jiff::civil::Time::strptime("%H:%M", &self.time).is_err() || self.time.len() != 5 {
            errors.add("time", "must be a time such as 09:30");
        }
        if self.title.len() > MAX_CARD_TITLE || self.title.trim().is_empty() {
            errors.add("title", format!("must be 1 to {MAX_CARD_TITLE} bytes, is {}", self.title.len()));
        }
        for (name, text) in self.text.named() {
            check_text(&mut errors, name, text, 0);
        }
        check_namespace(&mut errors, &self.namespace);
        errors.into_result(())
    }
}

impl CardText {
    /// The texts with their names, in the order in which they are shown.
    #[must_use]
    pub fn named(&self) -> [(&'static str, &str); 7] {
        [
            ("goal", &self.goal),
            ("boundary", &self.boundary),
            ("acceptance", &self.acceptance),
            ("actions", &self.actions),
            ("artifacts", &self.artifacts),
            ("status", &self.status),
            ("next", &self.next),
        ]
    }
}

impl Line {
    fn check(&self, errors: &mut FieldErrors, field: &str) {
        check_text(errors, &format!("{field}.text"), &self.text, 1);
        if self.facts.is_empty() {
            errors.add(format!("{field}.facts"), "must name at least one fact");
        }
    }
}

impl LongTerm {
    /// # Errors
    /// Every invalid field with its limit.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        for (i, section) in self.sections.iter().enumerate() {
            check_text(&mut errors, &format!("sections[{i}].title"), &section.title, 0);
            for (j, line) in section.lines.iter().enumerate() {
                line.check(&mut errors, &format!("sections[{i}].lines[{j}]"));
            }
        }
        let lines: usize = self.sections.iter().map(|section| section.lines.len() + 1).sum();
        errors.most("sections", lines as u64, 2 * MAX_LINES as u64);
        errors.into_result(())
    }

    /// Without the lines that come from this fact, and without sections that are empty then.
    #[must_use]
    pub fn without(&self, fact: FactId) -> Self {
        let keep = |section: &Section| {
            let lines: Vec<Line> =
                section.lines.iter().filter(|line| !line.facts.contains(&fact)).cloned().collect();
            (!lines.is_empty() || section.lines.is_empty()).then(|| Section { lines, ..section.clone() })
        };
        Self { sections: self.sections.iter().filter_map(keep).collect() }
    }

    /// All facts that its lines come from.
    pub fn facts(&self) -> impl Iterator<Item = FactId> {
        self.sections.iter().flat_map(|section| &section.lines).flat_map(|line| line.facts.iter().copied())
    }
}

impl Week {
    /// # Errors
    /// Every invalid field with its limit.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        errors.most("lines", self.lines.len() as u64, MAX_LINES as u64);
        for (i, line) in self.lines.iter().enumerate() {
            line.check(&mut errors, &format!("lines[{i}]"));
        }
        errors.into_result(())
    }
}

/// A text of one line.
fn check_text(errors: &mut FieldErrors, field: &str, text: &str, min: usize) {
    if text.trim().len() < min || text.len() > MAX_FACT {
        errors.add(field, format!("must be {min} to {MAX_FACT} bytes, is {}", text.len()));
    } else if text.contains(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) {
        errors.add(field, "must be one line without control characters");
    }
}

/// A namespace is empty or a name.
pub fn check_namespace(errors: &mut FieldErrors, namespace: &str) {
    let is_letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'/');
    if namespace.len() > MAX_NAMESPACE || !namespace.bytes().all(is_letter) {
        errors.add(
            "namespace",
            format!("must be at most {MAX_NAMESPACE} ASCII letters, digits, `-`, `_`, `.` and `/`"),
        );
    }
}
