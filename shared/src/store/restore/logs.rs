//! Logs, and what the platform remembers of sessions.

use domain::log::{Entry, InstanceId, SessionId};
use serde::Serialize;
use serde_json::Value;

use super::{KeptOrNot, Location, Named, is_number, keep, naming, of_line, read};
use crate::blobs::BlobKey;
use crate::store::keys;
use crate::store::logs::{
    AgentSession, EarlyStop, GivenName, GivenNames, HotLog, LatestLog, Launch, LineBody, LogHead, LogSession,
    LoggedOnce, REMEMBERED, Segment, StoredLine,
};

/// More lines than any log has.
const MANY_LINES: u64 = 1_000_000_000_000;

pub(super) fn session_listed(place: &Location<'_>, record: &Value) -> KeptOrNot {
    let session: LogSession = read(record)?;
    keep(session.key_in_list(place.owner), &session)
}

pub(super) fn session(place: &Location<'_>, session: &SessionId, record: &Value) -> KeptOrNot {
    let found: LogSession = read(record)?;
    if found.session_id != *session {
        return Err("does not belong to its key".to_owned());
    }
    keep(keys::log_session(place.owner, session), &found)
}

pub(super) fn session_of_agent(place: &Location<'_>, _: &InstanceId, record: &Value) -> KeptOrNot {
    let (_, session) = place.sk.split_once('#').unwrap_or_default();
    let listed: AgentSession = read(record)?;
    if session != listed.session_id.as_str() {
        return Err("does not belong to its key".to_owned());
    }
    place.plain(&listed)
}

pub(super) fn head(place: &Location<'_>, _: &SessionId, record: &Value) -> KeptOrNot {
    let head: LogHead = read(record)?;
    if head.entries > MANY_LINES || head.sealed > head.entries {
        return Err("has impossible numbers of lines".to_owned());
    }
    of_line(keep(keys::log_head(place.owner, &head.session_id, &head.agent_id), &head), head.entries)
}

pub(super) fn line(
    place: &Location<'_>,
    session: &SessionId,
    agent: &InstanceId,
    record: &Value,
) -> KeptOrNot {
    if !is_number(place.sk, "LINE#") {
        return Ok(None);
    }
    let line: StoredLine = read(record)?;
    let objects = match &line.body {
        LineBody::Line(text) => {
            Entry::from_line(text.as_bytes(), session, agent)
                .map_err(|error| format!("has an invalid `line`: {error}"))?;
            Vec::new()
        }
        LineBody::Blob(blob) => vec![BlobKey::log_line(place.owner, session, agent, *blob).into()],
    };
    let number = keys::log_number(place.sk).ok_or("has no valid key")?;
    of_line(naming(place.plain(&line), objects), number)
}

pub(super) fn segment(
    place: &Location<'_>,
    session: &SessionId,
    agent: &InstanceId,
    record: &Value,
) -> KeptOrNot {
    let (owner, segment): (_, Segment) = (place.owner, read(record)?);
    if !(1..=segment.last).contains(&segment.first) || segment.last > MANY_LINES {
        return Err("has impossible numbers of lines".to_owned());
    }
    let key = segment.key(owner, session, agent);
    let object = Named { key, bytes: Some(segment.bytes), lines: Some(segment.lines()) };
    let kept = keep(keys::log_segment(owner, session, agent, segment.first), &segment);
    of_line(naming(kept, vec![object]), segment.last)
}

pub(super) fn hot(place: &Location<'_>, record: &Value) -> KeptOrNot {
    let hot: HotLog = read(record)?;
    keep(hot.key(place.owner), &hot)
}

pub(super) fn latest(place: &Location<'_>, record: &Value) -> KeptOrNot {
    place.plain(&read::<LatestLog>(record)?)
}

pub(super) fn name(place: &Location<'_>, _: &SessionId, record: &Value) -> KeptOrNot {
    place.plain(&read::<GivenName>(record)?)
}

pub(super) fn names(place: &Location<'_>, _: &SessionId, record: &Value) -> KeptOrNot {
    place.plain(&read::<GivenNames>(record)?)
}

pub(super) fn once(place: &Location<'_>, _: &SessionId, record: &Value) -> KeptOrNot {
    remembered(place, &read::<LoggedOnce>(record)?)
}

pub(super) fn launch(place: &Location<'_>, _: &SessionId, record: &Value) -> KeptOrNot {
    remembered(place, &read::<Launch>(record)?)
}

pub(super) fn stop(place: &Location<'_>, _: &SessionId, record: &Value) -> KeptOrNot {
    remembered(place, &read::<EarlyStop>(record)?)
}

fn remembered<T: Serialize>(place: &Location<'_>, record: &T) -> KeptOrNot {
    place.expiring(place.key(), record, place.now, REMEMBERED)
}
