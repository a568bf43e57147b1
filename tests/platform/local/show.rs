//! `show RUN_ID`: what the data folder has of a run, as text.

use std::path::Path;
use std::process::Output;

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::program::Server;
use tests::send;

use crate::command;

/// A provider key, which must not be shown.
const SECRET: &str = "sk-ant-api03-a-secret-of-this-test-0123456789";

fn show(folder: &Path, args: &[&str]) -> Output {
    command(folder).arg("show").args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

async fn call(server: &Server, method: Method, path: &str, body: Value) -> Value {
    let request = tests::client().request(method, format!("{}{path}", server.url)).json(&body);
    let answer = send(request.header("accept", "application/json")).await;
    assert!(answer.status < 300, "{path}: {answer:?}");
    answer.body
}

#[tokio::test]
async fn a_run_is_shown_while_no_server_runs() {
    let folder = TempDir::new().unwrap();
    let server = Server::start(&mut command(folder.path()));
    let agent = call(&server, Method::POST, "/agents", json!({"name": "Watch", "goal": "Watches"})).await;
    let path = format!("/agents/{}/chat", agent["agent_id"].as_str().unwrap());
    let message = "Write a short brief about lamp oil prices \u{1b}[31m";
    let turn = call(&server, Method::POST, &path, json!({ "message": message })).await;
    let run = turn["run_id"].as_str().unwrap();
    call(&server, Method::PUT, "/account/provider-keys/anthropic", json!({"key": SECRET})).await;

    let held = show(folder.path(), &[run]);
    assert_eq!((held.status.code(), held.stdout.len()), (Some(1), 0), "{held:?}");
    for told in [format!("process {} holds it", server.id()), format!("GET /runs/{run}/events")] {
        assert!(text(&held.stderr).contains(&told), "{held:?}");
    }
    drop(server);

    for args in [&[run][..], &[run, "--owner", "local"], &["--owner", "local", run]] {
        let shown = show(folder.path(), args);
        assert!(shown.status.success(), "{shown:?}");
        let told = text(&shown.stdout);
        let text_of_reply = turn["message"].as_str().unwrap().split('\u{1b}').next().unwrap();
        for part in [
            &format!("{run} of the owner local\n"),
            "\nrecord\n",
            "  kind: chat\n",
            "  state: completed\n",
            "\nsteps\n  step 1: work (fence 0, after event ",
            "    call 1.0 generate_asset {",
            text_of_reply,
            "\nevents\n  1 20",
            "Z run.started {",
            "Z run.completed {",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        assert!(!told.contains(SECRET) && !told.contains('\u{1b}'), "{told}");
    }

    let nobody = show(folder.path(), &[run, "--owner", "somebody-else"]);
    assert_eq!((nobody.status.code(), nobody.stdout.len()), (Some(1), 0));
    assert!(text(&nobody.stderr).contains("the owner `somebody-else` has no such run"), "{nobody:?}");
}

#[test]
fn what_cannot_be_shown_is_named() {
    let parent = TempDir::new().unwrap();
    let folder = parent.path().join("data");
    let run = "run_01a204e5539a89e18906c3404399bb01";
    for (args, code, named) in [
        (&[][..], 2, "needs the id of a run"),
        (&["chat_1"], 2, "`chat_1`: "),
        (&[run, run], 2, run),
        (&[run, "--owner"], 2, "--owner"),
        (&[run, "--owner", "a b"], 2, "`--owner a b`: "),
        (&[run, "--all"], 2, "--all"),
        (&[run], 1, "does not exist"),
    ] {
        let refused = show(&folder, args);
        let said = text(&refused.stderr);
        assert_eq!((refused.status.code(), refused.stdout.len()), (Some(code), 0), "{args:?}: {said}");
        assert!(said.contains(named), "{args:?}: {said}");
    }
    assert!(!folder.exists());
    let help = show(&folder, &["--help"]);
    assert!(help.status.success() && text(&help.stdout).contains("show RUN_ID [--owner OWNER]"));
}
