//! Turns through the streaming runner.

use std::time::Duration;

use serde_json::json;

use crate::bed::Bed;
use crate::lambda::LONGEST;
use crate::payload::{action, messages, payload, post, request};

#[tokio::test]
async fn a_turn_is_streamed_while_the_model_answers() {
    let bed = Bed::new().await;
    let agent = bed.server.agent().await;
    let mut chat = bed.lambda("agent-chat").await;
    let mut turn = payload("agent-chat.turn");
    turn["path"] = format!("/agents/{agent}/chat").into();
    turn["requestContext"]["authorizer"]["owner"] = "local".into();

    bed.model.hold();
    let mut stream = chat.invoke(&turn).await.streamed().await;
    assert_eq!(stream.status, 200);
    assert_eq!(stream.headers["content-type"], "text/event-stream");
    let location = stream.location();
    // The model has not sent more yet, so this text arrived before the end.
    stream.until("The lamp ").await;
    bed.model.release();
    let ended = stream.rest().await;
    let events = ended.events();
    assert_eq!((events.first(), events.last()), (Some(&"run.started"), Some(&"run.completed")), "{events:?}");

    // The streamed text is stored, and every instance returns the same text.
    let run = bed.server.get(&location).await.expect(200);
    assert_eq!((&run["state"], &run["message"]), (&json!("completed"), &json!("The lamp is lit.")));
    let mut other = bed.lambda("agent-chat").await;
    let mut replay = payload("agent-chat.run-events");
    replay["path"] = format!("{location}/events").into();
    replay["requestContext"]["authorizer"]["owner"] = "local".into();
    let replayed = other.http(&replay).await;
    let after_third = ended.text().find("id: 4\n").map(|at| &ended.text()[at..]);
    assert_eq!(Some(replayed.text()), after_third);
}

/// Conversations about an action stream too. A person's answer to a run is queued for the executors at once.
#[tokio::test]
async fn conversations_about_an_action_stream() {
    let bed = Bed::new().await;
    let agent = bed.server.agent().await;
    let mut asking = action();
    asking["task_config"]["instructions"] = "Ask first, then write a report about lamp oil".into();
    let defined = bed.server.post(&format!("/agents/{agent}/actions"), asking).await.expect(201);
    let path = format!("/actions/{}", defined["action_id"].as_str().unwrap());
    let mut chat = bed.lambda("agent-chat").await;
    let mut ask = payload("agent-chat.about-action");
    ask["path"] = format!("{path}/messages").into();
    ask["requestContext"]["authorizer"]["owner"] = "local".into();

    bed.model.hold();
    let mut stream = chat.invoke(&ask).await.streamed().await;
    stream.until("The lamp ").await;
    bed.model.release();
    let ended = stream.rest().await;
    assert_eq!(ended.events().last(), Some(&"run.completed"));
    // The same key again returns the same run.
    let replayed = chat.http(&ask).await;
    assert_eq!(
        (replayed.text(), &replayed.headers["idempotent-replayed"]),
        (ended.text(), &"true".parse().unwrap())
    );
    let said = chat.http(&request("GET", &format!("{path}/messages"), "local")).await.expect(200);
    let said: Vec<&str> =
        said["data"].as_array().unwrap().iter().map(|m| m["content"].as_str().unwrap()).collect();
    assert_eq!(said[1..], ["The lamp is lit."]);
    let mut stranger = ask.clone();
    stranger["requestContext"]["authorizer"]["owner"] = "bert".into();
    chat.http(&stranger).await.refused(404, "not_found");

    let hash = json!({"approval_hash": defined["approval_hash"]});
    bed.server.post(&format!("{path}/approve"), hash).await.expect(200);
    bed.server.post(&format!("{path}/run"), json!({})).await.expect(202);
    let queue = bed.server.platform.engines().queue("scheduled-executor").unwrap();
    let sent =
        async || queue.receive(10, Duration::from_secs(10)).await.pop().expect("an executor is sent for");
    let mut executor = bed.lambda("scheduled-executor").await;
    executor.invoke(&messages(&[&sent().await.body])).await.json().await;
    assert_eq!(bed.server.get(&path).await.expect(200)["state"], "needs_approval", "{}", executor.log());
    let answer = post(&format!("{path}/messages"), "local", &json!({"content": "Lamp oil"}));
    assert_eq!(chat.http(&answer).await.expect(202)["state"], "running");
    executor.invoke(&messages(&[&sent().await.body])).await.json().await;
    assert_eq!(bed.server.get(&path).await.expect(200)["state"], "completed", "{}", executor.log());
}

