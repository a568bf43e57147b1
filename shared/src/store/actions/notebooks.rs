//! What the runs of an action hand on to the next run: the notebook of the action, and which outputs its last runs have saved.
//!
//! Each version of a notebook is an item, and its number is its key. So if two writers replace the same version, one of them is
//! refused.

use domain::actions::Notebook;
use domain::actions::notebook::NOTEBOOK_VERSIONS;
use domain::ids::{ActionId, AssetId, Owner, RunId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::store::keys;
use crate::store::table::{Extras, Order, QueryPage, Store, StoreError, Versioned, Write, item};

/// How many outputs are remembered.
pub const LAST_OUTPUTS: usize = 3;

/// The outputs of the newest runs of an action that have succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastOutputs {
    /// Newest first, at most [`LAST_OUTPUTS`], and all outputs of the newest run up to 20.
    pub outputs: Vec<LastOutput>,
}

/// An output, as its run has saved it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastOutput {
    pub run_id: RunId,
    pub asset_id: AssetId,
    pub saved_at: Timestamp,
    pub sha256: String,
    /// Whether its run may have read what strangers have written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tainted: bool,
}

impl LastOutputs {
    /// The outputs of the newest run.
    pub fn of_newest_run(&self) -> impl Iterator<Item = &LastOutput> {
        let newest = self.outputs.first().map(|output| output.run_id);
        self.outputs.iter().filter(move |output| Some(output.run_id) == newest)
    }

    /// After a run has succeeded with these outputs.
    #[must_use]
    pub fn after(&self, new: Vec<LastOutput>) -> Self {
        let room = LAST_OUTPUTS.saturating_sub(new.len());
        let older = self.outputs.iter().take(room).cloned();
        Self { outputs: new.into_iter().chain(older).collect() }
    }
}

impl Store {
    /// The newest version of a notebook. Version 0 if there is none.
    pub async fn notebook(&self, owner: &Owner, action: ActionId) -> Result<Notebook, StoreError> {
        let found = self.notebook_versions(owner, action, None, 1).await?;
        let newest = found.items.into_iter().next();
        Ok(newest.map_or_else(Notebook::blank, |(_, notebook)| notebook.value))
    }

    /// Newest first.
    pub async fn notebook_versions(
        &self,
        owner: &Owner,
        action: ActionId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QueryPage<Notebook>, StoreError> {
        self.query(&keys::notebook_versions(owner, action), after, limit, Order::Newest).await
    }

    /// The writes of the next version of a notebook. Refused if another writer was faster. The oldest version above the limit is
    /// deleted.
    pub fn notebook_writes(
        owner: &Owner,
        action: ActionId,
        notebook: &Notebook,
    ) -> Result<Vec<Write>, StoreError> {
        let version = |version| keys::notebook_version(owner, action, version);
        let mut writes =
            vec![Write::Create { key: version(notebook.version), item: item(notebook, &Extras::default())? }];
        if let Some(oldest) = notebook.version.checked_sub(NOTEBOOK_VERSIONS).filter(|oldest| *oldest > 0) {
            writes.push(Write::Delete { key: version(oldest), must_exist: false });
        }
        Ok(writes)
    }

    pub async fn last_outputs(&self, owner: &Owner, action: ActionId) -> Result<LastOutputs, StoreError> {
        let found: Option<Versioned<LastOutputs>> = self.get(&keys::last_outputs(owner, action)).await?;
        Ok(found.map(|found| found.value).unwrap_or_default())
    }

    /// The write that remembers which outputs the newest runs have saved. Only the one live run of the action writes it.
    pub fn last_outputs_write(
        owner: &Owner,
        action: ActionId,
        last: &LastOutputs,
    ) -> Result<Write, StoreError> {
        Ok(Write::Put { key: keys::last_outputs(owner, action), item: item(last, &Extras::default())? })
    }
}
