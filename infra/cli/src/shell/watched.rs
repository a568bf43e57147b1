//! `watch list`, `add`, `show`, `pause`, `resume`, `delete` and `report`: schedules that something else runs.

use std::io::{self, IsTerminal};

use serde_json::{Map, Value, json};

use super::api::{Api, unexpected};
use super::chat::confirmed;
use super::names::folded;
use super::screen::{Look, line, print_json};
use super::table::{Table, short_ids};
use super::values::{Fields, counted, schedule};
use crate::Failure;
use crate::args::{AddWatched, NamedWatched, ReportWatched, ShowWatched, WatchCommand};
use crate::output;
use crate::server::{Change, Server, ServerError};

/// More than an account may have.
const ALL: u32 = 1_000;

/// How many of them an answer has.
const PAGE: &str = "200";

/// How many names an error lists.
const SHOWN: usize = 10;

/// The digits of an id.
const DIGITS: usize = 32;

const PREFIX: &str = "wch_";

/// How many due times and reports `show` prints.
const NEWEST: usize = 15;

/// Does what the person asks about a schedule.
///
/// # Errors
/// If the server refuses it or does not answer.
pub fn run(api: &Api, command: &WatchCommand) -> Result<(), Failure> {
    match command {
        WatchCommand::List(args) => list(api, args.json),
        WatchCommand::Add(args) => add(api, args),
        WatchCommand::Show(args) => show(api, args),
        WatchCommand::Pause(args) => pause(api, args, true),
        WatchCommand::Resume(args) => pause(api, args, false),
        WatchCommand::Delete { watched, yes } => delete(api, watched, *yes),
        WatchCommand::Report(args) => report(api, args),
        // It was done before: it needs no settings, because the command runs whatever they are.
        WatchCommand::Wrap(_) => Ok(()),
    }
}

fn list(api: &Api, json: bool) -> Result<(), Failure> {
    let all = api.list("/watched", &[], ALL)?;
    if json {
        return print_json(&all);
    }
    let items = all.items("data");
    if items.is_empty() {
        return Ok(output::print("nothing is watched; `lamplighter watch add` declares a schedule\n")?);
    }
    let ids: Vec<&str> = items.iter().map(|item| item.text("watched_id")).collect();
    let mut table = Table::new(api.screen, &["NAME", "STATE", "DUE", "NEXT", "SCHEDULE", "ID"]);
    for (item, id) in items.iter().zip(short_ids(api.screen, &ids)) {
        let (state, look) = state(item);
        let due = api.when(item["last"].text("due"));
        let next = api.when(item.text("next_due"));
        table.row([
            (item.text("name"), Look::Plain),
            (state, look),
            (due.as_str(), Look::Plain),
            (next.as_str(), Look::Plain),
            (schedule(item), Look::Dim),
            (id.as_str(), Look::Dim),
        ]);
    }
    Ok(output::print(table.lines())?)
}

/// How it is now, and how that looks.
fn state(item: &Value) -> (&str, Look) {
    if item.is("paused") {
        return ("paused", Look::Dim);
    }
    // A server of an earlier version answers only what became of the newest due time.
    let state = item.some("state").or_else(|| item["last"].some("state")).unwrap_or("-");
    (state, look(state))
}

fn look(state: &str) -> Look {
    match state {
        "ran" => Look::Good,
        "late" | "empty" => Look::Careful,
        "silent" | "failed" => Look::Bad,
        _ => Look::Dim,
    }
}

fn add(api: &Api, args: &AddWatched) -> Result<(), Failure> {
    let mut schedule = Map::new();
    let when = &args.when;
    if let Some(time) = &when.daily {
        schedule.insert("cron".to_owned(), json!(daily(time)?));
    }
    for (field, given) in [("cron", &when.cron), ("every", &when.every), ("at", &when.at)] {
        if let Some(text) = given {
            schedule.insert(field.to_owned(), json!(text));
        }
    }
    if let Some(zone) = &args.timezone {
        schedule.insert("timezone".to_owned(), json!(zone));
    }
    let mut body = json!({ "name": args.name, "schedule": schedule, "expects_result": args.expects_result });
    if let Some(minutes) = args.grace {
        body["grace_minutes"] = json!(minutes);
    }
    let made = api.send(Change::Post, "/watched", &body)?;
    if args.json.json {
        return print_json(&made);
    }
    let id = made.text("watched_id");
    Ok(output::print(format!(
        "{}  {}\n{}\nIt is due next {}. Report each run with:\n  lamplighter watch wrap {id} -- COMMAND\n",
        line(made.text("name")),
        line(id),
        line(made.text("schedule_text")),
        api.when(made.text("next_due")),
    ))?)
}

