//! Maps tiers to models.

use std::sync::Arc;

use domain::models::{ModelError, ModelId, ModelRequest, ModelTier, Provider};

use super::ModelsConfig;
use super::anthropic::Anthropic;
use super::google::Google;
use super::openai::{Dialect, FIRST_MODEL, OpenAi};
use super::responses::Responses;
use super::{Endpoint, EventStream, InvalidEndpoint, Model};

const ANTHROPIC: &str = "https://api.anthropic.com";
const OPENAI: &str = "https://api.openai.com/v1";
const GOOGLE: &str = "https://generativelanguage.googleapis.com";
const XAI: &str = "https://api.x.ai/v1";

/// A model and its endpoint.
#[derive(Clone)]
pub struct Route {
    pub model: ModelId,
    client: Arc<dyn Model>,
}

impl Route {
    pub fn new(model: ModelId, client: Arc<dyn Model>) -> Self {
        Self { model, client }
    }

    #[must_use]
    pub fn provider(&self) -> Provider {
        self.client.provider()
    }

    /// Calls the model. `request.model` must be this route's model.
    pub fn stream(&self, request: &ModelRequest) -> EventStream {
        debug_assert_eq!(request.model, self.model);
        self.client.stream(request)
    }
}

/// The model of each tier. Cheap to clone; no connection is opened before the first call.
#[derive(Clone)]
pub struct Models {
    /// Fast, standard, deep. `None` if no provider is configured.
    routes: Option<[Route; 3]>,
    description: Arc<str>,
}

impl Models {
    /// # Errors
    /// [`InvalidEndpoint`] if an address or a key is invalid.
    pub fn from_config(config: &ModelsConfig) -> Result<Self, InvalidEndpoint> {
        if let Some(url) = &config.url {
            let dialect = Dialect { native_tools: !config.url_has_no_tools, ..Dialect::COMPATIBLE };
            let endpoint = Endpoint::bearer(url, config.url_key.as_deref())?;
            let client = OpenAi::new(endpoint.with_limits(config.limits), dialect);
            return Ok(Self::new(client, config, [FIRST_MODEL; 3], &format!("OpenAI-compatible at {url}")));
        }
        if let Some(key) = &config.anthropic_key {
            let client = Anthropic::new(Endpoint::anthropic(ANTHROPIC, key)?.with_limits(config.limits));
            let models = ["claude-haiku-5-5", "claude-sonnet-5-5", "claude-opus-5-5"];
            return Ok(Self::new(client, config, models, "Anthropic"));
        }
        if let Some(key) = &config.openai_key {
            let endpoint = Endpoint::bearer(OPENAI, Some(key))?.with_limits(config.limits);
            let client = Responses::new(endpoint);
            return Ok(Self::new(client, config, ["gpt-6-luna", "gpt-6.1-sol", "gpt-6-astra"], "OpenAI"));
        }
        if let Some(key) = &config.google_key {
            let client = Google::new(Endpoint::google(GOOGLE, key)?.with_limits(config.limits));
            let models = ["gemini-3.5-flash-lite", "gemini-3.8-flash", "gemini-4-argon"];
            return Ok(Self::new(client, config, models, "Google"));
        }
        if let Some(key) = &config.xai_key {
            let endpoint = Endpoint::bearer(XAI, Some(key))?.with_limits(config.limits);
            let models = ["grok-4.20-non-reasoning", "grok-4.3", "grok-4.7"];
            return Ok(Self::new(OpenAi::new(endpoint, Dialect::XAI), config, models, "xAI"));
        }
        if let Some(url) = &config.demo_url {
            let client = Anthropic::new(Endpoint::anthropic(url, "demo")?.with_limits(config.limits));
            let config = ModelsConfig { model: None, ..config.clone() };
            let model = if config.demo_costs { "demo-priced" } else { "demo" };
            return Ok(Self::new(client, &config, [model; 3], "the demo model"));
        }
        Self::none(config)
    }

    /// No models, whatever is configured.
    ///
    /// # Errors
    /// Never. The result type is the one that a [`Function`](crate::function::Function) declares.
    pub fn none(_: &ModelsConfig) -> Result<Self, InvalidEndpoint> {
        Ok(Self { routes: None, description: "none".into() })
    }

