//! Which sub-agents' hooks a project records.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::validate::FieldErrors;

/// The largest number of prefixes in a filter.
const MAX_PREFIXES: usize = 20;
/// The largest length of a prefix, in characters. A longer prefix is refused.
const MAX_PREFIX: usize = 39;

/// Records hooks of sub-agents whose type begins with one of the prefixes. `"all"` records every hook.
///
/// A new project records every hook: the agents that come with an assistant have no common prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "HookFilterText", into = "HookFilterText")]
pub enum HookFilter {
    #[default]
    All,
    Prefixes(Vec<String>),
}

/// `"all"`, one prefix, or a list of them.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
#[schema(example = json!(["the-"]))]
pub enum HookFilterText {
    One(String),
    Many(Vec<String>),
}

impl From<HookFilterText> for HookFilter {
    fn from(text: HookFilterText) -> Self {
        match text {
            HookFilterText::One(word) if word == "all" => Self::All,
            HookFilterText::One(prefix) => Self::Prefixes(vec![prefix]),
            HookFilterText::Many(prefixes) => Self::Prefixes(prefixes),
        }
    }
}

impl From<HookFilter> for HookFilterText {
    fn from(filter: HookFilter) -> Self {
        match filter {
            HookFilter::All => Self::One("all".to_owned()),
            HookFilter::Prefixes(prefixes) => Self::Many(prefixes),
        }
    }
}

impl HookFilter {
    /// Whether hooks of sub-agents of this type are recorded.
    #[must_use]
    pub fn takes(&self, agent_type: &str) -> bool {
        match self {
            Self::All => true,
            Self::Prefixes(prefixes) => prefixes.iter().any(|prefix| agent_type.starts_with(prefix)),
        }
    }

    pub(super) fn check(&self, field: &str, errors: &mut FieldErrors) {
        let Self::Prefixes(prefixes) = self else { return };
        if !(1..=MAX_PREFIXES).contains(&prefixes.len()) {
            errors.add(field, format!("must have 1 to {MAX_PREFIXES} prefixes, has {}", prefixes.len()));
        }
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        for (at, prefix) in prefixes.iter().enumerate() {
            if !(1..=MAX_PREFIX).contains(&prefix.len()) || !prefix.bytes().all(allowed) {
                let message = format!("must be 1 to {MAX_PREFIX} of the characters A-Z a-z 0-9 _ -");
                errors.add(format!("{field}[{at}]"), message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_filter_is_a_word_a_prefix_or_a_list() {
        let check = |text: Value, shown: Value, taken: &str, left: Option<&str>| {
            let filter: HookFilter = serde_json::from_value(text.clone()).unwrap();
            assert_eq!(serde_json::to_value(&filter).unwrap(), shown, "{text}");
            assert!(filter.takes(taken), "{text}");
            assert!(left.is_none_or(|left| !filter.takes(left)), "{text}");
        };
        check(json!("all"), json!("all"), "general-purpose", None);
        check(json!("the-"), json!(["the-"]), "the-builder", Some("builder"));
        check(json!(["a", "b-"]), json!(["a", "b-"]), "b-1", Some("c"));
        for agent_type in ["general-purpose", "Explore", "the-architect", ""] {
            assert!(HookFilter::default().takes(agent_type), "{agent_type}");
        }
    }

    #[test]
    fn limits_are_named() {
        let check = |filter: Value, expected: &str| {
            let mut errors = FieldErrors::default();
            serde_json::from_value::<HookFilter>(filter).unwrap().check("hook_filter", &mut errors);
            assert_eq!(errors.to_string(), expected);
        };
        check(json!([]), "hook_filter: must have 1 to 20 prefixes, has 0");
        check(json!(vec!["a"; 21]), "hook_filter: must have 1 to 20 prefixes, has 21");
        check(json!(["ok", "a b"]), "hook_filter[1]: must be 1 to 39 of the characters A-Z a-z 0-9 _ -");
    }
}
