//! Kinds of models, and the models of each kind. The models are data (`catalog.json`) with a date. A deployment and an owner can
//! put other models before them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::request::{ModelId, ModelTier};
use super::vendor::Vendor;

/// The longest model id, in bytes.
pub const MAX_MODEL_ID: usize = 200;

static DEFAULT: LazyLock<Catalog> = LazyLock::new(|| {
    serde_json::from_str(include_str!("catalog.json")).expect("the catalog is checked by a test")
});

/// A model of a provider, as text `provider/model`. The model's part may contain `/`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModelRef {
    pub vendor: Vendor,
    pub model: ModelId,
}

/// A model and its provider. Two providers may have models with the same id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UsedModel {
    /// `None` for calls that an earlier version counted.
    pub vendor: Option<Vendor>,
    pub model: ModelId,
}

impl From<&ModelRef> for UsedModel {
    fn from(model: &ModelRef) -> Self {
        Self { vendor: Some(model.vendor), model: model.model.clone() }
    }
}

/// The text does not name a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidModelRef {
    #[error("must be a provider, a slash and a model, for example `anthropic/claude-sonnet-5-5`")]
    Form,
    #[error(
        "has no provider: it must begin with one of {}, or with the name of a server",
        Vendor::ALL.each_ref().map(Vendor::as_str).join(", ")
    )]
    Vendor,
    #[error("the model must have 1 to {MAX_MODEL_ID} printable characters")]
    Model,
}

impl FromStr for ModelRef {
    type Err = InvalidModelRef;

    fn from_str(text: &str) -> Result<Self, InvalidModelRef> {
        let (vendor, model) = text.split_once('/').ok_or(InvalidModelRef::Form)?;
        let vendor = vendor.parse().map_err(|_| InvalidModelRef::Vendor)?;
        if model.is_empty()
            || model.len() > MAX_MODEL_ID
            || !model.bytes().all(|byte| byte.is_ascii_graphic())
        {
            return Err(InvalidModelRef::Model);
        }
        Ok(Self { vendor, model: ModelId::new(model) })
    }
}

impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.vendor, self.model)
    }
}

impl Serialize for ModelRef {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ModelRef {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|error: InvalidModelRef| serde::de::Error::custom(format!("`{text}` {error}")))
    }
}

/// A kind of model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelClass {
    /// Cheap and quick.
    Fast,
    Standard,
    /// The most capable.
    Deep,
    /// Quick at changes of code.
    Coder,
    /// For explanations.
    Explainer,
    /// For documentation.
    Documenter,
}

impl ModelClass {
    pub const ALL: [Self; 6] =
        [Self::Fast, Self::Standard, Self::Deep, Self::Coder, Self::Explainer, Self::Documenter];

    /// As in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Standard => "standard",
            Self::Deep => "deep",
            Self::Coder => "coder",
            Self::Explainer => "explainer",
            Self::Documenter => "documenter",
        }
    }
}

impl From<ModelTier> for ModelClass {
    fn from(tier: ModelTier) -> Self {
        match tier {
            ModelTier::Fast => Self::Fast,
            ModelTier::Standard => Self::Standard,
            ModelTier::Deep => Self::Deep,
        }
    }
}

/// The models of each kind, the preferred one first.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Catalog {
    as_of: jiff::civil::Date,
    #[serde(flatten)]
    classes: BTreeMap<ModelClass, Vec<ModelRef>>,
    /// The last models to call if all others fail.
    spare: Vec<ModelRef>,
}

impl Default for Catalog {
    fn default() -> Self {
        DEFAULT.clone()
    }
}

impl Catalog {
    /// The day on which the models were chosen.
    #[must_use]
    pub const fn as_of(&self) -> jiff::civil::Date {
        self.as_of
    }

    /// The models of a kind, the preferred one first.
    #[must_use]
    pub fn of(&self, class: ModelClass) -> &[ModelRef] {
        self.classes.get(&class).map_or(&[], Vec::as_slice)
    }

    #[must_use]
    pub fn spare(&self) -> &[ModelRef] {
        &self.spare
    }

    /// Every model, once.
    pub fn models(&self) -> impl Iterator<Item = &ModelRef> {
        let all: std::collections::BTreeSet<_> = self.classes.values().flatten().chain(&self.spare).collect();
        all.into_iter()
    }

