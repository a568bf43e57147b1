//! `run`, `pause` and `resume` of an action: what is sent, and what is told.

use serde_json::{Value, json};

use crate::bed::Bed;
use crate::server::{Reply, Request, Server};

const ID: &str = "act_11111111111111111111111111111111";

/// A platform that does what it is told.
fn platform() -> Server {
    Server::start(|request: &Request| {
        let action = json!({"action_id": ID, "title": "Report\u{1b}[2J", "state": "scheduled", "next_due": "2020-11-21T23:00:00Z", "live_run": "run_1"});
        match request.target.rsplit('/').next().unwrap() {
            "account" => Reply::ok(json!({"timezone": "Europe/Berlin"}).to_string()),
            "run" => Reply::status(202, json!({"run_id": "run_2", "action": action}).to_string()),
            _ => Reply::ok(action.to_string()),
        }
    })
}

/// The newest request that changes something.
fn sent(server: &Server) -> Request {
    server.requests().into_iter().rfind(|request| request.method == "POST").unwrap()
}

#[test]
fn each_is_sent_once_and_says_what_comes_next() {
    let server = platform();
    let bed = Bed::new(&server.url);
    for (args, how, body, told) in [
        (
            &["run", ID][..],
            "run",
            json!({}),
            "Report\\u{1b}[2J runs now. `lamplighter runs run_2` shows what becomes of it.\n".to_owned(),
        ),
        (
            &["pause", ID],
            "pause",
            json!({}),
            format!(
                "Paused Report\\u{{1b}}[2J. Its due times are skipped until `lamplighter resume {ID}`.\nThe run run_1 goes on.\n"
            ),
        ),
        (
            &["resume", ID],
            "resume",
            json!({}),
            "Resumed Report\\u{1b}[2J; next due 22 Nov 2020 00:00.\n`lamplighter runs run_1` shows its run.\n".to_owned(),
        ),
        (
            &["resume", ID, "--message", "This week"],
            "resume",
            json!({"message": "This week"}),
            "Resumed Report\\u{1b}[2J; next due 22 Nov 2020 00:00.\n`lamplighter runs run_1` shows its run.\n".to_owned(),
        ),
    ] {
        bed.run(args).printed(&told);
        let request = sent(&server);
        assert_eq!(request.target, format!("/actions/{ID}/{how}"));
        assert_eq!(serde_json::from_slice::<Value>(&request.body).unwrap(), body);
        // An answer that is lost does not make a second run.
        assert!(request.header("idempotency-key").is_some_and(|key| key.len() == 36), "{request:?}");
        let json: Value = serde_json::from_str(&bed.run(&[args, &["--json"]].concat()).out).unwrap();
        assert!(json["next_due"].is_string() || json["run_id"] == "run_2", "{json}");
    }
    // Each command has a key of its own.
    let keys: Vec<String> = server
        .requests()
        .iter()
        .filter_map(|request| request.header("idempotency-key").map(str::to_owned))
        .collect();
    assert_eq!(keys.iter().collect::<std::collections::BTreeSet<_>>().len(), 8, "{keys:?}");
}

#[test]
fn a_refusal_names_the_command_that_helps() {
    for (code, helps) in [("not_approved", true), ("approval_mismatch", true), ("wrong_state", false)] {
        let problem = json!({"code": code, "detail": "the action can't", "current": {}}).to_string();
        let server = Server::start(move |_| Reply::status(409, problem.clone()));
        let said = Bed::new(&server.url).run(&["run", ID]);
        said.failed("answered 409: the action can't");
        assert_eq!(said.err.contains(&format!("`lamplighter approve {ID}`")), helps, "{said:?}");
    }
    let server = Server::taking();
    let bed = Bed::new(&server.url);
    for (args, error) in [
        (&["run"][..], "required arguments were not provided"),
        (&["pause", ID, "--reason", "x"], "unexpected argument '--reason' found"),
        (&["resume", ID, "--message"], "a value is required for '--message <TEXT>'"),
        (&["pause", " "], "the name of an action is empty"),
    ] {
        bed.run(args).failed(error);
    }
    assert_eq!(server.requests(), []);
}
