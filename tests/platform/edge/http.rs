//! Edge cases of HTTP: what a client accepts, how it reconnects, and its headers and times.

use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::json;
use tests::{Harness, send};

/// An `EventSource` reconnects when a stream ends, with the id of its last event and its first address.
#[tokio::test]
async fn an_event_source_is_told_when_the_run_has_ended() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    let run = h.post(&format!("/agents/{agent}/chat"), json!({"message": "Hello"})).await.expect(200);
    let events = format!("/runs/{}/events", run["run_id"].as_str().unwrap());
    let get = |path: String| h.request(Method::GET, &path).header("accept", "text/event-stream");
    let all = send(get(events.clone())).await.expect(200).as_str().unwrap().to_owned();
    let last: u64 =
        all.lines().filter_map(|line| line.strip_prefix("id: ")).next_back().unwrap().parse().unwrap();

    let again = send(get(events.clone()).header("last-event-id", last)).await;
    assert_eq!((again.status, again.body.as_str()), (204, Some("")));
    // The address still has the first value.
    assert_eq!(send(get(format!("{events}?after=1")).header("last-event-id", last)).await.status, 204);
    assert_eq!(send(get(format!("{events}?after={last}"))).await.status, 204);
    assert_eq!(send(get(format!("{events}?after={}", u64::MAX))).await.status, 204);
    let rest = send(get(events.clone()).header("last-event-id", last - 1)).await.expect(200);
    assert!(rest.as_str().unwrap().starts_with(&format!("id: {last}\n")), "{rest}");
    // As JSON there is always the result.
    assert_eq!(h.get(&format!("{events}?after={last}")).await.expect(200)["run_id"], run["run_id"]);
    for wrong in ["x", "-1", "+1", "1.5"] {
        let refused =
            send(get(events.clone()).header("last-event-id", wrong)).await.refused(400, "invalid_input");
        assert_eq!(refused["errors"][0]["field"], "Last-Event-ID", "{wrong}");
    }
}

#[tokio::test]
async fn the_preferred_form_of_a_turn_is_sent() {
    let h = Harness::start().await;
    let path = format!("/agents/{}/chat", h.agent().await);
    let turn = |accept: &'static str| {
        h.request(Method::POST, &path).header("accept", accept).json(&json!({"message": "Hello"}))
    };
    for (accept, kind) in [
        ("application/json;q=0.5, text/event-stream", "text/event-stream"),
        ("application/json, text/event-stream;q=0.5", "application/json"),
        ("application/json, text/plain, */*", "application/json"),
        ("*/*", "text/event-stream"),
    ] {
        let answer = send(turn(accept)).await;
        assert_eq!(
            (answer.status, answer.headers["content-type"].to_str().unwrap()),
            (200, kind),
            "{accept}"
        );
    }
    let refused = send(turn("text/html")).await.refused(406, "not_acceptable");
    assert!(refused["detail"].as_str().unwrap().contains("text/event-stream"), "{refused}");
    // A refused request has done nothing.
    let chats = h.get(&path.replace("/chat", "/chats")).await.expect(200);
    assert_eq!(chats["data"].as_array().unwrap().len(), 4, "{chats}");
}

#[tokio::test]
async fn an_unknown_field_is_refused_by_its_name() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    for (path, body, field) in [
        ("/agents".to_owned(), json!({"name": "a", "goal": "g", "gaol": "x"}), "gaol"),
        ("/agents".to_owned(), json!({"name": "a", "goal": "g", "budget": {"per_run": 1}}), "budget.per_run"),
        (format!("/agents/{agent}/chat"), json!({"message": "Hello", "chat": "x"}), "chat"),
        (format!("/agents/{agent}/chats"), json!({"title": "t", "titel": "x"}), "titel"),
        (
            format!("/agents/{agent}/chats"),
            json!({"messages": [{"role": "user", "content": "c", "at": 1}]}),
            "messages[0].at",
        ),
        (
            "/schedules/preview".to_owned(),
            json!({"schedule": {"every": "1h", "zone": "UTC"}}),
            "schedule.zone",
        ),
        ("/projects".to_owned(), json!({"name": "p", "enrich": true}), "enrich"),
    ] {
        let refused = h.post(&path, body).await.refused(400, "invalid_input");
        assert_eq!(refused["errors"][0]["field"], field, "{refused}");
        let message = refused["errors"][0]["message"].as_str().unwrap();
        assert!(message.starts_with("is not a field here"), "{message}");
    }
    let patched =
        h.patch(&format!("/agents/{agent}"), json!({"nmae": "x"})).await.refused(400, "invalid_input");
    assert_eq!(patched["errors"][0]["field"], "nmae");
}

