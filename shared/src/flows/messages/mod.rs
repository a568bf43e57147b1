//! The messages of a conversation. Contents that are too large for an item are in S3.

pub(crate) mod images;

use domain::chats::ChatMessage;
use domain::chats::Thread;
use domain::chats::conversation::Author;
use domain::ids::{MessageId, Owner, RunId};
use domain::memory::part::{Collection, MemoryPart};
use domain::memory::told::Told;
use domain::models::image::{Image, MediaType};
use domain::models::{Block, Message, Role};
use futures::stream::{self, StreamExt, TryStreamExt};
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::blobs::{BlobError, BlobKey};
use crate::context::{Cx, Data};
use crate::error::{Error, Result};
use crate::store::Store;
use crate::store::chats::messages::StoredMessage;
use crate::store::table::{Order, Write};

/// The largest content within the item of a message, in bytes of JSON. Larger contents are in S3.
const MAX_INLINE_BYTES: usize = 64 * 1024;

/// The most bytes that the items of one append may have together. DynamoDB accepts 4 MB per transaction.
const MAX_INLINE_TOTAL: usize = 3_000_000;

/// How many contents are transferred to or from S3 at once.
const AT_ONCE: usize = 16;

/// An image of a message.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ImageView {
    /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
    #[schema(value_type = String, example = "image/png")]
    pub media_type: MediaType,
    /// The size of the file.
    pub bytes: u32,
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
}

impl From<&Image> for ImageView {
    fn from(image: &Image) -> Self {
        let &Image { media_type, bytes, width, height, .. } = image;
        Self { media_type, bytes, width, height }
    }
}

/// A message for people.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct MessageView {
    pub message_id: MessageId,
    #[schema(value_type = String, example = "user")]
    pub role: Role,
    pub content: String,
    pub created_at: Timestamp,
    /// The images of the message. Their bytes are not returned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageView>,
    /// The run that wrote it, or that answers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
}

impl From<ChatMessage> for MessageView {
    fn from(message: ChatMessage) -> Self {
        let content = message.text();
        let images = message.images().map(ImageView::from).collect();
        let ChatMessage { message_id, role, created_at, run_id, .. } = message;
        Self { message_id, role, content, images, created_at, run_id }
    }
}

/// A new message.
#[must_use]
pub fn new(cx: &Cx, role: Role, content: Vec<Block>, run_id: Option<RunId>) -> ChatMessage {
    let message_id = MessageId::from_uuid(cx.clock.uuid());
    let author = (role == Role::User).then_some(Author::Person);
    ChatMessage {
        message_id,
        role,
        content,
        created_at: cx.clock.now(),
        run_id,
        author,
        told: Told::default(),
    }
}

/// A message of a turn after the person's. The platform has told the model what is not the model's own.
#[must_use]
pub fn of_turn(cx: &Cx, said: Message, run_id: RunId) -> ChatMessage {
    let message = new(cx, said.role, said.content, Some(run_id));
    ChatMessage { author: message.author.map(|_| Author::Platform), ..message }
}

/// The writes of new messages, for a transaction. Images, and contents that are too large for an item, are already stored
/// when this returns. The transaction, or a check after it, must make sure that the conversation exists.
///
/// # Errors
/// If a large content can't be stored.
pub async fn writes(
    cx: &Cx,
    owner: &Owner,
    thread: impl Into<Thread>,
    messages: Vec<ChatMessage>,
) -> Result<Vec<Write>> {
    let thread = thread.into();
    let marks = marks(cx, owner, thread, messages.first())?;
    let max_inline = MAX_INLINE_BYTES.min(MAX_INLINE_TOTAL / messages.len().max(1));
    let write = async |mut message: ChatMessage| {
        images::store(cx, owner, thread, &mut message).await?;
        let content = serde_json::to_vec(&message.content).map_err(|e| Error::internal(e.to_string()))?;
        let overflow = content.len() > max_inline;
        if overflow {
            let key = BlobKey::message(owner, thread, message.message_id);
            cx.blobs.put(&key, content, "application/json").await?;
            message.content.clear();
        }
        Ok::<_, Error>(Store::message_write(owner, thread, &StoredMessage { message, overflow })?)
    };
    let written: Vec<Write> =
        stream::iter(messages.into_iter().map(write)).buffered(AT_ONCE).try_collect().await?;
    Ok(written.into_iter().chain(marks).collect())
}

