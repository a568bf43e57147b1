//! Creates one resource of each kind that an owner can have, over HTTP.

use domain::accounts::scopes::Scope;
use reqwest::Method;
use serde_json::{Value, json};

use crate::openapi::Ids;
use crate::{Answer, Harness, send};

/// A client of a platform, with or without the API key of an owner.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    pub h: &'a Harness,
    pub key: Option<&'a str>,
}

impl Caller<'_> {
    pub async fn call(&self, method: Method, path: &str, body: Value) -> Answer {
        let mut request = self.h.request(method.clone(), path).header("accept", "application/json");
        if let Some(key) = self.key {
            request = request.bearer_auth(key);
        }
        if method != Method::GET && method != Method::DELETE {
            request = request.json(&body);
        }
        send(request).await
    }

    async fn made(&self, method: Method, path: &str, body: Value) -> Value {
        let answer = self.call(method, path, body).await;
        assert!((200..300).contains(&answer.status), "{path}: {} {:#}", answer.status, answer.body);
        answer.body
    }

    /// Creates one resource of each kind and returns its id by its name in paths. Every text of the resources contains
    /// `mark`.
    ///
    /// # Panics
    /// If a resource cannot be created.
    pub async fn things(&self, mark: &str) -> Ids {
        let post = async |path: String, body: Value| self.made(Method::POST, &path, body).await;
        let new = json!({"name": mark, "goal": format!("A research agent that watches {mark}")});
        let agent = id(&post("/agents".into(), new).await, "agent_id");
        let turn = json!({"message": format!("Write a brief about {mark}")});
        let turn = post(format!("/agents/{agent}/chat"), turn).await;
        let asset = json!({"title": mark, "description": mark, "content": mark});
        let asset = post(format!("/agents/{agent}/assets"), asset).await;
        let action = json!({
            "title": mark, "description": mark, "priority": "low",
            "task_config": {"instructions": mark, "expected_output": mark},
        });
        let action = post(format!("/agents/{agent}/actions"), action).await;
        let api_key = post("/account/api-keys".into(), json!({"name": mark})).await;
        let project = id(&post("/projects".into(), json!({"name": mark})).await, "project_id");
        let import = post(format!("/projects/{project}/import"), json!({"bytes": 5})).await;
        let file = format!("/projects/{project}/files/assets/a.css");
        self.made(Method::PUT, &file, json!({ "mark": mark })).await;
        let changes = format!("/projects/{project}/changes");
        let change_set = id(&post(changes, json!({ "title": mark })).await, "change_set_id");
        let docs = format!("/projects/{project}/docs");
        let document = json!({"name": "A.md", "content": format!("# {mark}\n")});
        let document = id(&post(docs.clone(), document).await, "name");
        let commit = json!({
            "id": "6dcb09b5b57875f334f61aebed695e2e4193db5e", "at": "2026-11-20T08:00:00Z", "message": mark,
        });
        post(format!("{docs}/commits"), json!({"commits": [commit]})).await;
        post(format!("{docs}/hook"), json!({})).await;
        let practice = json!({"name": mark, "description": mark});
        let practice = id(&post("/practices".into(), practice).await, "practice_id");
        let check_in = post(format!("/practices/{practice}/check-ins"), json!({"note": mark})).await;
        let watched = json!({"name": mark, "schedule": {"every": "1h"}});
        let watched = id(&post("/watched".into(), watched).await, "watched_id");
        post(format!("/watched/{watched}/reports"), json!({"summary": mark})).await;
        let channel = json!({"kind": "email", "to": "me@example.com"});
        let channel = id(&post("/notifications/channels".into(), channel).await, "channel_id");
        // The code for the address.
        let delivery = self.made(Method::GET, "/deliveries", json!({})).await["data"][0].clone();
        let card = id(&post("/memory/cards".into(), json!({ "title": mark })).await, "card_id");
        let said = json!({"messages": [{"id": "1", "role": "user", "text": mark}]});
        post("/memory/sessions/a-session/messages".into(), said).await;
        let long_term = json!({ "markdown": format!("- The user likes {mark}.\n") });
        let written = self.made(Method::PUT, "/memory/long-term", long_term).await;
        let fact = id(&written["sections"][0]["lines"][0]["facts"][0], "fact_id");
        Ids::from([
            ("card_id", card),
            ("change_set_id", change_set),
            ("session_id", "a-session".to_owned()),
            ("fact_id", fact),
            // Nothing was tidied, and a week has a summary only after that.
            ("tidy_id", "tdy_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c".to_owned()),
            ("monday", "2026-11-23".to_owned()),
            ("practice_id", practice),
            ("watched_id", watched),
            ("channel_id", channel),
            ("delivery_id", id(&delivery, "delivery_id")),
            ("date", id(&check_in, "date")),
            ("path", "assets/a.css".to_owned()),
            ("import_id", id(&import, "import_id")),
            ("agent_id", agent),
            ("chat_id", id(&turn, "chat_id")),
            ("run_id", id(&turn, "run_id")),
            ("call_id", "1.0".to_owned()),
            ("proposal_id", id(&turn["proposals"][0], "proposal_id")),
            ("asset_id", id(&asset, "asset_id")),
            ("action_id", id(&action, "action_id")),
            ("approval_hash", id(&action, "approval_hash")),
            ("key_id", id(&api_key, "key_id")),
            ("project_id", project.clone()),
            ("project", project),
            ("document", document),
            ("version", "1".to_owned()),
        ])
    }
}

