//! `notices` and `jobs`: what is sent to the platform, and what never appears.

use serde_json::{Value, json};

use crate::bed::Bed;
use crate::server::{Reply, Request, Server};

const MAIL: &str = "chn_11111111111111111111111111111111";
const HOOK: &str = "chn_22222222222222222222222222222222";

/// A server with an address that is not confirmed and a webhook, and what a person is told.
fn platform() -> Server {
    let mail = json!({"channel_id": MAIL, "kind": "email", "target": "me@example.com", "state": "unconfirmed", "code_until": "2026-11-21T13:00:00Z"});
    let hook = json!({"channel_id": HOOK, "kind": "webhook", "target": "https://hooks.example.com/…k3Xz", "state": "enabled"});
    Server::start(move |request: &Request| {
        match (request.method.as_str(), request.target.as_str()) {
        ("GET", "/account") => Reply::ok(json!({"timezone": "UTC"}).to_string()),
        ("GET", "/notifications") => Reply::tagged(4, &json!({"kinds": {"failed": "digest"}, "actions": {"act_1": {"held": "off"}}, "digest_at": "08:00", "version": 4}).to_string()),
        ("PUT", "/notifications") => Reply::ok(request.text()),
        ("GET", "/notifications/channels") => Reply::ok(json!({"data": [mail, hook]}).to_string()),
        ("POST", "/notifications/channels") if request.text().contains("webhook") => {
            Reply::status(201, json!({"channel_id": HOOK, "kind": "webhook", "target": "https://hooks…", "state": "enabled", "secret": "whsec_abc"}).to_string())
        }
        ("POST", _) => Reply::status(201, mail.to_string()),
        ("PATCH", _) if request.text().contains("new_secret") => {
            let mut rotated = hook.clone();
            rotated["secret"] = "whsec_new".into();
            Reply::ok(rotated.to_string())
        }
        ("PATCH", _) => Reply::ok(hook.to_string()),
        ("DELETE", _) => Reply::status(204, ""),
        ("GET", target) if target.starts_with("/jobs?") => Reply::ok(
            json!({"data": [{"job_id": "job_1", "kind": "memory_daily", "due": "2026-01-02T03:00:00Z", "state": "failed", "work_found": 7, "artefacts": 2, "error": "no model\u{1b}[2J"}], "has_more": true}).to_string(),
        ),
        ("GET", target) if target.starts_with("/deliveries?") => Reply::ok(
            json!({"data": [{"delivery_id": "dlv_1a", "kind": "email", "target": "me@example.com", "subject": "Failed: Report", "state": "undelivered", "tries": 10, "error": "status 500"}]}).to_string(),
        ),
        _ => Reply::status(404, json!({"detail": "there is no such thing"}).to_string()),
    }
    })
}

/// The newest request that changes something: its method, its path and its body.
fn sent(server: &Server) -> (String, String, Value) {
    let requests = server.requests();
    let one = requests.iter().rev().find(|request| request.method != "GET").unwrap();
    let body = serde_json::from_slice(&one.body).unwrap_or(Value::Null);
    (one.method.clone(), one.target.clone(), body)
}

fn at(method: &str, path: &str, body: Value) -> (String, String, Value) {
    (method.to_owned(), path.to_owned(), body)
}

