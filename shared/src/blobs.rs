//! Bodies and files in S3, under the owner's prefix.

use std::ops::Range;
use std::time::Duration;

use crate::aws;
use crate::problem::StorageFailure;
use aws_sdk_s3::Client;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::operation::get_object::GetObjectError;
use aws_sdk_s3::operation::head_object::HeadObjectError;
use aws_sdk_s3::operation::put_object::builders::PutObjectFluentBuilder;
use aws_sdk_s3::presigning::PresigningConfig;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{Delete, ObjectIdentifier};
use bytes::Bytes;
use domain::ids::{AssetId, ImportId, MessageId, Owner, ProjectId, ProposalId, RunId};
use domain::log::{InstanceId, SessionId};
use uuid::Uuid;

use crate::store::messages::Thread;

/// The tag that the bucket's lifecycle rule matches: it deletes these objects after a month.
const EXPIRING_TAG: &str = "keep=a-month";

/// Why a body could not be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    #[error("S3 did not answer: {cause}")]
    Unavailable { cause: String },
    #[error(
        "the bucket cannot be used with this deployment (see LAMPLIGHTER_BUCKET and the function's role): {cause}"
    )]
    Misconfigured { cause: String },
    #[error("the storage fails: {0}")]
    Storage(StorageFailure),
    #[error("the object {key} is missing, but a record refers to it")]
    Missing { key: String },
    #[error("the object {key} is not text")]
    NotText { key: String },
}

/// The key of an object. It always begins with the owner; there is no other way to build it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobKey(String);

impl BlobKey {
    /// A content of an asset, by its SHA-256. One key never has two contents.
    #[must_use]
    pub fn asset(owner: &Owner, asset: AssetId, sha256: &str) -> Self {
        Self(format!("{owner}/assets/{asset}/{sha256}"))
    }

    /// All contents of an asset.
    #[must_use]
    pub fn asset_prefix(owner: &Owner, asset: AssetId) -> Self {
        Self(format!("{owner}/assets/{asset}/"))
    }

    /// The content of a proposed asset.
    #[must_use]
    pub fn proposal(owner: &Owner, proposal: ProposalId) -> Self {
        Self(format!("{owner}/proposals/{proposal}"))
    }

    /// The content of a message that is too large for an item.
    #[must_use]
    pub fn message(owner: &Owner, thread: Thread, message: MessageId) -> Self {
        Self(format!("{}{message}", Self::messages(owner, thread).0))
    }

    /// All message contents of a conversation.
    #[must_use]
    pub fn messages(owner: &Owner, thread: impl Into<Thread>) -> Self {
        match thread.into() {
            Thread::Chat(id) => Self(format!("{owner}/chats/{id}/")),
            Thread::Action(id) => Self(format!("{owner}/actions/{id}/")),
        }
    }

    /// All objects of a run.
    #[must_use]
    pub fn run_prefix(owner: &Owner, run: RunId) -> Self {
        Self(format!("{owner}/runs/{run}/"))
    }

    /// A part of a step that is too large for an item: its reply, or the result of one of its calls.
    #[must_use]
    pub fn step(owner: &Owner, run: RunId, step: u32, call: Option<u32>, fence: u64) -> Self {
        let call = call.map(|call| format!("-{call:04}")).unwrap_or_default();
        Self(format!("{owner}/runs/{run}/{step:04}{call}-{fence}"))
    }

    /// All objects of a project.
    #[must_use]
    pub fn project_prefix(owner: &Owner, project: ProjectId) -> Self {
        Self(format!("{owner}/projects/{project}/"))
    }

    /// All objects of a log.
    #[must_use]
    pub fn log_prefix(owner: &Owner, session: &SessionId, agent: &InstanceId) -> Self {
        Self(format!("{owner}/logs/{session}/{agent}/"))
    }

    /// A log line that is too large for an item.
    #[must_use]
    pub fn log_line(owner: &Owner, session: &SessionId, agent: &InstanceId, blob: Uuid) -> Self {
        Self(format!("{owner}/logs/{session}/{agent}/lines/{}", blob.simple()))
    }

