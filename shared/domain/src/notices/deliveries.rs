//! One message to one channel: what was sent, how often it was tried, and what came of it.

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::channels::{Answer, ChannelKind, Next, after};
use super::digest::{Digest, DigestItem, digest};
use super::plan::Notice;
use super::render::Message;
use super::{LeadsTo, NoticeKind};
use crate::ids::{ChannelId, DeliveryId, NoticeId, RunId};
use crate::text::quoting::short_line;

/// How many days a delivery is kept after it was created.
pub const KEPT_DAYS: i64 = 30;

/// How long one try may take, from the write that begins it to the write that ends it. If its process dies, the next try begins then.
pub const LONGEST_TRY: SignedDuration = SignedDuration::from_secs(60);

/// How much later a message is sent if its owner's others keep all executors busy that may send them: as long as a receiver may hang.
const PUT_OFF: SignedDuration = SignedDuration::from_secs(15);

/// The longest error that is kept, in bytes.
const MAX_ERROR: usize = 300;

/// What is said in a message, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum Said {
    Notice {
        notice: Notice,
    },
    Digest {
        date: Date,
        at: Timestamp,
        items: Vec<DigestItem>,
    },
    /// The code that confirms an e-mail address. The code itself is with the channel, encrypted.
    Code,
}

impl Said {
    /// The runs whose results the message tells.
    #[must_use]
    pub fn results(&self) -> Vec<RunId> {
        let of = |kind: NoticeKind, leads_to: LeadsTo| match leads_to {
            LeadsTo::Run { run_id } if kind == NoticeKind::Succeeded => Some(run_id),
            _ => None,
        };
        match self {
            Self::Notice { notice } if notice.key.kind != NoticeKind::Succeeded => Vec::new(),
            Self::Notice { notice } => notice.runs.clone(),
            Self::Digest { items, .. } => {
                items.iter().filter_map(|item| of(item.key.kind, item.about.leads_to)).collect()
            }
            Self::Code => Vec::new(),
        }
    }

    /// Renders it. A code is rendered without its digits.
    pub fn render<T>(&self, render: impl FnOnce(Message<'_>) -> T) -> T {
        match self {
            Self::Notice { notice } => render(Message::Notice(notice)),
            Self::Digest { date, at, items } => {
                let digest: Digest = digest(items.clone());
                render(Message::Digest { date: *date, at: *at, digest: &digest })
            }
            Self::Code => render(Message::Code { code: None }),
        }
    }
}

/// How far a delivery is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// It is tried, or tried again later.
    Waiting,
    /// The channel has accepted it.
    Delivered,
    /// No try has succeeded, and none follows. A person may try it again.
    Undelivered,
}

/// A message to a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryRecord {
    pub delivery_id: DeliveryId,
    /// The id that the receiver sees. It is the same in every try and in every channel.
    pub message_id: NoticeId,
    pub channel_id: ChannelId,
    pub kind: ChannelKind,
    /// Where it goes, without what is secret.
    pub target: String,
    pub said: Said,
    pub state: DeliveryState,
    /// How many tries have begun.
    pub tries: u32,
    /// When the next try begins. None if none follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Timestamp>,
    /// Why the newest try failed, on one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}

impl DeliveryRecord {
    /// A delivery that is due now.
    #[must_use]
    pub fn new(
        message_id: NoticeId,
        said: Said,
        (channel_id, kind, target): (ChannelId, ChannelKind, &str),
        now: Timestamp,
    ) -> Self {
        Self {
            delivery_id: DeliveryId::of(message_id, channel_id),
            message_id,
            channel_id,
            kind,
            target: target.to_owned(),
            said,
            state: DeliveryState::Waiting,
            tries: 0,
            next_at: Some(now),
            error: None,
            created_at: now,
            ended_at: None,
        }
    }

    /// The record while a try is under way. None if it is not due.
    #[must_use]
    pub fn begin(&self, now: Timestamp) -> Option<Self> {
        let is_due = self.state == DeliveryState::Waiting && self.next_at.is_some_and(|at| at <= now);
        let next_at = now.checked_add(LONGEST_TRY).ok();
        is_due.then(|| Self { tries: self.tries.saturating_add(1), next_at, ..self.clone() })
    }

    /// The record of a delivery that no executor may send now.
    #[must_use]
    pub fn put_off(&self, now: Timestamp) -> Self {
        Self { next_at: now.checked_add(PUT_OFF).ok(), ..self.clone() }
    }

