//! Makes a request smaller that is larger than the model's context.
//!
//! First the results of tools are shortened, and images are left out, in all messages but the newest. If that is not enough, the older half of the conversation
//! is left out. The system blocks, the tools, the summary of earlier messages and the newest message stay as they are.

use super::request::{Block, Message, ModelRequest, Role};
use super::sight;

/// Results of tools are shortened to this many bytes.
const SHORT_RESULT: usize = 1_000;

const SHORTENED: &str = "\n(shortened: the conversation is larger than the model's context)";

/// How the block with the summary of earlier messages begins. Only the first block of a conversation can be one.
pub const EARLIER: &str = "<earlier_messages>\n";

const LEFT_OUT: &str = "(Older messages of this conversation were left out, because they do not fit.)";

/// What was taken away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reduction {
    pub results_shortened: usize,
    pub images_left_out: usize,
    pub messages_left_out: usize,
}

/// Makes a request smaller by one step. `None` if it cannot become smaller; then the request is unchanged.
pub fn reduce(request: &mut ModelRequest) -> Option<Reduction> {
    let results_shortened = shorten_results(&mut request.messages);
    let older = request.messages.split_last_mut().map_or(&mut [][..], |(_, older)| older);
    let images_left_out = sight::leave_out_all(older.iter_mut().flat_map(|message| &mut message.content));
    if results_shortened > 0 || images_left_out > 0 {
        return Some(Reduction { results_shortened, images_left_out, messages_left_out: 0 });
    }
    let messages_left_out = leave_out(&mut request.messages);
    request.stable_messages = request.stable_messages.map(|stable| stable.saturating_sub(messages_left_out));
    (messages_left_out > 0).then_some(Reduction { messages_left_out, ..Reduction::default() })
}

/// Shortens the results of tools in all messages but the last.
fn shorten_results(messages: &mut [Message]) -> usize {
    let mut count = 0;
    let Some((_, older)) = messages.split_last_mut() else { return 0 };
    for block in older.iter_mut().flat_map(|message| &mut message.content) {
        if let Block::ToolResult { content, .. } = block
            && content.len() > SHORT_RESULT + SHORTENED.len()
        {
            content.truncate(content.floor_char_boundary(SHORT_RESULT));
            content.push_str(SHORTENED);
            count += 1;
        }
    }
    count
}

