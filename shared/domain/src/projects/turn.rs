//! A turn of the theme agent: what a person's message asks for, how large it is, and how the work is done.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::{CallId, ChangeSetId, ProjectId, RunId};
use crate::models::Vendor;
use crate::models::routing::TaskTier;

/// What a person wants of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnMode {
    /// A change.
    Code,
    /// A plan. Nothing is changed.
    Plan,
    /// The cause of a fault, and a change that mends it.
    Debug,
    /// An answer. Nothing is changed.
    Ask,
}

impl TurnMode {
    pub const ALL: [Self; 4] = [Self::Code, Self::Plan, Self::Debug, Self::Ask];

    /// Whether the turn may change the theme.
    #[must_use]
    pub const fn edits(self) -> bool {
        matches!(self, Self::Code | Self::Debug)
    }
}

/// How the work of a turn is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnStrategy {
    /// A few direct edits.
    Simple,
    /// The agent edits, and gives parts of the work to specialists.
    Hybrid,
    /// One agent with the most capable model does everything itself.
    GodMode,
}

/// What a turn was planned as, and what it has become.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ThemeTurn {
    pub project_id: ProjectId,
    pub mode: TurnMode,
    /// How large the task is.
    pub tier: TaskTier,
    /// How the work is done.
    pub strategy: TurnStrategy,
    /// Why, in words, one reason each.
    pub why: Vec<String>,
    /// The files that the model was given, whole or as an outline, best match first.
    #[serde(default)]
    pub files: Vec<String>,
    /// Where its edits collect.
    pub change_set_id: ChangeSetId,
    /// What the whole turn probably costs, in micro-dollars.
    #[serde(default)]
    pub estimate_micros: i64,
    /// Each time the turn became larger than it was planned, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub escalations: Vec<Escalation>,
    /// What it does for another turn, if it is the run of a helper.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub helper: Option<Helper>,
}

impl ThemeTurn {
    /// The size as it is now.
    #[must_use]
    pub fn tier_now(&self) -> TaskTier {
        self.escalations.last().map_or(self.tier, |last| last.tier)
    }

    /// The strategy as it is now.
    #[must_use]
    pub fn strategy_now(&self) -> TurnStrategy {
        self.escalations.last().map_or(self.strategy, |last| last.strategy)
    }
}

/// A turn became larger than it was planned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Escalation {
    /// How large the task is from here on.
    pub tier: TaskTier,
    /// How the work is done from here on.
    pub strategy: TurnStrategy,
    /// Why, in words.
    pub why: String,
}

/// What a run has changed in a theme, as it was when the run came to rest. The change set says what has become of it since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ThemeChanges {
    pub project_id: ProjectId,
    pub change_set_id: ChangeSetId,
    /// Whether the changes were in the theme already.
    pub is_applied: bool,
    /// At most 50.
    pub files: Vec<ThemeChange>,
    /// How many files were left out.
    #[serde(default)]
    pub more: usize,
    /// The beginning of the unified diff, at most 12,000 bytes. Strangers may have written parts of it.
    #[serde(default)]
    pub diff: String,
    /// Whether the diff is longer.
    #[serde(default)]
    pub is_cut: bool,
}

/// A file that a run has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ThemeChange {
    pub path: String,
    /// How many lines were added.
    pub added: usize,
    /// How many lines were removed.
    pub removed: usize,
}

/// What a helper is good at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HelperRole {
    /// Edits templates, sections, blocks and snippets.
    LiquidSpecialist,
    /// Edits style sheets.
    CssSpecialist,
    /// Edits scripts.
    JavascriptSpecialist,
    /// Edits JSON templates, locales and settings.
    JsonSpecialist,
    /// Looks at the changes of the turn.
    Reviewer,
    /// Answers a question with another model than the turn's.
    SecondOpinion,
    /// Looks something up.
    Worker,
}

impl HelperRole {
    pub const ALL: [Self; 7] = [
        Self::LiquidSpecialist,
        Self::CssSpecialist,
        Self::JavascriptSpecialist,
        Self::JsonSpecialist,
        Self::Reviewer,
        Self::SecondOpinion,
        Self::Worker,
    ];

    /// Whether it may change files.
    #[must_use]
    pub const fn edits(self) -> bool {
        matches!(
            self,
            Self::LiquidSpecialist | Self::CssSpecialist | Self::JavascriptSpecialist | Self::JsonSpecialist
        )
    }
}

/// What a run does for the turn that has begun it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Helper {
    /// The run of the turn.
    pub turn: RunId,
    /// The call of that run.
    #[schema(value_type = String, example = "3.0")]
    pub call_id: CallId,
    pub role: HelperRole,
    /// What it was told, in the words of the turn.
    pub task: String,
    /// The files that it may change. Nobody else of the turn changes them meanwhile.
    #[serde(default)]
    pub files: Vec<String>,
    /// The most that it may cost, in micro-dollars. It is a part of what the turn may cost.
    pub ceiling_micros: i64,
    /// When it must be done.
    pub until: Timestamp,
    /// Its model shall come from another provider, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "anthropic")]
    pub other_than: Option<Vendor>,
    /// The files that it has changed, once it has ended.
    #[serde(default)]
    pub edited: Vec<String>,
}
