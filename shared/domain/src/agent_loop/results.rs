//! Long results of calls: a model is shown the beginning, and reads the rest in pages.

use super::{CallId, Transcript};

/// The longest result of a call that a model is shown at once, in characters.
pub const MAX_RESULT: usize = 100_000;

/// The longest result that is stored, in characters. The rest is lost, and the result says so.
pub const MAX_STORED: usize = 1_000_000;

/// The longest page of a result, in characters.
pub const MAX_PAGE: usize = 50_000;

/// A result as it is stored, cut at [`MAX_STORED`] characters.
#[must_use]
pub fn stored(mut content: String) -> String {
    if let Some((at, _)) = content.char_indices().nth(MAX_STORED) {
        let left = content[at..].chars().count();
        content.truncate(at);
        content.push_str(&format!("\n… [{left} more characters were not stored; ask for a smaller part]"));
    }
    content
}

/// Whether a model is shown only the beginning.
#[must_use]
pub fn is_long(content: &str) -> bool {
    // Most results have fewer bytes than that.
    content.len() > MAX_RESULT && content.chars().nth(MAX_RESULT).is_some()
}

/// A result as a model is shown it, cut at [`MAX_RESULT`] characters. `id` names the result for `read_result`; without it the
/// rest cannot be read, because the run has ended.
#[must_use]
pub fn shown(content: &str, id: Option<CallId>) -> String {
    let Some((at, _)) = content.char_indices().nth(MAX_RESULT) else { return content.to_owned() };
    let left = content[at..].chars().count();
    let note = match id {
        Some(id) => format!(
            "{left} more characters are stored; call read_result with call_id \"{id}\" and from_char {MAX_RESULT}"
        ),
        None => format!("{left} more characters were left out"),
    };
    format!("{}\n… [{note}]", &content[..at])
}

/// The id of a call of the transcript, by the indexes of its step and of the call. For a run that began its conversation
/// anew, it counts from there.
pub(super) fn id(step: usize, call: usize) -> CallId {
    CallId::new(u32::try_from(step + 1).unwrap_or(u32::MAX), call)
}

/// Whether there is a result that a model was shown only the beginning of.
#[must_use]
pub fn has_long(transcript: &Transcript) -> bool {
    transcript.steps.iter().flat_map(|step| &step.results).any(|result| is_long(&result.content))
}

/// A page of a result.
///
/// # Errors
/// A sentence for the model.
pub fn page(transcript: &Transcript, id: CallId, from_char: usize) -> Result<String, String> {
    let step = (id.step as usize).checked_sub(1).and_then(|step| transcript.steps.get(step));
    let result = step.and_then(|step| step.results.get(id.at as usize));
    let Some(content) = result.map(|result| &result.content).filter(|content| is_long(content)) else {
        return Err(format!("there is no long result {id}; a result that was cut names its call_id"));
    };
    let length = content.chars().count();
    if from_char >= length {
        return Err(format!(
            "from_char: must be less than {length}, the length of the result, is {from_char}"
        ));
    }
    let page: String = content.chars().skip(from_char).take(MAX_PAGE).collect();
    let next = from_char + page.chars().count();
    let note = match next < length {
        true => {
            format!("characters {from_char} to {next} of {length}; the next page begins at from_char {next}")
        }
        false => format!("characters {from_char} to {next} of {length}; this is the end"),
    };
    Ok(format!("{page}\n… [{note}]"))
}
