//! Schedules that something else runs: declared, changed, reported on, and what became of their due times.

use base::clock::{Clock, ManualClock};
use domain::ids::Owner;
use futures::future::join_all;
use jiff::Timestamp;
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use tests::archives::{exported, imported_at_once, lines, with_lines, zip};
use tests::everything::scanned;
use tests::{Answer, Harness, send};

fn ts(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Noon on a Thursday.
async fn started() -> (Harness, ManualClock) {
    let clock = ManualClock::at(ts("2026-11-26T12:00:00Z"));
    let config = PlatformConfig {
        clock: Clock::Manual(clock.clone()),
        automatic: false,
        ..PlatformConfig::in_memory()
    };
    (Harness::with(config).await, clock)
}

/// A new watched schedule: its path.
async fn watched(h: &Harness, body: Value) -> String {
    let made = h.post("/watched", body).await.expect(201);
    format!("/watched/{}", made["watched_id"].as_str().unwrap())
}

async fn report(h: &Harness, path: &str, body: Value) -> Answer {
    h.post(&format!("{path}/reports"), body).await
}

/// The due times of the ledger and their states, such as `26T15:00 ran`.
async fn ledger(h: &Harness, path: &str) -> Vec<String> {
    let ledger = h.get(&format!("{path}/ledger")).await.expect(200);
    let data = ledger["data"].as_array().unwrap();
    let row = |entry: &Value| format!("{} {}", &text(&entry["due"])[8..16], text(&entry["state"]));
    data.iter().map(row).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

/// The keys of all items of watched schedules.
async fn items(h: &Harness) -> Vec<(String, String)> {
    let all = scanned(&h.platform.cx, "local").await.into_keys();
    all.filter(|(pk, _)| pk.starts_with("U#local#WATCHED")).collect()
}

#[tokio::test]
async fn a_schedule_is_declared_read_changed_and_deleted() {
    let (h, _) = started().await;
    h.patch("/account", json!({"timezone": "Asia/Tokyo"})).await.expect(200);
    let answer = h.post("/watched", json!({"name": " Backup ", "schedule": {"cron": "0 3 * * *"}})).await;
    let (etag, location) = (answer.headers["etag"].clone(), answer.headers["location"].clone());
    let made = answer.expect(201);
    let id = text(&made["watched_id"]);
    let path = format!("/watched/{id}");
    assert!(id.starts_with("wch_"));
    assert_eq!((etag.to_str().unwrap(), location.to_str().unwrap()), ("\"1\"", path.as_str()));
    // The zone is the account's.
    assert_eq!(made["schedule"], json!({"cron": "0 3 * * *", "timezone": "Asia/Tokyo"}));
    assert_eq!((&made["next_due"], &made["name"]), (&json!("2026-11-26T18:00:00Z"), &json!("Backup")));
    assert_eq!((&made["grace_minutes"], &made["paused"]), (&json!(30), &json!(false)));
    assert_eq!(h.get(&path).await.expect(200), made);
    assert_eq!(h.get("/watched").await.expect(200)["data"], json!([made]));

    // A report does not make an edit fail.
    let taken = report(&h, &path, json!({"summary": "412 files"})).await.expect(201);
    assert!(text(&taken["report_id"]).starts_with("rpt_"));
    assert_eq!((&taken["ok"], &taken["at"]), (&json!(true), &json!("2026-11-26T12:00:00Z")));
    let edit = |version: &str, body: Value| {
        send(h.request(Method::PATCH, &path).header("if-match", version).json(&body))
    };
    let changed = edit("\"1\"", json!({"grace_minutes": 5, "expects_result": true})).await.expect(200);
    assert_eq!((&changed["version"], &changed["grace_minutes"]), (&json!(2), &json!(5)));
    assert_eq!(changed["last_report"], taken);
    let refused = edit("\"1\"", json!({"name": "Other"})).await.refused(409, "version_conflict");
    assert_eq!(refused["current"]["version"], 2);
    // What was read can be sent back.
    let same = h.patch(&path, json!({"schedule": changed["schedule"]})).await.expect(200);
    assert_eq!((&same["next_due"], &same["version"]), (&changed["next_due"], &json!(3)));

    send(h.request(Method::DELETE, &path).header("if-match", "\"1\"")).await.refused(409, "version_conflict");
    h.delete(&path).await.expect(204);
    for path in [path.clone(), format!("{path}/reports"), format!("{path}/ledger")] {
        h.get(&path).await.refused(404, "not_found");
    }
    h.delete(&path).await.refused(404, "not_found");
    h.patch(&path, json!({"name": "x"})).await.refused(404, "not_found");
    report(&h, &path, json!({})).await.refused(404, "not_found");
    assert_eq!(items(&h).await, []);
}

#[tokio::test]
async fn each_due_time_gets_its_state() {
    let (h, clock) = started().await;
    let new = json!({"name": "Mirror", "schedule": {"cron": "0 */3 * * *"}, "expects_result": true});
    let path = watched(&h, new).await;
    // Due at 15, 18, 21, 0 and 3 o'clock.
    let at = |time: &str| clock.set(ts(&format!("2026-11-{time}:00Z")));
    at("26T15:01");
    assert_eq!(ledger(&h, &path).await, ["26T15:00 waiting"]);
    assert_eq!(h.get(&path).await.expect(200)["waiting_since"], "2026-11-26T15:00:00Z");
    at("26T15:05");
    report(&h, &path, json!({"summary": "12 files"})).await.expect(201);
    at("26T18:40");
    assert_eq!(ledger(&h, &path).await, ["26T15:00 ran", "26T18:00 silent"]);
    assert_eq!(h.get(&path).await.expect(200)["last"]["state"], "silent");
    report(&h, &path, json!({"link": "https://ci.example.com/7"})).await.expect(201);
    at("26T21:05");
    report(&h, &path, json!({})).await.expect(201);
    at("27T00:10");
    report(&h, &path, json!({"exit_code": 3, "summary": "disk full"})).await.expect(201);
    at("27T03:31");
    let states = ledger(&h, &path).await;
    let expected = ["26T15:00 ran", "26T18:00 late", "26T21:00 empty", "27T00:00 failed", "27T03:00 silent"];
    assert_eq!(states, expected);
    let found = h.get(&format!("{path}/ledger?from=2026-11-26T21:00:00Z&to=2026-11-27T00:00:00Z")).await;
    let found = found.expect(200);
    assert_eq!(found["data"].as_array().unwrap().len(), 1);
    let failed = &found["data"][0];
    assert_eq!((&failed["report"]["exit_code"], &failed["reports"]), (&json!(3), &json!(1)));
    assert_eq!(failed["why"], "It reported a failure with exit code 3 10 minutes after the due time.");

    // A success after a failure counts.
    at("27T03:40");
    report(&h, &path, json!({"exit_code": 0, "summary": "all"})).await.expect(201);
    assert_eq!(ledger(&h, &path).await[4], "27T03:00 late");
    let reports = h.get(&format!("{path}/reports?limit=2")).await.expect(200);
    assert_eq!(reports["data"][1]["exit_code"], 3);
    let rest = format!("{path}/reports?limit=200&cursor={}", text(&reports["next_cursor"]));
    assert_eq!(h.get(&rest).await.expect(200)["data"].as_array().unwrap().len(), 3);

    // The day has the same.
    let day = h.get("/day?date=2026-11-26").await.expect(200);
    let states: Vec<&str> =
        day["watched"].as_array().unwrap().iter().map(|due| text(&due["state"])).collect();
    assert_eq!(states, ["ran", "late", "empty"]);
    assert_eq!(day["watched"][1]["link"], "https://ci.example.com/7");
    let day = h.get("/day").await.expect(200);
    let due = day["watched"].as_array().unwrap();
    assert_eq!(due.len(), 8, "{day:#}");
    assert_eq!(
        (&due[0]["state"], &due[1]["state"], &due[2]["state"]),
        (&json!("failed"), &json!("late"), &Value::Null)
    );
    assert_eq!(day["watched_complete"], true);
    assert_eq!(h.get("/day?date=2026-11-20").await.expect(200)["watched"], json!([]));
}

/// A failure counts as soon as it is reported, whether or not it belongs to a due time, and a success ends it.
#[tokio::test]
async fn a_failure_is_wrong_at_once_until_a_success_follows() {
    let (h, clock) = started().await;
    let path = watched(&h, json!({"name": "Backup", "schedule": {"cron": "0 3 * * *"}})).await;
    let state = async || {
        let one = h.get(&path).await.expect(200);
        assert_eq!(h.get("/watched").await.expect(200)["data"], json!([one]));
        format!("{}: {}", text(&one["state"]), text(&one["why"]))
    };
    // What the watchdog says is wrong, and what it has said.
    let wrong = async || {
        let dog = h.get("/watchdog").await.expect(200);
        let counters = dog["counters"].as_array().unwrap();
        let wrong = counters.iter().filter(|counter| counter["anomalies"] != 0).count();
        let said = h.get("/watchdog/alerts").await.expect(200);
        let said = said["data"].as_array().unwrap().iter().rev();
        (wrong, said.map(|one| text(&one["say"]).to_owned()).collect::<Vec<_>>())
    };
    let at = |time: &str| clock.set(ts(&format!("2026-11-{time}:00Z")));
    assert_eq!(state().await, "waiting: No due time has come yet.");
    assert_eq!(wrong().await, (0, vec![]));
    // Fifteen hours before the first due time: it belongs to none.
    report(&h, &path, json!({"exit_code": 3})).await.expect(201);
    assert_eq!(state().await, "failed: It reported a failure with exit code 3.");
    assert_eq!(wrong().await, (1, vec!["alert".to_owned()]));
    let alert = h.get("/watchdog/alerts").await.expect(200)["data"][0].clone();
    assert_eq!(alert["check"], "watched_schedule");
    assert!(path.ends_with(text(&alert["item"])), "{alert:#}");
    assert_eq!(alert["what"], "It has failed. It reported a failure with exit code 3.");
    // A second failure is not a second alert.
    at("26T13:00");
    report(&h, &path, json!({"ok": false})).await.expect(201);
    assert_eq!(state().await, "failed: It reported a failure.");
    assert_eq!(wrong().await, (1, vec!["alert".to_owned()]));
    at("26T13:10");
    report(&h, &path, json!({})).await.expect(201);
    assert_eq!(state().await, "ran: It reported a success.");
    assert_eq!(wrong().await, (0, vec!["alert".to_owned(), "recovery".to_owned()]));

    // One that runs again by hand after its success, and fails.
    at("27T03:05");
    report(&h, &path, json!({})).await.expect(201);
    assert_eq!(state().await, "ran: It reported 5 minutes after the due time.");
    at("27T04:00");
    report(&h, &path, json!({"exit_code": 1})).await.expect(201);
    assert_eq!(state().await, "failed: It reported a failure with exit code 1.");
    assert_eq!(ledger(&h, &path).await, ["27T03:00 ran"]);
    // The next due time passes in silence.
    at("28T03:31");
    assert_eq!(state().await, "silent: No report came within 30 minutes after the due time.");
    // A late success does not end it: it was late.
    report(&h, &path, json!({})).await.expect(201);
    assert!(state().await.starts_with("late: "));
    assert_eq!(wrong().await.0, 1);
    at("29T03:01");
    report(&h, &path, json!({})).await.expect(201);
    assert_eq!(state().await, "ran: It reported 1 minute after the due time.");
    assert_eq!(wrong().await, (0, ["alert", "recovery", "alert", "recovery"].map(str::to_owned).to_vec()));

    // While it is paused, nobody is told, and what is switched off is not told either.
    h.patch(&path, json!({"paused": true})).await.expect(200);
    report(&h, &path, json!({"ok": false})).await.expect(201);
    assert_eq!(state().await, "paused: It is paused.");
    h.patch(&path, json!({"paused": false})).await.expect(200);
    assert_eq!(state().await, "failed: It reported a failure.");
    let off = json!({"checks": {"watched_schedule": {"enabled": false}}});
    send(h.request(Method::PUT, "/watchdog/settings").json(&off)).await.expect(200);
    at("29T03:03");
    report(&h, &path, json!({"ok": false})).await.expect(201);
    assert_eq!(wrong().await, (0, ["alert", "recovery", "alert", "recovery"].map(str::to_owned).to_vec()));
}

/// Of concurrent reports, each is kept, and the person is told once that it has failed and once that it is right again.
#[tokio::test]
async fn failures_at_once_are_one_alert() {
    let (h, clock) = started().await;
    let path = watched(&h, json!({"name": "Sync", "schedule": {"every": "1h"}})).await;
    clock.set(ts("2026-11-26T13:05:00Z"));
    let failures = (0..20).map(|n| report(&h, &path, json!({"exit_code": n + 1})));
    let other = watched(&h, json!({"name": "Other", "schedule": {"every": "1h"}})).await;
    let others = (0..5).map(|_| report(&h, &other, json!({"ok": false})));
    let (all, others) = tokio::join!(join_all(failures), join_all(others));
    for answer in all.into_iter().chain(others) {
        answer.expect(201);
    }
    let said = h.get("/watchdog/alerts").await.expect(200)["data"].clone();
    assert_eq!(said.as_array().unwrap().len(), 2, "{said:#}");
    let reports = h.get(&format!("{path}/reports?limit=50")).await.expect(200);
    assert_eq!(reports["data"].as_array().unwrap().len(), 20);
    clock.set(ts("2026-11-26T13:06:00Z"));
    for answer in join_all((0..10).map(|_| report(&h, &path, json!({})))).await {
        answer.expect(201);
    }
    let said = h.get("/watchdog/alerts").await.expect(200)["data"].clone();
    assert_eq!(said.as_array().unwrap().len(), 3, "{said:#}");
    assert_eq!(said[0]["say"], "recovery");
}

#[tokio::test]
async fn nothing_is_expected_while_it_is_paused() {
    let (h, clock) = started().await;
    let path = watched(&h, json!({"name": "Sync", "schedule": {"every": "1h"}, "grace_minutes": 10})).await;
    clock.set(ts("2026-11-26T13:30:00Z"));
    let paused = h.patch(&path, json!({"paused": true})).await.expect(200);
    assert_eq!((&paused["paused"], &paused["next_due"]), (&json!(true), &Value::Null));
    clock.set(ts("2026-11-26T14:15:00Z"));
    // The other thing ran all the same. A late report belongs to the due time before the pause.
    report(&h, &path, json!({})).await.expect(201);
    h.post("/account/stop", json!({})).await.expect(200);
    report(&h, &path, json!({})).await.expect(201);
    clock.set(ts("2026-11-26T15:30:00Z"));
    let resumed = h.patch(&path, json!({"paused": false})).await.expect(200);
    assert_eq!(resumed["next_due"], "2026-11-26T16:00:00Z");
    clock.set(ts("2026-11-26T16:30:00Z"));
    assert_eq!(ledger(&h, &path).await, ["26T13:00 late", "26T16:00 silent"]);
    assert_eq!(h.get(&format!("{path}/reports")).await.expect(200)["data"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn reports_at_once_are_all_kept_while_the_schedule_changes() {
    let (h, clock) = started().await;
    let path = watched(&h, json!({"name": "Sync", "schedule": {"every": "1h"}})).await;
    clock.set(ts("2026-11-26T13:05:00Z"));
    let reports = (0..25).map(|n| report(&h, &path, json!({"summary": n.to_string()})));
    let patches = (1..6).map(|n| h.patch(&path, json!({"grace_minutes": n * 10})));
    let (reports, patches) = tokio::join!(join_all(reports), join_all(patches));
    for answer in patches {
        answer.expect(200);
    }
    for answer in reports {
        answer.expect(201);
    }
    let found = h.get(&format!("{path}/ledger")).await.expect(200);
    assert_eq!((&found["data"][0]["state"], &found["data"][0]["reports"]), (&json!("ran"), &json!(25)));
    assert_eq!(h.get(&path).await.expect(200)["version"], 6);

    // One key stores one report.
    let reports = format!("{path}/reports");
    let first = h.post_once(&reports, "run-7", json!({"summary": "once"})).await.expect(201);
    let second = h.post_once(&reports, "run-7", json!({"summary": "once"})).await.expect(201);
    assert_eq!(first, second);
    let all = h.get(&format!("{reports}?limit=200")).await.expect(200);
    assert_eq!(all["data"].as_array().unwrap().len(), 26);

    // Reports and a deletion at once leave nothing.
    let reports = (0..10).map(|_| report(&h, &path, json!({})));
    let (_, deleted) = tokio::join!(join_all(reports), h.delete(&path));
    deleted.expect(204);
    assert_eq!(items(&h).await, []);
}

#[tokio::test]
async fn hostile_input_is_refused_by_name() {
    let (h, _) = started().await;
    let every = json!({"every": "1h"});
    for (body, field) in [
        (json!({"name": "", "schedule": every}), "name"),
        (json!({"name": "x".repeat(101), "schedule": every}), "name"),
        (json!({"name": "a\nb", "schedule": every}), "name"),
        (json!({"name": "a\u{1b}[2J", "schedule": every}), "name"),
        (json!({"name": "a\u{2028}b", "schedule": every}), "name"),
        (
            json!({"name": "a", "schedule": {"cron": "0 3 * * *", "timezone": "Mars/Base"}}),
            "schedule.timezone",
        ),
        (json!({"name": "a", "schedule": {"every": "1s"}}), "schedule.every"),
        (json!({"name": "a", "schedule": {"every": "1h", "jitter": "1m"}}), "schedule.jitter"),
        (json!({"name": "a", "schedule": {"at": "2020-01-01T00:00:00Z"}}), "schedule"),
        (json!({"name": "a", "schedule": every, "grace_minutes": 0}), "grace_minutes"),
        (json!({"name": "a", "schedule": every, "grace_minutes": 1441}), "grace_minutes"),
        (json!({"name": "a", "schedule": every, "paused": true}), "paused"),
    ] {
        let refused = h.post("/watched", body.clone()).await.refused(400, "invalid_input");
        let fields: Vec<&str> =
            refused["errors"].as_array().unwrap().iter().map(|error| text(&error["field"])).collect();
        assert!(fields.contains(&field), "{body}: {refused}");
    }
    assert_eq!(items(&h).await, []);
    let path = watched(&h, json!({"name": "a", "schedule": every})).await;
    for (body, field) in [
        (json!({"summary": "x".repeat(501)}), "summary"),
        (json!({"summary": "a\0b"}), "summary"),
        (json!({"link": "javascript:alert(1)"}), "link"),
        (json!({"link": "http://example.com/"}), "link"),
        (json!({"link": "https://me:secret@example.com/"}), "link"),
        (json!({"link": "https://example.com/a b"}), "link"),
        (json!({"link": format!("https://example.com/{}", "x".repeat(2_000))}), "link"),
        (json!({"ok": true, "exit_code": 1}), "ok"),
        (json!({"state": "ran"}), "state"),
    ] {
        let refused = report(&h, &path, body.clone()).await.refused(400, "invalid_input");
        assert_eq!(refused["errors"][0]["field"], field, "{body}: {refused}");
    }
    for (query, field) in [
        ("from=yesterday", "from"),
        ("to=2026", "to"),
        ("from=2020-01-01T00:00:00Z", "from"),
        ("from=2026-11-27T00:00:00Z&to=2026-11-26T00:00:00Z", "from"),
        ("limit=1", "limit"),
    ] {
        let refused = h.get(&format!("{path}/ledger?{query}")).await.refused(400, "invalid_input");
        assert_eq!(refused["errors"][0]["field"], field, "{query}: {refused}");
    }
    assert_eq!(h.get(&format!("{path}/reports")).await.expect(200)["data"], json!([]));
}

#[tokio::test]
async fn a_long_ledger_comes_in_parts() {
    let (h, clock) = started().await;
    let path = watched(&h, json!({"name": "Tick", "schedule": {"every": "1m"}, "grace_minutes": 1})).await;
    clock.set(ts("2026-11-27T12:00:00Z"));
    report(&h, &path, json!({})).await.expect(201);
    let (mut due, mut from, mut parts) = (Vec::new(), "2026-11-26T00:00:00Z".to_owned(), 0);
    loop {
        let part = h.get(&format!("{path}/ledger?from={from}")).await.expect(200);
        due.extend(part["data"].as_array().unwrap().iter().map(|entry| entry["due"].clone()));
        parts += 1;
        match part["next_from"].as_str() {
            Some(next) => from = next.to_owned(),
            None => break,
        }
    }
    assert_eq!((due.len(), parts), (1_440, 3));
    let mut unique = due.clone();
    unique.dedup();
    assert_eq!(unique.len(), due.len());
    // The day shows those that are nearest to now.
    let day = h.get("/day?date=2026-11-27").await.expect(200);
    assert_eq!(day["watched_complete"], false);
    let shown = day["watched"].as_array().unwrap();
    assert_eq!(shown.len(), 200);
    assert_eq!((&shown[99]["at"], &shown[99]["state"]), (&json!("2026-11-27T12:00:00Z"), &json!("ran")));
    assert_eq!(shown[98]["state"], "waiting");
    assert_eq!(shown[97]["state"], "silent");
}

#[tokio::test]
async fn no_two_have_the_same_name() {
    let (h, _) = started().await;
    let new = |name: &str| json!({"name": name, "schedule": {"every": "1h"}});
    let once = |key: &'static str, name: &str| {
        send(h.request(Method::POST, "/watched").header("idempotency-key", key).json(&new(name)))
    };
    let made = once("one", "Nightly backup").await.expect(201);
    let id = text(&made["watched_id"]);
    // The same request again gets the same answer, and another one is refused.
    assert_eq!(once("one", "Nightly backup").await.expect(201), made);
    for name in ["Nightly backup", " nightly BACKUP "] {
        let refused = h.post("/watched", new(name)).await.refused(409, "name_taken");
        assert_eq!(refused["current"], json!({ "watched_id": id }));
        assert!(text(&refused["detail"]).contains(id), "{refused:#}");
    }
    // So is a new name, but not the own one in other letters, and not one that has become free.
    let other = watched(&h, new("Mirror")).await;
    let rename = async |name: &str| h.patch(&other, json!({ "name": name })).await;
    assert_eq!(rename("NIGHTLY backup").await.refused(409, "name_taken")["current"]["watched_id"], id);
    assert_eq!(rename("MIRROR").await.expect(200)["name"], "MIRROR");
    assert_eq!(rename("Copy").await.expect(200)["name"], "Copy");
    h.post("/watched", new("Mirror")).await.expect(201);
    h.delete(&format!("/watched/{id}")).await.expect(204);
    assert_eq!(rename("nightly backup").await.expect(200)["name"], "nightly backup");
    // Of concurrent ones, one gets the name.
    let creations = join_all((0..4).map(|_| h.post("/watched", new("Race")))).await;
    assert_eq!(creations.iter().filter(|answer| answer.status == 201).count(), 1);
    let paths = [watched(&h, new("a")).await, watched(&h, new("b")).await];
    let renames = join_all(paths.iter().map(|path| h.patch(path, json!({"name": "Final"})))).await;
    assert_eq!(renames.iter().filter(|answer| answer.status == 200).count(), 1);
    assert!(renames.iter().any(|answer| answer.status == 409));
}

#[tokio::test]
async fn an_account_has_a_bounded_number_of_them() {
    let (h, _) = started().await;
    let new = |n: usize| h.post("/watched", json!({"name": n.to_string(), "schedule": {"every": "1h"}}));
    for n in 0..199 {
        new(n).await.expect(201);
    }
    let answers = join_all((199..203).map(new)).await;
    let made = answers.iter().filter(|answer| answer.status == 201).count();
    assert_eq!(made, 1, "concurrent requests do not pass the limit");
    new(203).await.refused(409, "too_many_watched");
    let list = h.get("/watched?limit=200").await.expect(200);
    assert_eq!(list["data"].as_array().unwrap().len(), 200);
    h.delete(&format!("/watched/{}", text(&list["data"][0]["watched_id"]))).await.expect(204);
    new(203).await.expect(201);
}

#[tokio::test]
async fn it_moves_with_its_account() {
    let (h, clock) = started().await;
    let path = watched(&h, json!({"name": "Backup", "schedule": {"every": "2h"}})).await;
    clock.set(ts("2026-11-26T14:05:00Z"));
    report(&h, &path, json!({"summary": "412 files", "link": "https://ci.example.com/7"})).await.expect(201);
    clock.set(ts("2026-11-26T16:50:00Z"));
    let cx = &h.platform.cx;
    let files = exported(cx, &Owner::new("local").unwrap()).await;
    let other = Owner::new("other").unwrap();
    let view = imported_at_once(cx, &other, &zip(&files)).await;
    assert_eq!((view.records.get("watched"), view.records.get("watched_reports")), (Some(&1), Some(&1)));
    let moved = async |owner: &Owner| {
        let all = cx.store.all_watched(owner, 10).await.unwrap();
        let views = shared::flows::watched::witness::views(cx, owner, all).await.unwrap();
        serde_json::to_value(views).unwrap()
    };
    assert_eq!(moved(&other).await, moved(&Owner::new("local").unwrap()).await);
    assert_eq!(moved(&other).await[0]["last"]["state"], "silent");

    // What the platform would not have written is refused.
    let bad = Owner::new("bad").unwrap();
    let mut changed = lines(&files);
    for line in &mut changed {
        if line["record"]["link"].is_string() {
            line["record"]["link"] = json!("javascript:alert(1)");
        }
    }
    let view = imported_at_once(cx, &bad, &zip(&with_lines(&files, &changed))).await;
    let view = serde_json::to_value(view).unwrap();
    assert!(view["state"] == "failed" && view.to_string().contains("link"), "{view:#}");
    assert_eq!(cx.store.all_watched(&bad, 10).await.unwrap(), []);
}

#[tokio::test]
async fn a_routine_reports_over_mcp() {
    let (h, clock) = started().await;
    let path = watched(&h, json!({"name": "Morning brief", "schedule": {"every": "1h"}})).await;
    clock.set(ts("2026-11-26T13:02:00Z"));
    let call = async |arguments: Value| {
        let request = h.request(Method::POST, "/mcp");
        let request = request.header("accept", "application/json, text/event-stream");
        let params = json!({"name": "report_run", "arguments": arguments});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let request = request.header("mcp-protocol-version", "2025-11-25").json(&message);
        send(request).await.expect(200)["result"].clone()
    };
    let done = call(json!({"watched": "morning BRIEF", "summary": "3 topics"})).await;
    assert_eq!(done["isError"], false, "{done}");
    assert_eq!(ledger(&h, &path).await, ["26T13:00 ran"]);
    let id = path.rsplit('/').next().unwrap();
    clock.set(ts("2026-11-26T14:02:00Z"));
    assert_eq!(call(json!({"watched": id, "ok": false})).await["isError"], false);
    assert_eq!(ledger(&h, &path).await[1], "26T14:00 failed");
    let unknown = call(json!({"watched": "Evening brief"})).await;
    assert!(text(&unknown["content"][0]["text"]).contains("\"Morning brief\""), "{unknown}");
}
