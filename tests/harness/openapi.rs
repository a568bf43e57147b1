//! Requests that are generated from the OpenAPI document, so new routes are attacked automatically.

use std::collections::BTreeMap;

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use reqwest::Method;
use serde_json::{Map, Value, json};

/// Ids by the names of parameters and fields: `agent_id`, `asset_id`, …
pub type Ids = BTreeMap<&'static str, String>;

/// The maximum depth of a generated value.
const MAX_DEPTH: usize = 6;

/// The OpenAPI document of a server.
pub struct OpenApi {
    document: Value,
}

/// A method on a path.
#[derive(Clone, Debug)]
pub struct Route {
    pub method: Method,
    /// The path with its parameters in braces.
    pub path: String,
    pub parameters: Vec<Parameter>,
    /// The media types that it accepts, with the schema of each.
    pub bodies: Vec<(String, Value)>,
}

#[derive(Clone, Debug)]
pub struct Parameter {
    pub name: String,
    /// `path`, `query` or `header`.
    pub place: String,
    pub is_required: bool,
    pub schema: Value,
}

impl Route {
    /// For example `GET /agents/{agent_id}`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    pub fn placed<'a>(&'a self, place: &'a str) -> impl Iterator<Item = &'a Parameter> {
        self.parameters.iter().filter(move |parameter| parameter.place == place)
    }

    /// The path with its parameters replaced by the results of `value`.
    #[must_use]
    pub fn filled(&self, mut value: impl FnMut(&Parameter) -> String) -> String {
        self.placed("path").fold(self.path.clone(), |path, parameter| {
            let hole = format!("{{{}}}", parameter.name);
            path.replace(&hole, &value(parameter))
        })
    }
}

impl OpenApi {
    #[must_use]
    pub fn new(document: Value) -> Self {
        Self { document }
    }

    /// All routes, in the order of the document.
    ///
    /// # Panics
    /// If the document is not an OpenAPI document.
    #[must_use]
    pub fn routes(&self) -> Vec<Route> {
        let mut routes = Vec::new();
        for (path, item) in self.document["paths"].as_object().expect("the document has paths") {
            for (method, operation) in item.as_object().expect("a path has methods") {
                let Ok(method) = method.to_uppercase().parse::<Method>() else { continue };
                if !["GET", "POST", "PUT", "PATCH", "DELETE"].contains(&method.as_str()) {
                    continue;
                }
                let own = operation["parameters"].as_array().into_iter().flatten();
                let shared = item["parameters"].as_array().into_iter().flatten();
                let parameters = own.chain(shared).map(|parameter| {
                    let parameter = self.resolved(parameter);
                    Parameter {
                        name: text(&parameter["name"]),
                        place: text(&parameter["in"]),
                        is_required: parameter["required"] == true,
                        schema: parameter["schema"].clone(),
                    }
                });
                let body = self.resolved(&operation["requestBody"]);
                let bodies = body["content"].as_object().into_iter().flatten();
                let bodies = bodies.map(|(kind, media)| (kind.clone(), media["schema"].clone()));
                routes.push(Route {
                    method,
                    path: path.clone(),
                    parameters: parameters.collect(),
                    bodies: bodies.collect(),
                });
            }
        }
        routes
    }

