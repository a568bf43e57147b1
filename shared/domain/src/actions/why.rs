//! Explains what happened at a due time, in words and as data.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::action::Action;
use super::occurrence::{LATE, Occurrence, OccurrenceKind, OccurrenceState};
use super::plan::{ON_TIME, approximately};
use super::reason::ReasonCode;
use crate::agents::AgentStatus;
use crate::ids::RunId;
use crate::schedule::Schedule;
use crate::work::ActionState;

/// The answer to "why didn't it run?".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Why {
    pub code: WhyCode,
    /// For people, with times in the time zone of the schedule, or of the agent or account if there is no schedule.
    pub sentence: String,
    /// The instant of the question.
    pub at: Timestamp,
    pub action_state: ActionState,
    /// The due time that the answer is about, if `at` is one.
    pub due_at: Option<Timestamp>,
    pub run_id: Option<RunId>,
    /// When the run began.
    pub started_at: Option<Timestamp>,
    /// How long after its due time (with jitter), or after the approval if that came later, the run began, in milliseconds.
    pub lag_ms: Option<i64>,
    pub reason_code: Option<ReasonCode>,
    /// The fire times before and after `at`, if the action has an approved schedule.
    pub previous_due: Option<Timestamp>,
    pub next_due: Option<Timestamp>,
}

/// What happened at that instant, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhyCode {
    /// It ran, and succeeded.
    Ran,
    /// It ran, and there was nothing to report since the last run.
    NothingNew,
    /// Nothing of what the action watches had changed, so it did not run.
    Unchanged,
    Failed,
    /// It runs now.
    Running,
    /// It will begin now or after a wait.
    AboutToRun,
    Waiting,
    Missed,
    Skipped,
    Held,
    Cancelled,
    Unknown,
    /// It is in the future.
    NotYetDue,
    /// It has come and is not processed yet.
    NotYetDecided,
    /// The schedule does not fire then.
    NotAFireTime,
    /// The action has no schedule.
    NoSchedule,
    NotApproved,
    /// The action did not exist then.
    BeforeItExisted,
    /// The schedule took effect only afterwards.
    BeforeItWasDue,
    /// The schedule or the action has ended.
    AfterItEnded,
    /// The time has passed, and there is no record of it. The record may have expired.
    NoRecord,
    /// The action or its agent does not work now.
    Paused,
    Dismissed,
    /// The account is stopped.
    Stopped,
}

/// What [`why`] must know besides the action and the due time.
#[derive(Debug, Clone, Copy)]
pub struct Circumstances<'a> {
    /// For times, if the action has no schedule.
    pub zone: &'a TimeZone,
    pub agent: AgentStatus,
    pub approval: ApprovalNow,
    /// Separates the future from the past.
    pub now: Timestamp,
}

/// What has become of the approval of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalNow {
    /// There never was one.
    Never,
    /// The action was changed or cancelled since.
    Withdrawn,
    /// The agent or a tool has changed since, so nothing runs under it.
    Drifted,
    Holds,
}

/// Explains `at`. Times are in the zone of the schedule, if there is one. `occurrence` is the one that is due at `at`, if there is
/// one.
#[must_use]
pub fn why(
    action: &Action,
    circumstances: Circumstances<'_>,
    occurrence: Option<&Occurrence>,
    at: Timestamp,
) -> Why {
    let zone = action.zone_or(circumstances.zone);
    let now = circumstances.now;
    let (previous, next) = neighbours(action, at);
    let mut why = Why {
        code: WhyCode::NotAFireTime,
        sentence: String::new(),
        at,
        action_state: action.state,
        due_at: None,
        run_id: None,
        started_at: None,
        lag_ms: None,
        reason_code: None,
        previous_due: previous,
        next_due: next,
    };

    (why.code, why.sentence) = match occurrence {
        Some(occurrence) => {
            why.due_at = Some(occurrence.due_at);
            why.run_id = Some(occurrence.run_id);
            why.reason_code = occurrence.reason_code;
            why.started_at = occurrence.started_at;
            why.lag_ms = occurrence.start_lag_ms();
            let held_up = held_up(action, circumstances, occurrence);
            let (code, sentence) = held_up.unwrap_or_else(|| of_occurrence(zone, occurrence, now));
            (code, sentence + &began_late(occurrence) + &reported_late(zone, occurrence))
        }
        None => {
            let fire_time = fire_time_at(action, at);
            why.due_at = fire_time;
            let circumstances = Circumstances { zone, ..circumstances };
            of_action(action, circumstances, fire_time, at, &nearest_words(zone, previous, next))
        }
    };
    why
}

