//! The subscriber of a bucket's upload events, and how far it has handled them.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use tokio::sync::mpsc;

pub(super) const MARK_FILE: &str = "acknowledged";

/// The event of a committed object, as S3 sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectCreated {
    pub bucket: String,
    pub key: String,
    /// The size in bytes.
    pub size: u64,
    /// Without quotes.
    pub etag: String,
    /// Sixteen hexadecimal digits. Of two events of a key, the newer one has the greater text.
    pub sequencer: String,
}

/// The bucket's state about its subscriber.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) sender: mpsc::UnboundedSender<(u64, ObjectCreated)>,
    pub(super) outstanding: BTreeSet<u64>,
}

impl Watch {
    /// Returns `false` if there is no subscriber any more.
    pub(super) fn announce(&mut self, sequencer: u64, event: ObjectCreated) -> bool {
        self.outstanding.insert(sequencer);
        self.sender.send((sequencer, event)).is_ok()
    }
}

/// The sequencer up to which every event has been acknowledged.
pub(super) fn acknowledged(folder: &Path) -> io::Result<u64> {
    match fs::read_to_string(folder.join(MARK_FILE)) {
        // An unreadable mark only causes repeated events.
        Ok(text) => Ok(text.trim().parse().unwrap_or(0)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}
