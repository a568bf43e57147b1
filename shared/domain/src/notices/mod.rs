//! Who is told what, when, and in which words.
//!
//! Something happens: a run fails, waits for an answer, or is done. [`plan`] decides whether the person is told at once, later, in
//! the digest of a day, or not at all. [`render`](mod@render) writes the text for each channel, and [`channels`] says where it goes.
//!
//! - Failures are never silent: what happens in quiet hours is said when they end.
//! - The same thing is said at once, then at most every six hours, with a count.
//! - "It is right again" is said once, and only to somebody who was told that it was wrong.
//! - A notice has one id in all tries to deliver it, so nobody is told twice.

pub mod answer_link;
pub mod channels;
pub mod codes;
pub mod deliveries;
pub mod digest;
pub mod hours;
pub mod inert;
pub mod mail_events;
pub mod of_channel;
pub mod of_costs;
pub mod of_preflight;
pub mod of_run;
pub mod of_watchdog;
pub mod plan;
#[cfg(test)]
mod plan_tests;
pub mod render;
pub mod replies;
pub mod result;
pub mod told;
pub mod waits;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::Time;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::ToSchema;

use crate::ids::{ActionId, AgentId, ChannelId, ProjectId, RunId, WatchedId};
use crate::text::quoting::short_line;
use crate::validate::{FieldErrors, TIME_LIMIT, is_sane};

/// How many actions may have rules of their own.
pub const MAX_ACTIONS: usize = 200;

/// How many channels an account may have.
pub const MAX_CHANNELS: usize = 10;

/// The longest cause, in bytes.
pub const MAX_CAUSE: usize = 100;

/// The longest title of a notice, in bytes.
pub const MAX_TITLE: usize = 200;

/// The longest reason of a notice, in bytes.
pub const MAX_REASON: usize = 500;

/// What a notice is about. The order is the one of a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// Something waits for a person: a run, an approval, a turn of a conversation, proposals.
    NeedsAnswer,
    /// The watchdog has found something wrong.
    Watchdog,
    /// A run has failed.
    Failed,
    /// A due time was held back.
    Held,
    /// A ceiling of costs is reached, or nearly.
    Budget,
    /// A run has succeeded.
    Succeeded,
    /// A run took place and found nothing new.
    NothingNew,
}

impl NoticeKind {
    pub const ALL: [Self; 7] = [
        Self::NeedsAnswer,
        Self::Watchdog,
        Self::Failed,
        Self::Held,
        Self::Budget,
        Self::Succeeded,
        Self::NothingNew,
    ];

    /// Its name in JSON and in keys.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NeedsAnswer => "needs_answer",
            Self::Watchdog => "watchdog",
            Self::Failed => "failed",
            Self::Held => "held",
            Self::Budget => "budget",
            Self::Succeeded => "succeeded",
            Self::NothingNew => "nothing_new",
        }
    }

    /// How a person is told who has said nothing about it.
    #[must_use]
    pub const fn default_delivery(self) -> Delivery {
        match self {
            Self::NeedsAnswer | Self::Watchdog | Self::Failed | Self::Held | Self::Budget => Delivery::AtOnce,
            Self::Succeeded => Delivery::Digest,
            Self::NothingNew => Delivery::Off,
        }
    }

    /// Whether "it is right again" is said. A question that was answered is not: the person has answered it.
    #[must_use]
    pub const fn recovers(self) -> bool {
        matches!(self, Self::Watchdog | Self::Failed | Self::Held | Self::Budget)
    }

    /// Whether a person may let it through in quiet hours.
    #[must_use]
    pub const fn is_urgent(self) -> bool {
        matches!(self, Self::NeedsAnswer | Self::Watchdog)
    }
}

impl fmt::Display for NoticeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a person is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    AtOnce,
    /// Once a day, together with others.
    Digest,
    Off,
}

/// Why a notice is sent: a code, never a text. The same thing has the same cause each time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Cause(String);

