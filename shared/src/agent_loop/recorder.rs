//! The only writer of a run. It writes the record, the events, and everything that is stored together with them.
//!
//! Each write for a run creates an event with the next id, and an id can be used only once. A process that takes a run over
//! first writes an event. From then on, all writes of the former process are refused. Writes that concern the run as a whole (a
//! reply, a reservation, its end) also replace the record, on the condition that it still has the version that this writer knows.

use std::time::Duration;

use domain::ceilings::Ceiling;
use domain::ids::Owner;
use domain::models::{ModelRef, Usage, UsedModel, estimate};
use domain::runs::{EventKind, Reservation, Run, RunError, RunEvent, RunKind, RunState};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::context::Cx;
use crate::error::{Error, Result};
use crate::process::metrics::{self, Work};
use crate::store::accounts::spend::Spender;
use crate::store::chats::threads::thread_of;
use crate::store::keys::Guard;
use crate::store::runs::CancelCause;
use crate::store::table::{Write, Written};
use crate::store::{Store, Versioned};

/// The shortest interval between two stored pieces of text.
const PIECE: Duration = Duration::from_millis(200);

/// The longest text of one event, in bytes. An item of the table holds 400 KB.
pub(crate) const MAX_PIECE: usize = 100_000;

/// How much of what a model thinks in one step is stored, in bytes.
const MAX_THINKING: usize = 50_000;

/// How long an executor's lease lasts.
const LEASE: SignedDuration = SignedDuration::from_secs(60);

/// How long before its end a lease is renewed.
const RENEW_BEFORE: SignedDuration = SignedDuration::from_secs(30);

/// How often a run checks whether it should stop.
const CANCEL_CHECK: Duration = Duration::from_millis(500);

/// The end of a lease that begins now.
#[must_use]
pub fn lease_from(now: Timestamp) -> Timestamp {
    now + LEASE
}

/// The executor has lost the run: another process has taken it over, somebody has ended it, or it was deleted.
#[derive(Debug, thiserror::Error)]
#[error("this executor no longer holds the run")]
pub struct Lost;

/// The result of a transaction with additional writes that have conditions of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Stored {
    Yes,
    /// A condition of an additional write was not met. Nothing was written.
    Refused(Guard),
}

/// Whether a reservation was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserved {
    Yes,
    /// A ceiling is too low for it.
    TooDear,
}

/// The writer of one run's events.
pub struct Recorder {
    cx: Cx,
    owner: Owner,
    run: Run,
    version: u64,
    next_event: u64,
    /// Text that is not stored yet, and the kind of its events.
    pending: String,
    pending_kind: EventKind,
    pending_since: Option<Instant>,
    /// The number of the current step, from 1.
    step: u32,
    /// The text of this step so far.
    said: String,
    /// The bytes of thinking that were stored in this step.
    thought: usize,
    cancel_checked: Instant,
    cancelled: Option<CancelCause>,
    lost: bool,
}

impl Recorder {
    /// The writer of a run that was just created or taken over. `last_event` is the id of its newest event.
    #[must_use]
    pub fn new(cx: Cx, owner: Owner, run: Versioned<Run>, last_event: u64) -> Self {
        cx.live.tell(run.value.run_id, last_event, Vec::new());
        tracing::info!(run_id = %run.value.run_id, again = last_event > 1, "a run is taken up");
        Self {
            cx,
            owner,
            run: run.value,
            version: run.version,
            next_event: last_event + 1,
            pending: String::new(),
            pending_kind: EventKind::MessageDelta,
            said: String::new(),
            thought: 0,
            pending_since: None,
            step: 1,
            cancel_checked: Instant::now(),
            cancelled: None,
            lost: false,
        }
    }

    #[must_use]
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The record. Changes are stored by the next [`Recorder::commit`], with the next renewal of the lease, or at the end of the
    /// run.
    pub fn run_mut(&mut self) -> &mut Run {
        &mut self.run
    }

