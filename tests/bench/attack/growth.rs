//! Memory and latency while an owner's data grows. A query over much data must not take longer than one over little
//! data.

use std::time::{Duration, Instant};

use futures::StreamExt;
use reqwest::Client;
use serde_json::{Value, json};
use tests::logs::hook;
use tests::program::{self, Server};

/// How often data is added, and how much each time.
const STEPS: usize = 6;
const ADDED: usize = 300;

/// How often each query is made after a step.
const ASKED: usize = 40;

/// The largest allowed ratio of the last to the first latency, plus some time for a busy machine.
const SLOWER: u32 = 3;
const NOISE: Duration = Duration::from_millis(25);

/// The largest allowed memory per added resource, in bytes. It includes the table's own cache, which grows up to a
/// limit.
const BYTES_EACH: i64 = 24 * 1024;

pub async fn measure() -> Vec<String> {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(&mut program::command(&program::beside().unwrap(), data.path()));
    let (client, url) = (tests::client(), server.url.clone());
    let agent = post(&client, &url, "/agents", &json!({"name": "Watch", "goal": "Watch"})).await;
    let agent = agent["agent_id"].as_str().unwrap().to_owned();
    let chat = post(&client, &url, &format!("/agents/{agent}/chats"), &json!({})).await;
    let chat = chat["chat_id"].as_str().unwrap().to_owned();
    let questions = [
        format!("/agents/{agent}"),
        "/assets?limit=50".to_owned(),
        format!("/agents/{agent}/assets?limit=50"),
        format!("/chats/{chat}?limit=50"),
        "/actions?limit=50".to_owned(),
        "/context/logs/arch-1?lines=50".to_owned(),
        "/usage".to_owned(),
    ];
    println!("{:>7} {:>9}  median of each question in ms: {}", "things", "memory", questions.join("  "));
    let (mut first, mut last, mut resident) = (Vec::new(), Vec::new(), Vec::new());
    for step in 1..=STEPS {
        futures::stream::iter(0..ADDED)
            .for_each_concurrent(8, |n| add(&client, &url, &agent, &chat, step * ADDED + n))
            .await;
        let mut medians = Vec::new();
        for question in &questions {
            let mut times = Vec::new();
            for _ in 0..ASKED {
                let began = Instant::now();
                let answer = client.get(format!("{url}{question}")).send().await.unwrap();
                assert_eq!(answer.status(), 200, "{question}");
                answer.bytes().await.unwrap();
                times.push(began.elapsed());
            }
            times.sort_unstable();
            medians.push(times[times.len() / 2]);
        }
        resident.push(server.resident().unwrap());
        let shown: Vec<String> = medians.iter().map(|m| format!("{:.1}", m.as_secs_f64() * 1e3)).collect();
        println!("{:>7} {:>6} MB  {}", step * ADDED * 4, resident[step - 1] / 1_024, shown.join("  "));
        if first.is_empty() {
            first.clone_from(&medians);
        }
        last = medians;
    }
    let mut wrong = Vec::new();
    for ((question, first), last) in questions.iter().zip(first).zip(last) {
        if last > first * SLOWER + NOISE {
            wrong.push(format!("{question} took {first:?} at first and {last:?} at last"));
        }
    }
    let things = ((STEPS - 1) * ADDED * 4) as i64;
    let each = (resident[STEPS - 1] - resident[0]) * 1_024 / things;
    println!("{each} bytes of memory for each thing that was added");
    if each > BYTES_EACH {
        wrong.push(format!("memory grows by {each} bytes for each thing, at most {BYTES_EACH} are expected"));
    }
    wrong
}

/// Adds an asset, an action, a message and a log line.
async fn add(client: &Client, url: &str, agent: &str, chat: &str, n: usize) {
    let asset = json!({"title": format!("Asset {n}"), "content": "oil ".repeat(250)});
    post(client, url, &format!("/agents/{agent}/assets"), &asset).await;
    let action = json!({
        "title": format!("Action {n}"), "description": "d", "priority": "low",
        "task_config": {"instructions": "i", "expected_output": "o"},
    });
    post(client, url, &format!("/agents/{agent}/actions"), &action).await;
    let message = json!({"messages": [{"role": "user", "content": "oil ".repeat(50)}]});
    post(client, url, &format!("/chats/{chat}/messages"), &message).await;
    let hook = hook("arch-1", &format!("call-{n}"));
    let answer = client.post(format!("{url}/context/hooks")).json(&hook).send().await.unwrap();
    assert_eq!(answer.status(), 200);
}

async fn post(client: &Client, url: &str, path: &str, body: &Value) -> Value {
    let answer = client.post(format!("{url}{path}")).json(body).send().await.unwrap();
    let (status, text) = (answer.status(), answer.text().await.unwrap());
    assert!(status.is_success(), "{path}: {status} {text}");
    serde_json::from_str(&text).unwrap()
}
