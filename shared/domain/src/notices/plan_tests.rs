//! Rows of events, and a year of random ones in twelve zones.

use std::collections::{BTreeMap, BTreeSet};

use jiff::ToSpan;
use proptest::prelude::*;
use serde_json::json;
use uuid::Uuid;

use super::digest::DigestItem;
use super::hours::{digest_time, may_be_sent, next_digest};
use super::plan::*;
use super::*;
use crate::ids::NoticeId;
use crate::schedule::{TRIED_ZONES as ZONES, zone_or_utc};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

const ACTION: ActionId = ActionId::from_uuid(Uuid::from_u128(5));

fn begin() -> Timestamp {
    "2026-11-22T12:00:00Z".parse().unwrap()
}

fn event(kind: NoticeKind, cause: &str, happening: Happening) -> Event {
    let key = NoticeKey { kind, action_id: Some(ACTION), cause: Cause::new(cause) };
    Event::new(key, happening, About::new("Report", "no answer", LeadsTo::Action { action_id: ACTION }))
}

/// A person, a key, and what is said about it.
struct Row {
    kind: NoticeKind,
    preferences: Preferences,
    state: Option<NoticeState>,
    said: Vec<String>,
}

impl Row {
    fn new(kind: NoticeKind, preferences: serde_json::Value) -> Self {
        let preferences = serde_json::from_value(preferences).unwrap();
        Self { kind, preferences, state: None, said: Vec::new() }
    }

    fn hear(&mut self, decision: Decision) {
        self.said.push(match decision {
            Decision::SendNow(notice) => {
                let over = if notice.is_over { " over" } else { "" };
                format!("{}{over}", notice.count)
            }
            Decision::SendAt(at) => format!("at {}", at.strftime("%dT%H:%M")),
            Decision::Digest(date) => format!("digest {}", date.strftime("%d")),
            Decision::Nothing(silence) => format!("{silence:?}"),
        });
    }

    fn event(&mut self, minutes: i64, happening: Happening) {
        let event = event(self.kind, "timeout", happening);
        let now = begin() + minutes.minutes();
        let (state, decision) = note(self.state.take(), &event, &self.preferences, now, &TimeZone::UTC);
        self.state = Some(state);
        self.hear(decision);
    }

    fn happens(&mut self, minutes: i64) {
        self.event(minutes, Happening::Happened);
    }

    fn ends(&mut self, minutes: i64) {
        self.event(minutes, Happening::Over);
    }

    fn due(&mut self, minutes: i64) {
        let now = begin() + minutes.minutes();
        let (state, decision) = due(self.state.take().unwrap(), &self.preferences, now, &TimeZone::UTC);
        self.state = Some(state);
        self.hear(decision);
    }

    #[track_caller]
    fn says(&mut self, expected: &[&str]) {
        assert_eq!(std::mem::take(&mut self.said), expected);
    }
}

#[test]
fn what_is_pressing_is_said_at_once_but_not_in_quiet_hours() {
    let quiet = json!({"quiet_hours": {"from": "13:00", "to": "20:00"}});
    for (preferences, folded, minutes, expected) in
        [(json!({}), "at 22T18:00", 2, "2"), (quiet, "at 22T20:00", 60, "at 22T20:00")]
    {
        let mut row = Row::new(NoticeKind::Failed, preferences);
        row.happens(0);
        row.happens(1);
        row.says(&["1", folded]);
        let pressing =
            Event { is_pressing: true, ..event(NoticeKind::Failed, "timeout", Happening::Happened) };
        let now = begin() + minutes.minutes();
        let (state, decision) = note(row.state.take(), &pressing, &row.preferences, now, &TimeZone::UTC);
        row.state = Some(state);
        row.hear(decision);
        row.says(&[expected]);
    }
}

