//! Rewrites serde's error messages for people who know neither serde nor our types.

use jiff::SignedDuration;

use crate::validate::FieldErrors;

/// The message for an unknown field.
pub const UNKNOWN_FIELD: &str = "is not a field here";

/// The error for a serde message about the value at `path`. `whole` names the input itself: `body` or `query`.
#[must_use]
pub fn refusal(whole: &str, path: &str, message: &str) -> FieldErrors {
    let within = if path == "." { "" } else { path };
    let below = |name: &str| if within.is_empty() { name.to_owned() } else { format!("{within}.{name}") };
    // These messages are about a field of the object at the path. Serde's path may already name that field.
    for (begin, says) in [
        ("missing field `", "is required"),
        ("unknown field `", UNKNOWN_FIELD),
        ("duplicate field `", "must be given once"),
    ] {
        let Some((name, rest)) = message.strip_prefix(begin).and_then(|rest| rest.split_once('`')) else {
            continue;
        };
        let named = within == name || within.ends_with(&format!(".{name}"));
        let field = if named { within.to_owned() } else { below(name) };
        let known = rest.strip_prefix(", expected ").map(known_fields);
        return FieldErrors::one(field, format!("{says}{}", known.unwrap_or_default()));
    }
    let field = if within.is_empty() { whole } else { within };
    FieldErrors::one(field, plain(message))
}

