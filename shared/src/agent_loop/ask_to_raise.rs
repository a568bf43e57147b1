//! A run that has reached a ceiling of its costs waits with a card, which asks a person to raise the ceiling.

use domain::actions::{Reason, ReasonCode};
use domain::agent_loop::CallId;
use domain::agent_loop::cards::{self, Asks, Card, CardState};
use domain::ceilings::{Ceiling, CeilingOf, CeilingReached};
use domain::runs::{EventKind, Run, RunKind};
use jiff::SignedDuration;
use serde_json::json;

use super::call::CallError;
use super::{Driver, Kind, Rest};
use crate::context::Cx;
use crate::error::Result;
use crate::money::ceilings::{self, Ceilings, MonthCeilings};

/// What a card of a ceiling says in place of a tool's name.
const MODEL: &str = "model";

impl<K: Kind> Driver<K> {
    /// The ceilings that hold for the next call.
    pub(super) async fn ceilings(&self, cx: &Cx) -> Result<Ceilings> {
        let (mut of_times, zone) = ceilings::of_owner(cx, self.recorder.owner()).await?;
        let MonthCeilings { agent, action } = self.terms.month;
        // A ceiling may have been set before the deployment's maximum.
        let of_month = |of, micros: i64| Ceiling { of, micros: micros.min(ceilings::most(cx, of)) };
        of_times.extend(agent.map(|micros| of_month(CeilingOf::AgentMonth, micros)));
        of_times.extend(action.map(|micros| of_month(CeilingOf::ActionMonth, micros)));
        let run = Ceiling { of: CeilingOf::Run, micros: self.terms.ceiling_micros };
        let run_micros = ceilings::raised(cx, run, self.recorder.run().raised_micros);
        Ok(Ceilings { run_micros, of_times, zone })
    }

    /// The call of the model that comes next, for a card.
    fn next_call(&self) -> CallId {
        CallId { step: self.journal.last() + 1, at: 0 }
    }

    /// # Errors
    /// If a person has refused to raise a ceiling for the next call.
    pub(super) fn not_refused(&self) -> Result<(), CallError> {
        let refused = |card: &&Card| {
            card.asks == Asks::Ceiling
                && card.call_id == self.next_call()
                && card.state == CardState::Rejected
        };
        let Some(card) = self.recorder.run().cards.iter().find(refused) else { return Ok(()) };
        let why = card.reason.as_deref().map_or_else(String::new, |reason| format!(": {reason}"));
        Err(CallError::Budget(format!("{}, and a person did not raise it{why}", card.why)))
    }

    /// Lets the run wait until a person raises the ceiling. Fails if no person can: the ceiling is as high as it may be, or it
    /// is a setup conversation or a rehearsal, which have no cards.
    pub(super) fn ask_to_raise(&mut self, reached: CeilingReached) -> Result<Rest, CallError> {
        let why = reached.to_string();
        let has_cards = matches!(self.recorder.run().kind, RunKind::Chat | RunKind::Action | RunKind::Theme);
        if !reached.can_be_raised() || !has_cards {
            return Err(CallError::Budget(why));
        }
        let now = self.cx.clock.now();
        let hour = now + SignedDuration::from_hours(1);
        let answer_by = self.answer_until(now);
        let answer_by =
            ceilings::ends(reached.of, now).map_or(answer_by, |ends| answer_by.min(ends).max(hour));
        let card = Card {
            call_id: self.next_call(),
            asks: Asks::Ceiling,
            tool: MODEL.to_owned(),
            why: why.clone(),
            cost_micros: Some(reached.needs_micros),
            hash: cards::hash_of_ceiling(&reached),
            state: CardState::Waiting,
            asked_at: now,
            expires_at: answer_by,
            reason: None,
            answered_at: None,
            attempt: None,
            ceiling: Some(reached),
        };
        let data = json!({
            "step": card.call_id.step, "call_id": card.call_id, "asks": card.asks, "tool": card.tool,
            "ceiling": card.ceiling, "why": card.why, "hash": card.hash, "expires_at": card.expires_at,
        });
        let run: &mut Run = self.recorder.run_mut();
        cards::add(&mut run.cards, vec![card]);
        let reason = Reason::new(ReasonCode::Ceiling, why);
        Ok(Rest::Waits { reason, answer_by, events: vec![(EventKind::CallWaiting, data)] })
    }
}
