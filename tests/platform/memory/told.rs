//! Replies that were told a fact which is deleted now.

use reqwest::Method;
use serde_json::{Value, json};
use tests::mcp::client;
use tests::memory::{learns, remembers};
use tests::model::{Says, ScriptedModel};
use tests::send;
use tests::stage::Stage;

const MEMORY: &str =
    "- The user is allergic to hazelnuts\n- The user likes tea\n- The user works in a small shop in Porto\n";

/// Says this much to each question, and learns.
const ANSWERS: [(&str, &str); 6] = [
    ("How is the weather?", "Rain comes tomorrow."),
    ("A recipe for a cake?", "Take almonds, and no hazelnut."),
    ("To what am I allergic?", "Stay away from those."),
    ("And a biscuit?", "The almonds again."),
    ("Which umbrella?", "The large umbrella, because rain comes."),
    ("When is the train?", "The train comes at nine."),
];

fn answers(messages: &[Value]) -> Says {
    if messages[0]["content"].to_string().contains("<lamplighter:memory>") {
        return learns(messages);
    }
    let last = messages.last().unwrap()["content"].as_str().unwrap_or_default();
    let answer = ANSWERS.iter().find(|(question, _)| last.ends_with(question));
    Says::Text(answer.map_or("I see.", |(_, answer)| answer).into())
}

/// Writes the long-term memory, and returns the ids of the facts of its lines.
async fn writes(stage: &Stage) -> Vec<String> {
    let put = stage.h.request(Method::PUT, "/memory/long-term").json(&json!({"markdown": MEMORY}));
    let put = send(put).await.expect(200);
    let lines = put["sections"][0]["lines"].as_array().unwrap();
    lines.iter().map(|line| line["facts"][0]["fact_id"].as_str().unwrap().to_owned()).collect()
}

async fn asks(stage: &Stage, chat: Option<&str>, message: &str) -> Value {
    let mut body = json!({"message": message});
    if let Some(chat) = chat {
        body["chat_id"] = json!(chat);
    }
    stage.h.post(&format!("/agents/{}/chat", stage.agent), body).await.expect(200)
}

fn chat_of(turn: &Value) -> String {
    turn["chat_id"].as_str().unwrap().to_owned()
}

/// The newest request to the model.
fn newest(model: &ScriptedModel) -> String {
    model.sent().last().unwrap()["messages"].to_string()
}

/// Whether a search for a text finds it.
async fn finds(stage: &Stage, text: &str) -> bool {
    let words: String = text.chars().filter(|c| c.is_alphanumeric() || *c == ' ').collect();
    stage.finds(&words).await.iter().any(|found| found == text)
}

