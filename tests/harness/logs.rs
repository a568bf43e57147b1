//! Context logs through the API: sends hooks until they are accepted, imports, exports, and counts.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::time::Duration;

use reqwest::Client;
use serde_json::{Value, json};
use shared::flows::archive::{self, ArchiveLimits};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The polling interval for imports.
const POLL: Duration = Duration::from_millis(50);

const ARCHIVE: ArchiveLimits = ArchiveLimits {
    entries: 1_000,
    entry_bytes: 1 << 30,
    total_bytes: 1 << 32,
    path_bytes: 1_000,
    ratio: None,
};

/// The question to an agent, with a given tool call id.
#[must_use]
pub fn hook(agent: &str, call: &str) -> Value {
    json!({
        "session_id": "0f2c1f9e-5b1d-4a7e-9f0e-0d6a3b6f2a11", "hook_event_name": "PreToolUse",
        "tool_name": "Task", "tool_use_id": call,
        "tool_input": {
            "subagent_type": "the-architect", "description": call,
            "prompt": format!("AgentId: {agent}\nWork on {call}"),
        },
    })
}

/// Sends a hook until it is acknowledged. Returns how often it was sent.
pub async fn report(client: &Client, url: &str, payload: &Value) -> usize {
    for sent in 1.. {
        let answer = client.post(format!("{url}/context/hooks")).json(payload).send().await;
        if answer.is_ok_and(|answer| answer.status() == 200) {
            return sent;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    0
}

/// All logs, by path.
///
/// # Errors
/// If the server does not return them.
pub async fn export(client: &Client, url: &str) -> Result<HashMap<String, String>> {
    let zip = client.get(format!("{url}/context/export")).send().await?.error_for_status()?.bytes().await?;
    let files = archive::read(&zip, &ARCHIVE)?;
    files.into_iter().map(|file| Ok((file.path, String::from_utf8(file.bytes)?))).collect()
}

/// How often each description is in a log.
///
/// # Errors
/// If a line is not JSON.
pub fn counted(log: &str) -> Result<BTreeMap<String, usize>> {
    let mut counts = BTreeMap::new();
    for line in log.lines() {
        let entry: Value = serde_json::from_str(line)?;
        *counts.entry(entry["description"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
    }
    Ok(counts)
}

/// Starts the import of an archive and uploads it. Returns the path of the import's record.
///
/// # Errors
/// If the server or its bucket does not accept it.
pub async fn upload(client: &Client, url: &str, zip: Vec<u8>) -> Result<String> {
    let new = json!({"bytes": zip.len()});
    let answer = client.post(format!("{url}/context/import")).json(&new).send().await?.error_for_status()?;
    let import: Value = serde_json::from_slice(&answer.bytes().await?)?;
    crate::put_archive(client, &import, zip).await.error_for_status()?;
    Ok(format!("/context/imports/{}", import["import_id"].as_str().unwrap_or_default()))
}

/// Waits for the end of an import, even if the server is unavailable for a while.
///
/// # Errors
/// If the import failed.
pub async fn imported(client: &Client, url: &str, path: &str) -> Result<Value> {
    loop {
        if let Ok(answer) = client.get(format!("{url}{path}")).send().await {
            let import: Value = serde_json::from_slice(&answer.bytes().await?)?;
            match import["state"].as_str() {
                Some("waiting" | "running") => {}
                Some("done") => return Ok(import),
                _ => return Err(format!("the import failed: {import}").into()),
            }
        }
        tokio::time::sleep(POLL).await;
    }
}
