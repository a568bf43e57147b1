//! The requests that we send to the providers, checked with the types of their official clients. If the Python packages are missing,
//! the test says so and skips them; `.ci/run` installs them.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use domain::models::image::MediaType;
use domain::models::{
    Block, CacheTtl, Effort, Image, Message, ModelId, ModelRequest, Provider, ProviderTool, Role,
    SystemBlock, ToolChoice, ToolSpec,
};
use models::openai::Dialect;
use models::{anthropic, bedrock, google, openai, responses, strict};
use serde_json::{Map, Value, json};
use tests::skips::installed;
use tokio::process::Command;

/// A request with everything that we ask of models.
fn whole() -> ModelRequest {
    let data = Some(BASE64.encode(b"\x89PNG\r\n\x1a\n").into());
    let image =
        Image { media_type: MediaType::Png, bytes: 8, width: 1, height: 1, object: String::new(), data };
    ModelRequest {
        system: vec![SystemBlock::cached("rules", CacheTtl::OneHour), SystemBlock::plain("now: noon")],
        tools: vec![ToolSpec {
            name: "get_weather".into(),
            description: "Says the weather.".into(),
            input_schema: json!({"type": "object", "properties": {"city": {"type": "string"}}}),
        }],
        provider_tools: ProviderTool::ALL.to_vec(),
        messages: vec![Message {
            role: Role::User,
            content: vec![Block::Image(image), Block::text("Where is this?")],
        }],
        max_output_tokens: 1_000,
        cache_last_turn: true,
        effort: Some(Effort::High),
        context_editing: true,
        output_schema: Some(json!({"type": "object", "properties": {"at": {"type": "string"}},
            "required": ["at"], "additionalProperties": false})),
        ..ModelRequest::default()
    }
}

/// The conversation goes on with a reply that has the blocks of a provider, a call and its result.
fn continued(provider: Provider, blocks: &[Value]) -> ModelRequest {
    let mut request = whole();
    let native = blocks.iter().map(|block| Block::Native { provider, block: block.clone() });
    let call =
        Block::ToolUse { id: "call_1".into(), name: "get_weather".into(), input: json!({"city": "Paris"}) };
    let content = native.chain([Block::text("Let me look."), call]).collect();
    let result = Block::ToolResult { tool_use_id: "call_1".into(), content: "Sun".into(), is_error: false };
    request.messages.push(Message { role: Role::Assistant, content });
    request.messages.push(Message { role: Role::User, content: vec![result] });
    request
}

/// What a model's reply may contain besides text and calls.
fn blocks(provider: Provider) -> Vec<Value> {
    match provider {
        Provider::Anthropic => vec![
            json!({"type": "thinking", "thinking": "Hm.", "signature": "Eq"}),
            json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "oil"}}),
            json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1",
                "content": [{"type": "web_search_result", "url": "https://example.com", "title": "Oil", "encrypted_content": "Eq"}]}),
            json!({"type": "server_tool_use", "id": "srvtoolu_2", "name": "bash_code_execution", "input": {"command": "ls"}}),
            json!({"type": "bash_code_execution_tool_result", "tool_use_id": "srvtoolu_2",
                "content": {"type": "bash_code_execution_result", "stdout": "a", "stderr": "", "return_code": 0, "content": []}}),
        ],
        Provider::OpenAi => vec![
            json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}),
            json!({"type": "web_search_call", "id": "ws_1", "status": "completed",
                "action": {"type": "search", "query": "oil", "queries": ["oil"]}}),
            json!({"type": "code_interpreter_call", "id": "ci_1", "status": "completed", "code": "1",
                "container_id": "cntr_1", "outputs": [{"type": "logs", "logs": "1"}]}),
        ],
        Provider::Google => vec![
            json!({"text": "Hm.", "thought": true}),
            json!({"executableCode": {"language": "PYTHON", "code": "1", "id": "c"}, "thoughtSignature": "c2ln"}),
            json!({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1", "id": "c"}}),
        ],
        Provider::Bedrock => {
            vec![json!({"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "Eq"}}})]
        }
    }
}

/// Every request that is checked, under a name.
fn requests() -> Map<String, Value> {
    let mut all = Map::new();
    for (format, model, provider) in [
        ("anthropic", "claude-sonnet-5-5", Provider::Anthropic),
        ("responses", "gpt-6-sol", Provider::OpenAi),
        ("responses", "gpt-5.5", Provider::OpenAi),
        ("xai", "grok-4.3", Provider::OpenAi),
        ("chat", "gpt-6-sol", Provider::OpenAi),
        ("google", "gemini-3.8-flash", Provider::Google),
        ("bedrock", "us.anthropic.claude-sonnet-5-5", Provider::Bedrock),
    ] {
        let forced = |tool_choice| ModelRequest { tool_choice, provider_tools: Vec::new(), ..whole() };
        let plain = ModelRequest {
            messages: vec![Message::user("Hi")],
            max_output_tokens: 9,
            ..ModelRequest::default()
        };
        for (case, request) in [
            ("whole", whole()),
            ("continued", continued(provider, &blocks(provider))),
            ("must call", forced(ToolChoice::Any)),
            ("must call one", forced(ToolChoice::Tool("get_weather".into()))),
            ("must not call", forced(ToolChoice::None)),
            ("plain", plain),
        ] {
            let model = ModelId::new(model);
            let body = match format {
                "anthropic" => anthropic::encode(&model, &request),
                "responses" => responses::encode(&model, &request, responses::Dialect::OpenAi),
                "xai" => responses::encode(&model, &request, responses::Dialect::Xai),
                "chat" => openai::encode(&model, &request, Dialect::OPENAI),
                "google" => google::encode(&model, &request),
                _ => bedrock::encode(&model, &request),
            };
            let body = body.expect(case);
            match format {
                "anthropic" => assert_eq!(strict::check(&body), Ok(()), "{case}"),
                "bedrock" => assert_eq!(strict::check_converse(&body), Ok(()), "{case}"),
                // The types of OpenAI's client require fields that xAI does not document.
                "xai" => {
                    assert_eq!(strict::check_xai(&body), Ok(()), "{case}");
                    continue;
                }
                _ => {}
            }
            all.insert(format!("{format} {model} {case}"), json!({"format": format, "body": body}));
        }
    }
    all
}

#[tokio::test]
async fn the_official_clients_have_types_for_all_of_our_requests() {
    let requests = requests();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("wire");
    let python = folder.join("../../target/ci/providers/bin/python");
    if !installed(&python) {
        return;
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, Value::from(requests.clone()).to_string()).unwrap();
    let ran = Command::new(python)
        .arg("requests.py")
        .arg(file.path())
        .current_dir(&folder)
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{printed}");
    assert_eq!(printed.matches(": accepted").count(), requests.len(), "{printed}");
}
