//! The price of each model that can be called: from the table, or set by a deployment or an owner.
//!
//! A model without a price is never called, because no budget would limit its cost. A server may be declared free.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::catalog::ModelRef;
use super::prices::{self, ModelPrice, Rates};
use super::request::{ModelId, Provider};
use super::vendor::{ServerName, Vendor};

/// Stands for all models of a server that have no price of their own.
pub const ALL_MODELS: &str = "*";

/// The most prices of one list.
pub const MAX_PRICES: usize = 200;

/// The highest price, in micro-dollars per million tokens: a dollar per token. Sums of costs cannot overflow below it.
const MAX_RATE: u64 = 1_000_000_000_000;

/// The highest `max_input_tokens`.
const MAX_TOKENS: u64 = 1_000_000_000;

/// The largest input of a model whose settings do not say it, in tokens.
const MAX_INPUT: u64 = 128_000;

/// The longest reply of such a model, in tokens.
const MAX_OUTPUT: u32 = 16_000;

/// A price as people set it: the word `free`, or rates in micro-dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum SetPrice {
    Free(Free),
    Rates(SetRates),
}

/// The word `free`: the model costs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Free {
    Free,
}

/// Micro-dollars per million tokens. A published price of $2.50 per million tokens is 2500000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetRates {
    /// Input that is neither read from a cache nor written to one.
    #[schema(maximum = 1_000_000_000_000u64)]
    pub input: u64,
    /// The reply, with its thoughts.
    #[schema(maximum = 1_000_000_000_000u64)]
    pub output: u64,
    /// Input that is read from a cache. The default is the price of `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 1_000_000_000_000u64)]
    pub cache_read: Option<u64>,
    /// Input that is written to a cache. The default is the price of `input`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 1_000_000_000_000u64)]
    pub cache_write: Option<u64>,
    /// The largest input, in tokens. The default is 128000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub max_input_tokens: Option<u64>,
    /// The longest reply, in tokens. The default is 16000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub max_output_tokens: Option<u32>,
}

impl<'de> Deserialize<'de> for SetPrice {
    /// Names the field that is wrong, which an untagged enum does not.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = SetPrice;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "`free`, or an object with `input` and `output` in micro-dollars per million tokens",
                )
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<SetPrice, E> {
                if text == "free" {
                    return Ok(SetPrice::Free(Free::Free));
                }
                Err(E::invalid_value(serde::de::Unexpected::Str(text), &self))
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<SetPrice, A::Error> {
                let rates = SetRates::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
                Ok(SetPrice::Rates(rates))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl SetPrice {
    /// What is wrong with it, if something is.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let Self::Rates(rates) = self else { return None };
        let SetRates { input, output, cache_read, cache_write, max_input_tokens, max_output_tokens } = *rates;
        let named = [
            ("input", Some(input)),
            ("output", Some(output)),
            ("cache_read", cache_read),
            ("cache_write", cache_write),
        ];
        if let Some((field, _)) = named.iter().find(|(_, rate)| rate.is_some_and(|rate| rate > MAX_RATE)) {
            return Some(format!("`{field}` must be at most {MAX_RATE} micro-dollars per million tokens"));
        }
        if max_input_tokens.is_some_and(|tokens| tokens > MAX_TOKENS) {
            return Some(format!("`max_input_tokens` must be at most {MAX_TOKENS}"));
        }
        if max_input_tokens == Some(0) || max_output_tokens == Some(0) {
            return Some("`max_input_tokens` and `max_output_tokens` must be at least 1".to_owned());
        }
        if input == 0 && output == 0 {
            return Some("a model without costs is set to `free`".to_owned());
        }
        None
    }

    /// The price of this model. What the table knows about it besides its rates stays.
    fn of(&self, model: &ModelRef) -> ModelPrice {
        let known = prices::price(&model.model).filter(|_| model.vendor.has_table()).copied();
        let Self::Rates(rates) = self else {
            return ModelPrice { rates: Rates::FREE, above: None, ..known.unwrap_or(ModelPrice::FREE) };
        };
        let cache_write = rates.cache_write.unwrap_or(rates.input);
        let set = Rates {
            input: rates.input,
            cache_read: rates.cache_read.unwrap_or(rates.input),
            cache_write_5m: cache_write,
            cache_write_1h: cache_write,
            output: rates.output,
        };
        let known =
            known.unwrap_or(ModelPrice { max_input: MAX_INPUT, max_output: MAX_OUTPUT, ..ModelPrice::FREE });
        ModelPrice {
            rates: set,
            above: None,
            max_input: rates.max_input_tokens.unwrap_or(known.max_input),
            max_output: rates.max_output_tokens.unwrap_or(known.max_output),
            ..known
        }
    }
}

/// The prices that a deployment or an owner has set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PriceList {
    models: BTreeMap<ModelRef, SetPrice>,
    /// The price of a server's other models.
    servers: BTreeMap<ServerName, SetPrice>,
}