/// The cron expression of a time of day, such as `03:00`.
fn daily(time: &str) -> Result<String, Failure> {
    let parsed = time.split_once(':').and_then(|(hour, minute)| {
        let number = |text: &str, most: u8| {
            let is_plain = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<u8>().ok().filter(|number| is_plain && *number <= most)
        };
        Some((number(hour, 23)?, number(minute, 59)?))
    });
    match parsed {
        Some((hour, minute)) => Ok(format!("{minute} {hour} * * *")),
        None => Err(Failure::Message(format!("--daily must be a time such as 03:00, is `{}`", line(time)))),
    }
}

fn show(api: &Api, args: &ShowWatched) -> Result<(), Failure> {
    let path = path(api, &args.watched)?;
    let watched = api.get(&path, &[])?;
    let from = args.from.as_deref().map(|text| api.instant(text, "--from", false)).transpose()?;
    let ledger = api.get(&format!("{path}/ledger"), &[("from", from.as_deref())])?;
    if args.json.json {
        return print_json(&json!({ "watched": watched, "ledger": ledger }));
    }
    let mut text = format!(
        "{}  {}\n{}\n",
        api.screen.painted(&line(watched.text("name")), Look::Bold),
        api.screen.painted(&line(watched.text("watched_id")), Look::Dim),
        line(watched.text("schedule_text")),
    );
    let grace = counted(watched.number("grace_minutes").unwrap_or(0), "minute", "minutes");
    text.push_str(&format!("a report is late after {grace}\n"));
    if watched.is("expects_result") {
        text.push_str("a success must have a summary or a link\n");
    }
    if let (false, Some(why)) = (watched.is("paused"), watched.some("why")) {
        let (state, look) = state(&watched);
        text.push_str(&format!("{}: {}\n", api.screen.painted(&line(state), look), line(why)));
    }
    match (watched.is("paused"), watched.some("next_due")) {
        (true, _) => text.push_str("it is paused\n"),
        (false, Some(next)) => text.push_str(&format!("due next {}\n", api.when(next))),
        (false, None) => text.push_str("it is not due any more\n"),
    }
    if let Some(at) = watched["last_report"].some("at") {
        let said = if watched["last_report"].is("ok") { "a success" } else { "a failure" };
        text.push_str(&format!("the newest report came {}: {said}\n", api.when(at)));
    }
    let data = ledger.items("data");
    let mut table = Table::new(api.screen, &["DUE", "STATE", "WHY", "SUMMARY", "LINK"]);
    for entry in data.iter().rev().take(NEWEST) {
        let due = api.when(entry.text("due"));
        table.row([
            (due.as_str(), Look::Plain),
            (entry.text("state"), look(entry.text("state"))),
            (entry.text("why"), Look::Plain),
            (entry["report"].text("summary"), Look::Plain),
            (entry["report"].text("link"), Look::Dim),
        ]);
    }
    if table.is_empty() {
        text.push_str("no due time has come in this time\n");
    }
    text.push_str(&table.lines());
    output::print(text)?;
    if data.len() > NEWEST || ledger.some("next_from").is_some() {
        output::note("there are more; `--json` and `--from TIME` show them");
    }
    Ok(())
}

fn pause(api: &Api, args: &NamedWatched, paused: bool) -> Result<(), Failure> {
    let changed = api.send(Change::Patch, &path(api, &args.watched)?, &json!({ "paused": paused }))?;
    if args.json.json {
        return print_json(&changed);
    }
    let name = line(changed.text("name"));
    Ok(output::print(match changed.some("next_due") {
        Some(next) => format!("{name} is watched. It is due next {}.\n", api.when(next)),
        None if paused => format!("{name} is paused. Nothing is expected of it until `watch resume`.\n"),
        None => format!("{name} is watched. It is not due any more.\n"),
    })?)
}

fn delete(api: &Api, named: &str, yes: bool) -> Result<(), Failure> {
    let path = path(api, named)?;
    if !yes {
        if !io::stdin().is_terminal() {
            let told = "without a terminal, `--yes` is needed to delete it with all its reports";
            return Err(Failure::Message(told.to_owned()));
        }
        let watched = api.get(&path, &[])?;
        output::note(&format!(
            "{} is deleted with all its reports. This can't be undone",
            line(watched.text("name"))
        ));
        if !confirmed("Delete it?")? {
            return Ok(output::print("nothing was deleted\n")?);
        }
    }
    api.server.delete(&path)?;
    Ok(output::print("deleted\n")?)
}

fn report(api: &Api, args: &ReportWatched) -> Result<(), Failure> {
    let path = path(api, &args.watched)?;
    let mut body = json!({ "ok": !args.failed });
    for (field, given) in [("summary", &args.summary), ("link", &args.link)] {
        if let Some(text) = given {
            body[field] = json!(text);
        }
    }
    let report = api.send(Change::Post, &format!("{path}/reports"), &body)?;
    if args.json.json { print_json(&report) } else { Ok(output::print("reported\n")?) }
}

