//! A synchronisation: asked for, and done by an executor.
//!
//! The steps are the commits and texts that it takes, the plan, one question for each group of parts, the checks, and one transaction with
//! everything that changes. After each answer of a model the draft is stored, so an executor that takes over asks nothing twice. The
//! transaction is refused if another executor has the synchronisation, or if a document was changed or deleted meanwhile; then it begins
//! again with the new texts.

use std::collections::BTreeMap;

use domain::background::dispatch::LEASE;
use domain::background::jobs::{JobKind, Outcome};
use domain::ids::{Owner, ProjectId, SyncId};
use domain::living::checks::{Known, Problem};
use domain::living::parts::{Part, PartName, joined, split};
use domain::living::prompt::{
    MAX_TEXTS, PLAN_RULES, Plan, TOOL, WRITE_RULES, plan_question, repair, repair_form, tool_description,
    tool_schema, write_question,
};
use domain::living::sections::sections;
use domain::living::sync::Sync;
use domain::living::{Commit, Doc, DocName, MAX_SYNC_MICROS};
use domain::models::routing::{AgentRole, Ask};
use domain::models::{CacheTtl, Message, ModelRequest, SystemBlock, ToolChoice, ToolSpec};
use domain::notices::plan::{Event, Happening};
use domain::notices::{About, Cause, LeadsTo, NoticeKey, NoticeKind};
use jiff::{SignedDuration, Timestamp};
use models::Models;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{New, draft_key, text_of};
use crate::blobs::BlobError;
use crate::context::{Cx, Data};
use crate::error::{Error, Result};
use crate::flows::ask::{self, Answered, WorkBudget};
use crate::flows::background::due;
use crate::flows::background::jobs::{self, Due};
use crate::flows::background::lease::{ClaimedJob, Interrupted, RESERVE};
use crate::flows::existing;
use crate::model_choice;
use crate::store::projects::living::{LivingCause, LivingVersion};
use crate::store::table::Write;
use crate::store::{DueItem, Job, Once, Store, Tries, Versioned};

/// The longest answer, in tokens: texts of [`MAX_TEXTS`] bytes, in languages with three bytes for each token.
const MAX_ANSWER: u32 = 16_000;

/// How long one answer may take, with all its tries.
const LONGEST_ANSWER: SignedDuration = SignedDuration::from_mins(9);

/// How long to wait before a synchronisation that has failed is begun again, if the provider names no time.
const AGAIN: SignedDuration = SignedDuration::from_mins(5);

/// The longest such time.
const LONGEST_AGAIN: SignedDuration = SignedDuration::from_hours(1);

/// Asks for a synchronisation, and returns it. If one is under way, it is returned. If no commit waits, it has ended at once.
///
/// # Errors
/// 404 if the project does not exist; 409 if it has no document, or if the account is stopped.
pub async fn request(cx: &Cx, owner: &Owner, once: &Once, project: ProjectId) -> Result<Sync> {
    crate::stopped::check(cx, owner).await?;
    let sync = store_request(cx, owner, once, project).await?;
    if !sync.has_ended() {
        due::dispatch(cx, &DueItem::docs(owner, project)).await;
    }
    Ok(sync.shown())
}

/// Like [`request`], for a run of an agent. Nothing is sent to the executors: the next sweep does that.
///
/// # Errors
/// Those of [`request`], without the stopped account, in which no run goes on.
pub async fn store_request(data: &Data, owner: &Owner, once: &Once, project: ProjectId) -> Result<Sync> {
    existing::project(data, owner, project).await?;
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let before = data.store.docs_sync(owner, project).await?;
        if let Some(before) = before.as_ref().filter(|before| !before.value.has_ended()) {
            return Ok(before.value.clone());
        }
        if data.store.living_documents(owner, project).await?.is_empty() {
            return Err(Error::conflict("no_documents", "the project has no document: create one first"));
        }
        let now = data.clock.now();
        let failed = before.as_ref().is_some_and(|before| before.value.error.is_some());
        let mut sync = Sync::asked(SyncId::from_uuid(data.clock.uuid()), project, failed, now);
        if data.store.changelog(owner, project).await?.value.commits().is_empty() {
            sync.succeed(Vec::new(), now);
        }
        let version = before.map_or(0, |before| before.version);
        let mut writes = vec![sync.write(owner, version, now)?];
        writes.extend(Store::project_exists(owner, project));
        writes.extend(told(owner, &sync, data.clock.uuid(), now)?);
        if data.store.commit(once, writes).await?.done() {
            return Ok(sync);
        }
        existing::project(data, owner, project).await?;
    }
}

