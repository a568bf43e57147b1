//! What a message asks for, and how large it is. No model is called.

use domain::models::routing::TaskTier;
use domain::projects::turn::{TurnMode, TurnStrategy};

/// A message with what is known when it arrives.
#[derive(Clone, Debug, Default)]
pub struct Asked<'a> {
    /// In the person's words.
    pub message: &'a str,
    /// The path of the file that the person has open.
    pub active_file: Option<&'a str>,
    /// Whether an earlier turn of this conversation has changed the theme.
    pub has_changed: bool,
    /// Whether the client has sent diagnostics, such as errors of a page.
    pub has_diagnostics: bool,
}

/// How a message is classified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classified {
    pub mode: TurnMode,
    pub tier: TaskTier,
    /// Whether the rules are sure. Otherwise a model may be asked.
    pub is_sure: bool,
    /// Why, in words, one reason each.
    pub why: Vec<String>,
}

/// The strategy for a task of this size.
#[must_use]
pub const fn strategy_of(tier: TaskTier) -> TurnStrategy {
    match tier {
        TaskTier::Trivial => TurnStrategy::Simple,
        TaskTier::Simple => TurnStrategy::Hybrid,
        TaskTier::Complex | TaskTier::Architectural => TurnStrategy::GodMode,
    }
}

/// Classifies a message. `mode`: what the client has chosen, if it has chosen.
#[must_use]
pub fn classify(asked: &Asked<'_>, mode: Option<TurnMode>) -> Classified {
    let _ = asked;
    Classified {
        mode: mode.unwrap_or(TurnMode::Code),
        tier: TaskTier::Simple,
        is_sure: false,
        why: Vec::new(),
    }
}
