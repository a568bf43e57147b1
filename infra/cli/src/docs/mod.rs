//! `docs`: living documents. The platform stores them and brings them up to date with commits; here are their files and the commits.

mod commits;
mod exchange;
pub mod files;
mod git;
mod hook;
mod kept;
pub mod marks;
mod reported;
mod state;
mod sync;

use serde_json::{Value, json};

use crate::Failure;
use crate::args::{DocsArgs, DocsCommand, DocsHook};
use crate::output;
use crate::project::ProjectId;
use crate::shell::api::Api;
use crate::shell::screen::{Look, line, print_json};
use crate::shell::table::Table;
use crate::shell::values::{Fields, cost, counted};
use exchange::{Document, Exchange};
use git::Repository;
use state::Compared;

/// The documents of the configured project.
pub struct Docs {
    api: Api,
    project: ProjectId,
}

impl Docs {
    fn open() -> Result<Self, Failure> {
        let api = Api::open()?;
        let project = api.settings.project.clone().unwrap_or_default();
        Ok(Self { api, project })
    }

    fn path(&self, below: &str) -> String {
        format!("/projects/{}/docs{below}", self.project)
    }

    const fn project(&self) -> &ProjectId {
        &self.project
    }

    /// The name of the project and its server, for what is remembered about it.
    fn place(&self) -> String {
        format!("{} {}", self.api.settings.url, self.project)
    }

    fn overview(&self) -> Result<Value, Failure> {
        self.api.get(&self.path(""), &[])
    }
}

/// Does what the person, or a hook, asks for.
///
/// # Errors
/// If the server refuses it or does not answer, if there is no repository, or if there is a conflict.
pub fn run(args: &DocsArgs) -> Result<(), Failure> {
    match &args.command {
        DocsCommand::Commit { hook: true, .. } => {
            // The terminal may be closed before the report has arrived. It fails for the leader of a group, which none has started.
            rustix::process::setsid().ok();
            reported::from_hook(&Docs::open()?)
        }
        DocsCommand::Hook { command: DocsHook::Remove } => hook::remove(),
        DocsCommand::Status { json } => status(&Docs::open()?, json.json),
        DocsCommand::Pull { names } => Exchange::open(&Docs::open()?)?.pull(names),
        DocsCommand::Push { names, merged } => Exchange::open(&Docs::open()?)?.push(names, *merged),
        DocsCommand::Sync { wait, json } => sync::run(&Docs::open()?, *wait, json.json),
        DocsCommand::Commit { revisions, json, .. } => commits::run(&Docs::open()?, revisions, json.json),
        DocsCommand::Hook { command: DocsHook::Install } => hook::install(&Docs::open()?),
        DocsCommand::Hook { command: DocsHook::Show } => hook::show(&Docs::open()?),
    }
}

/// Shows the documents, here and there.
fn status(docs: &Docs, json: bool) -> Result<(), Failure> {
    let mut overview = docs.overview()?;
    // The documents of a project can be looked at from anywhere.
    let documents = match Repository::find() {
        Ok(_) => Exchange::open(docs)?.documents(&overview)?,
        Err(_) => Vec::new(),
    };
    let documents: Vec<Document> =
        documents.into_iter().filter(|document| document.compared != Compared::Nowhere).collect();
    if json {
        overview["files"] = documents
            .iter()
            .map(|document| json!({ "name": document.name, "state": document.compared.code() }))
            .collect();
        return print_json(&overview);
    }
    let mut table = Table::new(docs.api.screen, &["DOCUMENT", "VERSION", "WRITTEN", "CAUSE", "FILE"]);
    let rows = overview.items("documents");
    for row in rows {
        let here = documents.iter().find(|document| document.name == row.text("name"));
        let (words, look) = here.map(described).unwrap_or_default();
        table.row([
            (row.text("name"), Look::Plain),
            (row.number("version").unwrap_or(0).to_string().as_str(), Look::Plain),
            (docs.api.when(row.text("written_at")).as_str(), Look::Plain),
            (row.text("cause").replace('_', " ").as_str(), Look::Dim),
            (words.as_str(), look),
        ]);
    }
    let stored = |document: &&Document| rows.iter().any(|row| row.text("name") == document.name);
    for document in documents.iter().filter(|document| !stored(document)) {
        let (words, look) = described(document);
        let none = ("", Look::Plain);
        table.row([(document.name.as_str(), Look::Plain), none, none, none, (words.as_str(), look)]);
    }
    let mut text = if table.is_empty() { "there are no documents yet\n".to_owned() } else { table.lines() };
    text.push_str(&behind(docs, &overview));
    Ok(output::print(text)?)
}

/// How a file compares with its document.
fn described(document: &Document) -> (String, Look) {
    let look = match document.compared {
        Compared::Same => Look::Good,
        Compared::Both | Compared::Unusable => Look::Bad,
        Compared::OnlyHere => Look::Dim,
        _ => Look::Careful,
    };
    let words = document.fault().map_or_else(|| document.compared.words(), str::to_owned);
    (words, look)
}

/// How far the documents are behind.
fn behind(docs: &Docs, overview: &Value) -> String {
    let waiting = counted(overview.number("commits_since_sync").unwrap_or(0), "commit waits", "commits wait");
    let mut text = format!("{:<14}{waiting} ({})\n", "behind", line(overview.text("staleness")));
    for (name, field) in [("synchronised", "last_sync"), ("last commit", "last_commit")] {
        if let Some(at) = overview.some(field) {
            text.push_str(&format!("{name:<14}{}\n", docs.api.when(at)));
        }
    }
    if overview["sync"].is_object() {
        text.push_str(&told(&overview["sync"]));
    }
    text
}

/// A synchronisation.
fn told(sync: &Value) -> String {
    let commits = counted(sync.number("commits").unwrap_or(0), "commit", "commits");
    let mut text = match sync.text("state") {
        "waiting" => "a synchronisation waits to begin\n".to_owned(),
        "running" => "a synchronisation is under way\n".to_owned(),
        "failed" => "the newest synchronisation has failed; nothing was changed\n".to_owned(),
        _ => {
            let changed: Vec<String> =
                sync.items("changed").iter().filter_map(Value::as_str).map(line).collect();
            let changed = if changed.is_empty() { "no document".to_owned() } else { changed.join(", ") };
            format!(
                "the newest synchronisation has taken {commits}, changed {changed}, cost {}\n",
                cost(sync)
            )
        }
    };
    if let Some(error) = sync.some("error") {
        text.push_str(&format!("  {}\n", line(error)));
    }
    for problem in sync.items("problems") {
        text.push_str(&format!("  {}: {}\n", line(problem.text("document")), line(problem.text("text"))));
    }
    if let Some(left_out @ 1..) = sync.number("left_out") {
        text.push_str(&format!(
            "  {} should have changed, too\n",
            counted(left_out, "more part", "more parts")
        ));
    }
    text
}
