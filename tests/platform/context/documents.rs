//! Context documents over HTTP: every route, every refusal, and concurrent writes.

use futures::future::join_all;
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use tests::made;
use tests::{Answer, Harness, send};

const AUTHENTICATION: &str = "\
# Context Document

## Metadata
- Created: 2026-01-11T10:00:00Z
- Last Updated: 2026-01-11T12:30:00Z
- Task: Implement user authentication

## PLAN

### Decisions
- Use JWT for session management
- Store refresh tokens
  in httpOnly cookies
";

const HERE: &str = "/projects/default/context";

async fn put(h: &Harness, path: &str, text: &str, version: Option<u64>) -> Answer {
    let mut request = h.request(Method::PUT, path).header("content-type", "text/markdown");
    if let Some(version) = version {
        request = request.header("if-match", format!("\"{version}\""));
    }
    send(request.body(text.to_owned())).await
}

fn versions(list: &Value) -> Vec<(u64, &str)> {
    let rows = list["data"].as_array().unwrap().iter();
    rows.map(|row| (row["version"].as_u64().unwrap(), row["cause"].as_str().unwrap())).collect()
}

#[tokio::test]
async fn a_document_is_written_read_listed_and_restored() {
    let h = Harness::start().await;
    let markdown = format!("{HERE}.md");
    h.get(HERE).await.refused(404, "not_found");
    h.get(&markdown).await.refused(404, "not_found");

    put(&h, &markdown, AUTHENTICATION, Some(1)).await.refused(404, "not_found");
    let made = put(&h, &markdown, AUTHENTICATION, Some(0)).await;
    assert_eq!(made.headers["etag"], "\"1\"");
    let made = made.expect(201);
    assert_eq!(
        [&made["workflow"], &made["task"], &made["version"], &made["created_at"]],
        [
            &json!("default"),
            &json!("Implement user authentication"),
            &json!(1),
            &json!("2026-01-11T10:00:00Z")
        ]
    );
    let decisions = json!(["Use JWT for session management", "Store refresh tokens\nin httpOnly cookies"]);
    assert_eq!(made["sections"][0]["decisions"], decisions);
    assert_eq!(h.get(HERE).await.expect(200), made);
    let read = h.get(&markdown).await;
    assert_eq!(
        (&read.headers["etag"], &read.headers["content-type"]),
        (&"\"1\"".parse().unwrap(), &"text/markdown; charset=utf-8".parse().unwrap())
    );
    assert_eq!(read.expect(200), AUTHENTICATION);

    let longer = format!("{AUTHENTICATION}\n---\n\n## ACT\n\n### Progress\n- Created auth middleware\n");
    assert_eq!(put(&h, &markdown, &longer, Some(1)).await.expect(200)["version"], 2);
    let conflict = put(&h, &markdown, AUTHENTICATION, Some(1)).await.refused(409, "version_conflict");
    assert_eq!(conflict["current"]["version"], 2);
    // Version 0 means no document, so a client that has seen no document overwrites nothing.
    put(&h, &markdown, AUTHENTICATION, Some(0)).await.refused(409, "version_conflict");
    // The same content again makes no new version.
    assert_eq!(put(&h, &markdown, &longer, None).await.expect(200)["version"], 2);
    assert_eq!(h.get(&markdown).await.expect(200), longer.as_str());
    assert_eq!(h.get(&format!("{markdown}?version=1")).await.expect(200), AUTHENTICATION);
    assert_eq!(h.get(&format!("{HERE}/versions/1")).await.expect(200), made);

    let restored = h.post(&format!("{HERE}/versions/1/restore"), json!({})).await.expect(200);
    assert_eq!((&restored["version"], &restored["sections"]), (&json!(3), &made["sections"]));
    let request = h.request(Method::POST, &format!("{HERE}/versions/2/restore")).header("if-match", "\"2\"");
    send(request).await.refused(409, "version_conflict");

    let list = h.get(&format!("{HERE}/versions")).await.expect(200);
    assert_eq!(versions(&list), [(3, "restored"), (2, "imported"), (1, "imported")]);
    assert_eq!(list["data"][2]["bytes"], AUTHENTICATION.len());
    let first = h.get(&format!("{HERE}/versions?limit=2")).await.expect(200);
    assert_eq!(versions(&first), [(3, "restored"), (2, "imported")]);
    let rest = format!("{HERE}/versions?limit=2&cursor={}", first["next_cursor"].as_str().unwrap());
    assert_eq!(versions(&h.get(&rest).await.expect(200)), [(1, "imported")]);
}

#[tokio::test]
async fn workflows_have_documents_of_their_own() {
    let h = Harness::start().await;
    let project = h.post("/projects", json!({"name": "p"})).await.expect(201);
    let here = format!("/projects/{}/context", project["project_id"].as_str().unwrap());
    for (workflow, task) in [("?workflow=b", "B"), ("", "none"), ("?workflow=A.1", "A")] {
        let text = format!("# Context Document\n\n## Metadata\n- Task: {task}\n");
        put(&h, &format!("{here}.md{workflow}"), &text, None).await.expect(201);
    }
    let tasks = h.get(&format!("{here}/workflows")).await.expect(200);
    let tasks: Vec<_> =
        tasks["data"].as_array().unwrap().iter().map(|row| (&row["workflow"], &row["task"])).collect();
    assert_eq!(
        tasks,
        [(&json!("A.1"), &json!("A")), (&json!("b"), &json!("B")), (&json!("default"), &json!("none"))]
    );
    assert_eq!(h.get(&format!("{here}?workflow=default")).await.expect(200)["task"], "none");
    h.get(HERE).await.refused(404, "not_found");

    // They are deleted with their project, including the versions.
    assert_eq!(h.delete(&format!("/projects/{}", project["project_id"].as_str().unwrap())).await.status, 204);
    h.get(&format!("{here}?workflow=b")).await.refused(404, "not_found");
    let (cx, owner) = (&h.platform.cx, domain::ids::Owner::new("local").unwrap());
    let project = project["project_id"].as_str().unwrap().parse().unwrap();
    let left = cx.store.document_versions(&owner, project, &"b".parse().unwrap(), None, 10).await.unwrap();
    assert!(
        left.items.is_empty()
            && cx.store.documents(&owner, project, None, 10).await.unwrap().items.is_empty()
    );
}

