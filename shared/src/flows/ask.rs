//! One call of a model in the background, outside of any run: its cost is reserved before the call, the call is retried if that may
//! help, and its cost is settled after it.

use std::time::Duration;

use domain::accounts::quota::Charge;
use domain::ceilings::Ceiling;
use domain::ids::Owner;
use domain::models::error::{MAX_RETRY_AFTER, TimeoutPhase};
use domain::models::prices::Rates;
use domain::models::{ModelError, ModelEvent, ModelId, ModelRef, ModelRequest, Stop, Usage};
use domain::runs::Reservation;
use jiff::{SignedDuration, Timestamp};
use models::gateway::{self, Fallback, Quote, Requester};
use models::{BreakerChange, Candidate, Embedder, ModelLimits, Models, Retry, embeddings};
use serde_json::Value;
use tokio::time::Instant;

use crate::context::Cx;
use crate::error::{Error, Result};
use crate::model_choice;
use crate::money::ceilings;
use crate::stopped;
use crate::store::Store;
use crate::store::accounts::spend::Spender;

/// How long a call may take. `infra/checks` compares this with the indexer's timeout.
pub const CALL: Duration = Duration::from_secs(120);

/// The pause between two calls. It keeps work of many calls below the rate limits of all providers.
const BETWEEN: Duration = Duration::from_millis(200);

/// How often it is checked during a call whether the account is stopped.
const LOOK: Duration = Duration::from_millis(500);

/// The pauses are one, two and four seconds. If the provider names a pause, that one is used.
const RETRY: Retry = Retry {
    tries: 4,
    first_pause: Duration::from_secs(1),
    longest_pause: Duration::from_secs(4),
    longest_wait: MAX_RETRY_AFTER,
    after_timeouts: true,
};

/// The shortest time until a provider that did not answer is called again.
const BUSY_AGAIN: SignedDuration = SignedDuration::from_mins(5);
/// The shortest time until a provider is called again if a person must first correct something: a key, a bill, a model's name.
const BROKEN_AGAIN: SignedDuration = SignedDuration::from_hours(1);

/// The models, with time limits for background work. Calls are retried here and not in the model layer, because the pauses use the
/// platform's clock, and each try has its own reservation.
pub fn models(cx: &Cx) -> Result<Models> {
    let once = Retry { tries: 1, ..RETRY };
    let limits = ModelLimits {
        first_byte: CALL / 2,
        idle: CALL / 2,
        deadline: CALL,
        retry: once,
        ..ModelLimits::default()
    };
    cx.models.with_limits(limits).map_err(|error| Error::internal(error.to_string()))
}

/// What a model has answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Answered {
    /// The arguments of a call of the request's tool.
    Call(Value),
    /// Plain text: arguments that are not valid JSON, perhaps because the answer was cut off, or the text of a model
    /// without tools.
    Text(String),
}

/// A model's answer, and the name that the model reports.
pub struct ModelAnswer {
    pub answered: Answered,
    pub model: ModelId,
}

/// Why there is no answer.
pub enum Failure {
    /// There is no usable answer to this request. Other requests may succeed.
    Unusable(String),
    /// No further call would succeed now.
    Stop(Stop),
    /// A ceiling does not pay for the call.
    TooDear(Stop),
    Failed(Error),
}

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// How much a piece of work has spent, and how much it may spend, in micro-dollars.
pub struct WorkBudget {
    /// What the ceiling is called in an error.
    pub name: &'static str,
    pub spent: i64,
    pub ceiling: i64,
}

