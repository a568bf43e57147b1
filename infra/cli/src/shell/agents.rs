//! `agents`: a list of agents, one of them, or a new one.

use std::io::{self, IsTerminal};

use serde_json::{Value, json};

use super::actions::look;
use super::api::Api;
use super::approve;
use super::chat::{self, Talk, ask, confirmed};
use super::names::{self, Kind};
use super::notices::channels;
use super::screen::{Look, indented, line, print_json};
use super::table::{Table, short_ids};
use super::values::{Fields, dollars};
use crate::Failure;
use crate::args::{Agents, AgentsCommand, Chat, NewAgent};
use crate::output;
use crate::server::Change;

/// Prints a list of agents, or one of them, or makes one.
///
/// # Errors
/// If the server does not answer, or there is no such agent.
pub fn run(api: Api, args: &Agents) -> Result<(), Failure> {
    if let Some(AgentsCommand::New(args)) = &args.command {
        return new(api, args);
    }
    if let Some(called) = &args.agent {
        let agent = api.get(&names::path(&api, Kind::Agent, called)?, &[])?;
        if args.json.json {
            return print_json(&agent);
        }
        return Ok(output::print(shown(&api, &agent))?);
    }
    let list = api.list("/agents", &[], args.limit.limit)?;
    if args.json.json {
        return print_json(&list);
    }
    let agents = list.items("data");
    let ids: Vec<&str> = agents.iter().map(|agent| agent.text("agent_id")).collect();
    let mut table = Table::new(api.screen, &["ID", "NAME", "STATUS", "COST", "GOAL"]);
    for (agent, id) in agents.iter().zip(short_ids(api.screen, &ids)) {
        let status = agent.text("status");
        let cost = agent["metrics"].number("cost_micros").map(dollars).unwrap_or_default();
        table.row([
            (id.as_str(), Look::Dim),
            (agent.text("name"), Look::Bold),
            (status, look(status)),
            (cost.as_str(), Look::Plain),
            (agent.text("goal"), Look::Plain),
        ]);
    }
    output::print(if table.is_empty() {
        "there are no agents yet; `lamplighter agents new` makes one\n".to_owned()
    } else {
        table.lines()
    })?;
    api.note_more(&list);
    Ok(())
}

fn shown(api: &Api, agent: &Value) -> String {
    let status = agent.text("status");
    let mut text = format!(
        "{}  {}\n{}\n",
        api.screen.painted(&line(agent.text("name")), Look::Bold),
        api.screen.painted(&line(status), look(status)),
        line(agent.text("agent_id"))
    );
    let metrics = &agent["metrics"];
    let number = |field| metrics.number(field).unwrap_or(0);
    let mut row = |name: &str, value: String| {
        if !value.is_empty() {
            text.push_str(&format!("{name:<10}{value}\n"));
        }
    };
    row("goal", line(agent.text("goal")));
    row("success", line(agent.text("success_criteria")));
    row("timeline", line(agent.text("timeline")));
    row("zone", line(agent.text("timezone")));
    row("model", line(agent.text("model_tier")));
    row("runs", format!("{} succeeded, {} failed", number("actions_completed"), number("actions_failed")));
    row("assets", number("assets").to_string());
    row("cost", dollars(number("cost_micros")));
    if let Some(instructions) = agent.some("instructions") {
        text.push_str(&format!("\nInstructions\n{}", indented(instructions, "  ")));
    }
    text
}

/// Makes an agent: at once, or in the setup conversation.
fn new(api: Api, args: &NewAgent) -> Result<(), Failure> {
    if let (Some(name), Some(goal)) = (&args.name, &args.goal) {
        return made(&api, &json!({ "name": name, "goal": goal }), args.json.json);
    }
    if !io::stdin().is_terminal() || !api.screen.is_terminal() {
        return Err(Failure::Message(
            "without a terminal, --name and --goal say which agent to make".to_owned(),
        ));
    }
    set_up(api, None, args.json.json)
}

/// Talks to an agent. While there is none, a conversation on a terminal makes the first one.
///
/// # Errors
/// As [`chat::run`].
pub fn chat(api: Api, args: &Chat) -> Result<(), Failure> {
    let talks = args.chat.is_none() && !args.json && io::stdin().is_terminal() && api.screen.is_terminal();
    if !talks || !names::has_no_agent(&api)? {
        return chat::run(api, args);
    }
    let words: Vec<&str> = args.agent.iter().chain(&args.message).map(String::as_str).collect();
    set_up(api, Some(words.join(" ")).filter(|words| !words.is_empty()), false)
}

