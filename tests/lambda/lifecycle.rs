//! How a function's process starts, survives unreadable payloads, and ends.

use std::sync::{Arc, Mutex};

use axum::Json;
use axum::Router;
use axum::routing::post as route;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::bed::Bed;
use crate::lambda::{LONGEST, command, environment};
use crate::payload::{payload, post};

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
        (
            "XAI_API_KEY",
            Some("ssm:key"),
            "XAI_API_KEY must name a parameter like ssm:/lamplighter/model-keys/anthropic",
        ),
    ] {
        let line = refusal("agents", variable, value).await;
        assert_eq!(line["message"], format!("failed to start: {message}"));
    }
}

/// The names in the calls of a parameter store that has `/keys/model`.
type Calls = Arc<Mutex<Vec<Value>>>;

async fn parameter_store() -> (String, Calls) {
    let calls = Calls::default();
    let kept = Arc::clone(&calls);
    let answer = async move |input: String| {
        let input: Value = serde_json::from_str(&input).unwrap();
        kept.lock().unwrap().push(input["Names"].clone());
        let (known, missing): (Vec<_>, Vec<_>) =
            input["Names"].as_array().unwrap().iter().cloned().partition(|name| name == "/keys/model");
        let known = known.into_iter().map(|name| json!({"Name": name, "Value": "planted-key"}));
        Json(json!({"Parameters": known.collect::<Vec<_>>(), "InvalidParameters": missing}))
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/", route(answer))).await });
    (url, calls)
}

/// A function that calls models reads the keys in the parameter store once, when it starts. Other functions are not told of them.
#[tokio::test]
async fn a_model_key_in_the_parameter_store_is_read_once() {
    let bed = Bed::new().await;
    let (url, calls) = parameter_store().await;
    let named = [("AWS_ENDPOINT_URL_SSM", &*url), ("LAMPLIGHTER_MODEL_KEY", "ssm:/keys/model")];
    let mut agents = bed.lambda_with("agents", &named).await;
    for _ in 0..2 {
        let set_up = post("/setup/chat", "local", &json!({"message": "An agent that watches"}));
        assert_eq!(agents.http(&set_up).await.expect(200)["message"], "The lamp is lit.");
    }
    let keys = bed.model.keys();
    assert!(keys.len() >= 2 && keys.iter().all(|key| key == "Bearer planted-key"), "{keys:?}");
    assert_eq!(*calls.lock().unwrap(), [json!(["/keys/model"])]);
    assert!(!agents.log().contains("planted-key"), "{}", agents.log());

    let mut variables = environment("agents", "127.0.0.1:9");
    let missing = [("AWS_ENDPOINT_URL_SSM", &*url), ("OPENAI_API_KEY", "ssm:/keys/none")];
    variables.extend(missing.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let ended = command("agents", variables).output().await.unwrap();
    let line: Value = serde_json::from_slice(&ended.stdout).unwrap();
    let expected = "failed to start: OPENAI_API_KEY names the parameter /keys/none, which does not exist";
    assert_eq!((ended.status.code(), &line["message"]), (Some(1), &json!(expected)));
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
