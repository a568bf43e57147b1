//! The providers that a process can call, and the models that a call may use.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::models::breaker::{Gate, Verdict};
use domain::models::routing::{self, Ask, Level, Wishes};
use domain::models::{Catalog, ModelClass, ModelError, ModelId, ModelRef, ModelRequest, Provider, Vendor};
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use super::ModelsConfig;
use super::anthropic::Anthropic;
use super::bedrock::Bedrock;
use super::breakers::{BreakerCell, BreakerChange, Breakers};
use super::google::Google;
use super::openai::{Dialect, FIRST_MODEL, OpenAi};
use super::responses::Responses;
use super::{Endpoint, EventStream, InvalidEndpoint, Limits, Model, Retry};

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
    client: Arc<dyn Model>,
    /// Shared by all candidates of this process with the same model, endpoint and key.
    breaker: Arc<BreakerCell>,
}

impl Candidate {
    /// A candidate with a circuit breaker of its own.
    pub fn new(model: ModelRef, client: Arc<dyn Model>) -> Self {
        Self { model, client, breaker: Arc::default() }
    }

    #[must_use]
    pub fn provider(&self) -> Provider {
        self.client.provider()
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
    forced: Option<ModelRef>,
    breakers: Breakers,
    /// Clients of owners' own keys.
    own: OwnClients,
}

impl Models {
    /// # Errors
    /// [`InvalidEndpoint`] if an address or a key is invalid.
    pub fn from_config(config: &ModelsConfig) -> Result<Self, InvalidEndpoint> {
        let forced = config.forced();
        let mut vendors: Vec<Vendor> =
            Vendor::ALL.into_iter().filter(|vendor| config.key_of(*vendor).is_some()).collect();
        match &forced {
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
            catalog: Arc::new(match &forced {
                Some(model) => Catalog::only(model),
                None => Catalog::default().preferring(&config.first).ending_with(&config.demo()),
            }),
            forced,
            config: Arc::new(config.clone()),
            breakers: Breakers::default(),
            own: Arc::default(),
        })
    }

    /// No models, even if some are configured.
    ///
    /// # Errors
    /// Never. The result type is the one that a [`Function`](crate::function::Function) declares.
    pub fn none(_: &ModelsConfig) -> Result<Self, InvalidEndpoint> {
        Ok(Self {
            config: Arc::default(),
            clients: Arc::default(),
            catalog: Arc::default(),
            forced: None,
            breakers: Breakers::default(),
            own: Arc::default(),
        })
    }

