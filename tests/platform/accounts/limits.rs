//! The account and its limits.

use domain::accounts::plans::Plan;
use domain::models::Features;
use lamplighter_local::platform::PlatformConfig;
use models::{Addresses, ModelsConfig};
use reqwest::Method;
use serde_json::{Value, json};
use shared::config::PlansConfig;
use tests::anthropic::{Block, FakeAnthropic};
use tests::{Harness, send};

/// A platform whose owners have this plan, and may choose the others.
async fn with_plans(default: Plan, allowed: &[Plan]) -> Harness {
    let plans = PlansConfig { default, allowed: allowed.to_vec() };
    Harness::with(PlatformConfig { plans, ..PlatformConfig::in_memory() }).await
}

#[tokio::test]
async fn an_account_has_defaults_and_is_changed_by_field() {
    let h = Harness::start().await;
    let read = h.get("/account").await;
    assert_eq!(read.headers["etag"], "\"0\"");
    assert_eq!(
        read.expect(200),
        json!({
            "owner": "local", "timezone": "UTC", "plan": "unlimited", "billing_mode": "platform", "overage": "off",
            "alerts": [], "budget": {}, "memory_vectors": "off", "version": 0,
        })
    );
    let changed = h.patch("/account", json!({"timezone": "europe/berlin"})).await.expect(200);
    assert_eq!((&changed["timezone"], &changed["version"]), (&json!("Europe/Berlin"), &json!(1)));
    let alerts = json!([{"month_micros": 9}, {"month_micros": 5}, {"month_micros": 9}]);
    let changed = h.patch("/account", json!({"alerts": alerts, "overage": "on"})).await.expect(200);
    assert_eq!(changed["alerts"], json!([{"month_micros": 5}, {"month_micros": 9}]));
    assert_eq!(changed["timezone"], "Europe/Berlin");
    assert_eq!(h.get("/account").await.expect(200), changed);
}

#[tokio::test]
async fn a_wrong_field_is_named_and_changes_nothing() {
    let h = with_plans(Plan::Starter, &[Plan::Starter, Plan::Pro]).await;
    for (body, field) in [
        (json!({"timezone": "Mars/Olympus"}), "timezone"),
        (json!({"timezone": ""}), "timezone"),
        (json!({"timezone": "UTC+2"}), "timezone"),
        (json!({"plan": "agency"}), "plan"),
        (json!({"plan": "unlimited"}), "plan"),
        (json!({"plan": "free"}), "plan"),
        (json!({"billing_mode": "free"}), "billing_mode"),
        (json!({"overage": true}), "overage"),
        (json!({"memory_vectors": "anthropic"}), "memory_vectors"),
        (json!({"alerts": [{"month_micros": 0}]}), "alerts[0].month_micros"),
        (json!({"alerts": [{"month_micros": i64::MAX}]}), "alerts[0].month_micros"),
        (json!({"alerts": vec![json!({"month_micros": 1}); 11]}), "alerts"),
        (json!({"owner": "somebody"}), "owner"),
    ] {
        let problem = h.patch("/account", body.clone()).await.refused(400, "invalid_input");
        assert_eq!(problem["errors"][0]["field"], field, "{body} {problem:#}");
    }
    assert_eq!(h.get("/account").await.expect(200)["version"], 0);
    assert_eq!(h.patch("/account", json!({"plan": "pro"})).await.expect(200)["plan"], "pro");
}

#[tokio::test]
async fn concurrent_changes_of_an_account_lose_nothing() {
    let h = Harness::start().await;
    let patch = |body: Value| h.patch("/account", body);
    let (a, b, c) = tokio::join!(
        patch(json!({"timezone": "Asia/Tokyo"})),
        patch(json!({"overage": "on"})),
        patch(json!({"billing_mode": "byok"})),
    );
    for answer in [a, b, c] {
        answer.expect(200);
    }
    let account = h.get("/account").await.expect(200);
    assert_eq!(
        (&account["timezone"], &account["overage"], &account["billing_mode"], &account["version"]),
        (&json!("Asia/Tokyo"), &json!("on"), &json!("byok"), &json!(3))
    );
    let stale =
        h.request(Method::PATCH, "/account").header("if-match", "\"1\"").json(&json!({"overage": "off"}));
    let problem = send(stale).await.refused(409, "version_conflict");
    assert_eq!(problem["current"]["version"], 3);
}

#[tokio::test]
async fn the_limits_name_the_plan_the_ceilings_and_the_features() {
    let mut config = PlatformConfig::in_memory();
    config.plans = PlansConfig { default: Plan::Starter, allowed: vec![Plan::Starter, Plan::Team] };
    config.models.features = Features::parse("structured_outputs=on").unwrap();
    let h = Harness::with(config).await;
    let limits = h.get("/limits").await.expect(200);
    assert_eq!(
        (&limits["plan"], &limits["plans"], &limits["includes"]["requests_per_month"]),
        (&json!("starter"), &json!(["starter", "team"]), &json!(50))
    );
    assert_eq!(limits["ceilings"]["day_micros"], 10_000_000);
    assert_eq!(limits["sizes"]["message_characters"], 32_000);
    assert_eq!(
        limits["features"],
        json!({
            "prompt_caching": true, "prompt_cache_ttl": "1h", "adaptive_thinking": true, "context_editing": true,
            "structured_outputs": true,
        })
    );
    h.patch("/account", json!({"plan": "team"})).await.expect(200);
    let limits = h.get("/limits").await.expect(200);
    // Only what the platform enforces, and the prices.
    let includes = json!({"month_cents": 14_900, "year_cents": 143_040, "requests_per_month": 2_000});
    assert_eq!((&limits["plan"], &limits["includes"]), (&json!("team"), &includes));
}

/// The cache marks of a turn's request, as Anthropic receives them.
async fn cache_marks(features: &str) -> Vec<Value> {
    let model = FakeAnthropic::start(|_| vec![Block::Text("Done.".to_owned())]).await;
    let models = ModelsConfig {
        anthropic_key: Some("sk-ant-test".to_owned()),
        addresses: Addresses { anthropic: model.url.clone(), ..Addresses::default() },
        features: Features::parse(features).unwrap(),
        ..ModelsConfig::default()
    };
    let h = Harness::with(PlatformConfig { models, ..PlatformConfig::in_memory() }).await;
    let agent = h.agent().await;
    h.post(&format!("/agents/{agent}/chat"), json!({"message": "Hello"})).await.expect(200);
    let asked = model.asked();
    let body = &asked[0];
    let blocks = |list: &Value| list.as_array().cloned().unwrap_or_default();
    let messages = blocks(&body["messages"]);
    let parts = [
        blocks(&body["tools"]),
        blocks(&body["system"]),
        messages.iter().flat_map(|m| blocks(&m["content"])).collect(),
    ];
    parts
        .concat()
        .into_iter()
        .map(|part| part["cache_control"]["ttl"].clone())
        .filter(|ttl| !ttl.is_null())
        .collect()
}

#[tokio::test]
async fn prompt_caching_and_its_time_act_on_requests() {
    assert_eq!(cache_marks("").await, ["1h", "5m", "5m"]);
    assert_eq!(cache_marks("prompt_cache_ttl=5m").await, ["5m", "5m", "5m"]);
    assert_eq!(cache_marks("prompt_caching=off").await, Vec::<Value>::new());
}
