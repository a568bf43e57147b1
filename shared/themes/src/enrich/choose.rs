//! Which tier of models describes files, how much text a model takes at once, and the parts of a request that stay the same.

use domain::models::{CacheTtl, ModelId, ModelTier, SystemBlock, ToolSpec, estimate, prices};
use theme::ThemeIndex;
use theme::enrich::choose::MAX_ANSWER;
use theme::enrich::prompt;

/// The largest input, in tokens. Above 100,000 tokens some models cost five times as much, and all of them become less
/// accurate.
const MAX_QUESTION: u64 = 90_000;

/// For models without an entry in the price table: servers on people's own machines cut longer inputs silently.
const MAX_QUESTION_UNKNOWN: u64 = 24_000;

/// An edit touches at most this many files.
const MAX_EDIT_FILES: usize = 8;

/// The model tier for a number of files. A whole theme is described once, and its connections are worth a better model.
/// Edits are described often, and their changes are in the files themselves.
pub(super) fn tier(files: usize) -> ModelTier {
    if files > MAX_EDIT_FILES { ModelTier::Standard } else { ModelTier::Fast }
}

/// Whether a model should get an input of `bytes`.
pub(super) fn fits(model: &ModelId, bytes: usize) -> bool {
    let largest = match prices::price(model) {
        Some(price) => MAX_QUESTION.min(price.max_input.saturating_sub(u64::from(MAX_ANSWER))),
        None => MAX_QUESTION_UNKNOWN,
    };
    estimate::tokens(model, bytes) <= largest
}

/// The part of a request that is the same for all files of a theme: the rules and the theme's outline.
pub(super) fn system(index: &ThemeIndex) -> Vec<SystemBlock> {
    vec![
        SystemBlock::cached(prompt::RULES, CacheTtl::OneHour),
        SystemBlock::cached(prompt::outline(index), CacheTtl::FiveMinutes),
    ]
}

/// The tool that the model must call.
pub(super) fn tool() -> ToolSpec {
    ToolSpec {
        name: prompt::TOOL.to_owned(),
        description: prompt::TOOL_DESCRIPTION.to_owned(),
        input_schema: prompt::tool_schema(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_is_described_by_a_fast_model() {
        assert_eq!(
            (tier(1), tier(MAX_EDIT_FILES), tier(MAX_EDIT_FILES + 1)),
            (ModelTier::Fast, ModelTier::Fast, ModelTier::Standard)
        );
    }

    #[test]
    fn a_known_model_takes_more_at_once() {
        for (model, tokens) in [("claude-haiku-5-5", MAX_QUESTION), ("unheard-of", MAX_QUESTION_UNKNOWN)] {
            let model = ModelId::new(model);
            let largest = (0..).map(|n| n * 100).take_while(|&bytes| fits(&model, bytes)).last().unwrap();
            assert!(estimate::tokens(&model, largest) <= tokens, "{model} {largest}");
            assert!(estimate::tokens(&model, largest + 100) > tokens, "{model} {largest}");
        }
    }
}