#[tokio::test]
async fn refusals_name_the_field_and_the_limit() {
    let h = Harness::start().await;
    let check = async |answer: Answer, field: &str, message: &str| {
        let problem = answer.refused(400, "invalid_input");
        assert_eq!(
            (&problem["errors"][0]["field"], &problem["errors"][0]["message"]),
            (&json!(field), &json!(message))
        );
    };
    let markdown = format!("{HERE}.md");
    let place = "must be 1 to 64 letters, digits, `.`, `_` or `-`, and begin with a letter or digit";
    for workflow in ["", ".a", "a b", "a/b", &"a".repeat(65)] {
        check(h.get(&format!("{HERE}?workflow={workflow}")).await, "workflow", place).await;
    }
    check(
        put(&h, &markdown, "Hello", None).await,
        "context.md",
        "line 1: it must begin with `# Context Document` or `# Context: title`",
    )
    .await;
    check(
        put(&h, &markdown, "# Context Document\n## PLAN\n### Ideas\n", None).await,
        "context.md",
        "line 3: `### Ideas` is not expected here",
    )
    .await;
    let long = format!("# Context Document\n## PLAN\n### Notes\n- {}\n", "x".repeat(2_001));
    check(put(&h, &markdown, &long, None).await, "PLAN.notes[0]", "must be 1 to 2000 characters, is 2001")
        .await;
    let large = format!("# Context Document\n{}", "\n".repeat(256 * 1024));
    check(
        put(&h, &markdown, &large, None).await,
        "context.md",
        "it may have at most 262144 bytes (256 KiB), it has 262163",
    )
    .await;
    let latin = h.request(Method::PUT, &markdown).body(b"# Context: \xe9".to_vec());
    check(send(latin).await, "context.md", "must be text in UTF-8").await;
    let unread = h.request(Method::PUT, &markdown).header("if-match", "latest").body(AUTHENTICATION);
    check(send(unread).await, "If-Match", "must be the version that you read, for example \"3\"").await;
    put(&h, &format!("{markdown}?workflow=new"), AUTHENTICATION, Some(1)).await.refused(404, "not_found");
    h.get(&format!("{HERE}/versions/7")).await.refused(404, "not_found");
    h.get(&format!("{HERE}/versions/x")).await.refused(404, "not_found");
    h.get("/projects/prj_x/context").await.refused(404, "not_found");
    h.get("/projects/prj_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c/context").await.refused(404, "not_found");
}

#[tokio::test]
async fn a_foreign_projects_document_is_not_found() {
    let h = Harness::start().await;
    let foreign = made::foreign(&h).await;
    h.get(&format!("{}/context", foreign.project)).await.refused(404, "not_found");
    put(&h, &format!("{}/context.md", foreign.project), AUTHENTICATION, None).await.refused(404, "not_found");
}

#[tokio::test]
async fn a_document_of_256_kib_is_kept_whole() {
    let h = Harness::start().await;
    let mut text = String::from(AUTHENTICATION);
    text.push_str("\n---\n\n## ACT\n\n### Progress\n");
    for i in 0.. {
        let item = format!("- {i:06} {}\n", "é".repeat(900));
        if text.len() + item.len() > 256 * 1024 {
            break;
        }
        text.push_str(&item);
    }
    let markdown = format!("{HERE}.md");
    put(&h, &markdown, &text, None).await.expect(201);
    assert_eq!(h.get(&markdown).await.expect(200), text.as_str());
}

#[tokio::test]
async fn one_of_many_edits_of_the_same_version_wins() {
    let h = Harness::with(PlatformConfig::in_memory()).await;
    let markdown = format!("{HERE}.md");
    put(&h, &markdown, AUTHENTICATION, None).await.expect(201);
    let edits = (0..10).map(|i| {
        let text = AUTHENTICATION.replace("Use JWT", &format!("Use {i}"));
        let (h, markdown) = (&h, &markdown);
        async move { put(h, markdown, &text, Some(1)).await.status }
    });
    let mut statuses = join_all(edits).await;
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409, 409, 409, 409, 409, 409, 409, 409, 409]);
}

#[tokio::test]
async fn a_repeated_restore_acts_once() {
    let h = Harness::start().await;
    let markdown = format!("{HERE}.md");
    put(&h, &markdown, AUTHENTICATION, None).await.expect(201);
    let other = AUTHENTICATION.replace("JWT", "sessions");
    put(&h, &markdown, &other, None).await.expect(200);
    let restore = format!("{HERE}/versions/1/restore");
    let first = h.post_once(&restore, "k", json!({})).await.expect(200);
    put(&h, &markdown, &other, None).await.expect(200);
    let again = h.post_once(&restore, "k", json!({})).await;
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert_eq!(again.expect(200), first);
    assert_eq!(h.get(HERE).await.expect(200)["version"], 4);
}
