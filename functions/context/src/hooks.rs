//! The routes for a coding assistant's hooks. They must not disturb the assistant. So every payload gets 200 with an
//! empty body. Only if nothing can be stored does the answer ask for a retry.

use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::StatusCode;
use domain::log::Refusal;
use shared::edge::extract::{Caller, Once, Query};
use shared::flows::logs::hooks::{self, HookQuery, RefusedHooks};
use shared::flows::page::PageQuery;
use shared::{Cx, Error, Result};

shared::routes!(receive, list_refused);

/// Report a hook
///
/// Send the payload that the assistant gives to its hooks: `PreToolUse` and `PostToolUse` of the tools `Task` and
/// `Agent`, and `SubagentStop`. The answer is always 200 with an empty body. Payloads that were not accepted are listed
/// under `/context/hooks/rejected`. The end of an agent whose call was not reported yet is also listed there, and is
/// logged after that report. A payload with a `tool_use_id` is logged once, even if it is sent often.
#[utoipa::path(
    post, path = "/context/hooks", tag = "context", operation_id = "report_hook",
    params(HookQuery),
    request_body(content = Object, content_type = "application/json"),
    responses((status = 200, description = "It was accepted, or kept in the list of refused payloads")),
)]
async fn receive(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
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
        Ok(Query(query)) => hooks::ingest(&cx, &caller.owner, &once, &query, &body).await?,
        Err(error) => {
            hooks::refuse(&cx, &caller.owner, &Refusal::field("query", error.detail()), &body).await?;
        }
    }
    Ok(StatusCode::OK)
}

/// List the hooks of the last 24 hours that were refused, newest first
///
/// Each with the reason, so that errors are noticed.
#[utoipa::path(
    get, path = "/context/hooks/rejected", tag = "context", operation_id = "list_rejected_hooks",
    params(PageQuery),
    responses((status = 200, body = RefusedHooks)),
)]
async fn list_refused(
    State(cx): State<Cx>,
    caller: Caller,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<RefusedHooks>> {
    hooks::refused(&cx, &caller.owner, &page).await.map(axum::Json)
}
