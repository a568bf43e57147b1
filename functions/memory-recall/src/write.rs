//! What adds to the memory: cards, messages of outside sessions, and the synchronisation and the clean-up by hand.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use domain::ids::{CardId, TidyId};
use domain::log::SessionId;
use domain::memory::Card;
use shared::edge::extract::{Caller, Id, Json, Once};
use shared::flows::memory::cards::{self, NewCard};
use shared::flows::memory::outside::{self, Ingest, Ingested};
use shared::flows::memory::sync::{self, Synced};
use shared::flows::memory::tidy::{self, TidyView};
use shared::runtime::function::Invocation;
use shared::{Cx, Result};

shared::routes!(add_card, delete_card, ingest, delete_session, sync_now, tidy_now, roll_back);

/// Add a card
///
/// The result of work that was delegated: what should be reached, what was done, what is left.
#[utoipa::path(
    post, path = "/memory/cards", tag = "memory", operation_id = "create_memory_card",
    responses((status = 201, body = Card)),
)]
async fn add_card(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Json(input): Json<NewCard>,
) -> Result<Response> {
    let card = cards::add(&cx, &caller.owner, &once, input).await?;
    Ok((StatusCode::CREATED, axum::Json(card)).into_response())
}

/// Delete a card
///
/// The search does not find it any more. A later run of the same action in the same hour writes its card again.
#[utoipa::path(
    delete, path = "/memory/cards/{card_id}", tag = "memory", operation_id = "delete_memory_card",
    params(CardId),
    responses((status = 204, description = "It was deleted")),
)]
async fn delete_card(State(cx): State<Cx>, caller: Caller, Id(id): Id<CardId>) -> Result<StatusCode> {
    cards::delete(&cx, &caller.owner, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Add messages of a session that took place elsewhere
///
/// Such as a session with a coding assistant. A message is known by its `id` within the session: sending it again changes nothing. With
/// `parent_id`, messages are a tree, and the branch of the newest message counts. What is learned from such a session waits until
/// somebody confirms it. 409 `other_namespace` if the session has another namespace.
#[utoipa::path(
    post, path = "/memory/sessions/{session_id}/messages", tag = "memory", operation_id = "ingest_messages",
    params(("session_id" = String, Path, description = "A name of 1 to 128 letters, digits, `-`, `_` and `.`")),
    responses((status = 200, body = Ingested)),
)]
async fn ingest(
    State(cx): State<Cx>,
    caller: Caller,
    Id(session): Id<SessionId>,
    Json(input): Json<Ingest>,
) -> Result<axum::Json<Ingested>> {
    outside::ingest(&cx, &caller.owner, &session, input).await.map(axum::Json)
}

/// Delete a session that took place elsewhere
///
/// With its messages. Facts that were learned from it stay: delete them one by one.
#[utoipa::path(
    delete, path = "/memory/sessions/{session_id}", tag = "memory", operation_id = "delete_session",
    params(("session_id" = String, Path, description = "The name of the session")),
    responses((status = 204, description = "It was deleted")),
)]
async fn delete_session(
    State(cx): State<Cx>,
    caller: Caller,
    Id(session): Id<SessionId>,
) -> Result<StatusCode> {
    outside::delete(&cx, &caller.owner, &session).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Synchronise the memory now
///
/// Learns from the conversations that were active since the last synchronisation, with at most one call of a model for each. By itself,
/// this happens at 23:00 in the account's time zone. 409 `memory_busy` while the memory is being brought up to date.
#[utoipa::path(
    post, path = "/memory/sync", tag = "memory", operation_id = "sync_memory",
    responses((status = 200, body = Synced)),
)]
async fn sync_now(
    State(cx): State<Cx>,
    caller: Caller,
    invocation: Invocation,
) -> Result<axum::Json<Synced>> {
    sync::now(&cx, &caller.owner, invocation.deadline).await.map(axum::Json)
}

/// Tidy the memory now
///
/// Takes what is not archived into the long-term memory, with one call of a model. By itself, this happens on Sunday at 22:00 in the
/// account's time zone. 204 if there is nothing to tidy. 409 `memory_busy` while the memory is being brought up to date.
#[utoipa::path(
    post, path = "/memory/tidy", tag = "memory", operation_id = "tidy_memory",
    responses((status = 200, body = TidyView), (status = 204, description = "There was nothing to tidy")),
)]
async fn tidy_now(State(cx): State<Cx>, caller: Caller, invocation: Invocation) -> Result<Response> {
    Ok(match tidy::now(&cx, &caller.owner, invocation.deadline).await? {
        Some(tidied) => axum::Json(tidied).into_response(),
        None => StatusCode::NO_CONTENT.into_response(),
    })
}

/// Undo a clean-up
///
/// The long-term memory becomes what it was before it, without what was deleted or corrected since. The days of the week leave the archive.
/// 409 `later_tidying` if a later one was not undone, 409 `already_rolled_back`, or 409 `version_gone`.
#[utoipa::path(
    post, path = "/memory/tidies/{tidy_id}/rollback", tag = "memory", operation_id = "roll_back_tidy",
    params(TidyId),
    responses((status = 200, body = TidyView)),
)]
async fn roll_back(State(cx): State<Cx>, caller: Caller, Id(id): Id<TidyId>) -> Result<axum::Json<TidyView>> {
    tidy::roll_back(&cx, &caller.owner, id).await.map(axum::Json)
}