    /// A segment with lines of a log.
    #[must_use]
    pub fn log_segment(owner: &Owner, session: &SessionId, agent: &InstanceId, blob: Uuid) -> Self {
        Self(format!("{owner}/logs/{session}/{agent}/segments/{}", blob.simple()))
    }

    /// A segment with lines that an import created. The key is the same for every retry. It cannot collide with a
    /// session, because no session name contains a dot.
    #[must_use]
    pub fn imported_segment(
        owner: &Owner,
        import: ImportId,
        session: &SessionId,
        agent: &InstanceId,
        first: u64,
    ) -> Self {
        Self(format!("{}{first:012}", Self::imported_log(owner, import, session, agent).0))
    }

    /// All segments that an import created for one log.
    #[must_use]
    pub fn imported_log(owner: &Owner, import: ImportId, session: &SessionId, agent: &InstanceId) -> Self {
        Self(format!("{}{session}/{agent}/", Self::imported_logs(owner, import).0))
    }

    /// All segments that an import created.
    #[must_use]
    pub fn imported_logs(owner: &Owner, import: ImportId) -> Self {
        Self(format!("{owner}/logs/.imports/{import}/"))
    }

    /// An uploaded archive of log files to import. The upload triggers the indexer.
    #[must_use]
    pub fn log_archive(owner: &Owner, import: ImportId) -> Self {
        Self(format!("{owner}/logs/.imports/{import}.zip"))
    }

    /// The content of theme files with this SHA-256.
    #[must_use]
    pub fn theme_file(owner: &Owner, project: ProjectId, sha256: &str) -> Self {
        Self(format!("{owner}/projects/{project}/files/{sha256}"))
    }

    /// A theme's map, by the SHA-256 of the blob.
    #[must_use]
    pub fn theme_map(owner: &Owner, project: ProjectId, sha256: &str) -> Self {
        Self(format!("{owner}/projects/{project}/maps/{sha256}"))
    }

    /// All contents of a theme's files.
    #[must_use]
    pub fn theme_files(owner: &Owner, project: ProjectId) -> Self {
        Self(format!("{owner}/projects/{project}/files/"))
    }

    /// All maps of a theme.
    #[must_use]
    pub fn theme_maps(owner: &Owner, project: ProjectId) -> Self {
        Self(format!("{owner}/projects/{project}/maps/"))
    }

    /// A model's notes about a theme's files, as a worker saved them once.
    #[must_use]
    pub fn theme_notes(owner: &Owner, project: ProjectId, notes: Uuid) -> Self {
        Self(format!("{}{}", Self::all_theme_notes(owner, project).0, notes.simple()))
    }

    /// All notes about a theme.
    #[must_use]
    pub fn all_theme_notes(owner: &Owner, project: ProjectId) -> Self {
        Self(format!("{owner}/projects/{project}/notes/"))
    }

    /// An uploaded theme archive to import. The upload triggers the indexer.
    #[must_use]
    pub fn theme_archive(owner: &Owner, project: ProjectId, import: ImportId) -> Self {
        Self(format!("{owner}/projects/{project}/imports/{import}.zip"))
    }

    /// An empty object that is written whenever files have changed. The upload triggers the indexer.
    #[must_use]
    pub fn theme_change(owner: &Owner, project: ProjectId) -> Self {
        Self(format!("{owner}/projects/{project}/theme.changed"))
    }

