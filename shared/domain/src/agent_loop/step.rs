//! One step of a run: a reply, its calls and their results.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::check::Verdict;
use crate::actions::Reason;
use crate::actions::conditions::Report;
use crate::chats::signals::Deliverable;
use crate::models::{Block, StopReason};
use crate::prompts;
use crate::tools::{
    actions::GENERATE_ACTIONS,
    agents::READY_TO_CREATE,
    assets::{GENERATE_ASSET, SAVE_OUTPUT},
};

/// One step: a reply, and the results of its calls as far as they were made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    pub purpose: Purpose,
    pub reply: Reply,
    pub results: Vec<CallResult>,
}

/// What a step is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    #[default]
    Work,
    /// The reply is the verdict on the outputs.
    Check,
    /// The text is the [`Report`] of a check of the conditions. No model is called for it.
    Conditions,
    /// The text is what a person has said to a run that waited.
    #[serde(rename = "heard")]
    Person,
    /// The text is the summary of messages that are no longer sent. It comes before the first step for work.
    Summary,
    /// The text is what the platform tells a model that stopped too early. No model is called for it.
    Nudge,
}

/// What a model answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Its text as it was, signals and all, with tool calls: what the conversation keeps.
    #[serde(default)]
    pub blocks: Vec<Block>,
    /// The part of it that is chat.
    #[serde(default)]
    pub text: String,
    /// What it asks for: first the signals of its text, then its native calls.
    #[serde(default)]
    pub calls: Vec<Call>,
    #[serde(default)]
    pub stop: StopReason,
}

/// A call of a tool, native or as a signal in the text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The provider's id of a native call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub name: String,
    #[serde(default)]
    pub input: Value,
    /// Why it can't be read. A native call that can't be read is not among the blocks: no result may name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
    /// The model did not make it: text without a call was taken as the output.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub implied: bool,
}

/// What became of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallResult {
    pub content: String,
    #[serde(default)]
    pub is_error: bool,
    pub after: After,
}

/// What follows from a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum After {
    /// Nothing: it was delivered.
    Rest,
    /// The model is told, and goes on.
    Tell,
    /// The model is asked to repair it.
    Repair,
    /// A person is asked, and the run waits.
    Ask(Reason),
    /// The run ends without an output, for this reason.
    NothingNew(String),
}

impl Call {
    /// What a signal asks for, as a call.
    #[must_use]
    pub fn of_signal(deliverable: Deliverable) -> Self {
        let (name, input, invalid) = match deliverable {
            Deliverable::UseTool { name, input } => (name, input, None),
            Deliverable::Asset(asset) => (GENERATE_ASSET.name.to_owned(), json!(asset), None),
            Deliverable::Actions { actions } => {
                (GENERATE_ACTIONS.name.to_owned(), json!({ "actions": actions }), None)
            }
            Deliverable::ReadyToCreate(draft) => (READY_TO_CREATE.name.to_owned(), json!(draft), None),
            Deliverable::Invalid { signal, reason, .. } => {
                (signal.keyword().to_lowercase(), Value::Null, Some(reason))
            }
        };
        Self { id: None, name, input, invalid, implied: false }
    }

    /// The text of a reply without calls, taken as the output of a run.
    #[must_use]
    pub fn implied_output(title: &str, content: &str) -> Self {
        let input = json!({ "title": title, "content": content });
        Self { id: None, name: SAVE_OUTPUT.name.to_owned(), input, invalid: None, implied: true }
    }
}

/// How the result of a call begins that was not made.
pub const NOT_CALLED: &str = "not called: ";

impl CallResult {
    pub fn rest(content: impl Into<String>) -> Self {
        Self { content: content.into(), is_error: false, after: After::Rest }
    }

    pub fn told(content: impl Into<String>) -> Self {
        Self { content: content.into(), is_error: false, after: After::Tell }
    }

    pub fn refused(content: impl Into<String>) -> Self {
        Self { content: content.into(), is_error: true, after: After::Tell }
    }

    /// What a tool has answered, or a sentence that says why it was not called.
    #[must_use]
    pub fn of(answered: Result<String, String>) -> Self {
        answered.map_or_else(Self::refused, Self::told)
    }

    /// The model is asked to make it again.
    #[must_use]
    pub fn repair(reason: &str) -> Self {
        Self { content: prompts::repair(reason), is_error: true, after: After::Repair }
    }

    pub fn asked(content: impl Into<String>, is_error: bool, reason: Reason) -> Self {
        Self { content: content.into(), is_error, after: After::Ask(reason) }
    }

    /// The run ends, because there is nothing to report.
    #[must_use]
    pub fn nothing_new(reason: String) -> Self {
        Self {
            content: "the run ends without an output".to_owned(),
            is_error: false,
            after: After::NothingNew(reason),
        }
    }

    /// Why the run ends without an output.
    #[must_use]
    pub fn nothing_new_because(&self) -> Option<&str> {
        match &self.after {
            After::NothingNew(reason) => Some(reason),
            _ => None,
        }
    }

    /// What a person is asked.
    #[must_use]
    pub const fn asks(&self) -> Option<&Reason> {
        match &self.after {
            After::Ask(reason) => Some(reason),
            _ => None,
        }
    }
}

impl Step {
    /// Whether the model asked for anything itself.
    #[must_use]
    pub fn has_calls(&self) -> bool {
        self.reply.calls.iter().any(|call| !call.implied)
    }

    #[must_use]
    pub fn wants_repair(&self) -> bool {
        self.results.iter().any(|result| result.after == After::Repair)
    }

    /// What is missing, if this is a check of the conditions. A report that can't be read counts as not met.
    pub(super) fn report(&self) -> Option<Report> {
        let unreadable =
            |error| Report { unmet: vec![format!("the check of the conditions can't be read: {error}")] };
        (self.purpose == Purpose::Conditions)
            .then(|| Report::read(&self.reply.text).unwrap_or_else(unreadable))
    }

    /// The verdict, if this is a check that could be read.
    pub(super) fn verdict(&self) -> Option<Verdict> {
        (self.purpose == Purpose::Check).then(|| Verdict::read(&self.reply.text)).flatten()
    }
}
