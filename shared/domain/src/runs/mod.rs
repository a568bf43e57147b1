//! A run (one turn of a conversation, or one occurrence of an action) and its events.

pub mod form;
pub mod rehearsal;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::accounts::quota::Charge;
use crate::actions::http_call::Sent;
use crate::agent_loop::cards::{self, Asks, Card, CardState, OpenCall};
use crate::agents::AgentDraft;
use crate::background::lease::Lease;
use crate::ceilings::CeilingOf;
use crate::ids::{ActionId, AgentId, ChatId, ProposalId, RunId};
use crate::memory::recall::Recalled;
use crate::models::prices::{self, Rates};
use crate::models::routing::Level;
use crate::models::{ModelId, ModelRef, Usage, Vendor, WebSource};
use crate::projects::turn::{ThemeChanges, ThemeTurn};
use form::ReplyForm;
use rehearsal::Rehearsal;

/// A run as it is stored. Only the process that executes it writes it, until its lease has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub run_id: RunId,
    pub kind: RunKind,
    pub state: RunState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<ChatId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_id: Option<ActionId>,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// When the lease of its executor ends. After that the process is considered dead, and another one takes the run over.
    pub lease_until: Timestamp,
    /// The reply, once it is finished.
    #[serde(default)]
    pub message: String,
    #[serde(default)]
    pub proposals: Vec<ProposalId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_draft: Option<AgentDraft>,
    #[serde(default)]
    pub usage: Usage,
    #[serde(default)]
    pub cost_micros: i64,
    /// What the helpers of this run have cost. Their own runs have it, too.
    #[serde(default, skip_serializing_if = "is_free")]
    pub helpers_micros: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    /// How often the run was taken over. Writes of former executors are refused.
    #[serde(default)]
    pub fence: u64,
    /// How often it was taken over since its last step was stored.
    #[serde(default)]
    pub attempts: u32,
    /// The highest cost of the current call. A process that takes the run over settles it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<Reservation>,
    /// By how much people have raised its ceiling, in micro-dollars.
    #[serde(default, skip_serializing_if = "is_free")]
    pub raised_micros: i64,
    /// How it counts for the plan of its owner.
    #[serde(default, skip_serializing_if = "Charge::is_included")]
    pub charge: Charge,
    /// Hash of the stable part of the first request. If it differs between turns of one agent, the provider's cache was missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix_hash: Option<String>,
    /// The model of the newest call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<RunModel>,
    /// Models that were replaced, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<RunFallback>,
    /// Calls that wait for a person, and those that have waited, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cards: Vec<Card>,
    /// A call outside the platform that has begun and has no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_call: Option<OpenCall>,
    /// The newest event when it last waited for a person or was answered. All text before it is stored.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waited: u64,
    /// When it last continued after it had waited for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_at: Option<Timestamp>,
    /// What the client asks of the form of the reply.
    #[serde(default, skip_serializing_if = "ReplyForm::is_free")]
    pub form: ReplyForm,
    /// Whether the reply ends because it reached a limit of its length.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_off: bool,
    /// Pages that its searches of the web have found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<WebSource>,
    /// Since when it may have read what strangers have written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tainted: Option<Taint>,
    /// What it was told of memory when it began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recalled: Vec<Recalled>,
    /// What it rehearses, if it is a rehearsal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rehearsal: Option<Box<Rehearsal>>,
    /// What it has sent, if its action has a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Box<Sent>>,
    /// How it was planned, if it is a turn of the theme agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme: Option<Box<ThemeTurn>>,
    /// What a run of an action has changed in a theme.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Box<ThemeChanges>>,
}

