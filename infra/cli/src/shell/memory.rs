//! `memory`: search, read, correct and forget what was learned, and bring it up to date.

mod doctor;
mod edit;
mod take;

use std::io::{self, IsTerminal};
use std::time::Duration;

use serde_json::{Value, json};
use uuid::Uuid;

use super::api::{Api, parsed, patiently};
use super::chat::confirmed;
use super::names;
use super::screen::{Look, block, indented, line, print_json};
use super::table::{Table, short_ids};
use super::values::{Fields, cost, counted};
use crate::Failure;
use crate::args::{Memory, MemoryCommand, SearchDepth};
use crate::output;
use crate::server::{Change, Patience, Server};
use crate::url::segment;

const MARKDOWN: &str = "text/markdown";

/// How long a synchronisation or a clean-up may take, for which a model is asked about each conversation, and the transfer of an archive.
const UPDATE: Patience = Patience { connect: Duration::from_secs(5), answer: Duration::from_secs(15 * 60) };

/// Does what the person asks of the memory.
///
/// # Errors
/// If the server refuses it or does not answer.
pub fn run(api: &Api, args: &Memory) -> Result<(), Failure> {
    match &args.command {
        MemoryCommand::Search { query, depth, namespace, limit, json } => {
            search(api, &query.join(" "), *depth, namespace.as_deref(), *limit, json.json)
        }
        MemoryCommand::Show { what, when, json } => {
            show(api, what.as_deref().unwrap_or("long-term"), when.as_deref(), json.json)
        }
        MemoryCommand::Correct { fact, text, json } => {
            let new = api.send(Change::Post, &format!("{}/correct", path(fact)), &json!({ "text": text }))?;
            told(
                &new,
                json.json,
                &format!("Corrected. The fact that is true now is {}.", line(new.text("fact_id"))),
            )
        }
        MemoryCommand::Confirm { fact, json } => {
            let fact = api.send(Change::Post, &format!("{}/confirm", path(fact)), &json!({}))?;
            told(&fact, json.json, "Confirmed.")
        }
        MemoryCommand::Forget { fact, yes, json } => forget(api, fact, *yes, json.json),
        MemoryCommand::Sync { json } => sync(api, json.json),
        MemoryCommand::Tidy { json } => tidy(api, json.json),
        MemoryCommand::Tidies { limit, json } => tidies(api, *limit, json.json),
        MemoryCommand::Rollback { tidy, json } => {
            let path = format!("/memory/tidies/{}/rollback", segment(&tidy_id(api, tidy)?));
            let undone = api.send(Change::Post, &path, &json!({}))?;
            told(&undone, json.json, "Undone. The long-term memory is as it was before this clean-up.")
        }
        MemoryCommand::Edit { from } => edit::run(api, from.as_deref()),
        MemoryCommand::Export { file, force } => take::export(api, file, *force),
        MemoryCommand::Import { from, json } => take::import(api, from, json.json),
        MemoryCommand::Doctor { json } => doctor::run(api, json.json),
    }
}

/// The path of a fact.
fn path(fact: &str) -> String {
    format!("/memory/facts/{}", segment(fact))
}

fn told(answer: &Value, json: bool, text: &str) -> Result<(), Failure> {
    if json { print_json(answer) } else { Ok(output::print(format!("{text}\n"))?) }
}

fn search(
    api: &Api,
    query: &str,
    depth: Option<SearchDepth>,
    namespace: Option<&str>,
    limit: u32,
    json: bool,
) -> Result<(), Failure> {
    let depth = depth.map(|depth| match depth {
        SearchDepth::Cards => "cards",
        SearchDepth::Memory => "memory",
        SearchDepth::Raw => "raw",
    });
    let limit = limit.to_string();
    let asked = [("q", Some(query)), ("depth", depth), ("namespace", namespace), ("limit", Some(&limit))];
    let found = api.get("/memory/search", &asked)?;
    if json {
        return print_json(&found);
    }
    let hits = found.items("hits");
    if hits.is_empty() {
        return Ok(output::print("nothing was found\n")?);
    }
    let shown: Vec<String> = hits.iter().map(|hit| shown(api, hit)).collect();
    Ok(output::print(shown.join("\n"))?)
}

