//! The parameters that routes read from the query string. A parameter that a route does not have is refused: otherwise a misspelt one
//! would be ignored silently.

use axum::extract::Request;
use domain::validate::FieldErrors;
use http::Method;

/// How many unknown parameters an error names.
const MAX_NAMED: usize = 10;

/// Older names of parameters that routes still read.
pub const OLDER: &[(&str, &str)] = &[("session", "session_id"), ("project", "project_id")];

/// Every method of a route.
pub const ANY: &str = "*";

const PAGE: &[&str] = &["limit", "cursor"];

/// The parameters of each route that has any. A test compares the list with the OpenAPI document.
pub const PARAMETERS: &[(&str, &str, &[&str])] = &[
    ("DELETE", "/account", &["confirm"]),
    ("GET", "/account/api-keys", PAGE),
    ("GET", "/actions", &["limit", "cursor", "state", "agent_id"]),
    ("GET", "/actions/{action_id}/history", PAGE),
    ("GET", "/actions/{action_id}/messages", PAGE),
    ("GET", "/actions/{action_id}/notebook/versions", PAGE),
    ("GET", "/actions/{action_id}/runs", PAGE),
    ("GET", "/actions/{action_id}/why", &["at"]),
    ("GET", "/agents", &["limit", "cursor", "status"]),
    ("GET", "/agents/{agent_id}/approvals", PAGE),
    ("GET", "/agents/{agent_id}/assets", &["limit", "cursor", "asset_type"]),
    ("GET", "/agents/{agent_id}/chats", PAGE),
    ("GET", "/agents/{agent_id}/history", PAGE),
    ("GET", "/agents/{agent_id}/proposals", PAGE),
    ("GET", "/assets", &["limit", "cursor", "agent_id", "asset_type"]),
    ("GET", "/assets/{asset_id}/content", &["version"]),
    ("GET", "/assets/{asset_id}/versions", PAGE),
    ("GET", "/chats/{chat_id}", PAGE),
    ("GET", "/context/export", &["project_id", "session_id"]),
    ("POST", "/context/hooks", &["session_id", "project_id", "at"]),
    ("GET", "/context/hooks/rejected", PAGE),
    ("POST", "/context/import", &["project_id"]),
    ("GET", "/context/logs", &["project_id", "limit", "cursor"]),
    ("GET", "/context/logs/{agent_id}", &["session_id", "project_id", "lines", "format", "include_metadata"]),
    ("GET", "/context/recall", &["session_id", "agent_type", "project_id", "workflow"]),
    // Clients of MCP try other methods with the same address, and must get 405.
    (ANY, "/mcp", &["project_id", "workflow", "tools"]),
    ("GET", "/day", &["date", "timezone"]),
    ("GET", "/deliveries", &["state", "limit", "cursor"]),
    ("GET", "/jobs", &["cursor", "kind", "limit", "state"]),
    ("GET", "/memory/cards", &["date"]),
    ("GET", "/memory/search", &["q", "limit", "depth", "namespace"]),
    ("GET", "/memory/tidies", &["limit"]),
    ("GET", "/models", &["role", "tier", "task", "work"]),
    ("GET", "/outbox", PAGE),
    ("GET", "/practices", &["limit", "cursor", "status"]),
    ("GET", "/practices/{practice_id}/check-ins", &["from", "to", "limit", "cursor"]),
    ("GET", "/projects", PAGE),
    ("GET", "/projects/{project_id}/context", &["workflow", "version"]),
    ("GET", "/projects/{project_id}/context.md", &["workflow", "version"]),
    ("PUT", "/projects/{project_id}/context.md", &["workflow"]),
    ("GET", "/projects/{project_id}/context/versions", &["workflow", "limit", "cursor"]),
    ("GET", "/projects/{project_id}/context/versions/{version}", &["workflow"]),
    ("POST", "/projects/{project_id}/context/versions/{version}/restore", &["workflow"]),
    ("GET", "/projects/{project_id}/context/workflows", PAGE),
    ("GET", "/projects/{project_id}/docs/{document}", &["version"]),
    ("GET", "/projects/{project_id}/docs/{document}/versions", PAGE),
    ("GET", "/projects/{project_id}/files", &["limit", "cursor", "glob"]),
    ("GET", "/projects/{project_id}/files/{*path}", &["lines"]),
    ("GET", "/projects/{project_id}/graph", &["path"]),
    ("GET", "/projects/{project_id}/outline", &["path"]),
    ("GET", "/projects/{project_id}/changes", PAGE),
    ("GET", "/projects/{project_id}/chats", PAGE),
    (
        "GET",
        "/projects/{project_id}/grep",
        &["q", "regex", "ignore_case", "glob", "limit", "from", "from_line"],
    ),
    ("GET", "/projects/{project_id}/map", PAGE),
    ("GET", "/runs", &["limit", "cursor", "from", "to", "agent_id", "action_id", "state", "kind"]),
    ("GET", "/runs/{run_id}/events", &["after"]),
    ("GET", "/search", &["q"]),
    ("GET", "/usage", &["month"]),
    ("GET", "/watchdog/alerts", PAGE),
    ("GET", "/watched", PAGE),
    ("GET", "/watched/{watched_id}/ledger", &["from", "to"]),
    ("GET", "/watched/{watched_id}/reports", PAGE),
];

