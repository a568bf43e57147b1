//! What the writer of a new message was told of memory.

use domain::chats::{ChatMessage, Thread};
use domain::ids::{MessageId, Owner};
use domain::memory::told::{Mark, Told};
use domain::models::Role;
use domain::runs::Run;

use super::forgotten::Forgotten;
use super::known;
use crate::context::Data;
use crate::error::Result;
use crate::store::table::Order;

/// How many of the newest messages of a conversation are looked at. The newest reply says what the ones before it were told.
const NEWEST: usize = 8;

/// What a run was told when it began, what the writers of the messages among that were told, and its conversation after `reset_after`: what
/// the person has said there, and what the earlier replies were told. `forgotten`: what was deleted when the model was told the conversation. It
/// did not get that any more.
///
/// # Errors
/// If the table does not answer.
pub(crate) async fn of_run(
    data: &Data,
    owner: &Owner,
    run: &Run,
    (thread, reset_after): (Thread, Option<MessageId>),
    forgotten: Option<&Forgotten>,
) -> Result<Told> {
    let (newest, recalled) = tokio::try_join!(
        async { Ok(data.store.messages(owner, thread, None, NEWEST, Order::Newest).await?) },
        known::recalled_messages(data, owner, &run.recalled),
    )?;
    let newest = newest.items.into_iter().map(|(_, stored)| stored.value.message);
    let newest: Vec<ChatMessage> =
        newest.filter(|message| reset_after.is_none_or(|last| message.message_id > last)).collect();
    let is_forgotten = |mark| forgotten.is_some_and(|forgotten| forgotten.has(mark));
    let mut told = Told::default();
    told.add(&run.recalled);
    for said in newest.iter().filter(|message| message.role == Role::User) {
        let id = said.message_id.to_string();
        if !Mark::of(&id).is_some_and(is_forgotten) {
            told.add_message(said.message_id);
        }
    }
    let earlier = recalled.iter().map(|recalled| &recalled.message).chain(&newest);
    earlier.for_each(|earlier| told.add_told(&earlier.told, is_forgotten));
    Ok(told)
}

/// What was said in a conversation so far, for a reply that a client has brought: whoever wrote it may have read that.
///
/// # Errors
/// If the table does not answer.
pub(crate) async fn of_conversation(data: &Data, owner: &Owner, thread: Thread) -> Result<Told> {
    let newest = data.store.messages(owner, thread, None, NEWEST, Order::Newest).await?;
    let mut told = Told::default();
    for message in newest.items.into_iter().map(|(_, stored)| stored.value.message) {
        if message.role == Role::User {
            told.add_message(message.message_id);
        }
        told.add_told(&message.told, |_| false);
    }
    Ok(told)
}
