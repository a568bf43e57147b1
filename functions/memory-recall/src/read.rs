//! What can be read: days, weeks, the long-term memory, the archive, cards, and the search. With `Accept: text/markdown`, the answer is
//! Markdown.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use domain::memory::{Card, markdown};
use domain::practices::day_named;
use domain::validate::FieldErrors;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use shared::edge::extract::{Caller, Id, Query};
use shared::edge::respond::json_or_none;
use shared::flows::memory::health::{self, Health};
use shared::flows::memory::search::{self, Asked, Found};
use shared::flows::memory::shown::{self, ArchiveView, DayView, Days, LongTermView, WeekView};
use shared::flows::memory::take;
use shared::flows::memory::tidy::{self, TidyView};
use shared::flows::memory::{cards, facts};
use shared::{Cx, Error, Result};
use utoipa::{IntoParams, ToSchema};

shared::routes!(
    days,
    day,
    long_term,
    week,
    archive,
    list_cards,
    search_memory,
    tidies,
    read_fact,
    read_health,
    export_memory
);

/// Whether a client prefers Markdown.
fn wants_markdown(headers: &HeaderMap) -> bool {
    headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).is_some_and(|accept| {
        accept.split(',').any(|one| one.split(';').next().is_some_and(|kind| kind.trim() == "text/markdown"))
    })
}

fn as_markdown(text: String) -> Response {
    let mut response = text.into_response();
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("text/markdown; charset=utf-8"));
    response
}

/// List the days of the memory
///
/// The days that are not archived yet, newest first, and when the memory was brought up to date.
#[utoipa::path(
    get, path = "/memory/days", tag = "memory", operation_id = "list_memory_days",
    responses((status = 200, body = Days)),
)]
async fn days(State(cx): State<Cx>, caller: Caller) -> Result<axum::Json<Days>> {
    shown::days(&cx, &caller.owner).await.map(axum::Json)
}

/// Read a day of the memory
///
/// What each conversation of the day has taught, archived or not. A day that has taught nothing has no blocks. As Markdown, it does not exist (404).
#[utoipa::path(
    get, path = "/memory/days/{date}", tag = "memory", operation_id = "read_memory_day",
    params(("date" = String, Path, format = Date)),
    responses((status = 200, content((DayView = "application/json"), (String = "text/markdown")))),
)]
async fn day(
    State(cx): State<Cx>,
    caller: Caller,
    Id(Day(date)): Id<Day>,
    headers: HeaderMap,
) -> Result<Response> {
    if wants_markdown(&headers) {
        return shown::day_markdown(&cx, &caller.owner, date).await.map(as_markdown);
    }
    Ok(axum::Json(shown::day(&cx, &caller.owner, date).await?).into_response())
}

/// Read the long-term memory
///
/// The empty one if nothing was ever written.
#[utoipa::path(
    get, path = "/memory/long-term", tag = "memory", operation_id = "read_long_term_memory",
    responses((status = 200, content((LongTermView = "application/json"), (String = "text/markdown")), headers(("ETag" = String, description = "The version, for `If-Match`")))),
)]
async fn long_term(State(cx): State<Cx>, caller: Caller, headers: HeaderMap) -> Result<Response> {
    let view = shown::long_term(&cx, &caller.owner).await?;
    let tag = HeaderValue::try_from(format!("\"{}\"", view.version)).ok();
    let mut response =
        if wants_markdown(&headers) { as_markdown(view.markdown) } else { axum::Json(view).into_response() };
    if let Some(tag) = tag {
        response.headers_mut().insert(header::ETAG, tag);
    }
    Ok(response)
}

/// Read the summary of a week
///
/// `monday` is the Monday that the week begins with.
#[utoipa::path(
    get, path = "/memory/weeks/{monday}", tag = "memory", operation_id = "read_memory_week",
    params(("monday" = String, Path, format = Date)),
    responses(
        (status = 200, content((WeekView = "application/json"), (String = "text/markdown"))),
        (status = 204, description = "The week has no summary. As Markdown, it does not exist (404)"),
    ),
)]
async fn week(
    State(cx): State<Cx>,
    caller: Caller,
    Id(Day(monday)): Id<Day>,
    headers: HeaderMap,
) -> Result<Response> {
    let week = shown::week(&cx, &caller.owner, monday).await?;
    if wants_markdown(&headers) {
        let (week, _) = week.ok_or(Error::NotFound("summary of this week"))?;
        return Ok(as_markdown(markdown::week(&week)));
    }
    Ok(json_or_none(week.map(|(_, view)| view)))
}

