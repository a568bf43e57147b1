//! The lowest floor: facts that every other module may use. It uses no other module of this crate.

pub mod limits;
pub mod request;
