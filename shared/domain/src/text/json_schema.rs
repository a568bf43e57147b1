//! A JSON Schema that a person or a client gives for a reply or an output. Only keywords that can be checked are accepted.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::validate::FieldErrors;

/// How many comparisons a check may make. It bounds schemas that refer to themselves.
const MAX_STEPS: usize = 100_000;

/// How many nodes the schema of a provider may have, and how deep it may be, once its references are resolved.
const MAX_PROVIDER_NODES: usize = 2_000;
const MAX_DEPTH: usize = 60;

/// Keywords that do not restrict a value.
const ANNOTATIONS: [&str; 13] = [
    "$schema",
    "$id",
    "$comment",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
    "examples",
    "format",
    "deprecated",
    "readOnly",
    "writeOnly",
];

/// A JSON Schema whose keywords are known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Schema(Value);

impl Schema {
    /// # Errors
    /// Each keyword that is not supported or has a wrong value, by its path.
    pub fn new(schema: Value) -> Result<Self, FieldErrors> {
        let mut errors = FieldErrors::default();
        if schema.is_object() {
            known(&schema, &schema, "", 0, &mut errors);
        } else {
            errors.add("", "must be an object");
        }
        errors.into_result(Self(schema))
    }

    #[must_use]
    pub const fn as_value(&self) -> &Value {
        &self.0
    }

    /// # Errors
    /// Where the value differs from the schema.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        Check { root: &self.0, left: MAX_STEPS }.value(&self.0, value, "", 0)
    }

    /// The schema as all providers with structured outputs take it: every object names all of its fields and no others, and there
    /// are no references. Limits of numbers and lengths are left out, because some providers refuse them; [`Self::check`] has
    /// them. `None` if the schema can't be written like that.
    #[must_use]
    pub fn for_provider(&self) -> Option<Value> {
        let mut nodes = 0;
        let schema = strict(&self.0, &self.0, 0, &mut nodes)?;
        (schema["type"] == "object").then_some(schema)
    }
}

/// Checks that every keyword is known and has a value of the right kind.
fn known(root: &Value, schema: &Value, path: &str, depth: usize, errors: &mut FieldErrors) {
    let at = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    let fields = match schema {
        Value::Bool(_) => return,
        Value::Object(fields) if depth < MAX_DEPTH => fields,
        Value::Object(_) => return errors.add(path, format!("may be at most {MAX_DEPTH} levels deep")),
        _ => return errors.add(path, "must be a schema: an object, `true` or `false`"),
    };
    for (key, value) in fields {
        let wrong = match key.as_str() {
            "type" => {
                let is_type = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
                let ok = is_type(value) || value.as_array().is_some_and(|names| names.iter().all(is_type));
                (!ok).then(|| format!("must be one of {}", TYPES.join(", ")))
            }
            "properties" | "$defs" | "definitions" => match value.as_object() {
                Some(schemas) => {
                    for (name, schema) in schemas {
                        known(root, schema, &at(&format!("{key}.{name}")), depth + 1, errors);
                    }
                    None
                }
                None => Some("must be an object of schemas".to_owned()),
            },
            "items" | "additionalProperties" | "not" => {
                known(root, value, &at(key), depth + 1, errors);
                None
            }
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => match value.as_array() {
                Some(schemas) if !schemas.is_empty() => {
                    for (index, schema) in schemas.iter().enumerate() {
                        known(root, schema, &at(&format!("{key}[{index}]")), depth + 1, errors);
                    }
                    None
                }
                _ => Some("must be a list of schemas".to_owned()),
            },
            "$ref" => value
                .as_str()
                .and_then(|name| resolve(root, name))
                .is_none()
                .then(|| "must name a part of this schema, like `#/$defs/name`".to_owned()),
            "required" => {
                let ok = value.as_array().is_some_and(|names| names.iter().all(Value::is_string));
                (!ok).then(|| "must be a list of names".to_owned())
            }
            "enum" => (!value.is_array()).then(|| "must be a list of values".to_owned()),
            "const" => None,
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
                (!value.is_number()).then(|| "must be a number".to_owned())
            }
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
                (!value.is_u64()).then(|| "must be a number of at least 0".to_owned())
            }
            name if ANNOTATIONS.contains(&name) => None,
            _ => Some("is a keyword that is not supported".to_owned()),
        };
        if let Some(wrong) = wrong {
            errors.add(at(key), wrong);
        }
    }
}

