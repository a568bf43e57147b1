//! Context documents: begun, updated, replaced and restored. Every write expects the version that was read, and is
//! retried if another writer was faster. So no concurrent update is lost.

use std::time::Duration;

use domain::context::import::{self, ImportError};
use domain::context::{
    Cause, Document, Mode, ModeRequest, RecommendedAgent, Update, Workflow, markdown, update,
};
use domain::ids::{Owner, ProjectId};
use domain::validate::FieldErrors;
use futures::FutureExt;
use serde::Serialize;
use utoipa::ToSchema;

use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::page::{self, Page, PageQuery};
use crate::flows::{edit, existing};
use crate::request::caller::IfMatch;
use crate::store::keys::Guard;
use crate::store::projects::documents::{DocumentVersion, StoredDocument};
use crate::store::table::Written;
use crate::store::{Once, Store, StoreError, Tries, Versioned, keys};

/// How long a write is retried. Two hundred concurrent writes need a few seconds.
const MAX_RETRY_TIME: Duration = Duration::from_secs(20);

/// The name of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentName {
    pub project: ProjectId,
    pub workflow: Workflow,
}

/// A context document as clients see it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct DocumentView {
    pub project_id: ProjectId,
    pub workflow: Workflow,
    #[serde(flatten)]
    pub document: Document,
    /// Send it in `If-Match`, or use it to restore this version.
    #[schema(example = 3)]
    pub version: u64,
}

impl DocumentView {
    #[must_use]
    pub fn markdown(&self) -> String {
        markdown::export(&self.document)
    }
}

/// The result of a prompt that names a mode.
#[derive(Clone, Debug)]
pub struct Entered {
    /// The document after the prompt. Absent if ACT or EVAL comes before any plan.
    pub document: Option<DocumentView>,
    /// Whether the prompt was too long to be stored completely as the task.
    pub task_cut: bool,
    /// The version that a new document has replaced. It can be restored.
    pub replaced: Option<u64>,
}

fn view(place: &DocumentName, document: Document, version: u64) -> DocumentView {
    DocumentView { project_id: place.project, workflow: place.workflow.clone(), document, version }
}

/// The document, if there is one.
///
/// # Errors
/// 404 if the project does not exist.
pub async fn find(cx: &Cx, owner: &Owner, place: &DocumentName) -> Result<Option<DocumentView>> {
    existing::project(cx, owner, place.project).await?;
    let found = cx.store.document(owner, place.project, &place.workflow).await?;
    Ok(found.map(|found| view(place, found.value.document, found.version)))
}

/// The newest version of a document, or a given one.
///
/// # Errors
/// 404 if the project, the document or the version does not exist.
pub async fn read(
    cx: &Cx,
    owner: &Owner,
    place: &DocumentName,
    version: Option<u64>,
) -> Result<DocumentView> {
    let newest = find(cx, owner, place).await?.ok_or(Error::NotFound("context document"))?;
    match version {
        Some(version) if version != newest.version => {
            let found = cx.store.document_version(owner, place.project, &place.workflow, version).await?;
            found.map(|kept| view(place, kept.document, version)).ok_or(Error::NotFound("version"))
        }
        _ => Ok(newest),
    }
}

/// Processes a prompt: begins a document if the prompt begins a workflow, and otherwise returns the existing one.
///
/// # Errors
/// 404 if the project does not exist.
pub async fn enter(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    place: &DocumentName,
    request: &ModeRequest,
    recommended: Option<RecommendedAgent>,
) -> Result<Entered> {
    existing::project(cx, owner, place.project).await?;
    let now = cx.clock.now();
    let (begun, task_cut) = update::begin(request.mode, &request.prompt, recommended, now);
    let decide = |current: Option<&DocumentView>| {
        let begins = update::begins(request, current.map(|current| &current.document));
        Ok(begins.then(|| begun.clone()))
    };
    let document = write(cx, owner, once, place, Cause::Begun, decide).await?;
    let new = document.as_ref().filter(|document| document.document == begun);
    let replaced = new.and_then(|new| new.version.checked_sub(1)).filter(|version| *version > 0);
    Ok(Entered { task_cut: task_cut && new.is_some(), replaced, document })
}

/// Merges an update into the document. `None` if there is no document.
///
/// # Errors
/// 404 if the project does not exist, 400 with every invalid field and its limit.
pub async fn update(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    place: &DocumentName,
    mode: Mode,
    update: &Update,
) -> Result<Option<DocumentView>> {
    existing::project(cx, owner, place.project).await?;
    update.check()?;
    let now = cx.clock.now();
    let decide = |current: Option<&DocumentView>| match current {
        None => Ok(None),
        Some(current) => Ok(Some(current.document.updated(mode, update, now)?)),
    };
    write(cx, owner, once, place, Cause::Updated, decide).await
}

