//! Model servers that an owner adds.

use std::sync::Arc;

use domain::ids::Owner;
use domain::models::routing::Ask;
use domain::models::{Message, ModelError, ModelRequest, ModelTier};
use futures::StreamExt;
use lamplighter_local::platform::PlatformConfig;
use models::{Addresses, ModelsConfig};
use reqwest::Method;
use serde_json::{Value, json};
use shared::config::{AuthConfig, Config};
use shared::{Cx, model_choice};
use tests::Harness;
use tests::golden::Golden;
use tests::model::{Says, ScriptedModel};
use tests::things::Caller;

const KEY: &str = "sk-own-0123456789-quicksilver-x9Qw";

/// A platform with a provider, and with hosts that servers may have although they are not public.
async fn harness(provider: &ScriptedModel, allowed: &[String]) -> Harness {
    let mut models = ModelsConfig {
        xai_key: Some("deployment".to_owned()),
        addresses: Addresses { xai: provider.url(), ..Addresses::default() },
        ..ModelsConfig::default()
    };
    let policy = domain::reach::Policy {
        allowed_hosts: allowed.iter().map(|host| host.parse().unwrap()).collect(),
        ..domain::reach::Policy::default()
    };
    models.reach = policy.into();
    Harness::with(PlatformConfig { models, auth: AuthConfig::On(None), ..PlatformConfig::in_memory() }).await
}

fn host(model: &ScriptedModel) -> String {
    model.url().trim_start_matches("http://").to_owned()
}

async fn say(me: &Caller<'_>, agent: &str) -> Value {
    me.call(Method::POST, &format!("/agents/{agent}/chat"), json!({"message": "Hello"})).await.body
}

