//! The types of a context document.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::MAX_NAME;
use crate::validate::FieldErrors;

/// The mode in which an assistant works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Mode {
    Plan,
    Act,
    Eval,
    /// Plans, acts and evaluates in rounds, without further requests in between.
    Auto,
}

/// The text is not the name of a mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Invalid mode: {0}. Must be PLAN, ACT, EVAL, or AUTO")]
pub struct InvalidMode(pub String);

impl Mode {
    pub const ALL: [Self; 4] = [Self::Plan, Self::Act, Self::Eval, Self::Auto];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plan => "PLAN",
            Self::Act => "ACT",
            Self::Eval => "EVAL",
            Self::Auto => "AUTO",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mode {
    type Err = InvalidMode;
    fn from_str(text: &str) -> Result<Self, InvalidMode> {
        Self::ALL.into_iter().find(|mode| mode.name() == text).ok_or_else(|| InvalidMode(text.to_owned()))
    }
}

/// Why a version of a document was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A workflow began.
    Begun,
    Updated,
    /// It was replaced by a Markdown text.
    Imported,
    /// An older version was made the newest.
    Restored,
}

/// The confidence of a recommendation: 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "f64", into = "f64")]
#[schema(value_type = f64, minimum = 0, maximum = 1, example = 0.95)]
pub struct Confidence(f64);

/// The number is not a valid confidence.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("must be a number from 0 to 1, is {0}")]
pub struct InvalidConfidence(pub f64);

impl TryFrom<f64> for Confidence {
    type Error = InvalidConfidence;
    fn try_from(value: f64) -> Result<Self, InvalidConfidence> {
        // Adding zero turns −0 into 0.
        if (0.0..=1.0).contains(&value) { Ok(Self(value + 0.0)) } else { Err(InvalidConfidence(value)) }
    }
}

impl From<Confidence> for f64 {
    fn from(confidence: Confidence) -> Self {
        confidence.0
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The agent that should carry a plan out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecommendedAgent {
    #[schema(example = "backend-developer")]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
}

/// The part of the document for one mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Section {
    pub mode: Mode,
    /// When it was last written. The Markdown does not contain it.
    pub updated_at: Timestamp,
    /// `in_progress`, `completed`, `blocked`, or a text of the assistant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary_agent: Option<String>,
    /// The task of this mode, if it differs from the document's task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// AUTO only: the prompt that began the workflow, without its keyword. The next AUTO prompt is compared with it.
    /// The Markdown does not contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun_with: Option<String>,
    #[serde(default)]
    pub decisions: Vec<String>,
    #[serde(default)]
    pub progress: Vec<String>,
    #[serde(default)]
    pub findings: Vec<String>,
    #[serde(default)]
    pub recommendations: Vec<String>,
    #[serde(default)]
    pub notes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recommended_act_agent: Option<RecommendedAgent>,
}

impl Section {
    #[must_use]
    pub fn new(mode: Mode, now: Timestamp) -> Self {
        Self {
            mode,
            updated_at: now,
            status: None,
            primary_agent: None,
            task: None,
            begun_with: None,
            decisions: Vec::new(),
            progress: Vec::new(),
            findings: Vec::new(),
            recommendations: Vec::new(),
            notes: Vec::new(),
            recommended_act_agent: None,
        }
    }

    /// The lists with their field names, in the order of the Markdown.
    #[must_use]
    pub fn lists(&self) -> [(&'static str, &Vec<String>); 5] {
        [
            ("decisions", &self.decisions),
            ("progress", &self.progress),
            ("findings", &self.findings),
            ("recommendations", &self.recommendations),
            ("notes", &self.notes),
        ]
    }
}

/// A context document. It has at most one section per mode, in the order in which the sections were created.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Document {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "Implement user authentication")]
    pub task: Option<String>,
    /// In whole seconds, as in the Markdown.
    pub created_at: Timestamp,
    /// In whole seconds, as in the Markdown.
    pub updated_at: Timestamp,
    pub sections: Vec<Section>,
}

/// The instant, rounded down to whole seconds.
#[must_use]
pub fn whole_seconds(instant: Timestamp) -> Timestamp {
    // Rounding an instant down gives a valid instant, except in the first second of the calendar.
    let second = instant.as_second() - i64::from(instant.subsec_nanosecond() < 0);
    Timestamp::from_second(second).unwrap_or(instant)
}

impl Document {
    #[must_use]
    pub fn section(&self, mode: Mode) -> Option<&Section> {
        self.sections.iter().find(|section| section.mode == mode)
    }

    /// The section of a mode. It is added at the end if it does not exist.
    pub fn section_mut(&mut self, mode: Mode, now: Timestamp) -> &mut Section {
        let at = self.sections.iter().position(|section| section.mode == mode).unwrap_or_else(|| {
            self.sections.push(Section::new(mode, now));
            self.sections.len() - 1
        });
        &mut self.sections[at]
    }
}

/// Checks a text that must fill a line.
pub(super) fn line(errors: &mut FieldErrors, field: &str, text: Option<&str>) {
    let Some(text) = text else { return };
    errors.length(field, text, 1, MAX_NAME);
    if text.trim() != text || text.chars().any(char::is_control) {
        errors.add(field, "must be one line, without blanks around it");
    }
}

/// Checks a name that precedes its confidence in parentheses.
pub(super) fn agent_name(errors: &mut FieldErrors, field: &str, name: Option<&str>) {
    line(errors, field, name);
    if name.is_some_and(|name| name.contains(['(', ')'])) {
        errors.add(field, "must not have parentheses");
    }
}
