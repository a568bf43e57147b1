//! `log --read`: the last entries of an agent, oldest first.

use crate::Failure;
use crate::args::Read;
use crate::config::Places;
use crate::log::flush;
use crate::output;
use crate::project::ProjectId;
use crate::server::{Patience, Server};
use crate::url::segment;

/// Prints the server's answer unchanged. If it is empty, a line on standard error says so.
///
/// # Errors
/// If the server does not answer. An unknown agent has no entries; this is not an error.
pub fn run(read: &Read) -> Result<(), Failure> {
    let places = Places::look();
    let settings = places.read()?;
    output::warn(&settings.warnings);
    let server = Server::new(&settings, Patience::PERSON);
    output::warn(&flush::before_reading(&places, &settings, &server));
    let mut answer = server.get(
        &format!("/context/logs/{}", segment(&read.agent_id)),
        &[
            ("lines", Some(&read.lines.to_string())),
            ("session", read.session.as_deref()),
            ("project", settings.project.as_ref().map(ProjectId::as_str)),
            ("format", Some(read.format.name())),
            ("include_metadata", read.include_metadata.then_some("true")),
        ],
    )?;
    if answer.body.trim_ascii().is_empty() {
        // The text of no entries. The standard output stays empty for programs.
        output::note(&format!("the agent {} has no entries", read.agent_id));
        return Ok(());
    }
    if !answer.body.ends_with(b"\n") {
        answer.body.push(b'\n');
    }
    Ok(output::print(answer.body)?)
}
