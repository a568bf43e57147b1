//! Receives a body into a staged file, and checks everything that was claimed about it.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use domain::hex;
use futures::StreamExt;
use http::HeaderMap;
use s3s::checksum::ChecksumHasher;
use s3s::crypto::{Checksum, Crc32, Crc32c, Crc64Nvme, Md5, Sha1, Sha256};
use s3s::dto::StreamingBlob;
use s3s::{S3Request, S3Result, TrailingHeaders, s3_error};
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

use super::convert::of_io;
use super::object::Checksums;
use super::store::{Staged, Store};

/// What the sender claims about the body.
pub(super) struct Claims {
    length: Option<u64>,
    md5: Option<String>,
    checksums: Checksums,
    /// The checksums that follow the body, by header name.
    announced: Vec<String>,
    trailers: Option<TrailingHeaders>,
    /// `x-amz-sdk-checksum-algorithm`, in lower case.
    algorithm: Option<String>,
}

impl Claims {
    pub(super) fn of<T>(request: &S3Request<T>, md5: Option<String>) -> Self {
        let text = |name: &str| request.headers.get(name).and_then(|value| value.to_str().ok());
        Self {
            length: text("x-amz-decoded-content-length")
                .or_else(|| text("content-length"))
                .and_then(|length| length.parse().ok()),
            md5,
            checksums: Checksums::from_headers(&request.headers),
            announced: text("x-amz-trailer")
                .map(|names| names.split(',').map(|name| name.trim().to_ascii_lowercase()).collect())
                .unwrap_or_default(),
            trailers: request.trailing_headers.clone(),
            algorithm: text("x-amz-sdk-checksum-algorithm").map(str::to_ascii_lowercase),
        }
    }

    /// No claims: for bodies that the bucket itself puts together.
    pub(super) fn none() -> Self {
        Self {
            length: None,
            md5: None,
            checksums: Checksums::default(),
            announced: Vec::new(),
            trailers: None,
            algorithm: None,
        }
    }

    /// Computes the checksums that were claimed, announced or requested. If there are none, it computes CRC64NVME, as
    /// S3 does.
    fn hasher(&self) -> ChecksumHasher {
        let mut wanted = self.checksums.by_header().map(|(name, checksum)| {
            let algorithm = name.trim_start_matches("x-amz-checksum-");
            checksum.is_some()
                || self.announced.iter().any(|announced| announced == name)
                || self.algorithm.as_deref() == Some(algorithm)
        });
        if !wanted.contains(&true) {
            wanted[2] = true;
        }
        let [crc32, crc32c, crc64nvme, sha1, sha256] = wanted;
        ChecksumHasher {
            crc32: crc32.then(Crc32::new),
            crc32c: crc32c.then(Crc32c::new),
            crc64nvme: crc64nvme.then(Crc64Nvme::new),
            sha1: sha1.then(Sha1::new),
            sha256: sha256.then(Sha256::new),
        }
    }

    /// Compares the claims with the received body.
    fn check(&self, size: u64, md5: &[u8], computed: &Checksums, trailers: &HeaderMap) -> S3Result<()> {
        if self.length.is_some_and(|length| length != size) {
            return Err(s3_error!(
                IncompleteBody,
                "The body has {size} bytes, which is not the announced size."
            ));
        }
        if let Some(claimed) = &self.md5 {
            let claimed = BASE64_STANDARD.decode(claimed).unwrap_or_default();
            if claimed.len() != md5.len() {
                return Err(s3_error!(InvalidDigest, "The Content-MD5 you specified is not valid."));
            }
            if claimed != md5 {
                return Err(s3_error!(BadDigest, "The Content-MD5 you specified did not match the body."));
            }
        }
        if let Some(name) = self.announced.iter().find(|name| !trailers.contains_key(name.as_str())) {
            return Err(s3_error!(InvalidRequest, "The announced trailer {name} did not follow."));
        }
        for claims in [&self.checksums, &Checksums::from_headers(trailers)] {
            if let Some(name) = claims.refuted_by(computed) {
                return Err(s3_error!(BadDigest, "The {name} you specified did not match the body."));
            }
        }
        Ok(())
    }
}

