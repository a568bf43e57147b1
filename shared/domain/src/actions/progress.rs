//! How an occurrence changes: one pure, total function, and the pauses between attempts.

use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};

use super::action::Action;
use super::occurrence::{Occurrence, OccurrenceState};
use super::reason::{Reason, ReasonCode};
use crate::background::attempts;
use crate::ids::RunId;
use crate::models::Usage;
use crate::watched::witness::Report;

/// A change of an occurrence. Those that come from its executor name the fence of its claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OccurrenceCommand {
    /// An executor takes it until `lease_until`.
    Claim {
        lease_until: Timestamp,
    },
    Start {
        fence: u64,
    },
    /// An effect outside the platform is about to begin.
    EffectBegun {
        fence: u64,
        effect: String,
    },
    /// The result of the effect is stored.
    EffectEnded {
        fence: u64,
    },
    /// The reply of a step is stored, with its cost.
    StepDone {
        fence: u64,
        usage: Usage,
        cost_micros: i64,
    },
    /// The time is nearly over, and another executor continues it at once. This does not count as an attempt.
    HandOver {
        fence: u64,
    },
    /// `note` is an additional remark for people.
    Succeed {
        fence: u64,
        score: Option<u8>,
        note: Option<Reason>,
    },
    /// It ended without an output, because there is nothing to report.
    NothingNew {
        fence: u64,
        reason: String,
    },
    /// Nothing of what its action watches has changed, so it does not begin.
    Unchanged {
        fence: u64,
        reason: String,
    },
    /// It is tried again after [`backoff`] if a retry may help and attempts are left.
    Fail {
        fence: u64,
        error: String,
        retryable: bool,
    },
    /// It needs something outside its grants, has a question, or does not know whether an effect happened. It waits for a
    /// person, until `answer_by` if there is such a time.
    Wait {
        fence: u64,
        reason: Reason,
        answer_by: Option<Timestamp>,
    },
    /// The action, its agent or its tools are no longer what was approved.
    Drift {
        fence: u64,
    },
    /// It is unknown whether the effect happened, and no person can answer any more.
    LoseTrack {
        fence: u64,
        effect: String,
    },
    /// The server has accepted the call and must report until then. If it has reported already, the report decides.
    AwaitReport {
        fence: u64,
        until: Timestamp,
    },
    /// The server reports what became of the call. Only the first report counts.
    Reported {
        report: Report,
    },
    /// The time for its report is over, or a report came while an executor had it that is dead now.
    SettleReport,
    /// A person answered, and it continues.
    Answer,
    /// Nobody answered in time.
    Unanswered,
    /// It cannot begin yet, for example because another run is live.
    Defer {
        until: Timestamp,
        because: ReasonCode,
    },
    /// Too many runs of its owner are under way. It may be claimed at any time, when a place is free.
    AwaitPlace {
        look_again_at: Timestamp,
        reason: Reason,
    },
    /// A person cancelled it, or a later due time replaces it.
    Cancel {
        reason: Reason,
    },
    /// The clock was ahead and was set back. The wait is shortened to what it would be by the current clock.
    ClockSetBack {
        longest_lease: SignedDuration,
    },
    /// The lease ended and no attempt is left.
    Expire,
}

