//! The platform through its HTTP surface, all in one binary: one link, and tests that share nothing.

mod actions;
mod agents;
mod sweep;
