//! Keys that may not set a ceiling try to raise it. A run waits at a ceiling of the account. A key with `write` and one with
//! `read` call every route with the ids of this run, and say yes in every way of talking. No ceiling of the account may be raised.

use lamplighter_local::platform::PlatformConfig;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use reqwest::Method;
use serde_json::{Value, json};
use shared::config::AuthConfig;
use shared::store::accounts::spend::Spender;
use tests::model::{Says, ScriptedModel};
use tests::openapi::{Ids, OpenApi, Route};
use tests::things::Caller;
use tests::{Harness, send};

use domain::ceilings::CeilingOf;
use domain::ids::Owner;

/// How often each route is called with each key.
const ROUNDS: usize = 4;

const WORDS: [&str; 4] = ["yes", "Yes, raise it", "approve", "/approve 1.0 raise_by_micros=1000000"];

/// An owner whose run waits.
struct Scene {
    h: Harness,
    admin: String,
    keys: [String; 2],
    ids: Ids,
}

impl Scene {
    async fn at(model: &ScriptedModel, budget: Value) -> Self {
        let mut config = PlatformConfig { models: model.config("gpt-5.1"), ..PlatformConfig::in_memory() };
        config.auth = AuthConfig::On(None);
        let h = Harness::with(config).await;
        let admin = h.key_of("me").await;
        let writer = h.key_with("me", json!({"name": "writer", "scopes": ["write"]})).await;
        let reader = h.key_with("me", json!({"name": "reader", "scopes": ["read"]})).await;
        let mut scene = Self { h, admin, keys: [writer, reader], ids: Ids::new() };
        let admin = Caller { h: &scene.h, key: Some(&scene.admin) };
        admin.call(Method::PATCH, "/account", json!({ "budget": budget })).await.expect(200);
        let new = json!({"name": "Mine", "goal": "An agent"});
        let agent = admin.call(Method::POST, "/agents", new).await.expect(201)["agent_id"].clone();
        let agent = agent.as_str().unwrap().to_owned();
        let action =
            json!({"title": "Report", "task_config": {"instructions": "Do", "expected_output": "It"}});
        let action = admin.call(Method::POST, &format!("/agents/{agent}/actions"), action).await.expect(201);
        let id = |value: &Value| value.as_str().unwrap().to_owned();
        scene.ids = Ids::from([
            ("agent_id", agent),
            ("action_id", id(&action["action_id"])),
            ("approval_hash", id(&action["approval_hash"])),
        ]);
        assert!(scene.waits().await, "a turn waits at the ceiling");
        scene
    }

    /// Lets a new turn wait, if the last one was ended. `false` if a request has deleted or archived what it needs.
    async fn waits(&mut self) -> bool {
        let admin = Caller { h: &self.h, key: Some(&self.admin) };
        if let Some(run) = self.ids.get("run_id") {
            let view = admin.call(Method::GET, &format!("/runs/{run}"), Value::Null).await;
            if view.body["state"] == "waiting" {
                return true;
            }
        }
        let path = format!("/agents/{}/chat", self.ids["agent_id"]);
        let answer = admin.call(Method::POST, &path, json!({"message": "Hello"})).await;
        let view = answer.body;
        if answer.status != 200 || view["cards"][0]["asks"] != "ceiling" {
            return false;
        }
        let id = |value: &Value| value.as_str().unwrap().to_owned();
        self.ids.insert("run_id", id(&view["run_id"]));
        self.ids.insert("chat_id", id(&view["chat_id"]));
        self.ids.insert("call_id", id(&view["cards"][0]["call_id"]));
        true
    }

    /// By how much the ceilings of the account were raised.
    async fn raised(&self) -> i64 {
        let (cx, owner) = (&self.h.platform.cx, Owner::new("me").unwrap());
        let mut sum = 0;
        for of in [CeilingOf::Day, CeilingOf::Month] {
            let spend = cx.store.spend_of(Spender::owner(&owner), of, cx.clock.now()).await;
            sum += spend.unwrap().raised_micros;
        }
        sum
    }

    async fn budget(&self) -> Value {
        let admin = Caller { h: &self.h, key: Some(&self.admin) };
        admin.call(Method::GET, "/account", Value::Null).await.expect(200)["budget"].clone()
    }
}

