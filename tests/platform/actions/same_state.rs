//! Every reader names the same state: the list, the detail, `why`, the runs, their events, MCP and the `lamplighter` command, after any
//! sequence of commands and after an executor that was killed. Some actions watch a page, which changes or fails meanwhile.
//!
//! The command also shows what was missed while the account was stopped, and since when it is stopped.
//!
//! The rule after a kill: while an occurrence is due, claimed or running, its run's record says that it runs, or it has ended already
//! and the occurrence follows when the lease has ended and a sweep has found it. In every other state both say the same.

use std::time::{Duration, Instant};

use domain::ids::ActionId;
use jiff::SignedDuration;
use lamplighter_local::platform::PlatformConfig;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use tests::events::Event;
use tests::executors::LEASE;
use tests::mcp::client;
use tests::model::{Says, ScriptedModel};
use tests::process::followed;
use tests::site::{Answers, Site};
use tests::stage::Stage;
use tokio::process::Command;

/// How many sequences are tried at most, and at least. Between the two, the time decides. `SAME_STATE_SEQUENCES` sets how many are
/// tried, and `SAME_STATE_SEED` the seed of the first one.
const MOST: u64 = 200;
const LEAST: u64 = 10;
const TIME: Duration = Duration::from_secs(15);

fn set(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Looks at something, then writes, asks, or has nothing new. What it does depends on how long the request is.
fn writes(messages: &[Value]) -> Says {
    let results = messages.iter().filter(|message| message["role"] == "tool").count();
    let length = messages.iter().map(|message| message.to_string().len()).sum::<usize>();
    match (results, length % 5) {
        (0, _) => Says::Call("query_assets", json!({})),
        (1, 0) => Says::Call("ask_person", json!({"question": "Which lamp?"})),
        (1, 1) => Says::Call("nothing_new", json!({"reason": "No news"})),
        (1, 2) => Says::Refuses,
        (1, 3) => Says::Call("generate_actions", json!({"actions": []})),
        _ => Says::Text("A report.".into()),
    }
}

/// What several readers have said.
#[derive(Default)]
struct Compared {
    wrong: Vec<String>,
    count: usize,
}

impl Compared {
    fn same(&mut self, what: &str, one: &Value, other: &Value) {
        self.count += 1;
        if one != other {
            self.wrong.push(format!("{what}: {one} is not {other}"));
        }
    }
}

/// What the `lamplighter` command said.
struct Said {
    ok: bool,
    out: String,
}

impl Said {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_default()
    }
}

struct World {
    stage: Stage,
    /// What some actions watch.
    site: Site,
    home: tempfile::TempDir,
    rng: StdRng,
    agent: String,
    id: ActionId,
    /// What was done, for the message of a failure.
    log: Vec<String>,
    /// How many answers were compared.
    compared: usize,
}