impl OccurrenceCommand {
    const fn name(&self) -> &'static str {
        match self {
            Self::Claim { .. } => "claim",
            Self::Start { .. } => "start",
            Self::EffectBegun { .. } => "begin an effect of",
            Self::EffectEnded { .. } => "end an effect of",
            Self::StepDone { .. } => "store a step of",
            Self::HandOver { .. } => "hand over",
            Self::Succeed { .. } => "complete",
            Self::NothingNew { .. } => "complete",
            Self::Unchanged { .. } => "skip",
            Self::Fail { .. } => "fail",
            Self::Wait { .. } => "suspend",
            Self::Drift { .. } => "hold",
            Self::LoseTrack { .. } => "lose track of",
            Self::AwaitReport { .. } | Self::SettleReport => "await the report of",
            Self::Reported { .. } => "report on",
            Self::Answer => "resume",
            Self::Unanswered => "give up",
            Self::Defer { .. } => "defer",
            Self::AwaitPlace { .. } => "defer",
            Self::Cancel { .. } => "cancel",
            Self::ClockSetBack { .. } => "correct the clock of",
            Self::Expire => "expire",
        }
    }

    /// Adapts an executor's command to the current action. A run that needs a person waits. But if the action was changed during
    /// the run, its approval is withdrawn and no answer could continue the run, so it ends.
    #[must_use]
    pub fn for_action(self, action: &Action, occurrence: &Occurrence) -> Self {
        match (self, &occurrence.open_effect) {
            (Self::Wait { fence, .. }, Some(effect)) if action.approval.is_none() => {
                Self::LoseTrack { fence, effect: effect.clone() }
            }
            (command, _) => command.for_withdrawn(action),
        }
    }

    fn for_withdrawn(self, action: &Action) -> Self {
        match self {
            Self::Wait { reason, .. } if action.approval.is_none() => {
                let text = format!(
                    "the action was changed while it ran, which withdrew its approval. Then it needed a person: {}",
                    reason.text
                );
                Self::Cancel { reason: Reason::new(ReasonCode::Cancelled, text) }
            }
            command => command,
        }
    }

    const fn fence(&self) -> Option<u64> {
        match self {
            Self::Start { fence }
            | Self::EffectBegun { fence, .. }
            | Self::EffectEnded { fence }
            | Self::StepDone { fence, .. }
            | Self::HandOver { fence }
            | Self::Succeed { fence, .. }
            | Self::NothingNew { fence, .. }
            | Self::Unchanged { fence, .. }
            | Self::Fail { fence, .. }
            | Self::Wait { fence, .. }
            | Self::Drift { fence }
            | Self::LoseTrack { fence, .. }
            | Self::AwaitReport { fence, .. } => Some(*fence),
            Self::Claim { .. }
            | Self::Reported { .. }
            | Self::SettleReport
            | Self::Answer
            | Self::Unanswered
            | Self::Defer { .. }
            | Self::AwaitPlace { .. }
            | Self::Cancel { .. }
            | Self::ClockSetBack { .. }
            | Self::Expire => None,
        }
    }
}

/// Why a command was refused. Phrased to follow "failed to …: ".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OccurrenceRefused {
    #[error("cannot {command} an occurrence that is {}", state.as_str())]
    WrongState { command: &'static str, state: OccurrenceState },
    #[error("the fence {given} is stale, it is now {current}")]
    StaleFence { given: u64, current: u64 },
    #[error("it must not begin before {not_before}")]
    NotYet { not_before: Timestamp },
    #[error("another executor has it until {lease_until}")]
    Leased { lease_until: Timestamp },
    #[error("all of its {max} attempts are used up")]
    AttemptsUsed { max: u32 },
    #[error("it has attempts left")]
    AttemptsLeft,
}

/// The code of the error of a run whose report did not come in time.
const NO_REPORT: &str = "no_report";

/// The code of the error of a run whose server has reported a failure.
const REPORTED_FAILED: &str = "reported_failed";

impl Occurrence {
    /// Whether a claim at `now` would succeed.
    #[must_use]
    pub fn may_claim(&self, now: Timestamp) -> bool {
        self.check_claim(now).is_ok()
    }

    /// The number of attempts since its last stored step.
    const fn attempts_since_step(&self) -> u32 {
        self.attempts.saturating_sub(self.attempts_before_step)
    }

    fn check_attempts(&self) -> Result<(), OccurrenceRefused> {
        match attempts::used_up(self.attempts_since_step(), self.attempts) {
            None => Ok(()),
            Some(max) => Err(OccurrenceRefused::AttemptsUsed { max }),
        }
    }