/// Leaves out about half of the messages. What stays begins with a message of the user that answers no call.
fn leave_out(messages: &mut Vec<Message>) -> usize {
    let begins = |message: &Message| {
        message.role == Role::User
            && !message.content.iter().any(|block| matches!(block, Block::ToolResult { .. }))
    };
    let half = messages.len().div_ceil(2);
    let later = (half..messages.len()).find(|at| begins(&messages[*at]));
    let earlier = || (1..half).rev().find(|at| begins(&messages[*at]));
    let Some(first) = later.or_else(earlier) else { return 0 };
    let is_summary = |block: &&Block| block.as_text().is_some_and(|text| text.starts_with(EARLIER));
    let summary = messages.first().and_then(|message| message.content.first()).filter(is_summary).cloned();
    messages.drain(..first);
    if let Some(message) = messages.first_mut() {
        if message.content.first().and_then(Block::as_text) != Some(LEFT_OUT) {
            message.content.insert(0, Block::text(LEFT_OUT));
        }
        message.content.splice(..0, summary);
    }
    first
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::request::ToolChoice;
    use super::*;

    fn call(id: &str) -> Message {
        let call = Block::ToolUse { id: id.into(), name: "look".into(), input: json!({}) };
        Message { role: Role::Assistant, content: vec![call] }
    }

    fn result(id: &str, length: usize) -> Message {
        let content = "€".repeat(length);
        let result = Block::ToolResult { tool_use_id: id.into(), content, is_error: false };
        Message { role: Role::User, content: vec![result] }
    }

    fn request(messages: Vec<Message>) -> ModelRequest {
        ModelRequest {
            system: Vec::new(),
            tools: Vec::new(),
            tool_choice: ToolChoice::Auto,
            messages,
            max_output_tokens: 1,
            cache_last_turn: true,
            ..ModelRequest::default()
        }
    }

    #[test]
    fn results_become_shorter_before_messages_are_left_out() {
        let mut request = request(vec![
            Message::user("one"),
            call("a"),
            result("a", 5_000),
            Message::assistant("done"),
            Message::user("two"),
            call("b"),
            result("b", 5_000),
        ]);
        assert_eq!(reduce(&mut request), Some(Reduction { results_shortened: 1, ..Reduction::default() }));
        let Block::ToolResult { content, .. } = &request.messages[2].content[0] else { panic!() };
        assert!(content.starts_with("€€€") && content.ends_with(SHORTENED) && content.len() < 1_100);
        assert_eq!(request.messages[6], result("b", 5_000), "the newest result is whole");
        assert_eq!(reduce(&mut request), Some(Reduction { messages_left_out: 4, ..Reduction::default() }));
        assert_eq!(request.messages.len(), 3);
        assert_eq!(request.messages[0].text(), format!("{LEFT_OUT}two"));
        let last = request.clone();
        assert_eq!(reduce(&mut request), None);
        assert_eq!(request, last);
    }

    #[test]
    fn the_summary_of_earlier_messages_stays() {
        let summary = format!("{}> s\n</earlier_messages>", EARLIER);
        let mut messages: Vec<Message> =
            (0..8).flat_map(|_| [Message::user("q"), Message::assistant("a")]).collect();
        messages.push(Message::user("new"));
        messages[0].content.insert(0, Block::text(summary.as_str()));
        let mut request = ModelRequest { stable_messages: Some(16), ..request(messages) };
        while reduce(&mut request).is_some() {
            assert_eq!(request.stable_messages, Some(request.messages.len() - 1));
        }
        let kept: Vec<&str> = request.messages[0].content.iter().filter_map(Block::as_text).collect();
        assert_eq!(kept, [summary.as_str(), LEFT_OUT, "new"]);
    }

    #[test]
    fn older_images_are_left_out_first() {
        let seen = |text: &str| {
            let image = serde_json::from_value(
                json!({"type": "image", "media_type": "image/png", "bytes": 1, "width": 1, "height": 1}),
            );
            Message { role: Role::User, content: vec![image.unwrap(), Block::text(text)] }
        };
        let mut request = request(vec![seen("one"), Message::assistant("done"), seen("two")]);
        assert_eq!(reduce(&mut request), Some(Reduction { images_left_out: 1, ..Reduction::default() }));
        assert!(
            request.messages[0].text().contains("left out") && request.messages[0].text().ends_with("one")
        );
        assert!(matches!(request.messages[2].content[0], Block::Image(_)), "the newest image stays");
    }

    /// A turn of a conversation: how many calls it makes, and how long their results are.
    fn turns() -> impl Strategy<Value = Vec<(usize, usize)>> {
        prop::collection::vec((0usize..4, 0usize..3_000), 1..12)
    }

    proptest! {
        #[test]
        fn it_ends_and_the_rest_can_be_sent(turns in turns()) {
            let mut messages = Vec::new();
            for (turn, (calls, length)) in turns.iter().enumerate() {
                messages.push(Message::user(format!("question {turn}")));
                for at in 0..*calls {
                    let id = format!("{turn}.{at}");
                    messages.extend([call(&id), result(&id, *length)]);
                }
                if turn + 1 < turns.len() {
                    messages.push(Message::assistant("answer"));
                }
            }
            let newest = messages.last().cloned();
            let mut request = request(messages);
            let size = |request: &ModelRequest| serde_json::to_string(&request.messages).unwrap().len();
            let mut before = size(&request);
            let mut steps = 0;
            while reduce(&mut request).is_some() {
                steps += 1;
                // The note may be longer than the messages that it replaces, but it comes once.
                prop_assert!(size(&request) < before + LEFT_OUT.len() + 40 && steps < 12);
                before = size(&request);
                prop_assert_eq!(request.messages[0].role, Role::User);
                let first = &request.messages[0].content;
                let answers = first.iter().any(|block| matches!(block, Block::ToolResult { .. }));
                prop_assert!(!answers, "each result follows its call");
            }
            let last = request.messages.last().unwrap();
            let kept = newest.unwrap();
            prop_assert!(last.content.ends_with(&kept.content), "the newest message stays");
        }
    }
}
