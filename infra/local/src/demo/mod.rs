//! The demo model: a server on loopback with the Anthropic wire format. It follows plain rules, so that all of
//! Lamplighter can be tried without an account or a key.
//!
//! It is not a language model, and it says so. `ask` reads a request, `rules` decides the answer, `content` writes
//! deliverables, `intent` finds out what a sentence wants, and `server` handles HTTP, with plausible usage. Everything
//! except the server is pure, and a new server gives the same answer to the same request.

mod ask;
mod content;
mod intent;
mod rules;
mod server;

pub use server::{DemoModel, DemoSettings};
