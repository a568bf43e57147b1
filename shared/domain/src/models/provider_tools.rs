//! Tools that a model's provider runs: the model searches the web or runs code while it writes its reply.
//!
//! They are offered to the models of a provider in the price table that can be told how much to think. These are the
//! generations that combine such tools with functions of ours.

use super::prices::{self, ToolPrices};
use super::request::{ModelId, ModelRequest, ProviderTool, ToolChoice};
use super::usage::Usage;

/// How often a model may use such tools in one call. Providers that accept a limit get it.
pub const MAX_USES: u32 = 5;

/// What one use may add to the input, in tokens: the pages that a search has found, or what a program has printed.
const RESULT_TOKENS: u64 = 12_000;

/// The prices of the tools that the provider of `model` runs. `None` if it runs none for this model.
#[must_use]
pub fn prices(model: &ModelId) -> Option<&'static ToolPrices> {
    prices::price(model)?.tools()
}

/// Leaves in a request the tools that `model` can have. A reply that must call a function of ours, or must not call any, has none.
pub fn fit(request: &mut ModelRequest, model: &ModelId) {
    if prices(model).is_none() || request.tool_choice != ToolChoice::Auto {
        request.provider_tools.clear();
    }
}

/// The most that the uses in one call cost, in micro-dollars, besides tokens.
#[must_use]
pub fn most_micros(request: &ModelRequest, model: &ModelId) -> i64 {
    let Some(prices) = prices(model) else { return 0 };
    let price = |tool: &ProviderTool| match tool {
        ProviderTool::WebSearch => prices.web_search_micros,
        ProviderTool::CodeExecution => prices.code_execution_micros,
    };
    request.provider_tools.iter().map(price).max().unwrap_or(0) * i64::from(MAX_USES)
}

/// The most that the results of the uses in one call add to its input, in tokens.
#[must_use]
pub fn most_input_tokens(request: &ModelRequest) -> u64 {
    if request.provider_tools.is_empty() { 0 } else { u64::from(MAX_USES) * RESULT_TOKENS }
}

/// What the results of the uses in `usage` may have added to the input, in tokens.
pub(super) const fn input_tokens(usage: &Usage) -> u64 {
    (usage.web_searches + usage.code_runs) * RESULT_TOKENS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::request::tests::request;

    #[test]
    fn uses_cost_what_their_provider_says() {
        let used = Usage { web_searches: 3, code_runs: 2, ..Usage::default() };
        for (model, expected) in [
            ("claude-sonnet-5-5", Some(3 * 10_000 + 2 * 4_167)),
            ("gpt-6-sol", Some(3 * 10_000 + 2 * 30_000)),
            ("gemini-3.8-flash", Some(3 * 14_000)),
            // Bedrock, xAI and models that nobody knows run no tools.
            ("us.anthropic.claude-sonnet-5-5", None),
            ("no-such-model", None),
        ] {
            let model = ModelId::new(model);
            let cost = super::prices::cost_micros(&model, &used).unwrap_or(0);
            assert_eq!(cost, expected.unwrap_or(0), "{model}");
            assert_eq!(prices(&model).is_some(), expected.is_some(), "{model}");
            let mut request = ModelRequest { provider_tools: ProviderTool::ALL.to_vec(), ..request() };
            fit(&mut request, &model);
            assert_eq!(request.provider_tools.len(), if expected.is_some() { 2 } else { 0 }, "{model}");
        }
    }

    #[test]
    fn the_highest_cost_covers_every_permitted_use() {
        let model = ModelId::new("gpt-6-sol");
        let mut request = ModelRequest { provider_tools: vec![ProviderTool::CodeExecution], ..request() };
        assert_eq!((most_micros(&request, &model), most_input_tokens(&request)), (150_000, 60_000));
        request.provider_tools.insert(0, ProviderTool::WebSearch);
        let most = Usage { code_runs: u64::from(MAX_USES), ..Usage::default() };
        assert_eq!(Some(most_micros(&request, &model)), super::prices::cost_micros(&model, &most));
        // A call that must use a function of ours, or must not, uses nothing else.
        for choice in [ToolChoice::Any, ToolChoice::None, ToolChoice::Tool("a".into())] {
            let mut request = ModelRequest { tool_choice: choice, ..request.clone() };
            fit(&mut request, &model);
            assert_eq!((most_micros(&request, &model), most_input_tokens(&request)), (0, 0));
        }
    }
}
