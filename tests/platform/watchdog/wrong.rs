//! The manual's table of what goes wrong: every check is broken once, and who is told after how long is what the table says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::routing::get;
use domain::accounts::quota::Charge;
use domain::background::jobs::{JobKind, JobRun, Outcome};
use domain::notices::NoticeKind;
use domain::watchdog::{Check, LOOK_EVERY};
use jiff::{SignedDuration, Timestamp};
use lamplighter_local::platform::PlatformConfig;
use serde_json::{Value, json};
use shared::Cx;
use shared::config::{AwsConfig, Config};
use shared::flows::watched::watchdog;
use shared::store::accounts::spend::Spender;
use shared::store::{DueItem, Store};
use tests::bus;
use tests::executors::bury;
use tests::site::{Answers, Site};
use tests::stage::Stage;
use tokio::net::TcpListener;

const MANUAL: &str = include_str!("../../../docs/operations.md");

/// A row of the table: what notices it, who is told, and after how long.
struct Row {
    names: Vec<&'static str>,
    who: &'static str,
    after: &'static str,
}

fn table() -> Vec<Row> {
    let section = MANUAL.split("\n## What goes wrong\n").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| ")).skip(1);
    let row = |line: &'static str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [_, names, who, after] = cells[..] else { panic!("a row of four cells: {line}") };
        Row { names: names.split('`').skip(1).step_by(2).collect(), who, after }
    };
    rows.map(row).collect()
}

fn row_of(name: &str) -> Row {
    let mut rows: Vec<Row> = table().into_iter().filter(|row| row.names.contains(&name)).collect();
    assert_eq!(rows.len(), 1, "{name} must have one row in the table of what goes wrong");
    rows.remove(0)
}

#[test]
fn every_kind_of_notice_and_every_check_has_its_row() {
    for kind in NoticeKind::ALL {
        assert!(row_of(kind.as_str()).who.contains("the person"), "{kind:?}");
    }
    for check in Check::ALL {
        let row = row_of(check.as_str());
        let expected = if is_of_the_platform(check) { "the operator" } else { "the person" };
        assert_eq!(row.who, expected, "{check}");
        assert!(row.after.starts_with("two looks"), "{check}");
    }
}

const fn is_of_the_platform(check: Check) -> bool {
    matches!(check, Check::TimerDisabled | Check::QueueAge | Check::DeadLetters | Check::Heartbeat)
}

/// A server like EventBridge Scheduler. The state of its timers is the text.
async fn scheduler() -> (String, Arc<Mutex<&'static str>>) {
    let state = Arc::new(Mutex::new("DISABLED"));
    let shown = state.clone();
    let answer = get(async move || json!({"State": *shown.lock().unwrap()}).to_string());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().route("/schedules/stack-every-minute", answer);
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (url, state)
}

async fn job(cx: &Cx, stage: &Stage, kind: JobKind, due: Timestamp, outcome: Outcome) {
    let job = JobRun::begin(None, kind, "exp_1", due, due).end(outcome, due);
    assert!(cx.store.save_job_run(&stage.owner, &job, 0).await.unwrap().done());
}

/// Breaks what this check looks at. Returns what it says it is about. Nothing runs meanwhile, so whatever was due stays due.
async fn broken(check: Check, cx: &Cx, stage: &Stage, now: Timestamp) -> String {
    let action = async |change: fn(&mut domain::actions::Action)| {
        let id = stage.approved(json!({"schedule": {"every": "300h"}})).await;
        let found = cx.store.action(&stage.owner, id).await.unwrap().unwrap();
        let mut action = found.value;
        change(&mut action);
        let write = Store::replace_action(&stage.owner, &action, found.version, None).unwrap();
        assert!(cx.store.write_all(vec![write]).await.unwrap().done());
        id.to_string()
    };
    match check {
        Check::JobFailed => {
            let outcome = Outcome {
                work_found: 1,
                error: Some("the archive is gone".to_owned()),
                ..Outcome::default()
            };
            job(cx, stage, JobKind::AccountExport, now, outcome).await;
            "account_export".to_owned()
        }
        Check::EmptySuccess => {
            job(cx, stage, JobKind::LogsImport, now, Outcome { work_found: 3, ..Outcome::default() }).await;
            "logs_import".to_owned()
        }
        Check::Stale => stage.approved(json!({"schedule": {"every": "1h"}})).await.to_string(),
        Check::ActionFails => action(|action| action.failures = Some(failures(2))).await,
        Check::ActionRepeats => action(|action| action.same_outputs = 3).await,
        Check::ActionWithoutNext => action(|action| action.next_due = None).await,
        Check::BudgetBurn => {
            stage.h.patch("/account", json!({"budget": {"per_month_micros": 10_000_000}})).await.expect(200);
            let spender = Spender::owner(&stage.owner);
            let writes = Store::settle_writes(spender, None, now, 9_500_000, Charge::Included);
            assert!(cx.store.write_all(writes).await.unwrap().done());
            "month".to_owned()
        }
        Check::WatchedSchedule => {
            let body = json!({"name": "backup", "schedule": {"every": "1h"}, "grace_minutes": 5});
            let made = stage.h.post("/watched", body).await.expect(201);
            made["watched_id"].as_str().unwrap().to_owned()
        }
        // The action of `Stale` waits in the index, and no sweep comes.
        Check::QueueAge => "executors".to_owned(),
        Check::DeadLetters => {
            let queue = stage.h.platform.engines().queue("scheduled-executor").unwrap();
            bury(queue, &DueItem::backlog(&stage.owner)).await;
            "executors".to_owned()
        }
        // `scheduler` says so.
        Check::TimerDisabled => "stack-every-minute".to_owned(),
        // No sweep has ever run.
        Check::Heartbeat => "The sweep".to_owned(),
    }
}

