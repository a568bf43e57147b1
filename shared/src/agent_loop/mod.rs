//! The agent loop's shell: it asks the domain what a run does next, does it, and stores the result.
//!
//! The shell knows no kind of run. [`Terms`] say which limits hold, and what the model is told in every call. A [`Kind`] says
//! which tools the model has, what was said before, and what a call does. Every reply is stored whole before its calls begin, and
//! every result as it ends. So any process can go on with a run from what is stored.
//!
//! - [`recorder`]: the one writer of a run's record and events
//! - [`journal`]: the stored steps
//! - [`mod@call`]: one call of a model
//! - `ask_to_raise`: the card that asks a person to raise a ceiling of costs
//! - `perform`: the calls of tools, and those that wait for a person
//! - `summarise`: the summary of messages that are no longer sent

mod ask_to_raise;
pub mod call;
pub mod journal;
mod perform;
pub mod recorder;
mod summarise;

use std::collections::BTreeMap;
use std::ops::Deref;

use domain::actions::Reason;
use domain::actions::conditions::Report;
use domain::agent_loop::check::Verdict;
use domain::agent_loop::{self, CallId, CallResult, Next, Outcome, Policy, Purpose, Reply, Step, Transcript};
use domain::ids::{Owner, ProjectId, ProposalId};
use domain::models::reduce::{Reduction, reduce};
use domain::models::routing::{AgentRole, Ask, TaskTier};
use domain::models::{
    Message, ModelError, ModelRequest, ModelTier, ProviderTool, Sampling, SystemBlock, ToolChoice,
};
use domain::prompts;
use domain::runs::form::JsonForm;
use domain::runs::{EventKind, Run, RunError, RunModel};
use domain::tools::{self, Setting, ToolCall, ToolDef};
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::context::{Cx, Data, StagedObjects};
use crate::error::{Error, Result};
use crate::model_choice;
use crate::money::ceilings::MonthCeilings;
use crate::store::runs::CancelCause;
use crate::store::table::Write;

use call::{BETWEEN_STEPS, CallError, CallLimits, Replied, call, look};
use journal::Journal;
use recorder::{MAX_PIECE, Recorder, Stored};
pub use summarise::ToSummarise;

/// How long before its process's end a run is put down and handed on.
pub const PUT_DOWN_BEFORE: SignedDuration = SignedDuration::from_secs(60);

/// The longest reply of a step, in tokens: room for a long document.
pub const MAX_OUTPUT_TOKENS: u32 = 16_000;

/// The longest reply of a check, in tokens.
const MAX_CHECK_TOKENS: u32 = 1_000;

/// What holds for all of a run.
pub struct Terms {
    pub policy: Policy,
    pub tier: ModelTier,
    /// What a call of a model for the run's own work is for.
    pub work: Ask,
    /// The most that the run may cost, in micro-dollars.
    pub ceiling_micros: i64,
    /// The most that a month may cost.
    pub month: MonthCeilings,
    pub system: Vec<SystemBlock>,
    /// The tools that the provider of its model runs, and how often the run may use each.
    pub provider_tools: BTreeMap<ProviderTool, u32>,
    /// Whether the run fails if no model that may answer has these tools.
    pub needs_provider_tools: bool,
    /// Whether calls that act outside the platform are recorded and not made.
    pub rehearses: bool,
    /// Whether the agent uses the living documents of a project.
    pub has_documents: bool,
    /// The project whose theme the agent reads and edits.
    pub theme: Option<ProjectId>,
    /// The most tokens of a reply of the model.
    pub reply_tokens: u32,
}

impl Terms {
    /// What a call of a model is for. The work of a deep agent is checked by a deep model, and that of others by the standard one.
    fn ask(&self, purpose: Purpose) -> Ask {
        match purpose {
            Purpose::Work | Purpose::Person | Purpose::Conditions | Purpose::Nudge => self.work,
            Purpose::Check => Ask {
                role: AgentRole::Review,
                task: (self.tier == ModelTier::Deep).then_some(TaskTier::Complex),
                ..Ask::default()
            },
            Purpose::Summary => Ask { role: AgentRole::Summarizer, ..Ask::default() },
        }
    }
}

