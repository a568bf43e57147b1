//! A stranger with a valid key calls every route repeatedly, with foreign ids in every place that takes an id. Every
//! text of the foreign resources contains a mark, so any response shows a leak.

use lamplighter_local::platform::PlatformConfig;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use reqwest::Method;
use serde_json::{Value, json};
use shared::config::{AuthConfig, BudgetConfig};
use tests::openapi::{Ids, OpenApi, Route};
use tests::things::Caller;
use tests::{Answer, Harness};

const MARK: &str = "mark7f3a9d";

/// How often each route is called.
const ROUNDS: usize = 20;

/// Paths with an agent id that is a name within each owner's own data.
const NAMES: [&str; 2] = ["/context/logs/", "/context/recall"];

/// Paths that need no credentials. A receipt must be readable after its owner's keys are gone; its id is the secret.
const PUBLIC: [&str; 8] = [
    "/docs",
    "/health",
    "/openapi.json",
    "/receipts/{receipt_id}",
    "/unsubscribe/{token}",
    "/answers/{token}",
    "/hooks/github/{token}",
    "/hooks/telegram/{token}",
];

pub async fn attack(seed: u64) -> Vec<String> {
    let mut config = PlatformConfig::in_memory();
    config.auth = AuthConfig::On(None);
    config.budget = BudgetConfig { day_micros: i64::MAX / 2, ..BudgetConfig::default() };
    let h = Harness::with(config).await;
    let (mine, theirs) = (h.key_of("me").await, h.key_of("you").await);
    let (me, you) = (Caller { h: &h, key: Some(&mine) }, Caller { h: &h, key: Some(&theirs) });
    let api = OpenApi::new(h.get("/openapi.json").await.expect(200));
    let ids = me.things(MARK).await;
    let own = you.things("own").await;
    let before = everything(&me, &ids).await;

    let mut rng = StdRng::seed_from_u64(seed);
    let (mut requests, mut wrong) = (0, Vec::new());
    let mut statuses = std::collections::BTreeMap::<u16, usize>::new();
    for route in api.routes() {
        for _ in 0..ROUNDS {
            let request = request(&mut rng, &api, &route, &ids, &own);
            let answer = you.call(route.method.clone(), &request.path, request.body.clone()).await;
            requests += 1;
            *statuses.entry(answer.status).or_default() += 1;
            wrong.extend(leak(&ids, &route, &request, &answer));
            // Requests without credentials are refused before anything is read.
            if !PUBLIC.contains(&route.path.as_str()) {
                let nobody = Caller { h: &h, key: None };
                let answer = nobody.call(route.method.clone(), &request.path, request.body).await;
                requests += 1;
                *statuses.entry(answer.status).or_default() += 1;
                if answer.status != 401 {
                    wrong.push(format!("{} without a key: {}", route.name(), answer.status));
                }
            }
        }
    }
    if everything(&me, &ids).await != before {
        wrong.push("the owner's things are not as they were".to_owned());
    }
    println!("{requests} requests over {} routes; statuses {statuses:?}", api.routes().len());
    wrong
}

struct Request {
    path: String,
    /// Whether an id in the path belongs to the owner.
    is_foreign: bool,
    body: Value,
}

fn request(rng: &mut StdRng, api: &OpenApi, route: &Route, ids: &Ids, own: &Ids) -> Request {
    // The stranger's own ids are mixed with the foreign ones, because a foreign id may be the second one in a path, or
    // only in the body.
    let has_ids = route.placed("path").any(|p| ids.contains_key(p.name.as_str()));
    let mixed = |rng: &mut StdRng, foreign: f64| -> Ids {
        ids.iter()
            .map(|(name, id)| {
                let id = if rng.random_bool(foreign) { id } else { &own[name] };
                (*name, id.clone())
            })
            .collect()
    };
    let in_path = mixed(rng, 0.8);
    let in_rest = mixed(rng, 0.8);
    let path = route.filled(|p| in_path.get(p.name.as_str()).cloned().unwrap_or_else(|| "lamp".to_owned()));
    let is_foreign = has_ids
        && route.placed("path").any(|p| {
            let name = p.name.as_str();
            !matches!(name, "path" | "version") && ids.get(name).is_some_and(|id| path.contains(id.as_str()))
        });
    let mut query = Vec::new();
    for parameter in route.placed("query") {
        if parameter.is_required || rng.random_bool(0.4) {
            let value = api.value(rng, &parameter.schema, &parameter.name, &in_rest, 0);
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            query.push(format!("{}={}", parameter.name, value.replace(' ', "%20").replace('#', "%23")));
        }
    }
    let path = if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) };
    let json = route.bodies.iter().find(|(kind, _)| kind == "application/json");
    let body = json.map_or_else(|| json!({}), |(_, schema)| api.value(rng, schema, "", &in_rest, 0));
    Request { path, is_foreign, body }
}

/// Everything that a response should not have revealed or done.
fn leak(ids: &Ids, route: &Route, request: &Request, answer: &Answer) -> Option<String> {
    let told = answer.body.to_string();
    let what = format!("{} {} {}", route.method, request.path, request.body);
    if told.contains(MARK) {
        return Some(format!("{what}: {} tells {told:.300}", answer.status));
    }
    let is_name = NAMES.iter().any(|path| request.path.starts_with(path));
    let is_done = (200..300).contains(&answer.status);
    if request.is_foreign && is_done && !is_name {
        return Some(format!("{what}: {} for a foreign id", answer.status));
    }
    // An id that the request did not contain. Paths, versions and calls (`1.0`) have short ids that occur in other texts, too.
    let named = format!("{} {}", request.path, request.body);
    let unnamed = ids.iter().find(|(name, id)| {
        !(is_name || matches!(**name, "path" | "version" | "call_id"))
            && told.contains(id.as_str())
            && !named.contains(id.as_str())
    });
    unnamed.map(|(name, _)| format!("{what}: {} tells a {name}", answer.status))
}

/// Everything that the owner can read of the resources, to check that nobody has changed them.
async fn everything(me: &Caller<'_>, ids: &Ids) -> Vec<Value> {
    let mut all = Vec::new();
    for path in [
        "/agents/{agent_id}",
        "/agents/{agent_id}/assets",
        "/agents/{agent_id}/chats",
        "/agents/{agent_id}/proposals",
        "/assets/{asset_id}",
        "/assets/{asset_id}/content",
        "/assets/{asset_id}/versions",
        "/actions/{action_id}",
        "/actions/{action_id}/messages",
        "/actions/{action_id}/runs",
        "/chats/{chat_id}",
        "/proposals/{proposal_id}",
        "/runs/{run_id}",
        "/projects/{project_id}",
        "/projects/{project_id}/files",
        "/projects/{project_id}/context/versions",
        "/account/api-keys",
        "/actions",
        "/context/logs",
    ] {
        let filled = ids.iter().fold(path.to_owned(), |p, (name, id)| p.replace(&format!("{{{name}}}"), id));
        let answer = me.call(Method::GET, &filled, Value::Null).await;
        let mut body = answer.body;
        if let Some(problem) = body.as_object_mut() {
            problem.remove("request_id");
        }
        all.push(json!([path, answer.status, body]));
    }
    all
}
