//! Stored data stays readable: this version opens data that an earlier version has written.

use std::collections::BTreeSet;

use base::clock::{Clock, ManualClock};
use lamplighter_local::platform::PlatformConfig;
use tests::Harness;
use tests::golden::{Golden, differences, key};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/data.json");
const PARTITIONS: &str = include_str!("../../../shared/src/store/partitions.rs");
const KEYS: &str = include_str!("../../../shared/src/store/keys.rs");

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
    let places = store.places(&owner).await.unwrap();
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

/// The upper-case words of the string literals in a source text: the kinds of its keys.
fn kinds(source: &str) -> BTreeSet<String> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code.lines().map(str::trim).filter(|line| !line.starts_with("//"));
    let literals = lines.flat_map(|line| line.split('"').skip(1).step_by(2));
    let words = literals.flat_map(|literal| literal.split(|c: char| !c.is_ascii_uppercase()));
    words
        .filter(|word| !word.is_empty() && !matches!(*word, "U" | "Y" | "H" | "M" | "S" | "T" | "Z"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_kind_of_key_is_among_the_stored_data() {
    let golden = golden();
    let mut found = BTreeSet::new();
    for item in &golden.items {
        let (pk, sk) = key(item);
        let words = [pk, sk];
        found.extend(words.iter().flat_map(|key| key.split('#')).map(str::to_owned));
    }
    let expected: BTreeSet<String> = [PARTITIONS, KEYS].into_iter().flat_map(kinds).collect();
    assert!(expected.len() > 25 && expected.contains("SEGMENT"), "{expected:?}");
    let missing: Vec<&String> = expected.difference(&found).collect();
    assert!(
        missing.is_empty(),
        "no item of these kinds is in tests/golden/data.json: {missing:?}; \
         make one in tests/bench/golden.rs and add it with `cargo run -p bench --bin golden`"
    );
}
