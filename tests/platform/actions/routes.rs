//! Actions: every route, every refusal, every race.

use base::clock::{Clock, ManualClock};
use domain::actions::{
    Command, ExecutionResult, Occurrence, OccurrenceCommand, OccurrenceState, Reason, ReasonCode, plan_due,
    transition,
};
use domain::assets::NewAsset;
use domain::chats::signals::ActionDraft;
use domain::chats::{Chat, ProposalBody};
use domain::ids::{ActionId, AgentId, ChatId, Owner, ProposalId, RunId};
use domain::runs::RunState;
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use shared::Cx;
use shared::edge::extract::Actor;
use shared::flows::actions::{self, proposals};
use shared::flows::agents;
use shared::store::runs::RunOutput;
use shared::store::table::Order;
use shared::store::{Once, Store};
use tests::{Answer, Harness, send};

/// A Saturday.
const NOON: &str = "2026-11-21T12:00:00Z";

/// A platform whose clock stands at noon, in which nothing runs automatically.
async fn still() -> (Harness, ManualClock) {
    let clock = ManualClock::at(NOON.parse().unwrap());
    let config = PlatformConfig {
        clock: Clock::Manual(clock.clone()),
        automatic: false,
        ..PlatformConfig::in_memory()
    };
    (Harness::with(config).await, clock)
}

fn local() -> Owner {
    Owner::new("local").unwrap()
}

fn report() -> Value {
    json!({
        "title": "Report",
        "task_config": {"instructions": "Compare the prices", "expected_output": "A page"},
    })
}

fn daily() -> Value {
    json!({"cron": "0 9 * * *"})
}

/// The action without what the change did, which only the answer to the change has.
fn without_effects(action: &Value) -> Value {
    let mut action = action.clone();
    action.as_object_mut().unwrap().remove("effects").unwrap();
    action
}

async fn define(h: &Harness, body: Value) -> Value {
    let agent = h.agent().await;
    h.post(&format!("/agents/{agent}/actions"), body).await.expect(201)
}

/// Defines an action and returns its path.
async fn defined(h: &Harness) -> String {
    path(&define(h, report()).await)
}

fn path(action: &Value) -> String {
    format!("/actions/{}", action["action_id"].as_str().unwrap())
}

fn id(path: &str) -> ActionId {
    path.rsplit('/').next().unwrap().parse().unwrap()
}

/// One step of a test about an action: a call, or what an executor does.
async fn step(h: &Harness, action: &str, step: &str) -> Answer {
    let body = match step {
        "approve" => {
            let hash = h.get(action).await.expect(200)["approval_hash"].clone();
            json!({"approval_hash": hash})
        }
        "schedule" => json!({"schedule": daily()}),
        "wait" | "succeed" => {
            execute(&h.platform.cx, &local(), id(action), step).await;
            return h.get(action).await;
        }
        _ => json!({}),
    };
    h.post(&format!("{action}/{step}"), body).await
}

/// What an executor does with the live run, all at once.
async fn execute(cx: &Cx, owner: &Owner, action: ActionId, what: &str) {
    let loaded = actions::load_live(cx, owner, action).await.unwrap();
    let (live, now) = (loaded.live.unwrap(), cx.clock.now());
    let lease_until = now + SignedDuration::from_mins(15);
    let fence = live.value.fence + 1;
    let (end, outcome) = match what {
        "wait" => {
            let reason = Reason::new(ReasonCode::Asked, "which week?");
            (OccurrenceCommand::Wait { fence, reason, answer_by: None }, ExecutionResult::Waiting)
        }
        _ => (OccurrenceCommand::Succeed { fence, score: Some(90), note: None }, ExecutionResult::Succeeded),
    };
    let commands = [OccurrenceCommand::Claim { lease_until }, OccurrenceCommand::Start { fence }, end];
    let occurrence =
        commands.into_iter().fold(live.value, |occurrence, c| occurrence.transition(c, now).unwrap());
    let ended = Command::OccurrenceEnded { run: occurrence.run_id, outcome };
    let next = transition(&loaded.action.value, ended, now).unwrap();
    let mut writes = actions::action_writes(owner, &loaded.action, &next, Some(&occurrence), now).unwrap();
    writes.push(Store::replace_occurrence(owner, &occurrence, live.version).unwrap());
    assert!(cx.store.write_all(writes).await.unwrap().done());
}

async fn occurrence(h: &Harness, action: &str, run: &Value) -> Value {
    h.get(&format!("{action}/runs/{}", run.as_str().unwrap())).await.expect(200)
}

