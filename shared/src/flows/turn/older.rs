//! The oldest messages of a long conversation: what a model no longer gets, what replaces them, and how it can read them.

use domain::chats::summary::{self, Cut, MAX_HISTORY, MAX_HISTORY_BYTES, Row};
use domain::chats::{ChatMessage, Summary, Thread};
use domain::ids::{MessageId, Owner, RunId};
use domain::memory::Source;
use domain::tools::DEFAULT_LIMIT;
use domain::tools::messages::ReadMessages;
use serde_json::{Value, json};

use super::conversation::Conversation;
use crate::agent_loop::ToSummarise;
use crate::context::Data;
use crate::error::{Error, Result};
use crate::flows::memory::forgotten::Forgotten;
use crate::flows::{chats, messages};
use crate::store::chats::messages::StoredMessage;
use crate::store::table::{Order, Write};
use crate::store::{Versioned, keys};

/// How many messages are read at once.
const AT_ONCE: usize = 100;

/// The most messages that one cut covers. Only a conversation that was long before it was ever cut has more.
const MAX_CUT: usize = 5_000;

/// The most messages and bytes that one call of `read_messages` reads.
const MAX_SCANNED: usize = 2_000;
const MAX_SCANNED_BYTES: usize = 16_000_000;

/// The most bytes of a message in a list, of a part of a long message, and of all messages together.
const MAX_ROW: usize = 4_000;
const MAX_PART: usize = 32_000;
const MAX_ROWS: usize = 48_000;

/// How many bytes before the place that was found are shown.
const BEFORE_FOUND: usize = 1_000;

/// What a model gets of a conversation.
pub(super) struct Recent {
    pub summary: Option<Summary>,
    /// The messages that the summary does not cover, oldest first: at most one more than [`MAX_HISTORY`].
    pub messages: Vec<ChatMessage>,
    /// Whether these are all of them.
    is_whole: bool,
    /// The version of the stored summary, also of one that a reset has voided.
    version: u64,
    /// The messages up to this one are never shown.
    floor: Option<MessageId>,
    unchanged: Write,
    /// What the person has deleted: the model does not get it any more.
    pub forgotten: Forgotten,
}

impl Conversation {
    /// The conversation, and the message that ended the last reset when the turn began.
    pub const fn shown(&self) -> (Thread, Option<MessageId>) {
        match self {
            Self::Chat(chat) => (Thread::Chat(chat.chat_id), chat.reset_after),
            Self::Action(action) => (Thread::Action(action.id), None),
        }
    }

    /// The message that ended the last reset, and the condition that nothing was reset since.
    async fn reset_after(&self, data: &Data, owner: &Owner) -> Result<(Option<MessageId>, Write)> {
        match self {
            // It may have been reset since the turn began.
            Self::Chat(chat) => {
                let Versioned { value, version } = chats::load(data, owner, chat.chat_id).await?;
                let key = keys::chat(owner, chat.chat_id);
                Ok((value.reset_after, Write::Unchanged { key, version }))
            }
            Self::Action(_) => Ok((None, self.still_there(owner))),
        }
    }

    /// The summary and the messages after it, up to the message that `run` answers.
    pub async fn recent(&self, data: &Data, owner: &Owner, run: RunId) -> Result<Recent> {
        let ((reset_after, unchanged), stored, forgotten) = tokio::try_join!(
            self.reset_after(data, owner),
            async { Ok(data.store.summary(owner, self.thread()).await?) },
            Forgotten::of(data, owner),
        )?;
        let version = stored.as_ref().map_or(0, |stored| stored.version);
        let summary = stored.map(|stored| stored.value).filter(|summary| summary.is_after(reset_after));
        let floor = summary.as_ref().map(|summary| summary.up_to).max(reset_after);
        let kept = |stored: &StoredMessage| floor.is_none_or(|floor| stored.message.message_id > floor);
        let mut messages = messages::newest(data, owner, self.thread(), MAX_HISTORY + 1, kept).await?;
        let is_whole = messages.len() <= MAX_HISTORY;
        // Messages since this turn began belong to the next turn.
        if let Some(own) = messages.iter().rposition(|message| message.run_id == Some(run)) {
            messages.truncate(own + 1);
        }
        forgotten.take_words(&Source::from(self.thread()), &mut messages);
        Ok(Recent { summary, messages, is_whole, version, floor, unchanged, forgotten })
    }

