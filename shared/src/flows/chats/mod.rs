//! Chats: created, appended to, read, reset, deleted.
//!
//! A message is an item, and an append writes nothing else, so concurrent appends do not conflict. After the write, an append
//! checks that the chat still exists. A deletion removes the chat's record before it deletes the messages. So if an append still
//! finds the record, the deletion will see its message; if not, the append deletes its message itself.

use domain::chats::conversation::{MAX_APPEND, MAX_TITLE, NewMessage};
use domain::chats::{Chat, ChatMessage, Summary};
use domain::ids::{ActionId, AgentId, AssetId, ChatId, MessageId, Owner, ProjectId, RunId};
use domain::memory::told::Told;
use domain::models::{Block, Role};
use domain::validate::FieldErrors;
use futures::FutureExt;
use futures::stream::{self, StreamExt, TryStreamExt};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::memory::told;
use super::messages::{self, MessageView};
use super::runs;
use crate::blobs::BlobKey;
use crate::context::{Cx, Data};
use crate::error::{Error, Result};
use crate::flows::existing;
use crate::flows::page::{self, Page, PageQuery};
use crate::store::chats::messages::StoredMessage;
use crate::store::table::{Order, Write};
use crate::store::{Once, Store, Tries, Versioned};

/// How many chats of a list are looked into at once.
const AT_ONCE: usize = 32;

/// The maximum number of ids of one kind in one call.
const MAX_GENERATED: usize = 40;

/// The input that saves a chat.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
pub struct NewChat {
    /// Up to 200 characters.
    #[serde(default)]
    pub title: String,
    /// The messages so far: up to 96, oldest first.
    #[serde(default)]
    pub messages: Vec<NewMessage>,
    /// Assets that the chat has led to, up to 40.
    #[serde(default)]
    pub generated_assets: Vec<AssetId>,
    /// Actions that the chat has led to, up to 40.
    #[serde(default)]
    pub generated_actions: Vec<ActionId>,
}

/// The input that appends to a chat.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
pub struct Append {
    /// Up to 96, oldest first.
    #[serde(default)]
    pub messages: Vec<NewMessage>,
    /// Assets that the chat has led to, up to 40. Repeated ids are ignored.
    #[serde(default)]
    pub generated_assets: Vec<AssetId>,
    /// Actions that the chat has led to, up to 40.
    #[serde(default)]
    pub generated_actions: Vec<ActionId>,
}

/// A chat in a list.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ChatView {
    pub chat_id: ChatId,
    /// Absent for the setup conversation and for conversations with the theme agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The project of a conversation with its theme agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<ProjectId>,
    pub title: String,
    pub created_at: Timestamp,
    /// When the newest message was stored. Without messages: when the chat was created.
    pub updated_at: Timestamp,
    /// The turn that is running, or waits for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live_run: Option<RunId>,
    pub version: u64,
}

/// A chat with its newest messages, or with a page of older ones.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ChatDetail {
    #[serde(flatten)]
    pub chat: ChatView,
    /// Oldest first.
    pub messages: Vec<MessageView>,
    /// Send it as `cursor` to read the messages before these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    pub has_more: bool,
    /// The summary of the oldest messages, if the chat is so long that a model no longer gets them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    pub generated_assets: Vec<AssetId>,
    pub generated_actions: Vec<ActionId>,
}

/// What an append has added.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Appended {
    pub chat_id: ChatId,
    pub messages: Vec<MessageView>,
}

/// Chats for clients, with the time of their newest messages and their live turns.
async fn views(cx: &Cx, owner: &Owner, chats: Vec<Versioned<Chat>>) -> Result<Vec<ChatView>> {
    let ids: Vec<ChatId> = chats.iter().map(|chat| chat.value.chat_id).collect();
    let newest = stream::iter(ids.iter().copied().map(async |id| {
        let found = cx.store.messages(owner, id, None, 1, Order::Newest).await?;
        Ok::<_, Error>(found.items.into_iter().next().map(|(_, stored)| stored.value.message.created_at))
    }));
    let (newest, live) =
        tokio::try_join!(newest.buffered(AT_ONCE).try_collect::<Vec<Option<Timestamp>>>(), async {
            Ok::<_, Error>(cx.store.live_turns(owner, &ids).await?)
        })?;
    let view = |(Versioned { value, version }, newest): (Versioned<Chat>, Option<Timestamp>)| {
        let Chat { chat_id, agent_id, project_id, title, created_at, .. } = value;
        let updated_at = newest.map_or(created_at, |newest| newest.max(created_at));
        let live_run = live.get(&chat_id).copied();
        ChatView { chat_id, agent_id, project_id, title, created_at, updated_at, live_run, version }
    };
    Ok(chats.into_iter().zip(newest).map(view).collect())
}