/// What an explanation knows beside the action and the occurrence.
#[derive(Clone, Copy, Debug, Default)]
pub struct AtAccount<'a> {
    /// When the account was stopped, if it is stopped.
    pub stopped_at: Option<Timestamp>,
    /// The newest record before `at`, which may be about several due times.
    pub before: Option<&'a Occurrence>,
    /// When the last approval was given and withdrawn, if the action has none now.
    pub was_approved: Option<(Timestamp, Timestamp)>,
}

/// Like [`why`], also for due times during which the account was stopped, and for times at which an approval held that was withdrawn since.
#[must_use]
pub fn why_at_account(
    action: &Action,
    circumstances: Circumstances<'_>,
    occurrence: Option<&Occurrence>,
    at: Timestamp,
    account: AtAccount<'_>,
) -> Why {
    let mut why = why(action, circumstances, occurrence, at);
    let zone = action.zone_or(circumstances.zone);
    let was_approved = account.was_approved.filter(|(from, until)| *from <= at && at < *until);
    if let (Some((_, until)), WhyCode::NotApproved) = (was_approved, why.code) {
        why.code = WhyCode::NoRecord;
        why.sentence = format!(
            "There is no record of a run due {}. The action was approved then; its approval was withdrawn only {}.",
            show(zone, at),
            brief(zone, until)
        );
    }
    let Some(due_at) = why.due_at else { return why };
    let covers = |before: &&Occurrence| {
        let last = before.covers.map(|covers| covers.last);
        occurrence.is_none() && before.due_at < due_at && last.is_some_and(|last| due_at <= last)
    };
    if let Some(before) = account.before.filter(covers) {
        let reason = before.reason.as_deref().unwrap_or("no reason was noted");
        let (code, was) = match before.state {
            OccurrenceState::Held => (WhyCode::Held, "held"),
            _ => (WhyCode::Skipped, "skipped"),
        };
        why.code = code;
        why.sentence = format!("The run that was due {} was {was}: {reason}.", show(zone, due_at));
        (why.run_id, why.reason_code) = (Some(before.run_id), before.reason_code);
        return why;
    }
    let is_open = match occurrence {
        Some(occurrence) => occurrence.state == OccurrenceState::Due,
        None => {
            matches!(why.code, WhyCode::NotYetDue | WhyCode::NotYetDecided | WhyCode::Paused | WhyCode::Held)
        }
    };
    if let (Some(stopped_at), true) = (account.stopped_at, is_open) {
        why.code = WhyCode::Stopped;
        why.reason_code = Some(ReasonCode::Stopped);
        why.sentence = format!(
            "Nothing runs {}: the account was stopped {}. Start it with `POST /account/start`.",
            show(zone, due_at),
            brief(zone, stopped_at)
        );
    }
    why
}

/// The name of an occurrence at the beginning of a sentence.
fn subject(zone: &TimeZone, occurrence: &Occurrence) -> String {
    let due = show(zone, occurrence.due_at);
    match occurrence.kind {
        OccurrenceKind::Manual => format!("The run that was started by hand {due}"),
        OccurrenceKind::Scheduled | OccurrenceKind::CatchUp => format!("The run that was due {due}"),
    }
}

/// Why an occurrence that is due does not begin, if the action or its agent is the reason.
fn held_up(
    action: &Action,
    Circumstances { agent, approval, zone, .. }: Circumstances<'_>,
    occurrence: &Occurrence,
) -> Option<(WhyCode, String)> {
    if occurrence.state != OccurrenceState::Due {
        return None;
    }
    let zone = action.zone_or(zone);
    let subject = subject(zone, occurrence);
    let is_live = action.live_run == Some(occurrence.run_id);
    if let (Some(agent), false) = (not_working(agent), occurrence.kind == OccurrenceKind::Manual) {
        return Some((WhyCode::Paused, format!("{subject} waits until the agent is active again: {agent}.")));
    }
    match action.state {
        ActionState::Paused if !is_live => {
            return Some((WhyCode::Paused, paused(&subject, "waits", action)));
        }
        ActionState::NeedsApproval if !is_live => {
            return Some((WhyCode::Held, format!("{subject} waits: {}.", question(action, approval))));
        }
        _ => {}
    }
    if let (Some(live), false) = (action.live_run, is_live) {
        return Some((WhyCode::AboutToRun, format!("{subject} waits for the earlier run {live} to end.")));
    }
    (approval == ApprovalNow::Drifted).then(|| (WhyCode::Held, format!("{subject} will be held: {DRIFTED}.")))
}

