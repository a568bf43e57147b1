//! Kills a server repeatedly while clients write, then checks what it has stored.

use std::fmt;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::Client;
use serde_json::{Value, json};

use crate::program::Server;

/// How long clients write before the server is killed.
const BURST: Duration = Duration::from_millis(200);

/// Writes that were acknowledged.
#[derive(Default)]
struct Acknowledged {
    /// Pairs of a path and the content that must be found there.
    agents: Vec<(String, String)>,
    assets: Vec<(String, String)>,
    /// In the order of the acknowledgements, per writer.
    messages: Vec<String>,
    /// Answers that are neither a success nor a lost connection.
    refused: Vec<String>,
}

impl Acknowledged {
    fn counts(&self) -> [usize; 3] {
        [self.agents.len(), self.assets.len(), self.messages.len()]
    }
}

type Shared = Arc<Mutex<Acknowledged>>;

fn locked(shared: &Shared) -> std::sync::MutexGuard<'_, Acknowledged> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What was written, and what of it was found.
pub struct Figures {
    pub kills: usize,
    pub agents: usize,
    pub assets: usize,
    pub messages: usize,
    lost: Vec<String>,
    doubled: Vec<String>,
    refused: Vec<String>,
}

impl Figures {
    /// Everything that is wrong. Empty if nothing is.
    #[must_use]
    pub fn wrong(&self) -> Vec<String> {
        [&self.lost, &self.doubled, &self.refused].into_iter().flatten().cloned().collect()
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} kills; acknowledged: {} agents, {} assets, {} messages; {} lost, {} doubled, {} refused",
            self.kills,
            self.agents,
            self.assets,
            self.messages,
            self.lost.len(),
            self.doubled.len(),
            self.refused.len()
        )
    }
}

/// What a POST created. `None` if the server was killed before it answered.
async fn post(client: &Client, url: &str, path: &str, body: &Value, shared: &Shared) -> Option<Value> {
    let sent = client.post(format!("{url}{path}")).json(body).send().await.ok()?;
    let status = sent.status().as_u16();
    let text = sent.text().await.ok()?;
    if status != 200 && status != 201 {
        locked(shared).refused.push(format!("{path}: {status} {text}"));
        return None;
    }
    serde_json::from_str(&text).ok()
}

async fn get(client: &Client, url: &str, path: &str) -> Option<Value> {
    let answer = client.get(format!("{url}{path}")).send().await.ok()?;
    if answer.status() != 200 {
        return None;
    }
    let text = answer.text().await.ok()?;
    Some(serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

fn id(body: &Value, name: &str) -> String {
    body[name].as_str().unwrap_or_default().to_owned()
}

/// Writes until the server is killed: a message, an asset and an agent in turn.
async fn write(url: String, agent: String, chat: String, name: String, shared: Shared) {
    let client = crate::client();
    for n in 0.. {
        let text = format!("{name}-{n}");
        let body = json!({"messages": [{"role": "user", "content": text}]});
        let messages = format!("/chats/{chat}/messages");
        let Some(_) = post(&client, &url, &messages, &body, &shared).await else { return };
        locked(&shared).messages.push(text.clone());

        // Every second content is too long for the table.
        let content = format!("{text} {}", "oil ".repeat(if n % 2 == 0 { 1 } else { 40_000 }));
        let body = json!({"title": text, "content": content});
        let assets = format!("/agents/{agent}/assets");
        let Some(made) = post(&client, &url, &assets, &body, &shared).await else { return };
        locked(&shared).assets.push((format!("/assets/{}/content", id(&made, "asset_id")), content));

        let body = json!({"name": text, "goal": "A research agent that watches"});
        let Some(made) = post(&client, &url, "/agents", &body, &shared).await else { return };
        locked(&shared).agents.push((format!("/agents/{}", id(&made, "agent_id")), text));
    }
}

/// All messages of a chat, oldest first.
async fn messages(client: &Client, url: &str, chat: &str) -> Vec<String> {
    let (mut pages, mut cursor) = (Vec::new(), String::new());
    while let Some(page) = get(client, url, &format!("/chats/{chat}?limit=100{cursor}")).await {
        let contents = page["messages"].as_array().into_iter().flatten();
        pages.push(contents.map(|message| id(message, "content")).collect::<Vec<_>>());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    pages.into_iter().rev().flatten().collect()
}

/// Runs `writers` against a server that is killed repeatedly, then looks for everything that was acknowledged.
/// `command` returns the command that starts each server; all servers use the same folder.
///
/// # Panics
/// If the server does not start, or if nothing is written for a minute.
pub async fn kill(command: impl Fn() -> Command, kills: usize, writers: usize) -> Figures {
    let client = crate::client();
    let shared = Shared::default();
    let (mut agent, mut chat) = (String::new(), String::new());
    let mut before = [0; 3];
    for round in 0..kills {
        let server = Server::start(&mut command());
        if round == 0 {
            let body = json!({"name": "Watch", "goal": "Watch"});
            let made = post(&client, &server.url, "/agents", &body, &shared).await.expect("an agent");
            agent = id(&made, "agent_id");
            let path = format!("/agents/{agent}/chats");
            let made = post(&client, &server.url, &path, &json!({}), &shared).await.expect("a chat");
            chat = id(&made, "chat_id");
        }
        let tasks: Vec<_> = (0..writers)
            .map(|writer| {
                let name = format!("{round}-{writer}");
                tokio::spawn(write(server.url.clone(), agent.clone(), chat.clone(), name, shared.clone()))
            })
            .collect();
        // The kill waits until something of each kind was acknowledged. Killing an idle server would prove nothing.
        loop {
            tokio::time::sleep(BURST).await;
            let counts = locked(&shared).counts();
            if counts.iter().zip(before).all(|(now, before)| *now > before) {
                before = counts;
                break;
            }
        }
        drop(server);
        for task in tasks {
            task.await.expect("a writer does not panic");
        }
    }

    let server = Server::start(&mut command());
    let found = std::mem::take(&mut *locked(&shared));
    let [agents, assets, said] = found.counts();
    let (mut lost, mut doubled) = (Vec::new(), Vec::new());
    for (path, name) in &found.agents {
        if get(&client, &server.url, path).await.is_none_or(|agent| agent["name"] != **name) {
            lost.push(path.clone());
        }
    }
    for (path, content) in &found.assets {
        if get(&client, &server.url, path).await.is_none_or(|text| text != **content) {
            lost.push(path.clone());
        }
    }
    let there = messages(&client, &server.url, &chat).await;
    for text in &found.messages {
        match there.iter().filter(|found| *found == text).count() {
            1 => {}
            0 => lost.push(text.clone()),
            _ => doubled.push(text.clone()),
        }
    }
    Figures { kills, agents, assets, messages: said, lost, doubled, refused: found.refused }
}
