//! An owner with every kind of item that can be stored: what the golden data holds.

#![allow(clippy::unwrap_used, reason = "a test's helpers panic as its body does")]

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use base::clock::{Clock, ManualClock};
use lamplighter_local::platform::PlatformConfig;
use serde_json::Value;
use shared::Cx;

use crate::Harness;
use crate::golden::{Golden, key};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/data.json");

/// A platform with every kind of item, all of the owner `local`.
pub async fn with_everything() -> Harness {
    let golden: Golden = serde_json::from_str(&std::fs::read_to_string(DATA).unwrap()).unwrap();
    let clock = Clock::Manual(ManualClock::at(golden.written_at));
    let h = Harness::with(PlatformConfig { clock, automatic: false, ..PlatformConfig::in_memory() }).await;
    golden.open(&h.platform.cx).await;
    h
}

/// All items of an owner, from a scan of the table.
pub async fn scanned(cx: &Cx, owner: &str) -> BTreeMap<(String, String), Value> {
    let items = Golden::of(cx, Vec::new()).await.items.into_iter().map(|item| (key(&item), item));
    items.filter(|((pk, _), _)| pk.starts_with(&format!("U#{owner}#"))).collect()
}

/// Gives the owner `local2` the same items.
pub async fn copied(cx: &Cx) {
    let (table, name) = cx.store.raw();
    for item in table.scan().table_name(name).send().await.unwrap().items() {
        if let Some(rest) = item["pk"].as_s().unwrap().strip_prefix("U#local#") {
            let mut item = item.clone();
            item.insert("pk".into(), AttributeValue::S(format!("U#local2#{rest}")));
            table.put_item().table_name(name).set_item(Some(item)).send().await.unwrap();
        }
    }
}
