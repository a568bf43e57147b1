//! The rules of the business.
//!
//! Everything here is a pure function or a plain type: no I/O, no clock, no environment, no async. Time, ids and
//! randomness are arguments, so every rule can be tested with a table or a property. A newcomer reads here *what*
//! Lamplighter is; the `shared` crate is where it touches the world.
//!
//! - [`ids`]: the kinds of id, and the owner that every key begins with
//! - [`agents`], [`assets`], [`chats`], [`actions`]: the things a person has, and what may become of them
//! - [`schedule`]: when an action is due, in any time zone, across clock changes
//! - [`prompts`]: what models are told
//! - [`runs`]: a turn or an occurrence, and the events by which it is followed
//! - [`tools`]: what a model may call, with schemas, effects and the grants they need
//! - [`models`]: requests, replies, usage and prices, in no provider's dialect
//! - [`context`]: what a coding assistant planned, did and found
//! - [`projects`]: a theme, and what is known of the work on it
//! - [`theme`]: which files and lines of a shop's theme a request is about
//! - [`log`]: what the agents of a coding assistant were asked and what they answered
//! - [`accounts`]: API keys and spending ceilings

pub mod accounts;
pub mod actions;
pub mod agents;
pub mod assets;
pub mod chats;
pub mod context;
pub mod ids;
pub mod log;
pub mod models;
pub mod projects;
pub mod prompts;
pub mod runs;
pub mod schedule;
pub mod theme;
pub mod tools;
pub mod validate;

/// Bytes as lower-case hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes whatever is written to it");
        text
    })
}
