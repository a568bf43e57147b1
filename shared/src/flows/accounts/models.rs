//! The models that an owner's calls use, and why; and what the owner has chosen about them.

use std::collections::BTreeMap;

use domain::ids::Owner;
use domain::models::breaker::Gate;
use domain::models::prices::Rates;
use domain::models::provider_tools;
use domain::models::routing::{AgentRole, Ask, Level, TaskTier, Work};
use domain::models::{ModelClass, ModelPrice, ModelRef, ModelTier, Vendor};
use domain::validate::FieldErrors;
use jiff::Timestamp;
use jiff::civil::Date;
use models::OwnerModels;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::context::Cx;
use crate::error::Result;
use crate::model_choice;
use crate::store::{ModelSettings, Tries};

/// What the choice of a model is asked for. Without any of these, the answer has one choice for each tier.
#[derive(Clone, Copy, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct AskedModels {
    /// Who needs the reply. The default is `lead`.
    #[param(inline)]
    role: Option<AgentRole>,
    /// The tier of the agent.
    #[param(inline)]
    tier: Option<ModelTier>,
    /// The size of the task.
    #[param(inline)]
    task: Option<TaskTier>,
    /// The kind of work.
    #[param(inline)]
    work: Option<Work>,
}

impl AskedModels {
    fn asks(self) -> Vec<Ask> {
        let Self { role, tier, task, work } = self;
        if role.is_none() && tier.is_none() && task.is_none() && work.is_none() {
            return ModelTier::ALL.map(|tier| Ask { tier: Some(tier), ..Ask::default() }).into();
        }
        vec![Ask { role: role.unwrap_or_default(), tier, task, work, other_than: None }]
    }
}

/// The models of an owner.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ModelsView {
    /// The day on which the models and their prices were collected.
    #[schema(value_type = String, format = Date, example = "2026-11-21")]
    pub as_of: Date,
    /// The providers that can be called, the preferred one first.
    pub providers: Vec<ProviderView>,
    /// Which models calls would use now.
    pub choices: Vec<ModelChoice>,
    /// The model that the deployment tries out, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary: Option<CanaryView>,
    /// The known models.
    pub models: Vec<ModelView>,
    /// What the account has chosen.
    pub settings: ModelSettings,
}

/// A model that a part of the runs uses, in place of the one that is chosen for them.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CanaryView {
    /// The provider and the model.
    #[schema(value_type = String, example = "openai/gpt-6-sol")]
    pub model: ModelRef,
    /// How many of a hundred runs use it, 1 to 100.
    pub percent: u32,
    /// Whether its provider can be called for this account.
    pub usable: bool,
}

/// A provider that can be called.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct ProviderView {
    /// Its name, as in models: that of a provider or of a server.
    #[schema(value_type = String, example = "anthropic")]
    pub provider: Vendor,
    /// Whether the key belongs to the account. Otherwise it belongs to the deployment.
    pub own_key: bool,
}

/// Which models a call would use now.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ModelChoice {
    /// Who needs the reply.
    pub role: AgentRole,
    /// The tier of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<ModelTier>,
    /// The size of the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskTier>,
    /// The kind of work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
    /// The level that decided. The levels are asked in this order: `forced`, `max_quality`, `canary`, `preference`, `locked`, `tier`,
    /// `vendor`, `work`, `role`, `default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    /// Why.
    #[schema(example = "the tier decides")]
    pub why: String,
    /// The models in the order in which they are called. Each one replaces the one before it if that one fails.
    pub models: Vec<ChosenModel>,
}

/// A model of a choice.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ChosenModel {
    /// The provider and the model.
    #[schema(value_type = String, example = "anthropic/claude-sonnet-5-5")]
    pub model: ModelRef,
    /// The model has failed, and is not called until this time if another one can be called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_until: Option<Timestamp>,
}

