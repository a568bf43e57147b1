//! The name of a workflow. A project can have several workflows, each with its own document.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

/// The longest name, in characters.
const MAX: usize = 64;

/// The workflow that a document belongs to. Without a name, it is the default workflow.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Workflow(String);

/// Why a text is not a valid name of a workflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to {MAX} letters, digits, `.`, `_` or `-`, and begin with a letter or digit")]
pub struct InvalidWorkflow;

impl Workflow {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Workflow {
    fn default() -> Self {
        Self("default".to_owned())
    }
}

impl FromStr for Workflow {
    type Err = InvalidWorkflow;
    fn from_str(text: &str) -> Result<Self, InvalidWorkflow> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
        let valid = (1..=MAX).contains(&text.len())
            && text.bytes().all(allowed)
            && text.as_bytes()[0].is_ascii_alphanumeric();
        if valid { Ok(Self(text.to_owned())) } else { Err(InvalidWorkflow) }
    }
}

impl fmt::Display for Workflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Workflow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl utoipa::PartialSchema for Workflow {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::String)
            .description(Some("A workflow of a project, which has a context document of its own."))
            .pattern(Some("^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"))
            .examples(["default"])
            .into()
    }
}

impl utoipa::ToSchema for Workflow {}
