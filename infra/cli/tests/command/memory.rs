//! `memory doctor` and `memory edit`, with a server that does not do what it should.

use serde_json::{Value, json};

use crate::bed::Bed;
use crate::server::{Reply, Server};

#[test]
fn a_doctor_that_does_not_find_its_probe_fails_and_deletes_it() {
    let server = Server::start(|request| {
        match (request.method.as_str(), request.target.as_str()) {
        ("POST", "/memory/cards") => Reply::status(201, json!({"card_id": "crd_1"}).to_string()),
        ("DELETE", "/memory/cards/crd_1") => Reply::status(204, ""),
        ("GET", "/memory/days") => {
            Reply::ok(json!({"synced": "2026-11-20", "failure": "no model\u{1b}[2J"}).to_string())
        }
        ("GET", "/memory/health") => Reply::ok(
            json!({
                "facts": 3,
                "duplicates": {"count": 1, "facts": [{"fact_id": "fct_2", "text": "Tea.\u{1b}[2J", "like": "fct_1"}]},
                "orphans": {"count": 0, "facts": []},
                "unused": {"count": 7, "facts": (0..7).map(|n| json!({"fact_id": format!("fct_{n}"), "text": "Old"})).collect::<Vec<_>>()},
            })
            .to_string(),
        ),
        // Another card is no probe.
        _ => Reply::ok(json!({"hits": [{"kind": "card", "ref": "crd_2"}]}).to_string()),
    }
    });
    let said = Bed::new(&server.url).run(&["memory", "doctor"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("did not find a card that was written 5 seconds before"), "{said:?}");
    for line in [
        "search        did not find a new card\n",
        "synchronised  2026-11-20\n",
        "failure       no model\\u{1b}[2J\n",
        "facts         3 facts\n",
        "duplicates    1: nearly the same as an earlier one\n  fct_2  Tea.\\u{1b}[2J (like fct_1)\n",
        "orphans       none\n",
        "never used    7: not found by a search and told to no model in 30 days\n",
    ] {
        assert!(said.out.contains(line), "{line}: {}", said.out);
    }
    assert_eq!(said.out.matches("Old\n").count(), 5, "{}", said.out);
    let requests = server.requests();
    let deleted: Vec<&str> =
        requests.iter().filter(|it| it.method == "DELETE").map(|it| it.target.as_str()).collect();
    assert_eq!(deleted, ["/memory/cards/crd_1"]);
    let planted: Value = serde_json::from_slice(&requests[0].body).unwrap();
    let word = planted["title"].as_str().unwrap().strip_prefix("Probe ").unwrap();
    let searches =
        requests.iter().filter(|it| it.target.starts_with(&format!("/memory/search?q={word}&depth=cards")));
    assert!(searches.count() >= 5);
}

#[test]
fn a_doctor_names_a_probe_that_it_cannot_delete() {
    let server = Server::start(|request| match (request.method.as_str(), request.target.as_str()) {
        ("POST", _) => Reply::status(201, json!({"card_id": "crd_1"}).to_string()),
        ("DELETE", _) => Reply::status(500, ""),
        ("GET", "/memory/days" | "/memory/health") => Reply::ok("{}"),
        _ => Reply::ok(json!({"hits": [{"kind": "card", "ref": "crd_1"}]}).to_string()),
    });
    let said = Bed::new(&server.url).run(&["memory", "doctor"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("the probe is still there: the card crd_1"), "{said:?}");
}

#[test]
fn an_edit_names_the_version_that_was_read() {
    let server = Server::start(|request| match request.method.as_str() {
        "GET" => Reply::tagged(7, "- The user has a cat.\n"),
        _ => Reply::ok("{}"),
    });
    let bed = Bed::new(&server.url).with("EDITOR", "true");
    let file = bed.write("notes.md", "- The user has a dog.\n");
    let said = bed.run(&["memory", "edit", "--from", file.to_str().unwrap()]);
    said.printed("saved\n");
    let requests = server.requests();
    assert_eq!(
        (requests[0].target.as_str(), requests[0].header("accept")),
        ("/memory/long-term", Some("text/markdown"))
    );
    assert_eq!(requests[1].header("if-match"), Some("\"7\""));
    let sent: Value = serde_json::from_slice(&requests[1].body).unwrap();
    assert_eq!(sent, json!({"markdown": "- The user has a dog.\n"}));
}
