//! Helpers of the theme agent: specialists, reviewers, second opinions and workers.

use domain::ids::{ProjectId, RunId};
use reqwest::Method;
use serde_json::{Value, json};
use shared::request::Invocation;
use shared::store::Once;
use tests::events::{self, Event};
use tests::model::{Says, ScriptedModel};
use tests::process::{Process, followed, take_over};
use tests::stage::Stage;
use tests::themes::put;
use tests::{Harness, send};
use themes::changes::Place;
use themes::turn::{self, NewTurn};

const CHAT: &str = "/projects/default/chat";
const CHANGES: &str = "/projects/default/changes";
const PRICE: &str = "snippets/price.liquid";
const CSS: &str = "assets/price.css";
const TEXT: &str = "<p class=\"price\">{{ product.price | money }}</p>\n";
const RULES: &str = ".price { color: red; }\n";
const CHANGE: &str = "Show the currency behind the price in the price snippet";

fn version(text: &str) -> String {
    use sha2::{Digest, Sha256};
    domain::hex(&Sha256::digest(text))[..12].to_owned()
}

async fn with_price(model: &ScriptedModel) -> Stage {
    with(model.config("scripted")).await
}

async fn with(config: models::ModelsConfig) -> Stage {
    let stage = Stage::with(config).await;
    put(&stage.h, PRICE, TEXT).await.expect(201);
    put(&stage.h, CSS, RULES).await.expect(201);
    stage
}

async fn say(h: &Harness, body: Value) -> Value {
    let request = h.request(Method::POST, CHAT).header("accept", "application/json").json(&body);
    let said = send(request).await;
    if said.status != 200 {
        let runs = h.get("/runs?kind=theme").await.expect(200);
        let events = followed(h, runs["data"][0]["run_id"].as_str().unwrap().parse().unwrap()).await;
        let told: Vec<&Value> = events.iter().map(|event| &event.data).collect();
        panic!("{:#} {told:#?}", said.body);
    }
    said.body
}

async fn events(h: &Harness, run: &Value) -> Vec<Event> {
    followed(h, run["run_id"].as_str().unwrap().parse().unwrap()).await
}

/// Those of this kind.
fn of<'a>(events: &'a [Event], name: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event.name == name).map(|event| &event.data).collect()
}

fn said(messages: &[Value]) -> String {
    json!(messages).to_string()
}

/// What a helper was told first, if the messages are of one.
fn is_helper(messages: &[Value], role: &str) -> bool {
    said(messages).contains(&format!("# You are: {role}"))
}

fn replace(path: &str, text: &str, old: &str, new: &str) -> Says {
    let replacement = json!({"old": old, "new": new});
    Says::Call(
        "search_replace",
        json!({"path": path, "version": version(text), "replacements": [replacement]}),
    )
}

fn specialist(kind: &str, path: &str) -> (&'static str, Value) {
    ("run_specialist", json!({"kind": kind, "task": format!("Change {path} as agreed."), "files": [path]}))
}

/// Two specialists share the work.
fn shares(messages: &[Value]) -> Says {
    let all = said(messages);
    let is_done = all.contains("edit ") && all.contains(" of chs_");
    if is_helper(messages, "Liquid specialist") {
        return match is_done {
            true => Says::Text("snippets/price.liquid:1 shows the currency.".to_owned()),
            false => replace(PRICE, TEXT, "| money }}", "| money_with_currency }}"),
        };
    }
    if is_helper(messages, "CSS specialist") {
        return match is_done {
            true => Says::Text("assets/price.css:1 is green.".to_owned()),
            false => replace(CSS, RULES, "red", "green"),
        };
    }
    if all.contains("It has changed") {
        return Says::Text("Both are done.".to_owned());
    }
    Says::Calls(vec![specialist("liquid", PRICE), specialist("css", CSS)])
}

