//! A year in twelve zones with two hundred planted faults of twenty-two kinds: each is raised once within two looks, its end is said
//! once, and nothing else is raised.
//!
//! Each kind of fault has a thing of its own in each zone, and most of them have one fault in the year. When a fault can be seen is computed here from what
//! was planted, not by the functions that are tested.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};
use serde_json::json;
use uuid::Uuid;

use crate::background::jobs::{JobKind, JobRun, Outcome};
use crate::ceilings::CeilingOf;
use crate::ids::{ActionId, WatchedId};
use crate::notices::plan::{Decision, Event, Happening, NoticeState, due, note};
use crate::notices::{About, Cause, LeadsTo, NoticeKey, NoticeKind, Preferences};
use crate::schedule::{Schedule, ScheduleInput, TRIED_ZONES as ZONES, zone_or_utc};
use crate::watchdog::{
    ActionFacts, BudgetFacts, Check, CheckSettings, Counter, JobFacts, LOOK_EVERY, Observed, QueueFacts, Say,
    judge_action, judge_budget, judge_heartbeat, judge_job, judge_queue, judge_timer, judge_watched, look,
};
use crate::watched::witness::{NewWatched, Report, Watched, newest, reports_from};

const FAULTS: usize = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    TimerOff,
    DailyStops,
    DailyFails,
    DailyDies,
    DailyEmpty,
    WeeklyStops,
    WeeklyFails,
    WeeklyEmpty,
    QueueStands,
    DeadLetters,
    BudgetBurst,
    BudgetAhead,
    ActionFails,
    ActionPaused,
    ActionRepeats,
    ActionWithoutNext,
    ActionMissed,
    SweepStops,
    ClockJumps,
    WitnessSilent,
    WitnessLate,
    WitnessEmptyOrFailed,
}

const KINDS: [Kind; 22] = [
    Kind::TimerOff,
    Kind::DailyStops,
    Kind::DailyFails,
    Kind::DailyDies,
    Kind::DailyEmpty,
    Kind::WeeklyStops,
    Kind::WeeklyFails,
    Kind::WeeklyEmpty,
    Kind::QueueStands,
    Kind::DeadLetters,
    Kind::BudgetBurst,
    Kind::BudgetAhead,
    Kind::ActionFails,
    Kind::ActionPaused,
    Kind::ActionRepeats,
    Kind::ActionWithoutNext,
    Kind::ActionMissed,
    Kind::SweepStops,
    Kind::ClockJumps,
    Kind::WitnessSilent,
    Kind::WitnessLate,
    Kind::WitnessEmptyOrFailed,
];

impl Kind {
    fn check(self) -> Check {
        match self {
            Self::TimerOff => Check::TimerDisabled,
            Self::DailyStops | Self::WeeklyStops | Self::ActionMissed => Check::Stale,
            Self::DailyFails | Self::DailyDies | Self::WeeklyFails => Check::JobFailed,
            Self::DailyEmpty | Self::WeeklyEmpty => Check::EmptySuccess,
            Self::QueueStands => Check::QueueAge,
            Self::DeadLetters => Check::DeadLetters,
            Self::BudgetBurst | Self::BudgetAhead => Check::BudgetBurn,
            Self::ActionFails | Self::ActionPaused => Check::ActionFails,
            Self::ActionRepeats => Check::ActionRepeats,
            Self::ActionWithoutNext => Check::ActionWithoutNext,
            Self::SweepStops | Self::ClockJumps => Check::Heartbeat,
            Self::WitnessSilent | Self::WitnessLate | Self::WitnessEmptyOrFailed => Check::WatchedSchedule,
        }
    }

