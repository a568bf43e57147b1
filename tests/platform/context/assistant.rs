//! A real coding assistant, Claude Code, with a fake of its model: what its sub-agents remember from one session to the
//! next. `.ci/run` installs it. If it is missing, a test says so and is skipped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::Harness;
use tests::anthropic::{Block, FakeAnthropic};
use tests::skips::installed;
use tokio::process::Command;

const PROGRAM: &str = "assistant/node_modules/.bin/claude";

/// The settings that the manual tells people to write.
fn settings_of_the_manual() -> Value {
    let manual = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cli.md")).unwrap();
    let mut blocks = manual.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    serde_json::from_str(blocks.find(|block| block.contains("SubagentStop")).unwrap()).unwrap()
}

/// A person's machine with the assistant, the command and a project.
struct Desk {
    home: TempDir,
    program: PathBuf,
}

impl Desk {
    fn new(h: &Harness, settings: &Value) -> Option<Self> {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join(PROGRAM);
        if !installed(&program) {
            return None;
        }
        let desk = Self { home: TempDir::new().unwrap(), program };
        fs::create_dir_all(desk.path("project/.claude/agents")).unwrap();
        fs::create_dir(desk.path("bin")).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_command"), desk.path("bin/lamplighter")).unwrap();
        fs::write(desk.path("project/lamplighter.toml"), format!("url = '{}'\n", h.platform.url())).unwrap();
        fs::write(desk.path("project/.claude/settings.json"), settings.to_string()).unwrap();
        let mut trust = std::process::Command::new(env!("CARGO_BIN_EXE_command"));
        trust.env_clear().env("HOME", desk.path("")).current_dir(desk.path("project"));
        let trusted = trust.arg("trust").output().unwrap();
        assert!(trusted.status.success(), "{trusted:?}");
        Some(desk)
    }

    fn path(&self, path: &str) -> PathBuf {
        self.home.path().join(path)
    }

    /// Writes an agent template and adds the section to it.
    async fn template(&self, name: &str, tools: &str) {
        let text = format!("---\nname: {name}\ndescription: Works\n{tools}---\n\nYou are {name}.\n");
        fs::write(self.path(&format!("project/.claude/agents/{name}.md")), text).unwrap();
        let mut init = self.command(Path::new(env!("CARGO_BIN_EXE_command")));
        let done = init.args(["context", "init", ".claude/agents"]).output().await.unwrap();
        assert!(done.status.success(), "{done:?}");
    }

    fn command(&self, program: &Path) -> Command {
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap());
        let mut command = Command::new(program);
        command.env_clear().env("HOME", self.path("")).env("PATH", path).current_dir(self.path("project"));
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// One session of the assistant, from its start to its end.
    async fn session(&self, model: &FakeAnthropic) {
        self.session_with(model, &["--allowedTools", "Agent,Task,Bash(lamplighter log:*)"]).await;
    }

    async fn session_with(&self, model: &FakeAnthropic, arguments: &[&str]) {
        let mut claude = self.command(&self.program);
        claude.args(["-p", "Design it", "--permission-mode", "default"]);
        claude.args(arguments);
        claude.env("ANTHROPIC_API_KEY", "sk-ant-fake").env("ANTHROPIC_BASE_URL", &model.url);
        // It must not need anything else from the network, and would not get it.
        claude.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1").env("DISABLE_AUTOUPDATER", "1");
        // Otherwise it shows the tools of a server to its model only after a search.
        claude.env("ENABLE_TOOL_SEARCH", "false");
        claude.env("HTTPS_PROXY", "http://127.0.0.1:1").env("NO_PROXY", "127.0.0.1");
        let ran = claude.output().await.unwrap();
        let printed =
            String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success() && printed.contains("All is done."), "{printed}");
    }
}

fn tools(body: &Value) -> Vec<&str> {
    body["tools"]
        .as_array()
        .map_or(Vec::new(), |tools| tools.iter().filter_map(|tool| tool["name"].as_str()).collect())
}

fn calls_agents(body: &Value) -> Option<&'static str> {
    ["Agent", "Task"].into_iter().find(|name| tools(body).contains(name))
}

