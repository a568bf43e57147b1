//! A call with its arguments read. What can't be read is answered with a sentence that the model can act on.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Tool;
use crate::actions::{ActionChange, ActionState};
use crate::assets::{AssetType, NewAsset};
use crate::chats::signals::Deliverable;
use crate::ids::AssetId;
use crate::validate::FieldErrors;

/// How many things a query lists that names no limit.
pub const DEFAULT_LIMIT: usize = 20;
/// The most that a query lists.
pub const MAX_LIMIT: usize = 100;

/// What a model asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolCall {
    QueryActions {
        state: Option<ActionState>,
        /// 1 to [`MAX_LIMIT`].
        limit: usize,
    },
    QueryAssets {
        asset_type: Option<AssetType>,
        /// A part of the title or the description, not blank.
        query: Option<String>,
        /// 1 to [`MAX_LIMIT`].
        limit: usize,
    },
    ReadAsset {
        asset_id: AssetId,
        /// The first byte of the content that is wanted.
        from_byte: usize,
    },
    /// `generate_asset`, `generate_actions` and `ready_to_create`: the same as the signals of those names, and never
    /// [`Deliverable::Invalid`].
    Deliver(Deliverable),
    /// Within its limits.
    SaveOutput(NewAsset),
    AskPerson {
        question: String,
    },
    /// Not checked against the action yet.
    ChangeAction(ActionChange),
}

#[derive(Deserialize)]
struct QueryActions {
    #[serde(default)]
    state: Option<ActionState>,
    #[serde(default)]
    limit: Option<usize>,
}

#[derive(Deserialize)]
struct QueryAssets {
    #[serde(default)]
    asset_type: Option<AssetType>,
    #[serde(default)]
    query: Option<String>,
    #[serde(default)]
    limit: Option<usize>,
}

#[derive(Deserialize)]
struct ReadAsset {
    asset_id: AssetId,
    #[serde(default)]
    from_byte: usize,
}

#[derive(Deserialize)]
struct SaveOutput {
    title: String,
    content: String,
    #[serde(default)]
    asset_type: Option<AssetType>,
}

#[derive(Deserialize)]
struct AskPerson {
    question: String,
}

impl Tool {
    /// Reads the arguments of a call. Fields that the tool does not know are passed over.
    ///
    /// # Errors
    /// A sentence for the model: which argument is wrong and what it should be.
    pub fn parse(self, input: &Value) -> Result<ToolCall, String> {
        self.read(input).map_err(|reason| format!("The call of {} was not made: {reason}.", self.name()))
    }

    fn read(self, input: &Value) -> Result<ToolCall, String> {
        // Some models send nothing where no argument is needed.
        let input = if input.is_null() { &json!({}) } else { input };
        let mut errors = FieldErrors::default();
        let call = match self {
            Self::QueryActions => {
                let QueryActions { state, limit } = arguments(input)?;
                ToolCall::QueryActions { state, limit: checked_limit(&mut errors, limit) }
            }
            Self::QueryAssets => {
                let QueryAssets { asset_type, query, limit } = arguments(input)?;
                let query = query.map(|query| query.trim().to_owned()).filter(|query| !query.is_empty());
                query.iter().for_each(|query| errors.length("query", query, 1, 200));
                ToolCall::QueryAssets { asset_type, query, limit: checked_limit(&mut errors, limit) }
            }
            Self::ReadAsset => {
                let ReadAsset { asset_id, from_byte } = arguments(input)?;
                ToolCall::ReadAsset { asset_id, from_byte }
            }
            Self::GenerateAsset | Self::GenerateActions | Self::ReadyToCreate => {
                match Deliverable::from_tool_call(self.name(), input) {
                    Some(Deliverable::Invalid { reason, .. }) => return Err(reason),
                    Some(deliverable) => ToolCall::Deliver(deliverable),
                    None => return Err("it delivers nothing".to_owned()),
                }
            }
            Self::SaveOutput => {
                let SaveOutput { title, content, asset_type } = arguments(input)?;
                let asset_type = asset_type.unwrap_or_default();
                let asset = NewAsset { title, description: String::new(), asset_type, content };
                errors.nest("", asset.validate());
                ToolCall::SaveOutput(asset)
            }
            Self::AskPerson => {
                let AskPerson { question } = arguments(input)?;
                errors.length("question", &question, 1, 2_000);
                ToolCall::AskPerson { question }
            }
            Self::ChangeAction => ToolCall::ChangeAction(arguments(input)?),
        };
        errors.into_result(call).map_err(|errors| errors.to_string())
    }
}

fn arguments<T: DeserializeOwned>(input: &Value) -> Result<T, String> {
    if !input.is_object() {
        return Err("its arguments are not a JSON object".to_owned());
    }
    serde_path_to_error::deserialize(input).map_err(|error| {
        let path = error.path().to_string();
        if path == "." { error.into_inner().to_string() } else { format!("{path}: {}", error.into_inner()) }
    })
}

fn checked_limit(errors: &mut FieldErrors, limit: Option<usize>) -> usize {
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        errors.add("limit", format!("must be 1 to {MAX_LIMIT}, is {limit}"));
    }
    limit
}
