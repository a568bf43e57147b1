use aws_sdk_s3::error::ProvideErrorMetadata;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{Delete, ObjectIdentifier};
use aws_smithy_types::DateTime;
use lamplighter_local::engines::{DataLocation, Engines};

use crate::harness::{BUCKET, config, engines, s3};

async fn put(client: &aws_sdk_s3::Client, key: &str, body: &'static [u8]) {
    client.put_object().bucket(BUCKET).key(key).body(ByteStream::from_static(body)).send().await.unwrap();
}

async fn get(client: &aws_sdk_s3::Client, key: &str) -> Vec<u8> {
    let answer = client.get_object().bucket(BUCKET).key(key).send().await.unwrap();
    answer.body.collect().await.unwrap().to_vec()
}

#[tokio::test]
async fn an_object_comes_back_as_it_was_put_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let at = DataLocation::Folder(folder.path().to_owned());
    let first = Engines::start(config(at.clone())).await.unwrap();
    let client = s3(&first);
    let written = client
        .put_object()
        .bucket(BUCKET)
        .key("owner/a.txt")
        .body(ByteStream::from_static(b"hello"))
        .content_type("text/plain; charset=utf-8")
        .cache_control("no-store")
        .content_disposition("attachment; filename=\"a.txt\"")
        .content_language("en")
        .metadata("by", "me")
        .send()
        .await
        .unwrap();
    assert_eq!(written.e_tag(), Some("\"5d41402abc4b2a76b9719d911017c592\""));
    assert_eq!(written.checksum_crc32(), Some("NhCmhg=="));
    first.shutdown().await;

    let second = Engines::start(config(at)).await.unwrap();
    let client = s3(&second);
    let head = client.head_object().bucket(BUCKET).key("owner/a.txt").send().await.unwrap();
    let read = client.get_object().bucket(BUCKET).key("owner/a.txt").send().await.unwrap();
    assert_eq!(head.content_length(), Some(5));
    assert_eq!(head.last_modified(), read.last_modified());
    for (of_head, of_get, expected) in [
        (head.e_tag(), read.e_tag(), "\"5d41402abc4b2a76b9719d911017c592\""),
        (head.content_type(), read.content_type(), "text/plain; charset=utf-8"),
        (head.cache_control(), read.cache_control(), "no-store"),
        (head.content_disposition(), read.content_disposition(), "attachment; filename=\"a.txt\""),
        (head.content_language(), read.content_language(), "en"),
    ] {
        assert_eq!((of_head, of_get), (Some(expected), Some(expected)));
    }
    assert_eq!(head.content_encoding(), None);
    assert_eq!(read.metadata(), head.metadata());
    assert_eq!(read.metadata().unwrap()["by"], "me");
    assert_eq!(read.body.collect().await.unwrap().to_vec(), b"hello");
    second.shutdown().await;
}

#[tokio::test]
async fn sixteen_writers_of_an_absent_object_make_one() {
    let engines = engines().await;
    let client = s3(&engines);
    let writers: Vec<_> = (0..16)
        .map(|n: u8| {
            let client = client.clone();
            tokio::spawn(async move {
                let body = ByteStream::from(vec![n; 1000]);
                let put = client.put_object().bucket(BUCKET).key("manifest").body(body);
                (n, put.if_none_match("*").send().await)
            })
        })
        .collect();
    let mut winners = Vec::new();
    for writer in writers {
        match writer.await.unwrap() {
            (n, Ok(_)) => winners.push(n),
            (_, Err(error)) => assert_eq!(error.code(), Some("PreconditionFailed")),
        }
    }
    assert_eq!(winners.len(), 1);
    assert_eq!(get(&client, "manifest").await, vec![winners[0]; 1000]);

    // If several clients replace the version that they read, one succeeds, too.
    let etag = client.head_object().bucket(BUCKET).key("manifest").send().await.unwrap().e_tag.unwrap();
    let writers: Vec<_> = (0..16)
        .map(|_| {
            let (client, etag) = (client.clone(), etag.clone());
            tokio::spawn(async move {
                let body = ByteStream::from_static(b"next");
                client.put_object().bucket(BUCKET).key("manifest").body(body).if_match(etag).send().await
            })
        })
        .collect();
    let mut won = 0;
    for writer in writers {
        match writer.await.unwrap() {
            Ok(_) => won += 1,
            Err(error) => assert_eq!(error.code(), Some("PreconditionFailed")),
        }
    }
    assert_eq!(won, 1);
    let absent = client.put_object().bucket(BUCKET).key("absent").if_match(etag).send().await.unwrap_err();
    assert_eq!(absent.code(), Some("NoSuchKey"));
    engines.shutdown().await;
}

