//! People are told what happened: planned here, delivered by [`deliveries`] through the [`channels`] of a person.
//!
//! A run that comes to rest is marked in the same transaction, and the mark stays until somebody has told of the run
//! ([`Occurrence::untold`]). So a process may die between the end of a run and the notice: another one tells. Other happenings are records
//! of their own, written in the transaction of the change that they are about. What waits without a run at rest is read again before
//! anybody is told. What was planned is stored together with the deliveries, so nothing is said twice and nothing is lost.
//!
//! Without a channel nothing is planned: there is nobody to tell.

pub mod asks;
pub mod channels;
pub mod deliveries;
pub mod mail;
pub mod reach;
mod results;
mod smtp;
pub mod telegram;
pub mod told;
mod waits;

use std::collections::BTreeSet;

use domain::actions::{Action, Occurrence, OccurrenceState, Telling};
use domain::background::dispatch::LEASE;
use domain::ids::{ActionId, ChannelId, NoticeId, Owner, RunId};
use domain::notices::deliveries::{DeliveryRecord, Said};
use domain::notices::digest::DigestItem;
use domain::notices::hours::digest_time;
use domain::notices::of_run::of_run;
use domain::notices::plan::{Decision, Event, Happening, NoticeState, answered, due, note, take_digest};
use domain::notices::told::telling as telling_of;
use domain::notices::waits::{Waiting, again as waits_again};
use domain::notices::{Delivery, NoticeKey, NoticeKind, Preferences};
use domain::validate::FieldErrors;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use utoipa::ToSchema;

use super::background::due as dispatcher;
use super::{edit, schedules};
use crate::aws::bus::{AssetSaved, Event as BusEvent, RunEvent};
use crate::context::Cx;
use crate::error::Result;
use crate::process::metrics::{self, Work};
use crate::request::caller::IfMatch;
use crate::store::actions::notebooks::LAST_OUTPUTS;
use crate::store::notices::{ChannelState, StoredChannel};
use crate::store::runs::RunOutput;
use crate::store::table::{Order, Write};
use crate::store::{DueItem, Store, Tries, Versioned};

/// How many states one transaction changes for a digest. DynamoDB accepts a hundred writes, and the deliveries are among them.
const STATES_OF_DIGEST: usize = 80;

/// How many of the newest runs of an action are looked at for open questions. Older ones have ended: a question waits for 28 days at
/// most, and an action has one live run and a short queue.
const RUNS_LOOKED_AT: usize = 50;

/// What a person wants, and where.
struct Recipient {
    preferences: Preferences,
    zone: TimeZone,
    channels: Vec<StoredChannel>,
}

impl Recipient {
    /// None if the person has no channel that is enabled.
    async fn of(cx: &Cx, owner: &Owner) -> Result<Option<Self>> {
        let found = cx.store.channels(owner).await?.into_iter().map(|channel| channel.value);
        let channels: Vec<_> = found.filter(|channel| channel.state == ChannelState::Enabled).collect();
        if channels.is_empty() {
            return Ok(None);
        }
        let preferences = cx.store.preferences(owner).await?.value;
        let zone = schedules::zone_of(cx, owner, None).await?;
        Ok(Some(Self { preferences, zone, channels }))
    }

    /// Whether this waits for the digest of a day.
    fn wants_digest(&self, key: &NoticeKey) -> bool {
        self.preferences.delivery(key.kind, key.action_id) == Delivery::Digest
    }

    /// The channels that are told of an action, or of what is about none.
    fn told(&self, action: Option<ActionId>) -> Vec<&StoredChannel> {
        self.preferences.told(&self.channels, |channel| channel.channel_id, action)
    }

