//! One error type for everything that can go wrong in a request, with the status and the code of each error.
//! [`crate::edge::problem`] makes answers of them.

use std::panic::AssertUnwindSafe;

use domain::accounts::plans::Plan;
use domain::accounts::scopes::Scope;
use domain::ids::ReceiptId;
use domain::validate::FieldErrors;
use futures::FutureExt;
use http::StatusCode;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::aws::bus::BusError;
use crate::aws::storage::StorageFailure;
use crate::blobs::BlobError;
use crate::request::path_for_client;
use crate::store::StoreError;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Awaits `call`. A panic in it becomes an error like any other and does not end the process.
pub(crate) async fn caught<T>(call: impl Future<Output = T>) -> Result<T> {
    AssertUnwindSafe(call).catch_unwind().await.map_err(|_| Error::internal("the handler panicked"))
}

/// What a plan does not include.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "limit", rename_all = "snake_case")]
pub enum QuotaExceeded {
    #[error(
        "the plan `{}` includes {requests_per_month} requests a month, and they are used up; the next month begins at {resets_at}",
        plan.name()
    )]
    Requests { plan: Plan, requests_per_month: u32, resets_at: Timestamp },
    #[error("the plan `{}` includes {projects} {}, besides the default project", plan.name(), if *projects == 1 { "project" } else { "projects" })]
    Projects { plan: Plan, projects: u32 },
}

