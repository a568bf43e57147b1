//! Tools about assets: finished content.

use serde::Deserialize;
use serde_json::json;

use super::Effect::{Deliver, Propose, Read};
use super::Surface::{AboutAction, Chat, Mcp, Run};
use super::ToolDef;
use super::arguments::{Arguments, checked_limit};
use super::output::{self, page};
use super::proposals::PROPOSAL;
use super::schema::{asset_type, integer, limit, listing, named, object, optional, string, text, up_to};
use crate::assets::{AssetType, NewAsset};
use crate::ids::{AgentId, AssetId};
use crate::validate::FieldErrors;

pub static QUERY_ASSETS: ToolDef = ToolDef::new(
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
);

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

pub static READ_ASSET: ToolDef = ToolDef::new(
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
);

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

pub static SAVE_OUTPUT: ToolDef = ToolDef::new(
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
);

/// The arguments of [`SAVE_OUTPUT`].
#[derive(Debug, Deserialize)]
pub struct SaveOutput {
    pub title: String,
    pub content: String,
    #[serde(default)]
    pub asset_type: Option<AssetType>,
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

/// For MCP clients. Unlike [`QUERY_ASSETS`], it covers all of the owner's agents and is read in pages.
pub static LIST_ASSETS: ToolDef = ToolDef {
    title: Some("List assets"),
    output: Some(|| {
        page(&[
            ("asset_id", "string"),
            ("agent_id", "string"),
            ("title", "string"),
            ("asset_type", "string"),
            ("version", "integer"),
        ])
    }),
    ..ToolDef::new(
        "list_assets",
        "Lists assets (finished content), newest first, without contents.",
        Read,
        &[Mcp],
        || {
            let properties = json!({
                "agent_id": optional(named()),
                "asset_type": optional(asset_type("Only assets of this type.")),
            });
            listing(properties, &[])
        },
    )
};

/// The arguments of [`LIST_ASSETS`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListAssets {
    pub agent_id: Option<AgentId>,
    pub asset_type: Option<AssetType>,
    pub limit: Option<usize>,
    pub cursor: Option<String>,
}

/// For MCP clients. Unlike [`READ_ASSET`], it reads the assets of all of the owner's agents, and older versions.
pub static READ_ANY_ASSET: ToolDef = ToolDef {
    title: Some("Read asset"),
    ..ToolDef::new(
        "read_asset",
        "Returns an asset's content, in parts of at most 256 KiB: next_byte is where the next part begins.",
        Read,
        &[Mcp],
        || {
            let properties = json!({
                "asset_id": named(),
                "version": optional(integer("Content version. Default: the newest.", 0, None)),
                "from_byte": optional(integer("Default 0.", 0, None)),
            });
            object(&properties, &["asset_id"])
        },
    )
};

/// The arguments of [`READ_ANY_ASSET`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadAnyAsset {
    pub asset_id: AssetId,
    pub version: Option<u64>,
    pub from_byte: Option<usize>,
}

pub static PROPOSE_ASSET: ToolDef = ToolDef {
    title: Some("Propose asset"),
    output: Some(|| output::object(PROPOSAL)),
    ..ToolDef::new(
        "propose_asset",
        "Proposes finished content. The user saves or discards it within 30 days.",
        Propose,
        &[Mcp],
        || {
            let properties = json!({
                "agent_id": named(),
                "title": text("Its title.", 200),
                "description": up_to("What it is for, in a sentence.", 2_000),
                "asset_type": optional(asset_type("Default document.")),
                "content": string("All of it."),
            });
            object(&properties, &["agent_id", "title", "content"])
        },
    )
};

/// The arguments of [`PROPOSE_ASSET`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProposeAsset {
    pub agent_id: AgentId,
    pub title: String,
    #[serde(default)]
    pub description: String,
    pub asset_type: Option<AssetType>,
    pub content: String,
}
