//! Messages that the AWS SDK sends through the endpoint of the queues.

use std::time::Duration;

use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_sqs::error::ProvideErrorMetadata;
use aws_sdk_sqs::types::{BatchResultErrorEntry, SendMessageBatchRequestEntry, SendMessageBatchResultEntry};

use crate::harness::{QUEUE, engines, queues, soon};

fn url(queue: &str) -> String {
    format!("https://sqs.us-east-1.amazonaws.com/000000000000/{queue}")
}

#[tokio::test]
async fn a_batch_is_taken_message_by_message() {
    let engines = engines().await;
    let client = queues(&engines, RetryConfig::disabled());
    let entry = |id: &str, body: &str, delay: i32, group: &str| {
        let entry = SendMessageBatchRequestEntry::builder().id(id).message_body(body).delay_seconds(delay);
        entry.message_group_id(group).build().unwrap()
    };
    let sent = client
        .send_message_batch()
        .queue_url(url(QUEUE))
        .entries(entry("0", "now", 0, "auth0|me"))
        .entries(entry("1", "later", 900, "a.b_c|d:e@f+g=h,i~j-k"))
        .entries(entry("2", "", 0, "me"))
        .entries(entry("3", "too late", 901, "me"))
        .entries(entry("4", "before", -1, "me"))
        .entries(entry("5", "no group", 0, "a b"))
        .entries(entry("6", "long group", 0, &"x".repeat(129)))
        .entries(entry("7", "longest group", 1, &"x".repeat(128)))
        .send()
        .await
        .unwrap();
    let taken: Vec<&str> = sent.successful().iter().map(SendMessageBatchResultEntry::id).collect();
    let failed: Vec<&str> = sent.failed().iter().map(BatchResultErrorEntry::id).collect();
    assert_eq!((taken, failed), (vec!["0", "1", "7"], vec!["2", "3", "4", "5", "6"]));
    assert!(
        sent.failed().iter().all(|entry| entry.code() == "InvalidParameterValue" && entry.sender_fault())
    );

    let queue = engines.queue(QUEUE).unwrap();
    let received = soon(queue.receive(10, Duration::ZERO)).await;
    assert_eq!(received.len(), 1);
    assert_eq!((&*received[0].body, received[0].group.as_deref()), ("now", Some("auth0|me")));
    assert_eq!((queue.depth().delayed, queue.depth().in_flight), (2, 1));
    engines.shutdown().await;
}

#[tokio::test]
async fn an_invalid_batch_is_refused() {
    let engines = engines().await;
    let client = queues(&engines, RetryConfig::disabled());
    let entry = |id: usize| {
        SendMessageBatchRequestEntry::builder().id(id.to_string()).message_body("a").build().unwrap()
    };
    for (queue, ids, code) in [
        (QUEUE, (0..11).collect(), "TooManyEntriesInBatchRequest"),
        (QUEUE, vec![], "EmptyBatchRequest"),
        (QUEUE, vec![1, 1], "BatchEntryIdsNotDistinct"),
        ("absent", vec![1], "QueueDoesNotExist"),
    ] {
        let entries = ids.into_iter().map(entry).collect();
        let refused =
            client.send_message_batch().queue_url(url(queue)).set_entries(Some(entries)).send().await;
        assert_eq!(refused.unwrap_err().code().map(|found| found.contains(code)), Some(true), "{code}");
    }
    assert_eq!(engines.queue(QUEUE).unwrap().depth().visible, 0);
    engines.shutdown().await;
}