const TYPES: [&str; 7] = ["object", "array", "string", "integer", "number", "boolean", "null"];

fn is_of(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        _ => value.is_null(),
    }
}

/// The part of a schema that a reference names.
fn resolve<'a>(root: &'a Value, name: &str) -> Option<&'a Value> {
    let found = root.pointer(name.strip_prefix('#')?)?;
    (found.is_object() || found.is_boolean()).then_some(found)
}

/// A check of one value.
struct Check<'a> {
    root: &'a Value,
    left: usize,
}

impl Check<'_> {
    fn value(&mut self, schema: &Value, value: &Value, path: &str, depth: usize) -> Result<(), String> {
        self.left = self.left.checked_sub(1).ok_or("the schema needs too many comparisons")?;
        if depth > 4 * MAX_DEPTH {
            return Err("the schema refers to itself too often".to_owned());
        }
        let name = if path.is_empty() { "the value".to_owned() } else { format!("`{path}`") };
        let wrong = |what: String| Err(format!("{name} {what}"));
        let fields = match schema {
            Value::Bool(true) => return Ok(()),
            Value::Object(fields) => fields,
            _ => return wrong("must be absent".to_owned()),
        };
        if let Some(target) = fields.get("$ref").and_then(Value::as_str) {
            let target = resolve(self.root, target).ok_or("a reference leads nowhere")?;
            self.value(target, value, path, depth + 1)?;
        }
        let types = match fields.get("type") {
            None => Vec::new(),
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            Some(name) => name.as_str().into_iter().collect(),
        };
        if !types.is_empty() && !types.iter().any(|name| is_of(value, name)) {
            return wrong(format!("must be of type {}", types.join(" or ")));
        }
        if let Some(Value::Array(values)) = fields.get("enum")
            && !values.contains(value)
        {
            return wrong(format!("must be one of {}", shown(&json!(values))));
        }
        if let Some(only) = fields.get("const").filter(|only| *only != value) {
            return wrong(format!("must be {}", shown(only)));
        }
        self.combined(fields, value, path, depth, &name)?;
        match value {
            Value::Object(object) => self.object(fields, object, path, depth, &name),
            Value::Array(items) => self.array(fields, items, path, depth, &name),
            Value::String(text) => {
                let length = text.chars().count() as u64;
                sized(fields, "minLength", "maxLength", length, "characters", &name)
            }
            Value::Number(number) => ranged(fields, number.as_f64().unwrap_or_default(), &name),
            Value::Bool(_) | Value::Null => Ok(()),
        }
    }

    fn combined(
        &mut self,
        fields: &Map<String, Value>,
        value: &Value,
        path: &str,
        depth: usize,
        name: &str,
    ) -> Result<(), String> {
        let list = |key: &str| fields.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for schema in list("allOf") {
            self.value(schema, value, path, depth + 1)?;
        }
        for (key, needs_one) in [("anyOf", false), ("oneOf", true)] {
            let schemas = list(key);
            let mut matched = 0;
            let mut last = None;
            for schema in schemas {
                match self.value(schema, value, path, depth + 1) {
                    Ok(()) => matched += 1,
                    Err(why) => last = Some(why),
                }
            }
            if matched == 0
                && let Some(why) = last
            {
                return Err(format!("{name} matches none of the schemas of `{key}`; of the last one: {why}"));
            }
            if needs_one && matched > 1 {
                return Err(format!("{name} matches {matched} schemas of `oneOf`"));
            }
        }
        if let Some(not) = fields.get("not")
            && self.value(not, value, path, depth + 1).is_ok()
        {
            return Err(format!("{name} matches the schema of `not`"));
        }
        Ok(())
    }

    fn object(
        &mut self,
        fields: &Map<String, Value>,
        object: &Map<String, Value>,
        path: &str,
        depth: usize,
        name: &str,
    ) -> Result<(), String> {
        let at = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        sized(fields, "minProperties", "maxProperties", object.len() as u64, "fields", name)?;
        let required = fields.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for key in required.iter().filter_map(Value::as_str) {
            if !object.contains_key(key) {
                return Err(format!("{name} must have the field `{key}`"));
            }
        }
        let properties = fields.get("properties").and_then(Value::as_object);
        for (key, value) in object {
            match (properties.and_then(|properties| properties.get(key)), fields.get("additionalProperties"))
            {
                (Some(schema), _) => self.value(schema, value, &at(key), depth + 1)?,
                (None, Some(Value::Bool(false))) => {
                    return Err(format!("{name} must not have the field `{key}`"));
                }
                (None, Some(schema)) => self.value(schema, value, &at(key), depth + 1)?,
                (None, None) => {}
            }
        }
        Ok(())
    }

    fn array(
        &mut self,
        fields: &Map<String, Value>,
        items: &[Value],
        path: &str,
        depth: usize,
        name: &str,
    ) -> Result<(), String> {
        sized(fields, "minItems", "maxItems", items.len() as u64, "items", name)?;
        let first = fields.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for (index, item) in items.iter().enumerate() {
            if let Some(schema) = first.get(index).or_else(|| fields.get("items")) {
                self.value(schema, item, &format!("{path}[{index}]"), depth + 1)?;
            }
        }
        Ok(())
    }
}

