//! A request with an `Idempotency-Key` acts once, wherever its process ends.
//!
//! Each case is tried with every end: after the first write of the request, after the second one, and so on until the
//! request is whole. Then the same request is sent again. It must find everything done or nothing, and must not act
//! twice. The cases are compared with the OpenAPI document and with the tools of MCP, so a new one can't be forgotten.

use std::collections::BTreeSet;
use std::time::Duration;

use base::clock::{Clock, ManualClock};
use domain::ids::{Owner, ProjectId, RunId};
use domain::runs::{EventKind, Run, RunEvent, RunKind, RunState};
use jiff::SignedDuration;
use lamplighter_local::engines::faults::{FaultConfig, FaultRates, Faults};
use lamplighter_local::platform::PlatformConfig;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use shared::config::AuthConfig;
use shared::store::partitions::Partition;
use shared::store::{Store, Walk};
use tests::openapi::OpenApi;
use tests::{Answer, Harness, mail, send};

/// POST routes whose requests are safe to repeat although no write marks them as done. Some have a case that shows it.
const SAFE: &[(&str, &str)] = &[
    (
        "/agents/{agent_id}/approvals",
        "it approves each action by itself; to approve the same content again changes nothing",
    ),
    ("/account/start", "an account that is not stopped is not changed"),
    ("/account/stop", "a stopped account stays stopped, with the time of the first stop"),
    ("/context/import", "a log that exists is not changed, so a repeated import adds nothing"),
    ("/mcp", "every tool that writes has a case of its own"),
    ("/memory/facts/{fact_id}/confirm", "a fact that was confirmed is not changed"),
    ("/memory/facts/{fact_id}/correct", "the same correction again has the same result"),
    ("/memory/sessions/{session_id}/messages", "a message is known by its id"),
    ("/memory/sync", "a conversation that has not changed is not learned again"),
    ("/memory/tidies/{tidy_id}/rollback", "a clean-up is undone once"),
    ("/memory/tidy", "what is archived is not tidied again"),
    ("/hooks/github/{token}", "a commit is known by its hash"),
    ("/hooks/telegram/{token}", "a reply has a number, and what it answers no longer waits"),
    ("/projects/{project_id}/changes/{change_set_id}/apply", "an applied change set stays applied"),
    ("/projects/{project_id}/changes/{change_set_id}/resolve", "a conflict that is decided is none any more"),
    ("/projects/{project_id}/check", "it only reads"),
    ("/projects/{project_id}/fix", "what is mended is not refused any more"),
    ("/projects/{project_id}/gate", "it only reads"),
    ("/projects/{project_id}/import", "the same archive makes the same theme"),
    ("/projects/{project_id}/lookup", "it only reads"),
    ("/projects/{project_id}/repo-map", "it only reads"),
    ("/projects/{project_id}/scout", "it only reads"),
    ("/runs/{run_id}/cancel", "a run that has ended is not changed"),
    ("/runs/{run_id}/report", "the first report of a run counts"),
    ("/schedules/preview", "it only reads"),
    ("/unsubscribe/{token}", "a channel that is suspended is not changed"),
    ("/answers/{token}", "a question that was answered no longer waits"),
    ("/setup/preview", "it only reads"),
];

/// Tools that may be called again: the second call finds what the first has done, and finishes it.
const SAFE_TOOLS: &[&str] = &["correct_fact", "forget_fact"];

/// The most writes of one request.
const MOST_WRITES: u64 = 40;

struct Stage {
    h: Harness,
    clock: ManualClock,
    faults: Faults,
}

/// What a request has to do with: one owner, with nothing but what the case needs.
struct Scene<'a> {
    stage: &'a Stage,
    owner: Owner,
    key: String,
}

/// A request that acts, and where its effect is seen.
struct Case {
    path: String,
    body: Value,
    seen: Seen,
}

/// A number that grows when the request acts.
enum Seen {
    /// How many entries a list has.
    List(String, &'static str),
    /// How many messages of people a list has.
    Said(String),
    /// A version.
    Version(String),
    /// How many events a run has.
    Events(RunId),
    /// How many runs there are.
    Runs,
    Exports,
    /// How many channels are enabled.
    Channels,
    /// Whether the account is stopped.
    Stopped,
    /// Whether the account is not stopped.
    NotStopped,
    /// The version of the account's import.
    Import,
    /// Whether the webhook of living documents has a branch.
    Branch,
    /// Whether a synchronisation was asked for.
    Synchronised,
}

/// What the second request was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// An answer: its own, or the stored one of the first request.
    Answer,
    /// The work is done, and the answer is lost.
    Lost,
    /// The run that the first request began.
    Run,
}

