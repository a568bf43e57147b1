//! Dates in texts: days, months and years, and words such as "yesterday" or "vor zwei Wochen".
//!
//! A relative word counts from an anchor, the day on which the text was written. Days are numbers: 0 is 1970-01-01.

#[cfg(test)]
mod date_tests;
mod senses;

use std::ops::Range;

use jiff::civil::Date;
use words::Language;

use crate::tokens::Words;
use senses::{Sense, Unit, sense};

/// A day's number. 0 is 1970-01-01.
pub(crate) type Day = i32;

/// A range of days. Both ends belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Days {
    pub start: Day,
    pub end: Day,
}

impl Days {
    pub fn one(day: Day) -> Self {
        Self { start: day, end: day }
    }

    pub fn contains(self, day: Day) -> bool {
        self.start <= day && day <= self.end
    }

    fn len(self) -> i32 {
        self.end - self.start + 1
    }

    /// The share of this range that lies in `other`.
    pub fn share_in(self, other: Self) -> f32 {
        let common = self.end.min(other.end) - self.start.max(other.start) + 1;
        if common <= 0 { 0.0 } else { common as f32 / self.len() as f32 }
    }
}

pub(crate) fn day_of(date: Date) -> Day {
    let (y, m, d) = (i32::from(date.year()), i32::from(date.month()), i32::from(date.day()));
    let y = if m <= 2 { y - 1 } else { y };
    let era = y.div_euclid(400);
    let of_era = y.rem_euclid(400);
    let of_year = (153 * ((m + 9) % 12) + 2) / 5 + d - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

pub(crate) fn date_of(day: Day) -> Option<Date> {
    let day = day.checked_add(719_468)?;
    let era = day.div_euclid(146_097);
    let of_era = day.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = (shifted + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i32::from(month <= 2);
    Date::new(i16::try_from(year).ok()?, month as i8, (of_year - (153 * shifted + 2) / 5 + 1) as i8).ok()
}

/// What a text says about time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    pub ranges: Vec<Days>,
    /// Days or months without a year. They are also in `ranges`, in the year that is nearest to the anchor.
    pub yearless: Vec<MonthDay>,
    /// Which words the ranges were read from.
    pub places: Vec<Range<usize>>,
    /// Whether the text has any word about time, for example "week" or "10:30".
    pub has_time: bool,
}

/// A month, or a day of it, in any year.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MonthDay {
    pub month: u8,
    pub day: Option<u8>,
}

impl MonthDay {
    pub fn in_year(self, year: i32) -> Option<Days> {
        match self.day {
            Some(day) => date(year, self.month, day).map(Days::one),
            None => month(year, self.month),
        }
    }
}

/// At most so many ranges of a text are kept.
const MAX_RANGES: usize = 8;

/// Reads the dates of a text. `words` are those of `text`.
pub(crate) fn read(text: &str, words: &Words, language: Language, anchor: Option<Day>) -> Times {
    let mut reader = Reader { text, words, language, anchor, times: Times::default() };
    let mut at = 0;
    while at < words.len() && reader.times.ranges.len() < MAX_RANGES {
        let before = (reader.times.ranges.len(), reader.times.yearless.len());
        let next = at + reader.step(at).max(1);
        if before != (reader.times.ranges.len(), reader.times.yearless.len()) {
            reader.times.places.push(at..next);
        }
        at = next;
    }
    if !text.is_ascii() {
        reader.runs();
    }
    let mut times = reader.times;
    times.ranges.truncate(MAX_RANGES);
    times
}

/// Whether a word means a day counted from today, such as "yesterday".
pub(crate) fn is_relative_day(word: &str, language: Language) -> bool {
    matches!(sense(word, language), Some(Sense::Day(_)))
}

fn date(year: i32, month: u8, day: u8) -> Option<Day> {
    Date::new(i16::try_from(year).ok()?, month as i8, day as i8).ok().map(day_of)
}

fn month(year: i32, month: u8) -> Option<Days> {
    let start = date(year, month, 1)?;
    let end = if month == 12 { date(year + 1, 1, 1)? } else { date(year, month + 1, 1)? };
    Some(Days { start, end: end - 1 })
}

fn year(year: i32) -> Option<Days> {
    Some(Days { start: date(year, 1, 1)?, end: date(year, 12, 31)? })
}

/// Monday is 0.
fn weekday(day: Day) -> i32 {
    (day + 3).rem_euclid(7)
}

