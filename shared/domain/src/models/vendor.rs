//! Providers of models, and the names of the servers that a deployment or an owner adds.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The longest name, in bytes.
pub const MAX_SERVER_NAME: usize = 32;

/// Who is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Vendor {
    Anthropic,
    OpenAi,
    Google,
    Xai,
    /// Amazon Bedrock.
    Bedrock,
    /// A server that understands the format of OpenAI, which the deployment or an owner has added.
    Server(ServerName),
    /// The demo model, which costs nothing.
    Demo,
}

impl Vendor {
    /// All that are not servers.
    pub const ALL: [Self; 6] =
        [Self::Anthropic, Self::OpenAi, Self::Google, Self::Xai, Self::Bedrock, Self::Demo];

    /// As in JSON.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::Google => "google",
            Self::Xai => "xai",
            Self::Bedrock => "bedrock",
            Self::Server(name) => name.as_str(),
            Self::Demo => "demo",
        }
    }

    /// Whether the price table has its models. A server may have models of the same names at other prices.
    #[must_use]
    pub const fn has_table(self) -> bool {
        !matches!(self, Self::Server(_))
    }
}

impl FromStr for Vendor {
    type Err = InvalidServerName;

    /// Every name that is not one of a provider is that of a server.
    fn from_str(text: &str) -> Result<Self, InvalidServerName> {
        match Self::ALL.into_iter().find(|known| known.as_str() == text) {
            Some(known) => Ok(known),
            None => text.parse().map(Self::Server),
        }
    }
}

impl Serialize for Vendor {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Vendor {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|error| serde::de::Error::custom(format!("the provider `{text}` {error}")))
    }
}

impl fmt::Display for Vendor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The name of a server that uses the format of OpenAI. It stands where other models have their provider, as in
/// `ollama/llama3.2`, so it is never the name of a provider.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerName {
    bytes: [u8; MAX_SERVER_NAME],
    length: u8,
}

/// The text is not the name of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidServerName {
    #[error("must be 1 to {MAX_SERVER_NAME} lower-case letters, digits and hyphens, and begin with a letter")]
    Form,
    #[error("is the name of a provider")]
    Taken,
}

impl ServerName {
    /// The server of `LAMPLIGHTER_MODEL_URL`.
    pub const COMPATIBLE: Self = {
        let (name, mut bytes, mut at) = (b"compatible", [0; MAX_SERVER_NAME], 0);
        while at < name.len() {
            bytes[at] = name[at];
            at += 1;
        }
        Self { bytes, length: name.len() as u8 }
    };

    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }
}

impl FromStr for ServerName {
    type Err = InvalidServerName;

    fn from_str(text: &str) -> Result<Self, InvalidServerName> {
        let of_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let begins = text.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
        if !begins || text.len() > MAX_SERVER_NAME || !text.bytes().all(of_name) {
            return Err(InvalidServerName::Form);
        }
        if Vendor::ALL.iter().any(|vendor| vendor.as_str() == text) {
            return Err(InvalidServerName::Taken);
        }
        let mut bytes = [0; MAX_SERVER_NAME];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        let length = u8::try_from(text.len()).map_err(|_| InvalidServerName::Form)?;
        Ok(Self { bytes, length })
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl Serialize for ServerName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ServerName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|error| serde::de::Error::custom(format!("the name `{text}` {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_reads_back_unchanged() {
        let longest = "a".repeat(MAX_SERVER_NAME);
        for text in ["a", "ollama", "gpu-2", "compatible", &longest] {
            let name: ServerName = text.parse().unwrap();
            assert_eq!((name.as_str(), name.to_string()), (text, text.to_owned()));
            assert_eq!(serde_json::to_value(name).unwrap(), text);
            assert_eq!(serde_json::from_value::<ServerName>(text.into()).unwrap(), name);
        }
        assert_eq!("compatible".parse(), Ok(ServerName::COMPATIBLE));
        let too_long = "a".repeat(MAX_SERVER_NAME + 1);
        for text in ["", "A", "1a", "-a", "a_b", "a b", "a/b", "é", "a.b", &too_long] {
            assert_eq!(text.parse::<ServerName>(), Err(InvalidServerName::Form), "{text}");
        }
        for vendor in Vendor::ALL {
            assert_eq!(vendor.as_str().parse::<ServerName>(), Err(InvalidServerName::Taken));
        }
    }
}
