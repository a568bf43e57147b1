//! Reads the mode that a prompt asks for. The first token names it, in one of five languages.

use serde::{Deserialize, Serialize};

use super::document::Mode;

/// The mode and the rest of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModeRequest {
    pub mode: Mode,
    /// The prompt without its keyword. The whole prompt if it has none.
    pub prompt: String,
    pub warnings: Vec<Warning>,
}

/// A warning about a prompt that can be processed anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Warning {
    NoKeyword,
    SeveralKeywords(Mode),
    NothingAfterKeyword,
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoKeyword => f.write_str("No keyword found at the start of the prompt: PLAN is assumed."),
            Self::SeveralKeywords(mode) => {
                write!(
                    f,
                    "Multiple keywords found at the start of the prompt: the first one, {mode}, is used."
                )
            }
            Self::NothingAfterKeyword => f.write_str("No prompt content found after the keyword."),
        }
    }
}

/// Upper and lower case are the same in Latin letters.
const LATIN: [(&str, Mode); 8] = [
    ("plan", Mode::Plan),
    ("act", Mode::Act),
    ("eval", Mode::Eval),
    ("auto", Mode::Auto),
    ("planificar", Mode::Plan),
    ("actuar", Mode::Act),
    ("evaluar", Mode::Eval),
    ("automático", Mode::Auto),
];

/// Korean, Japanese, Chinese.
const CJK: [(&str, Mode); 12] = [
    ("계획", Mode::Plan),
    ("실행", Mode::Act),
    ("평가", Mode::Eval),
    ("자동", Mode::Auto),
    ("計画", Mode::Plan),
    ("実行", Mode::Act),
    ("評価", Mode::Eval),
    ("自動", Mode::Auto),
    ("计划", Mode::Plan),
    ("执行", Mode::Act),
    ("评估", Mode::Eval),
    ("自动", Mode::Auto),
];

impl ModeRequest {
    /// Whether the prompt itself names its mode. Assistants send every prompt to `parse_mode`, so a prompt that names
    /// no mode must not begin anything.
    #[must_use]
    pub fn is_explicit(&self) -> bool {
        !self.warnings.contains(&Warning::NoKeyword)
    }
}

/// Reads the mode of a prompt. Every text has one.
#[must_use]
pub fn parse(prompt: &str) -> ModeRequest {
    let Some((mode, rest)) = split(prompt) else {
        return ModeRequest {
            mode: Mode::Plan,
            prompt: prompt.to_owned(),
            warnings: vec![Warning::NoKeyword],
        };
    };
    let mut warnings = Vec::new();
    if split(rest).is_some() {
        warnings.push(Warning::SeveralKeywords(mode));
    }
    if rest.is_empty() {
        warnings.push(Warning::NothingAfterKeyword);
    }
    ModeRequest { mode, prompt: rest.to_owned(), warnings }
}

/// The keyword at the beginning of a text, and the text after it.
fn split(text: &str) -> Option<(Mode, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| c.is_whitespace() || is_colon(c)).unwrap_or(text.len());
    let (token, rest) = text.split_at(end);
    let mode = keyword(token)?;
    if let Some(after) = rest.strip_prefix(is_colon) {
        return Some((mode, after.trim_start()));
    }
    let rest = rest.trim_start();
    // A separate colon belongs to the keyword, but the colon of `:emoji:` does not.
    let after = rest
        .strip_prefix(is_colon)
        .filter(|after| after.is_empty() || after.starts_with(char::is_whitespace));
    Some((mode, after.map_or(rest, str::trim_start)))
}

fn is_colon(c: char) -> bool {
    matches!(c, ':' | '：')
}

fn keyword(token: &str) -> Option<Mode> {
    if let Some((_, mode)) = CJK.iter().find(|(word, _)| *word == token) {
        return Some(*mode);
    }
    // Some keyboards write the accent as a character of its own.
    let lower = token.to_lowercase().replace("a\u{301}", "á");
    LATIN.iter().find(|(word, _)| *word == lower).map(|(_, mode)| *mode)
}
