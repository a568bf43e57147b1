//! A person has chosen a provider that makes vectors: what is said in other words is found, and a provider that fails changes nothing.

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use models::Addresses;
use models::ModelsConfig;
use serde_json::{Value, json};
use tests::memory::{learns, texts};
use tests::model::ScriptedModel;
use tests::stage::Stage;

/// Words that mean the same.
const MEANINGS: [&[&str]; 6] = [
    &["car", "automobile", "vehicle"],
    &["tea", "oolong", "infusion"],
    &["house", "flat", "apartment"],
    &["doctor", "physician", "surgeon"],
    &["holiday", "vacation", "trip"],
    &["garden", "yard", "lawn"],
];

/// A server with the format of OpenAI's embeddings: words with one meaning have one direction.
struct Embeddings {
    url: String,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    texts: Mutex<Vec<String>>,
    calls: AtomicUsize,
    /// 0: it answers; 1: it fails; 2: it answers with vectors of a wrong length; 3: it hangs.
    mood: AtomicU8,
}

impl Embeddings {
    async fn start() -> Self {
        let shared = Arc::new(Shared::default());
        let app = Router::new().route("/v1/embeddings", post(embed)).with_state(shared.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { url, shared }
    }

    fn is(&self, mood: u8) {
        self.shared.mood.store(mood, Ordering::Relaxed);
    }

    fn calls(&self) -> usize {
        self.shared.calls.load(Ordering::Relaxed)
    }

    fn texts(&self) -> Vec<String> {
        self.shared.texts.lock().unwrap().clone()
    }
}

async fn embed(State(shared): State<Arc<Shared>>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    shared.calls.fetch_add(1, Ordering::Relaxed);
    assert_eq!(headers["authorization"], "Bearer key");
    assert_eq!((&body["model"], &body["dimensions"]), (&json!("text-embedding-3-small"), &json!(256)));
    let length = match shared.mood.load(Ordering::Relaxed) {
        0 => 256,
        1 => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        2 => 10,
        _ => std::future::pending().await,
    };
    let vector = |text: &str| {
        let mut vector = vec![0.01_f32; length];
        for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
        {
            match MEANINGS.iter().position(|words| words.contains(&word)) {
                Some(meaning) => vector[meaning] += 1.0,
                None => {
                    let hash = word.bytes().fold(7_usize, |hash, byte| hash * 31 + usize::from(byte));
                    vector[hash % length] += 0.3;
                }
            }
        }
        vector
    };
    let input: Vec<&str> =
        body["input"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    shared.texts.lock().unwrap().extend(input.iter().map(|text| (*text).to_owned()));
    let data: Vec<Value> = input
        .iter()
        .enumerate()
        .map(|(index, text)| json!({"object": "embedding", "index": index, "embedding": vector(text)}))
        .collect();
    let usage = json!({"prompt_tokens": 50_000, "total_tokens": 50_000});
    Json(json!({"object": "list", "data": data, "model": body["model"], "usage": usage})).into_response()
}

async fn stage(model: &ScriptedModel, embeddings: &Embeddings) -> Stage {
    let addresses = Addresses { openai: embeddings.url.clone(), ..Addresses::default() };
    let config = ModelsConfig { openai_key: Some("key".to_owned()), addresses, ..model.server() };
    let stage = Stage::with(config).await;
    stage.h.patch("/account", json!({"timezone": "Europe/Berlin"})).await.expect(200);
    stage
}

/// Talks about each meaning, always with its first word.
async fn talk(stage: &Stage) {
    for (of, words) in MEANINGS.iter().enumerate() {
        let word = words[0];
        let place = ["Porto", "Lisbon", "Braga", "Faro", "Coimbra", "Aveiro"][of];
        let sentences = [
            format!("We spoke about the {word} near {place}"),
            format!("The {word} was on the list for {place}"),
            format!("Nobody minds the {word} any more"),
            format!("My sister asked for the {word}"),
        ];
        // Each in a conversation of its own, so that no message is found by its neighbours.
        for sentence in &sentences {
            stage.says(None, &[sentence]).await;
        }
    }
}

async fn search(stage: &Stage, query: &str) -> (Vec<String>, bool) {
    let path = format!("/memory/search?depth=raw&limit=40&q={}", query.replace(' ', "+"));
    let found = stage.h.get(&path).await;
    let found = found.expect(200);
    let has_vectors = found["layers"].as_array().unwrap().contains(&json!("vectors"));
    (texts(&found["hits"]), has_vectors)
}

#[tokio::test]
async fn what_is_said_in_other_words_is_found() {
    let (model, embeddings) = (ScriptedModel::start(learns).await, Embeddings::start().await);
    let stage = stage(&model, &embeddings).await;
    talk(&stage).await;
    // Nothing is sent before the person has chosen it.
    stage.moves_to("2026-11-22T21:30:00Z").await;
    let query = "Who asked about the automobile near Porto";
    let (lexical, has_vectors) = search(&stage, query).await;
    assert!(!has_vectors && embeddings.calls() == 0);
    assert!(!lexical.contains(&"Nobody minds the car any more".to_owned()), "{lexical:?}");

    let account = stage.h.patch("/account", json!({"memory_vectors": "openai"})).await.expect(200);
    assert_eq!(account["memory_vectors"], "openai");
    // They are made soon after the choice.
    stage.moves_to("2026-11-23T09:00:00Z").await;
    assert_eq!(embeddings.calls(), 1, "one call for all texts");
    assert!(embeddings.texts().contains(&"user: Nobody minds the car any more".to_owned()));
    assert!(!embeddings.texts().iter().any(|text| text.contains("lamplighter")), "{:?}", embeddings.texts());
    let (found, has_vectors) = search(&stage, query).await;
    assert!(has_vectors, "{found:?}");
    assert_eq!(embeddings.texts().last().map(String::as_str), Some(query));
    let place = |text: &str| found.iter().position(|hit| hit == text).unwrap_or(usize::MAX);
    assert!(place("Nobody minds the car any more") < found.len(), "{found:?}");
    assert!(place("Nobody minds the car any more") < place("Nobody minds the tea any more"), "{found:?}");
    // The same question is not sent twice.
    let calls = embeddings.calls();
    search(&stage, query).await;
    assert_eq!(embeddings.calls(), calls);

    // What was sent is counted and paid.
    let usage = stage.h.get("/usage?month=2026-11").await.expect(200);
    let of = usage["month"]["by_model"]
        .as_array()
        .unwrap()
        .iter()
        .find(|of| of["model"] == "text-embedding-3-small");
    let of = of.unwrap_or_else(|| panic!("{usage:#}"));
    assert_eq!((&of["calls"], &of["input_tokens"]), (&json!(2), &json!(100_000)), "{of:#}");
    assert_eq!(of["cost_micros"], 2_000, "{of:#}");

    // Only what is new is sent the next week, and what was forgotten is found by nobody.
    stage.says(None, &["The garage is closed on Mondays"]).await;
    let before = embeddings.texts().len();
    stage.moves_to("2026-12-06T21:30:00Z").await;
    let new = embeddings.texts().split_off(before);
    assert!(new.len() <= 3 && new.contains(&"user: The garage is closed on Mondays".to_owned()), "{new:?}");

    // The person changes their mind: nothing is sent any more, and the vectors go.
    stage.h.patch("/account", json!({"memory_vectors": "off"})).await.expect(200);
    let calls = embeddings.calls();
    let (_, has_vectors) = search(&stage, "Who asked about the vehicle").await;
    assert!(!has_vectors && embeddings.calls() == calls);
    stage.moves_to("2026-12-07T23:30:00Z").await;
    assert_eq!((search(&stage, query).await, embeddings.calls()), ((lexical, false), calls));
}

#[tokio::test]
async fn a_provider_that_fails_changes_nothing() {
    let (model, embeddings) = (ScriptedModel::start(learns).await, Embeddings::start().await);
    let stage = stage(&model, &embeddings).await;
    talk(&stage).await;
    let query = "Who asked about the automobile near Porto";
    stage.h.patch("/account", json!({"memory_vectors": "openai"})).await.expect(200);
    stage.says(None, &["I like long walks", "I live in Porto"]).await;
    let mut sundays = ["2026-11-22T21:30:00Z", "2026-11-29T21:30:00Z", "2026-12-06T21:30:00Z"].into_iter();
    for mood in [1, 2] {
        embeddings.is(mood);
        stage.says(None, &["The week was long"]).await;
        let (lexical, _) = search(&stage, query).await;
        let calls = embeddings.calls();
        stage.moves_to(sundays.next().unwrap()).await;
        assert!(embeddings.calls() > calls, "it was asked");
        let (found, has_vectors) = search(&stage, query).await;
        assert!(!has_vectors);
        assert_eq!(found[..2], lexical[..2], "mood {mood}");
    }
    // The clean-up was done all the same.
    let tidies = stage.h.get("/memory/tidies").await.expect(200);
    assert!(tidies["data"].as_array().is_some_and(|tidies| !tidies.is_empty()), "{tidies:#}");
    // It answers again, and then it is silent while a search waits.
    embeddings.is(0);
    stage.says(None, &["The week was short"]).await;
    stage.moves_to(sundays.next().unwrap()).await;
    assert!(search(&stage, query).await.1);
    embeddings.is(3);
    let begun = std::time::Instant::now();
    let (_, has_vectors) = search(&stage, "Is the physician in Braga").await;
    assert!(!has_vectors && begun.elapsed() < std::time::Duration::from_secs(5));
}
