//! Agents that use the living documents of a project: what they are told, what they may do, and what they may not.

use reqwest::Method;
use serde_json::{Value, json};
use tests::living::{keeps, reports, text, times};
use tests::mcp;
use tests::model::{Says, ScriptedModel};
use tests::stage::Stage;
use tests::{Harness, send};

const DOCS: &str = "/projects/default/docs";

async fn write(h: &Harness, name: &str, content: &str) {
    send(h.request(Method::PUT, &format!("{DOCS}/{name}")).json(&json!({"content": content}))).await;
}

/// It does what the block says: it synchronises when the person writes "update context". It also keeps documents.
fn syncs(messages: &[Value]) -> Says {
    let last = messages.last().unwrap();
    if last["role"] == "user" && texts(last).last().is_some_and(|said| said.ends_with("update context")) {
        return Says::Call("sync_documentation", json!({}));
    }
    keeps(messages)
}

async fn says(stage: &Stage, chat: Option<&str>, message: &str) -> Value {
    let mut body = json!({"message": message});
    if let Some(chat) = chat {
        body["chat_id"] = json!(chat);
    }
    let path = format!("/agents/{}/chat", stage.agent);
    let request = stage.h.request(Method::POST, &path).header("accept", "application/json").json(&body);
    send(request).await.expect(200)
}

/// The texts of a message that a model was sent.
fn texts(message: &Value) -> Vec<String> {
    let blocks = message["content"].as_array();
    match blocks {
        Some(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).map(str::to_owned).collect(),
        None => vec![message["content"].as_str().unwrap_or_default().to_owned()],
    }
}

#[tokio::test]
async fn an_agent_knows_the_documents_and_how_far_they_are_behind() {
    let model = ScriptedModel::start(syncs).await;
    let stage = Stage::with(model.config("scripted")).await;
    write(&stage.h, "A.md", "# A\n\nThe lamp is `brass`.\n").await;
    write(&stage.h, "LONG.md", &"word ".repeat(30_000)).await;
    let agent = format!("/agents/{}", stage.agent);
    // Without the setting, an agent knows nothing of them, and has no tool.
    let first = says(&stage, None, "Hello").await;
    let sent = &model.sent()[0];
    let shown = sent.to_string();
    assert!(!shown.contains("The lamp is") && !shown.contains("sync_documentation"), "{shown}");
    let missing = json!({"docs_project_id": "prj_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c"});
    let refused = stage.h.patch(&agent, missing).await.refused(400, "invalid_input");
    assert_eq!(refused["errors"][0]["field"], "docs_project_id");
    stage.h.patch(&agent, json!({"docs_project_id": "default"})).await.expect(200);
    let chat = first["chat_id"].as_str().unwrap();
    for (commits, expected) in [
        (0, None),
        (2, Some("2 commits are not in the documents yet. Mention")),
        (3, Some("3 commits are not in the documents yet. Propose")),
    ] {
        if commits > 0 {
            reports(&stage.h, "default", 1..=commits).await;
        }
        says(&stage, Some(chat), "And now?").await;
        let sent = model.sent().pop().unwrap();
        let messages = sent["messages"].as_array().unwrap();
        // The documents stand at the beginning, which stays the same. What changes stands in the newest message.
        let first = texts(&messages[1]).join("\n");
        assert!(first.contains("A.md:\n> # A\n> \n> The lamp is `brass`.\n"), "{first}");
        assert!(first.contains("LONG.md: 150000 bytes, see `read_document`."), "{first}");
        assert!(!first.contains("<documents_behind>"), "{first}");
        let last = texts(messages.last().unwrap()).join("\n");
        assert_eq!(expected.is_some(), last.contains("<documents_behind>"), "{last}");
        assert!(expected.is_none_or(|expected| last.contains(expected)), "{last}");
        let tools = sent["tools"].to_string();
        assert!(tools.contains("\"read_document\"") && tools.contains("\"sync_documentation\""), "{tools}");
    }
    let done = says(&stage, Some(chat), "update context").await;
    assert!(done.to_string().contains("OK"), "{done:#}");
    // A sweep sends what a run has asked for.
    stage.sweep().await;
    stage.executors.work().await;
    let sync = stage.h.get(&format!("{DOCS}/sync")).await.expect(200);
    assert_eq!((&sync["state"], &sync["commits"]), (&json!("succeeded"), &json!(3)), "{sync:#}");
    // Without it again.
    stage.h.patch(&agent, json!({"docs_project_id": null})).await.expect(200);
    says(&stage, Some(chat), "And now?").await;
    assert!(!model.sent().pop().unwrap().to_string().contains("The lamp is"));
}

/// A run reads a document, begins a synchronisation and saves an output.
fn runs(messages: &[Value]) -> Says {
    let system = messages[0]["content"].to_string();
    if !system.contains("<lamplighter:run>") {
        return keeps(messages);
    }
    match messages.iter().filter(|message| message["role"] == "tool").count() {
        0 => Says::Call("read_document", json!({"name": "A.md"})),
        1 => Says::Call("sync_documentation", json!({})),
        2 => Says::Call("save_output", json!({"title": "Report", "content": "Begun."})),
        _ => Says::Text("Done.".to_owned()),
    }
}

