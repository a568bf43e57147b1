//! Sends every payload in `events/`, in the order in which a person would.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Value, json};

use crate::bed::Bed;
use crate::lambda::Lambda;
use crate::payload::{names, payload};
use crate::reply::Reply;

/// Ids in the payloads.
const AGENT: &str = "agt_019aa6d2f1c07a3f9d5e4b6c7d8e9f01";
const ACTION: &str = "act_019aa6d3000070009abc0123456789ab";
const RUN: &str = "run_019aa6d4e2b87c44a1b2c3d4e5f60718";

struct Walk {
    bed: Bed,
    lambdas: HashMap<String, Lambda>,
    /// Maps the ids in the payloads to the ids in this test.
    ids: Vec<(&'static str, String)>,
    sent: BTreeSet<String>,
}

impl Walk {
    async fn send(&mut self, name: &str) -> Reply {
        let (function, _) = name.split_once('.').unwrap();
        if !self.lambdas.contains_key(function) {
            self.lambdas.insert(function.to_owned(), self.bed.lambda(function).await);
        }
        let mut text = payload(name).to_string();
        for (named, id) in &self.ids {
            text = text.replace(named, id);
        }
        self.sent.insert(name.to_owned());
        self.lambdas.get_mut(function).unwrap().invoke(&serde_json::from_str(&text).unwrap()).await
    }

    async fn json(&mut self, name: &str, status: u16) -> Value {
        self.send(name).await.http().await.expect(status)
    }

