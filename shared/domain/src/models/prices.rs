//! Token prices. The table is data (`prices.json`) with a date. Prices are in pico-dollars per token, so every
//! published price is a whole number. Amounts are in micro-dollars, rounded up.
//!
//! The model `demo` costs nothing. `demo-priced` is the same model at the prices of a small one, so that tests of
//! budgets need no API key.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::request::{ModelId, Provider};
use super::usage::Usage;
use super::vendor::Vendor;

const PICO_PER_MICRO: u128 = 1_000_000;

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    serde_json::from_str(include_str!("prices.json")).expect("the price table is checked by a test")
});

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    as_of: jiff::civil::Date,
    #[serde(rename = "unit")]
    _unit: String,
    models: BTreeMap<String, ModelPrice>,
    /// Tools that providers run, by provider.
    tools: BTreeMap<String, ToolPrices>,
    /// The model that turns texts into vectors, by provider.
    embeddings: BTreeMap<String, EmbeddingModel>,
}

/// The model of a provider that turns texts into vectors.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmbeddingModel {
    pub model: ModelId,
    /// How many numbers a vector has. The models can make longer ones, which take more room than they help.
    pub dimensions: usize,
    /// The most texts in one call.
    pub most_texts: usize,
    /// Pico-dollars per token.
    rate: u64,
}

impl EmbeddingModel {
    /// The model of a provider. `None` if the provider has none.
    #[must_use]
    pub fn of(vendor: Vendor) -> Option<&'static Self> {
        TABLE.embeddings.get(vendor.as_str())
    }

    /// What a call costs: its input, and nothing else.
    #[must_use]
    pub const fn rates(&self) -> Rates {
        let rate = self.rate;
        Rates { input: rate, cache_read: rate, cache_write_5m: rate, cache_write_1h: rate, output: 0 }
    }
}

/// The prices of the tools that a provider runs, in micro-dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolPrices {
    /// One search.
    pub web_search_micros: i64,
    /// One container for the shortest time that is billed. At xAI: one run.
    pub code_execution_micros: i64,
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelPrice {
    #[serde(deserialize_with = "provider")]
    pub provider: Provider,
    /// The largest input, in tokens.
    pub max_input: u64,
    /// The largest reply, in tokens.
    pub max_output: u32,
    /// How the model is told how much to think. `None`: it cannot be told, or does not think.
    #[serde(default)]
    pub thinks: Option<Thinks>,
    /// Who runs tools for the model, if `provider` and `thinks` don't say it: xAI has the format of OpenAI, at other prices.
    #[serde(default)]
    pub tools_of: Option<Vendor>,
    /// Whether a reply can be made to match a JSON Schema.
    #[serde(default)]
    pub schema: bool,
    /// Whether the model can't read images.
    #[serde(default)]
    pub blind: bool,
    /// A conservative estimate for plain text.
    pub bytes_per_token: u64,
    pub rates: Rates,
    /// The rates of the *whole* call if its input is larger than `tokens`.
    #[serde(default)]
    pub above: Option<Tier>,
}

/// How a model is told how much to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Thinks {
    /// Anthropic's adaptive thinking with an effort.
    Adaptive,
    /// OpenAI's effort of reasoning.
    Effort,
    /// Google's level of thinking.
    Level,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tier {
    pub tokens: u64,
    pub rates: Rates,
}

/// Pico-dollars per token, which are micro-dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rates {
    pub input: u64,
    pub cache_read: u64,
    pub cache_write_5m: u64,
    pub cache_write_1h: u64,
    pub output: u64,
}

fn provider<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Provider, D::Error> {
    match String::deserialize(deserializer)?.as_str() {
        "anthropic" => Ok(Provider::Anthropic),
        "openai" => Ok(Provider::OpenAi),
        "google" => Ok(Provider::Google),
        "bedrock" => Ok(Provider::Bedrock),
        other => Err(serde::de::Error::custom(format!("there is no provider {other}"))),
    }
}

