use std::collections::HashMap;

use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::types::{AttributeValue, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem};
use lamplighter_local::engines::{DataLocation, Engines};

use crate::harness::{TABLE, config, dynamo, engines};

fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

fn item(pk: &str, sk: &str, more: &[(&str, AttributeValue)]) -> HashMap<String, AttributeValue> {
    let keys = [("pk", s(pk)), ("sk", s(sk))];
    keys.iter().chain(more).map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

#[tokio::test]
async fn a_condition_lets_one_of_sixteen_writers_through() {
    let engines = engines().await;
    let client = dynamo(&engines);
    let writers = (0..16).map(|n| {
        let client = client.clone();
        tokio::spawn(async move {
            client
                .put_item()
                .table_name(TABLE)
                .set_item(Some(item("U#1", "RUN#1", &[("by", s(&n.to_string()))])))
                .condition_expression("attribute_not_exists(pk)")
                .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
                .send()
                .await
        })
    });
    let (mut won, mut lost) = (0, 0);
    for writer in writers.collect::<Vec<_>>() {
        match writer.await.unwrap() {
            Ok(_) => won += 1,
            Err(error) => {
                let error = error.into_service_error();
                assert!(error.is_conditional_check_failed_exception(), "{error:?}");
                lost += 1;
            }
        }
    }
    assert_eq!((won, lost), (1, 15));
    engines.shutdown().await;
}

#[tokio::test]
async fn a_transaction_is_whole_or_nothing_and_says_which_part_failed() {
    let engines = engines().await;
    let client = dynamo(&engines);
    let put = |sk: &str| {
        let put = Put::builder()
            .table_name(TABLE)
            .set_item(Some(item("U#1", sk, &[])))
            .condition_expression("attribute_not_exists(pk)");
        TransactWriteItem::builder().put(put.build().unwrap()).build()
    };
    client.transact_write_items().transact_items(put("a")).transact_items(put("b")).send().await.unwrap();
    let error = (client.transact_write_items().transact_items(put("c")).transact_items(put("b")))
        .send()
        .await
        .unwrap_err()
        .into_service_error();
    let aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError::TransactionCanceledException(
        cancelled,
    ) = &error
    else {
        panic!("{error:?}")
    };
    let codes: Vec<_> =
        cancelled.cancellation_reasons().iter().map(|reason| reason.code().unwrap()).collect();
    assert_eq!(codes, ["None", "ConditionalCheckFailed"]);

    let found = client
        .query()
        .table_name(TABLE)
        .key_condition_expression("pk = :pk")
        .expression_attribute_values(":pk", s("U#1"))
        .send()
        .await
        .unwrap();
    let keys: Vec<_> = found.items().iter().map(|item| item["sk"].as_s().unwrap().as_str()).collect();
    assert_eq!(keys, ["a", "b"]);
    engines.shutdown().await;
}

#[tokio::test]
async fn the_index_of_what_is_due_is_sparse_ordered_and_keys_only() {
    let engines = engines().await;
    let client = dynamo(&engines);
    let due = |at: &str| [("shard", s("07")), ("due_at", s(at)), ("title", s("not in the index"))];
    let items = [
        item("U#1", "ACT#late", &due("2026-11-21T10:02:00Z")),
        item("U#2", "ACT#early", &due("2026-11-21T10:01:00Z")),
        item("U#1", "ACT#future", &due("2026-11-21T10:03:00Z")),
        item("U#1", "ACT#unscheduled", &[("title", s("no due_at"))]),
    ];
    for item in items {
        client.put_item().table_name(TABLE).set_item(Some(item)).send().await.unwrap();
    }
    let found = client
        .query()
        .table_name(TABLE)
        .index_name("due")
        .key_condition_expression("#shard = :shard AND due_at <= :now")
        // A reserved word.
        .expression_attribute_names("#shard", "shard")
        .expression_attribute_values(":shard", s("07"))
        .expression_attribute_values(":now", s("2026-11-21T10:02:30Z"))
        .send()
        .await
        .unwrap();
    let keys_of = |pk, sk, at| item(pk, sk, &[("shard", s("07")), ("due_at", s(at))]);
    let expected = [
        keys_of("U#2", "ACT#early", "2026-11-21T10:01:00Z"),
        keys_of("U#1", "ACT#late", "2026-11-21T10:02:00Z"),
    ];
    assert_eq!(found.items(), expected);
    engines.shutdown().await;
}

#[tokio::test]
async fn items_whose_time_to_live_has_passed_are_swept() {
    let folder = tempfile::tempdir().unwrap();
    let at = DataLocation::Folder(folder.path().to_owned());
    let first = Engines::start(config(at.clone())).await.unwrap();
    let client = dynamo(&first);
    for (sk, ttl) in [("passed", "1"), ("ahead", "99999999999")] {
        let item = item("U#1", sk, &[("ttl", AttributeValue::N(ttl.into()))]);
        client.put_item().table_name(TABLE).set_item(Some(item)).send().await.unwrap();
    }
    first.sweep_expired().await.unwrap();
    let get = |client: aws_sdk_dynamodb::Client, sk: &'static str| async move {
        let request = client.get_item().table_name(TABLE).set_key(Some(item("U#1", sk, &[])));
        request.send().await.unwrap().item.is_some()
    };
    assert_eq!((get(client.clone(), "passed").await, get(client, "ahead").await), (false, true));
    first.shutdown().await;

    let second = Engines::start(config(at)).await.unwrap();
    let client = dynamo(&second);
    assert_eq!((get(client.clone(), "passed").await, get(client, "ahead").await), (false, true));
    second.shutdown().await;
}

#[tokio::test]
async fn a_data_folder_has_one_holder_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(DataLocation::Folder(folder.path().to_owned()));
    let first = Engines::start(config.clone()).await.unwrap();
    let refused = Engines::start(config.clone()).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!(
            "use the data folder {}: process {} holds it; stop that process, or choose another folder",
            folder.path().display(),
            std::process::id()
        )
    );
    first.shutdown().await;
    Engines::start(config).await.unwrap().shutdown().await;
}

#[tokio::test]
async fn unknown_operations_of_the_table_are_refused() {
    let engines = engines().await;
    let error = dynamo(&engines)
        .get_item()
        .table_name("another")
        .set_key(Some(item("U#1", "a", &[])))
        .send()
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some("ResourceNotFoundException"));
    engines.shutdown().await;
}
