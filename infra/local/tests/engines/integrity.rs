//! Only complete bodies are accepted: checksums, signatures, presigned addresses.

use std::time::Duration;

use aws_sdk_s3::error::ProvideErrorMetadata;
use aws_sdk_s3::presigning::{PresignedRequest, PresigningConfig};
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{ChecksumAlgorithm, ChecksumMode};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use lamplighter_local::engines::Engines;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::harness::{BUCKET, engines, engines_with_ports, s3, s3_at};

const BODY: &[u8] = b"hello";

async fn is_absent(engines: &Engines, key: &str) -> bool {
    let head = s3(engines).head_object().bucket(BUCKET).key(key).send().await;
    head.is_err_and(|error| error.into_service_error().is_not_found())
}

#[tokio::test]
async fn a_body_that_is_not_what_was_claimed_is_refused() {
    let engines = engines().await;
    let client = s3(&engines);
    let put = || client.put_object().bucket(BUCKET).key("refused").body(ByteStream::from_static(BODY));
    let cases = [
        ("CRC32", put().checksum_crc32("AAAAAA=="), "BadDigest"),
        ("CRC32C", put().checksum_crc32_c("AAAAAA=="), "BadDigest"),
        ("CRC64NVME", put().checksum_crc64_nvme("AAAAAAAAAAA="), "BadDigest"),
        ("SHA-1", put().checksum_sha1("AAAAAAAAAAAAAAAAAAAAAAAAAAA="), "BadDigest"),
        ("SHA-256", put().checksum_sha256("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="), "BadDigest"),
        ("MD5", put().content_md5("AAAAAAAAAAAAAAAAAAAAAA=="), "BadDigest"),
        ("no MD5", put().content_md5("short"), "InvalidDigest"),
    ];
    for (name, put, expected) in cases {
        let error = put.send().await.unwrap_err();
        assert_eq!(error.code(), Some(expected), "{name}: {error:?}");
        assert!(is_absent(&engines, "refused").await, "{name}");
    }
    engines.shutdown().await;
}

#[tokio::test]
async fn a_right_checksum_of_each_kind_is_kept_and_given_back() {
    let engines = engines().await;
    let client = s3(&engines);
    let cases = [
        (ChecksumAlgorithm::Crc32, "NhCmhg=="),
        (ChecksumAlgorithm::Crc32C, "mnG7TA=="),
        (ChecksumAlgorithm::Crc64Nvme, "M3eFcAZSQlc="),
        (ChecksumAlgorithm::Sha1, "qvTGHdzF6KLavt4PO0gs2a6pQ00="),
        (ChecksumAlgorithm::Sha256, "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ="),
    ];
    for (algorithm, expected) in cases {
        let put = client.put_object().bucket(BUCKET).key("a").body(ByteStream::from_static(BODY));
        put.checksum_algorithm(algorithm.clone()).send().await.unwrap();
        let head = client.head_object().bucket(BUCKET).key("a").checksum_mode(ChecksumMode::Enabled);
        let head = head.send().await.unwrap();
        let found = [
            head.checksum_crc32(),
            head.checksum_crc32_c(),
            head.checksum_crc64_nvme(),
            head.checksum_sha1(),
            head.checksum_sha256(),
        ];
        let found: Vec<_> = found.into_iter().flatten().collect();
        assert_eq!(found, [expected], "{algorithm}");
    }
    engines.shutdown().await;
}

/// Changes `from` to `to`, which has the same length, in everything that the client sends to the bucket.
async fn tampering(to_port: String, from: &'static [u8], to: &'static [u8]) -> String {
    assert_eq!(from.len(), to.len());
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(to_port.trim_start_matches("http://")).await.unwrap();
            let (mut from_client, mut to_client) = client.into_split();
            let (mut from_server, mut to_server) = server.into_split();
            tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
            tokio::spawn(async move {
                let mut piece = vec![0; 1 << 20];
                while let Ok(size @ 1..) = from_client.read(&mut piece).await {
                    let piece = &mut piece[..size];
                    while let Some(at) = piece.windows(from.len()).position(|window| window == from) {
                        piece[at..at + to.len()].copy_from_slice(to);
                    }
                    to_server.write_all(piece).await.unwrap();
                }
            });
        }
    });
    format!("http://{address}")
}

