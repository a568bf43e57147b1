//! What is stored about models: the choices of owners, and the circuit breakers that processes share.

use std::collections::BTreeMap;

use domain::ids::Owner;
use domain::models::{ModelClass, ModelRef};
use jiff::SignedDuration;
use models::BreakerChange;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::store::keys;
use crate::store::table::{Extras, Order, Store, StoreError, Versioned, Write, Written, item};

/// How long a breaker is stored after its last change. No breaker is open for so long.
const BREAKER_LIFETIME: SignedDuration = SignedDuration::from_hours(1);

/// The most breakers that a process reads.
const MAX_BREAKERS: usize = 200;

/// What an owner has chosen about models.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ModelSettings {
    /// The model of all agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "anthropic/claude-sonnet-5-5")]
    pub preferred: Option<ModelRef>,
    /// Whether agents use the most capable models.
    #[serde(default)]
    pub max_quality: bool,
    /// The preferred model of a kind.
    #[serde(default)]
    #[schema(value_type = BTreeMap<ModelClass, String>)]
    pub models: BTreeMap<ModelClass, ModelRef>,
}

impl Store {
    /// An owner's choice of models. Version 0 if nothing was ever stored.
    pub async fn model_settings(&self, owner: &Owner) -> Result<Versioned<ModelSettings>, StoreError> {
        let found = self.get(&keys::model_settings(owner)).await?;
        Ok(found.unwrap_or(Versioned { value: ModelSettings::default(), version: 0 }))
    }

    /// Writes an owner's choice over the one that was read at `version`.
    pub async fn replace_model_settings(
        &self,
        owner: &Owner,
        settings: &ModelSettings,
        version: u64,
    ) -> Result<Written, StoreError> {
        let (key, item) = (keys::model_settings(owner), item(settings, &Extras::default())?);
        self.write_all(vec![Write::over(key, version, item)]).await
    }

    /// Stores a change of a circuit breaker.
    pub async fn put_breaker(&self, change: &BreakerChange) -> Result<(), StoreError> {
        let expires = change.changed_at.saturating_add(BREAKER_LIFETIME).ok();
        let item = item(change, &Extras { expires, due: None })?;
        self.put(&keys::breaker(&change.name), item).await
    }

    /// The circuit breakers that processes have stored.
    pub async fn breakers(&self) -> Result<Vec<BreakerChange>, StoreError> {
        let found = self.query(&keys::breakers(), None, MAX_BREAKERS, Order::Oldest).await?;
        Ok(found.items.into_iter().map(|(_, found)| found.value).collect())
    }
}