#[test]
fn the_first_is_said_at_once_and_later_ones_every_six_hours_with_a_count() {
    let mut row = Row::new(NoticeKind::Failed, json!({}));
    row.happens(0);
    row.happens(60);
    row.happens(120);
    row.says(&["1", "at 22T18:00", "at 22T18:00"]);
    row.due(359);
    row.due(360);
    row.due(361);
    row.says(&["at 22T18:00", "2", "Settled"]);
    row.happens(719);
    row.due(720);
    row.ends(800);
    row.ends(801);
    row.says(&["at 23T00:00", "1", "4 over", "NotTold"]);
    // A new row is said at once after the pause, and within it at its end.
    row.happens(1_080);
    row.says(&["1"]);
    row.ends(1_081);
    row.happens(1_082);
    row.says(&["1 over", "at 23T12:00"]);
    assert!(!row.state.as_ref().unwrap().is_idle(begin()));
}

#[test]
fn a_row_that_is_over_before_it_was_said_is_said_once() {
    let mut row = Row::new(NoticeKind::Failed, json!({"quiet_hours": {"from": "12:00", "to": "20:00"}}));
    row.happens(0);
    row.happens(1);
    row.ends(2);
    row.due(480);
    row.says(&["at 22T20:00", "at 22T20:00", "at 22T20:00", "2 over"]);
    // Nothing more is said about it.
    row.due(500);
    row.ends(501);
    row.says(&["Settled", "NotTold"]);
    // It goes on before "right again" was sent.
    let mut row = Row::new(NoticeKind::Watchdog, json!({"quiet_hours": {"from": "13:00", "to": "20:00"}}));
    row.happens(0);
    row.ends(60);
    row.happens(61);
    row.due(480);
    row.ends(481);
    row.says(&["1", "at 22T20:00", "at 22T20:00", "1", "2 over"]);
}

#[test]
fn what_was_never_said_has_no_recovery() {
    let mut row = Row::new(NoticeKind::Failed, json!({"kinds": {"failed": "off"}}));
    row.ends(0);
    row.happens(1);
    row.ends(2);
    row.says(&["NotTold", "Off", "NotTold"]);
    // It was said, and then the person has switched it off.
    let mut row = Row::new(NoticeKind::Failed, json!({}));
    row.happens(0);
    row.preferences.kinds.insert(NoticeKind::Failed, Delivery::Off);
    row.happens(10);
    row.ends(20);
    row.says(&["1", "Off", "Off"]);
    assert_eq!(row.state.as_ref().unwrap().total, 0);
}

#[test]
fn a_question_is_asked_at_once_again_after_its_answer_and_an_answer_is_not_news() {
    let mut row = Row::new(NoticeKind::NeedsAnswer, json!({}));
    row.happens(0);
    row.happens(1);
    row.ends(2);
    row.happens(3);
    row.says(&["1", "at 22T18:00", "Answered", "1"]);
    // It was answered before it was sent.
    let mut row = Row::new(NoticeKind::NeedsAnswer, json!({"snoozed_until": "2026-11-22T14:00:00Z"}));
    row.happens(0);
    row.ends(1);
    row.due(120);
    row.says(&["at 22T14:00", "Answered", "Settled"]);
    row.happens(121);
    row.says(&["1"]);
}

#[test]
fn results_come_with_the_digest_and_have_no_recovery() {
    let mut row = Row::new(NoticeKind::Succeeded, json!({}));
    row.happens(0);
    row.happens(600);
    row.ends(601);
    row.says(&["digest 23", "digest 23", "Settled"]);
    let state = row.state.take().unwrap();
    assert_eq!(take_digest(state.clone(), date(22)), (state.clone(), None));
    let (state, item) = take_digest(state, date(23));
    assert_eq!(item.map(|item| (item.count, item.is_over)), Some((2, false)));
    assert_eq!(take_digest(state.clone(), date(30)).1, None, "each event is in one digest");
    row.state = Some(state);
    row.happens(1_201);
    row.says(&["digest 24"]);
}

fn date(day: i8) -> jiff::civil::Date {
    jiff::civil::date(2026, 11, day)
}

