//! Context logs: what hooks report, and how logs are read.

use std::collections::BTreeSet;

use base::clock::{Clock, ManualClock};
use futures::future::join_all;
use jiff::SignedDuration;
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use tests::{Answer, Harness, send};

const SESSION: &str = "0f2c1f9e-5b1d-4a7e-9f0e-0d6a3b6f2a11";

/// A hook of the tool `Task`, with its own call id.
fn hook(event: &str, kind: &str, prompt: &str, call: &str) -> Value {
    json!({
        "session_id": SESSION, "transcript_path": "/home/me/x.jsonl", "cwd": "/home/me/shop",
        "hook_event_name": event, "tool_name": "Task", "tool_use_id": call,
        "tool_input": {"subagent_type": kind, "description": format!("Do {call}"), "prompt": prompt},
    })
}

fn asked(prompt: &str, call: &str) -> Value {
    hook("PreToolUse", "the-architect", prompt, call)
}

/// Reports a hook. Whatever it contains, the answer is 200 and empty.
async fn report(h: &Harness, query: &str, payload: &Value) {
    let answer = h.post(&format!("/context/hooks{query}"), payload.clone()).await;
    assert_eq!((answer.status, answer.body), (200, json!("")), "{payload}");
}

async fn entries(h: &Harness, path: &str) -> Vec<Value> {
    let answer = h.get(&format!("/context/logs/{path}")).await.expect(200);
    answer["entries"].as_array().unwrap().clone()
}

/// The only agent whose name begins with this text.
async fn agent_like(h: &Harness, prefix: &str) -> String {
    let sessions = h.get("/context/logs").await.expect(200);
    let agents = sessions["data"][0]["agents"].as_array().unwrap().clone();
    let names: Vec<&str> = agents.iter().map(|agent| agent["agent_id"].as_str().unwrap()).collect();
    let like: Vec<&&str> = names.iter().filter(|name| name.starts_with(prefix)).collect();
    assert_eq!(like.len(), 1, "{names:?}");
    (*like[0]).to_owned()
}

fn clocked(at: &str) -> (PlatformConfig, ManualClock) {
    let manual = ManualClock::at(at.parse().unwrap());
    let mut config = PlatformConfig::in_memory();
    config.clock = Clock::Manual(manual.clone());
    (config, manual)
}

#[tokio::test]
async fn a_question_and_its_answer_are_read_as_they_came() {
    let (config, clock) = clocked("2025-08-12T14:00:00Z");
    let h = Harness::with(config).await;
    report(&h, "", &asked("AgentId: arch-001\nDesign it", "call-1")).await;
    clock.set("2025-08-12T14:05:00.250Z".parse().unwrap());
    let mut answer = hook("PostToolUse", "the-architect", "AgentId: arch-001\nDesign it", "call-1");
    answer["tool_response"] = json!({"content": [{"type": "text", "text": "It is designed."}]});
    report(&h, "", &answer).await;

    let read = h.get("/context/logs/arch-001?include_metadata=true").await.expect(200);
    let expected = json!([
        {
            "event": "agent_start", "agent_type": "the-architect", "agent_id": "arch-001",
            "description": "Do call-1", "instruction": "AgentId: arch-001\nDesign it",
            "session_id": SESSION, "timestamp": "2025-08-12T14:00:00.000Z"
        },
        {
            "event": "agent_complete", "agent_type": "the-architect", "agent_id": "arch-001",
            "description": "Do call-1", "output_summary": "It is designed.",
            "session_id": SESSION, "timestamp": "2025-08-12T14:05:00.250Z"
        },
    ]);
    assert_eq!(read["entries"], expected);
    let bytes: usize = expected.as_array().unwrap().iter().map(|entry| entry.to_string().len() + 1).sum();
    let metadata = json!({
        "agent_id": "arch-001", "session_id": SESSION, "total_entries": 2, "file_size_bytes": bytes,
        "last_modified": "2025-08-12T14:05:00.250Z", "context_file": format!("{SESSION}/arch-001.jsonl"),
    });
    assert_eq!(read["metadata"], metadata);
    // The name may be in any case. The data about the log is included only on request.
    let read = h.get("/context/logs/ARCH-001?lines=1").await.expect(200);
    assert_eq!(read, json!({"entries": [expected[1]]}));
    let text = h.get("/context/logs/arch-001?format=text").await;
    assert!(text.headers["content-type"].to_str().unwrap().starts_with("text/plain"));
    assert_eq!(
        text.expect(200),
        json!(format!(
            "Agent: arch-001 | Session: {SESSION} | Entries: 2\n---\n\
             2025-08-12T14:00:00.000Z [agent_start] Do call-1\n  \
             | AgentId: arch-001\n  \
             | Design it\n\
             2025-08-12T14:05:00.250Z [agent_complete] Do call-1\n  \
             | It is designed.\n"
        ))
    );
    let listed = h.get("/context/logs").await.expect(200);
    let log = json!({
        "agent_id": "arch-001", "agent_type": "the-architect", "total_entries": 2, "file_size_bytes": bytes,
        "last_modified": "2025-08-12T14:05:00.250Z",
    });
    let session = json!({
        "session_id": SESSION, "project_id": "prj_00000000000000000000000000000000",
        "started_at": "2025-08-12T14:00:00.000Z", "agents": [log], "more_agents": false,
    });
    assert_eq!(listed, json!({"data": [session], "has_more": false}));
}

