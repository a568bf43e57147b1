//! When a notice is sent: at once, later, in a digest, or never.
//!
//! A [`NoticeState`] is stored for each key. It is stored in the same transaction as the change that it is about, so each event is noted
//! once. The decision to send is stored with it, so a notice is never sent without being remembered.
//!
//! A *row* is everything from the first time that something happened until it is over. Three rules make it calm:
//! - the first event of a row is said at once, and later ones at most every six hours, with a count. This also holds if rows follow each
//!   other quickly, so something that breaks and recovers every minute does not send two notices a minute. Only what is pressing is
//!   said at once in any case. A result is said at once, too, because each is another one;
//! - "right again" is said only if the row was said. If a row begins and ends while nothing may be sent, one notice says both;
//! - if something happens again before "right again" was sent, the row goes on.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::digest::DigestItem;
use super::hours::{may_be_sent, next_digest};
use super::{About, Delivery, LeadsTo, NoticeKey, NoticeKind, Preferences};
use crate::ids::{NoticeId, RunId};

/// How long after a notice the next one with the same key is sent.
pub const AGAIN_AFTER: SignedDuration = SignedDuration::from_hours(6);

/// How many runs a notice names, if several have ended before it was sent: the newest.
pub const MAX_RUNS: usize = 5;

/// What became of the thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Happening {
    /// It happened, or happened again.
    Happened,
    /// It is right again, or every question with this key is answered.
    Over,
}

/// Something that a person may be told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    pub key: NoticeKey,
    pub happening: Happening,
    pub about: About,
    /// It changes what the person must do, so it is said at once, also if the same was said a moment ago.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_pressing: bool,
    /// It is the first result of its action, so it is said at once, also if later ones are said in a digest.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_first: bool,
}

impl Event {
    #[must_use]
    pub const fn new(key: NoticeKey, happening: Happening, about: About) -> Self {
        Self { key, happening, about, is_pressing: false, is_first: false }
    }
}

/// What waits for the digest of a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct InDigest {
    date: Date,
    count: u32,
}

/// What is stored for a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoticeState {
    pub key: NoticeKey,
    /// Of the newest event.
    pub about: About,
    /// When the row began.
    pub since: Timestamp,
    /// When the newest event was.
    pub last_at: Timestamp,
    /// How many events the row has. 0: there is no row.
    pub total: u32,
    /// How many of them wait for a notice.
    #[serde(default)]
    unsaid: u32,
    /// Whether a notice or a digest has said the row.
    #[serde(default)]
    told: bool,
    /// The row is over, and that is still to be said.
    #[serde(default)]
    over: bool,
    /// When the newest notice was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    said_at: Option<Timestamp>,
    /// How many messages were sent. It tells their ids apart.
    #[serde(default)]
    said: u32,
    /// When [`due`] is to be called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<InDigest>,
    /// The runs that wait for a notice, the oldest first, at most [`MAX_RUNS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    runs: Vec<RunId>,
    /// The first result of the action is among them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    has_first: bool,
}

/// A message to a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// The same in every try to deliver it.
    pub notice_id: NoticeId,
    pub key: NoticeKey,
    pub about: About,
    /// How many events it says: those since the last notice, or all of the row if it is over.
    pub count: u32,
    /// When the row began.
    pub since: Timestamp,
    /// When the newest event was.
    pub last_at: Timestamp,
    /// It is right again.
    pub is_over: bool,
    /// When it was sent.
    pub at: Timestamp,
    /// The runs that it tells of, the oldest first, at most [`MAX_RUNS`]. Earlier versions did not write them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<RunId>,
}

/// What is to be done with an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    SendNow(Box<Notice>),
    /// Call [`due`] at this time.
    SendAt(Timestamp),
    /// It is a line in the digest of this date, in the person's zone.
    Digest(Date),
    Nothing(Silence),
}