impl Cause {
    /// A code of lower-case letters, digits and `_ . : -`, at most 100 bytes. Anything else is the code `other`, so that a text from
    /// outside can't make a new cause each time.
    #[must_use]
    pub fn new(code: &str) -> Self {
        let is_code =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_.:-".contains(&byte);
        let is_valid = (1..=MAX_CAUSE).contains(&code.len()) && code.bytes().all(is_code);
        Self(if is_valid { code } else { "other" }.to_owned())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for Cause {
    fn from(code: String) -> Self {
        Self::new(&code)
    }
}

impl From<Cause> for String {
    fn from(cause: Cause) -> Self {
        cause.0
    }
}

/// What is said once: the same kind about the same action for the same cause.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NoticeKey {
    pub kind: NoticeKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_id: Option<ActionId>,
    pub cause: Cause,
}

/// `failed/act_…/overloaded`, or `watchdog/-/stale:memory_daily`. It is a part of a key in the table.
impl fmt::Display for NoticeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/", self.kind)?;
        match self.action_id {
            Some(action) => write!(f, "{action}")?,
            None => f.write_str("-")?,
        }
        write!(f, "/{}", self.cause.as_str())
    }
}

/// What the link of a notice leads to. It leads to the thing and never answers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LeadsTo {
    Run {
        run_id: RunId,
    },
    Action {
        action_id: ActionId,
    },
    Agent {
        agent_id: AgentId,
    },
    Watched {
        watched_id: WatchedId,
    },
    /// The living documents of a project.
    Docs {
        project_id: ProjectId,
    },
    /// The page of the watchdog.
    Watch,
    /// The page of costs.
    Usage,
    /// The page where a person says what to be told, and where.
    Notices,
}

/// The newest of what a notice says. The texts come from outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct About {
    /// The name of the action or of what is watched, at most 200 bytes on one line.
    #[schema(max_length = 200)]
    pub title: String,
    /// What happened, at most 500 bytes on one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(max_length = 500)]
    pub reason: String,
    pub leads_to: LeadsTo,
    /// The platform has paused the action because of it, so it does not run again by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_paused: bool,
}

impl About {
    /// The texts are cut and have one line.
    #[must_use]
    pub fn new(title: &str, reason: &str, leads_to: LeadsTo) -> Self {
        let (title, reason) = (short_line(title, MAX_TITLE), short_line(reason, MAX_REASON));
        Self { title, reason, leads_to, has_paused: false }
    }
}

/// A time of day as a person writes it: `08:00`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeOfDay {
    hour: i8,
    minute: i8,
}

/// The text is not a time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a time of day such as 08:00, from 00:00 to 23:59")]
pub struct InvalidTimeOfDay;

impl TimeOfDay {
    const EIGHT: Self = Self { hour: 8, minute: 0 };

    #[must_use]
    pub const fn time(self) -> Time {
        Time::constant(self.hour, self.minute, 0, 0)
    }
}

impl FromStr for TimeOfDay {
    type Err = InvalidTimeOfDay;

    fn from_str(text: &str) -> Result<Self, InvalidTimeOfDay> {
        let number = |text: &str, limit: i8| {
            let is_number = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|number| is_number && *number < limit).ok_or(InvalidTimeOfDay)
        };
        let (hour, minute) = text.split_once(':').ok_or(InvalidTimeOfDay)?;
        Ok(Self { hour: number(hour, 24)?, minute: number(minute, 60)? })
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.hour, self.minute)
    }
}

impl Serialize for TimeOfDay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TimeOfDay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Hours in which a person is not disturbed, in the person's time zone. They may go over midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QuietHours {
    /// When they begin.
    #[schema(value_type = String, example = "22:00")]
    pub from: TimeOfDay,
    /// When they are over.
    #[schema(value_type = String, example = "07:00")]
    pub to: TimeOfDay,
}

/// How a person wants to be told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Preferences {
    /// By kind. Defaults: `succeeded`: `digest`; `nothing_new`: `off`; the others: `at_once`.
    pub kinds: BTreeMap<NoticeKind, Delivery>,
    /// For single actions, by kind. At most 200 actions.
    #[schema(value_type = BTreeMap<String, BTreeMap<NoticeKind, Delivery>>)]
    pub actions: BTreeMap<ActionId, BTreeMap<NoticeKind, Delivery>>,
    /// For single actions, the channels that are told. Default: all. While none of them is on, all that are on are told. At most 200
    /// actions, and 1 to 10 channels each.
    #[schema(value_type = BTreeMap<String, Vec<ChannelId>>)]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub channels: BTreeMap<ActionId, Vec<ChannelId>>,
    /// Nothing is sent in these hours. It is sent when they end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet_hours: Option<QuietHours>,
    /// Whether `needs_answer` and `watchdog` are sent in quiet hours, too. Default: false.
    pub urgent_in_quiet_hours: bool,
    /// Nothing is sent before this. It is sent then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snoozed_until: Option<Timestamp>,
    /// When the digest of a day is sent. Default: 08:00.
    #[schema(value_type = String, example = "08:00")]
    pub digest_at: TimeOfDay,
    /// Whether messages have the words of results. Otherwise they only say that there is one. Left out if it is true, the default.
    #[serde(skip_serializing_if = "is_true")]
    pub result_texts: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_true(value: &bool) -> bool {
    *value
}

