//! The sweep: due work is dispatched, once at a time, and none of it is lost.

use std::time::Duration;

use base::clock::{Clock, ManualClock};
use domain::actions::NewAction;
use domain::ids::{ActionId, Owner};
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use lamplighter_local::engines::faults::{Fault, FaultConfig, FaultRates};
use lamplighter_local::platform::PlatformConfig;
use serde_json::{Value, json};
use shared::Cx;
use shared::config::Config;
use shared::edge::extract::Actor;
use shared::flows::executor::sweep::{Swept, sweep};
use shared::flows::{actions, agents};
use shared::runtime::function::{Invocation, Trigger};
use shared::store::keys::SHARDS;
use shared::store::table::Write;
use shared::store::{Once, Store};
use tests::Harness;

fn noon() -> Timestamp {
    "2026-11-21T12:00:00Z".parse().unwrap()
}

fn after(minutes: i64) -> Timestamp {
    noon() + SignedDuration::from_mins(minutes)
}

async fn still() -> (Harness, ManualClock) {
    let clock = ManualClock::at(noon());
    let config = PlatformConfig {
        clock: Clock::Manual(clock.clone()),
        automatic: false,
        ..PlatformConfig::in_memory()
    };
    (Harness::with(config).await, clock)
}

/// Actions of several owners, all due five minutes after noon.
async fn due_actions(cx: &Cx, owners: usize, each: usize) -> Vec<(Owner, ActionId)> {
    let mut made = Vec::new();
    for owner in 0..owners {
        let owner = Owner::new(format!("owner-{owner}")).unwrap();
        let agent = serde_json::from_value(json!({"name": "Watch", "goal": "Watch"})).unwrap();
        let agent =
            agents::create(cx, &owner, &Once::none(), Actor::Person, agent).await.unwrap().agent.agent_id;
        let define = async || {
            let input = serde_json::from_value(json!({
                "title": "Report", "task_config": {"instructions": "Do it", "expected_output": "A page"},
                "schedule": {"every": "5m"},
            }));
            let action = actions::define(cx, &owner, &Once::none(), Actor::Person, agent, input.unwrap())
                .await
                .unwrap();
            actions::approve(
                cx,
                &owner,
                &Once::none(),
                Actor::Person,
                action.action.id,
                &action.approval_hash,
            )
            .await
            .unwrap();
            (owner.clone(), action.action.id)
        };
        made.extend(join_all((0..each).map(|_| define())).await);
    }
    made
}

async fn sweep_all(cx: &Cx) -> Swept {
    sweep(cx, Timestamp::MAX).await.unwrap()
}

fn swept(leased: usize, lag: Duration) -> Swept {
    let oldest_lag_ms = i64::try_from(lag.as_millis()).unwrap();
    Swept { leased, published: leased, failed: 0, oldest_lag_ms }
}

#[tokio::test]
async fn due_items_are_dispatched_once_per_lease() {
    let (h, clock) = still().await;
    let cx = &h.platform.cx;
    // More than ten of one owner, so that one call of the queue is not enough.
    let made = due_actions(cx, 3, 12).await;
    clock.set(after(3));
    assert_eq!(sweep_all(cx).await, Swept::default());
    // A minute ahead, with the remaining delay.
    clock.set(after(4));
    assert_eq!(sweep_all(cx).await, swept(made.len(), Duration::ZERO));
    assert_eq!(sweep_all(cx).await, Swept::default());
    let queue = h.platform.engines().queue("scheduled-executor").unwrap();
    let moment = SignedDuration::from_millis(1);
    clock.set(after(5) - moment);
    assert_eq!(queue.receive(10, Duration::ZERO).await, []);
    assert_eq!((queue.depth().delayed, queue.depth().visible), (made.len(), 0));
    clock.set(after(5));
    // Each message says what is due, and since when. Each owner is a group.
    let messages = queue.receive(10, Duration::from_secs(10)).await;
    let items = messages.iter().map(|message| serde_json::from_str::<Value>(&message.body).unwrap());
    assert_eq!(items.map(|item| item["due_at"].clone()).collect::<Vec<_>>(), vec![json!(after(5)); 10]);
    let mut groups = ["owner-0", "owner-1", "owner-2"]
        .map(|owner| messages.iter().filter(|message| message.group.as_deref() == Some(owner)).count());
    groups.sort_unstable();
    assert_eq!(groups, [3, 3, 4], "one after the other");
    // It does not disturb edits.
    let (owner, id) = &made[0];
    assert_eq!(actions::read(cx, owner, *id).await.unwrap().action.version, 2);

    // Nothing happened to them. When the lease ends they are dispatched again, and from then on their lag is reported.
    clock.set(after(6));
    assert_eq!(sweep_all(cx).await, Swept::default());
    clock.set(after(10));
    assert_eq!(sweep_all(cx).await, swept(made.len(), Duration::from_secs(120)));
}

