//! Stored data stays readable: this version opens data that an earlier version has written.

use std::collections::BTreeSet;

use base::clock::{Clock, ManualClock};
use domain::background::places::Purpose;
use lamplighter_local::platform::PlatformConfig;
use shared::store::keys::RecordKind;
use tests::Harness;
use tests::golden::{Golden, differences, key};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/data.json");

fn golden() -> Golden {
    serde_json::from_str(&std::fs::read_to_string(DATA).unwrap()).unwrap()
}

#[tokio::test]
async fn data_of_an_earlier_version_is_read_unchanged() {
    let golden = golden();
    let clock = Clock::Manual(ManualClock::at(golden.written_at));
    let h = Harness::with(PlatformConfig { clock, automatic: false, ..PlatformConfig::in_memory() }).await;
    golden.open(&h.platform.cx).await;
    let mut wrong = Vec::new();
    for read in &golden.reads {
        let answer = h.get(&read.path).await;
        if answer.status != 200 {
            wrong.push(format!("{}: {} {}", read.path, answer.status, answer.body));
            continue;
        }
        wrong.extend(differences(&read.path, &read.body, &answer.body));
    }
    assert!(
        wrong.is_empty(),
        "stored data is not read as it was; bring the reader of the old format instead of writing new data:\n{}",
        wrong.join("\n")
    );
    assert!(golden.reads.len() > 30, "{} answers", golden.reads.len());

    // What no route shows.
    let (store, owner) = (&h.platform.cx.store, domain::ids::Owner::new("local").unwrap());
    let places = store.places(&owner, Purpose::Runs).await.unwrap();
    assert_eq!(places.iter().map(|((number, _), version)| (*number, *version)).collect::<Vec<_>>(), [(3, 2)]);
    assert_eq!(store.backlog(&owner, 10).await.unwrap().len(), 1);

    // Its key is encrypted with the master key of the platform that wrote the data, which this one does not have.
    for key in h.get("/account/provider-keys").await.expect(200)["data"].as_array().unwrap() {
        h.delete(&format!("/account/provider-keys/{}", key["provider"].as_str().unwrap())).await.expect(204);
    }
    // The data is not only read: the work in it continues.
    let agents = h.get("/agents").await.expect(200);
    let agent = agents["data"][0]["agent_id"].as_str().unwrap().to_owned();
    let turn =
        h.post(&format!("/agents/{agent}/chat"), serde_json::json!({"message": "Hello"})).await.expect(200);
    assert!(turn["message"].as_str().is_some_and(|message| !message.is_empty()), "{turn:#}");
}

/// Kinds of which there is no item, with the reason.
const WITHOUT_AN_ITEM: [(&str, &str); 1] =
    [("action_live_turn", "it is the same record as `chat_live_turn`")];

#[test]
fn every_kind_of_record_is_among_the_stored_data() {
    let mut found = BTreeSet::new();
    for item in &golden().items {
        let (pk, sk) = key(item);
        let kind = RecordKind::of(&pk, &sk);
        found.insert(
            kind.unwrap_or_else(|| panic!("no kind in store/record_kinds.rs has the key {pk} {sk}")).name,
        );
    }
    let missing: Vec<&str> =
        RecordKind::all().map(|kind| kind.name).filter(|name| !found.contains(name)).collect();
    assert_eq!(
        missing,
        WITHOUT_AN_ITEM.map(|(name, _)| name),
        "no item of the first kinds is in tests/golden/data.json; make one in tests/bench/golden.rs and add it with \
         `cargo xtask bless golden`"
    );
}
