//! From facts to observations. Each function answers every check that it knows, also with "fine", so that rows end.

use jiff::{SignedDuration, Timestamp};

use super::{Check, Observed};
use crate::background::jobs::{JobKind, JobRun, JobState};
use crate::ceilings::CeilingOf;
use crate::ids::ActionId;
use crate::text::wording::span_in_words;
use crate::watched::witness::{Expected, Report, Standing, Watched, WatchedState, standing};

/// How long after its due time a job that has not begun is stale.
pub const STALE_AFTER: SignedDuration = SignedDuration::from_hours(2);

/// How long a job may run. After that, its process has died.
pub const LONGEST_JOB: SignedDuration = SignedDuration::from_hours(2);

/// How long the oldest message of a queue may wait. Messages may be delayed by 15 minutes.
pub const OLDEST_MESSAGE: SignedDuration = SignedDuration::from_mins(30);

/// How many failed runs in a row of an action are an anomaly.
pub const FAILS_IN_A_ROW: u32 = 2;

/// How many runs in a row that deliver the same as the run before are an anomaly.
pub const SAME_IN_A_ROW: u32 = 3;

/// How far ahead of now a sign of life may be: the clocks of two machines differ.
const CLOCKS_DIFFER: SignedDuration = SignedDuration::from_mins(5);

/// What is wrong with a watched schedule.
const SILENT: &str = "It is silent";
const LATE: &str = "It was late";
const EMPTY: &str = "It had no result";

const DAY: SignedDuration = SignedDuration::from_hours(24);

/// By how many thousandths of a ceiling the costs may be ahead of the time.
const AHEAD: i128 = 250;

/// Judges whether a timer of the platform is on. `enabled`: none if it could not be read.
#[must_use]
pub fn judge_timer(name: &str, enabled: Option<bool>, now: Timestamp) -> Observed {
    match enabled {
        None => Observed::unknown(Check::TimerDisabled, name),
        Some(true) => Observed::fine(Check::TimerDisabled, name),
        Some(false) => Observed::anomaly(
            Check::TimerDisabled,
            name,
            &format!("The timer {name} is switched off."),
            "Enable the rule of this timer.",
            now,
        ),
    }
}

/// What is known about the jobs of one kind and subject.
#[derive(Clone, Copy, Debug)]
pub struct JobFacts<'a> {
    pub kind: JobKind,
    /// Of whom or what it is a job. Empty for jobs of the platform.
    pub subject: &'a str,
    /// The newest of them that has begun.
    pub last: Option<&'a JobRun>,
    /// The first due time after it. None for jobs that somebody asks for.
    pub next_due: Option<Timestamp>,
}

impl JobFacts<'_> {
    /// The name of its counters: `memory_daily`, or `theme_index:prj_…`.
    #[must_use]
    pub fn item(&self) -> String {
        let colon = if self.subject.is_empty() { "" } else { ":" };
        format!("{}{colon}{}", self.kind.as_str(), self.subject)
    }
}

