//! The export of an account.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse};
use domain::ids::ExportId;
use shared::edge::extract::{Caller, Id, Once};
use shared::flows::accounts::export::{self, ExportView};
use shared::{Cx, Result};

shared::routes!(request, read);

/// Export the account
///
/// Writes everything that the account has into one archive. API keys, provider keys and secrets are left out. Read the export until it
/// is `done`; then it has the address of the archive. An export is kept for 30 days.
#[utoipa::path(
    post, path = "/account/export", tag = "account", operation_id = "export_account",
    responses((status = 202, body = ExportView)),
)]
async fn request(State(cx): State<Cx>, caller: Caller, once: Once) -> Result<impl IntoResponse> {
    let view = export::request(&cx, &caller.owner, &once).await?;
    let location = [(header::LOCATION, format!("/account/exports/{}", view.export.export_id))];
    Ok((StatusCode::ACCEPTED, AppendHeaders(location), axum::Json(view)))
}

/// Read an export
///
/// While the export is `done`, each answer has a new `url`, which is valid for 15 minutes.
#[utoipa::path(
    get, path = "/account/exports/{export_id}", tag = "account", operation_id = "read_export",
    params(ExportId),
    responses((status = 200, body = ExportView)),
)]
async fn read(State(cx): State<Cx>, caller: Caller, Id(id): Id<ExportId>) -> Result<axum::Json<ExportView>> {
    export::read(&cx, &caller.owner, id).await.map(axum::Json)
}
