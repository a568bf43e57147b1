//! The conversation as the providers accept it.

use std::collections::BTreeSet;

use domain::models::error::Unsendable;
use domain::models::{Block, ModelError, ModelRequest, Provider, Role};

/// The conversation in a form that every provider accepts: neighbouring messages of the same role are joined, and blank
/// text and other providers' own blocks are removed.
pub(crate) fn turns(
    request: &ModelRequest,
    provider: Provider,
) -> Result<Vec<(Role, Vec<&Block>)>, ModelError> {
    let sent = |block: &&Block| match block {
        Block::Text { text } => !text.trim().is_empty(),
        Block::Native { provider: theirs, .. } => *theirs == provider,
        Block::Image(image) => image.data.is_some(),
        Block::ToolUse { .. } | Block::ToolResult { .. } => true,
    };
    let mut turns: Vec<(Role, Vec<&Block>)> = Vec::new();
    for message in &request.messages {
        let blocks = message.content.iter().filter(sent);
        let mut blocks = blocks.peekable();
        if blocks.peek().is_none() {
            continue;
        }
        match turns.last_mut() {
            Some((role, joined)) if *role == message.role => joined.extend(blocks),
            _ => turns.push((message.role, blocks.collect())),
        }
    }
    check(&turns, request.max_output_tokens).map_err(ModelError::Unsendable)?;
    // Tool results must come first in their message.
    for (_, blocks) in &mut turns {
        blocks.sort_by_key(|block| !matches!(block, Block::ToolResult { .. }));
    }
    Ok(turns)
}

/// The number of turns before the newest words of a person. The turns after them belong to the reply that is being written: calls and
/// their results.
pub(crate) fn before_newest_words(turns: &[(Role, Vec<&Block>)]) -> usize {
    let is_words = |block: &&Block| !matches!(block, Block::ToolResult { .. });
    turns.iter().rposition(|(role, blocks)| *role == Role::User && blocks.iter().any(is_words)).unwrap_or(0)
}

fn check(turns: &[(Role, Vec<&Block>)], max_output_tokens: u32) -> Result<(), Unsendable> {
    match turns.first() {
        None => return Err(Unsendable::NoMessages),
        Some((Role::Assistant, _)) => return Err(Unsendable::FirstMessageNotUser),
        Some((Role::User, _)) if max_output_tokens == 0 => return Err(Unsendable::NoOutput),
        Some((Role::User, _)) => {}
    }
    let mut open = BTreeSet::new();
    for (role, blocks) in turns {
        let mut called = BTreeSet::new();
        for block in blocks {
            match block {
                Block::Image(_) if *role == Role::Assistant => return Err(Unsendable::WrongRole),
                Block::ToolUse { .. } if *role == Role::User => return Err(Unsendable::WrongRole),
                Block::ToolResult { .. } if *role == Role::Assistant => return Err(Unsendable::WrongRole),
                Block::ToolUse { id, .. } => {
                    called.insert(id.as_str());
                }
                Block::ToolResult { tool_use_id, .. } if !open.remove(tool_use_id.as_str()) => {
                    return Err(Unsendable::UnmatchedToolResult);
                }
                Block::ToolResult { .. } | Block::Text { .. } | Block::Image(_) | Block::Native { .. } => {}
            }
        }
        if !open.is_empty() {
            return Err(Unsendable::UnansweredToolUse);
        }
        open = called;
    }
    if open.is_empty() { Ok(()) } else { Err(Unsendable::UnansweredToolUse) }
}
