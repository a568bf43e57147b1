use std::time::Duration;

use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::types::{
    AttributeValue, KeysAndAttributes, Put, PutRequest, TransactWriteItem, WriteRequest,
};
use aws_sdk_s3::primitives::ByteStream;
use lamplighter_local::engines::faults::{Fault, FaultConfig, FaultRates};
use lamplighter_local::engines::{DataLocation, Engines, EnginesConfig};

use crate::harness::{BUCKET, TABLE, config, dynamo, dynamo_with, s3, s3_with};

async fn faulty(rates: FaultRates) -> Engines {
    let faults = FaultConfig { seed: 1, rates, slow_by: Duration::from_millis(20) };
    let config = EnginesConfig { faults: Some(faults), ..config(DataLocation::Memory) };
    Engines::start(config).await.unwrap()
}

fn key(sk: &str) -> [(&'static str, AttributeValue); 2] {
    [("pk", AttributeValue::S("U#1".into())), ("sk", AttributeValue::S(sk.into()))]
}

fn item(sk: &str) -> std::collections::HashMap<String, AttributeValue> {
    key(sk).into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

async fn exists(client: &aws_sdk_dynamodb::Client, sk: &str) -> bool {
    let get = client.get_item().table_name(TABLE).set_key(Some(item(sk))).send().await;
    get.unwrap().item.is_some()
}

/// What the SDK reports for a request that certainly meets the fault: an error code, or why the request failed.
fn seen<T, E: ProvideErrorMetadata, R>(outcome: &Result<T, SdkError<E, R>>) -> String {
    match outcome {
        Ok(_) => "ok".into(),
        Err(SdkError::DispatchFailure(_)) => "connection lost".into(),
        Err(error) => error.code().unwrap_or("no code").into(),
    }
}

#[tokio::test]
async fn each_fault_of_the_table_is_what_the_sdk_sees_and_does_what_it_says() {
    let cases: [(Fault, FaultRates, &[&str], bool); 5] = [
        (
            Fault::Throttled,
            FaultRates { throttled: 1.0, ..Default::default() },
            &["ProvisionedThroughputExceededException", "ThrottlingException"],
            false,
        ),
        (
            Fault::Conflict,
            FaultRates { conflict: 1.0, ..Default::default() },
            &["TransactionConflictException"],
            false,
        ),
        (Fault::Dropped, FaultRates { dropped: 1.0, ..Default::default() }, &["connection lost"], false),
        (
            Fault::AnswerLost,
            FaultRates { answer_lost: 1.0, ..Default::default() },
            &["connection lost"],
            true,
        ),
        (Fault::Slow, FaultRates { slow: 1.0, ..Default::default() }, &["ok"], true),
    ];
    for (fault, rates, expected, done) in cases {
        let engines = faulty(rates).await;
        let client = dynamo(&engines);
        let mut all = Vec::new();
        for n in 0..12 {
            let put = client.put_item().table_name(TABLE).set_item(Some(item(&n.to_string()))).send().await;
            all.push(seen(&put));
        }
        all.sort();
        all.dedup();
        assert_eq!(all, expected, "{fault:?}");
        assert_eq!(engines.faults().unwrap().injected(fault), 12);
        engines.faults().unwrap().set_rates(FaultRates::default());
        for n in 0..12 {
            assert_eq!(exists(&client, &n.to_string()).await, done, "{fault:?}");
        }
        assert_eq!(engines.faults().unwrap().injected(fault), 12);
        engines.shutdown().await;
    }
}

#[tokio::test]
async fn a_transaction_in_conflict_says_which_items_were() {
    let engines = faulty(FaultRates { conflict: 1.0, ..Default::default() }).await;
    let client = dynamo(&engines);
    let put = |sk: &str| {
        let put = Put::builder().table_name(TABLE).set_item(Some(item(sk))).build().unwrap();
        TransactWriteItem::builder().put(put).build()
    };
    let request = client.transact_write_items().transact_items(put("a")).transact_items(put("b"));
    let error = request.send().await.unwrap_err().into_service_error();
    let reasons = match &error {
        aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError::TransactionCanceledException(
            cancelled,
        ) => cancelled.cancellation_reasons(),
        other => panic!("{other:?}"),
    };
    let codes: Vec<_> = reasons.iter().map(|reason| reason.code().unwrap()).collect();
    assert_eq!(codes.len(), 2);
    assert!(codes.contains(&"TransactionConflict"), "{codes:?}");
    engines.faults().unwrap().set_rates(FaultRates::default());
    assert!(!exists(&client, "a").await && !exists(&client, "b").await);
    engines.shutdown().await;
}

#[tokio::test]
async fn a_batch_is_done_in_part_and_the_rest_comes_back() {
    let engines = faulty(FaultRates { unprocessed: 1.0, ..Default::default() }).await;
    let client = dynamo(&engines);
    let write = |n: usize| {
        let put = PutRequest::builder().set_item(Some(item(&n.to_string()))).build().unwrap();
        WriteRequest::builder().put_request(put).build()
    };
    let mut left: Vec<WriteRequest> = (0..25).map(write).collect();
    let mut rounds = 0;
    while !left.is_empty() {
        let before = left.len();
        let done = client.batch_write_item().request_items(TABLE, left).send().await.unwrap();
        left = done.unprocessed_items.unwrap_or_default().remove(TABLE).unwrap_or_default();
        assert!(left.len() < before);
        rounds += 1;
    }
    assert!(rounds > 1);

    let keys =
        |keys| KeysAndAttributes::builder().set_keys(Some(keys)).consistent_read(true).build().unwrap();
    let mut left = keys((0..25).map(|n| item(&n.to_string())).collect());
    let mut found = 0;
    loop {
        let got = client.batch_get_item().request_items(TABLE, left).send().await.unwrap();
        found += got.responses.unwrap()[TABLE].len();
        match got.unprocessed_keys.unwrap_or_default().remove(TABLE) {
            Some(rest) => left = rest,
            None => break,
        }
        assert_eq!(left.consistent_read(), Some(true));
    }
    assert_eq!(found, 25);
    engines.shutdown().await;
}

#[tokio::test]
async fn each_fault_of_the_bucket_is_what_the_sdk_sees_and_does_what_it_says() {
    let cases = [
        (Fault::SlowDown, FaultRates { slow_down: 1.0, ..Default::default() }, "SlowDown", false),
        (Fault::Dropped, FaultRates { dropped: 1.0, ..Default::default() }, "connection lost", false),
        (Fault::AnswerLost, FaultRates { answer_lost: 1.0, ..Default::default() }, "connection lost", true),
        (Fault::Slow, FaultRates { slow: 1.0, ..Default::default() }, "ok", true),
    ];
    for (fault, rates, expected, done) in cases {
        let engines = faulty(rates).await;
        let client = s3(&engines);
        let put = client.put_object().bucket(BUCKET).key("a/ä").body(ByteStream::from_static(b"hello"));
        assert_eq!(seen(&put.send().await), expected, "{fault:?}");
        assert_eq!(engines.faults().unwrap().injected(fault), 1);
        engines.faults().unwrap().set_rates(FaultRates::default());
        let found = client.head_object().bucket(BUCKET).key("a/ä").send().await.is_ok();
        assert_eq!(found, done, "{fault:?}");
        engines.shutdown().await;
    }
}

#[tokio::test]
async fn the_sdks_retries_survive_temporary_faults() {
    let rates = FaultRates {
        throttled: 0.1,
        conflict: 0.0,
        unprocessed: 0.1,
        slow_down: 0.2,
        slow: 0.1,
        dropped: 0.1,
        answer_lost: 0.1,
        ..FaultRates::default()
    };
    let engines = faulty(rates).await;
    let retries =
        RetryConfig::standard().with_max_attempts(20).with_initial_backoff(Duration::from_millis(1));
    let (table, bucket) = (dynamo_with(&engines, retries.clone()), s3_with(&engines, retries));
    for n in 0..30 {
        let name = n.to_string();
        (table.put_item().table_name(TABLE).set_item(Some(item(&name))).send().await)
            .unwrap_or_else(|error| panic!("{name}: {}", DisplayErrorContext(&error)));
        let body = ByteStream::from(vec![b'x'; n * 1000]);
        (bucket.put_object().bucket(BUCKET).key(&name).body(body).send().await)
            .unwrap_or_else(|error| panic!("{name}: {}", DisplayErrorContext(&error)));
        let read = bucket.get_object().bucket(BUCKET).key(&name).send().await.unwrap();
        assert_eq!(read.body.collect().await.unwrap().to_vec(), vec![b'x'; n * 1000]);
        assert!(exists(&table, &name).await);
    }
    let faults = engines.faults().unwrap();
    for fault in [Fault::Throttled, Fault::SlowDown, Fault::Slow, Fault::Dropped, Fault::AnswerLost] {
        assert!(faults.injected(fault) > 0, "{fault:?} never happened");
    }
    engines.shutdown().await;
}

#[tokio::test]
async fn after_a_stop_nothing_answers_on_connections_that_were_open() {
    let engines = faulty(FaultRates::default()).await;
    let (table, bucket) = (dynamo(&engines), s3(&engines));
    assert!(!exists(&table, "a").await);
    bucket.list_objects_v2().bucket(BUCKET).send().await.unwrap();
    engines.shutdown().await;
    assert!(table.get_item().table_name(TABLE).set_key(Some(item("a"))).send().await.is_err());
    assert!(bucket.list_objects_v2().bucket(BUCKET).send().await.is_err());
}