/// A length of time in its two largest units: "3 days 4 hours", "2 hours 5 minutes", "40 seconds".
#[must_use]
pub fn span_in_words(span: SignedDuration) -> String {
    const UNITS: [(i64, &str); 4] = [(86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")];
    let seconds = span.as_secs().max(0);
    let largest = UNITS.iter().position(|(size, _)| seconds >= *size).unwrap_or(UNITS.len() - 1);
    let mut rest = seconds;
    let mut words = Vec::new();
    for (size, unit) in UNITS.iter().skip(largest).take(2) {
        let count = rest / size;
        rest %= size;
        if count > 0 || words.is_empty() {
            words.push(format!("{count} {unit}{}", if count == 1 { "" } else { "s" }));
        }
    }
    words.join(" ")
}

/// Serde's list of fields: "one of `a`, `b`", or "there are no fields".
fn known_fields(expected: &str) -> String {
    match expected.strip_prefix("one of ").unwrap_or(expected) {
        "there are no fields" => String::new(),
        names => format!("; the fields are {names}"),
    }
}

/// Rewrites "invalid type: X, expected Y", and names types as JSON does.
fn plain(message: &str) -> String {
    for begin in ["invalid type: ", "invalid value: "] {
        if let Some((is, must)) = message.strip_prefix(begin).and_then(|rest| rest.split_once(", expected "))
        {
            return format!("must be {}, is {}", kind(must), found(is));
        }
    }
    if let Some((is, must)) =
        message.strip_prefix("unknown variant ").and_then(|rest| rest.split_once(", expected "))
    {
        return format!("must be {must}, is {is}");
    }
    if let Some((length, must)) =
        message.strip_prefix("invalid length ").and_then(|rest| rest.split_once(", expected "))
    {
        return format!("must be {}, has {length} items", kind(must));
    }
    // The parsers of numbers and booleans, for values in the query.
    match message {
        "invalid digit found in string" | "cannot parse integer from empty string" => {
            "must be a whole number"
        }
        "number too large to fit in target type" | "number too small to fit in target type" => {
            "is out of range"
        }
        "provided string was not `true` or `false`" => "must be `true` or `false`",
        other if other.contains("did not match any variant") => "has the wrong form",
        // The date library explains its grammar at length.
        other if is_about_time(other) => "must be a time such as 2026-12-01T09:00:00Z",
        other => return other.to_owned(),
    }
    .to_owned()
}

fn is_about_time(message: &str) -> bool {
    ["failed to parse", "datetime", "timestamp", "civil", "RFC 3339"]
        .iter()
        .any(|word| message.contains(word))
}

/// What serde expected, without the names of our types.
fn kind(expected: &str) -> String {
    let words = ["u8", "u16", "u32", "u64", "usize"];
    match expected {
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number".to_owned(),
        number if words.contains(&number) => "a whole number from 0".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "`true` or `false`".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "an object".to_owned(),
        "a borrowed string" | "string" => "a string".to_owned(),
        other if other.starts_with("struct ") || other.starts_with("internally tagged") => {
            "an object".to_owned()
        }
        other if other.starts_with("enum ") || other.starts_with("variant ") => {
            "one of the allowed values".to_owned()
        }
        other if other.contains("RFC 3339") || other.contains("timestamp") => {
            "a time such as 2026-12-01T09:00:00Z".to_owned()
        }
        other => other.to_owned(),
    }
}

/// What serde found.
fn found(found: &str) -> String {
    match found {
        "sequence" => "a list".to_owned(),
        "map" => "an object".to_owned(),
        "unit" | "unit value" | "Option value" => "null".to_owned(),
        other => {
            let (what, value) = other.split_once(' ').unwrap_or((other, ""));
            match what {
                "integer" | "boolean" => value.trim_matches('`').to_owned(),
                "floating" => value.trim_start_matches("point ").trim_matches('`').to_owned(),
                // A long text would hide the message about it.
                "string" if value.chars().count() > 80 => "a longer text".to_owned(),
                "string" => value.to_owned(),
                _ => other.to_owned(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, message: &str, expected: &str) {
        assert_eq!(refusal("body", path, message).to_string(), expected);
    }

    #[test]
    fn serde_is_put_into_plain_words() {
        check(".", "missing field `schedule`", "schedule: is required");
        check("task_config", "missing field `instructions`", "task_config.instructions: is required");
        check(
            ".",
            "unknown field `nmae`, expected `name` or `goal`",
            "nmae: is not a field here; the fields are `name` or `goal`",
        );
        check(
            "budget.x",
            "unknown field `x`, expected one of `a`, `b`",
            "budget.x: is not a field here; the fields are `a`, `b`",
        );
        check("limit", "duplicate field `limit`", "limit: must be given once");
        check("a", "invalid type: integer `3`, expected a string", "a: must be a string, is 3");
        check("a", "invalid type: null, expected a string", "a: must be a string, is null");
        check("a", "invalid value: integer `-1`, expected u64", "a: must be a whole number from 0, is -1");
        check("a", "invalid type: floating point `1.5`, expected i64", "a: must be a whole number, is 1.5");
        check(".", "invalid type: sequence, expected struct NewAgent", "body: must be an object, is a list");
        check(".", "invalid type: map, expected a sequence", "body: must be a list, is an object");
        check(
            "p",
            "unknown variant `x`, expected one of `high`, `low`",
            "p: must be one of `high`, `low`, is `x`",
        );
        check("limit", "invalid digit found in string", "limit: must be a whole number");
        check("limit", "number too large to fit in target type", "limit: is out of range");
        check("at", "failed to parse year in date \"x\"", "at: must be a time such as 2026-12-01T09:00:00Z");
        check(
            "id",
            "must be `agt_` followed by 32 lower-case hexadecimal digits",
            "id: must be `agt_` followed by 32 lower-case hexadecimal digits",
        );
        let long = format!("invalid type: string \"{}\", expected u64", "x".repeat(81));
        check("a", &long, "a: must be a whole number from 0, is a longer text");
    }

    #[test]
    fn lengths_of_time_have_two_units() {
        for (seconds, expected) in [
            (-5, "0 seconds"),
            (0, "0 seconds"),
            (1, "1 second"),
            (60, "1 minute"),
            (61, "1 minute 1 second"),
            (3_600, "1 hour"),
            (3_601, "1 hour"),
            (7_500, "2 hours 5 minutes"),
            (90_061, "1 day 1 hour"),
            (86_400 * 40, "40 days"),
        ] {
            assert_eq!(span_in_words(SignedDuration::from_secs(seconds)), expected);
        }
    }
}
