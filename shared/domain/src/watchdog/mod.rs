//! The watchdog: every two hours it looks at the timers, the jobs and the queues of the platform, and at what people own.
//!
//! A look judges facts (`judge_job` and others) and gives one [`Observed`] for each check of each item. A [`Counter`] per check and item remembers
//! how many anomalies there were in a row. The first one is silent, because a single look may be unlucky. The second one in a row
//! alerts, once. The end of the row is said once, and only after an alert.
//!
//! A thing that says by itself that it has failed alerts at once ([`WatchdogRecord::heard`]), and ends its row at once by a success.
//!
//! - a look that could not see a thing neither counts nor resets;
//! - a look that is repeated changes nothing: the counter names the newest look that it has seen;
//! - a check that is switched off, or whose item is paused, forgets its row without a word.

mod judge;
#[cfg(test)]
mod look_tests;
mod record;
#[cfg(test)]
mod simulation_tests;

use std::collections::BTreeMap;
use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::background::jobs::JobKind;
use crate::text::quoting::short_line;
use crate::validate::FieldErrors;

pub(crate) use judge::capital;
pub use judge::{
    ActionFacts, BudgetFacts, FAILS_IN_A_ROW, JobFacts, LONGEST_JOB, OLDEST_MESSAGE, QueueFacts,
    SAME_IN_A_ROW, STALE_AFTER, judge_action, judge_budget, judge_heartbeat, judge_job, judge_queue,
    judge_timer, judge_watched, was,
};

pub use record::{CounterOf, Looked, MAX_COUNTERS, WatchdogRecord};

/// The time between two looks.
pub const LOOK_EVERY: SignedDuration = SignedDuration::from_hours(2);

/// The time of the look that a call at `now` makes: every two hours, a quarter past, in UTC. A late or repeated call makes the same one.
#[must_use]
pub fn look_at(now: Timestamp) -> Timestamp {
    const QUARTER: i64 = 15 * 60;
    let every = LOOK_EVERY.as_secs();
    let seconds = (now.as_second() - QUARTER).div_euclid(every) * every + QUARTER;
    Timestamp::from_second(seconds).unwrap_or(now)
}

/// How far before the newest look a time may be and still belong to a repeated look. A time before that comes after a clock that
/// was ahead has been set back, and is a new look.
const REPEATED_WITHIN: SignedDuration = SignedDuration::from_hours(6);

/// The most anomalies in a row after which a check may alert.
pub const MAX_HITS: u8 = 5;

/// The longest item, in bytes.
pub const MAX_ITEM: usize = 200;

/// The longest text about an anomaly, in bytes.
pub const MAX_TEXT: usize = 300;

/// How many snapshots a counter keeps.
pub const SNAPSHOTS: usize = 3;

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// A timer of the platform is switched off.
    TimerDisabled,
    /// The last run of a job has failed, or has not ended in time.
    JobFailed,
    /// A job has not begun two hours after its due time.
    Stale,
    /// A job succeeded and has written nothing, although there was work.
    EmptySuccess,
    /// The oldest message of a queue waits too long.
    QueueAge,
    /// A queue has messages that could not be handled.
    DeadLetters,
    /// At this pace, a ceiling of costs is reached before its time is over.
    BudgetBurn,
    /// An action fails again and again.
    ActionFails,
    /// An action succeeds again and again, and delivers the same as before.
    ActionRepeats,
    /// An action is enabled and has no next time.
    ActionWithoutNext,
    /// The sweep or the watchdog gives no sign of life.
    Heartbeat,
    /// A schedule that something else runs is late, silent, empty, or has failed.
    WatchedSchedule,
}

impl Check {
    pub const ALL: [Self; 12] = [
        Self::TimerDisabled,
        Self::JobFailed,
        Self::Stale,
        Self::EmptySuccess,
        Self::QueueAge,
        Self::DeadLetters,
        Self::BudgetBurn,
        Self::ActionFails,
        Self::ActionRepeats,
        Self::ActionWithoutNext,
        Self::Heartbeat,
        Self::WatchedSchedule,
    ];

