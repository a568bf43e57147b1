//! The messages of a conversation, wherever it took place.

use std::collections::BTreeSet;

use domain::chats::{ChatMessage, Thread};
use domain::ids::{MessageId, Owner, instant_of};
use domain::memory::part::{Collection, MemoryPart, day_of, ids_of};
use domain::memory::session::{Said, SaidBy, Session};
use domain::memory::{Quoted, Source};
use domain::models::{Block, Role};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use uuid::Uuid;

use super::forgotten::Forgotten;
use crate::context::Data;
use crate::error::Result;
use crate::flows::messages;
use crate::store::memory::{OutsideMessage, OutsideSession};
use crate::store::table::Order;

/// The most messages of a conversation that are read to learn from it.
const MAX_READ: usize = 400;

/// What comes before the UUID in the sort key of a message.
const MESSAGE: &str = "MSG#msg_";

/// The longest result of a tool that is kept, in bytes. Longer ones are cut.
const MAX_TOOL: usize = 2_000;

/// A conversation with its newest messages, without what was deleted and all replies that were told it. `None` if it does not exist any
/// more.
pub(super) async fn session(
    data: &Data,
    owner: &Owner,
    source: &Source,
    forgotten: &Forgotten,
) -> Result<Option<Session>> {
    Ok(match source {
        Source::Chat(id) => match data.store.chat(owner, *id).await? {
            None => None,
            Some(chat) => {
                let after = chat.value.reset_after;
                let kept = |stored: &crate::store::chats::messages::StoredMessage| {
                    after.is_none_or(|last| stored.message.message_id > last)
                };
                let mut read = messages::newest(data, owner, *id, MAX_READ, kept).await?;
                forgotten.retain_untold(source, &mut read);
                Some(of(source, chat.value.title, &read))
            }
        },
        Source::Action(id) => match data.store.action(owner, *id).await? {
            None => None,
            Some(action) => {
                let mut read = messages::newest(data, owner, *id, MAX_READ, |_| true).await?;
                forgotten.retain_untold(source, &mut read);
                Some(of(source, action.value.title, &read))
            }
        },
        Source::Run(_) => None,
        Source::Outside(name) => match data.store.outside_session(owner, name).await? {
            None => None,
            Some(session) => {
                let newest = data.store.outside_messages(owner, name, None, MAX_READ, Order::Newest).await?;
                let oldest_first = newest.items.into_iter().rev().map(|(_, message)| timed(message.value));
                let shown = oldest_first.filter(|said| !forgotten.hides_said(source, said));
                Some(outside(session.value, shown.collect()))
            }
        },
    })
}

fn of(source: &Source, title: String, read: &[ChatMessage]) -> Session {
    let messages = read.iter().filter_map(said).collect();
    Session { source: source.clone(), title, namespace: String::new(), by_schedule: false, messages }
}

fn outside(session: OutsideSession, messages: Vec<Said>) -> Session {
    let OutsideSession { session_id, namespace, by_schedule, .. } = session;
    let title = session_id.to_string();
    Session { source: Source::Outside(session_id), title, namespace, by_schedule, messages }
}

/// A message in words. `None` if it has none, such as a call of a tool.
fn said(message: &ChatMessage) -> Option<Said> {
    let text = message.text();
    let mut role = match message.role {
        Role::User => SaidBy::Person,
        Role::Assistant => SaidBy::Agent,
    };
    let text = if text.is_empty() {
        let results = message.content.iter().filter_map(|block| match block {
            Block::ToolResult { content, .. } => Some(&content[..content.floor_char_boundary(MAX_TOOL)]),
            _ => None,
        });
        role = SaidBy::Tool;
        results.collect::<Vec<_>>().join("\n")
    } else {
        text
    };
    (!text.is_empty()).then(|| Said {
        id: message.message_id.to_string(),
        parent_id: None,
        role,
        name: None,
        text,
        at: Some(message.created_at),
        date_text: None,
    })
}

/// An outside message without a time was written when it arrived.
pub(super) fn timed(message: OutsideMessage) -> Said {
    let arrived = instant_of(message.arrived);
    let at = message.said.at.or_else(|| message.said.date_text.is_none().then_some(arrived));
    Said { at, ..message.said }
}

