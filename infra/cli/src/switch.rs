//! `lamplighter stop` and `lamplighter start`: the switch that stops everything of the person's account.
//!
//! Both need a key with the scope `admin`, or a local server without authentication.

use std::fmt::Write;

use serde::Deserialize;
use serde_json::json;

use crate::Failure;
use crate::config::Places;
use crate::output::{self, escaped};
use crate::server::{Patience, Server, ServerError};

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
pub fn stop() -> Result<(), Failure> {
    let answer = server()?.post_json("/account/stop", &json!({}))?;
    let Stopped { stopped_at, runs_ended } = parse(&answer.body)?;
    let ended = match runs_ended {
        1 => "1 run was ended".to_owned(),
        runs => format!("{runs} runs were ended"),
    };
    output::print(format!(
        "the account has been stopped since {}; {ended}\nnothing runs until `lamplighter start`\n",
        escaped(&stopped_at)
    ))?;
    Ok(())
}

/// Starts the account. `missed` says what becomes of what was due meanwhile.
///
/// # Errors
/// If the server refuses it or does not answer, or if `missed` is needed.
pub fn start(missed: Option<&str>) -> Result<(), Failure> {
    let body = missed.map_or_else(|| json!({}), |missed| json!({ "missed": missed }));
    let answer = match server()?.post_json("/account/start", &body) {
        Ok(answer) => answer,
        Err(ServerError::Refused { conflict: Some(conflict), .. }) if conflict.code == "missed_runs" => {
            let missed: MissedList = serde_json::from_value(conflict.current).map_err(|_| unexpected())?;
            output::print(missed.lines())?;
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
    let Started { stopped_at, missed: list } = parse(&answer.body)?;
    let Some(stopped_at) = stopped_at else {
        return Ok(output::print("the account was not stopped\n")?);
    };
    let mut told = format!("the account runs again; it was stopped at {}\n", escaped(&stopped_at));
    if !list.data.is_empty() {
        let became = match missed {
            Some("run_newest") => {
                "the newest due time of each of these actions runs, and the others are skipped"
            }
            Some("skip") => "the due times of these actions are skipped",
            _ => "the schedules of these actions decide about the due times",
        };
        let _ = writeln!(told, "{became}:");
        told.push_str(&list.lines());
    }
    Ok(output::print(told)?)
}

impl MissedList {
    /// One line for each action.
    fn lines(&self) -> String {
        let mut lines = String::new();
        for Missed { action_id, title, due_times, first_due_at, last_due_at } in &self.data {
            let when = match due_times {
                1 => format!("1 due time, {first_due_at}"),
                times => format!("{times} due times, {first_due_at} to {last_due_at}"),
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

/// The server that the settings name.
fn server() -> Result<Server, Failure> {
    let settings = Places::look().read()?;
    output::warn(&settings.warnings);
    Ok(Server::new(&settings, Patience::PERSON))
}

fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Failure> {
    serde_json::from_slice(body).map_err(|_| unexpected())
}

fn unexpected() -> Failure {
    Failure::Message("the server's answer is not what this program expects".to_owned())
}