impl Default for Preferences {
    fn default() -> Self {
        Self {
            kinds: BTreeMap::new(),
            actions: BTreeMap::new(),
            channels: BTreeMap::new(),
            quiet_hours: None,
            urgent_in_quiet_hours: false,
            snoozed_until: None,
            digest_at: TimeOfDay::EIGHT,
            result_texts: true,
        }
    }
}

impl Preferences {
    /// How this is told: the rule of the action, else the rule of the kind, else the default.
    #[must_use]
    pub fn delivery(&self, kind: NoticeKind, action_id: Option<ActionId>) -> Delivery {
        let of_action = action_id.and_then(|action| self.actions.get(&action)?.get(&kind));
        of_action.or_else(|| self.kinds.get(&kind)).copied().unwrap_or(kind.default_delivery())
    }

    /// Those of the channels that are on that are told of this. `id` gives the id of one.
    #[must_use]
    pub fn told<'a, T>(
        &self,
        on: &'a [T],
        id: impl Fn(&T) -> ChannelId,
        action_id: Option<ActionId>,
    ) -> Vec<&'a T> {
        let chosen = action_id.and_then(|action| self.channels.get(&action));
        let is_chosen = |one: &&T| chosen.is_none_or(|chosen| chosen.contains(&id(one)));
        let told: Vec<&T> = on.iter().filter(is_chosen).collect();
        if told.is_empty() { on.iter().collect() } else { told }
    }

    /// Forgets what is about actions and channels that do not exist any more.
    pub fn forget(&mut self, has_action: impl Fn(ActionId) -> bool, has_channel: impl Fn(ChannelId) -> bool) {
        self.actions.retain(|action, _| has_action(*action));
        self.channels.retain(|action, chosen| {
            chosen.retain(|channel| has_channel(*channel));
            has_action(*action) && !chosen.is_empty()
        });
    }

    /// # Errors
    /// Every invalid field, with its limit.
    pub fn validate(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        for (field, count) in [("actions", self.actions.len()), ("channels", self.channels.len())] {
            if count > MAX_ACTIONS {
                errors.add(field, format!("must have at most {MAX_ACTIONS} actions, has {count}"));
            }
        }
        for (action, chosen) in &self.channels {
            if !(1..=MAX_CHANNELS).contains(&chosen.len()) {
                let count = chosen.len();
                errors.add(
                    format!("channels.{action}"),
                    format!("must have 1 to {MAX_CHANNELS} channels, has {count}"),
                );
            }
        }
        if self.quiet_hours.is_some_and(|hours| hours.from == hours.to) {
            errors.add("quiet_hours", "must not begin and end at the same time; leave them out instead");
        }
        if self.snoozed_until.is_some_and(|until| !is_sane(until)) {
            errors.add("snoozed_until", TIME_LIMIT);
        }
        errors.into_result(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    const ACTION: ActionId = ActionId::from_uuid(Uuid::from_u128(5));

    #[test]
    fn an_action_overrides_the_person_and_the_person_the_default() {
        let preferences: Preferences = serde_json::from_value(json!({
            "kinds": {"succeeded": "at_once", "failed": "digest"},
            "actions": {ACTION.to_string(): {"failed": "off"}},
        }))
        .unwrap();
        for (kind, action, expected) in [
            (NoticeKind::NeedsAnswer, None, Delivery::AtOnce),
            (NoticeKind::NothingNew, None, Delivery::Off),
            (NoticeKind::Succeeded, None, Delivery::AtOnce),
            (NoticeKind::Succeeded, Some(ACTION), Delivery::AtOnce),
            (NoticeKind::Failed, None, Delivery::Digest),
            (NoticeKind::Failed, Some(ACTION), Delivery::Off),
        ] {
            assert_eq!(preferences.delivery(kind, action), expected, "{kind} {action:?}");
        }
        let json = serde_json::to_value(&preferences).unwrap();
        assert_eq!(serde_json::from_value::<Preferences>(json).unwrap(), preferences);
        for kind in NoticeKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
    }

    #[test]
    fn an_action_is_told_at_its_own_channels_while_one_of_them_is_on() {
        let [mail, slack, chat] = [1, 2, 3].map(|n| ChannelId::from_uuid(Uuid::from_u128(n)));
        let mut preferences =
            Preferences { channels: BTreeMap::from([(ACTION, vec![slack, chat])]), ..Preferences::default() };
        let told = |preferences: &Preferences, on: &[ChannelId], action| -> Vec<ChannelId> {
            preferences.told(on, |one| *one, action).into_iter().copied().collect()
        };
        assert_eq!(told(&preferences, &[mail, slack, chat], Some(ACTION)), [slack, chat]);
        assert_eq!(told(&preferences, &[mail, slack], Some(ACTION)), [slack]);
        // Nothing is lost because a channel is off or gone.
        assert_eq!(told(&preferences, &[mail], Some(ACTION)), [mail]);
        assert_eq!(told(&preferences, &[], Some(ACTION)), []);
        let other = ActionId::from_uuid(Uuid::from_u128(6));
        for action in [None, Some(other)] {
            assert_eq!(told(&preferences, &[mail, slack, chat], action), [mail, slack, chat]);
        }
        preferences.actions =
            BTreeMap::from([(ACTION, BTreeMap::from([(NoticeKind::Failed, Delivery::Off)]))]);
        preferences.forget(|_| true, |channel| channel == chat);
        assert_eq!(preferences.channels[&ACTION], [chat]);
        preferences.forget(|_| true, |_| false);
        assert!(preferences.channels.is_empty() && !preferences.actions.is_empty());
        preferences.forget(|_| false, |_| true);
        assert_eq!(preferences, Preferences::default());
    }

    #[test]
    fn refusals_name_the_field_and_its_limit() {
        let read = |value| serde_json::from_value::<Preferences>(value).map_err(|error| error.to_string());
        let same = read(json!({"quiet_hours": {"from": "07:00", "to": "07:00"}})).unwrap();
        let expected = "quiet_hours: must not begin and end at the same time; leave them out instead";
        assert_eq!(same.validate().unwrap_err().to_string(), expected);
        let late = read(json!({"snoozed_until": "9999-01-01T00:00:00Z"})).unwrap();
        assert_eq!(
            late.validate().unwrap_err().to_string(),
            "snoozed_until: must be between the years 1970 and 9000"
        );
        let rules = BTreeMap::from([(NoticeKind::Failed, Delivery::Off)]);
        let many = |count: u128| Preferences {
            actions: (0..count).map(|n| (ActionId::from_uuid(Uuid::from_u128(n)), rules.clone())).collect(),
            ..Preferences::default()
        };
        assert_eq!(many(200).validate(), Ok(()));
        assert_eq!(
            many(201).validate().unwrap_err().to_string(),
            "actions: must have at most 200 actions, has 201"
        );
        for count in [0, 11] {
            let chosen = vec![ChannelId::from_uuid(Uuid::nil()); count];
            let places =
                Preferences { channels: BTreeMap::from([(ACTION, chosen)]), ..Preferences::default() };
            assert_eq!(
                places.validate().unwrap_err().to_string(),
                format!("channels.{ACTION}: must have 1 to 10 channels, has {count}")
            );
        }
        for wrong in ["8:00", "24:00", "08:60", "0800", "+8:00", "08:00:00", "", "٠٨:٠٠"] {
            let message = read(json!({"digest_at": wrong})).unwrap_err();
            assert!(message.starts_with("must be a time of day such as 08:00"), "{wrong}: {message}");
        }
        assert!(read(json!({"kinds": {"failed": "sometimes"}})).is_err());
    }

    #[test]
    fn a_cause_is_a_code_and_never_a_text() {
        for code in ["overloaded", "stale:memory_daily", "a.b-c_1"] {
            assert_eq!(Cause::new(code).as_str(), code);
        }
        for text in ["", "No answer at 09:00", "Überlast", "a/b", "a\nb", &"a".repeat(101)] {
            assert_eq!(Cause::new(text).as_str(), "other", "{text}");
        }
        assert_eq!(serde_json::from_str::<Cause>("\"a b\"").unwrap().as_str(), "other");
        let key =
            NoticeKey { kind: NoticeKind::Failed, action_id: Some(ACTION), cause: Cause::new("timeout") };
        assert_eq!(key.to_string(), format!("failed/{ACTION}/timeout"));
        assert_eq!(NoticeKey { action_id: None, ..key }.to_string(), "failed/-/timeout");
    }
}
