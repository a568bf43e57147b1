//! The version of a file: a hash of its bytes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

/// The SHA-256 of a file's bytes. Equal bytes have equal versions, whoever wrote them and whenever.
///
/// Serialized, it is 64 hexadecimal digits. Answers show the first 12 of them ([`Version::short`]), and calls may name a version by
/// its first 8 digits or more ([`Version::is_named`]).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version([u8; 32]);

/// The fewest digits that name a version.
const LEAST_DIGITS: usize = 8;

impl Version {
    /// The version of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The first 12 digits, for answers that people and models read.
    #[must_use]
    pub fn short(&self) -> String {
        hex::encode(&self.0[..6])
    }

    /// Whether `name` is the first digits of this version, at least 8 of them.
    #[must_use]
    pub fn is_named(&self, name: &str) -> bool {
        let name = name.trim();
        name.len() >= LEAST_DIGITS && hex::encode(self.0).starts_with(&name.to_ascii_lowercase())
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.short())
    }
}

/// The text is not 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a version is 64 hexadecimal digits")]
pub struct NotAVersion;

impl FromStr for Version {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| NotAVersion)?;
        Ok(Self(bytes))
    }
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(self.0))
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_digits_name_a_version_and_fewer_do_not() {
        let version = Version::of(b"harbour");
        let full = version.to_string();
        assert_eq!(full.len(), 64);
        assert_eq!(full.parse(), Ok(version));
        for (name, expected) in
            [(&full[..8], true), (&full[..7], false), (&full, true), (&full[1..10], false), ("", false)]
        {
            assert_eq!(version.is_named(name), expected, "{name}");
        }
        assert!(version.is_named(&version.short().to_uppercase()));
        assert_eq!("g".repeat(64).parse::<Version>(), Err(NotAVersion));
    }
}
