//! Agents for clients of the OpenAI API: whole and streamed replies, conversations that the client keeps, errors.

use lamplighter_local::platform::PlatformConfig;
use reqwest::Method;
use serde_json::{Value, json};
use shared::config::AuthConfig;
use tests::{Harness, send};

const PATH: &str = "/v1/chat/completions";

fn asked(agent: &str, messages: &[(&str, &str)]) -> Value {
    let messages: Vec<Value> =
        messages.iter().map(|(role, content)| json!({"role": role, "content": content})).collect();
    // Clients send parameters that do not change the answer.
    json!({"model": agent, "messages": messages, "temperature": 1, "user": "u", "metadata": {"a": {"b": 1}}})
}

async fn reply(h: &Harness, agent: &str, messages: &[(&str, &str)]) -> (Value, String) {
    let answer = h.post(PATH, asked(agent, messages)).await.expect(200);
    let content = answer["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
    (answer, content)
}

async fn chats(h: &Harness, agent: &str) -> Vec<Value> {
    h.get(&format!("/agents/{agent}/chats")).await.expect(200)["data"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_reply_has_the_form_that_openai_clients_read() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    let (answer, content) = reply(&h, &agent, &[("user", "Write a brief about lamp oil prices")]).await;
    assert_eq!((&answer["object"], &answer["model"]), (&json!("chat.completion"), &json!(agent)));
    assert_eq!(answer["choices"][0]["message"]["role"], "assistant");
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    assert!(answer["created"].as_i64().unwrap() > 1_700_000_000, "{answer:#}");
    let count = |name: &str| answer["usage"][name].as_u64().unwrap();
    assert!(count("prompt_tokens") > 0 && count("completion_tokens") > 0, "{answer:#}");
    assert_eq!(count("prompt_tokens") + count("completion_tokens"), count("total_tokens"));

    // It is a run and a chat like any other. Its draft waits at the address in the reply.
    let run = h.get(&format!("/runs/{}", answer["id"].as_str().unwrap())).await.expect(200);
    assert_eq!((&run["state"], &run["kind"]), (&json!("completed"), &json!("chat")));
    let draft = format!("/proposals/{}", run["proposals"][0]["proposal_id"].as_str().unwrap());
    assert!(content.contains(&draft), "{content}");
    h.get(&draft).await.expect(200);
    assert_eq!(chats(&h, &agent).await.len(), 1);
}

/// The data of all frames of a stream except the last one.
fn chunks(text: &str) -> Vec<Value> {
    let mut data: Vec<&str> = text.split("\n\n").filter_map(|frame| frame.strip_prefix("data: ")).collect();
    assert_eq!(data.pop(), Some("[DONE]"), "{text}");
    data.into_iter().map(|data| serde_json::from_str(data).unwrap()).collect()
}

#[tokio::test]
async fn a_reply_is_streamed_in_chunks() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    let mut body = asked(&agent, &[("user", "Write a brief about lamp oil prices")]);
    body["stream"] = true.into();
    body["stream_options"] = json!({"include_usage": true});
    let response = h.request(Method::POST, PATH).json(&body).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let chunks = chunks(&response.text().await.unwrap());
    assert!(
        chunks
            .iter()
            .all(|chunk| chunk["object"] == "chat.completion.chunk" && chunk["model"] == json!(agent))
    );
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    let text: String =
        chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    let run = h.get(&format!("/runs/{}", chunks[0]["id"].as_str().unwrap())).await.expect(200);
    assert!(text.starts_with(run["message"].as_str().unwrap()) && text.contains("/proposals/prp_"), "{text}");
    let [.., last, usage] = chunks.as_slice() else { panic!("{chunks:#?}") };
    assert_eq!(last["choices"][0]["finish_reason"], "stop");
    assert_eq!((&usage["choices"], usage["usage"]["total_tokens"].as_u64() > Some(0)), (&json!([]), true));
}

#[tokio::test]
async fn a_conversation_that_the_client_keeps_is_one_chat() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    let first = ("user", "What is due?");
    let system = ("system", "Answer in one sentence.");
    let (_, one) = reply(&h, &agent, &[system, first]).await;
    // Clients may trim the texts that they show.
    let trimmed = one.trim_end().to_owned();
    let (_, two) =
        reply(&h, &agent, &[system, first, ("assistant", &trimmed), ("user", "And tomorrow?")]).await;
    let whole = [
        system,
        first,
        ("assistant", one.as_str()),
        ("user", "And tomorrow?"),
        ("assistant", two.as_str()),
        ("user", "And then?"),
    ];
    let mut streamed = asked(&agent, &whole);
    streamed["stream"] = true.into();
    let response = h.request(Method::POST, PATH).json(&streamed).send().await.unwrap();
    chunks(&response.text().await.unwrap());
    let list = chats(&h, &agent).await;
    assert_eq!(list.len(), 1, "{list:#?}");
    assert_eq!(list[0]["title"], "What is due?");
    let chat = h.get(&format!("/chats/{}", list[0]["chat_id"].as_str().unwrap())).await.expect(200);
    let said: Vec<&str> =
        chat["messages"].as_array().unwrap().iter().map(|m| m["content"].as_str().unwrap()).collect();
    assert_eq!(said.len(), 6, "{said:#?}");
    assert_eq!(
        (said[0], said[2], said[4]),
        ("Answer in one sentence.\n\nWhat is due?", "And tomorrow?", "And then?")
    );

    // If the same question is asked again, the reply may differ. So it gets another chat, which begins with the same messages.
    reply(&h, &agent, &[system, first, ("assistant", &one), ("user", "And tomorrow?")]).await;
    let list = chats(&h, &agent).await;
    assert_eq!(list.len(), 2);
    let chat = h.get(&format!("/chats/{}", list[0]["chat_id"].as_str().unwrap())).await.expect(200);
    assert_eq!(chat["messages"].as_array().unwrap().len(), 4, "{chat:#}");

    // A conversation whose chat was deleted continues from the client's copy.
    for chat in chats(&h, &agent).await {
        h.delete(&format!("/chats/{}", chat["chat_id"].as_str().unwrap())).await.expect(204);
    }
    reply(&h, &agent, &whole).await;
    assert_eq!(chats(&h, &agent).await.len(), 1);
}

