//! A day: what became of its due times, what ran by hand, and what is still due.
//!
//! An occurrence's id begins with its due time, so the occurrences of a day are one range of each action's partition. Only actions
//! that have changed since the day began can have any: each decision about a due time changes the action.

use std::collections::BTreeMap;

use domain::actions::idle::{Idle, IdleCode};
use domain::actions::{Action, Occurrence, OccurrenceKind, OccurrenceState, ReasonCode};
use domain::background::jobs::JobRun;
use domain::ids::{ActionId, AgentId, Owner, RunId};
use domain::schedule::{timezone_named, zone_or_utc};
use domain::validate::FieldErrors;
use futures::stream::{self, StreamExt, TryStreamExt};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::watched::{self, WatchedDue};
use super::{AT_ONCE, Found, actions, agents_of, cut, live, open_turns, sentence, shown};
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::background::jobs;
use crate::flows::notices::reach::{self, Reaches};
use crate::process::compute::{Stop, Stopped};
use crate::store::keys;
use crate::store::table::Order;

/// The most items of one action.
const MAX_OF_ACTION: usize = 100;

/// The most items of an answer.
const MAX_ITEMS: usize = 1_000;

/// The most jobs of an answer.
const MAX_JOBS: usize = 100;

/// How many due times of one action are counted.
const MAX_COUNTED: usize = 1_500;

/// How many due times that are still to come are computed for one answer.
const MAX_COMPUTED: usize = 50_000;

/// How many records before the day are read. One of them may be about due times of the day, too.
const BEFORE: usize = 3;

/// How much earlier than its due time an occurrence may be written, if the clocks of processes differ.
const SLACK: SignedDuration = SignedDuration::from_mins(10);

/// How far away a day may be. Occurrences are kept for 400 days.
const MAX_DAYS: i32 = 400;

/// Which day.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct AskedDay {
    /// The day, such as `2026-11-25`: at most 400 days ago or ahead. Default: today.
    #[param(value_type = Option<String>, format = Date)]
    pub date: Option<String>,
    /// The IANA name of the time zone of the day. Default: that of the account.
    pub timezone: Option<String>,
}

/// A day in a time zone.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Day {
    #[schema(value_type = String, format = Date, example = "2026-11-25")]
    pub date: Date,
    #[schema(example = "Europe/Berlin")]
    pub timezone: String,
    /// When the day begins. It has 23 or 25 hours if the clock changes on it.
    pub from: Timestamp,
    /// When the next day begins.
    pub to: Timestamp,
    /// When this answer was made.
    pub now: Timestamp,
    /// Sorted by time. At most 100 of one action, and 1,000 in all: those that are nearest to `now`.
    pub data: Vec<DayItem>,
    /// The background jobs that were due on the day, oldest first. The newest 100.
    pub jobs: Vec<JobRun>,
    /// Whether `data`, `jobs`, `not_running` and `not_running_later` have everything.
    pub complete: bool,
    /// The actions with further items.
    pub more: Vec<MoreOfAction>,
    /// Actions with due times on the rest of the day that will not run, with the reason, soonest first. At most 100.
    pub not_running: Vec<NotRunning>,
    /// Only of today: the same for actions whose next due time is on a later day. At most 100.
    pub not_running_later: Vec<NotRunning>,
    /// The due times of schedules that something else runs, sorted by time. At most 100 of one schedule, and 500 in all: those that are
    /// nearest to `now`.
    pub watched: Vec<WatchedDue>,
    /// Whether `watched` has all of them.
    pub watched_complete: bool,
    /// How many runs are under way. Runs that wait for a person are not counted.
    pub live: usize,
    /// When the account was stopped. Absent if it is not stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<Timestamp>,
    /// Why nobody is told of the results of actions that run by themselves, as a sentence. Absent if somebody is, and if no action has a
    /// due time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untold: Option<String>,
}

