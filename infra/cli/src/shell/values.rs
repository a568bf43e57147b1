//! Reading the API's JSON. A field that is missing or has another type reads as empty, because a newer or another server may
//! answer differently, and the rest of the answer is still worth showing.

use serde_json::Value;

pub trait Fields {
    fn text(&self, name: &str) -> &str;
    /// A text that is there and not empty.
    fn some(&self, name: &str) -> Option<&str>;
    fn number(&self, name: &str) -> Option<i64>;
    fn is(&self, name: &str) -> bool;
    fn items(&self, name: &str) -> &[Value];
}

impl Fields for Value {
    fn text(&self, name: &str) -> &str {
        self[name].as_str().unwrap_or_default()
    }

    fn some(&self, name: &str) -> Option<&str> {
        self[name].as_str().filter(|text| !text.is_empty())
    }

    fn number(&self, name: &str) -> Option<i64> {
        self[name].as_i64()
    }

    fn is(&self, name: &str) -> bool {
        self[name] == true
    }

    fn items(&self, name: &str) -> &[Value] {
        self[name].as_array().map_or(&[], Vec::as_slice)
    }
}

/// An amount for people, written as the platform writes it: cents, or as many digits as a small amount needs.
#[must_use]
pub fn dollars(micros: i64) -> String {
    let amount = micros as f64 / 1_000_000.0;
    match micros {
        0 => "$0.00".to_owned(),
        -9_999..10_000 => format!("${amount:.4}"),
        _ => format!("${amount:.2}"),
    }
}

/// The schedule in words, without the full stop of the sentence.
#[must_use]
pub fn schedule(value: &Value) -> &str {
    value.text("schedule_text").trim_end_matches('.')
}

/// The cost of a thing, or nothing if it has none.
#[must_use]
pub fn cost(value: &Value) -> String {
    value.number("cost_micros").map(dollars).unwrap_or_default()
}

/// A number with its noun.
#[must_use]
pub fn counted(number: i64, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {many}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_dollars() {
        for (micros, text) in [
            (0, "$0.00"),
            (1, "$0.0000"),
            (1_234, "$0.0012"),
            (9_999, "$0.0100"),
            (10_000, "$0.01"),
            (1_230_000, "$1.23"),
            (12_345_678_901, "$12345.68"),
        ] {
            assert_eq!(dollars(micros), text);
        }
    }

    #[test]
    fn what_is_missing_reads_as_empty() {
        let value = serde_json::json!({"a": 1, "b": "x", "c": ["y"], "d": true, "e": ""});
        assert_eq!((value.text("a"), value.text("b"), value.some("e")), ("", "x", None));
        assert_eq!((value.number("a"), value.number("b")), (Some(1), None));
        assert_eq!(
            (value.items("c").len(), value.items("b").len(), value.is("d"), value.is("a")),
            (1, 0, true, false)
        );
        assert_eq!(Value::Null.text("a"), "");
    }
}
