//! The health of the storage: the data folder is still ours, the disk accepts writes, and the files can be read.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use axum::body::Body;
use http::{Method, Response, StatusCode, header};
use shared::aws::storage::StorageFailure;

use super::reserve::Reserve;
use crate::handler::Handler;

/// The status of the bucket's answer if the storage fails. The SDK does not retry it.
pub(super) const fn status(failure: StorageFailure) -> StatusCode {
    match failure {
        StorageFailure::Full => StatusCode::INSUFFICIENT_STORAGE,
        StorageFailure::Damaged | StorageFailure::Gone => StatusCode::NOT_EXTENDED,
    }
}

/// How much must fit on the disk before a full disk counts as free again.
const ROOM: usize = 64 * 1024;

/// The state of the storage. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Storage(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// `None` in memory.
    reserve: Option<Reserve>,
    /// `None` in memory. For a folder, the files that must stay in place.
    watched: Option<Watched>,
    failure: Mutex<Option<StorageFailure>>,
}

#[derive(Debug)]
struct Watched {
    folder: PathBuf,
    files: Vec<(PathBuf, Identity)>,
}

/// Device and inode. Another file with the same name has different ones.
type Identity = (u64, u64);

fn identity(path: &Path) -> io::Result<Identity> {
    fs::metadata(path).map(|found| (found.dev(), found.ino()))
}

impl Storage {
    /// Watches these files and folders below a folder.
    pub(super) fn watch(folder: &Path, names: &[&str], reserve: Reserve) -> io::Result<Self> {
        let files = names.iter().map(|name| {
            let path = folder.join(name);
            identity(&path).map(|identity| (path, identity))
        });
        let watched = Watched { folder: folder.to_owned(), files: files.collect::<io::Result<_>>()? };
        let (watched, reserve) = (Some(watched), Some(reserve));
        Ok(Self(Arc::new(Inner { reserve, watched, failure: Mutex::default() })))
    }

    fn failure(&self) -> MutexGuard<'_, Option<StorageFailure>> {
        self.0.failure.lock().expect("a failure is only read and set")
    }

    /// Checks that writes are not lost because the folder was deleted, moved or replaced.
    ///
    /// # Errors
    /// [`StorageFailure::Gone`].
    pub(super) fn check(&self) -> Result<(), StorageFailure> {
        let Some(Watched { folder, files }) = &self.0.watched else { return Ok(()) };
        let lost = files.iter().find(|(path, was)| identity(path).ok() != Some(*was));
        let Some((path, _)) = lost else { return Ok(()) };
        self.log_once(StorageFailure::Gone, || {
            format!(
                "{} no longer exists, or is another file; nothing is written. Put the folder {} back, or stop \
                 the server and start it on another folder",
                path.display(),
                folder.display()
            )
        });
        Err(StorageFailure::Gone)
    }

    /// Checks that a write leaves the reserve to deletions. While the reserve is missing, only deletions may write; other writes
    /// would use up the room in which a deletion ends.
    ///
    /// # Errors
    /// [`StorageFailure::Full`].
    pub(super) fn admit(&self, deletes: impl FnOnce() -> bool) -> Result<(), StorageFailure> {
        if self.0.reserve.as_ref().is_none_or(Reserve::hold) || deletes() {
            return Ok(());
        }
        self.report(StorageFailure::Full, "there is no room for the reserve");
        Err(StorageFailure::Full)
    }

    /// Gives the reserve to a deletion. `false` if it was given before.
    pub(super) fn lend(&self) -> bool {
        let lent = self.0.reserve.as_ref().is_some_and(Reserve::release);
        if lent {
            tracing::warn!("the disk is full; the reserve is used to delete an account");
        }
        lent
    }

    /// Reports a failure of the storage.
    pub(super) fn report(&self, failure: StorageFailure, cause: &str) {
        self.log_once(failure, || match failure {
            StorageFailure::Full => format!("the disk is full ({cause}); free some space"),
            _ => format!(
                "a file of the data folder can't be read or written ({cause}); restore it from a backup"
            ),
        });
    }

    /// Logs a failure, once.
    fn log_once(&self, failure: StorageFailure, what: impl FnOnce() -> String) {
        let mut known = self.failure();
        // Damage remains until a person has repaired it and restarts the server.
        if *known == Some(failure) || *known == Some(StorageFailure::Damaged) {
            return;
        }
        *known = Some(failure);
        drop(known);
        tracing::error!("the storage failed: {}", what());
    }

    /// The current failure.
    #[must_use]
    pub fn state(&self) -> Option<StorageFailure> {
        if let Err(gone) = self.check() {
            return Some(gone);
        }
        let known = *self.failure();
        let over = match known {
            Some(StorageFailure::Full) => self.has_room(),
            Some(StorageFailure::Gone) => true,
            Some(StorageFailure::Damaged) | None => false,
        };
        if over {
            *self.failure() = None;
            tracing::info!("the storage can be used again");
            return None;
        }
        known
    }

    fn has_room(&self) -> bool {
        if !self.0.reserve.as_ref().is_none_or(Reserve::hold) {
            return false;
        }
        let Some(Watched { folder, .. }) = &self.0.watched else { return true };
        let probe = folder.join("room");
        let fits = fs::write(&probe, vec![0; ROOM]).is_ok();
        let _ = fs::remove_file(&probe);
        fits
    }
}

/// The bucket behind a check: writes are refused if the storage is gone, and the bucket's failures are reported to the
/// storage.
pub(super) fn watched(bucket: Handler, storage: Storage) -> Handler {
    Handler::new(move |request| {
        let (bucket, storage) = (bucket.clone(), storage.clone());
        async move {
            let reads = matches!(*request.method(), Method::GET | Method::HEAD);
            if !reads {
                // Other methods than `PUT` write little or delete.
                let admitted =
                    storage.check().and_then(|()| storage.admit(|| *request.method() != Method::PUT));
                if let Err(failure) = admitted {
                    return Ok(refused(failure));
                }
            }
            let answer = bucket.call(request).await?;
            for failure in [StorageFailure::Full, StorageFailure::Damaged] {
                if answer.status() == status(failure) {
                    storage.report(failure, "an object in bucket/");
                }
            }
            Ok(answer)
        }
    })
}

fn refused(failure: StorageFailure) -> Response<Body> {
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{}</Code><Message>{failure}</Message></Error>",
        failure.aws_code()
    );
    Response::builder()
        .status(status(failure))
        .header(header::CONTENT_TYPE, "application/xml")
        .body(Body::from(body))
        .expect("a status and a fixed header make a response")
}

/// The failure that a file error means. `None` if the error says nothing about the storage.
pub(super) fn of_io(error: &io::Error) -> Option<StorageFailure> {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(StorageFailure::Full),
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => Some(StorageFailure::Damaged),
        _ => None,
    }
}

/// The failure that an SQLite message means. `None` if the error is temporary.
pub(super) fn of_sqlite(message: &str) -> Option<StorageFailure> {
    if message.contains("disk is full") {
        Some(StorageFailure::Full)
    } else if message.contains("locked or busy") {
        None
    } else {
        Some(StorageFailure::Damaged)
    }
}
