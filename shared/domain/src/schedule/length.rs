//! Durations as people write them.

use std::fmt;

use jiff::{SignedDuration, Span, SpanRelativeTo};

/// A duration of elapsed time in whole seconds, with its original text: `15m`, `1h 30m`, `2 days`, `PT15M`. A day is 24
/// hours and a week is seven days. Months and years have no fixed length and are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Length {
    text: String,
    seconds: i64,
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
        let duration = text
            .parse::<Span>()
            .and_then(|span| span.to_duration(SpanRelativeTo::days_are_24_hours()))
            .map_err(|_| EXPECTED.to_owned())?;
        if duration.is_negative() || duration.subsec_nanos() != 0 {
            return Err(EXPECTED.to_owned());
        }
        Ok(Self { text: text.to_owned(), seconds: duration.as_secs() })
    }

    #[must_use]
    pub const fn seconds(&self) -> i64 {
        self.seconds
    }

    #[must_use]
    pub const fn duration(&self) -> SignedDuration {
        SignedDuration::from_secs(self.seconds)
    }

    /// "1 hour 30 minutes"
    pub(super) fn words(&self) -> String {
        const UNITS: [(i64, &str); 4] = [(86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")];
        let mut rest = self.seconds;
        let mut words = Vec::new();
        for (size, unit) in UNITS {
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
