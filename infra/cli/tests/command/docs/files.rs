//! `docs status`, `docs pull`, `docs push` and `docs sync`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};

use super::{Desk, Platform};
use crate::bed::Bed;

/// The state of each file, as programs get it.
fn states(desk: &Desk) -> Vec<(String, String)> {
    let status: Value = serde_json::from_str(&desk.run(&["status", "--json"]).out).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    status["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| (text(&file["name"]), text(&file["state"])))
        .collect()
}

#[track_caller]
fn are(desk: &Desk, expected: &[(&str, &str)]) {
    let states = states(desk);
    let states: Vec<(&str, &str)> =
        states.iter().map(|(name, state)| (name.as_str(), state.as_str())).collect();
    assert_eq!(states, expected);
}

#[test]
fn both_sides_take_over_what_has_changed() {
    let platform = Platform::default();
    let server = platform.serve();
    let desk = Desk::new(&server.url);
    platform.write("A.md", "# A\n");
    desk.write("B.md", "---\nlast_sync: 2026-01-01T00:00:00Z\n---\n# B\n");
    are(&desk, &[("A.md", "only_there"), ("B.md", "only_here")]);
    desk.run(&["pull"]).printed("A.md: pulled version 1\n");
    assert_eq!(desk.read("A.md"), "# A\n", "a file has no marks");
    // A new document must be named.
    desk.run(&["push"]).printed("everything is the same here and there\n");
    assert_eq!(platform.text("B.md"), None);
    desk.run(&["push", "B.md"]).printed("B.md: stored as version 1\n");
    assert_eq!(platform.text("B.md").as_deref(), Some("# B\n"));
    are(&desk, &[("A.md", "same"), ("B.md", "same")]);

    desk.write("A.md", "# A\nhere\n");
    platform.write("B.md", "# B\nthere\n");
    are(&desk, &[("A.md", "changed_here"), ("B.md", "changed_there")]);
    let table = desk.run(&["status"]).out;
    assert!(table.contains("changed here") && table.contains("changed there"), "{table}");
    // Each command leaves to the other what is the other's.
    desk.run(&["pull", "A.md"]).printed("A.md: changed here; `lamplighter docs push A.md` stores it\n");
    desk.run(&["push", "B.md"]).printed("B.md: changed there; `lamplighter docs pull B.md` takes it\n");
    desk.run(&["push", "A.md"]).printed("A.md: stored as version 2\n");
    fs::set_permissions(desk.path("B.md"), fs::Permissions::from_mode(0o640)).unwrap();
    desk.run(&["pull", "B.md"]).printed("B.md: pulled version 2\n");
    assert_eq!(
        (platform.text("A.md").as_deref(), desk.read("B.md").as_str()),
        (Some("# A\nhere\n"), "# B\nthere\n")
    );
    assert_eq!(fs::metadata(desk.path("B.md")).unwrap().permissions().mode() & 0o777, 0o640);

    // Marks are no change, wherever they stand.
    desk.write("A.md", "---\nlast_commit: x\ncommits_since_sync: 99\n---\n# A\nhere\n");
    are(&desk, &[("A.md", "same"), ("B.md", "same")]);
    desk.run(&["push"]).printed("everything is the same here and there\n");
    assert_eq!(
        desk.git(&["status", "--porcelain"]),
        "?? A.md\n?? B.md",
        "what is remembered is no file of the tree"
    );
}

#[test]
fn a_deletion_is_never_taken_over() {
    let platform = Platform::default();
    let server = platform.serve();
    let desk = Desk::new(&server.url);
    platform.write("A.md", "# A\n");
    platform.write("B.md", "# B\n");
    desk.run(&["pull"]);
    fs::remove_file(desk.path("A.md")).unwrap();
    platform.delete("B.md");
    are(&desk, &[("A.md", "deleted_here"), ("B.md", "deleted_there")]);
    desk.run(&["pull"]).printed(
        "A.md: deleted here; `lamplighter docs pull A.md` brings it back\nB.md: deleted there; the file is kept\n",
    );
    desk.run(&["push"]).printed(
        "A.md: deleted here; it is kept there\nB.md: deleted there; `lamplighter docs push B.md` creates it again\n",
    );
    assert!(!desk.path("A.md").exists() && platform.text("B.md").is_none());
    // A document that was created anew counts its versions anew. It is not the one that was seen.
    platform.write("B.md", "# Another\n");
    desk.write("B.md", "# B\n");
    are(&desk, &[("A.md", "deleted_here"), ("B.md", "changed_there")]);
    desk.run(&["pull", "A.md", "B.md"]).printed("A.md: pulled version 1\nB.md: pulled version 1\n");
    fs::remove_file(desk.path("A.md")).unwrap();
    platform.delete("A.md");
    desk.run(&["pull"]).printed("everything is the same here and there\n");
    are(&desk, &[("B.md", "same")]);
    desk.run(&["pull", "C.md"]).failed("there is no C.md, here or there");
    desk.run(&["pull", "../C.md"]).failed("`../C.md` is not the name of a document");
}

#[test]
fn a_conflict_is_shown_and_nothing_is_overwritten() {
    let platform = Platform::default();
    let server = platform.serve();
    let desk = Desk::new(&server.url);
    platform.write("A.md", "title\none\n");
    platform.write("B.md", "# B\n");
    desk.run(&["pull"]);
    desk.write("A.md", "title\nmine\n");
    platform.write("A.md", "title\ntheirs\n");
    platform.write("B.md", "# New\n");
    let texts = || (desk.read("A.md"), platform.text("A.md").unwrap());
    let before = texts();
    for command in ["pull", "push"] {
        let output = desk.run(&[command]);
        assert_eq!(output.code, 1);
        for part in [
            "A.md has changed here and there; nothing was overwritten",
            "-one",
            "+theirs",
            "lamplighter docs push --merged A.md",
        ] {
            assert!(output.err.contains(part), "{part}: {}", output.err);
        }
        assert_eq!(texts(), before);
    }
    assert_eq!(desk.read("B.md"), "# New\n", "one conflict does not hold up the others");
    let file = |name: &str| desk.path(".git/lamplighter/conflicts").join(name);
    assert_eq!(fs::read_to_string(file("A.theirs.md")).unwrap(), "title\ntheirs\n");
    assert_eq!(fs::read_to_string(file("A.base.md")).unwrap(), "title\none\n");
    // A merge replaces the version that was shown, and no later one.
    desk.write("A.md", "title\nboth\n");
    platform.write("A.md", "title\nlater\n");
    desk.run(&["push", "--merged", "A.md"]).failed("nothing was overwritten");
    assert_eq!(platform.text("A.md").unwrap(), "title\nlater\n");
    desk.run(&["push", "A.md"]).failed("nothing was overwritten");
    desk.run(&["push", "--merged", "A.md"]).printed("A.md: stored as version 4\n");
    assert_eq!(platform.text("A.md").unwrap(), "title\nboth\n");
    assert!(!file("A.theirs.md").exists() && !file("A.base.md").exists());
    are(&desk, &[("A.md", "same"), ("B.md", "same")]);
    // To take the other text, the person deletes the own one.
    desk.write("A.md", "mine again\n");
    platform.write("A.md", "theirs again\n");
    desk.run(&["pull"]).failed("delete your file, then `lamplighter docs pull A.md`");
    fs::remove_file(desk.path("A.md")).unwrap();
    desk.run(&["pull", "A.md"]).printed("A.md: pulled version 5\n");
    // Texts that were never seen together have no base.
    desk.write("C.md", "mine\n");
    platform.write("C.md", "theirs\n");
    let output = desk.run(&["pull"]);
    assert!(output.err.contains("-mine\n") && output.err.contains("+theirs\n"), "{}", output.err);
    assert!(file("C.theirs.md").exists() && !file("C.base.md").exists());
    assert_eq!(desk.read("C.md"), "mine\n");
}

#[test]
fn a_writer_that_is_faster_is_not_overwritten() {
    let platform = Platform::default();
    let serve = |text: &'static str| {
        let faster = platform.clone();
        crate::server::Server::start(move |request| {
            if request.method == "PUT" {
                faster.write("A.md", text);
            }
            faster.0.lock().unwrap().answer(request)
        })
    };
    platform.write("A.md", "one\n");
    let server = serve("theirs\n");
    let desk = Desk::new(&server.url);
    desk.run(&["pull"]);
    desk.write("A.md", "mine\n");
    desk.run(&["push"]).failed("A.md has changed here and there; nothing was overwritten");
    assert_eq!(platform.text("A.md").unwrap(), "theirs\n");
    // The answer of our own write was lost, so it comes a second time. It is no conflict.
    let server = serve("both\n");
    desk.bed.configure(&server.url);
    desk.write("A.md", "theirs\n");
    desk.run(&["pull"]);
    desk.write("A.md", "both\n");
    desk.run(&["push"]).printed("A.md: stored as version 3\n");
}

