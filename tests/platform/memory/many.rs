//! Many people, many writers: nobody sees another's memory, nothing is lost, and each day is synchronised once.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use aws_lambda_events::event::sqs::{SqsEvent, SqsMessage};
use domain::ids::Owner;
use jiff::SignedDuration;
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use shared::config::AuthConfig;
use shared::flows::memory::outside;
use shared::runtime::function::{Invocation, Trigger};
use shared::runtime::lambda;
use shared::store::table::Order;
use tests::memory::{fact, learns, remembers, sentence, texts};
use tests::model::ScriptedModel;
use tests::stage::Stage;
use tests::{Harness, send};

#[tokio::test]
async fn nobody_finds_what_is_anothers() {
    let config = PlatformConfig { auth: AuthConfig::On(None), ..PlatformConfig::in_memory() };
    let h = Harness::with(config).await;
    let words = [("anna", "aubergine"), ("ben", "broccoli"), ("cleo", "cucumber")];
    let mut keys = Vec::new();
    for (owner, _) in words {
        keys.push(h.key_of(owner).await);
    }
    let call = async |who: usize, method: Method, path: &str, body: Value| {
        send(h.request(method, path).bearer_auth(&keys[who]).json(&body)).await
    };
    for (who, (_, word)) in words.iter().enumerate() {
        // All of them use the same names of sessions and messages.
        let said = json!({"messages": [{"id": "1", "role": "user", "text": format!("I bought {word}")}]});
        call(who, Method::POST, "/memory/sessions/same/messages", said).await.expect(200);
        let card = json!({"title": format!("Cooked {word}")});
        call(who, Method::POST, "/memory/cards", card).await.expect(201);
        let memory = json!({"markdown": format!("## Food\n\n- The user likes {word}\n")});
        call(who, Method::PUT, "/memory/long-term", memory).await.expect(200);
    }
    // Twice, so that the caches of the process are warm.
    for _ in 0..2 {
        for who in 0..words.len() {
            for (whose, (_, word)) in words.iter().enumerate() {
                let path = format!("/memory/search?depth=raw&q={word}");
                let found = call(who, Method::GET, &path, Value::Null).await.expect(200);
                let found = texts(&found["hits"]);
                let theirs = found.iter().filter(|text| text.contains(word)).count();
                assert_eq!(theirs, if who == whose { 3 } else { 0 }, "{who} looks for {word}: {found:?}");
            }
        }
    }
}

#[tokio::test]
async fn two_writers_lose_nothing() {
    let model = ScriptedModel::start(learns).await;
    let stage = remembers(&model).await;
    let write = async |writer: usize| {
        for batch in 0..10 {
            let message = |n: usize| {
                let id = format!("{writer}-{batch}-{n}");
                json!({"id": id, "role": "user", "text": format!("Line {n} of batch {batch} by {writer}")})
            };
            let messages: Vec<Value> = (0..50).map(message).collect();
            let path = "/memory/sessions/shared/messages";
            let stored = stage.h.post(path, json!({"messages": messages})).await.expect(200);
            assert_eq!(stored, json!({"stored": 50, "known": 0}));
        }
    };
    futures::join!(write(1), write(2));
    let session = "shared".parse().unwrap();
    let store = &stage.h.platform.cx.store;
    let all = store.outside_messages(&stage.owner, &session, None, 2_000, Order::Oldest).await.unwrap();
    let all: Vec<_> = all.items.into_iter().map(|(_, message)| message.value).collect();
    assert_eq!(all.len(), 1_000);
    // Each writer's messages are in their order.
    for writer in ["1-", "2-"] {
        let texts: Vec<&str> = all
            .iter()
            .filter(|message| message.said.id.starts_with(writer))
            .map(|message| message.said.id.as_str())
            .collect();
        let mut expected = Vec::new();
        for batch in 0..10 {
            expected.extend((0..50).map(|n| format!("{writer}{batch}-{n}")));
        }
        assert_eq!(texts, expected);
    }
    assert_eq!(stage.finds("Line 49 of batch 9 by 2").await[0], "Line 49 of batch 9 by 2");
}

/// How many people there are. 10,000 take minutes also with optimization, so they are only tried if `PEOPLE_OF_ONE_HOUR` asks for it.
fn people() -> usize {
    std::env::var("PEOPLE_OF_ONE_HOUR").map_or(60, |people| people.parse().expect("a number of people"))
}

