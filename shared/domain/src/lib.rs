//! The rules of the business.
//!
//! Everything here is a pure function or a plain type: no I/O, no clock, no environment, no async. Time, ids and
//! randomness are arguments, so a table test or a property test can cover every rule. This crate defines *what*
//! Lamplighter is. The `shared` crate connects it to the outside world.
//!
//! - [`ids`]: the kinds of id, and the owner that every key begins with
//! - [`agents`], [`assets`], [`chats`], [`actions`]: the things a person owns, and their states
//! - [`history`]: who has changed an action or an agent, and what the change did
//! - [`work`]: the parts of an action that chats and tools also name
//! - [`schedule`]: when an action is due, in any time zone, across clock changes
//! - [`background`]: when work is sent, who may do it, how often it is tried, and the record of each background job
//! - [`prompts`]: the prompts for models
//! - [`runs`]: a turn or an occurrence, and the events that clients follow
//! - [`tools`]: what a model may call, with schemas, effects and the grants they need
//! - [`agent_loop`]: what a conversation between a model and tools does next
//! - [`models`]: provider-independent requests, replies, usage and prices
//! - [`context`]: what a coding assistant planned, did and found
//! - [`projects`]: a theme and what is known about the work on it
//! - [`practices`]: the habits that a person tracks, and their streaks
//! - [`memory`]: what is remembered of conversations, and how it is kept short and true
//! - [`log`]: the prompts and answers of a coding assistant's agents
//! - [`accounts`]: API keys
//! - [`watch`]: what an action watches, and whether it has changed
//! - [`secrets`]: what calls carry that nobody may see, and the signatures of requests
//! - [`watched`]: schedules that something else runs, and whether it ran
//! - [`watchdog`]: what is looked at every two hours, and when an alert is raised
//! - [`notices`]: who is told, when, and in which words
//! - [`reach`]: which servers may be reached outside
//! - [`text`]: texts and names: how they are checked, quoted, compared and explained

pub mod accounts;
pub mod actions;
pub mod agent_loop;
pub mod agents;
pub mod assets;
pub mod background;
pub mod ceilings;
pub mod chats;
pub mod context;
pub mod history;
pub mod ids;
pub mod living;
pub mod log;
pub mod memory;
pub mod models;
pub mod notices;
pub mod practices;
pub mod projects;
pub mod prompts;
pub mod reach;
pub mod runs;
pub mod schedule;
pub mod secrets;
pub mod text;
pub mod threads;
pub mod tools;
pub mod validate;
pub mod watch;
pub mod watchdog;
pub mod watched;
pub mod work;

/// Bytes as lower-case hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes whatever is written to it");
        text
    })
}