fn path(api: &Api, named: &str) -> Result<String, Failure> {
    let id = super::api::patiently(|| match id_on(&api.server, named) {
        Ok(id) => Ok(Ok(id)),
        Err(Unnamed::Server(error)) => Err(error),
        Err(Unnamed::Name(told)) => Ok(Err(told)),
    })?;
    Ok(format!("/watched/{}", id.map_err(Failure::Message)?))
}

/// Why an id was not found.
pub enum Unnamed {
    Server(ServerError),
    /// There is no such schedule, or there are several.
    Name(String),
}

impl From<ServerError> for Unnamed {
    fn from(error: ServerError) -> Self {
        Self::Server(error)
    }
}

/// The id of a watched schedule, by its id, the beginning of its id, or its name. A whole id is not looked up.
///
/// # Errors
/// If the server does not answer, or if there is not exactly one.
pub fn id_on(server: &Server, named: &str) -> Result<String, Unnamed> {
    let wanted = named.trim();
    let digits =
        wanted.strip_prefix(PREFIX).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if digits.is_some_and(|digits| digits.len() == DIGITS) {
        return Ok(wanted.to_owned());
    }
    let (mut all, mut cursor) = (Vec::new(), None::<String>);
    while all.len() < ALL as usize {
        let answer = server.get("/watched", &[("limit", Some(PAGE)), ("cursor", cursor.as_deref())])?;
        let answer: Value =
            serde_json::from_slice(&answer.body).map_err(|_| Unnamed::Name(unexpected().to_string()))?;
        all.extend(answer.items("data").iter().cloned());
        let next = answer.some("next_cursor").map(str::to_owned);
        // A server that repeats a cursor would make this endless.
        if next.is_none() || next == cursor {
            break;
        }
        cursor = next;
    }
    only(&all, wanted, digits.is_some()).map_err(Unnamed::Name)
}

fn only(all: &[Value], wanted: &str, is_id: bool) -> Result<String, String> {
    let name = folded(wanted);
    let mut found: Vec<&Value> = all.iter().filter(|item| folded(item.text("name")) == name).collect();
    if found.is_empty() && is_id && wanted.len() > PREFIX.len() {
        found = all.iter().filter(|item| item.text("watched_id").starts_with(wanted)).collect();
    }
    let listed = |items: &[&Value]| {
        let row = |item: &&Value| format!("{} ({})", line(item.text("name")), line(item.text("watched_id")));
        items.iter().take(SHOWN).map(row).collect::<Vec<_>>().join(", ")
    };
    match found.as_slice() {
        // The id goes into a path.
        [one] if one.text("watched_id").bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') => {
            Ok(one.text("watched_id").to_owned())
        }
        [_] => Err(unexpected().to_string()),
        [] if all.is_empty() => {
            Err("nothing is watched; `lamplighter watch add` declares a schedule".to_owned())
        }
        [] => {
            let all: Vec<&Value> = all.iter().collect();
            Err(format!("no watched schedule is called `{}`; there are: {}", line(wanted), listed(&all)))
        }
        several => Err(format!("several are called `{}`: {}; use an id", line(wanted), listed(several))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_day_is_a_cron_expression() {
        assert_eq!(daily("03:00").unwrap(), "0 3 * * *");
        assert_eq!(daily("23:59").unwrap(), "59 23 * * *");
        for wrong in ["", "3", "24:00", "03:60", "-1:00", "+3:00", "03:00:00", "a:b", "003:00"] {
            assert!(daily(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn one_is_found_by_its_name_or_the_beginning_of_its_id() {
        let item = |id: &str, name: &str| json!({ "watched_id": id, "name": name });
        let all = [item("wch_0a", "Backup"), item("wch_0b", "Mirror"), item("wch_0c", "mirror")];
        assert_eq!(only(&all, "BACKUP", false).unwrap(), "wch_0a");
        let [one, two] = [item("wch_0d", "Büro"), item("wch_0e", "Cafe\u{301}")];
        assert_eq!(only(&[one, two.clone()], "Bu\u{308}ro", false).unwrap(), "wch_0d");
        assert_eq!(only(&[two], "CAFÉ", false).unwrap(), "wch_0e");
        assert_eq!(only(&all, "wch_0b", true).unwrap(), "wch_0b");
        assert!(only(&all, "wch_0", true).unwrap_err().contains("several"));
        assert!(only(&all, "Mirror", false).unwrap_err().contains("wch_0c"));
        assert!(only(&all, "x", false).unwrap_err().contains("Backup (wch_0a)"));
        assert!(only(&[], "x", false).unwrap_err().contains("watch add"));
        assert!(only(&[item("wch_/../x", "a")], "a", false).is_err());
    }
}
