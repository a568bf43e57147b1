//! Calls that a person decides about: cards, answers, and calls outside the platform whose result was lost.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::actions::OccurrenceState;
use domain::agent_loop::CallResult;
use domain::ids::{ActionId, RunId};
use domain::tools::{Effect, Surface, ToolDef};
use futures::future::{BoxFuture, join_all};
use jiff::SignedDuration;
use reqwest::Method;
use serde_json::{Value, json};
use shared::config::RunsConfig;
use shared::config::outside::{Called, Outside, OutsideCall, OutsideTools};
use shared::flows::executor::route;
use shared::flows::turn::Topic;
use shared::store::DueItem;
use tests::events::{Event, names};
use tests::model::{Says, Script, ScriptedModel};
use tests::process::{Process, followed, take_over};
use tests::stage::Stage;
use tests::{Answer, send};
use tokio::sync::watch;

const EVERYWHERE: &[Surface] = &[Surface::Chat, Surface::AboutAction, Surface::Run];

fn schema() -> Value {
    json!({"type": "object", "properties": {"to": {"type": "string"}, "text": {"type": "string"}}})
}

fn changing_schema() -> Value {
    if CHANGED.load(Ordering::SeqCst) { json!({"type": "object"}) } else { schema() }
}

/// Whether the schema of `send_letter` has changed. One test uses it.
static CHANGED: AtomicBool = AtomicBool::new(false);

static MAIL: ToolDef = ToolDef::new("send_mail", "Sends a mail.", Effect::Outside, EVERYWHERE, schema);
static LETTER: ToolDef =
    ToolDef::new("send_letter", "Sends a letter.", Effect::Outside, EVERYWHERE, changing_schema);
static ORDER: ToolDef = ToolDef {
    idempotent: true,
    ..ToolDef::new("place_order", "Places an order.", Effect::Outside, EVERYWHERE, schema)
};

/// How the outside service behaves when it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Acts {
    Answers,
    /// It does the work, and waits a moment before and after it.
    Slowly,
    /// It does not do the work, and does not answer.
    HangsBefore,
    /// It does the work, and does not answer.
    HangsAfter,
    /// It does the work, and reports that the result is unknown.
    Unknown,
}

/// An outside service. It records the calls that it has carried out.
#[derive(Clone)]
struct World {
    acts: Arc<Mutex<Acts>>,
    done: Arc<Mutex<Vec<OutsideCall>>>,
    begun: watch::Sender<usize>,
}

impl World {
    fn new() -> Self {
        Self { acts: Arc::new(Mutex::new(Acts::Answers)), done: Arc::default(), begun: watch::Sender::new(0) }
    }

    fn acts(&self, acts: Acts) {
        *self.acts.lock().unwrap() = acts;
    }

    fn done(&self) -> usize {
        self.done.lock().unwrap().len()
    }

    fn keys(&self) -> Vec<String> {
        self.done.lock().unwrap().iter().map(|call| call.key.clone()).collect()
    }

    async fn begun(&self, times: usize) {
        self.begun.subscribe().wait_for(|begun| *begun >= times).await.unwrap();
    }
}

impl Outside for World {
    fn tools(&self) -> Vec<&'static ToolDef> {
        vec![&MAIL, &LETTER, &ORDER]
    }

    fn cost_micros(&self, tool: &ToolDef, _: &Value) -> Option<i64> {
        (*tool == MAIL).then_some(700)
    }

    fn call(&self, call: OutsideCall) -> BoxFuture<'static, Called> {
        let world = self.clone();
        Box::pin(async move {
            let acts = *world.acts.lock().unwrap();
            let moment = async || {
                if acts == Acts::Slowly {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            };
            moment().await;
            if acts != Acts::HangsBefore {
                world.done.lock().unwrap().push(call);
            }
            world.begun.send_modify(|begun| *begun += 1);
            moment().await;
            match acts {
                Acts::Answers | Acts::Slowly => Called::Done(CallResult::told("It is sent.")),
                Acts::Unknown => Called::Unknown,
                Acts::HangsBefore | Acts::HangsAfter => std::future::pending().await,
            }
        })
    }
}

