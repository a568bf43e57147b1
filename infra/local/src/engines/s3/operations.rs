//! The S3 operations. They convert between the types of s3s and of the store.

use std::sync::Arc;

use s3s::dto::*;
use s3s::{S3, S3Error, S3Request, S3Response, S3Result, s3_error};

use super::convert::{condition, etag, length, modified, of_io, percent_encoded, read, stored_encoding};
use super::listing::{self, After, Query};
use super::object::{Headers, Metadata};
use super::receive::Claims;
use super::store::{Condition, Store, StoreError};

const MAX_KEYS: i32 = 1000;

#[derive(Debug)]
pub(super) struct Operations {
    pub(super) store: Arc<Store>,
}

/// Copies the five checksums into an answer that has one field for each.
macro_rules! with_checksums {
    ($answer:expr, $checksums:expr) => {{
        let (mut answer, checksums) = ($answer, $checksums);
        answer.checksum_crc32 = checksums.crc32.clone();
        answer.checksum_crc32c = checksums.crc32c.clone();
        answer.checksum_crc64nvme = checksums.crc64nvme.clone();
        answer.checksum_sha1 = checksums.sha1.clone();
        answer.checksum_sha256 = checksums.sha256.clone();
        answer
    }};
}

/// Reads the object's headers from a request that has one field for each.
macro_rules! headers_of {
    ($input:expr) => {
        Headers {
            content_type: $input.content_type.take(),
            cache_control: $input.cache_control.take(),
            content_disposition: $input.content_disposition.take(),
            content_encoding: $input.content_encoding.take().as_deref().and_then(stored_encoding),
            content_language: $input.content_language.take(),
            user: $input.metadata.take().unwrap_or_default().into_iter().collect(),
            tagging: $input.tagging.take(),
        }
    };
}

pub(super) use {headers_of, with_checksums};

impl From<StoreError> for S3Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Precondition => {
                s3_error!(PreconditionFailed, "At least one of the pre-conditions you specified did not hold")
            }
            StoreError::NoSuchKey => s3_error!(NoSuchKey, "The specified key does not exist."),
            StoreError::NoSuchUpload => s3_error!(NoSuchUpload, "The specified upload does not exist."),
            StoreError::Io(source) => of_io(source),
        }
    }
}

impl Operations {
    pub(super) fn new(store: Arc<Store>) -> Self {
        Self { store }
    }

    pub(super) fn check_bucket(&self, bucket: &str) -> S3Result<()> {
        if bucket == self.store.bucket {
            Ok(())
        } else {
            Err(s3_error!(NoSuchBucket, "The specified bucket does not exist."))
        }
    }

    /// Runs work that waits for the disk outside the async workers.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
    ) -> S3Result<T> {
        let store = Arc::clone(&self.store);
        let done = tokio::task::spawn_blocking(move || work(&store)).await;
        Ok(done.map_err(S3Error::internal_error)??)
    }

    /// Opens the object for a read with preconditions.
    async fn open(
        &self,
        key: String,
        if_match: Option<&ETagCondition>,
        if_none_match: Option<&ETagCondition>,
    ) -> S3Result<(std::fs::File, Metadata)> {
        let (file, metadata) = self.blocking(move |store| store.open_object(&key)).await?;
        let matches = |condition: &ETagCondition| match condition.as_etag() {
            Some(etag) => etag.value() == metadata.etag,
            None => condition.is_any(),
        };
        if if_match.is_some_and(|condition| !matches(condition)) {
            return Err(StoreError::Precondition.into());
        }
        if if_none_match.is_some_and(matches) {
            return Err(s3_error!(NotModified));
        }
        Ok((file, metadata))
    }
}

#[async_trait::async_trait]
impl S3 for Operations {
    async fn head_bucket(
        &self,
        request: S3Request<HeadBucketInput>,
    ) -> S3Result<S3Response<HeadBucketOutput>> {
        self.check_bucket(&request.input.bucket)?;
        Ok(S3Response::new(HeadBucketOutput::default()))
    }

