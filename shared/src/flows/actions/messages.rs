//! The conversation about one action: what people say of it, what its runs ask, and what a model answers.

use domain::actions::{ActionState, OccurrenceState, ReasonCode};
use domain::ids::{ActionId, Owner};
use domain::models::{Block, Role};
use futures::FutureExt;

use super::super::edit;
use super::super::messages::{self as thread, MessageView};
use super::super::runs::Begun;
use super::super::turn::{self, IfBusy, Said, Topic};
use super::{Loaded, apply, load, load_live};
use crate::context::Cx;
use crate::function::Invocation;
use crate::page::{self, Page, PageQuery};
use crate::problem::{Error, Result};
use crate::store::messages::StoredMessage;
use crate::store::table::Order;

/// Oldest first.
///
/// # Errors
/// 404 if the action does not exist, 400 if `limit` or `cursor` is invalid.
pub async fn messages(cx: &Cx, owner: &Owner, id: ActionId, query: &PageQuery) -> Result<Page<MessageView>> {
    load(cx, owner, id).await?;
    let read = |after: Option<String>, limit| {
        async move { cx.store.messages(owner, id, after.as_deref(), limit, Order::Oldest).await }.boxed()
    };
    // Calls of tools and their results are the model's memory, and nothing to read.
    let shown = |stored: &StoredMessage| stored.overflow || !stored.message.text().is_empty();
    let found = page::filtered(owner, &format!("messages of {id}"), query, read, shown).await?;
    let Page { data, next_cursor, has_more } = found;
    let stored = data.into_iter().map(|stored| stored.value).collect();
    let whole = thread::whole(cx, owner, id, stored).await?.into_iter().map(MessageView::from);
    let data = whole.filter(|message| !message.content.is_empty()).collect();
    Ok(Page { data, next_cursor, has_more })
}

/// Says something about an action. If a run of it waits for an answer, this is the answer, and the run goes on: what it
/// says next is its reply. Otherwise a model answers in a turn of its own.
///
/// # Errors
/// As [`turn::start`].
pub async fn say(
    cx: &Cx,
    owner: &Owner,
    id: ActionId,
    content: String,
    if_busy: IfBusy,
    invocation: Invocation,
) -> Result<Begun> {
    turn::check("content", &content)?;
    let mut tries = edit::Tries::default();
    loop {
        tries.next().await?;
        let Loaded { action, live } = load_live(cx, owner, id).await?;
        let asks = live.filter(|live| {
            action.value.state == ActionState::NeedsApproval
                && live.value.state == OccurrenceState::Waiting
                && live.value.reason_code == Some(ReasonCode::Asked)
        });
        let Some(asks) = asks else {
            let said = Said { topic: Topic::Action(id), message: content, if_busy };
            return turn::start(cx, owner, said, invocation).await;
        };
        let run = asks.value.run_id;
        let answer = thread::new(cx, Role::User, vec![Block::text(content.clone())], None);
        // Followers hear what comes after the question.
        let heard = cx.store.last_event_id(owner, run).await?;
        match apply::answer(cx, owner, id, action.version, answer).await {
            // It was answered, cancelled or edited meanwhile: look again what this is.
            Err(Error::Conflict { .. }) => {}
            Err(error) => return Err(error),
            // Another process executes it.
            Ok(()) => return Ok(Begun::Elsewhere { run, after: heard }),
        }
    }
}
