//! API keys: made, listed, revoked. A secret is printed once, to standard output only.

use serde_json::{Value, json};

use crate::bed::{Bed, KEY};
use crate::server::{Reply, Server};

const ID: &str = "key_0123456789abcdef0123456789abcdef";
const SECRET: &str = "llk_bG9jYWw.0123.abc";

fn key(name: &str) -> Value {
    json!({"key_id": ID, "name": name, "created_at": "2020-11-21T09:00:00Z", "scopes": ["read", "write"]})
}

/// The account of a person in Berlin.
fn account() -> Reply {
    Reply::ok(json!({"timezone": "Europe/Berlin"}).to_string())
}

#[test]
fn a_new_key_is_printed_to_standard_output_only() {
    let server = Server::start(|request| {
        if request.target == "/account" {
            return account();
        }
        let sent: Value = serde_json::from_slice(&request.body).unwrap();
        let mut made = key(sent["name"].as_str().unwrap());
        made["api_key"] = json!(SECRET);
        if sent["expires_in_days"] == 30 {
            made["expires_at"] = json!("2020-12-21T23:00:00Z");
        }
        Reply::status(201, made.to_string())
    });
    let bed = Bed::new(&server.url);
    for (args, sent, until) in [
        (&["laptop"][..], json!({"name": "laptop"}), "it is revoked"),
        (
            &["ci", "--scopes", "read, write", "--days", "30"],
            json!({"name": "ci", "scopes": ["read", "write"], "expires_in_days": 30}),
            "22 Dec 2020 00:00",
        ),
        (
            &["--scopes=admin", "--days=365", "a b"],
            json!({"name": "a b", "scopes": ["admin"], "expires_in_days": 365}),
            "it is revoked",
        ),
    ] {
        let said = bed.run(&[&["keys", "create"], args].concat());
        assert_eq!((said.code, said.out), (0, format!("{SECRET}\n")));
        let name = sent["name"].as_str().unwrap();
        let told = format!(
            "lamplighter: this is the key `{name}` ({ID}) with the scopes read, write, valid until {until}. It is shown only once\n"
        );
        assert_eq!(said.err, told);
        let request = server.requests().into_iter().rfind(|request| request.method == "POST").unwrap();
        assert_eq!(request.target, "/account/api-keys");
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!(request.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
        assert_eq!(serde_json::from_slice::<Value>(&request.body).unwrap(), sent);
    }
}

#[test]
fn all_pages_are_listed_without_control_characters() {
    let server = Server::start(|request| {
        if request.target == "/account" {
            return account();
        }
        let mut used = key("b\u{1b}[2J\nx");
        used["last_used"] = json!("2020-11-22T23:10:00Z");
        used["expires_at"] = json!("2021-06-22T10:00:00Z");
        let second = request.target.contains("cursor=more");
        Reply::ok(if second {
            json!({"data": [used], "has_more": false}).to_string()
        } else {
            json!({"data": [key("a")], "next_cursor": "more", "has_more": true}).to_string()
        })
    });
    Bed::new(&server.url).run(&["keys", "list"]).printed(&format!(
        "{ID}  read,write  created 21 Nov 2020 10:00, last used never  a\n\
         {ID}  read,write  created 21 Nov 2020 10:00, expires 22 Jun 2021 12:00, last used 23 Nov 2020 00:10  b\\u{{1b}}[2J\\nx\n"
    ));
    let targets: Vec<String> = server.requests().into_iter().map(|request| request.target).collect();
    let asked = ["/account/api-keys?limit=200", "/account", "/account/api-keys?limit=200&cursor=more"];
    assert_eq!(targets, asked);

    let empty = Server::start(|_| Reply::ok(r#"{"data": [], "has_more": false}"#));
    let said = Bed::new(&empty.url).run(&["keys", "list"]);
    assert_eq!(
        (said.code, said.out.as_str(), said.err.as_str()),
        (0, "", "lamplighter: there is no API key yet\n")
    );
}

#[test]
fn a_key_is_revoked_by_its_id() {
    let server = Server::start(|_| Reply::status(204, ""));
    Bed::new(&server.url)
        .run(&["keys", "revoke", ID])
        .printed(&format!("revoked {ID}; it can still work for up to 60 seconds\n"));
    let request = server.requests().pop().unwrap();
    assert_eq!((request.method, request.target), ("DELETE".to_owned(), format!("/account/api-keys/{ID}")));
}

#[test]
fn a_failure_says_what_to_do_and_shows_no_key() {
    let cases: [(u16, &str, &str); 5] = [
        (
            401,
            r#"{"detail": "the key is unknown"}"#,
            "a key with the scope admin\nThe first key of a server: stop it",
        ),
        (403, r#"{"detail": "it needs the scope `admin`"}"#, "answered 403: it needs the scope `admin`"),
        (
            400,
            r#"{"errors": [{"field": "name", "message": "must have 1 to 100 characters"}]}"#,
            "name must have 1 to 100",
        ),
        (201, r#"{"api_key": "llk_sekret"}"#, "the server's answer is not what this program expects"),
        (201, "llk_sekret", "the server's answer is not what this program expects"),
    ];
    for (status, body, error) in cases {
        let server = Server::start(move |_| Reply::status(status, body));
        Bed::new(&server.url).run(&["keys", "create", "x"]).failed(error);
    }
    let server = Server::start(|_| Reply::status(404, r#"{"detail": "there is no such API key"}"#));
    Bed::new(&server.url).run(&["keys", "revoke", ID]).failed("answered 404: there is no such API key");

    let server = Server::taking();
    let bed = Bed::new(&server.url);
    for (args, error) in [
        (&["keys"][..], "`keys` needs one of list, create, revoke"),
        (&["keys", "lits"], "a similar subcommand exists: 'list'"),
        (&["keys", "list", "x"], "unexpected argument 'x' found"),
        (&["keys", "list", "--days", "1"], "unexpected argument '--days' found"),
        (&["keys", "create"], "`keys create` needs a name for the key"),
        (&["keys", "create", " "], "`keys create` needs a name for the key"),
        (&["keys", "create", "a", "b"], "unexpected argument 'b' found"),
        (&["keys", "create", "a", "--scopes", "read,all"], "--scopes must be read, write or admin"),
        (&["keys", "create", "a", "--scopes", ""], "--scopes must be read, write or admin"),
        (&["keys", "create", "a", "--days", "0"], "--days must be between 1 and 365, is `0`"),
        (&["keys", "create", "a", "--days", "366"], "--days must be between 1 and 365, is `366`"),
        (&["keys", "revoke"], "`keys revoke` needs the id of a key"),
        (&["keys", "revoke", "../../agents/agt_1"], "is not the id of a key"),
        (&["keys", "revoke", "llk_sekret"], "`llk_…` is not the id of a key; it must be `key_`"),
    ] {
        bed.run(args).failed(error);
    }
    assert_eq!(server.requests(), []);
}
