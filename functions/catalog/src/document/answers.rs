//! The common parts of requests and answers. They are defined once, and routes refer to them.

use domain::accounts::scopes::Scope;
use serde_json::{Map, Value, json};

use super::{each_operation, object};

type Object = Map<String, Value>;

/// The name of the response in the document, the status, and its meaning.
const PROBLEMS: &[(&str, u16, &str)] = &[
    (
        "BadRequest",
        400,
        "The input breaks a rule, or is not JSON. `errors` names each invalid field and its limit.",
    ),
    ("Unauthenticated", 401, "There are no valid credentials."),
    (
        "BudgetExceeded",
        402,
        "The budget of the run or of the day is used up, or the plan includes no more of this; then `current` has the \
         plan and its limit.",
    ),
    (
        "Forbidden",
        403,
        "The credentials are valid, but do not have the scope in `x-required-scope`, or the call is not allowed.",
    ),
    ("NotFound", 404, "It does not exist, or it belongs to somebody else."),
    ("NotAcceptable", 406, "`Accept` allows neither JSON nor server-sent events."),
    (
        "Conflict",
        409,
        "The current state, which is in `current`, forbids it; or a request with the same \
         `Idempotency-Key` is still in flight.",
    ),
    ("Gone", 410, "The account is being deleted; `current.receipt_id` names the receipt."),
    ("PayloadTooLarge", 413, "The body is too large."),
    ("UnsupportedMediaType", 415, "The route does not accept this `Content-Type`."),
    ("IdempotencyMismatch", 422, "The `Idempotency-Key` was used before with another request."),
    ("TooManyRequests", 429, "There are too many requests. Try again after `Retry-After` seconds."),
    ("InternalError", 500, "An internal error occurred. It is logged with the `request_id`."),
    ("RunFailed", 502, "The run failed, and the same call would fail again. `current.error_code` says why."),
    (
        "StorageFull",
        507,
        "The disk of the server is full. The same request may succeed when there is room again.",
    ),
    (
        "Unavailable",
        503,
        "A service that the server needs did not answer. Try again after `Retry-After` seconds.",
    ),
];

/// The possible errors of any request with credentials.
const ALWAYS: &[u16] = &[400, 401, 403, 404, 410, 413, 429, 500, 503, 507];

/// The possible errors of any request that needs no credentials.
const PUBLIC: &[u16] = &[400, 403, 429, 500, 503, 507];

/// Adds all common parts.
pub(super) fn add(document: &mut Value) {
    let versioned = versioned(&document["components"]["schemas"]);
    each_operation(document, &mut |method, path, operation| {
        add_parameters(method, operation);
        if !is_public(operation) {
            let scope = Scope::needed(&method.to_uppercase(), path);
            operation.insert("x-required-scope".to_owned(), scope.name().into());
        }
        let statuses = statuses(method, path, operation);
        let responses = object(&mut operation["responses"]);
        let begins_something = responses.contains_key("202");
        for (status, response) in responses.iter_mut() {
            let response = object(response);
            let streams =
                response.get("content").is_some_and(|content| content.get("text/event-stream").is_some());
            let has_place =
                matches!(&**status, "201" | "202") || status == "200" && (begins_something || streams);
            complete_response(status, response, &versioned, has_place);
        }
        if let Some(tagged) = responses.get_mut("200").filter(|_| method == "get").map(object)
            && has_weak_tag(tagged)
        {
            object(tagged.entry("headers").or_insert_with(|| json!({})))
                .insert("ETag".to_owned(), reference("headers", "WeakETag"));
            responses.insert("304".to_owned(), reference("responses", "NotModified"));
            let parameters = operation.entry("parameters").or_insert_with(|| json!([]));
            parameters
                .as_array_mut()
                .into_iter()
                .for_each(|all| all.push(reference("parameters", "IfNoneMatch")));
        }
        let responses = object(&mut operation["responses"]);
        for (name, status, _) in PROBLEMS.iter().filter(|(_, status, _)| statuses.contains(status)) {
            responses.entry(status.to_string()).or_insert_with(|| reference("responses", name));
        }
        if let Some(content) = operation.get_mut("requestBody").and_then(|body| body.get_mut("content")) {
            bodies_of_bytes(object(content));
        }
    });
    let components = object(&mut document["components"]);
    components.insert("parameters".to_owned(), parameters());
    components.insert("headers".to_owned(), headers());
    components.insert("responses".to_owned(), problems());
}

fn reference(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}

/// Whether the operation needs no credentials.
fn is_public(operation: &Object) -> bool {
    operation.get("security").is_some_and(|security| *security == json!([{}]))
}

