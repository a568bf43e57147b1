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
    let mut turns: Vec<(Role, Vec<&Block>)> = Vec::new();
    for message in &request.messages {
        let blocks = message.content.iter().filter(|block| is_sent(block, provider));
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

fn is_sent(block: &Block, provider: Provider) -> bool {
    match block {
        Block::Text { text } => !text.trim().is_empty(),
        Block::Native { provider: theirs, .. } => *theirs == provider,
        Block::Image(image) => image.data.is_some(),
        Block::ToolUse { .. } | Block::ToolResult { .. } => true,
    }
}

/// How many of the first turns have only messages that later requests send again without a change.
pub(crate) fn stable(request: &ModelRequest, provider: Provider) -> usize {
    let stable = request.stable_messages.unwrap_or(0);
    let roles = |messages: &[domain::models::Message]| {
        let sent = messages
            .iter()
            .filter(|message| message.content.iter().any(|block| is_sent(block, provider)))
            .map(|message| message.role);
        sent.collect::<Vec<Role>>()
    };
    let (first, rest) = request.messages.split_at(stable.min(request.messages.len()));
    let (first, rest) = (roles(first), roles(rest));
    let turns = first.chunk_by(|one, next| one == next).count();
    // A turn that goes on in a message that changes is not stable.
    let goes_on = first.last().is_some_and(|last| rest.first() == Some(last));
    turns.saturating_sub(usize::from(goes_on))
}

/// The number of turns before the newest words of a person. The turns after them belong to the reply that is being written: calls and
/// their results.
pub(crate) fn before_newest_words(turns: &[(Role, Vec<&Block>)]) -> usize {
    newest_words(turns).unwrap_or(0)
}

/// The index of the turn with the newest words of a person.
pub(crate) fn newest_words(turns: &[(Role, Vec<&Block>)]) -> Option<usize> {
    let is_words = |block: &&Block| !matches!(block, Block::ToolResult { .. });
    turns.iter().rposition(|(role, blocks)| *role == Role::User && blocks.iter().any(is_words))
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
