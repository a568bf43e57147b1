//! What clients of the OpenAI API ask of a reply, and drafts in its conversations: where it ends, how long it is, JSON, a yes.

use lamplighter_local::platform::PlatformConfig;
use models::{Addresses, ModelsConfig};
use reqwest::Method;
use serde_json::{Value, json};
use shared::config::AuthConfig;
use tests::anthropic::{Block, FakeAnthropic};
use tests::completions::{forgetful, scripted};
use tests::model::Says;
use tests::{Answer, Harness, send};

const PATH: &str = "/v1/chat/completions";

fn asked(agent: &str, messages: &[(&str, &str)], more: &Value) -> Value {
    let messages: Vec<Value> =
        messages.iter().map(|(role, content)| json!({"role": role, "content": content})).collect();
    let mut body = json!({"model": agent, "messages": messages});
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    body
}

/// The text and the finish reason, as a whole and as a stream: each in a conversation of its own.
async fn both(h: &Harness, agent: &str, text: &str, more: &Value) -> [(String, Value); 2] {
    let body = asked(agent, &[("user", text)], more);
    let whole = h.post(PATH, body.clone()).await.expect(200);
    let choice = &whole["choices"][0];
    let whole = (choice["message"]["content"].as_str().unwrap().to_owned(), choice["finish_reason"].clone());
    [whole, streamed(h, body).await]
}

async fn streamed(h: &Harness, mut body: Value) -> (String, Value) {
    body["stream"] = true.into();
    let stream = h.request(Method::POST, PATH).json(&body).send().await.unwrap().text().await.unwrap();
    let chunks: Vec<Value> = stream
        .split("\n\n")
        .filter_map(|frame| frame.strip_prefix("data: "))
        .filter(|data| *data != "[DONE]")
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    let text = chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    (text, chunks.last().unwrap()["choices"][0]["finish_reason"].clone())
}

async fn messages(h: &Harness, agent: &str) -> Vec<Value> {
    let chats = h.get(&format!("/agents/{agent}/chats")).await.expect(200);
    let chat = chats["data"][0]["chat_id"].as_str().unwrap().to_owned();
    h.get(&format!("/chats/{chat}")).await.expect(200)["messages"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_reply_ends_before_the_first_stop() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    let [(full, reason), _] = both(&h, &agent, "What is due?", &json!({})).await;
    assert_eq!(reason, "stop");
    // The demonstration's model sends words one by one, so a longer text is split over several of them.
    let letters: Vec<char> = full.chars().collect();
    let stop: String = letters[20..45].iter().collect();
    let expected = full.split(&stop).next().unwrap();
    for stop in [json!(stop), json!(["never said", stop])] {
        for told in both(&h, &agent, "What is due?", &json!({"stop": stop})).await {
            assert_eq!(told, (expected.to_owned(), json!("stop")));
        }
    }
    let said = messages(&h, &agent).await;
    assert_eq!(said[1]["content"].as_str().unwrap().trim(), expected.trim());

    // The reply ends there for the run, too: no call after it is made, and no other step follows.
    let (h, model, agent) = scripted(talks_and_calls, "scripted").await;
    for told in both(&h, &agent, "Go", &json!({"stop": "\n"})).await {
        assert_eq!(told, ("one".to_owned(), json!("stop")));
    }
    assert_eq!(model.asked(), 4);
    for told in both(&h, &agent, "Go", &json!({"stop": ["three", " three"]})).await {
        assert_eq!(told, ("one\ntwo".to_owned(), json!("stop")));
    }
}

/// Looks something up, and then talks.
fn talks_and_calls(messages: &[Value]) -> Says {
    match messages.last().is_some_and(|message| message["role"] == "tool") {
        false => Says::Call("query_assets", json!({"limit": 3})),
        true => Says::Text("one\ntwo three".into()),
    }
}

#[tokio::test]
async fn a_reply_has_the_length_that_the_client_wants() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    let [(full, _), _] = both(&h, &agent, "What is due?", &json!({})).await;
    for name in ["max_tokens", "max_completion_tokens"] {
        for (text, reason) in both(&h, &agent, "What is due?", &json!({name: 16})).await {
            assert!(full.starts_with(text.trim_end()) && text.len() < full.len(), "{text}");
            assert_eq!(reason, "length");
        }
    }
    for (more, is_cut) in [(json!({"max_tokens": 16}), true), (json!({}), false)] {
        let reply = h.post(PATH, asked(&agent, &[("user", "What is due?")], &more)).await.expect(200);
        let run = h.get(&format!("/runs/{}", reply["id"].as_str().unwrap())).await.expect(200);
        assert_eq!(run.get("cut_off"), is_cut.then_some(&json!(true)), "{run:#}");
    }
    // The calls of all steps count together, and when nothing is left, no further call is made.
    let (h, model, agent) = scripted(always_looks, "scripted").await;
    model.costs(60);
    for (_, reason) in both(&h, &agent, "Go", &json!({"max_tokens": 100})).await {
        assert_eq!(reason, "length");
    }
    let limits: Vec<u64> = model.sent().iter().map(|sent| sent["max_tokens"].as_u64().unwrap()).collect();
    assert_eq!(limits, [100, 40, 100, 40]);
}

