//! The results that a message tells. They are read when the message is sent, so what was deleted meanwhile is not sent.

use domain::assets::AssetType;
use domain::ids::{Owner, RunId};
use domain::notices::deliveries::Said;
use domain::notices::result::{MAX_OUTPUTS, Output, Results, RunResult, limit};
use futures::stream::{self, StreamExt, TryStreamExt};

use crate::blobs::{BlobError, BlobKey};
use crate::context::Data;
use crate::error::{Error, Result};
use crate::store::runs::RunOutput;

/// How many results are read at once.
const AT_ONCE: usize = 8;

/// The results of the runs that a message tells. None if its person does not want their words to leave the platform.
///
/// # Errors
/// If the table or the bucket does not answer.
pub(super) async fn of(data: &Data, owner: &Owner, said: &Said) -> Result<Results> {
    let runs = said.results();
    if runs.is_empty() || !data.store.preferences(owner).await?.value.result_texts {
        return Ok(Results::new());
    }
    // A line of a digest has the beginning of the first output.
    let is_digest = matches!(said, Said::Digest { .. });
    let most = if is_digest { 1 } else { MAX_OUTPUTS };
    let read = async |run: RunId| Ok::<_, Error>((run, of_run(data, owner, run, most).await?));
    let mut results: Results =
        stream::iter(runs.into_iter().map(read)).buffered(AT_ONCE).try_collect().await?;
    if !is_digest {
        limit(&mut results);
    }
    Ok(results)
}

/// The result of a run with its first outputs, at most `most`.
async fn of_run(data: &Data, owner: &Owner, run: RunId, most: usize) -> Result<RunResult> {
    let (record, outputs) = tokio::try_join!(data.store.run(owner, run), data.store.run_outputs(owner, run))?;
    let more = outputs.len().saturating_sub(most);
    let mut result = RunResult { more, ..RunResult::default() };
    let mut changed = None;
    if let Some(record) = record {
        result.cost_micros = record.value.cost_micros;
        result.sources = record.value.sources;
        changed = record.value.changed;
    }
    for RunOutput { asset_id, title, tainted, .. } in outputs.into_iter().take(most) {
        // A person may have deleted it, also between the two reads.
        let Some(asset) = data.store.asset(owner, asset_id).await? else { continue };
        let asset = asset.value;
        match data.blobs.get_text(&BlobKey::asset(owner, asset_id, &asset.sha256)).await {
            Ok(text) => {
                let is_markdown = asset.asset_type == AssetType::Document;
                result.outputs.push(Output::new(title, text, is_markdown, tainted));
            }
            Err(BlobError::Missing { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // A line of a digest has the beginning of the first output.
    if let Some(changed) = changed.filter(|_| most > 1) {
        result.outputs.push(Output::of_theme(&changed));
    }
    Ok(result)
}
