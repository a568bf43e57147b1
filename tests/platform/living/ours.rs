//! The documents of this repository, kept as living documents by the product, with the repository's own commits.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use reqwest::Method;
use serde_json::{Value, json};
use tests::living::{commit, keeps, text};
use tests::model::ScriptedModel;
use tests::send;
use tests::stage::Stage;

const DOCS: &str = "/projects/default/docs";

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn documents() -> BTreeMap<String, String> {
    let folder = std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = folder.chain(["README.md", "CONTRIBUTING.md"].map(|name| root().join(name)));
    pages
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect()
}

/// The newest commits of the repository, oldest first. A copy without a history has an invented one.
fn commits() -> Vec<Value> {
    let format = "--format=%x1e%H%x1f%aI%x1f%an%x1f%B%x1f";
    let log = Command::new("git").arg("-C").arg(root()).args(["log", "-40", "--name-only", format]).output();
    let log = log.ok().filter(|log| log.status.success()).map(|log| String::from_utf8(log.stdout).unwrap());
    let read = |record: &str| {
        let [id, at, author, message, files] = record.splitn(5, '\x1f').collect::<Vec<_>>()[..] else {
            panic!("{record:?} is not a record of the log")
        };
        let mut files: Vec<&str> = files.lines().filter(|path| !path.is_empty()).collect();
        let more_files = files.len().saturating_sub(50);
        files.truncate(50);
        let message = message.trim();
        let message = &message[..message.floor_char_boundary(4_000)];
        json!({
            "id": id, "at": at, "author": author, "message": message, "files": files, "more_files": more_files,
        })
    };
    let mut commits: Vec<Value> = log
        .iter()
        .flat_map(|log| log.split('\x1e'))
        .filter(|record| !record.trim().is_empty())
        .map(read)
        .collect();
    commits.reverse();
    if commits.is_empty() { vec![commit(1)] } else { commits }
}

#[tokio::test]
async fn the_documents_of_this_repository_are_kept() {
    let model = ScriptedModel::start(keeps).await;
    let stage = Stage::with(model.config("scripted")).await;
    let (documents, commits) = (documents(), commits());
    assert!(documents.len() >= 8, "{:?}", documents.keys());
    for (name, content) in &documents {
        let put = stage.h.request(Method::PUT, &format!("{DOCS}/{name}")).json(&json!({"content": content}));
        send(put).await.expect(201);
        assert!(text(&stage.h, "default", name).await.ends_with(content), "{name} is stored as it is");
    }
    let added = stage.h.post(&format!("{DOCS}/commits"), json!({"commits": commits})).await.expect(200);
    let waiting = added["commits_since_sync"].as_u64().unwrap();
    assert!(waiting >= 1, "{added:#}");
    stage.h.post(&format!("{DOCS}/sync"), json!({})).await.expect(202);
    stage.executors.work().await;
    let sync = stage.h.get(&format!("{DOCS}/sync")).await.expect(200);
    assert_eq!((&sync["state"], &sync["commits"]), (&json!("succeeded"), &json!(waiting)), "{sync:#}");
    let changed: Vec<&str> =
        sync["changed"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert_eq!(changed.len(), 1, "the model changes one part: {sync:#}");
    // The model has added lines, and lost none.
    for (name, before) in &documents {
        let after = text(&stage.h, "default", name).await;
        let mut lines = after.lines();
        for line in before.lines() {
            assert!(lines.any(|kept| kept == line), "{name} has lost {line:?}");
        }
    }
}
