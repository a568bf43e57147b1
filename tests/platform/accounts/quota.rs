//! Quotas of plans: counted once for each request, also if many come at once, executors die, or the month ends.

use base::clock::{Clock, ManualClock};
use domain::accounts::plans::Plan;
use domain::accounts::quota::Month;
use domain::ids::Owner;
use futures::future::join_all;
use jiff::SignedDuration;
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use shared::config::PlansConfig;
use shared::store::Store;
use shared::store::accounts::quota::MonthRequests;
use tests::made::local;
use tests::model::{Says, ScriptedModel};
use tests::stage::Stage;
use tests::{Answer, Harness, send};

fn starter() -> PlatformConfig {
    let plans = PlansConfig { default: Plan::Starter, allowed: vec![Plan::Starter, Plan::Pro] };
    PlatformConfig { plans, ..PlatformConfig::in_memory() }
}

fn month(h: &Harness) -> Month {
    Month::at(h.platform.cx.clock.now())
}

/// Uses up all but `left` of the 50 requests.
async fn leave(h: &Harness, left: u32) {
    for _ in 0..50 - left {
        let write = Store::request_write(&local(), month(h), 50);
        assert!(h.platform.cx.store.write_all(vec![write]).await.unwrap().done());
    }
}

async fn used(h: &Harness) -> MonthRequests {
    h.platform.cx.store.month_requests(&local(), month(h)).await.unwrap()
}

