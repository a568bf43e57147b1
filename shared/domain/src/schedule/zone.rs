//! Time zones by name.

use jiff::tz::{self, TimeZone};

/// # Errors
/// What is wrong, with the most similar names.
pub(super) fn parse(name: &str) -> Result<TimeZone, String> {
    let name = name.trim();
    if let Ok(zone) = TimeZone::get(name)
        && zone.iana_name().is_some_and(|iana| iana.eq_ignore_ascii_case(name))
        && !zone.is_unknown()
    {
        return Ok(zone);
    }
    let mut message = "must be an IANA time zone such as Europe/Berlin".to_owned();
    if let Some(hours) = hours_from_utc(name) {
        message.push_str(&for_offset(hours));
        return Err(message);
    }
    match nearest(name).as_slice() {
        [] => {}
        names => message.push_str(&format!("; did you mean {}?", names.join(" or "))),
    }
    Err(message)
}

/// The hours of a text such as `GMT+2`, `UTC-05:00`, `+2` or `utc+2`. People mean that many hours ahead of UTC. `None`
/// for any other text. `Some(None)` if the minutes are not whole hours.
fn hours_from_utc(name: &str) -> Option<Option<i32>> {
    let lower = name.to_ascii_lowercase();
    let rest =
        ["utc", "gmt", "z"].iter().find_map(|begin| lower.strip_prefix(begin)).unwrap_or(&lower).trim();
    let (sign, digits) = match rest.split_at_checked(1)? {
        ("+", digits) => (1, digits.trim()),
        ("-", digits) => (-1, digits.trim()),
        _ => return None,
    };
    let (hours, minutes) = match (digits.split_once(':'), digits.len()) {
        (Some(parts), _) => parts,
        (None, 3 | 4) => digits.split_at(digits.len() - 2),
        (None, _) => (digits, "0"),
    };
    let is_number = |text: &str| matches!(text.len(), 1 | 2) && text.bytes().all(|b| b.is_ascii_digit());
    if !is_number(hours) || !is_number(minutes) {
        return None;
    }
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    Some((minutes == 0).then_some(sign * hours))
}

/// What to use instead of an offset from UTC. The names in `Etc/` count hours *behind* UTC, so the sign is reversed. A
/// place is better, because it has the rules of its clock changes.
fn for_offset(hours: Option<i32>) -> String {
    let fixed = match hours {
        Some(0) => Some("UTC".to_owned()),
        Some(ahead @ 1..=14) => Some(format!("Etc/GMT-{ahead}")),
        Some(behind @ -12..=-1) => Some(format!("Etc/GMT+{}", -behind)),
        _ => None,
    };
    let place = "; name a place instead of an offset from UTC, so that clock changes are followed";
    match fixed {
        Some(name) => format!("{place} ({name} always has this offset)"),
        None => place.to_owned(),
    }
}

/// Up to three of the names that differ least from `name`, if they differ in only a few characters. It compares the
/// whole name, and the part after the last slash ("Berlin", "New York").
fn nearest(name: &str) -> Vec<String> {
    let wanted = name.to_lowercase().replace(' ', "_");
    if !(2..=64).contains(&wanted.len()) {
        return Vec::new();
    }
    let few =
        |a: &str, b: &str| Some(distance(a, b)).filter(|distance| *distance <= a.len().div_ceil(5).min(3));
    let mut scored: Vec<(usize, String)> = tz::db()
        .available()
        .filter_map(|known| {
            let lower = known.as_str().to_lowercase();
            // A matching place counts less than a matching whole name.
            let part = few(place(&wanted), place(&lower)).map(|distance| distance + 1);
            let score = few(&wanted, &lower).into_iter().chain(part).min()?;
            Some((score, known.as_str().to_owned()))
        })
        .collect();
    scored.sort();
    let best = scored.first().map(|(score, _)| *score);
    scored.into_iter().filter(|(score, _)| Some(*score) == best).take(3).map(|(_, known)| known).collect()
}

fn place(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or_default()
}

/// The Levenshtein distance in characters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// Zones that simulations try: with half hours, with changes of the clock at odd times, and at the date line.
#[cfg(test)]
pub(crate) const TRIED_ZONES: [&str; 12] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Nuuk",
    "America/Santiago",
    "Africa/Cairo",
    "Asia/Beirut",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Antarctica/Troll",
    "Pacific/Kiritimati",
    "Etc/GMT+12",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The suggested name has the same offset from UTC as the text means.
    #[test]
    fn a_distance_from_utc_is_suggested_with_its_own_sign() {
        for (name, seconds) in [
            ("GMT+2", 7_200),
            ("UTC+2", 7_200),
            ("utc +2", 7_200),
            ("UTC+02:00", 7_200),
            ("+0200", 7_200),
            ("+02", 7_200),
            ("GMT-5", -18_000),
            ("UTC-05:00", -18_000),
            ("-3", -10_800),
            ("UTC+14", 50_400),
            ("UTC+0:00", 0),
        ] {
            let message = parse(name).unwrap_err();
            let suggested =
                message.split_once('(').and_then(|(_, rest)| rest.split_once(" always")).unwrap().0;
            let zone = parse(suggested).unwrap();
            let offset = zone.to_offset(jiff::Timestamp::UNIX_EPOCH);
            assert_eq!(offset.seconds(), seconds, "{name}: {message}");
            assert!(
                message.starts_with("must be an IANA time zone such as Europe/Berlin; name a place"),
                "{message}"
            );
        }
        for name in ["UTC+5:30", "GMT+15", "-13"] {
            let message = parse(name).unwrap_err();
            assert!(message.contains("name a place") && !message.contains("Etc/"), "{name}: {message}");
        }
        for name in ["+", "+x", "+1:2:3", "+123456", "GMT+-2", "zz"] {
            assert!(!parse(name).unwrap_err().contains("distance"), "{name}");
        }
    }

    #[test]
    fn misspelt_names_get_suggestions() {
        assert!(parse("Europe/Berlim").unwrap_err().contains("did you mean Europe/Berlin?"));
        assert!(parse("Etc/GMT-2").is_ok() && parse("utc").is_ok());
    }
}
