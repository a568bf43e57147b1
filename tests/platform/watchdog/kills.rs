//! A look that dies before and after each of its writes, and whose message then comes again and is doubled: in the end, everything was said,
//! counted and healed once, as if nothing had died.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use domain::background::jobs::{JobKind, JobRun, JobState, Outcome};
use domain::ids::Owner;
use domain::watchdog::{Check, LOOK_EVERY, look_at};
use jiff::{SignedDuration, Timestamp};
use lamplighter_local::engines::faults::{FaultConfig, FaultRates, Faults};
use lamplighter_local::engines::queue::Queue;
use lamplighter_local::platform::PlatformConfig;
use serde_json::{Value, json};
use shared::Cx;
use shared::flows::executor::route;
use shared::flows::watched::watchdog;
use shared::store::{DueItem, DueTarget, Store};
use tests::bus;
use tests::executors::bury;
use tests::memory::learns;
use tests::model::ScriptedModel;
use tests::site::{Answers, Site};
use tests::stage::Stage;

/// More writes than a look and its notices have.
const MOST_WRITES: u64 = 40;

/// The look that dies. It is the third one that sees the person.
fn third() -> Timestamp {
    "2026-11-23T00:16:00Z".parse().unwrap()
}

/// A person whom a look alerts about a job and an action, whom it tells that another job is right again, and whose missed synchronisation it
/// runs.
struct Scene {
    stage: Stage,
    faults: Faults,
    site: Arc<Site>,
    /// The action without a next time.
    action: String,
    _model: ScriptedModel,
}

/// What a person and the table have in the end.
#[derive(Debug, PartialEq)]
struct Result {
    alerts: Value,
    counters: Value,
    /// By the id of the notice: a receiver may get a message twice, with the same id.
    notices: BTreeSet<String>,
    deliveries: Vec<String>,
    learned: Vec<String>,
    synchronisations: Vec<(Timestamp, JobState, u64)>,
}

fn cut_off() -> FaultConfig {
    FaultConfig { seed: 7, rates: FaultRates::default(), slow_by: Duration::from_millis(20) }
}

/// A process of its own.
fn process(cx: &Cx) -> Cx {
    let new = Cx::new((*cx.config).clone(), cx.clock.clone()).unwrap();
    new.with(|parts| parts.bus = cx.bus.clone())
}

fn later(cx: &Cx) -> Timestamp {
    cx.clock.now() + SignedDuration::from_mins(15)
}

/// Receives all messages and does nothing about them.
async fn lose(queue: &Queue) -> Vec<DueItem> {
    let mut lost = Vec::new();
    loop {
        let messages = queue.receive(10, Duration::ZERO).await;
        if messages.is_empty() {
            return lost;
        }
        for message in messages {
            lost.push(serde_json::from_str(&message.body).unwrap());
            queue.delete(message.receipt).unwrap();
        }
    }
}

