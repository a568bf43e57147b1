//! Images in messages: what the model gets, where the bytes are stored, and which images are refused.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use domain::ids::{ChatId, Owner};
use lamplighter_local::platform::PlatformConfig;
use models::{Addresses, ModelsConfig};
use serde_json::{Value, json};
use shared::blobs::BlobKey;
use shared::store::table::Order;
use tests::Harness;
use tests::anthropic::{Block, FakeAnthropic};
use tests::made;

/// A PNG file as far as its size, and `filler` bytes.
fn png(width: u32, filler: usize) -> String {
    let mut data = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
    data.extend(width.to_be_bytes());
    data.extend(1_u32.to_be_bytes());
    data.resize(data.len() + filler, 7);
    BASE64.encode(data)
}

fn image(data: &str) -> Value {
    json!({"media_type": "image/png", "data": data})
}

async fn start() -> (Harness, FakeAnthropic, String) {
    let model = FakeAnthropic::start(|_| vec![Block::Text("I see.".to_owned())]).await;
    let models = ModelsConfig {
        anthropic_key: Some("sk-ant-test".to_owned()),
        addresses: Addresses { anthropic: model.url.clone(), ..Addresses::default() },
        ..ModelsConfig::default()
    };
    let h = Harness::with(PlatformConfig { models, automatic: false, ..PlatformConfig::in_memory() }).await;
    let agent = h.agent().await;
    (h, model, agent)
}

/// The images of the last request that the model received, in base64, oldest first.
fn seen(model: &FakeAnthropic) -> Vec<String> {
    let asked = model.asked().pop().expect("the model was called");
    let blocks = asked["messages"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|message| message["content"].as_array().cloned().unwrap_or_default());
    let images = blocks.filter(|block| block["type"] == "image");
    images.map(|block| block["source"]["data"].as_str().unwrap().to_owned()).collect()
}

async fn objects(h: &Harness, chat: &str) -> u64 {
    let chat: ChatId = chat.parse().unwrap();
    h.platform.cx.blobs.count_versions(&BlobKey::messages(&made::local(), chat)).await.unwrap()
}

#[tokio::test]
async fn the_model_sees_the_images_of_a_chat_until_it_is_reset() {
    let (h, model, agent) = start().await;
    let (first, second) = (png(1, 2_000), png(2, 0));
    let path = format!("/agents/{agent}/chat");
    let turn = async |input: Value| h.post(&path, input).await.expect(200);
    let view = turn(json!({"message": "What is this?", "images": [image(&first)]})).await;
    let chat = view["chat_id"].as_str().unwrap().to_owned();
    assert_eq!(seen(&model), std::slice::from_ref(&first));
    turn(json!({"message": "And this?", "chat_id": chat, "images": [image(&second)]})).await;
    assert_eq!(seen(&model), [first.clone(), second], "a later turn sees the earlier images too");

    // The table has only descriptions.
    let (id, owner): (ChatId, Owner) = (chat.parse().unwrap(), made::local());
    let stored = h.platform.cx.store.messages(&owner, id, None, 10, Order::Oldest).await.unwrap();
    let stored = serde_json::to_string(&stored.items[0].1.value).unwrap();
    assert!(stored.contains("\"image/png\"") && stored.len() < 1_000, "{stored}");
    assert_eq!(objects(&h, &chat).await, 2);
    let shown = h.get(&format!("/chats/{chat}")).await.expect(200);
    let described = json!([{"media_type": "image/png", "bytes": 2_024, "width": 1, "height": 1}]);
    assert_eq!(shown["messages"][0]["images"], described, "{shown:#}");
    assert!(shown["messages"][1].get("images").is_none(), "{shown:#}");

    h.post(&format!("/chats/{chat}"), json!({})).await.expect(200);
    assert_eq!(objects(&h, &chat).await, 0);
    turn(json!({"message": "What did I show you?", "chat_id": chat})).await;
    assert_eq!(seen(&model), Vec::<String>::new());
}

