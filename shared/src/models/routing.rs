//! Maps tiers to models.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::models::breaker::{Breaker, Gate, Verdict};
use domain::models::{ModelError, ModelId, ModelRequest, ModelTier, Provider};
use jiff::Timestamp;

use super::ModelsConfig;
use super::anthropic::Anthropic;
use super::bedrock::Bedrock;
use super::google::Google;
use super::openai::{Dialect, FIRST_MODEL, OpenAi};
use super::responses::Responses;
use super::{Endpoint, EventStream, InvalidEndpoint, Limits, Model, Retry};

/// The most tries of a provider, and the longest pause between them, if another provider can be called instead.
const TRIES_BEFORE_FALLBACK: u32 = 2;
const LONGEST_WAIT_BEFORE_FALLBACK: Duration = Duration::from_secs(2);

/// How long such a provider may take until its answer begins.
const FIRST_BYTE_BEFORE_FALLBACK: Duration = Duration::from_secs(30);

/// A model that can be called, behind its endpoint.
#[derive(Clone)]
pub struct Candidate {
    pub model: ModelId,
    client: Arc<dyn Model>,
    /// Shared by all clones. Each process has its own.
    breaker: Arc<Mutex<Breaker>>,
}

impl Candidate {
    pub fn new(model: ModelId, client: Arc<dyn Model>) -> Self {
        Self { model, client, breaker: Arc::default() }
    }

    #[must_use]
    pub fn provider(&self) -> Provider {
        self.client.provider()
    }

    /// Calls the model.
    pub fn stream(&self, request: &ModelRequest) -> EventStream {
        self.client.stream(&self.model, request)
    }

    /// Whether the model should be called.
    #[must_use]
    pub fn gate(&self, now: Timestamp) -> Gate {
        self.breaker(|breaker| breaker.gate(now))
    }

    /// A call begins.
    pub fn begin(&self, now: Timestamp) -> Gate {
        self.breaker(|breaker| breaker.begin(now))
    }

    /// A call has ended that began at this gate.
    pub fn end(&self, began: Gate, verdict: Verdict, now: Timestamp) {
        if self.breaker(|breaker| breaker.end(began, verdict, now)) {
            let gate = self.gate(now);
            tracing::warn!(model = %self.model, ?gate, "the circuit breaker of a model has changed");
        }
    }

