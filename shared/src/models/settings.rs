//! Which models a process uses.

use super::Limits;

/// Where models come from. The first one that is set wins, in this order: `url`, `anthropic_key`, `openai_key`,
/// `google_key`, `xai_key`, `demo_url`.
///
/// | variable | meaning |
/// |---|---|
/// | `LAMPLIGHTER_MODEL_URL` | an OpenAI-compatible server; the address usually ends in `/v1` |
/// | `LAMPLIGHTER_MODEL_KEY` | its key, if it needs one |
/// | `LAMPLIGHTER_MODEL_TOOLS` | `off` if its models can't call tools; the default is `on` |
/// | `LAMPLIGHTER_MODEL` | one model for every tier, instead of the default models |
/// | `ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, `GEMINI_API_KEY`, `XAI_API_KEY` | these providers, with their default models |
#[derive(Clone, Default)]
pub struct ModelsConfig {
    pub url: Option<String>,
    pub url_key: Option<String>,
    pub url_has_no_tools: bool,
    pub model: Option<String>,
    pub anthropic_key: Option<String>,
    pub openai_key: Option<String>,
    pub google_key: Option<String>,
    pub xai_key: Option<String>,
    /// The demo model's base address. No variable sets it; `infra/local` does.
    pub demo_url: Option<String>,
    /// Whether calls of the demo model are counted at the prices of a small model, for tests of budgets. It never costs
    /// money.
    pub demo_costs: bool,
    pub limits: Limits,
}