/// A hit: what it is, and its text.
fn shown(api: &Api, hit: &Value) -> String {
    let kind = match hit.text("kind") {
        "memory" => "fact",
        "raw" => "message",
        other => other,
    };
    let when = hit.some("date").map_or_else(|| api.when(hit.text("at")), str::to_owned);
    let mut head = vec![line(kind), line(hit.text("ref")), line(&when)];
    // The conversation of a message is needed to find it.
    head.extend(hit.some("speaker").map(|speaker| format!("by {}", line(speaker))));
    head.extend(hit.some("session_id").map(|session| format!("in {}", line(session))));
    head.extend(hit.some("namespace").map(|namespace| format!("namespace {}", line(namespace))));
    head.extend(hit.some("state").filter(|state| *state == "unconfirmed").map(line));
    head.extend(hit.some("until").map(|until| format!("true until {}", line(until))));
    head.retain(|part| !part.is_empty());
    format!("{}\n{}", api.screen.painted(&head.join("  "), Look::Dim), indented(hit.text("text"), "  "))
}

/// What `memory show` can print.
fn show(api: &Api, what: &str, when: Option<&str>, json: bool) -> Result<(), Failure> {
    let is_date = |text: &str| text.parse::<jiff::civil::Date>().is_ok_and(|date| date.to_string() == text);
    match (what, when) {
        ("days", None) => days(api, json),
        ("archive", Some(year)) => archive(api, year, json),
        ("long-term", None) => document(api, "/memory/long-term", None, json),
        ("cards", date) => document(api, "/memory/cards", date, json),
        ("week", Some(monday)) => document(api, &format!("/memory/weeks/{}", segment(monday)), None, json),
        (date, None) if is_date(date) => document(api, &format!("/memory/days/{date}"), None, json),
        ("week", None) => Err(missing("week", "the Monday that it begins with, such as 2026-11-23")),
        ("archive", None) => Err(missing("archive", "a year, such as 2026")),
        _ => Err(Failure::Message(format!(
            "`memory show` takes days, a day such as 2026-11-26, week MONDAY, long-term, cards [DATE] or archive YEAR, and not `{}`",
            line(&[Some(what), when].into_iter().flatten().collect::<Vec<_>>().join(" "))
        ))),
    }
}

fn missing(what: &str, needed: &str) -> Failure {
    Failure::Message(format!("`memory show {what}` needs {needed}"))
}

/// Prints a part of the memory as Markdown.
fn document(api: &Api, path: &str, date: Option<&str>, json: bool) -> Result<(), Failure> {
    let query = [("date", date)];
    if json {
        return print_json(&api.get(path, &query)?);
    }
    let answer = patiently(|| api.server.get_as(path, &query, MARKDOWN))?;
    let text = String::from_utf8_lossy(&answer.body);
    if text.trim().is_empty() {
        return Ok(output::print("there is nothing yet\n")?);
    }
    Ok(output::print(format!("{}\n", block(text.trim_end())))?)
}

fn days(api: &Api, json: bool) -> Result<(), Failure> {
    let days = api.get("/memory/days", &[])?;
    if json {
        return print_json(&days);
    }
    let mut text = match days_table(api, days.items("data")) {
        Some(table) => table,
        None => "there are no days that are not archived\n".to_owned(),
    };
    for (name, field) in [("synchronised", "synced"), ("tidied", "tidied"), ("failure", "failure")] {
        if let Some(value) = days.some(field) {
            text.push_str(&format!("{name:<14}{}\n", line(value)));
        }
    }
    Ok(output::print(text)?)
}

fn days_table(api: &Api, days: &[Value]) -> Option<String> {
    let mut table = Table::new(api.screen, &["DAY", "CONVERSATIONS", "FACTS"]);
    for day in days {
        let number = |field| day.number(field).unwrap_or(0).to_string();
        table.row([
            (day.text("date"), Look::Plain),
            (number("blocks").as_str(), Look::Plain),
            (number("facts").as_str(), Look::Plain),
        ]);
    }
    (!table.is_empty()).then(|| table.lines())
}

fn archive(api: &Api, year: &str, json: bool) -> Result<(), Failure> {
    let archive = api.get(&format!("/memory/archive/{}", segment(year)), &[])?;
    if json {
        return print_json(&archive);
    }
    let mut text = days_table(api, archive.items("days")).unwrap_or_default();
    let weeks = archive.items("weeks").iter().filter_map(Value::as_str);
    for monday in weeks {
        text.push_str(&format!("week {0}: `lamplighter memory show week {0}`\n", line(monday)));
    }
    if text.is_empty() {
        text.push_str("nothing of this year is archived\n");
    }
    Ok(output::print(text)?)
}

/// Deletes a fact, if the person says yes.
fn forget(api: &Api, fact: &str, yes: bool, json: bool) -> Result<(), Failure> {
    let path = path(fact);
    if !yes {
        if json || !io::stdin().is_terminal() || !api.screen.is_terminal() {
            return Err(Failure::Message(
                "not forgotten: without a terminal, or with --json, `--yes` must say that you mean it"
                    .to_owned(),
            ));
        }
        let found = api.get(&path, &[])?;
        output::print(indented(found.text("text"), "  "))?;
        if !confirmed("Forget it everywhere? It cannot be brought back.")? {
            return Err(Failure::Message("not forgotten".to_owned()));
        }
    }
    patiently(|| api.server.delete(&path))?;
    told(&json!({ "fact_id": fact, "forgotten": true }), json, "Forgotten.")
}

