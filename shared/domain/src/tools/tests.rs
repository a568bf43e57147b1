use proptest::prelude::*;
use serde_json::{Value, json};

use super::actions::{
    CHANGE_ACTION, COMMAND_ACTION, ChangeAction, CommandAction, GENERATE_ACTIONS, QUERY_ACTIONS, QueryActions,
};
use super::agents::READY_TO_CREATE;
use super::assets::{GENERATE_ASSET, QUERY_ASSETS, QueryAssets, READ_ASSET, ReadAsset, SAVE_OUTPUT};
use super::questions::{ASK_PERSON, AskPerson};
use super::results::{READ_RESULT, ReadResult};
use super::runs::{EXPLAIN_OWN_ACTION, ExplainOwnAction};
use super::*;
use crate::actions::{ActionChange, ActionCommand, ActionState};
use crate::assets::{AssetType, NewAsset};
use crate::chats::signals::Deliverable;
use crate::ids::{ActionId, AssetId, CallId};

fn names(tools: impl Iterator<Item = &'static ToolDef>) -> String {
    tools.map(|tool| tool.name).collect::<Vec<_>>().join(" ")
}

#[test]
fn names_are_read_back() {
    for table in ALL {
        for tool in table {
            assert_eq!(find(table, tool.name), Some(*tool), "names are unique");
        }
        for unknown in ["", "Query_Actions", "save_asset", "query_actions "] {
            assert_eq!(find(table, unknown), None, "{unknown:?}");
        }
    }
}

#[test]
fn each_place_offers_its_own() {
    let run = |grants: &[&str]| {
        let grants: Vec<String> = grants.iter().map(ToString::to_string).collect();
        names(offered(LOOP, Setting::Run { grants: &grants }))
    };
    let unattended =
        "query_actions query_assets read_asset save_output ask_person note nothing_new query_practice";
    let cases = [
        (
            names(offered(LOOP, Setting::Chat)),
            "query_actions query_assets read_asset generate_asset generate_actions change_action read_messages query_practice explain_action command_action",
        ),
        (
            names(offered(LOOP, Setting::AboutAction)),
            "query_actions query_assets read_asset generate_asset generate_actions change_action read_messages query_practice explain_action command_action",
        ),
        (names(offered(LOOP, Setting::Setup)), "ready_to_create read_messages"),
        (run(&[]), unattended),
        // What needs no grant is there with and without one; what no run can use is in none.
        (
            run(&["query_assets", "ready_to_create", "change_action", "command_action", "gone_since"]),
            unattended,
        ),
        (
            run(&["generate_actions"]),
            "query_actions query_assets read_asset generate_actions save_output ask_person note nothing_new query_practice",
        ),
        (
            grantable().collect::<Vec<_>>().join(" "),
            "query_actions query_assets read_asset generate_asset generate_actions save_output ask_person note nothing_new query_practice edit_theme apply_theme_changes",
        ),
        (
            names(LOOP.iter().copied().filter(|tool| tool.needs_grant())),
            "generate_actions ready_to_create change_action command_action",
        ),
    ];
    for (offered, expected) in cases {
        assert_eq!(offered, expected);
    }
}

#[test]
fn what_models_are_told_changes_only_on_purpose() {
    let specs: Vec<Value> = LOOP.iter().chain(OWN).map(|tool| json!(tool.spec())).collect();
    insta::assert_json_snapshot!(specs);
}

#[test]
fn granted_tools_are_bound_by_their_schemas() {
    let grants = ["generate_actions".to_owned(), "gone_since".to_owned()];
    let spec = GENERATE_ACTIONS.spec();
    let bound = ToolSpecForHash { name: spec.name, schema: spec.input_schema };
    assert_eq!(approved(&grants, of_projects(false, false)), std::slice::from_ref(&bound));
    let names: Vec<String> =
        approved(&grants, of_projects(true, false)).into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, [&bound.name, "read_document", "sync_documentation"]);
    let of_theme = |grants: &[&str]| {
        let grants: Vec<String> = grants.iter().map(ToString::to_string).collect();
        let tools = approved(&grants, of_projects(false, true));
        tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>().join(" ")
    };
    let reads = "list_files read_file read_lines extract_region grep_content search_files theme_check show_changes \
        get_dependency_graph find_references trace_rendering_chain get_schema_settings check_theme_setting diagnose_visibility \
        analyze_variants check_performance generate_placeholder run_command read_plan";
    let has = |grants: &[&str], name: &str| of_theme(grants).split(' ').any(|tool| tool == name);
    assert_eq!(of_theme(&[]), reads);
    assert!(has(&["edit_theme"], "edit_lines") && !has(&["edit_theme"], "apply_changes"));
    assert!(has(&["apply_theme_changes"], "apply_changes") && !has(&["apply_theme_changes"], "edit_lines"));
}

