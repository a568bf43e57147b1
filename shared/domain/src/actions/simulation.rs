//! Simulates ninety days of wake-ups, crashes, retries and an outage with the functions of the domain. Every due time must get
//! exactly one decision, nothing may run twice, and nothing may be left over.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::samples::{briefing, defined, run, ts};
use super::{
    Action, ActionState, Command, Decision, ExecutionResult, Occurrence, OccurrenceCommand,
    OccurrenceRefused, OccurrenceState, Reason, ReasonCode, Refused, approval_hash, plan_due, transition,
};
use crate::background::attempts;
use crate::ids::RunId;

const DAYS: i64 = 90;

/// The stored data, and the random events.
struct World {
    action: Action,
    occurrences: BTreeMap<RunId, Occurrence>,
    now: Timestamp,
    luck: Luck,
    /// How often the work of a run was completed.
    completions: BTreeMap<RunId, u32>,
}

/// Random numbers from bytes that proptest chose. The bytes are used in a cycle.
struct Luck {
    bytes: Vec<u8>,
    next: usize,
}

impl Luck {
    fn roll(&mut self, sides: u8) -> u8 {
        self.next += 1;
        let round = u8::try_from(self.next / self.bytes.len() % 251).unwrap();
        self.bytes[self.next % self.bytes.len()].wrapping_add(round.wrapping_mul(67)) % sides
    }
}

impl World {
    fn new(schedule: &Value, start: Timestamp, bytes: Vec<u8>) -> Self {
        let action = defined(schedule);
        let hash = approval_hash(&action, &briefing());
        let action =
            transition(&action, Command::Approve { hash: &hash, briefing: &briefing() }, start).unwrap();
        let luck = Luck { bytes, next: 0 };
        Self { action, occurrences: BTreeMap::new(), now: start, luck, completions: BTreeMap::new() }
    }

    fn live(&self) -> Option<&Occurrence> {
        self.action.live_run.map(|run| &self.occurrences[&run])
    }

    /// A write of the action on the condition that its version is the one that was read.
    fn write(&mut self, read: &Action, command: Command<'_>) -> Result<(), Refused> {
        let next = transition(read, command, self.now)?;
        if read.version == self.action.version {
            self.action = next;
        }
        Ok(())
    }

    /// The check before the next due time, if its moment has come. Its executor may be killed before its transaction, and a second one
    /// may have read the same data.
    fn preflight(&mut self) {
        let read = self.action.clone();
        let Some(check) = read.preflight_due(self.now) else { return };
        let due_at = read.next_due.unwrap();
        assert!(check.moment <= self.now && check.moment < due_at && check.due_at == due_at);
        if self.luck.roll(8) == 0 {
            return;
        }
        for _ in 0..2 {
            self.write(&read, Command::Preflighted { check, found: None }).unwrap();
        }
        assert_eq!(self.action.preflight_due(self.now), None);
        assert_eq!(self.action.wake_at(None), read.wake_at(None), "a check does not move a due time");
    }

    /// One sweep. It may be killed before its transaction, or a second sweep may have read the same data.
    fn sweep(&mut self) {
        let read = self.action.clone();
        let limit = usize::from(self.luck.roll(5)) + 1;
        let plan = plan_due(&read, self.now, self.live(), limit);
        if plan.decided.is_empty() || self.luck.roll(8) == 0 {
            return;
        }
        let sweeps = if self.luck.roll(4) == 0 { 2 } else { 1 };
        for _ in 0..sweeps {
            if read.version != self.action.version {
                continue;
            }
            for decided in &plan.decided {
                if let Decision::Run { cancels: Some(run), .. } = &decided.decision {
                    self.apply(
                        *run,
                        OccurrenceCommand::Cancel {
                            reason: Reason::new(ReasonCode::Replaced, "a later due time replaces it"),
                        },
                    )
                    .unwrap();
                }
                let occurrence = plan.record(&read, decided, self.now);
                let run = occurrence.run_id;
                let continues = read.held.is_some_and(|held| held.run_id(read.id) == run);
                let earlier = self.occurrences.insert(run, occurrence);
                assert_eq!(earlier.is_some(), continues, "{} was decided twice", decided.due_at);
            }
            self.write(&read, Command::Planned { plan: &plan }).unwrap();
        }
    }

    fn apply(&mut self, run: RunId, command: OccurrenceCommand) -> Result<(), OccurrenceRefused> {
        let next = self.occurrences[&run].transition(command, self.now)?;
        self.occurrences.insert(run, next);
        Ok(())
    }