    /// The deliveries of a message to each channel that is told of it. A digest has other lines for each channel.
    fn deliveries(&self, id: NoticeId, said: &Said, now: Timestamp) -> Vec<DeliveryRecord> {
        let is_told =
            |channel: ChannelId, action| self.told(action).iter().any(|told| told.channel_id == channel);
        let said_to = |channel: ChannelId| match said {
            Said::Notice { notice } => is_told(channel, notice.key.action_id).then(|| said.clone()),
            Said::Digest { date, at, items } => {
                let items: Vec<DigestItem> =
                    items.iter().filter(|item| is_told(channel, item.key.action_id)).cloned().collect();
                (!items.is_empty()).then_some(Said::Digest { date: *date, at: *at, items })
            }
            Said::Code => Some(Said::Code),
        };
        let to = |channel: &StoredChannel| {
            let to = (channel.channel_id, channel.kind, channel.target.as_str());
            Some(DeliveryRecord::new(id, said_to(channel.channel_id)?, to, now))
        };
        self.channels.iter().filter_map(to).collect()
    }
}

/// What was planned: the writes, and the deliveries among them.
#[derive(Default)]
struct Planned {
    writes: Vec<Write>,
    deliveries: Vec<DeliveryRecord>,
}

impl Planned {
    /// Carries a decision out.
    fn add(&mut self, owner: &Owner, to: &Recipient, decision: Decision, now: Timestamp) -> Result<()> {
        match decision {
            Decision::SendNow(notice) => {
                let channels: Vec<_> =
                    to.told(notice.key.action_id).iter().map(|channel| channel.channel_id).collect();
                for run in &notice.runs {
                    let write = Store::run_told_write(owner, *run, notice.notice_id, channels.clone())?;
                    self.writes.push(write);
                }
                let (id, said) = (notice.notice_id, Said::Notice { notice: *notice });
                self.deliver(owner, to.deliveries(id, &said, now))?;
            }
            Decision::Digest(date) => {
                let at = digest_time(date, &to.preferences, &to.zone);
                let write = Store::digest_write(owner, date, at)?;
                let is_there = |known: &Write| matches!((known, &write), (Write::Put { key: a, .. }, Write::Put { key: b, .. }) if a == b);
                if !self.writes.iter().any(is_there) {
                    self.writes.push(write);
                }
            }
            // The state has the time.
            Decision::SendAt(_) | Decision::Nothing(_) => {}
        }
        Ok(())
    }

    fn deliver(&mut self, owner: &Owner, deliveries: Vec<DeliveryRecord>) -> Result<()> {
        for delivery in deliveries {
            self.writes.push(Store::delivery_write(owner, &delivery, 0)?);
            self.deliveries.push(delivery);
        }
        Ok(())
    }

    /// Stores everything. `false` if somebody has changed something meanwhile.
    async fn store(self, cx: &Cx, owner: &Owner) -> Result<bool> {
        if self.writes.is_empty() {
            return Ok(true);
        }
        if !cx.store.write_all(self.writes).await?.done() {
            return Ok(false);
        }
        for delivery in self.deliveries {
            dispatcher::dispatch(cx, &DueItem::delivery(owner, delivery.delivery_id)).await;
        }
        Ok(true)
    }
}

/// Notes events one after another, and adds the states and what follows to the plan. Returns how the last of what happened is told.
fn note_all(
    owner: &Owner,
    to: &Recipient,
    mut states: Vec<Versioned<NoticeState>>,
    events: &[Event],
    now: Timestamp,
    planned: &mut Planned,
) -> Result<Option<Telling>> {
    let (mut changed, mut telling) = (Vec::new(), None);
    for event in events {
        let at = states.iter().position(|state| state.value.key == event.key);
        let (before, version) = match at {
            Some(at) => {
                let found = states.swap_remove(at);
                (Some(found.value), found.version)
            }
            None => (None, 0),
        };
        let (after, decision) = note(before, event, &to.preferences, now, &to.zone);
        if event.happening == Happening::Happened {
            telling = telling_of(&decision);
        }
        planned.add(owner, to, decision, now)?;
        changed.push(event.key.clone());
        states.push(Versioned { value: after, version });
    }
    for state in states.iter().filter(|state| changed.contains(&state.value.key)) {
        planned.writes.extend(Store::notice_state_write(owner, &state.value, state.version, now)?);
    }
    Ok(telling)
}

