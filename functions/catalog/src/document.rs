//! The OpenAPI document.
//!
//! A route declares its own path, parameters, body and results. Everything that is the same for all routes is added
//! here in one step, so that no route can forget it: the problems of any request, the headers of requests and answers,
//! the servers, and the meaning of common names.

mod answers;
#[cfg(test)]
mod tests;
mod words;

use serde_json::{Map, Value, json};
use utoipa::openapi::OpenApi;

/// The methods of a path item. Its other keys are not operations.
pub(crate) const METHODS: [&str; 7] = ["get", "put", "post", "delete", "patch", "head", "options"];

/// Makes the complete document from the routes' descriptions.
pub(crate) fn complete(routes: &OpenApi) -> Value {
    let mut document = serde_json::to_value(routes).expect("a description is JSON");
    document["info"] = json!({
        "title": "Lamplighter",
        "version": env!("CARGO_PKG_VERSION"),
        "description": words::INFO,
        "contact": {"name": "The maintainers of Lamplighter"},
        "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
    });
    document["servers"] = json!([
        {"url": "http://127.0.0.1:9000", "description": "`cargo run` on this machine"},
        {
            "url": "https://{api_id}.execute-api.{region}.amazonaws.com/live",
            "description": "A deployment: the address is in the outputs of the stack",
            "variables": {
                "api_id": {"default": "api-id", "description": "The id of the API in API Gateway"},
                "region": {"default": "us-east-1", "description": "The AWS region of the stack"},
            },
        },
    ]);
    document["tags"] = words::tags();
    document["security"] = json!([{"bearer": []}]);
    document["components"]["securitySchemes"] = json!({
        "bearer": {
            "type": "http",
            "scheme": "bearer",
            "description": "An API key (`llk_…`) or a JWT of the configured issuer. A server that runs with \
                            `LAMPLIGHTER_AUTH=off` needs none.",
        },
    });
    // In axum, `{*path}` is a parameter for the rest of the path, including slashes.
    let paths = std::mem::take(object(&mut document["paths"]));
    *object(&mut document["paths"]) =
        paths.into_iter().map(|(path, item)| (path.replace("{*", "{"), item)).collect();
    each_schema(&mut document, &mut tidy);
    refer_from_pages(object(&mut document["components"]["schemas"]));
    words::describe(&mut document);
    answers::add(&mut document);
    document
}

fn object(value: &mut Value) -> &mut Map<String, Value> {
    value.as_object_mut().expect("a part of the document that is an object")
}

/// Each operation with its method and path.
pub(crate) fn each_operation(
    document: &mut Value,
    change: &mut impl FnMut(&str, &str, &mut Map<String, Value>),
) {
    for (path, item) in object(&mut document["paths"]) {
        for (method, operation) in object(item) {
            if METHODS.contains(&method.as_str()) {
                change(method, path, object(operation));
            }
        }
    }
}

/// Each object of the document that may be a schema, inner ones first. Examples contain data, not schemas.
fn each_schema(value: &mut Value, change: &mut impl FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Object(fields) => {
            for (_, value) in
                fields.iter_mut().filter(|(name, _)| !matches!(&***name, "example" | "examples"))
            {
                each_schema(value, change);
            }
            change(fields);
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each_schema(item, change)),
        _ => {}
    }
}

/// Rewrites the derived schema in a form that client generators understand.
fn tidy(schema: &mut Map<String, Value>) {
    // A default is the value of an absent field. A default of `null` means nothing, and makes generators believe that
    // the field is always present.
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
    // The description of an optional field belongs to the field, not to the type that it refers to.
    let inner =
        schema.get_mut("oneOf").and_then(Value::as_array_mut).and_then(|variants| match &mut variants[..] {
            [Value::Object(null), Value::Object(inner)] | [Value::Object(inner), Value::Object(null)]
                if null.get("type").is_some_and(|kind| kind == "null") && inner.contains_key("$ref") =>
            {
                inner.remove("description")
            }
            _ => None,
        });
    if let Some(description) = inner {
        schema.entry("description").or_insert(description);
    }
}

/// Makes pages refer to the named type of their items, because utoipa repeats the whole type in each page.
fn refer_from_pages(schemas: &mut Map<String, Value>) {
    let names: Vec<String> = schemas.keys().cloned().collect();
    for (page, schema) in schemas.iter_mut() {
        let item = page.strip_prefix("Page_").filter(|item| names.iter().any(|name| name == item));
        if let Some(item) = item {
            schema["properties"]["data"]["items"] = json!({"$ref": format!("#/components/schemas/{item}")});
        }
    }
}