fn sized(
    fields: &Map<String, Value>,
    min: &str,
    max: &str,
    size: u64,
    of: &str,
    name: &str,
) -> Result<(), String> {
    if let Some(min) = fields.get(min).and_then(Value::as_u64).filter(|min| size < *min) {
        return Err(format!("{name} must have at least {min} {of}, has {size}"));
    }
    if let Some(max) = fields.get(max).and_then(Value::as_u64).filter(|max| size > *max) {
        return Err(format!("{name} may have at most {max} {of}, has {size}"));
    }
    Ok(())
}

fn ranged(fields: &Map<String, Value>, number: f64, name: &str) -> Result<(), String> {
    let limit = |key: &str| fields.get(key).and_then(Value::as_f64);
    type Fails = fn(f64, f64) -> bool;
    let fails: [(&str, Fails, &str); 4] = [
        ("minimum", |number, limit| number < limit, "must be at least"),
        ("maximum", |number, limit| number > limit, "may be at most"),
        ("exclusiveMinimum", |number, limit| number <= limit, "must be more than"),
        ("exclusiveMaximum", |number, limit| number >= limit, "must be less than"),
    ];
    for (key, fails, told) in fails {
        if let Some(limit) = limit(key).filter(|limit| fails(number, *limit)) {
            return Err(format!("{name} {told} {limit}, is {number}"));
        }
    }
    Ok(())
}

