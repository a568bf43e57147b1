//! The conversation about one action: what people say of it, what its runs ask, and what a model answers.

use axum::Json;
use axum::response::{IntoResponse, Response};
use domain::actions::{ActionState, OccurrenceState, ReasonCode};
use domain::ids::{ActionId, Owner, RunId};
use domain::models::{Block, Role};
use futures::FutureExt;
use http::{StatusCode, header};

use super::super::messages::{self as thread, MessageView};
use super::super::turn::{self, IfBusy, Said, Topic};
use super::super::{edit, run_view};
use super::{Loaded, apply, load, load_live};
use crate::context::Cx;
use crate::function::Invocation;
use crate::page::{self, Page, PageQuery};
use crate::problem::{Error, Result};
use crate::store::messages::StoredMessage;
use crate::store::table::Order;
use crate::stream::{self, Accept};

/// Oldest first.
///
/// # Errors
/// 404 if the action does not exist, 400 if `limit` or `cursor` is invalid.
pub async fn messages(cx: &Cx, owner: &Owner, id: ActionId, query: &PageQuery) -> Result<Page<MessageView>> {
    load(cx, owner, id).await?;
    let read = |after: Option<String>, limit| {
        async move { cx.store.messages(owner, id, after.as_deref(), limit, Order::Oldest).await }.boxed()
    };
    // Calls of tools and their results are the model's memory, and nothing to read.
    let shown = |stored: &StoredMessage| stored.overflow || !stored.message.text().is_empty();
    let found = page::filtered(owner, &format!("messages of {id}"), query, read, shown).await?;
    let Page { data, next_cursor, has_more } = found;
    let stored = data.into_iter().map(|stored| stored.value).collect();
    let whole = thread::whole(cx, owner, id, stored).await?.into_iter().map(MessageView::from);
    let data = whole.filter(|message| !message.content.is_empty()).collect();
    Ok(Page { data, next_cursor, has_more })
}

/// Says something about an action. Where a run of it waits for an answer, this is the answer, and the run goes on: what it
/// says next is its reply. Everything else a model answers, in a turn of its own.
///
/// # Errors
/// As [`turn::serve`].
pub async fn say(
    cx: &Cx,
    owner: &Owner,
    id: ActionId,
    content: String,
    how: (IfBusy, Accept),
    invocation: Invocation,
) -> Result<Response> {
    let (if_busy, accept) = how;
    turn::check("content", &content)?;
    let mut tries = edit::Tries::default();
    loop {
        tries.next().await?;
        let Loaded { action, live } = load_live(cx, owner, id).await?;
        let asks = live.filter(|live| {
            action.value.state == ActionState::NeedsApproval
                && live.value.state == OccurrenceState::Waiting
                && live.value.reason_code == Some(ReasonCode::Asked)
        });
        let Some(asks) = asks else {
            let said = Said { topic: Topic::Action(id), message: content, if_busy, accept };
            return turn::serve(cx, owner, said, invocation).await;
        };
        let run = asks.value.run_id;
        let answer = thread::new(cx, Role::User, vec![Block::text(content.clone())], None);
        // Followers hear what comes after the question.
        let heard = cx.store.last_event_id(owner, run).await?;
        match apply::answer(cx, owner, id, action.version, answer).await {
            // It was answered, cancelled or edited meanwhile: look again what this is.
            Err(Error::Conflict { .. }) => {}
            Err(error) => return Err(error),
            Ok(()) => return answered(cx, owner, run, heard, accept, invocation).await,
        }
    }
}

/// The run that goes on: another process executes it, so that its result is not waited for here.
async fn answered(
    cx: &Cx,
    owner: &Owner,
    run: RunId,
    heard: u64,
    accept: Accept,
    invocation: Invocation,
) -> Result<Response> {
    match accept {
        Accept::Events => {
            let events = stream::follow(cx.clone(), owner.clone(), run, heard, invocation.answers_until());
            Ok(turn::of_run(stream::event_stream(events), run))
        }
        Accept::Json => {
            let location = [(header::LOCATION, format!("/runs/{run}"))];
            let run = stream::load(cx, owner, run).await?.value;
            let view = run_view::view(cx, owner, run).await?;
            Ok((StatusCode::ACCEPTED, location, Json(view)).into_response())
        }
    }
}
