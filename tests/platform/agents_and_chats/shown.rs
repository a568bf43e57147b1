//! What people read of a stored conversation: the text that was streamed, and only their own words as theirs.

use serde_json::{Value, json};
use tests::Harness;
use tests::completions::scripted;
use tests::model::Says;

const ASSET: &str =
    "GENERATE_ASSET\n---\n{\"title\": \"Oil\", \"asset_type\": \"document\", \"content\": \"A brief\"}";

/// What the last message of the person, or of the platform, says.
fn last(messages: &[Value]) -> String {
    let content = &messages.iter().rfind(|message| message["role"] != "assistant").unwrap()["content"];
    content.as_str().map_or_else(|| content.to_string(), str::to_owned)
}

fn delivers(messages: &[Value]) -> Says {
    let last = last(messages);
    Says::Text(if last.contains("could not be read") {
        format!("Again:\n\n{ASSET}")
    } else if last.contains("Result of query_actions") {
        "Nothing is due.".to_owned()
    } else if last.contains("Break it") {
        "One moment.\n\nGENERATE_ASSET\n---\n{\"title\": 1}".to_owned()
    } else if last.contains("What is due?") {
        "I look.\n\nUSE_TOOL: query_actions\n{}".to_owned()
    } else if last.contains("Be quiet") {
        ASSET.to_owned()
    } else if last.contains("Twice") {
        format!("First:\n\n{ASSET}\n\nThen:\n\n{ASSET}\n\nThat is all.")
    } else if last.contains("Set up") {
        "READY_TO_CREATE\n---\nTITLE: Oil\nGOAL: Watch\nSUCCESS_CRITERIA: It is watched\nTIMELINE: Ongoing"
            .to_owned()
    } else {
        "Write GENERATE_ASSET at the start of a line.".to_owned()
    })
}

async fn said(h: &Harness, chat: &Value) -> Vec<(String, String)> {
    let chat = h.get(&format!("/chats/{}", chat.as_str().unwrap())).await.expect(200);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    chat["messages"].as_array().unwrap().iter().map(|m| (text(&m["role"]), text(&m["content"]))).collect()
}

#[tokio::test]
async fn a_stored_reply_is_shown_as_it_was_streamed() {
    let (h, _model, agent) = scripted(delivers, "scripted").await;
    for message in ["Be quiet", "Twice", "How do I get one?", "Set up"] {
        let path =
            if message == "Set up" { "/setup/chat".to_owned() } else { format!("/agents/{agent}/chat") };
        let run = h.post(&path, json!({ "message": message })).await.expect(200);
        let live = run["message"].as_str().unwrap();
        assert!(!live.contains("---") && !live.contains('{'), "{live}");
        let mut expected =
            vec![("user".to_owned(), message.to_owned()), ("assistant".to_owned(), live.to_owned())];
        expected.retain(|(_, text)| !text.is_empty());
        assert_eq!(said(&h, &run["chat_id"]).await, expected, "{message}");
    }
}

#[tokio::test]
async fn what_the_platform_tells_a_model_is_not_shown_as_the_persons() {
    let (h, model, agent) = scripted(delivers, "scripted").await;
    for (message, told, replies) in [
        ("Break it", "could not be read", ["One moment.", "Again:"]),
        ("What is due?", "Result of query_actions", ["I look.", "Nothing is due."]),
    ] {
        let asked = model.sent().len();
        let run = h.post(&format!("/agents/{agent}/chat"), json!({ "message": message })).await.expect(200);
        assert!(
            model.sent()[asked..].iter().any(|sent| sent["messages"].to_string().contains(told)),
            "{told}"
        );
        let said = said(&h, &run["chat_id"]).await;
        let of = |role: &str| -> Vec<&str> {
            said.iter().filter(|(by, _)| by == role).map(|(_, text)| text.trim()).collect()
        };
        assert_eq!(of("user"), [message]);
        assert_eq!(of("assistant"), replies);

        // The model still gets it with the next message.
        let asked = model.sent().len();
        let again = json!({"message": "Thanks", "chat_id": run["chat_id"]});
        h.post(&format!("/agents/{agent}/chat"), again).await.expect(200);
        assert!(model.sent()[asked]["messages"].to_string().contains(told), "{told}");

        // Memory reads the conversation as people do.
        for (words, is_there) in [(message, true), (told, false)] {
            let query = words.replace(' ', "+");
            let found = h.get(&format!("/memory/search?q={query}&depth=raw&limit=100")).await.expect(200);
            let texts: Vec<&str> =
                found["hits"].as_array().unwrap().iter().map(|hit| hit["text"].as_str().unwrap()).collect();
            assert_eq!(texts.iter().any(|text| text.contains(words)), is_there, "{texts:?}");
        }
    }
}
