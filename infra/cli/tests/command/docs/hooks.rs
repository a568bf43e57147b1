//! `docs hook`: hooks of git that report commits, and make up for what they have missed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::{Desk, Platform};
use crate::server::{Reply, Server, wait_until};

const HOOKS: [&str; 3] = ["post-commit", "post-merge", "post-rewrite"];

fn executable(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A repository with a commit and the hooks.
fn installed(platform: &Platform) -> (Server, Desk) {
    let server = platform.serve();
    let desk = Desk::new(&server.url);
    desk.commit("before");
    let output = desk.run(&["hook", "install"]);
    assert_eq!(output.code, 0, "{output:?}");
    (server, desk)
}

#[test]
fn a_command_that_hooks_cannot_find_is_told() {
    let platform = Platform::default();
    let (_server, desk) = installed(&platform);
    // The tests run the program by its path. This folder is one that the hooks look into.
    let told =
        |desk: &Desk| desk.run(&["hook", "install"]).err.contains("no program `lamplighter` in your PATH");
    desk.bed.write(".cargo/bin/lamplighter", "");
    assert!(told(&desk), "it is no program");
    fs::set_permissions(desk.bed.path(".cargo/bin/lamplighter"), fs::Permissions::from_mode(0o755)).unwrap();
    assert!(!told(&desk));
}

/// Waits until everything is reported, and returns what `hook show` prints.
#[track_caller]
fn settled(desk: &Desk) -> String {
    wait_until(|| desk.run(&["hook", "show"]).out.contains("not reported  0 commits"));
    desk.run(&["hook", "show"]).out
}

#[test]
fn commits_amends_merges_and_rebases_are_reported() {
    let platform = Platform::default();
    let (_server, desk) = installed(&platform);
    desk.commit("one");
    platform.gets(&["one"]);
    desk.git(&["commit", "-q", "--amend", "-m", "one amended"]);
    platform.gets(&["one amended"]);
    // Commits of others come with a merge, also with one that makes no commit.
    desk.git(&["clone", "-q", ".", "../theirs"]);
    for (n, message) in ["theirs 1", "theirs 2"].iter().enumerate() {
        desk.bed.write(&format!("theirs/{n}.txt"), "x");
        desk.git_in("theirs", &["add", "-A"]);
        desk.git_in("theirs", &["commit", "-q", "-m", message]);
    }
    desk.git(&["pull", "-q", "--ff-only", "../theirs"]);
    platform.gets(&["theirs 1", "theirs 2"]);
    desk.git(&["checkout", "-q", "-b", "side", "HEAD~1"]);
    desk.write("side.txt", "x");
    desk.git(&["add", "-A"]);
    desk.git(&["commit", "-q", "-m", "side"]);
    desk.git(&["checkout", "-q", "main"]);
    desk.git(&["merge", "-q", "side", "-m", "merged"]);
    platform.gets(&["side", "merged"]);
    settled(&desk);
    // A rebase brings new commits with the old messages.
    desk.git(&["checkout", "-q", "-b", "feature", "HEAD~1"]);
    for n in 0..5 {
        desk.write(&format!("feature {n}"), "x");
        desk.git(&["add", "-A"]);
        desk.git(&["commit", "-q", "-m", &format!("feature {n}")]);
    }
    platform.gets(&["feature 4"]);
    desk.git(&["rebase", "-q", "main"]);
    let rebased = desk.git(&["rev-list", "main..feature"]);
    wait_until(|| rebased.lines().all(|id| platform.commits().iter().any(|commit| commit["id"] == id)));
    // The side of others was rewritten, and forced on us.
    settled(&desk);
    desk.git_in("theirs", &["commit", "-q", "--amend", "-m", "theirs forced"]);
    desk.git(&["fetch", "-q", "../theirs", "+main:refs/remotes/theirs"]);
    desk.git(&["checkout", "-q", "main"]);
    desk.git(&["reset", "-q", "--hard", "refs/remotes/theirs"]);
    desk.commit("after");
    platform.gets(&["theirs forced", "after"]);
    let shown = settled(&desk);
    assert!(shown.contains(" of main\n") && shown.contains(" of feature\n"), "{shown}");
    assert!(!platform.messages().contains(&"before".to_owned()), "it was there before the hooks");
    // Nothing is reported twice.
    let mut ids: Vec<String> =
        platform.commits().iter().map(|commit| commit["id"].as_str().unwrap().to_owned()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

#[test]
fn a_rebase_reports_only_what_stays() {
    let platform = Platform::default();
    let (_server, desk) = installed(&platform);
    for message in ["a", "b", "c"] {
        desk.write(&format!("{message}.txt"), "x");
        desk.git(&["add", "-A"]);
        desk.git(&["-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", message]);
    }
    // It stops amid, where the commits are not final.
    desk.git(&[
        "-c",
        "sequence.editor=sed -i -e '1s/pick/reword/' -e '2s/pick/edit/'",
        "rebase",
        "-q",
        "-i",
        "HEAD~3",
    ]);
    desk.git(&["commit", "-q", "--amend", "-m", "b edited"]);
    assert_eq!(platform.messages(), [""; 0]);
    desk.git(&["rebase", "--continue"]);
    platform.gets(&["a", "b edited", "c"]);
    settled(&desk);
    assert_eq!(platform.messages(), ["a", "b edited", "c"]);
}

#[test]
fn what_was_missed_is_made_up_for() {
    let platform = Platform::default();
    let (_server, desk) = installed(&platform);
    // The server is away, or refuses. No commit fails.
    let fails = |status: u16, error: &str| {
        platform.refuses(Some(status));
        desk.commit(error);
        wait_until(|| {
            let shown = desk.run(&["hook", "show"]).out;
            shown.lines().any(|line| line.starts_with("last error") && line.contains(error))
        });
    };
    fails(0, "failed to reach");
    fails(503, "answered 503: not now");
    desk.git(&["-c", "core.hooksPath=/dev/null", "commit", "-q", "--allow-empty", "-m", "without hooks"]);
    assert!(desk.run(&["hook", "show"]).out.contains("not reported  3 commits"));
    platform.refuses(None);
    desk.commit("online");
    let all = ["failed to reach", "answered 503: not now", "without hooks", "online"];
    platform.gets(&all);
    let shown = settled(&desk);
    assert_eq!(platform.messages(), all);
    assert!(!shown.contains("last error"), "{shown}");
    // Also by a synchronisation.
    platform.refuses(Some(503));
    desk.commit("late");
    wait_until(|| desk.run(&["hook", "show"]).out.contains("answered 503"));
    platform.refuses(None);
    platform.0.lock().unwrap().sync = serde_json::json!({"state": "succeeded"});
    desk.run(&["sync"]).printed("a synchronisation waits to begin\n");
    assert!(platform.messages().contains(&"late".to_owned()));
}

#[test]
fn a_server_that_hangs_delays_no_commit() {
    let silent = Server::start(|_| Reply::Silence);
    let desk = Desk::new(&silent.url);
    desk.run(&["hook", "install"]);
    // The server never answers, so a commit that waited for it would not end.
    desk.commit("one");
    silent.wait_for(1);
    desk.commit("two");
}

#[test]
fn nothing_is_reported_where_the_hooks_were_not_installed() {
    let platform = Platform::default();
    let (server, desk) = installed(&platform);
    desk.commit("one");
    settled(&desk);
    // The file may come with a checkout, and name another project of the person.
    desk.write("lamplighter.toml", "project = \"default\"\n");
    let shown = desk.run(&["hook", "show"]).out;
    assert!(shown.contains("nothing is reported to the project default until"), "{shown}");
    let before = server.requests().len();
    desk.run(&["commit", "--hook"]).silent();
    assert_eq!(server.requests().len(), before);
    desk.run(&["hook", "install"]);
    assert!(desk.run(&["hook", "show"]).out.contains("not reported  0 commits"));
}

#[test]
fn what_a_server_never_accepts_does_not_keep_back_the_rest() {
    let platform = Platform::default();
    let (_server, desk) = installed(&platform);
    for message in ["one", "refused for ever", "two"] {
        desk.git(&["-c", "core.hooksPath=/dev/null", "commit", "-q", "--allow-empty", "-m", message]);
    }
    desk.commit("three");
    wait_until(|| desk.run(&["hook", "show"]).out.contains("answered 400: this is no commit (the commit "));
    assert_eq!(platform.messages(), ["one", "two", "three"]);
    desk.commit("four");
    platform.gets(&["four"]);
    assert!(!settled(&desk).contains("last error"));
}

#[test]
fn the_first_commit_of_a_repository_is_reported() {
    let platform = Platform::default();
    let server = platform.serve();
    let desk = Desk::new(&server.url);
    desk.run(&["hook", "install"]);
    platform.refuses(Some(0));
    desk.commit("first");
    wait_until(|| desk.run(&["hook", "show"]).out.contains("last error"));
    platform.refuses(None);
    desk.commit("second");
    platform.gets(&["first", "second"]);
}

#[test]
fn a_history_that_has_nothing_in_common_is_not_reported_as_new() {
    let platform = Platform::default();
    let (_server, desk) = installed(&platform);
    desk.git(&["checkout", "-q", "--orphan", "pages"]);
    for n in 0..3 {
        desk.git(&[
            "-c",
            "core.hooksPath=/dev/null",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            &format!("old page {n}"),
        ]);
    }
    desk.git(&["commit", "-q", "--allow-empty", "-m", "new page"]);
    platform.gets(&["new page"]);
    desk.git(&["commit", "-q", "--allow-empty", "-m", "next page"]);
    platform.gets(&["next page"]);
    settled(&desk);
    assert_eq!(platform.messages(), ["new page", "next page"]);
}

#[test]
fn working_trees_share_what_is_reported() {
    let platform = Platform::default();
    let (_server, desk) = installed(&platform);
    desk.git(&["worktree", "add", "-q", "../other"]);
    for n in 0..3 {
        let message = format!("other {n}");
        desk.git_in("other", &["commit", "-q", "--allow-empty", "-m", &message]);
        desk.git(&["commit", "-q", "--allow-empty", "-m", &format!("main {n}")]);
    }
    platform.gets(&["other 0", "other 1", "other 2", "main 0", "main 1", "main 2"]);
    settled(&desk);
    assert_eq!(platform.commits().len(), 6, "each once");
    // A submodule or a working tree has a file `.git`. The hooks are those of the repository.
    assert!(fs::metadata(desk.bed.path("other/.git")).unwrap().is_file());
    let show =
        desk.bed.command(&["docs", "hook", "show"]).current_dir(desk.bed.path("other")).output().unwrap();
    let show = String::from_utf8(show.stdout).unwrap();
    assert!(show.contains("post-commit   installed") && show.contains("project/.git/hooks"), "{show}");
}

#[test]
fn hooks_of_the_person_stay_as_they_were() {
    let platform = Platform::default();
    let server = platform.serve();
    let desk = Desk::new(&server.url);
    desk.commit("before");
    let hook = desk.path(".git/hooks/post-commit");
    let theirs = "#!/usr/bin/env bash\nset -eu\necho ran >> ran.txt\nexit 3\n";
    executable(&hook, theirs);
    desk.run(&["hook", "install"]);
    let once: Vec<String> = HOOKS.map(|name| desk.read(&format!(".git/hooks/{name}"))).into();
    desk.run(&["hook", "install"]);
    let twice: Vec<String> = HOOKS.map(|name| desk.read(&format!(".git/hooks/{name}"))).into();
    assert_eq!(once, twice);
    desk.commit("one");
    platform.gets(&["one"]);
    assert_eq!(desk.read("ran.txt"), "ran\n");
    // A block that somebody has changed is renewed.
    fs::write(&hook, once[0].replace("--hook", "--other")).unwrap();
    assert!(desk.run(&["hook", "show"]).out.contains("post-commit   changed"));
    desk.run(&["hook", "install"]);
    assert_eq!(desk.read(".git/hooks/post-commit"), once[0]);
    desk.run(&["hook", "remove"]).printed("commits are not reported any more\n");
    assert_eq!(fs::read_to_string(&hook).unwrap(), theirs);
    assert_eq!(fs::metadata(&hook).unwrap().permissions().mode() & 0o777, 0o755);
    assert!(!desk.path(".git/hooks/post-merge").exists() && !desk.path(".git/hooks/post-rewrite").exists());
    desk.run(&["hook", "remove"]).printed("commits are not reported any more\n");
    desk.commit("two");
    assert_eq!(desk.read("ran.txt"), "ran\nran\n");
    assert_eq!(platform.messages(), ["one"]);
}

#[test]
fn a_hook_that_cannot_be_kept_is_not_touched() {
    let server = Platform::default().serve();
    let desk = Desk::new(&server.url);
    let outside = desk.bed.write("outside", "#!/bin/sh\n");
    let hook = desk.path(".git/hooks/post-rewrite");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    let refused = |error: &str| {
        desk.run(&["hook", "install"]).failed(error);
        assert!(!desk.path(".git/hooks/post-commit").exists(), "none is changed if one can't be");
    };
    executable(&hook, "#!/usr/bin/env python3\nprint(1)\n");
    refused("it is not a script of a shell; nothing was changed. You can add these lines where they fit:");
    executable(&hook, "#!/bin/sh\n# lamplighter:docs:begin\n");
    refused("its lamplighter:docs marks are not exactly one pair");
    fs::write(&hook, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o644)).unwrap();
    refused("it is not executable, so git does not call it");
    fs::write(&hook, b"\x7fELF\xff\xfe").unwrap();
    refused("it is not a script");
    fs::remove_file(&hook).unwrap();
    symlink(&outside, &hook).unwrap();
    refused("it is a link, and links are not followed");
    assert_eq!(fs::read_to_string(outside).unwrap(), "#!/bin/sh\n");
}

#[test]
fn a_folder_of_hooks_may_be_shared_or_committed() {
    let platform = Platform::default();
    let server = platform.serve();
    let desk = Desk::new(&server.url);
    desk.git(&["config", "core.hooksPath", "my hooks"]);
    desk.commit("before");
    desk.run(&["hook", "install"]);
    assert!(desk.path("my hooks/post-commit").exists() && !desk.path(".git/hooks/post-commit").exists());
    desk.commit("one");
    platform.gets(&["one"]);
    settled(&desk);
    // Whoever gets these hooks with a checkout has not installed them.
    desk.git(&["clone", "-q", ".", "../clone"]);
    desk.git_in("clone", &["config", "core.hooksPath", "my hooks"]);
    desk.git_in("clone", &["commit", "-q", "--allow-empty", "-m", "not reported"]);
    let ran =
        desk.bed.command(&["docs", "commit", "--hook"]).current_dir(desk.bed.path("clone")).output().unwrap();
    assert!(!desk.bed.path("clone/.git/lamplighter").exists());
    assert!(ran.status.success() && ran.stdout.is_empty() && ran.stderr.is_empty());
    assert!(!platform.messages().contains(&"not reported".to_owned()));
    let shown =
        desk.bed.command(&["docs", "hook", "show"]).current_dir(desk.bed.path("clone")).output().unwrap();
    assert!(String::from_utf8(shown.stdout).unwrap().contains("nothing is reported to the project"));
    // Without the program, a commit is a commit.
    let plain = std::process::Command::new("git")
        .args(["commit", "-q", "--allow-empty", "-m", "without the program"])
        .current_dir(desk.path(""))
        .env("HOME", desk.bed.path(""))
        .output()
        .unwrap();
    assert!(plain.status.success() && plain.stderr.is_empty(), "{plain:?}");
}
