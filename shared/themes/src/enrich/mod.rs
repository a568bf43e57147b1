//! A model describes a theme's files, if the project has enabled this.
//!
//! Enrichment runs after the map is complete. Lookups neither wait for it nor depend on it. Only one invocation at a time works
//! on a project. Before each call it computes the remaining work from the files and the notes. So a wake-up that comes twice, late
//! or out of order finds nothing to do. If an invocation dies, the next one continues and repeats at most one call. A change of
//! the theme is noticed before the next call.
//!
//! A wake-up ends at once if another invocation holds the enrichment. That is safe, because the holder checks for work again after
//! it has released the enrichment. Either it sees the change that caused the wake-up, or the wake-up comes later and finds no
//! holder.
//!
//! - `pass`: makes notes from files
//! - `choose`: the model, its largest input, and the stable parts of a request

mod choose;
mod pass;

use std::sync::Arc;

use domain::background::jobs::{JobKind, Outcome};
use domain::ids::{Owner, ProjectId};
use domain::models::Stop;
use domain::models::routing::Ask;
use domain::projects::enrichment::{Enrichment, LEASE, PassEnd, ThemeRevision};
use jiff::{SignedDuration, Timestamp};
use models::Models;
use theme::enrich::Notes;
use uuid::Uuid;

use crate::cache::NotesCache;
use pass::Ended;
use shared::blobs::{BlobError, BlobKey};
use shared::context::Cx;
use shared::error::{Error, Result};
use shared::flows::background::jobs::{self, Due};
use shared::flows::background::lease;
use shared::flows::projects::indexing;
use shared::flows::{ask, existing};
use shared::model_choice;
use shared::store::Tries;
use shared::store::keys::{self, Guard};
use shared::store::table::{Write, Written};

/// How long to wait before checking again whether a model is configured.
const MODEL_AGAIN: SignedDuration = SignedDuration::from_mins(15);

/// The code of the error if this invocation no longer holds the enrichment.
const LOST: &str = "hold_lost";

/// Lets a model describe the new files of a theme until all are described, the time is up, or something prevents it. The reason is
/// stored.
///
/// # Errors
/// If the table or the bucket does not answer. Then the message must be delivered again.
pub async fn follow(cx: &Cx, owner: &Owner, project: ProjectId, deadline: Timestamp) -> Result<()> {
    loop {
        let Some((held, models)) = take(cx, owner, project).await? else { return Ok(()) };
        let subject = project.to_string();
        let record = jobs::begin(cx, owner, JobKind::ThemeEnrichment, &subject, Due::Changed).await;
        let mut tally = Outcome::default();
        let renew = || async { held.edit(|it| it.held(held.by, cx.clock.now())).await.map(drop) };
        let passed = lease::renewing(cx, LEASE, renew, pass::run(&held, &models, deadline, &mut tally)).await;
        match &passed {
            Ok(Ended::Done(_) | Ended::Off) => {
                record.end(Outcome { skipped: tally.work_found == 0, ..tally }).await;
            }
            Ok(Ended::Stopped(_, stop)) => {
                record.end(Outcome { error: Some(stop.reason.clone()), ..tally }).await;
            }
            Ok(Ended::Changing | Ended::TimeUp)
            | Err(Error::Conflict { code: LOST, .. } | Error::NotFound(_)) => record.cut_off(&tally).await,
            Err(error) => record.fail(tally, error).await,
        }
        let ended = match passed {
            Ok(ended) => held.release(ended).await,
            Err(error) => {
                // If the release fails, the hold ends by itself.
                let _ = held.edit(Enrichment::released).await;
                Err(error)
            }
        };
        match ended {
            Ok(Next::Look) => {}
            Ok(Next::Leave) | Err(Error::Conflict { code: LOST, .. } | Error::NotFound(_)) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// What to do after a pass.
enum Next {
    /// Check for work again: something may have changed while no other invocation could take over.
    Look,
    Leave,
}

/// The right to write a project's notes, until another invocation takes over.
struct Held<'a> {
    cx: &'a Cx,
    owner: &'a Owner,
    project: ProjectId,
    by: Uuid,
}

/// Takes the hold of an enrichment. `None` if there is nothing to do, or if another invocation holds it.
async fn take<'a>(cx: &'a Cx, owner: &'a Owner, project: ProjectId) -> Result<Option<(Held<'a>, Models)>> {
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        match existing::project(cx, owner, project).await {
            Ok(found) if found.value.enrichment => {}
            Ok(_) | Err(Error::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error),
        }
        let (theme, found) =
            futures::try_join!(cx.store.theme(owner, project), cx.store.enrichment(owner, project))?;
        let now = cx.clock.now();
        if !found.value.is_due(&theme.value, now) {
            return Ok(None);
        }
        let models = ask::models(cx)?;
        let by = cx.clock.uuid();
        let (next, held) = match model_choice::route_of(&models, cx, owner, &Ask::default(), 0).await? {
            Ok(_) => (found.value.held(by, now), Some(Held { cx, owner, project, by })),
            Err(error) => {
                let stop =
                    Stop { unavailable: true, reason: error.to_string(), again_at: Some(now + MODEL_AGAIN) };
                let end = PassEnd { of: ThemeRevision::of(&theme.value), stop: Some(stop) };
                (found.value.ended(end), None)
            }
        };
        match cx.store.replace_enrichment(owner, project, &next, found.version).await? {
            Written::Yes => return Ok(held.map(|held| (held, models))),
            Written::Refused(Guard::Enrichment) => {}
            Written::Refused(_) => return Ok(None),
        }
    }
}

