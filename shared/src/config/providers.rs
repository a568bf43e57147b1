//! The variables of the model layer.

use std::collections::BTreeMap;

use base::aws_keys::AwsKeys;
use domain::models::price_list::{SetPrice, how_to_price};
use domain::models::{Features, ModelClass, ModelId, ModelRef, PriceList, ServerName, Vendor};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::{ConfigError, Env, ReachConfig, on_or_off};
use models::{
    Addresses, BedrockConfig, Canary, Endpoint, InvalidEndpoint, ModelLimits, ModelsConfig, ServerConfig,
};

/// # Errors
/// If a variable has an invalid value.
pub fn read(env: Env<'_>) -> Result<ModelsConfig, ConfigError> {
    let present = |variable| env(variable).filter(|value| !value.trim().is_empty());
    let invalid = |variable: &'static str| move |problem: String| ConfigError { variable, problem };
    let chosen = present("LAMPLIGHTER_MODELS")
        .map_or_else(|| Ok(ChosenModels::default()), |json| ChosenModels::read(&json));
    let chosen = chosen.map_err(invalid("LAMPLIGHTER_MODELS"))?;
    // The value is not shown: an address may contain a password, and a key is secret.
    let usable = |variable: &'static str, endpoint: Result<Endpoint, InvalidEndpoint>| match endpoint {
        Ok(_) => Ok(()),
        Err(InvalidEndpoint::Address) => {
            let problem = "must begin with http:// or https:// and have a host".to_owned();
            Err(ConfigError { variable, problem })
        }
        Err(InvalidEndpoint::Key) => {
            let problem = "contains a character that HTTP headers do not allow".to_owned();
            Err(ConfigError { variable, problem })
        }
        Err(InvalidEndpoint::Region) => {
            let problem = "must be the name of an AWS region, such as eu-west-1".to_owned();
            Err(ConfigError { variable, problem })
        }
    };
    let url = |variable| {
        let url = present(variable);
        url.as_deref().map_or(Ok(()), |url| usable(variable, Endpoint::bearer(url, None)))?;
        Ok(url)
    };
    let key = |variable| {
        let key = present(variable);
        let endpoint = Endpoint::bearer("http://localhost", key.as_deref());
        usable(variable, endpoint)?;
        Ok(key)
    };
    let variable = "LAMPLIGHTER_FEATURES";
    let features = Features::parse(&env(variable).unwrap_or_default()).map_err(invalid(variable))?;
    let prices = present("LAMPLIGHTER_PRICES")
        .map_or_else(|| Ok(PriceList::default()), |json| PriceList::parse(&json));
    let (mut servers, of_servers) = present("LAMPLIGHTER_SERVERS")
        .map_or_else(|| Ok(Default::default()), |json| read_servers(&json))
        .map_err(invalid("LAMPLIGHTER_SERVERS"))?;
    let (url, of_url) = (url("LAMPLIGHTER_MODEL_URL")?, key("LAMPLIGHTER_MODEL_KEY")?);
    let tools = on_or_off(env, "LAMPLIGHTER_MODEL_TOOLS", true)?;
    if let Some(url) = url {
        let server = ServerConfig { key: of_url.map(Into::into), tools, ..ServerConfig::at(url) };
        if servers.insert(ServerName::COMPATIBLE, server).is_some() {
            let problem = "is set, and LAMPLIGHTER_SERVERS has a server `compatible` too".to_owned();
            return Err(ConfigError { variable: "LAMPLIGHTER_MODEL_URL", problem });
        }
    }
    let config = ModelsConfig {
        servers,
        prices: of_servers.with(&prices.map_err(invalid("LAMPLIGHTER_PRICES"))?),
        forced: None,
        first: chosen.first,
        canary: chosen.canary,
        anthropic_key: key("ANTHROPIC_API_KEY")?,
        openai_key: key("OPENAI_API_KEY")?,
        google_key: match key("GEMINI_API_KEY")? {
            Some(key) => Some(key),
            None => key("GOOGLE_AI_API_KEY")?,
        },
        xai_key: key("XAI_API_KEY")?,
        bedrock: if on_or_off(env, "LAMPLIGHTER_BEDROCK", false)? {
            let bedrock = bedrock(env)?;
            let (at, keys) = (bedrock.endpoint.as_deref(), &bedrock.credentials);
            usable("LAMPLIGHTER_BEDROCK_REGION", Endpoint::bedrock(&bedrock.region, None, keys))?;
            usable("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", Endpoint::bedrock(&bedrock.region, at, keys))?;
            Some(bedrock)
        } else {
            None
        },
        addresses: Addresses::default(),
        demo_url: None,
        demo_costs: false,
        limits: ModelLimits::default(),
        features,
        reach: ReachConfig::read(env)?.policy,
    };
    let forced = present("LAMPLIGHTER_MODEL").map(|text| named(&config, &text)).transpose();
    let config = ModelsConfig { forced: forced.map_err(invalid("LAMPLIGHTER_MODEL"))?, ..config };
    check(&config)?;
    Ok(config)
}

