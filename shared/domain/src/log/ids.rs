//! The two names of a log: its session, and the agent instance within the session. Both come from outside.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The most characters of a session's id.
pub const MAX_SESSION: usize = 128;

/// The most characters of an instance's id.
pub const MAX_INSTANCE: usize = 64;

/// Why a text can't be one of these names. The message follows the field's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    #[error("must be 1 to 128 of the characters A-Z a-z 0-9 _ -")]
    Session,
    #[error("must be 2 to 64 of the characters A-Z a-z 0-9 _ -, with a letter or digit at both ends")]
    Instance,
}

/// One session of a coding assistant. Usually a UUID.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(String);

/// One agent that works in a session: `arch-auth`. Clients call it `agent_id`. Always in lower case.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(String);

impl InstanceId {
    /// The assistant's own log, for everything that no sub-agent was asked for.
    #[must_use]
    pub fn main() -> Self {
        Self("main".to_owned())
    }

    /// Whether the name has a special meaning, so that no agent may choose it. `agent-instructions` is the name of a
    /// file that exports the lines of one session together.
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        matches!(self.0.as_str(), "main" | "global" | "system" | "agent-instructions")
    }
}

impl InstanceId {
    /// Whether the id has the form of a generated name for a prompt that names no agent:
    /// `the-architect-20250812-143022-0a1b2c3d`. Its log belongs to one session.
    #[must_use]
    pub fn is_given(&self) -> bool {
        let mut parts = self.0.rsplit('-').peekable();
        // A suffix distinguishes ids with the same hash: `-2`, or eight characters of a UUID.
        if parts.peek().is_some_and(|last| last.len() < 8) {
            parts.next();
        }
        let is_hex = |part: &str| part.len() == 8 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_number =
            |part: &str, length| part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit());
        let (Some(hash), Some(mut time)) = (parts.next(), parts.next()) else { return false };
        if is_hex(time) {
            time = parts.next().unwrap_or_default();
        }
        is_hex(hash) && is_number(time, 6) && parts.next().is_some_and(|day| is_number(day, 8))
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

impl FromStr for SessionId {
    type Err = InvalidName;
    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let valid = (1..=MAX_SESSION).contains(&text.len()) && text.bytes().all(is_word);
        if valid { Ok(Self(text.to_owned())) } else { Err(InvalidName::Session) }
    }
}

impl FromStr for InstanceId {
    type Err = InvalidName;
    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let bytes = text.as_bytes();
        let ends = bytes.first().is_some_and(u8::is_ascii_alphanumeric)
            && bytes.last().is_some_and(u8::is_ascii_alphanumeric);
        let valid = (2..=MAX_INSTANCE).contains(&bytes.len()) && ends && bytes.iter().copied().all(is_word);
        if valid { Ok(Self(text.to_ascii_lowercase())) } else { Err(InvalidName::Instance) }
    }
}

macro_rules! as_text {
    ($name:ident, $description:literal, $pattern:literal, $example:literal) => {
        impl $name {
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                utoipa::openapi::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .description(Some($description))
                    .pattern(Some($pattern))
                    .examples([$example])
                    .into()
            }
        }

        impl utoipa::ToSchema for $name {}
    };
}

as_text!(
    SessionId,
    "A session of a coding assistant.",
    "^[A-Za-z0-9_-]{1,128}$",
    "0f2c1f9e-5b1d-4a7e-9f0e-0d6a3b6f2a11"
);
as_text!(
    InstanceId,
    "An agent of a coding assistant; `main` is the assistant itself.",
    "^[A-Za-z0-9][A-Za-z0-9_-]{0,62}[A-Za-z0-9]$",
    "arch-auth"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_a_word_of_up_to_128_characters() {
        let longest = "s".repeat(128);
        for good in ["s", "dev-20250812-143022", "0f2c1f9e-5b1d-4a7e-9f0e-0d6a3b6f2a11", "A_b", &longest] {
            assert_eq!(good.parse::<SessionId>().map(|id| id.to_string()), Ok(good.to_owned()));
        }
        for bad in ["", "../x", "a/b", "a b", "a\0", "é", "a.b", "a#b", &"s".repeat(129)] {
            assert_eq!(bad.parse::<SessionId>(), Err(InvalidName::Session), "{bad:?}");
        }
    }

    #[test]
    fn a_made_up_id_is_known_by_its_form() {
        let given = |id: &str| id.parse::<InstanceId>().unwrap().is_given();
        for id in [
            "the-architect-20250812-143022-0a1b2c3d",
            "agent-20250812-143022-0a1b2c3d-2",
            "x-20250812-143022-0a1b2c3d-999",
            "x-20250812-143022-0a1b2c3d-8e0a2b4c",
        ] {
            assert!(given(id), "{id}");
        }
        for id in
            ["arch-auth", "main", "arch-20250812", "x-20250812-143022", "a-b-c-d-e", "x-2025-143022-0a1b2c3d"]
        {
            assert!(!given(id), "{id}");
        }
    }

    #[test]
    fn an_instance_is_a_word_in_lower_case() {
        let longest = "a".repeat(64);
        for (given, kept) in [
            ("arch-001", "arch-001"),
            ("Arch_001", "arch_001"),
            ("a1", "a1"),
            ("main", "main"),
            (&longest, &longest),
        ] {
            assert_eq!(given.parse::<InstanceId>().map(|id| id.to_string()), Ok(kept.to_owned()));
        }
        for bad in ["", "a", "-a", "a-", "_a1", "a b", "a\n", "a.b", "ä1", "a/../b", &"a".repeat(65)] {
            assert_eq!(bad.parse::<InstanceId>(), Err(InvalidName::Instance), "{bad:?}");
        }
    }
}
