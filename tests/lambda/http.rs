//! Requests as API Gateway sends them: stages, encodings and owners.

use std::collections::HashMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use domain::ids::ProjectId;
use serde_json::{Value, json};

use crate::bed::Bed;
use crate::payload::{action, payload, post, request};

const NOBODYS: &str = "agt_0193f2a7c5e7d3a9b1f4c6d8e0a2b4c0";

#[tokio::test]
async fn the_stage_is_not_part_of_the_route() {
    let bed = Bed::new().await;
    let mut catalog = bed.lambda("catalog").await;
    let mut agents = bed.lambda("agents").await;
    let own_domain = "api.example.com";
    let gateway = "a1b2c3d4e5.execute-api.eu-central-1.amazonaws.com";
    for (domain, stage, gateway_path) in [
        (gateway, "live", "/live"),
        (gateway, "prod", "/prod"),
        (own_domain, "prod", ""),
        (gateway, "$default", ""),
    ] {
        let staged = |path: &str| {
            let mut request = request("GET", path, "local");
            request["requestContext"]["stage"] = stage.into();
            request["requestContext"]["path"] = format!("{gateway_path}{path}").into();
            request["requestContext"]["domainName"] = domain.into();
            request["headers"]["Host"] = domain.into();
            request["multiValueHeaders"]["Host"] = json!([domain]);
            request
        };
        assert_eq!(catalog.http(&staged("/health")).await.expect(200)["status"], "ok");
        assert_eq!(agents.http(&staged("/agents")).await.expect(200)["data"], json!([]));
        catalog.http(&staged("/prod/health")).await.refused(404, "not_found");
    }
}

/// A client resolves `Location` against the address that it called.
#[tokio::test]
async fn a_location_leads_back_through_stage_and_base_path() {
    let bed = Bed::new().await;
    let mut agents = bed.lambda("agents").await;
    let input = json!({"name": "Watch", "goal": "An agent"});
    // What the event has before the route, and what the client sees before it.
    for (domain, in_event, seen) in [
        ("a1b2c3d4e5.execute-api.eu-central-1.amazonaws.com", "", "/live"),
        ("api.example.com", "", ""),
        ("api.example.com", "/v1", "/v1"),
        ("api.example.com", "/agents", "/agents"),
    ] {
        let mut request = post("/agents", "local", &input);
        request["headers"]["Idempotency-Key"] = format!("once{seen}").into();
        request["multiValueHeaders"]["Idempotency-Key"] = json!([format!("once{seen}")]);
        request["path"] = format!("{in_event}/agents").into();
        request["requestContext"]["path"] = format!("{seen}/agents").into();
        request["requestContext"]["domainName"] = domain.into();
        let made = agents.http(&request).await;
        let place = format!("{seen}/agents/{}", made.expect(201)["agent_id"].as_str().unwrap());
        assert_eq!(made.headers["location"], place.as_str(), "{domain}{seen}");
        let again = agents.http(&request).await;
        assert_eq!(
            (&again.headers["idempotent-replayed"], &again.headers["location"]),
            (&"true".parse().unwrap(), &made.headers["location"])
        );
    }
}