#[tokio::test]
async fn an_action_is_defined_read_listed_changed_and_deleted() {
    let (h, _) = still().await;
    let agent = h.agent().await;
    let mut body = report();
    body["schedule"] = json!({"cron": "0 9 * * MON-FRI", "timezone": "Europe/Berlin"});
    body["grants"] = json!(["save_output", "generate_actions", "save_output"]);
    let made = h.post(&format!("/agents/{agent}/actions"), body).await;
    assert_eq!(made.headers["etag"], "\"1\"");
    let location = made.headers["location"].to_str().unwrap().to_owned();
    let made = made.expect(201);
    assert_eq!(location, path(&made));
    let hash = made["approval_hash"].as_str().unwrap();
    assert_eq!(hash.len(), 64);
    let mut expected = made.clone();
    expected.as_object_mut().unwrap().extend(
        json!({
            "agent_id": agent, "title": "Report", "description": "", "priority": "medium",
            "task_config": {"instructions": "Compare the prices", "expected_output": "A page"},
            "grants": ["generate_actions", "save_output"], "model_tier": "standard",
            "budget": {"per_run_micros": 1_000_000}, "state": "defined", "approval": null,
            "anchor": null, "next_due": null, "live_run": null, "queued": 0, "version": 1,
            "schedule_text": "At 09:00 on weekdays (Europe/Berlin).",
            "created_at": NOON, "updated_at": NOON,
        })
        .as_object()
        .unwrap()
        .clone(),
    );
    assert_eq!(made, expected);
    let mut read = h.get(&location).await.expect(200);
    assert!(read.as_object_mut().unwrap().remove("expected_cost").is_some(), "{read:#}");
    assert_eq!(read, made);

    let other = define(&h, report()).await;
    let list = async |query: &str| h.get(&format!("/actions{query}")).await.expect(200)["data"].clone();
    assert_eq!(list("").await, json!([other, made]));
    assert_eq!(list(&format!("?agent_id={agent}")).await, json!([made]));
    assert_eq!(list("?state=defined&limit=1").await, json!([other]));
    assert_eq!(list("?state=scheduled").await, json!([]));
    h.get("/actions?state=open").await.refused(400, "invalid_input");

    let edit = |version: &str, title: &str| {
        let edit = h.request(Method::PATCH, &location).header("if-match", version);
        send(edit.json(&json!({"title": title})))
    };
    let changed = edit("\"1\"", "Weekly report").await;
    assert_eq!(changed.headers["etag"], "\"2\"");
    let changed = changed.expect(200);
    assert_eq!((&changed["title"], &changed["version"]), (&json!("Weekly report"), &json!(2)));
    // A run is told the title, so the approval binds it.
    assert_ne!(changed["approval_hash"], made["approval_hash"]);
    assert_eq!(
        edit("\"1\"", "Else").await.refused(409, "version_conflict")["current"],
        without_effects(&changed)
    );
    let problem = h.patch(&location, json!({"grants": ["send_email"], "title": ""})).await;
    assert_eq!(problem.refused(400, "invalid_input")["errors"].as_array().unwrap().len(), 2);
    h.patch(&location, json!({"state": "completed"})).await.refused(400, "invalid_input");

    let stale = send(h.request(Method::DELETE, &location).header("if-match", "\"1\"")).await;
    stale.refused(409, "version_conflict");
    assert_eq!(h.delete(&location).await.status, 204);
    h.delete(&location).await.refused(404, "not_found");
    h.get(&location).await.refused(404, "not_found");
    assert_eq!(list("").await, json!([other]));
}

#[tokio::test]
async fn a_bad_definition_is_refused_by_name() {
    let (h, _) = still().await;
    let define = format!("/agents/{}/actions", h.agent().await);
    let cases = [
        (json!({}), vec!["title", "task_config.instructions", "task_config.expected_output"]),
        (json!({"schedule": {"every": "1s"}}), vec!["schedule.every"]),
        (json!({"schedule": {"cron": "0 9 * * *", "timezone": "Mars/Base"}}), vec!["schedule.timezone"]),
        (json!({"grants": ["send_email"]}), vec!["grants"]),
        (json!({"budget": {"per_run_micros": 0}}), vec!["budget.per_run_micros"]),
        (json!({"priority": "urgent"}), vec!["priority"]),
        (json!({"proposal_id": "prp_1"}), vec!["proposal_id"]),
        (json!({"status": "done"}), vec!["status"]),
    ];
    for (change, fields) in cases {
        let mut body = if change == json!({}) { json!({}) } else { report() };
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let problem = h.post(&define, body).await.refused(400, "invalid_input");
        let named: Vec<&str> =
            problem["errors"].as_array().unwrap().iter().map(|e| e["field"].as_str().unwrap()).collect();
        assert_eq!(named, fields, "{change}");
    }
    let nobody = AgentId::from_uuid(h.platform.cx.clock.uuid());
    h.post(&format!("/agents/{nobody}/actions"), report()).await.refused(404, "not_found");
    assert_eq!(h.get("/actions").await.expect(200)["data"], json!([]));

    // The agent's value is the default.
    let agent = json!({
        "name": "a", "goal": "b", "model_tier": "fast", "budget": {"per_run_micros": 5_000},
    });
    let agent = h.post("/agents", agent).await.expect(201)["agent_id"].as_str().unwrap().to_owned();
    // Archived agents keep their plans.
    assert_eq!(h.patch(&format!("/agents/{agent}"), json!({"status": "archived"})).await.status, 200);
    let action = h.post(&format!("/agents/{agent}/actions"), report()).await.expect(201);
    assert_eq!(
        (&action["model_tier"], &action["budget"]),
        (&json!("fast"), &json!({"per_run_micros": 5_000}))
    );
}

