//! Every state has a sentence.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::samples::{approved, defined, in_state, noon, run, ts};
use super::{
    Action, ActionState, ApprovalNow, Circumstances, Command, ExecutionResult, Occurrence, OccurrenceCommand,
    OccurrenceKind, OccurrenceState, Reason, ReasonCode, Why, WhyCode, approval_hash, plan_due, transition,
    why,
};
use crate::agents::AgentStatus;

/// The agent is active, and the approval holds.
fn usual(now: Timestamp) -> Circumstances<'static> {
    static UTC: TimeZone = TimeZone::UTC;
    Circumstances { zone: &UTC, agent: AgentStatus::Active, approval: ApprovalNow::Holds, now }
}

fn words(name: &str, why: &Why) -> String {
    let code = json!(why.code);
    format!("{name}\n    {}: {}\n", code.as_str().unwrap(), why.sentence)
}

#[test]
fn every_occurrence_has_a_sentence() {
    let action = approved(&json!({"cron": "0 9 * * *", "timezone": "Europe/Berlin"}));
    let due_at = ts("2026-11-22T08:00:00Z");
    let plan = plan_due(&action, due_at, None, 1);
    let due = Occurrence::decided(&action, &plan.decided[0], due_at);
    let minutes = |minutes| Some(due_at + SignedDuration::from_mins(minutes));
    let with = |state: OccurrenceState, reason: Option<(ReasonCode, &str)>| Occurrence {
        state,
        reason: reason.map(|(_, text)| text.to_owned()),
        reason_code: reason.map(|(code, _)| code),
        attempts: 1,
        started_at: minutes(0),
        finished_at: minutes(3).filter(|_| state.is_final()),
        lease_until: minutes(16).filter(|_| matches!(state, Claimed | Running)),
        ..due.clone()
    };
    use OccurrenceState::{
        Cancelled, Claimed, Failed, Held, Missed, Running, Skipped, Succeeded, Unknown, Waiting,
    };
    let overloaded = Some((ReasonCode::Retrying, "the model is overloaded"));
    let cases = [
        ("due", due.clone()),
        (
            "due, not its turn",
            Occurrence { not_before: due_at + SignedDuration::from_mins(20), ..due.clone() },
        ),
        (
            "due, tried before",
            Occurrence {
                not_before: due_at + SignedDuration::from_mins(20),
                ..with(OccurrenceState::Due, overloaded)
            },
        ),
        (
            "due, no free place",
            due.transition(
                OccurrenceCommand::AwaitPlace {
                    look_again_at: due_at + SignedDuration::from_mins(20),
                    reason: Reason::new(
                        ReasonCode::TooManyRuns,
                        "8 executors already work on runs of yours, which is the limit",
                    ),
                },
                due_at,
            )
            .unwrap(),
        ),
        ("claimed", Occurrence { started_at: None, ..with(Claimed, None) }),
        ("running", Occurrence { attempts: 2, ..with(Running, None) }),
        ("running, lease lost", Occurrence { lease_until: minutes(5), ..with(Running, None) }),
        ("succeeded", with(Succeeded, None)),
        (
            "succeeded, late by too many runs",
            Occurrence {
                started_at: minutes(1),
                put_off: Some(ReasonCode::TooManyRuns),
                ..with(Succeeded, None)
            },
        ),
        (
            "succeeded, late by an earlier run",
            Occurrence {
                started_at: minutes(1),
                put_off: Some(ReasonCode::Overlap),
                ..with(Succeeded, None)
            },
        ),
        (
            "succeeded, late by a pause",
            Occurrence { started_at: minutes(1), put_off: Some(ReasonCode::Paused), ..with(Succeeded, None) },
        ),
        (
            "succeeded, caught up",
            Occurrence { started_at: minutes(1), kind: OccurrenceKind::CatchUp, ..with(Succeeded, None) },
        ),
        (
            "succeeded, found late",
            Occurrence { started_at: minutes(1), found_late: true, ..with(Succeeded, None) },
        ),
        ("succeeded, late", Occurrence { started_at: minutes(1), ..with(Succeeded, None) }),
        ("by hand", Occurrence { kind: OccurrenceKind::Manual, ..with(Succeeded, None) }),
        ("succeeded later", Occurrence { attempts: 3, ..with(Succeeded, None) }),
        ("failed", with(Failed, Some((ReasonCode::Error, "the model refused")))),
        (
            "waiting",
            with(Waiting, Some((ReasonCode::OutsideGrant, "it wants send_email, which it is not granted"))),
        ),
        (
            "missed",
            with(
                Missed,
                Some((
                    ReasonCode::TooOld,
                    "it was found 3 d 2 h late, and nothing older than 1d is caught up",
                )),
            ),
        ),
        ("skipped", with(Skipped, Some((ReasonCode::Paused, "the action was paused")))),
        ("held", with(Held, Some((ReasonCode::Drifted, "what would have run is not what was approved")))),
        ("cancelled", with(Cancelled, Some((ReasonCode::Cancelled, "a person cancelled it")))),
        (
            "unknown",
            with(
                Unknown,
                Some((
                    ReasonCode::EffectUnknown,
                    "send_email was begun, and it is not known whether it happened",
                )),
            ),
        ),
    ];
    let now = due_at + SignedDuration::from_mins(10);
    let report: String = cases
        .iter()
        .map(|(name, occurrence)| {
            let why = why(&action, usual(now), Some(occurrence), due_at);
            assert_eq!((why.due_at, why.run_id), (Some(due_at), Some(occurrence.run_id)));
            assert_eq!(why.reason_code, occurrence.reason_code);
            words(name, &why)
        })
        .collect();
    insta::assert_snapshot!(report);
}

