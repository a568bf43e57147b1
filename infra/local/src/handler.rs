//! Handlers of HTTP requests, which arrive through a port or from this process.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use futures::future::BoxFuture;
use http::{Request, Response};
use tower::ServiceExt;

/// Ends the connection without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the connection ends here")]
pub struct Hangup;

pub type Reply = Result<Response<Body>, Hangup>;

/// Answers requests. Clones share the state.
#[derive(Clone)]
pub struct Handler(Arc<dyn Fn(Request<Body>) -> BoxFuture<'static, Reply> + Send + Sync>);

impl Handler {
    pub fn new<F>(answer: impl Fn(Request<Body>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Reply> + Send + 'static,
    {
        Self(Arc::new(move |request| Box::pin(answer(request))))
    }

    pub fn call(&self, request: Request<Body>) -> BoxFuture<'static, Reply> {
        self.0(request)
    }
}

impl From<Router> for Handler {
    fn from(router: Router) -> Self {
        Self::new(move |request| {
            let answer = router.clone().oneshot(request);
            async move { answer.await.map_err(|never: Infallible| match never {}) }
        })
    }
}

impl std::fmt::Debug for Handler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Handler")
    }
}