/// What a kind of run works with: it reads, and it names writes. It calls no model, sends nothing and starts nothing.
#[derive(Clone, Copy)]
pub struct KindCx<'a> {
    pub data: &'a Data,
    pub owner: &'a Owner,
    /// The record of the run.
    pub run: &'a Run,
}

impl Deref for KindCx<'_> {
    type Target = Data;

    fn deref(&self) -> &Data {
        self.data
    }
}

/// What the loop is about to store.
#[derive(Clone, Copy, Debug)]
pub enum ToStore<'a> {
    /// A reply of the model, with what it has cost.
    Reply,
    /// The mark that a call outside the platform begins, with the name of its tool.
    EffectBegins(&'a str),
    /// The result of that call.
    EffectEnds,
}

/// Writes of a kind of run, and what the kind becomes once they are stored. The loop stores the writes together with its own. Only
/// if that succeeds, it calls [`Kind::apply`].
pub struct Staged<C> {
    pub writes: Vec<Write>,
    pub changes: Vec<C>,
    pub objects: StagedObjects,
}

impl<C> Staged<C> {
    #[must_use]
    pub fn nothing() -> Self {
        Self { writes: Vec::new(), changes: Vec::new(), objects: StagedObjects::default() }
    }

    fn and(mut self, other: Self) -> Self {
        self.writes.extend(other.writes);
        self.changes.extend(other.changes);
        self.objects.made.extend(other.objects.made);
        self.objects.replaced.extend(other.objects.replaced);
        self
    }
}

/// A kind of run. It changes only in [`Kind::apply`], with what is stored.
pub trait Kind: Send + Sync {
    /// A change of the kind's own state.
    type Change: Send;

    /// Which tools are offered, and which calls are allowed.
    fn setting(&self) -> Setting<'_>;

    /// What was said before the run's first step, oldest first; its last message is a person's or the task.
    fn history(&self, cx: KindCx<'_>) -> impl Future<Output = Result<Vec<Message>>> + Send;

    /// Whether a later run continues the conversation.
    fn continues(&self) -> bool {
        false
    }

    /// The oldest messages, if there are too many for a model.
    fn to_summarise(&self, _cx: KindCx<'_>) -> impl Future<Output = Result<Option<ToSummarise>>> + Send {
        std::future::ready(Ok(None))
    }

    /// What a check is asked.
    fn to_check(&self, _cx: KindCx<'_>) -> impl Future<Output = Result<String>> + Send {
        std::future::ready(Err(Error::internal("this kind of run has no output to check")))
    }

    /// Checks the conditions of the outputs.
    fn check_conditions(&self, _cx: KindCx<'_>) -> impl Future<Output = Result<Report>> + Send {
        std::future::ready(Err(Error::internal("this kind of run has no conditions")))
    }

    /// Adds what the kind reads out of a reply, before it is stored.
    fn complete(&self, _run: &Run, _reply: &mut Reply) {}

    /// What must be stored together with what the loop is about to store. The run's record has marks of its own.
    fn stage(&self, _cx: KindCx<'_>, _step: ToStore<'_>) -> Result<Staged<Self::Change>> {
        Ok(Staged::nothing())
    }

    /// Makes a staged change: it is stored.
    fn apply(&mut self, change: Self::Change);

    /// What a person said instead of an answer to the run's cards.
    fn said_by_person(&self, _cx: KindCx<'_>) -> impl Future<Output = Result<Option<String>>> + Send {
        std::future::ready(Ok(None))
    }

    /// Does a call that is allowed. All that it writes is staged, so that the call is done once, together with its result.
    fn perform(
        &self,
        cx: KindCx<'_>,
        call: ToolCall,
    ) -> impl Future<Output = Result<Performed<Self::Change>>> + Send;

    /// How many outputs the run has saved.
    fn outputs(&self) -> usize {
        0
    }
}

/// What a call has done, once it is stored.
pub struct Performed<C> {
    pub result: CallResult,
    /// Told to followers together with the writes.
    pub events: Vec<(EventKind, Value)>,
    pub staged: Staged<C>,
    pub proposals: Vec<ProposalId>,
    pub agent_draft: Option<domain::agents::AgentDraft>,
    /// What helpers have cost for it.
    pub helpers_micros: i64,
}

impl<C> From<CallResult> for Performed<C> {
    fn from(result: CallResult) -> Self {
        Self {
            result,
            events: Vec::new(),
            staged: Staged::nothing(),
            proposals: Vec::new(),
            agent_draft: None,
            helpers_micros: 0,
        }
    }
}

/// How a run left the loop.
#[derive(Debug)]
pub enum Rest {
    Ended(Outcome),
    /// Calls wait for a person until `answer_by`; their cards are in the run's record, and `events` tell of the new ones.
    Waits {
        reason: Reason,
        answer_by: Timestamp,
        events: Vec<(EventKind, Value)>,
    },
    Failed(RunError),
    Cancelled(CancelCause),
    /// Another process goes on with it.
    PutDown,
    /// Another process has it, or somebody ended it: there is nothing more to write.
    Lost,
}

/// Drives a run.
pub struct Driver<K> {
    pub cx: Cx,
    /// For the reads before the first call of the model. It remembers what was read when the run began.
    beginning: Cx,
    terms: Terms,
    pub kind: K,
    pub recorder: Recorder,
    pub transcript: Transcript,
    journal: Journal,
    /// When work must be put down.
    deadline: Timestamp,
    /// The call outside the platform that this process began last.
    begun: Option<CallId>,
    /// How often the conversation was reduced, because it is larger than the model's context.
    reductions: u32,
}

impl<K: Kind> Driver<K> {
    /// Of a run that `recorder` writes, after its stored `steps`. The process that drives it ends at `deadline`. `beginning`: a context
    /// that remembers what was read when the run began.
    #[must_use]
    pub fn new(
        cx: &Cx,
        beginning: Cx,
        (kind, terms): (K, Terms),
        recorder: Recorder,
        (journal, steps): (Journal, Vec<Step>),
        deadline: Timestamp,
    ) -> Self {
        Self {
            cx: cx.clone(),
            beginning,
            terms,
            kind,
            recorder,
            transcript: Transcript { steps, outputs: 0 },
            journal,
            deadline: deadline - PUT_DOWN_BEFORE,
            begun: None,
            reductions: 0,
        }
    }