    /// Its name in JSON, in keys, and as the cause of a notice.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TimerDisabled => "timer_disabled",
            Self::JobFailed => "job_failed",
            Self::Stale => "stale",
            Self::EmptySuccess => "empty_success",
            Self::QueueAge => "queue_age",
            Self::DeadLetters => "dead_letters",
            Self::BudgetBurn => "budget_burn",
            Self::ActionFails => "action_fails",
            Self::ActionRepeats => "action_repeats",
            Self::ActionWithoutNext => "action_without_next",
            Self::Heartbeat => "heartbeat",
            Self::WatchedSchedule => "watched_schedule",
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a look saw at one time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Snapshot {
    /// When it was seen.
    pub at: Timestamp,
    /// On one line, at most 300 bytes.
    #[schema(max_length = 300)]
    pub text: String,
}

/// What a check found out about an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Fine,
    /// It could not look: the facts were not to be had, or nothing is decided yet.
    Unknown,
    /// The thing is paused or gone, so nobody expects anything of it. The row ends without a word.
    Off,
    Anomaly {
        /// What is wrong, on one line.
        what: String,
        /// What a person can do, on one line.
        remedy: String,
        /// What was seen.
        snapshot: Snapshot,
    },
}

/// The answer of one check about one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    pub check: Check,
    /// A timer, a job, a queue, or the id of what a person owns. With the check, it names the counter.
    pub item: String,
    pub verdict: Verdict,
}

impl Observed {
    #[must_use]
    pub fn fine(check: Check, item: &str) -> Self {
        Self::new(check, item, Verdict::Fine)
    }

    #[must_use]
    pub fn unknown(check: Check, item: &str) -> Self {
        Self::new(check, item, Verdict::Unknown)
    }

    #[must_use]
    pub fn off(check: Check, item: &str) -> Self {
        Self::new(check, item, Verdict::Off)
    }

    /// An anomaly that is seen now. The texts are cut to [`MAX_TEXT`] and have one line.
    #[must_use]
    pub fn anomaly(check: Check, item: &str, what: &str, remedy: &str, now: Timestamp) -> Self {
        let what = short_line(what, MAX_TEXT);
        let snapshot = Snapshot { at: now, text: what.clone() };
        Self::new(check, item, Verdict::Anomaly { what, remedy: short_line(remedy, MAX_TEXT), snapshot })
    }

    fn new(check: Check, item: &str, verdict: Verdict) -> Self {
        Self { check, item: short_line(item, MAX_ITEM), verdict }
    }
}

/// How many anomalies of a check of an item there were in a row, and what was said about them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Counter {
    /// Anomalies in a row. 0: nothing is wrong.
    pub anomalies: u32,
    /// When the first of them was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// When the alert about them was raised. Without it, none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alerted_at: Option<Timestamp>,
    /// The newest three snapshots of anomalies, the newest first. They stay after a recovery.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub last3: Vec<Snapshot>,
    /// No alert is raised before this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snoozed_until: Option<Timestamp>,
    /// The newest look that it has seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<Timestamp>,
}

impl Counter {
    /// Nothing is wrong and nothing is snoozed, so the counter need not be kept.
    #[must_use]
    pub fn is_idle(&self, now: Timestamp) -> bool {
        self.anomalies == 0 && self.snoozed_until.is_none_or(|until| until <= now)
    }

    fn is_snoozed(&self, at: Timestamp) -> bool {
        self.snoozed_until.is_some_and(|until| at < until)
    }

    /// Whether a look at this time is the newest one again, or one before it that is late.
    fn has_seen(&self, look: Timestamp) -> bool {
        self.seen.is_some_and(|seen| look <= seen && seen.duration_since(look) <= REPEATED_WITHIN)
    }
}

/// What a look says about an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum Say {
    /// Something is wrong.
    Alert {
        check: Check,
        item: String,
        /// What is wrong.
        what: String,
        /// What a person can do.
        remedy: String,
        /// How many looks in a row have seen it.
        count: u32,
        /// When the first of them was.
        since: Timestamp,
        /// The newest three snapshots, the newest first.
        last3: Vec<Snapshot>,
        /// What the platform does about it by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        heal: Option<Heal>,
    },
    /// It is right again.
    Recovery {
        check: Check,
        item: String,
        /// How many looks in a row had seen that it was wrong.
        count: u32,
        /// When the first of them was.
        since: Timestamp,
        /// When the alert was raised.
        alerted_at: Timestamp,
    },
}

