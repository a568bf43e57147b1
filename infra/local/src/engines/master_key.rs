//! The master key of one machine: a file that only its owner may read. It is made with the first start.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rand::Rng;
use shared::provider_keys::KEY_BYTES;

use super::data_dir::MASTER_KEY_FILE;

/// Why there is no master key. The message follows "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum MasterKeyError {
    #[error("read or write {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error(
        "read {}: it does not contain {KEY_BYTES} bytes as base64. Restore it from a backup; or delete it, and store all provider keys again",
        path.display()
    )]
    Broken { path: PathBuf },
}

/// Reads the key. Makes one if there is none.
pub(super) fn open(folder: &Path) -> Result<Vec<u8>, MasterKeyError> {
    let path = folder.join(MASTER_KEY_FILE);
    let failed = |source| MasterKeyError::File { path: path.clone(), source };
    match fs::read_to_string(&path) {
        Ok(text) => match BASE64_STANDARD.decode(text.trim()) {
            Ok(key) if key.len() == KEY_BYTES => Ok(key),
            _ => Err(MasterKeyError::Broken { path }),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let key: [u8; KEY_BYTES] = rand::rng().random();
            create(folder, &path, &BASE64_STANDARD.encode(key)).map_err(failed)?;
            Ok(key.to_vec())
        }
        Err(error) => Err(failed(error)),
    }
}

/// Writes the whole file, or none: a half-written key must not be left behind.
fn create(folder: &Path, path: &Path, text: &str) -> io::Result<()> {
    let begun = path.with_extension("key.new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&begun)?;
    writeln!(file, "{text}")?;
    file.sync_all()?;
    fs::rename(&begun, path)?;
    fs::File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_only_its_owner_may_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let key = open(folder.path()).unwrap();
        assert_eq!(key.len(), KEY_BYTES);
        assert_eq!(open(folder.path()).unwrap(), key);
        let path = folder.path().join(MASTER_KEY_FILE);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_ne!(open(tempfile::tempdir().unwrap().path()).unwrap(), key);
        // A key that cannot be read is never replaced.
        fs::write(&path, "short").unwrap();
        let refused = open(folder.path()).unwrap_err().to_string();
        assert!(refused.contains("master.key") && refused.contains("backup"), "{refused}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "short");
    }
}