/// When a run first read what strangers may have written: results of a search of the web, living documents, or outputs and notes of a
/// run that had.
/// It never becomes clean again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Taint {
    /// When it first read it.
    pub at: Timestamp,
    /// The step of the run. 0: what it was told at its beginning.
    pub step: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_free(micros: &i64) -> bool {
    *micros == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Run {
    /// The lease of its executor.
    #[must_use]
    pub fn lease(&self) -> Lease<u64> {
        Lease { holder: self.fence, until: self.lease_until }
    }

    /// A run that begins now, without its owner's ids.
    #[must_use]
    pub fn begun(run_id: RunId, kind: RunKind, now: Timestamp, lease_until: Timestamp) -> Self {
        Self {
            run_id,
            kind,
            state: RunState::Running,
            agent_id: None,
            chat_id: None,
            action_id: None,
            created_at: now,
            finished_at: None,
            lease_until,
            message: String::new(),
            proposals: Vec::new(),
            agent_draft: None,
            usage: Usage::default(),
            cost_micros: 0,
            helpers_micros: 0,
            error: None,
            fence: 0,
            attempts: 0,
            reserved: None,
            raised_micros: 0,
            charge: Charge::default(),
            prefix_hash: None,
            model: None,
            fallbacks: Vec::new(),
            cards: Vec::new(),
            open_call: None,
            waited: 0,
            resumed_at: None,
            form: ReplyForm::default(),
            cut_off: false,
            sources: Vec::new(),
            tainted: None,
            recalled: Vec::new(),
            rehearsal: None,
            call: None,
            theme: None,
            changed: None,
        }
    }

    /// Notes that it may have read what strangers have written.
    pub fn taint(&mut self, step: u32, at: Timestamp) {
        self.tainted.get_or_insert(Taint { at, step });
    }

    /// Records that a model was replaced. Its newest call then has the other model.
    pub fn fell_back(&mut self, fallback: RunFallback) {
        if let Some(model) = &mut self.model {
            let why = model.why.split(REPLACES).next().unwrap_or_default();
            model.why = format!("{why}{REPLACES}{} ({})", fallback.from, fallback.code);
            model.model = fallback.to.clone();
        }
        if self.fallbacks.len() >= MAX_FALLBACKS {
            self.fallbacks.remove(0);
        }
        self.fallbacks.push(fallback);
    }

    /// The time until which it waits for the answers to its cards.
    #[must_use]
    pub fn answer_by(&self) -> Option<Timestamp> {
        let waits = self.state == RunState::Waiting;
        cards::open(&self.cards).map(|card| card.expires_at).min().filter(|_| waits)
    }

    /// Ends it in this state, or lets it wait. Open questions of a run that has ended are dropped. If a call has begun and its
    /// outcome is unknown, a card says so.
    pub fn rest(&mut self, state: RunState, error: Option<RunError>, now: Timestamp) {
        self.state = state;
        self.error = error;
        self.finished_at = state.has_ended().then_some(now);
        if !state.has_ended() {
            return;
        }
        cards::drop_open(&mut self.cards, now);
        let Some(open) = self.open_call.take() else { return };
        if !open.has_card(&self.cards) {
            let card = Card {
                call_id: open.call_id,
                asks: Asks::Outcome,
                why: open.unknown(),
                tool: open.tool,
                cost_micros: None,
                hash: open.hash,
                state: CardState::Void,
                asked_at: now,
                expires_at: now,
                reason: None,
                answered_at: None,
                attempt: Some(open.attempt),
                ceiling: None,
            };
            cards::add(&mut self.cards, vec![card]);
        }
    }

    /// Lets it continue after it has waited. `event` is its newest event.
    pub fn go_on(&mut self, event: u64, now: Timestamp) {
        cards::drop_open(&mut self.cards, now);
        self.state = RunState::Running;
        self.finished_at = None;
        self.error = None;
        self.attempts = 0;
        self.lease_until = now;
        self.waited = self.waited.max(event);
        self.resumed_at = Some(now);
    }
}

/// What stands in [`RunModel::why`] before the model that was replaced.
const REPLACES: &str = "; it replaces ";

/// How many fallbacks a run's record keeps.
const MAX_FALLBACKS: usize = 20;

/// The model that answers a call. If the chosen model fails or is not called, it is the one that replaces it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunModel {
    /// The provider and the model.
    #[schema(value_type = String, example = "anthropic/claude-sonnet-5-5")]
    pub model: ModelRef,
    /// The level of the choice that decided.
    pub level: Level,
    /// Why this model was chosen, and which model it replaces.
    #[schema(example = "the tier decides; it replaces anthropic/claude-sonnet-5-5 (model_overloaded)")]
    pub why: String,
}

/// A model that failed or was not called, and the model that replaced it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunFallback {
    /// When the first model was replaced.
    pub at: Timestamp,
    /// The step of the run.
    pub step: u32,
    /// The model that was replaced.
    #[schema(value_type = String, example = "anthropic/claude-sonnet-5-5")]
    pub from: ModelRef,
    /// The model that was called next.
    #[schema(value_type = String, example = "google/gemini-3.8-flash")]
    pub to: ModelRef,
    /// Why: the code of the first model's error, or `model_paused` if it was not called because it has failed in other calls.
    #[schema(example = "model_overloaded")]
    pub code: String,
}

/// The amount that was reserved for a call of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    pub at: Timestamp,
    /// The day for the owner's usage, in the time zone of the account. Records of earlier versions do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<Date>,
    pub micros: i64,
    /// The ceilings from which it was taken. Records of earlier versions have only that of a day.
    #[serde(default = "of_the_day")]
    pub of: Vec<CeilingOf>,
    pub model: ModelId,
    /// The provider of the model. Records of earlier versions do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor: Option<Vendor>,
    /// An estimate of the tokens that are sent.
    pub input_tokens: u64,
    /// The price of the call, for a process that settles it later. Records of earlier versions do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates: Option<Rates>,
}

