//! `docs commit`: what is reported of a commit.

use std::fs;
use std::os::unix::ffi::OsStrExt;

use serde_json::json;

use super::{Desk, Platform};

#[test]
fn a_commit_is_reported_with_what_it_says_and_changes() {
    let platform = Platform::default();
    let server = platform.serve();
    let desk = Desk::new(&server.url);
    desk.run(&["commit"]).failed("git: ");
    let names = ["a b.txt", "line\nfeed", "quote\"d", "-dash", "ünï"];
    for name in names {
        desk.write(name, "x");
    }
    desk.git(&["add", "-A"]);
    let message = "Subject with \"quotes\" and a\ttab\n\n--- a/file\n+++ commit 0123\n\u{1b}[31m ünï";
    desk.git(&[
        "-c",
        "core.commentChar=;",
        "commit",
        "-q",
        "-m",
        message,
        "--date",
        "2026-11-20T08:00:00+01:00",
    ]);
    desk.run(&["commit"]).printed("reported 1 new commit; 1 commit since the last synchronisation\n");
    let commit = &platform.commits()[0];
    let mut files: Vec<&str> =
        commit["files"].as_array().unwrap().iter().map(|file| file.as_str().unwrap()).collect();
    let mut expected = names;
    files.sort_unstable();
    expected.sort_unstable();
    assert_eq!(files, expected);
    assert_eq!(
        (&commit["id"], &commit["at"], &commit["author"], &commit["message"], &commit["more_files"]),
        (
            &json!(desk.git(&["rev-parse", "HEAD"])),
            &json!("2026-11-20T07:00:00Z"),
            &json!("Ada"),
            &json!(message),
            &json!(0)
        )
    );
}

#[test]
fn long_commits_are_cut_to_the_limits() {
    let platform = Platform::default();
    let server = platform.serve();
    let desk = Desk::new(&server.url);
    for n in 0..60 {
        desk.write(&format!("{n:02}.txt"), "x");
    }
    let deep = format!("{}/{}", "d".repeat(200), "e".repeat(200));
    fs::create_dir(desk.path(&"d".repeat(200))).unwrap();
    desk.write(&deep, "x");
    // A path that is not UTF-8.
    fs::write(desk.path("").join(std::ffi::OsStr::from_bytes(b"00-\xff")), "x").unwrap();
    desk.git(&["add", "-A"]);
    let author = format!("--author={} <a@example.com>", "ü".repeat(150));
    desk.bed.write("message", "ü".repeat(3_000));
    desk.git(&["commit", "-q", "-F", "../message", &author]);
    desk.run(&["commit"]);
    let commit = &platform.commits()[0];
    assert_eq!(commit["message"].as_str().unwrap().len(), 4_000);
    assert_eq!(commit["author"].as_str().unwrap(), "ü".repeat(100));
    let files = commit["files"].as_array().unwrap();
    assert_eq!((files.len(), &commit["more_files"]), (50, &json!(12)));
    assert!(files.contains(&json!("00-\u{fffd}")), "{files:?}");
    // A commit may name any time, and no message.
    let tree = desk.git(&["rev-parse", "HEAD^{tree}"]);
    desk.bed.write(
        "raw",
        format!("tree {tree}\nauthor A <a> 99999999999999 +0000\ncommitter A <a> -5 +0000\n\nodd\n"),
    );
    let odd = desk.git(&["hash-object", "-t", "commit", "-w", "--literally", "../raw"]);
    desk.run(&["commit", &odd]).printed("reported 1 new commit; 2 commits since the last synchronisation\n");
    desk.git(&["commit", "-q", "--allow-empty", "--allow-empty-message", "-m", ""]);
    desk.run(&["commit"]).printed("reported 0 new commits; 0 commits since the last synchronisation\n");
    assert_eq!(platform.commits().len(), 2);
}