    fn breaker<T>(&self, with: impl FnOnce(&mut Breaker) -> T) -> T {
        with(&mut self.breaker.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A configured provider.
struct Configured {
    name: String,
    client: Arc<dyn Model>,
    /// Fast, standard, deep.
    models: [&'static str; 3],
}

impl Configured {
    fn new(name: impl Into<String>, client: impl Model + 'static, models: [&'static str; 3]) -> Self {
        Self { name: name.into(), client: Arc::new(client), models }
    }
}

/// The models of each tier. Cheap to clone; no connection is opened before the first call.
#[derive(Clone)]
pub struct Models {
    /// Fast, standard, deep; in each, the preferred model first. Empty if no provider is configured.
    tiers: [Arc<[Candidate]>; 3],
    description: Arc<str>,
}

impl Models {
    /// # Errors
    /// [`InvalidEndpoint`] if an address or a key is invalid.
    pub fn from_config(config: &ModelsConfig) -> Result<Self, InvalidEndpoint> {
        let keys = [&config.anthropic_key, &config.openai_key, &config.google_key, &config.xai_key];
        let count = keys.iter().filter(|key| key.is_some()).count() + usize::from(config.bedrock.is_some());
        // If the server or the model was chosen by name, nothing else is called.
        let has_fallback = config.url.is_none() && config.model.is_none() && count > 1;
        let limits = if has_fallback { before_fallback(config.limits) } else { config.limits };
        let mut found = configured(config, limits)?;
        if !has_fallback {
            found.truncate(1);
        }
        Ok(Self::new(&found, config))
    }

    /// No models, even if some are configured.
    ///
    /// # Errors
    /// Never. The result type is the one that a [`Function`](crate::function::Function) declares.
    pub fn none(_: &ModelsConfig) -> Result<Self, InvalidEndpoint> {
        Ok(Self { tiers: Default::default(), description: "none".into() })
    }

    fn new(configured: &[Configured], config: &ModelsConfig) -> Self {
        let Some((first, others)) = configured.split_first() else {
            return Self { tiers: Default::default(), description: "none".into() };
        };
        let is_demo = config.demo_url.is_some() && matches!(first.models, ["demo" | "demo-priced", ..]);
        let chosen = config.model.as_deref().filter(|_| !is_demo);
        let mut description = match (chosen, first.models) {
            (Some(model), _) => format!("{} ({model})", first.name),
            (None, [FIRST_MODEL, ..]) => format!("{} (the first model that it lists)", first.name),
            // The demo's model says no more than its provider.
            (None, _) if is_demo => first.name.clone(),
            (None, [fast, standard, deep]) => {
                format!("{} (fast {fast}, standard {standard}, deep {deep})", first.name)
            }
        };
        if !others.is_empty() {
            let names: Vec<&str> = others.iter().map(|other| other.name.as_str()).collect();
            description.push_str(&format!("; if it fails: {}", names.join(", ")));
        }
        let tiers = [0, 1, 2].map(|tier: usize| {
            let candidate = |provider: &Configured| {
                let model = chosen.unwrap_or(provider.models[tier]);
                Candidate::new(ModelId::new(model), Arc::clone(&provider.client))
            };
            configured.iter().map(candidate).collect()
        });
        Self { tiers, description: description.into() }
    }

    /// The models of a tier, the preferred one first. There is at least one.
    ///
    /// # Errors
    /// [`ModelError::NotConfigured`]
    pub fn candidates(&self, tier: ModelTier) -> Result<&[Candidate], ModelError> {
        let [fast, standard, deep] = &self.tiers;
        let candidates = match tier {
            ModelTier::Fast => fast,
            ModelTier::Standard => standard,
            ModelTier::Deep => deep,
        };
        if candidates.is_empty() { Err(ModelError::NotConfigured) } else { Ok(candidates) }
    }

    /// Whether any model can be called.
    #[must_use]
    pub fn are_configured(&self) -> bool {
        self.tiers.iter().all(|tier| !tier.is_empty())
    }

    /// The configured provider and model, for people.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }
}

fn before_fallback(limits: Limits) -> Limits {
    let retry = Retry {
        tries: limits.retry.tries.min(TRIES_BEFORE_FALLBACK),
        longest_wait: limits.retry.longest_wait.min(LONGEST_WAIT_BEFORE_FALLBACK),
        ..limits.retry
    };
    Limits { first_byte: limits.first_byte.min(FIRST_BYTE_BEFORE_FALLBACK), retry, ..limits }
}

/// The configured providers, the preferred one first.
fn configured(config: &ModelsConfig, limits: Limits) -> Result<Vec<Configured>, InvalidEndpoint> {
    let at = &config.addresses;
    let mut found = Vec::new();
    if let Some(url) = &config.url {
        let dialect = Dialect { native_tools: !config.url_has_no_tools, ..Dialect::COMPATIBLE };
        let endpoint = Endpoint::bearer(url, config.url_key.as_deref())?.with_limits(limits);
        let name = format!("OpenAI-compatible at {url}");
        found.push(Configured::new(name, OpenAi::new(endpoint, dialect), [FIRST_MODEL; 3]));
    }
    if let Some(key) = &config.anthropic_key {
        let endpoint = Endpoint::anthropic(&at.anthropic, key)?.with_limits(limits);
        let models = ["claude-haiku-5-5", "claude-sonnet-5-5", "claude-opus-5-5"];
        found.push(Configured::new("Anthropic", Anthropic::new(endpoint), models));
    }
    if let Some(key) = &config.openai_key {
        let endpoint = Endpoint::bearer(&at.openai, Some(key))?.with_limits(limits);
        let models = ["gpt-6-luna", "gpt-6.1-sol", "gpt-6-astra"];
        found.push(Configured::new("OpenAI", Responses::new(endpoint), models));
    }
    if let Some(key) = &config.google_key {
        let endpoint = Endpoint::google(&at.google, key)?.with_limits(limits);
        let models = ["gemini-3.5-flash-lite", "gemini-3.8-flash", "gemini-4-argon"];
        found.push(Configured::new("Google", Google::new(endpoint), models));
    }
    if let Some(key) = &config.xai_key {
        let endpoint = Endpoint::bearer(&at.xai, Some(key))?.with_limits(limits);
        let models = ["grok-4.20-non-reasoning", "grok-4.3", "grok-4.7"];
        found.push(Configured::new("xAI", OpenAi::new(endpoint, Dialect::XAI), models));
    }
    if let Some(bedrock) = &config.bedrock {
        let address = bedrock.endpoint.as_deref();
        let endpoint = Endpoint::bedrock(&bedrock.region, address, &bedrock.credentials)?.with_limits(limits);
        // Profiles that every commercial region can call.
        let models = [
            "global.anthropic.claude-haiku-5-5",
            "global.anthropic.claude-sonnet-5-5",
            "global.anthropic.claude-opus-5-5",
        ];
        found.push(Configured::new("Amazon Bedrock", Bedrock::new(endpoint), models));
    }
    if let Some(url) = config.demo_url.as_ref().filter(|_| found.is_empty()) {
        let client = Anthropic::new(Endpoint::anthropic(url, "demo")?.with_limits(limits));
        let model = if config.demo_costs { "demo-priced" } else { "demo" };
        found.push(Configured::new("the demo model", client, [model; 3]));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use domain::models::prices;

    use super::*;
    use crate::aws_keys::AwsKeys;
    use crate::models::BedrockConfig;

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn the_first_configured_provider_is_preferred() {
        let check = |config: ModelsConfig, description: &str, standard: Option<(&str, Provider)>| {
            let models = Models::from_config(&config).unwrap();
            assert_eq!(models.description(), description);
            let preferred = models.candidates(ModelTier::Standard).ok().map(|candidates| &candidates[0]);
            assert_eq!(preferred.map(|found| (found.model.as_str(), found.provider())), standard);
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
                let [candidate] = models.candidates(tier).unwrap() else { panic!("one provider") };
                assert!(prices::price(&candidate.model).is_some(), "{}", candidate.model);
            }
        }
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
