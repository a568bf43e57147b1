//! Chats. Their messages are in `messages`.

pub mod messages;
pub mod threads;

use domain::chats::Chat;
use domain::ids::{ActionId, AgentId, AssetId, ChatId, Owner, ProjectId, ProposalId, RunId};
use domain::memory::Source;
use domain::memory::part::MemoryPart;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::agents::{Mark, child};
use super::idempotency::Once;
use super::keys;
use super::table::{Extras, Order, QueryPage, Store, StoreError, Versioned, Write, Written, item};

/// An asset or action that a chat produced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Generated {
    id: String,
}

/// The chat of a conversation that a client keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientConversation {
    pub chat_id: ChatId,
    /// The drafts that the last reply has shown. Records of earlier versions have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proposals: Vec<ProposalId>,
    /// Whether every client shows these drafts. In records of earlier versions, nobody has judged that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_visible: bool,
    /// The run that has accepted the drafts, if nothing newer waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<RunId>,
}

/// How long a client finds its chat again.
const CLIENT_CONVERSATION_KEPT: SignedDuration = SignedDuration::from_hours(30 * 24);

/// The mark of something that a chat produced.
pub(super) fn generated(id: &str) -> impl Serialize {
    Generated { id: id.to_owned() }
}

impl Store {
    /// Makes the hash of a conversation lead to its chat.
    pub async fn mark_client_conversation(
        &self,
        owner: &Owner,
        hash: &str,
        mark: &ClientConversation,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let record = item(mark, &Extras::expiring(now + CLIENT_CONVERSATION_KEPT))?;
        self.put(&keys::client_conversation(owner, hash), record).await
    }

    /// The mark of a conversation, which stays.
    pub async fn client_conversation(
        &self,
        owner: &Owner,
        hash: &str,
    ) -> Result<Option<ClientConversation>, StoreError> {
        let found = self.get::<ClientConversation>(&keys::client_conversation(owner, hash)).await?;
        Ok(found.map(|found| found.value))
    }

    /// The mark of a conversation. Only one of several callers gets it.
    pub async fn take_client_conversation(
        &self,
        owner: &Owner,
        hash: &str,
    ) -> Result<Option<ClientConversation>, StoreError> {
        let key = keys::client_conversation(owner, hash);
        let Some(found) = self.get::<ClientConversation>(&key).await? else { return Ok(None) };
        let taken = self.write_all(vec![Write::Delete { key, must_exist: true }]).await?;
        Ok(taken.done().then_some(found.value))
    }

    pub fn chat_writes(owner: &Owner, chat: &Chat) -> Result<Vec<Write>, StoreError> {
        let plain = Extras::default();
        let mut writes =
            vec![Write::Create { key: keys::chat(owner, chat.chat_id), item: item(chat, &plain)? }];
        if let Some(agent) = chat.agent_id {
            writes.push(child(owner, agent, chat.chat_id, &plain)?);
            writes.push(Write::Exists { key: keys::agent(owner, agent) });
        }
        if let Some(project) = chat.project_id {
            let key = keys::project_chat(owner, project, chat.chat_id);
            writes.push(Write::Put { key, item: item(&Mark {}, &plain)? });
            writes.extend(Self::project_exists(owner, project));
        }
        Ok(writes)
    }

    pub async fn chat(&self, owner: &Owner, id: ChatId) -> Result<Option<Versioned<Chat>>, StoreError> {
        self.get(&keys::chat(owner, id)).await
    }

    pub async fn replace_chat(
        &self,
        owner: &Owner,
        once: &Once,
        chat: &Chat,
        version: u64,
    ) -> Result<Written, StoreError> {
        let key = keys::chat(owner, chat.chat_id);
        self.commit(once, vec![Write::Replace { key, version, item: item(chat, &Extras::default())? }]).await
    }

    /// All chats, newest first.
    pub async fn chats(
        &self,
        owner: &Owner,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QueryPage<Chat>, StoreError> {
        self.query(&keys::chats(owner), after, limit, Order::Newest).await
    }

    /// An agent's chats, newest first.
    pub async fn agent_chats(
        &self,
        owner: &Owner,
        agent: AgentId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QueryPage<Chat>, StoreError> {
        let marks = self.agent_children(owner, agent, ChatId::PREFIX, after, limit, Order::Newest).await?;
        self.resolve(marks, |id: ChatId| keys::chat(owner, id)).await
    }

    /// The conversations with the theme agent of a project, newest first.
    pub async fn project_chats(
        &self,
        owner: &Owner,
        project: ProjectId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QueryPage<Chat>, StoreError> {
        let marks = self.query(&keys::project_chats(owner, project), after, limit, Order::Newest).await?;
        self.resolve(marks, |id: ChatId| keys::chat(owner, id)).await
    }

    /// The write that records what a chat produced. Repeating it changes nothing.
    pub fn generated_write(owner: &Owner, chat: ChatId, id: impl ToString) -> Result<Write, StoreError> {
        let id = id.to_string();
        let key = keys::generated(owner, chat, &id);
        Ok(Write::Put { key, item: item(&Generated { id }, &Extras::default())? })
    }

    /// The assets and actions that a chat produced, oldest first.
    pub async fn generated(
        &self,
        owner: &Owner,
        chat: ChatId,
    ) -> Result<(Vec<AssetId>, Vec<ActionId>), StoreError> {
        let range = keys::chat_children(owner, chat, "GEN#");
        let found: QueryPage<Generated> = self.query(&range, None, 1_000, Order::Oldest).await?;
        let ids: Vec<String> = found.items.into_iter().map(|(_, generated)| generated.value.id).collect();
        let assets = ids.iter().filter_map(|id| id.parse().ok()).collect();
        Ok((assets, ids.iter().filter_map(|id| id.parse().ok()).collect()))
    }

    /// Deletes the chat's record, then its messages.
    pub async fn delete_chat(
        &self,
        owner: &Owner,
        chat: &Chat,
        stamp: Uuid,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut writes = vec![Write::Delete { key: keys::chat(owner, chat.chat_id), must_exist: false }];
        if let Some(agent) = chat.agent_id {
            writes.push(Write::Delete {
                key: keys::agent_child(owner, agent, chat.chat_id),
                must_exist: false,
            });
        }
        if let Some(project) = chat.project_id {
            let key = keys::project_chat(owner, project, chat.chat_id);
            writes.push(Write::Delete { key, must_exist: false });
        }
        let gone = MemoryPart::gone(Source::Chat(chat.chat_id));
        writes.extend(Self::memory_marks(owner, [gone], stamp, now)?);
        let _ = self.write_all(writes).await?;
        self.delete_chat_children(owner, chat.chat_id).await
    }

    /// Deletes the messages of a chat and the marks of what it produced.
    pub async fn delete_chat_children(&self, owner: &Owner, chat: ChatId) -> Result<(), StoreError> {
        self.delete_range(&keys::chat_children(owner, chat, "")).await
    }
}
