//! The id of a project.

use std::fmt;
use std::str::FromStr;

/// `prj_` and 32 hexadecimal digits, or `default` for the project that always exists. The server would silently refuse
/// a hook's payload for any other id, so it is checked here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectId(String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a project id; it must be `default`, or `prj_` followed by 32 lower-case hexadecimal digits"
)]
pub struct NoProjectId(String);

impl ProjectId {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for ProjectId {
    fn default() -> Self {
        Self("default".to_owned())
    }
}

impl fmt::Display for ProjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ProjectId {
    type Err = NoProjectId;

    fn from_str(text: &str) -> Result<Self, NoProjectId> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let digits =
            text.strip_prefix("prj_").filter(|digits| digits.len() == 32 && digits.bytes().all(is_digit));
        if digits.is_some() || text == "default" {
            Ok(Self(text.to_owned()))
        } else {
            Err(NoProjectId(text.to_owned()))
        }
    }
}
