//! What a model is sent in a run of an action, compared with what an approval binds: for every field that a client can set of an
//! agent, an action, the account and a project.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};
use tests::model::{Says, ScriptedModel};
use tests::send;
use tests::stage::Stage;

fn writes(messages: &[Value]) -> Says {
    match messages.last().unwrap()["role"].as_str() {
        Some("tool") => Says::Text("It is done.".into()),
        _ => Says::Call("save_output", json!({"title": "Report", "content": "Lamp oil is dear."})),
    }
}

/// What a change of a field changes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Changes {
    /// What the model is sent, and the hash that a person approves.
    Both,
    /// Nothing.
    Neither,
    /// The hash alone. The text says what the field decides.
    HashAlone(&'static str),
    /// What the model is sent. The text says why no approval binds it.
    SentAlone(&'static str),
    /// This platform can't set it. The text says where it is decided.
    Elsewhere(&'static str),
}
use Changes::{Both, Elsewhere, HashAlone, Neither, SentAlone};

fn agent() -> Value {
    json!({"name": "Market watch", "goal": "A research agent that reports"})
}

fn action() -> Value {
    json!({"title": "Report", "task_config": {"instructions": "Write", "expected_output": "A report"}})
}

/// Fields of `POST /agents`.
fn of_agent() -> Vec<(&'static str, Value, Changes)> {
    vec![
        ("name", json!("Other"), Both),
        ("goal", json!("Other"), Both),
        ("success_criteria", json!("Other"), Both),
        ("timeline", json!("Until May"), Both),
        ("instructions", json!("Other"), Both),
        ("docs_project_id", json!("default"), Both),
        ("theme_project_id", json!("default"), Both),
        ("timezone", json!("Asia/Tokyo"), Both),
        ("model_tier", json!("deep"), HashAlone("the default tier of a new action")),
        ("budget", json!({"per_month_micros": 900_000_000}), Neither),
        ("provider_tools", json!(["web_search"]), Neither),
    ]
}

/// Fields of `POST /agents/{agent_id}/actions`.
fn of_action() -> Vec<(&'static str, Value, Changes)> {
    let url = json!([{"kind": "url", "url": "https://example.com/"}]);
    let no_model = HashAlone("no model is asked");
    vec![
        ("title", json!("Other"), Both),
        ("description", json!("Other"), Both),
        ("task_config", json!({"instructions": "Other", "expected_output": "A report"}), Both),
        ("task_config", json!({"instructions": "Write", "expected_output": "Other"}), Both),
        ("schedule", json!({"every": "1h", "timezone": "Asia/Tokyo"}), Both),
        ("schedule", json!({"every": "1h", "timezone": "UTC"}), HashAlone("when it runs")),
        ("grants", json!(["generate_actions"]), Both),
        ("conditions", json!([{"kind": "min_words", "words": 1}]), Both),
        ("budget", json!({"per_run_micros": 7_000_000}), HashAlone("what it may cost")),
        ("model_tier", json!("deep"), HashAlone("which model is asked")),
        ("watches", url, HashAlone("whether it runs")),
        ("call", json!({"url": "https://example.com/"}), no_model),
        ("max_uses", json!(null), Elsewhere("this model has no such tool; see domain::prompts::of_run")),
        ("priority", json!("low"), Neither),
    ]
}

/// Fields of `PATCH /account`.
fn of_account() -> Vec<(&'static str, Value, Changes)> {
    let zone = SentAlone("the person's own clock: who travels approves nothing again");
    vec![
        ("timezone", json!("Asia/Tokyo"), zone),
        ("plan", json!("unlimited"), Neither),
        ("billing_mode", json!("byok"), Neither),
        ("overage", json!("on"), Neither),
        ("alerts", json!([{"month_micros": 20_000_000}]), Neither),
        ("budget", json!({"per_month_micros": 900_000_000}), Neither),
        (
            "memory_vectors",
            json!(null),
            Elsewhere("it needs a provider's key, and decides what memory finds, which is data"),
        ),
    ]
}

/// Fields of `PATCH /projects/{project_id}`, of the project whose documents the agent knows.
fn of_project() -> Vec<(&'static str, Value, Changes)> {
    vec![
        ("name", json!("Other"), Neither),
        ("hook_filter", json!(["the-"]), Neither),
        ("enrichment", json!(true), Neither),
        ("assistants_apply", json!(true), Neither),
        ("apply_at_once", json!(true), Neither),
    ]
}

struct World {
    stage: Stage,
    model: ScriptedModel,
    openapi: Value,
}

impl World {
    async fn new() -> Self {
        let model = ScriptedModel::start(writes).await;
        let stage = Stage::with(model.config("scripted")).await;
        let openapi = stage.h.get("/openapi.json").await.expect(200);
        let world = Self { stage, model, openapi };
        world.document("One door.").await;
        world
    }

    async fn document(&self, text: &str) {
        let request = self.stage.h.request(Method::PUT, "/projects/default/docs/A.md");
        send(request.json(&json!({"content": text}))).await;
    }

    /// What the model is first sent in a run of a new action of a new agent, and the hash that is approved. Both have no ids.
    async fn run(&self, agent: Value, mut action: Value) -> (Value, String) {
        let h = &self.stage.h;
        if action.get("call").is_some() {
            action["task_config"].take();
        }
        let agent = h.post("/agents", agent).await.expect(201)["agent_id"].as_str().unwrap().to_owned();
        let action = h.post(&format!("/agents/{agent}/actions"), action).await.expect(201);
        let id = self.stage.approve(&action).await;
        let before = self.model.sent().len();
        h.post(&format!("/actions/{id}/run"), json!({})).await.expect(202);
        self.stage.executors.work().await;
        let sent = self.model.sent().get(before).cloned().unwrap_or_default();
        let sent = json!({"messages": sent["messages"], "tools": sent["tools"]});
        (sent, action["approval_hash"].as_str().unwrap().to_owned())
    }

    /// The list has every field of this schema of the OpenAPI document.
    fn has_every_field(&self, schema: &str, list: &[(&str, Value, Changes)]) {
        let properties = &self.openapi["components"]["schemas"][schema]["properties"];
        let fields: BTreeSet<&str> = properties.as_object().unwrap().keys().map(String::as_str).collect();
        let mut listed: BTreeSet<&str> = list.iter().map(|(field, ..)| *field).collect();
        // It stands for fields that are listed.
        if fields.contains("proposal_id") {
            listed.insert("proposal_id");
        }
        assert_eq!(listed, fields, "{schema}");
    }
}

/// The fields that this platform can set.
fn settable(
    list: Vec<(&'static str, Value, Changes)>,
) -> impl Iterator<Item = (&'static str, Value, Changes)> {
    list.into_iter().filter(|(.., changes)| !matches!(changes, Elsewhere(_)))
}

fn with(mut value: Value, field: &str, other: &Value) -> Value {
    value[field] = other.clone();
    value
}

fn check(field: &str, changes: Changes, was: &(Value, String), is: &(Value, String)) {
    // Without a model, nothing is sent.
    let is_sent = is.0["messages"].is_array();
    let found = match (is_sent && was.0 != is.0, was.1 != is.1) {
        (true, true) => Both,
        (false, false) => Neither,
        (false, true) => HashAlone(""),
        (true, false) => SentAlone(""),
    };
    let same = std::mem::discriminant(&found) == std::mem::discriminant(&changes);
    assert!(same, "{field}: {found:?}, and not {changes:?}\n{:#}\n{:#}", was.0, is.0);
}

#[tokio::test]
async fn what_a_model_is_sent_in_a_run_is_what_was_approved() {
    let world = World::new().await;
    let was = world.run(agent(), action()).await;
    assert_eq!(was, world.run(agent(), action()).await, "two equal agents and actions");
    world.has_every_field("NewAgent", &of_agent());
    for (field, other, changes) in settable(of_agent()) {
        check(field, changes, &was, &world.run(with(agent(), field, &other), action()).await);
    }
    world.has_every_field("DefineAction", &of_action());
    for (field, other, changes) in settable(of_action()) {
        check(field, changes, &was, &world.run(agent(), with(action(), field, &other)).await);
    }
}

#[tokio::test]
async fn the_account_and_the_project_decide_no_run() {
    let world = World::new().await;
    let h = &world.stage.h;
    let knows = || with(agent(), "docs_project_id", &json!("default"));
    let was = world.run(knows(), action()).await;
    world.has_every_field("AccountPatch", &of_account());
    for (field, other, changes) in settable(of_account()) {
        let before = h.get("/account").await.expect(200)[field].clone();
        h.patch("/account", json!({field: other})).await.expect(200);
        check(field, changes, &was, &world.run(knows(), action()).await);
        h.patch("/account", json!({field: before})).await.expect(200);
    }
    world.has_every_field("ProjectPatch", &of_project());
    for (field, other, changes) in settable(of_project()) {
        let before = h.get("/projects/default").await.expect(200)[field].clone();
        h.patch("/projects/default", json!({field: other})).await.expect(200);
        check(field, changes, &was, &world.run(knows(), action()).await);
        h.patch("/projects/default", json!({field: before})).await.expect(200);
    }
    world.document("Two doors.").await;
    let data = SentAlone("documents live, and the prompt says that they are data");
    check("document", data, &was, &world.run(knows(), action()).await);
}

/// A project given to an agent withdraws its approvals, is named on the ticket, and taints what its runs make.
#[tokio::test]
async fn documents_need_an_approval_and_taint_a_run() {
    let world = World::new().await;
    let stage = &world.stage;
    let id = stage.approved(json!({"schedule": {"every": "1h"}})).await;
    stage.happens_at(61).await;
    assert_eq!(stage.newest_run(id).await["state"], "completed");
    assert_eq!(stage.newest_run(id).await.get("tainted"), None);
    let asked = world.model.sent().len();
    let agent = format!("/agents/{}", stage.agent);
    let patched = stage.h.patch(&agent, json!({"docs_project_id": "default"})).await.expect(200);
    assert_eq!(patched["withdrawn_approvals"][0]["action_id"], json!(id));
    let fields: Vec<&str> = patched["withdrawn_approvals"][0]["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| change["field"].as_str().unwrap())
        .collect();
    assert_eq!(fields, ["agent.docs_project_id", "tools"]);
    stage.happens_at(121).await;
    assert_eq!(world.model.sent().len(), asked, "no model is asked without an approval");
    let seen = stage.h.get(&format!("/actions/{id}/approval")).await.expect(200);
    let warning = seen["warnings"][0].as_str().unwrap();
    assert!(warning.starts_with("A run reads the documents of the project \"Default\""), "{warning}");
    assert!(warning.contains("costs up to $2.00 each time"), "{warning}");
    let action = stage.h.get(&format!("/actions/{id}")).await.expect(200);
    stage.approve(&action).await;
    stage.happens_at(182).await;
    let run = stage.newest_run(id).await;
    assert_eq!((&run["state"], &run["tainted"]["step"]), (&json!("completed"), &json!(0)), "{run:#}");
    let request = stage.h.request(Method::POST, &format!("{agent}/chat"));
    let turn = send(request.header("accept", "application/json").json(&json!({"message": "Hello"}))).await;
    let turn = turn.expect(200)["run_id"].as_str().unwrap().to_owned();
    assert_eq!(stage.h.get(&format!("/runs/{turn}")).await.expect(200)["tainted"]["step"], 0);
}
