use domain::models::routing::Ask;
use domain::models::{
    Block, CacheTtl, Message, ModelEvent, ModelRequest, StopReason, SystemBlock, ToolChoice, ToolSpec, Usage,
};
use futures::TryStreamExt;
use models::{Models, ModelsConfig, OwnerModels};

use super::*;

async fn models(settings: DemoSettings) -> Models {
    let demo = DemoModel::start(settings).await.unwrap();
    let demo_url = Some(demo.base_url());
    // It answers until the test ends.
    std::mem::forget(demo);
    Models::from_config(&ModelsConfig { demo_url, ..ModelsConfig::default() }).unwrap()
}

fn request(said: &str) -> ModelRequest {
    ModelRequest {
        system: vec![
            SystemBlock::cached(format!("<lamplighter:chat> {}", "rules ".repeat(100)), CacheTtl::OneHour),
            SystemBlock::plain("today"),
        ],
        tools: vec![ToolSpec {
            name: "generate_asset".into(),
            description: "Proposes an asset.".into(),
            input_schema: json!({"type": "object"}),
        }],
        tool_choice: ToolChoice::Auto,
        messages: vec![Message::user(said)],
        max_output_tokens: 4_000,
        cache_last_turn: true,
        ..ModelRequest::default()
    }
}

async fn call(models: &Models, request: &ModelRequest) -> Vec<ModelEvent> {
    let route = models.route(&Ask::default(), &OwnerModels::default(), 0).unwrap();
    route.candidates[0].stream(request).try_collect().await.unwrap()
}

fn finish(events: &[ModelEvent]) -> (StopReason, &[Block], Usage) {
    match events.last() {
        Some(ModelEvent::Finished { stop, assistant_blocks, usage }) => (*stop, assistant_blocks, *usage),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn it_streams_word_by_word_through_the_real_client() {
    let models = models(DemoSettings { delay_per_word: Duration::from_micros(1) }).await;
    let events = call(&models, &request("Write a poem about lamps")).await;
    let deltas = events.iter().filter(|event| matches!(event, ModelEvent::TextDelta(_))).count();
    assert!(deltas > 5, "{events:?}");
    let (stop, blocks, usage) = finish(&events);
    assert_eq!(stop, StopReason::ToolUse);
    let [Block::Text { text }, Block::ToolUse { id, name, input }] = blocks else { panic!("{blocks:?}") };
    assert!(text.ends_with("Here it is: Poem about lamps."), "{text}");
    assert_eq!((name.as_str(), input["title"].as_str()), ("generate_asset", Some("Poem about lamps")));
    assert!(usage.output_tokens > 50);
    // The loop continues.
    let mut next = request("Write a poem about lamps");
    next.messages.push(Message { role: domain::models::Role::Assistant, content: blocks.to_vec() });
    let result = Block::ToolResult { tool_use_id: id.clone(), content: "proposed".into(), is_error: false };
    next.messages.push(Message { role: domain::models::Role::User, content: vec![result] });
    let events = call(&models, &next).await;
    assert_eq!(finish(&events).0, StopReason::EndTurn);
}

#[tokio::test]
async fn usage_knows_what_was_cached() {
    let models = models(DemoSettings::default()).await;
    let first = finish(&call(&models, &request("Hello")).await).2;
    assert_eq!(first.cache_read_tokens, 0);
    assert!(first.cache_write_1h_tokens > 100 && first.cache_write_5m_tokens > 0, "{first:?}");
    let again = finish(&call(&models, &request("Hello")).await).2;
    assert_eq!((again.cache_read_tokens, again.input_tokens), (first.total_input(), 0));
    assert_eq!((again.cache_write_1h_tokens, again.cache_write_5m_tokens), (0, 0));
    // Another turn reads the stable part and writes the rest.
    let other = finish(&call(&models, &request("Good morning")).await).2;
    assert_eq!(other.cache_read_tokens, first.cache_write_1h_tokens);
    assert!(other.cache_write_5m_tokens > 0 && other.cache_write_1h_tokens == 0, "{other:?}");
    // If a prefix has changed, only the part before the change, the tools, is still cached.
    let mut drifted = request("Hello");
    drifted.system[0].text.push('!');
    let drifted = finish(&call(&models, &drifted).await).2;
    assert!(drifted.cache_write_1h_tokens > 100, "{drifted:?}");
    assert_eq!(drifted.cache_read_tokens + drifted.cache_write_1h_tokens, first.cache_write_1h_tokens);
}

#[tokio::test]
async fn the_same_request_gets_the_same_answer_and_no_more_than_it_asked_for() {
    let request = request("Write a poem about lamps");
    let (one, other) = (models(DemoSettings::default()).await, models(DemoSettings::default()).await);
    assert_eq!(call(&one, &request).await, call(&other, &request).await);
    for max_output_tokens in [1, 5, 40] {
        let events = call(&one, &ModelRequest { max_output_tokens, ..request.clone() }).await;
        let (stop, _, usage) = finish(&events);
        assert_eq!(stop, StopReason::MaxTokens);
        assert!(usage.output_tokens <= u64::from(max_output_tokens), "{usage:?}");
    }
}

#[test]
fn a_whole_answer_says_what_a_stream_says() {
    let body =
        json!({"model": "demo", "max_tokens": 1_000, "messages": [{"role": "user", "content": "Hello"}]});
    let answer = DemoReply { text: "Two words".into(), call: Some(("tool".into(), json!({"a": "b c"}))) };
    let reply = Reply::new(&body, answer);
    let usage = Demo { settings: DemoSettings::default(), cached: Arc::default() }.count_input(&body);
    let whole = reply.whole(usage.clone());
    assert_eq!(whole["content"][0], json!({"type": "text", "text": "Two words"}));
    assert_eq!(whole["content"][1]["input"], json!({"a": "b c"}));
    assert_eq!(whole["stop_reason"], "tool_use");
    let frames = reply.frames(usage);
    let joined =
        |key: &str| -> String { frames.iter().filter_map(|frame| frame["delta"][key].as_str()).collect() };
    assert_eq!((joined("text").as_str(), joined("partial_json").as_str()), ("Two words", "{\"a\":\"b c\"}"));
    assert_eq!(frames[frames.len() - 2]["usage"]["output_tokens"], whole["usage"]["output_tokens"]);
}
