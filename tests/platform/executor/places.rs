//! A limited number of executors work on one owner's runs at once. So other owners do not wait for them. If executors that hold
//! places die, nothing is lost.

use std::sync::Arc;
use std::time::Duration;

use domain::actions::{OccurrenceState, ReasonCode};
use domain::background::places::{Purpose, of_owner};
use domain::ids::{ActionId, Owner};
use jiff::SignedDuration;
use serde_json::{Value, json};
use shared::config::{Config, ExecutorsConfig};
use shared::edge::extract::Actor;
use shared::flows::background::due;
use shared::flows::{actions, agents};
use shared::process::held_places::Places;
use shared::store::table::Order;
use shared::store::{DueItem, Once};
use tests::executors::invocations;
use tests::model::{Says, ScriptedModel};
use tests::stage::Stage;
use tests::wait::until;
use tokio::task::JoinHandle;

/// The number of executors on the platform of these tests.
const EXECUTORS: usize = 4;
const BATCH: usize = shared::runtime::lambda::BATCH;

/// Less than the lease of a place.
const SOON: SignedDuration = SignedDuration::from_secs(20);

async fn stage(model: &ScriptedModel) -> Stage {
    let stage = Stage::with(model.config("scripted")).await;
    assert_eq!(stage.h.platform.cx.config.executors.count as usize, EXECUTORS);
    stage
}

fn held() -> impl Future<Output = ScriptedModel> {
    ScriptedModel::held(|_: &[Value]| Says::Text("Lamp oil is dear.".into()))
}

/// One executor. Aborting the task kills it.
fn executor(stage: &Stage) -> JoinHandle<()> {
    let queue = stage.h.platform.engines().queue("scheduled-executor").unwrap().clone();
    tokio::spawn(invocations(stage.h.platform.cx.clone(), queue))
}

fn executors(stage: &Stage) -> Vec<JoinHandle<()>> {
    (0..EXECUTORS).map(|_| executor(stage)).collect()
}

async fn kill(executors: Vec<JoinHandle<()>>) {
    for executor in executors {
        executor.abort();
        assert!(executor.await.unwrap_err().is_cancelled());
    }
}

/// Approves actions that are due in [`SOON`].
async fn due_soon(stage: &Stage, owner: &Owner, count: usize) -> Vec<ActionId> {
    let cx = &stage.h.platform.cx;
    let agent = serde_json::from_value(json!({"name": "Watch", "goal": "Watch"})).unwrap();
    let agent = agents::create(cx, owner, &Once::none(), Actor::Person, agent).await.unwrap().agent.agent_id;
    let at = stage.clock.now() + SOON;
    let mut ids = Vec::new();
    for _ in 0..count {
        let input = json!({
            "title": "Report", "task_config": {"instructions": "Do it", "expected_output": "A page"},
            "schedule": {"at": at},
        });
        let action = actions::define(
            cx,
            owner,
            &Once::none(),
            Actor::Person,
            agent,
            serde_json::from_value(input).unwrap(),
        )
        .await
        .unwrap();
        actions::approve(cx, owner, &Once::none(), Actor::Person, action.action.id, &action.approval_hash)
            .await
            .unwrap();
        ids.push(action.action.id);
    }
    ids
}

async fn became(stage: &Stage, owner: &Owner, id: ActionId) -> Vec<domain::actions::Occurrence> {
    let found = stage.h.platform.cx.store.occurrences(owner, id, None, 10, Order::Oldest).await.unwrap();
    found.items.into_iter().map(|(_, occurrence)| occurrence.value).collect()
}

/// How many executors hold a place. The record of an executor that died stays until another executor takes its place.
async fn places(stage: &Stage, owner: &Owner) -> usize {
    let now = stage.clock.now();
    let places = stage.h.platform.cx.store.places(owner, Purpose::Runs).await.unwrap();
    places.iter().filter(|((_, lease), _)| !lease.is_over(now)).count()
}

/// Checks that no executor holds a place, no run waits for one, and every run has succeeded once.
async fn all_is_done(stage: &Stage, owner: &Owner, ids: &[ActionId]) {
    let store = &stage.h.platform.cx.store;
    for id in ids {
        until("a run ends", async || became(stage, owner, *id).await.iter().all(|o| o.state.is_final()))
            .await;
        let [occurrence] = became(stage, owner, *id).await.try_into().expect("one occurrence");
        assert_eq!(occurrence.state, OccurrenceState::Succeeded, "{occurrence:?}");
        assert_eq!(store.run_outputs(owner, occurrence.run_id).await.unwrap().len(), 1);
    }
    until("places are given back", async || places(stage, owner).await == 0).await;
    assert_eq!(store.backlog(owner, 10).await.unwrap(), []);
}

