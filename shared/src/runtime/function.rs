//! The declaration of a function crate: its name, its trigger and its handler. The Lambda runner, the local server, the
//! OpenAPI document and the template's test all use this declaration.

use std::time::Duration;

use axum::Router;
use futures::future::BoxFuture;
use jiff::Timestamp;
use models::{InvalidEndpoint, Models, ModelsConfig};
use serde_json::Value;

use crate::context::{Areas, Cx};
use crate::error::Result;

pub use crate::request::Invocation;

/// One Lambda function.
#[derive(Clone, Copy)]
pub struct Function {
    /// The name of the folder, the crate and the Lambda, and the dimension of its metrics.
    pub name: &'static str,
    pub trigger: Trigger,
    /// [`Models::from_config`], or [`Models::none`] for a function that calls no models. The binary of such a function
    /// does not contain the code that calls models.
    pub models: ModelsFrom,
    /// The areas above this crate that the function knows.
    pub areas: Areas,
}

pub type ModelsFrom = fn(&ModelsConfig) -> std::result::Result<Models, InvalidEndpoint>;

/// What triggers a function.
#[derive(Clone, Copy)]
pub enum Trigger {
    /// Requests through API Gateway. A streaming function uses the streaming runner for all its routes.
    Http { routes: fn() -> Router<Cx>, streaming: bool },
    /// A timer, at a fixed interval. `newest`: of a timer that fires at fixed times of the day, the newest of them at a moment.
    Timer {
        every: Duration,
        newest: Option<fn(Timestamp) -> Timestamp>,
        handler: fn(Cx, Invocation) -> BoxFuture<'static, Result<Value>>,
    },
    /// A queue of JSON messages. The handler is called once per message.
    Queue { handler: fn(Cx, Invocation, Value) -> BoxFuture<'static, Result<()>> },
    /// A queue of S3 notifications. The handler is called once per uploaded object. The object's key determines the
    /// meaning; most keys have none.
    Upload { handler: fn(Cx, Invocation, Uploaded) -> BoxFuture<'static, Result<()>> },
    /// API Gateway's question about the caller of a request.
    Authorizer { handler: fn(Cx, Value) -> BoxFuture<'static, Result<Value>> },
}

/// An object was uploaded to the bucket. The event may come twice, late and out of order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uploaded {
    /// The real key. Notifications encode it.
    pub key: String,
    /// Of two events of one key, the newer one has the greater text. Both have the same length.
    pub sequencer: String,
}