struct Reader<'a> {
    text: &'a str,
    words: &'a Words,
    language: Language,
    anchor: Option<Day>,
    times: Times,
}

impl<'a> Reader<'a> {
    fn sense(&self, at: usize) -> Option<Sense> {
        sense(self.words.lower(at), self.language)
    }

    /// A number of at most four digits. An ordinal such as "8th" has one too.
    fn number(&self, at: usize) -> Option<u16> {
        let word = self.words.lower(at);
        let digits = word.bytes().take_while(u8::is_ascii_digit).count();
        if !(1..=4).contains(&digits)
            || !matches!(&word[digits..], "" | "st" | "nd" | "rd" | "th" | "er" | "ª" | "º")
        {
            return None;
        }
        word[..digits].parse().ok()
    }

    fn day_number(&self, at: usize) -> Option<u8> {
        self.number(at).filter(|day| (1..=31).contains(day)).map(|day| day as u8)
    }

    fn year_number(&self, at: usize) -> Option<i32> {
        (self.words.lower(at).len() == 4).then_some(())?;
        self.number(at).filter(|year| (1900..=2100).contains(year)).map(i32::from)
    }

    /// How many things: a number or a word such as "two".
    fn count(&self, at: usize) -> Option<i32> {
        if let Some(Sense::Count(count)) = self.sense(at) {
            return Some(i32::from(count));
        }
        self.number(at).filter(|count| *count <= 1000).map(i32::from)
    }

    fn unit(&self, at: usize) -> Option<Unit> {
        match self.sense(at) {
            Some(Sense::Unit(unit)) => Some(unit),
            _ => None,
        }
    }

    fn push(&mut self, range: Option<Days>) {
        self.times.has_time = true;
        if let Some(range) = range
            && !self.times.ranges.contains(&range)
        {
            self.times.ranges.push(range);
        }
    }