/// All errors of a request.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The input is invalid. It lists every broken rule.
    #[error("the input is not valid: {0}")]
    Invalid(#[from] FieldErrors),
    /// The body can't be parsed as the route's input.
    #[error("the request can't be read: {message}")]
    Malformed { status: StatusCode, code: &'static str, message: String },
    /// It does not exist, or it belongs to somebody else. The answer is the same.
    #[error("there is no such {0}")]
    NotFound(&'static str),
    #[error("no valid credentials: {0}")]
    Unauthenticated(&'static str),
    #[error("not allowed: {0}")]
    Forbidden(&'static str),
    /// The credentials do not have the scope that the call needs.
    #[error("this call needs the scope `{needed}`, and these credentials have `{held}`")]
    ScopeMissing { needed: Scope, held: Scope },
    /// The account is being deleted.
    #[error("this account is being deleted; `GET /receipts/{receipt}` says how far that is")]
    AccountDeleted { receipt: ReceiptId },
    /// The current state forbids it. `current` is that state.
    #[error("{message}")]
    Conflict { code: &'static str, message: String, current: Option<Value> },
    /// An `Idempotency-Key` was used before with another request.
    #[error("this Idempotency-Key was used with another request")]
    IdempotencyMismatch,
    /// A budget limit is reached.
    #[error("{message}")]
    BudgetExceeded { message: String },
    /// The plan includes no more of this.
    #[error("{0}")]
    QuotaExceeded(QuotaExceeded),
    /// Too much work of this kind is running, or this one takes too long.
    #[error("there is no room for more {what} at the moment, or this one took too long; try again")]
    Busy { what: &'static str },
    /// A rate limit is reached.
    #[error(
        "a caller may make {limit} requests of the class `{class}` in a minute; try again in {retry_after_seconds} seconds"
    )]
    TooManyRequests { limit: u32, class: &'static str, retry_after_seconds: u64 },
    /// The requested result is that of a failed run. `retryable` says whether the same call may succeed later.
    #[error("{message}")]
    RunFailed { code: String, message: String, retryable: bool },
    /// A service that is neither ours nor a model did not answer.
    #[error("failed to reach {what}: {cause}")]
    Outside { what: &'static str, cause: String },
    /// The storage of this machine failed.
    #[error("{0}")]
    Storage(StorageFailure),
    #[error("failed to use the table")]
    Store(#[from] StoreError),
    #[error("failed to use the bucket")]
    Blob(#[from] BlobError),
    #[error("failed to publish an event")]
    Bus(#[from] BusError),
    /// A bug or broken data.
    #[error("{0}")]
    Internal(String),
}

/// The code of a request that is refused because the account is stopped.
pub const ACCOUNT_STOPPED: &str = "account_stopped";

/// How an error is answered.
pub(crate) struct Row {
    pub status: StatusCode,
    pub code: &'static str,
    pub retryable: bool,
    pub retry_after_seconds: Option<u64>,
}

impl Error {
    /// A 409 without the current state.
    #[must_use]
    pub fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::Conflict { code, message: message.into(), current: None }
    }

    /// A 409 with the current state.
    #[must_use]
    pub fn conflict_with(code: &'static str, message: impl Into<String>, current: &impl Serialize) -> Self {
        Self::Conflict { code, message: message.into(), current: serde_json::to_value(current).ok() }
    }

    /// A 409: the account was stopped at this time, and nothing begins.
    #[must_use]
    pub fn account_stopped(at: Timestamp) -> Self {
        let start = path_for_client("/account/start");
        let message = format!(
            "the account was stopped at {at}, so nothing begins; POST {start} (`lamplighter start`) starts it again"
        );
        Self::conflict_with(ACCOUNT_STOPPED, message, &json!({ "stopped_at": at }))
    }

    /// Whether this is the refusal of a request of a stopped account.
    #[must_use]
    pub fn is_account_stopped(&self) -> bool {
        matches!(self, Self::Conflict { code: ACCOUNT_STOPPED, .. })
    }

    /// The error for a stored record that can't be read.
    #[must_use]
    pub fn internal(message: impl Into<String>) -> Self {
        Self::Internal(message.into())
    }

    pub(crate) fn row(&self) -> Row {
        let row = |status, code, retryable| Row { status, code, retryable, retry_after_seconds: None };
        match self {
            Self::Invalid(_) => row(StatusCode::BAD_REQUEST, "invalid_input", false),
            Self::Malformed { status, code, .. } => row(*status, code, false),
            Self::NotFound(_) => row(StatusCode::NOT_FOUND, "not_found", false),
            Self::Unauthenticated(_) => row(StatusCode::UNAUTHORIZED, "unauthenticated", false),
            Self::Forbidden(_) => row(StatusCode::FORBIDDEN, "forbidden", false),
            Self::ScopeMissing { .. } => row(StatusCode::FORBIDDEN, "scope_missing", false),
            Self::AccountDeleted { .. } => row(StatusCode::GONE, "account_deleted", false),
            Self::Conflict { code, .. } => row(StatusCode::CONFLICT, code, *code == "idempotency_in_flight"),
            Self::IdempotencyMismatch => row(StatusCode::UNPROCESSABLE_ENTITY, "idempotency_mismatch", false),
            Self::BudgetExceeded { .. } => row(StatusCode::PAYMENT_REQUIRED, "budget_exceeded", false),
            Self::QuotaExceeded(_) => row(StatusCode::PAYMENT_REQUIRED, "quota_exceeded", false),
            Self::TooManyRequests { retry_after_seconds, .. } => Row {
                retry_after_seconds: Some(*retry_after_seconds),
                ..row(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", true)
            },
            Self::Busy { .. } => {
                Row { retry_after_seconds: Some(1), ..row(StatusCode::SERVICE_UNAVAILABLE, "busy", true) }
            }
            Self::RunFailed { retryable: true, .. } => {
                row(StatusCode::SERVICE_UNAVAILABLE, "run_failed", true)
            }
            Self::RunFailed { retryable: false, .. } => row(StatusCode::BAD_GATEWAY, "run_failed", false),
            Self::Storage(failure)
            | Self::Store(StoreError::Storage(failure))
            | Self::Blob(BlobError::Storage(failure)) => match failure {
                StorageFailure::Damaged => row(StatusCode::INTERNAL_SERVER_ERROR, "storage_damaged", false),
                StorageFailure::Full => row(StatusCode::INSUFFICIENT_STORAGE, "storage_full", true),
                StorageFailure::Gone => row(StatusCode::INTERNAL_SERVER_ERROR, "storage_gone", false),
            },
            Self::Store(StoreError::TakenOver) => row(StatusCode::CONFLICT, "idempotency_in_flight", true),
            Self::Store(StoreError::Contended) => Row {
                retry_after_seconds: Some(1),
                ..row(StatusCode::SERVICE_UNAVAILABLE, "contended", true)
            },
            Self::Store(StoreError::Unavailable { .. })
            | Self::Blob(BlobError::Unavailable { .. })
            | Self::Bus(_)
            | Self::Outside { .. } => Row {
                retry_after_seconds: Some(1),
                ..row(StatusCode::SERVICE_UNAVAILABLE, "temporarily_unavailable", true)
            },
            Self::Store(StoreError::Misconfigured { .. }) | Self::Blob(BlobError::Misconfigured { .. }) => {
                row(StatusCode::INTERNAL_SERVER_ERROR, "misconfigured", false)
            }
            Self::Store(StoreError::Corrupt { .. } | StoreError::TooLarge | StoreError::Invalid { .. })
            | Self::Blob(_)
            | Self::Internal(_) => row(StatusCode::INTERNAL_SERVER_ERROR, "internal", false),
        }
    }

    /// The stable code, as in the problem.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.row().code
    }

    /// The status of the answer.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.row().status
    }

    /// The text for the caller. If the error is about the request, it is the message; if the cause is internal, a
    /// general sentence.
    #[must_use]
    pub fn detail(&self) -> String {
        match self {
            Self::Store(
                StoreError::Corrupt { .. }
                | StoreError::TooLarge
                | StoreError::Invalid { .. }
                | StoreError::Misconfigured { .. },
            )
            | Self::Blob(BlobError::Misconfigured { .. })
            | Self::Internal(_) => "an internal error occurred; it was logged with the request_id".to_owned(),
            Self::Store(StoreError::TakenOver) => StoreError::TakenOver.to_string(),
            Self::Store(StoreError::Contended) => {
                "other requests changed the same record at the same time; try again".to_owned()
            }
            Self::Store(StoreError::Storage(failure)) | Self::Blob(BlobError::Storage(failure)) => {
                failure.to_string()
            }
            Self::Store(_) | Self::Blob(_) | Self::Bus(_) | Self::Outside { .. } => {
                "a service that this request needs did not answer; try again".to_owned()
            }
            other => other.to_string(),
        }
    }

    /// The chain of causes, for the log. It is never sent.
    #[must_use]
    pub fn causes(&self) -> String {
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            text.push_str(": ");
            text.push_str(&cause.to_string());
            source = cause.source();
        }
        text
    }
}
