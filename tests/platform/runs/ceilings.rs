//! Ceilings of costs: at a ceiling, a run waits with a card, and a person can raise the ceiling.

use std::time::Duration;

use domain::actions::{ActionState, OccurrenceState};
use domain::ceilings::CeilingOf;
use domain::ids::Owner;
use futures::future::join_all;
use jiff::SignedDuration;
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use shared::config::AuthConfig;
use shared::store::accounts::spend::Spender;
use tests::made::reserve;
use tests::model::{Says, ScriptedModel};
use tests::process::{followed, take_over};
use tests::stage::{Stage, noon};
use tests::{Answer, Harness, things};

/// A model with a known price: 10 dollars for a million tokens of output.
const MODEL: &str = "gpt-5.1";

/// The output of a call that costs a cent or a little more.
const A_CENT: usize = 1_000;

async fn stage(model: &ScriptedModel, day_micros: i64, day_max_micros: i64) -> Stage {
    let mut config = PlatformConfig { models: model.config(MODEL), ..PlatformConfig::in_memory() };
    config.budget.day_micros = day_micros;
    config.budget.day_max_micros = day_max_micros;
    config.budget.run_micros = 100_000_000;
    Stage::of(config).await
}

async fn talker() -> ScriptedModel {
    ScriptedModel::start(|_| Says::Text("Here it is.".into())).await
}

async fn say(stage: &Stage) -> Answer {
    stage.h.post(&format!("/agents/{}/chat", stage.agent), json!({"message": "Write a brief"})).await
}

async fn answer(stage: &Stage, view: &Value, how: &str, body: Value) -> Answer {
    let (run, call) = (view["run_id"].as_str().unwrap(), view["cards"][0]["call_id"].as_str().unwrap());
    stage.h.post(&format!("/runs/{run}/calls/{call}/{how}"), body).await
}

/// Continues a turn after an answer, as the executor does.
async fn goes_on(stage: &Stage, view: &Value) -> Value {
    let run = view["run_id"].as_str().unwrap();
    take_over(stage, run.parse().unwrap()).await;
    stage.h.get(&format!("/runs/{run}")).await.expect(200)
}