    /// When the thing is due. None: it is always looked at.
    fn cron(self) -> Option<&'static str> {
        match self {
            Self::DailyStops | Self::DailyFails | Self::DailyDies | Self::DailyEmpty => Some("0 23 * * *"),
            Self::WeeklyStops | Self::WeeklyFails | Self::WeeklyEmpty => Some("0 22 * * SUN"),
            Self::ActionFails | Self::ActionPaused | Self::ActionRepeats | Self::ActionMissed => {
                Some("0 9 * * *")
            }
            Self::WitnessSilent | Self::WitnessLate | Self::WitnessEmptyOrFailed => Some("30 2 * * *"),
            _ => None,
        }
    }

    fn is_weekly(self) -> bool {
        matches!(self, Self::WeeklyStops | Self::WeeklyFails | Self::WeeklyEmpty)
    }
}

/// SplitMix64: the same numbers in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: i64) -> i64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        i64::try_from((z ^ (z >> 31)) % limit.unsigned_abs()).unwrap()
    }
}

#[derive(Clone, Debug)]
struct Fault {
    from: Timestamp,
    until: Timestamp,
}

impl Fault {
    fn holds(&self, at: Timestamp) -> bool {
        self.from <= at && at < self.until
    }
}

/// A thing that is looked at, and its faults.
struct Thing {
    kind: Kind,
    id: u128,
    faults: Vec<Fault>,
    dues: Vec<Timestamp>,
    watched: Option<Watched>,
}

fn begin() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn month_of(at: Timestamp) -> (Timestamp, Timestamp) {
    let first = TimeZone::UTC.to_datetime(at).date().first_of_month();
    let instant = |date: jiff::civil::Date| date.to_zoned_datetime(TimeZone::UTC).unwrap().timestamp();
    (instant(first), instant(first + 1.month()))
}

const CEILING: f64 = 30_000_000.0;

impl Thing {
    fn new(kind: Kind, zone: &str, id: u128) -> Self {
        let mut dues = Vec::new();
        let mut watched = None;
        if let Some(cron) = kind.cron() {
            let input = json!({"cron": cron, "timezone": zone});
            let input: ScheduleInput = serde_json::from_value(input).unwrap();
            let schedule: Schedule = input.clone().validate().unwrap();
            dues = schedule.fire_times(begin(), begin() - (8 * 24).hours(), 420);
            if kind.check() == Check::WatchedSchedule {
                let new = NewWatched {
                    name: "w".to_owned(),
                    schedule: input,
                    grace_minutes: 30,
                    expects_result: true,
                };
                let from = begin() - (8 * 24).hours();
                watched = Some(new.validate(WatchedId::from_uuid(Uuid::from_u128(id)), from).unwrap());
            }
        }
        Self { kind, id, faults: Vec::new(), dues, watched }
    }

    fn fault_at(&self, at: Timestamp) -> Option<&Fault> {
        self.faults.iter().find(|fault| fault.holds(at))
    }

    /// The micro-dollars of the month up to now: 2 % of the ceiling a day, and more during a fault. What a fault has cost stays until
    /// the month ends.
    fn spent(&self, now: Timestamp) -> f64 {
        let (month, _) = month_of(now);
        let days =
            |from: Timestamp, until: Timestamp| until.duration_since(from).as_secs_f64().max(0.0) / 86_400.0;
        let rate = if self.kind == Kind::BudgetBurst { 0.6 } else { 0.08 };
        let extra: f64 =
            self.faults.iter().map(|fault| days(fault.from.max(month), fault.until.min(now))).sum();
        CEILING * (0.02 * days(month, now) + rate * extra)
    }

    /// After a fault, the person has raised the ceiling for the rest of the month.
    fn ceiling(&self, now: Timestamp) -> f64 {
        let (month, _) = month_of(now);
        let is_raised = self.faults.iter().any(|fault| month <= fault.until && fault.until <= now);
        if is_raised { CEILING * 20.0 } else { CEILING }
    }

