//! Themes: a small one, its import, and the indexer.

#![allow(clippy::unwrap_used, reason = "a test's helpers panic as its body does")]

use std::time::Duration;

use base::clock::Clock;
use jiff::SignedDuration;
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::Value;
use shared::Cx;
use shared::flows::archive;
use shared::runtime::function::{Invocation, Trigger, Uploaded};

use crate::{Answer, Harness, send};

/// The path of the project that always exists.
pub const PROJECT: &str = "/projects/default";

/// A platform whose clock runs twenty times as fast, so that nobody waits five seconds for a burst to end.
pub async fn started() -> Harness {
    Harness::with(PlatformConfig { clock: Clock::scaled(20), ..PlatformConfig::in_memory() }).await
}

/// The files of the project's own small theme.
pub fn harbour() -> Vec<(String, Vec<u8>)> {
    let root =
        std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/theme/test_data/harbour"));
    let mut files = Vec::new();
    for folder in std::fs::read_dir(root).unwrap() {
        for file in std::fs::read_dir(folder.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            files.push((name, std::fs::read(&path).unwrap()));
        }
    }
    files.sort();
    files
}

/// A zip of these files.
pub fn zip(files: &[(impl AsRef<str>, impl AsRef<[u8]>)]) -> Vec<u8> {
    archive::write(files.iter().map(|(path, content)| (path, content))).unwrap()
}

/// Imports a zip within the request.
pub async fn import(h: &Harness, archive: Vec<u8>) -> Answer {
    let request =
        h.request(Method::POST, &format!("{PROJECT}/import")).header("content-type", "application/zip");
    send(request.body(archive)).await
}

/// Writes a file.
pub async fn put(h: &Harness, path: &str, content: &str) -> Answer {
    send(h.request(Method::PUT, &format!("{PROJECT}/files/{path}")).body(content.to_owned())).await
}

/// Posts a query about the theme.
pub async fn ask(h: &Harness, what: &str, body: Value) -> Value {
    h.post(&format!("{PROJECT}/{what}"), body).await.expect(200)
}

/// Waits until the map is up to date, and returns the status.
pub async fn ready(h: &Harness) -> Value {
    for _ in 0..600 {
        let status = h.get(&format!("{PROJECT}/map/status")).await.expect(200);
        if status["state"] == "ready" {
            return status;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("the map never follows: {}", h.get(&format!("{PROJECT}/map/status")).await.body);
}

/// Gives an upload to the indexer.
pub async fn deliver(h: &Harness, key: &str) -> shared::Result<()> {
    deliver_to(&h.platform.cx, key, SignedDuration::from_mins(15)).await
}

/// Gives an upload to an indexer with this much time.
pub async fn deliver_to(cx: &Cx, key: &str, time: SignedDuration) -> shared::Result<()> {
    let function = catalog::ALL.iter().find(|function| function.name == "theme-index").unwrap();
    let Trigger::Upload { handler } = function.trigger else { panic!("it is woken by uploads") };
    let upload = Uploaded { key: key.to_owned(), sequencer: "0".to_owned() };
    handler(cx.clone(), Invocation { deadline: cx.clock.now() + time }, upload).await
}

/// The key of the mark that the theme of the project has changed.
pub const CHANGED: &str = "local/projects/prj_00000000000000000000000000000000/theme.changed";