    /// Works until the run ends or must be put down.
    pub fn drive(&mut self) -> BoxFuture<'_, Rest> {
        Box::pin(async move {
            self.recorder.begin_step(self.journal.last().max(1));
            let ended = self.steps().await;
            if self.recorder.is_lost() {
                return Rest::Lost;
            }
            match ended {
                Ok(rest) => rest,
                Err(CallError::Cancelled(cause)) => Rest::Cancelled(cause),
                Err(CallError::PutDown) => Rest::PutDown,
                Err(CallError::Ceiling(reached)) => {
                    self.ask_to_raise(*reached).unwrap_or_else(|error| Rest::Failed(error.run_error()))
                }
                Err(error) => {
                    if let CallError::Failed(cause) = &error {
                        tracing::error!(cause = %cause.causes(), "a step failed");
                    }
                    Rest::Failed(error.run_error())
                }
            }
        })
    }

    async fn steps(&mut self) -> Result<Rest, CallError> {
        let mut history = None::<Vec<Message>>;
        loop {
            self.transcript.outputs = self.kind.outputs();
            let nudge = self.boxed_lead().await?;
            let rest = match agent_loop::next(&self.transcript, &self.terms.policy, self.cx.clock.now()) {
                Next::Finish(Outcome::Completed { .. }) if nudge.is_some() => {
                    self.boxed_nudge(nudge.unwrap_or_default()).await?;
                    None
                }
                Next::Finish(outcome) => Some(Rest::Ended(outcome)),
                Next::Perform { from } => self.boxed_calls(from).await?,
                Next::CheckConditions => self.boxed_conditions().await?,
                Next::CallModel { may_call_tools } => self.boxed_work(&mut history, may_call_tools).await?,
                Next::Check => self.boxed_check().await?,
            };
            if let Some(rest) = rest {
                return Ok(rest);
            }
        }
    }

