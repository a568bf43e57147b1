//! `context show`: the document as Markdown.

use crate::Failure;
use crate::args::Document;
use crate::config::Places;
use crate::output;
use crate::server::{Patience, Server};

/// Prints the document.
///
/// # Errors
/// If there is no document, or the server does not return it.
pub fn run(document: &Document) -> Result<(), Failure> {
    let settings = Places::look().read()?;
    output::warn(&settings.warnings);
    let path = super::path(document, &settings);
    let server = Server::new(&settings, Patience::PERSON);
    let answer = server.get(&path, &[("workflow", document.workflow.as_deref())])?;
    Ok(output::print(answer.body)?)
}
