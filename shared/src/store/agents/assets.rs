//! Assets and their versions. Contents are stored in S3, before the record that refers to them is written.

use domain::assets::{Asset, AssetVersion};
use domain::ids::{AgentId, AssetId, Owner};

use super::child;
use crate::store::keys::{self, Guard};
use crate::store::table::{Extras, Order, QueryPage, Store, StoreError, Versioned, Write, Written, item};

impl Store {
    /// The writes that create an asset. They are refused if the asset exists already or the agent does not exist any
    /// more.
    pub fn asset_writes(owner: &Owner, asset: &Asset) -> Result<Vec<Write>, StoreError> {
        let plain = Extras::default();
        Ok(vec![
            Write::Create { key: keys::asset(owner, asset.asset_id), item: item(asset, &plain)? },
            Write::Put {
                key: keys::asset_version(owner, asset.asset_id, asset.content_version),
                item: item(&asset.newest_version(), &plain)?,
            },
            child(owner, asset.agent_id, asset.asset_id, &plain)?,
            Self::count(owner, asset.agent_id, vec![("assets", 1)]),
        ])
    }

    pub async fn asset(&self, owner: &Owner, id: AssetId) -> Result<Option<Versioned<Asset>>, StoreError> {
        self.get(&keys::asset(owner, id)).await
    }

    /// Writes an edited asset. `new_content` says whether its content version is new.
    pub async fn replace_asset(
        &self,
        owner: &Owner,
        asset: &Asset,
        read_at: u64,
        new_content: bool,
    ) -> Result<Written, StoreError> {
        self.write_all(Self::replace_asset_writes(owner, asset, read_at, new_content)?).await
    }

    /// The writes of an edited asset, for a transaction.
    pub fn replace_asset_writes(
        owner: &Owner,
        asset: &Asset,
        read_at: u64,
        new_content: bool,
    ) -> Result<Vec<Write>, StoreError> {
        let plain = Extras::default();
        let key = keys::asset(owner, asset.asset_id);
        let mut writes = vec![Write::Replace { key, version: read_at, item: item(asset, &plain)? }];
        if new_content {
            let key = keys::asset_version(owner, asset.asset_id, asset.content_version);
            writes.push(Write::Put { key, item: item(&asset.newest_version(), &plain)? });
        }
        Ok(writes)
    }

    pub async fn assets(
        &self,
        owner: &Owner,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QueryPage<Asset>, StoreError> {
        self.query(&keys::assets(owner), after, limit, Order::Newest).await
    }

    /// An agent's assets, newest first.
    pub async fn agent_assets(
        &self,
        owner: &Owner,
        agent: AgentId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QueryPage<Asset>, StoreError> {
        let marks = self.agent_children(owner, agent, AssetId::PREFIX, after, limit, Order::Newest).await?;
        self.resolve(marks, |id: AssetId| keys::asset(owner, id)).await
    }

    pub async fn asset_versions(
        &self,
        owner: &Owner,
        id: AssetId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QueryPage<AssetVersion>, StoreError> {
        self.query(&keys::asset_versions(owner, id), after, limit, Order::Newest).await
    }

    pub async fn asset_version(
        &self,
        owner: &Owner,
        id: AssetId,
        content_version: u64,
    ) -> Result<Option<AssetVersion>, StoreError> {
        let found = self.get(&keys::asset_version(owner, id, content_version)).await?;
        Ok(found.map(|found| found.value))
    }

    /// Deletes the record of an asset. A repeated call finds nothing and changes no count.
    pub async fn delete_asset(&self, owner: &Owner, asset: &Asset) -> Result<Written, StoreError> {
        let delete = || Write::Delete { key: keys::asset(owner, asset.asset_id), must_exist: true };
        let uncount = Self::count(owner, asset.agent_id, vec![("assets", -1)]);
        match self.write_all(vec![delete(), uncount]).await? {
            // The agent is being deleted, so there is no count to update.
            Written::Refused(Guard::Agent) => self.write_all(vec![delete()]).await,
            written => Ok(written),
        }
    }

    /// Deletes the records of an asset's versions.
    pub async fn delete_asset_versions(&self, owner: &Owner, id: AssetId) -> Result<(), StoreError> {
        self.delete_range(&keys::asset_versions(owner, id)).await
    }
}
