//! `jobs`: what the platform did by itself, and what came of it.

use super::api::Api;
use super::screen::{Look, print_json};
use super::table::{Table, short_ids};
use super::times;
use super::values::{Fields, cost};
use crate::Failure;
use crate::args::Jobs;
use crate::output;

/// Prints the records of background jobs, newest due time first.
///
/// # Errors
/// If the server refuses it or does not answer.
pub fn run(api: &Api, args: &Jobs) -> Result<(), Failure> {
    let query = [("kind", args.kind.as_deref()), ("state", args.state.as_deref())];
    let list = api.list("/jobs", &query, args.limit.limit)?;
    if args.json.json {
        return print_json(&list);
    }
    let jobs = list.items("data");
    let ids: Vec<&str> = jobs.iter().map(|job| job.text("job_id")).collect();
    let mut table = Table::new(
        api.screen,
        &["DUE", "STATE", "KIND", "FOUND", "MADE", "TOOK", "COST", "ERROR", "SUBJECT", "ID"],
    );
    for (job, id) in jobs.iter().zip(short_ids(api.screen, &ids)) {
        let number = |field| job.number(field).map(|number| number.to_string()).unwrap_or_default();
        let took = times::between(job.text("started_at"), job.text("ended_at")).unwrap_or_default();
        table.row([
            (api.when(job.text("due")).as_str(), Look::Plain),
            (job.text("state"), look(job.text("state"))),
            (job.text("kind"), Look::Plain),
            (number("work_found").as_str(), Look::Plain),
            (number("artefacts").as_str(), Look::Plain),
            (took.as_str(), Look::Plain),
            (cost(job).as_str(), Look::Plain),
            (job.text("error"), Look::Bad),
            (job.text("subject"), Look::Dim),
            (id.as_str(), Look::Dim),
        ]);
    }
    output::print(if table.is_empty() { "there are no such jobs\n".to_owned() } else { table.lines() })?;
    api.note_more(&list);
    Ok(())
}

fn look(state: &str) -> Look {
    match state {
        "succeeded" => Look::Good,
        "running" => Look::Careful,
        "failed" => Look::Bad,
        _ => Look::Dim,
    }
}
