//! Wakes the indexer of a theme, which the crate `themes` has. Who changes or starts something that the indexer works on needs no more of it.

use bytes::Bytes;
use domain::ids::{Owner, ProjectId};

use crate::blobs::BlobKey;
use crate::context::Cx;
use crate::error::Result;
use crate::store::Tries;

/// Writes the note that files have changed. The change itself is already stored, so a failure here is only logged. The
/// next request that finds the map out of date writes the note again.
pub async fn announce(cx: &Cx, owner: &Owner, project: ProjectId) {
    let note = BlobKey::theme_change(owner, project);
    if let Err(error) = cx.blobs.put(&note, Bytes::new(), "application/octet-stream").await {
        tracing::warn!(%error, "a change of a theme was not announced");
    }
}

/// Somebody has requested enrichment, perhaps again. Clears the reason why it stopped, and wakes the indexer.
///
/// # Errors
/// If the table does not answer.
pub async fn enrichment_asked(cx: &Cx, owner: &Owner, project: ProjectId) -> Result<()> {
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let found = cx.store.enrichment(owner, project).await?;
        let next = found.value.clone().retry_requested();
        if next == found.value
            || cx.store.replace_enrichment(owner, project, &next, found.version).await?.done()
        {
            announce(cx, owner, project).await;
            return Ok(());
        }
    }
}