    fn know(&mut self, named: &'static str, id: &Value) {
        self.ids.push((named, id.as_str().unwrap().to_owned()));
    }
}

#[tokio::test]
async fn every_payload_is_answered() {
    let mut walk =
        Walk { bed: Bed::new().await, lambdas: HashMap::new(), ids: Vec::new(), sent: BTreeSet::new() };
    assert_eq!(walk.json("catalog.health", 200).await["functions"], json!(catalog::NAMES));

    let page = walk.send("console.page").await.http().await;
    assert!(page.status == 200 && page.headers.contains_key("content-security-policy"));
    walk.send("agents.not-found").await.http().await.refused(404, "not_found");
    let set_up = walk.send("agents.setup-chat").await.http().await;
    assert_eq!(set_up.events().last(), Some(&"run.completed"));
    let agent = walk.json("agents.create", 201).await;
    walk.know(AGENT, &agent["agent_id"]);
    assert_eq!(walk.json("agents.list", 200).await["data"], json!([agent]));
    // The same request with the base path of a custom domain.
    assert_eq!(walk.json("agents.custom-domain", 200).await["data"], json!([agent]));

    let turn = walk.send("agent-chat.turn").await.http().await;
    assert_eq!(turn.events().last(), Some(&"run.completed"));
    let run_id = turn.location().strip_prefix("/runs/").unwrap().to_owned();
    walk.know(RUN, &run_id.into());
    let events = walk.send("agent-chat.run-events").await.http().await;
    assert!(
        turn.text().ends_with(events.text()) && events.text().starts_with("id: 4\n"),
        "{}",
        events.text()
    );

    assert_eq!(walk.json("asset-save.create", 201).await["title"], "Competitors in one page");
    assert_eq!(walk.json("action-define.preview", 200).await["fire_times"].as_array().map(Vec::len), Some(4));
    let action = walk.json("action-define.create", 201).await;
    assert_eq!(action["state"], "defined");
    walk.know(ACTION, &action["action_id"]);
    assert_eq!(walk.json("action-define.why", 200).await["action_state"], "defined");
    let about = walk.send("agent-chat.about-action").await.http().await;
    assert_eq!(about.events().last(), Some(&"run.completed"));

    assert_eq!(walk.json("context.replace", 201).await["task"], "Implement user authentication");
    let markdown = walk.send("context.read").await.http().await;
    assert!(markdown.text().contains("- Use JWT for session management"), "{}", markdown.text());
    // If the caller waits for an agent, the agent's stop hook arrives before its answer. The stop hook adds nothing.
    for hook in ["context.hook-asked", "context.hook-stopped", "context.hook-answered"] {
        let taken = walk.send(hook).await.http().await;
        assert_eq!((taken.status, taken.text()), (200, ""), "{hook}");
    }
    let log = walk.json("context.read-log", 200).await;
    assert_eq!(log["metadata"]["total_entries"], 2, "{log}");
    let answer = "Sessions are items of the table, each with an expiry.";
    assert_eq!(log["entries"][1]["output_summary"], answer);
    let found = walk.json("memory-recall.search", 200).await;
    assert!(found["hits"].is_array() && found["stopped_at"].is_string(), "{found}");
    assert_eq!(walk.json("mcp.initialize", 200).await["result"]["serverInfo"]["name"], "lamplighter");
    let document = walk.json("docs-sync.replace", 201).await;
    assert_eq!((&document["name"], &document["cause"]), (&json!("ARCHITECTURE.md"), &json!("created")));
    let updated = walk.json("mcp.update-context", 200).await;
    assert_eq!(updated["result"]["structuredContent"]["contextVersion"], 2, "{updated}");

    assert_eq!(walk.json("theme-chat.list", 200).await["data"], json!([]));
    assert_eq!(walk.json("theme-lookup.create", 201).await["name"], "Spring theme");

    let watched = walk.json("watch.create", 201).await;
    assert_eq!(watched["schedule_text"], "At 03:00 (Europe/Berlin).", "{watched}");

    assert_eq!(walk.json("notices.read", 200).await["digest_at"], "08:00");

    let key = walk.json("account.first-key", 201).await;
    assert_eq!(key["name"], "first key");
    assert_eq!(walk.json("account.list-keys", 200).await["data"], json!([]), "the key is another owner's");
    assert_eq!(walk.send("authorizer.request").await.failure().error_message, "Unauthorized");

    let swept = walk.send("schedule-sweep.timer").await.json().await;
    assert_eq!(swept, json!({"leased": 0, "published": 0, "failed": 0, "oldest_lag_ms": 0}));
    let looked = walk.send("watchdog.timer").await.json().await;
    assert_eq!(looked["refused"], 0, "{looked}");
    // The sweep gives a sign of life only in every tenth minute, and this may not be one.
    assert!(looked["wrong"].as_u64() <= Some(1), "{looked}");
    let handled = walk.send("scheduled-executor.due").await.json().await;
    assert_eq!(handled, json!({"batchItemFailures": []}));
    let handled = walk.send("scheduled-executor.mail-bounced").await.json().await;
    assert_eq!(handled, json!({"batchItemFailures": []}));
    let handled = walk.send("scheduled-executor.not-ours").await.json().await;
    let failed = ["2e1424d4-f796-459a-8184-9c92662be6d1", "2e1424d4-f796-459a-8184-9c92662be6d2"];
    assert_eq!(handled["batchItemFailures"], json!(failed.map(|id| json!({"itemIdentifier": id}))));

    for name in ["theme-index.changed", "theme-index.archive", "theme-index.logs"] {
        assert_eq!(
            walk.send(name).await.json().await,
            json!({"batchItemFailures": []}),
            "nothing there to do"
        );
    }
    let handled = walk.send("theme-index.not-ours").await.json().await;
    let failed = json!([{"itemIdentifier": "2e1424d4-f796-459a-8184-9c92662be6e3"}]);
    assert_eq!(handled["batchItemFailures"], failed);

    let all: BTreeSet<String> = names().into_iter().filter(|name| is_ours(name)).collect();
    assert_eq!(walk.sent, all, "every payload is sent in this test");
}

fn is_ours(name: &str) -> bool {
    name.split_once('.').is_some_and(|(function, _)| catalog::NAMES.contains(&function))
}

#[test]
fn every_function_has_a_payload() {
    let names = names();
    for name in &names {
        assert!(payload(name).is_object(), "{name}");
    }
    for function in catalog::NAMES {
        let prefix = format!("{function}.");
        assert!(names.iter().any(|name| name.starts_with(&prefix)), "events/ has none for {function}");
    }
}