/// A paused action, and what to do if the platform has paused it.
fn paused(subject: &str, does: &str, action: &Action) -> String {
    let words = action.paused_words();
    let advice = action.paused_because.as_ref().map_or("", |_| " Resume it when you have mended the cause.");
    format!("{subject} {does}: the action is {words}.{advice}")
}

/// Why an agent does not work, if so.
const fn not_working(agent: AgentStatus) -> Option<&'static str> {
    match agent {
        AgentStatus::Active => None,
        AgentStatus::Paused => Some("the agent is paused"),
        AgentStatus::Archived => Some("the agent is archived"),
    }
}

const DRIFTED: &str =
    "the agent or a tool has changed since the action was approved, so a person must approve it again";

/// What an action waits for that needs a person.
fn question(action: &Action, approval: ApprovalNow) -> &'static str {
    match (action.live_run, approval) {
        (None, ApprovalNow::Drifted) => DRIFTED,
        _ => "the action waits for a person's answer",
    }
}

fn of_occurrence(zone: &TimeZone, occurrence: &Occurrence, now: Timestamp) -> (WhyCode, String) {
    let subject = subject(zone, occurrence);
    let reason = occurrence.reason.as_deref().unwrap_or("no reason was noted");
    let ended = occurrence.finished_at.map_or_else(String::new, |at| format!(" {}", brief(zone, at)));
    let attempts = match occurrence.attempts {
        0 | 1 => String::new(),
        attempts => format!(" on attempt {attempts}"),
    };
    match occurrence.state {
        OccurrenceState::Succeeded => {
            let flag = match (occurrence.reason_code, &occurrence.reason) {
                (Some(ReasonCode::SameAsLast), Some(same)) => format!(", but {same}"),
                _ => String::new(),
            };
            (WhyCode::Ran, format!("{subject} succeeded{ended}{attempts}{flag}."))
        }
        OccurrenceState::NothingNew => (
            WhyCode::NothingNew,
            format!("{subject} ran and had nothing new to report{ended}{attempts}: {reason}."),
        ),
        OccurrenceState::Unchanged => {
            (WhyCode::Unchanged, format!("{subject} was skipped{ended}: {reason}."))
        }
        OccurrenceState::Failed => (WhyCode::Failed, format!("{subject} failed{ended}{attempts}: {reason}.")),
        OccurrenceState::Running if occurrence.awaits_report() => {
            let until = occurrence.report_by.map_or_else(String::new, |until| until_words(zone, until));
            (WhyCode::Running, format!("{subject} waits for a report {until}: {reason}."))
        }
        OccurrenceState::Running | OccurrenceState::Claimed => match occurrence.lease() {
            Some(lease) if lease.is_over(now) => (
                WhyCode::AboutToRun,
                format!(
                    "{subject} lost its executor {}, and another executor will continue it.",
                    brief(zone, lease.until)
                ),
            ),
            _ => {
                let since = occurrence.started_at.map_or_else(
                    || " has been claimed and is about to begin".to_owned(),
                    |at| format!(" began {} and is running", brief(zone, at)),
                );
                (WhyCode::Running, format!("{subject}{since}{attempts}."))
            }
        },
        OccurrenceState::Due if occurrence.not_before > now && occurrence.attempts > 0 => (
            WhyCode::AboutToRun,
            format!(
                "{subject} failed{attempts} ({reason}) and is tried again {}.",
                brief(zone, occurrence.not_before)
            ),
        ),
        OccurrenceState::Due if occurrence.look_again_at.is_some() => {
            let reason = match occurrence.reason_code {
                Some(ReasonCode::TooManyRuns) => reason,
                _ => "too many runs of yours are under way",
            };
            (WhyCode::AboutToRun, format!("{subject} waits for a free place: {reason}."))
        }
        OccurrenceState::Due if occurrence.not_before > now => (
            WhyCode::AboutToRun,
            format!(
                "{subject} waits for its turn, and begins {} at the earliest.",
                brief(zone, occurrence.not_before)
            ),
        ),
        OccurrenceState::Due => {
            let waits = approximately(now.duration_since(occurrence.not_before));
            (WhyCode::AboutToRun, format!("{subject} has been waiting for an executor for {waits}."))
        }
        OccurrenceState::Waiting => {
            let what = match occurrence.reason_code {
                Some(ReasonCode::OutsideGrant) => "a person's yes",
                Some(ReasonCode::Ceiling) => "a person to raise a ceiling of costs",
                Some(ReasonCode::EffectUnknown) => "a person to say whether a call happened",
                _ => "a person's answer",
            };
            let until = occurrence
                .answer_by
                .map_or_else(String::new, |until| format!(", {}", until_words(zone, until)));
            (WhyCode::Waiting, format!("{subject} waits for {what}{until}: {reason}."))
        }
        OccurrenceState::Missed => (WhyCode::Missed, format!("{subject} was missed: {reason}.")),
        OccurrenceState::Skipped => (WhyCode::Skipped, format!("{subject} was skipped: {reason}.")),
        OccurrenceState::Held => (WhyCode::Held, format!("{subject} was held: {reason}.")),
        OccurrenceState::Cancelled => {
            (WhyCode::Cancelled, format!("{subject} was cancelled{ended}: {reason}."))
        }
        OccurrenceState::Unknown => {
            (WhyCode::Unknown, format!("{subject} has an unknown result: {reason}. A person must check."))
        }
    }
}