/// A due time, or a run that was started by hand.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct DayItem {
    /// The due time. Of a run by hand: when it was asked for.
    pub at: Timestamp,
    pub action_id: ActionId,
    pub action_title: String,
    pub agent_id: AgentId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_name: Option<String>,
    /// As in `GET /actions/{action_id}/runs`, but `running` also stands for `claimed`. `due` also stands for what is still to come, which has no `run_id`.
    pub state: OccurrenceState,
    /// Absent for what is still to come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<OccurrenceKind>,
    /// Why it did not simply succeed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason_code: Option<ReasonCode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<u8>,
    /// If it stands for several due times that did not run: how many, from `at` on. `at` may be before the day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_times: Option<u32>,
    /// The last of these due times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_due_at: Option<Timestamp>,
    /// For people.
    #[schema(example = "Failed: the provider does not accept the API key.")]
    pub text: String,
}

/// What an answer leaves out of an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct MoreOfAction {
    pub action_id: ActionId,
    /// How many due times and runs were left out. Of one action, at most 1,500 that have passed and 1,500 that are to come are counted.
    pub count: usize,
}

/// An action whose due times will not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct NotRunning {
    pub action_id: ActionId,
    pub action_title: String,
    pub agent_id: AgentId,
    pub agent_name: String,
    /// Its next due time. Of an action that is not approved: the one that it would have if it were approved now.
    pub next_at: Timestamp,
    /// `account_stopped` only if there is no other reason: `stopped_at` of the day says it of all.
    pub code: IdleCode,
    /// For people.
    #[schema(example = "The agent is paused.")]
    pub text: String,
}

/// The most entries of `not_running`, and of `not_running_later`.
const MAX_NOT_RUNNING: usize = 100;

/// A day as instants.
#[derive(Clone, Debug)]
struct Span {
    date: Date,
    timezone: String,
    from: Timestamp,
    to: Timestamp,
}

/// What an action has on a day.
struct OfAction {
    action: Action,
    agent_name: Option<String>,
    /// Newest first.
    past: Vec<Occurrence>,
    /// How many further ones there are.
    more_past: usize,
    /// Soonest first.
    coming: Vec<Timestamp>,
    more_coming: usize,
}

impl AskedDay {
    fn read(&self, zone: &str, now: Timestamp) -> Result<Span> {
        let mut errors = FieldErrors::default();
        let timezone = match self.timezone.as_deref().map(timezone_named) {
            None => zone.to_owned(),
            Some(Ok(name)) => name,
            Some(Err(wrong)) => {
                errors.add("timezone", wrong);
                "UTC".to_owned()
            }
        };
        let zone = zone_or_utc(&timezone);
        let today = zone.to_datetime(now).date();
        let date = match &self.date {
            None => today,
            Some(text) => match plain_date(text) {
                Some(date) if (date - today).get_days().abs() <= MAX_DAYS => date,
                Some(date) => {
                    let message =
                        format!("must be at most {MAX_DAYS} days before or after {today}, is {date}");
                    errors.add("date", message);
                    today
                }
                None => {
                    errors.add("date", "must be a day such as 2026-11-25");
                    today
                }
            },
        };
        errors.into_result(())?;
        let next = date.checked_add(1.day()).map_err(|error| Error::internal(error.to_string()))?;
        let (from, to) = (begin(&zone, date)?, begin(&zone, next)?);
        Ok(Span { date, timezone, from, to })
    }
}

/// A day in the form `2026-11-25` only. Other forms would be read differently by other programs.
fn plain_date(text: &str) -> Option<Date> {
    let is_plain = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    is_plain.then(|| text.parse().ok()).flatten()
}

/// The first instant of a day. If the clock shows midnight twice, the first one; if it skips midnight, the first instant after it.
fn begin(zone: &TimeZone, date: Date) -> Result<Timestamp> {
    let begin = date.to_zoned_datetime(zone.clone()).and_then(|zoned| zoned.start_of_day());
    Ok(begin.map_err(|error| Error::internal(error.to_string()))?.timestamp())
}