#[test]
fn every_time_without_a_record_has_a_sentence() {
    let daily =
        || approved(&json!({"cron": "0 9 * * *", "timezone": "Europe/Berlin", "end_at": "2026-12-01T09:00"}));
    let then = |action: &Action, command| transition(action, command, noon()).unwrap();
    let tomorrow = ts("2026-11-22T08:00:00Z");
    let asked = {
        let running = then(&daily(), Command::Run { run: run(1) });
        then(&running, Command::OccurrenceEnded { run: run(1), outcome: ExecutionResult::Unknown })
    };
    let decided = {
        let plan = plan_due(&daily(), tomorrow, None, 1);
        transition(&daily(), Command::Planned { plan: &plan }, tomorrow).unwrap()
    };
    let minutes = |minutes| tomorrow + SignedDuration::from_mins(minutes);
    let cases: [(&str, Action, Timestamp, Timestamp); 16] = [
        ("in the future", daily(), tomorrow, noon()),
        ("with seconds", daily(), tomorrow + SignedDuration::from_secs(12), noon()),
        (
            "with jitter",
            approved(&json!({"cron": "0 9 * * *", "jitter": "1h"})),
            ts("2026-11-22T09:00:00Z"),
            noon(),
        ),
        ("just now", daily(), tomorrow, minutes(2)),
        ("between", daily(), minutes(30), minutes(40)),
        ("before the first", daily(), ts("2026-11-21T11:30:00Z"), minutes(40)),
        ("after the last", daily(), ts("2027-11-21T08:00:00Z"), minutes(40)),
        ("before it was due", daily(), ts("2026-11-20T08:00:00Z"), minutes(40)),
        ("not the appointment", approved(&json!({"at": "2026-12-01T09:00Z"})), tomorrow, noon()),
        ("paused", then(&daily(), Command::Pause), tomorrow, noon()),
        ("asked", asked, tomorrow, noon()),
        ("dismissed", then(&daily(), Command::Dismiss), tomorrow, noon()),
        ("completed", then(&daily(), Command::Complete), tomorrow, minutes(5)),
        ("no record", decided, tomorrow, minutes(5)),
        ("not approved", in_state(ActionState::Defined), tomorrow, noon()),
        ("no schedule", defined(&json!(null)), tomorrow, noon()),
    ];
    let report: String = cases
        .iter()
        .map(|(name, action, at, now)| words(name, &why(action, usual(*now), None, *at)))
        .collect();
    insta::assert_snapshot!(report);
}

