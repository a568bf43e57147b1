//! What the writer of a message was told of memory, in short.
//!
//! A reply may repeat what the model was told, in other words too. So each reply keeps what it was told, and if a fact is deleted later,
//! the replies that were told it are not found and not told any more. What every reply is told says little about one of them: such a reply
//! is only hidden if it also has a word that tells of the fact.

use std::collections::BTreeSet;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::recall::Recalled;
use crate::ids::MessageId;

/// How many things of each kind a message keeps. Of more, the last ones are left out.
pub const MAX_TOLD: usize = 200;

/// What stands between the two kinds.
const THEN: char = '.';

/// How many digits a mark has.
const DIGITS: usize = 16;

/// A part of an id, which is enough to find it again: half of an id is random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark(u64);

impl Mark {
    /// Of the id of a fact, a card or a message of this platform. `None` for the id of a message of an outside session: no model is told
    /// such a message.
    #[must_use]
    pub fn of(id: &str) -> Option<Self> {
        let (_, digits) = id.rsplit_once('_')?;
        let last = digits.get(digits.len().checked_sub(DIGITS)?..)?;
        (digits.len() == 2 * DIGITS).then_some(())?;
        u64::from_str_radix(last, 16).ok().map(Self)
    }
}

/// Facts, cards and messages that a model was told, what is most certain first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// What was found for the question, and what was said in the conversation.
    found: Vec<Mark>,
    /// What was told only because every turn and run is told it.
    always: Vec<Mark>,
}

fn add(to: &mut Vec<Mark>, mark: Mark) {
    if to.len() < MAX_TOLD && !to.contains(&mark) {
        to.push(mark);
    }
}

impl Told {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.found.is_empty() && self.always.is_empty()
    }

    /// Adds what was recalled.
    pub fn add(&mut self, recalled: &[Recalled]) {
        for one in recalled {
            let to = if one.always { &mut self.always } else { &mut self.found };
            let other_facts = one.other_facts.iter().map(ToString::to_string);
            for id in [one.of.clone()].into_iter().chain(other_facts) {
                if let Some(mark) = Mark::of(&id) {
                    add(to, mark);
                }
            }
        }
    }

    /// Adds a message of the conversation itself.
    pub fn add_message(&mut self, id: MessageId) {
        if let Some(mark) = Mark::of(&id.to_string()) {
            add(&mut self.found, mark);
        }
    }

    /// Adds what the writer of another message was told, except what is forgotten.
    pub fn add_told(&mut self, other: &Self, is_forgotten: impl Fn(Mark) -> bool) {
        for (to, marks) in [(&mut self.found, &other.found), (&mut self.always, &other.always)] {
            marks.iter().filter(|mark| !is_forgotten(**mark)).for_each(|mark| add(to, *mark));
        }
    }

    /// Whether one of these was told, for whatever reason.
    #[must_use]
    pub fn has_any(&self, marks: &BTreeSet<Mark>) -> bool {
        self.found_any(marks) || self.always.iter().any(|mark| marks.contains(mark))
    }

    /// Whether one of these was found for the question, or said in the conversation.
    #[must_use]
    pub fn found_any(&self, marks: &BTreeSet<Mark>) -> bool {
        self.found.iter().any(|mark| marks.contains(mark))
    }

    /// Everything that was told.
    pub fn all(&self) -> impl Iterator<Item = Mark> {
        self.found.iter().chain(&self.always).copied()
    }

    /// What was told only because every turn and run is told it.
    pub fn always(&self) -> impl Iterator<Item = Mark> {
        self.always.iter().copied()
    }
}

fn digits(marks: &[Mark]) -> String {
    marks.iter().map(|mark| format!("{:016x}", mark.0)).collect()
}

fn marks(digits: &str) -> Option<Vec<Mark>> {
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit())
        || !digits.len().is_multiple_of(DIGITS)
        || digits.len() / DIGITS > MAX_TOLD
    {
        return None;
    }
    let group = |at: usize| u64::from_str_radix(&digits[at..at + DIGITS], 16).ok().map(Mark);
    (0..digits.len()).step_by(DIGITS).map(group).collect()
}

