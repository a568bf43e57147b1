//! The watchdog: every two hours it looks at the platform and at everybody, and says once what is wrong.
//!
//! - `send`: the look at the platform, and a message to the executors for each owner. So one look never passes its deadline.
//! - `look`: the look at one owner. It reads, lets the domain judge and count, and writes only if a counter has changed.
//! - `follow`: puts an owner into the index of those who are looked at.
//!
//! A message that is lost is a look that was left out. A message that comes twice changes nothing, because the counters name the look. What is
//! said is stored in the transaction of the counters. Its event is published before that, so a process that is killed in between publishes
//! it again and loses nothing.

use std::collections::BTreeSet;

use domain::actions::{Action, ReasonCode};
use domain::ids::{ActionId, NoticeId, Owner, WatchedId};
use domain::jobs::{JobKind, JobRun};
use domain::notices::plan::{Event, Happening};
use domain::notices::{About, Cause, LeadsTo, NoticeKey, NoticeKind};
use domain::schedule::{Schedule, zone_or_utc};
use domain::watchdog::{
    ActionFacts, Check, CheckSettings, CounterOf, Heal, JobFacts, LOOK_EVERY, Observed, QueueFacts, Say,
    Snapshot, WatchdogSettings, judge_action, judge_job, judge_queue, judge_watched, look_at,
};
use domain::watched::MAX_WATCHED;
use domain::witness::newest;
use domain::work::ActionState;
use futures::FutureExt;
use futures::stream::{self, StreamExt};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use super::page::{self, Page, PageQuery};
use super::{due, memory, witness};
use crate::aws::bus::{Event as BusEvent, WatchdogEvent, WatchdogEventKind};
use crate::context::{Cx, Data};
use crate::error::{Error, Result};
use crate::process::due_queue::{Dispatch, MESSAGES};
use crate::store::keys::SHARDS;
use crate::store::table::Write;
use crate::store::watchdog::WatchdogAlert;
use crate::store::{DueItem, DueTarget, Store, Tries, Versioned};

/// How many of the newest jobs of an owner are read.
const JOBS: usize = 50;

/// How many of the newest actions of an owner are judged.
const ACTIONS: usize = 200;

/// How many calls of the queue are made at once.
const CALLS: usize = 8;

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

/// Looks at the platform, and sends a message for each owner.
///
/// # Errors
/// If the table does not answer.
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
            let items: Vec<Dispatch> = owners
                .iter()
                .map(|owner| Dispatch {
                    item: DueItem { due_at: Some(look), ..DueItem::watchdog(owner) },
                    delay_seconds: 0,
                })
                .collect();
            let calls: Vec<_> = items.chunks(MESSAGES).map(|chunk| cx.due_queue.send(chunk)).collect();
            let refused: Vec<Vec<usize>> = stream::iter(calls).buffer_unordered(CALLS).collect().await;
            sent.refused += refused.iter().map(Vec::len).sum::<usize>();
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
    let facts = QueueFacts { name: "executors", oldest: Some(oldest), dead_letters: None };
    let observed = judge_queue(facts, now);
    if let Some(looked) = state.record.looked(&observed, true, look) {
        for say in &looked.says {
            tracing::error!(say = ?say, "the watchdog says about the platform");
        }
        state.record = looked.record;
    }
    sent.wrong = state.record.counters.iter().filter(|of| of.counter.anomalies > 0).count();
    state.looked_at = Some(look);
    // A concurrent call has done the same.
    let _ = cx.store.save_platform_watchdog(&state, version).await?;
    Ok(sent)
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

/// The look at one owner. An account that is stopped is left alone: nothing is expected of it.
///
/// # Errors
/// If the table or the bus does not answer. The message then comes again.
pub(crate) async fn look(cx: &Cx, owner: &Owner, look: Timestamp) -> Result<()> {
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        // Without a state, the account was deleted.
        let Some(found) = cx.store.watchdog(owner).await? else { return Ok(()) };
        let (observed, complete) = facts(cx, owner).await?;
        let Some(looked) = found.value.looked(&observed, complete, look) else { return Ok(()) };
        let now = cx.clock.now();
        let says_something = !looked.says.is_empty();
        let events: Vec<BusEvent> = looked.says.iter().map(|say| event(owner, look, say)).collect();
        if !events.is_empty() {
            cx.bus.publish(&events).await?;
        }
        let mut writes = vec![Store::watchdog_write(owner, &looked.record, found.version, now)?];
        for say in looked.says {
            writes.extend(tell(owner, look, &say, now)?);
            writes.push(Store::watchdog_alert_write(owner, &WatchdogAlert { at: look, say })?);
        }
        if !cx.store.write_all(writes).await?.done() {
            // Another look, or a person has changed the settings.
            continue;
        }
        if says_something {
            due::dispatch(cx, &DueItem::notices(owner)).await;
        }
        for (heal, item) in looked.heals {
            heal_now(cx, owner, heal, &item).await?;
        }
        return Ok(());
    }
}

