//! Spending alerts: each threshold is reached once per month.

use base::clock::{Clock, ManualClock};
use domain::accounts::quota::Month;
use domain::runs::RunKind;
use futures::future::join_all;
use jiff::Timestamp;
use lamplighter_local::platform::PlatformConfig;
use serde_json::{Value, json};
use shared::money::alerts;
use tests::Harness;
use tests::bus;
use tests::made::{local, settle};

#[tokio::test]
async fn a_run_that_crosses_thresholds_tells_each_once() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    let path = format!("/agents/{agent}/chat");
    let turn = || h.post(&path, json!({"message": "Hello"}));
    let cost = turn().await.expect(200)["cost_micros"].as_i64().unwrap();
    assert!(cost > 1);
    // Thresholds that lie below what is spent already are reached by the next run.
    let thresholds = [1, cost + 1, 1_000_000];
    let thresholds: Vec<_> = thresholds.iter().map(|micros| json!({"month_micros": micros})).collect();
    let account = h.patch("/account", json!({ "alerts": thresholds })).await.expect(200);
    assert!(account["alerts"][0].get("reached_at").is_none(), "{account:#}");
    turn().await.expect(200);
    // The last write of a turn follows its answer.
    let mut account = h.get("/account").await.expect(200);
    loop {
        if account["alerts"][1].get("reached_at").is_some() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        account = h.get("/account").await.expect(200);
    }
    for reached in [0, 1] {
        assert!(account["alerts"][reached]["spent_micros"].as_i64().unwrap() > cost, "{account:#}");
    }
    assert!(account["alerts"][2].get("reached_at").is_none(), "{account:#}");
    let first = account["alerts"].clone();
    turn().await.expect(200);
    alerts::check(&h.platform.cx, &local(), RunKind::Chat).await;
    assert_eq!(h.get("/account").await.expect(200)["alerts"], first);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_checks_note_a_threshold_once_and_the_next_month_begins_anew() {
    let clock = ManualClock::at("2026-11-30T23:59:59.999Z".parse().unwrap());
    let config = PlatformConfig { clock: Clock::Manual(clock.clone()), ..PlatformConfig::in_memory() };
    let h = Harness::with(config).await;
    let (cx, owner) = (&h.platform.cx, local());
    let spend = async |at: &str, micros: i64| {
        let at: Timestamp = at.parse().unwrap();
        settle(cx, &owner, at, 0, micros).await;
    };
    spend("2026-10-31T23:59:59Z", 900).await;
    spend("2026-11-01T00:00:00Z", 40).await;
    spend("2026-11-30T23:59:59Z", 60).await;
    spend("2026-12-01T00:00:00Z", 7).await;
    let november = Month::at(clock.now());
    assert_eq!(cx.store.month_spend(&owner, november).await.unwrap(), 100);
    h.patch("/account", json!({"alerts": [{"month_micros": 100}, {"month_micros": 101}]})).await.expect(200);
    let checks = (0..16).map(|_| {
        let (cx, owner) = (cx.clone(), owner.clone());
        tokio::spawn(async move { alerts::check(&cx, &owner, RunKind::Action).await })
    });
    join_all(checks).await;
    let reached = cx.store.reached_alerts(&owner, november).await.unwrap();
    assert_eq!(
        reached.iter().map(|alert| (alert.month_micros, alert.spent_micros)).collect::<Vec<_>>(),
        [(100, 100)]
    );

    clock.set("2026-12-01T00:00:00Z".parse().unwrap());
    alerts::check(cx, &owner, RunKind::Action).await;
    let account = h.get("/account").await.expect(200);
    assert_eq!(account["alerts"], json!([{"month_micros": 100}, {"month_micros": 101}]));
    spend("2026-12-05T00:00:00Z", 93).await;
    alerts::check(cx, &owner, RunKind::Action).await;
    let alerts = h.get("/account").await.expect(200)["alerts"].clone();
    assert_eq!((&alerts[0]["spent_micros"], alerts[1].get("reached_at")), (&json!(100), None));
}

#[tokio::test]
async fn each_threshold_that_is_reached_is_one_event_on_the_bus() {
    let h = Harness::start().await;
    let owner = local();
    let (cx, told) = &bus::kept(&h.platform.cx).await;
    let thresholds = [100, 200, 900].map(|micros| json!({"month_micros": micros}));
    h.patch("/account", json!({ "alerts": thresholds })).await.expect(200);

    settle(cx, &owner, cx.clock.now(), 0, 99).await;
    alerts::check(cx, &owner, RunKind::Chat).await;
    assert_eq!(told.lock().unwrap().len(), 0);
    settle(cx, &owner, cx.clock.now(), 0, 201).await;
    for _ in 0..3 {
        alerts::check(cx, &owner, RunKind::Chat).await;
    }
    let told = told.lock().unwrap().clone();
    let [call] = &told[..] else { panic!("{told:#?}") };
    let entries = call["Entries"].as_array().unwrap();
    let month = Month::at(cx.clock.now()).to_string();
    assert_eq!(entries.len(), 2, "{call:#}");
    for (entry, threshold) in entries.iter().zip([100, 200]) {
        let seen = (&entry["Source"], &entry["DetailType"], &entry["EventBusName"]);
        assert_eq!(seen, (&json!("lamplighter"), &json!("spending.alert"), &json!("lamplighter")));
        let detail: Value = serde_json::from_str(entry["Detail"].as_str().unwrap()).unwrap();
        let expected = json!({
            "owner": "local", "month": month, "month_micros": threshold, "spent_micros": 300,
            "month_dollars": format!("0.000{threshold}"), "spent_dollars": "0.000300",
        });
        assert_eq!(detail, expected);
    }
}
