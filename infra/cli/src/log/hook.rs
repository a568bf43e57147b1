//! `log --assistant` and `log --user`: record the payload that an assistant's hook writes to standard input.
//!
//! The assistant waits for this program and shows its output. So it always prints nothing and ends with 0. The payload
//! goes to the spool first and from there to the server. If this process, the server or the network fails at any moment, the
//! payload is in the spool, at the server, or in both under the same id.
//!
//! A server on this machine answers in a millisecond, so this process sends to it directly, with time limits. For another
//! server, a process in the background sends, because a TLS handshake takes longer than an assistant should wait. Starting a
//! process takes one millisecond.

use std::borrow::Cow;
use std::io::{self, Read};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::args::{Hook, HookEvent};
use crate::config::{self, Places, Settings};
use crate::delivery::{self, End, Limit};
use crate::log::shorten;
use crate::server::{Patience, Server, ServerError};
use crate::spool::{MAX_PAYLOAD, Record, Spool, SpoolError};

/// The most bytes of a payload that are read. A payload that is too long for the server is shortened.
const MAX_READ: u64 = 64 * 1024 * 1024;

/// How many records one hook sends at most, including its own.
const RECORDS: usize = 64;

/// After this time, a hook does not start to send another record.
const BUDGET: Duration = Duration::from_millis(200);

/// If a server on this machine needs longer, it is busy, and the payload is sent in the background. Disconnecting
/// earlier would not help: the server may still be working on the request, and answers 409 to the same request
/// meanwhile.
const PATIENCE: Patience = Patience { connect: Duration::from_millis(50), answer: Duration::from_secs(1) };

/// The session of payloads without one, for example from a script.
const SESSION: &str = "default";

/// Records the payload of a hook.
///
/// # Errors
/// Why the payload has not reached the server. Nobody reads this error; a lost payload is noted in the spool.
pub fn run(hook: Hook) -> Result<(), HookError> {
    let mut body = Vec::new();
    // If the writer stops early, this has what it wrote. The server lists invalid payloads as rejected.
    let mut stdin = io::stdin().lock();
    drop(stdin.by_ref().take(MAX_READ + 1).read_to_end(&mut body));
    // The rest is read, too, so that the writer does not fail.
    drop(io::copy(&mut stdin, &mut io::sink()));
    let (body, has_session) = completed(body, hook.event);
    let body = if body.len() > MAX_PAYLOAD { shorten::to_fit(body, MAX_PAYLOAD) } else { body };
    let session = hook.session.or_else(|| (!has_session).then(|| SESSION.to_owned()));
    let places = Places::look();
    let settings = places.read().ok();
    let project = settings.as_ref().and_then(|settings| settings.project.as_ref()).map(ToString::to_string);
    let record = Record::new(session, project, body);
    let Some(state) = config::state_dir() else { return directly(settings.as_ref(), &record) };
    let spool = Spool::new(&state, &places.decider());
    let mut added = spool.add(&record);
    if matches!(added, Err(SpoolError::Full)) {
        // There may be room after the server has accepted some records.
        drop(send(&spool, settings.as_ref()));
        added = spool.add(&record);
    }
    let Err(reason) = added else { return send(&spool, settings.as_ref()) };
    let sent = match reason {
        SpoolError::Io(_) => directly(settings.as_ref(), &record),
        SpoolError::Full | SpoolError::TooLong => Err(HookError::NotKept),
    };
    sent.or_else(|_| Ok(spool.note_loss(&reason, record.body.len())?))
}

/// Why a payload has not reached the server.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error("there is no usable configuration")]
    NotConfigured,
    #[error("the spool does not accept it")]
    NotKept,
}

/// Sends the waiting records, or starts a process that does.
fn send(spool: &Spool, settings: Option<&Settings>) -> Result<(), HookError> {
    let settings = settings.ok_or(HookError::NotConfigured)?;
    if settings.url.is_near() {
        let limit = Limit { records: RECORDS, until: Some(Instant::now() + BUDGET), lock: Duration::ZERO };
        let server = Server::new(settings, PATIENCE);
        let report = delivery::drain(spool, &server, settings.project.as_ref(), limit)?;
        if !matches!(report.end, End::Limit | End::Failed(ServerError::Slow { .. })) {
            return Ok(());
        }
    }
    Ok(delivery::in_background()?)
}

/// Without a spool, the payload is sent now or lost.
fn directly(settings: Option<&Settings>, record: &Record) -> Result<(), HookError> {
    let settings = settings.ok_or(HookError::NotConfigured)?;
    let patience = if settings.url.is_near() { PATIENCE } else { Patience::PERSON };
    Ok(Server::new(settings, patience).deliver(record, None)?)
}

/// The payload as the server expects it, and whether it names its session. Older assistants name the event only on the
/// command line.
fn completed(body: Vec<u8>, event: HookEvent) -> (Vec<u8>, bool) {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(borrow)]
        hook_event_name: Option<Cow<'a, str>>,
        session_id: Option<IgnoredAny>,
    }
    let start = body.iter().position(|byte| !byte.is_ascii_whitespace()).filter(|at| body[*at] == b'{');
    let head = start.and_then(|start| Some((start, serde_json::from_slice::<Head<'_>>(&body).ok()?)));
    match head {
        Some((start, Head { hook_event_name: None, session_id })) => {
            let rest = body[start + 1..].trim_ascii_start();
            let comma = if rest.starts_with(b"}") { "" } else { "," };
            let named = format!("{{\"hook_event_name\":\"{event:?}\"{comma}");
            ([named.as_bytes(), rest].concat(), session_id.is_some())
        }
        Some((_, Head { session_id, .. })) => (body, session_id.is_some()),
        // The server reports what is wrong with it.
        None => (body, true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_event_name_is_added() {
        // payload, as --user sends it, whether it names a session
        for (payload, expected, has_session) in [
            ("{}", r#"{"hook_event_name":"PostToolUse"}"#, false),
            (" {\n \"session_id\": 1 }", r#"{"hook_event_name":"PostToolUse","session_id": 1 }"#, true),
            (
                r#"{"a":{"hook_event_name":"x","session_id":"s"}}"#,
                r#"{"hook_event_name":"PostToolUse","a":{"hook_event_name":"x","session_id":"s"}}"#,
                false,
            ),
        ] {
            let (body, session) = completed(payload.into(), HookEvent::PostToolUse);
            assert_eq!((String::from_utf8(body).unwrap().as_str(), session), (expected, has_session));
        }
        for (payload, has_session) in [
            ("", true),
            (" ", true),
            ("nonsense", true),
            ("{", true),
            ("[]", true),
            ("[{}]", true),
            ("\u{0}", true),
            (r#"{"hook_event_name":7}"#, true),
            (r#"{"a":1} trailing"#, true),
            (r#"{"hook_event_name":"SubagentStop","session_id":"s"}"#, true),
            (r#"{"hook_event_name":"Sub\u0061gentStop","session_id":null}"#, false),
        ] {
            let (body, session) = completed(payload.into(), HookEvent::PreToolUse);
            assert_eq!((body.as_slice(), session), (payload.as_bytes(), has_session), "{payload}");
        }
    }
}