#[tokio::test]
async fn an_action_without_a_ceiling_of_a_run_has_that_of_its_agent_or_of_the_deployment() {
    let mut config = PlatformConfig::in_memory();
    config.budget.run_micros = 70_000;
    let h = Harness::with(config).await;
    let agent = async |budget: Value| {
        let agent = json!({"name": "a", "goal": "b", "budget": budget});
        h.post("/agents", agent).await.expect(201)["agent_id"].as_str().unwrap().to_owned()
    };
    let define = async |agent: &str, budget: Value| {
        let mut body = report();
        body["budget"] = budget;
        h.post(&format!("/agents/{agent}/actions"), body).await.expect(201)
    };
    let plain = agent(json!({})).await;
    let thrifty = agent(json!({"per_run_micros": 5_000})).await;
    for (agent, asked, expected) in [
        (&plain, json!(null), json!({"per_run_micros": 70_000})),
        (&plain, json!({}), json!({"per_run_micros": 70_000})),
        (&plain, json!({"per_month_micros": 9}), json!({"per_run_micros": 70_000, "per_month_micros": 9})),
        (&plain, json!({"per_run_micros": 7}), json!({"per_run_micros": 7})),
        (&thrifty, json!({"per_month_micros": 9}), json!({"per_run_micros": 5_000, "per_month_micros": 9})),
    ] {
        let action = define(agent, asked.clone()).await;
        assert_eq!(action["budget"], expected, "{asked}");
    }
    // An action keeps what was approved: a change that leaves the ceiling out does not change it.
    let action = define(&plain, json!({"per_run_micros": 7, "per_month_micros": 9})).await;
    let path = format!("/actions/{}", action["action_id"].as_str().unwrap());
    let hash = json!({"approval_hash": action["approval_hash"]});
    h.post(&format!("{path}/approve"), hash).await.expect(200);
    let same = h.patch(&path, json!({"budget": {"per_month_micros": 9}})).await.expect(200);
    assert_eq!((&same["budget"], &same["approval_hash"]), (&action["budget"], &action["approval_hash"]));
    assert!(same["approval"].is_object(), "{same:#}");
    let changed = h.patch(&path, json!({"budget": {"per_month_micros": 10}})).await.expect(200);
    assert_eq!(changed["budget"], json!({"per_run_micros": 7, "per_month_micros": 10}));
    assert_ne!(changed["approval_hash"], action["approval_hash"]);
}

async fn propose(cx: &Cx, agent: AgentId, chat: Option<ChatId>, body: ProposalBody) -> ProposalId {
    let run_id = Some(RunId::from_uuid(cx.clock.uuid()));
    let origin = proposals::Origin { agent_id: agent, chat_id: chat, run_id };
    let agent = cx.store.agent(&local(), agent).await.unwrap().unwrap().value;
    let proposal = proposals::of_action(cx, &local(), &agent, origin, body).await.unwrap();
    let writes = Store::proposal_writes(&local(), &proposal).unwrap();
    assert!(cx.store.write_all(writes).await.unwrap().done());
    proposal.proposal_id
}

#[tokio::test]
async fn a_proposal_is_accepted_once_and_with_changes() {
    let (h, _) = still().await;
    let cx = &h.platform.cx;
    let agent: AgentId = h.agent().await.parse().unwrap();
    let chat_id = ChatId::from_uuid(cx.clock.uuid());
    let chat = Chat {
        chat_id,
        agent_id: Some(agent),
        project_id: None,
        title: String::new(),
        created_at: cx.clock.now(),
        reset_after: None,
    };
    let chat_writes = Store::chat_writes(&local(), &chat).unwrap();
    assert!(cx.store.write_all(chat_writes).await.unwrap().done());
    let draft: ActionDraft = serde_json::from_value(json!({
        "title": "Report", "description": "Prices", "priority": "high",
        "task_config": {"instructions": "Compare", "expected_output": "A page"},
        "schedule": {"every": "1h"},
    }))
    .unwrap();
    let proposal = propose(cx, agent, Some(chat_id), ProposalBody::Action(draft.clone())).await;
    let define = format!("/agents/{agent}/actions");

    // A proposal of another agent is not found.
    let other = h.agent().await;
    let taking = json!({"proposal_id": proposal, "title": "Hourly report"});
    h.post(&format!("/agents/{other}/actions"), taking.clone()).await.refused(404, "not_found");
    let broken = json!({"proposal_id": proposal, "title": ""});
    h.post(&define, broken).await.refused(400, "invalid_input");

    let made = h.post_once(&define, "take", taking.clone()).await;
    let again = h.post_once(&define, "take", taking.clone()).await;
    assert_eq!(again.headers["idempotent-replayed"], "true");
    let made = made.expect(201);
    assert_eq!(again.expect(201), made);
    assert_eq!(
        (&made["title"], &made["priority"], &made["schedule"]["every"]),
        (&json!("Hourly report"), &json!("high"), &json!("1h"))
    );
    h.post(&define, taking).await.refused(404, "not_found");
    assert_eq!(cx.store.generated(&local(), chat_id).await.unwrap().1, [id(&path(&made))]);
    assert_eq!(h.get("/actions").await.expect(200)["data"], json!([made]));

    // If many accept one proposal, one of them gets it.
    let proposal = propose(cx, agent, None, ProposalBody::Action(draft)).await;
    let taking = json!({"proposal_id": proposal});
    let answers = join_all((0..8).map(|_| h.post(&define, taking.clone()))).await;
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 404, 404, 404, 404, 404, 404, 404]);

    let asset = NewAsset { title: "T".into(), content: "x".into(), ..NewAsset::default() };
    let origin =
        proposals::Origin { agent_id: agent, chat_id: None, run_id: Some(RunId::from_uuid(cx.clock.uuid())) };
    let asset = proposals::of_asset(cx, &local(), origin, asset).await.unwrap();
    assert!(cx.store.write_all(Store::proposal_writes(&local(), &asset).unwrap()).await.unwrap().done());
    let problem = h.post(&define, json!({"proposal_id": asset.proposal_id})).await;
    assert_eq!(problem.refused(400, "invalid_input")["errors"][0]["field"], "proposal_id");
}