#[tokio::test]
async fn an_invalid_idempotency_key_is_refused() {
    let h = Harness::start().await;
    let make = |key: reqwest::header::HeaderValue| {
        h.request(Method::POST, "/agents")
            .header("idempotency-key", key)
            .json(&json!({"name": "a", "goal": "g"}))
    };
    let long = "k".repeat(256);
    for key in [&b"schl\xC3\xBCssel"[..], b"\xFF", b"a\tb", b"", long.as_bytes()] {
        let value = reqwest::header::HeaderValue::from_bytes(key).unwrap();
        let refused = send(make(value)).await.refused(400, "invalid_input");
        assert_eq!(refused["errors"][0]["field"], "Idempotency-Key");
        assert!(
            refused["errors"][0]["message"].as_str().unwrap().contains("255 printable ASCII"),
            "{refused}"
        );
    }
    let twice = make("a".parse().unwrap()).header("idempotency-key", "b");
    assert_eq!(send(twice).await.refused(400, "invalid_input")["errors"][0]["message"], "must be given once");
    assert_eq!(h.get("/agents").await.expect(200)["data"], json!([]));
    send(make("one key: \"7\"".parse().unwrap())).await.expect(201);
}

#[tokio::test]
async fn times_outside_the_calendar_are_refused() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    let action = h
        .post(
            &format!("/agents/{agent}/actions"),
            json!({"title": "t", "task_config": {"instructions": "i", "expected_output": "o"}}),
        )
        .await
        .expect(201);
    let action = action["action_id"].as_str().unwrap();
    for wrong in ["-000001-01-01T00:00:00Z", "9999-01-01T00:00:00Z", "1969-12-31T23:59:59Z"] {
        let why = h.get(&format!("/actions/{action}/why?at={wrong}")).await.refused(400, "invalid_input");
        assert_eq!(
            why["errors"][0],
            json!({"field": "at", "message": "must be between the years 1970 and 9000"})
        );
        let preview = h.post("/schedules/preview", json!({"schedule": {"every": "1h"}, "from": wrong})).await;
        assert_eq!(preview.refused(400, "invalid_input")["errors"][0]["field"], "from");

        // A hook is still accepted, with the time of its arrival, and its log stays readable.
        let hook = json!({
            "session_id": "s-1", "hook_event_name": "PreToolUse", "tool_name": "Task", "tool_use_id": wrong,
            "tool_input": {"subagent_type": "the-architect", "description": "d", "prompt": "AgentId: arch-1\nDesign"},
        });
        h.post(&format!("/context/hooks?at={wrong}"), hook).await.expect(200);
    }
    let log = h.get("/context/logs/arch-1?session_id=s-1").await.expect(200);
    assert_eq!(log["entries"].as_array().unwrap().len(), 3, "{log}");
    let rejected = h.get("/context/hooks/rejected").await.expect(200);
    assert_eq!(rejected["count"], 3, "{rejected}");
    assert!(rejected["data"][0]["reason"].as_str().unwrap().contains("1970 and 9000"), "{rejected}");
    // The older name of the parameter is also accepted.
    assert_eq!(h.get("/context/logs/arch-1?session=s-1").await.expect(200), log);
}

#[tokio::test]
async fn the_demo_model_costs_nothing() {
    let mut config = PlatformConfig::in_memory();
    // As in `cargo run`.
    config.demo_costs = false;
    let h = Harness::with(config).await;
    let agent = h.agent().await;
    let run = h
        .post(&format!("/agents/{agent}/chat"), json!({"message": "Write a brief about oil"}))
        .await
        .expect(200);
    assert_eq!(run["cost_micros"], 0, "{run}");
    assert!(run["usage"]["output_tokens"].as_u64().unwrap() > 0, "{run}");
    assert_eq!(h.get("/usage").await.expect(200)["spent_micros"], 0);
}
