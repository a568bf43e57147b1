//! Tools that a model's provider runs: the model searches the web or runs code while it writes its reply.
//!
//! They are offered to the models of a provider in the price table that can be told how much to think. These are the
//! generations that combine such tools with functions of ours. The rows of xAI's models say it themselves: its models think as they decide,
//! and those with several agents can't have functions of ours.

use super::catalog::ModelRef;
use super::prices::{self, ToolPrices};
use super::request::{ModelRequest, ProviderTool, ToolChoice};
use super::usage::Usage;
use super::vendor::Vendor;

/// How often a model may use such tools in one call. Anthropic limits searches to it, OpenAI all uses together, and Google and xAI nothing.
pub const MAX_USES: u32 = 5;

/// What one use may add to the input, in tokens: the pages that a search has found, or what a program has printed.
const RESULT_TOKENS: u64 = 12_000;

/// How often a model may use each tool in this call.
#[must_use]
pub const fn max_uses(request: &ModelRequest) -> u32 {
    match request.max_uses {
        1..MAX_USES => request.max_uses,
        _ => MAX_USES,
    }
}

/// The prices of the tools that the provider of `model` runs. `None` if it runs none for this model. Another server may have a model
/// of the same name, but runs no tools.
#[must_use]
pub fn prices(model: &ModelRef) -> Option<&'static ToolPrices> {
    match model.vendor {
        Vendor::Anthropic | Vendor::OpenAi | Vendor::Google | Vendor::Xai => {
            prices::price(&model.model)?.tools()
        }
        Vendor::Bedrock | Vendor::Server(_) | Vendor::Demo => None,
    }
}

/// Leaves in a request the tools that `model` can have. A reply that must call a function of ours, or must not call any, has none.
pub fn fit(request: &mut ModelRequest, model: &ModelRef) {
    if prices(model).is_none() || request.tool_choice != ToolChoice::Auto {
        request.provider_tools.clear();
    }
}

/// The most that the uses in one call cost, in micro-dollars, besides tokens.
#[must_use]
pub fn most_micros(request: &ModelRequest, model: &ModelRef) -> i64 {
    let Some(prices) = prices(model) else { return 0 };
    let most = |tool, price: i64, uses: u32| {
        if request.provider_tools.contains(&tool) { price * i64::from(uses) } else { 0 }
    };
    let uses = max_uses(request);
    let searches = most(ProviderTool::WebSearch, prices.web_search_micros, uses);
    // Anthropic runs all code of a call in one container, besides the searches.
    let containers = if model.vendor == Vendor::Anthropic { 1 } else { uses };
    let code = most(ProviderTool::CodeExecution, prices.code_execution_micros, containers);
    if model.vendor == Vendor::OpenAi { searches.max(code) } else { searches + code }
}

/// The most that the results of the uses in one call add to its input, in tokens.
#[must_use]
pub fn most_input_tokens(request: &ModelRequest) -> u64 {
    if request.provider_tools.is_empty() { 0 } else { u64::from(max_uses(request)) * RESULT_TOKENS }
}

/// What the results of the uses in `usage` may have added to the input, in tokens.
pub(super) const fn input_tokens(usage: &Usage) -> u64 {
    (usage.web_searches + usage.code_runs) * RESULT_TOKENS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::request::tests::request;

    fn reference(model: &str) -> ModelRef {
        model.parse().expect("a model")
    }

    #[test]
    fn uses_cost_what_their_provider_says() {
        let used = Usage { web_searches: 3, code_runs: 2, ..Usage::default() };
        for (model, expected) in [
            ("anthropic/claude-sonnet-5-5", Some(3 * 10_000 + 2 * 4_167)),
            ("openai/gpt-6-sol", Some(3 * 10_000 + 2 * 30_000)),
            ("google/gemini-3.8-flash", Some(3 * 14_000)),
            ("xai/grok-4.3", Some(3 * 5_000 + 2 * 5_000)),
            ("xai/grok-4.20-0309-reasoning", Some(3 * 5_000 + 2 * 5_000)),
            // These models of xAI, Bedrock and models that nobody knows run no tools.
            ("xai/grok-4.20-multi-agent", None),
            ("xai/grok-code-fast-1", None),
            ("bedrock/us.anthropic.claude-sonnet-5-5", None),
            ("openai/no-such-model", None),
        ] {
            let model = reference(model);
            let cost = super::prices::price(&model.model).map_or(0, |price| price.cost_micros(&used));
            assert_eq!(cost, expected.unwrap_or(0), "{model}");
            assert_eq!(prices(&model).is_some(), expected.is_some(), "{model}");
            let mut request = ModelRequest { provider_tools: ProviderTool::ALL.to_vec(), ..request() };
            fit(&mut request, &model);
            assert_eq!(request.provider_tools.len(), if expected.is_some() { 2 } else { 0 }, "{model}");
        }
    }

    #[test]
    fn another_server_runs_no_tools_for_a_model_of_the_same_name() {
        let model = reference("compatible/gpt-6-sol");
        let mut request = ModelRequest { provider_tools: ProviderTool::ALL.to_vec(), ..request() };
        assert_eq!((prices(&model), most_micros(&request, &model)), (None, 0));
        fit(&mut request, &model);
        assert_eq!(request.provider_tools, []);
    }

    #[test]
    fn the_highest_cost_covers_every_permitted_use() {
        use ProviderTool::{CodeExecution, WebSearch};
        for (model, tools, searches, containers) in [
            ("anthropic/claude-sonnet-5-5", &[WebSearch][..], 5, 0),
            ("anthropic/claude-sonnet-5-5", &[CodeExecution], 0, 1),
            ("anthropic/claude-sonnet-5-5", &[WebSearch, CodeExecution], 5, 1),
            ("openai/gpt-6-sol", &[WebSearch], 5, 0),
            ("openai/gpt-6-sol", &[WebSearch, CodeExecution], 0, 5),
            ("google/gemini-3.8-flash", &[WebSearch, CodeExecution], 5, 0),
            ("google/gemini-3.8-flash", &[], 0, 0),
            ("xai/grok-4.3", &[WebSearch], 5, 0),
            ("xai/grok-4.3", &[WebSearch, CodeExecution], 5, 5),
        ] {
            let model = reference(model);
            let request = ModelRequest { provider_tools: tools.to_vec(), ..request() };
            let most = Usage { web_searches: searches, code_runs: containers, ..Usage::default() };
            let expected = super::prices::price(&model.model).map(|price| price.cost_micros(&most));
            assert_eq!(Some(most_micros(&request, &model)), expected, "{model} {tools:?}");
            assert_eq!(most_input_tokens(&request), if tools.is_empty() { 0 } else { 60_000 });
        }
        // A call that must use a function of ours, or must not, uses nothing else.
        let model = reference("openai/gpt-6-sol");
        for choice in [ToolChoice::Any, ToolChoice::None, ToolChoice::Tool("a".into())] {
            let provider_tools = ProviderTool::ALL.to_vec();
            let mut request = ModelRequest { tool_choice: choice, provider_tools, ..request() };
            fit(&mut request, &model);
            assert_eq!((most_micros(&request, &model), most_input_tokens(&request)), (0, 0));
        }
    }
}
