//! Keys of model providers that an owner brings.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::validate::FieldErrors;

/// The shortest and the longest key, in characters.
pub const MIN_PROVIDER_KEY: usize = 16;
pub const MAX_PROVIDER_KEY: usize = 512;

/// The number of last characters that identify a key to its owner.
const SHOWN: usize = 4;

/// A provider for which an owner can store a key.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum KeyProvider {
    Anthropic,
    Google,
    OpenAi,
    Xai,
}

/// The text names no provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be one of anthropic, google, openai, xai")]
pub struct UnknownProvider;

impl KeyProvider {
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::Google, Self::OpenAi, Self::Xai];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Google => "google",
            Self::OpenAi => "openai",
            Self::Xai => "xai",
        }
    }
}

impl fmt::Display for KeyProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for KeyProvider {
    type Err = UnknownProvider;
    fn from_str(text: &str) -> Result<Self, UnknownProvider> {
        Self::ALL.into_iter().find(|provider| provider.name() == text).ok_or(UnknownProvider)
    }
}

/// A key as it is sent to the provider: without the whitespace around it, which a copied key often has. The error never
/// contains the key.
///
/// # Errors
/// If the key has an invalid length, or characters that no HTTP header may have.
pub fn checked_provider_key(text: &str) -> Result<&str, FieldErrors> {
    let key = text.trim();
    let limit = format!("{MIN_PROVIDER_KEY} to {MAX_PROVIDER_KEY} characters");
    let length = key.chars().count();
    if key.is_empty() {
        return Err(FieldErrors::one("key", format!("is required ({limit})")));
    }
    if !(MIN_PROVIDER_KEY..=MAX_PROVIDER_KEY).contains(&length) {
        return Err(FieldErrors::one("key", format!("must be {limit}, is {length}")));
    }
    if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(FieldErrors::one("key", "must have visible ASCII characters only, and no spaces"));
    }
    Ok(key)
}

/// The end of a checked key, by which its owner recognises it.
#[must_use]
pub fn last_characters(key: &str) -> &str {
    key.get(key.len().saturating_sub(SHOWN)..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_reads_back_by_its_name_in_json() {
        for provider in KeyProvider::ALL {
            assert_eq!(provider.name().parse(), Ok(provider));
            assert_eq!(serde_json::to_value(provider).unwrap(), provider.name());
        }
        assert_eq!("OpenAI".parse::<KeyProvider>(), Err(UnknownProvider));
    }

    #[test]
    fn a_key_is_visible_ascii_of_a_sane_length() {
        let longest = "k".repeat(MAX_PROVIDER_KEY);
        assert_eq!(checked_provider_key(" sk-0123456789abcdef\n"), Ok("sk-0123456789abcdef"));
        assert_eq!(checked_provider_key(&longest), Ok(&*longest));
        for (key, says) in [
            ("", "is required"),
            (" \n ", "is required"),
            ("sk-0123456789ab", "16 to 512 characters, is 15"),
            (&format!("{longest}k"), "16 to 512 characters, is 513"),
            ("sk-01234567\u{0}9abcdef", "visible ASCII"),
            ("sk-01234567\r\nabcdef", "visible ASCII"),
            ("sk-01234567 9abcdef", "visible ASCII"),
            ("sk-01234567é9abcdef", "visible ASCII"),
        ] {
            let errors = checked_provider_key(key).unwrap_err();
            assert_eq!(errors.0[0].field, "key");
            assert!(errors.0[0].message.contains(says), "{key:?}: {errors}");
            assert!(key.trim().is_empty() || !errors.to_string().contains(key.trim()));
        }
        assert_eq!(last_characters("sk-0123456789abcdef"), "cdef");
    }
}
