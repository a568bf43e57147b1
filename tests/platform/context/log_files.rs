//! Context logs as files, and the sealing of old logs.

use std::collections::BTreeMap;

use base::clock::{Clock, ManualClock};
use domain::ids::Owner;
use domain::log::{InstanceId, SessionId};
use jiff::SignedDuration;
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use shared::flows::archive::{self, ArchiveLimits};
use shared::flows::logs::{self, seal};
use shared::store::Once;
use shared::store::table::Order;
use tests::{Answer, Harness, send};

const LIMITS: ArchiveLimits = ArchiveLimits {
    entries: 100,
    entry_bytes: 64 << 20,
    total_bytes: 64 << 20,
    path_bytes: 500,
    ratio: None,
};

fn line(session: &str, agent: &str, minute: usize, text: &str) -> String {
    json!({
        "event": "agent_start", "agent_type": "the-architect", "agent_id": agent, "description": text,
        "instruction": "i", "session_id": session, "timestamp": format!("2025-08-12T14:{minute:02}:00.000Z"),
    })
    .to_string()
        + "\n"
}

async fn import(h: &Harness, query: &str, files: &[(&str, &str)]) -> Answer {
    let archive = archive::write(files.iter().copied()).unwrap();
    let path = format!("/context/import{query}");
    send(h.request(Method::POST, &path).header("content-type", "application/zip").body(archive)).await
}