async fn agent(me: &Caller<'_>) -> String {
    let agent = json!({"name": "Ada", "goal": "Answer"});
    let made = me.call(Method::POST, "/agents", agent).await.expect(201);
    made["agent_id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_adds_a_server_and_it_answers() {
    let own = ScriptedModel::start(|_| Says::Text("I am yours.".into())).await;
    let provider = ScriptedModel::start(|_| Says::Text("I am everybody's.".into())).await;
    let h = harness(&provider, &[host(&own)]).await;
    let (mine, theirs) = (h.key_of("me").await, h.key_of("you").await);
    let (me, you) = (Caller { h: &h, key: Some(&mine) }, Caller { h: &h, key: Some(&theirs) });
    let (my_agent, your_agent) = (agent(&me).await, agent(&you).await);
    let path = "/account/servers/mine";
    let server = json!({
        "url": own.url(), "key": KEY, "models": {"standard": ["glm"], "deep": ["glm-large"]},
        "prices": {"glm": {"input": 1_000_000, "output": 2_000_000}, "*": "free"},
    });
    let view = me.call(Method::PUT, path, server).await.expect(200);
    assert_eq!((&view["name"], &view["last_characters"]), (&json!("mine"), &json!("x9Qw")));
    let list = me.call(Method::GET, "/account/servers", Value::Null).await.expect(200);
    assert_eq!(list, json!({"data": [view]}));
    let stored = serde_json::to_string(&Golden::of(&h.platform.cx, Vec::new()).await.items).unwrap();
    assert!(stored.contains("#SERVER") && !stored.contains("quicksilver"));

    // It comes before the deployment's providers, with its own key and its own price.
    let models = me.call(Method::GET, "/models", Value::Null).await.expect(200);
    assert_eq!(models["choices"][1]["models"][0]["model"], "mine/glm", "{models:#}");
    assert_eq!(models["choices"][0]["models"][0]["model"], "xai/grok-4.20-non-reasoning");
    let answer = say(&me, &my_agent).await;
    assert_eq!(answer["message"], "I am yours.", "{answer:#}");
    assert_eq!(answer["model"]["model"], "mine/glm");
    assert!(answer["cost_micros"].as_i64() > Some(0));
    assert_eq!(own.keys(), [format!("Bearer {KEY}")]);
    // Nobody else reaches it.
    assert_eq!(say(&you, &your_agent).await["message"], "I am everybody's.");
    assert_eq!((own.asked(), provider.asked()), (1, 1));
    let list = you.call(Method::GET, "/account/servers", Value::Null).await.expect(200);
    assert_eq!(list, json!({"data": []}));
    you.call(Method::DELETE, path, Value::Null).await.refused(404, "not_found");

    // An owner chooses one of its models for everything. A model without a price cannot be chosen.
    let settings = "/models/settings";
    me.call(Method::PUT, settings, json!({"preferred": "mine/free-one"})).await.expect(200);
    let free = say(&me, &my_agent).await;
    assert_eq!((&free["model"]["model"], &free["cost_micros"]), (&json!("mine/free-one"), &json!(0)));
    you.call(Method::PUT, settings, json!({"preferred": "mine/glm"})).await.expect(400);

    me.call(Method::DELETE, path, Value::Null).await.expect(204);
    assert_eq!(say(&me, &my_agent).await["message"], "I am everybody's.");
    me.call(Method::DELETE, path, Value::Null).await.refused(404, "not_found");
}

/// An address that leads into the platform's network is refused when it is stored, and again when it is called.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_is_not_public_is_refused() {
    let secret = ScriptedModel::start(|_| Says::Text("You should not see this.".into())).await;
    let provider = ScriptedModel::start(|_| Says::Text("I am everybody's.".into())).await;
    let h = harness(&provider, &[host(&secret)]).await;
    let key = h.key_of("me").await;
    let me = Caller { h: &h, key: Some(&key) };
    let put =
        async |name: &str, body: Value| me.call(Method::PUT, &format!("/account/servers/{name}"), body).await;
    let free = |url: &str| json!({"url": url, "prices": {"*": "free"}});
    for url in [
        "http://127.0.0.1:8000/v1",
        "http://2130706433/v1",
        "http://[::ffff:127.0.0.1]/v1",
        "http://169.254.169.254/latest",
        "http://localhost/v1",
        "https://user:pass@models.example.com/v1",
        "file:///etc/passwd",
    ] {
        let problem = put("mine", free(url)).await.refused(400, "invalid_input");
        assert_eq!(problem["errors"][0]["field"], "url", "{url}: {problem:#}");
        assert!(!problem.to_string().contains("pass@"), "{problem:#}");
    }
    for (name, body, field, says) in [
        ("openai", free("https://a.example/v1"), "name", "name of a provider"),
        ("UP", free("https://a.example/v1"), "name", "lower-case"),
        ("mine", json!({"url": "https://a.example/v1"}), "prices", "must have the price of `auto`"),
        (
            "mine",
            json!({"url": "https://a.example/v1", "key": "short", "prices": {"*": "free"}}),
            "key",
            "16 to 512",
        ),
    ] {
        let problem = put(name, body).await.refused(400, "invalid_input");
        assert_eq!(problem["errors"][0]["field"], field, "{problem:#}");
        assert!(problem["errors"][0]["message"].as_str().unwrap().contains(says), "{problem:#}");
    }
    let unreachable = "https://a.example/v1";
    for at in 0..10 {
        put(&format!("s{at}"), free(unreachable)).await.expect(200);
    }
    put("s10", free(unreachable)).await.refused(409, "too_many_servers");
    let mut own = free(&secret.url());
    own["models"] = json!({"standard": ["m"]});
    put("s9", own).await.expect(200);

    for at in 0..9 {
        me.call(Method::DELETE, &format!("/account/servers/s{at}"), Value::Null).await.expect(204);
    }
    assert_eq!(say(&me, &agent(&me).await).await["message"], "You should not see this.");
    // The operator takes the permission back: another process does not call the stored server.
    let here = &h.platform.cx;
    let mut config = Config::clone(&here.config);
    config.models.reach = Arc::default();
    let there = Cx::new(config, here.clock.clone()).unwrap();
    let owner = Owner::new("me").unwrap();
    let ask = Ask { tier: Some(ModelTier::Standard), ..Ask::default() };
    let route = model_choice::route(&there, &owner, &ask, 0).await.unwrap().unwrap();
    assert_eq!(route.candidates[0].model.to_string(), "s9/m");
    let request = ModelRequest {
        messages: vec![Message::user("Hello")],
        max_output_tokens: 100,
        ..ModelRequest::default()
    };
    let first = route.candidates[0].stream(&request).next().await.unwrap().unwrap_err();
    assert!(matches!(&first, ModelError::AddressRefused { .. }) && first.may_work_elsewhere(), "{first}");
    assert_eq!(secret.asked(), 1);
}
