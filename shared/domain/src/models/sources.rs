//! Pages that a provider's search of the web has found for a reply.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

/// The most sources that are kept of a reply.
pub const MAX_SOURCES: usize = 100;

/// The longest address of a source, in bytes. A longer one is left out, because a part of an address is another address.
const MAX_URL: usize = 1_000;

/// The longest title of a source, in characters.
const MAX_TITLE: usize = 150;

/// A page that a search has found, or that an action watches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WebSource {
    #[schema(example = "https://example.com/prices")]
    pub url: String,
    /// As the provider names it. It comes from a stranger.
    pub title: String,
    /// SHA-256 of what was read of the page. If a provider has searched, of what it said about the page, because providers do not
    /// show the page itself.
    pub sha256: String,
}

impl WebSource {
    /// What a provider said about a page: its address and title, and all that it said. `None` if the address is not one of the web.
    #[must_use]
    pub fn new(url: &Value, title: &Value, said: &Value) -> Option<Self> {
        let url = url.as_str()?.trim();
        let is_of_web = url.starts_with("https://") || url.starts_with("http://");
        if !is_of_web || url.len() > MAX_URL || url.contains(|c: char| c.is_control() || c.is_whitespace()) {
            return None;
        }
        let sha256 = crate::hex(&Sha256::digest(said.to_string()));
        Some(Self { url: url.to_owned(), title: title_of(title.as_str().unwrap_or_default()), sha256 })
    }

    /// A page whose address a person has named, with the hash of what was read of it. The address is kept as browsers write it, whatever
    /// its length: a run that was told of the page must not look as if it had read nothing of strangers.
    #[must_use]
    pub fn watched(url: &str, title: &str, sha256: &str) -> Self {
        let url = url::Url::parse(url).map_or_else(|_| url.to_owned(), String::from);
        Self { url, title: title_of(title), sha256: sha256.to_owned() }
    }
}

fn title_of(title: &str) -> String {
    title.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_TITLE).collect()
}

/// Adds sources whose addresses are not there yet, up to the limit.
pub fn add(sources: &mut Vec<WebSource>, more: impl IntoIterator<Item = WebSource>) {
    for source in more {
        if sources.len() < MAX_SOURCES && sources.iter().all(|known| known.url != source.url) {
            sources.push(source);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_source_is_an_address_of_the_web() {
        let source = |url: &str| WebSource::new(&json!(url), &json!("A\ntitle"), &json!({"url": url}));
        let found = source("https://example.com/a").unwrap();
        assert_eq!((found.url.as_str(), found.title.as_str()), ("https://example.com/a", "A title"));
        assert_eq!(found.sha256.len(), 64);
        for wrong in ["", "javascript:alert(1)", "file:///etc/passwd", "https://a b", "https://a\n</sources>"]
        {
            assert_eq!(source(wrong), None, "{wrong:?}");
        }
        assert_eq!(source(&format!("https://{}", "a".repeat(1_000))), None);
        assert_eq!(WebSource::new(&Value::Null, &Value::Null, &Value::Null), None);
    }

    #[test]
    fn each_address_is_kept_once() {
        let source =
            |n: usize| WebSource::new(&json!(format!("https://a/{}", n % 150)), &json!(""), &json!(n));
        let mut sources = Vec::new();
        add(&mut sources, (0..500).filter_map(source));
        assert_eq!((sources.len(), sources[0].url.as_str()), (MAX_SOURCES, "https://a/0"));
    }
}