/// The writes that tell memory of new messages, which all come at the same time.
fn marks(cx: &Cx, owner: &Owner, thread: Thread, first: Option<&ChatMessage>) -> Result<Vec<Write>> {
    let part = first.map(|message| MemoryPart::with(Collection::from(thread), message.message_id.uuid()));
    Ok(Store::memory_marks(owner, part, cx.clock.uuid(), cx.clock.now())?)
}

/// The writes of one new message without images, which fits into an item.
///
/// # Errors
/// If the message can't be represented as an item. This is a bug.
pub fn small_writes(
    cx: &Cx,
    owner: &Owner,
    thread: impl Into<Thread>,
    message: &ChatMessage,
) -> Result<Vec<Write>> {
    let thread = thread.into();
    let mut writes = marks(cx, owner, thread, Some(message))?;
    writes.push(Store::message_write(owner, thread, &message.clone().into())?);
    Ok(writes)
}

/// The newest messages of a conversation, oldest first, at most `max`. It stops at the first message that is not
/// `kept`.
///
/// # Errors
/// If the table or the bucket does not answer.
pub async fn newest(
    data: &Data,
    owner: &Owner,
    thread: impl Into<Thread>,
    max: usize,
    kept: impl Fn(&StoredMessage) -> bool,
) -> Result<Vec<ChatMessage>> {
    let thread = thread.into();
    let mut newest: Vec<StoredMessage> = Vec::new();
    let mut after: Option<String> = None;
    while newest.len() < max {
        let limit = max - newest.len();
        let found = data.store.messages(owner, thread, after.as_deref(), limit, Order::Newest).await?;
        let seen = newest.len() + found.items.len();
        let messages = found.items.into_iter().map(|(_, stored)| stored.value);
        newest.extend(messages.take_while(&kept));
        after = found.last;
        if after.is_none() || newest.len() < seen {
            break;
        }
    }
    newest.reverse();
    whole(data, owner, thread, newest).await
}

/// Messages of a conversation, in the order in which they were read.
pub struct Read {
    pub messages: Vec<ChatMessage>,
    /// Where to continue. `None` at the end.
    pub last: Option<String>,
}

/// Messages after the sort key `after`, at most `limit`. It stops at the first message that is not `kept`.
///
/// # Errors
/// If the table or the bucket does not answer.
pub async fn page(
    data: &Data,
    owner: &Owner,
    thread: Thread,
    after: Option<&str>,
    limit: usize,
    order: Order,
    kept: impl Fn(&StoredMessage) -> bool,
) -> Result<Read> {
    let found = data.store.messages(owner, thread, after, limit, order).await?;
    let count = found.items.len();
    let stored: Vec<_> = found.items.into_iter().map(|(_, stored)| stored.value).take_while(&kept).collect();
    let last = found.last.filter(|_| stored.len() == count);
    Ok(Read { messages: whole(data, owner, thread, stored).await?, last })
}

/// Loads the contents of messages from S3.
///
/// # Errors
/// If the bucket does not answer.
pub async fn whole(
    data: &Data,
    owner: &Owner,
    thread: impl Into<Thread>,
    stored: Vec<StoredMessage>,
) -> Result<Vec<ChatMessage>> {
    let thread = thread.into();
    let read = async |StoredMessage { mut message, overflow }: StoredMessage| {
        if !overflow {
            return Ok(Some(message));
        }
        let body = match data.blobs.get(&BlobKey::message(owner, thread, message.message_id)).await {
            // The conversation was reset or deleted between the two reads.
            Err(BlobError::Missing { .. }) => return Ok(None),
            body => body?,
        };
        message.content = serde_json::from_slice(&body)
            .map_err(|error| Error::internal(format!("a stored message can't be read: {error}")))?;
        Ok::<_, Error>(Some(message))
    };
    let read: Vec<Option<ChatMessage>> =
        stream::iter(stored.into_iter().map(read)).buffered(AT_ONCE).try_collect().await?;
    Ok(read.into_iter().flatten().collect())
}
