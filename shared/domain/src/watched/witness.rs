//! The witness: schedules that something else runs (cron, a CI job, another agent), and whether it ran.
//!
//! A person declares when something runs. The thing reports after each run. The [`ledger`] compares the reports with the due times.
//!
//! # Which due time a report belongs to
//! A report belongs to at most one due time. It is decided by the reports since the due time before it, so what happened long ago
//! changes nothing:
//! - in the first half of the time until the next due time, it belongs to the due time before it;
//! - in the second half, it belongs to the next one, early, if a success has come since the one before it. If none has come, the report
//!   belongs to the one before it, late, unless that one's grace is over and the report comes within the grace before the next.
//!   So one run that is very late is not taken for the next one, and the next one is missed if it does not come;
//! - before the first due time, it belongs to the first one if it comes within the grace before it, and in the second half of a period.
//!   A report that tries out a new schedule is not taken for its first run.
//!
//! Of several reports for one due time, a success with a result counts before a success without one, and both before a failure. Of
//! equal ones, the first counts.

#[cfg(test)]
#[path = "witness_tests.rs"]
mod tests;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use url::Url;
use utoipa::ToSchema;

use crate::ids::WatchedId;
use crate::schedule::{Schedule, ScheduleInput};
use crate::text::names;
use crate::text::wording::span_in_words;
use crate::validate::FieldErrors;

/// The longest name, in characters.
pub const MAX_NAME: usize = 100;

/// The longest summary of a report, in bytes.
pub const MAX_SUMMARY: usize = 500;

/// The longest link of a report, in bytes.
pub const MAX_LINK: usize = 2_000;

/// The longest grace, in minutes.
pub const MAX_GRACE: u16 = 1_440;

/// How many changes of a schedule are kept. Those before them are forgotten, with their due times.
pub const MAX_ERAS: usize = 50;

/// The most due times in one [`ledger`].
pub const MAX_LEDGER: usize = 2_000;

/// How many due times before the first one of a ledger are counted through, so that reports at its beginning belong to the due times
/// that they belonged to before.
const WARM_UP: usize = 3;

/// How early a report for a schedule with a single due time may come.
const EARLIEST: SignedDuration = SignedDuration::from_hours(12);

const fn default_grace() -> u16 {
    30
}

/// What a person declares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWatched {
    /// 1 to 100 characters on one line.
    #[schema(min_length = 1, max_length = 100, example = "Nightly backup")]
    pub name: String,
    /// When it runs. Without a time zone: the account's. `overlap`, `catch_up`, `max_age` and `jitter` have no meaning here.
    pub schedule: ScheduleInput,
    /// How many minutes after a due time its report is not yet late, from 1 to 1,440. Default: 30.
    #[serde(default = "default_grace")]
    #[schema(minimum = 1, maximum = 1_440, example = 30)]
    pub grace_minutes: u16,
    /// Whether a success must have a result: a summary or a link. Default: false.
    #[serde(default)]
    pub expects_result: bool,
}

impl NewWatched {
    /// # Errors
    /// Every invalid field, with its limit.
    pub fn validate(self, watched_id: WatchedId, now: Timestamp) -> Result<Watched, FieldErrors> {
        let mut errors = FieldErrors::default();
        names::check(&mut errors, &self.name, MAX_NAME);
        check_grace(&mut errors, self.grace_minutes);
        let schedule = check_schedule(&mut errors, self.schedule);
        let Some(schedule) = schedule else { return Err(errors) };
        if schedule.next_after(now, now).is_none() {
            errors.add("schedule", "must have a due time that is still to come");
        }
        let era = Era { from: now, schedule: Some(schedule), anchor: now };
        errors.into_result(Watched {
            watched_id,
            name: names::canonical(&self.name),
            grace_minutes: self.grace_minutes,
            expects_result: self.expects_result,
            eras: vec![era],
        })
    }
}

fn check_grace(errors: &mut FieldErrors, minutes: u16) {
    if !(1..=MAX_GRACE).contains(&minutes) {
        errors.add("grace_minutes", format!("must be 1 to {MAX_GRACE}, is {minutes}"));
    }
}

