//! What a function crate declares: its name, what wakes it, and its handler. The Lambda runner, the local server,
//! the OpenAPI document and the template's test all read this one declaration.

use std::time::Duration;

use axum::Router;
use futures::future::BoxFuture;
use http::request::Parts;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::context::Cx;
use crate::models::ModelsConfig;
use crate::models::{InvalidEndpoint, Models};
use crate::problem::Result;

/// One Lambda function.
#[derive(Clone, Copy)]
pub struct Function {
    /// The folder's, the crate's and the Lambda's name, and the metrics' dimension.
    pub name: &'static str,
    pub trigger: Trigger,
    /// [`Models::from_config`], or [`Models::none`] for a function that calls none: what calls them is left out of its
    /// binary.
    pub models: ModelsFrom,
}

pub type ModelsFrom = fn(&ModelsConfig) -> std::result::Result<Models, InvalidEndpoint>;

/// What wakes a function.
#[derive(Clone, Copy)]
pub enum Trigger {
    /// Requests through API Gateway. A streaming function answers through the streaming runner, all its routes alike.
    Http { routes: fn() -> Router<Cx>, streaming: bool },
    /// A clock: called every so often.
    Timer { every: Duration, handler: fn(Cx, Invocation) -> BoxFuture<'static, Result<Value>> },
    /// A queue of JSON messages: called once for each.
    Queue { handler: fn(Cx, Invocation, Value) -> BoxFuture<'static, Result<()>> },
    /// A queue of S3 notifications: called once for each object that was put. The object's key says what it means; most
    /// keys mean nothing.
    Upload { handler: fn(Cx, Invocation, Uploaded) -> BoxFuture<'static, Result<()>> },
    /// API Gateway asks whose request it is.
    Authorizer { handler: fn(Cx, Value) -> BoxFuture<'static, Result<Value>> },
}

/// An object was put into the bucket. It may be told of twice, late and out of order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uploaded {
    /// As it is, not as notifications encode it.
    pub key: String,
    /// Of two events of one key, the one with the greater text (of the same length) is newer.
    pub sequencer: String,
}

/// What a handler may know of the call it serves.
#[derive(Clone, Copy, Debug)]
pub struct Invocation {
    /// When the environment will be stopped: work that is not done by then is lost.
    pub deadline: Timestamp,
}

/// How long before its end an invocation's answer ends.
const ANSWERS_BEFORE: SignedDuration = SignedDuration::from_secs(10);

impl Invocation {
    /// The invocation that a request came with. A server that is not a Lambda has no deadline.
    #[must_use]
    pub fn of(parts: &Parts) -> Self {
        parts.extensions.get().copied().unwrap_or(Self { deadline: Timestamp::MAX })
    }

    /// When an answer must end that follows a run.
    #[must_use]
    pub fn answers_until(&self) -> Timestamp {
        self.deadline - ANSWERS_BEFORE
    }
}
