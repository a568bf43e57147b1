//! The program's own arguments: its help, and a first key for a server with authentication.

use std::path::Path;
use std::process::Output;

use reqwest::Method;
use serde_json::json;
use tempfile::TempDir;
use tests::program::Server;
use tests::send;

use crate::server::command;

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
