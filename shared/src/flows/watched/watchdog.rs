//! The watchdog: every two hours it looks at the platform and at everybody, and says once what is wrong.
//!
//! - `send`: the look at the platform, and a message to the executors for every hundred owners. So one look never passes its deadline.
//! - `look_at_each`: the looks at the owners of a message. One that fails gets a message of its own.
//! - `look`: the look at one owner. It reads, lets the domain judge and count, and writes only if a counter has changed.
//! - `alarms::hear`: what a thing says by itself between two looks is counted and told at once.
//! - `follow`: puts an owner into the index of those who are looked at.
//!
//! A message that is lost is a look that was left out. A message that comes twice changes nothing, because the counters name the look. What is
//! said to a person, and what is healed, is stored in the transaction of the counters. The event is published before that, so a process that is
//! killed in between publishes it again and loses nothing. What the platform's look heals is not in the table, so a look that was killed before
//! it had ended heals again.

use std::collections::{BTreeMap, BTreeSet};

use domain::accounts::profile::Account;
use domain::accounts::quota::Month;
use domain::actions::{Action, ReasonCode};
use domain::background::jobs::{JobKind, JobRun};
use domain::ceilings::{Ceiling, CeilingOf};
use domain::ids::{NoticeId, Owner};
use domain::notices::of_watchdog::of_watchdog;
use domain::notices::plan::Happening;
use domain::schedule::{Schedule, zone_or_utc};
use domain::watchdog::{
    ActionFacts, BudgetFacts, Check, CheckSettings, CounterOf, Heal, JobFacts, LOOK_EVERY, Observed,
    QueueFacts, Say, Snapshot, WatchdogSettings, judge_action, judge_budget, judge_heartbeat, judge_job,
    judge_queue, judge_timer, judge_watched, look_at,
};
use domain::watched::MAX_WATCHED;
use domain::watched::witness::newest;
use domain::work::ActionState;
use futures::FutureExt;
use futures::stream::{self, StreamExt};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use super::alarms::event;
use super::witness;
use crate::aws::bus::Event as BusEvent;
use crate::aws::timers;
use crate::context::{Cx, Data};
use crate::error::{Error, Result};
use crate::flows::background::due;
use crate::flows::memory;
use crate::flows::page::{self, Page, PageQuery};
use crate::money::ceilings;
use crate::process::due_queue::{Dispatch, MESSAGES};
use crate::store::accounts::spend::Spender;
use crate::store::keys::SHARDS;
use crate::store::table::Write;
use crate::store::watched::watchdog::WatchdogAlert;
use crate::store::{DueItem, DueTarget, Store, Tries, Versioned};

/// How many of the newest jobs of an owner are read.
const JOBS: usize = 50;

/// How many of the newest actions of an owner are judged.
const ACTIONS: usize = 200;

/// How many owners a message has. Owners have at most 128 bytes, so ten messages fit into one call.
const OWNERS: usize = 100;

/// How many owners of a message are looked at at once.
const LOOKS: usize = 10;

/// How old the newest sign of life of the sweep may be: two of them may be lost.
const SWEEP_BEATS_WITHIN: SignedDuration = SignedDuration::from_mins(35);

/// A look stops this long before its deadline. What it has not sent is left to the next call.
const RESERVE: SignedDuration = SignedDuration::from_secs(10);

/// The jobs that come again for each subject. Of the others, which somebody asks for, the newest one of each kind is judged.
const REPEATED: [JobKind; 4] =
    [JobKind::MemoryDaily, JobKind::MemoryWeekly, JobKind::ThemeIndex, JobKind::ThemeEnrichment];

/// The result of a look at the platform.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sent {
    /// How many owners are looked at.
    pub owners: usize,
    /// How many messages the queue refused.
    pub refused: usize,
    /// How many things of the platform are wrong.
    pub wrong: usize,
}