/// Judges the newest run of a job, and whether the next one is late.
#[must_use]
pub fn judge_job(facts: JobFacts<'_>, now: Timestamp) -> Vec<Observed> {
    let item = facts.item();
    let words = capital(facts.kind.words());
    let failed = match facts.last {
        None => Observed::fine(Check::JobFailed, &item),
        Some(job) => match job.state {
            JobState::Succeeded | JobState::Skipped => Observed::fine(Check::JobFailed, &item),
            JobState::Failed => Observed::anomaly(
                Check::JobFailed,
                &item,
                &format!("{words} has failed: {}", job.error.as_deref().unwrap_or("no reason was noted")),
                "Read the reason, mend the cause, and run the job again.",
                now,
            ),
            JobState::Running if now.duration_since(job.started_at) > LONGEST_JOB => Observed::anomaly(
                Check::JobFailed,
                &item,
                &format!("{words} began {} ago and has not ended.", ago(job.started_at, now)),
                "Its process has died. Read the log, and run the job again.",
                now,
            ),
            JobState::Running => Observed::unknown(Check::JobFailed, &item),
        },
    };
    let stale = match facts.next_due {
        Some(due) if now.duration_since(due) > STALE_AFTER => Observed::anomaly(
            Check::Stale,
            &item,
            &format!("{words} was due {} ago and has not begun.", ago(due, now)),
            "Check that its timer and the executors' queue work, or run the job by hand.",
            now,
        ),
        _ => Observed::fine(Check::Stale, &item),
    };
    let empty = match facts.last {
        Some(job) if job.is_empty_success() => Observed::anomaly(
            Check::EmptySuccess,
            &item,
            &format!(
                "{words} succeeded and has written nothing, although it found work: {}.",
                job.work_found
            ),
            "Run the job again, and read its log. What it found is not done.",
            now,
        ),
        // A job that has not ended or has failed says nothing about this.
        Some(JobRun { state: JobState::Running | JobState::Failed, .. }) => {
            Observed::unknown(Check::EmptySuccess, &item)
        }
        _ => Observed::fine(Check::EmptySuccess, &item),
    };
    vec![failed, stale, empty]
}

/// What is known about a queue. None: it could not be read.
#[derive(Clone, Copy, Debug)]
pub struct QueueFacts<'a> {
    pub name: &'a str,
    /// How long its oldest message has waited. Zero if it is empty.
    pub oldest: Option<SignedDuration>,
    /// How many messages could not be handled.
    pub dead_letters: Option<u64>,
}

#[must_use]
pub fn judge_queue(facts: QueueFacts<'_>, now: Timestamp) -> Vec<Observed> {
    let QueueFacts { name, oldest, dead_letters } = facts;
    let age = match oldest {
        None => Observed::unknown(Check::QueueAge, name),
        Some(age) if age > OLDEST_MESSAGE => Observed::anomaly(
            Check::QueueAge,
            name,
            &format!("The oldest message of the queue {name} has waited for {}.", span_in_words(age)),
            "Check that its function runs and is not throttled.",
            now,
        ),
        Some(_) => Observed::fine(Check::QueueAge, name),
    };
    let dead = match dead_letters {
        None => Observed::unknown(Check::DeadLetters, name),
        Some(0) => Observed::fine(Check::DeadLetters, name),
        Some(count) => Observed::anomaly(
            Check::DeadLetters,
            name,
            &format!("Messages of the queue {name} could not be handled: {count}."),
            "Read the log of its function, mend the cause, and move the messages back.",
            now,
        ),
    };
    vec![age, dead]
}

/// What is known about a ceiling. All amounts are micro-dollars.
#[derive(Clone, Copy, Debug)]
pub struct BudgetFacts<'a> {
    pub of: CeilingOf,
    /// Whose ceiling it is: the id of an action or an agent. Empty for the owner's.
    pub subject: &'a str,
    /// None: there is no ceiling.
    pub ceiling_micros: Option<i64>,
    /// What was spent since `begins`.
    pub spent_micros: i64,
    /// What was spent in the last 24 hours.
    pub last_day_micros: i64,
    /// When the time of the ceiling began and ends: a month, for example.
    pub begins: Timestamp,
    pub ends: Timestamp,
}