/// # Errors
/// 400 if the day or the time zone is invalid.
pub async fn day(cx: &Cx, owner: &Owner, asked: &AskedDay) -> Result<Day> {
    let now = cx.clock.now();
    let account = cx.store.account(owner).await?.value;
    let span = asked.read(&account.timezone, now)?;
    let jobs = jobs::between(cx, owner, (span.from, span.to), MAX_JOBS);
    let watched = watched::of_day(cx, owner, (span.from, span.to), now);
    let (found, turns, (jobs, all_jobs), (watched, watched_complete)) =
        tokio::try_join!(actions(cx, owner), open_turns(cx, owner), jobs, watched)?;
    let Found { data: actions, complete: all_actions } = found;
    let agents = agents_of(cx, owner, actions.iter().map(|action| action.agent_id)).await?;
    let live = live(&actions, &turns.data);
    let untold = match actions.iter().any(|action| action.next_due.is_some()) {
        true => Some(reach::of_results(cx, owner, None).await?).filter(Reaches::nobody).map(|told| told.text),
        false => None,
    };
    let stopped_at = account.stop.map(|stop| stop.at);

    let of = actions.into_iter().filter_map(|action| {
        // The actions of an agent that is being deleted are deleted with it.
        let agent = agents.get(&action.agent_id)?;
        let why = Idle::of(&action, agent, stopped_at);
        Some((action, agent.name.clone(), why))
    });
    let of: Vec<_> = of.collect();
    let span_of = &span;
    let of = stream::iter(of).map(async |(action, agent_name, why)| {
        let (past, more_past) = past(cx, owner, &action, span_of).await?;
        Ok::<_, Error>((action, agent_name, past, more_past, why))
    });
    let of: Vec<_> = of.buffered(AT_ONCE).try_collect().await?;
    // Where a schedule fires is computed off the threads that serve requests.
    let to_compute = span.clone();
    let compute = move |stop: &Stop| coming(of, &to_compute, now, stop);
    let Coming { of, not_running, not_running_later, complete: all_coming } =
        cx.compute.answers.run(compute).await?;

    let (mut data, mut more) = (Vec::new(), BTreeMap::<ActionId, usize>::new());
    for of in of {
        let (items, left) = items(of);
        if let (Some(first), true) = (items.first(), left > 0) {
            more.insert(first.action_id, left);
        }
        data.extend(items);
    }
    if data.len() > MAX_ITEMS {
        data.sort_by_key(|item| now.duration_since(item.at).abs());
        for item in data.drain(MAX_ITEMS..) {
            *more.entry(item.action_id).or_default() += 1;
        }
    }
    data.sort_by_key(|item| (item.at, item.action_id, item.run_id));
    let complete = all_actions && all_coming && all_jobs && more.is_empty();
    let more = more.into_iter().map(|(action_id, count)| MoreOfAction { action_id, count }).collect();
    let Span { date, timezone, from, to } = span;
    Ok(Day {
        date,
        timezone,
        from,
        to,
        now,
        data,
        jobs,
        complete,
        more,
        not_running,
        not_running_later,
        watched,
        watched_complete,
        live,
        stopped_at,
        untold,
    })
}

/// The occurrences of the day, newest first, and how many further ones there are.
async fn past(cx: &Cx, owner: &Owner, action: &Action, span: &Span) -> Result<(Vec<Occurrence>, usize)> {
    // Nothing was decided since the day began, or the day has not begun.
    if span.from.duration_since(action.updated_at) > SLACK {
        return Ok((Vec::new(), 0));
    }
    let end = keys::occurrence(owner, action.id, first_at(span.to)).sk;
    let limit = MAX_OF_ACTION + BEFORE;
    let found = cx.store.occurrences(owner, action.id, Some(&end), limit, Order::Newest).await?;
    let mut last = found.last;
    let all: Vec<Occurrence> = found.items.into_iter().map(|(_, found)| found.value).collect();
    let is_of_day = |occurrence: &Occurrence| {
        let until = occurrence.covers.map_or(occurrence.due_at, |covers| covers.last);
        occurrence.due_at >= span.from || until >= span.from
    };
    let began_before = all.last().is_some_and(|oldest| oldest.due_at < span.from);
    let mut data: Vec<Occurrence> = all.into_iter().filter(is_of_day).collect();
    let mut more = data.len().saturating_sub(MAX_OF_ACTION);
    data.truncate(MAX_OF_ACTION);
    if !began_before {
        // Only their number matters.
        let first = keys::occurrence(owner, action.id, first_at(span.from)).sk;
        while let Some(after) = last.take().filter(|_| more < MAX_COUNTED) {
            let limit = MAX_COUNTED - more;
            let found = cx.store.occurrences(owner, action.id, Some(&after), limit, Order::Newest).await?;
            let of_day = found.items.iter().take_while(|(sort_key, _)| *sort_key >= first).count();
            more += of_day;
            last = found.last.filter(|_| of_day == found.items.len());
        }
    }
    Ok((data, more))
}

