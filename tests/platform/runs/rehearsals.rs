//! Rehearsals: a run of an action before its approval, whose effects are recorded and not done.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use domain::agent_loop::CallResult;
use domain::ids::{ActionId, RunId};
use domain::tools::{Effect, Surface, ToolDef};
use futures::future::BoxFuture;
use jiff::SignedDuration;
use lamplighter_local::platform::PlatformConfig;
use serde_json::{Value, json};
use shared::config::RunsConfig;
use shared::config::outside::{Called, Outside, OutsideCall, OutsideTools};
use shared::flows::executor::route;
use shared::store::DueItem;
use tests::golden::Golden;
use tests::model::{Says, ScriptedModel};
use tests::process::Process;
use tests::stage::{Stage, noon};

fn schema() -> Value {
    json!({"type": "object", "properties": {"to": {"type": "string"}}})
}

static MAIL: ToolDef = ToolDef::new("send_mail", "Sends a mail.", Effect::Outside, &[Surface::Run], schema);
static LETTER: ToolDef =
    ToolDef::new("send_letter", "Sends a letter.", Effect::Outside, &[Surface::Run], schema);

/// An outside service that counts the calls it has carried out.
#[derive(Clone, Default)]
struct World(Arc<AtomicUsize>);

impl Outside for World {
    fn tools(&self) -> Vec<&'static ToolDef> {
        vec![&MAIL, &LETTER]
    }

    fn call(&self, _: OutsideCall) -> BoxFuture<'static, Called> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(Called::Done(CallResult::told("sent"))))
    }
}

/// Reads, writes an output, a note and a mail, proposes an action, asks, and then ends.
fn does_everything(messages: &[Value]) -> Says {
    let results = messages.iter().filter(|message| message["role"] == "tool").count();
    match results {
        0 => Says::Call("query_assets", json!({})),
        1 => Says::Call("save_output", json!({"title": "Report", "content": "Oil costs 7."})),
        2 => Says::Call("note", json!({"text": "seen", "version": 0})),
        3 => Says::Call("send_mail", json!({"to": "me@example.com"})),
        4 => {
            let task = json!({"instructions": "Look", "expected_output": "A list"});
            Says::Call(
                "generate_actions",
                json!({"actions": [{"title": "Later", "description": "Looks", "task_config": task}]}),
            )
        }
        5 => Says::Call("ask_person", json!({"question": "Shall I go on?"})),
        _ => Says::Text("Done.".into()),
    }
}

struct Scene {
    stage: Stage,
    world: World,
}

async fn scene(model: &ScriptedModel) -> Scene {
    let world = World::default();
    let runs = RunsConfig { outside: OutsideTools::new(Arc::new(world.clone())), ..RunsConfig::default() };
    let models = model.config("claude-haiku-4-5");
    let stage = Stage::of(PlatformConfig { models, runs, ..PlatformConfig::in_memory() }).await;
    Scene { stage, world }
}

impl Scene {
    /// An action that nobody has approved.
    async fn draft(&self, more: Value) -> ActionId {
        let mut body = json!({
            "title": "Report", "schedule": {"every": "1h"},
            "task_config": {"instructions": "Write a report about lamp oil", "expected_output": "A report"},
        });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let path = format!("/agents/{}/actions", self.stage.agent);
        let action = self.stage.h.post(&path, body).await.expect(201);
        action["action_id"].as_str().unwrap().parse().unwrap()
    }

    async fn begun(&self, id: ActionId) -> RunId {
        let begun = self.stage.h.post(&format!("/actions/{id}/rehearse"), json!({})).await.expect(202);
        begun["run_id"].as_str().unwrap().parse().unwrap()
    }

    async fn run(&self, run: RunId) -> Value {
        self.stage.h.get(&format!("/runs/{run}")).await.expect(200)
    }
}

#[tokio::test]
async fn a_rehearsal_shows_what_a_run_would_do_and_does_nothing() {
    let model = ScriptedModel::start(does_everything).await;
    let scene = scene(&model).await;
    let stage = &scene.stage;
    let id = scene.draft(json!({"grants": ["read_asset"]})).await;
    let before = Golden::of(&stage.h.platform.cx, Vec::new()).await.items;
    let action = stage.action(id).await;
    let run = scene.begun(id).await;
    stage.executors.work().await;
    let shown = scene.run(run).await;
    assert_eq!((&shown["kind"], &shown["state"]), (&json!("rehearsal"), &json!("completed")), "{shown:#}");
    let rehearsal = &shown["rehearsal"];
    assert_eq!(rehearsal["grants"], json!(["generate_actions"]), "{rehearsal:#}");
    assert_eq!(rehearsal["outputs"][0]["content"], "Oil costs 7.");
    assert_eq!(rehearsal["score"], 90);
    let effects: Vec<_> =
        rehearsal["effects"].as_array().unwrap().iter().map(|e| e["tool"].clone()).collect();
    assert_eq!(effects, ["note", "send_mail", "generate_actions", "ask_person"]);
    assert_eq!(rehearsal["used"]["query_assets"], 1);
    assert!(shown["cost_micros"].as_i64() > Some(0));

    // Nothing was done: no mail, no asset, no note, no due time, and the action is as before.
    assert_eq!(scene.world.0.load(Ordering::Relaxed), 0);
    assert!(stage.assets().await.is_empty() && stage.occurrences(id).await.is_empty());
    assert_eq!(stage.h.get(&format!("/actions/{id}/notebook")).await.expect(200)["version"], 0);
    assert_eq!(stage.action(id).await, action);
    let after = Golden::of(&stage.h.platform.cx, Vec::new()).await.items;
    let kinds = |items: &[_]| serde_json::to_string(items).unwrap().matches("PROPOSAL#").count();
    assert_eq!(kinds(&before), kinds(&after));

    // Approving it with its id gives the action the smallest grant, and approves that.
    let approve = json!({"approval_hash": rehearsal["approval_hash"], "rehearsal": run});
    let approved = stage.h.post(&format!("/actions/{id}/approve"), approve.clone()).await.expect(200);
    assert_eq!(
        (&approved["grants"], &approved["state"]),
        (&json!(["generate_actions"]), &json!("scheduled"))
    );
    stage.h.post(&format!("/actions/{id}/approve"), approve).await.expect(200);
    stage.happens_at(60).await;
    assert_eq!(
        stage.became(id).await,
        ["60 waiting outside_grant"],
        "the real run asks before it sends the mail"
    );
    // The cost of the rehearsal counts in the month of the action and of its agent.
    let agent = stage.h.get(&format!("/agents/{}", stage.agent)).await.expect(200);
    let both = shown["cost_micros"].as_i64().unwrap() + stage.occurrences(id).await[0].cost_micros;
    assert_eq!(agent["metrics"]["cost_micros"].as_i64(), Some(both), "{agent:#}");
}

