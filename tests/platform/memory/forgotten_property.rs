//! People say random facts to random agents, agents reply with what they were told, facts are deleted and corrected. After each of these, no
//! prompt, no search, no page and no export has what was deleted, and none has as true what was corrected.
//!
//! Each fact has two words that no other one has. A reply says all that the model was told, or one of the two words alone, so that it
//! can't be found by what it says.

use std::collections::BTreeSet;

use domain::ids::ActionId;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use reqwest::Method;
use serde_json::{Value, json};
use shared::flows::archive::{self, ArchiveLimits};
use tests::archives::exported;
use tests::memory::{learns, remembers, sentence, words};
use tests::model::{Says, ScriptedModel};
use tests::stage::Stage;

/// How many sequences are tried. `MEMORY_FORGOTTEN_SEQUENCES` sets how many, and `MEMORY_FORGOTTEN_SEED` the seed of the first one.
const SEQUENCES: u64 = 1;
const STEPS: usize = 6;

const LIMITS: ArchiveLimits =
    ArchiveLimits { entries: 500, entry_bytes: 1 << 22, total_bytes: 1 << 25, path_bytes: 300, ratio: None };

/// A question that has no word of a fact alone.
const QUESTION: &str = "What did I swap?";

fn set(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}

/// The facts that a text says: what stands between "swapped my" and the end of the sentence.
fn said_in(text: &str) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    for rest in text.split("swapped my ").skip(1) {
        let mut words = rest.split(|c: char| !c.is_ascii_alphabetic());
        if let (Some(one), Some("for"), Some("a"), Some(other)) =
            (words.next(), words.next(), words.next(), words.next())
        {
            facts.push((one.to_owned(), other.to_owned()));
        }
    }
    facts
}

/// Learns and tidies. A run saves what it was told, and writes it into its notebook. A reply says what the model was told: all of it, or one
/// word of each fact.
fn repeats(messages: &[Value]) -> Says {
    let system = messages[0]["content"].as_str().unwrap_or_default();
    let prompt = messages[1..].iter().map(Value::to_string).collect::<String>();
    if system.contains("<lamplighter:run>") {
        return match messages.iter().filter(|message| message["role"] == "tool").count() {
            0 => Says::Call("save_output", json!({"title": "Told", "content": prompt.replace("\\n", "\n")})),
            _ => Says::Text("It is done.".into()),
        };
    }
    if system.contains("<lamplighter:memory>") || system.contains("<lamplighter:tidy>") {
        return learns(messages);
    }
    let told = said_in(messages.last().map(Value::to_string).unwrap_or_default().as_str());
    if told.is_empty() {
        return Says::Text("I see.".into());
    }
    let is_short =
        told.iter().map(|(one, _)| one.len() + usize::from(one.as_bytes()[0])).sum::<usize>() % 2 == 0;
    let sentences = told.iter().map(|(one, other)| match is_short {
        true => format!("Think of the {one}."),
        false => format!("You swapped my {one} for a {other}."),
    });
    Says::Text(sentences.collect::<Vec<_>>().join(" "))
}

/// A fact that was said, and what has become of it.
#[derive(Clone, Debug)]
struct Gone {
    words: [String; 2],
    deleted: bool,
}

struct Sequence<'a> {
    stage: &'a Stage,
    model: &'a ScriptedModel,
    rng: StdRng,
    agents: Vec<String>,
    /// Each with its agent.
    chats: Vec<(String, String)>,
    action: ActionId,
    /// The numbers of the facts that were said.
    said: Vec<u64>,
    next: u64,
    minutes: i64,
    gone: Vec<Gone>,
    log: Vec<String>,
    /// How often a prompt has had a fact, so that the test can fail.
    told: usize,
}

