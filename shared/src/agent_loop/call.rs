//! One call of a model: reserved before, streamed to the run's followers, settled after.

use std::time::Duration;

use domain::agent_loop::{Call, Reply};
use domain::chats::signals::SignalReader;
use domain::models::meter::Meter;
use domain::models::{ModelError, ModelEvent, ModelRequest, Usage, estimate, prices};
use domain::runs::{EventKind, Reservation, RunError};
use futures::StreamExt;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval};

use super::recorder::{Recorder, Reserved};
use crate::context::Cx;
use crate::models::Route;
use crate::problem::Error;
use crate::store::table::Write;

/// A reply shorter than this is no use: if the budget pays for less, the call is not made.
const MIN_OUTPUT_TOKENS: u32 = 64;

/// How often a call looks up from the stream: for a cancel, the deadline, and text that waits to be stored.
pub(super) const LOOK_UP: Duration = Duration::from_millis(250);

/// Why there is no answer.
#[derive(Debug)]
pub enum CallError {
    Budget(String),
    Model(ModelError),
    /// Somebody asked the run to stop.
    Cancelled,
    /// The time is nearly up, or the process is about to end.
    PutDown,
    Failed(Error),
}

impl<E: Into<Error>> From<E> for CallError {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl CallError {
    /// As the run's record has it. `Cancelled` and `PutDown` are no errors of a run.
    #[must_use]
    pub fn run_error(&self) -> RunError {
        let (code, detail, retryable) = match self {
            Self::Budget(detail) => ("budget_exceeded", detail.clone(), false),
            Self::Model(error) => (model_code(error), error.to_string(), error.is_retryable()),
            Self::Cancelled => ("cancelled", "the run was cancelled".to_owned(), false),
            Self::PutDown => ("deadline", "the time for this run was up".to_owned(), true),
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
        ModelError::Connection { .. } | ModelError::ConnectionLost => "model_unreachable",
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

/// The limits under which a run calls models.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The ceiling of the whole run, in micro-dollars.
    pub run_micros: i64,
    /// When work must be put down.
    pub deadline: Timestamp,
}

/// A reply that is not stored yet, with what must be stored with it.
pub struct Replied {
    pub reply: Reply,
    /// Gives the reservation back.
    pub settle: Vec<Write>,
    /// Tells followers what was used.
    pub usage: Option<(EventKind, Value)>,
}

/// Calls a model. Its text goes to the run's followers as it comes if `shown`. What it used is counted in the run's record
/// whatever becomes of the call; after a reply, the caller stores that together with the reply.
///
/// # Errors
/// [`CallError`]; a failed call is settled.
pub async fn call(
    cx: &Cx,
    recorder: &mut Recorder,
    route: &Route,
    mut request: ModelRequest,
    limits: Limits,
    shown: bool,
) -> Result<Replied, CallError> {
    let prefix_hash = recorder.run().prefix_hash.is_none().then(|| request.prefix_hash());
    if let Some(hash) = prefix_hash {
        recorder.run_mut().prefix_hash = Some(hash);
    }
    reserve(cx, recorder, &mut request, limits).await?;
    let mut meter = Meter::default();
    let ended = read(cx, recorder, route, &request, limits, shown, &mut meter).await;
    let used = meter.used(
        &request,
        match &ended {
            Err(CallError::Model(error)) => Some(error),
            _ => None,
        },
    );
    let cost = prices::cost_micros(&request.model, &used).unwrap_or(0);
    let settle = recorder.settle(used, cost);
    let (run, step) = (recorder.run(), recorder.step());
    let usage = (used != Usage::default()).then(|| {
        (EventKind::UsageUpdated, json!({"usage": run.usage, "cost_micros": run.cost_micros, "step": step}))
    });
    match ended {
        Ok(reply) => Ok(Replied { reply, settle, usage }),
        Err(error) => {
            if !settle.is_empty() || usage.is_some() {
                let _ = recorder.commit(usage.into_iter().collect(), settle).await?;
            }
            Err(error)
        }
    }
}

/// Takes what the call may cost from the day's ceiling, having cut the reply to what the run's ceiling pays for.
async fn reserve(
    cx: &Cx,
    recorder: &mut Recorder,
    request: &mut ModelRequest,
    limits: Limits,
) -> Result<(), CallError> {
    let input_tokens = estimate::request_tokens(request);
    let spent = recorder.run().cost_micros;
    let left = limits.run_micros - spent;
    let Some(affordable) = prices::max_output_affordable(&request.model, input_tokens, left) else {
        // A model without a price, for example one of the person's own machine, costs nothing that is known.
        return Ok(());
    };
    request.max_output_tokens = request.max_output_tokens.min(affordable);
    if request.max_output_tokens < MIN_OUTPUT_TOKENS {
        return Err(CallError::Budget(format!(
            "the run's ceiling of {} micro-dollars does not pay for another call ({spent} are spent)",
            limits.run_micros,
        )));
    }
    let micros =
        prices::estimate_micros(&request.model, input_tokens, request.max_output_tokens).unwrap_or(0);
    let ceiling = cx.config.budget.day_micros;
    let reservation = Reservation { at: cx.clock.now(), micros, model: request.model.clone(), input_tokens };
    match recorder.reserve(reservation, ceiling).await? {
        Reserved::Yes => Ok(()),
        Reserved::TooDear => Err(CallError::Budget(format!(
            "today's ceiling of {ceiling} micro-dollars does not pay for this call, which may cost {micros}"
        ))),
    }
}

/// Reads a reply to its end, or until something stops it.
async fn read(
    cx: &Cx,
    recorder: &mut Recorder,
    route: &Route,
    request: &ModelRequest,
    limits: Limits,
    shown: bool,
    meter: &mut Meter,
) -> Result<Reply, CallError> {
    let mut events = route.stream(request);
    let mut reader = SignalReader::default();
    let mut look_up = interval(LOOK_UP);
    look_up.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut text, mut native) = (String::new(), Vec::new());
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            _ = look_up.tick() => {
                look(cx, recorder, limits).await?;
                continue;
            }
        };
        let event = match event {
            None => return Err(CallError::Model(ModelError::Truncated)),
            Some(Err(error)) => return Err(CallError::Model(error)),
            Some(Ok(event)) => event,
        };
        meter.record(&event);
        match event {
            ModelEvent::Started { .. } | ModelEvent::Usage(_) | ModelEvent::TryLost => {}
            ModelEvent::TextDelta(delta) => {
                let chat = reader.feed(&delta);
                text.push_str(&chat);
                if shown {
                    recorder.text(&chat).await?;
                }
            }
            ModelEvent::ToolUse { id, name, input } => {
                native.push(Call { id: Some(id), name, input, invalid: None, implied: false });
            }
            ModelEvent::InvalidToolInput { id, name, reason, .. } => {
                let (id, input) = (Some(id), Value::Null);
                native.push(Call { id, name, input, invalid: Some(reason), implied: false });
            }
            ModelEvent::Finished { stop, assistant_blocks, .. } => {
                let rest = reader.finish();
                text.push_str(&rest.text);
                if shown {
                    recorder.text(&rest.text).await?;
                }
                let mut calls: Vec<Call> = rest.deliverables.into_iter().map(Call::of_signal).collect();
                calls.extend(native);
                return Ok(Reply { blocks: assistant_blocks, text, calls, stop });
            }
        }
    }
}

/// Stores text that waits, keeps the lease, and says if the run must stop.
///
/// # Errors
/// [`CallError::Cancelled`], [`CallError::PutDown`], or when the table does not answer.
pub async fn look(cx: &Cx, recorder: &mut Recorder, limits: Limits) -> Result<(), CallError> {
    recorder.flush_if_due().await?;
    recorder.keep_alive().await?;
    if recorder.is_cancelled().await? {
        return Err(CallError::Cancelled);
    }
    if cx.stopping.is_set() || cx.clock.now() >= limits.deadline {
        return Err(CallError::PutDown);
    }
    Ok(())
}
