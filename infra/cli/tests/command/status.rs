//! What `status` reports about the server, the spool and the hooks.

use serde_json::json;

use crate::bed::{Bed, DOWN, PROJECT, payload};
use crate::server::{Reply, Server};

#[test]
fn status_shows_the_server_and_the_results_of_hooks() {
    let server = Server::start(|request| {
        let path = request.target.split('?').next().unwrap();
        Reply::ok(match path {
            "/health" => json!({"status": "ok", "version": "1.2.3"}).to_string(),
            "/context/hooks/rejected" => json!({
                "count": 7, "has_more": true,
                "dropped": [{"project_id": "prj_1", "agent_type": "Explore\u{1b}[2J", "count": 3, "reason": "the filter"}],
                "data": [{"refused_at": "2020-11-21T09:00:00Z", "reason": "session_id: is missing", "bytes": 2, "excerpt": "{}"}],
            })
            .to_string(),
            "/context/logs" => json!({"data": [{
                "session_id": "s-1",
                "agents": [
                    {"agent_id": "arch-auth", "agent_type": "the-architect", "total_entries": 4, "last_modified": "2020-11-21T23:10:00.000Z"},
                ],
            }]})
            .to_string(),
            "/account" => json!({"timezone": "Europe/Berlin"}).to_string(),
            _ => json!({"name": "Shop", "hook_filter": ["the-", "my-"]}).to_string(),
        })
    });
    let bed = Bed::new(&server.url);
    let said = bed.run(&["status"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{}", said.out);
    let from = bed.path(".config/lamplighter/config.toml");
    for part in [
        &format!("{}, from {}: answers (version 1.2.3, ", server.url, from.display()),
        "key       one is sent",
        "spool     empty; no hook has run yet",
        &format!("project   {PROJECT} \"Shop\""),
        "filter    records agents of the types the-…, my-…; drops all others",
        "dropped   3 hooks of `Explore [2J` in prj_1: the filter",
        "{\"hook_filter\": \"all\"}",
        "rejected  7 since yesterday\n          21 Nov 2020 10:00 session_id: is missing",
        "seen      22 Nov 2020 00:10 arch-auth (the-architect), 4 entries, session s-1",
    ] {
        assert!(said.out.contains(part), "{part}\n---\n{}", said.out);
    }
    assert!(!said.out.contains('\u{1b}'));
}

#[test]
fn status_names_an_unavailable_server_and_shows_waiting_payloads() {
    let bed = Bed::new(DOWN);
    bed.give(&["log", "-a"], payload(1)).silent();
    let said = bed.run(&["status"]);
    assert_eq!(said.code, 1);
    assert!(said.out.contains(&format!("server    {DOWN}, from ")), "{}", said.out);
    assert!(
        said.out.contains("does not answer") && said.out.contains("spool     1 waiting, 0 rejected, 0 lost")
    );
    assert!(said.err.contains(DOWN) && said.err.contains("is it running?"), "{}", said.err);

    // Rejected payloads are shown with the reason.
    let server = Server::start(|_| Reply::status(422, r#"{"detail": "no such thing"}"#));
    bed.configure(&server.url);
    bed.run(&["log", "--flush"]);
    let said = bed.run(&["status"]);
    assert!(said.out.contains("0 waiting, 1 rejected, 0 lost"), "{}", said.out);
    assert!(said.out.contains("answered 422: no such thing"), "{}", said.out);
}

#[test]
fn the_environment_and_the_default_are_named_as_such() {
    let said = Bed::bare().with("LAMPLIGHTER_URL", DOWN).run(&["status"]);
    assert!(said.out.contains(&format!("{DOWN}, from LAMPLIGHTER_URL: ")), "{}", said.out);
    let said = Bed::bare().run(&["status"]);
    assert!(said.out.contains("http://127.0.0.1:9000, from the default: "), "{}", said.out);
}
