//! 150 actions that are due within one second, on a server that is killed eight times while it runs them. Each action
//! must have exactly one run, with one output. A run whose executor was killed three times may fail, as it is promised.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::StreamExt;
use jiff::{SignedDuration, Timestamp};
use reqwest::Client;
use serde_json::{Value, json};
use tests::program::{self, Server};

const ACTIONS: usize = 150;
const KILLS: usize = 8;

/// The time between two kills: the server starts, takes over the remaining work, and continues.
const BETWEEN: Duration = Duration::from_secs(4);

/// The time limit for all runs. The lease of a killed executor ends after at most fifteen minutes.
const PATIENCE: Duration = Duration::from_secs(20 * 60);

pub async fn attack() -> Vec<String> {
    let data = tempfile::tempdir().unwrap();
    let program = program::beside().unwrap();
    let start = || Server::start(&mut program::command(&program, data.path()));
    let client = tests::client();
    let mut server = start();
    let agent =
        post(&client, &server.url, "/agents", json!({"name": "Watch", "goal": "A research agent"})).await;
    let agent = agent["agent_id"].as_str().unwrap().to_owned();
    // All actions are approved before the first is due.
    let due = Timestamp::now() + SignedDuration::from_secs(90);
    let url = server.url.clone();
    let actions: Vec<String> = futures::stream::iter(0..ACTIONS)
        .map(|n| {
            define(
                &client,
                &url,
                &agent,
                due + SignedDuration::from_millis(n as i64 * 1_000 / ACTIONS as i64),
            )
        })
        .buffer_unordered(8)
        .collect()
        .await;
    let left = due.duration_since(Timestamp::now());
    println!("{ACTIONS} actions approved, due in {:.0} s", left.as_secs_f64());
    tokio::time::sleep(Duration::try_from(left).unwrap_or_default()).await;

    let began = Instant::now();
    for _ in 0..KILLS {
        tokio::time::sleep(BETWEEN).await;
        drop(server);
        server = start();
    }
    println!("{KILLS} kills in {:.0} s", began.elapsed().as_secs_f64());
    let (mut wrong, mut saved) = (Vec::new(), 0);
    let mut states = BTreeMap::<String, usize>::new();
    loop {
        let url = server.url.clone();
        let runs: Vec<(String, Value)> = futures::stream::iter(&actions)
            .map(|action| runs(&client, &url, action))
            .buffer_unordered(8)
            .collect()
            .await;
        let is_over = |(_, runs): &(String, Value)| {
            let runs = runs["data"].as_array();
            runs.is_some_and(|runs| {
                !runs.is_empty()
                    && runs
                        .iter()
                        .all(|run| !matches!(run["state"].as_str(), Some("due" | "claimed" | "running")))
            })
        };
        let open = runs.iter().filter(|runs| !is_over(runs)).count();
        if open > 0 && began.elapsed() < PATIENCE {
            tokio::time::sleep(Duration::from_secs(2)).await;
            continue;
        }
        println!("all at rest after {:.0} s, {open} not", began.elapsed().as_secs_f64());
        for (action, runs) in runs {
            let runs = runs["data"].as_array().cloned().unwrap_or_default();
            for run in &runs {
                *states.entry(run["state"].as_str().unwrap_or("none").to_owned()).or_default() += 1;
            }
            let [run] = &runs[..] else {
                wrong.push(format!("{action} has {} runs", runs.len()));
                continue;
            };
            let outputs =
                get(&client, &server.url, &format!("/actions/{action}/runs/{}/outputs", id(run))).await;
            let count = outputs["data"].as_array().map_or(0, Vec::len);
            saved += count;
            let is_out_of_tries = run["state"] == "failed" && run["reason_code"] == "killed" && count <= 1;
            if (run["state"] != "succeeded" || count != 1) && !is_out_of_tries {
                wrong.push(format!("{action}: {} with {count} outputs, {}", run["state"], run["reason"]));
            }
        }
        break;
    }
    let assets = all_assets(&client, &server.url).await;
    println!("runs {states:?}; {assets} assets");
    if assets != saved {
        wrong.push(format!("{assets} assets for {saved} outputs"));
    }
    wrong
}

fn id(run: &Value) -> &str {
    run["run_id"].as_str().unwrap_or_default()
}

async fn define(client: &Client, url: &str, agent: &str, due: Timestamp) -> String {
    let action = json!({
        "title": "Lamp oil report", "description": "A short report", "priority": "low",
        "task_config": {"instructions": "Write a report about lamp oil", "expected_output": "A report about lamp oil"},
        "schedule": {"at": due.to_string(), "catch_up": "latest"},
    });
    let action = post(client, url, &format!("/agents/{agent}/actions"), action).await;
    let id = action["action_id"].as_str().unwrap().to_owned();
    post(client, url, &format!("/actions/{id}/approve"), json!({"approval_hash": action["approval_hash"]}))
        .await;
    id
}

async fn runs(client: &Client, url: &str, action: &str) -> (String, Value) {
    (action.to_owned(), get(client, url, &format!("/actions/{action}/runs")).await)
}

async fn all_assets(client: &Client, url: &str) -> usize {
    let (mut count, mut cursor) = (0, String::new());
    loop {
        let page = get(client, url, &format!("/assets?limit=200{cursor}")).await;
        count += page["data"].as_array().map_or(0, Vec::len);
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return count,
        }
    }
}

async fn post(client: &Client, url: &str, path: &str, body: Value) -> Value {
    let answer = client.post(format!("{url}{path}")).json(&body).send().await.unwrap();
    let (status, text) = (answer.status(), answer.text().await.unwrap());
    assert!(status.is_success(), "{path}: {status} {text}");
    serde_json::from_str(&text).unwrap()
}

async fn get(client: &Client, url: &str, path: &str) -> Value {
    let answer = client.get(format!("{url}{path}")).send().await.unwrap();
    serde_json::from_str(&answer.text().await.unwrap()).unwrap_or_default()
}