impl Reservation {
    /// When a call was made that is settled at `now`, and on which day its usage counts.
    #[must_use]
    pub fn day_of(reserved: Option<&Self>, now: Timestamp) -> (Timestamp, Date) {
        let at = reserved.map_or(now, |reserved| reserved.at);
        let date = reserved.and_then(|reserved| reserved.date);
        (at, date.unwrap_or_else(|| TimeZone::UTC.to_datetime(at).date()))
    }

    /// The cost of what was used of it. If nobody knows the price any more, all of it was.
    #[must_use]
    pub fn cost_micros(&self, used: &Usage) -> i64 {
        match (&self.rates, prices::price(&self.model)) {
            (Some(rates), _) => rates.cost_micros(used),
            (None, Some(price)) => price.cost_micros(used),
            (None, None) => self.micros,
        }
    }
}

fn of_the_day() -> Vec<CeilingOf> {
    vec![CeilingOf::Day]
}

/// What a run is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    Setup,
    Chat,
    Action,
    /// A run of an action whose effects are recorded and not done.
    Rehearsal,
    /// A turn of the theme agent.
    Theme,
    /// A part of such a turn that another model does.
    Helper,
}

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    Running,
    Completed,
    Failed,
    Cancelled,
    /// It waits for a person.
    Waiting,
}

impl RunState {
    pub const ALL: [Self; 5] = [Self::Running, Self::Completed, Self::Failed, Self::Cancelled, Self::Waiting];

    #[must_use]
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Running)
    }

    /// Whether it has ended. A run that waits continues when a person has answered.
    #[must_use]
    pub const fn has_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// The event that ends a run in this state.
    #[must_use]
    pub const fn event(self) -> Option<EventKind> {
        match self {
            Self::Running => None,
            Self::Completed => Some(EventKind::RunCompleted),
            Self::Failed => Some(EventKind::RunFailed),
            Self::Cancelled => Some(EventKind::RunCancelled),
            Self::Waiting => Some(EventKind::RunWaiting),
        }
    }
}

/// Why a run failed: a stable code and a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunError {
    #[schema(example = "overloaded")]
    pub code: String,
    pub detail: String,
    pub retryable: bool,
}

/// The kinds of event. A stream is `run.started`, any of the others, and one of the four that end it. After `run.waiting`, a run
/// may continue with further events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub enum EventKind {
    #[serde(rename = "run.started")]
    RunStarted,
    #[serde(rename = "message.delta")]
    MessageDelta,
    /// A piece of what the model thinks. It is no part of the reply.
    #[serde(rename = "thinking.delta")]
    ThinkingDelta,
    #[serde(rename = "message.completed")]
    MessageCompleted,
    #[serde(rename = "tool.requested")]
    ToolRequested,
    #[serde(rename = "tool.result")]
    ToolResult,
    /// A call waits for a person: `GET /runs/{run_id}` has the card.
    #[serde(rename = "call.waiting")]
    CallWaiting,
    #[serde(rename = "call.approved")]
    CallApproved,
    #[serde(rename = "call.rejected")]
    CallRejected,
    /// A person said whether a call happened.
    #[serde(rename = "call.resolved")]
    CallResolved,
    #[serde(rename = "asset.proposed")]
    AssetProposed,
    #[serde(rename = "action.proposed")]
    ActionProposed,
    #[serde(rename = "agent.proposed")]
    AgentProposed,
    #[serde(rename = "deliverable.invalid")]
    DeliverableInvalid,
    #[serde(rename = "usage.updated")]
    UsageUpdated,
    /// A model failed before its reply was shown, and another one is called.
    #[serde(rename = "model.fallback")]
    ModelFallback,
    #[serde(rename = "context.reduced")]
    ContextReduced,
    /// The oldest messages of the conversation were cut, and a summary replaces them.
    #[serde(rename = "history.cut")]
    HistoryCut,
    /// Another process continues the run, and `step` begins again. The events from `void_from` on are void.
    #[serde(rename = "step.restarted")]
    StepRestarted,
    /// A turn of the theme agent is larger than it was planned: `tier` and `strategy` are those from here on, and `why` says why.
    #[serde(rename = "turn.escalated")]
    TurnEscalated,
    /// What a turn of the theme agent has changed: its change set and the files in it.
    #[serde(rename = "theme.changed")]
    ThemeChanged,
    /// A helper of a turn has begun: `run_id` is its run, which can be followed by itself. After a crash it can come again.
    #[serde(rename = "helper.started")]
    HelperStarted,
    /// A helper of a turn has ended.
    #[serde(rename = "helper.ended")]
    HelperEnded,
    #[serde(rename = "run.completed")]
    RunCompleted,
    #[serde(rename = "run.failed")]
    RunFailed,
    #[serde(rename = "run.cancelled")]
    RunCancelled,
    #[serde(rename = "run.waiting")]
    RunWaiting,
}

