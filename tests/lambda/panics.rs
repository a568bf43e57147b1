//! If a handler panics, the response is an error that quotes nothing, and the process serves the next invocation.

use std::time::Duration;

use serde_json::{Value, json};

use crate::bed::Bed;
use crate::lambda::{LONGEST, Lambda};
use crate::payload::{messages, payload, request};

/// Text of the panics that no response or log may contain.
const SECRET: &str = "a secret word";

async fn panicking(bed: &Bed, kind: &str) -> Lambda {
    bed.lambda_with("panicking", &[("PANICKING_AS", kind)]).await
}

/// The log names the place of each panic once, and contains nothing of the panic's message.
fn check_log(lambda: &Lambda, panics: usize) {
    let log = lambda.log();
    let lines =
        log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap_or_else(|_| panic!("{line}")));
    let places: Vec<Value> = lines.filter(|line| line["message"] == "panicked").collect();
    assert_eq!(places.len(), panics, "{log}");
    assert!(
        places.iter().all(|line| line["place"].as_str().is_some_and(|p| p.contains("panicking.rs"))),
        "{log}"
    );
    assert!(!log.contains(SECRET), "{log}");
}

#[tokio::test]
async fn a_panic_in_a_request_is_a_problem() {
    let bed = Bed::new().await;
    for kind in ["buffered", "streaming"] {
        let mut lambda = panicking(&bed, kind).await;
        for _ in 0..2 {
            let problem = lambda.http(&request("GET", "/panic", "local")).await.refused(500, "internal");
            assert!(!problem.to_string().contains(SECRET));
            let well = lambda.http(&request("GET", "/well", "local")).await;
            assert_eq!((well.status, well.text()), (200, "well"), "{kind}");
        }
        check_log(&lambda, 2);
    }
}

/// The status has already been sent and the runtime cannot change it, so the response is cut short. A client that
/// follows a run notices the missing last event and reconnects.
#[tokio::test]
async fn a_panic_in_the_middle_of_a_stream_ends_that_stream_alone() {
    let bed = Bed::new().await;
    let mut lambda = panicking(&bed, "streaming").await;
    let mut stream = lambda.invoke(&request("GET", "/broken", "local")).await.streamed().await;
    assert_eq!(stream.status, 200);
    stream.until("one").await;
    assert_eq!(stream.rest().await.text(), "one");
    assert_eq!(lambda.http(&request("GET", "/well", "local")).await.text(), "well");
    check_log(&lambda, 1);
}

#[tokio::test]
async fn a_panic_in_a_timer_or_an_authorizer_is_a_failure() {
    let bed = Bed::new().await;
    let failed = "panicking failed: internal";
    let mut timer = panicking(&bed, "timer").await;
    let event = payload("schedule-sweep.timer").to_string();
    for _ in 0..2 {
        assert_eq!(timer.invoke_within(event.clone(), LONGEST).await.failure().error_message, failed);
        let well = timer.invoke_within(event.clone(), Duration::from_secs(30)).await.json().await;
        assert_eq!(well, "well");
    }
    check_log(&timer, 2);

    // The message must not be one that API Gateway turns into a 401: the caller did nothing wrong.
    let mut authorizer = panicking(&bed, "authorizer").await;
    assert_eq!(authorizer.invoke(&json!({"do": "panic"})).await.failure().error_message, failed);
    assert_eq!(authorizer.invoke(&json!({"do": "well"})).await.json().await, json!({"do": "well"}));
    check_log(&authorizer, 1);
}

/// Only the message that panics is delivered again. The other messages of the batch are done.
#[tokio::test]
async fn a_panic_in_a_batch_fails_only_one_message() {
    let bed = Bed::new().await;
    let failures = |ids: &[&str]| -> Value {
        json!({"batchItemFailures": ids.iter().map(|id| json!({"itemIdentifier": id})).collect::<Vec<_>>()})
    };
    let due = |what: &str| json!({"do": what}).to_string();
    let put =
        |key: &str| json!({"Records": [{"s3": {"object": {"key": key, "sequencer": "1"}}}]}).to_string();
    for (kind, well, panic) in [("queue", due("well"), due("panic")), ("upload", put("well"), put("panic"))] {
        let mut lambda = panicking(&bed, kind).await;
        for (bodies, failed) in
            [(vec![&*well, &panic, &well, &panic], &["m1", "m3"][..]), (vec![&*well, &well], &[])]
        {
            assert_eq!(lambda.invoke(&messages(&bodies)).await.json().await, failures(failed), "{kind}");
        }
        check_log(&lambda, 2);
    }
}
