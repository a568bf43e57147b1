//! Tools with which a run tells the next run, and the person, how far it has come.

use serde::Deserialize;
use serde_json::json;

use super::Effect::{Deliver, Write};
use super::Surface::Run;
use super::ToolDef;
use super::arguments::Arguments;
use super::schema::{integer, object, text, up_to};
use crate::validate::FieldErrors;
use crate::work::MAX_NOTEBOOK;

pub static NOTE: ToolDef = ToolDef {
    replaces: true,
    ..ToolDef::new(
        "note",
        "Rewrites the notebook of this task. The next run of the task is shown it, and so is the person. Write what the next \
         run must know, for example up to where you have read. The text replaces the whole notebook, so repeat what still \
         matters.",
        Write,
        &[Run],
        || {
            let properties = json!({
                "text": up_to("The whole notebook, at most 4,000 bytes. Empty: erases it.", MAX_NOTEBOOK),
                "version": integer("The version that you have read and that this text replaces; 0 if there is none.", 0, None),
            });
            object(&properties, &["text", "version"])
        },
    )
};

/// The arguments of [`NOTE`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Note {
    pub text: String,
    pub version: u64,
}

impl Arguments for Note {}

pub static NOTHING_NEW: ToolDef = ToolDef::new(
    "nothing_new",
    "Ends the run without an output, because there is nothing to report since the last run. Use it instead of repeating \
     an earlier output. Write the notebook first, if it must change.",
    Deliver,
    &[Run],
    || {
        let reason =
            text("What you looked at and why there is nothing new, in one sentence for the person.", 500);
        object(&json!({"reason": reason}), &["reason"])
    },
);

/// The arguments of [`NOTHING_NEW`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct NothingNew {
    pub reason: String,
}

impl Arguments for NothingNew {
    fn check(&mut self, errors: &mut FieldErrors) {
        errors.length("reason", &self.reason, 1, 500);
    }
}