    /// The text between two words.
    fn gap(&self, at: usize) -> &'a str {
        match (self.words.get(at), self.words.get(at + 1)) {
            (Some((a, _)), Some((b, _))) => &self.text[a.end..b.start],
            _ => "",
        }
    }

    /// Reads what begins at a word. Returns the number of words that it has.
    fn step(&mut self, at: usize) -> usize {
        if self.number(at).is_some() {
            return self.at_number(at);
        }
        match self.sense(at) {
            None => 0,
            Some(Sense::Month(month)) => self.at_month(at, month, true),
            Some(Sense::WeakMonth(month)) => self.at_month(at, month, false),
            Some(Sense::Day(offset)) => {
                self.relative_day(at, offset);
                1
            }
            Some(Sense::Weekday(day)) => self.at_weekday(at, day),
            Some(Sense::WeakWeekday(day)) => match self.sense(at + 1) {
                Some(Sense::Relative(_)) => self.at_weekday(at, day),
                _ => 0,
            },
            Some(Sense::Relative(step)) => self.at_relative(at, step),
            Some(Sense::Count(_)) => self.at_count(at),
            Some(Sense::AgoBefore) => self.at_ago_before(at),
            Some(Sense::In) => self.at_in(at),
            Some(Sense::Unit(unit)) => {
                if let Some(Sense::Relative(step)) = self.sense(at + 1) {
                    self.unit_range(unit, step);
                    return 2;
                }
                if unit == Unit::Weekend {
                    self.unit_range(unit, 0);
                }
                self.times.has_time = true;
                1
            }
            Some(Sense::Season(season)) => {
                if let Some(year) = self.year_number(at + 1) {
                    self.push(season_range(year, season));
                    return 2;
                }
                self.times.has_time = true;
                1
            }
            Some(Sense::Ago) => {
                self.times.has_time = true;
                1
            }
        }
    }

    fn at_number(&mut self, at: usize) -> usize {
        if let Some(read) = self.numeric(at) {
            return read;
        }
        if let Some(day) = self.day_number(at) {
            let month_at = if is_of(self.words.lower(at + 1)) { at + 2 } else { at + 1 };
            if let Some(Sense::Month(month) | Sense::WeakMonth(month)) = self.sense(month_at) {
                let year_at = if is_of(self.words.lower(month_at + 1)) { month_at + 2 } else { month_at + 1 };
                let year = self.year_number(year_at);
                self.month_day(MonthDay { month, day: Some(day) }, year);
                return if year.is_some() { year_at + 1 - at } else { month_at + 1 - at };
            }
        }
        let counted = self.at_count(at);
        if counted > 0 {
            return counted;
        }
        if let Some(number) = self.year_number(at) {
            let before = at.checked_sub(1).map_or("", |before| self.words.lower(before));
            if is_before_year(before)
                || matches!(sense(before, self.language), Some(Sense::Season(_) | Sense::In))
            {
                self.push(year(number));
            }
            return 1;
        }
        if self.gap(at) == ":" && self.number(at + 1).is_some_and(|minute| minute < 60) {
            self.times.has_time = true;
            return 2;
        }
        self.times.has_time |= matches!(self.words.lower(at + 1), "am" | "pm");
        1
    }

    /// Dates in digits: 2023-05-08, 8.5.2023, 5/8/2023.
    fn numeric(&mut self, at: usize) -> Option<usize> {
        let gap = self.gap(at);
        if !matches!(gap, "-" | "/" | ".") || self.gap(at + 1) != gap {
            return None;
        }
        if let Some(year) = self.year_number(at) {
            let (month, day) = (self.day_number(at + 1)?, self.day_number(at + 2)?);
            self.push(Some(Days::one(date(year, month, day)?)));
            return Some(3);
        }
        let (first, second, year) =
            (self.day_number(at)?, self.day_number(at + 1)?, self.year_number(at + 2)?);
        let day_first = date(year, second, first).map(Days::one);
        let month_first = date(year, first, second).map(Days::one);
        // With points the day is first. With slashes both orders are in use.
        self.push(Some(day_first.or(month_first)?));
        if gap == "/" && month_first.is_some() {
            self.push(month_first);
        }
        Some(3)
    }

    fn at_month(&mut self, at: usize, month: u8, is_sure: bool) -> usize {
        let before = at.checked_sub(1).map_or("", |before| self.words.lower(before));
        if let Some(day) = self.day_number(at + 1)
            && self.unit(at + 2).is_none()
        {
            let year = self.year_number(at + 2);
            self.month_day(MonthDay { month, day: Some(day) }, year);
            return if year.is_some() { 3 } else { 2 };
        }
        let year_at = if is_of(self.words.lower(at + 1)) { at + 2 } else { at + 1 };
        if let Some(year) = self.year_number(year_at) {
            self.month_day(MonthDay { month, day: None }, Some(year));
            return year_at + 1 - at;
        }
        let is_capital = self
            .words
            .get(at)
            .is_some_and(|(word, _)| self.text[word.start..].chars().next().is_some_and(char::is_uppercase));
        let in_month = matches!(sense(before, self.language), Some(Sense::In)) || is_before_month(before);
        if is_sure || (is_capital && in_month) {
            self.month_day(MonthDay { month, day: None }, None);
            return 1;
        }
        0
    }

    fn month_day(&mut self, at: MonthDay, year: Option<i32>) {
        if let Some(year) = year {
            return self.push(at.in_year(year));
        }
        self.times.has_time = true;
        self.times.yearless.push(at);
        let Some(anchor) = self.anchor else { return };
        let Some(now) = date_of(anchor) else { return };
        let nearest = (-1..=1)
            .filter_map(|step| at.in_year(i32::from(now.year()) + step))
            .min_by_key(|range| if range.contains(anchor) { 0 } else { (range.start - anchor).abs() });
        self.push(nearest);
    }

    fn relative_day(&mut self, at: usize, offset: i8) {
        // "the day before yesterday", "the day after tomorrow"
        let further = at >= 2
            && self.unit(at - 2) == Some(Unit::Day)
            && matches!((self.words.lower(at - 1), offset), ("before", -1) | ("after", 1));
        let offset = i32::from(if further { offset * 2 } else { offset });
        self.push(self.anchor.map(|anchor| Days::one(anchor + offset)));
    }

    fn at_weekday(&mut self, at: usize, day: u8) -> usize {
        let Some(anchor) = self.anchor else {
            self.times.has_time = true;
            return 1;
        };
        let step = match self.sense(at + 1) {
            Some(Sense::Relative(step)) => Some(step),
            _ => None,
        };
        self.weekday_range(anchor, day, step);
        1 + usize::from(step.is_some())
    }

    fn weekday_range(&mut self, anchor: Day, day: u8, step: Option<i8>) {
        let back = (weekday(anchor) - i32::from(day)).rem_euclid(7);
        let past = anchor - if back == 0 { 7 } else { back };
        let next = anchor + if back == 0 { 7 } else { 7 - back };
        match step {
            Some(-1) => self.push(Some(Days::one(past))),
            Some(1) => self.push(Some(Days::one(next))),
            _ => {
                self.push(Some(Days::one(past)));
                self.push(Some(Days::one(next)));
            }
        }
    }

    /// "last week", "next May", "this Friday".
    fn at_relative(&mut self, at: usize, step: i8) -> usize {
        match (self.sense(at + 1), self.anchor) {
            (Some(Sense::Unit(unit)), _) => {
                self.unit_range(unit, step);
                2
            }
            (Some(Sense::Weekday(day) | Sense::WeakWeekday(day)), Some(anchor)) => {
                self.weekday_range(anchor, day, Some(step));
                2
            }
            (Some(Sense::Month(month) | Sense::WeakMonth(month)), Some(anchor)) => {
                let Some(now) = date_of(anchor) else { return 2 };
                let at = MonthDay { month, day: None };
                let ranges = (-1..=1).filter_map(|years| at.in_year(i32::from(now.year()) + years));
                let range = match step {
                    -1 => ranges.filter(|range| range.end < anchor).max(),
                    1 => ranges.filter(|range| range.start > anchor).min(),
                    _ => at.in_year(i32::from(now.year())),
                };
                self.push(range);
                2
            }
            (Some(Sense::Season(season)), Some(anchor)) => {
                let Some(now) = date_of(anchor) else { return 2 };
                let ranges = (-1..=1).filter_map(|years| season_range(i32::from(now.year()) + years, season));
                let range = match step {
                    -1 => ranges.filter(|range| range.end < anchor).max(),
                    1 => ranges.filter(|range| range.start > anchor).min(),
                    _ => season_range(i32::from(now.year()), season),
                };
                self.push(range);
                2
            }
            (Some(Sense::Weekday(_) | Sense::Month(_) | Sense::Season(_)), None) => {
                self.times.has_time = true;
                2
            }
            // "the past two weeks", "letzten zwei Wochen"
            _ => {
                if let (Some(count), Some(unit)) = (self.count(at + 1), self.unit(at + 2)) {
                    let days = count.saturating_mul(unit.days()).min(36_500);
                    let range = |anchor: Day| match step {
                        -1 => Days { start: anchor - days, end: anchor },
                        _ => Days { start: anchor, end: anchor + days },
                    };
                    self.push(self.anchor.map(range));
                    return 3;
                }
                0
            }
        }
    }

    /// "two weeks ago", "three days later". The count is at `at`.
    fn at_count(&mut self, at: usize) -> usize {
        let (Some(count), Some(unit)) = (self.count(at), self.unit(at + 1)) else { return 0 };
        self.times.has_time = true;
        if self.sense(at + 2) == Some(Sense::Ago) {
            self.shifted(-count, unit);
            return 3;
        }
        2
    }

    /// "vor zwei Wochen", "hace dos semanas".
    fn at_ago_before(&mut self, at: usize) -> usize {
        let (Some(count), Some(unit)) = (self.count(at + 1), self.unit(at + 2)) else { return 0 };
        self.shifted(-count, unit);
        3
    }

    /// "in two weeks". "in May" is read at the month.
    fn at_in(&mut self, at: usize) -> usize {
        let (Some(count), Some(unit)) = (self.count(at + 1), self.unit(at + 2)) else { return 0 };
        if self.words.lower(at + 1).len() == 4 {
            return 0; // a year
        }
        self.shifted(count, unit);
        3
    }

    /// So many units before or after the anchor. A long distance is meant less exactly.
    fn shifted(&mut self, count: i32, unit: Unit) {
        let count = count.clamp(-1000, 1000);
        let range = self.anchor.and_then(|anchor| match unit {
            Unit::Day => Some(Days::one(anchor + count)),
            Unit::Week | Unit::Weekend => {
                let middle = anchor + 7 * count;
                Some(Days { start: middle - 3, end: middle + 3 })
            }
            Unit::Month => {
                let now = date_of(anchor)?;
                let months = i32::from(now.year()) * 12 + i32::from(now.month()) - 1 + count;
                month(months.div_euclid(12), months.rem_euclid(12) as u8 + 1)
            }
            Unit::Year => year(i32::from(date_of(anchor)?.year()) + count),
        });
        self.push(range);
    }

    /// The unit before the anchor's one (-1), the anchor's one (0), or the next one (1).
    fn unit_range(&mut self, unit: Unit, step: i8) {
        self.times.has_time = true;
        let Some(anchor) = self.anchor else { return };
        let step = i32::from(step);
        match unit {
            Unit::Day => self.push(Some(Days::one(anchor + step))),
            Unit::Week => {
                let monday = anchor - weekday(anchor) + 7 * step;
                self.push(Some(Days { start: monday, end: monday + 6 }));
            }
            Unit::Weekend => {
                let saturday = anchor - weekday(anchor) + 5;
                let of = |saturday: Day| Some(Days { start: saturday, end: saturday + 1 });
                if step <= 0 {
                    self.push(of(saturday - 7));
                }
                if step >= 0 {
                    self.push(of(if step == 1 && weekday(anchor) >= 5 { saturday + 7 } else { saturday }));
                }
            }
            Unit::Month | Unit::Year => self.shifted(step, unit),
        }
    }

    /// Dates in Chinese, Japanese and Korean, which have no spaces around them.
    fn runs(&mut self) {
        for (needle, meaning) in senses::IN_RUNS {
            if self.times.ranges.len() < MAX_RANGES && self.text.contains(needle) {
                match *meaning {
                    senses::InRun::Day(offset) => {
                        self.push(self.anchor.map(|anchor| Days::one(anchor + i32::from(offset))));
                    }
                    senses::InRun::Unit(unit, step) => self.unit_range(unit, step),
                }
            }
        }
        // 2023年5月8日, 5월 8일, 5月
        let mut at = 0;
        while at < self.words.len() && self.times.ranges.len() < MAX_RANGES {
            let starts = |place: usize, signs: [char; 2]| self.words.lower(place).starts_with(signs);
            let (mut place, mut year_number) = (at, None);
            if self.year_number(place).is_some() && starts(place + 1, ['年', '년']) {
                year_number = self.year_number(place);
                place += 2;
            }
            let mut read = place - at;
            if let Some(month_number) = self.day_number(place).filter(|month| *month <= 12)
                && starts(place + 1, ['月', '월'])
            {
                let day = self.day_number(place + 2).filter(|_| starts(place + 3, ['日', '일']));
                read = place + 2 - at + if day.is_some() { 2 } else { 0 };
                self.month_day(MonthDay { month: month_number, day }, year_number);
            } else if let Some(number) = year_number {
                self.push(year(number));
            }
            at += read.max(1);
        }
    }
}