#[tokio::test]
async fn keys_of_any_shape_are_objects_of_their_own() {
    let long = "k".repeat(1024);
    let keys = [
        "x",
        "x/y",
        "x/y/z",
        "x/",
        "a/../../etc/passwd",
        "..",
        "../..",
        "./x",
        "a//b",
        "/a",
        "%2e%2e/x",
        "a b+c&d=e?f#g",
        "ä/☃/😀",
        "quote'\"<>",
        "back\\slash",
        "star*",
        "~",
        "a%20b",
        long.as_str(),
    ];
    let engines = engines().await;
    let client = s3(&engines);
    for key in keys {
        let body = ByteStream::from(key.as_bytes().to_vec());
        client
            .put_object()
            .bucket(BUCKET)
            .key(key)
            .body(body)
            .send()
            .await
            .unwrap_or_else(|e| panic!("{key}: {e:?}"));
    }
    for key in keys {
        assert_eq!(get(&client, key).await, key.as_bytes(), "{key}");
    }
    let listed = client.list_objects_v2().bucket(BUCKET).send().await.unwrap();
    let mut expected = keys.to_vec();
    expected.sort_unstable();
    let found: Vec<_> = listed.contents().iter().map(|object| object.key().unwrap()).collect();
    assert_eq!(found, expected);

    client.delete_object().bucket(BUCKET).key("x").send().await.unwrap();
    assert_eq!(get(&client, "x/y").await, b"x/y");
    let gone = client.get_object().bucket(BUCKET).key("x").send().await.unwrap_err();
    assert_eq!(gone.code(), Some("NoSuchKey"));
    let too_long = client.put_object().bucket(BUCKET).key("k".repeat(1025)).send().await.unwrap_err();
    assert_eq!(too_long.code(), Some("KeyTooLongError"));
    engines.shutdown().await;
}

#[tokio::test]
async fn ranges_and_preconditions_of_reads() {
    let engines = engines().await;
    let client = s3(&engines);
    put(&client, "digits", b"0123456789").await;
    let cases = [
        ("bytes=0-0", Ok(("0", "bytes 0-0/10"))),
        ("bytes=2-4", Ok(("234", "bytes 2-4/10"))),
        ("bytes=7-", Ok(("789", "bytes 7-9/10"))),
        ("bytes=-3", Ok(("789", "bytes 7-9/10"))),
        ("bytes=8-99", Ok(("89", "bytes 8-9/10"))),
        ("bytes=10-", Err("InvalidRange")),
    ];
    for (range, expected) in cases {
        match client.get_object().bucket(BUCKET).key("digits").range(range).send().await {
            Ok(answer) => {
                let content_range = answer.content_range().unwrap().to_owned();
                let body = answer.body.collect().await.unwrap().to_vec();
                let body = String::from_utf8(body).unwrap();
                assert_eq!(Ok((body.as_str(), content_range.as_str())), expected, "{range}");
            }
            Err(error) => assert_eq!(Err(error.code().unwrap()), expected, "{range}"),
        }
    }
    let etag = client.head_object().bucket(BUCKET).key("digits").send().await.unwrap().e_tag.unwrap();
    let read = || client.get_object().bucket(BUCKET).key("digits");
    assert!(read().if_match(&etag).send().await.is_ok());
    assert!(read().if_none_match("\"another\"").send().await.is_ok());
    let unchanged = read().if_none_match(&etag).send().await.unwrap_err();
    assert_eq!(unchanged.raw_response().unwrap().status().as_u16(), 304);
    let changed = read().if_match("\"another\"").send().await.unwrap_err();
    assert_eq!(changed.code(), Some("PreconditionFailed"));
    engines.shutdown().await;
}