/// If the run began late: how late, and why.
fn began_late(occurrence: &Occurrence) -> String {
    let lag = occurrence.start_lag().filter(|lag| *lag >= LATE && occurrence.state != OccurrenceState::Due);
    let Some(lag) = lag else { return String::new() };
    let because = match (occurrence.put_off, occurrence.kind) {
        (Some(ReasonCode::TooManyRuns), _) => "too many runs of yours were under way",
        (Some(ReasonCode::Paused), _) => "the action or its agent was paused",
        (Some(ReasonCode::NeedsApproval), _) => "the action waited for a person's answer",
        (Some(_), _) => "an earlier run of the action had not ended",
        (None, OccurrenceKind::CatchUp) => "it was found late",
        (None, _) if occurrence.found_late => "it was found late",
        (None, _) => "no executor took it earlier",
    };
    format!(" It began {} late, because {because}.", approximately(lag))
}

/// If a report came after the end of the run: when.
fn reported_late(zone: &TimeZone, occurrence: &Occurrence) -> String {
    let late = occurrence.report.as_ref().filter(|_| occurrence.has_late_report());
    late.map_or_else(String::new, |report| {
        let said = if report.ok { "has succeeded" } else { "has failed" };
        let at = brief(zone, report.at);
        format!(" The server reported late, {at}, that it {said}. The run stays as it ended.")
    })
}