impl EventKind {
    pub const ALL: [Self; 27] = [
        Self::RunStarted,
        Self::MessageDelta,
        Self::ThinkingDelta,
        Self::MessageCompleted,
        Self::ToolRequested,
        Self::ToolResult,
        Self::CallWaiting,
        Self::CallApproved,
        Self::CallRejected,
        Self::CallResolved,
        Self::AssetProposed,
        Self::ActionProposed,
        Self::AgentProposed,
        Self::DeliverableInvalid,
        Self::UsageUpdated,
        Self::ModelFallback,
        Self::ContextReduced,
        Self::HistoryCut,
        Self::StepRestarted,
        Self::TurnEscalated,
        Self::ThemeChanged,
        Self::HelperStarted,
        Self::HelperEnded,
        Self::RunCompleted,
        Self::RunFailed,
        Self::RunCancelled,
        Self::RunWaiting,
    ];

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RunStarted => "run.started",
            Self::MessageDelta => "message.delta",
            Self::ThinkingDelta => "thinking.delta",
            Self::MessageCompleted => "message.completed",
            Self::ToolRequested => "tool.requested",
            Self::ToolResult => "tool.result",
            Self::CallWaiting => "call.waiting",
            Self::CallApproved => "call.approved",
            Self::CallRejected => "call.rejected",
            Self::CallResolved => "call.resolved",
            Self::AssetProposed => "asset.proposed",
            Self::ActionProposed => "action.proposed",
            Self::AgentProposed => "agent.proposed",
            Self::DeliverableInvalid => "deliverable.invalid",
            Self::UsageUpdated => "usage.updated",
            Self::ModelFallback => "model.fallback",
            Self::ContextReduced => "context.reduced",
            Self::HistoryCut => "history.cut",
            Self::StepRestarted => "step.restarted",
            Self::TurnEscalated => "turn.escalated",
            Self::ThemeChanged => "theme.changed",
            Self::HelperStarted => "helper.started",
            Self::HelperEnded => "helper.ended",
            Self::RunCompleted => "run.completed",
            Self::RunFailed => "run.failed",
            Self::RunCancelled => "run.cancelled",
            Self::RunWaiting => "run.waiting",
        }
    }

    #[must_use]
    pub const fn ends_the_run(self) -> bool {
        matches!(self, Self::RunCompleted | Self::RunFailed | Self::RunCancelled | Self::RunWaiting)
    }
}

/// One event of a run. Each field is a field of a server-sent event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunEvent {
    /// A number from 1, without gaps. Heartbeats have none.
    #[schema(value_type = String, required = false, pattern = "^[0-9]+$", example = "7")]
    pub id: u64,
    pub event: EventKind,
    /// A JSON object in one line. `at` is the time at which the event was stored; events of earlier versions have none. `step`
    /// and `call_id` name the step and the call that an event belongs to. The other fields depend on the kind of event.
    #[schema(value_type = String, example = "{\"at\":\"2026-11-21T09:00:00.123Z\",\"step\":1,\"text\":\"Hello\"}")]
    pub data: Value,
}

impl RunEvent {
    /// An event that is stored at `at`, with `data` as a JSON object.
    #[must_use]
    pub fn new(id: u64, event: EventKind, at: Timestamp, mut data: Value) -> Self {
        if let Some(fields) = data.as_object_mut() {
            // Milliseconds are enough, and every event is stored.
            let at = Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(at);
            fields.insert("at".to_owned(), Value::from(at.to_string()));
        }
        Self { id, event, data }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_names_are_their_json() {
        for kind in EventKind::ALL {
            let json = serde_json::to_value(kind).unwrap();
            assert_eq!(json, kind.name());
            assert_eq!(serde_json::from_value::<EventKind>(json).unwrap(), kind);
        }
    }

    #[test]
    fn an_event_says_when_it_was_stored_and_one_without_a_time_is_still_read() {
        let at: Timestamp = "2026-11-21T09:00:00.123456789Z".parse().unwrap();
        let event = RunEvent::new(7, EventKind::MessageDelta, at, serde_json::json!({"text": "Hello"}));
        assert_eq!(event.data, serde_json::json!({"text": "Hello", "at": "2026-11-21T09:00:00.123Z"}));
        let old = r#"{"id":7,"event":"message.delta","data":{"text":"Hello"}}"#;
        let old: RunEvent = serde_json::from_str(old).unwrap();
        assert_eq!((old.id, old.data), (7, serde_json::json!({"text": "Hello"})));
    }

    #[test]
    fn every_final_state_has_its_event() {
        for state in RunState::ALL {
            assert_eq!(state.is_final(), state.event().is_some_and(EventKind::ends_the_run), "{state:?}");
            let json = serde_json::to_value(state).unwrap();
            assert_eq!(serde_json::from_value::<RunState>(json).unwrap(), state);
        }
    }
}
