//! Output for people and agents.

use std::io::{self, Write};

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
        drop(writeln!(io::stderr(), "lamplighter: warning: {warning}"));
    }
}