#[test]
fn links_and_names_do_not_lead_out_of_the_repository() {
    let platform = Platform::default();
    let server = platform.serve();
    let desk = Desk::new(&server.url);
    let secret = desk.bed.write("secret.md", "secret\n");
    platform.write("A.md", "# A\n");
    symlink(&secret, desk.path("A.md")).unwrap();
    symlink(&secret, desk.path("B.md")).unwrap();
    fs::create_dir(desk.path("D.md")).unwrap();
    for args in [&["pull"][..], &["push"], &["push", "A.md"], &["pull", "A.md"]] {
        desk.run(args).failed("A.md: it is a link, and links are not followed; nothing was read or written");
    }
    desk.run(&["push", "B.md"]);
    assert_eq!((platform.text("A.md").as_deref(), platform.text("B.md")), (Some("# A\n"), None));
    // Also not if it takes the place of a file that was pulled.
    fs::remove_file(desk.path("A.md")).unwrap();
    desk.run(&["pull", "A.md"]).printed("A.md: pulled version 1\n");
    fs::remove_file(desk.path("A.md")).unwrap();
    symlink(&secret, desk.path("A.md")).unwrap();
    platform.write("A.md", "# New\n");
    desk.run(&["pull"]).failed("links are not followed");
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret\n");
    fs::remove_file(desk.path("A.md")).unwrap();
    // A server may answer with any name.
    platform.write("Makefile", "all:\n\trm -rf /\n");
    let output = desk.run(&["pull"]);
    assert!(output.out.contains("Makefile: only there, and its name is not that of a text"), "{output:?}");
    assert!(!desk.path("Makefile").exists());
    platform.write("..%2Fescaped.md", "x");
    desk.run(&["pull"]).failed("the server has a document `..%2Fescaped.md`, which is no name of a file");
    platform.delete("..%2Fescaped.md");
    platform.write("../escaped.md", "x");
    desk.run(&["pull"]).failed("which is no name of a file");
    assert!(!desk.bed.path("escaped.md").exists());
    platform.delete("../escaped.md");
    // Our own folder may be a link in a repository that somebody else has packed.
    fs::remove_dir_all(desk.path(".git/lamplighter")).unwrap();
    symlink(desk.bed.path(""), desk.path(".git/lamplighter")).unwrap();
    desk.run(&["pull"]).failed("is a link, and links are not followed");
}