/// A path in an answer's text is one that the client can call: it has the stage or the base path.
#[tokio::test]
async fn a_path_in_a_text_leads_back_through_stage_and_base_path() {
    let bed = Bed::new().await;
    let agent = bed.server.agent().await;
    let (mut first, mut second) = (bed.lambda("agent-chat").await, bed.lambda("agent-chat").await);
    let mut mcp = bed.lambda("mcp").await;
    for (in_event, seen) in [("", "/live"), ("/v1", "/v1"), ("", "")] {
        let below = |path: &str, key: &str, body: &Value| {
            let mut request = post(path, "local", body);
            let resource = if path == "/mcp" { path } else { "/agents/{agent_id}/chat" };
            request["resource"] = resource.into();
            request["requestContext"]["resourcePath"] = resource.into();
            request["path"] = format!("{in_event}{path}").into();
            request["requestContext"]["path"] = format!("{seen}{path}").into();
            for (name, value) in
                [("Idempotency-Key", key), ("Accept", "application/json, text/event-stream;q=0.5")]
            {
                request["headers"][name] = value.into();
                request["multiValueHeaders"][name] = json!([value]);
            }
            request
        };
        let chat = format!("/agents/{agent}/chat");
        let one = format!("one{seen}");
        let mut turn = below(&chat, &one, &json!({"message": "Hello"}));
        for headers in ["headers", "multiValueHeaders"] {
            turn[headers].as_object_mut().unwrap().remove("Accept");
        }
        bed.model.hold();
        let mut stream = first.invoke(&turn).await.streamed().await;
        let run = stream.headers["location"].to_str().unwrap().to_owned();
        assert!(run.starts_with(&format!("{seen}/runs/run_")), "{run}");
        stream.until("The lamp ").await;
        let own = run.strip_prefix(seen).unwrap();
        let chat_id = bed.server.get(own).await.expect(200)["chat_id"].clone();

        let in_flight = second.http(&turn).await.refused(409, "idempotency_in_flight");
        let busy = json!({"message": "Hello", "chat_id": chat_id});
        let busy = second.http(&below(&chat, &format!("two{seen}"), &busy)).await;
        for problem in [in_flight, busy.refused(409, "turn_in_progress")] {
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.ends_with(&format!(" at {run}/events")), "{detail}");
        }
        bed.model.release();
        stream.rest().await;

        let mut call = async |tool: &str| {
            let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": tool, "arguments": if tool == "lookup_theme" { json!({"request": "the header"}) } else { json!({}) }}});
            let mut sent = below("/mcp", &format!("{tool}{seen}"), &call);
            let accept = "application/json, text/event-stream";
            for (name, value) in [("Accept", accept), ("Mcp-Protocol-Version", "2025-11-25")] {
                sent["headers"][name] = value.into();
                sent["multiValueHeaders"][name] = json!([value]);
            }
            mcp.http(&sent).await.expect(200)["result"].clone()
        };
        let read = call("read_context").await;
        assert_eq!(
            read["structuredContent"]["contextFilePath"],
            json!(format!("{seen}/projects/default/context.md")),
            "{read:#}"
        );
        let looked = call("lookup_theme").await;
        let text = looked["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(&format!("POST {seen}/projects/{}/import ", ProjectId::DEFAULT)), "{text}");
    }
}

#[tokio::test]
async fn the_base_path_of_a_custom_domain_is_not_part_of_the_route() {
    let bed = Bed::new().await;
    let mut themes = bed.lambda("theme-lookup").await;
    let project = themes.http(&post("/projects", "local", &json!({"name": "Spring"}))).await.expect(201);
    let project = format!("/projects/{}", project["project_id"].as_str().unwrap());
    let file = "/projects/{project_id}/files/{path+}";
    for base in ["", "/v1", "/shop/v1", "/projects"] {
        let based = |method: &str, path: &str, resource: &str| {
            let mut request = request(method, &format!("{base}{path}"), "local");
            request["resource"] = resource.into();
            request["requestContext"]["resourcePath"] = resource.into();
            request["requestContext"]["path"] = request["path"].clone();
            request["requestContext"]["domainName"] = "api.example.com".into();
            request
        };
        let path = format!("{project}/files/assets/a%20b.css");
        let mut put = based("PUT", &path, file);
        put["body"] = format!("/* {base} */").into();
        assert!(themes.http(&put).await.status < 300, "{base}");
        let read = themes.http(&based("GET", &path, file)).await;
        assert_eq!((read.status, read.text()), (200, format!("/* {base} */").as_str()), "{base}");
        let listed = themes.http(&based("GET", "/projects", "/projects")).await.expect(200);
        let found = listed["data"].as_array().unwrap().iter().any(|project| project["name"] == "Spring");
        assert!(found, "{base}: {listed:#}");
    }
    themes.http(&request("GET", "/v1/projects", "local")).await.refused(404, "not_found");
}

