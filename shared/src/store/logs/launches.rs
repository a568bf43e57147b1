//! Agents that run in the background: an agent's launch and its stop are reported by different hooks, in any order.

use domain::ids::Owner;
use domain::log::{InstanceId, SessionId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{REMEMBERED, RefusedHook};
use crate::store::keys;
use crate::store::table::{Extras, Store, StoreError, Write, Written, item};

/// An agent that runs in the background.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    pub agent_id: InstanceId,
    pub agent_type: String,
    pub description: String,
    /// The tool call that launched it.
    pub call: Option<String>,
}

/// An agent that stopped before its launch was reported. Until the launch is reported, it is listed among the refused
/// payloads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlyStop {
    pub answer: String,
    pub at: Timestamp,
    /// The refusal that lists it, and when it was written.
    pub refusal: Uuid,
    pub refused_at: Timestamp,
}

impl Store {
    /// Remembers an agent that was launched in the background under this id.
    pub async fn put_launch(
        &self,
        owner: &Owner,
        session: &SessionId,
        background: &str,
        launch: &Launch,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let record = item(launch, &Extras::expiring(now + REMEMBERED))?;
        self.put(&keys::launch(owner, session, background), record).await
    }

    pub async fn launch(
        &self,
        owner: &Owner,
        session: &SessionId,
        background: &str,
    ) -> Result<Option<Launch>, StoreError> {
        Ok(self.get(&keys::launch(owner, session, background)).await?.map(|found| found.value))
    }

    /// Stores the answer of an agent whose launch was not reported, and lists it as refused. This write is refused if
    /// an answer is stored already.
    pub async fn keep_early_stop(
        &self,
        owner: &Owner,
        (session, background): (&SessionId, &str),
        stop: &EarlyStop,
        refusal: &RefusedHook,
    ) -> Result<Written, StoreError> {
        let record = item(stop, &Extras::expiring(stop.refused_at + REMEMBERED))?;
        let mut writes =
            vec![Write::Create { key: keys::early_stop(owner, session, background), item: record }];
        writes.extend(Self::refusal_writes(owner, stop.refusal, refusal)?);
        self.write_all(writes).await
    }

    pub async fn early_stop(
        &self,
        owner: &Owner,
        session: &SessionId,
        background: &str,
    ) -> Result<Option<EarlyStop>, StoreError> {
        Ok(self.get(&keys::early_stop(owner, session, background)).await?.map(|found| found.value))
    }

    /// Deletes such an answer. It is no longer listed as refused.
    pub async fn forget_early_stop(
        &self,
        owner: &Owner,
        session: &SessionId,
        background: &str,
        stop: &EarlyStop,
    ) -> Result<(), StoreError> {
        let writes = vec![
            Write::Delete { key: keys::early_stop(owner, session, background), must_exist: true },
            Write::Delete { key: keys::refused_hook(owner, stop.refusal), must_exist: false },
            Self::refusals(owner, stop.refused_at, -1),
        ];
        // Refused if another request has done it already.
        self.write_all(writes).await.map(|_| ())
    }
}
