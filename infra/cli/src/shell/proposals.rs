//! `proposals`: drafts of an agent that wait.

use serde_json::Value;

use super::api::Api;
use super::names;
use super::screen::{Look, indented, line, print_json};
use super::table::{Table, short_ids};
use super::values::{Fields, schedule};
use crate::Failure;
use crate::args::Proposals;
use crate::output;
use crate::url::segment;

/// Prints the proposals of an agent, or one of them.
///
/// # Errors
/// If the server does not answer, or there is no such proposal.
pub fn run(api: &Api, args: &Proposals) -> Result<(), Failure> {
    if let Some(called) = &args.proposal {
        let proposal = api.get(&format!("/proposals/{}", segment(&id(api, called)?)), &[])?;
        if args.json.json {
            return print_json(&proposal);
        }
        return Ok(output::print(shown(api, &proposal))?);
    }
    let agent = names::agent_or_only(api, args.agent.as_deref())?;
    let list = api.list(&format!("/agents/{}/proposals", segment(&agent)), &[], args.limit.limit)?;
    if args.json.json {
        return print_json(&list);
    }
    let proposals = list.items("data");
    let ids: Vec<&str> = proposals.iter().map(|proposal| proposal.text("proposal_id")).collect();
    let mut table = Table::new(api.screen, &["ID", "KIND", "TITLE", "MADE", "UNTIL", "SCHEDULE"]);
    for (proposal, id) in proposals.iter().zip(short_ids(api.screen, &ids)) {
        table.row([
            (id.as_str(), Look::Dim),
            (proposal.text("kind"), Look::Plain),
            (proposal.text("title"), Look::Plain),
            (api.when(proposal.text("created_at")).as_str(), Look::Plain),
            (api.when(proposal.text("expires_at")).as_str(), Look::Plain),
            (schedule(proposal), Look::Plain),
        ]);
    }
    output::print(if table.is_empty() { "no proposal waits\n".to_owned() } else { table.lines() })?;
    api.note_more(&list);
    Ok(())
}

/// The id that begins like this. The inbox has the proposals of all agents.
///
/// # Errors
/// If there is none, or there are several.
pub fn id(api: &Api, called: &str) -> Result<String, Failure> {
    if names::digits("prp_", called) == Some(32) {
        return Ok(called.to_owned());
    }
    let inbox = api.get("/inbox", &[])?;
    names::id_in_list(called, "prp_", "proposal", inbox.items("data"), "proposal_id", "title")
}

fn shown(api: &Api, proposal: &Value) -> String {
    let mut text = format!(
        "{}  {}\n",
        api.screen.painted(&line(proposal.text("title")), Look::Bold),
        api.screen.painted(&line(proposal.text("kind")), Look::Dim)
    );
    text.push_str(&indented(proposal.text("description"), ""));
    if proposal.some("schedule_text").is_some() {
        text.push_str(&format!("when      {}\n", line(schedule(proposal))));
    }
    text.push_str(&format!("until     {}\n", api.when(proposal.text("expires_at"))));
    for (heading, part) in [
        ("What it does", proposal["task_config"].some("instructions")),
        ("Expected output", proposal["task_config"].some("expected_output")),
        ("Content", proposal.some("content")),
    ] {
        if let Some(part) = part {
            text.push_str(&format!("\n{heading}\n{}", indented(part, "  ")));
        }
    }
    if proposal.some("command").is_some() {
        text.push_str(&format!("command   {}\n", line(proposal.text("command"))));
    }
    if proposal["change"].is_object() {
        text.push_str(&format!("\nChange\n{}", indented(&format!("{:#}", proposal["change"]), "  ")));
    }
    text.push_str(&format!("\n→ lamplighter accept {}\n", line(proposal.text("proposal_id"))));
    text
}
