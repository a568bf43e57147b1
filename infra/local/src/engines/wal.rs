//! The write-ahead log of the table, as a process before this one has left it. The format is SQLite's (<https://sqlite.org/walformat.html>).
//!
//! SQLite reads the log up to the last whole transaction and ignores what follows, without a word. After a crash, this is a write that
//! was never acknowledged. But it may also be the end of a log that was cut, for example by a copy of the folder, or a log with a changed byte,
//! and then all later transactions are ignored, too. So it is reported. A log that ends exactly after a transaction looks whole, whatever followed.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

/// The end of a log that SQLite leaves out, with its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// The log ends within a transaction.
    Cut(u64),
    /// Something in the log does not match its checksum. What follows it is left out, too.
    Changed(u64),
}

/// What at the end of the log of the table is of no whole transaction. `None` if there is nothing, or no log.
///
/// # Errors
/// If the log can't be read.
pub fn left_out(table: &Path) -> io::Result<Option<LeftOut>> {
    let mut path = table.as_os_str().to_owned();
    path.push("-wal");
    let file = match File::open(PathBuf::from(path)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    let mut log = BufReader::new(file);
    let mut header = [0; HEADER];
    let read = fill(&mut log, &mut header)?;
    if read < HEADER {
        // The first transaction was not written.
        return Ok((read > 0).then_some(LeftOut::Cut(read as u64)));
    }
    let sums = Sums { is_big_endian: header[3] & 1 == 1 };
    let page = u32::from_be_bytes([header[8], header[9], header[10], header[11]]) as usize;
    let salts = &header[16..24];
    let mut sum = sums.add([0, 0], &header[..24]);
    if words(&header[24..32]) != sum || !page.is_power_of_two() || !(512..=65_536).contains(&page) {
        return Ok(Some(LeftOut::Changed(length)));
    }
    let mut frame = vec![0; FRAME_HEADER + page];
    let (mut open, mut is_changed) = (0, false);
    // The bytes of the header and of all whole transactions.
    let mut kept = HEADER as u64;
    loop {
        let read = fill(&mut log, &mut frame)?;
        // A log is used again from its beginning. Then frames of its last use follow, with other salts.
        let is_end = read < 16 || frame[8..16] != *salts;
        if !is_end {
            open += read as u64;
        }
        if is_end && read == frame.len() && follows(&mut log, &mut frame, salts)? {
            // SQLite ends there, but it is no end.
            return Ok(Some(LeftOut::Changed(length - kept)));
        }
        if is_end || read < frame.len() {
            let end = if is_changed { LeftOut::Changed(open) } else { LeftOut::Cut(open) };
            return Ok((open > 0).then_some(end));
        }
        sum = sums.add(sums.add(sum, &frame[..8]), &frame[FRAME_HEADER..]);
        is_changed |= words(&frame[16..24]) != sum;
        let is_last_of_transaction = frame[4..8] != [0; 4];
        if is_last_of_transaction && !is_changed {
            kept += open;
            open = 0;
        }
    }
}

/// Whether one of the frames that follow has these salts, so that it is of the log's last use.
fn follows(log: &mut impl Read, frame: &mut [u8], salts: &[u8]) -> io::Result<bool> {
    while fill(log, frame)? == frame.len() {
        if frame[8..16] == *salts {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Reads until the buffer is full or the file ends, and returns how many bytes were read.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match from.read(&mut buffer[read..]) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

/// Two numbers, which a header has in big-endian order.
fn words(bytes: &[u8]) -> [u32; 2] {
    let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    [word(0), word(4)]
}

/// The checksums of a log. Its first number says in which order they read bytes.
struct Sums {
    is_big_endian: bool,
}

impl Sums {
    fn add(&self, [mut first, mut second]: [u32; 2], bytes: &[u8]) -> [u32; 2] {
        for pair in bytes.as_chunks::<8>().0 {
            let read = |word: [u8; 4]| match self.is_big_endian {
                true => u32::from_be_bytes(word),
                false => u32::from_le_bytes(word),
            };
            let [a, b, c, d, e, f, g, h] = *pair;
            first = first.wrapping_add(read([a, b, c, d])).wrapping_add(second);
            second = second.wrapping_add(read([e, f, g, h])).wrapping_add(first);
        }
        [first, second]
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rusqlite::Connection;

    use super::*;

    /// A table with a row in each of `rows` transactions, and its log. Both stay as they are when SQLite closes its own.
    fn copied(folder: &Path, rows: u32) -> PathBuf {
        let (own, copy) = (folder.join("own.sqlite"), folder.join("copy.sqlite"));
        let db = Connection::open(&own).unwrap();
        db.execute_batch("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (v TEXT)")
            .unwrap();
        for row in 0..rows {
            // Some take several pages.
            let text = "x".repeat(if row % 3 == 0 { 9_000 } else { 10 });
            db.execute("INSERT INTO t VALUES (?1)", [text]).unwrap();
        }
        for end in ["", "-wal"] {
            let name = |path: &Path| format!("{}{end}", path.display());
            fs::copy(name(&own), name(&copy)).unwrap();
        }
        copy
    }

    /// How many rows SQLite itself finds, with a log of this length.
    fn found(table: &Path, log: &[u8]) -> u32 {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("t.sqlite");
        fs::copy(table, &copy).unwrap();
        fs::write(folder.path().join("t.sqlite-wal"), log).unwrap();
        let db = Connection::open(&copy).unwrap();
        db.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap_or(0)
    }

    #[test]
    fn what_sqlite_leaves_out_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let table = copied(folder.path(), 8);
        let log = folder.path().join("copy.sqlite-wal");
        let whole = fs::read(&log).unwrap();
        assert_eq!(left_out(&table).unwrap(), None);
        let frame = FRAME_HEADER + 4_096;
        let (mut torn, mut ends) = (0, Vec::new());
        for frames in 0..(whole.len() - HEADER) / frame {
            for more in [0, 1, 20, 30, frame - 1] {
                let length = HEADER + frames * frame + more;
                fs::write(&log, &whole[..length]).unwrap();
                let said = left_out(&table).unwrap();
                // Less than the salts of a frame can't be told from the end of the log.
                if more > 16 {
                    torn += 1;
                    let is_cut = matches!(said, Some(LeftOut::Cut(bytes)) if bytes >= more as u64);
                    assert!(is_cut, "{length}: {said:?}");
                } else if more == 0 && said.is_none() {
                    ends.push(length);
                }
            }
        }
        assert!(torn > 30, "{torn}");
        // A log that looks whole has all of its transactions: each end is one more row, after the empty log and the table.
        let rows: Vec<u32> = ends.iter().map(|end| found(&table, &whole[..*end])).collect();
        assert_eq!(rows, [0, 0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(found(&table, &whole), 8);

        let mut changed = whole.clone();
        let at = whole.len() - 100;
        changed[at] ^= 1;
        fs::write(&log, &changed).unwrap();
        let Some(LeftOut::Changed(bytes)) = left_out(&table).unwrap() else { panic!("it is changed") };
        assert!(bytes <= 3 * frame as u64, "{bytes}");
        assert_eq!(found(&table, &changed), 7);

        // A changed byte in the middle: all later rows are left out, and their bytes are counted. The same with a changed salt or head.
        let [.., after_four, _, _, _] = ends[..] else { panic!("{ends:?}") };
        for (at, rows) in [(after_four + 100, 4), (after_four + 20, 4), (after_four + 8, 4), (20, 0)] {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            fs::write(&log, &changed).unwrap();
            let Some(LeftOut::Changed(bytes)) = left_out(&table).unwrap() else { panic!("{at} is changed") };
            assert_eq!(found(&table, &changed), rows, "{at}");
            let expected = if rows == 0 { whole.len() } else { whole.len() - after_four };
            assert_eq!(bytes, expected as u64, "{at}");
        }
    }

    #[test]
    fn a_log_that_is_used_again_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("own.sqlite");
        let db = Connection::open(&own).unwrap();
        db.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (v TEXT)").unwrap();
        for _ in 0..20 {
            db.execute("INSERT INTO t VALUES (?1)", ["x".repeat(5_000)]).unwrap();
        }
        let truncated =
            db.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(truncated, 0);
        db.execute("INSERT INTO t VALUES ('new')", []).unwrap();
        // The frames of the first use follow.
        assert!(fs::metadata(folder.path().join("own.sqlite-wal")).unwrap().len() > 20 * 5_000);
        assert_eq!(left_out(&own).unwrap(), None);
        assert_eq!(left_out(&folder.path().join("none.sqlite")).unwrap(), None);
    }
}
