//! The link in a message with which its reader answers, pauses or corrects: what it is for, through which channel it was sent, and how
//! long it works.
//!
//! A link alone does nothing. It opens a page that shows the question as it is then, and the page has buttons. In a chat with a bot, a reply
//! to the message does the same, because the message has the link.

use std::fmt;
use std::str::FromStr;

use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};

use super::channels::Channel;
use super::plan::Notice;
use super::waits::Waiting;
use super::{LeadsTo, NoticeKind};
use crate::ids::{ActionId, ChannelId, RunId};

/// How long a link works.
pub const LIFETIME: SignedDuration = SignedDuration::from_hours(7 * 24);

/// What a link is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerTo {
    /// The questions of a run, or of the turn of a conversation.
    Run(RunId),
    /// The approval of an action.
    Action(ActionId),
}

/// What a message has shown of the questions that it asks: the beginning of a hash. A reply answers these and no others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown(u64);

impl Shown {
    /// `questions`: each in words, with what an answer to it binds.
    #[must_use]
    pub fn of(questions: &str) -> Self {
        let hash: [u8; 32] = Sha256::digest(questions).into();
        Self(hash.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }
}

/// A link, before it is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerLink {
    pub channel: ChannelId,
    pub until: Timestamp,
    pub to: AnswerTo,
    /// None if the message asks nothing, or has not shown all that an answer must know.
    pub shown: Option<Shown>,
}

impl AnswerLink {
    /// The link of a notice that asks something, or that is about an action. None for other notices, and for channels that several people
    /// may read: whoever has the link can answer.
    #[must_use]
    pub fn of(notice: &Notice, channel: ChannelId, to: &Channel, now: Timestamp) -> Option<Self> {
        // Proposals are read and accepted in the console.
        let is_of_proposals = matches!(Waiting::of(&notice.key), Some(Waiting::Proposals(_)));
        let says = asks(notice) || notice.key.action_id.is_some();
        if !says || is_of_proposals || !is_private(to) {
            return None;
        }
        let to = match notice.about.leads_to {
            LeadsTo::Run { run_id } => AnswerTo::Run(run_id),
            LeadsTo::Action { action_id } => AnswerTo::Action(action_id),
            LeadsTo::Agent { .. }
            | LeadsTo::Watched { .. }
            | LeadsTo::Docs { .. }
            | LeadsTo::Watch
            | LeadsTo::Usage
            | LeadsTo::Notices => return None,
        };
        let until = now.saturating_add(LIFETIME).unwrap_or(Timestamp::MAX);
        Some(Self { channel, until, to, shown: None })
    }
}

/// Whether a notice asks something.
#[must_use]
pub fn asks(notice: &Notice) -> bool {
    notice.key.kind == NoticeKind::NeedsAnswer && !notice.is_over
}

/// Whether one person reads a channel: an e-mail address, whose reader has confirmed it, and a chat of a bot with one person.
fn is_private(to: &Channel) -> bool {
    match to {
        Channel::Email { .. } | Channel::Smtp(_) => true,
        Channel::Telegram { chat_id, .. } => is_chat_with_one_person(chat_id),
        _ => false,
    }
}

/// Whether the bot of Telegram speaks with one person there. The ids of groups and channels are negative, or names with @.
#[must_use]
pub fn is_chat_with_one_person(chat_id: &str) -> bool {
    chat_id.bytes().all(|byte| byte.is_ascii_digit())
}

/// `chn_…/1795251600/run_…/5f3e…`: the channel, the end in seconds, what is answered, and what was shown, if it was.
impl fmt::Display for AnswerLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/", self.channel, self.until.as_second())?;
        match self.to {
            AnswerTo::Run(run) => write!(f, "{run}")?,
            AnswerTo::Action(action) => write!(f, "{action}")?,
        }
        match self.shown {
            Some(Shown(hash)) => write!(f, "/{hash:016x}"),
            None => Ok(()),
        }
    }
}

/// The text is no link of this platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is no link of this platform")]
pub struct InvalidAnswerLink;

impl FromStr for AnswerLink {
    type Err = InvalidAnswerLink;

