//! The routes of agents.

use axum::extract::State;
use axum::http::StatusCode;
use domain::agents::{AgentPatch, AgentStatus, NewAgent};
use domain::ids::AgentId;
use serde::Deserialize;
use shared::extract::{Caller, Id, IfMatch, Json, Query};
use shared::flows::agents::{self, AgentView};
use shared::page::{Page, PageQuery};
use shared::respond::{Created, Problems, Tagged};
use shared::{Cx, Result};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub fn router() -> OpenApiRouter<Cx> {
    OpenApiRouter::default().routes(routes!(create, list)).routes(routes!(read, change, delete))
}

/// Make an agent
///
/// Takes what a setup conversation arrived at, or the same written by hand.
#[utoipa::path(
    post, path = "/agents", tag = "agents",
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repeated call act once")),
    request_body = NewAgent,
    responses((status = 201, body = AgentView), Problems),
)]
async fn create(
    State(cx): State<Cx>,
    caller: Caller,
    Json(input): Json<NewAgent>,
) -> Result<Created<AgentView>> {
    let agent = agents::create(&cx, &caller.owner, input).await?;
    Ok(Created { location: format!("/agents/{}", agent.agent.agent_id), version: agent.version, body: agent })
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Filter {
    /// Only agents with this status.
    status: Option<AgentStatus>,
}

/// List agents, newest first
#[utoipa::path(
    get, path = "/agents", tag = "agents",
    params(PageQuery, Filter),
    responses((status = 200, body = Page<AgentView>), Problems),
)]
async fn list(
    State(cx): State<Cx>,
    caller: Caller,
    Query(filter): Query<Filter>,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<Page<AgentView>>> {
    agents::list(&cx, &caller.owner, filter.status, &page).await.map(axum::Json)
}

/// Read an agent
#[utoipa::path(
    get, path = "/agents/{agent_id}", tag = "agents",
    params(("agent_id" = AgentId, Path)),
    responses((status = 200, body = AgentView), Problems),
)]
async fn read(State(cx): State<Cx>, caller: Caller, Id(id): Id<AgentId>) -> Result<Tagged<AgentView>> {
    let agent = agents::read(&cx, &caller.owner, id).await?;
    Ok(Tagged { version: agent.version, body: agent })
}

/// Change, pause or archive an agent
#[utoipa::path(
    patch, path = "/agents/{agent_id}", tag = "agents",
    params(("agent_id" = AgentId, Path), ("If-Match" = Option<String>, Header, description = "The version read")),
    request_body = AgentPatch,
    responses((status = 200, body = AgentView), Problems),
)]
async fn change(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<AgentId>,
    if_match: Option<IfMatch>,
    Json(patch): Json<AgentPatch>,
) -> Result<Tagged<AgentView>> {
    let agent = agents::change(&cx, &caller.owner, id, if_match, patch).await?;
    Ok(Tagged { version: agent.version, body: agent })
}

/// Delete an agent and all that belongs to it
#[utoipa::path(
    delete, path = "/agents/{agent_id}", tag = "agents",
    params(("agent_id" = AgentId, Path)),
    responses((status = 204, description = "It is gone"), Problems),
)]
async fn delete(State(cx): State<Cx>, caller: Caller, Id(id): Id<AgentId>) -> Result<StatusCode> {
    agents::delete(&cx, &caller.owner, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