impl Vendor {
    /// The provider of a model in the price table.
    #[must_use]
    pub fn of_known(model: &ModelId) -> Option<Self> {
        let id = model.as_str();
        match price(model)?.provider {
            _ if id == "demo" || id == "demo-priced" => Some(Self::Demo),
            Provider::Anthropic => Some(Self::Anthropic),
            // xAI has the format of OpenAI.
            Provider::OpenAi if id.starts_with("grok") => Some(Self::Xai),
            Provider::OpenAi => Some(Self::OpenAi),
            Provider::Google => Some(Self::Google),
            Provider::Bedrock => Some(Self::Bedrock),
        }
    }
}

impl ModelPrice {
    /// The prices of the tools that the provider runs for this model. `None` if it runs none.
    #[must_use]
    pub fn tools(&self) -> Option<&'static ToolPrices> {
        let of_format = self.thinks.map(|_| match self.provider {
            Provider::Anthropic => Vendor::Anthropic,
            Provider::OpenAi => Vendor::OpenAi,
            Provider::Google => Vendor::Google,
            Provider::Bedrock => Vendor::Bedrock,
        });
        TABLE.tools.get(self.tools_of.or(of_format)?.as_str())
    }

    /// Whether the model's cache is written on request. A write then costs more than input that is not cached.
    #[must_use]
    pub const fn sells_cache_writes(&self) -> bool {
        self.rates.cache_write_5m > self.rates.input
    }

    /// Whether a cache entry can be kept for an hour. That costs more than five minutes.
    #[must_use]
    pub const fn sells_long_cache_writes(&self) -> bool {
        self.rates.cache_write_1h > self.rates.cache_write_5m
    }

    /// The rates of a call with so much input.
    #[must_use]
    pub fn rates_for(&self, input_tokens: u64) -> &Rates {
        match &self.above {
            Some(tier) if input_tokens > tier.tokens => &tier.rates,
            _ => &self.rates,
        }
    }

    /// The cost of a call, in micro-dollars, rounded up.
    #[must_use]
    pub fn cost_micros(&self, usage: &Usage) -> i64 {
        let cost = |uses: u64, each: i64| i64::try_from(uses).unwrap_or(i64::MAX).saturating_mul(each);
        let tools = self.tools().map_or(0, |tools| {
            cost(usage.web_searches, tools.web_search_micros)
                .saturating_add(cost(usage.code_runs, tools.code_execution_micros))
        });
        self.rates_for(usage.total_input()).cost_micros(usage).saturating_add(tools)
    }

    /// The highest possible cost of a call, in micro-dollars: every input token is written to a cache, and the reply has
    /// the maximum length. Reserve this amount.
    #[must_use]
    pub fn estimate_micros(&self, input_tokens: u64, max_output_tokens: u32) -> i64 {
        let rates = self.rates_for(input_tokens);
        micros(
            u128::from(input_tokens) * u128::from(rates.dearest_input())
                + u128::from(max_output_tokens) * u128::from(rates.output),
        )
    }

    /// The longest reply, in tokens, that `budget_micros` certainly pays for after `input_tokens` of input. It is never
    /// more than the model's maximum, and 0 if the input alone costs too much.
    #[must_use]
    pub fn max_output_affordable(&self, input_tokens: u64, budget_micros: i64) -> u32 {
        let rates = self.rates_for(input_tokens);
        let budget = u128::from(budget_micros.max(0).unsigned_abs()) * PICO_PER_MICRO;
        let input = u128::from(input_tokens) * u128::from(rates.dearest_input());
        let Some(left) = budget.checked_sub(input) else { return 0 };
        match left.checked_div(u128::from(rates.output)) {
            Some(tokens) => within(tokens, self.max_output),
            None => self.max_output,
        }
    }
}

impl Rates {
    /// The highest price of one input token: it may be written to a cache.
    fn dearest_input(&self) -> u64 {
        self.input.max(self.cache_write_5m).max(self.cache_write_1h)
    }

    /// The cost of the tokens of a call, in micro-dollars, rounded up.
    #[must_use]
    pub fn cost_micros(&self, usage: &Usage) -> i64 {
        let pico = [
            (usage.input_tokens, self.input),
            (usage.cache_read_tokens, self.cache_read),
            (usage.cache_write_5m_tokens, self.cache_write_5m),
            (usage.cache_write_1h_tokens, self.cache_write_1h),
            (usage.output_tokens, self.output),
        ];
        micros(pico.into_iter().map(|(tokens, rate)| u128::from(tokens) * u128::from(rate)).sum())
    }
}

