//! The webhook with which GitHub reports pushes: signed by a program that is not ours, and attacked.

use reqwest::Method;
use serde_json::{Value, json};
use tests::{Answer, Harness, send};

const HOOK: &str = "/projects/default/docs/hook";

/// The body of a push, in the form that GitHub documents.
fn push(reference: &str, ids: &[&str]) -> String {
    let commits: Vec<Value> = ids
        .iter()
        .map(|id| {
            json!({
                "id": id, "tree_id": id, "distinct": true, "message": format!("Change {id}"),
                "timestamp": "2026-11-24T09:30:00+01:00", "url": "https://github.com/a/b/commit/1",
                "author": {"name": "Ada", "email": "ada@example.com", "username": "ada"},
                "committer": {"name": "GitHub", "email": "noreply@github.com"},
                "added": ["src/new.rs"], "removed": [], "modified": ["README.md"],
            })
        })
        .collect();
    json!({
        "ref": reference, "before": "0".repeat(40), "after": ids.last(), "created": false, "deleted": false, "forced": false,
        "repository": {"id": 1, "full_name": "a/b", "default_branch": "main"}, "pusher": {"name": "ada"}, "commits": commits,
    })
    .to_string()
}

/// The HMAC-SHA-256 as another implementation computes it.
fn signature(secret: &str, body: &str) -> String {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret.as_bytes());
    let tag = ring::hmac::sign(&key, body.as_bytes());
    let digits: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={digits}")
}

async fn call(h: &Harness, path: &str, event: &str, signature: &str, body: &str) -> Answer {
    let request = h
        .request(Method::POST, path)
        .header("content-type", "application/json")
        .header("user-agent", "GitHub-Hookshot/1")
        .header("x-github-delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958")
        .header("x-github-event", event)
        .header("x-hub-signature-256", signature)
        .body(body.to_owned());
    send(request).await
}

#[tokio::test]
async fn a_signed_push_of_the_branch_is_taken_once() {
    let h = Harness::start().await;
    let hook = h.post(HOOK, json!({})).await.expect(201);
    let (path, secret) = (hook["path"].as_str().unwrap(), hook["secret"].as_str().unwrap());
    let shown = h.get(HOOK).await.expect(200);
    assert_eq!(shown.get("secret"), None, "{shown:#}");
    let ids = ["6dcb09b5b57875f334f61aebed695e2e4193db5e", "7dcb09b5b57875f334f61aebed695e2e4193db5e"];
    let ping = r#"{"zen": "Design for failure.", "hook_id": 1}"#;
    let pong = call(&h, path, "ping", &signature(secret, ping), ping).await.expect(200);
    assert_eq!(pong["ignored"], "it is a ping");
    let body = push("refs/heads/main", &ids);
    let signed = signature(secret, &body);
    let taken = call(&h, path, "push", &signed, &body).await.expect(200);
    assert_eq!(taken, json!({"new": 2, "rebased": 0, "known": 0}));
    // GitHub may send it again.
    let again = call(&h, path, "push", &signed, &body).await.expect(200);
    assert_eq!(again, json!({"new": 0, "rebased": 0, "known": 2}));
    for other in ["refs/heads/dev", "refs/tags/v1"] {
        let body = push(other, &["8dcb09b5b57875f334f61aebed695e2e4193db5e"]);
        let ignored = call(&h, path, "push", &signature(secret, &body), &body).await.expect(200);
        assert_eq!(ignored["ignored"], format!("it is a push of {other}"));
    }
    let waiting = h.get("/projects/default/docs/commits").await.expect(200);
    assert_eq!(waiting["data"].as_array().unwrap().len(), 2);
    assert_eq!(waiting["data"][0]["files"], json!(["src/new.rs", "README.md"]));
    assert_eq!(waiting["data"][0]["at"], "2026-11-24T08:30:00Z");
}

#[tokio::test]
async fn what_is_not_signed_with_the_secret_reports_nothing() {
    let h = Harness::start().await;
    let hook = h.post(HOOK, json!({})).await.expect(201);
    let (path, secret) =
        (hook["path"].as_str().unwrap().to_owned(), hook["secret"].as_str().unwrap().to_owned());
    let body = push("refs/heads/main", &["6dcb09b5b57875f334f61aebed695e2e4193db5e"]);
    let good = signature(&secret, &body);
    for wrong in ["", "sha256=", &good[7..], &format!("sha1={}", &good[7..]), &signature("other", &body)] {
        call(&h, &path, "push", wrong, &body).await.refused(403, "forbidden");
    }
    // A body that was changed on its way, by one space.
    call(&h, &path, "push", &good, &format!("{body} ")).await.refused(403, "forbidden");
    call(&h, "/hooks/github/1.AAAA", "push", &good, &body).await.refused(404, "not_found");
    let mut cut = path.clone();
    cut.pop();
    call(&h, &cut, "push", &good, &body).await.refused(404, "not_found");
    // Another project's token, and the old secret after a new one.
    let other = h.post("/projects", json!({"name": "Shop"})).await.expect(201);
    let other = format!("/projects/{}/docs/hook", other["project_id"].as_str().unwrap());
    let other = h.post(&other, json!({"branch": "dev"})).await.expect(201);
    call(&h, other["path"].as_str().unwrap(), "push", &good, &body).await.refused(403, "forbidden");
    let new = h.post(HOOK, json!({})).await.expect(201);
    call(&h, &path, "push", &good, &body).await.refused(403, "forbidden");
    let signed = signature(new["secret"].as_str().unwrap(), &body);
    assert_eq!(call(&h, &path, "push", &signed, &body).await.expect(200)["new"], 1);
    for wrong in ["{}", "[", "null"] {
        let signed = signature(new["secret"].as_str().unwrap(), wrong);
        call(&h, &path, "push", &signed, wrong).await.refused(400, "invalid_input");
    }
    h.delete(HOOK).await.expect(204);
    call(&h, &path, "push", &signed, &body).await.refused(404, "not_found");
    h.get(HOOK).await.expect(204);
}

#[tokio::test]
async fn a_push_of_more_commits_than_one_request_may_report() {
    let h = Harness::start().await;
    let hook = h.post(HOOK, json!({"branch": "dev"})).await.expect(201);
    let ids: Vec<String> = (0..450).map(|n| format!("{n:08x}{:032x}", n + 1)).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let body = push("refs/heads/dev", &ids);
    let signed = signature(hook["secret"].as_str().unwrap(), &body);
    // They have one time, one author and different messages.
    let taken = call(&h, hook["path"].as_str().unwrap(), "push", &signed, &body).await.expect(200);
    assert_eq!(taken["new"], 450);
}
