//! Living documents through the API: what people and programs write, and what everybody reads.

use reqwest::Method;
use serde_json::{Value, json};
use tests::living::{commit, reports, text};
use tests::{Harness, send};

const DOCS: &str = "/projects/default/docs";

#[tokio::test]
async fn a_document_is_created_read_replaced_and_deleted() {
    let h = Harness::start().await;
    let empty = h.get(DOCS).await.expect(200);
    assert_eq!((&empty["documents"], &empty["commits_since_sync"]), (&json!([]), &json!(0)));
    assert_eq!((&empty["staleness"], empty.get("sync")), (&json!("fresh"), None));
    let made = h.post(DOCS, json!({"name": "DESIGN.md", "content": "# Design\n"})).await.expect(201);
    assert_eq!((&made["version"], &made["cause"], &made["bytes"]), (&json!(1), &json!("created"), &json!(9)));
    let shown = "---\ncommits_since_sync: 0\n---\n# Design\n";
    assert_eq!(text(&h, "default", "DESIGN.md").await, shown);
    h.post(DOCS, json!({"name": "DESIGN.md"})).await.refused(409, "document_exists");
    // A text that was read can be sent back as it is, and changes nothing.
    let put = |content: &str, version: Option<&str>| {
        let request = h.request(Method::PUT, &format!("{DOCS}/DESIGN.md")).json(&json!({"content": content}));
        let request = version
            .map(|version| format!("\"{version}\""))
            .iter()
            .fold(request, |request, version| request.header("if-match", version));
        send(request)
    };
    assert_eq!(put(shown, Some("1")).await.expect(200)["version"], 1);
    let changed = put("---\ntitle: D\nlast_sync: never\n---\n# New\n", Some("1")).await.expect(200);
    assert_eq!((&changed["version"], &changed["cause"]), (&json!(2), &json!("edited")));
    assert_eq!(text(&h, "default", "DESIGN.md").await, "---\ntitle: D\ncommits_since_sync: 0\n---\n# New\n");
    let refused = put("# Mine\n", Some("1")).await.refused(409, "version_conflict");
    assert!(refused["current"]["content"].as_str().unwrap().ends_with("# New\n"), "{refused:#}");
    // An earlier version is as it was written.
    let first = h.get(&format!("{DOCS}/DESIGN.md?version=1")).await.expect(200);
    assert_eq!(first["content"], "# Design\n");
    let restored = h.post(&format!("{DOCS}/DESIGN.md/versions/1/restore"), json!({})).await.expect(200);
    assert_eq!((&restored["version"], &restored["cause"]), (&json!(3), &json!("restored")));
    let versions = h.get(&format!("{DOCS}/DESIGN.md/versions")).await.expect(200);
    let numbers: Vec<&Value> =
        versions["data"].as_array().unwrap().iter().map(|one| &one["version"]).collect();
    assert_eq!(numbers, [3, 2, 1]);
    h.delete(&format!("{DOCS}/DESIGN.md")).await.expect(204);
    h.get(&format!("{DOCS}/DESIGN.md")).await.refused(404, "not_found");
    h.get(&format!("{DOCS}/DESIGN.md?version=1")).await.refused(404, "not_found");
    // Nothing is left of it if it is created again.
    h.post(DOCS, json!({"name": "DESIGN.md", "content": "x"})).await.expect(201);
    let versions = h.get(&format!("{DOCS}/DESIGN.md/versions")).await.expect(200);
    assert_eq!(versions["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn the_newest_sixty_versions_are_kept_and_their_texts() {
    let h = Harness::start().await;
    for n in 1..=63 {
        let put =
            h.request(Method::PUT, &format!("{DOCS}/A.md")).json(&json!({"content": format!("text {n}")}));
        send(put).await.expect(if n == 1 { 201 } else { 200 });
    }
    let versions = h.get(&format!("{DOCS}/A.md/versions?limit=200")).await.expect(200);
    assert_eq!(versions["data"].as_array().unwrap().len(), 60);
    assert_eq!(h.get(&format!("{DOCS}/A.md?version=4")).await.expect(200)["content"], "text 4");
    h.get(&format!("{DOCS}/A.md?version=3")).await.refused(404, "not_found");
    let cx = &h.platform.cx;
    let owner = domain::ids::Owner::new("local").unwrap();
    let texts = shared::blobs::BlobKey::living_texts(&owner, domain::ids::ProjectId::DEFAULT);
    assert_eq!(cx.blobs.list(&texts, None).await.unwrap().len(), 60);
    h.delete(&format!("{DOCS}/A.md")).await.expect(204);
    assert_eq!(cx.blobs.list(&texts, None).await.unwrap().len(), 0);
}

#[tokio::test]
async fn bad_input_is_refused_with_its_field() {
    let h = Harness::start().await;
    let refused = h.post(DOCS, json!({"name": "a/b", "content": "a\0"})).await.refused(400, "invalid_input");
    let fields: Vec<&str> =
        refused["errors"].as_array().unwrap().iter().map(|error| error["field"].as_str().unwrap()).collect();
    assert_eq!(fields, ["name", "content"], "{refused:#}");
    let long = json!({"name": "a.md", "content": "a".repeat(204_801)});
    h.post(DOCS, long).await.refused(400, "invalid_input");
    for name in ["sync", "commits", "hook"] {
        h.post(DOCS, json!({"name": name})).await.refused(400, "invalid_input");
    }
    let put = h.request(Method::PUT, &format!("{DOCS}/a%20b")).json(&json!({"content": ""}));
    send(put).await.refused(400, "invalid_input");
    let mut wrong = commit(1);
    wrong["id"] = json!("abc");
    h.post(&format!("{DOCS}/commits"), json!({"commits": [wrong]})).await.refused(400, "invalid_input");
    h.post(&format!("{DOCS}/commits"), json!({"commits": []})).await.refused(400, "invalid_input");
    let mut empty = commit(1);
    empty["message"] = json!(" ");
    let refused = h
        .post(&format!("{DOCS}/commits"), json!({"commits": [commit(2), empty]}))
        .await
        .refused(400, "invalid_input");
    assert_eq!(refused["errors"][0]["field"], "commits[1].message", "{refused:#}");
    for n in 0..20 {
        h.post(DOCS, json!({"name": format!("{n}.md")})).await.expect(201);
    }
    h.post(DOCS, json!({"name": "more.md"})).await.refused(409, "too_many_documents");
    h.get("/projects/prj_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c/docs").await.refused(404, "not_found");
}

#[tokio::test]
async fn twenty_documents_that_are_created_at_once_are_counted() {
    let h = Harness::start().await;
    let create = |n: usize| {
        let h = &h;
        async move { h.post(DOCS, json!({"name": format!("{n}.md")})).await.status }
    };
    let made = futures::future::join_all((0..30).map(create)).await;
    let count = h.get(DOCS).await.expect(200)["documents"].as_array().unwrap().len();
    assert_eq!(made.iter().filter(|status| **status == 201).count(), count);
    assert!(count <= 20, "{count}");
}

#[tokio::test]
async fn commits_wait_once_whoever_reports_them() {
    let h = Harness::start().await;
    let first = reports(&h, "default", [1, 2, 2]).await;
    assert_eq!(
        (&first["new"], &first["known"], &first["staleness"]),
        (&json!(2), &json!(1), &json!("slightly"))
    );
    // Ten programs report the same ones at once.
    let all = (0..10).map(|_| reports(&h, "default", [2, 3, 4]));
    let new: u64 =
        futures::future::join_all(all).await.iter().map(|added| added["new"].as_u64().unwrap()).sum();
    assert_eq!(new, 2);
    let waiting = h.get(&format!("{DOCS}/commits")).await.expect(200);
    let messages: Vec<&str> =
        waiting["data"].as_array().unwrap().iter().map(|one| one["message"].as_str().unwrap()).collect();
    assert_eq!(messages, [1, 2, 3, 4].map(|n| format!("Change number {n}")));
    let mut rebased = commit(1);
    rebased["id"] = json!("f".repeat(40));
    let added = h.post(&format!("{DOCS}/commits"), json!({"commits": [rebased]})).await.expect(200);
    assert_eq!((&added["rebased"], &added["commits_since_sync"]), (&json!(1), &json!(4)));
    h.post(DOCS, json!({"name": "A.md", "content": "# A\n"})).await.expect(201);
    let shown = text(&h, "default", "A.md").await;
    assert_eq!(shown, "---\nlast_commit: 2026-11-20T08:00:00Z\ncommits_since_sync: 4\n---\n# A\n");
    let docs = h.get(DOCS).await.expect(200);
    assert_eq!((&docs["staleness"], &docs["commits_since_sync"]), (&json!("stale"), &json!(4)));
}

#[tokio::test]
async fn a_deleted_project_leaves_nothing() {
    let h = Harness::start().await;
    let project = h.post("/projects", json!({"name": "Shop"})).await.expect(201);
    let project = project["project_id"].as_str().unwrap();
    let docs = format!("/projects/{project}/docs");
    h.post(&docs, json!({"name": "A.md", "content": "# A\n"})).await.expect(201);
    reports(&h, project, [1]).await;
    let hook = h.post(&format!("{docs}/hook"), json!({})).await.expect(201);
    h.delete(&format!("/projects/{project}")).await.expect(204);
    h.get(&docs).await.refused(404, "not_found");
    h.post(hook["path"].as_str().unwrap(), json!({})).await.refused(404, "not_found");
    let cx = &h.platform.cx;
    let owner = domain::ids::Owner::new("local").unwrap();
    let left = shared::blobs::BlobKey::listed(&owner, &format!("projects/{project}/"));
    assert_eq!(cx.blobs.list(&left, None).await.unwrap(), [""; 0]);
    let id = project.parse().unwrap();
    assert_eq!(cx.store.living_documents(&owner, id).await.unwrap().len(), 0);
    assert_eq!(cx.store.changelog(&owner, id).await.unwrap().version, 0);
}
