//! How a function's process starts, survives unreadable payloads, and ends.

use serde_json::Value;

use crate::bed::Bed;
use crate::lambda::{LONGEST, command, environment};
use crate::payload::payload;

/// Runs a function that cannot start, with this variable set or removed. Returns the one line that it writes.
async fn refusal(function: &str, variable: &str, value: Option<&str>) -> Value {
    let mut variables = environment(function, "127.0.0.1:9");
    variables.retain(|(name, _)| name != variable);
    variables.extend(value.map(|value| (variable.to_owned(), value.to_owned())));
    let ended = command(function, variables).output().await.unwrap();
    assert_eq!(
        (ended.status.code(), String::from_utf8_lossy(&ended.stderr).as_ref()),
        (Some(1), ""),
        "{function}"
    );
    let written = String::from_utf8(ended.stdout).unwrap();
    assert_eq!(written.lines().count(), 1, "{written}");
    serde_json::from_str(&written).unwrap()
}

#[tokio::test]
async fn a_function_that_cannot_start_says_why_in_one_line() {
    for function in catalog::NAMES {
        let line = refusal(function, "AWS_REGION", None).await;
        assert_eq!(line["level"], "ERROR");
        assert_eq!(line["message"], "failed to start: AWS_REGION is not set", "{function}");
    }
    for (variable, value, message) in [
        ("AWS_ACCESS_KEY_ID", None, "AWS_ACCESS_KEY_ID is not set"),
        ("LAMPLIGHTER_AUTH", Some("maybe"), "LAMPLIGHTER_AUTH must be `on` or `off`, is `maybe`"),
        (
            "LAMPLIGHTER_RUN_BUDGET_MICROS",
            Some("much"),
            "LAMPLIGHTER_RUN_BUDGET_MICROS must be a positive number of micro-dollars, is `much`",
        ),
        (
            "LAMPLIGHTER_MODEL_URL",
            Some("no address"),
            "LAMPLIGHTER_MODEL_URL must begin with http:// or https:// and have a host",
        ),
    ] {
        let line = refusal("agents", variable, value).await;
        assert_eq!(line["message"], format!("failed to start: {message}"));
    }
}

#[tokio::test]
async fn an_unreadable_payload_does_not_end_the_process() {
    let bed = Bed::new().await;
    for function in ["agents", "catalog", "schedule-sweep", "scheduled-executor"] {
        let mut lambda = bed.lambda(function).await;
        for garbage in ["", "{", "not JSON", "\u{0}"] {
            let failure = lambda.invoke_within(garbage, LONGEST).await.failure();
            assert!(!failure.error_message.is_empty(), "{function}: {garbage:?}");
        }
        if function != "schedule-sweep" {
            // A timer's function ignores the event.
            for other in ["{}", "[]", "1", "null", "{\"Records\": 1}"] {
                lambda.invoke_within(other, LONGEST).await.failure();
            }
        }
        match function {
            "agents" => assert_eq!(lambda.http(&payload("agents.list")).await.status, 200),
            "catalog" => assert_eq!(lambda.http(&payload("catalog.health")).await.status, 200),
            "schedule-sweep" => {
                let swept = lambda.invoke(&payload("schedule-sweep.timer")).await.json().await;
                assert_eq!(swept["failed"], 0);
            }
            _ => {
                let handled = lambda.invoke(&payload("scheduled-executor.due")).await.json().await;
                assert_eq!(handled["batchItemFailures"], Value::Array(Vec::new()));
            }
        }
    }
}

/// Lambda sends SIGTERM before it removes an environment. All data is already stored, so ending at once loses nothing.
#[tokio::test]
async fn sigterm_ends_the_process() {
    let bed = Bed::new().await;
    let mut lambda = bed.lambda("agents").await;
    assert_eq!(lambda.http(&payload("agents.create")).await.status, 201);
    let ended = lambda.terminate().await;
    assert!(ended.success(), "{ended}");
    let mut next = bed.lambda("agents").await;
    assert_eq!(next.http(&payload("agents.list")).await.expect(200)["data"][0]["name"], "Market watch");
}