/// Many executors ask for a place at once. No more get one than the limit allows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_executors_get_a_place_than_allowed() {
    let h = tests::Harness::start().await;
    let owner = Owner::new("crowd").unwrap();
    for count in [1, 2, 4, 10] {
        let executors = ExecutorsConfig { count };
        let config = Config { executors, ..(*h.platform.cx.config).clone() };
        let cx = h.platform.cx.with(|parts| parts.config = Arc::new(config));
        let invocations: Vec<Places> = (0..24).map(|_| Places::default()).collect();
        for by_hand in [false, true] {
            let limit = of_owner(count) + u32::from(by_hand);
            let enter = async |places: &Places| places.enter(&cx, &owner, by_hand).await.unwrap().ok();
            let entered = futures::future::join_all(invocations.iter().map(enter)).await;
            let entered: Vec<_> = entered.into_iter().flatten().collect();
            let taken = cx.store.places(&owner, Purpose::Runs).await.unwrap();
            assert_eq!((entered.len(), taken.len()), (limit as usize, limit as usize), "of {count}");
            let others = Places::default().enter(&cx, &owner, by_hand).await.unwrap();
            assert_eq!(others.err().map(|full| full.executors), Some(of_owner(count)));
            for entered in entered {
                entered.leave(&cx).await;
            }
            assert_eq!(cx.store.places(&owner, Purpose::Runs).await.unwrap(), []);
        }
    }
}

/// The runs of an invocation share a place, and the last run gives it back. A holder that does not renew its lease loses the place.
#[tokio::test]
async fn a_place_is_shared_within_an_invocation_and_ends_with_its_lease() {
    let model = held().await;
    let stage = stage(&model).await;
    let one = ExecutorsConfig { count: 1 };
    let config = Config { executors: one, ..(*stage.h.platform.cx.config).clone() };
    let cx = stage.h.platform.cx.with(|parts| parts.config = Arc::new(config));
    let (first, second, owner) = (Places::default(), Places::default(), Owner::new("one").unwrap());
    let runs = [first.enter(&cx, &owner, false).await, first.enter(&cx, &owner, true).await];
    let [Ok(Ok(a)), Ok(Ok(b))] = runs else { panic!("both runs must get the place") };
    assert_eq!(cx.store.places(&owner, Purpose::Runs).await.unwrap().len(), 1);
    a.leave(&cx).await;
    assert!(second.enter(&cx, &owner, false).await.unwrap().is_err(), "a run still uses the place");
    // As long as the holder lives, it renews its lease.
    let until_at =
        |places: Vec<((u32, domain::background::lease::Lease<uuid::Uuid>), u64)>| places[0].0.1.until;
    let before = until_at(cx.store.places(&owner, Purpose::Runs).await.unwrap());
    stage.clock.set(stage.clock.now() + SignedDuration::from_secs(30));
    until("it is renewed", async || until_at(cx.store.places(&owner, Purpose::Runs).await.unwrap()) > before)
        .await;
    // The holder dies.
    drop((b, first));
    stage.clock.set(stage.clock.now() + SignedDuration::from_secs(59));
    assert!(second.enter(&cx, &owner, false).await.unwrap().is_err(), "its lease has not ended");
    stage.clock.set(stage.clock.now() + SignedDuration::from_secs(1));
    let entered = second.enter(&cx, &owner, false).await.unwrap();
    assert!(entered.is_ok());
    // A lease that was written by a clock that was ahead and was set back does not block a place.
    stage.clock.set(stage.clock.now() - SignedDuration::from_hours(24));
    assert!(Places::default().enter(&cx, &owner, false).await.unwrap().is_ok());
}