    #[must_use]
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// The id of the newest event.
    #[must_use]
    pub fn last_event(&self) -> u64 {
        self.next_event - 1
    }

    /// Whether this executor has lost the run. Then it must not write anything more.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// Begins a step: text and usage that follow belong to it.
    pub fn begin_step(&mut self, step: u32) {
        self.step = step;
        self.said.clear();
        self.thought = 0;
    }

    /// What readers have seen of the reply so far: the text of the steps that are done, and of the one that is under way.
    #[must_use]
    pub fn text_so_far(&self) -> String {
        format!("{}{}", self.run.message, self.said).trim().to_owned()
    }

    /// The number of the current step, from 1.
    #[must_use]
    pub fn step(&self) -> u32 {
        self.step
    }

    /// Adds text of the reply. The text is collected, and stored at most every 200 milliseconds.
    ///
    /// # Errors
    /// If the text can't be stored.
    pub async fn text(&mut self, delta: &str) -> Result<()> {
        self.said.push_str(delta);
        self.collect(EventKind::MessageDelta, delta).await
    }

    /// Adds a piece of what the model thinks, like [`Recorder::text`]. Of a step, the first 50,000 bytes are stored.
    ///
    /// # Errors
    /// If the text can't be stored.
    pub async fn thinking(&mut self, delta: &str) -> Result<()> {
        let delta = &delta[..delta.floor_char_boundary(MAX_THINKING.saturating_sub(self.thought))];
        self.thought += delta.len();
        self.collect(EventKind::ThinkingDelta, delta).await
    }

    async fn collect(&mut self, kind: EventKind, delta: &str) -> Result<()> {
        if delta.is_empty() {
            return Ok(());
        }
        if self.pending_kind != kind {
            self.flush().await?;
            self.pending_kind = kind;
        }
        self.pending.push_str(delta);
        // The first piece is sent at once, because people wait for it. Nobody waits for the text of a scheduled run.
        let waited = if self.run.kind == RunKind::Action { Duration::ZERO } else { PIECE };
        let since = *self.pending_since.get_or_insert_with(|| Instant::now() - waited);
        if since.elapsed() >= PIECE { self.flush_soon().await } else { Ok(()) }
    }

    /// Stores the collected text.
    ///
    /// # Errors
    /// If it can't be stored. The next call stores it together with later text.
    pub async fn flush(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        while !self.pending.is_empty() {
            let piece = self.pending.floor_char_boundary(MAX_PIECE);
            let text = &self.pending[..piece];
            let events = vec![(self.pending_kind, json!({"text": text, "step": self.step}))];
            let _ = self.store(self.renewed(), events, Vec::new()).await?;
            self.pending.drain(..piece);
        }
        Ok(())
    }

    /// Stores the collected text. If the table does not answer, the next call tries again.
    async fn flush_soon(&mut self) -> Result<()> {
        let flushed = self.flush().await;
        self.pending_since = Some(Instant::now());
        self.tolerate(flushed)
    }

    /// Ignores an error of the table as long as the lease lasts: the table may answer the next call.
    fn tolerate(&self, done: Result<()>) -> Result<()> {
        match done {
            Err(error) if !self.lost && !self.run.lease().is_over(self.cx.clock.now()) => {
                tracing::warn!(cause = %error.causes(), "the table did not answer; the write will be tried again");
                Ok(())
            }
            done => done,
        }
    }

    /// Stores the collected text if it has waited at least 200 milliseconds.
    ///
    /// # Errors
    /// If it can't be stored.
    pub async fn flush_if_due(&mut self) -> Result<()> {
        if self.pending_since.is_some_and(|since| since.elapsed() >= PIECE) {
            self.flush_soon().await
        } else {
            Ok(())
        }
    }

