//! Writes `tests/golden/data.json`: one of every kind of stored data, created over HTTP, and the answers that read it.
//!
//! ```text
//! cargo run -p bench --bin golden
//! ```
//!
//! The test `golden` opens this file. Write it again only to add a kind of record. A stored format must stay readable:
//! if the test fails with the old file, the reader is wrong and not the file.

#![allow(clippy::unwrap_used, reason = "a program that writes a fixture panics where it can't")]

use std::time::Duration;

use domain::actions::{Occurrence, OccurrenceState};
use domain::background::lease::Lease;
use domain::background::places::Purpose;
use domain::chats::Thread;
use domain::chats::summary::{Summary, SummaryBy};
use domain::ids::{ActionId, ChannelId, ChatId, ImportId, NoticeId, Owner, RunId};
use domain::notices::plan::{Event, Happening, note};
use domain::notices::{About, Cause, LeadsTo, NoticeKey, NoticeKind};
use jiff::SignedDuration;
use jiff::civil::date;
use jiff::tz::TimeZone;
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use shared::flows::archive;
use shared::store::Store;
use shared::store::notices::Listening;
use shared::store::runs::places::BacklogRun;
use shared::store::table::Order;
use tests::golden::{Golden, Read};
use tests::logs::hook;
use tests::{Harness, send};

const PROJECT: &str = "/projects/default";
const SESSION: &str = "0f2c1f9e-5b1d-4a7e-9f0e-0d6a3b6f2a11";

#[tokio::main]
async fn main() {
    let h = Harness::with(PlatformConfig::in_memory()).await;
    let mut paths = vec![
        "/agents",
        "/assets",
        "/actions",
        "/projects",
        "/account/api-keys",
        "/account/provider-keys",
        "/account/secrets",
        "/account/servers",
        "/usage",
        "/usage?month=2026-11",
    ]
    .into_iter()
    .map(str::to_owned)
    .collect::<Vec<_>>();
    let account =
        json!({"timezone": "Europe/Berlin", "overage": "on", "alerts": [{"month_micros": 20_000_000}]});
    h.patch("/account", account).await.expect(200);
    paths.push("/account".to_owned());
    let agent = agent(&h, &mut paths).await;
    action(&h, &agent, &mut paths).await;
    practice(&h, &mut paths).await;
    watched(&h, &mut paths).await;
    notices(&h, &agent, &mut paths).await;
    theme(&h, &mut paths).await;
    context(&h, &mut paths).await;
    docs(&h, &mut paths).await;
    logs(&h, &mut paths).await;
    // Last, because this provider would be called for the turns, the run and the descriptions of the theme.
    let key = h.request(Method::PUT, "/account/provider-keys/google");
    send(key.json(&json!({"key": "AIza-0123456789-golden"}))).await.expect(200);
    // Nothing is in progress, so the answers match the stored data.
    tokio::time::sleep(Duration::from_secs(2)).await;

    let mut reads = Vec::new();
    for path in paths {
        let body = h.get(&path).await.expect(200);
        reads.push(Read { path, body });
    }
    let golden = Golden::of(&h.platform.cx, reads).await;
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../golden/data.json");
    std::fs::write(file, serde_json::to_string_pretty(&golden).unwrap() + "\n").unwrap();
    println!(
        "{} items, {} objects, {} answers",
        golden.items.len(),
        golden.objects.len(),
        golden.reads.len()
    );
    h.platform.stop().await;
}

fn id(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("{name} is missing in {value:#}")).to_owned()
}

