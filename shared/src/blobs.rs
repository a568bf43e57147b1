//! Bodies and files in S3, under the owner's prefix.

use std::ops::Range;

use crate::aws;
use aws_sdk_s3::Client;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::operation::get_object::GetObjectError;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{Delete, ObjectIdentifier};
use bytes::Bytes;
use domain::ids::{AssetId, ChatId, MessageId, Owner, ProjectId, ProposalId, RunId};
use domain::log::{InstanceId, SessionId};
use uuid::Uuid;

/// Why a body could not be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    #[error("S3 did not answer: {cause}")]
    Unavailable { cause: String },
    #[error(
        "the bucket can't be used as this is deployed (see LAMPLIGHTER_BUCKET and the function's role): {cause}"
    )]
    Misconfigured { cause: String },
    #[error("the object {key} is missing although it is referred to")]
    Missing { key: String },
    #[error("the object {key} is not text")]
    NotText { key: String },
}

/// Where an object is. It begins with the owner, and can be made in no other way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobKey(String);

impl BlobKey {
    /// A content of an asset, by its SHA-256: the same key never has two contents.
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
    pub fn message(owner: &Owner, chat: ChatId, message: MessageId) -> Self {
        Self(format!("{owner}/chats/{chat}/{message}"))
    }

    /// All contents of a chat.
    #[must_use]
    pub fn chat_prefix(owner: &Owner, chat: ChatId) -> Self {
        Self(format!("{owner}/chats/{chat}/"))
    }

    /// All that a run has left here.
    #[must_use]
    pub fn run_prefix(owner: &Owner, run: RunId) -> Self {
        Self(format!("{owner}/runs/{run}/"))
    }

    /// The result of a step that is too large for an item.
    #[must_use]
    pub fn step(owner: &Owner, run: RunId, step: u32) -> Self {
        Self(format!("{owner}/runs/{run}/{step:04}"))
    }

    /// All files of a project, whatever they are for.
    #[must_use]
    pub fn project_prefix(owner: &Owner, project: ProjectId) -> Self {
        Self(format!("{owner}/projects/{project}/"))
    }

    /// A line of a log that is too large for an item.
    #[must_use]
    pub fn log_line(owner: &Owner, session: &SessionId, agent: &InstanceId, blob: Uuid) -> Self {
        Self(format!("{owner}/logs/{session}/{agent}/lines/{}", blob.simple()))
    }

    /// Lines of a log.
    #[must_use]
    pub fn log_segment(owner: &Owner, session: &SessionId, agent: &InstanceId, blob: Uuid) -> Self {
        Self(format!("{owner}/logs/{session}/{agent}/segments/{}", blob.simple()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
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

    /// Stores a body, over what was there.
    ///
    /// # Errors
    /// When S3 does not take it.
    pub async fn put(
        &self,
        key: &BlobKey,
        body: impl Into<Bytes>,
        content_type: &str,
    ) -> Result<(), BlobError> {
        self.client
            .put_object()
            .bucket(&self.bucket)
            .key(&key.0)
            .content_type(content_type)
            .body(ByteStream::from(body.into()))
            .send()
            .await
            .map_err(|error| unavailable(&error))?;
        Ok(())
    }

    /// Reads a body.
    ///
    /// # Errors
    /// [`BlobError::Missing`] when there is none.
    pub async fn get(&self, key: &BlobKey) -> Result<Bytes, BlobError> {
        self.read(key, None).await
    }

    /// Reads a part of a body that is there, from one byte up to another.
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
    /// As [`Blobs::get`], and when it is not UTF-8.
    pub async fn get_text(&self, key: &BlobKey) -> Result<String, BlobError> {
        let bytes = self.get(key).await?;
        String::from_utf8(bytes.into()).map_err(|_| BlobError::NotText { key: key.0.clone() })
    }

    /// Deletes a body, whether or not it is there.
    ///
    /// # Errors
    /// When S3 does not answer.
    pub async fn delete(&self, key: &BlobKey) -> Result<(), BlobError> {
        let request = self.client.delete_object().bucket(&self.bucket).key(&key.0);
        request.send().await.map(|_| ()).map_err(|error| unavailable(&error))
    }

    /// Deletes everything below a prefix.
    ///
    /// # Errors
    /// When S3 does not answer; what was deleted until then is gone, and the call can be made again.
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
            let objects: Vec<ObjectIdentifier> = page
                .contents()
                .iter()
                .filter_map(|object| ObjectIdentifier::builder().key(object.key()?).build().ok())
                .collect();
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
            if let Some(error) = output.errors().first() {
                return Err(BlobError::Unavailable { cause: error.code().unwrap_or("unknown").to_owned() });
            }
        }
    }
}

fn unavailable<E: ProvideErrorMetadata>(error: &SdkError<E>) -> BlobError {
    if aws::is_misconfigured(error) {
        return BlobError::Misconfigured { cause: aws::cause(error) };
    }
    BlobError::Unavailable { cause: aws::cause(error) }
}