fn is_of(word: &str) -> bool {
    matches!(word, "of" | "de" | "do" | "del" | "di")
}

fn is_before_year(word: &str) -> bool {
    matches!(
        word,
        "since"
            | "from"
            | "of"
            | "during"
            | "until"
            | "till"
            | "by"
            | "early"
            | "late"
            | "mid"
            | "year"
            | "before"
            | "after"
            | "seit"
            | "ab"
            | "bis"
            | "jahr"
            | "depuis"
            | "dès"
            | "année"
            | "desde"
            | "hasta"
            | "año"
            | "de"
            | "dal"
            | "del"
            | "anno"
            | "ano"
            | "sinds"
            | "tot"
            | "jaar"
            | "sedan"
            | "från"
            | "siden"
            | "fra"
            | "с"
            | "до"
    )
}

fn is_before_month(word: &str) -> bool {
    matches!(
        word,
        "since"
            | "from"
            | "of"
            | "during"
            | "until"
            | "till"
            | "by"
            | "early"
            | "late"
            | "mid"
            | "end"
            | "before"
            | "after"
            | "seit"
            | "ab"
            | "bis"
            | "anfang"
            | "mitte"
            | "ende"
            | "depuis"
            | "début"
            | "fin"
            | "desde"
            | "hasta"
            | "de"
            | "sinds"
            | "tot"
            | "och"
            | "and"
    )
}

/// Seasons of the northern hemisphere. Winter begins in the year before.
fn season_range(year: i32, season: u8) -> Option<Days> {
    let (start, end) = match season {
        0 => (month(year, 3)?, month(year, 5)?),
        1 => (month(year, 6)?, month(year, 8)?),
        2 => (month(year, 9)?, month(year, 11)?),
        _ => (month(year - 1, 12)?, month(year, 2)?),
    };
    Some(Days { start: start.start, end: end.end })
}