impl Held<'_> {
    /// Changes the state of the enrichment, if this invocation still holds it.
    async fn edit(&self, edit: impl Fn(Enrichment) -> Enrichment) -> Result<Enrichment> {
        let mut tries = Tries::default();
        loop {
            tries.next().await?;
            let found = self.cx.store.enrichment(self.owner, self.project).await?;
            if !found.value.is_held_by(self.by) {
                return Err(Error::conflict(
                    LOST,
                    "another worker has taken over, or the enrichment was switched off",
                ));
            }
            let next = edit(found.value);
            let write = self.cx.store.replace_enrichment(self.owner, self.project, &next, found.version);
            match write.await? {
                Written::Yes => return Ok(next),
                Written::Refused(Guard::Enrichment) => {}
                Written::Refused(_) => return Err(Error::NotFound("project")),
            }
        }
    }

    async fn release(&self, ended: Ended) -> Result<Next> {
        let end = match ended {
            Ended::Done(of) => PassEnd { of, stop: None },
            Ended::Stopped(of, stop) => PassEnd { of, stop: Some(stop) },
            Ended::Changing => return self.edit(Enrichment::released).await.map(|_| Next::Look),
            Ended::TimeUp => {
                self.edit(Enrichment::released).await?;
                indexing::announce(self.cx, self.owner, self.project).await;
                return Ok(Next::Leave);
            }
            Ended::Off => return self.drop_all().await.map(|()| Next::Leave),
        };
        let (of, stop) = (end.of, end.stop.as_ref().map(|stop| stop.reason.clone()));
        let it = self.edit(|it| it.ended(end.clone())).await?;
        tracing::info!(
            revision = of.revision,
            written = it.written,
            wanted = it.wanted,
            cost_micros = it.cost_micros,
            stop,
            "a pass over a theme has ended"
        );
        Ok(Next::Look)
    }

    /// Deletes everything, because enrichment was switched off meanwhile. Usually the switch itself has already deleted it.
    async fn drop_all(&self) -> Result<()> {
        let found = self.cx.store.enrichment(self.owner, self.project).await?;
        if !found.value.is_held_by(self.by) {
            return Ok(());
        }
        let key = keys::enrichment(self.owner, self.project);
        let removed = self.cx.store.write_all(vec![Write::Remove { key, version: found.version }]).await?;
        if let (true, Some(notes)) = (removed.done(), found.value.notes) {
            self.discard(notes).await;
        }
        Ok(())
    }

    /// Deletes notes that are no longer used. If that fails, a later pass deletes them.
    async fn discard(&self, notes: Uuid) {
        let key = BlobKey::theme_notes(self.owner, self.project, notes);
        if let Err(error) = self.cx.blobs.delete(&key).await {
            tracing::warn!(%error, "old notes could not be deleted; a later pass will delete them");
        }
    }
}

/// The notes of a model about a theme, for answers that show them. The answers are complete without notes, so notes that can't be
/// read are left out.
pub async fn shown(cx: &Cx, owner: &Owner, project: ProjectId) -> Option<Arc<Notes>> {
    let notes = cx.kept.get::<NotesCache>();
    // The second try is for notes that were replaced between the two reads.
    for _ in 0..2 {
        let id = match cx.store.enrichment(owner, project).await {
            Ok(found) => found.value.notes?,
            Err(error) => {
                tracing::warn!(%error, "the state of an enrichment can't be read");
                return None;
            }
        };
        if let Some(known) = notes.get(id) {
            return Some(known);
        }
        match cx.blobs.get(&BlobKey::theme_notes(owner, project, id)).await {
            Ok(bytes) => {
                let read = Arc::new(read(&bytes));
                notes.put(id, read.clone());
                return Some(read);
            }
            Err(BlobError::Missing { .. }) => {}
            Err(error) => {
                tracing::warn!(%error, "notes can't be read");
                return None;
            }
        }
    }
    None
}

/// Reads stored notes. Notes that can't be read are ignored, so that the model writes them again.
fn read(bytes: &[u8]) -> Notes {
    Notes::from_json(bytes).unwrap_or_else(|error| {
        tracing::warn!(%error, "stored notes are not used");
        Notes::default()
    })
}
