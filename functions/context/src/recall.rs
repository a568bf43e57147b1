//! The route for hooks when a session or a sub-agent starts.

use axum::extract::State;
use domain::context::Workflow;
use domain::ids::ProjectId;
use domain::log::SessionId;
use serde::Deserialize;
use shared::edge::extract::{Caller, Query};
use shared::flows::logs::recall::{self, Recalled, Starting};
use shared::flows::projects::documents::DocumentName;
use shared::{Cx, Result};
use utoipa::IntoParams;

shared::routes!(read_recall);

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct RecallQuery {
    /// The session that starts, or in which an agent starts.
    #[serde(rename = "session_id", alias = "session")]
    session: SessionId,
    /// The type of the sub-agent that starts. Without it, the session itself starts.
    agent_type: Option<String>,
    /// Default: `default`.
    #[serde(rename = "project_id", alias = "project")]
    project: Option<ProjectId>,
    /// The workflow whose context document a session gets. Default: `default`.
    #[serde(default)]
    #[param(value_type = Option<Workflow>)]
    workflow: Workflow,
}

/// Read what was done before, for a session or a sub-agent that starts
///
/// A sub-agent gets the last entries of its own log from earlier sessions. If it has none, it gets those of other
/// agents of its type. A session gets the agents that it can continue, the names of the project's workflows, and the
/// context document of its workflow. The text is for the model that starts.
#[utoipa::path(
    get, path = "/context/recall", tag = "context", operation_id = "recall_context",
    params(RecallQuery),
    responses((status = 200, description = "The earlier work", body = Recalled)),
)]
async fn read_recall(
    State(cx): State<Cx>,
    caller: Caller,
    Query(query): Query<RecallQuery>,
) -> Result<axum::Json<Recalled>> {
    let RecallQuery { session, agent_type, project, workflow } = query;
    let place = DocumentName { project: project.unwrap_or(ProjectId::DEFAULT), workflow };
    let starting = Starting { session, agent_type, place };
    recall::recall(&cx, &caller.owner, &starting).await.map(axum::Json)
}