/// Eight calls at once with the same conversation: one gets the chat, the others begin chats of their own.
#[tokio::test]
async fn a_chat_has_one_continuation() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    let (_, one) = reply(&h, &agent, &[("user", "What is due?")]).await;
    let next = [("user", "What is due?"), ("assistant", one.as_str()), ("user", "And tomorrow?")];
    futures::future::join_all((0..8).map(|_| reply(&h, &agent, &next))).await;
    let list = chats(&h, &agent).await;
    assert_eq!(list.len(), 8);
    for chat in list {
        let chat = h.get(&format!("/chats/{}", chat["chat_id"].as_str().unwrap())).await.expect(200);
        assert_eq!(chat["messages"].as_array().unwrap().len(), 4, "{chat:#}");
    }
}

#[tokio::test]
async fn a_call_under_a_key_acts_once() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    let body = asked(&agent, &[("user", "What is due?")]);
    let first = h.post_once(PATH, "k", body.clone()).await.expect(200);
    let again = h.post_once(PATH, "k", body).await.expect(200);
    assert_eq!(again, first);
    assert_eq!(chats(&h, &agent).await.len(), 1);
}

#[tokio::test]
async fn a_repeated_stream_has_the_same_form_and_text() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    let mut body = asked(&agent, &[("user", "Write a brief about lamp oil prices")]);
    body["stream"] = true.into();
    let told = async || {
        let call = h.request(Method::POST, PATH).header("idempotency-key", "k").json(&body);
        let response = call.send().await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let is_repeated = response.headers().contains_key("idempotent-replayed");
        let chunks = chunks(&response.text().await.unwrap());
        let text: String =
            chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
        assert_eq!(chunks.last().unwrap()["choices"][0]["finish_reason"], "stop");
        (is_repeated, chunks[0]["id"].clone(), text)
    };
    let (is_repeated, run, text) = told().await;
    assert!(!is_repeated && text.contains("/proposals/prp_"), "{text}");
    assert_eq!(told().await, (true, run, text.clone()));
    assert_eq!(chats(&h, &agent).await.len(), 1);

    // The repeated call does not lead the conversation to its chat a second time.
    let next =
        [("user", "Write a brief about lamp oil prices"), ("assistant", text.as_str()), ("user", "Go on")];
    reply(&h, &agent, &next).await;
    told().await;
    assert_eq!(chats(&h, &agent).await.len(), 1);
    reply(&h, &agent, &next).await;
    assert_eq!(chats(&h, &agent).await.len(), 2);
}

#[tokio::test]
async fn errors_have_the_form_that_openai_clients_read() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    let check = |problem: &Value, kind: &str, param: Value| {
        let expected =
            json!({"message": problem["detail"], "type": kind, "code": problem["code"], "param": param});
        assert_eq!(problem["error"], expected, "{problem:#}");
    };
    let mut body = asked(&agent, &[("user", "Hello")]);
    body["n"] = 2.into();
    check(&h.post(PATH, body).await.refused(400, "invalid_input"), "invalid_request_error", json!("n"));
    let unknown = h.post(PATH, asked("gpt-6", &[("user", "Hello")])).await.refused(404, "not_found");
    check(&unknown, "invalid_request_error", Value::Null);
    let path = h.post("/v1/embeddings", json!({})).await.refused(404, "not_found");
    check(&path, "invalid_request_error", Value::Null);
    let key = h.post_once(PATH, &"k".repeat(300), asked(&agent, &[("user", "Hello")])).await;
    check(&key.refused(400, "invalid_input"), "invalid_request_error", json!("Idempotency-Key"));
    // Other paths have problem documents alone.
    let other = h.get("/agents/agt_00000000000000000000000000000000").await.refused(404, "not_found");
    assert_eq!(other.get("error"), None, "{other:#}");

    let mut config = PlatformConfig::in_memory();
    config.auth = AuthConfig::On(None);
    let h = Harness::with(config).await;
    let models = h.get("/v1/models").await.refused(401, "unauthenticated");
    check(&models, "authentication_error", Value::Null);
    let wrong = send(h.request(Method::GET, "/v1/models").bearer_auth("llk_wrong")).await;
    check(&wrong.refused(401, "unauthenticated"), "authentication_error", Value::Null);
}

