//! Many people: a look costs little, reaches everybody, and one person at whom it fails keeps nobody else from being looked at.

use std::time::{Duration, Instant};

use domain::ids::Owner;
use domain::watchdog::{Check, LOOK_EVERY};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use shared::flows::executor::route;
use shared::flows::memory::outside;
use shared::flows::watched::watchdog;
use shared::store::DueItem;
use tests::memory::{learns, sentence};
use tests::model::ScriptedModel;
use tests::stage::Stage;

/// How many people there are. 10,000 take minutes, so they are only tried if `PEOPLE_OF_A_LOOK` asks for it.
fn people() -> usize {
    std::env::var("PEOPLE_OF_A_LOOK").map_or(230, |people| people.parse().expect("a number of people"))
}

/// Dollars for a read request unit (on demand, us-east-1).
const READ_UNIT: f64 = 0.125 / 1e6;

/// Dollars for a request to SQS. A message is sent, received and deleted.
const REQUEST: f64 = 0.4 / 1e6;

/// A person with a conversation, whose memory is due in the evening, and three actions. The third has no next time.
async fn person(stage: &Stage, n: usize, actions: &[domain::actions::Action]) -> Owner {
    let (cx, owner) = (&stage.h.platform.cx, Owner::new(format!("person-{n}")).unwrap());
    let said = json!({"messages": [{"id": "1", "role": "user", "text": sentence(n as u64)}]});
    let said = serde_json::from_value(said).unwrap();
    outside::ingest(cx, &owner, &"laptop".parse().unwrap(), said).await.unwrap();
    for action in actions {
        let mut writes = shared::store::Store::action_writes(&owner, action).unwrap();
        // Without its agent.
        writes.pop();
        assert!(cx.store.write_all(writes).await.unwrap().done());
    }
    cx.store.follow(&owner, cx.clock.now()).await.unwrap();
    owner
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_at_many_people_costs_little_and_sees_everybody() {
    let people = people();
    let model = ScriptedModel::start(learns).await;
    let stage = Stage::counting(model.config("scripted")).await;
    let cx = &stage.h.platform.cx;
    let mut actions = Vec::new();
    for _ in 0..3 {
        let id = stage.approved(json!({"schedule": {"every": "300h"}})).await;
        actions.push(cx.store.action(&stage.owner, id).await.unwrap().unwrap().value);
    }
    actions[2].next_due = None;
    let mut owners = Vec::new();
    for n in 0..people {
        owners.push(person(&stage, n, &actions).await);
    }
    let first: Timestamp = "2026-11-21T14:16:00Z".parse().unwrap();
    let engine = stage.h.platform.engines().faults().unwrap();
    // The look at which nothing is written: everybody is seen for the third time.
    for looks in 0..3 {
        stage.clock.set(first + LOOK_EVERY * looks);
        engine.count();
        let began = Instant::now();
        let sent = watchdog::send(cx, cx.clock.now() + SignedDuration::from_mins(5)).await.unwrap();
        let sending = began.elapsed();
        let queue = stage.h.platform.engines().queue("scheduled-executor").unwrap();
        let messages = queue.depth().visible;
        assert_eq!((sent.refused, sent.owners >= people), (0, true), "{sent:?}");
        stage.executors.work().await;
        let (seconds, figures) = (began.elapsed().as_secs_f64(), engine.figures().unwrap());
        let dollars = figures.read_units * READ_UNIT + messages as f64 * 3.0 * REQUEST;
        println!(
            "look {looks} at {people} people: {messages} messages, {:.1} read units and {:.1} requests each, \
             ${:.4} for 10,000 without writes, {seconds:.1} s ({:.1} s to send)",
            figures.read_units / people as f64,
            figures.all_requests() as f64 / people as f64,
            dollars * 10_000.0 / people as f64,
            sending.as_secs_f64(),
        );
        // A shard of the index may have a message that is not full.
        assert!(messages <= people / 100 + 16, "{messages} messages");
    }
    for owner in &owners {
        let record = cx.store.watchdog(owner).await.unwrap().unwrap().value;
        let wrong: Vec<_> = record.counters.iter().map(|of| (of.check, of.counter.anomalies)).collect();
        assert_eq!(wrong, [(Check::ActionWithoutNext, 3)], "{owner}");
        let said = cx.store.watchdog_alerts(owner, None, 10).await.unwrap();
        assert_eq!(said.items.len(), 1, "{owner}");
    }
}

#[tokio::test]
async fn a_look_that_fails_keeps_nobody_else_from_being_looked_at() {
    let model = ScriptedModel::start(learns).await;
    let stage = Stage::with(model.config("scripted")).await;
    let cx = &stage.h.platform.cx;
    let id = stage.approved(json!({"schedule": {"every": "300h"}})).await;
    let mut action = cx.store.action(&stage.owner, id).await.unwrap().unwrap().value;
    action.next_due = None;
    let mut owners = Vec::new();
    for n in 0..20 {
        owners.push(person(&stage, n, std::slice::from_ref(&action)).await);
    }
    // The record of one person cannot be read.
    let broken = &owners[7];
    let state = cx.store.watchdog(broken).await.unwrap().unwrap();
    let (client, table) = cx.store.raw();
    let scanned = client.scan().table_name(table).send().await.unwrap();
    let item = scanned.items().iter().find(|item| {
        let text =
            |name: &str| item.get(name).and_then(|value| value.as_s().ok()).cloned().unwrap_or_default();
        text("pk") == format!("U#{broken}#WATCHDOG") && text("sk") == "STATE"
    });
    let mut item = item.unwrap().clone();
    item.insert("counters".to_owned(), aws_sdk_dynamodb::types::AttributeValue::N("7".to_owned()));
    client.put_item().table_name(table).set_item(Some(item)).send().await.unwrap();
    assert!(cx.store.watchdog(broken).await.is_err(), "{state:?}");
    let queue = stage.h.platform.engines().queue("scheduled-executor").unwrap();
    let first: Timestamp = "2026-11-21T14:16:00Z".parse().unwrap();
    for looks in 0..2 {
        stage.clock.set(first + LOOK_EVERY * looks);
        watchdog::send(cx, cx.clock.now() + SignedDuration::from_mins(5)).await.unwrap();
        // Each message once: a message that fails would come again later.
        let mut failed = 0;
        loop {
            let messages = queue.receive(10, Duration::ZERO).await;
            if messages.is_empty() {
                break;
            }
            for message in messages {
                let item: DueItem = serde_json::from_str(&message.body).unwrap();
                match route::process(cx, &item, cx.clock.now() + SignedDuration::from_mins(15)).await {
                    Ok(()) => queue.delete(message.receipt).unwrap(),
                    Err(_) => {
                        failed += 1;
                        assert_eq!(
                            (&item.owner, item.also.len()),
                            (broken, 0),
                            "only the message of one owner fails"
                        );
                    }
                }
            }
        }
        assert_eq!(failed, 1, "look {looks}");
    }
    for owner in owners.iter().filter(|owner| *owner != broken) {
        assert_eq!(cx.store.watchdog_alerts(owner, None, 10).await.unwrap().items.len(), 1, "{owner}");
    }
}