/// The day on which the prices were collected.
#[must_use]
pub fn as_of() -> jiff::civil::Date {
    TABLE.as_of
}

/// The row of `model`. A dated snapshot (`-20260205`, `-2026-02-05`) without its own row uses the row of its family.
#[must_use]
pub fn price(model: &ModelId) -> Option<&'static ModelPrice> {
    let id = model.as_str();
    TABLE.models.get(id).or_else(|| TABLE.models.get(undated(id)?))
}

/// How `model` is told how much to think, if it can be.
#[must_use]
pub fn thinks(model: &ModelId) -> Option<Thinks> {
    price(model)?.thinks
}

/// Whether a reply of `model` can be made to match a JSON Schema.
#[must_use]
pub fn takes_schema(model: &ModelId) -> bool {
    price(model).is_some_and(|price| price.schema)
}

/// Whether `model` can read images. Nobody knows it of a model without a row, so such a model gets the images.
#[must_use]
pub fn sees(model: &ModelId) -> bool {
    price(model).is_none_or(|price| !price.blind)
}

/// `id` without a date at its end.
fn undated(id: &str) -> Option<&str> {
    ["-9999-99-99", "-99999999"].iter().find_map(|pattern| {
        let begin = id.len().checked_sub(pattern.len())?;
        let (family, date) = id.split_at_checked(begin)?;
        let digit_or_dash =
            |(byte, wanted): (u8, u8)| if wanted == b'-' { byte == b'-' } else { byte.is_ascii_digit() };
        date.bytes().zip(pattern.bytes()).all(digit_or_dash).then_some(family)
    })
}

fn micros(pico: u128) -> i64 {
    i64::try_from(pico.div_ceil(PICO_PER_MICRO)).unwrap_or(i64::MAX)
}