#[tokio::test]
async fn listings_page_fold_and_encode() {
    let engines = engines().await;
    let client = s3(&engines);
    for key in ["a/1", "a/2", "a/b/3", "c", "d e", "d/4"] {
        put(&client, key, b"hello").await;
    }
    let mut pages =
        client.list_objects_v2().bucket(BUCKET).delimiter("/").into_paginator().page_size(1).send();
    let (mut keys, mut prefixes, mut count) = (Vec::new(), Vec::new(), 0);
    while let Some(page) = pages.next().await {
        let page = page.unwrap();
        assert_eq!(page.key_count(), Some(1));
        keys.extend(page.contents().iter().map(|object| object.key().unwrap().to_owned()));
        prefixes.extend(page.common_prefixes().iter().map(|prefix| prefix.prefix().unwrap().to_owned()));
        count += 1;
    }
    assert_eq!(keys, ["c", "d e"]);
    assert_eq!(prefixes, ["a/", "d/"]);
    assert_eq!(count, 4);

    let listed =
        client.list_objects_v2().bucket(BUCKET).prefix("a/").start_after("a/1").send().await.unwrap();
    let first = &listed.contents()[0];
    assert_eq!(listed.contents().len(), 2);
    assert_eq!((first.key(), first.size()), (Some("a/2"), Some(5)));
    assert_eq!(first.e_tag(), Some("\"5d41402abc4b2a76b9719d911017c592\""));
    let head = client.head_object().bucket(BUCKET).key("a/2").send().await.unwrap();
    assert_eq!(first.last_modified().map(DateTime::secs), head.last_modified().map(DateTime::secs));

    let encoded = client.list_objects_v2().bucket(BUCKET).prefix("d ");
    let encoded = encoded.encoding_type(aws_sdk_s3::types::EncodingType::Url).send().await.unwrap();
    assert_eq!(encoded.contents()[0].key(), Some("d%20e"));
    let wrong = client.list_objects_v2().bucket(BUCKET).continuation_token("made up").send().await;
    assert_eq!(wrong.unwrap_err().code(), Some("InvalidArgument"));
    engines.shutdown().await;
}

#[tokio::test]
async fn deleting_many_and_missing_objects() {
    let engines = engines().await;
    let client = s3(&engines);
    for key in ["a", "b", "c"] {
        put(&client, key, b"hello").await;
    }
    let objects = ["a", "absent", "b"].map(|key| ObjectIdentifier::builder().key(key).build().unwrap());
    let delete = Delete::builder().set_objects(Some(objects.to_vec())).build().unwrap();
    let deleted = client.delete_objects().bucket(BUCKET).delete(delete).send().await.unwrap();
    let keys: Vec<_> = deleted.deleted().iter().map(|object| object.key().unwrap()).collect();
    assert_eq!(keys, ["a", "absent", "b"]);
    client.delete_object().bucket(BUCKET).key("absent").send().await.unwrap();
    let changed = client.delete_object().bucket(BUCKET).key("c").if_match("\"another\"").send().await;
    assert_eq!(changed.unwrap_err().code(), Some("PreconditionFailed"));
    let listed = client.list_objects_v2().bucket(BUCKET).send().await.unwrap();
    assert_eq!(listed.contents().iter().map(|object| object.key().unwrap()).collect::<Vec<_>>(), ["c"]);
    let bucket = client.list_objects_v2().bucket("another").send().await.unwrap_err();
    assert_eq!(bucket.code(), Some("NoSuchBucket"));
    engines.shutdown().await;
}

