use proptest::prelude::*;
use serde_json::{Value, json};

use super::Deliverable::{Actions, Asset, Invalid, ReadyToCreate, UseTool};
use super::*;
use crate::agents::{AgentDraft, Need};
use crate::assets::{AssetType, NewAsset};
use crate::work::{Priority, TaskConfig};

fn asset(content: &str) -> Deliverable {
    Asset(NewAsset {
        title: "T".into(),
        description: "D".into(),
        asset_type: AssetType::Code,
        content: content.into(),
    })
}

fn asset_json(content: &str) -> String {
    json!({"title": "T", "description": "D", "assetType": "code", "content": content}).to_string()
}

fn action() -> ActionDraft {
    ActionDraft {
        title: "Weekly post".into(),
        description: "Writes a post".into(),
        priority: Priority::High,
        task_config: TaskConfig { instructions: "Write it.".into(), expected_output: "400 words".into() },
        schedule: None,
        conditions: Vec::new(),
    }
}

const ACTION: &str = r#"{"title": "Weekly post", "description": "Writes a post", "priority": "high", "taskType": "scheduled",
  "taskConfig": {"instructions": "Write it.", "expectedOutput": "400 words"}}"#;

fn agent() -> AgentDraft {
    AgentDraft {
        name: "Launch".into(),
        goal: "A launch agent that ships: fast".into(),
        success_criteria: "- 10 users\n- 1 sale".into(),
        timeline: "Ongoing".into(),
        instructions: String::new(),
        first_action: None,
        needs: Vec::new(),
    }
}

const AGENT: &str = "TITLE: Launch\nGOAL: A launch agent that ships: fast\nSUCCESS_CRITERIA:\n- 10 users\n- 1 sale\nTIMELINE: Ongoing";

fn tool(input: Value) -> Deliverable {
    UseTool { name: "query_actions".into(), input }
}

fn invalid(signal: SignalKind, reason: &str, raw_len: usize) -> Deliverable {
    Invalid { signal, reason: reason.into(), raw_len }
}

#[track_caller]
fn check(reply: &str, text: &str, deliverables: &[Deliverable]) {
    let expected = Reply { text: text.into(), deliverables: deliverables.into() };
    assert_eq!(Reply::parse(reply), expected, "{reply}");
}

#[test]
fn talk_about_signals_is_chat() {
    for reply in [
        "",
        "\n",
        "Hello.\n\nHow are you?\n",
        "I would use GENERATE_ASSET here.",
        "I would use\n GENERATE_ASSET\n---\n{}",
        "GENERATE_ASSET",
        "GENERATE_ASSET\n",
        "GENERATE_ASSET\n--",
        "GENERATE_ASSET ---\n{}",
        "GENERATE_ASSET is a signal\n---\n{}",
        "GENERATE_ASSETS\n---\n{}",
        "GENERATE_ASSET\nThis makes an asset.\n---\n",
        "generate_asset\n---\n{}",
        "USE_TOOL",
        "USE_TOOL:",
        "USE_TOOL: \n",
        "USE_TOOL: query_actions and then",
        "Then USE_TOOL: query_actions",
        "USE_TOOL: a.b",
        "So: READY_TO_CREATE\n---\nTITLE: a",
        "\nREADY_TO_CREATE\n---\nTITLE: a",
        "Fine.\nREADY_TO_CREATE\n---\nTITLE: a",
        "READY_TO_CREATE, I think.",
        "READY_TO_CREATE\nTITLE: a",
        "```\nREADY_TO_CREATE\n---\nTITLE: a\n```",
        "```rust\nfn main() {}\n```\n",
        "```",
        "```\n```\n```\nGENERATE",
        "`code` at the start",
        "---\n{}",
    ] {
        check(reply, reply, &[]);
    }
}

