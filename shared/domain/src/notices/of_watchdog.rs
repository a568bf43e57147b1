//! What a person is told of what the watchdog says.

use super::plan::{Event, Happening};
use super::{About, Cause, LeadsTo, NoticeKey, NoticeKind};
use crate::background::jobs::JobKind;
use crate::ids::{ActionId, WatchedId};
use crate::text::quoting::short_line;
use crate::watchdog::{Check, Say, capital, was};

/// The longest name in a title, in bytes. What is wrong must have room after it.
const MAX_NAME: usize = 100;

/// The event, or none if the person is told in another way.
///
/// `name`: how the person calls the action or the watched schedule. It may be any text. `seen`: what was wrong at the newest look that
/// has seen something.
#[must_use]
pub fn of_watchdog(say: &Say, name: Option<&str>, seen: &str) -> Option<Event> {
    let (Say::Alert { check, item, .. } | Say::Recovery { check, item, .. }) = say;
    // Of a run that fails, its person is told anyway.
    if *check == Check::ActionFails {
        return None;
    }
    let action_id = item.parse::<ActionId>().ok();
    let leads_to = match (action_id, item.parse::<WatchedId>()) {
        (Some(action_id), _) => LeadsTo::Action { action_id },
        (_, Ok(watched_id)) => LeadsTo::Watched { watched_id },
        _ => LeadsTo::Watch,
    };
    let cause = match action_id {
        Some(_) => check.as_str().to_owned(),
        None => format!("{check}:{item}"),
    };
    let key = NoticeKey { kind: NoticeKind::Watchdog, action_id, cause: Cause::new(&cause) };
    let name = name.map(|name| short_line(name, MAX_NAME));
    Some(match say {
        Say::Alert { what, remedy, .. } => {
            let (title, rest) = title(name.as_deref(), what);
            let reason = format!("{rest} {remedy}");
            Event::new(key, Happening::Happened, About::new(&title, reason.trim(), leads_to))
        }
        Say::Recovery { .. } => {
            let title = name.unwrap_or_else(|| thing(item));
            Event::new(key, Happening::Over, About::new(&title, &was(*check, seen), leads_to))
        }
    })
}

/// "Nightly backup is silent", and what follows it: what is wrong speaks of "it" or of "the action", and the name takes its place.
fn title<'a>(name: Option<&str>, what: &'a str) -> (String, &'a str) {
    let Some(name) = name else { return (what.to_owned(), "") };
    let (first, rest) = what.split_once(". ").unwrap_or((what.trim_end_matches('.'), ""));
    match first.strip_prefix("It ").or_else(|| first.strip_prefix("The action ")) {
        Some(is) => (format!("{name} {is}"), rest),
        None => (format!("{name}: {first}"), rest),
    }
}

/// What a counter without a name of its own is about. The subject of a job follows a colon.
fn thing(item: &str) -> String {
    let kind = item.split(':').next().unwrap_or_default();
    match JobKind::ALL.into_iter().find(|job| job.as_str() == kind) {
        Some(job) => capital(job.words()),
        None if kind == "month" => "The spending of this month".to_owned(),
        None => item.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::watchdog::{ActionFacts, Counter, Observed, judge_action, judge_watched, look};
    use crate::watched::witness::{NewWatched, newest};

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_second(1_795_251_600 + minutes * 60).unwrap()
    }

    /// What a person is told of two looks that see something wrong, and of one that does not.
    fn told(wrong: &Observed, name: &str) -> [String; 2] {
        let (counter, _) = look(Counter::default(), wrong, at(0), Default::default());
        let (counter, alert) = look(counter, wrong, at(120), Default::default());
        let fine = Observed::fine(wrong.check, &wrong.item);
        let (counter, recovery) = look(counter, &fine, at(240), Default::default());
        let seen = &counter.last3[0].text;
        [alert, recovery].map(|say| {
            let event = of_watchdog(&say.unwrap(), Some(name), seen).unwrap();
            format!("{} | {}", event.about.title, event.about.reason)
        })
    }

    #[test]
    fn a_notice_begins_with_the_name() {
        let watched = json!({"name": "Nightly backup", "schedule": {"every": "1h"}, "grace_minutes": 10});
        let watched: NewWatched = serde_json::from_value(watched).unwrap();
        let watched = watched.validate(WatchedId::from_uuid(Uuid::from_u128(7)), at(0)).unwrap();
        let silent = judge_watched(&watched, &newest(&watched, &[], at(100)), None, at(100));
        assert_eq!(
            told(&silent, "Nightly backup"),
            [
                "Nightly backup is silent | No report came within 10 minutes after the due time. Check that the \
                 program runs and that it can reach the platform.",
                "Nightly backup | It was silent.",
            ]
        );
        let facts = ActionFacts {
            action_id: ActionId::from_uuid(Uuid::from_u128(5)),
            enabled: true,
            paused_by_failures: false,
            is_live: false,
            next: Some(at(0)),
            failures: 0,
            code: None,
            same: 0,
        };
        let late = judge_action(facts, at(285)).pop().unwrap();
        assert_eq!(
            told(&late, "Morning report"),
            [
                "Morning report was due 4 hours 45 minutes ago and has not begun | Check that the sweep and the \
                 executors' queue work, or run it by hand.",
                "Morning report | It had not begun in time.",
            ]
        );
        // A name can't push out what is wrong.
        let [alert, _] = told(&late, &"x".repeat(900));
        assert!(alert.contains("has not begun") && alert.len() < 400, "{alert}");
    }

    #[test]
    fn what_has_no_name_is_called_what_it_is() {
        for (item, expected) in [
            ("memory_daily", "The daily synchronisation of memory"),
            ("theme_index:prj_1", "The map of the theme"),
            ("month", "The spending of this month"),
            ("other", "other"),
        ] {
            assert_eq!(thing(item), expected);
        }
        let (title, rest) = title(None, "The account export has failed: a. b.");
        assert_eq!((title.as_str(), rest), ("The account export has failed: a. b.", ""));
    }
}