/// A known model.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ModelView {
    /// The provider and the model.
    #[schema(value_type = String, example = "anthropic/claude-sonnet-5-5")]
    pub model: ModelRef,
    /// What it is used for.
    pub kinds: Vec<ModelClass>,
    /// Whether its provider can be called.
    pub usable: bool,
    /// Left out if the price is not known. Such a model is not called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<PriceView>,
}

/// The price of a model, in micro-dollars per million tokens.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct PriceView {
    #[serde(flatten)]
    pub rates: RatesView,
    /// The largest input, in tokens.
    pub max_input_tokens: u64,
    /// The largest reply, in tokens.
    pub max_output_tokens: u32,
    /// The rates of a whole call with a larger input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub above: Option<AboveView>,
    /// The price of a search of the web by the provider, in micro-dollars. Left out if the model can't search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub web_search_micros: Option<i64>,
    /// The price of a container in which the provider runs code (xAI: of a run), in micro-dollars. Left out if the model can't run code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code_execution_micros: Option<i64>,
}

/// The rates of calls with a larger input.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct AboveView {
    /// The rates apply if the input has more tokens than this.
    pub input_tokens: u64,
    #[serde(flatten)]
    pub rates: RatesView,
}

/// Micro-dollars per million tokens.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct RatesView {
    /// Input that is neither read from a cache nor written to one.
    pub input: u64,
    /// Input that is read from a cache.
    pub cache_read: u64,
    /// Input that is written to a cache for five minutes.
    pub cache_write_5m: u64,
    /// Input that is written to a cache for an hour.
    pub cache_write_1h: u64,
    /// The reply, with its thoughts.
    pub output: u64,
}

impl From<&Rates> for RatesView {
    /// Pico-dollars per token are micro-dollars per million tokens.
    fn from(&Rates { input, cache_read, cache_write_5m, cache_write_1h, output }: &Rates) -> Self {
        Self { input, cache_read, cache_write_5m, cache_write_1h, output }
    }
}

impl PriceView {
    fn of(model: &ModelRef, price: &ModelPrice) -> Self {
        let tools = provider_tools::prices(model);
        Self {
            rates: (&price.rates).into(),
            max_input_tokens: price.max_input,
            max_output_tokens: price.max_output,
            above: price
                .above
                .map(|tier| AboveView { input_tokens: tier.tokens, rates: (&tier.rates).into() }),
            web_search_micros: tools.map(|tools| tools.web_search_micros),
            code_execution_micros: tools.map(|tools| tools.code_execution_micros),
        }
    }
}

/// What an owner chooses about models. A field that is left out has its default.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"max_quality": false, "models": {"deep": "anthropic/claude-opus-5-5"}}))]
pub struct ChooseModels {
    /// One model for all agents, as `provider/model`. Steps of the platform itself keep their model.
    #[serde(default)]
    #[schema(example = "anthropic/claude-sonnet-5-5")]
    pub preferred: Option<String>,
    /// Whether agents use the most capable models.
    #[serde(default)]
    pub max_quality: bool,
    /// The preferred model of a kind.
    #[serde(default)]
    pub models: BTreeMap<ModelClass, String>,
}

impl ChooseModels {
    /// # Errors
    /// With every field that names no model that can be called.
    fn checked(
        self,
        usable: &[(Vendor, bool)],
        price: impl Fn(&ModelRef) -> Option<ModelPrice>,
    ) -> Result<ModelSettings, FieldErrors> {
        let mut errors = FieldErrors::default();
        let mut parsed = |field: &str, text: &str| {
            let wrong = match text.parse::<ModelRef>() {
                Err(error) => error.to_string(),
                Ok(model) if usable.iter().all(|(vendor, _)| *vendor != model.vendor) => {
                    let names: Vec<&str> = usable.iter().map(|(vendor, _)| vendor.as_str()).collect();
                    format!("names a provider without a key; usable are: {}", names.join(", "))
                }
                Ok(model) if price(&model).is_none() => {
                    "names a model without a known price, so no budget would limit it; GET /models lists the others"
                        .to_owned()
                }
                Ok(model) => return Some(model),
            };
            errors.add(field, wrong);
            None
        };
        let preferred = self.preferred.as_deref().and_then(|text| parsed("preferred", text));
        let models = self.models.iter().filter_map(|(class, text)| {
            parsed(&format!("models.{}", class.as_str()), text).map(|model| (*class, model))
        });
        let settings = ModelSettings { preferred, max_quality: self.max_quality, models: models.collect() };
        errors.into_result(settings)
    }
}