/// Checks the query string of a request for the route `path`.
///
/// # Errors
/// With the parameters that the route does not have.
pub fn check(request: &Request, path: &str) -> Result<(), FieldErrors> {
    let Some(query) = request.uri().query().filter(|query| !query.is_empty()) else { return Ok(()) };
    // Load balancers and monitors add parameters of their own, and so do the providers that send people back to the console.
    if path == "/health" || path == "/" {
        return Ok(());
    }
    // A server answers `HEAD` by the route of `GET`.
    let method = if request.method() == Method::HEAD { "GET" } else { request.method().as_str() };
    let known = PARAMETERS.iter().find(|(of, route, _)| (*of == method || *of == ANY) && *route == path);
    let known = known.map_or(&[][..], |(_, _, names)| names);
    let is_known = |name: &str| {
        let newer = OLDER.iter().find(|(older, _)| *older == name).map_or(name, |(_, newer)| newer);
        known.contains(&name) || known.contains(&newer)
    };
    let mut unknown: Vec<String> = Vec::new();
    for (name, _) in form_urlencoded::parse(query.as_bytes()) {
        let is_new = !is_known(&name) && !unknown.iter().any(|named| *named == name);
        if is_new && unknown.len() < MAX_NAMED {
            unknown.push(name.into_owned());
        }
    }
    let mut errors = FieldErrors::default();
    for name in unknown {
        errors.add(name, told(known));
    }
    errors.into_result(())
}

fn told(known: &[&str]) -> String {
    if known.is_empty() {
        "is no parameter: this route takes none in its address".to_owned()
    } else {
        format!("is no parameter of this route; it takes {}", known.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn checked(method: &str, uri: &str, path: &str) -> Result<(), String> {
        let request = Request::builder().method(method).uri(uri).body(Body::empty()).unwrap();
        check(&request, path).map_err(|error| error.to_string())
    }

    #[test]
    fn only_the_parameters_of_a_route_are_accepted() {
        for (method, uri, path) in [
            ("GET", "/agents", "/agents"),
            ("GET", "/agents?", "/agents"),
            ("GET", "/agents?limit=1&status=active", "/agents"),
            ("HEAD", "/agents?limit=1", "/agents"),
            ("GET", "/health?probe=1", "/health"),
            ("GET", "/mcp?project=p&workflow=w&tools=logs", "/mcp"),
            ("GET", "/context/logs?project=p", "/context/logs"),
            ("GET", "/projects/p/files/a?lines=1-2", "/projects/{project_id}/files/{*path}"),
        ] {
            assert_eq!(checked(method, uri, path), Ok(()), "{method} {uri}");
        }
        for (method, uri, path, named) in [
            ("GET", "/agents?limt=1", "/agents", "limt"),
            ("GET", "/agents?limit=1&b", "/agents", "b"),
            ("GET", "/agents?Limit=1", "/agents", "Limit"),
            ("POST", "/agents?limit=1", "/agents", "limit"),
            ("GET", "/agents?project=p", "/agents", "project"),
            ("DELETE", "/proposals/p?force=1", "/proposals/{proposal_id}", "force"),
            ("GET", "/usage?%6donth%20=1", "/usage", "month "),
        ] {
            let told = checked(method, uri, path).unwrap_err();
            assert!(told.contains(named), "{told}");
        }
        let many: String = (0..500).map(|n| format!("p{n}=1&p{n}=2&")).collect();
        let told = checked("GET", &format!("/agents?{many}"), "/agents").unwrap_err();
        assert!(told.contains("p9") && !told.contains("p10"), "{told}");
    }
}
