//! The route of a turn.

use axum::extract::State;
use axum::response::Response;
use domain::ids::AgentId;
use domain::runs::RunEvent;
use domain::runs::form::ReplyForm;
use shared::edge::accept::Accept;
use shared::edge::extract::{Caller, Id, Json, Once};
use shared::edge::stream;
use shared::flows::runs::RunView;
use shared::flows::turn::{self, Said, Topic, TurnInput};
use shared::runtime::function::Invocation;
use shared::{Cx, Result};

shared::routes!(talk_to_agent);

/// One turn with an agent
///
/// The answer is the stream of the run's events. With `Accept: application/json` it is the result. The run continues if
/// the client disconnects: reconnect at `/runs/{run_id}/events` with `Last-Event-ID`. A conversation has one turn at a
/// time. `if_busy` says what to do if one is in progress, and 409 `turn_in_progress` names its run.
#[utoipa::path(
    post, path = "/agents/{agent_id}/chat", tag = "chats",
    params(AgentId),
    responses(
        (status = 200, description = "The run", content(
            (RunEvent = "text/event-stream"), (RunView = "application/json"),
        )),
    ),
)]
async fn talk_to_agent(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Id(id): Id<AgentId>,
    accept: Accept,
    invocation: Invocation,
    Json(TurnInput { chat_id, message, images, if_busy }): Json<TurnInput>,
) -> Result<Response> {
    let said =
        Said { topic: Topic::Agent(id, chat_id), message, images, if_busy, form: ReplyForm::default() };
    let begun = turn::start(&cx, &caller.owner, &once, said, invocation).await?;
    stream::respond_begun(&cx, &caller.owner, begun, accept, invocation).await
}
