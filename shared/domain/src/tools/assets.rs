//! Tools about assets: finished content.

use serde::Deserialize;
use serde_json::json;

use super::Effect::{Deliver, Read};
use super::Surface::{AboutAction, Chat, Run};
use super::arguments::{Arguments, checked_limit, deliverable, parse};
use super::schema::{asset_type, limit, object, text};
use super::{ToolCall, ToolDef};
use crate::assets::{AssetType, NewAsset};
use crate::ids::AssetId;
use crate::validate::FieldErrors;

pub static QUERY_ASSETS: ToolDef = ToolDef {
    to_call: Some(|input| parse(input).map(ToolCall::QueryAssets)),
    ..ToolDef::new(
        "query_assets",
        "Lists this agent's saved assets, newest first, without their contents: id, title, description and type \
         of each. Call read_asset to read a content.",
        Read,
        &[Chat, AboutAction, Run],
        || {
            let properties = json!({
                "asset_type": asset_type("Only assets of this type."),
                "query": text("Only assets whose title or description contains this, in any case.", 200),
                "limit": limit(),
            });
            object(&properties, &[])
        },
    )
};

/// The arguments of [`QUERY_ASSETS`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct QueryAssets {
    #[serde(default)]
    pub asset_type: Option<AssetType>,
    /// A part of the title or the description, not blank.
    #[serde(default)]
    pub query: Option<String>,
    /// 1 to [`super::MAX_LIMIT`].
    #[serde(default)]
    pub limit: Option<usize>,
}

impl Arguments for QueryAssets {
    fn check(&mut self, errors: &mut FieldErrors) {
        self.query = self.query.take().map(|query| query.trim().to_owned()).filter(|query| !query.is_empty());
        if let Some(query) = &self.query {
            errors.length("query", query, 1, 200);
        }
        checked_limit(errors, self.limit);
    }
}

pub static READ_ASSET: ToolDef = ToolDef {
    to_call: Some(|input| parse(input).map(ToolCall::ReadAsset)),
    ..ToolDef::new(
        "read_asset",
        "Reads the newest content of one of this agent's assets. A long content comes in parts: next_byte says where \
         the next part begins.",
        Read,
        &[Chat, AboutAction, Run],
        || {
            let properties = json!({
                "asset_id": {
                    "type": "string", "pattern": "^ast_[0-9a-f]{32}$", "description": "As query_assets gave it.",
                },
                "from_byte": {
                    "type": "integer", "minimum": 0, "description": "Where to begin; 0 if not given.",
                },
            });
            object(&properties, &["asset_id"])
        },
    )
};

/// The arguments of [`READ_ASSET`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ReadAsset {
    pub asset_id: AssetId,
    /// The first byte of the wanted part of the content.
    #[serde(default)]
    pub from_byte: usize,
}

impl Arguments for ReadAsset {}

pub static GENERATE_ASSET: ToolDef = ToolDef {
    // A run delivers content with save_output alone. If a model calls generate_asset there all the same, its content is saved.
    accepted_on: &[Run],
    to_call: Some(|input| deliverable("generate_asset", input)),
    ..ToolDef::new(
        "generate_asset",
        "Proposes a finished asset to the person, with its complete content. Call it when the person asks for content; \
         put the content here and not into the reply.",
        Deliver,
        &[Chat, AboutAction],
        || {
            let properties = json!({
                "title": text("What the asset is called.", 200),
                "description": text("What it is for, in a sentence.", 2_000),
                "asset_type": asset_type("What kind of content it is."),
                "content": {"type": "string", "minLength": 1, "description": "The whole content."},
            });
            object(&properties, &["title", "description", "asset_type", "content"])
        },
    )
};

pub static SAVE_OUTPUT: ToolDef = ToolDef {
    to_call: Some(|input| parse::<SaveOutput>(input).map(|output| ToolCall::SaveOutput(output.into()))),
    ..ToolDef::new(
        "save_output",
        "Saves a finished output of this run, with its complete content. A run that saves nothing fails.",
        Deliver,
        &[Run],
        || {
            let properties = json!({
                "title": text("What the output is called.", 200),
                "content": {"type": "string", "minLength": 1, "description": "The whole content."},
                "asset_type": asset_type("What kind of content it is; document if not given."),
            });
            object(&properties, &["title", "content"])
        },
    )
};

/// The arguments of [`SAVE_OUTPUT`].
#[derive(Deserialize)]
struct SaveOutput {
    title: String,
    content: String,
    #[serde(default)]
    asset_type: Option<AssetType>,
}

impl Arguments for SaveOutput {
    fn check(&mut self, errors: &mut FieldErrors) {
        // The content may be large, so it is lent and not copied.
        let asset = NewAsset {
            title: std::mem::take(&mut self.title),
            description: String::new(),
            asset_type: self.asset_type.unwrap_or_default(),
            content: std::mem::take(&mut self.content),
        };
        errors.nest("", asset.validate());
        (self.title, self.content) = (asset.title, asset.content);
    }
}

impl From<SaveOutput> for NewAsset {
    fn from(SaveOutput { title, content, asset_type }: SaveOutput) -> Self {
        Self { title, description: String::new(), asset_type: asset_type.unwrap_or_default(), content }
    }
}
