//! A data folder that is damaged, incomplete, full or gone: the server reports it, does not start with it, and does not
//! write into a folder that is gone.

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use reqwest::Client;
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::program::Server;
use tests::skips::disk_mounted;
use tests::{Answer, send};

use crate::command;

/// Long enough for its content to be in the bucket.
fn long() -> String {
    "oil ".repeat(20_000)
}

async fn post(client: &Client, server: &Server, path: &str, body: &Value) -> Answer {
    send(client.post(format!("{}{path}", server.url)).json(body)).await
}

async fn get(client: &Client, server: &Server, path: &str) -> Answer {
    send(client.get(format!("{}{path}", server.url))).await
}

/// Creates an agent with an asset that is in the bucket. Returns the asset's path.
async fn fill(client: &Client, server: &Server) -> String {
    let agent = json!({"name": "Watch", "goal": "A research agent that watches"});
    let agent = post(client, server, "/agents", &agent).await.expect(201);
    let assets = format!("/agents/{}/assets", agent["agent_id"].as_str().unwrap());
    let asset = post(client, server, &assets, &json!({"title": "Long", "content": long()})).await.expect(201);
    format!("/assets/{}/content", asset["asset_id"].as_str().unwrap())
}

/// Stops a server as a person does, so that its files are closed.
fn stop(server: Server) {
    let id = server.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    while !fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| stat.contains(") Z ")) {
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(server);
}