fn says_what_came_back(messages: &[Value], tool: &'static str) -> Says {
    let last = messages.last().unwrap();
    let content = last["content"].as_str().unwrap_or_default();
    match last["role"].as_str() {
        Some("tool") => Says::Text(format!("Result: {content}")),
        // Its text was saved as the output.
        _ if content.starts_with("Result of save_output") => Says::Text("Done.".into()),
        _ => Says::Call(tool, json!({"to": "a@b.example", "text": "Hello"})),
    }
}

fn mails(messages: &[Value]) -> Says {
    says_what_came_back(messages, "send_mail")
}

fn letters(messages: &[Value]) -> Says {
    says_what_came_back(messages, "send_letter")
}

fn orders(messages: &[Value]) -> Says {
    says_what_came_back(messages, "place_order")
}

fn plan(title: &str) -> Value {
    let task = json!({"instructions": "Look", "expected_output": "A list"});
    json!({"title": title, "description": "d", "priority": "low", "task_config": task})
}

/// Makes two plans in one reply, and then says what the results were.
fn plans_twice(messages: &[Value]) -> Says {
    let last = messages.last().unwrap()["content"].as_str().unwrap_or_default();
    if last.contains("Result of generate_actions") {
        return Says::Text(format!("Result: {last}"));
    }
    if last.starts_with("Result of save_output") {
        return Says::Text("Done.".into());
    }
    let signal = |title: &str| format!("GENERATE_ACTIONS\n---\n{}\n", plan(title));
    Says::Text(format!("{}{}", signal("First"), signal("Second")))
}

/// What kind of run makes the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Turn,
    Action,
}

const BOTH: [Of; 2] = [Of::Turn, Of::Action];

struct Scene {
    stage: Stage,
    world: World,
    action: ActionId,
    _model: ScriptedModel,
}

impl Scene {
    async fn with(script: Script) -> Self {
        let world = World::new();
        let model = ScriptedModel::start(script).await;
        let outside = OutsideTools::new(Arc::new(world.clone()));
        let runs = RunsConfig { outside, ..RunsConfig::default() };
        let stage = Stage::with_runs(model.config("scripted"), runs).await;
        let action = stage.approved(json!({})).await;
        Self { stage, world, action, _model: model }
    }

    /// Starts a run that waits for a person. Returns its view.
    async fn waits(&self, of: Of) -> Value {
        let view = match of {
            Of::Turn => self.say(json!({"message": "Send it"})).await.expect(200),
            Of::Action => {
                let path = format!("/actions/{}/run", self.action);
                let run = self.stage.h.post(&path, json!({})).await.expect(202)["run_id"].clone();
                self.stage.executors.work().await;
                self.view(run.as_str().unwrap()).await
            }
        };
        assert_eq!(view["state"], "waiting", "{view:#}");
        view
    }

    async fn say(&self, body: Value) -> Answer {
        self.stage.h.post(&format!("/agents/{}/chat", self.stage.agent), body).await
    }

    async fn view(&self, run: &str) -> Value {
        self.stage.h.get(&format!("/runs/{run}")).await.expect(200)
    }

    async fn answer(&self, run: &str, call: &str, how: &str, body: Value) -> Answer {
        self.stage.h.post(&format!("/runs/{run}/calls/{call}/{how}"), body).await
    }

    /// Lets the run continue. Returns its view.
    async fn goes_on(&self, run: &str) -> Value {
        self.stage.executors.work().await;
        self.view(run).await
    }

    async fn events(&self, run: &str) -> Vec<Event> {
        let all = followed(&self.stage.h, run.parse().unwrap()).await;
        let ids: Vec<u64> = all.iter().map(|event| event.id).collect();
        assert_eq!(ids, (1..=all.len() as u64).collect::<Vec<_>>(), "one continuous run");
        all
    }

    /// The text that the run has produced: its message or its output.
    async fn said(&self, view: &Value) -> String {
        view["message"].as_str().unwrap_or_default().to_owned()
    }
}

