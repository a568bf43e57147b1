//! Makes notes from files in batches, the most important files first. The notes are saved after each batch.

use std::collections::BTreeMap;

use bytes::Bytes;
use domain::background::jobs::Outcome;
use domain::models::routing::{AgentRole, Ask};
use domain::models::{Message, ModelRequest, ModelTier, Stop, ToolChoice};
use domain::projects::enrichment::{Enrichment, ThemeRevision};
use domain::projects::theme::ThemeFile;
use jiff::{SignedDuration, Timestamp};
use models::{self, Models};
use theme::enrich::answer::Raw;
use theme::enrich::choose::{Candidate, answer_ceiling, batches, missing};
use theme::enrich::{Notes, answer, prompt};
use uuid::Uuid;

use super::{Held, LOST, choose, read};
use crate::{contents, current};
use shared::blobs::{BlobError, BlobKey};
use shared::error::{Error, Result};
use shared::flows::ask::{self, Answered, CALL, Failure, WorkBudget};
use shared::flows::background::lease;
use shared::flows::existing;
use shared::model_choice;

/// A pass stops after this many unusable answers in a row.
const MAX_EMPTY_ANSWERS: u32 = 3;

/// Unused notes are kept for this time, because another worker may be about to store a reference to them.
const YOUNG: std::time::Duration = std::time::Duration::from_secs(3_600);

/// How a pass ended.
pub(super) enum Ended {
    /// Every file has a note or was given up.
    Done(ThemeRevision),
    Stopped(ThemeRevision, Stop),
    /// Files have changed, and the map is not up to date yet.
    Changing,
    /// The project has disabled enrichment.
    Off,
    /// The time is up, and work is left.
    TimeUp,
}

/// Makes the notes that are missing. `tally` says how many were missing, how many were made and what they cost, also if it fails.
pub(super) async fn run(
    held: &Held<'_>,
    models: &Models,
    deadline: Timestamp,
    tally: &mut Outcome,
) -> Result<Ended> {
    let (cx, owner, project) = (held.cx, held.owner, held.project);
    let found = cx.store.enrichment(owner, project).await?.value;
    let notes = match found.notes {
        None => Notes::default(),
        Some(id) => match cx.blobs.get(&BlobKey::theme_notes(owner, project, id)).await {
            Ok(bytes) => read(&bytes),
            Err(BlobError::Missing { .. }) => Notes::default(),
            Err(error) => return Err(error.into()),
        },
    };
    let call = SignedDuration::try_from(CALL).unwrap_or(SignedDuration::ZERO);
    let mut pass = Pass {
        held,
        models,
        last_call: deadline - lease::RESERVE - call,
        notes,
        stored: found.notes,
        tier: None,
        budget: WorkBudget {
            name: "the ceiling of one pass",
            spent: found.pass_micros,
            ceiling: cx.config.budget.enrichment_micros,
        },
        booked: found.pass_micros,
        model: found.model,
        empty_answers: 0,
        tally,
    };
    loop {
        if let Some(ended) = pass.round().await? {
            return Ok(ended);
        }
    }
}

/// An answer in the words of the theme crate.
fn raw(answered: Answered) -> Raw {
    match answered {
        Answered::Call(arguments) => Raw::Call(arguments),
        Answered::Text(text) => Raw::Text(text),
    }
}

struct Pass<'a> {
    held: &'a Held<'a>,
    models: &'a Models,
    /// No call begins after this time.
    last_call: Timestamp,
    notes: Notes,
    /// The object that the notes were last saved in.
    stored: Option<Uuid>,
    /// The tier of all calls of the pass, so that they share the provider's cache.
    tier: Option<ModelTier>,
    budget: WorkBudget,
    /// How much of the spending is stored.
    booked: i64,
    model: Option<String>,
    empty_answers: u32,
    tally: &'a mut Outcome,
}

