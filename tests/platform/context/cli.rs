//! The `lamplighter` command with the platform: what the hooks of a coding assistant, its agents and a person do with
//! it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use domain::log::InstanceId;
use proptest::prelude::*;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::Harness;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

const SESSION: &str = "0f2c1f9e-5b1d-4a7e-9f0e-0d6a3b6f2a11";

/// Nothing listens on this port.
const DOWN: &str = "http://127.0.0.1:1";

/// A person's machine.
struct Desk {
    home: TempDir,
}

struct Output {
    code: i32,
    out: String,
    err: String,
}

impl Output {
    #[track_caller]
    fn ok(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{}", self.out);
        self.out
    }
}

impl Desk {
    fn new(url: &str) -> Self {
        let desk = Self { home: TempDir::new().unwrap() };
        desk.points_at(url);
        desk
    }

    fn points_at(&self, url: &str) {
        let dir = self.home.path().join(".config/lamplighter");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("config.toml"), format!("url = '{url}'\n")).unwrap();
    }

    fn path(&self, path: &str) -> PathBuf {
        self.home.path().join(path)
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("HOME", self.home.path()).env("PATH", std::env::var_os("PATH").unwrap());
        command.current_dir(self.home.path());
        command
    }

    async fn give(&self, args: &[&str], stdin: &str) -> Output {
        let mut command = self.command(env!("CARGO_BIN_EXE_command"));
        self.end(command.args(args), stdin).await
    }

    async fn run(&self, args: &[&str]) -> Output {
        self.give(args, "").await
    }

    async fn end(&self, command: &mut Command, stdin: &str) -> Output {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(stdin.as_bytes()).await.unwrap();
        let output = child.wait_with_output().await.unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Output { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// A hook, which prints nothing.
    async fn hook(&self, flag: &str, payload: &Value) {
        assert_eq!(self.give(&["log", flag], &payload.to_string()).await.ok(), "");
    }

    /// Waits until everything that hooks reported has arrived. A busy machine may leave a request in flight for a
    /// minute.
    async fn settled(&self) {
        loop {
            if self.run(&["log", "--flush"]).await.out.ends_with("waiting 0\n") {
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// The entries of an agent, as `log --read` prints them.
    async fn entries(&self, agent: &str) -> Vec<Value> {
        self.settled().await;
        let out = self.run(&["log", "--read", "--agent-id", agent, "--lines", "1000"]).await.ok();
        serde_json::from_str::<Value>(&out).unwrap()["entries"].as_array().unwrap().clone()
    }
}

/// A platform that has answered once, so that the first hook does not wait for the work of a first call.
async fn platform() -> Harness {
    let h = Harness::start().await;
    h.get("/context/logs").await.expect(200);
    h
}

/// The payload of a hook of the tool `Task`, without the event, which the flag names.
fn task(n: usize, prompt: &str) -> Value {
    json!({
        "session_id": SESSION, "tool_name": "Task", "tool_use_id": format!("toolu_{n}"),
        "tool_input": {"subagent_type": "the-architect", "description": format!("Step {n}"), "prompt": prompt},
    })
}

fn steps(entries: &[Value]) -> Vec<String> {
    let name = |entry: &Value, field| entry[field].as_str().unwrap().to_owned();
    entries.iter().map(|entry| format!("{} {}", name(entry, "event"), name(entry, "description"))).collect()
}

#[tokio::test]
async fn agents_read_what_hooks_report() {
    let h = platform().await;
    let desk = Desk::new(&h.platform.url());
    let mut payload = task(1, "AgentId: arch-auth\nDesign it");
    desk.hook("--assistant", &payload).await;
    payload["tool_response"] = json!({"content": [{"type": "text", "text": "It is designed."}]});
    desk.hook("--user", &payload).await;
    desk.hook("-a", &task(2, "Without a name")).await;
    assert_eq!(desk.give(&["log", "-u"], "nonsense").await.ok(), "");

    let entries = desk.entries("ARCH-auth").await;
    assert_eq!(steps(&entries), ["agent_start Step 1", "agent_complete Step 1"]);
    assert_eq!(entries[1]["output_summary"], "It is designed.");
    let text = desk.run(&["log", "-r", "--agent-id", "arch-auth", "--format", "text"]).await.ok();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[..2], [format!("Agent: arch-auth | Session: {SESSION} | Entries: 2").as_str(), "---"]);
    assert!(lines[2].ends_with("Z [agent_start] Step 1"), "{text}");
    let with =
        desk.run(&["log", "-r", "--agent-id", "arch-auth", "--lines", "1", "--include-metadata"]).await.ok();
    let with: Value = serde_json::from_str(&with).unwrap();
    assert_eq!(with["metadata"]["total_entries"], 2);
    assert_eq!(with["entries"], json!([entries[1]]));
    assert_eq!(desk.entries("nobody").await, Vec::<Value>::new());
    let refused = desk.run(&["log", "-r", "--agent-id", "arch-auth", "--session", "../x"]).await;
    assert_eq!((refused.code, refused.out.as_str()), (1, ""));
    assert!(refused.err.contains("answered 400") && refused.err.contains("session"), "{}", refused.err);

    let sessions = h.get("/context/logs").await.expect(200);
    let named: Vec<_> = sessions["data"][0]["agents"].as_array().unwrap().iter().collect();
    assert_eq!(
        named.iter().filter(|log| log["agent_id"].as_str().unwrap().starts_with("the-architect-")).count(),
        1
    );
    let rejected = h.get("/context/hooks/rejected").await.expect(200);
    assert_eq!(rejected["data"].as_array().unwrap().len(), 1, "{rejected}");
}

#[tokio::test]
async fn a_payload_from_a_script_needs_neither_a_session_nor_an_event() {
    let h = platform().await;
    let desk = Desk::new(&h.platform.url());
    let input =
        json!({"subagent_type": "the-developer", "prompt": "AgentId: dev-1\nWork", "description": "Work"});
    desk.hook("--assistant", &json!({"tool_name": "Task", "tool_input": input})).await;
    desk.hook("--user", &json!({"tool_name": "Task", "tool_input": input, "tool_output": "Done"})).await;
    assert_eq!(steps(&desk.entries("dev-1").await), ["agent_start Work", "agent_complete Work"]);
}

#[tokio::test]
async fn waiting_payloads_are_logged_once_and_in_order_even_if_sent_twice() {
    let h = platform().await;
    let desk = Desk::new(DOWN);
    for n in 0..5 {
        desk.hook("-a", &task(n, "AgentId: arch-1\nWork")).await;
    }
    // As after a crash between sending and removing: the sent record still exists.
    let spool =
        fs::read_dir(desk.path(".local/state/lamplighter/spool")).unwrap().next().unwrap().unwrap().path();
    let kept = desk.path("kept");
    copy(&spool, &kept);
    let up = jiff::Timestamp::now();
    desk.points_at(&h.platform.url());
    desk.hook("-a", &task(5, "AgentId: arch-1\nWork")).await;
    let expected: Vec<_> = (0..6).map(|n| format!("agent_start Step {n}")).collect();
    let entries = desk.entries("arch-1").await;
    assert_eq!(steps(&entries), expected);
    // Each entry has the time of its event, not of its arrival.
    for entry in &entries[..5] {
        let at: jiff::Timestamp = entry["timestamp"].as_str().unwrap().parse().unwrap();
        assert!(at < up, "{entry}");
    }
    copy(&kept, &spool);
    let kept =
        fs::read_dir(&spool).unwrap().filter(|file| file.as_ref().unwrap().file_name() != ".lock").count();
    assert_eq!(kept, 5);
    assert_eq!(steps(&desk.entries("arch-1").await), expected);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

#[tokio::test]
async fn twenty_hooks_at_once_are_twenty_entries() {
    let h = platform().await;
    let desk = Desk::new(&h.platform.url());
    let payloads: Vec<_> = (0..20).map(|n| task(n, "AgentId: arch-1\nWork")).collect();
    futures::future::join_all(payloads.iter().map(|payload| desk.hook("-a", payload))).await;
    let mut found = steps(&desk.entries("arch-1").await);
    found.sort_unstable_by_key(|step| step.rsplit(' ').next().unwrap().parse::<usize>().unwrap());
    assert_eq!(found, (0..20).map(|n| format!("agent_start Step {n}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn the_section_in_a_template_reads_the_log() {
    let h = platform().await;
    let desk = Desk::new(&h.platform.url());
    desk.hook("-a", &task(1, "AgentId: arch-auth\nDesign it")).await;
    desk.settled().await;
    let template = desk.path("agents/the-architect.md");
    fs::create_dir(desk.path("agents")).unwrap();
    fs::write(&template, "---\nname: the-architect\n---\n\nYou are the architect.\n").unwrap();
    assert_eq!(desk.run(&["context", "init", "agents"]).await.ok(), "agents/the-architect.md: written\n");

    // The command in the template, as the agent runs it.
    let text = fs::read_to_string(&template).unwrap();
    let script = text.split("```bash\n").nth(1).unwrap().split("```").next().unwrap();
    fs::create_dir(desk.path("bin")).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_command"), desk.path("bin/lamplighter")).unwrap();
    let path = format!("{}:{}", desk.path("bin").display(), std::env::var("PATH").unwrap());
    let run = async |id: &str| {
        let mut bash = desk.command("bash");
        bash.args(["-euc", &script.replace("{AGENT_ID}", id)]).env("PATH", &path);
        desk.end(&mut bash, "").await.ok()
    };
    let out = run("arch-auth").await;
    assert!(out.starts_with("Agent: arch-auth | "), "{out}");
    assert!(out.ends_with("[agent_start] Step 1\n  | AgentId: arch-auth\n  | Design it\n"), "{out}");
    assert!(run("arch-db").await.contains("Entries: 0"));
    desk.points_at(DOWN);
    assert_eq!(run("arch-auth").await, "No context for arch-auth can be read.\n");
}

#[tokio::test]
async fn an_export_is_the_logs_as_files() {
    let h = platform().await;
    let desk = Desk::new(&h.platform.url());
    for n in 0..3 {
        desk.hook("-a", &task(n, &format!("AgentId: arch-{}\nWork", n % 2))).await;
    }
    desk.settled().await;
    let out = desk.run(&["context", "export", "logs"]).await.ok();
    assert!(out.ends_with(" files written, in logs\n"), "{out}");
    let lines = |path: String| fs::read_to_string(desk.path("logs").join(path)).unwrap().lines().count();
    assert_eq!(lines(format!("{SESSION}/arch-0.jsonl")), 2);
    assert_eq!(lines(format!("{SESSION}/arch-1.jsonl")), 1);
    assert_eq!(lines(format!("{SESSION}/agent-instructions.jsonl")), 3);
    assert_eq!(lines("all-agent-instructions.jsonl".to_owned()), 3);
    desk.hook("-a", &task(3, "AgentId: arch-1\nWork")).await;
    desk.settled().await;
    assert_eq!(desk.run(&["context", "export", "logs"]).await.ok(), "3 files written, in logs\n");
    assert_eq!(lines(format!("{SESSION}/arch-1.jsonl")), 2);
}

#[tokio::test]
async fn two_people_who_edit_at_once_both_keep_their_text() {
    let h = platform().await;
    let desk = Desk::new(&h.platform.url());
    let missing = desk.run(&["context", "show"]).await;
    assert!(
        missing.code == 1 && missing.err.contains("there is no such context document"),
        "{}",
        missing.err
    );
    // The initial text of an edit is a valid document.
    let mut begin = desk.command(env!("CARGO_BIN_EXE_command"));
    begin.args(["context", "edit", "--workflow", "new"]).env("EDITOR", "sed -i 's/- Task:/- Task: Log in/'");
    assert_eq!(desk.end(&mut begin, "").await.ok(), "saved\n");
    let begun = desk.run(&["context", "show", "--workflow", "new"]).await.ok();
    assert!(begun.contains("- Task: Log in\n\n## PLAN\n"), "{begun}");
    let markdown = "# Context: Checkout\n\n## PLAN (10:00)\n\n### Task\nBuild it\n";
    let put = h.request(Method::PUT, "/projects/default/context.md").body(markdown);
    tests::send(put).await.expect(201);
    let before = desk.run(&["context", "show"]).await.ok();
    assert!(before.contains("Build it"), "{before}");

    // The first has the editor open. Meanwhile the second makes a complete edit.
    let command = env!("CARGO_BIN_EXE_command");
    let edit = async |editor: String| {
        let mut edit = desk.command(command);
        desk.end(edit.args(["context", "edit"]).env("EDITOR", editor), "").await
    };
    let second = format!("EDITOR='sed -i s/Build/Test/' {command} context edit >&2 && sed -i s/Build/Ship/");
    let first = edit(second).await;
    assert_eq!(first.code, 1, "{}", first.err);
    for line in [
        "saved\n",
        "nothing was overwritten",
        "-- Build it",
        "+- Test it",
        "lamplighter context edit --from ",
    ] {
        assert!(first.err.contains(line), "{line}: {}", first.err);
    }
    assert_eq!(desk.run(&["context", "show"]).await.ok(), before.replace("Build", "Test"));
    let mine = first.err.lines().find_map(|line| line.strip_prefix("your text:")).unwrap().trim().to_owned();
    assert!(fs::read_to_string(&mine).unwrap().contains("Ship it"));
    let mut again = desk.command(command);
    again.args(["context", "edit", "--from", &mine]).env("EDITOR", "true");
    assert_eq!(desk.end(&mut again, "").await.ok(), "saved\n");
    assert_eq!(desk.run(&["context", "show"]).await.ok(), before.replace("Build", "Ship"));
}

proptest! {
    /// The command has its own copy of the rule for agent ids. Both must be the same.
    #[test]
    fn the_command_and_the_platform_agree_on_agent_ids(text in "[a-zA-Z0-9_-]{0,3}.?[a-zA-Z0-9_-]{0,64}") {
        prop_assert_eq!(lamplighter_cli::args::is_agent_id(&text), text.parse::<InstanceId>().is_ok());
    }
}

/// The server accepts everything that the command sends. A payload that is too long for both is shortened until it
/// fits.
#[tokio::test]
async fn the_longest_payload_is_the_servers_longest_body() {
    assert_eq!(lamplighter_cli::MAX_PAYLOAD, shared::request::limits::MAX_BODY_BYTES);
    let h = Harness::start().await;
    let desk = Desk::new(&h.platform.url());
    let prompt = format!("AgentId: arch-1\n{}", "ä".repeat(2_300_000));
    let input = json!({"subagent_type": "the-architect", "description": "Design", "prompt": prompt});
    let payload = json!({
        "hook_event_name": "PreToolUse", "session_id": SESSION, "tool_name": "Task", "tool_use_id": "toolu_1",
        "tool_input": input,
    });
    assert!(payload.to_string().len() > 4_500_000);
    desk.hook("--assistant", &payload).await;
    desk.settled().await;
    let read = h.get(&format!("/context/logs/arch-1?session={SESSION}")).await.expect(200);
    let instruction = read["entries"][0]["instruction"].as_str().unwrap();
    let end = format!("ä […cut by lamplighter from {} bytes]", prompt.len());
    assert!(
        instruction.starts_with("AgentId: arch-1\nä") && instruction.ends_with(&end),
        "{instruction:.100}"
    );
}