async fn usage(stage: &Stage) -> Value {
    stage.h.get("/usage").await.expect(200)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_waits_at_the_ceiling_of_a_day_until_a_person_raises_it() {
    let model = talker().await;
    let stage = stage(&model, 1_000, 5_000_000).await;
    let view = say(&stage).await.expect(200);
    assert_eq!((&view["state"], view["cost_micros"].as_i64()), (&json!("waiting"), Some(0)), "{view:#}");
    assert!(view.get("finished_at").is_none(), "it has not ended: {view:#}");
    let card = &view["cards"][0];
    assert_eq!(
        (&card["asks"], &card["tool"], &card["call_id"]),
        (&json!("ceiling"), &json!("model"), &json!("1.0"))
    );
    let ceiling = &card["ceiling"];
    assert_eq!(
        (&ceiling["of"], &ceiling["limit_micros"], &ceiling["committed_micros"]),
        (&json!("day"), &json!(1_000), &json!(0))
    );
    assert_eq!(ceiling["max_raise_micros"], 4_999_000);
    assert!(
        ceiling["raise_by_micros"].as_i64() >= ceiling["needs_micros"].as_i64().map(|needs| needs - 1_000),
        "{ceiling:#}"
    );
    assert!(card["why"].as_str().unwrap().starts_with("today's ceiling of 1000 micro-dollars"), "{card:#}");
    // After midnight, the day has a new ceiling, and nobody needs to answer.
    assert_eq!(card["expires_at"], "2026-11-22T00:00:00Z");
    assert_eq!((model.asked(), usage(&stage).await["committed_micros"].as_i64()), (0, Some(0)));

    let least = (ceiling["needs_micros"].as_i64().unwrap() - 1_000).max(1);
    let limits = format!("must be {least} to 4999000 micro-dollars");
    for body in [
        json!({"raise_by_micros": 0}),
        json!({"raise_by_micros": least - 1}),
        json!({"raise_by_micros": 4_999_001}),
    ] {
        let refused = answer(&stage, &view, "approve", body).await.refused(400, "invalid_input");
        assert_eq!(refused["errors"][0]["field"], "raise_by_micros", "{refused:#}");
        assert!(refused["errors"][0]["message"].as_str().unwrap().starts_with(&limits), "{refused:#}");
    }
    answer(&stage, &view, "approve", json!({"hash": "0".repeat(64)})).await.refused(409, "card_mismatch");
    answer(&stage, &view, "resolve", json!({"outcome": "happened"})).await.refused(409, "wrong_question");

    // Several clicks raise it once.
    let body = json!({"hash": card["hash"], "raise_by_micros": 2_000_000});
    let clicks = join_all((0..4).map(|_| answer(&stage, &view, "approve", body.clone()))).await;
    assert!(clicks.iter().all(|click| click.status == 200), "{clicks:?}");
    let today = usage(&stage).await;
    assert_eq!((&today["ceiling_micros"], &today["raised_micros"]), (&json!(2_001_000), &json!(2_000_000)));
    let view = goes_on(&stage, &view).await;
    assert_eq!((&view["state"], &view["message"]), (&json!("completed"), &json!("Here it is.")), "{view:#}");
    assert!(view["finished_at"].is_string() && view["prefix_hash"].is_string(), "{view:#}");
    let today = usage(&stage).await;
    assert_eq!(
        (&today["spent_micros"], &today["committed_micros"]),
        (&view["cost_micros"], &view["cost_micros"])
    );
    let names: Vec<&str> = ["run.started", "call.waiting", "run.waiting", "call.approved"].into();
    let events = followed(&stage.h, view["run_id"].as_str().unwrap().parse().unwrap()).await;
    let told: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(&told[..4], names, "{told:?}");

    // The next day begins with the ceiling as it was.
    stage.clock.set(stage.clock.now() + SignedDuration::from_hours(24));
    assert_eq!(usage(&stage).await["ceiling_micros"], 1_000);
    assert_eq!(say(&stage).await.expect(200)["state"], "waiting");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_may_leave_a_ceiling_as_it_is() {
    let model = talker().await;
    let stage = stage(&model, 1_000, 5_000_000).await;
    let view = say(&stage).await.expect(200);
    answer(&stage, &view, "reject", json!({"reason": "Tomorrow is early enough"})).await.expect(200);
    let view = goes_on(&stage, &view).await;
    assert_eq!(
        (&view["state"], &view["error"]["code"]),
        (&json!("failed"), &json!("budget_exceeded")),
        "{view:#}"
    );
    let detail = view["error"]["detail"].as_str().unwrap();
    assert!(detail.ends_with("and a person did not raise it: Tomorrow is early enough"), "{detail}");
    assert_eq!((model.asked(), usage(&stage).await["ceiling_micros"].as_i64()), (0, Some(1_000)));
    // The conversation goes on.
    assert_eq!(say(&stage).await.expect(200)["state"], "waiting");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unanswered_card_ends_with_the_day_of_its_ceiling() {
    let model = talker().await;
    let stage = stage(&model, 1_000, 5_000_000).await;
    let id = stage.approved(json!({"schedule": {"every": "1d"}})).await;
    stage.happens_at(24 * 60).await;
    assert_eq!(stage.became(id).await, ["1440 waiting ceiling"]);
    assert_eq!(stage.action(id).await.state, ActionState::NeedsApproval);
    let why = stage.h.get(&format!("/actions/{id}/why")).await.expect(200).to_string();
    assert!(why.contains("a person to raise a ceiling of costs"), "{why}");
    stage.happens_at(36 * 60 - 1).await;
    assert_eq!(stage.became(id).await, ["1440 waiting ceiling"]);
    stage.happens_at(36 * 60).await;
    assert_eq!(stage.became(id).await, ["1440 failed unanswered"]);
    // The next morning is not lost.
    model.costs(10);
    stage.h.patch("/account", json!({"budget": {}})).await.expect(200);
    stage.happens_at(48 * 60).await;
    assert_eq!(stage.became(id).await, ["1440 failed unanswered", "2880 waiting ceiling"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_of_an_action_goes_on_where_it_stopped() {
    fn saves(messages: &[Value]) -> Says {
        match messages.iter().filter(|message| message["role"] == "tool").count() {
            0 => Says::Call("save_output", json!({"title": "Report", "content": "Oil costs 7."})),
            _ => Says::Text("Done.".into()),
        }
    }
    let model = ScriptedModel::start(saves).await;
    let stage = Stage::with(model.config(MODEL)).await;
    model.costs(9_990);
    let at = noon() + SignedDuration::from_mins(60);
    let more = json!({"schedule": {"at": at.to_string()}, "budget": {"per_run_micros": 100_000}});
    let id = stage.approved(more).await;
    stage.happens_at(60).await;
    let [occurrence] = stage.occurrences(id).await.try_into().unwrap();
    assert_eq!(occurrence.state, OccurrenceState::Waiting);
    let run = format!("/runs/{}", occurrence.run_id);
    let view = stage.h.get(&run).await.expect(200);
    let card = &view["cards"][0];
    assert_eq!((&card["ceiling"]["of"], &card["call_id"]), (&json!("run"), &json!("2.0")), "{view:#}");
    assert!(card["ceiling"]["committed_micros"].as_i64() >= Some(99_000), "{card:#}");
    // Enough for the rest of the work, and for its check.
    answer(&stage, &view, "approve", json!({"raise_by_micros": 300_000})).await.expect(200);
    stage.executors.work().await;
    let [occurrence] = stage.occurrences(id).await.try_into().unwrap();
    assert_eq!((occurrence.state, model.asked()), (OccurrenceState::Succeeded, 2), "{occurrence:?}");
    let view = stage.h.get(&run).await.expect(200);
    let cost = view["cost_micros"].as_i64().unwrap();
    assert!((290_000..=400_000).contains(&cost) && cost == occurrence.cost_micros, "{view:#}");
    assert_eq!(
        stage.h.get(&format!("/actions/{id}/runs/{}/outputs", occurrence.run_id)).await.expect(200)["data"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

/// The ceilings of a month count what was spent before they were set, and each counts its own costs only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn months_of_owners_agents_and_actions_have_ceilings() {
    let model = ScriptedModel::start(|_| Says::Text("Here it is.".into())).await;
    let stage = stage(&model, 100_000_000, 100_000_000).await;
    let id = stage.approved(json!({"schedule": {"every": "1d"}, "budget": {"per_run_micros": 10_000_000, "per_month_micros": 60_500}})).await;
    model.costs(A_CENT);
    let bound = |view: &Value| {
        let of = &view["cards"][0]["ceiling"]["of"];
        (view["state"].as_str().unwrap().to_owned(), of.as_str().unwrap_or_default().to_owned())
    };
    let done = || ("completed".to_owned(), String::new());
    let waits = |of: &str| ("waiting".to_owned(), of.to_owned());
    // What is left pays for no call.
    let left = 300;
    assert_eq!(bound(&say(&stage).await.expect(200)), done());
    let agent = format!("/agents/{}", stage.agent);
    let spent = usage(&stage).await["spent_micros"].as_i64().unwrap();
    stage.h.patch(&agent, json!({"budget": {"per_month_micros": 2 * spent + left}})).await.expect(200);
    assert_eq!(bound(&say(&stage).await.expect(200)), done());
    assert_eq!(bound(&say(&stage).await.expect(200)), waits("agent_month"));
    // Another agent has its own month.
    let other = stage.h.agent().await;
    let path = format!("/agents/{other}/chat");
    let of_other = || stage.h.post(&path, json!({"message": "Hello"}));
    assert_eq!(bound(&of_other().await.expect(200)), done());
    let month = usage(&stage).await["spent_micros"].as_i64().unwrap() + left;
    stage.h.patch("/account", json!({"budget": {"per_month_micros": month}})).await.expect(200);
    assert_eq!(bound(&of_other().await.expect(200)), waits("month"));
    let account = stage.h.get("/account").await.expect(200);
    assert_eq!(account["budget"], json!({"per_month_micros": month}));
    let limits = stage.h.get("/limits").await.expect(200);
    assert_eq!(limits["ceilings"]["month_micros"], month, "{limits:#}");

    // The runs of the action: two calls for the work, and one for its check. Conversations do not count for it.
    stage.h.patch(&agent, json!({"budget": {}})).await.expect(200);
    stage.h.patch("/account", json!({"budget": {}})).await.expect(200);
    stage.happens_at(24 * 60).await;
    let first = stage.occurrences(id).await[0].cost_micros;
    assert!((30_000..31_000).contains(&first), "{first}");
    stage.happens_at(48 * 60).await;
    let became = stage.became(id).await;
    assert_eq!(became.len(), 2, "{became:?}");
    assert!(became[0].starts_with("1440 succeeded") && became[1].starts_with("2880 succeeded"), "{became:?}");
    stage.happens_at(72 * 60).await;
    assert_eq!(stage.became(id).await[2], "4320 waiting ceiling");
    let waiting = &stage.occurrences(id).await[2];
    let view = stage.h.get(&format!("/runs/{}", waiting.run_id)).await.expect(200);
    assert_eq!(bound(&view).1, "action_month", "{view:#}");
    // In December, the month begins anew.
    assert_eq!(view["cards"][0]["expires_at"], "2026-12-01T00:00:00Z");

    let bad = json!({"budget": {"per_day_micros": 0, "per_month_micros": -1}});
    let refused = stage.h.patch("/account", bad).await.refused(400, "invalid_input");
    assert_eq!(
        (&refused["errors"][0]["field"], &refused["errors"][1]["field"]),
        (&json!("budget.per_day_micros"), &json!("budget.per_month_micros"))
    );
    for path in [agent, format!("/actions/{id}")] {
        let bad = json!({"budget": {"per_run_micros": 1, "per_month_micros": 1_000_000_001}});
        let refused = stage.h.patch(&path, bad).await.refused(400, "invalid_input");
        assert_eq!(refused["errors"][0]["field"], "budget.per_month_micros", "{path} {refused:#}");
    }
}

/// Cards of several runs cannot raise a ceiling further than the deployment allows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_cards_raise_a_ceiling_within_its_limit() {
    let model = talker().await;
    let stage = stage(&model, 1_000, 3_000_000).await;
    let waiting = join_all((0..3).map(|_| say(&stage))).await;
    let waiting: Vec<Value> = waiting.into_iter().map(|answer| answer.expect(200)).collect();
    let body = json!({"raise_by_micros": 1_500_000});
    let answers = join_all(waiting.iter().map(|view| answer(&stage, view, "approve", body.clone()))).await;
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409, 409]);
    let refused = answers.into_iter().find(|answer| answer.status == 409).unwrap();
    refused.refused(409, "ceiling_at_maximum");
    assert_eq!(usage(&stage).await["raised_micros"], 1_500_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_100_parallel_reservations_none_passes_a_ceiling() {
    let model = talker().await;
    let stage = stage(&model, 1_000_000, 1_000_000).await;
    let (cx, now) = (&stage.h.platform.cx, stage.clock.now());
    let reserved = join_all((0..100).map(|_| reserve(cx, &stage.owner, now, 30_000, 1_000_000))).await;
    assert_eq!(reserved.iter().filter(|reserved| **reserved).count(), 33);
    assert_eq!(usage(&stage).await["committed_micros"], 990_000);
}

/// The first reply reserves nearly all of the ceiling. The others find less than a call needs, and wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_100_parallel_turns_none_passes_a_ceiling() {
    const MONTH: i64 = 200_000;
    let model = talker().await;
    model.costs(60);
    model.takes(Duration::from_millis(300));
    let stage = stage(&model, 5_000_000, 5_000_000).await;
    let month = json!({"budget": {"per_month_micros": MONTH}});
    stage.h.patch(&format!("/agents/{}", stage.agent), month).await.expect(200);
    let watch = async {
        for _ in 0..200 {
            let committed = usage(&stage).await["committed_micros"].as_i64().unwrap();
            assert!(committed <= MONTH, "{committed}");
        }
    };
    let (turns, ()) = tokio::join!(join_all((0..100).map(|_| say(&stage))), watch);
    let today = usage(&stage).await;
    assert_eq!(today["spent_micros"], today["committed_micros"], "{today:#}");
    let waiting = turns.iter().filter(|turn| turn.body["state"] == "waiting");
    for turn in waiting.clone() {
        assert_eq!(turn.body["cards"][0]["ceiling"]["of"], "agent_month", "{turn:?}");
    }
    let completed = turns.iter().filter(|turn| turn.body["state"] == "completed").count();
    assert!(
        completed > 0 && waiting.clone().count() > 0 && completed + waiting.count() == 100,
        "{completed}"
    );
}

/// A setup conversation has no cards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_setup_conversation_fails_at_a_ceiling() {
    let model = talker().await;
    let stage = stage(&model, 1_000, 5_000_000).await;
    let refused = stage.h.post("/setup/chat", json!({"message": "I want to follow prices"})).await;
    let refused = refused.refused(402, "budget_exceeded");
    assert!(refused["detail"].as_str().unwrap().contains("1000 micro-dollars"), "{refused:#}");
}

/// A platform that needs credentials, and the keys of one owner.
struct Guarded {
    h: Harness,
    admin: String,
    writer: String,
    agent: String,
}

impl Guarded {
    async fn start(model: &ScriptedModel, change: impl FnOnce(&mut PlatformConfig)) -> Self {
        let mut config = PlatformConfig { models: model.config(MODEL), ..PlatformConfig::in_memory() };
        config.auth = AuthConfig::On(None);
        change(&mut config);
        let h = Harness::with(config).await;
        let admin = h.key_of("me").await;
        let writer = h.key_with("me", json!({"name": "writer", "scopes": ["write"]})).await;
        let caller = things::Caller { h: &h, key: Some(&writer) };
        let new = json!({"name": "Mine", "goal": "An agent"});
        let agent = caller.call(Method::POST, "/agents", new).await.expect(201);
        let agent = agent["agent_id"].as_str().unwrap().to_owned();
        Self { h, admin, writer, agent }
    }

    async fn call(&self, key: &str, method: Method, path: &str, body: Value) -> Answer {
        things::Caller { h: &self.h, key: Some(key) }.call(method, path, body).await
    }

    async fn budget(&self, path: &str, budget: Value) {
        self.call(&self.admin, Method::PATCH, path, json!({ "budget": budget })).await.expect(200);
    }

    /// A turn that waits with a card for this ceiling: the paths of its run and of the card.
    async fn waits(&self, of: &str) -> (String, String) {
        let said = json!({"message": "Write a brief", "if_busy": "interrupt"});
        let path = format!("/agents/{}/chat", self.agent);
        let view = self.call(&self.writer, Method::POST, &path, said).await.expect(200);
        assert_eq!(
            (&view["state"], &view["cards"][0]["ceiling"]["of"]),
            (&json!("waiting"), &json!(of)),
            "{view:#}"
        );
        let run = format!("/runs/{}", view["run_id"].as_str().unwrap());
        let card = format!("{run}/calls/{}", view["cards"][0]["call_id"].as_str().unwrap());
        (run, card)
    }

    /// By how much people have raised this ceiling.
    async fn raised(&self, of: CeilingOf) -> i64 {
        let (cx, owner) = (&self.h.platform.cx, Owner::new("me").unwrap());
        let spender = Spender { owner: &owner, agent: Some(self.agent.parse().unwrap()), action: None };
        cx.store.spend_of(spender, of, cx.clock.now()).await.unwrap().raised_micros
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_needs_the_scope_that_sets_the_ceiling() {
    let model = talker().await;
    let stage = Guarded::start(&model, |_| {}).await;
    for (of, name, path, budget, needs_admin) in [
        (CeilingOf::Month, "month", "/account", json!({"per_month_micros": 200}), true),
        (CeilingOf::Day, "day", "/account", json!({"per_day_micros": 200}), true),
        (CeilingOf::AgentMonth, "agent_month", "/agents/", json!({"per_month_micros": 200}), false),
        (CeilingOf::Run, "run", "/agents/", json!({"per_run_micros": 200}), false),
    ] {
        let path = if path.ends_with('/') { format!("{path}{}", stage.agent) } else { path.to_owned() };
        stage.budget(&path, budget).await;
        let asked = model.asked();
        let (run, card) = stage.waits(name).await;
        let approve = format!("{card}/approve");
        if needs_admin {
            for body in
                [json!({}), json!({"raise_by_micros": 999_999_999_800_i64}), json!({"raise_by_micros": 1})]
            {
                let refused = stage.call(&stage.writer, Method::POST, &approve, body).await;
                let problem = refused.refused(403, "scope_missing");
                assert_eq!(problem["current"], json!({"needed": "admin", "held": "write"}), "{of:?}");
            }
            // Words are no answer, in any way of talking.
            let yes = json!({"message": "Yes, raise the ceiling"});
            let chat = format!("/agents/{}/chat", stage.agent);
            let said = stage.call(&stage.writer, Method::POST, &chat, yes).await;
            assert_eq!(said.expect(200)["state"], "waiting");
            let messages = json!([{"role": "user", "content": "yes"}]);
            let yes = json!({"model": stage.agent, "messages": messages});
            let said = stage.call(&stage.writer, Method::POST, "/v1/chat/completions", yes).await;
            assert!(said.status == 409 || said.body.to_string().contains("ceiling"), "{said:?}");
            let view = stage.call(&stage.writer, Method::GET, &run, Value::Null).await.expect(200);
            assert_eq!(
                (&view["state"], &view["cards"][0]["state"]),
                (&json!("waiting"), &json!("waiting")),
                "{view:#}"
            );
            assert_eq!((stage.raised(of).await, model.asked()), (0, asked));
            // What costs nothing needs no more than `write`.
            stage.call(&stage.admin, Method::POST, &approve, json!({})).await.expect(200);
            // Also a repeated answer is refused.
            stage.call(&stage.writer, Method::POST, &approve, json!({})).await.refused(403, "scope_missing");
        } else {
            stage.call(&stage.writer, Method::POST, &approve, json!({})).await.expect(200);
        }
        assert!(of == CeilingOf::Run || stage.raised(of).await > 0, "{of:?}");
        stage.budget(&path, json!({})).await;
        stage.call(&stage.writer, Method::POST, &format!("{run}/cancel"), json!({})).await.expect(202);
    }
    // No tool of MCP answers a card.
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    let request = stage.h.request(Method::POST, "/mcp").bearer_auth(&stage.admin);
    let request = request.header("accept", "application/json, text/event-stream").json(&message);
    let listed = tests::send(request).await.expect(200)["result"]["tools"].to_string();
    assert!(!listed.contains("call_id") && !listed.contains("raise_by_micros"), "{listed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_raise_pays_for_the_next_call_and_keeps_to_the_maximum_of_the_deployment() {
    const MOST: i64 = 5_000_000;
    let model = talker().await;
    let stage = Guarded::start(&model, |config| config.budget.month_max_micros = Some(MOST)).await;
    stage.budget("/account", json!({"per_month_micros": 200})).await;
    let (run, card) = stage.waits("month").await;
    let approve = format!("{card}/approve");
    let ceiling = stage.call(&stage.writer, Method::GET, &run, Value::Null).await.expect(200);
    let ceiling = ceiling["cards"][0]["ceiling"].clone();
    assert_eq!(ceiling["max_raise_micros"], MOST - 200);
    let least = ceiling["needs_micros"].as_i64().unwrap() - 200;
    for by in [1, least - 1, MOST - 199, 999_999_999_800] {
        let body = json!({"raise_by_micros": by});
        let refused =
            stage.call(&stage.admin, Method::POST, &approve, body).await.refused(400, "invalid_input");
        let named = format!("must be {least} to {} micro-dollars", MOST - 200);
        assert_eq!(refused["errors"][0]["field"], "raise_by_micros");
        let message = refused["errors"][0]["message"].as_str().unwrap();
        assert!(message.starts_with(&named) && message.ends_with(&format!("is {by}")), "{message}");
    }
    let body = json!({"raise_by_micros": least});
    let view = stage.call(&stage.admin, Method::POST, &approve, body).await.expect(200);
    assert_eq!(view["cards"][0]["state"], "approved");
    assert_eq!(stage.raised(CeilingOf::Month).await, least);

    // The same maximum holds where a month is set.
    let task = json!({"instructions": "Do it", "expected_output": "A page"});
    let action = json!({"title": "Report", "task_config": task});
    let path = format!("/agents/{}/actions", stage.agent);
    let made = stage.call(&stage.writer, Method::POST, &path, action.clone()).await.expect(201);
    let made = format!("/actions/{}", made["action_id"].as_str().unwrap());
    let agent = format!("/agents/{}", stage.agent);
    for (method, path, mut body) in [
        (Method::PATCH, "/account", json!({})),
        (Method::POST, "/agents", json!({"name": "a", "goal": "b"})),
        (Method::PATCH, agent.as_str(), json!({})),
        (Method::POST, path.as_str(), action),
        (Method::PATCH, made.as_str(), json!({})),
    ] {
        body["budget"] = json!({"per_month_micros": MOST + 1, "per_run_micros": 7});
        if path == "/account" {
            body["budget"] = json!({"per_month_micros": MOST + 1});
        }
        let refused = stage.call(&stage.admin, method.clone(), path, body.clone()).await;
        let refused = refused.refused(400, "invalid_input");
        assert_eq!(
            refused["errors"][0],
            json!({"field": "budget.per_month_micros", "message": format!("must be 1 to {MOST}, is {}", MOST + 1)}),
            "{method} {path}"
        );
        body["budget"]["per_month_micros"] = json!(MOST);
        let taken = stage.call(&stage.admin, method.clone(), path, body).await;
        assert!((200..300).contains(&taken.status), "{method} {path} {taken:?}");
    }
}

/// An owner without a ceiling has that of the deployment, and a raise and a setting together do not pass it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_maximum_of_the_deployment_holds_for_everybody() {
    let model = talker().await;
    let month = |micros| move |config: &mut PlatformConfig| config.budget.month_max_micros = Some(micros);
    let stage = Guarded::start(&model, month(100)).await;
    let path = format!("/agents/{}/chat", stage.agent);
    let view = stage.call(&stage.writer, Method::POST, &path, json!({"message": "Hello"})).await;
    view.refused(402, "budget_exceeded");
    let limits = stage.call(&stage.writer, Method::GET, "/limits", Value::Null).await.expect(200);
    let ceilings = &limits["ceilings"];
    assert_eq!((&ceilings["month_micros"], &ceilings["month_max_micros"]), (&json!(100), &json!(100)));

    let days = |config: &mut PlatformConfig| {
        (config.budget.day_micros, config.budget.day_max_micros) = (2_000_000, 3_000_000);
    };
    let stage = Guarded::start(&model, days).await;
    let limits = stage.call(&stage.writer, Method::GET, "/limits", Value::Null).await.expect(200);
    assert_eq!(limits["ceilings"]["month_max_micros"], 93_000_000);
    assert!(limits["ceilings"].get("month_micros").is_none(), "{limits:#}");
    stage.budget("/account", json!({"per_day_micros": 200})).await;
    let (_, card) = stage.waits("day").await;
    let body = json!({"raise_by_micros": 2_999_800});
    stage.call(&stage.admin, Method::POST, &format!("{card}/approve"), body).await.expect(200);
    stage.budget("/account", json!({})).await;
    let today = stage.call(&stage.writer, Method::GET, "/usage", Value::Null).await.expect(200);
    assert_eq!(today["ceiling_micros"], 3_000_000);
}