/// The models of an owner.
///
/// # Errors
/// If the table does not answer.
pub async fn view(cx: &Cx, owner: &Owner, asked: AskedModels) -> Result<ModelsView> {
    let (settings, of_owner) = tokio::try_join!(
        async { Ok(cx.store.model_settings(owner).await?) },
        model_choice::of_owner(cx, owner)
    )?;
    let providers = cx.models.vendors_of(&of_owner);
    let mut choices = Vec::new();
    for ask in asked.asks() {
        choices.push(choice(cx, owner, ask).await?);
    }
    Ok(ModelsView {
        as_of: cx.models.catalog().as_of(),
        models: models(cx, &of_owner, &providers),
        providers: providers.iter().map(|&(provider, own_key)| ProviderView { provider, own_key }).collect(),
        choices,
        canary: cx.models.canary().map(|canary| CanaryView {
            model: canary.model.clone(),
            percent: canary.percent,
            usable: providers.iter().any(|(vendor, _)| *vendor == canary.model.vendor),
        }),
        settings: settings.value,
    })
}

async fn choice(cx: &Cx, owner: &Owner, ask: Ask) -> Result<ModelChoice> {
    let now = cx.clock.now();
    // No canary: it concerns single runs.
    let route = model_choice::route(cx, owner, &ask, 100).await?;
    let (level, why, models) = match route {
        Ok(route) => {
            let chosen = |candidate: &models::Candidate| ChosenModel {
                model: candidate.model.clone(),
                paused_until: match candidate.gate(now) {
                    Gate::Open { until } => Some(until),
                    Gate::Closed | Gate::Probe => None,
                },
            };
            (Some(route.level), route.why.to_owned(), route.candidates.iter().map(chosen).collect())
        }
        Err(error) => (None, error.to_string(), Vec::new()),
    };
    Ok(ModelChoice { role: ask.role, tier: ask.tier, task: ask.task, work: ask.work, level, why, models })
}

/// The models of the catalog and those that the owner has chosen.
fn models(cx: &Cx, owner: &OwnerModels, providers: &[(Vendor, bool)]) -> Vec<ModelView> {
    let catalog = cx.models.catalog().clone().preferring(&owner.first);
    let known: std::collections::BTreeSet<ModelRef> =
        catalog.models().cloned().chain(owner.preferred.clone()).collect();
    let is_usable = |vendor| providers.iter().any(|(usable, _)| *usable == vendor);
    known
        .into_iter()
        // The demo is no choice for somebody who has a key.
        .filter(|model| model.vendor != Vendor::Demo || is_usable(Vendor::Demo))
        .map(|model| ModelView {
            kinds: ModelClass::ALL.into_iter().filter(|class| catalog.of(*class).contains(&model)).collect(),
            usable: is_usable(model.vendor),
            price: cx.models.price(owner, &model).map(|price| PriceView::of(&model, &price)),
            model,
        })
        .collect()
}

/// Stores what an owner has chosen, and returns the models as they are then.
///
/// # Errors
/// 400 with every field that names no model that can be called.
pub async fn choose(cx: &Cx, owner: &Owner, input: ChooseModels) -> Result<ModelsView> {
    let of_owner = model_choice::of_owner(cx, owner).await?;
    let usable = cx.models.vendors_of(&of_owner);
    let settings = input.checked(&usable, |model| cx.models.price(&of_owner, model))?;
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let version = cx.store.model_settings(owner).await?.version;
        if cx.store.replace_model_settings(owner, &settings, version).await?.done() {
            return view(cx, owner, AskedModels::default()).await;
        }
    }
}