/// An id that sorts before those of all occurrences that are due at this time or later, and after those that are due earlier.
fn first_at(at: Timestamp) -> RunId {
    let millis = u128::try_from(at.as_millisecond()).unwrap_or_default();
    RunId::from_uuid(Uuid::from_u128(millis << 80))
}

type Read = (Action, String, Vec<Occurrence>, usize, Option<Idle>);

/// What is to come.
#[derive(Default)]
struct Coming {
    of: Vec<OfAction>,
    not_running: Vec<NotRunning>,
    not_running_later: Vec<NotRunning>,
    complete: bool,
}

/// Adds the due times of the day that are not decided, and says which actions have some and will not run.
fn coming(read: Vec<Read>, span: &Span, now: Timestamp, stop: &Stop) -> std::result::Result<Coming, Stopped> {
    let (mut all, mut complete, mut computed) = (Coming::default(), true, 0);
    let is_today = span.from <= now && now < span.to;
    for (action, agent_name, past, more_past, why) in read {
        stop.check()?;
        let mut of = OfAction {
            agent_name: Some(agent_name),
            past,
            more_past,
            coming: Vec::new(),
            more_coming: 0,
            action,
        };
        let undecided = of.action.undecided(span.from, now);
        let mut next = undecided.filter(|at| *at < span.to);
        if let (Some(Idle { code, text }), Some(next_at)) =
            (why, undecided.filter(|_| next.is_some() || is_today))
        {
            let list = if next.is_some() { &mut all.not_running } else { &mut all.not_running_later };
            list.push(NotRunning {
                action_id: of.action.id,
                action_title: of.action.title.clone(),
                agent_id: of.action.agent_id,
                agent_name: of.agent_name.clone().unwrap_or_default(),
                next_at,
                code,
                text,
            });
            next = None;
        }
        while let Some(at) = next {
            if of.coming.len() + of.more_coming == MAX_COUNTED || computed == MAX_COMPUTED {
                complete = false;
                break;
            }
            match of.coming.len() < MAX_OF_ACTION {
                true => of.coming.push(at),
                false => of.more_coming += 1,
            }
            computed += 1;
            if computed % 256 == 0 {
                stop.check()?;
            }
            next = after(&of.action, at).filter(|at| *at < span.to);
        }
        all.of.push(of);
    }
    for list in [&mut all.not_running, &mut all.not_running_later] {
        complete &= list.len() <= MAX_NOT_RUNNING;
        list.sort_by_key(|one| one.next_at);
        list.truncate(MAX_NOT_RUNNING);
    }
    Ok(Coming { complete, ..all })
}

fn after(action: &Action, at: Timestamp) -> Option<Timestamp> {
    action.schedule.as_ref()?.next_after(action.anchor?, at)
}

/// The items of an action, and how many were left out: those that are farthest from the present.
fn items(of: OfAction) -> (Vec<DayItem>, usize) {
    let OfAction { action, agent_name, mut past, more_past, mut coming, more_coming } = of;
    // If there are many of both, each gets a half.
    let half = MAX_OF_ACTION / 2;
    let shown_past = past.len().min(MAX_OF_ACTION - coming.len().min(half));
    let shown_coming = coming.len().min(MAX_OF_ACTION - shown_past);
    let left = more_past + more_coming + (past.len() - shown_past) + (coming.len() - shown_coming);
    past.truncate(shown_past);
    coming.truncate(shown_coming);
    let item = |at| DayItem {
        at,
        action_id: action.id,
        action_title: action.title.clone(),
        agent_id: action.agent_id,
        agent_name: agent_name.clone(),
        state: OccurrenceState::Due,
        run_id: None,
        kind: None,
        reason: None,
        reason_code: None,
        started_at: None,
        finished_at: None,
        cost_micros: None,
        score: None,
        due_times: None,
        last_due_at: None,
        text: "Due.".to_owned(),
    };
    let of_occurrence = |occurrence: Occurrence| DayItem {
        state: shown(occurrence.state),
        run_id: Some(occurrence.run_id),
        kind: Some(occurrence.kind),
        reason: occurrence.reason.as_deref().map(cut),
        reason_code: occurrence.reason_code,
        started_at: occurrence.started_at,
        finished_at: occurrence.finished_at,
        cost_micros: occurrence.started_at.map(|_| occurrence.cost_micros),
        score: occurrence.score,
        due_times: occurrence.covers.map(|covers| covers.times),
        last_due_at: occurrence.covers.map(|covers| covers.last),
        text: words(&occurrence),
        ..item(occurrence.due_at)
    };
    let mut items: Vec<DayItem> = past.into_iter().map(of_occurrence).collect();
    items.extend(coming.into_iter().map(item));
    (items, left)
}

