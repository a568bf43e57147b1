//! Where a request asks a provider to end cached prefixes.

use domain::models::{Block, CacheTtl, ModelRequest, Provider, Role};

use super::call;

/// The largest number of marks that the APIs accept.
const MAX_MARKS: usize = 4;

/// A mark finds what an earlier request has cached at most so many blocks before it. The APIs look back 20 blocks.
const LOOKBACK: usize = 18;

/// The end of a prefix that a provider should cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CachePoint {
    /// After the last tool.
    Tools,
    /// After the system block with this index, counted without blank blocks.
    System(usize),
    /// After the turn of the conversation with this index.
    Turn(usize),
    /// After the conversation.
    LastTurn,
}

/// The marks in the order of the request. Keeps the last four, because a later mark covers what an earlier one covers.
/// No mark lives longer than one before it. `turns` is the conversation as it is sent.
pub(super) fn marks(
    request: &ModelRequest,
    turns: &[(Role, Vec<&Block>)],
    provider: Provider,
) -> Vec<(CachePoint, CacheTtl)> {
    let blocks = request.system.iter().filter(|block| !block.text.trim().is_empty());
    let system: Vec<(CachePoint, CacheTtl)> = blocks
        .enumerate()
        .filter_map(|(index, block)| Some((CachePoint::System(index), block.cache?)))
        .collect();
    // In a conversation, the other marks need the place.
    let has_place = !request.tools.is_empty() && request.stable_messages.is_none();
    let tools = system.first().filter(|_| has_place).map(|(_, ttl)| (CachePoint::Tools, *ttl));
    let stable = stable_ends(turns, call::stable(request, provider));
    let stable = stable.into_iter().map(|turn| (CachePoint::Turn(turn), CacheTtl::FiveMinutes));
    let last_turn = request.cache_last_turn.then_some((CachePoint::LastTurn, CacheTtl::FiveMinutes));
    let mut marks: Vec<_> = tools.into_iter().chain(system).chain(stable).chain(last_turn).collect();
    marks.drain(..marks.len().saturating_sub(MAX_MARKS));
    let mut longest = CacheTtl::OneHour;
    for (_, ttl) in &mut marks {
        if *ttl == CacheTtl::FiveMinutes {
            longest = CacheTtl::FiveMinutes;
        }
        *ttl = longest;
    }
    marks
}

/// The turns after which what stays the same ends: the last of the `stable` first turns. If it is too far from where the request before
/// had its mark, that place comes first, because its cached prefix would not be found otherwise.
fn stable_ends(turns: &[(Role, Vec<&Block>)], stable: usize) -> Vec<usize> {
    let Some(last) = stable.checked_sub(1).filter(|last| last + 1 < turns.len()) else { return Vec::new() };
    let before = call::newest_words(&turns[..stable]).unwrap_or(0);
    let added = turns[before..stable].iter().map(|(_, blocks)| blocks.len()).sum::<usize>();
    let before = before.checked_sub(1).filter(|_| added > LOOKBACK);
    before.into_iter().chain([last]).collect()
}

#[cfg(test)]
mod tests {
    use domain::models::{Message, SystemBlock};
    use serde_json::json;

    use super::*;

    fn call(id: usize) -> Block {
        Block::ToolUse { id: id.to_string(), name: "look".into(), input: json!({}) }
    }

    fn result(id: usize) -> Block {
        Block::ToolResult { tool_use_id: id.to_string(), content: "r".into(), is_error: false }
    }

    /// The marks of a conversation whose last message is new.
    fn marked(messages: Vec<Message>) -> Vec<CachePoint> {
        let request = ModelRequest {
            system: vec![
                SystemBlock::cached("a", CacheTtl::OneHour),
                SystemBlock::cached("b", CacheTtl::FiveMinutes),
            ],
            stable_messages: Some(messages.len() - 1),
            messages,
            max_output_tokens: 1,
            cache_last_turn: true,
            ..ModelRequest::default()
        };
        let turns = call::turns(&request, Provider::Anthropic).unwrap();
        marks(&request, &turns, Provider::Anthropic).into_iter().map(|(point, _)| point).collect()
    }

    #[test]
    fn what_the_next_turn_sends_again_ends_at_a_mark() {
        use CachePoint::{LastTurn, System, Turn};
        let said = |count: usize| -> Vec<Message> {
            let message =
                |at: usize| if at.is_multiple_of(2) { Message::user("u") } else { Message::assistant("a") };
            (0..count).map(message).collect()
        };
        assert_eq!(marked(said(1)), [System(0), System(1), LastTurn]);
        assert_eq!(marked(said(3)), [System(0), System(1), Turn(1), LastTurn]);
        assert_eq!(marked(said(41)), [System(0), System(1), Turn(39), LastTurn]);
        // Two messages of a person in a row are sent as one, which is not complete yet.
        let unanswered = [said(3), vec![Message::user("u")]].concat();
        assert_eq!(marked(unanswered), [System(0), System(1), Turn(1), LastTurn]);
    }

    #[test]
    fn after_a_turn_with_many_calls_the_earlier_place_is_marked_too() {
        use CachePoint::{LastTurn, System, Turn};
        for (calls, expected) in [
            (8, vec![System(0), System(1), Turn(5), LastTurn]),
            (9, vec![System(1), Turn(1), Turn(5), LastTurn]),
            (30, vec![System(1), Turn(1), Turn(5), LastTurn]),
        ] {
            let called = Message { role: Role::Assistant, content: (0..calls).map(call).collect() };
            let results = Message { role: Role::User, content: (0..calls).map(result).collect() };
            let messages = vec![
                Message::user("one"),
                Message::assistant("done"),
                Message::user("two"),
                called,
                results,
                Message::assistant("done"),
                Message::user("three"),
            ];
            assert_eq!(marked(messages), expected, "{calls} calls");
        }
    }
}
