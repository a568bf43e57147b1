//! Messages of sessions that took place elsewhere: a coding assistant, another chat program.

use std::time::Duration;

use domain::ids::Owner;
use domain::log::SessionId;
use domain::memory::check_namespace;
use domain::memory::session::{Said, check_messages};
use domain::validate::FieldErrors;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::context::Cx;
use crate::error::{Error, Result};
use crate::store::memory::{OUTSIDE_AT_ONCE, OutsideMessage, OutsideSession};
use crate::store::table::{Extras, Write, item};
use crate::store::{Tries, Versioned, keys};

/// How long a message is tried while others write to the same session.
const MAX_RETRY_TIME: Duration = Duration::from_secs(10);

/// Messages of an outside session.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewOutsideMessages)]
pub struct Ingest {
    /// 1 to 500, in the order in which they were written.
    pub messages: Vec<Said>,
    /// What the session belongs to, such as the name of a repository: at most 64 letters, digits, `-`, `_`, `.` and `/`. Default:
    /// the person's own. It can't be changed later.
    #[serde(default)]
    #[schema(max_length = 64)]
    pub namespace: Option<String>,
    /// A schedule has begun the session, so nothing is learned from it. It is found by a search all the same.
    #[serde(default)]
    pub scheduled: bool,
}

/// What became of the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = StoredOutsideMessages)]
pub struct Ingested {
    /// How many were new.
    pub stored: usize,
    /// How many had an id that the session has already. They stay as they were.
    pub known: usize,
}

/// Stores messages. Those whose ids the session has already stay as they were.
///
/// # Errors
/// 400 with every invalid field and its limit; 409 if the session has another namespace.
pub async fn ingest(cx: &Cx, owner: &Owner, session: &SessionId, input: Ingest) -> Result<Ingested> {
    let mut errors = FieldErrors::default();
    errors.nest("", check_messages(&input.messages));
    if let Some(namespace) = &input.namespace {
        check_namespace(&mut errors, namespace);
    }
    errors.into_result(())?;
    open(cx, owner, session, &input).await?;
    let count = input.messages.len();
    let mut stored = 0;
    // Writers of this process do not disturb each other.
    let _lock = cx.locks.lock((owner, session.to_string())).await;
    for messages in input.messages.chunks(OUTSIDE_AT_ONCE) {
        stored += store(cx, owner, session, messages).await?;
    }
    Ok(Ingested { stored, known: count - stored })
}

/// Stores those of the messages that the session does not have, and returns their number.
async fn store(cx: &Cx, owner: &Owner, session: &SessionId, messages: &[Said]) -> Result<usize> {
    let mut tries = Tries::within(MAX_RETRY_TIME);
    loop {
        tries.next().await?;
        let ids: Vec<&str> = messages.iter().map(|said| said.id.as_str()).collect();
        let mut known = cx.store.known_outside(owner, session, &ids).await?;
        // The ids of their arrival keep their order. An id that comes twice in a request counts once.
        let new = messages.iter().filter(|said| known.insert(said.id.clone()));
        let new: Vec<OutsideMessage> =
            new.map(|said| OutsideMessage { arrived: cx.clock.uuid(), said: said.clone() }).collect();
        if new.is_empty() {
            return Ok(0);
        }
        let written = cx.store.create_outside_messages(owner, session, &new, cx.clock.now()).await?;
        if written.done() {
            return Ok(new.len());
        }
        // Another writer was faster with one of the ids, or the session was deleted.
        if cx.store.outside_session(owner, session).await?.is_none() {
            return Err(Error::NotFound("session"));
        }
    }
}

/// The session, created or with its newest time.
async fn open(cx: &Cx, owner: &Owner, id: &SessionId, input: &Ingest) -> Result<()> {
    let now = cx.clock.now();
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let (next, version) = match cx.store.outside_session(owner, id).await? {
            None => {
                let namespace = input.namespace.clone().unwrap_or_default();
                let by_schedule = input.scheduled;
                (
                    OutsideSession {
                        session_id: id.clone(),
                        namespace,
                        created_at: now,
                        last_at: now,
                        by_schedule,
                    },
                    0,
                )
            }
            Some(Versioned { value, version }) => {
                if let Some(namespace) = input.namespace.as_ref().filter(|it| **it != value.namespace) {
                    let told = format!(
                        "the session belongs to the namespace `{}`, and this names `{namespace}`",
                        value.namespace
                    );
                    return Err(Error::conflict("other_namespace", told));
                }
                // Another request may be as new. That does not matter for a time in minutes.
                if now.duration_since(value.last_at).as_mins() < 1 {
                    return Ok(());
                }
                (OutsideSession { last_at: now, ..value }, version)
            }
        };
        let write = Write::over(keys::outside_session(owner, id), version, item(&next, &Extras::default())?);
        if cx.store.write_all(vec![write]).await?.done() {
            return Ok(());
        }
    }
}

/// Deletes an outside session with its messages. Facts that were learned from it stay.
///
/// # Errors
/// 404 if it does not exist.
pub async fn delete(cx: &Cx, owner: &Owner, id: &SessionId) -> Result<()> {
    let found = cx.store.outside_session(owner, id).await?.ok_or(Error::NotFound("session"))?;
    let stamp: Uuid = cx.clock.uuid();
    cx.store.delete_outside_session(owner, &found.value.session_id, stamp, cx.clock.now()).await?;
    Ok(())
}
