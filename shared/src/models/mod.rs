//! Calls of models over HTTP.
//!
//! A call goes through four layers, each in a file of its own: a codec, pure, that speaks a provider's format
//! ([`anthropic`], [`openai`]); `call`, which sends a request, reads server-sent events under time limits, and is the only
//! loop that tries again; `retry`, which says when; and [`routing`], which says which model a tier is.
//!
//! A stream that is dropped closes its connection, so a cancelled turn stops costing.

pub mod anthropic;
mod call;
pub mod openai;
mod retry;
pub mod routing;
pub mod strict;

#[cfg(test)]
mod fake;

use domain::models::{ModelError, ModelEvent, ModelRequest, Provider};
use futures::stream::BoxStream;

pub use call::{Endpoint, InvalidEndpoint, Limits};
pub use retry::Retry;
pub use routing::{Models, Route};

/// A reply as it comes. It ends after `Finished`, or after the first error.
pub type EventStream = BoxStream<'static, Result<ModelEvent, ModelError>>;

/// A provider's models, behind one endpoint.
pub trait Model: Send + Sync {
    fn provider(&self) -> Provider;

    /// Starts a call once the stream is polled. Failures before the first piece of the reply are retried where that makes
    /// sense; nothing is retried once the caller has seen anything.
    fn stream(&self, request: &ModelRequest) -> EventStream;
}
