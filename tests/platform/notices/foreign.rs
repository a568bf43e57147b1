//! Signatures of webhooks, verified by the library that receivers use.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use lamplighter_local::platform::PlatformConfig;
use serde_json::{Value, json};
use tests::Harness;
use tests::site::{Answers, Posted, Site};
use tests::skips::installed;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// The message as the library gets it.
fn message(secret: &Value, posted: &Posted, body: &str) -> Value {
    let names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
    let headers: serde_json::Map<_, _> =
        names.iter().map(|name| ((*name).to_owned(), json!(posted.header(name)))).collect();
    json!({"secret": secret, "headers": headers, "body": body})
}

/// Lets a test message be sent, and returns it.
async fn sent(h: &Harness, site: &Site, path: &str) -> Posted {
    let before = site.posted().len();
    h.post(&format!("{path}/test"), json!({})).await.expect(202);
    loop {
        if let Some(posted) = site.posted().into_iter().nth(before) {
            return posted;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn a_foreign_library_verifies_the_signatures() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("wire");
    let python = folder.join("../../target/ci/providers/bin/python");
    if !installed(&python) {
        return;
    }
    let site = Site::start(Answers::Status(204)).await;
    let h = Harness::with(PlatformConfig { reach: site.reach(), ..PlatformConfig::in_memory() }).await;
    let hook = json!({"kind": "webhook", "url": site.url("/hook")});
    let created = h.post("/notifications/channels", hook).await.expect(201);
    let path = format!("/notifications/channels/{}", created["channel_id"].as_str().unwrap());
    let first = sent(&h, &site, &path).await;
    let changed = h.patch(&path, json!({"new_secret": true})).await.expect(200);
    let second = sent(&h, &site, &path).await;

    let (old, new) = (&created["secret"], &changed["secret"]);
    let text = |posted: &Posted| String::from_utf8(posted.body.to_vec()).unwrap();
    let other_text = text(&second).replace("test", "text");
    assert_ne!(other_text, text(&second));
    let messages = [
        (message(old, &first, &text(&first)), "verified"),
        (message(new, &first, &text(&first)), "refused"),
        // Both secrets sign for 24 hours.
        (message(old, &second, &text(&second)), "verified"),
        (message(new, &second, &text(&second)), "verified"),
        (message(new, &second, &other_text), "refused"),
    ];
    let mut program = Command::new(python)
        .arg("webhooks.py")
        .current_dir(&folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let all: Vec<&Value> = messages.iter().map(|(message, _)| message).collect();
    program.stdin.take().unwrap().write_all(json!(all).to_string().as_bytes()).await.unwrap();
    let ran = program.wait_with_output().await.unwrap();
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let lines: Vec<&str> = printed.lines().map(|line| line.split(':').next().unwrap()).collect();
    let expected: Vec<&str> = messages.iter().map(|(_, expected)| *expected).collect();
    assert_eq!(lines, expected, "{printed}");
}
