//! The demo model: a server on loopback with the Anthropic wire format. It follows plain rules, so that all of
//! Lamplighter can be tried without an account or a key.
//!
//! It is not a language model, and it says so. `ask` reads a request, `rules` decides the answer (`reply`), `content` writes
//! deliverables, `memory` what is remembered, `documents` how living documents are kept, `intent` finds out what a sentence wants, `when`
//! reads times with the zones of `places`, `commands` finds out what is wanted of an action that exists, `setup` sets an agent up,
//! `first_action` does so from one sentence, `theme_turn` reads what a turn about a theme has done, `theme_agent` edits themes, and `server` handles HTTP, with
//! plausible usage. Everything except the server is pure, and a new server gives the same answer to the same request.

mod ask;
mod commands;
mod content;
mod documents;
mod first_action;
mod intent;
mod memory;
mod places;
mod reply;
mod rules;
mod server;
mod setup;
mod theme_agent;
mod theme_turn;
mod when;

pub use server::{DemoModel, DemoSettings};
