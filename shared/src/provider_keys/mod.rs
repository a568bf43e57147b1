//! The keys of model providers that owners bring. They are stored encrypted, and no route gives them back.

mod master_keys;
mod parameters;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::accounts::{KeyProvider, last_characters};
use domain::ids::Owner;
use jiff::{SignedDuration, Timestamp};
use secrecy::{ExposeSecret, SecretString};

use crate::clock::Clock;
use crate::config::Config;
use crate::problem::Result;
use crate::store::{ProviderKey, Store};

pub use master_keys::KEY_BYTES;
use master_keys::{MasterKeys, Sealed};

/// How long a process uses a key without reading it again. A key that was replaced or deleted in another process is used for
/// this time at most.
const FRESH: SignedDuration = SignedDuration::from_secs(60);

/// The most keys that a process keeps.
const MAX_KEPT: usize = 1_000;

/// The provider keys of all owners.
#[derive(Clone, Debug)]
pub struct ProviderKeys(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Store,
    clock: Clock,
    masters: MasterKeys,
    kept: Mutex<HashMap<(Owner, KeyProvider), Kept>>,
}

/// What was read at a time. An owner without a key is also kept.
#[derive(Debug)]
struct Kept {
    key: Option<SecretString>,
    read_at: Timestamp,
}

impl ProviderKeys {
    #[must_use]
    pub fn new(config: &Config, store: Store, clock: Clock) -> Self {
        let masters = MasterKeys::new(&config.master_keys, &config.aws);
        Self(Arc::new(Inner { store, clock, masters, kept: Mutex::default() }))
    }

    /// The key that an owner has stored for a provider. A change in another process is seen after 60 seconds at most.
    ///
    /// # Errors
    /// If the table or the master keys cannot be read, or if the stored key cannot be decrypted.
    pub async fn get(&self, owner: &Owner, provider: KeyProvider) -> Result<Option<SecretString>> {
        let place = (owner.clone(), provider);
        let read_at = self.0.clock.now();
        if let Some(kept) = self.kept().get(&place).filter(|kept| kept.is_fresh(read_at)) {
            return Ok(kept.key.clone());
        }
        let key = match self.0.store.provider_key(owner, provider).await? {
            None => None,
            Some(ProviderKey { master, sealed: text, .. }) => {
                Some(self.0.masters.open(&purpose(owner, provider), &Sealed { master, text }).await?)
            }
        };
        let mut kept = self.kept();
        if kept.len() >= MAX_KEPT {
            kept.retain(|_, kept| kept.is_fresh(read_at));
        }
        if kept.len() < MAX_KEPT {
            kept.insert(place, Kept { key: key.clone(), read_at });
        }
        Ok(key)
    }

    /// Stores a checked key in place of an earlier one.
    ///
    /// # Errors
    /// If the table or the master keys do not answer.
    pub async fn put(&self, owner: &Owner, provider: KeyProvider, key: &SecretString) -> Result<ProviderKey> {
        let Sealed { master, text } = self.0.masters.seal(&purpose(owner, provider), key).await?;
        let record = ProviderKey {
            provider,
            last_characters: last_characters(key.expose_secret()).to_owned(),
            created_at: self.0.clock.now(),
            sealed: text,
            master,
        };
        self.0.store.put_provider_key(owner, &record).await?;
        self.forget(owner, provider);
        Ok(record)
    }

    /// Deletes a key. Returns whether there was one.
    ///
    /// # Errors
    /// If the table does not answer.
    pub async fn delete(&self, owner: &Owner, provider: KeyProvider) -> Result<bool> {
        let deleted = self.0.store.delete_provider_key(owner, provider).await?.done();
        self.forget(owner, provider);
        Ok(deleted)
    }

    fn forget(&self, owner: &Owner, provider: KeyProvider) {
        self.kept().remove(&(owner.clone(), provider));
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<(Owner, KeyProvider), Kept>> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn is_fresh(&self, now: Timestamp) -> bool {
        self.read_at <= now && now < self.read_at + FRESH
    }
}

/// What a key is encrypted for. A ciphertext that was copied to another owner or provider cannot be decrypted.
fn purpose(owner: &Owner, provider: KeyProvider) -> String {
    format!("provider-key\0{owner}\0{provider}")
}
