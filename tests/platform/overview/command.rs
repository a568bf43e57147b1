//! The `lamplighter` command for people, with the platform: every command for people and for programs, and what goes wrong.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use base::clock::{Clock, ManualClock};
use domain::accounts::rates::RateLimits;
use domain::agent_loop::CallResult;
use domain::tools::{Effect, Surface, ToolDef};
use futures::future::BoxFuture;
use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use shared::config::outside::{Called, Outside, OutsideCall, OutsideTools};
use shared::config::{AuthConfig, RunsConfig};
use tempfile::TempDir;
use tests::model::{Says, ScriptedModel};
use tests::stage::Stage;
use tests::{Harness, made};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

/// Nothing listens on this port.
const DOWN: &str = "http://127.0.0.1:1";

/// What a stranger writes to take a terminal over: colours, a title, a cleared screen, text that runs backwards, C1 controls.
const HOSTILE: &str = "\u{1b}[31m\u{1b}]0;x\u{7}\u{1b}[2J\u{202e}live\u{2066}\u{9b}5n\u{200f}\r\u{8}end";

/// A person's shell.
struct Shell {
    home: TempDir,
    url: String,
    key: Option<String>,
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

    #[track_caller]
    fn json(self) -> Value {
        let out = self.ok();
        assert!(!out.chars().any(|c| c != '\n' && (c.is_control() || is_mark(c))), "{out:?}");
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }

    #[track_caller]
    fn failed(self, error: &str) -> Self {
        assert_eq!(self.code, 1, "{self:?}");
        assert!(self.err.contains(error), "{error:?} is not in {}", self.err);
        self
    }
}

fn is_mark(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}' | '\u{2028}' | '\u{2029}')
}

