//! Time zones by name.

use jiff::tz::{self, TimeZone};

/// # Errors
/// What is wrong, with the nearest names there are.
pub(super) fn parse(name: &str) -> Result<TimeZone, String> {
    let name = name.trim();
    if let Ok(zone) = TimeZone::get(name)
        && zone.iana_name().is_some_and(|iana| iana.eq_ignore_ascii_case(name))
        && !zone.is_unknown()
    {
        return Ok(zone);
    }
    let mut message = "must be an IANA time zone such as Europe/Berlin".to_owned();
    match nearest(name).as_slice() {
        [] => {}
        names => message.push_str(&format!("; did you mean {}?", names.join(" or "))),
    }
    Err(message)
}

/// Up to three of the names that differ least from `name`, in whole or after the last slash ("Berlin", "New York"), if
/// they differ in few characters.
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
            // A place that fits is worth less than a whole name that fits.
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

/// Levenshtein's distance in characters.
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
