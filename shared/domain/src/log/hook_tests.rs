//! Every shape that a payload may have.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// A payload of the assistant, changed by `change`. `null` removes a field.
fn payload(change: &Value) -> Value {
    let mut payload = json!({
        "session_id": "0f2c1f9e-5b1d-4a7e-9f0e-0d6a3b6f2a11",
        "transcript_path": "/home/me/.claude/projects/shop/0f2c1f9e.jsonl",
        "cwd": "/home/me/shop",
        "permission_mode": "default",
        "hook_event_name": "PreToolUse",
        "tool_name": "Task",
        "tool_input": {
            "subagent_type": "the-architect", "description": "Design auth",
            "prompt": "AgentId: arch-001\nDesign it"
        },
        "tool_use_id": "toolu_01ABC",
    });
    for (name, value) in change.as_object().unwrap() {
        payload[name] = value.clone();
        if value.is_null() {
            payload.as_object_mut().unwrap().remove(name);
        }
    }
    payload
}

fn read(change: &Value, session: Option<&str>) -> Result<Hook, Refusal> {
    parse(payload(change).to_string().as_bytes(), session)
}

fn task() -> Task {
    Task {
        session: "0f2c1f9e-5b1d-4a7e-9f0e-0d6a3b6f2a11".parse().unwrap(),
        call: Some("toolu_01ABC".to_owned()),
        instance: None,
        agent_type: "the-architect".to_owned(),
        description: "Design auth".to_owned(),
        prompt: "AgentId: arch-001\nDesign it".to_owned(),
    }
}

#[test]
fn a_question_is_read_from_every_shape() {
    let bare = json!({"prompt": "p"});
    for (change, expected) in [
        (json!({}), task()),
        (json!({"tool_name": "Agent"}), task()),
        (json!({"hook_event_name": null}), task()),
        (json!({"tool_use_id": null}), Task { call: None, ..task() }),
        (json!({"tool_use_id": ""}), Task { call: None, ..task() }),
        (json!({"new": {"field": [1]}}), task()),
        (json!({"agent_id": "Arch-9"}), Task { instance: Some("arch-9".parse().unwrap()), ..task() }),
        (json!({"agent_id": ""}), task()),
        (
            json!({"agent_id": "Arch-9", "agent_type": "Explore"}),
            Task { instance: Some("arch-9".parse().unwrap()), agent_type: "Explore".into(), ..task() },
        ),
        (json!({"agent_type": ""}), task()),
        // The caller is an agent that the assistant numbers, or an assistant that plays an agent. Both fields name the
        // caller.
        (json!({"agent_id": "a3f09c2b7d1e4a586", "agent_type": "the-chief"}), task()),
        (json!({"agent_type": "chief"}), task()),
        // A word is not a number.
        (json!({"agent_id": "acceded"}), Task { instance: Some("acceded".parse().unwrap()), ..task() }),
        (
            json!({"agent_type": "the-helper", "tool_input": bare}),
            Task {
                agent_type: "the-helper".into(),
                description: String::new(),
                prompt: "p".into(),
                ..task()
            },
        ),
        (
            json!({"tool_input": bare}),
            Task { agent_type: String::new(), description: String::new(), prompt: "p".into(), ..task() },
        ),
        // If there is an event, it decides.
        (json!({"output": "out of place"}), task()),
    ] {
        assert_eq!(read(&change, None), Ok(Hook::Asked(expected)), "{change}");
    }
    let named = Task { session: "dev-1".parse().unwrap(), ..task() };
    assert_eq!(read(&json!({}), Some("dev-1")), Ok(Hook::Asked(named.clone())));
    assert_eq!(read(&json!({"session_id": null}), Some("dev-1")), Ok(Hook::Asked(named)));
}

#[test]
fn an_answer_is_the_first_output_that_has_a_text() {
    let content =
        json!([{"type": "text", "text": "one"}, {"type": "image"}, {"type": "text", "text": "two"}]);
    for (change, expected) in [
        (json!({}), ""),
        (json!({"tool_response": "done"}), "done"),
        (json!({"tool_response": {"content": content, "totalTokens": 5}}), "one\ntwo"),
        (json!({"tool_response": {"content": "done"}}), "done"),
        (json!({"tool_response": content}), "one\ntwo"),
        (json!({"tool_response": {"content": []}, "tool_output": "second"}), "second"),
        (json!({"tool_response": " \n", "output": "third"}), "third"),
        (json!({"tool_response": "first", "tool_output": "second", "output": "third"}), "first"),
        (json!({"tool_output": "second", "output": "third"}), "second"),
        (json!({"tool_response": 7, "tool_output": null, "output": "third"}), "third"),
        (json!({"tool_response": {"status": "completed", "agentId": "a1", "content": content}}), "one\ntwo"),
    ] {
        let mut change = change;
        change["hook_event_name"] = json!("PostToolUse");
        let background = change["tool_response"]["agentId"].as_str().map(str::to_owned);
        let expected = Ok(Hook::Answered(task(), AgentAnswer { text: expected.to_owned(), background }));
        assert_eq!(read(&change, None), expected, "{change}");
        if !matches!(&expected, Ok(Hook::Answered(_, answer)) if answer.text.is_empty()) {
            change["hook_event_name"] = Value::Null;
            assert_eq!(read(&change, None), expected, "{change}");
        }
    }
}