#[tokio::test]
async fn an_approval_is_of_the_content_that_was_seen() {
    let (h, _) = still().await;
    let mut body = report();
    body["schedule"] = daily();
    let seen = define(&h, body).await;
    let action = path(&seen);
    let approve = format!("{action}/approve");
    let hash = json!({"approval_hash": seen["approval_hash"]});
    h.post(&approve, json!({})).await.refused(400, "invalid_input");

    let changed = json!({"task_config": {"instructions": "Compare nothing"}});
    let changed = h.patch(&action, changed).await.expect(200);
    assert_ne!(changed["approval_hash"], seen["approval_hash"]);
    let problem = h.post(&approve, hash).await.refused(409, "approval_mismatch");
    assert_eq!(problem["current"], without_effects(&changed));

    let hash = json!({"approval_hash": changed["approval_hash"]});
    let approved = h.post(&approve, hash.clone()).await;
    assert_eq!(approved.headers["etag"], "\"3\"");
    let approved = approved.expect(200);
    assert_eq!(
        (&approved["state"], &approved["next_due"], &approved["approval"]),
        (
            &json!("scheduled"),
            &json!("2026-11-22T09:00:00Z"),
            &json!({"hash": changed["approval_hash"], "approved_at": NOON})
        )
    );
    // Approving the same content again changes nothing.
    let again = h.post(&approve, hash).await.expect(200);
    assert_eq!(without_effects(&again), without_effects(&approved));
    assert_eq!((&again["effects"], &approved["effects"]), (&json!([]), &json!(["approved", "scheduled"])));
    // A new priority needs no new approval; new grants do.
    let urgent = h.patch(&action, json!({"priority": "high"})).await.expect(200);
    assert_eq!((&urgent["state"], &urgent["approval"]), (&json!("scheduled"), &approved["approval"]));
    let granted = h.patch(&action, json!({"grants": ["generate_actions"]})).await.expect(200);
    assert_eq!(
        (&granted["state"], &granted["approval"], &granted["next_due"]),
        (&json!("defined"), &Value::Null, &Value::Null)
    );
}

#[tokio::test]
async fn all_concurrent_approvals_are_answered_and_one_is_written() {
    let (h, _) = still().await;
    let mut body = report();
    body["schedule"] = daily();
    let action = define(&h, body).await;
    let (path, hash) = (path(&action), json!({"approval_hash": action["approval_hash"]}));
    let approve = format!("{path}/approve");
    let answers = join_all((0..8).map(|_| h.post(&approve, hash.clone()))).await;
    let bodies: Vec<Value> = answers.into_iter().map(|answer| answer.expect(200)).collect();
    assert_eq!(bodies[0]["version"], 2);
    let same = bodies.iter().map(without_effects);
    assert!(same.into_iter().all(|body| body == without_effects(&bodies[0])));
    let is_approved = |body: &&Value| body["effects"] != json!([]);
    assert_eq!(bodies.iter().filter(is_approved).count(), 1);
}

#[tokio::test]
async fn an_action_goes_through_its_life() {
    let (h, _) = still().await;
    let stories: &[&[(&str, &str)]] = &[
        &[
            ("approve", "defined"),
            ("schedule", "scheduled"),
            ("pause", "paused"),
            ("pause", "paused"),
            ("resume", "scheduled"),
            ("resume", "scheduled"),
            ("cancel", "defined"),
            ("dismiss", "dismissed"),
            ("dismiss", "dismissed"),
        ],
        // An approval without a schedule covers the first schedule. Another schedule needs another approval.
        &[("schedule", "defined"), ("approve", "scheduled"), ("complete", "completed")],
        &[
            ("approve", "defined"),
            ("run", "in_progress"),
            ("succeed", "completed"),
            ("run", "in_progress"),
            ("wait", "needs_approval"),
            ("resume", "in_progress"),
            ("cancel", "defined"),
        ],
        &[
            ("schedule", "defined"),
            ("approve", "scheduled"),
            ("run", "in_progress"),
            ("pause", "paused"),
            ("succeed", "paused"),
            ("resume", "scheduled"),
            ("run", "in_progress"),
            ("cancel", "scheduled"),
            ("run", "in_progress"),
            ("wait", "needs_approval"),
            ("dismiss", "dismissed"),
        ],
    ];
    for story in stories {
        let action = defined(&h).await;
        for (n, (what, expected)) in story.iter().enumerate() {
            let answer = step(&h, &action, what).await;
            assert!(answer.status < 300, "{story:?} {n}: {}", answer.body);
            let now = h.get(&action).await.expect(200);
            assert_eq!(now["state"], *expected, "{story:?} {n}");
        }
    }
}

#[tokio::test]
async fn impossible_commands_are_refused_with_the_reason_and_the_action() {
    let (h, _) = still().await;
    let cases: &[(&[&str], &str, &str)] = &[
        (&[], "run", "not_approved"),
        (&[], "pause", "wrong_state"),
        (&[], "resume", "wrong_state"),
        (&[], "cancel", "wrong_state"),
        (&["approve", "run"], "run", "run_live"),
        (&["approve", "run"], "complete", "run_live"),
        (&["approve", "run"], "dismiss", "run_live"),
        (&["approve", "run"], "pause", "wrong_state"),
        (&["approve", "run", "wait"], "run", "run_live"),
        (&["dismiss"], "approve", "wrong_state"),
        (&["dismiss"], "schedule", "wrong_state"),
        (&["dismiss"], "run", "wrong_state"),
        (&["dismiss"], "complete", "wrong_state"),
    ];
    for (story, what, code) in cases {
        let action = defined(&h).await;
        for what in *story {
            assert!(step(&h, &action, what).await.status < 300, "{story:?}");
        }
        let before = h.get(&action).await.expect(200);
        let problem = step(&h, &action, what).await.refused(409, code);
        assert_eq!(problem["current"], before, "{story:?} {what}");
        assert_eq!(h.get(&action).await.expect(200), before, "{story:?} {what}");
    }
    let action = defined(&h).await;
    let schedule = format!("{action}/schedule");
    let past = json!({"schedule": {"at": "2026-11-20T12:00:00Z"}});
    h.post(&schedule, past).await.refused(409, "schedule_in_the_past");
    let ended = json!({"schedule": {"every": "1h", "end_at": "2026-11-20T12:00:00Z"}});
    h.post(&schedule, ended).await.refused(409, "never_due");
    let problem = h.post(&schedule, json!({"schedule": {"cron": "61 * * * *"}})).await;
    assert_eq!(problem.refused(400, "invalid_input")["errors"][0]["field"], "schedule.cron");
    h.post(&schedule, json!({})).await.refused(400, "invalid_input");
    let long = json!({"message": "m".repeat(32_001)});
    h.post(&format!("{action}/resume"), long).await.refused(400, "invalid_input");
}

