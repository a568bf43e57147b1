//! The one way to call a model: a candidate is chosen, the call is reserved for, read and settled, and if the candidate
//! fails, the next one is called.
//!
//! The gateway knows neither runs nor enrichment. A [`Requester`] says what a call may cost, receives the reply, and may stop it.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use domain::models::breaker::{self, Gate, Verdict};
use domain::models::meter::Meter;
use domain::models::{
    ModelError, ModelEvent, ModelPrice, ModelRef, ModelRequest, Usage, estimate, provider_tools, sight,
};
use futures::StreamExt;
use jiff::Timestamp;
use tokio::time::{MissedTickBehavior, interval};

use super::{BreakerChange, Candidate};
use base::clock::Clock;

/// How often a requester is asked whether the call should go on.
const LOOK: Duration = Duration::from_millis(250);

/// A call that is about to be made.
#[derive(Debug)]
pub struct Quote<'a> {
    pub model: &'a ModelRef,
    pub price: &'a ModelPrice,
    /// The most that the request is likely to have.
    pub input_tokens: u64,
    /// The longest reply that was asked for.
    pub max_output_tokens: u32,
    /// The most that tools of the provider cost besides tokens, in micro-dollars.
    pub tools_micros: i64,
}

/// A candidate is not called, or has failed, and another one is called.
#[derive(Debug)]
pub struct Fallback<'a> {
    pub from: &'a ModelRef,
    pub to: &'a ModelRef,
    pub cause: Cause<'a>,
}

/// Why another candidate is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause<'a> {
    /// The call has failed.
    Failed(&'a ModelError),
    /// The model has failed too often in other calls. Its circuit breaker is open until this time.
    Paused { until: Timestamp },
}

impl fmt::Display for Cause<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(f),
            Self::Paused { until } => {
                write!(f, "the model has failed in other calls and is not called until {until:.0}")
            }
        }
    }
}

/// The part of the platform that needs a reply: a run, or an enrichment.
pub trait Requester: Send {
    type Error: From<ModelError> + Send;

    /// Reserves what the call may cost. Returns how long its reply may be, in tokens.
    fn reserve(&mut self, quote: &Quote<'_>) -> impl Future<Output = Result<u32, Self::Error>> + Send;

    /// Takes a piece of the reply.
    fn event(&mut self, event: ModelEvent) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Looks four times a second whether the call should go on. An error stops it.
    fn look(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        std::future::ready(Ok(()))
    }

    /// Whether somebody has seen a part of the reply. Then no other candidate is called.
    fn has_shown(&self) -> bool {
        false
    }

    /// Is told what the call has used and cost, in micro-dollars, also if it failed. Gives the reservation back.
    fn settle(
        &mut self,
        model: &ModelRef,
        used: Usage,
        cost_micros: i64,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Is told that the circuit breaker of a model has opened or closed, if other processes should know.
    fn breaker_changed(&mut self, _change: &BreakerChange) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Discards the part of the reply that it has received: another candidate is called. It is also told, before the first call,
    /// if the preferred candidate is not called because its circuit breaker is open.
    fn fall_back(&mut self, fallback: &Fallback<'_>) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// Why a reply was not read to its end.
enum Ended<E> {
    Model(ModelError),
    Stopped(E),
}

/// Calls the first candidate that works.
///
/// # Errors
/// The requester's error if it stopped the call; otherwise the error of the last candidate.
pub async fn call<C: Requester>(
    candidates: &[Candidate],
    clock: &Clock,
    asked: ModelRequest,
    requester: &mut C,
) -> Result<(), C::Error> {
    let max_output_tokens = asked.max_output_tokens;
    let now = clock.now();
    let gates: Vec<_> = candidates.iter().map(|candidate| candidate.gate(now)).collect();
    let mut order: VecDeque<&Candidate> =
        breaker::order(&gates).into_iter().map(|at| &candidates[at]).collect();
    if let (Some(preferred), Some(first), Some(Gate::Open { until })) =
        (candidates.first(), order.front(), gates.first())
        && !std::ptr::eq(preferred, *first)
    {
        let cause = Cause::Paused { until: *until };
        requester.fall_back(&Fallback { from: &preferred.model, to: &first.model, cause }).await?;
    }
    while let Some(candidate) = order.pop_front() {
        let (model, id) = (&candidate.model, candidate.id());
        // Not every candidate can read every image.
        let mut request = asked.clone();
        sight::fit(&mut request, model);
        provider_tools::fit(&mut request, model);
        let input_tokens =
            estimate::request_tokens(id, &request) + provider_tools::most_input_tokens(&request);
        let tools_micros = provider_tools::most_micros(&request, model);
        let price = &candidate.price;
        let quote = Quote { model, price, input_tokens, max_output_tokens, tools_micros };
        request.max_output_tokens = requester.reserve(&quote).await?;
        let gate = candidate.begin(clock.now());
        let mut meter = Meter::default();
        let ended = read(candidate, &request, requester, &mut meter).await;
        let (verdict, error) = match &ended {
            Ok(()) => (Verdict::Healthy, None),
            Err(Ended::Model(error)) => (Verdict::of(error), Some(error)),
            Err(Ended::Stopped(_)) => (Verdict::Unknown, None),
        };
        if let Some(change) = candidate.end(gate, verdict, clock.now()) {
            requester.breaker_changed(&change).await;
        }
        let used = meter.used(id, &request, error);
        requester.settle(model, used, price.cost_micros(&used)).await?;
        let error = match ended {
            Ok(()) => return Ok(()),
            Err(Ended::Stopped(error)) => return Err(error),
            Err(Ended::Model(error)) => error,
        };
        if error.concerns_endpoint() {
            order.retain(|other| !other.shares_endpoint(candidate));
        }
        match order.front() {
            Some(next) if error.may_work_elsewhere() && !requester.has_shown() => {
                tracing::warn!(from = %model, to = %next.model, %error, "another model is called");
                let cause = Cause::Failed(&error);
                requester.fall_back(&Fallback { from: model, to: &next.model, cause }).await?;
            }
            _ => return Err(error.into()),
        }
    }
    Err(ModelError::NotConfigured.into())
}

/// Reads a reply to its end, or until something stops it.
async fn read<C: Requester>(
    candidate: &Candidate,
    request: &ModelRequest,
    requester: &mut C,
    meter: &mut Meter,
) -> Result<(), Ended<C::Error>> {
    let mut events = candidate.stream(request);
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            _ = look.tick() => {
                requester.look().await.map_err(Ended::Stopped)?;
                continue;
            }
        };
        let event = event.unwrap_or(Err(ModelError::Truncated)).map_err(Ended::Model)?;
        meter.record(&event);
        let is_last = matches!(event, ModelEvent::Finished { .. });
        requester.event(event).await.map_err(Ended::Stopped)?;
        if is_last {
            return Ok(());
        }
    }
}

#[cfg(test)]
#[path = "gateway_tests.rs"]
mod tests;
