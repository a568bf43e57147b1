//! Conversations: what was said, what a reply delivers, and the deliverables that wait for a person's yes.

pub mod conversation;
pub mod proposal;
pub mod signals;

pub use conversation::{Chat, ChatMessage};
pub use proposal::{Proposal, ProposalBody};
