//! The names of agents whose prompts do not name one.

use domain::ids::Owner;
use domain::log::{InstanceId, SessionId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::store::keys;
use crate::store::table::{Extras, Store, StoreError, Versioned, Write, Written, item};

/// The name that was assigned to a prompt without a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenName {
    pub agent_id: InstanceId,
}

/// The names that were assigned for one hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenNames {
    pub first_seen: Timestamp,
    /// The number of the newest name.
    pub number: u32,
}

impl Store {
    /// The name that was assigned to a prompt, by the prompt's hash.
    pub async fn given_name(
        &self,
        owner: &Owner,
        session: &SessionId,
        prompt: &str,
    ) -> Result<Option<GivenName>, StoreError> {
        Ok(self.get(&keys::given_name(owner, session, prompt)).await?.map(|found| found.value))
    }

    pub async fn given_names(
        &self,
        owner: &Owner,
        session: &SessionId,
        hash: &str,
    ) -> Result<Option<Versioned<GivenNames>>, StoreError> {
        self.get(&keys::given_names(owner, session, hash)).await
    }

    /// Assigns a name to a prompt. Refused if the prompt has a name, if another prompt with the same hash got a name
    /// after `names` was read, or if an agent has chosen this name itself.
    pub async fn give_name(
        &self,
        owner: &Owner,
        session: &SessionId,
        (prompt, name): (&str, &InstanceId),
        (hash, names, read_at): (&str, &GivenNames, Option<u64>),
    ) -> Result<Written, StoreError> {
        let (plain, key) = (Extras::default(), keys::given_names(owner, session, hash));
        let names = item(names, &plain)?;
        self.write_all(vec![
            Write::Create {
                key: keys::given_name(owner, session, prompt),
                item: item(&GivenName { agent_id: name.clone() }, &plain)?,
            },
            match read_at {
                Some(version) => Write::Replace { key, version, item: names },
                None => Write::Create { key, item: names },
            },
            Write::Absent { key: keys::log_head(owner, session, name) },
        ])
        .await
    }
}