#[test]
fn failures_in_a_digest_recover_in_a_digest() {
    let mut row = Row::new(NoticeKind::Failed, json!({"kinds": {"failed": "digest"}}));
    row.happens(0);
    row.ends(1);
    let take = |row: &mut Row, day| {
        let (state, item) = take_digest(row.state.take().unwrap(), date(day));
        row.state = Some(state);
        item.map(|item| (item.count, item.is_over))
    };
    assert_eq!(take(&mut row, 23), Some((1, true)), "one line says both");
    row.happens(1_500);
    assert_eq!(take(&mut row, 24), Some((1, false)));
    row.ends(3_000);
    assert_eq!(take(&mut row, 25), Some((1, true)), "a line for the recovery alone");
    assert_eq!(take(&mut row, 26), None);
    // The person wants to be told at once while a line waits.
    row.happens(6_000);
    row.preferences.kinds.clear();
    row.said.clear();
    row.due(6_001);
    row.says(&["1"]);
    assert_eq!(take(&mut row, 30), None);
}

#[test]
fn a_repeated_call_decides_the_same_and_a_state_is_stored() {
    let preferences = Preferences::default();
    let failed = event(NoticeKind::Failed, "timeout", Happening::Happened);
    let first = note(None, &failed, &preferences, begin(), &TimeZone::UTC);
    assert_eq!(note(None, &failed, &preferences, begin(), &TimeZone::UTC), first);
    let json = serde_json::to_string(&first.0).unwrap();
    let stored: NoticeState = serde_json::from_str(&json).unwrap();
    assert_eq!(stored, first.0);
    // Two rows at the same time have two ids.
    let ended = event(NoticeKind::Failed, "timeout", Happening::Over);
    let second = note(Some(stored), &ended, &preferences, begin(), &TimeZone::UTC);
    let id = |decision: &Decision| match decision {
        Decision::SendNow(notice) => notice.notice_id,
        other => panic!("{other:?}"),
    };
    assert_ne!(id(&first.1), id(&second.1));
}

#[test]
fn a_clock_that_was_ahead_silences_nothing_for_long() {
    let mut row = Row::new(NoticeKind::Failed, json!({}));
    row.happens(60 * 24 * 365);
    row.happens(0);
    row.says(&["1", "at 22T18:00"]);
}

/// What a person knows about a key, and what must be true of it.
#[derive(Default)]
struct Known {
    /// Events that were not said yet, and the first of them.
    waits: u32,
    waits_since: Option<Timestamp>,
    /// Events of the row.
    total: u32,
    told: bool,
    last_notice: Option<Timestamp>,
}

struct Year {
    zone: TimeZone,
    preferences: Preferences,
    states: BTreeMap<NoticeKey, NoticeState>,
    known: BTreeMap<NoticeKey, Known>,
    ids: BTreeSet<NoticeId>,
    sent: u32,
}

impl Year {
    fn hear(&mut self, key: &NoticeKey, decision: Decision, now: Timestamp) -> Result<(), TestCaseError> {
        let known = self.known.entry(key.clone()).or_default();
        match decision {
            Decision::SendNow(notice) => {
                let may = may_be_sent(key.kind, &self.preferences, &self.zone, now);
                prop_assert_eq!(may, now, "{} is sent in quiet hours", key);
                prop_assert!(self.ids.insert(notice.notice_id), "{} has the id of another", key);
                self.sent += 1;
                if notice.is_over && known.told {
                    prop_assert!(key.kind.recovers());
                } else {
                    prop_assert!(known.waits > 0, "{} says nothing new", key);
                    let is_soon =
                        known.last_notice.is_some_and(|last| now.duration_since(last) < AGAIN_AFTER);
                    // Each result is another one.
                    prop_assert!(!is_soon || key.kind == NoticeKind::Succeeded, "{} is said too often", key);
                    known.last_notice = Some(now);
                }
                let count = if notice.is_over { known.total } else { known.waits };
                prop_assert_eq!(notice.count, count);
                known.waits = 0;
                known.told = !notice.is_over;
                if notice.is_over || !(key.kind.recovers() || key.kind == NoticeKind::NeedsAnswer) {
                    (known.total, known.told) = (0, false);
                }
            }
            Decision::SendAt(at) => {
                prop_assert!(at > now);
                prop_assert_eq!(self.states[key].wake_at, Some(at));
            }
            Decision::Digest(date) => {
                prop_assert!(digest_time(date, &self.preferences, &self.zone) > now);
                prop_assert_eq!(self.states[key].in_digest(), Some(date));
            }
            Decision::Nothing(Silence::Off) => (known.waits, known.told, known.total) = (0, false, 0),
            Decision::Nothing(Silence::Answered) => *known = Known::default(),
            Decision::Nothing(Silence::NotTold) => {
                prop_assert!(!known.told && known.waits == 0, "{} is lost", key);
            }
            Decision::Nothing(Silence::Settled) => {}
        }
        if self.known[key].waits == 0 {
            self.known.get_mut(key).unwrap().waits_since = None;
        }
        Ok(())
    }

