//! The routes of channels.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use domain::ids::ChannelId;
use shared::edge::extract::{Caller, Id, Json, Once};
use shared::edge::respond::secret_once;
use shared::flows::notices::channels::{
    self, ChannelList, ChannelPatch, ChannelView, ChannelWithSecret, GivenCode, NewChannel,
};
use shared::flows::notices::deliveries::{self, DeliveryView};
use shared::{Cx, Result};

shared::routes!(create, list, change, delete, test, confirm, send_another_code);

/// Add a channel
///
/// Notices are sent to each channel that is enabled. The address of a webhook, Slack or Discord, the topic of ntfy, tokens and passwords
/// are secrets: they are stored encrypted, and no answer contains them. A webhook is signed as Standard Webhooks describe it. `secret` is in this
/// answer only: a repeated call with the same `Idempotency-Key` creates no second channel, and its answer has no `secret`. An e-mail
/// address, also of `smtp`, is `unconfirmed` until its reader gives back the code that is sent there.
#[utoipa::path(
    post, path = "/notifications/channels", tag = "notices", operation_id = "create_channel",
    responses((status = 201, body = ChannelWithSecret)),
)]
async fn create(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Json(channel): Json<NewChannel>,
) -> Result<impl IntoResponse> {
    let created = channels::create(&cx, &caller.owner, &once, channel).await?;
    let location = format!("/notifications/channels/{}", created.channel.channel_id);
    secret_once(StatusCode::CREATED, Some(location), &created.channel, &created)
}

/// List the channels, oldest first
///
/// `target` shows where a channel leads, without what is secret.
#[utoipa::path(
    get, path = "/notifications/channels", tag = "notices", operation_id = "list_channels",
    responses((status = 200, body = ChannelList)),
)]
async fn list(State(cx): State<Cx>, caller: Caller) -> Result<axum::Json<ChannelList>> {
    channels::list(&cx, &caller.owner).await.map(axum::Json)
}

/// Change a channel
///
/// Switch it on or off, or give a webhook a new secret. `secret` is in this answer only.
#[utoipa::path(
    patch, path = "/notifications/channels/{channel_id}", tag = "notices", operation_id = "change_channel",
    params(ChannelId),
    responses((status = 200, body = ChannelWithSecret)),
)]
async fn change(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<ChannelId>,
    once: Once,
    Json(patch): Json<ChannelPatch>,
) -> Result<impl IntoResponse> {
    let changed = channels::change(&cx, &caller.owner, &once, id, patch).await?;
    secret_once(StatusCode::OK, None, &changed.channel, &changed)
}

/// Delete a channel
///
/// What is under way to it is shown as undelivered.
#[utoipa::path(
    delete, path = "/notifications/channels/{channel_id}", tag = "notices", operation_id = "delete_channel",
    params(ChannelId),
    responses((status = 204, description = "The channel is deleted")),
)]
async fn delete(State(cx): State<Cx>, caller: Caller, Id(id): Id<ChannelId>) -> Result<StatusCode> {
    channels::delete(&cx, &caller.owner, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Test a channel
///
/// Sends a message that says that it is a test. Read the delivery to see what came of it.
#[utoipa::path(
    post, path = "/notifications/channels/{channel_id}/test", tag = "notices", operation_id = "test_channel",
    params(ChannelId),
    responses((status = 202, body = DeliveryView)),
)]
async fn test(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<ChannelId>,
    once: Once,
) -> Result<(StatusCode, axum::Json<DeliveryView>)> {
    let delivery = deliveries::test_channel(&cx, &caller.owner, &once, id).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(delivery)))
}

/// Confirm an e-mail address
///
/// With the code that was sent there. Notices are sent to it from then on. A code works for one hour and ends after five wrong guesses.
#[utoipa::path(
    post, path = "/notifications/channels/{channel_id}/confirm", tag = "notices", operation_id = "confirm_channel",
    params(ChannelId),
    responses((status = 200, body = ChannelView)),
)]
async fn confirm(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<ChannelId>,
    once: Once,
    Json(given): Json<GivenCode>,
) -> Result<axum::Json<ChannelView>> {
    channels::confirm(&cx, &caller.owner, &once, id, &given).await.map(axum::Json)
}

/// Send another code
///
/// The code before it no longer works. At most three codes go to one address in 24 hours, and at most ten from one account.
#[utoipa::path(
    post, path = "/notifications/channels/{channel_id}/code", tag = "notices", operation_id = "send_channel_code",
    params(ChannelId),
    responses((status = 202, body = ChannelView)),
)]
async fn send_another_code(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<ChannelId>,
    once: Once,
) -> Result<(StatusCode, axum::Json<ChannelView>)> {
    let channel = channels::send_another_code(&cx, &caller.owner, &once, id).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(channel)))
}
