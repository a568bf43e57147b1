//! Checks every answer that a test gets with the OpenAPI document: its route, status, type and headers must be
//! described there. So if a handler's change is not described, the first test that meets it fails.

use std::sync::LazyLock;

use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::Value;

static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(catalog::OPENAPI_JSON).expect("the document is JSON"));

/// Headers for programs. They must be described.
const DESCRIBED: [&str; 3] = ["etag", "location", "retry-after"];

/// Finds the description for a request's path. A last parameter with the name `path` matches the rest of the path.
fn described(path: &str) -> Option<&'static Value> {
    let parts: Vec<&str> = path.split('/').collect();
    let fits = |template: &str| {
        let wanted: Vec<&str> = template.split('/').collect();
        let takes_rest = wanted.last() == Some(&"{path}") && parts.len() >= wanted.len();
        (parts.len() == wanted.len() || takes_rest)
            && wanted
                .iter()
                .zip(&parts)
                .all(|(wanted, part)| wanted == part || wanted.starts_with('{') && !part.is_empty())
    };
    let paths = DOCUMENT["paths"].as_object().expect("the document has paths");
    // A literal part is more specific than a parameter.
    let fitting = paths.iter().filter(|(template, _)| fits(template));
    fitting.min_by_key(|(template, _)| template.matches('{').count()).map(|(_, item)| item)
}

fn resolved(value: &'static Value) -> &'static Value {
    match value["$ref"].as_str() {
        Some(target) => DOCUMENT.pointer(target.trim_start_matches('#')).expect("references lead somewhere"),
        None => value,
    }
}

/// The path of the embedded bucket, for presigned addresses.
const BUCKET: &str = "/lamplighter";

/// # Panics
/// If the document does not describe this answer.
pub fn check(method: &Method, path: &str, status: u16, headers: &HeaderMap) {
    let route = format!("{method} {path}");
    // Browsers use it for preflights. It is not an operation of the API.
    if method == Method::OPTIONS {
        return;
    }
    // The bucket's paths belong to the local server. A refusal of any other path says nothing.
    let Some(item) = described(path) else {
        let own = path == BUCKET || path.starts_with(&format!("{BUCKET}/"));
        assert!(own || status >= 400, "{route} answers {status} and is not in infra/openapi.json");
        return;
    };
    let Some(operation) = item.get(method.as_str().to_lowercase()) else {
        // Other ports of this program have this path, too.
        let refused = status == 405 || (path == "/" && status >= 400);
        assert!(refused, "{route} answers {status} and its method is not in infra/openapi.json");
        return;
    };
    let Some(response) = operation["responses"].get(status.to_string()) else {
        panic!("{route} answers {status}, and its description does not say so: {}", operation["responses"]);
    };
    let response = resolved(response);
    let kind = headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    match response["content"].as_object() {
        Some(content) => assert!(
            content.contains_key(kind),
            "{route} answers {status} with {kind:?}, and is described with {:?}",
            content.keys()
        ),
        None => assert!(
            kind.is_empty(),
            "{route} answers {status} with {kind:?}, and is described without a body"
        ),
    }
    // A refusal may come before the functions: from the shared layers, or from the gateway.
    if status < 400 {
        assert!(
            headers.contains_key("x-content-type-options"),
            "{route}: a browser may guess the type of {status}"
        );
    }
    for name in DESCRIBED.iter().filter(|name| headers.contains_key(**name)) {
        let known = response["headers"].as_object();
        assert!(
            known.is_some_and(|known| known.keys().any(|known| known.eq_ignore_ascii_case(name))),
            "{route} answers {status} with the header {name}, and its description does not say so"
        );
    }
}