#[tokio::test]
async fn a_missing_image_does_not_end_the_conversation() {
    let (h, model, agent) = start().await;
    let path = format!("/agents/{agent}/chat");
    let view = h.post(&path, json!({"message": "Look", "images": [image(&png(1, 0))]})).await.expect(200);
    let chat: ChatId = view["chat_id"].as_str().unwrap().parse().unwrap();
    let cx = &h.platform.cx;
    cx.blobs.delete_prefix(&BlobKey::messages(&made::local(), chat)).await.unwrap();
    h.post(&path, json!({"message": "Again", "chat_id": chat})).await.expect(200);
    let asked = model.asked().pop().unwrap()["messages"].to_string();
    assert!(asked.contains("it is not stored any more") && !asked.contains("base64"), "{asked}");
}

#[tokio::test]
async fn bad_images_are_refused_by_name() {
    let (h, model, agent) = start().await;
    let check = async |path: &str, body: Value, field: &str, told: &str| {
        let problem = h.post(path, body).await.expect(400);
        let errors = problem["errors"].to_string() + &problem["error"].to_string();
        assert!(errors.contains(field) && errors.contains(told), "{field}, {told}: {problem:#}");
    };
    let turn = |images: Value| json!({"message": "Look", "images": images});
    let gif = json!({"media_type": "image/gif", "data": png(1, 0)});
    let path = format!("/agents/{agent}/chat");
    for (images, field, told) in [
        (json!([gif]), "images[0].data", "is image/png"),
        (json!([image(&png(1, 0)), image("?")]), "images[1].data", "must be base64"),
        (json!([image(&png(8_001, 0))]), "images[0].data", "8000 pixels"),
        (json!([image(&png(1, 3_000_000))]), "images[0].data", "1 to 3000000 bytes"),
        (vec![image(&png(1, 0)); 9].into(), "images", "at most 8 images"),
    ] {
        check(&path, turn(images.clone()), field, told).await;
        check("/setup/chat", turn(images.clone()), field, told).await;
        let saved = json!({"messages": [{"role": "user", "content": "Look", "images": images}]});
        check(&format!("/agents/{agent}/chats"), saved, &format!("messages[0].{field}"), told).await;
    }
    let saved =
        json!({"messages": [{"role": "assistant", "content": "Look", "images": [image(&png(1, 0))]}]});
    check(&format!("/agents/{agent}/chats"), saved, "messages[0].images", "only messages of the user").await;

    let part = |url: &str| json!([{"type": "text", "text": "Look"}, {"type": "image_url", "image_url": {"url": url}}]);
    let said = |role: &str, content: Value| json!({"model": agent, "messages": [{"role": role, "content": content}]});
    let field = "messages[0].content[1].image_url.url";
    let completions = "/v1/chat/completions";
    check(completions, said("user", part("https://example.com/a.png")), field, "images are not fetched")
        .await;
    check(completions, said("user", part("data:image/png;base64,AAAA")), field, "another format").await;
    let url = format!("data:image/png;base64,{}", png(1, 0));
    check(completions, said("system", part(&url)), "messages[0].content", "only messages of the user").await;
    check(completions, said("user", json!([{"type": "input_audio"}])), "messages[0].content[0]", "image_url")
        .await;
    assert_eq!(model.asked(), [Value::Null; 0], "no model was called");
}

#[tokio::test]
async fn openai_clients_send_images_too() {
    let (h, model, agent) = start().await;
    let data = png(3, 0);
    let url = format!("data:image/png;base64,{data}");
    let look = json!({"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": url, "detail": "low"}}, {"type": "text", "text": "What is this?"},
    ]});
    let ask = async |messages: Value| {
        let answer =
            h.post("/v1/chat/completions", json!({"model": agent, "messages": messages})).await.expect(200);
        answer["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
    };
    let chats =
        async || h.get(&format!("/agents/{agent}/chats")).await.expect(200)["data"].as_array().unwrap().len();
    let reply = ask(json!([look])).await;
    assert_eq!(seen(&model), std::slice::from_ref(&data));
    let said = json!({"role": "assistant", "content": reply});
    ask(json!([look, said, {"role": "user", "content": "Sure?"}])).await;
    assert_eq!(seen(&model), std::slice::from_ref(&data), "the chat still has its image, once");
    assert_eq!(chats().await, 1);
    // A conversation that the platform does not know begins a chat with its images.
    let other = json!({"role": "assistant", "content": "A cat."});
    ask(json!([look, other, {"role": "user", "content": "Sure?"}])).await;
    assert_eq!(seen(&model), [data]);
    assert_eq!(chats().await, 2);
}
