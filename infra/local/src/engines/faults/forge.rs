//! The answers of DynamoDB and S3 when they refuse a request or do only a part of it.

use axum::body::Body;
use http::{Response, StatusCode, header};
use rand::Rng;
use rand::seq::IndexedRandom;
use serde_json::{Map, Value, json};

type ForgedResponse = Response<Body>;

pub(super) fn throttled(rng: &mut impl Rng) -> ForgedResponse {
    let kinds = [
        (
            "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
            "The level of configured provisioned throughput for the table was exceeded. \
             Consider increasing your provisioning level with the UpdateTable API.",
        ),
        (
            "com.amazon.coral.availability#ThrottlingException",
            "Rate of requests exceeds the allowed throughput.",
        ),
    ];
    let (kind, message) = kinds.choose(rng).expect("there are two");
    dynamo_error(&json!({"__type": kind, "message": message}))
}

/// The conflict of a single write, or of a transaction with some conflicting items.
pub(super) fn conflict(operation: &str, request: &Value, rng: &mut impl Rng) -> ForgedResponse {
    const IN_CONFLICT: &str = "Transaction is ongoing for the item";
    if !operation.starts_with("Transact") {
        return dynamo_error(&json!({
            "__type": "com.amazonaws.dynamodb.v20120810#TransactionConflictException",
            "message": IN_CONFLICT,
        }));
    }
    let items = request["TransactItems"].as_array().map_or(1, |items| items.len().max(1));
    let certain = rng.random_range(0..items);
    let conflicts: Vec<bool> = (0..items).map(|index| index == certain || rng.random()).collect();
    let codes: Vec<&str> =
        conflicts.iter().map(|conflict| if *conflict { "TransactionConflict" } else { "None" }).collect();
    let reasons: Vec<Value> = (conflicts.iter())
        .map(|conflict| match conflict {
            true => json!({"Code": "TransactionConflict", "Message": IN_CONFLICT}),
            false => json!({"Code": "None"}),
        })
        .collect();
    dynamo_error(&json!({
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
        "Message": format!(
            "Transaction cancelled, please refer cancellation reasons for specific reasons [{}]",
            codes.join(", ")
        ),
        "CancellationReasons": reasons,
    }))
}

fn dynamo_error(body: &Value) -> ForgedResponse {
    answer(StatusCode::BAD_REQUEST, "application/x-amz-json-1.0", body.to_string())
}

pub(super) fn slow_down() -> ForgedResponse {
    let body = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
                <Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>";
    answer(StatusCode::SERVICE_UNAVAILABLE, "application/xml", body.to_owned())
}

pub(super) fn table_denied() -> ForgedResponse {
    dynamo_error(
        &json!({"__type": "com.amazon.coral.service#AccessDeniedException", "message": "Access is denied."}),
    )
}

pub(super) fn bucket_denied() -> ForgedResponse {
    let body = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
                <Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>";
    answer(StatusCode::FORBIDDEN, "application/xml", body.to_owned())
}

pub(super) fn answer(status: StatusCode, content_type: &'static str, body: String) -> ForgedResponse {
    Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, content_type)
        .body(Body::from(body))
        .expect("a status and a fixed header make a response")
}

/// Identifies a read of an index: the index, the partition, the start and the limit. `None` for every other request.
pub(super) fn index_read(operation: &str, request: &Value) -> Option<String> {
    let index = request["IndexName"].as_str().filter(|_| operation == "Query")?;
    let (partition, from) = (&request["ExpressionAttributeValues"][":shard"], &request["ExclusiveStartKey"]);
    Some(format!("{index} {partition} {from} {}", request["Limit"]))
}

/// How many writes or keys a batch has, over all tables.
pub(super) fn batch_size(request: &Value) -> usize {
    let tables = request["RequestItems"].as_object().into_iter().flat_map(Map::values);
    tables.filter_map(|table| entries(table).map(Vec::len)).sum()
}

/// Removes some of a batch's entries from the request, but never all of them. Returns them in the form of
/// `UnprocessedItems` or `UnprocessedKeys`. The batch has at least two entries.
pub(super) fn leave_over(request: &mut Value, rng: &mut impl Rng) -> Value {
    let size = batch_size(request);
    let certainly_done = rng.random_range(0..size);
    let certainly_left = (certainly_done + rng.random_range(1..size)) % size;
    let mut left_over = Map::new();
    let mut index = 0;
    let Some(tables) = request["RequestItems"].as_object_mut() else { return Value::Object(left_over) };
    for (name, table) in tables.iter_mut() {
        let mut left = table.clone();
        let (mut kept_entries, mut left_entries) = (Vec::new(), Vec::new());
        for entry in entries(table).into_iter().flatten() {
            let leave = index == certainly_left || (index != certainly_done && rng.random());
            if leave { &mut left_entries } else { &mut kept_entries }.push(entry.clone());
            index += 1;
        }
        if !left_entries.is_empty() {
            set_entries(&mut left, left_entries);
            left_over.insert(name.clone(), left);
        }
        set_entries(table, kept_entries);
    }
    tables.retain(|_, table| entries(table).is_some_and(|entries| !entries.is_empty()));
    Value::Object(left_over)
}

/// A table's writes are a list. Its keys to read are in a list next to the other options.
fn entries(table: &Value) -> Option<&Vec<Value>> {
    table.as_array().or_else(|| table["Keys"].as_array())
}

fn set_entries(table: &mut Value, entries: Vec<Value>) {
    match table {
        Value::Object(options) => options.insert("Keys".into(), Value::Array(entries)),
        list => Some(std::mem::replace(list, Value::Array(entries))),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    fn flat(request_items: &Value) -> Vec<String> {
        let tables = request_items.as_object().unwrap();
        let all = tables.iter().flat_map(|(name, table)| {
            entries(table).unwrap().iter().map(move |entry| format!("{name} {entry}"))
        });
        let mut all: Vec<String> = all.collect();
        all.sort();
        all
    }

    proptest! {
        #[test]
        fn done_and_unprocessed_items_together_are_the_batch(
            a in 0usize..5, b in 0usize..5, keys: bool, seed: u64,
        ) {
            prop_assume!(a + b >= 2);
            let list = |size: usize| (0..size).map(|n| json!({"pk": {"S": n.to_string()}})).collect::<Vec<_>>();
            let table = |size| if keys {
                json!({"Keys": list(size), "ConsistentRead": true})
            } else {
                json!(list(size))
            };
            let mut request = json!({"RequestItems": {"a": table(a), "b": table(b)}});
            let before = flat(&request["RequestItems"]);
            let left = leave_over(&mut request, &mut StdRng::seed_from_u64(seed));
            let (done, left_entries) = (flat(&request["RequestItems"]), flat(&left));
            prop_assert!(!done.is_empty() && !left_entries.is_empty());
            let mut both = [done, left_entries].concat();
            both.sort();
            prop_assert_eq!(both, before);
            for table in left.as_object().unwrap().values() {
                prop_assert_eq!(table.get("ConsistentRead"), keys.then_some(&json!(true)));
            }
        }
    }
}
