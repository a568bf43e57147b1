//! The executors and the sweep: what is due is found, sent, claimed and run.

mod backlog;
pub mod clock;
pub mod drain;
pub mod execute;
pub mod free_leases;
pub mod places;
mod preflight;
pub mod route;
pub mod sweep;
pub mod wake;