/// Tells of a run that has come to rest. A failure is logged: the run stays due, and a sweep tells of it.
pub async fn tell(cx: &Cx, owner: &Owner, occurrence: &Occurrence) {
    if occurrence.untold().is_some() {
        tell_or_log(cx, owner, (occurrence.action_id, occurrence.run_id), None).await;
    }
}

/// What the executor knows that has just stored how a run came to rest.
pub(crate) struct Ended {
    pub occurrence: Versioned<Occurrence>,
    pub action: Action,
    pub outputs: Vec<RunOutput>,
}

/// Like [`tell`], by the executor that has just stored how the run came to rest. So the occurrence and the action are read only if somebody
/// else has changed the occurrence meanwhile.
pub(crate) async fn tell_ended(cx: &Cx, owner: &Owner, ended: Ended) {
    if ended.occurrence.value.untold().is_some() {
        let run = (ended.action.id, ended.occurrence.value.run_id);
        tell_or_log(cx, owner, run, Some(ended)).await;
    }
}

async fn tell_or_log(cx: &Cx, owner: &Owner, run: (ActionId, RunId), known: Option<Ended>) {
    if let Err(error) = Box::pin(tell_known(cx, owner, run, known)).await {
        tracing::warn!(cause = %error.causes(), "nobody was told of a run; the next sweep tries again");
    }
}

/// Publishes that a run has come to rest, and tells the person. It may be called at any time: what was told is not told again.
///
/// # Errors
/// If the table does not answer. Then it stays due.
pub(crate) async fn tell_of(cx: &Cx, owner: &Owner, action: ActionId, run: RunId) -> Result<()> {
    tell_known(cx, owner, (action, run), None).await
}

/// `known`: what the caller has just stored.
async fn tell_known(
    cx: &Cx,
    owner: &Owner,
    (action, run): (ActionId, RunId),
    known: Option<Ended>,
) -> Result<()> {
    let (mut known, outputs) = match known {
        Some(Ended { occurrence, action, outputs }) => (Some((occurrence, action)), Some(outputs)),
        None => (None, None),
    };
    let mut tries = Tries::default();
    let mut published = None;
    loop {
        tries.next().await?;
        let (found, of) = match known.take() {
            Some((found, of)) => (Some(found), Some(of)),
            None => (cx.store.occurrence(owner, action, run).await?, None),
        };
        let Some((found, tells)) = found.and_then(|found| Some((found.clone(), found.value.untold()?)))
        else {
            // It was told, or the action was deleted.
            let _ = cx.store.write_all(vec![Store::told_write(owner, action, run)]).await?;
            return Ok(());
        };
        let of = match of {
            Some(of) => Some(of),
            None => cx.store.action(owner, action).await?.map(|found| found.value),
        };
        if let Some(of) = &of
            && published.as_ref() != Some(&tells)
        {
            // At least once: who receives it tells repetitions apart by the run and its state.
            if let Some(event) = RunEvent::of(owner, of.agent_id, &found.value) {
                let mut events = vec![BusEvent::Run(event)];
                if found.value.state.is_final() {
                    let outputs = match &outputs {
                        Some(outputs) => outputs.clone(),
                        None => cx.store.run_outputs(owner, run).await?,
                    };
                    events.extend(events_of_assets(cx, owner, &outputs).await?);
                }
                cx.bus.publish(&events).await?;
            }
            published = Some(tells.clone());
        }
        let now = cx.clock.now();
        let failed = of.as_ref().filter(|_| has_failed(&found.value)).map(work_of);
        let mut planned = Planned::default();
        planned.writes.push(Store::told_write(owner, action, run));
        let telling = match of {
            // Nobody is told of the runs of an action that was deleted.
            None => None,
            Some(of) => match Recipient::of(cx, owner).await? {
                None => Some(Telling::NoChannel),
                Some(to) => plan_ended(cx, owner, (&of, &found.value), &to, now, &mut planned).await?,
            },
        };
        let told = Occurrence { told: Some(tells), telling, ..found.value };
        planned.writes.push(Store::replace_occurrence(owner, &told, found.version)?);
        if planned.store(cx, owner).await? {
            if let Some(work) = failed {
                metrics::failed(work, now);
            }
            return Ok(());
        }
    }
}

