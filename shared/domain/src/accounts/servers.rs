//! Model servers that an owner adds. Their addresses come from people, so each must be public unless the operator allows its host.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::models::catalog::MAX_MODEL_ID;
use crate::models::price_list::SetPrice;
use crate::models::{ModelClass, ModelId, ModelRef, PriceList, ServerName, Vendor};
use crate::reach::{self, Policy};
use crate::validate::FieldErrors;

/// The most servers of an owner.
pub const MAX_SERVERS: usize = 10;

/// The most models of a server, and the most prices.
pub const MAX_SERVER_MODELS: usize = 50;

/// The model that a server without named models is called with: the first one that it lists.
pub const FIRST_MODEL: &str = "auto";

/// A server with the format of OpenAI, as its owner describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "url": "https://openrouter.ai/api/v1", "models": {"deep": ["z-ai/glm-5"]},
    "prices": {"z-ai/glm-5": {"input": 600_000, "output": 2_200_000}},
}))]
pub struct ServerSettings {
    /// The base address, which usually ends in `/v1`. Its host must be public, unless the operator allows it.
    #[schema(max_length = 8192)]
    pub url: String,
    /// Whether its models can call tools. If not, tools are explained in words.
    #[serde(default = "yes")]
    #[schema(default = true)]
    pub tools: bool,
    /// Its models, by kind. At most 50. Without any, the first model that it lists is used for every kind.
    #[serde(default)]
    #[schema(value_type = BTreeMap<ModelClass, Vec<String>>)]
    pub models: BTreeMap<ModelClass, Vec<ModelId>>,
    /// The price of each model, at most 50. `*` stands for all others. A model without a price is not called.
    #[serde(default)]
    pub prices: BTreeMap<String, SetPrice>,
}

const fn yes() -> bool {
    true
}

impl ServerSettings {
    /// # Errors
    /// With each field that is invalid.
    pub fn check(&self, name: ServerName, policy: &Policy) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        if let Err(refused) = reach::check(&self.url, policy) {
            errors.add("url", refused.to_string());
        } else if self.url.contains(['?', '#']) {
            errors.add("url", "must have no query and no fragment");
        }
        let models = self.models.values().flatten();
        let is_id = |id: &ModelId| {
            let id = id.as_str();
            (1..=MAX_MODEL_ID).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
        };
        if models.clone().count() > MAX_SERVER_MODELS {
            errors.add("models", format!("must have at most {MAX_SERVER_MODELS} models"));
        }
        if !models.clone().all(is_id) {
            errors.add("models", format!("each must have 1 to {MAX_MODEL_ID} printable characters"));
        }
        if self.prices.len() > MAX_SERVER_MODELS {
            errors.add("prices", format!("must have at most {MAX_SERVER_MODELS} prices"));
        }
        if !self.prices.keys().all(|model| is_id(&ModelId::new(model.as_str()))) {
            errors.add("prices", format!("each model must have 1 to {MAX_MODEL_ID} printable characters"));
        }
        let mut list = PriceList::default();
        for (model, price) in &self.prices {
            let set = list.set(&model_of(name, &ModelId::new(model.as_str())), *price);
            errors.nest("prices", set.map_err(|problem| FieldErrors::one(model.as_str(), problem)));
        }
        let first = ModelId::new(FIRST_MODEL);
        let mut used = models.chain(self.models.is_empty().then_some(&first));
        if let Some(unpriced) = used.find(|model| list.of(&model_of(name, model)).is_none()) {
            errors.add(
                "prices",
                format!("must have the price of `{unpriced}`, or one for `*`, so that budgets limit its cost; `free` is a price"),
            );
        }
        errors.into_result(())
    }

    /// The prices of its models. They were checked when they were stored.
    #[must_use]
    pub fn price_list(&self, name: ServerName) -> PriceList {
        let mut list = PriceList::default();
        for (model, price) in &self.prices {
            let _ = list.set(&model_of(name, &ModelId::new(model.as_str())), *price);
        }
        list
    }
}

fn model_of(server: ServerName, model: &ModelId) -> ModelRef {
    ModelRef { vendor: Vendor::Server(server), model: model.clone() }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn problems(settings: Value, policy: &Policy) -> Vec<String> {
        let settings: ServerSettings = serde_json::from_value(settings).unwrap();
        let checked = settings.check("mine".parse().unwrap(), policy);
        checked.err().map_or_else(Vec::new, |errors| {
            errors.0.into_iter().map(|error| format!("{}: {}", error.field, error.message)).collect()
        })
    }

    #[test]
    fn a_server_has_a_public_address_and_a_price_for_each_model() {
        let public = Policy::default();
        let free = json!({"url": "https://models.example.com/v1", "prices": {"*": "free"}});
        assert_eq!(problems(free.clone(), &public), [""; 0]);
        let check = |field: &str, value: Value, says: &str| {
            let mut settings = free.clone();
            settings[field] = value;
            let found = problems(settings.clone(), &public);
            assert!(found.len() == 1 && found[0].contains(says), "{settings}: {found:?}");
        };
        for url in [
            "http://127.0.0.1:11434/v1",
            "http://[::1]/v1",
            "http://0x7f.1/v1",
            "http://models.internal/v1",
            "ftp://a.example",
            "a",
        ] {
            check("url", json!(url), "url: ");
        }
        check("url", json!("https://models.example.com/v1?key=x"), "no query");
        check("models", json!({"deep": ["a b"]}), "printable");
        check("models", json!({"deep": vec!["m"; 51]}), "at most 50 models");
        check("prices", json!({}), "must have the price of `auto`");
        check("prices", json!({"*": "free", "": "free"}), "prices: each model must have 1 to 200");
        let huge = json!({"input": 1, "output": 1, "max_input_tokens": u64::MAX});
        check("prices", json!({"*": "free", "m": huge}), "prices.m: `max_input_tokens` must be at most");
        check(
            "prices",
            json!({"*": "free", "m": {"input": 0, "output": 0}}),
            "prices.m: a model without costs",
        );
        let named =
            json!({"url": "https://a.example/v1", "models": {"deep": ["m"]}, "prices": {"n": "free"}});
        assert!(problems(named, &public)[0].contains("must have the price of `m`"));
        let allowed = Policy { allowed_hosts: vec!["127.0.0.1:11434".parse().unwrap()], ..Policy::default() };
        let local = json!({"url": "http://127.0.0.1:11434/v1", "prices": {"*": "free"}});
        assert_eq!(problems(local, &allowed), [""; 0]);
    }
}