/// What a request is told that finds the mark of the first one.
const MARKED: &[Told] = &[Told::Lost, Told::Run];

impl Stage {
    async fn start() -> Self {
        let clock = ManualClock::at("2026-11-21T12:00:00Z".parse().unwrap());
        let faults =
            FaultConfig { seed: 7, rates: FaultRates::default(), slow_by: Duration::from_millis(20) };
        let h = Harness::with(PlatformConfig {
            auth: AuthConfig::On(None),
            clock: Clock::Manual(clock.clone()),
            automatic: false,
            faults: Some(faults),
            ..PlatformConfig::in_memory()
        })
        .await;
        let faults = h.platform.engines().faults().unwrap().clone();
        Self { h, clock, faults }
    }

    async fn scene(&self, name: &str) -> Scene<'_> {
        let key = self.h.key_of(name).await;
        Scene { stage: self, owner: Owner::new(name).unwrap(), key }
    }

    /// Ends the process after each write of a case's request, and repeats the request. `is_marked`: the write that does
    /// the work marks the request as done; otherwise the request is safe to repeat. `name` is a valid name of an owner.
    async fn ends_everywhere(&self, name: &str, is_marked: bool, case: impl AsyncFn(&Scene<'_>) -> Case) {
        let whole = self.scene(&format!("{name}-whole")).await;
        let all = case(&whole).await;
        let before = whole.seen(&all.seen).await;
        let answer = whole.send(&all).await;
        assert!(is_success(&answer), "{name}: {answer:?}");
        let effect = whole.seen(&all.seen).await - before;
        assert!(effect > 0, "{name} does nothing that is seen");

        let mut told = Vec::new();
        for writes in 1.. {
            assert!(writes <= MOST_WRITES, "{name} has more than {MOST_WRITES} writes");
            let scene = self.scene(&format!("{name}-{writes}")).await;
            let case = case(&scene).await;
            let before = scene.seen(&case.seen).await;
            self.faults.stop_after(writes);
            scene.begin(&case).await;
            if !self.faults.go_on() {
                break;
            }
            let done = scene.seen(&case.seen).await - before;
            assert!([0, effect].contains(&done), "{name}: {done} of {effect} after {writes} writes");
            self.clock.set(self.clock.now() + SignedDuration::from_secs(61));
            let second = scene.send(&case).await;
            let is_told = match &second {
                _ if code(&second) == "idempotency_answer_lost" => Told::Lost,
                // A minute later, only a run that has not ended can hold the key.
                _ if code(&second) == "idempotency_in_flight" => Told::Run,
                answer if is_success(answer) => Told::Answer,
                other => panic!("{name}, after {writes} writes: {other:?}"),
            };
            let acted = scene.seen(&case.seen).await - before;
            assert_eq!(
                acted, effect,
                "{name}: after {writes} writes {done} of {effect} was done; the second request was told {is_told:?}"
            );
            let expected = if is_marked && done > 0 { MARKED } else { &[Told::Answer] };
            assert!(
                expected.contains(&is_told),
                "{name}: after {writes} writes {done} of {effect} was done, {is_told:?}"
            );
            told.push(is_told);
            if is_told == Told::Run {
                // `durable.rs` ends the process wherever a run is.
                break;
            }
        }
        assert_eq!(MARKED.iter().any(|mark| told.contains(mark)), is_marked, "{name}: {told:?}");
    }
}

fn is_success(answer: &Answer) -> bool {
    (200..300).contains(&answer.status)
        && answer.body["result"]["isError"] != true
        && answer.body["error"].is_null()
}

/// The code of a problem, or of an error in OpenAI's form.
fn code(answer: &Answer) -> &str {
    let code = answer.body["code"].as_str().or_else(|| answer.body["error"]["code"].as_str());
    code.unwrap_or_default()
}

