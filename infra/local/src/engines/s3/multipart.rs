//! Multipart uploads. Parts are in a separate folder until they become one object.
//!
//! `uploads/ID/upload.json` describes the future object. `uploads/ID/00001` and so on are the parts, in the file format
//! of objects. Nothing is kept in memory, so an upload continues after a restart.

use std::fs;
use std::io;
use std::path::PathBuf;

use domain::hex;
use futures::{StreamExt, TryStreamExt, stream};
use s3s::crypto::{Checksum, Md5};
use s3s::dto::*;
use s3s::{S3Request, S3Response, S3Result, s3_error};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::convert::{condition, length, modified, read, stored_encoding};
use super::object::{Checksums, Headers, Metadata};
use super::operations::{Operations, headers_of, with_checksums};
use super::receive::Claims;
use super::store::{Staged, Store, StoreError};

const DESCRIPTION: &str = "upload.json";
const MAX_PARTS: i32 = 10_000;
/// The smallest size of every part except the last, in bytes.
const MIN_PART: u64 = 5 << 20;

/// The future object.
#[derive(Debug, Serialize, Deserialize)]
struct Description {
    key: String,
    headers: Headers,
}

/// A part on disk.
#[derive(Debug)]
struct Uploaded {
    number: i32,
    path: PathBuf,
    metadata: Metadata,
}

impl Store {
    fn create_upload(&self, description: &Description) -> Result<Uuid, StoreError> {
        let id = Uuid::now_v7();
        let folder = self.upload_folder(id);
        fs::create_dir(&folder)?;
        fs::write(folder.join(DESCRIPTION), serde_json::to_vec(description).map_err(io::Error::from)?)?;
        self.sync_file(&folder.join(DESCRIPTION))?;
        self.sync_folder(&folder)?;
        self.sync_folder(&self.folder.join("uploads"))?;
        Ok(id)
    }

    fn describe_upload(&self, id: Uuid, key: &str) -> Result<Description, StoreError> {
        let json = fs::read(self.upload_folder(id).join(DESCRIPTION)).map_err(no_such_upload)?;
        let description: Description = serde_json::from_slice(&json).map_err(io::Error::from)?;
        if description.key == key { Ok(description) } else { Err(StoreError::NoSuchUpload) }
    }

    fn put_part(&self, id: Uuid, number: i32, mut staged: Staged) -> Result<Metadata, StoreError> {
        let metadata = Metadata {
            key: number.to_string(),
            size: staged.size,
            etag: staged.etag.clone(),
            modified: jiff::Timestamp::now(),
            sequencer: 0,
            headers: Headers::default(),
            checksums: staged.checksums.clone(),
        };
        metadata.append_to(&mut staged.file)?;
        self.sync_file(&staged.path)?;
        let folder = self.upload_folder(id);
        fs::rename(&staged.path, folder.join(format!("{number:05}"))).map_err(no_such_upload)?;
        self.sync_folder(&folder)?;
        Ok(metadata)
    }

    /// The parts in order.
    fn parts(&self, id: Uuid) -> Result<Vec<Uploaded>, StoreError> {
        let mut parts = Vec::new();
        for entry in fs::read_dir(self.upload_folder(id)).map_err(no_such_upload)? {
            let entry = entry?;
            if let Some(number) = entry.file_name().to_str().and_then(|name| name.parse().ok()) {
                let (_, metadata) = Metadata::open(&entry.path())?;
                parts.push(Uploaded { number, path: entry.path(), metadata });
            }
        }
        parts.sort_by_key(|part| part.number);
        Ok(parts)
    }

    fn remove_upload(&self, id: Uuid) -> Result<(), StoreError> {
        fs::remove_dir_all(self.upload_folder(id)).map_err(no_such_upload)
    }

