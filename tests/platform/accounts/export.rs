//! The export of an account: everything is in the archive, except secrets, and nothing of anybody else.

use std::collections::{BTreeMap, BTreeSet};

use base::clock::{Clock, ManualClock};
use domain::ids::Owner;
use jiff::{SignedDuration, Timestamp};
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use shared::blobs::BlobKey;
use shared::config::AuthConfig;
use shared::flows::archive::{self, ArchiveLimits};
use shared::flows::executor::route;
use shared::store::DueItem;
use tests::everything::{copied, scanned, with_everything};
use tests::stage::noon;
use tests::things::Caller;
use tests::{Harness, send};

const LIMITS: ArchiveLimits = ArchiveLimits {
    entries: 1_000,
    entry_bytes: 50_000_000,
    total_bytes: 100_000_000,
    path_bytes: 1_000,
    ratio: None,
};

fn owner(name: &str) -> Owner {
    Owner::new(name).unwrap()
}

async fn work(h: &Harness, name: &str, id: &str, deadline: Timestamp) {
    let item = DueItem::export(&owner(name), id.parse().unwrap());
    route::process(&h.platform.cx, &item, deadline).await.unwrap();
}

/// The files of the archive.
async fn downloaded(h: &Harness, url: &str) -> BTreeMap<String, Vec<u8>> {
    let answer = tests::client().get(url).send().await.unwrap();
    assert_eq!(answer.status(), 200, "{url}");
    assert!(answer.headers()["content-disposition"].to_str().unwrap().contains("lamplighter-20"));
    let bytes = answer.bytes().await.unwrap();
    let _ = h;
    archive::read(&bytes, &LIMITS).unwrap().into_iter().map(|file| (file.path, file.bytes)).collect()
}

#[tokio::test]
async fn an_archive_has_everything_but_secrets() {
    let h = with_everything().await;
    let cx = &h.platform.cx;
    copied(cx).await;
    cx.blobs
        .put(&BlobKey::listed(&owner("local2"), "assets/theirs"), "of somebody else", "text/plain")
        .await
        .unwrap();
    // An export of the stored data is running. Another one must wait for it.
    let running = "exp_01a204e5539a89e18906c3404399bb01";
    let refused = h.post("/account/export", json!({})).await.refused(409, "export_running");
    assert_eq!(refused["current"]["export_id"], running);
    work(&h, "local", running, Timestamp::MAX).await;
    assert_eq!(h.get(&format!("/account/exports/{running}")).await.expect(200)["state"], "done");

    let begun = h.post("/account/export", json!({})).await;
    let path = begun.headers["location"].to_str().unwrap().to_owned();
    let begun = begun.expect(202);
    let id = begun["export_id"].as_str().unwrap();
    assert_eq!(
        (path.as_str(), &begun["state"]),
        (format!("/account/exports/{id}").as_str(), &json!("running"))
    );
    assert!(begun.get("url").is_none());
    work(&h, "local", id, Timestamp::MAX).await;
    let done = h.get(&path).await.expect(200);
    assert_eq!(done["state"], "done", "{done:#}");

    let files = downloaded(&h, done["url"].as_str().unwrap()).await;
    let manifest: Value = serde_json::from_slice(&files["manifest.json"]).unwrap();
    assert_eq!((&manifest["format"], &manifest["owner"]), (&json!("lamplighter-account"), &json!("local")));
    assert_eq!((&manifest["records"], &manifest["objects"]), (&done["records"], &done["objects"]));
    // For people: what it is, the agents with their actions, and each asset under its title.
    let readable = |name: &str| std::str::from_utf8(&files[name]).unwrap().to_owned();
    let readme = readable("README.md");
    let all = |path: &str| format!("{path}?limit=100");
    let agents = h.get(&all("/agents")).await.expect(200)["data"].as_array().unwrap().clone();
    let actions = h.get(&all("/actions")).await.expect(200)["data"].as_array().unwrap().clone();
    assert!(readme.contains(&format!("{} agent", agents.len())), "{readme}");
    assert!(readme.contains(&format!("{} action", actions.len())), "{readme}");
    let listed = readable("readable/agents.md");
    for thing in agents.iter().map(|one| &one["name"]).chain(actions.iter().map(|one| &one["title"])) {
        assert!(listed.contains(thing.as_str().unwrap()), "{thing}: {listed}");
    }
    let mut named = 0;
    for (path, content) in files.iter().filter(|(path, _)| path.starts_with("readable/assets/")) {
        let is_there =
            files.iter().any(|(other, same)| other.starts_with("objects/assets/") && same == content);
        assert!(is_there, "{path}");
        named += 1;
    }
    assert!(named > 0 && readme.contains(&format!("{named} asset")), "{readme}");
    let text = std::str::from_utf8(&files["records.jsonl"]).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let exported: BTreeSet<(String, String)> = lines
        .iter()
        .map(|line| {
            let part = |name: &str| line[name].as_str().unwrap().to_owned();
            (format!("U#local#{}", part("partition")), part("key"))
        })
        .collect();
    assert_eq!(exported.len(), lines.len(), "each record once");
    let left_out = [
        "CHANNEL",
        "DELIVERY",
        "DOCSHOOK",
        "EXPORT",
        "IDEMPOTENCY",
        "JOB",
        "KEY",
        "OUTBOX",
        "PLACE",
        "PROVIDERKEY",
        "SECRET",
        "SERVER",
        "WATCHDOG",
    ];
    let stored: BTreeSet<(String, String)> = scanned(cx, "local").await.into_keys().collect();
    let (secret, open): (BTreeSet<_>, BTreeSet<_>) =
        stored.into_iter().partition(|(pk, _)| left_out.contains(&pk.split('#').nth(2).unwrap()));
    assert_eq!(exported, open);
    assert!(secret.len() > 4 && open.len() > 100, "{} and {}", secret.len(), open.len());
    let agent = lines.iter().find(|line| line["kind"] == "agents" && line["partition"] == "AGENT").unwrap();
    assert_eq!(agent["record"]["name"], "Watch");
    assert!(agent["record"].get("_v").is_none());

    // Every object, unchanged, and no archive of another export.
    let objects: Vec<_> = files.keys().filter(|path| path.starts_with("objects/")).collect();
    assert_eq!(objects.len() as u64, done["objects"].as_u64().unwrap());
    let everything = cx.blobs.list(&BlobKey::everything(&owner("local")), None).await.unwrap();
    // The index of memory is made of records.
    let is_taken = |rest: &&String| !rest.starts_with("exports/") && !rest.starts_with("memory/");
    for rest in everything.iter().filter(is_taken) {
        let content = cx.blobs.get(&BlobKey::listed(&owner("local"), rest)).await.unwrap();
        assert_eq!(files[&format!("objects/{rest}")], content, "{rest}");
    }
    assert!(everything.iter().filter(|rest| rest.starts_with("exports/")).count() == 2);
    let all: Vec<u8> = files.into_values().flatten().collect();
    assert!(!String::from_utf8_lossy(&all).contains("of somebody else"));
}

