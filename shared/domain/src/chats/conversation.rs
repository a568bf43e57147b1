//! A chat, its messages, and the part of them that a model sees.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::signals::{Deliverable, Reply};
use crate::chats::told_by_platform::is_told_by_platform;
use crate::ids::{AgentId, ChatId, MessageId, ProjectId, RunId};
use crate::memory::told::Told;
use crate::models::image::{self, Image, ImageInput};
use crate::models::{Block, Message, Role};
use crate::validate::FieldErrors;

/// The longest message of a person, in characters.
pub const MAX_MESSAGE: usize = 32_000;
/// The most messages in one append. DynamoDB accepts a hundred writes in a transaction. One of them marks the request as done, and
/// three tell memory of the messages.
pub const MAX_APPEND: usize = 96;
/// What a person reads of a reply that has proposed something without a word.
pub const READY: &str = "It is ready and waits for your yes.";
/// The longest title of a chat, in characters.
pub const MAX_TITLE: usize = 200;
/// The longest title that is cut from a message, in characters.
const TITLE_OF_MESSAGE: usize = 80;

/// The title of a chat that begins with this message.
#[must_use]
pub fn title_of(message: &str) -> String {
    message.trim().chars().take(TITLE_OF_MESSAGE).collect()
}

/// A conversation. Each message is a record of its own, so an append never rewrites another message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chat {
    pub chat_id: ChatId,
    /// `None` for the conversation that sets an agent up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The project whose theme agent it is with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<ProjectId>,
    #[serde(default)]
    pub title: String,
    pub created_at: Timestamp,
    /// Messages up to this one were reset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_after: Option<MessageId>,
}

impl Chat {
    /// Checks the limits of every conversation, wherever it comes from.
    ///
    /// # Errors
    /// Every invalid field with its limit.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        errors.length("title", &self.title, 0, MAX_TITLE);
        errors.into_result(())
    }
}

/// One message. A reply that called tools is several messages: the calls, their results, and the text after them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChatMessage {
    pub message_id: MessageId,
    pub role: Role,
    pub content: Vec<Block>,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Who wrote a message of the role `user`. Messages of earlier versions do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Author>,
    /// What its writer was told of memory.
    #[serde(default, skip_serializing_if = "Told::is_empty")]
    pub told: Told,
}

/// Who wrote a message that a model reads as one of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    Person,
    /// The results of calls, and requests to repair a call.
    Platform,
}

/// What stands in place of a message that said what the person has deleted.
const DELETED: &str = "(The person has deleted this.)";

impl ChatMessage {
    /// Takes its words out. Calls and their results stay as pairs, because models refuse a call without a result.
    pub fn lose_words(&mut self) {
        let without = |block: Block| match block {
            Block::ToolUse { id, name, .. } => Some(Block::ToolUse { id, name, input: json!({}) }),
            Block::ToolResult { tool_use_id, is_error, .. } => {
                Some(Block::ToolResult { tool_use_id, content: DELETED.to_owned(), is_error })
            }
            Block::Text { .. } | Block::Image(_) | Block::Native { .. } => None,
        };
        self.content = std::mem::take(&mut self.content).into_iter().filter_map(without).collect();
        if self.content.is_empty() {
            self.content.push(Block::text(DELETED));
        }
    }

    /// The text for people: what was said, as it was streamed. A signal and its payload are no part of it. It is empty for tool calls,
    /// their results, and what the platform tells the model.
    #[must_use]
    pub fn text(&self) -> String {
        if self.is_of_platform() {
            return String::new();
        }
        let text: String = self.words().collect();
        // Other texts were not read for signals.
        let may_signal = self.role == Role::Assistant && self.run_id.is_some();
        if may_signal { around_signals(text) } else { text }
    }

    /// All that it says, also to tools and in their results.
    #[must_use]
    pub fn all_words(&self) -> String {
        let mut text = String::new();
        for block in &self.content {
            match block {
                Block::Text { text: words, .. } => text.push_str(words),
                Block::ToolUse { input, .. } => text.push_str(&input.to_string()),
                Block::ToolResult { content, .. } => text.push_str(content),
                Block::Image(_) | Block::Native { .. } => continue,
            }
            text.push('\n');
        }
        text
    }

    fn words(&self) -> impl Iterator<Item = &str> {
        self.content.iter().filter_map(Block::as_text)
    }

    /// Whether the platform wrote this message, although a model reads it as one of the user.
    #[must_use]
    pub fn is_of_platform(&self) -> bool {
        if self.role != Role::User {
            return false;
        }
        match self.author {
            Some(author) => author == Author::Platform,
            // A person sends no results.
            None if self.content.iter().any(|block| matches!(block, Block::ToolResult { .. })) => true,
            None => {
                self.run_id.is_some() && self.words().count() > 0 && self.words().all(is_told_by_platform)
            }
        }
    }

