//! Assets and their versions.

use domain::assets::{Asset, AssetVersion};
use domain::ids::{AssetId, Owner};
use serde_json::Value;

use super::{KeptOrNot, Location, Named, keep, naming, read, valid};
use crate::blobs::BlobKey;
use crate::store::keys;

pub(super) fn asset(place: &Location<'_>, record: &Value) -> KeptOrNot {
    let (owner, asset): (_, Asset) = (place.owner, read(record)?);
    valid(asset.check())?;
    let object = content_of(owner, asset.asset_id, &asset.sha256, asset.bytes);
    naming(keep(keys::asset(owner, asset.asset_id), &asset), vec![object])
}

pub(super) fn version(place: &Location<'_>, asset: &AssetId, record: &Value) -> KeptOrNot {
    let (owner, version): (_, AssetVersion) = (place.owner, read(record)?);
    valid(version.check())?;
    let object = content_of(owner, *asset, &version.sha256, version.bytes);
    naming(keep(keys::asset_version(owner, *asset, version.content_version), &version), vec![object])
}

fn content_of(owner: &Owner, asset: AssetId, sha256: &str, bytes: u64) -> Named {
    Named { key: BlobKey::asset(owner, asset, sha256), bytes: Some(bytes), lines: None }
}
