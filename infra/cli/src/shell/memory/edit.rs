//! `memory edit`: opens the long-term memory in the person's editor, and replaces the version that was read.

use std::path::Path;

use serde_json::json;

use super::MARKDOWN;
use crate::Failure;
use crate::context::edit::{Draft, editor, open_editor, text_of};
use crate::output;
use crate::server::ServerError;
use crate::shell::api::{Api, patiently};

const COMMAND: &str = "memory edit";
const PATH: &str = "/memory/long-term";

/// Reads, lets the person edit, writes.
///
/// # Errors
/// If the memory can't be read or written, or the editor fails. The person's text is kept, and the message says where.
pub fn run(api: &Api, from: Option<&Path>) -> Result<(), Failure> {
    let text = from.map(text_of).transpose()?;
    let editor = editor(COMMAND)?;
    let read = patiently(|| api.server.get_as(PATH, &[], MARKDOWN))?;
    let before = String::from_utf8_lossy(&read.body).into_owned();
    let draft = Draft::begin("memory-", COMMAND, text.as_deref().unwrap_or(&before))?;
    let Some(text) = open_editor(&editor, &draft, &before)? else {
        draft.discard()?;
        return Ok(output::print("nothing changed\n")?);
    };
    let body = json!({ "markdown": text });
    match patiently(|| api.server.put_json(PATH, &body, read.etag.as_deref())) {
        Ok(_) => {
            draft.discard()?;
            Ok(output::print("saved\n")?)
        }
        Err(error @ ServerError::Refused { status: 409 | 412, .. }) => {
            let now = api.server.get_as(PATH, &[], MARKDOWN).map_err(|_| draft.kept(&error))?;
            Err(Failure::Message(draft.conflict(&before, &now.body, from)?))
        }
        Err(error) => Err(draft.kept(&error)),
    }
}
