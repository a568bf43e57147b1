//! Conversations: their messages, the deliverables of a reply, and the deliverables that wait for a person's approval.

pub mod conversation;
pub mod proposal;
pub mod signals;
pub mod thread;

pub use conversation::{Chat, ChatMessage};
pub use proposal::{Proposal, ProposalBody};
pub use thread::Thread;