/// The counts of an import.
fn counted(import: Value) -> Value {
    assert_eq!(import["state"], "done", "{import}");
    let counts = ["logs", "entries", "corrupt_lines", "skipped_logs", "skipped", "ignored_files"];
    counts
        .iter()
        .map(|count| ((*count).to_owned(), import[count].clone()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

async fn export(h: &Harness, query: &str) -> BTreeMap<String, String> {
    let answer = h.request(Method::GET, &format!("/context/export{query}")).send().await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["content-type"]),
        (200, &"application/zip".parse().unwrap())
    );
    let files = archive::read(&answer.bytes().await.unwrap(), &LIMITS).unwrap();
    files.into_iter().map(|file| (file.path, String::from_utf8(file.bytes).unwrap())).collect()
}

async fn descriptions(h: &Harness, path: &str) -> Vec<String> {
    let answer = h.get(&format!("/context/logs/{path}")).await.expect(200);
    let entries = answer["entries"].as_array().unwrap().clone();
    entries.iter().map(|entry| entry["description"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn imported_lines_are_exported_unchanged() {
    let h = Harness::start().await;
    let arch: String = [line("dev-1", "arch-001", 1, "one"), line("dev-1", "arch-001", 4, "four")].concat();
    let dev: String = [line("dev-1", "dev-001", 2, "two"), line("dev-1", "dev-001", 3, "three")].concat();
    let main = line("dev-1", "main", 5, "five");
    let late = line("dev-2", "arch-001", 9, "late");
    let session: String =
        [("arch-001", 1, "one"), ("dev-001", 2, "two"), ("dev-001", 3, "three"), ("arch-001", 4, "four")]
            .map(|(agent, minute, text)| line("dev-1", agent, minute, text))
            .concat()
            + &main;
    let all = session.clone() + &late;
    let files = [
        ("all-agent-instructions.jsonl", all.as_str()),
        ("dev-1/agent-instructions.jsonl", &session),
        ("dev-1/arch-001.jsonl", &arch),
        ("dev-1/dev-001.jsonl", &dev),
        ("dev-1/main.jsonl", &main),
        ("dev-2/agent-instructions.jsonl", &late),
        ("dev-2/arch-001.jsonl", &late),
        ("dev-2/main.jsonl", ""),
    ];
    let report = counted(import(&h, "", &files).await.expect(200));
    let expected = json!({
        "logs": 4, "entries": 6, "corrupt_lines": 0, "skipped_logs": 0, "skipped": [], "ignored_files": 3
    });
    assert_eq!(report, expected);
    let expected: BTreeMap<String, String> =
        files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    assert_eq!(export(&h, "").await, expected);
    let one: BTreeMap<String, String> = export(&h, "?session=dev-2").await;
    assert_eq!(one.keys().filter(|path| path.starts_with("dev-1")).count(), 0);
    assert_eq!(one["all-agent-instructions.jsonl"], late);

    // Later entries follow the imported ones, and a second import changes nothing.
    let more = json!({"event": "agent_complete", "session_id": "dev-1", "description": "more"});
    h.post("/context/logs/arch-001", more).await.expect(201);
    let again = import(&h, "", &files).await.expect(200);
    assert_eq!((&again["logs"], &again["skipped_logs"]), (&json!(0), &json!(4)));
    assert_eq!(again["skipped"][0], "dev-1/arch-001.jsonl");
    assert_eq!(descriptions(&h, "arch-001?session=dev-1").await, ["one", "four", "more"]);
    assert_eq!(descriptions(&h, "arch-001?session=dev-1&lines=2").await, ["four", "more"]);
    let exported = export(&h, "").await;
    assert!(exported["dev-1/arch-001.jsonl"].starts_with(&arch));
    assert_eq!(exported["dev-1/arch-001.jsonl"].lines().count(), 3);
}

#[tokio::test]
async fn corrupt_lines_are_skipped_and_counted() {
    let h = Harness::start().await;
    let bare = |n: usize| {
        format!(
            r#"{{"event":"agent_start","agent_id":"arch-large","description":"Entry {n}","timestamp":"2025-08-12T14:00:00.000Z"}}"#
        )
    };
    let log = format!("{}\ninvalid json line\n\n{{}}\n{}\r\n{}", bare(1), bare(2), bare(3));
    let files = [
        (".the-startup/dev-perf/arch-large.jsonl", log.as_str()),
        (".the-startup/dev-perf/empty.jsonl", "\n"),
        (".the-startup/templates/PLAN.md", "# Plan"),
    ];
    let report = counted(import(&h, "", &files).await.expect(200));
    let expected = json!({
        "logs": 1, "entries": 3, "corrupt_lines": 2, "skipped_logs": 0, "skipped": [], "ignored_files": 1
    });
    assert_eq!(report, expected);
    assert_eq!(descriptions(&h, "arch-large").await, ["Entry 1", "Entry 2", "Entry 3"]);
    // Lines are stored unchanged. Missing fields are filled in when they are read.
    let exported = export(&h, "").await;
    assert_eq!(exported["dev-perf/arch-large.jsonl"], [bare(1), bare(2), bare(3)].map(|l| l + "\n").concat());
    let read = h.get("/context/logs/arch-large?lines=1&include_metadata=true").await.expect(200);
    assert_eq!(read["entries"][0]["session_id"], "dev-perf");
    assert_eq!(read["metadata"]["file_size_bytes"], exported["dev-perf/arch-large.jsonl"].len());
}

/// Several programs may have written a file at once, and people join files. A line needs an event, an agent and a time.
#[tokio::test]
async fn lines_are_read_by_time_and_incomplete_ones_are_corrupt() {
    let h = Harness::start().await;
    let at = |minute: usize, text: &str| line("dev-1", "arch-001", minute, text);
    let same = [at(20, "b"), at(20, "a")].concat();
    let without = |field: &str| {
        let mut entry: serde_json::Value = serde_json::from_str(&at(1, field)).unwrap();
        entry.as_object_mut().unwrap().remove(field);
        format!("{entry}\n")
    };
    let incomplete: String = ["event", "agent_id", "timestamp"].map(without).concat();
    let log = [at(30, "last"), incomplete, at(10, "first"), same].concat();
    let report = counted(import(&h, "", &[("dev-1/arch-001.jsonl", &log)]).await.expect(200));
    assert_eq!((&report["entries"], &report["corrupt_lines"]), (&json!(4), &json!(3)));
    assert_eq!(descriptions(&h, "arch-001").await, ["first", "b", "a", "last"]);
    assert_eq!(descriptions(&h, "arch-001?lines=1").await, ["last"]);
    let together = [line("dev-2", "dev-001", 9, "late"), line("dev-2", "dev-001", 3, "early")].concat();
    import(&h, "", &[("dev-2/agent-instructions.jsonl", &together)]).await.expect(200);
    assert_eq!(descriptions(&h, "dev-001").await, ["early", "late"]);
}

#[tokio::test]
async fn the_file_of_all_agents_is_read_if_single_files_are_missing() {
    let h = Harness::start().await;
    let together =
        [line("dev-1", "arch-001", 1, "one"), line("dev-1", "dev-001", 2, "two"), "x\n".to_owned()];
    let report = import(&h, "", &[("dev-1/agent-instructions.jsonl", &together.concat())]).await.expect(200);
    assert_eq!((&report["logs"], &report["corrupt_lines"]), (&json!(2), &json!(1)));
    let all = line("dev-3", "arch-001", 3, "three");
    import(&h, "", &[("all-agent-instructions.jsonl", &all)]).await.expect(200);
    assert_eq!(descriptions(&h, "arch-001?session=dev-1").await, ["one"]);
    assert_eq!(descriptions(&h, "dev-001").await, ["two"]);
    assert_eq!(
        descriptions(&h, "arch-001").await,
        ["one", "three"],
        "the latest by what its lines say, and what was before"
    );
    assert_eq!(descriptions(&h, "arch-001?lines=1").await, ["three"]);
}

#[tokio::test]
async fn a_file_that_is_not_an_archive_is_refused() {
    let h = Harness::start().await;
    let raw = async |body: &'static [u8]| {
        let request = h.request(Method::POST, "/context/import").header("content-type", "application/zip");
        send(request.body(body)).await
    };
    for body in [&b""[..], b"no zip", b"PK\x03\x04"] {
        let problem = raw(body).await.refused(400, "invalid_input");
        assert_eq!(problem["errors"][0]["field"], "archive");
    }
    import(&h, "?project=prj_00000000000000000000000000000009", &[]).await.refused(404, "not_found");
    import(&h, "?project=x", &[]).await.refused(400, "invalid_input");
    let nothing = import(&h, "", &[]).await.expect(200);
    assert_eq!(nothing["logs"], 0);
    assert_eq!(
        export(&h, "").await,
        BTreeMap::from([("all-agent-instructions.jsonl".into(), String::new())])
    );
}

/// The numbers of a log's lines that are in the table.
async fn hot(h: &Harness, session: &SessionId, agent: &InstanceId) -> Vec<u64> {
    let owner = Owner::new("local").unwrap();
    let store = &h.platform.cx.store;
    let (lines, _) = store.log_lines(&owner, session, agent, None, 500, Order::Oldest).await.unwrap();
    lines.into_iter().map(|(number, _)| number).collect()
}

#[tokio::test]
async fn old_lines_go_to_the_bucket_and_are_read_as_before() {
    let clock = ManualClock::at("2025-08-01T00:00:00Z".parse().unwrap());
    let mut config = PlatformConfig::in_memory();
    config.clock = Clock::Manual(clock.clone());
    let h = Harness::with(config).await;
    let (session, agent): (SessionId, InstanceId) = ("s1".parse().unwrap(), "arch-001".parse().unwrap());
    let owner = Owner::new("local").unwrap();
    let append = async |agent: &str, n: usize, text: &str| {
        let entry = json!({
            "event": "agent_start", "session_id": "s1", "description": format!("{n}"), "instruction": text
        });
        let entry = serde_json::from_value(entry).unwrap();
        logs::append(&h.platform.cx, &owner, &Once::none(), &agent.parse().unwrap(), entry).await.unwrap();
    };
    // One line per hour. One of them is too long for the table.
    let long = "long ".repeat(20_000);
    for n in 1..=120 {
        append("arch-001", n, if n == 7 { &long } else { "short" }).await;
        clock.set(clock.now() + SignedDuration::from_hours(1));
    }
    let before = export(&h, "").await;
    let all = descriptions(&h, "arch-001?lines=1000").await;
    assert_eq!(all.len(), 120);
    let check = async || {
        for lines in [1, 20, 21, 70, 119, 120, 1000] {
            let read = descriptions(&h, &format!("arch-001?lines={lines}")).await;
            assert_eq!(read, all[120 - lines.min(120)..], "{lines}");
        }
        let exported = export(&h, "").await;
        assert_eq!(exported["s1/arch-001.jsonl"], before["s1/arch-001.jsonl"]);
        let together = &exported["s1/agent-instructions.jsonl"];
        assert!(together.starts_with(&before["s1/agent-instructions.jsonl"]));
    };

    // Thirty days after the first hundred lines, the next new log seals them.
    clock.set(
        "2025-08-01T00:00:00Z".parse::<jiff::Timestamp>().unwrap() + SignedDuration::from_hours(99 + 720),
    );
    assert_eq!(hot(&h, &session, &agent).await.len(), 120);
    append("other-1", 1, "short").await;
    assert_eq!(hot(&h, &session, &agent).await, (101..=120).collect::<Vec<u64>>());
    check().await;

    // Another new log changes nothing. A month later everything is sealed, and the log continues.
    append("other-2", 1, "short").await;
    assert_eq!(hot(&h, &session, &agent).await.len(), 20);
    clock.set(clock.now() + SignedDuration::from_hours(720));
    append("other-3", 1, "short").await;
    assert_eq!(hot(&h, &session, &agent).await, Vec::<u64>::new());
    check().await;
    append("arch-001", 121, "short").await;
    assert_eq!(descriptions(&h, "arch-001?lines=2").await, ["120", "121"]);
    assert_eq!(hot(&h, &session, &agent).await, [121]);
    let metadata = h.get("/context/logs/arch-001?include_metadata=true&lines=1").await.expect(200);
    assert_eq!(metadata["metadata"]["total_entries"], 121);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_sealers_seal_once() {
    let clock = ManualClock::at("2025-08-01T00:00:00Z".parse().unwrap());
    let mut config = PlatformConfig::in_memory();
    config.clock = Clock::Manual(clock.clone());
    let h = Harness::with(config).await;
    let body = |n: usize| json!({"event": "agent_start", "session_id": "s1", "description": format!("{n}")});
    for n in 0..60 {
        h.post("/context/logs/arch-001", body(n)).await.expect(201);
    }
    clock.set(clock.now() + SignedDuration::from_hours(24 * 40));
    let owner = Owner::new("local").unwrap();
    let cx = &h.platform.cx;
    let sealed = futures::future::join_all((0..4).map(|_| seal::old_logs(cx, &owner)));
    let appended = futures::future::join_all((60..70).map(|n| h.post("/context/logs/arch-001", body(n))));
    let read = futures::future::join_all((0..10).map(|_| h.get("/context/logs/arch-001?lines=1000")));
    let (sealed, appended, read) = tokio::join!(sealed, appended, read);
    sealed.into_iter().for_each(|done| done.unwrap());
    appended.into_iter().for_each(|done| drop(done.expect(201)));
    // Whatever is in progress, a reader sees every line, once and in order.
    for answer in read {
        let entries: Vec<Value> = answer.expect(200)["entries"].as_array().unwrap().clone();
        let first: Vec<&str> = entries.iter().map(|e| e["description"].as_str().unwrap()).take(60).collect();
        assert_eq!(first, (0..60).map(|n| n.to_string()).collect::<Vec<_>>());
    }
    let (session, agent) = ("s1".parse().unwrap(), "arch-001".parse().unwrap());
    assert_eq!(hot(&h, &session, &agent).await, (61..=70).collect::<Vec<u64>>());
    assert_eq!(descriptions(&h, "arch-001?lines=1000").await.len(), 70);
    let segments = cx.store.log_segments(&owner, &session, &agent, None, 10).await.unwrap();
    assert_eq!(segments.iter().map(|s| (s.first, s.last)).collect::<Vec<_>>(), [(1, 60)]);
}
