//! Breakpoints of OpenAI's prompt cache.
//!
//! Models that charge for cache writes find a cached prefix only at a breakpoint. Without our own, the only breakpoint is at
//! the newest message, and the part of the instructions that changes with the time lies before it.

use domain::models::prices::{self, ModelPrice};
use domain::models::{Block, ModelId, ModelRequest, Provider, Role};
use serde_json::{Value, json};

use super::call;

/// How many breakpoints of ours a request may write. The newest message may be one more.
const MOST: usize = 3;

/// Whether the prefixes of `model` are cached at breakpoints.
pub(super) fn has(model: &ModelId) -> bool {
    prices::price(model).is_some_and(ModelPrice::sells_cache_writes)
}

/// How many of them are in the conversation: where what is sent again ends, and where it ended in the request before.
const MOST_TURNS: usize = 2;

/// The turns that get breakpoints: the last ones with a person's words that later requests send again without a change.
pub(super) fn turns(request: &ModelRequest, turns: &[(Role, Vec<&Block>)]) -> Vec<usize> {
    let stable = &turns[..call::stable(request, Provider::OpenAi).min(turns.len())];
    let has_words = |(role, blocks): &(Role, Vec<&Block>)| {
        *role == Role::User && blocks.last().is_some_and(|block| matches!(block, Block::Text { .. }))
    };
    let ends = stable.iter().enumerate().rev().filter(|(_, turn)| has_words(turn));
    ends.map(|(at, _)| at).take(MOST_TURNS).collect()
}

/// Adds a breakpoint at the end of a message that ends with a text.
pub(super) fn mark(message: &mut Value, kind: &str) {
    let content = &mut message["content"];
    if let Some(text) = content.as_str() {
        *content = json!([{"type": kind, "text": text}]);
    }
    let last = content.as_array_mut().and_then(|parts| parts.last_mut());
    if let Some(part) = last.filter(|part| part["type"] == kind) {
        part["prompt_cache_breakpoint"] = json!({"mode": "explicit"});
    }
}

/// The system blocks as parts of a message. The last of the stable blocks have breakpoints, besides `turns` in the conversation.
pub(super) fn parts(request: &ModelRequest, kind: &str, turns: usize) -> Vec<Value> {
    let blocks = request.system.iter().filter(|block| !block.text.trim().is_empty());
    let blocks: Vec<_> = blocks.collect();
    let marked = blocks.iter().enumerate().rev().filter(|(_, block)| block.cache.is_some());
    let marked: Vec<usize> = marked.map(|(at, _)| at).take(MOST - turns).collect();
    let last = blocks.len().saturating_sub(1);
    let part = |(at, block): (usize, &&domain::models::SystemBlock)| {
        let end = if at == last { "" } else { "\n\n" };
        let mut part = json!({"type": kind, "text": format!("{}{end}", block.text)});
        if marked.contains(&at) {
            part["prompt_cache_breakpoint"] = json!({"mode": "explicit"});
        }
        part
    };
    blocks.iter().enumerate().map(part).collect()
}

/// Whether the provider makes a breakpoint at the newest message too.
pub(super) fn options(request: &ModelRequest) -> Value {
    json!({"mode": if request.cache_last_turn { "implicit" } else { "explicit" }})
}
