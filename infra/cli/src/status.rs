//! `status`: shows which server is used, whether it answers, and what happened to the hooks.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Failure;
use crate::config::{self, Places, Settings};
use crate::log::flush;
use crate::output;
use crate::server::{Patience, Server, ServerError};
use crate::shell::times;
use crate::spool::{Counts, Spool};

/// A person waits for a short time.
const PATIENCE: Patience = Patience { connect: Duration::from_secs(2), answer: Duration::from_secs(10) };

/// How many rejected hooks and sessions are shown.
const SHOWN: &str = "5";

#[derive(Default, Deserialize)]
#[serde(default)]
struct Health {
    version: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Project {
    name: String,
    hook_filter: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Rejected {
    count: u64,
    dropped: Vec<Dropped>,
    data: Vec<Refusal>,
}

#[derive(Deserialize)]
struct Dropped {
    project_id: String,
    agent_type: String,
    count: u64,
    reason: String,
}

#[derive(Deserialize)]
struct Refusal {
    refused_at: String,
    reason: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Sessions {
    data: Vec<Session>,
}

#[derive(Deserialize)]
struct Session {
    session_id: String,
    agents: Vec<Agent>,
}

#[derive(Deserialize)]
struct Agent {
    agent_id: String,
    agent_type: String,
    total_entries: u64,
    last_modified: String,
}

/// Prints all of it.
///
/// # Errors
/// If the server does not answer. Everything else is printed before.
pub fn run() -> Result<(), Failure> {
    let places = Places::look();
    let settings = places.read()?;
    output::warn(&settings.warnings);
    let server = Server::new(&settings, PATIENCE);
    let began = Instant::now();
    let health: Result<Health, ServerError> = ask(&server, "/health", &[]);
    let mut text = String::new();
    let found = match &health {
        Ok(health) => {
            format!("answers (version {}, {} ms)", safe(&health.version), began.elapsed().as_millis())
        }
        Err(_) => "does not answer".to_owned(),
    };
    row(&mut text, "server", &format!("{}, from {}: {found}", settings.url, settings.url_from));
    row(&mut text, "key", if settings.key.is_some() { "one is sent" } else { "none" });
    row(&mut text, "spool", &spool(&places));
    let answered = match health {
        Ok(_) => of_server(&mut text, &server, &settings),
        Err(error) => Err(error),
    };
    output::print(&text)?;
    answered.map_err(Failure::from)
}

fn row(text: &mut String, name: &str, value: &str) {
    text.push_str(&format!("{name:<10}{value}\n"));
}

/// Text from the server in one line, without control characters.
fn safe(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn spool(places: &Places) -> String {
    let Some(spool) = flush::spool(places) else {
        let dir = config::state_dir()
            .map(|state| Spool::new(&state, &places.decider()).dir().display().to_string());
        return format!(
            "empty; no hook has run yet ({})",
            dir.unwrap_or_else(|| "there is no home folder".to_owned())
        );
    };
    let counts = spool.counts().unwrap_or_default();
    let Counts { waiting, rejected, lost } = counts;
    let mut said = format!("{waiting} waiting, {rejected} rejected, {lost} lost ({})", spool.dir().display());
    for remark in flush::remarks(&spool, counts) {
        said.push_str(&format!("\n{:10}{remark}", ""));
    }
    for (why, reason) in spool.rejections(3) {
        said.push_str(&format!("\n{:10}{why}: {}", "", safe(&reason)));
    }
    for (decider, waiting) in spool.others() {
        said.push_str(&format!(
            "\n{:10}{waiting} more wait for the server that is named by {}",
            "",
            safe(&decider)
        ));
    }
    said
}

fn of_server(text: &mut String, server: &Server, settings: &Settings) -> Result<(), ServerError> {
    let id = settings.project.clone().unwrap_or_default();
    let project: Project = ask(server, &format!("/projects/{id}"), &[])?;
    row(text, "project", &format!("{id} \"{}\"", safe(&project.name)));
    row(text, "filter", &filter(&project.hook_filter));
    let rejected: Rejected = ask(server, "/context/hooks/rejected", &[("limit", Some(SHOWN))])?;
    if rejected.dropped.is_empty() {
        row(text, "dropped", "nothing since yesterday");
    }
    for Dropped { project_id, agent_type, count, reason } in &rejected.dropped {
        let kind = if agent_type.is_empty() { "no type" } else { agent_type };
        let what = format!("{count} hooks of `{}` in {}: {}", safe(kind), safe(project_id), safe(reason));
        row(text, "dropped", &what);
    }
    if !rejected.dropped.is_empty() {
        let command = format!(
            "to record every agent: curl -X PATCH {}/projects/{id} -H 'content-type: application/json' -d '{{\"hook_filter\": \"all\"}}'",
            settings.url
        );
        row(text, "", &command);
    }
    // A key that only writes logs may not read the account.
    let zone = times::zone(&ask(server, "/account", &[]).unwrap_or_default());
    let when = |at: &str| times::when(at, &zone, Timestamp::now());
    row(text, "rejected", &format!("{} since yesterday", rejected.count));
    for Refusal { refused_at, reason } in &rejected.data {
        row(text, "", &format!("{} {}", when(refused_at), safe(reason)));
    }
    let sessions: Sessions =
        ask(server, "/context/logs", &[("limit", Some(SHOWN)), ("project", Some(id.as_str()))])?;
    let mut seen: Vec<(String, String)> = Vec::new();
    for Session { session_id, agents } in sessions.data {
        for Agent { agent_id, agent_type, total_entries, last_modified } in agents {
            let kind = if agent_type.is_empty() { String::new() } else { format!(" ({agent_type})") };
            let what = format!("{agent_id}{kind}, {total_entries} entries, session {session_id}");
            seen.push((last_modified, what));
        }
    }
    seen.sort();
    if seen.is_empty() {
        row(text, "seen", "no hook of this project has been logged yet");
    }
    for (at, what) in seen.iter().rev().take(5) {
        row(text, "seen", &format!("{} {}", when(at), safe(what)));
    }
    Ok(())
}

fn filter(filter: &Value) -> String {
    match filter {
        Value::Array(prefixes) => {
            let prefixes: Vec<String> =
                prefixes.iter().filter_map(|prefix| Some(format!("{}…", safe(prefix.as_str()?)))).collect();
            format!("records agents of the types {}; drops all others", prefixes.join(", "))
        }
        _ => "takes every agent".to_owned(),
    }
}

/// An answer as JSON. Missing fields get default values.
fn ask<T: DeserializeOwned + Default>(
    server: &Server,
    path: &str,
    query: &[(&str, Option<&str>)],
) -> Result<T, ServerError> {
    let answer = server.get(path, query)?;
    Ok(serde_json::from_slice(&answer.body).unwrap_or_default())
}