#[test]
fn arguments_are_read_or_refused_with_a_sentence() {
    let asset_id: AssetId = "ast_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c".parse().unwrap();
    let output = |content: &str, asset_type| {
        ToolCall::SaveOutput(NewAsset {
            title: "T".into(),
            description: String::new(),
            asset_type,
            content: content.into(),
        })
    };
    let action_id: ActionId = "act_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c".parse().unwrap();
    let changed = |action_id| {
        let change = ActionChange { title: Some("Other".into()), ..ActionChange::default() };
        ToolCall::ChangeAction(Box::new(ChangeAction { action_id, change }))
    };
    let all_actions = ToolCall::QueryActions(QueryActions { state: None, limit: None });
    let assets = |asset_type, query: Option<&str>, limit| {
        Ok(ToolCall::QueryAssets(QueryAssets { asset_type, query: query.map(Into::into), limit }))
    };
    type Case = (&'static ToolDef, Value, Result<ToolCall, &'static str>);
    let cases: Vec<Case> = vec![
        (&QUERY_ACTIONS, Value::Null, Ok(all_actions.clone())),
        (&QUERY_ACTIONS, json!({"state": null, "mood": "grey"}), Ok(all_actions)),
        (
            &QUERY_ACTIONS,
            json!({"state": "needs_approval", "limit": 100}),
            Ok(ToolCall::QueryActions(QueryActions {
                state: Some(ActionState::NeedsApproval),
                limit: Some(100),
            })),
        ),
        (
            &EXPLAIN_OWN_ACTION,
            Value::Null,
            Ok(ToolCall::ExplainAction(ExplainOwnAction { action_id: None, at: None })),
        ),
        (
            &EXPLAIN_OWN_ACTION,
            json!({"at": "2026-11-21T12:00:00Z"}),
            Err("at: must be given together with action_id"),
        ),
        (
            &EXPLAIN_OWN_ACTION,
            json!({"action_id": "the report"}),
            Err("action_id: must be `act_` followed by 32 lower-case hexadecimal digits"),
        ),
        (&QUERY_ACTIONS, json!([]), Err("its arguments are not a JSON object")),
        (&QUERY_ACTIONS, json!({"limit": 101}), Err("limit: must be 1 to 100, is 101")),
        (&QUERY_ACTIONS, json!({"limit": 0}), Err("limit: must be 1 to 100, is 0")),
        (&QUERY_ACTIONS, json!({"limit": "10"}), Err("limit: must be a whole number from 0, is \"10\"")),
        (
            &QUERY_ACTIONS,
            json!({"state": "open"}),
            Err(
                "state: must be one of `defined`, `scheduled`, `paused`, `in_progress`, `completed`, `failed`, \
                 `needs_approval`, `dismissed`, is `open`",
            ),
        ),
        (&QUERY_ASSETS, json!({"query": "  "}), assets(None, None, None)),
        (
            &QUERY_ASSETS,
            json!({"asset_type": "email", "query": " Müller ", "limit": 3}),
            assets(Some(AssetType::Email), Some("Müller"), Some(3)),
        ),
        (&QUERY_ASSETS, json!({"query": "q".repeat(201)}), Err("query: must be 1 to 200 characters, is 201")),
        (
            &READ_ASSET,
            json!({"asset_id": asset_id}),
            Ok(ToolCall::ReadAsset(ReadAsset { asset_id, from_byte: 0 })),
        ),
        (
            &READ_ASSET,
            json!({"asset_id": asset_id, "from_byte": 49_152}),
            Ok(ToolCall::ReadAsset(ReadAsset { asset_id, from_byte: 49_152 })),
        ),
        (&READ_ASSET, json!({}), Err("asset_id: is required")),
        (
            &READ_ASSET,
            json!({"asset_id": "the report"}),
            Err("asset_id: must be `ast_` followed by 32 lower-case hexadecimal digits"),
        ),
        (
            &READ_RESULT,
            json!({"call_id": "2.0", "from_char": 100_000}),
            Ok(ToolCall::ReadResult(ReadResult { call_id: CallId::new(2, 0), from_char: 100_000 })),
        ),
        (&READ_RESULT, json!({"call_id": "2.0"}), Err("from_char: is required")),
        (
            &READ_RESULT,
            json!({"call_id": "the last", "from_char": 0}),
            Err("call_id: must be two numbers with a dot between them"),
        ),
        (&SAVE_OUTPUT, json!({"title": "T", "content": "x"}), Ok(output("x", AssetType::Document))),
        (
            &SAVE_OUTPUT,
            json!({"title": "T", "content": "x", "asset_type": "code"}),
            Ok(output("x", AssetType::Code)),
        ),
        (&SAVE_OUTPUT, json!({"title": "T", "content": " \n"}), Err("content: must not be empty")),
        (&ASK_PERSON, json!({"question": " "}), Err("question: must not be blank (1 to 2000 characters)")),
        (
            &ASK_PERSON,
            json!({"question": "Which?"}),
            Ok(ToolCall::AskPerson(AskPerson { question: "Which?".into(), choices: Vec::new() })),
        ),
        (&CHANGE_ACTION, json!({"title": "Other"}), Ok(changed(None))),
        (&CHANGE_ACTION, json!({"action_id": action_id, "title": "Other"}), Ok(changed(Some(action_id)))),
        (
            &CHANGE_ACTION,
            json!({"action_id": "the report", "title": "Other"}),
            Err("action_id: must be `act_` followed by 32 lower-case hexadecimal digits"),
        ),
        (&CHANGE_ACTION, json!("pause it"), Err("its arguments are not a JSON object")),
        (
            &COMMAND_ACTION,
            json!({"action_id": action_id, "command": "run_now"}),
            Ok(ToolCall::CommandAction(CommandAction {
                action_id: Some(action_id),
                command: ActionCommand::RunNow,
            })),
        ),
        (
            &COMMAND_ACTION,
            json!({"command": "delete"}),
            Err("command: must be one of `pause`, `resume`, `run_now`, `rehearse`, `dismiss`, is `delete`"),
        ),
        (&COMMAND_ACTION, json!({}), Err("command: is required")),
        (
            &CHANGE_ACTION,
            json!({"grants": ["generate_actions"]}),
            Err(
                "grants: is not a field here; the fields are `title`, `description`, `priority`, `task_config`, `schedule`, `conditions`",
            ),
        ),
        (&GENERATE_ASSET, json!({"title": "T"}), Err("`content` is missing")),
        (&GENERATE_ACTIONS, json!({"actions": []}), Err("it has no action")),
    ];
    for (tool, input, expected) in cases {
        let expected = expected.map_err(|why| format!("The call of {} was not made: {why}.", tool.name));
        assert_eq!(ToolCall::parse(tool, &input), expected, "{input}");
    }
}

