//! A memory on a stage: a model that learns what the person says of themselves, and conversations to learn from.

#![allow(clippy::unwrap_used, reason = "a test's helpers panic as its body does")]

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::model::{Says, ScriptedModel};
use crate::stage::Stage;

fn system(request: &[Value]) -> &str {
    request[0]["content"].as_str().unwrap_or_default()
}

fn last(request: &[Value]) -> &str {
    request.last().and_then(|message| message["content"].as_str()).unwrap_or_default()
}

/// Learns each sentence of the person that begins with "I", and keeps each new fact in the long-term memory.
pub fn learns(request: &[Value]) -> Says {
    let system = system(request);
    if system.contains("<lamplighter:memory>") {
        return Says::Call("save_facts", json!({"title": "A talk", "facts": facts_in(last(request))}));
    }
    if system.contains("<lamplighter:tidy>") {
        return Says::Call("save_memory", kept(last(request)));
    }
    Says::Text("I see.".into())
}

/// The facts in a question: `msg_1 by user, …:` and the lines of the message, which begin with `> `.
pub fn facts_in(question: &str) -> Vec<Value> {
    let mut facts = Vec::new();
    let mut by_user = None;
    for line in question.lines() {
        if let Some((id, rest)) = line.split_once(" by ").filter(|_| !line.starts_with('>')) {
            by_user = rest.starts_with("user").then(|| id.to_owned());
        } else if let (Some(id), Some(said)) = (&by_user, line.strip_prefix("> I ")) {
            facts.push(json!({"text": format!("The user {said}"), "message_ids": [id]}));
        }
    }
    facts
}

/// All facts of a question about a week, in one section.
fn kept(question: &str) -> Value {
    let ids = |line: &str| -> Vec<String> {
        let words = line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        words.filter(|word| word.starts_with("fct_")).map(str::to_owned).collect()
    };
    let lines: Vec<Value> = question
        .lines()
        .filter_map(|line| {
            let id = ids(line).into_iter().next()?;
            let text = line.split_once("The user ")?.1.split(" [").next()?.trim();
            Some(json!({"text": format!("The user {text}"), "facts": [id]}))
        })
        .collect();
    // The facts of the week come after the old memory.
    let week = &lines[lines.len().saturating_sub(8)..];
    json!({"sections": [{"title": "About the user", "lines": lines}], "week": week})
}

/// Two words that no other number has.
#[must_use]
pub fn words(n: u64) -> [String; 2] {
    let word = |salt: u64| {
        let mut rest = (n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(salt as u32) ^ salt;
        let mut word = String::new();
        for _ in 0..4 {
            word.push(char::from(b"bdfgklmnprstvz"[(rest % 14) as usize]));
            word.push(char::from(b"aeiou"[(rest / 14 % 5) as usize]));
            rest /= 70;
        }
        word
    };
    [word(7), word(31)]
}

/// A sentence that [`learns`] learns, and that has its own words for each number.
#[must_use]
pub fn sentence(n: u64) -> String {
    let [one, other] = words(n);
    format!("I swapped my {one} for a {other}")
}

/// What [`learns`] learns of it.
#[must_use]
pub fn fact(n: u64) -> String {
    sentence(n).replacen('I', "The user", 1)
}

/// A stage whose model learns. The person lives in Berlin, where noon of the stage is 13:00.
pub async fn remembers(model: &ScriptedModel) -> Stage {
    let stage = Stage::with(model.config("scripted")).await;
    stage.h.patch("/account", json!({"timezone": "Europe/Berlin"})).await.expect(200);
    stage
}

impl Stage {
    /// Says these sentences to the agent, in one chat, and returns the chat's id.
    pub async fn says(&self, chat: Option<&str>, sentences: &[&str]) -> String {
        let path = format!("/agents/{}/chat", self.agent);
        let mut chat = chat.map(str::to_owned);
        for sentence in sentences {
            let mut said = json!({"message": sentence});
            if let Some(chat) = &chat {
                said["chat_id"] = json!(chat);
            }
            let turn = self.h.post(&path, said).await.expect(200);
            chat = turn["chat_id"].as_str().map(str::to_owned);
        }
        chat.unwrap()
    }

    /// Sets the clock, and does what is due then, until nothing is due any more.
    pub async fn moves_to(&self, at: &str) {
        let at: Timestamp = at.parse().unwrap();
        self.clock.set(at);
        for _ in 0..3 {
            self.sweep().await;
            self.executors.work().await;
        }
    }

    /// The texts that a search finds.
    pub async fn finds(&self, query: &str) -> Vec<String> {
        let found = self.h.get(&format!("/memory/search?depth=raw&q={}", query.replace(' ', "+"))).await;
        texts(&found.expect(200)["hits"])
    }

    /// The texts of the facts of a day that are current.
    pub async fn learned_on(&self, date: &str) -> Vec<String> {
        let day = self.h.get(&format!("/memory/days/{date}")).await;
        if day.status == 404 {
            return Vec::new();
        }
        let day = day.expect(200);
        let blocks = day["blocks"].as_array().unwrap();
        blocks.iter().flat_map(|block| texts(&block["facts"])).collect()
    }
}

/// The texts of a list of things.
pub fn texts(list: &Value) -> Vec<String> {
    let texts = list.as_array().unwrap().iter().map(|one| one["text"].as_str().unwrap().to_owned());
    texts.collect()
}