    /// From when to when a fault can be seen.
    fn seen(&self, fault: &Fault) -> (Timestamp, Timestamp) {
        let within: Vec<Timestamp> = self.dues.iter().copied().filter(|due| fault.holds(*due)).collect();
        let good = self.dues.iter().copied().find(|due| *due >= fault.until);
        let nth = |n: usize| within[n];
        let good = || good.unwrap();
        match self.kind {
            Kind::TimerOff | Kind::DeadLetters | Kind::ActionWithoutNext | Kind::ClockJumps => {
                (fault.from, fault.until)
            }
            Kind::QueueStands => (fault.from + 30.minutes(), fault.until),
            Kind::SweepStops => (fault.from + 10.minutes(), fault.until),
            Kind::DailyStops | Kind::WeeklyStops => (nth(0) + 2.hours(), good()),
            Kind::DailyFails | Kind::WeeklyFails | Kind::DailyEmpty | Kind::WeeklyEmpty => {
                (nth(0) + 5.minutes(), good() + 5.minutes())
            }
            Kind::DailyDies => (nth(0) + 2.hours(), good() + 5.minutes()),
            Kind::ActionMissed => (nth(0) + 2.hours(), fault.until),
            Kind::ActionFails => (nth(1), good()),
            Kind::ActionPaused => (nth(1), fault.until),
            Kind::ActionRepeats => (nth(2), good()),
            Kind::WitnessSilent | Kind::WitnessLate => (nth(0) + 30.minutes(), good() + 3.minutes()),
            Kind::WitnessEmptyOrFailed => (nth(0) + 3.minutes(), good() + 3.minutes()),
            Kind::BudgetBurst | Kind::BudgetAhead => {
                let (month, next) = month_of(fault.from);
                let burns = |at: &Timestamp| {
                    let gone =
                        at.duration_since(month).as_secs_f64() / next.duration_since(month).as_secs_f64();
                    let spent = self.spent(*at);
                    let last_day = spent - self.spent((*at - 24.hours()).max(month));
                    spent + last_day >= CEILING || spent / CEILING > gone + 0.25
                };
                let minutes = (0..).map(|n| fault.from + SignedDuration::from_mins(n));
                (minutes.take_while(|at| *at < fault.until).find(burns).unwrap(), fault.until)
            }
        }
    }

    fn observed(&self, now: Timestamp) -> Vec<Observed> {
        let fault = self.fault_at(now);
        match self.kind {
            Kind::TimerOff => vec![judge_timer("schedule-sweep", Some(fault.is_none()), now)],
            Kind::QueueStands | Kind::DeadLetters => {
                let oldest = match fault {
                    Some(fault) if self.kind == Kind::QueueStands => now.duration_since(fault.from),
                    _ => SignedDuration::from_mins(14),
                };
                let dead = if fault.is_some() && self.kind == Kind::DeadLetters { 2 } else { 0 };
                // At times, the queue can't be read.
                let is_near = fault.is_some() || self.fault_at(now - 6.hours()).is_some();
                let is_known = is_near || now.as_second() % 7 != 0;
                let facts = QueueFacts {
                    name: "executor",
                    oldest: Some(oldest).filter(|_| is_known),
                    dead_letters: Some(dead).filter(|_| is_known),
                };
                judge_queue(facts, now)
            }
            Kind::SweepStops | Kind::ClockJumps => {
                let last = match fault {
                    None => now - 40.seconds(),
                    Some(_) if self.kind == Kind::ClockJumps => now + 3.hours(),
                    Some(fault) => fault.from,
                };
                vec![judge_heartbeat("The sweep", Some(last), SignedDuration::from_mins(10), now)]
            }
            Kind::BudgetBurst | Kind::BudgetAhead => {
                let (begins, ends) = month_of(now);
                let micros = |amount: f64| amount as i64;
                let spent = self.spent(now);
                let facts = BudgetFacts {
                    of: CeilingOf::Month,
                    subject: "",
                    ceiling_micros: Some(micros(self.ceiling(now))),
                    spent_micros: micros(spent),
                    last_day_micros: micros(spent - self.spent((now - 24.hours()).max(begins))),
                    begins,
                    ends,
                };
                vec![judge_budget(facts, now)]
            }
            kind if kind.check() == Check::WatchedSchedule => {
                let watched = self.watched.as_ref().unwrap();
                let since = reports_from(watched, now - 72.hours());
                let recent = self.dues.iter().filter(|due| **due > since && **due <= now);
                let reports: Vec<Report> =
                    recent.filter_map(|due| self.report(*due)).filter(|r| r.at <= now).collect();
                let report = reports.iter().max_by_key(|report| report.at);
                vec![judge_watched(watched, &newest(watched, &reports, now), report, now)]
            }
            kind if kind.cron() == Some("0 9 * * *") || kind == Kind::ActionWithoutNext => {
                judge_action(self.action(now), now)
            }
            _ => self.job(now),
        }
    }