    /// Adds an event, and renews the lease with it if the lease ends soon.
    ///
    /// # Errors
    /// If it can't be stored.
    pub async fn event(&mut self, kind: EventKind, data: Value) -> Result<()> {
        self.flush().await?;
        self.pending_since = None;
        match self.store(self.renewed(), vec![(kind, data)], Vec::new()).await? {
            Stored::Yes => Ok(()),
            Stored::Refused(_) => Err(self.lose()),
        }
    }

    /// Adds events in one transaction with the record and with the objects that the events report. So followers never receive an
    /// event about an object that does not exist.
    ///
    /// # Errors
    /// If it can't be stored.
    pub async fn commit(&mut self, events: Vec<(EventKind, Value)>, more: Vec<Write>) -> Result<Stored> {
        self.commit_as(self.run.clone(), events, more).await
    }

    /// Like [`Recorder::commit`], with a changed record. It becomes the run's record if it is stored.
    ///
    /// # Errors
    /// If it can't be stored.
    pub async fn commit_as(
        &mut self,
        run: Run,
        events: Vec<(EventKind, Value)>,
        more: Vec<Write>,
    ) -> Result<Stored> {
        self.flush_long().await?;
        self.pending_since = None;
        let text = std::mem::take(&mut self.pending);
        let piece = (!text.is_empty()).then(|| (self.pending_kind, json!({"text": text, "step": self.step})));
        let events = piece.into_iter().chain(events).collect();
        let stored = self.store(Some(run), events, more).await;
        if !matches!(stored, Ok(Stored::Yes)) {
            self.pending = text;
        }
        stored
    }

    /// How many events with collected text the next [`Recorder::commit`] stores before its own.
    ///
    /// # Errors
    /// If text that is too long for one event can't be stored.
    pub async fn text_events(&mut self) -> Result<u64> {
        self.flush_long().await?;
        Ok(u64::from(!self.pending.is_empty()))
    }

    /// Stores the collected text if one event can't have it.
    async fn flush_long(&mut self) -> Result<()> {
        if self.pending.len() > MAX_PIECE { self.flush().await } else { Ok(()) }
    }

    fn must_renew(&self) -> bool {
        self.cx.clock.now() + RENEW_BEFORE > self.run.lease_until
    }

    /// The record, if its lease ends soon.
    fn renewed(&self) -> Option<Run> {
        self.must_renew().then(|| self.run.clone())
    }

    /// Notes that this executor has lost the run. Returns the error to report.
    pub(super) fn lose(&mut self) -> Error {
        self.lost = true;
        Error::internal(Lost.to_string())
    }

    /// Stores events and other writes. With a record, it is stored under a new lease, too.
    async fn store(
        &mut self,
        run: Option<Run>,
        events: Vec<(EventKind, Value)>,
        more: Vec<Write>,
    ) -> Result<Stored> {
        if self.lost {
            return Err(self.lose());
        }
        let now = self.cx.clock.now();
        let run = run.map(|run| Run { lease_until: lease_from(now), ..run });
        let mut writes = Vec::with_capacity(events.len() + more.len() + 1);
        if let Some(run) = &run {
            writes.push(Store::replace_run_write(&self.owner, run, self.version)?);
        }
        let numbered = (self.next_event..).zip(events);
        let events: Vec<_> = numbered.map(|(id, (kind, data))| RunEvent::new(id, kind, now, data)).collect();
        for event in &events {
            writes.push(Store::event_write(&self.owner, self.run.run_id, event)?);
        }
        writes.extend(more);
        match self.cx.store.write_all(writes).await? {
            Written::Yes => {}
            Written::Refused(Guard::Run | Guard::RunEvent) => return Err(self.lose()),
            Written::Refused(guard) => return Ok(Stored::Refused(guard)),
        }
        if let Some(run) = run {
            self.run = run;
            self.version += 1;
        }
        self.next_event += events.len() as u64;
        self.cx.live.tell(self.run.run_id, self.last_event(), events);
        Ok(Stored::Yes)
    }

