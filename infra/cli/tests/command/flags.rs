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
        (read(&["--lines"]), "a value is required for '--lines <N>'"),
        (read(&["--bogus"]), "unexpected argument '--bogus' found"),
        (read(&["more"]), "unexpected argument 'more' found"),
        (vec!["logs"], "unrecognized subcommand 'logs'"),
        (vec!["--bogus"], "unexpected argument '--bogus' found"),
        (vec!["context"], "`context` needs one of show, edit, export, init"),
        (vec!["context", "list"], "unrecognized subcommand 'list'"),
        (vec!["context", "export"], "`context export` needs a folder"),
        (vec!["context", "init"], "`context init` needs a folder"),
        (vec!["context", "init", "a", "b"], "unexpected argument 'b' found"),
        (vec!["context", "init", "a", "--force"], "unexpected argument '--force' found"),
        (vec!["context", "show", "--from", "x"], "unexpected argument '--from' found"),
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
fn an_agent_without_entries_is_said_to_have_none() {
    for answer in ["", "\n"] {
        let server = Server::start(move |_| Reply::ok(answer));
        let said = Bed::new(&server.url).run(&["log", "-r", "--agent-id", "ab", "--format", "text"]);
        let told = "lamplighter: the agent ab has no entries\n";
        assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (0, "", told));
    }
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
    // A detail that names the fields is not said twice.
    let problem =
        r#"{"detail":"session: must be shorter","errors":[{"field":"session","message":"must be shorter"}]}"#;
    let server = Server::start(move |_| Reply::status(400, problem));
    let told = Bed::new(&server.url).run(&["log", "-r", "--agent-id", "ab"]);
    assert_eq!(told.err.matches("must be shorter").count(), 1, "{told:?}");
}

#[test]
fn help_and_version_are_printed() {
    let bed = Bed::bare();
    let version = format!("lamplighter {}\n", env!("CARGO_PKG_VERSION"));
    bed.run(&["--version"]).printed(&version);
    bed.run(&["-V"]).printed(&version);
    let Output { code, out, err } = bed.run(&["--help"]);
    assert_eq!((code, err.as_str()), (0, ""));
    for command in [
        "chat",
        "inbox",
        "approve",
        "accept",
        "answer",
        "actions",
        "runs",
        "due",
        "why",
        "assets",
        "agents",
        "chats",
        "proposals",
        "usage",
        "memory",
        "jobs",
        "notices",
        "theme",
        "watch",
        "stop",
        "start",
        "status",
        "keys",
        "context",
        "log",
        "trust",
        "completions",
    ] {
        assert!(out.contains(&format!("\n  {command} ")), "{command}");
    }
    for args in [&[][..], &["help"], &["-h"]] {
        bed.run(args).printed(&out);
    }
    // Each command has a page of its own, and every way to ask for it leads there.
    let pages: &[(&[&str], &[&str])] = &[
        (
            &["log"],
            &[
                "--assistant",
                "--user",
                "--read",
                "--agent-id",
                "--lines",
                "--session",
                "--format",
                "--flush",
                "--recall",
                "--include-metadata",
            ],
        ),
        (&["context"], &["show", "edit", "export", "init"]),
        (&["context", "show"], &["--project", "--workflow"]),
        (&["context", "edit"], &["--project", "--workflow", "--from"]),
        (&["context", "export"], &["--force", "[DIR]"]),
        (&["context", "init"], &["[DIR]"]),
        (&["keys"], &["list", "create", "revoke"]),
        (&["keys", "create"], &["--scopes", "--days"]),
        (&["trust"], &["--revoke", "--list"]),
        (&["start"], &["--missed"]),
        (&["status"], &["lamplighter status"]),
        (&["chat"], &["--chat", "--new", "--json", "Ctrl-C"]),
        (&["approve"], &["--hash", "--json"]),
        (&["runs"], &["--action", "--agent", "--state", "--kind", "--from", "--to", "--limit", "--json"]),
        (&["theme"], &["check", "lookup", "map", "graph", "./theme"]),
        (
            &["theme", "check"],
            &["--overlay", "--deleted", "--json", "--format", "--limit", "text, json, sarif, github"],
        ),
        (
            &["memory"],
            &[
                "search", "show", "correct", "forget", "confirm", "sync", "tidy", "tidies", "rollback",
                "edit", "doctor",
            ],
        ),
        (&["memory", "search"], &["--depth", "--namespace", "--limit", "--json", "cards, memory, raw"]),
        (&["memory", "show"], &["long-term", "[WHEN]", "--json"]),
        (&["memory", "forget"], &["--yes", "--json"]),
        (&["memory", "edit"], &["--from"]),
        (&["agents", "new"], &["--name", "--goal"]),
    ];
    for (command, parts) in pages {
        let Output { code, out, err } = bed.run(&[*command, &["--help"]].concat());
        assert_eq!((code, err.as_str()), (0, ""), "{command:?}");
        for part in *parts {
            assert!(out.contains(part), "{command:?}: {part} is not in {out}");
        }
        assert!(out.contains("Example"), "{out}");
        bed.run(&[*command, &["-h"]].concat()).printed(&out);
        bed.run(&[&["help"], *command].concat()).printed(&out);
    }
    let log = bed.run(&["log", "--help"]).out;
    for args in [&["log", "-ah"][..], &["log", "--read", "--agent-id", "ab", "--help"]] {
        bed.run(args).printed(&log);
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
        (&["log", "--assitant"][..], "a similar argument exists: '--assistant'"),
        (&["log", "--read", "--agentid", "ab"], "a similar argument exists: '--agent-id'"),
        (&["context", "edit", "--form", "x"], "a similar argument exists: '--from'"),
        (&["context", "export", "x", "--forse"], "a similar argument exists: '--force'"),
        (&["log", "-x"], "unexpected argument '-x' found"),
        (&["log", "-x"], "For more information, try '--help'"),
        (&["logs"], "a similar subcommand exists: 'log'"),
        (&["statsu"], "'status'"),
        (&["context", "edti"], "a similar subcommand exists: 'edit'"),
        (&["status", "now"], "unexpected argument 'now' found"),
        (&["runs", "--limit", "0"], "0 is not in 1..=10000"),
        (&["chat", "a", "--new", "--chat", "cht_1"], "cannot be used with"),
        (&["approve"], "required arguments were not provided"),
        (&["memory"], "Usage: lamplighter memory <COMMAND>"),
        (&["memory", "search"], "required arguments were not provided"),
        (&["memory", "search", "x", "--depth", "deep"], "possible values: cards, memory, raw"),
        (&["memory", "search", "x", "--limit", "101"], "101 is not in 1..=100"),
        (&["completions", "tcsh"], "possible values: bash, zsh, fish"),
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