impl Serialize for Told {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = digits(&self.found);
        if !self.always.is_empty() {
            text.push(THEN);
            text.push_str(&digits(&self.always));
        }
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for Told {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let (found, always) = text.split_once(THEN).unwrap_or((&text, ""));
        marks(found).zip(marks(always)).map(|(found, always)| Self { found, always }).ok_or_else(|| {
            let wanted = format!(
                "must be at most {MAX_TOLD} groups of {DIGITS} hexadecimal digits, a point, and as many again"
            );
            D::Error::custom(wanted)
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::super::recall::RecalledKind;
    use super::*;
    use crate::ids::FactId;

    fn fact(number: u128) -> FactId {
        FactId::from_uuid(Uuid::from_u128(number))
    }

    fn recalled(of: String, other_facts: Vec<FactId>, always: bool) -> Recalled {
        let (kind, text) = (RecalledKind::Memory, "A text".to_owned());
        Recalled { kind, of, source: None, date: None, until: None, other_facts, always, text }
    }

    fn mark(id: impl ToString) -> Mark {
        Mark::of(&id.to_string()).unwrap()
    }

    #[test]
    fn what_was_told_is_found_again() {
        let message = MessageId::from_uuid(Uuid::from_u128(9));
        let mut told = Told::default();
        assert!(told.is_empty());
        told.add(&[recalled(fact(1).to_string(), vec![fact(2)], false)]);
        told.add(&[recalled(fact(3).to_string(), vec![fact(4)], true)]);
        told.add_message(message);
        for (marks, (any, found)) in [
            (vec![mark(fact(1))], (true, true)),
            (vec![mark(fact(2)), mark(fact(5))], (true, true)),
            (vec![mark(message)], (true, true)),
            (vec![mark(fact(3))], (true, false)),
            (vec![mark(fact(4)), mark(fact(5))], (true, false)),
            (vec![mark(fact(3)), mark(fact(1))], (true, true)),
            (vec![mark(fact(5))], (false, false)),
            (vec![], (false, false)),
        ] {
            let marks = marks.iter().copied().collect();
            assert_eq!((told.has_any(&marks), told.found_any(&marks)), (any, found), "{marks:?}");
        }
        assert_eq!(told.always().collect::<Vec<_>>(), [mark(fact(3)), mark(fact(4))]);
        for id in ["", "m1", "fct_1", "a_ü", "fct_0000000000000000000000000000000g", "msg_0123456789abcdef"]
        {
            assert_eq!(Mark::of(id), None, "{id}");
        }
    }

    #[test]
    fn what_an_earlier_reply_was_told_stays_of_its_kind() {
        let mut earlier = Told::default();
        earlier.add(&[recalled(fact(1).to_string(), vec![fact(2)], false)]);
        earlier.add(&[recalled(fact(3).to_string(), vec![fact(4)], true)]);
        let mut next = Told::default();
        next.add_told(&earlier, |mark| [fact(1), fact(3)].map(self::mark).contains(&mark));
        let all = [1, 2, 3, 4].map(|number| BTreeSet::from([mark(fact(number))]));
        assert_eq!(all.each_ref().map(|marks| next.has_any(marks)), [false, true, false, true]);
        assert_eq!(all.each_ref().map(|marks| next.found_any(marks)), [false, true, false, false]);
        // What was found later counts as found.
        next.add(&[recalled(fact(4).to_string(), vec![], false)]);
        assert!(next.found_any(&all[3]));
    }

    #[test]
    fn the_format_never_changes() {
        let mut told = Told::default();
        for (expected, (number, always)) in [
            ("00000000000000ab", (0xab, false)),
            ("00000000000000ab0000000000000007", (1 << 70 | 7, false)),
            ("00000000000000ab0000000000000007.00000000000000cd", (0xcd, true)),
        ] {
            told.add(&[recalled(fact(number).to_string(), vec![], always)]);
            let stored = serde_json::to_value(&told).unwrap();
            assert_eq!(stored, json!(expected));
            assert_eq!(serde_json::from_value::<Told>(stored).unwrap(), told);
        }
        let always: Told = serde_json::from_value(json!(".00000000000000cd")).unwrap();
        assert_eq!(always.always().count(), 1);
        assert!(serde_json::from_value::<Told>(json!("")).unwrap().is_empty());
        for wrong in [
            json!("0"),
            json!("000000000000000g"),
            json!("+00000000000000a"),
            json!("00000000000000ab.00000000000000cd.00000000000000ef"),
            json!(7),
            json!("é".repeat(8)),
            json!("0".repeat(16 * (MAX_TOLD + 1))),
        ] {
            assert!(serde_json::from_value::<Told>(wrong).is_err());
        }
    }

    #[test]
    fn a_message_keeps_a_limited_number_and_the_first_of_them() {
        let many = |always| -> Vec<Recalled> {
            (0..400).map(|n| recalled(fact(n).to_string(), vec![], always)).collect()
        };
        let mut told = Told::default();
        told.add(&many(false));
        told.add(&many(true));
        let stored = serde_json::to_value(&told).unwrap();
        assert_eq!(stored.as_str().unwrap().len(), 2 * 16 * MAX_TOLD + 1);
        assert_eq!(serde_json::from_value::<Told>(stored).unwrap(), told);
        let has = |number: u128| told.has_any(&BTreeSet::from([mark(fact(number))]));
        assert!(has(MAX_TOLD as u128 - 1) && !has(MAX_TOLD as u128));
    }
}