/// A number of tokens, at most `limit`.
pub(super) fn within(tokens: u128, limit: u32) -> u32 {
    u32::try_from(tokens).map_or(limit, |tokens| tokens.min(limit))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(id: &str) -> ModelId {
        ModelId::new(id)
    }

    fn cost_micros(model: &ModelId, usage: &Usage) -> Option<i64> {
        price(model).map(|price| price.cost_micros(usage))
    }

    #[test]
    fn the_price_table_is_complete() {
        assert_eq!(as_of().to_string(), "2026-11-21");
        assert!(TABLE.models.len() > 40);
        for (vendor, model) in &TABLE.embeddings {
            let vendor: Vendor = vendor.parse().expect("a provider");
            assert!(vendor.has_table() && EmbeddingModel::of(vendor) == Some(model), "{vendor}");
            assert!(model.rate > 0 && model.most_texts > 0 && model.dimensions == 256, "{vendor}");
        }
        // The demo model is free.
        for (model, price) in TABLE.models.iter().filter(|(model, _)| model.as_str() != "demo") {
            let tiers = std::iter::once(&price.rates).chain(price.above.as_ref().map(|tier| &tier.rates));
            for rates in tiers {
                assert!(rates.input > 0 && rates.output >= rates.input, "{model}");
                assert!(rates.cache_read <= rates.input, "{model}");
                assert!(rates.cache_write_1h >= rates.cache_write_5m, "{model}");
                assert!(rates.cache_write_5m >= rates.input, "{model}");
            }
            assert!(price.max_output > 0 && matches!(price.bytes_per_token, 3 | 4), "{model}");
        }
    }

    #[test]
    fn every_kind_of_token_has_its_price() {
        let check = |model: &str, usage: Usage, micros: Option<i64>| {
            assert_eq!(cost_micros(&id(model), &usage), micros, "{model} {usage:?}");
        };
        let million = 1_000_000;
        let sonnet = "claude-sonnet-4-5";
        check(sonnet, Usage::default(), Some(0));
        check(sonnet, Usage { input_tokens: million, ..Usage::default() }, Some(3_000_000));
        check(sonnet, Usage { cache_read_tokens: million, ..Usage::default() }, Some(300_000));
        check(sonnet, Usage { cache_write_5m_tokens: million, ..Usage::default() }, Some(3_750_000));
        check(sonnet, Usage { cache_write_1h_tokens: million, ..Usage::default() }, Some(6_000_000));
        check(sonnet, Usage { output_tokens: million, ..Usage::default() }, Some(15_000_000));
        // Reasoning is part of the output and is not charged twice.
        check(
            sonnet,
            Usage { output_tokens: million, reasoning_tokens: million, ..Usage::default() },
            Some(15_000_000),
        );
        // 0.3 micro-dollars are rounded up to 1.
        check(sonnet, Usage { cache_read_tokens: 1, ..Usage::default() }, Some(1));
        // Above a tier's limit the whole call costs more; cached input counts towards the limit.
        check("claude-haiku-5-5", Usage { input_tokens: 100_000, ..Usage::default() }, Some(10_000));
        check(
            "claude-haiku-5-5",
            Usage { input_tokens: 100_000, cache_read_tokens: 1, output_tokens: 1_000, ..Usage::default() },
            Some(50_000 + 1 + 2_500),
        );
        let bedrock = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";
        check(bedrock, Usage { input_tokens: million, ..Usage::default() }, Some(6_600_000));
        check(bedrock, Usage { cache_write_1h_tokens: 100_000, ..Usage::default() }, Some(660_000));
        check("demo", Usage { output_tokens: million, ..Usage::default() }, Some(0));
        check("demo-priced", Usage { output_tokens: million, ..Usage::default() }, Some(5_000_000));
        check("llama3.2", Usage { output_tokens: million, ..Usage::default() }, None);
    }

    /// The expected costs were computed from the published prices by another program, with decimal numbers.
    #[test]
    fn recorded_usages_cost_the_published_price_to_the_micro_dollar() {
        #[derive(Deserialize)]
        struct Call {
            model: ModelId,
            usage: Usage,
            micros: i64,
        }
        #[derive(Deserialize)]
        struct Calls {
            calls: Vec<Call>,
        }
        let Calls { calls } = serde_json::from_str(include_str!("../../test_data/costs.json")).unwrap();
        let (mut above, mut written) = (0, 0);
        for Call { model, usage, micros } in &calls {
            assert_eq!(cost_micros(model, usage), Some(*micros), "{model} {usage:?}");
            let tier = price(model).unwrap().above.as_ref();
            above += usize::from(tier.is_some_and(|tier| usage.total_input() > tier.tokens));
            written += usize::from(usage.cache_write_1h_tokens > 0 && usage.cache_write_5m_tokens > 0);
        }
        assert!(calls.len() >= 80 && above >= 10 && written >= 8, "{} {above} {written}", calls.len());
    }

    #[test]
    fn a_dated_snapshot_costs_what_its_family_costs() {
        for (dated, family) in [
            ("claude-haiku-4-5-20251001", Some("claude-haiku-4-5")),
            ("claude-sonnet-5-5-20261001", Some("claude-sonnet-5-5")),
            ("gpt-5.1-2025-11-13", Some("gpt-5.1")),
            ("gpt-5-2025-08-07", Some("gpt-5")),
            ("claude-haiku-4-5-2025100", None),
            ("claude-haiku-4-5-x", None),
            ("-20251001", None),
            ("20251001", None),
            ("é-20251001", None),
            ("", None),
        ] {
            assert_eq!(price(&id(dated)), family.map(|f| &TABLE.models[f]), "{dated}");
        }
    }

    proptest! {
        /// An affordable reply never costs more than the budget it was computed from.
        #[test]
        fn an_affordable_reply_is_within_the_budget(
            model in prop::sample::select(TABLE.models.keys().collect::<Vec<_>>()),
            input in 0u64..2_000_000,
            budget in -10i64..50_000_000,
            share in 0.0f64..=1.0,
        ) {
            let model = id(model);
            let price = price(&model).unwrap();
            let output = price.max_output_affordable(input, budget);
            let reserved = price.estimate_micros(input, output);
            if output > 0 {
                prop_assert!(reserved <= budget);
            }
            let written = (input as f64 * share) as u64;
            let usage = Usage {
                input_tokens: input - written,
                cache_write_1h_tokens: written,
                output_tokens: u64::from(output),
                ..Usage::default()
            };
            prop_assert!(price.cost_micros(&usage) <= reserved);
        }
    }
}
