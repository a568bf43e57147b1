//! One due time of an action, or one manual run, from its claim to its end.
//!
//! An executor claims an occurrence for the length of a lease and gets a *fence*, a number that grows with each claim. Every
//! later write names the fence. So an executor that was believed dead cannot write any more. If an executor dies, its lease
//! ends, and the occurrence can be claimed again. Stored steps are not repeated.
//!
//! ```text
//!  due ──claim──▶ claimed ──start──▶ running ──▶ succeeded | failed | waiting | held | cancelled | unknown
//!   ▲               │                  │ ▲
//!   └── retry, hand-over, answer ──────┘ └ claim again after the lease
//! ```
//!
//! A run whose call expects a report stays `running` after the server has accepted the request, without an executor, until the report
//! comes or its time is over.
//!
//! For due times that never run, `missed`, `skipped` or `held` is written at once.

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::action::Action;
use super::marks::is_zero;
use super::reason::ReasonCode;
use crate::background::lease::Lease;
use crate::ids::{ActionId, RunId};
use crate::models::Usage;
use crate::watched::witness::Report;
use crate::work::ActionState;

/// A run that is found, or begins, at least this long after its due time is late.
pub(super) const LATE: SignedDuration = SignedDuration::from_secs(5);

/// The record of one due time: what happened at it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Occurrence {
    pub run_id: RunId,
    pub action_id: ActionId,
    pub kind: OccurrenceKind,
    /// The fire time, without jitter. For a manual run, the time of the request.
    pub due_at: Timestamp,
    pub state: OccurrenceState,
    /// A sentence that says why it did not simply succeed.
    pub reason: Option<String>,
    pub reason_code: Option<ReasonCode>,
    /// The code of the error with which it failed, as in the error of its run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub error_code: Option<String>,
    /// How often it was claimed, not counting hand-overs.
    pub attempts: u32,
    /// How many attempts had ended when its last step was stored. The limit of attempts counts only later ones.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schema(ignore)]
    pub attempts_before_step: u32,
    /// The number of claims. A write with another fence is refused.
    pub fence: u64,
    pub lease_until: Option<Timestamp>,
    /// It cannot be claimed before this time.
    pub not_before: Timestamp,
    /// When it could start, if that is later than `due_at`: after its jitter, or when its schedule was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub starts_at: Option<Timestamp>,
    /// Whether no sweep found its time before it came, as after an outage.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(ignore)]
    pub found_late: bool,
    /// Why it was last put off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub put_off: Option<ReasonCode>,
    /// While it waits for a place among its owner's runs: when to check again if nothing wakes it before. It may be claimed
    /// earlier, unlike with `not_before`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub look_again_at: Option<Timestamp>,
    /// While it waits for a person: it ends at this time if nobody has answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_by: Option<Timestamp>,
    /// Of a run whose server has accepted the call: until when it must report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report_by: Option<Timestamp>,
    /// What the server has reported. If it came after the end of the run, it has changed nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub usage: Usage,
    pub cost_micros: i64,
    /// Whether the run may have read what strangers have written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tainted: bool,
    /// The quality of the output as judged by the check, 0 to 100.
    pub score: Option<u8>,
    /// The hash of the approval that was valid when it was decided.
    pub approval_hash: Option<String>,
    /// How many steps are stored. A retry continues after them.
    pub steps_done: u32,
    /// If this is the record of several due times that did not run: how many, and the last of them. `due_at` is the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub covers: Option<Covered>,
    /// An effect outside the platform that has begun and whose result is not stored. An executor that claims the occurrence
    /// makes the call again if the tool is idempotent. Otherwise the run waits until a person says whether the effect happened.
    pub open_effect: Option<String>,
    /// What a person was told of it last, as in [`Self::untold`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub told: Option<String>,
    /// How the person was told of that, or why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub telling: Option<Telling>,
}

/// What was decided when a run came to rest. It is stored with the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Telling {
    /// The person had no channel.
    NoChannel,
    /// The person does not want to be told.
    Off,
    Digest {
        date: Date,
    },
    Later {
        at: Timestamp,
    },
    Sent,
}