    /// Renews the lease if it ends soon. For times in which nothing else is written.
    ///
    /// # Errors
    /// If this executor has lost the run.
    pub async fn keep_alive(&mut self) -> Result<()> {
        let Some(run) = self.renewed() else { return Ok(()) };
        let renewed = self.store(Some(run), Vec::new(), Vec::new()).await.map(|_| ());
        self.tolerate(renewed)
    }

    /// Reserves the highest cost of a call under these ceilings, and notes it in the record, so that a process that takes the run
    /// over can settle it.
    ///
    /// # Errors
    /// If it can't be stored.
    pub async fn reserve(&mut self, mut reservation: Reservation, ceilings: &[Ceiling]) -> Result<Reserved> {
        reservation.micros = self.run.charge.counted(reservation.micros);
        reservation.of = ceilings.iter().map(|ceiling| ceiling.of).collect();
        let spender = Spender::of(&self.owner, &self.run);
        let writes = Store::reserve_writes(spender, reservation.at, reservation.micros, ceilings);
        let run = Run { reserved: Some(reservation.clone()), ..self.run.clone() };
        match self.store(Some(run), Vec::new(), writes).await {
            Ok(Stored::Yes) => Ok(Reserved::Yes),
            Ok(Stored::Refused(_)) => Ok(Reserved::TooDear),
            Err(error) => {
                // It may be stored nevertheless. Whoever ends the run must know of it.
                self.run.reserved = Some(reservation);
                Err(error)
            }
        }
    }

    /// Adds the usage of a call to the record, and returns the writes that settle its reservation. The next commit must include
    /// them.
    pub fn settle(&mut self, model: &ModelRef, used: Usage, cost_micros: i64) -> Vec<Write> {
        self.run.usage += used;
        self.run.cost_micros = self.run.cost_micros.saturating_add(cost_micros);
        let (reserved, now) = (self.run.reserved.take(), self.cx.clock.now());
        settle_writes(&self.owner, &self.run, reserved.as_ref(), now, (&model.into(), &used, cost_micros))
    }

    /// Why the run must end, if somebody asked it to stop or has stopped the account. Reads the table at most twice a second.
    ///
    /// # Errors
    /// If the table does not answer.
    pub async fn cancelled_because(&mut self) -> Result<Option<CancelCause>> {
        if self.cancelled.is_none() && self.cancel_checked.elapsed() >= CANCEL_CHECK {
            self.cancel_checked = Instant::now();
            let store = &self.cx.store;
            let looked =
                tokio::try_join!(store.cancel_cause_of(&self.owner, &self.run), store.account(&self.owner));
            match looked {
                Ok((cause, account)) => {
                    self.cancelled = cause.or(account.value.stop.map(|_| CancelCause::AccountStopped));
                }
                Err(error) => self.tolerate(Err(error.into()))?,
            }
        }
        Ok(self.cancelled)
    }

    /// Gives the lease back, so that another process can continue the run.
    ///
    /// # Errors
    /// If it can't be stored. Then the lease ends by itself.
    pub async fn put_down(&mut self) -> Result<()> {
        self.run.lease_until = self.cx.clock.now();
        let write = Store::replace_run_write(&self.owner, &self.run, self.version)?;
        let _ = self.cx.store.write_all(vec![write]).await?;
        Ok(())
    }

    /// The writes that end the run or let it wait. `events` come before its last event. The caller stores them in one transaction
    /// with its own writes. Call [`Recorder::flush`] first.
    ///
    /// # Errors
    /// If `state` is a state in which the run continues, which is a bug.
    pub fn end_writes(
        &mut self,
        events: &[(EventKind, Value)],
        state: RunState,
        error: Option<RunError>,
    ) -> Result<Vec<Write>> {
        let now = self.cx.clock.now();
        let mut writes = Vec::with_capacity(events.len() + 2);
        let mut id = self.next_event;
        for (kind, data) in events {
            let event = RunEvent::new(id, *kind, now, data.clone());
            writes.push(Store::event_write(&self.owner, self.run.run_id, &event)?);
            id += 1;
        }
        self.run.rest(state, error, now);
        if state == RunState::Waiting {
            self.run.waited = id;
            self.run.lease_until = now;
        }
        writes.extend(end_writes(&self.owner, &self.run, self.version, id, now)?);
        Ok(writes)
    }

