use domain::tools::{ALL, Surface, ToolDef};
use serde_json::{Map, json};

use super::*;

/// A valid value for a property.
fn sample(name: &str, schema: &Value) -> Value {
    let id = |prefix: &str| json!(format!("{prefix}_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c"));
    if let Some(choices) = schema["enum"].as_array() {
        return choices[0].clone();
    }
    if let Some(examples) = schema["examples"].as_array() {
        return examples[0].clone();
    }
    match (name, types(schema)[0]) {
        ("agent_id", _) => id("agt"),
        ("action_id", _) => id("act"),
        ("asset_id", _) => id("ast"),
        ("run_id", _) => id("run"),
        ("proposal_id", _) => id("prp"),
        ("fact_id", _) => id("fct"),
        ("project", _) => json!("default"),
        ("id", _) => json!("6dcb09b5b57875f334f61aebed695e2e4193db5e"),
        ("at" | "from", _) => json!("2026-12-01T09:00:00Z"),
        (_, "string") => json!("x"),
        (_, "integer") => schema["minimum"].clone(),
        (_, "number") => json!(0.5),
        (_, "boolean") => json!(true),
        (_, "array") if schema["items"]["type"] == "object" => {
            let properties = schema["items"]["properties"].as_object().unwrap();
            let item: Map<_, _> =
                properties.iter().map(|(name, schema)| (name.clone(), sample(name, schema))).collect();
            json!([item])
        }
        (_, "array") => json!(["x"]),
        (_, other) => panic!("{name}: {other}"),
    }
}

fn types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::Array(types) => types.iter().map(|kind| kind.as_str().unwrap()).collect(),
        kind => kind.as_str().into_iter().collect(),
    }
}

fn try_read(def: &ToolDef, arguments: &Map<String, Value>) -> Result<(), String> {
    (performer(def.name).unwrap().read)(arguments.clone()).map_err(|Failure(text)| text)
}

#[test]
fn every_schema_describes_what_its_function_reads() {
    for def in MCP {
        let schema = (def.input)();
        let properties = schema["properties"].as_object().unwrap();
        let required: Vec<&str> =
            schema["required"].as_array().unwrap().iter().flat_map(Value::as_str).collect();
        let all: Map<String, Value> =
            properties.iter().map(|(name, schema)| (name.clone(), sample(name, schema))).collect();
        assert_eq!(try_read(def, &all), Ok(()), "{def:?} {all:?}");

        for (name, schema) in properties {
            let mut without = all.clone();
            without.remove(name);
            let missing = Err(format!("Missing required parameter: {name}"));
            let expected = if required.contains(&&**name) { missing } else { Ok(()) };
            assert_eq!(try_read(def, &without), expected, "{def:?} without {name}");

            let with = |value: Value| {
                let mut arguments = all.clone();
                arguments.insert(name.clone(), value);
                try_read(def, &arguments)
            };
            let is_nullable = types(schema).contains(&"null")
                || schema["anyOf"].as_array().is_some_and(|shapes| shapes.contains(&json!({"type": "null"})));
            assert_eq!(with(Value::Null).is_ok(), is_nullable, "{def:?} {name}: null");
            assert!(schema.get("enum").is_none_or(Value::is_array), "{def:?} {name}");
            for choice in schema["enum"].as_array().into_iter().flatten() {
                assert_eq!(with(choice.clone()), Ok(()), "{def:?} {name}: {choice}");
            }
            let wrong = if types(schema).contains(&"boolean") { json!(7) } else { json!(true) };
            let error = with(wrong).unwrap_err();
            assert!(error.starts_with(&format!("{name}: must be ")), "{def:?} {name}: {error}");
        }

        let mut more = all.clone();
        more.insert("unheard_of".to_owned(), json!(1));
        let error = try_read(def, &more).unwrap_err();
        let known = error.strip_prefix("unheard_of: is not a field here; the fields are ");
        let mut known: Vec<&str> =
            known.unwrap_or_else(|| panic!("{error}")).split('`').skip(1).step_by(2).collect();
        known.sort_unstable();
        assert_eq!(known, properties.keys().collect::<Vec<_>>(), "{def:?}");
    }
}

#[test]
fn every_tool_of_mcp_says_what_it_takes_returns_and_changes() {
    for def in MCP {
        let name = def.name;
        let shown = described(def);
        assert!(def.title.is_some() && shown.description.is_some(), "{name}");
        assert_eq!(shown.input_schema["type"], json!("object"), "{name}");
        assert_eq!(shown.input_schema["additionalProperties"], json!(false), "{name}");
        if let Some(output) = shown.output_schema {
            assert_eq!(output["type"], json!("object"), "{name}");
        }
        let hints = shown.annotations.unwrap();
        let reads = ["read_", "list_", "lookup_", "check_", "explain_", "preview_", "search_"]
            .iter()
            .any(|verb| name.starts_with(verb));
        assert_eq!(hints.read_only_hint.unwrap_or_default(), reads, "{name}");
        assert_eq!(hints.open_world_hint, Some(false), "{name}");
        let replaces = matches!(name, "parse_mode" | "restore_context" | "correct_fact" | "forget_fact");
        assert_eq!(hints.destructive_hint, (!reads).then_some(replaces), "{name}");
        assert_eq!(
            hints.idempotent_hint.unwrap_or_default(),
            !reads
                && matches!(
                    name,
                    "update_context" | "correct_fact" | "forget_fact" | "sync_documentation" | "add_commit"
                ),
            "{name}"
        );
    }
}

#[test]
fn a_tool_is_listed_and_performed_exactly_if_its_surfaces_contain_mcp() {
    let listed: Vec<_> = list(Scope::Admin, &ToolSets::default()).into_iter().map(|tool| tool.name).collect();
    assert_eq!(listed, MCP.iter().map(|def| def.name).collect::<Vec<_>>());
    for def in ALL.into_iter().flatten() {
        // The area of themes performs its own tools.
        let is_in_table = MCP.iter().chain(THEME).any(|of_mcp| of_mcp == def);
        let is_performed = performer(def.name).is_some() || THEME.contains(def);
        assert_eq!(def.is_offered_on(Surface::Mcp), is_in_table, "{def:?}");
        assert_eq!(matches!(decision(def.name), Decision::Allowed(_)), is_performed, "{def:?}");
    }
}