/// The due times that share one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Covered {
    /// How many there are. If they were skipped, at most [`MAX_COUNTED`](super::stopped::MAX_COUNTED), which means that many or more.
    /// If they were held, all are counted.
    pub times: u32,
    /// The last of them.
    pub last: Timestamp,
}

/// Why the run exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OccurrenceKind {
    Scheduled,
    Manual,
    /// Found late, after an outage.
    CatchUp,
}

/// The state of a due time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OccurrenceState {
    Due,
    Claimed,
    Running,
    Succeeded,
    /// It ran and ended without an output, because there was nothing to report since the last run.
    NothingNew,
    /// Nothing of what its action watches had changed, so it did not run.
    Unchanged,
    Failed,
    /// It waits for a person's answer.
    Waiting,
    Missed,
    Skipped,
    Held,
    Cancelled,
    /// It is unknown whether its effect happened.
    Unknown,
}

impl OccurrenceState {
    pub const ALL: [Self; 13] = [
        Self::Due,
        Self::Claimed,
        Self::Running,
        Self::Succeeded,
        Self::NothingNew,
        Self::Unchanged,
        Self::Failed,
        Self::Waiting,
        Self::Missed,
        Self::Skipped,
        Self::Held,
        Self::Cancelled,
        Self::Unknown,
    ];

    /// Whether the state can no longer change.
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
            Self::NothingNew => "nothing_new",
            Self::Unchanged => "unchanged",
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
    /// A due time whose run waits for earlier runs of its action.
    #[must_use]
    pub fn queued(self) -> Self {
        let put_off = (self.state == OccurrenceState::Due).then_some(ReasonCode::Overlap);
        Self { put_off, ..self }
    }

    /// How long after the time at which it could start it began.
    #[must_use]
    pub fn start_lag(&self) -> Option<SignedDuration> {
        self.started_at.map(|at| self.lag_at(at))
    }

    /// The same in milliseconds, for views.
    #[must_use]
    pub fn start_lag_ms(&self) -> Option<i64> {
        self.start_lag().map(|lag| i64::try_from(lag.as_millis()).unwrap_or(i64::MAX))
    }

    /// How long after the time at which it could start this is.
    #[must_use]
    pub fn lag_at(&self, at: Timestamp) -> SignedDuration {
        at.duration_since(self.starts_at.unwrap_or(self.due_at))
    }

    /// A manual run, requested at `now`.
    #[must_use]
    pub fn manual(action: &Action, run: RunId, now: Timestamp) -> Self {
        Self::due(action, run, OccurrenceKind::Manual, now)
    }

    pub(super) fn due(action: &Action, run_id: RunId, kind: OccurrenceKind, due_at: Timestamp) -> Self {
        Self {
            run_id,
            action_id: action.id,
            kind,
            due_at,
            state: OccurrenceState::Due,
            reason: None,
            reason_code: None,
            error_code: None,
            attempts: 0,
            attempts_before_step: 0,
            fence: 0,
            lease_until: None,
            not_before: due_at,
            starts_at: None,
            found_late: false,
            put_off: None,
            look_again_at: None,
            answer_by: None,
            report_by: None,
            report: None,
            started_at: None,
            finished_at: None,
            usage: Usage::default(),
            cost_micros: 0,
            tainted: false,
            score: None,
            approval_hash: action.approval.as_ref().map(|approval| approval.hash.clone()),
            steps_done: 0,
            covers: None,
            open_effect: None,
            told: None,
            telling: None,
        }
    }

    /// A code for what a person is still to be told of it. None if there is nothing to tell, or if it was told.
    ///
    /// Only an occurrence at rest is told of, which no executor writes to. So whoever tells may note that in its record.
    #[must_use]
    pub fn untold(&self) -> Option<String> {
        let tells = match self.state {
            // Each question is told of.
            OccurrenceState::Waiting => format!("{ASKED}{}", self.fence),
            OccurrenceState::Succeeded
            | OccurrenceState::NothingNew
            | OccurrenceState::Failed
            | OccurrenceState::Missed
            | OccurrenceState::Held
            | OccurrenceState::Unknown => self.state.as_str().to_owned(),
            // The question that it asked is no longer open.
            OccurrenceState::Cancelled if self.has_told_a_question() => self.state.as_str().to_owned(),
            OccurrenceState::Cancelled
            | OccurrenceState::Due
            | OccurrenceState::Claimed
            | OccurrenceState::Running
            | OccurrenceState::Unchanged
            | OccurrenceState::Skipped => return None,
        };
        Some(tells).filter(|tells| self.told.as_ref() != Some(tells))
    }