/// The model that a text names: with its provider, or if only one provider can have it.
fn named(config: &ModelsConfig, text: &str) -> Result<ModelRef, String> {
    let vendors = config.vendors();
    let names = || vendors.iter().map(Vendor::as_str).collect::<Vec<_>>().join(", ");
    let parsed = text.parse::<ModelRef>().ok();
    if let Some(model) = parsed.clone().filter(|model| vendors.contains(&model.vendor)) {
        return Ok(model);
    }
    let id = ModelId::new(text);
    let known = parsed.map(|model| model.vendor).filter(|vendor| vendor.has_table());
    match (known.or_else(|| Vendor::of_known(&id)), &vendors[..]) {
        (_, []) => {
            Err(format!("is `{text}`, and no provider is configured: set its key, such as ANTHROPIC_API_KEY"))
        }
        (Some(known), _) if vendors.contains(&known) => Ok(ModelRef { vendor: known, model: id }),
        // A server may offer models of others.
        (None, &[vendor]) | (Some(_), &[vendor @ Vendor::Server(_)]) => Ok(ModelRef { vendor, model: id }),
        (Some(known), _) => Err(format!(
            "is `{text}`, and the provider `{known}` is not configured; configured are: {}",
            names()
        )),
        (None, _) => Err(format!(
            "is `{text}`, and several providers are configured: write it as `provider/model`, with one of {}",
            names()
        )),
    }
}

/// Refuses what can't work: models that nobody can call, and models without a price, which no budget would limit.
fn check(config: &ModelsConfig) -> Result<(), ConfigError> {
    let chosen = config.first.values().flatten().chain(config.canary.iter().map(|canary| &canary.model));
    for model in chosen {
        if matches!(model.vendor, Vendor::Server(name) if !config.servers.contains_key(&name)) {
            let problem = format!(
                "names `{model}`, and `{}` is neither a provider nor a server of LAMPLIGHTER_SERVERS",
                model.vendor
            );
            return Err(ConfigError { variable: "LAMPLIGHTER_MODELS", problem });
        }
    }
    config.all_have_prices().map_err(|(variable, model)| {
        let problem = format!("uses the model `{model}`, which {}", how_to_price(&model));
        ConfigError { variable, problem }
    })
}

/// A server of `LAMPLIGHTER_SERVERS`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerSetting {
    url: String,
    #[serde(default)]
    key: Option<SecretString>,
    #[serde(default = "yes")]
    tools: bool,
    #[serde(default)]
    models: BTreeMap<ModelClass, Vec<ModelId>>,
    /// By model. `*` stands for all others.
    #[serde(default)]
    prices: BTreeMap<String, SetPrice>,
}

const fn yes() -> bool {
    true
}

type Servers = (BTreeMap<ServerName, ServerConfig>, PriceList);

fn read_servers(json: &str) -> Result<Servers, String> {
    let set: BTreeMap<ServerName, serde_json::Value> =
        serde_json::from_str(json).map_err(|error| format!("is invalid: {error}"))?;
    let (mut servers, mut prices) = (BTreeMap::new(), PriceList::default());
    for (name, setting) in set {
        let refused = |problem: &dyn std::fmt::Display| format!("is invalid: `{name}`: {problem}");
        let setting: ServerSetting = serde_json::from_value(setting).map_err(|error| refused(&error))?;
        let ServerSetting { url, key, tools, models, prices: of_server } = setting;
        Endpoint::bearer(&url, key.as_ref().map(ExposeSecret::expose_secret))
            .map_err(|error| refused(&error))?;
        for (model, price) in of_server {
            let model = ModelRef { vendor: Vendor::Server(name), model: ModelId::new(model) };
            prices.set(&model, price).map_err(|problem| refused(&problem))?;
        }
        servers.insert(name, ServerConfig { url, key, tools, models });
    }
    Ok((servers, prices))
}

/// # Errors
/// If there is no region, or there are no credentials.
fn bedrock(env: Env<'_>) -> Result<BedrockConfig, ConfigError> {
    let present = |variable| env(variable).filter(|value| !value.trim().is_empty());
    let required = |variable: &'static str| {
        let problem = "is not set, and LAMPLIGHTER_BEDROCK is on".to_owned();
        present(variable).ok_or(ConfigError { variable, problem })
    };
    Ok(BedrockConfig {
        region: present("LAMPLIGHTER_BEDROCK_REGION").map_or_else(|| required("AWS_REGION"), Ok)?,
        endpoint: present("AWS_ENDPOINT_URL_BEDROCK_RUNTIME"),
        credentials: AwsKeys {
            access_key_id: required("AWS_ACCESS_KEY_ID")?,
            secret_access_key: required("AWS_SECRET_ACCESS_KEY")?,
            session_token: present("AWS_SESSION_TOKEN"),
        },
    })
}

/// The value of `LAMPLIGHTER_MODELS`.
#[derive(Default, Deserialize)]
struct ChosenModels {
    #[serde(default)]
    canary: Option<Canary>,
    #[serde(flatten)]
    first: BTreeMap<ModelClass, Vec<ModelRef>>,
}

impl ChosenModels {
    fn read(json: &str) -> Result<Self, String> {
        let chosen: Self = serde_json::from_str(json).map_err(|error| format!("is invalid: {error}"))?;
        if let Some(canary) = chosen.canary.as_ref().filter(|canary| !(1..=100).contains(&canary.percent)) {
            return Err(format!("is invalid: `canary.percent` must be 1 to 100, is {}", canary.percent));
        }
        Ok(chosen)
    }
}