/// Calls a model until it answers, no try is left, or the time is up. The request has one tool, which the model must call.
pub async fn ask(
    cx: &Cx,
    owner: &Owner,
    candidates: &[Candidate],
    request: &ModelRequest,
    budget: &mut WorkBudget,
    last_call: Timestamp,
) -> Result<ModelAnswer, Failure> {
    cx.clock.sleep(BETWEEN).await;
    let mut failures = 0;
    loop {
        let error = match once(cx, owner, candidates, request, budget).await? {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        failures += 1;
        let now = cx.clock.now();
        let pause = RETRY.pause(failures, &error, 0.0);
        let in_time =
            |pause: &Duration| SignedDuration::try_from(*pause).is_ok_and(|pause| now + pause <= last_call);
        match pause.filter(in_time) {
            Some(pause) => {
                tracing::warn!(failures, pause_ms = pause.as_millis() as u64, %error, "a call of a model failed and will be retried");
                cx.clock.sleep(pause).await;
            }
            None => return Err(failed(&error, failures, now)),
        }
    }
}

/// Calls a model once. The time limits are those of the candidates: a call that is dropped would keep its reservation.
pub async fn ask_once(
    cx: &Cx,
    owner: &Owner,
    candidates: &[Candidate],
    request: &ModelRequest,
    budget: &mut WorkBudget,
) -> Result<ModelAnswer, Failure> {
    let answer = once(cx, owner, candidates, request, budget).await?;
    answer.map_err(|error| failed(&error, 1, cx.clock.now()))
}

fn failed(error: &ModelError, failures: u32, now: Timestamp) -> Failure {
    let reason = format!("failed to get an answer from the model: {error}");
    let again_at = match error {
        ModelError::ContextTooLarge
        | ModelError::RequestTooLarge
        | ModelError::Refused
        | ModelError::Malformed
        | ModelError::Timeout(TimeoutPhase::Deadline) => return Failure::Unusable(reason),
        error if error.is_retryable() => {
            let told = error.retry_after().and_then(|wait| SignedDuration::try_from(wait).ok());
            now + told.unwrap_or_default().max(BUSY_AGAIN)
        }
        _ => now + BROKEN_AGAIN,
    };
    let reason = if failures > 1 { format!("{reason}, {failures} times") } else { reason };
    Failure::Stop(Stop { unavailable: false, reason, again_at: Some(again_at) })
}

/// One try. Its cost is settled even if it fails.
async fn once(
    cx: &Cx,
    owner: &Owner,
    candidates: &[Candidate],
    request: &ModelRequest,
    budget: &mut WorkBudget,
) -> Result<Result<ModelAnswer, ModelError>, Failure> {
    let mut requester = WorkRequester {
        cx,
        owner,
        budget,
        reserved: None,
        model: None,
        text: String::new(),
        called: None,
        tool: request.tools.first().map(|tool| tool.name.clone()),
        looked: Instant::now(),
    };
    let mut request = request.clone();
    cx.config.models.features.apply(&mut request);
    match gateway::call(candidates, &cx.clock, request, &mut requester).await {
        Ok(()) => {
            let WorkRequester { model, text, called, .. } = requester;
            let model = model.unwrap_or_else(|| candidates[0].id().clone());
            Ok(Ok(ModelAnswer { answered: called.unwrap_or(Answered::Text(text)), model }))
        }
        Err(NoAnswer::Model(error)) => Ok(Err(error)),
        Err(NoAnswer::Failure(failure)) => Err(failure),
    }
}

enum NoAnswer {
    Model(ModelError),
    Failure(Failure),
}

impl From<ModelError> for NoAnswer {
    fn from(error: ModelError) -> Self {
        Self::Model(error)
    }
}

/// Work that calls a model.
struct WorkRequester<'a> {
    cx: &'a Cx,
    owner: &'a Owner,
    budget: &'a mut WorkBudget,
    reserved: Option<Reservation>,
    /// The name that the model reports.
    model: Option<ModelId>,
    text: String,
    called: Option<Answered>,
    /// The only tool of the request.
    tool: Option<String>,
    /// When it was last checked whether the account is stopped.
    looked: Instant,
}