/// How a check behaves for a person, or for the platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct CheckSettings {
    /// Default: true.
    pub enabled: bool,
    /// After how many anomalies in a row it alerts, from 1 to 5. Default: 2.
    #[schema(minimum = 1, maximum = 5, example = 2)]
    pub hits: u8,
}

impl Default for CheckSettings {
    fn default() -> Self {
        Self { enabled: true, hits: 2 }
    }
}

/// The checks that do not have their defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct WatchdogSettings {
    /// By the name of the check.
    pub checks: BTreeMap<Check, CheckSettings>,
}

impl WatchdogSettings {
    #[must_use]
    pub fn of(&self, check: Check) -> CheckSettings {
        self.checks.get(&check).copied().unwrap_or_default()
    }

    /// # Errors
    /// Every invalid field, with its limit.
    pub fn validate(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        for (check, settings) in &self.checks {
            if !(1..=MAX_HITS).contains(&settings.hits) {
                errors.add(
                    format!("checks.{check}.hits"),
                    format!("must be 1 to {MAX_HITS}, is {}", settings.hits),
                );
            }
        }
        errors.into_result(())
    }
}

/// Counts what a look saw, and decides what is said. `look` is the due time of the look, so that a repeated look has the same.
#[must_use]
pub fn look(
    counter: Counter,
    observed: &Observed,
    look: Timestamp,
    settings: CheckSettings,
) -> (Counter, Option<Say>) {
    if counter.has_seen(look) {
        return (counter, None);
    }
    let mut counter = Counter { seen: Some(look), ..counter };
    if !settings.enabled || observed.verdict == Verdict::Off {
        // Nobody knows whether it is right again.
        return (Counter { anomalies: 0, since: None, alerted_at: None, ..counter }, None);
    }
    match &observed.verdict {
        Verdict::Unknown | Verdict::Off => (counter, None),
        Verdict::Fine => {
            let say = counter.alerted_at.map(|alerted_at| Say::Recovery {
                check: observed.check,
                item: observed.item.clone(),
                count: counter.anomalies,
                since: counter.since.unwrap_or(alerted_at),
                alerted_at,
            });
            (Counter { anomalies: 0, since: None, alerted_at: None, ..counter }, say)
        }
        Verdict::Anomaly { what, remedy, snapshot } => {
            counter.anomalies = counter.anomalies.saturating_add(1);
            let since = *counter.since.get_or_insert(look);
            counter.last3.insert(0, snapshot.clone());
            counter.last3.truncate(SNAPSHOTS);
            let is_snoozed = counter.is_snoozed(look);
            let is_due = counter.anomalies >= u32::from(settings.hits.clamp(1, MAX_HITS));
            if counter.alerted_at.is_some() || is_snoozed || !is_due {
                return (counter, None);
            }
            counter.alerted_at = Some(look);
            let say = Say::Alert {
                check: observed.check,
                item: observed.item.clone(),
                what: what.clone(),
                remedy: remedy.clone(),
                count: counter.anomalies,
                since,
                last3: counter.last3.clone(),
                heal: heal(observed.check, &observed.item),
            };
            (counter, Some(say))
        }
    }
}

/// What the platform does by itself. Each is safe to repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Heal {
    /// Runs the daily synchronisation that was missed. What it has written is kept by date, so it writes nothing twice.
    RunMissedSync,
    /// Moves the messages that could not be handled back into their queue. Each of them is handled at most once.
    Redrive,
}

/// How often in a row the platform tries to heal. A message that can't be handled would come back for ever.
const HEALS: u32 = 2;

/// What heals an anomaly of this check of this item, if that is safe.
#[must_use]
pub fn heal(check: Check, item: &str) -> Option<Heal> {
    match check {
        // The subject of the job follows a colon.
        Check::Stale => {
            let kind = item.split(':').next().unwrap_or_default();
            (kind == JobKind::MemoryDaily.as_str()).then_some(Heal::RunMissedSync)
        }
        Check::DeadLetters => Some(Heal::Redrive),
        _ => None,
    }
}

/// What is tried after this look. Only the first two looks of a row try it.
#[must_use]
pub fn heal_now(counter: &Counter, observed: &Observed) -> Option<Heal> {
    let is_new = (1..=HEALS).contains(&counter.anomalies);
    let is_wrong = matches!(observed.verdict, Verdict::Anomaly { .. });
    heal(observed.check, &observed.item).filter(|_| is_new && is_wrong)
}
