//! What an action watches. At a due time, a program looks at these things first. The run takes place only if one of them has
//! changed since the last run that succeeded. So a due time without a change calls no model and costs nothing.
//!
//! - [`Watch`] and [`check`]: what a person names, and its limits
//! - [`page`] and [`feed`]: what an answer of a server contains
//! - [`dates`] and `markup`: the dates of feeds, and the text of their titles
//! - `json`: the hash of JSON by its value
//! - [`state`]: what was seen last, and the decision
//!
//! All functions are pure. `shared` sends the requests and reads the records.

pub mod dates;
pub mod feed;
mod json;
mod markup;
pub mod page;
pub mod state;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use crate::context::Workflow;
use crate::ids::{AssetId, ProjectId};
use crate::text::canonical::canonical;
use crate::validate::FieldErrors;

/// How many things an action may watch.
pub const MAX_WATCHES: usize = 5;

/// The longest address, in bytes.
pub const MAX_URL: usize = 2_000;

/// The longest JSON Pointer, in bytes.
const MAX_POINTER: usize = 500;

/// The longest path of a theme file, in bytes.
const MAX_PATH: usize = 256;

/// Something that an action watches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Watch {
    /// The answer of an HTTP or HTTPS address. Of a page in HTML, only the visible text counts, and of JSON, only the
    /// value.
    Url {
        /// Its host must be public, unless the operator allows it. At most 2,000 bytes.
        #[schema(max_length = 2_000, example = "https://example.com/prices")]
        url: String,
        /// A JSON Pointer (RFC 6901), at most 500 bytes. Then the answer must be JSON, and only the value there counts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(max_length = 500, example = "/plans/0/price")]
        pointer: Option<String>,
    },
    /// The entries of a feed: RSS, Atom or JSON Feed. Only a new entry counts as a change. Of more than
    /// 200 entries, the 200 newest are looked at, or, without dates, the first 100 and the last 100.
    Feed {
        /// Its host must be public, unless the operator allows it. At most 2,000 bytes.
        #[schema(max_length = 2_000, example = "https://example.com/feed.xml")]
        url: String,
    },
    /// The content of an asset.
    Asset { asset_id: AssetId },
    /// A file of a project's theme. To delete it is a change.
    ThemeFile {
        project_id: ProjectId,
        #[schema(max_length = 256, example = "sections/header.liquid")]
        path: String,
    },
    /// A context document of a project.
    ContextDocument {
        project_id: ProjectId,
        /// Default: the default workflow.
        #[serde(default)]
        #[schema(value_type = String, example = "default")]
        workflow: Workflow,
    },
}

impl Watch {
    /// The address that is requested, if it is a thing of the web.
    #[must_use]
    pub fn url(&self) -> Option<&str> {
        match self {
            Self::Url { url, .. } | Self::Feed { url } => Some(url),
            Self::Asset { .. } | Self::ThemeFile { .. } | Self::ContextDocument { .. } => None,
        }
    }

    /// What tells it apart from other things that are watched: 16 hexadecimal digits.
    #[must_use]
    pub fn key(&self) -> String {
        let digest = Sha256::digest(canonical(&serde_json::json!(self)));
        crate::hex(&digest[..8])
    }

    /// Its name in sentences, on one line.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Url { url, pointer: None } => url.clone(),
            Self::Url { url, pointer: Some(pointer) } => format!("the value at {pointer} of {url}"),
            Self::Feed { url } => format!("the feed {url}"),
            Self::Asset { asset_id } => format!("the asset {asset_id}"),
            Self::ThemeFile { project_id, path } => format!("the theme file {path} of {project_id}"),
            Self::ContextDocument { project_id, workflow } => {
                format!("the context document {} of {project_id}", workflow.as_str())
            }
        }
    }
}