/// "Failed: the provider does not accept the API key."
fn words(occurrence: &Occurrence) -> String {
    let state = match occurrence.state {
        OccurrenceState::Due => "about to run",
        OccurrenceState::Claimed | OccurrenceState::Running => "running",
        OccurrenceState::Succeeded => "succeeded",
        OccurrenceState::NothingNew => "nothing new",
        OccurrenceState::Unchanged => "unchanged",
        OccurrenceState::Failed => "failed",
        OccurrenceState::Waiting => "waits for a person",
        OccurrenceState::Missed => "missed",
        OccurrenceState::Skipped => "skipped",
        OccurrenceState::Held => "held",
        OccurrenceState::Cancelled => "cancelled",
        OccurrenceState::Unknown => "it is not known whether it happened",
    };
    sentence(&match &occurrence.reason {
        Some(reason) => format!("{state}: {reason}"),
        None => state.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(date: &str, zone: &str) -> (i64, Timestamp) {
        let asked = AskedDay { date: Some(date.into()), timezone: Some(zone.into()) };
        let span = asked.read("UTC", "2026-11-26T12:00:00Z".parse().unwrap()).unwrap();
        (span.to.duration_since(span.from).as_mins(), span.from)
    }

    #[test]
    fn a_day_has_the_hours_that_its_clock_shows() {
        for (date, zone, minutes, from) in [
            ("2026-11-25", "Europe/Berlin", 24 * 60, "2026-11-24T23:00:00Z"),
            ("2026-10-25", "Europe/Berlin", 25 * 60, "2026-10-24T22:00:00Z"),
            ("2026-03-29", "Europe/Berlin", 23 * 60, "2026-03-28T23:00:00Z"),
            // Half an hour.
            ("2026-04-05", "Australia/Lord_Howe", 24 * 60 + 30, "2026-04-04T13:00:00Z"),
            // The clock skips midnight, and shows it twice.
            ("2026-09-06", "America/Santiago", 23 * 60, "2026-09-06T04:00:00Z"),
            ("2026-04-04", "America/Santiago", 25 * 60, "2026-04-04T03:00:00Z"),
            ("2025-11-02", "America/Havana", 25 * 60, "2025-11-02T04:00:00Z"),
            ("2026-11-25", "Asia/Kathmandu", 24 * 60, "2026-11-24T18:15:00Z"),
        ] {
            assert_eq!(span(date, zone), (minutes, from.parse().unwrap()), "{date} {zone}");
        }
    }

    #[test]
    fn what_is_no_day_is_refused() {
        let now = "2026-11-26T12:00:00Z".parse().unwrap();
        for date in [
            "",
            "2026-11-31",
            "20261125",
            "2026-11-25T00",
            "+026-11-25",
            "2026-11-2é",
            "2025-10-21",
            "2028-01-01",
        ] {
            let asked = AskedDay { date: Some(date.into()), timezone: None };
            assert_eq!(asked.read("UTC", now).unwrap_err().code(), "invalid_input", "{date}");
        }
        for zone in ["", "Mars/Base", "UTC+2", "../../etc/passwd"] {
            let asked = AskedDay { date: None, timezone: Some(zone.into()) };
            assert_eq!(asked.read("UTC", now).unwrap_err().code(), "invalid_input", "{zone}");
        }
    }

    #[test]
    fn an_id_of_a_time_separates_the_occurrences() {
        let at: Timestamp = "2026-11-25T00:00:00Z".parse().unwrap();
        let action = ActionId::from_uuid(Uuid::from_u128(7));
        let before = RunId::for_occurrence(action, at - SignedDuration::from_millis(1));
        assert!(before < first_at(at) && first_at(at) < RunId::for_occurrence(action, at));
    }
}
