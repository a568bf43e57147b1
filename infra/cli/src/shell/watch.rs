//! `watch`: a line for each change of what runs and what waits.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::actions::look;
use super::api::{Api, parsed};
use super::runs::why;
use super::screen::{Look, line, print_part, safe_json};
use super::values::{Fields, cost};
use crate::Failure;
use crate::args::Watch;
use crate::output;
use crate::server::ServerError;

/// The pause between two looks while something runs.
const BUSY: Duration = Duration::from_secs(3);

/// The pause at rest.
const REST: Duration = Duration::from_secs(30);

/// How many of the newest runs are compared.
const RUNS: &str = "100";

/// One address that is asked again and again.
struct Polled {
    path: &'static str,
    query: &'static [(&'static str, Option<&'static str>)],
    etag: Option<String>,
}

impl Polled {
    /// The answer, if it is another one than before.
    fn look(&mut self, api: &Api) -> Result<Option<Value>, ServerError> {
        let Some(answer) = api.server.get_if_changed(self.path, self.query, self.etag.as_deref())? else {
            return Ok(None);
        };
        self.etag = answer.etag;
        Ok(parsed(&answer.body).ok())
    }
}

/// Prints changes until the time is over.
///
/// # Errors
/// If the server refuses the first look, or a later one for good.
pub fn run(api: &Api, args: &Watch) -> Result<(), Failure> {
    let until = args.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut inbox = Polled { path: "/inbox", query: &[], etag: None };
    let mut runs = Polled { path: "/runs", query: &[("limit", Some(RUNS))], etag: None };
    let (mut waiting, mut known) = (None::<BTreeMap<String, Value>>, None::<BTreeMap<String, Value>>);
    let (mut live, mut is_lost) = (0, false);
    loop {
        let looked = inbox.look(api).and_then(|inbox| Ok((inbox, runs.look(api)?)));
        let mut pause = None;
        match looked {
            Ok((new_inbox, new_runs)) => {
                if std::mem::take(&mut is_lost) {
                    output::note("the server answers again");
                }
                let mut lines = Vec::new();
                if let Some(answer) = new_runs {
                    let new = by(&answer, "run_id");
                    if let Some(before) = &known {
                        lines.extend(of_runs(before, &new));
                    }
                    known = Some(new);
                }
                if let Some(answer) = new_inbox {
                    live = answer.number("live").unwrap_or(0);
                    let new = by(&answer, "id");
                    match &waiting {
                        Some(before) => lines.extend(of_inbox(before, &new)),
                        None => output::note(&format!(
                            "watching {}; {} under way, {} waiting for you",
                            api.settings.url,
                            live,
                            new.len()
                        )),
                    }
                    waiting = Some(new);
                }
                for change in &lines {
                    if !print_part(&change.told(api, args.json))? {
                        return Ok(());
                    }
                }
            }
            // What will not get better is told at once. The rest may.
            Err(error)
                if waiting.is_none()
                    || error.status().is_some_and(|status| !matches!(status, 429 | 500..)) =>
            {
                return Err(error.into());
            }
            Err(error) => {
                if let ServerError::Refused { retry_after: Some(seconds), .. } = &error {
                    pause = Some(Duration::from_secs(*seconds.min(&3_600)));
                }
                if !std::mem::replace(&mut is_lost, true) {
                    output::note(&format!("{error}; trying again"));
                }
            }
        }
        let pause = pause.unwrap_or(if live > 0 || is_lost { BUSY } else { REST });
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(());
        }
        thread::sleep(left.map_or(pause, |left| left.min(pause)));
    }
}

fn by(answer: &Value, field: &str) -> BTreeMap<String, Value> {
    answer.items("data").iter().map(|item| (item.text(field).to_owned(), item.clone())).collect()
}

/// What has happened.
#[derive(Debug)]
struct Change {
    what: &'static str,
    item: Value,
}

impl Change {
    fn told(&self, api: &Api, as_json: bool) -> String {
        let now = Timestamp::now();
        if as_json {
            let object = json!({ "at": now.to_string(), "change": self.what, "item": self.item });
            return format!("{}\n", safe_json(&object.to_string()));
        }
        let time = now.to_zoned_datetime(api.zone().clone()).strftime("%H:%M:%S").to_string();
        let item = &self.item;
        let title = line(item.some("action_title").or(item.some("title")).unwrap_or(item.text("kind")));
        let agent = item.some("agent_name").map(|name| format!(" ({})", line(name))).unwrap_or_default();
        let (word, rest) = if self.what == "run" {
            let state = item.text("state");
            let details: Vec<String> = [why(item), cost(item)]
                .into_iter()
                .map(|part| line(&part))
                .filter(|part| !part.is_empty())
                .collect();
            (api.screen.painted(&line(state), look(state)), details.join(", "))
        } else if self.what == "waits" {
            (api.screen.painted("waits for you", Look::Careful), line(item.text("text")))
        } else {
            (api.screen.painted("no longer waits", Look::Dim), String::new())
        };
        let rest = if rest.is_empty() { rest } else { format!(": {rest}") };
        format!("{time}  {word}  {title}{agent}{rest}\n")
    }
}

/// Runs that are new or in another state, oldest first.
fn of_runs(before: &BTreeMap<String, Value>, now: &BTreeMap<String, Value>) -> Vec<Change> {
    // What has slid into the list at its old end, because a newer run was deleted, did not happen now.
    let oldest = before.values().map(|run| run.text("at")).min().unwrap_or_default();
    let mut changed: Vec<&Value> = now
        .iter()
        .filter(|(id, run)| match before.get(*id) {
            Some(known) => known.text("state") != run.text("state"),
            None => run.text("at") >= oldest,
        })
        .map(|(_, run)| run)
        .collect();
    changed.sort_by_key(|run| run.text("at"));
    changed.into_iter().map(|item| Change { what: "run", item: item.clone() }).collect()
}

/// What waits now and did not, and what waited and does not.
fn of_inbox(before: &BTreeMap<String, Value>, now: &BTreeMap<String, Value>) -> Vec<Change> {
    let gone = before
        .iter()
        .filter(|(id, _)| !now.contains_key(*id))
        .map(|(_, item)| Change { what: "gone", item: item.clone() });
    let new = now
        .iter()
        .filter(|(id, _)| !before.contains_key(*id))
        .map(|(_, item)| Change { what: "waits", item: item.clone() });
    gone.chain(new).collect()
}
