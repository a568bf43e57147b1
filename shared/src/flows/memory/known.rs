//! What a model was once told of memory, without what was deleted or corrected since.

use std::collections::{BTreeMap, BTreeSet};

use domain::chats::Thread;
use domain::ids::{MessageId, Owner};
use domain::memory::Source;
use domain::memory::recall::{Recalled, RecalledKind};

use super::forgotten::Forgotten;
use super::sources;
use crate::context::Data;
use crate::error::Result;
use crate::store::chats::messages::StoredMessage;

/// Without what was deleted since.
///
/// # Errors
/// If the table does not answer.
pub async fn still_known(data: &Data, owner: &Owner, mut recalled: Vec<Recalled>) -> Result<Vec<Recalled>> {
    if !recalled.is_empty() {
        let forgotten = Forgotten::of(data, owner).await?;
        recalled.retain(|one| forgotten.keeps(one));
        without_hidden(data, owner, &forgotten, &mut recalled).await?;
    }
    Ok(recalled)
}

/// Leaves out replies that are hidden because of what they were told.
async fn without_hidden(
    data: &Data,
    owner: &Owner,
    forgotten: &Forgotten,
    recalled: &mut Vec<Recalled>,
) -> Result<()> {
    if !forgotten.has_marks() {
        return Ok(());
    }
    let replies = recalled_messages(data, owner, recalled).await?;
    let is_hidden = |StoredMessage { message, overflow }: &StoredMessage| {
        // The words of a long one are not here.
        *overflow && forgotten.was_told(&message.told)
            || forgotten.hides_reply(&message.told, || memory::word_hashes(&message.all_words()))
    };
    let hidden = replies.into_iter().filter(is_hidden).map(|reply| reply.message.message_id.to_string());
    let hidden: BTreeSet<String> = hidden.collect();
    recalled.retain(|one| one.kind != RecalledKind::Raw || !hidden.contains(&one.of));
    Ok(())
}

/// The messages of this platform among what was recalled.
pub(super) async fn recalled_messages(
    data: &Data,
    owner: &Owner,
    recalled: &[Recalled],
) -> Result<Vec<StoredMessage>> {
    let raw = recalled.iter().filter(|one| one.kind == RecalledKind::Raw);
    stored(data, owner, raw.filter_map(|one| Some((one.source.clone()?, one.of.as_str())))).await
}

/// The messages of this platform among these.
pub(super) async fn stored(
    data: &Data,
    owner: &Owner,
    messages: impl Iterator<Item = (Source, &str)>,
) -> Result<Vec<StoredMessage>> {
    let of = messages.filter_map(|(source, id)| {
        let thread = sources::thread_of(&source)?;
        Some((id.parse::<MessageId>().ok()?, thread))
    });
    let of: BTreeMap<MessageId, Thread> = of.collect();
    let ids: Vec<_> = of.into_iter().map(|(id, thread)| (thread, id)).collect();
    Ok(data.store.messages_of(owner, &ids).await?)
}

/// Without what was deleted or corrected since, for a model that goes on with its work.
///
/// # Errors
/// If the table does not answer.
pub(crate) async fn still_true(
    data: &Data,
    owner: &Owner,
    forgotten: &Forgotten,
    mut recalled: Vec<Recalled>,
) -> Result<Vec<Recalled>> {
    recalled.retain(|one| forgotten.keeps(one) && !forgotten.is_outdated(one));
    without_hidden(data, owner, forgotten, &mut recalled).await?;
    Ok(recalled)
}
