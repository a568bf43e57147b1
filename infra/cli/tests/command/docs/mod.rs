//! Living documents: their files, commits, and the hooks of git, with a real git and a server that keeps what it gets.

mod commits;
mod files;
mod hooks;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::bed::{Bed, PROJECT};
use crate::server::{Reply, Request, Server, wait_until};

/// A version of a document.
#[derive(Clone)]
struct Version {
    text: String,
    written_at: String,
}

/// What the server has.
#[derive(Default)]
struct Kept {
    documents: BTreeMap<String, Vec<Version>>,
    commits: Vec<Value>,
    sync: Value,
    /// All requests are refused with this status. With 0, the connection is closed.
    refuses: Option<u16>,
    /// Counts everything that is written.
    clock: u64,
}

#[derive(Clone, Default)]
struct Platform(Arc<Mutex<Kept>>);

impl Kept {
    fn write(&mut self, name: &str, text: &str) {
        self.clock += 1;
        let written_at = format!("2026-11-21T12:00:{:02}Z", self.clock);
        self.documents
            .entry(name.to_owned())
            .or_default()
            .push(Version { text: text.to_owned(), written_at });
    }

    fn row(&self, name: &str, version: usize) -> Value {
        let written_at = &self.documents[name][version - 1].written_at;
        json!({"name": name, "version": version, "cause": "edited", "written_at": written_at})
    }

    /// As the platform answers it: the newest version has the marks.
    fn view(&self, name: &str, version: Option<usize>) -> Option<Value> {
        let versions = self.documents.get(name)?;
        let number = version.unwrap_or(versions.len());
        let text = &versions.get(number.checked_sub(1)?)?.text;
        let mut view = self.row(name, number);
        let marks = if version.is_none() { "---\ncommits_since_sync: 7\n---\n" } else { "" };
        view["content"] = format!("{marks}{text}").into();
        Some(view)
    }

    fn answer(&mut self, request: &Request) -> Reply {
        match self.refuses {
            Some(0) => return Reply::Close,
            Some(status) => return Reply::status(status, r#"{"detail":"not now"}"#),
            None => {}
        }
        let missing = || Reply::status(404, r#"{"code":"not_found","detail":"there is no such document"}"#);
        let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
        let below = path.strip_prefix(&format!("/projects/{PROJECT}/docs")).unwrap_or("other");
        match (request.method.as_str(), below) {
            ("GET", "") => {
                let rows: Vec<Value> =
                    self.documents.iter().map(|(name, versions)| self.row(name, versions.len())).collect();
                let waiting = self.commits.len();
                Reply::ok(
                    json!({"documents": rows, "commits_since_sync": waiting, "staleness": "stale"})
                        .to_string(),
                )
            }
            ("POST", "/commits") => {
                let body: Value = serde_json::from_slice(&request.body).unwrap();
                let given = body["commits"].as_array().unwrap();
                assert!((1..=200).contains(&given.len()));
                if given.iter().any(|commit| commit["message"].as_str().unwrap().contains("for ever")) {
                    return Reply::status(400, r#"{"detail":"this is no commit"}"#);
                }
                self.commits.extend(given.iter().cloned());
                let waiting = self.commits.len();
                Reply::ok(json!({"new": given.len(), "commits_since_sync": waiting}).to_string())
            }
            ("POST", "/sync") => Reply::status(202, json!({"state": "waiting"}).to_string()),
            ("GET", "/sync") => Reply::ok(self.sync.to_string()),
            ("GET", name) => {
                let version = query.strip_prefix("version=").map(|version| version.parse().unwrap());
                self.view(&name[1..], version).map_or_else(missing, |view| Reply::ok(view.to_string()))
            }
            ("PUT", name) => {
                let name = &name[1..];
                let now = self.documents.get(name).map_or(0, Vec::len);
                if request.header("if-match") != Some(&format!("\"{now}\"")) {
                    return Reply::status(409, r#"{"code":"version_conflict","detail":"it has changed"}"#);
                }
                let body: Value = serde_json::from_slice(&request.body).unwrap();
                self.write(name, body["content"].as_str().unwrap());
                Reply::ok(self.view(name, None).unwrap().to_string())
            }
            _ => Reply::status(404, "{}"),
        }
    }
}

impl Platform {
    fn serve(&self) -> Server {
        let kept = self.0.clone();
        Server::start(move |request| kept.lock().unwrap().answer(request))
    }

    fn write(&self, name: &str, text: &str) {
        self.0.lock().unwrap().write(name, text);
    }

    fn text(&self, name: &str) -> Option<String> {
        self.0.lock().unwrap().documents.get(name).map(|versions| versions.last().unwrap().text.clone())
    }

    fn delete(&self, name: &str) {
        self.0.lock().unwrap().documents.remove(name);
    }

    fn refuses(&self, status: Option<u16>) {
        self.0.lock().unwrap().refuses = status;
    }

    fn commits(&self) -> Vec<Value> {
        self.0.lock().unwrap().commits.clone()
    }

    /// The messages of the commits that were reported, each once, in the order in which they came.
    fn messages(&self) -> Vec<String> {
        let mut messages: Vec<String> = Vec::new();
        for commit in self.commits() {
            let message = commit["message"].as_str().unwrap().to_owned();
            if !messages.contains(&message) {
                messages.push(message);
            }
        }
        messages
    }

    /// Waits for what hooks report in the background.
    #[track_caller]
    fn gets(&self, messages: &[&str]) {
        wait_until(|| messages.iter().all(|message| self.messages().iter().any(|known| known == message)));
    }
}

/// A repository in the folder of a project, and a person's shell there.
struct Desk {
    bed: Bed,
}

impl Desk {
    /// An empty repository.
    fn new(url: &str) -> Self {
        let bed = Bed::new(url);
        bed.write(
            ".gitconfig",
            "[user]\nname = Ada\nemail = ada@example.com\n[init]\ndefaultBranch = main\n",
        );
        let desk = Self { bed };
        desk.git(&["init", "-q"]);
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.bed.path("project").join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn run(&self, args: &[&str]) -> crate::bed::Output {
        self.bed.run(&[&["docs"], args].concat())
    }

    /// Runs git in a folder, with this program in the path.
    fn git_in(&self, folder: &str, args: &[&str]) -> Output {
        let mut path =
            PathBuf::from(env!("CARGO_BIN_EXE_lamplighter")).parent().unwrap().as_os_str().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap());
        let mut git = Command::new("git");
        git.args(args).current_dir(self.bed.path(folder)).env_clear();
        git.env("PATH", path).env("HOME", self.bed.path("")).env("GIT_EDITOR", "true");
        git.output().unwrap()
    }

    /// As [`Self::git_in`] in the project. Returns what git prints.
    #[track_caller]
    fn git(&self, args: &[&str]) -> String {
        let output = self.git_in("project", args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// Makes a commit that adds a line to a file.
    fn commit(&self, message: &str) {
        let before = fs::read_to_string(self.path("log.txt")).unwrap_or_default();
        self.write("log.txt", format!("{before}{message}\n"));
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }
}
