//! The executors and the sweep: what is due is found, sent, claimed and run.

pub mod backlog;
pub mod clock;
pub mod execute;
pub mod places;
pub mod restart;
pub mod route;
pub mod sweep;
mod waiting;
pub mod wake;