#[test]
fn an_address_is_added_and_confirmed() {
    let server = platform();
    let bed = Bed::new(&server.url);
    let added = bed.run(&["notices", "add", "email", "me@example.com"]);
    assert_eq!(added.code, 0, "{added:?}");
    assert!(added.out.contains(&format!("lamplighter notices confirm {MAIL} CODE\n")), "{added:?}");
    assert_eq!(
        sent(&server),
        at("POST", "/notifications/channels", json!({"kind": "email", "to": "me@example.com"}))
    );
    bed.run(&["notices", "confirm", "ME@", "1234", "5678"])
        .printed("Confirmed. Notices are sent to me@example.com.\n");
    let path = format!("/notifications/channels/{MAIL}");
    assert_eq!(sent(&server), at("POST", &format!("{path}/confirm"), json!({"code": "1234 5678"})));
    assert_eq!(bed.run(&["notices", "code", "chn_1"]).code, 0);
    assert_eq!(sent(&server), at("POST", &format!("{path}/code"), json!({})));
    assert_eq!(bed.run(&["notices", "confirm", "ME@"]).code, 1);
    let listed = bed.run(&["notices", "channels"]);
    assert!(
        listed.out.contains("unconfirmed") && listed.out.contains("its code no longer works"),
        "{listed:?}"
    );
}

#[test]
fn secrets_are_read_from_the_standard_input() {
    let server = platform();
    let bed = Bed::new(&server.url);
    // The bed fails if an output contains the secret.
    for (args, body) in [
        (&["telegram", "-10012"][..], json!({"kind": "telegram", "chat_id": "-10012", "token": "1:sekret"})),
        (&["slack"], json!({"kind": "slack", "url": "1:sekret"})),
        (&["discord"], json!({"kind": "discord", "url": "1:sekret"})),
        (&["ntfy"], json!({"kind": "ntfy", "topic": "1:sekret"})),
        (
            &["ntfy", "alerts", "--server", "https://ntfy.example.com", "--token"],
            json!({"kind": "ntfy", "topic": "alerts", "url": "https://ntfy.example.com", "token": "1:sekret"}),
        ),
        (
            &["gotify", "https://gotify.example.com"],
            json!({"kind": "gotify", "url": "https://gotify.example.com", "token": "1:sekret"}),
        ),
        (
            &[
                "smtp",
                "smtp.example.com",
                "--from",
                "a@example.com",
                "--to",
                "b@example.com",
                "--port",
                "587",
                "--security",
                "starttls",
                "--user",
                "me",
            ],
            json!({"kind": "smtp", "host": "smtp.example.com", "from": "a@example.com", "to": "b@example.com", "port": 587,
                "security": "starttls", "user": "me", "secret": "1:sekret"}),
        ),
    ] {
        let args = [&["notices", "add"], args].concat();
        assert_eq!(bed.give(&args, " 1:sekret\n").code, 0, "{args:?}");
        assert_eq!(sent(&server), at("POST", "/notifications/channels", body));
        bed.run(&args).failed("is read from the standard input, which is empty");
    }
    assert_eq!(bed.run(&["notices", "add", "telegram", "1", "1:token"]).code, 1);
    // A server at home may want no user, and then nothing is read.
    let args = ["notices", "add", "smtp", "mail.lan", "--from", "a@example.com", "--to", "b@example.com"];
    assert_eq!(bed.run(&args).code, 0);
    let body = json!({"kind": "smtp", "host": "mail.lan", "from": "a@example.com", "to": "b@example.com"});
    assert_eq!(sent(&server), at("POST", "/notifications/channels", body));
    assert_eq!(bed.run(&["notices", "add", "ntfy", "--token"]).code, 1);
    let hook = bed.run(&["notices", "add", "webhook", "https://hooks.example.com/in"]);
    assert!(hook.out.contains("shown only now:\n  whsec_abc\n"), "{hook:?}");
}

