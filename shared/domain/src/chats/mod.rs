//! Conversations.

pub mod signals;
