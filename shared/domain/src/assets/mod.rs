//! An asset: a finished deliverable, kept with all its versions.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::{AgentId, AssetId, RunId};
use crate::validate::FieldErrors;

/// Longest title, in characters.
pub const MAX_TITLE: usize = 200;
/// Longest description, in characters.
pub const MAX_DESCRIPTION: usize = 2_000;
/// Largest content, in bytes of UTF-8: what fits into one request beside the rest.
pub const MAX_CONTENT_BYTES: usize = 4 * 1024 * 1024;

/// What kind of content it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AssetType {
    #[default]
    Document,
    Code,
    Prompt,
    Email,
}

impl AssetType {
    pub const ALL: [Self; 4] = [Self::Document, Self::Code, Self::Prompt, Self::Email];
}

/// An asset without its content, which lies in S3.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Asset {
    pub asset_id: AssetId,
    pub agent_id: AgentId,
    pub title: String,
    pub description: String,
    pub asset_type: AssetType,
    /// The newest content's number, from 1.
    pub content_version: u64,
    /// Size of the newest content, in bytes of UTF-8.
    pub bytes: u64,
    /// The run that made it, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// One content that an asset has had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AssetVersion {
    /// From 1.
    pub content_version: u64,
    pub title: String,
    pub bytes: u64,
    pub created_at: Timestamp,
}

/// An asset that is to be saved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewAsset {
    /// 1 to 200 characters.
    #[serde(default)]
    pub title: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub asset_type: AssetType,
    /// 1 byte to 4 MiB of UTF-8.
    #[serde(default)]
    pub content: String,
}

/// A change of an asset: what is left out stays; new content makes a new version.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
pub struct AssetPatch {
    pub title: Option<String>,
    pub description: Option<String>,
    pub asset_type: Option<AssetType>,
    pub content: Option<String>,
}

impl NewAsset {
    /// # Errors
    /// Every field that breaks its limit.
    pub fn validate(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        errors.length("title", &self.title, 1, MAX_TITLE);
        errors.length("description", &self.description, 0, MAX_DESCRIPTION);
        check_content(&mut errors, &self.content);
        errors.into_result(())
    }
}

impl AssetPatch {
    /// # Errors
    /// Every field that breaks its limit.
    pub fn validate(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        if let Some(title) = &self.title {
            errors.length("title", title, 1, MAX_TITLE);
        }
        if let Some(description) = &self.description {
            errors.length("description", description, 0, MAX_DESCRIPTION);
        }
        if let Some(content) = &self.content {
            check_content(&mut errors, content);
        }
        errors.into_result(())
    }
}

fn check_content(errors: &mut FieldErrors, content: &str) {
    if content.trim().is_empty() {
        errors.add("content", "must not be empty");
    } else if content.len() > MAX_CONTENT_BYTES {
        errors.add("content", format!("must be at most {MAX_CONTENT_BYTES} bytes, is {}", content.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_named() {
        let check = |asset: NewAsset, expected: &str| match asset.validate() {
            Ok(()) => assert_eq!(expected, ""),
            Err(errors) => assert_eq!(errors.to_string(), expected),
        };
        let good = NewAsset { title: "t".into(), content: "c".into(), ..NewAsset::default() };
        check(good.clone(), "");
        check(NewAsset { title: " ".into(), ..good.clone() }, "title: must be 1 to 200 characters, is 1");
        check(NewAsset { content: "\n".into(), ..good.clone() }, "content: must not be empty");
        check(
            NewAsset { content: "x".repeat(MAX_CONTENT_BYTES + 1), ..good },
            "content: must be at most 4194304 bytes, is 4194305",
        );
    }

    #[test]
    fn types_round_trip() {
        let json = serde_json::to_string(&AssetType::ALL).unwrap();
        assert_eq!(json, r#"["document","code","prompt","email"]"#);
        assert_eq!(serde_json::from_str::<[AssetType; 4]>(&json).unwrap(), AssetType::ALL);
    }
}