/// Waits until `is_there` is true for an answer.
async fn until(h: &Harness, path: &str, is_there: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..1_200 {
        let answer = h.get(path).await.body;
        if is_there(&answer) {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("never: {path} {:#}", h.get(path).await.body)
}

/// A summary of the first message of a conversation.
async fn summarised(h: &Harness, thread: Thread, run_id: RunId) {
    let (cx, owner) = (&h.platform.cx, Owner::new("local").unwrap());
    let found = cx.store.messages(&owner, thread, None, 1, Order::Oldest).await.unwrap();
    let first = found.items[0].1.value.message.message_id;
    let summary = Summary {
        first,
        up_to: first,
        count: 1,
        text: "The person asked about lamp oil.".to_owned(),
        by: SummaryBy::Model,
        run_id,
        created_at: cx.clock.now(),
    };
    let write = Store::summary_write(&owner, thread, &summary, 0).unwrap();
    assert!(cx.store.write_all(vec![write]).await.unwrap().done());
}

/// An agent with a chat, messages, proposals and assets.
async fn agent(h: &Harness, paths: &mut Vec<String>) -> String {
    let agent = h.agent().await;
    let turn = json!({"message": "Write a brief about lamp oil prices"});
    let turn = h.post_once(&format!("/agents/{agent}/chat"), "first", turn).await.expect(200);
    let chat = id(&turn, "chat_id");
    // Too large for an item.
    let long = "€".repeat(30_000);
    let messages =
        json!({"messages": [{"role": "user", "content": long}, {"role": "assistant", "content": "Yes."}]});
    h.post(&format!("/chats/{chat}/messages"), messages).await.expect(201);
    // The mark of a turn that has ended without deleting it.
    let (cx, owner) = (&h.platform.cx, Owner::new("local").unwrap());
    let (thread, run) = (chat.parse::<ChatId>().unwrap().into(), id(&turn, "run_id").parse().unwrap());
    let mark = Store::hold_thread(&owner, thread, run, 0).unwrap();
    assert!(cx.store.write_all(vec![mark]).await.unwrap().done());
    summarised(h, thread, run).await;
    let kept = json!({"model": agent, "messages": [{"role": "user", "content": "What is due?"}]});
    h.post("/v1/chat/completions", kept).await.expect(200);
    let saved = json!({"proposal_id": turn["proposals"][0]["proposal_id"]});
    let asset = id(&h.post(&format!("/agents/{agent}/assets"), saved).await.expect(201), "asset_id");
    let patch = json!({"title": "Changed", "content": "The second version."});
    h.patch(&format!("/assets/{asset}"), patch).await.expect(200);
    let turn = h.post(&format!("/agents/{agent}/chat"), json!({"message": "Schedule a report on oil"})).await;
    let turn = turn.expect(200);
    let proposal = id(&turn["proposals"][0], "proposal_id");
    h.post("/account/api-keys", json!({"name": "laptop", "expires_in_days": 365})).await.expect(201);
    // No agent uses this kind of model, so the tests call nobody.
    let server = json!({
        "url": "https://models.example.com/v1", "models": {"documenter": ["glm"]},
        "prices": {"*": "free", "glm": {"input": 600_000, "output": 2_200_000}},
    });
    send(h.request(Method::PUT, "/account/servers/mine").json(&server)).await.expect(200);
    let own = h.post_once("/projects", "second", json!({"name": "Shop"})).await.expect(201);
    paths.extend([
        format!("/agents/{agent}"),
        format!("/agents/{agent}/assets"),
        format!("/agents/{agent}/chats"),
        format!("/agents/{agent}/proposals"),
        format!("/assets/{asset}"),
        format!("/assets/{asset}/content"),
        format!("/assets/{asset}/content?version=1"),
        format!("/assets/{asset}/versions"),
        format!("/chats/{chat}"),
        format!("/proposals/{proposal}"),
        format!("/runs/{}", id(&turn, "run_id")),
        format!("/projects/{}", id(&own, "project_id")),
    ]);
    agent
}

/// A scheduled action with a run and a conversation about it.
async fn action(h: &Harness, agent: &str, paths: &mut Vec<String>) {
    let action = json!({
        "title": "Lamp oil report", "description": "A short report", "priority": "high",
        "task_config": {"instructions": "Write a report about lamp oil", "expected_output": "A report about lamp oil"},
        "schedule": {"cron": "0 9 1 1 *", "timezone": "Europe/Berlin", "overlap": "queue", "catch_up": "all"},
    });
    let action = h.post(&format!("/agents/{agent}/actions"), action).await.expect(201);
    let path = format!("/actions/{}", id(&action, "action_id"));
    let hash = json!({"approval_hash": action["approval_hash"]});
    h.post(&format!("{path}/approve"), hash).await.expect(200);
    h.post(&format!("{path}/run"), json!({})).await.expect(202);
    let runs = until(h, &format!("{path}/runs"), |runs| runs["data"][0]["state"] == "succeeded").await;
    let run = id(&runs["data"][0], "run_id");
    let notes =
        h.request(Method::PUT, &format!("{path}/notebook")).json(&json!({"text": "Seen until 4711."}));
    send(notes).await.expect(200);
    h.post(&format!("{path}/messages"), json!({"content": "What happened in the last run?"}))
        .await
        .expect(200);
    let about = id(&action, "action_id").parse::<ActionId>().unwrap();
    summarised(h, about.into(), run.parse().unwrap()).await;
    let cancelled = id(&h.post(&format!("{path}/run"), json!({})).await.expect(202), "run_id");
    h.post(&format!("/runs/{cancelled}/cancel"), json!({})).await.expect(202);
    let has_ended = |run: &Value| !matches!(run["state"].as_str(), Some("running" | "queued" | "waiting"));
    until(h, &format!("/runs/{cancelled}"), has_ended).await;
    // Places of executors, a run that waits for one, and the mark that says so.
    let (cx, owner) = (&h.platform.cx, Owner::new("local").unwrap());
    let (now, later) = (cx.clock.now(), cx.clock.now() + SignedDuration::from_hours(24));
    let lease = Lease::take(cx.clock.uuid(), now, SignedDuration::from_mins(1));
    for place in [(Purpose::Runs, 3), (Purpose::Messages, 1)] {
        assert!(cx.store.take_place(&owner, place, 0, &lease).await.unwrap().done());
    }
    let waiting =
        BacklogRun { action_id: id(&action, "action_id").parse().unwrap(), run_id: run.parse().unwrap() };
    let waits = Store::backlog_write(&owner, &waiting, true, now, now).unwrap();
    assert!(cx.store.write_all(vec![waits]).await.unwrap().done());
    assert!(cx.store.mark_backlog(&owner, now, later).await.unwrap().done());
    paths.extend([
        path.clone(),
        format!("{path}/runs"),
        format!("{path}/runs/{run}"),
        format!("{path}/runs/{run}/outputs"),
        format!("{path}/messages"),
        format!("{path}/notebook"),
        format!("{path}/notebook/versions"),
        format!("/runs/{run}"),
    ]);
}

/// A practice with check-ins.
async fn practice(h: &Harness, paths: &mut Vec<String>) {
    let new = json!({
        "name": "Read", "description": "Twenty minutes", "target": {"kind": "days", "days": ["mon", "wed", "fri"]},
        "timezone": "Europe/Berlin",
    });
    let path = format!("/practices/{}", id(&h.post("/practices", new).await.expect(201), "practice_id"));
    let check_ins = format!("{path}/check-ins");
    h.post(&check_ins, json!({"note": "Two chapters"})).await.expect(201);
    let yesterday = h.get(&path).await.expect(200)["last_days"][12]["date"].clone();
    h.post(&check_ins, json!({"date": yesterday, "done": false})).await.expect(201);
    paths.extend(["/practices".to_owned(), path, check_ins]);
}

/// A watched schedule with a report.
async fn watched(h: &Harness, paths: &mut Vec<String>) {
    let new = json!({
        "name": "Backup", "schedule": {"cron": "0 3 * * *", "timezone": "Europe/Berlin"}, "grace_minutes": 45,
        "expects_result": true,
    });
    let path = format!("/watched/{}", id(&h.post("/watched", new).await.expect(201), "watched_id"));
    let reports = format!("{path}/reports");
    let report = json!({"exit_code": 0, "summary": "412 files", "link": "https://ci.example.com/7"});
    h.post(&reports, report).await.expect(201);
    paths.extend(["/watched".to_owned(), path, reports]);
}

/// A channel, a delivery with its e-mail, and marks of what is still to be told: no channel is enabled any more, so nothing is planned.
async fn notices(h: &Harness, agent: &str, paths: &mut Vec<String>) {
    let (cx, owner) = (&h.platform.cx, Owner::new("local").unwrap());
    let path = h.confirmed_email("me@example.com").await;
    let delivery = id(&h.post(&format!("{path}/test"), json!({})).await.expect(202), "delivery_id");
    let delivery = format!("/deliveries/{delivery}");
    until(h, &delivery, |delivery| delivery["state"] == "delivered").await;
    h.patch(&path, json!({"state": "disabled"})).await.expect(200);
    let preferences = json!({
        "kinds": {"succeeded": "at_once"}, "quiet_hours": {"from": "22:00", "to": "07:00"}, "digest_at": "08:30",
    });
    send(h.request(Method::PUT, "/notifications").json(&preferences)).await.expect(200);
    tokio::time::sleep(Duration::from_secs(1)).await;

    // What a process leaves that dies before it has planned. It is due in a year, so that it stays.
    let now = cx.clock.now();
    let later = now + SignedDuration::from_hours(365 * 24);
    let actions = cx.store.agent_actions(&owner, agent.parse().unwrap(), None, 1).await.unwrap();
    let action = actions.items[0].1.value.clone();
    let key =
        NoticeKey { kind: NoticeKind::Failed, action_id: Some(action.id), cause: Cause::new("timeout") };
    let about = About::new(&action.title, "no answer in time", LeadsTo::Action { action_id: action.id });
    let event = Event::new(key, Happening::Happened, about);
    let quiet = serde_json::from_value(json!({"snoozed_until": later})).unwrap();
    let (state, _) = note(None, &event, &quiet, now, &TimeZone::UTC);
    let mut occurrence = Occurrence::manual(&action, RunId::from_uuid(cx.clock.uuid()), later);
    occurrence.state = OccurrenceState::Failed;
    let id = NoticeId::from_uuid(cx.clock.uuid());
    let channel_id = ChannelId::from_uuid(cx.clock.uuid());
    let mut writes = vec![
        Store::happened_write(&owner, id, event, later).unwrap(),
        Store::plan_again_write(&owner, later).unwrap(),
        Store::digest_write(&owner, date(2027, 11, 26), later).unwrap(),
        Store::listening_write(&owner, &Listening { channel_id, next: 871, at: later }, 0).unwrap(),
    ];
    writes.extend(Store::notice_state_write(&owner, &state, 0, now).unwrap());
    writes.extend(Store::untold_write(&owner, &occurrence).unwrap());
    assert!(cx.store.write_all(writes).await.unwrap().done());
    paths.extend([
        "/notifications".to_owned(),
        "/notifications/channels".to_owned(),
        delivery,
        "/outbox".to_owned(),
    ]);
}

/// A theme that was imported and changed, and that a model has described.
async fn theme(h: &Harness, paths: &mut Vec<String>) {
    let files = [
        ("layout/theme.liquid", "<body>{% section 'header' %}{{ content_for_layout }}</body>\n"),
        (
            "sections/header.liquid",
            "<header>{% render 'cart' %}</header>\n{% schema %}{\"name\": \"Header\"}{% endschema %}\n",
        ),
        ("snippets/cart.liquid", "<a class=\"cart\" href=\"/cart\">{{ 'cart' | t }}</a>\n"),
        ("assets/base.css", ".cart { color: red }\n"),
        ("locales/en.default.json", "{\"cart\": \"Cart\"}\n"),
    ];
    let zip = archive::write(files).unwrap();
    let request =
        h.request(Method::POST, &format!("{PROJECT}/import")).header("content-type", "application/zip");
    let import = send(request.body(zip)).await.expect(200);
    let file = h.request(Method::PUT, &format!("{PROJECT}/files/assets/new.css")).body(".new {}\n");
    send(file).await.expect(201);
    h.patch(PROJECT, json!({"enrichment": true})).await.expect(200);
    let is_done = |status: &Value| status["state"] == "ready" && status["enrichment"]["state"] == "done";
    until(h, &format!("{PROJECT}/map/status"), is_done).await;
    h.post(&format!("{PROJECT}/changes"), json!({"title": "Prices"})).await.expect(201);
    paths.extend([
        PROJECT.to_owned(),
        format!("{PROJECT}/files"),
        format!("{PROJECT}/files/assets/new.css"),
        format!("{PROJECT}/imports/{}", id(&import, "import_id")),
        format!("{PROJECT}/map"),
        format!("{PROJECT}/map/status"),
        format!("{PROJECT}/graph?path=sections/header.liquid"),
    ]);
}

/// A living document with versions, the commits that it does not know, and a webhook.
async fn docs(h: &Harness, paths: &mut Vec<String>) {
    let docs = format!("{PROJECT}/docs");
    let document = json!({"name": "ARCHITECTURE.md", "content": "# Architecture\n\nOne program.\n"});
    h.post(&docs, document).await.expect(201);
    h.post(&format!("{docs}/hook"), json!({"branch": "main"})).await.expect(201);
    let report = async |id: &str, message: &str| {
        let commit = json!({"id": id, "at": "2026-11-27T09:30:00Z", "author": "Ada", "message": message, "files": ["src/wick.rs"]});
        h.post(&format!("{docs}/commits"), json!({"commits": [commit]})).await.expect(200)
    };
    report("6dcb09b5b57875f334f61aebed695e2e4193db5e", "A second program").await;
    h.post(&format!("{docs}/sync"), json!({})).await.expect(202);
    until(h, &format!("{docs}/sync"), |sync| sync["state"] == "succeeded").await;
    report("7dcb09b5b57875f334f61aebed695e2e4193db5e", "A longer wick").await;
    let of = format!("{docs}/ARCHITECTURE.md");
    paths.extend([
        docs.clone(),
        of.clone(),
        format!("{of}?version=1"),
        format!("{of}/versions"),
        format!("{docs}/commits"),
    ]);
}

/// A context document with versions.
async fn context(h: &Harness, paths: &mut Vec<String>) {
    for task in ["Design the cart", "Build the cart"] {
        let text = format!("# Context: Cart\n\n## PLAN (09:00)\n\n**Status**: done\n\n### Notes\n- {task}\n");
        let path = format!("{PROJECT}/context.md?workflow=checkout");
        let request = h.request(Method::PUT, &path).header("content-type", "text/markdown");
        let answer = send(request.body(text)).await;
        assert!(answer.status == 200 || answer.status == 201, "{:#}", answer.body);
    }
    paths.extend([
        format!("{PROJECT}/context?workflow=checkout"),
        format!("{PROJECT}/context.md?workflow=checkout"),
        format!("{PROJECT}/context/versions?workflow=checkout"),
    ]);
}

/// Logs of hooks in all their forms, and imports of logs in all their states.
async fn logs(h: &Harness, paths: &mut Vec<String>) {
    let report = async |payload: &Value| h.post("/context/hooks", payload.clone()).await.expect(200);
    report(&hook("arch-1", "call-1")).await;
    let mut answer = hook("arch-1", "call-1");
    answer["hook_event_name"] = json!("PostToolUse");
    answer["tool_response"] = json!({"content": [{"type": "text", "text": "It is designed."}]});
    report(&answer).await;
    // One without a name, and one in the background.
    let mut nameless = hook("x", "call-2");
    nameless["tool_input"]["prompt"] = json!("Design the cart");
    report(&nameless).await;
    report(&hook("arch-2", "call-3")).await;
    let mut launched = hook("arch-2", "call-3");
    launched["hook_event_name"] = json!("PostToolUse");
    launched["tool_response"] = json!({"isAsync": true, "status": "async_launched", "agentId": "a5f3c1"});
    report(&launched).await;
    // It stops before its call is reported.
    report(&json!({
        "session_id": SESSION, "hook_event_name": "SubagentStop", "agent_id": "a9f8e7d6c5b4a3210",
        "agent_type": "the-architect", "last_assistant_message": "It is designed.",
    }))
    .await;
    // Dropped by the project's filter.
    h.patch(PROJECT, json!({"hook_filter": "the-"})).await.expect(200);
    let mut dropped = hook("arch-4", "call-4");
    dropped["tool_input"]["subagent_type"] = json!("Explore");
    report(&dropped).await;
    // Refused, with a reason.
    report(&json!({"session_id": "../x", "hook_event_name": "PreToolUse", "tool_name": "Task"})).await;
    // A line that is too large for an item.
    let long = json!({"event": "agent_start", "session_id": SESSION, "instruction": "oil ".repeat(20_000)});
    h.post("/context/logs/arch-3", long).await;

    let line = json!({"event": "agent_start", "description": "Old", "timestamp": "2025-08-12T14:00:00.000Z"});
    let zip =
        archive::write([("0e0e0e0e-5b1d-4a7e-9f0e-0d6a3b6f2a11/arch-9.jsonl", line.to_string() + "\n")]);
    let request = h.request(Method::POST, "/context/import").header("content-type", "application/zip");
    let done = send(request.body(zip.unwrap())).await.expect(200);
    // One that waits for its upload, and the mark of one that may have left something.
    let waiting = h.post("/context/import", json!({"bytes": 5})).await.expect(202);
    let (cx, owner) = (&h.platform.cx, Owner::new("local").unwrap());
    cx.store.mark_left_log_import(&owner, ImportId::from_uuid(cx.clock.uuid())).await.unwrap();
    paths.extend([
        "/context/logs".to_owned(),
        format!("/context/logs/arch-1?session={SESSION}&include_metadata=true"),
        format!("/context/logs/arch-3?session={SESSION}"),
        "/context/logs/arch-9".to_owned(),
        "/context/hooks/rejected".to_owned(),
        format!("/context/imports/{}", id(&done, "import_id")),
        format!("/context/imports/{}", id(&waiting, "import_id")),
    ]);
}