    /// The owner of a key and the meaning of its upload. `None` for keys whose upload has no meaning.
    #[must_use]
    pub fn parse_upload(key: &str) -> Option<(Owner, Upload)> {
        let import = |archive: &str| archive.strip_suffix(".zip")?.parse().ok();
        let parts: Vec<&str> = key.split('/').collect();
        let (owner, what) = match parts[..] {
            [owner, "projects", project, "theme.changed"] => {
                (owner, Upload::ThemeChanged(project.parse().ok()?))
            }
            [owner, "projects", project, "imports", archive] => {
                (owner, Upload::Theme(project.parse().ok()?, import(archive)?))
            }
            [owner, "logs", ".imports", archive] => (owner, Upload::Logs(import(archive)?)),
            _ => return None,
        };
        Some((Owner::new(owner).ok()?, what))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What an upload asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upload {
    /// Index the changed files of a theme.
    ThemeChanged(ProjectId),
    /// Import an archive as a project's theme.
    Theme(ProjectId, ImportId),
    /// Import an archive of log files.
    Logs(ImportId),
}

/// A presigned URL. Anyone who has it may upload one object to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresignedPut {
    pub url: String,
    /// Headers that the upload must send unchanged.
    pub headers: Vec<(String, String)>,
}

/// The bucket of this installation.
#[derive(Clone, Debug)]
pub struct Blobs {
    client: Client,
    bucket: String,
}

impl Blobs {
    #[must_use]
    pub fn new(client: Client, bucket: String) -> Self {
        Self { client, bucket }
    }

    /// The client and the bucket's name, for what moves whole buckets: tests of stored formats, an export.
    #[must_use]
    pub fn raw(&self) -> (&Client, &str) {
        (&self.client, &self.bucket)
    }

    /// Stores a body and replaces any existing one.
    ///
    /// # Errors
    /// If S3 does not accept it.
    pub async fn put(
        &self,
        key: &BlobKey,
        body: impl Into<Bytes>,
        content_type: &str,
    ) -> Result<(), BlobError> {
        let put = self.putting(key, body, content_type);
        put.send().await.map(|_| ()).map_err(|error| unavailable(&error))
    }

    /// Stores a body that S3 deletes by itself after thirty days.
    ///
    /// # Errors
    /// If S3 does not accept it.
    pub async fn put_expiring(
        &self,
        key: &BlobKey,
        body: impl Into<Bytes>,
        content_type: &str,
    ) -> Result<(), BlobError> {
        let put = self.putting(key, body, content_type).tagging(EXPIRING_TAG);
        put.send().await.map(|_| ()).map_err(|error| unavailable(&error))
    }

    fn putting(&self, key: &BlobKey, body: impl Into<Bytes>, content_type: &str) -> PutObjectFluentBuilder {
        self.client
            .put_object()
            .bucket(&self.bucket)
            .key(&key.0)
            .content_type(content_type)
            .body(ByteStream::from(body.into()))
    }

    /// Reads a body.
    ///
    /// # Errors
    /// [`BlobError::Missing`] if it does not exist.
    pub async fn get(&self, key: &BlobKey) -> Result<Bytes, BlobError> {
        self.read(key, None).await
    }

    /// Reads a part of an existing body: the bytes in `range`.
    ///
    /// # Errors
    /// As [`Blobs::get`].
    pub async fn get_range(&self, key: &BlobKey, range: Range<u64>) -> Result<Bytes, BlobError> {
        self.read(key, Some(format!("bytes={}-{}", range.start, range.end.saturating_sub(1)))).await
    }

    async fn read(&self, key: &BlobKey, range: Option<String>) -> Result<Bytes, BlobError> {
        let request = self.client.get_object().bucket(&self.bucket).key(&key.0).set_range(range);
        let output = request.send().await.map_err(|error| {
            if error.as_service_error().is_some_and(GetObjectError::is_no_such_key) {
                BlobError::Missing { key: key.0.clone() }
            } else {
                unavailable(&error)
            }
        })?;
        let body = output
            .body
            .collect()
            .await
            .map_err(|error| BlobError::Unavailable { cause: error.to_string() })?;
        Ok(body.into_bytes())
    }

    /// Reads a text.
    ///
    /// # Errors
    /// As [`Blobs::get`], and if the body is not UTF-8.
    pub async fn get_text(&self, key: &BlobKey) -> Result<String, BlobError> {
        let bytes = self.get(key).await?;
        String::from_utf8(bytes.into()).map_err(|_| BlobError::NotText { key: key.0.clone() })
    }