impl Store {
    /// Writes the body to a staged file and checks it against the claims.
    pub(super) async fn receive(&self, body: Option<StreamingBlob>, claims: Claims) -> S3Result<Staged> {
        let path = self.staging_path();
        let file = File::create_new(&path).await.map_err(of_io)?;
        // `Staged` owns the file from here on, so that an incomplete body leaves no file.
        let mut staged = Staged {
            path,
            file: file.into_std().await,
            size: 0,
            etag: String::new(),
            checksums: Checksums::default(),
        };
        let duplicate = staged.file.try_clone().map_err(of_io)?;
        let mut file = File::from_std(duplicate);

        let mut md5 = Md5::new();
        let mut hasher = claims.hasher();
        if let Some(mut body) = body {
            while let Some(chunk) = body.next().await {
                // Fails on a broken connection, a chunk with a wrong signature, or a body with another SHA-256.
                let chunk =
                    chunk.map_err(|error| s3_error!(InvalidRequest, "The body can't be read: {error}"))?;
                md5.update(&chunk);
                hasher.update(&chunk);
                staged.size += chunk.len() as u64;
                file.write_all(&chunk).await.map_err(of_io)?;
            }
        }
        file.flush().await.map_err(of_io)?;

        let md5 = md5.finalize();
        let computed = hasher.finalize();
        staged.etag = hex(&md5);
        staged.checksums = Checksums {
            crc32: computed.checksum_crc32,
            crc32c: computed.checksum_crc32c,
            crc64nvme: computed.checksum_crc64nvme,
            sha1: computed.checksum_sha1,
            sha256: computed.checksum_sha256,
        };
        let trailers = claims.trailers.as_ref().and_then(TrailingHeaders::take).unwrap_or_default();
        claims.check(staged.size, &md5, &staged.checksums, &trailers)?;
        Ok(staged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the body `hello`.
    const CRC32: &str = "NhCmhg==";
    const ANOTHER: &str = "AAAAAA==";

    #[test]
    fn every_claim_is_compared_with_the_body() {
        let md5 = Md5::checksum(b"hello");
        let computed = Checksums { crc32: Some(CRC32.into()), ..Checksums::default() };
        let header = |value: &str| Checksums { crc32: Some(value.into()), ..Checksums::default() };
        let announced = || vec!["x-amz-checksum-crc32".to_owned()];
        let cases = [
            ("nothing", Claims::none(), None, Ok(())),
            ("the length", Claims { length: Some(5), ..Claims::none() }, None, Ok(())),
            ("a wrong length", Claims { length: Some(6), ..Claims::none() }, None, Err("IncompleteBody")),
            ("a header", Claims { checksums: header(CRC32), ..Claims::none() }, None, Ok(())),
            (
                "a wrong header",
                Claims { checksums: header(ANOTHER), ..Claims::none() },
                None,
                Err("BadDigest"),
            ),
            ("a trailer", Claims { announced: announced(), ..Claims::none() }, Some(CRC32), Ok(())),
            (
                "a wrong trailer",
                Claims { announced: announced(), ..Claims::none() },
                Some(ANOTHER),
                Err("BadDigest"),
            ),
            ("no trailer", Claims { announced: announced(), ..Claims::none() }, None, Err("InvalidRequest")),
            ("a surprising trailer", Claims::none(), Some(ANOTHER), Err("BadDigest")),
        ];
        for (name, claims, trailer, expected) in cases {
            let mut trailers = HeaderMap::new();
            if let Some(trailer) = trailer {
                trailers.insert("x-amz-checksum-crc32", trailer.parse().unwrap());
            }
            let checked = claims.check(5, md5.as_ref(), &computed, &trailers);
            let checked = checked.map_err(|error| error.code().as_str().to_owned());
            assert_eq!(checked, expected.map_err(str::to_owned), "{name}");
        }
    }
}