impl World {
    fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.rng.random_range(0..all.len())].clone()
    }

    /// A new action of a new agent, perhaps with a schedule, perhaps approved.
    async fn begins(&mut self) {
        self.log.clear();
        self.stage.h.post("/account/start", json!({})).await;
        self.agent = self.stage.h.agent().await;
        let schedule = self.one_of(&[Value::Null, json!({"every": "1h"}), json!({"cron": "*/30 * * * *"})]);
        let watches = match self.rng.random_bool(0.4) {
            true => json!([{"kind": "url", "url": self.site.url("/page")}]),
            false => json!([]),
        };
        let task = json!({"instructions": "Look", "expected_output": "A list"});
        let body = json!({"title": "Report", "schedule": schedule, "task_config": task, "watches": watches});
        let path = format!("/agents/{}/actions", self.agent);
        let action = self.stage.h.post(&path, body).await.expect(201);
        self.id = action["action_id"].as_str().unwrap().parse().unwrap();
        self.log.push(format!("defined with {schedule}, {} watches", watches.as_array().unwrap().len()));
        if self.rng.random_bool(0.8) {
            self.approves().await;
        }
    }

    async fn posts(&mut self, path: String, body: Value) {
        let answer = self.stage.h.post(&path, body.clone()).await;
        assert!(answer.status < 500, "{path}: {answer:?}");
        let end = path.replace(&self.id.to_string(), "ID");
        self.log.push(format!("{end} {body}: {} {}", answer.status, answer.body["code"]));
    }

    async fn approves(&mut self) {
        let path = format!("/actions/{}", self.id);
        let hash = self.stage.h.get(&path).await.expect(200)["approval_hash"].clone();
        self.posts(format!("{path}/approve"), json!({"approval_hash": hash})).await;
    }

    /// Time passes. Perhaps a sweep looks, perhaps executors work, and perhaps each of them is killed at some moment.
    async fn passes(&mut self) {
        let minutes = self.one_of(&[0, 1, 20, 30, 61, 150]);
        let (sweeps, works, dies) =
            (self.rng.random_bool(0.8), self.rng.random_bool(0.8), self.rng.random_bool(0.3));
        self.log.push(format!("{minutes} minutes, sweep {sweeps}, work {works}, killed {dies}"));
        self.stage.clock.set(self.stage.clock.now() + SignedDuration::from_mins(minutes));
        if sweeps {
            self.stage.sweep().await;
        }
        if works {
            self.stage.executors.trouble(0.0, if dies { 1.0 } else { 0.0 });
            self.stage.executors.work().await;
            self.stage.executors.trouble(0.0, 0.0);
        }
    }

    async fn does_something(&mut self) {
        let action = format!("/actions/{}", self.id);
        match self.rng.random_range(0..25) {
            0..7 => self.passes().await,
            7..9 => self.approves().await,
            9..12 => self.posts(format!("{action}/run"), json!({})).await,
            12 => self.posts(format!("{action}/pause"), json!({})).await,
            13 => self.posts(format!("{action}/resume"), json!({})).await,
            14 => {
                let watches = json!([{"kind": "url", "url": self.site.url("/other")}]);
                let patch = self.one_of(&[
                    json!({"title": "Other"}),
                    json!({ "watches": watches }),
                    json!({"schedule": {"every": "2h"}}),
                    json!({"priority": "high"}),
                ]);
                let answer = self.stage.h.patch(&action, patch.clone()).await;
                self.log.push(format!("patch {patch}: {}", answer.status));
            }
            15 => self.posts(format!("{action}/cancel"), json!({})).await,
            16 => {
                let runs = self.stage.h.get(&format!("{action}/runs")).await.expect(200);
                if let Some(run) = runs["data"][0]["run_id"].as_str() {
                    self.posts(format!("/runs/{run}/cancel"), json!({})).await;
                }
            }
            17 => {
                let end = self.one_of(&["complete", "dismiss"]);
                self.posts(format!("{action}/{end}"), json!({})).await;
            }
            18 => {
                let status = self.one_of(&["paused", "archived", "active", "active"]);
                let answer =
                    self.stage.h.patch(&format!("/agents/{}", self.agent), json!({"status": status})).await;
                self.log.push(format!("agent {status}: {}", answer.status));
            }
            19 => {
                let what = self.one_of(&["stop", "start", "start"]);
                self.posts(format!("/account/{what}"), json!({})).await;
            }
            20 => self.stops_by_command().await,
            21 | 22 => self.starts_by_command().await,
            _ => {
                let answers = self.one_of(&[
                    Answers::Page("text/plain", "one".to_owned(), None),
                    Answers::Page("text/plain", "two".to_owned(), Some("\"2\"")),
                    Answers::Status(500),
                    Answers::Status(404),
                ]);
                self.log.push(format!("the page: {answers:?}"));
                self.site.answers(answers);
            }
        }
    }

    /// Runs the `lamplighter` command of a person.
    async fn command(&self, args: &[&str]) -> Said {
        let mut command = Command::new(env!("CARGO_BIN_EXE_command"));
        command.env_clear().env("HOME", self.home.path()).current_dir(self.home.path());
        let output =
            command.env("LAMPLIGHTER_URL", self.stage.h.platform.url()).args(args).output().await.unwrap();
        let (ok, out) = (output.status.success(), String::from_utf8(output.stdout).unwrap());
        Said { ok, out }
    }

    /// A command that changes something.
    async fn shell(&mut self, args: &[&str]) -> Said {
        let said = self.command(args).await;
        self.log.push(format!("lamplighter {}: {} {}", args.join(" "), said.ok, said.out));
        said
    }

    /// What a command prints with `--json`.
    async fn shown(&self, command: String) -> Value {
        let args: Vec<&str> = command.split(' ').chain(["--json"]).collect();
        let said = self.command(&args).await;
        assert!(said.ok, "lamplighter {command} --json, after {:#?}", self.log);
        serde_json::from_str(&said.out).unwrap()
    }

    /// What the command and the API say must be the same.
    fn same(&mut self, what: &str, one: &Value, other: &Value) {
        self.compared += 1;
        assert_eq!(one, other, "{what}, after {:#?}", self.log);
    }

    async fn stops_by_command(&mut self) {
        let said = self.shell(&["stop", "--json"]).await;
        let stopped_at = self.get("/account").await["stopped_at"].clone();
        self.same("a stop by the command", &json!(said.ok), &json!(true));
        self.same("since when it is stopped", &said.json()["stopped_at"], &stopped_at);
    }

    async fn starts_by_command(&mut self) {
        let stopped_at = self.get("/account").await["stopped_at"].clone();
        let missed = self.one_of(&[None, Some("run-newest"), Some("skip"), Some("each-schedule")]);
        let Some(missed) = missed else {
            // Without an answer it starts only if nothing was missed. Then this call has started it.
            let by_api = self.stage.h.post("/account/start", json!({})).await;
            let said = self.shell(&["start", "--json"]).await;
            let still = self.get("/account").await["stopped_at"].clone();
            self.same("whether it starts", &json!(said.ok), &json!(by_api.status == 200));
            if by_api.status == 200 {
                self.same("a start", &still, &Value::Null);
            } else {
                self.same("what was missed", &said.json()["data"], &by_api.body["current"]["data"]);
                self.same("a refused start", &still, &stopped_at);
            }
            return;
        };
        let said = self.shell(&["start", "--missed", missed, "--json"]).await;
        self.same("a start by the command", &json!(said.ok), &json!(true));
        let told = said.json();
        self.same("since when it was stopped", &told["stopped_at"], &stopped_at);
        let account = self.get("/account").await["stopped_at"].clone();
        self.same("the account after a start", &account, &Value::Null);
        let runs = self.get(&format!("/actions/{}/runs", self.id)).await;
        let record = |due_at: &Value| {
            let all = runs["data"].as_array().unwrap();
            all.iter().find(|run| run["due_at"] == *due_at).cloned().unwrap_or_default()
        };
        for row in told["data"].as_array().unwrap() {
            let times = row["due_times"].as_u64().unwrap();
            let (first, newest) = (record(&row["first_due_at"]), record(&row["last_due_at"]));
            let skipped = match missed {
                "skip" => times,
                "run-newest" => times - 1,
                _ => 0,
            };
            if skipped > 0 {
                self.same("a skipped due time", &first["state"], &json!("skipped"));
                let count = first["due_times"].as_u64().unwrap_or(1);
                self.same("how many were skipped", &json!(count), &json!(skipped));
            }
            if missed == "run-newest" {
                self.same("the newest due time", &newest["state"], &json!("due"));
            }
        }
    }

    async fn get(&self, path: &str) -> Value {
        self.stage.h.get(path).await.expect(200)
    }

    /// What the readers say, and where they contradict each other. `healed`: no executor may be under way.
    async fn read(&self, healed: bool) -> Compared {
        let id = self.id;
        let mut found = Compared::default();
        let h = &self.stage.h;
        let detail = self.get(&format!("/actions/{id}")).await;
        let in_list = |list: &Value| {
            list["data"]
                .as_array()
                .unwrap()
                .iter()
                .find(|row| row["action_id"] == detail["action_id"])
                .cloned()
        };
        let mcp = client(h);
        let (list, shown, explained, ran) = tokio::join!(
            self.shown(format!("actions --agent {} --limit 200", self.agent)),
            self.shown(format!("actions {id}")),
            self.shown(format!("why {id}")),
            self.shown(format!("runs --action {id}")),
        );
        let lists = [
            ("lamplighter actions --agent", list),
            ("GET /actions", h.get("/actions?limit=200").await.expect(200)),
            ("GET /actions?agent_id=", self.get(&format!("/actions?agent_id={}", self.agent)).await),
            ("list_actions", mcp.gives("list_actions", json!({"agent_id": self.agent})).await),
        ];
        for (name, list) in &lists {
            let row = in_list(list).unwrap_or_else(|| panic!("{name} has no row: {list:#}"));
            for (field, value) in row.as_object().unwrap() {
                found.same(&format!("{name}, {field}"), value, &detail[field]);
            }
            found.same(name, &row["state"], &detail["state"]);
        }
        found.same("read_action", &mcp.gives("read_action", json!({"action_id": id})).await, &detail);
        found.same("lamplighter actions ACTION", &shown, &detail);

        let runs = self.get(&format!("/actions/{id}/runs")).await;
        if !detail["watching"].is_null() {
            let is_unchanged = |run: &&Value| run["state"] == "unchanged";
            let unchanged = runs["data"].as_array().unwrap().iter().filter(is_unchanged).count();
            found.same("watching, unchanged", &detail["watching"]["unchanged"], &json!(unchanged));
        }
        found.same("list_runs", &mcp.gives("list_runs", json!({"action_id": id})).await, &runs);
        for row in ran["data"].as_array().unwrap() {
            let same = runs["data"].as_array().unwrap().iter().find(|run| run["run_id"] == row["run_id"]);
            let state = same.map_or(Value::Null, |run| match run["state"].as_str() {
                Some("claimed") => json!("running"),
                _ => run["state"].clone(),
            });
            found.same("lamplighter runs", &row["state"], &state);
        }
        let why = self.get(&format!("/actions/{id}/why")).await;
        found.same("explain_action", &mcp.gives("explain_action", json!({"action_id": id})).await, &why);
        found.same("lamplighter why", &explained, &why);
        found.same("why", &why["action_state"], &detail["state"]);
        let Some(newest) = runs["data"].as_array().unwrap().first() else {
            found.same("a run without a row", &detail["live_run"], &Value::Null);
            return found;
        };
        let run = newest["run_id"].as_str().unwrap();
        let state = newest["state"].as_str().unwrap();
        let mut alone = self.get(&format!("/actions/{id}/runs/{run}")).await;
        // A list leaves it out.
        let told = alone.as_object_mut().unwrap().remove("told").unwrap_or_default();
        if why["run_id"] == newest["run_id"] {
            found.same("whether somebody was told", &why["told"], &told);
        }
        found.same("a run and its list", &alone, newest);
        let due = newest["due_at"].as_str().unwrap();
        let why = self.get(&format!("/actions/{id}/why?at={due}")).await;
        found.same("why at the due time", &why["action_state"], &detail["state"]);
        if why["run_id"] == run {
            let is_active = self.get(&format!("/agents/{}", self.agent)).await["status"] == "active";
            let codes: &[&str] = match state {
                "succeeded" => &["ran"],
                // If its executor died, another one continues it when the lease has ended.
                "claimed" | "running" => &["running", "about_to_run"],
                "due" if is_active => &["about_to_run"],
                // It waits until the agent is active again, unless a person started it.
                "due" => &["paused", "about_to_run"],
                state => &[state],
            };
            if !codes.contains(&why["code"].as_str().unwrap_or_default()) {
                found.same("why, code", &why["code"], &json!(codes));
            }
            found.same("why, reason", &why["reason_code"], newest.get("reason_code").unwrap_or(&Value::Null));
        }

        // The record of the run and its events.
        let record = h.get(&format!("/runs/{run}")).await;
        if record.status == 404 {
            // What did not run has no record. What is due gets one when an executor claims it.
            let has_none = ["due", "missed", "skipped", "held", "cancelled", "failed"].contains(&state);
            found.same("a record", &json!(has_none), &json!(true));
            return found;
        }
        let record = record.expect(200)["state"].as_str().unwrap().to_owned();
        let may_be: &[&str] = match state {
            "succeeded" | "nothing_new" | "unchanged" => &["completed"],
            "failed" | "missed" | "skipped" | "held" => &["failed", "cancelled"],
            "cancelled" => &["cancelled"],
            "waiting" | "unknown" => &["waiting"],
            _ if healed => &["running"],
            _ => &["running", "completed", "failed", "cancelled", "waiting"],
        };
        if !may_be.contains(&record.as_str()) {
            found.wrong.push(format!("the run is {state}, and its record is {record}"));
        }
        if record != "running" {
            let events = followed(h, run.parse().unwrap()).await;
            let last = events.last().map(|event: &Event| event.name.clone()).unwrap_or_default();
            found.same("the end of the events", &json!(last), &json!(format!("run.{record}")));
        }
        found
    }

    async fn sequence(&mut self) {
        self.begins().await;
        self.agrees(false).await;
        for _ in 0..self.rng.random_range(3..9) {
            self.does_something().await;
            self.agrees(false).await;
        }
        // Leases end, sweeps find what was left, and executors finish it.
        for _ in 0..3 {
            self.stage.clock.set(self.stage.clock.now() + LEASE);
            self.stage.sweep().await;
            self.stage.executors.work().await;
        }
        self.log.push("healed".to_owned());
        self.agrees(true).await;
        // It does not disturb the next sequences.
        self.stage.h.delete(&format!("/actions/{}", self.id)).await;
    }

    async fn agrees(&mut self, healed: bool) {
        let Compared { wrong, count } = self.read(healed).await;
        self.compared += count;
        assert!(wrong.is_empty(), "{wrong:#?}\nafter {:#?}", self.log);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_reader_names_the_same_state_after_any_commands() {
    let first: u64 = set("SAME_STATE_SEED").unwrap_or_else(|| rand::random::<u32>().into());
    let least = set("SAME_STATE_SEQUENCES").unwrap_or(LEAST);
    let most = set("SAME_STATE_SEQUENCES").unwrap_or(MOST);
    let model = ScriptedModel::start(writes).await;
    let (began, mut tried, mut compared) = (Instant::now(), 0, 0);
    while tried < least || (tried < most && began.elapsed() < TIME) {
        let seed: u64 = first + tried;
        // The seed of a failure is the last one that was printed.
        println!("SAME_STATE_SEED={seed}");
        let site = Site::start(Answers::Page("text/plain", "one".to_owned(), None)).await;
        let config = PlatformConfig {
            models: model.config("scripted"),
            reach: site.reach(),
            ..PlatformConfig::in_memory()
        };
        let stage = Stage::of(config).await;
        let home = tempfile::TempDir::new().unwrap();
        let id = ActionId::from_uuid(stage.h.platform.cx.clock.uuid());
        let rng = StdRng::seed_from_u64(seed);
        let mut world =
            World { stage, site, home, rng, agent: String::new(), id, log: Vec::new(), compared: 0 };
        world.sequence().await;
        compared += world.compared;
        tried += 1;
    }
    println!("{tried} sequences, {compared} comparisons, {:?}", began.elapsed());
}
