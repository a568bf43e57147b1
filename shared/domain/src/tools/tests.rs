use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::actions::{ActionChange, ActionState};
use crate::assets::{AssetType, NewAsset};
use crate::chats::signals::Deliverable;
use crate::ids::AssetId;

fn names(tools: impl Iterator<Item = Tool>) -> String {
    tools.map(Tool::name).collect::<Vec<_>>().join(" ")
}

#[test]
fn names_are_read_back() {
    for tool in Tool::ALL {
        assert_eq!(Tool::from_name(tool.name()), Some(tool));
    }
    for unknown in ["", "Query_Actions", "save_asset", "query_actions "] {
        assert_eq!(Tool::from_name(unknown), None, "{unknown:?}");
    }
}

#[test]
fn each_place_offers_its_own() {
    let run = |grants: &[&str]| {
        let grants: Vec<String> = grants.iter().map(ToString::to_string).collect();
        names(Tool::offered_in_run(&grants))
    };
    let unattended = "query_actions query_assets read_asset save_output ask_person";
    let cases = [
        (
            names(Tool::offered_in_chat()),
            "query_actions query_assets read_asset generate_asset generate_actions",
        ),
        (
            names(Tool::offered_about_action()),
            "query_actions query_assets read_asset generate_asset generate_actions change_action",
        ),
        (names(Tool::offered_in_setup()), "ready_to_create"),
        (run(&[]), unattended),
        // What needs no grant is there with and without one; what no run can use is in none.
        (run(&["query_assets", "ready_to_create", "change_action", "gone_since"]), unattended),
        (
            run(&["generate_actions"]),
            "query_actions query_assets read_asset generate_actions save_output ask_person",
        ),
        (
            Tool::grantable().collect::<Vec<_>>().join(" "),
            "query_actions query_assets read_asset generate_asset generate_actions save_output ask_person",
        ),
        (
            names(Tool::ALL.into_iter().filter(|tool| tool.needs_grant())),
            "generate_actions ready_to_create change_action",
        ),
    ];
    for (offered, expected) in cases {
        assert_eq!(offered, expected);
    }
}

#[test]
fn what_models_are_told_changes_only_on_purpose() {
    let specs: Vec<Value> = Tool::ALL.map(|tool| json!(tool.spec())).to_vec();
    insta::assert_json_snapshot!(specs);
}