fn check_schedule(errors: &mut FieldErrors, input: ScheduleInput) -> Option<Schedule> {
    for (field, given) in [
        ("overlap", input.overlap.is_some()),
        ("catch_up", input.catch_up.is_some()),
        ("max_age", input.max_age.is_some()),
        ("jitter", input.jitter.is_some()),
    ] {
        if given {
            errors.add(format!("schedule.{field}"), "has no meaning for a schedule that something else runs");
        }
    }
    errors.nest("schedule", input.validate())
}

/// What counted from a time on: a schedule, or none while it was paused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Era {
    from: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    schedule: Option<Schedule>,
    /// From when `every` counts. A pause does not change it.
    anchor: Timestamp,
}

/// A schedule that something else runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    pub watched_id: WatchedId,
    pub name: String,
    pub grace_minutes: u16,
    pub expects_result: bool,
    /// In the order of their times. It is never empty.
    eras: Vec<Era>,
}

impl Watched {
    /// The schedule that counts now. None while it is paused.
    #[must_use]
    pub fn schedule(&self) -> Option<&Schedule> {
        self.eras.last()?.schedule.as_ref()
    }

    /// The schedule that counts, or counted before the pause.
    #[must_use]
    pub fn last_schedule(&self) -> Option<&Schedule> {
        self.eras.iter().rev().find_map(|era| era.schedule.as_ref())
    }

    #[must_use]
    pub fn grace(&self) -> SignedDuration {
        SignedDuration::from_mins(i64::from(self.grace_minutes))
    }

    /// When it is due next. None while it is paused, and after its end.
    #[must_use]
    pub fn next_due(&self, now: Timestamp) -> Option<Timestamp> {
        let era = self.eras.last()?;
        era.schedule.as_ref()?.next_after(era.anchor, now.max(era.from))
    }