fn failures(times: u32) -> domain::actions::Failures {
    serde_json::from_value(json!({
        "times": times, "code": "provider_auth", "cause": "the key is wrong", "at": "2026-11-21T14:00:00Z",
        "run_id": "run_01a204e552437000bd6e8f5db9bf4b43",
    }))
    .unwrap()
}

#[tokio::test]
async fn each_check_is_broken_once_and_the_right_one_is_told() {
    let stage = Stage::of(PlatformConfig::in_memory()).await;
    let (cx, told) = bus::kept(&stage.h.platform.cx).await;
    let (url, timer) = scheduler().await;
    let mut config = Config::clone(&cx.config);
    let timers = vec!["stack-every-minute".to_owned()];
    config.aws = AwsConfig { scheduler_endpoint: Some(url), timers, ..config.aws };
    let there = Cx::new(config, cx.clock.clone()).unwrap();
    let cx = cx.with(|parts| (parts.config, parts.signed) = (there.config.clone(), there.signed.clone()));
    cx.store.follow(&stage.owner, cx.clock.now()).await.unwrap();

    let now = cx.clock.now();
    let mut items = BTreeMap::new();
    for check in Check::ALL {
        items.insert(check, broken(check, &cx, &stage, now).await);
    }
    let first: Timestamp = "2026-11-21T16:16:00Z".parse().unwrap();
    let look = async |looks: i64| {
        stage.clock.set(first + LOOK_EVERY * i32::try_from(looks).unwrap());
        let item = DueItem {
            due_at: Some(domain::watchdog::look_at(cx.clock.now())),
            ..DueItem::watchdog(&stage.owner)
        };
        let later = cx.clock.now() + SignedDuration::from_mins(5);
        watchdog::send(&cx, later).await.unwrap();
        shared::flows::executor::route::process(&cx, &item, later).await.unwrap();
    };
    // The checks of which the person's list and the operator's events speak, with their items.
    let said = async |alert: &str| -> BTreeSet<(String, String, &str)> {
        let mut all = BTreeSet::new();
        for found in stage.h.get("/watchdog/alerts").await.expect(200)["data"].as_array().unwrap() {
            if found["say"] == alert {
                let of = |field: &str| found[field].as_str().unwrap().to_owned();
                assert!(all.insert((of("check"), of("item"), "the person")), "told twice: {found:#}");
            }
        }
        for call in told.lock().unwrap().iter() {
            for entry in call["Entries"].as_array().unwrap() {
                let detail: Value = serde_json::from_str(entry["Detail"].as_str().unwrap()).unwrap();
                if entry["DetailType"] == "watchdog.alert"
                    && detail["alert"] == alert
                    && detail.get("owner").is_none()
                {
                    let of = |field: &str| detail[field].as_str().unwrap().to_owned();
                    assert!(all.insert((of("check"), of("item"), "the operator")), "told twice: {detail:#}");
                }
            }
        }
        all
    };
    look(0).await;
    assert_eq!(said("alert").await, BTreeSet::new(), "one look says nothing");
    // The first look has had the dead letters moved back. They fail again.
    let queue = stage.h.platform.engines().queue("scheduled-executor").unwrap();
    assert_eq!(queue.depth().dead, 0, "the dead letters are back in their queue");
    bury(queue, &DueItem::backlog(&stage.owner)).await;
    for looks in 1..4 {
        look(looks).await;
        if looks == 1 {
            bury(queue, &DueItem::backlog(&stage.owner)).await;
        }
        let expected: BTreeSet<_> = Check::ALL
            .iter()
            .map(|check| (check.as_str().to_owned(), items[check].clone(), row_of(check.as_str()).who))
            .collect();
        assert_eq!(said("alert").await, expected, "look {looks}");
    }
    assert_eq!(queue.depth().dead, 1, "only the first two looks try to heal");
    // Who was told once is told that it is over, once.
    *timer.lock().unwrap() = "ENABLED";
    cx.store.beat_of_sweep(first + LOOK_EVERY * 4).await.unwrap();
    queue.redrive().unwrap();
    for looks in 4..6 {
        if looks == 5 {
            cx.store.beat_of_sweep(first + LOOK_EVERY * 5).await.unwrap();
        }
        look(looks).await;
        let over: Vec<_> = said("recovery").await.into_iter().map(|(check, ..)| check).collect();
        assert_eq!(over, ["dead_letters", "heartbeat", "timer_disabled"], "look {looks}");
    }
}

#[tokio::test]
async fn timers_call_an_address_of_the_operator() {
    let site = Site::start(Answers::Page("text/plain", "OK".to_owned(), None)).await;
    let stage = Stage::of(PlatformConfig { reach: site.reach(), ..PlatformConfig::in_memory() }).await;
    let cx = &stage.h.platform.cx;
    let paths = || site.asked().into_iter().map(|(path, _)| path).collect::<Vec<_>>();
    let ping = async |address: &str, fails: bool| {
        let work = async { if fails { Err(shared::Error::internal("broken")) } else { Ok(7) } };
        shared::flows::watched::pings::after(cx, Some(address), work).await
    };
    assert_eq!(ping(&site.url("/ping/abc"), false).await.unwrap(), 7);
    assert!(ping(&site.url("/ping/abc/"), true).await.is_err());
    assert_eq!(paths(), ["/ping/abc", "/ping/abc/fail"]);
    // The work counts, whatever becomes of the call.
    for address in ["http://127.0.0.1:9/x", "http://169.254.169.254/latest/meta-data", "nonsense"] {
        assert_eq!(ping(address, false).await.unwrap(), 7, "{address}");
    }
    assert_eq!(paths().len(), 2);
}
