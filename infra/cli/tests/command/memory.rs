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

fn zipped(files: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, text) in files {
        zip.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        std::io::Write::write_all(&mut zip, text.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

#[test]
fn a_memory_is_written_as_a_zip() {
    let archive = zipped(&[("MEMORY.md", "- x\n"), ("memory/2026-02-01.md", "- y\n")]);
    let sent = archive.clone();
    let server = Server::start(move |_| Reply::ok(sent.clone()));
    let bed = Bed::new(&server.url);
    bed.run(&["memory", "export", "memory.zip"]).printed("2 files, in memory.zip\n");
    assert_eq!(std::fs::read(bed.path("project/memory.zip")).unwrap(), archive);
    let again = bed.run(&["memory", "export", "memory.zip"]);
    assert!(again.code == 1 && again.err.contains("memory.zip exists (--force replaces it)"), "{again:?}");
    bed.run(&["memory", "export", "memory.zip", "--force"]).printed("2 files, in memory.zip\n");
    // An export that ends early is not kept.
    let server = Server::start(move |_| Reply::ok(archive[..40].to_vec()));
    let bed = Bed::new(&server.url);
    let torn = bed.run(&["memory", "export", "torn.zip"]);
    assert!(torn.code == 1 && torn.err.contains("failed to read the archive"), "{torn:?}");
    assert!(!bed.path("project/torn.zip").exists());
}

#[test]
fn a_folder_is_sent_with_what_the_platform_knows() {
    let state = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let address = std::sync::Arc::clone(&state);
    let server = Server::start(move |request| {
        match (request.method.as_str(), request.target.as_str()) {
        ("POST", "/account/import") => {
            let url = format!("{}/bucket/archive?signed=1", address.lock().unwrap());
            let upload = json!({"method": "PUT", "url": url, "headers": {"content-type": "application/zip", "x-sum": "7"}});
            Reply::status(202, json!({"state": "waiting", "upload": upload}).to_string())
        }
        ("PUT", _) => Reply::ok(""),
        _ => Reply::ok(json!({"state": "done", "records": {"agents": 1}, "left_out": {"files": 2}, "notes": ["a: left\u{1b}[2J."]}).to_string()),
    }
    });
    state.lock().unwrap().clone_from(&server.url);
    let bed = Bed::new(&server.url);
    for (name, text) in [
        ("claw/openclaw.json", "{\"token\": \"secret\"}"),
        ("claw/credentials/oauth.json", "secret"),
        ("claw/cron/jobs.json", "{}"),
        ("claw/cron/runs/1.jsonl", "x"),
        ("claw/workspace/MEMORY.md", "- x\n"),
        ("claw/workspace/SOUL.md", "x"),
        ("claw/workspace/memory/2026-02-01.md", "- y\n"),
        ("claw/workspace/memory/archive/2025/2025-12-30.md", "- z\n"),
        ("claw/agents/main/sessions/a.jsonl", "{}"),
        ("claw/agents/main/sessions/sessions.json", "{}"),
        ("claw/agents/main/agent/auth-profiles.json", "secret"),
        ("elsewhere/b.jsonl", "secret"),
    ] {
        bed.write(name, text);
    }
    let folder = bed.write("claw/x", "").parent().unwrap().to_owned();
    std::os::unix::fs::symlink(folder.parent().unwrap().join("elsewhere"), folder.join("sessions")).unwrap();
    std::os::unix::fs::symlink(folder.join("openclaw.json"), folder.join("workspace/memory/2026-02-02.md"))
        .unwrap();
    let said = bed.run(&["memory", "import", folder.to_str().unwrap()]);
    let told = "brought in: 1 agent\nleft out: 2 files\na: left\\u{1b}[2J.\n";
    assert_eq!((said.code, said.out.as_str()), (0, told), "{said:?}");
    let requests = server.requests();
    let asked: Value = serde_json::from_slice(&requests[0].body).unwrap();
    let put = requests.iter().find(|it| it.method == "PUT").unwrap();
    assert_eq!((&asked["format"], &asked["bytes"]), (&json!("openclaw"), &json!(put.body.len())));
    assert_eq!((put.header("x-sum"), put.header("authorization")), (Some("7"), None));
    let mut zip = zip::ZipArchive::new(std::io::Cursor::new(put.body.clone())).unwrap();
    let names: Vec<String> =
        (0..zip.len()).map(|at| zip.by_index(at).unwrap().name().unwrap().into_owned()).collect();
    assert_eq!(
        names,
        [
            "agents/main/sessions/a.jsonl",
            "agents/main/sessions/sessions.json",
            "cron/jobs.json",
            "workspace/MEMORY.md",
            "workspace/memory/2026-02-01.md",
            "workspace/memory/archive/2025/2025-12-30.md",
        ]
    );
    let empty = bed.write("empty/readme.txt", "x");
    let said = bed.run(&["memory", "import", empty.parent().unwrap().to_str().unwrap()]);
    assert!(said.code == 1 && said.err.contains("has none of MEMORY.md"), "{said:?}");
    bed.run(&["memory", "import", "/no/such"]).failed("there is no such file or folder: /no/such");
}

#[test]
fn an_import_that_fails_ends_with_1() {
    let server = Server::start(|request| match request.method.as_str() {
        "POST" => {
            Reply::status(202, json!({"upload": {"url": "file:///etc/passwd", "headers": {}}}).to_string())
        }
        _ => Reply::ok("{}"),
    });
    let bed = Bed::new(&server.url);
    let file = bed.write("a.zip", "PK");
    let said = bed.run(&["memory", "import", file.to_str().unwrap()]);
    assert!(said.code == 1 && !said.err.is_empty(), "{said:?}");
    assert!(server.requests().iter().all(|it| it.method == "POST"));
}
