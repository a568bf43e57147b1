//! JSON Schemas of results. A schema lists the properties that callers can rely on; a result may have more. Tools that
//! return a document, a log or a content have none: models read the text, and every session carries the schemas.

use serde_json::{Map, Value, json};

/// An object with these properties, given as name and type. A property whose type ends in `?` is optional.
pub(super) fn object(properties: &[(&str, &str)]) -> Value {
    let required: Vec<&str> =
        properties.iter().filter(|(_, kind)| !kind.ends_with('?')).map(|(name, _)| *name).collect();
    let properties: Map<String, Value> = properties
        .iter()
        .map(|(name, kind)| ((*name).to_owned(), schema(kind.trim_end_matches('?'))))
        .collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

/// A page of objects with these properties.
pub(super) fn page(properties: &[(&str, &str)]) -> Value {
    json!({
        "type": "object",
        "properties": {
            "data": { "type": "array", "items": object(properties) },
            "has_more": { "type": "boolean" },
            "next_cursor": { "type": "string" },
        },
        "required": ["data", "has_more"],
    })
}

/// The object with one more property.
pub(super) fn with(mut object: Value, name: &str, schema: Value, required: bool) -> Value {
    object["properties"][name] = schema;
    if let (true, Some(names)) = (required, object["required"].as_array_mut()) {
        names.push(json!(name));
    }
    object
}

fn schema(kind: &str) -> Value {
    match kind.strip_prefix("[]") {
        Some(items) => json!({ "type": "array", "items": { "type": items } }),
        None => json!({ "type": kind }),
    }
}
