//! Outlines of a theme.

use serde::Serialize;
use utoipa::ToSchema;

use super::super::index::ThemeIndex;
use super::super::repo_map::BYTES_PER_TOKEN;
use super::Source;

/// The largest size of an outline, in tokens.
pub const MAX_TOKENS: usize = 100_000;

/// The size of an outline if nothing else is asked for.
pub const DEFAULT_TOKENS: usize = 2_000;

/// An outline of the theme.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct RepoMapAnswer {
    pub source: Source,
    /// The outline.
    pub text: String,
    /// Its size, at four bytes a token.
    pub tokens: usize,
    pub max_tokens: usize,
    pub took_us: u64,
}

impl RepoMapAnswer {
    /// An outline that is never larger than `max_tokens`. A blank request is none.
    pub fn of(
        index: &ThemeIndex,
        source: Source,
        request: Option<&str>,
        active_file: Option<&str>,
        max_tokens: usize,
    ) -> Self {
        let request = request.filter(|request| !request.trim().is_empty());
        let text = index.repo_map(request, active_file, max_tokens);
        Self { source, tokens: text.len().div_ceil(BYTES_PER_TOKEN), text, max_tokens, took_us: 0 }
    }
}