    /// Checks what keys of objects are built from: an image's name must begin with the id of its message.
    ///
    /// # Errors
    /// Every invalid field.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        check_images(&mut errors, self.message_id, &self.content);
        errors.into_result(())
    }

    pub fn images(&self) -> impl Iterator<Item = &Image> {
        self.content
            .iter()
            .filter_map(|block| if let Block::Image(image) = block { Some(image) } else { None })
    }
}

/// Checks the names of the images of a message.
pub fn check_images(errors: &mut FieldErrors, message: MessageId, content: &[Block]) {
    let begin = format!("{message}-");
    for (i, block) in content.iter().enumerate() {
        let Block::Image(image) = block else { continue };
        let number = image.object.strip_prefix(&begin).unwrap_or_default();
        if number.is_empty() || number.len() > 4 || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            errors.add(
                format!("content[{i}].object"),
                format!("must be `{begin}` and a number of 1 to 4 digits"),
            );
        }
    }
}

/// A message as a client appends it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, ToSchema)]
pub struct NewMessage {
    #[schema(value_type = String, example = "user")]
    pub role: Role,
    /// 1 to 32,000 characters.
    #[schema(min_length = 1, max_length = 32_000)]
    pub content: String,
    /// Up to 8, together at most 3,000,000 bytes before the encoding. Only messages of the user have images.
    #[serde(default)]
    pub images: Vec<ImageInput>,
}

impl NewMessage {
    /// # Errors
    /// If the content is empty or too long, or an image is invalid.
    pub fn read(&self) -> Result<Vec<Block>, FieldErrors> {
        let mut errors = FieldErrors::default();
        errors.length("content", &self.content, 1, MAX_MESSAGE);
        let images = image::read_all(&mut errors, "images", &self.images);
        if self.role == Role::Assistant && !self.images.is_empty() {
            errors.add("images", "must be empty: only messages of the user have images");
        }
        errors.into_result(said(&self.content, images))
    }
}

/// The blocks of a person's message. Images come first, as providers recommend.
#[must_use]
pub fn said(text: &str, images: Vec<Image>) -> Vec<Block> {
    images.into_iter().map(Block::Image).chain([Block::text(text)]).collect()
}

/// The newest part of a conversation with at most `max_bytes`, in the form that a model accepts. It begins with a
/// person's text (never with a tool result whose call was cut off), and neighbouring messages of the same role are
/// joined.
#[must_use]
pub fn window(messages: &[ChatMessage], max_bytes: usize) -> Vec<Message> {
    let mut bytes = 0;
    let mut start = messages.len();
    for (i, message) in messages.iter().enumerate().rev() {
        bytes += message.content.iter().map(block_bytes).sum::<usize>();
        if bytes > max_bytes && start < messages.len() {
            break;
        }
        if begins_a_turn(message) {
            start = i;
        }
    }
    let mut window: Vec<Message> = Vec::new();
    for message in &messages[start..] {
        match window.last_mut() {
            Some(last) if last.role == message.role => last.content.extend(message.content.iter().cloned()),
            _ => window.push(Message { role: message.role, content: message.content.clone() }),
        }
    }
    window
}

pub(super) fn begins_a_turn(message: &ChatMessage) -> bool {
    message.role == Role::User && !message.is_of_platform()
}

/// A reply without its signals. If it only delivered something, the sentence that was streamed.
fn around_signals(text: String) -> String {
    let Reply { text: around, deliverables } = Reply::parse(&text);
    if deliverables.is_empty() {
        return text;
    }
    let delivers = |one: &Deliverable| matches!(one, Deliverable::Asset(_) | Deliverable::Actions { .. });
    if !around.trim().is_empty() {
        around
    } else if deliverables.iter().any(delivers) {
        READY.to_owned()
    } else {
        String::new()
    }
}

