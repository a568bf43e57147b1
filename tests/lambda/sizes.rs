//! Bodies and responses at and above Lambda's limits: bodies arrive as base64 within an event of 6 MiB.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use domain::ids::{Owner, ProjectId};
use serde_json::{Value, json};
use shared::request::limits::MAX_BODY_BYTES;
use themes::files;

use crate::bed::Bed;
use crate::lambda::Lambda;
use crate::payload::{post, request};
use crate::reply::{Http, MOST};

/// A request as API Gateway sends it if it treats all types as binary.
fn with_body(method: &str, path: &str, kind: &str, body: &[u8]) -> Value {
    let mut sent = request(method, path, "local");
    sent["headers"]["Content-Type"] = kind.into();
    sent["multiValueHeaders"]["Content-Type"] = json!([kind]);
    sent["body"] = BASE64_STANDARD.encode(body).into();
    sent["isBase64Encoded"] = true.into();
    sent
}

async fn ask(lambda: &mut Lambda, method: &str, path: &str) -> Http {
    lambda.http(&request(method, path, "local")).await
}

#[tokio::test]
async fn the_largest_allowed_body_fits_into_an_event() {
    let bed = Bed::new().await;
    let mut themes = bed.lambda("theme-lookup").await;
    let content: Vec<u8> = (0..=255).cycle().take(MAX_BODY_BYTES).collect();
    let path = "/projects/default/files/assets/large.bin";
    let sent = with_body("PUT", path, "application/octet-stream", &content);
    // Real headers and contexts may be larger than here: API Gateway accepts 10 KiB of headers and includes them twice.
    let length = sent.to_string().len();
    assert!(length + 64 * 1024 < MOST, "{length}");
    assert_eq!(themes.http(&sent).await.status, 201);
    assert_eq!(ask(&mut themes, "GET", path).await.body, content);

    let larger = [&content[..], b"x"].concat();
    let refused = themes.http(&with_body("PUT", path, "application/octet-stream", &larger)).await;
    let problem = refused.refused(413, "payload_too_large");
    assert!(problem["detail"].as_str().unwrap().contains(&MAX_BODY_BYTES.to_string()), "{problem:#}");
}

#[tokio::test]
async fn files_that_no_buffered_answer_holds_are_read() {
    let bed = Bed::new().await;
    let mut themes = bed.lambda("theme-lookup").await;
    let (cx, owner) = (&bed.server.platform.cx, Owner::new("local").unwrap());
    let path = "assets/large.bin";
    let content: Bytes = (0..=255).cycle().take(2 * MOST).collect();
    files::put(cx, &owner, ProjectId::DEFAULT, path, None, content.clone()).await.unwrap();
    let read = ask(&mut themes, "GET", &format!("/projects/default/files/{path}")).await;
    assert_eq!((read.status, read.body.len()), (200, content.len()));
    assert_eq!(read.body, content);
}

#[tokio::test]
async fn lists_and_tools_may_answer_at_length() {
    let bed = Bed::new().await;
    let agent = bed.server.agent().await;

    let instructions = "灯".repeat(20_000);
    let action = json!({
        "title": "Report", "description": "", "priority": "low",
        "task_config": {"instructions": instructions, "expected_output": "A report"},
    });
    for _ in 0..120 {
        bed.server.post(&format!("/agents/{agent}/actions"), action.clone()).await.expect(201);
    }
    let mut actions = bed.lambda("action-define").await;
    let mut list = request("GET", "/actions", "local");
    list["queryStringParameters"] = json!({"limit": "200"});
    list["multiValueQueryStringParameters"] = json!({"limit": ["200"]});
    let listed = actions.http(&list).await;
    assert!(listed.body.len() > MOST, "{}", listed.body.len());
    assert_eq!(listed.expect(200)["data"].as_array().map(Vec::len), Some(120));

    let content = "\"lamp oil\"\n".repeat(300_000);
    let asset = json!({"title": "Prices", "asset_type": "document", "content": content});
    let asset = bed.server.post(&format!("/agents/{agent}/assets"), asset).await.expect(201);
    let mut mcp = bed.lambda("mcp").await;
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "resources/read",
        "params": {"uri": format!("lamplighter://assets/{}", asset["asset_id"].as_str().unwrap())},
    });
    let mut sent = post("/mcp", "local", &call);
    for (name, value) in
        [("Accept", "application/json, text/event-stream"), ("Mcp-Protocol-Version", "2025-11-25")]
    {
        sent["headers"][name] = value.into();
        sent["multiValueHeaders"][name] = json!([value]);
    }
    let read = mcp.http(&sent).await.expect(200);
    assert_eq!(
        read["result"]["contents"][0]["text"].as_str(),
        Some(content.as_str()),
        "{:.300}",
        read.to_string()
    );
}
