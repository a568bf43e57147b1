//! Breakpoints of OpenAI's prompt cache.
//!
//! Models that charge for cache writes find a cached prefix only at a breakpoint. Without our own, the only breakpoint is at
//! the newest message, and the part of the instructions that changes with the time lies before it.

use domain::models::prices::{self, ModelPrice};
use domain::models::{ModelId, ModelRequest};
use serde_json::{Value, json};

/// How many breakpoints of ours a request may write. The newest message may be one more.
const MOST: usize = 3;

/// Whether the prefixes of `model` are cached at breakpoints.
pub(super) fn has(model: &ModelId) -> bool {
    prices::price(model).is_some_and(ModelPrice::sells_cache_writes)
}

/// The system blocks as parts of a message. The last of the stable blocks have breakpoints.
pub(super) fn parts(request: &ModelRequest, kind: &str) -> Vec<Value> {
    let blocks = request.system.iter().filter(|block| !block.text.trim().is_empty());
    let blocks: Vec<_> = blocks.collect();
    let marked = blocks.iter().enumerate().rev().filter(|(_, block)| block.cache.is_some());
    let marked: Vec<usize> = marked.map(|(at, _)| at).take(MOST).collect();
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
