//! The server's log while somebody uses everything: it contains nothing that people said, saved or signed in with, even
//! if it logs as much as possible.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::program::Server;
use tests::send;
use tests::site::{Answers, Site};

use crate::command;

/// This text is in everything private, and in nothing else.
const MARK: &str = "quicksilver";

fn logging(data: &Path, log: &Path) -> Command {
    let mut command = command(data);
    let log = File::options().create(true).append(true).open(log).unwrap();
    command.env("RUST_LOG", "trace").stderr(log);
    command
}

struct Caller<'a> {
    client: Client,
    server: &'a Server,
    token: Option<&'a str>,
}

impl Caller<'_> {
    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.server.url));
        let request = request.header("accept", "application/json");
        match self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let key = format!("{MARK}-{path}");
        let answer = send(self.request(Method::POST, path).header("idempotency-key", key).json(&body)).await;
        assert!((200..300).contains(&answer.status), "{path}: {answer:?}");
        answer.body
    }

    async fn get(&self, path: &str) -> Value {
        send(self.request(Method::GET, path)).await.expect(200)
    }
}

fn id<'a>(body: &'a Value, name: &str) -> &'a str {
    body[name].as_str().unwrap_or_else(|| panic!("{name} of {body:#}"))
}

async fn approve(caller: &Caller<'_>, action: &Value) {
    let path = format!("/actions/{}/approve", id(action, "action_id"));
    caller.post(&path, json!({"approval_hash": action["approval_hash"]})).await;
}

