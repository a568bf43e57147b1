//! The messages of a conversation, wherever it took place.

use std::collections::BTreeSet;

use domain::chats::{ChatMessage, Thread};
use domain::ids::{MessageId, Owner};
use domain::memory::part::{Collection, MemoryPart, ids_of};
use domain::memory::session::{Said, SaidBy, Session};
use domain::memory::{Quoted, Source};
use domain::models::{Block, Role};
use jiff::civil::Date;

use crate::context::Data;
use crate::error::Result;
use crate::flows::messages;
use crate::store::memory::OutsideMessage;
use crate::store::table::Order;

/// The most messages of a conversation that are read to learn from it.
const MAX_READ: usize = 400;

/// The longest result of a tool that is kept, in bytes. Longer ones are cut.
const MAX_TOOL: usize = 2_000;

/// A conversation with its newest messages. `None` if it does not exist any more.
pub(super) async fn session(data: &Data, owner: &Owner, source: &Source) -> Result<Option<Session>> {
    Ok(match source {
        Source::Chat(id) => match data.store.chat(owner, *id).await? {
            None => None,
            Some(chat) => {
                let after = chat.value.reset_after;
                let kept = |stored: &crate::store::messages::StoredMessage| {
                    after.is_none_or(|last| stored.message.message_id > last)
                };
                let read = messages::newest(data, owner, *id, MAX_READ, kept).await?;
                Some(of(source, chat.value.title, &read))
            }
        },
        Source::Action(id) => match data.store.action(owner, *id).await? {
            None => None,
            Some(action) => {
                let read = messages::newest(data, owner, *id, MAX_READ, |_| true).await?;
                Some(of(source, action.value.title, &read))
            }
        },
        Source::Run(_) => None,
        Source::Outside(name) => match data.store.outside_session(owner, name).await? {
            None => None,
            Some(session) => {
                let all = data.store.outside_messages(owner, name, None).await?;
                let newest = all.len().saturating_sub(MAX_READ);
                Some(Session {
                    source: source.clone(),
                    title: name.to_string(),
                    namespace: session.value.namespace.clone(),
                    by_schedule: session.value.by_schedule,
                    messages: all.into_iter().skip(newest).map(timed).collect(),
                })
            }
        },
    })
}

fn of(source: &Source, title: String, read: &[ChatMessage]) -> Session {
    let messages = read.iter().filter_map(said).collect();
    Session { source: source.clone(), title, namespace: String::new(), by_schedule: false, messages }
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
fn timed(message: OutsideMessage) -> Said {
    let arrived = domain::ids::instant_of(message.arrived);
    let at = message.said.at.or_else(|| message.said.date_text.is_none().then_some(arrived));
    Said { at, ..message.said }
}

/// A conversation with the messages of one UTC day. `None` if it does not exist any more, or has none on that day.
pub(super) async fn day(data: &Data, owner: &Owner, source: &Source, day: Date) -> Result<Option<Session>> {
    let thread: Thread = match source {
        Source::Chat(id) => (*id).into(),
        Source::Action(id) => (*id).into(),
        Source::Run(_) => return Ok(None),
        Source::Outside(name) => {
            let Some(session) = data.store.outside_session(owner, name).await? else { return Ok(None) };
            let messages: Vec<Said> =
                data.store.outside_messages(owner, name, Some(day)).await?.into_iter().map(timed).collect();
            return Ok((!messages.is_empty()).then(|| Session {
                source: source.clone(),
                title: name.to_string(),
                namespace: session.value.namespace.clone(),
                by_schedule: session.value.by_schedule,
                messages,
            }));
        }
    };
    let title = match thread {
        Thread::Chat(id) => data.store.chat(owner, id).await?.map(|chat| chat.value.title),
        Thread::Action(id) => data.store.action(owner, id).await?.map(|action| action.value.title),
    };
    let Some(title) = title else { return Ok(None) };
    let (first, end) = ids_of(day);
    let mut after = Some(format!("MSG#msg_{}", first.simple()));
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
    let session = of(source, title, &read);
    Ok((!session.messages.is_empty()).then_some(session))
}

/// The days on which a conversation has messages: all parts of it.
pub(super) async fn days(data: &Data, owner: &Owner, source: &Source) -> Result<Vec<Date>> {
    let mut days = Vec::new();
    match source {
        Source::Chat(id) => of_thread(data, owner, (*id).into(), &mut days).await?,
        Source::Action(id) => of_thread(data, owner, (*id).into(), &mut days).await?,
        Source::Run(_) => {}
        Source::Outside(name) => {
            let all = data.store.outside_messages(owner, name, None).await?;
            days.extend(all.iter().map(|message| domain::memory::part::day_of(message.arrived)));
        }
    }
    days.sort_unstable();
    days.dedup();
    Ok(days)
}

/// Reads one message of each day.
async fn of_thread(data: &Data, owner: &Owner, thread: Thread, days: &mut Vec<Date>) -> Result<()> {
    let mut after: Option<String> = None;
    loop {
        let found = data.store.messages(owner, thread, after.as_deref(), 1, Order::Oldest).await?;
        let Some((_, message)) = found.items.into_iter().next() else { return Ok(()) };
        let day = domain::memory::part::day_of(message.value.message.message_id.uuid());
        days.push(day);
        let (_, end) = ids_of(day);
        after = Some(format!("MSG#msg_{}", end.simple()));
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

/// Whether a part is of a conversation with people, which a synchronisation learns from.
pub(super) fn source_of(part: &Collection) -> Option<&Source> {
    match part {
        Collection::Messages(source) => Some(source),
        Collection::Facts | Collection::Cards => None,
    }
}