/// The possible problems of an operation, besides those that it declares itself.
fn statuses(method: &str, path: &str, operation: &Object) -> Vec<u16> {
    let mut statuses = if is_public(operation) { PUBLIC } else { ALWAYS }.to_vec();
    if path.contains('{') && is_public(operation) {
        statuses.push(404);
    }
    // A request with a body needs the content type that the route accepts, unless it is a GET.
    if method != "get" {
        statuses.extend([409, 415]);
    }
    if method == "post" {
        statuses.push(422);
    }
    if operation["responses"]["200"]["content"].get("text/event-stream").is_some() {
        statuses.extend([402, 406, 502]);
    }
    let may_cost = ["create_project", "run_action", "sync_memory", "tidy_memory"];
    if operation["operationId"].as_str().is_some_and(|id| may_cost.contains(&id)) {
        statuses.push(402);
    }
    // The protocol requires that clients accept both forms of answers.
    if operation["operationId"] == "call_mcp" {
        statuses.push(406);
    }
    statuses
}

/// Request headers with the same meaning everywhere. Routes only name them; they are described here.
fn add_parameters(method: &str, operation: &mut Object) {
    let own = operation.remove("parameters").unwrap_or_default();
    let mut parameters: Vec<Value> = Vec::new();
    for parameter in own.as_array().cloned().unwrap_or_default() {
        let is_header = parameter["in"] == "header";
        parameters.push(match parameter["name"].as_str() {
            // OpenAPI describes it by the media types of the answers.
            Some("Accept") if is_header => continue,
            Some("If-Match") if is_header => reference("parameters", "IfMatch"),
            Some("limit") if parameter["schema"]["maximum"] == shared::flows::page::MAX_LIMIT => {
                reference("parameters", "Limit")
            }
            Some("cursor") => reference("parameters", "Cursor"),
            _ => parameter,
        });
    }
    if method == "post" {
        parameters.push(reference("parameters", "IdempotencyKey"));
    }
    if !parameters.is_empty() {
        operation.insert("parameters".to_owned(), parameters.into());
    }
}

fn complete_response(status: &str, response: &mut Object, versioned: &[String], has_place: bool) {
    if response.contains_key("$ref") {
        return;
    }
    if response.get("description").is_none_or(|text| text == "") {
        let text = match status {
            "201" => "It was created.",
            "202" => "It has begun.",
            "204" => "It was deleted.",
            _ => "The answer.",
        };
        response.insert("description".to_owned(), text.into());
    }
    if status.starts_with(['4', '5']) && !response.contains_key("content") {
        response.insert("content".to_owned(), problem_content());
    }
    let content = response.get_mut("content").map(object);
    let mut is_versioned = false;
    if let Some(content) = content {
        bodies_of_bytes(content);
        let schema = content.get("application/json").and_then(|json| json["schema"]["$ref"].as_str());
        is_versioned = schema
            .and_then(|schema| schema.rsplit('/').next())
            .is_some_and(|name| versioned.iter().any(|versioned| versioned == name));
    }
    let headers = object(response.entry("headers").or_insert_with(|| json!({})));
    let mut refer = |header: &str, name: &str| {
        headers.insert(header.to_owned(), reference("headers", name));
    };
    refer("x-request-id", "RequestId");
    if is_versioned {
        refer("ETag", "ETag");
    }
    if has_place {
        refer("Location", "Location");
    }
}

/// Whether an answer is JSON without a version. The shared layers give it a weak `ETag`.
fn has_weak_tag(response: &Object) -> bool {
    let is_json = response.get("content").is_some_and(|content| content.get("application/json").is_some());
    is_json && response.get("headers").is_none_or(|headers| headers.get("ETag").is_none())
}

/// Describes an archive as bytes, not as an array of numbers.
fn bodies_of_bytes(content: &mut Object) {
    for (media, body) in content {
        if media == "application/zip" || media == "application/octet-stream" {
            body["schema"] = json!({"type": "string", "format": "binary"});
        }
    }
}

/// The names of the schemas with a `version`. Their answers also have it as `ETag`.
fn versioned(schemas: &Value) -> Vec<String> {
    fn has_version(schemas: &Value, schema: &Value) -> bool {
        let referred =
            schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()).map(|name| &schemas[name]);
        schema["properties"].get("version").is_some()
            || referred.is_some_and(|schema| has_version(schemas, schema))
            || schema["allOf"]
                .as_array()
                .is_some_and(|parts| parts.iter().any(|part| has_version(schemas, part)))
    }
    let named = schemas.as_object().into_iter().flatten();
    named.filter(|(_, schema)| has_version(schemas, schema)).map(|(name, _)| name.clone()).collect()
}

