//! The providers that a process can call, and the models that a call may use.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::models::breaker::{Gate, Verdict};
use domain::models::prices::EmbeddingModel;
use domain::models::routing::{self, Ask, Level, Wishes};
use domain::models::{
    Catalog, ModelClass, ModelError, ModelId, ModelPrice, ModelRef, ModelRequest, Provider,
    SamplingParameter, ServerName, Vendor,
};
use futures::future::BoxFuture;
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use super::ModelsConfig;
use super::anthropic::Anthropic;
use super::bedrock::Bedrock;
use super::breakers::{BreakerCell, BreakerChange, Breakers};
use super::google::Google;
use super::openai::{Dialect, FIRST_MODEL, OpenAi};
use super::responses::{self, Responses};
use super::xai::Xai;
use super::{
    Canary, Embedded, Endpoint, EventStream, InvalidEndpoint, Model, ModelLimits, Retry, ServerConfig,
    ServerOfOwner,
};

/// The most tries of a provider, and the longest pause between them, if another provider can be called instead.
const TRIES_BEFORE_FALLBACK: u32 = 2;
const LONGEST_WAIT_BEFORE_FALLBACK: Duration = Duration::from_secs(2);

/// How long such a provider may take until its answer begins.
const FIRST_BYTE_BEFORE_FALLBACK: Duration = Duration::from_secs(30);

/// How many clients of owners' own keys a process keeps.
const MAX_OWN_CLIENTS: usize = 100;

/// A model that can be called, behind its endpoint.
#[derive(Clone)]
pub struct Candidate {
    pub model: ModelRef,
    pub price: ModelPrice,
    client: Arc<dyn Model>,
    /// Shared by all candidates of this process with the same model, endpoint and key.
    breaker: Arc<BreakerCell>,
}

impl Candidate {
    /// A candidate with a circuit breaker of its own.
    pub fn new(model: ModelRef, price: ModelPrice, client: Arc<dyn Model>) -> Self {
        Self { model, price, client, breaker: Arc::default() }
    }

    #[must_use]
    pub fn provider(&self) -> Provider {
        self.client.provider()
    }

    /// The parameters of sampling that it takes.
    #[must_use]
    pub fn samples(&self) -> &'static [SamplingParameter] {
        self.client.samples()
    }

    #[must_use]
    pub const fn id(&self) -> &ModelId {
        &self.model.model
    }

    /// Whether both candidates have the same endpoint and key.
    #[must_use]
    pub fn shares_endpoint(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.client, &other.client)
    }

    /// Asks the provider for its list of models, which costs nothing. `None` if it has no such list.
    ///
    /// # Errors
    /// See [`Model::list`].
    pub fn list(&self) -> Option<BoxFuture<'static, Result<(), ModelError>>> {
        self.client.list()
    }

    /// Calls the model.
    pub fn stream(&self, request: &ModelRequest) -> EventStream {
        self.client.stream(self.id(), request)
    }

    /// Whether the model should be called.
    #[must_use]
    pub fn gate(&self, now: Timestamp) -> Gate {
        self.breaker.gate(now)
    }

    /// A call begins.
    pub fn begin(&self, now: Timestamp) -> Gate {
        self.breaker.begin(now)
    }

    /// A call has ended that began at this gate. Returns what other processes should know.
    pub fn end(&self, began: Gate, verdict: Verdict, now: Timestamp) -> Option<BreakerChange> {
        let change = self.breaker.end(began, verdict, now)?;
        tracing::warn!(model = %self.model, gate = ?self.gate(now), "the circuit breaker of a model has changed");
        change.is_shared().then_some(change)
    }
}

/// A model that turns texts into vectors, behind its endpoint.
#[derive(Clone)]
pub struct Embedder {
    pub vendor: Vendor,
    pub model: &'static EmbeddingModel,
    client: Arc<dyn Model>,
}

impl Embedder {
    /// Which model it is, and how long its vectors are. Vectors with different names can't be compared.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}/{}/{}", self.vendor, self.model.model, self.model.dimensions)
    }

    /// The vectors of at most [`EmbeddingModel::most_texts`] texts, none of which is empty.
    ///
    /// # Errors
    /// Why there are none.
    pub async fn embed(&self, texts: Vec<String>) -> Result<Embedded, ModelError> {
        match self.client.embed(self.model, texts) {
            Some(asked) => asked.await,
            None => Err(ModelError::NotConfigured),
        }
    }
}

/// The models of a call.
pub struct Route {
    /// The models to call, the preferred one first. There is at least one.
    pub candidates: Vec<Candidate>,
    /// The level that decided.
    pub level: Level,
    /// Why, in words.
    pub why: &'static str,
}

/// What an owner has chosen about models.
#[derive(Clone, Debug, Default)]
pub struct OwnerModels {
    pub preferred: Option<ModelRef>,
    pub max_quality: bool,
    /// Models that come before those of the catalog.
    pub first: BTreeMap<ModelClass, Vec<ModelRef>>,
    /// The owner's own keys. They replace the deployment's.
    pub keys: BTreeMap<Vendor, SecretString>,
    /// Whether the deployment's keys must not be used.
    pub only_own_keys: bool,
    /// The owner's own servers. They come before the deployment's.
    pub servers: Arc<[ServerOfOwner]>,
}

