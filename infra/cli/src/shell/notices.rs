//! `notices`: what a person is told, where, and what became of it.

pub mod channels;
mod snooze;

use serde_json::{Value, json};

use super::api::Api;
use super::names;
use super::screen::{Look, line, print_json};
use super::table::{Table, short_ids};
use super::values::{Fields, counted};
use crate::Failure;
use crate::args::{Deliveries, Notices, NoticesCommand};
use crate::output;
use crate::server::Change;
use crate::url::segment;

const PATH: &str = "/notifications";

/// How many of the newest deliveries are looked through for the beginning of an id.
const NEWEST: u32 = 1_000;

/// What a person may be told, and how if nothing is set. A server may know other kinds; those that are set are shown, too.
const KINDS: [(&str, &str); 7] = [
    ("needs_answer", "at_once"),
    ("failed", "at_once"),
    ("held", "at_once"),
    ("watchdog", "at_once"),
    ("budget", "at_once"),
    ("succeeded", "digest"),
    ("nothing_new", "off"),
];

/// Does what the person asks about notices.
///
/// # Errors
/// If the server refuses it or does not answer.
pub fn run(api: &Api, args: &Notices) -> Result<(), Failure> {
    match &args.command {
        None => show(api, args.json.json),
        Some(NoticesCommand::Channels(json)) => channels::list(api, json.json),
        Some(NoticesCommand::Add(args)) => channels::add(api, args),
        Some(NoticesCommand::Confirm { channel, code, json }) => {
            channels::confirm(api, channel, &code.join(" "), json.json)
        }
        Some(NoticesCommand::Code(args)) => channels::send_another_code(api, args),
        Some(NoticesCommand::Test(args)) => channels::test(api, args),
        Some(NoticesCommand::Rotate(args)) => channels::rotate(api, args),
        Some(NoticesCommand::Pause(args)) => channels::turn(api, args, false),
        Some(NoticesCommand::Resume(args)) => channels::turn(api, args, true),
        Some(NoticesCommand::Delete { channel, yes }) => channels::delete(api, channel, *yes),
        Some(NoticesCommand::Deliveries(args)) => deliveries(api, args),
        Some(NoticesCommand::Retry { delivery, json }) => retry(api, delivery, json.json),
        Some(NoticesCommand::Snooze { when, json }) => snooze::run(api, when, json.json),
    }
}

/// Prints what the person is told.
fn show(api: &Api, json: bool) -> Result<(), Failure> {
    let told = api.get(PATH, &[])?;
    if json {
        return print_json(&told);
    }
    let kinds = &told["kinds"];
    let mut table = Table::new(api.screen, &["KIND", "TOLD"]);
    for (kind, standard) in KINDS {
        way(&mut table, kind, kinds.some(kind).unwrap_or(standard));
    }
    for (kind, set) in kinds.as_object().into_iter().flatten() {
        if KINDS.iter().all(|(known, _)| known != kind) {
            way(&mut table, kind, set.as_str().unwrap_or_default());
        }
    }
    let mut text = table.lines();
    text.push('\n');
    let own = told["actions"].as_object().map_or(0, serde_json::Map::len);
    if own > 0 {
        let own = i64::try_from(own).unwrap_or(i64::MAX);
        let actions = counted(own, "action has rules of its own", "actions have rules of their own");
        text.push_str(&format!("{actions}; `--json` shows them\n"));
    }
    if let Some(hours) = told.get("quiet_hours").filter(|hours| hours.is_object()) {
        let urgent = if told.is("urgent_in_quiet_hours") { ", except needs_answer and watchdog" } else { "" };
        let (from, to) = (line(hours.text("from")), line(hours.text("to")));
        text.push_str(&format!("quiet from {from} to {to}{urgent}\n"));
    }
    text.push_str(&format!("the digest comes at {}\n", line(told.some("digest_at").unwrap_or("08:00"))));
    if let Some(until) = told.some("snoozed_until").filter(|until| snooze::is_ahead(until)) {
        text.push_str(&format!("nothing is sent before {}\n", api.when(until)));
    }
    let channels = channels::all(api)?;
    let on = channels.iter().filter(|channel| channel.text("state") == "enabled").count();
    text.push_str(&match (channels.len(), on) {
        (0, _) => "nobody is told: there is no channel; `lamplighter notices add` adds one\n".to_owned(),
        (_, 0) => "nobody is told: no channel is on; `lamplighter notices channels` lists them\n".to_owned(),
        (_, on) => {
            let on = counted(i64::try_from(on).unwrap_or(i64::MAX), "channel", "channels");
            format!("sent to {on}; `lamplighter notices channels` lists them\n")
        }
    });
    Ok(output::print(text)?)
}

fn way(table: &mut Table, kind: &str, told: &str) {
    let (words, look) = match told {
        "at_once" => ("at once", Look::Good),
        "digest" => ("in the digest", Look::Plain),
        "off" => ("not", Look::Dim),
        other => (other, Look::Plain),
    };
    table.row([(kind, Look::Plain), (words, look)]);
}

fn deliveries(api: &Api, args: &Deliveries) -> Result<(), Failure> {
    let list = api.list("/deliveries", &[("state", args.state.as_deref())], args.limit.limit)?;
    if args.json.json {
        return print_json(&list);
    }
    let items = list.items("data");
    let ids: Vec<&str> = items.iter().map(|item| item.text("delivery_id")).collect();
    let mut table = Table::new(api.screen, &["WHEN", "STATE", "WHAT", "TO", "TRIES", "NEXT", "ERROR", "ID"]);
    for (item, id) in items.iter().zip(short_ids(api.screen, &ids)) {
        let tries = item.number("tries").map(|tries| tries.to_string()).unwrap_or_default();
        let to = format!("{} {}", item.text("kind"), item.text("target"));
        table.row([
            (api.when(item.text("created_at")).as_str(), Look::Plain),
            (item.text("state"), look(item.text("state"))),
            (item.text("subject"), Look::Plain),
            (to.trim(), Look::Plain),
            (tries.as_str(), Look::Plain),
            (api.when(item.text("next_at")).as_str(), Look::Plain),
            (item.text("error"), Look::Bad),
            (id.as_str(), Look::Dim),
        ]);
    }
    output::print(if table.is_empty() {
        "there are no such deliveries\n".to_owned()
    } else {
        table.lines()
    })?;
    api.note_more(&list);
    Ok(())
}

/// How a state of a channel or of a delivery looks.
fn look(state: &str) -> Look {
    match state {
        "enabled" | "delivered" => Look::Good,
        "unconfirmed" | "waiting" => Look::Careful,
        "suspended" | "undelivered" => Look::Bad,
        _ => Look::Dim,
    }
}

fn retry(api: &Api, called: &str, json: bool) -> Result<(), Failure> {
    let called = called.trim();
    let id = if names::digits("dlv_", called) == Some(32) {
        called.to_owned()
    } else {
        let list = api.list("/deliveries", &[], NEWEST)?;
        names::id_in_list(called, "dlv_", "delivery", list.items("data"), "delivery_id", "subject")?
    };
    let again = api.send(Change::Post, &format!("/deliveries/{}/retry", segment(&id)), &json!({}))?;
    told(&again, json, "It is tried again. `lamplighter notices deliveries` shows what becomes of it.")
}

fn told(answer: &Value, json: bool, text: &str) -> Result<(), Failure> {
    if json { print_json(answer) } else { Ok(output::print(format!("{text}\n"))?) }
}
