//! A platform's stored data as text: every item of its table and every object of its bucket, with the answers that read
//! them over HTTP. `bench/golden.rs` writes it, and `platform/store/golden.rs` opens it.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use shared::Cx;

/// Everything that a platform has stored.
#[derive(Debug, Deserialize, Serialize)]
pub struct Golden {
    /// When it was written. A platform that opens it uses this time, so that nothing in it has expired.
    pub written_at: Timestamp,
    /// In DynamoDB's JSON, by key.
    pub items: Vec<Value>,
    /// By key.
    pub objects: BTreeMap<String, Object>,
    /// Paths that were read, with their answers.
    pub reads: Vec<Read>,
}

#[derive(Debug, Deserialize, Serialize)]
pub struct Object {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
}

#[derive(Debug, Deserialize, Serialize)]
pub struct Read {
    pub path: String,
    pub body: Value,
}

impl Golden {
    /// Everything that is stored now.
    ///
    /// # Panics
    /// If the table or the bucket does not answer.
    pub async fn of(cx: &Cx, reads: Vec<Read>) -> Self {
        let items = items(cx).await;
        let (bucket, name) = cx.blobs.raw();
        let mut objects = BTreeMap::new();
        let listed = bucket.list_objects_v2().bucket(name).send().await.expect("the bucket is listed");
        assert_ne!(listed.is_truncated(), Some(true), "a golden folder is small");
        for key in listed.contents().iter().filter_map(|object| object.key()) {
            let object = bucket.get_object().bucket(name).key(key).send().await.expect("an object is read");
            let bytes = object.body.collect().await.expect("an object is read").into_bytes();
            let object = match std::str::from_utf8(&bytes) {
                Ok(text) => Object { text: Some(text.to_owned()), base64: None },
                Err(_) => Object { text: None, base64: Some(BASE64_STANDARD.encode(&bytes)) },
            };
            objects.insert(key.to_owned(), object);
        }
        Self { written_at: cx.clock.now(), items, objects, reads }
    }

    /// Stores everything in an empty platform.
    ///
    /// # Panics
    /// If the table or the bucket does not answer.
    pub async fn open(&self, cx: &Cx) {
        let (table, name) = cx.store.raw();
        for item in &self.items {
            let item = from_json(item);
            table.put_item().table_name(name).set_item(Some(item)).send().await.expect("an item is written");
        }
        let (bucket, name) = cx.blobs.raw();
        for (key, object) in &self.objects {
            let bytes = match object {
                Object { text: Some(text), .. } => text.clone().into_bytes(),
                Object { base64, .. } => {
                    BASE64_STANDARD.decode(base64.as_deref().unwrap_or_default()).expect("it is base64")
                }
            };
            bucket
                .put_object()
                .bucket(name)
                .key(key)
                .body(bytes.into())
                .send()
                .await
                .expect("an object is written");
        }
    }
}

/// All items of the table, sorted by key.
///
/// # Panics
/// If the table does not answer.
pub async fn items(cx: &Cx) -> Vec<Value> {
    let (table, name) = cx.store.raw();
    let (mut items, mut start) = (Vec::new(), None);
    loop {
        let page = table.scan().table_name(name).set_exclusive_start_key(start).send().await;
        let page = page.expect("the table is read");
        items.extend(page.items().iter().map(to_json));
        start = page.last_evaluated_key().cloned();
        if start.is_none() {
            break;
        }
    }
    items.sort_by_key(key);
    items
}

/// The partition key and the sort key of an item.
#[must_use]
pub fn key(item: &Value) -> (String, String) {
    let text = |name: &str| item[name]["S"].as_str().unwrap_or_default().to_owned();
    (text("pk"), text("sk"))
}

fn to_json(item: &HashMap<String, AttributeValue>) -> Value {
    Value::Object(item.iter().map(|(name, value)| (name.clone(), attribute(value))).collect())
}

fn attribute(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::S(text) => json!({"S": text}),
        AttributeValue::N(number) => json!({"N": number}),
        AttributeValue::Bool(yes) => json!({"BOOL": yes}),
        AttributeValue::B(bytes) => json!({"B": BASE64_STANDARD.encode(bytes.as_ref())}),
        AttributeValue::Null(_) => json!({"NULL": true}),
        AttributeValue::M(map) => json!({"M": to_json(map)}),
        AttributeValue::L(list) => json!({"L": list.iter().map(attribute).collect::<Vec<_>>()}),
        AttributeValue::Ss(texts) => json!({"SS": texts}),
        AttributeValue::Ns(numbers) => json!({"NS": numbers}),
        other => panic!("an attribute of a kind that nothing stores: {other:?}"),
    }
}

fn from_json(item: &Value) -> HashMap<String, AttributeValue> {
    let fields = item.as_object().cloned().unwrap_or_default();
    fields.iter().map(|(name, value)| (name.clone(), value_of(value))).collect()
}

fn value_of(value: &Value) -> AttributeValue {
    let empty = Map::new();
    let (kind, value) = value.as_object().unwrap_or(&empty).iter().next().expect("an attribute has a kind");
    let text = || value.as_str().unwrap_or_default().to_owned();
    let texts = || {
        let texts = value.as_array().into_iter().flatten();
        texts.map(|text| text.as_str().unwrap_or_default().to_owned()).collect()
    };
    match kind.as_str() {
        "S" => AttributeValue::S(text()),
        "N" => AttributeValue::N(text()),
        "BOOL" => AttributeValue::Bool(value == true),
        "B" => AttributeValue::B(Blob::new(BASE64_STANDARD.decode(text()).expect("it is base64"))),
        "NULL" => AttributeValue::Null(true),
        "M" => AttributeValue::M(from_json(value)),
        "L" => AttributeValue::L(value.as_array().into_iter().flatten().map(value_of).collect()),
        "SS" => AttributeValue::Ss(texts()),
        "NS" => AttributeValue::Ns(texts()),
        other => panic!("an attribute of the kind {other}"),
    }
}

/// The places where an answer lacks or contradicts what was read when the data was written. Newer fields are allowed.
#[must_use]
pub fn differences(at: &str, then: &Value, now: &Value) -> Vec<String> {
    match (then, now) {
        (Value::Object(then), Value::Object(now)) => then
            .iter()
            .flat_map(|(name, value)| match now.get(name) {
                Some(now) => differences(&format!("{at}.{name}"), value, now),
                None => vec![format!("{at}.{name} is missing")],
            })
            .collect(),
        (Value::Array(then), Value::Array(now)) if then.len() == now.len() => then
            .iter()
            .zip(now)
            .enumerate()
            .flat_map(|(n, (then, now))| differences(&format!("{at}[{n}]"), then, now))
            .collect(),
        _ if then == now => Vec::new(),
        _ => vec![format!("{at} was {then:.200} and is {now:.200}")],
    }
}