/// Runs an action by hand until the run is completed. Returns the path of the run.
async fn completed(caller: &Caller<'_>, action: &Value) -> String {
    let started = caller.post(&format!("/actions/{}/run", id(action, "action_id")), json!({})).await;
    let run = format!("/runs/{}", id(&started, "run_id"));
    loop {
        if caller.get(&run).await["state"] == "completed" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(caller.get(&run).await["state"], "completed");
    run
}

/// Sets an agent up, talks to it, saves what it proposes, and lets it work unattended. Returns the created API key, and
/// the signature of an address.
async fn walk_through(server: &Server, site: &Site) -> [String; 2] {
    let caller = Caller { client: tests::client(), server, token: None };
    let private = |text: &str| format!("{text} {MARK}");
    caller.post("/setup/chat", json!({"message": private("I want to follow")})).await;
    let agent = json!({"name": private("Watch"), "goal": private("A research agent that reports on")});
    let agent = caller.post("/agents", agent).await;
    let agent = format!("/agents/{}", id(&agent, "agent_id"));
    let turn =
        caller.post(&format!("{agent}/chat"), json!({"message": private("Write a brief about")})).await;
    let taken = json!({"proposal_id": turn["proposals"][0]["proposal_id"]});
    let asset = caller.post(&format!("{agent}/assets"), taken).await;
    caller.get(&format!("/assets/{}/content", id(&asset, "asset_id"))).await;
    // One asset that is in the bucket.
    let long = private(&"oil ".repeat(20_000));
    let again = json!({"title": private("Long"), "content": long});
    let answer = send(caller.request(Method::POST, &format!("{agent}/assets")).json(&again)).await;
    let long = answer.expect(201);
    let content = format!("/assets/{}/content", id(&long, "asset_id"));
    caller.get(&content).await;
    // A parameter that the route does not have is refused, and not logged.
    let query = send(caller.request(Method::GET, &format!("{content}?q={MARK}"))).await;
    query.refused(400, "invalid_input");

    // A key of a model provider, and one that is refused.
    for (key, status) in [(format!("sk-{MARK}-0123456789"), 200), (format!("sk {MARK} 0123456789"), 400)] {
        let put = caller.request(Method::PUT, "/account/provider-keys/anthropic");
        let kept = send(put.json(&json!({ "key": key }))).await.expect(status);
        assert!(!kept.to_string().contains(MARK), "{kept:#}");
    }
    caller.get("/account/provider-keys").await;
    // Without it, the demo model answers what follows.
    send(caller.request(Method::DELETE, "/account/provider-keys/anthropic")).await.expect(204);

    // A secret that a call sends, to a server that repeats it.
    let secret = json!({"value": MARK, "hosts": ["127.0.0.1"]});
    let put = caller.request(Method::PUT, "/account/secrets/hook");
    send(put.json(&secret)).await.expect(200);
    let header = json!({"secret": "hook", "prefix": "Bearer "});
    let call = json!({"url": site.url("/"), "secret_headers": {"Authorization": header}});
    let new = caller.request(Method::POST, &format!("{agent}/actions"));
    let action = send(new.json(&json!({"title": "Call", "call": call}))).await.expect(201);
    approve(&caller, &action).await;
    completed(&caller, &action).await;
    assert_eq!(site.posted()[0].header("authorization"), format!("Bearer {MARK}"));

    let action = json!({
        "title": private("Report"), "description": private("About"),
        "task_config": {"instructions": private("Write about"), "expected_output": private("A report about")},
    });
    let action = caller.post(&format!("{agent}/actions"), action).await;
    approve(&caller, &action).await;
    let path = format!("/actions/{}", id(&action, "action_id"));
    caller.post(&format!("{path}/messages"), json!({"content": private("Mind")})).await;
    let run = completed(&caller, &action).await;
    caller.get(&format!("{run}/events")).await;

    // Through MCP: the arguments and the answer of a tool.
    let call = |name: &str, arguments: Value| {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": name, "arguments": arguments}});
        let request = caller.client.post(format!("{}/mcp", server.url));
        send(request.header("accept", "application/json, text/event-stream").json(&call))
    };
    call("parse_mode", json!({"prompt": private("PLAN the work on")})).await.expect(200);
    call("update_context", json!({"mode": "PLAN", "decisions": [private("use")]})).await.expect(200);
    let read = call("read_context", json!({})).await.expect(200);
    assert!(read.to_string().contains(MARK), "{read}");
    call(MARK, json!({MARK: MARK})).await;

    // A presigned address is as good as a key.
    let import = caller.post("/context/import", json!({"bytes": 4})).await;
    let signature = id(&import["upload"], "url").split("X-Amz-Signature=").nth(1).unwrap().to_owned();
    tests::put_archive(&caller.client, &import, b"zip!".to_vec()).await;

    // Refused payloads are not logged either.
    let broken = caller.request(Method::POST, "/agents").header("content-type", "application/json");
    send(broken.body(format!("{{\"name\": {MARK}"))).await.refused(400, "malformed_json");
    send(caller.request(Method::POST, "/agents").json(&json!({"name": MARK.repeat(50), "goal": ""})))
        .await
        .refused(400, "invalid_input");
    send(caller.request(Method::GET, &format!("/{MARK}"))).await.refused(404, "not_found");
    let key = caller.post("/account/api-keys", json!({"name": private("laptop")})).await;
    [id(&key, "api_key").to_owned(), signature.split('&').next().unwrap().to_owned()]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_walk_through_leaves_nothing_private_in_the_log() {
    let folder = TempDir::new().unwrap();
    let (data, log) = (folder.path().join("data"), folder.path().join("log"));
    let site = Site::start(Answers::Echoes).await;
    let mut open = logging(&data, &log);
    open.env("LAMPLIGHTER_ALLOWED_HOSTS", site.url("").trim_start_matches("http://"));
    let server = Server::start(&mut open);
    let [key, signature] = walk_through(&server, &site).await;
    drop(server);

    // With credentials, and a model that can't be reached.
    let mut guarded = logging(&data, &log);
    guarded.env("LAMPLIGHTER_AUTH", "on");
    guarded.env("LAMPLIGHTER_MODEL_URL", "http://127.0.0.1:9/v1").env("LAMPLIGHTER_MODEL_KEY", MARK);
    guarded.env("LAMPLIGHTER_PRICES", r#"{"compatible/*": "free"}"#);
    let server = Server::start(&mut guarded);
    let caller = Caller { client: tests::client(), server: &server, token: Some(&key) };
    let agents = caller.get("/agents").await;
    let path = format!("/agents/{}/chat", id(&agents["data"][0], "agent_id"));
    let turn = caller.request(Method::POST, &path).json(&json!({"message": MARK}));
    send(turn).await.refused(503, "run_failed");
    let stranger = Caller { token: Some(MARK), ..caller };
    send(stranger.request(Method::GET, "/agents")).await.refused(401, "unauthenticated");
    drop(server);

    let log = fs::read_to_string(&log).unwrap();
    assert!(log.matches("answered").count() > 20, "the log tells of requests: {log}");
    let secret = key.rsplit_once('.').unwrap().1;
    let leaks: Vec<&str> = log
        .lines()
        .filter(|line| [MARK, secret, &signature].iter().any(|private| line.contains(private)))
        .collect();
    for told in
        ["method=POST", "route=\"/agents\"", "status=201", "ms=", "a run is taken up", "a run is put down"]
    {
        assert!(log.contains(told), "{told}: {log}");
    }
    assert!(leaks.is_empty(), "{} of {} lines:\n{}", leaks.len(), log.lines().count(), leaks[0]);
}
