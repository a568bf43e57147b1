//! Accounts: their record ([`profile`]), their [`plans`], their [`quota`], the [`rates`] of requests, API keys with their
//! [`scopes`], the keys of model providers that owners bring, and the [`export`], the [`import`] and
//! the [`deletion`] of an account.
//!
//! An API key contains its owner and the id of its record, so the record is found without a search across owners.
//! The secret proves that the key is genuine; only the hash of the secret is stored.

pub mod deletion;
pub mod export;
pub mod import;
pub mod plans;
pub mod profile;
mod provider_keys;
pub mod quota;
pub mod rates;
pub mod scopes;
pub mod servers;

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::ids::{ApiKeyId, Owner};

pub use provider_keys::{
    KeyProvider, MAX_PROVIDER_KEY, MIN_PROVIDER_KEY, UnknownProvider, checked_provider_key, last_characters,
};

/// The prefix of every key. Scanners for leaked secrets recognise it.
pub const KEY_PREFIX: &str = "llk_";

/// A complete API key, as its holder has it: `llk_<owner>.<key>.<secret>`. Each part is base64url or hexadecimal.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKeyToken {
    pub owner: Owner,
    pub key_id: ApiKeyId,
    secret: [u8; 32],
}

/// The text is not a Lamplighter API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an API key")]
pub struct InvalidKey;

/// SHA-256 of a secret. The secret has 256 bits of entropy, so a slow hash would add nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SecretHash([u8; 32]);

impl ApiKeyToken {
    #[must_use]
    pub const fn new(owner: Owner, key_id: ApiKeyId, secret: [u8; 32]) -> Self {
        Self { owner, key_id, secret }
    }

    #[must_use]
    pub fn hash(&self) -> SecretHash {
        SecretHash(Sha256::digest(self.secret).into())
    }

    /// The key as text. It is shown once, when the key is created.
    #[must_use]
    pub fn reveal(&self) -> String {
        format!(
            "{KEY_PREFIX}{}.{}.{}",
            BASE64_URL_SAFE_NO_PAD.encode(self.owner.as_str()),
            self.key_id.uuid().simple(),
            BASE64_URL_SAFE_NO_PAD.encode(self.secret)
        )
    }
}

impl FromStr for ApiKeyToken {
    type Err = InvalidKey;
    fn from_str(text: &str) -> Result<Self, InvalidKey> {
        let rest = text.strip_prefix(KEY_PREFIX).ok_or(InvalidKey)?;
        let mut parts = rest.split('.');
        let (Some(owner), Some(id), Some(secret), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(InvalidKey);
        };
        let decode = |part: &str| BASE64_URL_SAFE_NO_PAD.decode(part).map_err(|_| InvalidKey);
        let owner = String::from_utf8(decode(owner)?).map_err(|_| InvalidKey)?;
        Ok(Self {
            owner: Owner::new(owner).map_err(|_| InvalidKey)?,
            key_id: format!("{}{id}", ApiKeyId::PREFIX).parse().map_err(|_| InvalidKey)?,
            secret: decode(secret)?.try_into().map_err(|_| InvalidKey)?,
        })
    }
}

/// The hour to store as the last use of a key that is used `now`, or `None` if that hour is already stored. So the uses
/// of a key cost one write in each hour.
#[must_use]
pub fn hour_of_use(stored: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
    const HOUR: i64 = 3600;
    let hour = Timestamp::from_second(now.as_second().div_euclid(HOUR) * HOUR).ok()?;
    stored.is_none_or(|stored| stored < hour).then_some(hour)
}

impl fmt::Debug for ApiKeyToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKeyToken").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

impl SecretHash {
    /// Compares in constant time, so the duration does not reveal where the difference is.
    #[must_use]
    pub fn matches(&self, stored: &str) -> bool {
        let own = self.to_string();
        own.len() == stored.len()
            && own.bytes().zip(stored.bytes()).fold(0, |diff, (a, b)| diff | (a ^ b)) == 0
    }
}

impl fmt::Display for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_key_reads_back(owner in "[a-z0-9][A-Za-z0-9._|:@+-]{0,40}", id: u128, secret: [u8; 32]) {
            let key = ApiKeyToken::new(Owner::new(owner).unwrap(), ApiKeyId::from_uuid(uuid::Uuid::from_u128(id)), secret);
            let text = key.reveal();
            prop_assert_eq!(text.parse::<ApiKeyToken>().unwrap(), key.clone());
            prop_assert!(key.hash().matches(&key.hash().to_string()));
            let debug = format!("{key:?}");
            prop_assert!(!debug.contains(text.rsplit('.').next().unwrap()));
        }

        #[test]
        fn no_text_panics(text in ".*") {
            let _ = text.parse::<ApiKeyToken>();
            let _ = format!("{KEY_PREFIX}{text}").parse::<ApiKeyToken>();
        }
    }

    #[test]
    fn the_uses_of_a_key_are_stored_once_in_each_hour() {
        let at = |time: &str| time.parse::<Timestamp>().unwrap();
        let (mut stored, mut writes) = (None, Vec::new());
        for minute in 0..180 {
            let now = at("2026-11-21T11:30:07Z") + jiff::SignedDuration::from_mins(minute);
            if let Some(hour) = hour_of_use(stored, now) {
                writes.push(hour.to_string());
                stored = Some(hour);
            }
        }
        let hours = ["11", "12", "13", "14"].map(|hour| format!("2026-11-21T{hour}:00:00Z"));
        assert_eq!(writes, hours);
        // A clock that is behind does not take an hour back.
        assert_eq!(hour_of_use(stored, at("2026-11-21T13:59:59Z")), None);
    }

    #[test]
    fn another_secret_does_not_match() {
        let key = |secret| {
            ApiKeyToken::new(Owner::new("me").unwrap(), ApiKeyId::from_uuid(uuid::Uuid::nil()), secret)
        };
        assert!(!key([1; 32]).hash().matches(&key([2; 32]).hash().to_string()));
        assert!(!key([1; 32]).hash().matches(""));
    }
}
