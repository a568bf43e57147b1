//! Chooses the models of a call for an owner.

use std::collections::BTreeMap;

use domain::accounts::KeyProvider;
use domain::accounts::profile::BillingMode;
use domain::ids::{Owner, RunId};
use domain::models::routing::Ask;
use domain::models::{ModelError, Vendor, provider_tools};
use models::{BreakerChange, Models, OwnerModels, Route};
use secrecy::SecretString;

use crate::context::Cx;
use crate::error::Result;
use crate::store::ModelSettings;

/// A number of 0 to 99 that stays the same for all calls of a run. It decides whether the run tries out a model.
#[must_use]
pub fn number(run: RunId) -> u32 {
    // The last bytes of a UUIDv7 are random.
    let bytes = run.uuid().into_bytes();
    u32::from(u16::from_be_bytes([bytes[14], bytes[15]])) % 100
}

/// The models that a call may use.
///
/// # Errors
/// If the table does not answer. The inner error says that no provider can be called.
pub async fn route(cx: &Cx, owner: &Owner, ask: &Ask, number: u32) -> Result<Result<Route, ModelError>> {
    route_of(&cx.models, cx, owner, ask, number).await
}

/// Like [`route`], with models under other time limits.
///
/// # Errors
/// If the table does not answer. The inner error says that no provider can be called.
pub async fn route_of(
    models: &Models,
    cx: &Cx,
    owner: &Owner,
    ask: &Ask,
    number: u32,
) -> Result<Result<Route, ModelError>> {
    let (chosen, ()) = tokio::join!(of_owner(cx, owner), read_breakers(cx));
    Ok(models.route(ask, &chosen?, number))
}

/// Leaves the models whose providers run tools, such as a search of the web.
///
/// # Errors
/// A sentence if there is none.
pub fn with_provider_tools(route: &mut Route) -> Result<(), String> {
    let first = route.candidates[0].model.clone();
    route.candidates.retain(|candidate| provider_tools::prices(&candidate.model).is_some());
    if route.candidates.is_empty() {
        return Err(format!(
            "the provider of {first} runs no such tool for this model; set the key of a provider that does, such as anthropic, or \
             choose another model tier"
        ));
    }
    Ok(())
}

/// What an owner has chosen about models.
///
/// # Errors
/// If the table does not answer.
pub async fn of_owner(cx: &Cx, owner: &Owner) -> Result<OwnerModels> {
    let (settings, account, keys, servers) = tokio::try_join!(
        async { Ok(cx.store.model_settings(owner).await?.value) },
        async { Ok(cx.store.account(owner).await?.value) },
        own_keys(cx, owner),
        cx.provider_keys.servers(owner),
    )?;
    let ModelSettings { preferred, max_quality, models } = settings;
    Ok(OwnerModels {
        preferred,
        max_quality,
        first: models.into_iter().map(|(class, model)| (class, vec![model])).collect(),
        keys,
        only_own_keys: account.billing_mode == BillingMode::Byok,
        servers,
    })
}

async fn own_keys(cx: &Cx, owner: &Owner) -> Result<BTreeMap<Vendor, SecretString>> {
    let keys = KeyProvider::ALL.map(|provider| Box::pin(own_key(cx, owner, provider)));
    Ok(futures::future::try_join_all(keys).await?.into_iter().flatten().collect())
}

async fn own_key(cx: &Cx, owner: &Owner, provider: KeyProvider) -> Result<Option<(Vendor, SecretString)>> {
    let key = cx.provider_keys.get(owner, provider).await?;
    Ok(key.map(|key| (vendor(provider), key)))
}

const fn vendor(provider: KeyProvider) -> Vendor {
    match provider {
        KeyProvider::Anthropic => Vendor::Anthropic,
        KeyProvider::Google => Vendor::Google,
        KeyProvider::OpenAi => Vendor::OpenAi,
        KeyProvider::Xai => Vendor::Xai,
    }
}

/// Adopts the circuit breakers of other processes, if that was not done in the last seconds. Without them, the process relies on
/// its own.
async fn read_breakers(cx: &Cx) {
    if !cx.models.breakers().should_read(cx.clock.now()) {
        return;
    }
    match cx.store.breakers().await {
        Ok(changes) => cx.models.breakers().adopt(&changes),
        Err(error) => tracing::warn!(%error, "the circuit breakers of other processes could not be read"),
    }
}

/// Tells other processes that a circuit breaker has changed. If the table does not answer, they find out by themselves.
pub async fn share(cx: &Cx, change: &BreakerChange) {
    if let Err(error) = cx.store.put_breaker(change).await {
        tracing::warn!(%error, "the change of a circuit breaker could not be stored");
    }
}
