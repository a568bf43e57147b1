//! Replies to the messages of a Telegram bot: what an update of the Bot API says, and what the words of a reply mean.
//!
//! A reply carries the message that it answers, and with it our link. So nothing is stored about sent messages, and a reply does what the
//! page behind the link does.

use serde::Deserialize;

/// What the Bot API sends, as far as it is read. Everything else is ignored.
#[derive(Debug, Deserialize)]
pub struct Update {
    pub update_id: i64,
    #[serde(default)]
    pub message: Option<Incoming>,
}

#[derive(Debug, Deserialize)]
pub struct Incoming {
    pub message_id: i64,
    chat: Chat,
    #[serde(default)]
    from: Option<Sender>,
    #[serde(default)]
    text: Option<String>,
    /// The text of a picture.
    #[serde(default)]
    caption: Option<String>,
    #[serde(default)]
    reply_to_message: Option<Box<Replied>>,
}

#[derive(Debug, Deserialize)]
struct Chat {
    id: i64,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Debug, Deserialize)]
struct Sender {
    id: i64,
    #[serde(default)]
    is_bot: bool,
}

#[derive(Debug, Deserialize)]
struct Replied {
    #[serde(default)]
    from: Option<Sender>,
    #[serde(default)]
    text: Option<String>,
}

impl Incoming {
    /// Whether the person of the chat with this id has written it, and no group, stranger or bot.
    #[must_use]
    pub fn is_of(&self, chat_id: &str) -> bool {
        self.chat.kind == "private"
            && self.chat.id.to_string() == chat_id
            && self.from.as_ref().is_some_and(|from| from.id == self.chat.id && !from.is_bot)
    }

    /// What it says, also beside a picture. None if it has no words.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        let text = self.text.as_ref().or(self.caption.as_ref())?;
        Some(text.trim()).filter(|text| !text.is_empty())
    }

    /// Whether it replies to a message of a bot.
    #[must_use]
    pub fn answers_a_bot(&self) -> bool {
        let from = self.reply_to_message.as_ref().and_then(|replied| replied.from.as_ref());
        from.is_some_and(|from| from.is_bot)
    }

    /// The token of the newest link with this beginning in the message of a bot that it answers.
    #[must_use]
    pub fn token(&self, begin: &str) -> Option<&str> {
        let replied = self.reply_to_message.as_ref().filter(|_| self.answers_a_bot())?;
        let text = replied.text.as_deref()?;
        // Words of a result stand before the link of the platform.
        let rest = &text[text.rfind(begin)? + begin.len()..];
        let is_token = |char: char| char.is_ascii_alphanumeric() || matches!(char, '.' | '-' | '_');
        let end = rest.find(|char| !is_token(char)).unwrap_or(rest.len());
        Some(&rest[..end]).filter(|token| !token.is_empty())
    }
}

/// What a reply says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Words {
    Yes,
    No,
    Pause,
    Resume,
    /// An answer or a correction.
    Other,
}

impl Words {
    #[must_use]
    pub fn of(text: &str) -> Self {
        let word = text.trim().trim_start_matches('/').trim_end_matches(['.', '!']).to_lowercase();
        match word.as_str() {
            "yes" | "y" | "ok" | "okay" | "allow" | "allow it" | "approve" | "ja" | "\u{1f44d}" => Self::Yes,
            "no" | "n" | "refuse" | "refuse it" | "deny" | "reject" | "nein" | "\u{1f44e}" => Self::No,
            "pause" | "pause it" | "stop" | "stop it" | "pausieren" => Self::Pause,
            "resume" | "resume it" | "continue" | "go on" | "weiter" => Self::Resume,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const LINK: &str = "https://lamps.example/answers/";

    fn incoming(changes: &Value) -> Incoming {
        let mut message = json!({
            "message_id": 7, "date": 1_795_251_600, "chat": {"id": 4711, "type": "private", "first_name": "Ada"},
            "from": {"id": 4711, "is_bot": false, "first_name": "Ada"}, "text": " yes ",
            "reply_to_message": {
                "message_id": 6, "from": {"id": 1, "is_bot": true}, "chat": {"id": 4711, "type": "private"},
                "text": format!("Prices\nSee {LINK}2.old first\nAnswer it: {LINK}1.a-B_9\nSee it: https://lamps.example/#/runs/run_1"),
            },
        });
        for (name, value) in changes.as_object().unwrap() {
            message[name] = value.clone();
        }
        let update: Update = serde_json::from_value(json!({"update_id": 1, "message": message})).unwrap();
        update.message.unwrap()
    }

    #[test]
    fn only_the_person_of_the_chat_is_heard() {
        assert!(incoming(&json!({})).is_of("4711") && !incoming(&json!({})).is_of("4712"));
        assert_eq!(incoming(&json!({})).text(), Some("yes"));
        assert_eq!(incoming(&json!({"text": null, "caption": "no"})).text(), Some("no"));
        for other in [
            json!({"chat": {"id": 4712, "type": "private"}}),
            json!({"chat": {"id": 4711, "type": "group"}}),
            json!({"from": {"id": 4711, "is_bot": true}}),
            json!({"from": {"id": 4712}}),
            json!({"from": null}),
        ] {
            assert!(!incoming(&other).is_of("4711"), "{other}");
        }
        for empty in [json!({"text": null}), json!({"text": "  "})] {
            assert_eq!(incoming(&empty).text(), None, "{empty}");
        }
        // Other kinds of updates are no error.
        let other: Update = serde_json::from_value(json!({"update_id": 2, "poll": {"id": "1"}})).unwrap();
        assert!(other.message.is_none());
    }

    #[test]
    fn the_last_link_of_a_message_of_the_bot_is_the_one_that_is_answered() {
        assert_eq!(incoming(&json!({})).token(LINK), Some("1.a-B_9"));
        assert_eq!(incoming(&json!({})).token("https://other.example/answers/"), None);
        for other in [
            json!({"reply_to_message": null}),
            json!({"reply_to_message": {"from": {"id": 1, "is_bot": true}}}),
            json!({"reply_to_message": {"from": {"id": 4711}, "text": format!("{LINK}1.a")}}),
            json!({"reply_to_message": {"from": {"id": 1, "is_bot": true}, "text": format!("{LINK}\nnothing")}}),
        ] {
            assert_eq!(incoming(&other).token(LINK), None, "{other}");
        }
    }

    #[test]
    fn a_word_is_an_answer_only_if_it_stands_alone() {
        for (text, is) in [
            ("Yes.", Words::Yes),
            (" ok! ", Words::Yes),
            ("Ja", Words::Yes),
            ("\u{1f44d}", Words::Yes),
            ("No", Words::No),
            ("PAUSE", Words::Pause),
            ("/pause", Words::Pause),
            ("stop", Words::Pause),
            ("resume", Words::Resume),
            ("yes, but without links", Words::Other),
            ("no links please", Words::Other),
            ("approved", Words::Other),
            ("", Words::Other),
        ] {
            assert_eq!(Words::of(text), is, "{text}");
        }
    }
}