#[tokio::test]
async fn a_copy_takes_the_metadata_along_or_replaces_it() {
    let engines = engines().await;
    let client = s3(&engines);
    let original = client.put_object().bucket(BUCKET).key("from/ä b").body(ByteStream::from_static(b"hello"));
    original.content_type("text/plain").metadata("by", "me").send().await.unwrap();
    let copy = |to: &str| {
        let source = format!("{BUCKET}/from/%C3%A4%20b");
        client.copy_object().bucket(BUCKET).copy_source(source).key(to)
    };
    let copied = copy("same").send().await.unwrap();
    assert_eq!(copied.copy_object_result().unwrap().e_tag(), Some("\"5d41402abc4b2a76b9719d911017c592\""));
    let replace = copy("replaced").metadata_directive(aws_sdk_s3::types::MetadataDirective::Replace);
    replace.content_type("text/html").send().await.unwrap();
    for (key, content_type, by) in [("same", "text/plain", Some("me")), ("replaced", "text/html", None)] {
        let read = client.get_object().bucket(BUCKET).key(key).send().await.unwrap();
        assert_eq!(read.content_type(), Some(content_type));
        assert_eq!(read.metadata().and_then(|metadata| metadata.get("by").map(String::as_str)), by);
        assert_eq!(read.body.collect().await.unwrap().to_vec(), b"hello");
    }
    let absent =
        client.copy_object().bucket(BUCKET).copy_source(format!("{BUCKET}/absent")).key("x").send().await;
    assert_eq!(absent.unwrap_err().code(), Some("NoSuchKey"));
    engines.shutdown().await;
}

#[tokio::test]
async fn leftovers_of_a_crash_are_removed_and_a_damaged_object_affects_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let at = config(DataLocation::Folder(folder.path().to_owned()));
    let engines = Engines::start(at.clone()).await.unwrap();
    put(&s3(&engines), "whole", b"hello").await;
    engines.shutdown().await;
    let bucket = folder.path().join("bucket");
    std::fs::write(bucket.join("staging/half"), "a body that never").unwrap();
    std::fs::write(bucket.join("objects/damaged"), "no object").unwrap();

    let engines = Engines::start(at).await.unwrap();
    let client = s3(&engines);
    assert_eq!(std::fs::read_dir(bucket.join("staging")).unwrap().count(), 0);
    let listed = client.list_objects_v2().bucket(BUCKET).send().await.unwrap();
    assert_eq!(listed.contents().iter().map(|object| object.key().unwrap()).collect::<Vec<_>>(), ["whole"]);
    assert_eq!(get(&client, "whole").await, b"hello");
    engines.shutdown().await;
}

#[tokio::test]
async fn tagged_objects_are_deleted_after_a_month() {
    let folder = tempfile::tempdir().unwrap();
    let start = async || Engines::start(config(DataLocation::Folder(folder.path().into()))).await.unwrap();
    let engines = start().await;
    let client = s3(&engines);
    let body = || ByteStream::from_static(b"text");
    for (key, tagging) in [("gone", "keep=a-month"), ("kept", "keep=a-year"), ("again", "keep=a-month")] {
        client.put_object().bucket(BUCKET).key(key).body(body()).tagging(tagging).send().await.unwrap();
    }
    // Overwritten without the tag, it is an object like any other.
    put(&client, "again", b"text").await;
    put(&client, "plain", b"text").await;
    engines.shutdown().await;

    // The tag survives a restart.
    let engines = start().await;
    let in_days = |days: i64| jiff::Timestamp::now() + jiff::SignedDuration::from_hours(24 * days);
    assert_eq!(engines.expire_objects(in_days(30)).await.unwrap(), 0);
    assert_eq!(engines.expire_objects(in_days(32)).await.unwrap(), 1);
    let listed = s3(&engines).list_objects_v2().bucket(BUCKET).send().await.unwrap();
    let keys: Vec<_> = listed.contents().iter().filter_map(|object| object.key()).collect();
    assert_eq!(keys, ["again", "kept", "plain"]);
    assert_eq!(get(&s3(&engines), "kept").await, b"text");
    engines.shutdown().await;
}
