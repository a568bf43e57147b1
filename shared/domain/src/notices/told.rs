//! Whether a person was told how a run ended: when, where, and what the receiver answered; or why not.

use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::channels::ChannelKind;
use super::deliveries::{DeliveryRecord, DeliveryState};
use super::plan::{Decision, Silence};
use crate::actions::Telling;
use crate::ids::{ChannelId, DeliveryId};

/// How a run is told after this decision. None if the decision is not about telling somebody: something is over that nobody was told of.
#[must_use]
pub const fn telling(decision: &Decision) -> Option<Telling> {
    match decision {
        Decision::SendNow(_) => Some(Telling::Sent),
        Decision::SendAt(at) => Some(Telling::Later { at: *at }),
        Decision::Digest(date) => Some(Telling::Digest { date: *date }),
        Decision::Nothing(Silence::Off) => Some(Telling::Off),
        Decision::Nothing(_) => None,
    }
}

/// How far telling a person of a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToldState {
    /// It has just ended.
    NotYet,
    /// Nobody was told: there was no channel.
    NoChannel,
    /// Nobody was told: the person has switched notices of this kind off.
    Off,
    /// It is a line of a digest.
    Digest,
    /// It is told later: after quiet hours, or together with others.
    Later,
    /// Messages were made. `deliveries` says what became of them.
    Sent,
}

/// A message to a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ToldBy {
    pub delivery_id: DeliveryId,
    pub channel_id: ChannelId,
    pub kind: ChannelKind,
    /// Where it went, without what is secret.
    pub target: String,
    pub state: DeliveryState,
    /// How many tries have begun.
    pub tries: u32,
    /// Why the newest try failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When the receiver accepted it, or the last try failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}

impl From<DeliveryRecord> for ToldBy {
    fn from(delivery: DeliveryRecord) -> Self {
        let DeliveryRecord { delivery_id, channel_id, kind, target, state, tries, error, ended_at, .. } =
            delivery;
        Self { delivery_id, channel_id, kind, target, state, tries, error, ended_at }
    }
}

/// Whether and how a person was told of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Told {
    pub state: ToldState,
    /// In words.
    #[schema(example = "Told by Telegram (chat 4711).")]
    pub sentence: String,
    /// Of a digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<Date>,
    /// From when on it is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// Kept for 30 days.
    pub deliveries: Vec<ToldBy>,
}

impl Told {
    /// `telling`: None while nothing is decided. `deliveries`: those that exist.
    #[must_use]
    pub fn new(telling: Option<Telling>, deliveries: Vec<ToldBy>) -> Self {
        let (mut state, mut date, mut at) = (ToldState::NotYet, None, None);
        match telling {
            None => {}
            Some(Telling::NoChannel) => state = ToldState::NoChannel,
            Some(Telling::Off) => state = ToldState::Off,
            Some(Telling::Digest { date: of }) => (state, date) = (ToldState::Digest, Some(of)),
            Some(Telling::Later { .. }) if !deliveries.is_empty() => state = ToldState::Sent,
            Some(Telling::Later { at: from }) => (state, at) = (ToldState::Later, Some(from)),
            Some(Telling::Sent) => state = ToldState::Sent,
        }
        let sentence = match (state, date) {
            (ToldState::NotYet, _) => "Nobody is told of it yet.".to_owned(),
            (ToldState::NoChannel, _) => "Nobody was told: there was no channel to tell it on.".to_owned(),
            (ToldState::Off, _) => "Nobody was told: notices of this kind are switched off.".to_owned(),
            (ToldState::Later, _) => {
                "It is told later: after quiet hours, or together with others.".to_owned()
            }
            (ToldState::Digest, Some(date)) if deliveries.is_empty() => {
                format!("It is a line of the digest of {date}.")
            }
            (ToldState::Digest, Some(date)) => format!("In the digest of {date}: {}", words(&deliveries)),
            (ToldState::Digest | ToldState::Sent, _) if deliveries.is_empty() => {
                "It was told. What became of the messages is no longer stored.".to_owned()
            }
            (ToldState::Digest | ToldState::Sent, _) => words(&deliveries),
        };
        Self { state, sentence, date, at, deliveries }
    }
}

/// "Told by Slack (hooks.slack.com). Not told by webhook (example.com): the receiver answered 500."
fn words(deliveries: &[ToldBy]) -> String {
    let of = |by: &ToldBy| {
        let place = format!("{} ({})", by.kind.name(), by.target);
        match (by.state, &by.error) {
            (DeliveryState::Delivered, _) => format!("Told by {place}."),
            (DeliveryState::Undelivered, Some(error)) => format!("Not told by {place}: {error}."),
            (DeliveryState::Undelivered, None) => format!("Not told by {place}."),
            (DeliveryState::Waiting, Some(error)) => {
                format!("On its way by {place}; the last try failed: {error}.")
            }
            (DeliveryState::Waiting, None) => format!("On its way by {place}."),
        }
    };
    deliveries.iter().map(of).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn by(state: DeliveryState, error: Option<&str>) -> ToldBy {
        ToldBy {
            delivery_id: DeliveryId::from_uuid(Uuid::from_u128(1)),
            channel_id: ChannelId::from_uuid(Uuid::from_u128(2)),
            kind: ChannelKind::Slack,
            target: "hooks.slack.com".to_owned(),
            state,
            tries: 1,
            error: error.map(str::to_owned),
            ended_at: None,
        }
    }

    #[test]
    fn a_sentence_says_where_or_why_not() {
        let date = jiff::civil::date(2026, 11, 30);
        let at = Timestamp::from_second(1_795_251_600).unwrap();
        let failed = by(DeliveryState::Undelivered, Some("the receiver answered 500"));
        let delivered = || by(DeliveryState::Delivered, None);
        for (telling, deliveries, state, sentence) in [
            (None, vec![], ToldState::NotYet, "Nobody is told of it yet."),
            (
                Some(Telling::NoChannel),
                vec![],
                ToldState::NoChannel,
                "Nobody was told: there was no channel to tell it on.",
            ),
            (
                Some(Telling::Digest { date }),
                vec![],
                ToldState::Digest,
                "It is a line of the digest of 2026-11-30.",
            ),
            (
                Some(Telling::Digest { date }),
                vec![delivered()],
                ToldState::Digest,
                "In the digest of 2026-11-30: Told by Slack (hooks.slack.com).",
            ),
            (
                Some(Telling::Later { at }),
                vec![delivered()],
                ToldState::Sent,
                "Told by Slack (hooks.slack.com).",
            ),
            (
                Some(Telling::Sent),
                vec![delivered(), failed],
                ToldState::Sent,
                "Told by Slack (hooks.slack.com). Not told by Slack (hooks.slack.com): the receiver answered 500.",
            ),
        ] {
            let told = Told::new(telling, deliveries);
            assert_eq!((told.state, told.sentence.as_str()), (state, sentence));
        }
        assert_eq!(Told::new(Some(Telling::Later { at }), vec![]).at, Some(at));
    }
}
