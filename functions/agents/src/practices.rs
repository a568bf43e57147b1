//! The routes of practices.

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::ids::PracticeId;
use domain::practices::{
    CheckIn, NewCheckIn, NewPractice, PracticePatch, PracticeStatus, PracticeView, day_named,
};
use jiff::civil::Date;
use serde::Deserialize;
use shared::edge::extract::{Caller, Id, Ids, IfMatch, Json, Once, Query};
use shared::edge::respond::{Created, Tagged};
use shared::flows::page::{Page, PageQuery};
use shared::flows::practices::{self, AskedCheckIns, CheckedIn};
use shared::{Cx, Result};
use utoipa::IntoParams;

shared::routes!(create, list, read, change, delete, check_in, list_check_ins, read_check_in, delete_check_in);

/// Create a practice
///
/// A practice is a habit that a person tracks. 409 `too_many_practices` if the account has 100, with archived ones.
#[utoipa::path(
    post, path = "/practices", tag = "practices", operation_id = "create_practice",
    responses((status = 201, body = PracticeView)),
)]
async fn create(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Json(input): Json<NewPractice>,
) -> Result<Created<PracticeView>> {
    let practice = practices::create(&cx, &caller.owner, &once, input).await?;
    let location = format!("/practices/{}", practice.practice_id);
    Ok(Created { location, version: practice.version, body: practice })
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Filter {
    /// Only practices with this status.
    status: Option<PracticeStatus>,
}

/// List practices, newest first
///
/// With their streaks and the last 14 days.
#[utoipa::path(
    get, path = "/practices", tag = "practices", operation_id = "list_practices",
    params(PageQuery, Filter),
    responses((status = 200, body = Page<PracticeView>)),
)]
async fn list(
    State(cx): State<Cx>,
    caller: Caller,
    Query(filter): Query<Filter>,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<Page<PracticeView>>> {
    practices::list(&cx, &caller.owner, filter.status, &page).await.map(axum::Json)
}

/// Read a practice
///
/// With its streaks, today, and the last 14 days, in the zone of the practice. The streaks count all check-ins by the target and the
/// zone that the practice has now.
#[utoipa::path(
    get, path = "/practices/{practice_id}", tag = "practices", operation_id = "read_practice",
    params(PracticeId),
    responses((status = 200, body = PracticeView)),
)]
async fn read(State(cx): State<Cx>, caller: Caller, Id(id): Id<PracticeId>) -> Result<Tagged<PracticeView>> {
    let practice = practices::read(&cx, &caller.owner, id).await?;
    Ok(Tagged { version: practice.version, body: practice })
}

/// Change or archive a practice
///
/// Omitted fields keep their values. A new target or zone applies to the whole history.
#[utoipa::path(
    patch, path = "/practices/{practice_id}", tag = "practices", operation_id = "change_practice",
    params(PracticeId, IfMatch),
    responses((status = 200, body = PracticeView)),
)]
async fn change(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<PracticeId>,
    if_match: Option<IfMatch>,
    Json(patch): Json<PracticePatch>,
) -> Result<Tagged<PracticeView>> {
    let practice = practices::change(&cx, &caller.owner, id, if_match, patch).await?;
    Ok(Tagged { version: practice.version, body: practice })
}

/// Delete a practice and all its check-ins
///
/// This can't be undone.
#[utoipa::path(
    delete, path = "/practices/{practice_id}", tag = "practices", operation_id = "delete_practice",
    params(PracticeId, IfMatch),
    responses((status = 204, description = "It was deleted")),
)]
async fn delete(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<PracticeId>,
    if_match: Option<IfMatch>,
) -> Result<StatusCode> {
    practices::delete(&cx, &caller.owner, id, if_match).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Check in
///
/// Says whether the practice was done on a day. There is one check-in a day: a later one replaces it, with its note. 409
/// `practice_archived` if the practice is archived.
#[utoipa::path(
    post, path = "/practices/{practice_id}/check-ins", tag = "practices", operation_id = "check_in",
    params(PracticeId),
    responses(
        (status = 201, body = CheckedIn, description = "It is the first one of its day."),
        (status = 200, body = CheckedIn, description = "It has replaced an earlier one of its day."),
    ),
)]
async fn check_in(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Id(id): Id<PracticeId>,
    Json(input): Json<NewCheckIn>,
) -> Result<Response> {
    let (checked, is_new) = practices::check_in(&cx, &caller.owner, &once, id, input).await?;
    if !is_new {
        return Ok(axum::Json(checked).into_response());
    }
    let location = format!("/practices/{id}/check-ins/{}", checked.check_in.date);
    let mut response = (StatusCode::CREATED, axum::Json(checked)).into_response();
    if let Ok(location) = HeaderValue::try_from(location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

/// List check-ins, newest first
#[utoipa::path(
    get, path = "/practices/{practice_id}/check-ins", tag = "practices", operation_id = "list_check_ins",
    params(PracticeId, AskedCheckIns, PageQuery),
    responses((status = 200, body = Page<CheckIn>)),
)]
async fn list_check_ins(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<PracticeId>,
    Query(asked): Query<AskedCheckIns>,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<Page<CheckIn>>> {
    practices::check_ins(&cx, &caller.owner, id, &asked, &page).await.map(axum::Json)
}

/// A day in a path.
struct Day(Date);

impl std::str::FromStr for Day {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        day_named(text).map(Self)
    }
}

/// Read the check-in of a day
#[utoipa::path(
    get, path = "/practices/{practice_id}/check-ins/{date}", tag = "practices", operation_id = "read_check_in",
    params(PracticeId, ("date" = String, Path, format = Date)),
    responses((status = 200, body = CheckIn)),
)]
async fn read_check_in(
    State(cx): State<Cx>,
    caller: Caller,
    Ids(id, Day(day)): Ids<PracticeId, Day>,
) -> Result<axum::Json<CheckIn>> {
    practices::read_check_in(&cx, &caller.owner, id, day).await.map(axum::Json)
}

/// Delete the check-in of a day
///
/// The day may be any day, however long ago.
#[utoipa::path(
    delete, path = "/practices/{practice_id}/check-ins/{date}", tag = "practices", operation_id = "delete_check_in",
    params(PracticeId, ("date" = String, Path, format = Date)),
    responses((status = 204, description = "It was deleted")),
)]
async fn delete_check_in(
    State(cx): State<Cx>,
    caller: Caller,
    Ids(id, Day(day)): Ids<PracticeId, Day>,
) -> Result<StatusCode> {
    practices::delete_check_in(&cx, &caller.owner, id, day).await?;
    Ok(StatusCode::NO_CONTENT)
}
