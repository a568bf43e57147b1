//! The deletion of an account, and its receipt.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse};
use domain::accounts::deletion::Receipt;
use domain::ids::ReceiptId;
use serde::Deserialize;
use shared::edge::extract::{Caller, Id, Query};
use shared::flows::accounts::deletion::{self, AcceptedDeletion};
use shared::{Cx, Result};
use utoipa::IntoParams;

shared::routes!(delete, receipt);

/// How the caller confirms a deletion.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default)]
struct Confirmation {
    /// The `owner` of `GET /account`
    #[param(required)]
    confirm: String,
}

/// Delete the account
///
/// This removes everything that the account has, with all versions, and can't be undone. From then on every other call is
/// refused with 410 and the code `account_deleted`. Removal begins at once. Eighteen minutes later, when work that had begun
/// before has ended, everything is removed again, the API keys included, and the account is searched for what is left. The
/// receipt lists what was removed. It needs no credentials and can be read for 90 days. Who then signs in again has an empty
/// account.
///
/// What the account has spent on this day and in this month, and the number of its requests in this month, stay until the day
/// or the month ends. So a new account of the same owner does not have the day's ceiling and the month's quota again. The
/// receipt names these counts in `kept`.
///
/// The receipt names in `copies` the places that still have copies, and until when. On AWS these are the backups of the table.
/// On one machine, the files are erased before the deletion is done.
#[utoipa::path(
    delete, path = "/account", tag = "account", operation_id = "delete_account",
    params(Confirmation),
    responses((status = 202, body = AcceptedDeletion)),
)]
async fn delete(
    State(cx): State<Cx>,
    caller: Caller,
    Query(confirmation): Query<Confirmation>,
) -> Result<impl IntoResponse> {
    let accepted = deletion::request(&cx, &caller.owner, &confirmation.confirm).await?;
    let location = [(header::LOCATION, accepted.receipt.clone())];
    Ok((StatusCode::ACCEPTED, AppendHeaders(location), axum::Json(accepted)))
}

/// Read the receipt of a deletion
///
/// Whoever knows the id may read the receipt. It has no data of the person.
#[utoipa::path(
    get, path = "/receipts/{receipt_id}", tag = "account", operation_id = "read_receipt", security(()),
    params(ReceiptId),
    responses((status = 200, body = Receipt)),
)]
async fn receipt(State(cx): State<Cx>, Id(id): Id<ReceiptId>) -> Result<axum::Json<Receipt>> {
    deletion::receipt(&cx, id).await.map(axum::Json)
}
