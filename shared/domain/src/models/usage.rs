//! The tokens of a call, in one form for all providers. Every token is counted in exactly one field, except reasoning
//! tokens, which are also part of the output.

use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// The tokens that models have used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct Usage {
    /// Input that was neither read from nor written to a cache.
    pub input_tokens: u64,
    pub cache_read_tokens: u64,
    /// Written to a cache for minutes (5 at Anthropic, 30 at OpenAI).
    pub cache_write_5m_tokens: u64,
    /// Written to a cache for an hour or more.
    pub cache_write_1h_tokens: u64,
    /// All billed output, including reasoning.
    pub output_tokens: u64,
    /// The part of `output_tokens` that was reasoning.
    pub reasoning_tokens: u64,
    /// Searches of the web by the provider.
    #[serde(skip_serializing_if = "is_zero")]
    pub web_searches: u64,
    /// Containers in which the provider ran code. xAI: runs of code.
    #[serde(skip_serializing_if = "is_zero")]
    pub code_runs: u64,
    /// Some of it is an estimate: a call was cancelled or cut off, and its provider did not say what it used.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Usage {
    /// What was used after `earlier`, which is part of `self`.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_sub(earlier.input_tokens),
            cache_read_tokens: self.cache_read_tokens.saturating_sub(earlier.cache_read_tokens),
            cache_write_5m_tokens: self.cache_write_5m_tokens.saturating_sub(earlier.cache_write_5m_tokens),
            cache_write_1h_tokens: self.cache_write_1h_tokens.saturating_sub(earlier.cache_write_1h_tokens),
            output_tokens: self.output_tokens.saturating_sub(earlier.output_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_sub(earlier.reasoning_tokens),
            web_searches: self.web_searches.saturating_sub(earlier.web_searches),
            code_runs: self.code_runs.saturating_sub(earlier.code_runs),
            estimated: self.estimated,
        }
    }

    /// All input tokens, cached or not.
    #[must_use]
    pub const fn total_input(&self) -> u64 {
        self.input_tokens
            .saturating_add(self.cache_read_tokens)
            .saturating_add(self.cache_write_5m_tokens)
            .saturating_add(self.cache_write_1h_tokens)
    }
}

impl Add for Usage {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            cache_read_tokens: self.cache_read_tokens.saturating_add(other.cache_read_tokens),
            cache_write_5m_tokens: self.cache_write_5m_tokens.saturating_add(other.cache_write_5m_tokens),
            cache_write_1h_tokens: self.cache_write_1h_tokens.saturating_add(other.cache_write_1h_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_add(other.reasoning_tokens),
            web_searches: self.web_searches.saturating_add(other.web_searches),
            code_runs: self.code_runs.saturating_add(other.code_runs),
            estimated: self.estimated || other.estimated,
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(calls: I) -> Self {
        calls.fold(Self::default(), Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_add_up() {
        let a = Usage {
            input_tokens: 1,
            cache_read_tokens: 20,
            cache_write_5m_tokens: 300,
            cache_write_1h_tokens: 4_000,
            output_tokens: 50_000,
            reasoning_tokens: 600_000,
            web_searches: 7,
            code_runs: 80,
            estimated: false,
        };
        assert_eq!(a.total_input(), 4_321);
        let doubled = Usage {
            input_tokens: 2,
            cache_read_tokens: 40,
            cache_write_5m_tokens: 600,
            cache_write_1h_tokens: 8_000,
            output_tokens: 100_000,
            reasoning_tokens: 1_200_000,
            web_searches: 14,
            code_runs: 160,
            estimated: false,
        };
        assert_eq!([a, a].into_iter().sum::<Usage>(), doubled);
        let most = Usage { input_tokens: u64::MAX, cache_read_tokens: u64::MAX, web_searches: u64::MAX, ..a };
        assert_eq!((most + most).input_tokens, u64::MAX);
        assert_eq!(most.total_input(), u64::MAX);
        let json = serde_json::to_string(&doubled).unwrap();
        assert_eq!(serde_json::from_str::<Usage>(&json).unwrap(), doubled);
    }
}
