//! Keeps everybody out of an account that is being deleted.

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::Method;

use crate::context::Cx;
use crate::edge::extract::Caller;
use crate::error::Error;

/// The paths that belong to no account. Without authentication, their requests have an owner like all others.
const OF_NOBODY: [&str; 5] = ["/", "/docs", "/console/{file}", "/health", "/openapi.json"];

/// The middleware: while an account is being deleted, its owner can only ask for the deletion again, and read its receipt.
pub async fn layer(State(cx): State<Cx>, request: Request, next: Next) -> Response {
    let Some(Caller { owner, .. }) = request.extensions().get::<Caller>() else {
        return next.run(request).await;
    };
    let path = request.extensions().get::<MatchedPath>().map_or("-", MatchedPath::as_str);
    if OF_NOBODY.contains(&path)
        || path.starts_with("/receipts/")
        || path.starts_with("/unsubscribe/")
        || path.starts_with("/answers/")
        || path.starts_with("/hooks/github/")
        || path.starts_with("/hooks/telegram/")
        || (path == "/account" && request.method() == Method::DELETE)
    {
        return next.run(request).await;
    }
    match cx.deletions.of(&cx.store, owner, cx.clock.now()).await {
        Ok(None) => next.run(request).await,
        Ok(Some(receipt)) => Error::AccountDeleted { receipt }.into_response(),
        Err(error) => Error::from(error).into_response(),
    }
}
