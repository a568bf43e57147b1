//! The identity of a platform: the same name in the table and next to the objects, compared at each start.
//!
//! Otherwise a table that was emptied or lost would start as an empty platform with a full bucket, and the reverse. The name is
//! written in three steps, so that an interrupted start can be repeated: next to the objects as `identity.new`, into the table,
//! and then under its final name.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::dynamo::{Dynamo, DynamoError};

/// Why the files of a folder can't be used together. Messages follow "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    #[error(
        "use the data folder {}: {what}. Restore the folder from a backup, as a whole; or choose another folder; or, to start again without the remaining data, delete it",
        folder.display()
    )]
    Inconsistent { folder: PathBuf, what: &'static str },
    #[error("read or write {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Table(#[from] DynamoError),
}

/// Compares the names, and gives a new platform a name. `objects` says whether the bucket has any objects.
pub(super) fn agree(folder: &Path, table: &Dynamo, objects: bool) -> Result<(), IdentityError> {
    let inconsistent = |what| Err(IdentityError::Inconsistent { folder: folder.to_owned(), what });
    let (settled, begun) = (folder.join("bucket/identity"), folder.join("bucket/identity.new"));
    let (beside, beginning, inside) = (read(&settled)?, read(&begun)?, table.identity()?);
    let name = match (beside, inside) {
        (Some(beside), Some(inside)) if beside == inside => return Ok(()),
        (Some(_), Some(_)) => {
            return inconsistent(
                "its table (table.sqlite) and its objects (bucket/) are of different platforms",
            );
        }
        (Some(_), None) => {
            return inconsistent(
                "its table (table.sqlite) is empty or new, but its objects (bucket/) are not",
            );
        }
        (None, Some(inside)) if beginning.as_deref() != Some(&inside) => {
            return inconsistent("its objects (bucket/) are gone, but its table (table.sqlite) is not");
        }
        // The previous start was interrupted.
        (None, Some(inside)) => inside,
        (None, None) if objects && table.is_empty()? => {
            return inconsistent(
                "its table (table.sqlite) is empty or new, but its objects (bucket/) are not",
            );
        }
        // A new folder, or one of a version without names.
        (None, None) => Uuid::new_v4().simple().to_string(),
    };
    write(&begun, &name)?;
    table.set_identity(&name)?;
    fs::rename(&begun, &settled).map_err(|source| IdentityError::File { path: settled.clone(), source })?;
    sync(&folder.join("bucket"))
}

fn read(path: &Path) -> Result<Option<String>, IdentityError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(IdentityError::File { path: path.to_owned(), source }),
    }
}

fn write(path: &Path, name: &str) -> Result<(), IdentityError> {
    fs::write(path, format!("{name}\n"))
        .map_err(|source| IdentityError::File { path: path.to_owned(), source })?;
    sync(path)
}

fn sync(path: &Path) -> Result<(), IdentityError> {
    let synced = fs::File::open(path).and_then(|file| file.sync_all());
    synced.map_err(|source| IdentityError::File { path: path.to_owned(), source })
}