/// Looks at the platform, and sends a message for every hundred owners.
///
/// # Errors
/// If the table or the bus does not answer.
pub async fn send(cx: &Cx, deadline: Timestamp) -> Result<Sent> {
    let now = cx.clock.now();
    let look = look_at(now);
    let Versioned { value: mut state, version } = cx.store.platform_watchdog().await?;
    if state.looked_at == Some(look) {
        return Ok(Sent::default());
    }
    let mut sent = Sent::default();
    for shard in 0..SHARDS {
        let mut after = None;
        loop {
            let (owners, next) = cx.store.followed(shard, after.as_ref()).await?;
            sent.owners += owners.len();
            sent.refused += send_looks(cx, owners.chunks(OWNERS), look).await;
            if cx.clock.now() + RESERVE >= deadline {
                return Err(Error::internal("a look had no time for everybody"));
            }
            match next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
    }
    let oldest = cx.store.oldest_due(now).await?;
    let oldest = oldest.map_or(SignedDuration::ZERO, |due| now.duration_since(due));
    let aws = &cx.config.aws;
    let dead_letters = async {
        match &aws.dead_letters {
            Some(arn) => cx.queues.dead_letters(arn).await,
            None => None,
        }
    };
    let timers = aws.timers.iter().map(async |timer| (timer, timers::is_enabled(&cx.signed, timer).await));
    let (dead_letters, timers) = futures::join!(dead_letters, futures::future::join_all(timers));
    let mut observed = judge_queue(QueueFacts { name: "executors", oldest: Some(oldest), dead_letters }, now);
    let beat = cx.store.heartbeat_of_sweep().await?;
    observed.push(judge_heartbeat("The sweep", beat, SWEEP_BEATS_WITHIN, now));
    observed.extend(timers.into_iter().map(|(timer, is_enabled)| judge_timer(timer, is_enabled, now)));
    let (mut version, looked) = (version, state.record.looked(&observed, true, look));
    let is_new = looked.is_some();
    let says = match looked {
        Some(looked) => {
            state.record = looked.record;
            looked.says
        }
        None => Vec::new(),
    };
    sent.wrong = state.record.counters.iter().filter(|of| of.counter.anomalies > 0).count();
    if !says.is_empty() {
        tracing::error!(?says, "the watchdog says about the platform");
        let events: Vec<BusEvent> = says.iter().map(|say| event(None, look, say)).collect();
        cx.bus.publish(&events).await?;
    }
    // Before anything is healed: a look that comes again would not see any more what was wrong.
    if is_new {
        if !cx.store.save_platform_watchdog(&state, version).await?.done() {
            // A concurrent call does the rest.
            return Ok(sent);
        }
        version += 1;
    }
    for (heal, _) in state.record.heals(&observed, look) {
        if let (Heal::Redrive, Some(arn)) = (heal, &aws.dead_letters) {
            cx.queues.redrive(arn).await;
        }
    }
    (state.looked_at, state.made_at) = (Some(look), Some(now));
    // A concurrent call has done the same.
    let _ = cx.store.save_platform_watchdog(&state, version).await?;
    Ok(sent)
}

/// Notes that the sweep runs, in every tenth minute: more writes would cost more and tell nothing more. A failure is only logged, because
/// the work of the sweep is done.
pub async fn beat_of_sweep(cx: &Cx) {
    let now = cx.clock.now();
    if now.as_second().div_euclid(60) % 10 != 0 {
        return;
    }
    if let Err(error) = cx.store.beat_of_sweep(now).await {
        tracing::warn!(cause = %Error::from(error).causes(), "the sweep could not note that it runs");
    }
}

/// Sends a message for each of these groups. Returns how many messages the queue refused.
async fn send_looks(cx: &Cx, groups: impl Iterator<Item = &[Owner]>, look: Timestamp) -> usize {
    let items = groups.filter_map(|owners| DueItem::look(owners, look));
    let messages: Vec<Dispatch> = items.map(|item| Dispatch { item, delay_seconds: 0 }).collect();
    let mut refused = 0;
    for chunk in messages.chunks(MESSAGES) {
        refused += cx.due_queue.send(chunk).await.len();
    }
    refused
}

/// Looks at the owners of a message. If the look at one of them fails, or has no time, it gets a message of its own. So if a look
/// always fails, only that look is repeated.
///
/// # Errors
/// If the look at the only owner fails, or if the queue does not accept a message. The message then comes again.
pub(crate) async fn look_at_each(cx: &Cx, item: &DueItem, deadline: Timestamp) -> Result<()> {
    let at = item.due_at.unwrap_or_else(|| look_at(cx.clock.now()));
    let looks = std::iter::once(&item.owner).chain(&item.also).cloned().map(|owner| {
        let cx = cx.clone();
        // Each future is built when it is polled for the first time, and is large.
        async move {
            if cx.stopping.is_set() || cx.clock.now() + RESERVE >= deadline {
                return Some((owner, Error::internal("there was no time for a look")));
            }
            look(&cx, &owner, at).boxed().await.err().map(|error| (owner, error))
        }
    });
    let looks = stream::iter(looks.collect::<Vec<_>>()).buffer_unordered(LOOKS);
    let mut failed: Vec<(Owner, Error)> = looks.filter_map(std::future::ready).collect().await;
    if failed.is_empty() {
        return Ok(());
    }
    if item.also.is_empty() {
        return Err(failed.remove(0).1);
    }
    let cause = failed[0].1.causes();
    tracing::warn!(owners = failed.len(), %cause, "some looks of the watchdog have failed and are repeated");
    match send_looks(cx, failed.iter().map(|(owner, _)| std::slice::from_ref(owner)), at).await {
        0 => Ok(()),
        _ => Err(Error::internal("the looks that have failed were not put back")),
    }
}

/// Lets the watchdog look at the owner of an item from now on. If that fails, the next item tries it again.
pub(crate) async fn follow(cx: &Cx, item: &DueItem) {
    let now = cx.clock.now();
    // A look is at somebody who is followed already, and a deletion must leave nothing.
    let is_left_out = matches!(item.target, DueTarget::Deletion | DueTarget::Watchdog);
    if is_left_out || cx.followed.knows(&item.owner, now) {
        return;
    }
    match cx.store.follow(&item.owner, now).await {
        Ok(()) => cx.followed.learn(&item.owner, now),
        Err(error) => {
            let error = Error::from(error);
            tracing::warn!(cause = %error.causes(), "the watchdog could not be told of an owner");
        }
    }
}

/// The look at one owner. An account that is stopped or being deleted is left alone: nothing is expected of it.
async fn look(cx: &Cx, owner: &Owner, look: Timestamp) -> Result<()> {
    // What was written in the last second is seen by the next look.
    let seen = cx.with(|parts| parts.store = parts.store.eventually_consistent());
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        // Without a state, the account was deleted. The write needs its newest version.
        let Some(found) = cx.store.watchdog(owner).await? else { return Ok(()) };
        let (deletion, account) = futures::try_join!(seen.store.deletion(owner), seen.store.account(owner))?;
        if deletion.is_some() || account.value.stop.is_some() {
            return Ok(());
        }
        let Facts { observed, complete, names } = facts(&seen, owner, &account.value).await?;
        let Some(looked) = found.value.looked(&observed, complete, look) else { return Ok(()) };
        let now = cx.clock.now();
        let says_something = !looked.says.is_empty();
        let events: Vec<BusEvent> = looked.says.iter().map(|say| event(Some(owner), look, say)).collect();
        if !events.is_empty() {
            cx.bus.publish(&events).await?;
        }
        let mut writes = vec![Store::watchdog_write(owner, &looked.record, found.version, now)?];
        for say in looked.says {
            writes.extend(tell(owner, look, &say, (&names, &looked.record.counters), now)?);
            writes.push(Store::watchdog_alert_write(owner, &WatchdogAlert { at: look, say })?);
        }
        let heals = looked.record.heals(&observed, look);
        let synchronisation = match heals.iter().any(|(heal, _)| *heal == Heal::RunMissedSync) {
            true => missed_sync(cx, owner, now).await?,
            false => None,
        };
        let synchronises = synchronisation.is_some();
        writes.extend(synchronisation);
        if !cx.store.write_all(writes).await?.done() {
            // Another look, or a person has changed the settings.
            continue;
        }
        if says_something {
            due::dispatch(cx, &DueItem::notices(owner)).await;
        }
        if synchronises {
            due::dispatch(cx, &DueItem::memory(owner)).await;
            tracing::info!("the watchdog runs a missed synchronisation");
        }
        return Ok(());
    }
}