    /// Whether one that comes from outside is one that could have been made here.
    ///
    /// # Errors
    /// Every invalid field.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        names::check(&mut errors, &self.name, MAX_NAME);
        check_grace(&mut errors, self.grace_minutes);
        if !(1..=MAX_ERAS).contains(&self.eras.len()) {
            errors.add("eras", format!("must be 1 to {MAX_ERAS}, are {}", self.eras.len()));
        }
        if !self.eras.is_sorted_by_key(|era| era.from) {
            errors.add("eras", "must be in the order of their times");
        }
        for era in &self.eras {
            errors.time("eras.from", era.from);
            errors.time("eras.anchor", era.anchor);
        }
        if self.last_schedule().is_none() {
            errors.add("eras", "must have a schedule");
        }
        errors.into_result(())
    }

    /// Whether it was due after `from` and up to `until`, whatever became of it.
    #[must_use]
    pub fn was_due(&self, from: Timestamp, until: Timestamp) -> bool {
        !self.due_times(from, until, 1).is_empty()
    }

    /// With another name.
    ///
    /// # Errors
    /// What is wrong with the name.
    pub fn renamed(self, name: &str) -> Result<Self, FieldErrors> {
        let mut errors = FieldErrors::default();
        names::check(&mut errors, name, MAX_NAME);
        errors.into_result(Self { name: names::canonical(name), ..self })
    }

    /// With another grace. It holds for due times of the past, too.
    ///
    /// # Errors
    /// What is wrong with the minutes.
    pub fn with_grace(self, minutes: u16) -> Result<Self, FieldErrors> {
        let mut errors = FieldErrors::default();
        check_grace(&mut errors, minutes);
        errors.into_result(Self { grace_minutes: minutes, ..self })
    }

    /// With another schedule from now on. The due times before now stay. A paused one stays paused no longer.
    ///
    /// # Errors
    /// Every invalid field of the schedule.
    pub fn rescheduled(self, schedule: ScheduleInput, now: Timestamp) -> Result<Self, FieldErrors> {
        let mut errors = FieldErrors::default();
        let schedule = check_schedule(&mut errors, schedule);
        let Some(schedule) = schedule else { return Err(errors) };
        let unchanged = self.schedule() == Some(&schedule);
        errors.into_result(if unchanged { self } else { self.with_era(Some(schedule), now, now) })
    }

    /// Nothing is expected of it from now on. What is in its grace now is not expected any more, either.
    #[must_use]
    pub fn paused(self, now: Timestamp) -> Self {
        if self.schedule().is_none() { self } else { self.with_era(None, now, now) }
    }

    /// Its last schedule counts again from now on. `every` counts as if there had been no pause.
    #[must_use]
    pub fn resumed(self, now: Timestamp) -> Self {
        if self.schedule().is_some() {
            return self;
        }
        let last = self.eras.iter().rev().find(|era| era.schedule.is_some()).cloned();
        match last {
            Some(era) => self.with_era(era.schedule, era.anchor, now),
            None => self,
        }
    }

    fn with_era(mut self, schedule: Option<Schedule>, anchor: Timestamp, now: Timestamp) -> Self {
        // A clock that was set back does not change the order.
        let from = self.eras.last().map_or(now, |last| last.from.max(now));
        self.eras.push(Era { from, schedule, anchor });
        let over = self.eras.len().saturating_sub(MAX_ERAS);
        self.eras.drain(..over);
        self
    }

    /// The due times after `from` and up to `until`, with the end of the time in which their schedule counted.
    fn due_times(&self, from: Timestamp, until: Timestamp, most: usize) -> Vec<Due> {
        let mut found = Vec::new();
        for (at, era) in self.eras.iter().enumerate() {
            let ended = self.eras.get(at + 1).map(|next| next.from);
            let Some(schedule) = &era.schedule else { continue };
            let last = ended.map_or(until, |ended| ended.min(until));
            let mut next = schedule.next_after(era.anchor, from.max(era.from));
            while let Some(at) = next.filter(|at| *at <= last) {
                if found.len() >= most {
                    return found;
                }
                next = schedule.next_after(era.anchor, at);
                found.push(Due { at, next, ended, is_first: false });
            }
        }
        found
    }

    /// A few due times before this one, so that a ledger from here has the past that it needs.
    fn warm_up(&self, from: Timestamp) -> Timestamp {
        let oldest = self.eras.first().map_or(from, |era| era.from);
        let mut back = SignedDuration::from_hours(1);
        loop {
            let begin = from.checked_sub(back).unwrap_or(Timestamp::MIN).max(oldest);
            if begin <= oldest || self.due_times(begin, from, WARM_UP).len() >= WARM_UP {
                return begin.min(from);
            }
            back = back.saturating_mul(4);
        }
    }
}

/// A due time.
#[derive(Clone, Copy, Debug)]
struct Due {
    at: Timestamp,
    /// The next one of its schedule, also if another schedule counts by then.
    next: Option<Timestamp>,
    /// When its schedule was changed or paused.
    ended: Option<Timestamp>,
    is_first: bool,
}

impl Due {
    /// From when on a report may be for it, if the due time before it has its own.
    fn opens(&self, before: Option<Timestamp>) -> Timestamp {
        let to_next = self.next.map(|next| next.duration_since(self.at) / 2);
        let from_last = before.map(|before| self.at.duration_since(before) / 2);
        let half = [to_next, from_last].into_iter().flatten().min().unwrap_or(EARLIEST);
        self.at.checked_sub(half).unwrap_or(Timestamp::MIN)
    }
}

/// What the thing says after a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NewReport {
    /// Whether it succeeded. Default: true, unless `exit_code` is given and is not 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ok: Option<bool>,
    /// What came of it. At most 500 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 500, example = "412 files, 3.1 GB")]
    pub summary: Option<String>,
    /// Where its result is: an `https` address of at most 2,000 bytes. It is shown as a link and never requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 2_000, example = "https://ci.example.com/runs/7")]
    pub link: Option<String>,
    /// The exit code of the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 0)]
    pub exit_code: Option<i32>,
}

