//! The routes of MCP: one path. Only POST does something.

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::context::Workflow;
use domain::ids::ProjectId;
use domain::tools::ToolSets;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use shared::edge::extract::{Caller, Once, Query, is_json};
use shared::edge::problem::Problem;
use shared::flows::projects::documents::DocumentName;
use shared::request::limits::MAX_BODY_BYTES;
use shared::{Cx, Error, Result};
use utoipa::IntoParams;

use crate::params;
use crate::server::Server;

shared::routes!(call, listen, end);

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Target {
    /// The project of calls that name none. Default `default`.
    #[serde(rename = "project_id", alias = "project", default = "default_project")]
    #[param(value_type = Option<ProjectId>)]
    project: ProjectId,
    /// The workflow of calls that name none. Default `default`.
    #[serde(default)]
    #[param(value_type = Option<Workflow>)]
    workflow: Workflow,
    /// The sets of tools that are listed and can be called, with commas: `context`, `logs`, `themes`, `agents`, `runs`,
    /// `projects` or `all`. Default `all`.
    #[serde(default)]
    #[param(value_type = Option<String>, example = "context,agents")]
    tools: ToolSets,
}

fn default_project() -> ProjectId {
    ProjectId::DEFAULT
}

/// Send a message of the Model Context Protocol
///
/// Streamable HTTP without sessions. The response to a request is its JSON-RPC response. Tools that only read need the
/// scope `read`; the others need `write`, and are not listed without it.
#[utoipa::path(
    post, path = "/mcp", tag = "mcp", operation_id = "call_mcp",
    params(
        Target,
        ("MCP-Protocol-Version" = Option<String>, Header, description = "The agreed protocol version"),
    ),
    request_body(content = Object, content_type = "application/json"),
    responses(
        (status = 200, description = "A JSON-RPC response", body = Object),
        (status = 202, description = "The notification was accepted"),
        (status = 400, description = "A JSON-RPC error: -32700 if the body is not JSON, -32600 if it is not one message. A problem document \
            if a parameter or a header is invalid", content((Object = "application/json"), (Problem = "application/problem+json"))),
    ),
)]
async fn call(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Query(Target { project, workflow, tools }): Query<Target>,
    request: Request,
) -> Result<Response> {
    let server = Server::new(cx, caller, once, DocumentName { project, workflow }, tools);
    let (parts, body) = request.into_parts();
    let is_typed = is_json(&parts.headers);
    let body = to_bytes(body, MAX_BODY_BYTES).await.map_err(|_| Error::Malformed {
        status: StatusCode::PAYLOAD_TOO_LARGE,
        code: "payload_too_large",
        message: format!("the body may have at most {MAX_BODY_BYTES} bytes"),
    })?;
    if is_typed && let Some(refusal) = params::refusal(&body) {
        return Ok(axum::Json(refusal).into_response());
    }
    let answer = server.answer(Request::from_parts(parts, Body::from(body.clone()))).await;
    // The SDK says "unsupported media type" to every body that it can't read.
    if is_typed && answer.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        return Ok(malformed(&body));
    }
    Ok(as_problem(answer).await)
}

/// What JSON-RPC answers to a body that is not one message. The id is `null`, because none could be read.
fn malformed(body: &[u8]) -> Response {
    let (code, message) = match serde_json::from_slice::<IgnoredAny>(body) {
        Err(error) => (-32700, format!("parse error: {error}")),
        Ok(_) => (
            -32600,
            "invalid request: the body must be one JSON-RPC 2.0 message, an object with each key once, whose id is a text or a whole number; \
             batches are not supported"
                .to_owned(),
        ),
    };
    let error = json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message}});
    (StatusCode::BAD_REQUEST, axum::Json(error)).into_response()
}

/// The SDK refuses an invalid message with plain text. This turns the text into a problem document.
async fn as_problem(response: Response) -> Response {
    const MAX_TEXT: usize = 4_096;
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_text = kind.is_none_or(|kind| kind.starts_with("text/plain"));
    let status = response.status();
    if !status.is_client_error() || !is_text {
        return response;
    }
    let text = axum::body::to_bytes(response.into_body(), MAX_TEXT).await.unwrap_or_default();
    let code = match status {
        StatusCode::NOT_ACCEPTABLE => "not_acceptable",
        StatusCode::PAYLOAD_TOO_LARGE => "payload_too_large",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "unsupported_media_type",
        _ => "malformed_message",
    };
    Error::Malformed { status, code, message: String::from_utf8_lossy(&text).trim().to_owned() }
        .into_response()
}

/// 405: the server sends nothing on its own
///
/// Always 405. Every response belongs to a request.
#[utoipa::path(
    get, path = "/mcp", tag = "mcp", operation_id = "listen_to_mcp",
    responses((status = 405, description = "There is no stream to listen to")),
)]
async fn listen(_: Caller) -> Result<Response> {
    Ok(only_post("there is no stream to listen to: every response belongs to a request"))
}

/// 405: there are no sessions
///
/// Always 405. The server has no sessions.
#[utoipa::path(
    delete, path = "/mcp", tag = "mcp", operation_id = "end_mcp_session",
    responses((status = 405, description = "There are no sessions")),
)]
async fn end(_: Caller) -> Result<Response> {
    Ok(only_post("there is no session to end"))
}

fn only_post(message: &str) -> Response {
    let refusal = Error::Malformed {
        status: StatusCode::METHOD_NOT_ALLOWED,
        code: "method_not_allowed",
        message: message.to_owned(),
    };
    let mut response = refusal.into_response();
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
    response
}