    /// The same models under other time limits. They share their circuit breakers.
    ///
    /// # Errors
    /// Never for models that were built from a configuration.
    pub fn with_limits(&self, limits: Limits) -> Result<Self, InvalidEndpoint> {
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
            forced: self.forced.clone(),
            max_quality: owner.max_quality,
            canary: canary.map(|canary| canary.model.clone()),
            preferred: owner.preferred.clone(),
        };
        let resolved = routing::resolve(ask, &wishes, usable);
        let catalog = Catalog::clone(&self.catalog).preferring(&owner.first);
        let chain = routing::chain(&resolved, &catalog, usable);
        let candidate = |model: ModelRef| {
            let client = clients.iter().find(|client| client.vendor == model.vendor)?;
            let name = format!("{}#{}#{}", client.vendor, client.endpoint, model.model);
            let breaker = self.breakers.of(&name, client.is_deployments);
            Some(Candidate { breaker, client: Arc::clone(&client.model), model })
        };
        let candidates: Vec<Candidate> = chain.into_iter().filter_map(candidate).collect();
        if candidates.is_empty() {
            return Err(ModelError::NotConfigured);
        }
        Ok(Route { candidates, level: resolved.level, why: resolved.why })
    }

    /// The providers that can be called for an owner, and whether its own key is used.
    #[must_use]
    pub fn vendors_of(&self, owner: &OwnerModels) -> Vec<(Vendor, bool)> {
        self.clients_of(owner).iter().map(|client| (client.vendor, !client.is_deployments)).collect()
    }

    fn clients_of(&self, owner: &OwnerModels) -> Vec<Client> {
        let mut clients: Vec<Client> = Vec::new();
        if self.forced.is_none() {
            clients.extend(owner.keys.iter().filter_map(|(vendor, key)| self.own_client(*vendor, key)));
        }
        if !owner.only_own_keys {
            let is_new = |client: &&Client| clients.iter().all(|own| own.vendor != client.vendor);
            let others: Vec<Client> = self.clients.iter().filter(is_new).cloned().collect();
            clients.extend(others);
        }
        if clients.iter().any(|client| client.vendor != Vendor::Demo) {
            clients.retain(|client| client.vendor != Vendor::Demo);
        }
        clients
    }

    /// A client with an owner's own key. `None` if the key is not one that HTTP can send, which was checked when it was stored.
    fn own_client(&self, vendor: Vendor, key: &SecretString) -> Option<Client> {
        let id = (vendor, endpoint_id(vendor, key.expose_secret(), &self.config));
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = own.get(&id) {
            return Some(client.clone());
        }
        let limits = before_fallback(self.config.limits);
        let client = client(vendor, key.expose_secret(), &self.config, limits, false).ok()?;
        if own.len() >= MAX_OWN_CLIENTS {
            own.clear();
        }
        own.insert(id, client.clone());
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
    pub const fn forced(&self) -> Option<&ModelRef> {
        self.forced.as_ref()
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
            Vendor::Compatible => {
                format!("OpenAI-compatible at {}", self.config.url.as_deref().unwrap_or_default())
            }
            Vendor::Demo => "the demo model".to_owned(),
        };
        let named = name(first.vendor);
        let mut text = match &self.forced {
            Some(model) if model.model.as_str() == FIRST_MODEL => {
                format!("{named} (the first model that it lists)")
            }
            Some(model) => format!("{named} ({})", model.model),
            // The demo's model says no more than its provider.
            None if first.vendor == Vendor::Demo => named,
            None => {
                let [fast, standard, deep] =
                    [ModelClass::Fast, ModelClass::Standard, ModelClass::Deep].map(|class| {
                        let own = self.catalog.of(class).iter().find(|model| model.vendor == first.vendor);
                        own.map_or_else(String::new, |model| model.model.to_string())
                    });
                format!("{named} (fast {fast}, standard {standard}, deep {deep})")
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
    /// The key of a provider. `None` if it is not configured.
    fn key_of(&self, vendor: Vendor) -> Option<&str> {
        match vendor {
            Vendor::Anthropic => self.anthropic_key.as_deref(),
            Vendor::OpenAi => self.openai_key.as_deref(),
            Vendor::Google => self.google_key.as_deref(),
            Vendor::Xai => self.xai_key.as_deref(),
            // A request is signed with it.
            Vendor::Bedrock => {
                self.bedrock.as_ref().map(|bedrock| bedrock.credentials.access_key_id.as_str())
            }
            Vendor::Compatible => self.url.as_ref().map(|_| self.url_key.as_deref().unwrap_or_default()),
            Vendor::Demo => self.demo_url.as_ref().map(|_| "demo"),
        }
    }

    fn demo(&self) -> ModelRef {
        let model = if self.demo_costs { "demo-priced" } else { "demo" };
        ModelRef { vendor: Vendor::Demo, model: ModelId::new(model) }
    }

    /// The only model to call, if the address or the model was chosen by name.
    fn forced(&self) -> Option<ModelRef> {
        let first = Vendor::ALL.into_iter().find(|vendor| self.key_of(*vendor).is_some())?;
        let vendor = if self.url.is_some() { Vendor::Compatible } else { first };
        let model = match (vendor, &self.model) {
            (Vendor::Demo, _) => return None,
            (_, Some(model)) => model.as_str(),
            (Vendor::Compatible, None) => FIRST_MODEL,
            (_, None) => return None,
        };
        Some(ModelRef { vendor, model: ModelId::new(model) })
    }
}

fn before_fallback(limits: Limits) -> Limits {
    let retry = Retry {
        tries: limits.retry.tries.min(TRIES_BEFORE_FALLBACK),
        longest_wait: limits.retry.longest_wait.min(LONGEST_WAIT_BEFORE_FALLBACK),
        // Whoever waits has waited long enough: the other provider is called now.
        after_timeouts: false,
        ..limits.retry
    };
    Limits { first_byte: limits.first_byte.min(FIRST_BYTE_BEFORE_FALLBACK), retry, ..limits }
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
        Vendor::Compatible => config.url.as_deref().unwrap_or_default(),
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
    limits: Limits,
    is_deployments: bool,
) -> Result<Client, InvalidEndpoint> {
    let at = address(vendor, config);
    let bearer =
        || Endpoint::bearer(at, Some(key).filter(|key| !key.is_empty())).map(|at| at.with_limits(limits));
    let model: Arc<dyn Model> = match vendor {
        Vendor::Anthropic | Vendor::Demo => {
            Arc::new(Anthropic::new(Endpoint::anthropic(at, key)?.with_limits(limits)))
        }
        Vendor::OpenAi => Arc::new(Responses::new(bearer()?)),
        Vendor::Google => Arc::new(Google::new(Endpoint::google(at, key)?.with_limits(limits))),
        Vendor::Xai => Arc::new(OpenAi::new(bearer()?, Dialect::XAI)),
        Vendor::Bedrock => {
            let bedrock = config.bedrock.as_ref().ok_or(InvalidEndpoint::Region)?;
            let address = bedrock.endpoint.as_deref();
            let endpoint = Endpoint::bedrock(&bedrock.region, address, &bedrock.credentials)?;
            Arc::new(Bedrock::new(endpoint.with_limits(limits)))
        }
        Vendor::Compatible => {
            let dialect = Dialect { native_tools: !config.url_has_no_tools, ..Dialect::COMPATIBLE };
            Arc::new(OpenAi::new(bearer()?, dialect))
        }
    };
    Ok(Client { vendor, model, endpoint: endpoint_id(vendor, key, config), is_deployments })
}

#[cfg(test)]
mod tests {
    use domain::models::{ModelTier, prices};

    use super::*;
    use crate::aws_keys::AwsKeys;
    use crate::models::{BedrockConfig, Canary};

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
        check(
            ModelsConfig { model: some("gpt"), ..demo.clone() },
            "the demo model",
            Some(("demo", Provider::Anthropic)),
        );
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
            ModelsConfig { model: some("claude-x"), ..anthropic.clone() },
            "Anthropic (claude-x)",
            Some(("claude-x", Provider::Anthropic)),
        );
        let url = ModelsConfig { url: some("http://localhost:11434/v1"), ..anthropic };
        check(
            url.clone(),
            "OpenAI-compatible at http://localhost:11434/v1 (the first model that it lists)",
            Some(("auto", Provider::OpenAi)),
        );
        check(
            ModelsConfig { model: some("qwen3-max"), ..url.clone() },
            "OpenAI-compatible at http://localhost:11434/v1 (qwen3-max)",
            Some(("qwen3-max", Provider::OpenAi)),
        );
        let shown = format!("{url:?}");
        assert!(!["sk-", "AI-", "xai-", "aws-"].iter().any(|key| shown.contains(key)), "{shown}");
    }

    #[test]
    fn a_provider_that_can_be_replaced_is_not_waited_for_long() {
        let usual = Limits::default();
        let limits = before_fallback(usual);
        assert!(limits.retry.tries < usual.retry.tries && limits.first_byte < usual.first_byte);
        let error = ModelError::RateLimited { retry_after: Some(Duration::from_secs(3)) };
        assert_eq!(usual.retry.pause(1, &error, 0.0), Some(Duration::from_secs(3)));
        assert_eq!(limits.retry.pause(1, &error, 0.0), None);
        let tight = Limits { first_byte: Duration::from_secs(1), ..usual };
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
        let again = models.with_limits(Limits::default()).unwrap();
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
            let config = ModelsConfig { url: some(url), url_key: some(key), ..ModelsConfig::default() };
            assert_eq!(Models::from_config(&config).err(), Some(expected), "{url}");
        };
        check("localhost:11434", "k", InvalidEndpoint::Address);
        check("", "k", InvalidEndpoint::Address);
        check("ftp://localhost", "k", InvalidEndpoint::Address);
        check("http://localhost", "a\nb", InvalidEndpoint::Key);
    }
}
