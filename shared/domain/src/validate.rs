//! Validation of outside input. Every error names the field and the limit, and all errors are reported at once.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Deserializer, Serialize};

/// The message for a time that is not [`is_sane`].
pub const TIME_LIMIT: &str = "must be between the years 1970 and 9000";

/// The highest value of a stored number: a counter, a size in bytes, or an amount in micro-dollars. Sums and products of a few
/// such numbers fit into 64 bits.
pub const MAX_STORED: u64 = 1_000_000_000_000;

/// Whether a time is far enough from the ends of the calendar for all arithmetic, and has a year of four digits. Keys
/// are sorted as text, so all years need the same length.
#[must_use]
pub fn is_sane(time: Timestamp) -> bool {
    (1970..=9000).contains(&TimeZone::UTC.to_datetime(time).year())
}

/// One error in one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct FieldError {
    /// The path of the field: `task_config.instructions`, `schedule.cron`.
    pub field: String,
    /// What is wrong, with the limit: "must be 1 to 200 characters, is 314".
    pub message: String,
}

/// All errors of one input, in the order of its fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
#[error("{}", summary(.0))]
pub struct FieldErrors(pub Vec<FieldError>);

fn summary(errors: &[FieldError]) -> String {
    errors.iter().map(|e| format!("{}: {}", e.field, e.message)).collect::<Vec<_>>().join("; ")
}

impl FieldErrors {
    /// A single error.
    #[must_use]
    pub fn one(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self(vec![FieldError { field: field.into(), message: message.into() }])
    }

    pub fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.0.push(FieldError { field: field.into(), message: message.into() });
    }

    /// Adds the errors of a nested value. Their field paths get the prefix `prefix`.
    pub fn nest<T>(&mut self, prefix: &str, result: Result<T, Self>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(Self(errors)) => {
                self.0.extend(errors.into_iter().map(|e| FieldError { field: join(prefix, &e.field), ..e }));
                None
            }
        }
    }

    /// Checks that `text` has `min` to `max` characters. Leading and trailing whitespace does not count towards `min`.
    /// An absent field counts as an empty text.
    pub fn length(&mut self, field: &str, text: &str, min: usize, max: usize) {
        let (characters, visible) = (text.chars().count(), text.trim().chars().count());
        let limit =
            if min == 0 { format!("at most {max} characters") } else { format!("{min} to {max} characters") };
        if visible < min && text.is_empty() {
            self.add(field, format!("is required ({limit})"));
        } else if visible < min && visible == 0 {
            self.add(field, format!("must not be blank ({limit})"));
        } else if visible < min || characters > max {
            self.add(field, format!("must be {limit}, is {characters}"));
        }
    }

    /// Checks that calendars, sort keys and clients can handle a time.
    pub fn time(&mut self, field: &str, time: Timestamp) {
        if !is_sane(time) {
            self.add(field, TIME_LIMIT);
        }
    }

    /// Checks that `number` is 0 to `max`.
    pub fn most(&mut self, field: &str, number: u64, max: u64) {
        if number > max {
            self.add(field, format!("must be 0 to {max}, is {number}"));
        }
    }

    /// Checks that `text` is a SHA-256 as the platform writes it. Keys of objects are built from it.
    pub fn sha256(&mut self, field: &str, text: &str) {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() != 64 || !text.bytes().all(is_digit) {
            self.add(field, "must be a SHA-256: 64 lower-case hexadecimal digits");
        }
    }

    /// # Errors
    /// `self` if it has any error.
    pub fn into_result<T>(self, value: T) -> Result<T, Self> {
        if self.0.is_empty() { Ok(value) } else { Err(self) }
    }
}

/// Distinguishes a field that is `null` (`Some(None)`) from one that is left out (`None`).
pub(crate) fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

fn join(prefix: &str, field: &str) -> String {
    match (prefix.is_empty(), field.is_empty()) {
        (true, _) => field.to_owned(),
        (_, true) => prefix.to_owned(),
        _ if field.starts_with('[') => format!("{prefix}{field}"),
        _ => format!("{prefix}.{field}"),
    }
}