/// A provider that can be called.
#[derive(Clone)]
struct Client {
    vendor: Vendor,
    model: Arc<dyn Model>,
    /// Identifies address and key in the names of circuit breakers. A hash, because names are stored.
    endpoint: Arc<str>,
    /// Whether the key is the deployment's.
    is_deployments: bool,
}

/// By provider and endpoint.
type OwnClients = Arc<Mutex<HashMap<(Vendor, Arc<str>), Client>>>;

/// The models of a process. Cheap to clone; no connection is opened before the first call.
#[derive(Clone)]
pub struct Models {
    config: Arc<ModelsConfig>,
    clients: Arc<[Client]>,
    catalog: Arc<Catalog>,
    breakers: Breakers,
    /// Clients of owners' own keys.
    own: OwnClients,
}

impl Models {
    /// # Errors
    /// [`InvalidEndpoint`] if an address or a key is invalid.
    pub fn from_config(config: &ModelsConfig) -> Result<Self, InvalidEndpoint> {
        let mut vendors = config.vendors();
        match &config.forced {
            Some(forced) => vendors.retain(|vendor| *vendor == forced.vendor),
            // The demo is for people who have no key.
            None if vendors.len() > 1 => vendors.retain(|vendor| *vendor != Vendor::Demo),
            None => {}
        }
        let limits = if vendors.len() > 1 { before_fallback(config.limits) } else { config.limits };
        let client = |vendor: Vendor| {
            let key = config.key_of(vendor).unwrap_or_default();
            client(vendor, key, config, limits, true)
        };
        Ok(Self {
            clients: vendors.into_iter().map(client).collect::<Result<_, _>>()?,
            catalog: Arc::new(config.catalog()),
            config: Arc::new(config.clone()),
            breakers: Breakers::default(),
            own: Arc::default(),
        })
    }

    /// No models, even if some are configured.
    ///
    /// # Errors
    /// Never. The result type is the one that a `Function` declares.
    pub fn none(_: &ModelsConfig) -> Result<Self, InvalidEndpoint> {
        Ok(Self {
            config: Arc::default(),
            clients: Arc::default(),
            catalog: Arc::default(),
            breakers: Breakers::default(),
            own: Arc::default(),
        })
    }

    /// The same models under other time limits. They share their circuit breakers.
    ///
    /// # Errors
    /// Never for models that were built from a configuration.
    pub fn with_limits(&self, limits: ModelLimits) -> Result<Self, InvalidEndpoint> {
        let models = Self::from_config(&ModelsConfig { limits, ..ModelsConfig::clone(&self.config) })?;
        Ok(Self { breakers: self.breakers.clone(), ..models })
    }

    /// The models that a call may use. `number` of 0 to 99 decides whether the call tries out a model; give the same number for all
    /// calls of a run.
    ///
    /// # Errors
    /// [`ModelError::NotConfigured`] if no provider can be called.
    pub fn route(&self, ask: &Ask, owner: &OwnerModels, number: u32) -> Result<Route, ModelError> {
        let clients = self.clients_of(owner);
        let usable = |vendor| clients.iter().any(|client| client.vendor == vendor);
        let canary = self.config.canary.as_ref().filter(|canary| number < canary.percent);
        let wishes = Wishes {
            forced: self.config.forced.clone(),
            max_quality: owner.max_quality,
            canary: canary.map(|canary| canary.model.clone()),
            preferred: owner.preferred.clone(),
        };
        let resolved = routing::resolve(ask, &wishes, usable);
        let own = self.servers_of(owner).iter();
        let own = of_servers(own.map(|server| (server.name, &server.config)));
        let catalog = Catalog::clone(&self.catalog).preferring(&own).preferring(&owner.first);
        let chain = routing::chain(&resolved, &catalog, usable);
        let candidate = |model: ModelRef| {
            let client = clients.iter().find(|client| client.vendor == model.vendor)?;
            // The start and the routes refuse models without a price. The setting may have changed since.
            let price = self.price(owner, &model)?;
            let name = format!("{}#{}#{}", client.vendor, client.endpoint, model.model);
            let breaker = self.breakers.of(&name, client.is_deployments);
            Some(Candidate { breaker, client: Arc::clone(&client.model), price, model })
        };
        let mut candidates: Vec<Candidate> = chain.into_iter().filter_map(candidate).collect();
        // The demo is for people who have no other model.
        if candidates.iter().any(|candidate| candidate.model.vendor != Vendor::Demo) {
            candidates.retain(|candidate| candidate.model.vendor != Vendor::Demo);
        }
        if candidates.is_empty() {
            return Err(ModelError::NotConfigured);
        }
        let mut why = resolved.why;
        if let Some(other_than) = ask.other_than {
            candidates.sort_by_key(|candidate| candidate.model.vendor == other_than);
            if candidates[0].model.vendor != other_than {
                why = "a second opinion comes from another provider";
            }
        }
        Ok(Route { candidates, level: resolved.level, why })
    }