#[tokio::test]
async fn unsupported_parameters_are_refused_by_name() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    let good = asked(&agent, &[("user", "Hello")]);
    let check = async |change: fn(&mut Value), field: &str| {
        let mut body = good.clone();
        change(&mut body);
        let refused = h.post(PATH, body).await.refused(400, "invalid_input");
        assert_eq!(refused["errors"][0]["field"], field, "{refused:#}");
    };
    check(|b| b["n"] = 2.into(), "n").await;
    check(|b| b["tools"] = json!([{"type": "function"}]), "tools").await;
    check(|b| b["messages"] = json!([]), "messages").await;
    check(|b| b["messages"] = json!([{"role": "assistant", "content": "a"}]), "messages").await;
    check(|b| b["messages"][0]["role"] = "tool".into(), "messages[0].role").await;
    check(|b| b["messages"][0]["content"] = json!([{"type": "image_url"}]), "messages[0].content[0]").await;
    check(|b| b["messages"][0]["content"] = 7.into(), "messages[0].content").await;
    check(|b| b["messages"][0]["content"] = " ".into(), "messages[].content").await;
    check(|b| b["messages"][0]["content"] = "a".repeat(32_001).into(), "messages[].content").await;
    check(|b| drop(b.as_object_mut().unwrap().remove("model")), "model").await;
    // Null has the same effect as an absent field, and a list of texts the same effect as one text.
    let mut body = good.clone();
    body["tools"] = Value::Null;
    body["n"] = 1.into();
    body["messages"][0]["content"] =
        json!([{"type": "text", "text": "What"}, {"type": "text", "text": "now?"}]);
    h.post(PATH, body).await.expect(200);
    for model in ["gpt-6", "", "agt_00000000000000000000000000000000"] {
        h.post(PATH, asked(model, &[("user", "Hello")])).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn agents_are_listed_as_models_of_their_owner() {
    let mut config = PlatformConfig::in_memory();
    config.auth = AuthConfig::On(None);
    let h = Harness::with(config).await;
    let (mine, theirs) = (h.key_of("me").await, h.key_of("you").await);
    let call = async |key: &str, method: Method, path: &str, body: Value| {
        send(h.request(method, path).bearer_auth(key).json(&body)).await
    };
    let new = json!({"name": "Oil", "goal": "g", "success_criteria": "s", "timeline": "Ongoing"});
    let agent = call(&mine, Method::POST, "/agents", new.clone()).await.expect(201);
    let id = agent["agent_id"].as_str().unwrap();
    let archived = call(&mine, Method::POST, "/agents", new).await.expect(201);
    let archive = format!("/agents/{}", archived["agent_id"].as_str().unwrap());
    call(&mine, Method::PATCH, &archive, json!({"status": "archived"})).await.expect(200);
    let models = call(&mine, Method::GET, "/v1/models", Value::Null).await.expect(200);
    assert_eq!(models["object"], "list");
    let created = models["data"][0]["created"].clone();
    let expected =
        json!([{"id": id, "object": "model", "created": created, "owned_by": "lamplighter", "name": "Oil"}]);
    assert_eq!(models["data"], expected);
    // A client that asks for one model gets the same entry, or an error in OpenAI's form.
    let one = call(&mine, Method::GET, &format!("/v1/models/{id}"), Value::Null).await.expect(200);
    assert_eq!(one, expected[0]);
    let archived = archived["agent_id"].as_str().unwrap();
    for (key, id) in [(&mine, "gpt-6"), (&mine, archived), (&theirs, id)] {
        let path = format!("/v1/models/{id}");
        let problem = call(key, Method::GET, &path, Value::Null).await.refused(404, "not_found");
        let error = &problem["error"];
        assert_eq!((&error["type"], &error["code"]), (&json!("invalid_request_error"), &json!("not_found")));
        assert!(error["message"].as_str().unwrap().starts_with("there is no such"), "{problem:#}");
    }
    // Agents of other owners are not listed.
    let models = call(&theirs, Method::GET, "/v1/models", Value::Null).await.expect(200);
    assert_eq!(models["data"], json!([]));
    let hello = asked(id, &[("user", "Hello")]);
    call(&theirs, Method::POST, PATH, hello.clone()).await.refused(404, "not_found");
    send(h.request(Method::POST, PATH).json(&hello)).await.refused(401, "unauthenticated");
    call(&mine, Method::POST, PATH, hello).await.expect(200);
}
