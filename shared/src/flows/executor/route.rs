//! The executor's router: what is done with a due item, by its kind.

use std::time::Duration;

use domain::background::dispatch::delay_seconds;
use domain::ids::{Owner, RunId};
use domain::runs::RunKind;
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};

use super::{drain, execute, wake};
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::accounts::{deletion, export, import};
use crate::flows::answers::replies;
use crate::flows::projects::living;
use crate::flows::watched::watchdog;
use crate::flows::{memory, notices, turn};
use crate::process::due_queue::Dispatch;
use crate::store::{DueItem, DueTarget};

/// An executor itself waits no longer than this. The delay of the queue is rounded down to seconds, so longer waits only occur if
/// clocks differ; then the item goes back to the queue.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// How often a waiting executor checks whether its process is about to end.
const LOOK: Duration = Duration::from_millis(250);

/// Processes a due item, not before its time. The item may come twice or late: the stored state decides what to do.
///
/// # Errors
/// If the table does not answer. The message then comes again.
pub async fn process(cx: &Cx, item: &DueItem, deadline: Timestamp) -> Result<()> {
    if let Some(due_at) = item.due_at
        && !wait_until(cx, due_at).await
        && !cx.stopping.is_set()
    {
        let again = Dispatch { item: item.clone(), delay_seconds: delay_seconds(due_at, cx.clock.now()) };
        let taken = cx.due_queue.send(&[again]).await.is_empty();
        return if taken { Ok(()) } else { Err(Error::internal("an item that came early was not put back")) };
    }
    // A message of the watchdog has many owners. The look at each of them checks what follows.
    if item.target == DueTarget::Watchdog {
        return work(cx, cx, item, deadline).await;
    }
    if cx.stopping.is_set() {
        // The item stays due, so another process will find it.
        return Ok(());
    }
    // Nothing begins any more in an account that is being deleted.
    if item.target != DueTarget::Deletion
        && cx.deletions.of(&cx.store, &item.owner, cx.clock.now()).await?.is_some()
    {
        return Ok(());
    }
    let beginning = cx.remembering();
    if is_stopped(&beginning, item).await? {
        return Ok(());
    }
    // What an executor works on is something that can be watched. The work does not wait for it.
    let (done, ()) = futures::join!(work(cx, &beginning, item, deadline), watchdog::follow(cx, item));
    done
}

/// While the account is stopped, nothing is decided and nothing begins. The item stays due, and is sent again when its lease ends.
async fn is_stopped(cx: &Cx, item: &DueItem) -> Result<bool> {
    let account = cx.store.account(&item.owner);
    let account = match item.target {
        // The action is read with the same request.
        DueTarget::Action(id) => tokio::try_join!(account, cx.store.action(&item.owner, id))?.0,
        DueTarget::Backlog | DueTarget::Memory | DueTarget::Docs(_) => account.await?,
        _ => return Ok(false),
    };
    Ok(account.value.stop.is_some())
}

/// The futures are large. This function builds them and returns before they are polled, so none of them lies on the stack. `beginning`
/// remembers what was read of the item.
fn work<'a>(
    cx: &'a Cx,
    beginning: &'a Cx,
    item: &'a DueItem,
    deadline: Timestamp,
) -> BoxFuture<'a, Result<()>> {
    let owner = &item.owner;
    match item.target {
        DueTarget::Action(id) => wake::wake_with(cx, beginning, owner, id, deadline).boxed(),
        DueTarget::Run(id) => go_on(cx, owner, id, deadline).boxed(),
        DueTarget::Backlog => drain::drain(cx, owner, deadline).boxed(),
        DueTarget::Deletion => deletion::go_on(cx, owner, deadline).boxed(),
        DueTarget::Export(id) => export::write(cx, owner, id, deadline).boxed(),
        DueTarget::Import => import::write(cx, owner, deadline).boxed(),
        DueTarget::Memory => memory::go_on(cx, owner, deadline).boxed(),
        DueTarget::Occurrence { action, run } => notices::tell_of(cx, owner, action, run).boxed(),
        DueTarget::Notices => notices::go_on(cx, owner, deadline).boxed(),
        DueTarget::Delivery(id) => notices::deliveries::go_on(cx, owner, id).boxed(),
        DueTarget::Replies(channel) => replies::listen(cx, owner, channel).boxed(),
        DueTarget::Watchdog => watchdog::look_at_each(cx, item, deadline).boxed(),
        DueTarget::Docs(project) => living::sync::go_on(cx, owner, project, deadline).boxed(),
    }
}

/// Goes on with a turn or a rehearsal that no process has.
async fn go_on(cx: &Cx, owner: &Owner, id: RunId, deadline: Timestamp) -> Result<()> {
    match turn::to_take_over(cx, owner, id).await? {
        None => Ok(()),
        Some(found) if found.value.kind == RunKind::Rehearsal => {
            execute::rehearse(cx, owner, found, deadline).boxed().await
        }
        Some(found) if found.value.kind == RunKind::Helper => {
            turn::helpers::take_over(cx, owner, found, deadline).boxed().await
        }
        Some(found) => turn::take_over(cx, owner, found, deadline).boxed().await,
    }
}

/// Waits until this time. `false` if that would take too long, or if the process is about to end.
async fn wait_until(cx: &Cx, at: Timestamp) -> bool {
    let waits_until = tokio::time::Instant::now() + LONGEST_WAIT;
    loop {
        let left = at.duration_since(cx.clock.now());
        if left <= SignedDuration::ZERO {
            return true;
        }
        let left = left.unsigned_abs();
        if left > LONGEST_WAIT || tokio::time::Instant::now() >= waits_until || cx.stopping.is_set() {
            return false;
        }
        cx.clock.sleep(left.min(LOOK)).await;
    }
}