    /// One message to an executor, for the live run or else for the oldest run that is due.
    fn execute(&mut self) {
        let due = |occurrence: &&Occurrence| occurrence.state == OccurrenceState::Due;
        let oldest = || self.occurrences.values().filter(due).min_by_key(|occurrence| occurrence.due_at);
        let Some(occurrence) = self.live().or_else(oldest) else { return };
        let (run, hash) = (occurrence.run_id, occurrence.approval_hash.clone().unwrap());
        if !occurrence.may_claim(self.now) {
            if self.apply(run, OccurrenceCommand::Expire).is_ok() {
                let outcome = match self.occurrences[&run].state {
                    OccurrenceState::Unknown => ExecutionResult::Unknown,
                    _ => ExecutionResult::Failed,
                };
                self.end(run, outcome);
            }
            return;
        }
        let read = self.action.clone();
        match self.write(&read, Command::OccurrenceStarted { run, approval_hash: &hash }) {
            Ok(()) => {}
            // The action is paused, or a person is asked. Queued runs wait.
            Err(Refused::WrongState { state: ActionState::NeedsApproval | ActionState::Paused, .. }) => {
                let until = self.now + SignedDuration::from_mins(1);
                return self
                    .apply(run, OccurrenceCommand::Defer { until, because: ReasonCode::Paused })
                    .unwrap();
            }
            Err(refused) => panic!("{refused}"),
        }
        let occurrence = &self.occurrences[&run];
        assert!(occurrence.due_at <= self.now, "nothing starts before its due time");
        let lease_until = self.now + SignedDuration::from_mins(16);
        self.apply(run, OccurrenceCommand::Claim { lease_until }).unwrap();
        let fence = self.occurrences[&run].fence;
        let stale = self.apply(run, OccurrenceCommand::Succeed { fence: fence - 1, score: None, note: None });
        assert_eq!(stale, Err(OccurrenceRefused::StaleFence { given: fence - 1, current: fence }));
        if self.luck.roll(8) == 0 {
            return;
        }
        self.apply(run, OccurrenceCommand::Start { fence }).unwrap();
        self.work(run, fence);
    }

    fn work(&mut self, run: RunId, fence: u64) {
        self.now += SignedDuration::from_secs(i64::from(self.luck.roll(200)));
        let step =
            OccurrenceCommand::StepDone { fence, usage: crate::models::Usage::default(), cost_micros: 3 };
        self.apply(run, step).unwrap();
        match self.luck.roll(16) {
            0 => {} // killed
            1 => {
                self.apply(run, OccurrenceCommand::EffectBegun { fence, effect: "send_email".into() })
                    .unwrap();
            }
            2 => self.apply(run, OccurrenceCommand::HandOver { fence }).unwrap(),
            3 => {
                self.apply(
                    run,
                    OccurrenceCommand::Wait {
                        fence,
                        reason: Reason::new(ReasonCode::OutsideGrant, "it wants send_email"),
                        answer_by: None,
                    },
                )
                .unwrap();
                self.end(run, ExecutionResult::Waiting);
            }
            4 => {
                self.apply(run, OccurrenceCommand::Drift { fence }).unwrap();
                self.end(run, ExecutionResult::Drifted);
            }
            5..=7 => {
                let retryable = self.luck.roll(4) > 0;
                let fail = OccurrenceCommand::Fail { fence, error: "overloaded".into(), retryable };
                self.apply(run, fail).unwrap();
                if self.occurrences[&run].state == OccurrenceState::Failed {
                    self.end(run, ExecutionResult::Failed);
                }
            }
            _ => {
                *self.completions.entry(run).or_default() += 1;
                self.apply(run, OccurrenceCommand::Succeed { fence, score: Some(80), note: None }).unwrap();
                self.end(run, ExecutionResult::Succeeded);
                // The queue delivers twice.
                self.end(run, ExecutionResult::Succeeded);
            }
        }
    }

    fn end(&mut self, run: RunId, outcome: ExecutionResult) {
        let ended = &self.occurrences[&run];
        let next = self.action.after(ended, self.now);
        assert_eq!(next, self.action.after(ended, self.now));
        let pauses = next.paused_because.is_some() && self.action.paused_because.is_none();
        assert!(!pauses || next.failures.as_ref().is_some_and(|failures| failures.times == 3), "{next:?}");
        assert!(!pauses || outcome == ExecutionResult::Failed);
        self.action = next;
    }

    /// A person answers a question, pauses, resumes, or runs the action once by hand.
    fn person(&mut self) {
        let read = self.action.clone();
        match (read.state, self.luck.roll(12)) {
            (ActionState::NeedsApproval | ActionState::InProgress, 0..=2) => {
                if let Some(run) = read.live_run {
                    self.apply(
                        run,
                        OccurrenceCommand::Cancel {
                            reason: Reason::new(ReasonCode::Cancelled, "a person cancelled it"),
                        },
                    )
                    .unwrap();
                }
                self.write(&read, Command::Cancel).unwrap();
            }
            (ActionState::NeedsApproval, _) => {
                if let Some(run) = read.live_run {
                    self.apply(run, OccurrenceCommand::Answer).unwrap();
                }
                let _ = self.write(&read, Command::Resume);
            }
            (ActionState::Paused, _) => self.write(&read, Command::Resume).unwrap(),
            (ActionState::Scheduled, 0) => self.write(&read, Command::Pause).unwrap(),
            (ActionState::Scheduled, 1) if read.live_run.is_none() => {
                let run = run(u128::from(read.version));
                self.occurrences.insert(run, Occurrence::manual(&read, run, self.now));
                self.write(&read, Command::Run { run }).unwrap();
            }
            _ => {}
        }
    }

