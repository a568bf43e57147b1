//! Rules that client generators and readers rely on, checked for the whole document. Each failure names the place.

use std::collections::BTreeSet;

use serde_json::Value;

use super::METHODS;
use crate::openapi;

/// Each operation as "METHOD /path", with its description.
fn operations(document: &Value) -> impl Iterator<Item = (String, &Value)> {
    document["paths"].as_object().unwrap().iter().flat_map(|(path, item)| {
        let operations =
            item.as_object().unwrap().iter().filter(|(method, _)| METHODS.contains(&method.as_str()));
        operations.map(move |(method, operation)| (format!("{} {path}", method.to_uppercase()), operation))
    })
}

/// Each value of the document with its place.
fn each(value: &Value, place: &str, found: &mut impl FnMut(&str, &Value)) {
    found(place, value);
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| each(value, &format!("{place}/{name}"), found));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, value)| each(value, &format!("{place}/{i}"), found));
        }
        _ => {}
    }
}

/// Fails with all errors, one per line.
#[track_caller]
fn none(wrong: &[String]) {
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_reference_leads_somewhere() {
    let document = openapi();
    let mut wrong = Vec::new();
    each(&document, "#", &mut |place, value| {
        let Some(target) = value.get("$ref").and_then(Value::as_str) else { return };
        if document.pointer(target.trim_start_matches('#')).is_none() {
            wrong.push(format!("{place}: {target} is not there"));
        }
    });
    none(&wrong);
}

#[test]
fn each_operation_is_named_and_described() {
    let document = openapi();
    let (mut ids, mut wrong) = (BTreeSet::new(), Vec::new());
    for (route, operation) in operations(&document) {
        let id = operation["operationId"].as_str().unwrap_or_default();
        let words = id.split('_').count();
        if words < 2 || !id.bytes().all(|b| b.is_ascii_lowercase() || b == b'_') {
            wrong.push(format!(
                "{route}: its operation_id is {id:?} and must be a verb and a noun, such as read_agent"
            ));
        }
        if !ids.insert(id) {
            wrong.push(format!("{route}: another route has the operation_id {id}"));
        }
        for part in ["summary", "description"] {
            if operation[part].as_str().is_none_or(str::is_empty) {
                wrong.push(format!(
                    "{route} has no {part}: write a doc comment of two paragraphs on its handler"
                ));
            }
        }
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            if parameter.get("$ref").is_none() && parameter["description"].as_str().is_none_or(str::is_empty)
            {
                wrong.push(format!("{route}: the parameter {} has no description", parameter["name"]));
            }
        }
        for (status, response) in operation["responses"].as_object().unwrap() {
            if response.get("$ref").is_none() && response["description"].as_str().is_none_or(str::is_empty) {
                wrong.push(format!("{route}: the answer {status} has no description"));
            }
        }
    }
    none(&wrong);
}

#[test]
fn each_route_describes_the_parameters_of_its_path() {
    let document = openapi();
    let mut wrong = Vec::new();
    for (route, operation) in operations(&document) {
        let named: BTreeSet<&str> =
            route.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0)).collect();
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let described: BTreeSet<&str> =
            parameters.filter(|it| it["in"] == "path").filter_map(|it| it["name"].as_str()).collect();
        if named != described {
            wrong.push(format!("{route} describes the parameters {described:?} of its path"));
        }
    }
    none(&wrong);
}

#[test]
fn each_property_is_described() {
    let document = openapi();
    let mut wrong = Vec::new();
    each(&document["components"]["schemas"], "", &mut |place, value| {
        let Some(properties) = value.get("properties").and_then(Value::as_object) else { return };
        if place.ends_with("/properties") || place.contains("/example") {
            return;
        }
        for (name, property) in properties {
            if property["description"].as_str().is_none_or(str::is_empty) {
                wrong.push(format!("{place}: {name} has no description: write a doc comment on the field"));
            }
        }
    });
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        if schema["description"].as_str().is_none_or(str::is_empty) {
            wrong.push(format!("{name} has no description: write a doc comment on the type"));
        }
    }
    none(&wrong);
}

#[test]
fn descriptions_are_for_readers_of_http() {
    let document = openapi();
    let mut wrong = Vec::new();
    each(&document, "#", &mut |place, value| {
        let Some(text) =
            value.as_str().filter(|_| place.ends_with("/description") || place.ends_with("/summary"))
        else {
            return;
        };
        if ["[`", "`]", "](", "::", "Self"].iter().any(|rust| text.contains(rust)) {
            wrong.push(format!("{place} speaks of Rust: {text}"));
        }
    });
    none(&wrong);
}

#[test]
fn defaults_say_something() {
    let document = openapi();
    let mut wrong = Vec::new();
    each(&document, "#", &mut |place, value| {
        if value.get("default").is_some_and(Value::is_null) {
            wrong.push(format!(
                "{place}: a default of null makes clients believe that the field is always there"
            ));
        }
    });
    none(&wrong);
}

#[test]
fn each_page_refers_to_its_items() {
    let document = openapi();
    let pages = document["components"]["schemas"]
        .as_object()
        .unwrap()
        .iter()
        .filter(|(name, _)| name.starts_with("Page_"));
    let mut wrong = Vec::new();
    for (name, schema) in pages {
        if schema["properties"]["data"]["items"].get("$ref").is_none() {
            wrong.push(format!("{name} repeats the type of its items"));
        }
    }
    none(&wrong);
}

#[test]
fn each_route_declares_the_problems_that_all_share() {
    let document = openapi();
    let mut wrong = Vec::new();
    for (route, operation) in operations(&document) {
        let mut statuses = vec!["400", "403", "429", "500", "503", "507"];
        if operation.get("security").is_none() {
            statuses.extend(["401", "404", "413"]);
        }
        if !route.starts_with("GET ") {
            statuses.extend(["409", "415"]);
        }
        if route.starts_with("POST ") {
            statuses.push("422");
        }
        for status in statuses {
            if operation["responses"].get(status).is_none() {
                wrong.push(format!("{route} does not say that it can answer {status}"));
            }
        }
    }
    none(&wrong);
}
