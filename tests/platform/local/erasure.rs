//! The files of a data folder after the deletion of an account: they have no text of it, even if the process was killed or the
//! disk is full.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use base::clock::{Clock, ManualClock};
use domain::ids::Owner;
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use lamplighter_local::engines::DataLocation;
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use shared::Cx;
use shared::blobs::{BlobKey, PartUpload};
use shared::config::{AuthConfig, AwsConfig, Config, Eraser};
use shared::flows::executor::route;
use shared::store::DueItem;
use tempfile::TempDir;
use tests::program::Server;
use tests::skips::disk_mounted;
use tests::stage::noon;
use tests::things::Caller;
use tests::{Harness, send};

use crate::command;

/// The text of the deleted account, and that of another one.
const MARK: &str = "quicksilver-7d1e";
const OTHER: &str = "cinnabar-2b90";

fn owner(name: &str) -> Owner {
    Owner::new(name).unwrap()
}

async fn server(folder: &Path, at: Timestamp) -> Harness {
    Harness::with(PlatformConfig {
        data: DataLocation::Folder(folder.to_owned()),
        auth: AuthConfig::On(None),
        clock: Clock::Manual(ManualClock::at(at)),
        automatic: false,
        ..PlatformConfig::in_memory()
    })
    .await
}

async fn work(cx: &Cx) {
    route::process(cx, &DueItem::deletion(&owner("me")), Timestamp::MAX).await.unwrap();
}

fn pass(cx: &Cx, time: SignedDuration) {
    let Clock::Manual(clock) = &cx.clock else { panic!("the test sets the clock") };
    clock.set(cx.clock.now() + time);
}

/// The files below a folder that contain this text, by the first part of their path.
fn files_with(folder: &Path, text: &str) -> BTreeSet<String> {
    let (mut left, mut found) = (vec![folder.to_owned()], BTreeSet::new());
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if contains(&fs::read(&path).unwrap(), text) {
            let name: PathBuf = path.strip_prefix(folder).unwrap().iter().take(2).collect();
            found.insert(name.display().to_string());
        }
    }
    found
}

fn contains(bytes: &[u8], text: &str) -> bool {
    let text = text.as_bytes();
    let firsts = bytes.iter().enumerate().filter(|(_, byte)| **byte == text[0]);
    firsts.map(|(at, _)| at).any(|at| bytes[at..].starts_with(text))
}

/// Two owners have things of every kind, and one of them also an export that was cut off. Returns the key of the other one.
async fn two_owners(h: &Harness) -> (String, String) {
    let (mine, theirs) = (h.key_of("me").await, h.key_of("you").await);
    Caller { h, key: Some(&mine) }.things(MARK).await;
    Caller { h, key: Some(&theirs) }.things(OTHER).await;
    let long = json!({"title": "Long", "content": format!("{MARK} ").repeat(20_000)});
    let me = Caller { h, key: Some(&mine) };
    let agents = me.call(Method::GET, "/agents", Value::Null).await.expect(200);
    let assets = format!("/agents/{}/assets", agents["data"][0]["agent_id"].as_str().unwrap());
    me.call(Method::POST, &assets, long).await.expect(201);
    for (name, mark) in [("me", MARK), ("you", OTHER)] {
        let key = BlobKey::export(&owner(name), "exp_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c".parse().unwrap());
        let blobs = &h.platform.cx.blobs;
        let mut parts = PartUpload::begin_expiring(blobs, key, "application/zip").await.unwrap();
        parts.send(mark.into()).await.unwrap();
    }
    (mine, theirs)
}

/// Asks for the deletion, and removes everything for the first time. Returns the path of the receipt.
async fn begin(h: &Harness, key: &str) -> String {
    let me = Caller { h, key: Some(key) };
    let accepted = me.call(Method::DELETE, "/account?confirm=me", Value::Null).await.expect(202);
    let path = accepted["receipt"].as_str().unwrap().to_owned();
    work(&h.platform.cx).await;
    let receipt = receipt(h, &path).await;
    assert_eq!((&receipt["state"], &receipt["copies"]), (&json!("waiting"), &json!([])), "{receipt:#}");
    path
}

async fn receipt(h: &Harness, path: &str) -> Value {
    send(h.request(Method::GET, path)).await.expect(200)
}

#[track_caller]
fn is_done(receipt: &Value) {
    assert_eq!((&receipt["state"], &receipt["copies"]), (&json!("done"), &json!([])), "{receipt:#}");
}

