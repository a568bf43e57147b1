//! One due time of an action, or one run by hand, from its claim to its end.
//!
//! An executor claims an occurrence for the length of a lease and gets a *fence*, a number that only grows. Every later
//! write names the fence, so that an executor that was taken for dead and was not can spoil nothing. An executor that
//! dies leaves a lease that runs out, and the occurrence can be claimed again; the steps that were stored are not
//! repeated.
//!
//! ```text
//!  due ──claim──▶ claimed ──start──▶ running ──▶ succeeded | failed | waiting | held | cancelled | unknown
//!   ▲               │                  │ ▲
//!   └── retry, hand-over, answer ──────┘ └ claim again after the lease
//! ```
//!
//! `missed`, `skipped` and `held` are also written at once, for due times that never ran.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::action::Action;
use super::plan::{Decided, Decision};
use super::reason::ReasonCode;
use crate::ids::{ActionId, RunId};
use crate::models::Usage;

/// What became of one due time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Occurrence {
    pub run_id: RunId,
    pub action_id: ActionId,
    pub kind: OccurrenceKind,
    /// The fire time, without jitter; for a run by hand, when it was asked for.
    pub due_at: Timestamp,
    pub state: OccurrenceState,
    /// A sentence, where it has not simply succeeded.
    pub reason: Option<String>,
    pub reason_code: Option<ReasonCode>,
    /// How often it was claimed, hand-overs not counted.
    pub attempts: u32,
    /// Counts claims. A write with another fence is refused.
    pub fence: u64,
    pub lease_until: Option<Timestamp>,
    /// It is not claimed before this.
    pub not_before: Timestamp,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub usage: Usage,
    pub cost_micros: i64,
    /// How good the output is by the agent's own judgement, 0 to 100.
    pub score: Option<u8>,
    /// The approval under which it was decided on.
    pub approval_hash: Option<String>,
    /// How many steps are stored. A retry goes on after them.
    pub steps_done: u32,
    /// The outside effect that was begun and whose result is not stored yet. An executor that claims it finds out what
    /// became of the effect, or reports `LoseTrack`.
    pub open_effect: Option<String>,
}

/// What made a run come about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OccurrenceKind {
    Scheduled,
    Manual,
    /// Found late, after an outage.
    CatchUp,
}

/// What became of a due time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OccurrenceState {
    Due,
    Claimed,
    Running,
    Succeeded,
    Failed,
    /// For a person's answer.
    Waiting,
    Missed,
    Skipped,
    Held,
    Cancelled,
    /// Whether its effect happened cannot be known.
    Unknown,
}

impl OccurrenceState {
    pub const ALL: [Self; 11] = [
        Self::Due,
        Self::Claimed,
        Self::Running,
        Self::Succeeded,
        Self::Failed,
        Self::Waiting,
        Self::Missed,
        Self::Skipped,
        Self::Held,
        Self::Cancelled,
        Self::Unknown,
    ];

    /// Whether nothing more will become of it.
    #[must_use]
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Due | Self::Claimed | Self::Running | Self::Waiting)
    }

    /// As in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Due => "due",
            Self::Claimed => "claimed",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Waiting => "waiting",
            Self::Missed => "missed",
            Self::Skipped => "skipped",
            Self::Held => "held",
            Self::Cancelled => "cancelled",
            Self::Unknown => "unknown",
        }
    }
}

impl Occurrence {
    /// The record of a decision: due, or final at once.
    #[must_use]
    pub fn decided(action: &Action, decided: &Decided, now: Timestamp) -> Self {
        let mut occurrence =
            Self::due(action, decided.run_id(action.id), OccurrenceKind::Scheduled, decided.due_at);
        let (state, reason) = match &decided.decision {
            Decision::Run { kind, .. } => {
                occurrence.kind = *kind;
                return occurrence;
            }
            Decision::Missed(reason) => (OccurrenceState::Missed, reason),
            Decision::Skipped(reason) => (OccurrenceState::Skipped, reason),
            Decision::Held(reason) => (OccurrenceState::Held, reason),
        };
        occurrence.finish(state, now);
        occurrence.because(reason.code, &reason.text);
        occurrence
    }

    /// A run by hand, asked for at `now`.
    #[must_use]
    pub fn manual(action: &Action, run: RunId, now: Timestamp) -> Self {
        Self::due(action, run, OccurrenceKind::Manual, now)
    }

    fn due(action: &Action, run_id: RunId, kind: OccurrenceKind, due_at: Timestamp) -> Self {
        Self {
            run_id,
            action_id: action.id,
            kind,
            due_at,
            state: OccurrenceState::Due,
            reason: None,
            reason_code: None,
            attempts: 0,
            fence: 0,
            lease_until: None,
            not_before: due_at,
            started_at: None,
            finished_at: None,
            usage: Usage::default(),
            cost_micros: 0,
            score: None,
            approval_hash: action.approval.as_ref().map(|approval| approval.hash.clone()),
            steps_done: 0,
            open_effect: None,
        }
    }

    /// When an executor should be sent for it: when it may begin, or when its lease has run out.
    #[must_use]
    pub const fn wake_at(&self) -> Option<Timestamp> {
        match self.state {
            OccurrenceState::Due => Some(self.not_before),
            OccurrenceState::Claimed | OccurrenceState::Running => self.lease_until,
            _ => None,
        }
    }

    /// Whether it was written down by a clock that was ahead of `now`, and never ran: the due time comes again, and is decided
    /// about again.
    #[must_use]
    pub fn is_premature(&self, now: Timestamp) -> bool {
        let never_ran =
            matches!(self.state, OccurrenceState::Missed | OccurrenceState::Skipped | OccurrenceState::Held);
        never_ran && self.attempts == 0 && self.finished_at.is_some_and(|at| at > now)
    }

    pub(super) fn finish(&mut self, state: OccurrenceState, now: Timestamp) {
        self.state = state;
        self.lease_until = None;
        self.finished_at = Some(now);
        self.reason = None;
        self.reason_code = None;
    }

    pub(super) fn because(&mut self, code: ReasonCode, text: &str) {
        self.reason_code = Some(code);
        self.reason = Some(text.to_owned());
    }
}
