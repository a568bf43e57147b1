//! Agents: every route, every refusal.

use serde_json::json;
use tests::Harness;

#[tokio::test]
async fn an_agent_is_made_read_listed_changed_and_deleted() {
    let h = Harness::start().await;
    let made = h
        .post(
            "/agents",
            json!({
                "name": "Watch", "goal": "A research agent that watches", "success_criteria": "One page",
                "instructions": "Be brief.", "model_tier": "fast", "budget": {"per_run_micros": 5000}
            }),
        )
        .await;
    assert_eq!(made.headers["etag"], "\"1\"");
    let location = made.headers["location"].to_str().unwrap().to_owned();
    let made = made.expect(201);
    assert_eq!(made["timeline"], "Ongoing");
    assert_eq!(
        made["metrics"],
        json!({"assets": 0, "actions_completed": 0, "actions_failed": 0, "cost_micros": 0})
    );

    assert_eq!(h.get(&location).await.expect(200), made);
    let list = h.get("/agents").await.expect(200);
    assert_eq!(list, json!({"data": [made], "has_more": false}));

    let mut changed =
        h.patch(&location, json!({"status": "paused", "name": "Night watch"})).await.expect(200);
    assert_eq!(changed.as_object_mut().unwrap().remove("withdrawn_approvals"), Some(json!([])));
    assert_eq!(changed.as_object_mut().unwrap().remove("effects"), Some(json!(["paused"])));
    assert_eq!(
        (&changed["status"], &changed["name"], &changed["version"]),
        (&json!("paused"), &json!("Night watch"), &json!(2))
    );
    assert_eq!(h.get("/agents?status=active").await.expect(200)["data"], json!([]));
    assert_eq!(h.get("/agents?status=paused").await.expect(200)["data"], json!([changed]));

    assert_eq!(h.delete(&location).await.status, 204);
    h.get(&location).await.refused(404, "not_found");
    h.delete(&location).await.refused(404, "not_found");
    assert_eq!(h.get("/agents").await.expect(200)["data"], json!([]));
}

#[tokio::test]
async fn bad_input_is_refused_by_name() {
    let h = Harness::start().await;
    let problem =
        h.post("/agents", json!({"name": "", "goal": "g".repeat(2001)})).await.refused(400, "invalid_input");
    assert_eq!(
        problem["errors"],
        json!([
            {"field": "name", "message": "is required (1 to 200 characters)"},
            {"field": "goal", "message": "must be 1 to 2000 characters, is 2001"},
        ])
    );
    let problem =
        h.post("/agents", json!({"name": "a", "goal": "b", "budget": {"per_run_micros": "much"}})).await;
    assert_eq!(problem.refused(400, "invalid_input")["errors"][0]["field"], "budget.per_run_micros");
    h.get("/agents?limit=0").await.refused(400, "invalid_input");
    h.get("/agents?limit=x").await.refused(400, "invalid_input");
    h.get("/agents?cursor=x").await.refused(400, "invalid_input");
    h.get("/agents/agt_nothing").await.refused(404, "not_found");
    h.get("/nowhere").await.refused(404, "not_found");
    let wrong_method = tests::send(h.request(reqwest::Method::PUT, "/agents")).await;
    wrong_method.refused(405, "method_not_allowed");
    let malformed =
        h.request(reqwest::Method::POST, "/agents").header("content-type", "application/json").body("{");
    tests::send(malformed).await.refused(400, "malformed_json");
    let no_type = h.request(reqwest::Method::POST, "/agents").body("{}");
    tests::send(no_type).await.refused(415, "unsupported_media_type");
}

#[tokio::test]
async fn an_edit_of_another_version_is_a_conflict() {
    let h = Harness::start().await;
    let path = format!("/agents/{}", h.agent().await);
    let edit = |version: &str, name: &str| {
        tests::send(
            h.request(reqwest::Method::PATCH, &path).header("if-match", version).json(&json!({"name": name})),
        )
    };
    assert_eq!(edit("\"1\"", "first").await.expect(200)["version"], 2);
    let problem = edit("\"1\"", "second").await.refused(409, "version_conflict");
    assert_eq!(problem["current"]["name"], "first");
    edit("x", "third").await.refused(400, "invalid_input");
}

#[tokio::test]
async fn a_repeated_call_acts_once() {
    let h = Harness::start().await;
    let body = json!({"name": "Once", "goal": "A careful agent that acts once"});
    let first = h.post_once("/agents", "k1", body.clone()).await;
    let again = h.post_once("/agents", "k1", body.clone()).await;
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert_eq!(again.headers["location"], first.headers["location"]);
    assert_eq!(first.expect(201), again.expect(201));
    h.post_once("/agents", "k1", json!({"name": "Else", "goal": "x"}))
        .await
        .refused(422, "idempotency_mismatch");
    assert_eq!(h.get("/agents").await.expect(200)["data"].as_array().unwrap().len(), 1);
    h.post_once("/agents", &"k".repeat(256), body).await.refused(400, "invalid_input");
}

#[tokio::test]
async fn a_list_is_paged_to_its_end() {
    let h = Harness::start().await;
    let mut made = Vec::new();
    for _ in 0..5 {
        made.push(h.agent().await);
    }
    made.reverse();
    let (mut seen, mut path) = (Vec::new(), "/agents?limit=2".to_owned());
    loop {
        let page = h.get(&path).await.expect(200);
        for agent in page["data"].as_array().unwrap() {
            seen.push(agent["agent_id"].as_str().unwrap().to_owned());
        }
        assert_eq!(page["has_more"], page["next_cursor"].is_string());
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/agents?limit=2&cursor={cursor}");
    }
    assert_eq!(seen, made);
}