impl Scene {
    async fn new() -> Self {
        let (model, site) = (ScriptedModel::start(learns).await, Site::start(Answers::Status(204)).await);
        let config = PlatformConfig {
            models: model.config("scripted"),
            reach: site.reach(),
            faults: Some(cut_off()),
            ..PlatformConfig::in_memory()
        };
        let stage = Stage::of(config).await;
        let h = &stage.h;
        h.patch("/account", json!({"timezone": "Europe/Berlin"})).await.expect(200);
        let hook = json!({"kind": "webhook", "url": site.url("/hook")});
        h.post("/notifications/channels", hook).await.expect(201);
        stage.says(None, &["I like green tea", "I work at a small shop in Lisbon"]).await;
        stage.moves_to("2026-11-21T22:01:00Z").await;
        let faults = h.platform.engines().faults().unwrap().clone();
        let mut scene = Self { stage, faults, site: Arc::new(site), action: String::new(), _model: model };

        scene.stage.clock.set("2026-11-22T12:00:00Z".parse().unwrap());
        scene.stage.says(None, &["I like coffee", "I have two cats"]).await;
        let (cx, owner) = (&scene.stage.h.platform.cx, &scene.stage.owner);
        let due = cx.store.memory_due(owner).await.unwrap().unwrap();
        let far = cx.clock.now() + SignedDuration::from_hours(24 * 30);
        cx.store.set_memory_due(owner, &due.value, far).await.unwrap();
        // Two looks see an import that has done nothing, and the second one an export and an action.
        let empty = Outcome { work_found: 3, ..Outcome::default() };
        scene.job(JobKind::LogsImport, third() - LOOK_EVERY * 3, empty.clone()).await;
        scene.whole_look(third() - LOOK_EVERY * 2).await;
        let failed =
            Outcome { work_found: 1, error: Some("the archive is gone".to_owned()), ..empty.clone() };
        scene.job(JobKind::AccountExport, third() - LOOK_EVERY, failed).await;
        let id = scene.stage.approved(json!({"schedule": {"every": "300h"}})).await;
        let found = cx.store.action(owner, id).await.unwrap().unwrap();
        let action = domain::actions::Action { next_due: None, ..found.value };
        let write = Store::replace_action(owner, &action, found.version, None).unwrap();
        assert!(cx.store.write_all(vec![write]).await.unwrap().done());
        scene.whole_look(third() - LOOK_EVERY).await;
        scene.job(JobKind::LogsImport, third() - LOOK_EVERY / 2, Outcome { artefacts: 3, ..empty }).await;
        scene.stage.clock.set(third());
        scene.action = id.to_string();
        scene
    }

    async fn job(&self, kind: JobKind, due: Timestamp, outcome: Outcome) {
        let job = JobRun::begin(None, kind, "subject", due, due).end(outcome, due);
        assert!(
            self.stage.h.platform.cx.store.save_job_run(&self.stage.owner, &job, 0).await.unwrap().done()
        );
    }

    fn queue(&self) -> &Queue {
        self.stage.h.platform.engines().queue("scheduled-executor").unwrap()
    }

    fn look(&self) -> DueItem {
        DueItem { due_at: Some(look_at(third())), ..DueItem::watchdog(&self.stage.owner) }
    }

    async fn whole_look(&self, at: Timestamp) {
        self.stage.clock.set(at);
        let cx = &self.stage.h.platform.cx;
        watchdog::send(cx, later(cx)).await.unwrap();
        self.stage.executors.work().await;
    }

    /// One process: the look, and what it sends about notices. It never comes to the synchronisation.
    async fn looks(&self, cx: &Cx) -> shared::Result<()> {
        route::process(cx, &self.look(), later(cx)).await?;
        for item in lose(self.queue()).await {
            if item.target != DueTarget::Memory {
                route::process(cx, &item, later(cx)).await?;
            }
        }
        Ok(())
    }

    /// What happens in the next hours without another look.
    async fn goes_on(&self) {
        for minutes in [0, 4, 40, 80] {
            self.stage.clock.set(third() + SignedDuration::from_mins(minutes));
            self.stage.sweep().await;
            self.stage.executors.work().await;
        }
    }

