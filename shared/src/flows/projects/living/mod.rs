//! Living documents: texts that describe a project, and that a model keeps up to date with its commits.
//!
//! - this file: documents are created, read, replaced, restored and deleted
//! - `commits`: commits are reported, and wait for a synchronisation
//! - `hook`: a webhook with which GitHub reports pushes
//! - `read`: what an agent is told
//! - `sync`: a synchronisation, which an executor does
//!
//! A text is an object with a key of its own, written before the record that names it. So writers that come at the same time never mix
//! their texts; the slower one deletes its object.

pub mod commits;
pub mod hook;
pub mod read;
pub mod sync;

use domain::ids::{Owner, ProjectId, SyncId};
use domain::living::frontmatter::{Marks, with_marks, without_marks};
use domain::living::sync::Sync;
use domain::living::{Changelog, DocName, MAX_DOCUMENTS, MAX_TEXT, Staleness};
use domain::validate::FieldErrors;
use futures::FutureExt;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::blobs::{BlobError, BlobKey};
use crate::context::{Cx, Data};
use crate::error::{Error, Result};
use crate::flows::page::{self, Page, PageQuery};
use crate::flows::{edit, existing};
use crate::request::caller::IfMatch;
use crate::store::projects::living::{LivingCause, LivingVersion};
use crate::store::table::{Write, Written};
use crate::store::{Once, Store, StoreError, Tries, Versioned, keys};

const MARKDOWN: &str = "text/markdown; charset=utf-8";

/// A living document without its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = DocsDocument)]
pub struct DocumentRow {
    #[schema(value_type = String, example = "ARCHITECTURE.md")]
    pub name: DocName,
    /// The number of the newest version. Send it in `If-Match`.
    #[schema(example = 3)]
    pub version: u64,
    /// The size of its text, in bytes.
    pub bytes: u64,
    /// Why the version was written.
    pub cause: LivingCause,
    /// The synchronisation that has written it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_id: Option<SyncId>,
    pub written_at: Timestamp,
}

/// A living document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = DocsText)]
pub struct DocumentView {
    #[serde(flatten)]
    pub document: DocumentRow,
    /// Its text. The frontmatter of the newest version has the lines `last_sync`, `last_commit` and `commits_since_sync`. They are not
    /// stored: whoever reads the document sees them as they are now.
    pub content: String,
}

/// How far the documents of a project are.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Docs)]
pub struct DocsView {
    pub project_id: ProjectId,
    /// By their names.
    pub documents: Vec<DocumentRow>,
    /// How many commits wait for a synchronisation.
    pub commits_since_sync: u64,
    /// How far the documents are behind: not at all, by one or two commits, or by more.
    pub staleness: Staleness,
    /// When a synchronisation has ended well last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_sync: Option<Timestamp>,
    /// When the newest commit was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_commit: Option<Timestamp>,
    /// The newest synchronisation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync: Option<Sync>,
}

/// A new document.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[schema(as = NewDocsDocument, example = json!({"name": "ARCHITECTURE.md", "content": "# Architecture\n\nOne program.\n"}))]
pub struct NewDocument {
    /// 1 to 100 letters, digits, hyphens, underscores and dots, beginning with a letter or a digit: the name of a file.
    pub name: String,
    /// Markdown, at most 204,800 bytes. Lines `last_sync`, `last_commit` and `commits_since_sync` of a frontmatter are left out.
    #[serde(default)]
    #[schema(max_length = 204_800)]
    pub content: String,
}

/// A new text of a document.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[schema(as = DocsContent)]
pub struct Content {
    /// Markdown, at most 204,800 bytes. Lines `last_sync`, `last_commit` and `commits_since_sync` of a frontmatter are left out.
    #[schema(max_length = 204_800, example = "# Architecture\n\nTwo programs.\n")]
    pub content: String,
}

fn row(of: LivingVersion) -> DocumentRow {
    let LivingVersion { name, version, bytes, cause, sync_id, written_at, .. } = of;
    DocumentRow { name, version, bytes, cause, sync_id, written_at }
}

/// Reads the name of a document in a path or an argument.
///
/// # Errors
/// 400.
pub fn name(text: &str) -> Result<DocName> {
    text.parse()
        .map_err(|error: domain::living::InvalidDocName| FieldErrors::one("name", error.to_string()).into())
}