    /// The providers that can be called for an owner, and whether its own key is used.
    #[must_use]
    pub fn vendors_of(&self, owner: &OwnerModels) -> Vec<(Vendor, bool)> {
        let mut clients = self.clients_of(owner);
        if clients.iter().any(|client| client.vendor != Vendor::Demo) {
            clients.retain(|client| client.vendor != Vendor::Demo);
        }
        clients.iter().map(|client| (client.vendor, !client.is_deployments)).collect()
    }

    /// What turns an owner's texts into vectors at this provider. `None` if the provider has no model for it, or can't be called.
    #[must_use]
    pub fn embedder(&self, owner: &OwnerModels, vendor: Vendor) -> Option<Embedder> {
        let model = EmbeddingModel::of(vendor)?;
        let client = self.clients_of(owner).into_iter().find(|client| client.vendor == vendor)?;
        Some(Embedder { vendor, model, client: client.model })
    }

    fn clients_of(&self, owner: &OwnerModels) -> Vec<Client> {
        let servers = self.servers_of(owner).iter();
        let mut clients: Vec<Client> = servers.filter_map(|server| self.server_client(server)).collect();
        let forced = self.config.forced.as_ref().map(|model| model.vendor);
        let own = owner.keys.iter().filter(|(vendor, _)| forced.is_none_or(|forced| forced == **vendor));
        clients.extend(own.filter_map(|(vendor, key)| self.own_client(*vendor, key)));
        if !owner.only_own_keys {
            let is_new = |client: &&Client| clients.iter().all(|own| own.vendor != client.vendor);
            let others: Vec<Client> = self.clients.iter().filter(is_new).cloned().collect();
            clients.extend(others);
        }
        clients
    }

    /// A client with an owner's own key. `None` if the key is not one that HTTP can send, which was checked when it was stored.
    fn own_client(&self, vendor: Vendor, key: &SecretString) -> Option<Client> {
        self.own(vendor, endpoint_id(vendor, key.expose_secret(), &self.config), || {
            let limits = before_fallback(self.config.limits);
            client(vendor, key.expose_secret(), &self.config, limits, false).ok()
        })
    }

    /// The client of an owner with this endpoint, or a new one.
    fn own(
        &self,
        vendor: Vendor,
        endpoint: Arc<str>,
        new: impl FnOnce() -> Option<Client>,
    ) -> Option<Client> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = own.get(&(vendor, endpoint.clone())) {
            return Some(client.clone());
        }
        let client = new()?;
        if own.len() >= MAX_OWN_CLIENTS {
            own.clear();
        }
        own.insert((vendor, endpoint), client.clone());
        Some(client)
    }

    /// The circuit breakers of this process.
    #[must_use]
    pub const fn breakers(&self) -> &Breakers {
        &self.breakers
    }

    /// The models of each kind.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The only model that the deployment calls, if it has chosen one.
    #[must_use]
    pub fn forced(&self) -> Option<&ModelRef> {
        self.config.forced.as_ref()
    }

    /// The model that the deployment tries out with a part of the runs.
    #[must_use]
    pub fn canary(&self) -> Option<&Canary> {
        self.config.canary.as_ref()
    }

    /// The price of a model for an owner. `None` if nobody knows it: then it is not called.
    #[must_use]
    pub fn price(&self, owner: &OwnerModels, model: &ModelRef) -> Option<ModelPrice> {
        let is_its = |server: &&ServerOfOwner| model.vendor == Vendor::Server(server.name);
        match self.servers_of(owner).iter().find(is_its) {
            Some(server) => server.prices.of(model),
            None => self.config.prices.of(model),
        }
    }

    /// The servers of an owner that may be called: none if the deployment uses one model for everything.
    fn servers_of<'a>(&self, owner: &'a OwnerModels) -> &'a [ServerOfOwner] {
        if self.config.forced.is_some() { &[] } else { &owner.servers }
    }

    /// A client of an owner's server. `None` if its address or key is invalid, which was checked when it was stored.
    fn server_client(&self, server: &ServerOfOwner) -> Option<Client> {
        let ServerOfOwner { name, config, .. } = server;
        let key = config.key.as_ref().map(ExposeSecret::expose_secret);
        let vendor = Vendor::Server(*name);
        let mut hash = Sha256::new();
        for part in [config.url.as_str(), key.unwrap_or_default(), if config.tools { "tools" } else { "" }] {
            hash.update(part);
            hash.update([0]);
        }
        let id: Arc<str> = domain::hex(&hash.finalize()[..12]).into();
        self.own(vendor, id.clone(), || {
            let limits = before_fallback(self.config.limits);
            let endpoint = Endpoint::bearer(&config.url, key).ok()?.with_limits(limits);
            let endpoint = endpoint.guarded(self.config.reach.clone());
            let dialect = Dialect { native_tools: config.tools, ..Dialect::COMPATIBLE };
            let model: Arc<dyn Model> = Arc::new(OpenAi::new(endpoint, dialect));
            Some(Client { vendor, model, endpoint: id, is_deployments: false })
        })
    }

    /// Whether any model can be called.
    #[must_use]
    pub fn are_configured(&self) -> bool {
        !self.clients.is_empty()
    }

    /// The configured provider and its models, for people.
    #[must_use]
    pub fn description(&self) -> String {
        let Some((first, others)) = self.clients.split_first() else { return "none".to_owned() };
        let name = |vendor: Vendor| match vendor {
            Vendor::Anthropic => "Anthropic".to_owned(),
            Vendor::OpenAi => "OpenAI".to_owned(),
            Vendor::Google => "Google".to_owned(),
            Vendor::Xai => "xAI".to_owned(),
            Vendor::Bedrock => "Amazon Bedrock".to_owned(),
            Vendor::Server(name) => format!("{name} at {}", address(vendor, &self.config)),
            Vendor::Demo => "the demo model".to_owned(),
        };
        let named = name(first.vendor);
        let shown = |model: &ModelRef| match model.model.as_str() {
            FIRST_MODEL => "the first model that it lists".to_owned(),
            id => id.to_owned(),
        };
        let mut text = match &self.config.forced {
            Some(model) => format!("{named} ({})", shown(model)),
            // The demo's model says no more than its provider.
            None if first.vendor == Vendor::Demo => named,
            None => {
                let [fast, standard, deep] =
                    [ModelClass::Fast, ModelClass::Standard, ModelClass::Deep].map(|class| {
                        let own = self.catalog.of(class).iter().find(|model| model.vendor == first.vendor);
                        own.map_or_else(|| "none".to_owned(), shown)
                    });
                if fast == standard && standard == deep {
                    format!("{named} ({fast})")
                } else {
                    format!("{named} (fast {fast}, standard {standard}, deep {deep})")
                }
            }
        };
        if !others.is_empty() {
            let names: Vec<String> = others.iter().map(|other| name(other.vendor)).collect();
            text.push_str(&format!("; if it fails: {}", names.join(", ")));
        }
        text
    }
}