/// If a function has no more time for a turn, or its environment ends, the turn is put into the queue, and an executor
/// continues it. Followers see one run.
#[tokio::test]
async fn a_turn_is_handed_on_before_its_function_ends() {
    let bed = Bed::new().await;
    let agent = bed.server.agent().await;
    let mut executor = bed.lambda("scheduled-executor").await;
    for terminated in [false, true] {
        let mut chat = bed.lambda("agent-chat").await;
        let mut turn = payload("agent-chat.turn");
        turn["path"] = format!("/agents/{agent}/chat").into();
        turn["requestContext"]["authorizer"]["owner"] = "local".into();
        for headers in ["headers", "multiValueHeaders"] {
            turn[headers].as_object_mut().unwrap().remove("Idempotency-Key");
        }
        bed.model.hold();
        let remaining = if terminated { LONGEST } else { Duration::from_secs(61) };
        let mut stream = chat.invoke_within(turn.to_string(), remaining).await.streamed().await;
        let location = stream.headers["location"].to_str().unwrap().strip_prefix("/live").unwrap().to_owned();
        stream.until("The lamp ").await;
        let chat = if terminated {
            assert!(chat.terminate().await.success());
            None
        } else {
            Some(chat)
        };
        let queue = bed.server.platform.engines().queue("scheduled-executor").unwrap();
        let sent = queue.receive(10, Duration::from_secs(10)).await.pop().expect("an executor is sent for");
        bed.model.release();
        executor.invoke(&messages(&[&sent.body])).await.json().await;
        queue.delete(sent.receipt).unwrap();
        let run = bed.server.get(&location).await.expect(200);
        assert_eq!((&run["state"], &run["message"]), (&json!("completed"), &json!("The lamp is lit.")));
        if chat.is_some() {
            let ended = stream.rest().await;
            let events = ended.events();
            assert!(events.contains(&"step.restarted"), "{events:?}");
            assert_eq!(events.last(), Some(&"run.completed"));
        }
    }
}

#[tokio::test]
async fn a_turn_is_one_json_result_if_requested() {
    let bed = Bed::new().await;
    let mut agents = bed.lambda("agents").await;
    let set_up = post("/setup/chat", "local", &json!({"message": "An agent that watches"}));
    let run = agents.http(&set_up).await.expect(200);
    assert_eq!((&run["state"], &run["message"]), (&json!("completed"), &json!("The lamp is lit.")));
}

/// If the model fails after the stream has begun, the last event reports it.
#[tokio::test]
async fn a_failure_after_the_first_byte_is_an_event() {
    let bed = Bed::new().await;
    let mut agents = bed.lambda_with("agents", &[("LAMPLIGHTER_MODEL_URL", "http://127.0.0.1:9/v1")]).await;
    let mut set_up = payload("agents.setup-chat");
    let answer = agents.http(&set_up).await;
    assert_eq!(answer.events(), ["run.started", "run.failed"], "{}", answer.text());
    for (headers, accept) in
        [("headers", json!("application/json")), ("multiValueHeaders", json!(["application/json"]))]
    {
        set_up[headers]["Accept"] = accept;
        set_up[headers].as_object_mut().unwrap().remove("Idempotency-Key");
    }
    let answer = agents.http(&set_up).await;
    assert!(answer.status >= 500, "{}", answer.text());
    assert_eq!(answer.headers["content-type"], "application/problem+json");
    assert!(!answer.body.is_empty());
}

/// Nothing works without a table. The problem says whether to retry and reveals nothing about the table; the next
/// request gets the same answer. The log says what is missing.
#[tokio::test]
async fn a_failure_before_the_first_byte_is_a_problem() {
    let bed = Bed::new().await;
    for (function, path) in
        [("agents", "/agents"), ("action-define", "/actions"), ("agent-chat", "/runs/{run}")]
    {
        let path = path.replace("{run}", "run_0193f2a7c5e7d3a9b1f4c6d8e0a2b4c0");
        for (wrong, status, code, logged) in [
            (("LAMPLIGHTER_TABLE", "absent"), 500, "misconfigured", "LAMPLIGHTER_TABLE"),
            (
                ("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:1"),
                503,
                "temporarily_unavailable",
                "no connection",
            ),
        ] {
            let mut lambda = bed.lambda_with(function, &[wrong]).await;
            for _ in 0..2 {
                let problem = lambda.http(&request("GET", &path, "local")).await.refused(status, code);
                assert!(!problem.to_string().contains(wrong.1), "{problem:#}");
            }
            assert!(lambda.log().contains(logged), "{}", lambda.log());
        }
    }
}