/// The newest synchronisation of a project.
///
/// # Errors
/// 404 if the project does not exist, or if there was none.
pub async fn newest(cx: &Cx, owner: &Owner, project: ProjectId) -> Result<Sync> {
    existing::project(cx, owner, project).await?;
    let found = cx.store.docs_sync(owner, project).await?;
    Ok(found.ok_or(Error::NotFound("synchronisation"))?.value.shown())
}

/// The write that tells a person that a synchronisation has failed, or that it is right again. None if neither is so.
fn told(owner: &Owner, sync: &Sync, id: Uuid, now: Timestamp) -> Result<Option<Write>> {
    if !sync.has_ended() || (sync.error.is_none() && !sync.after_failure) {
        return Ok(None);
    }
    let happening = if sync.error.is_some() { Happening::Happened } else { Happening::Over };
    let mut reason = sync.error.clone().unwrap_or_default();
    if let Some(first) = sync.problems.first() {
        reason = format!("{reason}; the first one is in {}: {}", first.document, first.text);
    }
    let about = About::new(
        "The synchronisation of documents",
        &reason,
        LeadsTo::Docs { project_id: sync.project_id },
    );
    let cause = Cause::new(&format!("docs:{}", sync.project_id));
    let key = NoticeKey { kind: NoticeKind::Failed, action_id: None, cause };
    let event = Event::new(key, happening, about);
    let id = domain::ids::NoticeId::from_uuid(id);
    Ok(Some(Store::happened_write(owner, id, event, now)?))
}

/// What the tries so far have brought.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Draft {
    /// The commits that are taken.
    commits: Vec<Commit>,
    /// The versions of the documents that were shown to the models.
    documents: BTreeMap<DocName, u64>,
    plan: Plan,
    /// The answers of the groups of the plan, in their order.
    answers: Vec<String>,
    /// How many of these answers were written again, because they had problems.
    #[serde(default)]
    is_repaired: bool,
}

/// A document as it was read.
struct Read {
    record: LivingVersion,
    read_at: u64,
    text: String,
}

/// Why a synchronisation stops before its end.
enum Unfinished {
    Interrupted(Interrupted),
    /// A document was changed meanwhile.
    Changed,
    /// It may succeed later.
    Later {
        reason: String,
        again_at: Option<Timestamp>,
    },
    /// It will not succeed.
    Never(String),
    /// The texts of the model have problems.
    Refused(Vec<Problem>),
}

impl<E: Into<Interrupted>> From<E> for Unfinished {
    fn from(error: E) -> Self {
        Self::Interrupted(error.into())
    }
}

impl From<ask::Failure> for Unfinished {
    fn from(failure: ask::Failure) -> Self {
        match failure {
            ask::Failure::Unusable(reason) => Self::Never(reason),
            ask::Failure::Stop(stop) => Self::Later { reason: stop.reason, again_at: stop.again_at },
            ask::Failure::TooDear(stop) => Self::Never(stop.reason),
            ask::Failure::Failed(error) => Self::Interrupted(Interrupted::Failed(error)),
        }
    }
}