/// What the frontmatter of a document says now.
fn marks(changelog: &Changelog, document: &LivingVersion) -> Marks {
    Marks {
        // It did not exist at an earlier synchronisation.
        last_sync: changelog.last_sync().filter(|at| *at >= document.created_at),
        last_commit: changelog.last_commit(),
        commits_since_sync: changelog.commits().len(),
    }
}

/// The documents of a project, and how far they are.
///
/// # Errors
/// 404 if the project does not exist.
pub async fn overview(data: &Data, owner: &Owner, project: ProjectId) -> Result<DocsView> {
    existing::project(data, owner, project).await?;
    let (documents, changelog, sync) = futures::try_join!(
        data.store.living_documents(owner, project),
        data.store.changelog(owner, project),
        data.store.docs_sync(owner, project),
    )?;
    let waiting = changelog.value.commits().len();
    Ok(DocsView {
        project_id: project,
        documents: documents.into_iter().map(|found| row(found.value)).collect(),
        commits_since_sync: waiting as u64,
        staleness: Staleness::of(waiting),
        last_sync: changelog.value.last_sync(),
        last_commit: changelog.value.last_commit(),
        sync: sync.map(|sync| sync.value.shown()),
    })
}

async fn found(
    data: &Data,
    owner: &Owner,
    project: ProjectId,
    name: &DocName,
) -> Result<Versioned<LivingVersion>> {
    existing::project(data, owner, project).await?;
    data.store.living_document(owner, project, name).await?.ok_or(Error::NotFound("document"))
}

/// The newest version of a document, or an earlier one.
///
/// # Errors
/// 404 if the project, the document or the version does not exist.
pub async fn document(
    data: &Data,
    owner: &Owner,
    project: ProjectId,
    name: &DocName,
    version: Option<u64>,
) -> Result<DocumentView> {
    let mut tries = Tries::default();
    loop {
        let newest = found(data, owner, project, name).await?.value;
        let asked = match version {
            Some(version) if version != newest.version => {
                let found = data.store.living_version(owner, project, name, version).await?;
                found.ok_or(Error::NotFound("version"))?
            }
            _ => newest,
        };
        match text_of(data, owner, project, &asked).await {
            Ok(text) if version.is_some() => {
                return Ok(DocumentView { document: row(asked), content: text });
            }
            Ok(text) => {
                let changelog = data.store.changelog(owner, project).await?.value;
                let content = with_marks(&text, marks(&changelog, &asked));
                return Ok(DocumentView { document: row(asked), content });
            }
            // It was deleted after the record was read. A document that is created anew has another text.
            Err(Error::NotFound(_)) => tries.next().await?,
            Err(error) => return Err(error),
        }
    }
}

/// The stored text of a version.
async fn text_of(data: &Data, owner: &Owner, project: ProjectId, version: &LivingVersion) -> Result<String> {
    match data.blobs.get_text(&BlobKey::living_text(owner, project, version.text)).await {
        Ok(text) => Ok(text),
        Err(BlobError::Missing { .. }) => Err(Error::NotFound("text of the document")),
        Err(error) => Err(error.into()),
    }
}

/// Checks a text that comes from outside, and returns it as it is stored.
fn checked(content: &str) -> std::result::Result<String, FieldErrors> {
    let text = without_marks(content);
    let mut errors = FieldErrors::default();
    if text.len() > MAX_TEXT {
        errors.add("content", format!("must be at most {MAX_TEXT} bytes, is {}", text.len()));
    }
    if text.contains('\0') {
        errors.add("content", "must be text without the character NUL");
    }
    errors.into_result(text)
}

/// Creates a document.
///
/// # Errors
/// 400 if the name or the text is invalid; 404 if the project does not exist; 409 if the document exists, or if the project has 20.
pub async fn create(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    project: ProjectId,
    new: NewDocument,
) -> Result<DocumentView> {
    let mut errors = FieldErrors::default();
    let name = new.name.parse::<DocName>();
    if let Err(error) = &name {
        errors.add("name", error.to_string());
    }
    let text = errors.nest("", checked(&new.content));
    let (Ok(name), Some(text)) = (name, text) else { return Err(errors.into()) };
    let with_name = (name, LivingCause::Created);
    write(cx, owner, once, project, with_name, |before, _| match before {
        None => Ok(text.clone()),
        Some(_) => Err(Error::conflict("document_exists", "a document with this name exists")),
    })
    .await
    .map(|(view, _)| view)
}