impl Sequence<'_> {
    fn random(&mut self, below: usize) -> usize {
        self.rng.random_range(0..below)
    }

    /// A message to an agent. Returns the request to the model.
    async fn turn(&mut self, agent: &str, chat: Option<String>, message: &str) -> String {
        let before = self.model.sent().len();
        let mut body = json!({"message": message});
        if let Some(chat) = &chat {
            body["chat_id"] = json!(chat);
        }
        let turn = self.stage.h.post(&format!("/agents/{agent}/chat"), body).await.expect(200);
        if chat.is_none() {
            self.chats.push((turn["chat_id"].as_str().unwrap().to_owned(), agent.to_owned()));
        }
        let sent = self.model.sent()[before..].iter().map(Value::to_string).collect::<String>();
        self.told += said_in(&sent).len();
        sent
    }

    async fn says(&mut self, message: &str) {
        let at = self.random(self.chats.len() + self.agents.len());
        let (chat, agent) = match self.chats.get(at) {
            Some((chat, agent)) => (Some(chat.clone()), agent.clone()),
            None => (None, self.agents[at - self.chats.len()].clone()),
        };
        self.log.push(format!("{agent} {chat:?} {message}"));
        self.turn(&agent, chat, message).await;
    }

    async fn step(&mut self) {
        self.minutes += 61;
        self.stage.at(self.minutes);
        match self.random(9) {
            0..=2 => {
                let number = self.next;
                self.next += 1;
                self.said.push(number);
                self.says(&sentence(number)).await;
            }
            3 if !self.said.is_empty() => {
                let at = self.random(self.said.len());
                let number = self.said[at];
                let is_gone = self.gone.iter().any(|gone| gone.words == words(number));
                // Who says it again after its deletion has said it again.
                if !is_gone {
                    self.says(&format!("By the way, {}.", sentence(number).replacen('I', "as I said, I", 1)))
                        .await;
                }
            }
            3 | 4 => self.says(QUESTION).await,
            5 => {
                self.log.push("sync and tidy".to_owned());
                self.stage.h.post("/memory/sync", json!({})).await.expect(200);
                if self.random(2) == 0 {
                    self.stage.h.post("/memory/tidy", json!({})).await;
                }
            }
            6 => {
                self.log.push("run".to_owned());
                self.stage.happens_at(self.minutes).await;
            }
            7 => self.takes_back(true).await,
            _ => self.takes_back(false).await,
        }
    }

    /// Deletes or corrects a fact.
    async fn takes_back(&mut self, deletes: bool) {
        self.stage.h.post("/memory/sync", json!({})).await.expect(200);
        let facts = self.stage.h.platform.cx.store.all_facts(&self.stage.owner).await.unwrap();
        let current: Vec<_> = facts.into_iter().filter(domain::memory::Fact::is_current).collect();
        if current.is_empty() {
            return;
        }
        let fact = &current[self.random(current.len())];
        let (one, other) = said_in(&fact.text).pop().unwrap();
        self.log.push(format!("{} {}", if deletes { "deletes" } else { "corrects" }, fact.text));
        let path = format!("/memory/facts/{}", fact.fact_id);
        let mut gone = vec![Gone { words: [one, other], deleted: deletes }];
        if deletes {
            self.stage.h.delete(&path).await.expect(204);
            // What it has corrected goes, too.
            let left = self.stage.h.platform.cx.store.all_facts(&self.stage.owner).await.unwrap();
            for before in &mut self.gone {
                before.deleted |= !left.iter().any(|fact| fact.text.contains(&before.words[0]));
            }
        } else {
            let number = self.next;
            self.next += 1;
            let text = sentence(number).replacen('I', "The user", 1);
            self.stage.h.post(&format!("{path}/correct"), json!({"text": text})).await.expect(200);
        }
        self.gone.append(&mut gone);
        self.check().await;
    }

    fn fails(&self, gone: &Gone, place: &str, text: &str) -> ! {
        panic!("{gone:?} is in {place}:\n{text}\n\nlog:\n{}", self.log.join("\n"));
    }

    async fn check(&mut self) {
        let h = &self.stage.h;
        let mut pages: Vec<(String, String)> = Vec::new();
        for path in
            ["/memory/long-term", "/memory/weeks/2026-11-16", "/memory/archive/2026", "/memory/tidies"]
        {
            pages.push((path.to_owned(), h.get(path).await.body.to_string()));
        }
        for date in ["2026-11-21", "2026-11-22"] {
            let path = format!("/memory/days/{date}?format=markdown");
            pages.push((path.clone(), h.get(&path).await.body.to_string()));
        }
        let answer = h.request(Method::GET, "/memory/export").send().await.unwrap();
        for file in archive::read(&answer.bytes().await.unwrap(), &LIMITS).unwrap() {
            pages.push((format!("export {}", file.path), String::from_utf8_lossy(&file.bytes).into_owned()));
        }
        for gone in self.gone.clone() {
            for (place, text) in &pages {
                if gone.words.iter().any(|word| text.contains(word.as_str())) {
                    self.fails(&gone, place, text);
                }
            }
            for depth in ["cards", "memory", "raw"] {
                let [one, other] = &gone.words;
                let path = format!("/memory/search?limit=100&depth={depth}&q=swapped+{one}+{other}");
                let found = h.get(&path).await.expect(200);
                for hit in found["hits"].as_array().unwrap() {
                    let has =
                        gone.words.iter().any(|word| hit["text"].as_str().unwrap().contains(word.as_str()));
                    if has && (gone.deleted || hit["until"].is_null()) {
                        self.fails(&gone, &path, &format!("{found:#}"));
                    }
                }
            }
        }
        let deleted: Vec<Gone> = self.gone.iter().filter(|gone| gone.deleted).cloned().collect();
        // What runs were told, as it is exported. The conversations are the person's.
        let files = exported(&self.stage.h.platform.cx, &self.stage.owner).await;
        for line in String::from_utf8_lossy(&files["records.jsonl"]).lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let is_memory =
                line["partition"].as_str().is_some_and(|partition| partition.starts_with("MEMORY"));
            let told = if is_memory { line.to_string() } else { line["record"]["recalled"].to_string() };
            for gone in &deleted {
                let has_both = gone.words.iter().all(|word| told.contains(word.as_str()));
                if has_both || is_memory && gone.words.iter().any(|word| told.contains(word.as_str())) {
                    self.fails(gone, "the export of the account", &told);
                }
            }
        }
        let chats = self.chats.clone();
        for (id, _) in &chats {
            let title = self.stage.h.get(&format!("/chats/{id}")).await.expect(200)["title"].to_string();
            let says = |gone: &&Gone| gone.words.iter().any(|word| title.contains(word.as_str()));
            if let Some(gone) = deleted.iter().find(says) {
                self.fails(gone, "a title", &title);
            }
        }
        // Every agent in a new conversation, one conversation that goes on, and a run.
        for agent in self.agents.clone() {
            let sent = self.turn(&agent, None, QUESTION).await;
            for gone in self.gone.clone() {
                if gone.words.iter().any(|word| sent.contains(word.as_str())) {
                    self.fails(&gone, "a prompt of a new conversation", &sent);
                }
            }
        }
        let at = self.random(chats.len());
        let (chat, agent) = chats[at].clone();
        let sent = self.turn(&agent, Some(chat), QUESTION).await;
        for gone in &deleted {
            if gone.words.iter().any(|word| sent.contains(word.as_str())) {
                self.fails(gone, "a prompt of a conversation that goes on", &sent);
            }
        }
        self.minutes += 61;
        let before = self.model.sent().len();
        self.stage.happens_at(self.minutes).await;
        let sent = self.model.sent()[before..].iter().map(Value::to_string).collect::<String>();
        self.told += said_in(&sent).len();
        assert!(!sent.is_empty(), "the action {} has not run", self.action);
        for gone in &deleted {
            if gone.words.iter().any(|word| sent.contains(word.as_str())) {
                self.fails(gone, "a prompt of a run", &sent);
            }
        }
    }
}

