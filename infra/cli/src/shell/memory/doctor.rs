//! `memory doctor`: whether what is written can be found, what the last synchronisation said, and which facts are there twice, have lost
//! their conversations, or are never used.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use uuid::Uuid;

use crate::Failure;
use crate::output;
use crate::server::Change;
use crate::shell::api::{Api, patiently};
use crate::shell::screen::{Look, line, print_json};
use crate::shell::values::{Fields, counted};
use crate::url::segment;

/// How long the probe may take to be found.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many facts of each kind are shown. With `--json`, all that the server names are.
const SHOWN: usize = 5;

/// The pause between two searches.
const PAUSE: Duration = Duration::from_millis(250);

/// Plants a card with a word that nothing else has, searches for it, and deletes it.
///
/// # Errors
/// If the probe is not found or cannot be deleted, or the server does not answer.
pub fn run(api: &Api, json: bool) -> Result<(), Failure> {
    let word = word();
    let card = json!({
        "title": format!("Probe {word}"),
        "goal": "A probe of the command memory doctor, which deletes it at once",
    });
    let card = api.send(Change::Post, "/memory/cards", &card)?;
    let card_id = card.text("card_id");
    // What happens from here on, the probe is deleted first.
    let found = find(api, &word, card_id);
    let deleted = patiently(|| api.server.delete(&format!("/memory/cards/{}", segment(card_id))));
    let days = api.get("/memory/days", &[]);
    let health = api.get("/memory/health", &[]);
    let found_after = found?;
    deleted.map_err(|error| {
        Failure::Message(format!("{error}\nthe probe is still there: the card {}", line(card_id)))
    })?;
    let (days, health) = (days?, health?);

    let millis = found_after.map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
    if json {
        print_json(&json!({
            "found": millis.is_some(),
            "found_after_ms": millis,
            "synced": days["synced"],
            "tidied": days["tidied"],
            "failure": days["failure"],
            "facts": health["facts"],
            "duplicates": health["duplicates"],
            "orphans": health["orphans"],
            "unused": health["unused"],
        }))?;
    } else {
        output::print(report(api, millis, &days) + &findings(&health))?;
    }
    match millis {
        Some(_) => Ok(()),
        None => Err(Failure::Message(format!(
            "the search did not find a card that was written {} seconds before",
            PATIENCE.as_secs()
        ))),
    }
}

/// How long it took until the search found the card. `None` if it did not in time.
fn find(api: &Api, word: &str, card_id: &str) -> Result<Option<Duration>, Failure> {
    let begun = Instant::now();
    loop {
        let asked = [("q", Some(word)), ("depth", Some("cards")), ("limit", Some("5"))];
        let found = api.get("/memory/search", &asked)?;
        let after = begun.elapsed();
        if after > PATIENCE {
            return Ok(None);
        }
        if found.items("hits").iter().any(|hit| hit.text("ref") == card_id) {
            return Ok(Some(after));
        }
        thread::sleep(PAUSE);
    }
}

/// A word that was never written before, of letters alone, so that it is one word to every search.
fn word() -> String {
    let letter = |nibble: u8| char::from(b'a' + nibble);
    Uuid::now_v7().as_bytes().iter().flat_map(|byte| [letter(byte >> 4), letter(byte & 15)]).collect()
}

fn report(api: &Api, millis: Option<u64>, days: &Value) -> String {
    let found = match millis {
        Some(millis) => api.screen.painted(&format!("found a new card after {millis} ms"), Look::Good),
        None => api.screen.painted("did not find a new card", Look::Bad),
    };
    let mut text = format!("{:<14}{found}\n", "search");
    for (name, field, none) in
        [("synchronised", "synced", "never by itself yet"), ("tidied", "tidied", "never by itself yet")]
    {
        text.push_str(&format!("{name:<14}{}\n", line(days.some(field).unwrap_or(none))));
    }
    if let Some(failure) = days.some("failure") {
        text.push_str(&format!("{:<14}{}\n", "failure", api.screen.painted(&line(failure), Look::Bad)));
    }
    text
}

/// What is wrong with facts, with the newest of each kind.
fn findings(health: &Value) -> String {
    let mut text =
        format!("{:<14}{}\n", "facts", counted(health.number("facts").unwrap_or(0), "fact", "facts"));
    for (name, field, told) in [
        ("duplicates", "duplicates", "nearly the same as an earlier one"),
        ("orphans", "orphans", "from a conversation that does not exist any more"),
        ("never used", "unused", "not found by a search and told to no model in 30 days"),
    ] {
        let of = &health[field];
        let count = of.number("count").unwrap_or(0);
        let told = if count == 0 { "none".to_owned() } else { format!("{count}: {told}") };
        text.push_str(&format!("{name:<14}{told}\n"));
        for fact in of.items("facts").iter().take(SHOWN) {
            let like = fact.some("like").map(|like| format!(" (like {})", line(like))).unwrap_or_default();
            text.push_str(&format!("  {}  {}{like}\n", line(fact.text("fact_id")), line(fact.text("text"))));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_is_one_long_word_of_letters() {
        let (one, other) = (word(), word());
        assert!(one.len() == 32 && one.bytes().all(|byte| byte.is_ascii_lowercase()), "{one}");
        assert_ne!(one, other);
    }
}