#[test]
fn a_background_agent_is_launched_and_stops() {
    for response in [
        json!({"isAsync": true, "status": "async_launched", "agentId": "a5f3c1", "outputFile": "/tmp/x"}),
        json!({"isAsync": true, "agentId": "a5f3c1"}),
        json!({"status": "async_launched", "agent_id": "a5f3c1"}),
    ] {
        let change = json!({"hook_event_name": "PostToolUse", "tool_response": response});
        assert_eq!(read(&change, None), Ok(Hook::Launched(task(), "a5f3c1".to_owned())), "{change}");
    }
    let stop = |more: &Value| {
        let mut change = json!({
            "hook_event_name": "SubagentStop", "tool_name": null, "tool_input": null, "tool_use_id": null,
            "stop_hook_active": false, "agent_id": "a5f3c1", "agent_type": "the-architect",
            "agent_transcript_path": "/home/me/x.jsonl",
        });
        change.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        read(&change, None)
    };
    for (more, answer) in [
        (json!({}), ""),
        (json!({"last_assistant_message": "It is designed."}), "It is designed."),
        (json!({"output": "o", "last_assistant_message": "m"}), "o"),
    ] {
        let Task { session, agent_type, .. } = task();
        let (background, answer) = ("a5f3c1".to_owned(), answer.to_owned());
        assert_eq!(stop(&more), Ok(Hook::Stopped(Stop { session, background, agent_type, answer })));
    }
    assert_eq!(stop(&json!({"agent_id": null})), Err(missing("agent_id")));
}

#[test]
fn long_texts_are_cut_and_say_so() {
    let input =
        json!({"subagent_type": "the-a", "description": "d".repeat(501), "prompt": "p".repeat(100_000)});
    let Ok(Hook::Asked(task)) = read(&json!({"tool_input": input}), None) else { panic!("it is taken") };
    assert_eq!(task.description, format!("{}… [truncated 23 chars]", "d".repeat(478)));
    assert_eq!(task.prompt.len(), 100_000);
    let change = json!({"hook_event_name": "PostToolUse", "tool_response": "ä".repeat(5_000)});
    let Ok(Hook::Answered(_, AgentAnswer { text: answer, .. })) = read(&change, None) else {
        panic!("it is taken")
    };
    assert_eq!(answer.chars().count(), MAX_SUMMARY);
    assert!(answer.ends_with("ä… [truncated 4024 chars]"), "{answer}");
}

#[test]
fn other_hooks_are_ignored() {
    for change in [
        json!({"tool_name": "Bash", "tool_input": {"command": "ls", "description": 7}}),
        json!({"tool_name": "TaskOutput", "tool_input": null}),
        json!({"hook_event_name": "Stop", "tool_name": null, "tool_input": null}),
        json!({"hook_event_name": "UserPromptSubmit", "prompt": "hello"}),
    ] {
        assert_eq!(read(&change, None), Ok(Hook::Foreign), "{change}");
    }
}

#[test]
fn nonsense_is_refused_by_name() {
    let long = "x".repeat(129);
    let task = |field: &str, value: Value| {
        let mut input = json!({"subagent_type": "the-a", "description": "d", "prompt": "p"});
        input[field] = value;
        json!({"tool_input": input})
    };
    for (change, field) in [
        (json!({"session_id": "../../etc"}), "session_id"),
        (json!({"session_id": ""}), "session_id"),
        (json!({"session_id": long}), "session_id"),
        (json!({"session_id": "a\0b"}), "session_id"),
        (json!({"session_id": null}), "session_id"),
        (json!({"session_id": 7}), "session_id"),
        (json!({"agent_id": "x".repeat(65)}), "agent_id"),
        (json!({"agent_id": "a b"}), "agent_id"),
        (json!({"agent_id": "a\0b"}), "agent_id"),
        (json!({"agent_id": "Main"}), "agent_id"),
        (json!({"agent_id": "arch-9", "agent_type": long}), "agent_type"),
        (json!({"agent_id": "arch-9", "agent_type": "the-\0"}), "agent_type"),
        (json!({"tool_use_id": long}), "tool_use_id"),
        (json!({"tool_name": null}), "tool_name"),
        (json!({"tool_name": ["Task"]}), "tool_name"),
        (json!({"hook_event_name": 1}), "hook_event_name"),
        (json!({"tool_input": null}), "tool_input"),
        (json!({"tool_input": "text"}), "tool_input"),
        (task("prompt", json!({"a": 1})), "tool_input.prompt"),
        (task("prompt", json!("a\0b")), "tool_input.prompt"),
        (task("description", json!("\0")), "tool_input.description"),
        (task("subagent_type", json!(long)), "tool_input.subagent_type"),
        (json!({"hook_event_name": "PostToolUse", "tool_response": "a\0b"}), "tool_response"),
    ] {
        let refusal = read(&change, None).unwrap_err();
        assert_eq!(refusal.blames(), Some(field), "{change}: {refusal}");
    }
    assert_eq!(read(&json!({}), Some("../x")).unwrap_err().blames(), Some("session_id"));
    for body in ["", "nonsense", "{", "\0", "{\"session_id\": \"a\0\"}"] {
        assert!(matches!(parse(body.as_bytes(), None), Err(Refusal::NotJson(_))), "{body:?}");
    }
    for body in ["null", "[]", "7", "\"text\""] {
        assert!(parse(body.as_bytes(), None).is_err(), "{body}");
    }
}

proptest! {
    #[test]
    fn no_body_panics(body in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse(&body, None);
    }

    #[test]
    fn no_text_panics(
        event in "PreToolUse|PostToolUse|SubagentStop|.{0,8}", session in any::<String>(),
        agent in any::<String>(), kind in any::<String>(), prompt in any::<String>(), output in any::<String>(),
    ) {
        let change = json!({
            "hook_event_name": event, "session_id": session, "agent_id": agent,
            "tool_input": {"subagent_type": kind, "prompt": prompt}, "tool_response": {"content": output},
        });
        let _ = read(&change, None);
    }
}