/// Judges whether a ceiling is reached before its time is over: within a day at the pace of the last day, or because the costs are
/// far ahead of the time.
#[must_use]
pub fn judge_budget(facts: BudgetFacts<'_>, now: Timestamp) -> Observed {
    let colon = if facts.subject.is_empty() { "" } else { ":" };
    let name = match facts.of {
        CeilingOf::Run => "run",
        CeilingOf::ActionMonth => "action_month",
        CeilingOf::AgentMonth => "agent_month",
        CeilingOf::Day => "day",
        CeilingOf::Month => "month",
    };
    let item = format!("{name}{colon}{}", facts.subject);
    let Some(ceiling) = facts.ceiling_micros.filter(|ceiling| *ceiling > 0).map(i128::from) else {
        return Observed::off(Check::BudgetBurn, &item);
    };
    let whole = facts.ends.duration_since(facts.begins).as_secs();
    if whole <= 0 || now < facts.begins || now >= facts.ends {
        // The facts are those of another time.
        return Observed::unknown(Check::BudgetBurn, &item);
    }
    let spent = i128::from(facts.spent_micros.max(0));
    let (gone, whole) = (i128::from(now.duration_since(facts.begins).as_secs()), i128::from(whole));
    let is_ahead = spent * whole * 1_000 > ceiling * (gone * 1_000 + whole * AHEAD);
    let spent_share = spent * 100 / ceiling;
    let left = (ceiling - spent).max(0);
    // The part of a day until the time of the ceiling is over.
    let ahead = i128::from(facts.ends.duration_since(now).min(DAY).as_secs());
    let needs = i128::from(facts.last_day_micros.max(0)) * ahead / i128::from(DAY.as_secs());
    let of = capital(&facts.of.to_string());
    let what = if left == 0 {
        format!("{of} is reached.")
    } else if needs >= left {
        format!("{of} is reached within a day at this pace: {spent_share} % of it are spent.")
    } else if is_ahead {
        format!(
            "Of {}, {} % are spent, and {} % of its time are over.",
            facts.of,
            spent_share,
            gone * 100 / whole
        )
    } else {
        return Observed::fine(Check::BudgetBurn, &item);
    };
    let remedy = "Look at what costs most, and pause it or raise the ceiling.";
    Observed::anomaly(Check::BudgetBurn, &item, &what, remedy, now)
}

/// What is known about an action.
#[derive(Clone, Copy, Debug)]
pub struct ActionFacts<'a> {
    pub action_id: ActionId,
    /// It is approved, not paused by a person, and waits for its next time.
    pub enabled: bool,
    /// The platform has paused it because it failed again and again.
    pub paused_by_failures: bool,
    /// A run is live. The next time may be set when it ends.
    pub is_live: bool,
    pub next: Option<Timestamp>,
    /// Failed runs in a row, up to now.
    pub failures: u32,
    /// The code of the newest failure.
    pub code: Option<&'a str>,
    /// Runs in a row, up to now, that succeeded and delivered the same as the run before.
    pub same: u32,
}

#[must_use]
pub fn judge_action(facts: ActionFacts<'_>, now: Timestamp) -> Vec<Observed> {
    let item = facts.action_id.to_string();
    let if_wrong = |check, wrong: Option<(String, &str)>| match wrong {
        Some((what, remedy)) => Observed::anomaly(check, &item, &what, remedy, now),
        None => Observed::fine(check, &item),
    };
    let fails = (facts.failures >= FAILS_IN_A_ROW).then(|| {
        let paused = if facts.paused_by_failures { " It is paused." } else { "" };
        let code = facts.code.unwrap_or("failed");
        (
            format!("The action has failed {} times in a row: {code}.{paused}", facts.failures),
            "Read why its newest run failed, change the action, and run it once by hand.",
        )
    });
    let fails = match facts.enabled || facts.paused_by_failures {
        true => if_wrong(Check::ActionFails, fails),
        false => Observed::off(Check::ActionFails, &item),
    };
    if !facts.enabled {
        let off = [Check::ActionRepeats, Check::ActionWithoutNext, Check::Stale];
        return std::iter::once(fails).chain(off.map(|check| Observed::off(check, &item))).collect();
    }
    let repeats = (facts.same >= SAME_IN_A_ROW).then(|| {
        (
            format!("The action has delivered the same output again, {} times in a row.", facts.same),
            "Read its newest run. Say in its instructions what must be new, or run it less often.",
        )
    });
    let without = (!facts.is_live && facts.next.is_none()).then(|| {
        ("The action is enabled and has no next time.".to_owned(), "Change its schedule, or archive it.")
    });
    let late = facts.next.filter(|next| !facts.is_live && now.duration_since(*next) > STALE_AFTER);
    let late = late.map(|next| {
        (
            format!("The action was due {} ago and has not begun.", ago(next, now)),
            "Check that the sweep and the executors' queue work, or run it by hand.",
        )
    });
    vec![
        fails,
        if_wrong(Check::ActionRepeats, repeats),
        if_wrong(Check::ActionWithoutNext, without),
        if_wrong(Check::Stale, late),
    ]
}