/// Replaces the text of a document, or creates the document. Returns whether it was created. The same text again changes nothing.
///
/// # Errors
/// 400 if the text is invalid; 404 if the project does not exist; 409 if `If-Match` is not the newest version, or if the project has 20
/// documents.
pub async fn replace(
    cx: &Cx,
    owner: &Owner,
    project: ProjectId,
    name: DocName,
    if_match: Option<IfMatch>,
    content: &str,
) -> Result<(DocumentView, bool)> {
    let text = checked(content)?;
    let with_name = (name, LivingCause::Edited);
    let decide = |before: Option<&LivingVersion>, view: Option<&DocumentView>| {
        match (before, view) {
            (Some(before), Some(view)) => edit::check(if_match, before.version, view)?,
            _ if if_match.is_some_and(|IfMatch(version)| version > 0) => {
                return Err(Error::NotFound("document"));
            }
            _ => {}
        }
        Ok(text.clone())
    };
    write(cx, owner, &Once::none(), project, with_name, decide).await
}

/// Makes an earlier version the newest one.
///
/// # Errors
/// 404 if the project, the document or the version does not exist; 409 if `If-Match` is not the newest version.
pub async fn restore(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    project: ProjectId,
    name: DocName,
    version: u64,
    if_match: Option<IfMatch>,
) -> Result<DocumentView> {
    let text = document(cx, owner, project, &name, Some(version)).await?.content;
    let with_name = (name, LivingCause::Restored);
    write(cx, owner, once, project, with_name, |before, view| {
        let before = before.ok_or(Error::NotFound("document"))?;
        if let Some(view) = view {
            edit::check(if_match, before.version, view)?;
        }
        Ok(text.clone())
    })
    .await
    .map(|(view, _)| view)
}

/// A text under a new key. If it does not become a version, [`New::drop_text`] deletes it.
struct New {
    version: LivingVersion,
    key: BlobKey,
}

impl New {
    async fn put(
        cx: &Cx,
        owner: &Owner,
        project: ProjectId,
        (name, before): (DocName, Option<&LivingVersion>),
        text: &str,
        (cause, sync_id): (LivingCause, Option<SyncId>),
    ) -> Result<Self> {
        let now = cx.clock.now();
        let id = cx.clock.uuid();
        let version = LivingVersion {
            name,
            version: before.map_or(1, |before| before.version + 1),
            text: id,
            sha256: sha256(text),
            bytes: text.len() as u64,
            cause: if before.is_none() { LivingCause::Created } else { cause },
            sync_id,
            written_at: now,
            created_at: before.map_or(now, |before| before.created_at),
        };
        let key = BlobKey::living_text(owner, project, id);
        cx.blobs.put(&key, text.to_owned(), MARKDOWN).await?;
        Ok(Self { version, key })
    }

    /// What is left if this fails is deleted with the project.
    async fn drop_text(&self, cx: &Cx) {
        if let Err(error) = cx.blobs.delete(&self.key).await {
            tracing::warn!(cause = %Error::from(error).causes(), "a text that became no version was not deleted");
        }
    }

    /// After it was stored: deletes the version that is too old now. What is left if this fails is deleted with the project.
    async fn forget_oldest(&self, cx: &Cx, owner: &Owner, project: ProjectId) {
        let forgotten = async {
            if let Some(old) = cx.store.forget_living_version(owner, project, &self.version).await? {
                cx.blobs.delete(&BlobKey::living_text(owner, project, old.text)).await?;
            }
            Ok::<_, Error>(())
        };
        if let Err(error) = forgotten.await {
            tracing::warn!(cause = %error.causes(), "an old version of a document was not deleted");
        }
    }
}

fn sha256(text: &str) -> String {
    format!("{:x}", Sha256::digest(text))
}

