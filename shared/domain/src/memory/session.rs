//! What was said in a conversation, and whether there is something to learn from it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use super::Source;
use crate::ids::{BlockId, Owner};
use crate::validate::FieldErrors;

/// The longest id of a message, in bytes.
pub const MAX_MESSAGE_ID: usize = 128;
/// The longest text of a message, in characters.
pub const MAX_MESSAGE: usize = 32_000;
/// The longest name of a speaker and the longest date in words, in characters.
pub const MAX_NAME: usize = 80;
/// The most messages of one request.
pub const MAX_MESSAGES: usize = 500;
/// The fewest messages of the person in a conversation that is worth learning from.
pub const MIN_PERSON_MESSAGES: usize = 2;

/// How many characters of the person's last message are part of a fingerprint.
const EXCERPT: usize = 120;
/// The errors of this many messages are reported; more would only repeat them.
const MAX_WRONG: usize = 20;

/// Who said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[schema(as = MessageAuthor)]
pub enum SaidBy {
    /// The person.
    #[serde(rename = "user")]
    Person,
    /// The model.
    #[serde(rename = "assistant")]
    Agent,
    /// The result of a call.
    #[serde(rename = "tool")]
    Tool,
    /// The program that runs the conversation.
    #[serde(rename = "system")]
    System,
}

impl SaidBy {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Person => "user",
            Self::Agent => "assistant",
            Self::Tool => "tool",
            Self::System => "system",
        }
    }
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = MemoryMessage, example = json!({
    "id": "m-17", "role": "user", "text": "My daughter starts school on 3 August.", "at": "2026-06-14T18:02:11Z",
}))]
pub struct Said {
    /// Its id in its conversation: 1 to 128 visible ASCII characters, without blanks. A message is stored once.
    #[schema(min_length = 1, max_length = 128)]
    pub id: String,
    /// The message that it answers, if the conversation is a tree. Of a tree, only the branch with the newest end is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 128)]
    pub parent_id: Option<String>,
    pub role: SaidBy,
    /// The name of the speaker, at most 80 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 80)]
    pub name: Option<String>,
    /// At most 32,000 characters.
    #[schema(max_length = 32_000)]
    pub text: String,
    /// When it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// When it was said, in words, if `at` is not known. At most 80 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 80, example = "1:56 pm on 8 May, 2023")]
    pub date_text: Option<String>,
}

impl Said {
    /// Checks the limits of a message from outside.
    ///
    /// # Errors
    /// Every invalid field with its limit.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        for (field, id) in [("id", Some(&self.id)), ("parent_id", self.parent_id.as_ref())] {
            let Some(id) = id else { continue };
            if !(1..=MAX_MESSAGE_ID).contains(&id.len()) || !id.bytes().all(|byte| byte.is_ascii_graphic()) {
                errors.add(
                    field,
                    format!("must be 1 to {MAX_MESSAGE_ID} visible ASCII characters without blanks"),
                );
            }
        }
        errors.length("name", self.name.as_deref().unwrap_or_default(), 0, MAX_NAME);
        errors.length("text", &self.text, 0, MAX_MESSAGE);
        if let Some(at) = self.at {
            errors.time("at", at);
        }
        errors.length("date_text", self.date_text.as_deref().unwrap_or_default(), 0, MAX_NAME);
        errors.into_result(())
    }

    /// What the message itself says: its text without what a program has put into it.
    #[must_use]
    pub fn own_words(&self) -> Cow<'_, str> {
        own_words(&self.text)
    }

    /// Whether it is a message of the person with words of its own.
    #[must_use]
    pub fn is_from_person(&self) -> bool {
        self.role == SaidBy::Person && !self.own_words().trim().is_empty()
    }
}

