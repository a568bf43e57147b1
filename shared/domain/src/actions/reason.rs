//! Why a due time has not simply succeeded.

use serde::{Deserialize, Serialize};

/// A code for programs and a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    pub code: ReasonCode,
    pub text: String,
}

impl Reason {
    pub fn new(code: ReasonCode, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}

/// Why something became of a due time, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReasonCode {
    /// Found late, and the schedule catches nothing up.
    CatchUpOff,
    /// Found late, and only the newest due time is caught up.
    Superseded,
    /// Found later than `max_age`.
    TooOld,
    /// An earlier run was live.
    Overlap,
    /// As many runs waited for their turn as may.
    QueueFull,
    /// A later due time took its place.
    Replaced,
    /// The action was paused.
    Paused,
    /// A person had been asked, and had not answered.
    NeedsApproval,
    /// What would have run was no longer what had been approved.
    Drifted,
    /// The run wanted something outside its grants.
    OutsideGrant,
    /// The run asked a person a question.
    Asked,
    /// It failed, and is tried again.
    Retrying,
    /// It failed for good.
    Error,
    /// Its executor was killed too often.
    Killed,
    /// Whether an effect on the outside happened cannot be known.
    EffectUnknown,
    /// A person cancelled it, or the action was no longer due.
    Cancelled,
    /// It succeeded, and its output was not checked.
    NotChecked,
}

impl ReasonCode {
    pub const ALL: [Self; 17] = [
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
        Self::Retrying,
        Self::Error,
        Self::Killed,
        Self::EffectUnknown,
        Self::Cancelled,
        Self::NotChecked,
    ];
}