async fn sequence(seed: u64) -> (usize, usize) {
    let model = ScriptedModel::start(repeats).await;
    let stage = remembers(&model).await;
    let mut agents = vec![stage.agent.clone()];
    for name in ["Second", "Third"] {
        let agent = json!({"name": name, "goal": "A research agent that looks for news"});
        let agent = stage.h.post("/agents", agent).await.expect(201);
        agents.push(agent["agent_id"].as_str().unwrap().to_owned());
    }
    let action = stage.approved(json!({"schedule": {"every": "1h"}})).await;
    let (rng, next) = (StdRng::seed_from_u64(seed), seed * 1_000);
    let (said, gone, log) = (Vec::new(), Vec::new(), vec![format!("seed {seed}")]);
    let (stage, model, chats) = (&stage, &model, Vec::new());
    let mut sequence =
        Sequence { stage, model, rng, agents, chats, action, said, next, minutes: 0, gone, log, told: 0 };
    for _ in 0..2 {
        let number = sequence.next;
        sequence.next += 1;
        sequence.said.push(number);
        sequence.says(&sentence(number)).await;
        sequence.says(QUESTION).await;
        sequence.says(QUESTION).await;
    }
    for _ in 0..STEPS {
        sequence.step().await;
    }
    for deletes in [true, false, true] {
        sequence.takes_back(deletes).await;
    }
    let words: BTreeSet<&[String; 2]> = sequence.gone.iter().map(|gone| &gone.words).collect();
    (words.len(), sequence.told)
}

#[tokio::test]
async fn what_is_deleted_is_told_nowhere_and_what_is_corrected_is_told_as_true_nowhere() {
    let first = set("MEMORY_FORGOTTEN_SEED").unwrap_or(1);
    let count = set("MEMORY_FORGOTTEN_SEQUENCES").unwrap_or(SEQUENCES);
    for seed in first..first + count {
        let (gone, told) = sequence(seed).await;
        assert!(
            gone >= 2 && told >= 10,
            "seed {seed}: {gone} facts were taken back, and models were told {told}"
        );
    }
}
