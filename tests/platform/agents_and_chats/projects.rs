//! Projects: every route, every refusal, and the project that always exists.

use reqwest::Method;
use serde_json::{Value, json};
use tests::made;
use tests::{Harness, send};

const NIL: &str = "prj_00000000000000000000000000000000";

async fn made(h: &Harness, name: &str) -> String {
    let project = h.post("/projects", json!({ "name": name })).await.expect(201);
    format!("/projects/{}", project["project_id"].as_str().unwrap())
}

#[tokio::test]
async fn a_project_is_made_read_listed_changed_and_deleted() {
    let h = Harness::start().await;
    let answer = h.post("/projects", json!({"name": "Spring"})).await;
    let (location, etag) = (answer.headers["location"].clone(), answer.headers["etag"].clone());
    let made = answer.expect(201);
    assert_eq!((etag.to_str().unwrap(), &made["hook_filter"]), ("\"1\"", &json!("all")));
    let path = location.to_str().unwrap();
    assert_eq!(h.get(path).await.expect(200), made);

    let changed = h.patch(path, json!({"name": "Summer", "hook_filter": "all"})).await.expect(200);
    assert_eq!(
        (&changed["name"], &changed["hook_filter"], &changed["version"]),
        (&json!("Summer"), &json!("all"), &json!(2))
    );
    let list = h.get("/projects").await.expect(200);
    assert_eq!(list["data"].as_array().unwrap().len(), 2);
    assert_eq!((&list["data"][0], &list["data"][1]["project_id"]), (&changed, &json!(NIL)));

    assert_eq!(h.delete(path).await.status, 204);
    h.get(path).await.refused(404, "not_found");
    h.patch(path, json!({"name": "x"})).await.refused(404, "not_found");
    h.delete(path).await.refused(404, "not_found");
}

#[tokio::test]
async fn the_default_project_is_always_there() {
    let h = Harness::start().await;
    let new = h.get("/projects/default").await.expect(200);
    assert_eq!(
        [&new["project_id"], &new["name"], &new["version"]],
        [&json!(NIL), &json!("Default"), &json!(0)]
    );
    assert_eq!(h.get(&format!("/projects/{NIL}")).await.expect(200), new);

    // The first change stores it. An edit of the unstored version is refused like any other.
    let change = |version: &str, name: &str| {
        let request = h.request(Method::PATCH, "/projects/default").header("if-match", version);
        send(request.json(&json!({ "name": name })))
    };
    assert_eq!(change("\"0\"", "Mine").await.expect(200)["version"], 1);
    assert_eq!(change("\"0\"", "Other").await.refused(409, "version_conflict")["current"]["name"], "Mine");
    let names = |list: Value| -> Vec<Value> {
        list["data"].as_array().unwrap().iter().map(|project| project["name"].clone()).collect()
    };
    assert_eq!(names(h.get("/projects").await.expect(200)), ["Mine"]);

    assert_eq!(h.delete("/projects/default").await.status, 204);
    assert_eq!(h.get("/projects/default").await.expect(200), new);
    assert_eq!(h.delete("/projects/default").await.status, 204);
}

#[tokio::test]
async fn a_list_ends_with_the_default_project() {
    let h = Harness::start().await;
    for name in ["a", "b", "c"] {
        made(&h, name).await;
    }
    for limit in 1..=5 {
        let (mut seen, mut path) = (Vec::new(), format!("/projects?limit={limit}"));
        loop {
            let page = h.get(&path).await.expect(200);
            seen.extend(page["data"].as_array().unwrap().iter().map(|project| project["name"].clone()));
            let Some(cursor) = page["next_cursor"].as_str() else { break };
            path = format!("/projects?limit={limit}&cursor={cursor}");
        }
        assert_eq!(seen, ["c", "b", "a", "Default"], "{limit} a page");
    }
}

#[tokio::test]
async fn errors_in_a_project_are_named() {
    let h = Harness::start().await;
    let path = made(&h, "a").await;
    for (body, field) in [
        (json!({}), "name"),
        (json!({"name": "n".repeat(201)}), "name"),
        (json!({"name": "n", "hook_filter": []}), "hook_filter"),
        (json!({"name": "n", "hook_filter": ["ok", "no good"]}), "hook_filter[1]"),
        (json!({"name": "n", "hook_filter": 7}), "hook_filter"),
    ] {
        let problem = h.post("/projects", body.clone()).await.refused(400, "invalid_input");
        assert_eq!(problem["errors"][0]["field"], field);
        if field != "name" || body["name"].is_string() {
            let problem = h.patch(&path, body).await.refused(400, "invalid_input");
            assert_eq!(problem["errors"][0]["field"], field);
        }
    }
    h.get("/projects/prj_nothing").await.refused(404, "not_found");
    h.get("/projects?limit=0").await.refused(400, "invalid_input");
}

#[tokio::test]
async fn another_owners_project_is_not_found() {
    let h = Harness::start().await;
    let foreign = made::foreign(&h).await.project;
    h.get(&foreign).await.refused(404, "not_found");
    h.patch(&foreign, json!({"name": "mine"})).await.refused(404, "not_found");
    h.delete(&foreign).await.refused(404, "not_found");
    assert_eq!(h.get("/projects").await.expect(200)["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_repeated_call_makes_one_project() {
    let h = Harness::start().await;
    let first = h.post_once("/projects", "k", json!({"name": "Once"})).await.expect(201);
    let again = h.post_once("/projects", "k", json!({"name": "Once"})).await;
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert_eq!(again.expect(201), first);
    h.post_once("/projects", "k", json!({"name": "Twice"})).await.refused(422, "idempotency_mismatch");
    assert_eq!(h.get("/projects").await.expect(200)["data"].as_array().unwrap().len(), 2);
}