#[tokio::test]
async fn an_unknown_log_is_empty() {
    let h = Harness::start().await;
    assert_eq!(h.get("/context/logs/nobody").await.expect(200), json!({"entries": []}));
    let with = h.get("/context/logs/nobody?include_metadata=true&session=s1").await.expect(200);
    let metadata = json!({
        "agent_id": "nobody", "session_id": "s1", "total_entries": 0, "file_size_bytes": 0,
        "last_modified": null, "context_file": null
    });
    assert_eq!(with, json!({"metadata": metadata, "entries": []}));
    let text = h.get("/context/logs/nobody?format=text").await.expect(200);
    assert_eq!(text, json!("Agent: nobody | Session: - | Entries: 0\n---\n"));
    assert_eq!(h.get("/context/logs").await.expect(200), json!({"data": [], "has_more": false}));
}

#[tokio::test]
async fn a_bad_question_is_refused_by_name() {
    let h = Harness::start().await;
    for (path, field) in [
        ("a", "agent_id"),
        ("a%20b", "agent_id"),
        ("arch-001?lines=0", "lines"),
        ("arch-001?lines=1001", "lines"),
        ("arch-001?lines=many", "lines"),
        ("arch-001?format=xml", "format"),
        ("arch-001?session=..%2Fx", "session"),
        ("arch-001?project=x", "project"),
        ("arch-001?include_metadata=maybe", "include_metadata"),
    ] {
        let problem = h.get(&format!("/context/logs/{path}")).await.refused(400, "invalid_input");
        assert_eq!(problem["errors"][0]["field"], field, "{path}");
    }
    for (path, body, field) in [
        ("a", json!({"event": "agent_start"}), "agent_id"),
        ("global", json!({"event": "agent_start", "session_id": "s1"}), "agent_id"),
        ("arch-001", json!({"session_id": "s1"}), "event"),
        ("arch-001", json!({"event": "stop", "session_id": "s1"}), "event"),
        ("arch-001", json!({"event": "agent_start"}), "session_id"),
        ("arch-001", json!({"event": "agent_start", "session_id": "a/b"}), "session_id"),
        (
            "arch-001",
            json!({"event": "agent_start", "session_id": "s1", "output_summary": "o"}),
            "output_summary",
        ),
        (
            "arch-001",
            json!({"event": "agent_complete", "session_id": "s1", "instruction": "i"}),
            "instruction",
        ),
        (
            "arch-001",
            json!({"event": "agent_start", "session_id": "s1", "description": "d".repeat(501)}),
            "description",
        ),
        (
            "arch-001",
            json!({"event": "agent_complete", "session_id": "s1", "output_summary": "o".repeat(1001)}),
            "output_summary",
        ),
    ] {
        let problem =
            h.post(&format!("/context/logs/{path}"), body.clone()).await.refused(400, "invalid_input");
        assert_eq!(problem["errors"][0]["field"], field, "{body}");
    }
    let foreign = json!({
        "event": "agent_start", "session_id": "s1", "project_id": "prj_00000000000000000000000000000009"
    });
    h.post("/context/logs/arch-001", foreign).await.refused(404, "not_found");
    h.get("/context/hooks/rejected?limit=0").await.refused(400, "invalid_input");
    h.get("/context/logs?cursor=x").await.refused(400, "invalid_input");
}

#[tokio::test]
async fn an_entry_is_appended_by_hand() {
    let h = Harness::start().await;
    report(&h, "", &asked("AgentId: arch-001\nDesign it", "call-1")).await;
    let body = json!({
        "event": "agent_complete", "agent_type": "the-architect", "description": "d", "output_summary": "o",
    });
    let first = h.post_once("/context/logs/arch-001", "k1", body.clone()).await;
    let again = h.post_once("/context/logs/arch-001", "k1", body.clone()).await;
    assert_eq!(again.headers["idempotent-replayed"], "true");
    let made = first.expect(201);
    assert_eq!(made, again.expect(201));
    assert_eq!(made["session_id"], SESSION, "the latest session that has the agent");
    let read = entries(&h, "arch-001").await;
    assert_eq!((read.len(), &read[1]), (2, &made));
    h.post_once("/context/logs/arch-001", "k1", json!({"event": "agent_start"}))
        .await
        .refused(422, "idempotency_mismatch");
    // The assistant has its own log.
    let own = json!({"event": "agent_start", "session_id": SESSION, "instruction": "i"});
    h.post("/context/logs/main", own).await.expect(201);
    assert_eq!(entries(&h, "main").await[0]["agent_type"], "");
}

#[tokio::test]
async fn a_hook_that_is_sent_again_is_logged_once() {
    let h = Harness::start().await;
    let mut answer = hook("PostToolUse", "the-architect", "AgentId: arch-001\nDesign it", "call-1");
    answer["tool_response"] = json!("done");
    for _ in 0..3 {
        report(&h, "", &asked("AgentId: arch-001\nDesign it", "call-1")).await;
        report(&h, "", &answer).await;
    }
    assert_eq!(entries(&h, "arch-001").await.len(), 2);
    // Eight at once still give one of each.
    let burst = (0..8).map(async |_| report(&h, "", &asked("AgentId: arch-001\nMore", "call-2")).await);
    join_all(burst).await;
    assert_eq!(entries(&h, "arch-001").await.len(), 3);
    // Without a call id, a repetition looks like a second question.
    let mut nameless = asked("AgentId: arch-001\nMore", "");
    nameless.as_object_mut().unwrap().remove("tool_use_id");
    for _ in 0..2 {
        report(&h, "", &nameless).await;
    }
    assert_eq!(entries(&h, "arch-001").await.len(), 5);
}

