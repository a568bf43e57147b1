//! Assets: saved from a proposal or directly, changed, deleted with all their versions.

use domain::ids::{AssetId, Owner};

use crate::blobs::BlobKey;
use crate::context::Cx;
use crate::problem::Result;

/// Deletes an asset, its versions and their contents. Deleting one that is gone is no error.
///
/// # Errors
/// When the table or the bucket does not answer; the call can be made again.
pub async fn delete_if_there(cx: &Cx, owner: &Owner, id: AssetId) -> Result<()> {
    // Contents first: as long as the record stands, the call can be repeated.
    cx.blobs.delete_prefix(&BlobKey::asset_prefix(owner, id)).await?;
    if let Some(asset) = cx.store.asset(owner, id).await? {
        let _ = cx.store.delete_asset(owner, &asset.value).await?;
    }
    Ok(())
}
