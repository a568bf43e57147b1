//! Why a due time did not simply succeed.

use serde::{Deserialize, Serialize};

/// A code for programs and a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Reason {
    pub code: ReasonCode,
    /// For people.
    pub text: String,
}

impl Reason {
    pub fn new(code: ReasonCode, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}

/// The reason, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReasonCode {
    /// It was found late, and the schedule catches up nothing.
    CatchUpOff,
    /// It was found late, and the schedule catches up only the newest due time.
    Superseded,
    /// It was found later than `max_age`.
    TooOld,
    /// An earlier run was live.
    Overlap,
    /// The queue of runs was full.
    QueueFull,
    /// A later due time replaced it.
    Replaced,
    /// The action was paused.
    Paused,
    /// A person was asked and had not answered.
    NeedsApproval,
    /// What would have run was not what was approved.
    Drifted,
    /// The run wanted something outside its grants.
    OutsideGrant,
    /// The run asked a person a question.
    Asked,
    /// A ceiling of costs was reached, and a person was asked whether to raise it.
    Ceiling,
    /// A person was asked, and nobody answered in time.
    Unanswered,
    /// It failed and will be tried again.
    Retrying,
    /// It failed permanently.
    Error,
    /// Its executors were killed too often.
    Killed,
    /// It is unknown whether an effect outside the platform happened.
    EffectUnknown,
    /// A person cancelled it, or the action was no longer due.
    Cancelled,
    /// It succeeded, and its output was not checked.
    NotChecked,
    /// The owner's limit of runs that are under way was reached.
    TooManyRuns,
    /// The run found nothing to report since the last run.
    NothingNew,
    /// Nothing of what its action watches had changed.
    Unchanged,
    /// It succeeded, and its outputs equal those of the last run.
    SameAsLast,
    /// The account was stopped.
    Stopped,
    /// Three runs in a row failed in the same way.
    EqualFailures,
    /// The server has its call and has not reported yet.
    AwaitsReport,
    /// The server accepted its call and did not report in time.
    NoReport,
}

impl ReasonCode {
    /// As in JSON.
    #[must_use]
    pub fn code(self) -> String {
        serde_json::to_value(self)
            .ok()
            .and_then(|value| value.as_str().map(str::to_owned))
            .unwrap_or_default()
    }

    pub const ALL: [Self; 27] = [
        Self::CatchUpOff,
        Self::Superseded,
        Self::TooOld,
        Self::Overlap,
        Self::QueueFull,
        Self::Replaced,
        Self::Paused,
        Self::NeedsApproval,
        Self::Drifted,
        Self::OutsideGrant,
        Self::Asked,
        Self::Ceiling,
        Self::Unanswered,
        Self::Retrying,
        Self::Error,
        Self::Killed,
        Self::EffectUnknown,
        Self::Cancelled,
        Self::NotChecked,
        Self::TooManyRuns,
        Self::NothingNew,
        Self::Unchanged,
        Self::SameAsLast,
        Self::Stopped,
        Self::EqualFailures,
        Self::AwaitsReport,
        Self::NoReport,
    ];
}