impl Scene<'_> {
    async fn call(&self, method: Method, path: &str, body: Value) -> Answer {
        let request = self.stage.h.request(method, path).bearer_auth(&self.key);
        send(request.header("accept", "application/json, text/event-stream;q=0.5").json(&body)).await
    }

    async fn get(&self, path: &str) -> Value {
        let request = self.stage.h.request(Method::GET, path).bearer_auth(&self.key);
        send(request.header("accept", "application/json")).await.expect(200)
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let answer = self.call(Method::POST, path, body).await;
        assert!(is_success(&answer), "{path}: {answer:?}");
        answer.body
    }

    /// The path of a change set with an edit.
    async fn change_set(&self) -> String {
        let id = text(&self.post(CHANGES, json!({})).await["change_set_id"]);
        let call = json!({"tool": "create_file", "path": "snippets/a.liquid", "content": "a"});
        self.post(&format!("{CHANGES}/{id}/edits"), json!({"calls": [call]})).await;
        format!("{CHANGES}/{id}")
    }

    /// A channel for e-mails, and the code that was sent to its address.
    async fn unconfirmed_channel(&self) -> (String, String) {
        let channel = json!({"kind": "email", "to": format!("{}@example.com", self.owner)});
        let id = text(&self.post("/notifications/channels", channel).await["channel_id"]);
        let code = mail::code(&self.stage.h.platform.cx, &self.owner, &id).await;
        (id, code)
    }

    /// A channel for e-mails whose address is confirmed.
    async fn channel(&self) -> String {
        let (id, code) = self.unconfirmed_channel().await;
        self.post(&format!("/notifications/channels/{id}/confirm"), json!({ "code": code })).await;
        id
    }

    /// Gives a delivery up.
    async fn undelivered(&self, id: &str) {
        let store = &self.stage.h.platform.cx.store;
        let found = store.delivery(&self.owner, id.parse().unwrap()).await.unwrap().unwrap();
        let dropped = found.value.dropped("the receiver answered 500", self.stage.clock.now());
        let write = Store::delivery_write(&self.owner, &dropped, found.version).unwrap();
        assert!(store.write_all(vec![write]).await.unwrap().done());
    }

    /// The request of a case. Each time it has the same key.
    fn request(&self, case: &Case) -> RequestBuilder {
        let request = self.stage.h.request(Method::POST, &case.path).bearer_auth(&self.key);
        let request = request.header("accept", "application/json, text/event-stream;q=0.5");
        request.header("idempotency-key", "once").json(&case.body)
    }

    async fn send(&self, case: &Case) -> Answer {
        send(self.request(case)).await
    }

    /// Sends the request, and ignores the answer: it is lost with the process.
    async fn begin(&self, case: &Case) {
        let answer = self.stage.h.execute(self.request(case).build().unwrap()).await;
        drop(answer.unwrap().bytes().await);
    }

    async fn seen(&self, seen: &Seen) -> u64 {
        let cx = &self.stage.h.platform.cx;
        let entries = |answer: &Value, list: &str| answer[list].as_array().unwrap().len();
        let count = match seen {
            Seen::List(path, list) => entries(&self.get(path).await, list),
            Seen::Said(path) => {
                let answer = self.get(path).await;
                let messages = answer["data"].as_array().unwrap();
                messages.iter().filter(|message| message["role"] == "user").count()
            }
            Seen::Channels => {
                let answer = self.get("/notifications/channels").await;
                let channels = answer["data"].as_array().unwrap();
                channels.iter().filter(|channel| channel["state"] == "enabled").count()
            }
            Seen::Version(path) => return self.get(path).await["version"].as_u64().unwrap(),
            Seen::Events(run) => return cx.store.last_event_id(&self.owner, *run).await.unwrap(),
            Seen::Runs => {
                let (mut walk, mut runs) = (Walk::new(&self.owner, cx.clock.now()), BTreeSet::new());
                while let Some((partition, _)) = walk.next(&cx.store).await.unwrap() {
                    if let Partition::Run(id) = partition {
                        runs.insert(id);
                    }
                }
                runs.len()
            }
            Seen::Exports => cx.store.exports(&self.owner, 10).await.unwrap().items.len(),
            Seen::Stopped | Seen::NotStopped => {
                let is_stopped = cx.store.account(&self.owner).await.unwrap().value.stop.is_some();
                return u64::from(is_stopped == matches!(seen, Seen::Stopped));
            }
            Seen::Import => {
                let found = cx.store.account_import(&self.owner).await.unwrap();
                return found.map_or(0, |found| found.version);
            }
            Seen::Branch => {
                let hook = cx.store.docs_hook(&self.owner, ProjectId::DEFAULT).await.unwrap();
                usize::from(hook.is_some_and(|hook| hook.branch.is_some()))
            }
            Seen::Synchronised => {
                usize::from(cx.store.docs_sync(&self.owner, ProjectId::DEFAULT).await.unwrap().is_some())
            }
        };
        count as u64
    }

    async fn agent(&self) -> String {
        let agent = json!({"name": "Watch", "goal": "A research agent that watches"});
        text(&self.post("/agents", agent).await["agent_id"])
    }

    /// A new action: its path and its approval hash.
    async fn action(&self, more: Value) -> (String, Value) {
        let mut action = action("Report");
        action.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let path = format!("/agents/{}/actions", self.agent().await);
        let made = self.post(&path, action).await;
        (format!("/actions/{}", text(&made["action_id"])), json!({"approval_hash": made["approval_hash"]}))
    }

    /// The path of an approved action that is due every day.
    async fn scheduled(&self) -> String {
        let (path, hash) = self.action(json!({"schedule": {"every": "24h"}})).await;
        self.post(&format!("{path}/approve"), hash).await;
        path
    }

    /// The path of a chat with one message.
    async fn chat(&self) -> String {
        let agent = self.agent().await;
        let chat = json!({"messages": [{"role": "user", "content": "Hello"}]});
        format!("/chats/{}", text(&self.post(&format!("/agents/{agent}/chats"), chat).await["chat_id"]))
    }

    /// A run that waits for an answer about its call `1.0`.
    async fn waiting_run(&self, asks: &str) -> RunId {
        let cx = &self.stage.h.platform.cx;
        let (id, now) = (RunId::from_uuid(cx.clock.uuid()), cx.clock.now());
        let card = json!({
            "call_id": "1.0", "asks": asks, "tool": "send_mail", "why": "it sends", "hash": "0", "state": "waiting",
            "asked_at": now, "expires_at": now + SignedDuration::from_hours(24),
        });
        let run = Run {
            state: RunState::Waiting,
            cards: vec![serde_json::from_value(card).unwrap()],
            ..Run::begun(id, RunKind::Chat, now, now)
        };
        let begun = RunEvent::new(1, EventKind::RunStarted, now, json!({"run_id": id}));
        let writes = vec![
            Store::run_write(&self.owner, &run).unwrap(),
            Store::event_write(&self.owner, id, &begun).unwrap(),
        ];
        assert!(cx.store.write_all(writes).await.unwrap().done());
        id
    }

    /// Calls a tool of MCP.
    async fn tool(&self, name: &str, arguments: Value) {
        self.post("/mcp", called(name, &arguments)).await;
    }

    /// A fact that the long-term memory names.
    async fn fact(&self) -> String {
        let memory = json!({"markdown": "- The user has a brother.\n"});
        let written = self.call(Method::PUT, "/memory/long-term", memory).await.expect(200);
        text(&written["sections"][0]["lines"][0]["facts"][0]["fact_id"])
    }

    /// A living document with two versions, and a commit that it does not know.
    async fn living_document(&self) {
        for content in ["# A\n", "# B\n"] {
            self.call(Method::PUT, &format!("{DOCS}/A.md"), json!({"content": content})).await;
        }
        self.post(&format!("{DOCS}/commits"), json!({"commits": [tests::living::commit(1)]})).await;
    }

    /// Begins the context document of the default project and updates it.
    async fn document(&self) {
        self.tool("parse_mode", json!({"prompt": "PLAN: sell lamp oil"})).await;
        self.tool("update_context", json!({"mode": "PLAN", "decisions": ["Sell it in cans"]})).await;
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value:#} is no text")).to_owned()
}