    fn resolved<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str().and_then(|name| name.strip_prefix('#')) {
            Some(pointer) => self.document.pointer(pointer).map_or(schema, |found| self.resolved(found)),
            None => schema,
        }
    }

    /// A value that the schema most likely accepts. `name` is the name of the field; ids come from `ids`.
    pub fn value(&self, rng: &mut StdRng, schema: &Value, name: &str, ids: &Ids, depth: usize) -> Value {
        if let Some(id) = ids.get(name) {
            return json!(id);
        }
        let schema = self.resolved(schema);
        if let Some(constant) = schema.get("const") {
            return constant.clone();
        }
        if let Some(choices) = schema["enum"].as_array() {
            return choices.choose(rng).cloned().unwrap_or_default();
        }
        for several in ["oneOf", "anyOf"] {
            if let Some(choices) = schema[several].as_array() {
                let real: Vec<&Value> = choices.iter().filter(|choice| choice["type"] != "null").collect();
                return real.choose(rng).map_or(Value::Null, |it| self.value(rng, it, name, ids, depth));
            }
        }
        if let Some(parts) = schema["allOf"].as_array() {
            let mut whole = Map::new();
            for part in parts {
                if let Value::Object(part) = self.value(rng, part, name, ids, depth) {
                    whole.extend(part);
                }
            }
            return Value::Object(whole);
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds.iter().find(|kind| **kind != "null").map_or(String::new(), text),
            kind => text(kind),
        };
        match kind.as_str() {
            "object" => self.object(rng, schema, ids, depth),
            "array" if depth < MAX_DEPTH => {
                json!([self.value(rng, &schema["items"], name, ids, depth + 1)])
            }
            "array" => json!([]),
            "integer" | "number" => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
            "boolean" => json!(rng.random_bool(0.5)),
            "null" => Value::Null,
            "string" => self.text(schema, name),
            _ => schema.get("example").or_else(|| schema["examples"].get(0)).cloned().unwrap_or(json!({})),
        }
    }

    fn object(&self, rng: &mut StdRng, schema: &Value, ids: &Ids, depth: usize) -> Value {
        if let Some(example) = schema.get("example").or_else(|| schema["examples"].get(0))
            && rng.random_bool(0.5)
        {
            return example.clone();
        }
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut object = Map::new();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let wanted = required.contains(&name.as_str()) || depth < MAX_DEPTH && rng.random_bool(0.6);
            if wanted {
                object.insert(name.clone(), self.value(rng, property, name, ids, depth + 1));
            }
        }
        Value::Object(object)
    }

    fn text(&self, schema: &Value, name: &str) -> Value {
        let example = schema.get("example").or_else(|| schema["examples"].get(0));
        match (example, schema["format"].as_str(), name) {
            (Some(example), _, _) => example.clone(),
            (None, Some("date-time"), _) | (None, _, "at" | "from" | "after") => {
                json!("2026-11-21T09:00:00Z")
            }
            (None, Some("date"), _) => json!("2026-11-21"),
            (None, Some("uuid"), _) => json!("0f2c1f9e-5b1d-4a7e-9f0e-0d6a3b6f2a11"),
            _ => json!("lamp"),
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The value with one error: a field that is missing, unknown, of another type, too long, too many, or not printable.
pub fn spoiled(rng: &mut StdRng, mut value: Value) -> Value {
    spoil(rng, &mut value);
    value
}

fn spoil(rng: &mut StdRng, at: &mut Value) {
    if rng.random_bool(0.7) {
        match at {
            Value::Object(fields) if !fields.is_empty() => {
                let names: Vec<String> = fields.keys().cloned().collect();
                let name = names[rng.random_range(0..names.len())].clone();
                match rng.random_range(0..10) {
                    0 => drop(fields.remove(&name)),
                    1 => drop(fields.insert("unknown".to_owned(), junk(rng))),
                    _ => spoil(rng, fields.entry(name).or_insert(Value::Null)),
                }
                return;
            }
            Value::Array(items) if !items.is_empty() => {
                let item = rng.random_range(0..items.len());
                return spoil(rng, &mut items[item]);
            }
            _ => {}
        }
    }
    *at = junk(rng);
}

/// A value that hardly any field accepts.
pub fn junk(rng: &mut StdRng) -> Value {
    match rng.random_range(0..22) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-1),
        3 => json!(0),
        4 => json!(i64::MAX),
        5 => json!(u64::MAX),
        6 => json!(i64::MIN),
        7 => json!(1.5),
        8 => json!(1e308),
        9 => json!(""),
        10 => json!("   "),
        11 => json!("x".repeat(100_000)),
        12 => json!("a\u{0}b\u{1}\u{7f}"),
        13 => json!("\u{202e}\u{feff}\u{1f469}\u{200d}\u{1f4bb}é́"),
        14 => json!([]),
        15 => json!({}),
        16 => json!(vec!["x"; 3_000]),
        17 => (0..100).fold(json!("deep"), |inner, _| json!([inner])),
        18 => (0..100).fold(json!("deep"), |inner, _| json!({"a": inner})),
        19 => json!("-000001-01-01T00:00:00Z"),
        20 => json!("../../etc/passwd\u{0}'; DROP TABLE--${jndi:x}{{7*7}}"),
        _ => json!("agt_ffffffffffffffffffffffffffffffff"),
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn a_schema_is_filled_and_spoiled() {
        let api = OpenApi::new(json!({
            "paths": {"/a/{agent_id}": {"post": {
                "parameters": [{"name": "agent_id", "in": "path", "required": true, "schema": {"type": "string"}}],
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/New"}}}},
            }}},
            "components": {"schemas": {"New": {
                "type": "object", "required": ["name", "agent_id"],
                "properties": {"name": {"type": "string"}, "agent_id": {"type": ["string", "null"]}},
            }}},
        }));
        let routes = api.routes();
        assert_eq!(routes[0].name(), "POST /a/{agent_id}");
        let ids = Ids::from([("agent_id", "agt_1".to_owned())]);
        assert_eq!(routes[0].filled(|p| ids[p.name.as_str()].clone()), "/a/agt_1");
        let mut rng = StdRng::seed_from_u64(1);
        let value = api.value(&mut rng, &routes[0].bodies[0].1, "", &ids, 0);
        assert_eq!(value, json!({"name": "lamp", "agent_id": "agt_1"}));
        for _ in 0..200 {
            assert_ne!(spoiled(&mut rng, value.clone()), value);
        }
    }
}
