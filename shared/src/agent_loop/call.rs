//! One call of a model: its cost is reserved before the call and settled after it. Its text is streamed to the run's followers.

use domain::agent_loop::{Call, Reply};
use domain::ceilings::{Ceiling, CeilingOf, CeilingReached};
use domain::chats::signals::SignalReader;
use domain::models::{Block, ModelError, ModelEvent, ModelRef, ModelRequest, StopReason, Usage, sources};
use domain::runs::form::StopReader;
use domain::runs::{EventKind, Reservation, Run, RunError, RunFallback};
use jiff::Timestamp;
use models::gateway::{self, Cause, Fallback, Quote, Requester};
use models::{BreakerChange, Route};
use serde_json::{Value, json};

use super::recorder::{Recorder, Reserved, Stored};
use crate::context::Cx;
use crate::error::Error;
use crate::model_choice;
use crate::money::ceilings::{self, Ceilings};
use crate::store::Tries;
use crate::store::accounts::spend::{Spend, Spender};
use crate::store::runs::CancelCause;
use crate::store::table::Write;

/// The shortest useful reply, in tokens. If the budget does not pay for it, the call is not made.
const MIN_OUTPUT_TOKENS: u32 = 64;

/// What separates the texts of two steps in a run's reply.
pub(super) const BETWEEN_STEPS: &str = "\n\n";

/// Why there is no answer.
#[derive(Debug)]
pub enum CallError {
    /// A ceiling does not pay for the call. A person may be asked to raise it.
    Ceiling(Box<CeilingReached>),
    /// A ceiling does not pay for the call, and it is not raised.
    Budget(String),
    Model(ModelError),
    /// No model that may answer has a tool that the run needs.
    ToolMissing(String),
    /// Somebody asked the run to stop, or has stopped the account.
    Cancelled(CancelCause),
    /// The time is nearly over, or the process is about to end.
    PutDown,
    Failed(Error),
}

impl<E: Into<Error>> From<E> for CallError {
    fn from(error: E) -> Self {
        match error.into() {
            stopped if stopped.is_account_stopped() => Self::Cancelled(CancelCause::AccountStopped),
            error => Self::Failed(error),
        }
    }
}

impl From<ModelError> for CallError {
    fn from(error: ModelError) -> Self {
        Self::Model(error)
    }
}

impl CallError {
    /// The error for the run's record. `Cancelled` and `PutDown` never appear in the record of a failed run.
    #[must_use]
    pub fn run_error(&self) -> RunError {
        let (code, detail, retryable) = match self {
            Self::Ceiling(reached) => ("budget_exceeded", reached.to_string(), false),
            Self::Budget(detail) => ("budget_exceeded", detail.clone(), false),
            Self::Model(error) => (model_code(error), error.to_string(), error.is_retryable()),
            Self::ToolMissing(detail) => ("tool_unavailable", detail.clone(), false),
            Self::Cancelled(_) => ("cancelled", "the run was cancelled".to_owned(), false),
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
        ModelError::AddressRefused { .. } => "model_address_refused",
        ModelError::NotConfigured => "model_not_configured",
    }
}

/// The limits under which a run calls models.
#[derive(Clone, Debug)]
pub struct CallLimits {
    pub ceilings: Ceilings,
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

/// Calls a model. If `shown`, its text is streamed to the run's followers. The usage is always added to the run's record, even if
/// the call fails. After a reply, the caller stores the record together with the reply.
///
/// # Errors
/// [`CallError`]. The cost of a failed call is already settled.
pub async fn call(
    cx: &Cx,
    recorder: &mut Recorder,
    route: &Route,
    mut request: ModelRequest,
    limits: CallLimits,
    shown: bool,
) -> Result<Replied, CallError> {
    cx.config.models.features.apply(&mut request);
    let preferred = &route.candidates[0];
    let run = recorder.run_mut();
    // Checks and summaries have prefixes of their own.
    if shown && run.prefix_hash.is_none() {
        run.prefix_hash = Some(request.prefix_hash(preferred.id()));
    }
    let partial = PartialReply::of(run, shown);
    let mut requester = RunRequester {
        cx,
        recorder,
        limits,
        shown,
        has_shown: false,
        partial,
        reply: None,
        settle: Vec::new(),
        usage: None,
    };
    let ended = gateway::call(&route.candidates, &cx.clock, request, &mut requester).await;
    let RunRequester { recorder, reply, settle, usage, .. } = requester;
    match ended.and_then(|()| reply.ok_or(CallError::Model(ModelError::Truncated))) {
        Ok(reply) => Ok(Replied { reply, settle, usage }),
        Err(error) => {
            if !settle.is_empty() || usage.is_some() {
                let _ = recorder.commit(usage.into_iter().collect(), settle).await?;
            }
            Err(error)
        }
    }
}

/// The part of a reply that has arrived.
#[derive(Default)]
struct PartialReply {
    reader: SignalReader,
    stops: StopReader,
    /// The text with its signals.
    raw: String,
    text: String,
    native: Vec<Call>,
}

impl PartialReply {
    /// A check has no form: it is no reply.
    fn of(run: &Run, shown: bool) -> Self {
        let stop = if shown { run.form.stop.as_slice() } else { &[] };
        let before = if run.message.is_empty() { "" } else { BETWEEN_STEPS };
        Self { stops: StopReader::new(stop, before), ..Self::default() }
    }