impl Shell {
    fn new(url: &str) -> Self {
        Self { home: TempDir::new().unwrap(), url: url.to_owned(), key: None }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_command"));
        command.env_clear().env("HOME", self.home.path()).env("LAMPLIGHTER_URL", &self.url);
        command.env("PATH", std::env::var_os("PATH").unwrap()).current_dir(self.home.path()).args(args);
        if let Some(key) = &self.key {
            command.env("LAMPLIGHTER_API_KEY", key);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    async fn give(&self, args: &[&str], stdin: &str) -> Output {
        let mut child = self.command(args).spawn().unwrap();
        // The program may end without reading.
        drop(child.stdin.take().unwrap().write_all(stdin.as_bytes()).await);
        let output = child.wait_with_output().await.unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let (out, err) = (text(output.stdout), text(output.stderr));
        let controls =
            |text: &str| text.chars().any(|c| !matches!(c, '\n' | '\t') && (c.is_control() || is_mark(c)));
        let is_content = args.first() == Some(&"assets") && !args.contains(&"--json");
        assert!(is_content || !controls(&out), "{args:?}: {out:?}");
        assert!(!controls(&err), "{args:?}: {err:?}");
        Output { code: output.status.code().unwrap(), out, err }
    }

    async fn run(&self, args: &[&str]) -> Output {
        self.give(args, "").await
    }
}

/// The exit code of a command is known at once, also long before the first due time.
#[tokio::test]
async fn a_command_that_failed_is_listed_until_it_succeeds() {
    let h = Harness::start().await;
    let shell = Shell::new(&h.platform.url());
    shell.run(&["watch", "add", "Backup", "--daily", "03:00"]).await.ok();
    let state = async || {
        let list = shell.run(&["watch", "list"]).await.ok();
        list.lines().nth(1).unwrap().split_whitespace().nth(1).unwrap().to_owned()
    };
    assert_eq!(state().await, "waiting");
    let ended = shell.run(&["watch", "wrap", "Backup", "--", "sh", "-c", "exit 3"]).await;
    assert_eq!((ended.code, ended.err.as_str()), (3, ""), "{ended:?}");
    assert_eq!(state().await, "failed");
    let shown = shell.run(&["watch", "show", "Backup"]).await.ok();
    assert!(shown.contains("\nfailed: It reported a failure with exit code 3"), "{shown}");
    shell.run(&["watch", "wrap", "Backup", "--", "true"]).await.ok();
    assert_eq!(state().await, "ran");
}

#[tokio::test]
async fn a_day_in_the_shell() {
    let h = Harness::start().await;
    let shell = Shell::new(&h.platform.url());
    assert!(shell.run(&["agents"]).await.ok().contains("`lamplighter agents new` makes one"));
    assert_eq!(shell.run(&["inbox"]).await.ok(), "nothing waits for you\n");
    assert_eq!(shell.run(&["due"]).await.ok(), "nothing is due\n");
    assert_eq!(shell.run(&["runs"]).await.ok(), "there are no such runs\n");
    shell.run(&["chats", "latest"]).await.failed("there is no chat yet");
    shell.run(&["chat"]).await.failed("there is no active agent yet");
    shell.run(&["agents", "new"]).await.failed("--name and --goal say which agent to make");

    let made = shell
        .run(&["agents", "new", "--name", "Wächter 日本", "--goal", "A research agent that watches"])
        .await
        .ok();
    let agent = h.get("/agents").await.expect(200)["data"][0].clone();
    let agent_id = agent["agent_id"].as_str().unwrap();
    assert_eq!(made, format!("Made Wächter 日本 ({agent_id}).\n"));
    let table = shell.run(&["agents"]).await.ok();
    assert!(
        table.lines().nth(1).unwrap().starts_with(&format!("{agent_id}  Wächter 日本  active")),
        "{table}"
    );
    assert_eq!(shell.run(&["agents", "--json"]).await.json(), h.get("/agents").await.expect(200));
    assert_eq!(shell.run(&["agents", "WÄCHTER 日本", "--json"]).await.json(), agent);
    assert!(shell.run(&["agents", &agent_id[..14]]).await.ok().contains("A research agent that watches"));

    // Asks for something now: an asset that waits as a draft.
    let said = shell.run(&["chat", "wächter 日本", "Write a brief about lamp oil prices"]).await;
    assert!(said.err.contains("a draft waits: "), "{said:?}");
    assert!(!said.ok().trim().is_empty());
    let proposals = h.get(&format!("/agents/{agent_id}/proposals")).await.expect(200);
    assert_eq!(shell.run(&["proposals", "--agent", agent_id, "--json"]).await.json(), proposals);
    let proposal = proposals["data"][0]["proposal_id"].as_str().unwrap();
    assert!(shell.run(&["proposals"]).await.ok().contains(proposal));
    assert!(
        shell.run(&["proposals", proposal]).await.ok().contains(&format!("lamplighter accept {proposal}"))
    );
    let inbox = shell.run(&["inbox"]).await.ok();
    assert!(inbox.contains(&format!("lamplighter accept {proposal}")), "{inbox}");
    assert_eq!(shell.run(&["inbox", "--json"]).await.json(), h.get("/inbox").await.expect(200));
    assert!(shell.run(&["accept", proposal]).await.ok().starts_with("Saved "));
    shell.run(&["accept", proposal]).await.failed("it was accepted before");
    let asset = h.get("/assets").await.expect(200)["data"][0].clone();
    let content = h.request(Method::GET, &format!("/assets/{}/content", asset["asset_id"].as_str().unwrap()));
    let content = content.send().await.unwrap().text().await.unwrap();
    let title = asset["title"].as_str().unwrap();
    assert_eq!(shell.run(&["assets", title]).await.ok(), content);
    assert_eq!(shell.run(&["assets", title, "--json"]).await.json(), asset);
    assert!(shell.run(&["assets", "--agent", agent_id]).await.ok().contains(title));
    assert_eq!(shell.run(&["assets", "--json"]).await.json(), h.get("/assets").await.expect(200));

    // The same chat goes on, from the standard input, and another one begins.
    let run = shell
        .give(&["chat", "--json"], "Schedule a report on lamp oil prices every Monday at 9")
        .await
        .json();
    let chats = h.get(&format!("/agents/{agent_id}/chats")).await.expect(200);
    assert_eq!(chats["data"].as_array().unwrap().len(), 1);
    assert_eq!((&run["chat_id"], &run["state"]), (&chats["data"][0]["chat_id"], &json!("completed")));
    shell.run(&["chat", agent_id, "Hello", "--new"]).await.ok();
    let listed = shell.run(&["chats", "list", "--json"]).await.json();
    assert_eq!(listed["data"].as_array().unwrap().len(), 2);
    assert_eq!(shell.run(&["chats", "list"]).await.ok().lines().count(), 3);
    let newest = shell.run(&["chats", "latest", "--json"]).await.json();
    assert_eq!(newest["messages"][0]["content"], "Hello");
    assert!(shell.run(&["chats", "latest", "--agent", agent_id]).await.ok().contains("\nHello\n"));
    let first = chats["data"][0]["chat_id"].as_str().unwrap();
    let went_on = shell.run(&["chat", agent_id, "Hello again", "--chat", first, "--json"]).await.json();
    assert_eq!(went_on["chat_id"], first);

    // With one agent, its name may be left out. A single word is a name, and so is the beginning of an id.
    for words in
        [&["chat", "What is scheduled?", "--json"][..], &["chat", "What", "is", "scheduled?", "--json"]]
    {
        let asked = shell.run(words).await.json();
        let chat = h.get(&format!("/chats/{}", asked["chat_id"].as_str().unwrap())).await.expect(200);
        let said = chat["messages"].as_array().unwrap().iter().rfind(|message| message["role"] == "user");
        assert_eq!(said.unwrap()["content"], "What is scheduled?", "{chat:#}");
    }
    shell.run(&["chat", "Wachter"]).await.failed("there is no agent `Wachter`");
    shell.run(&["chat", "agt_00", "Hello"]).await.failed("there is no agent `agt_00`");

    let proposal = run["proposals"][0]["proposal_id"].as_str().unwrap();
    let accepted = shell.run(&["accept", proposal]).await.ok();
    let action = h.get("/actions").await.expect(200)["data"][0].clone();
    let action = h.get(&format!("/actions/{}", action["action_id"].as_str().unwrap())).await.expect(200);
    let (action_id, title) = (action["action_id"].as_str().unwrap(), action["title"].as_str().unwrap());
    assert!(accepted.contains(&format!("lamplighter approve {action_id}")), "{accepted}");
    assert_eq!(shell.run(&["actions", "--json"]).await.json(), h.get("/actions").await.expect(200));
    assert_eq!(shell.run(&["actions", title, "--json"]).await.json(), action);
    assert!(shell.run(&["actions", title]).await.ok().contains("Expected output"));
    assert!(shell.run(&["inbox"]).await.ok().contains(&format!("lamplighter approve {action_id}")));

    // Without a terminal, only what was seen is approved.
    let refused =
        shell.run(&["approve", title]).await.failed("`--hash HASH` must say which ticket you have seen");
    let hash = action["approval_hash"].as_str().unwrap();
    for part in ["At 09:00 on Monday (UTC)", "may use", "cost", "Expected output", hash] {
        assert!(refused.out.contains(part), "{part} is not in {}", refused.out);
    }
    let ticket = shell.run(&["approve", title, "--json"]).await.failed("--hash");
    let ticket: Value = serde_json::from_str(&ticket.out).unwrap();
    assert_eq!(ticket["approval_hash"], hash);
    let changed = json!({"task_config": {"instructions": "Something else"}});
    h.patch(&format!("/actions/{action_id}"), changed).await.expect(200);
    shell.run(&["approve", title, "--hash", hash]).await.failed("not approved: the action has changed");
    let now = h.get(&format!("/actions/{action_id}")).await.expect(200);
    assert_eq!(now["approval"], Value::Null);
    let hash = now["approval_hash"].as_str().unwrap();
    let approved = shell.run(&["approve", title, "--hash", hash]).await.ok();
    assert!(
        approved.contains("Something else") && approved.contains("\nApproved; next due Mon "),
        "{approved}"
    );
    assert!(shell.run(&["approve", title]).await.ok().ends_with("It is approved as it is.\n"));

    let due = shell.run(&["due"]).await.ok();
    assert!(due.contains(title) && due.contains("every Monday"), "{due}");
    // What is paused is listed with the reason, also if it is due on another day.
    h.post(&format!("/actions/{action_id}/pause"), json!({})).await.expect(200);
    let due = shell.run(&["due"]).await.ok();
    let (head, idle) = due.trim_end().rsplit_once('\n').unwrap_or_else(|| panic!("{due}"));
    assert!(head.lines().last().unwrap().starts_with("WHEN "), "{due}");
    assert!(head.contains("  WILL NOT RUN ") && head.ends_with("  WHY"), "{due}");
    let [when, name, why] = idle.split("  ").filter(|cell| !cell.is_empty()).collect::<Vec<_>>()[..] else {
        panic!("{due}")
    };
    assert!(
        when.starts_with("Mon ") && name == title && why.starts_with("You paused the action at "),
        "{due}"
    );
    // That everything is stopped is said at the top, and takes away no reason. No next time is named.
    h.post("/account/stop", json!({})).await.expect(200);
    let due = shell.run(&["due"]).await.ok();
    assert!(due.starts_with("the account is stopped since ") && due.ends_with(&format!("{idle}\n")), "{due}");
    let shown = shell.run(&["actions", title]).await.ok();
    let lines: Vec<&str> = shown.lines().filter(|line| line.starts_with("no run    ")).collect();
    assert!(
        lines.len() == 2
            && lines[0].contains("You paused the action at ")
            && lines[1].contains("Everything was stopped at "),
        "{shown}"
    );
    assert!(!shown.lines().any(|line| line.starts_with("next  ")), "{shown}");
    h.post("/account/start", json!({})).await.expect(200);
    h.post(&format!("/actions/{action_id}/resume"), json!({})).await.expect(200);
    assert!(!shell.run(&["due"]).await.ok().contains("WILL NOT RUN"));
    let due = shell.run(&["due", "--json"]).await.json();
    assert_eq!(due["day"]["date"], h.get("/day").await.expect(200)["date"]);
    let why = shell.run(&["why", title]).await.ok();
    let sentence = h.get(&format!("/actions/{action_id}/why")).await.expect(200)["sentence"].clone();
    assert_eq!(why, format!("{}\n", sentence.as_str().unwrap()));
    let why = shell.run(&["why", title, "--at", "2020-01-06 09:00", "--json"]).await.json();
    assert_eq!(why["at"], "2020-01-06T09:00:00Z");
    shell.run(&["why", title, "--at", "soon"]).await.failed("--at must be a time");

    // A run by hand.
    let begun = h.post(&format!("/actions/{action_id}/run"), json!({})).await;
    assert!(begun.status < 300, "{:#}", begun.body);
    loop {
        if h.get("/runs").await.expect(200)["data"][0]["finished_at"].is_string() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let runs = h.get("/runs").await.expect(200);
    let run_id = runs["data"][0]["run_id"].as_str().unwrap();
    assert_eq!(shell.run(&["runs", "--json"]).await.json()["data"], runs["data"]);
    let table =
        shell.run(&["runs", "--action", title, "--agent", agent_id, "--from", "2020-01-01"]).await.ok();
    assert!(table.contains(run_id) && table.lines().count() == 2, "{table}");
    assert_eq!(shell.run(&["runs", "--to", "2020-01-01"]).await.ok(), "there are no such runs\n");
    shell.run(&["runs", "--state", "done"]).await.failed("state");
    let shown = shell.run(&["runs", &run_id[..20]]).await.ok();
    assert!(shown.contains(run_id) && shown.contains(action_id), "{shown}");
    assert_eq!(shell.run(&["runs", run_id, "--json"]).await.json()["run_id"], run_id);

    let usage = shell.run(&["usage"]).await.ok();
    assert!(usage.starts_with("today     $") && usage.contains("Wächter 日本"), "{usage}");
    assert!(shell.run(&["usage", "--json"]).await.json()["month"]["total"].is_object());
    shell.run(&["usage", "--month", "soon"]).await.failed("month");
}

#[tokio::test]
async fn a_name_must_fit_one_thing() {
    let h = Harness::start().await;
    let shell = Shell::new(&h.platform.url());
    for name in ["Price watch", "price WATCH", "Other", "agt_0"] {
        h.post("/agents", json!({"name": name, "goal": "A research agent"})).await.expect(201);
    }
    let ids: Vec<String> = h.get("/agents").await.expect(200)["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| agent["agent_id"].as_str().unwrap().to_owned())
        .collect();
    let ambiguous = shell.run(&["agents", "price watch"]).await.failed("may be several agents; give an id:");
    assert!(
        ambiguous.err.contains(&ids[3])
            && ambiguous.err.contains(&ids[2])
            && !ambiguous.err.contains(&ids[1])
    );
    shell.run(&["agents", "agt_"]).await.failed("may be several agents");
    assert_eq!(shell.run(&["agents", "other", "--json"]).await.json()["agent_id"], ids[1].as_str());
    assert_eq!(shell.run(&["agents", &ids[1], "--json"]).await.json()["agent_id"], ids[1].as_str());
    // An id that begins like a name wins, and a name that looks like an id is still found.
    let named = shell.run(&["agents", "agt_0", "--json"]).await;
    assert!(named.code == 1 || named.json()["agent_id"] == ids[0].as_str());
    let similar =
        shell.run(&["agents", "watch"]).await.failed("there is no agent `watch`; these are similar:");
    assert!(similar.err.contains("Price watch"));
    shell.run(&["agents", "nobody"]).await.failed("there is no agent `nobody`");
    shell.run(&["agents", " "]).await.failed("the name of an agent is empty");
    shell.run(&["agents", "agt_00000000000000000000000000000000"]).await.failed("answered 404");
    shell.run(&["actions", &ids[0]]).await.failed("there is no action");
    shell.run(&["chat", "--json", "--", "-"]).await.failed("there is no agent `-`");
    shell.run(&["chat"]).await.failed("say which agent:");
    let foreign = made::foreign(&h).await;
    shell.run(&["agents", "Theirs"]).await.failed("there is no agent `Theirs`");
    let id = foreign.agent.rsplit('/').next().unwrap();
    shell.run(&["agents", id]).await.failed("answered 404");

    // More than one page, and more than is shown.
    for n in 0..56 {
        h.post("/agents", json!({"name": format!("Agent {n}"), "goal": "A research agent"}))
            .await
            .expect(201);
    }
    let first = shell.run(&["agents"]).await;
    assert!(first.err.contains("there are more") && first.out.lines().count() == 51, "{first:?}");
    let all = shell.run(&["agents", "--limit", "1000"]).await;
    assert!(all.err.is_empty() && all.out.lines().count() == 61, "{all:?}");
    let some = shell.run(&["agents", "--limit", "3", "--json"]).await.json();
    assert_eq!((some["data"].as_array().unwrap().len(), &some["has_more"]), (3, &json!(true)));

    // A reader that stops reading is no error.
    for line in [
        "agents --limit 1000 | head -1",
        "agents --json | head -1",
        "agents --limit 1000 | true",
        "completions bash | head -1",
    ] {
        let mut piped = Command::new("sh");
        piped.args(["-c", &format!("\"$P\" {line}")]).env_clear().env("P", env!("CARGO_BIN_EXE_command"));
        piped
            .env("HOME", shell.home.path())
            .env("LAMPLIGHTER_URL", &shell.url)
            .env("PATH", std::env::var_os("PATH").unwrap());
        let output = piped.output().await.unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.success() && !err.contains("rror") && !err.contains("panicked"),
            "{line}: {err}"
        );
    }
}

/// Some keyboards and file systems write `é` as two characters.
#[tokio::test]
async fn a_name_is_found_in_every_form_of_unicode() {
    let h = Harness::start().await;
    let shell = Shell::new(&h.platform.url());
    let stored = "Café Büro 한글";
    let typed = "Cafe\u{301} BU\u{308}RO \u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}";
    let agent = h.post("/agents", json!({"name": stored, "goal": "A research agent"})).await.expect(201);
    let agent_id = agent["agent_id"].as_str().unwrap();
    assert_eq!(shell.run(&["agents", typed, "--json"]).await.json()["agent_id"], agent_id);
    let said = shell.run(&["chat", typed, "Hello", "--json"]).await.json();
    assert_eq!(said["agent_id"], agent_id, "{said:#}");
    // A title may be stored in either form.
    let [actions, assets] = ["actions", "assets"].map(|kind| format!("/agents/{agent_id}/{kind}"));
    for (title, called) in [(stored, typed), (typed, stored)] {
        // Another name each time.
        let (title, called) = (format!("{title} {}", called.len()), format!("{called} {}", called.len()));
        let task = json!({"instructions": "Look", "expected_output": "A list"});
        let action = h.post(&actions, json!({"title": title, "task_config": task})).await.expect(201);
        let shown = shell.run(&["actions", &called, "--json"]).await.json();
        assert_eq!(shown["action_id"], action["action_id"], "{called}");
        let asset = h.post(&assets, json!({"title": title, "content": "Oil"})).await.expect(201);
        let shown = shell.run(&["assets", &called, "--json"]).await.json();
        assert_eq!(shown["asset_id"], asset["asset_id"], "{called}");
    }
    shell.run(&["watch", "add", typed, "--daily", "03:00"]).await.ok();
    for args in [&["watch", "show", typed][..], &["watch", "pause", typed], &["watch", "resume", typed]] {
        shell.run(args).await.ok();
    }
    shell.run(&["watch", "report", typed, "--failed"]).await.ok();
    let wrapped = shell.run(&["watch", "wrap", typed, "--", "true"]).await;
    assert_eq!((wrapped.code, wrapped.err.as_str()), (0, ""), "{wrapped:?}");
    // Without its accents it is another name.
    shell.run(&["agents", "Cafe Buro 한글"]).await.failed("there is no agent");
}

/// Writes, or asks first.
fn works(messages: &[Value]) -> Says {
    let since = messages.iter().rposition(|message| message["role"] == "user").unwrap_or(0);
    let is_done = messages[since..].iter().any(|message| message["role"] == "tool");
    match messages[since]["content"].as_str().unwrap_or_default() {
        _ if is_done => Says::Text("It is done.".into()),
        text if text.contains("Ask first") => Says::Call("ask_person", json!({"question": "Which week?"})),
        _ => Says::Call("save_output", json!({"title": "Report", "content": "Lamp oil is dear."})),
    }
}

async fn on_a_stage() -> (ScriptedModel, Stage, Shell) {
    let model = ScriptedModel::start(works).await;
    let stage = Stage::with(model.config("scripted")).await;
    let shell = Shell::new(&stage.h.platform.url());
    (model, stage, shell)
}

#[tokio::test]
async fn an_action_is_run_paused_and_resumed() {
    let (_model, stage, shell) = on_a_stage().await;
    let id = stage.approved(json!({"title": "Prices", "schedule": {"every": "24h"}})).await;
    let state = async || stage.h.get(&format!("/actions/{id}")).await.expect(200)["state"].clone();
    let paused = shell.run(&["pause", "prices"]).await.ok();
    assert_eq!(
        paused,
        format!("Paused Prices. Its due times are skipped until `lamplighter resume {id}`.\n")
    );
    assert_eq!(state().await, "paused");
    assert_eq!(shell.run(&["pause", "prices"]).await.ok(), paused);
    let resumed = shell.run(&["resume", "prices"]).await.ok();
    assert!(resumed.starts_with("Resumed Prices; next due "), "{resumed}");
    assert_eq!(state().await, "scheduled");

    let begun = shell.run(&["run", "prices"]).await.ok();
    let run =
        begun.strip_prefix("Prices runs now. `lamplighter runs ").and_then(|rest| rest.split('`').next());
    let run = run.unwrap_or_else(|| panic!("{begun}"));
    // The run goes on while the action is paused.
    let paused = shell.run(&["pause", &id.to_string()]).await.ok();
    assert!(paused.ends_with(&format!("The run {run} goes on.\n")), "{paused}");
    shell.run(&["resume", "prices", "--json"]).await.json();
    stage.executors.work().await;
    assert_eq!(shell.run(&["runs", run, "--json"]).await.json()["state"], "completed");
    let again = shell.run(&["run", "prices", "--json"]).await.json();
    assert_eq!(again["action"]["action_id"], json!(id));

    // What nobody has approved does not run, and is not shown as paused.
    let draft = made::drafts(&stage.h, &stage.agent, 1).await[0];
    let refused = shell.run(&["run", "Draft 0"]).await.failed("answered 409: the action has no approval");
    assert!(refused.err.contains(&format!("`lamplighter approve {draft}`")), "{refused:?}");
    shell.run(&["pause", "Draft 0"]).await.failed("answered 409: cannot pause an action that is defined");
    shell.run(&["run", "nothing"]).await.failed("there is no action `nothing`");
    let foreign = made::foreign(&stage.h).await;
    let id = foreign.action.rsplit('/').next().unwrap();
    for how in ["run", "pause", "resume"] {
        shell.run(&[how, id]).await.failed("answered 404");
    }
}

/// The command that an inbox with one item names.
async fn named_by_the_inbox(shell: &Shell) -> String {
    let inbox = shell.run(&["inbox"]).await.ok();
    let mut commands = inbox.lines().filter_map(|line| line.strip_prefix("  → lamplighter "));
    let command = commands.next().unwrap_or_else(|| panic!("{inbox}")).to_owned();
    assert_eq!(commands.next(), None, "{inbox}");
    command
}

#[tokio::test]
async fn the_inbox_names_commands_that_answer() {
    const DAY: i64 = 24 * 60;
    let (model, stage, shell) = on_a_stage().await;
    let id = stage.approved(json!({"schedule": {"every": "24h", "catch_up": "none"}})).await;
    stage.happens_at(DAY).await;
    assert_eq!(stage.became(id).await, ["1440 succeeded"]);

    // What will fail: the newest due time has succeeded, so `why` without a time says nothing of it.
    model.lists(401);
    stage.happens_at(DAY + DAY / 2).await;
    let command = named_by_the_inbox(&shell).await;
    assert_eq!(command, format!("why {id} --at 2026-11-23T12:00:00Z"));
    let told = shell.run(&command.split(' ').collect::<Vec<_>>()).await.ok();
    assert!(told.contains("will fail unless this is mended: "), "{told}");
    assert!(!shell.run(&["why", "Report"]).await.ok().contains("will fail"));
    model.lists(200);
    stage.happens_at(2 * DAY - 5).await;

    // What was missed: a run by hand that failed since is another thing.
    stage.happens_at(2 * DAY + 60).await;
    model.has_context(10);
    stage.at(2 * DAY + 61);
    shell.run(&["run", "Report"]).await.ok();
    stage.executors.work().await;
    let command = named_by_the_inbox(&shell).await;
    let explains = format!("why {id} --at 2026-11-23T12:00:00Z");
    assert_eq!(command, format!("run {id} (or lamplighter {explains})"));
    let why = shell.run(&explains.split(' ').chain(["--json"]).collect::<Vec<_>>()).await.json();
    assert_eq!(why["code"], "missed");
    model.has_context(usize::MAX);
    stage.at(2 * DAY + 62);
    shell.run(&["run", &id.to_string()]).await.ok();
    stage.executors.work().await;
    assert_eq!(shell.run(&["inbox"]).await.ok(), "nothing waits for you\n");
    shell.run(&["pause", "Report"]).await.ok();

    // A question.
    let asks =
        json!({"title": "Week", "task_config": {"instructions": "Ask first", "expected_output": "A report"}});
    let id = stage.approved(asks).await;
    shell.run(&["run", "Week"]).await.ok();
    stage.executors.work().await;
    assert_eq!(named_by_the_inbox(&shell).await, format!("resume {id} --message \"your answer\""));
    shell.run(&["resume", &id.to_string(), "--message", "This week"]).await.ok();
    stage.executors.work().await;
    assert_eq!(shell.run(&["inbox"]).await.ok(), "nothing waits for you\n");
}

#[tokio::test]
async fn an_empty_theme_says_that_it_has_no_files() {
    let h = Harness::start().await;
    let shell = Shell::new(&h.platform.url());
    for args in [
        &["theme", "map", "default"][..],
        &["theme", "lookup", "default", "the header"],
        &["theme", "graph", "default"],
        &["theme", "check", "default"],
    ] {
        let said = shell.run(args).await.ok();
        assert!(said.starts_with("the project default has no files; import a theme "), "{args:?}: {said}");
        assert!(said.contains(&shell.url) && said.ends_with(" POST /projects/default/import\n"), "{said}");
        assert!(shell.run(&[args, &["--json"]].concat()).await.json().is_object());
    }
    let put = h.request(Method::PUT, "/projects/default/files/layout/theme.liquid");
    let put = put.header("content-type", "text/plain").body("<html>{{ content_for_layout }}</html>");
    assert!(put.send().await.unwrap().status().is_success());
    let map = shell.run(&["theme", "map", "default", "--tokens", "1"]).await.ok();
    assert_eq!(map, "nothing of the theme fits into 1 token; `--tokens N` takes more\n");
    let found = shell.run(&["theme", "lookup", "default", "zeppelin"]).await.ok();
    assert_eq!(found, "nothing in the theme is about that\n");
}

/// Says what a stranger would like to be printed.
fn says_hostile(messages: &[Value]) -> Says {
    let asked = messages.iter().rev().find(|message| message["role"] == "user");
    match asked.and_then(|message| message["content"].as_str()).unwrap_or_default() {
        text if text.contains("long") => Says::Text("x".repeat(1_000_000)),
        _ => Says::Text(format!("first\n{HOSTILE}\tlast")),
    }
}

#[tokio::test]
async fn texts_of_strangers_control_no_terminal() {
    let model = ScriptedModel::start(says_hostile).await;
    let h = Harness::with(PlatformConfig { models: model.server(), ..PlatformConfig::in_memory() }).await;
    let shell = Shell::new(&h.platform.url());
    let agent = json!({"name": format!("Agent {HOSTILE}"), "goal": format!("Watch\n{HOSTILE}"), "instructions": HOSTILE});
    let agent = h.post("/agents", agent).await;
    let agent = if agent.status == 201 {
        agent.expect(201)["agent_id"].as_str().unwrap().to_owned()
    } else {
        h.agent().await
    };
    let action = json!({
        "title": format!("Act\u{202e}ion 日本"), "description": HOSTILE,
        "task_config": {"instructions": HOSTILE, "expected_output": format!("{HOSTILE}\n{}", "y".repeat(4_000))},
        "schedule": {"cron": "0 9 * * *", "timezone": "Asia/Tokyo"},
    });
    let action = h.post(&format!("/agents/{agent}/actions"), action).await;
    let action = action.expect(201);
    let id = action["action_id"].as_str().unwrap();
    let content = format!("# {HOSTILE}\n{}\n", "z".repeat(1_000_000));
    let asset =
        json!({"title": format!("Asset {}", "日本".repeat(40)), "content": content, "description": HOSTILE});
    let asset = h.post(&format!("/agents/{agent}/assets"), asset).await.expect(201);

    // `give` checks what is printed.
    let said = shell.run(&["chat", &agent, "Hello"]).await.ok();
    assert!(said.starts_with("first\n\\u{1b}[31m") && said.ends_with("end\tlast\n"), "{said:?}");
    let run = shell.run(&["chat", &agent, "Hello", "--json"]).await.json();
    assert!(run["message"].as_str().unwrap().contains(HOSTILE));
    let long = shell.run(&["chat", &agent, "something long"]).await.ok();
    assert!(long.len() >= 100_000 && long.lines().count() <= 3, "{}", long.len());
    for args in [
        &["agents"][..],
        &["agents", &agent],
        &["actions"],
        &["actions", id],
        &["inbox"],
        &["due"],
        &["chats", "latest"],
        &["chats", "list", "--agent", &agent],
        &["runs", "--kind", "chat"],
        &["why", id],
        &["usage"],
    ] {
        let text = shell.run(args).await.ok();
        assert!(text.len() < 1_200_000, "{args:?}: {}", text.len());
        if args.len() > 1 || args == ["inbox"] || args == ["due"] {
            continue;
        }
        assert!(text.lines().all(|line| line.chars().count() < 1_000), "{args:?}");
    }
    shell.run(&["approve", id]).await.failed("--hash");
    let asset_id = asset["asset_id"].as_str().unwrap();
    assert_eq!(shell.run(&["assets", asset_id]).await.ok(), content);
    for args in
        [&["agents", "--json"][..], &["actions", "--json"], &["inbox", "--json"], &["assets", "--json"]]
    {
        shell.run(args).await.json();
    }
}

#[tokio::test]
async fn a_server_that_is_away_or_refuses_is_named() {
    let all: &[&[&str]] = &[
        &["chat", "agt_00000000000000000000000000000000", "Hello"],
        &["inbox"],
        &["approve", "act_00000000000000000000000000000000"],
        &["accept", "prp_00000000000000000000000000000000"],
        &["answer", "run_00000000000000000000000000000000", "call_1", "yes"],
        &["actions"],
        &["run", "act_00000000000000000000000000000000"],
        &["pause", "act_00000000000000000000000000000000"],
        &["resume", "act_00000000000000000000000000000000"],
        &["runs"],
        &["due"],
        &["why", "act_00000000000000000000000000000000"],
        &["assets"],
        &["agents"],
        &["chats", "latest"],
        &["proposals"],
        &["usage"],
        &["theme", "check", "default"],
        &["theme", "lookup", "default", "header"],
        &["theme", "map", "default"],
        &["theme", "graph", "default"],
        &["watch", "--for", "1"],
    ];
    for args in all {
        let output = Shell::new(DOWN).run(args).await.failed("is it running? (LAMPLIGHTER_URL says where)");
        assert_eq!(output.out, "", "{args:?}");
    }
    let h = Harness::with(PlatformConfig { auth: AuthConfig::On(None), ..PlatformConfig::in_memory() }).await;
    let mut shell = Shell::new(&h.platform.url());
    shell.key = Some("llk_wrong".to_owned());
    for args in all {
        let output = shell.run(args).await.failed("answered 401");
        assert!(
            output.err.contains("set LAMPLIGHTER_API_KEY") && !output.err.contains("llk_wrong"),
            "{output:?}"
        );
    }
    shell.key = Some(h.key_with("me", json!({"name": "reader", "scopes": ["read"]})).await);
    shell.run(&["agents"]).await.ok();
    shell.run(&["agents", "new", "--name", "A", "--goal", "B"]).await.failed("answered 403");
}

#[tokio::test]
async fn a_limit_of_requests_is_waited_for() {
    let clock = ManualClock::at("2026-11-21T12:00:58Z".parse().unwrap());
    let mut config = PlatformConfig::in_memory();
    config.auth = AuthConfig::On(None);
    config.rates = RateLimits::parse("others=1").unwrap();
    config.clock = Clock::Manual(clock.clone());
    let h = Harness::with(config).await;
    let mut shell = Shell::new(&h.platform.url());
    shell.key = Some(h.key_of("me").await);
    let first = shell.run(&["agents", "--json"]).await;
    assert_eq!((first.code, first.err.as_str()), (0, ""));
    let (second, ()) = tokio::join!(shell.run(&["agents", "--json"]), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        clock.set("2026-11-21T12:01:00Z".parse().unwrap());
    });
    assert_eq!(
        (second.code, second.err.as_str()),
        (0, "lamplighter: too many requests; waiting for 2 s\n"),
        "{second:?}"
    );
}

/// Passes connections on, and cuts the first ones after so many bytes of the answer.
async fn cutting(to: String, cuts: Vec<usize>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut cuts = cuts.into_iter();
        loop {
            let Ok((mut person, _)) = listener.accept().await else { return };
            let mut server = TcpStream::connect(to.trim_start_matches("http://")).await.unwrap();
            let mut first = vec![0; 64 * 1024];
            let Ok(read) = person.read(&mut first).await else { continue };
            server.write_all(&first[..read]).await.unwrap();
            // Only streams are cut.
            let is_stream = String::from_utf8_lossy(&first[..read]).contains("text/event-stream");
            let cut = if is_stream { cuts.next() } else { None };
            tokio::spawn(async move {
                let (mut from_person, mut to_person) = person.split();
                let (mut from_server, mut to_server) = server.split();
                let down = async {
                    let Some(mut left) = cut else {
                        drop(tokio::io::copy(&mut from_server, &mut to_person).await);
                        return;
                    };
                    let mut bytes = [0; 1024];
                    while left > 0 {
                        let most = left.min(bytes.len());
                        let Ok(read @ 1..) = from_server.read(&mut bytes[..most]).await else { return };
                        left -= read;
                        drop(to_person.write_all(&bytes[..read]).await);
                    }
                };
                tokio::select! {
                    () = down => {}
                    _ = tokio::io::copy(&mut from_person, &mut to_server) => {}
                }
            });
        }
    });
    url
}