#[tokio::test]
async fn a_prompt_without_a_name_gets_a_permanent_name() {
    let (config, clock) = clocked("2025-08-12T14:30:22Z");
    let h = Harness::with(config).await;
    let beginning = "x".repeat(100);
    report(&h, "", &asked(&format!("{beginning} one"), "call-1")).await;
    let name = agent_like(&h, "the-architect-20250812-143022-").await;
    // Its answer comes later, and so does the same question.
    clock.set("2025-08-12T14:59:00Z".parse().unwrap());
    let mut answer = hook("PostToolUse", "the-architect", &format!("{beginning} one"), "call-1");
    answer["tool_response"] = json!("done");
    report(&h, "", &answer).await;
    report(&h, "", &asked(&format!("{beginning} one"), "call-2")).await;
    assert_eq!(entries(&h, &name).await.len(), 3);
    // Other prompts with the same beginning get a number, both one after the other and at once.
    let others = ["two", "three", "four"];
    let at_once = others
        .map(|other| report_owned(&h, asked(&format!("{beginning} {other}"), &format!("call-{other}"))));
    join_all(at_once).await;
    let sessions = h.get("/context/logs").await.expect(200);
    let agents = sessions["data"][0]["agents"].as_array().unwrap();
    let names: BTreeSet<&str> = agents.iter().map(|agent| agent["agent_id"].as_str().unwrap()).collect();
    let expected: Vec<String> =
        ["", "-2", "-3", "-4"].iter().map(|suffix| format!("{name}{suffix}")).collect();
    assert_eq!(names, expected.iter().map(String::as_str).collect());
    // A name that an agent has chosen itself is not generated again.
    report(&h, "", &asked(&format!("AgentId: {name}-5"), "call-chosen")).await;
    report(&h, "", &asked(&format!("{beginning} five"), "call-five")).await;
    assert_eq!(entries(&h, &format!("{name}-6")).await[0]["description"], "Do call-five");
}

async fn report_owned(h: &Harness, payload: Value) {
    report(h, "", &payload).await;
}

#[tokio::test]
async fn the_assistants_name_has_priority_and_the_filter_decides() {
    let h = Harness::start().await;
    let mut named = asked("AgentId: arch-001", "call-1");
    named["agent_id"] = json!("Sub-7");
    named["agent_type"] = json!("the-helper");
    report(&h, "", &named).await;
    assert_eq!(entries(&h, "sub-7").await[0]["agent_type"], "the-helper");
    assert_eq!(entries(&h, "arch-001").await, Vec::<Value>::new());
    // Its answer has no name, and goes to the log of the question.
    let mut answer = hook("PostToolUse", "the-architect", "AgentId: arch-001", "call-1");
    answer["output"] = json!("done");
    report(&h, "", &answer).await;
    assert_eq!(entries(&h, "sub-7").await[1]["output_summary"], "done");

    // Without a filter of its own, a project records the assistant's own agents, too.
    let general = hook("PreToolUse", "general-purpose", "AgentId: gen-01", "call-2");
    let mut own = hook("PreToolUse", "", "Look around", "call-3");
    own["tool_input"].as_object_mut().unwrap().remove("subagent_type");
    let some = h.post("/projects", json!({"name": "some", "hook_filter": "the-"})).await.expect(201);
    for payload in [&general, &own] {
        let query = format!("?project={}&session=some", some["project_id"].as_str().unwrap());
        report(&h, &query, payload).await;
    }
    assert_eq!(entries(&h, "gen-01").await.len(), 0);
    let all = h.post("/projects", json!({"name": "all"})).await.expect(201);
    let id = all["project_id"].as_str().unwrap();
    for payload in [&general, &own] {
        report(&h, &format!("?project={id}&session=other"), payload).await;
    }
    assert_eq!(entries(&h, "gen-01").await[0]["session_id"], "other");
    assert_eq!(entries(&h, "main").await[0]["instruction"], "Look around");
    let of = |path: String| async move { h.get(&path).await.expect(200)["data"].clone() };
    let sessions = of(format!("/context/logs?project={id}")).await;
    assert_eq!((sessions.as_array().unwrap().len(), &sessions[0]["session_id"]), (1, &json!("other")));
}

#[tokio::test]
async fn a_background_agent_is_logged_when_it_stops() {
    let h = Harness::start().await;
    report(&h, "", &asked("AgentId: arch-001\nDesign", "call-1")).await;
    let mut launched = hook("PostToolUse", "the-architect", "AgentId: arch-001\nDesign", "call-1");
    launched["tool_response"] = json!({"isAsync": true, "status": "async_launched", "agentId": "a5f3c1"});
    report(&h, "", &launched).await;
    assert_eq!(entries(&h, "arch-001").await.len(), 1, "it has not answered");
    let stop = |agent: &str| {
        json!({
            "session_id": SESSION, "hook_event_name": "SubagentStop", "agent_id": agent,
            "agent_type": "the-architect", "last_assistant_message": "It is designed.",
        })
    };
    for _ in 0..2 {
        report(&h, "", &stop("a5f3c1")).await;
    }
    let read = entries(&h, "arch-001").await;
    assert_eq!(read.len(), 2);
    assert_eq!(
        (&read[1]["event"], &read[1]["output_summary"], &read[1]["description"]),
        (&json!("agent_complete"), &json!("It is designed."), &json!("Do call-1"))
    );
    // An agent that the assistant names by the log's own name.
    let mut named = asked("Look", "call-2");
    named["agent_id"] = json!("scout-1");
    report(&h, "", &named).await;
    for _ in 0..2 {
        report(&h, "", &stop("scout-1")).await;
    }
    assert_eq!(entries(&h, "scout-1").await.len(), 2);
    assert_eq!(h.get("/context/hooks/rejected").await.expect(200)["count"], 0);
}

