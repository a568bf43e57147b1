//! Deletes a project's logs together with the project: the lines, the segments, and the records of their sessions.

use domain::ids::{Owner, ProjectId};

use crate::blobs::BlobKey;
use crate::context::Cx;
use crate::error::Result;
use crate::store::logs::{LogHead, LogSession, Segment, SegmentPlace};
use crate::store::table::Order;

/// How many sessions or logs one query reads.
const PAGE: usize = 100;

/// Deletes the logs of a project in all sessions. A session that has logs of no other project is deleted with them. An
/// interrupted call can be repeated, because a log's head is deleted after everything that it leads to.
///
/// # Errors
/// If the table or the bucket does not answer.
pub async fn of_project(cx: &Cx, owner: &Owner, project: ProjectId) -> Result<()> {
    let mut after: Option<String> = None;
    loop {
        let found = cx.store.log_sessions(owner, after.as_deref(), PAGE, Order::Oldest).await?;
        for (_, session) in found.items {
            of_session(cx, owner, project, &session.value).await?;
        }
        after = found.last;
        if after.is_none() {
            return Ok(());
        }
    }
}

/// Deletes what a log has in the bucket. Segments from an import are stored under the import instead.
async fn delete_bodies(cx: &Cx, owner: &Owner, head: &LogHead) -> Result<()> {
    let (session, agent) = (&head.session_id, &head.agent_id);
    let first = cx.store.log_segment(owner, session, agent, 1).await?;
    if let Some(Segment { place: SegmentPlace::Import(import), .. }) = first {
        cx.blobs.delete_prefix(&BlobKey::imported_log(owner, import, session, agent)).await?;
    }
    Ok(cx.blobs.delete_prefix(&BlobKey::log_prefix(owner, session, agent)).await?)
}

async fn of_session(cx: &Cx, owner: &Owner, project: ProjectId, session: &LogSession) -> Result<()> {
    let mut after: Option<String> = None;
    let mut others = session.project_id != project;
    loop {
        let found = cx.store.log_heads(owner, &session.session_id, after.as_deref(), PAGE).await?;
        for (_, head) in found.items {
            let head = head.value;
            if head.project_id == project {
                delete_bodies(cx, owner, &head).await?;
                cx.store.delete_log(owner, &head).await?;
            } else {
                others = true;
            }
        }
        after = found.last;
        if after.is_none() {
            break;
        }
    }
    if !others {
        cx.store.delete_log_session(owner, session).await?;
    }
    Ok(())
}