    /// How many due times, ends of a grace and reports of a watched schedule have come. Nothing else changes what is known about it, so
    /// it is looked at again only then. That would otherwise be most of the time of this test.
    fn moment(&self, now: Timestamp) -> Option<[usize; 3]> {
        self.watched.as_ref()?;
        let came = |late: i64| self.dues.partition_point(|due| *due + late.minutes() < now);
        let reports = self.dues.iter().filter_map(|due| self.report(*due)).filter(|report| report.at <= now);
        Some([came(0), came(30), reports.count()])
    }

    fn report(&self, due: Timestamp) -> Option<Report> {
        let good = Report {
            at: due + 3.minutes(),
            ok: true,
            summary: "done".to_owned(),
            link: None,
            exit_code: None,
        };
        match (self.kind, self.fault_at(due)) {
            (Kind::WitnessSilent, Some(_)) => None,
            (Kind::WitnessLate, Some(_)) => Some(Report { at: due + 3.hours(), ..good }),
            (_, Some(fault)) if fault.from.as_second() / 60 % 2 == 0 => {
                Some(Report { summary: String::new(), ..good })
            }
            (_, Some(_)) => Some(Report { ok: false, exit_code: Some(1), ..good }),
            (_, None) => Some(good),
        }
    }

    fn action(&self, now: Timestamp) -> ActionFacts<'_> {
        let came = self.dues.partition_point(|due| *due <= now);
        let row = self.dues[..came].iter().rev().take_while(|due| self.fault_at(**due).is_some()).count();
        let row = u32::try_from(row).unwrap();
        let fault = self.fault_at(now);
        let good = ActionFacts {
            action_id: ActionId::from_uuid(Uuid::from_u128(self.id)),
            enabled: true,
            paused_by_failures: false,
            is_live: false,
            next: self.dues.get(came).copied().or(Some(now + 1.hour())),
            failures: 0,
            code: Some("timeout"),
            same: 0,
        };
        match self.kind {
            Kind::ActionFails => ActionFacts { failures: row, ..good },
            Kind::ActionPaused if fault.is_some() => {
                ActionFacts { failures: row.min(3), enabled: row < 3, paused_by_failures: row >= 3, ..good }
            }
            Kind::ActionRepeats => ActionFacts { same: row, ..good },
            Kind::ActionWithoutNext if fault.is_some() => ActionFacts { next: None, ..good },
            Kind::ActionMissed if row > 0 && fault.is_some() => {
                ActionFacts { next: Some(self.dues[came - usize::try_from(row).unwrap()]), ..good }
            }
            _ => good,
        }
    }

    fn job(&self, now: Timestamp) -> Vec<Observed> {
        let is_stopped = |due: &Timestamp| {
            matches!(self.kind, Kind::DailyStops | Kind::WeeklyStops) && self.fault_at(*due).is_some()
        };
        let kind = if self.kind.is_weekly() { JobKind::MemoryWeekly } else { JobKind::MemoryDaily };
        let begun = self.dues.iter().rposition(|due| *due <= now && !is_stopped(due)).unwrap();
        let due = self.dues[begun];
        let mut job = JobRun::begin(None, kind, "local", due, due);
        let dies = self.kind == Kind::DailyDies && self.fault_at(due).is_some();
        if now >= due + 5.minutes() && !dies {
            let good = Outcome { work_found: 3, artefacts: 2, ..Outcome::default() };
            let outcome = match (self.kind, self.fault_at(due)) {
                (Kind::DailyFails | Kind::WeeklyFails, Some(_)) => {
                    Outcome { error: Some("timeout".to_owned()), ..good }
                }
                (Kind::DailyEmpty | Kind::WeeklyEmpty, Some(_)) => Outcome { artefacts: 0, ..good },
                // Days without work are no fault.
                (_, None) if due.as_second() % 5 == 0 => Outcome::default(),
                _ => good,
            };
            job = job.end(outcome, due + 5.minutes());
        }
        let facts =
            JobFacts { kind, subject: "local", last: Some(&job), next_due: Some(self.dues[begun + 1]) };
        judge_job(facts, now)
    }
}