/// Does a synchronisation that is due.
///
/// # Errors
/// If the table or the bucket does not answer. Then it stays due.
pub(crate) async fn go_on(cx: &Cx, owner: &Owner, project: ProjectId, deadline: Timestamp) -> Result<()> {
    let Some(found) = cx.store.docs_sync(owner, project).await? else { return Ok(()) };
    // Whoever asks again sends another message. It takes nothing away from an executor that works.
    if found.value.has_ended() || found.value.is_held(cx.clock.now()) {
        return Ok(());
    }
    if let Err(Error::NotFound(_)) = existing::project(cx, owner, project).await {
        return Ok(());
    }
    let (asked, before) = (found.value.requested_at, found.version);
    let mut given_up = found.value.clone();
    let record = jobs::begin(cx, owner, JobKind::DocsSync, &project.to_string(), Due::At(asked)).await;
    if !given_up.begin(cx.clock.now()) {
        // It was begun too often.
        let now = cx.clock.now();
        let mut writes = vec![given_up.write(owner, before, now)?];
        writes.extend(told(owner, &given_up, cx.clock.uuid(), now)?);
        let _ = cx.store.write_all(writes).await?;
        record.end(Outcome { error: given_up.error, ..Outcome::default() }).await;
        return Ok(());
    }
    let Some(claimed) = ClaimedJob::claim(cx, owner, found, deadline).await? else { return Ok(()) };
    let spent = claimed.job.cost_micros;
    let models = ask::models(cx)?;
    let call = SignedDuration::try_from(ask::CALL).unwrap_or_default();
    let mut work = Work {
        cx,
        owner,
        project,
        claimed,
        models,
        budget: WorkBudget {
            name: "the ceiling of a synchronisation of documents",
            spent,
            ceiling: MAX_SYNC_MICROS,
        },
        last_call: deadline - RESERVE - call,
        taken: 0,
    };
    let mut ended = work.some().await;
    // A person may change a document meanwhile, but not without end.
    for _ in 0..3 {
        if matches!(ended, Err(Unfinished::Changed)) {
            work.forget_draft().await;
            ended = work.some().await;
        }
    }
    let Work { mut claimed, budget, taken, .. } = work;
    claimed.job.cost_micros = budget.spent;
    let tally = Outcome { work_found: taken, cost_micros: budget.spent - spent, ..Outcome::default() };
    let now = cx.clock.now();
    let unfinished = match ended {
        Ok(changed) => {
            let artefacts = changed as u64;
            record.end(Outcome { artefacts, skipped: changed == 0, ..tally }).await;
            return Ok(());
        }
        Err(unfinished) => unfinished,
    };
    match unfinished {
        Unfinished::Interrupted(Interrupted::Lost) => record.cut_off(&tally).await,
        Unfinished::Interrupted(Interrupted::TimeUp | Interrupted::Stopping) => {
            record.cut_off(&tally).await;
            // Another executor goes on at once. That is no failure.
            claimed.job.tries = claimed.job.tries.saturating_sub(1);
            if claimed.give_back().await? {
                due::dispatch(cx, &DueItem::docs(owner, project)).await;
            }
        }
        Unfinished::Interrupted(Interrupted::Failed(error)) => {
            record.fail(tally, &error).await;
            // The cost of the try is kept, if the table answers now.
            let _ = cx.store.save_job(owner, &claimed.job, claimed.version(), now + LEASE).await;
            return Err(error);
        }
        Unfinished::Changed => {
            let reason = "documents were changed again and again meanwhile".to_owned();
            let outcome = Outcome { error: Some(reason.clone()), ..tally };
            record.end(outcome).await;
            later(cx, owner, &mut claimed, reason, now + AGAIN).await?;
        }
        Unfinished::Later { reason, again_at } => {
            record.end(Outcome { error: Some(reason.clone()), ..tally }).await;
            let again_at = again_at.unwrap_or(now + AGAIN).clamp(now + AGAIN, now + LONGEST_AGAIN);
            later(cx, owner, &mut claimed, reason, again_at).await?;
        }
        Unfinished::Never(reason) => {
            claimed.job.fail(&reason, now);
            give_up(cx, owner, &claimed).await?;
            record.end(Outcome { error: Some(reason), ..tally }).await;
        }
        Unfinished::Refused(problems) => {
            claimed.job.refuse(problems, now);
            give_up(cx, owner, &claimed).await?;
            record.end(Outcome { error: claimed.job.error.clone(), ..tally }).await;
        }
    }
    Ok(())
}

/// Puts a synchronisation off.
async fn later(
    cx: &Cx,
    owner: &Owner,
    claimed: &mut ClaimedJob<'_, Sync>,
    reason: String,
    at: Timestamp,
) -> Result<()> {
    tracing::warn!(reason, "a synchronisation of documents is put off");
    claimed.job.put_off(&reason);
    let _ = cx.store.save_job(owner, &claimed.job, claimed.version(), at).await?;
    Ok(())
}

/// Stores that a synchronisation has failed, together with what a person is told of it.
async fn give_up(cx: &Cx, owner: &Owner, claimed: &ClaimedJob<'_, Sync>) -> Result<()> {
    let now = cx.clock.now();
    let mut writes = vec![claimed.job.write(owner, claimed.version(), now)?];
    writes.extend(told(owner, &claimed.job, cx.clock.uuid(), now)?);
    if cx.store.write_all(writes).await?.done() {
        due::dispatch(cx, &DueItem::notices(owner)).await;
        tracing::warn!(error = claimed.job.error, "a synchronisation of documents has failed");
    }
    Ok(())
}

