//! The conversation about one action: messages of people, questions of its runs, and answers of a model.

use domain::chats::Summary;
use domain::ids::{ActionId, Owner};
use domain::models::{Block, Role};
use domain::runs::form::ReplyForm;
use futures::FutureExt;
use serde::Serialize;
use utoipa::ToSchema;

use super::{IfBusy, Said, Topic};
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::actions::{self, Loaded};
use crate::flows::messages::{self as thread, MessageView};
use crate::flows::page::{self, Page, PageQuery};
use crate::flows::runs::Begun;
use crate::request::Invocation;
use crate::store::chats::messages::StoredMessage;
use crate::store::table::Order;
use crate::store::{Once, Tries};

/// A page of the conversation about an action.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ActionMessages {
    /// Oldest first.
    pub data: Vec<MessageView>,
    /// Send it as `cursor` to get the next page. It is absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Whether there is a next page.
    pub has_more: bool,
    /// The summary of the oldest messages, if the conversation is so long that a model no longer gets them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
}

/// Oldest first.
///
/// # Errors
/// 404 if the action does not exist, 400 if `limit` or `cursor` is invalid.
pub async fn messages(cx: &Cx, owner: &Owner, id: ActionId, query: &PageQuery) -> Result<ActionMessages> {
    actions::load(cx, owner, id).await?;
    let read = |after: Option<String>, limit| {
        async move { cx.store.messages(owner, id, after.as_deref(), limit, Order::Oldest).await }.boxed()
    };
    // Tool calls and their results are for the model; people do not read them.
    let shown = |stored: &StoredMessage| stored.overflow || !stored.message.text().is_empty();
    let found = page::filtered(owner, &format!("messages of {id}"), query, read, shown).await?;
    let Page { data, next_cursor, has_more } = found;
    let stored = data.into_iter().map(|stored| stored.value).collect();
    let whole = thread::whole(cx, owner, id, stored).await?.into_iter().map(MessageView::from);
    let data = whole.filter(|message| !message.content.is_empty()).collect();
    let summary = cx.store.summary(owner, id.into()).await?.map(|stored| stored.value);
    Ok(ActionMessages { data, next_cursor, has_more, summary })
}

/// Sends a message about an action. If a run of the action waits for an answer, the message is the answer, the run
/// continues, and its next output is the reply. Otherwise a model answers in a new turn.
///
/// # Errors
/// As [`super::start`].
pub async fn send_message(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    id: ActionId,
    content: String,
    if_busy: IfBusy,
    invocation: Invocation,
) -> Result<Begun> {
    match answers(cx, owner, once, id, &content).await? {
        Some(begun) => Ok(begun),
        None => super::start(cx, owner, once, said(id, content, if_busy), invocation).await,
    }
}

/// Leaves a message about an action, by a process that can't drive a turn: an executor writes the reply. It answers no question of a run.
///
/// # Errors
/// As [`super::start`]; 409 if a run of the action asks something.
pub async fn leave_message(cx: &Cx, owner: &Owner, once: &Once, id: ActionId, content: String) -> Result<()> {
    let Loaded { action, live } = actions::load_live(cx, owner, id).await?;
    if live.is_some_and(|live| live.value.asks_in_words(&action.value)) {
        let told = "it asks something now: answer its newest message first";
        return Err(Error::conflict("answered_elsewhere", told));
    }
    super::hand_on(cx, owner, once, said(id, content, IfBusy::Reject)).await
}

fn said(id: ActionId, message: String, if_busy: IfBusy) -> Said {
    Said { topic: Topic::Action(id), message, images: Vec::new(), if_busy, form: ReplyForm::default() }
}

/// Sends the message as the answer to the run that waits for one. `None` if no run does.
async fn answers(cx: &Cx, owner: &Owner, once: &Once, id: ActionId, content: &str) -> Result<Option<Begun>> {
    super::check("content", content)?;
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let Loaded { action, live } = actions::load_live(cx, owner, id).await?;
        let Some(asks) = live.filter(|live| live.value.asks_in_words(&action.value)) else {
            return Ok(None);
        };
        let run = asks.value.run_id;
        let answer = thread::new(cx, Role::User, vec![Block::text(content)], None);
        // Followers get the events after the question.
        let last_event = cx.store.last_event_id(owner, run).await?;
        match actions::answer(cx, owner, once, id, action.version, answer).await {
            // The run was answered, cancelled or edited meanwhile. Check again what the message is for.
            Err(Error::Conflict { .. }) => {}
            Err(error) => return Err(error),
            // Another process executes it.
            Ok(()) => return Ok(Some(Begun::Elsewhere { run, after: last_event })),
        }
    }
}
