//! The routes of the account itself and of its limits.

use axum::extract::State;
use domain::accounts::profile::AccountPatch;
use shared::edge::extract::{Caller, IfMatch, Json};
use shared::edge::respond::Tagged;
use shared::flows::accounts::limits::{self, LimitsView};
use shared::flows::accounts::profile::{self, AccountView};
use shared::{Cx, Result};

shared::routes!(read, change, limits);

/// Read the account
///
/// An owner who has changed nothing has the defaults.
#[utoipa::path(
    get, path = "/account", tag = "account", operation_id = "read_account",
    responses((status = 200, body = AccountView)),
)]
async fn read(State(cx): State<Cx>, caller: Caller) -> Result<Tagged<AccountView>> {
    let account = profile::read(&cx, &caller.owner).await?;
    Ok(Tagged { version: account.version, body: account })
}

/// Change the account
///
/// Omitted fields keep their values. `plans` in `GET /limits` are the plans that may be chosen.
#[utoipa::path(
    patch, path = "/account", tag = "account", operation_id = "change_account",
    params(IfMatch),
    responses((status = 200, body = AccountView)),
)]
async fn change(
    State(cx): State<Cx>,
    caller: Caller,
    if_match: Option<IfMatch>,
    Json(patch): Json<AccountPatch>,
) -> Result<Tagged<AccountView>> {
    let account = profile::change(&cx, &caller.owner, if_match, patch).await?;
    Ok(Tagged { version: account.version, body: account })
}

/// Read all limits
///
/// The plan and what it includes, the ceilings of costs, the largest inputs, and the features of the deployment.
#[utoipa::path(
    get, path = "/limits", tag = "account", operation_id = "read_limits",
    responses((status = 200, body = LimitsView)),
)]
async fn limits(State(cx): State<Cx>, caller: Caller) -> Result<axum::Json<LimitsView>> {
    limits::read(&cx, &caller.owner).await.map(axum::Json)
}
