//! Hostile MCP clients: unknown tools, wrong and huge arguments, ids of another owner. The tests cover every tool of the table,
//! including tools that are added later.

use domain::tools::{LOOP, MCP, ToolDef};
use reqwest::Method;
use serde_json::{Map, Value, json};
use tests::made;
use tests::mcp::client;
use tests::{Harness, send};

fn properties(def: &ToolDef) -> Map<String, Value> {
    (def.input)()["properties"].as_object().unwrap().clone()
}

fn is_required(def: &ToolDef, name: &str) -> bool {
    (def.input)()["required"].as_array().unwrap().contains(&json!(name))
}

#[tokio::test]
async fn tools_of_the_agent_loop_and_unknown_tools_are_refused() {
    let h = Harness::start().await;
    let c = client(&h);
    let of_loop = LOOP.iter().map(|def| def.name).filter(|name| MCP.iter().all(|def| def.name != *name));
    let long = "x".repeat(100_000);
    for name in
        of_loop.chain(["", " read_asset", "READ_ASSET", "approve", "../read_asset", "read_asset\0", &long])
    {
        let error = c.error("tools/call", json!({"name": name, "arguments": {}})).await;
        assert_eq!(error["code"], -32602, "{error:#}");
    }
}

#[tokio::test]
async fn wrong_arguments_do_not_break_a_tool() {
    let h = Harness::start().await;
    let c = client(&h);
    let values = [
        json!(null),
        json!(true),
        json!(-1),
        json!(u64::MAX),
        json!(1e308),
        json!([]),
        json!([[[1]]]),
        json!({}),
        json!({"at": {"at": {}}}),
        json!(""),
        json!("\0"),
        json!("\u{202e}\u{feff} ../../etc/passwd"),
        json!("x".repeat(200_000)),
        json!(vec!["x"; 10_000]),
    ];
    for def in MCP {
        for value in &values {
            let arguments: Map<String, Value> =
                properties(def).into_iter().map(|(name, _)| (name, value.clone())).collect();
            let answer = c.call(def.name, json!(arguments)).await;
            // No argument may cause an internal error of the server.
            let text = answer["content"][0]["text"].as_str().unwrap();
            assert!(!text.contains("internal"), "{def:?} {text}");
            // A short text is valid for a tool that takes only texts. Null is valid for a tool that requires no argument.
            let is_short = value.as_str().is_some_and(|text| text.len() < 1_000);
            let is_absent = value.is_null() && properties(def).keys().all(|name| !is_required(def, name));
            assert!(answer["isError"] == true || is_short || is_absent, "{def:?} {value}: {text}");
        }
        let failure = c.fails(def.name, json!({"__proto__": {"admin": true}, "constructor": 1})).await;
        assert!(
            failure.contains("is not a field here") || failure.starts_with("Missing required"),
            "{failure}"
        );
    }
}

#[tokio::test]
async fn messages_that_are_not_calls_are_refused() {
    let h = Harness::start().await;
    let deep = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    let call = |arguments: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"parse_mode","arguments":{arguments}}}}}"#
        )
    };
    for body in [
        String::new(),
        "null".to_owned(),
        "[]".to_owned(),
        "{".to_owned(),
        call("7"),
        call("[]"),
        call("\"x\""),
        call(&format!("{{\"prompt\":{}}}", deep(100_000))),
        r#"{"jsonrpc":"2.0","id":{},"method":"tools/call"}"#.to_owned(),
        r#"{"jsonrpc":"1.0","id":1,"method":"tools/list"}"#.to_owned(),
    ] {
        let request = h.request(Method::POST, "/mcp").header("accept", "application/json, text/event-stream");
        let request =
            request.header("content-type", "application/json").header("mcp-protocol-version", "2025-11-25");
        let answer = send(request.body(body.clone())).await;
        let start: String = body.chars().take(120).collect();
        let is_error = answer.status == 200 && answer.body["error"]["code"].is_i64();
        assert!(
            (400..500).contains(&answer.status) || is_error,
            "{start}: {} {:#}",
            answer.status,
            answer.body
        );
    }
}

/// Each id of another owner is tried alone and together with the others, in every tool that takes it.
#[tokio::test]
async fn ids_of_another_owner_give_no_access() {
    let h = Harness::start().await;
    let c = client(&h);
    let foreign = made::foreign(&h).await;
    let id = |path: &str| json!(path.rsplit('/').next().unwrap());
    let theirs = [
        ("agent_id", id(&foreign.agent)),
        ("action_id", id(&foreign.action)),
        ("asset_id", id(&foreign.asset)),
        ("proposal_id", id(&foreign.proposal)),
        ("project", id(&foreign.project)),
        ("run_id", json!("run_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c")),
        ("fact_id", json!("fct_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c")),
    ];
    let other = |name: &str| match name {
        "mode" => json!("ACT"),
        "event" => json!("agent_start"),
        "version" => json!(1),
        "at" => json!("2026-11-20T08:00:00Z"),
        "id" => json!("6dcb09b5b57875f334f61aebed695e2e4193db5e"),
        "schedule" => json!({"every": "1h"}),
        _ => json!("PLAN x"),
    };
    let mut tried = 0;
    for def in MCP {
        let names: Vec<String> = properties(def).keys().cloned().collect();
        for (tested, value) in theirs.iter().filter(|(name, _)| names.iter().any(|taken| taken == name)) {
            let mut arguments = Map::new();
            for name in names.iter().filter(|name| is_required(def, name)) {
                let their = theirs.iter().find(|(id, _)| id == name).map(|(_, value)| value.clone());
                arguments.insert(name.clone(), their.unwrap_or_else(|| other(name)));
            }
            arguments.insert((*tested).to_owned(), value.clone());
            let answer = c.call(def.name, json!(arguments)).await;
            let text = answer["content"][0]["text"].as_str().unwrap();
            tried += 1;
            match (def.name, *tested) {
                // The writer of a log chooses its id. So the same id of another owner is another log.
                ("append_agent_log", "agent_id") => {}
                ("read_agent_log", _) => assert!(!text.contains("Theirs"), "{text}"),
                _ => {
                    assert_eq!(answer["isError"], true, "{def:?} {tested}: {text}");
                    assert!(text.starts_with("there is no such "), "{def:?} {tested}: {text}");
                }
            }
        }
    }
    assert!(tried >= 25, "{tried}");
    for uri in [
        format!("lamplighter://assets/{}", foreign.asset.rsplit('/').next().unwrap()),
        format!("lamplighter://projects/{}/context/default.md", foreign.project.rsplit('/').next().unwrap()),
    ] {
        let error = c.error("resources/read", json!({"uri": uri})).await;
        assert!(error["message"].as_str().unwrap().starts_with("there is no resource"), "{error:#}");
    }
}