    /// The record after a try, and what follows for the channel. `why`: what went wrong, for a person.
    #[must_use]
    pub fn end(&self, answer: Answer, why: &str, now: Timestamp) -> (Self, Next) {
        let tries = usize::try_from(self.tries).unwrap_or(usize::MAX);
        let next = after(self.kind, tries, answer, now);
        let error = Some(short_line(why, MAX_ERROR));
        let record = match next {
            Next::Done => Self {
                state: DeliveryState::Delivered,
                next_at: None,
                error: None,
                ended_at: Some(now),
                ..self.clone()
            },
            Next::Again(at) => Self { next_at: Some(at), error, ..self.clone() },
            Next::Disable | Next::Suspend | Next::GiveUp => Self {
                state: DeliveryState::Undelivered,
                next_at: None,
                error,
                ended_at: Some(now),
                ..self.clone()
            },
        };
        (record, next)
    }

    /// It was not delivered: its channel is gone or switched off, or the message came back after the channel had accepted it.
    #[must_use]
    pub fn dropped(&self, why: &str, now: Timestamp) -> Self {
        Self {
            state: DeliveryState::Undelivered,
            next_at: None,
            error: Some(short_line(why, MAX_ERROR)),
            ended_at: Some(now),
            ..self.clone()
        }
    }

    /// It is tried once more now, with all retries. None if it is not undelivered.
    #[must_use]
    pub fn again(&self, now: Timestamp) -> Option<Self> {
        (self.state == DeliveryState::Undelivered).then(|| Self {
            state: DeliveryState::Waiting,
            tries: 0,
            next_at: Some(now),
            error: None,
            ended_at: None,
            ..self.clone()
        })
    }

    /// From when on the record may be deleted.
    #[must_use]
    pub fn kept_until(&self) -> Timestamp {
        let kept = SignedDuration::from_hours(24 * KEPT_DAYS);
        self.created_at.saturating_add(kept).unwrap_or(Timestamp::MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::super::channels::RETRIES;
    use super::super::{About, Cause, NoticeKey};
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_795_251_600 + seconds).unwrap()
    }

    fn delivery() -> DeliveryRecord {
        let key = NoticeKey { kind: NoticeKind::Failed, action_id: None, cause: Cause::new("timeout") };
        let notice = Notice {
            notice_id: NoticeId::of("a", at(0)),
            key,
            about: About::new("Report", "no answer", LeadsTo::Watch),
            count: 1,
            since: at(0),
            last_at: at(0),
            is_over: false,
            at: at(0),
            runs: Vec::new(),
        };
        let channel = ChannelId::from_uuid(Uuid::from_u128(5));
        let to = (channel, ChannelKind::Webhook, "https://example.com/…");
        DeliveryRecord::new(notice.notice_id, Said::Notice { notice }, to, at(0))
    }

    const FAILED: Answer = Answer::Status { code: 500, retry_after: None };

    #[test]
    fn a_delivery_is_tried_ten_times_and_then_shown_as_undelivered() {
        let (mut delivery, mut now) = (delivery(), at(0));
        for n in 1..=RETRIES.len() {
            assert_eq!(delivery.begin(now - SignedDuration::from_millis(1)), None, "try {n}");
            let begun = delivery.begin(now).unwrap();
            assert_eq!(usize::try_from(begun.tries).unwrap(), n);
            // While the try is under way, no other one begins.
            assert_eq!(begun.begin(now), None);
            (delivery, _) = begun.end(FAILED, "500\nno", now);
            assert_eq!(delivery.error.as_deref(), Some("500 no"));
            now = delivery.next_at.unwrap_or(now);
        }
        assert_eq!((delivery.state, delivery.next_at), (DeliveryState::Undelivered, None));
        assert_eq!(delivery.begin(at(1 << 30)), None);
        let again = delivery.again(now).unwrap();
        let (done, next) =
            again.begin(now).unwrap().end(Answer::Status { code: 204, retry_after: None }, "", now);
        assert_eq!((done.state, done.error, next), (DeliveryState::Delivered, None, Next::Done));
        assert_eq!(done.message_id, delivery.message_id);
    }

    #[test]
    fn a_try_whose_process_dies_is_followed_by_another() {
        let begun = delivery().begin(at(0)).unwrap();
        assert_eq!(begun.begin(at(59)), None);
        assert_eq!(begun.begin(at(60)).unwrap().tries, 2);
    }

    proptest! {
        /// Whatever the answers are, a delivery comes to an end, within its tries and four days.
        #[test]
        fn every_delivery_ends(
            answers in proptest::collection::vec((0u16..600, proptest::option::of(0i64..1_000_000)), 12),
        ) {
            let (mut delivery, mut now) = (delivery(), at(0));
            for (code, wait) in answers {
                let Some(begun) = delivery.begin(now) else { break };
                let answer = match code {
                    0..100 => Answer::None,
                    code => Answer::Status { code, retry_after: wait.map(SignedDuration::from_secs) },
                };
                (delivery, _) = begun.end(answer, "x", now);
                now = delivery.next_at.unwrap_or(now);
            }
            prop_assert!(delivery.state != DeliveryState::Waiting);
            prop_assert!(delivery.tries <= 10);
            prop_assert!(now.duration_since(at(0)) <= SignedDuration::from_hours(10 * 24));
        }
    }
}
