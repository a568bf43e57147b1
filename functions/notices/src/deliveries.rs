//! The routes of deliveries, and of the outbox.

use axum::extract::State;
use axum::http::StatusCode;
use domain::ids::DeliveryId;
use domain::notices::deliveries::DeliveryState;
use serde::Deserialize;
use shared::edge::extract::{Caller, Id, Once, Query};
use shared::flows::notices::deliveries::{self, DeliveryView};
use shared::flows::page::{Page, PageQuery};
use shared::store::notices::Mail;
use shared::{Cx, Result};
use utoipa::IntoParams;

shared::routes!(list, read, retry, outbox);

/// Which deliveries to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
struct Filter {
    /// Only deliveries in this state.
    state: Option<DeliveryState>,
}

/// List the deliveries, newest first
///
/// A delivery is one message to one channel. It is tried ten times within three days. It may arrive twice, with the same id; it is kept for
/// 30 days.
#[utoipa::path(
    get, path = "/deliveries", tag = "notices", operation_id = "list_deliveries",
    params(Filter, PageQuery),
    responses((status = 200, body = Page<DeliveryView>)),
)]
async fn list(
    State(cx): State<Cx>,
    caller: Caller,
    Query(filter): Query<Filter>,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<Page<DeliveryView>>> {
    deliveries::list(&cx, &caller.owner, filter.state, &page).await.map(axum::Json)
}

/// Read a delivery
///
/// `error` says why the newest try failed, and `next_at` when the next one begins.
#[utoipa::path(
    get, path = "/deliveries/{delivery_id}", tag = "notices", operation_id = "read_delivery",
    params(DeliveryId),
    responses((status = 200, body = DeliveryView)),
)]
async fn read(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<DeliveryId>,
) -> Result<axum::Json<DeliveryView>> {
    deliveries::read(&cx, &caller.owner, id).await.map(axum::Json)
}

/// Try a delivery again
///
/// Only one that is `undelivered`. It has all its tries again.
#[utoipa::path(
    post, path = "/deliveries/{delivery_id}/retry", tag = "notices", operation_id = "retry_delivery",
    params(DeliveryId),
    responses((status = 202, body = DeliveryView)),
)]
async fn retry(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<DeliveryId>,
    once: Once,
) -> Result<(StatusCode, axum::Json<DeliveryView>)> {
    let delivery = deliveries::retry(&cx, &caller.owner, &once, id).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(delivery)))
}

/// List the e-mails of the outbox, newest first
///
/// On one machine, e-mails are not sent but stored here, as the request that Amazon SES would get. They are kept for seven days. On AWS,
/// the list is empty.
#[utoipa::path(
    get, path = "/outbox", tag = "notices", operation_id = "list_outbox",
    params(PageQuery),
    responses((status = 200, body = Page<Mail>)),
)]
async fn outbox(
    State(cx): State<Cx>,
    caller: Caller,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<Page<Mail>>> {
    deliveries::outbox(&cx, &caller.owner, &page).await.map(axum::Json)
}
