//! What the model is told.
//!
//! - [`system`]: what holds for every turn of every chat. It never differs by a byte, so that providers can cache it.
//! - [`modules_for`]: the knowledge that a message needs
//! - [`overlay`]: what holds for one turn
//! - [`shown`]: how much of each file the model is given ahead
//! - [`briefing`]: what stands with a person's message: the overlay, the modules, and the files that were read ahead

mod briefing;
mod modules;
mod overlay;
pub mod shown;
#[cfg(test)]
mod tests;

pub use briefing::{Body, Extent, Heading, Lines, Parts, Shown, briefing, heading, headings};
pub use modules::{MODULES, MOST_MODULES, Module, modules_for};
pub use overlay::{Family, overlay};

const AGENT: &str = include_str!("texts/agent.md").trim_ascii_end();

const HELPER: &str = include_str!("texts/helper.md").trim_ascii_end();

/// The same for the helpers of a turn.
#[must_use]
pub fn system_of_helpers() -> Vec<&'static str> {
    vec![HELPER, modules::THEME_ARCHITECTURE]
}

/// The stable part of the prompt: who the agent is and how it works, then how a theme is built.
#[must_use]
pub fn system() -> Vec<&'static str> {
    vec![AGENT, modules::THEME_ARCHITECTURE]
}
