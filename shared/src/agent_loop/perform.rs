//! Makes the calls of a reply in their order, and stores their results. If a person has to decide about a call, the run waits
//! for the answer first.

use std::time::Duration;

use domain::actions::{Reason, ReasonCode};
use domain::agent_loop::cards::{
    self, Asks, Card, CardState, Gate, MAX_OPEN, OpenCall, Pending, Question, Ruling,
};
use domain::agent_loop::{Call, CallId, CallResult, NOT_CALLED, results};
use domain::ceilings::{Ceiling, CeilingOf};
use domain::projects::turn::ThemeTurn;
use domain::runs::{EventKind, RunKind};
use domain::tools::results::ReadResult;
use domain::tools::{self, Decision, Effect, ToolCall, ToolDef, decide_about};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, interval_at};

use super::call::CallError;
use super::recorder::Stored;
use super::{Driver, Kind, PUT_DOWN_BEFORE, Performed, Rest, ToStore};
use crate::config::outside::{Called, OutsideCall};
use crate::context::{AreaAnswer, AreaCall, ForHelpers};
use crate::error::Result;
use crate::money::ceilings;
use crate::stopped;
use crate::store::Tries;
use crate::store::keys::Guard;
use crate::store::runs::LIFETIME;

/// The most of a result or an argument that an event shows, in characters.
const MAX_SHOWN: usize = 2_000;

/// How often the lease is renewed during a call outside the platform.
const LOOK_UP: Duration = Duration::from_millis(250);

/// How long a run that is cancelled waits for the end of its helpers. They look twice a second, and whoever cancels waits a little longer.
const HELPERS_END: Duration = Duration::from_millis(1_000);

/// How many reasons of cards a run's own reason names.
const MAX_REASONS: usize = 3;

impl<K: Kind> Driver<K> {
    /// Makes the calls of the last reply from `from` on, as far as they may be made now. Returns a rest if the run must wait for
    /// a person.
    pub(super) async fn make_calls(&mut self, from: usize) -> Result<Option<Rest>, CallError> {
        let pending = self.pending(from);
        match cards::gate(&pending, &self.recorder.run().cards) {
            Gate::Wait(asked) => Ok(Some(self.ask(&pending, &asked))),
            Gate::Perform(ready) => {
                for (at, call) in pending.iter().enumerate().take(ready) {
                    match self.look().await {
                        // Its helpers end with those of the call before. What they have done and cost is stored.
                        Err(CallError::Cancelled(_)) if self.has_begun(from + at) => {}
                        looked => looked?,
                    }
                    if !self.make(from + at, call).await? {
                        break;
                    }
                }
                Ok(None)
            }
        }
    }

    /// Whether helpers work for this call of the last reply, since they began together with those of a call before it.
    fn has_begun(&self, at: usize) -> bool {
        let is_for_helpers = |call: &Call| tools::find(tools::HELPERS, &call.name).is_some();
        let begins = self.cx.leads().map(|leads| (leads.begins)(&self.transcript.steps, at));
        self.call_at(at).is_some_and(|call| is_for_helpers(call) && self.refusal(call).is_none())
            && begins.is_some_and(|(_, is_first)| !is_first)
    }

    fn call_at(&self, at: usize) -> Option<&Call> {
        self.transcript.steps.last()?.reply.calls.get(at)
    }

    /// The calls without a result, and what a person has to decide about them.
    fn pending(&self, from: usize) -> Vec<Pending> {
        let step = self.journal.last();
        let calls = self.transcript.steps.last().map_or(&[][..], |step| &step.reply.calls);
        let pending = |(at, call): (usize, &Call)| {
            let call_id = CallId::new(step, at);
            Pending { call_id, question: self.question(call_id, call) }
        };
        let mut pending: Vec<Pending> = calls.iter().enumerate().skip(from).map(pending).collect();
        // Calls beyond the limit are refused when their turn comes.
        let questions = pending.iter_mut().filter(|call| call.question.is_some());
        questions.skip(MAX_OPEN).for_each(|call| call.question = None);
        pending
    }

