//! The deletion of an account: everything goes, nobody else loses anything, and the receipt says so.

use std::collections::BTreeMap;

use domain::ids::Owner;
use jiff::{SignedDuration, Timestamp};
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use shared::Cx;
use shared::blobs::BlobKey;
use shared::clock::{Clock, ManualClock};
use shared::config::AuthConfig;
use shared::flows::due;
use shared::store::DueItem;
use tests::things::Caller;
use tests::{Harness, send};

use crate::occurrences::Stage;
use crate::walk::{copied, scanned, with_everything};

fn owner(name: &str) -> Owner {
    Owner::new(name).unwrap()
}

async fn work(cx: &Cx, name: &str, deadline: Timestamp) {
    due::look_at(cx, &DueItem::deletion(&owner(name)), deadline).await.unwrap();
}

async fn objects(cx: &Cx, name: &str) -> u64 {
    cx.blobs.count_versions(&BlobKey::everything(&owner(name))).await.unwrap()
}

fn set(cx: &Cx, at: Timestamp) {
    let Clock::Manual(clock) = &cx.clock else { panic!("the test sets the clock") };
    clock.set(at);
}

fn pass(cx: &Cx, time: SignedDuration) {
    set(cx, cx.clock.now() + time);
}

#[tokio::test]
async fn everything_of_the_owner_is_removed_and_nothing_else() {
    let h = with_everything().await;
    let cx = &h.platform.cx;
    copied(cx).await;
    // An owner whose name begins like this one has an object, too.
    let others_object =
        BlobKey::asset(&owner("local2"), "ast_01a204e5539a89e18906c3404399aa63".parse().unwrap(), "00");
    cx.blobs.put(&others_object, "theirs", "text/plain").await.unwrap();
    let (mine, others) = (scanned(cx, "local").await, scanned(cx, "local2").await);
    let my_objects = objects(cx, "local").await;
    assert!(mine.len() > 100 && my_objects > 5, "{} items, {my_objects} objects", mine.len());

    for confirm in ["", "?confirm=", "?confirm=local2", "?confirm=Local"] {
        let problem = h.delete(&format!("/account{confirm}")).await.refused(400, "invalid_input");
        assert_eq!(problem["errors"][0]["field"], "confirm", "{problem:#}");
    }
    assert_eq!(scanned(cx, "local").await, mine, "a refused deletion changes nothing");

    let accepted = h.delete("/account?confirm=local").await;
    assert_eq!(accepted.headers["location"].to_str().unwrap(), accepted.body["receipt"]);
    let accepted = accepted.expect(202);
    let path = accepted["receipt"].as_str().unwrap().to_owned();
    let problem = h.get("/agents").await.refused(410, "account_deleted");
    assert_eq!(problem["current"]["receipt_id"], accepted["receipt_id"]);
    h.post("/agents", json!({"name": "A", "goal": "G"})).await.refused(410, "account_deleted");
    assert_eq!(h.delete("/account?confirm=local").await.expect(202), accepted, "a repeated call");
    assert_eq!(h.get(&path).await.expect(200)["state"], "removing");

    work(cx, "local", Timestamp::MAX).await;
    let left = scanned(cx, "local").await;
    assert!(!left.is_empty() && left.keys().all(|(pk, _)| pk.ends_with("#KEY")), "{left:#?}");
    assert_eq!(objects(cx, "local").await, 0);
    let receipt = h.get(&path).await.expect(200);
    assert_eq!(receipt["state"], "waiting");
    assert_eq!(receipt["removed_objects"], my_objects);
    let removed: u64 =
        receipt["removed_records"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(removed as usize, mine.len() - left.len(), "{receipt:#}");
    assert!(receipt["removed_records"]["runs"].as_u64().unwrap() > 10, "{receipt:#}");

    // Before its time, nothing more happens.
    pass(cx, SignedDuration::from_mins(17));
    work(cx, "local", Timestamp::MAX).await;
    assert_eq!(h.get(&path).await.expect(200)["state"], "waiting");

    // Something that had begun before the deletion has written late.
    let asset = "ast_01a204e5539a89e18906c3404399aa63".parse().unwrap();
    cx.blobs.put(&BlobKey::asset(&owner("local"), asset, "00"), "late", "text/plain").await.unwrap();
    let (table, name) = cx.store.raw();
    let late = mine.iter().find(|((pk, _), _)| pk == "U#local#AGENT").unwrap().1;
    let late = BTreeMap::from([("pk", &late["pk"]["S"]), ("sk", &late["sk"]["S"])]);
    let late = late.into_iter().map(|(name, value)| {
        (name.to_owned(), aws_sdk_dynamodb::types::AttributeValue::S(value.as_str().unwrap().to_owned()))
    });
    table.put_item().table_name(name).set_item(Some(late.collect())).send().await.unwrap();

    pass(cx, SignedDuration::from_mins(2));
    work(cx, "local", Timestamp::MAX).await;
    let receipt = h.get(&path).await.expect(200);
    assert_eq!((&receipt["state"], &receipt["left"]["records"]), (&json!("done"), &json!(0)), "{receipt:#}");
    assert_eq!(receipt["left"]["objects"], 0);
    assert_eq!(receipt["removed_records"]["agents"].as_u64(), Some(1 + count(&mine, "AGENT")));
    assert_eq!(receipt["removed_objects"], my_objects + 1);
    assert!(!receipt.to_string().contains("local"), "a receipt does not name the owner: {receipt:#}");

    assert_eq!(scanned(cx, "local").await, BTreeMap::new());
    assert!(cx.store.deletion(&owner("local")).await.unwrap().is_none());
    assert_eq!(scanned(cx, "local2").await, others);
    assert_eq!(cx.blobs.get(&others_object).await.unwrap(), "theirs");

    // The same owner has an empty account, as soon as every process knows that the deletion is done.
    pass(cx, SignedDuration::from_secs(30));
    assert_eq!(h.get("/agents").await.expect(200)["data"], json!([]));
    // The receipt is kept for 90 days.
    h.get("/receipts/rcp_00000000000000000000000000000000").await.refused(404, "not_found");
}

/// How many items are in the partitions of this kind.
fn count(items: &BTreeMap<(String, String), Value>, kind: &str) -> u64 {
    items.keys().filter(|(pk, _)| pk.split('#').nth(2) == Some(kind)).count() as u64
}

#[tokio::test]
async fn a_deletion_that_is_cut_off_anywhere_goes_on() {
    let h = with_everything().await;
    let cx = &h.platform.cx;
    let items = scanned(cx, "local").await;
    let keys = count(&items, "KEY");
    let path = h.delete("/account?confirm=local").await.expect(202)["receipt"].as_str().unwrap().to_owned();
    // Each invocation has time for one page only.
    let mut invocations = 0;
    while h.get(&path).await.expect(200)["state"] == "removing" {
        invocations += 1;
        assert!(invocations < 500, "the deletion makes no progress");
        work(cx, "local", cx.clock.now()).await;
    }
    assert!(invocations > 20, "{invocations} invocations");
    // Several executors at once, most of which stop.
    pass(cx, SignedDuration::from_mins(18));
    let executors = (0..4).map(|_| work(cx, "local", Timestamp::MAX));
    futures::future::join_all(executors).await;
    let receipt = h.get(&path).await.expect(200);
    assert_eq!(receipt["state"], "done", "{receipt:#}");
    let removed: u64 =
        receipt["removed_records"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    assert!(removed <= items.len() as u64 && removed >= items.len() as u64 - keys, "{receipt:#}");
    assert_eq!(scanned(cx, "local").await, BTreeMap::new());
}

#[tokio::test]
async fn the_sweep_finishes_a_deletion_and_no_action_runs_meanwhile() {
    let stage = Stage::of(PlatformConfig::in_memory()).await;
    stage.approved(json!({"schedule": {"every": "1h"}})).await;
    stage.happens_at(61).await;
    let runs = stage.h.get("/actions").await.expect(200)["data"][0]["action_id"].as_str().unwrap().to_owned();
    let runs = stage.h.get(&format!("/actions/{runs}/runs")).await.expect(200);
    assert_eq!(runs["data"].as_array().unwrap().len(), 1, "{runs:#}");

    let path =
        stage.h.delete("/account?confirm=local").await.expect(202)["receipt"].as_str().unwrap().to_owned();
    // The message is lost. The action is due before the sweep finds the deletion, and does not run.
    stage
        .h
        .platform
        .engines()
        .queue("scheduled-executor")
        .unwrap()
        .receive(10, std::time::Duration::ZERO)
        .await;
    stage.happens_at(62).await;
    assert_eq!(stage.h.get(&path).await.expect(200)["state"], "removing");
    stage.happens_at(65).await;
    assert_eq!(stage.h.get(&path).await.expect(200)["state"], "waiting");
    stage.happens_at(78).await;
    assert_eq!(stage.h.get(&path).await.expect(200)["state"], "waiting");
    stage.happens_at(80).await;
    let receipt = stage.h.get(&path).await.expect(200);
    assert_eq!(receipt["state"], "done", "{receipt:#}");
    assert_eq!(scanned(&stage.h.platform.cx, "local").await, BTreeMap::new());
}

#[tokio::test]
async fn a_holder_of_a_key_is_told_until_the_key_is_gone() {
    let clock = Clock::Manual(ManualClock::at(crate::occurrences::noon()));
    let config =
        PlatformConfig { auth: AuthConfig::On(None), clock, automatic: false, ..PlatformConfig::in_memory() };
    let h = Harness::with(config).await;
    let cx = &h.platform.cx;
    let (mine, theirs) = (h.key_of("me").await, h.key_of("you").await);
    let writer = h.key_with("me", json!({"name": "writer", "scopes": ["write"]})).await;
    let (me, you) = (Caller { h: &h, key: Some(&mine) }, Caller { h: &h, key: Some(&theirs) });
    me.things("oil").await;
    you.things("oil").await;
    let writer = Caller { h: &h, key: Some(&writer) };
    writer.call(Method::DELETE, "/account?confirm=me", Value::Null).await.refused(403, "scope_missing");
    you.call(Method::DELETE, "/account?confirm=me", Value::Null).await.refused(400, "invalid_input");
    send(h.request(Method::DELETE, "/account?confirm=me")).await.refused(401, "unauthenticated");

    let accepted = me.call(Method::DELETE, "/account?confirm=me", Value::Null).await.expect(202);
    let path = accepted["receipt"].as_str().unwrap();
    work(cx, "me", Timestamp::MAX).await;
    for (method, path) in [(Method::GET, "/agents"), (Method::POST, "/mcp"), (Method::GET, "/v1/models")] {
        writer.call(method, path, json!({})).await.refused(410, "account_deleted");
    }
    pass(cx, SignedDuration::from_mins(18));
    work(cx, "me", Timestamp::MAX).await;
    // Without credentials, and the keys are gone.
    let receipt = send(h.request(Method::GET, path)).await.expect(200);
    assert_eq!(receipt["state"], "done", "{receipt:#}");
    me.call(Method::GET, "/agents", Value::Null).await.refused(401, "unauthenticated");
    let agents = you.call(Method::GET, "/agents", Value::Null).await.expect(200);
    assert_eq!(agents["data"].as_array().unwrap().len(), 1, "{agents:#}");
}