impl NewReport {
    /// # Errors
    /// Every invalid field, with its limit.
    pub fn validate(self, now: Timestamp) -> Result<Report, FieldErrors> {
        let mut errors = FieldErrors::default();
        let summary = self.summary.unwrap_or_default();
        check_result(&mut errors, &summary, self.link.as_deref());
        if self.ok == Some(true) && self.exit_code.is_some_and(|code| code != 0) {
            errors.add("ok", "must not be true if `exit_code` is not 0");
        }
        errors.into_result(Report {
            at: now,
            ok: self.ok.unwrap_or(self.exit_code.is_none_or(|code| code == 0)),
            summary: summary.trim().to_owned(),
            link: self.link,
            exit_code: self.exit_code,
        })
    }
}

fn check_result(errors: &mut FieldErrors, summary: &str, link: Option<&str>) {
    if summary.len() > MAX_SUMMARY {
        errors.add("summary", format!("must be at most {MAX_SUMMARY} bytes, is {}", summary.len()));
    }
    if summary.contains('\0') {
        errors.add("summary", "must not have the character NUL");
    }
    if let Some(link) = link {
        check_link(errors, link);
    }
}

fn check_link(errors: &mut FieldErrors, link: &str) {
    if link.len() > MAX_LINK {
        errors.add("link", format!("must be at most {MAX_LINK} bytes, is {}", link.len()));
        return;
    }
    let is_clean = !link.contains(|c: char| c.is_control() || c.is_whitespace());
    let url = Url::parse(link).ok().filter(|url| url.scheme() == "https" && url.has_host() && is_clean);
    match url {
        None => errors.add("link", "must be an address that begins with https:// and has no blanks"),
        Some(url) if !url.username().is_empty() || url.password().is_some() => {
            errors.add("link", "must not have a user name or a password");
        }
        Some(_) => {}
    }
}

/// A report that was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Report {
    /// When it came.
    pub at: Timestamp,
    /// Whether it says that it has succeeded.
    pub ok: bool,
    /// What came of it. It comes from outside.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Where its result is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// The exit code of the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

impl Report {
    /// Which of two reports for one due time counts: the higher one.
    fn rank(&self) -> u8 {
        match (self.ok, self.has_result()) {
            (true, true) => 2,
            (true, false) => 1,
            (false, _) => 0,
        }
    }

    /// Whether a report that comes from outside could have been taken.
    ///
    /// # Errors
    /// Every invalid field.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        check_result(&mut errors, &self.summary, self.link.as_deref());
        if self.ok && self.exit_code.is_some_and(|code| code != 0) {
            errors.add("ok", "must not be true if `exit_code` is not 0");
        }
        errors.into_result(())
    }

    #[must_use]
    pub fn has_result(&self) -> bool {
        self.link.is_some() || !self.summary.trim().is_empty()
    }
}

/// What became of a due time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExpectedState {
    /// No report yet, and the grace is not over.
    Waiting,
    /// It reported a success in time.
    Ran,
    /// It reported a success after the grace.
    Late,
    /// No report, and the grace is over.
    Silent,
    /// It reported a success without a result, although one is expected.
    Empty,
    /// It reported a failure.
    Failed,
}

/// A due time of a watched schedule, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Expected {
    /// When it was due.
    pub due: Timestamp,
    pub state: ExpectedState,
    /// The report that counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
    /// How many reports belong to it.
    pub reports: u32,
    /// The reason for the state, in a sentence.
    pub why: String,
}

/// How a watched schedule is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WatchedState {
    /// Nothing is expected of it.
    Paused,
    /// No report has come, and no due time whose outcome is known.
    Waiting,
    /// It reported a success.
    Ran,
    /// It reported a success after the grace.
    Late,
    /// No report came for the newest due time.
    Silent,
    /// It reported a success without a result, although one is expected.
    Empty,
    /// It reported a failure, and no success since.
    Failed,
}

/// How a watched schedule is now, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    pub state: WatchedState,
    /// The reason for the state, in a sentence.
    pub why: String,
}

