//! Messages of a conversation: of a chat, or about an action. Each message is one item, so an append never changes
//! another message. A conversation has at most one summary of its oldest messages.

use domain::chats::{ChatMessage, Summary, Thread};
use domain::ids::{MessageId, Owner};
use serde::{Deserialize, Serialize};

use crate::store::keys;
use crate::store::table::{Extras, Order, QueryPage, Store, StoreError, Versioned, Write, item};

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

    pub async fn message(
        &self,
        owner: &Owner,
        thread: Thread,
        id: MessageId,
    ) -> Result<Option<StoredMessage>, StoreError> {
        let found = self.get(&keys::message(owner, thread, id)).await?;
        Ok(found.map(|found: Versioned<StoredMessage>| found.value))
    }

    /// Messages by their conversations and ids, each of which is there once. Those that do not exist are left out.
    pub async fn messages_of(
        &self,
        owner: &Owner,
        ids: &[(Thread, MessageId)],
    ) -> Result<Vec<StoredMessage>, StoreError> {
        let keys: Vec<_> = ids.iter().map(|(thread, id)| keys::message(owner, *thread, *id)).collect();
        self.get_many(&keys).await
    }

    /// The summary of the oldest messages. After a reset of the chat it may be void: see [`Summary::is_after`].
    pub async fn summary(
        &self,
        owner: &Owner,
        thread: Thread,
    ) -> Result<Option<Versioned<Summary>>, StoreError> {
        self.get(&keys::summary(owner, thread)).await
    }

    /// The write of a summary over the one that was read at `version` (0: there was none).
    pub fn summary_write(
        owner: &Owner,
        thread: Thread,
        summary: &Summary,
        version: u64,
    ) -> Result<Write, StoreError> {
        Ok(Write::over(keys::summary(owner, thread), version, item(summary, &Extras::default())?))
    }

    /// Deletes a summary that was read at `version`. If it has changed since, it stays.
    pub async fn delete_summary(
        &self,
        owner: &Owner,
        thread: Thread,
        version: u64,
    ) -> Result<(), StoreError> {
        let key = keys::summary(owner, thread);
        self.write_all(vec![Write::Remove { key, version }]).await.map(|_| ())
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