    fn from_str(text: &str) -> Result<Self, InvalidAnswerLink> {
        let (channel, until, to, shown) = match text.split('/').collect::<Vec<_>>()[..] {
            [channel, until, to] => (channel, until, to, None),
            [channel, until, to, shown] if shown.len() == 16 => {
                let hash = u64::from_str_radix(shown, 16).map_err(|_| InvalidAnswerLink)?;
                (channel, until, to, Some(Shown(hash)))
            }
            _ => return Err(InvalidAnswerLink),
        };
        let until = until.parse().ok().and_then(|second| Timestamp::from_second(second).ok());
        let run = to.parse().ok().map(AnswerTo::Run);
        let to = run.or_else(|| to.parse().ok().map(AnswerTo::Action));
        match (channel.parse(), until, to) {
            (Ok(channel), Some(until), Some(to)) => Ok(Self { channel, until, to, shown }),
            _ => Err(InvalidAnswerLink),
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::ids::NoticeId;
    use crate::notices::{About, Cause, NoticeKey};

    fn notice(kind: NoticeKind, leads_to: LeadsTo, is_over: bool) -> Notice {
        let at = Timestamp::UNIX_EPOCH;
        Notice {
            notice_id: NoticeId::from_uuid(Uuid::nil()),
            key: NoticeKey { kind, action_id: None, cause: Cause::new("x") },
            about: About::new("t", "r", leads_to),
            count: 1,
            since: at,
            last_at: at,
            is_over,
            at,
            runs: Vec::new(),
        }
    }

    #[test]
    fn only_questions_to_one_person_have_a_link() {
        let channel = ChannelId::from_uuid(Uuid::from_u128(1));
        let run = RunId::from_uuid(Uuid::from_u128(2));
        let action = ActionId::from_uuid(Uuid::from_u128(3));
        let mail = Channel::Email { to: "me@example.com".into() };
        let telegram = |chat: &str| Channel::Telegram { token: "1:a".into(), chat_id: chat.into() };
        let link = |kind, leads_to, is_over, to: &Channel| {
            AnswerLink::of(&notice(kind, leads_to, is_over), channel, to, Timestamp::UNIX_EPOCH)
        };
        let asks = |to: &Channel| link(NoticeKind::NeedsAnswer, LeadsTo::Run { run_id: run }, false, to);
        let until = Timestamp::UNIX_EPOCH + LIFETIME;
        let expected = AnswerLink { channel, until, to: AnswerTo::Run(run), shown: None };
        assert_eq!((asks(&mail), asks(&telegram("4711"))), (Some(expected), Some(expected)));
        for shared in [
            telegram("-100123"),
            telegram("@news"),
            Channel::Slack { url: "https://hooks.slack.com/services/a/b/c".into() },
            Channel::Webhook { url: "https://example.com".into() },
        ] {
            assert_eq!(asks(&shared), None, "{shared:?}");
        }
        let of_action = LeadsTo::Action { action_id: action };
        assert_eq!(
            link(NoticeKind::NeedsAnswer, of_action, false, &mail).map(|link| link.to),
            Some(AnswerTo::Action(action))
        );
        assert_eq!(link(NoticeKind::NeedsAnswer, of_action, true, &mail), None);
        assert_eq!(link(NoticeKind::Failed, of_action, false, &mail), None);
        let mut proposed = notice(NoticeKind::NeedsAnswer, LeadsTo::Run { run_id: run }, false);
        proposed.key.cause = Cause::new(&format!("proposals:{run}"));
        assert_eq!(AnswerLink::of(&proposed, channel, &mail, Timestamp::UNIX_EPOCH), None);
        assert_eq!(link(NoticeKind::NeedsAnswer, LeadsTo::Watch, false, &mail), None);
        // A notice about an action can be answered by a pause or a correction.
        let mut result = notice(NoticeKind::Succeeded, LeadsTo::Run { run_id: run }, false);
        let of = |notice: &Notice, to: &Channel| AnswerLink::of(notice, channel, to, Timestamp::UNIX_EPOCH);
        assert_eq!(of(&result, &mail), None);
        result.key.action_id = Some(action);
        assert_eq!((of(&result, &mail), of(&result, &telegram("@news"))), (Some(expected), None));
        proposed.key.action_id = Some(action);
        assert_eq!(of(&proposed, &mail), None);
        let shown = Some(Shown::of("Which week?"));
        for link in [
            expected,
            AnswerLink { to: AnswerTo::Action(action), ..expected },
            AnswerLink { shown, ..expected },
        ] {
            assert_eq!(link.to_string().parse(), Ok(link));
        }
        assert_ne!(shown, Some(Shown::of("Which weeks?")));
        for wrong in [
            "",
            "a/b/c",
            "x",
            "chn_x/1/run_x",
            &format!("{expected}/1"),
            &format!("{expected}/000000000000000g"),
        ] {
            assert_eq!(wrong.parse::<AnswerLink>(), Err(InvalidAnswerLink), "{wrong}");
        }
    }
}
