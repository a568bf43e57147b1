//! `lamplighter stop` and `lamplighter start`: the switch that stops everything of the person's account.
//!
//! Both need a key with the scope `admin`, or a local server without authentication.

use std::fmt::Write;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::Failure;
use crate::output::{self, escaped};
use crate::server::ServerError;
use crate::shell::api::{Api, parsed, unexpected};
use crate::shell::screen::print_json;

#[derive(Deserialize)]
struct Stopped {
    stopped_at: String,
    runs_ended: u64,
}

#[derive(Deserialize)]
struct Started {
    stopped_at: Option<String>,
    #[serde(flatten)]
    missed: MissedList,
}

/// What was due while the account was stopped.
#[derive(Deserialize)]
struct MissedList {
    data: Vec<Missed>,
    has_more: bool,
}

#[derive(Deserialize)]
struct Missed {
    action_id: String,
    title: String,
    due_times: u64,
    first_due_at: String,
    last_due_at: String,
}

/// Stops the account.
///
/// # Errors
/// If the server refuses it or does not answer.
pub fn stop(json: bool) -> Result<(), Failure> {
    let api = Api::open()?;
    let answer = parsed(&api.server.post_json("/account/stop", &json!({}))?.body)?;
    if json {
        return print_json(&answer);
    }
    let Stopped { stopped_at, runs_ended } = read(answer)?;
    let ended = match runs_ended {
        1 => "1 run was ended".to_owned(),
        runs => format!("{runs} runs were ended"),
    };
    output::print(format!(
        "the account has been stopped since {}; {ended}\nnothing runs until `lamplighter start`\n",
        api.when(&stopped_at)
    ))?;
    Ok(())
}

/// Starts the account. `missed` says what becomes of what was due meanwhile.
///
/// # Errors
/// If the server refuses it or does not answer, or if `missed` is needed.
pub fn start(missed: Option<&str>, json: bool) -> Result<(), Failure> {
    let api = Api::open()?;
    let body = missed.map_or_else(|| json!({}), |missed| json!({ "missed": missed }));
    let answer = match api.server.post_json("/account/start", &body) {
        Ok(answer) => answer,
        Err(ServerError::Refused { conflict: Some(conflict), .. }) if conflict.code == "missed_runs" => {
            if json {
                print_json(&conflict.current)?;
            } else {
                output::print(read::<MissedList>(conflict.current)?.lines(&api))?;
            }
            return Err(Failure::Message(
                "the account is still stopped, because these due times were missed; say what becomes of them:\n\
                 lamplighter start --missed run-newest     runs the newest of each action, and skips the others\n\
                 lamplighter start --missed skip           skips them all\n\
                 lamplighter start --missed each-schedule  lets `catch_up` of each schedule decide, as after an outage"
                    .to_owned(),
            ));
        }
        Err(error) => return Err(error.into()),
    };
    let answer = parsed(&answer.body)?;
    if json {
        return print_json(&answer);
    }
    let Started { stopped_at, missed: list } = read(answer)?;
    let Some(stopped_at) = stopped_at else {
        return Ok(output::print("the account was not stopped\n")?);
    };
    let mut told = format!("the account runs again; it was stopped {}\n", api.when(&stopped_at));
    if !list.data.is_empty() {
        let became = match missed {
            Some("run_newest") => {
                "the newest due time of each of these actions runs, and the others are skipped"
            }
            Some("skip") => "the due times of these actions are skipped",
            _ => "the schedules of these actions decide about the due times",
        };
        let _ = writeln!(told, "{became}:");
        told.push_str(&list.lines(&api));
    }
    Ok(output::print(told)?)
}

impl MissedList {
    /// One line for each action, with times in the zone of the account.
    fn lines(&self, api: &Api) -> String {
        let mut lines = String::new();
        for Missed { action_id, title, due_times, first_due_at, last_due_at } in &self.data {
            let (first, last) = (api.when(first_due_at), api.when(last_due_at));
            let when = match due_times {
                1 => format!("1 due time, {first}"),
                times => format!("{times} due times, {first} to {last}"),
            };
            lines.push_str(&escaped(&format!("{action_id}  {when}  {title}")));
            lines.push('\n');
        }
        if self.has_more {
            lines.push_str("and further actions\n");
        }
        lines
    }
}

fn read<T: for<'a> Deserialize<'a>>(answer: Value) -> Result<T, Failure> {
    serde_json::from_value(answer).map_err(|_| unexpected())
}