/// Plans what a person is told of a run that has come to rest. Returns how the run itself is told.
async fn plan_ended(
    cx: &Cx,
    owner: &Owner,
    (of, occurrence): (&Action, &Occurrence),
    to: &Recipient,
    now: Timestamp,
    planned: &mut Planned,
) -> Result<Option<Telling>> {
    let (action, run) = (occurrence.action_id, occurrence.run_id);
    let states = cx.store.notice_states_of(owner, action).await?;
    let open: Vec<NoticeKey> =
        states.iter().filter(|state| state.value.total > 0).map(|state| state.value.key.clone()).collect();
    let others_wait = occurrence.has_told_a_question() && others_wait(cx, owner, action, run).await?;
    let mut events = of_run(of, occurrence, &open, others_wait);
    if let Some(done) = events.iter_mut().find(|event| event.key.kind == NoticeKind::Succeeded) {
        done.is_first = to.wants_digest(&done.key) && is_first(cx, owner, action, run).await?;
    }
    note_all(owner, to, states, &events, now, planned)
}

/// Whether the outputs of this run are the first ones of its action.
async fn is_first(cx: &Cx, owner: &Owner, action: ActionId, run: RunId) -> Result<bool> {
    let last = cx.store.last_outputs(owner, action).await?.outputs;
    Ok((1..LAST_OUTPUTS).contains(&last.len()) && last.iter().all(|output| output.run_id == run))
}

/// Whether the run has failed for good. A run whose effect is not known is not tried again either.
const fn has_failed(occurrence: &Occurrence) -> bool {
    matches!(occurrence.state, OccurrenceState::Failed | OccurrenceState::Unknown)
}

const fn work_of(action: &Action) -> Work {
    if action.call.is_some() { Work::Call } else { Work::Action }
}

/// Whether another run of the action waits for an answer.
async fn others_wait(cx: &Cx, owner: &Owner, action: ActionId, run: RunId) -> Result<bool> {
    let found = cx.store.occurrences(owner, action, None, RUNS_LOOKED_AT, Order::Newest).await?;
    let mut others =
        found.items.into_iter().map(|(_, found)| found.value).filter(|found| found.run_id != run);
    Ok(others.any(|other| other.state == OccurrenceState::Waiting))
}