impl PriceList {
    /// Reads a JSON object such as `{"openai/gpt-4o": {"input": 2500000, "output": 10000000}, "ollama/*": "free"}`.
    ///
    /// # Errors
    /// A sentence about the entry that is invalid. It follows the name of the setting.
    pub fn parse(json: &str) -> Result<Self, String> {
        let set: BTreeMap<String, serde_json::Value> =
            serde_json::from_str(json).map_err(|error| format!("is invalid: {error}"))?;
        let mut list = Self::default();
        for (name, price) in set {
            let refused = |problem: &dyn fmt::Display| format!("is invalid: `{name}`: {problem}");
            let model: ModelRef = name.parse().map_err(|error| refused(&error))?;
            let price: SetPrice = serde_json::from_value(price).map_err(|error| refused(&error))?;
            list.set(&model, price).map_err(|problem| refused(&problem))?;
        }
        Ok(list)
    }

    /// Sets the price of a model, or of all models of a server.
    ///
    /// # Errors
    /// A sentence if the price is invalid.
    pub fn set(&mut self, model: &ModelRef, price: SetPrice) -> Result<(), String> {
        if let Some(problem) = price.problem() {
            return Err(problem);
        }
        if self.models.len() + self.servers.len() >= MAX_PRICES {
            return Err(format!("there must be at most {MAX_PRICES} prices"));
        }
        match (model.vendor, price) {
            (Vendor::Server(server), _) if model.model.as_str() == ALL_MODELS => {
                self.servers.insert(server, price);
            }
            (Vendor::Server(_), _) => {
                self.models.insert(model.clone(), price);
            }
            (_, SetPrice::Free(_)) => {
                return Err(format!(
                    "`{}` is a provider that sends bills: only models of a server are free",
                    model.vendor
                ));
            }
            (_, SetPrice::Rates(_)) if model.model.as_str() == ALL_MODELS => {
                return Err("`*` names all models of a server, not of a provider".to_owned());
            }
            (_, SetPrice::Rates(_)) => {
                self.models.insert(model.clone(), price);
            }
        }
        Ok(())
    }

    /// The price of a model. `None` if nobody knows it: then the model must not be called.
    #[must_use]
    pub fn of(&self, model: &ModelRef) -> Option<ModelPrice> {
        if let Some(set) = self.models.get(model) {
            return Some(set.of(model));
        }
        match model.vendor {
            Vendor::Server(server) => self.servers.get(&server).map(|set| set.of(model)),
            _ => prices::price(&model.model).copied(),
        }
    }

    /// All set prices, by the name of their model.
    pub fn entries(&self) -> impl Iterator<Item = (ModelRef, SetPrice)> {
        let all = |server: &ServerName| ModelRef {
            vendor: Vendor::Server(*server),
            model: ModelId::new(ALL_MODELS),
        };
        let models = self.models.iter().map(|(model, price)| (model.clone(), *price));
        models.chain(self.servers.iter().map(move |(server, price)| (all(server), *price)))
    }

    /// Adds the prices of another list. They come before those of this one.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        self.models.extend(other.models.iter().map(|(model, price)| (model.clone(), *price)));
        self.servers.extend(other.servers.iter().map(|(server, price)| (*server, *price)));
        self
    }
}

/// What a person should do about a model without a price: the end of an error message.
#[must_use]
pub fn how_to_price(model: &ModelRef) -> String {
    let free = match model.vendor {
        Vendor::Server(server) => format!(", or {{\"{server}/*\": \"free\"}} if its models cost nothing"),
        _ => String::new(),
    };
    format!(
        "has no known price, so no budget would limit its cost: set LAMPLIGHTER_PRICES, for example {{\"{model}\": {{\"input\": \
         2500000, \"output\": 10000000}}}} in micro-dollars per million tokens{free}"
    )
}

impl ModelPrice {
    /// The price of a model that costs nothing, and about which nothing is known.
    pub const FREE: Self = Self {
        provider: Provider::OpenAi,
        max_input: u64::MAX,
        max_output: u32::MAX,
        thinks: None,
        tools_of: None,
        schema: false,
        blind: false,
        bytes_per_token: 3,
        rates: Rates::FREE,
        above: None,
    };

    /// Whether its tokens cost nothing.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.rates == Rates::FREE && self.above.is_none()
    }
}

