//! Several people use all of memory at the same time, in random order, with the same names of sessions, messages and agents. No answer
//! to one of them has a word of another, and the id of another person's thing is 404 and changes nothing.
//!
//! Each text has a mark of its own, a word that only its writer knows. Somebody who imports another person's export knows the marks in it
//! from then on. So an answer is wrong if it has a mark that its reader neither wrote nor imported.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use base::clock::{Clock, ManualClock};
use domain::accounts::import::AccountImportState;
use domain::ids::Owner;
use futures::future::join_all;
use jiff::SignedDuration;
use lamplighter_local::platform::PlatformConfig;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use reqwest::Method;
use serde_json::{Value, json};
use shared::config::AuthConfig;
use shared::flows::archive::{self, ArchiveLimits};
use shared::flows::executor::sweep::sweep;
use tests::archives::{brought_in, exported};
use tests::everything::scanned;
use tests::executors::Executors;
use tests::mcp::client_with_key;
use tests::memory::learns;
use tests::model::{Says, ScriptedModel};
use tests::stage::noon;
use tests::things::Caller;
use tests::{Answer, Harness};

/// How many sequences are tried at least, and for how long more of them. `MEMORY_ISOLATION_SEQUENCES` sets how many are tried, and
/// `MEMORY_ISOLATION_SEED` the seed of the first one.
const LEAST: u64 = 1;
const TIME: Duration = Duration::from_secs(5);

const NAMES: [&str; 3] = ["anna", "ben", "cleo"];

/// What each mark begins with. A letter of its writer and a number follow.
const MARK: &str = "zq";

/// How many ids of each kind are tried on one other person.
const TRIED: usize = 2;

const LIMITS: ArchiveLimits = ArchiveLimits {
    entries: 2_000,
    entry_bytes: 1 << 22,
    total_bytes: 1 << 26,
    path_bytes: 500,
    ratio: None,
};

fn set(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}

/// Learns what people say of themselves. A scheduled run also saves an output, which quotes what it was told.
fn answers(messages: &[Value]) -> Says {
    let says = |text: &str| messages[0]["content"].as_str().unwrap_or_default().contains(text);
    let is_first = messages.iter().all(|message| message["role"] != "tool");
    if says("<lamplighter:run>") && is_first {
        let told = messages.last().map(Value::to_string).unwrap_or_default();
        return Says::Call("save_output", json!({"title": "Told", "content": told}));
    }
    learns(messages)
}

/// The marks in a text.
fn marks(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let is_mark = |word: &&str| {
        let rest = word.strip_prefix(MARK).and_then(|rest| rest.get(1..));
        rest.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    words.map(str::to_lowercase).filter(|word| is_mark(&word.as_str())).collect()
}

/// The ids with this prefix in a text.
fn ids(text: &str, prefix: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words
        .filter(|word| word.starts_with(prefix) && word.len() == prefix.len() + 32)
        .map(str::to_owned)
        .collect()
}

struct Person<'a> {
    owner: Owner,
    caller: Caller<'a>,
    key: &'a str,
    agent: String,
    rng: StdRng,
    /// How many marks this person has written.
    written: usize,
    /// The marks that this person may read.
    knows: BTreeSet<String>,
    /// Everything that this person was told since the last time everything was read.
    told: String,
    log: Vec<String>,
}

impl<'a> Person<'a> {
    async fn new(h: &'a Harness, name: &str, key: &'a str, seed: u64) -> Self {
        let caller = Caller { h, key: Some(key) };
        let letter = u64::from(name.as_bytes()[0]);
        let mut person = Self {
            owner: Owner::new(name).unwrap(),
            caller,
            key,
            agent: String::new(),
            rng: StdRng::seed_from_u64(seed ^ letter << 32),
            written: 0,
            knows: BTreeSet::new(),
            told: String::new(),
            log: Vec::new(),
        };
        let goal = format!("A research agent that watches {}", person.mark());
        let agent = person.post("/agents", json!({"name": "Watch", "goal": goal})).await.expect(201);
        person.agent = agent["agent_id"].as_str().unwrap().to_owned();
        let action = json!({
            "title": format!("Report {}", person.mark()),
            "schedule": {"cron": "0 14 * * *", "timezone": "UTC"},
            "task_config": {"instructions": format!("Write about my {}", person.mark()), "expected_output": "A report"},
        });
        let path = format!("/agents/{}/actions", person.agent);
        let action = person.post(&path, action).await.expect(201);
        let path = format!("/actions/{}/approve", action["action_id"].as_str().unwrap());
        person.post(&path, json!({"approval_hash": action["approval_hash"]})).await.expect(200);
        person
    }