    /// Whether it is the live run of this action and has asked its person a question in words.
    #[must_use]
    pub fn asks_in_words(&self, action: &Action) -> bool {
        action.live_run == Some(self.run_id)
            && action.state == ActionState::NeedsApproval
            && self.state == OccurrenceState::Waiting
            && self.reason_code == Some(ReasonCode::Asked)
    }

    /// Whether a person was told last that it waits for an answer.
    #[must_use]
    pub fn has_told_a_question(&self) -> bool {
        self.told.as_ref().is_some_and(|told| told.starts_with(ASKED))
    }

    /// When it came to rest. For a run that waits, the time at which it started, because its record has no later one.
    #[must_use]
    pub fn rests_since(&self) -> Timestamp {
        self.finished_at.or(self.started_at).unwrap_or(self.due_at)
    }

    /// When an executor should process it: when it may begin, or when its lease ends.
    #[must_use]
    pub fn wake_at(&self) -> Option<Timestamp> {
        match self.state {
            OccurrenceState::Due => Some(self.not_before).max(self.look_again_at),
            OccurrenceState::Claimed | OccurrenceState::Running => self.lease_until.or(self.report_by),
            OccurrenceState::Waiting => self.answer_by,
            _ => None,
        }
    }

    /// The lease of its executor, while it has one.
    #[must_use]
    pub fn lease(&self) -> Option<Lease<u64>> {
        self.lease_until.map(|until| Lease { holder: self.fence, until })
    }

    /// Whether nobody has answered in time.
    #[must_use]
    pub fn is_unanswered(&self, now: Timestamp) -> bool {
        self.state == OccurrenceState::Waiting && self.answer_by.is_some_and(|until| until <= now)
    }

    /// Whether its server has the call and works on it. No executor has the run meanwhile.
    #[must_use]
    pub fn awaits_report(&self) -> bool {
        self.state == OccurrenceState::Running && self.lease_until.is_none() && self.report_by.is_some()
    }

    /// Whether its report came after its end.
    #[must_use]
    pub fn has_late_report(&self) -> bool {
        let ended = self.finished_at.zip(self.report.as_ref());
        ended.is_some_and(|(finished_at, report)| report.at > finished_at)
    }

    /// Whether a clock that was ahead of `now` wrote it and it never ran. Then its due time is still to come, and is decided again.
    #[must_use]
    pub fn is_premature(&self, now: Timestamp) -> bool {
        let never_ran =
            matches!(self.state, OccurrenceState::Missed | OccurrenceState::Skipped | OccurrenceState::Held);
        never_ran && self.attempts == 0 && self.finished_at.is_some_and(|at| at > now)
    }

    pub(super) fn finish(&mut self, state: OccurrenceState, now: Timestamp) {
        self.state = state;
        self.lease_until = None;
        self.answer_by = None;
        self.finished_at = Some(now);
        self.reason = None;
        self.reason_code = None;
    }

    /// If it is to be tried again, it waits at least until this time.
    pub fn not_before(&mut self, at: Timestamp) {
        if self.state == OccurrenceState::Due {
            self.not_before = self.not_before.max(at);
        }
    }

    /// Notes that its outputs equal those of the last run.
    pub fn flag_as_same(&mut self) {
        self.because(ReasonCode::SameAsLast, "its output equals that of the last run");
    }

    pub(super) fn because(&mut self, code: ReasonCode, text: &str) {
        self.reason_code = Some(code);
        self.reason = Some(text.to_owned());
    }
}

/// The code of a question, before the fence of the run that asked it.
const ASKED: &str = "waiting@";
