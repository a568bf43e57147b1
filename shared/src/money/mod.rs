//! What an owner, an agent, an action and a run may cost, and what a plan includes.

pub mod alerts;
pub mod ceilings;
pub mod plans;
pub mod quota;