#[test]
fn the_answer_names_the_nearest_fire_times() {
    let action = approved(&json!({"cron": "0 9 1 * *", "end_at": "2027-02-01T09:00"}));
    for (at, previous, next) in [
        ("2026-12-15T00:00:00Z", Some("2026-12-01T09:00:00Z"), Some("2027-01-01T09:00:00Z")),
        ("2026-12-01T09:00:00Z", None, Some("2027-01-01T09:00:00Z")),
        ("2040-01-01T00:00:00Z", Some("2027-02-01T09:00:00Z"), None),
    ] {
        let why = why(&action, usual(noon()), None, ts(at));
        assert_eq!((why.previous_due, why.next_due), (previous.map(ts), next.map(ts)), "{at}");
    }
}

#[test]
fn a_reason_is_a_code_and_a_text() {
    let reason = Reason::new(ReasonCode::Paused, "the action was paused");
    assert_eq!(json!(reason), json!({"code": "paused", "text": "the action was paused"}));
}

/// Every state of an action and its agent, asked about before the action existed, before its approval, about a due time that has
/// passed without a record, and about one in the future.
#[test]
fn what_is_said_is_true_in_every_state() {
    // Created at noon, approved a day later.
    let created = noon();
    let approved_at = ts("2026-11-22T12:00:00Z");
    let daily = json!({"cron": "0 9 * * *"});
    let hash = |action: &Action| approval_hash(action, &super::samples::briefing());
    let approved = |schedule: &serde_json::Value| {
        let action = defined(schedule);
        let (hash, briefing) = (hash(&action), super::samples::briefing());
        transition(&action, Command::Approve { hash: &hash, briefing: &briefing }, approved_at).unwrap()
    };
    let then = |action: &Action, command| transition(action, command, approved_at).unwrap();
    let edited = |action: &Action| {
        let patch = json!({"title": "Other"});
        let patch = serde_json::from_value::<super::ActionPatch>(patch).unwrap().validate().unwrap();
        transition(action, Command::Patch { patch: &patch }, approved_at).unwrap()
    };
    // The due time on the 23rd is decided, and its record has expired.
    let decided = |action: &Action| {
        let due = ts("2026-11-23T09:00:00Z");
        let plan = plan_due(action, due, None, 1);
        let planned = transition(action, Command::Planned { plan: &plan }, due).unwrap();
        let outcome = ExecutionResult::Succeeded;
        let run = planned.live_run.unwrap();
        transition(&planned, Command::OccurrenceEnded { run, outcome }, due).unwrap()
    };
    let running = then(&approved(&daily), Command::Run { run: run(1) });
    let asked = then(&running, Command::OccurrenceEnded { run: run(1), outcome: ExecutionResult::Waiting });
    let drifted = then(&running, Command::OccurrenceEnded { run: run(1), outcome: ExecutionResult::Drifted });
    use AgentStatus::{Active, Archived, Paused};
    use ApprovalNow::{Drifted, Holds, Never, Withdrawn};
    let cases: Vec<(&str, Action, AgentStatus, ApprovalNow)> = vec![
        ("defined", defined(&daily), Active, Never),
        ("defined without a schedule", defined(&json!(null)), Active, Never),
        ("scheduled", approved(&daily), Active, Holds),
        ("scheduled, agent paused", approved(&daily), Paused, Holds),
        ("scheduled, agent archived", approved(&daily), Archived, Holds),
        ("scheduled, agent edited", approved(&daily), Active, Drifted),
        ("scheduled, decided once", decided(&approved(&daily)), Active, Holds),
        ("paused", then(&approved(&daily), Command::Pause), Active, Holds),
        ("paused, agent edited", then(&approved(&daily), Command::Pause), Active, Drifted),
        ("in progress", running, Active, Holds),
        ("edited", edited(&approved(&daily)), Active, Withdrawn),
        ("edited, decided once", edited(&decided(&approved(&daily))), Active, Withdrawn),
        ("asked", asked.clone(), Active, Holds),
        ("asked, agent paused", asked, Paused, Holds),
        ("held for a new approval", drifted, Active, Drifted),
        ("completed", then(&approved(&daily), Command::Complete), Active, Holds),
        ("completed, decided once", then(&decided(&approved(&daily)), Command::Complete), Active, Holds),
        ("failed", in_state(ActionState::Failed), Active, Holds),
        ("dismissed", then(&approved(&daily), Command::Dismiss), Active, Holds),
        ("dismissed, decided once", then(&decided(&approved(&daily)), Command::Dismiss), Active, Holds),
        ("dismissed, never approved", then(&defined(&daily), Command::Dismiss), Active, Never),
    ];
    let now = ts("2026-11-23T09:10:00Z");
    let times = [
        ("before it existed", ts("2026-11-21T09:00:00Z")),
        ("before its approval", ts("2026-11-22T09:00:00Z")),
        ("past", ts("2026-11-23T09:00:00Z")),
        ("future", ts("2026-11-24T09:00:00Z")),
    ];
    let mut report = String::new();
    for (name, action, agent, approval) in &cases {
        for (when, at) in times {
            let circumstances = Circumstances { agent: *agent, approval: *approval, ..usual(now) };
            let why = why(action, circumstances, None, at);
            let told = words(&format!("{name}: {when}"), &why);
            assert_eq!(why.code == WhyCode::BeforeItExisted, at < created, "{told}");
            if at < approved_at {
                let early = [WhyCode::BeforeItExisted, WhyCode::BeforeItWasDue, WhyCode::NotApproved];
                let other = [WhyCode::NoSchedule, WhyCode::Dismissed, WhyCode::NoRecord];
                assert!(early.iter().chain(&other).any(|code| *code == why.code), "{told}");
            }
            // Only what works, with an approval that holds, is said to be about to run.
            let is_coming = matches!(why.code, WhyCode::NotYetDue | WhyCode::NotYetDecided);
            let works = *agent == Active
                && *approval == Holds
                && matches!(action.state, ActionState::Scheduled | ActionState::InProgress);
            assert!(!is_coming || works, "{told}");
            let is_future = at > now;
            assert!(!is_future || !told.contains("was due") && !told.contains(" ran "), "{told}");
            assert!(is_future || !told.contains("is due") && !told.contains("Nothing runs"), "{told}");
            report.push_str(&told);
        }
    }
    insta::assert_snapshot!(report);
}

