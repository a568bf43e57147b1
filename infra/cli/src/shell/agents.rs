//! `agents`: a list of agents, one of them, or a new one.

use std::io::{self, IsTerminal};

use serde_json::{Value, json};

use super::actions::look;
use super::api::Api;
use super::chat::{Talk, confirmed};
use super::names::{self, Kind};
use super::screen::{Look, indented, line, print_json};
use super::table::{Table, short_ids};
use super::values::{Fields, dollars};
use crate::Failure;
use crate::args::{Agents, AgentsCommand, NewAgent};
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
    let talk = Talk::begin(api, "/setup/chat".to_owned(), false);
    talk.note("Say what the agent is for. Ctrl-D ends it.");
    talk.converse(None, |talk, run| {
        let draft = &run["agent_draft"];
        if !draft.is_object() {
            return Ok(false);
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
        made(&talk.api, draft, args.json.json).map(|()| true)
    })
}

fn made(api: &Api, draft: &Value, json: bool) -> Result<(), Failure> {
    let agent = api.send(Change::Post, "/agents", draft)?;
    if json {
        return print_json(&agent);
    }
    Ok(output::print(format!("Made {} ({}).\n", line(agent.text("name")), line(agent.text("agent_id"))))?)
}