#[test]
fn granted_tools_are_bound_by_their_schemas() {
    let grants = ["generate_actions".to_owned(), "gone_since".to_owned()];
    let spec = Tool::GenerateActions.spec();
    let bound = ToolSpecForHash { name: spec.name, schema: spec.input_schema };
    assert_eq!(Tool::granted(&grants), [bound]);
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
    let all_actions = ToolCall::QueryActions { state: None, limit: 20 };
    let assets = |asset_type, query: Option<&str>, limit| {
        Ok(ToolCall::QueryAssets { asset_type, query: query.map(Into::into), limit })
    };
    type Case = (Tool, Value, Result<ToolCall, &'static str>);
    let cases: Vec<Case> = vec![
        (Tool::QueryActions, Value::Null, Ok(all_actions.clone())),
        (Tool::QueryActions, json!({"state": null, "mood": "grey"}), Ok(all_actions)),
        (
            Tool::QueryActions,
            json!({"state": "needs_approval", "limit": 100}),
            Ok(ToolCall::QueryActions { state: Some(ActionState::NeedsApproval), limit: 100 }),
        ),
        (Tool::QueryActions, json!([]), Err("its arguments are not a JSON object")),
        (Tool::QueryActions, json!({"limit": 101}), Err("limit: must be 1 to 100, is 101")),
        (Tool::QueryActions, json!({"limit": 0}), Err("limit: must be 1 to 100, is 0")),
        (Tool::QueryActions, json!({"limit": "10"}), Err("limit: must be a whole number from 0, is \"10\"")),
        (
            Tool::QueryActions,
            json!({"state": "open"}),
            Err(
                "state: must be one of `defined`, `scheduled`, `paused`, `in_progress`, `completed`, `failed`, \
                 `needs_approval`, `dismissed`, is `open`",
            ),
        ),
        (Tool::QueryAssets, json!({"query": "  "}), assets(None, None, 20)),
        (
            Tool::QueryAssets,
            json!({"asset_type": "email", "query": " Müller ", "limit": 3}),
            assets(Some(AssetType::Email), Some("Müller"), 3),
        ),
        (
            Tool::QueryAssets,
            json!({"query": "q".repeat(201)}),
            Err("query: must be 1 to 200 characters, is 201"),
        ),
        (Tool::ReadAsset, json!({"asset_id": asset_id}), Ok(ToolCall::ReadAsset { asset_id, from_byte: 0 })),
        (
            Tool::ReadAsset,
            json!({"asset_id": asset_id, "from_byte": 49_152}),
            Ok(ToolCall::ReadAsset { asset_id, from_byte: 49_152 }),
        ),
        (Tool::ReadAsset, json!({}), Err("asset_id: is required")),
        (
            Tool::ReadAsset,
            json!({"asset_id": "the report"}),
            Err("asset_id: must be `ast_` followed by 32 lower-case hexadecimal digits"),
        ),
        (Tool::SaveOutput, json!({"title": "T", "content": "x"}), Ok(output("x", AssetType::Document))),
        (
            Tool::SaveOutput,
            json!({"title": "T", "content": "x", "asset_type": "code"}),
            Ok(output("x", AssetType::Code)),
        ),
        (Tool::SaveOutput, json!({"title": "T", "content": " \n"}), Err("content: must not be empty")),
        (
            Tool::AskPerson,
            json!({"question": " "}),
            Err("question: must not be blank (1 to 2000 characters)"),
        ),
        (
            Tool::AskPerson,
            json!({"question": "Which?"}),
            Ok(ToolCall::AskPerson { question: "Which?".into() }),
        ),
        (
            Tool::ChangeAction,
            json!({"title": "Other"}),
            Ok(ToolCall::ChangeAction(ActionChange {
                title: Some("Other".into()),
                ..ActionChange::default()
            })),
        ),
        (
            Tool::ChangeAction,
            json!({"grants": ["generate_actions"]}),
            Err(
                "grants: is not a field here; the fields are `title`, `description`, `priority`, `task_config`, `schedule`",
            ),
        ),
        (Tool::GenerateAsset, json!({"title": "T"}), Err("`content` is missing")),
        (Tool::GenerateActions, json!({"actions": []}), Err("it has no action")),
    ];
    for (tool, input, expected) in cases {
        let expected = expected.map_err(|why| format!("The call of {} was not made: {why}.", tool.name()));
        assert_eq!(tool.parse(&input), expected, "{input}");
    }
}

#[test]
fn what_is_delivered_by_a_tool_is_the_same_as_by_a_signal() {
    let cases = [
        (
            Tool::GenerateAsset,
            json!({"title": "T", "description": "d", "asset_type": "code", "content": "x"}),
        ),
        (
            Tool::GenerateActions,
            json!({"actions": [{
                "title": "T", "description": "d",
                "task_config": {"instructions": "i", "expected_output": "e"}, "schedule": {"every": "1h"},
            }]}),
        ),
        (
            Tool::ReadyToCreate,
            json!({"title": "T", "goal": "g", "success_criteria": "s", "timeline": "Ongoing"}),
        ),
    ];
    for (tool, input) in cases {
        let expected = Deliverable::from_tool_call(tool.name(), &input).map(ToolCall::Deliver);
        assert_eq!(tool.parse(&input).ok(), expected);
    }
}

/// Every schema is one of an object that names its required properties and takes no others.
#[test]
fn schemas_are_closed_objects() {
    fn check(schema: &Value, path: &str) {
        let Some(properties) = schema["properties"].as_object() else { return };
        assert_eq!(
            (&schema["type"], &schema["additionalProperties"]),
            (&json!("object"), &json!(false)),
            "{path}"
        );
        for required in schema["required"].as_array().into_iter().flatten() {
            assert!(properties.contains_key(required.as_str().unwrap()), "{path}: {required}");
        }
        for (name, property) in properties {
            check(property, &format!("{path}.{name}"));
            check(&property["items"], &format!("{path}.{name}[]"));
        }
    }
    for tool in Tool::ALL {
        let schema = tool.spec().input_schema;
        assert!(schema["properties"].is_object(), "{}", tool.name());
        check(&schema, tool.name());
    }
}

proptest! {
    /// Whatever a model sends, the answer is a call or a sentence.
    #[test]
    fn no_arguments_panic(text in "\\PC{0,40}", number: i64, which in 0..Tool::ALL.len()) {
        let fields = ["state", "limit", "asset_type", "query", "asset_id", "title", "content", "question", "actions"];
        for value in [json!(text), json!(number), json!([text]), json!({"title": text, "content": number})] {
            let input: serde_json::Map<String, Value> =
                fields.iter().map(|field| ((*field).to_owned(), value.clone())).collect();
            for input in [Value::Object(input), value.clone()] {
                if let Err(sentence) = Tool::ALL[which].parse(&input) {
                    prop_assert!(sentence.starts_with("The call of ") && sentence.ends_with('.'));
                }
            }
        }
    }
}
