//! The routes of the watchdog.

use axum::extract::State;
use domain::watchdog::WatchdogSettings;
use shared::edge::extract::{Caller, Json, Query};
use shared::flows::page::{Page, PageQuery};
use shared::flows::watched::watchdog::{self, WatchdogAlertView, WatchdogView};
use shared::{Cx, Result};

shared::routes!(read, list_alerts, read_settings, change_settings);

/// Read what the watchdog sees
///
/// Every two hours it looks at the jobs, the actions and the watched schedules of the account. The first look that finds something wrong counts
/// it. The second one in a row says it, once. The end is said once.
#[utoipa::path(
    get, path = "/watchdog", tag = "watchdog", operation_id = "read_watchdog",
    responses((status = 200, body = WatchdogView)),
)]
async fn read(State(cx): State<Cx>, caller: Caller) -> Result<axum::Json<WatchdogView>> {
    watchdog::read(&cx, &caller.owner).await.map(axum::Json)
}

/// List what the watchdog has said, newest first
///
/// Alerts and recoveries of the last 35 days.
#[utoipa::path(
    get, path = "/watchdog/alerts", tag = "watchdog", operation_id = "list_watchdog_alerts",
    params(PageQuery),
    responses((status = 200, body = Page<WatchdogAlertView>)),
)]
async fn list_alerts(
    State(cx): State<Cx>,
    caller: Caller,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<Page<WatchdogAlertView>>> {
    watchdog::alerts(&cx, &caller.owner, &page).await.map(axum::Json)
}

/// Read the settings of the watchdog
///
/// Checks that are not named have their defaults.
#[utoipa::path(
    get, path = "/watchdog/settings", tag = "watchdog", operation_id = "read_watchdog_settings",
    responses((status = 200, body = WatchdogSettings)),
)]
async fn read_settings(State(cx): State<Cx>, caller: Caller) -> Result<axum::Json<WatchdogSettings>> {
    watchdog::settings(&cx, &caller.owner).await.map(axum::Json)
}

/// Replace the settings of the watchdog
///
/// A check can be switched off, or alert after 1 to 5 looks in a row. Checks that are not named have their defaults. The settings count
/// from the next look on.
#[utoipa::path(
    put, path = "/watchdog/settings", tag = "watchdog", operation_id = "replace_watchdog_settings",
    responses((status = 200, body = WatchdogSettings)),
)]
async fn change_settings(
    State(cx): State<Cx>,
    caller: Caller,
    Json(settings): Json<WatchdogSettings>,
) -> Result<axum::Json<WatchdogSettings>> {
    watchdog::change(&cx, &caller.owner, settings).await.map(axum::Json)
}