async fn turn(h: &Harness, agent: &str) -> Answer {
    h.post(&format!("/agents/{agent}/chat"), json!({"message": "Hello"})).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_64_parallel_turns_with_one_request_left_exactly_one_passes() {
    let h = Harness::with(starter()).await;
    let agent = h.agent().await;
    leave(&h, 1).await;
    let statuses: Vec<u16> =
        join_all((0..64).map(|_| turn(&h, &agent))).await.into_iter().map(|answer| answer.status).collect();
    let passed = statuses.iter().filter(|status| **status == 200).count();
    let refused = statuses.iter().filter(|status| **status == 402).count();
    assert_eq!((passed, refused), (1, 63), "{statuses:?}");
    assert_eq!(used(&h).await, MonthRequests { used: 50, overage: 0 });
}

#[tokio::test]
async fn a_refusal_names_the_plan_and_when_it_begins_again() {
    let clock = ManualClock::at("2026-11-30T23:59:59.999Z".parse().unwrap());
    let h = Harness::with(PlatformConfig { clock: Clock::Manual(clock.clone()), ..starter() }).await;
    let agent = h.agent().await;
    // The owner's time zone, in which it is December already, does not matter.
    h.patch("/account", json!({"timezone": "Europe/Berlin"})).await.expect(200);
    leave(&h, 0).await;
    let problem = turn(&h, &agent).await.refused(402, "quota_exceeded");
    let detail = "the plan `starter` includes 50 requests a month, and they are used up; the next month begins at 2026-12-01T00:00:00Z";
    assert_eq!(problem["detail"], detail);
    let current = json!({
        "limit": "requests", "plan": "starter", "requests_per_month": 50, "resets_at": "2026-12-01T00:00:00Z",
    });
    assert_eq!(problem["current"], current);
    let setup = h.post("/setup/chat", json!({"message": "Hello"})).await;
    setup.refused(402, "quota_exceeded");
    let completion = json!({"model": agent, "messages": [{"role": "user", "content": "Hello"}]});
    let refused = h.post("/v1/chat/completions", completion).await.refused(402, "quota_exceeded");
    assert_eq!(refused["error"]["type"], "insufficient_quota");
    let requests = h.get("/limits").await.expect(200)["requests"].clone();
    let expected =
        json!({"limited": true, "used": 50, "overage": 0, "left": 0, "resets_at": "2026-12-01T00:00:00Z"});
    assert_eq!(requests, expected);

    clock.set(clock.now() + SignedDuration::from_millis(1));
    turn(&h, &agent).await.expect(200);
    assert_eq!(used(&h).await.used, 1);
}

#[tokio::test]
async fn only_what_begins_counts_and_only_once() {
    let h = Harness::with(starter()).await;
    let agent = h.agent().await;
    let path = format!("/agents/{agent}/chat");
    let hello = || json!({"message": "Hello"});
    let first = h.post_once(&path, "k", hello()).await.expect(200);
    assert_eq!(h.post_once(&path, "k", hello()).await.expect(200)["run_id"], first["run_id"]);
    h.post(&path, json!({"message": ""})).await.refused(400, "invalid_input");
    h.post("/agents/agt_0123/chat", hello()).await.refused(404, "not_found");
    assert_eq!(used(&h).await.used, 1);

    // A refusal leaves the key free: under a plan with more requests, the same call passes.
    leave(&h, 1).await;
    h.post_once(&path, "later", hello()).await.refused(402, "quota_exceeded");
    h.patch("/account", json!({"plan": "pro"})).await.expect(200);
    h.post_once(&path, "later", hello()).await.expect(200);
    assert_eq!(used(&h).await.used, 51);
}

#[tokio::test]
async fn the_cost_of_further_requests_counts_twice() {
    let h = Harness::with(starter()).await;
    let agent = h.agent().await;
    let included = turn(&h, &agent).await.expect(200)["cost_micros"].as_i64().unwrap();
    assert!(included > 0);
    leave(&h, 1).await;
    let usage = h.get("/usage").await.expect(200);
    assert_eq!((&usage["spent_micros"], &usage["overage_micros"]), (&json!(included), &json!(0)));
    turn(&h, &agent).await.refused(402, "quota_exceeded");

    h.patch("/account", json!({"overage": "on"})).await.expect(200);
    let further = turn(&h, &agent).await.expect(200)["cost_micros"].as_i64().unwrap();
    assert!(further > 0);
    let usage = h.get("/usage").await.expect(200);
    assert_eq!(usage["overage_micros"], further);
    assert_eq!(usage["spent_micros"], included + 2 * further);
    assert_eq!(usage["committed_micros"], usage["spent_micros"]);
    assert_eq!(used(&h).await, MonthRequests { used: 51, overage: 1 });
    assert_eq!(h.get("/limits").await.expect(200)["requests"]["left"], 0);
}

fn minute(n: i64) -> Value {
    json!({"schedule": {"at": format!("2026-11-21T12:{n:02}:00Z")}})
}

#[tokio::test]
async fn runs_of_actions_count_and_fail_when_nothing_is_left() {
    let stage = Stage::of(starter()).await;
    let (first, second) = (stage.approved(minute(1)).await, stage.approved(minute(2)).await);
    leave(&stage.h, 1).await;
    stage.happens_at(1).await;
    stage.happens_at(2).await;
    assert_eq!(stage.became(first).await, ["1 succeeded"]);
    assert_eq!(stage.became(second).await, ["2 failed error"]);
    assert_eq!(used(&stage.h).await, MonthRequests { used: 50, overage: 0 });
    let occurrence = &stage.occurrences(second).await[0];
    assert!(occurrence.reason.as_ref().unwrap().contains("the plan `starter` includes 50 requests a month"));
    assert_eq!(occurrence.cost_micros, 0);
    let run = stage.h.get(&format!("/runs/{}", occurrence.run_id)).await.expect(200);
    assert_eq!((&run["state"], &run["error"]["code"]), (&json!("failed"), &json!("quota_exceeded")));
    let why = stage.h.get(&format!("/actions/{second}/why?at=2026-11-21T12:02:00Z")).await.expect(200);
    assert!(why["sentence"].as_str().unwrap().contains("the plan `starter`"), "{why:#}");

    // A person who starts a run is told at once.
    let third = stage.approved(json!({})).await;
    stage.h.post(&format!("/actions/{third}/run"), json!({})).await.refused(402, "quota_exceeded");
    stage.h.patch("/account", json!({"overage": "on"})).await.expect(200);
    stage.h.post(&format!("/actions/{third}/run"), json!({})).await.expect(202);
    stage.executors.work().await;
    assert_eq!(used(&stage.h).await, MonthRequests { used: 51, overage: 1 });
    let spent = stage.h.get("/usage").await.expect(200);
    assert!(spent["overage_micros"].as_i64().unwrap() > 0, "{spent:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_executors_are_killed_counts_once() {
    const ACTIONS: u32 = 30;
    let stage = Stage::of(starter()).await;
    let mut ids = Vec::new();
    for _ in 0..ACTIONS {
        ids.push(stage.approved(minute(1)).await);
    }
    leave(&stage.h, 20).await;
    stage.executors.trouble(0.3, 0.3);
    // Longer than a lease.
    for round in 0..4 {
        stage.happens_at(1 + 20 * round).await;
    }
    stage.executors.trouble(0.0, 0.0);
    for round in 4..8 {
        stage.happens_at(1 + 20 * round).await;
    }
    let mut ends = std::collections::BTreeMap::<String, u32>::new();
    for id in ids {
        for end in stage.became(id).await {
            *ends.entry(end).or_default() += 1;
        }
    }
    assert_eq!(used(&stage.h).await, MonthRequests { used: 50, overage: 0 }, "{ends:?}");
    // A run that was killed too often has taken its request, too.
    let refused = ends.get("1 failed error").copied().unwrap_or_default();
    assert_eq!(refused, ACTIONS - 20, "{ends:?}");
}

#[tokio::test]
async fn own_keys_are_not_counted() {
    let model = ScriptedModel::start(|_| Says::Text("Paid by you.".into())).await;
    let mut config = starter();
    config.models.addresses.xai = model.url();
    let h = Harness::with(config).await;
    let agent = h.agent().await;
    leave(&h, 0).await;
    h.patch("/account", json!({"billing_mode": "byok"})).await.expect(200);
    // The wish alone is not enough.
    turn(&h, &agent).await.refused(402, "quota_exceeded");
    let key =
        h.request(Method::PUT, "/account/provider-keys/xai").json(&json!({"key": "xai-0123456789abcdef"}));
    let stored = send(key).await;
    assert!((200..300).contains(&stored.status), "{:#}", stored.body);
    turn(&h, &agent).await.expect(200);
    assert_eq!(used(&h).await.used, 50);
    assert_eq!(h.get("/limits").await.expect(200)["requests"]["limited"], false);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_parallel_projects_as_many_are_created_as_the_plan_includes() {
    let h = Harness::with(starter()).await;
    let create = || h.post("/projects", json!({"name": "Spring"}));
    for _ in 0..3 {
        let answers = join_all((0..6).map(|_| create())).await;
        let made: Vec<&Answer> = answers.iter().filter(|answer| answer.status == 201).collect();
        let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
        assert_eq!(made.len(), 1, "{statuses:?}");
        let refused = create().await.refused(402, "quota_exceeded");
        assert_eq!(refused["current"], json!({"limit": "projects", "plan": "starter", "projects": 1}));
        assert_eq!(refused["detail"], "the plan `starter` includes 1 project, besides the default project");
        // A deleted project makes room.
        let path = format!("/projects/{}", made[0].body["project_id"].as_str().unwrap());
        assert_eq!(h.delete(&path).await.status, 204);
    }
    // The default project may be stored, and does not count.
    h.patch("/projects/default", json!({"name": "Mine"})).await.expect(200);
    create().await.expect(201);
    h.patch("/account", json!({"plan": "pro"})).await.expect(200);
    create().await.expect(201);
    // Nobody loses what exists when the plan includes less.
    h.patch("/account", json!({"plan": "starter"})).await.expect(200);
    assert_eq!(h.get("/projects").await.expect(200)["data"].as_array().unwrap().len(), 3);
    create().await.refused(402, "quota_exceeded");
}

#[tokio::test]
async fn owners_without_a_limit_have_no_counter() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    turn(&h, &agent).await.expect(200);
    assert_eq!(used(&h).await, MonthRequests::default());
    let other = Owner::new("you").unwrap();
    let read = shared::flows::accounts::limits::read(&h.platform.cx, &other).await.unwrap();
    assert!(!read.requests.limited && read.requests.left.is_none());
}
