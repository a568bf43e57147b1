//! Long results of calls: a model is shown the beginning, and reads the rest in pages.

use crate::ids::CallId;

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

/// A page of a long result.
///
/// # Errors
/// A sentence for the model.
pub fn page(content: &str, from_char: usize) -> Result<String, String> {
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