fn says_much(_: &[Value]) -> Says {
    Says::Text((0..400).map(|n| format!("word{n} ")).collect::<String>().trim_end().to_owned())
}

#[tokio::test]
async fn a_cut_connection_loses_and_repeats_nothing() {
    let model = ScriptedModel::start(says_much).await;
    let h = Harness::with(PlatformConfig { models: model.server(), ..PlatformConfig::in_memory() }).await;
    let agent = h.agent().await;
    let Says::Text(whole) = says_much(&[]) else { unreachable!() };
    // Before the first event, within it, within the text, and near the end.
    for cuts in [vec![10], vec![150], vec![400, 300], vec![1_500, 200, 200], vec![3_000]] {
        let url = cutting(h.platform.url(), cuts.clone()).await;
        let shell = Shell::new(&url);
        let before = h.get("/runs?kind=chat").await.expect(200)["data"].as_array().unwrap().len();
        let said = shell.run(&["chat", &agent, "Talk", "--new"]).await;
        assert_eq!(
            (said.code, said.out.as_str()),
            (0, format!("{whole}\n").as_str()),
            "{cuts:?}: {}",
            said.err
        );
        let after = h.get("/runs?kind=chat").await.expect(200)["data"].as_array().unwrap().len();
        assert_eq!(after, before + 1, "{cuts:?}");
    }
}

