//! What the writer of a new message was told of memory.

use domain::chats::{ChatMessage, Thread};
use domain::ids::{MessageId, Owner};
use domain::memory::recall::RecalledKind;
use domain::memory::told::Told;
use domain::models::Role;
use domain::runs::Run;

use super::forgotten::Forgotten;
use super::sources;
use crate::context::Data;
use crate::error::Result;
use crate::store::table::Order;

/// How many of the newest messages of a conversation are looked at. The newest reply says what the ones before it were told.
const NEWEST: usize = 8;

/// What a run was told when it began, what the writers of the messages among that were told, and its conversation: what the person has said
/// there, and what the earlier replies were told.
///
/// # Errors
/// If the table does not answer.
pub(crate) async fn of_run(data: &Data, owner: &Owner, run: &Run, thread: Thread) -> Result<Told> {
    let mut told = Told::default();
    told.add(&run.recalled);
    for one in run.recalled.iter().filter(|one| one.kind == RecalledKind::Raw) {
        let thread = one.source.as_ref().and_then(sources::thread_of);
        let (Some(thread), Ok(id)) = (thread, one.of.parse::<MessageId>()) else { continue };
        if let Some(message) = data.store.message(owner, thread, id).await? {
            told.add_told(&message.message.told, |_| false);
        }
    }
    let newest = data.store.messages(owner, thread, None, NEWEST, Order::Newest).await?;
    let newest: Vec<ChatMessage> = newest.items.into_iter().map(|(_, stored)| stored.value.message).collect();
    newest
        .iter()
        .filter(|message| message.role == Role::User)
        .for_each(|said| told.add_message(said.message_id));
    let earlier: Vec<Told> = newest.into_iter().map(|message| message.told).collect();
    if earlier.iter().any(|told| !told.is_empty()) {
        // What is forgotten by now was taken out of what the model got of the conversation.
        let forgotten = Forgotten::of(data, owner).await?;
        earlier.iter().for_each(|earlier| told.add_told(earlier, |mark| forgotten.has(mark)));
    }
    Ok(told)
}