    fn event(&mut self, event: &Event, now: Timestamp) -> Result<(), TestCaseError> {
        let known = self.known.entry(event.key.clone()).or_default();
        if event.happening == Happening::Happened {
            known.waits += 1;
            known.total += 1;
            known.waits_since.get_or_insert(now);
        }
        let before = self.states.remove(&event.key);
        let (state, decision) = note(before.clone(), event, &self.preferences, now, &self.zone);
        let again = note(before, event, &self.preferences, now, &self.zone);
        prop_assert_eq!(&again, &(state.clone(), decision.clone()));
        self.states.insert(event.key.clone(), state);
        self.hear(&event.key, decision, now)
    }

    /// Everything that is due up to this time, in order.
    fn until(&mut self, now: Timestamp) -> Result<(), TestCaseError> {
        for _ in 0..100_000 {
            let wakes = self.states.iter().filter_map(|(key, state)| Some((state.wake_at?, key.clone())));
            let digests = self.states.iter().filter_map(|(key, state)| {
                Some((digest_time(state.in_digest()?, &self.preferences, &self.zone), key.clone()))
            });
            let Some((at, key)) = wakes.chain(digests).min().filter(|(at, _)| *at <= now) else {
                return Ok(());
            };
            let state = self.states.remove(&key).unwrap();
            if let Some(date) = state.in_digest().filter(|_| state.wake_at.is_none()) {
                let (state, item) = take_digest(state, date);
                self.states.insert(key.clone(), state);
                self.digested(&key, item)?;
            } else {
                let (state, decision) = due(state, &self.preferences, at, &self.zone);
                prop_assert!(state.wake_at.is_none_or(|wake| wake > at), "{} does not stop", key);
                self.states.insert(key.clone(), state);
                self.hear(&key, decision, at)?;
            }
        }
        Err(TestCaseError::fail("it never ends"))
    }