#[test]
fn what_is_delivered_by_a_tool_is_the_same_as_by_a_signal() {
    let cases = [
        (&GENERATE_ASSET, json!({"title": "T", "description": "d", "asset_type": "code", "content": "x"})),
        (
            &GENERATE_ACTIONS,
            json!({"actions": [{
                "title": "T", "description": "d",
                "task_config": {"instructions": "i", "expected_output": "e"}, "schedule": {"every": "1h"},
            }]}),
        ),
        (
            &READY_TO_CREATE,
            json!({"title": "T", "goal": "g", "success_criteria": "s", "timeline": "Ongoing"}),
        ),
    ];
    for (tool, input) in cases {
        let expected = Deliverable::from_tool_call(tool.name, &input).map(ToolCall::Deliver);
        assert_eq!(ToolCall::parse(tool, &input).ok(), expected);
    }
}

/// Every schema is one of an object that names its required properties and takes no others.
#[test]
fn schemas_are_closed_objects() {
    fn check(schema: &Value, path: &str) {
        let Some(properties) = schema["properties"].as_object() else { return };
        let kind = &schema["type"];
        assert!(*kind == json!("object") || *kind == json!(["object", "null"]), "{path}: {kind}");
        assert_eq!(schema["additionalProperties"], json!(false), "{path}");
        for required in schema["required"].as_array().into_iter().flatten() {
            assert!(properties.contains_key(required.as_str().unwrap()), "{path}: {required}");
        }
        for (name, property) in properties {
            check(property, &format!("{path}.{name}"));
            check(&property["items"], &format!("{path}.{name}[]"));
        }
    }
    for tool in ALL.into_iter().flatten() {
        let schema = (tool.input)();
        assert!(schema["properties"].is_object(), "{}", tool.name);
        check(&schema, tool.name);
    }
}