    /// The blocks of a reply, up to the text that ends it.
    fn cut(&self, mut blocks: Vec<Block>) -> Vec<Block> {
        let mut left = self.raw.rfind(self.stops.rest()).unwrap_or(self.raw.len());
        blocks.retain_mut(|block| match block {
            Block::Text { text } => {
                let end = text.floor_char_boundary(left);
                left -= end;
                text.truncate(end);
                !text.is_empty()
            }
            Block::ToolUse { id, .. } => self.native.iter().any(|call| call.id.as_ref() == Some(id)),
            Block::Image(_) | Block::ToolResult { .. } | Block::Native { .. } => true,
        });
        let has_words =
            blocks.iter().any(|block| matches!(block, Block::Text { .. } | Block::ToolUse { .. }));
        // Providers refuse a message that has only thoughts.
        if has_words { blocks } else { Vec::new() }
    }
}

/// A run that calls a model.
struct RunRequester<'a> {
    cx: &'a Cx,
    recorder: &'a mut Recorder,
    limits: CallLimits,
    /// Whether followers get the text.
    shown: bool,
    has_shown: bool,
    partial: PartialReply,
    reply: Option<Reply>,
    /// Gives the reservation back.
    settle: Vec<Write>,
    usage: Option<(EventKind, Value)>,
}

impl RunRequester<'_> {
    async fn text(&mut self, chat: &str) -> Result<(), CallError> {
        let chat = self.partial.stops.feed(chat);
        self.pass(&chat).await
    }

    async fn pass(&mut self, chat: &str) -> Result<(), CallError> {
        self.partial.text.push_str(chat);
        if self.shown && !chat.is_empty() {
            self.has_shown = true;
            self.recorder.text(chat).await?;
        }
        Ok(())
    }
}