    /// The messages that are to be cut, if a model would get too many.
    pub async fn to_summarise(
        &self,
        data: &Data,
        owner: &Owner,
        recent: &Recent,
    ) -> Result<Option<ToSummarise>> {
        let start = summary::begin(&recent.messages, MAX_HISTORY, MAX_HISTORY_BYTES);
        let Some((newest, older)) = recent.messages[..start].split_last() else { return Ok(None) };
        let &Recent { is_whole, version, floor, .. } = recent;
        let mut cut = Cut::from_newest(recent.summary.clone(), newest);
        older.iter().rev().for_each(|message| cut.add_older(message));
        let mut after =
            (!is_whole).then(|| keys::message(owner, self.thread(), recent.messages[0].message_id).sk);
        let kept = |stored: &StoredMessage| floor.is_none_or(|floor| stored.message.message_id > floor);
        let mut left = MAX_CUT;
        while let Some(from) = after.filter(|_| left > 0) {
            let limit = AT_ONCE.min(left);
            let mut page =
                messages::page(data, owner, self.thread(), Some(&from), limit, Order::Newest, kept).await?;
            recent.forgotten.take_words(&Source::from(self.thread()), &mut page.messages);
            left = left.saturating_sub(page.messages.len());
            page.messages.iter().for_each(|message| cut.add_older(message));
            after = page.last;
        }
        let unchanged = recent.unchanged.clone();
        Ok(Some(ToSummarise { cut, thread: self.thread(), version, unchanged }))
    }

    /// Whether a message of a conversation about a theme is what the model was told ahead of an earlier turn. Its files may be others by now.
    fn is_told_ahead(&self, message: &ChatMessage) -> bool {
        let is_text = message.content.iter().all(|block| block.as_text().is_some());
        matches!(self, Self::Chat(chat) if chat.project_id.is_some()) && is_text && message.is_of_platform()
    }

