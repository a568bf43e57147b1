//! The marks of check-ins: two bits for each day, and the newest notes.

use std::collections::BTreeMap;

use jiff::civil::{Date, date};
use serde::{Deserialize, Serialize};

use super::{MAX_NOTES, MAX_TEXT};
use crate::validate::FieldErrors;

/// The bytes of a year: a bit for each day.
const BYTES: usize = 46;

/// The most years that have marks. A person adds one year at a time.
const MAX_YEARS: usize = 200;

/// A set of days. It is stored as hexadecimal digits of bytes for each year: the first day of the year is the lowest bit of the first byte.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, String>", into = "BTreeMap<String, String>")]
pub struct DaySet(BTreeMap<i16, [u8; BYTES]>);

/// The byte of a day in its year, and its bit.
fn place(day: Date) -> (usize, u8) {
    let number = usize::from(day.day_of_year().unsigned_abs() - 1);
    (number / 8, 1 << (number % 8))
}

impl DaySet {
    #[must_use]
    pub fn has(&self, day: Date) -> bool {
        let (byte, bit) = place(day);
        self.0.get(&day.year()).is_some_and(|year| year[byte] & bit != 0)
    }

    pub fn insert(&mut self, day: Date) {
        let (byte, bit) = place(day);
        self.0.entry(day.year()).or_insert([0; BYTES])[byte] |= bit;
    }

    pub fn remove(&mut self, day: Date) {
        let (byte, bit) = place(day);
        if let Some(year) = self.0.get_mut(&day.year()) {
            year[byte] &= !bit;
            if year.iter().all(|byte| *byte == 0) {
                self.0.remove(&day.year());
            }
        }
    }

    /// Its days, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = Date> {
        self.0.iter().flat_map(|(year, bytes)| {
            let first = date(*year, 1, 1);
            let bits = (0..BYTES * 8).filter(|n| bytes[n / 8] & (1 << (n % 8)) != 0);
            // A set that was read has no bits after the end of a year.
            bits.filter_map(move |n| {
                first.with().day_of_year(i16::try_from(n + 1).unwrap_or(i16::MAX)).build().ok()
            })
        })
    }

    fn years(&self) -> impl Iterator<Item = i16> {
        self.0.keys().copied()
    }
}

impl From<DaySet> for BTreeMap<String, String> {
    fn from(DaySet(years): DaySet) -> Self {
        let digits = |bytes: [u8; BYTES]| crate::hex(&bytes).trim_end_matches('0').to_owned();
        years.into_iter().map(|(year, bytes)| (year.to_string(), digits(bytes))).collect()
    }
}

impl TryFrom<BTreeMap<String, String>> for DaySet {
    type Error = String;
    fn try_from(years: BTreeMap<String, String>) -> Result<Self, String> {
        let mut set = Self::default();
        for (named, digits) in years {
            let year = named.parse::<i16>().ok().filter(|year| year.to_string() == named);
            let Some(year) = year.filter(|year| (1970..=9000).contains(year)) else {
                return Err(format!("the year {named:?} is not one of 1970 to 9000"));
            };
            let wrong = || format!("the days of {year} are not hexadecimal digits of its days");
            let days = date(year, 1, 1).days_in_year().unsigned_abs();
            let mut bytes = [0; BYTES];
            for (n, digit) in digits.chars().enumerate() {
                let digit = match digit {
                    '0'..='9' | 'a'..='f' => digit.to_digit(16).unwrap_or_default() as u8,
                    _ => return Err(wrong()),
                };
                let byte = bytes.get_mut(n / 2).ok_or_else(wrong)?;
                *byte |= if n % 2 == 0 { digit << 4 } else { digit };
            }
            let after = (usize::from(days)..BYTES * 8).any(|n| bytes[n / 8] & (1 << (n % 8)) != 0);
            if after {
                return Err(wrong());
            }
            if bytes.iter().any(|byte| *byte != 0) {
                set.0.insert(year, bytes);
            }
        }
        Ok(set)
    }
}

/// What a practice's record has of its check-ins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marks {
    /// The days on which it was done.
    #[serde(default)]
    pub done: DaySet,
    /// The days on which it was deliberately not done.
    #[serde(default)]
    pub skipped: DaySet,
    /// The notes of the newest check-ins that have one.
    #[serde(default)]
    notes: BTreeMap<Date, String>,
}