/// Read the archive of a year
///
/// The archived days and the weeks with a summary. `GET /memory/days/{date}` and `GET /memory/weeks/{monday}` read them.
#[utoipa::path(
    get, path = "/memory/archive/{year}", tag = "memory", operation_id = "read_memory_archive",
    params(("year" = i16, Path)),
    responses((status = 200, body = ArchiveView)),
)]
async fn archive(
    State(cx): State<Cx>,
    caller: Caller,
    Id(Year(year)): Id<Year>,
) -> Result<axum::Json<ArchiveView>> {
    shown::archive(&cx, &caller.owner, year).await.map(axum::Json)
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct OfDate {
    /// A day in the person's time zone, such as `2026-11-26`. Default: today.
    #[param(value_type = Option<String>, format = Date)]
    date: Option<String>,
}

/// The cards of a day.
#[derive(Serialize, ToSchema)]
struct Cards {
    #[schema(value_type = String, format = Date)]
    date: Date,
    /// In the order of their times.
    data: Vec<Card>,
}

/// List the cards of a day
///
/// Cards about work that was delegated or scheduled. A scheduled run has one by itself.
#[utoipa::path(
    get, path = "/memory/cards", tag = "memory", operation_id = "list_memory_cards",
    params(OfDate),
    responses((status = 200, content((Cards = "application/json"), (String = "text/markdown")))),
)]
async fn list_cards(
    State(cx): State<Cx>,
    caller: Caller,
    Query(of): Query<OfDate>,
    headers: HeaderMap,
) -> Result<Response> {
    let date = match of.date.as_deref().map(day_named) {
        Some(date) => date.map_err(|told| FieldErrors::one("date", told))?,
        None => cards::today(&cx, &caller.owner).await?,
    };
    let data = cards::of_date(&cx, &caller.owner, date).await?;
    if wants_markdown(&headers) {
        return Ok(as_markdown(markdown::cards(date, &data)));
    }
    Ok(axum::Json(Cards { date, data }).into_response())
}

/// Search the memory
///
/// Finds what was written before the call, also by the same client a moment ago. It calls no model and costs nothing. Without `depth`,
/// it stops at the first of its layers that has a good hit: cards, facts, messages.
#[utoipa::path(
    get, path = "/memory/search", tag = "memory", operation_id = "search_memory",
    params(Asked),
    responses((status = 200, body = Found)),
)]
async fn search_memory(
    State(cx): State<Cx>,
    caller: Caller,
    Query(asked): Query<Asked>,
) -> Result<axum::Json<Found>> {
    search::search(&cx, &caller.owner, &asked).await.map(axum::Json)
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Most {
    /// At most so many, 1 to 50. Default: 10.
    #[param(minimum = 1, maximum = 50)]
    limit: Option<usize>,
}

/// The newest clean-ups.
#[derive(Serialize, ToSchema)]
struct Tidies {
    /// Newest first.
    data: Vec<TidyView>,
}

/// List the clean-ups of the long-term memory, newest first
///
/// With what each has changed.
#[utoipa::path(
    get, path = "/memory/tidies", tag = "memory", operation_id = "list_memory_tidies",
    params(Most),
    responses((status = 200, body = Tidies)),
)]
async fn tidies(
    State(cx): State<Cx>,
    caller: Caller,
    Query(most): Query<Most>,
) -> Result<axum::Json<Tidies>> {
    let limit = most.limit.unwrap_or(10);
    if !(1..=50).contains(&limit) {
        return Err(FieldErrors::one("limit", format!("must be 1 to 50, is {limit}")).into());
    }
    Ok(axum::Json(Tidies { data: tidy::list(&cx, &caller.owner, limit).await? }))
}

/// Read a fact
///
/// With the messages that it comes from.
#[utoipa::path(
    get, path = "/memory/facts/{fact_id}", tag = "memory", operation_id = "read_fact",
    params(domain::ids::FactId),
    responses((status = 200, body = shown::FactView)),
)]
async fn read_fact(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<domain::ids::FactId>,
) -> Result<axum::Json<shown::FactView>> {
    facts::read(&cx, &caller.owner, id).await.map(axum::Json)
}

/// Read what is wrong with the memory
///
/// Facts that say nearly the same, facts whose conversations do not exist any more, and facts that were never used. It calls no model.
#[utoipa::path(
    get, path = "/memory/health", tag = "memory", operation_id = "read_memory_health",
    responses((status = 200, body = Health)),
)]
async fn read_health(State(cx): State<Cx>, caller: Caller) -> Result<axum::Json<Health>> {
    health::health(&cx, &caller.owner).await.map(axum::Json)
}

/// Export the memory as a zip of files
///
/// `MEMORY.md`, `memory/{date}.md`, `memory/archive/{year}/{date}.md`, `memory/weekly/{monday}.md`, `memory/tasks/{date}.md` with the
/// cards, `sessions/{session_id}.jsonl` with what took place elsewhere, and `memory/state/processed-sessions.json`.
/// `POST /account/import` with the format `openclaw` reads them.
#[utoipa::path(
    get, path = "/memory/export", tag = "memory", operation_id = "export_memory",
    responses((status = 200, description = "The archive", body = Vec<u8>, content_type = "application/zip")),
)]
async fn export_memory(State(cx): State<Cx>, caller: Caller) -> Response {
    let archive = take::archive(cx, caller.owner);
    let headers = [
        (header::CONTENT_TYPE, "application/zip"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"memory.zip\""),
    ];
    (headers, Body::from_stream(archive)).into_response()
}

/// A day in a path.
struct Day(Date);

impl std::str::FromStr for Day {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        day_named(text).map(Self).map_err(ToOwned::to_owned)
    }
}

/// A year in a path.
struct Year(i16);

impl std::str::FromStr for Year {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let year = text.parse().ok().filter(|year| (1970..=9000).contains(year));
        year.map(Self).ok_or_else(|| "must be a year from 1970 to 9000".to_owned())
    }
}
