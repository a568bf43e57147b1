//! Many people, many writers: nobody sees another's memory, nothing is lost, and each day is synchronised once.

use domain::ids::{ChatId, Owner};
use domain::memory::Source;
use domain::memory::part::{Collection, MemoryPart};
use jiff::Timestamp;
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use shared::config::AuthConfig;
use shared::store::Store;
use shared::store::table::Order;
use tests::memory::{learns, remembers, texts};
use tests::model::ScriptedModel;
use tests::{Harness, send};
use uuid::Uuid;

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

/// The same with 10,000 people takes minutes and shows nothing else.
#[tokio::test]
async fn each_of_many_people_is_synchronised_once() {
    const PEOPLE: usize = 300;
    let model = ScriptedModel::start(learns).await;
    let stage = remembers(&model).await;
    let store = &stage.h.platform.cx.store;
    let at: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
    let owners: Vec<Owner> = (0..PEOPLE).map(|n| Owner::new(format!("person-{n}")).unwrap()).collect();
    for owner in &owners {
        let source = Source::Chat(ChatId::from_uuid(Uuid::now_v7()));
        let part = MemoryPart::with(Collection::Messages(source), Uuid::now_v7());
        let writes = Store::memory_marks(owner, [part], Uuid::now_v7(), at).unwrap();
        assert!(store.write_all(writes).await.unwrap().done());
    }
    // They live in UTC. The first look finds out when their day ends.
    stage.moves_to("2026-11-21T12:05:00Z").await;
    for time in ["2026-11-21T23:00:30Z", "2026-11-21T23:05:00Z", "2026-11-21T23:30:00Z"] {
        stage.moves_to(time).await;
    }
    for owner in &owners {
        let kept = store.memory_kept(owner).await.unwrap();
        assert_eq!(kept.value.daily, Some(jiff::civil::date(2026, 11, 21)), "{owner}");
        // Created, claimed, done.
        assert_eq!(kept.version, 3, "{owner}");
        assert_eq!(store.memory_due(owner).await.unwrap(), None, "nothing is left to do");
    }
}
