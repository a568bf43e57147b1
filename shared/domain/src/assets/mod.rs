//! An asset: a finished deliverable, kept with all its versions.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use crate::ids::{AgentId, AssetId, RunId};
use crate::validate::FieldErrors;

/// The longest title, in characters.
pub const MAX_TITLE: usize = 200;
/// The longest description, in characters.
pub const MAX_DESCRIPTION: usize = 2_000;
/// The largest content, in bytes of UTF-8. It must fit into one request together with the other fields.
pub const MAX_CONTENT_BYTES: usize = 4 * 1024 * 1024;
/// The highest number of a version. Keys have ten digits for it.
pub const MAX_CONTENT_VERSION: u64 = 1_000_000_000;

/// The kind of content.
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

/// An asset without its content. The content is stored in S3.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Asset {
    pub asset_id: AssetId,
    pub agent_id: AgentId,
    pub title: String,
    pub description: String,
    pub asset_type: AssetType,
    /// The number of the newest content version, from 1.
    pub content_version: u64,
    /// Size of the newest content, in bytes of UTF-8.
    pub bytes: u64,
    /// SHA-256 of the newest content, hexadecimal. It is part of the content's storage key, so concurrent writers
    /// cannot mix their contents.
    pub sha256: String,
    /// The run that made the asset, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// One version of an asset's content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AssetVersion {
    /// From 1.
    pub content_version: u64,
    pub title: String,
    pub asset_type: AssetType,
    pub bytes: u64,
    /// SHA-256 of the content, hexadecimal.
    pub sha256: String,
    pub created_at: Timestamp,
}

/// An asset to save.
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

/// A change of an asset. Omitted fields keep their values; new content creates a new version.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
pub struct AssetPatch {
    pub title: Option<String>,
    pub description: Option<String>,
    pub asset_type: Option<AssetType>,
    pub content: Option<String>,
}

/// An asset, and content for it that is not stored yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithContent<C> {
    pub asset: Asset,
    pub content: C,
}

impl NewAsset {
    /// # Errors
    /// Every invalid field with its limit.
    pub fn validate(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        check_texts(&mut errors, &self.title, &self.description);
        check_content(&mut errors, &self.content);
        errors.into_result(())
    }

    /// # Errors
    /// Every invalid field with its limit.
    pub fn into_asset(
        self,
        asset_id: AssetId,
        agent_id: AgentId,
        run_id: Option<RunId>,
        now: Timestamp,
    ) -> Result<WithContent<String>, FieldErrors> {
        self.validate()?;
        let asset = Asset {
            asset_id,
            agent_id,
            title: self.title.trim().to_owned(),
            description: self.description.trim().to_owned(),
            asset_type: self.asset_type,
            content_version: 1,
            bytes: self.content.len() as u64,
            sha256: sha256(&self.content),
            run_id,
            created_at: now,
            updated_at: now,
        };
        Ok(WithContent { asset, content: self.content })
    }
}

impl Asset {
    /// The asset with `patch` applied, and the new content if the patch has any.
    ///
    /// # Errors
    /// Every invalid field with its limit.
    pub fn patched(
        self,
        patch: AssetPatch,
        now: Timestamp,
    ) -> Result<WithContent<Option<String>>, FieldErrors> {
        let mut errors = FieldErrors::default();
        let trimmed = |new: Option<String>, old: String| new.map_or(old, |text| text.trim().to_owned());
        let mut asset = Self {
            title: trimmed(patch.title, self.title),
            description: trimmed(patch.description, self.description),
            asset_type: patch.asset_type.unwrap_or(self.asset_type),
            updated_at: now,
            ..self
        };
        check_texts(&mut errors, &asset.title, &asset.description);
        if let Some(content) = &patch.content {
            check_content(&mut errors, content);
            // A number that did not change would replace the newest version.
            if asset.content_version >= MAX_CONTENT_VERSION {
                errors.add("content", format!("an asset has at most {MAX_CONTENT_VERSION} versions"));
            } else {
                asset.content_version += 1;
            }
            asset.bytes = content.len() as u64;
            asset.sha256 = sha256(content);
        }
        errors.into_result(WithContent { asset, content: patch.content })
    }

    /// The record of the newest content version.
    /// Checks the limits of every asset, wherever it comes from.
    ///
    /// # Errors
    /// Every invalid field with its limit.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        check_texts(&mut errors, &self.title, &self.description);
        check_stored(&mut errors, self.content_version, self.bytes, &self.sha256);
        errors.into_result(())
    }

    #[must_use]
    pub fn newest_version(&self) -> AssetVersion {
        AssetVersion {
            content_version: self.content_version,
            title: self.title.clone(),
            asset_type: self.asset_type,
            bytes: self.bytes,
            sha256: self.sha256.clone(),
            created_at: self.updated_at,
        }
    }
}

