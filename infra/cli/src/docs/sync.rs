//! `docs sync`: asks the platform to bring the documents up to date, and waits for it.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::exchange::Exchange;
use super::git::Repository;
use super::{Docs, reported, told};
use crate::Failure;
use crate::output;
use crate::server::Change;
use crate::shell::api::{parsed, patiently};
use crate::shell::screen::print_json;
use crate::shell::values::Fields;

/// How often the server is asked how far it is.
const LOOKS_EVERY: Duration = Duration::from_secs(1);

/// How long a synchronisation is waited for.
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// Asks for a synchronisation. With `wait`, pulls what it has changed.
///
/// # Errors
/// If the server refuses it or does not answer, if it fails, or if a changed document is in conflict.
pub fn run(docs: &Docs, wait: bool, json: bool) -> Result<(), Failure> {
    let repository = Repository::find().ok();
    if let Some(repository) = &repository {
        // What hooks could not report belongs to it. If it can't be reported because too many wait, the synchronisation makes room.
        if let Err(error) = reported::catch_up(docs, repository) {
            output::warn(&[format!("some commits are not reported yet: {error}")]);
        }
    }
    let mut sync = docs.api.send(Change::Post, &docs.path("/sync"), &json!({}))?;
    if wait {
        sync = ended(docs, sync)?;
    }
    if json {
        print_json(&sync)?;
    } else {
        output::print(told(&sync))?;
    }
    if sync.text("state") == "failed" {
        return Err(Failure::Message("the synchronisation has failed".to_owned()));
    }
    let changed: Vec<String> =
        sync.items("changed").iter().filter_map(Value::as_str).map(str::to_owned).collect();
    match repository {
        Some(_) if wait && !json && !changed.is_empty() => Exchange::open(docs)?.pull(&changed),
        _ => Ok(()),
    }
}

/// The synchronisation, when it has ended.
fn ended(docs: &Docs, mut sync: Value) -> Result<Value, Failure> {
    let begun = Instant::now();
    while !matches!(sync.text("state"), "succeeded" | "failed") {
        if begun.elapsed() >= LONGEST {
            return Err(Failure::Message(
                "the synchronisation has not ended within 15 minutes; it goes on without this command"
                    .to_owned(),
            ));
        }
        thread::sleep(LOOKS_EVERY);
        match patiently(|| docs.api.server.get(&docs.path("/sync"), &[])) {
            Ok(answer) => sync = parsed(&answer.body)?,
            // A server that starts again meanwhile goes on.
            Err(error) if error.status().is_none_or(|status| status >= 500) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(sync)
}