/// The model of the assistant itself: it launches one agent, and then says that it is done.
fn launches(body: &Value, agent_type: &str, agent_id: &str) -> Option<Vec<Block>> {
    let tool = calls_agents(body)?.to_owned();
    if body["messages"].to_string().contains("tool_result") {
        return Some(vec![Block::Text("All is done.".to_owned())]);
    }
    let prompt = format!("AgentId: {agent_id}\nDesign the next part of it");
    let input = json!({"subagent_type": agent_type, "description": "Design it", "prompt": prompt});
    Some(vec![Block::Call { tool, input }])
}

/// Waits until the log of an agent has this many answers. On a busy machine, a hook leaves its payload to a background
/// process, which retries after up to 26 seconds.
async fn answered(h: &Harness, agent_id: &str, count: usize) -> Vec<Value> {
    loop {
        let log = h.get(&format!("/context/logs/{agent_id}")).await.expect(200);
        let entries = log["entries"].as_array().unwrap().clone();
        let answers: Vec<Value> =
            entries.into_iter().filter(|entry| entry["event"] == "agent_complete").collect();
        if answers.len() >= count {
            return answers;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
}

/// The prompts of sub-agents.
fn of_agents(asked: Vec<Value>) -> Vec<Value> {
    asked.into_iter().filter(|body| calls_agents(body).is_none()).collect()
}

/// An agent without Bash, with the hooks of the manual, gets what it decided before.
#[tokio::test]
async fn an_agent_in_its_third_session_is_handed_what_it_decided_in_the_first_two() {
    let h = Harness::start().await;
    let Some(desk) = Desk::new(&h, &settings_of_the_manual()) else { return };
    desk.template("the-architect", "tools: Read, Grep\n").await;
    let decided = std::sync::atomic::AtomicUsize::new(0);
    let model = FakeAnthropic::start(move |body| {
        launches(body, "the-architect", "arch-auth").unwrap_or_else(|| {
            let n = decided.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1;
            vec![Block::Text(format!("Decision {n}: use key number {n}."))]
        })
    })
    .await;
    for n in 1..=3 {
        desk.session(&model).await;
        let asked = model.asked();
        let assistant = asked.iter().find(|body| calls_agents(body).is_some()).unwrap().to_string();
        // The assistant itself is told which agents it can continue.
        assert_eq!(assistant.contains("arch-auth (the-architect, "), n > 1, "session {n}");
        let [agent] = &of_agents(asked)[..] else { panic!("one agent asks once") };
        assert!(!tools(agent).contains(&"Bash"), "{:?}", tools(agent));
        let said = agent.to_string();
        assert_eq!(said.contains("You are the agent `arch-auth`"), n > 1, "session {n}: {said}");
        for before in 1..=3 {
            let decision = format!("  | Decision {before}: use key number {before}.");
            assert_eq!(said.contains(&decision), before < n, "session {n}, decision {before}: {said}");
        }
        let answers = answered(&h, "arch-auth", n).await;
        let sessions: std::collections::BTreeSet<&str> =
            answers.iter().map(|answer| answer["session_id"].as_str().unwrap()).collect();
        assert_eq!((answers.len(), sessions.len()), (n, n));
    }
}

/// An agent with Bash and without the recall hook runs the command of its template, and reads what it decided.
#[tokio::test]
async fn an_agent_with_bash_reads_what_it_decided_in_earlier_sessions() {
    let h = Harness::start().await;
    let mut settings = settings_of_the_manual();
    settings["hooks"].as_object_mut().unwrap().retain(|event, _| !event.ends_with("Start"));
    let Some(desk) = Desk::new(&h, &settings) else { return };
    desk.template("the-developer", "").await;
    let decided = std::sync::atomic::AtomicUsize::new(0);
    let model = FakeAnthropic::start(move |body| {
        launches(body, "the-developer", "dev-auth").unwrap_or_else(|| {
            if !body["messages"].to_string().contains("tool_result") {
                // The command of the template, as the model understands it.
                let system = body["system"].to_string();
                assert!(system.contains("lamplighter log --read --agent-id"), "{system}");
                let command = "lamplighter log --read --agent-id \"dev-auth\" --lines 20 --format text";
                let input = json!({"command": command, "description": "Read my log"});
                return vec![Block::Call { tool: "Bash".to_owned(), input }];
            }
            let n = decided.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1;
            vec![Block::Text(format!("Decision {n}: use key number {n}."))]
        })
    })
    .await;
    for n in 1..=3 {
        desk.session(&model).await;
        let agents = of_agents(model.asked());
        let read = agents.last().unwrap()["messages"].to_string();
        assert!(read.contains("Agent: dev-auth | Session: "), "session {n}: {read}");
        for before in 1..=3 {
            let decision = format!("Decision {before}: use key number {before}.");
            assert_eq!(read.contains(&decision), before < n, "session {n}, decision {before}: {read}");
        }
        assert_eq!(read.matches("[Earlier session ").count(), n - 1, "session {n}: {read}");
        answered(&h, "dev-auth", n).await;
    }
}

/// It reads a file over MCP, edits it, and looks at its edits. A person finds them in a change set, and applies them.
#[tokio::test]
async fn an_assistant_edits_a_theme_through_a_change_set() {
    const PRICE: &str = "snippets/price.liquid";
    let h = Harness::start().await;
    let Some(desk) = Desk::new(&h, &json!({})) else { return };
    let text = "<p>\n  {{ price | money }}\n</p>\n";
    tests::themes::put(&h, PRICE, text).await.expect(201);
    let server = json!({"type": "http", "url": format!("{}/mcp?tools=theme", h.platform.url())});
    let config = desk.path("mcp.json");
    fs::write(&config, json!({"mcpServers": {"shop": server}}).to_string()).unwrap();
    let model = FakeAnthropic::start(|body| {
        let call = |tool: &str, input: Value| vec![Block::Call { tool: format!("mcp__shop__{tool}"), input }];
        let said = body["messages"].to_string();
        if !tools(body).contains(&"mcp__shop__search_replace") || said.contains("not applied, 1 files") {
            return vec![Block::Text("All is done.".to_owned())];
        }
        if said.contains("edit 1 of chs_") {
            return call("show_changes", json!({}));
        }
        let Some((_, version)) = said.split_once("price.liquid version ") else {
            return call("read_file", json!({"path": PRICE}));
        };
        let replacement = json!({"old": "| money }}", "new": "| money_with_currency }}"});
        let version = version.split(' ').next().unwrap();
        call("search_replace", json!({"path": PRICE, "version": version, "replacements": [replacement]}))
    })
    .await;
    let config = config.to_str().unwrap().to_owned();
    desk.session_with(
        &model,
        &["--mcp-config", &config, "--strict-mcp-config", "--allowedTools", "mcp__shop"],
    )
    .await;
    let file = format!("/projects/default/files/{PRICE}");
    assert_eq!(h.get(&file).await.expect(200), text, "nobody sees the edit");
    let list = h.get("/projects/default/changes").await.expect(200);
    let [set] = &list["data"].as_array().unwrap()[..] else { panic!("one change set: {list:#}") };
    let path = format!("/projects/default/changes/{}/apply", set["change_set_id"].as_str().unwrap());
    h.post(&path, json!({"hash": set["hash"]})).await.expect(200);
    assert_eq!(h.get(&file).await.expect(200), text.replace("money", "money_with_currency"));
}

/// The status names the agents that the filter drops, and how to record them.
#[tokio::test]
async fn an_agent_that_is_dropped_is_shown_by_status() {
    let h = Harness::start().await;
    let Some(desk) = Desk::new(&h, &settings_of_the_manual()) else { return };
    let model = FakeAnthropic::start(|body| {
        launches(body, "general-purpose", "gen-auth").unwrap_or_else(|| vec![Block::Text("Done.".to_owned())])
    })
    .await;
    h.patch("/projects/default", json!({"hook_filter": "the-"})).await.expect(200);
    desk.session(&model).await;
    let mut status = desk.command(Path::new(env!("CARGO_BIN_EXE_command")));
    let shown = status.arg("status").output().await.unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("hooks of `general-purpose`"), "{shown}");
    assert!(shown.contains("filter    records agents of the types the-…"), "{shown}");
    let log = h.get("/context/logs/gen-auth").await.expect(200);
    assert_eq!(log["entries"], json!([]));
}
