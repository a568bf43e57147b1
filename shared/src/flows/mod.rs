//! What the functions do: load, let the domain decide, perform.

pub mod agents;
pub mod edit;
pub mod proposals;
pub mod run_view;
