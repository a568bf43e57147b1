//! `notices snooze`: nothing is sent before a time.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{PATH, told};
use crate::Failure;
use crate::server::ServerError;
use crate::shell::api::{Api, parsed, patiently};
use crate::shell::screen::line;
use crate::shell::times;
use crate::shell::values::Fields;

/// How often a change is made again that somebody else was faster with.
const TRIES: u32 = 3;

/// The longest snooze, in minutes. More is a mistake: nobody would be told for a year.
const LONGEST: i64 = 366 * 24 * 60;

/// Sets or ends the snooze, and leaves everything else as it is.
///
/// # Errors
/// If the time can't be read or is over, or the server refuses it.
pub fn run(api: &Api, when: &[String], json: bool) -> Result<(), Failure> {
    let until = wanted(api, when)?;
    let mut tries = 0;
    loop {
        tries += 1;
        let read = api.get_bytes(PATH, &[])?;
        let mut preferences = parsed(&read.body)?;
        if let Some(fields) = preferences.as_object_mut() {
            // It counts changes, and the server does not take it back.
            fields.remove("version");
        }
        preferences["snoozed_until"] = until.map_or(Value::Null, |until| json!(until.to_string()));
        match patiently(|| api.server.put_json(PATH, &preferences, read.etag.as_deref())) {
            Ok(answer) => {
                let stored = parsed(&answer.body)?;
                let text = match stored.some("snoozed_until") {
                    Some(until) => format!("Nothing is sent before {}.", api.when(until)),
                    None => "Notices are sent again.".to_owned(),
                };
                return told(&stored, json, &text);
            }
            // The change of somebody else must not be lost.
            Err(ServerError::Refused { status: 409 | 412, .. }) if tries < TRIES => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether an instant of the API is in the future.
pub fn is_ahead(text: &str) -> bool {
    text.parse::<Timestamp>().is_ok_and(|at| at > Timestamp::now())
}

fn wanted(api: &Api, when: &[String]) -> Result<Option<Timestamp>, Failure> {
    let now = Timestamp::now();
    let words: Vec<&str> = when.iter().map(String::as_str).collect();
    match words[..] {
        ["off"] => Ok(None),
        ["until", ref time @ ..] if !time.is_empty() => {
            let text = time.join(" ");
            let at = times::instant(&text, "until", api.zone(), now, false)?;
            if at <= now {
                return Err(Failure::Message(format!("until `{}` is over", line(&text))));
            }
            Ok(Some(at))
        }
        [duration] if duration != "until" => match minutes(duration) {
            Some(minutes) => Ok(Some(now + SignedDuration::from_mins(minutes))),
            None => Err(unclear(duration)),
        },
        _ => Err(unclear(&words.join(" "))),
    }
}

fn unclear(text: &str) -> Failure {
    Failure::Message(format!(
        "`notices snooze` takes a duration from 1m to 366d, such as 30m, 2h or 1d, `until TIME` or `off`, and not `{}`",
        line(text)
    ))
}

/// The minutes of a duration such as `30m`, `2h` or `1d`.
fn minutes(text: &str) -> Option<i64> {
    let unit = match text.chars().last()? {
        'm' => 1,
        'h' => 60,
        'd' => 24 * 60,
        _ => return None,
    };
    let number = &text[..text.len() - 1];
    let is_plain = (1..=6).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
    let minutes = number.parse::<i64>().ok().filter(|_| is_plain)? * unit;
    (1..=LONGEST).contains(&minutes).then_some(minutes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_one_unit_and_a_limit() {
        for (text, told) in [("1m", 1), ("90m", 90), ("2h", 120), ("1d", 1_440), ("366d", 527_040)] {
            assert_eq!(minutes(text), Some(told), "{text}");
        }
        for wrong in
            ["", "m", "0m", "2", "-1h", "+1h", "1.5h", "2w", "367d", "9999999h", "2 h", "2hh", "١h", "2é"]
        {
            assert_eq!(minutes(wrong), None, "{wrong}");
        }
    }
}
