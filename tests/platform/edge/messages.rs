//! Error messages for invalid input help a person to correct it. Every route of the document gets each of its fields
//! missing, empty, null, of a wrong type and too long. Each refusal must name a field and use plain English.

use reqwest::Method;
use serde_json::{Map, Value, json};
use tests::things;
use tests::things::Caller;
use tests::{Answer, Harness, send};

/// Words of our libraries, and phrases that do not help.
const JARGON: &[&str] = &[
    "invalid type",
    "invalid value",
    "invalid length",
    "expected struct",
    "expected enum",
    "expected a sequence",
    "expected a map",
    "at line",
    "column",
    "EOF",
    "did not match any variant",
    "missing field",
    "unknown field",
    "unknown variant",
    "duplicate field",
    "serde",
    "jiff",
    "datetime",
    "parse year",
    "failed to parse",
    "ASCII digit",
    "ParseIntError",
    "u64",
    "usize",
    "i64",
    "is 0 characters",
    "characters, is 0",
    "Utf8Error",
    "called `",
    "Some(",
];

fn document() -> Value {
    serde_json::from_str(catalog::OPENAPI_JSON).unwrap()
}

/// The properties of a schema and of its parts.
fn properties<'a>(document: &'a Value, schema: &'a Value) -> Map<String, Value> {
    let schema = match schema["$ref"].as_str() {
        Some(target) => document.pointer(target.trim_start_matches('#')).unwrap(),
        None => schema,
    };
    let mut all = schema["properties"].as_object().cloned().unwrap_or_default();
    for part in ["allOf", "oneOf"].iter().flat_map(|part| schema[*part].as_array().into_iter().flatten()) {
        all.extend(properties(document, part));
    }
    all
}

/// Describes what is wrong with a refusal.
fn complaint(answer: &Answer) -> Option<String> {
    let text = answer.body.to_string();
    if answer.status >= 500 {
        return Some(format!("{}: {text}", answer.status));
    }
    let errors = answer.body["errors"].as_array().cloned().unwrap_or_default();
    let spoken = errors.iter().map(|error| &error["message"]).chain([&answer.body["detail"]]);
    for said in spoken.filter_map(Value::as_str) {
        if let Some(word) = JARGON.iter().find(|word| said.contains(**word)) {
            return Some(format!("says {word:?}: {text}"));
        }
    }
    if errors.iter().any(|error| error["field"].as_str().is_none_or(str::is_empty)) {
        return Some(format!("names no field: {text}"));
    }
    let names_it = answer.status != 400 || answer.body["code"] != "invalid_input" || !errors.is_empty();
    (!names_it).then(|| format!("names no field: {text}"))
}

/// What was tried, and what is wrong with the answer.
#[derive(Default)]
struct Findings {
    tried: usize,
    wrong: Vec<String>,
}

impl Findings {
    fn note(&mut self, route: &str, what: String, answer: &Answer) {
        self.tried += 1;
        self.wrong.extend(complaint(answer).map(|said| format!("{route} with {what} {said:.400}")));
    }
}

/// Values that a field hardly ever accepts.
fn wrong_values() -> [(&'static str, Value); 9] {
    [
        ("null", Value::Null),
        ("empty", json!("")),
        ("blank", json!("  ")),
        ("a number", json!(-7)),
        ("a huge number", json!(1e300)),
        ("a list", json!([1])),
        ("an object", json!({"nonsense": true})),
        ("too long", json!("x".repeat(200_000))),
        ("with NUL", json!("a\u{0}b")),
    ]
}

async fn call(h: &Harness, method: &Method, path: &str, body: Option<&Value>) -> Answer {
    let request = h.request(method.clone(), path).header("accept", "application/json");
    send(match body {
        Some(body) => request.json(body),
        None => request,
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_refusal_names_a_field_in_plain_words() {
    let h = Harness::start().await;
    let ids = Caller { h: &h, key: None }.things("oil").await;
    let document = document();
    let mut found = Findings::default();
    for (template, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let route = format!("{} {template}", method.to_uppercase());
            // MCP uses JSON-RPC, hooks are always accepted, and GitHub says what is in a push: `living/hook.rs` looks.
            if ["/mcp", "/context/hooks", "/hooks/github/{token}", "/hooks/telegram/{token}"]
                .contains(&template.as_str())
            {
                continue;
            }
            let path = ids
                .iter()
                .fold(template.clone(), |path, (name, id)| path.replace(&format!("{{{name}}}"), id));
            let method: Method = method.to_uppercase().parse().unwrap();
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            if !schema.is_null() {
                let good = match route.as_str() {
                    "POST /account/import" | "POST /context/import" => json!({"bytes": 5}),
                    "POST /context/logs/{agent_id}" => json!({"event": "agent_start", "session_id": "s1"}),
                    "POST /schedules/preview" => json!({"schedule": {"every": "1h"}}),
                    "POST /v1/chat/completions" => {
                        json!({"model": ids["agent_id"], "messages": [{"role": "user", "content": "Hello"}]})
                    }
                    _ => things::body(&route, &ids),
                };
                for (what, body) in [("a list", json!([])), ("null", Value::Null), ("a text", json!("x"))] {
                    let answer = call(&h, &method, &path, Some(&body)).await;
                    found.note(&route, format!("{what} as its body"), &answer);
                    if what == "a list" && answer.status != 400 {
                        found.wrong.push(format!("{route} takes a list as its body: {}", answer.status));
                    }
                }
                let mut unknown = good.clone();
                unknown["nonsense"] = json!(1);
                let answer = call(&h, &method, &path, Some(&unknown)).await;
                let fields: Vec<&str> = answer.body["errors"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|e| e["field"].as_str())
                    .collect();
                // Clients of the OpenAI API send parameters that this platform does not know.
                if route == "POST /v1/chat/completions" {
                    found.note(&route, "an unknown field".into(), &answer);
                    if answer.status == 400 {
                        found.wrong.push(format!(
                            "{route} refuses a field that it does not know: {:#}",
                            answer.body
                        ));
                    }
                } else if answer.status != 400 || !fields.contains(&"nonsense") {
                    found
                        .wrong
                        .push(format!("{route} takes a field that it does not know: {}", answer.status));
                }
                for (name, _) in properties(&document, schema) {
                    let mut missing = good.clone();
                    if missing.as_object_mut().and_then(|fields| fields.remove(&name)).is_some() {
                        found.note(
                            &route,
                            format!("no {name}"),
                            &call(&h, &method, &path, Some(&missing)).await,
                        );
                    }
                    for (what, value) in wrong_values() {
                        let mut body = good.clone();
                        body[&name] = value;
                        found.note(
                            &route,
                            format!("{name}: {what}"),
                            &call(&h, &method, &path, Some(&body)).await,
                        );
                    }
                }
            }
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let parameters = parameters.map(|parameter| match parameter["$ref"].as_str() {
                Some(target) => document.pointer(target.trim_start_matches('#')).unwrap(),
                None => parameter,
            });
            for parameter in
                parameters.filter(|parameter| parameter["in"] == "query" && method == Method::GET)
            {
                let name = parameter["name"].as_str().unwrap();
                for text in
                    ["", "-1", "x", "99999999999999999999999", "%00", "%FF", "-000001-01-01T00:00:00Z"]
                {
                    let answer = call(&h, &method, &format!("{path}?{name}={text}"), None).await;
                    found.note(&route, format!("{name}={text}"), &answer);
                }
            }
        }
    }
    let Findings { tried, wrong } = found;
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(tried > 500, "{tried}");
}