    /// Reads older messages for the model. The inner error is a sentence for the model.
    ///
    /// # Errors
    /// If the table or the bucket does not answer.
    pub async fn read_messages(
        &self,
        data: &Data,
        owner: &Owner,
        wanted: ReadMessages,
    ) -> Result<Result<String, String>> {
        let (reset_after, stored, forgotten) = tokio::try_join!(
            async { Ok::<_, Error>(self.reset_after(data, owner).await?.0) },
            async { Ok(data.store.summary(owner, self.thread()).await?) },
            Forgotten::of(data, owner),
        )?;
        let source = Source::from(self.thread());
        let is_shown = |id: MessageId| reset_after.is_none_or(|last| id > last);
        if let Some(id) = wanted.message_id {
            let found = data.store.message(owner, self.thread(), id).await?.filter(|_| is_shown(id));
            let mut found = messages::whole(data, owner, self.thread(), found.into_iter().collect()).await?;
            forgotten.take_words(&source, &mut found);
            let missing = || format!("there is no message {id} in this conversation");
            return Ok(found.first().map(|message| part(message, wanted.from_byte)).ok_or_else(missing));
        }
        let summary = stored.map(|stored| stored.value).filter(|summary| summary.is_after(reset_after));
        // The model has the others.
        let up_to = summary.map(|summary| summary.up_to).filter(|_| wanted.before.is_none());
        let is_wanted = |id: MessageId| {
            up_to.is_none_or(|last| id <= last)
                && wanted.before.is_none_or(|before| id < before)
                && wanted.after.is_none_or(|after| id > after)
        };
        let order = if wanted.after.is_some() { Order::Oldest } else { Order::Newest };
        let from = wanted.after.max(reset_after.filter(|_| wanted.after.is_some())).or(wanted.before);
        let mut after = from.map(|from| keys::message(owner, self.thread(), from).sk);
        let kept = |stored: &StoredMessage| {
            let id = stored.message.message_id;
            match order {
                Order::Newest => is_shown(id) && wanted.after.is_none_or(|after| id > after),
                Order::Oldest => {
                    wanted.before.is_none_or(|before| id < before) && up_to.is_none_or(|last| id <= last)
                }
            }
        };
        let query = wanted.query.as_deref().map(str::to_lowercase);
        let limit = wanted.limit.unwrap_or(DEFAULT_LIMIT);
        let mut rows: Vec<Value> = Vec::new();
        let (mut bytes, mut scanned, mut scanned_bytes) = (0, 0, 0);
        // The last message that was looked at, if there may be more after it.
        let mut next = None;
        'read: loop {
            let mut page =
                messages::page(data, owner, self.thread(), after.as_deref(), AT_ONCE, order, kept).await?;
            forgotten.take_words(&source, &mut page.messages);
            for message in &page.messages {
                if rows.len() >= limit || bytes >= MAX_ROWS || scanned_bytes >= MAX_SCANNED_BYTES {
                    break 'read;
                }
                let id = message.message_id;
                next = Some(id);
                if !is_wanted(id) || self.is_told_ahead(message) {
                    continue;
                }
                let (row, size) = row(message, query.as_deref());
                scanned_bytes += size;
                if let Some((row, size)) = row {
                    bytes += size;
                    rows.push(row);
                }
            }
            scanned += AT_ONCE;
            after = page.last;
            if after.is_none() {
                next = None;
                break;
            }
            if scanned >= MAX_SCANNED {
                break;
            }
        }
        let mut result = json!({});
        let name = match order {
            Order::Newest => "next_before",
            Order::Oldest => "next_after",
        };
        if let Some(next) = next {
            result[name] = json!(next);
        }
        if order == Order::Newest {
            rows.reverse();
        }
        result["messages"] = rows.into();
        Ok(Ok(result.to_string()))
    }
}

fn shown(row: &Row, from: usize) -> Value {
    let mut shown = json!({"message_id": row.id, "at": row.at, "from": row.from, "text": row.text});
    if from > 0 {
        shown["from_byte"] = json!(from);
    }
    if row.more > 0 {
        shown["truncated_bytes"] = json!(row.more);
        shown["next_byte"] = json!(from + row.text.len());
    }
    shown
}

/// A part of a long message.
fn part(message: &ChatMessage, from: Option<usize>) -> String {
    let mut row = Row::of(message, usize::MAX);
    let from = row.text.floor_char_boundary(from.unwrap_or(0));
    row.text.drain(..from);
    shown(&shortened(row, MAX_PART), from).to_string()
}

/// A message in a list, with its size there, and how much of it was searched. `None` if it has no text, or not the one that is
/// looked for.
fn row(message: &ChatMessage, query: Option<&str>) -> (Option<(Value, usize)>, usize) {
    let mut row = Row::of(message, usize::MAX);
    let searched = row.text.len();
    if row.text.trim().is_empty() {
        return (None, searched);
    }
    let mut from = 0;
    if let Some(query) = query {
        let lower = row.text.to_lowercase();
        let Some(found) = lower.find(query) else { return (None, searched) };
        if row.text.len() > MAX_ROW {
            // Lower case may have another length, so the place is not exact.
            from = row.text.floor_char_boundary(found.saturating_sub(BEFORE_FOUND));
            row.text.drain(..from);
        }
    }
    let row = shortened(row, MAX_ROW);
    let size = row.text.len();
    (Some((shown(&row, from), size)), searched)
}

fn shortened(mut row: Row, max: usize) -> Row {
    let cut = row.text.floor_char_boundary(max);
    row.more = row.text.len() - cut;
    row.text.truncate(cut);
    row
}
