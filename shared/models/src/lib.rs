//! Calls of models over HTTP.
//!
//! A call uses four layers, each in its own file. A pure codec implements a provider's format ([`anthropic`],
//! [`openai`], [`responses`], [`google`], [`bedrock`]; [`xai`] uses two of them). `call` sends a request, reads its events under time limits, and contains
//! the only retry loop.
//! `retry` decides when to retry. [`embeddings`] turns texts into vectors. [`routing`] chooses the models. [`breakers`] says which of them fail. [`gateway`] is the one way to call them.
//!
//! Dropping a stream closes its connection, so a cancelled turn stops causing costs.

pub mod anthropic;
mod aws;
pub mod bedrock;
pub mod breakers;
mod breakpoints;
mod cache;
pub mod call;
pub mod embeddings;
pub mod gateway;
pub mod google;
pub mod openai;
pub mod responses;
mod retry;
pub mod routing;
mod settings;
pub mod strict;
pub mod xai;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod hard_cases;
#[cfg(test)]
mod image_tests;
#[cfg(test)]
mod sample;

use domain::models::prices::EmbeddingModel;
use domain::models::{ModelError, ModelEvent, ModelId, ModelRequest, Provider, SamplingParameter};
use futures::future::BoxFuture;
use futures::stream::BoxStream;

pub use breakers::BreakerChange;
pub use call::{Endpoint, InvalidEndpoint, ModelLimits};
pub use embeddings::Embedded;
pub use openai::FIRST_MODEL;
pub use retry::Retry;
pub use routing::{Candidate, Embedder, Models, OwnerModels, Route};
pub use settings::{Addresses, BedrockConfig, Canary, ModelsConfig, ServerConfig, ServerOfOwner};

/// A streamed reply. It ends after `Finished`, or after the first error.
pub type EventStream = BoxStream<'static, Result<ModelEvent, ModelError>>;

/// The vectors of texts, in the future.
pub type Embedding = BoxFuture<'static, Result<Embedded, ModelError>>;

/// A provider's models, behind one endpoint.
pub trait Model: Send + Sync {
    fn provider(&self) -> Provider;

    /// Returns a stream that starts the call when it is first polled. Failures before the first event are retried if
    /// that may help. After the requester has received an event, nothing is retried.
    fn stream(&self, model: &ModelId, request: &ModelRequest) -> EventStream;

    /// Asks the provider for its list of models, which costs nothing. `None` if it has no such list.
    ///
    /// # Errors
    /// In the future: why there was no list. [`ModelError::Authentication`] says that the provider does not accept the key.
    fn list(&self) -> Option<BoxFuture<'static, Result<(), ModelError>>> {
        None
    }

    /// The parameters of [`ModelRequest::sampling`] that it sends to all of its models. Others are left out, because some models refuse
    /// them.
    fn samples(&self) -> &'static [SamplingParameter] {
        &[]
    }

    /// Turns texts into vectors. `None` if the provider has no model for it.
    fn embed(&self, _: &'static EmbeddingModel, _: Vec<String>) -> Option<Embedding> {
        None
    }
}