    /// Puts models before the others of their kinds.
    #[must_use]
    pub fn preferring(mut self, first: &BTreeMap<ModelClass, Vec<ModelRef>>) -> Self {
        for (class, models) in first {
            let others = self.classes.entry(*class).or_default();
            others.retain(|model| !models.contains(model));
            others.splice(0..0, models.iter().cloned());
        }
        self
    }

    /// Adds a model of every kind after the others.
    #[must_use]
    pub fn ending_with(mut self, model: &ModelRef) -> Self {
        for class in ModelClass::ALL {
            self.classes.entry(class).or_default().push(model.clone());
        }
        self
    }

    /// A catalog with one model for everything.
    #[must_use]
    pub fn only(model: &ModelRef) -> Self {
        let classes = ModelClass::ALL.map(|class| (class, vec![model.clone()]));
        Self { as_of: DEFAULT.as_of, classes: classes.into(), spare: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::prices;
    use super::*;

    #[test]
    fn every_model_of_the_catalog_has_a_price() {
        let catalog = Catalog::default();
        assert_eq!(catalog.as_of(), prices::as_of());
        for model in catalog.models() {
            assert!(prices::price(&model.model).is_some(), "{model}");
        }
        for class in ModelClass::ALL {
            assert!(!catalog.of(class).is_empty(), "{}", class.as_str());
            assert_eq!(serde_json::to_value(class).unwrap(), class.as_str());
        }
        let server = Vendor::Server("ollama".parse().unwrap());
        for vendor in Vendor::ALL.into_iter().chain([server]) {
            let value = serde_json::to_value(vendor).unwrap();
            assert_eq!(value, vendor.as_str());
            assert_eq!(serde_json::from_value::<Vendor>(value).unwrap(), vendor);
        }
    }

    #[test]
    fn a_known_model_has_its_provider() {
        for model in Catalog::default().models() {
            assert_eq!(Vendor::of_known(&model.model), Some(model.vendor), "{model}");
        }
        assert_eq!(Vendor::of_known(&ModelId::new("demo-priced")), Some(Vendor::Demo));
        assert_eq!(Vendor::of_known(&ModelId::new("llama3.2")), None);
    }

    #[test]
    fn a_model_reads_back_unchanged() {
        let check = |text: &str, vendor: Vendor, model: &str| {
            let parsed: ModelRef = text.parse().unwrap();
            assert_eq!((parsed.vendor, parsed.model.as_str()), (vendor, model));
            assert_eq!(parsed.to_string(), text);
        };
        check("anthropic/claude-sonnet-5-5", Vendor::Anthropic, "claude-sonnet-5-5");
        let server = |name: &str| Vendor::Server(name.parse().unwrap());
        check("compatible/openai/o3-mini-high", server("compatible"), "openai/o3-mini-high");
        check("gpu-2/org::m", server("gpu-2"), "org::m");
        let long = format!("xai/{}", "m".repeat(MAX_MODEL_ID + 1));
        for (text, expected) in [
            ("claude", InvalidModelRef::Form),
            ("Nobody/claude", InvalidModelRef::Vendor),
            ("open ai/claude", InvalidModelRef::Vendor),
            ("/claude", InvalidModelRef::Vendor),
            ("xai/", InvalidModelRef::Model),
            ("xai/a b", InvalidModelRef::Model),
            ("xai/a\nb", InvalidModelRef::Model),
            (&long, InvalidModelRef::Model),
        ] {
            assert_eq!(text.parse::<ModelRef>(), Err(expected), "{text}");
        }
    }

    #[test]
    fn preferred_models_come_first_and_once() {
        let mine: ModelRef = "xai/grok-4.3".parse().unwrap();
        let catalog = Catalog::default().preferring(&[(ModelClass::Standard, vec![mine.clone()])].into());
        let standard = catalog.of(ModelClass::Standard);
        assert_eq!(standard[0], mine);
        assert_eq!(standard.len(), Catalog::default().of(ModelClass::Standard).len());
        assert_eq!(catalog.of(ModelClass::Deep), Catalog::default().of(ModelClass::Deep));
    }
}