impl AssetVersion {
    /// Checks the limits of every version, wherever it comes from.
    ///
    /// # Errors
    /// Every invalid field with its limit.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        check_texts(&mut errors, &self.title, "");
        check_stored(&mut errors, self.content_version, self.bytes, &self.sha256);
        errors.into_result(())
    }
}

fn check_texts(errors: &mut FieldErrors, title: &str, description: &str) {
    errors.length("title", title, 1, MAX_TITLE);
    errors.length("description", description, 0, MAX_DESCRIPTION);
}

fn check_stored(errors: &mut FieldErrors, content_version: u64, bytes: u64, sha256: &str) {
    if !(1..=MAX_CONTENT_VERSION).contains(&content_version) {
        errors.add("content_version", format!("must be 1 to {MAX_CONTENT_VERSION}, is {content_version}"));
    }
    errors.most("bytes", bytes, MAX_CONTENT_BYTES as u64);
    errors.sha256("sha256", sha256);
}

fn sha256(content: &str) -> String {
    crate::hex(&Sha256::digest(content))
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
        check(
            NewAsset { title: " ".into(), ..good.clone() },
            "title: must not be blank (1 to 200 characters)",
        );
        check(NewAsset { content: "\n".into(), ..good.clone() }, "content: must not be empty");
        check(
            NewAsset { content: "x".repeat(MAX_CONTENT_BYTES + 1), ..good },
            "content: must be at most 4194304 bytes, is 4194305",
        );
    }

    #[test]
    fn a_patch_with_content_makes_a_version() {
        let id = |n| uuid::Uuid::from_u128(n);
        let new = NewAsset { title: " Report ".into(), content: "one".into(), ..NewAsset::default() };
        let (asset_id, agent_id) = (AssetId::from_uuid(id(1)), AgentId::from_uuid(id(2)));
        let WithContent { asset, content } =
            new.into_asset(asset_id, agent_id, None, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!((asset.title.as_str(), content.as_str()), ("Report", "one"));
        let now = Timestamp::from_second(5).unwrap();

        let patch = AssetPatch { asset_type: Some(AssetType::Email), ..AssetPatch::default() };
        let patched = asset.clone().patched(patch, now).unwrap();
        let expected = Asset { asset_type: AssetType::Email, updated_at: now, ..asset.clone() };
        assert_eq!(patched, WithContent { asset: expected, content: None });

        let patch = AssetPatch { content: Some("héllo".into()), ..AssetPatch::default() };
        let patched = asset.clone().patched(patch, now).unwrap().asset;
        assert_eq!((patched.content_version, patched.bytes), (2, 6));
        assert_eq!(
            patched.newest_version(),
            AssetVersion {
                content_version: 2,
                title: "Report".into(),
                asset_type: AssetType::Document,
                bytes: 6,
                sha256: "3c48591d8d098a4538f5e013dfcf406e948eac4d3277b10bf614e295d6068179".into(),
                created_at: now,
            }
        );
        let bad = AssetPatch { title: Some(" ".into()), content: Some(" ".into()), ..AssetPatch::default() };
        assert_eq!(asset.patched(bad, now).unwrap_err().0.len(), 2);
    }

    #[test]
    fn the_highest_version_is_not_replaced() {
        let new = NewAsset { title: "t".into(), content: "c".into(), ..NewAsset::default() };
        let (asset_id, agent_id) =
            (AssetId::from_uuid(uuid::Uuid::nil()), AgentId::from_uuid(uuid::Uuid::nil()));
        let asset = new.into_asset(asset_id, agent_id, None, Timestamp::UNIX_EPOCH).unwrap().asset;
        let patched = |content_version| {
            let patch = AssetPatch { content: Some("d".into()), ..AssetPatch::default() };
            Asset { content_version, ..asset.clone() }.patched(patch, Timestamp::UNIX_EPOCH)
        };
        assert_eq!(patched(MAX_CONTENT_VERSION - 1).unwrap().asset.content_version, MAX_CONTENT_VERSION);
        for version in [MAX_CONTENT_VERSION, u64::MAX] {
            let refused = patched(version).unwrap_err().to_string();
            assert_eq!(refused, "content: an asset has at most 1000000000 versions");
        }
        assert!(Asset { content_version: MAX_CONTENT_VERSION, ..asset.clone() }.check().is_ok());
        let refused = Asset { content_version: u64::MAX, bytes: u64::MAX, sha256: "../x".into(), ..asset };
        assert_eq!(
            refused.check().unwrap_err().to_string(),
            "content_version: must be 1 to 1000000000, is 18446744073709551615; \
             bytes: must be 0 to 4194304, is 18446744073709551615; \
             sha256: must be a SHA-256: 64 lower-case hexadecimal digits"
        );
    }

    #[test]
    fn types_round_trip() {
        let json = serde_json::to_string(&AssetType::ALL).unwrap();
        assert_eq!(json, r#"["document","code","prompt","email"]"#);
        assert_eq!(serde_json::from_str::<[AssetType; 4]>(&json).unwrap(), AssetType::ALL);
    }
}