/// The write that tells a person what the watchdog says. It is part of the transaction that counts it, so a person is told once.
fn tell(
    owner: &Owner,
    look: Timestamp,
    say: &Say,
    about: (&Names, &[CounterOf]),
    now: Timestamp,
) -> Result<Option<Write>> {
    let (names, counters) = about;
    let (check, item, happening) = match say {
        Say::Alert { check, item, .. } => (*check, item, Happening::Happened),
        Say::Recovery { check, item, .. } => (*check, item, Happening::Over),
    };
    let counter = counters.iter().find(|of| of.check == check && of.item == *item);
    let seen = counter.and_then(|of| of.counter.last3.first()).map_or("", |seen| seen.text.as_str());
    let Some(event) = of_watchdog(say, names.get(item).map(String::as_str), seen) else { return Ok(None) };
    // A look that is repeated is the same event.
    let id = NoticeId::of(&format!("watchdog/{check}/{item}/{happening:?}"), look);
    Ok(Some(Store::happened_write(owner, id, event, now)?))
}

/// The write that makes the memory of an owner due, so that a missed synchronisation runs. None if memory has nothing to do.
async fn missed_sync(cx: &Cx, owner: &Owner, now: Timestamp) -> Result<Option<Write>> {
    let due = cx.store.memory_due(owner).await?;
    Ok(due.map(|due| Store::memory_due_write(owner, &due, now)).transpose()?)
}

