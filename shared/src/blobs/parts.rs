//! An object that is written part by part, so that only one part is in memory.

use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart};
use bytes::Bytes;

use super::{BlobError, BlobKey, Blobs, EXPIRING_TAG, unavailable};

/// A multipart upload. The object appears when it is finished. S3 deletes the parts of an upload that was left after two days.
pub struct PartUpload {
    blobs: Blobs,
    key: BlobKey,
    id: String,
    parts: Vec<CompletedPart>,
    bytes: u64,
}

impl PartUpload {
    /// Every part but the last has at least this many bytes. S3 allows 10,000 parts and demands 5 MiB.
    pub const LEAST: usize = 16 * 1024 * 1024;

    /// Begins an object that S3 deletes automatically after thirty days.
    ///
    /// # Errors
    /// If S3 does not answer.
    pub async fn begin_expiring(blobs: &Blobs, key: BlobKey, content_type: &str) -> Result<Self, BlobError> {
        let begun = blobs.client.create_multipart_upload().bucket(&blobs.bucket).key(&key.0);
        let begun = begun.content_type(content_type).tagging(EXPIRING_TAG).send().await;
        let id = begun.map_err(|error| unavailable(&error))?.upload_id.unwrap_or_default();
        Ok(Self { blobs: blobs.clone(), key, id, parts: Vec::new(), bytes: 0 })
    }

    /// Sends the next part.
    ///
    /// # Errors
    /// If S3 does not answer.
    pub async fn send(&mut self, part: Bytes) -> Result<(), BlobError> {
        let number = i32::try_from(self.parts.len() + 1).unwrap_or(i32::MAX);
        self.bytes += part.len() as u64;
        let request = self.blobs.client.upload_part().bucket(&self.blobs.bucket).key(&self.key.0);
        let request = request.upload_id(&self.id).part_number(number).body(ByteStream::from(part));
        let sent = request.send().await.map_err(|error| unavailable(&error))?;
        let part = CompletedPart::builder()
            .part_number(number)
            .set_e_tag(sent.e_tag)
            .set_checksum_crc32(sent.checksum_crc32)
            .set_checksum_crc32_c(sent.checksum_crc32_c)
            .set_checksum_crc64_nvme(sent.checksum_crc64_nvme)
            .set_checksum_sha1(sent.checksum_sha1)
            .set_checksum_sha256(sent.checksum_sha256);
        self.parts.push(part.build());
        Ok(())
    }

    /// Gives the upload up.
    ///
    /// # Errors
    /// If S3 does not answer. It then deletes the parts after two days.
    pub async fn abort(self) -> Result<(), BlobError> {
        let request = self.blobs.client.abort_multipart_upload().bucket(&self.blobs.bucket);
        let request = request.key(&self.key.0).upload_id(&self.id);
        request.send().await.map(|_| ()).map_err(|error| unavailable(&error))
    }

    /// Makes the parts one object, and returns its size in bytes.
    ///
    /// # Errors
    /// If S3 does not answer.
    pub async fn finish(self) -> Result<u64, BlobError> {
        let parts = CompletedMultipartUpload::builder().set_parts(Some(self.parts)).build();
        let request = self.blobs.client.complete_multipart_upload().bucket(&self.blobs.bucket);
        let request = request.key(&self.key.0).upload_id(&self.id).multipart_upload(parts);
        request.send().await.map_err(|error| unavailable(&error))?;
        Ok(self.bytes)
    }
}
