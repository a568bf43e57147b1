//! The payloads in `events/`, and variations of them.

use std::path::PathBuf;

use serde_json::{Value, json};

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../events"))
}

/// The payload `events/{name}.json`.
pub fn payload(name: &str) -> Value {
    let path = folder().join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names of all payloads, `{function}.{what}`, sorted.
pub fn names() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| path.file_name().unwrap().to_str().unwrap().strip_suffix(".json").unwrap().to_owned())
        .collect();
    names.sort_unstable();
    names
}

/// A request that the authorizer has accepted for this owner, on the stage `live` of the API's default domain.
pub fn request(method: &str, path: &str, owner: &str) -> Value {
    let mut request = payload("agents.create");
    request["httpMethod"] = method.into();
    request["requestContext"]["httpMethod"] = method.into();
    request["path"] = path.into();
    request["requestContext"]["path"] = format!("/live{path}").into();
    request["requestContext"]["authorizer"] = json!({"owner": owner, "scope": "admin", "principalId": owner});
    for headers in ["headers", "multiValueHeaders"] {
        request[headers].as_object_mut().unwrap().remove("Idempotency-Key");
    }
    request["body"] = Value::Null;
    request
}

/// The same with a JSON body.
pub fn post(path: &str, owner: &str, body: &Value) -> Value {
    let mut request = request("POST", path, owner);
    request["body"] = body.to_string().into();
    request
}

/// An SQS event with these bodies and the message ids `m0`, `m1`, ….
pub fn messages(bodies: &[&str]) -> Value {
    let sample = &payload("scheduled-executor.due")["Records"][0];
    let records = bodies.iter().enumerate().map(|(number, body)| {
        let mut record = sample.clone();
        record["messageId"] = format!("m{number}").into();
        record["body"] = (*body).into();
        record
    });
    json!({"Records": records.collect::<Vec<_>>()})
}

/// A valid action, for `POST /agents/{agent_id}/actions`.
pub fn action() -> Value {
    json!({
        "title": "Lamp oil report", "description": "A short report", "priority": "high",
        "task_config": {"instructions": "Write a report about lamp oil", "expected_output": "A report"}
    })
}