#[test]
fn a_table_holds_the_tools_of_its_surfaces() {
    for tool in LOOP.iter().chain(OWN) {
        let without_arguments = ToolCall::parse(tool, &json!({}));
        assert!(
            !without_arguments.is_err_and(|error| error.contains("not available")),
            "{tool:?} has no parser"
        );
        assert!(tool.surfaces.iter().any(|surface| *surface != Surface::Mcp), "{tool:?}");
    }
    for tool in MCP {
        assert!(tool.is_offered_on(Surface::Mcp), "{tool:?}");
        assert!(tool.title.is_some(), "{tool:?}");
    }
}

#[test]
fn a_schedule_has_three_kinds_with_valid_examples() {
    let properties = |tool: &ToolDef| (tool.input)()["properties"]["schedule"].clone();
    let schema = properties(&schedules::PREVIEW_SCHEDULE);
    let fields = schema["properties"].as_object().unwrap();
    let kinds = ["at", "every", "cron"];
    assert_eq!(schema["anyOf"], json!(kinds.map(|kind| json!({"required": [kind]}))));
    assert!(fields["timezone"]["description"].as_str().unwrap().contains("IANA"));
    // The example of each kind is valid with the examples of the other properties.
    let mut examples = schema["examples"].as_array().unwrap().clone();
    for kind in kinds {
        let example = |name: &str| (name.to_owned(), fields[name]["examples"][0].clone());
        let names = [kind, "timezone", "max_age", "jitter"];
        examples.push(Value::Object(names.map(example).into_iter().collect()));
    }
    let proposed = properties(&actions::PROPOSE_ACTION);
    assert!(proposed["description"].as_str().unwrap().contains(schedules::PREVIEW_SCHEDULE.name));
    examples.extend(proposed["examples"].as_array().unwrap().iter().cloned());
    assert_eq!(examples.len(), 5);
    for example in examples {
        let input: crate::schedule::ScheduleInput = serde_json::from_value(example.clone()).unwrap();
        assert!(input.validate().is_ok(), "{example}");
    }
    // Every field of a schedule is described.
    let unknown = serde_json::from_value::<crate::schedule::ScheduleInput>(json!({"x": 1})).unwrap_err();
    for name in fields.keys() {
        assert!(unknown.to_string().contains(&format!("`{name}`")), "{name}: {unknown}");
    }
    assert_eq!(unknown.to_string().matches('`').count(), 2 * (fields.len() + 1), "{unknown}");
}

/// The schema of propose_action refers to preview_schedule, so whoever is offered the one is offered the other.
#[test]
fn a_set_that_proposes_actions_previews_schedules() {
    for set in SETS.iter().filter(|set| set.tools.contains(&&actions::PROPOSE_ACTION)) {
        assert!(set.tools.contains(&&schedules::PREVIEW_SCHEDULE), "{}", set.name);
    }
}

/// A result schema lists what callers can rely on: some properties are required, and all of these are described.
#[test]
fn result_schemas_name_their_required_properties() {
    fn check(schema: &Value, path: &str) {
        let properties = schema["properties"].as_object().unwrap();
        let required = schema["required"].as_array().unwrap();
        assert!(!required.is_empty(), "{path}");
        for name in required {
            assert!(properties.contains_key(name.as_str().unwrap()), "{path}: {name}");
        }
        for (name, property) in properties {
            for inner in [property, &property["items"]] {
                if inner.get("properties").is_some() {
                    check(inner, &format!("{path}.{name}"));
                }
            }
        }
    }
    let described: Vec<_> = MCP.iter().filter_map(|tool| Some((tool.name, tool.output?))).collect();
    assert!(described.len() >= 15, "{}", described.len());
    for (name, output) in described {
        check(&output(), name);
    }
}

proptest! {
    /// Whatever a model sends, the answer is a call or a sentence.
    #[test]
    fn no_arguments_panic(text in "\\PC{0,40}", number: i64, which in 0..LOOP.len()) {
        let fields = ["state", "limit", "asset_type", "query", "asset_id", "title", "content", "question", "actions"];
        for value in [json!(text), json!(number), json!([text]), json!({"title": text, "content": number})] {
            let input: serde_json::Map<String, Value> =
                fields.iter().map(|field| ((*field).to_owned(), value.clone())).collect();
            for input in [Value::Object(input), value.clone()] {
                if let Err(sentence) = ToolCall::parse(LOOP[which], &input) {
                    prop_assert!(sentence.starts_with("The call of ") && sentence.ends_with('.'));
                }
            }
        }
    }
}