    /// Deletes a body. It is not an error if the body does not exist.
    ///
    /// # Errors
    /// If S3 does not answer.
    pub async fn delete(&self, key: &BlobKey) -> Result<(), BlobError> {
        let request = self.client.delete_object().bucket(&self.bucket).key(&key.0);
        request.send().await.map(|_| ()).map_err(|error| unavailable(&error))
    }

    /// The size of an object in bytes. `None` if it does not exist.
    ///
    /// # Errors
    /// If S3 does not answer.
    pub async fn size(&self, key: &BlobKey) -> Result<Option<u64>, BlobError> {
        match self.client.head_object().bucket(&self.bucket).key(&key.0).send().await {
            Ok(head) => Ok(Some(head.content_length().and_then(|n| u64::try_from(n).ok()).unwrap_or(0))),
            Err(error) if error.as_service_error().is_some_and(HeadObjectError::is_not_found) => Ok(None),
            Err(error) => Err(unavailable(&error)),
        }
    }

    /// A presigned URL for the upload of `bytes` bytes of a content type, with a SHA-256 checksum if it is known.
    /// Length, type, key and checksum are signed, so S3 refuses an upload that differs.
    ///
    /// # Errors
    /// If the request cannot be signed.
    pub async fn presign_put(
        &self,
        key: &BlobKey,
        bytes: u64,
        sha256: Option<[u8; 32]>,
        content_type: &str,
        valid: Duration,
    ) -> Result<PresignedPut, BlobError> {
        let unsigned = |error: &dyn std::fmt::Display| BlobError::Unavailable { cause: error.to_string() };
        let config = PresigningConfig::expires_in(valid).map_err(|error| unsigned(&error))?;
        let request = self
            .client
            .put_object()
            .bucket(&self.bucket)
            .key(&key.0)
            .content_type(content_type)
            .content_length(i64::try_from(bytes).unwrap_or(i64::MAX))
            .set_checksum_sha256(sha256.map(aws_smithy_types::base64::encode))
            .presigned(config)
            .await
            .map_err(|error| unavailable(&error))?;
        let headers = request.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Ok(PresignedPut { url: request.uri().to_owned(), headers })
    }

    /// Deletes the objects below a prefix that are older than `age`, except those that must be kept. Objects are
    /// identified by the rest of their key.
    ///
    /// # Errors
    /// If S3 does not answer. Some objects may already be deleted; the call can be repeated.
    pub async fn sweep(
        &self,
        prefix: &BlobKey,
        age: Duration,
        is_kept: impl Fn(&str) -> bool,
    ) -> Result<(), BlobError> {
        // Object times come from the bucket's clock, so the system time is used here even if our clock is simulated.
        let now = jiff::Timestamp::now().as_second();
        let is_old = |at: Option<&aws_smithy_types::DateTime>| {
            at.is_some_and(|at| now - at.secs() > i64::try_from(age.as_secs()).unwrap_or(i64::MAX))
        };
        let mut after: Option<String> = None;
        loop {
            let page = self
                .client
                .list_objects_v2()
                .bucket(&self.bucket)
                .prefix(&prefix.0)
                .set_start_after(after)
                .send()
                .await
                .map_err(|error| unavailable(&error))?;
            let swept = page.contents().iter().filter(|object| {
                let rest = object.key().and_then(|key| key.strip_prefix(&prefix.0));
                is_old(object.last_modified()) && rest.is_some_and(|rest| !is_kept(rest))
            });
            self.delete_objects(swept.filter_map(|object| object.key())).await?;
            after = page.contents().last().and_then(|object| object.key()).map(str::to_owned);
            if after.is_none() || !page.is_truncated().unwrap_or(false) {
                return Ok(());
            }
        }
    }

