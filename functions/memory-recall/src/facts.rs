//! What a person does with facts and with the long-term memory.

use axum::extract::State;
use axum::http::StatusCode;
use domain::ids::FactId;
use shared::edge::extract::{Caller, Id, IfMatch, Json};
use shared::edge::respond::Tagged;
use shared::flows::memory::facts::{self, Correction, NewLongTerm};
use shared::flows::memory::shown::{FactView, LongTermView};
use shared::{Cx, Result};

shared::routes!(correct, confirm, forget, write_long_term);

/// Correct a fact
///
/// The old one stays as history: it says until when it was believed, and nothing uses it as true any more. 409 `already_corrected` if
/// it was corrected before.
#[utoipa::path(
    post, path = "/memory/facts/{fact_id}/correct", tag = "memory", operation_id = "correct_fact",
    params(FactId),
    responses((status = 200, body = FactView, description = "The fact that is true now")),
)]
async fn correct(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<FactId>,
    Json(input): Json<Correction>,
) -> Result<axum::Json<FactView>> {
    facts::correct(&cx, &caller.owner, id, input).await.map(axum::Json)
}

/// Confirm a fact
///
/// What was learned from an outside session waits for this: until then, a search finds it, and nothing else uses it. 409
/// `not_unconfirmed` if it does not wait.
#[utoipa::path(
    post, path = "/memory/facts/{fact_id}/confirm", tag = "memory", operation_id = "confirm_fact",
    params(FactId),
    responses((status = 200, body = FactView)),
)]
async fn confirm(State(cx): State<Cx>, caller: Caller, Id(id): Id<FactId>) -> Result<axum::Json<FactView>> {
    facts::confirm(&cx, &caller.owner, id).await.map(axum::Json)
}

/// Delete a fact
///
/// Everywhere: its day, the long-term memory with its versions, summaries, the search. The messages that it came from stay in their
/// conversations, and the search of the memory does not find them any more. It is not learned again.
#[utoipa::path(
    delete, path = "/memory/facts/{fact_id}", tag = "memory", operation_id = "delete_fact",
    params(FactId),
    responses((status = 204, description = "It was deleted")),
)]
async fn forget(State(cx): State<Cx>, caller: Caller, Id(id): Id<FactId>) -> Result<StatusCode> {
    facts::forget(&cx, &caller.owner, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Replace the long-term memory
///
/// Lines that stay keep the facts that they come from. Every other line becomes a fact of the person. No clean-up changes a section that
/// the person has written.
#[utoipa::path(
    put, path = "/memory/long-term", tag = "memory", operation_id = "replace_long_term_memory",
    params(IfMatch),
    responses((status = 200, body = LongTermView)),
)]
async fn write_long_term(
    State(cx): State<Cx>,
    caller: Caller,
    if_match: Option<IfMatch>,
    Json(input): Json<NewLongTerm>,
) -> Result<Tagged<LongTermView>> {
    let view = facts::write_long_term(&cx, &caller.owner, if_match, input).await?;
    Ok(Tagged { version: view.version, body: view })
}