    fn check_claim(&self, now: Timestamp) -> Result<(), OccurrenceRefused> {
        match self.state {
            OccurrenceState::Due if self.not_before > now => {
                Err(OccurrenceRefused::NotYet { not_before: self.not_before })
            }
            state @ OccurrenceState::Running if self.awaits_report() => {
                Err(OccurrenceRefused::WrongState { command: "claim", state })
            }
            OccurrenceState::Claimed | OccurrenceState::Running => match self.lease() {
                Some(lease) if !lease.is_over(now) => {
                    Err(OccurrenceRefused::Leased { lease_until: lease.until })
                }
                _ => Ok(()),
            },
            OccurrenceState::Due => Ok(()),
            state => Err(OccurrenceRefused::WrongState { command: "claim", state }),
        }?;
        self.check_attempts()
    }

    /// The occurrence after `command`. Cancelling a cancelled occurrence changes nothing.
    ///
    /// # Errors
    /// [`OccurrenceRefused`]. After `StaleFence` the executor must stop, because another one has the occurrence.
    pub fn transition(&self, command: OccurrenceCommand, now: Timestamp) -> Result<Self, OccurrenceRefused> {
        use OccurrenceState::{Cancelled, Claimed, Due, Failed, Held, Running, Succeeded, Waiting};
        let state = self.state;
        let wrong_state = OccurrenceRefused::WrongState { command: command.name(), state };
        if let Some(given) = command.fence() {
            if given != self.fence {
                return Err(OccurrenceRefused::StaleFence { given, current: self.fence });
            }
            let expected = match command {
                OccurrenceCommand::EffectBegun { .. }
                | OccurrenceCommand::EffectEnded { .. }
                | OccurrenceCommand::StepDone { .. }
                | OccurrenceCommand::Succeed { .. }
                | OccurrenceCommand::NothingNew { .. }
                | OccurrenceCommand::AwaitReport { .. }
                | OccurrenceCommand::Wait { .. } => state == Running,
                OccurrenceCommand::Unchanged { .. } => state == Claimed,
                _ => matches!(state, Claimed | Running),
            };
            if !expected {
                return Err(wrong_state);
            }
        }
        let mut next = self.clone();
        match command {
            OccurrenceCommand::Claim { lease_until } => {
                self.check_claim(now)?;
                next.state = Claimed;
                next.fence = next.fence.saturating_add(1);
                next.attempts = next.attempts.saturating_add(1);
                next.lease_until = Some(lease_until);
                next.look_again_at = None;
            }
            OccurrenceCommand::Start { .. } => {
                next.state = Running;
                next.started_at = next.started_at.or(Some(now));
                next.reason = None;
                next.reason_code = None;
            }
            OccurrenceCommand::EffectBegun { effect, .. } => next.open_effect = Some(effect),
            OccurrenceCommand::EffectEnded { .. } => next.open_effect = None,
            OccurrenceCommand::StepDone { usage, cost_micros, .. } => {
                next.steps_done = next.steps_done.saturating_add(1);
                // The attempt that is under way is the first one of the next step.
                next.attempts_before_step = self.attempts.saturating_sub(1);
                next.usage += usage;
                next.cost_micros = next.cost_micros.saturating_add(cost_micros);
                next.open_effect = None;
            }
            OccurrenceCommand::HandOver { .. } => {
                next.attempts = next.attempts.saturating_sub(1);
                next.due_again(now);
            }
            OccurrenceCommand::Succeed { score, note, .. } => {
                next.score = score;
                next.finish(Succeeded, now);
                if let Some(note) = note {
                    next.because(note.code, &note.text);
                }
            }
            OccurrenceCommand::NothingNew { reason, .. } => {
                next.finish(OccurrenceState::NothingNew, now);
                next.because(ReasonCode::NothingNew, &reason);
            }
            OccurrenceCommand::Unchanged { reason, .. } => {
                next.finish(OccurrenceState::Unchanged, now);
                next.because(ReasonCode::Unchanged, &reason);
            }
            // Whoever reports has had the call, whatever the connection said.
            OccurrenceCommand::Fail { .. } if self.report.is_some() => next.finish_as_reported(now),
            OccurrenceCommand::Fail { error, retryable, .. } => {
                if retryable && self.check_attempts().is_ok() {
                    let pause = backoff(self.run_id, self.attempts_since_step());
                    let not_before = now.checked_add(pause).unwrap_or(now);
                    next.due_again(not_before);
                    next.because(ReasonCode::Retrying, &error);
                } else {
                    next.finish(Failed, now);
                    next.because(ReasonCode::Error, &error);
                }
            }
            OccurrenceCommand::Wait { reason, answer_by, .. } => {
                next.state = Waiting;
                next.lease_until = None;
                next.answer_by = answer_by;
                next.because(reason.code, &reason.text);
            }
            OccurrenceCommand::Drift { .. } => {
                next.finish(Held, now);
                next.because(ReasonCode::Drifted, "what would have run is not what was approved");
            }
            OccurrenceCommand::LoseTrack { effect, .. } => next.lose_track(&effect, now),
            OccurrenceCommand::AwaitReport { until, .. } => {
                next.report_by = Some(until);
                match &self.report {
                    Some(_) => next.finish_as_reported(now),
                    None => {
                        next.lease_until = None;
                        next.because(
                            ReasonCode::AwaitsReport,
                            "the server has the call and has not reported yet",
                        );
                    }
                }
            }
            OccurrenceCommand::Reported { report } => {
                // Before its first claim, nothing was sent.
                if self.fence == 0 || state == Waiting {
                    return Err(wrong_state);
                }
                if self.report.is_none() {
                    next.tainted |= report.has_result();
                    next.report = Some(report);
                    // While an executor has it, the executor ends it.
                    if self.awaits_report() || state == Due {
                        next.finish_as_reported(now);
                    }
                }
            }
            OccurrenceCommand::SettleReport => {
                if state.is_final() {
                    return Err(wrong_state);
                }
                if let Some(lease) = self.lease().filter(|lease| !lease.is_over(now)) {
                    return Err(OccurrenceRefused::Leased { lease_until: lease.until });
                }
                match (&self.report, self.report_by.filter(|_| self.awaits_report())) {
                    (Some(_), _) => next.finish_as_reported(now),
                    (None, Some(until)) if until > now => {
                        return Err(OccurrenceRefused::NotYet { not_before: until });
                    }
                    (None, Some(_)) => {
                        next.finish(Failed, now);
                        next.error_code = Some(NO_REPORT.to_owned());
                        next.because(
                            ReasonCode::NoReport,
                            "the server accepted the call and did not report in time",
                        );
                    }
                    (None, None) => return Err(wrong_state),
                }
            }
            OccurrenceCommand::Answer => match state {
                Waiting => {
                    (next.attempts, next.attempts_before_step) = (0, 0);
                    next.due_again(now);
                }
                _ => return Err(wrong_state),
            },
            OccurrenceCommand::Unanswered => {
                let until = self.answer_by.filter(|_| state == Waiting).ok_or(wrong_state)?;
                if until > now {
                    return Err(OccurrenceRefused::NotYet { not_before: until });
                }
                match &self.open_effect {
                    Some(effect) => next.lose_track(effect, now),
                    None => {
                        let asked = self.reason.as_deref().unwrap_or("it asked a person");
                        next.finish(Failed, now);
                        next.because(ReasonCode::Unanswered, &format!("nobody answered in time: {asked}"));
                    }
                }
            }
            OccurrenceCommand::Defer { until, because } => match state {
                Due => {
                    next.not_before = self.not_before.max(until);
                    next.put_off_for(because);
                }
                _ => return Err(wrong_state),
            },
            OccurrenceCommand::AwaitPlace { look_again_at, reason } => match state {
                Due => {
                    next.look_again_at = Some(look_again_at);
                    next.put_off_for(reason.code);
                    // The reason why a run waited for a person is kept. It decides what the run is told about the answer.
                    if matches!(self.reason_code, None | Some(ReasonCode::Retrying | ReasonCode::TooManyRuns))
                    {
                        next.because(reason.code, &reason.text);
                    }
                }
                _ => return Err(wrong_state),
            },
            OccurrenceCommand::Cancel { reason } => match state {
                Cancelled => {}
                _ if state.is_final() => return Err(wrong_state),
                _ => {
                    // The executor finds out at its next write.
                    next.fence = next.fence.saturating_add(1);
                    next.finish(Cancelled, now);
                    match &self.open_effect {
                        Some(effect) => {
                            let text = format!(
                                "{}; {effect} was begun, and it is not known whether it happened",
                                reason.text
                            );
                            next.because(reason.code, &text);
                        }
                        None => next.because(reason.code, &reason.text),
                    }
                }
            },
            OccurrenceCommand::ClockSetBack { longest_lease } => match state {
                Due => {
                    next.not_before = self.not_before.min(now);
                    next.look_again_at = self.look_again_at.map(|at| at.min(now));
                }
                Claimed | Running => {
                    let latest = now.checked_add(longest_lease).unwrap_or(now);
                    next.lease_until = self.lease_until.map(|until| until.min(latest));
                }
                _ => {}
            },
            OccurrenceCommand::Expire => match self.check_claim(now) {
                Ok(()) => return Err(OccurrenceRefused::AttemptsLeft),
                Err(OccurrenceRefused::AttemptsUsed { max }) => {
                    next.fence = next.fence.saturating_add(1);
                    match &self.open_effect {
                        Some(effect) => next.lose_track(effect, now),
                        None => {
                            next.finish(Failed, now);
                            let text = format!("the executor was killed {max} times");
                            next.because(ReasonCode::Killed, &text);
                        }
                    }
                }
                Err(OccurrenceRefused::WrongState { .. }) => return Err(wrong_state),
                Err(other) => return Err(other),
            },
        }
        Ok(next)
    }