impl ModelsConfig {
    /// The configured providers, the preferred one first.
    pub fn vendors(&self) -> Vec<Vendor> {
        let known = Vendor::ALL.into_iter().filter(|vendor| self.key_of(*vendor).is_some());
        self.servers.keys().map(|name| Vendor::Server(*name)).chain(known).collect()
    }

    /// Whether any provider is configured, besides the demo model.
    #[must_use]
    pub fn has_provider(&self) -> bool {
        self.vendors().into_iter().any(|vendor| vendor != Vendor::Demo)
    }

    /// The key of a provider. `None` if it is not configured.
    pub fn key_of(&self, vendor: Vendor) -> Option<&str> {
        match vendor {
            Vendor::Anthropic => self.anthropic_key.as_deref(),
            Vendor::OpenAi => self.openai_key.as_deref(),
            Vendor::Google => self.google_key.as_deref(),
            Vendor::Xai => self.xai_key.as_deref(),
            // A request is signed with it.
            Vendor::Bedrock => {
                self.bedrock.as_ref().map(|bedrock| bedrock.credentials.access_key_id.as_str())
            }
            Vendor::Server(name) => {
                let server = self.servers.get(&name)?;
                Some(server.key.as_ref().map_or("", |key| key.expose_secret()))
            }
            Vendor::Demo => self.demo_url.as_ref().map(|_| "demo"),
        }
    }

    fn of_servers(&self) -> BTreeMap<ModelClass, Vec<ModelRef>> {
        of_servers(self.servers.iter().map(|(name, server)| (*name, server)))
    }

    fn demo(&self) -> ModelRef {
        let model = if self.demo_costs { "demo-priced" } else { "demo" };
        ModelRef { vendor: Vendor::Demo, model: ModelId::new(model) }
    }

    /// The models of each kind: chosen ones first, then those of servers, then the known ones.
    fn catalog(&self) -> Catalog {
        if let Some(forced) = &self.forced {
            return Catalog::only(forced);
        }
        Catalog::default().preferring(&self.of_servers()).preferring(&self.first).ending_with(&self.demo())
    }

    /// The first model without a price, and the setting that names it.
    ///
    /// # Errors
    /// If there is one.
    pub fn all_have_prices(&self) -> Result<(), (&'static str, ModelRef)> {
        let unpriced = |model: &&ModelRef| self.prices.of(model).is_none();
        let refused = |variable| move |model: &ModelRef| Err((variable, model.clone()));
        if let Some(forced) = &self.forced {
            return Some(forced).filter(unpriced).map_or(Ok(()), refused("LAMPLIGHTER_MODEL"));
        }
        let chosen = self.first.values().flatten().chain(self.canary.iter().map(|canary| &canary.model));
        if let Some(model) = chosen.into_iter().find(unpriced) {
            return Err(("LAMPLIGHTER_MODELS", model.clone()));
        }
        let of_servers = self.of_servers();
        match of_servers.values().flatten().find(unpriced) {
            Some(model) if model.vendor == Vendor::Server(ServerName::COMPATIBLE) => {
                Err(("LAMPLIGHTER_MODEL_URL", model.clone()))
            }
            Some(model) => Err(("LAMPLIGHTER_SERVERS", model.clone())),
            None => Ok(()),
        }
    }
}

