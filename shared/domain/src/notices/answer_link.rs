//! The link in a message with which its reader answers: what it is for, through which channel it was sent, and how long it works.
//!
//! A link alone answers nothing. It opens a page that shows the question as it is then, and the page has buttons.

use std::fmt;
use std::str::FromStr;

use jiff::{SignedDuration, Timestamp};

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

/// A link, before it is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerLink {
    pub channel: ChannelId,
    pub until: Timestamp,
    pub to: AnswerTo,
}

impl AnswerLink {
    /// The link of a notice that asks something. None for other notices, and for channels that several people may read: whoever has the
    /// link can answer.
    #[must_use]
    pub fn of(notice: &Notice, channel: ChannelId, to: &Channel, now: Timestamp) -> Option<Self> {
        // Proposals are read and accepted in the console.
        let is_of_proposals = matches!(Waiting::of(&notice.key), Some(Waiting::Proposals(_)));
        let asks = notice.key.kind == NoticeKind::NeedsAnswer && !is_of_proposals;
        if !asks || notice.is_over || !is_private(to) {
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
        Some(Self { channel, until: now.saturating_add(LIFETIME).unwrap_or(Timestamp::MAX), to })
    }
}

/// Whether one person reads a channel: an e-mail address, whose reader has confirmed it, and a chat of a bot with one person.
fn is_private(to: &Channel) -> bool {
    match to {
        Channel::Email { .. } | Channel::Smtp(_) => true,
        // The ids of groups and channels are negative, or names with @.
        Channel::Telegram { chat_id, .. } => chat_id.bytes().all(|byte| byte.is_ascii_digit()),
        _ => false,
    }
}

/// `chn_…/1795251600/run_…`: the channel, the end in seconds, and what is answered.
impl fmt::Display for AnswerLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/", self.channel, self.until.as_second())?;
        match self.to {
            AnswerTo::Run(run) => write!(f, "{run}"),
            AnswerTo::Action(action) => write!(f, "{action}"),
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
        let [channel, until, to] = text.split('/').collect::<Vec<_>>()[..] else {
            return Err(InvalidAnswerLink);
        };
        let until = until.parse().ok().and_then(|second| Timestamp::from_second(second).ok());
        let run = to.parse().ok().map(AnswerTo::Run);
        let to = run.or_else(|| to.parse().ok().map(AnswerTo::Action));
        match (channel.parse(), until, to) {
            (Ok(channel), Some(until), Some(to)) => Ok(Self { channel, until, to }),
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
        let expected =
            AnswerLink { channel, until: Timestamp::UNIX_EPOCH + LIFETIME, to: AnswerTo::Run(run) };
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
        for link in [expected, AnswerLink { to: AnswerTo::Action(action), ..expected }] {
            assert_eq!(link.to_string().parse(), Ok(link));
        }
        for wrong in ["", "a/b/c", "x", "chn_x/1/run_x", &format!("{expected}/1")] {
            assert_eq!(wrong.parse::<AnswerLink>(), Err(InvalidAnswerLink), "{wrong}");
        }
    }
}
