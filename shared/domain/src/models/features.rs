//! Features of the model layer that the operator of a deployment can switch.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{CacheTtl, ModelRequest};

/// The features. The default is what most deployments want.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Features {
    /// Providers keep the stable beginning of a conversation, so that it is cheaper to send again.
    pub prompt_caching: bool,
    /// How long a provider is asked to keep the instructions of an agent.
    pub prompt_cache_ttl: CacheTtl,
    /// The effort that a model spends on thinking depends on the tier.
    pub adaptive_thinking: bool,
    /// Old results of tools are removed from a long conversation.
    pub context_editing: bool,
    /// Structured answers are requested with a JSON Schema from providers that support it.
    pub structured_outputs: bool,
    /// Providers that support it cite the documents of the request.
    pub citations: bool,
}

impl Default for Features {
    fn default() -> Self {
        Self {
            prompt_caching: true,
            prompt_cache_ttl: CacheTtl::OneHour,
            adaptive_thinking: true,
            context_editing: true,
            structured_outputs: false,
            citations: false,
        }
    }
}

impl Features {
    /// Changes the cache marks of a request.
    pub fn apply(&self, request: &mut ModelRequest) {
        for block in &mut request.system {
            block.cache = match block.cache {
                Some(CacheTtl::OneHour) if self.prompt_caching => Some(self.prompt_cache_ttl),
                marked if self.prompt_caching => marked,
                _ => None,
            };
        }
        request.cache_last_turn &= self.prompt_caching;
    }

    /// Reads texts such as `prompt_caching=off,prompt_cache_ttl=5m`. A feature that is not named keeps its default.
    ///
    /// # Errors
    /// What is wrong, as a predicate.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut features = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let (name, value) = (name.trim(), value.trim());
            if name == "prompt_cache_ttl" {
                features.prompt_cache_ttl = match value {
                    "5m" => CacheTtl::FiveMinutes,
                    "1h" => CacheTtl::OneHour,
                    _ => {
                        return Err(format!(
                            "must set `prompt_cache_ttl` to `5m` or `1h`, sets it to `{value}`"
                        ));
                    }
                };
                continue;
            }
            let switch = match name {
                "prompt_caching" => &mut features.prompt_caching,
                "adaptive_thinking" => &mut features.adaptive_thinking,
                "context_editing" => &mut features.context_editing,
                "structured_outputs" => &mut features.structured_outputs,
                "citations" => &mut features.citations,
                _ => {
                    return Err(format!(
                        "must name prompt_caching, prompt_cache_ttl, adaptive_thinking, context_editing, structured_outputs or citations, names `{name}`"
                    ));
                }
            };
            *switch = match value {
                "on" => true,
                "off" => false,
                _ => return Err(format!("must set `{name}` to `on` or `off`, sets it to `{value}`")),
            };
        }
        Ok(features)
    }
}

#[cfg(test)]
mod tests {
    use super::super::SystemBlock;
    use super::super::request::tests::request;
    use super::*;

    #[test]
    fn the_cache_marks_follow_the_features() {
        let marks = |text: &str| {
            let mut request = request();
            request.system.insert(1, SystemBlock::cached("often changed", CacheTtl::FiveMinutes));
            Features::parse(text).unwrap().apply(&mut request);
            let marks: Vec<Option<CacheTtl>> = request.system.iter().map(|block| block.cache).collect();
            (marks, request.cache_last_turn)
        };
        let (five, hour) = (Some(CacheTtl::FiveMinutes), Some(CacheTtl::OneHour));
        assert_eq!(marks(""), (vec![hour, five, None], true));
        assert_eq!(marks("prompt_cache_ttl=5m"), (vec![five, five, None], true));
        assert_eq!(marks("prompt_caching=off"), (vec![None, None, None], false));
    }

    #[test]
    fn a_text_sets_what_it_names() {
        assert_eq!(Features::parse(" ,").unwrap(), Features::default());
        let set = Features::parse("citations=on, adaptive_thinking = off").unwrap();
        assert_eq!(set, Features { citations: true, adaptive_thinking: false, ..Features::default() });
        for (text, told) in [
            ("citations", "must set `citations` to `on` or `off`, sets it to ``"),
            ("citations=1", "must set `citations` to `on` or `off`, sets it to `1`"),
            ("prompt_cache_ttl=2h", "must set `prompt_cache_ttl` to `5m` or `1h`, sets it to `2h`"),
        ] {
            assert_eq!(Features::parse(text).unwrap_err(), told);
        }
        assert!(Features::parse("promptCaching=on").unwrap_err().ends_with("names `promptCaching`"));
    }
}