fn id(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("{name} is missing in {value:#}")).to_owned()
}

impl Harness {
    /// An API key of an owner, for a platform with authentication.
    ///
    /// # Panics
    /// If the name is not a valid owner, or if the table does not answer.
    pub async fn key_of(&self, owner: &str) -> String {
        self.key_with(owner, json!({"name": "test"})).await
    }

    /// An API key of this owner, made from this input.
    pub async fn key_with(&self, owner: &str, input: Value) -> String {
        let owner = domain::ids::Owner::new(owner).expect("a name of an owner");
        let input = serde_json::from_value(input).expect("a new key");
        let caller = shared::edge::extract::Caller { owner, scope: Scope::Admin, key: None };
        let once = shared::store::Once::none();
        let made = shared::flows::accounts::api_keys::create(&self.platform.cx, &caller, &once, input);
        made.await.expect("a key is made").api_key
    }
}

/// A valid body for each POST and PATCH, so that only the owner is wrong.
#[must_use]
pub fn body(route: &str, ids: &Ids) -> Value {
    match route {
        "PATCH /agents/{agent_id}"
        | "PATCH /projects/{project_id}"
        | "PATCH /practices/{practice_id}"
        | "PATCH /watched/{watched_id}" => json!({"name": "stolen"}),
        "POST /notifications/channels" => json!({"kind": "email", "to": "me@example.com"}),
        "PATCH /notifications/channels/{channel_id}" => json!({"state": "disabled"}),
        "POST /notifications/channels/{channel_id}/confirm" => json!({"code": "1234 5678"}),
        "POST /agents/{agent_id}/chat" | "POST /projects/{project_id}/chat" => json!({"message": "hello"}),
        "POST /agents/{agent_id}/assets" => json!({"title": "t", "content": "c"}),
        "POST /agents/{agent_id}/actions" => json!({
            "title": "t", "description": "d", "priority": "low",
            "task_config": {"instructions": "i", "expected_output": "o"}
        }),
        "POST /projects/{project_id}/changes/{change_set_id}/edits" => {
            json!({"calls": [{"tool": "create_file", "path": "assets/stolen.css", "content": "stolen"}]})
        }
        "POST /projects/{project_id}/changes/{change_set_id}/apply" => json!({"hash": "0".repeat(64)}),
        "POST /projects/{project_id}/docs" => json!({"name": "STOLEN.md", "content": "stolen"}),
        "PUT /projects/{project_id}/docs/{document}" => json!({"content": "stolen"}),
        "POST /projects/{project_id}/docs/commits" => json!({"commits": [crate::living::commit(1)]}),
        "PATCH /assets/{asset_id}" | "PATCH /actions/{action_id}" => json!({"title": "stolen"}),
        "POST /chats/{chat_id}/messages" => json!({"messages": [{"role": "user", "content": "hello"}]}),
        "POST /actions/{action_id}/approve" => json!({"approval_hash": ids["approval_hash"]}),
        "POST /agents/{agent_id}/approvals" => {
            json!({"approvals": [{"action_id": ids["action_id"], "approval_hash": ids["approval_hash"]}]})
        }
        "POST /actions/{action_id}/schedule" => json!({"schedule": {"every": "1h"}}),
        "POST /actions/{action_id}/messages" => json!({"content": "hello"}),
        "POST /projects/{project_id}/lookup"
        | "POST /projects/{project_id}/scout"
        | "POST /projects/{project_id}/gate" => json!({"request": "cart"}),
        "POST /memory/facts/{fact_id}/correct" => json!({"text": "The user likes nothing."}),
        "POST /runs/{run_id}/calls/{call_id}/resolve" => json!({"outcome": "happened"}),
        "POST /projects/{project_id}/import" => json!({"bytes": 5}),
        "PUT /actions/{action_id}/notebook" => json!({"text": "stolen"}),
        "PATCH /projects/{project_id}/files/{path}" => json!({"path": "assets/stolen.css"}),
        _ => json!({}),
    }
}