/// Checks the messages of one request.
///
/// # Errors
/// Every invalid field with its limit, for the first messages that have one.
pub fn check_messages(messages: &[Said]) -> Result<(), FieldErrors> {
    let mut errors = FieldErrors::default();
    if messages.is_empty() || messages.len() > MAX_MESSAGES {
        errors.add("messages", format!("must have 1 to {MAX_MESSAGES} items, has {}", messages.len()));
        return Err(errors);
    }
    let (mut ids, mut wrong) = (HashSet::new(), 0);
    for (at, message) in messages.iter().enumerate() {
        let mut found = FieldErrors::default();
        found.nest("", message.check());
        if !ids.insert(message.id.as_str()) {
            found.add("id", "must be a different one for each message");
        }
        if errors.nest(&format!("messages[{at}]"), found.into_result(())).is_none() {
            wrong += 1;
            if wrong == MAX_WRONG {
                break;
            }
        }
    }
    errors.into_result(())
}

/// A conversation, as far as memory needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    pub source: Source,
    /// Empty if it has none.
    pub title: String,
    /// Empty for the person's own.
    pub namespace: String,
    /// A schedule has started it, and not a person.
    pub by_schedule: bool,
    /// In the order in which they were stored.
    pub messages: Vec<Said>,
}

/// The messages that count, oldest first. If none names a parent, they are all messages as they are. Otherwise they are a tree, and
/// only the branch of its newest leaf counts: the person has left the other branches.
///
/// The newest is the one with the latest time, and of equal times the last in the list. A message without a time has the time of the
/// one before it in the list. A parent that does not exist, or that is the message itself, is no parent. If an id occurs again, the
/// last message with it counts. If every message is somebody's parent, the branch begins at the newest message, and ends where it
/// would come to a message for the second time.
#[must_use]
pub fn live_branch(messages: &[Said]) -> Vec<&Said> {
    if messages.iter().all(|message| message.parent_id.is_none()) {
        return messages.iter().collect();
    }
    let by_id: HashMap<&str, usize> =
        messages.iter().enumerate().map(|(at, message)| (message.id.as_str(), at)).collect();
    let parent = |message: &Said| {
        let parent = message.parent_id.as_deref().filter(|parent| *parent != message.id)?;
        by_id.get(parent).copied()
    };
    let parents: HashSet<usize> = by_id.values().filter_map(|at| parent(&messages[*at])).collect();
    let (mut newest, mut time) = ([None; 2], Timestamp::MIN);
    for (at, message) in messages.iter().enumerate() {
        time = message.at.unwrap_or(time);
        if by_id.get(message.id.as_str()) != Some(&at) {
            continue;
        }
        let is_leaf = usize::from(!parents.contains(&at));
        if newest[is_leaf].is_none_or(|(newest, _)| time >= newest) {
            newest[is_leaf] = Some((time, at));
        }
    }
    let mut next = newest[1].or(newest[0]).map(|(_, at)| at);
    let (mut branch, mut seen) = (Vec::new(), HashSet::new());
    while let Some(at) = next.filter(|at| seen.insert(*at)) {
        branch.push(&messages[at]);
        next = parent(&messages[at]);
    }
    branch.reverse();
    branch
}

/// What distinguishes this state of a conversation from the others: the SHA-256, as 64 hexadecimal digits, of the time of the
/// person's last message to the millisecond and the first 120 characters of its own words. If the time is not known, the date in words
/// and the id of the message stand for it. `None` if the person has said nothing.
#[must_use]
pub fn fingerprint(branch: &[&Said]) -> Option<String> {
    let last = branch.iter().rev().find(|message| message.is_from_person())?;
    let time = match last.at {
        Some(at) => at.as_millisecond().to_string(),
        None => format!("{} {}", last.date_text.as_deref().unwrap_or_default(), last.id),
    };
    let words = last.own_words();
    let excerpt: String = words.trim().chars().take(EXCERPT).collect();
    let hash = Sha256::new().chain_update(b"fingerprint\0").chain_update(time).chain_update([0]);
    Some(crate::hex(&hash.chain_update(excerpt).finalize()))
}

/// Why nothing is learned from a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SyncSkip)]
pub enum Skip {
    /// A schedule has started it.
    StartedBySchedule,
    /// Nothing was said in it lately.
    NotActive,
    /// The person has said too little: fewer than two messages.
    TooFewMessages,
    /// The person has said nothing since it was learned.
    Unchanged,
    /// No model has given a usable answer about it, several times.
    Unreadable,
}