#[tokio::test]
async fn the_query_arrives_as_it_was_sent() {
    let bed = Bed::new().await;
    let mut agents = bed.lambda("agents").await;
    let with_query = |name: &str, value: &str| {
        let mut request = request("GET", "/agents", "local");
        request["queryStringParameters"] = json!({name: value});
        request["multiValueQueryStringParameters"] = json!({name: [value]});
        request
    };
    let (unknown, no_cursor) = (with_query("status", "a b&limit=1"), with_query("cursor", "ä+/= %"));
    let problem = agents.http(&unknown).await.refused(400, "invalid_input");
    let message = problem["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("`a b&limit=1`"), "{message}");
    agents.http(&no_cursor).await.refused(400, "invalid_input");
}

#[tokio::test]
async fn a_body_may_be_in_base64() {
    let bed = Bed::new().await;
    let mut actions = bed.lambda("action-define").await;
    let plain = payload("action-define.preview");
    let mut encoded = plain.clone();
    encoded["body"] = BASE64_STANDARD.encode(plain["body"].as_str().unwrap()).into();
    encoded["isBase64Encoded"] = true.into();
    assert_eq!(actions.http(&encoded).await.expect(200), actions.http(&plain).await.expect(200));
}

/// Buffered and streaming functions return the same errors, with a body.
#[tokio::test]
async fn errors_are_problems() {
    let bed = Bed::new().await;
    let mut lambdas = HashMap::new();
    for function in ["action-define", "agents", "agent-chat", "asset-save"] {
        lambdas.insert(function, bed.lambda(function).await);
    }
    for (function, method, path, body, status, code) in [
        ("action-define", "GET", "/actions/act_nothing", Value::Null, 404, "not_found"),
        (
            "action-define",
            "POST",
            "/schedules/preview",
            json!({"schedule": {"every": "no"}}),
            400,
            "invalid_input",
        ),
        ("action-define", "POST", "/schedules/preview", json!("{"), 400, "invalid_input"),
        ("action-define", "PUT", "/schedules/preview", Value::Null, 405, "method_not_allowed"),
        ("agents", "GET", "/agents/{id}", Value::Null, 404, "not_found"),
        ("agents", "POST", "/agents", json!({"name": ""}), 400, "invalid_input"),
        ("agents", "DELETE", "/agents", Value::Null, 405, "method_not_allowed"),
        ("agent-chat", "POST", "/agents/{id}/chat", json!({"message": "hi"}), 404, "not_found"),
        ("agent-chat", "POST", "/agents/{id}/chat", json!({"message": 1}), 400, "invalid_input"),
        ("agent-chat", "GET", "/nowhere", Value::Null, 404, "not_found"),
        ("asset-save", "GET", "/assets/ast_nothing/content", Value::Null, 404, "not_found"),
        ("asset-save", "POST", "/agents/{id}/assets", json!({"title": 1}), 400, "invalid_input"),
    ] {
        let mut sent = request(method, &path.replace("{id}", NOBODYS), "local");
        if !body.is_null() {
            sent["body"] = body.to_string().into();
        }
        let answer = lambdas.get_mut(function).unwrap().http(&sent).await;
        let problem = answer.refused(status, code);
        assert_eq!(problem["request_id"], sent["requestContext"]["requestId"], "{method} {path}");
    }
    let mut malformed = request("POST", "/agents", "local");
    malformed["body"] = "{".into();
    lambdas.get_mut("agents").unwrap().http(&malformed).await.refused(400, "malformed_json");
}

#[tokio::test]
async fn the_authorizer_determines_the_owner() {
    let bed = Bed::new().await;
    let mut agents = bed.lambda("agents").await;
    let mut actions = bed.lambda("action-define").await;

    let mut nobody = request("GET", "/agents", "local");
    nobody["requestContext"].as_object_mut().unwrap().remove("authorizer");
    agents.http(&nobody).await.refused(401, "unauthenticated");
    nobody["path"] = "/actions".into();
    actions.http(&nobody).await.refused(401, "unauthenticated");

    let made = agents.http(&post("/agents", "anna", &json!({"name": "Watch", "goal": "An agent"}))).await;
    assert_eq!(made.headers["etag"], "\"1\"");
    let path = made.location();
    let made = made.expect(201);
    assert_eq!(agents.http(&request("GET", &path, "anna")).await.expect(200), made);
    agents.http(&request("GET", &path, "bert")).await.refused(404, "not_found");
    agents.http(&request("DELETE", &path, "bert")).await.refused(404, "not_found");
    let defined = actions.http(&post(&format!("{path}/actions"), "bert", &action())).await;
    defined.refused(404, "not_found");
    assert_eq!(agents.http(&request("GET", "/agents", "bert")).await.expect(200)["data"], json!([]));

    // The client's own headers do not identify an owner.
    let mut posing = request("GET", &path, "bert");
    for headers in ["headers", "multiValueHeaders"] {
        posing[headers]["owner"] = if headers == "headers" { json!("anna") } else { json!(["anna"]) };
    }
    agents.http(&posing).await.refused(404, "not_found");
}

#[tokio::test]
async fn with_auth_off_the_owner_is_local() {
    let bed = Bed::new().await;
    let id = bed.server.agent().await;
    let mut agents = bed.lambda_with("agents", &[("LAMPLIGHTER_AUTH", "off")]).await;
    let mut nobody = request("GET", &format!("/agents/{id}"), "local");
    nobody["requestContext"].as_object_mut().unwrap().remove("authorizer");
    assert_eq!(agents.http(&nobody).await.expect(200)["agent_id"], id);
}
