//! What was said and done in a run, and how a model is shown it.

use super::step::{After, Call, CallResult, Purpose, Reply, Step};
use super::{MAX_TRANSCRIPT, repeats, results};
use crate::ids::CallId;
use crate::models::estimate::{block_bytes, json_bytes};
use crate::models::{Block, Message, Role, StopReason};
use crate::prompts;

/// The steps of a run, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    pub steps: Vec<Step>,
    /// How many outputs the run has saved.
    pub outputs: usize,
}

impl Transcript {
    #[must_use]
    pub fn count(&self, purpose: Purpose) -> usize {
        self.steps.iter().filter(|step| step.purpose == purpose).count()
    }

    /// How much the steps hold, in bytes: their texts, the inputs of calls and the results.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let reply = |reply: &Reply| {
            let blocks = reply.blocks.iter().map(block_bytes).sum::<usize>();
            let calls = reply.calls.iter().map(|call| json_bytes(&call.input)).sum::<usize>();
            reply.text.len() + blocks + calls
        };
        let results = |step: &Step| step.results.iter().map(|result| result.content.len()).sum::<usize>();
        self.steps.iter().map(|step| reply(&step.reply) + results(step)).sum()
    }

    /// Whether the steps hold as much as a run may.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.bytes() > MAX_TRANSCRIPT
    }

    /// How often a check before the last step has sent the run back to work.
    pub(super) fn revisions_before_last(&self) -> usize {
        let before = &self.steps[..self.steps.len().saturating_sub(1)];
        before.iter().filter(|step| step.verdict().is_some_and(|verdict| !verdict.meets)).count()
    }

    /// Whether a check of the conditions before the last step has sent the run back to work.
    pub(super) fn was_told_of_conditions(&self) -> bool {
        let before = &self.steps[..self.steps.len().saturating_sub(1)];
        before.iter().any(|step| step.report().is_some_and(|report| !report.unmet.is_empty()))
    }

    /// How many checks in a row, up to the last step, could not be read.
    pub(super) fn unreadable_checks(&self) -> usize {
        let checks = self.steps.iter().rev().take_while(|step| step.purpose == Purpose::Check);
        checks.take_while(|step| step.verdict().is_none()).count()
    }

    /// What was said in these steps, as a model takes it. The same steps are always the same messages. With
    /// `continues_cut_off` a reply that was cut off is followed by the request to go on.
    #[must_use]
    pub fn messages(&self, continues_cut_off: bool) -> Vec<Message> {
        self.told(continues_cut_off, |step, call| Some(call_id(step, call)))
    }

    /// The same for a conversation that goes on after the run has ended: the rest of a long result cannot be read there.
    #[must_use]
    pub fn history(&self) -> Vec<Message> {
        self.told(false, |_, _| None)
    }

    /// Whether a model was shown only the beginning of a result.
    #[must_use]
    pub fn has_long_result(&self) -> bool {
        self.steps.iter().flat_map(|step| &step.results).any(|result| results::is_long(&result.content))
    }

    /// A page of a result that a model was shown only the beginning of.
    ///
    /// # Errors
    /// A sentence for the model.
    pub fn result_page(&self, id: CallId, from_char: usize) -> Result<String, String> {
        let step = (id.step as usize).checked_sub(1).and_then(|step| self.steps.get(step));
        let result = step.and_then(|step| step.results.get(id.at as usize));
        match result.filter(|result| results::is_long(&result.content)) {
            Some(result) => results::page(&result.content, from_char),
            None => Err(format!("there is no long result {id}; a result that was cut names its call_id")),
        }
    }

    fn told(&self, continues_cut_off: bool, id: impl Fn(usize, usize) -> Option<CallId>) -> Vec<Message> {
        let mut messages = Vec::new();
        for at in 0..self.steps.len() {
            let step = &self.steps[at];
            match step.purpose {
                Purpose::Person | Purpose::Nudge => {
                    messages.push(Message::user(step.reply.text.as_str()));
                }
                // It is a part of what was said before the run.
                Purpose::Summary => {}
                Purpose::Conditions => {
                    if let Some(report) = step.report().filter(|report| !report.unmet.is_empty()) {
                        messages.push(Message::user(prompts::meet(&report.unmet)));
                    }
                }
                Purpose::Check => {
                    if let Some(verdict) = step.verdict().filter(|verdict| !verdict.meets) {
                        messages.push(Message::user(prompts::revise(&verdict.missing)));
                    }
                }
                Purpose::Work => {
                    if !step.reply.blocks.is_empty() {
                        messages.push(Message { role: Role::Assistant, content: step.reply.blocks.clone() });
                    }
                    let results = step.reply.calls.iter().zip(&step.results).enumerate();
                    let mut content: Vec<Block> =
                        results.filter_map(|(call, (of, result))| told(of, result, id(at, call))).collect();
                    if let (Some(repeats), Some(last)) = (self.repeats_at(at), content.last_mut()) {
                        warn(last, &repeats.warning());
                    }
                    if continues_cut_off && step.reply.stop == StopReason::MaxTokens && !step.has_calls() {
                        content.push(Block::text("You were cut off. Go on where you stopped."));
                    }
                    if !content.is_empty() {
                        messages.push(Message { role: Role::User, content });
                    }
                }
            }
        }
        messages
    }

    fn repeats_at(&self, at: usize) -> Option<repeats::Repeats> {
        if self.steps[at].results.is_empty() {
            return None;
        }
        repeats::find(&self.steps[..=at])
    }
}

/// The id of a call, by the indexes of its step and of the call. In a run that began its conversation anew, it counts from
/// there.
fn call_id(step: usize, call: usize) -> CallId {
    CallId::new(u32::try_from(step + 1).unwrap_or(u32::MAX), call)
}

fn warn(block: &mut Block, warning: &str) {
    if let Block::ToolResult { content: text, .. } | Block::Text { text } = block {
        text.push_str("\n\n");
        text.push_str(warning);
    }
}

/// A result as a block. A signal that was delivered has none: there is nothing to say about it.
fn told(call: &Call, result: &CallResult, id: Option<CallId>) -> Option<Block> {
    let shown = || results::shown(&result.content, id);
    match &call.id {
        Some(id) if call.invalid.is_none() => {
            Some(Block::ToolResult { tool_use_id: id.clone(), content: shown(), is_error: result.is_error })
        }
        _ if result.after == After::Rest => None,
        _ if result.after == After::Repair => Some(Block::text(shown())),
        _ => Some(Block::text(prompts::result_of(&call.name, &shown()))),
    }
}
