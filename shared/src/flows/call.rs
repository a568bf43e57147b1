//! One call of a model: reserved before, streamed to the run's followers, settled after.

use std::time::Duration;

use domain::chats::signals::{Deliverable, SignalReader};
use domain::ids::Owner;
use domain::models::{Block, ModelError, ModelEvent, ModelRequest, StopReason, Usage, estimate, prices};
use domain::runs::{EventKind, RunError};
use futures::StreamExt;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval};

use crate::context::Cx;
use crate::models::Route;
use crate::problem::Error;
use crate::stream::Recorder;

/// A reply shorter than this is no use: where the budget pays for less, the call is not made.
const MIN_OUTPUT_TOKENS: u32 = 64;

/// How often a call looks up from the stream: for a cancel, the deadline, and text that waits to be stored.
const LOOK_UP: Duration = Duration::from_millis(250);

/// What a model answered.
#[derive(Debug)]
pub struct Reply {
    /// Its text as it was, signals and all, with tool calls: what the conversation keeps.
    pub blocks: Vec<Block>,
    /// What is chat of it.
    pub text: String,
    /// What signals in the text deliver.
    pub deliverables: Vec<Deliverable>,
    pub tool_calls: Vec<ToolUse>,
    pub stop: StopReason,
}

/// A native tool call.
#[derive(Clone, Debug)]
pub struct ToolUse {
    pub id: String,
    pub name: String,
    /// The arguments, or why they can't be read.
    pub input: Result<Value, String>,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum CallError {
    Budget(String),
    Model(ModelError),
    /// Somebody asked the run to stop.
    Cancelled,
    /// The time is nearly up.
    Deadline,
    Failed(Error),
}

impl<E: Into<Error>> From<E> for CallError {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl CallError {
    /// As the run's record has it. `Cancelled` and `Deadline` are no errors of a run.
    #[must_use]
    pub fn run_error(&self) -> RunError {
        let (code, detail, retryable) = match self {
            Self::Budget(detail) => ("budget_exceeded", detail.clone(), false),
            Self::Model(error) => (model_code(error), error.to_string(), error.is_retryable()),
            Self::Cancelled => ("cancelled", "the run was cancelled".to_owned(), false),
            Self::Deadline => ("deadline", "the time for this run was up".to_owned(), true),
            Self::Failed(error) => (error.code(), error.detail(), true),
        };
        RunError { code: code.to_owned(), detail, retryable }
    }
}

fn model_code(error: &ModelError) -> &'static str {
    match error {
        ModelError::RateLimited { .. } => "model_rate_limited",
        ModelError::Overloaded { .. } => "model_overloaded",
        ModelError::Server { .. } | ModelError::Unexpected { .. } => "model_failed",
        ModelError::ProviderTimeout { .. } | ModelError::Timeout(_) => "model_timeout",
        ModelError::Connection | ModelError::ConnectionLost => "model_unreachable",
        ModelError::Truncated | ModelError::Malformed => "model_answer_broken",
        ModelError::ContextTooLarge | ModelError::RequestTooLarge => "conversation_too_large",
        ModelError::InvalidRequest { .. } | ModelError::Unsendable(_) => "model_request_invalid",
        ModelError::Authentication | ModelError::Permission => "model_key_refused",
        ModelError::Quota => "model_quota",
        ModelError::NotFound => "model_unknown",
        ModelError::Refused => "model_declined",
        ModelError::NotConfigured => "model_not_configured",
    }
}

/// The ceilings under which a run calls models.
#[derive(Clone, Copy, Debug)]
pub struct Ceilings {
    /// Of the whole run, in micro-dollars.
    pub run_micros: i64,
    /// When work must be put down.
    pub deadline: Option<Timestamp>,
}

/// Calls a model. Its text goes to the run's followers as it comes where `shown`; its usage and cost go to the run's record
/// whatever becomes of the call.
///
/// # Errors
/// [`CallError`]; a failed call that cost something is settled too.
pub async fn call(
    cx: &Cx,
    owner: &Owner,
    recorder: &mut Recorder,
    route: &Route,
    mut request: ModelRequest,
    ceilings: Ceilings,
    shown: bool,
) -> Result<Reply, CallError> {
    let reserved_at = cx.clock.now();
    let reserved = reserve(cx, owner, recorder, &mut request, ceilings).await?;
    if recorder.run().prefix_hash.is_none() {
        recorder.run_mut().prefix_hash = Some(request.prefix_hash());
    }
    let (ended, usage) = read(cx, recorder, route, &request, ceilings, shown).await;
    let cost = prices::cost_micros(&request.model, &usage).unwrap_or(0);
    if reserved > 0 || cost > 0 {
        cx.store.settle(owner, reserved_at, reserved, cost).await?;
    }
    let run = recorder.run_mut();
    run.usage += usage;
    run.cost_micros += cost;
    if usage != Usage::default() {
        let (usage, cost_micros) = (run.usage, run.cost_micros);
        recorder.event(EventKind::UsageUpdated, json!({"usage": usage, "cost_micros": cost_micros})).await?;
    }
    ended
}

/// Takes what the call may cost from the day's ceiling, having cut the reply to what the run's ceiling pays for.
async fn reserve(
    cx: &Cx,
    owner: &Owner,
    recorder: &Recorder,
    request: &mut ModelRequest,
    ceilings: Ceilings,
) -> Result<i64, CallError> {
    let input = estimate::request_tokens(request);
    let left = ceilings.run_micros - recorder.run().cost_micros;
    let Some(affordable) = prices::max_output_affordable(&request.model, input, left) else {
        // A model without a price, for example one of the person's own machine, costs nothing that is known.
        return Ok(0);
    };
    request.max_output_tokens = request.max_output_tokens.min(affordable);
    if request.max_output_tokens < MIN_OUTPUT_TOKENS {
        return Err(CallError::Budget(format!(
            "the run's ceiling of {} micro-dollars does not pay for another call ({} are spent)",
            ceilings.run_micros,
            recorder.run().cost_micros
        )));
    }
    let amount = prices::estimate_micros(&request.model, input, request.max_output_tokens).unwrap_or(0);
    let ceiling = cx.config.budget.day_micros;
    if cx.store.reserve(owner, cx.clock.now(), amount, ceiling).await?.done() {
        return Ok(amount);
    }
    Err(CallError::Budget(format!(
        "today's ceiling of {ceiling} micro-dollars does not pay for this call, which may cost {amount}"
    )))
}

/// Reads a reply to its end, or until something stops it; and what was used until then.
async fn read(
    cx: &Cx,
    recorder: &mut Recorder,
    route: &Route,
    request: &ModelRequest,
    ceilings: Ceilings,
    shown: bool,
) -> (Result<Reply, CallError>, Usage) {
    let mut events = route.stream(request);
    let mut reader = SignalReader::default();
    let mut look_up = interval(LOOK_UP);
    look_up.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut text, mut tool_calls, mut used) = (String::new(), Vec::new(), Usage::default());
    let ended = loop {
        let event = tokio::select! {
            event = events.next() => event,
            _ = look_up.tick() => {
                match look(cx, recorder, ceilings).await {
                    Ok(()) => continue,
                    Err(error) => break Err(error),
                }
            }
        };
        match event {
            None => break Err(CallError::Model(ModelError::Truncated)),
            Some(Err(error)) => break Err(CallError::Model(error)),
            Some(Ok(ModelEvent::Started { .. })) => {}
            Some(Ok(ModelEvent::Usage(usage))) => used = usage,
            Some(Ok(ModelEvent::TextDelta(delta))) => {
                let chat = reader.feed(&delta);
                text.push_str(&chat);
                if shown && let Err(error) = recorder.text(&chat).await {
                    break Err(error.into());
                }
            }
            Some(Ok(ModelEvent::ToolUse { id, name, input })) => {
                tool_calls.push(ToolUse { id, name, input: Ok(input) });
            }
            Some(Ok(ModelEvent::InvalidToolInput { id, name, reason, .. })) => {
                tool_calls.push(ToolUse { id, name, input: Err(reason) });
            }
            Some(Ok(ModelEvent::Finished { stop, assistant_blocks, usage })) => {
                used = usage;
                let rest = reader.finish();
                text.push_str(&rest.text);
                if shown && let Err(error) = recorder.text(&rest.text).await {
                    break Err(error.into());
                }
                break Ok(Reply {
                    blocks: assistant_blocks,
                    text,
                    deliverables: rest.deliverables,
                    tool_calls,
                    stop,
                });
            }
        }
    };
    (ended, used)
}

async fn look(cx: &Cx, recorder: &mut Recorder, ceilings: Ceilings) -> Result<(), CallError> {
    recorder.flush_if_due().await?;
    recorder.keep_alive().await?;
    if recorder.is_cancelled().await? {
        return Err(CallError::Cancelled);
    }
    if ceilings.deadline.is_some_and(|deadline| cx.clock.now() >= deadline) {
        return Err(CallError::Deadline);
    }
    Ok(())
}