#[track_caller]
fn others_are_kept(folder: &Path) {
    let found = files_with(folder, OTHER);
    assert!(
        ["bucket/objects", "bucket/uploads", "table.sqlite"].iter().all(|name| found.contains(*name)),
        "{found:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_file_has_text_of_a_deleted_account() {
    let folder = TempDir::new().unwrap();
    let h = server(folder.path(), noon()).await;
    let (mine, theirs) = two_owners(&h).await;
    let before = files_with(folder.path(), MARK);
    assert!(
        before.is_superset(&["bucket/objects", "bucket/uploads"].map(str::to_owned).into()),
        "{before:?}"
    );
    assert!(before.iter().any(|name| name.starts_with("table.sqlite")), "{before:?}");

    let path = begin(&h, &mine).await;
    pass(&h.platform.cx, SignedDuration::from_mins(18));
    work(&h.platform.cx).await;
    is_done(&receipt(&h, &path).await);
    assert_eq!(files_with(folder.path(), MARK), BTreeSet::new());
    others_are_kept(folder.path());
    let you = Caller { h: &h, key: Some(&theirs) };
    let agents = you.call(Method::GET, "/agents", Value::Null).await.expect(200);
    assert_eq!(agents["data"][0]["name"], OTHER);
    h.platform.stop().await;
    assert_eq!(files_with(folder.path(), MARK), BTreeSet::new());
}

const FOLDER: &str = "LAMPLIGHTER_ERASURE_FOLDER";
const STEP: &str = "LAMPLIGHTER_ERASURE_STEP";

/// Prints when it begins and when it has erased, and does not return at the step at which the process is killed.
#[derive(Debug)]
struct Told {
    eraser: Arc<dyn Eraser>,
    step: String,
}

impl Eraser for Told {
    fn erase<'a>(&'a self, owner: &'a Owner) -> BoxFuture<'a, Result<(), String>> {
        async move {
            for step in ["before", "after"] {
                println!("step {step}");
                std::io::stdout().flush().unwrap();
                if self.step == step {
                    futures::future::pending::<()>().await;
                }
                if step == "before" {
                    self.eraser.erase(owner).await?;
                }
            }
            Ok(())
        }
        .boxed()
    }
}

fn at_the_end() -> Timestamp {
    noon() + SignedDuration::from_mins(18)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the test of kills runs it, in a process that it kills"]
async fn the_end_of_a_deletion() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let h = server(Path::new(&folder), at_the_end()).await;
    let config = &h.platform.cx.config;
    let eraser = config.aws.eraser.clone().unwrap();
    let eraser = Arc::new(Told { eraser, step: std::env::var(STEP).unwrap() });
    let aws = AwsConfig { eraser: Some(eraser), ..config.aws.clone() };
    let config = Arc::new(Config { aws, ..Config::clone(config) });
    work(&h.platform.cx.with(|parts| parts.config = config)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_is_killed_before_or_while_it_erases_leaves_the_deletion_to_the_next() {
    let begun = TempDir::new().unwrap();
    let h = server(begun.path(), noon()).await;
    let (mine, _) = two_owners(&h).await;
    let path = begin(&h, &mine).await;
    h.platform.stop().await;

    // At the step `before`, everything is removed and nothing erased. At `after`, everything is erased, and the receipt does not
    // say so. In between, SQLite is at work, for different times.
    let steps = [("before", 0), ("never", 0), ("never", 2), ("never", 5), ("never", 10), ("after", 0)];
    for (step, millis) in steps {
        let folder = TempDir::new().unwrap();
        let copy = Command::new("cp").arg("-a").arg(begun.path().join(".")).arg(folder.path()).status();
        assert!(copy.unwrap().success());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "local::erasure::the_end_of_a_deletion", "--ignored", "--nocapture"])
            .env(FOLDER, folder.path())
            .env(STEP, step)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let wanted = format!("step {}", if step == "after" { "after" } else { "before" });
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().ends_with(&wanted)), "the process ended before it erased");
        std::thread::sleep(Duration::from_millis(millis));
        // SIGKILL, which can't be caught.
        child.kill().unwrap();
        child.wait().unwrap();
        let left = files_with(folder.path(), MARK);
        match step {
            "before" => assert!(!left.is_empty(), "the text is in the files until they are erased"),
            "after" => assert_eq!(left, BTreeSet::new()),
            _ => {}
        }

        let h = server(folder.path(), at_the_end()).await;
        if step != "never" {
            assert_eq!(receipt(&h, &path).await["state"], "waiting", "{step} {millis}");
        }
        // The lease of the killed process ends.
        pass(&h.platform.cx, SignedDuration::from_mins(4));
        work(&h.platform.cx).await;
        is_done(&receipt(&h, &path).await);
        assert_eq!(files_with(folder.path(), MARK), BTreeSet::new(), "{step} {millis}");
        others_are_kept(folder.path());
        h.platform.stop().await;
    }
}

/// A disk of its own, in memory. Dropping it removes it.
struct Disk {
    path: PathBuf,
    _parent: TempDir,
}

impl Disk {
    /// `None` if this process may not mount.
    fn of(megabytes: u32) -> Option<Self> {
        let parent = TempDir::new().unwrap();
        let path = parent.path().join("disk");
        fs::create_dir(&path).unwrap();
        disk_mounted(&path, megabytes).then_some(Self { path, _parent: parent })
    }

    fn data(&self) -> PathBuf {
        self.path.join("data")
    }

    fn ballast(&self) -> PathBuf {
        self.path.join("ballast")
    }

    /// Writes a file until nothing fits any more.
    fn fill(&self) {
        let mut file = fs::File::options().create(true).append(true).open(self.ballast()).unwrap();
        for piece in [1 << 20, 4096] {
            while file.write_all(&vec![1; piece]).is_ok() {}
        }
    }

