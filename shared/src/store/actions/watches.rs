//! What is remembered about the things that an action watches.

use domain::ids::{ActionId, Owner};
use domain::watch::state::WatchState;

use crate::store::keys;
use crate::store::table::{Extras, Store, StoreError, Versioned, Write, item};

impl Store {
    /// Version 0 if nothing was ever checked.
    pub async fn watch_state(
        &self,
        owner: &Owner,
        action: ActionId,
    ) -> Result<Versioned<WatchState>, StoreError> {
        let found = self.get(&keys::watch_state(owner, action)).await?;
        Ok(found.unwrap_or(Versioned { value: WatchState::default(), version: 0 }))
    }

    /// The write of the next state. Refused if another writer was faster.
    pub fn watch_state_write(
        owner: &Owner,
        action: ActionId,
        state: &WatchState,
        version: u64,
    ) -> Result<Write, StoreError> {
        Ok(Write::over(keys::watch_state(owner, action), version, item(state, &Extras::default())?))
    }
}
