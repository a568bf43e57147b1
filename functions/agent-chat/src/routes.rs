//! The routes of agent-chat.

use crate::{chats, proposals, runs, turn};

shared::routes!(in chats, proposals, turn, runs);