/// Plans what has happened, says what has waited, and sends the digests that are due.
///
/// # Errors
/// If the table does not answer. Then it stays due.
pub(crate) async fn go_on(cx: &Cx, owner: &Owner, deadline: Timestamp) -> Result<()> {
    let again = cx.store.plan_again(owner).await?;
    let to = Recipient::of(cx, owner).await?;
    for happened in cx.store.all_happened(owner).await? {
        if cx.clock.now() >= deadline {
            return Ok(());
        }
        let event = &happened.value.event;
        let waiting = Waiting::of(&event.key);
        if waiting.is_some() && happened.value.at > cx.clock.now() {
            continue;
        }
        let mut planned = Planned::default();
        planned.writes.push(Store::planned_write(owner, &happened));
        if let Some(to) = &to {
            let events = match waiting {
                None => vec![event.clone()],
                Some(waiting) => match waits::now(cx, owner, waiting, event).await? {
                    Some(event) => waits_again(&event).to_vec(),
                    None => Vec::new(),
                },
            };
            // These events all have the same key. A person may have thousands of other rows.
            let state = cx.store.notice_state(owner, &event.key).await?;
            let _ = note_all(owner, to, state.into_iter().collect(), &events, cx.clock.now(), &mut planned)?;
        }
        // If somebody else has planned it, there is nothing left to do.
        let _ = planned.store(cx, owner).await?;
    }
    for state in cx.store.notice_states(owner).await? {
        let now = cx.clock.now();
        if now >= deadline {
            return Ok(());
        }
        let is_due = state.value.wake_at.is_some_and(|at| at <= now);
        if !(is_due || again.is_some()) {
            continue;
        }
        let mut planned = Planned::default();
        let Some(to) = &to else {
            // Nobody is told any more. What has happened is forgotten.
            let (key, version) = (crate::store::keys::notice_state(owner, &state.value.key), state.version);
            planned.writes.push(Write::Remove { key, version });
            let _ = planned.store(cx, owner).await?;
            continue;
        };
        let before = state.value.clone();
        let after = if waits::is_answered(cx, owner, &before).await? {
            answered(state.value)
        } else {
            let (after, decision) = due(state.value, &to.preferences, now, &to.zone);
            planned.add(owner, to, decision, now)?;
            after
        };
        if after != before {
            planned.writes.extend(Store::notice_state_write(owner, &after, state.version, now)?);
        }
        let _ = planned.store(cx, owner).await?;
    }
    send_digests(cx, owner, to.as_ref(), again.is_some(), deadline).await?;
    if let Some(version) = again {
        cx.store.planned_again(owner, version).await?;
    }
    Ok(())
}

/// Sends the digests whose time has come. Of many lines, each message takes a part.
async fn send_digests(
    cx: &Cx,
    owner: &Owner,
    to: Option<&Recipient>,
    again: bool,
    deadline: Timestamp,
) -> Result<()> {
    for digest in cx.store.digests(owner).await? {
        let Some(to) = to else {
            let _ = cx.store.write_all(vec![Store::sent_digest_write(owner, &digest)]).await?;
            continue;
        };
        let date = digest.value.date;
        let at = digest_time(date, &to.preferences, &to.zone);
        if at > cx.clock.now() {
            // A sweep may have leased it, and preferences may have changed.
            if again {
                let _ = cx.store.write_all(vec![Store::digest_write(owner, date, at)?]).await?;
            }
            continue;
        }
        let mut tries = Tries::default();
        loop {
            let now = cx.clock.now();
            if now >= deadline {
                return Ok(());
            }
            let (mut planned, mut items) = (Planned::default(), Vec::<DigestItem>::new());
            let states = cx.store.notice_states(owner).await?;
            let waiting =
                |state: &Versioned<NoticeState>| state.value.in_digest().is_some_and(|of| of <= date);
            let mut waiting: Vec<_> = states.into_iter().filter(waiting).collect();
            let has_more = waiting.len() > STATES_OF_DIGEST;
            waiting.truncate(STATES_OF_DIGEST);
            // Another part of the same digest is another message.
            let part: Vec<String> = waiting.iter().map(|state| state.value.key.to_string()).collect();
            for state in waiting {
                let version = state.version;
                let after = if waits::is_answered(cx, owner, &state.value).await? {
                    answered(state.value)
                } else {
                    let (after, item) = take_digest(state.value, date);
                    items.extend(item);
                    after
                };
                // A row that is over and waits for nothing is deleted, whatever was said before.
                planned.writes.extend(Store::notice_state_write(owner, &after, version, now)?);
            }
            if !items.is_empty() {
                let id = NoticeId::of(&format!("digest/{date}/{}", part.join(" ")), now);
                let said = Said::Digest { date, at: now, items };
                planned.deliver(owner, to.deliveries(id, &said, now))?;
            }
            if !has_more {
                planned.writes.push(Store::sent_digest_write(owner, &digest));
            }
            if planned.store(cx, owner).await? {
                if !has_more {
                    break;
                }
                tries = Tries::default();
            } else if cx
                .store
                .digests(owner)
                .await?
                .iter()
                .all(|known| known.version != digest.version || known.value.date != date)
            {
                // Another executor has sent it, or its time has changed.
                break;
            }
            tries.next().await?;
        }
    }
    Ok(())
}

