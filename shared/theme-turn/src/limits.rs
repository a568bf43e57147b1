//! What a turn of this size may use.

use domain::models::routing::TaskTier;
use domain::projects::turn::{TurnMode, TurnStrategy};

/// A file with more characters is shown as an outline.
pub const WHOLE_FILE_CHARACTERS: usize = 16_000;

/// The limits of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How often the model is called.
    pub steps: usize,
    /// How many files the model is given ahead, whole or as an outline.
    pub files: usize,
    /// The most tokens of the list of files that says what is in the theme.
    pub map_tokens: usize,
    /// How many questions about the graph of files it may ask.
    pub graph_lookups: usize,
    /// The most tokens of one reply.
    pub reply_tokens: u32,
    /// How many calls may read before the first edit. `None`: without a limit.
    pub lookups_before_edit: Option<usize>,
}

/// How long a turn may take, in minutes.
pub const LONGEST_MINUTES: i64 = 30;

/// The limits of a turn of this mode, size and strategy.
#[must_use]
pub const fn limits_of(mode: TurnMode, tier: TaskTier, strategy: TurnStrategy) -> Limits {
    let is_god = matches!(strategy, TurnStrategy::GodMode);
    let steps = match (mode.edits(), tier) {
        (_, TaskTier::Trivial) => 6,
        (false, _) => 36,
        (true, _) => 80,
    };
    let (files, map_tokens) = match (tier, is_god) {
        (TaskTier::Trivial, _) => (6, 2_000),
        (TaskTier::Simple, false) => (12, 2_000),
        (TaskTier::Complex, false) => (20, 2_000),
        (TaskTier::Architectural, false) => (50, 4_000),
        (_, true) => (60, 12_000),
    };
    let graph_lookups = match (tier, is_god) {
        (_, true) => 30,
        (TaskTier::Trivial, false) => 4,
        _ => 10,
    };
    Limits {
        steps,
        files,
        map_tokens,
        graph_lookups,
        reply_tokens: if is_god { 16_384 } else { 4_096 },
        lookups_before_edit: if is_god { None } else { Some(24) },
    }
}