#[test]
fn a_channel_is_tested_paused_resumed_and_deleted() {
    let server = platform();
    let bed = Bed::new(&server.url);
    let path = format!("/notifications/channels/{HOOK}");
    for (args, request) in [
        (&["test", "k3xz"][..], at("POST", &format!("{path}/test"), json!({}))),
        (&["rotate", "k3xz"], at("PATCH", &path, json!({"new_secret": true}))),
        (&["pause", HOOK], at("PATCH", &path, json!({"state": "disabled"}))),
        (&["resume", "hooks."], at("PATCH", &path, json!({"state": "enabled"}))),
        (&["retry", "dlv_1"], at("POST", "/deliveries/dlv_1a/retry", json!({}))),
        (&["delete", "hooks.", "--yes"], at("DELETE", &path, Value::Null)),
    ] {
        let done = bed.run(&[&["notices"], args].concat());
        assert_eq!(done.code, 0, "{done:?}");
        assert_eq!(sent(&server), request);
    }
    let rotated = bed.run(&["notices", "rotate", HOOK]);
    assert!(rotated.out.contains("shown only now:\n  whsec_new\nFor 24 hours"), "{rotated:?}");
    let before = server.requests().iter().filter(|request| request.method == "DELETE").count();
    bed.run(&["notices", "delete", "hooks."]).failed("--yes");
    // Each of the two has this part.
    bed.run(&["notices", "delete", "example.com", "--yes"]).failed("fits several");
    bed.run(&["notices", "test", "nobody"]).failed("there are: email me@example.com");
    let after = server.requests().iter().filter(|request| request.method == "DELETE").count();
    assert_eq!((before, after), (1, 1));
}

#[test]
fn a_snooze_leaves_the_rest_and_names_the_version() {
    let server = platform();
    let bed = Bed::new(&server.url);
    for wrong in [
        &["2"][..],
        &["0h"],
        &["367d"],
        &["until"],
        &["until", "soon"],
        &["until", "2020-01-01"],
        &["off", "now"],
    ] {
        assert_eq!(bed.run(&[&["notices", "snooze"], wrong].concat()).code, 1, "{wrong:?}");
    }
    assert!(server.requests().iter().all(|request| request.method == "GET"));
    let until = "2090-01-01T09:00:00Z";
    for (args, stored) in [(&["until", "2090-01-01", "09:00"][..], json!(until)), (&["off"], Value::Null)] {
        assert_eq!(bed.run(&[&["notices", "snooze"], args].concat()).code, 0);
        let rest = json!({"kinds": {"failed": "digest"}, "actions": {"act_1": {"held": "off"}}, "digest_at": "08:00", "snoozed_until": stored});
        assert_eq!(sent(&server), at("PUT", "/notifications", rest));
        let requests = server.requests();
        assert_eq!(requests.last().unwrap().header("if-match"), Some("\"4\""));
    }
    let done = bed.run(&["notices", "snooze", "2h"]);
    assert!(done.code == 0 && done.out.starts_with("Nothing is sent before "), "{done:?}");
}

#[test]
fn what_is_told_and_what_was_done_is_listed() {
    let server = platform();
    let bed = Bed::new(&server.url);
    let told = bed.run(&["notices"]);
    for part in [
        "budget        at once\n",
        "failed        in the digest\n",
        "nothing_new   not\n",
        "1 action has rules",
        "sent to 1 channel;",
    ] {
        assert!(told.out.contains(part), "{part}: {told:?}");
    }
    let jobs = bed.run(&["jobs", "--state", "failed", "--kind", "memory_daily", "--limit", "1"]);
    assert!(jobs.out.contains("no model\\u{1b}[2J") && jobs.out.contains("memory_daily"), "{jobs:?}");
    assert!(jobs.err.contains("there are more"), "{jobs:?}");
    let asked = server.requests().last().unwrap().target.clone();
    let asked = if asked.starts_with("/account") {
        server.requests().iter().rev().nth(1).unwrap().target.clone()
    } else {
        asked
    };
    assert!(
        asked.contains("kind=memory_daily") && asked.contains("state=failed") && asked.contains("limit=1"),
        "{asked}"
    );
    let json: Value = serde_json::from_str(&bed.run(&["jobs", "--json"]).out).unwrap();
    assert_eq!(json["data"][0]["work_found"], 7);
    let sent = bed.run(&["notices", "deliveries", "--state", "undelivered"]);
    assert!(sent.out.contains("Failed: Report") && sent.out.contains("status 500"), "{sent:?}");
}
