//! `kill -9` under load: acknowledged writes exist, and are complete.
//!
//! The writer is this test binary in a separate process, which runs the ignored test [`writer`].

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_s3::primitives::ByteStream;
use lamplighter_local::engines::{DataLocation, Engines};

use crate::harness::{BUCKET, TABLE, config, dynamo, s3, soon};

const FOLDER: &str = "LAMPLIGHTER_CRASH_FOLDER";
const ROUND: &str = "LAMPLIGHTER_CRASH_ROUND";
const WRITERS: usize = 6;

/// A body that contains its own length.
fn body(n: usize) -> Vec<u8> {
    let size = 10 + n % 7 * 9_000;
    let mut body = format!("{n} {size} ").into_bytes();
    body.resize(size, b'.');
    body
}

/// The number in a body, if the body is complete.
fn number(read: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(read).ok()?;
    let n = text.split(' ').next()?.parse().ok()?;
    (read == body(n)).then_some(n)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the crash test runs it, in a process that it kills"]
async fn writer() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let round = std::env::var(ROUND).unwrap();
    let engines = Engines::start(config(DataLocation::Folder(folder.into()))).await.unwrap();
    let (table, bucket) = (dynamo(&engines), s3(&engines));
    let acknowledge = |what: String| {
        let mut out = std::io::stdout().lock();
        writeln!(out, "ack {what}").and_then(|()| out.flush()).unwrap();
    };
    let writers = (0..WRITERS).map(|writer| {
        let (table, bucket, round) = (table.clone(), bucket.clone(), round.clone());
        tokio::spawn(async move {
            for n in 0.. {
                let name = format!("{round}-{writer}-{n}");
                let put = table.put_item().table_name(TABLE).item("pk", AttributeValue::S("U#1".into()));
                put.item("sk", AttributeValue::S(name.clone())).send().await.unwrap();
                acknowledge(format!("item {name}"));
                for key in [name, format!("hot-{writer}")] {
                    let put = bucket.put_object().bucket(BUCKET).key(&key).body(ByteStream::from(body(n)));
                    put.send().await.unwrap();
                    acknowledge(format!("object {key} {n}"));
                }
            }
        })
    });
    futures::future::join_all(writers).await;
}

fn start_writer(folder: &Path, round: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::writer", "--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until the writer has this many acknowledged writes, kills it, and returns every acknowledgement.
fn acknowledged_before_the_kill(mut writer: Child, enough: usize) -> Vec<String> {
    let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
    let mut acks = Vec::new();
    while let Some(Ok(line)) = lines.next() {
        if let Some(ack) = line.strip_prefix("ack ") {
            acks.push(ack.to_owned());
        }
        if acks.len() == enough {
            // SIGKILL, which can't be caught.
            writer.kill().unwrap();
        }
    }
    writer.wait().unwrap();
    assert!(acks.len() >= enough, "the writer ended by itself after {} writes", acks.len());
    // The last line may be incomplete.
    acks.retain(|ack| ack.split(' ').count() == if ack.starts_with("item") { 2 } else { 3 });
    acks
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_when_the_process_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..6 {
        let acks = acknowledged_before_the_kill(start_writer(folder.path(), round), 30 + round * 13);
        let engines = Engines::start(config(DataLocation::Folder(folder.path().to_owned()))).await.unwrap();
        let (table, bucket) = (dynamo(&engines), s3(&engines));

        let mut newest: HashMap<&str, usize> = HashMap::new();
        for ack in &acks {
            match ack.split(' ').collect::<Vec<_>>()[..] {
                ["item", name] => {
                    let get = table.get_item().table_name(TABLE).key("pk", AttributeValue::S("U#1".into()));
                    let got = get.key("sk", AttributeValue::S(name.into())).send().await.unwrap();
                    assert!(got.item.is_some(), "round {round}: the item {name} is lost");
                }
                ["object", key, n] => {
                    newest.insert(key, n.parse().unwrap());
                }
                _ => panic!("what is {ack}?"),
            }
        }
        for (key, acknowledged) in &newest {
            let read = bucket.get_object().bucket(BUCKET).key(*key).send().await;
            let read =
                read.unwrap_or_else(|error| panic!("round {round}: the object {key} is lost: {error:?}"));
            let read = read.body.collect().await.unwrap().to_vec();
            let found = number(&read).unwrap_or_else(|| panic!("round {round}: {key} is not whole"));
            // An interrupted write may have been done without an acknowledgement.
            assert!(found >= *acknowledged, "round {round}: {key} is {found} again after {acknowledged}");
        }

        // Every object of this round is announced, and those of earlier rounds are not.
        let mut uploads = engines.uploads().unwrap();
        let marker = bucket.put_object().bucket(BUCKET).key("marker").send().await;
        marker.unwrap();
        let mut announced = HashSet::new();
        loop {
            let upload = soon(uploads.next()).await.unwrap();
            let key = upload.event.key.clone();
            upload.acknowledge().unwrap();
            if key == "marker" {
                break;
            }
            assert!(key.starts_with(&format!("{round}-")) || key.starts_with("hot-"), "{key} in {round}");
            announced.insert(key);
        }
        for key in newest.keys() {
            assert!(announced.contains(*key), "round {round}: {key} was never announced");
        }
        assert_eq!(std::fs::read_dir(folder.path().join("bucket/staging")).unwrap().count(), 0);
        engines.shutdown().await;
    }
}