impl Requester for WorkRequester<'_> {
    type Error = NoAnswer;

    async fn reserve(&mut self, quote: &Quote<'_>) -> Result<u32, NoAnswer> {
        not_stopped(self.cx, self.owner).await.map_err(NoAnswer::Failure)?;
        let &Quote { model, price, input_tokens, max_output_tokens, .. } = quote;
        let wanted = Wanted {
            model,
            input_tokens,
            rates: *price.rates_for(input_tokens),
            micros: price.estimate_micros(input_tokens, max_output_tokens),
        };
        let reserved = reserve(self.cx, self.owner, self.budget, &wanted).await;
        self.reserved = reserved.map_err(NoAnswer::Failure)?;
        Ok(max_output_tokens)
    }

    async fn look(&mut self) -> Result<(), NoAnswer> {
        if self.looked.elapsed() < LOOK {
            return Ok(());
        }
        self.looked = Instant::now();
        not_stopped(self.cx, self.owner).await.map_err(NoAnswer::Failure)
    }

    async fn event(&mut self, event: ModelEvent) -> Result<(), NoAnswer> {
        match event {
            ModelEvent::Started { model } => self.model = Some(model),
            ModelEvent::TextDelta(delta) => self.text.push_str(&delta),
            ModelEvent::ToolUse { name, input, .. } if self.tool.as_deref() == Some(&name) => {
                self.called.get_or_insert(Answered::Call(input));
            }
            ModelEvent::InvalidToolInput { name, raw, .. } if self.tool.as_deref() == Some(&name) => {
                self.called.get_or_insert(Answered::Text(raw));
            }
            ModelEvent::Finished { .. }
            | ModelEvent::ThinkingDelta(_)
            | ModelEvent::Found(_)
            | ModelEvent::ToolUse { .. }
            | ModelEvent::InvalidToolInput { .. }
            | ModelEvent::TryLost(_)
            | ModelEvent::Usage(_) => {}
        }
        Ok(())
    }

    async fn settle(&mut self, model: &ModelRef, used: Usage, cost_micros: i64) -> Result<(), NoAnswer> {
        self.budget.spent += cost_micros;
        let settled = settle(self.cx, self.owner, self.reserved.take(), (model, used, cost_micros)).await;
        settled.map_err(|error| NoAnswer::Failure(error.into()))
    }

    async fn breaker_changed(&mut self, change: &BreakerChange) {
        model_choice::share(self.cx, change).await;
    }

    async fn fall_back(&mut self, _: &Fallback<'_>) -> Result<(), NoAnswer> {
        (self.model, self.called) = (None, None);
        self.text.clear();
        Ok(())
    }
}

/// Ends the work if the account is stopped. It goes on after the start.
async fn not_stopped(cx: &Cx, owner: &Owner) -> Result<(), Failure> {
    match stopped::check(cx, owner).await {
        Err(error) if error.is_account_stopped() => {
            let again_at = Some(cx.clock.now() + BROKEN_AGAIN);
            Err(Failure::Stop(Stop { unavailable: false, reason: error.detail(), again_at }))
        }
        checked => Ok(checked?),
    }
}

/// A call that wants to be paid for.
struct Wanted<'a> {
    model: &'a ModelRef,
    input_tokens: u64,
    rates: Rates,
    /// Its highest cost.
    micros: i64,
}

/// Reserves the highest cost of a call under the ceilings of the work, and of the owner's day and month. `None`: it costs nothing.
async fn reserve(
    cx: &Cx,
    owner: &Owner,
    budget: &WorkBudget,
    &Wanted { model, input_tokens, rates, micros }: &Wanted<'_>,
) -> Result<Option<Reservation>, Failure> {
    if micros <= 0 {
        return Ok(None);
    }
    if budget.spent.saturating_add(micros) > budget.ceiling {
        return Err(too_dear(budget.name, budget.ceiling, micros, None));
    }
    let (spender, at) = (Spender::owner(owner), cx.clock.now());
    let (mut ceilings, zone) = ceilings::of_owner(cx, owner).await?;
    for ceiling in &mut ceilings {
        let spend = cx.store.spend_of(spender, ceiling.of, at).await?;
        ceiling.micros = ceiling.micros.saturating_add(spend.raised_micros);
        if spend.committed_micros.saturating_add(micros) > ceiling.micros {
            return Err(too_dear_now(*ceiling, micros, at));
        }
    }
    let writes = Store::reserve_writes(spender, at, micros, &ceilings);
    if !cx.store.write_all(writes).await?.done() {
        // Another call has just taken the rest.
        return Err(too_dear_now(ceilings[0], micros, at));
    }
    Ok(Some(Reservation {
        at,
        date: Some(at.to_zoned_datetime(zone).date()),
        micros,
        of: ceilings.iter().map(|ceiling| ceiling.of).collect(),
        model: model.model.clone(),
        vendor: Some(model.vendor),
        input_tokens,
        rates: Some(rates),
    }))
}