#[test]
fn an_asset_is_read_from_its_json() {
    let json = asset_json("fn main() {}");
    let one = [asset("fn main() {}")];
    check(&format!("GENERATE_ASSET\n---\n{json}"), "", &one);
    check(&format!("GENERATE_ASSET  \n\n---\n\n{json}\n"), "", &one);
    check(&format!("GENERATE_ASSET\r\n---\r\n{json}\r\n"), "", &one);
    check(&format!("GENERATE_ASSET\n-----\n{json}"), "", &one);
    check(&format!("GENERATE_ASSET\n---{json}"), "", &one);
    check(&format!("Here:\n\nGENERATE_ASSET\n---\n{json}\n\nDone."), "Here:\n\n\nDone.", &one);
    check(&format!("GENERATE_ASSET\n---\n{json} There it is."), " There it is.", &one);
    check(&format!("GENERATE_ASSET\n---\n```json\n{json}\n```\nDone."), "Done.", &one);
    check(&format!("GENERATE_ASSET\n---\n```\n{json}```"), "", &one);
    check(&format!("```\nGENERATE_ASSET\n---\n{json}\n```\nDone."), "Done.", &one);
    check(&format!("```\nGENERATE_ASSET\n---\n```json\n{json}\n```\n```\nDone."), "Done.", &one);
    check(&format!("GENERATE_ASSET\n---\n```json\n{json}\nnot closed"), "not closed", &one);
    // The fence was not the payload's.
    check(&format!("GENERATE_ASSET\n---\n{json}\n```\ncode\n```"), "```\ncode\n```", &one);

    for content in
        ["{", "}}}", "\"{", "\\", "a\\\"{", "[{]", "  kept \n", "GENERATE_ASSET\n---\n{}", "```\n---"]
    {
        check(&format!("GENERATE_ASSET\n---\n{}\nDone.", asset_json(content)), "Done.", &[asset(content)]);
    }
    // Unescaped line ends in a string, as small models write them.
    let bare = "GENERATE_ASSET\n---\n{\"title\": \"T\", \"description\": \"D\",\n\"type\": \"Code\", \"content\": \"a\n\tb \\\"c\\\"\n\"}";
    check(bare, "", &[asset("a\n\tb \"c\"\n")]);
}

#[test]
fn the_keys_are_those_of_either_style_and_some_may_be_left_out() {
    let read = |name: &str, input: Value| Deliverable::from_tool_call(name, &input).unwrap();
    let full = json!({"title": " T ", "description": "D", "asset_type": "code", "content": "x"});
    assert_eq!(read("generate_asset", full), asset("x"));
    assert_eq!(
        read("generate_asset", json!({"title": "T", "content": "x", "description": null})),
        Asset(NewAsset {
            title: "T".into(),
            description: String::new(),
            asset_type: AssetType::Document,
            content: "x".into(),
        })
    );
    let flat = json!({
        "title": "Weekly post", "description": "Writes a post", "priority": "HIGH", "schedule": {"every": "7d"},
        "instructions": "Write it.", "expected_output": "400 words",
    });
    let scheduled = ActionDraft { schedule: Some(json!({"every": "7d"})), ..action() };
    assert_eq!(read("generate_actions", json!({"actions": [flat]})), Actions { actions: vec![scheduled] });
    assert_eq!(
        read("generate_actions", json!({"title": "A", "description": "Does it."})),
        Actions {
            actions: vec![ActionDraft {
                title: "A".into(),
                description: "Does it.".into(),
                priority: Priority::Medium,
                task_config: TaskConfig {
                    instructions: "Does it.".into(),
                    expected_output: "Does it.".into()
                },
                schedule: None,
                conditions: Vec::new(),
            }]
        }
    );
    let checked = |conditions: Value| {
        let action = json!({"title": "A", "description": "Does it.", "conditions": conditions});
        read("generate_actions", json!({"actions": [action]}))
    };
    let Actions { actions } = checked(json!([{"kind": "min_words", "words": 5}])) else { panic!() };
    assert_eq!(actions[0].conditions, [crate::work::Condition::MinWords { words: 5 }]);
    let Invalid { reason, .. } = checked(json!([{"kind": "min_words"}])) else { panic!() };
    assert!(
        reason.contains("`actions[0].conditions`") && reason.contains("[0].words: is required"),
        "{reason}"
    );
    let ready = json!({
        "title": "Launch", "goal": "A launch agent that ships: fast", "successCriteria": "- 10 users\n- 1 sale",
        "timeline": "Ongoing",
    });
    assert_eq!(read("ready_to_create", ready), ReadyToCreate(agent()));
    assert_eq!(Deliverable::from_tool_call("query_actions", &json!({})), None);
}

