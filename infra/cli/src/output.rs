//! What people and agents see.

use std::io::{self, Write};

/// Prints to the standard output. A reader that has seen enough, such as `head`, is no error.
///
/// # Errors
/// When it can't be written.
pub fn print(text: impl AsRef<[u8]>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_ref()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done.map_err(|error| {
            io::Error::new(error.kind(), format!("failed to write to the standard output: {error}"))
        }),
    }
}

/// Tells a person what should be known, on the standard error.
pub fn warn(warnings: &[String]) {
    for warning in warnings {
        // Where not even this can be written, there is nobody to tell.
        drop(writeln!(io::stderr(), "lamplighter: warning: {warning}"));
    }
}