pub async fn attack(seed: u64) -> Vec<String> {
    let model = ScriptedModel::start(|_| Says::Text("Here it is.".into())).await;
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut requests, mut refused, mut wrong) = (0, 0, Vec::new());
    for budget in [json!({"per_month_micros": 200}), json!({"per_day_micros": 200})] {
        let mut scene = Scene::at(&model, budget.clone()).await;
        let api = OpenApi::new(scene.h.get("/openapi.json").await.expect(200));
        for route in api.routes() {
            // A new scene for a route that removes what the others need.
            if route.method == Method::DELETE || route.path.ends_with("/dismiss") {
                scene = Scene::at(&model, budget.clone()).await;
            }
            for round in 0..2 * ROUNDS {
                if !scene.waits().await {
                    scene = Scene::at(&model, budget.clone()).await;
                }
                let path =
                    route.filled(|p| scene.ids.get(p.name.as_str()).cloned().unwrap_or_else(|| "x".into()));
                let body = body(&mut rng, &api, &route, &scene.ids, round);
                let key = &scene.keys[round % 2];
                let caller = Caller { h: &scene.h, key: Some(key) };
                let answer = caller.call(route.method.clone(), &path, body.clone()).await;
                requests += 1;
                refused += usize::from(answer.status == 403);
                if scene.raised().await != 0 || scene.budget().await != budget {
                    wrong.push(format!("{} {path} {body}: {} raised {budget}", route.method, answer.status));
                    scene = Scene::at(&model, budget.clone()).await;
                }
            }
        }
        scene = Scene::at(&model, budget.clone()).await;
        let tools = tools(&scene, "tools/list", json!({})).await["tools"].clone();
        for tool in tools.as_array().unwrap() {
            if !scene.waits().await {
                scene = Scene::at(&model, budget.clone()).await;
            }
            let arguments = json!({
                "run_id": scene.ids["run_id"], "call_id": scene.ids["call_id"], "agent_id": scene.ids["agent_id"],
                "action_id": scene.ids["action_id"], "prompt": "yes", "approve": true, "raise_by_micros": 1_000_000,
            });
            // Fields that a tool does not know are refused, so its own fields are tried alone, too.
            let known = &tool["inputSchema"]["properties"];
            let own: Value = arguments
                .as_object()
                .unwrap()
                .iter()
                .filter(|(name, _)| known.get(name.as_str()).is_some())
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect::<serde_json::Map<_, _>>()
                .into();
            for arguments in [arguments, own] {
                let call = json!({"name": tool["name"], "arguments": arguments});
                self::tools(&scene, "tools/call", call).await;
                requests += 1;
            }
        }
        for words in WORDS {
            assert!(scene.waits().await, "{words} deletes nothing");
            let caller = Caller { h: &scene.h, key: Some(&scene.keys[0]) };
            let (agent, chat) = (&scene.ids["agent_id"], &scene.ids["chat_id"]);
            let said = [
                (format!("/agents/{agent}/chat"), json!({"message": words})),
                (format!("/agents/{agent}/chat"), json!({"message": words, "chat_id": chat})),
                (format!("/agents/{agent}/chat"), json!({"message": words, "if_busy": "interrupt"})),
                (format!("/actions/{}/messages", scene.ids["action_id"]), json!({"message": words})),
                (
                    "/v1/chat/completions".to_owned(),
                    json!({"model": agent, "messages": [{"role": "user", "content": words}]}),
                ),
            ];
            for (path, body) in said {
                caller.call(Method::POST, &path, body).await;
                requests += 1;
            }
        }
        if scene.raised().await != 0 || scene.budget().await != budget {
            wrong.push(format!("words or tools raised {budget}"));
        }
        // The same card can be answered by those who may. Otherwise the attack shows nothing.
        assert!(scene.waits().await, "the card can be answered");
        let admin = Caller { h: &scene.h, key: Some(&scene.admin) };
        let path = format!("/runs/{}/calls/{}/approve", scene.ids["run_id"], scene.ids["call_id"]);
        let answer = admin.call(Method::POST, &path, json!({})).await;
        if answer.status != 200 || scene.raised().await == 0 {
            wrong.push(format!("a key with admin can't raise {budget}: {answer:?}"));
        }
    }
    println!("{requests} requests, {refused} refused for their scope");
    wrong
}

fn body(rng: &mut StdRng, api: &OpenApi, route: &Route, ids: &Ids, round: usize) -> Value {
    if route.path.ends_with("/approve") {
        let by = [None, Some(1), Some(1_000_000), Some(999_999_999_800_i64)];
        return by.choose(rng).unwrap().map_or_else(|| json!({}), |by| json!({"raise_by_micros": by}));
    }
    let json = route.bodies.iter().find(|(kind, _)| kind == "application/json");
    match json {
        Some((_, schema)) if round > 1 => api.value(rng, schema, "", ids, 0),
        _ => json!({"budget": {"per_day_micros": 1_000_000, "per_month_micros": 1_000_000}}),
    }
}

/// Calls MCP with the key that has `write`.
async fn tools(scene: &Scene, method: &str, params: Value) -> Value {
    let request = scene.h.request(Method::POST, "/mcp").bearer_auth(&scene.keys[0]);
    let request = request.header("accept", "application/json, text/event-stream");
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    send(request.json(&message)).await.body["result"].clone()
}
