//! Every flag, alone and with the others.

use crate::bed::{Bed, DOWN, Output, PROJECT};
use crate::server::{Reply, Server};

const MODES: &str = "exactly one mode required: --assistant, --user, or --read";
const LINES: &str = "--lines must be between 1 and 1000";

#[test]
fn invalid_arguments_are_refused_with_the_reason() {
    let bed = Bed::new(DOWN);
    let too_long = "a".repeat(65);
    let read = |rest: &[&'static str]| [&["log", "--read", "--agent-id", "arch-001"], rest].concat();
    let id = |id: &'static str| vec!["log", "-r", "--agent-id", id];
    for (args, error) in [
        (vec!["log"], MODES),
        (vec!["log", "--agent-id", "arch-001"], MODES),
        (vec!["log", "--assistant", "--user"], MODES),
        (vec!["log", "--assistant", "--read"], MODES),
        (vec!["log", "-u", "-r", "--agent-id", "arch-001"], MODES),
        (vec!["log", "-aur"], MODES),
        (vec!["log", "--flush", "--user"], MODES),
        (vec!["log", "-ar", "--lines", "0"], MODES),
        (vec!["log", "--read"], "--agent-id required when using --read"),
        (vec!["log", "-r", "--agent-id", ""], "--agent-id required when using --read"),
        (vec!["log", "-r", "--lines", "0"], "--agent-id required when using --read"),
        (id("a"), "invalid agent-id format"),
        (id("-ab"), "invalid agent-id format"),
        (id("ab_"), "invalid agent-id format"),
        (id("invalid@id!"), "invalid agent-id format"),
        (id("a b"), "invalid agent-id format"),
        (id("../x"), "invalid agent-id format"),
        (id("größe"), "invalid agent-id format"),
        (vec!["log", "-r", "--agent-id", too_long.as_str()], "invalid agent-id format"),
        (read(&["--lines", "0"]), LINES),
        (read(&["--lines", "1001"]), LINES),
        (read(&["--lines", "-1"]), LINES),
        (read(&["--lines=-1"]), LINES),
        (read(&["--lines", "ten"]), LINES),
        (read(&["--lines", "99999999999999999999"]), LINES),
        (read(&["--lines", ""]), LINES),
        (read(&["--format", "yaml"]), "--format must be json or text"),
        (read(&["--format", "JSON"]), "--format must be json or text"),
        (read(&["--lines"]), "missing argument for option '--lines'"),
        (read(&["--bogus"]), "invalid option '--bogus'"),
        (read(&["more"]), "unexpected argument \"more\""),
        (vec!["logs"], "there is no command `logs`"),
        (vec!["--bogus"], "invalid option '--bogus'"),
        (vec!["context"], "`context` needs one of show, edit, export, init"),
        (vec!["context", "list"], "there is no command `context list`"),
        (vec!["context", "export"], "`context export` needs a folder"),
        (vec!["context", "init"], "`context init` needs a folder"),
        (vec!["context", "init", "a", "b"], "unexpected argument \"b\""),
        (vec!["context", "init", "a", "--force"], "invalid option '--force'"),
        (vec!["context", "show", "--from", "x"], "invalid option '--from'"),
        (
            vec!["context", "show", "--project", "shop"],
            "`shop` is not a project id; it must be `default`, or `prj_`",
        ),
    ] {
        let output = bed.run(&args);
        assert_eq!((output.code, output.out.as_str()), (1, ""), "{args:?}");
        assert!(
            output.err.starts_with("lamplighter: ") && output.err.contains(error),
            "{args:?}: {}",
            output.err
        );
    }
    assert_eq!(bed.spooled(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn reading_asks_the_server_and_prints_what_it_says() {
    let answer = r#"{"entries":[]}"#;
    let server = Server::start(move |_| Reply::ok(answer));
    let bed = Bed::new(&server.url);
    let longest = "b".repeat(64);
    let longest_target = format!("/context/logs/{longest}?lines=50&project=PROJECT&format=json");
    let cases: &[(&[&str], &str)] = &[
        (
            &["--read", "--agent-id", "arch-001"],
            "/context/logs/arch-001?lines=50&project=PROJECT&format=json",
        ),
        (&["-r", "--agent-id=Arch_001"], "/context/logs/Arch_001?lines=50&project=PROJECT&format=json"),
        (&["-r", "--agent-id", &longest], &longest_target),
        (&["-r", "--agent-id", "ab", "--lines", "1"], "/context/logs/ab?lines=1&project=PROJECT&format=json"),
        (
            &["--lines=1000", "--agent-id", "ab", "-r"],
            "/context/logs/ab?lines=1000&project=PROJECT&format=json",
        ),
        (
            &["-r", "--agent-id", "ab", "--format", "text"],
            "/context/logs/ab?lines=50&project=PROJECT&format=text",
        ),
        (
            &["-r", "--agent-id", "ab", "--session", "dev-1"],
            "/context/logs/ab?lines=50&session=dev-1&project=PROJECT&format=json",
        ),
        (
            &["-r", "--agent-id", "ab", "--session", ""],
            "/context/logs/ab?lines=50&project=PROJECT&format=json",
        ),
        (
            &["-r", "--agent-id", "ab", "--session", "../x y"],
            "/context/logs/ab?lines=50&session=..%2Fx+y&project=PROJECT&format=json",
        ),
        (
            &["-r", "--agent-id", "ab", "--include-metadata"],
            "/context/logs/ab?lines=50&project=PROJECT&format=json&include_metadata=true",
        ),
    ];
    for (args, target) in cases {
        bed.run(&[&["log"], *args].concat()).printed(&format!("{answer}\n"));
        let request = server.requests().pop().unwrap();
        assert_eq!(
            (request.method.as_str(), request.target.as_str()),
            ("GET", target.replace("PROJECT", PROJECT).as_str())
        );
        assert_eq!(request.header("authorization"), Some(format!("Bearer {}", crate::bed::KEY).as_str()));
    }
}

#[test]
fn a_reader_is_told_why_there_is_nothing_to_read() {
    let problem = r#"{"code":"invalid_input","detail":"the input is not valid","errors":[{"field":"session","message":"must be shorter"}]}"#;
    let cases: [(Reply, &str); 6] = [
        (Reply::status(400, problem), "answered 400: the input is not valid; session must be shorter"),
        (Reply::status(401, ""), "answered 401; set LAMPLIGHTER_API_KEY, or api_key_file"),
        (Reply::status(404, "<html>"), "answered 404"),
        (Reply::status(302, ""), "answered 302"),
        (Reply::status(500, "{"), "answered 500"),
        (Reply::Close, "failed to reach http://127.0.0.1:"),
    ];
    for (reply, error) in cases {
        let server = Server::start(move |_| reply.clone());
        Bed::new(&server.url).run(&["log", "-r", "--agent-id", "ab"]).failed(error);
    }
    Bed::new(DOWN)
        .run(&["log", "-r", "--agent-id", "ab"])
        .failed("is it running? (LAMPLIGHTER_URL says where)");
}

#[test]
fn help_and_version_are_printed() {
    let bed = Bed::bare();
    let version = format!("lamplighter {}\n", env!("CARGO_PKG_VERSION"));
    bed.run(&["--version"]).printed(&version);
    bed.run(&["-V"]).printed(&version);
    let Output { code, out, err } = bed.run(&["--help"]);
    assert_eq!((code, err.as_str()), (0, ""));
    for flag in [
        "--assistant",
        "--user",
        "--read",
        "--agent-id",
        "--lines",
        "--session",
        "--format",
        "--include-metadata",
        "--flush",
        "--recall",
        "status",
        "show",
        "edit",
        "export",
        "init",
        "--workflow",
        "--from",
        "--force",
        "keys list",
        "keys create",
        "--scopes",
        "--days",
        "keys revoke",
        "trust",
        "--revoke",
        "--list",
    ] {
        assert!(out.contains(flag), "{flag}");
    }
    for args in [
        &[][..],
        &["help"],
        &["-h"],
        &["log", "--help"],
        &["log", "-h"],
        &["log", "--read", "--agent-id", "ab", "--help"],
        &["log", "-ah"],
        &["context", "-h"],
        &["context", "--help"],
        &["context", "show", "--help"],
        &["context", "edit", "-h"],
        &["context", "edit", "--from", "x", "--help"],
        &["context", "export", "--help"],
        &["context", "init", "-h"],
        &["context", "init", "dir", "--help"],
        &["status", "--help"],
        &["keys", "--help"],
        &["keys", "create", "-h"],
        &["trust", "--help"],
    ] {
        bed.run(args).printed(&out);
    }
    for args in
        [&["log", "--version"][..], &["log", "-V"], &["context", "show", "--version"], &["status", "-V"]]
    {
        bed.run(args).printed(&version);
    }
    assert_eq!(bed.spooled(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_mistyped_argument_gets_a_suggestion() {
    let bed = Bed::bare();
    for (args, error) in [
        (&["log", "--assitant"][..], "invalid option '--assitant', did you mean `--assistant`?"),
        (&["log", "--read", "--agentid", "ab"], "invalid option '--agentid', did you mean `--agent-id`?"),
        (&["context", "edit", "--form", "x"], "invalid option '--form', did you mean `--from`?"),
        (&["context", "export", "x", "--forse"], "invalid option '--forse', did you mean `--force`?"),
        (&["log", "-x"], "invalid option '-x'; `lamplighter --help` lists them"),
        (&["--bogus"], "invalid option '--bogus'; `lamplighter --help` lists them"),
        (&["logs"], "there is no command `logs`, did you mean `log`?"),
        (&["statsu"], "there is no command `statsu`, did you mean `status`?"),
        (&["context", "edti"], "there is no command `context edti`, did you mean `edit`?"),
        (&["status", "now"], "unexpected argument \"now\""),
    ] {
        bed.run(args).failed(error);
    }
}

#[test]
fn an_unavailable_server_is_named_with_advice() {
    let bed = Bed::new(DOWN);
    let said = bed.run(&["log", "-r", "--agent-id", "ab"]);
    said.failed(DOWN);
    said.failed("LAMPLIGHTER_URL");
    said.failed("lamplighter status");
}