/// The fingerprint of a conversation from which there is something to learn. `learned` is the fingerprint of its last block. It must
/// have been active at `since` or later: the newest time of its live branch counts, and a time after `now` counts as `now`. If no message
/// has a time, it counts as active, and the fingerprint says whether it has changed.
///
/// # Errors
/// The first reason why there is nothing to learn.
pub fn worth_learning(
    session: &Session,
    learned: Option<&str>,
    since: Timestamp,
    now: Timestamp,
) -> Result<String, Skip> {
    if session.by_schedule {
        return Err(Skip::StartedBySchedule);
    }
    let branch = live_branch(&session.messages);
    let newest = branch.iter().filter_map(|message| message.at).max();
    if newest.is_some_and(|newest| newest.min(now) < since) {
        return Err(Skip::NotActive);
    }
    let by_person = branch.iter().filter(|message| message.is_from_person()).count();
    let Some(fingerprint) = fingerprint(&branch).filter(|_| by_person >= MIN_PERSON_MESSAGES) else {
        return Err(Skip::TooFewMessages);
    };
    if learned == Some(fingerprint.as_str()) { Err(Skip::Unchanged) } else { Ok(fingerprint) }
}

/// The id of the block for this state of a conversation. It is always the same, so two concurrent synchronisations, or one that is
/// repeated after a crash, write one block.
#[must_use]
pub fn block_id(owner: &Owner, source: &Source, fingerprint: &str) -> BlockId {
    let hash = Sha256::new()
        .chain_update(b"block\0")
        .chain_update(owner.as_str())
        .chain_update([0])
        .chain_update(source.to_string())
        .chain_update([0])
        .chain_update(fingerprint)
        .finalize();
    let mut bytes = [0_u8; 16];
    bytes.copy_from_slice(&hash[..16]);
    BlockId::from_uuid(uuid::Builder::from_custom_bytes(bytes).into_uuid())
}

/// The names of the tags around text that a program has put into a message.
const NOT_OWN: [&str; 2] = [super::recall::TAG, "system-reminder"];

/// A text without what a program has put into it: recalled memory and reminders of the system, between their tags. The tags may be
/// in capital letters and have attributes. A block inside a block of the same name belongs to it. A block that does not end reaches to
/// the end of the text. So what was recalled is never learned again.
#[must_use]
pub fn own_words(text: &str) -> Cow<'_, str> {
    let (mut own, mut from, mut at) = (String::new(), 0, 0);
    let mut inside: Option<(&str, usize)> = None;
    while let Some(found) = text[at..].find('<') {
        let begin = at + found;
        let Some(Tag { name, closes, is_empty, length }) = tag(&text[begin..]) else {
            at = begin + 1;
            continue;
        };
        at = begin + length;
        match &mut inside {
            Some((block, _)) if *block != name => {}
            Some(_) if is_empty => {}
            Some((_, depth)) if !closes => *depth += 1,
            Some((_, depth)) if *depth > 1 => *depth -= 1,
            Some(_) => (inside, from) = (None, at),
            None => {
                own.push_str(&text[from..begin]);
                // What stood before and after the block are not one word.
                own.push('\n');
                from = at;
                if !closes && !is_empty {
                    inside = Some((name, 1));
                }
            }
        }
    }
    match (inside, from) {
        (None, 0) => Cow::Borrowed(text),
        (None, from) => Cow::Owned(own + &text[from..]),
        (Some(_), _) => Cow::Owned(own),
    }
}

/// A tag that begins or ends what a program has put into a message.
struct Tag {
    name: &'static str,
    closes: bool,
    /// It ends itself: `<system-reminder/>`.
    is_empty: bool,
    /// With its brackets, in bytes. A tag that does not end reaches to the end of the text.
    length: usize,
}