fn parameters() -> Value {
    json!({
        "IdempotencyKey": {
            "name": "Idempotency-Key",
            "in": "header",
            "description": "Makes a repeated call act only once: for 24 hours, the same key with the same request gets \
                            the same answer. Printable ASCII characters.",
            "schema": {"type": "string", "minLength": 1, "maxLength": shared::request::limits::MAX_KEY, "pattern": "^[!-~]([ -~]*[!-~])?$"},
            "example": "6f1d3c1e-3f0e-4c58-9a4e-0f5f2f6c7d11",
        },
        "IfMatch": {
            "name": "If-Match",
            "in": "header",
            "description": "The `ETag` that was read. If the record has changed since then, the answer is 409 with the current state.",
            "schema": {"type": "string", "pattern": "^(\\*|(W/)?(\"[0-9]{1,19}\"|[0-9]{1,19}))$"},
            "example": "\"3\"",
        },
        "IfNoneMatch": {
            "name": "If-None-Match",
            "in": "header",
            "description": "The `ETag` of an answer that the client has. If the answer is still the same, it is 304 without a body.",
            "schema": {"type": "string"},
            "example": "W/\"9f86d081884c7d659a2feaa0c55ad015\"",
        },
        "Limit": {
            "name": "limit",
            "in": "query",
            "description": "The most items on a page.",
            "schema": {
                "type": "integer", "format": "int32", "minimum": 1, "maximum": shared::flows::page::MAX_LIMIT,
                "default": shared::flows::page::DEFAULT_LIMIT,
            },
        },
        "Cursor": {
            "name": "cursor",
            "in": "query",
            "description": "Where to continue: `next_cursor` of the previous page. It is only valid for this list and this owner.",
            "schema": {"type": "string", "minLength": 1, "maxLength": shared::flows::page::MAX_CURSOR, "pattern": "^[A-Za-z0-9_-]+$"},
        },
    })
}

fn headers() -> Value {
    let header = |description: &str, schema: Value| json!({"description": description, "schema": schema});
    json!({
        "RequestId": header(
            "The id of the request in the logs. Name it when you ask for help.",
            json!({"type": "string"}),
        ),
        "ETag": header("The version, for `If-Match`.", json!({"type": "string", "examples": ["\"3\""]})),
        "WeakETag": header(
            "A hash of the answer, for `If-None-Match`. It is no version. Answers of more than 4 MiB have none.",
            json!({"type": "string", "examples": ["W/\"9f86d081884c7d659a2feaa0c55ad015\""]}),
        ),
        "Location": header("Where to read what was created or started.", json!({"type": "string", "format": "uri-reference"})),
        "RetryAfter": header("After how many seconds the same request may succeed.", json!({"type": "integer", "minimum": 0})),
        "RateLimitLimit": header(
            "How many requests of this class the caller may make in a minute. Successful answers have these headers, too.",
            json!({"type": "integer", "minimum": 1}),
        ),
        "RateLimitRemaining": header("How many more fit into this minute.", json!({"type": "integer", "minimum": 0})),
        "RateLimitReset": header("After how many seconds the next minute begins.", json!({"type": "integer", "minimum": 1})),
        "RateLimitPolicy": header(
            "The limit and its window in seconds.",
            json!({"type": "string", "examples": ["60;w=60"]}),
        ),
        "WwwAuthenticate": header("How to authenticate.", json!({"type": "string", "examples": ["Bearer"]})),
    })
}

fn problem_content() -> Value {
    json!({"application/problem+json": {"schema": reference("schemas", "Problem")}})
}

fn problems() -> Value {
    let problem = |status: u16, description: &str| {
        let mut headers = json!({"x-request-id": reference("headers", "RequestId")});
        match status {
            401 => headers["WWW-Authenticate"] = reference("headers", "WwwAuthenticate"),
            429 => {
                headers["Retry-After"] = reference("headers", "RetryAfter");
                for name in ["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "RateLimit-Policy"]
                {
                    headers[name] = reference("headers", &name.replace('-', ""));
                }
            }
            503 | 507 => headers["Retry-After"] = reference("headers", "RetryAfter"),
            _ => {}
        }
        // The id of the run that the request has started.
        if matches!(status, 402 | 502 | 503) {
            headers["Location"] = reference("headers", "Location");
        }
        json!({
            "description": description,
            "headers": headers,
            "content": problem_content(),
        })
    };
    let mut all: Object =
        PROBLEMS.iter().map(|(name, status, text)| ((*name).to_owned(), problem(*status, text))).collect();
    let not_modified = json!({
        "description": "The answer is the one whose `ETag` is in `If-None-Match`.",
        "headers": {"x-request-id": reference("headers", "RequestId"), "ETag": reference("headers", "WeakETag")},
    });
    all.insert("NotModified".to_owned(), not_modified);
    all.into()
}
