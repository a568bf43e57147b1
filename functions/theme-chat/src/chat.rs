//! The routes of conversations with the theme agent.

use axum::extract::State;
use axum::response::Response;
use domain::ids::ProjectId;
use domain::runs::RunEvent;
use shared::edge::accept::Accept;
use shared::edge::extract::{Caller, Id, Json, Once, Query};
use shared::edge::stream;
use shared::flows::chats::{self, ChatView};
use shared::flows::page::{Page, PageQuery};
use shared::flows::runs::RunView;
use shared::runtime::function::Invocation;
use shared::{Cx, Result};
use themes::changes::Place;
use themes::turn::{self, NewTurn};

shared::routes!(talk, list);

/// One turn with the theme agent
///
/// The message says what should change, or asks about the theme. The agent reads the theme, and edits it in a change set that nobody else sees
/// before it is applied. Later turns of a conversation go on in the same change set, until it is applied.
///
/// The first event, `run.started`, has the plan under `theme`: the mode, how large the task is and why, the files that the model is given, and
/// an estimate of the cost. `turn.escalated` says that the turn became larger. `theme.changed`, before the last event, names the change set and
/// its files. A turn takes at most 30 minutes. It goes on if the client leaves; `GET /runs/{run_id}/events` follows it.
#[utoipa::path(
    post, path = "/projects/{project_id}/chat", tag = "themes", operation_id = "post_theme_message",
    params(ProjectId),
    responses(
        (status = 200, description = "The run", content(
            (RunEvent = "text/event-stream"), (RunView = "application/json"),
        )),
    ),
)]
async fn talk(
    State(cx): State<Cx>,
    caller: Caller,
    Id(project): Id<ProjectId>,
    once: Once,
    accept: Accept,
    invocation: Invocation,
    Json(input): Json<NewTurn>,
) -> Result<Response> {
    let place = Place { cx: &cx, owner: &caller.owner, project };
    let begun = Box::pin(turn::start(place, &once, input, invocation)).await?;
    stream::respond_begun(&cx, &caller.owner, begun, accept, invocation).await
}

/// List the conversations with the theme agent, newest first
///
/// Without their messages. `GET /chats/{chat_id}` reads one, `POST` resets it, `DELETE` deletes it.
#[utoipa::path(
    get, path = "/projects/{project_id}/chats", tag = "themes", operation_id = "list_theme_chats",
    params(ProjectId, PageQuery),
    responses((status = 200, body = Page<ChatView>)),
)]
async fn list(
    State(cx): State<Cx>,
    caller: Caller,
    Id(project): Id<ProjectId>,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<Page<ChatView>>> {
    chats::list_of_project(&cx, &caller.owner, project, &page).await.map(axum::Json)
}
