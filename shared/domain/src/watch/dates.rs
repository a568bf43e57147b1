//! The dates of feeds: RFC 822 and its relatives, ISO 8601, and what programs write instead.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// A longer text is not a date.
const MAX_DATE: usize = 100;

/// Minutes east of Greenwich, by the name of a zone. A name that stands for several zones counts as UTC, as most readers do.
const ZONES: [(&str, i64); 33] = [
    ("adt", -180),
    ("ast", -240),
    ("at", -240),
    ("edt", -240),
    ("est", -300),
    ("et", -300),
    ("cdt", -300),
    ("cst", -360),
    ("ct", -360),
    ("mdt", -360),
    ("mst", -420),
    ("mt", -420),
    ("pdt", -420),
    ("pst", -480),
    ("pt", -480),
    ("akdt", -480),
    ("akst", -540),
    ("hst", -600),
    ("ndt", -150),
    ("nst", -210),
    ("bst", 60),
    ("west", 60),
    ("cet", 60),
    ("cest", 120),
    ("met", 60),
    ("mest", 120),
    ("eet", 120),
    ("eest", 180),
    ("msk", 180),
    ("jst", 540),
    ("kst", 540),
    ("aest", 600),
    ("aedt", 660),
];

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// The time that a date of a feed means. A date without a time is midnight, and one without a zone is in UTC.
#[must_use]
pub fn parse(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if text.len() > MAX_DATE {
        return None;
    }
    let text = text.to_ascii_lowercase();
    let begins_with_year = text.bytes().take(4).filter(u8::is_ascii_digit).count() == 4;
    if begins_with_year { numeric(&text) } else { in_words(&text) }
}

/// `2026-11-23T10:00:00.5+01:00`, `2026-11`, `20261123T1000Z`, `2026/11/23 10:00 CET`.
fn numeric(text: &str) -> Option<Timestamp> {
    let end = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '-' | '/' | '.')).unwrap_or(text.len());
    let (date, rest) = text.split_at(end);
    let date = date.trim_end_matches(['-', '/', '.']);
    let parts: Vec<&str> = date.split(['-', '/', '.']).collect();
    let (year, month, day) = match parts[..] {
        [whole] if whole.len() == 8 => (&whole[..4], &whole[4..6], &whole[6..]),
        [year] => (year, "1", "1"),
        [year, month] => (year, month, "1"),
        [year, month, day] => (year, month, day),
        _ => return None,
    };
    if year.len() != 4 {
        return None;
    }
    let date = Date::new(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?).ok()?;
    let rest = rest.strip_prefix('t').unwrap_or(rest).trim();
    if rest.is_empty() || rest == "z" {
        return at(date, Time::midnight(), 0);
    }
    let end = rest.find(|c: char| !c.is_ascii_digit() && !matches!(c, ':' | '.' | ',')).unwrap_or(rest.len());
    let (time, zone) = rest.split_at(end);
    at(date, time_of_day(time)?, offset(zone.trim())?)
}

/// `Mon, 23 Nov 2026 10:00:00 +0100`, `Nov 23, 26 10:00 EST`, `Mon Nov 23 10:00:00 CET 2026`.
fn in_words(text: &str) -> Option<Timestamp> {
    let (mut year, mut month, mut day, mut time, mut zone) = (None, None, None, None, None);
    let (mut afternoon, mut morning) = (false, false);
    // `23-Nov-2026`. A `-` before digits may be that of an offset, so only the first word is split.
    let text = text
        .trim_start_matches(|c: char| c.is_alphabetic() && !starts_with_month(text))
        .trim_start_matches([',', ' ', '.']);
    let mut words = text.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty());
    let first = words.next()?;
    for word in first.split('-').chain(words) {
        let digits = word.bytes().take_while(u8::is_ascii_digit).count();
        if word.contains(':') && digits > 0 {
            let end =
                word.find(|c: char| !c.is_ascii_digit() && !matches!(c, ':' | '.')).unwrap_or(word.len());
            time = Some(time_of_day(&word[..end])?);
            if end < word.len() {
                zone = Some(offset(&word[end..])?);
            }
        } else if digits > 0 {
            let number: i16 = word[..digits].parse().ok()?;
            if digits <= 2 && day.is_none() {
                day = Some(i8::try_from(number).ok()?);
            } else if year.is_none() {
                year = Some(match digits {
                    1 | 2 if number < 90 => 2_000 + number,
                    1 | 2 => 1_900 + number,
                    _ => number,
                });
            } else if time.is_some() {
                zone = zone.or(offset(word));
            } else {
                return None;
            }
        } else if month.is_none() && starts_with_month(word) {
            let at = MONTHS.iter().position(|month| word.starts_with(month))?;
            month = i8::try_from(at + 1).ok();
        } else if matches!(word, "am" | "pm") {
            (morning, afternoon) = (word == "am", word == "pm");
        } else if zone.is_none() && time.is_some() && !word.starts_with('(') {
            zone = Some(offset(word)?);
        }
    }
    let mut time = time.unwrap_or(Time::midnight());
    if afternoon && time.hour() < 12 {
        time = Time::new(time.hour() + 12, time.minute(), time.second(), 0).ok()?;
    } else if morning && time.hour() == 12 {
        time = Time::new(0, time.minute(), time.second(), 0).ok()?;
    }
    at(Date::new(year?, month?, day?).ok()?, time, zone.unwrap_or(0))
}