    /// One call of the model, with the messages before the first step in `history`.
    async fn work(
        &mut self,
        history: &mut Option<Vec<Message>>,
        may_call_tools: bool,
    ) -> Result<Option<Rest>, CallError> {
        self.look().await?;
        let Some(longest) = self.longest_reply() else {
            self.recorder.run_mut().cut_off = true;
            return Ok(Some(Rest::Ended(Outcome::completed())));
        };
        if history.is_none() {
            if self.transcript.steps.is_empty() && self.boxed_summary().await? {
                return Ok(None);
            }
            if self.terms.has_documents || self.terms.theme.is_some() {
                // Documents, reports of commits and themes repeat what strangers have written.
                let now = self.cx.clock.now();
                self.recorder.run_mut().taint(0, now);
            }
            let beginning = KindCx { data: &self.beginning, ..self.kind_cx() };
            *history = Some(self.kind.history(beginning).await?);
            // What it remembers is old from now on.
            self.beginning = self.cx.clone();
        }
        let request = self.request(history.as_deref().unwrap_or_default(), may_call_tools, longest);
        let replied = self.boxed_call(Purpose::Work, request).await?;
        self.store(Purpose::Work, replied).await?;
        Ok(None)
    }

    /// Lets the area of the run say what holds now. Returns what the model is told if it stops now.
    async fn be_led(&mut self) -> Result<Option<&'static str>, CallError> {
        let Some(turn) = &self.recorder.run().theme else { return Ok(None) };
        let Some(leads) = self.cx.leads() else {
            return Err(Error::internal("this function can't lead a turn of the theme agent").into());
        };
        let lead = (leads.lead)(turn, &self.transcript.steps);
        let known = turn.escalations.len();
        self.terms.policy.max_steps = lead.steps;
        self.terms.reply_tokens = lead.reply_tokens;
        self.terms.work = lead.ask;
        self.terms.tier = lead.tier;
        for escalation in lead.escalations.into_iter().skip(known) {
            let data = json!(escalation);
            if let Some(turn) = &mut self.recorder.run_mut().theme {
                turn.escalations.push(escalation);
            }
            self.recorder.event(EventKind::TurnEscalated, data).await?;
        }
        Ok(lead.nudge)
    }

    async fn check_conditions(&mut self) -> Result<Option<Rest>, CallError> {
        self.look().await?;
        // The report is stored as a step. So a process that takes the run over decides by the same report.
        let text = self.kind.check_conditions(self.kind_cx()).await?.to_text();
        let reply = Reply { text, ..Reply::default() };
        self.store(Purpose::Conditions, Replied { reply, settle: Vec::new(), usage: None }).await?;
        Ok(None)
    }

    async fn check(&mut self) -> Result<Option<Rest>, CallError> {
        self.look().await?;
        let request = self.check_request().await?;
        match self.boxed_call(Purpose::Check, request).await {
            Ok(replied) => self.store(Purpose::Check, replied).await?,
            // The work is done and saved, and stays: the run says that it was not checked.
            Err(CallError::Ceiling(reached)) => {
                return Ok(Some(Rest::Ended(Outcome::unchecked(&reached.to_string()))));
            }
            Err(error) => return Err(error),
        }
        Ok(None)
    }

    // In a debug build, each future that a function builds has a place of its own on the function's stack, also if it is boxed there. These
    // are large, so they are built in functions that return before the futures are polled.

    fn boxed_calls(&mut self, from: usize) -> BoxFuture<'_, Result<Option<Rest>, CallError>> {
        Box::pin(self.make_calls(from))
    }

    fn boxed_conditions(&mut self) -> BoxFuture<'_, Result<Option<Rest>, CallError>> {
        Box::pin(self.check_conditions())
    }

    fn boxed_work<'a>(
        &'a mut self,
        history: &'a mut Option<Vec<Message>>,
        may_call_tools: bool,
    ) -> BoxFuture<'a, Result<Option<Rest>, CallError>> {
        Box::pin(self.work(history, may_call_tools))
    }

    fn boxed_lead(&mut self) -> BoxFuture<'_, Result<Option<&'static str>, CallError>> {
        Box::pin(self.be_led())
    }

    fn boxed_nudge(&mut self, text: &'static str) -> BoxFuture<'_, Result<(), CallError>> {
        let reply = Reply { text: text.to_owned(), ..Reply::default() };
        Box::pin(self.store(Purpose::Nudge, Replied { reply, settle: Vec::new(), usage: None }))
    }

    fn boxed_check(&mut self) -> BoxFuture<'_, Result<Option<Rest>, CallError>> {
        Box::pin(self.check())
    }

    fn boxed_summary(&mut self) -> BoxFuture<'_, Result<bool, CallError>> {
        Box::pin(self.summarise())
    }

    fn boxed_call(
        &mut self,
        purpose: Purpose,
        request: ModelRequest,
    ) -> BoxFuture<'_, Result<Replied, CallError>> {
        Box::pin(self.call(purpose, request))
    }

    async fn look(&mut self) -> Result<(), CallError> {
        look(&self.cx, &mut self.recorder, self.deadline).await
    }

    async fn call(&mut self, purpose: Purpose, mut request: ModelRequest) -> Result<Replied, CallError> {
        self.not_refused()?;
        let ask = self.terms.ask(purpose);
        let number = model_choice::number(self.recorder.run().run_id);
        // Both read the account.
        let cx = self.cx.remembering();
        let (route, ceilings) = tokio::try_join!(
            Box::pin(model_choice::route(&cx, self.recorder.owner(), &ask, number)),
            Box::pin(self.ceilings(&cx)),
        )?;
        let (mut route, limits) = (route?, CallLimits { ceilings, deadline: self.deadline });
        if purpose == Purpose::Work && self.terms.needs_provider_tools {
            model_choice::with_provider_tools(&mut route).map_err(CallError::ToolMissing)?;
        }
        self.recorder.run_mut().model = Some(RunModel {
            model: route.candidates[0].model.clone(),
            level: route.level,
            why: route.why.to_owned(),
        });
        self.recorder.begin_step(self.journal.last() + 1);
        let shown = purpose == Purpose::Work;
        for _ in 0..self.reductions {
            reduce(&mut request);
        }
        loop {
            // The future is large, and executors poll it deep in their stacks.
            let called = call(&self.cx, &mut self.recorder, &route, request.clone(), limits.clone(), shown);
            let called = Box::pin(called).await;
            let too_large = matches!(
                called,
                Err(CallError::Model(ModelError::ContextTooLarge | ModelError::RequestTooLarge))
            );
            let Some(reduction) = too_large.then(|| reduce(&mut request)).flatten() else { return called };
            // The next steps of this run have this conversation too.
            self.reductions += 1;
            let Reduction { results_shortened, images_left_out, messages_left_out } = reduction;
            tracing::info!(
                results_shortened,
                images_left_out,
                messages_left_out,
                "the conversation is larger than the model's context"
            );
            let data = json!({
                "results_shortened": results_shortened, "images_left_out": images_left_out, "messages_left_out": messages_left_out,
                "step": self.recorder.step(),
            });
            self.recorder.event(EventKind::ContextReduced, data).await?;
        }
    }

    /// The longest reply of the next step, in tokens. `None` if the reply of the run has the length that the client wants.
    fn longest_reply(&self) -> Option<u32> {
        let run = self.recorder.run();
        run.form.tokens_left(run.usage.output_tokens, self.terms.reply_tokens)
    }

    fn request(&self, history: &[Message], may_call_tools: bool, longest: u32) -> ModelRequest {
        let mut messages = history.to_vec();
        messages.extend(self.transcript.messages(self.terms.policy.continues_cut_off));
        let setting = self.kind.setting();
        let outside = tools::offered_of(self.cx.config.runs.outside.tools(), setting);
        let own = tools::offered_of(self.own_tools(), setting);
        let provider_tools = self.provider_tools_left();
        ModelRequest {
            system: self.terms.system.clone(),
            tools: tools::offered(tools::LOOP, setting)
                .chain(own)
                .chain(outside)
                .map(ToolDef::spec)
                .collect(),
            max_uses: provider_tools.values().copied().min().unwrap_or(0),
            provider_tools: provider_tools.into_keys().collect(),
            tool_choice: if may_call_tools { ToolChoice::Auto } else { ToolChoice::None },
            messages,
            max_output_tokens: longest,
            cache_last_turn: true,
            stable_messages: self.kind.continues().then(|| history.len().saturating_sub(1)),
            effort: Some(self.terms.tier.into()),
            context_editing: true,
            output_schema: self.recorder.run().form.json.as_ref().and_then(JsonForm::for_provider),
            sampling: self.recorder.run().form.sampling.clone(),
        }
    }

    /// The provider's tools that the run may still use, and how often.
    fn provider_tools_left(&self) -> BTreeMap<ProviderTool, u32> {
        let usage = &self.recorder.run().usage;
        let left = |(tool, most): (&ProviderTool, &u32)| {
            let used = match tool {
                ProviderTool::WebSearch => usage.web_searches,
                ProviderTool::CodeExecution => usage.code_runs,
            };
            let left = most.saturating_sub(u32::try_from(used).unwrap_or(u32::MAX));
            (left > 0).then_some((*tool, left))
        };
        self.terms.provider_tools.iter().filter_map(left).collect()
    }

    async fn check_request(&self) -> Result<ModelRequest> {
        Ok(ModelRequest {
            system: prompts::check(),
            tools: Vec::new(),
            provider_tools: Vec::new(),
            max_uses: 0,
            tool_choice: ToolChoice::Auto,
            messages: vec![Message::user(self.kind.to_check(self.kind_cx()).await?)],
            max_output_tokens: MAX_CHECK_TOKENS,
            cache_last_turn: false,
            stable_messages: None,
            // Thinking would need more tokens than a verdict.
            effort: None,
            context_editing: false,
            output_schema: Some(Verdict::schema()),
            sampling: Sampling::default(),
        })
    }

    /// Stores a reply, what it cost, and the part of it that is chat.
    async fn store(&mut self, purpose: Purpose, replied: Replied) -> Result<(), CallError> {
        match self.store_with(purpose, replied, Vec::new(), Vec::new()).await? {
            Stored::Yes => Ok(()),
            // Another process has stored this step, or the run was ended elsewhere.
            Stored::Refused(_) => Err(self.recorder.lose().into()),
        }
    }

    /// The same with more events and writes. If one of the writes is refused, nothing is stored.
    async fn store_with(
        &mut self,
        purpose: Purpose,
        replied: Replied,
        more_events: Vec<(EventKind, Value)>,
        more_writes: Vec<Write>,
    ) -> Result<Stored, CallError> {
        let Replied { mut reply, settle, usage } = replied;
        let text_events = self.recorder.text_events().await?;
        let mut events: Vec<(EventKind, Value)> = usage.into_iter().collect();
        let mut run = self.recorder.run().clone();
        run.attempts = 0;
        if purpose == Purpose::Work {
            self.kind.complete(&run, &mut reply);
            let text = reply.text.trim();
            if !text.is_empty() {
                if !run.message.is_empty() {
                    run.message.push_str(BETWEEN_STEPS);
                }
                run.message.push_str(text);
                run.message = shortened(run.message);
                let text = shortened(text.to_owned());
                let step = self.journal.last() + 1;
                events.push((EventKind::MessageCompleted, json!({"text": text, "step": step})));
            }
        }
        events.extend(more_events);
        let last_event = self.recorder.last_event() + text_events + events.len() as u64;
        let step = self.journal.reply(&self.cx, self.recorder.owner(), purpose, &reply, last_event).await?;
        let staged = self.kind.stage(self.kind_cx(), ToStore::Reply)?;
        let writes = [step].into_iter().chain(settle).chain(more_writes).collect();
        let stored = self.commit(run, events, writes, staged).await?;
        if stored == Stored::Yes {
            self.journal.stored();
            self.transcript.steps.push(Step { purpose, reply, results: Vec::new() });
        }
        Ok(stored)
    }

    fn kind_cx(&self) -> KindCx<'_> {
        KindCx { data: &self.cx, owner: self.recorder.owner(), run: self.recorder.run() }
    }

    /// Stores the record as `run`, events, writes, and what the kind has staged, in one transaction.
    async fn commit(
        &mut self,
        run: Run,
        events: Vec<(EventKind, Value)>,
        mut writes: Vec<Write>,
        staged: Staged<K::Change>,
    ) -> Result<Stored> {
        writes.extend(staged.writes);
        let stored = self.recorder.commit_as(run, events, writes).await?;
        staged.objects.settle(&self.cx, stored == Stored::Yes).await;
        if stored == Stored::Yes {
            staged.changes.into_iter().for_each(|change| self.kind.apply(change));
        }
        Ok(stored)
    }
}

/// A text as one item of the table holds it. The chat has the whole text.
pub(crate) fn shortened(mut text: String) -> String {
    const MARK: &str = "\n\n(shortened)";
    if text.len() > MAX_PIECE + MARK.len() {
        text.truncate(text.floor_char_boundary(MAX_PIECE));
        text.push_str(MARK);
    }
    text
}
