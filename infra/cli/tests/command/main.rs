//! The program itself, with a server that checks requests strictly.

#![allow(clippy::unwrap_used, reason = "a test's helpers panic as its body does")]

mod bed;
mod control;
mod docs;
mod documents;
mod exports;
mod flags;
mod hooks;
mod keys;
mod memory;
mod notices;
mod server;
mod settings;
mod spool;
mod starts;
mod status;
mod switch;
mod templates;
mod theme;
mod trust;
mod wrap;