fn called(tool: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

fn action(title: &str) -> Value {
    json!({
        "title": title, "description": "d", "priority": "low",
        "task_config": {"instructions": "Look at prices", "expected_output": "A list"},
    })
}

const CHANGES: &str = "/projects/default/changes";
const DOCS: &str = "/projects/default/docs";
const VERSIONS: &str = "/projects/default/context/versions";

/// A request of a route. `None` if there is no case of it.
async fn route(scene: &Scene<'_>, route: &str) -> Option<Case> {
    let case = |path: String, body: Value, seen: Seen| Some(Case { path, body, seen });
    let here = |body: Value, seen: Seen| case(route.to_owned(), body, seen);
    let list = |path: &str| Seen::List(path.to_owned(), "data");
    let filled = |agent: &str| route.replace("{agent_id}", agent);
    // A command to an action: `POST {path}/{command}`.
    let command = route.rsplit('/').next().unwrap_or_default();
    match route {
        "/account/api-keys" => here(json!({"name": "new"}), list(route)),
        "/account/export" => here(json!({}), Seen::Exports),
        "/account/import" => here(json!({"bytes": 1_000}), Seen::Import),
        "/account/stop" => here(json!({}), Seen::Stopped),
        "/account/start" => {
            scene.post("/account/stop", json!({})).await;
            here(json!({}), Seen::NotStopped)
        }
        "/actions/{action_id}/approve" => {
            let (path, hash) = scene.action(json!({})).await;
            case(format!("{path}/approve"), hash, Seen::Version(path))
        }
        "/actions/{action_id}/schedule" => {
            let (path, _) = scene.action(json!({})).await;
            case(format!("{path}/schedule"), json!({"schedule": {"every": "24h"}}), Seen::Version(path))
        }
        "/actions/{action_id}/resume" => {
            let path = scene.scheduled().await;
            scene.post(&format!("{path}/pause"), json!({})).await;
            case(format!("{path}/resume"), json!({}), Seen::Version(path))
        }
        "/actions/{action_id}/history/{version}/revert" => {
            let (path, _) = scene.action(json!({})).await;
            let changed = scene.call(Method::PATCH, &path, json!({"title": "Other"})).await.expect(200);
            case(format!("{path}/history/{}/revert", changed["version"]), json!({}), Seen::Version(path))
        }
        "/agents/{agent_id}/history/{version}/revert" => {
            let path = format!("/agents/{}", scene.agent().await);
            let changed = scene.call(Method::PATCH, &path, json!({"name": "Other"})).await.expect(200);
            case(format!("{path}/history/{}/revert", changed["version"]), json!({}), Seen::Version(path))
        }
        "/actions/{action_id}/cancel"
        | "/actions/{action_id}/complete"
        | "/actions/{action_id}/dismiss"
        | "/actions/{action_id}/pause" => {
            let path = scene.scheduled().await;
            case(format!("{path}/{command}"), json!({}), Seen::Version(path))
        }
        "/actions/{action_id}/run" => {
            let path = scene.scheduled().await;
            case(format!("{path}/run"), json!({}), list(&format!("{path}/runs")))
        }
        "/actions/{action_id}/messages" => {
            let (path, _) = scene.action(json!({})).await;
            let messages = format!("{path}/messages");
            case(messages.clone(), json!({"content": "How far is it?"}), Seen::Said(messages))
        }
        "/actions/{action_id}/rehearse" => {
            let (path, _) = scene.action(json!({})).await;
            case(format!("{path}/rehearse"), json!({}), Seen::Runs)
        }
        "/proposals/{proposal_id}/accept" => {
            let path = scene.scheduled().await;
            let said = scene.post(&format!("{path}/messages"), json!({"content": "pause it"})).await;
            let id = text(&said["proposals"][0]["proposal_id"]);
            case(route.replace("{proposal_id}", &id), json!({}), Seen::Version(path))
        }
        "/agents" => here(json!({"name": "Watch", "goal": "A research agent that watches"}), list(route)),
        "/setup" => {
            let agent = json!({"name": "Watch", "goal": "A research agent that watches"});
            here(json!({"agent": agent, "action": action("Look"), "tell": "at_once"}), list("/agents"))
        }
        "/agents/{agent_id}/actions" => case(filled(&scene.agent().await), action("Look"), list("/actions")),
        "/agents/{agent_id}/approvals" => {
            let (path, mut approval) = scene.action(json!({})).await;
            let action = scene.get(&path).await;
            approval["action_id"] = action["action_id"].clone();
            let agent = text(&action["agent_id"]);
            case(filled(&agent), json!({"approvals": [approval]}), Seen::Version(path))
        }
        "/agents/{agent_id}/assets" => {
            let asset = json!({"title": "Long", "content": "oil ".repeat(20_000)});
            case(filled(&scene.agent().await), asset, list("/assets"))
        }
        "/agents/{agent_id}/chat" => {
            case(filled(&scene.agent().await), json!({"message": "Write a brief"}), Seen::Runs)
        }
        "/agents/{agent_id}/chats" => {
            let path = filled(&scene.agent().await);
            let chat = json!({"messages": [{"role": "user", "content": "Hello"}]});
            case(path.clone(), chat, list(&path))
        }
        "/chats/{chat_id}" => {
            let path = scene.chat().await;
            case(path.clone(), json!({}), Seen::Version(path))
        }
        "/chats/{chat_id}/messages" => {
            let path = scene.chat().await;
            let said = json!({"messages": [{"role": "user", "content": "Hello again"}]});
            case(format!("{path}/messages"), said, Seen::List(path, "messages"))
        }
        "/context/hooks" => {
            // It has no `tool_use_id`, by which it would be known again.
            let hook = json!({
                "session_id": "s1", "hook_event_name": "PreToolUse", "tool_name": "Task",
                "tool_input": {
                    "subagent_type": "the-architect", "description": "Look", "prompt": "AgentId: arch-001",
                },
            });
            here(hook, Seen::List("/context/logs/arch-001".to_owned(), "entries"))
        }
        "/context/logs/{agent_id}" => {
            let entry = json!({"event": "agent_start", "session_id": "s1", "description": "Look"});
            case(filled("arch-001"), entry, Seen::List(filled("arch-001"), "entries"))
        }
        "/memory/cards" => here(json!({"title": "Checked the links"}), list(route)),
        "/memory/facts/{fact_id}/correct" => {
            let path = route.replace("{fact_id}", &scene.fact().await);
            case(
                path,
                json!({"text": "The user has a sister."}),
                Seen::Version("/memory/long-term".to_owned()),
            )
        }
        "/practices" => here(json!({"name": "Read"}), list(route)),
        "/practices/{practice_id}/check-ins" => {
            let id = text(&scene.post("/practices", json!({"name": "Read"})).await["practice_id"]);
            let path = route.replace("{practice_id}", &id);
            case(path.clone(), json!({"note": "Two chapters"}), list(&path))
        }
        "/watched" => here(json!({"name": "Backup", "schedule": {"every": "1h"}}), list(route)),
        "/watched/{watched_id}/reports" => {
            let new = json!({"name": "Backup", "schedule": {"every": "1h"}});
            let id = text(&scene.post("/watched", new).await["watched_id"]);
            let path = route.replace("{watched_id}", &id);
            case(path.clone(), json!({"summary": "412 files"}), list(&path))
        }
        "/notifications/channels" => here(json!({"kind": "email", "to": "me@example.com"}), list(route)),
        "/notifications/channels/{channel_id}/code" => {
            let (id, _) = scene.unconfirmed_channel().await;
            case(route.replace("{channel_id}", &id), json!({}), list("/deliveries"))
        }
        "/notifications/channels/{channel_id}/confirm" => {
            let (id, code) = scene.unconfirmed_channel().await;
            case(route.replace("{channel_id}", &id), json!({ "code": code }), Seen::Channels)
        }
        "/notifications/channels/{channel_id}/test" => {
            let id = scene.channel().await;
            case(route.replace("{channel_id}", &id), json!({}), list("/deliveries"))
        }
        "/deliveries/{delivery_id}/retry" => {
            let channel = scene.channel().await;
            let made = scene.post(&format!("/notifications/channels/{channel}/test"), json!({})).await;
            let id = text(&made["delivery_id"]);
            scene.undelivered(&id).await;
            case(route.replace("{delivery_id}", &id), json!({}), list("/deliveries?state=waiting"))
        }
        "/projects" => here(json!({"name": "Shop"}), list(route)),
        "/projects/{project_id}/chat" => {
            let said = json!({"message": "How does the header work?"});
            case("/projects/default/chat".to_owned(), said, list("/projects/default/chats"))
        }
        "/projects/{project_id}/changes" => {
            case(CHANGES.to_owned(), json!({"title": "Edits"}), list(CHANGES))
        }
        "/projects/{project_id}/changes/{change_set_id}/edits" => {
            let set = scene.change_set().await;
            let call = json!({"tool": "create_file", "path": "snippets/b.liquid", "content": "b"});
            case(format!("{set}/edits"), json!({"calls": [call]}), Seen::List(set, "files"))
        }
        "/projects/{project_id}/changes/{change_set_id}/revert" => {
            let set = scene.change_set().await;
            let hash = json!({"hash": scene.get(&set).await["hash"]});
            scene.post(&format!("{set}/apply"), hash).await;
            case(format!("{set}/revert"), json!({}), list(CHANGES))
        }
        "/projects/{project_id}/context/versions/{version}/restore" => {
            scene.document().await;
            case(format!("{VERSIONS}/1/restore"), json!({}), list(VERSIONS))
        }
        "/projects/{project_id}/docs" => case(
            DOCS.to_owned(),
            json!({"name": "A.md", "content": "# A\n"}),
            Seen::List(DOCS.to_owned(), "documents"),
        ),
        "/projects/{project_id}/docs/{document}/versions/{version}/restore" => {
            scene.living_document().await;
            let versions = format!("{DOCS}/A.md/versions");
            case(format!("{versions}/1/restore"), json!({}), list(&versions))
        }
        "/projects/{project_id}/docs/commits" => {
            let commits = format!("{DOCS}/commits");
            case(commits.clone(), json!({"commits": [tests::living::commit(1)]}), list(&commits))
        }
        "/projects/{project_id}/docs/hook" => {
            let hook = format!("{DOCS}/hook");
            scene.post(&hook, json!({})).await;
            case(hook, json!({"branch": "dev"}), Seen::Branch)
        }
        "/projects/{project_id}/docs/sync" => {
            scene.living_document().await;
            case(format!("{DOCS}/sync"), json!({}), Seen::Synchronised)
        }
        "/runs/{run_id}/calls/{call_id}/approve" | "/runs/{run_id}/calls/{call_id}/reject" => {
            let run = scene.waiting_run("permission").await;
            case(format!("/runs/{run}/calls/1.0/{command}"), json!({}), Seen::Events(run))
        }
        "/runs/{run_id}/calls/{call_id}/resolve" => {
            let run = scene.waiting_run("outcome").await;
            case(format!("/runs/{run}/calls/1.0/resolve"), json!({"outcome": "happened"}), Seen::Events(run))
        }
        "/runs/{run_id}/cancel" => {
            let run = scene.waiting_run("permission").await;
            case(format!("/runs/{run}/cancel"), json!({}), Seen::Events(run))
        }
        "/setup/chat" => here(json!({"message": "I need an agent that watches prices"}), Seen::Runs),
        "/v1/chat/completions" => {
            let said = json!([{"role": "user", "content": "Write a brief"}]);
            here(json!({"model": scene.agent().await, "messages": said}), Seen::Runs)
        }
        _ => None,
    }
}

/// A hook with a `tool_use_id`. It is known again by that id.
async fn hook_of_a_call(_: &Scene<'_>) -> Case {
    let seen = Seen::List("/context/logs/arch-001".to_owned(), "entries");
    Case { path: "/context/hooks".to_owned(), body: tests::logs::hook("arch-001", "call-1"), seen }
}

/// A call of a tool. `None` if there is no case of it.
async fn tool(scene: &Scene<'_>, name: &str) -> Option<Case> {
    let (arguments, seen) = match name {
        "parse_mode" => {
            scene.document().await;
            (json!({"prompt": "PLAN: sell lamps"}), Seen::List(VERSIONS.to_owned(), "data"))
        }
        "update_context" => {
            scene.document().await;
            let update = json!({"mode": "PLAN", "notes": ["Lamp oil is dear"]});
            (update, Seen::List(VERSIONS.to_owned(), "data"))
        }
        "restore_context" => {
            scene.document().await;
            (json!({"version": 1}), Seen::List(VERSIONS.to_owned(), "data"))
        }
        "append_agent_log" => {
            let entry = json!({"agent_id": "arch-001", "session": "s1", "event": "agent_start", "description": "Look"});
            (entry, Seen::List("/context/logs/arch-001".to_owned(), "entries"))
        }
        "remember_card" => {
            (json!({"title": "Checked the links"}), Seen::List("/memory/cards".to_owned(), "data"))
        }
        "report_run" => {
            let new = json!({"name": "Backup", "schedule": {"every": "1h"}});
            let id = text(&scene.post("/watched", new).await["watched_id"]);
            let reports = Seen::List(format!("/watched/{id}/reports"), "data");
            (json!({"watched": "backup", "summary": "412 files"}), reports)
        }
        "add_commit" => {
            let mut commit = tests::living::commit(1);
            commit.as_object_mut().unwrap().remove("files");
            (commit, Seen::List(format!("{DOCS}/commits"), "data"))
        }
        "sync_documentation" => {
            scene.living_document().await;
            (json!({}), Seen::Synchronised)
        }
        "correct_fact" => {
            let correction = json!({"fact_id": scene.fact().await, "text": "The user has a sister."});
            (correction, Seen::Version("/memory/long-term".to_owned()))
        }
        "forget_fact" => {
            (json!({"fact_id": scene.fact().await}), Seen::Version("/memory/long-term".to_owned()))
        }
        "propose_agent" => {
            let agent = json!({"name": "Watch", "goal": "A research agent that watches"});
            (agent, Seen::List("/agents".to_owned(), "data"))
        }
        "propose_asset" => {
            let agent = scene.agent().await;
            let asset = json!({"agent_id": agent, "title": "Long", "content": "oil ".repeat(20_000)});
            (asset, Seen::List(format!("/agents/{agent}/proposals"), "data"))
        }
        "propose_action" => {
            let agent = scene.agent().await;
            let action = json!({
                "agent_id": agent, "title": "Look", "instructions": "Look at prices", "expected_output": "A list",
            });
            (action, Seen::List(format!("/agents/{agent}/proposals"), "data"))
        }
        _ => return None,
    };
    Some(Case { path: "/mcp".to_owned(), body: called(name, &arguments), seen })
}

#[tokio::test]
async fn every_post_acts_once_wherever_its_process_ends() {
    let stage = Stage::start().await;
    let posts = OpenApi::new(stage.h.get("/openapi.json").await.expect(200)).routes();
    let posts: Vec<String> =
        posts.into_iter().filter(|route| route.method == Method::POST).map(|route| route.path).collect();
    for (safe, _) in SAFE {
        assert!(posts.iter().any(|post| post == safe), "{safe} is no POST route");
    }
    for (n, post) in posts.iter().enumerate() {
        let has_case = route(&stage.scene(&format!("post-{n}")).await, post).await.is_some();
        let is_safe = SAFE.iter().any(|(safe, _)| safe == post);
        assert!(has_case || is_safe, "POST {post} needs a case, or a reason why it is safe to repeat");
        if has_case {
            let case = async |scene: &Scene<'_>| route(scene, post).await.unwrap();
            println!("POST {post}");
            stage.ends_everywhere(&format!("post-{n}"), !is_safe, case).await;
        }
    }
}

#[tokio::test]
async fn a_hook_of_a_call_is_logged_once_wherever_its_process_ends() {
    Stage::start().await.ends_everywhere("hook", false, hook_of_a_call).await;
}

#[tokio::test]
async fn every_tool_of_mcp_that_writes_acts_once_wherever_its_process_ends() {
    let stage = Stage::start().await;
    let listing = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    let listed = stage.scene("lists").await.post("/mcp", listing).await;
    let mut writers = 0;
    for listed in listed["result"]["tools"].as_array().unwrap() {
        let name = text(&listed["name"]);
        let owner = name.replace('_', "-");
        let writes = listed["annotations"]["readOnlyHint"] != true;
        let has_case = tool(&stage.scene(&owner).await, &name).await.is_some();
        assert_eq!(has_case, writes, "{name}: exactly the tools that write need a case");
        if writes {
            writers += 1;
            let case = async |scene: &Scene<'_>| tool(scene, &name).await.unwrap();
            let is_marked = !SAFE_TOOLS.contains(&&*name);
            stage.ends_everywhere(&owner, is_marked, case).await;
        }
    }
    assert!(writers >= 7, "{writers}");
}