impl Pass<'_> {
    /// The current revision of the theme, or the reason to end the pass.
    async fn look(&self) -> Result<Result<ThemeRevision, Ended>> {
        let Held { cx, owner, project, .. } = *self.held;
        if !existing::project(cx, owner, project).await?.value.enrichment {
            return Ok(Err(Ended::Off));
        }
        let theme = cx.store.theme(owner, project).await?.value;
        if !theme.is_current() {
            return Ok(Err(Ended::Changing));
        }
        if cx.clock.now() > self.last_call {
            return Ok(Err(Ended::TimeUp));
        }
        Ok(Ok(ThemeRevision::of(&theme)))
    }

    /// Asks about all files without a note. If files change meanwhile, the round ends, and the next round lists the files again.
    async fn round(&mut self) -> Result<Option<Ended>> {
        let Held { cx, owner, project, .. } = *self.held;
        let moment = match self.look().await? {
            Ok(moment) => moment,
            Err(ended) => return Ok(Some(ended)),
        };
        let warm = current(cx, owner, project).await?;
        if (warm.version.generation, warm.version.revision) != (moment.generation, moment.revision) {
            return Ok(None);
        }
        let index = &warm.index;
        let dropped = self.notes.keep(index);
        let candidates = index.worth_describing();
        let wanted = candidates.len() as u64;
        let missing = missing(candidates, &self.notes);
        if missing.is_empty() {
            self.finish(wanted, dropped).await?;
            return Ok(Some(Ended::Done(moment)));
        }
        // A later round looks for the same files again.
        self.tally.work_found = self.tally.work_found.max(self.tally.artefacts + missing.len() as u64);
        let tier = *self.tier.get_or_insert(choose::tier(missing.len()));
        let ask = Ask { role: AgentRole::Indexer, tier: Some(tier), ..Ask::default() };
        let route = model_choice::route_of(self.models, cx, owner, &ask, 0).await?;
        let of_tier = &route.map_err(|error| Error::internal(error.to_string()))?.candidates;
        let (system, tool) = (choose::system(index), choose::tool());
        let fixed = system.iter().map(|block| block.text.len()).sum::<usize>()
            + tool.input_schema.to_string().len()
            + tool.description.len();
        let files = cx.store.all_theme_files(owner, project, moment.generation).await?;
        let files: BTreeMap<&str, &ThemeFile> = files.iter().map(|file| (file.path.as_str(), file)).collect();
        let fits = |bytes| choose::fits(of_tier[0].id(), bytes);
        for batch in batches(fits, missing, &self.notes, fixed) {
            match self.look().await? {
                Ok(now) if now == moment => {}
                Ok(_) => return Ok(None),
                Err(ended) => return Ok(Some(ended)),
            }
            if self.empty_answers >= MAX_EMPTY_ANSWERS {
                let reason = format!("none of the last {MAX_EMPTY_ANSWERS} answers of the model was usable");
                return Ok(Some(Ended::Stopped(moment, Stop { unavailable: false, reason, again_at: None })));
            }
            let Some(shown) = self.shown(&batch, &files).await? else { return Ok(None) };
            let request = ModelRequest {
                system: system.clone(),
                tools: vec![tool.clone()],
                tool_choice: ToolChoice::Tool(prompt::TOOL.to_owned()),
                messages: vec![Message::user(prompt::question(
                    batch.iter().zip(&shown).map(|(file, content)| (file, content.as_ref())),
                ))],
                max_output_tokens: answer_ceiling(&batch),
                cache_last_turn: false,
                ..ModelRequest::default()
            };
            if let Some(stop) = self.ask(of_tier, &request, &batch).await? {
                self.book(wanted).await?;
                return Ok(Some(Ended::Stopped(moment, stop)));
            }
            self.save(wanted).await?;
        }
        Ok(None)
    }

    /// The contents of a batch's files. `None` if one of them has changed.
    async fn shown(
        &self,
        batch: &[Candidate],
        files: &BTreeMap<&str, &ThemeFile>,
    ) -> Result<Option<Vec<Bytes>>> {
        let Held { cx, owner, project, .. } = *self.held;
        let records: Option<Vec<&ThemeFile>> = batch
            .iter()
            .map(|file| files.get(&*file.path).copied().filter(|record| record.half_hash() == file.content))
            .collect();
        let Some(records) = records else { return Ok(None) };
        let read: BTreeMap<String, Bytes> =
            contents(cx, owner, project, records.into_iter()).await?.into_iter().collect();
        Ok(batch.iter().map(|file| read.get(&file.path).cloned()).collect())
    }

    /// Asks about a batch and stores the usable parts of the answer. Returns the reason if no further call would succeed now.
    async fn ask(
        &mut self,
        of_tier: &[models::Candidate],
        request: &ModelRequest,
        batch: &[Candidate],
    ) -> Result<Option<Stop>> {
        let Held { cx, owner, .. } = *self.held;
        let spent = self.budget.spent;
        let asked = ask::ask(cx, owner, of_tier, request, &mut self.budget, self.last_call).await;
        self.tally.cost_micros += self.budget.spent - spent;
        let mut notes = match asked {
            Ok(answer) => {
                let model = self.model.insert(answer.model.to_string());
                answer::read(&raw(answer.answered), batch, model, cx.clock.now())
            }
            Err(Failure::Unusable(reason)) => {
                tracing::warn!(reason, files = batch.len(), "files are not described");
                BTreeMap::new()
            }
            Err(Failure::Stop(stop) | Failure::TooDear(stop)) => return Ok(Some(stop)),
            Err(Failure::Failed(error)) => return Err(error),
        };
        self.empty_answers = if notes.is_empty() { self.empty_answers + 1 } else { 0 };
        for file in batch {
            match notes.remove(&file.path) {
                Some(note) => {
                    self.notes.write(&file.path, &file.content, note);
                    self.tally.artefacts += 1;
                }
                None => self.notes.failed(&file.path, &file.content),
            }
        }
        Ok(None)
    }

    /// Saves the notes as a new object, and makes the project refer to it.
    async fn save(&mut self, wanted: u64) -> Result<()> {
        let Held { cx, owner, project, .. } = *self.held;
        let id = cx.clock.uuid();
        let key = BlobKey::theme_notes(owner, project, id);
        cx.blobs.put(&key, self.notes.to_json(), "application/json").await?;
        let written = self.notes.written() as u64;
        let turned = self.held.edit(|it| Enrichment { notes: Some(id), written, wanted, ..self.booked(it) });
        match turned.await {
            Ok(_) => {}
            Err(error) => {
                // Deleted only if it is certain that nothing refers to them.
                if matches!(error, Error::Conflict { code: LOST, .. }) {
                    self.held.discard(id).await;
                }
                return Err(error);
            }
        }
        self.booked = self.budget.spent;
        if let Some(old) = self.stored.replace(id) {
            self.held.discard(old).await;
        }
        Ok(())
    }

    /// The record with the cost since it was last stored.
    fn booked(&self, it: Enrichment) -> Enrichment {
        let cost = self.budget.spent - self.booked;
        Enrichment {
            cost_micros: it.cost_micros + cost,
            pass_micros: it.pass_micros + cost,
            model: self.model.clone(),
            ..it
        }
    }

    /// Stores the progress and the cost of failed calls, if there are no new notes to save.
    async fn book(&mut self, wanted: u64) -> Result<()> {
        let written = self.notes.written() as u64;
        self.held.edit(|it| Enrichment { written, wanted, ..self.booked(it) }).await?;
        self.booked = self.budget.spent;
        Ok(())
    }

    /// Ends a pass in which no note is missing. Deletes the notes of earlier contents and earlier holders.
    async fn finish(&mut self, wanted: u64, dropped: bool) -> Result<()> {
        let Held { cx, owner, project, .. } = *self.held;
        if dropped {
            self.save(wanted).await?;
        } else {
            self.book(wanted).await?;
        }
        let kept = self.stored.map(|id| id.simple().to_string());
        let all = BlobKey::all_theme_notes(owner, project);
        Ok(cx.blobs.sweep(&all, YOUNG, |name| Some(name) == kept.as_deref()).await?)
    }
}