#[tokio::test]
async fn a_deleted_line_hides_the_replies_that_speak_of_it_and_no_others() {
    let model = ScriptedModel::start(answers).await;
    let stage = remembers(&model).await;
    let facts = writes(&stage).await;
    let weather = chat_of(&asks(&stage, None, "How is the weather?").await);
    assert!(newest(&model).contains("allergic to hazelnuts"), "every turn is told it");
    let cake = chat_of(&asks(&stage, None, "A recipe for a cake?").await);
    asks(&stage, None, "To what am I allergic?").await;
    let train = chat_of(&asks(&stage, None, "When is the train?").await);
    for (_, answer) in [ANSWERS[0], ANSWERS[1], ANSWERS[2], ANSWERS[5]] {
        assert!(finds(&stage, answer).await, "{answer}");
    }

    stage.h.delete(&format!("/memory/facts/{}", facts[0])).await.expect(204);
    // It has a form of a word of the fact.
    assert!(!finds(&stage, "Take almonds, and no hazelnut.").await);
    // It has other words, but the fact was found for its question.
    assert!(!finds(&stage, "Stay away from those.").await);
    for answer in ["Rain comes tomorrow.", "The train comes at nine."] {
        assert!(finds(&stage, answer).await, "{answer}");
    }
    // The same holds for what a model is told.
    for (question, told, not_told) in [
        ("Will rain come tomorrow, and when comes the train?", "Rain comes tomorrow.", "hazelnut"),
        ("Take almonds?", "likes tea", "Take almonds, and"),
        ("Shall I stay away from those?", "likes tea", "Stay away from those."),
    ] {
        asks(&stage, None, question).await;
        let sent = newest(&model);
        assert!(sent.contains(told) && !sent.contains(not_told), "{question}: {sent}");
    }
    // A conversation goes on without the words of a reply that speaks of it.
    asks(&stage, Some(&cake), "And a biscuit?").await;
    let sent = newest(&model);
    assert!(sent.contains("A recipe for a cake?") && sent.contains("The person has deleted this."), "{sent}");
    assert!(!sent.contains("hazelnut") && !sent.contains("Take almonds"), "{sent}");
    asks(&stage, Some(&weather), "Which umbrella?").await;
    assert!(newest(&model).contains("Rain comes tomorrow."), "{}", newest(&model));
    // What a reply is told from now on has nothing to do with the fact.
    for answer in ["The almonds again.", "The large umbrella, because rain comes."] {
        assert!(finds(&stage, answer).await, "{answer}");
    }
    // For the person, the conversation stays as it was.
    let chat = stage.h.get(&format!("/chats/{cake}")).await.expect(200);
    assert!(chat["messages"].to_string().contains("no hazelnut"), "{chat:#}");

    // Another agent is told no reply that was told the fact, whatever the reply says.
    let other = client(&stage.h);
    let search = async |query: &str| {
        let found = other.gives("search_memory", json!({"query": query, "depth": "raw"})).await;
        found["hits"].to_string()
    };
    let rain = search("Rain comes tomorrow large umbrella").await;
    assert!(rain.contains("The large umbrella") && !rain.contains("> Rain comes tomorrow."), "{rain}");
    assert!(rain.contains("How is the weather?"), "{rain}");
    assert!(!search("The train comes at nine").await.contains("comes at nine"));

    // The next line has other words that tell of it.
    stage.h.delete(&format!("/memory/facts/{}", facts[2])).await.expect(204);
    asks(&stage, Some(&train), "How is the weather?").await;
    assert!(newest(&model).contains("comes at nine"), "{}", newest(&model));
    assert!(finds(&stage, "Rain comes tomorrow.").await);
}

#[tokio::test]
async fn a_reply_that_ends_after_the_deletion_is_hidden_too() {
    let model = ScriptedModel::held(answers).await;
    let stage = remembers(&model).await;
    let facts = writes(&stage).await;
    let deletes = async {
        model.asked_times(3).await;
        stage.h.delete(&format!("/memory/facts/{}", facts[0])).await.expect(204);
        model.allow(3);
    };
    tokio::join!(
        asks(&stage, None, "A recipe for a cake?"),
        asks(&stage, None, "To what am I allergic?"),
        asks(&stage, None, "How is the weather?"),
        deletes,
    );
    let sent = model.sent();
    assert!(sent.iter().all(|request| request.to_string().contains("allergic to hazelnuts")), "{sent:#?}");
    assert!(!finds(&stage, "Take almonds, and no hazelnut.").await);
    assert!(!finds(&stage, "Stay away from those.").await);
    assert!(finds(&stage, "Rain comes tomorrow.").await);
}

#[tokio::test]
async fn the_conversation_in_which_a_deleted_fact_was_said_goes_on() {
    let model = ScriptedModel::start(answers).await;
    let stage = remembers(&model).await;
    let chat = stage.says(None, &["I keep bees in Sintra", "I like tea", "How is the weather?"]).await;
    stage.h.post("/memory/sync", json!({})).await.expect(200);
    let day = stage.h.get("/memory/days/2026-11-21").await.expect(200);
    let facts = day["blocks"][0]["facts"].as_array().unwrap();
    let bees = facts.iter().find(|fact| fact["text"].as_str().unwrap().contains("bees")).unwrap();
    assert!(finds(&stage, "Rain comes tomorrow.").await);
    stage.h.delete(&format!("/memory/facts/{}", bees["fact_id"].as_str().unwrap())).await.expect(204);
    // The fact was said before it in this conversation, so it may be about the fact.
    assert!(!finds(&stage, "Rain comes tomorrow.").await);
    // The model goes on with what does not speak of it, and nobody was told the fact any more.
    asks(&stage, Some(&chat), "When is the train?").await;
    let sent = newest(&model);
    assert!(sent.contains("Rain comes tomorrow.") && !sent.contains("bees"), "{sent}");
    asks(&stage, Some(&chat), "Which umbrella?").await;
    for answer in ["The train comes at nine.", "The large umbrella, because rain comes."] {
        assert!(finds(&stage, answer).await, "{answer}");
    }
}