/// About a time without a record. What is said about the past must also be true if the action was changed since: it may have had
/// another schedule then.
fn of_action(
    action: &Action,
    circumstances: Circumstances<'_>,
    fire_time: Option<Timestamp>,
    at: Timestamp,
    nearest: &str,
) -> (WhyCode, String) {
    let Circumstances { zone, approval, now, .. } = circumstances;
    let asked = show(zone, fire_time.unwrap_or(at));
    let is_past = at <= now;
    let (was_due, ran) = if is_past { ("was due", "ran") } else { ("is due", "runs") };
    if at < action.created_at && fire_time.is_none_or(|due_at| due_at < action.created_at) {
        let created = brief(zone, action.created_at);
        let sentence = format!("Nothing was due {asked}: the action was created only {created}.");
        return (WhyCode::BeforeItExisted, sentence);
    }
    // The records of older due times may have expired, or the schedule was another one.
    if action.anchor.is_none_or(|anchor| at < anchor) && action.last_due.is_some_and(|last| at <= last) {
        return (WhyCode::NoRecord, format!("There is no record of a run due {asked}."));
    }
    // A single appointment may have passed just before it took effect.
    let recurs = action.schedule.as_ref().is_some_and(Schedule::is_recurring);
    if let Some(anchor) = action.anchor.filter(|anchor| recurs && fire_time.unwrap_or(at) <= *anchor) {
        let sentence =
            format!("Nothing was due {asked}: the schedule took effect only {}.", brief(zone, anchor));
        return (WhyCode::BeforeItWasDue, sentence);
    }
    if action.state == ActionState::Dismissed {
        return match action.last_due.is_some_and(|last| at <= last) {
            true => (WhyCode::NoRecord, format!("There is no record of a run due {asked}.")),
            false => (WhyCode::Dismissed, format!("Nothing {ran} {asked}: the action is dismissed.")),
        };
    }
    let Some(schedule) = &action.schedule else {
        return (WhyCode::NoSchedule, format!("Nothing {was_due} {asked}: the action has no schedule."));
    };
    if action.anchor.is_none() {
        let passed = passed(action, zone, now);
        let state = spoken(action.state);
        let sentence = match approval {
            ApprovalNow::Withdrawn => {
                let since = match action.state {
                    ActionState::Defined => "it was not approved again".to_owned(),
                    _ => format!("it is {state}"),
                };
                format!(
                    "Nothing {ran} {asked}: the approval of the action was withdrawn, and {since}.{passed}"
                )
            }
            ApprovalNow::Never | ApprovalNow::Drifted | ApprovalNow::Holds => {
                format!(
                    "Nothing {ran} {asked}: the action is {state}, and its schedule is not approved.{passed}"
                )
            }
        };
        return (WhyCode::NotApproved, sentence);
    }
    let Some(due_at) = fire_time else {
        let ended = schedule.ends().filter(|end| *end < at);
        return match ended {
            Some(end) => {
                let ends = if end <= now { "ended" } else { "ends" };
                let sentence =
                    format!("Nothing {was_due} {asked}: the schedule {ends} {}.{nearest}", brief(zone, end));
                (WhyCode::AfterItEnded, sentence)
            }
            None => {
                let sentence =
                    format!("Nothing {was_due} {asked}: that is not a fire time of the schedule.{nearest}");
                (WhyCode::NotAFireTime, sentence)
            }
        };
    };
    if action.next_due.is_none_or(|cursor| due_at < cursor) {
        // It was decided, or the action has ended before it came.
        return match action.last_due {
            Some(last) if due_at <= last => {
                (WhyCode::NoRecord, format!("There is no record of the due time {asked}."))
            }
            _ if action.next_due.is_some() => {
                (WhyCode::NoRecord, format!("There is no record of the due time {asked}."))
            }
            _ => {
                let state = spoken(action.state);
                (WhyCode::AfterItEnded, format!("Nothing {ran} {asked}: the action is {state}."))
            }
        };
    }
    undecided((action, schedule), circumstances, due_at, &asked)
}

/// About a due time that is not decided yet.
fn undecided(
    (action, schedule): (&Action, &Schedule),
    Circumstances { zone, agent, approval, now }: Circumstances<'_>,
    due_at: Timestamp,
    due: &str,
) -> (WhyCode, String) {
    let wake_at = schedule.wake_at(action.id, due_at);
    let (was_due, is_held, runs) = match wake_at <= now {
        true => ("was due", "is held", "ran"),
        false => ("is due", "will be held", "runs"),
    };
    let answers = action.state == ActionState::NeedsApproval && action.live_run.is_some();
    if let (Some(agent), false) = (not_working(agent), answers) {
        return (WhyCode::Paused, format!("Nothing {runs} {due}: {agent}."));
    }
    if action.state == ActionState::Paused {
        return (WhyCode::Paused, paused("Nothing", &format!("{runs} {due}"), action));
    }
    if action.state == ActionState::NeedsApproval {
        let question = question(action, approval);
        let so_far =
            action.held.map_or_else(String::new, |held| format!(" So far, it was {}.", held.words(zone)));
        return (WhyCode::Held, format!("The run that {was_due} {due} {is_held}: {question}.{so_far}"));
    }
    if approval == ApprovalNow::Drifted {
        return (WhyCode::Held, format!("The run that {was_due} {due} {is_held}: {DRIFTED}."));
    }
    if wake_at > now {
        let jitter = match wake_at > due_at {
            true => format!(", and starts {}", brief(zone, wake_at)),
            false => String::new(),
        };
        let preflight = action.preflight.as_ref().filter(|preflight| preflight.due_at == due_at);
        let fails = preflight.map_or_else(String::new, |preflight| {
            format!(" The run will fail unless this is mended: {}.", preflight.words())
        });
        return (WhyCode::NotYetDue, format!("It is due {due}{jitter}; that has not come yet.{fails}"));
    }
    let late = approximately(now.duration_since(wake_at));
    (WhyCode::NotYetDecided, format!("It was due {due}, {late} ago, and will be processed soon."))
}

