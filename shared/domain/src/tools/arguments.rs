//! Reading the arguments of a call. If they are invalid, the error tells the model what to correct.

use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde_json::Value;

use super::MAX_LIMIT;
use crate::text::wording::refusal;
use crate::validate::FieldErrors;

/// The arguments of a tool of the agent loop.
pub trait Arguments: DeserializeOwned {
    /// Checks what the types do not, and normalises the values.
    fn check(&mut self, _errors: &mut FieldErrors) {}
}

/// Reads the fields of a call's arguments, an object.
///
/// # Errors
/// The field that is wrong, and what it should be.
pub fn read_fields<'de, A: Deserialize<'de>>(
    input: impl Deserializer<'de, Error = serde_json::Error>,
) -> Result<A, FieldErrors> {
    serde_path_to_error::deserialize(input)
        .map_err(|error| refusal("arguments", &error.path().to_string(), &error.inner().to_string()))
}

/// Reads and checks the arguments of a call. The error is a part of a sentence.
pub(super) fn parse<A: Arguments>(input: &Value) -> Result<A, String> {
    if !input.is_object() {
        return Err("its arguments are not a JSON object".to_owned());
    }
    let mut arguments: A = read_fields(input).map_err(|errors| errors.to_string())?;
    let mut errors = FieldErrors::default();
    arguments.check(&mut errors);
    errors.into_result(arguments).map_err(|errors| errors.to_string())
}

/// Checks the length of a list in the agent loop.
pub(super) fn checked_limit(errors: &mut FieldErrors, limit: Option<usize>) {
    if let Some(limit) = limit
        && !(1..=MAX_LIMIT).contains(&limit)
    {
        errors.add("limit", format!("must be 1 to {MAX_LIMIT}, is {limit}"));
    }
}