    /// Removes the incomplete uploads to keys with this prefix.
    pub(super) fn remove_uploads(&self, prefix: &str) -> io::Result<()> {
        for entry in fs::read_dir(self.folder.join("uploads"))? {
            let folder = entry?.path();
            // Without a complete description, the upload was never acknowledged and has no parts.
            let description = match fs::read(folder.join(DESCRIPTION)) {
                Ok(json) => serde_json::from_slice::<Description>(&json).ok(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(error),
            };
            if description.is_some_and(|description| description.key.starts_with(prefix)) {
                match fs::remove_dir_all(&folder) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn upload_folder(&self, id: Uuid) -> PathBuf {
        self.folder.join("uploads").join(id.simple().to_string())
    }
}

fn no_such_upload(error: io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::NotFound => StoreError::NoSuchUpload,
        _ => StoreError::Io(error),
    }
}

/// Only valid ids may become folder names.
fn parse_id(text: &str) -> S3Result<Uuid> {
    Uuid::try_parse(text).map_err(|_| StoreError::NoSuchUpload.into())
}

impl Operations {
    pub(super) async fn create_upload(
        &self,
        mut request: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        let input = &mut request.input;
        self.check_bucket(&input.bucket)?;
        let description = Description { key: input.key.clone(), headers: headers_of!(input) };
        let id = self.blocking(move |store| store.create_upload(&description)).await?;
        Ok(S3Response::new(CreateMultipartUploadOutput {
            bucket: Some(request.input.bucket),
            key: Some(request.input.key),
            upload_id: Some(id.simple().to_string()),
            ..Default::default()
        }))
    }

    pub(super) async fn receive_part(
        &self,
        mut request: S3Request<UploadPartInput>,
    ) -> S3Result<S3Response<UploadPartOutput>> {
        self.check_bucket(&request.input.bucket)?;
        let claims = Claims::of(&request, request.input.content_md5.clone());
        let UploadPartInput { key, part_number, upload_id, body, .. } = &mut request.input;
        let (id, number, key) = (parse_id(upload_id)?, *part_number, std::mem::take(key));
        if !(1..=MAX_PARTS).contains(&number) {
            return Err(s3_error!(InvalidArgument, "A part's number is between 1 and {MAX_PARTS}."));
        }
        self.blocking(move |store| store.describe_upload(id, &key)).await?;
        let staged = self.store.receive(body.take(), claims).await?;
        let part = self.blocking(move |store| store.put_part(id, number, staged)).await?;
        let answer = UploadPartOutput { e_tag: Some(ETag::Strong(part.etag)), ..Default::default() };
        Ok(S3Response::new(with_checksums!(answer, &part.checksums)))
    }

    pub(super) async fn parts_of_upload(
        &self,
        request: S3Request<ListPartsInput>,
    ) -> S3Result<S3Response<ListPartsOutput>> {
        let input = request.input;
        self.check_bucket(&input.bucket)?;
        let (id, key) = (parse_id(&input.upload_id)?, input.key.clone());
        let parts = self
            .blocking(move |store| {
                store.describe_upload(id, &key)?;
                store.parts(id)
            })
            .await?;
        let after = input.part_number_marker.unwrap_or(0);
        let max = input.max_parts.unwrap_or(1000).clamp(1, 1000);
        let mut parts = parts.into_iter().filter(|part| part.number > after);
        let page: Vec<Part> = (parts.by_ref().take(max as usize))
            .map(|Uploaded { number, metadata: part, .. }| {
                let answer = Part {
                    part_number: Some(number),
                    size: Some(length(part.size)),
                    e_tag: Some(ETag::Strong(part.etag)),
                    last_modified: Some(modified(part.modified)),
                    ..Default::default()
                };
                with_checksums!(answer, &part.checksums)
            })
            .collect();
        Ok(S3Response::new(ListPartsOutput {
            is_truncated: Some(parts.next().is_some()),
            next_part_number_marker: page.last().and_then(|part| part.part_number),
            part_number_marker: Some(after),
            max_parts: Some(max),
            parts: Some(page),
            bucket: Some(input.bucket),
            key: Some(input.key),
            upload_id: Some(input.upload_id),
            ..Default::default()
        }))
    }

    pub(super) async fn abort_upload(
        &self,
        request: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        let input = request.input;
        self.check_bucket(&input.bucket)?;
        let id = parse_id(&input.upload_id)?;
        self.blocking(move |store| {
            store.describe_upload(id, &input.key)?;
            store.remove_upload(id)
        })
        .await?;
        Ok(S3Response::with_status(AbortMultipartUploadOutput::default(), http::StatusCode::NO_CONTENT))
    }

    pub(super) async fn complete_upload(
        &self,
        request: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        let CompleteMultipartUploadInput {
            bucket,
            key,
            upload_id,
            multipart_upload,
            if_match,
            if_none_match,
            ..
        } = request.input;
        self.check_bucket(&bucket)?;
        let (id, condition) = (parse_id(&upload_id)?, condition(if_match, if_none_match)?);
        let named = key.clone();
        let (description, parts) =
            self.blocking(move |store| Ok((store.describe_upload(id, &named)?, store.parts(id)?))).await?;
        let claimed = multipart_upload.and_then(|upload| upload.parts).unwrap_or_default();
        let chosen = choose(&claimed, parts)?;

        let digests: Vec<u8> = chosen.iter().flat_map(|part| unhex(&part.metadata.etag)).collect();
        let etag = format!("{}-{}", hex(&Md5::checksum(&digests)), chosen.len());
        // Opened one after the other, because there may be more parts than a process may open files.
        let body = stream::iter(chosen).then(|part| async move {
            let file = tokio::fs::File::open(part.path).await?.into_std().await;
            Ok::<_, io::Error>(read(file, 0..part.metadata.size))
        });
        let body = StreamingBlob::wrap(body.try_flatten());
        let mut staged = self.store.receive(Some(body), Claims::none()).await?;
        staged.etag = etag;
        let metadata = self
            .blocking(move |store| {
                let metadata = store.commit(staged, &description.key, description.headers, &condition)?;
                // If a crash leaves a part of it, the upload can be completed again, to the same object.
                store.remove_upload(id)?;
                Ok(metadata)
            })
            .await?;
        let answer = CompleteMultipartUploadOutput {
            bucket: Some(bucket),
            key: Some(key),
            e_tag: Some(ETag::Strong(metadata.etag)),
            checksum_type: Some(ChecksumType::from_static(ChecksumType::FULL_OBJECT)),
            ..Default::default()
        };
        Ok(S3Response::new(with_checksums!(answer, &metadata.checksums)))
    }
}

/// The parts that the client names, in its order, if they match the uploaded ones.
fn choose(claimed: &[CompletedPart], mut parts: Vec<Uploaded>) -> S3Result<Vec<Uploaded>> {
    let numbers: Vec<i32> = claimed.iter().map(|part| part.part_number.unwrap_or(0)).collect();
    if !numbers.is_sorted_by(|a, b| a < b) {
        return Err(s3_error!(InvalidPartOrder, "The list of parts was not in ascending order."));
    }
    let mut chosen = Vec::with_capacity(claimed.len());
    for (claim, number) in claimed.iter().zip(numbers) {
        let Some(at) = parts.iter().position(|part| part.number == number) else {
            return Err(s3_error!(InvalidPart, "Part {number} was not uploaded."));
        };
        let part = parts.swap_remove(at);
        let checksums = Checksums {
            crc32: claim.checksum_crc32.clone(),
            crc32c: claim.checksum_crc32c.clone(),
            crc64nvme: claim.checksum_crc64nvme.clone(),
            sha1: claim.checksum_sha1.clone(),
            sha256: claim.checksum_sha256.clone(),
        };
        let another = claim.e_tag.as_ref().is_some_and(|etag| etag.value() != part.metadata.etag);
        if another || checksums.refuted_by(&part.metadata.checksums).is_some() {
            return Err(s3_error!(InvalidPart, "Part {number} differs from the uploaded one."));
        }
        chosen.push(part);
    }
    match chosen.split_last() {
        None => Err(s3_error!(MalformedXML, "An object has at least one part.")),
        Some((_, others)) if others.iter().any(|part| part.metadata.size < MIN_PART) => {
            Err(s3_error!(EntityTooSmall, "Every part but the last has at least 5 MB."))
        }
        Some(_) => Ok(chosen),
    }
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks_exact(2);
    digits.filter_map(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok()).collect()
}
