//! The server as people start it: when it refuses to start, and what it keeps when it is killed.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::Client;
use serde_json::Value;
use tempfile::TempDir;
use tests::program::Server;
use tests::{kills, logs};

use crate::command;

async fn get(client: &Client, url: &str, path: &str) -> Value {
    let answer = client.get(format!("{url}{path}")).send().await.unwrap();
    assert_eq!(answer.status(), 200, "{path}");
    serde_json::from_str(&answer.text().await.unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_twenty_times_keeps_every_acknowledged_write() {
    let data = TempDir::new().unwrap();
    let figures = kills::kill(|| command(data.path()), 20, 6).await;
    println!("{figures}");
    assert_eq!(figures.wrong(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_whose_server_is_killed_twice_has_every_line_once() {
    const EACH: usize = 30;
    let data = TempDir::new().unwrap();
    let mut server = Server::start(&mut command(data.path()));
    let (url, port) = (server.url.clone(), server.port().to_owned());
    let done = Arc::new(AtomicUsize::new(0));
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let (url, done) = (url.clone(), done.clone());
            tokio::spawn(async move {
                let client = tests::client();
                for n in 0..EACH {
                    logs::report(&client, &url, &logs::hook("arch-1", &format!("{writer}-{n}"))).await;
                    done.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for kill in 1..=2 {
        while done.load(Ordering::Relaxed) < 4 * EACH * kill / 3 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        drop(server);
        server = Server::start(command(data.path()).env("LAMPLIGHTER_PORT", &port));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let log = get(&tests::client(), &server.url, "/context/logs/arch-1?lines=1000").await;
    let mut found: Vec<&str> =
        log["entries"].as_array().unwrap().iter().map(|line| line["description"].as_str().unwrap()).collect();
    found.sort_unstable();
    let mut sent: Vec<String> = (0..4 * EACH).map(|n| format!("{}-{}", n / EACH, n % EACH)).collect();
    sent.sort_unstable();
    assert_eq!(found, sent);
}

/// Waits for a server that should not start. Returns its exit status and its output.
fn ended(mut child: Child) -> (ExitStatus, String, String) {
    let status = child.wait().unwrap();
    let (mut out, mut err) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    (status, out, err)
}

/// Checks that the server gives exactly this reason in one line, and exits with 1.
#[track_caller]
fn refuses(data: &Path, variables: &[(&str, &str)], why: &str) {
    let mut command = command(data);
    command.envs(variables.iter().copied());
    refused(command, why);
}

#[track_caller]
fn refused(mut command: Command, why: &str) {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let (status, out, err) = ended(command.spawn().unwrap());
    assert_eq!(
        (status.code(), out.as_str(), err.as_str()),
        (Some(1), "", format!("lamplighter: failed to {why}\n").as_str())
    );
}

#[test]
fn a_failed_start_gives_its_reason_in_one_line() {
    let parent = TempDir::new().unwrap();
    let held = parent.path().join("held");
    let server = Server::start(&mut command(&held));
    let holder = format!(
        "use the data folder {}: process {} holds it; stop that process, or choose another folder",
        held.display(),
        server.id()
    );
    refuses(&held, &[], &holder);

    let free = parent.path().join("free");
    let port = server.port();
    let in_use =
        format!("listen on 127.0.0.1:{port}: the port is in use; set LAMPLIGHTER_PORT to another one");
    refuses(&free, &[("LAMPLIGHTER_PORT", port)], &in_use);

    let file = parent.path().join("file");
    fs::write(&file, "").unwrap();
    refuses(&file, &[], &format!("use the data folder {}: it is not a folder", file.display()));
    let below = file.join("below");
    let unreadable =
        format!("use the data folder {}: it can't be read: Not a directory (os error 20)", below.display());
    refuses(&below, &[], &unreadable);

    let open = "listen on 0.0.0.0:0: with LAMPLIGHTER_AUTH=off only this machine may reach the server; \
                set LAMPLIGHTER_AUTH=on or a loopback address";
    for auth in [vec![], vec![("LAMPLIGHTER_AUTH", "off")]] {
        refuses(&free, &[auth, vec![("LAMPLIGHTER_HOST", "0.0.0.0")]].concat(), open);
    }
    let port = "read LAMPLIGHTER_PORT: `many` is not a port (0 to 65535)";
    refuses(&free, &[("LAMPLIGHTER_PORT", "many")], port);
    for (variable, value, problem) in [
        (
            "LAMPLIGHTER_MODEL_URL",
            "localhost:11434/v1",
            "must begin with http:// or https:// and have a host",
        ),
        ("LAMPLIGHTER_MODEL_KEY", "a\nkey", "contains a character that HTTP headers do not allow"),
    ] {
        refuses(&free, &[(variable, value)], &format!("read the environment: {variable} {problem}"));
    }
    let host = "read LAMPLIGHTER_HOST: `here` is not an IP address";
    refuses(&free, &[("LAMPLIGHTER_HOST", "here")], host);
    // A refused start changes no data.
    assert!(!free.exists());
}

#[cfg(unix)]
#[test]
fn a_folder_that_may_not_be_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;

    let parent = TempDir::new().unwrap();
    let closed = parent.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let why = format!(
        "use the data folder {}: it can't be read: Permission denied (os error 13)",
        closed.display()
    );
    let mut server = command(&closed);
    if fs::read_dir(&closed).is_ok() {
        // Root may access everything, so this test needs another user.
        const NOBODY: u32 = 65_534;
        fs::set_permissions(parent.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let program = parent.path().join("server");
        fs::copy(env!("CARGO_BIN_EXE_server"), &program).unwrap();
        server = Command::new(program);
        server.env_clear().env("LAMPLIGHTER_DATA", &closed).env("LAMPLIGHTER_PORT", "0");
        server.current_dir(parent.path()).gid(NOBODY).uid(NOBODY);
    }
    refused(server, &why);
}
