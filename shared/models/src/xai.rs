//! xAI: the Chat Completions format, and the Responses format for requests with tools that xAI runs. Only the latter has them.

use domain::models::{ModelError, ModelId, ModelRequest, Provider};
use futures::future::BoxFuture;

use super::call::Endpoint;
use super::openai::{self, OpenAi};
use super::responses::{self, Responses};
use super::{EventStream, Model};

/// xAI's models.
#[derive(Debug, Clone)]
pub struct Xai {
    chat: OpenAi,
    responses: Responses,
}

impl Xai {
    /// `endpoint` is the base URL including `/v1`.
    #[must_use]
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            chat: OpenAi::new(endpoint.clone(), openai::Dialect::XAI),
            responses: Responses::new(endpoint, responses::Dialect::Xai),
        }
    }
}

impl Model for Xai {
    fn provider(&self) -> Provider {
        Provider::OpenAi
    }

    fn list(&self) -> Option<BoxFuture<'static, Result<(), ModelError>>> {
        self.chat.list()
    }

    fn stream(&self, model: &ModelId, request: &ModelRequest) -> EventStream {
        if request.provider_tools.is_empty() {
            self.chat.stream(model, request)
        } else {
            self.responses.stream(model, request)
        }
    }
}

#[cfg(test)]
#[path = "xai_tests.rs"]
mod tests;