async fn view(cx: &Cx, owner: &Owner, chat: Versioned<Chat>) -> Result<ChatView> {
    views(cx, owner, vec![chat]).await?.pop().ok_or_else(|| Error::internal("a chat has no view"))
}

impl Append {
    /// The role and the blocks of each message.
    fn check(&self, errors: &mut FieldErrors) -> Vec<(Role, Vec<Block>)> {
        let mut contents = Vec::with_capacity(self.messages.len());
        let mut at_most = |field: &str, max: usize, count: usize| {
            if count > max {
                errors.add(field, format!("must have at most {max}, has {count}"));
            }
        };
        at_most("messages", MAX_APPEND, self.messages.len());
        at_most("generated_assets", MAX_GENERATED, self.generated_assets.len());
        at_most("generated_actions", MAX_GENERATED, self.generated_actions.len());
        for (i, message) in self.messages.iter().enumerate() {
            if let Some(content) = errors.nest(&format!("messages[{i}]"), message.read()) {
                contents.push((message.role, content));
            }
        }
        contents
    }

    fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.generated_assets.is_empty() && self.generated_actions.is_empty()
    }
}

/// # Errors
/// 404 if the agent does not exist, 400 with every invalid field and its limit.
pub async fn create(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    agent: AgentId,
    input: NewChat,
) -> Result<ChatDetail> {
    let mut errors = FieldErrors::default();
    // Not flattened into the input, because flattened structs ignore unknown fields.
    let NewChat { title, messages, generated_assets, generated_actions } = input;
    let append = Append { messages, generated_assets, generated_actions };
    errors.length("title", &title, 0, MAX_TITLE);
    let contents = append.check(&mut errors);
    errors.into_result(())?;
    existing::agent(cx, owner, agent).await?;
    let chat = Chat {
        chat_id: ChatId::from_uuid(cx.clock.uuid()),
        agent_id: Some(agent),
        project_id: None,
        title: title.trim().to_owned(),
        created_at: cx.clock.now(),
        reset_after: None,
    };
    // The record is written last, so a chat exists with all its messages or not at all.
    let (_, writes) = prepare(cx, owner, chat.chat_id, append, contents).await?;
    if !writes.is_empty() {
        let _ = cx.store.write_all(writes).await?;
    }
    if !cx.store.commit(once, Store::chat_writes(owner, &chat)?).await?.done() {
        sweep(cx, owner, chat.chat_id).await?;
        return Err(Error::NotFound("agent"));
    }
    read(cx, owner, chat.chat_id, &PageQuery::default()).await
}

/// # Errors
/// 404 if it does not exist.
pub async fn load(data: &Data, owner: &Owner, id: ChatId) -> Result<Versioned<Chat>> {
    data.store.chat(owner, id).await?.ok_or(Error::NotFound("chat"))
}

/// # Errors
/// 404 if it does not exist, 400 if `limit` or `cursor` is invalid.
pub async fn read(cx: &Cx, owner: &Owner, id: ChatId, query: &PageQuery) -> Result<ChatDetail> {
    let chat = load(cx, owner, id).await?;
    let list = format!("messages of {id}");
    let newest = |after: Option<String>, limit| {
        async move { cx.store.messages(owner, id, after.as_deref(), limit, Order::Newest).await }.boxed()
    };
    let shown = |stored: &StoredMessage| {
        is_shown(&chat.value, stored) && (stored.overflow || !stored.message.text().is_empty())
    };
    let found = page::filtered(owner, &list, query, newest, shown).await?;
    let stored = found.data.into_iter().rev().map(|message| message.value).collect();
    let messages = messages::whole(cx, owner, id, stored).await?.into_iter().map(MessageView::from);
    let ((generated_assets, generated_actions), summary) =
        tokio::try_join!(cx.store.generated(owner, id), cx.store.summary(owner, id.into()))?;
    let reset_after = chat.value.reset_after;
    let chat = view(cx, owner, chat).await?;
    Ok(ChatDetail {
        summary: summary.map(|stored| stored.value).filter(|summary| summary.is_after(reset_after)),
        messages: messages.filter(|message| !message.content.is_empty()).collect(),
        chat,
        next_cursor: found.next_cursor,
        has_more: found.has_more,
        generated_assets,
        generated_actions,
    })
}