/// The models of servers, by kind.
fn of_servers<'a>(
    servers: impl Iterator<Item = (ServerName, &'a ServerConfig)> + Clone,
) -> BTreeMap<ModelClass, Vec<ModelRef>> {
    let of = |class| (class, servers.clone().flat_map(|(name, server)| server.of(name, class)).collect());
    ModelClass::ALL.map(of).into()
}

fn before_fallback(limits: ModelLimits) -> ModelLimits {
    let retry = Retry {
        tries: limits.retry.tries.min(TRIES_BEFORE_FALLBACK),
        longest_wait: limits.retry.longest_wait.min(LONGEST_WAIT_BEFORE_FALLBACK),
        // Whoever waits has waited long enough: the other provider is called now.
        after_timeouts: false,
        ..limits.retry
    };
    ModelLimits { first_byte: limits.first_byte.min(FIRST_BYTE_BEFORE_FALLBACK), retry, ..limits }
}

/// The address of a provider.
fn address(vendor: Vendor, config: &ModelsConfig) -> &str {
    let at = &config.addresses;
    match vendor {
        Vendor::Anthropic => &at.anthropic,
        Vendor::OpenAi => &at.openai,
        Vendor::Google => &at.google,
        Vendor::Xai => &at.xai,
        Vendor::Bedrock => config.bedrock.as_ref().map_or("", |bedrock| &bedrock.region),
        Vendor::Server(name) => config.servers.get(&name).map_or("", |server| &server.url),
        Vendor::Demo => config.demo_url.as_deref().unwrap_or_default(),
    }
}

/// Identifies an address and a key without showing them.
fn endpoint_id(vendor: Vendor, key: &str, config: &ModelsConfig) -> Arc<str> {
    let mut hash = Sha256::new();
    hash.update(address(vendor, config));
    hash.update([0]);
    hash.update(key);
    domain::hex(&hash.finalize()[..12]).into()
}

fn client(
    vendor: Vendor,
    key: &str,
    config: &ModelsConfig,
    limits: ModelLimits,
    is_deployments: bool,
) -> Result<Client, InvalidEndpoint> {
    let at = address(vendor, config);
    let bearer =
        || Endpoint::bearer(at, Some(key).filter(|key| !key.is_empty())).map(|at| at.with_limits(limits));
    let model: Arc<dyn Model> = match vendor {
        Vendor::Anthropic | Vendor::Demo => {
            Arc::new(Anthropic::new(Endpoint::anthropic(at, key)?.with_limits(limits)))
        }
        Vendor::OpenAi => Arc::new(Responses::new(bearer()?, responses::Dialect::OpenAi)),
        Vendor::Google => Arc::new(Google::new(Endpoint::google(at, key)?.with_limits(limits))),
        Vendor::Xai => Arc::new(Xai::new(bearer()?)),
        Vendor::Bedrock => {
            let bedrock = config.bedrock.as_ref().ok_or(InvalidEndpoint::Region)?;
            let address = bedrock.endpoint.as_deref();
            let endpoint = Endpoint::bedrock(&bedrock.region, address, &bedrock.credentials)?;
            Arc::new(Bedrock::new(endpoint.with_limits(limits)))
        }
        Vendor::Server(name) => {
            let native_tools = config.servers.get(&name).is_none_or(|server| server.tools);
            Arc::new(OpenAi::new(bearer()?, Dialect { native_tools, ..Dialect::COMPATIBLE }))
        }
    };
    Ok(Client { vendor, model, endpoint: endpoint_id(vendor, key, config), is_deployments })
}

#[cfg(test)]
mod tests {
    use domain::models::{ModelTier, PriceList, prices};

    use super::*;
    use crate::{BedrockConfig, Canary};
    use base::aws_keys::AwsKeys;

    fn of_tier(models: &Models, tier: ModelTier) -> Result<Route, ModelError> {
        models.route(&Ask { tier: Some(tier), ..Ask::default() }, &OwnerModels::default(), 0)
    }

