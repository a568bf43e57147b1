//! Replaces the oldest messages of a long conversation by a summary, before the first step of a run.
//!
//! The summary is stored in one transaction with a step of the run and with what the call has cost. So after a crash there is the
//! old summary or the new one, and a process that takes the run over does not write it again.

use domain::agent_loop::{Purpose, Reply};
use domain::chats::Thread;
use domain::chats::summary::Cut;
use domain::models::{Message, ModelRequest, ToolChoice};
use domain::prompts;
use domain::runs::EventKind;
use serde_json::json;

use super::call::{CallError, Replied};
use super::recorder::Stored;
use super::{Driver, Kind};
use crate::store::Store;
use crate::store::keys::Guard;
use crate::store::table::Write;

/// The longest summary that a model may write, in tokens.
const MAX_SUMMARY_TOKENS: u32 = 2_500;

/// How often a summary is written if the conversation changes meanwhile. After that, the turn goes on without it.
const TRIES: usize = 2;

/// Messages that a summary replaces.
pub struct ToSummarise {
    pub cut: Cut,
    pub thread: Thread,
    /// The version of the stored summary. 0: there is none.
    pub version: u64,
    /// The condition that the conversation exists and was not reset since it was read.
    pub unchanged: Write,
}

impl<K: Kind> Driver<K> {
    /// Writes a summary if the conversation is too long. If no model can be asked, the program writes it. Returns whether a summary was
    /// stored.
    pub(super) async fn summarise(&mut self) -> Result<bool, CallError> {
        for _ in 0..TRIES {
            let Some(to_summarise) = self.kind.to_summarise(self.kind_cx()).await? else { return Ok(false) };
            let ToSummarise { cut, thread, version, unchanged } = to_summarise;
            let called = self.boxed_call(Purpose::Summary, request(&cut)).await;
            let Replied { reply, settle, usage } = match called {
                Ok(replied) => replied,
                Err(error @ (CallError::Cancelled(_) | CallError::PutDown | CallError::Failed(_))) => {
                    return Err(error);
                }
                // What a failed call has cost is stored already.
                Err(error) => {
                    tracing::warn!(?error, "no model summarises the conversation, so the program does");
                    Replied { reply: Reply::default(), settle: Vec::new(), usage: None }
                }
            };
            let now = self.cx.clock.now();
            let summary = cut.summary(Some(&reply.text), self.recorder.run().run_id, now);
            let data = json!({
                "first": summary.first, "up_to": summary.up_to, "count": summary.count, "by": summary.by,
                "step": self.journal.last() + 1,
            });
            let reply = Reply { text: summary.text.clone(), ..Reply::default() };
            let replied = Replied { reply, settle: settle.clone(), usage: usage.clone() };
            let write = Store::summary_write(self.recorder.owner(), thread, &summary, version)?;
            let events = vec![(EventKind::HistoryCut, data)];
            match self.store_with(Purpose::Summary, replied, events, vec![unchanged, write]).await? {
                Stored::Yes => return Ok(true),
                // Another process has stored this step.
                Stored::Refused(Guard::RunStep) => return Err(self.recorder.lose().into()),
                // The conversation was reset or deleted, or another run has cut it. The call must be paid all the same.
                Stored::Refused(_) => {
                    let _ = self.recorder.commit(usage.into_iter().collect(), settle).await?;
                }
            }
        }
        Ok(false)
    }
}

fn request(cut: &Cut) -> ModelRequest {
    ModelRequest {
        system: prompts::summary(),
        tool_choice: ToolChoice::Auto,
        messages: vec![Message::user(prompts::to_summarise(cut))],
        max_output_tokens: MAX_SUMMARY_TOKENS,
        ..ModelRequest::default()
    }
}
