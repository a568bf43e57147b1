//! A walk finds everything that an owner has, without a scan of the table.

use std::collections::{BTreeMap, BTreeSet};

use domain::ids::Owner;
use serde_json::json;
use shared::Cx;
use shared::store::Walk;
use shared::store::keys::Key;
use tests::Harness;
use tests::everything::{copied, scanned, with_everything};

fn owner(name: &str) -> Owner {
    Owner::new(name).unwrap()
}

/// The keys of all items that a walk visits, in the order of the visits.
async fn walked(cx: &Cx, owner: &Owner) -> Vec<(String, String)> {
    let (mut walk, mut found) = (Walk::new(owner, cx.clock.now()), Vec::new());
    while let Some((_, items)) = walk.next(&cx.store).await.unwrap() {
        found.extend(items.iter().map(key_of));
    }
    found
}

fn key_of(
    item: &std::collections::HashMap<String, aws_sdk_dynamodb::types::AttributeValue>,
) -> (String, String) {
    (item["pk"].as_s().unwrap().clone(), item["sk"].as_s().unwrap().clone())
}

/// Compares a walk with a scan.
async fn check(cx: &Cx, name: &str) -> usize {
    let visits = walked(cx, &owner(name)).await;
    let found: BTreeSet<_> = visits.iter().cloned().collect();
    let stored: BTreeSet<_> = scanned(cx, name).await.into_keys().collect();
    let missed: Vec<_> = stored.difference(&found).collect();
    assert!(
        missed.is_empty(),
        "a walk does not find these items; say in store/partitions.rs which item names their partition: {missed:#?}"
    );
    assert_eq!(found, stored);
    assert_eq!(visits.len(), found.len(), "every item is visited once");
    stored.len()
}

#[tokio::test]
async fn a_walk_finds_every_kind_of_item_once() {
    let h = with_everything().await;
    let items = check(&h.platform.cx, "local").await;
    assert!(items > 100, "{items} items");
    assert_eq!(walked(&h.platform.cx, &owner("loca")).await, [], "another owner's name begins like this one");
}

#[tokio::test]
async fn a_walk_finds_the_runs_of_deleted_chats() {
    let h = Harness::start().await;
    let agent = h.post("/agents", json!({"name": "A", "goal": "G"})).await.expect(201);
    let path = format!("/agents/{}/chat", agent["agent_id"].as_str().unwrap());
    let turn = h.post(&path, json!({"message": "Hello"})).await.expect(200);
    h.post("/setup/chat", json!({"message": "Hello"})).await.expect(200);
    h.delete(&format!("/chats/{}", turn["chat_id"].as_str().unwrap())).await.expect(204);
    let run = format!("U#local#RUN#{}", turn["run_id"].as_str().unwrap());
    let found = walked(&h.platform.cx, &owner("local")).await;
    assert!(found.contains(&(run, "META".to_owned())), "{found:#?}");
    check(&h.platform.cx, "local").await;
}

#[tokio::test]
async fn a_walk_that_deletes_can_be_interrupted_anywhere() {
    let h = with_everything().await;
    let cx = &h.platform.cx;
    copied(cx).await;
    let others = scanned(cx, "local2").await;
    assert!(others.len() > 100, "{} items", others.len());

    // Every walk is interrupted before or within its second page.
    let mut walks = 0;
    loop {
        walks += 1;
        assert!(walks < 1_000, "the walks make no progress");
        let mut walk = Walk::new(&owner("local"), cx.clock.now());
        let mut pages = 0;
        while pages < 2
            && let Some((_, items)) = walk.next(&cx.store).await.unwrap()
        {
            pages += 1;
            let most = if pages == 1 { items.len() } else { walks % (items.len() + 1) };
            for (pk, sk) in items.iter().take(most).map(key_of) {
                cx.store.delete(&Key::new(pk, sk)).await.unwrap();
            }
        }
        if pages < 2 {
            break;
        }
    }
    assert!(walks > 10, "{walks} walks");
    assert_eq!(scanned(cx, "local").await, BTreeMap::new());
    assert_eq!(scanned(cx, "local2").await, others, "the other owner's items are unchanged");
    check(cx, "local2").await;
}