/// A conversation with the messages of one UTC day, without what is forgotten. `None` if it does not exist any more, or has none on that
/// day.
pub(super) async fn day(
    data: &Data,
    owner: &Owner,
    source: &Source,
    day: Date,
    forgotten: &Forgotten,
) -> Result<Option<Session>> {
    if let Source::Outside(name) = source {
        let Some(session) = data.store.outside_session(owner, name).await? else { return Ok(None) };
        let messages = data.store.outside_messages_of(owner, name, day).await?.into_iter().map(timed);
        let messages = messages.filter(|said| !forgotten.hides_said(source, said));
        let session = outside(session.value, messages.collect());
        return Ok((!session.messages.is_empty()).then_some(session));
    }
    let Some(thread) = thread_of(source) else { return Ok(None) };
    let title = match thread {
        Thread::Chat(id) => data.store.chat(owner, id).await?.map(|chat| chat.value.title),
        Thread::Action(id) => data.store.action(owner, id).await?.map(|action| action.value.title),
    };
    let Some(title) = title else { return Ok(None) };
    let (first, end) = ids_of(day);
    let mut after = Some(format!("{MESSAGE}{}", first.simple()));
    let mut read = Vec::new();
    loop {
        let found =
            messages::page(data, owner, thread, after.as_deref(), MAX_READ, Order::Oldest, |stored| {
                stored.message.message_id.uuid() < end
            });
        let found = found.await?;
        read.extend(found.messages);
        after = found.last;
        if after.is_none() {
            break;
        }
    }
    forgotten.retain(source, &mut read);
    let session = of(source, title, &read);
    Ok((!session.messages.is_empty()).then_some(session))
}

/// The days on which a conversation has messages: all parts of it. Reads one message of each day.
pub(super) async fn days(data: &Data, owner: &Owner, source: &Source) -> Result<Vec<Date>> {
    let mut days = Vec::new();
    let mut after: Option<String> = None;
    while let Some((id, prefix)) = first_after(data, owner, source, after.as_deref()).await? {
        let day = day_of(id);
        days.push(day);
        let (_, end) = ids_of(day);
        after = Some(format!("{prefix}{}", end.simple()));
    }
    Ok(days)
}

/// The id of the first message after a sort key, and what comes before the id in sort keys.
async fn first_after(
    data: &Data,
    owner: &Owner,
    source: &Source,
    after: Option<&str>,
) -> Result<Option<(Uuid, &'static str)>> {
    if let Source::Outside(name) = source {
        let found = data.store.outside_messages(owner, name, after, 1, Order::Oldest).await?;
        return Ok(found.items.first().map(|(_, message)| (message.value.arrived, "MSG#")));
    }
    let Some(thread) = thread_of(source) else { return Ok(None) };
    let found = data.store.messages(owner, thread, after, 1, Order::Oldest).await?;
    Ok(found.items.first().map(|(_, stored)| (stored.value.message.message_id.uuid(), MESSAGE)))
}

/// The sort key before all messages of the UTC day of a time.
pub(super) fn just_before(time: Timestamp) -> String {
    let (first, _) = ids_of(time.to_zoned_datetime(TimeZone::UTC).date());
    format!("{MESSAGE}{}", first.simple())
}

/// The conversation on this platform.
pub(super) fn thread_of(source: &Source) -> Option<Thread> {
    match source {
        Source::Chat(id) => Some((*id).into()),
        Source::Action(id) => Some((*id).into()),
        Source::Run(_) | Source::Outside(_) => None,
    }
}

/// The parts of the index that have these messages.
pub(super) async fn parts_of(data: &Data, owner: &Owner, quoted: &Quoted) -> Result<BTreeSet<MemoryPart>> {
    let of = || Collection::Messages(quoted.source.clone());
    if let Source::Outside(session) = &quoted.source {
        let ids: Vec<&str> = quoted.message_ids.iter().map(String::as_str).collect();
        let arrived = data.store.outside_arrivals(owner, session, &ids).await?;
        return Ok(arrived.into_iter().map(|arrived| MemoryPart::with(of(), arrived)).collect());
    }
    let ids = quoted.message_ids.iter().filter_map(|id| id.parse::<MessageId>().ok());
    Ok(ids.map(|id| MemoryPart::with(of(), id.uuid())).collect())
}

/// All parts of the index that have messages of an outside session.
pub(super) async fn parts_of_session(
    data: &Data,
    owner: &Owner,
    source: &Source,
) -> Result<BTreeSet<MemoryPart>> {
    let days = days(data, owner, source).await?;
    let part = |day| MemoryPart { of: Collection::Messages(source.clone()), day: Some(day) };
    Ok(days.into_iter().map(part).collect())
}

/// Whether a part is of a conversation with people, which a synchronisation learns from.
pub(super) fn source_of(part: &Collection) -> Option<&Source> {
    match part {
        Collection::Messages(source) => Some(source),
        Collection::Facts | Collection::Cards => None,
    }
}