/// Checks what a person has written. The errors name fields such as `watches[2].url`. Whether a host may be reached and whether a
/// record exists is not known here.
pub fn check(errors: &mut FieldErrors, watches: &[Watch]) {
    if watches.len() > MAX_WATCHES {
        errors.add("watches", format!("must have at most {MAX_WATCHES} items, has {}", watches.len()));
        return;
    }
    for (at, watch) in watches.iter().enumerate() {
        errors.nest(&format!("watches[{at}]"), valid(watch));
        if watches[..at].contains(watch) {
            errors.add(format!("watches[{at}]"), "is in the list twice");
        }
    }
}

fn valid(watch: &Watch) -> Result<(), FieldErrors> {
    let mut errors = FieldErrors::default();
    let at_most = |errors: &mut FieldErrors, field: &str, text: &str, most: usize| {
        if text.len() > most {
            errors.add(field, format!("must be at most {most} bytes, is {}", text.len()));
        }
        if text.chars().any(char::is_control) {
            errors.add(field, "must not have control characters");
        }
    };
    match watch {
        Watch::Url { url, pointer } => {
            at_most(&mut errors, "url", url, MAX_URL);
            if let Some(pointer) = pointer {
                at_most(&mut errors, "pointer", pointer, MAX_POINTER);
                if !pointer.is_empty() && !pointer.starts_with('/') {
                    errors.add("pointer", "must be empty or begin with `/`, such as /plans/0/price");
                }
            }
        }
        Watch::Feed { url } => at_most(&mut errors, "url", url, MAX_URL),
        Watch::ThemeFile { path, .. } => {
            at_most(&mut errors, "path", path, MAX_PATH);
            if path.is_empty() {
                errors.add("path", "is required");
            }
        }
        Watch::Asset { .. } | Watch::ContextDocument { .. } => {}
    }
    errors.into_result(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn said(watches: Value) -> String {
        let watches: Vec<Watch> = serde_json::from_value(watches).unwrap();
        let mut errors = FieldErrors::default();
        check(&mut errors, &watches);
        errors.into_result(()).map_or_else(|errors| errors.to_string(), |()| String::new())
    }

    #[test]
    fn refusals_name_the_field_and_its_limit() {
        let long = |n: usize| format!("https://a.com/{}", "a".repeat(n - 14));
        let url = |n| json!({"kind": "url", "url": long(n)});
        assert_eq!(said(json!([url(2_000), {"kind": "url", "url": "https://a.com", "pointer": ""}])), "");
        assert_eq!(said(json!([url(2_001)])), "watches[0].url: must be at most 2000 bytes, is 2001");
        assert_eq!(
            said(json!([{"kind": "url", "url": "https://a.com", "pointer": "price"}])),
            "watches[0].pointer: must be empty or begin with `/`, such as /plans/0/price"
        );
        assert_eq!(
            said(json!([{"kind": "feed", "url": "https://a.com/\n</changed>"}])),
            "watches[0].url: must not have control characters"
        );
        assert_eq!(said(json!([url(20), url(20)])), "watches[1]: is in the list twice");
        let six: Vec<Value> = (20..26).map(url).collect();
        assert_eq!(said(json!(six)), "watches: must have at most 5 items, has 6");
        for wrong in [
            json!({"kind": "url"}),
            json!({"kind": "feed", "url": "x", "pointer": ""}),
            json!({"kind": "page"}),
        ] {
            assert!(serde_json::from_value::<Watch>(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn each_field_is_part_of_the_key() {
        let url = |url: &str, pointer: Option<&str>| Watch::Url {
            url: url.to_owned(),
            pointer: pointer.map(str::to_owned),
        };
        let watches = [
            url("https://a.com", None),
            url("https://a.com", Some("")),
            url("https://b.com", None),
            Watch::Feed { url: "https://a.com".to_owned() },
        ];
        let mut keys: Vec<String> = watches.iter().map(Watch::key).collect();
        assert!(keys.iter().all(|key| key.len() == 16));
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), watches.len());
    }
}
