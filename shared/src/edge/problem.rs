//! The answer to an error: a problem document of RFC 9457.
//!
//! A problem says what the caller can do about it. Internal causes are logged once, here, under the request's id, and
//! never sent.

use axum::Json;
use axum::response::{IntoResponse, Response};
use domain::validate::{FieldError, FieldErrors};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use serde_json::Value;

use crate::error::{Error, Row};
use crate::request::{current_request_id, is_for_openai_client};

/// The body of every error answer (`application/problem+json`).
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Problem {
    /// Always `about:blank`; `code` tells the kind of error.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The status in words.
    #[schema(example = "Not Found")]
    pub title: String,
    #[schema(example = 404)]
    pub status: u16,
    /// A stable code for programs.
    #[schema(example = "not_found")]
    pub code: &'static str,
    /// A sentence for people.
    #[schema(example = "there is no such agent")]
    pub detail: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// Name this id when you ask for help. It is also in `x-request-id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Each invalid field, and what is wrong with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// For conflicts: the current state. If the plan includes no more: the plan, the limit, and when it begins again. If
    /// a scope is missing: the `needed` one, and the one that the credentials have. If the account is being deleted: the
    /// `receipt_id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub current: Option<Value>,
    /// Only on paths below `/v1/`: the same error, as OpenAI clients read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<OpenAiError>,
}

/// An error in the form of the OpenAI API.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct OpenAiError {
    /// A sentence for people.
    pub message: String,
    /// The kind of error, by the names of OpenAI.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// A stable code for programs, as in the problem.
    pub code: &'static str,
    /// The first invalid field.
    pub param: Option<String>,
}

impl From<&Error> for OpenAiError {
    fn from(error: &Error) -> Self {
        let kind = match error.status() {
            StatusCode::UNAUTHORIZED => "authentication_error",
            StatusCode::FORBIDDEN => "permission_error",
            StatusCode::PAYMENT_REQUIRED => "insufficient_quota",
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            status if status.is_server_error() => "server_error",
            _ => "invalid_request_error",
        };
        let param = match error {
            Error::Invalid(FieldErrors(errors)) => errors.first().map(|error| error.field.clone()),
            _ => None,
        };
        Self { message: error.detail(), kind, code: error.code(), param }
    }
}

impl Error {
    /// The problem to send.
    #[must_use]
    pub fn problem(&self, request_id: Option<String>) -> Problem {
        let Row { status, code, retryable, .. } = self.row();
        Problem {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("Error").to_owned(),
            status: status.as_u16(),
            code,
            detail: self.detail(),
            retryable,
            request_id,
            errors: match self {
                Self::Invalid(FieldErrors(errors)) => errors.clone(),
                _ => Vec::new(),
            },
            current: match self {
                Self::Conflict { current, .. } => current.clone(),
                Self::QuotaExceeded(exceeded) => serde_json::to_value(exceeded).ok(),
                Self::ScopeMissing { needed, held } => {
                    Some(serde_json::json!({ "needed": needed, "held": held }))
                }
                Self::AccountDeleted { receipt } => Some(serde_json::json!({ "receipt_id": receipt })),
                Self::RunFailed { code, .. } => Some(serde_json::json!({ "error_code": code })),
                _ => None,
            },
            error: is_for_openai_client().then(|| OpenAiError::from(self)),
        }
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let Row { status, retry_after_seconds, code, .. } = self.row();
        if status.is_server_error() {
            tracing::error!(code, cause = %self.causes(), "request failed");
        }
        let mut response = (status, Json(self.problem(current_request_id()))).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(seconds) = retry_after_seconds {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