/// Two hundred faults, each of another kind or in another zone. The other things have none.
fn planted() -> Vec<Vec<Thing>> {
    let mut random = Random(33);
    let mut zones: Vec<Vec<Thing>> = Vec::new();
    for (at, zone) in ZONES.iter().enumerate() {
        let id = |n: usize| u128::try_from(at * KINDS.len() + n).unwrap();
        zones.push(KINDS.iter().enumerate().map(|(n, kind)| Thing::new(*kind, zone, id(n))).collect());
    }
    for n in 0..FAULTS {
        // 13 and 22 have no common divisor, so no pair comes twice.
        let (zone, kind) = (n % ZONES.len(), (n + n / ZONES.len()) % KINDS.len());
        let thing = &mut zones[zone][kind];
        let hours = match thing.kind {
            kind if kind.is_weekly() => 8 * 24 + random.below(72),
            Kind::ActionRepeats | Kind::ActionPaused => 24 * 5 + random.below(48),
            Kind::ActionFails => 24 * 3 + random.below(48),
            Kind::BudgetAhead => 24 * 10,
            Kind::BudgetBurst => 24 * 2,
            kind if kind.cron().is_some() => 48 + random.below(60),
            _ => 6 + random.below(40),
        };
        let mut from =
            begin() + SignedDuration::from_mins((10 + random.below(320)) * 1_440 + random.below(1_440));
        if matches!(thing.kind, Kind::BudgetBurst | Kind::BudgetAhead) {
            // It ends within its month.
            from = month_of(from).0 + (random.below(96) + 24).hours();
        }
        thing.faults.push(Fault { from, until: from + hours.hours() });
    }
    zones
}

#[test]
fn a_year_of_faults_is_raised_and_nothing_else() {
    let zones = planted();
    let planted: usize = zones.iter().flatten().map(|thing| thing.faults.len()).sum();
    assert_eq!(planted, FAULTS);
    let kinds_used =
        KINDS.iter().filter(|kind| zones.iter().flatten().any(|t| t.kind == **kind && !t.faults.is_empty()));
    assert!(kinds_used.count() >= 20);
    let found: Vec<[usize; 3]> = std::thread::scope(|scope| {
        let zones = ZONES.iter().zip(&zones);
        let years: Vec<_> = zones.map(|(name, things)| scope.spawn(move || year(name, things))).collect();
        years.into_iter().map(|year| year.join().unwrap()).collect()
    });
    let sum = |n: usize| found.iter().map(|zone| zone[n]).sum::<usize>();
    assert_eq!([sum(0), sum(1), sum(2)], [FAULTS, FAULTS, 12 * 22 * 365 * 12]);
}

