//! Which models a process uses.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use domain::models::{Features, ModelClass, ModelId, ModelRef, PriceList, ServerName, Vendor};
use domain::reach::Policy;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::ModelLimits;
use super::openai::FIRST_MODEL;
use base::aws_keys::AwsKeys;

/// Where models come from. Several of them may be set: servers come first, then `anthropic_key`, `openai_key`, `google_key`,
/// `xai_key`, `bedrock`. If one fails, the next one is called. The demo model is for deployments without any of them.
///
/// | variable | meaning |
/// |---|---|
/// | `ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, `GEMINI_API_KEY` (or `GOOGLE_AI_API_KEY`), `XAI_API_KEY` | these providers, with their default models |
/// | `LAMPLIGHTER_BEDROCK` | `on`: Amazon Bedrock, called with the AWS credentials of the environment; the default is `off` |
/// | `LAMPLIGHTER_BEDROCK_REGION` | its region; the default is `AWS_REGION` |
/// | `AWS_ENDPOINT_URL_BEDROCK_RUNTIME` | an address that replaces the region's |
/// | `LAMPLIGHTER_SERVERS` | JSON: OpenAI-compatible servers by name, see [`ServerConfig`] |
/// | `LAMPLIGHTER_MODEL_URL` | the server `compatible`; the address usually ends in `/v1` |
/// | `LAMPLIGHTER_MODEL_KEY` | its key, if it needs one |
/// | `LAMPLIGHTER_MODEL_TOOLS` | `off` if its models can't call tools; the default is `on` |
/// | `LAMPLIGHTER_PRICES` | JSON: prices of models, in micro-dollars per million tokens, for example `{"openai/gpt-4o": {"input": 2500000, "output": 10000000}, "compatible/*": "free"}` |
/// | `LAMPLIGHTER_MODEL` | one model for everything, as `provider/model`; nothing else is called |
/// | `LAMPLIGHTER_MODELS` | JSON: models that come before the default ones, by kind, and a model to try out, for example `{"deep": ["openai/gpt-6-astra"], "canary": {"model": "openai/ft-1", "percent": 5}}` |
/// | `LAMPLIGHTER_FEATURES` | features that differ from their defaults, such as `prompt_caching=off` |
#[derive(Clone, Default)]
pub struct ModelsConfig {
    /// OpenAI-compatible servers. Each of their models needs a price.
    pub servers: BTreeMap<ServerName, ServerConfig>,
    /// Prices that come before those of the table.
    pub prices: PriceList,
    /// The only model that is called.
    pub forced: Option<ModelRef>,
    /// Models that come before those of the catalog.
    pub first: BTreeMap<ModelClass, Vec<ModelRef>>,
    /// A model that a part of the runs tries out.
    pub canary: Option<Canary>,
    pub anthropic_key: Option<String>,
    pub openai_key: Option<String>,
    pub google_key: Option<String>,
    pub xai_key: Option<String>,
    pub bedrock: Option<BedrockConfig>,
    /// Where the providers are. Tests change it.
    pub addresses: Addresses,
    /// The demo model's base address. No variable sets it; `infra/local` does.
    pub demo_url: Option<String>,
    /// Whether calls of the demo model are counted at the prices of a small model, for tests of budgets. It never costs
    /// money.
    pub demo_costs: bool,
    pub limits: ModelLimits,
    pub features: Features,
    /// What servers of owners may lead to. `ReachConfig` reads it.
    pub reach: Arc<Policy>,
}

/// An OpenAI-compatible server, such as Ollama, vLLM or OpenRouter.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Its base address, which usually ends in `/v1`.
    pub url: String,
    pub key: Option<SecretString>,
    /// Whether its models can call tools. If not, tools are explained in words.
    pub tools: bool,
    /// Its models, by kind. If there are none, the first model that it lists is used for everything.
    pub models: BTreeMap<ModelClass, Vec<ModelId>>,
}

impl ServerConfig {
    /// A server without a key, whose models can call tools.
    #[must_use]
    pub fn at(url: impl Into<String>) -> Self {
        Self { url: url.into(), key: None, tools: true, models: BTreeMap::new() }
    }

    /// The models that are used for a kind of work.
    #[must_use]
    pub fn of(&self, name: ServerName, class: ModelClass) -> Vec<ModelRef> {
        let reference = |model: ModelId| ModelRef { vendor: Vendor::Server(name), model };
        if self.models.is_empty() {
            return vec![reference(ModelId::new(FIRST_MODEL))];
        }
        self.models.get(&class).into_iter().flatten().cloned().map(reference).collect()
    }
}

/// A server of an owner that can be called.
#[derive(Clone, Debug)]
pub struct ServerOfOwner {
    pub name: ServerName,
    pub config: ServerConfig,
    pub prices: PriceList,
}

/// Amazon Bedrock. It is never used only because AWS credentials exist: every Lambda function has some.
#[derive(Clone, Debug)]
pub struct BedrockConfig {
    pub region: String,
    /// An address that replaces the region's.
    pub endpoint: Option<String>,
    pub credentials: AwsKeys,
}

/// The base addresses of the providers.
#[derive(Clone)]
pub struct Addresses {
    pub anthropic: String,
    pub openai: String,
    pub google: String,
    pub xai: String,
}

impl Default for Addresses {
    fn default() -> Self {
        Self {
            anthropic: "https://api.anthropic.com".to_owned(),
            openai: "https://api.openai.com/v1".to_owned(),
            google: "https://generativelanguage.googleapis.com".to_owned(),
            xai: "https://api.x.ai/v1".to_owned(),
        }
    }
}

/// A model that a part of the calls tries out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Canary {
    pub model: ModelRef,
    /// How many of a hundred runs use it, 1 to 100.
    pub percent: u32,
}

impl fmt::Debug for ModelsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelsConfig")
            .field("servers", &self.servers)
            .field("forced", &self.forced)
            .field("anthropic_key", &self.anthropic_key.is_some())
            .field("openai_key", &self.openai_key.is_some())
            .field("google_key", &self.google_key.is_some())
            .field("xai_key", &self.xai_key.is_some())
            .field("bedrock", &self.bedrock)
            .field("demo_url", &self.demo_url)
            .finish_non_exhaustive()
    }
}
