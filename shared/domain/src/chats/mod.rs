//! Conversations: their messages, the summary of the oldest ones, the deliverables of a reply, and the deliverables that wait for a person's approval.

pub mod conversation;
pub mod draft_lines;
pub mod proposal;
pub mod signals;
pub mod summary;
pub(crate) mod told_by_platform;

pub use crate::threads::Thread;
pub use conversation::{Chat, ChatMessage};
pub use proposal::{Proposal, ProposalBody};
pub use summary::Summary;