/// How a schedule is at `now`. `ledger` is its [`newest`] one, and `report` the newest report, whether or not it belongs to a due time.
///
/// The newest due time whose outcome is known decides, with two exceptions. A failure counts at once, also before the first due time and
/// after a success for the same due time, until a success or a silent due time follows. A success ends a failure at once, also if it
/// belongs to the next due time.
#[must_use]
pub fn standing(watched: &Watched, ledger: &[Expected], report: Option<&Report>, now: Timestamp) -> Standing {
    if watched.schedule().is_none() {
        return Standing { state: WatchedState::Paused, why: "It is paused.".to_owned() };
    }
    let last = ledger.iter().rev().find(|expected| expected.state != ExpectedState::Waiting);
    let is_last = |state| last.is_some_and(|last| last.state == state);
    // The clock may have been set back.
    if let Some(report) = report.filter(|report| report.at <= now) {
        let is_missed_since = is_last(ExpectedState::Silent) && last.is_some_and(|last| last.due > report.at);
        if !report.ok && !is_missed_since {
            let same = last.filter(|last| last.report.as_ref() == Some(report));
            let why = same.map_or_else(|| format!("{}.", failure_words(report)), |last| last.why.clone());
            return Standing { state: WatchedState::Failed, why };
        }
        if report.ok && (last.is_none() || is_last(ExpectedState::Failed)) {
            return match watched.expects_result && !report.has_result() {
                true => Standing { state: WatchedState::Empty, why: format!("{EMPTY_WORDS}.") },
                false => Standing { state: WatchedState::Ran, why: "It reported a success.".to_owned() },
            };
        }
    }
    let Some(last) = last else {
        let waits = ledger.last().map(|waiting| waiting.why.clone());
        let why = waits.unwrap_or_else(|| "No due time has come yet.".to_owned());
        return Standing { state: WatchedState::Waiting, why };
    };
    let state = match last.state {
        ExpectedState::Waiting => WatchedState::Waiting,
        ExpectedState::Ran => WatchedState::Ran,
        ExpectedState::Late => WatchedState::Late,
        ExpectedState::Silent => WatchedState::Silent,
        ExpectedState::Empty => WatchedState::Empty,
        ExpectedState::Failed => WatchedState::Failed,
    };
    Standing { state, why: last.why.clone() }
}

/// The due times after `from` and up to `now`, in order, at most [`MAX_LEDGER`]. For later ones, ask again from the last of them.
///
/// `reports` are all reports since [`reports_from`]; their order does not matter. Those of the future are not counted: the clock has
/// been set back.
#[must_use]
pub fn ledger(watched: &Watched, reports: &[Report], from: Timestamp, now: Timestamp) -> Vec<Expected> {
    let begin = watched.warm_up(from);
    let warm = watched.due_times(begin, from.min(now), MAX_LEDGER).len();
    let mut dues = watched.due_times(begin, now, warm + MAX_LEDGER);
    // One due time ahead: early reports belong to it.
    let last = dues.last().map_or(now.max(begin), |due| due.at);
    if let Some(next) = watched.due_after(last) {
        dues.push(next);
    }
    let oldest = watched.eras.first().map(|era| era.from);
    if let Some(first) = dues.first_mut() {
        first.is_first = oldest.is_some_and(|oldest| begin <= oldest);
    }
    let mut mine: Vec<Vec<&Report>> = vec![Vec::new(); dues.len()];
    let mut sorted: Vec<&Report> = reports.iter().filter(|report| report.at <= now).collect();
    sorted.sort_by_key(|report| report.at);
    for report in sorted {
        let after = dues.partition_point(|due| due.at <= report.at);
        let last = after.checked_sub(1);
        let next = dues.get(after).filter(|next| report.at >= next.opens(last.map(|last| dues[last].at)));
        let belongs_to = match (last, next) {
            (Some(last), Some(next)) => {
                let due = dues[last].at;
                let is_served = mine[last].iter().any(|report| report.ok && report.at >= due);
                let is_over = report.at.duration_since(due) > watched.grace();
                let is_close = next.at.duration_since(report.at) <= watched.grace();
                Some(if is_served || (is_over && is_close) { after } else { last })
            }
            (Some(last), None) => Some(last),
            (None, Some(next)) => {
                let is_close = next.at.duration_since(report.at) <= watched.grace();
                (next.is_first && is_close).then_some(after)
            }
            (None, None) => None,
        };
        if let Some(at) = belongs_to {
            mine[at].push(report);
        }
    }
    let judged = dues.iter().zip(mine).filter(|(due, _)| due.at > from && due.at <= now);
    judged.filter_map(|(due, reports)| expected(watched, *due, &reports, now)).take(MAX_LEDGER).collect()
}

