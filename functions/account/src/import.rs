//! The import of an account.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Response};
use shared::edge::extract::{Caller, Json, Once};
use shared::edge::respond::json_or_none;
use shared::flows::accounts::import::{self, AccountImportView, NewAccountImport};
use shared::{Cx, Result};

shared::routes!(request, read);

/// Import an account
///
/// Makes the archive of an export the contents of this account, which must be empty. Upload the archive to `upload.url` with
/// `upload.headers`; it is looked for once a minute, for an hour. Nothing is written unless all of it is valid. Actions must be
/// approved again before they run. With the format `openclaw`, the archive is a zip of OpenClaw's files, or of `GET /memory/export`:
/// its memory, sessions, cards and jobs become a part of the account. The same archive again changes nothing.
#[utoipa::path(
    post, path = "/account/import", tag = "account", operation_id = "import_account",
    responses((status = 202, body = AccountImportView)),
)]
async fn request(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Json(input): Json<NewAccountImport>,
) -> Result<impl IntoResponse> {
    let view = import::request(&cx, &caller.owner, &once, &input).await?;
    Ok((StatusCode::ACCEPTED, AppendHeaders([(header::LOCATION, "/account/import")]), axum::Json(view)))
}

/// Read the import of the account
///
/// The newest one, if there were several.
#[utoipa::path(
    get, path = "/account/import", tag = "account", operation_id = "read_account_import",
    responses(
        (status = 200, body = AccountImportView),
        (status = 204, description = "Nothing was imported"),
    ),
)]
async fn read(State(cx): State<Cx>, caller: Caller) -> Result<Response> {
    import::read(&cx, &caller.owner).await.map(json_or_none)
}