fn id(view: &Value) -> &str {
    view["run_id"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_waits_for_a_yes_and_is_made_once() {
    for of in BOTH {
        let scene = Scene::with(mails).await;
        let waiting = scene.waits(of).await;
        let run = id(&waiting);
        let card = &waiting["cards"][0];
        assert_eq!(
            (&card["call_id"], &card["asks"], &card["tool"], &card["state"], &card["cost_micros"]),
            (&json!("1.0"), &json!("permission"), &json!("send_mail"), &json!("waiting"), &json!(700)),
            "{of:?}: {waiting:#}"
        );
        assert_eq!(card["arguments"], json!({"to": "a@b.example", "text": "Hello"}));
        assert!(card["why"].as_str().unwrap().contains("it wants to use send_mail"), "{card:#}");
        let days = card["expires_at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
        assert_eq!(days.duration_since(scene.stage.clock.now()).as_hours(), 14 * 24);
        let seen = scene.events(run).await;
        let asked = &seen[seen.len() - 2];
        assert_eq!((asked.name.as_str(), &asked.data["hash"]), ("call.waiting", &card["hash"]));
        assert_eq!((scene.world.done(), seen.last().unwrap().name.as_str()), (0, "run.waiting"));

        let other = json!({"hash": "0".repeat(64)});
        scene.answer(run, "1.0", "approve", other).await.refused(409, "card_mismatch");
        let approve = json!({"hash": card["hash"]});
        let approved = scene.answer(run, "1.0", "approve", approve.clone()).await.expect(200);
        assert_eq!(
            (&approved["cards"][0]["state"], &approved["state"]),
            (&json!("approved"), &json!("running"))
        );
        // The same answer again, before and after the run continues.
        scene.answer(run, "1.0", "approve", approve.clone()).await.expect(200);
        let ended = scene.goes_on(run).await;
        assert_eq!((&ended["state"], scene.world.done()), (&json!("completed"), 1), "{of:?}: {ended:#}");
        assert!(scene.said(&ended).await.contains("Result: It is sent."), "{of:?}: {ended:#}");
        scene.answer(run, "1.0", "approve", approve).await.expect(200);
        scene.answer(run, "1.0", "approve", json!({})).await.expect(200);
        let refused = scene.answer(run, "1.0", "reject", json!({})).await.refused(409, "already_answered");
        assert!(refused["detail"].as_str().unwrap().contains("approved"), "{refused:#}");
        scene.answer(run, "1.1", "approve", json!({})).await.refused(404, "not_found");
        scene.answer(run, "x", "approve", json!({})).await.refused(404, "not_found");
        assert_eq!(scene.goes_on(run).await["cards"][0]["state"], "approved");
        assert_eq!(scene.world.keys(), [format!("{run}.1.0")]);
        // The text before the wait stays valid.
        let seen = scene.events(run).await;
        let restarted = seen.iter().find(|event| event.name == "step.restarted").unwrap();
        assert_eq!(restarted.data["void_from"], restarted.id, "{seen:#?}");
        let order = names(&seen);
        let at = |name: &str| order.iter().position(|seen| *seen == name).unwrap();
        assert!(
            at("call.waiting") < at("call.approved") && at("call.approved") < at("tool.requested"),
            "{order:?}"
        );
        let results =
            seen.iter().filter(|event| event.name == "tool.result" && event.data["call_id"] == "1.0");
        assert_eq!(results.count(), 1);
    }
}

#[tokio::test]
async fn a_rejected_call_is_not_made_and_the_model_is_told_why() {
    for of in BOTH {
        let scene = Scene::with(mails).await;
        let waiting = scene.waits(of).await;
        let run = id(&waiting);
        let long = json!({"reason": "x".repeat(1_001)});
        let refused = scene.answer(run, "1.0", "reject", long).await.refused(400, "invalid_input");
        assert!(refused["errors"][0]["message"].as_str().unwrap().contains("1000"), "{refused:#}");
        let reason = json!({"reason": "Not before Monday."});
        let rejected = scene.answer(run, "1.0", "reject", reason).await.expect(200);
        assert_eq!(rejected["cards"][0]["reason"], "Not before Monday.");
        scene.answer(run, "1.0", "approve", json!({})).await.refused(409, "already_answered");
        let ended = scene.goes_on(run).await;
        assert_eq!((&ended["state"], scene.world.done()), (&json!("completed"), 0), "{of:?}: {ended:#}");
        assert!(scene.said(&ended).await.contains("rejected this call: Not before Monday."), "{ended:#}");
    }
}

/// All questions of a reply are asked at once, and the run continues when all are answered.
#[tokio::test]
async fn each_call_of_a_reply_is_answered_separately() {
    let scene = Scene::with(plans_twice).await;
    let waiting = scene.waits(Of::Action).await;
    let run = id(&waiting);
    let ids: Vec<&Value> = waiting["cards"].as_array().unwrap().iter().map(|card| &card["call_id"]).collect();
    assert_eq!(ids, [&json!("1.0"), &json!("1.1")], "{waiting:#}");
    let why = scene.stage.h.get(&format!("/actions/{}/why", scene.action)).await.expect(200);
    assert!(why["sentence"].as_str().unwrap().contains("waits for a person's yes, until"), "{why:#}");
    let still = scene.answer(run, "1.1", "approve", json!({})).await.expect(200);
    assert_eq!(still["state"], "waiting");
    assert_eq!(scene.goes_on(run).await["state"], "waiting");
    assert_eq!(scene.answer(run, "1.0", "reject", json!({})).await.expect(200)["state"], "running");
    let ended = scene.goes_on(run).await;
    assert_eq!(ended["state"], "completed", "{ended:#}");
    let said = scene.said(&ended).await;
    assert!(
        said.contains("The person rejected this call.") && said.contains("waits for the person's yes"),
        "{said}"
    );
    let proposals = ended["proposals"].as_array().unwrap();
    assert_eq!((proposals.len(), &proposals[0]["title"]), (1, &json!("Second")), "{ended:#}");
}

/// A message neither approves nor rejects a call.
#[tokio::test]
async fn a_run_that_continues_without_an_answer_makes_no_call() {
    let scene = Scene::with(mails).await;
    let waiting = scene.waits(Of::Action).await;
    let run = id(&waiting);
    let path = format!("/actions/{}/resume", scene.action);
    scene.stage.h.post(&path, json!({"message": "Write to c@d.example instead"})).await.expect(200);
    scene.answer(run, "1.0", "approve", json!({})).await.refused(409, "card_void");
    let ended = scene.goes_on(run).await;
    assert_eq!((&ended["state"], scene.world.done()), (&json!("completed"), 0), "{ended:#}");
    let said = scene.said(&ended).await;
    assert!(said.contains("neither approved nor rejected") && said.contains("c@d.example"), "{said}");
    assert_eq!(ended["cards"][0]["state"], "void");

    // A turn that waits holds its conversation. A new turn with `interrupt` ends it.
    let waiting = scene.waits(Of::Turn).await;
    let (run, chat) = (id(&waiting), &waiting["chat_id"]);
    let refused =
        scene.say(json!({"chat_id": chat, "message": "And?"})).await.refused(409, "turn_in_progress");
    assert!(refused["detail"].as_str().unwrap().contains("waits for an answer"), "{refused:#}");
    let next = json!({"chat_id": chat, "message": "And?", "if_busy": "interrupt"});
    assert_eq!(scene.say(next).await.expect(200)["state"], "waiting");
    let view = scene.view(run).await;
    assert_eq!((&view["state"], &view["cards"][0]["state"]), (&json!("cancelled"), &json!("void")));
    scene.answer(run, "1.0", "approve", json!({})).await.refused(409, "card_void");
    assert_eq!(scene.world.done(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_contradicting_answers_wins() {
    for of in BOTH {
        let scene = Scene::with(mails).await;
        let waiting = scene.waits(of).await;
        let run = id(&waiting);
        let all = (0..8).map(|n| scene.answer(run, "1.0", ["approve", "reject"][n % 2], json!({})));
        // Executors claim the run while answers still arrive.
        let (all, _) = tokio::join!(join_all(all), async {
            for _ in 0..5 {
                scene.stage.executors.work().await;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        let won: Vec<usize> = (0..8).filter(|n| all[*n].status == 200).collect();
        assert_eq!(won.len(), 4, "{of:?}: {all:#?}");
        assert!(won.iter().all(|n| n % 2 == won[0] % 2), "{of:?}: {won:?}");
        for refused in all.iter().filter(|answer| answer.status != 200) {
            assert_eq!((refused.status, &refused.body["code"]), (409, &json!("already_answered")), "{of:?}");
        }
        let ended = scene.goes_on(run).await;
        assert_eq!((&ended["state"], scene.world.done()), (&json!("completed"), 1 - won[0] % 2), "{ended:#}");
    }
}

/// Only the call that was shown is made: if the tool has changed since, the person is asked again.
#[tokio::test]
async fn a_call_whose_schema_has_changed_is_asked_about_again() {
    let scene = Scene::with(letters).await;
    let waiting = scene.waits(Of::Turn).await;
    let run = id(&waiting);
    scene.answer(run, "1.0", "approve", json!({})).await.expect(200);
    CHANGED.store(true, Ordering::SeqCst);
    let asked = scene.goes_on(run).await;
    assert_eq!((&asked["state"], scene.world.done()), (&json!("waiting"), 0), "{asked:#}");
    assert_ne!(asked["cards"][0]["hash"], waiting["cards"][0]["hash"]);
    let shown_before = json!({"hash": waiting["cards"][0]["hash"]});
    scene.answer(run, "1.0", "approve", shown_before).await.refused(409, "card_mismatch");
    scene.answer(run, "1.0", "approve", json!({})).await.expect(200);
    assert_eq!((&scene.goes_on(run).await["state"], scene.world.done()), (&json!("completed"), 1));
}

#[tokio::test]
async fn a_card_that_nobody_answers_expires_and_ends_the_run() {
    for of in BOTH {
        let scene = Scene::with(mails).await;
        let waiting = scene.waits(of).await;
        let run = id(&waiting);
        let days = |days: i64| scene.stage.at(days * 24 * 60);
        days(13);
        scene.stage.sweep().await;
        assert_eq!(scene.goes_on(run).await["state"], "waiting", "{of:?}");
        days(15);
        scene.answer(run, "1.0", "approve", json!({})).await.refused(409, "card_expired");
        scene.stage.sweep().await;
        let ended = scene.goes_on(run).await;
        assert_eq!(
            (&ended["state"], &ended["error"]["code"], &ended["cards"][0]["state"]),
            (&json!("failed"), &json!("unanswered"), &json!("expired")),
            "{of:?}: {ended:#}"
        );
        scene.answer(run, "1.0", "approve", json!({})).await.refused(409, "card_expired");
        assert_eq!(scene.world.done(), 0);
        match of {
            Of::Turn => {
                let next = json!({"chat_id": waiting["chat_id"], "message": "Hello"});
                assert_eq!(scene.say(next).await.expect(200)["state"], "waiting", "the conversation is free");
            }
            Of::Action => {
                assert_eq!(scene.stage.became(scene.action).await, ["0 failed unanswered"]);
                assert_eq!(scene.stage.action(scene.action).await.live_run, None);
            }
        }
    }
}

#[tokio::test]
async fn a_run_that_waits_can_be_cancelled() {
    for of in BOTH {
        let scene = Scene::with(mails).await;
        let waiting = scene.waits(of).await;
        let run = id(&waiting);
        let view = scene.stage.h.post(&format!("/runs/{run}/cancel"), json!({})).await.expect(202);
        assert_eq!(
            (&view["state"], &view["cards"][0]["state"]),
            (&json!("cancelled"), &json!("void")),
            "{of:?}"
        );
        scene.answer(run, "1.0", "approve", json!({})).await.refused(409, "card_void");
        assert_eq!((&scene.goes_on(run).await["state"], scene.world.done()), (&json!("cancelled"), 0));
    }
}

/// An edit withdraws the approval, so no answer can let the run continue.
#[tokio::test]
async fn an_edit_of_the_action_drops_the_question() {
    let scene = Scene::with(mails).await;
    let waiting = scene.waits(Of::Action).await;
    scene.stage.h.patch(&format!("/actions/{}", scene.action), json!({"title": "Another"})).await.expect(200);
    scene.answer(id(&waiting), "1.0", "approve", json!({})).await.refused(409, "card_void");
    assert_eq!((&scene.goes_on(id(&waiting)).await["state"], scene.world.done()), (&json!("cancelled"), 0));
}

/// A process that continues a run and can be killed.
fn executor(scene: &Scene, of: Of, run: &str) -> Process {
    let process = Process::start(&scene.stage);
    let (cx, owner) = (process.cx.clone(), scene.stage.owner.clone());
    let item = match of {
        Of::Turn => DueItem::run(&owner, run.parse().unwrap()),
        Of::Action => DueItem::action(&owner, scene.action),
    };
    let deadline = cx.clock.now() + SignedDuration::from_mins(15);
    process.runtime.spawn(async move { route::process(&cx, &item, deadline).await });
    process
}

/// Lets leases end and executors find due items until the run ends or waits.
async fn rests(scene: &Scene, of: Of, run: &str) -> Value {
    for _ in 0..20 {
        scene.stage.clock.set(scene.stage.clock.now() + SignedDuration::from_mins(20));
        match of {
            Of::Turn => take_over(&scene.stage, run.parse().unwrap()).await,
            Of::Action => {
                scene.stage.sweep().await;
                scene.stage.executors.work().await;
            }
        }
        let view = scene.view(run).await;
        if view["state"] != "running" {
            return view;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the run neither ends nor waits: {:#}", scene.view(run).await);
}

/// The process dies during a call, before or after the call has done its work. It is not known which, so the call is made again
/// only after a person has said that it did not happen.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_whose_process_died_is_unknown_until_a_person_says_what_happened() {
    for (of, acts, outcome, done) in [
        (Of::Turn, Acts::HangsBefore, "not_happened", 1),
        (Of::Turn, Acts::HangsAfter, "happened", 1),
        (Of::Action, Acts::HangsBefore, "not_happened", 1),
        (Of::Action, Acts::HangsAfter, "happened", 1),
    ] {
        let what = format!("{of:?} {acts:?}");
        let scene = Scene::with(mails).await;
        let waiting = scene.waits(of).await;
        let run = id(&waiting);
        scene.answer(run, "1.0", "approve", json!({})).await.expect(200);
        scene.world.acts(acts);
        let process = executor(&scene, of, run);
        scene.world.begun(1).await;
        process.kill();
        scene.world.acts(Acts::Answers);
        let unknown = rests(&scene, of, run).await;
        let card = &unknown["cards"][0];
        assert_eq!(
            (&unknown["state"], &card["asks"], &card["state"], &card["call_id"]),
            (&json!("waiting"), &json!("outcome"), &json!("waiting"), &json!("1.0")),
            "{what}: {unknown:#}"
        );
        assert!(card["why"].as_str().unwrap().contains("not known whether it happened"), "{card:#}");
        assert_eq!(scene.world.done(), usize::from(acts == Acts::HangsAfter), "{what}");
        if of == Of::Action {
            let [occurrence] = scene.stage.occurrences(scene.action).await.try_into().unwrap();
            assert_eq!(
                (occurrence.state, occurrence.open_effect.as_deref()),
                (OccurrenceState::Waiting, Some("send_mail"))
            );
            assert_eq!(scene.stage.became(scene.action).await, ["0 waiting effect_unknown"]);
            let why = scene.stage.h.get(&format!("/actions/{}/why", scene.action)).await.expect(200);
            assert!(why["sentence"].as_str().unwrap().contains("to say whether a call happened"), "{why:#}");
        }
        // This question can't be answered with "approve" or "reject".
        scene.answer(run, "1.0", "approve", json!({})).await.refused(409, "wrong_question");
        scene.answer(run, "1.0", "reject", json!({})).await.refused(409, "wrong_question");
        scene.answer(run, "1.0", "resolve", json!({"outcome": "maybe"})).await.refused(400, "invalid_input");
        let resolve = json!({ "outcome": outcome });
        scene.answer(run, "1.0", "resolve", resolve.clone()).await.expect(200);
        scene.answer(run, "1.0", "resolve", resolve).await.expect(200);
        let other = json!({"outcome": if outcome == "happened" { "not_happened" } else { "happened" }});
        scene.answer(run, "1.0", "resolve", other).await.refused(409, "already_answered");
        let ended = scene.goes_on(run).await;
        assert_eq!((&ended["state"], scene.world.done()), (&json!("completed"), done), "{what}: {ended:#}");
        let said = scene.said(&ended).await;
        let expected =
            if outcome == "happened" { "the person said that the call happened" } else { "It is sent." };
        assert!(said.contains(expected), "{what}: {said}");
        let stored = scene.stage.h.platform.cx.store.run(&scene.stage.owner, run.parse().unwrap()).await;
        assert_eq!(stored.unwrap().unwrap().value.open_call, None, "{what}");
        if of == Of::Action {
            assert_eq!(scene.stage.occurrences(scene.action).await[0].open_effect, None);
        }
    }
}

/// An idempotent tool is called again under the same key, and no person is asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idempotent_call_is_made_again_under_the_same_key() {
    for of in BOTH {
        let scene = Scene::with(orders).await;
        let waiting = scene.waits(of).await;
        let run = id(&waiting);
        scene.answer(run, "1.0", "approve", json!({})).await.expect(200);
        scene.world.acts(Acts::HangsAfter);
        let process = executor(&scene, of, run);
        scene.world.begun(1).await;
        process.kill();
        scene.world.acts(Acts::Answers);
        let ended = rests(&scene, of, run).await;
        assert_eq!(ended["state"], "completed", "{of:?}: {ended:#}");
        let key = format!("{run}.1.0");
        assert_eq!(scene.world.keys(), [key.clone(), key], "{of:?}");
    }
}

/// If a call gets no answer, its result is also unknown in the process that made it.
#[tokio::test]
async fn a_call_without_an_answer_is_unknown() {
    for (of, script) in [(Of::Turn, mails as Script), (Of::Action, mails), (Of::Turn, orders)] {
        let scene = Scene::with(script).await;
        let waiting = scene.waits(of).await;
        let run = id(&waiting);
        scene.world.acts(Acts::Unknown);
        scene.answer(run, "1.0", "approve", json!({})).await.expect(200);
        let unknown = scene.goes_on(run).await;
        assert_eq!((&unknown["state"], &unknown["cards"][0]["asks"]), (&json!("waiting"), &json!("outcome")));
        // A person says that it did not happen, so it is made again. Its result is unknown again.
        for times in 2..4 {
            scene.answer(run, "1.0", "resolve", json!({"outcome": "not_happened"})).await.expect(200);
            let again = scene.goes_on(run).await;
            assert_eq!(
                (&again["state"], scene.world.done()),
                (&json!("waiting"), times),
                "{of:?}: {again:#}"
            );
        }
        scene.answer(run, "1.0", "resolve", json!({"outcome": "happened"})).await.expect(200);
        let ended = scene.goes_on(run).await;
        assert_eq!((&ended["state"], scene.world.done()), (&json!("completed"), 3), "{of:?}: {ended:#}");
    }
}

/// If the run ends without an answer, it still reports the call whose result is unknown.
#[tokio::test]
async fn an_unknown_call_is_reported_when_the_run_ends() {
    for (of, ends) in
        [(Of::Turn, "cancel"), (Of::Turn, "expiry"), (Of::Action, "cancel"), (Of::Action, "expiry")]
    {
        let scene = Scene::with(mails).await;
        let waiting = scene.waits(of).await;
        let run = id(&waiting);
        scene.world.acts(Acts::Unknown);
        scene.answer(run, "1.0", "approve", json!({})).await.expect(200);
        scene.goes_on(run).await;
        if ends == "cancel" {
            scene.stage.h.post(&format!("/runs/{run}/cancel"), json!({})).await.expect(202);
        } else {
            scene.stage.at(15 * 24 * 60);
            scene.stage.sweep().await;
        }
        let ended = scene.goes_on(run).await;
        assert_eq!(ended["cards"][0]["asks"], "outcome", "{of:?} {ends}: {ended:#}");
        if ends == "expiry" {
            assert_eq!(ended["error"]["code"], "effect_unknown", "{of:?}: {ended:#}");
        }
        if of == Of::Action {
            let expected =
                if ends == "cancel" { "0 cancelled cancelled" } else { "0 unknown effect_unknown" };
            assert_eq!(scene.stage.became(scene.action).await, [expected]);
            let reason = scene.stage.occurrences(scene.action).await[0].reason.clone().unwrap();
            assert!(reason.contains("send_mail was begun"), "{reason}");
        }
        scene.answer(run, "1.0", "resolve", json!({"outcome": "happened"})).await;
        assert_eq!(scene.world.done(), 1);
    }
}

/// The process is killed at every event that it stores, from the answer to the end. In every case the call is made once, or a
/// person is asked whether it happened.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_is_made_twice_if_the_process_dies() {
    for of in BOTH {
        let (mut asked, mut finished) = (0, 0);
        // From the first event of the new executor to the last event of the run.
        for kill_at in 1..12_u64 {
            let scene = Scene::with(mails).await;
            scene.world.acts(Acts::Slowly);
            let waiting = scene.waits(of).await;
            let run = id(&waiting);
            let before = scene.events(run).await.len() as u64;
            scene.answer(run, "1.0", "approve", json!({})).await.expect(200);
            let process = executor(&scene, of, run);
            let run_id: RunId = run.parse().unwrap();
            // An executor claims the run.
            let mut live = loop {
                if let Some(live) = process.cx.live.listen(run_id) {
                    break live;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            };
            let _ = live.wait_for(|recent| recent.newest > before + kill_at).await;
            process.kill();
            let mut view = rests(&scene, of, run).await;
            if view["state"] == "waiting" {
                asked += 1;
                assert_eq!(view["cards"][0]["asks"], "outcome", "{of:?} at {kill_at}: {view:#}");
                let outcome = if scene.world.done() > 0 { "happened" } else { "not_happened" };
                scene.answer(run, "1.0", "resolve", json!({ "outcome": outcome })).await.expect(200);
                view = rests(&scene, of, run).await;
            } else {
                finished += 1;
            }
            assert_eq!(
                (&view["state"], scene.world.done()),
                (&json!("completed"), 1),
                "{of:?} at {kill_at}: {view:#}"
            );
        }
        println!("{of:?}: {finished} finished by themselves, {asked} asked");
        assert!(asked > 0 && finished > 0, "{of:?}: {asked} asked, {finished} finished");
    }
}

/// A process dies after it has stored an answer and before it has sent a message. The run is still due.
#[tokio::test]
async fn an_answer_whose_message_is_lost_is_found_by_the_sweep() {
    for of in BOTH {
        let scene = Scene::with(mails).await;
        let waiting = scene.waits(of).await;
        let run = id(&waiting);
        scene.answer(run, "1.0", "approve", json!({})).await.expect(200);
        let queue = scene.stage.h.platform.engines().queue("scheduled-executor").unwrap();
        for message in queue.receive(10, Duration::ZERO).await {
            let _ = queue.delete(message.receipt);
        }
        assert_eq!((&scene.goes_on(run).await["state"], scene.world.done()), (&json!("running"), 0));
        scene.stage.clock.set(scene.stage.clock.now() + SignedDuration::from_secs(61));
        scene.stage.sweep().await;
        let ended = scene.goes_on(run).await;
        assert_eq!((&ended["state"], scene.world.done()), (&json!("completed"), 1), "{of:?}: {ended:#}");
    }
}

/// A turn begins in a process that dies before the turn has asked a person.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_whose_process_dies_before_it_asks_asks_once() {
    let scene = Scene::with(mails).await;
    for kill_at in 1..6 {
        let process = Process::start(&scene.stage);
        let topic = Topic::Agent(scene.stage.agent.parse().unwrap(), None);
        let run = process.begins(&scene.stage, topic, "Send it").await;
        while let Some(mut live) = process.cx.live.listen(run) {
            if live.wait_for(|recent| recent.newest >= kill_at).await.is_ok() {
                break;
            }
        }
        process.kill();
        take_over(&scene.stage, run).await;
        let view = scene.view(&run.to_string()).await;
        let seen = scene.events(&run.to_string()).await;
        let asked = seen.iter().filter(|event| event.name == "call.waiting").count();
        assert_eq!((&view["state"], asked), (&json!("waiting"), 1), "at {kill_at}: {view:#}");
    }
    assert_eq!(scene.world.done(), 0);
}

/// The reply to an OpenAI client says where the person answers.
#[tokio::test]
async fn a_completion_whose_call_waits_says_where_to_answer() {
    let scene = Scene::with(mails).await;
    let h = &scene.stage.h;
    let mut body = json!({
        "model": scene.stage.agent, "messages": [{"role": "user", "content": "Send it"}],
    });
    let whole = h.post("/v1/chat/completions", body.clone()).await.expect(200);
    let text = whole["choices"][0]["message"]["content"].as_str().unwrap();
    let call = format!("/runs/{}/calls/1.0", whole["id"].as_str().unwrap());
    assert!(text.contains(&format!("{call}/approve")) && text.contains("send_mail"), "{text}");
    body["stream"] = true.into();
    let streamed = send(h.request(Method::POST, "/v1/chat/completions").json(&body)).await;
    let text = streamed.body.as_str().unwrap();
    assert!(text.contains("/calls/1.0/approve") && text.contains("/calls/1.0/reject"), "{text}");
    assert_eq!(scene.world.done(), 0);
    h.post(&format!("{call}/approve"), json!({})).await.expect(200);
    let run = scene.goes_on(whole["id"].as_str().unwrap()).await;
    assert_eq!((&run["state"], scene.world.done()), (&json!("completed"), 1), "{run:#}");
}
