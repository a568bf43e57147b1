//! What a turn of this size may use.

use domain::models::Usage;
use domain::models::routing::TaskTier;
use domain::projects::turn::{TurnMode, TurnStrategy};

/// A file with more characters is shown as an outline.
pub const WHOLE_FILE_CHARACTERS: usize = 16_000;

/// The limits of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How often the model is called.
    pub steps: usize,
    /// How many files the model is given ahead, whole or in part.
    pub files: usize,
    /// The most characters of these files together.
    pub briefing_characters: usize,
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
    let (files, briefing_characters) = match (tier, is_god) {
        (TaskTier::Trivial, _) => (6, 24_000),
        (TaskTier::Simple, false) => (12, 40_000),
        (TaskTier::Complex, false) => (20, 64_000),
        (TaskTier::Complex, true) => (60, 64_000),
        (TaskTier::Architectural, false) => (50, 96_000),
        (TaskTier::Simple | TaskTier::Architectural, true) => (60, 96_000),
    };
    let graph_lookups = match (tier, is_god) {
        (_, true) => 30,
        (TaskTier::Trivial, false) => 4,
        _ => 10,
    };
    Limits {
        steps,
        files,
        briefing_characters,
        graph_lookups,
        reply_tokens: if is_god { 16_384 } else { 4_096 },
        lookups_before_edit: if is_god { None } else { Some(24) },
    }
}

/// What a whole turn probably uses, for an estimate of its cost: what turns of its size use on the average, and at least what its first
/// request has. `bytes`: of all that was said and is told.
#[must_use]
pub fn tokens_of(mode: TurnMode, tier: TaskTier, bytes: usize) -> Usage {
    let (input, output) = match (mode, tier) {
        (TurnMode::Ask, _) => (10_000, 3_000),
        (_, TaskTier::Trivial) => (8_000, 2_000),
        (_, TaskTier::Simple) => (30_000, 8_000),
        (_, TaskTier::Complex) => (80_000, 15_000),
        (_, TaskTier::Architectural) => (150_000, 30_000),
    };
    // About four bytes are a token; the tools and the stable part of the prompt have about 6,000.
    let first = 6_000 + bytes as u64 / 4;
    Usage { input_tokens: first.max(input), output_tokens: output, estimated: true, ..Usage::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::strategy_of;

    #[test]
    fn the_table_of_limits() {
        use TaskTier::{Architectural, Complex, Simple, Trivial};
        use TurnMode::{Ask, Code, Debug, Plan};
        // The size; steps of code, debug, plan and ask; files; questions to the graph; tokens of a reply; calls before the first edit.
        let table = [
            (Trivial, [6, 6, 6, 6], 6, 4, 4_096, Some(24)),
            (Simple, [80, 80, 36, 36], 12, 10, 4_096, Some(24)),
            (Complex, [80, 80, 36, 36], 60, 30, 16_384, None),
            (Architectural, [80, 80, 36, 36], 60, 30, 16_384, None),
        ];
        for (tier, steps, files, graph, reply, lookups) in table {
            for (mode, steps) in [Code, Debug, Plan, Ask].into_iter().zip(steps) {
                let limits = limits_of(mode, tier, strategy_of(tier));
                assert_eq!(limits.steps, steps, "{tier:?} {mode:?}");
                assert_eq!((limits.files, limits.graph_lookups), (files, graph), "{tier:?}");
                assert_eq!((limits.reply_tokens, limits.lookups_before_edit), (reply, lookups), "{tier:?}");
            }
        }
    }

    #[test]
    fn an_estimate_has_at_least_the_first_request() {
        let tokens = |bytes| tokens_of(TurnMode::Code, TaskTier::Trivial, bytes).input_tokens;
        assert_eq!((tokens(0), tokens(8_000), tokens(40_000)), (8_000, 8_000, 16_000));
    }
}