#[tokio::test]
async fn a_run_by_hand_begins_once_and_at_once() {
    let (h, _) = still().await;
    let agent = h.agent().await;
    let action = path(&h.post(&format!("/agents/{agent}/actions"), report()).await.expect(201));
    assert_eq!(step(&h, &action, "approve").await.status, 200);
    let run = format!("{action}/run");
    let first = h.post_once(&run, "now", json!({})).await;
    let location = first.headers["location"].to_str().unwrap().to_owned();
    let again = h.post_once(&run, "now", json!({})).await;
    assert_eq!(again.headers["location"], location.as_str());
    let started = first.expect(202);
    assert_eq!(again.expect(202), started);
    let run_id = started["run_id"].clone();
    assert_eq!(location, format!("/runs/{}", run_id.as_str().unwrap()));
    assert_eq!(started["action"]["live_run"], run_id);

    // If the event is lost, the next sweep finds the action.
    let store = &h.platform.cx.store;
    let due = join_all((0..64).map(|shard| store.due(shard, NOON.parse().unwrap(), 10))).await;
    assert_eq!(due.into_iter().map(|due| due.unwrap().len()).sum::<usize>(), 1);

    let runs = h.get(&format!("{action}/runs")).await.expect(200);
    assert_eq!(runs["data"].as_array().unwrap().len(), 1);
    let occurrence = occurrence(&h, &action, &run_id).await;
    assert_eq!(runs["data"][0], occurrence);
    assert_eq!(
        occurrence,
        json!({
            "run_id": run_id, "action_id": started["action"]["action_id"], "kind": "manual", "due_at": NOON,
            "state": "due", "not_before": NOON, "attempts": 0, "cost_micros": 0,
            "usage": occurrence["usage"],
        })
    );
    let record = store.run(&local(), run_id.as_str().unwrap().parse().unwrap()).await.unwrap();
    assert_eq!(record.unwrap().value.state, RunState::Running);
    assert_eq!(
        h.get(&format!("{action}/runs/{}/outputs", run_id.as_str().unwrap())).await.expect(200),
        json!({"data": [], "has_more": false})
    );

    // If many start it, one of them succeeds.
    assert_eq!(step(&h, &action, "succeed").await.status, 200);
    let answers = join_all((0..6).map(|_| h.post(&run, json!({})))).await;
    let mut codes: Vec<&str> =
        answers.iter().map(|answer| answer.body["code"].as_str().unwrap_or("started")).collect();
    codes.sort_unstable();
    assert_eq!(codes, ["run_live", "run_live", "run_live", "run_live", "run_live", "started"]);
    assert_eq!(step(&h, &action, "succeed").await.status, 200);
    let ran = h.get(&format!("{action}/runs?limit=1")).await.expect(200);
    assert_eq!((&ran["data"][0]["score"], &ran["has_more"]), (&json!(90), &json!(true)));

    for status in ["paused", "archived"] {
        assert_eq!(h.patch(&format!("/agents/{agent}"), json!({"status": status})).await.status, 200);
        let problem = h.post(&run, json!({})).await.refused(409, "agent_not_active");
        assert_eq!(problem["current"]["state"], "completed");
    }
}