    /// Lets the run wait for a person, with events that say what it waits for. The run keeps its conversation. `more` is written in the
    /// same transaction.
    ///
    /// # Errors
    /// If it can't be stored. Then another process takes the run over when its lease ends.
    pub async fn wait(mut self, events: &[(EventKind, Value)], more: Vec<Write>) -> Result<()> {
        self.flush().await?;
        let mut writes = self.end_writes(events, RunState::Waiting, None)?;
        writes.extend(more);
        if self.cx.store.write_all(writes).await?.done() { Ok(()) } else { Err(self.lose()) }
    }

    /// Ends the run and releases its conversation. The record, the last event and `more` are written in one transaction. Returns
    /// `false` if a condition of `more` was not met, for example because the chat was deleted: then the run has ended without
    /// `more`.
    ///
    /// # Errors
    /// If it can't be stored. Then another process takes the run over when its lease ends.
    pub async fn finish(
        mut self,
        state: RunState,
        error: Option<RunError>,
        more: Vec<Write>,
    ) -> Result<bool> {
        self.flush().await?;
        let (mut whole, mut frees) = (true, true);
        loop {
            let mut writes = self.end_writes(&[], state, error.clone())?;
            if let Some(thread) = thread_of(&self.run).filter(|_| frees) {
                writes.push(Store::free_thread(&self.owner, thread, self.run.run_id));
            }
            if whole {
                writes.extend(more.iter().cloned());
            }
            match self.cx.store.write_all(writes).await? {
                Written::Yes => {
                    count_failure(&self.run, self.cx.clock.now());
                    return Ok(whole);
                }
                // A newer run holds the conversation. Its mark must stay.
                Written::Refused(Guard::Conversation) if frees => frees = false,
                Written::Refused(Guard::Run | Guard::RunEvent) => return Err(self.lose()),
                Written::Refused(_) if whole => whole = false,
                Written::Refused(_) => return Err(self.lose()),
            }
        }
    }
}

impl Drop for Recorder {
    /// Tells followers that this process writes no more events, so that they read the table.
    fn drop(&mut self) {
        self.cx.live.forget(self.run.run_id);
        let Run { run_id, state, cost_micros, .. } = &self.run;
        tracing::info!(%run_id, ?state, cost_micros, "a run is put down");
    }
}

/// Counts a turn that has just failed. A run of an action counts when its occurrence is told, and of a rehearsal nobody expects anything.
fn count_failure(run: &Run, now: Timestamp) {
    if run.state == RunState::Failed && matches!(run.kind, RunKind::Setup | RunKind::Chat | RunKind::Theme) {
        metrics::failed(Work::Conversation, now);
    }
}

/// The writes that end a run: its record, which is in its final state already, and its last event.
fn end_writes(owner: &Owner, run: &Run, version: u64, event_id: u64, now: Timestamp) -> Result<Vec<Write>> {
    let kind = run.state.event().ok_or_else(|| Error::internal("a run must end in a final state"))?;
    let data = json!({
        "run_id": run.run_id,
        "state": run.state,
        "usage": run.usage,
        "cost_micros": run.cost_micros,
        "helpers_micros": run.helpers_micros,
        "error": run.error,
    });
    let event = RunEvent::new(event_id, kind, now, data);
    let mut writes =
        vec![Store::replace_run_write(owner, run, version)?, Store::event_write(owner, run.run_id, &event)?];
    // The runs of actions are not in this list.
    if run.kind != RunKind::Action && run.state.has_ended() {
        writes.push(Store::run_listed_write(owner, run)?);
    }
    Ok(writes)
}