pub(super) fn block_bytes(block: &Block) -> usize {
    match block {
        Block::Text { text } => text.len(),
        // Images have a limit of their own.
        Block::Image(_) => 0,
        Block::ToolUse { name, input, .. } => name.len() + input.to_string().len(),
        Block::ToolResult { content, .. } => content.len(),
        Block::Native { block, .. } => block.to_string().len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(role: Role, content: Vec<Block>) -> ChatMessage {
        ChatMessage {
            message_id: MessageId::from_uuid(uuid::Uuid::nil()),
            role,
            content,
            created_at: Timestamp::UNIX_EPOCH,
            run_id: None,
            author: None,
            told: Told::default(),
        }
    }

    fn of_run(role: Role, text: &str) -> ChatMessage {
        let run_id = Some(RunId::from_uuid(uuid::Uuid::from_u128(1)));
        ChatMessage { run_id, ..message(role, vec![Block::text(text)]) }
    }

    #[test]
    fn people_read_what_stands_around_a_signal() {
        let asset = "GENERATE_ASSET\n---\n{\"title\": \"Oil\", \"content\": \"a\"}";
        for (text, expected) in [
            ("Hello".to_owned(), "Hello"),
            (format!("Here it is:\n\n{asset}"), "Here it is:\n\n"),
            (format!("One.\n{asset}\nTwo."), "One.\nTwo."),
            (asset.to_owned(), READY),
            (format!("```\n{asset}\n```"), READY),
            ("GENERATE_ASSET\n---\n{broken".to_owned(), ""),
            ("USE_TOOL: query_actions\n{}".to_owned(), ""),
            ("READY_TO_CREATE\n---\nTITLE: a\nGOAL: b\nSUCCESS_CRITERIA: c\nTIMELINE: d".to_owned(), ""),
            ("Write GENERATE_ASSET to get one.".to_owned(), "Write GENERATE_ASSET to get one."),
        ] {
            assert_eq!(of_run(Role::Assistant, &text).text(), expected, "{text:?}");
            // What a person or another program has written is shown as it is.
            assert_eq!(of_run(Role::User, &text).text(), text);
            assert_eq!(message(Role::Assistant, vec![Block::text(text.as_str())]).text(), text);
        }
    }

    #[test]
    fn what_the_platform_tells_a_model_is_not_a_persons() {
        let repair = crate::chats::told_by_platform::repair("`title` is missing");
        let result = "Result of query_actions:\n[]";
        for (text, is_of_platform) in [
            (repair.as_str(), true),
            (result, true),
            ("Result of the vote:\nyes", false),
            ("Why did you say: What you tried to deliver could not be read?", false),
            ("What you tried to deliver could not be read: why?", false),
            ("", false),
        ] {
            // Messages of earlier versions.
            let early = of_run(Role::User, text);
            assert_eq!(early.is_of_platform(), is_of_platform, "{text:?}");
            assert_eq!(
                (early.text().is_empty(), begins_a_turn(&early)),
                (is_of_platform || text.is_empty(), !is_of_platform)
            );
            assert!(!message(Role::User, vec![Block::text(text)]).is_of_platform(), "{text:?}");
            // Later ones say who wrote them.
            let persons = ChatMessage { author: Some(Author::Person), ..of_run(Role::User, text) };
            assert_eq!(persons.text(), text);
            let platforms = ChatMessage { author: Some(Author::Platform), ..of_run(Role::User, text) };
            assert_eq!((platforms.text().as_str(), begins_a_turn(&platforms)), ("", false));
        }
        let stored = json!({"message_id": MessageId::from_uuid(uuid::Uuid::nil()), "role": "user", "created_at": Timestamp::UNIX_EPOCH,
            "content": [{"type": "text", "text": "Hello"}]});
        let early: ChatMessage = serde_json::from_value(stored.clone()).unwrap();
        assert_eq!((early.author, serde_json::to_value(&early).unwrap()), (None, stored));
    }

    fn conversation() -> Vec<ChatMessage> {
        vec![
            message(Role::User, vec![Block::text("first")]),
            message(Role::Assistant, vec![Block::text("one")]),
            message(Role::User, vec![Block::text("second")]),
            message(
                Role::Assistant,
                vec![Block::ToolUse { id: "t".into(), name: "query_actions".into(), input: json!({}) }],
            ),
            message(
                Role::User,
                vec![Block::ToolResult { tool_use_id: "t".into(), content: "[]".into(), is_error: false }],
            ),
            message(Role::Assistant, vec![Block::text("two")]),
            message(Role::User, vec![Block::text("third")]),
        ]
    }

    #[test]
    fn a_window_begins_with_a_persons_words() {
        let check = |max_bytes: usize, first: &str, count: usize| {
            let window = window(&conversation(), max_bytes);
            assert_eq!((window[0].text().as_str(), window.len()), (first, count), "{max_bytes} bytes");
        };
        check(1_000, "first", 7);
        check(35, "second", 5);
        check(12, "third", 1);
        // The newest message is always included, even if it is larger than the limit.
        check(1, "third", 1);
        assert_eq!(window(&[], 10), []);
    }

    #[test]
    fn a_message_without_its_words_is_still_a_part_of_the_conversation() {
        let mut messages = conversation();
        messages[3].content.push(Block::text("I look for it"));
        messages.iter_mut().for_each(ChatMessage::lose_words);
        let window = window(&messages, 10_000);
        let roles: Vec<Role> = window.iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::User, Role::Assistant].repeat(4)[..7]);
        let told = format!("{window:?}");
        assert!(!["first", "one", "two", "third", "look"].iter().any(|word| told.contains(word)), "{told}");
        assert!(matches!(&window[3].content[..], [Block::ToolUse { name, .. }] if name == "query_actions"));
        assert!(
            matches!(&window[4].content[..], [Block::ToolResult { tool_use_id, .. }] if tool_use_id == "t")
        );
    }

    #[test]
    fn words_without_an_answer_join_the_next() {
        let messages =
            [message(Role::User, vec![Block::text("lost")]), message(Role::User, vec![Block::text("again")])];
        let window = window(&messages, 100);
        assert_eq!(window.len(), 1);
        assert_eq!(window[0].content.len(), 2);
    }
}
