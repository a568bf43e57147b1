//! The conversation about one action.

use domain::chats::ChatMessage;
use domain::chats::conversation::MAX_MESSAGE;
use domain::ids::{ActionId, MessageId, Owner};
use domain::models::{Block, Role};
use domain::validate::FieldErrors;
use futures::FutureExt;

use super::super::chats::MessageView;
use super::load;
use crate::context::Cx;
use crate::page::{self, Page, PageQuery};
use crate::problem::{Error, Result};
use crate::store::Store;
use crate::store::keys;
use crate::store::table::Write;

/// Oldest first.
///
/// # Errors
/// 404 where there is no such action, 400 for a limit or cursor that is none.
pub async fn messages(cx: &Cx, owner: &Owner, id: ActionId, query: &PageQuery) -> Result<Page<MessageView>> {
    load(cx, owner, id).await?;
    let read = |after: Option<String>, limit| {
        async move { cx.store.action_messages(owner, id, after.as_deref(), limit).await }.boxed()
    };
    let found = page::filtered(owner, &format!("messages of {id}"), query, read, |_| true).await?;
    Ok(found.map(|message| message.value.into()))
}

/// Stores what a person says about an action. A run that waits is not answered by it: that is what resuming does.
///
/// # Errors
/// 404 where there is no such action, 400 for a content that is empty or too long.
pub async fn post_message(cx: &Cx, owner: &Owner, id: ActionId, content: String) -> Result<MessageView> {
    let mut errors = FieldErrors::default();
    errors.length("content", &content, 1, MAX_MESSAGE);
    let message = of_person(cx, errors.into_result(content)?);
    let writes = vec![
        Store::action_message_write(owner, id, &message)?,
        Write::Exists { key: keys::action(owner, id) },
    ];
    if cx.store.transact(writes).await?.done() { Ok(message.into()) } else { Err(Error::NotFound("action")) }
}

pub(super) fn of_person(cx: &Cx, text: String) -> ChatMessage {
    ChatMessage {
        message_id: MessageId::from_uuid(cx.clock.uuid()),
        role: Role::User,
        content: vec![Block::Text { text }],
        created_at: cx.clock.now(),
        run_id: None,
    }
}
