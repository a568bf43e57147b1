//! What is told, through the other channels, of a channel that the platform has switched off.

use super::plan::{Event, Happening};
use super::{About, Cause, LeadsTo, NoticeKey, NoticeKind};
use crate::ids::ChannelId;

/// The event of a channel that was switched off (`why`), or that its person has switched on again (None). `target` is where it goes,
/// without what is secret.
#[must_use]
pub fn of_channel(id: ChannelId, target: &str, why: Option<&str>) -> Event {
    let key = NoticeKey {
        kind: NoticeKind::Watchdog,
        action_id: None,
        cause: Cause::new(&format!("channel:{id}")),
    };
    let (happening, title, reason) = match why {
        Some(why) => (Happening::Happened, format!("no notices go to {target}"), why),
        None => (Happening::Over, format!("the channel to {target}"), "Notices go there again."),
    };
    Event::new(key, happening, About::new(&title, reason, LeadsTo::Notices))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn its_end_ends_the_same_row() {
        let id = ChannelId::from_uuid(Uuid::from_u128(5));
        let off = of_channel(id, "me@example.com", Some("the e-mail came back"));
        assert_eq!(off.key.cause.as_str(), format!("channel:{id}"));
        assert_eq!(off.about.title, "no notices go to me@example.com");
        assert_eq!((off.happening, off.about.reason.as_str()), (Happening::Happened, "the e-mail came back"));
        let on = of_channel(id, "me@example.com", None);
        assert_eq!((on.key, on.happening), (off.key, Happening::Over));
    }
}
