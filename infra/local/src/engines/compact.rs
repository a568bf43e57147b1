//! Removes deleted data from the table's file. SQLite only marks deleted data as unused: its bytes stay in unused pages, in
//! gaps within pages, and in the write-ahead log, until something else is written there.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::reserve;

/// How long to wait for the sweep of expired items, which uses the file at the same time.
const BUSY: Duration = Duration::from_secs(10);

/// Up to this size, the new file is put together in memory. A larger one is put together in the folder for temporary files.
const IN_MEMORY: u64 = 64 << 20;

/// What a compaction needs besides a copy of the data, in bytes.
const MARGIN: u64 = 1 << 20;

/// Why the file was not compacted. Messages follow "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum CompactError {
    #[error("compact the table: it needs {needed} bytes on the disk, and {room} are free")]
    NoRoom { needed: u64, room: u64 },
    #[error("compact the table: {0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("compact the table: others use the file")]
    Busy,
    #[error("find out how much room the disk has: {0}")]
    Disk(#[from] std::io::Error),
    #[error("compact the table: the server stops")]
    Stopped,
}

/// Rewrites the file so that it has nothing but the live items, and empties the write-ahead log.
///
/// If this is interrupted, the file is as it was before. SQLite writes the new content to the log first.
pub(super) fn compact(file: &Path) -> Result<(), CompactError> {
    // dynoxide has no way to set a pragma or to empty the log, so this is a connection of its own.
    let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.busy_timeout(BUSY)?;
    // First, so that the room of the log counts as free.
    empty_log(&connection)?;
    let number = |pragma| connection.query_row(pragma, [], |row| row.get::<_, u64>(0));
    let pages = number("PRAGMA page_count")? - number("PRAGMA freelist_count")?;
    let size = pages * number("PRAGMA page_size")?;
    // The log has a header for each page.
    let needed = size + size / 64 + MARGIN;
    let room = reserve::room(file)?;
    if room < needed {
        return Err(CompactError::NoRoom { needed, room });
    }
    if size <= IN_MEMORY {
        connection.pragma_update(None, "temp_store", "MEMORY")?;
    }
    let compacted = connection.execute_batch("VACUUM");
    // Also after a failure, because the log may have grown.
    let emptied = empty_log(&connection);
    compacted?;
    emptied
}

/// Writes the log's pages to the file and empties the log.
fn empty_log(connection: &Connection) -> Result<(), CompactError> {
    let busy = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0))?;
    if busy { Err(CompactError::Busy) } else { Ok(()) }
}
