//! The switch: what `stop` and `start` send, and what they tell.

use serde_json::{Value, json};

use crate::bed::Bed;
use crate::server::{Reply, Request, Server};

fn missed(title: &str, times: u32) -> Value {
    json!({
        "action_id": "act_1", "title": title, "due_times": times,
        "first_due_at": "2020-11-21T13:00:00Z", "last_due_at": "2020-11-21T15:00:00Z",
    })
}

/// A server of a person in Berlin.
fn in_berlin(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Server {
    Server::start(move |request| match request.target.as_str() {
        "/account" => Reply::ok(json!({"timezone": "Europe/Berlin"}).to_string()),
        _ => answer(request),
    })
}

/// The newest request that changes something.
fn sent(server: &Server) -> Request {
    server.requests().into_iter().rfind(|request| request.method == "POST").unwrap()
}

#[test]
fn a_stop_says_what_it_ended_and_how_to_start_again() {
    for (runs, told) in [(0, "0 runs were ended"), (1, "1 run was ended"), (12, "12 runs were ended")] {
        let stopped = json!({"stopped_at": "2020-11-21T23:30:00Z", "runs_ended": runs});
        let answer = stopped.to_string();
        let server = in_berlin(move |_| Reply::ok(answer.clone()));
        let bed = Bed::new(&server.url);
        // In the zone of the account.
        bed.run(&["stop"]).printed(&format!(
            "the account has been stopped since 22 Nov 2020 00:30; {told}\nnothing runs until `lamplighter start`\n"
        ));
        assert_eq!(sent(&server).target, "/account/stop");
        let json: Value = serde_json::from_str(&bed.run(&["stop", "--json"]).out).unwrap();
        assert_eq!(json, stopped);
    }
}

#[test]
fn a_start_asks_what_becomes_of_missed_due_times() {
    let server = in_berlin(|request| {
        let sent: Value = serde_json::from_slice(&request.body).unwrap();
        let list = json!({"data": [missed("Report\u{1b}[2J", 3), missed("Letter", 1)], "has_more": true});
        if sent == json!({}) {
            let problem =
                json!({"code": "missed_runs", "detail": "2 actions missed due times", "current": list});
            return Reply::status(409, problem.to_string());
        }
        let mut started = list;
        started["stopped_at"] = json!("2020-11-21T12:00:00Z");
        Reply::ok(started.to_string())
    });
    let bed = Bed::new(&server.url);
    let lines = "act_1  3 due times, 21 Nov 2020 14:00 to 21 Nov 2020 16:00  Report\\u{1b}[2J\n\
                 act_1  1 due time, 21 Nov 2020 14:00  Letter\nand further actions\n";
    let said = bed.run(&["start"]);
    said.failed_after(lines, "the account is still stopped");
    let told = bed.run(&["start", "--json"]);
    assert!(told.code == 1 && told.err.contains("the account is still stopped"), "{told:?}");
    let told: Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!(told["data"][1], missed("Letter", 1));
    for answer in ["run-newest", "skip", "each-schedule"] {
        assert!(said.err.contains(&format!("lamplighter start --missed {answer} ")), "{}", said.err);
        let said = bed.run(&["start", "--missed", answer]);
        assert_eq!((said.code, said.err.as_str()), (0, ""));
        assert!(
            said.out.starts_with("the account runs again; it was stopped 21 Nov 2020 13:00\n"),
            "{said:?}"
        );
        assert!(said.out.ends_with(lines), "{}", said.out);
        let body: Value = serde_json::from_slice(&sent(&server).body).unwrap();
        assert_eq!(body, json!({"missed": answer.replace('-', "_")}));
        let told = bed.run(&["start", "--missed", answer, "--json"]);
        let told: Value = serde_json::from_str(&told.out).unwrap();
        assert_eq!(told["stopped_at"], "2020-11-21T12:00:00Z");
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
