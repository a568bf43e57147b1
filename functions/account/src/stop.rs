//! The one switch: stopping the account, and starting it again.

use axum::extract::State;
use shared::edge::extract::{Caller, OptionalJson};
use shared::flows::accounts::stop::{self, StartAccount, StartedAccount, StoppedAccount};
use shared::{Cx, Result};

shared::routes!(stop_account, start_account);

/// Stop everything
///
/// From the answer on, no call of a model or of a tool of this account begins, in no process. Calls of models that are under way are
/// ended within two seconds. A call of a tool outside the platform that has begun is not cut off. Runs that are under way end as
/// cancelled with the error `stopped` and keep what they have saved. Runs that wait for a person keep waiting. Until
/// `POST /account/start`, nothing runs: due times are kept, and each new turn, run and answer to a waiting run is refused with 409
/// `account_stopped`. Everything can still be read and edited.
///
/// Repeating the call is safe: it ends runs that were left, and the time of the stop stays.
#[utoipa::path(
    post, path = "/account/stop", tag = "account", operation_id = "stop_account",
    responses((status = 200, body = StoppedAccount)),
)]
async fn stop_account(State(cx): State<Cx>, caller: Caller) -> Result<axum::Json<StoppedAccount>> {
    stop::stop(&cx, &caller.owner).await.map(axum::Json)
}

/// Start the account again
///
/// If due times came while the account was stopped, `missed` must say what becomes of them; otherwise the answer is 409
/// `missed_runs`, with the list in `current`, and nothing is changed. `run_newest`: the newest due time of each action runs, and the
/// others are skipped. `skip`: all are skipped. `each_schedule`: the `catch_up` of each schedule decides, as after an outage. The
/// skipped due times of an action share one record, which says how many there are. The list does not contain what would not have
/// run anyway, such as actions that are paused.
///
/// An account that is not stopped is not changed.
#[utoipa::path(
    post, path = "/account/start", tag = "account", operation_id = "start_account",
    request_body = Option<StartAccount>,
    responses((status = 200, body = StartedAccount)),
)]
async fn start_account(
    State(cx): State<Cx>,
    caller: Caller,
    OptionalJson(input): OptionalJson<StartAccount>,
) -> Result<axum::Json<StartedAccount>> {
    stop::start(&cx, &caller.owner, input).await.map(axum::Json)
}
