//! How the storage of a local installation fails.

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};

/// How the storage of a local installation fails. AWS never gives these errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StorageFailure {
    #[error("a file of the data folder is damaged; the server's log names it: restore it from a backup")]
    Damaged,
    #[error("the disk is full; free some space and try again")]
    Full,
    #[error(
        "the data folder was deleted, moved or replaced while the server ran; put it back or start the server again"
    )]
    Gone,
}

impl StorageFailure {
    pub const ALL: [Self; 3] = [Self::Damaged, Self::Full, Self::Gone];

    /// The error code that the local table and bucket send.
    #[must_use]
    pub const fn aws_code(self) -> &'static str {
        match self {
            Self::Damaged => "LocalStorageDamaged",
            Self::Full => "LocalStorageFull",
            Self::Gone => "LocalStorageGone",
        }
    }

    /// Recognises one of these failures in an SDK error.
    pub(crate) fn of<E: ProvideErrorMetadata, R>(error: &SdkError<E, R>) -> Option<Self> {
        let code = error.as_service_error()?.code()?;
        Self::ALL.into_iter().find(|failure| failure.aws_code() == code)
    }
}