/// What to do if the only time of a schedule has passed. An approval cannot make it due again.
fn passed(action: &Action, zone: &TimeZone, now: Timestamp) -> String {
    let once = action.schedule.as_ref().filter(|schedule| !schedule.is_recurring());
    let at = once.and_then(|schedule| schedule.next_after(now, Timestamp::MIN));
    match at.filter(|at| now.duration_since(*at) >= ON_TIME || action.last_due == Some(*at)) {
        Some(at) => format!(
            " Its time, {}, has passed: set a new time, or remove the schedule and run it by hand.",
            brief(zone, at).trim_start_matches("at ")
        ),
        None => String::new(),
    }
}

/// The fire time in the minute of `at`, because people ask about minutes.
fn fire_time_at(action: &Action, at: Timestamp) -> Option<Timestamp> {
    let (schedule, anchor) = (action.schedule.as_ref()?, action.anchor?);
    let minute = Timestamp::from_second(at.as_second().div_euclid(60) * 60).ok()?;
    let just_before = minute.checked_sub(SignedDuration::from_nanos(1)).ok()?;
    let fire = schedule.next_after(anchor, just_before)?;
    (fire.duration_since(minute) < SignedDuration::from_mins(1)).then_some(fire)
}

/// The fire times before and after `at`.
fn neighbours(action: &Action, at: Timestamp) -> (Option<Timestamp>, Option<Timestamp>) {
    let (Some(schedule), Some(anchor)) = (&action.schedule, action.anchor) else { return (None, None) };
    // The schedule was not due before the anchor. A single appointment may have passed just before it.
    let since = |due: &Timestamp| *due > anchor || !schedule.is_recurring();
    (last_before(schedule, anchor, at).filter(since), schedule.next_after(anchor, at))
}

/// The last fire time before `at`. It is searched in windows that grow from an hour to the age of the schedule.
pub(super) fn last_before(schedule: &Schedule, anchor: Timestamp, at: Timestamp) -> Option<Timestamp> {
    // The windows go backwards from `at`, so that the first window with a fire time has only a few.
    let at = schedule.ends().map_or(at, |end| at.min(end + SignedDuration::from_nanos(1)));
    let mut window = SignedDuration::from_hours(1);
    loop {
        let from = at.checked_sub(window).unwrap_or(Timestamp::MIN).max(Timestamp::UNIX_EPOCH);
        let first = schedule.next_after(anchor, from).filter(|fire| *fire < at);
        if let Some(first) = first {
            let fires = std::iter::successors(Some(first), |last| schedule.next_after(anchor, *last));
            return fires.take_while(|fire| *fire < at).last();
        }
        if from <= Timestamp::UNIX_EPOCH {
            return None;
        }
        window *= 4;
    }
}

fn nearest_words(zone: &TimeZone, previous: Option<Timestamp>, next: Option<Timestamp>) -> String {
    match (previous, next) {
        (Some(previous), Some(next)) => {
            format!(" The nearest are {} and {}.", brief(zone, previous), brief(zone, next))
        }
        (Some(only), None) | (None, Some(only)) => format!(" The nearest is {}.", brief(zone, only)),
        (None, None) => String::new(),
    }
}

/// "at 2026-11-02 09:00 (Europe/Berlin)"
pub(super) fn show(zone: &TimeZone, instant: Timestamp) -> String {
    format!("{} ({})", brief(zone, instant), zone.iana_name().unwrap_or("UTC"))
}

/// "2026-11-02 09:00"
pub(super) fn moment(zone: &TimeZone, instant: Timestamp) -> String {
    brief(zone, instant).trim_start_matches("at ").to_owned()
}

/// "at 2026-11-02 09:00". An earlier time in the sentence names the zone.
pub(super) fn brief(zone: &TimeZone, instant: Timestamp) -> String {
    let zoned = instant.to_zoned_datetime(zone.clone());
    let format = if zoned.second() == 0 { "at %Y-%m-%d %H:%M" } else { "at %Y-%m-%d %H:%M:%S" };
    zoned.strftime(format).to_string()
}

/// "until 2026-11-02 09:00"
fn until_words(zone: &TimeZone, instant: Timestamp) -> String {
    brief(zone, instant).replacen("at ", "until ", 1)
}

fn spoken(state: ActionState) -> String {
    state.as_str().replace('_', " ")
}
