//! Chats, and the messages and summaries of all conversations.

use domain::chats::{Chat, Summary, Thread};
use domain::ids::{ActionId, ChatId};
use serde_json::Value;

use super::{KeptOrNot, Location, Named, keep, naming, read, valid};
use crate::blobs::BlobKey;
use crate::store::chats::messages::StoredMessage;
use crate::store::{chats, keys};

pub(super) fn chat(place: &Location<'_>, record: &Value) -> KeptOrNot {
    let chat: Chat = read(record)?;
    valid(chat.check())?;
    keep(keys::chat(place.owner, chat.chat_id), &chat)
}

pub(super) fn generated(place: &Location<'_>, _: &ChatId, _: &Value) -> KeptOrNot {
    match place.sk.strip_prefix("GEN#") {
        Some(id) => place.plain(&chats::generated(id)),
        None => Ok(None),
    }
}

pub(super) fn message_about_action(place: &Location<'_>, action: &ActionId, record: &Value) -> KeptOrNot {
    message(place, Thread::Action(*action), record)
}

pub(super) fn message_of_chat(place: &Location<'_>, chat: &ChatId, record: &Value) -> KeptOrNot {
    message(place, Thread::Chat(*chat), record)
}

pub(super) fn summary_about_action(place: &Location<'_>, action: &ActionId, record: &Value) -> KeptOrNot {
    summary(place, Thread::Action(*action), record)
}

pub(super) fn summary_of_chat(place: &Location<'_>, chat: &ChatId, record: &Value) -> KeptOrNot {
    summary(place, Thread::Chat(*chat), record)
}

fn summary(place: &Location<'_>, thread: Thread, record: &Value) -> KeptOrNot {
    let summary: Summary = read(record)?;
    valid(summary.check())?;
    keep(keys::summary(place.owner, thread), &summary)
}

fn message(place: &Location<'_>, thread: Thread, record: &Value) -> KeptOrNot {
    let stored: StoredMessage = read(record)?;
    let (owner, message) = (place.owner, &stored.message);
    valid(message.check())?;
    let images = message.images().map(|image| Named {
        key: BlobKey::image(owner, thread, &image.object),
        bytes: Some(u64::from(image.bytes)),
        lines: None,
    });
    let mut objects: Vec<Named> = images.collect();
    if stored.overflow {
        objects.push(BlobKey::message(owner, thread, message.message_id).into());
    }
    naming(keep(keys::message(owner, thread, message.message_id), &stored), objects)
}
