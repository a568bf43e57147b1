//! Hooks always print nothing, and no payload is lost.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, thread};

use crate::bed::{Bed, DOWN, KEY, PROJECT, ended, payload};
use crate::server::{Reply, Server, wait_until};

#[test]
fn a_payload_goes_to_the_server_as_it_is() {
    let server = Server::taking();
    let bed = Bed::new(&server.url);
    // flags, payload, parameters, body
    let cases: &[(&[&str], &str, &str, &str)] = &[
        (&["--assistant"], &payload(1), "?project=PROJECT", &payload(1)),
        (
            &["-u"],
            r#"{"session_id":"s"}"#,
            "?project=PROJECT",
            r#"{"hook_event_name":"PostToolUse","session_id":"s"}"#,
        ),
        (
            &["-a"],
            r#"{"session_id":"s"}"#,
            "?project=PROJECT",
            r#"{"hook_event_name":"PreToolUse","session_id":"s"}"#,
        ),
        (
            &["-a"],
            r#"{"a":"ü"}"#,
            "?session=default&project=PROJECT",
            r#"{"hook_event_name":"PreToolUse","a":"ü"}"#,
        ),
        (&["-a", "--session", "s 2"], &payload(1), "?session=s+2&project=PROJECT", &payload(1)),
        (&["-a", "--agent-id", "x", "--lines", "0"], &payload(1), "?project=PROJECT", &payload(1)),
        (&["-u"], "nonsense", "?project=PROJECT", "nonsense"),
        (&["-u"], "", "?project=PROJECT", ""),
        (&["-a"], "[1]", "?project=PROJECT", "[1]"),
        (&["-a"], "{\"a\":", "?project=PROJECT", "{\"a\":"),
        (&["-a"], "\u{0}\u{1}\n\n", "?project=PROJECT", "\u{0}\u{1}\n\n"),
    ];
    let mut ids = BTreeSet::new();
    for (count, (flags, given, query, body)) in cases.iter().enumerate() {
        bed.give(&[&["log"], *flags].concat(), given).silent();
        let request = server.wait_for(count + 1).pop().unwrap();
        assert_eq!(
            (request.method.as_str(), &request.target),
            ("POST", &format!("/context/hooks{}", query.replace("PROJECT", PROJECT)))
        );
        assert_eq!(request.text(), *body);
        let at = request.at.clone().unwrap();
        assert!(at.len() == 28 && at.starts_with("20") && at.ends_with('Z'), "{at}");
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
        ids.insert(request.header("idempotency-key").unwrap().to_owned());
    }
    assert_eq!(ids.len(), cases.len());
    wait_until(|| bed.spooled().is_empty());
}

#[test]
fn bytes_that_are_not_text_also_arrive() {
    let server = Server::taking();
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    Bed::new(&server.url).give(&["log", "-a"], &bytes).silent();
    assert_eq!(server.wait_for(1)[0].body, bytes);
}

#[test]
fn a_payload_that_is_too_long_for_the_server_arrives_shortened() {
    let server = Server::taking();
    let bed = Bed::new(&server.url);
    for (count, length) in [(1, 4_390_000), (2, 4_500_000), (3, 9_000_000)] {
        let payload = serde_json::json!({
            "hook_event_name": "PostToolUse", "session_id": "s", "tool_input": {"prompt": "Do it"},
            "tool_response": "x".repeat(length),
        });
        bed.give(&["log", "-u"], payload.to_string()).silent();
        let sent = server.wait_for(count).pop().unwrap();
        assert!(sent.body.len() <= 4_400_000, "{length}: {}", sent.body.len());
        let sent: serde_json::Value = serde_json::from_slice(&sent.body).unwrap();
        assert_eq!(
            (&sent["session_id"], &sent["tool_input"]),
            (&payload["session_id"], &payload["tool_input"])
        );
        let (answer, whole) = (sent["tool_response"].as_str().unwrap(), &payload["tool_response"]);
        match count {
            1 => assert_eq!(answer, whole.as_str().unwrap()),
            _ => assert!(answer.ends_with(&format!("[…cut by lamplighter from {length} bytes]"))),
        }
    }
    wait_until(|| bed.spooled().is_empty());
}

#[test]
fn a_hook_is_silent_and_keeps_its_payload_if_the_server_fails() {
    let replies = [401, 403, 404, 409, 429, 500, 503, 302].map(|status| Reply::status(status, "no"));
    for reply in [&replies[..], &[Reply::Close]].concat() {
        let says = reply.clone();
        let server = Server::start(move |_| says.clone());
        let bed = Bed::new(&server.url);
        bed.give(&["log", "-a"], payload(1)).silent();
        drop(server);
        assert_eq!(bed.spooled().len(), 1, "{reply:?}");

        let up = Server::taking();
        bed.configure(&up.url);
        bed.run(&["log", "--flush"]).printed("sent 1, waiting 0\n");
        assert_eq!(up.bodies(), [payload(1)]);
    }
}