/// The tag that a text begins with.
fn tag(text: &str) -> Option<Tag> {
    let rest = text.strip_prefix('<')?.trim_ascii_start();
    let (rest, closes) = match rest.strip_prefix('/') {
        Some(rest) => (rest.trim_ascii_start(), true),
        None => (rest, false),
    };
    let is_at = |name: &&str| {
        let begin = rest.as_bytes().get(..name.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(name.as_bytes()))
    };
    let name = NOT_OWN.into_iter().find(is_at)?;
    let rest = &rest[name.len()..];
    // `<system-reminders>` is something else.
    if rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '-' | '_')) {
        return None;
    }
    let end = rest.find('>');
    let is_empty = end.is_some_and(|end| rest[..end].ends_with('/'));
    let left = end.map_or(0, |end| rest.len() - end - 1);
    Some(Tag { name, closes, is_empty, length: text.len() - left })
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const NOW: &str = "2026-11-26T22:00:00Z";

    fn ts(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn said(id: &str, role: SaidBy, text: &str, at: Option<&str>) -> Said {
        let (id, text, at) = (id.to_owned(), text.to_owned(), at.map(ts));
        Said { id, parent_id: None, role, name: None, text, at, date_text: None }
    }

    /// A message that answers another one, so many minutes after the beginning.
    fn node(id: &str, parent: &str, minute: Option<i64>) -> Said {
        let parent_id = Some(parent.to_owned()).filter(|parent| !parent.is_empty());
        let at = minute.map(|minute| Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minute));
        Said { parent_id, at, ..said(id, SaidBy::Person, id, None) }
    }

    fn ids(messages: &[Said]) -> String {
        live_branch(messages).iter().map(|message| message.id.as_str()).collect()
    }

    #[test]
    fn a_message_from_outside_has_limits() {
        let read = |value: serde_json::Value| serde_json::from_value::<Said>(value);
        let message = read(json!({"id": "m1", "role": "user", "text": "é".repeat(32_000)})).unwrap();
        assert_eq!((message.role, message.check()), (SaidBy::Person, Ok(())));
        assert_eq!(
            serde_json::to_value(said("m", SaidBy::Tool, "t", None)).unwrap(),
            json!({"id": "m", "role": "tool", "text": "t"})
        );
        for role in [SaidBy::Person, SaidBy::Agent, SaidBy::Tool, SaidBy::System] {
            assert_eq!(serde_json::to_value(role).unwrap(), role.as_str());
        }
        assert!(read(json!({"id": "m1", "role": "person", "text": ""})).is_err());
        let wrong = Said {
            id: "a b".into(),
            parent_id: Some(String::new()),
            role: SaidBy::Agent,
            name: Some("n".repeat(81)),
            text: "é".repeat(32_001),
            at: Some(Timestamp::MIN),
            date_text: Some("d".repeat(81)),
        };
        assert_eq!(
            wrong.check().unwrap_err().to_string(),
            "id: must be 1 to 128 visible ASCII characters without blanks; \
             parent_id: must be 1 to 128 visible ASCII characters without blanks; \
             name: must be at most 80 characters, is 81; text: must be at most 32000 characters, is 32001; \
             at: must be between the years 1970 and 9000; date_text: must be at most 80 characters, is 81"
        );
        for (id, valid) in
            [("~", true), (&"i".repeat(128), true), (&"i".repeat(129), false), ("é", false), ("a\0", false)]
        {
            assert_eq!(said(id, SaidBy::Person, "", None).check().is_ok(), valid, "{id:?}");
        }
    }

    #[test]
    fn a_request_has_limits() {
        let many = |count: usize| -> Vec<Said> {
            (0..count).map(|n| said(&n.to_string(), SaidBy::Person, "x", None)).collect()
        };
        assert_eq!(check_messages(&many(500)), Ok(()));
        assert_eq!(
            check_messages(&many(501)).unwrap_err().to_string(),
            "messages: must have 1 to 500 items, has 501"
        );
        assert!(check_messages(&[]).is_err());
        let twice = [many(2), many(1)].concat();
        assert_eq!(
            check_messages(&twice).unwrap_err().to_string(),
            "messages[2].id: must be a different one for each message"
        );
        let bad = vec![said("", SaidBy::Person, "", None); 500];
        assert_eq!(check_messages(&bad).unwrap_err().0.len(), 2 * MAX_WRONG - 1);
    }

    #[test]
    fn a_list_is_a_conversation_as_it_is() {
        let list = [node("c", "", Some(3)), node("a", "", Some(1)), node("b", "", None), node("a", "", None)];
        assert_eq!(ids(&list), "caba");
        assert_eq!(ids(&[]), "");
    }

    #[test]
    fn of_a_tree_only_the_branch_of_the_newest_leaf_counts() {
        let root = node("a", "", Some(1));
        for (rest, expected) in [
            (vec![node("b", "a", Some(2)), node("c", "b", Some(3))], "abc"),
            // The person has edited the second message.
            (
                vec![
                    node("b", "a", Some(2)),
                    node("c", "b", Some(3)),
                    node("d", "a", Some(4)),
                    node("e", "d", Some(5)),
                ],
                "ade",
            ),
            // The newest message decides, and not the longest branch or the last in the list.
            (vec![node("d", "a", Some(9)), node("b", "a", Some(2)), node("c", "b", Some(3))], "ad"),
            // At equal times, and without times, the last in the list.
            (vec![node("b", "a", Some(2)), node("c", "a", Some(2))], "ac"),
            (vec![node("c", "a", None), node("b", "a", None)], "ab"),
            // A message without a time is as new as the one before it.
            (vec![node("b", "a", Some(2)), node("c", "a", Some(9)), node("d", "c", None)], "acd"),
            (vec![node("b", "a", Some(9)), node("c", "a", Some(2)), node("d", "c", None)], "ab"),
            // Two roots.
            (vec![node("x", "", Some(5)), node("y", "x", Some(6)), node("b", "a", Some(2))], "xy"),
            // A parent that does not exist, or that is the message itself.
            (vec![node("b", "gone", Some(2)), node("c", "b", Some(3))], "bc"),
            (vec![node("b", "b", Some(2))], "b"),
            // A circle has no leaf.
            (vec![node("b", "c", Some(8)), node("c", "b", Some(9))], "a"),
            // The same id again.
            (vec![node("b", "a", Some(2)), node("c", "b", Some(3)), node("b", "a", Some(4))], "abc"),
        ] {
            let messages: Vec<Said> = std::iter::once(root.clone()).chain(rest).collect();
            assert_eq!(ids(&messages), expected, "{messages:?}");
        }
        assert_eq!(ids(&[node("a", "b", Some(1)), node("b", "c", Some(2)), node("c", "a", Some(3))]), "bac");
        assert_eq!(ids(&[node("a", "b", None), node("b", "a", None)]), "ab");
        assert_eq!(ids(&[node("a", "a", None)]), "a");
    }

    #[test]
    fn a_fingerprint_is_that_of_the_persons_last_message() {
        let of = |messages: &[Said]| fingerprint(&live_branch(messages));
        let last = |text: &str, at: &str| {
            of(&[said("1", SaidBy::Person, "Hello", Some(NOW)), said("2", SaidBy::Person, text, Some(at))])
        };
        let one = last("Good bye", NOW).unwrap();
        assert_eq!(one, "334bc4bf3c80030107af59e38b8fe2f985d9a5e05d677fafa23ddd595855ce3c");
        // What the agent adds changes nothing, nor does a recalled block, an empty message, or a character after the 120th.
        let same = [
            said("2", SaidBy::Person, "<lamplighter_memory>old</lamplighter_memory>Good bye", Some(NOW)),
            said("3", SaidBy::Agent, "Bye!", Some(NOW)),
            said("4", SaidBy::Person, "<system-reminder>Be brief.", Some(NOW)),
        ];
        assert_eq!(of(&same), Some(one.clone()));
        let long = |end: &str| last(&format!("{}{end}", "é".repeat(120)), NOW);
        assert_eq!(long("a"), long("b"));
        assert_ne!(last(&format!("{}a", "é".repeat(119)), NOW), last(&format!("{}b", "é".repeat(119)), NOW));
        assert_ne!(last("Good bye", "2026-11-26T22:00:00.001Z"), Some(one.clone()));
        assert_eq!(last("Good bye", "2026-11-26T22:00:00.000001Z"), Some(one));
        // Without a time, two short answers are told apart by their ids.
        let unknown = |id: &str| of(&[said(id, SaidBy::Person, "ok", None)]);
        assert!(unknown("1").is_some());
        assert_ne!(unknown("1"), unknown("2"));
        assert_eq!(of(&[said("1", SaidBy::Agent, "Hello", Some(NOW))]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn only_what_is_new_is_learned() {
        let at = |minutes_ago: i64| (ts(NOW) - SignedDuration::from_mins(minutes_ago)).to_string();
        let talk = |first: i64, second: i64| Session {
            source: "ext:s1".parse().unwrap(),
            title: String::new(),
            namespace: String::new(),
            by_schedule: false,
            messages: vec![
                said("1", SaidBy::Person, "I moved to Bonn.", Some(&at(first))),
                said("2", SaidBy::Agent, "How is it?", Some(&at(first))),
                said("3", SaidBy::Person, "Quiet.", Some(&at(second))),
            ],
        };
        let since = ts(NOW) - SignedDuration::from_hours(26);
        let worth =
            |session: &Session, learned: Option<&str>| worth_learning(session, learned, since, ts(NOW));
        let (inside, edge, outside) =
            (talk(2_000, 25 * 60 + 59), talk(2_000, 26 * 60), talk(2_000, 26 * 60 + 1));
        let print = worth(&inside, None).unwrap();
        assert_eq!(worth(&outside, None), Err(Skip::NotActive));
        assert!(worth(&edge, None).is_ok());
        assert_eq!(worth(&inside, Some(&print)), Err(Skip::Unchanged));
        assert_eq!(worth(&inside, Some("another")), Ok(print));
        let by_schedule = Session { by_schedule: true, ..inside.clone() };
        assert_eq!(worth(&by_schedule, None), Err(Skip::StartedBySchedule));
        let with = |change: &dyn Fn(&mut Vec<Said>)| {
            let mut session = inside.clone();
            change(&mut session.messages);
            worth(&session, None)
        };
        assert_eq!(with(&|messages| drop(messages.pop())), Err(Skip::NotActive));
        assert_eq!(with(&|messages| drop(messages.remove(0))), Err(Skip::TooFewMessages));
        assert_eq!(
            with(&|messages| messages[0].text = "<System-Reminder>You are in Bonn.</System-Reminder> ".into()),
            Err(Skip::TooFewMessages)
        );
        assert_eq!(with(&|messages| messages[0].role = SaidBy::System), Err(Skip::TooFewMessages));
        assert_eq!(with(&Vec::clear), Err(Skip::TooFewMessages));
        // An answer of the agent makes it active, and a time in the future is as good as now.
        let late = |at: &str| {
            let (mut session, at) = (outside.clone(), Some(at));
            session.messages.push(said("4", SaidBy::Agent, "Good.", at));
            worth(&session, None)
        };
        assert!(late(&at(0)).is_ok() && late("9000-01-01T00:00:00Z").is_ok());
        // Another branch does not count.
        let mut tree = inside.clone();
        tree.messages[2].parent_id = Some("1".into());
        tree.messages
            .push(Said { parent_id: Some("1".into()), ..said("4", SaidBy::Agent, "New.", Some(&at(1))) });
        assert_eq!(worth(&tree, None), Err(Skip::TooFewMessages));
        let mut timeless = inside.clone();
        timeless.messages.iter_mut().for_each(|message| message.at = None);
        assert!(worth(&timeless, None).is_ok());
    }

    #[test]
    fn a_block_has_one_id_for_a_state_of_a_conversation() {
        let (me, you) = (Owner::new("me").unwrap(), Owner::new("you").unwrap());
        let source: Source = "ext:s1".parse().unwrap();
        let other: Source = "cht_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c".parse().unwrap();
        let id = block_id(&me, &source, "f");
        assert_eq!(id.to_string(), "blk_c2bcd4f48ae3830fb469b0aa41d8dfde");
        assert_eq!(id, block_id(&me, &source, "f"));
        for another in [block_id(&you, &source, "f"), block_id(&me, &other, "f"), block_id(&me, &source, "g")]
        {
            assert_ne!(id, another);
        }
    }

    #[test]
    fn what_a_program_has_put_in_is_no_word_of_the_message() {
        let cases = [
            ("plain < text </b> <br>", "plain < text </b> <br>"),
            ("a<lamplighter_memory>b</lamplighter_memory>c", "a\nc"),
            ("<LAMPLIGHTER_memory>b</lamplighter_MEMORY>c", "\nc"),
            ("a<system-reminder>b", "a\n"),
            ("a<system-reminder", "a\n"),
            ("a<system-reminder b", "a\n"),
            ("a<system-reminder level=\"1\">b</system-reminder >c", "a\nc"),
            ("a< system-reminder >b</ System-Reminder>c", "a\nc"),
            // One in another of the same name.
            (
                "a<lamplighter_memory>b<lamplighter_memory>c</lamplighter_memory>d</lamplighter_memory>e",
                "a\ne",
            ),
            ("a<lamplighter_memory>b<lamplighter_memory>c</lamplighter_memory>d", "a\n"),
            // The end of another block is not the end.
            ("a<lamplighter_memory>b</system-reminder>c</lamplighter_memory>d", "a\nd"),
            ("a<lamplighter_memory>b<system-reminder>c</lamplighter_memory>d", "a\nd"),
            ("a<lamplighter_memory>b<lamplighter_memory/>c</lamplighter_memory>d", "a\nd"),
            ("a<lamplighter_memory/>b", "a\nb"),
            ("a</lamplighter_memory>b", "a\nb"),
            ("a<lamplighter_memory_2>b", "a<lamplighter_memory_2>b"),
            ("a<system-reminders>b", "a<system-reminders>b"),
            ("<lamplighter_memory>1</lamplighter_memory>é<system-reminder>2</system-reminder>ß", "\né\nß"),
            ("<<lamplighter_memory>1</lamplighter_memory>>", "<\n>"),
            ("<lamplighter_mem<lamplighter_memory>x</lamplighter_memory>ory>y", "<lamplighter_mem\nory>y"),
        ];
        for (text, own) in cases {
            assert_eq!(own_words(text), own, "{text}");
        }
        assert!(matches!(own_words("plain"), Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn no_tree_loops_or_panics(
            nodes in proptest::collection::vec((0..12_u8, 0..14_u8, proptest::option::of(0..5_i64)), 0..20)
        ) {
            let name = |n: u8| char::from(b'a' + n).to_string();
            let messages: Vec<Said> =
                nodes.iter().map(|(id, parent, minute)| {
                    node(&name(*id), &if *parent == 13 { String::new() } else { name(*parent) }, *minute)
                }).collect();
            let branch = live_branch(&messages);
            prop_assert_eq!(branch.is_empty(), messages.is_empty());
            if messages.iter().any(|message| message.parent_id.is_some()) {
                let known: HashSet<&str> = branch.iter().map(|message| message.id.as_str()).collect();
                prop_assert_eq!(known.len(), branch.len(), "each message once");
                for pair in branch.windows(2) {
                    prop_assert_eq!(pair[1].parent_id.as_deref(), Some(pair[0].id.as_str()));
                }
            }
            prop_assert!(fingerprint(&branch).is_some() || branch.is_empty());
        }

        #[test]
        fn nothing_between_the_tags_is_left(
            before in "[a-c <>/]{0,8}", inside in "[x-z <>/\n]{1,8}", after in "[d-f <>/]{0,8}", name in 0..2_usize,
            upper: bool, closed: bool,
        ) {
            let tag = if upper { NOT_OWN[name].to_uppercase() } else { NOT_OWN[name].to_owned() };
            let end = if closed { format!("</{tag}>{after}") } else { String::new() };
            let own = own_words(&format!("{before}<{tag}>{inside}{end}")).into_owned();
            prop_assert!(!own.contains(['x', 'y', 'z']), "{}", own);
            let expected = if closed { format!("{before}\n{after}") } else { format!("{before}\n") };
            prop_assert_eq!(own, expected);
        }

        #[test]
        fn any_text_has_own_words(text in "(<|</|lamplighter_memory|SYSTEM-reminder|>|/|é| |x){0,30}") {
            let own = own_words(&text).into_owned();
            prop_assert!(own.len() <= text.len() + 1);
            let whole = |text: &str| NOT_OWN.iter().any(|name| text.to_lowercase().contains(&format!("<{name}>")));
            // Joining the rest makes no new tag.
            prop_assert!(!whole(&own), "{} of {}", own, text);
        }
    }
}
