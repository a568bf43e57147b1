//! Imports of log files: by upload, reported twice, interrupted at any instant, abandoned, and of another owner.

use std::collections::BTreeSet;
use std::time::Duration;

use base::clock::{Clock, ManualClock};
use domain::ids::{ImportId, Owner, ProjectId};
use jiff::SignedDuration;
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use shared::blobs::BlobKey;
use shared::flows::archive;
use shared::runtime::function::{Invocation, Trigger, Uploaded};
use tests::{Answer, Harness, send};

fn owner() -> Owner {
    Owner::new("local").unwrap()
}

fn line(n: usize, padding: usize) -> String {
    let description = format!("Entry {n}{}", " ".repeat(padding));
    let at = "2025-08-12T14:00:00.000Z";
    json!({"event": "agent_start", "agent_id": "arch-00", "description": description, "timestamp": at})
        .to_string()
        + "\n"
}

/// How many logs an archive has.
const LOGS: usize = 12;

/// Logs with two entries and an invalid line.
fn archive_of(session: &str) -> Vec<u8> {
    let text = line(0, 0) + "no entry\n" + &line(1, 0);
    archive::write((0..LOGS).map(|n| (format!("{session}/arch-{n:02}.jsonl"), &text))).unwrap()
}

/// A platform whose indexer runs only when the test calls it.
async fn by_hand() -> (Harness, ManualClock) {
    let manual = ManualClock::at("2026-11-21T09:00:00Z".parse().unwrap());
    let clock = Clock::Manual(manual.clone());
    let config = PlatformConfig { clock, automatic: false, ..PlatformConfig::in_memory() };
    (Harness::with(config).await, manual)
}

/// Reports the upload of an archive.
async fn deliver(h: &Harness, import: &Value) -> shared::Result<()> {
    let function = catalog::ALL.iter().find(|function| function.name == "theme-index").unwrap();
    let Trigger::Upload { handler } = function.trigger else { panic!("it is woken by uploads") };
    let cx = h.platform.cx.clone();
    let deadline = cx.clock.now() + SignedDuration::from_mins(5);
    let key = BlobKey::log_archive(&owner(), id(import)).as_str().to_owned();
    handler(cx, Invocation { deadline }, Uploaded { key, sequencer: "0".to_owned() }).await
}

fn id(import: &Value) -> ImportId {
    import["import_id"].as_str().unwrap().parse().unwrap()
}

async fn begin(h: &Harness, query: &str, archive: &[u8]) -> Value {
    h.post(&format!("/context/import{query}"), json!({"bytes": archive.len()})).await.expect(202)
}

async fn put(import: &Value, archive: Vec<u8>) -> u16 {
    tests::put_archive(&tests::client(), import, archive).await.status().as_u16()
}

/// Begins an import and uploads this archive.
async fn uploaded(h: &Harness, query: &str, archive: Vec<u8>) -> Value {
    let import = begin(h, query, &archive).await;
    assert_eq!(put(&import, archive).await, 200);
    import
}

async fn read(h: &Harness, import: &Value) -> Value {
    h.get(&format!("/context/imports/{}", id(import))).await.expect(200)
}

/// How many entries each log of a session has.
async fn entries(h: &Harness, session: &str) -> Vec<u64> {
    let sessions = h.get("/context/logs").await.expect(200);
    let found = sessions["data"].as_array().unwrap().iter().find(|found| found["session_id"] == session);
    let agents = found.map(|found| found["agents"].as_array().unwrap().clone()).unwrap_or_default();
    agents.iter().map(|agent| agent["total_entries"].as_u64().unwrap()).collect()
}

/// Everything that the bucket has of an import.
async fn left(h: &Harness, import: &Value) -> BTreeSet<String> {
    let prefix = BlobKey::imported_logs(&owner(), id(import));
    h.platform.cx.blobs.list(&prefix, None).await.unwrap().into_iter().collect()
}

/// What the bucket should have of an import after these of its logs were made.
fn named(session: &str, logs: impl Iterator<Item = usize>) -> BTreeSet<String> {
    logs.map(|n| format!("{session}/arch-{n:02}/000000000001")).collect()
}

/// Checks that everything in an archive was imported, exactly once.
async fn is_whole(h: &Harness, import: &Value) {
    let ended = read(h, import).await;
    let counts = ["state", "logs", "entries", "corrupt_lines", "skipped_logs"].map(|name| &ended[name]);
    assert_eq!(counts, [&json!("done"), &json!(LOGS), &json!(2 * LOGS), &json!(LOGS), &json!(0)]);
    assert_eq!(left(h, import).await, named("s1", 0..LOGS));
    assert_eq!(entries(h, "s1").await, [2; LOGS]);
}

