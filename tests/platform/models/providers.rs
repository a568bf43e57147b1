//! The answers of the fake providers, read by our clients and by the official Python clients of the providers. An answer that
//! only our own code accepts would prove nothing. If the Python packages are missing, the test says so and skips them;
//! `.ci/run` installs them.

use std::path::Path;

use domain::models::{
    Block, Message, ModelError, ModelEvent, ModelId, ModelRequest, StopReason, ToolChoice, ToolSpec, Usage,
};
use futures::StreamExt;
use lamplighter_local::demo::{DemoModel, DemoSettings};
use models::anthropic::Anthropic;
use models::bedrock::Bedrock;
use models::google::Google;
use models::openai::{Dialect, OpenAi};
use models::responses::{self, Responses};
use models::{Endpoint, Model, ModelLimits, Retry};
use serde_json::json;
use tests::providers::Providers;
use tests::skips::installed;
use tokio::process::Command;

fn clients(url: &str) -> Vec<(&'static str, Box<dyn Model>)> {
    let once = ModelLimits { retry: Retry { tries: 1, ..Retry::default() }, ..ModelLimits::default() };
    let keys = shared::config::AwsKeys {
        access_key_id: "AKIDKEY".into(),
        secret_access_key: "secret".into(),
        session_token: None,
    };
    let (v1, key) = (format!("{url}/v1"), "key");
    let openai = || Endpoint::bearer(&v1, Some(key)).unwrap().with_limits(once);
    vec![
        ("anthropic", Box::new(Anthropic::new(Endpoint::anthropic(url, key).unwrap().with_limits(once)))),
        ("chat", Box::new(OpenAi::new(openai(), Dialect::OPENAI))),
        ("responses", Box::new(Responses::new(openai(), responses::Dialect::OpenAi))),
        ("google", Box::new(Google::new(Endpoint::google(url, key).unwrap().with_limits(once)))),
        (
            "bedrock",
            Box::new(Bedrock::new(
                Endpoint::bedrock("eu-west-1", Some(url), &keys).unwrap().with_limits(once),
            )),
        ),
    ]
}

fn request() -> ModelRequest {
    let tool = |name: &str| ToolSpec {
        name: name.into(),
        description: "d".into(),
        input_schema: json!({"type": "object", "properties": {}}),
    };
    ModelRequest {
        system: vec![],
        tools: vec![tool("get_weather"), tool("list_alerts")],
        tool_choice: ToolChoice::Auto,
        messages: vec![Message::user("How is the weather?")],
        max_output_tokens: 100,
        cache_last_turn: true,
        ..ModelRequest::default()
    }
}

async fn ask(client: &dyn Model, model: &str) -> Vec<Result<ModelEvent, ModelError>> {
    client.stream(&ModelId::new(model), &request()).collect().await
}

#[tokio::test]
async fn our_clients_read_the_same_from_every_provider() {
    let providers = Providers::start().await;
    for (name, client) in clients(&providers.url) {
        let events = ask(client.as_ref(), "model").await;
        let text: String = events
            .iter()
            .filter_map(|event| match event {
                Ok(ModelEvent::TextDelta(text)) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(text, "Grüße aus Paris 👋", "{name}");
        let Some(Ok(ModelEvent::Finished { stop, assistant_blocks, usage })) = events.last() else {
            panic!("{name}: {events:?}")
        };
        let call = |id: &str, name: &str, input| Block::ToolUse { id: id.into(), name: name.into(), input };
        let ours: Vec<Block> =
            assistant_blocks.iter().filter(|block| !matches!(block, Block::Native { .. })).cloned().collect();
        let weather = call("call_1", "get_weather", json!({"city": "Paris"}));
        assert_eq!(ours, [Block::text(&text), weather, call("call_2", "list_alerts", json!({}))], "{name}");
        assert_eq!(*stop, StopReason::ToolUse, "{name}");
        // What each provider says of the same 7,060 tokens of input.
        let (written, long) = match name {
            "google" => (0, 0),
            "chat" => (2_048, 0),
            _ => (2_048, 1_500),
        };
        let expected = Usage {
            input_tokens: 2_060 - written,
            cache_read_tokens: 5_000,
            cache_write_5m_tokens: written - long,
            cache_write_1h_tokens: long,
            output_tokens: 55,
            reasoning_tokens: if name == "bedrock" { 0 } else { 10 },
            web_searches: 0,
            code_runs: 0,
            estimated: false,
        };
        assert_eq!(*usage, expected, "{name}");

        let limited = ask(client.as_ref(), "limited").await;
        assert!(matches!(limited[..], [Err(ModelError::RateLimited { .. })]), "{name}: {limited:?}");
        let failing = ask(client.as_ref(), "failing").await;
        let error = failing.last().unwrap().as_ref().unwrap_err();
        assert!(
            matches!(error, ModelError::Overloaded { .. } | ModelError::Server { .. }),
            "{name}: {failing:?}"
        );
    }
}

#[tokio::test]
async fn the_official_clients_accept_the_answers() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("wire");
    let python = folder.join("../../target/ci/providers/bin/python");
    if !installed(&python) {
        return;
    }
    let providers = Providers::start().await;
    let demo = DemoModel::start(DemoSettings::default()).await.unwrap();
    let ran = Command::new(python)
        .args(["clients.py", &providers.url, &demo.base_url()])
        .current_dir(&folder)
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{printed}");
    assert_eq!(printed.matches(": accepted").count(), 11, "{printed}");
}