    /// The hash that a card of this call binds.
    fn hash(&self, call: &Call) -> String {
        let schema = self.tool(&call.name).map_or(Value::Null, |tool| (tool.input)());
        cards::hash(&call.name, &schema, &call.input)
    }

    fn question(&self, id: CallId, call: &Call) -> Option<Question> {
        let question = |asks, attempt| Question { asks, attempt, hash: self.hash(call) };
        if let Some(open) = self.recorder.run().open_call.as_ref().filter(|open| open.call_id == id) {
            let is_idempotent = self.tool(&call.name).is_some_and(|tool| tool.idempotent);
            // An idempotent tool is called again under the same key. After a second failure, a person decides.
            let again = is_idempotent && self.begun != Some(id) && !open.has_card(&self.recorder.run().cards);
            return (!again).then(|| question(Asks::Outcome, Some(open.attempt)));
        }
        let asks = matches!(self.decide(&call.name), Decision::NeedsPerson(_)) && self.is_readable(call);
        asks.then(|| question(Asks::Permission, None))
    }

    /// Whether a person can be asked about a call. If it is invalid, the model is told.
    fn is_readable(&self, call: &Call) -> bool {
        call.invalid.is_none()
            && !self.transcript.is_full()
            && self.tool(&call.name).is_some_and(|tool| {
                tool.effect == Effect::Outside || ToolCall::parse(tool, &call.input).is_ok()
            })
    }