    /// A new mark.
    fn mark(&mut self) -> String {
        self.written += 1;
        let mark = format!("{MARK}{}{}", self.owner.as_str().chars().next().unwrap(), self.written);
        self.knows.insert(mark.clone());
        mark
    }

    /// A sentence that the model learns.
    fn sentence(&mut self) -> String {
        let thing = self.one_of(&["tea", "bicycle", "lamp", "garden"]);
        format!("I swapped my {thing} for a {}", self.mark())
    }

    fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.rng.random_range(0..all.len())].clone()
    }

    /// Notes what this person was told.
    fn is_told(&mut self, what: &str, text: &str) {
        let foreign: Vec<String> = marks(text).difference(&self.knows).cloned().collect();
        assert!(
            foreign.is_empty(),
            "{} is told {foreign:?} by {what}: {text:.2000}\nafter {:#?}",
            self.owner,
            self.log
        );
        self.told.push_str(text);
        self.told.push('\n');
    }

    async fn call(&mut self, method: Method, path: &str, body: Value) -> Answer {
        let answer = self.caller.call(method.clone(), path, body.clone()).await;
        self.is_told(&format!("{method} {path}"), &answer.body.to_string());
        assert!(answer.status < 500, "{}: {method} {path} {body}: {answer:?}", self.owner);
        if method != Method::GET {
            self.log.push(format!("{method} {path} {body:.300}: {}", answer.status));
        }
        answer
    }

    async fn get(&mut self, path: &str) -> Answer {
        self.call(Method::GET, path, Value::Null).await
    }

    async fn post(&mut self, path: &str, body: Value) -> Answer {
        self.call(Method::POST, path, body).await
    }

    /// One of this person's ids with this prefix, of those that were read last.
    fn own(&mut self, prefix: &str) -> Option<String> {
        let all: Vec<String> = ids(&self.told, prefix).into_iter().collect();
        if all.is_empty() { None } else { Some(self.one_of(&all)) }
    }

    /// Calls a tool of MCP, also if it is refused.
    async fn tool(&mut self, tool: &str, arguments: Value) {
        let told = client_with_key(self.caller.h, self.key).call(tool, arguments.clone()).await;
        self.log.push(format!("{tool} {arguments}: {}", told["isError"]));
        self.is_told(tool, &told.to_string());
    }

    async fn does_something(&mut self) {
        match self.rng.random_range(0..26) {
            0..5 => self.talks().await,
            5..8 => self.adds_messages().await,
            8..10 => drop(self.post("/memory/sync", json!({})).await),
            10 => drop(self.post("/memory/tidy", json!({})).await),
            11..13 => self.changes_a_fact().await,
            13 => self.edits().await,
            14 => {
                let card = json!({"title": format!("Checked {}", self.mark()), "goal": "No dead links"});
                self.post("/memory/cards", card).await.expect(201);
            }
            15 => {
                if let Some(card) = self.own("crd_") {
                    self.call(Method::DELETE, &format!("/memory/cards/{card}"), Value::Null).await;
                }
            }
            16..18 => self.reports_a_hook().await,
            18 => {
                if let Some(tidy) = self.own("tdy_") {
                    self.post(&format!("/memory/tidies/{tidy}/rollback"), json!({})).await;
                }
            }
            19 => {
                let session = self.one_of(&["same", "laptop"]);
                self.call(Method::DELETE, &format!("/memory/sessions/{session}"), Value::Null).await;
            }
            20 => {
                if let Some(chat) = self.own("cht_") {
                    self.call(Method::DELETE, &format!("/chats/{chat}"), Value::Null).await;
                }
            }
            21 => {
                let card = json!({"title": format!("Mended {}", self.mark()), "status": "done"});
                self.tool("remember_card", card).await;
            }
            22 => {
                if let Some(fact) = self.own("fct_") {
                    self.tool("forget_fact", json!({"fact_id": fact})).await;
                }
            }
            23 => {
                if let Some(fact) = self.own("fct_") {
                    let text = format!("The user has a {}", self.mark());
                    self.tool("correct_fact", json!({"fact_id": fact, "text": text})).await;
                }
            }
            _ => self.looks().await,
        }
    }

    /// Two messages in a chat: a conversation with fewer is not learned. What a run recalls is in its answer.
    async fn talks(&mut self) {
        let mut chat = if self.rng.random_bool(0.3) { self.own("cht_") } else { None };
        let path = format!("/agents/{}/chat", self.agent);
        for _ in 0..2 {
            let mut said = json!({ "message": self.sentence() });
            if let Some(chat) = &chat {
                said["chat_id"] = json!(chat);
            }
            let turn = self.post(&path, said).await;
            chat = turn.body["chat_id"].as_str().map(str::to_owned);
        }
    }

    /// Everybody uses the same names of sessions and messages.
    async fn adds_messages(&mut self) {
        let session = self.one_of(&["same", "laptop", "phone"]);
        let first = self.rng.random_range(0..6);
        let said: Vec<Value> = (first..first + 3)
            .map(|id| json!({"id": id.to_string(), "role": "user", "text": self.sentence()}))
            .collect();
        let mut body = json!({ "messages": said });
        if session == "phone" {
            body["namespace"] = json!("shop");
        }
        self.post(&format!("/memory/sessions/{session}/messages"), body).await;
    }

    async fn changes_a_fact(&mut self) {
        let Some(fact) = self.own("fct_") else { return };
        let path = format!("/memory/facts/{fact}");
        match self.rng.random_range(0..3) {
            0 => {
                let text = format!("The user has sold the {}", self.mark());
                self.post(&format!("{path}/correct"), json!({ "text": text })).await;
            }
            1 => drop(self.post(&format!("{path}/confirm"), json!({})).await),
            _ => drop(self.call(Method::DELETE, &path, Value::Null).await),
        }
    }

    /// Adds a line to the long-term memory, and perhaps drops one.
    async fn edits(&mut self) {
        let read = self.caller.h.request(Method::GET, "/memory/long-term").header("accept", "text/markdown");
        let markdown = read.bearer_auth(self.key).send().await.unwrap().text().await.unwrap();
        self.is_told("the long-term memory as Markdown", &markdown);
        let mut lines: Vec<&str> = markdown.lines().collect();
        if lines.len() > 8 {
            lines.remove(self.rng.random_range(0..lines.len()));
        }
        let line = format!("- The user likes {}", self.mark());
        let markdown = format!("{}\n\n## Mine\n{line}\n", lines.join("\n"));
        self.call(Method::PUT, "/memory/long-term", json!({ "markdown": markdown })).await;
    }

    /// Everybody's assistant has the same sessions and agents.
    async fn reports_a_hook(&mut self) {
        let (session, call) = (self.one_of(&["s1", "s2"]), self.rng.random_range(0..5));
        let asked = json!({
            "session_id": session, "hook_event_name": "PreToolUse", "tool_name": "Task", "tool_use_id": format!("call-{call}"),
            "tool_input": {
                "subagent_type": "the-architect", "description": format!("Design {}", self.mark()),
                "prompt": format!("AgentId: arch-{call}\nDesign {}", self.mark()),
            },
        });
        self.post("/context/hooks", asked).await.expect(200);
    }

    async fn looks(&mut self) {
        let thing = self.one_of(&["tea", "bicycle", "lamp", "garden", "links", "shop"]);
        let depth =
            self.one_of(&["", "&depth=cards", "&depth=memory", "&depth=raw", "&depth=raw&namespace=shop"]);
        self.get(&format!("/memory/search?q=swapped+{thing}{depth}")).await;
        self.tool("search_memory", json!({"query": thing, "depth": "raw"})).await;
    }

    /// Reads everything that memory shows, and looks for the words of others.
    async fn reads_everything(&mut self, others: &BTreeSet<String>) {
        self.told.clear();
        let mut paths: Vec<String> = [
            "/memory/days",
            "/memory/long-term",
            "/memory/archive/2026",
            "/memory/tidies",
            "/memory/health",
            "/context/recall?session=s1&agent_type=the-architect",
            "/context/recall?session=s2&agent_type=the-architect",
            "/context/logs",
            "/context/logs/arch-1",
            "/context/logs/arch-2?session=s1",
            "/context/hooks/rejected",
            "/agents",
            "/actions",
            "/assets",
            "/runs",
            "/inbox",
            "/day",
            "/jobs",
            "/account/import",
            "/memory/search?q=swapped+my+tea+bicycle+lamp+garden&depth=raw&limit=100",
            "/memory/search?q=tea&depth=raw&namespace=shop&limit=100",
        ]
        .map(str::to_owned)
        .into();
        let today = self.caller.h.platform.cx.clock.now().to_zoned_datetime(jiff::tz::TimeZone::UTC).date();
        let first = noon().to_zoned_datetime(jiff::tz::TimeZone::UTC).date();
        for date in first.series(jiff::ToSpan::days(1)).take_while(|date| *date <= today) {
            paths.extend([format!("/memory/days/{date}"), format!("/memory/cards?date={date}")]);
            if date.weekday() == jiff::civil::Weekday::Monday {
                paths.push(format!("/memory/weeks/{date}"));
            }
        }
        paths.extend([format!("/agents/{}/chats", self.agent), format!("/agents/{}/assets", self.agent)]);
        for mark in others {
            paths.push(format!("/memory/search?q={mark}&depth=raw"));
        }
        // A person who has imported everything of the others knows all marks.
        paths.extend(others.first().map(|some| format!("/search?q={some}")));
        for path in paths {
            self.get(&path).await;
        }
        for (prefix, path) in
            [("cht_", "/chats"), ("run_", "/runs"), ("fct_", "/memory/facts"), ("ast_", "/assets")]
        {
            for id in ids(&self.told, prefix) {
                self.get(&format!("{path}/{id}")).await;
                if prefix == "ast_" {
                    self.get(&format!("{path}/{id}/content")).await;
                }
            }
        }
        for mark in others.iter().take(TRIED) {
            for depth in ["cards", "memory", "raw"] {
                self.tool("search_memory", json!({"query": mark, "depth": depth})).await;
            }
        }
        self.tool("read_agent_log", json!({"agent_id": "arch-1"})).await;
        let mcp = client_with_key(self.caller.h, self.key);
        let resources = mcp.ask("resources/list", json!({})).await.to_string();
        self.is_told("resources/list", &resources);
        for uri in [
            "memory://long-term".to_owned(),
            format!("memory://days/{first}"),
            format!("memory://days/{today}"),
        ] {
            let message =
                json!({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": uri}});
            let read = mcp.post(message).await.body.to_string();
            self.is_told(&uri, &read);
        }
        for (path, bytes) in self.taken().await {
            self.is_told(&format!("{path} of the export of the memory"), &bytes);
        }
        for (path, bytes) in exported(&self.caller.h.platform.cx, &self.owner).await {
            self.is_told(&format!("{path} of the export of the account"), &String::from_utf8_lossy(&bytes));
        }
    }

    /// The memory as a zip.
    async fn zip(&self) -> Vec<u8> {
        let read = self.caller.h.request(Method::GET, "/memory/export").bearer_auth(self.key);
        read.send().await.unwrap().bytes().await.unwrap().to_vec()
    }

    /// The files of the memory.
    async fn taken(&self) -> Vec<(String, String)> {
        texts_of(&self.zip().await)
    }
}

fn texts_of(zip: &[u8]) -> Vec<(String, String)> {
    let files = archive::read(zip, &LIMITS).unwrap();
    files.into_iter().map(|file| (file.path, String::from_utf8(file.bytes).unwrap())).collect()
}

/// What everybody has. A search notes that it has found a fact, while nobody waits for that; so this does not count.
async fn stored(h: &Harness) -> BTreeMap<(String, String), Value> {
    let mut found = BTreeMap::new();
    for owner in NAMES {
        found.append(&mut scanned(&h.platform.cx, owner).await);
    }
    for fact in found.iter_mut().filter(|((_, sk), _)| sk.starts_with("FACT#")).map(|(_, fact)| fact) {
        for noted in ["_v", "_w", "used_on"] {
            fact.as_object_mut().unwrap().remove(noted);
        }
    }
    found
}

/// Tries the ids of another person. Returns how many calls there were.
async fn tries_foreign_ids(me: &mut Person<'_>, other: &Person<'_>) -> usize {
    let mut calls = Vec::new();
    let foreign = |me: &Person<'_>, prefix: &str| -> Vec<String> {
        // After an import, both may have the same names of sessions.
        let (theirs, mine) = (ids(&other.told, prefix), ids(&me.told, prefix));
        theirs.into_iter().rev().filter(|id| !mine.contains(id)).take(TRIED).collect()
    };
    for fact in foreign(me, "fct_") {
        let path = format!("/memory/facts/{fact}");
        calls.push((Method::GET, path.clone(), Value::Null));
        calls.push((
            Method::POST,
            format!("{path}/correct"),
            json!({"text": format!("The user is {}", me.mark())}),
        ));
        calls.push((Method::POST, format!("{path}/confirm"), json!({})));
        calls.push((Method::DELETE, path, Value::Null));
        let mcp = client_with_key(me.caller.h, me.key);
        for (tool, arguments) in [
            ("correct_fact", json!({"fact_id": fact, "text": "The user is gone"})),
            ("forget_fact", json!({"fact_id": fact})),
        ] {
            let told = mcp.fails(tool, arguments).await;
            me.is_told(tool, &told);
        }
    }
    for card in foreign(me, "crd_") {
        calls.push((Method::DELETE, format!("/memory/cards/{card}"), Value::Null));
    }
    for tidy in foreign(me, "tdy_") {
        calls.push((Method::POST, format!("/memory/tidies/{tidy}/rollback"), json!({})));
    }
    for chat in foreign(me, "cht_") {
        calls.push((Method::GET, format!("/chats/{chat}"), Value::Null));
        calls.push((Method::DELETE, format!("/chats/{chat}"), Value::Null));
        let said = json!({"message": me.sentence(), "chat_id": chat});
        calls.push((Method::POST, format!("/agents/{}/chat", me.agent), said));
        // The session of a chat.
        calls.push((Method::DELETE, format!("/memory/sessions/{chat}"), Value::Null));
    }
    for run in foreign(me, "run_") {
        calls.push((Method::GET, format!("/runs/{run}"), Value::Null));
    }
    let count = calls.len();
    for (method, path, body) in calls {
        let answer = me.call(method.clone(), &path, body).await;
        assert_eq!(
            answer.status, 404,
            "{}: {method} {path}: {:#}\nafter {:#?}",
            me.owner, answer.body, me.log
        );
    }
    count
}