/// Counts what a call has used and cost, and gives back the rest of what was reserved.
async fn settle(
    cx: &Cx,
    owner: &Owner,
    reserved: Option<Reservation>,
    (model, used, cost_micros): (&ModelRef, Usage, i64),
) -> Result<(), Error> {
    let now = cx.clock.now();
    let (at, date) = Reservation::day_of(reserved.as_ref(), now);
    let spender = Spender::owner(owner);
    let mut writes = Store::settle_writes(spender, reserved.as_ref(), now, cost_micros, Charge::Included);
    writes.extend(Store::usage_write(spender, (at, date), &model.into(), &used, cost_micros));
    if !writes.is_empty() {
        let _ = cx.store.write_all(writes).await?;
    }
    Ok(())
}

/// Turns texts into vectors, with one call. A call that may be billed although it has failed counts as if it had succeeded.
pub async fn embed(
    cx: &Cx,
    owner: &Owner,
    embedder: &Embedder,
    texts: Vec<String>,
    (budget, patience): (&mut WorkBudget, Duration),
) -> Result<Vec<Vec<f32>>, Failure> {
    not_stopped(cx, owner).await?;
    let model = ModelRef { vendor: embedder.vendor, model: embedder.model.model.clone() };
    let rates = embedder.model.rates();
    let usage = |tokens| Usage { input_tokens: tokens, ..Usage::default() };
    let likely = embeddings::likely_tokens(embedder.model, &texts);
    let micros = rates.cost_micros(&usage(likely));
    let wanted = Wanted { model: &model, input_tokens: likely, rates, micros };
    let reserved = reserve(cx, owner, budget, &wanted).await?;
    let answer = tokio::time::timeout(patience, embedder.embed(texts)).await;
    let answer = answer.unwrap_or(Err(ModelError::Timeout(TimeoutPhase::Deadline)));
    let used = match &answer {
        Ok(embedded) => usage(embedded.tokens),
        Err(error) if error.may_be_billed() => Usage { estimated: true, ..usage(likely) },
        Err(_) => Usage::default(),
    };
    let cost = rates.cost_micros(&used);
    budget.spent += cost;
    settle(cx, owner, reserved, (&model, used, cost)).await?;
    match answer {
        Ok(embedded) => Ok(embedded.vectors),
        Err(error) => Err(failed(&error, 1, cx.clock.now())),
    }
}

fn too_dear_now(ceiling: Ceiling, amount: i64, now: Timestamp) -> Failure {
    too_dear(&ceiling.of.to_string(), ceiling.micros, amount, ceilings::ends(ceiling.of, now))
}

fn too_dear(ceiling: &str, micros: i64, amount: i64, again_at: Option<Timestamp>) -> Failure {
    let reason =
        format!("{ceiling} of {micros} micro-dollars does not pay for a call that may cost {amount}");
    Failure::TooDear(Stop { unavailable: false, reason, again_at })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_decides_when_to_retry() {
        let now = Timestamp::UNIX_EPOCH;
        let check = |error: ModelError, minutes: Option<i64>| match failed(&error, 4, now) {
            Failure::Unusable(_) => assert_eq!(minutes, None, "{error}"),
            Failure::Stop(stop) | Failure::TooDear(stop) => {
                assert_eq!(stop.again_at, minutes.map(|minutes| now + SignedDuration::from_mins(minutes)));
                assert!(stop.reason.ends_with(", 4 times") && !stop.unavailable, "{}", stop.reason);
            }
            Failure::Failed(error) => panic!("{error}"),
        };
        let limited = |retry_after| ModelError::RateLimited { retry_after };
        check(limited(None), Some(5));
        check(limited(Some(Duration::from_secs(90))), Some(5));
        check(limited(Some(Duration::from_secs(600))), Some(10));
        check(ModelError::Connection { at: "http://127.0.0.1:1".to_owned() }, Some(5));
        check(ModelError::Authentication, Some(60));
        check(ModelError::Quota, Some(60));
        check(ModelError::ContextTooLarge, None);
        check(ModelError::Refused, None);
        check(ModelError::Timeout(TimeoutPhase::Deadline), None);
        check(ModelError::Timeout(TimeoutPhase::FirstByte), Some(5));
    }
}
