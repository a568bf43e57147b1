//! The shell: everything that does I/O.
//!
//! A function crate declares a [`runtime::function::Function`]. [`runtime`] runs it with the Lambda Runtime API, and
//! `infra/local` runs the same value in one process. A handler extracts, calls and wraps: [`edge`] parses the
//! request; [`flows`] load, let `domain` decide, and store; and [`edge::problem`] turns every error into an RFC 9457 answer.
//! There is only one storage path: [`store::Store`] on DynamoDB and [`blobs::Blobs`] on S3, through the AWS SDKs, also
//! locally.

pub mod agent_loop;
pub mod area;
pub mod aws;
pub mod blobs;
pub mod config;
pub mod context;
pub mod edge;
pub mod error;
pub mod flows;
#[cfg(test)]
mod growth_tests;
pub mod model_choice;
pub mod money;
pub mod process;
pub mod provider_keys;
pub mod request;
pub mod runtime;
pub mod stopped;
pub mod store;

pub use context::Cx;
pub use error::{Error, Result};
