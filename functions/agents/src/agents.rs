//! The routes of agents.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::agents::{AgentPatch, AgentStatus, NewAgent};
use domain::ids::AgentId;
use domain::runs::RunEvent;
use domain::runs::form::ReplyForm;
use serde::Deserialize;
use shared::edge::accept::Accept;
use shared::edge::extract::{Caller, Id, IfMatch, Json, Once, Query};
use shared::edge::respond::{Created, Tagged};
use shared::edge::stream;
use shared::flows::agents::setup::{self, AcceptSetup, Setup, SetupTicket};
use shared::flows::agents::{self, AgentView, ChangedAgent};
use shared::flows::page::{Page, PageQuery};
use shared::flows::runs::RunView;
use shared::flows::turn::{self, Said, Topic, TurnInput};
use shared::runtime::function::Invocation;
use shared::{Cx, Result};
use utoipa::IntoParams;

shared::routes!(create, list, read, change, delete, set_up, preview_setup, accept_setup);

/// Create an agent
///
/// Send the draft of a setup conversation, or write the fields by hand.
#[utoipa::path(
    post, path = "/agents", tag = "agents", operation_id = "create_agent",
    responses((status = 201, body = AgentView)),
)]
async fn create(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Json(input): Json<NewAgent>,
) -> Result<Created<AgentView>> {
    let agent = agents::create(&cx, &caller.owner, &once, caller.actor(), input).await?;
    Ok(Created { location: format!("/agents/{}", agent.agent.agent_id), version: agent.version, body: agent })
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Filter {
    /// Only agents with this status.
    status: Option<AgentStatus>,
}

/// List agents, newest first
///
/// With a filter, a page may be short although there are more.
#[utoipa::path(
    get, path = "/agents", tag = "agents", operation_id = "list_agents",
    params(PageQuery, Filter),
    responses((status = 200, body = Page<AgentView>)),
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
///
/// Includes its statistics: assets, ended actions, and cost.
#[utoipa::path(
    get, path = "/agents/{agent_id}", tag = "agents", operation_id = "read_agent",
    params(AgentId),
    responses((status = 200, body = AgentView)),
)]
async fn read(State(cx): State<Cx>, caller: Caller, Id(id): Id<AgentId>) -> Result<Tagged<AgentView>> {
    let agent = agents::read(&cx, &caller.owner, id).await?;
    Ok(Tagged { version: agent.version, body: agent })
}

/// Change, pause or archive an agent
///
/// Omitted fields keep their values.
///
/// An approval of an action binds the agent's name, goal, success criteria, timeline, instructions and `docs_project_id`, and its time zone
/// if the action has no schedule. If one of them changes, `withdrawn_approvals` lists the approvals that are no longer valid. Nothing runs under them until they are
/// given again.
#[utoipa::path(
    patch, path = "/agents/{agent_id}", tag = "agents", operation_id = "change_agent",
    params(AgentId, IfMatch),
    responses((status = 200, body = ChangedAgent)),
)]
async fn change(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<AgentId>,
    if_match: Option<IfMatch>,
    Json(patch): Json<AgentPatch>,
) -> Result<Tagged<ChangedAgent>> {
    let (owner, by) = (&caller.owner, caller.actor());
    let changed = agents::change(&cx, owner, &Once::none(), by, id, if_match, patch).await?;
    Ok(Tagged { version: changed.agent.version, body: changed })
}

/// Delete an agent and everything that belongs to it
///
/// Its chats, proposals, assets and actions are deleted, too.
#[utoipa::path(
    delete, path = "/agents/{agent_id}", tag = "agents", operation_id = "delete_agent",
    params(AgentId),
    responses((status = 204, description = "It was deleted")),
)]
async fn delete(State(cx): State<Cx>, caller: Caller, Id(id): Id<AgentId>) -> Result<StatusCode> {
    agents::delete(&cx, &caller.owner, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// One turn of the setup conversation
///
/// When the model knows enough, the result has an `agent_draft`. If it has a `first_action`, send both to `POST /setup/preview` and then to
/// `POST /setup`. Otherwise, send it to `POST /agents`.
#[utoipa::path(
    post, path = "/setup/chat", tag = "agents", operation_id = "set_up_agent",
    responses(
        (status = 200, description = "The run", content(
            (RunEvent = "text/event-stream"), (RunView = "application/json"),
        )),
    ),
)]
async fn set_up(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    accept: Accept,
    invocation: Invocation,
    Json(TurnInput { chat_id, message, images, if_busy }): Json<TurnInput>,
) -> Result<Response> {
    let said = Said { topic: Topic::Setup(chat_id), message, images, if_busy, form: ReplyForm::default() };
    let begun = turn::start(&cx, &caller.owner, &once, said, invocation).await?;
    stream::respond_begun(&cx, &caller.owner, begun, accept, invocation).await
}

/// Show an agent with its first action as one ticket
///
/// Says what `POST /setup` would create and approve. Nothing is stored.
#[utoipa::path(
    post, path = "/setup/preview", tag = "agents", operation_id = "preview_setup",
    responses((status = 200, body = SetupTicket)),
)]
async fn preview_setup(
    State(cx): State<Cx>,
    caller: Caller,
    Json(input): Json<Setup>,
) -> Result<axum::Json<SetupTicket>> {
    setup::preview(&cx, &caller.owner, input).await.map(axum::Json)
}

/// Create an agent with its first action
///
/// Both are created, or none. With the `approval_hash` of the ticket, the action is approved, and its schedule begins.
#[utoipa::path(
    post, path = "/setup", tag = "agents", operation_id = "accept_setup",
    responses((status = 201, body = setup::CreatedSetup)),
)]
async fn accept_setup(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Json(input): Json<AcceptSetup>,
) -> Result<impl IntoResponse> {
    let made = setup::accept(&cx, &caller.owner, &once, caller.actor(), input).await?;
    let location = [(header::LOCATION, format!("/agents/{}", made.agent.agent.agent_id))];
    Ok((StatusCode::CREATED, location, axum::Json(made)))
}