fn always_looks(messages: &[Value]) -> Says {
    Says::Call("query_assets", json!({"limit": messages.len() % 9 + 1}))
}

fn city() -> Value {
    json!({"type": "json_schema", "json_schema": {"name": "city", "strict": true, "schema": {
        "type": "object", "properties": {"city": {"type": "string", "minLength": 2}, "n": {"type": "integer"}},
        "required": ["city", "n"], "additionalProperties": false,
    }}})
}

#[tokio::test]
async fn a_reply_that_must_be_json_is_checked_and_repaired_once() {
    let (h, model, agent) = forgetful().await;
    for told in both(&h, &agent, "Where?", &json!({"response_format": city()})).await {
        assert_eq!(told, ("{\"city\": \"Kiel\", \"n\": 3}".to_owned(), json!("stop")));
    }
    let sent = model.sent();
    assert_eq!(sent.len(), 4);
    let format = &sent[0]["response_format"]["json_schema"];
    assert_eq!((&format["strict"], &format["schema"]["additionalProperties"]), (&json!(true), &json!(false)));
    assert!(sent[0]["messages"].to_string().contains("JSON Schema"), "{:#}", sent[0]);
    assert!(sent[1]["messages"].to_string().contains("the reply is not valid JSON"), "{:#}", sent[1]);
    // A turn without the parameter has the same beginning as without that turn: the instruction is not stored.
    let next = [("user", "Where?"), ("assistant", "{\"city\": \"Kiel\", \"n\": 3}"), ("user", "And?")];
    h.post(PATH, asked(&agent, &next, &json!({}))).await.expect(200);
    let plain = model.sent().last().unwrap().clone();
    assert!(!plain["messages"].to_string().contains("JSON Schema") && plain["response_format"].is_null());
    assert_eq!((&plain["messages"][0], &plain["tools"]), (&sent[0]["messages"][0], &sent[0]["tools"]));

    // If it is no better the second time, the answer is an error, and the run says why.
    let asks = model.asked();
    for format in [city(), json!({"type": "json_object"})] {
        let body = asked(&agent, &[("user", "This is hopeless")], &json!({"response_format": format}));
        let answer = h.post(PATH, body).await;
        assert_eq!(answer.headers["x-should-retry"], "false", "OpenAI's clients repeat every other 503");
        let refused = answer.refused(503, "run_failed");
        assert!(refused["detail"].as_str().unwrap().contains("the reply is not valid JSON"), "{refused:#}");
        assert_eq!(refused["current"]["error_code"], "reply_invalid", "{refused:#}");
    }
    assert_eq!(model.asked(), asks + 4);
    for (text, reason) in both(&h, &agent, "Where?", &json!({"response_format": {"type": "text"}})).await {
        assert_eq!((text.as_str(), reason), ("It is Kiel.", json!("stop")));
    }
}

