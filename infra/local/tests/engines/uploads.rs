use std::time::Duration;

use aws_sdk_s3::primitives::ByteStream;
use lamplighter_local::engines::{DataLocation, Engines, ObjectCreated, Upload, Uploads};

use crate::harness::{BUCKET, config, s3, soon};

async fn put(engines: &Engines, key: &str, body: &'static [u8]) {
    let body = ByteStream::from_static(body);
    s3(engines).put_object().bucket(BUCKET).key(key).body(body).send().await.unwrap();
}

async fn next(uploads: &mut Uploads) -> Upload {
    soon(uploads.next()).await.unwrap()
}

/// What is announced now, up to an object that the test puts to mark the end.
async fn announced(engines: &Engines) -> Vec<String> {
    let mut uploads = engines.uploads().unwrap();
    put(engines, "the end", b"").await;
    let mut keys = Vec::new();
    loop {
        let key = next(&mut uploads).await.event.key;
        if key == "the end" {
            return keys;
        }
        keys.push(key);
    }
}

#[tokio::test]
async fn an_event_tells_of_the_commit_and_sequencers_grow() {
    let folder = tempfile::tempdir().unwrap();
    let engines = Engines::start(config(DataLocation::Folder(folder.path().to_owned()))).await.unwrap();
    let mut uploads = engines.uploads().unwrap();
    put(&engines, "themes/ä b.zip", b"hello").await;
    put(&engines, "themes/ä b.zip", b"hello again").await;
    let first = next(&mut uploads).await.event;
    let second = next(&mut uploads).await.event;
    assert_eq!(
        first,
        ObjectCreated {
            bucket: BUCKET.into(),
            key: "themes/ä b.zip".into(),
            size: 5,
            etag: "5d41402abc4b2a76b9719d911017c592".into(),
            sequencer: first.sequencer.clone(),
        }
    );
    assert_eq!(second.size, 11);
    assert_eq!(first.sequencer.len(), 16);
    assert!(first.sequencer < second.sequencer);
    engines.shutdown().await;
}

#[tokio::test]
async fn unacknowledged_uploads_are_announced_again_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let at = config(DataLocation::Folder(folder.path().to_owned()));
    let engines = Engines::start(at.clone()).await.unwrap();
    put(&engines, "before anyone listened", b"0").await;
    let mut uploads = engines.uploads().unwrap();
    for key in ["a", "b", "c", "d", "overwritten", "deleted"] {
        put(&engines, key, b"1").await;
    }
    let mut held = Vec::new();
    for _ in 0..7 {
        held.push(next(&mut uploads).await);
    }
    put(&engines, "overwritten", b"2").await;
    s3(&engines).delete_object().bucket(BUCKET).key("deleted").send().await.unwrap();
    // Out of order, with a gap at "b".
    for key in ["c", "before anyone listened", "a"] {
        let at = held.iter().position(|upload| upload.event.key == key).unwrap();
        held.remove(at).acknowledge().unwrap();
    }
    drop(uploads);
    engines.shutdown().await;

    let engines = Engines::start(at.clone()).await.unwrap();
    // Everything after the gap, including "c" again: at least once.
    assert_eq!(announced(&engines).await, ["b", "c", "d", "overwritten"]);
    let mut uploads = engines.uploads().unwrap();
    for _ in 0..5 {
        next(&mut uploads).await.acknowledge().unwrap();
    }
    engines.shutdown().await;

    let engines = Engines::start(at).await.unwrap();
    assert_eq!(announced(&engines).await, [""; 0]);
    engines.shutdown().await;
}

#[tokio::test]
async fn a_later_subscription_takes_over() {
    let folder = tempfile::tempdir().unwrap();
    let engines = Engines::start(config(DataLocation::Folder(folder.path().to_owned()))).await.unwrap();
    let mut first = engines.uploads().unwrap();
    put(&engines, "a", b"1").await;
    let mut second = engines.uploads().unwrap();
    put(&engines, "b", b"1").await;
    assert_eq!(next(&mut first).await.event.key, "a");
    assert!(soon(first.next()).await.is_none());
    assert_eq!(next(&mut second).await.event.key, "a");
    assert_eq!(next(&mut second).await.event.key, "b");
    // Without a subscriber nothing is lost.
    drop(second);
    put(&engines, "c", b"1").await;
    put(&engines, "d", b"1").await;
    let mut third = engines.uploads().unwrap();
    for key in ["a", "b", "c", "d"] {
        let upload = tokio::time::timeout(Duration::from_secs(20), third.next()).await.unwrap().unwrap();
        assert_eq!(upload.event.key, key);
    }
    engines.shutdown().await;
}