/// Why nothing is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// The person does not want to be told.
    Off,
    /// It is over, and the person was never told.
    NotTold,
    /// The person has answered.
    Answered,
    /// Nothing waits.
    Settled,
}

impl NoticeState {
    fn new(event: &Event, now: Timestamp) -> Self {
        Self {
            key: event.key.clone(),
            about: event.about.clone(),
            since: now,
            last_at: now,
            total: 0,
            unsaid: 0,
            told: false,
            over: false,
            said_at: None,
            said: 0,
            wake_at: None,
            digest: None,
            runs: Vec::new(),
            has_first: false,
        }
    }

    /// The row is over, and nothing is left to say.
    fn settle(&mut self) {
        (self.total, self.unsaid, self.told, self.over) = (0, 0, false, false);
        (self.wake_at, self.digest) = (None, None);
        (self.runs, self.has_first) = (Vec::new(), false);
    }

    /// The date of the digest that it waits for.
    #[must_use]
    pub fn in_digest(&self) -> Option<Date> {
        self.digest.map(|digest| digest.date)
    }

    /// Whether something of it waits for a notice or a digest.
    #[must_use]
    pub const fn is_unsaid(&self) -> bool {
        self.unsaid > 0 || self.over || self.digest.is_some()
    }

    /// Nothing is left to say, and a new row would be said at once. So it need not be kept.
    #[must_use]
    pub fn is_idle(&self, now: Timestamp) -> bool {
        self.total == 0 && self.again_from(now) <= now
    }

    /// From when on the next notice may follow the last one.
    fn again_from(&self, now: Timestamp) -> Timestamp {
        // Each result is another one.
        if self.key.kind == NoticeKind::Succeeded {
            return now;
        }
        // A clock that was ahead does not silence anything for longer than the pause.
        self.said_at.map_or(now, |said| said.min(now).saturating_add(AGAIN_AFTER).unwrap_or(now).max(now))
    }
}

/// Notes an event. The state is stored, and the decision is carried out.
#[must_use]
pub fn note(
    state: Option<NoticeState>,
    event: &Event,
    preferences: &Preferences,
    now: Timestamp,
    zone: &TimeZone,
) -> (NoticeState, Decision) {
    let mut state = state.unwrap_or_else(|| NoticeState::new(event, now));
    match event.happening {
        Happening::Happened => {
            if state.total == 0 {
                state.since = now;
            }
            // It was over, and nobody has been told yet: the row goes on.
            state.over = false;
            state.total = state.total.saturating_add(1);
            state.unsaid = state.unsaid.saturating_add(1);
            state.last_at = now;
            state.about = event.about.clone();
            if event.is_pressing {
                state.said_at = None;
            }
            if let LeadsTo::Run { run_id } = event.about.leads_to {
                state.runs.push(run_id);
                let over = state.runs.len().saturating_sub(MAX_RUNS);
                state.runs.drain(..over);
            }
            state.has_first |= event.is_first;
        }
        Happening::Over => match state.key.kind {
            _ if state.total == 0 => return (state, Decision::Nothing(Silence::NotTold)),
            NoticeKind::NeedsAnswer => return (answered(state), Decision::Nothing(Silence::Answered)),
            kind if !kind.recovers() => return (state, Decision::Nothing(Silence::Settled)),
            _ => {
                let waits = state.unsaid > 0 || state.digest.is_some_and(|digest| digest.count > 0);
                if !state.told && !waits {
                    state.settle();
                    return (state, Decision::Nothing(Silence::NotTold));
                }
                state.over = true;
                // What the watchdog says has other words when it is over.
                if state.key.kind == NoticeKind::Watchdog {
                    state.about = event.about.clone();
                }
            }
        },
    }
    plan(state, preferences, now, zone)
}

/// A question after its answer: nothing is left to say. The next question is a new one, and is asked at once.
#[must_use]
pub fn answered(mut state: NoticeState) -> NoticeState {
    state.settle();
    state.said_at = None;
    state
}