    /// The objects below a prefix, each as the rest of its key: up to a thousand, sorted by key, after the key `after`.
    ///
    /// # Errors
    /// If S3 does not answer.
    pub async fn list(&self, prefix: &BlobKey, after: Option<&str>) -> Result<Vec<String>, BlobError> {
        let request = self.client.list_objects_v2().bucket(&self.bucket).prefix(&prefix.0);
        let after = after.map(|after| format!("{}{after}", prefix.0));
        let page = request.set_start_after(after).send().await.map_err(|error| unavailable(&error))?;
        let rest = |key: &str| key.strip_prefix(&prefix.0).map(str::to_owned);
        Ok(page.contents().iter().filter_map(|object| rest(object.key()?)).collect())
    }

    async fn delete_objects(&self, keys: impl Iterator<Item = &str>) -> Result<(), BlobError> {
        let objects: Vec<ObjectIdentifier> =
            keys.filter_map(|key| ObjectIdentifier::builder().key(key).build().ok()).collect();
        if objects.is_empty() {
            return Ok(());
        }
        let delete = Delete::builder()
            .set_objects(Some(objects))
            .quiet(true)
            .build()
            .map_err(|error| BlobError::Unavailable { cause: error.to_string() })?;
        let output = self
            .client
            .delete_objects()
            .bucket(&self.bucket)
            .delete(delete)
            .send()
            .await
            .map_err(|error| unavailable(&error))?;
        match output.errors().first() {
            Some(error) => {
                Err(BlobError::Unavailable { cause: error.code().unwrap_or("unknown").to_owned() })
            }
            None => Ok(()),
        }
    }

    /// Deletes everything below a prefix.
    ///
    /// # Errors
    /// If S3 does not answer. Some objects may already be deleted; the call can be repeated.
    pub async fn delete_prefix(&self, prefix: &BlobKey) -> Result<(), BlobError> {
        loop {
            let page = self
                .client
                .list_objects_v2()
                .bucket(&self.bucket)
                .prefix(&prefix.0)
                .max_keys(1_000)
                .send()
                .await
                .map_err(|error| unavailable(&error))?;
            if page.contents().is_empty() {
                return Ok(());
            }
            self.delete_objects(page.contents().iter().filter_map(|object| object.key())).await?;
        }
    }
}

fn unavailable<E: ProvideErrorMetadata>(error: &SdkError<E>) -> BlobError {
    if let Some(failure) = StorageFailure::of(error) {
        return BlobError::Storage(failure);
    }
    if aws::is_misconfigured(error) {
        return BlobError::Misconfigured { cause: aws::cause(error) };
    }
    BlobError::Unavailable { cause: aws::cause(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_determines_the_meaning_of_an_upload() {
        let (owner, project) = (Owner::new("auth0|me").unwrap(), ProjectId::DEFAULT);
        let import = ImportId::from_uuid(uuid::Uuid::from_u128(7));
        let (session, agent) = (".imports".parse::<SessionId>(), "arch-1".parse().unwrap());
        assert!(session.is_err(), "no session's logs lie among the imports");
        let session = "s1".parse().unwrap();
        for (key, meaning) in [
            (BlobKey::theme_change(&owner, project), Some(Upload::ThemeChanged(project))),
            (BlobKey::theme_archive(&owner, project, import), Some(Upload::Theme(project, import))),
            (BlobKey::log_archive(&owner, import), Some(Upload::Logs(import))),
            (BlobKey::theme_file(&owner, project, "00"), None),
            (BlobKey::imported_segment(&owner, import, &session, &agent, 1), None),
        ] {
            let meaning = meaning.map(|meaning| (owner.clone(), meaning));
            assert_eq!(BlobKey::parse_upload(key.as_str()), meaning, "{key:?}");
        }
        for key in [
            "",
            "x",
            "me/projects/prj_x/theme.changed",
            "me/projects/default/imports/x.zip",
            "a#b/projects/default/theme.changed",
            "me/logs/.imports/x.zip",
            "me/logs/s1/imp_00000000000000000000000000000007.zip",
        ] {
            assert_eq!(BlobKey::parse_upload(key), None, "{key}");
        }
    }
}
