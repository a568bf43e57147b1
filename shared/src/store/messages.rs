//! Messages of a conversation: of a chat, or about an action. Each message is one item, so an append never changes
//! another message.

use domain::chats::{ChatMessage, Thread};
use domain::ids::{MessageId, Owner};
use serde::{Deserialize, Serialize};

use super::keys;
use super::table::{Extras, Order, QueryPage, Store, StoreError, Write, item};

/// A message, and whether its blocks are too large for an item.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoredMessage {
    #[serde(flatten)]
    pub message: ChatMessage,
    /// The content is stored in S3, and the record's content is empty.
    #[serde(default)]
    pub overflow: bool,
}

impl From<ChatMessage> for StoredMessage {
    fn from(message: ChatMessage) -> Self {
        Self { message, overflow: false }
    }
}

impl Store {
    /// The write of one message, for a transaction that also checks that the conversation exists.
    pub fn message_write(
        owner: &Owner,
        thread: impl Into<Thread>,
        message: &StoredMessage,
    ) -> Result<Write, StoreError> {
        let key = keys::message(owner, thread.into(), message.message.message_id);
        Ok(Write::Put { key, item: item(message, &Extras::default())? })
    }

    pub async fn messages(
        &self,
        owner: &Owner,
        thread: impl Into<Thread>,
        after: Option<&str>,
        limit: usize,
        order: Order,
    ) -> Result<QueryPage<StoredMessage>, StoreError> {
        self.query(&keys::messages(owner, thread.into()), after, limit, order).await
    }

    /// Deletes messages of a conversation, at most 100.
    pub async fn delete_messages(
        &self,
        owner: &Owner,
        thread: impl Into<Thread>,
        messages: &[MessageId],
    ) -> Result<(), StoreError> {
        let thread = thread.into();
        let delete =
            |id: &MessageId| Write::Delete { key: keys::message(owner, thread, *id), must_exist: false };
        self.write_all(messages.iter().map(delete).collect()).await.map(|_| ())
    }
}
