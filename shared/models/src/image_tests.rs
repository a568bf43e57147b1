//! Images in the requests of every format.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use domain::models::image::MediaType;
use domain::models::{Block, Image, Message, ModelError, ModelId, ModelRequest, Role};
use serde_json::{Value, json};

use super::openai::Dialect;
use super::{anthropic, bedrock, google, openai, responses, strict};

const HEADER: &[u8] = b"\x89PNG\r\n\x1a\n";

fn image() -> Block {
    let data = Some(BASE64.encode(HEADER).into());
    let (media_type, object) = (MediaType::Png, String::new());
    Block::Image(Image { media_type, bytes: 8, width: 1, height: 1, object, data })
}

fn request(content: Vec<Block>) -> ModelRequest {
    let messages = vec![Message { role: Role::User, content }];
    ModelRequest { messages, max_output_tokens: 10, cache_last_turn: true, ..ModelRequest::default() }
}

/// The content of the only message, in each format.
fn encoded(request: &ModelRequest) -> Vec<(&'static str, Value)> {
    let model = ModelId::new("model");
    let messages = anthropic::encode(&model, request).unwrap();
    assert_eq!(strict::check(&messages), Ok(()));
    let converse = bedrock::encode(&model, request).unwrap();
    assert_eq!(strict::check_converse(&converse), Ok(()));
    let chat = openai::encode(&model, request, Dialect::XAI).unwrap();
    let in_words = Dialect { native_tools: false, ..Dialect::COMPATIBLE };
    let in_words = openai::encode(&model, request, in_words).unwrap();
    let generate = google::encode(&model, request).unwrap();
    let input = responses::encode(&model, request, responses::Dialect::OpenAi).unwrap();
    vec![
        ("anthropic", messages["messages"][0]["content"].clone()),
        ("bedrock", converse["messages"][0]["content"].clone()),
        ("chat", chat["messages"][0]["content"].clone()),
        ("chat without tools", in_words["messages"][0]["content"].clone()),
        ("google", generate["contents"][0]["parts"].clone()),
        ("responses", input["input"].clone()),
    ]
}

#[test]
fn every_format_has_its_own_form_of_an_image() {
    let (data, url) = ("iVBORw0KGgo=", "data:image/png;base64,iVBORw0KGgo=");
    let source = json!({"type": "base64", "media_type": "image/png", "data": data});
    let chat = json!([
        {"type": "image_url", "image_url": {"url": url, "detail": "high"}},
        {"type": "text", "text": "What is this?"},
    ]);
    let expected = [
        json!([
            {"type": "image", "source": source},
            {"type": "text", "text": "What is this?", "cache_control": {"type": "ephemeral", "ttl": "5m"}},
        ]),
        json!([{"image": {"format": "png", "source": {"bytes": data}}}, {"text": "What is this?"}]),
        chat.clone(),
        chat,
        json!([{"inlineData": {"mimeType": "image/png", "data": data}}, {"text": "What is this?"}]),
        json!([
            {"role": "user", "content": [{"type": "input_image", "detail": "high", "image_url": url}]},
            {"role": "user", "content": "What is this?"},
        ]),
    ];
    let asked = request(vec![image(), Block::text("What is this?")]);
    for ((name, content), expected) in encoded(&asked).into_iter().zip(expected) {
        assert_eq!(content, expected, "{name}");
    }
}

#[test]
fn an_image_needs_no_text() {
    for (name, content) in encoded(&request(vec![image()])) {
        assert_eq!(content.as_array().map(Vec::len), Some(1), "{name}: {content}");
    }
}

#[test]
fn an_assistant_has_no_images() {
    let mut request = request(vec![Block::text("Draw.")]);
    request.messages.push(Message { role: Role::Assistant, content: vec![image()] });
    let refused = anthropic::encode(&ModelId::new("model"), &request);
    assert!(matches!(refused, Err(ModelError::Unsendable(_))), "{refused:?}");
}