#[tokio::test]
async fn sweeps_that_overlap_share_the_work() {
    let (h, clock) = still().await;
    let cx = &h.platform.cx;
    let made = due_actions(cx, 2, 20).await;
    clock.set(after(5));
    let swept = join_all((0..4).map(|_| sweep_all(cx))).await;
    assert_eq!(swept.iter().map(|swept| swept.leased).sum::<usize>(), made.len());
    assert_eq!(swept.iter().map(|swept| swept.published).sum::<usize>(), made.len());
}

#[tokio::test]
async fn items_that_the_queue_refuses_are_given_back() {
    let (h, clock) = still().await;
    let cx = &h.platform.cx;
    let made = due_actions(cx, 1, 11).await;
    clock.set(after(5));
    let mut config = Config::clone(&cx.config);
    // Nothing listens on this port.
    config.aws.sqs_endpoint = Some("http://127.0.0.1:9".to_owned());
    let cut_off = Cx::new(config, cx.clock.clone()).unwrap();
    let expected = Swept { leased: made.len(), published: 0, failed: made.len(), oldest_lag_ms: 0 };
    assert_eq!(sweep_all(&cut_off).await, expected);
    clock.set(after(6));
    assert_eq!(sweep_all(cx).await, swept(made.len(), Duration::from_secs(60)));
}

#[tokio::test]
async fn a_sweep_begins_nothing_near_its_deadline() {
    let (h, clock) = still().await;
    let cx = &h.platform.cx;
    due_actions(cx, 1, 1).await;
    clock.set(after(5));
    assert_eq!(sweep(cx, after(5) + SignedDuration::from_secs(10)).await.unwrap(), Swept::default());
    assert_eq!(sweep_all(cx).await.leased, 1);
}

/// One shard has more than a page, the index is behind the table, and another sweep has leased the first page. The rest
/// is still found.
#[tokio::test]
async fn an_index_that_is_behind_hides_nothing() {
    let clock = ManualClock::at(noon());
    let faults = FaultConfig { seed: 7, rates: FaultRates::default(), slow_by: Duration::ZERO };
    let h = Harness::with(PlatformConfig {
        clock: Clock::Manual(clock.clone()),
        automatic: false,
        faults: Some(faults),
        ..PlatformConfig::in_memory()
    })
    .await;
    let cx = &h.platform.cx;
    let owner = Owner::new("local").unwrap();
    let agent = h.agent().await.parse().unwrap();
    let in_first_shard = || {
        let ids = std::iter::repeat_with(|| cx.clock.uuid());
        ids.into_iter()
            .find(|id| u32::from(id.as_bytes()[15]) % SHARDS == 0)
            .map(ActionId::from_uuid)
            .unwrap()
    };
    const ACTIONS: usize = 230;
    let made = join_all((0..ACTIONS).map(async |_| {
        let input: NewAction = serde_json::from_value(json!({
            "title": "Report", "task_config": {"instructions": "Do it", "expected_output": "A page"},
            "budget": {"per_run_micros": 1_000_000},
        }))
        .unwrap();
        let action = input.validate().unwrap().define(in_first_shard(), agent, noon());
        // The kind of due item does not matter: this test only looks at the index.
        let mut writes = Store::action_writes(&owner, &action).unwrap();
        writes[0] = Store::replace_action(&owner, &action, 0, Some(after(1))).unwrap();
        let Write::Replace { key, item, .. } = writes.remove(0) else { panic!("it is a replacement") };
        writes.push(Write::Create { key, item });
        assert!(cx.store.write_all(writes).await.unwrap().done());
    }))
    .await;
    assert_eq!(made.len(), ACTIONS);
    clock.set(after(1));
    for entry in cx.store.due(0, after(1), 100).await.unwrap() {
        assert!(cx.store.lease_due(&entry, after(4), None).await.unwrap().done());
    }
    let faults = h.platform.engines().faults().unwrap();
    faults.set_rates(FaultRates { stale_index: 1.0, ..FaultRates::default() });
    assert_eq!(sweep_all(cx).await.leased, ACTIONS - 100);
    // Now everything that the index shows is leased.
    assert_eq!(sweep_all(cx).await, Swept::default());
    assert!(faults.injected(Fault::StaleIndex) >= 3);
}

#[tokio::test]
async fn the_timer_sweeps_and_says_what_it_did() {
    let (h, clock) = still().await;
    due_actions(&h.platform.cx, 1, 2).await;
    clock.set(after(6));
    let function = catalog::ALL.iter().find(|function| function.name == "schedule-sweep").unwrap();
    let Trigger::Timer { every, handler, .. } = function.trigger else { panic!("it is woken by a timer") };
    assert_eq!(every, Duration::from_secs(60));
    let answer = handler(h.platform.cx.clone(), Invocation { deadline: Timestamp::MAX }).await.unwrap();
    assert_eq!(answer, json!({"leased": 2, "published": 2, "failed": 0, "oldest_lag_ms": 60_000}));
}