    /// Moves the clock until something has to be done. Returns `false` if nothing will happen any more, even if a person acts.
    fn pass_time(&mut self) -> bool {
        let Action { state, queued, .. } = self.action;
        if let Some(wake) = self.action.look_at(self.live()) {
            self.now = self.now.max(wake) + SignedDuration::from_secs(i64::from(self.luck.roll(120)));
        } else if queued > 0 {
            self.now += SignedDuration::from_mins(1);
        } else if state == ActionState::NeedsApproval && self.action.live_run.is_some() {
            self.now += SignedDuration::from_hours(5);
            self.person();
        } else {
            return false;
        }
        true
    }

    fn check(&self) {
        let busy = |occurrence: &&Occurrence| {
            matches!(occurrence.state, OccurrenceState::Claimed | OccurrenceState::Running)
        };
        let running: Vec<RunId> =
            self.occurrences.values().filter(busy).map(|occurrence| occurrence.run_id).collect();
        assert!(
            running.iter().all(|run| Some(*run) == self.action.live_run),
            "{running:?} run besides the live run"
        );
        let due = self.occurrences.values().filter(|occurrence| occurrence.state == OccurrenceState::Due);
        let waiting = due.filter(|occurrence| Some(occurrence.run_id) != self.action.live_run).count();
        assert_eq!(
            waiting,
            usize::try_from(self.action.queued).unwrap(),
            "runs that are due and not live are queued"
        );
    }
}

#[test]
fn the_clocks_of_casablanca_change_twice_in_the_ninety_days() {
    let start = ts("2026-02-01T12:00:00Z");
    let zone = jiff::tz::TimeZone::get("Africa/Casablanca").unwrap();
    let end = start + SignedDuration::from_hours(24 * DAYS);
    assert_eq!(zone.following(start).take_while(|change| change.timestamp() < end).count(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn each_due_time_is_decided_once_and_no_run_completes_twice(
        (zone, start, cron) in prop::sample::select(vec![
            // Both clock changes of the year within ninety days.
            ("Africa/Casablanca", "2026-02-01T12:00:00Z", "30 2 * * *"),
            ("Africa/Casablanca", "2026-02-01T12:00:00Z", "15 */4 * * *"),
            ("Europe/Berlin", "2027-02-01T12:00:00Z", "30 2,14 * * *"),
            ("America/New_York", "2026-09-20T12:00:00Z", "0,30 1,2 * * *"),
        ]),
        overlap in prop::sample::select(&["skip", "queue", "replace"][..]),
        catch_up in prop::sample::select(&["none", "latest", "all"][..]),
        jitter in 0i64..600,
        outage_day in 5i64..60,
        outage_hours in 0i64..100,
        bytes in prop::collection::vec(any::<u8>(), 16..64),
    ) {
        let (start, outage) = (ts(start), ts(start) + SignedDuration::from_hours(24 * outage_day));
        let back = outage + SignedDuration::from_hours(outage_hours);
        let end = start + SignedDuration::from_hours(24 * DAYS);
        let json = json!({
            "cron": cron, "timezone": zone, "overlap": overlap, "catch_up": catch_up,
            "jitter": format!("{jitter}s"), "end_at": end,
        });
        let mut world = World::new(&json, start, bytes);
        let mut rounds = 0;
        while world.pass_time() {
            rounds += 1;
            prop_assert!(rounds < 20_000, "the simulation must end: {:?}", world.action);
            if world.now > outage && world.now < back {
                world.now = back;
            }
            world.preflight();
            world.sweep();
            world.check();
            world.execute();
            world.check();
            if world.luck.roll(6) == 0 {
                world.person();
                world.check();
            }
        }

        let schedule = world.action.schedule.clone().unwrap();
        let mut expected: Vec<Timestamp> = std::iter::successors(schedule.next_after(start, start), |last| schedule.next_after(start, *last)).collect();
        expected.sort_unstable();
        let kinds = |occurrence: &&Occurrence| occurrence.kind != super::OccurrenceKind::Manual;
        let covered = |occurrence: &Occurrence| {
            let (first, times) = (occurrence.due_at, occurrence.covers.map_or(1, |covers| covers.times));
            let fires = std::iter::successors(Some(first), |last| schedule.next_after(start, *last));
            let fires: Vec<Timestamp> = fires.take(times as usize).collect();
            assert_eq!(fires.last().copied(), Some(occurrence.covers.map_or(first, |covers| covers.last)));
            fires
        };
        let mut decided: Vec<Timestamp> = world.occurrences.values().filter(kinds).flat_map(covered).collect();
        decided.sort_unstable();
        prop_assert_eq!(decided, expected);
        for occurrence in world.occurrences.values() {
            prop_assert!(occurrence.state.is_final(), "{:?}", occurrence);
            let completions = world.completions.get(&occurrence.run_id).copied().unwrap_or_default();
            prop_assert_eq!(completions, u32::from(occurrence.state == OccurrenceState::Succeeded));
            prop_assert!(occurrence.attempts <= attempts::IN_TOTAL);
        }
    }
}
