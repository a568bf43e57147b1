//! The routes of agent-chat.

use crate::{actions, chats, completions, proposals, runs, turn};

shared::routes!(in actions, chats, completions, proposals, turn, runs);