/// What was tried.
#[derive(Default, Debug)]
struct Counts {
    marks: usize,
    foreign_ids: usize,
    prompts: usize,
    recalled: usize,
    imports: usize,
}

/// Somebody brings the export of another person into the own account.
async fn takes(h: &Harness, people: &mut [Person<'_>], rng: &mut StdRng) {
    let from = rng.random_range(0..people.len());
    let to = (from + rng.random_range(1..people.len())) % people.len();
    let zip = people[from].zip().await;
    for (path, text) in texts_of(&zip) {
        people[from].is_told(&path, &text);
        people[to].knows.extend(marks(&text));
    }
    let done = brought_in(&h.platform.cx, &people[to].owner, &zip).await;
    assert_eq!((done.state, done.error.as_deref()), (AccountImportState::Done, None), "{done:?}");
    let log = format!("imports what {} has exported", people[from].owner);
    people[to].log.push(log);
}

async fn sequence(seed: u64, counts: &mut Counts) {
    let mut rng = StdRng::seed_from_u64(seed);
    let model = ScriptedModel::start(answers).await;
    let clock = ManualClock::at(noon());
    let h = Harness::with(PlatformConfig {
        auth: AuthConfig::On(None),
        clock: Clock::Manual(clock.clone()),
        automatic: false,
        models: model.config("scripted"),
        ..PlatformConfig::in_memory()
    })
    .await;
    let executors = Executors::of(&h.platform, 8);
    let keys = join_all(NAMES.map(|name| h.key_of(name))).await;
    let people = NAMES.iter().zip(&keys).map(|(name, key)| Person::new(&h, name, key, seed));
    let mut people: Vec<Person> = join_all(people).await;
    for _ in 0..rng.random_range(6..14) {
        match rng.random_range(0..8) {
            0 | 1 => {
                // What is due by itself: scheduled runs, synchronisations, clean-ups on Sundays.
                clock.set(clock.now() + SignedDuration::from_hours(rng.random_range(4..40)));
                for _ in 0..3 {
                    sweep(&h.platform.cx, jiff::Timestamp::MAX).await.unwrap();
                    executors.work().await;
                }
            }
            2 => {
                takes(&h, &mut people, &mut rng).await;
                counts.imports += 1;
            }
            _ => {
                join_all(people.iter_mut().map(Person::does_something)).await;
            }
        }
        clock.set(clock.now() + SignedDuration::from_mins(3));
    }
    for at in 0..people.len() {
        let others: BTreeSet<String> = people
            .iter()
            .flat_map(|person| person.knows.iter().rev().take(3).cloned().collect::<Vec<_>>())
            .filter(|mark| !people[at].knows.contains(mark))
            .collect();
        people[at].reads_everything(&others).await;
        // Everybody finds what is his own, so marks are where this test looks for them.
        let (found, known) = (marks(&people[at].told), &people[at].knows);
        assert!(!found.is_empty(), "{} finds nothing of {known:?}", people[at].owner);
        counts.marks += marks(&people[at].told).len();
        counts.recalled += people[at].told.matches("\"recalled\":[{").count();
    }
    let before = stored(&h).await;
    for at in 0..people.len() {
        let mut me = people.remove(at);
        for other in &people {
            // After imports, one may know all of the other. Then no answer would tell anything.
            if marks(&other.told).is_subset(&me.knows) {
                continue;
            }
            counts.foreign_ids += tries_foreign_ids(&mut me, other).await;
        }
        people.insert(at, me);
    }
    assert_eq!(stored(&h).await, before, "a foreign id has changed something");
    // Each request to a model is for one person. It has something of that person, because each text has a mark.
    for prompt in model.sent() {
        let has = marks(&prompt.to_string());
        let fits = people.iter().any(|person| has.is_subset(&person.knows));
        assert!(fits, "nobody knows all of {has:?}: {prompt:#}");
        counts.prompts += 1;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_told_anothers_words_after_any_sequence() {
    let first = set("MEMORY_ISOLATION_SEED").unwrap_or_else(|| rand::random::<u32>().into());
    let asked = set("MEMORY_ISOLATION_SEQUENCES");
    let (began, mut tried, mut counts) = (Instant::now(), 0, Counts::default());
    while tried < asked.unwrap_or(LEAST) || (asked.is_none() && began.elapsed() < TIME) {
        // The seed of a failure is the last one that was printed.
        println!("MEMORY_ISOLATION_SEED={}", first + tried);
        sequence(first + tried, &mut counts).await;
        tried += 1;
    }
    println!("{tried} sequences, {counts:?}, {:?}", began.elapsed());
    assert!(counts.foreign_ids > 0 && counts.prompts > 0, "{counts:?}");
}
