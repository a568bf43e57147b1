//! The digests that AWS puts into its answers.

use s3s::crypto::{Checksum, Md5};

/// Lower-case hexadecimal MD5, as in ETags and `md5OfBody`.
pub(super) fn md5_hex(bytes: &[u8]) -> String {
    hex(Md5::checksum(bytes).as_ref())
}

pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes whatever is written to it");
        text
    })
}