    /// The size of the reserve.
    fn reserve(&self) -> Option<u64> {
        fs::metadata(self.data().join("reserve")).map(|found| found.len()).ok()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.path).status();
    }
}

/// Creates agents until the disk is full, also within the files of SQLite.
async fn write_until_full(you: &Caller<'_>) {
    for _ in 0..2_000 {
        let agent = json!({"name": "More", "goal": "x".repeat(1_500)});
        let answer = you.call(Method::POST, "/agents", agent).await;
        if answer.status != 201 {
            answer.refused(507, "storage_full");
            return;
        }
    }
    panic!("the disk does not become full");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_is_deleted_on_a_full_disk() {
    let Some(disk) = Disk::of(28) else { return };
    let h = server(&disk.data(), noon()).await;
    let (mine, theirs) = two_owners(&h).await;
    let you = Caller { h: &h, key: Some(&theirs) };
    disk.fill();
    write_until_full(&you).await;
    assert_eq!(disk.reserve(), Some(16 << 20));

    let path = begin(&h, &mine).await;
    assert_eq!(disk.reserve(), None, "the deletion did not need the reserve");
    // Others do not get the room in which the deletion ends.
    you.call(Method::POST, "/agents", json!({"name": "A", "goal": "G"})).await.refused(507, "storage_full");
    send(h.request(Method::GET, "/health")).await.refused(507, "storage_full");
    pass(&h.platform.cx, SignedDuration::from_mins(18));
    work(&h.platform.cx).await;
    is_done(&receipt(&h, &path).await);
    assert_eq!(files_with(&disk.data(), MARK), BTreeSet::new());
    others_are_kept(&disk.data());

    fs::remove_file(disk.ballast()).unwrap();
    you.call(Method::POST, "/agents", json!({"name": "A", "goal": "G"})).await.expect(201);
    send(h.request(Method::GET, "/health")).await.expect(200);
    assert_eq!(disk.reserve(), Some(16 << 20));
    h.platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_that_finds_no_room_to_erase_says_so_and_erases_later() {
    let Some(disk) = Disk::of(96) else { return };
    let h = server(&disk.data(), noon()).await;
    let cx = &h.platform.cx;
    let (mine, theirs) = two_owners(&h).await;
    let you = Caller { h: &h, key: Some(&theirs) };
    // The rest of the table is larger than the reserve.
    let (table, name) = cx.store.raw();
    for n in 0..70 {
        let put = table.put_item().table_name(name).item("pk", AttributeValue::S("U#you#BIG".into()));
        let put = put.item("sk", AttributeValue::S(n.to_string()));
        put.item("text", AttributeValue::S("x".repeat(380_000))).send().await.unwrap();
    }
    disk.fill();
    write_until_full(&you).await;

    let path = begin(&h, &mine).await;
    pass(cx, SignedDuration::from_mins(18));
    work(cx).await;
    let waits = receipt(&h, &path).await;
    assert_eq!(
        (&waits["state"], &waits["copies"], &waits["left"]["records"], &waits["left"]["objects"]),
        (&json!("waiting"), &json!([{"place": "table_file"}]), &json!(0), &json!(0)),
        "{waits:#}"
    );
    assert!(!files_with(&disk.data(), MARK).is_empty(), "the receipt names a copy that does not exist");

    fs::remove_file(disk.ballast()).unwrap();
    pass(cx, SignedDuration::from_mins(1));
    work(cx).await;
    is_done(&receipt(&h, &path).await);
    assert_eq!(files_with(&disk.data(), MARK), BTreeSet::new());
    h.platform.stop().await;
}

/// A server that was killed starts on the full disk, with or without its reserve.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_starts_on_a_full_disk() {
    let Some(disk) = Disk::of(28) else { return };
    let client = tests::client();
    let get = async |server: &Server, path: &str| send(client.get(format!("{}{path}", server.url))).await;
    let write = async |server: &Server| {
        let agent = json!({"name": "More", "goal": "x".repeat(1_500)});
        send(client.post(format!("{}/agents", server.url)).json(&agent)).await
    };
    let server = Server::start(&mut command(&disk.data()));
    write(&server).await.expect(201);
    drop(server);
    disk.fill();
    let server = Server::start(&mut command(&disk.data()));
    while write(&server).await.status == 201 {}
    assert_eq!(disk.reserve(), Some(16 << 20));
    let accepted = send(client.delete(format!("{}/account?confirm=local", server.url))).await.expect(202);
    let path = accepted["receipt"].as_str().unwrap();
    assert_eq!(disk.reserve(), None);
    drop(server);

    // Another program takes the room of the reserve.
    disk.fill();
    let server = Server::start(&mut command(&disk.data()));
    assert_eq!(get(&server, path).await.expect(200)["receipt_id"], accepted["receipt_id"]);
    get(&server, "/agents").await.refused(410, "account_deleted");
    fs::remove_file(disk.ballast()).unwrap();
    get(&server, "/health").await.expect(200);
    assert_eq!(disk.reserve(), Some(16 << 20));
}
