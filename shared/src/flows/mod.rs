//! What the functions do: load, let the domain decide, perform.

pub mod proposals;
pub mod run_view;