#[tokio::test]
async fn a_rehearsal_is_of_one_action_as_it_was() {
    let model = ScriptedModel::start(does_everything).await;
    let scene = scene(&model).await;
    let (h, id) = (&scene.stage.h, scene.draft(json!({})).await);
    let other = scene.draft(json!({"title": "Other"})).await;
    let run = scene.begun(id).await;
    let approve = |hash: &Value| json!({"approval_hash": hash, "rehearsal": run});
    let early =
        h.post(&format!("/actions/{id}/approve"), approve(&json!("x"))).await.refused(400, "invalid_input");
    assert_eq!(early["errors"][0]["field"], "rehearsal");
    scene.stage.executors.work().await;
    let hash = scene.run(run).await["rehearsal"]["approval_hash"].clone();
    h.post(&format!("/actions/{other}/approve"), approve(&hash)).await.refused(400, "invalid_input");
    // The action changes after the rehearsal: what was rehearsed is not what would be approved.
    h.patch(&format!("/actions/{id}"), json!({"title": "Changed"})).await.expect(200);
    h.post(&format!("/actions/{id}/approve"), approve(&hash)).await.refused(409, "approval_mismatch");
    // It changes during a rehearsal.
    let run = scene.begun(id).await;
    h.patch(&format!("/actions/{id}"), json!({"title": "Changed again"})).await.expect(200);
    scene.stage.executors.work().await;
    let failed = scene.run(run).await;
    assert_eq!((&failed["state"], &failed["error"]["code"]), (&json!("failed"), &json!("action_changed")));
    // A tool that no provider of the model runs is refused. So is a rehearsal in a stopped account.
    let tools = json!({"provider_tools": ["web_search"]});
    h.post(&format!("/actions/{id}/rehearse"), tools).await.refused(400, "invalid_input");
    h.post("/account/stop", json!({})).await.expect(200);
    h.post(&format!("/actions/{id}/rehearse"), json!({})).await.refused(409, "account_stopped");
}

/// The process is killed at each request of the model. Another one goes on, and nothing is done twice or at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rehearsal_that_is_killed_goes_on() {
    for kill_at in 1..=7 {
        let model = ScriptedModel::held(does_everything).await;
        let scene = scene(&model).await;
        let stage = &scene.stage;
        let id = scene.draft(json!({})).await;
        let run = scene.begun(id).await;
        model.allow(kill_at - 1);
        let process = Process::start(stage);
        let (cx, item) = (process.cx.clone(), DueItem::run(&stage.owner, run));
        let deadline = cx.clock.now() + SignedDuration::from_mins(15);
        process.runtime.spawn(async move { route::process(&cx, &item, deadline).await });
        model.asked_times(kill_at).await;
        process.kill();
        stage.clock.set(noon() + SignedDuration::from_mins(30));
        model.allow(20);
        stage.sweep().await;
        stage.executors.work().await;
        let shown = scene.run(run).await;
        assert_eq!(shown["state"], "completed", "killed at {kill_at}: {shown:#}");
        assert_eq!(shown["rehearsal"]["grants"], json!(["generate_actions"]), "killed at {kill_at}");
        assert_eq!(shown["rehearsal"]["outputs"].as_array().unwrap().len(), 1, "killed at {kill_at}");
        assert_eq!(shown["rehearsal"]["used"]["save_output"], 1, "killed at {kill_at}");
        assert_eq!(scene.world.0.load(Ordering::Relaxed), 0);
    }
}

/// A person cancels a rehearsal, and its ceiling ends it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rehearsal_ends_at_a_cancel_and_at_its_ceiling() {
    let model = ScriptedModel::start(does_everything).await;
    let scene = scene(&model).await;
    let id = scene.draft(json!({"budget": {"per_run_micros": 10}})).await;
    let run = scene.begun(id).await;
    scene.stage.executors.work().await;
    let failed = scene.run(run).await;
    assert_eq!((&failed["state"], &failed["cards"]), (&json!("failed"), &json!([])), "{failed:#}");
    let id = scene.draft(json!({})).await;
    let run = scene.begun(id).await;
    scene.stage.h.post(&format!("/runs/{run}/cancel"), json!({})).await.expect(202);
    scene.stage.executors.work().await;
    assert_eq!(scene.run(run).await["state"], "cancelled");
}