/// Judges a sign of life. `last`: none if there never was one. If it could not be read, call
/// [`Observed::unknown`] instead.
#[must_use]
pub fn judge_heartbeat(
    name: &str,
    last: Option<Timestamp>,
    longest: SignedDuration,
    now: Timestamp,
) -> Observed {
    let what = match last {
        None => format!("{name} has never given a sign of life."),
        Some(last) if last.duration_since(now) > CLOCKS_DIFFER => {
            format!(
                "The last sign of life of {name} lies {} in the future.",
                span_in_words(last.duration_since(now))
            )
        }
        Some(last) if now.duration_since(last) > longest => {
            format!("The last sign of life of {name} was {} ago.", ago(last, now))
        }
        Some(_) => return Observed::fine(Check::Heartbeat, name),
    };
    Observed::anomaly(
        Check::Heartbeat,
        name,
        &what,
        "Check its timer, the log of its function, and the clock of its machine.",
        now,
    )
}

/// Judges a watched schedule by how it is now. `ledger` is its newest one, in the order of the due times. `report` is the newest report.
#[must_use]
pub fn judge_watched(
    watched: &Watched,
    ledger: &[Expected],
    report: Option<&Report>,
    now: Timestamp,
) -> Observed {
    let item = watched.watched_id.to_string();
    let Standing { state, why } = standing(watched, ledger, report, now);
    let (what, remedy) = match state {
        WatchedState::Paused => return Observed::off(Check::WatchedSchedule, &item),
        WatchedState::Waiting => return Observed::unknown(Check::WatchedSchedule, &item),
        WatchedState::Ran => return Observed::fine(Check::WatchedSchedule, &item),
        WatchedState::Late => (LATE, "Look at what delays it, or allow more minutes."),
        WatchedState::Silent => (SILENT, "Check that the program runs and that it can reach the platform."),
        WatchedState::Empty => (EMPTY, "Look at what it did. A report needs a summary or a link."),
        WatchedState::Failed => ("It has failed", "Read the log of the program."),
    };
    Observed::anomaly(Check::WatchedSchedule, &item, &format!("{what}. {why}"), remedy, now)
}

/// What was wrong, in words for a time when it is right again. `seen`: the text of the newest anomaly.
#[must_use]
pub fn was(check: Check, seen: &str) -> String {
    let words = match check {
        Check::WatchedSchedule if seen.starts_with(SILENT) => "It was silent.",
        Check::WatchedSchedule if seen.starts_with(LATE) => "It was late.",
        Check::WatchedSchedule if seen.starts_with(EMPTY) => "It had no result.",
        Check::WatchedSchedule | Check::ActionFails => "It had failed.",
        Check::JobFailed => "It had failed, or had not ended in time.",
        Check::Stale => "It had not begun in time.",
        Check::EmptySuccess => "It had written nothing, although there was work.",
        Check::BudgetBurn => "The ceiling was reached, or nearly.",
        Check::ActionRepeats => "It had delivered the same output several times in a row.",
        Check::ActionWithoutNext => "It had no next time.",
        Check::TimerDisabled | Check::QueueAge | Check::DeadLetters | Check::Heartbeat => seen,
    };
    words.to_owned()
}

fn ago(at: Timestamp, now: Timestamp) -> String {
    span_in_words(now.duration_since(at))
}

/// A text with a capital at its beginning.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