    fn tool(&self, name: &str) -> Option<&'static ToolDef> {
        tools::find(tools::LOOP, name)
            .or_else(|| self.own_tools().find(|tool| tool.name == name))
            .or_else(|| self.cx.config.runs.outside.find(name))
    }

    /// The tools that not every run has, so that most requests are shorter: those for documents and themes, and those that the loop performs itself,
    /// which are of use only after a long result.
    pub(super) fn own_tools(&self) -> impl Iterator<Item = &'static ToolDef> {
        let of_projects = tools::of_projects(self.terms.has_documents, self.terms.theme.is_some());
        // A turn of the theme agent always has them, so that all turns of a conversation begin with the same tools and the provider can cache
        // them.
        let has_own = self.transcript.has_long_result() || self.recorder.run().theme.is_some();
        let own: tools::Table = if has_own { tools::OWN } else { &[] };
        let helpers: tools::Table = if self.recorder.run().theme.is_some() { tools::HELPERS } else { &[] };
        of_projects.chain(own.iter().copied()).chain(helpers.iter().copied())
    }

    fn decide(&self, name: &str) -> Decision {
        match self.tool(name) {
            Some(tool) => decide_about(tool, self.kind.setting()),
            None => {
                let instead = self.terms.theme.and_then(|_| tools::theme_tools::instead(name));
                Decision::Refused(match instead {
                    Some(instead) => format!("there is no tool {name}: {instead}"),
                    None => format!("there is no tool {name}"),
                })
            }
        }
    }

    /// Until when a person who is asked now may answer.
    pub(super) fn answer_until(&self, now: Timestamp) -> Timestamp {
        let days = self.cx.config.runs.answer_days;
        // The run needs its steps when it goes on, and they are deleted some time after it began.
        let kept = self.recorder.run().run_id.instant() + LIFETIME - SignedDuration::from_hours(24);
        (now + SignedDuration::from_hours(24 * i64::from(days)))
            .min(kept)
            .max(now + SignedDuration::from_hours(1))
    }

    /// Makes a card for each of these calls, so that the run waits.
    fn ask(&mut self, pending: &[Pending], asked: &[usize]) -> Rest {
        let now = self.cx.clock.now();
        let expires_at = self.answer_until(now);
        let mut new = Vec::new();
        let mut events = Vec::new();
        for call in asked.iter().filter_map(|at| pending.get(*at)) {
            let made = self.call_at(call.call_id.at as usize);
            let Some((Question { asks, attempt, hash }, made)) = call.question.clone().zip(made) else {
                continue;
            };
            let why = match (asks, self.decide(&made.name)) {
                (Asks::Outcome, _) => {
                    self.recorder.run().open_call.as_ref().map(OpenCall::unknown).unwrap_or_default()
                }
                (Asks::Permission, Decision::NeedsPerson(why)) => why,
                (Asks::Permission | Asks::Ceiling, _) => String::new(),
            };
            let tool = self.tool(&made.name);
            let card = Card {
                call_id: call.call_id,
                asks,
                tool: made.name.clone(),
                why,
                cost_micros: tool.and_then(|tool| self.cx.config.runs.outside.cost_micros(tool, &made.input)),
                hash,
                state: CardState::Waiting,
                asked_at: now,
                expires_at,
                reason: None,
                answered_at: None,
                attempt,
                ceiling: None,
            };
            let data = json!({
                "step": card.call_id.step, "call_id": card.call_id, "asks": card.asks, "tool": card.tool,
                "input": brief(&made.input), "why": card.why, "hash": card.hash, "expires_at": card.expires_at,
            });
            events.push((EventKind::CallWaiting, data));
            new.push(card);
        }
        let run = self.recorder.run_mut();
        cards::add(&mut run.cards, new);
        let open: Vec<&Card> = cards::open(&run.cards).collect();
        let code = match open.iter().any(|card| card.asks == Asks::Outcome) {
            true => ReasonCode::EffectUnknown,
            false => ReasonCode::OutsideGrant,
        };
        let mut reasons: Vec<&str> = Vec::new();
        for card in &open {
            if !reasons.contains(&card.why.as_str()) {
                reasons.push(&card.why);
            }
        }
        let more = reasons.len().saturating_sub(MAX_REASONS);
        reasons.truncate(MAX_REASONS);
        let mut text = reasons.join("; ");
        if more > 0 {
            text.push_str(&format!("; and {more} more"));
        }
        let answer_by = open.iter().map(|card| card.expires_at).min().unwrap_or(expires_at);
        Rest::Waits { reason: Reason::new(code, text), answer_by, events }
    }

    /// Makes one call of the last reply and stores its result. `false`: the call was sent, and its result is not known.
    async fn make(&mut self, at: usize, pending: &Pending) -> Result<bool, CallError> {
        let Some(call) = self.call_at(at).cloned() else { return Ok(true) };
        let call_id = pending.call_id;
        self.recorder.begin_step(call_id.step);
        let ruling = cards::ruling(pending, &self.recorder.run().cards).unwrap_or(Ruling::Make);
        let (outside, untold) = match &ruling {
            Ruling::Make => self.announce(&call, call_id).await?,
            Ruling::Told(_) | Ruling::Unanswered(_) => (None, None),
        };
        let mut tries = Tries::default();
        loop {
            tries.next().await?;
            let performed = match (&ruling, outside) {
                (Ruling::Told(result), _) => Performed::from(result.clone()),
                (Ruling::Unanswered(result), _) => Performed::from(self.with_words(result.clone()).await?),
                (Ruling::Make, Some(tool)) => match self.call_outside(tool, &call, call_id).await? {
                    Called::Done(result) => Performed::from(result),
                    Called::Unknown => return Ok(false),
                },
                (Ruling::Make, None) => self.perform(&call, at, pending).await?,
            };
            if self.keep(at, &call, (call_id, untold.clone()), performed).await? {
                return Ok(true);
            }
        }
    }

    /// Tells followers that a call is made. If it acts outside the platform, its mark is stored, and this is its tool. Nobody waits for what
    /// a scheduled run says, so the event of a call within the platform is returned, to be stored with its result.
    async fn announce(
        &mut self,
        call: &Call,
        id: CallId,
    ) -> Result<(Option<&'static ToolDef>, Option<Value>), CallError> {
        let announced =
            json!({"tool": call.name, "input": brief(&call.input), "step": id.step, "call_id": id});
        let outside = self.outside_tool(call, id);
        if let Some(tool) = outside {
            self.begin_outside(tool, call, id, announced).await?;
        } else if call.invalid.is_none() && self.recorder.run().kind == RunKind::Action {
            return Ok((None, Some(announced)));
        } else if call.invalid.is_none() {
            self.recorder.event(EventKind::ToolRequested, announced).await?;
        }
        Ok((outside, None))
    }

    /// Stores what a call has done, with the event that it is made, if that is still `untold`. `false` if it met another writer: then
    /// nothing is stored, and the call is made again from what is there now.
    async fn keep(
        &mut self,
        at: usize,
        call: &Call,
        (call_id, untold): (CallId, Option<Value>),
        performed: Performed<K::Change>,
    ) -> Result<bool, CallError> {
        let Performed { mut result, events, mut staged, proposals, agent_draft, helpers_micros } = performed;
        let mut events: Vec<_> =
            untold.map(|data| (EventKind::ToolRequested, data)).into_iter().chain(events).collect();
        result.content = results::stored(result.content);
        if let Some(reason) = &call.invalid {
            events.push((EventKind::DeliverableInvalid, json!({"kind": call.name, "reason": reason})));
        } else {
            let shown: String = result.content.chars().take(MAX_SHOWN).collect();
            let data = json!({"tool": call.name, "is_error": result.is_error, "result": shown});
            events.push((EventKind::ToolResult, data));
        }
        for (_, data) in &mut events {
            data["step"] = json!(call_id.step);
            data["call_id"] = json!(call_id);
        }
        let mut run = self.recorder.run().clone();
        run.proposals.extend(proposals);
        run.agent_draft = agent_draft.or(run.agent_draft);
        run.helpers_micros = run.helpers_micros.saturating_add(helpers_micros);
        let ends_outside = self.is_open(call_id);
        if ends_outside {
            run.open_call = None;
            staged = staged.and(self.kind.stage(self.kind_cx(), ToStore::EffectEnds)?);
        }
        let text_events = self.recorder.text_events().await?;
        let last_event = self.recorder.last_event() + text_events + events.len() as u64;
        let owner = self.recorder.owner();
        let stored = self.journal.result(&self.cx, owner, at, &result, last_event).await?;
        match self.commit(run, events, vec![stored], staged).await? {
            Stored::Yes => {
                if let Some(last) = self.transcript.steps.last_mut() {
                    last.results.push(result);
                }
                Ok(true)
            }
            // Another process has stored this result, or has claimed the run.
            Stored::Refused(Guard::RunStep) => Err(self.recorder.lose().into()),
            // What happened outside is not made again.
            Stored::Refused(_) if ends_outside => Err(self.recorder.lose().into()),
            Stored::Refused(_) => Ok(false),
        }
    }

    /// Whether the mark says that this call has begun outside the platform.
    fn is_open(&self, id: CallId) -> bool {
        self.recorder.run().open_call.as_ref().is_some_and(|open| open.call_id == id)
    }

    /// The tool of a call that acts outside the platform and is made now.
    fn outside_tool(&self, call: &Call, id: CallId) -> Option<&'static ToolDef> {
        if self.terms.rehearses {
            return None;
        }
        let tool = self.tool(&call.name).filter(|tool| tool.effect == Effect::Outside)?;
        let is_refused = matches!(self.decide(&call.name), Decision::Refused(_));
        (self.is_open(id) || self.is_readable(call) && !is_refused).then_some(tool)
    }

    /// Stores the mark that a call outside the platform begins.
    async fn begin_outside(
        &mut self,
        tool: &ToolDef,
        call: &Call,
        call_id: CallId,
        announced: Value,
    ) -> Result<(), CallError> {
        // The last moment at which the call can be prevented.
        stopped::check(&self.cx, self.recorder.owner()).await?;
        let mut run = self.recorder.run().clone();
        let before = run.open_call.filter(|open| open.call_id == call_id);
        let attempt = before.map_or(0, |open| open.attempt) + 1;
        let hash = self.hash(call);
        run.open_call = Some(OpenCall { call_id, tool: tool.name.to_owned(), hash, attempt });
        let staged = self.kind.stage(self.kind_cx(), ToStore::EffectBegins(tool.name))?;
        let events = vec![(EventKind::ToolRequested, announced)];
        match self.commit(run, events, Vec::new(), staged).await? {
            Stored::Yes => {
                self.begun = Some(call_id);
                Ok(())
            }
            Stored::Refused(_) => Err(self.recorder.lose().into()),
        }
    }

    /// Makes a call outside the platform, and keeps the lease meanwhile.
    async fn call_outside(
        &mut self,
        tool: &'static ToolDef,
        call: &Call,
        id: CallId,
    ) -> Result<Called, CallError> {
        let outside = OutsideCall {
            owner: self.recorder.owner().clone(),
            tool,
            arguments: call.input.clone(),
            key: format!("{}.{id}", self.recorder.run().run_id),
        };
        let tools = self.cx.config.clone();
        let mut called = std::pin::pin!(tools.runs.outside.call(outside));
        let mut look_up = interval(LOOK_UP);
        look_up.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                called = &mut called => return Ok(called),
                // A call that has begun is not cut off, also if somebody cancels the run.
                _ = look_up.tick() => self.recorder.keep_alive().await?,
            }
        }
    }

    /// The result, followed by what the person said instead of an answer.
    async fn with_words(&self, mut result: CallResult) -> Result<CallResult> {
        if let Some(words) = self.kind.said_by_person(self.kind_cx()).await? {
            result.content.push('\n');
            result.content.push_str(&words);
        }
        Ok(result)
    }

    async fn perform(
        &mut self,
        call: &Call,
        at: usize,
        pending: &Pending,
    ) -> Result<Performed<K::Change>, CallError> {
        if let Some(reason) = &call.invalid {
            return Ok(CallResult::repair(reason).into());
        }
        if self.transcript.is_full() {
            return Ok(CallResult::refused(format!("{NOT_CALLED}the run holds as much as it may")).into());
        }
        let tool = match (self.decide(&call.name), self.tool(&call.name)) {
            (Decision::Allowed(tool), _) => tool,
            (Decision::Refused(why), _) => return Ok(CallResult::refused(why).into()),
            // A person has approved the call.
            (Decision::NeedsPerson(_), Some(tool)) if pending.question.is_some() => tool,
            (Decision::NeedsPerson(_), Some(tool)) if ToolCall::parse(tool, &call.input).is_err() => tool,
            (Decision::NeedsPerson(_), _) => {
                let told =
                    format!("{NOT_CALLED}at most {MAX_OPEN} calls of one reply may wait for the person");
                return Ok(CallResult::refused(told).into());
            }
        };
        if self.terms.rehearses && tool.effect == Effect::Outside {
            return Ok(CallResult::told("this is a rehearsal: the call was recorded and not made").into());
        }
        match ToolCall::parse(tool, &call.input) {
            Ok(ToolCall::ReadResult(ReadResult { call_id, from_char })) => {
                let page = self.transcript.result_page(call_id, from_char);
                Ok(CallResult::of(page).into())
            }
            Ok(ToolCall::OfArea(tool, input)) => self.of_area(tool, (call, at), input).await,
            Ok(parsed) => Ok(self.kind.perform(self.kind_cx(), parsed).await?),
            Err(sentence) if tool.is_signal() => {
                let mut performed = Performed::from(CallResult::repair(&sentence));
                let data = json!({"kind": call.name, "reason": sentence});
                performed.events.push((EventKind::DeliverableInvalid, data));
                Ok(performed)
            }
            Err(sentence) => Ok(CallResult::refused(sentence).into()),
        }
    }

    /// A call that an area performs.
    async fn of_area(
        &mut self,
        tool: &'static ToolDef,
        (call, at): (&Call, usize),
        input: Value,
    ) -> Result<Performed<K::Change>, CallError> {
        let performer = self.cx.areas.iter().flat_map(|area| area.tools).find(|known| known.def == tool);
        let (Some(performer), Some(project)) = (performer, self.terms.theme) else {
            let told = format!("{NOT_CALLED}{} is not available here", tool.name);
            return Ok(CallResult::refused(told).into());
        };
        if let Some(why) = self.refusal(call) {
            return Ok(CallResult::refused(format!("{NOT_CALLED}{why}")).into());
        }
        // A rehearsal stores nothing: an edit is checked and forgotten.
        let rehearses = self.terms.rehearses && tool.effect != Effect::Read;
        if rehearses && tool.effect == Effect::Write {
            return Ok(CallResult::told("this is a rehearsal: the call was recorded and not made").into());
        }
        let run = self.recorder.run();
        let helper = run.theme.as_ref().and_then(|turn| turn.helper.as_ref());
        let (tell, mut told) = mpsc::unbounded_channel();
        let is_long = tools::find(tools::HELPERS, tool.name).is_some();
        let call = AreaCall {
            cx: self.cx.clone(),
            owner: self.recorder.owner().clone(),
            project,
            // What a helper edits is the turn's.
            run: helper.map_or(run.run_id, |helper| helper.turn),
            agent: run.agent_id,
            change_set: run.theme.as_ref().map(|turn| turn.change_set_id),
            input,
            helpers: if is_long { self.for_helpers(at, tell) } else { None },
        };
        let mut performed = (performer.perform)(call);
        let answer = if is_long {
            let mut look = interval_at(Instant::now() + LOOK_UP, LOOK_UP);
            look.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut cancelled = None::<Instant>;
            loop {
                tokio::select! {
                    answer = &mut performed => break answer?,
                    Some((kind, data)) = told.recv() => self.recorder.event(kind, data).await?,
                    _ = look.tick() => match self.look().await {
                        // Its helpers hear of it by themselves. What they have done and cost is stored with their end.
                        Err(CallError::Cancelled(_))
                            if cancelled.get_or_insert_with(Instant::now).elapsed() < HELPERS_END => {}
                        looked => looked?,
                    },
                }
            }
        } else {
            performed.await?
        };
        // What was told as the call ended.
        let untold = std::iter::from_fn(|| told.try_recv().ok());
        let AreaAnswer { told, writes, objects, events, helpers_micros } = answer;
        let mut performed = Performed::from(match told {
            Ok(text) => CallResult::told(text),
            Err(why) => CallResult::refused(why),
        });
        performed.events = untold.chain(events).collect();
        performed.helpers_micros = helpers_micros;
        if rehearses {
            performed.result.content.push_str("\nthis is a rehearsal: the edit is not kept");
            objects.settle(&self.cx, false).await;
        } else {
            performed.staged.writes = writes;
            performed.staged.objects = objects;
        }
        Ok(performed)
    }

    /// Why the area of the run does not let it make a call now.
    fn refusal(&self, call: &Call) -> Option<String> {
        let (turn, leads) = (self.recorder.run().theme.as_ref()?, self.cx.leads()?);
        (leads.refusal)(turn, &self.transcript.steps, call)
    }

    /// What a call that gives work to helpers needs. `None` outside of a turn that has helpers.
    fn for_helpers(
        &self,
        at: usize,
        tell: mpsc::UnboundedSender<(EventKind, Value)>,
    ) -> Option<Box<ForHelpers>> {
        let run = self.recorder.run();
        let turn = ThemeTurn::clone(run.theme.as_ref()?);
        let step = self.journal.last();
        let calls = self.transcript.steps.last().map_or(&[][..], |step| &step.reply.calls);
        let (count, is_first) =
            self.cx.leads().map_or((1, true), |leads| (leads.begins)(&self.transcript.steps, at));
        let later = calls.iter().enumerate().skip(at).take(count);
        let ceiling = Ceiling { of: CeilingOf::Run, micros: self.terms.ceiling_micros };
        Some(Box::new(ForHelpers {
            run: run.clone(),
            turn,
            calls: later.map(|(at, call)| (CallId::new(step, at), call.clone())).collect(),
            is_first,
            ceiling_micros: ceilings::raised(&self.cx, ceiling, run.raised_micros),
            until: self.terms.policy.until,
            deadline: self.deadline + PUT_DOWN_BEFORE,
            tell,
        }))
    }
}

/// The input of a call as events show it: a long text is read where it is saved, not in the events.
fn brief(input: &Value) -> Value {
    match input {
        Value::String(text) if text.len() > MAX_SHOWN => json!(format!("({} bytes)", text.len())),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| match value {
                Value::String(text) if name == "content" => {
                    (name.clone(), json!(format!("({} bytes)", text.len())))
                }
                value => (name.clone(), brief(value)),
            })
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(brief).collect(),
        other => other.clone(),
    }
}
