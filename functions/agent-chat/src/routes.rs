//! The routes of agent-chat.

use crate::{actions, chats, proposals, runs, turn};

shared::routes!(in actions, chats, proposals, turn, runs);
