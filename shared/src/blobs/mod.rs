//! Bodies and files in S3, under the owner's prefix.

mod key;
mod parts;
mod reader;

use std::ops::Range;
use std::time::Duration;

use aws_sdk_s3::Client;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::operation::get_object::GetObjectError;
use aws_sdk_s3::operation::head_object::HeadObjectError;
use aws_sdk_s3::operation::put_object::builders::PutObjectFluentBuilder;
use aws_sdk_s3::presigning::PresigningConfig;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{Delete, ObjectIdentifier};
use bytes::Bytes;

use crate::aws;
use crate::aws::storage::StorageFailure;

pub use key::{BlobKey, Upload};
pub use parts::PartUpload;
pub use reader::BlobReader;

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

    /// The client and the bucket's name, for code that copies whole buckets: tests of stored formats, an export.
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

    /// Stores a body that S3 deletes automatically after thirty days.
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
    /// As [`Blobs::get`]; also if the body is not UTF-8.
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

    /// A presigned URL to download an object. Anyone who has it may do that while it is valid.
    ///
    /// # Errors
    /// If the request cannot be signed.
    pub async fn presign_get(
        &self,
        key: &BlobKey,
        file_name: &str,
        valid: Duration,
    ) -> Result<String, BlobError> {
        let unsigned = |error: &dyn std::fmt::Display| BlobError::Unavailable { cause: error.to_string() };
        let config = PresigningConfig::expires_in(valid).map_err(|error| unsigned(&error))?;
        let request = self
            .client
            .get_object()
            .bucket(&self.bucket)
            .key(&key.0)
            .response_content_disposition(format!("attachment; filename=\"{file_name}\""))
            .presigned(config)
            .await
            .map_err(|error| unavailable(&error))?;
        Ok(request.uri().to_owned())
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

    /// Deletes objects below a prefix for good: up to a thousand of their versions and delete markers. Returns how many
    /// that were, 0 if nothing is left.
    ///
    /// # Errors
    /// If S3 does not answer. Some versions may already be deleted; the call can be repeated.
    pub async fn delete_versions(&self, prefix: &BlobKey) -> Result<u64, BlobError> {
        let found = self.versions(prefix).await?;
        let deleted = found.len() as u64;
        self.delete_identified(found).await?;
        Ok(deleted)
    }

    /// How many versions and delete markers are below a prefix, counted up to a thousand.
    ///
    /// # Errors
    /// If S3 does not answer.
    pub async fn count_versions(&self, prefix: &BlobKey) -> Result<u64, BlobError> {
        Ok(self.versions(prefix).await?.len() as u64)
    }

    /// The first versions and delete markers below a prefix.
    async fn versions(&self, prefix: &BlobKey) -> Result<Vec<ObjectIdentifier>, BlobError> {
        let request = self.client.list_object_versions().bucket(&self.bucket).prefix(&prefix.0);
        let page = request.send().await.map_err(|error| unavailable(&error))?;
        let versions = page.versions().iter().map(|version| (version.key(), version.version_id()));
        let markers = page.delete_markers().iter().map(|marker| (marker.key(), marker.version_id()));
        let identified = versions.chain(markers).filter_map(|(key, version)| {
            let object = ObjectIdentifier::builder().set_key(key.map(str::to_owned));
            object.set_version_id(version.map(str::to_owned)).build().ok()
        });
        Ok(identified.collect())
    }

    async fn delete_objects(&self, keys: impl Iterator<Item = &str>) -> Result<(), BlobError> {
        let objects = keys.filter_map(|key| ObjectIdentifier::builder().key(key).build().ok());
        self.delete_identified(objects.collect()).await
    }

    async fn delete_identified(&self, objects: Vec<ObjectIdentifier>) -> Result<(), BlobError> {
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
