//! The hash of JSON by its value: blanks, the order of keys and the way a character is escaped do not count.

use serde_json::{Number, Value};
use sha2::{Digest, Sha256};

/// A number with more letters may be more precise than what it is read as, so it counts as it is written.
const MAX_NUMBER: usize = 17;

/// The hash of a text in JSON. `None` if the text is not JSON, or is nested too deeply.
///
/// The text is read once more after `serde_json`, because that would take different long numbers for the same one.
pub(super) fn hash(text: &str) -> Option<String> {
    // What can be read here is nested in at most 127 levels.
    serde_json::from_str::<Value>(text).ok()?;
    let mut out = Vec::new();
    Reader { text, at: 0 }.value(&mut out);
    Some(crate::hex(&Sha256::digest(out)))
}

/// Reads valid JSON.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    /// Adds a value: an array or object as the hash of its parts, and others as text.
    fn value(&mut self, out: &mut Vec<u8>) {
        match self.next() {
            Some(open @ (b'{' | b'[')) => {
                self.at += 1;
                let mut parts = Vec::new();
                while !matches!(self.next(), None | Some(b'}' | b']')) {
                    let mut part = Vec::new();
                    if open == b'{' {
                        self.string(&mut part);
                        // The `:`.
                        self.next();
                        self.at += 1;
                    }
                    self.value(&mut part);
                    parts.push(part);
                    if self.next() == Some(b',') {
                        self.at += 1;
                    }
                }
                self.at += 1;
                if open == b'{' {
                    // A key that comes twice keeps its order, because the last one counts.
                    parts.sort_by(|one, other| key(one).cmp(key(other)));
                }
                let mut hash = Sha256::new_with_prefix([open]);
                for part in parts {
                    hash.update(part.len().to_be_bytes());
                    hash.update(part);
                }
                out.push(open);
                out.extend_from_slice(&hash.finalize());
            }
            Some(b'"') => self.string(out),
            _ => {
                let rest = &self.text[self.at..];
                let end = rest.find(|c: char| matches!(c, ',' | '}' | ']') || c.is_whitespace());
                let literal = &rest[..end.unwrap_or(rest.len())];
                self.at += literal.len();
                let number =
                    serde_json::from_str::<Number>(literal).ok().filter(|_| literal.len() <= MAX_NUMBER);
                out.extend_from_slice(
                    number.map_or_else(|| literal.to_owned(), |number| number.to_string()).as_bytes(),
                );
            }
        }
    }

    /// Adds a string with its quotes.
    fn string(&mut self, out: &mut Vec<u8>) {
        self.next();
        let bytes = self.text.as_bytes();
        let mut end = self.at + 1;
        while let Some(byte) = bytes.get(end).filter(|byte| **byte != b'"') {
            end += if *byte == b'\\' { 2 } else { 1 };
        }
        let literal = self.text.get(self.at..=end).unwrap_or_default();
        self.at = end + 1;
        let text = serde_json::from_str::<String>(literal).unwrap_or_default();
        out.extend_from_slice(Value::from(text).to_string().as_bytes());
    }

    /// The next byte that is not blank.
    fn next(&mut self) -> Option<u8> {
        while self.text.as_bytes().get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.as_bytes().get(self.at).copied()
    }
}

/// The key at the beginning of a part of an object.
fn key(part: &[u8]) -> &[u8] {
    let mut end = 1;
    while let Some(byte) = part.get(end).filter(|byte| **byte != b'"') {
        end += if *byte == b'\\' { 2 } else { 1 };
    }
    &part[..end.min(part.len())]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_value_counts() {
        let same = [
            (r#"{"a": 1, "b": [true, null, "x"]}"#, "{ \"b\":[true,null,\"\\u0078\"],\n\"a\":1 }"),
            (r#"[{"b":{"d":1,"c":2}},{}]"#, r#"[ {"b" : {"c":2, "d":1}} , { } ]"#),
            (r#""\u00e9\n""#, "\"é\\n\""),
            ("1e2", "100.0"),
            (r#"{"\"": 1, "": 2}"#, r#"{"": 2, "\u0022": 1}"#),
        ];
        for (one, other) in same {
            assert_eq!(hash(one).unwrap(), hash(other).unwrap(), "{one}");
        }
        for (one, other) in [
            ("[1,2]", "[2,1]"),
            ("[[],1]", "[[1]]"),
            ("{}", "[]"),
            (r#"{"a":"1"}"#, r#"{"a":1}"#),
            (r#"["a","b"]"#, r#"["a\",\"b"]"#),
            ("123456789012345678901", "123456789012345678902"),
            (r#"{"a":1,"a":2}"#, r#"{"a":2,"a":1}"#),
            ("null", "\"null\""),
        ] {
            assert_ne!(hash(one).unwrap(), hash(other).unwrap(), "{one}");
        }
        for text in ["", "{", "[1,]", "{} {}", "<html>", &"[".repeat(100_000)] {
            assert_eq!(hash(text), None);
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<i32>().prop_map(Value::from),
            "[a\"\\\\é]{0,3}".prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec(("[a-c\"]{0,2}", inner), 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn values_are_the_same_exactly_if_their_hashes_are(one in value(), other in value()) {
            let (text, pretty) = (one.to_string(), serde_json::to_string_pretty(&one).unwrap());
            prop_assert_eq!(hash(&text), hash(&pretty));
            prop_assert_eq!(one == other, hash(&text) == hash(&other.to_string()));
        }
    }
}