/// Changes the memory with models, which takes longer than other calls.
fn updated(api: &Api, path: &str) -> Result<Option<Value>, Failure> {
    let server = Server::new(&api.settings, UPDATE);
    let key = Uuid::now_v7().to_string();
    let answer = patiently(|| server.send_json(Change::Post, path, &json!({}), &key))?;
    if answer.body.is_empty() { Ok(None) } else { parsed(&answer.body).map(Some) }
}

fn sync(api: &Api, json: bool) -> Result<(), Failure> {
    let synced = updated(api, "/memory/sync")?.unwrap_or_default();
    if json {
        return print_json(&synced);
    }
    let mut table = Table::new(api.screen, &["CONVERSATION", "FACTS", "SKIPPED", "NOT ACCEPTED"]);
    let mut facts = 0;
    for source in synced.items("sources") {
        let learned = source.number("facts").unwrap_or(0);
        facts += learned;
        let rejected = match source.items("rejected").len() {
            0 => String::new(),
            some => some.to_string(),
        };
        table.row([
            (source.text("source"), Look::Plain),
            (learned.to_string().as_str(), Look::Plain),
            (source.text("skipped").replace('_', " ").as_str(), Look::Dim),
            (rejected.as_str(), Look::Careful),
        ]);
    }
    let mut text = table.lines();
    text.push_str(&match synced.text("result") {
        "written" => format!("learned {} for {}\n", counted(facts, "fact", "facts"), cost(&synced)),
        _ => "there was nothing new to learn\n".to_owned(),
    });
    Ok(output::print(text)?)
}

fn tidy(api: &Api, json: bool) -> Result<(), Failure> {
    let tidied = updated(api, "/memory/tidy")?;
    if json {
        return print_json(&tidied.unwrap_or_default());
    }
    let Some(tidied) = tidied else { return Ok(output::print("there was nothing to tidy\n")?) };
    let mut text = String::new();
    for change in tidied.items("diff") {
        text.push_str(&changed(change));
    }
    text.push_str(&format!(
        "tidied {} for {}; `lamplighter memory rollback {}` undoes it\n",
        counted(tidied.number("blocks").unwrap_or(0), "conversation", "conversations"),
        cost(&tidied),
        line(tidied.text("tidy_id")),
    ));
    Ok(output::print(text)?)
}

/// A line that was added or removed.
fn changed(change: &Value) -> String {
    let sign = if change.text("kind") == "added" { '+' } else { '-' };
    format!("{sign} {}: {}\n", line(change.text("section")), line(change.text("text")))
}

/// The id of the clean-up that begins like this.
fn tidy_id(api: &Api, called: &str) -> Result<String, Failure> {
    if names::digits("tdy_", called) == Some(32) {
        return Ok(called.to_owned());
    }
    let list = api.get("/memory/tidies", &[("limit", Some("50"))])?;
    names::id_in_list(called, "tdy_", "clean-up", list.items("data"), "tidy_id", "monday")
}

fn tidies(api: &Api, limit: u32, json: bool) -> Result<(), Failure> {
    let list = api.get("/memory/tidies", &[("limit", Some(&limit.to_string()))])?;
    if json {
        return print_json(&list);
    }
    let tidies = list.items("data");
    let ids: Vec<&str> = tidies.iter().map(|tidy| tidy.text("tidy_id")).collect();
    let mut table = Table::new(
        api.screen,
        &["ID", "WEEK OF", "AT", "CONVERSATIONS", "LINES CHANGED", "NOT ACCEPTED", "COST", "UNDONE"],
    );
    for (tidy, id) in tidies.iter().zip(short_ids(api.screen, &ids)) {
        let number = |field| tidy.number(field).unwrap_or(0).to_string();
        let changes = tidy["diff"].as_array().map(|diff| diff.len().to_string()).unwrap_or_default();
        table.row([
            (id.as_str(), Look::Dim),
            (tidy.text("monday"), Look::Plain),
            (api.when(tidy.text("at")).as_str(), Look::Plain),
            (number("blocks").as_str(), Look::Plain),
            (changes.as_str(), Look::Plain),
            (number("rejected").as_str(), Look::Plain),
            (cost(tidy).as_str(), Look::Plain),
            (api.when(tidy.text("rolled_back_at")).as_str(), Look::Careful),
        ]);
    }
    Ok(output::print(if table.is_empty() {
        "the memory was never tidied\n".to_owned()
    } else {
        table.lines()
    })?)
}