/// Replaces the document with the content of a Markdown text.
///
/// # Errors
/// 404 if the project does not exist, 400 if the text is not a document, 409 if `If-Match` is not the current version.
pub async fn replace(
    cx: &Cx,
    owner: &Owner,
    place: &DocumentName,
    if_match: Option<IfMatch>,
    text: &str,
) -> Result<DocumentView> {
    existing::project(cx, owner, place.project).await?;
    let (text, now) = (text.to_owned(), cx.clock.now());
    let imported = cx.compute.answers.run(move |_| Ok(import::import(&text, now))).await?;
    let document = imported.map_err(|error| match error {
        ImportError::Invalid(errors) => errors,
        other => FieldErrors::one("context.md", other.to_string()),
    })?;
    put(cx, owner, &Once::none(), place, Cause::Imported, if_match, document).await
}

/// Makes an older version the newest one.
///
/// # Errors
/// 404 if the project, the document or the version does not exist, 409 if `If-Match` is not the newest version.
pub async fn restore(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    place: &DocumentName,
    version: u64,
    if_match: Option<IfMatch>,
) -> Result<DocumentView> {
    let older = read(cx, owner, place, Some(version)).await?;
    put(cx, owner, once, place, Cause::Restored, if_match, older.document).await
}

async fn put(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    place: &DocumentName,
    cause: Cause,
    if_match: Option<IfMatch>,
    document: Document,
) -> Result<DocumentView> {
    let decide = |current: Option<&DocumentView>| {
        match current {
            Some(current) => edit::check(if_match, current.version, current)?,
            None if if_match.is_some_and(|IfMatch(version)| version > 0) => {
                return Err(Error::NotFound("context document"));
            }
            None => {}
        }
        Ok(Some(document.clone()))
    };
    let written = write(cx, owner, once, place, cause, decide).await?;
    written.ok_or_else(|| Error::internal("a decided document was not written"))
}

/// Reads the document, calls `decide`, and writes the result if it differs. Retries if another writer was faster.
/// Returns the resulting document.
async fn write(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    place: &DocumentName,
    cause: Cause,
    decide: impl Fn(Option<&DocumentView>) -> Result<Option<Document>>,
) -> Result<Option<DocumentView>> {
    let key = keys::document(owner, place.project, &place.workflow);
    let _lock = cx.locks.lock(&key).await;
    let mut tries = Tries::within(MAX_RETRY_TIME);
    loop {
        tries.next().await?;
        let found = cx.store.document(owner, place.project, &place.workflow).await?;
        let current = found.map(|Versioned { value, version }| view(place, value.document, version));
        let Some(document) = decide(current.as_ref())? else { return Ok(current) };
        let version = match current {
            Some(current) if current.document == document => return Ok(Some(current)),
            Some(current) => current.version,
            None => 0,
        };
        let kept = StoredDocument { workflow: place.workflow.clone(), document };
        let now = cx.clock.now();
        let writes = Store::document_writes(owner, place.project, &kept, version, cause, now)?;
        match cx.store.commit(once, writes).await {
            Ok(Written::Yes) => return Ok(Some(view(place, kept.document, version + 1))),
            Ok(Written::Refused(Guard::Document)) | Err(StoreError::Contended) => {}
            Ok(Written::Refused(_)) => return Err(Error::NotFound("project")),
            Err(error) => return Err(error.into()),
        }
    }
}

/// A project's documents, ordered by workflow name.
///
/// # Errors
/// 404 if the project does not exist, 400 if `limit` or `cursor` is invalid.
pub async fn list(
    cx: &Cx,
    owner: &Owner,
    project: ProjectId,
    query: &PageQuery,
) -> Result<Page<DocumentView>> {
    existing::project(cx, owner, project).await?;
    let read = |after: Option<String>, limit| {
        async move { cx.store.documents(owner, project, after.as_deref(), limit).await }.boxed()
    };
    let list = format!("documents of {project}");
    let found = page::filtered(owner, &list, query, read, |_| true).await?;
    Ok(found.map(|Versioned { value, version }| {
        let place = DocumentName { project, workflow: value.workflow };
        view(&place, value.document, version)
    }))
}

/// The versions of a document, newest first.
///
/// # Errors
/// 404 if the project or the document does not exist, 400 if `limit` or `cursor` is invalid.
pub async fn versions(
    cx: &Cx,
    owner: &Owner,
    place: &DocumentName,
    query: &PageQuery,
) -> Result<Page<DocumentVersion>> {
    find(cx, owner, place).await?.ok_or(Error::NotFound("context document"))?;
    let (project, workflow) = (place.project, &place.workflow);
    let read = |after: Option<String>, limit| {
        async move { cx.store.document_versions(owner, project, workflow, after.as_deref(), limit).await }
            .boxed()
    };
    let list = format!("versions of {project} {workflow}");
    Ok(page::filtered(owner, &list, query, read, |_| true).await?.map(|version| version.value))
}
