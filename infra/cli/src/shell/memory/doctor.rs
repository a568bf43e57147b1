//! `memory doctor`: whether what is written can be found, and what the last synchronisation said.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use uuid::Uuid;

use crate::Failure;
use crate::output;
use crate::server::Change;
use crate::shell::api::{Api, patiently};
use crate::shell::screen::{Look, line, print_json};
use crate::shell::values::Fields;
use crate::url::segment;

/// How long the probe may take to be found.
const PATIENCE: Duration = Duration::from_secs(5);

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
    let found_after = found?;
    deleted.map_err(|error| {
        Failure::Message(format!("{error}\nthe probe is still there: the card {}", line(card_id)))
    })?;
    let days = days?;

    let millis = found_after.map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
    if json {
        print_json(&json!({
            "found": millis.is_some(),
            "found_after_ms": millis,
            "synced": days["synced"],
            "tidied": days["tidied"],
            "failure": days["failure"],
        }))?;
    } else {
        output::print(report(api, millis, &days))?;
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