    async fn put_object(
        &self,
        mut request: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        self.check_bucket(&request.input.bucket)?;
        let claims = Claims::of(&request, request.input.content_md5.clone());
        let input = &mut request.input;
        let condition = condition(input.if_match.take(), input.if_none_match.take())?;
        let staged = self.store.receive(input.body.take(), claims).await?;
        let headers = headers_of!(input);
        let key = std::mem::take(&mut input.key);
        let metadata = self.blocking(move |store| store.commit(staged, &key, headers, &condition)).await?;
        let answer = PutObjectOutput { e_tag: Some(etag(&metadata)), ..Default::default() };
        Ok(S3Response::new(with_checksums!(answer, &metadata.checksums)))
    }

    async fn copy_object(
        &self,
        mut request: S3Request<CopyObjectInput>,
    ) -> S3Result<S3Response<CopyObjectOutput>> {
        let input = &mut request.input;
        self.check_bucket(&input.bucket)?;
        let CopySource::Bucket { bucket, key: source, version_id: None } = &input.copy_source else {
            return Err(s3_error!(
                NotImplemented,
                "Only objects of the bucket are copied, without versions."
            ));
        };
        self.check_bucket(bucket)?;
        let (if_match, if_none_match) =
            (input.copy_source_if_match.as_ref(), input.copy_source_if_none_match.as_ref());
        let (file, from) = self.open(source.to_string(), if_match, if_none_match).await.map_err(|error| {
            match *error.code() {
                // For the source of a copy, both preconditions give the same error.
                s3s::S3ErrorCode::NotModified => StoreError::Precondition.into(),
                _ => error,
            }
        })?;
        let replace =
            input.metadata_directive.as_ref().is_some_and(|directive| directive.as_str() == "REPLACE");
        let headers = if replace { headers_of!(input) } else { from.headers };
        let body = StreamingBlob::wrap(read(file, 0..from.size));
        let staged = self.store.receive(Some(body), Claims::none()).await?;
        let key = std::mem::take(&mut input.key);
        let metadata =
            self.blocking(move |store| store.commit(staged, &key, headers, &Condition::Always)).await?;
        let result = CopyObjectResult {
            e_tag: Some(etag(&metadata)),
            last_modified: Some(modified(metadata.modified)),
            ..Default::default()
        };
        let result = with_checksums!(result, &metadata.checksums);
        Ok(S3Response::new(CopyObjectOutput { copy_object_result: Some(result), ..Default::default() }))
    }

    async fn get_object(&self, request: S3Request<GetObjectInput>) -> S3Result<S3Response<GetObjectOutput>> {
        let input = request.input;
        self.check_bucket(&input.bucket)?;
        let (file, metadata) =
            self.open(input.key, input.if_match.as_ref(), input.if_none_match.as_ref()).await?;
        let (range, content_range) = match &input.range {
            None => (0..metadata.size, None),
            Some(range) => {
                let range = range
                    .check(metadata.size)
                    .map_err(|_| s3_error!(InvalidRange, "The requested range is not satisfiable"))?;
                let content_range = format!("bytes {}-{}/{}", range.start, range.end - 1, metadata.size);
                (range, Some(content_range))
            }
        };
        let answer = GetObjectOutput {
            accept_ranges: Some("bytes".to_owned()),
            content_length: Some(length(range.end - range.start)),
            e_tag: Some(etag(&metadata)),
            last_modified: Some(modified(metadata.modified)),
            content_type: metadata.headers.content_type,
            cache_control: metadata.headers.cache_control,
            content_disposition: metadata.headers.content_disposition,
            content_encoding: metadata.headers.content_encoding,
            content_language: metadata.headers.content_language,
            metadata: Some(metadata.headers.user.into_iter().collect()),
            body: Some(StreamingBlob::wrap(read(file, range))),
            ..Default::default()
        };
        // The checksums are for the whole body. With a range, a client would compare them with a part of it.
        Ok(match content_range {
            Some(content_range) => {
                let answer = GetObjectOutput { content_range: Some(content_range), ..answer };
                S3Response::with_status(answer, http::StatusCode::PARTIAL_CONTENT)
            }
            None if input.checksum_mode.is_some() => {
                S3Response::new(with_checksums!(answer, &metadata.checksums))
            }
            None => S3Response::new(answer),
        })
    }

