//! Which models a process uses.

use std::collections::BTreeMap;

use domain::models::{Features, ModelClass, ModelRef};
use serde::{Deserialize, Serialize};

use super::Limits;
use crate::aws_keys::AwsKeys;

/// Where models come from. The first one that is set is preferred, in this order: `url`, `anthropic_key`, `openai_key`,
/// `google_key`, `xai_key`, `bedrock`, `demo_url`. If several of them are set, the others are called when the preferred provider fails. If
/// `url` or `model` is set, nothing else is called.
///
/// | variable | meaning |
/// |---|---|
/// | `LAMPLIGHTER_MODEL_URL` | an OpenAI-compatible server; the address usually ends in `/v1` |
/// | `LAMPLIGHTER_MODEL_KEY` | its key, if it needs one |
/// | `LAMPLIGHTER_MODEL_TOOLS` | `off` if its models can't call tools; the default is `on` |
/// | `LAMPLIGHTER_MODEL` | one model for every tier, instead of the default models |
/// | `LAMPLIGHTER_FEATURES` | features that differ from their defaults, such as `prompt_caching=off` |
/// | `LAMPLIGHTER_MODELS` | JSON: models that come before the default ones, by kind, and a model to try out, for example `{"deep": ["openai/gpt-6-astra"], "canary": {"model": "openai/ft-1", "percent": 5}}` |
/// | `ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, `GEMINI_API_KEY`, `XAI_API_KEY` | these providers, with their default models |
/// | `LAMPLIGHTER_BEDROCK` | `on`: Amazon Bedrock, called with the AWS credentials of the environment; the default is `off` |
/// | `LAMPLIGHTER_BEDROCK_REGION` | its region; the default is `AWS_REGION` |
/// | `AWS_ENDPOINT_URL_BEDROCK_RUNTIME` | an address that replaces the region's |
#[derive(Clone, Default)]
pub struct ModelsConfig {
    pub url: Option<String>,
    pub url_key: Option<String>,
    pub url_has_no_tools: bool,
    pub model: Option<String>,
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
    pub limits: Limits,
    pub features: Features,
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