#[test]
fn a_run_that_is_due_is_not_said_to_wait_for_an_executor_if_something_else_holds_it_up() {
    let action = approved(&json!({"cron": "0 9 * * *", "overlap": "queue"}));
    let due_at = ts("2026-11-22T09:00:00Z");
    let plan = plan_due(&action, due_at, None, 1);
    let due = Occurrence::decided(&action, &plan.decided[0], due_at);
    let live = transition(&action, Command::Planned { plan: &plan }, due_at).unwrap();
    let behind = Action { live_run: Some(run(1)), queued: 1, ..live.clone() };
    let in_state = |state| Action { state, ..behind.clone() };
    let by_hand = Occurrence { kind: OccurrenceKind::Manual, ..due.clone() };
    let cases = [
        ("agent paused", &due, live.clone(), AgentStatus::Paused, ApprovalNow::Holds),
        ("agent archived", &due, live.clone(), AgentStatus::Archived, ApprovalNow::Holds),
        ("agent paused, by hand", &by_hand, live.clone(), AgentStatus::Paused, ApprovalNow::Holds),
        ("agent edited", &due, live.clone(), AgentStatus::Active, ApprovalNow::Drifted),
        ("action paused", &due, in_state(ActionState::Paused), AgentStatus::Active, ApprovalNow::Holds),
        ("asked", &due, in_state(ActionState::NeedsApproval), AgentStatus::Active, ApprovalNow::Holds),
        ("behind another run", &due, behind.clone(), AgentStatus::Active, ApprovalNow::Holds),
        ("next", &due, live.clone(), AgentStatus::Active, ApprovalNow::Holds),
    ];
    let now = due_at + SignedDuration::from_mins(2);
    let tell = |(name, occurrence, action, agent, approval): &(&str, &Occurrence, Action, _, _)| {
        let circumstances = Circumstances { agent: *agent, approval: *approval, ..usual(now) };
        words(name, &why(action, circumstances, Some(occurrence), due_at))
    };
    insta::assert_snapshot!(cases.iter().map(tell).collect::<String>());
}