/// Decides again: at [`NoticeState::wake_at`], and when the preferences were changed. It may be called at any time.
#[must_use]
pub fn due(
    state: NoticeState,
    preferences: &Preferences,
    now: Timestamp,
    zone: &TimeZone,
) -> (NoticeState, Decision) {
    match state.is_unsaid() {
        true => plan(state, preferences, now, zone),
        false => (NoticeState { wake_at: None, ..state }, Decision::Nothing(Silence::Settled)),
    }
}

/// Takes the line for the digest of this date, if there is one. The state that comes back is stored together with the digest.
#[must_use]
pub fn take_digest(mut state: NoticeState, date: Date) -> (NoticeState, Option<DigestItem>) {
    let Some(digest) = state.digest.filter(|digest| digest.date <= date) else { return (state, None) };
    let says = digest.count > 0 || (state.over && state.told);
    let item = says.then(|| DigestItem {
        key: state.key.clone(),
        about: state.about.clone(),
        count: if digest.count > 0 { digest.count } else { state.total },
        is_over: state.over,
        last_at: state.last_at,
    });
    state.runs.clear();
    if state.over || !state.key.kind.recovers() {
        state.settle();
    } else {
        state.digest = None;
        state.told = true;
    }
    (state, item)
}

fn plan(
    mut state: NoticeState,
    preferences: &Preferences,
    now: Timestamp,
    zone: &TimeZone,
) -> (NoticeState, Decision) {
    let kind = state.key.kind;
    state.wake_at = None;
    let delivery = match preferences.delivery(kind, state.key.action_id) {
        Delivery::Digest if state.has_first => Delivery::AtOnce,
        chosen => chosen,
    };
    match delivery {
        Delivery::Off => {
            (state.unsaid, state.digest) = (0, None);
            state.runs.clear();
            if state.over || !kind.recovers() {
                state.settle();
            }
            (state, Decision::Nothing(Silence::Off))
        }
        Delivery::Digest => {
            let date = next_digest(preferences, zone, now);
            let digest = state.digest.get_or_insert(InDigest { date, count: 0 });
            digest.count = digest.count.saturating_add(state.unsaid);
            state.unsaid = 0;
            let date = digest.date;
            (state, Decision::Digest(date))
        }
        Delivery::AtOnce => {
            if let Some(digest) = state.digest.take() {
                // The person wanted a digest before.
                state.unsaid = state.unsaid.saturating_add(digest.count);
            }
            if state.unsaid == 0 && !state.over {
                return (state, Decision::Nothing(Silence::Settled));
            }
            let is_recovery = state.over && state.told;
            let from = if is_recovery { now } else { state.again_from(now) };
            let at = may_be_sent(kind, preferences, zone, from);
            if at > now {
                state.wake_at = Some(at);
                return (state, Decision::SendAt(at));
            }
            let notice = say(&mut state, now);
            (state, Decision::SendNow(Box::new(notice)))
        }
    }
}

/// What waits is said now.
fn say(state: &mut NoticeState, now: Timestamp) -> Notice {
    let is_over = state.over;
    let is_recovery = is_over && state.told;
    // A state with nothing left to say is not kept, so the number alone does not tell results apart.
    let run = state.runs.last().map(|run| format!("/{run}")).unwrap_or_default();
    let notice = Notice {
        notice_id: NoticeId::of(&format!("{}#{}{run}", state.key, state.said), now),
        key: state.key.clone(),
        about: state.about.clone(),
        count: if is_over { state.total } else { state.unsaid },
        since: state.since,
        last_at: state.last_at,
        is_over,
        at: now,
        runs: std::mem::take(&mut state.runs),
    };
    state.said = state.said.saturating_add(1);
    if !is_recovery {
        state.said_at = Some(now);
    }
    state.unsaid = 0;
    if is_over || !(state.key.kind.recovers() || state.key.kind == NoticeKind::NeedsAnswer) {
        state.settle();
    } else {
        state.told = true;
    }
    notice
}