#[tokio::test]
async fn a_scheduled_run_synchronises_the_documents() {
    let model = ScriptedModel::start(runs).await;
    let stage = Stage::with(model.config("scripted")).await;
    write(&stage.h, "A.md", "# A\n").await;
    reports(&stage.h, "default", [7]).await;
    let agent = format!("/agents/{}", stage.agent);
    stage.h.patch(&agent, json!({"docs_project_id": "default"})).await.expect(200);
    let id = stage.approved(json!({"schedule": {"every": "1h"}})).await;
    stage.happens_at(61).await;
    assert_eq!(stage.newest_run(id).await["state"], "completed");
    let sent = model.sent();
    let read = sent.iter().find(|sent| sent["messages"].to_string().contains("commits_since_sync: 1"));
    assert!(read.is_some(), "the run has read the document");
    stage.at(63);
    stage.sweep().await;
    stage.executors.work().await;
    assert_eq!(times(&text(&stage.h, "default", "A.md").await, [7]), [1]);
}

#[tokio::test]
async fn a_rehearsal_knows_the_documents_and_synchronises_nothing() {
    let model = ScriptedModel::start(runs).await;
    let stage = Stage::with(model.config("scripted")).await;
    write(&stage.h, "A.md", "# A\n\nOne door.\n").await;
    reports(&stage.h, "default", 1..=3).await;
    let agent = format!("/agents/{}", stage.agent);
    stage.h.patch(&agent, json!({"docs_project_id": "default"})).await.expect(200);
    let id = stage.approved(json!({})).await;
    let begun = stage.h.post(&format!("/actions/{id}/rehearse"), json!({})).await.expect(202);
    stage.executors.work().await;
    let shown = stage.h.get(&format!("/runs/{}", begun["run_id"].as_str().unwrap())).await.expect(200);
    let effects = json!([{"tool": "sync_documentation", "arguments": "{}"}]);
    assert_eq!(shown["rehearsal"]["effects"], effects, "{shown:#}");
    let sent = model.sent();
    let first = texts(&sent[0]["messages"][1]).join("\n");
    assert!(first.contains("> One door.") && first.contains("3 commits are not in the documents"), "{first}");
    let last = sent.last().unwrap()["messages"].to_string();
    assert!(last.contains("this is a rehearsal: it was recorded and not done"), "{last}");
    stage.sweep().await;
    stage.executors.work().await;
    stage.h.get(&format!("{DOCS}/sync")).await.refused(404, "not_found");
    assert_eq!(stage.h.get(DOCS).await.expect(200)["commits_since_sync"], 3);
}

#[tokio::test]
async fn the_demo_model_keeps_documents_and_says_so() {
    let h = Harness::start().await;
    write(&h, "A.md", "# A\n\nOne door.\n").await;
    reports(&h, "default", 1..=3).await;
    let agent = h.agent().await;
    h.patch(&format!("/agents/{agent}"), json!({"docs_project_id": "default"})).await.expect(200);
    let path = format!("/agents/{agent}/chat");
    let request = h.request(Method::POST, &path).header("accept", "application/json");
    let said = send(request.json(&json!({"message": "Update context"}))).await.expect(200);
    assert!(said.to_string().contains("begun: the documents are new"), "{said:#}");
    let sync = {
        loop {
            let sync = h.get(&format!("{DOCS}/sync")).await.expect(200);
            if !["waiting", "running"].iter().any(|state| sync["state"] == *state) {
                break sync;
            }
            assert_eq!(sync.get("error"), None, "{sync:#}");
            // Asking again and again takes nothing away from the executor that works.
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            h.post(&format!("{DOCS}/sync"), json!({})).await.expect(202);
        }
    };
    assert_eq!(sync["state"], "succeeded", "{sync:#}");
    let new = text(&h, "default", "A.md").await;
    assert!(new.contains("One door.\n\n## Newest changes (demo model)\n\n- Change number 1\n"), "{new}");
}

#[tokio::test]
async fn a_coding_assistant_keeps_the_documents_over_mcp() {
    let model = ScriptedModel::start(keeps).await;
    let stage = Stage::with(model.config("scripted")).await;
    write(&stage.h, "A.md", "# A\n").await;
    let mcp = mcp::client(&stage.h);
    let commit = json!({
        "id": "6dcb09b5b57875f334f61aebed695e2e4193db5e", "at": "2026-11-20T08:00:00Z", "message": "Change number 5",
        "files": (0..60).map(|n| format!("src/{n}.rs")).collect::<Vec<_>>(),
    });
    let added = mcp.gives("add_commit", commit).await;
    assert_eq!((&added["new"], &added["staleness"]), (&json!(1), &json!("slightly")), "{added:#}");
    let waiting = stage.h.get(&format!("{DOCS}/commits")).await.expect(200);
    assert_eq!(waiting["data"][0]["more_files"], 10);
    let begun = mcp.gives("sync_documentation", json!({})).await;
    assert_eq!(begun["state"], "waiting", "{begun:#}");
    stage.executors.work().await;
    let read = mcp.gives("read_document", json!({"name": "A.md"})).await;
    assert_eq!(times(read["content"].as_str().unwrap(), [5]), [1]);
    let list = mcp.gives("read_document", json!({})).await;
    assert_eq!(list["documents"][0]["name"], "A.md", "{list:#}");
}
