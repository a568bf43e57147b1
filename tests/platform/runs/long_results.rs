//! Results that are too long to show at once: a run reads them in pages, also if another process goes on with it.

use serde_json::{Value, json};
use shared::flows::turn::Topic;
use tests::model::{Says, ScriptedModel};
use tests::process::{Process, followed, take_over, valid};
use tests::stage::Stage;

const ASSETS: usize = 100;

/// Lists the assets, reads the whole list, and says how many of them it has seen.
fn reads_on(messages: &[Value]) -> Says {
    let since = messages.iter().rposition(|message| message["role"] == "user").unwrap_or(0);
    let results: Vec<&str> = messages[since..]
        .iter()
        .filter(|message| message["role"] == "tool")
        .filter_map(|message| message["content"].as_str())
        .collect();
    let Some(last) = results.last() else { return Says::Call("query_assets", json!({"limit": ASSETS})) };
    let after = |mark: &str| last.rsplit_once(mark).map(|(_, rest)| rest.trim_end_matches(']'));
    if let Some(from) = after("from_char ") {
        let call = results[0].rsplit_once("call_id \"").and_then(|(_, rest)| rest.split_once('"')).unwrap().0;
        return Says::Call(
            "read_result",
            json!({"call_id": call, "from_char": from.parse::<usize>().unwrap()}),
        );
    }
    let pages = results.iter().map(|result| result.rsplit_once("\n… [").map_or(*result, |(page, _)| page));
    let whole: Result<Value, _> = serde_json::from_str(&pages.collect::<String>());
    let seen = whole.map(|list| list["assets"].as_array().unwrap().len());
    Says::Text(format!("{} results, {seen:?} assets", results.len()))
}

async fn with_assets(model: &ScriptedModel) -> Stage {
    let stage = Stage::with(model.config("gpt-5.1")).await;
    for n in 0..ASSETS {
        let body = json!({
            "title": format!("Asset {n}"), "description": "lamp oïl ".repeat(156),
            "asset_type": "document", "content": "x",
        });
        stage.h.post(&format!("/agents/{}/assets", stage.agent), body).await.expect(201);
    }
    stage
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_result_is_read_to_its_end_wherever_the_process_dies() {
    let model = ScriptedModel::start(reads_on).await;
    let stage = with_assets(&model).await;
    let topic = || Topic::Agent(stage.agent.parse().unwrap(), None);
    let said = |view: &Value| view["message"].as_str().unwrap().to_owned();
    let process = Process::start(&stage);
    let run = process.begins(&stage, topic(), "How many assets are there?").await;
    let stores = followed(&stage.h, run).await.len() as u64;
    process.kill();
    let undisturbed = said(&stage.h.get(&format!("/runs/{run}")).await.expect(200));
    assert!(undisturbed.ends_with("Ok(100) assets"), "{undisturbed}");
    let pages = undisturbed.split_once(' ').unwrap().0.parse::<usize>().unwrap();
    assert_eq!(pages, 3, "{undisturbed}");

    // The tool is offered from the first long result on.
    let offered: Vec<bool> =
        model.sent().iter().map(|request| request["tools"].to_string().contains("read_result")).collect();
    assert!(!offered[0] && offered[1..].iter().all(|offered| *offered), "{offered:?}");

    for kill_at in 2..stores {
        let process = Process::start(&stage);
        let run = process.begins(&stage, topic(), "How many assets are there?").await;
        while let Some(mut live) = process.cx.live.listen(run) {
            if live.wait_for(|recent| recent.newest >= kill_at).await.is_ok() {
                break;
            }
        }
        process.kill();
        take_over(&stage, run).await;
        let view = stage.h.get(&format!("/runs/{run}")).await.expect(200);
        assert_eq!(said(&view), undisturbed, "killed at event {kill_at}: {view:#}");
        let results = valid(followed(&stage.h, run).await);
        assert_eq!(results.iter().filter(|event| event.name == "tool.result").count(), pages);
    }

    // The rest cannot be read after the run, and the conversation does not promise it.
    let chat = stage.h.get(&format!("/runs/{run}")).await.expect(200)["chat_id"].clone();
    let again = json!({"chat_id": chat, "message": "Hello"});
    stage.h.post(&format!("/agents/{}/chat", stage.agent), again).await.expect(200);
    let sent = model.sent();
    let first = sent.iter().find(|request| request["messages"].to_string().contains("Hello")).unwrap();
    assert!(
        first["messages"].to_string().contains("more characters were left out]"),
        "the history is bounded"
    );
    assert!(!first["tools"].to_string().contains("read_result"), "{}", first["tools"]);
}
