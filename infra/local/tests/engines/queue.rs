use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aws_lambda_events::sqs::SqsEvent;
use base::clock::{Clock, ManualClock};
use lamplighter_local::engines::queue::{
    Message, PollOptions, Queue, QueueConfig, QueueDepth, QueueFaults, StaleReceipt,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::soon;

const VISIBILITY: Duration = Duration::from_secs(30);

fn queue_with(max_receives: u32) -> (Queue, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (open(max_receives, &folder), folder)
}

fn open(max_receives: u32, folder: &TempDir) -> Queue {
    let config = QueueConfig { name: "work".into(), visibility_timeout: VISIBILITY, max_receives };
    Queue::open(config, folder.path()).unwrap()
}

async fn receive(queue: &Queue) -> Vec<Message> {
    queue.receive(10, Duration::ZERO).await
}

fn bodies(batch: &[Message]) -> Vec<(&str, u32)> {
    batch.iter().map(|message| (&*message.body, message.receives)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_message_is_hidden_while_it_is_worked_on_and_comes_back_unless_deleted() {
    let (queue, _folder) = queue_with(3);
    queue.send("a", Duration::ZERO);
    queue.send("b", Duration::ZERO);
    queue.send("later", Duration::from_secs(60));
    let first = receive(&queue).await;
    assert_eq!(bodies(&first), [("a", 1), ("b", 1)]);
    assert_eq!(receive(&queue).await, []);
    assert_eq!(queue.depth(), QueueDepth { visible: 0, delayed: 1, in_flight: 2, dead: 0 });
    queue.delete(first[0].receipt).unwrap();

    tokio::time::advance(VISIBILITY).await;
    let second = receive(&queue).await;
    assert_eq!(bodies(&second), [("b", 2)]);
    assert_eq!((second[0].id, second[0].first_received_at), (first[1].id, first[1].first_received_at));
    let stale = first[1].receipt;
    assert_eq!(queue.delete(stale), Err(StaleReceipt(stale)));
    assert_eq!(queue.change_visibility(stale, Duration::ZERO), Err(StaleReceipt(stale)));
    queue.delete(second[0].receipt).unwrap();
    assert_eq!(queue.delete(second[0].receipt), Err(StaleReceipt(second[0].receipt)));

    tokio::time::advance(VISIBILITY).await;
    let third = receive(&queue).await;
    assert_eq!(bodies(&third), [("later", 1)]);
    queue.change_visibility(third[0].receipt, Duration::ZERO).unwrap();
    assert_eq!(bodies(&receive(&queue).await), [("later", 2)]);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_receiver_is_woken_by_a_send_and_by_a_message_that_comes_back() {
    let (queue, _folder) = queue_with(3);
    let sender = queue.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        sender.send("a", Duration::from_secs(5));
    });
    let long = Duration::from_secs(3600);
    assert_eq!(bodies(&queue.receive(1, long).await), [("a", 1)]);
    assert_eq!(bodies(&queue.receive(1, long).await), [("a", 2)]);
    assert_eq!(queue.receive(1, VISIBILITY / 2).await, []);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_received_too_often_becomes_a_dead_letter() {
    let (queue, folder) = queue_with(2);
    let id = queue.send("poison\n\"☃\"", Duration::ZERO);
    for _ in 0..2 {
        assert_eq!(receive(&queue).await.len(), 1);
        tokio::time::advance(VISIBILITY).await;
    }
    assert_eq!(receive(&queue).await, []);
    assert_eq!(queue.depth(), QueueDepth { dead: 1, ..QueueDepth::default() });

    // An incomplete line of a killed process is not a dead letter.
    let file = folder.path().join("work.jsonl");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}{{\"message_id\":\"01")).unwrap();
    let queue = open(2, &folder);
    let letters = queue.dead_letters().unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!((letters[0].message_id, letters[0].receives), (id, 2));
    assert_eq!(letters[0].body, "poison\n\"☃\"");
    assert_eq!(queue.depth().dead, 1);
}

#[tokio::test(start_paused = true)]
async fn faults_deliver_more_than_once_and_out_of_order() {
    let (queue, _folder) = queue_with(100);
    queue.set_faults(QueueFaults { duplicates: 0.5, reorder: true, seed: 7 });
    for n in 0..100 {
        queue.send(n.to_string(), Duration::ZERO);
    }
    let mut seen = Vec::new();
    loop {
        let batch = receive(&queue).await;
        if batch.is_empty() {
            break;
        }
        for message in batch {
            seen.push(message.body.parse::<usize>().unwrap());
            queue.delete(message.receipt).unwrap();
        }
    }
    assert_eq!(queue.depth(), QueueDepth::default());
    assert!(seen.len() > 120, "{} deliveries of 100 messages", seen.len());
    assert!(!seen.is_sorted());
    let mut once = seen.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once, (0..100).collect::<Vec<_>>());
}

fn options(concurrency: usize) -> PollOptions {
    PollOptions { batch_size: 10, concurrency, timeout: Duration::from_secs(5) }
}

async fn until(queue: &Queue, done: impl Fn(QueueDepth) -> bool) {
    soon(async {
        while !done(queue.depth()) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
}

fn failed(ids: &[&str]) -> Value {
    let failures: Vec<Value> = ids.iter().map(|id| json!({ "itemIdentifier": id })).collect();
    json!({ "batchItemFailures": failures })
}

#[tokio::test(start_paused = true)]
async fn a_handler_gets_lambda_events_and_only_what_it_names_is_tried_again() {
    let (queue, _folder) = queue_with(10);
    let (sender, mut events) = tokio::sync::mpsc::unbounded_channel();
    queue.send("good", Duration::ZERO);
    let bad = queue.send("bad", Duration::ZERO);
    let poller = queue.poll_with(options(1), move |event| {
        sender.send(event.clone()).unwrap();
        async move {
            let event: SqsEvent = serde_json::from_value(event)?;
            let first_time = |count: &str| count == "1";
            let failures: Vec<String> = (event.records.into_iter())
                .filter(|record| record.body.as_deref() == Some("bad"))
                .filter(|record| first_time(&record.attributes["ApproximateReceiveCount"]))
                .map(|record| record.message_id.unwrap())
                .collect();
            Ok(failed(&failures.iter().map(String::as_str).collect::<Vec<_>>()))
        }
    });
    let first = soon(events.recv()).await.unwrap();
    assert_eq!(first["Records"].as_array().unwrap().len(), 2);
    let mut record = first["Records"][0].clone();
    for varying in ["messageId", "receiptHandle"] {
        assert!(record[varying].take().as_str().is_some_and(|id| !id.is_empty()));
    }
    for varying in ["SentTimestamp", "ApproximateFirstReceiveTimestamp"] {
        assert!(record["attributes"][varying].take().as_str().unwrap().parse::<u64>().is_ok());
    }
    assert_eq!(
        record,
        json!({
            "messageId": null,
            "receiptHandle": null,
            "body": "good",
            "attributes": {
                "ApproximateReceiveCount": "1",
                "SentTimestamp": null,
                "SenderId": "lamplighter-local",
                "ApproximateFirstReceiveTimestamp": null,
            },
            "messageAttributes": {},
            "md5OfBody": "755f85c2723bb39381c7379a604160d8",
            "eventSource": "aws:sqs",
            "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:work",
            "awsRegion": "us-east-1",
        })
    );
    let second = tokio::time::timeout(VISIBILITY * 2, events.recv()).await.unwrap().unwrap();
    assert_eq!(second["Records"].as_array().unwrap().len(), 1);
    assert_eq!(second["Records"][0]["messageId"], bad.to_string());
    poller.stop().await;
    assert_eq!(queue.depth(), QueueDepth::default());
}

#[tokio::test(start_paused = true)]
async fn answers_that_fail_the_whole_batch_and_answers_that_do_not() {
    let cases = [
        (json!(null), 2),
        (json!({}), 2),
        (json!({"batchItemFailures": null}), 2),
        (json!({"batchItemFailures": []}), 2),
        (json!("done"), 0),
        (json!({"batchItemFailures": "no"}), 0),
        (failed(&[""]), 0),
        (failed(&["not-in-the-batch"]), 0),
        (json!({"batchItemFailures": [{"itemIdentifier": null}]}), 0),
        (json!({"batchItemFailures": [{"id": "x"}]}), 0),
    ];
    for (answer, expected) in cases {
        let (queue, _folder) = queue_with(10);
        queue.send("a", Duration::ZERO);
        queue.send("b", Duration::ZERO);
        let calls = Arc::new(AtomicUsize::new(0));
        let (counted, said) = (Arc::clone(&calls), answer.clone());
        let poller = queue.poll_with(options(1), move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            let said = said.clone();
            async move { Ok(said) }
        });
        until(&queue, |depth| depth.visible == 0).await;
        poller.stop().await;
        assert_eq!(calls.load(Ordering::SeqCst), 1, "{answer}");
        assert_eq!(2 - queue.depth().in_flight, expected, "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_handler_stops_the_poller() {
    let (queue, _folder) = queue_with(2);
    for body in ["panic", "panic at once", "hang", "error", "fine"] {
        queue.send(body, Duration::ZERO);
    }
    let one_at_a_time = PollOptions { batch_size: 1, ..options(2) };
    let poller = queue.poll_with(one_at_a_time, |event| {
        let body = event["Records"][0]["body"].as_str().unwrap().to_owned();
        assert_ne!(body, "panic at once");
        async move {
            match body.as_str() {
                "panic" => panic!("as the test wants it"),
                "hang" => std::future::pending().await,
                "error" => Err("no".into()),
                _ => Ok(Value::Null),
            }
        }
    });
    tokio::time::timeout(VISIBILITY * 10, async {
        while queue.depth().dead < 4 {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    })
    .await
    .unwrap();
    queue.send("fine", Duration::ZERO);
    until(&queue, |depth| depth.visible + depth.in_flight == 0).await;
    poller.stop().await;
    let mut dead: Vec<_> = queue.dead_letters().unwrap().into_iter().map(|letter| letter.body).collect();
    dead.sort();
    assert_eq!(dead, ["error", "hang", "panic", "panic at once"]);
}

/// A group with thousands of messages does not delay the groups with one.
#[tokio::test(start_paused = true)]
async fn groups_take_turns() {
    let (queue, _folder) = queue_with(3);
    let send = |group: &str, body: String| queue.send_to(Some(group.into()), body, Duration::ZERO);
    for n in 0..1_000 {
        send("noisy", format!("noisy {n}"));
    }
    for n in 0..3 {
        send(&format!("quiet-{n}"), format!("quiet {n}"));
    }
    let batch = receive(&queue).await;
    let bodies: Vec<&str> = batch.iter().map(|message| &*message.body).collect();
    assert_eq!(bodies[..4], ["noisy 0", "quiet 0", "quiet 1", "quiet 2"]);
    assert_eq!(bodies[4..], ["noisy 1", "noisy 2", "noisy 3", "noisy 4", "noisy 5", "noisy 6"]);
    // Later groups do not wait for the rest either, and two groups with many messages share equally.
    for n in 0..20 {
        send("late", format!("late {n}"));
    }
    let batch = receive(&queue).await;
    assert_eq!(batch.iter().filter(|message| message.group.as_deref() == Some("late")).count(), 5);
    assert_eq!(queue.depth().in_flight, 20);
}

/// The clock of a simulation decides when a delay has ended.
#[tokio::test]
async fn delays_are_measured_by_the_clock_of_the_platform() {
    let (queue, _folder) = queue_with(3);
    let clock = ManualClock::at("2026-11-21T12:00:00Z".parse().unwrap());
    queue.follow(Clock::Manual(clock.clone()));
    queue.send("b", Duration::from_secs(60));
    queue.send("a", Duration::from_secs(59));
    queue.send("now", Duration::ZERO);
    assert_eq!(bodies(&receive(&queue).await), [("now", 1)]);
    assert_eq!(queue.depth().delayed, 2);
    clock.set("2026-11-21T12:00:58.999Z".parse().unwrap());
    assert_eq!(receive(&queue).await, []);
    clock.set("2026-11-21T12:00:59Z".parse().unwrap());
    assert_eq!(bodies(&receive(&queue).await), [("a", 1)]);
    // A waiting receiver notices the change of the clock, although nothing notifies it.
    let waits = tokio::spawn({
        let queue = queue.clone();
        async move { queue.receive(1, Duration::from_secs(20)).await }
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    clock.set("2026-11-21T12:01:00Z".parse().unwrap());
    assert_eq!(bodies(&soon(waits).await.unwrap()), [("b", 1)]);

    queue.follow(Clock::scaled(1_000));
    queue.send("soon", Duration::from_secs(900));
    assert_eq!(bodies(&soon(queue.receive(1, Duration::from_secs(20))).await), [("soon", 1)]);
}