    /// Notes why it begins late, if it has not begun yet.
    fn put_off_for(&mut self, because: ReasonCode) {
        if self.started_at.is_none() {
            self.put_off = Some(because);
        }
    }

    fn due_again(&mut self, not_before: Timestamp) {
        self.state = OccurrenceState::Due;
        self.answer_by = None;
        self.not_before = not_before;
        self.lease_until = None;
    }

    /// Ends it as its report says. The words of the report stay in the report: the reason goes into notices and to models, and is
    /// only about facts.
    fn finish_as_reported(&mut self, now: Timestamp) {
        let Some(Report { ok, exit_code, .. }) = self.report else { return };
        if ok {
            return self.finish(OccurrenceState::Succeeded, now);
        }
        self.finish(OccurrenceState::Failed, now);
        self.error_code = Some(REPORTED_FAILED.to_owned());
        let code = exit_code.map_or_else(String::new, |code| format!(", with exit code {code}"));
        self.because(ReasonCode::Error, &format!("the server reported that it has failed{code}"));
    }

    fn lose_track(&mut self, effect: &str, now: Timestamp) {
        self.finish(OccurrenceState::Unknown, now);
        self.because(
            ReasonCode::EffectUnknown,
            &format!("{effect} was begun, and it is not known whether it happened"),
        );
    }
}

/// How long to wait after the failed attempt with this number (from 1): 30 s, 2 min, 8 min, … at most an hour. It varies by up
/// to a fifth, and is always the same for one run and attempt.
#[must_use]
pub fn backoff(run: RunId, attempt: u32) -> SignedDuration {
    let millis = 30_000_i64.saturating_mul(4_i64.saturating_pow(attempt.saturating_sub(1))).min(3_600_000);
    let hash = Sha256::new()
        .chain_update(b"backoff\0")
        .chain_update(run.uuid().as_bytes())
        .chain_update(attempt.to_be_bytes())
        .finalize();
    // -200 to +200 thousandths.
    let thousandths = i64::from(u16::from_be_bytes([hash[0], hash[1]])) % 401 - 200;
    SignedDuration::from_millis(millis + millis / 1_000 * thousandths)
}