/// An agent's chats, newest first.
///
/// # Errors
/// 404 if the agent does not exist, 400 if `limit` or `cursor` is invalid.
pub async fn list(cx: &Cx, owner: &Owner, agent: AgentId, query: &PageQuery) -> Result<Page<ChatView>> {
    existing::agent(cx, owner, agent).await?;
    let list = format!("chats of {agent}");
    let newest = |after: Option<String>, limit| {
        async move { cx.store.agent_chats(owner, agent, after.as_deref(), limit).await }.boxed()
    };
    let Page { data, next_cursor, has_more } = page::filtered(owner, &list, query, newest, |_| true).await?;
    Ok(Page { data: views(cx, owner, data).await?, next_cursor, has_more })
}

/// The conversations with the theme agent of a project, newest first.
///
/// # Errors
/// 404 if the project does not exist, 400 if `limit` or `cursor` is invalid.
pub async fn list_of_project(
    cx: &Cx,
    owner: &Owner,
    project: ProjectId,
    query: &PageQuery,
) -> Result<Page<ChatView>> {
    existing::project(cx, owner, project).await?;
    let list = format!("chats of {project}");
    let newest = |after: Option<String>, limit| {
        async move { cx.store.project_chats(owner, project, after.as_deref(), limit).await }.boxed()
    };
    let Page { data, next_cursor, has_more } = page::filtered(owner, &list, query, newest, |_| true).await?;
    Ok(Page { data: views(cx, owner, data).await?, next_cursor, has_more })
}

/// Deletes the conversations with the theme agent of a project.
///
/// # Errors
/// If the table or the bucket does not answer; the call can be repeated.
pub async fn erase_of_project(cx: &Cx, owner: &Owner, project: ProjectId) -> Result<()> {
    let mut after: Option<String> = None;
    loop {
        let found = cx.store.project_chats(owner, project, after.as_deref(), 100).await?;
        stream::iter(found.items.into_iter().map(|(_, chat)| Ok::<_, Error>(chat.value)))
            .try_for_each_concurrent(AT_ONCE, async |chat| erase(cx, owner, &chat).await)
            .await?;
        after = found.last;
        if after.is_none() {
            return Ok(());
        }
    }
}

/// Appends messages, in order of arrival.
///
/// # Errors
/// 404 if the chat does not exist, 400 with every invalid field and its limit.
pub async fn append(cx: &Cx, owner: &Owner, once: &Once, id: ChatId, input: Append) -> Result<Appended> {
    let mut errors = FieldErrors::default();
    if input.is_empty() {
        errors.add("messages", format!("must have 1 to {MAX_APPEND}, has 0"));
    }
    let contents = input.check(&mut errors);
    errors.into_result(())?;
    load(cx, owner, id).await?;
    let (messages, writes) = prepare(cx, owner, id, input, contents).await?;
    if !writes.is_empty() {
        let _ = cx.store.commit(once, writes).await?;
    }
    if cx.store.chat(owner, id).await?.is_none() {
        sweep(cx, owner, id).await?;
        return Err(Error::NotFound("chat"));
    }
    Ok(Appended { chat_id: id, messages: messages.into_iter().map(MessageView::from).collect() })
}

/// Writes the ids of what the messages have generated; repeating these writes does no harm. Returns the remaining
/// writes: the messages.
async fn prepare(
    cx: &Cx,
    owner: &Owner,
    chat: ChatId,
    input: Append,
    contents: Vec<(Role, Vec<Block>)>,
) -> Result<(Vec<ChatMessage>, Vec<Write>)> {
    let generated = input
        .generated_assets
        .iter()
        .map(|id| Store::generated_write(owner, chat, id))
        .chain(input.generated_actions.iter().map(|id| Store::generated_write(owner, chat, id)));
    let generated: Vec<Write> = distinct(generated.collect::<Result<_, _>>()?);
    if !generated.is_empty() {
        let _ = cx.store.write_all(generated).await?;
    }
    let has_replies = contents.iter().any(|(role, _)| *role == Role::Assistant);
    let mut told = match has_replies {
        true => told::of_conversation(cx, owner, chat.into()).await?,
        false => Told::default(),
    };
    let new = |(role, content)| {
        let message = messages::new(cx, role, content, None);
        if role == Role::User {
            told.add_message(message.message_id);
            return message;
        }
        ChatMessage { told: told.clone(), ..message }
    };
    let said: Vec<ChatMessage> = contents.into_iter().map(new).collect();
    let writes = messages::writes(cx, owner, chat, said.clone()).await?;
    Ok((said, writes))
}

/// Removes duplicates, because DynamoDB refuses a transaction that writes one item twice.
fn distinct(writes: Vec<Write>) -> Vec<Write> {
    let mut seen = std::collections::HashSet::new();
    let mut first = |write: &Write| match write {
        Write::Put { key, .. } => seen.insert(key.clone()),
        _ => true,
    };
    writes.into_iter().filter(|write| first(write)).collect()
}

