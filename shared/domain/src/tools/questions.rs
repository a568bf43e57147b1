//! Tools that ask a person.

use serde::Deserialize;
use serde_json::json;

use super::Effect::Ask;
use super::Surface::Run;
use super::ToolDef;
use super::arguments::Arguments;
use super::schema::{object, text};
use crate::validate::FieldErrors;

pub static ASK_PERSON: ToolDef = ToolDef::new(
    "ask_person",
    "Asks a person something that you must know to do the work. The run stops and waits for the answer, which may \
         take days. So decide by yourself whatever you can decide.",
    Ask,
    &[Run],
    || {
        let question = text("One question, with what the person needs to know to answer it.", 2_000);
        object(&json!({"question": question}), &["question"])
    },
);

/// The arguments of [`ASK_PERSON`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AskPerson {
    pub question: String,
}

impl Arguments for AskPerson {
    fn check(&mut self, errors: &mut FieldErrors) {
        errors.length("question", &self.question, 1, 2_000);
    }
}