#[test]
fn a_server_that_does_not_answer_gets_its_time_in_the_background() {
    let asked = AtomicUsize::new(0);
    let server = Server::start(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => Reply::Silence,
        _ => Reply::ok(""),
    });
    let bed = Bed::new(&server.url);
    bed.give(&["log", "-a"], payload(1)).silent();
    let requests = server.wait_for(2);
    assert_eq!(requests[0], requests[1]);
    wait_until(|| bed.spooled().is_empty());
}

#[test]
fn an_invalid_configuration_keeps_the_payload_until_it_is_repaired() {
    for broken in [
        "url = ",
        "url = 7",
        "uri = \"http://127.0.0.1:1\"",
        "url = \"ftp://x\"",
        "project = \"shop\"",
        "api_key = \"a b\"",
    ] {
        let bed = Bed::bare();
        bed.write(".config/lamplighter/config.toml", broken);
        bed.give(&["log", "-a"], payload(1)).silent();
        assert_eq!(bed.spooled().len(), 1, "{broken}");

        let server = Server::taking();
        bed.configure(&server.url);
        bed.give(&["log", "-a"], payload(2)).silent();
        let targets: Vec<_> = server.wait_for(2).into_iter().map(|request| request.target).collect();
        assert_eq!(
            targets,
            [format!("/context/hooks?project={PROJECT}"), format!("/context/hooks?project={PROJECT}")]
        );
        assert_eq!(server.bodies(), [payload(1), payload(2)]);
    }
}

#[test]
fn without_a_spool_the_payload_is_sent_at_once() {
    let server = Server::taking();
    let bed = Bed::new(&server.url);
    bed.write("file", "");
    let state = bed.path("file").join("state");
    let bed = bed.with("LAMPLIGHTER_STATE", state.to_str().unwrap());
    bed.give(&["log", "-a"], payload(1)).silent();
    assert_eq!(server.bodies(), [payload(1)]);

    let mut homeless = bed.command(&["log", "-a"]);
    homeless
        .env_clear()
        .env("LAMPLIGHTER_URL", &server.url)
        .stdin(fs::File::open(bed.write("in", payload(2))).unwrap());
    let output = homeless.output().unwrap();
    assert_eq!((output.status.code(), output.stdout, output.stderr), (Some(0), vec![], vec![]));
    assert_eq!(server.bodies(), [payload(1), payload(2)]);

    // If that fails too, it still prints nothing.
    bed.configure(DOWN);
    bed.give(&["log", "-a"], payload(3)).silent();
}

#[test]
fn twenty_hooks_at_once_deliver_twenty_payloads_once_each() {
    let server = Server::taking();
    let bed = Bed::new(&server.url);
    let children: Vec<_> = (0..20).map(|n| bed.start(&["log", "-u"], payload(n))).collect();
    for child in children {
        ended(child).silent();
    }
    wait_until(|| bed.spooled().is_empty());
    let sent = |field: fn(&crate::server::Request) -> String| {
        server.requests().iter().map(field).collect::<BTreeSet<_>>()
    };
    let ids = sent(|request| request.header("idempotency-key").unwrap().to_owned());
    assert_eq!(ids.len(), 20);
    assert_eq!(sent(|request| request.text().to_owned()), (0..20).map(payload).collect());
    // A slow machine may send a record again with its id, if it was not answered in time.
    assert!(server.requests().len() >= 20);
}

#[test]
fn hooks_that_write_while_others_send_lose_nothing() {
    let server = Server::taking();
    let bed = Bed::new(&server.url);
    thread::scope(|scope| {
        for writer in 0..4 {
            let bed = &bed;
            scope.spawn(move || {
                for n in 0..10 {
                    bed.give(&["log", "-a"], payload(writer * 10 + n)).silent();
                }
            });
        }
    });
    wait_until(|| bed.spooled().is_empty());
    let bodies = server.bodies();
    for writer in 0..4 {
        // The records of one writer keep their order.
        let places: Vec<_> = (0..10)
            .map(|n| bodies.iter().position(|body| *body == payload(writer * 10 + n)).unwrap())
            .collect();
        assert!(places.is_sorted(), "{places:?}");
    }
}

#[test]
fn only_the_owner_can_read_the_spool() {
    let bed = Bed::new(DOWN);
    bed.give(&["log", "-a"], payload(1)).silent();
    let file = bed.spooled().pop().unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(file.parent().unwrap()), 0o700);
}