#[tokio::test]
async fn parameters_that_would_change_the_answer_are_refused_by_name() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    let call = async |more: Value| h.post(PATH, asked(&agent, &[("user", "What is due?")], &more)).await;
    let schema = |schema: Value| json!({"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}});
    for (more, field) in [
        (json!({"temperature": 2.5}), "temperature"),
        (json!({"temperature": "hot"}), "temperature"),
        (json!({"top_p": -0.5}), "top_p"),
        (json!({"presence_penalty": 3}), "presence_penalty"),
        (json!({"frequency_penalty": -3}), "frequency_penalty"),
        (json!({"logprobs": true}), "logprobs"),
        (json!({"top_logprobs": 2}), "top_logprobs"),
        (json!({"seed": 1.5}), "seed"),
        (json!({"tool_choice": "required"}), "tool_choice"),
        (json!({"functions": [{"name": "f"}]}), "functions"),
        (json!({"function_call": {"name": "f"}}), "function_call"),
        (json!({"modalities": ["text", "audio"]}), "modalities"),
        (json!({"audio": {"voice": "ash"}}), "audio"),
        (json!({"web_search_options": {}}), "web_search_options"),
        (json!({"n": 2}), "n"),
        (json!({"stop": ["a", "b", "c", "d", "e"]}), "stop"),
        (json!({"stop": [1]}), "stop"),
        (json!({"stop": ""}), "stop"),
        (json!({"stop": "a".repeat(201)}), "stop"),
        (json!({"max_tokens": 15}), "max_tokens"),
        (json!({"max_completion_tokens": 0}), "max_completion_tokens"),
        (json!({"response_format": {"type": "xml"}}), "response_format.type"),
        (json!({"response_format": "json"}), "response_format.type"),
        (json!({"response_format": {"type": "json_schema"}}), "response_format.json_schema.schema"),
        (
            schema(json!({"properties": {"a": {"pattern": "b"}}})),
            "response_format.json_schema.schema.properties.a.pattern",
        ),
        (schema(json!({"description": "a".repeat(17_000)})), "response_format.json_schema.schema"),
    ] {
        let refused = call(more).await.refused(400, "invalid_input");
        assert_eq!(
            (&refused["errors"][0]["field"], &refused["error"]["param"]),
            (&json!(field), &json!(field))
        );
    }
    // OpenAI's defaults, and parameters that do not change the answer.
    call(json!({
        "temperature": 1.0, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0.0, "logit_bias": {},
        "logprobs": false, "top_logprobs": null, "seed": null, "tool_choice": "auto", "functions": [],
        "modalities": ["text"], "n": 1, "stop": null, "max_tokens": null, "response_format": null, "user": "u",
        "metadata": {"a": "b"}, "store": false, "service_tier": "auto", "parallel_tool_calls": true,
        "prompt_cache_key": "k", "safety_identifier": "s", "stream_options": null, "made_up": [1],
    }))
    .await
    .expect(200);
}

fn greets(_: &[Value]) -> Says {
    Says::Text("Hello".to_owned())
}

/// A model that takes few parameters beside one that takes them all.
#[tokio::test]
async fn parameters_go_to_the_model_or_are_named_as_ignored() {
    let (h, model, agent) = scripted(greets, "scripted").await;
    let call = async |h: &Harness, agent: &str, more: &Value| {
        let body = asked(agent, &[("user", "Hello")], more);
        let mut ignored = Vec::new();
        for stream in [false, true] {
            let mut body = body.clone();
            body["stream"] = stream.into();
            let answer = h.request(Method::POST, PATH).json(&body).send().await.unwrap();
            assert_eq!(answer.status(), 200, "{more}");
            let named =
                answer.headers().get("x-lamplighter-ignored").map(|named| named.to_str().unwrap().to_owned());
            let text = answer.text().await.unwrap();
            assert!(!text.contains("\"error\""), "{text}");
            ignored.push(named.unwrap_or_default());
        }
        assert_eq!(ignored[0], ignored[1], "{more}");
        ignored.remove(0)
    };
    let sampling = json!({"temperature": 0.7, "top_p": 0.9, "presence_penalty": -1, "frequency_penalty": 0.5, "seed": 7});
    assert_eq!(call(&h, &agent, &sampling).await, "");
    for sent in model.sent() {
        for (name, value) in sampling.as_object().unwrap() {
            assert_eq!(sent[name], *value, "{name}");
        }
    }
    // Defaults are the same as no parameter.
    let before = model.sent().len();
    assert_eq!(call(&h, &agent, &json!({"temperature": 1, "top_p": 1.0, "seed": null, "n": 1})).await, "");
    for sent in &model.sent()[before..] {
        assert!(sent.get("temperature").is_none() && sent.get("seed").is_none(), "{sent}");
    }
    let rest = json!({"user": "u", "logit_bias": {"5": 1}, "reasoning_effort": "low", "made_up": 1, "a\nb: c": 1, "metadata": null});
    assert_eq!(call(&h, &agent, &rest).await, "logit_bias, made_up, reasoning_effort, user");
    for sent in &model.sent()[before..] {
        assert!(sent.get("user").is_none() && sent.get("logit_bias").is_none(), "{sent}");
    }
    let many: serde_json::Map<String, Value> =
        (0..100).map(|at| (format!("field_{at:03}"), at.into())).collect();
    assert_eq!(call(&h, &agent, &many.into()).await.split(", ").count(), 32);

    // A model that thinks refuses some of them, so they are left out.
    let model = FakeAnthropic::start(|_| vec![Block::Text("Hello".to_owned())]).await;
    let models = ModelsConfig {
        anthropic_key: Some("sk-ant-test".to_owned()),
        addresses: Addresses { anthropic: model.url.clone(), ..Addresses::default() },
        ..ModelsConfig::default()
    };
    let h = Harness::with(PlatformConfig { models, ..PlatformConfig::in_memory() }).await;
    let agent = h.agent().await;
    let ignored = call(&h, &agent, &json!({"temperature": 0.7, "top_p": 0.9, "seed": 7, "user": "u"})).await;
    assert_eq!(ignored, "temperature, top_p, seed, user");
    for sent in model.asked() {
        assert!(sent.get("temperature").is_none() && sent.get("top_p").is_none(), "{sent}");
    }
}

const BRIEF: &str = "Write a brief about lamp oil prices";

async fn content(h: &Harness, agent: &str, messages: &[(&str, &str)]) -> (Value, String) {
    let answer = h.post(PATH, asked(agent, messages, &json!({}))).await.expect(200);
    let text = answer["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
    (answer, text)
}

/// The address in a text that begins with `from`.
fn address(text: &str, from: &str) -> String {
    let at = text.find(from).unwrap_or_else(|| panic!("{from} is not in {text}"));
    let is_end = |c: char| !(c.is_alphanumeric() || "/:._-".contains(c));
    text[at..].split(is_end).next().unwrap().trim_end_matches('.').to_owned()
}

async fn assets(h: &Harness, agent: &str) -> Vec<Value> {
    h.get(&format!("/agents/{agent}/assets")).await.expect(200)["data"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_draft_is_shown_and_a_yes_accepts_it_once() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    let (answer, draft) = content(&h, &agent, &[("user", BRIEF)]).await;
    let run = h.get(&format!("/runs/{}", answer["id"].as_str().unwrap())).await.expect(200);
    let proposal = &run["proposals"][0];
    let shown: String = proposal["content"].as_str().unwrap().trim().chars().take(200).collect();
    // Long lines are broken.
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat(&draft).contains(&flat(&shown)) && draft.contains(proposal["title"].as_str().unwrap()),
        "{draft}"
    );
    let at = address(&draft, &format!("{}/proposals/prp_", h.platform.url()));
    assert_eq!(send(tests::client().get(&at)).await.expect(200)["proposal_id"], proposal["proposal_id"]);

    // Other words accept nothing: the yes belongs to the last reply.
    let no = [("user", BRIEF), ("assistant", draft.as_str()), ("user", "What is due?")];
    let (_, told) = content(&h, &agent, &no).await;
    let late: Vec<_> = no.into_iter().chain([("assistant", told.as_str()), ("user", "yes")]).collect();
    content(&h, &agent, &late).await;
    assert_eq!(assets(&h, &agent).await.len(), 0);

    let (_, draft) = content(&h, &agent, &[("user", BRIEF)]).await;
    let yes = [("user", BRIEF), ("assistant", draft.as_str()), ("user", "Yes!")];
    let (answer, told) = content(&h, &agent, &yes).await;
    let saved = address(&told, &format!("{}/assets/ast_", h.platform.url()));
    let asset = send(tests::client().get(&saved)).await.expect(200);
    let text = h.get(&format!("/assets/{}/content", asset["asset_id"].as_str().unwrap())).await;
    assert_eq!(text.body, *proposal["content"].as_str().unwrap());
    // It is a run of the same chat without a call of a model.
    let run = h.get(&format!("/runs/{}", answer["id"].as_str().unwrap())).await.expect(200);
    assert_eq!(
        (&run["state"], &run["message"], &run["cost_micros"]),
        (&json!("completed"), &json!(told), &json!(0))
    );
    assert!(run["model"].is_null(), "{run:#}");
    let said = messages(&h, &agent).await;
    assert_eq!((said.len(), &said[2]["content"], &said[3]["content"]), (4, &json!("Yes!"), &json!(told)));

    // The same call again begins a new chat, whose agent has nothing to accept. The conversation goes on in its own chat.
    content(&h, &agent, &yes).await;
    assert_eq!(assets(&h, &agent).await.len(), 1);
    let chats =
        async || h.get(&format!("/agents/{agent}/chats")).await.expect(200)["data"].as_array().unwrap().len();
    let before = chats().await;
    let next: Vec<_> =
        yes.into_iter().chain([("assistant", told.as_str()), ("user", "What is due?")]).collect();
    content(&h, &agent, &next).await;
    assert_eq!((chats().await, assets(&h, &agent).await.len()), (before, 1));

    // Streamed; and a draft that was discarded meanwhile is not accepted.
    let (_, draft) = content(&h, &agent, &[("user", BRIEF)]).await;
    let yes = [("user", BRIEF), ("assistant", draft.as_str()), ("user", "accept")];
    let (told, reason) = streamed(&h, asked(&agent, &yes, &json!({}))).await;
    assert!(told.contains("is saved at http") && reason == "stop", "{told}");
    assert_eq!(assets(&h, &agent).await.len(), 2);
    let (answer, draft) = content(&h, &agent, &[("user", BRIEF)]).await;
    let run = h.get(&format!("/runs/{}", answer["id"].as_str().unwrap())).await.expect(200);
    let gone = format!("/proposals/{}", run["proposals"][0]["proposal_id"].as_str().unwrap());
    h.delete(&gone).await.expect(204);
    content(&h, &agent, &[("user", BRIEF), ("assistant", draft.as_str()), ("user", "yes")]).await;
    assert_eq!(assets(&h, &agent).await.len(), 2);
}

/// Eight clients say yes at once: one asset is saved.
#[tokio::test]
async fn one_of_several_yeses_accepts() {
    let h = Harness::start().await;
    let agent = h.agent().await;
    let (_, draft) = content(&h, &agent, &[("user", BRIEF)]).await;
    let yes = [("user", BRIEF), ("assistant", draft.as_str()), ("user", "yes")];
    let all = futures::future::join_all((0..8).map(|_| content(&h, &agent, &yes))).await;
    // A late one may be told what the first one has done.
    let accepts = |told: &str| told.contains("is saved at") && !told.starts_with("Already done: ");
    assert_eq!(all.iter().filter(|(_, told)| accepts(told)).count(), 1);
    assert_eq!(assets(&h, &agent).await.len(), 1);
}

/// A client repeats a call whose answer it has lost, and a person says yes twice. No model is asked, and nothing is made twice.
#[tokio::test]
async fn a_yes_that_is_sent_again_is_told_what_was_done() {
    let (h, model, agent) = scripted(hides, "scripted").await;
    let (_, draft) = content(&h, &agent, &[("user", "Here it is.")]).await;
    let yes = [("user", "Here it is."), ("assistant", draft.as_str()), ("user", "yes")];
    let (_, told) = content(&h, &agent, &yes).await;
    assert!(told.contains("is saved at"), "{told}");
    let asked_before = model.asked();
    let expected = format!("Already done: {told}");
    for _ in 0..2 {
        assert_eq!(content(&h, &agent, &yes).await.1, expected);
    }
    assert_eq!(streamed(&h, asked(&agent, &yes, &json!({}))).await.0, expected);
    // The other word, and the yes after the answer, also in the chat of a repeated call.
    let accept = [("user", "Here it is."), ("assistant", draft.as_str()), ("user", "Accept.")];
    assert_eq!(content(&h, &agent, &accept).await.1, expected);
    for answer in [&told, &expected] {
        let mut all = yes.to_vec();
        all.extend([("assistant", answer.as_str()), ("user", "Yes.")]);
        assert_eq!(content(&h, &agent, &all).await.1, expected);
        all.extend([("assistant", expected.as_str()), ("user", "yes")]);
        assert_eq!(content(&h, &agent, &all).await.1, expected);
    }
    assert_eq!((model.asked(), assets(&h, &agent).await.len()), (asked_before, 1));

    // Other words go to the model, and so does a yes after them: it belongs to what was said last.
    let mut all = yes.to_vec();
    all.extend([("assistant", told.as_str()), ("user", "Yes, please.")]);
    let (_, newer) = content(&h, &agent, &all).await;
    assert!(newer.starts_with("Yes, please.") && newer.contains("to accept it"), "{newer}");
    assert!(model.asked() > asked_before);
    all.extend([("assistant", newer.as_str()), ("user", "yes")]);
    let (_, second) = content(&h, &agent, &all).await;
    assert!(second.contains("is saved at") && !second.starts_with("Already done"), "{second}");
    assert_eq!(assets(&h, &agent).await.len(), 2);

    // Nothing was accepted, so nothing is done.
    let (answer, draft) = content(&h, &agent, &[("user", "Another one.")]).await;
    let run = h.get(&format!("/runs/{}", answer["id"].as_str().unwrap())).await.expect(200);
    h.delete(&format!("/proposals/{}", run["proposals"][0]["proposal_id"].as_str().unwrap()))
        .await
        .expect(204);
    for _ in 0..2 {
        let yes = [("user", "Another one."), ("assistant", draft.as_str()), ("user", "yes")];
        let (_, told) = content(&h, &agent, &yes).await;
        assert!(!told.contains("Already done") && !told.contains("is saved at"), "{told}");
    }
    assert_eq!(assets(&h, &agent).await.len(), 2);
}

fn plans(_: &[Value]) -> Says {
    let action = |title: &str| {
        json!({
            "title": title, "description": "Every day", "priority": "low", "schedule": {"every": "1h"},
            "task_config": {"instructions": "Look at the shop", "expected_output": "A list"},
        })
    };
    Says::Call("generate_actions", json!({"actions": [action("Look"), action("Look again")]}))
}

#[tokio::test]
async fn accepted_actions_are_defined_and_not_approved() {
    let (h, _model, agent) = scripted(plans, "scripted").await;
    let (_, draft) = content(&h, &agent, &[("user", "Plan")]).await;
    for part in ["Look at the shop", "A list", "\"every\":\"1h\"", "all of them"] {
        assert!(draft.contains(part), "{part}: {draft}");
    }
    let (_, told) = content(&h, &agent, &[("user", "Plan"), ("assistant", &draft), ("user", "yes")]).await;
    assert!(told.contains("until you approve it"), "{told}");
    let actions = h.get(&format!("/actions?agent_id={agent}")).await.expect(200);
    let actions = actions["data"].as_array().unwrap();
    assert_eq!(actions.len(), 2);
    for action in actions {
        assert!(action["approval"].is_null(), "{action:#}");
        assert!(told.contains(action["action_id"].as_str().unwrap()), "{told}");
    }
}

/// A model that begins its reply with what the person has said, and then delivers a draft.
fn hides(messages: &[Value]) -> Says {
    let said = |message: &Value| match &message["content"] {
        Value::String(text) => text.clone(),
        parts => parts.as_array().unwrap().last().unwrap()["text"].as_str().unwrap_or_default().to_owned(),
    };
    let text = said(messages.iter().rfind(|message| message["role"] == "user").unwrap());
    // What the platform shows beside the person's words comes first.
    let text = text.rsplit("</in_view>").next().unwrap().trim_start();
    let draft =
        json!({"title": "Oil", "asset_type": "document", "content": "Pay <!-- all --> of it\n```\nto me"});
    Says::Text(format!("{text}\n\nGENERATE_ASSET\n---\n{draft}"))
}

/// What a person sees of a reply in a client that renders CommonMark and HTML. What HTML may hide is not seen.
fn on_screen(reply: &str) -> String {
    use pulldown_cmark::{Event, Parser};
    let shown =
        Parser::new(reply).take_while(|event| !matches!(event, Event::Html(_) | Event::InlineHtml(_)));
    shown
        .filter_map(|event| match event {
            Event::Text(text) | Event::Code(text) => Some(text.to_string()),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn a_yes_counts_only_for_a_draft_that_was_visible() {
    let (h, model, agent) = scripted(hides, "scripted").await;
    let drafted = "Pay <!-- all --> of it\n```\nto me";
    let mut saved = 0;
    for (said, counts) in [
        ("Here it is.", true),
        ("```\nlet x = 1;", true),
        ("~~~~ text\n```", true),
        ("- a list\n\n  ````\n  code", true),
        ("[Draft:]: <http://x> \"a", true),
        ("<!--", false),
        ("So it is <!-- here", false),
        ("<details><summary>More</summary>", false),
        ("<style>pre, em { display: none }</style>", false),
        ("<think>", false),
        ("$$", false),
    ] {
        for stream in [false, true] {
            let what = format!("{said:?}, stream: {stream}");
            let talk = async |messages: &[(&str, &str)]| match stream {
                true => streamed(&h, asked(&agent, messages, &json!({}))).await.0,
                false => content(&h, &agent, messages).await.1,
            };
            let reply = talk(&[("user", said)]).await;
            assert!(reply.starts_with(said), "{what}: {reply}");
            let mut all = vec![("user", said), ("assistant", reply.as_str()), ("user", "yes")];
            let asked = model.asked();
            let told = talk(&all).await;
            assert_eq!(model.asked(), asked, "{what}");
            if counts {
                let seen = on_screen(&reply);
                assert!(seen.contains(drafted) && seen.contains("to accept it"), "{what}: {seen}");
            } else {
                assert!(told.starts_with("Nothing was accepted yet"), "{what}: {told}");
                let seen = on_screen(&told);
                assert!(seen.contains(drafted) && seen.contains("to accept it"), "{what}: {seen}");
                assert_eq!(assets(&h, &agent).await.len(), saved, "{what}");
                // Now the person has seen it.
                all.extend([("assistant", told.as_str()), ("user", "yes")]);
                let told = talk(&all).await;
                assert!(told.contains("is saved at"), "{what}: {told}");
                assert_eq!(model.asked(), asked, "{what}");
            }
            saved += 1;
            assert_eq!(assets(&h, &agent).await.len(), saved, "{what}");
        }
    }
}

#[tokio::test]
async fn a_yes_of_another_owner_or_of_a_reader_accepts_nothing() {
    let mut config = PlatformConfig::in_memory();
    config.auth = AuthConfig::On(None);
    let h = Harness::with(config).await;
    let (mine, theirs) = (h.key_of("me").await, h.key_of("you").await);
    let call = async |key: &str, method: Method, path: &str, body: &Value| -> Answer {
        send(h.request(method, path).bearer_auth(key).json(body)).await
    };
    let new = json!({"name": "Watch", "goal": "A research agent that watches"});
    let agent = call(&mine, Method::POST, "/agents", &new).await.expect(201)["agent_id"].clone();
    let agent = agent.as_str().unwrap();
    let answer =
        call(&mine, Method::POST, PATH, &asked(agent, &[("user", BRIEF)], &json!({}))).await.expect(200);
    let draft = answer["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
    let yes = asked(agent, &[("user", BRIEF), ("assistant", &draft), ("user", "yes")], &json!({}));
    call(&theirs, Method::POST, PATH, &yes).await.refused(404, "not_found");
    let reader = h.key_with("me", json!({"name": "reader", "scopes": ["read"]})).await;
    call(&reader, Method::POST, PATH, &yes).await.refused(403, "scope_missing");
    let list = format!("/agents/{agent}/assets");
    assert_eq!(call(&mine, Method::GET, &list, &Value::Null).await.expect(200)["data"], json!([]));
    // The refused calls have not used the yes up.
    call(&mine, Method::POST, PATH, &yes).await.expect(200);
    assert_eq!(
        call(&mine, Method::GET, &list, &Value::Null).await.expect(200)["data"].as_array().unwrap().len(),
        1
    );
}

/// Every route refuses a parameter in its address that it does not have.
#[tokio::test]
async fn unknown_parameters_of_an_address_are_refused_on_every_route() {
    let h = Harness::start().await;
    let document = h.get("/openapi.json").await.expect(200);
    let mut routes = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in
            methods.as_object().unwrap().keys().filter(|_| !["/health", "/"].contains(&path.as_str()))
        {
            let mut filled = path.clone();
            while let (Some(from), Some(to)) = (filled.find('{'), filled.find('}')) {
                filled.replace_range(from..=to, "x");
            }
            let method: Method = method.to_uppercase().parse().unwrap();
            let call = h.request(method.clone(), &format!("{filled}?no_such_name=1")).json(&json!({}));
            let answer: Value = call.send().await.unwrap().json().await.unwrap();
            assert_eq!(answer["code"], "invalid_input", "{method} {path}: {answer:#}");
            assert_eq!(answer["errors"][0]["field"], "no_such_name", "{method} {path}");
            routes += 1;
        }
    }
    assert!(routes > 80, "{routes}");
    for path in ["/health?probe=1", "/?code=from-a-provider&state=a"] {
        h.get(path).await.expect(200);
    }
    let refused = h.get("/v1/models?limit=3").await.refused(400, "invalid_input");
    assert_eq!(refused["error"]["param"], "limit");
    // Clients of MCP open their address with other methods, and must learn that there is nothing.
    let get = h.request(Method::GET, "/mcp?workflow=feature").send().await.unwrap();
    assert_eq!(get.status(), 405);
}
