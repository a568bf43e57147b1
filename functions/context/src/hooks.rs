//! Where a coding assistant's hooks report. An assistant must not be disturbed: what it sends is taken with 200 and an
//! empty body, whatever it is; only where nothing can be stored is it told to try again.

use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::StatusCode;
use domain::log::Refusal;
use shared::extract::{Caller, Query};
use shared::flows::logs::hooks::{self, HookQuery, RefusedHooks};
use shared::page::PageQuery;
use shared::respond::Problems;
use shared::{Cx, Error, Result};

shared::routes!(receive, list_refused);

/// Report a hook
///
/// The payload as the assistant gives it to its hooks: `PreToolUse` and `PostToolUse` of the tools `Task` and `Agent`, and
/// `SubagentStop`. Always answered with 200 and an empty body; what was not taken is under `/context/hooks/rejected`, and so
/// is the end of an agent whose call has not been reported yet: it is logged when that is. A payload with a `tool_use_id` is
/// logged once, however often it is sent.
#[utoipa::path(
    post, path = "/context/hooks", tag = "context", operation_id = "report_hook",
    params(
        HookQuery,
        ("Idempotency-Key" = Option<String>, Header, description = "Makes a repeated call act once"),
    ),
    request_body(content = Object, content_type = "application/json"),
    responses((status = 200, description = "It was taken, or kept among what was refused"), Problems),
)]
async fn receive(
    State(cx): State<Cx>,
    caller: Caller,
    query: Result<Query<HookQuery>, Error>,
    body: Result<Bytes, BytesRejection>,
) -> Result<StatusCode> {
    let body = match body {
        Ok(body) => body,
        Err(rejection) => {
            let refusal = Refusal::field("body", rejection.body_text());
            hooks::refuse(&cx, &caller.owner, &refusal, &Bytes::new()).await?;
            return Ok(StatusCode::OK);
        }
    };
    match query {
        Ok(Query(query)) => hooks::ingest(&cx, &caller.owner, &query, &body).await?,
        Err(error) => {
            hooks::refuse(&cx, &caller.owner, &Refusal::field("query", error.detail()), &body).await?;
        }
    }
    Ok(StatusCode::OK)
}

/// List the hooks of the last 24 hours that were refused, newest first
///
/// Each with the reason, so that a fault does not stay unseen.
#[utoipa::path(
    get, path = "/context/hooks/rejected", tag = "context", operation_id = "list_rejected_hooks",
    params(PageQuery),
    responses((status = 200, body = RefusedHooks), Problems),
)]
async fn list_refused(
    State(cx): State<Cx>,
    caller: Caller,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<RefusedHooks>> {
    hooks::refused(&cx, &caller.owner, &page).await.map(axum::Json)
}
