//! The digests in AWS answers.

use s3s::crypto::{Checksum, Md5};

/// Lower-case hexadecimal MD5, as in ETags and `md5OfBody`.
pub(super) fn md5_hex(bytes: &[u8]) -> String {
    domain::hex(Md5::checksum(bytes).as_ref())
}
