//! `show`: prints what a data folder has of a run, for people who look for a fault.

use std::fmt::Write;
use std::path::PathBuf;

use domain::ids::{CallId, Owner, RunId};
use domain::runs::{Run, RunEvent};
use serde::Serialize;
use serde_json::Value;
use shared::agent_loop::journal;
use shared::flows::existing;
use shared::flows::memory::known;
use shared::store::runs::steps::StepPart;
use shared::{Cx, Error};

use crate::platform::{PlatformError, opened};

/// How many events are read at a time.
const PAGE: usize = 500;

/// The record of a run, its steps and its events, as text. It has what people and models wrote, but no keys: a run does not store
/// them.
///
/// # Errors
/// If the folder does not exist or another process uses it, or if the owner has no such run.
pub async fn run(folder: PathBuf, owner: &Owner, id: RunId) -> Result<String, PlatformError> {
    // Opening a folder creates it.
    if !folder.is_dir() {
        let folder = folder.display();
        return Err(PlatformError::Show(format!("{id}: the data folder {folder} does not exist")));
    }
    let (cx, engines) = opened(folder).await?;
    let stored = stored(&cx, owner, id).await;
    engines.shutdown().await;
    let (run, parts, events) = stored.map_err(|error| {
        PlatformError::Show(match error {
            Error::NotFound(_) => {
                format!("{id}: the owner `{owner}` has no such run; `--owner OWNER` names another one")
            }
            error => format!("{id}: {}", error.causes()),
        })
    })?;
    Ok(text(owner, &run, &parts, &events))
}

async fn stored(cx: &Cx, owner: &Owner, id: RunId) -> Result<(Run, Vec<StepPart>, Vec<RunEvent>), Error> {
    let mut run = existing::run(cx, owner, id).await?.value;
    run.recalled = known::still_known(cx, owner, run.recalled).await?;
    let parts = journal::parts(cx, owner, id).await?;
    let mut events: Vec<RunEvent> = Vec::new();
    loop {
        let after = events.last().map_or(0, |event| event.id);
        let page = cx.store.run_events(owner, id, after, PAGE).await?;
        if page.is_empty() {
            return Ok((run, parts, events));
        }
        events.extend(page);
    }
}

fn text(owner: &Owner, run: &Run, parts: &[StepPart], events: &[RunEvent]) -> String {
    let mut told = format!("{} of the owner {owner}\n\nrecord\n", run.run_id);
    if let Value::Object(fields) = value(run) {
        for (name, value) in fields {
            line(&mut told, 2, &format!("{name}: {}", plain(&value)));
        }
    }
    told.push_str("\nsteps\n");
    for part in parts {
        step(&mut told, part);
    }
    if parts.is_empty() {
        told.push_str("  none is stored\n");
    }
    told.push_str("\nevents\n");
    for event in events {
        let mut data = event.data.clone();
        let at = data.as_object_mut().and_then(|fields| fields.remove("at"));
        let at = at.as_ref().map(plain).unwrap_or_default();
        line(&mut told, 2, &format!("{} {at} {} {data}", event.id, event.event.name()));
    }
    if events.is_empty() {
        told.push_str("  none is stored\n");
    }
    told
}

/// A reply with its calls, or the result of a call.
fn step(told: &mut String, part: &StepPart) {
    let stored = format!("fence {}, after event {}", part.fence, part.event);
    if let Some(call) = part.call {
        let id = CallId::new(part.n, call as usize);
        let Some(result) = &part.result else { return line(told, 4, &format!("result {id} ({stored})")) };
        let error = if result.is_error { ", an error" } else { "" };
        let after = plain(&value(&result.after));
        line(told, 4, &format!("result {id} ({stored}{error}, then {after}): {}", result.content));
        return;
    }
    line(told, 2, &format!("step {}: {} ({stored})", part.n, plain(&value(part.purpose))));
    let Some(reply) = &part.reply else { return };
    line(told, 4, &format!("stop: {}", plain(&value(reply.stop))));
    if !reply.text.is_empty() {
        line(told, 4, &format!("text: {}", reply.text));
    }
    for (at, call) in reply.calls.iter().enumerate() {
        let invalid =
            call.invalid.as_ref().map(|why| format!(" (it cannot be read: {why})")).unwrap_or_default();
        line(told, 4, &format!("call {} {} {}{invalid}", CallId::new(part.n, at), call.name, call.input));
    }
}

/// A value as JSON. What is stored can always be written as JSON.
fn value(of: impl Serialize) -> Value {
    serde_json::to_value(of).unwrap_or_default()
}

/// Text without quotes, and everything else as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Adds a line, or several with the same indentation. Models may write control characters, which would change the terminal.
fn line(told: &mut String, indentation: usize, text: &str) {
    for (n, text) in text.lines().enumerate() {
        let more = if n == 0 { 0 } else { 2 };
        let _ = write!(told, "{:width$}", "", width = indentation + more);
        for c in text.chars() {
            if c.is_control() && c != '\t' {
                let _ = write!(told, "{}", c.escape_unicode());
            } else {
                told.push(c);
            }
        }
        told.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_indented_and_have_no_control_characters() {
        let mut told = String::new();
        line(&mut told, 2, "text: a\r\n\u{1b}[31mb\u{9b}c\td");
        assert_eq!(told, "  text: a\n    \\u{1b}[31mb\\u{9b}c\td\n");
    }
}
