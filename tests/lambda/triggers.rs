//! Invocations by a timer, a queue and the gateway.

use std::time::Duration;

use base::clock::{Clock, ManualClock};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::bed::Bed;
use crate::lambda::LONGEST;
use crate::model::OUTPUT;
use crate::payload::{action, messages, payload, post, request};

/// An approved action that was due a minute ago.
async fn due_action(bed: &Bed, due: Timestamp) -> Value {
    let server = &bed.server;
    let agent = server.agent().await;
    let mut action = action();
    action["schedule"] = json!({"at": due.to_string()});
    let defined = server.post(&format!("/agents/{agent}/actions"), action).await.expect(201);
    let path = format!("/actions/{}/approve", defined["action_id"].as_str().unwrap());
    server.post(&path, json!({"approval_hash": defined["approval_hash"]})).await.expect(200)
}

/// From the timer over the queue to the output, each step in AWS's format.
#[tokio::test]
async fn a_due_action_goes_from_the_sweep_to_its_output() {
    let now = Timestamp::now();
    let due = now - SignedDuration::from_secs(60);
    let clock = ManualClock::at(now - SignedDuration::from_secs(240));
    let bed = Bed::with_clock(Clock::Manual(clock.clone())).await;
    let action = due_action(&bed, due).await;
    clock.set(now);

    let mut sweep = bed.lambda("schedule-sweep").await;
    let timer = payload("schedule-sweep.timer").to_string();
    // Lambda tells the sweep its remaining time: it is too short to begin.
    let swept = sweep.invoke_within(timer.clone(), Duration::from_secs(5)).await.json().await;
    assert_eq!(swept["published"], 0, "{swept:#}");
    let swept = sweep.invoke_within(timer.clone(), LONGEST).await.json().await;
    assert_eq!((&swept["leased"], &swept["published"], &swept["failed"]), (&json!(1), &json!(1), &json!(0)));
    assert!(swept["oldest_lag_ms"].as_i64().is_some_and(|lag| lag >= 60_000), "{swept:#}");
    assert!(sweep.log().contains("DispatchLagMs"), "{}", sweep.log());
    // A dispatched action is not dispatched again for a while.
    assert_eq!(sweep.invoke_within(timer, LONGEST).await.json().await["leased"], 0);

    let queue = bed.server.platform.engines().queue("scheduled-executor").unwrap();
    let received = queue.receive(10, Duration::from_secs(10)).await;
    assert_eq!(received.len(), 1);
    let event = messages(&[&received[0].body]);
    let mut executor = bed.lambda("scheduled-executor").await;
    assert_eq!(
        executor.invoke(&event).await.json().await,
        json!({"batchItemFailures": []}),
        "{}",
        executor.log()
    );
    // The run says how late it began.
    assert!(executor.log().contains("FireLagMs"), "{}", executor.log());
    // A duplicate does nothing.
    assert_eq!(executor.invoke(&event).await.json().await, json!({"batchItemFailures": []}));

    let path = format!("/actions/{}", action["action_id"].as_str().unwrap());
    assert_eq!(bed.server.get(&path).await.expect(200)["state"], "completed", "{}", executor.log());
    let runs = bed.server.get(&format!("{path}/runs")).await.expect(200);
    let runs = runs["data"].as_array().unwrap();
    assert_eq!((runs.len(), &runs[0]["state"], &runs[0]["score"]), (1, &json!("succeeded"), &json!(90)));
    let outputs = format!("{path}/runs/{}/outputs", runs[0]["run_id"].as_str().unwrap());
    let outputs = bed.server.get(&outputs).await.expect(200);
    let asset = outputs["data"][0]["asset_id"].as_str().unwrap();
    assert_eq!(bed.server.get(&format!("/assets/{asset}/content")).await.expect(200), OUTPUT);
}

#[tokio::test]
async fn only_failed_messages_of_a_batch_are_redelivered() {
    let bed = Bed::new().await;
    let mut executor = bed.lambda("scheduled-executor").await;
    let due = |id: &str| json!({"owner": "local", "kind": "action", "id": id}).to_string();
    let gone = due("act_0193f2a7c5e7d3a9b1f4c6d8e0a2b4c0");
    let bad_id = due("x");
    let no_item = json!({}).to_string();
    let other = json!({"owner": "local", "kind": "theme", "id": "x"}).to_string();
    for (bodies, failed) in [
        (&[gone.as_str()][..], &[][..]),
        (&[&gone, "not an event"], &["m1"]),
        (&["", &gone, &other, &gone, &bad_id, &no_item, "[]"], &["m0", "m2", "m4", "m5", "m6"]),
        (&[], &[]),
    ] {
        let failures: Vec<Value> = failed.iter().map(|id| json!({"itemIdentifier": id})).collect();
        let response = executor.invoke(&messages(bodies)).await.json().await;
        assert_eq!(response, json!({"batchItemFailures": failures}), "{bodies:?}");
    }
}

