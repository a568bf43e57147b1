//! What the writer of a message was told of memory, in short.
//!
//! A reply may repeat what the model was told, in other words too. So each reply keeps what it was told, and if a fact is deleted later,
//! the replies that were told it are not found and not told any more.

use std::collections::BTreeSet;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::recall::Recalled;
use crate::ids::MessageId;

/// How many things a message keeps. Of more, the last ones are left out.
pub const MAX_TOLD: usize = 1_000;

/// A part of an id, which is enough to find it again: half of an id is random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark(u64);

impl Mark {
    /// Of the id of a fact, a card or a message of this platform. `None` for the id of a message of an outside session: no model is told
    /// such a message.
    #[must_use]
    pub fn of(id: &str) -> Option<Self> {
        let (_, digits) = id.rsplit_once('_')?;
        let last = digits.get(digits.len().checked_sub(16)?..)?;
        (digits.len() == 32).then_some(())?;
        u64::from_str_radix(last, 16).ok().map(Self)
    }
}

/// Facts, cards and messages that a model was told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told(BTreeSet<Mark>);

impl Told {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds what was recalled.
    pub fn add(&mut self, recalled: &[Recalled]) {
        for one in recalled {
            self.add_marks(Mark::of(&one.of).into_iter());
            self.add_marks(one.other_facts.iter().filter_map(|fact| Mark::of(&fact.to_string())));
        }
    }

    /// Adds a message of the conversation itself.
    pub fn add_message(&mut self, id: MessageId) {
        self.add_marks(Mark::of(&id.to_string()).into_iter());
    }

    /// Adds what the writer of another message was told, except what is forgotten.
    pub fn add_told(&mut self, other: &Self, is_forgotten: impl Fn(Mark) -> bool) {
        self.add_marks(other.0.iter().copied().filter(|mark| !is_forgotten(*mark)));
    }

    fn add_marks(&mut self, marks: impl Iterator<Item = Mark>) {
        for mark in marks {
            if self.0.len() < MAX_TOLD {
                self.0.insert(mark);
            }
        }
    }

    /// Whether one of these was told.
    #[must_use]
    pub fn has_any(&self, marks: &BTreeSet<Mark>) -> bool {
        let (few, many) = if self.0.len() < marks.len() { (&self.0, marks) } else { (marks, &self.0) };
        few.iter().any(|mark| many.contains(mark))
    }
}

impl Serialize for Told {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let digits: String = self.0.iter().map(|mark| format!("{:016x}", mark.0)).collect();
        serializer.serialize_str(&digits)
    }
}

impl<'de> Deserialize<'de> for Told {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let digits = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let invalid =
            || D::Error::custom(format!("must be at most {MAX_TOLD} groups of 16 hexadecimal digits"));
        if !digits.is_ascii() || digits.len() % 16 != 0 || digits.len() / 16 > MAX_TOLD {
            return Err(invalid());
        }
        let group = |at: usize| u64::from_str_radix(&digits[at..at + 16], 16).map(Mark);
        let marks: Result<BTreeSet<Mark>, _> = (0..digits.len()).step_by(16).map(group).collect();
        marks.map(Self).map_err(|_| invalid())
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

    fn recalled(of: String, other_facts: Vec<FactId>) -> Recalled {
        let (kind, text) = (RecalledKind::Memory, "A text".to_owned());
        Recalled { kind, of, source: None, date: None, until: None, other_facts, text }
    }

    fn mark(id: impl ToString) -> Mark {
        Mark::of(&id.to_string()).unwrap()
    }

    #[test]
    fn what_was_told_is_found_again() {
        let message = MessageId::from_uuid(Uuid::from_u128(9));
        let mut told = Told::default();
        assert!(told.is_empty());
        told.add(&[recalled(fact(1).to_string(), vec![fact(2)])]);
        told.add_message(message);
        for (marks, expected) in [
            (vec![mark(fact(1))], true),
            (vec![mark(fact(2)), mark(fact(5))], true),
            (vec![mark(message)], true),
            (vec![mark(fact(3))], false),
            (vec![], false),
        ] {
            assert_eq!(told.has_any(&marks.iter().copied().collect()), expected, "{marks:?}");
        }
        let mut next = Told::default();
        next.add_told(&told, |mark| mark == self::mark(fact(1)));
        assert!(
            !next.has_any(&BTreeSet::from([mark(fact(1))])) && next.has_any(&BTreeSet::from([mark(fact(2))]))
        );
        for id in ["", "m1", "fct_1", "a_ü", "fct_0000000000000000000000000000000g", "msg_0123456789abcdef"]
        {
            assert_eq!(Mark::of(id), None, "{id}");
        }
    }

    #[test]
    fn the_format_never_changes() {
        let mut told = Told::default();
        told.add(&[recalled(fact(0xab).to_string(), vec![fact(1 << 70 | 7)])]);
        let stored = serde_json::to_value(&told).unwrap();
        assert_eq!(stored, json!("000000000000000700000000000000ab"));
        assert_eq!(serde_json::from_value::<Told>(stored).unwrap(), told);
        for wrong in [
            json!("0"),
            json!("000000000000000g"),
            json!(7),
            json!("é".repeat(8)),
            json!("0".repeat(16 * (MAX_TOLD + 1))),
        ] {
            assert!(serde_json::from_value::<Told>(wrong).is_err());
        }
    }

    #[test]
    fn a_message_keeps_a_limited_number() {
        let many: Vec<Recalled> = (0..2_000).map(|n| recalled(fact(n).to_string(), vec![])).collect();
        let mut told = Told::default();
        told.add(&many);
        assert_eq!(serde_json::to_value(&told).unwrap().as_str().unwrap().len(), 16 * MAX_TOLD);
        assert!(
            told.has_any(&BTreeSet::from([mark(fact(999))]))
                && !told.has_any(&BTreeSet::from([mark(fact(1_000))]))
        );
    }
}