/// How the person calls the actions and the watched schedules, by their ids.
type Names = BTreeMap<String, String>;

/// What is to be seen of an owner.
struct Facts {
    observed: Vec<Observed>,
    /// Whether that is everything.
    complete: bool,
    names: Names,
}

async fn facts(cx: &Cx, owner: &Owner, account: &Account) -> Result<Facts> {
    let now = cx.clock.now();
    let watched = async { Ok(cx.store.all_watched(owner, MAX_WATCHED).await?) };
    let jobs = async { Ok(cx.store.job_runs(owner, None, JOBS).await?) };
    let (jobs, missed, (actions, complete), watched, budget) = futures::try_join!(
        jobs,
        missed(cx, owner, account, now),
        actions(cx, owner),
        watched,
        budget(cx, owner, account, now),
    )?;
    let of_actions = actions.iter().map(|action| (action.id.to_string(), action.title.clone()));
    let of_watched = watched.iter().map(|record| &record.watched);
    let of_watched = of_watched.map(|watched| (watched.watched_id.to_string(), watched.name.clone()));
    let names = of_actions.chain(of_watched).collect();
    let jobs: Vec<JobRun> = jobs.items.into_iter().map(|(_, found)| found.value).collect();
    let mut observed = of_jobs(&jobs, &missed, now);
    observed.push(judge_budget(budget, now));
    for action in &actions {
        observed.extend(of_action(action, now));
    }
    if !watched.is_empty() {
        let with_reports = witness::with_newest_reports(cx, owner, watched).await?;
        let judge = move |stop: &crate::process::compute::Stop| {
            let judged = with_reports.into_iter().map(|(record, reports)| {
                stop.check()?;
                let reports: Vec<_> = reports.into_iter().map(|report| report.report).collect();
                let ledger = newest(&record.watched, &reports, now);
                Ok(judge_watched(&record.watched, &ledger, reports.first(), now))
            });
            judged.collect::<std::result::Result<Vec<_>, _>>()
        };
        observed.extend(cx.compute.answers.run(judge).await?);
    }
    Ok(Facts { observed, complete, names })
}

/// The synchronisations and clean-ups of memory that were due and are not done.
async fn missed(
    cx: &Cx,
    owner: &Owner,
    account: &Account,
    now: Timestamp,
) -> Result<Vec<(JobKind, Timestamp)>> {
    let Some(due) = cx.store.memory_due(owner).await? else { return Ok(Vec::new()) };
    let kept = cx.store.memory_kept(owner).await?;
    Ok(memory::missed(&due.value, kept.value, now, &zone_or_utc(&account.timezone)))
}