#[test]
fn each_working_tree_and_each_project_has_its_own_files() {
    let platform = Platform::default();
    let server = platform.serve();
    let desk = Desk::new(&server.url);
    platform.write("A.md", "one\n");
    desk.commit("first");
    desk.run(&["pull"]);
    desk.git(&["worktree", "add", "-q", "../other"]);
    platform.write("A.md", "two\n");
    let run = |args: &[&str]| {
        let mut command = desk.bed.command(&[&["docs"], args].concat());
        let output = command.current_dir(desk.bed.path("other")).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(run(&["pull"]), "A.md: pulled version 2\n");
    are(&desk, &[("A.md", "changed_there")]);
    assert_eq!(fs::read_to_string(desk.bed.path("other/A.md")).unwrap(), "two\n");
    assert!(desk.path(".git/worktrees/other/lamplighter/docs.json").exists());
    // From a folder below, it is the same tree.
    fs::create_dir(desk.path("src")).unwrap();
    let output = desk.bed.command(&["docs", "pull"]).current_dir(desk.path("src")).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "A.md: pulled version 2\n");
    assert_eq!(desk.read("A.md"), "two\n");
    // Another server knows nothing of what was seen with this one.
    let other = Platform::default();
    let server = other.serve();
    other.write("A.md", "other\n");
    desk.bed.configure(&server.url);
    are(&desk, &[("A.md", "conflict")]);
}

#[test]
fn outside_of_a_repository_documents_are_only_listed() {
    let platform = Platform::default();
    let server = platform.serve();
    let bed = Bed::new(&server.url);
    platform.write("A.md", "# A\n");
    assert!(bed.run(&["docs", "status"]).out.contains("A.md"));
    for args in [&["docs", "pull"][..], &["docs", "push"], &["docs", "commit"], &["docs", "hook", "install"]]
    {
        bed.run(args).failed("not a git repository");
    }
    bed.run(&["docs", "push", "--merged"]).failed("required");
    // A checkout may have any file here.
    bed.write("project/.git", "gitdir: ../elsewhere\n");
    bed.run(&["docs", "pull"]).failed("git: ");
    assert!(!bed.path("project/A.md").exists() && !bed.path("elsewhere").exists());
}

#[test]
fn a_synchronisation_is_waited_for_and_pulled() {
    let platform = Platform::default();
    let server = platform.serve();
    let desk = Desk::new(&server.url);
    platform.write("A.md", "# A\n");
    desk.run(&["pull"]);
    desk.run(&["sync"]).printed("a synchronisation waits to begin\n");
    platform.write("A.md", "# A\nnew\n");
    platform.0.lock().unwrap().sync =
        json!({"state": "succeeded", "commits": 2, "changed": ["A.md"], "cost_micros": 20_000});
    desk.run(&["sync", "--wait"]).printed(
        "the newest synchronisation has taken 2 commits, changed A.md, cost $0.02\nA.md: pulled version 2\n",
    );
    assert_eq!(desk.read("A.md"), "# A\nnew\n");
    // What was changed here meanwhile stays.
    desk.write("A.md", "# A\nmine\n");
    platform.write("A.md", "# A\nnewer\n");
    let output = desk.run(&["sync", "--wait"]);
    assert_eq!(output.code, 1);
    assert!(output.err.contains("A.md has changed here and there"), "{output:?}");
    assert_eq!(desk.read("A.md"), "# A\nmine\n");
    platform.0.lock().unwrap().sync = json!({
        "state": "failed", "error": "the texts have problems",
        "problems": [{"document": "A.md", "code": "heading_lost", "text": "lost \u{1b}[2J"}],
    });
    let output = desk.run(&["sync", "--wait"]);
    output.failed_after(
        "the newest synchronisation has failed; nothing was changed\n  the texts have problems\n  A.md: lost \\u{1b}[2J\n",
        "the synchronisation has failed",
    );
}
