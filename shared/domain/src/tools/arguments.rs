//! Reading the arguments of a call. If they are invalid, the error tells the model what to correct.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{MAX_LIMIT, ToolCall};
use crate::chats::signals::Deliverable;
use crate::validate::FieldErrors;
use crate::wording::refusal;

/// The arguments of a tool.
pub trait Arguments: DeserializeOwned {
    /// Checks what the types do not, and normalises the values.
    fn check(&mut self, _errors: &mut FieldErrors) {}
}

/// Reads the arguments of a call, and checks their limits. `input` is an object.
///
/// # Errors
/// The fields that are wrong, and what they should be.
pub fn read<A: Arguments>(input: &Value) -> Result<A, FieldErrors> {
    let mut arguments: A = serde_path_to_error::deserialize(input)
        .map_err(|error| refusal("arguments", &error.path().to_string(), &error.inner().to_string()))?;
    let mut errors = FieldErrors::default();
    arguments.check(&mut errors);
    errors.into_result(arguments)
}

/// [`read`] with the error as text.
pub(super) fn parse<A: Arguments>(input: &Value) -> Result<A, String> {
    if !input.is_object() {
        return Err("its arguments are not a JSON object".to_owned());
    }
    read(input).map_err(|errors| errors.to_string())
}

/// The arguments of a tool that has the same meaning as the signal with its name.
pub(super) fn deliverable(tool: &str, input: &Value) -> Result<ToolCall, String> {
    match Deliverable::from_tool_call(tool, input) {
        Some(Deliverable::Invalid { reason, .. }) => Err(reason),
        Some(deliverable) => Ok(ToolCall::Deliver(deliverable)),
        None => Err("it delivers nothing".to_owned()),
    }
}

/// Checks the length of a list in the agent loop.
pub(super) fn checked_limit(errors: &mut FieldErrors, limit: Option<usize>) {
    if let Some(limit) = limit
        && !(1..=MAX_LIMIT).contains(&limit)
    {
        errors.add("limit", format!("must be 1 to {MAX_LIMIT}, is {limit}"));
    }
}