    fn digested(&mut self, key: &NoticeKey, item: Option<DigestItem>) -> Result<(), TestCaseError> {
        let known = self.known.get_mut(key).unwrap();
        let item = item.unwrap_or_else(|| panic!("{key} has nothing to say"));
        let count = if known.waits > 0 { known.waits } else { known.total };
        prop_assert_eq!(item.count, count, "{}", key);
        prop_assert!(known.waits > 0 || (item.is_over && known.told));
        (known.waits, known.waits_since) = (0, None);
        known.told = !item.is_over && key.kind.recovers();
        if item.is_over || !key.kind.recovers() {
            known.total = 0;
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A year of random events in twelve zones: nothing is said twice, in quiet hours or too often, every event is said, and nothing
    /// recovers that was not said.
    #[test]
    fn a_year_of_events_is_said(
        zone in 0..ZONES.len(), from in 0..24_u8, length in 1..14_u8, urgent: bool, has_quiet: bool, digest in 0..24_u8,
        rules in proptest::collection::vec((0..7_usize, 0..3_u8), 0..6),
        steps in proptest::collection::vec((0..7_usize, 0..3_u8, 0..10_u8, 1..1_000_i64), 300..600),
    ) {
        let hour = |hour: u8| format!("{:02}:{}", hour % 24, if hour.is_multiple_of(3) { "30" } else { "00" }).parse().unwrap();
        let delivery = |n| [Delivery::AtOnce, Delivery::Digest, Delivery::Off][usize::from(n)];
        let quiet = QuietHours { from: hour(from), to: hour(from + length) };
        let mut year = Year {
            zone: zone_or_utc(ZONES[zone]),
            preferences: Preferences {
                kinds: rules.iter().map(|(kind, rule)| (NoticeKind::ALL[*kind], delivery(*rule))).collect(),
                quiet_hours: Some(quiet).filter(|quiet| has_quiet && quiet.from != quiet.to),
                urgent_in_quiet_hours: urgent,
                digest_at: hour(digest),
                ..Preferences::default()
            },
            states: BTreeMap::new(),
            known: BTreeMap::new(),
            ids: BTreeSet::new(),
            sent: 0,
        };
        prop_assert_eq!(year.preferences.validate(), Ok(()));
        let mut now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let end = now + (366 * 24).hours();
        for (kind, cause, what, minutes) in steps.into_iter().cycle() {
            now += SignedDuration::from_mins(minutes * 3);
            if now >= end {
                break;
            }
            year.until(now)?;
            let happening = if what < 6 { Happening::Happened } else { Happening::Over };
            year.event(&event(NoticeKind::ALL[kind], &format!("c{cause}"), happening), now)?;
            for (key, known) in &year.known {
                if let Some(since) = known.waits_since {
                    // Six hours, a night, and a day of digests.
                    let age = now.duration_since(since);
                    prop_assert!(age <= SignedDuration::from_hours(26 + 16), "{} waits for {}", key, age);
                }
            }
        }
        year.until(end + (4 * 24).hours())?;
        for (key, known) in &year.known {
            let is_off = year.preferences.delivery(key.kind, key.action_id) == Delivery::Off;
            prop_assert!(is_off || known.waits == 0, "{} was never said", key);
            prop_assert!(is_off || year.states[key].wake_at.is_none());
        }
        let all_silent = NoticeKind::ALL.iter().all(|kind| year.preferences.delivery(*kind, None) != Delivery::AtOnce);
        prop_assert!(all_silent || year.sent > 0);
    }

    /// The person changes the preferences at any time. No call loops or panics, and no notice leaves in quiet hours.
    #[test]
    fn preferences_may_change_at_any_time(
        steps in proptest::collection::vec((0..6_u8, 0..3_u8, 0..900_i64), 1..200), kind in 0..7_usize,
    ) {
        let kind = NoticeKind::ALL[kind];
        let zone = zone_or_utc("Europe/Berlin");
        let (mut preferences, mut state, mut now) = (Preferences::default(), None, begin());
        let (mut ids, mut told, mut unsaid) = (BTreeSet::new(), false, 0_u32);
        for (what, value, minutes) in steps {
            now += minutes.minutes();
            let decided = match what {
                0 => {
                    let rule = [Delivery::AtOnce, Delivery::Digest, Delivery::Off][usize::from(value)];
                    preferences.kinds.insert(kind, rule);
                    state.take().map(|state| due(state, &preferences, now, &zone))
                }
                1 => {
                    preferences.snoozed_until = (value > 0).then(|| now + i64::from(value).hours());
                    state.take().map(|state| due(state, &preferences, now, &zone))
                }
                2 => state.take().map(|state| due(state, &preferences, now, &zone)),
                3 => {
                    let (next, item) = match state.take() {
                        Some(state) => take_digest(state, next_digest(&preferences, &zone, now)),
                        None => continue,
                    };
                    told |= item.is_some();
                    unsaid = if item.is_some() { 0 } else { unsaid };
                    state = Some(next);
                    continue;
                }
                4 => Some(note(state.take(), &event(kind, "x", Happening::Over), &preferences, now, &zone)),
                _ => {
                    unsaid += 1;
                    Some(note(state.take(), &event(kind, "x", Happening::Happened), &preferences, now, &zone))
                }
            };
            let Some((next, decision)) = decided else { continue };
            if let Decision::SendNow(notice) = decision {
                prop_assert_eq!(may_be_sent(kind, &preferences, &zone, now), now);
                prop_assert_eq!(preferences.delivery(kind, Some(ACTION)), Delivery::AtOnce);
                prop_assert!(ids.insert(notice.notice_id));
                prop_assert!(told || unsaid > 0);
                prop_assert!(!notice.is_over || told || unsaid > 0, "a recovery of nothing");
                (told, unsaid) = (!notice.is_over, 0);
            }
            state = Some(next);
        }
    }
}

fn result_of(run: u128, is_first: bool) -> Event {
    let leads_to = LeadsTo::Run { run_id: RunId::from_uuid(uuid::Uuid::from_u128(run)) };
    let key =
        NoticeKey { kind: NoticeKind::Succeeded, action_id: Some(ACTION), cause: Cause::new("succeeded") };
    Event { is_first, ..Event::new(key, Happening::Happened, About::new("Report", "", leads_to)) }
}

fn runs(decision: Decision) -> Vec<u128> {
    match decision {
        Decision::SendNow(notice) => notice.runs.iter().map(|run| run.uuid().as_u128()).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_result_is_said_at_once_and_has_an_id_of_its_own() {
    let preferences: Preferences =
        serde_json::from_value(json!({"kinds": {"succeeded": "at_once"}})).unwrap();
    let zone = TimeZone::UTC;
    let now = Timestamp::from_second(1_795_251_600).unwrap();
    let (state, first) = note(None, &result_of(1, false), &preferences, now, &zone);
    // Nothing is left to say, so the state is not kept.
    assert!(state.is_idle(now));
    let (_, second) = note(None, &result_of(2, false), &preferences, now, &zone);
    let ids = [&first, &second].map(|decision| match decision {
        Decision::SendNow(notice) => notice.notice_id,
        other => panic!("{other:?}"),
    });
    assert_ne!(ids[0], ids[1]);
    assert_eq!((runs(first), runs(second)), (vec![1], vec![2]));
}

#[test]
fn results_of_quiet_hours_are_told_together_and_all_are_named() {
    let quiet = json!({"kinds": {"succeeded": "at_once"}, "quiet_hours": {"from": "22:00", "to": "07:00"}});
    let preferences: Preferences = serde_json::from_value(quiet).unwrap();
    let zone = TimeZone::UTC;
    let night: Timestamp = "2026-11-22T23:00:00Z".parse().unwrap();
    let morning: Timestamp = "2026-11-23T07:00:00Z".parse().unwrap();
    let mut state = None;
    for run in 1..=12 {
        let (after, decision) = note(state, &result_of(run, run == 1), &preferences, night, &zone);
        assert_eq!(decision, Decision::SendAt(morning));
        state = Some(after);
    }
    let stored: NoticeState = serde_json::from_value(serde_json::to_value(state.unwrap()).unwrap()).unwrap();
    let (after, decision) = due(stored, &preferences, morning, &zone);
    assert!(after.is_idle(morning));
    let Decision::SendNow(notice) = &decision else { panic!("{decision:?}") };
    assert_eq!(notice.count, 12);
    assert_eq!(runs(decision), (8..=12).collect::<Vec<_>>(), "the newest, as many as a notice has");
}

#[test]
fn the_first_result_comes_at_once_and_later_ones_as_chosen() {
    let zone = TimeZone::UTC;
    let now: Timestamp = "2026-11-22T12:00:00Z".parse().unwrap();
    let (state, decision) = note(None, &result_of(1, true), &Preferences::default(), now, &zone);
    assert_eq!(runs(decision), [1]);
    let (_, decision) = note(Some(state), &result_of(2, false), &Preferences::default(), now, &zone);
    assert_eq!(decision, Decision::Digest(jiff::civil::date(2026, 11, 23)));
    // Whoever wants to be told nothing is told nothing.
    let off: Preferences = serde_json::from_value(json!({"kinds": {"succeeded": "off"}})).unwrap();
    let (_, decision) = note(None, &result_of(1, true), &off, now, &zone);
    assert_eq!(decision, Decision::Nothing(Silence::Off));
}