static MAIL: ToolDef = ToolDef::new(
    "send_mail",
    "Sends a mail.",
    Effect::Outside,
    &[Surface::Chat, Surface::Run],
    || json!({"type": "object"}),
);

/// An outside service.
struct Post;

impl Outside for Post {
    fn tools(&self) -> Vec<&'static ToolDef> {
        vec![&MAIL]
    }

    fn cost_micros(&self, _: &ToolDef, _: &Value) -> Option<i64> {
        Some(700)
    }

    fn call(&self, _: OutsideCall) -> BoxFuture<'static, Called> {
        Box::pin(async { Called::Done(CallResult::told("It is sent.")) })
    }
}

fn mails(messages: &[Value]) -> Says {
    match messages.iter().rfind(|message| message["role"] != "system") {
        Some(message) if message["role"] == "tool" => Says::Text(format!("told: {}", message["content"])),
        _ => Says::Call("send_mail", json!({"to": "a@b.example"})),
    }
}

#[tokio::test]
async fn a_run_that_waits_is_answered() {
    let model = ScriptedModel::start(mails).await;
    let outside = OutsideTools::new(Arc::new(Post));
    let runs = RunsConfig { outside, ..RunsConfig::default() };
    let h =
        Harness::with(PlatformConfig { models: model.server(), runs, ..PlatformConfig::in_memory() }).await;
    let agent = h.agent().await;
    let shell = Shell::new(&h.platform.url());
    for (answer, told) in
        [(&["yes"][..], "It is sent."), (&["no", "--reason", "Not on a Sunday"], "Not on a Sunday")]
    {
        let said = shell.run(&["chat", &agent, "Mail it", "--new"]).await;
        assert!(said.code == 0 && said.err.contains("`lamplighter inbox` shows the question"), "{said:?}");
        let inbox = shell.run(&["inbox"]).await.ok();
        let command = inbox.split("lamplighter answer ").nth(1).unwrap_or_else(|| panic!("{inbox}"));
        let mut words = command.split_whitespace();
        let (run, call) = (words.next().unwrap(), words.next().unwrap());
        assert!(inbox.contains("send_mail") && inbox.contains("costs about $0.0007"), "{inbox}");
        let shown = shell.run(&["runs", run]).await.ok();
        assert!(shown.contains(&format!("lamplighter answer {run} {call} yes")), "{shown}");
        shell.run(&["answer", run, "call_none", "no"]).await.failed("has no call `call_none`");
        shell
            .run(&["answer", run, call, "yes", "--hash", "0"])
            .await
            .failed("not answered: the call has changed");
        shell.run(&["answer", run, call, "happened"]).await.failed("answered 409");
        shell.run(&[&["answer", run, call], answer].concat()).await.ok();
        loop {
            if h.get(&format!("/runs/{run}")).await.expect(200)["state"] == "completed" {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let run = shell.run(&["runs", run, "--json"]).await.json();
        assert!(run["message"].as_str().unwrap().contains(told), "{run:#}");
        assert_eq!(shell.run(&["inbox"]).await.ok(), "nothing waits for you\n");
    }
    shell.run(&["answer", "run_1", "call_1", "yes"]).await.failed("there is no run `run_1`");
    shell.run(&["answer", "nothing", "call_1", "yes"]).await.failed("is not the id of a run");
}

/// A command that watches, and what it prints.
struct Watching {
    _child: Child,
    _said: Lines<BufReader<ChildStderr>>,
    out: Lines<BufReader<ChildStdout>>,
}

impl Watching {
    /// Returns when it has looked for the first time.
    async fn starts(shell: &Shell, args: &[&str]) -> Self {
        let mut child = shell.command(args).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let first = said.next_line().await.unwrap().unwrap();
        assert!(first.contains("watching http://127.0.0.1:"), "{first}");
        let out = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { _child: child, _said: said, out }
    }

    async fn line(&mut self) -> String {
        self.out.next_line().await.unwrap().unwrap()
    }
}

#[tokio::test]
async fn a_watch_prints_changes() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    let shell = Shell::new(&h.platform.url());
    let begun = std::time::Instant::now();
    let quiet = shell.run(&["watch", "--for", "1"]).await;
    assert_eq!((quiet.code, quiet.out.as_str()), (0, ""));
    assert!(quiet.err.contains("watching http://127.0.0.1:"), "{}", quiet.err);
    assert!(begun.elapsed().as_secs() >= 1);
    let mut seen = Watching::starts(&shell, &["watch"]).await;
    let mut json = Watching::starts(&shell, &["watch", "--json"]).await;
    let ids = made::drafts(&h, &agent, 1).await;
    let line = seen.line().await;
    assert!(line.contains("  waits for you  Draft 0 (Watch): "), "{line}");
    let json: Value = serde_json::from_str(&json.line().await).unwrap();
    assert_eq!((&json["change"], &json["item"]["action_id"]), (&json!("waits"), &json!(ids[0].to_string())));
    // Nothing else was printed.
    made::drafts(&h, &agent, 1).await;
    let next = seen.line().await;
    assert!(next.contains("  waits for you  ") && next != line, "{next}");
}

#[tokio::test]
async fn a_theme_is_asked_about() {
    let h = Harness::start().await;
    let shell = Shell::new(&h.platform.url());
    for (path, text) in [
        (
            "layout/theme.liquid",
            "<html>{{ content_for_header }}{{ content_for_layout }}{% render 'header' %}</html>",
        ),
        ("snippets/header.liquid", "<header class=\"sticky\">{{ shop.name }}</header>"),
        ("snippets/old.liquid", "<p>unused</p>"),
    ] {
        let put = h
            .request(Method::PUT, &format!("/projects/default/files/{path}"))
            .header("content-type", "text/plain")
            .body(text);
        let answer = put.send().await.unwrap();
        assert!(answer.status().is_success(), "{}", answer.text().await.unwrap());
    }
    let check = shell.run(&["theme", "check", "default"]).await.ok();
    assert!(check.contains("0 errors, "), "{check}");
    let found = shell.run(&["theme", "lookup", "default", "make the header sticky"]).await.ok();
    assert!(found.contains("snippets/header.liquid\n"), "{found}");
    assert!(
        shell.run(&["theme", "lookup", "default", "header", "--json"]).await.json()["targets"].is_array()
    );
    assert!(
        shell
            .run(&["theme", "map", "default", "--tokens", "500"])
            .await
            .ok()
            .contains("snippets/header.liquid")
    );
    let graph = shell.run(&["theme", "graph", "default"]).await.ok();
    assert!(graph.contains("snippets/old.liquid: probably unused"), "{graph}");
    let graph = shell.run(&["theme", "graph", "default", "--file", "snippets/header.liquid"]).await.ok();
    assert!(graph.contains("is needed by") && graph.contains("layout/theme.liquid"), "{graph}");
    let bad = h
        .request(Method::PUT, "/projects/default/files/snippets/bad.liquid")
        .header("content-type", "text/plain");
    bad.body("{% if %}").send().await.unwrap();
    let check = shell.run(&["theme", "check", "default"]).await.failed("the theme has ");
    assert!(check.out.contains("snippets/bad.liquid:1: error: "), "{}", check.out);
    let json = shell.run(&["theme", "check", "default", "--json"]).await.failed("the theme has ");
    assert!(serde_json::from_str::<Value>(&json.out).unwrap()["errors"].as_i64().unwrap() > 0);
    shell.run(&["theme", "check", "shop"]).await.failed("shop is neither a folder nor the id of a project");
}

/// The command reads a folder itself. Its answers must not differ from those of the server.
#[tokio::test]
async fn a_folder_is_answered_like_a_project() {
    let h = Harness::start().await;
    let shell = Shell::new(&h.platform.url());
    let [theme, changed, empty] = std::array::from_fn(|_| tempfile::tempdir().unwrap());
    for (path, text) in [
        (
            "layout/theme.liquid",
            "<html>{{ content_for_header }}{{ content_for_layout }}{% render 'header' %}</html>",
        ),
        ("snippets/header.liquid", "<header class=\"sticky\">{{ shop.name }}{% render 'gone' %}</header>"),
        ("snippets/old.liquid", "<p>{{ unknown }}</p>{% if %}"),
        ("assets/logo.svg", "<svg/>"),
        ("assets/app.js", "function open( {"),
    ] {
        let put = h.request(Method::PUT, &format!("/projects/default/files/{path}"));
        let answer = put.header("content-type", "text/plain").body(text).send().await.unwrap();
        assert!(answer.status().is_success(), "{}", answer.text().await.unwrap());
        write(theme.path(), path, text);
    }
    write(changed.path(), "snippets/new.liquid", "{{ 'a' | nothing }}");
    let folder = theme.path().to_str().unwrap();
    let overlay = changed.path().to_str().unwrap();
    let empty = empty.path().to_str().unwrap();
    let questions: &[&[&str]] = &[
        &["check"],
        &["check", "--deleted", "snippets/header.liquid"],
        &["check", "--overlay", empty, "--deleted", "snippets/header.liquid"],
        &["check", "--overlay", overlay, "--deleted", "snippets/header.liquid"],
        &["lookup", "make the header sticky"],
        &["lookup", "make the header sticky", "--active", "snippets/old.liquid"],
        &["map", "--tokens", "300", "--request", "header"],
        &["graph"],
        &["graph", "--file", "snippets/header.liquid"],
    ];
    for question in questions {
        let project = shell.run(&asked(question, "default")).await;
        let local = shell.run(&asked(question, folder)).await;
        let [project, mut local] =
            [project, local].map(|output| serde_json::from_str::<Value>(&output.out).unwrap());
        for field in ["source", "took_us"] {
            if let Some(value) = project.get(field) {
                local[field] = value.clone();
            }
        }
        assert_eq!(local, project, "{question:?}");
    }
    // Without a change, there is no question. The check of the whole theme would be another one.
    let twice = ["--overlay", overlay, "--deleted", "snippets/new.liquid"];
    for (change, why) in [
        (&["--overlay", empty][..], "has no files, and nothing is deleted"),
        (&twice[..], "--deleted snippets/new.liquid: the file is in the change twice"),
        (&["--deleted", "../a"][..], "--deleted ../a: "),
    ] {
        for of in ["default", folder] {
            shell.run(&[&["theme", "check", of], change].concat()).await.failed(why);
        }
    }
}

/// The arguments of a question about a theme.
fn asked<'a>(question: &[&'a str], of: &'a str) -> Vec<&'a str> {
    [&["theme", question[0], of], &question[1..], &["--json"]].concat()
}

