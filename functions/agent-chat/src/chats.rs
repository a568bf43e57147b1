//! The routes of saved chats.

use axum::extract::State;
use axum::http::StatusCode;
use domain::ids::{AgentId, ChatId};
use shared::edge::extract::{Caller, Id, Json, Once, OptionalJson, Query};
use shared::edge::respond::{Created, Tagged};
use shared::flows::chats::{self, Append, Appended, ChatDetail, ChatView, NewChat};
use shared::flows::page::{Page, PageQuery};
use shared::{Cx, Result};

shared::routes!(create, list, read, reset, delete, append);

fn tagged(chat: ChatDetail) -> Tagged<ChatDetail> {
    Tagged { version: chat.chat.version, body: chat }
}

/// Save a chat
///
/// With its messages, if there are any. The chat is created with all of them or not at all.
#[utoipa::path(
    post, path = "/agents/{agent_id}/chats", tag = "chats", operation_id = "create_chat",
    params(AgentId),
    request_body = NewChat,
    responses((status = 201, body = ChatDetail)),
)]
async fn create(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Id(agent): Id<AgentId>,
    OptionalJson(input): OptionalJson<NewChat>,
) -> Result<Created<ChatDetail>> {
    let chat = chats::create(&cx, &caller.owner, &once, agent, input).await?;
    Ok(Created { location: format!("/chats/{}", chat.chat.chat_id), version: chat.chat.version, body: chat })
}

/// List an agent's chats, newest first
///
/// Without their messages. Read a chat to get them.
#[utoipa::path(
    get, path = "/agents/{agent_id}/chats", tag = "chats", operation_id = "list_agent_chats",
    params(AgentId, PageQuery),
    responses((status = 200, body = Page<ChatView>)),
)]
async fn list(
    State(cx): State<Cx>,
    caller: Caller,
    Id(agent): Id<AgentId>,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<Page<ChatView>>> {
    chats::list(&cx, &caller.owner, agent, &page).await.map(axum::Json)
}

/// Read a chat with its newest messages
///
/// The messages of a page are in the order in which they were written. `next_cursor` leads to older messages.
#[utoipa::path(
    get, path = "/chats/{chat_id}", tag = "chats", operation_id = "read_chat",
    params(ChatId, PageQuery),
    responses((status = 200, body = ChatDetail)),
)]
async fn read(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<ChatId>,
    Query(page): Query<PageQuery>,
) -> Result<Tagged<ChatDetail>> {
    chats::read(&cx, &caller.owner, id, &page).await.map(tagged)
}

/// Reset a chat: later turns do not see its earlier messages
///
/// Earlier messages are no longer shown or sent to a model, and are deleted. Proposals, and what the chat has produced,
/// are kept.
#[utoipa::path(
    post, path = "/chats/{chat_id}", tag = "chats", operation_id = "reset_chat",
    params(ChatId),
    responses((status = 200, body = ChatDetail)),
)]
async fn reset(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Id(id): Id<ChatId>,
) -> Result<Tagged<ChatDetail>> {
    chats::reset(&cx, &caller.owner, &once, id).await.map(tagged)
}

/// Delete a chat and its messages
///
/// The assets and actions that the chat has produced are kept.
#[utoipa::path(
    delete, path = "/chats/{chat_id}", tag = "chats", operation_id = "delete_chat",
    params(ChatId),
    responses((status = 204, description = "It was deleted")),
)]
async fn delete(State(cx): State<Cx>, caller: Caller, Id(id): Id<ChatId>) -> Result<StatusCode> {
    chats::delete(&cx, &caller.owner, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Append to a chat
///
/// Concurrent appends lose nothing. The order is the order of arrival.
#[utoipa::path(
    post, path = "/chats/{chat_id}/messages", tag = "chats", operation_id = "append_to_chat",
    params(ChatId),
    responses((status = 201, body = Appended)),
)]
async fn append(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Id(id): Id<ChatId>,
    Json(input): Json<Append>,
) -> Result<(StatusCode, axum::Json<Appended>)> {
    let appended = chats::append(&cx, &caller.owner, &once, id, input).await?;
    Ok((StatusCode::CREATED, axum::Json(appended)))
}