#[test]
fn actions_come_alone_or_in_a_list() {
    check(&format!("GENERATE_ACTIONS\n---\n{ACTION}"), "", &[Actions { actions: vec![action()] }]);
    check(
        &format!("GENERATE_ACTIONS\n---\n[{ACTION},\n{ACTION}]\nBoth."),
        "Both.",
        &[Actions { actions: vec![action(), action()] }],
    );
}

#[test]
fn a_tool_may_have_an_input() {
    check("USE_TOOL: query_actions", "", &[tool(json!({}))]);
    check("Let me look.\n\nUSE_TOOL:query_actions \n\nThen.", "Let me look.\n\n\nThen.", &[tool(json!({}))]);
    check(
        "USE_TOOL: query_actions\n{\"state\":\n \"due\"}\nThen.",
        "Then.",
        &[tool(json!({"state": "due"}))],
    );
    check("USE_TOOL: query_actions\n\n```json\n{}\n```\nThen.", "Then.", &[tool(json!({}))]);
    check("USE_TOOL: query_actions\n---\n{\"a\": 1}", "", &[tool(json!({"a": 1}))]);
    check("```\nUSE_TOOL: query_actions\n```\nThen.", "Then.", &[tool(json!({}))]);
    check("USE_TOOL: query_actions\n- a list\n", "- a list\n", &[tool(json!({}))]);
    check("USE_TOOL: query_actions\n[link]", "[link]", &[tool(json!({}))]);
    check("USE_TOOL: query_actions\n```\ncode\n```", "```\ncode\n```", &[tool(json!({}))]);
    check("USE_TOOL: query_actions\nUSE_TOOL: query_actions\r\n", "", &[tool(json!({})), tool(json!({}))]);
    check(
        "USE_TOOL: query_actions\n{a}",
        "",
        &[invalid(SignalKind::UseTool, "it is not JSON: line 1, column 2", 3)],
    );
}

#[test]
fn ready_to_create_is_key_value_lines() {
    let ready = [ReadyToCreate(agent())];
    check(&format!("READY_TO_CREATE\n---\n{AGENT}"), "", &ready);
    check(&format!("READY_TO_CREATE\r\n---\r\n{}\r\n", AGENT.replace('\n', "\r\n")), "", &ready);
    check(&format!("READY_TO_CREATE\n---\n{AGENT}\n---\nShall I?"), "Shall I?", &ready);
    check(&format!("READY_TO_CREATE\n---\n```text\n{AGENT}\n```\nShall I?"), "Shall I?", &ready);
    check(
        &format!("READY_TO_CREATE\n---\n{AGENT}\nGENERATE_ASSET\n---\n{}", asset_json("x")),
        "",
        &[ReadyToCreate(agent()), asset("x")],
    );
    let bold = "READY_TO_CREATE\n---\n**TITLE:** Launch\n**GOAL**: A launch agent that ships: fast\nTIMELINE: Ongoing\n\
                SUCCESS_CRITERIA: - 10 users\n- 1 sale\n";
    check(bold, "", &ready);
    let instructions = "Write:\nTITLE: the title\n\nNote: short";
    check(
        &format!("READY_TO_CREATE\n---\n{AGENT}\nINSTRUCTIONS: {instructions}"),
        "",
        &[ReadyToCreate(AgentDraft { instructions: instructions.into(), ..agent() })],
    );
    let first = r#"{"title": "Oil", "task_config": {"instructions": "Compare", "expected_output": "A list"}, "schedule": {"every": "1h"}}"#;
    let Actions { actions } =
        Deliverable::from_json(SignalKind::GenerateActions, &serde_json::from_str(first).unwrap()).unwrap()
    else {
        panic!("no action")
    };
    let planned = AgentDraft {
        first_action: actions.into_iter().next().map(Box::new),
        needs: vec![Need::Web, Need::Shop],
        ..agent()
    };
    check(
        &format!("READY_TO_CREATE\n---\n{AGENT}\nFIRST_ACTION: {first}\nNEEDS: web, shop, flying"),
        "",
        &[ReadyToCreate(planned.clone())],
    );
    let mut native = json!({"title": "Launch", "goal": "A launch agent that ships: fast", "success_criteria": "- 10 users\n- 1 sale",
        "timeline": "Ongoing", "needs": ["web", "shop", "flying", 7]});
    native["first_action"] = serde_json::from_str(first).unwrap();
    assert_eq!(Deliverable::from_tool_call("ready_to_create", &native), Some(ReadyToCreate(planned)));
    native["first_action"] = json!({"title": "Oil"});
    assert!(matches!(
        Deliverable::from_tool_call("ready_to_create", &native),
        Some(Invalid { reason, .. }) if reason == "`first_action.instructions` is missing"
    ));
    native["first_action"] = json!("daily");
    assert!(matches!(
        Deliverable::from_tool_call("ready_to_create", &native),
        Some(Invalid { reason, .. }) if reason == "`first_action` is not an object"
    ));
    let without = |reason: &str, payload: &str| {
        let reply = format!("READY_TO_CREATE\n---\n{payload}");
        check(&reply, "", &[invalid(SignalKind::ReadyToCreate, reason, payload.len())]);
    };
    without("it has no TITLE", "");
    without("it has no TITLE", "GOAL: g");
    without("it has no GOAL", "TITLE: t\nGOAL:  \nTIMELINE: x");
    without("it has no SUCCESS_CRITERIA", "TITLE: t\nGOAL: g\nTIMELINE: x");
    without("it has no TIMELINE", "TITLE: t\nGOAL: g\nSUCCESS_CRITERIA: x");
    without(
        "FIRST_ACTION is not one JSON object (expected value at line 1 column 1)",
        "TITLE: t\nGOAL: g\nSUCCESS_CRITERIA: x\nTIMELINE: o\nFIRST_ACTION: daily",
    );
}

