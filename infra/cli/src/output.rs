//! Output for people and agents.

use std::io::{self, Write};
use std::path::Path;

/// Prints to standard output. It is no error if the reader, such as `head`, has closed it.
///
/// # Errors
/// If it can't be written.
pub fn print(text: impl AsRef<[u8]>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_ref()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done.map_err(|error| {
            io::Error::new(error.kind(), format!("failed to write to the standard output: {error}"))
        }),
    }
}

/// Prints warnings to standard error.
pub fn warn(warnings: &[String]) {
    for warning in warnings {
        // If this can't be written, there is no other way to report it.
        drop(writeln!(io::stderr(), "lamplighter: warning: {}", escaped(warning)));
    }
}

/// Prints a line for a person to standard error.
pub fn note(text: &str) {
    drop(writeln!(io::stderr(), "lamplighter: {}", escaped(text)));
}

/// The text on one line: characters that control a terminal, or that reorder what it shows, are escaped.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if must_be_escaped(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Whether the character controls a terminal, or reorders what it shows.
#[must_use]
pub fn must_be_escaped(c: char) -> bool {
    let reorders =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}');
    c.is_control() || reorders || matches!(c, '\u{2028}' | '\u{2029}')
}

/// A path for a message. A checkout may contain a folder with any name.
#[must_use]
pub fn shown(path: &Path) -> String {
    escaped(&path.display().to_string())
}