/// One owner has three batches under way, and as many runs wait. The run of another owner starts at once. A run that the first
/// owner starts by hand also starts at once. The waiting runs say why they wait, and start as soon as there is room.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_with_many_due_runs_does_not_delay_others() {
    let model = held().await;
    let stage = stage(&model).await;
    let queue = stage.h.platform.engines().queue("scheduled-executor").unwrap();
    let limit = of_owner(EXECUTORS as u32) as usize * BATCH;
    let ids = due_soon(&stage, &stage.owner, 2 * limit + 5).await;
    stage.at(1);
    // Every message is delivered twice.
    stage.executors.trouble(1.0, 0.0);
    let mut working = executors(&stage);
    stage.sweep().await;
    model.asked_times(1).await;
    until("what finds no place waits", async || {
        let waiting = stage.h.platform.cx.store.backlog(&stage.owner, 200).await.unwrap().len();
        waiting + limit >= ids.len()
    })
    .await;
    until("the queue is empty but for what is under way", async || queue.depth().visible == 0).await;
    // One executor is left. Only now another owner's run becomes due: if it were due earlier, it could keep this executor
    // before the runs above were refused a place.
    let quiet = Owner::new("quiet").unwrap();
    let others = due_soon(&stage, &quiet, 1).await;
    stage.clock.set(stage.clock.now() + SOON);
    stage.sweep().await;
    until("the other starts", async || {
        became(&stage, &quiet, others[0]).await.first().is_some_and(|run| run.started_at.is_some())
    })
    .await;
    let started = async || {
        let mut started = 0;
        for id in &ids {
            started += usize::from(became(&stage, &stage.owner, *id).await[0].started_at.is_some());
        }
        started
    };
    // What has a place may not have begun yet.
    until("what was claimed has begun", async || {
        for id in &ids {
            if became(&stage, &stage.owner, *id).await[0].state == OccurrenceState::Claimed {
                return false;
            }
        }
        true
    })
    .await;
    let before = started().await;
    assert!((1..=limit).contains(&before), "{before} runs are under way, at most {limit} may be");

    // A waiting run says why it waits.
    let mut waits = None;
    for id in &ids {
        let occurrence = became(&stage, &stage.owner, *id).await.remove(0);
        if occurrence.state == OccurrenceState::Due {
            assert_eq!(occurrence.reason_code, Some(ReasonCode::TooManyRuns), "{occurrence:?}");
            waits = Some(*id);
        }
    }
    let waits = waits.expect("at least one run waits");
    let why = stage.h.get(&format!("/actions/{waits}/why")).await.expect(200);
    assert_eq!((&why["code"], &why["reason_code"]), (&json!("about_to_run"), &json!("too_many_runs")));
    let sentence = why["sentence"].as_str().unwrap();
    assert!(
        sentence.contains("waits for a free place: 3 executors already work on runs of yours"),
        "{sentence}"
    );

    // A run by hand does not wait for them. It needs an executor of its own: the last one is busy with the other owner's run.
    working.push(executor(&stage));
    let by_hand = stage.approved(json!({})).await;
    let run = stage.h.post(&format!("/actions/{by_hand}/run"), json!({})).await.expect(202);
    until("the run by hand starts", async || {
        became(&stage, &stage.owner, by_hand).await[0].started_at.is_some()
    })
    .await;
    assert_eq!(started().await, before, "nothing else has started for it");
    assert!(run["run_id"].is_string());

    // A waiting run that is cancelled stays cancelled.
    let cancelled = became(&stage, &stage.owner, waits).await[0].run_id;
    stage.h.post(&format!("/runs/{cancelled}/cancel"), json!({})).await.expect(202);

    model.allow(10 * ids.len());
    let left: Vec<ActionId> = ids.iter().copied().filter(|id| *id != waits).collect();
    all_is_done(&stage, &stage.owner, &left).await;
    all_is_done(&stage, &quiet, &others).await;
    assert_eq!(became(&stage, &stage.owner, waits).await[0].state, OccurrenceState::Cancelled);
    for id in &left {
        assert_eq!(became(&stage, &stage.owner, *id).await[0].fence, 1, "each was claimed once");
    }
    kill(working).await;
}

/// All executors that hold the owner's places die. When the leases of the places end, the places are free and the waiting runs
/// start. When the leases of the dead executors' runs end, these runs are continued.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_continue_after_all_executors_with_places_die() {
    let model = held().await;
    let stage = stage(&model).await;
    let cx = &stage.h.platform.cx;
    let limit = of_owner(EXECUTORS as u32) as usize;
    let ids = due_soon(&stage, &stage.owner, limit * BATCH + 15).await;
    stage.at(1);
    let working = executors(&stage);
    stage.sweep().await;
    until("all places are taken and the rest waits", async || {
        let waiting = cx.store.backlog(&stage.owner, 200).await.unwrap().len();
        places(&stage, &stage.owner).await == limit && waiting >= 15
    })
    .await;
    let queue = stage.h.platform.engines().queue("scheduled-executor").unwrap();
    until("the queue is empty but for what is under way", async || queue.depth().visible == 0).await;
    kill(working).await;
    assert_eq!(places(&stage, &stage.owner).await, limit, "nobody has given them back");
    let waited = cx.store.backlog(&stage.owner, 200).await.unwrap().len();

    // Before the leases end, nothing happens and nothing is lost.
    let working = executors(&stage);
    due::dispatch(cx, &DueItem::backlog(&stage.owner)).await;
    until("it was looked at", async || queue.depth().visible == 0).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(cx.store.backlog(&stage.owner, 200).await.unwrap().len(), waited);

    // Two minutes later a sweep finds the mark. All waiting runs run, in as many rounds as they need.
    model.allow(10_000);
    stage.clock.set(stage.clock.now() + SignedDuration::from_secs(121));
    stage.sweep().await;
    until("what waits runs", async || {
        cx.store.backlog(&stage.owner, 1).await.unwrap().is_empty() && places(&stage, &stage.owner).await == 0
    })
    .await;
    // Now the runs of the executors that died.
    for minutes in [18, 22] {
        stage.at(minutes);
        stage.sweep().await;
        until("the queue is empty", async || {
            let depth = queue.depth();
            depth.visible + depth.delayed == 0
        })
        .await;
    }
    all_is_done(&stage, &stage.owner, &ids).await;
    kill(working).await;
}