/// The writes that tell a person what the watchdog says. They are part of the transaction that counts it, so a person is told once.
fn tell(owner: &Owner, look: Timestamp, say: &Say, now: Timestamp) -> Result<Option<Write>> {
    let (check, item, happening, what, remedy) = match say {
        Say::Alert { check, item, what, remedy, .. } => {
            (*check, item, Happening::Happened, what.as_str(), remedy.as_str())
        }
        Say::Recovery { check, item, .. } => (*check, item, Happening::Over, "", ""),
    };
    // Of a run that fails, its person is told anyway.
    if check == Check::ActionFails {
        return Ok(None);
    }
    let action_id = item.parse::<ActionId>().ok();
    let watched_id = item.parse::<WatchedId>().ok();
    let leads_to = match (action_id, watched_id) {
        (Some(action_id), _) => LeadsTo::Action { action_id },
        (_, Some(watched_id)) => LeadsTo::Watched { watched_id },
        _ => LeadsTo::Watch,
    };
    let cause = match action_id {
        Some(_) => check.as_str().to_owned(),
        None => format!("{check}:{item}"),
    };
    let key = NoticeKey { kind: NoticeKind::Watchdog, action_id, cause: Cause::new(&cause) };
    let about = About::new(what, remedy, leads_to);
    // A look that is repeated is the same event.
    let id = NoticeId::of(&format!("watchdog/{check}/{item}/{happening:?}"), look);
    Ok(Some(Store::happened_write(owner, id, Event { key, happening, about }, now)?))
}

fn event(owner: &Owner, at: Timestamp, say: &Say) -> BusEvent {
    let (alert, check, item, count, since) = match say {
        Say::Alert { check, item, count, since, .. } => (WatchdogEventKind::Alert, check, item, count, since),
        Say::Recovery { check, item, count, since, .. } => {
            (WatchdogEventKind::Recovery, check, item, count, since)
        }
    };
    BusEvent::WatchdogAlert(WatchdogEvent {
        owner: owner.clone(),
        alert,
        check: *check,
        item: item.clone(),
        count: *count,
        since: *since,
        at,
    })
}

/// Does what is safe to repeat.
async fn heal_now(cx: &Cx, owner: &Owner, heal: Heal, item: &str) -> Result<()> {
    match heal {
        Heal::RunMissedSync => {
            let Some(found) = cx.store.memory_due(owner).await? else { return Ok(()) };
            cx.store.set_memory_due(owner, &found.value, cx.clock.now()).await?;
            due::dispatch(cx, &DueItem::memory(owner)).await;
            tracing::info!(item, "the watchdog runs a missed synchronisation");
        }
        // Queues belong to the platform.
        Heal::Redrive => {}
    }
    Ok(())
}

/// What is to be seen of an owner, and whether that is everything.
async fn facts(cx: &Cx, owner: &Owner) -> Result<(Vec<Observed>, bool)> {
    let now = cx.clock.now();
    let watched = async { Ok(cx.store.all_watched(owner, MAX_WATCHED).await?) };
    let jobs = async { Ok(cx.store.job_runs(owner, None, JOBS).await?) };
    let (jobs, missed, (actions, complete), watched) =
        futures::try_join!(jobs, missed(cx, owner, now), actions(cx, owner), watched)?;
    let jobs: Vec<JobRun> = jobs.items.into_iter().map(|(_, found)| found.value).collect();
    let mut observed = of_jobs(&jobs, &missed, now);
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
                Ok(judge_watched(&record.watched, &ledger, now))
            });
            judged.collect::<std::result::Result<Vec<_>, _>>()
        };
        observed.extend(cx.compute.answers.run(judge).await?);
    }
    Ok((observed, complete))
}

/// The synchronisations and tidyings of memory that were due and are not done.
async fn missed(cx: &Cx, owner: &Owner, now: Timestamp) -> Result<Vec<(JobKind, Timestamp)>> {
    let Some(due) = cx.store.memory_due(owner).await? else { return Ok(Vec::new()) };
    let (kept, account) = futures::try_join!(cx.store.memory_kept(owner), cx.store.account(owner))?;
    Ok(memory::missed(&due.value, kept.value, now, &zone_or_utc(&account.value.timezone)))
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
            empty: 0,
        },
        now,
    )
}

/// What the watchdog sees.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct WatchdogView {
    /// The newest look at everybody. Absent before the first one.
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
        looked_at: platform.value.looked_at,
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
