//! The routes of what a person wants to be told.

use axum::extract::State;
use domain::notices::Preferences;
use shared::edge::extract::{Caller, IfMatch, Json};
use shared::edge::respond::Tagged;
use shared::flows::notices::{self, PreferencesView};
use shared::{Cx, Result};

shared::routes!(read, replace);

/// Read what you are told
///
/// Who has changed nothing has the defaults.
#[utoipa::path(
    get, path = "/notifications", tag = "notices", operation_id = "read_notifications",
    responses((status = 200, body = PreferencesView)),
)]
async fn read(State(cx): State<Cx>, caller: Caller) -> Result<Tagged<PreferencesView>> {
    let found = notices::preferences(&cx, &caller.owner).await?;
    Ok(Tagged { version: found.version, body: found })
}

/// Replace what you are told
///
/// The first notice about something is sent at once, and later ones about the same thing at most every six hours, with a count. "It is right
/// again" is sent once. What comes in quiet hours or during a snooze is sent afterwards. What waits is planned again with the new rules.
#[utoipa::path(
    put, path = "/notifications", tag = "notices", operation_id = "replace_notifications",
    params(IfMatch),
    responses((status = 200, body = PreferencesView)),
)]
async fn replace(
    State(cx): State<Cx>,
    caller: Caller,
    if_match: Option<IfMatch>,
    Json(preferences): Json<Preferences>,
) -> Result<Tagged<PreferencesView>> {
    let found = notices::replace_preferences(&cx, &caller.owner, if_match, preferences).await?;
    Ok(Tagged { version: found.version, body: found })
}