/// Makes an agent in the setup conversation. `first`: its first message, if it was said already.
///
/// # Errors
/// If a message is refused, or the agent can't be made.
pub fn set_up(api: Api, first: Option<String>, json: bool) -> Result<(), Failure> {
    let talk = Talk::begin(api, "/setup/chat".to_owned(), false);
    if first.is_none() {
        talk.note("Say what an agent is to do for you, and when. Ctrl-D ends it.");
    }
    talk.converse(None, first, |talk, run| {
        let draft = &run["agent_draft"];
        if !draft.is_object() {
            return Ok(false);
        }
        if draft["first_action"].is_object() {
            return ticket(talk, run, json);
        }
        output::print(format!(
            "\n{}\n{}",
            talk.api.screen.painted(&line(draft.text("name")), Look::Bold),
            indented(draft.text("goal"), "  ")
        ))?;
        if !confirmed("Make this agent?")? {
            talk.note("Say what should be different.");
            return Ok(false);
        }
        made(&talk.api, draft, json).map(|()| true)
    })
}

/// Shows the ticket of an agent with its first action, and makes both if the person says yes. Returns whether they were made.
fn ticket(talk: &Talk, run: &Value, json: bool) -> Result<bool, Failure> {
    let api = &talk.api;
    let mut setup = json!({ "run_id": run["run_id"] });
    let shown = api.send(Change::Post, "/setup/preview", &setup)?;
    let times: Vec<String> =
        shown.items("fire_times").iter().filter_map(Value::as_str).map(|at| api.when(at)).collect();
    let first = shown.items("fire_times").first().cloned().unwrap_or_default();
    let about = json!({ "schedule_text": shown["schedule_text"], "next_due": first });
    output::print(format!("\n{}", approve::shown(api, &about, &shown)))?;
    if times.len() > 1 {
        output::print(format!("then      {}\n", times[1..].join(", ")))?;
    }
    let channel = match shown["told"].items("channels").is_empty() {
        true => asked_channel(talk)?,
        false => None,
    };
    if !confirmed("Make the agent, and approve this?")? {
        talk.note("Say what should be different.");
        return Ok(false);
    }
    if let Some(channel) = channel {
        let channel = api.send(Change::Post, "/notifications/channels", &channel)?;
        if channel.text("state") == "unconfirmed" {
            talk.note("A code is on its way to that address: `lamplighter notices confirm` takes it.");
        }
    }
    setup["approval_hash"] = shown["approval_hash"].clone();
    setup["tell"] = json!("at_once");
    let made = api.send(Change::Post, "/setup", &setup)?;
    if json {
        return print_json(&made).map(|()| true);
    }
    let (agent, action) = (&made["agent"], &made["action"]);
    let next = match action.some("next_due") {
        Some(at) => format!("It runs {}", api.when(at)),
        None => "It runs when you run it".to_owned(),
    };
    output::print(format!(
        "Made {} ({}). {next}.\n",
        line(agent.text("name")),
        line(agent.text("agent_id"))
    ))?;
    Ok(true)
}

/// Where the person wants to be told, if nobody is told yet. `None`: nowhere.
fn asked_channel(talk: &Talk) -> Result<Option<Value>, Failure> {
    loop {
        let said = ask("Tell me at (an e-mail address or the address of a webhook; empty: nowhere): ")?;
        let said = said.unwrap_or_default();
        match channels::named(said.trim()) {
            _ if said.trim().is_empty() => return Ok(None),
            Some(channel) => return Ok(Some(channel)),
            None => talk.note(
                "That is no e-mail address, no address that begins with https://, and no token of a Telegram bot with a chat.",
            ),
        }
    }
}

fn made(api: &Api, draft: &Value, json: bool) -> Result<(), Failure> {
    let agent = api.send(Change::Post, "/agents", draft)?;
    if json {
        return print_json(&agent);
    }
    Ok(output::print(format!("Made {} ({}).\n", line(agent.text("name")), line(agent.text("agent_id"))))?)
}