    fn new(client: impl Model + 'static, config: &ModelsConfig, models: [&str; 3], provider: &str) -> Self {
        let models = config.model.as_deref().map_or(models, |model| [model; 3]);
        let description = match models {
            [fast, standard, deep] if fast == standard && standard == deep => match fast {
                FIRST_MODEL => format!("{provider} (the first model that it lists)"),
                // The demo's model says no more than its provider.
                "demo" | "demo-priced" => provider.to_owned(),
                model => format!("{provider} ({model})"),
            },
            [fast, standard, deep] => format!("{provider} (fast {fast}, standard {standard}, deep {deep})"),
        };
        let client: Arc<dyn Model> = Arc::new(client);
        let route = |model: &str| Route::new(ModelId::new(model), Arc::clone(&client));
        Self { routes: Some(models.map(route)), description: description.into() }
    }

    /// The model of a tier.
    ///
    /// # Errors
    /// [`ModelError::NotConfigured`]
    pub fn route(&self, tier: ModelTier) -> Result<&Route, ModelError> {
        let [fast, standard, deep] = self.routes.as_ref().ok_or(ModelError::NotConfigured)?;
        Ok(match tier {
            ModelTier::Fast => fast,
            ModelTier::Standard => standard,
            ModelTier::Deep => deep,
        })
    }

    /// Whether any model can be called.
    #[must_use]
    pub fn are_configured(&self) -> bool {
        self.routes.is_some()
    }

    /// The configured provider and model, for people.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }
}

#[cfg(test)]
mod tests {
    use domain::models::prices;

    use super::*;

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn the_first_configured_provider_wins() {
        let check = |config: ModelsConfig, description: &str, standard: Option<(&str, Provider)>| {
            let models = Models::from_config(&config).unwrap();
            assert_eq!(models.description(), description);
            let route = models.route(ModelTier::Standard).ok();
            assert_eq!(route.map(|route| (route.model.as_str(), route.provider())), standard);
        };
        check(ModelsConfig::default(), "none", None);
        let demo = ModelsConfig { demo_url: some("http://127.0.0.1:1"), ..ModelsConfig::default() };
        check(demo.clone(), "the demo model", Some(("demo", Provider::Anthropic)));
        check(
            ModelsConfig { model: some("gpt"), ..demo.clone() },
            "the demo model",
            Some(("demo", Provider::Anthropic)),
        );
        let xai = ModelsConfig { xai_key: some("xai-1"), ..demo };
        check(
            xai.clone(),
            "xAI (fast grok-4.20-non-reasoning, standard grok-4.3, deep grok-4.7)",
            Some(("grok-4.3", Provider::OpenAi)),
        );
        let google = ModelsConfig { google_key: some("AI-1"), ..xai };
        check(
            google.clone(),
            "Google (fast gemini-3.5-flash-lite, standard gemini-3.8-flash, deep gemini-4-argon)",
            Some(("gemini-3.8-flash", Provider::Google)),
        );
        let openai = ModelsConfig { openai_key: some("sk-1"), ..google };
        check(
            openai.clone(),
            "OpenAI (fast gpt-6-luna, standard gpt-6.1-sol, deep gpt-6-astra)",
            Some(("gpt-6.1-sol", Provider::OpenAi)),
        );
        let anthropic = ModelsConfig { anthropic_key: some("sk-2"), ..openai };
        check(
            anthropic.clone(),
            "Anthropic (fast claude-haiku-5-5, standard claude-sonnet-5-5, deep claude-opus-5-5)",
            Some(("claude-sonnet-5-5", Provider::Anthropic)),
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
        assert!(!["sk-", "AI-", "xai-"].iter().any(|key| shown.contains(key)), "{shown}");
    }

    #[test]
    fn every_usual_model_has_a_price() {
        let (anthropic_key, openai_key, demo_url) = (some("k"), some("k"), some("http://127.0.0.1:1"));
        let (google_key, xai_key) = (some("k"), some("k"));
        for config in [
            ModelsConfig { anthropic_key, ..ModelsConfig::default() },
            ModelsConfig { openai_key, ..ModelsConfig::default() },
            ModelsConfig { google_key, ..ModelsConfig::default() },
            ModelsConfig { xai_key, ..ModelsConfig::default() },
            ModelsConfig { demo_url, ..ModelsConfig::default() },
        ] {
            let models = Models::from_config(&config).unwrap();
            for tier in ModelTier::ALL {
                let model = &models.route(tier).unwrap().model;
                assert!(prices::price(model).is_some(), "{model}");
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