    fn ids(route: &Route) -> Vec<String> {
        route.candidates.iter().map(|candidate| candidate.model.to_string()).collect()
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn the_first_configured_provider_is_preferred() {
        let check = |config: ModelsConfig, description: &str, standard: Option<(&str, Provider)>| {
            let models = Models::from_config(&config).unwrap();
            assert_eq!(models.description(), description);
            let found = of_tier(&models, ModelTier::Standard).ok();
            let preferred = found.as_ref().map(|route| &route.candidates[0]);
            assert_eq!(preferred.map(|found| (found.id().as_str(), found.provider())), standard);
        };
        check(ModelsConfig::default(), "none", None);
        let demo = ModelsConfig { demo_url: some("http://127.0.0.1:1"), ..ModelsConfig::default() };
        check(demo.clone(), "the demo model", Some(("demo", Provider::Anthropic)));
        let keys = AwsKeys {
            access_key_id: "AKIA1".to_owned(),
            secret_access_key: "aws-secret".to_owned(),
            session_token: some("aws-session"),
        };
        let bedrock = BedrockConfig { region: "eu-west-1".to_owned(), endpoint: None, credentials: keys };
        let bedrock = ModelsConfig { bedrock: Some(bedrock), ..demo };
        check(
            bedrock.clone(),
            "Amazon Bedrock (fast global.anthropic.claude-haiku-5-5, standard global.anthropic.claude-sonnet-5-5, \
             deep global.anthropic.claude-opus-5-5)",
            Some(("global.anthropic.claude-sonnet-5-5", Provider::Bedrock)),
        );
        let xai = ModelsConfig { xai_key: some("xai-1"), ..bedrock };
        check(
            xai.clone(),
            "xAI (fast grok-4.20-non-reasoning, standard grok-4.3, deep grok-4.7); if it fails: Amazon Bedrock",
            Some(("grok-4.3", Provider::OpenAi)),
        );
        let google = ModelsConfig { google_key: some("AI-1"), ..xai };
        check(
            google.clone(),
            "Google (fast gemini-3.5-flash-lite, standard gemini-3.8-flash, deep gemini-4-argon); if it fails: xAI, \
             Amazon Bedrock",
            Some(("gemini-3.8-flash", Provider::Google)),
        );
        let openai = ModelsConfig { openai_key: some("sk-1"), ..google };
        check(
            openai.clone(),
            "OpenAI (fast gpt-6-luna, standard gpt-6.1-sol, deep gpt-6-astra); if it fails: Google, xAI, \
             Amazon Bedrock",
            Some(("gpt-6.1-sol", Provider::OpenAi)),
        );
        let anthropic = ModelsConfig { anthropic_key: some("sk-2"), ..openai };
        check(
            anthropic.clone(),
            "Anthropic (fast claude-haiku-5-5, standard claude-sonnet-5-5, deep claude-opus-5-5); if it fails: OpenAI, \
             Google, xAI, Amazon Bedrock",
            Some(("claude-sonnet-5-5", Provider::Anthropic)),
        );
        // If the model was chosen by name, nothing else is called.
        check(
            ModelsConfig { forced: Some("anthropic/claude-opus-5".parse().unwrap()), ..anthropic.clone() },
            "Anthropic (claude-opus-5)",
            Some(("claude-opus-5", Provider::Anthropic)),
        );
        // A server comes before the other providers, which replace it.
        let server =
            ServerConfig { key: Some("sk-3".into()), ..ServerConfig::at("http://localhost:11434/v1") };
        let url = ModelsConfig {
            servers: [(ServerName::COMPATIBLE, server)].into(),
            prices: PriceList::parse(r#"{"compatible/*": "free"}"#).unwrap(),
            ..anthropic
        };
        check(
            url.clone(),
            "compatible at http://localhost:11434/v1 (the first model that it lists); if it fails: Anthropic, OpenAI, \
             Google, xAI, Amazon Bedrock",
            Some(("auto", Provider::OpenAi)),
        );
        check(
            ModelsConfig { forced: Some("compatible/qwen3-max".parse().unwrap()), ..url.clone() },
            "compatible at http://localhost:11434/v1 (qwen3-max)",
            Some(("qwen3-max", Provider::OpenAi)),
        );
        let shown = format!("{url:?}");
        assert!(!["sk-", "AI-", "xai-", "aws-"].iter().any(|key| shown.contains(key)), "{shown}");
    }

    #[test]
    fn a_provider_that_can_be_replaced_is_not_waited_for_long() {
        let usual = ModelLimits::default();
        let limits = before_fallback(usual);
        assert!(limits.retry.tries < usual.retry.tries && limits.first_byte < usual.first_byte);
        let error = ModelError::RateLimited { retry_after: Some(Duration::from_secs(3)) };
        assert_eq!(usual.retry.pause(1, &error, 0.0), Some(Duration::from_secs(3)));
        assert_eq!(limits.retry.pause(1, &error, 0.0), None);
        let tight = ModelLimits { first_byte: Duration::from_secs(1), ..usual };
        assert_eq!(before_fallback(tight).first_byte, tight.first_byte);
    }

    #[test]
    fn every_usual_model_has_a_price() {
        let (anthropic_key, openai_key, demo_url) = (some("k"), some("k"), some("http://127.0.0.1:1"));
        let (google_key, xai_key) = (some("k"), some("k"));
        let credentials =
            AwsKeys { access_key_id: "k".into(), secret_access_key: "k".into(), session_token: None };
        let bedrock = Some(BedrockConfig { region: "eu-west-1".into(), endpoint: None, credentials });
        for config in [
            ModelsConfig { anthropic_key, ..ModelsConfig::default() },
            ModelsConfig { openai_key, ..ModelsConfig::default() },
            ModelsConfig { google_key, ..ModelsConfig::default() },
            ModelsConfig { xai_key, ..ModelsConfig::default() },
            ModelsConfig { bedrock, ..ModelsConfig::default() },
            ModelsConfig { demo_url, ..ModelsConfig::default() },
        ] {
            let models = Models::from_config(&config).unwrap();
            for tier in ModelTier::ALL {
                for candidate in of_tier(&models, tier).unwrap().candidates {
                    assert!(prices::price(candidate.id()).is_some(), "{}", candidate.model);
                }
            }
        }
    }

    /// Several servers stand beside other providers, each for its own kinds of work.
    #[test]
    fn servers_are_providers_among_others() {
        let models = |models: &[(ModelClass, &str)]| {
            models.iter().map(|(class, model)| (*class, vec![ModelId::new(*model)])).collect()
        };
        let quick = ServerConfig {
            models: models(&[(ModelClass::Fast, "qwen3"), (ModelClass::Coder, "qwen3-coder")]),
            ..ServerConfig::at("http://127.0.0.1:1/v1")
        };
        let large = ServerConfig {
            models: models(&[(ModelClass::Deep, "glm-5")]),
            ..ServerConfig::at("http://127.0.0.1:2/v1")
        };
        let prices = r#"{"quick/*": "free", "large/glm-5": {"input": 1000000, "output": 3000000}}"#;
        let config = ModelsConfig {
            servers: [("quick".parse().unwrap(), quick), ("large".parse().unwrap(), large)].into(),
            prices: PriceList::parse(prices).unwrap(),
            anthropic_key: some("k"),
            ..ModelsConfig::default()
        };
        config.all_have_prices().unwrap();
        let models = Models::from_config(&config).unwrap();
        let check = |tier, expected: &[&str]| {
            let found = ids(&of_tier(&models, tier).unwrap());
            assert_eq!(found[..expected.len()], *expected, "{tier:?}");
        };
        check(ModelTier::Fast, &["quick/qwen3", "anthropic/claude-haiku-5-5", "anthropic/claude-sonnet-5-5"]);
        check(ModelTier::Standard, &["anthropic/claude-sonnet-5-5", "quick/qwen3"]);
        check(ModelTier::Deep, &["large/glm-5", "anthropic/claude-opus-5-5", "anthropic/claude-sonnet-5-5"]);
        let deep = of_tier(&models, ModelTier::Deep).unwrap();
        assert_eq!(deep.candidates[0].price.rates.output, 3_000_000);
        assert!(!deep.candidates[0].shares_endpoint(&deep.candidates[1]));
        // A model without a price is not called, whoever asked for it.
        let first = [(ModelClass::Deep, vec!["large/unknown".parse().unwrap()])].into();
        let owner = OwnerModels { first, ..OwnerModels::default() };
        let ask = Ask { tier: Some(ModelTier::Deep), ..Ask::default() };
        assert_eq!(ids(&models.route(&ask, &owner, 0).unwrap())[0], "large/glm-5");
        let unpriced = ModelsConfig { prices: PriceList::default(), ..config };
        let (variable, model) = unpriced.all_have_prices().unwrap_err();
        assert_eq!((variable, model.to_string().as_str()), ("LAMPLIGHTER_SERVERS", "quick/qwen3"));
    }

    #[test]
    fn an_owners_key_pays_on_a_deployment_with_one_model() {
        let config = ModelsConfig {
            anthropic_key: some("theirs"),
            forced: Some("anthropic/claude-opus-5".parse().unwrap()),
            ..ModelsConfig::default()
        };
        let models = Models::from_config(&config).unwrap();
        let keys = [Vendor::Anthropic, Vendor::OpenAi].map(|vendor| (vendor, SecretString::from("mine")));
        let mine = OwnerModels { keys: keys.into(), only_own_keys: true, ..OwnerModels::default() };
        assert_eq!(models.vendors_of(&mine), [(Vendor::Anthropic, true)]);
        let route = models.route(&Ask::default(), &mine, 0).unwrap();
        assert_eq!(ids(&route), ["anthropic/claude-opus-5"]);
        let theirs = models.route(&Ask::default(), &OwnerModels::default(), 0).unwrap();
        assert!(!route.candidates[0].shares_endpoint(&theirs.candidates[0]));
    }

    #[test]
    fn a_second_opinion_comes_from_another_provider_if_there_is_one() {
        let two =
            ModelsConfig { anthropic_key: some("one"), openai_key: some("two"), ..ModelsConfig::default() };
        let ask = |other_than| Ask { tier: Some(ModelTier::Deep), other_than, ..Ask::default() };
        let first = |config: &ModelsConfig, other_than| {
            let models = Models::from_config(config).unwrap();
            let route = models.route(&ask(other_than), &OwnerModels::default(), 0).unwrap();
            (route.candidates[0].model.vendor, route.why)
        };
        let (turn, _) = first(&two, None);
        let (other, why) = first(&two, Some(turn));
        assert_ne!(other, turn);
        assert_eq!(why, "a second opinion comes from another provider");
        // The others stay in their order, and replace it if it fails.
        let models = Models::from_config(&two).unwrap();
        let route = |other_than| ids(&models.route(&ask(other_than), &OwnerModels::default(), 0).unwrap());
        let mut sorted = route(Some(turn));
        let mut all = route(None);
        assert_eq!(sorted.len(), all.len());
        sorted.sort();
        all.sort();
        assert_eq!(sorted, all);
        let one = ModelsConfig { openai_key: None, ..two };
        let (only, why) = first(&one, Some(Vendor::Anthropic));
        assert_eq!((only, why), (Vendor::Anthropic, "the tier decides"));
    }

    #[test]
    fn an_owners_key_replaces_the_deployments() {
        let config = ModelsConfig {
            anthropic_key: some("theirs"),
            openai_key: some("theirs"),
            demo_url: some("http://127.0.0.1:1"),
            ..ModelsConfig::default()
        };
        let models = Models::from_config(&config).unwrap();
        let mine = OwnerModels {
            keys: [(Vendor::Anthropic, SecretString::from("mine"))].into(),
            ..OwnerModels::default()
        };
        assert_eq!(models.vendors_of(&mine), [(Vendor::Anthropic, true), (Vendor::OpenAi, false)]);
        let only_mine = OwnerModels { only_own_keys: true, ..mine.clone() };
        assert_eq!(models.vendors_of(&only_mine), [(Vendor::Anthropic, true)]);
        let none = OwnerModels { only_own_keys: true, ..OwnerModels::default() };
        assert_eq!(models.route(&Ask::default(), &none, 0).err(), Some(ModelError::NotConfigured));

        let first =
            |owner: &OwnerModels| models.route(&Ask::default(), owner, 0).unwrap().candidates[0].clone();
        let (own, others) = (first(&mine), first(&OwnerModels::default()));
        assert_eq!(own.model, others.model);
        assert!(!own.shares_endpoint(&others) && own.shares_endpoint(&first(&only_mine)));
        // A failing key of one owner closes no breaker of others.
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(own.end(own.begin(now), Verdict::Limited(None), now), None, "it is not shared");
        assert!(matches!(own.gate(now), Gate::Open { .. }));
        assert_eq!(others.gate(now), Gate::Closed);
        assert!(others.end(others.begin(now), Verdict::Limited(None), now).is_some());
        assert!(
            matches!(first(&OwnerModels::default()).gate(now), Gate::Open { .. }),
            "calls share a breaker"
        );
        let again = models.with_limits(ModelLimits::default()).unwrap();
        let again = again.route(&Ask::default(), &OwnerModels::default(), 0).unwrap();
        assert!(matches!(again.candidates[0].gate(now), Gate::Open { .. }), "also under other limits");

        let demo =
            Models::from_config(&ModelsConfig { demo_url: config.demo_url, ..ModelsConfig::default() });
        let demo = demo.unwrap();
        assert_eq!(ids(&demo.route(&Ask::default(), &OwnerModels::default(), 0).unwrap()), ["demo/demo"]);
        let own = demo.route(&Ask::default(), &mine, 0).unwrap();
        assert!(own.candidates.iter().all(|candidate| candidate.model.vendor == Vendor::Anthropic));
        assert!(!format!("{mine:?}").contains("mine"));
    }

    #[test]
    fn a_deployment_chooses_other_models_and_tries_one_out() {
        let canary = Canary { model: "openai/gpt-5".parse().unwrap(), percent: 5 };
        let config = ModelsConfig {
            anthropic_key: some("k"),
            openai_key: some("k"),
            first: [(ModelClass::Deep, vec!["openai/gpt-5-pro".parse().unwrap()])].into(),
            canary: Some(canary),
            ..ModelsConfig::default()
        };
        let models = Models::from_config(&config).unwrap();
        let ask = Ask { tier: Some(ModelTier::Deep), ..Ask::default() };
        let first = |owner: &OwnerModels, number| ids(&models.route(&ask, owner, number).unwrap()).remove(0);
        let nobody = OwnerModels::default();
        assert_eq!(first(&nobody, 99), "openai/gpt-5-pro");
        assert_eq!(
            (first(&nobody, 4), first(&nobody, 5)),
            ("openai/gpt-5".to_owned(), "openai/gpt-5-pro".to_owned())
        );
        let own = OwnerModels {
            first: [(ModelClass::Deep, vec!["anthropic/claude-opus-5".parse().unwrap()])].into(),
            ..OwnerModels::default()
        };
        assert_eq!(first(&own, 99), "anthropic/claude-opus-5");
    }

    #[test]
    fn invalid_addresses_and_keys_are_refused() {
        let check = |url: &str, key: &str, expected: InvalidEndpoint| {
            let server = ServerConfig { key: Some(key.into()), ..ServerConfig::at(url) };
            let servers = [(ServerName::COMPATIBLE, server)].into();
            let config = ModelsConfig { servers, ..ModelsConfig::default() };
            assert_eq!(Models::from_config(&config).err(), Some(expected), "{url}");
        };
        check("localhost:11434", "k", InvalidEndpoint::Address);
        check("", "k", InvalidEndpoint::Address);
        check("ftp://localhost", "k", InvalidEndpoint::Address);
        check("http://localhost", "a\nb", InvalidEndpoint::Key);
    }
}