struct Work<'a> {
    cx: &'a Cx,
    owner: &'a Owner,
    project: ProjectId,
    claimed: ClaimedJob<'a, Sync>,
    models: Models,
    budget: WorkBudget,
    last_call: Timestamp,
    /// How many commits this try has taken.
    taken: u64,
}

impl Work<'_> {
    /// The whole synchronisation. Returns how many documents it has changed.
    async fn some(&mut self) -> Result<usize, Unfinished> {
        let documents = self.read_documents().await?;
        let docs: Vec<Doc<'_>> =
            documents.iter().map(|read| Doc { name: &read.record.name, text: &read.text }).collect();
        let parts: Vec<Part<'_>> = docs.iter().flat_map(split).collect();
        let mut draft = match self.stored_draft(&documents).await? {
            Some(draft) => draft,
            None => match self.begin(&documents, &parts).await? {
                Some(draft) => draft,
                None => return self.finish(&[], Vec::new()).await,
            },
        };
        self.taken = draft.commits.len() as u64;
        let length =
            |name: &PartName| parts.iter().find(|part| part.name == *name).map_or(0, |part| part.text.len());
        let groups = draft.plan.groups(length);
        let of_group = |group: &[PartName]| -> Vec<Part<'_>> {
            parts.iter().filter(|part| group.contains(&part.name)).cloned().collect()
        };
        while let Some(group) = groups.get(draft.answers.len()) {
            let question = write_question(&draft.commits, &draft.plan, &of_group(group));
            let answer = self.write(group, vec![Message::user(question)]).await?;
            draft.answers.push(answer);
            self.store_draft(&draft).await?;
        }
        let known = Known::new(docs.clone(), &draft.commits);
        let mut new = texts(&docs, &groups, &draft.answers);
        let mut problems = check(&known, &new);
        if !problems.is_empty() && !draft.is_repaired {
            for (n, group) in groups.iter().enumerate() {
                let is_of = |problem: &&Problem| group.iter().any(|part| part.document == problem.document);
                let of_it: Vec<Problem> = problems.iter().filter(is_of).cloned().collect();
                if of_it.is_empty() {
                    continue;
                }
                let talk = vec![
                    Message::user(write_question(&draft.commits, &draft.plan, &of_group(group))),
                    Message::assistant(draft.answers[n].clone()),
                    Message::user(repair(&of_it)),
                ];
                draft.answers[n] = self.write(group, talk).await?;
            }
            draft.is_repaired = true;
            self.store_draft(&draft).await?;
            new = texts(&docs, &groups, &draft.answers);
            problems = check(&known, &new);
        }
        if !problems.is_empty() {
            return Err(Unfinished::Refused(problems));
        }
        self.claimed.job.left_out = draft.plan.left_out as u64;
        let changed = documents.iter().filter_map(|read| {
            let text = new.remove(&read.record.name).filter(|text| *text != read.text)?;
            Some((read, text))
        });
        let changed: Vec<(&Read, String)> = changed.collect();
        self.finish(&draft.commits, changed).await
    }

    async fn read_documents(&self) -> Result<Vec<Read>, Unfinished> {
        let mut documents = Vec::new();
        for Versioned { value: record, version } in
            self.cx.store.living_documents(self.owner, self.project).await?
        {
            let text = match text_of(self.cx, self.owner, self.project, &record).await {
                // It was replaced after the record was read.
                Err(Error::NotFound(_)) => return Err(Unfinished::Changed),
                text => text?,
            };
            documents.push(Read { record, read_at: version, text });
        }
        Ok(documents)
    }

    /// The draft of an earlier try, if the documents are still those that it was made from.
    async fn stored_draft(&mut self, documents: &[Read]) -> Result<Option<Draft>, Unfinished> {
        let Some(id) = self.claimed.job.draft else { return Ok(None) };
        let draft = match self.cx.blobs.get(&draft_key(self.owner, self.project, id)).await {
            Ok(bytes) => serde_json::from_slice::<Draft>(&bytes).ok(),
            Err(BlobError::Missing { .. }) => None,
            Err(error) => return Err(Error::from(error).into()),
        };
        let draft = draft.filter(|draft| draft.documents == versions(documents));
        if draft.is_none() {
            self.forget_draft().await;
        }
        Ok(draft)
    }

    /// Takes the commits that wait, and asks which parts they change. None if there is nothing to do.
    async fn begin(&mut self, documents: &[Read], parts: &[Part<'_>]) -> Result<Option<Draft>, Unfinished> {
        let commits = self.cx.store.changelog(self.owner, self.project).await?.value.commits().to_vec();
        if commits.is_empty() || documents.is_empty() {
            return Ok(None);
        }
        self.taken = commits.len() as u64;
        let total: usize = parts.iter().map(|part| part.text.len()).sum();
        let plan = if total <= MAX_TEXTS {
            Plan::of_all(parts, commits.len())
        } else {
            self.plan(&commits, parts).await?
        };
        let draft =
            Draft { commits, documents: versions(documents), plan, answers: Vec::new(), is_repaired: false };
        self.store_draft(&draft).await?;
        Ok(Some(draft))
    }

    async fn plan(&mut self, commits: &[Commit], parts: &[Part<'_>]) -> Result<Plan, Unfinished> {
        let tool = ToolSpec {
            name: TOOL.to_owned(),
            description: tool_description().to_owned(),
            input_schema: tool_schema(),
        };
        let mut reason = "";
        for _ in 0..2 {
            let request = ModelRequest {
                system: vec![SystemBlock::cached(PLAN_RULES, CacheTtl::FiveMinutes)],
                tool_choice: ToolChoice::Tool(TOOL.to_owned()),
                tools: vec![tool.clone()],
                messages: vec![Message::user(plan_question(commits, parts))],
                max_output_tokens: MAX_ANSWER,
                ..ModelRequest::default()
            };
            let arguments = match self.ask(&request).await? {
                Answered::Call(arguments) => arguments,
                // A model without tools may answer with the arguments as text.
                Answered::Text(text) => serde_json::from_str(text.trim()).unwrap_or_default(),
            };
            match Plan::read(&arguments, commits.len(), parts) {
                Ok(plan) => return Ok(plan),
                Err(error) => reason = error,
            }
        }
        Err(Unfinished::Never(format!("the answer of the model can't be used: {reason}")))
    }

    /// Asks for the texts of a group. An answer that has not the form is asked for once more.
    async fn write(&mut self, group: &[PartName], mut talk: Vec<Message>) -> Result<String, Unfinished> {
        let mut reason = String::new();
        for _ in 0..2 {
            let request = ModelRequest {
                system: vec![SystemBlock::cached(WRITE_RULES, CacheTtl::FiveMinutes)],
                messages: talk.clone(),
                max_output_tokens: MAX_ANSWER,
                ..ModelRequest::default()
            };
            let answer = match self.ask(&request).await? {
                Answered::Text(text) => text,
                Answered::Call(_) => String::new(),
            };
            match sections(&answer, group) {
                Ok(_) => return Ok(answer),
                Err(error) => {
                    reason = error.to_string();
                    let said = if answer.trim().is_empty() { "(nothing)".to_owned() } else { answer };
                    talk.extend([Message::assistant(said), Message::user(repair_form(&reason))]);
                }
            }
        }
        Err(Unfinished::Never(format!("the answer of the model can't be used: {reason}")))
    }

    async fn ask(&mut self, request: &ModelRequest) -> Result<Answered, Unfinished> {
        let now = self.cx.clock.now();
        if now > self.last_call {
            return Err(Unfinished::Interrupted(Interrupted::TimeUp));
        }
        // The usual lease is shorter than an answer with all its tries may take.
        self.claimed.keep_until(now + LONGEST_ANSWER).await?;
        let wish = Ask { role: AgentRole::Summarizer, ..Ask::default() };
        let route = model_choice::route_of(&self.models, self.cx, self.owner, &wish, 0).await?;
        let route = route.map_err(|error| Unfinished::Later { reason: error.to_string(), again_at: None })?;
        let answer =
            ask::ask(self.cx, self.owner, &route.candidates, request, &mut self.budget, self.last_call).await;
        self.claimed.job.cost_micros = self.budget.spent;
        Ok(answer?.answered)
    }

    /// Stores the draft, and saves the synchronisation with it.
    async fn store_draft(&mut self, draft: &Draft) -> Result<(), Unfinished> {
        let bytes = serde_json::to_vec(draft).map_err(|error| Error::internal(error.to_string()))?;
        let (id, old) = (self.cx.clock.uuid(), self.claimed.job.draft);
        let key = draft_key(self.owner, self.project, id);
        self.cx.blobs.put(&key, bytes, "application/json").await.map_err(Error::from)?;
        self.claimed.job.goes_on(id);
        if !self.claimed.save_now().await? {
            return Err(Unfinished::Interrupted(Interrupted::Lost));
        }
        if let Some(old) = old {
            self.delete_draft(old).await;
        }
        Ok(())
    }

    async fn forget_draft(&mut self) {
        if let Some(old) = self.claimed.job.draft.take() {
            self.delete_draft(old).await;
        }
    }

    /// What is left if this fails is deleted with the project.
    async fn delete_draft(&self, id: Uuid) {
        if let Err(error) = self.cx.blobs.delete(&draft_key(self.owner, self.project, id)).await {
            tracing::warn!(%error, "the draft of a synchronisation was not deleted");
        }
    }

    /// Stores the new texts, and clears exactly the commits that were taken.
    async fn finish(
        &mut self,
        commits: &[Commit],
        changed: Vec<(&Read, String)>,
    ) -> Result<usize, Unfinished> {
        let (cx, owner, project) = (self.cx, self.owner, self.project);
        let mut new = Vec::new();
        for (read, text) in &changed {
            let with_name = (read.record.name.clone(), Some(&read.record));
            let how = (LivingCause::Synced, Some(self.claimed.job.sync_id));
            new.push(New::put(cx, owner, project, with_name, text, how).await?);
        }
        let names: Vec<DocName> = changed.iter().map(|(read, _)| read.record.name.clone()).collect();
        let draft = self.claimed.job.draft;
        let mut tries = Tries::default();
        loop {
            tries.next().await.map_err(Error::from)?;
            let now = cx.clock.now();
            let mut changelog = cx.store.changelog(owner, project).await?;
            changelog.value.clear(commits, now);
            let mut sync = self.claimed.job.clone();
            sync.commits = commits.len() as u64;
            sync.succeed(names.clone(), now);
            let mut writes = vec![sync.write(owner, self.claimed.version(), now)?];
            writes.extend(Store::changelog_writes(owner, project, &changelog.value, changelog.version)?);
            for (new, (read, _)) in new.iter().zip(&changed) {
                writes.extend(Store::living_writes(owner, project, &new.version, read.read_at)?);
            }
            writes.extend(told(owner, &sync, cx.clock.uuid(), now)?);
            if cx.store.write_all(writes).await?.done() {
                for new in &new {
                    new.forget_oldest(cx, owner, project).await;
                }
                if let Some(draft) = draft {
                    self.delete_draft(draft).await;
                }
                if sync.after_failure {
                    due::dispatch(cx, &DueItem::notices(owner)).await;
                }
                tracing::info!(
                    commits = sync.commits,
                    documents = names.len(),
                    cost_micros = sync.cost_micros,
                    "documents were brought up to date"
                );
                return Ok(names.len());
            }
            let still = cx.store.docs_sync(owner, project).await?;
            let is_ours = still.is_some_and(|still| still.version == self.claimed.version());
            let same = self.read_documents_again(&changed).await?;
            if is_ours && same {
                // Commits were reported meanwhile.
                continue;
            }
            for new in &new {
                new.drop_text(cx).await;
            }
            let lost = Unfinished::Interrupted(Interrupted::Lost);
            return Err(if is_ours { Unfinished::Changed } else { lost });
        }
    }

    /// Whether the documents that are to be replaced are still those that were read.
    async fn read_documents_again(&self, changed: &[(&Read, String)]) -> Result<bool, Unfinished> {
        for (read, _) in changed {
            let found = self.cx.store.living_document(self.owner, self.project, &read.record.name).await?;
            if found.is_none_or(|found| found.version != read.read_at) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn versions(documents: &[Read]) -> BTreeMap<DocName, u64> {
    documents.iter().map(|read| (read.record.name.clone(), read.read_at)).collect()
}

/// The new texts of the documents that the answers change.
fn texts(docs: &[Doc<'_>], groups: &[Vec<PartName>], answers: &[String]) -> BTreeMap<DocName, String> {
    let mut written: BTreeMap<PartName, String> = BTreeMap::new();
    for (group, answer) in groups.iter().zip(answers) {
        // Each answer was read when it came.
        written.extend(sections(answer, group).into_iter().flatten());
    }
    let mut new = BTreeMap::new();
    for doc in docs {
        if written.keys().any(|part| part.document == *doc.name) {
            new.insert(doc.name.clone(), joined(doc, |part| written.get(part).cloned()));
        }
    }
    new
}

fn check(known: &Known<'_>, new: &BTreeMap<DocName, String>) -> Vec<Problem> {
    new.iter().flat_map(|(name, text)| known.check(name, text)).collect()
}
