//! The address in the header `List-Unsubscribe` of an e-mail: its reader, who may have no account, wants no more of them.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Redirect;
use shared::flows::notices::channels;
use shared::{Cx, Result};

shared::routes!(unsubscribe, settings);

/// Unsubscribe from e-mails
///
/// Mail programs call this address when their reader unsubscribes with one click (RFC 8058). The token of the e-mail is the only
/// credential. The channel is suspended. Its person sees that, is told through the other channels, and may switch it on again. The body
/// has no meaning.
#[utoipa::path(
    post, path = "/unsubscribe/{token}", tag = "notices", operation_id = "unsubscribe_channel", security(()),
    params(("token" = String, Path, description = "From the header `List-Unsubscribe` of an e-mail", max_length = 1_000)),
    responses((status = 204, description = "No more e-mails are sent there")),
)]
async fn unsubscribe(State(cx): State<Cx>, Path(token): Path<String>) -> Result<StatusCode> {
    channels::unsubscribe(&cx, &token).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Go to the settings of notices
///
/// For readers whose mail program opens the address of `List-Unsubscribe` as a page. It changes nothing.
#[utoipa::path(
    get, path = "/unsubscribe/{token}", tag = "notices", operation_id = "open_settings", security(()),
    params(("token" = String, Path, description = "From the header `List-Unsubscribe` of an e-mail", max_length = 1_000)),
    responses((status = 303, description = "To the page of the console", headers(("Location" = String, description = "The page")))),
)]
async fn settings() -> Redirect {
    // Relative, because the function does not know under which address it is reached.
    Redirect::to("../#/notices")
}
