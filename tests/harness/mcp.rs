//! A client of the Model Context Protocol.

#![allow(clippy::unwrap_used, reason = "a test's helpers panic as its body does")]

use reqwest::Method;
use serde_json::{Value, json};

use crate::{Answer, Harness, send};

/// An MCP client of one address.
pub struct Client<'a> {
    h: &'a Harness,
    path: &'static str,
    key: Option<&'a str>,
}

impl Client<'_> {
    /// Sends one message.
    pub async fn post(&self, message: Value) -> Answer {
        let mut request = self.h.request(Method::POST, self.path);
        if let Some(key) = self.key {
            request = request.bearer_auth(key);
        }
        let request = request.header("accept", "application/json, text/event-stream");
        send(request.header("mcp-protocol-version", "2025-11-25").json(&message)).await
    }

    /// The result of a request.
    pub async fn ask(&self, method: &str, params: Value) -> Value {
        let answer = self.post(json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})).await;
        let body = answer.expect(200);
        assert!(body["error"].is_null(), "{body:#}");
        body["result"].clone()
    }

    /// The error of a request.
    pub async fn error(&self, method: &str, params: Value) -> Value {
        let answer = self.post(json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})).await;
        answer.body["error"].clone()
    }

    /// The result of a call of a tool, also if it is an error.
    pub async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// The result of a tool. Its text and its structured content are equal.
    pub async fn gives(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments).await;
        assert_eq!(result["isError"], json!(false), "{result:#}");
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, result["structuredContent"]);
        text
    }

    /// The text of the error of a tool.
    pub async fn fails(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        assert_eq!(result["isError"], json!(true), "{result:#}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }
}

/// The client of `/mcp`.
pub fn client(h: &Harness) -> Client<'_> {
    client_of(h, "/mcp")
}

/// The client of an address with parameters.
pub fn client_of<'a>(h: &'a Harness, path: &'static str) -> Client<'a> {
    Client { h, path, key: None }
}

/// The client of `/mcp` with the API key of an owner.
pub fn client_with_key<'a>(h: &'a Harness, key: &'a str) -> Client<'a> {
    Client { h, path: "/mcp", key: Some(key) }
}