fn write(folder: &std::path::Path, path: &str, text: &str) {
    let path = folder.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// What the demo model learns of a person.
async fn learned(h: &Harness) {
    let agent = h.agent().await;
    let mut chat = json!(null);
    for message in ["I live in Lisbon.", "My two cats are Mia and Tom."] {
        let mut said = json!({ "message": message });
        if chat.is_string() {
            said["chat_id"] = chat;
        }
        chat = h.post(&format!("/agents/{agent}/chat"), said).await.expect(200)["chat_id"].clone();
    }
}

#[tokio::test]
async fn a_memory_is_searched_read_and_changed() {
    let h = Harness::start().await;
    let shell = Shell::new(&h.platform.url());
    assert_eq!(shell.run(&["memory", "show"]).await.ok(), "there is nothing yet\n");
    assert_eq!(shell.run(&["memory", "tidies"]).await.ok(), "the memory was never tidied\n");
    assert_eq!(shell.run(&["memory", "search", "Lisbon"]).await.ok(), "nothing was found\n");
    assert_eq!(shell.run(&["memory", "tidy"]).await.ok(), "there was nothing to tidy\n");
    learned(&h).await;
    let synced = shell.run(&["memory", "sync"]).await.ok();
    assert!(synced.contains("learned 2 facts for $"), "{synced}");
    assert!(shell.run(&["memory", "sync"]).await.ok().ends_with("there was nothing new to learn\n"));
    assert_eq!(shell.run(&["memory", "sync", "--json"]).await.json()["result"], "skipped");

    let days = shell.run(&["memory", "show", "days"]).await.ok();
    let day = days.lines().nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    let markdown = shell.run(&["memory", "show", &day]).await.ok();
    assert!(
        markdown.contains("The user lives in Lisbon.") && markdown.contains("(demo model)"),
        "{markdown}"
    );
    let json = shell.run(&["memory", "show", &day, "--json"]).await.json();
    let facts = json["blocks"][0]["facts"].as_array().unwrap();
    let [lisbon, cats] = [0, 1].map(|at| facts[at]["fact_id"].as_str().unwrap().to_owned());
    let found = shell
        .run(&["memory", "search", "where", "does", "the", "user", "live", "--depth", "memory"])
        .await
        .ok();
    assert!(found.contains(&lisbon) && found.contains("\n  The user lives in Lisbon.\n"), "{found}");
    let found =
        shell.run(&["memory", "search", "cats", "--depth", "raw", "--limit", "1", "--json"]).await.json();
    assert_eq!(found["hits"].as_array().unwrap().len(), 1, "{found:#}");

    let tidied = shell.run(&["memory", "tidy"]).await.ok();
    assert!(tidied.contains("+ Notes of the demo model: The user lives in Lisbon.\n"), "{tidied}");
    let long_term = shell.run(&["memory", "show"]).await.ok();
    assert!(long_term.contains("- The user lives in Lisbon."), "{long_term}");
    assert_eq!(shell.run(&["memory", "show", "long-term"]).await.ok(), long_term);
    let archive = shell.run(&["memory", "show", "archive", &day[..4]]).await.ok();
    let week = archive.lines().find_map(|line| line.strip_prefix("week ")).unwrap();
    let monday = week.split(':').next().unwrap();
    assert!(shell.run(&["memory", "show", "week", monday]).await.ok().contains("Mia and Tom"));

    // A correction and a deletion.
    let corrected = shell.run(&["memory", "correct", &lisbon, "The user lives in Porto."]).await.ok();
    assert!(corrected.starts_with("Corrected. The fact that is true now is fct_"), "{corrected}");
    shell.run(&["memory", "correct", &lisbon, "The user lives in Faro."]).await.failed("corrected before");
    shell.run(&["memory", "confirm", &cats]).await.failed("does not wait for a confirmation");
    shell.run(&["memory", "forget", &cats]).await.failed("`--yes` must say that you mean it");
    assert!(shell.run(&["memory", "show"]).await.ok().contains("Mia"));
    assert_eq!(shell.run(&["memory", "forget", &cats, "--yes"]).await.ok(), "Forgotten.\n");
    shell.run(&["memory", "forget", &cats, "--yes"]).await.failed("there is no such fact");
    let now = shell.run(&["memory", "show"]).await.ok();
    assert!(now.contains("Porto") && !now.contains("Lisbon") && !now.contains("Mia"), "{now}");

    // An editor, which somebody else is faster than.
    let edit = async |editor: String, more: &[&str]| {
        let mut edit = shell.command(&[&["memory", "edit"], more].concat());
        let output = edit.env("EDITOR", editor).output().await.unwrap();
        (
            output.status.code().unwrap(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    assert_eq!(edit("true".to_owned(), &[]).await, (0, "nothing changed\n".to_owned(), String::new()));
    let command = env!("CARGO_BIN_EXE_command");
    let second = format!("EDITOR='sed -i s/Porto/Braga/' {command} memory edit >&2 && sed -i s/Porto/Faro/");
    let (code, _, err) = edit(second, &[]).await;
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("nothing was overwritten") && err.contains("+- The user lives in Braga."), "{err}");
    let mine = err.lines().find_map(|line| line.strip_prefix("your text:")).unwrap().trim().to_owned();
    assert!(err.contains(&format!("lamplighter memory edit --from {mine}")), "{err}");
    assert_eq!(edit("true".to_owned(), &["--from", &mine]).await.1, "saved\n");
    assert!(shell.run(&["memory", "show"]).await.ok().contains("Faro"));

    let tidies = shell.run(&["memory", "tidies"]).await.ok();
    let tidy = tidies.lines().nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    assert!(tidy.starts_with("tdy_"), "{tidies}");
    let undone = shell.run(&["memory", "rollback", &tidy[..12]]).await.ok();
    assert!(undone.starts_with("Undone."), "{undone}");
    shell.run(&["memory", "rollback", &tidy]).await.failed("was undone already");

    for (args, error) in [
        (&["memory", "show", "everything"][..], "`memory show` takes days"),
        (&["memory", "show", "2026-1-1"], "`memory show` takes days"),
        (&["memory", "show", "week"], "needs the Monday"),
        (&["memory", "show", "archive"], "needs a year"),
        (&["memory", "show", "archive", "x"], "answered 404"),
        (&["memory", "show", "2001-01-01"], "there is no such day in the memory"),
        (&["memory", "rollback", "tdy_f"], "there is no clean-up"),
    ] {
        shell.run(args).await.failed(error);
    }
}

#[tokio::test]
async fn a_doctor_finds_its_probe_and_leaves_nothing() {
    let h = Harness::start().await;
    let shell = Shell::new(&h.platform.url());
    let mine = json!({"title": "Probe of mine", "status": "done"});
    let card = h.post("/memory/cards", mine).await.expect(201)["card_id"].clone();
    let told = shell.run(&["memory", "doctor"]).await.ok();
    assert!(told.starts_with("search        found a new card after ") && !told.contains("failure"), "{told}");
    let json = shell.run(&["memory", "doctor", "--json"]).await.json();
    assert_eq!((&json["found"], &json["failure"]), (&json!(true), &json!(null)));
    // Its probes are gone, and nothing else is.
    let cards = h.get("/memory/cards").await.expect(200);
    let ids: Vec<&Value> = cards["data"].as_array().unwrap().iter().map(|card| &card["card_id"]).collect();
    assert_eq!(ids, [&card]);
    let found = h.get("/memory/search?q=probe&depth=cards").await.expect(200);
    assert_eq!(found["hits"].as_array().unwrap().len(), 1, "{found:#}");
    Shell::new(DOWN).run(&["memory", "doctor"]).await.failed("failed to reach");
}