#[tokio::test]
async fn a_body_changed_on_its_way_is_refused() {
    let engines = engines_with_ports().await;
    let port = engines.s3_url().unwrap();
    let tampered = s3_at(&tampering(port, b"original", b"tampered").await, engines.keys());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("body");
    std::fs::write(&file, "the original, streamed").unwrap();

    // If the body is signed, its hash or the hash of each chunk is in the signature. If not, only the checksum protects
    // it.
    let in_memory = || ByteStream::from_static(b"the original, at once");
    let cases = [
        ("in memory, signed", in_memory(), true, "InvalidRequest"),
        ("in memory, unsigned", in_memory(), false, "BadDigest"),
        ("streamed", ByteStream::from_path(&file).await.unwrap(), true, "InvalidRequest"),
    ];
    for (name, body, signed, expected) in cases {
        let put = tampered.put_object().bucket(BUCKET).key("refused").body(body).customize();
        let put = if signed { put } else { put.disable_payload_signing() };
        assert_eq!(put.send().await.unwrap_err().code(), Some(expected), "{name}");
        assert!(is_absent(&engines, "refused").await, "{name}");
    }
    let client = s3(&engines);
    let streamed = ByteStream::from_path(&file).await.unwrap();
    client.put_object().bucket(BUCKET).key("taken").body(streamed).send().await.unwrap();
    let read = client.get_object().bucket(BUCKET).key("taken").send().await.unwrap();
    assert_eq!(read.content_encoding(), None);
    assert_eq!(read.body.collect().await.unwrap().to_vec(), b"the original, streamed");
    engines.shutdown().await;
}

/// Sends a presigned request as a browser does.
async fn send(request: &PresignedRequest, body: &'static [u8], change: &[(&str, &str)]) -> (u16, String) {
    let mut uri = request.uri().to_owned();
    let mut headers: Vec<(&str, &str)> = request.headers().collect();
    for (what, with) in change {
        match headers.iter_mut().find(|(name, _)| name == what) {
            Some((_, value)) => *value = with,
            None => uri = uri.replace(what, with),
        }
    }
    let mut builder = http::Request::builder().method(request.method()).uri(&uri);
    for (name, value) in headers {
        // The client computes the length itself. It must be the signed length.
        if name != "content-length" {
            builder = builder.header(name, value);
        }
    }
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let answer = client.request(builder.body(Full::from(Bytes::from_static(body))).unwrap()).await.unwrap();
    let status = answer.status().as_u16();
    let text = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8_lossy(&text).into_owned())
}

fn within(expires_in: Duration) -> PresigningConfig {
    PresigningConfig::expires_in(expires_in).unwrap()
}

#[tokio::test]
async fn a_presigned_put_takes_what_was_signed_and_nothing_else() {
    let engines = engines_with_ports().await;
    let presign = |client: aws_sdk_s3::Client| {
        let put = client.put_object().bucket(BUCKET).key("uploads/a b.txt");
        let put = put.content_type("text/plain").content_length(5);
        let put = put.checksum_sha256("LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=");
        async move { put.presigned(within(Duration::from_secs(300))).await.unwrap() }
    };
    let signed = presign(s3(&engines)).await;
    type Case = (&'static str, &'static [u8], &'static [(&'static str, &'static str)]);
    let refused: [Case; 5] = [
        ("another body of that length", b"jello", &[]),
        ("a longer body", b"hello hello", &[]),
        ("another type", BODY, &[("content-type", "text/html")]),
        ("another key", BODY, &[("a%20b.txt", "b.txt")]),
        ("a longer life", BODY, &[("X-Amz-Expires=300", "X-Amz-Expires=3000")]),
    ];
    for (name, body, change) in refused {
        let (status, text) = send(&signed, body, change).await;
        assert!([400, 403].contains(&status), "{name}: {status} {text}");
        assert!(is_absent(&engines, "uploads/a b.txt").await, "{name}");
    }
    assert_eq!(send(&signed, BODY, &[]).await.0, 200);
    let head = s3(&engines).head_object().bucket(BUCKET).key("uploads/a b.txt").send().await.unwrap();
    assert_eq!((head.content_length(), head.content_type()), (Some(5), Some("text/plain")));
    engines.shutdown().await;
}

#[tokio::test]
async fn a_presigned_get_works_until_it_expires() {
    let engines = engines_with_ports().await;
    let client = s3(&engines);
    client.put_object().bucket(BUCKET).key("a").body(ByteStream::from_static(BODY)).send().await.unwrap();
    let get = || client.get_object().bucket(BUCKET).key("a");
    let signed = get().presigned(within(Duration::from_secs(60))).await.unwrap();
    assert_eq!(send(&signed, b"", &[]).await, (200, "hello".into()));

    let an_hour_ago = std::time::SystemTime::now() - Duration::from_secs(3600);
    let old = PresigningConfig::builder().start_time(an_hour_ago).expires_in(Duration::from_secs(60));
    let expired = get().presigned(old.build().unwrap()).await.unwrap();
    assert_eq!(send(&expired, b"", &[]).await.0, 403);

    let unsigned = format!("{}/{BUCKET}/a", engines.s3_url().unwrap());
    let answer = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    assert_eq!(answer.get(unsigned.parse().unwrap()).await.unwrap().status(), 403);
    engines.shutdown().await;
}