/// The executors of a deployed platform work until the queue is empty: so many at once, each with a batch of messages. Returns how many
/// invocations there were, and how long the longest took.
async fn works(stage: &Stage) -> (usize, Duration) {
    let queue = stage.h.platform.engines().queue("scheduled-executor").unwrap();
    let function = catalog::ALL.iter().find(|function| function.name == "scheduled-executor");
    let Some(Trigger::Queue { handler }) = function.map(|function| function.trigger) else {
        panic!("a queue wakes the executor")
    };
    let cx = &stage.h.platform.cx;
    let figures = Mutex::new((0, Duration::ZERO));
    let executor = async || {
        loop {
            let messages = queue.receive(lambda::BATCH, Duration::ZERO).await;
            if messages.is_empty() {
                return;
            }
            let mut event = SqsEvent::default();
            event.records.extend(messages.iter().map(|message| {
                let mut record = SqsMessage::default();
                record.message_id = Some(message.id.to_string());
                record.body = Some(message.body.to_string());
                record
            }));
            let began = Instant::now();
            let invocation = Invocation { deadline: cx.clock.now() + SignedDuration::from_mins(15) };
            let response = lambda::batch(cx.clone(), handler, invocation, event).await;
            assert!(response.batch_item_failures.is_empty(), "{:?}", response.batch_item_failures);
            for message in messages {
                let _ = queue.delete(message.receipt);
            }
            let (invocations, longest) = &mut *figures.lock().unwrap();
            *invocations += 1;
            *longest = began.elapsed().max(*longest);
        }
    };
    futures::future::join_all((0..cx.config.executors.count).map(|_| executor())).await;
    figures.into_inner().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_many_people_is_synchronised_once() {
    let people = people();
    let model = ScriptedModel::start(learns).await;
    let stage = Stage::counting(model.config("scripted")).await;
    let cx = &stage.h.platform.cx;
    let owners: Vec<Owner> = (0..people).map(|n| Owner::new(format!("person-{n}")).unwrap()).collect();
    let session = "laptop".parse().unwrap();
    for (n, owner) in (0..).zip(&owners) {
        let said: Vec<Value> = [2 * n, 2 * n + 1]
            .map(|n| json!({"id": n.to_string(), "role": "user", "text": sentence(n)}))
            .into();
        let said = serde_json::from_value(json!({"messages": said})).unwrap();
        outside::ingest(cx, owner, &session, said).await.unwrap();
    }
    // They live in UTC. The first look finds out when their day ends.
    stage.clock.set("2026-11-21T12:05:00Z".parse().unwrap());
    stage.sweep().await;
    works(&stage).await;
    assert_eq!(model.asked(), 0);

    let engine = stage.h.platform.engines().faults().unwrap();
    engine.count();
    let began = Instant::now();
    let (mut invocations, mut longest) = (0, Duration::ZERO);
    for time in ["2026-11-21T23:00:30Z", "2026-11-21T23:05:00Z", "2026-11-21T23:59:00Z"] {
        stage.clock.set(time.parse().unwrap());
        stage.sweep().await;
        let (more, long) = works(&stage).await;
        (invocations, longest) = (invocations + more, longest.max(long));
    }
    let (seconds, figures) = (began.elapsed().as_secs_f64(), engine.figures().unwrap());
    assert_eq!(model.asked(), people, "each conversation costs one call of the model");
    assert!(longest < Duration::from_secs(15 * 60), "an invocation took {longest:?}");
    for (n, owner) in (0..).zip(&owners) {
        let kept = cx.store.memory_kept(owner).await.unwrap();
        assert_eq!(kept.value.daily, Some(jiff::civil::date(2026, 11, 21)), "{owner}");
        // Created, claimed, done.
        assert_eq!(kept.version, 3, "{owner}");
        let facts = cx.store.all_facts(owner).await.unwrap();
        let texts: Vec<&str> = facts.iter().map(|fact| fact.text.as_str()).collect();
        assert_eq!(texts, [fact(2 * n), fact(2 * n + 1)], "{owner}");
        assert_eq!(cx.store.open_blocks(owner).await.unwrap().len(), 1, "{owner}");
        // The clean-up on Sunday is left to do.
        assert!(cx.store.memory_due(owner).await.unwrap().is_some(), "{owner}");
    }
    println!(
        "{people} people: {:.1} requests each to the table and the bucket, {seconds:.0} s, {invocations} invocations, the longest {:.1} s, at most {} items of a query",
        figures.all_requests() as f64 / people as f64,
        longest.as_secs_f64(),
        figures.most_items
    );
    assert!(figures.most_items <= 100, "a query must not read {} items", figures.most_items);
}