    async fn result(&self) -> Result {
        let h = &self.stage.h;
        let named = |value: &Value| value.to_string().replace(&self.action, "ACTION");
        let of = |value: &Value| serde_json::from_str::<Value>(&named(value)).unwrap();
        let posted: BTreeMap<String, String> = self
            .site
            .posted()
            .iter()
            .map(|posted| {
                let json = posted.json();
                let data = &json["data"];
                let said =
                    format!("{} {} {} {}", json["type"], data["count"], data["is_over"], data["title"]);
                (posted.header("webhook-id").to_owned(), said)
            })
            .collect();
        let said: BTreeSet<String> = posted.values().cloned().collect();
        assert_eq!(said.len(), posted.len(), "a notice has two ids: {posted:#?}");
        let deliveries = h.get("/deliveries").await.expect(200);
        let deliveries = deliveries["data"].as_array().unwrap().iter();
        let mut deliveries: Vec<String> =
            deliveries.map(|delivery| format!("{} {}", delivery["state"], delivery["subject"])).collect();
        deliveries.sort();
        let jobs = self.stage.h.platform.cx.store.job_runs(&self.stage.owner, None, 100).await.unwrap();
        let jobs = jobs.items.into_iter().map(|(_, found)| found.value);
        Result {
            alerts: of(&h.get("/watchdog/alerts").await.expect(200)["data"]),
            counters: of(&h.get("/watchdog").await.expect(200)["counters"]),
            notices: said,
            deliveries,
            learned: self.stage.learned_on("2026-11-22").await,
            synchronisations: jobs
                .filter(|job| job.kind == JobKind::MemoryDaily)
                .map(|job| (job.due, job.state, job.artefacts))
                .collect(),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_that_dies_anywhere_says_counts_and_heals_everything_once() {
    let whole = Scene::new().await;
    whole.looks(&process(&whole.stage.h.platform.cx)).await.unwrap();
    whole.goes_on().await;
    let whole = whole.result().await;
    let says: Vec<_> =
        whole.alerts.as_array().unwrap().iter().map(|said| (&said["say"], &said["check"])).collect();
    let (alert, recovery) = (json!("alert"), json!("recovery"));
    let checks = ["empty_success", "job_failed", "action_without_next"].map(|check| json!(check));
    let [empty, failed, without_next] = &checks;
    for expected in [(&alert, empty), (&recovery, empty), (&alert, failed), (&alert, without_next)] {
        assert_eq!(says.iter().filter(|said| **said == expected).count(), 1, "{expected:?}: {says:?}");
    }
    assert_eq!(says.len(), 4, "{says:?}");
    assert_eq!(whole.learned.len(), 2, "the missed synchronisation has run");
    assert_eq!(whole.notices.len(), 4, "{:#?}", whole.notices);

    for dies in [Faults::stop_after, Faults::stop_before_write_after] {
        let mut writes = 0;
        while is_cut_off(dies, writes, &whole, &checks).await {
            writes += 1;
            assert!(writes < MOST_WRITES, "a look has more than {MOST_WRITES} writes");
        }
        assert!(writes >= 4, "a look and its notices have only {writes} writes");
    }
}

/// A look that dies after so many writes, or before the next one. Returns whether it did. What remains in the end is as if it had not.
async fn is_cut_off(dies: fn(&Faults, u64), writes: u64, whole: &Result, checks: &[Value]) -> bool {
    let scene = Scene::new().await;
    let (cx, told) = bus::kept(&scene.stage.h.platform.cx).await;
    dies(&scene.faults, writes);
    let ended = scene.looks(&process(&cx)).await;
    let is_cut = scene.faults.go_on();
    assert_eq!(ended.is_err(), is_cut, "{writes}: {ended:?}");
    // Everything that was sent is lost. The message of the look comes again, twice at once, and a third time.
    lose(scene.queue()).await;
    let (one, other) = (process(&cx), process(&cx));
    let (first, second) = futures::join!(scene.looks(&one), scene.looks(&other));
    first.and(second).unwrap_or_else(|error| panic!("{writes}: {}", error.causes()));
    route::process(&process(&cx), &scene.look(), later(&cx)).await.unwrap();
    lose(scene.queue()).await;
    scene.goes_on().await;
    route::process(&process(&cx), &scene.look(), later(&cx)).await.unwrap();
    assert_eq!(scene.result().await, *whole, "cut off after {writes} writes");
    // The operator's programs get each event at least once.
    let told = Value::Array(told.lock().unwrap().clone()).to_string();
    for check in checks.iter().filter_map(Value::as_str) {
        assert!(told.contains(&format!("\\\"check\\\":\\\"{check}\\\"")), "{writes}: {check}: {told}");
    }
    is_cut
}

/// What the platform's look leaves: the checks with how often in a row and what was seen, and the look itself.
async fn platform(cx: &Cx) -> (Vec<(Check, u32, Vec<String>, bool)>, Option<Timestamp>) {
    let state = cx.store.platform_watchdog().await.unwrap().value;
    let of = state.record.counters.into_iter().map(|of| {
        let texts = of.counter.last3.into_iter().map(|snapshot| snapshot.text).collect();
        (of.check, of.counter.anomalies, texts, of.counter.alerted_at.is_some())
    });
    (of.collect(), state.looked_at)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_at_the_platform_that_dies_anywhere_says_and_heals_everything() {
    let mut whole = None;
    // The first one dies nowhere. Each of the others dies with and without what it may have asked SQS for. A look has two writes.
    for (writes, is_moved) in [(u64::MAX, true), (0, true), (0, false), (1, true), (1, false)] {
        let when = format!("{writes} writes, moved: {is_moved}");
        let stage =
            Stage::of(PlatformConfig { faults: Some(cut_off()), ..PlatformConfig::in_memory() }).await;
        let faults = stage.h.platform.engines().faults().unwrap().clone();
        let queue = stage.h.platform.engines().queue("scheduled-executor").unwrap();
        let (cx, told) = bus::kept(&stage.h.platform.cx).await;
        let owners: BTreeSet<String> = (0..230).map(|n| format!("person-{n}")).collect();
        for owner in &owners {
            cx.store.follow(&Owner::new(owner.as_str()).unwrap(), cx.clock.now()).await.unwrap();
        }
        // The sweep has stopped after the first look.
        cx.store.beat_of_sweep(third() - LOOK_EVERY * 2).await.unwrap();
        for looks in [2, 1] {
            stage.clock.set(third() - LOOK_EVERY * looks);
            watchdog::send(&cx, later(&cx)).await.unwrap();
            lose(queue).await;
        }
        stage.clock.set(third());
        bury(queue, &DueItem::backlog(&stage.owner)).await;
        faults.stop_before_write_after(writes);
        let ended = watchdog::send(&process(&cx), later(&cx)).await;
        let is_cut = faults.go_on();
        assert_eq!((ended.is_err(), is_cut), (writes < 2, writes < 2), "{when}: {ended:?}");
        lose(queue).await;
        if is_cut {
            if !is_moved && queue.depth().dead == 0 {
                bury(queue, &DueItem::backlog(&stage.owner)).await;
            }
            let (one, other) = (process(&cx), process(&cx));
            let (first, second) =
                futures::join!(watchdog::send(&one, later(&cx)), watchdog::send(&other, later(&cx)));
            let sent = (first.unwrap(), second.unwrap());
            assert_eq!((sent.0.refused, sent.1.refused), (0, 0), "{when}");
            let looked_at: BTreeSet<String> = lose(queue)
                .await
                .iter()
                .filter(|item| item.target == DueTarget::Watchdog)
                .flat_map(|item| std::iter::once(&item.owner).chain(&item.also))
                .map(ToString::to_string)
                .collect();
            assert!(owners.is_subset(&looked_at), "{when}: {looked_at:?}");
        }
        assert_eq!(watchdog::send(&process(&cx), later(&cx)).await.unwrap().owners, 0, "{when}");
        assert_eq!(queue.depth().dead, 0, "{when}");
        let found = platform(&cx).await;
        let whole = whole.get_or_insert_with(|| found.clone());
        assert_eq!(&found, whole, "{when}");
        let counted: Vec<_> = found.0.iter().map(|(check, anomalies, ..)| (*check, *anomalies)).collect();
        assert_eq!(counted, [(Check::DeadLetters, 1), (Check::Heartbeat, 2)], "{when}");
        let told = Value::Array(told.lock().unwrap().clone()).to_string();
        assert!(told.contains("heartbeat") && !told.contains("dead_letters"), "{when}: {told}");
    }
}