/// The real function, from the queue's event to the queue's answer.
#[tokio::test]
async fn a_failed_message_becomes_visible_soon() {
    let bed = Bed::new().await;
    let mut executor = bed.lambda("scheduled-executor").await;
    let queue = bed.server.platform.engines().queue("scheduled-executor").unwrap();
    let sent = queue.send("not an event", Duration::ZERO);
    for pause in [20, 40] {
        let received = queue.receive(1, Duration::from_secs(10)).await.remove(0);
        assert!(queue.hidden_for(sent).unwrap() > Duration::from_secs(5_000));
        let mut event = messages(&[&received.body]);
        let record = &mut event["Records"][0];
        record["receiptHandle"] = received.receipt.to_string().into();
        record["eventSourceARN"] = queue.arn().into();
        record["attributes"]["ApproximateReceiveCount"] = received.receives.to_string().into();
        let response = executor.invoke(&event).await.json().await;
        assert_eq!(response, json!({"batchItemFailures": [{"itemIdentifier": "m0"}]}));
        let hidden = queue.hidden_for(sent).unwrap();
        let pause = Duration::from_secs(pause);
        assert!(pause / 2 < hidden && hidden <= pause, "{hidden:?} {}", executor.log());
        queue.change_visibility(received.receipt, Duration::ZERO).unwrap();
    }
}

/// A queue's function reports each message separately. A timer's function fails as a whole, so that Lambda counts the
/// error and the alarm fires.
#[tokio::test]
async fn a_failed_call_is_reported_per_trigger() {
    let bed = Bed::new().await;
    let absent = [("LAMPLIGHTER_TABLE", "absent")];
    let mut sweep = bed.lambda_with("schedule-sweep", &absent).await;
    for _ in 0..2 {
        let failure = sweep.invoke(&payload("schedule-sweep.timer")).await.failure();
        assert_eq!(failure.error_message, "schedule-sweep failed: misconfigured");
    }
    let mut executor = bed.lambda_with("scheduled-executor", &absent).await;
    let event = payload("scheduled-executor.due");
    let failures = executor.invoke(&event).await.json().await;
    assert_eq!(failures["batchItemFailures"][0]["itemIdentifier"], event["Records"][0]["messageId"]);
}

/// An API key is created, authenticates its owner, and does not work after it is revoked.
#[tokio::test]
async fn an_api_key_authenticates_its_owner() {
    let bed = Bed::new().await;
    let mut accounts = bed.lambda("account").await;
    let mut authorizer = bed.lambda("authorizer").await;
    let mut agents = bed.lambda("agents").await;
    let made =
        accounts.http(&post("/account/api-keys", "anna", &json!({"name": "laptop"}))).await.expect(201);
    let ask = |authorization: Value| {
        let mut event = payload("authorizer.request");
        event["headers"]["Authorization"] = authorization.clone();
        event["multiValueHeaders"]["Authorization"] = json!([authorization]);
        event
    };
    let bearer = format!("Bearer {}", made["api_key"].as_str().unwrap());
    let policy = authorizer.invoke(&ask(bearer.clone().into())).await.json().await;
    let whole_stage = "arn:aws:execute-api:eu-central-1:123456789012:a1b2c3d4e5/live/*/*";
    let statement = json!([{"Action": "execute-api:Invoke", "Effect": "Allow", "Resource": whole_stage}]);
    assert_eq!(
        policy,
        json!({
            "principalId": "anna",
            "policyDocument": {"Version": "2012-10-17", "Statement": statement},
            "context": {"key_id": made["key_id"], "owner": "anna", "scope": "admin"},
        })
    );
    let mut list = request("GET", "/agents", "nobody");
    list["requestContext"]["authorizer"] = policy["context"].clone();
    assert_eq!(agents.http(&list).await.expect(200)["data"], json!([]));

    // The scope of a key limits the call. Without a valid scope, the answer identifies nobody.
    let input = json!({"name": "reader", "scopes": ["read"]});
    let reader = accounts.http(&post("/account/api-keys", "anna", &input)).await.expect(201);
    let reader_id = reader["key_id"].clone();
    let reader = format!("Bearer {}", reader["api_key"].as_str().unwrap());
    let policy = authorizer.invoke(&ask(reader.into())).await.json().await;
    assert_eq!(policy["context"], json!({"key_id": reader_id, "owner": "anna", "scope": "read"}));
    let mut create = post("/agents", "anna", &json!({"name": "n", "goal": "g"}));
    create["requestContext"]["authorizer"] = policy["context"].clone();
    agents.http(&create).await.refused(403, "scope_missing");
    for scope in [Value::Null, json!(""), json!("all"), json!(["admin"])] {
        create["requestContext"]["authorizer"]["scope"] = scope;
        agents.http(&create).await.refused(401, "unauthenticated");
    }
    let keys = accounts.http(&request("GET", "/account/api-keys", "anna")).await.expect(200);
    for key in keys["data"].as_array().unwrap() {
        assert!(key["last_used"].as_str().unwrap().ends_with(":00:00Z"), "{key:#}");
    }

    for wrong in
        ["", "Bearer", "Bearer x", "Basic YTpi", &format!("{bearer}A"), &bearer.replace("Bearer", "Token")]
    {
        // API Gateway turns exactly this message into a 401. No log contains the token.
        assert_eq!(
            authorizer.invoke(&ask(wrong.into())).await.failure().error_message,
            "Unauthorized",
            "{wrong}"
        );
    }
    let path = format!("/account/api-keys/{}", made["key_id"].as_str().unwrap());
    assert_eq!(accounts.http(&request("DELETE", &path, "anna")).await.status, 204);
    assert_eq!(authorizer.invoke(&ask(bearer.clone().into())).await.failure().error_message, "Unauthorized");
    let secret = bearer.rsplit('.').next().unwrap();
    assert!(!authorizer.log().contains(secret) && !accounts.log().contains(secret));
}
