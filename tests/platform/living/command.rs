//! `lamplighter docs` with the platform and a real git: files and documents, commits that hooks report, and synchronisations.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::Duration;

use domain::living::{DocName, frontmatter};
use proptest::prelude::*;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::living::{keeps, text};
use tests::model::ScriptedModel;
use tests::stage::Stage;
use tests::{Harness, send};
use tokio::process::Command;

const DOCS: &str = "/projects/default/docs";

/// A person's machine with a repository.
struct Desk {
    home: TempDir,
    url: String,
}

#[derive(Debug)]
struct Output {
    code: i32,
    out: String,
    err: String,
}

impl Output {
    #[track_caller]
    fn ok(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }
}

impl Desk {
    async fn new(url: &str) -> Self {
        let desk = Self { home: TempDir::new().unwrap(), url: url.to_owned() };
        fs::create_dir_all(desk.home.path().join("bin")).unwrap();
        symlink(env!("CARGO_BIN_EXE_command"), desk.home.path().join("bin/lamplighter")).unwrap();
        fs::create_dir(desk.path("")).unwrap();
        fs::write(desk.home.path().join(".gitconfig"), "[user]\nname = Ada\nemail = ada@example.com\n")
            .unwrap();
        desk.git(&["init", "-q", "-b", "main"]).await;
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join("project").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    async fn program(&self, program: &str, args: &[&str]) -> Output {
        let mut path = OsString::from(self.home.path().join("bin"));
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap());
        let mut command = Command::new(program);
        command.args(args).current_dir(self.path("")).env_clear().env("PATH", path);
        command.env("HOME", self.home.path()).env("LAMPLIGHTER_URL", &self.url).kill_on_drop(true);
        let output = tokio::time::timeout(Duration::from_secs(120), command.output()).await;
        let output = output.unwrap_or_else(|_| panic!("{args:?} does not end")).unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Output { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
    }

    async fn git(&self, args: &[&str]) -> String {
        self.program("git", args).await.ok().trim_end().to_owned()
    }

    async fn run(&self, args: &[&str]) -> Output {
        self.program(env!("CARGO_BIN_EXE_command"), &[&["docs"], args].concat()).await
    }

    async fn commit(&self, message: &str) {
        self.git(&["add", "-A"]).await;
        self.git(&["commit", "-q", "--allow-empty", "-m", message]).await;
    }
}

/// Waits until as many commits wait.
async fn waiting(h: &Harness, count: usize) -> Vec<Value> {
    loop {
        let commits = h.get(&format!("{DOCS}/commits")).await.expect(200);
        let commits = commits["data"].as_array().unwrap();
        if commits.len() == count {
            return commits.clone();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_document_is_kept_up_to_date_from_a_shell() {
    let model = ScriptedModel::start(keeps).await;
    let stage = Stage::with(model.config("scripted")).await;
    let h = &stage.h;
    let desk = Desk::new(&h.platform.url()).await;
    let refused = desk.run(&["sync", "--wait"]).await;
    assert!(refused.code == 1 && refused.err.contains("create one first"), "{refused:?}");
    desk.write("A.md", "---\ntitle: A\nlast_sync: x\n---\n# A\n");
    desk.commit("before").await;
    assert_eq!(desk.run(&["push", "A.md"]).await.ok(), "A.md: stored as version 1\n");
    desk.run(&["hook", "install"]).await.ok();
    desk.write("one.rs", "");
    desk.commit("Sessions end after an hour\n\nThey did not end.").await;
    let commits = waiting(h, 1).await;
    assert_eq!((&commits[0]["author"], &commits[0]["files"]), (&json!("Ada"), &json!(["one.rs"])));
    assert_eq!(commits[0]["id"], desk.git(&["rev-parse", "HEAD"]).await);
    let status = desk.run(&["status"]).await.ok();
    assert!(status.contains("1 commit waits (slightly)") && status.contains("same"), "{status}");
    // A synchronisation is waited for, and what it has changed is pulled.
    let (synced, ()) = futures::join!(desk.run(&["sync", "--wait"]), async {
        while h.get(&format!("{DOCS}/sync")).await.status != 200 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        stage.executors.work().await;
    });
    let synced = synced.ok();
    assert!(
        synced.contains("has taken 1 commit, changed A.md") && synced.ends_with("A.md: pulled version 2\n"),
        "{synced}"
    );
    assert_eq!(desk.read("A.md"), "---\ntitle: A\n---\n# A\n\n- Sessions end after an hour\n");
    let json: Value = serde_json::from_str(&desk.run(&["status", "--json"]).await.ok()).unwrap();
    assert_eq!(
        (&json["files"], &json["commits_since_sync"]),
        (&json!([{"name": "A.md", "state": "same"}]), &json!(0))
    );
    // Both sides change it.
    desk.write("A.md", "# Mine\n");
    let put = h.request(Method::PUT, &format!("{DOCS}/A.md")).json(&json!({"content": "# Theirs\n"}));
    send(put).await.expect(200);
    let conflict = desk.run(&["push"]).await;
    assert!(conflict.code == 1 && conflict.err.contains("+# Theirs"), "{conflict:?}");
    assert!(text(h, "default", "A.md").await.ends_with("# Theirs\n"));
    desk.write("A.md", "# Both\n");
    assert_eq!(desk.run(&["push", "--merged", "A.md"]).await.ok(), "A.md: stored as version 4\n");
    assert!(text(h, "default", "A.md").await.ends_with("# Both\n"));
}

#[tokio::test]
async fn the_platform_takes_every_commit_that_git_makes() {
    let h = Harness::start().await;
    let desk = Desk::new(&h.platform.url()).await;
    for n in 0..70 {
        desk.write(&format!("{n:02} \"quoted\"\nline"), "x");
    }
    fs::create_dir(desk.path(&"d".repeat(250))).unwrap();
    desk.write(&format!("{}/{}", "d".repeat(250), "e".repeat(250)), "x");
    desk.git(&["add", "-A"]).await;
    desk.write("message", &"ü\u{1}\u{1b}\t".repeat(2_000));
    let author = format!("--author={} <a@example.com>", "日".repeat(200));
    desk.git(&["commit", "-q", "-F", "message", "--date", "1970-01-02T00:00:00Z", &author]).await;
    let said = desk.run(&["commit"]).await.ok();
    assert_eq!(said, "reported 1 new commit; 1 commit since the last synchronisation\n");
    let commit = waiting(&h, 1).await.remove(0);
    assert_eq!((commit["files"].as_array().unwrap().len(), &commit["more_files"]), (50, &json!(21)));
    // An amended commit with the same message takes the place of the one before.
    desk.git(&["-c", "user.name=Eve", "commit", "-q", "--amend", "--no-edit"]).await;
    let said = desk.run(&["commit"]).await.ok();
    assert_eq!(said, "reported 0 new commits, 1 rebased; 1 commit since the last synchronisation\n");
    let said = desk.run(&["commit"]).await.ok();
    assert_eq!(said, "reported 0 new commits, 1 known before; 1 commit since the last synchronisation\n");
    let tree = desk.git(&["rev-parse", "HEAD^{tree}"]).await;
    for (n, time) in ["99999999999999", "221845392001", "0", "-7"].iter().enumerate() {
        desk.write(
            "raw",
            &format!("tree {tree}\nauthor <> {time} +0000\ncommitter A <a> 5 +0000\n\nodd {n}\n"),
        );
        let odd = desk.git(&["hash-object", "-t", "commit", "-w", "--literally", "raw"]).await;
        desk.run(&["commit", &odd]).await.ok();
    }
    waiting(&h, 5).await;
    // The longest messages of many commits are more than one call takes.
    let first = desk.git(&["rev-parse", "HEAD"]).await;
    for _ in 0..12 {
        desk.git(&["commit", "-q", "--allow-empty", "-F", "message"]).await;
    }
    desk.run(&["commit", &format!("{first}..HEAD")]).await.ok();
}

proptest! {
    // The command has its own copies of these rules.
    #[test]
    fn the_command_and_the_platform_agree_on_documents(
        text in "(---|---\r|last_sync: x|commits_since_sync:|last_commit|title: A|#|é| |\n|\n|\n|\r\n){0,16}",
        name in "[a-zA-Z0-9._-]{0,3}(commits|hook|sync|.)?[a-zA-Z0-9._-]{0,100}",
    ) {
        prop_assert_eq!(lamplighter_cli::without_marks(&text), frontmatter::without_marks(&text));
        prop_assert_eq!(lamplighter_cli::is_document_name(&name), name.parse::<DocName>().is_ok());
    }
}