/// A value as a sentence shows it.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    let mut shown: String = text.chars().take(200).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// A part of a schema as a provider takes it.
fn strict(root: &Value, schema: &Value, depth: usize, nodes: &mut usize) -> Option<Value> {
    *nodes += 1;
    if depth > MAX_DEPTH || *nodes > MAX_PROVIDER_NODES {
        return None;
    }
    let fields = schema.as_object()?;
    if let Some(name) = fields.get("$ref").and_then(Value::as_str) {
        return strict(root, resolve(root, name)?, depth + 1, nodes);
    }
    if ["oneOf", "allOf", "not", "prefixItems"].iter().any(|key| fields.contains_key(*key)) {
        return None;
    }
    let mut out = Map::new();
    for key in ["type", "description", "enum", "const"] {
        if let Some(value) = fields.get(key) {
            out.insert(key.to_owned(), value.clone());
        }
    }
    if let Some(schemas) = fields.get("anyOf").and_then(Value::as_array) {
        let schemas: Option<Vec<Value>> =
            schemas.iter().map(|schema| strict(root, schema, depth + 1, nodes)).collect();
        out.insert("anyOf".to_owned(), schemas?.into());
    }
    if let Some(items) = fields.get("items") {
        out.insert("items".to_owned(), strict(root, items, depth + 1, nodes)?);
    }
    let is_object = fields.get("type").is_some_and(|kind| kind == "object" || kind.as_array().is_some());
    if let Some(properties) = fields.get("properties").and_then(Value::as_object) {
        let required = fields.get("required").and_then(Value::as_array)?;
        let all = properties.keys().all(|key| required.iter().any(|name| name == key.as_str()));
        if !all || fields.get("additionalProperties") != Some(&Value::Bool(false)) {
            return None;
        }
        let mut strict_properties = Map::new();
        for (key, schema) in properties {
            strict_properties.insert(key.clone(), strict(root, schema, depth + 1, nodes)?);
        }
        out.insert("properties".to_owned(), strict_properties.into());
        out.insert("required".to_owned(), json!(required));
        out.insert("additionalProperties".to_owned(), false.into());
    } else if is_object && fields.get("type").is_some_and(|kind| kind == "object") {
        return None;
    }
    Some(out.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "title": {"type": "string", "minLength": 1, "maxLength": 5},
                "count": {"type": "integer", "minimum": 0, "exclusiveMaximum": 10},
                "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "minItems": 1, "maxItems": 2},
                "by": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/person"}]},
            },
            "required": ["title", "count", "tags", "by"],
            "additionalProperties": false,
            "$defs": {
                "tag": {"enum": ["a", "b"]},
                "person": {
                    "type": "object", "properties": {"name": {"type": ["string", "null"]}},
                    "required": ["name"], "additionalProperties": false,
                },
            },
        })
    }

    #[test]
    fn a_value_is_checked_against_every_keyword() {
        let schema = Schema::new(schema()).unwrap();
        let good = json!({"title": "Öl", "count": 3, "tags": ["a"], "by": {"name": null}});
        assert_eq!(schema.check(&good), Ok(()));
        for (pointer, value, why) in [
            ("/title", json!(""), "`title` must have at least 1 characters, has 0"),
            ("/title", json!("öööööö"), "`title` may have at most 5 characters, has 6"),
            ("/title", json!(1), "`title` must be of type string"),
            ("/count", json!(-1), "`count` must be at least 0, is -1"),
            ("/count", json!(10), "`count` must be less than 10, is 10"),
            ("/count", json!(1.5), "`count` must be of type integer"),
            ("/tags", json!([]), "`tags` must have at least 1 items, has 0"),
            ("/tags", json!(["a", "b", "a"]), "`tags` may have at most 2 items, has 3"),
            ("/tags/0", json!("c"), "`tags[0]` must be one of [\"a\",\"b\"]"),
            ("/by", json!({}), "`by` must have the field `name`"),
            ("/by/name", json!(1), "`by.name` must be of type string or null"),
        ] {
            let mut bad = good.clone();
            *bad.pointer_mut(pointer).unwrap() = value;
            let told = schema.check(&bad).unwrap_err();
            assert!(told.contains(why), "{told}");
        }
        let mut more = good.clone();
        more["more"] = json!(1);
        assert_eq!(schema.check(&more), Err("the value must not have the field `more`".to_owned()));
        for (schema, good, bad) in [
            (json!({"oneOf": [{"type": "number"}, {"const": 1}]}), json!(2), json!(1)),
            (json!({"allOf": [{"minimum": 1}, {"maximum": 2}]}), json!(2), json!(3)),
            (json!({"not": {"type": "null"}}), json!(1), Value::Null),
            (json!({"prefixItems": [{"type": "null"}], "items": false}), json!([null]), json!([null, 1])),
            (json!({"additionalProperties": {"type": "null"}}), json!({"a": null}), json!({"a": 1})),
            (json!({"minProperties": 1}), json!({"a": 1}), json!({})),
            (json!({"exclusiveMinimum": 1, "type": "number"}), json!(1.1), json!(1)),
            (json!({"type": "integer"}), json!(3.0), json!("3")),
        ] {
            let checked = Schema::new(schema.clone()).unwrap();
            assert_eq!(checked.check(&good), Ok(()), "{schema}");
            assert!(checked.check(&bad).is_err(), "{schema}");
        }
    }

    #[test]
    fn keywords_that_are_not_checked_are_refused_by_their_path() {
        for (schema, field) in [
            (json!({"pattern": "a"}), "pattern"),
            (json!({"properties": {"a": {"multipleOf": 2}}}), "properties.a.multipleOf"),
            (json!({"$defs": {"x": {"items": {"uniqueItems": true}}}}), "$defs.x.items.uniqueItems"),
            (json!({"anyOf": [{"if": {}}]}), "anyOf[0].if"),
            (json!({"type": "text"}), "type"),
            (json!({"$ref": "#/$defs/none"}), "$ref"),
            (json!({"$ref": "https://example.com/schema"}), "$ref"),
            (json!({"required": "a"}), "required"),
            (json!({"minLength": -1}), "minLength"),
            (json!({"items": 3}), "items"),
            (json!({"anyOf": []}), "anyOf"),
        ] {
            let refused = Schema::new(schema).unwrap_err().to_string();
            assert!(refused.contains(field), "{refused}");
        }
        assert!(Schema::new(json!([])).is_err());
    }

    #[test]
    fn schemas_that_refer_to_themselves_end() {
        let loops = Schema::new(json!({"$ref": "#"})).unwrap();
        assert!(loops.check(&json!(1)).unwrap_err().contains("too often"));
        let wide = json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}, {"$ref": "#"}]});
        assert!(Schema::new(wide).unwrap().check(&json!(1)).is_err());
        let tree = json!({
            "type": "object", "properties": {"next": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}},
            "required": ["next"], "additionalProperties": false,
        });
        let tree = Schema::new(tree).unwrap();
        assert_eq!(tree.check(&json!({"next": {"next": null}})), Ok(()));
        assert!(tree.check(&json!({"next": {"next": 1}})).is_err());
        assert_eq!(tree.for_provider(), None);
        let mut deep = json!({});
        for _ in 0..100 {
            deep = json!({"not": deep});
        }
        assert!(Schema::new(deep).unwrap_err().to_string().contains("levels deep"));
    }

    #[test]
    fn providers_get_only_what_all_of_them_take() {
        let sent = Schema::new(schema()).unwrap().for_provider().unwrap();
        assert_eq!(sent["properties"]["title"], json!({"type": "string"}));
        assert_eq!(sent["properties"]["tags"]["items"], json!({"enum": ["a", "b"]}));
        assert_eq!(sent["properties"]["by"]["anyOf"][1]["additionalProperties"], false);
        assert!(!sent.to_string().contains('$') && !sent.to_string().contains("minItems"), "{sent}");
        for (key, value) in
            [("required", json!(["title"])), ("additionalProperties", json!(true)), ("allOf", json!([{}]))]
        {
            let mut schema = schema();
            schema[key] = value;
            assert_eq!(Schema::new(schema).unwrap().for_provider(), None, "{key}");
        }
        assert_eq!(Schema::new(json!({"type": "array"})).unwrap().for_provider(), None);
        assert_eq!(Schema::new(json!({"type": "object"})).unwrap().for_provider(), None);
    }
}
