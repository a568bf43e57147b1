//! Outlines of a theme.

use domain::ids::{Owner, ProjectId};
use domain::validate::FieldErrors;
use serde::Deserialize;
use theme::ThemeIndex;
use theme::answers::{DEFAULT_TOKENS, MAX_REQUEST, MAX_TOKENS, RepoMapAnswer};
use utoipa::ToSchema;

use super::{asked, current};
use shared::context::Cx;
use shared::error::Result;

/// The size of an outline of the theme, and what it is for.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[schema(example = json!({ "request": "cart drawer", "max_tokens": 2000 }))]
pub struct RepoMapAsk {
    /// What the outline is for. Without it, the files that most other files need come first.
    #[serde(default)]
    pub request: Option<String>,
    #[serde(default)]
    pub active_file: Option<String>,
    /// The maximum size, 1 to 100,000 tokens; 2,000, 4,000, 8,000 and 12,000 are usual. Default 2,000.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 100_000)]
    pub max_tokens: Option<usize>,
}

/// An outline of the theme that is never larger than `max_tokens`.
///
/// # Errors
/// 404 if the project does not exist, 400 if a field is invalid.
pub async fn repo_map(cx: &Cx, owner: &Owner, project: ProjectId, ask: &RepoMapAsk) -> Result<RepoMapAnswer> {
    let mut errors = FieldErrors::default();
    errors.length("request", ask.request.as_deref().unwrap_or_default(), 0, MAX_REQUEST);
    let max_tokens = ask.max_tokens.unwrap_or(DEFAULT_TOKENS);
    if !(1..=MAX_TOKENS).contains(&max_tokens) {
        errors.add("max_tokens", format!("must be 1 to {MAX_TOKENS}, is {max_tokens}"));
    }
    errors.into_result(())?;
    let warm = current(cx, owner, project).await?;
    let (ask, source) = (ask.clone(), warm.source);
    let outline = move |index: &ThemeIndex| {
        RepoMapAnswer::of(index, source, ask.request.as_deref(), ask.active_file.as_deref(), max_tokens)
    };
    let (outline, took_us) = asked(cx, &warm, outline).await?;
    Ok(RepoMapAnswer { took_us, ..outline })
}
