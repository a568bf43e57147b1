//! The route of the costs.

use axum::extract::State;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Serialize;
use shared::extract::Caller;
use shared::respond::Problems;
use shared::store::spend::Spend;
use shared::{Cx, Result};
use utoipa::ToSchema;

shared::routes!(usage);

/// The cost of a day, in micro-dollars.
#[derive(Serialize, ToSchema)]
struct UsageView {
    /// The day, in UTC.
    #[schema(value_type = String, format = Date, example = "2026-11-21")]
    date: Date,
    #[serde(flatten)]
    spend: Spend,
    /// The daily limit, in micro-dollars.
    ceiling_micros: i64,
}

/// Read today's costs
///
/// The sum of all model calls since midnight UTC, the reservations for calls in progress, and the limit.
#[utoipa::path(
    get, path = "/usage", tag = "account", operation_id = "read_usage",
    responses((status = 200, body = UsageView), Problems),
)]
async fn usage(State(cx): State<Cx>, caller: Caller) -> Result<axum::Json<UsageView>> {
    let now = cx.clock.now();
    let spend = cx.store.spend(&caller.owner, now).await?;
    let date = now.to_zoned(TimeZone::UTC).date();
    Ok(axum::Json(UsageView { date, spend, ceiling_micros: cx.config.budget.day_micros }))
}
