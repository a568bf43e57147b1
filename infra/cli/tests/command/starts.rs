//! What a hook prints when a session or an agent starts.

use serde_json::{Value, json};

use crate::bed::{Bed, DOWN, PROJECT, start};
use crate::server::{Reply, Server};

#[test]
fn a_start_gets_the_earlier_work() {
    let context = "Lamplighter recorded this \"earlier\".\n  | ü\n";
    let server = Server::start(move |_| Reply::ok(json!({ "context": context }).to_string()));
    let bed = Bed::new(&server.url);
    for (event, agent_type, target) in [
        ("SessionStart", None, "/context/recall?session_id=s-1&project_id=PROJECT"),
        ("SessionStart", Some("the-chief"), "/context/recall?session_id=s-1&project_id=PROJECT"),
        (
            "SubagentStart",
            Some("the x"),
            "/context/recall?session_id=s-1&agent_type=the+x&project_id=PROJECT",
        ),
    ] {
        let said = bed.give(&["log", "--recall"], start(event, agent_type));
        assert_eq!((said.code, said.err.as_str()), (0, ""));
        let told: Value = serde_json::from_str(&said.out).unwrap();
        let expected = json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": context}});
        assert_eq!(told, expected);
        assert_eq!(server.requests().pop().unwrap().target, target.replace("PROJECT", PROJECT));
    }
}

#[test]
fn a_failed_recall_disturbs_nobody() {
    let server = Server::start(|_| Reply::ok("{}"));
    let bed = Bed::new(&server.url);
    let too_long =
        format!("{{\"hook_event_name\": \"SessionStart\", \"session_id\": \"{}\"}}", "s".repeat(7_000_000));
    for payload in [
        "",
        "nonsense",
        "[]",
        "{}",
        &start("SubagentStart", None),
        &start("SubagentStart", Some("")),
        &start("PreToolUse", Some("x")),
        &too_long,
    ] {
        bed.give(&["log", "--recall"], payload).silent();
    }
    assert_eq!(server.requests(), []);
    // Nothing is known.
    bed.give(&["log", "--recall"], start("SessionStart", None)).silent();
    for reply in
        [Reply::status(500, "{}"), Reply::status(401, ""), Reply::Close, Reply::Silence, Reply::ok("<html>")]
    {
        let server = Server::start(move |_| reply.clone());
        Bed::new(&server.url).give(&["log", "--recall"], start("SessionStart", None)).silent();
    }
    Bed::new(DOWN).give(&["log", "--recall"], start("SessionStart", None)).silent();
}