/// From when on [`ledger`] needs reports for the due times after `from`.
#[must_use]
pub fn reports_from(watched: &Watched, from: Timestamp) -> Timestamp {
    let begin = watched.warm_up(from);
    // A report for the first of them may be early by half of its period.
    let first = watched.due_after(begin);
    first.map_or(begin, |first| first.opens(None).min(begin))
}

/// Until when reports may belong to the due times up to `until`.
#[must_use]
pub fn reports_until(watched: &Watched, until: Timestamp) -> Timestamp {
    watched.due_after(until).map_or(Timestamp::MAX, |next| next.at)
}

/// The ledger of the newest due times: it goes back until the outcome of one is known, at most a year.
#[must_use]
pub fn newest(watched: &Watched, reports: &[Report], now: Timestamp) -> Vec<Expected> {
    // The next period says how long the last one may have been.
    let next = watched.due_after(now);
    let period = next.and_then(|due| Some(due.next?.duration_since(due.at))).unwrap_or(SignedDuration::ZERO);
    let mut back = period.saturating_add(SignedDuration::from_hours(2) + watched.grace()).min(YEAR);
    loop {
        let from = now.checked_sub(back).unwrap_or(Timestamp::MIN);
        let found = ledger(watched, reports, from, now);
        let is_known = found.iter().any(|expected| expected.state != ExpectedState::Waiting);
        if is_known || back >= YEAR {
            return found;
        }
        back = back.saturating_mul(4).min(YEAR);
    }
}

/// The longest period of a schedule, and its grace.
const YEAR: SignedDuration = SignedDuration::from_hours(367 * 24);

impl Watched {
    /// The first due time after this.
    fn due_after(&self, after: Timestamp) -> Option<Due> {
        self.due_times(after, Timestamp::MAX, 1).first().copied()
    }
}

/// What became of a due time. None: its schedule was changed or paused before its grace was over.
fn expected(watched: &Watched, due: Due, reports: &[&Report], now: Timestamp) -> Option<Expected> {
    let grace = watched.grace();
    let until = due.at.checked_add(grace).unwrap_or(Timestamp::MAX);
    // Of equal ones, the first.
    let best = reports.iter().rev().max_by_key(|report| report.rank()).copied();
    let (state, why) = match best {
        None if due.ended.is_some_and(|ended| ended < until) => return None,
        None if now <= until => {
            (ExpectedState::Waiting, format!("A report is expected within {}.", span_in_words(grace)))
        }
        None => (
            ExpectedState::Silent,
            format!("No report came within {} after the due time.", span_in_words(grace)),
        ),
        Some(report) if !report.ok => {
            (ExpectedState::Failed, format!("{} {}.", failure_words(report), when(due.at, report.at)))
        }
        Some(report) if watched.expects_result && !report.has_result() => {
            (ExpectedState::Empty, format!("{EMPTY_WORDS} {}.", when(due.at, report.at)))
        }
        Some(report) if report.at > until => (
            ExpectedState::Late,
            format!("It reported {}, and {} are allowed.", when(due.at, report.at), span_in_words(grace)),
        ),
        Some(report) => (ExpectedState::Ran, format!("It reported {}.", when(due.at, report.at))),
    };
    let count = u32::try_from(reports.len()).unwrap_or(u32::MAX);
    Some(Expected { due: due.at, state, report: best.cloned(), reports: count, why })
}

const EMPTY_WORDS: &str = "It reported a success without a summary and without a link";

/// "It reported a failure with exit code 3"
fn failure_words(report: &Report) -> String {
    let code = report.exit_code.map(|code| format!(" with exit code {code}")).unwrap_or_default();
    format!("It reported a failure{code}")
}

/// "3 minutes after the due time"
fn when(due: Timestamp, at: Timestamp) -> String {
    if at < due {
        format!("{} before the due time", span_in_words(due.duration_since(at)))
    } else {
        format!("{} after the due time", span_in_words(at.duration_since(due)))
    }
}