/// How many faults were raised in a zone, how many a person was told, and how many looks there were.
fn year(name: &str, things: &[Thing]) -> [usize; 3] {
    let zone = zone_or_utc(name);
    let (mut raised, mut told, mut looks) = (0, 0, 0);
    for thing in things {
        let said = simulate(thing, &mut looks);
        let mut alerts = said.iter().filter(|(_, say)| matches!(say, Say::Alert { .. }));
        let mut recoveries = said.iter().filter(|(_, say)| matches!(say, Say::Recovery { .. }));
        for fault in &thing.faults {
            let context = format!("{name} {:?} {fault:?}", thing.kind);
            let (from, until) = thing.seen(fault);
            let Some((at, Say::Alert { check, count, last3, .. })) = alerts.next() else {
                panic!("{context}: not raised")
            };
            assert_eq!((*check, *count, last3.len()), (thing.kind.check(), 2, 2), "{context}");
            let is_soon = *at > from && at.duration_since(from) <= LOOK_EVERY * 2;
            assert!(is_soon, "{context}: raised at {at}, seen from {from}");
            let Some((at, _)) = recoveries.next() else { panic!("{context}: its end is not said") };
            let is_soon = *at >= until && at.duration_since(until) <= LOOK_EVERY;
            assert!(is_soon, "{context}: over at {at}, not {until}");
            raised += 1;
        }
        assert_eq!(alerts.next(), None, "{name} {:?}: a false alarm", thing.kind);
        assert_eq!(recoveries.next(), None, "{name} {:?}: a false recovery", thing.kind);
        told += notices(thing, &zone, &said);
    }
    [raised, told, looks]
}

/// Looks at a thing every two hours at :15 for a year. Some looks are repeated.
fn simulate(thing: &Thing, looks: &mut usize) -> Vec<(Timestamp, Say)> {
    let mut counters: BTreeMap<(Check, String), Counter> = BTreeMap::new();
    let mut said = Vec::new();
    let mut random = Random(7);
    let mut known = (None, Vec::new());
    for n in 0..365 * 12 {
        let now = begin() + 15.minutes() + SignedDuration::from_hours(2 * n);
        *looks += 1;
        let times = if random.below(10) == 0 { 2 } else { 1 };
        let moment = thing.moment(now);
        if moment.is_none() || moment != known.0 {
            known = (moment, thing.observed(now));
        }
        for again in 0..times {
            for observed in &known.1 {
                let counter = counters.entry((observed.check, observed.item.clone())).or_default();
                let (after, say) = look(std::mem::take(counter), observed, now, CheckSettings::default());
                *counter = after;
                assert!(again == 0 || say.is_none(), "a repeated look says nothing");
                said.extend(say.map(|say| (now, say)));
            }
        }
    }
    said
}

/// What a person with quiet hours is told: for each fault one notice, and its end. Returns how many faults were told.
fn notices(thing: &Thing, zone: &TimeZone, said: &[(Timestamp, Say)]) -> usize {
    let preferences: Preferences =
        serde_json::from_value(json!({"quiet_hours": {"from": "22:00", "to": "07:00"}})).unwrap();
    let mut state: Option<NoticeState> = None;
    let (mut begun, mut ended) = (0, 0);
    let mut hear = |decision: Decision| {
        if let Decision::SendNow(notice) = decision {
            // One notice may say both.
            begun += usize::from(!notice.is_over || ended == begun);
            ended += usize::from(notice.is_over);
        }
    };
    let wake = |state: &mut Option<NoticeState>, until: Timestamp, hear: &mut dyn FnMut(Decision)| {
        while let Some(at) = state.as_ref().and_then(|state| state.wake_at).filter(|at| *at <= until) {
            let (next, decision) = due(state.take().unwrap(), &preferences, at, zone);
            *state = Some(next);
            hear(decision);
        }
    };
    for (at, say) in said {
        wake(&mut state, *at, &mut hear);
        let (check, item, happening) = match say {
            Say::Alert { check, item, .. } => (check, item, Happening::Happened),
            Say::Recovery { check, item, .. } => (check, item, Happening::Over),
        };
        let cause = Cause::new(&format!("{check}:{}", item.to_lowercase().replace(' ', "_")));
        assert_ne!(cause.as_str(), "other");
        let key = NoticeKey { kind: NoticeKind::Watchdog, action_id: None, cause };
        let event = Event::new(key, happening, About::new(item, "", LeadsTo::Watch));
        let (next, decision) = note(state.take(), &event, &preferences, *at, zone);
        state = Some(next);
        hear(decision);
    }
    wake(&mut state, begin() + (370 * 24).hours(), &mut hear);
    assert_eq!(begun, ended, "{:?}", thing.kind);
    begun
}
