//! The switch: what `stop` and `start` send, and what they tell.

use serde_json::{Value, json};

use crate::bed::Bed;
use crate::server::{Reply, Server};

fn missed(title: &str, times: u32) -> Value {
    json!({
        "action_id": "act_1", "title": title, "due_times": times,
        "first_due_at": "2026-11-21T13:00:00Z", "last_due_at": "2026-11-21T15:00:00Z",
    })
}

#[test]
fn a_stop_says_what_it_ended_and_how_to_start_again() {
    for (runs, told) in [(0, "0 runs were ended"), (1, "1 run was ended"), (12, "12 runs were ended")] {
        let server = Server::start(move |_| {
            Reply::ok(json!({"stopped_at": "2026-11-21T12:00:00Z", "runs_ended": runs}).to_string())
        });
        let said = Bed::new(&server.url).run(&["stop"]);
        said.printed(&format!(
            "the account has been stopped since 2026-11-21T12:00:00Z; {told}\nnothing runs until `lamplighter start`\n"
        ));
        let request = server.requests().pop().unwrap();
        assert_eq!((request.method.as_str(), request.target.as_str()), ("POST", "/account/stop"));
    }
}

#[test]
fn a_start_asks_what_becomes_of_missed_due_times() {
    let server = Server::start(|request| {
        let sent: Value = serde_json::from_slice(&request.body).unwrap();
        let list = json!({"data": [missed("Report\u{1b}[2J", 3), missed("Letter", 1)], "has_more": true});
        if sent == json!({}) {
            let problem =
                json!({"code": "missed_runs", "detail": "2 actions missed due times", "current": list});
            return Reply::status(409, problem.to_string());
        }
        let mut started = list;
        started["stopped_at"] = json!("2026-11-21T12:00:00Z");
        Reply::ok(started.to_string())
    });
    let bed = Bed::new(&server.url);
    let lines = "act_1  3 due times, 2026-11-21T13:00:00Z to 2026-11-21T15:00:00Z  Report\\u{1b}[2J\n\
                 act_1  1 due time, 2026-11-21T13:00:00Z  Letter\nand further actions\n";
    let said = bed.run(&["start"]);
    said.failed_after(lines, "the account is still stopped");
    for answer in ["run-newest", "skip", "each-schedule"] {
        assert!(said.err.contains(&format!("lamplighter start --missed {answer} ")), "{}", said.err);
        let said = bed.run(&["start", "--missed", answer]);
        assert_eq!((said.code, said.err.as_str()), (0, ""));
        assert!(said.out.starts_with("the account runs again; it was stopped at 2026-11-21T12:00:00Z\n"));
        assert!(said.out.ends_with(lines), "{}", said.out);
        let request = server.requests().pop().unwrap();
        let sent: Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(sent, json!({"missed": answer.replace('-', "_")}));
    }
    bed.run(&["start", "--missed", "all"])
        .failed("--missed must be run-newest, skip or each-schedule, is `all`");
}

#[test]
fn other_refusals_are_told() {
    let server = Server::start(|_| Reply::ok(json!({"data": [], "has_more": false}).to_string()));
    Bed::new(&server.url).run(&["start"]).printed("the account was not stopped\n");
    let server = Server::start(|_| {
        Reply::status(409, json!({"code": "account_stopped", "detail": "stopped again"}).to_string())
    });
    Bed::new(&server.url).run(&["start"]).failed("answered 409: stopped again");
    let server = Server::start(|_| Reply::status(403, json!({"detail": "needs `admin`"}).to_string()));
    Bed::new(&server.url).run(&["stop"]).failed("answered 403: needs `admin`");
}
