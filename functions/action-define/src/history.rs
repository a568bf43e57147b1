//! The routes of an action's history.

use axum::extract::State;
use domain::history::Change;
use domain::ids::ActionId;
use shared::edge::extract::{Caller, Id, Ids, IfMatch, Once, Query};
use shared::edge::respond::Tagged;
use shared::flows::actions::{self, ActionView};
use shared::flows::page::{Page, PageQuery};
use shared::{Cx, Result};

use crate::routes::tagged;

shared::routes!(list, revert);

/// List the changes of an action, newest first
///
/// Who has changed what, and what the change did: an approval that it withdrew, a schedule that it ended. Changes are kept
/// for 400 days.
#[utoipa::path(
    get, path = "/actions/{action_id}/history", tag = "actions", operation_id = "list_action_changes",
    params(ActionId, PageQuery),
    responses((status = 200, body = Page<Change>)),
)]
async fn list(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<ActionId>,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<Page<Change>>> {
    actions::changes(&cx, &caller.owner, id, &page).await.map(axum::Json)
}

/// Set the fields of an action back to what they were before a change
///
/// `version` names the change by the version of the action after it. The revert is a change like any other: it can withdraw
/// the approval, and it is in the history itself. 409 `nothing_to_revert` if no field would change.
#[utoipa::path(
    post, path = "/actions/{action_id}/history/{version}/revert", tag = "actions",
    operation_id = "revert_action_change",
    params(ActionId, ("version" = u64, Path), IfMatch),
    responses((status = 200, body = ActionView)),
)]
async fn revert(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Ids(id, version): Ids<ActionId, u64>,
    if_match: Option<IfMatch>,
) -> Result<Tagged<ActionView>> {
    let (owner, by) = (&caller.owner, caller.actor());
    Ok(tagged(actions::revert(&cx, owner, &once, by, (id, version), if_match).await?))
}
