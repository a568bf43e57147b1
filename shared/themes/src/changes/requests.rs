//! What change sets are made for.

use std::sync::Arc;

use domain::chats::Thread;
use domain::ids::{Owner, ProjectId};
use domain::models::Role;
use domain::runs::Run;
use shared::context::Cx;
use shared::error::Result;
use shared::flows::messages;

use super::{MadeBy, Place};
use crate::cache::Recent;

/// The longest request of a change set, in characters. A longer one is cut.
pub const MAX_REQUEST: usize = 500;

/// The most last requests that a process keeps.
const KEPT: usize = 64;

/// Who asked, about which theme.
type Asker = (Owner, ProjectId, MadeBy);

/// The last request of each maker of change sets.
type Requests = Recent<Asker, String, KEPT>;

/// Remembers what a client has asked. A change set that it begins next is made for that. This is kept in the memory of the process only: if
/// it is lost, the change set has no request.
pub fn asked(place: Place<'_>, by: MadeBy, request: &str) {
    let requests: Arc<Requests> = place.cx.kept.get();
    requests.put((place.owner.clone(), place.project, by), shortened(request));
}

/// What a new change set of this maker is made for, as far as it is known: of a run, what its person or its action asks; of a client, what it
/// asked last.
///
/// # Errors
/// If the table does not answer.
pub(super) async fn request_of(place: Place<'_>, by: MadeBy) -> Result<Option<String>> {
    let Place { cx, owner, project } = place;
    if let MadeBy::Run { run_id, .. } = by {
        let run = cx.store.run(owner, run_id).await?.map(|run| run.value);
        return Ok(match run {
            Some(run) => of_run(cx, owner, &run).await?,
            None => None,
        });
    }
    let requests: Arc<Requests> = cx.kept.get();
    Ok(requests.get(&(owner.clone(), project, by)))
}

/// How many messages are read to find the person's last one: it is nearly always the newest.
const MESSAGES: usize = 4;

async fn of_run(cx: &Cx, owner: &Owner, run: &Run) -> Result<Option<String>> {
    if let Some(chat) = run.chat_id {
        let newest = messages::newest(cx, owner, Thread::Chat(chat), MESSAGES, |_| true).await?;
        let said = newest
            .iter()
            .rev()
            .filter(|message| message.role == Role::User)
            .map(domain::chats::ChatMessage::text);
        return Ok(said.map(|text| shortened(&text)).find(|text| !text.is_empty()));
    }
    let Some(action) = run.action_id else { return Ok(None) };
    let action = cx.store.action(owner, action).await?;
    Ok(action.map(|action| {
        shortened(&format!("{}: {}", action.value.title, action.value.task_config.instructions))
    }))
}

/// A request on one line, of bounded length.
pub(super) fn shortened(request: &str) -> String {
    let words = request.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().take(MAX_REQUEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_shortened() {
        assert_eq!(shortened("  the\n header\t is  small "), "the header is small");
        assert_eq!(shortened(&"é".repeat(600)).chars().count(), MAX_REQUEST);
    }
}