fn starts_with_month(word: &str) -> bool {
    MONTHS.iter().any(|month| word.starts_with(month))
}

/// `10:00:00.5`, `10:00`, `1000`. Fractions of a second do not count. A leap second is the second before it.
fn time_of_day(text: &str) -> Option<Time> {
    let whole = text.split(['.', ',']).next()?;
    let parts: Vec<&str> = if whole.contains(':') {
        whole.split(':').collect()
    } else if whole.len() >= 4 {
        vec![&whole[..2], &whole[2..4], whole.get(4..6).unwrap_or("0")]
    } else {
        vec![whole]
    };
    let part = |at: usize| parts.get(at).map_or(Some(0_i8), |part| part.parse().ok());
    if parts.len() > 3 {
        return None;
    }
    Time::new(part(0)?, part(1)?, part(2)?.min(59), 0).ok()
}

/// The minutes east of Greenwich of `+01:00`, `-0130`, `+1`, `gmt+2`, `utc` or `cest`.
fn offset(text: &str) -> Option<i64> {
    let text = text.strip_prefix("etc/").unwrap_or(text);
    let text = match text.strip_prefix("gmt").or_else(|| text.strip_prefix("utc")) {
        Some(rest) if rest.starts_with(['+', '-']) => rest,
        _ => text,
    };
    if let Some((sign, digits)) =
        text.strip_prefix('+').map(|rest| (1, rest)).or_else(|| text.strip_prefix('-').map(|rest| (-1, rest)))
    {
        let digits = digits.split_whitespace().next()?;
        let (hours, minutes) = match digits.split_once(':') {
            Some((hours, minutes)) => (hours, minutes),
            None if digits.len() > 2 && digits.is_ascii() => digits.split_at(digits.len() - 2),
            None => (digits, "0"),
        };
        let (hours, minutes): (u8, u8) = (hours.parse().ok()?, minutes.parse().ok()?);
        return Some(sign * (i64::from(hours) * 60 + i64::from(minutes)));
    }
    Some(ZONES.iter().find(|(name, _)| *name == text).map_or(0, |(_, minutes)| *minutes))
}

fn at(date: Date, time: Time, minutes_east: i64) -> Option<Timestamp> {
    let local = DateTime::from_parts(date, time).to_zoned_datetime(TimeZone::UTC).ok()?.timestamp();
    local.checked_sub(SignedDuration::from_mins(minutes_east)).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn dates_of_every_form_are_read() {
        for (text, expected) in [
            ("2026-11-23T10:20:30Z", "2026-11-23T10:20:30Z"),
            ("2026-11-23T10:20:30.125+01:00", "2026-11-23T09:20:30Z"),
            ("2026-11-23T10:20:30.125+0530", "2026-11-23T04:50:30Z"),
            ("2026-11-23T10:20:30-0800", "2026-11-23T18:20:30Z"),
            ("2026-11-23T10:20+01", "2026-11-23T09:20:00Z"),
            ("2026-11-23T10:20", "2026-11-23T10:20:00Z"),
            ("2026-11-23 10:20:30 EST", "2026-11-23T15:20:30Z"),
            ("2026/11/23 10:20:30 +0900", "2026-11-23T01:20:30Z"),
            ("20261123T102030Z", "2026-11-23T10:20:30Z"),
            ("20261123", "2026-11-23T00:00:00Z"),
            ("2026-11-23", "2026-11-23T00:00:00Z"),
            ("2026-11", "2026-11-01T00:00:00Z"),
            (" 2026 ", "2026-01-01T00:00:00Z"),
            ("Mon, 23 Nov 2026 10:20:30 GMT", "2026-11-23T10:20:30Z"),
            ("Mon, 23 Nov 2026 10:20:30 +0100", "2026-11-23T09:20:30Z"),
            ("Mon, 23 Nov 2026 10:20:30 CEST", "2026-11-23T08:20:30Z"),
            ("Mon, 23 Nov 2026 10:20:30 +0000 (UTC)", "2026-11-23T10:20:30Z"),
            ("Monday, 23 November 2026 10:20 PST", "2026-11-23T18:20:00Z"),
            ("23 Nov 26 10:20 UT", "2026-11-23T10:20:00Z"),
            ("Mon,23 Nov 2026 10:20:30 GMT-02:00", "2026-11-23T12:20:30Z"),
            ("Nov 23, 2026 2:05 PM", "2026-11-23T14:05:00Z"),
            ("Nov 23, 2026", "2026-11-23T00:00:00Z"),
            ("Mon Nov 23 10:20:30 2026", "2026-11-23T10:20:30Z"),
            ("Mon Nov  3 10:20:30 PST 2026", "2026-11-03T18:20:30Z"),
            ("23-Nov-2026 10:20:30 -0500", "2026-11-23T15:20:30Z"),
            ("Thu, 31 Dec 98 23:59:60 GMT", "1998-12-31T23:59:59Z"),
            ("Sun, 01 Mar 2026 00:00:00 Nowhere", "2026-03-01T00:00:00Z"),
        ] {
            assert_eq!(parse(text).map(|time| time.to_string()).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "",
            "yesterday",
            "2026-13-01",
            "32 Nov 2026",
            "Mon",
            "23 Nov",
            "20",
            "2026-11-23T25:00",
            "1 2 3 4 5",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "([0-9]{1,4}|-|\\+|:|T|Z|\\.|,|/| |nov|mon|pm|gmt|é){0,14}") {
            let _ = parse(&text);
        }
    }
}