    async fn head_object(
        &self,
        request: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        let input = request.input;
        self.check_bucket(&input.bucket)?;
        let (_, metadata) =
            self.open(input.key, input.if_match.as_ref(), input.if_none_match.as_ref()).await?;
        let answer = HeadObjectOutput {
            accept_ranges: Some("bytes".to_owned()),
            content_length: Some(length(metadata.size)),
            e_tag: Some(etag(&metadata)),
            last_modified: Some(modified(metadata.modified)),
            content_type: metadata.headers.content_type,
            cache_control: metadata.headers.cache_control,
            content_disposition: metadata.headers.content_disposition,
            content_encoding: metadata.headers.content_encoding,
            content_language: metadata.headers.content_language,
            metadata: Some(metadata.headers.user.into_iter().collect()),
            ..Default::default()
        };
        Ok(S3Response::new(if input.checksum_mode.is_some() {
            with_checksums!(answer, &metadata.checksums)
        } else {
            answer
        }))
    }

    async fn delete_object(
        &self,
        request: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        let input = request.input;
        self.check_bucket(&input.bucket)?;
        let condition = condition(input.if_match, None)?;
        self.blocking(move |store| store.delete(&[input.key], &condition)).await?;
        let answer = DeleteObjectOutput::default();
        Ok(S3Response::with_status(answer, http::StatusCode::NO_CONTENT))
    }

    async fn delete_objects(
        &self,
        request: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        let input = request.input;
        self.check_bucket(&input.bucket)?;
        if input.delete.objects.len() > MAX_KEYS as usize {
            return Err(s3_error!(MalformedXML, "More than {MAX_KEYS} keys to delete."));
        }
        let keys: Vec<String> = input.delete.objects.into_iter().map(|object| object.key).collect();
        let deleted = keys.clone();
        self.blocking(move |store| store.delete(&keys, &Condition::Always)).await?;
        let deleted = (!input.delete.quiet.unwrap_or(false)).then(|| {
            deleted.into_iter().map(|key| DeletedObject { key: Some(key), ..Default::default() }).collect()
        });
        Ok(S3Response::new(DeleteObjectsOutput { deleted, ..Default::default() }))
    }

    async fn create_multipart_upload(
        &self,
        request: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        self.create_upload(request).await
    }

    async fn upload_part(
        &self,
        request: S3Request<UploadPartInput>,
    ) -> S3Result<S3Response<UploadPartOutput>> {
        self.receive_part(request).await
    }

    async fn list_parts(&self, request: S3Request<ListPartsInput>) -> S3Result<S3Response<ListPartsOutput>> {
        self.parts_of_upload(request).await
    }

    async fn abort_multipart_upload(
        &self,
        request: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        self.abort_upload(request).await
    }

    async fn complete_multipart_upload(
        &self,
        request: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        self.complete_upload(request).await
    }

