//! What an action notes of its runs: those that have failed alike, those that were held, and what would make the next one fail.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::ids::RunId;

/// The newest failures of an action, which are equal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Failures {
    /// How many there were in a row. The third one pauses the action.
    #[schema(example = 2)]
    pub times: u32,
    /// The code of the error, as in the error of a run.
    #[schema(example = "model_key_refused")]
    pub code: String,
    /// The text of the error in its normal form: lower case, and `#` for each word with a digit. Empty if a model has written the text.
    #[schema(example = "the provider does not accept the api key")]
    pub cause: String,
    /// The newest of these runs.
    pub run_id: RunId,
    /// When it ended.
    pub at: Timestamp,
}

/// The due times that were held without a break, because a person is asked. No other decision lies between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Held {
    /// How many there are, at least 1.
    #[schema(example = 1440)]
    pub times: u32,
    /// The first of them. Its record counts all.
    pub first_due_at: Timestamp,
    /// The last of them.
    pub last_due_at: Timestamp,
}

/// What the newest check before a due time has found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Preflight {
    /// When it was checked.
    pub checked_at: Timestamp,
    /// The due time whose run will fail.
    pub due_at: Timestamp,
    /// Why. At least one.
    pub problems: Vec<PreflightProblem>,
}

/// What would make a run fail, or wait for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PreflightProblem {
    /// For programs.
    pub code: PreflightCode,
    /// For people.
    #[schema(example = "the provider does not accept the API key")]
    pub text: String,
}

/// The problem, for programs.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PreflightCode {
    /// What would run is not what was approved.
    Drifted,
    /// A stored key of a provider cannot be decrypted.
    KeyUnreadable,
    /// The provider does not accept the key, and no other provider can be called.
    ModelKeyRefused,
    /// No provider that can be called offers a model of this tier.
    ModelNotConfigured,
    /// The provider of the model does not run a tool that the action needs.
    ToolUnavailable,
    /// The address of the action's call may not be reached.
    CallRefused,
    /// A secret of the action's call is missing, may not be sent to its host, or can't sign.
    SecretRefused,
    /// A ceiling of costs has no room for the run.
    CeilingReached,
    /// The plan includes no more requests.
    QuotaExceeded,
}

/// For numbers that are stored only if they count something.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(super) const fn is_zero(number: &u32) -> bool {
    *number == 0
}