impl Requester for RunRequester<'_> {
    type Error = CallError;

    /// Shortens the longest reply to what the ceilings pay for, and reserves the highest possible cost under each of them.
    async fn reserve(&mut self, quote: &Quote<'_>) -> Result<u32, CallError> {
        let &Quote { model, price, input_tokens, max_output_tokens, tools_micros } = quote;
        let run = self.recorder.run();
        let (charge, spent) = (run.charge, run.cost_micros.saturating_add(run.helpers_micros));
        let run_ceiling = Ceiling { of: CeilingOf::Run, micros: self.limits.ceilings.run_micros };
        let affordable =
            |micros: i64| price.max_output_affordable(input_tokens, micros.saturating_sub(tools_micros));
        let estimate = |output| price.estimate_micros(input_tokens, output).saturating_add(tools_micros);
        let pays_for = affordable(run_ceiling.micros - spent);
        let least = estimate(MIN_OUTPUT_TOKENS);
        let most = |of| ceilings::most(self.cx, of);
        let reached = |ceiling: Ceiling, raised, committed, needs| {
            let reached = CeilingReached::new(ceiling, raised, committed, needs, most(ceiling.of));
            CallError::Ceiling(Box::new(reached))
        };
        if pays_for < MIN_OUTPUT_TOKENS {
            let raised = self.recorder.run().raised_micros;
            return Err(reached(run_ceiling, raised, spent, least));
        }
        let mut longest = max_output_tokens.min(pays_for);
        let now = self.cx.clock.now();
        // What costs nothing is not limited by a ceiling that is used up.
        let is_free = price.is_free() && tools_micros == 0;
        let mut of_times = if is_free { Vec::new() } else { self.limits.ceilings.of_times.clone() };
        let mut tries = Tries::default();
        loop {
            tries.next().await?;
            let rates = Some(*price.rates_for(input_tokens));
            let reservation = Reservation {
                at: now,
                date: Some(now.to_zoned_datetime(self.limits.ceilings.zone.clone()).date()),
                micros: estimate(longest),
                of: Vec::new(),
                model: model.model.clone(),
                vendor: Some(model.vendor),
                input_tokens,
                rates,
            };
            match self.recorder.reserve(reservation, &of_times).await? {
                Reserved::Yes => return Ok(longest),
                Reserved::TooDear => {}
            }
            // A ceiling may have been raised. Otherwise, what is left may pay for a shorter reply.
            for (ceiling, base) in of_times.iter_mut().zip(&self.limits.ceilings.of_times) {
                let spender = Spender::of(self.recorder.owner(), self.recorder.run());
                let spend = self.cx.store.spend_of(spender, ceiling.of, now).await?;
                ceiling.micros = ceilings::raised(self.cx, *base, spend.raised_micros);
                let left = charge.affords(ceiling.micros.saturating_sub(spend.committed_micros));
                let pays_for = affordable(left);
                if pays_for < MIN_OUTPUT_TOKENS {
                    let Spend { raised_micros, committed_micros, .. } = spend;
                    return Err(reached(*ceiling, raised_micros, committed_micros, charge.counted(least)));
                }
                longest = longest.min(pays_for);
            }
        }
    }

    async fn event(&mut self, event: ModelEvent) -> Result<(), CallError> {
        let is_over = self.partial.stops.is_over();
        match event {
            ModelEvent::Started { .. } | ModelEvent::Usage(_) | ModelEvent::TryLost(_) => {}
            // The reply has ended. What the model still writes counts for the cost only.
            ModelEvent::TextDelta(_) | ModelEvent::ToolUse { .. } | ModelEvent::InvalidToolInput { .. }
                if is_over => {}
            ModelEvent::TextDelta(delta) => {
                self.partial.raw.push_str(&delta);
                let chat = self.partial.reader.feed(&delta);
                self.text(&chat).await?;
            }
            ModelEvent::ThinkingDelta(delta) => {
                // It may be shown although the call fails later: it is no part of the reply.
                if self.shown {
                    self.recorder.thinking(&delta).await?;
                }
            }
            ModelEvent::Found(found) => {
                let (step, now) = (self.recorder.step(), self.cx.clock.now());
                let run = self.recorder.run_mut();
                run.taint(step, now);
                sources::add(&mut run.sources, found);
            }
            ModelEvent::ToolUse { id, name, input } => {
                self.partial.native.push(Call { id: Some(id), name, input, invalid: None, implied: false });
            }
            ModelEvent::InvalidToolInput { id, name, reason, .. } => {
                let (id, input) = (Some(id), Value::Null);
                self.partial.native.push(Call { id, name, input, invalid: Some(reason), implied: false });
            }
            ModelEvent::Finished { stop, assistant_blocks, .. } => {
                let rest = std::mem::take(&mut self.partial.reader).finish();
                self.text(&rest.text).await?;
                let held = self.partial.stops.finish();
                self.pass(&held).await?;
                let partial = std::mem::take(&mut self.partial);
                let (blocks, stop) = match partial.stops.is_over() {
                    true => (partial.cut(assistant_blocks), StopReason::StopSequence),
                    false => (assistant_blocks, stop),
                };
                let PartialReply { text, native, .. } = partial;
                let mut calls: Vec<Call> = rest.deliverables.into_iter().map(Call::of_signal).collect();
                calls.extend(native);
                self.reply = Some(Reply { blocks, text, calls, stop });
            }
        }
        Ok(())
    }

    async fn look(&mut self) -> Result<(), CallError> {
        look(self.cx, self.recorder, self.limits.deadline).await
    }

    fn has_shown(&self) -> bool {
        self.has_shown
    }

    async fn settle(&mut self, model: &ModelRef, used: Usage, cost_micros: i64) -> Result<(), CallError> {
        self.settle = self.recorder.settle(model, used, cost_micros);
        if used.web_searches > 0 {
            // Not every provider says what its searches have found.
            let (step, now) = (self.recorder.step(), self.cx.clock.now());
            self.recorder.run_mut().taint(step, now);
        }
        let (run, step) = (self.recorder.run(), self.recorder.step());
        self.usage = (used != Usage::default()).then(|| {
            let data = json!({"usage": run.usage, "cost_micros": run.cost_micros, "step": step});
            (EventKind::UsageUpdated, data)
        });
        Ok(())
    }

    async fn breaker_changed(&mut self, change: &BreakerChange) {
        model_choice::share(self.cx, change).await;
    }

    /// Stores what the failed call has cost, and tells followers why another model is called.
    async fn fall_back(&mut self, fallback: &Fallback<'_>) -> Result<(), CallError> {
        self.partial = PartialReply::of(self.recorder.run(), self.shown);
        let Fallback { from, to, cause } = fallback;
        let (step, at) = (self.recorder.step(), self.cx.clock.now());
        let code = match cause {
            Cause::Failed(error) => model_code(error),
            Cause::Paused { .. } => "model_paused",
        };
        self.recorder.run_mut().fell_back(RunFallback {
            at,
            step,
            from: ModelRef::clone(from),
            to: ModelRef::clone(to),
            code: code.to_owned(),
        });
        let data = json!({
            "from": from, "to": to, "code": code, "reason": cause.to_string(), "step": step,
        });
        let events = self.usage.take().into_iter().chain([(EventKind::ModelFallback, data)]).collect();
        match self.recorder.commit(events, std::mem::take(&mut self.settle)).await? {
            Stored::Yes => Ok(()),
            Stored::Refused(_) => Err(self.recorder.lose().into()),
        }
    }
}

/// Stores collected text, renews the lease, and checks whether the run must stop.
///
/// # Errors
/// [`CallError::Cancelled`] or [`CallError::PutDown`] if it must stop; another error if the table does not answer.
pub async fn look(cx: &Cx, recorder: &mut Recorder, deadline: Timestamp) -> Result<(), CallError> {
    recorder.flush_if_due().await?;
    recorder.keep_alive().await?;
    if let Some(cause) = recorder.cancelled_because().await? {
        return Err(CallError::Cancelled(cause));
    }
    if cx.stopping.is_set() || cx.clock.now() >= deadline {
        return Err(CallError::PutDown);
    }
    Ok(())
}
