//! Secrets that an owner stores for the calls of actions. Each is sent only to the hosts that it names.
//!
//! - [`signature`]: what a secret signs
//! - [`masks`]: hides secrets in texts that others have written

pub mod masks;
pub mod signature;

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use self::signature::SigningSecret;
use crate::reach::{self, Policy};
use crate::validate::FieldErrors;

/// The most secrets of an owner.
pub const MAX_SECRETS: usize = 50;

/// The longest name, in characters.
pub const MAX_SECRET_NAME: usize = 64;

/// The longest value, in bytes.
pub const MAX_SECRET_VALUE: usize = 4_096;

/// The most hosts of a secret.
pub const MAX_SECRET_HOSTS: usize = 10;

/// The name by which a call uses a secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SecretName(String);

/// The text is not the name of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to {MAX_SECRET_NAME} lower-case letters, digits, hyphens and underscores")]
pub struct InvalidSecretName;

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for SecretName {
    type Err = InvalidSecretName;

    fn from_str(text: &str) -> Result<Self, InvalidSecretName> {
        text.to_owned().try_into()
    }
}

impl TryFrom<String> for SecretName {
    type Error = InvalidSecretName;

    fn try_from(text: String) -> Result<Self, InvalidSecretName> {
        let of_name =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
        let is_name = (1..=MAX_SECRET_NAME).contains(&text.len()) && text.bytes().all(of_name);
        if is_name { Ok(Self(text)) } else { Err(InvalidSecretName) }
    }
}

impl From<SecretName> for String {
    fn from(SecretName(text): SecretName) -> Self {
        text
    }
}

/// What is known of a secret without its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SecretTerms {
    /// The hosts to which it may be sent, as a URL has them: in lower case, international names as `xn--…`.
    #[schema(example = json!(["api.github.com"]))]
    pub hosts: BTreeSet<String>,
    /// Whether it can sign: its value is `whsec_` and the base64 of 24 to 64 bytes.
    pub signs: bool,
}

impl SecretTerms {
    /// Checks what a person has written. The errors never contain the value.
    ///
    /// # Errors
    /// Every invalid field with its limit.
    pub fn checked(value: &str, hosts: &[String], policy: &Policy) -> Result<Self, FieldErrors> {
        let mut errors = FieldErrors::default();
        check_value(&mut errors, value);
        let hosts = checked_hosts(&mut errors, hosts, policy);
        errors.into_result(Self { hosts, signs: SigningSecret::parse(value).is_ok() })
    }
}

fn check_value(errors: &mut FieldErrors, value: &str) {
    if value.is_empty() {
        errors.add("value", format!("is required (1 to {MAX_SECRET_VALUE} bytes)"));
    } else if value.len() > MAX_SECRET_VALUE {
        errors.add("value", format!("must be 1 to {MAX_SECRET_VALUE} bytes, is {}", value.len()));
    } else if !is_printable(value) || value.trim() != value {
        errors.add("value", "must be printable ASCII, without spaces at its ends");
    }
}

fn checked_hosts(errors: &mut FieldErrors, hosts: &[String], policy: &Policy) -> BTreeSet<String> {
    if !(1..=MAX_SECRET_HOSTS).contains(&hosts.len()) {
        errors.add("hosts", format!("must have 1 to {MAX_SECRET_HOSTS} hosts, has {}", hosts.len()));
        return BTreeSet::new();
    }
    let mut checked = BTreeSet::new();
    for (n, host) in hosts.iter().enumerate() {
        match reach::check_host(host, policy) {
            Ok(host) => _ = checked.insert(host),
            Err(reason) => errors.add(format!("hosts[{n}]"), format!("must be a public host: {reason}")),
        }
    }
    checked
}

/// Whether it can be in a header as it is.
pub(crate) fn is_printable(text: &str) -> bool {
    text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_plain() {
        for good in ["a", "github", "shop-2_old", "-", &"n".repeat(64)] {
            assert_eq!(good.parse::<SecretName>().map(|name| name.to_string()), Ok(good.to_owned()));
        }
        for bad in ["", "GitHub", "a b", "a.b", "a/b", "é", "a\n", &"n".repeat(65)] {
            assert_eq!(bad.parse::<SecretName>(), Err(InvalidSecretName), "{bad:?}");
            assert!(serde_json::from_value::<SecretName>(serde_json::json!(bad)).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn terms_have_hosts_as_a_url_has_them_and_never_show_the_value() {
        let policy = Policy { allowed_hosts: vec!["10.0.0.7:8080".parse().unwrap()], ..Policy::default() };
        let check = |value: &str, hosts: &[&str]| {
            let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
            SecretTerms::checked(value, &hosts, &policy)
        };
        let terms = check("t", &["API.GitHub.com", "api.github.com", "bücher.example", "10.0.0.7"]).unwrap();
        let hosts: Vec<&str> = terms.hosts.iter().map(String::as_str).collect();
        assert_eq!(hosts, ["10.0.0.7", "api.github.com", "xn--bcher-kva.example"]);
        assert!(!terms.signs);
        assert!(check("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", &["a.com"]).unwrap().signs);
        assert!(check(&"a".repeat(4_096), &["a.com"; 10]).is_ok());

        for bad in [
            "*.example.com",
            "*",
            "",
            "localhost",
            "machine",
            "db.internal",
            "a.com.",
            "a.com:443",
            "https://a.com",
            "a.com/x",
            "user@a.com",
            "a b.com",
            "a.com\n",
            "1.1.1.1",
            "2130706433",
            "127.1",
            "[2606:4700::1111]",
            "10.0.0.8",
            &format!("{}com", "a.".repeat(130)),
            &"a".repeat(100_000),
        ] {
            let errors = check("t", &["a.com", bad]).unwrap_err();
            assert_eq!(errors.0[0].field, "hosts[1]", "{bad}");
        }
        for (value, says) in [
            ("", "value: is required (1 to 4096 bytes)"),
            (&*"quicksilver".repeat(400), "value: must be 1 to 4096 bytes, is 4400"),
            ("quicksilver ", "value: must be printable ASCII, without spaces at its ends"),
            ("quick\r\nsilver", "value: must be printable ASCII, without spaces at its ends"),
            ("quicksilvér", "value: must be printable ASCII, without spaces at its ends"),
        ] {
            let errors = check(value, &["a.com"]).unwrap_err().to_string();
            assert_eq!(errors, says);
            assert!(!errors.contains("silv"));
        }
        for hosts in [&[][..], &["a.com"; 11][..]] {
            let errors = check("t", hosts).unwrap_err().to_string();
            assert_eq!(errors, format!("hosts: must have 1 to 10 hosts, has {}", hosts.len()));
        }
    }
}
