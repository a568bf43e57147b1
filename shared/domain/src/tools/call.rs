//! A call of the agent loop, with parsed arguments.

use super::actions::QueryActions;
use super::assets::{QueryAssets, ReadAsset};
use super::questions::AskPerson;
use crate::actions::ActionChange;
use crate::assets::NewAsset;
use crate::chats::signals::Deliverable;

/// A call of a model.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolCall {
    QueryActions(QueryActions),
    QueryAssets(QueryAssets),
    ReadAsset(ReadAsset),
    /// `generate_asset`, `generate_actions` and `ready_to_create`: the same as the signals with these names. Never
    /// [`Deliverable::Invalid`].
    Deliver(Deliverable),
    /// Checked against the limits of an asset.
    SaveOutput(NewAsset),
    AskPerson(AskPerson),
    /// Not yet checked against the action.
    ChangeAction(ActionChange),
}
