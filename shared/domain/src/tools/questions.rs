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
        let choices = json!({
            "type": "array", "maxItems": MAX_CHOICES, "items": {"type": "string", "maxLength": MAX_CHOICE},
            "description": "Possible answers, each a few words. The person may say something else.",
        });
        object(&json!({"question": question, "choices": choices}), &["question"])
    },
);

/// The arguments of [`ASK_PERSON`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AskPerson {
    pub question: String,
    #[serde(default)]
    pub choices: Vec<String>,
}

/// The most possible answers, and the most characters of one.
const MAX_CHOICES: usize = 6;
const MAX_CHOICE: usize = 200;

/// What a line with a possible answer begins with. So every channel shows the answers, also one that shows nothing but text.
const CHOICE: &str = "\n• ";

impl AskPerson {
    /// The question, followed by its possible answers, each on a line.
    #[must_use]
    pub fn in_words(&self) -> String {
        let mut text = self.question.trim_end().to_owned();
        self.choices.iter().for_each(|choice| text.extend([CHOICE, choice]));
        text
    }
}

/// A question as [`AskPerson::in_words`] makes it, and its possible answers.
#[must_use]
pub fn parts(text: &str) -> (&str, Vec<&str>) {
    let mut parts = text.split(CHOICE);
    let question = parts.next().unwrap_or_default();
    let choices: Vec<&str> = parts.collect();
    // A list within the question is no list of answers.
    if choices.len() > MAX_CHOICES || choices.iter().any(|choice| choice.contains('\n')) {
        return (text, Vec::new());
    }
    (question, choices)
}

impl Arguments for AskPerson {
    fn check(&mut self, errors: &mut FieldErrors) {
        errors.length("question", &self.question, 1, 2_000);
        if self.choices.len() > MAX_CHOICES {
            errors.add(
                "choices",
                format!("must have at most {MAX_CHOICES} entries, has {}", self.choices.len()),
            );
        }
        for (at, choice) in self.choices.iter_mut().enumerate() {
            *choice = choice.split_whitespace().collect::<Vec<_>>().join(" ");
            errors.length(&format!("choices[{at}]"), choice, 1, MAX_CHOICE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_read_with_its_choices() {
        let ask = |question: &str, choices: &[&str]| AskPerson {
            question: question.to_owned(),
            choices: choices.iter().map(|choice| (*choice).to_owned()).collect(),
        };
        let asked = ask("Which section?\n", &["the header", "the footer"]);
        assert_eq!(asked.in_words(), "Which section?\n• the header\n• the footer");
        assert_eq!(parts(&asked.in_words()), ("Which section?", vec!["the header", "the footer"]));
        let without = ask("Which of these?\n• one\n• two\nPlease say.", &[]).in_words();
        assert_eq!(parts(&without), (&*without, Vec::new()), "a list within the question");
        let told = |mut ask: AskPerson| {
            let mut errors = FieldErrors::default();
            ask.check(&mut errors);
            (ask, errors.into_result(()).err().map(|errors| errors.to_string()).unwrap_or_default())
        };
        let (clean, none) = told(ask("a", &["  two\n• words "]));
        assert_eq!((&*clean.choices[0], &*none), ("two • words", ""));
        assert_eq!(told(ask("a", &["b"; 7])).1, "choices: must have at most 6 entries, has 7");
        assert!(told(ask("a", &[" "])).1.starts_with("choices[0]: "));
    }
}
