//! The codes that confirm an e-mail address. Anybody can type the address of somebody else, so notices go to an address only after its
//! reader has given back the code that was sent there. The e-mail with the code has no text that a person can choose.

use std::fmt;

use jiff::{SignedDuration, Timestamp};

/// How many codes there are: eight digits.
pub const CODES: u32 = 100_000_000;

/// How long a code works.
pub const LIFETIME: SignedDuration = SignedDuration::from_hours(1);

/// How many wrong guesses end a code.
pub const MAX_GUESSES: u32 = 5;

/// How many codes go to one address in 24 hours, whoever asks for them.
pub const MAX_TO_ADDRESS: usize = 3;

/// How many codes an account may ask for in 24 hours.
pub const MAX_OF_ACCOUNT: usize = 10;

/// The time in which codes are counted.
pub const WINDOW: SignedDuration = SignedDuration::from_hours(24);

/// Eight digits.
#[derive(Clone, PartialEq, Eq)]
pub struct Code(String);

impl Code {
    #[must_use]
    pub fn new(number: u32) -> Self {
        Self(format!("{:08}", number % CODES))
    }

    /// Reads what a person has typed. Spaces and hyphens do not count. None if it is not eight digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits: String = text.chars().filter(|c| !c.is_whitespace() && *c != '-').take(9).collect();
        let is_code = digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_code.then_some(Self(digits))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// As people read it: `1234 5678`.
impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", &self.0[..4], &self.0[4..])
    }
}

/// Without its digits.
impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Code(…)")
    }
}

/// Adds another code to the times at which codes were sent.
///
/// # Errors
/// When the next code may be sent, if there were `limit` codes in the last 24 hours.
pub fn add(sent: &[Timestamp], limit: usize, now: Timestamp) -> Result<Vec<Timestamp>, Timestamp> {
    let until = |at: &Timestamp| at.saturating_add(WINDOW).unwrap_or(Timestamp::MAX);
    let mut counted: Vec<Timestamp> = sent.iter().copied().filter(|at| until(at) > now).collect();
    counted.sort_unstable();
    if counted.len() >= limit
        && let Some(oldest) = counted.get(counted.len() - limit)
    {
        return Err(until(oldest));
    }
    counted.push(now);
    Ok(counted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hours: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hours)
    }

    #[test]
    fn a_code_is_read_as_people_type_it() {
        assert_eq!(Code::new(1_234).as_str(), "00001234");
        assert_eq!(Code::new(12_345_678).to_string(), "1234 5678");
        for typed in ["12345678", "1234 5678", " 1234-5678\n"] {
            assert_eq!(Code::parse(typed), Some(Code::new(12_345_678)), "{typed}");
        }
        for wrong in ["", "1234567", "123456789", "1234567a", "١٢٣٤٥٦٧٨", "12345678 9"] {
            assert_eq!(Code::parse(wrong), None, "{wrong}");
        }
        assert_eq!(format!("{:?}", Code::new(12_345_678)), "Code(…)");
    }

    #[test]
    fn codes_are_counted_for_24_hours() {
        let mut sent = Vec::new();
        for hour in 0..3 {
            sent = add(&sent, 3, at(hour)).unwrap();
        }
        assert_eq!(add(&sent, 3, at(3)), Err(at(24)));
        assert_eq!(add(&sent, 3, at(23)), Err(at(24)));
        assert_eq!(add(&sent, 3, at(24)), Ok(vec![at(1), at(2), at(24)]));
        // A limit that became smaller counts the newest.
        assert_eq!(add(&sent, 1, at(3)), Err(at(26)));
    }
}