impl Marks {
    /// Whether it was done on a day. `None`: there is no check-in.
    #[must_use]
    pub fn of(&self, day: Date) -> Option<bool> {
        match (self.done.has(day), self.skipped.has(day)) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        }
    }

    /// The note of a day, if its check-in is one of the newest.
    #[must_use]
    pub fn note(&self, day: Date) -> Option<&str> {
        self.notes.get(&day).map(String::as_str)
    }

    /// The first day with a check-in.
    #[must_use]
    pub fn first(&self) -> Option<Date> {
        self.done.iter().next().into_iter().chain(self.skipped.iter().next()).min()
    }

    pub fn set(&mut self, day: Date, done: bool, note: &str) {
        self.clear(day);
        if done { &mut self.done } else { &mut self.skipped }.insert(day);
        if !note.is_empty() {
            self.notes.insert(day, note.to_owned());
        }
        while self.notes.len() > MAX_NOTES {
            self.notes.pop_first();
        }
    }

    pub fn clear(&mut self, day: Date) {
        self.done.remove(day);
        self.skipped.remove(day);
        self.notes.remove(&day);
    }

    /// # Errors
    /// Every limit that is broken.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        for (field, days) in [("done", &self.done), ("skipped", &self.skipped)] {
            let years = days.years().count();
            if years > MAX_YEARS {
                errors.add(field, format!("must have at most {MAX_YEARS} years, has {years}"));
            }
        }
        if self.notes.len() > MAX_NOTES {
            errors.add("notes", format!("must have at most {MAX_NOTES} items, has {}", self.notes.len()));
        }
        for note in self.notes.values().take(MAX_NOTES) {
            errors.length("notes", note, 0, MAX_TEXT);
        }
        errors.into_result(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(value: serde_json::Value) -> Result<DaySet, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn the_format_of_a_year_never_changes() {
        let mut days = DaySet::default();
        for day in [date(2026, 1, 1), date(2026, 1, 9), date(2024, 12, 31), date(2026, 12, 31)] {
            days.insert(day);
        }
        let stored = serde_json::to_value(&days).unwrap();
        let end = |digits: &str| format!("{}{digits}", "0".repeat(90));
        assert_eq!(stored["2024"], end("2"));
        assert_eq!(stored["2026"], format!("0101{}1", "0".repeat(86)));
        assert_eq!(read(stored), Ok(days));
        assert_eq!(read(json!({})), Ok(DaySet::default()));
        assert_eq!(read(json!({"2026": "00"})), Ok(DaySet::default()));
        // Bit 364 is the last day of 2026, and bit 365 of the leap year 2024.
        assert!(read(json!({"2026": end("1")})).is_ok() && read(json!({"2024": end("2")})).is_ok());
        for wrong in [
            json!({"2026": end("2")}),
            json!({"2024": end("4")}),
            json!({"2026": "0".repeat(93)}),
            json!({"2026": "0G"}),
            json!({"2026": "A0"}),
            json!({"2026": "é"}),
            json!({"1969": "01"}),
            json!({"9001": "01"}),
            json!({"99999": "01"}),
            json!({"02026": "01"}),
            json!({"+2026": "01"}),
            json!({"-1": "01"}),
        ] {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_newest_notes_are_kept() {
        let mut marks = Marks::default();
        for day in [4, 1, 3, 2, 5] {
            marks.set(date(2026, 11, day), day != 3, &format!("note {day}"));
        }
        let noted = |marks: &Marks| (1..6).filter(|day| marks.note(date(2026, 11, *day)).is_some()).collect();
        let days: Vec<i8> = noted(&marks);
        assert_eq!(days, [3, 4, 5]);
        assert_eq!(marks.note(date(2026, 11, 4)), Some("note 4"));
        assert_eq!([2, 3, 6].map(|day| marks.of(date(2026, 11, day))), [Some(true), Some(false), None]);
        // A later check-in of the same day replaces everything.
        marks.set(date(2026, 11, 4), false, "");
        assert_eq!((marks.of(date(2026, 11, 4)), marks.note(date(2026, 11, 4))), (Some(false), None));
        marks.clear(date(2026, 11, 5));
        let days: Vec<i8> = noted(&marks);
        assert_eq!(days, [3]);
        assert_eq!(marks.first(), Some(date(2026, 11, 1)));
    }

    proptest! {
        #[test]
        fn a_set_of_days_is_a_set_of_days(changes in proptest::collection::vec((0_i32..1_500, any::<bool>()), 0..200)) {
            use jiff::ToSpan;
            let (mut set, mut expected) = (DaySet::default(), BTreeSet::new());
            for (day, is_in) in changes {
                let day = date(2023, 6, 1) + day.days();
                if is_in {
                    set.insert(day);
                    expected.insert(day);
                } else {
                    set.remove(day);
                    expected.remove(&day);
                }
                prop_assert_eq!(set.has(day), is_in);
            }
            prop_assert!(set.iter().eq(expected.iter().copied()));
            let stored = serde_json::to_string(&set).unwrap();
            prop_assert_eq!(serde_json::from_str::<DaySet>(&stored).unwrap(), set);
        }
    }
}
