//! The program's own arguments: its help, and a first key for a server with authentication.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

use reqwest::Method;
use serde_json::json;
use tempfile::TempDir;
use tests::program::Server;
use tests::send;
use tests::wait::until;

use crate::command;

fn run(folder: &Path, args: &[&str]) -> Output {
    command(folder).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn help_and_version_do_not_start_the_server() {
    let parent = TempDir::new().unwrap();
    let folder = parent.path().join("data");
    for args in [&["--help"][..], &["-h"], &["api-key", "--help"]] {
        let help = run(&folder, args);
        assert!(help.status.success() && help.stderr.is_empty(), "{args:?}");
        for told in ["Usage:", "api-key [NAME] [--scopes SCOPES]", "LAMPLIGHTER_PORT", "LAMPLIGHTER_AUTH"] {
            assert!(text(&help.stdout).contains(told), "{args:?}: {told}");
        }
    }
    for flag in ["--version", "-V"] {
        let version = run(&folder, &[flag]);
        assert!(version.status.success());
        assert_eq!(text(&version.stdout), concat!("lamplighter-local ", env!("CARGO_PKG_VERSION"), "\n"));
    }
    for (args, named) in [
        (&["--port"][..], "--port"),
        (&["-x"], "-x"),
        (&["serve"], "serve"),
        (&["api-key", "a", "b"], "\"b\""),
        (&["api-key", "--owner"], "--owner"),
        (&["api-key", "--name"], "--name"),
        (&["api-key", "--name", "a", "b"], "\"b\""),
        (&["api-key", "--scopes"], "--scopes"),
        (&["api-key", "--scopes", "read,all"], "`--scopes read,all` must be `read`, `write` or `admin`"),
        (&["api-key", "--scopes", "read", "--scopes", "write"], "--scopes"),
    ] {
        let refused = run(&folder, args);
        let said = text(&refused.stderr);
        assert_eq!((refused.status.code(), refused.stdout.len()), (Some(2), 0), "{args:?}: {said}");
        assert!(said.contains(named) && said.contains("--help"), "{args:?}: {said}");
    }
    assert!(!folder.exists());
}

#[tokio::test]
async fn a_first_key_is_made_while_no_server_runs() {
    let folder = TempDir::new().unwrap();
    let made = run(folder.path(), &["api-key", "--name", "my laptop"]);
    assert!(made.status.success(), "{made:?}");
    let key = text(&made.stdout).trim_end().to_owned();
    assert!(key.starts_with("llk_") && !key.contains('\n'), "{key}");
    assert!(text(&made.stderr).contains("the key `my laptop`"), "{made:?}");

    let server = Server::start(command(folder.path()).env("LAMPLIGHTER_AUTH", "on"));
    let call = |key: &str| {
        let request = tests::client().request(Method::GET, format!("{}/account/api-keys", server.url));
        send(request.bearer_auth(key))
    };
    assert_eq!(call(&key).await.expect(200)["data"][0]["name"], "my laptop");
    call("llk_x").await.refused(401, "unauthenticated");
    let held = run(folder.path(), &["api-key"]);
    assert_eq!((held.status.code(), held.stdout.len()), (Some(1), 0));
    assert!(text(&held.stderr).contains(&format!("process {} holds it", server.id())), "{held:?}");
    assert!(text(&held.stderr).contains("POST /account/api-keys"), "{held:?}");
    let other = run(TempDir::new().unwrap().path(), &["api-key", "my desk"]);
    assert!(text(&other.stderr).contains("the key `my desk`"), "{other:?}");

    let folder = TempDir::new().unwrap();
    let reader = run(folder.path(), &["api-key", "--scopes", "read", "reader"]);
    assert!(text(&reader.stderr).contains("the key `reader` with the scopes read,"), "{reader:?}");
    let server = Server::start(command(folder.path()).env("LAMPLIGHTER_AUTH", "on"));
    let call = async |method: Method| {
        let request = tests::client().request(method, format!("{}/agents", server.url));
        send(request.bearer_auth(text(&reader.stdout).trim_end()).json(&json!({"name": "n", "goal": "g"})))
            .await
    };
    call(Method::GET).await.expect(200);
    call(Method::POST).await.refused(403, "scope_missing");

    let long = run(TempDir::new().unwrap().path(), &["api-key", &"x".repeat(101)]);
    assert_eq!(long.status.code(), Some(1));
    assert!(text(&long.stderr).contains("name: "), "{long:?}");
}

/// A newcomer copies the lines of the banner into a shell. They work as they are printed, with a key if one is needed.
#[test]
fn the_commands_that_the_start_prints_work() {
    for auth in ["off", "on"] {
        let folder = TempDir::new().unwrap();
        let key = if auth == "on" { run(folder.path(), &["api-key"]).stdout } else { Vec::new() };
        let key = text(&key).trim_end();
        let mut server = Server::start(command(folder.path()).env("LAMPLIGHTER_AUTH", auth));
        let banner = server.banner();
        let tries: Vec<&str> =
            banner.iter().map(|line| line.trim()).filter(|line| line.starts_with("curl ")).collect();
        assert_eq!(tries.len(), 3, "{banner:?}");
        let advice = banner.iter().find(|line| line.contains("export LAMPLIGHTER_API_KEY=llk_"));
        assert_eq!(advice.is_some(), auth == "on", "{banner:?}");
        assert!(banner.iter().any(|line| line.contains(&format!("Open {} in a browser", server.url))));
        for line in tries {
            let script = format!("{line} -w '\\n%{{http_code}} %{{content_type}}'");
            let output = Command::new("bash").args(["-c", &script]).env("LAMPLIGHTER_API_KEY", key).output();
            let output = output.unwrap();
            let said = text(&output.stdout);
            let (body, status) = said.rsplit_once('\n').unwrap();
            assert!(
                ["200 application/json", "201 application/json"].contains(&status),
                "{auth}: {line}: {said}"
            );
            serde_json::from_str::<serde_json::Value>(body).expect("a person gets JSON, not events");
        }
    }
}

/// What a person sees who starts with `--demo`: each page of the console has something to show, and nothing is in the future.
#[tokio::test]
async fn an_empty_folder_gets_a_week_of_history() {
    let parent = TempDir::new().unwrap();
    let folder = parent.path().join("data");
    let server = Server::start(command(&folder).arg("--demo"));
    let read = async |url: &str, path: &str| {
        send(tests::client().request(Method::GET, format!("{url}{path}"))).await.expect(200)
    };
    let runs = read(&server.url, "/runs?limit=100").await;
    let runs = runs["data"].as_array().unwrap();
    let ended = |state: &str| runs.iter().filter(|run| run["state"] == state).count();
    assert!(ended("succeeded") > 20 && ended("failed") == 3 && ended("running") == 0, "{runs:?}");
    let now = jiff::Timestamp::now();
    let times = runs.iter().filter_map(|run| run["finished_at"].as_str());
    assert!(times.map(|at| at.parse::<jiff::Timestamp>().unwrap()).all(|at| at <= now));
    let inbox = read(&server.url, "/inbox").await;
    let kinds: BTreeSet<&str> =
        inbox["data"].as_array().unwrap().iter().filter_map(|item| item["kind"].as_str()).collect();
    assert_eq!(kinds, ["approval", "failed", "proposal"].into());
    let practices = read(&server.url, "/practices").await;
    assert_eq!(practices["data"].as_array().unwrap().len(), 3);
    assert_eq!(practices["data"][0]["today"]["done"], serde_json::Value::Null);
    let memory = read(&server.url, "/memory/long-term").await;
    let lines =
        memory["sections"].as_array().unwrap().iter().filter_map(|section| section["lines"].as_array());
    assert_eq!(lines.flatten().count(), 6, "{memory}");
    let projects = read(&server.url, "/projects").await;
    let status = format!("/projects/{}/map/status", projects["data"][0]["project_id"].as_str().unwrap());
    until("the theme is indexed", async || read(&server.url, &status).await["state"] == "ready").await;
    let left: Vec<_> =
        std::fs::read_dir(parent.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["data"]);

    // The next start finds data, and adds nothing.
    drop(server);
    let server = Server::start(command(&folder).arg("--demo"));
    assert_eq!(read(&server.url, "/agents").await["data"].as_array().unwrap().len(), 2);
}

/// Whether it is a time of these days as the command writes it, such as `Tue 13:52`.
fn is_day_and_time(text: &str) -> bool {
    let is_day = |day: &str| ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"].contains(&day);
    let is_time = |time: &str| time.len() == 5 && time.parse::<jiff::civil::Time>().is_ok();
    text.split_once(' ').is_some_and(|(day, time)| is_day(day) && is_time(time))
}

/// `lamplighter keys` with a server that authenticates, from the first key to the end of another one.
#[tokio::test]
async fn the_command_makes_lists_and_revokes_keys() {
    let folder = TempDir::new().unwrap();
    let first = run(folder.path(), &["api-key"]).stdout;
    let first = text(&first).trim_end();
    let server = Server::start(command(folder.path()).env("LAMPLIGHTER_AUTH", "on"));
    let home = TempDir::new().unwrap();
    let keys = |key: &str, args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_command"));
        command.env_clear().env("HOME", home.path()).env("LAMPLIGHTER_URL", &server.url);
        let command = command.env("LAMPLIGHTER_API_KEY", key).arg("keys").args(args).current_dir(home.path());
        let output = command.output().unwrap();
        (output.status.success(), text(&output.stdout).to_owned(), text(&output.stderr).to_owned())
    };
    let (made, reader, told) = keys(first, &["create", "reader", "--scopes", "read", "--days", "2"]);
    // Two days ahead, in the form of the other commands: `Tue 13:52`.
    let until = told.split("with the scopes read, valid until ").nth(1).unwrap_or_default();
    assert!(made && is_day_and_time(until.split('.').next().unwrap()), "{told}");
    let reader = reader.strip_suffix('\n').unwrap();
    assert!(reader.starts_with("llk_") && !told.contains(reader), "{told}");
    let call = async || {
        let request = tests::client().request(Method::GET, format!("{}/agents", server.url));
        send(request.bearer_auth(reader)).await
    };
    call().await.expect(200);
    // A key that only reads may not see or make keys.
    for args in [&["list"][..], &["create", "another"]] {
        let (done, out, error) = keys(reader, args);
        assert!(!done && out.is_empty() && error.contains("answered 403"), "{error}");
    }
    let (_, _, error) = keys("llk_x", &["list"]);
    assert!(error.contains("answered 401") && error.contains("cargo run -- api-key"), "{error}");

    let (_, listed, _) = keys(first, &["list"]);
    let line = listed.lines().find(|line| line.ends_with("  reader")).unwrap();
    let after = |text: &str| line.split(text).nth(1).unwrap().split(',').next().unwrap();
    assert!(is_day_and_time(after("  read  created ")) && is_day_and_time(after(", expires ")), "{listed}");
    assert!(listed.lines().count() == 2 && !listed.contains("llk_"), "{listed}");
    let (revoked, _, _) = keys(first, &["revoke", line.split(' ').next().unwrap()]);
    assert!(revoked);
    call().await.refused(401, "unauthenticated");
    let (again, _, error) = keys(first, &["revoke", line.split(' ').next().unwrap()]);
    assert!(!again && error.contains("answered 404"), "{error}");
}
