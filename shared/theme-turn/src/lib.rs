//! The rules of a turn of the theme agent.
//!
//! A person says what should change in a shop's theme. Everything here is a pure function or a plain type:
//!
//! - [`classify`]: what a message asks for, and how large it is
//! - [`data`]: what a client sends with a message
//! - [`helpers`]: other models that do a part of a turn
//! - [`lead`]: when a turn escalates, and which calls it may not make
//! - [`limits`]: what a turn of this size may use
//! - [`prompts`]: what the model is told
//! - [`small`]: what a small model is asked where the rules are not sure, and what its answer may change

pub mod classify;
pub mod data;
pub mod helpers;
pub mod lead;
pub mod limits;
pub mod prompts;
pub mod small;
mod steps;