impl Rates {
    const FREE: Self = Self { input: 0, cache_read: 0, cache_write_5m: 0, cache_write_1h: 0, output: 0 };
}

#[cfg(test)]
mod tests {
    use super::super::Usage;
    use super::*;

    fn model(text: &str) -> ModelRef {
        text.parse().unwrap()
    }

    #[test]
    fn set_prices_come_before_those_of_the_table() {
        let list = PriceList::parse(
            r#"{"openai/gpt-4o": {"input": 2500000, "output": 10000000, "cache_read": 1250000},
                "anthropic/claude-sonnet-5-5": {"input": 1000000, "output": 2000000},
                "ollama/*": "free", "ollama/rented": {"input": 0, "output": 7, "max_output_tokens": 100}}"#,
        )
        .unwrap();
        let million = 1_000_000;
        let used = Usage {
            input_tokens: million,
            cache_read_tokens: million,
            output_tokens: million,
            ..Usage::default()
        };
        for (name, cost) in [
            ("openai/gpt-4o", Some(2_500_000 + 1_250_000 + 10_000_000)),
            ("anthropic/claude-sonnet-5-5", Some(1_000_000 + 1_000_000 + 2_000_000)),
            ("ollama/llama3.2", Some(0)),
            ("ollama/rented", Some(7)),
            ("demo/demo", Some(0)),
            // The table's prices are those of its providers.
            ("other/gpt-6-sol", None),
            ("openai/gpt-nobody", None),
        ] {
            assert_eq!(list.of(&model(name)).map(|price| price.cost_micros(&used)), cost, "{name}");
        }
        let sonnet = list.of(&model("anthropic/claude-sonnet-5-5")).unwrap();
        let table = prices::price(&ModelId::new("claude-sonnet-5-5")).unwrap();
        assert_eq!((sonnet.max_output, sonnet.thinks), (table.max_output, table.thinks), "the rest stays");
        assert_eq!(list.of(&model("ollama/rented")).unwrap().max_output, 100);
        assert!(list.of(&model("ollama/x")).unwrap().is_free() && !sonnet.is_free());
        let entries = list.entries().map(|(model, _)| model.to_string());
        assert_eq!(
            entries.collect::<Vec<_>>(),
            ["anthropic/claude-sonnet-5-5", "openai/gpt-4o", "ollama/rented", "ollama/*"]
        );
        let other = PriceList::parse(r#"{"ollama/*": {"input": 1, "output": 1}}"#).unwrap();
        assert_eq!(list.with(&other).of(&model("ollama/x")).map(|price| price.rates.input), Some(1));
    }

    #[test]
    fn what_a_free_model_may_write_is_not_limited() {
        let free = ModelPrice::FREE;
        assert_eq!((free.estimate_micros(1_000, 1_000), free.max_output_affordable(1_000, 0)), (0, u32::MAX));
    }

    #[test]
    fn an_invalid_price_is_named() {
        for (json, problem) in [
            ("[]", "is invalid: invalid type: sequence, expected a map at line 1 column 0"),
            (r#"{"gpt-4o": "free"}"#, "is invalid: `gpt-4o`: must be a provider, a slash and a model"),
            (r#"{"openai/gpt-4o": "free"}"#, "`openai` is a provider that sends bills"),
            (r#"{"openai/*": {"input": 1, "output": 1}}"#, "`*` names all models of a server"),
            (r#"{"a/*": "cheap"}"#, "invalid value: string \"cheap\", expected `free`, or an object"),
            (r#"{"a/b": {"input": 1}}"#, "missing field `output`"),
            (r#"{"a/b": {"input": 1, "output": 2, "inptu": 3}}"#, "unknown field `inptu`"),
            (r#"{"a/b": {"input": -1, "output": 2}}"#, "invalid value: integer `-1`, expected u64"),
            (r#"{"a/b": {"input": 2.5, "output": 2}}"#, "invalid type: floating point `2.5`, expected u64"),
            (r#"{"a/b": {"input": 1, "output": 1000000000001}}"#, "`output` must be at most 1000000000000"),
            (r#"{"a/b": {"input": 0, "output": 0}}"#, "a model without costs is set to `free`"),
            (r#"{"a/b": {"input": 1, "output": 1, "max_output_tokens": 0}}"#, "must be at least 1"),
        ] {
            let found = PriceList::parse(json).unwrap_err();
            assert!(found.contains(problem), "{json}: {found}");
        }
        let many: Vec<String> = (0..=MAX_PRICES).map(|at| format!("\"a/{at}\": \"free\"")).collect();
        let found = PriceList::parse(&format!("{{{}}}", many.join(","))).unwrap_err();
        assert!(found.contains("at most 200 prices"), "{found}");
    }
}