/// What is known about the ceiling of the owner's month.
async fn budget(cx: &Cx, owner: &Owner, account: &Account, now: Timestamp) -> Result<BudgetFacts<'static>> {
    const DAY: SignedDuration = SignedDuration::from_hours(24);
    let of = CeilingOf::Month;
    let (begins, ends) = (Month::at(now).begin(), Month::at(now).end());
    let unlimited = BudgetFacts {
        of,
        subject: "",
        ceiling_micros: None,
        spent_micros: 0,
        last_day_micros: 0,
        begins,
        ends,
    };
    let Some(micros) = ceilings::of_account(cx, account).1 else { return Ok(unlimited) };
    let spender = Spender::owner(owner);
    let month = cx.store.spend_of(spender, of, now).await?;
    let ceiling = ceilings::raised(cx, Ceiling { of, micros }, month.raised_micros);
    let mut facts =
        BudgetFacts { ceiling_micros: Some(ceiling), spent_micros: month.spent_micros, ..unlimited };
    if month.spent_micros > 0 {
        let (today, yesterday) =
            futures::try_join!(cx.store.spend(owner, now), cx.store.spend(owner, now - DAY))?;
        // The figures are those of days, so of yesterday the part counts that is less than 24 hours ago.
        let left = DAY.as_secs() - now.as_second().rem_euclid(DAY.as_secs());
        let part = i128::from(yesterday.spent_micros) * i128::from(left) / i128::from(DAY.as_secs());
        facts.last_day_micros = today.spent_micros.saturating_add(i64::try_from(part).unwrap_or(i64::MAX));
    }
    Ok(facts)
}

/// The newest actions, and whether these are all.
async fn actions(cx: &Cx, owner: &Owner) -> Result<(Vec<Action>, bool)> {
    let found = cx.store.actions(owner, None, ACTIONS).await?;
    let complete = found.last.is_none();
    Ok((found.items.into_iter().map(|(_, found)| found.value).collect(), complete))
}

/// `jobs`: newest due time first.
fn of_jobs(jobs: &[JobRun], missed: &[(JobKind, Timestamp)], now: Timestamp) -> Vec<Observed> {
    // The kinds that are due although none has ever begun are judged, too.
    let mut of: BTreeSet<(JobKind, &str)> = missed.iter().map(|(kind, _)| (*kind, "")).collect();
    of.extend(jobs.iter().map(|job| (job.kind, subject(job))));
    let judge = |(kind, subject): (JobKind, &str)| {
        let last = jobs.iter().find(|job| (job.kind, self::subject(job)) == (kind, subject));
        let next_due = missed.iter().find(|(missed, _)| *missed == kind).map(|(_, due)| *due);
        // A try has begun. Whether it has failed is another check.
        let next_due = next_due.filter(|due| last.is_none_or(|last| last.due < *due));
        judge_job(JobFacts { kind, subject, last, next_due }, now)
    };
    of.into_iter().flat_map(judge).collect()
}

fn subject(job: &JobRun) -> &str {
    if REPEATED.contains(&job.kind) { &job.subject } else { "" }
}

fn of_action(action: &Action, now: Timestamp) -> Vec<Observed> {
    let recurs = action.schedule.as_ref().is_some_and(Schedule::is_recurring);
    let is_scheduled = action.state == ActionState::Scheduled && action.approval.is_some();
    judge_action(
        ActionFacts {
            action_id: action.id,
            enabled: is_scheduled && (recurs || action.next_due.is_some()),
            paused_by_failures: action
                .paused_because
                .as_ref()
                .is_some_and(|reason| reason.code == ReasonCode::EqualFailures),
            is_live: action.live_run.is_some(),
            next: action.next_due,
            failures: action.failures.as_ref().map_or(0, |failures| failures.times),
            code: action.failures.as_ref().map(|failures| failures.code.as_str()),
            same: action.same_outputs,
        },
        now,
    )
}