#[tokio::test]
async fn outputs_are_listed_under_their_run() {
    let (h, _) = still().await;
    let action = defined(&h).await;
    let _ = step(&h, &action, "approve").await.expect(200);
    let run: RunId = step(&h, &action, "run").await.expect(202)["run_id"].as_str().unwrap().parse().unwrap();
    let cx = &h.platform.cx;
    let output = RunOutput {
        asset_id: domain::ids::AssetId::from_uuid(cx.clock.uuid()),
        title: "Report".into(),
        bytes: 7,
        tainted: false,
    };
    let write = || Store::output_write(&local(), run, 1, &output).unwrap();
    assert!(cx.store.write_all(vec![write()]).await.unwrap().done());
    // If DynamoDB refuses a request as invalid, this program has a bug. A client that retries would do so for ever.
    let twice = shared::error::Error::from(cx.store.write_all(vec![write(), write()]).await.unwrap_err());
    assert_eq!((twice.code(), twice.problem(None).retryable), ("internal", false));
    let outputs = h.get(&format!("{action}/runs/{run}/outputs")).await.expect(200);
    assert_eq!(outputs, json!({"data": [output], "has_more": false}));
    // A run of another action is not found.
    let other = defined(&h).await;
    for path in [format!("{other}/runs/{run}"), format!("{other}/runs/{run}/outputs")] {
        h.get(&path).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn a_cancelled_run_ends_for_all_who_see_it() {
    let (h, _) = still().await;
    for (story, before) in [(&["approve", "run"][..], "due"), (&["approve", "run", "wait"], "waiting")] {
        let action = defined(&h).await;
        for what in story {
            assert!(step(&h, &action, what).await.status < 300);
        }
        let run = h.get(&action).await.expect(200)["live_run"].clone();
        assert_eq!(occurrence(&h, &action, &run).await["state"], before);
        assert_eq!(step(&h, &action, "cancel").await.expect(200)["live_run"], Value::Null);
        let cancelled = occurrence(&h, &action, &run).await;
        assert_eq!(
            (&cancelled["state"], &cancelled["reason"]),
            (&json!("cancelled"), &json!("a person cancelled it"))
        );
        let (store, run) = (&h.platform.cx.store, run.as_str().unwrap().parse().unwrap());
        assert!(store.cancel_requested(&local(), run).await.unwrap());
        let record = store.run(&local(), run).await.unwrap().unwrap().value;
        assert_eq!((record.state, record.finished_at), (RunState::Cancelled, Some(NOON.parse().unwrap())));
        let events = store.run_events(&local(), run, 0, 10).await.unwrap();
        assert_eq!(events.last().unwrap().event.name(), "run.cancelled");
    }
}

#[tokio::test]
async fn ending_an_action_ends_its_waiting_runs() {
    let (h, _) = still().await;
    let ends = [
        ("dismiss", "the action was dismissed"),
        ("complete", "a person completed the action"),
        ("patch", "the action was changed, which withdrew its approval"),
    ];
    for (end, reason) in ends {
        let action = defined(&h).await;
        for what in ["approve", "run", "wait"] {
            assert!(step(&h, &action, what).await.status < 300);
        }
        let run = h.get(&action).await.expect(200)["live_run"].clone();
        let ended = match end {
            "patch" => h.patch(&action, json!({"grants": ["generate_actions"]})).await,
            _ => step(&h, &action, end).await,
        };
        assert_eq!(ended.expect(200)["live_run"], Value::Null, "{end}");
        let occurrence = occurrence(&h, &action, &run).await;
        assert_eq!(
            (&occurrence["state"], &occurrence["reason"]),
            (&json!("cancelled"), &json!(reason)),
            "{end}"
        );
    }
}

/// Decides the due times that have come, as an executor does. Returns their number.
async fn plan(cx: &Cx, action: ActionId) -> usize {
    let mut decided = 0;
    loop {
        let loaded = actions::load_live(cx, &local(), action).await.unwrap();
        let now = cx.clock.now();
        let live = loaded.live.map(|live| live.value);
        let read = &loaded.action.value;
        let plan = plan_due(read, now, live.as_ref(), 90);
        let next = transition(read, Command::Planned { plan: &plan }, now).unwrap();
        let occurrences: Vec<Occurrence> =
            plan.decided.iter().map(|decided| Occurrence::decided(read, decided, now)).collect();
        let live = occurrences.iter().find(|o| Some(o.run_id) == next.live_run).or(live.as_ref());
        let mut writes = actions::action_writes(&local(), &loaded.action, &next, live, now).unwrap();
        writes.extend(occurrences.iter().map(|o| Store::create_occurrence(&local(), o).unwrap()));
        assert!(cx.store.write_all(writes).await.unwrap().done());
        decided += plan.decided.len();
        if !plan.more {
            return decided;
        }
    }
}

#[tokio::test]
async fn queued_runs_end_with_the_approval_that_they_were_queued_under() {
    let (h, clock) = still().await;
    let mut body = report();
    body["schedule"] = json!({"every": "1m", "overlap": "queue"});
    let action = path(&define(&h, body).await);
    assert_eq!(step(&h, &action, "approve").await.expect(200)["state"], "scheduled");
    clock.set("2026-11-21T12:04:30Z".parse().unwrap());
    let cx = &h.platform.cx;
    assert_eq!(plan(cx, id(&action)).await, 4);
    let planned = h.get(&action).await.expect(200);
    assert_eq!((&planned["state"], &planned["queued"]), (&json!("scheduled"), &json!(3)));

    let states = async || {
        let found = cx.store.occurrences(&local(), id(&action), None, 10, Order::Oldest).await.unwrap();
        found.items.into_iter().map(|(_, occurrence)| occurrence.value.state).collect::<Vec<_>>()
    };
    assert_eq!(states().await, [OccurrenceState::Due; 4]);
    let changed = h.patch(&action, json!({"schedule": null})).await.expect(200);
    assert_eq!((&changed["state"], &changed["queued"]), (&json!("defined"), &json!(0)));
    assert_eq!(states().await, [OccurrenceState::Cancelled; 4]);
}

/// A granted tool has changed after the action's runs were queued, and the person has approved the new version. The
/// queued runs were not approved with it. They do not run and are no longer counted.
#[tokio::test]
async fn queued_runs_that_are_refused_are_no_longer_counted() {
    let (h, clock) = still().await;
    let mut body = report();
    body["schedule"] = json!({"every": "1m", "overlap": "queue", "end_at": "2026-11-21T12:03:30Z"});
    let action = path(&define(&h, body).await);
    let _ = step(&h, &action, "approve").await.expect(200);
    clock.set("2026-11-21T12:04:30Z".parse().unwrap());
    let cx = &h.platform.cx;
    assert_eq!(plan(cx, id(&action)).await, 3);

    let loaded = actions::load_live(cx, &local(), id(&action)).await.unwrap();
    let mut next = loaded.action.value.clone();
    assert_eq!(next.queued, 2);
    next.approval.as_mut().unwrap().hash = "another".to_owned();
    let live = loaded.live.as_ref().map(|live| &live.value);
    let writes = actions::action_writes(&local(), &loaded.action, &next, live, cx.clock.now()).unwrap();
    assert!(cx.store.write_all(writes).await.unwrap().done());

    let deadline = cx.clock.now() + SignedDuration::from_mins(15);
    shared::flows::executor::wake::wake(cx, &local(), id(&action), deadline).await.unwrap();
    let found = cx.store.occurrences(&local(), id(&action), None, 10, Order::Oldest).await.unwrap();
    let states: Vec<_> = found.items.into_iter().map(|(_, occurrence)| occurrence.value.state).collect();
    assert_eq!(states, [OccurrenceState::Cancelled; 3]);
    let ended = h.get(&action).await.expect(200);
    assert_eq!((&ended["state"], &ended["queued"]), (&json!("completed"), &json!(0)));
    for shard in 0..64 {
        assert_eq!(cx.store.due(shard, Timestamp::MAX, 10).await.unwrap(), [], "it is not looked at again");
    }
}

#[tokio::test]
async fn a_person_who_is_asked_answers_by_resuming() {
    let (h, _) = still().await;
    let action = defined(&h).await;
    for what in ["approve", "run", "wait"] {
        assert!(step(&h, &action, what).await.status < 300);
    }
    let asked = h.get(&format!("{action}/why")).await.expect(200);
    assert_eq!(asked["code"], "waiting");
    assert!(asked["sentence"].as_str().unwrap().contains("which week?"), "{asked}");
    let run = h.get(&action).await.expect(200)["live_run"].clone();
    let messages = format!("{action}/messages");
    let resumed = h.post(&format!("{action}/resume"), json!({"message": "This week."})).await.expect(200);
    assert_eq!((&resumed["state"], &resumed["live_run"]), (&json!("in_progress"), &run));
    let again = occurrence(&h, &action, &run).await;
    assert_eq!((&again["state"], &again["attempts"]), (&json!("due"), &json!(0)));
    let list = h.get(&messages).await.expect(200);
    let texts: Vec<(&Value, &Value)> =
        list["data"].as_array().unwrap().iter().map(|m| (&m["content"], &m["run_id"])).collect();
    assert_eq!(texts, [(&json!("This week."), &run)]);
    let _ = h.post(&messages, json!({"content": "Will it do?"})).await.expect(200);
    let list = h.get(&messages).await.expect(200);
    let first = h.get(&format!("{messages}?limit=1")).await.expect(200);
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = h.get(&format!("{messages}?limit=1&cursor={cursor}")).await.expect(200);
    assert_eq!(second["data"][0], list["data"][1]);
    // A cursor is only valid for its own conversation.
    let other = defined(&h).await;
    h.get(&format!("{other}/messages?cursor={cursor}")).await.refused(400, "invalid_input");
}

#[tokio::test]
async fn a_second_completion_does_not_count() {
    let (h, _) = still().await;
    let agent = h.agent().await;
    let action = path(&h.post(&format!("/agents/{agent}/actions"), report()).await.expect(201));
    let complete = format!("{action}/complete");
    let answers = join_all((0..6).map(|_| h.post(&complete, json!({})))).await;
    let bodies: Vec<Value> = answers.into_iter().map(|answer| answer.expect(200)).collect();
    assert!(bodies.iter().all(|body| body["state"] == "completed" && body["version"] == 2));
    assert_eq!(h.post(&complete, json!({})).await.expect(200)["state"], "completed");
    let metrics = h.get(&format!("/agents/{agent}")).await.expect(200)["metrics"].clone();
    assert_eq!(metrics, json!({"assets": 0, "actions_completed": 1, "actions_failed": 0, "cost_micros": 0}));
}

#[tokio::test]
async fn every_due_time_can_be_asked_about() {
    let (h, clock) = still().await;
    let mut body = report();
    body["schedule"] = json!({"every": "1h", "catch_up": "none"});
    let action = path(&define(&h, body).await);
    let why = async |query: &str| h.get(&format!("{action}/why{query}")).await.expect(200);
    assert_eq!(why("").await["code"], "not_approved");
    let _ = step(&h, &action, "approve").await.expect(200);
    assert_eq!(why("?at=2026-11-21T13:00:00Z").await["code"], "not_yet_due");
    clock.set("2026-11-21T14:01:00Z".parse().unwrap());
    assert_eq!(why("?at=2026-11-21T13:00:00Z").await["code"], "not_yet_decided");
    plan(&h.platform.cx, id(&action)).await;

    let missed = why("?at=2026-11-21T13:00:00Z").await;
    assert_eq!(
        (&missed["code"], &missed["reason_code"], &missed["due_at"]),
        (&json!("missed"), &json!("catch_up_off"), &json!("2026-11-21T13:00:00Z"))
    );
    // The minute is enough, and the newest due time needs no time.
    assert_eq!(why("?at=2026-11-21T13:00:59Z").await["run_id"], missed["run_id"]);
    assert_eq!(why("?at=2026-11-21T13:01:00Z").await["code"], "not_a_fire_time");
    let newest = why("").await;
    assert_eq!(
        (&newest["code"], &newest["due_at"]),
        (&json!("about_to_run"), &json!("2026-11-21T14:00:00Z"))
    );
    h.get(&format!("{action}/why?at=monday")).await.refused(400, "invalid_input");
}

#[tokio::test]
async fn a_schedule_is_shown_before_it_is_set() {
    let (h, _) = still().await;
    let preview = async |body: Value| h.post("/schedules/preview", body).await;
    let berlin = json!({"schedule": {"cron": "30 2 * * *", "timezone": "Europe/Berlin"}, "from": "2027-03-27T00:00:00Z", "count": 3});
    assert_eq!(
        preview(berlin).await.expect(200),
        json!({
            // On the 28th the clocks skip from two to three.
            "fire_times": ["2027-03-27T01:30:00Z", "2027-03-28T01:00:00Z", "2027-03-29T00:30:00Z"],
            "schedule_text": "At 02:30 (Europe/Berlin).",
        })
    );
    let from_now = preview(json!({"schedule": {"every": "90m"}})).await.expect(200);
    assert_eq!(from_now["fire_times"].as_array().unwrap().len(), 5);
    assert_eq!(from_now["fire_times"][0], "2026-11-21T13:30:00Z");
    let ends = json!({"schedule": {"every": "1h", "end_at": "2026-11-21T14:00:00Z"}, "count": 100});
    assert_eq!(preview(ends).await.expect(200)["fire_times"].as_array().unwrap().len(), 2);
    let refusals = [
        (json!({"schedule": {"every": "1h"}, "count": 101}), "count"),
        (json!({"schedule": {"every": "1h"}, "count": 0}), "count"),
        (json!({"schedule": {}}), "schedule"),
        (json!({"schedule": {"every": "soon"}}), "schedule.every"),
        (json!({"schedule": {"every": "1h"}, "from": "soon"}), "from"),
        (json!({}), "schedule"),
    ];
    for (body, field) in refusals {
        let problem = preview(body.clone()).await.refused(400, "invalid_input");
        assert_eq!(problem["errors"][0]["field"], field, "{body}");
    }
}

#[tokio::test]
async fn another_owners_action_is_not_found() {
    let (h, _) = still().await;
    let (cx, owner) = (&h.platform.cx, Owner::new("somebody-else").unwrap());
    let new = serde_json::from_value(json!({"name": "Theirs", "goal": "Theirs"})).unwrap();
    let agent = agents::create(cx, &owner, &Once::none(), Actor::Person, new).await.unwrap().agent.agent_id;
    let input = serde_json::from_value(report()).unwrap();
    let action = actions::define(cx, &owner, &Once::none(), Actor::Person, agent, input).await.unwrap();
    let (id, hash) = (action.action.id, action.approval_hash);
    actions::approve(cx, &owner, &Once::none(), Actor::Person, id, &hash).await.unwrap();
    let run = actions::run_now(cx, &owner, &Once::none(), Actor::Person, id).await.unwrap().run_id;
    let theirs = actions::read(cx, &owner, id).await.unwrap();

    let calls = [
        (Method::POST, format!("/agents/{agent}/actions"), report()),
        (Method::GET, format!("/actions?agent_id={agent}"), Value::Null),
        (Method::GET, format!("/actions/{id}"), Value::Null),
        (Method::PATCH, format!("/actions/{id}"), json!({"title": "Mine"})),
        (Method::DELETE, format!("/actions/{id}"), Value::Null),
        (Method::POST, format!("/actions/{id}/approve"), json!({"approval_hash": hash})),
        (Method::POST, format!("/actions/{id}/schedule"), json!({"schedule": daily()})),
        (Method::POST, format!("/actions/{id}/run"), json!({})),
        (Method::POST, format!("/actions/{id}/pause"), json!({})),
        (Method::POST, format!("/actions/{id}/resume"), json!({"message": "go"})),
        (Method::POST, format!("/actions/{id}/cancel"), json!({})),
        (Method::POST, format!("/actions/{id}/dismiss"), json!({})),
        (Method::POST, format!("/actions/{id}/complete"), json!({})),
        (Method::GET, format!("/actions/{id}/runs"), Value::Null),
        (Method::GET, format!("/actions/{id}/runs/{run}"), Value::Null),
        (Method::GET, format!("/actions/{id}/runs/{run}/outputs"), Value::Null),
        (Method::GET, format!("/actions/{id}/why"), Value::Null),
        (Method::GET, format!("/actions/{id}/messages"), Value::Null),
        (Method::POST, format!("/actions/{id}/messages"), json!({"content": "hello"})),
    ];
    for (method, path, body) in calls {
        let request = h.request(method.clone(), &path);
        let request = if body.is_null() { request } else { request.json(&body) };
        let answer = send(request).await;
        assert_eq!(answer.status, 404, "{method} {path}: {}", answer.body);
        answer.refused(404, "not_found");
    }
    assert_eq!(h.get("/actions").await.expect(200)["data"], json!([]));
    assert_eq!(json!(actions::read(cx, &owner, id).await.unwrap()), json!(theirs));
}

#[tokio::test]
async fn a_deleted_agent_takes_its_actions_along() {
    let (h, _) = still().await;
    let agent = h.agent().await;
    let make = async || path(&h.post(&format!("/agents/{agent}/actions"), report()).await.expect(201));
    let (idle, running) = (make().await, make().await);
    let _ = step(&h, &running, "approve").await.expect(200);
    let run: RunId = step(&h, &running, "run").await.expect(202)["run_id"].as_str().unwrap().parse().unwrap();
    let _ = h.post(&format!("{running}/messages"), json!({"content": "hello"})).await.expect(200);
    assert_eq!(h.delete(&format!("/agents/{agent}")).await.status, 204);
    for path in [&idle, &running] {
        h.get(path).await.refused(404, "not_found");
    }
    let store = &h.platform.cx.store;
    assert_eq!(store.run(&local(), run).await.unwrap(), None);
    assert_eq!(store.occurrence(&local(), id(&running), run).await.unwrap(), None);
    let messages = store.messages(&local(), id(&running), None, 10, Order::Oldest).await.unwrap();
    assert!(messages.items.is_empty());
    for shard in 0..64 {
        let mut due = store.due(shard, Timestamp::MAX, 10).await.unwrap();
        // The memory of the owner stays. That one action waited for its approval is forgotten when its time comes.
        due.retain(|entry| entry.key.sk != "DUE" && !entry.key.sk.starts_with("HAPPENED#"));
        assert_eq!(due, []);
    }
}
