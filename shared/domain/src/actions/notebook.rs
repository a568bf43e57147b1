//! The notebook of an action: a short text that its runs hand on to the next run, and that a person may read, edit and erase.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::RunId;
use crate::validate::FieldErrors;
use crate::work::MAX_NOTEBOOK;

/// How many versions of a notebook are kept.
pub const NOTEBOOK_VERSIONS: u64 = 50;

/// A notebook, or an earlier version of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Notebook {
    /// Counts changes, from 1. 0: nothing was ever written.
    pub version: u64,
    /// At most 4,000 bytes. Empty if it was erased.
    #[schema(example = "Seen until article 4711.")]
    pub text: String,
    /// The run that wrote it. Absent if a person wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Absent if nothing was ever written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_at: Option<Timestamp>,
    /// Whether a run wrote it that may have read what strangers have written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub tainted: bool,
}

/// The new text of a notebook.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NotebookText {
    /// At most 4,000 bytes of UTF-8. It replaces the whole text.
    #[schema(max_length = 4_000, example = "Seen until article 4711.")]
    pub text: String,
}

impl Notebook {
    /// Of an action whose notebook nobody has written in.
    #[must_use]
    pub const fn blank() -> Self {
        Self { version: 0, text: String::new(), run_id: None, written_at: None, tainted: false }
    }

    /// The version after this one.
    ///
    /// # Errors
    /// If the text is too long.
    pub fn rewritten(
        &self,
        text: String,
        run_id: Option<RunId>,
        now: Timestamp,
    ) -> Result<Self, FieldErrors> {
        check_text(&text)?;
        Ok(Self { version: self.version + 1, text, run_id, written_at: Some(now), tainted: false })
    }

    /// Checks the limits of a notebook, wherever it comes from.
    ///
    /// # Errors
    /// Every invalid field with its limit.
    pub fn check(&self) -> Result<(), FieldErrors> {
        check_text(&self.text)
    }
}

fn check_text(text: &str) -> Result<(), FieldErrors> {
    if text.len() <= MAX_NOTEBOOK {
        return Ok(());
    }
    Err(FieldErrors::one("text", format!("must be at most {MAX_NOTEBOOK} bytes, is {}", text.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notebook_holds_four_thousand_bytes() {
        let first = Notebook::blank().rewritten("é".repeat(2_000), None, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!((first.version, first.text.len()), (1, MAX_NOTEBOOK));
        let error = first.rewritten("é".repeat(2_001), None, Timestamp::UNIX_EPOCH).unwrap_err();
        assert_eq!(error.to_string(), "text: must be at most 4000 bytes, is 4002");
    }
}
