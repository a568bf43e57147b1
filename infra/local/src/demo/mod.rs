//! The demo model: a server on loopback that speaks the Anthropic wire format and follows plain rules, so that all of
//! Lamplighter can be tried without an account or a key.
//!
//! It is no language model and says so. `ask` reads a request, `rules` says what is answered, `content` writes what is
//! delivered, `intent` finds out what a sentence wants, and `server` puts it on the wire with plausible usage. All but
//! the server is pure, and the same request to a fresh server gets the same answer.

mod ask;
mod content;
mod intent;
mod rules;
mod server;

pub use server::{DemoModel, DemoSettings};
