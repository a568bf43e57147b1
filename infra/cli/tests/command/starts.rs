//! What a hook prints when a session or an agent starts.

use serde_json::{Value, json};

use crate::bed::{Bed, DOWN, PROJECT, payload};
use crate::server::{Reply, Server};

fn start(event: &str, agent_type: Option<&str>) -> String {
    json!({"session_id": "s-1", "cwd": "/x", "hook_event_name": event, "agent_id": "a1b2c3d4", "agent_type": agent_type})
        .to_string()
}

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

#[test]
fn answers_of_a_server_that_only_a_checkout_names_are_ignored() {
    let said = |variable: Option<&str>| {
        let mut bed = Bed::bare();
        bed.write("project/lamplighter.toml", "url = \"http://192.0.2.1:9\"\n");
        if let Some(url) = variable {
            bed = bed.with("LAMPLIGHTER_URL", url);
        }
        (bed.give(&["log", "--recall"], start("SessionStart", None)), bed.run(&["status"]).out)
    };
    let (recalled, status) = said(None);
    recalled.silent();
    assert!(status.contains("recall    nothing: only the project's file names this server"), "{status}");
    let (recalled, status) = said(Some(DOWN));
    recalled.silent();
    assert!(!status.contains("recall "), "{status}");
}

/// A cloned repository must not make an assistant send prompts to a stranger. The payloads wait here until a person
/// allows it.
#[test]
fn a_server_that_only_a_checkout_names_gets_no_prompts() {
    let server = Server::taking();
    // The server is on this machine, but its address is not known to be.
    let url = server.url.replace("127.0.0.1", "0.0.0.0");
    let bed = Bed::bare();
    bed.write("project/lamplighter.toml", format!("url = '{url}'"));
    for n in 0..3 {
        bed.give(&["log", "-a"], payload(n)).silent();
    }
    let refused = format!("{url} gets no hook payloads, because only ");
    bed.run(&["log", "--flush"]).failed_after("sent 0, waiting 3\n", &refused);
    bed.run(&["log", "--flush", "--background"]);
    bed.give(&["log", "--recall"], start("SessionStart", None)).silent();
    // A person who reads a log asks the server, but no waiting payload is sent.
    bed.run(&["log", "-r", "--agent-id", "main"]);
    let status = bed.run(&["status"]).out;
    assert!(
        status.contains("hooks     are kept here and not sent: only the project's file names"),
        "{status}"
    );
    // Longer than a background process needs to start.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let posted = || server.requests().into_iter().filter(|request| request.method == "POST").count();
    assert_eq!((posted(), bed.spooled().len()), (0, 3));

    // If it can't be kept, it is not sent either.
    let nowhere = Bed::bare().with("LAMPLIGHTER_STATE", "/dev/null/state");
    nowhere.write("project/lamplighter.toml", format!("url = '{url}'"));
    nowhere.give(&["log", "-a"], payload(9)).silent();
    assert_eq!(posted(), 0);

    // A person names the server, and the waiting payloads are sent.
    bed.private(".config/lamplighter/config.toml", &format!("url = '{url}'"));
    bed.run(&["log", "--flush"]).printed("sent 3, waiting 0\n");
    assert_eq!((posted(), bed.spooled().len()), (3, 0));
}