/// What the watchdog sees.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct WatchdogView {
    /// When the newest look at everybody was made. Absent before the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looked_at: Option<Timestamp>,
    /// When the next one is due.
    pub next_look: Timestamp,
    /// The checks, with their settings.
    pub checks: Vec<CheckView>,
    /// What is wrong, and what was wrong in the last week.
    pub counters: Vec<CounterOf>,
}

/// A check with its settings.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct CheckView {
    pub check: Check,
    #[serde(flatten)]
    pub settings: CheckSettings,
}

/// # Errors
/// If the table does not answer.
pub async fn read(data: &Data, owner: &Owner) -> Result<WatchdogView> {
    let (found, platform) = futures::try_join!(data.store.watchdog(owner), data.store.platform_watchdog())?;
    let record = found.map(|found| found.value).unwrap_or_default();
    let checks = Check::ALL.map(|check| CheckView { check, settings: record.settings.of(check) });
    Ok(WatchdogView {
        looked_at: platform.value.made_at.or(platform.value.looked_at),
        next_look: look_at(data.clock.now()) + LOOK_EVERY,
        checks: checks.to_vec(),
        counters: record.counters,
    })
}

/// Whether something is wrong, or right again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SaidKind {
    Alert,
    Recovery,
}

/// What the watchdog has said at a look.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct WatchdogAlertView {
    /// When the look was.
    pub at: Timestamp,
    pub say: SaidKind,
    pub check: Check,
    pub item: String,
    /// What is wrong. Only of an alert.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// What a person can do. Only of an alert.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// How many looks in a row have seen it.
    pub count: u32,
    /// When the first of them was.
    pub since: Timestamp,
    /// The newest three snapshots, the newest first. Only of an alert.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub last3: Vec<Snapshot>,
    /// What the platform does about it by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heal: Option<Heal>,
    /// When the alert was raised. Only of a recovery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alerted_at: Option<Timestamp>,
}

impl From<WatchdogAlert> for WatchdogAlertView {
    fn from(WatchdogAlert { at, say }: WatchdogAlert) -> Self {
        match say {
            Say::Alert { check, item, what, remedy, count, since, last3, heal } => Self {
                at,
                say: SaidKind::Alert,
                check,
                item,
                what: Some(what),
                remedy: Some(remedy),
                count,
                since,
                last3,
                heal,
                alerted_at: None,
            },
            Say::Recovery { check, item, count, since, alerted_at } => Self {
                at,
                say: SaidKind::Recovery,
                check,
                item,
                what: None,
                remedy: None,
                count,
                since,
                last3: Vec::new(),
                heal: None,
                alerted_at: Some(alerted_at),
            },
        }
    }
}

/// What the watchdog has said, newest first.
///
/// # Errors
/// 400 if `limit` or `cursor` is invalid.
pub async fn alerts(data: &Data, owner: &Owner, query: &PageQuery) -> Result<Page<WatchdogAlertView>> {
    let read = |after: Option<String>, limit| {
        async move { data.store.watchdog_alerts(owner, after.as_deref(), limit).await }.boxed()
    };
    let found = page::filtered(owner, "watchdog alerts", query, read, |_| true).await?;
    Ok(found.map(|record| record.value.into()))
}

/// # Errors
/// If the table does not answer.
pub async fn settings(data: &Data, owner: &Owner) -> Result<WatchdogSettings> {
    Ok(data.store.watchdog(owner).await?.map(|found| found.value.settings).unwrap_or_default())
}

/// Replaces the settings. They count from the next look on.
///
/// # Errors
/// 400 with every invalid field.
pub async fn change(data: &Data, owner: &Owner, settings: WatchdogSettings) -> Result<WatchdogSettings> {
    settings.validate()?;
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let found = data.store.watchdog(owner).await?;
        let (mut record, version) = found.map_or_else(Default::default, |found| (found.value, found.version));
        record.settings.clone_from(&settings);
        let write = Store::watchdog_write(owner, &record, version, data.clock.now())?;
        if data.store.write_all(vec![write]).await?.done() {
            return Ok(settings);
        }
    }
}
