//! A platform whose clock the test sets, and in which nothing happens by itself.

#![allow(clippy::unwrap_used, reason = "a test's helpers panic as its body does")]

use std::collections::BTreeSet;
use std::time::Duration;

use base::clock::{Clock, ManualClock};
use domain::actions::{Occurrence, ReasonCode};
use domain::ids::{ActionId, AssetId, Owner, RunId};
use jiff::{SignedDuration, Timestamp};
use lamplighter_local::engines::faults::{FaultConfig, FaultRates};
use lamplighter_local::platform::PlatformConfig;
use models::ModelsConfig;
use serde_json::{Value, json};
use shared::config::RunsConfig;
use shared::flows::actions;
use shared::flows::executor::sweep::sweep;
use shared::store::table::Order;

use crate::Harness;
use crate::executors::Executors;

/// The time at which the clock of a stage begins.
pub fn noon() -> Timestamp {
    "2026-11-21T12:00:00Z".parse().unwrap()
}

/// A platform in which nothing happens automatically, one agent, and executors to run.
pub struct Stage {
    pub h: Harness,
    pub clock: ManualClock,
    pub executors: Executors,
    pub owner: Owner,
    pub agent: String,
}

impl Stage {
    /// With these models.
    pub async fn with(models: ModelsConfig) -> Self {
        Self::with_runs(models, RunsConfig::default()).await
    }

    /// With these models and these limits of runs.
    pub async fn with_runs(models: ModelsConfig, runs: RunsConfig) -> Self {
        Self::of(PlatformConfig { models, runs, ..PlatformConfig::in_memory() }).await
    }

    /// With these models, and with requests to the table and the bucket that can be counted.
    pub async fn counting(models: ModelsConfig) -> Self {
        let faults = FaultConfig { seed: 7, rates: FaultRates::default(), slow_by: Duration::ZERO };
        Self::of(PlatformConfig { models, faults: Some(faults), ..PlatformConfig::in_memory() }).await
    }

    /// With this configuration, but with its own clock and without automatic work.
    pub async fn of(config: PlatformConfig) -> Self {
        let clock = ManualClock::at(noon());
        let config = PlatformConfig { clock: Clock::Manual(clock.clone()), automatic: false, ..config };
        let h = Harness::with(config).await;
        let executors = Executors::of(&h.platform, 8);
        let agent = h.agent().await;
        Self { h, clock, executors, owner: Owner::new("local").unwrap(), agent }
    }

    /// Defines an action and approves it.
    pub async fn approved(&self, more: Value) -> ActionId {
        let mut body = json!({
            "title": "Report",
            "task_config": {"instructions": "Write a report about lamp oil", "expected_output": "A report"},
        });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let action = self.h.post(&format!("/agents/{}/actions", self.agent), body).await.expect(201);
        self.approve(&action).await
    }

    /// Approves an action as it was answered.
    pub async fn approve(&self, action: &Value) -> ActionId {
        let id = action["action_id"].as_str().unwrap();
        let hash = json!({"approval_hash": action["approval_hash"]});
        self.h.post(&format!("/actions/{id}/approve"), hash).await.expect(200);
        id.parse().unwrap()
    }

    /// The run of the newest due time of an action, as it is answered.
    pub async fn newest_run(&self, id: ActionId) -> Value {
        let run = self.occurrences(id).await.last().unwrap().run_id;
        self.h.get(&format!("/runs/{run}")).await.expect(200)
    }

    /// Sets the clock to this many minutes after noon.
    pub fn at(&self, minutes: i64) {
        self.clock.set(noon() + SignedDuration::from_mins(minutes));
    }

    /// One sweep over everything that is due.
    pub async fn sweep(&self) {
        sweep(&self.h.platform.cx, Timestamp::MAX).await.unwrap();
    }

    /// What happens automatically this many minutes after noon.
    pub async fn happens_at(&self, minutes: i64) {
        self.at(minutes);
        self.sweep().await;
        self.executors.work().await;
    }

    /// The action as it is stored.
    pub async fn action(&self, id: ActionId) -> domain::actions::Action {
        actions::load(&self.h.platform.cx, &self.owner, id).await.unwrap().value
    }

    /// Sorted by due time.
    pub async fn occurrences(&self, id: ActionId) -> Vec<Occurrence> {
        let found = self.h.platform.cx.store.occurrences(&self.owner, id, None, 100, Order::Oldest).await;
        found.unwrap().items.into_iter().map(|(_, occurrence)| occurrence.value).collect()
    }

    /// The result of each due time: minutes after noon, the state, the code of the reason. Scripted models repeat themselves, so it does
    /// not say that an output equals the last one.
    pub async fn became(&self, id: ActionId) -> Vec<String> {
        let told = |occurrence: &Occurrence| {
            let minutes = occurrence.due_at.duration_since(noon()).as_mins();
            let code = occurrence.reason_code.filter(|code| *code != ReasonCode::SameAsLast);
            let code = code.map(|code| serde_json::to_value(code).unwrap());
            let code = code.map_or_else(String::new, |code| format!(" {}", code.as_str().unwrap()));
            format!("{minutes} {}{code}", occurrence.state.as_str())
        };
        self.occurrences(id).await.iter().map(told).collect()
    }

    /// The ids of all assets.
    pub async fn assets(&self) -> BTreeSet<AssetId> {
        let found = self.h.platform.cx.store.assets(&self.owner, None, 500).await.unwrap();
        found.items.into_iter().map(|(_, asset)| asset.value.asset_id).collect()
    }

    /// How many outputs a run has.
    pub async fn outputs(&self, run: RunId) -> usize {
        self.h.platform.cx.store.run_outputs(&self.owner, run).await.unwrap().len()
    }
}
