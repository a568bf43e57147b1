//! Why the work on an archive ends before everything is written.

use crate::flows::archive::ArchiveError;
use crate::flows::background::lease::Interrupted;

/// Why the work ends before everything is written.
pub(super) enum Stop {
    /// The archive is not valid.
    Invalid(String),
    Interrupted(Interrupted),
}

impl<E: Into<Interrupted>> From<E> for Stop {
    fn from(interrupted: E) -> Self {
        Self::Interrupted(interrupted.into())
    }
}

/// Why an archive was not read to its end.
pub(super) enum Unreadable {
    Archive(ArchiveError),
    Content(String),
    /// Nobody receives what is read.
    Unwanted,
}

impl Unreadable {
    pub(super) fn stop(self) -> Stop {
        match self {
            Self::Archive(error) => Stop::Invalid(error.to_string()),
            Self::Content(told) => Stop::Invalid(told),
            Self::Unwanted => Interrupted::Lost.into(),
        }
    }
}

impl From<ArchiveError> for Unreadable {
    fn from(error: ArchiveError) -> Self {
        Self::Archive(error)
    }
}