#[tokio::test]
async fn an_upload_becomes_logs() {
    let h = Harness::start().await;
    // Three segments, between two logs.
    let long: String = (0..100).map(|n| line(n, 100_000)).collect();
    let short = line(0, 0) + "no entry\n";
    let files = [("s1/a1.jsonl", &short), ("s1/long-01.jsonl", &long), ("s1/z1.jsonl", &short)];
    let archive = archive::write(files).unwrap();
    let sha256 = domain::hex(&Sha256::digest(&archive));
    let body = json!({"bytes": archive.len(), "sha256": sha256});
    let answer = h.post("/context/import", body).await;
    let place = answer.headers["location"].to_str().unwrap().to_owned();
    let import = answer.expect(202);
    assert_eq!(place, format!("/context/imports/{}", id(&import)));
    assert_eq!((&import["state"], &import["upload"]["method"]), (&json!("waiting"), &json!("PUT")));
    // Another archive of the same length is refused, and so is one of another length.
    let mut other = archive.clone();
    other[0] ^= 1;
    for wrong in [other, [archive.clone(), vec![0]].concat()] {
        assert!([400, 403].contains(&put(&import, wrong).await));
    }
    assert_eq!(put(&import, archive).await, 200);
    let ended = loop {
        let import = h.get(&place).await.expect(200);
        if import["state"] != "waiting" && import["state"] != "running" {
            break import;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    };
    let counts = ["state", "logs", "entries", "corrupt_lines", "skipped_logs"].map(|name| &ended[name]);
    assert_eq!(counts, [&json!("done"), &json!(3), &json!(102), &json!(2), &json!(0)]);
    let last = h.get("/context/logs/long-01?lines=60").await.expect(200);
    let last = last["entries"].as_array().unwrap();
    assert_eq!((last.len(), last[0]["description"].as_str().unwrap().trim_end()), (60, "Entry 40"));
    let stored = [("a1", 1), ("long-01", 1), ("long-01", 42), ("long-01", 83), ("z1", 1)];
    let stored = stored.map(|(agent, first)| format!("s1/{agent}/{first:012}"));
    assert_eq!(left(&h, &import).await, BTreeSet::from(stored));
}

#[tokio::test]
async fn an_import_reports_what_it_does_not_accept() {
    let (h, _) = by_hand().await;
    for (body, field) in [
        (json!({}), "bytes"),
        (json!({"bytes": 0}), "bytes"),
        (json!({"bytes": 134_217_729}), "bytes"),
        (json!({"bytes": -1}), "bytes"),
        (json!({"bytes": 1, "sha256": "00"}), "sha256"),
    ] {
        let problem = h.post("/context/import", body.clone()).await.refused(400, "invalid_input");
        assert_eq!(problem["errors"][0]["field"], field, "{body}");
    }
    let nowhere = "/context/import?project=prj_00000000000000000000000000000009";
    h.post(nowhere, json!({"bytes": 1})).await.refused(404, "not_found");
    h.get("/context/imports/imp_00000000000000000000000000000009").await.refused(404, "not_found");

    let deep = format!("{}/a.jsonl", "d".repeat(1_100));
    for (archive, reason) in [
        (b"no zip at all".to_vec(), "not a zip archive"),
        (archive::write([(deep.as_str(), "")]).unwrap(), "has more than 1024 bytes"),
    ] {
        let import = uploaded(&h, "", archive).await;
        deliver(&h, &import).await.unwrap();
        let ended = read(&h, &import).await;
        assert_eq!(ended["state"], "failed");
        assert!(ended["reason"].as_str().unwrap().contains(reason), "{ended}");
    }
    // The uploaded archive was deleted, or never existed.
    let import = begin(&h, "", b"x").await;
    deliver(&h, &import).await.unwrap();
    assert_eq!(read(&h, &import).await["reason"], "the archive is gone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_that_is_reported_again_is_imported_once() {
    let (h, _) = by_hand().await;
    let archive = archive_of("s1");
    let import = uploaded(&h, "", archive.clone()).await;
    let (one, two) = tokio::join!(deliver(&h, &import), deliver(&h, &import));
    one.and(two).unwrap();
    is_whole(&h, &import).await;
    let ended = read(&h, &import).await;
    // The archive is uploaded again, later. This is no second import, and the archive is deleted.
    h.post("/context/logs/arch-00", json!({"session_id": "s1", "event": "agent_complete"})).await.expect(201);
    assert_eq!(put(&import, archive.clone()).await, 200);
    deliver(&h, &import).await.unwrap();
    assert_eq!(read(&h, &import).await, ended);
    let key = BlobKey::log_archive(&owner(), id(&import));
    assert_eq!(h.platform.cx.blobs.size(&key).await.unwrap(), None);
    // The same logs in another import are not changed, and nothing of them is stored.
    let second = uploaded(&h, "", archive).await;
    deliver(&h, &second).await.unwrap();
    let ended = read(&h, &second).await;
    assert_eq!((&ended["logs"], &ended["skipped_logs"]), (&json!(0), &json!(LOGS)));
    assert_eq!(left(&h, &second).await, BTreeSet::new());
    assert_eq!(entries(&h, "s1").await.iter().sum::<u64>(), 2 * LOGS as u64 + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_that_is_interrupted_anywhere_continues() {
    let (h, _) = by_hand().await;
    let import = uploaded(&h, "", archive_of("s1")).await;
    // Dropped at its next await, like a kill. Only the reading continues, and it changes nothing.
    let mut cuts = 0;
    while tokio::time::timeout(Duration::from_millis(2 + 5 * cuts), deliver(&h, &import)).await.is_err() {
        cuts += 1;
    }
    assert!(cuts > 0, "it was never cut off");
    is_whole(&h, &import).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_in_a_request_that_is_interrupted_anywhere_continues() {
    let (h, clock) = by_hand().await;
    let (owner, project) = (owner(), ProjectId::DEFAULT);
    let (mut partial, mut millis) = (0, 1);
    loop {
        let session = format!("s{millis}");
        let archive = archive_of(&session);
        let inline = shared::flows::logs::import::inline(&h.platform.cx, &owner, project, archive.into());
        if let Ok(ended) = tokio::time::timeout(Duration::from_millis(millis), inline).await {
            assert_eq!(serde_json::to_value(ended.unwrap()).unwrap()["logs"], LOGS);
            break;
        }
        // The table and the bucket finish the calls that they got.
        tokio::time::sleep(Duration::from_millis(20)).await;
        let made = entries(&h, &session).await.len();
        partial += usize::from((1..LOGS).contains(&made));
        for id in h.platform.cx.store.open_log_imports(&owner, 10).await.unwrap() {
            let key = BlobKey::log_archive(&owner, id);
            if h.platform.cx.blobs.size(&key).await.unwrap().is_none() {
                // The archive did not reach the bucket: nothing was imported, and the client got no answer.
                continue;
            }
            // The upload waits as long as the request may be alive, and then does its work.
            let import = json!({"import_id": id.to_string()});
            let early = tokio::time::timeout(Duration::from_millis(5), deliver(&h, &import)).await;
            assert!(early.is_err(), "it did not wait");
            clock.set(clock.now() + SignedDuration::from_secs(31));
            deliver(&h, &import).await.unwrap();
            assert_eq!(read(&h, &import).await["state"], "done");
            assert_eq!(entries(&h, &session).await, [2; LOGS]);
            assert_eq!(left(&h, &import).await, named(&session, 0..LOGS));
            assert_eq!(h.platform.cx.blobs.size(&key).await.unwrap(), None);
        }
        millis += 2 + millis / 4;
    }
    assert!(partial > 0, "no cut left an import partial");
}

/// Interrupts an import after some of its logs are made. The segment of the next log is stored. Returns how many are
/// made.
async fn cut_off(h: &Harness, import: &Value) -> usize {
    let mut millis = 5;
    while entries(h, "s1").await.is_empty() {
        let cut = tokio::time::timeout(Duration::from_millis(millis), deliver(h, import)).await;
        assert!(cut.is_err(), "it came to its end");
        millis += 5;
    }
    // The table finishes the calls that it got.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let made = entries(h, "s1").await.len();
    assert!(made < LOGS, "all are made");
    let (session, agent) = ("s1".parse().unwrap(), format!("arch-{made:02}").parse().unwrap());
    let key = BlobKey::imported_segment(&owner(), id(import), &session, &agent, 1);
    h.platform.cx.blobs.put(&key, line(0, 0) + &line(1, 0), "application/x-ndjson").await.unwrap();
    made
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_was_created_meanwhile_is_not_changed() {
    let (h, _) = by_hand().await;
    let import = uploaded(&h, "", archive_of("s1")).await;
    let made = cut_off(&h, &import).await;
    let begun = json!({"session_id": "s1", "event": "agent_start", "description": "mine"});
    let taken = format!("/context/logs/arch-{made:02}");
    h.post(&taken, begun).await.expect(201);
    deliver(&h, &import).await.unwrap();
    let ended = read(&h, &import).await;
    let skipped = json!([format!("s1/arch-{made:02}.jsonl")]);
    assert_eq!((&ended["logs"], &ended["skipped"]), (&json!(LOGS - 1), &skipped));
    assert_eq!(left(&h, &import).await, named("s1", (0..LOGS).filter(|&n| n != made)));
    let kept = h.get(&taken).await.expect(200);
    assert_eq!(kept["entries"][0]["description"], "mine");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_import_deletes_the_leftovers_of_an_abandoned_one() {
    let (h, clock) = by_hand().await;
    let import = uploaded(&h, "", archive_of("s1")).await;
    let made = cut_off(&h, &import).await;
    assert_eq!(left(&h, &import).await, named("s1", 0..=made));
    let idle = begin(&h, "", b"x").await;
    clock.set(clock.now() + SignedDuration::from_mins(179));
    assert_eq!(read(&h, &import).await["state"], "running");
    clock.set(clock.now() + SignedDuration::from_mins(2));
    begin(&h, "", b"x").await;
    for (import, reason) in [(&import, "the import was interrupted"), (&idle, "nothing was uploaded in time")]
    {
        let ended = read(&h, import).await;
        assert_eq!((&ended["state"], &ended["reason"]), (&json!("failed"), &json!(reason)));
    }
    // The event arrives once more, late. Nothing is made any more.
    for _ in 0..2 {
        assert_eq!(left(&h, &import).await, named("s1", 0..made));
        assert_eq!(entries(&h, "s1").await, vec![2; made]);
        deliver(&h, &import).await.unwrap();
    }
}

#[tokio::test]
async fn an_import_goes_with_its_project() {
    let (h, _) = by_hand().await;
    let project = h.post("/projects", json!({"name": "p"})).await.expect(201);
    let project = project["project_id"].as_str().unwrap();
    let query = format!("?project={project}");
    let import = uploaded(&h, &query, archive_of("s1")).await;
    deliver(&h, &import).await.unwrap();
    let late = uploaded(&h, &query, archive_of("s2")).await;
    assert_eq!(h.delete(&format!("/projects/{project}")).await.status, 204);
    deliver(&h, &late).await.unwrap();
    assert_eq!(read(&h, &late).await["reason"], "the project is gone");
    for import in [&import, &late] {
        assert_eq!(left(&h, import).await, BTreeSet::new());
    }
    assert_eq!(h.get("/context/logs").await.expect(200)["data"], json!([]));
    let project: ProjectId = project.parse().unwrap();
    assert!(h.platform.cx.store.project(&owner(), project).await.unwrap().is_none());
}

#[tokio::test]
async fn a_file_that_comes_twice_is_imported_once() {
    let (h, _) = by_hand().await;
    let (first, second) = (line(1, 0), line(2, 0) + &line(3, 0));
    let files = [("a/s1/arch-1.jsonl", first.as_str()), ("b/s1/Arch-1.jsonl", &second)];
    let import = uploaded(&h, "", archive::write(files).unwrap()).await;
    deliver(&h, &import).await.unwrap();
    let ended = read(&h, &import).await;
    assert_eq!(
        (&ended["logs"], &ended["entries"], &ended["skipped_logs"]),
        (&json!(1), &json!(1), &json!(1))
    );
    let log = h.get("/context/logs/arch-1").await.expect(200);
    assert_eq!(log["entries"][0]["description"], "Entry 1");
}

#[tokio::test]
async fn nobody_sees_anothers_import() {
    let mut config = PlatformConfig::in_memory();
    config.auth = shared::config::AuthConfig::On(None);
    let h = Harness::with(config).await;
    let (mine, theirs) = (h.key_of("me").await, h.key_of("you").await);
    let call = async |key: &str, method: Method, path: &str| -> Answer {
        let request = h.request(method.clone(), path).bearer_auth(key).header("accept", "application/json");
        send(if method == Method::POST { request.json(&json!({"bytes": 1})) } else { request }).await
    };
    let import = call(&mine, Method::POST, "/context/import").await.expect(202);
    let path = format!("/context/imports/{}", id(&import));
    call(&mine, Method::GET, &path).await.expect(200);
    call(&theirs, Method::GET, &path).await.refused(404, "not_found");
}
