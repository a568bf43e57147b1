//! A call with parsed arguments. If they are invalid, the error is a sentence that tells the model what to correct.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Tool;
use crate::actions::{ActionChange, ActionState};
use crate::assets::{AssetType, NewAsset};
use crate::chats::signals::Deliverable;
use crate::ids::AssetId;
use crate::validate::FieldErrors;
use crate::wording::refusal;

/// The default length of a list.
pub const DEFAULT_LIMIT: usize = 20;
/// The maximum length of a list.
pub const MAX_LIMIT: usize = 100;

/// A call of a model.
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
        /// The first byte of the wanted part of the content.
        from_byte: usize,
    },
    /// `generate_asset`, `generate_actions` and `ready_to_create`: the same as the signals with these names. Never
    /// [`Deliverable::Invalid`].
    Deliver(Deliverable),
    /// Checked against the limits of an asset.
    SaveOutput(NewAsset),
    AskPerson {
        question: String,
    },
    /// Not yet checked against the action.
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
    /// Parses the arguments of a call. Unknown fields are ignored.
    ///
    /// # Errors
    /// A sentence for the model: which argument is wrong and what it should be.
    pub fn parse(self, input: &Value) -> Result<ToolCall, String> {
        self.read(input).map_err(|reason| format!("The call of {} was not made: {reason}.", self.name()))
    }

    fn read(self, input: &Value) -> Result<ToolCall, String> {
        // If no argument is needed, some models send null.
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
        refusal("arguments", &error.path().to_string(), &error.inner().to_string()).to_string()
    })
}

fn checked_limit(errors: &mut FieldErrors, limit: Option<usize>) -> usize {
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        errors.add("limit", format!("must be 1 to {MAX_LIMIT}, is {limit}"));
    }
    limit
}
