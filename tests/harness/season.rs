//! Simulates months of appointments on the real store in a minute: crashing sweeps and executors, duplicates, an
//! outage.
//!
//! The clock jumps from one instant with work to the next. Then the result of each due time is compared with
//! [`Appointment`], which computes the due times independently, and with what its schedule says about a due time that
//! was found at that moment.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use base::clock::{Clock, ManualClock};
use domain::actions::plan::ON_TIME;
use domain::actions::{Action, Occurrence, OccurrenceState, ReasonCode};
use domain::ids::{ActionId, AssetId, Owner, RunId};
use domain::schedule::{CatchUp, Overlap};
use futures::future::join_all;
use futures::stream::{self, StreamExt};
use jiff::{SignedDuration, Timestamp};
use lamplighter_local::platform::PlatformConfig;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use shared::edge::extract::Actor;
use shared::flows::executor::sweep::sweep;
use shared::flows::{actions, agents};
use shared::store::table::Order;
use shared::store::{Once, Store};

use crate::Harness;
use crate::appointments::Appointment;
use crate::executors::{Executors, LEASE};
use crate::model::{Says, ScriptedModel};

/// After this time the sweep looks again at work that nobody has handled.
const AGAIN: SignedDuration = SignedDuration::from_mins(3);

/// The largest delay outside an outage: a few executors in a row may be killed before they decide.
const PATIENCE: SignedDuration = SignedDuration::from_hours(2);

/// How often an occurrence is tried.
const ATTEMPTS: u32 = 3;

/// The parameters of a simulation.
pub struct Season {
    pub start: Timestamp,
    pub days: i64,
    /// Nothing runs between these two instants.
    pub outage: (Timestamp, Timestamp),
    pub appointments: Vec<Appointment>,
    /// The share of messages that are delivered twice.
    pub duplicates: f64,
    /// The share of executors and sweeps that are killed.
    pub killed: f64,
    pub seed: u64,
}

/// The result of a simulation.
#[derive(Debug, Default)]
pub struct SeasonResult {
    /// The number of due times, by state and reason.
    pub ends: BTreeMap<String, usize>,
    /// The number of due times that passed.
    pub due: usize,
    pub executors_killed: usize,
    pub sweeps_killed: usize,
    pub duplicates: usize,
    /// Everything that is wrong. If it is not empty, the platform is broken.
    pub wrong: Vec<String>,
    pub took: Duration,
}

impl Season {
    fn end(&self) -> Timestamp {
        self.start + SignedDuration::from_hours(24 * self.days)
    }

    /// The same season with fewer days before and after the outage, without appointments that are not due in them.
    ///
    /// # Panics
    /// If the outage and some time around it do not fit into `days`.
    #[must_use]
    pub fn shortened(mut self, days: i64) -> Self {
        let (from, back) = self.outage;
        assert!(24 * days > back.duration_since(from).as_hours() + 24, "the outage alone takes three days");
        let whole_hours = (back.duration_since(from).as_hours() - 24 * days) / 2;
        self.start = from + SignedDuration::from_hours(whole_hours);
        self.days = days;
        let (start, end) = (self.start, self.end());
        self.appointments.retain(|appointment| !appointment.due(start, end).is_empty());
        self
    }

    /// Runs the simulation on a separate platform.
    ///
    /// # Panics
    /// If the platform does not start or returns an error. No error may occur here.
    pub async fn play(&self) -> SeasonResult {
        let began = Instant::now();
        let model = ScriptedModel::start(|_: &[Value]| Says::Text("Lamp oil is dear.".into())).await;
        let clock = ManualClock::at(self.start);
        let config = PlatformConfig {
            clock: Clock::Manual(clock.clone()),
            automatic: false,
            models: model.config("scripted"),
            ..PlatformConfig::in_memory()
        };
        let h = Harness::with(config).await;
        let mut stage = Stage {
            season: self,
            owner: Owner::new("local").expect("it is a name"),
            executors: Executors::of(&h.platform, 8),
            h,
            clock,
            decided: BTreeMap::new(),
            rng: StdRng::seed_from_u64(self.seed),
            outcome: SeasonResult::default(),
        };
        let ids = stage.approve().await;
        stage.live().await;
        for (id, appointment) in ids.into_iter().zip(&self.appointments) {
            stage.check(id, appointment).await;
        }
        let Stage { h, mut outcome, .. } = stage;
        h.platform.stop().await;
        outcome.took = began.elapsed();
        outcome
    }
}

struct Stage<'a> {
    season: &'a Season,
    h: Harness,
    owner: Owner,
    clock: ManualClock,
    executors: Executors,
    /// When each due time was decided: for which time, and at which time of the clock.
    decided: BTreeMap<RunId, (Timestamp, Timestamp)>,
    rng: StdRng,
    outcome: SeasonResult,
}

