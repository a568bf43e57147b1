//! The parts that memory is indexed in.
//!
//! A part is what a collection got on one UTC day: the messages of a conversation, the facts, or the cards. All ids in a collection begin
//! with a time, so a part is a range of ids, and a change is indexed by reading one part.

use std::fmt;
use std::str::FromStr;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use super::Source;
use crate::ids::instant_of;
use crate::threads::Thread;

/// What a part belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Collection {
    Messages(Source),
    Facts,
    Cards,
}

impl From<Thread> for Collection {
    fn from(thread: Thread) -> Self {
        Self::Messages(thread.into())
    }
}

/// What a collection got on a day. Without a day, it stands for the whole collection, which was deleted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryPart {
    pub of: Collection,
    pub day: Option<Date>,
}

impl MemoryPart {
    /// The part with this id.
    #[must_use]
    pub fn with(of: Collection, id: Uuid) -> Self {
        Self { of, day: Some(day_of(id)) }
    }

    /// All of a conversation, which was deleted.
    #[must_use]
    pub fn gone(source: Source) -> Self {
        Self { of: Collection::Messages(source), day: None }
    }
}

impl fmt::Display for MemoryPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.of {
            Collection::Messages(source) => source.fmt(f)?,
            Collection::Facts => f.write_str("facts")?,
            Collection::Cards => f.write_str("cards")?,
        }
        match self.day {
            Some(day) => write!(f, "@{day}"),
            None => f.write_str("@*"),
        }
    }
}

impl FromStr for MemoryPart {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // The name of an outside session may contain `@`.
        let (of, day) = text.rsplit_once('@').ok_or("must have an `@` before the day")?;
        let of = match of {
            "facts" => Collection::Facts,
            "cards" => Collection::Cards,
            source => Collection::Messages(source.parse()?),
        };
        let day = match day {
            "*" => None,
            day => Some(day.parse().map_err(|_| "must end with a date")?),
        };
        Ok(Self { of, day })
    }
}

impl Serialize for MemoryPart {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for MemoryPart {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The UTC day of an id.
#[must_use]
pub fn day_of(id: Uuid) -> Date {
    instant_of(id).to_zoned_datetime(TimeZone::UTC).date()
}

/// The least id of a day, and the least id of the day after it.
#[must_use]
pub fn ids_of(day: Date) -> (Uuid, Uuid) {
    let first = |day: Date| {
        let start =
            day.to_zoned_datetime(TimeZone::UTC).map_or(Timestamp::UNIX_EPOCH, |zoned| zoned.timestamp());
        let mut bytes = [0u8; 16];
        bytes[..6].copy_from_slice(&start.as_millisecond().max(0).to_be_bytes()[2..]);
        Uuid::from_bytes(bytes)
    };
    (first(day), first(day.saturating_add(1.day())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ChatId;

    fn id(at: &str) -> Uuid {
        let millis = at.parse::<Timestamp>().unwrap().as_millisecond();
        let mut bytes = [0xff; 16];
        bytes[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
        Uuid::from_bytes(bytes)
    }

    #[test]
    fn a_part_reads_back() {
        let chat = Source::Chat(ChatId::from_uuid(Uuid::from_u128(7)));
        let outside =
            Source::Outside("claude.1@host".parse().unwrap_or_else(|_| "claude-1".parse().unwrap()));
        for of in
            [Collection::Facts, Collection::Cards, Collection::Messages(chat), Collection::Messages(outside)]
        {
            for day in [None, Some(jiff::civil::date(2026, 11, 26))] {
                let part = MemoryPart { of: of.clone(), day };
                assert_eq!(part.to_string().parse(), Ok(part));
            }
        }
        for invalid in ["", "facts", "facts@", "facts@2026-13-01", "x@*"] {
            invalid.parse::<MemoryPart>().unwrap_err();
        }
    }

    #[test]
    fn the_ids_of_a_day_are_a_range() {
        let (first, after) = ids_of(jiff::civil::date(2026, 11, 26));
        for (at, is_within) in [
            ("2026-11-25T23:59:59.999Z", false),
            ("2026-11-26T00:00:00Z", true),
            ("2026-11-26T23:59:59.999Z", true),
            ("2026-11-27T00:00:00Z", false),
        ] {
            let id = id(at);
            assert_eq!((first..after).contains(&id), is_within, "{at}");
            assert_eq!(day_of(id) == jiff::civil::date(2026, 11, 26), is_within, "{at}");
        }
    }
}
