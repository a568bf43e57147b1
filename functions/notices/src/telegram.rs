//! The webhook that Telegram calls with replies to the messages of a bot.

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use serde_json::Value;
use shared::edge::extract::Json;
use shared::flows::answers::replies;
use shared::{Cx, Result};

shared::routes!(receive);

/// The header with the password of a webhook.
const PASSWORD: &str = "x-telegram-bot-api-secret-token";

/// Receive a reply from Telegram
///
/// Telegram calls this address when somebody writes to the bot of a channel with `replies`. The token of the address and the header
/// `X-Telegram-Bot-Api-Secret-Token` are the credentials. A reply of the channel's person to a message of the bot answers, pauses or corrects, like
/// the page behind the link of the message. Everything else is ignored.
#[utoipa::path(
    post, path = "/hooks/telegram/{token}", tag = "notices", operation_id = "receive_telegram_update", security(()),
    params(
        ("token" = String, Path, description = "From the address that the platform has given to Telegram", max_length = 1_000),
        ("X-Telegram-Bot-Api-Secret-Token" = Option<String>, Header, description = "The password that the platform has given to Telegram"),
    ),
    responses((status = 204, description = "It was received")),
)]
async fn receive(
    State(cx): State<Cx>,
    Path(token): Path<String>,
    headers: HeaderMap,
    Json(update): Json<Value>,
) -> Result<StatusCode> {
    let password = headers.get(PASSWORD).and_then(|value| value.to_str().ok());
    replies::received(&cx, &token, password, update).await?;
    Ok(StatusCode::NO_CONTENT)
}
