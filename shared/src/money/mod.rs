//! Ceilings: what an owner, an agent, an action and a run may cost.

pub mod ceilings;
