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
    /// How much a model thinks depends on its tier. Otherwise its provider decides.
    pub adaptive_thinking: bool,
    /// Providers that support it remove old results of tools from a long conversation.
    pub context_editing: bool,
    /// The check of an output is requested with a JSON Schema from models that support it.
    pub structured_outputs: bool,
}

impl Default for Features {
    fn default() -> Self {
        Self {
            prompt_caching: true,
            prompt_cache_ttl: CacheTtl::OneHour,
            adaptive_thinking: true,
            context_editing: true,
            structured_outputs: false,
        }
    }
}

impl Features {
    /// Removes from a request what is switched off.
    pub fn apply(&self, request: &mut ModelRequest) {
        for block in &mut request.system {
            block.cache = match block.cache {
                Some(CacheTtl::OneHour) if self.prompt_caching => Some(self.prompt_cache_ttl),
                marked if self.prompt_caching => marked,
                _ => None,
            };
        }
        request.cache_last_turn &= self.prompt_caching;
        request.stable_messages = request.stable_messages.filter(|_| self.prompt_caching);
        request.effort = request.effort.filter(|_| self.adaptive_thinking);
        request.context_editing &= self.context_editing;
        request.output_schema = request.output_schema.take().filter(|_| self.structured_outputs);
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
                _ => {
                    return Err(format!(
                        "must name prompt_caching, prompt_cache_ttl, adaptive_thinking, context_editing or structured_outputs, names `{name}`"
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
    use super::super::request::tests::request;
    use super::super::{Effort, SystemBlock};
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
    fn what_is_off_is_not_requested() {
        let of = |text: &str| {
            let mut request = ModelRequest {
                effort: Some(Effort::High),
                context_editing: true,
                output_schema: Some(serde_json::json!({"type": "object"})),
                ..request()
            };
            Features::parse(text).unwrap().apply(&mut request);
            (request.effort, request.context_editing, request.output_schema.is_some())
        };
        assert_eq!(of(""), (Some(Effort::High), true, false));
        assert_eq!(
            of("adaptive_thinking=off,context_editing=off,structured_outputs=on"),
            (None, false, true)
        );
    }

    #[test]
    fn a_text_sets_what_it_names() {
        assert_eq!(Features::parse(" ,").unwrap(), Features::default());
        let set = Features::parse("structured_outputs=on, adaptive_thinking = off").unwrap();
        assert_eq!(
            set,
            Features { structured_outputs: true, adaptive_thinking: false, ..Features::default() }
        );
        for (text, told) in [
            ("context_editing", "must set `context_editing` to `on` or `off`, sets it to ``"),
            ("context_editing=1", "must set `context_editing` to `on` or `off`, sets it to `1`"),
            ("prompt_cache_ttl=2h", "must set `prompt_cache_ttl` to `5m` or `1h`, sets it to `2h`"),
        ] {
            assert_eq!(Features::parse(text).unwrap_err(), told);
        }
        assert!(Features::parse("promptCaching=on").unwrap_err().ends_with("names `promptCaching`"));
    }
}
