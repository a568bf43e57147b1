//! Durations as people write them.

use std::fmt;

use jiff::{SignedDuration, Span, SpanRelativeTo};

const DAY: i64 = 86_400;

/// A length of time in whole seconds, with its original text: `15m`, `1h 30m`, `2 days`, `PT15M`. Where its seconds count, a day is 24 hours
/// and a week is seven days. Months and years have no fixed length and are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Length {
    text: String,
    seconds: i64,
    /// It is this many whole days, and written as days or weeks.
    days: Option<i32>,
}

impl Length {
    /// # Errors
    /// What is wrong. The message follows the name of a field.
    pub fn parse(text: &str) -> Result<Self, String> {
        const EXPECTED: &str =
            "must be a length of time in whole seconds without months or years, such as 15m, 1h 30m or PT15M";
        let text = text.trim();
        if text.len() > 64 {
            return Err(format!("{EXPECTED}, of at most 64 characters"));
        }
        let span = text.parse::<Span>().map_err(|_| EXPECTED.to_owned())?;
        let duration =
            span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| EXPECTED.to_owned())?;
        if duration.is_negative() || duration.subsec_nanos() != 0 {
            return Err(EXPECTED.to_owned());
        }
        let seconds = duration.as_secs();
        let is_of_days = (span.get_days() != 0 || span.get_weeks() != 0)
            && i64::from(span.get_days()) * DAY + i64::from(span.get_weeks()) * 7 * DAY == seconds;
        let days = is_of_days.then(|| i32::try_from(seconds / DAY).ok()).flatten();
        Ok(Self { text: text.to_owned(), seconds, days })
    }

    /// The number of calendar days, if it is written as days or weeks alone: `1d`, `2 days`, `1w`, `P1D`. `24h` and `1d 12h` are elapsed time.
    #[must_use]
    pub const fn calendar_days(&self) -> Option<i32> {
        self.days
    }

    #[must_use]
    pub const fn seconds(&self) -> i64 {
        self.seconds
    }

    #[must_use]
    pub const fn duration(&self) -> SignedDuration {
        SignedDuration::from_secs(self.seconds)
    }

    /// "1 hour 30 minutes". Days are named only if they are calendar days: `24h` is "24 hours".
    pub(super) fn words(&self) -> String {
        const UNITS: [(i64, &str); 4] = [(DAY, "day"), (3_600, "hour"), (60, "minute"), (1, "second")];
        let units = if self.days.is_some() { &UNITS[..] } else { &UNITS[1..] };
        let mut rest = self.seconds;
        let mut words = Vec::new();
        for (size, unit) in units.iter().copied() {
            let count = rest / size;
            rest %= size;
            if count > 0 {
                words.push(format!("{count} {unit}{}", if count == 1 { "" } else { "s" }));
            }
        }
        if words.is_empty() { "0 seconds".to_owned() } else { words.join(" ") }
    }
}

/// As it was written.
impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
