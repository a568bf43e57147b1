//! A call of the agent loop, with parsed arguments.

use serde_json::{Value, json};

use super::ToolDef;
use super::actions::{ChangeAction, CommandAction, QueryActions};
use super::arguments::parse;
use super::assets::{QueryAssets, ReadAsset, SaveOutput};
use super::documents::{ReadDocument, SyncDocumentation};
use super::messages::ReadMessages;
use super::notes::{Note, NothingNew};
use super::practices::QueryPractice;
use super::questions::AskPerson;
use super::results::ReadResult;
use super::runs::ExplainOwnAction;
use crate::assets::NewAsset;
use crate::chats::signals::Deliverable;

/// A call of a model.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolCall {
    QueryActions(QueryActions),
    QueryAssets(QueryAssets),
    ReadAsset(ReadAsset),
    /// The loop performs it itself.
    ReadResult(ReadResult),
    /// `generate_asset`, `generate_actions` and `ready_to_create`: the same as the signals with these names. Never
    /// [`Deliverable::Invalid`].
    Deliver(Deliverable),
    /// Checked against the limits of an asset.
    SaveOutput(NewAsset),
    AskPerson(AskPerson),
    /// Not yet checked against the action.
    ChangeAction(Box<ChangeAction>),
    /// Not yet checked against the action.
    CommandAction(CommandAction),
    /// Not yet checked against the limits of a notebook.
    Note(Note),
    NothingNew(NothingNew),
    ReadMessages(ReadMessages),
    QueryPractice(QueryPractice),
    ExplainAction(ExplainOwnAction),
    ReadDocument(ReadDocument),
    SyncDocumentation(SyncDocumentation),
    /// Not yet parsed: the area that performs it reads the arguments.
    OfArea(&'static ToolDef, Value),
}

impl ToolCall {
    /// Parses the arguments of a call of a tool of [`LOOP`](super::LOOP), [`OWN`](super::OWN) or [`DOCUMENTS`](super::DOCUMENTS). Unknown fields are ignored.
    ///
    /// # Errors
    /// A sentence for the model: which argument is wrong and what it should be.
    pub fn parse(tool: &'static ToolDef, input: &Value) -> Result<Self, String> {
        // If no argument is needed, some models send null.
        let input = if input.is_null() { &json!({}) } else { input };
        let call = match tool.name {
            "query_actions" => parse(input).map(Self::QueryActions),
            "query_assets" => parse(input).map(Self::QueryAssets),
            "read_asset" => parse(input).map(Self::ReadAsset),
            "read_result" => parse(input).map(Self::ReadResult),
            "generate_asset" | "generate_actions" | "ready_to_create" => deliverable(tool.name, input),
            "save_output" => parse::<SaveOutput>(input).map(|output| Self::SaveOutput(output.into())),
            "ask_person" => parse(input).map(Self::AskPerson),
            "change_action" => ChangeAction::parse(input).map(Box::new).map(Self::ChangeAction),
            "command_action" => parse(input).map(Self::CommandAction),
            "note" => parse(input).map(Self::Note),
            "nothing_new" => parse(input).map(Self::NothingNew),
            "read_messages" => parse(input).map(Self::ReadMessages),
            "query_practice" => parse(input).map(Self::QueryPractice),
            "explain_action" => parse(input).map(Self::ExplainAction),
            "read_document" => parse(input).map(Self::ReadDocument),
            "sync_documentation" => parse(input).map(Self::SyncDocumentation),
            _ if super::THEME.contains(&tool) || super::HELPERS.contains(&tool) => {
                Ok(Self::OfArea(tool, input.clone()))
            }
            _ => Err("it is not available here".to_owned()),
        };
        call.map_err(|reason| format!("The call of {} was not made: {reason}.", tool.name))
    }
}

/// The arguments of a tool that has the same meaning as the signal with its name.
fn deliverable(tool: &str, input: &Value) -> Result<ToolCall, String> {
    match Deliverable::from_tool_call(tool, input) {
        Some(Deliverable::Invalid { reason, .. }) => Err(reason),
        Some(deliverable) => Ok(ToolCall::Deliver(deliverable)),
        None => Err("it delivers nothing".to_owned()),
    }
}