/// Reads the document, calls `decide` with its record and with what its reader sees, and writes the text that it returns if that differs.
/// Retries if another writer was faster. Also returns whether the document is new.
async fn write(
    cx: &Cx,
    owner: &Owner,
    once: &Once,
    project: ProjectId,
    (name, cause): (DocName, LivingCause),
    decide: impl Fn(Option<&LivingVersion>, Option<&DocumentView>) -> Result<String>,
) -> Result<(DocumentView, bool)> {
    existing::project(cx, owner, project).await?;
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        // A document that is created or deleted replaces the changelog, so two that come at the same time are counted.
        let changelog = cx.store.changelog(owner, project).await?;
        let before = cx.store.living_document(owner, project, &name).await?;
        let (record, read_at) = before.map_or((None, 0), |found| (Some(found.value), found.version));
        let view = match &record {
            None => None,
            Some(record) => {
                let text = text_of(cx, owner, project, record).await?;
                let content = with_marks(&text, marks(&changelog.value, record));
                Some(DocumentView { document: row(record.clone()), content })
            }
        };
        let text = decide(record.as_ref(), view.as_ref())?;
        match (view, &record) {
            (Some(view), Some(record)) if record.sha256 == sha256(&text) => return Ok((view, false)),
            (None, _) if cx.store.living_documents(owner, project).await?.len() >= MAX_DOCUMENTS => {
                let told = format!("a project has at most {MAX_DOCUMENTS} documents");
                return Err(Error::conflict("too_many_documents", told));
            }
            _ => {}
        }
        let with_name = (name.clone(), record.as_ref());
        let new = New::put(cx, owner, project, with_name, &text, (cause, None)).await?;
        let mut writes: Vec<_> = Store::living_writes(owner, project, &new.version, read_at)?.into();
        if record.is_none() {
            let Versioned { value, version } = &changelog;
            writes.extend(Store::changelog_writes(owner, project, value, *version)?);
        } else {
            writes.extend(Store::project_exists(owner, project));
        }
        match cx.store.commit(once, writes).await {
            Ok(Written::Yes) => {
                new.forget_oldest(cx, owner, project).await;
                let content = with_marks(&text, marks(&changelog.value, &new.version));
                return Ok((DocumentView { document: row(new.version), content }, record.is_none()));
            }
            Ok(Written::Refused(keys::Guard::Project)) => {
                new.drop_text(cx).await;
                return Err(Error::NotFound("project"));
            }
            Ok(Written::Refused(_)) | Err(StoreError::Contended) => new.drop_text(cx).await,
            // The write may have happened, so the text stays.
            Err(error) => return Err(error.into()),
        }
    }
}

/// Deletes a document with all its versions. A synchronisation that is under way does not bring it back.
///
/// # Errors
/// 404 if the project or the document does not exist.
pub async fn delete(cx: &Cx, owner: &Owner, project: ProjectId, name: &DocName) -> Result<()> {
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let changelog = cx.store.changelog(owner, project).await?;
        let Versioned { value: newest, version: read_at } = found(cx, owner, project, name).await?;
        // The record goes last: without it nobody would find what an interrupted deletion has left.
        let mut after = None;
        loop {
            let page = cx.store.living_versions(owner, project, name, after.as_deref(), 100).await?;
            for (_, Versioned { value: old, .. }) in page.items {
                if old.version != newest.version {
                    cx.store.delete(&keys::living_version(owner, project, name, old.version)).await?;
                    cx.blobs.delete(&BlobKey::living_text(owner, project, old.text)).await?;
                }
            }
            after = page.last;
            if after.is_none() {
                break;
            }
        }
        let mut writes = vec![
            Write::Remove { key: keys::living_document(owner, project, name), version: read_at },
            Write::Delete {
                key: keys::living_version(owner, project, name, newest.version),
                must_exist: false,
            },
        ];
        writes.extend(Store::changelog_writes(owner, project, &changelog.value, changelog.version)?);
        if cx.store.write_all(writes).await?.done() {
            return Ok(cx.blobs.delete(&BlobKey::living_text(owner, project, newest.text)).await?);
        }
    }
}

/// The versions of a document, newest first.
///
/// # Errors
/// 404 if the project or the document does not exist; 400 if `limit` or `cursor` is invalid.
pub async fn versions(
    cx: &Cx,
    owner: &Owner,
    project: ProjectId,
    name: &DocName,
    query: &PageQuery,
) -> Result<Page<DocumentRow>> {
    found(cx, owner, project, name).await?;
    let read = |after: Option<String>, limit| {
        async move { cx.store.living_versions(owner, project, name, after.as_deref(), limit).await }.boxed()
    };
    let list = format!("versions of {project} {name}");
    Ok(page::filtered(owner, &list, query, read, |_| true).await?.map(|version| row(version.value)))
}

/// The key of a draft of a synchronisation.
fn draft_key(owner: &Owner, project: ProjectId, draft: Uuid) -> BlobKey {
    BlobKey::docs_draft(owner, project, draft)
}
