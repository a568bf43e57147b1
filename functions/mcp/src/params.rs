//! Says what is wrong with the params of a request. The SDK takes a known method with other params for an unknown method.

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CompleteRequestParams, GetPromptRequestParams, InitializeRequestParams,
    PaginatedRequestParams, ReadResourceRequestParams, RequestId,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// The longest reason that is sent back, in characters. A reason may repeat what the client has sent.
const MAX_REASON: usize = 300;

/// A request, as far as it must be read to judge its params.
#[derive(Deserialize)]
struct Request {
    jsonrpc: String,
    id: RequestId,
    method: String,
    #[serde(default)]
    params: Value,
}

/// The error of JSON-RPC for a request of a known method whose params do not fit it. `None` for everything else.
pub fn refusal(body: &[u8]) -> Option<Value> {
    // A list of these fields is no message.
    if body.trim_ascii_start().first() != Some(&b'{') {
        return None;
    }
    let Request { jsonrpc, id, method, params } = serde_json::from_slice(body).ok()?;
    if jsonrpc != "2.0" {
        return None;
    }
    let why = reason(&method, params)??;
    Some(json!({"jsonrpc": "2.0", "id": id, "error": invalid(&why)}))
}

/// The error for a request that the SDK could not read as one of a known method.
pub fn unread(method: String, params: Option<Value>) -> ErrorData {
    match reason(&method, params.unwrap_or_default()) {
        Some(why) => invalid(&why.unwrap_or_else(|| "the params do not fit the method".to_owned())),
        None => ErrorData::new(rmcp::model::ErrorCode::METHOD_NOT_FOUND, method, None),
    }
}

fn invalid(reason: &str) -> ErrorData {
    let reason: String = reason.chars().take(MAX_REASON).collect();
    ErrorData::invalid_params(format!("invalid params: {reason}"), None)
}

/// Why the params of a method do not fit it: `None` if there is no such method, and `Some(None)` if they fit.
fn reason(method: &str, params: Value) -> Option<Option<String>> {
    let read = match method {
        "ping" | "server/discover" => reads::<Map<String, Value>>,
        "initialize" => reads::<InitializeRequestParams>,
        "tools/call" => reads::<CallToolRequestParams>,
        "prompts/get" => reads::<GetPromptRequestParams>,
        "resources/read" => reads::<ReadResourceRequestParams>,
        "completion/complete" => reads::<CompleteRequestParams>,
        "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list" => {
            reads::<PaginatedRequestParams>
        }
        _ => return None,
    };
    let params = match params {
        Value::Null => Map::new(),
        Value::Object(params) => params,
        _ => return Some(Some("must be an object".to_owned())),
    };
    Some(read(params).err().map(|error| error.to_string()))
}

fn reads<T: DeserializeOwned>(params: Map<String, Value>) -> serde_json::Result<()> {
    serde_json::from_value::<T>(params.into()).map(drop)
}
