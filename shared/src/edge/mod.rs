//! The edge of a function: what happens to a request before its handler runs, and to the answer afterwards.

pub mod accept;
pub mod answer_page;
pub mod app;
pub mod conditional;
pub mod cors;
pub mod deletions;
pub mod extract;
pub mod guard;
pub mod idempotency;
pub mod problem;
pub mod query;
pub mod rates;
pub mod respond;
pub mod routes;
pub mod stream;