#[test]
fn several_signals_are_honoured_in_order() {
    let json = asset_json("x");
    check(
        &format!(
            "One.\nGENERATE_ASSET\n---\n{json}\nTwo.\nUSE_TOOL: query_actions\nGENERATE_ACTIONS\n---\n{ACTION}\n\
             GENERATE_ASSET\n---\n```\n{json}\n```\nThree."
        ),
        "One.\nTwo.\nThree.",
        &[asset("x"), tool(json!({})), Actions { actions: vec![action()] }, asset("x")],
    );
}

#[test]
fn an_unreadable_signal_is_reported_and_hides_nothing_after_it() {
    use SignalKind::{GenerateActions, GenerateAsset};
    let next = format!("GENERATE_ASSET\n---\n{}\nDone.", asset_json("x"));
    let wrong = |kind: SignalKind, payload: &str, reason: &str| {
        let reply = format!("Here:\n{}\n---\n{payload}\n", kind.keyword());
        let reply = format!("{reply}{next}");
        let Reply { text, deliverables } = Reply::parse(&reply);
        assert_eq!(text, "Here:\nDone.", "{reply}");
        assert_eq!(deliverables.len(), 2, "{reply}");
        assert!(
            matches!(&deliverables[0], Invalid { signal, reason: said, raw_len }
                if *signal == kind && said == reason && *raw_len >= payload.len()),
            "{reply}\n{deliverables:?}"
        );
        assert_eq!(deliverables[1], asset("x"));
    };
    wrong(GenerateAsset, "{\"title\": \"T\", \"content\": \"cut", "its JSON is cut off");
    wrong(GenerateAsset, "{\"title\": [1}", "its JSON is cut off");
    wrong(GenerateAsset, "title: T", "its payload is not JSON");
    wrong(GenerateAsset, "{title: 1}", "it is not JSON: line 1, column 2");
    wrong(GenerateAsset, "{}", "`title` is missing");
    wrong(GenerateAsset, "[]", "it is not a JSON object");
    wrong(GenerateAsset, r#"{"title": "T", "content": " "}"#, "`content` is missing");
    wrong(GenerateAsset, r#"{"title": 1, "content": "c"}"#, "`title` is not a text");
    let types = "`asset_type` is not one of document, code, prompt or email";
    wrong(GenerateAsset, r#"{"title": "T", "content": "c", "assetType": "song"}"#, types);
    wrong(GenerateActions, "[]", "it has no action");
    wrong(GenerateActions, "[1]", "`actions[0]` is not an object");
    wrong(GenerateActions, r#"{"actions": 1}"#, "`actions` is not an object");
    wrong(GenerateActions, r#"{"title": "T"}"#, "`instructions` is missing");
    wrong(
        GenerateActions,
        r#"[{"title": "T", "taskConfig": {"instructions": 1}}]"#,
        "`actions[0].taskConfig.instructions` is not a text",
    );
    check("GENERATE_ASSET\n---\n", "", &[invalid(GenerateAsset, "it has no payload", 1)]);
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    wrong(GenerateActions, &deep, "it is not JSON: line 1, column 128");
}

#[test]
fn incomplete_signals_are_not_shown() {
    let mut reader = SignalReader::default();
    for (delta, shown) in [
        ("Sure", "Sure"),
        (".\nGEN", ".\n"),
        ("ERATE_ASSET", ""),
        ("\n-", ""),
        ("--\n{\"title\": \"T\", \"con", ""),
        ("tent\": \"c\"}", ""),
        ("\nDone", "Done"),
        ("\nGENERATE", "\n"),
        (" nothing", "GENERATE nothing"),
        ("\nUSE_TOOL: x", "\n"),
        (" y", "USE_TOOL: x y"),
        ("\n``", "\n"),
        ("`rust\n", ""),
        ("f", "```rust\nf"),
        ("\nUSE_", "\n"),
    ] {
        assert_eq!(reader.feed(delta), shown, "{delta}");
    }
    let reply = reader.finish();
    assert_eq!(reply.text, "USE_");
    assert_eq!(reply.deliverables.len(), 1);
}

#[test]
fn deliverables_are_stored_and_read_back() {
    for deliverable in [
        ReadyToCreate(agent()),
        asset("x"),
        Actions { actions: vec![action()] },
        tool(json!({"a": 1})),
        invalid(SignalKind::UseTool, "r", 3),
    ] {
        let json = serde_json::to_string(&deliverable).unwrap();
        assert_eq!(serde_json::from_str::<Deliverable>(&json).unwrap(), deliverable, "{json}");
    }
}

/// Parts of signals in any order, with other text between them.
fn replies() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        3 => prop::sample::select(vec![
            "GENERATE_ASSET", "GENERATE_ACTIONS", "USE_TOOL: ", "READY_TO_CREATE", "query_actions", "---", "```", "```json",
            "{", "}", "[", "]", "\"", "\\", "{\"title\": \"T\", \"content\": \"c\"}", "{}", "TITLE: a", "GOAL: b",
            "SUCCESS_CRITERIA: c", "TIMELINE: d", "-", "`", ":", "é",
        ]).prop_map(str::to_owned),
        2 => prop::sample::select(vec!["\n", "\n\n", "\r\n", " "]).prop_map(str::to_owned),
        1 => ".{0,6}",
    ];
    prop::collection::vec(pieces, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn how_a_reply_is_cut_makes_no_difference(reply in replies(), sizes in prop::collection::vec(1usize..9, 1..40)) {
        let whole = Reply::parse(&reply);
        let mut reader = SignalReader::default();
        let mut text = String::new();
        let mut characters = reply.chars();
        for size in sizes.iter().cycle() {
            let delta: String = characters.by_ref().take(*size).collect();
            if delta.is_empty() {
                break;
            }
            text.push_str(&reader.feed(&delta));
        }
        let rest = reader.finish();
        text.push_str(&rest.text);
        prop_assert_eq!(Reply { text, deliverables: rest.deliverables }, whole);
    }

    #[test]
    fn text_without_signals_comes_back_unchanged(reply in "([a-z `{}\\[\\]\"-]{0,12}\n?){0,12}") {
        let expected = Reply { text: reply.clone(), deliverables: vec![] };
        prop_assert_eq!(Reply::parse(&reply), expected);
    }

    #[test]
    fn any_content_survives(before in "[a-z \n]{0,20}", content in ".*\\PC.*", after in "[a-z]{0,9}") {
        let reply = format!("{before}\nGENERATE_ASSET\n---\n{}\n{after}", asset_json(&content));
        let text = format!("{before}\n{after}");
        let expected = if content.trim().is_empty() {
            vec![]
        } else {
            vec![asset(&content)]
        };
        let mut read = Reply::parse(&reply);
        read.deliverables.retain(|d| !matches!(d, Invalid { .. }));
        prop_assert_eq!(read, Reply { text, deliverables: expected });
    }

    #[test]
    fn no_reply_is_too_strange(reply in any::<String>()) {
        let _ = Reply::parse(&reply);
    }
}