/// Settles the reservation of a process that died. The cost is estimated from the input of the call and from the text that was
/// stored after the event `since`. Adds it to the record and returns the writes.
///
/// # Errors
/// If the table does not answer.
pub async fn settle_left(cx: &Cx, owner: &Owner, run: &mut Run, since: u64) -> Result<Vec<Write>> {
    let Some(reserved) = run.reserved.take() else { return Ok(Vec::new()) };
    let Reservation { model, vendor, input_tokens, .. } = &reserved;
    let (mut bytes, mut after) = (0, since);
    loop {
        let events = cx.store.run_events(owner, run.run_id, after, 100).await?;
        let Some(last) = events.last() else { break };
        after = last.id;
        let kinds = [EventKind::MessageDelta, EventKind::ThinkingDelta];
        let deltas = events.iter().filter(|event| kinds.contains(&event.event));
        bytes += deltas.filter_map(|event| event.data["text"].as_str()).map(str::len).sum::<usize>();
    }
    let output_tokens = estimate::tokens(model, bytes).max(1);
    let used = Usage { input_tokens: *input_tokens, output_tokens, estimated: true, ..Usage::default() };
    let cost = reserved.cost_micros(&used);
    run.usage += used;
    run.cost_micros = run.cost_micros.saturating_add(cost);
    let model = UsedModel { vendor: *vendor, model: model.clone() };
    Ok(settle_writes(owner, run, Some(&reserved), reserved.at, (&model, &used, cost)))
}

/// The writes that return the reservation of a call, and count what it has used.
fn settle_writes(
    owner: &Owner,
    run: &Run,
    reserved: Option<&Reservation>,
    now: Timestamp,
    (model, used, cost): (&UsedModel, &Usage, i64),
) -> Vec<Write> {
    let (at, date) = Reservation::day_of(reserved, now);
    let spender = Spender::of(owner, run);
    let mut writes = Store::settle_writes(spender, reserved, now, cost, run.charge);
    writes.extend(Store::usage_write(spender, (at, date), model, used, cost));
    writes
}

/// Ends a run that has no executor, or whose executor is to stop. `found` is its record as it was read. Returns `false` if the
/// record has changed meanwhile: then read it again.
///
/// # Errors
/// If the table does not answer.
pub async fn end_without_executor(
    cx: &Cx,
    owner: &Owner,
    found: Versioned<Run>,
    state: RunState,
    error: Option<RunError>,
) -> Result<bool> {
    let Versioned { value: mut run, version } = found;
    let now = cx.clock.now();
    run.rest(state, error, now);
    let (settled, last) = tokio::try_join!(
        async {
            let since = cx.store.last_stored_event(owner, run.run_id).await?;
            let mut settled = run.clone();
            let write = settle_left(cx, owner, &mut settled, since).await?;
            Ok::<_, Error>((settled, write))
        },
        async { Ok(cx.store.last_event_id(owner, run.run_id).await?) },
    )?;
    let (run, settle) = settled;
    let mut writes = end_writes(owner, &run, version, last + 1, now)?;
    writes.extend(settle);
    let free = thread_of(&run).map(|thread| Store::free_thread(owner, thread, run.run_id));
    let freeing = writes.iter().cloned().chain(free).collect();
    let written = match cx.store.write_all(freeing).await? {
        // A newer run holds the conversation. Its mark must stay.
        Written::Refused(Guard::Conversation) => cx.store.write_all(writes).await?,
        written => written,
    };
    if !written.done() {
        return Ok(false);
    }
    count_failure(&run, now);
    if let Some(agent) = run.agent_id.filter(|_| run.cost_micros > 0 && run.kind != RunKind::Action) {
        // The write is refused if the agent was deleted.
        let count = Store::count(owner, agent, vec![("cost_micros", run.cost_micros)]);
        let _ = cx.store.write_all(vec![count]).await?;
    }
    Ok(true)
}