    async fn list_objects_v2(
        &self,
        request: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let input = request.input;
        self.check_bucket(&input.bucket)?;
        let after =
            match (&input.continuation_token, &input.start_after) {
                (Some(token), _) => Some(After::parse(token).ok_or_else(|| {
                    s3_error!(InvalidArgument, "The continuation token provided is incorrect")
                })?),
                (None, after) => after.clone().map(After::Key),
            };
        let max_keys = input.max_keys.unwrap_or(MAX_KEYS).min(MAX_KEYS);
        let query = Query {
            prefix: input.prefix.clone().unwrap_or_default(),
            delimiter: input.delimiter.clone().filter(|delimiter| !delimiter.is_empty()),
            after,
            max: usize::try_from(max_keys)
                .map_err(|_| s3_error!(InvalidArgument, "max-keys must not be negative"))?,
        };
        let page = listing::list(&self.store.state().objects, &query);
        let encode = |text: String| match &input.encoding_type {
            Some(_) => percent_encoded(&text),
            None => text,
        };
        let contents: Vec<Object> = (page.objects.into_iter())
            .map(|(key, object)| Object {
                key: Some(encode(key)),
                size: Some(length(object.size)),
                e_tag: Some(ETag::Strong(object.etag)),
                last_modified: Some(modified(object.modified)),
                storage_class: Some(ObjectStorageClass::from_static(ObjectStorageClass::STANDARD)),
                ..Default::default()
            })
            .collect();
        let prefixes: Vec<CommonPrefix> =
            page.prefixes.into_iter().map(|prefix| CommonPrefix { prefix: Some(encode(prefix)) }).collect();
        Ok(S3Response::new(ListObjectsV2Output {
            name: Some(input.bucket),
            key_count: i32::try_from(contents.len() + prefixes.len()).ok(),
            max_keys: Some(max_keys),
            is_truncated: Some(page.next.is_some()),
            next_continuation_token: page.next.as_ref().map(After::token),
            continuation_token: input.continuation_token,
            start_after: input.start_after.map(encode),
            prefix: input.prefix.map(encode),
            delimiter: input.delimiter.map(encode),
            encoding_type: input.encoding_type.clone(),
            contents: Some(contents),
            common_prefixes: Some(prefixes),
            ..Default::default()
        }))
    }

    /// The bucket keeps no old versions, so each object has one, and S3 calls it `null`.
    async fn list_object_versions(
        &self,
        request: S3Request<ListObjectVersionsInput>,
    ) -> S3Result<S3Response<ListObjectVersionsOutput>> {
        let input = request.input;
        self.check_bucket(&input.bucket)?;
        if input.delimiter.is_some() || input.version_id_marker.is_some() {
            return Err(s3_error!(
                NotImplemented,
                "Versions are listed without a delimiter or a version id."
            ));
        }
        let max_keys = input.max_keys.unwrap_or(MAX_KEYS).min(MAX_KEYS);
        let query = Query {
            prefix: input.prefix.clone().unwrap_or_default(),
            delimiter: None,
            after: input.key_marker.clone().filter(|marker| !marker.is_empty()).map(After::Key),
            max: usize::try_from(max_keys)
                .map_err(|_| s3_error!(InvalidArgument, "max-keys must not be negative"))?,
        };
        let page = listing::list(&self.store.state().objects, &query);
        let encode = |text: String| match &input.encoding_type {
            Some(_) => percent_encoded(&text),
            None => text,
        };
        let next =
            page.next.is_some().then(|| page.objects.last().map(|(key, _)| encode(key.clone()))).flatten();
        let versions: Vec<ObjectVersion> = (page.objects.into_iter())
            .map(|(key, object)| ObjectVersion {
                key: Some(encode(key)),
                version_id: Some("null".to_owned()),
                is_latest: Some(true),
                size: Some(length(object.size)),
                e_tag: Some(ETag::Strong(object.etag)),
                last_modified: Some(modified(object.modified)),
                ..Default::default()
            })
            .collect();
        Ok(S3Response::new(ListObjectVersionsOutput {
            name: Some(input.bucket),
            max_keys: Some(max_keys),
            is_truncated: Some(page.next.is_some()),
            next_key_marker: next,
            next_version_id_marker: page.next.is_some().then(|| "null".to_owned()),
            key_marker: input.key_marker,
            prefix: input.prefix.map(encode),
            encoding_type: input.encoding_type.clone(),
            versions: Some(versions),
            ..Default::default()
        }))
    }
}