impl Stage<'_> {
    fn store(&self) -> &Store {
        &self.h.platform.cx.store
    }

    async fn approve(&self) -> Vec<ActionId> {
        let cx = &self.h.platform.cx;
        let agent = serde_json::from_value(json!({"name": "Watch", "goal": "Watch"})).expect("an agent");
        let agent = agents::create(cx, &self.owner, &Once::none(), Actor::Person, agent)
            .await
            .expect("it is made")
            .agent
            .agent_id;
        let one = async |appointment: &Appointment| {
            let input = serde_json::from_value(json!({
                "title": "Report", "task_config": {"instructions": "Do it", "expected_output": "A page"},
                "schedule": appointment.schedule(self.season.end()),
            }));
            let input = input.expect("an action");
            let action = actions::define(cx, &self.owner, &Once::none(), Actor::Person, agent, input)
                .await
                .expect("it is defined");
            let id = action.action.id;
            actions::approve(cx, &self.owner, &Once::none(), Actor::Person, id, &action.approval_hash)
                .await
                .expect("it is approved");
            id
        };
        join_all(self.season.appointments.iter().map(one)).await
    }

    async fn actions(&self) -> BTreeMap<ActionId, Action> {
        let found = self.store().actions(&self.owner, None, 200).await.expect("the table answers");
        assert!(found.last.is_none(), "a season has at most 200 appointments");
        found.items.into_iter().map(|(_, action)| (action.value.id, action.value)).collect()
    }

    /// Advances the time until no more work can occur.
    async fn live(&mut self) {
        let Season { duplicates, killed, outage, .. } = *self.season;
        self.executors.trouble(duplicates, killed);
        let mut actions = self.actions().await;
        while let Some(mut next) = next_instant(&actions, self.clock.now()) {
            if next >= outage.0 && next < outage.1 {
                next = outage.1;
            }
            self.clock.set(next);
            let dies_after = if self.rng.random_bool(killed) {
                Duration::from_millis(10).mul_f64(self.rng.random())
            } else {
                Duration::MAX
            };
            match tokio::time::timeout(dies_after, sweep(&self.h.platform.cx, Timestamp::MAX)).await {
                Ok(swept) => assert_eq!(swept.expect("the table answers").failed, 0),
                Err(_) => self.outcome.sweeps_killed += 1,
            }
            // With the sweep's notes.
            actions = self.actions().await;
            let worked = self.executors.work().await;
            self.outcome.executors_killed += worked.killed;
            self.outcome.duplicates += worked.duplicates;
            let after = self.actions().await;
            for (id, before) in &actions {
                self.note(before, &after[id], next);
            }
            actions = after;
        }
    }

    /// Records which due times have been found: the action has advanced past them.
    fn note(&mut self, before: &Action, after: &Action, now: Timestamp) {
        let (Some(schedule), Some(anchor)) = (&before.schedule, before.anchor) else { return };
        let mut due = before.next_due;
        while let Some(at) = due.filter(|at| after.next_due.is_none_or(|next| *at < next)) {
            let as_of = Action { next_due: Some(at), ..before.clone() }.decided_as_of(now);
            self.decided.insert(RunId::for_occurrence(before.id, at), (as_of, now));
            due = schedule.next_after(anchor, at);
        }
    }

    async fn check(&mut self, id: ActionId, appointment: &Appointment) {
        let (mut occurrences, mut after) = (Vec::new(), None::<String>);
        loop {
            let found = self.store().occurrences(&self.owner, id, after.as_deref(), 500, Order::Oldest).await;
            let found = found.expect("the table answers");
            occurrences.extend(found.items.into_iter().map(|(_, occurrence)| occurrence.value));
            after = found.last;
            if after.is_none() {
                break;
            }
        }
        let Season { start, .. } = *self.season;
        let expected = appointment.due(start, self.season.end());
        self.outcome.due += expected.len();
        let due: Vec<Timestamp> = occurrences.iter().map(|occurrence| occurrence.due_at).collect();
        if due != expected {
            let lost: Vec<_> = expected.iter().filter(|at| !due.contains(at)).collect();
            let more: Vec<_> = due.iter().filter(|at| !expected.contains(at)).collect();
            let what = appointment.schedule(self.season.end());
            self.outcome.wrong.push(format!("{what}: lost {lost:?}, not due {more:?}"));
            return;
        }
        let action = actions::load(&self.h.platform.cx, &self.owner, id).await.expect("it is there").value;
        // Concurrent requests keep both the table and the client busy.
        let saved = stream::iter(&occurrences).map(|occurrence| self.saved(occurrence)).buffered(8);
        let saved: Vec<_> = saved.collect().await;
        for (occurrence, saved) in occurrences.iter().zip(saved) {
            // The runs of a season save the same text.
            let code = occurrence.reason_code.filter(|code| *code != ReasonCode::SameAsLast);
            let code = code.map(|code| format!(" {code:?}")).unwrap_or_default();
            *self.outcome.ends.entry(format!("{}{code}", occurrence.state.as_str())).or_default() += 1;
            let ends = self.check_end(&action, appointment, &occurrences, occurrence);
            if let Err(why) = ends.and(saved) {
                self.outcome.wrong.push(format!("{why}: {occurrence:?}"));
            }
        }
    }

    /// Whether an occurrence has ended as its schedule requires.
    fn check_end(
        &self,
        action: &Action,
        appointment: &Appointment,
        all: &[Occurrence],
        occurrence: &Occurrence,
    ) -> Result<(), String> {
        let schedule = action.schedule.as_ref().ok_or("the action has lost its schedule")?;
        let wake = |occurrence: &Occurrence| schedule.wake_at(action.id, occurrence.due_at);
        let found = |occurrence: &Occurrence| self.decided.get(&occurrence.run_id).map(|(as_of, _)| *as_of);
        let written = |occurrence: &Occurrence| self.decided.get(&occurrence.run_id).map(|(_, at)| *at);
        let at = found(occurrence).ok_or("it was never found")?;
        let (from, back) = self.season.outage;
        let possible = if (from..back).contains(&wake(occurrence)) { back } else { wake(occurrence) };
        // What was sent ahead before the outage was found before it.
        if at < possible && at != wake(occurrence) || at > possible + PATIENCE {
            return Err(format!("it was found at {at}, and could have been at {possible}"));
        }
        let late = at.duration_since(wake(occurrence)) >= ON_TIME;
        let newest = !all.iter().any(|other| other.due_at > occurrence.due_at && wake(other) <= at);
        let missed = match appointment.catch_up {
            _ if !late => None,
            CatchUp::None => Some(ReasonCode::CatchUpOff),
            CatchUp::Latest if !newest => Some(ReasonCode::Superseded),
            _ if at.duration_since(occurrence.due_at) > appointment.oldest() => Some(ReasonCode::TooOld),
            _ => None,
        };
        let waits = appointment.overlap == Overlap::Queue || late && appointment.catch_up == CatchUp::All;
        let earlier_run_is_live = || {
            all.iter().any(|other| {
                let runs = !matches!(other.state, OccurrenceState::Missed | OccurrenceState::Skipped);
                runs && other.due_at < occurrence.due_at
                    && found(other).is_some_and(|found| found <= at)
                    && other.finished_at.is_some_and(|ended| ended >= at)
            })
        };
        let replaced_at = |ended: Timestamp| {
            all.iter().any(|other| other.due_at > occurrence.due_at && written(other) == Some(ended))
        };
        let replaces = appointment.overlap == Overlap::Replace;
        let ok = match (occurrence.state, occurrence.reason_code, missed) {
            (OccurrenceState::Missed, code, Some(_)) => code == missed,
            (_, _, Some(_)) => false,
            (OccurrenceState::Succeeded, None | Some(ReasonCode::SameAsLast), None) => true,
            (OccurrenceState::Failed, Some(ReasonCode::Killed), None) => {
                occurrence.attempts - occurrence.attempts_before_step == ATTEMPTS
            }
            (OccurrenceState::Skipped, Some(ReasonCode::Overlap), None) => {
                !waits && !replaces && earlier_run_is_live()
            }
            (OccurrenceState::Skipped, Some(ReasonCode::Replaced), None) => !waits && replaces && !newest,
            (OccurrenceState::Cancelled, Some(ReasonCode::Replaced), None) => {
                replaces && occurrence.finished_at.is_some_and(replaced_at)
            }
            _ => false,
        };
        if ok { Ok(()) } else { Err(format!("found at {at}, late: {late}, newest: {newest}")) }
    }

    /// Whether a successful occurrence has exactly one output, and whether the run's record has ended.
    async fn saved(&self, occurrence: &Occurrence) -> Result<(), String> {
        let succeeded = occurrence.state == OccurrenceState::Succeeded;
        let store = self.store();
        let outputs = store.run_outputs(&self.owner, occurrence.run_id).await.expect("the table answers");
        let ids: HashSet<AssetId> = outputs.iter().map(|output| output.asset_id).collect();
        let only = HashSet::from([AssetId::for_output(occurrence.run_id, 0)]);
        if succeeded && ids != only || !ids.is_subset(&only) {
            return Err(format!("it has the outputs {ids:?}"));
        }
        let run = store.run(&self.owner, occurrence.run_id).await.expect("the table answers");
        match run {
            Some(run) if !run.value.state.is_final() => Err(format!("its run is {:?}", run.value.state)),
            None if succeeded => Err("its run has no record".to_owned()),
            _ => Ok(()),
        }
    }
}

/// The next instant with work. `None`: there is no more work.
fn next_instant(actions: &BTreeMap<ActionId, Action>, now: Timestamp) -> Option<Timestamp> {
    let next = |action: &Action| match action.wake_at(None) {
        Some(wake) if wake <= now => Some(now + AGAIN),
        // It may be due again before its live run is given up.
        wake => wake.into_iter().chain(action.live_run.map(|_| now + LEASE)).min(),
    };
    actions.values().filter_map(next).min()
}
