//! What a run is told about the time since the last run of its action.
//!
//! Everything is read as of the time when the run began. So each process that works on the run tells the model the same, and the
//! provider can cache what follows.

use domain::actions::{Action, Notebook, Occurrence};
use domain::ids::Owner;
use domain::memory::Source;
use domain::models::Role;
use domain::prompts::{PastOutput, SinceLast};
use futures::future::try_join_all;
use jiff::Timestamp;

use crate::context::Data;
use crate::error::{Error, Result};
use crate::flows::agents::assets::{self, Content};
use crate::flows::memory::forgotten::Forgotten;
use crate::flows::messages;
use crate::store::Versioned;
use crate::store::actions::notebooks::{LAST_OUTPUTS, LastOutput, LastOutputs};
use crate::store::agents::history::Ledger;
use crate::store::runs::RunOutput;

/// How many messages of the conversation about the action are looked at, and how many of the person's are told.
const MAX_LOOKED_AT: usize = 60;
const MAX_TOLD: usize = 10;

/// How many changes of the action are looked at, and how many are told.
const MAX_CHANGES_LOOKED_AT: usize = 25;
const MAX_CHANGES: usize = 5;

/// How many versions of the notebook are read at once.
const VERSIONS: usize = 5;

/// Reads what has happened since the last run of `action`, up to `began`.
pub(super) async fn since_last(
    data: &Data,
    owner: &Owner,
    action: &Action,
    began: Timestamp,
    forgotten: &Forgotten,
) -> Result<SinceLast> {
    let mut last = data.store.last_outputs(owner, action.id).await?;
    let since = last.outputs.first().map_or(action.created_at, |output| output.saved_at);
    last.outputs.retain(|output| !forgotten.hides(&Source::Run(output.run_id), &output.asset_id.to_string()));
    let outputs = last.outputs.iter().take(LAST_OUTPUTS).map(|output| past_output(data, owner, output));
    let (outputs, said, changes, notebook) = tokio::try_join!(
        try_join_all(outputs),
        messages::newest(data, owner, action.id, MAX_LOOKED_AT, |stored| stored.message.created_at > since),
        changes(data, owner, action, since, began),
        notebook_at(data, owner, action, began),
    )?;
    let source = Source::Action(action.id);
    let said = said.into_iter().filter(|message| {
        let is_hidden = forgotten.hides(&source, &message.message_id.to_string());
        message.role == Role::User && message.created_at < began && !is_hidden
    });
    let said = said.map(|message| (message.created_at, message.text()));
    let mut said: Vec<_> = said.filter(|(_, words)| !words.trim().is_empty()).collect();
    said.drain(..said.len().saturating_sub(MAX_TOLD));
    Ok(SinceLast { outputs: outputs.into_iter().flatten().collect(), said, changes, notebook })
}

/// What people have changed in the action after `since` and before `began`, the newest five, oldest first.
async fn changes(
    data: &Data,
    owner: &Owner,
    action: &Action,
    since: Timestamp,
    began: Timestamp,
) -> Result<Vec<(Timestamp, String)>> {
    let ledger = Ledger::Action(action.id);
    let found = data.store.changes(owner, ledger, None, MAX_CHANGES_LOOKED_AT).await?;
    let found = found.items.into_iter().map(|(_, change)| change.value);
    let told = found.filter(|change| {
        (since < change.at && change.at < began) && !change.is_first() && !change.changes.is_empty()
    });
    let mut told: Vec<_> = told.take(MAX_CHANGES).map(|change| (change.at, change.words())).collect();
    told.reverse();
    Ok(told)
}

/// Whether what a run is told at its beginning comes from a run that may have read what strangers have written.
pub(super) async fn is_tainted(data: &Data, owner: &Owner, action: &Action) -> Result<bool> {
    let (last, notebook) = tokio::try_join!(
        data.store.last_outputs(owner, action.id),
        // The same part as `notebook_at` reads, so that it is read once.
        data.store.notebook_versions(owner, action.id, None, VERSIONS),
    )?;
    let notebook = notebook.items.first().is_some_and(|(_, notebook)| notebook.value.tainted);
    Ok(notebook || last.outputs.iter().any(|output| output.tainted))
}

/// An output of an earlier run as it is now. `None` if it was deleted since.
async fn past_output(data: &Data, owner: &Owner, last: &LastOutput) -> Result<Option<PastOutput>> {
    match assets::content(data, owner, last.asset_id, None).await {
        Ok(Content { version, text }) => Ok(Some(PastOutput {
            asset_id: last.asset_id,
            title: version.title,
            saved_at: last.saved_at,
            edited_at: (version.sha256 != last.sha256).then_some(version.created_at),
            content: text,
        })),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The notebook when the run began: versions that the run itself has written since are not told again.
async fn notebook_at(data: &Data, owner: &Owner, action: &Action, began: Timestamp) -> Result<Notebook> {
    let mut after: Option<String> = None;
    loop {
        let found = data.store.notebook_versions(owner, action.id, after.as_deref(), VERSIONS).await?;
        for (_, Versioned { value, .. }) in found.items {
            if value.written_at.is_none_or(|at| at <= began) {
                return Ok(value);
            }
        }
        after = found.last;
        if after.is_none() {
            return Ok(Notebook::blank());
        }
    }
}

/// What to remember of a run that has succeeded with these outputs, and whether they equal those of the last run.
pub(super) async fn remember(
    data: &Data,
    owner: &Owner,
    occurrence: &Occurrence,
    outputs: &[RunOutput],
) -> Result<(LastOutputs, bool)> {
    let saved_at = occurrence.finished_at.unwrap_or_else(|| data.clock.now());
    let saved = outputs.iter().map(async |output| {
        Ok::<_, Error>(data.store.asset(owner, output.asset_id).await?.map(|asset| LastOutput {
            run_id: occurrence.run_id,
            asset_id: output.asset_id,
            saved_at,
            sha256: asset.value.sha256,
            tainted: output.tainted,
        }))
    });
    let (saved, last) = tokio::try_join!(try_join_all(saved), async {
        Ok(data.store.last_outputs(owner, occurrence.action_id).await?)
    })?;
    let saved: Vec<LastOutput> = saved.into_iter().flatten().collect();
    let mut new: Vec<&str> = saved.iter().map(|output| output.sha256.as_str()).collect();
    let mut before: Vec<&str> = last.of_newest_run().map(|output| output.sha256.as_str()).collect();
    new.sort_unstable();
    before.sort_unstable();
    let is_same = !new.is_empty() && new == before;
    Ok((last.after(saved), is_same))
}
