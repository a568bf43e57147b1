//! The shell: everything that does I/O.
//!
//! A function crate declares a [`function::Function`]. [`lambda`] runs it with the Lambda Runtime API, and
//! `infra/local` runs the same value in one process. A handler extracts, calls and wraps: [`extract`] parses the
//! request; [`flows`] load, let `domain` decide, and store; and [`problem`] turns every error into an RFC 9457 answer.
//! There is only one storage path: [`store::Store`] on DynamoDB and [`blobs::Blobs`] on S3, through the AWS SDKs, also
//! locally.

pub mod accept;
pub mod agent_loop;
pub mod archive;
pub mod aws;
mod aws_keys;
pub mod base;
pub mod blobs;
pub mod bus;
pub mod ceilings;
pub mod clock;
pub mod compute;
pub mod config;
pub mod context;
pub mod cors;
pub mod deletions;
pub mod due_queue;
pub mod extract;
pub mod flows;
pub mod function;
#[cfg(test)]
mod growth;
pub mod guard;
pub mod http;
pub mod https;
pub mod idempotency;
pub mod keyed_locks;
pub mod lambda;
pub mod live_runs;
pub mod logging;
pub mod metrics;
pub mod model_choice;
pub mod model_keys;
pub mod models;
pub mod outside;
pub mod page;
pub mod problem;
pub mod provider_keys;
pub mod query;
pub mod queues;
pub mod rates;
pub mod reach;
pub mod respond;
pub mod routes;
mod shutdown;
pub mod store;
pub mod stream;
pub mod themes;

pub use context::Cx;
pub use problem::{Error, Result};