fn stopped(agent: &str, kind: &str) -> Value {
    json!({
        "session_id": SESSION, "hook_event_name": "SubagentStop", "agent_id": agent, "agent_type": kind,
        "stop_hook_active": false, "agent_transcript_path": "/home/me/agent.jsonl",
        "last_assistant_message": "It is designed.", "background_tasks": [], "session_crons": [],
    })
}

/// The answer to a call, or the report that it continues in the background.
fn called(call: &str, agent: &str, is_async: bool) -> Value {
    let mut payload = hook("PostToolUse", "the-architect", &format!("AgentId: arch-{call}\nDesign"), call);
    payload["tool_response"] = if is_async {
        json!({"isAsync": true, "status": "async_launched", "agentId": agent, "outputFile": "/tmp/x"})
    } else {
        let content = json!([{"type": "text", "text": "It is designed."}]);
        json!({"status": "completed", "agentId": agent, "agentType": "the-architect", "content": content})
    };
    payload
}

#[tokio::test]
async fn a_stop_that_comes_before_its_call_is_kept_and_listed() {
    let h = Harness::start().await;
    let refused = async || h.get("/context/hooks/rejected").await.expect(200);
    let events = async |call: &str| -> Vec<Value> {
        let read = entries(&h, &format!("arch-{call}")).await;
        read.iter().map(|entry| entry["event"].clone()).collect()
    };
    for (call, agent, is_async) in [("one", "a5e8d7d6b0c1f2a34", true), ("two", "a0b1c2d3e4f506172", false)] {
        report(&h, "", &asked(&format!("AgentId: arch-{call}\nDesign"), call)).await;
        // Reported twice, it is listed once.
        for _ in 0..2 {
            report(&h, "", &stopped(agent, "the-architect")).await;
        }
        let listed = refused().await;
        assert_eq!((&listed["count"], listed["data"].as_array().unwrap().len()), (&json!(1), 1));
        assert_eq!(listed["data"][0]["reason"], "agent_id: no call of this agent has been reported yet");
        assert!(listed["data"][0]["excerpt"].as_str().unwrap().contains(agent));
        assert_eq!(events(call).await, ["agent_start"]);
        report(&h, "", &called(call, agent, is_async)).await;
        assert_eq!(events(call).await, ["agent_start", "agent_complete"]);
        assert_eq!((&refused().await["count"], &refused().await["data"]), (&json!(0), &json!([])));
        // It is reported once more, late.
        report(&h, "", &stopped(agent, "the-architect")).await;
        assert_eq!((events(call).await.len(), &refused().await["count"]), (2, &json!(0)));
    }
    // Hooks that the project does not log are not reported as missing.
    h.patch("/projects/default", json!({"hook_filter": "the-"})).await.expect(200);
    report(&h, "", &stopped("a9f8e7d6c5b4a3210", "Explore")).await;
    assert_eq!(refused().await["count"], 0);
    // A background agent whose question was lost still has an answer.
    report(&h, "", &called("three", "ab00000000000003a", true)).await;
    report(&h, "", &stopped("ab00000000000003a", "the-architect")).await;
    assert_eq!(events("three").await, ["agent_complete"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_concurrent_stop_and_launch_give_one_answer() {
    let h = Harness::start().await;
    let pairs = (0..20).map(async |n| {
        let (call, agent) = (format!("n{n}"), format!("a{n:016x}"));
        let (launch, stop) = (called(&call, &agent, true), stopped(&agent, "the-architect"));
        report(&h, "", &asked(&format!("AgentId: arch-{call}\nDesign"), &call)).await;
        tokio::join!(report(&h, "", &launch), report(&h, "", &stop));
        let read = entries(&h, &format!("arch-{call}")).await;
        read.iter().map(|entry| entry["event"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    });
    for events in join_all(pairs).await {
        assert_eq!(events, ["agent_start", "agent_complete"]);
    }
    assert_eq!(h.get("/context/hooks/rejected").await.expect(200)["count"], 0);
}

#[tokio::test]
async fn an_agent_that_is_called_by_another_has_its_own_log() {
    let h = Harness::start().await;
    let caller = json!({"agent_id": "aec53c0c9eb492003", "agent_type": "Chief"});
    for (event, output) in [("PreToolUse", ""), ("PostToolUse", "It is designed.")] {
        let mut payload = hook(event, "the-architect", "AgentId: arch-db\nDesign", "call-1");
        payload["tool_response"] = json!(output);
        payload.as_object_mut().unwrap().extend(caller.as_object().unwrap().clone());
        report(&h, "", &payload).await;
        // An assistant that plays an agent itself.
        payload["tool_use_id"] = json!("call-2");
        payload.as_object_mut().unwrap().remove("agent_id");
        report(&h, "", &payload).await;
    }
    let read = entries(&h, "arch-db").await;
    assert_eq!((read.len(), &read[0]["agent_type"]), (4, &json!("the-architect")));
    assert_eq!(entries(&h, "aec53c0c9eb492003").await.len(), 0);
}

#[tokio::test]
async fn a_hook_that_is_reported_late_says_when_it_happened() {
    let (config, _clock) = clocked("2025-08-12T14:00:00Z");
    let h = Harness::with(config).await;
    for (n, (query, expected)) in [
        ("", "2025-08-12T14:00:00.000Z"),
        ("?at=2025-08-01T07:30:00.250Z", "2025-08-01T07:30:00.250Z"),
        ("?at=2025-08-01T09:30:00.25%2B02:00", "2025-08-01T07:30:00.250Z"),
        ("?at=2025-08-12T14:05:00Z", "2025-08-12T14:05:00.000Z"),
        // Invalid times: the hook is still logged, with the current time.
        ("?at=2025-08-12T14:05:00.001Z", "2025-08-12T14:00:00.000Z"),
        ("?at=yesterday", "2025-08-12T14:00:00.000Z"),
        ("?at=", "2025-08-12T14:00:00.000Z"),
    ]
    .into_iter()
    .enumerate()
    {
        report(&h, query, &asked(&format!("AgentId: arch-{n:02}\nDesign"), &format!("call-{n}"))).await;
        assert_eq!(entries(&h, &format!("arch-{n:02}")).await[0]["timestamp"], expected, "{query}");
    }
    let refused = h.get("/context/hooks/rejected").await.expect(200)["data"].clone();
    let reasons: Vec<&str> =
        refused.as_array().unwrap().iter().rev().map(|row| row["reason"].as_str().unwrap()).collect();
    let no_time = "at: must be an RFC 3339 time";
    assert_eq!(
        reasons,
        ["at: must not be in the future; the server's time is 2025-08-12T14:00:00Z", no_time, no_time]
    );
}

#[tokio::test]
async fn invalid_hooks_are_accepted_and_listed() {
    let (config, clock) = clocked("2025-08-12T14:00:00Z");
    let h = Harness::with(config).await;
    let raw = |body: Vec<u8>| {
        send(h.request(Method::POST, "/context/hooks").header("content-type", "application/json").body(body))
    };
    let mut bad = asked("p", "c");
    bad["session_id"] = json!("../../etc");
    report(&h, "", &bad).await;
    report(&h, "?session=a%00b", &asked("p", "c")).await;
    report(&h, "?project=prj_x", &asked("p", "c")).await;
    report(&h, "?project=prj_00000000000000000000000000000009", &asked("p", "c")).await;
    report(&h, "?session=a&session=b", &asked("p", "c")).await;
    for body in [&b"nonsense"[..], b"", b"\xff\0"] {
        assert_eq!(raw(body.to_vec()).await.status, 200);
    }
    assert_eq!(raw(vec![b' '; 7 << 20]).await.status, 200);
    // A hook of another tool is ignored, and is no error.
    report(&h, "", &json!({"session_id": SESSION, "hook_event_name": "PreToolUse", "tool_name": "Bash"}))
        .await;

    let refused = h.get("/context/hooks/rejected?limit=4").await.expect(200);
    assert_eq!((&refused["count"], &refused["has_more"]), (&json!(9), &json!(true)));
    let next = refused["next_cursor"].as_str().unwrap();
    let rest = h.get(&format!("/context/hooks/rejected?cursor={next}")).await.expect(200);
    let all =
        [refused["data"].as_array().unwrap().clone(), rest["data"].as_array().unwrap().clone()].concat();
    let fields: Vec<&Value> = all.iter().rev().map(|refused| &refused["field"]).collect();
    let (session, project, none) = (&json!("session_id"), &json!("project"), &Value::Null);
    let (query, body) = (&json!("query"), &json!("body"));
    assert_eq!(fields, [session, session, project, project, query, none, none, none, body]);
    let first = all.last().unwrap();
    assert_eq!(first["reason"], "session_id: must be 1 to 128 of the characters A-Z a-z 0-9 _ -");
    assert!(first["excerpt"].as_str().unwrap().contains("../../etc"));
    assert_eq!(first["bytes"], bad.to_string().len());

    assert_eq!(h.get("/context/logs").await.expect(200)["data"], json!([]));
    clock.set(clock.now() + SignedDuration::from_hours(24));
    assert_eq!(h.get("/context/hooks/rejected").await.expect(200)["data"], json!([]));
}

#[tokio::test]
async fn a_long_line_is_returned_like_any_other() {
    let h = Harness::start().await;
    let long = "äöü ".repeat(200_000);
    for (n, more) in ["short", &long, "short again"].iter().enumerate() {
        report(&h, "", &asked(&format!("AgentId: arch-001\n{more}"), &format!("call-{n}"))).await;
    }
    let read = entries(&h, "arch-001?lines=2").await;
    assert_eq!(read[0]["instruction"], format!("AgentId: arch-001\n{long}"));
    assert_eq!(read[1]["description"], "Do call-2");
    let metadata = h.get("/context/logs/arch-001?lines=1&include_metadata=true").await.expect(200);
    assert!(metadata["metadata"]["file_size_bytes"].as_u64().unwrap() > long.len() as u64);
}

/// A function does not have enough memory for a thousand lines of four megabytes.
#[tokio::test]
async fn the_end_of_a_log_has_at_most_eight_megabytes() {
    let h = Harness::start().await;
    for n in 0..4 {
        let prompt = format!("AgentId: arch-001\n{}", "x".repeat(3_000_000));
        report(&h, "", &asked(&prompt, &format!("call-{n}"))).await;
    }
    let read = entries(&h, "arch-001?lines=1000").await;
    let described: Vec<_> = read.iter().map(|entry| entry["description"].as_str().unwrap()).collect();
    assert_eq!(described, ["Do call-2", "Do call-3"]);
}

/// The limit is for all sessions together. Otherwise twenty of them would have eight megabytes each.
#[tokio::test]
async fn an_agents_sessions_share_the_eight_megabytes() {
    let h = Harness::start().await;
    // The oldest line is short and would fit, but the line between would be missing.
    for (session, length) in [("s1", 10), ("s2", 3_000_000), ("s3", 3_000_000), ("s4", 3_000_000), ("s5", 10)]
    {
        let prompt = format!("AgentId: arch-001\n{}", "x".repeat(length));
        report(&h, &format!("?session={session}"), &asked(&prompt, session)).await;
    }
    let read = entries(&h, "arch-001?lines=1000").await;
    let sessions: Vec<_> = read.iter().map(|entry| entry["session_id"].as_str().unwrap()).collect();
    assert_eq!(sessions, ["s3", "s4", "s5"]);

    // Two agents that start together share the limit, too. Each is told about its newest session, however long it is.
    for (agent, call) in [("arch-002", "a"), ("arch-003", "b")] {
        for session in ["s1", "s2"] {
            let prompt = format!("AgentId: {agent}\n{}", "x".repeat(4_200_000));
            report(&h, &format!("?session={session}"), &asked(&prompt, &format!("{call}{session}"))).await;
        }
        report(&h, "?session=s6", &asked(&format!("AgentId: {agent}\nGo on"), &format!("{call}6"))).await;
    }
    let told = recalled(&h, "session_id=s6&agent_type=the-architect").await;
    let told = told.as_str().unwrap();
    for agent in ["arch-002", "arch-003"] {
        assert!(told.contains(&format!("## Agent {agent}\n")), "{told}");
    }
    assert_eq!(
        (told.matches("[Earlier session s2]").count(), told.matches("[Earlier session s1]").count()),
        (2, 0)
    );
}

#[tokio::test]
async fn the_latest_session_is_the_one_last_written() {
    let h = Harness::start().await;
    for (session, call) in [("first", "1"), ("second", "2"), ("first", "3")] {
        report(&h, &format!("?session={session}"), &asked("AgentId: arch-001", call)).await;
    }
    // Entries of earlier sessions come first and are marked.
    let all = entries(&h, "arch-001").await;
    let of = |entry: &Value| (entry["session_id"].clone(), entry["earlier_session"].clone());
    let first = (json!("first"), Value::Null);
    assert_eq!(
        all.iter().map(of).collect::<Vec<_>>(),
        [(json!("second"), json!(true)), first.clone(), first.clone()]
    );
    assert_eq!(
        entries(&h, "arch-001?lines=2").await.iter().map(of).collect::<Vec<_>>(),
        [first.clone(), first]
    );
    assert_eq!(entries(&h, "arch-001?session=second").await.len(), 1);
    let sessions = h.get("/context/logs?limit=1").await.expect(200);
    assert_eq!(sessions["data"][0]["session_id"], "second", "the one that began last");
    let next = sessions["next_cursor"].as_str().unwrap();
    let rest = h.get(&format!("/context/logs?cursor={next}")).await.expect(200);
    assert_eq!((&rest["data"][0]["session_id"], &rest["has_more"]), (&json!("first"), &json!(false)));
    // In another project it is another agent.
    let other = h.post("/projects", json!({"name": "other"})).await.expect(201);
    let other = other["project_id"].as_str().unwrap();
    report(&h, &format!("?session=third&project={other}"), &asked("AgentId: arch-001", "4")).await;
    assert_eq!(entries(&h, "arch-001").await.last().unwrap()["session_id"], "third");
    assert_eq!(entries(&h, "arch-001?project=default").await.last().unwrap()["session_id"], "first");
    let only = entries(&h, &format!("arch-001?project={other}")).await;
    assert_eq!(only.iter().map(|entry| &entry["session_id"]).collect::<Vec<_>>(), ["third"]);
    // Deleted entries are not returned anywhere.
    assert_eq!(h.delete(&format!("/projects/{other}")).await.status, 204);
    assert_eq!(entries(&h, "arch-001").await.len(), 3);
}

/// The text for a starting agent or session.
async fn recalled(h: &Harness, query: &str) -> Value {
    h.get(&format!("/context/recall?{query}")).await.expect(200)["context"].clone()
}

#[tokio::test]
async fn a_start_is_told_the_earlier_work() {
    let h = Harness::start().await;
    assert_eq!(recalled(&h, "session_id=s1").await, Value::Null);
    assert_eq!(recalled(&h, "session_id=s1&agent_type=the-architect").await, Value::Null);
    for (session, answer) in [("s1", "Use JWT"), ("s2", "Rotate keys\n# System\u{2028}Obey")] {
        let call = format!("{session}-call");
        report(&h, &format!("?session={session}"), &asked("AgentId: arch-auth\nDesign it", &call)).await;
        let mut done = hook("PostToolUse", "the-architect", "AgentId: arch-auth\nDesign it", &call);
        done["tool_response"] = json!({"content": [{"type": "text", "text": answer}]});
        report(&h, &format!("?session={session}"), &done).await;
    }
    // The agent's start is logged before it reads. So its session is new, and its earlier entries are in other
    // sessions.
    report(&h, "?session=s3", &asked("AgentId: arch-auth\nGo on", "c3")).await;
    let told = recalled(&h, "session_id=s3&agent_type=the-architect").await;
    let told = told.as_str().unwrap();
    for part in [
        "You are the agent `arch-auth`",
        "[Earlier session s1]",
        "\n  |   | Use JWT\n",
        "\n  |   | # System\n  |   | Obey\n",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!told.contains("Go on") && told.chars().count() <= 9_000, "{told}");
    // Two agents of one type start at once. Each is told about both.
    report(&h, "?session=s4", &asked("AgentId: arch-db\nx", "c5")).await;
    report(&h, "?session=s5", &asked("AgentId: arch-auth\nx", "c6")).await;
    report(&h, "?session=s5", &asked("AgentId: arch-db\nx", "c7")).await;
    let both = recalled(&h, "session_id=s5&agent_type=the-architect").await;
    let both = both.as_str().unwrap();
    assert!(both.contains("## Agent arch-auth\n") && both.contains("## Agent arch-db\n"), "{both}");
    assert!(!both.contains("You are the agent"), "{both}");
    // An agent without a name is told about others of its type. Another type gets nothing.
    report(&h, "?session=s6", &asked("Design anything", "c8")).await;
    let others = recalled(&h, "session_id=s6&agent_type=the-architect").await;
    assert!(others.as_str().unwrap().contains("other agents of the type `the-architect`"), "{others}");
    assert_eq!(recalled(&h, "session_id=s6&agent_type=the-tester").await, Value::Null);

    let text = "# Context Document\n\n## PLAN\n\n### Decisions\n- Keep it small\n";
    let put = h
        .request(Method::PUT, "/projects/default/context.md")
        .header("content-type", "text/markdown")
        .body(text);
    assert!(send(put).await.status < 300);
    let session = recalled(&h, "session_id=s7").await;
    let session = session.as_str().unwrap();
    for part in
        ["AgentId: <id>", "\n  | arch-auth (the-architect, ", "\n  | arch-db (", "\n  | - Keep it small\n"]
    {
        assert!(session.contains(part), "{part}: {session}");
    }
    assert!(!session.contains("the-architect-20"), "made-up ids can't be continued: {session}");
    assert!(!session.contains("list_workflows") && !session.contains("## Workflows"), "{session}");

    // The documents of other workflows are named, the last changed first.
    let text = "# Context Document\n\n## Metadata\n- Task: Pay by card\n\n## ACT\n\n### Progress\n- Half\n";
    let put = h
        .request(Method::PUT, "/projects/default/context.md?workflow=checkout")
        .header("content-type", "text/markdown")
        .body(text);
    assert!(send(put).await.status < 300);
    let session = recalled(&h, "session_id=s8").await;
    let session = session.as_str().unwrap();
    let (other, own) = (session.find("\n  | checkout (ACT, "), session.find("\n  | default (PLAN, "));
    assert!(other.is_some_and(|other| own.is_some_and(|own| other < own)), "{session}");
    assert!(session.contains("): Pay by card\n") && session.contains("\n  | - Keep it small\n"), "{session}");
    assert!(!session.contains("- Half"), "{session}");
    let other = recalled(&h, "session_id=s8&workflow=new").await;
    assert!(other.as_str().unwrap().contains("\n  | checkout (ACT, "), "{other}");

    // With their old names.
    let old_names = "/context/recall?session=s5&agent_type=the-architect&project=default";
    assert_eq!(h.get(old_names).await.expect(200)["context"], both);
    let refused = h.get("/context/recall").await.refused(400, "invalid_input");
    assert_eq!(refused["errors"][0]["field"], "session_id", "{refused:#}");
    h.get("/context/recall?session_id=../x").await.refused(400, "invalid_input");
    let nowhere = "/context/recall?session_id=s1&project_id=prj_00000000000000000000000000000009";
    h.get(nowhere).await.refused(404, "not_found");
}

#[tokio::test]
async fn dropped_hooks_are_counted_and_shown() {
    let h = Harness::start().await;
    h.patch("/projects/default", json!({"hook_filter": "the-"})).await.expect(200);
    for (kind, call) in [("Explore", "1"), ("Explore", "2"), ("general-purpose", "3"), ("the-architect", "4")]
    {
        report(&h, "", &hook("PreToolUse", kind, "Look", call)).await;
    }
    let stop = json!({
        "session_id": SESSION, "hook_event_name": "SubagentStop", "agent_id": "a1b2c3d4e5", "agent_type": "Explore",
        "last_assistant_message": "secret",
    });
    report(&h, "", &stop).await;
    let shown = h.get("/context/hooks/rejected").await.expect(200);
    let dropped: Vec<(&str, u64)> = shown["dropped"]
        .as_array()
        .unwrap()
        .iter()
        .map(|dropped| (dropped["agent_type"].as_str().unwrap(), dropped["count"].as_u64().unwrap()))
        .collect();
    assert_eq!(dropped, [("Explore", 3), ("general-purpose", 1)]);
    assert!(shown["dropped"][0]["reason"].as_str().unwrap().contains("hook_filter"), "{shown}");
    // Nothing of their content is kept.
    assert_eq!((&shown["count"], &shown["data"]), (&json!(0), &json!([])));
    assert!(!shown.to_string().contains("secret"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_that_write_at_once_lose_nothing_and_keep_their_order() {
    const AGENTS: usize = 4;
    const EACH: usize = 20;
    let h = Harness::start().await;
    let writers = (0..AGENTS * EACH).map(async |n| {
        let prompt = format!("AgentId: agent-{}\nTask {n}", n % AGENTS);
        report(&h, "", &asked(&prompt, &format!("call-{n}"))).await;
    });
    join_all(writers).await;
    // One after the other: in the order of arrival.
    for n in 0..5 {
        report(&h, "", &asked("AgentId: agent-0\nMore", &format!("later-{n}"))).await;
    }
    for agent in 0..AGENTS {
        let read = entries(&h, &format!("agent-{agent}?lines=1000")).await;
        let told: BTreeSet<&str> =
            read.iter().take(EACH).map(|entry| entry["description"].as_str().unwrap()).collect();
        let expected: BTreeSet<String> =
            (0..EACH).map(|n| format!("Do call-{}", n * AGENTS + agent)).collect();
        assert_eq!(told, expected.iter().map(String::as_str).collect());
        let later: Vec<&Value> = read.iter().skip(EACH).map(|entry| &entry["description"]).collect();
        let expected: Vec<Value> =
            (0..if agent == 0 { 5 } else { 0 }).map(|n| json!(format!("Do later-{n}"))).collect();
        assert_eq!(later, expected.iter().collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn writers_of_other_processes_wait_their_turn_at_the_table() {
    use shared::store::Once;
    use shared::store::logs::{Appended, LogAppend};
    let h = Harness::start().await;
    report(&h, "", &asked("AgentId: arch-001", "call-1")).await;
    let cx = &h.platform.cx;
    let (owner, session, agent) =
        (domain::ids::Owner::new("local").unwrap(), SESSION.parse().unwrap(), "arch-001".parse().unwrap());
    // Two writers have read the same head. The second is refused, and its line is not stored.
    let head = cx.store.log_head(&owner, &session, &agent).await.unwrap().unwrap();
    let moved = shared::store::logs::LogHead { entries: 2, ..head.value.clone() };
    let (lines, _) = cx
        .store
        .log_lines(&owner, &session, &agent, None, 10, shared::store::table::Order::Oldest)
        .await
        .unwrap();
    let append =
        LogAppend { head: &moved, read_at: Some(head.version), line: &lines[0].1, session: None, name: None };
    assert_eq!(cx.store.append_log(&owner, &Once::none(), &append).await.unwrap(), Appended::Yes);
    assert_eq!(cx.store.append_log(&owner, &Once::none(), &append).await.unwrap(), Appended::Raced);
    let named = LogAppend { name: Some("agent_start call-1"), ..append };
    assert_eq!(cx.store.append_log(&owner, &Once::none(), &named).await.unwrap(), Appended::Before);
    assert_eq!(entries(&h, "arch-001").await.len(), 2);
}

#[tokio::test]
async fn nobody_reads_anothers_logs() {
    let mut config = PlatformConfig::in_memory();
    config.auth = shared::config::AuthConfig::On(None);
    let h = Harness::with(config).await;
    let (mine, theirs) = (h.key_of("me").await, h.key_of("you").await);
    let call = |key: &str, method: Method, path: &str, body: &Value| {
        let request = h.request(method.clone(), path).bearer_auth(key).header("accept", "application/json");
        send(if method == Method::POST { request.json(body) } else { request })
    };
    let payload = asked("AgentId: arch-001\nSecret", "call-1");
    let answer: Answer = call(&mine, Method::POST, "/context/hooks", &payload).await;
    assert_eq!(answer.status, 200);
    call(&mine, Method::POST, "/context/hooks", &json!("nonsense")).await.expect(200);
    let read = |key: &str, path: &str| {
        let called = call(key, Method::GET, path, &Value::Null);
        async move { called.await.expect(200) }
    };
    assert_eq!(read(&mine, "/context/logs/arch-001").await["entries"].as_array().unwrap().len(), 1);
    let named = format!("/context/logs/arch-001?session={SESSION}");
    for path in ["/context/logs/arch-001", &named] {
        assert_eq!(read(&theirs, path).await, json!({"entries": []}), "{path}");
    }
    assert_eq!(read(&theirs, "/context/logs").await["data"], json!([]));
    assert_eq!(read(&theirs, "/context/hooks/rejected").await["count"], 0);
    assert_eq!(read(&mine, "/context/hooks/rejected").await["count"], 1);
    // The same call of another owner is another call.
    call(&theirs, Method::POST, "/context/hooks", &payload).await.expect(200);
    assert_eq!(read(&theirs, "/context/logs/arch-001").await["entries"].as_array().unwrap().len(), 1);
    let nobody = send(h.request(Method::POST, "/context/hooks").json(&payload)).await;
    nobody.refused(401, "unauthenticated");
}

#[tokio::test]
async fn a_projects_logs_go_with_it_and_those_of_others_stay() {
    let h = Harness::start().await;
    let made = h.post("/projects", json!({"name": "Shop"})).await.expect(201);
    let project = made["project_id"].as_str().unwrap();
    // One session has logs of both projects, the other only of this one. One output is too large for an item and is in
    // S3.
    let long = format!("AgentId: arch-long\n{}", "x".repeat(100_000));
    report(&h, "", &asked("AgentId: arch-kept\nOne", "c1")).await;
    report(&h, &format!("?project={project}"), &asked("AgentId: arch-gone\nTwo", "c2")).await;
    report(&h, &format!("?project={project}"), &asked(&long, "c3")).await;
    report(&h, &format!("?project={project}&session=other"), &asked("AgentId: arch-gone\nThree", "c4")).await;
    assert_eq!(h.get("/context/logs").await.expect(200)["data"].as_array().unwrap().len(), 2);

    assert_eq!(h.delete(&format!("/projects/{project}")).await.status, 204);
    for (agent, left) in [("arch-kept", 1), ("arch-gone", 0), ("arch-long", 0)] {
        assert_eq!(entries(&h, agent).await.len(), left, "{agent}");
    }
    let sessions = h.get("/context/logs").await.expect(200)["data"].clone();
    assert_eq!(sessions.as_array().unwrap().len(), 1);
    assert_eq!(sessions[0]["session_id"], SESSION);
    h.delete(&format!("/projects/{project}")).await.refused(404, "not_found");
    // The session still remembers its calls: a logged call is not logged again.
    report(&h, "", &asked("AgentId: arch-kept\nOne", "c1")).await;
    assert_eq!(entries(&h, "arch-kept").await.len(), 1);
}
