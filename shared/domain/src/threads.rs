//! Which conversation a message belongs to.

use crate::ids::{ActionId, ChatId};

/// The conversation that a message belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thread {
    Chat(ChatId),
    /// The conversation about an action, by people and by its runs.
    Action(ActionId),
}

impl From<ChatId> for Thread {
    fn from(id: ChatId) -> Self {
        Self::Chat(id)
    }
}

impl From<ActionId> for Thread {
    fn from(id: ActionId) -> Self {
        Self::Action(id)
    }
}