fn is_shown(chat: &Chat, stored: &StoredMessage) -> bool {
    chat.reset_after.is_none_or(|last| stored.message.message_id > last)
}

/// Resets the conversation: its messages are no longer shown or sent to a model, and are deleted. Its assets and actions stay.
///
/// # Errors
/// 404 if the chat does not exist.
pub async fn reset(cx: &Cx, owner: &Owner, once: &Once, id: ChatId) -> Result<ChatDetail> {
    stop_turn(cx, owner, id).await?;
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let Versioned { value: chat, version } = load(cx, owner, id).await?;
        let newest = cx.store.messages(owner, id, None, 1, Order::Newest).await?;
        let newest = newest.items.first().map(|(_, stored)| stored.value.message.message_id);
        let reset_after = chat.reset_after.max(newest);
        let is_reset = reset_after == chat.reset_after;
        let chat = Chat { reset_after, ..chat };
        // The record is written before the messages are deleted, so that old messages are not shown if the deletion is interrupted.
        if is_reset || cx.store.replace_chat(owner, once, &chat, version).await?.done() {
            if let Some(last) = chat.reset_after {
                let summary = cx.store.summary(owner, id.into()).await?;
                if let Some(void) = summary.filter(|summary| !summary.value.is_after(Some(last))) {
                    cx.store.delete_summary(owner, id.into(), void.version).await?;
                }
                delete_messages(cx, owner, id, last).await?;
            }
            return read(cx, owner, id, &PageQuery::default()).await;
        }
    }
}

/// Deletes the messages of a chat up to and including `last`. Each content is deleted before the record that refers to
/// it.
async fn delete_messages(cx: &Cx, owner: &Owner, chat: ChatId, last: MessageId) -> Result<()> {
    loop {
        let found = cx.store.messages(owner, chat, None, 25, Order::Oldest).await?;
        let stored = found.items.into_iter().map(|(_, stored)| stored.value);
        let old: Vec<StoredMessage> = stored.take_while(|stored| stored.message.message_id <= last).collect();
        if old.is_empty() {
            return Ok(());
        }
        for stored in old.iter().filter(|stored| stored.overflow || stored.message.images().next().is_some())
        {
            cx.blobs.delete_prefix(&BlobKey::message(owner, chat.into(), stored.message.message_id)).await?;
        }
        let ids: Vec<MessageId> = old.iter().map(|stored| stored.message.message_id).collect();
        cx.store.delete_messages(owner, chat, &ids).await?;
    }
}

/// # Errors
/// 404 if the chat does not exist.
pub async fn delete(cx: &Cx, owner: &Owner, id: ChatId) -> Result<()> {
    let chat = load(cx, owner, id).await?;
    erase(cx, owner, &chat.value).await
}

/// Deletes a chat and its messages.
///
/// # Errors
/// If the table or the bucket does not answer; the call can be repeated.
pub async fn erase(cx: &Cx, owner: &Owner, chat: &Chat) -> Result<()> {
    stop_turn(cx, owner, chat.chat_id).await?;
    // Contents first, because the call can be repeated as long as the record exists.
    cx.blobs.delete_prefix(&BlobKey::messages(owner, chat.chat_id)).await?;
    cx.store.delete_chat(owner, chat, cx.clock.uuid(), cx.clock.now()).await?;
    // A concurrent append may have stored one.
    Ok(cx.blobs.delete_prefix(&BlobKey::messages(owner, chat.chat_id)).await?)
}

/// Cancels the live turn of a chat, if there is one, because its reply would come too late.
async fn stop_turn(cx: &Cx, owner: &Owner, id: ChatId) -> Result<()> {
    let Some(live) = cx.store.live_turn(owner, id.into()).await? else { return Ok(()) };
    match runs::cancel(cx, owner, None, live.value.run_id).await {
        Ok(_) | Err(Error::NotFound(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Deletes what was written under a chat, if the chat is not there.
pub(super) async fn sweep_if_gone(cx: &Cx, owner: &Owner, id: ChatId) -> Result<()> {
    if cx.store.chat(owner, id).await?.is_none() { sweep(cx, owner, id).await } else { Ok(()) }
}

/// Deletes what was written under a chat that is not there.
async fn sweep(cx: &Cx, owner: &Owner, id: ChatId) -> Result<()> {
    cx.blobs.delete_prefix(&BlobKey::messages(owner, id)).await?;
    Ok(cx.store.delete_chat_children(owner, id).await?)
}