#[tokio::test]
async fn specialists_of_different_files_work_at_the_same_time_in_one_change_set() {
    let model = ScriptedModel::held(shares).await;
    let stage = with_price(&model).await;
    let h = &stage.h;
    model.allow(1);
    let turn = say(h, json!({"message": CHANGE}));
    let both = async {
        // The turn and both of its helpers ask before anybody is answered again.
        model.asked_times(3).await;
        model.allow(100);
    };
    let (run, ()) = tokio::join!(turn, both);
    assert_eq!((&run["state"], &run["message"]), (&json!("completed"), &json!("Both are done.")), "{run:#}");
    let events = events(h, &run).await;
    let (started, ended) = (of(&events, "helper.started"), of(&events, "helper.ended"));
    assert!(started.len() >= 2 && ended.len() == 2, "{:?}", events::names(&events));
    assert_eq!((&ended[0]["role"], &ended[0]["edited"]), (&json!("liquid_specialist"), &json!([PRICE])));
    assert_eq!((&ended[1]["role"], &ended[1]["edited"]), (&json!("css_specialist"), &json!([CSS])));
    // All of it is one change set, and the turn's.
    let sets = h.get(CHANGES).await.expect(200);
    assert_eq!(sets["data"].as_array().unwrap().len(), 1, "{sets:#}");
    let set = format!("{CHANGES}/{}", run["theme"]["change_set_id"].as_str().unwrap());
    let set = h.get(&set).await.expect(200);
    let diff = set["diff"].as_str().unwrap();
    assert!(diff.contains("money_with_currency") && diff.contains("green"), "{diff}");
    assert_eq!(set["by"]["run_id"], run["run_id"]);
    // A helper is a run of its own, with what it was told and what it cost.
    let helper = h.get(&format!("/runs/{}", ended[0]["run_id"].as_str().unwrap())).await.expect(200);
    assert_eq!((&helper["kind"], &helper["state"]), (&json!("helper"), &json!("completed")), "{helper:#}");
    let of_turn = &helper["theme"]["helper"];
    assert_eq!((&of_turn["turn"], &of_turn["files"]), (&run["run_id"], &json!([PRICE])), "{helper:#}");
    assert!(helper["tainted"].is_object());
    // What it is offered is what it may do.
    let sent = model.sent();
    let offered = |role: &str| {
        let request = sent.iter().find(|one| is_helper(one["messages"].as_array().unwrap(), role)).unwrap();
        let tools = request["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let tools = offered("CSS specialist");
    assert!(tools.iter().any(|tool| tool == "edit_lines"), "{tools:?}");
    for tool in ["apply_changes", "update_plan", "run_specialist", "read_messages"] {
        assert!(!tools.iter().any(|other| other == tool), "{tool}");
    }
}

/// Both specialists want the same file.
fn shares_a_file(messages: &[Value]) -> Says {
    let all = said(messages);
    if is_helper(messages, "CSS specialist") {
        let (first, second) = (all.contains("the first"), all.contains("of chs_"));
        return match (first, second) {
            (_, true) => Says::Text("Done.".to_owned()),
            (true, false) => replace(CSS, RULES, "red", "green"),
            (false, false) => replace(CSS, &RULES.replace("red", "green"), "green", "blue"),
        };
    }
    if all.contains("It has changed") {
        return Says::Text("Both are done.".to_owned());
    }
    let task = |text: &str| ("run_specialist", json!({"kind": "css", "task": text, "files": [CSS]}));
    Says::Calls(vec![task("Be the first."), task("Be the other.")])
}

#[tokio::test]
async fn two_specialists_never_hold_one_file_at_the_same_time() {
    let model = ScriptedModel::start(shares_a_file).await;
    let stage = with_price(&model).await;
    let h = &stage.h;
    let run = say(h, json!({"message": CHANGE})).await;
    assert_eq!(run["state"], "completed", "{run:#}");
    let events = events(h, &run).await;
    let order: Vec<&str> = events
        .iter()
        .filter(|event| event.name.starts_with("helper."))
        .map(|event| event.name.as_str())
        .collect();
    assert_eq!(order, ["helper.started", "helper.ended", "helper.started", "helper.ended"]);
    let set = format!("{CHANGES}/{}", run["theme"]["change_set_id"].as_str().unwrap());
    let diff = h.get(&set).await.expect(200)["diff"].clone();
    assert!(diff.as_str().unwrap().contains("+.price { color: blue; }"), "{diff}");
}

/// A specialist of the styles edits the snippet, and a worker edits the styles.
fn oversteps(messages: &[Value]) -> Says {
    let all = said(messages);
    if is_helper(messages, "CSS specialist") || is_helper(messages, "worker") {
        if all.contains("not one of your files") || all.contains("reads, and changes nothing") {
            return Says::Text("I may not.".to_owned());
        }
        return replace(PRICE, TEXT, "| money }}", "| money_with_currency }}");
    }
    match (all.contains("Report of the CSS specialist"), all.contains("Report of the worker")) {
        (false, _) => Says::Calls(vec![specialist("css", CSS)]),
        (true, false) => Says::Call("spawn_workers", json!({"tasks": ["Look.", "Look again."]})),
        (true, true) => Says::Text("NO CHANGE: nobody may.".to_owned()),
    }
}

#[tokio::test]
async fn a_helper_changes_nothing_but_its_files() {
    let model = ScriptedModel::start(oversteps).await;
    let stage = with_price(&model).await;
    let h = &stage.h;
    let run = say(h, json!({"message": CHANGE})).await;
    assert_eq!(run["state"], "completed", "{run:#}");
    let told = model.sent().last().unwrap()["messages"].to_string();
    assert!(told.contains("It has changed nothing."), "{told}");
    assert!(told.contains("Report of the worker 1 ") && told.contains("Report of the worker 2 "), "{told}");
    assert_eq!(h.get(CHANGES).await.expect(200)["data"], json!([]));
    let events = events(h, &run).await;
    assert_eq!(of(&events, "helper.ended").len(), 3);
    assert!(!events::names(&events).contains(&"theme.changed"));
}

/// It calls helpers with what can't be done.
fn asks_badly(messages: &[Value]) -> Says {
    let all = said(messages);
    let calls = vec![
        ("run_specialist", json!({"kind": "php", "task": "x", "files": [CSS]})),
        ("run_specialist", json!({"kind": "css", "task": "x", "files": []})),
        ("run_specialist", json!({"kind": "css", "task": " ", "files": [CSS]})),
        ("run_specialist", json!({"kind": "css", "task": "x", "files": [CSS, CSS]})),
        ("spawn_workers", json!({"tasks": ["a", "b", "c", "d", "e"]})),
        ("run_review", json!({"task": "x".repeat(8_001)})),
        ("get_second_opinion", json!({"question": "x", "model": "mine"})),
    ];
    match all.contains("unknown variant") || all.contains("changes nothing, so no specialist") {
        true => Says::Text("NO CHANGE: I can't.".to_owned()),
        false => Says::Calls(calls),
    }
}

#[tokio::test]
async fn what_a_helper_is_told_has_limits() {
    let model = ScriptedModel::start(asks_badly).await;
    let stage = with_price(&model).await;
    let h = &stage.h;
    let run = say(h, json!({"message": CHANGE})).await;
    assert_eq!(run["state"], "completed", "{run:#}");
    let events = events(h, &run).await;
    let told: Vec<&str> =
        of(&events, "tool.result").iter().map(|data| data["result"].as_str().unwrap()).collect();
    let expected =
        ["unknown variant", "files: must", "task: must", "files: must", "tasks: must", "task: must"];
    for (told, expected) in told.iter().zip(expected) {
        assert!(told.contains(expected), "{told} {expected}");
    }
    assert!(told[6].contains("unknown field `model`"), "{}", told[6]);
    assert!(of(&events, "helper.started").is_empty());
    // A turn that asks changes nothing, so no specialist may.
    let asks = say(h, json!({"message": "How does it look?", "mode": "ask"})).await;
    assert_eq!(asks["state"], "completed", "{asks:#}");
}

/// It edits, and has the edit reviewed.
fn is_reviewed(messages: &[Value]) -> Says {
    let all = said(messages);
    if is_helper(messages, "reviewer") || is_helper(messages, "second opinion") {
        return match all.contains("money_with_currency") {
            true => Says::Text("VERDICT: OK".to_owned()),
            false => Says::Call("show_changes", json!({})),
        };
    }
    match (all.contains("of chs_"), all.contains("Report of the reviewer"), all.contains("second opinion by"))
    {
        (false, ..) => replace(PRICE, TEXT, "| money }}", "| money_with_currency }}"),
        (_, false, _) => Says::Call("run_review", json!({"task": "The currency is shown."})),
        (_, _, false) => Says::Call("get_second_opinion", json!({"question": "Is it right?"})),
        _ => Says::Text("It is reviewed.".to_owned()),
    }
}

#[tokio::test]
async fn a_review_sees_the_edits_of_the_turn() {
    let model = ScriptedModel::start(is_reviewed).await;
    let stage = with_price(&model).await;
    let h = &stage.h;
    let run = say(h, json!({"message": CHANGE})).await;
    assert_eq!((&run["state"], &run["message"]), (&json!("completed"), &json!("It is reviewed.")), "{run:#}");
    let told = model.sent().last().unwrap()["messages"].to_string();
    assert!(told.contains("VERDICT: OK"), "{told}");
    assert!(told.contains("by compatible/scripted"), "it says which model: {told}");
}

/// Twenty specialists in one reply, each of which makes one file.
fn asks_twenty(messages: &[Value]) -> Says {
    let all = said(messages);
    if is_helper(messages, "CSS specialist") {
        let own = (1..=20).find(|number| all.contains(&format!("Make number {number}."))).unwrap();
        return match all.contains("of chs_") {
            true => Says::Text(format!("Number {own} is there.")),
            false => Says::Call(
                "create_file",
                json!({"path": format!("assets/lamp-{own}.css"), "content": ".lamp { color: red; }\n"}),
            ),
        };
    }
    if all.contains("It has changed") {
        return Says::Text("They are made.".to_owned());
    }
    let make = |number: u32| {
        let (task, path) = (format!("Make number {number}."), format!("assets/lamp-{number}.css"));
        ("run_specialist", json!({"kind": "css", "task": task, "files": [path]}))
    };
    Says::Calls((1..=20).map(make).collect())
}

#[tokio::test]
async fn what_a_turn_may_not_call_never_begins_and_all_costs_are_within_its_ceiling() {
    let model = ScriptedModel::start(asks_twenty).await;
    model.costs(500);
    let stage = with(model.config("gpt-5.1")).await;
    let h = &stage.h;
    let run = say(h, json!({"message": CHANGE})).await;
    assert_eq!(run["state"], "completed", "{run:#}");
    let events = events(h, &run).await;
    let (started, ended) = (of(&events, "helper.started"), of(&events, "helper.ended"));
    assert_eq!((started.len(), ended.len()), (16, 16), "each of them once");
    let runs = h.get("/runs?kind=helper&limit=100").await.expect(200);
    assert_eq!(runs["data"].as_array().unwrap().len(), 16);
    let set = format!("{CHANGES}/{}", run["theme"]["change_set_id"].as_str().unwrap());
    assert_eq!(h.get(&set).await.expect(200)["files"].as_array().unwrap().len(), 16);
    let costs: i64 = ended.iter().map(|ended| ended["cost_micros"].as_i64().unwrap()).sum();
    assert_eq!(run["helpers_micros"], costs, "{run:#}");
    // Those that work at the same time can't spend more than is left.
    let mut spent = 0;
    let mut at_once = 0;
    for event in events.iter().filter(|event| event.name.starts_with("helper.")) {
        match event.name.as_str() {
            "helper.started" => at_once += event.data["ceiling_micros"].as_i64().unwrap(),
            _ => {
                spent += event.data["cost_micros"].as_i64().unwrap();
                at_once = 0;
            }
        }
        assert!(spent + at_once < 1_000_000, "{spent} and {at_once}");
    }
}

/// A helper works for ever.
fn never_ends(messages: &[Value]) -> Says {
    let all = said(messages);
    if is_helper(messages, "worker") {
        let number = all.matches("call_1").count();
        return Says::Call(
            "read_lines",
            json!({"reads": [{"path": PRICE, "start": 1, "end": 1}], "context": number}),
        );
    }
    match all.contains("Report of the worker") {
        true => Says::Text("NO CHANGE: I know enough.".to_owned()),
        false => Says::Call("spawn_workers", json!({"tasks": ["Look for ever."]})),
    }
}

#[tokio::test]
async fn a_helper_has_a_ceiling_and_limits_of_its_own() {
    // A known price, and replies that cost: a helper may spend a quarter of what the turn may.
    let model = ScriptedModel::start(never_ends).await;
    model.costs(2_000);
    let stage = with(model.config("claude-sonnet-5-5")).await;
    let h = &stage.h;
    let run = say(h, json!({"message": CHANGE})).await;
    assert_eq!(run["state"], "completed", "{run:#}");
    let events = events(h, &run).await;
    let (started, ended) = (of(&events, "helper.started"), of(&events, "helper.ended"));
    let ceiling = started[0]["ceiling_micros"].as_i64().unwrap();
    let cost = ended[0]["cost_micros"].as_i64().unwrap();
    assert!(ceiling <= 250_000 && cost > 0 && cost <= ceiling, "{cost} of {ceiling}");
    assert_eq!(run["helpers_micros"], cost, "{run:#}");
    let helper = h.get(&format!("/runs/{}", ended[0]["run_id"].as_str().unwrap())).await.expect(200);
    assert!(helper["cards"].as_array().unwrap().is_empty(), "nobody is asked to raise it: {helper:#}");
}

#[tokio::test]
async fn who_cancels_a_turn_cancels_its_helpers() {
    let model = ScriptedModel::held(shares).await;
    let stage = with_price(&model).await;
    let h = &stage.h;
    model.allow(1);
    let turn = say(h, json!({"message": CHANGE}));
    let cancelled = async {
        model.asked_times(3).await;
        let runs = h.get("/runs?kind=theme").await.expect(200);
        let run = runs["data"][0]["run_id"].as_str().unwrap().to_owned();
        h.post(&format!("/runs/{run}/cancel"), json!({})).await;
        run
    };
    let (_, run) = tokio::join!(turn, cancelled);
    let run: RunId = run.parse().unwrap();
    let events = followed(h, run).await;
    for started in of(&events, "helper.started") {
        let id: RunId = started["run_id"].as_str().unwrap().parse().unwrap();
        let ended = followed(h, id).await;
        assert_eq!(ended.last().unwrap().name, "run.cancelled", "{:?}", events::names(&ended));
    }
    let turn = h.get(&format!("/runs/{run}")).await.expect(200);
    assert_eq!(turn["state"], "cancelled", "{turn:#}");
    let ends: Vec<&Value> = of(&events, "helper.ended").iter().map(|ended| &ended["state"]).collect();
    assert_eq!(ends, ["cancelled", "cancelled"], "{:?}", events::names(&events));
    assert_eq!(h.get(CHANGES).await.expect(200)["data"], json!([]));
}

/// Begins a turn in a process of its own.
async fn begins(process: &Process, stage: &Stage) -> RunId {
    let (cx, owner) = (process.cx.clone(), stage.owner.clone());
    let began = process.runtime.spawn(async move {
        let place = Place { cx: &cx, owner: &owner, project: ProjectId::DEFAULT };
        let input = NewTurn { message: CHANGE.to_owned(), ..NewTurn::default() };
        let invocation = Invocation { deadline: jiff::Timestamp::MAX };
        turn::start(place, &Once::none(), input, invocation).await
    });
    began.await.unwrap().unwrap().run()
}

/// Whether a helper has failed in the process that was killed: no other one has taken it over.
async fn died(h: &Harness, turn: &[Event]) -> bool {
    for ended in of(turn, "helper.ended") {
        let id = ended["run_id"].as_str().unwrap().parse().unwrap();
        let was_taken_over = followed(h, id).await.iter().any(|event| event.name == "step.restarted");
        if ended["state"] == "failed" && !was_taken_over {
            return true;
        }
    }
    false
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_with_helpers_that_is_killed_at_any_time_goes_on_with_the_same_helpers() {
    let model = ScriptedModel::start(shares).await;
    let stores = {
        let stage = with_price(&model).await;
        let process = Process::start(&stage);
        let run = begins(&process, &stage).await;
        let stores = followed(&stage.h, run).await.len() as u64;
        process.kill();
        stores
    };
    let mut taken_over = 0;
    for kill_at in 1..stores {
        // As for turns: a runtime that ends lets requests fail first, which a process that is killed does not.
        for _ in 0..5 {
            let stage = with_price(&model).await;
            let process = Process::start(&stage);
            let run = begins(&process, &stage).await;
            while let Some(mut live) = process.cx.live.listen(run) {
                if live.wait_for(|recent| recent.newest >= kill_at).await.is_ok() {
                    break;
                }
            }
            process.kill();
            take_over(&stage, run).await;
            let view = stage.h.get(&format!("/runs/{run}")).await.expect(200);
            let all = followed(&stage.h, run).await;
            if view["error"]["code"] == "temporarily_unavailable" || died(&stage.h, &all).await {
                continue;
            }
            taken_over += usize::from(all.iter().any(|event| event.name == "step.restarted"));
            assert_eq!(view["state"], "completed", "killed at event {kill_at}: {view:#}");
            let sets = stage.h.get(CHANGES).await.expect(200);
            let sets = sets["data"].as_array().unwrap();
            let ended = of(&all, "helper.ended");
            assert_eq!((sets.len(), &sets[0]["edits"]), (1, &json!(2)), "killed at {kill_at}: {ended:#?}");
            let runs = stage.h.get("/runs?kind=helper").await.expect(200);
            let runs = runs["data"].as_array().unwrap();
            assert_eq!(runs.len(), 2, "killed at event {kill_at}: {runs:#?}");
            break;
        }
    }
    assert!(taken_over > 0, "no kill came in time");
}