#[test]
fn a_merge_is_compared_with_its_first_parent_and_a_name_like_a_hash_is_a_name() {
    let platform = Platform::default();
    let server = platform.serve();
    let desk = Desk::new(&server.url);
    desk.commit("first");
    let first = desk.git(&["rev-parse", "HEAD"]);
    desk.git(&["checkout", "-q", "-b", "side"]);
    desk.write(&first, "x");
    desk.git(&["add", "-A"]);
    desk.git(&["commit", "-q", "-m", "side"]);
    desk.git(&["checkout", "-q", "main"]);
    desk.commit("second");
    desk.git(&["merge", "-q", "side", "-m", "merged"]);
    let output = desk.run(&["commit", "--json", "HEAD", "HEAD^1", "HEAD^2", "main", &first]);
    let added: serde_json::Value = serde_json::from_str(&output.out).unwrap();
    assert_eq!(added["new"], 4);
    let files: Vec<_> = platform
        .commits()
        .iter()
        .map(|commit| (commit["message"].clone(), commit["files"].clone()))
        .collect();
    assert_eq!(
        files,
        [
            (json!("merged"), json!([first])),
            (json!("second"), json!(["log.txt"])),
            (json!("side"), json!([first])),
            (json!("first"), json!(["log.txt"])),
        ]
    );
}

#[test]
fn a_range_is_reported_oldest_first_in_parts() {
    let platform = Platform::default();
    let server = platform.serve();
    let desk = Desk::new(&server.url);
    desk.commit("first");
    let mut stream = String::new();
    for n in 0..1_001 {
        let from = if n == 0 { "from refs/heads/main^0\n" } else { "" };
        let text = format!("change {n}");
        stream.push_str(&format!(
            "commit refs/heads/main\ncommitter A <a> {} +0000\ndata {}\n{text}\n{from}\n",
            1_795_251_600 + n,
            text.len()
        ));
    }
    let file = desk.bed.write("stream", stream);
    let import = std::process::Command::new("git")
        .args(["fast-import", "--quiet"])
        .current_dir(desk.path(""))
        .stdin(fs::File::open(file).unwrap())
        .status();
    assert!(import.unwrap().success());
    desk.run(&["commit", "HEAD~450..HEAD"])
        .printed("reported 450 new commits; 450 commits since the last synchronisation\n");
    let messages = platform.messages();
    assert_eq!(
        (messages.len(), messages[0].as_str(), messages[449].as_str()),
        (450, "change 551", "change 1000")
    );
    assert_eq!(server.requests().len(), 3);
    desk.run(&["commit", "HEAD~1001..HEAD"]).failed("these are 1001 or more commits, and at most 1000 wait");
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn revisions_of_strangers_are_no_options() {
    let platform = Platform::default();
    let server = platform.serve();
    let desk = Desk::new(&server.url);
    desk.commit("first");
    desk.git(&["update-ref", "refs/heads/--output=x", "HEAD"]);
    for revision in ["--output=evil", "--all", "--git-dir", "--output=evil..HEAD"] {
        desk.run(&["commit", "--", revision]).failed("git: ");
    }
    desk.run(&["commit", "--", "--output=x"])
        .printed("reported 1 new commit; 1 commit since the last synchronisation\n");
    assert!(!desk.path("evil").exists() && !desk.path("x").exists());
    // The configuration of a repository may name programs.
    for setting in
        ["core.fsmonitor", "diff.external", "core.pager", "gpg.program", "core.sshCommand", "pager.rev-list"]
    {
        desk.git(&["config", setting, "touch evil;false"]);
    }
    desk.git(&["config", "log.showSignature", "true"]);
    desk.git(&["config", "diff.evil.textconv", "touch evil;cat"]);
    desk.write(".gitattributes", "* diff=evil filter=evil\n");
    desk.run(&["commit"]).printed("reported 1 new commit; 2 commits since the last synchronisation\n");
    desk.run(&["status"]);
    desk.run(&["hook", "show"]);
    assert!(!desk.path("evil").exists());
}
