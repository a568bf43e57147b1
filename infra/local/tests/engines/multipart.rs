use aws_sdk_s3::error::ProvideErrorMetadata;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart};
use lamplighter_local::engines::{DataLocation, Engines};

use crate::harness::{BUCKET, config, engines, s3, soon};

const KEY: &str = "owner/big ä.bin";
const PART: usize = 5 << 20;

async fn create(client: &aws_sdk_s3::Client) -> String {
    let create = client.create_multipart_upload().bucket(BUCKET).key(KEY).content_type("text/csv");
    create.send().await.unwrap().upload_id.unwrap()
}

async fn part(client: &aws_sdk_s3::Client, id: &str, number: i32, body: Vec<u8>) -> CompletedPart {
    let put = client.upload_part().bucket(BUCKET).key(KEY).upload_id(id).part_number(number);
    let done = put.body(ByteStream::from(body)).send().await.unwrap();
    let part = CompletedPart::builder().part_number(number).e_tag(done.e_tag().unwrap());
    part.set_checksum_crc32(done.checksum_crc32).build()
}

/// The object's ETag, or the error's code.
async fn complete(
    client: &aws_sdk_s3::Client,
    id: &str,
    parts: Vec<CompletedPart>,
) -> Result<String, String> {
    let parts = CompletedMultipartUpload::builder().set_parts(Some(parts)).build();
    let complete = client.complete_multipart_upload().bucket(BUCKET).key(KEY).upload_id(id);
    match complete.multipart_upload(parts).send().await {
        Ok(done) => Ok(done.e_tag.unwrap()),
        Err(error) => Err(error.code().unwrap().to_owned()),
    }
}

#[tokio::test]
async fn parts_become_one_object_also_across_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let at = config(DataLocation::Folder(folder.path().to_owned()));
    let engines = Engines::start(at.clone()).await.unwrap();
    let client = s3(&engines);
    let id = create(&client).await;
    part(&client, &id, 2, vec![b'x'; 10]).await;
    let second = part(&client, &id, 2, b"the end".to_vec()).await;
    engines.shutdown().await;

    let engines = Engines::start(at).await.unwrap();
    let client = s3(&engines);
    let mut uploads = engines.uploads().unwrap();
    let first = part(&client, &id, 1, vec![b'1'; PART]).await;
    part(&client, &id, 7, b"not chosen".to_vec()).await;
    let listed =
        client.list_parts().bucket(BUCKET).key(KEY).upload_id(&id).max_parts(2).send().await.unwrap();
    let sizes: Vec<_> =
        listed.parts().iter().map(|part| (part.part_number().unwrap(), part.size().unwrap())).collect();
    assert_eq!(sizes, [(1, PART as i64), (2, 7)]);
    assert_eq!((listed.is_truncated(), listed.next_part_number_marker()), (Some(true), Some("2")));

    let etag = complete(&client, &id, vec![first, second]).await.unwrap();
    assert!(etag.ends_with("-2\""), "{etag}");
    let read = client.get_object().bucket(BUCKET).key(KEY).send().await.unwrap();
    assert_eq!((read.e_tag(), read.content_type()), (Some(etag.as_str()), Some("text/csv")));
    let body = read.body.collect().await.unwrap().to_vec();
    assert_eq!(body.len(), PART + 7);
    assert!(body[..PART].iter().all(|byte| *byte == b'1') && body.ends_with(b"the end"));
    let event = soon(uploads.next()).await.unwrap().event;
    assert_eq!((event.key.as_str(), event.size), (KEY, PART as u64 + 7));
    assert_eq!(complete(&client, &id, vec![]).await, Err("NoSuchUpload".into()));
    assert_eq!(std::fs::read_dir(folder.path().join("bucket/uploads")).unwrap().count(), 0);
    engines.shutdown().await;
}

#[tokio::test]
async fn a_list_that_does_not_fit_the_parts_is_refused_and_the_upload_stays() {
    let engines = engines().await;
    let client = s3(&engines);
    let id = create(&client).await;
    let small = part(&client, &id, 1, b"small".to_vec()).await;
    let last = part(&client, &id, 2, b"last".to_vec()).await;
    let absent = CompletedPart::builder().part_number(3).build();
    let replaced = CompletedPart::builder().part_number(2).e_tag(small.e_tag().unwrap()).build();
    let damaged = CompletedPart::builder().part_number(2).checksum_crc32("AAAAAA==").build();
    let cases = [
        (vec![], "MalformedXML"),
        (vec![last.clone(), small.clone()], "InvalidPartOrder"),
        (vec![last.clone(), last.clone()], "InvalidPartOrder"),
        (vec![small.clone(), last.clone()], "EntityTooSmall"),
        (vec![absent], "InvalidPart"),
        (vec![replaced], "InvalidPart"),
        (vec![damaged], "InvalidPart"),
    ];
    for (parts, expected) in cases {
        assert_eq!(complete(&client, &id, parts.clone()).await, Err(expected.into()), "{parts:?}");
    }
    complete(&client, &id, vec![last]).await.unwrap();

    let id = create(&client).await;
    client.abort_multipart_upload().bucket(BUCKET).key(KEY).upload_id(&id).send().await.unwrap();
    for unknown in [id.as_str(), "../objects", "00000000000000000000000000000000"] {
        let put = client.upload_part().bucket(BUCKET).key(KEY).upload_id(unknown).part_number(1);
        let error = put.body(ByteStream::from_static(b"x")).send().await.unwrap_err();
        assert_eq!(error.code(), Some("NoSuchUpload"), "{unknown}");
    }
    engines.shutdown().await;
}