/// What a person wants to be told.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct PreferencesView {
    #[serde(flatten)]
    pub preferences: Preferences,
    /// Counts changes. 0: the defaults. Leave it out of a `PUT`.
    pub version: u64,
}

impl From<Versioned<Preferences>> for PreferencesView {
    fn from(found: Versioned<Preferences>) -> Self {
        Self { preferences: found.value, version: found.version }
    }
}

/// What a person wants to be told.
///
/// # Errors
/// If the table does not answer.
pub async fn preferences(cx: &Cx, owner: &Owner) -> Result<PreferencesView> {
    Ok(cx.store.preferences(owner).await?.into())
}

/// Replaces what a person wants to be told. What waits is planned again with it. What it repeats about actions and channels that were
/// deleted is forgotten.
///
/// # Errors
/// 400 with every invalid field and its limit; 409 if `If-Match` is not the current version.
pub async fn replace_preferences(
    cx: &Cx,
    owner: &Owner,
    if_match: Option<IfMatch>,
    mut preferences: Preferences,
) -> Result<PreferencesView> {
    preferences.validate()?;
    let named = preferences.actions.keys().chain(preferences.channels.keys()).copied();
    let actions = cx.store.existing_actions(owner, named).await?;
    let channels = cx.store.channels(owner).await?;
    let channels: Vec<ChannelId> = channels.into_iter().map(|found| found.value.channel_id).collect();
    let _lock = cx.locks.lock((owner, "preferences")).await;
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let current = cx.store.preferences(owner).await?;
        edit::check(if_match, current.version, &PreferencesView::from(current.clone()))?;
        check_names(&preferences, &current.value, &actions, &channels)?;
        preferences.forget(|action| actions.contains(&action), |channel| channels.contains(&channel));
        let now = cx.clock.now();
        if cx.store.replace_preferences(owner, &preferences, current.version, now).await?.done() {
            dispatcher::dispatch(cx, &DueItem::notices(owner)).await;
            return Ok(PreferencesView { preferences, version: current.version + 1 });
        }
    }
}

/// What is new in `wanted` must exist. What `current` has already may be about something that was deleted since.
fn check_names(
    wanted: &Preferences,
    current: &Preferences,
    actions: &BTreeSet<ActionId>,
    channels: &[ChannelId],
) -> Result<()> {
    let mut errors = FieldErrors::default();
    let is_new = |action: &ActionId| {
        !actions.contains(action)
            && !current.actions.contains_key(action)
            && !current.channels.contains_key(action)
    };
    for action in wanted.actions.keys().filter(|action| is_new(action)) {
        errors.add(format!("actions.{action}"), "there is no such action");
    }
    for (action, chosen) in &wanted.channels {
        if is_new(action) {
            errors.add(format!("channels.{action}"), "there is no such action");
        }
        let known = current.channels.get(action).map(Vec::as_slice).unwrap_or_default();
        for channel in chosen.iter().filter(|one| !channels.contains(one) && !known.contains(one)) {
            errors.add(format!("channels.{action}"), format!("there is no channel {channel}"));
        }
    }
    errors.into_result(()).map_err(Into::into)
}

// A sweep leases what is due for longer than one try of a delivery takes, so it does not send the delivery while it is tried.
const _: () = assert!(LEASE.as_secs() > domain::notices::deliveries::LONGEST_TRY.as_secs());

/// The events of the outputs that a run has saved, those that still exist. They are published when the run has ended, together with its
/// own event.
async fn events_of_assets(cx: &Cx, owner: &Owner, outputs: &[RunOutput]) -> Result<Vec<BusEvent>> {
    let read = outputs.iter().map(|output| cx.store.asset(owner, output.asset_id));
    let assets = futures::future::try_join_all(read).await?.into_iter().flatten();
    Ok(assets.map(|asset| BusEvent::AssetSaved(AssetSaved::of(owner, &asset.value))).collect())
}