#[tokio::test]
async fn an_export_that_is_killed_begins_again_and_one_without_time_fails() {
    let clock = Clock::Manual(ManualClock::at(noon()));
    let h = Harness::with(PlatformConfig { clock, automatic: false, ..PlatformConfig::in_memory() }).await;
    let cx = &h.platform.cx;
    h.agent().await;
    let id = h.post("/account/export", json!({})).await.expect(202)["export_id"].as_str().unwrap().to_owned();
    let path = format!("/account/exports/{id}");
    // Executors whose table fails in the middle leave the export as it is.
    for attempt in 1..=5 {
        let found = cx.store.export(&owner("local"), id.parse().unwrap()).await.unwrap().unwrap();
        let mut export = found.value;
        assert!(export.begin(cx.clock.now()));
        assert_eq!(export.attempts, attempt);
        let saved = cx.store.save_job(&owner("local"), &export, found.version, cx.clock.now()).await;
        assert!(saved.unwrap().done());
    }
    work(&h, "local", &id, Timestamp::MAX).await;
    let failed = h.get(&path).await.expect(200);
    assert_eq!((&failed["state"], failed.get("url")), (&json!("failed"), None), "{failed:#}");

    let id = h.post("/account/export", json!({})).await.expect(202)["export_id"].as_str().unwrap().to_owned();
    work(&h, "local", &id, cx.clock.now() + SignedDuration::from_secs(10)).await;
    let failed = h.get(&format!("/account/exports/{id}")).await.expect(200);
    assert!(failed["error"].as_str().unwrap().contains("more than can be written"), "{failed:#}");

    // Two executors at once: one of them writes.
    let id = h.post("/account/export", json!({})).await.expect(202)["export_id"].as_str().unwrap().to_owned();
    futures::future::join_all((0..3).map(|_| work(&h, "local", &id, Timestamp::MAX))).await;
    let done = h.get(&format!("/account/exports/{id}")).await.expect(200);
    assert_eq!((&done["state"], &done["records"]["agents"]), (&json!("done"), &json!(3)), "{done:#}");
    downloaded(&h, done["url"].as_str().unwrap()).await;
}

#[tokio::test]
async fn nobody_else_reads_an_export() {
    let config = PlatformConfig { auth: AuthConfig::On(None), ..PlatformConfig::in_memory() };
    let h = Harness::with(config).await;
    let (mine, theirs) = (h.key_of("me").await, h.key_of("you").await);
    let (me, you) = (Caller { h: &h, key: Some(&mine) }, Caller { h: &h, key: Some(&theirs) });
    let id = me.call(Method::POST, "/account/export", json!({})).await.expect(202)["export_id"].clone();
    let path = format!("/account/exports/{}", id.as_str().unwrap());
    you.call(Method::GET, &path, Value::Null).await.refused(404, "not_found");
    send(h.request(Method::GET, &path)).await.refused(401, "unauthenticated");
    // An executor does it without a test that helps.
    loop {
        let found = me.call(Method::GET, &path, Value::Null).await.expect(200);
        if found["state"] == "done" {
            let files = downloaded(&h, found["url"].as_str().unwrap()).await;
            assert!(!String::from_utf8_lossy(&files["records.jsonl"]).contains("hash"), "no key is exported");
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}
