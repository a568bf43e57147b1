//! The route of the costs.

use axum::extract::State;
use domain::ceilings::{Ceiling, CeilingOf};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use shared::edge::extract::{Caller, Query};
use shared::flows::accounts::usage::{self, MonthUsage};
use shared::money::ceilings;
use shared::store::accounts::spend::Spend;
use shared::{Cx, Result};
use utoipa::{IntoParams, ToSchema};

shared::routes!(read);

/// The cost of a day, in micro-dollars.
#[derive(Serialize, ToSchema)]
struct UsageView {
    /// The day, in UTC.
    #[schema(value_type = String, format = Date, example = "2026-11-21")]
    date: Date,
    #[serde(flatten)]
    spend: Spend,
    /// The ceiling of this day, in micro-dollars: that of the account, and what people have added for this day.
    ceiling_micros: i64,
    /// The usage of a month, if the query names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    month: Option<MonthUsage>,
}

/// What to read.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct UsageQuery {
    /// A month, such as `2026-11`. Then the answer also has the usage of this month.
    month: Option<String>,
}

/// Read today's costs, and the usage of a month
///
/// The sum of all model calls since midnight UTC, the reservations for calls in progress, and the limit. With `month`, also
/// what models have used in that month: in total, by day, by agent, by action and by provider and model. Usage is kept for 400 days.
#[utoipa::path(
    get, path = "/usage", tag = "account", operation_id = "read_usage",
    params(UsageQuery),
    responses((status = 200, body = UsageView)),
)]
async fn read(
    State(cx): State<Cx>,
    caller: Caller,
    Query(query): Query<UsageQuery>,
) -> Result<axum::Json<UsageView>> {
    let month = match query.month {
        Some(month) => Some(usage::of_month(&cx, &caller.owner, usage::month(&month)?).await?),
        None => None,
    };
    let now = cx.clock.now();
    let spend = cx.store.spend(&caller.owner, now).await?;
    let account = cx.store.account(&caller.owner).await?;
    let (day, _) = ceilings::of_account(&cx, &account.value);
    let day = Ceiling { of: CeilingOf::Day, micros: day };
    let ceiling_micros = ceilings::raised(&cx, day, spend.raised_micros);
    let date = now.to_zoned_datetime(TimeZone::UTC).date();
    Ok(axum::Json(UsageView { date, spend, ceiling_micros, month }))
}