/// The server's message if it does not start.
#[track_caller]
fn refuses(folder: &Path) -> String {
    let mut server = command(folder);
    let child = server.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

#[tokio::test]
async fn an_incomplete_folder_is_not_taken_for_an_empty_one() {
    let parent = TempDir::new().unwrap();
    let (folder, other) = (parent.path().join("one"), parent.path().join("other"));
    let client = tests::client();
    let server = Server::start(&mut command(&folder));
    let asset = fill(&client, &server).await;
    stop(server);
    stop(Server::start(&mut command(&other)));
    let (table, bucket) = (folder.join("table.sqlite"), folder.join("bucket"));
    let aside = parent.path().join("aside");

    let whole = fs::read(&table).unwrap();
    for (emptied, what) in [(true, "emptied"), (false, "deleted")] {
        if emptied {
            fs::write(&table, "").unwrap();
        } else {
            fs::remove_file(&table).unwrap();
        }
        let said = refuses(&folder);
        assert!(said.contains("its table (table.sqlite) is empty or new"), "{what}: {said}");
        assert!(said.contains("Restore the folder from a backup"), "{said}");
        // Also without the name next to the objects, as in a folder of an older version.
        fs::rename(bucket.join("identity"), &aside).unwrap();
        fs::remove_file(&table).unwrap();
        let said = refuses(&folder);
        assert!(said.contains("its table (table.sqlite) is empty or new"), "{what}: {said}");
        fs::rename(&aside, bucket.join("identity")).unwrap();
    }
    fs::copy(other.join("table.sqlite"), &table).unwrap();
    let said = refuses(&folder);
    assert!(said.contains("are of different platforms"), "{said}");

    fs::write(&table, &whole).unwrap();
    fs::rename(&bucket, &aside).unwrap();
    let said = refuses(&folder);
    assert!(said.contains("its objects (bucket/) are gone"), "{said}");
    fs::remove_dir_all(&bucket).unwrap();
    fs::rename(&aside, &bucket).unwrap();

    // Interrupted at its first start, it begins again. With all files back, everything is there.
    fs::rename(bucket.join("identity"), bucket.join("identity.new")).unwrap();
    let server = Server::start(&mut command(&folder));
    assert_eq!(get(&client, &server, &asset).await.expect(200), Value::String(long()));
    assert!(bucket.join("identity").exists() && !bucket.join("identity.new").exists());
}

#[tokio::test]
async fn damaged_pages_are_reported_as_damage() {
    let folder = TempDir::new().unwrap();
    let client = tests::client();
    let server = Server::start(&mut command(folder.path()));
    for n in 0..150 {
        let agent = json!({"name": format!("{n}"), "goal": "x".repeat(1_500)});
        post(&client, &server, "/agents", &agent).await.expect(201);
    }
    stop(server);
    let table = folder.path().join("table.sqlite");
    let file = fs::File::options().write(true).open(&table).unwrap();
    let size = file.metadata().unwrap().len();
    let (from, to) = (size / 4, size - size / 10);
    assert!(to - from > 100_000, "{size}");
    file.write_all_at(&vec![0xAA; usize::try_from(to - from).unwrap()], from).unwrap();

    // The server's own background work may find the damage before the first request, so `/health` may already fail.
    let server = Server::start(&mut command(folder.path()));
    let mut problem = get(&client, &server, "/agents?limit=100").await;
    if problem.status == 200 {
        problem = post(&client, &server, "/agents", &json!({"name": "one more", "goal": "x"})).await;
    }
    let problem = problem.refused(500, "storage_damaged");
    assert_eq!(problem["retryable"], false);
    assert!(problem["detail"].as_str().unwrap().contains("restore it from a backup"), "{problem}");
    get(&client, &server, "/health").await.refused(500, "storage_damaged");
    // A write that had begun ends before this read.
    get(&client, &server, "/agents?limit=1").await;
    // From now on, nothing is written: the file stays as it is, also where it could be read.
    let files = ["table.sqlite", "table.sqlite-wal"].map(|name| folder.path().join(name));
    let before = files.each_ref().map(|file| fs::read(file).unwrap_or_default());
    for n in 0..5 {
        let agent = json!({"name": format!("late {n}"), "goal": "x"});
        post(&client, &server, "/agents", &agent).await.refused(500, "storage_damaged");
    }
    assert!(files.each_ref().map(|file| fs::read(file).unwrap_or_default()) == before);
    drop(server);

    // If it is damaged from its first byte on, the server does not start.
    file.write_all_at(&[0xAA; 200], 0).unwrap();
    let said = refuses(folder.path());
    assert!(
        said.contains("table.sqlite") && said.contains("restore the data folder from a backup"),
        "{said}"
    );
}

#[tokio::test]
async fn a_damaged_object_is_reported_as_damage() {
    let folder = TempDir::new().unwrap();
    let client = tests::client();
    let server = Server::start(&mut command(folder.path()));
    let asset = fill(&client, &server).await;
    for object in fs::read_dir(folder.path().join("bucket/objects")).unwrap() {
        fs::File::options().write(true).open(object.unwrap().path()).unwrap().set_len(1_000).unwrap();
    }
    let problem = get(&client, &server, &asset).await.refused(500, "storage_damaged");
    assert_eq!(problem["retryable"], false);
    get(&client, &server, "/health").await.refused(500, "storage_damaged");
}

#[tokio::test]
async fn a_deleted_folder_accepts_no_writes() {
    let parent = TempDir::new().unwrap();
    let (folder, aside) = (parent.path().join("data"), parent.path().join("aside"));
    let client = tests::client();
    let agent = json!({"name": "Watch", "goal": "A research agent that watches"});
    let refused = async |server: &Server| {
        let problem = post(&client, server, "/agents", &agent).await.refused(500, "storage_gone");
        assert_eq!(problem["retryable"], false);
        get(&client, server, "/health").await.refused(500, "storage_gone");
    };
    let server = Server::start(&mut command(&folder));
    fs::rename(&folder, &aside).unwrap();
    refused(&server).await;
    fs::create_dir(&folder).unwrap();
    refused(&server).await;
    fs::remove_dir(&folder).unwrap();
    fs::rename(&aside, &folder).unwrap();
    get(&client, &server, "/health").await.expect(200);
    post(&client, &server, "/agents", &agent).await.expect(201);

    // Another process could use the folder now.
    let lock = folder.join("lamplighter.lock");
    fs::remove_file(&lock).unwrap();
    refused(&server).await;
    fs::write(&lock, "1\n").unwrap();
    refused(&server).await;
    drop(server);

    let server = Server::start(&mut command(&folder));
    fs::remove_dir_all(&folder).unwrap();
    refused(&server).await;
}

#[tokio::test]
async fn a_full_disk_is_reported_and_recovers() {
    let parent = TempDir::new().unwrap();
    let disk = parent.path().join("disk");
    fs::create_dir(&disk).unwrap();
    if !disk_mounted(&disk, 19) {
        return;
    }
    let client = tests::client();
    let server = Server::start(&mut command(&disk.join("data")));
    fill(&client, &server).await;
    let ballast = disk.join("ballast");
    let mut left = 4 << 20;
    while left > 0 && fs::write(&ballast, vec![0; left]).is_err() {
        left -= 4096;
    }
    let mut problems = Vec::new();
    for n in 0..40 {
        let agent = json!({"name": format!("{n}"), "goal": "x".repeat(1_500)});
        let answer = post(&client, &server, "/agents", &agent).await;
        if answer.status != 201 {
            problems.push(answer.refused(507, "storage_full"));
        }
    }
    assert!(!problems.is_empty(), "the disk is not full");
    assert_eq!(problems[0]["retryable"], true);
    get(&client, &server, "/health").await.refused(507, "storage_full");
    fs::remove_file(&ballast).unwrap();
    get(&client, &server, "/health").await.expect(200);
    fill(&client, &server).await;
    drop(server);
    let _ = Command::new("umount").arg("-l").arg(&disk).status();
}

/// Stored data is only accessible to the owner, even in a folder that an older version left open.
#[tokio::test]
async fn nobody_else_may_read_the_folder() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("deep/data");
    let client = tests::client();
    let open_to_others = || {
        let (mut left, mut open) = (vec![data.clone()], Vec::new());
        while let Some(path) = left.pop() {
            let found = fs::metadata(&path).unwrap();
            if found.permissions().mode() & 0o077 != 0 {
                open.push(path.clone());
            }
            if found.is_dir() {
                left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
        }
        open
    };
    let server = Server::start(&mut command(&data));
    fill(&client, &server).await;
    assert_eq!(open_to_others(), Vec::<std::path::PathBuf>::new());
    drop(server);
    for path in [data.clone(), data.join("table.sqlite"), data.join("bucket"), data.join("bucket/objects")] {
        let mode = if path.is_dir() { 0o755 } else { 0o644 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let strangers = data.join("notes.txt");
    fs::write(&strangers, "not ours").unwrap();
    fs::set_permissions(&strangers, fs::Permissions::from_mode(0o644)).unwrap();
    let _server = Server::start(&mut command(&data));
    assert_eq!(open_to_others(), [strangers], "what is not ours is left as it is");
}
