//! A JSON reader that keeps positions. It stops at the first error and says what is wrong there. What Shopify reads and JSON does not
//! allow is no error: see [`Parsed::doubts`].

use crate::text::Span;

#[derive(Debug)]
pub struct Node {
    pub at: usize,
    pub value: Value,
}

#[derive(Debug)]
pub enum Value {
    Null,
    Bool(bool),
    Number(f64),
    String(String),
    Array(Vec<Node>),
    Object(Vec<Member>),
}

#[derive(Debug)]
pub struct Member {
    pub key: String,
    pub key_at: usize,
    pub node: Node,
}

#[derive(Debug)]
pub struct JsonError {
    pub at: usize,
    pub message: String,
}

/// What a text holds.
#[derive(Debug)]
pub struct Parsed {
    pub root: Node,
    /// What Shopify reads although it is no JSON: a comma before a closing bracket, and comments where they are not expected.
    pub doubts: Vec<JsonError>,
}

impl Node {
    pub fn get(&self, key: &str) -> Option<&Node> {
        // If a key is there twice, the last one counts.
        self.members().iter().rev().find(|member| member.key == key).map(|member| &member.node)
    }

    pub fn members(&self) -> &[Member] {
        if let Value::Object(members) = &self.value { members } else { &[] }
    }

    pub fn items(&self) -> &[Node] {
        if let Value::Array(items) = &self.value { items } else { &[] }
    }

    pub fn is_empty_array(&self) -> bool {
        matches!(&self.value, Value::Array(items) if items.is_empty())
    }

    pub fn text(&self) -> Option<&str> {
        if let Value::String(text) = &self.value { Some(text) } else { None }
    }

    pub fn number(&self) -> Option<f64> {
        if let Value::Number(number) = self.value { Some(number) } else { None }
    }

    pub fn text_of(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Node::text)
    }

    pub fn is_object(&self) -> bool {
        matches!(self.value, Value::Object(_))
    }

    pub fn is_array(&self) -> bool {
        matches!(self.value, Value::Array(_))
    }

    /// What the value is, for messages.
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "an array",
            Value::Object(_) => "an object",
        }
    }
}

/// The deepest nesting that is read.
const MAX_DEPTH: usize = 100;

/// Reads the part `within` of `text`. With `comments`, comments are expected, as Shopify itself writes them into files.
///
/// # Errors
/// The first place that Shopify can't read.
pub fn parse(text: &str, within: Span, comments: bool) -> Result<Parsed, JsonError> {
    let mut reader = Reader {
        bytes: &text.as_bytes()[..(within.end as usize).min(text.len())],
        text,
        at: within.start as usize,
        last: within.start as usize,
        comments,
        doubts: Vec::new(),
    };
    reader.blank()?;
    if reader.at >= reader.bytes.len() {
        return Err(JsonError { at: within.start as usize, message: "there is no JSON here".to_owned() });
    }
    let node = reader.value(0)?;
    reader.blank()?;
    if reader.at < reader.bytes.len() {
        return reader.fail(reader.at, "there is text after the end of the JSON");
    }
    Ok(Parsed { root: node, doubts: reader.doubts })
}

/// Calls `report` with every key that its object has already.
pub fn duplicates(node: &Node, report: &mut dyn FnMut(&Member)) {
    for (index, member) in node.members().iter().enumerate() {
        if node.members().len() < 400 && node.members()[..index].iter().any(|other| other.key == member.key) {
            report(member);
        }
        duplicates(&member.node, report);
    }
    if node.members().len() >= 400 {
        let mut seen = rustc_hash::FxHashSet::default();
        for member in node.members() {
            if !seen.insert(member.key.as_str()) {
                report(member);
            }
        }
    }
    for item in node.items() {
        duplicates(item, report);
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    text: &'a str,
    at: usize,
    /// The end of the last token. A missing comma belongs there.
    last: usize,
    comments: bool,
    doubts: Vec<JsonError>,
}

impl Reader<'_> {
    fn fail<T>(&self, at: usize, message: impl Into<String>) -> Result<T, JsonError> {
        Err(JsonError { at, message: message.into() })
    }

    fn doubt(&mut self, at: usize, what: &str) {
        // One more than can be reported, so that it is known that there are more.
        if self.doubts.len() > super::MAX_NOTES {
            return;
        }
        let message = format!("{what}. Shopify reads it, but it is no JSON, and other programs refuse it");
        self.doubts.push(JsonError { at, message });
    }

    /// A comma that stands before the closing bracket here.
    fn extra_comma(&mut self, bracket: char) {
        self.doubt(self.last - 1, &format!("a comma stands before `{bracket}`"));
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn blank(&mut self) -> Result<(), JsonError> {
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                0xEF if self.bytes[self.at..].starts_with("\u{feff}".as_bytes()) => self.at += 3,
                b'/' if self.bytes.get(self.at + 1) == Some(&b'*') => {
                    self.comment();
                    match memchr::memmem::find(&self.bytes[self.at + 2..], b"*/") {
                        Some(end) => self.at += end + 4,
                        None => return self.fail(self.at, "a comment has no end"),
                    }
                }
                b'/' if self.bytes.get(self.at + 1) == Some(&b'/') => {
                    self.comment();
                    let rest = &self.bytes[self.at..];
                    self.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                }
                b'/' => return self.fail(self.at, "a comment begins with `//` or `/*`"),
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    fn comment(&mut self) {
        if !self.comments {
            self.doubt(self.at, "a comment stands in the JSON");
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, JsonError> {
        self.blank()?;
        let at = self.at;
        if depth > MAX_DEPTH {
            return self.fail(at, "the nesting is too deep");
        }
        let value = match self.peek() {
            None => return self.fail(self.last, "the JSON ends too early"),
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => Value::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b',') => return self.fail(at, "a value is missing before the comma"),
            Some(b'}' | b']') => return self.fail(self.last, "a value is missing"),
            Some(b'\'') => return self.fail(at, "a string needs double quotes"),
            Some(_) => self.word()?,
        };
        self.last = self.at;
        Ok(Node { at, value })
    }

    fn object(&mut self, depth: usize) -> Result<Value, JsonError> {
        let open = self.at;
        self.at += 1;
        self.last = self.at;
        let mut members: Vec<Member> = Vec::new();
        loop {
            self.blank()?;
            let key_at = self.at;
            match self.peek() {
                Some(b'}') if members.is_empty() => break,
                Some(b'}') => {
                    self.extra_comma('}');
                    break;
                }
                Some(b'"') => {}
                None => return self.fail(self.open_place(open), "an object has no end"),
                Some(b',') => return self.fail(key_at, "there is a comma too many"),
                Some(b']') => return self.fail(key_at, "`]` does not close the object"),
                Some(_) => return self.fail(key_at, "a key needs double quotes"),
            }
            let key = self.string()?;
            self.last = self.at;
            self.blank()?;
            if self.peek() != Some(b':') {
                return self.fail(self.last - 1, format!("a colon is missing after \"{key}\""));
            }
            self.at += 1;
            self.last = self.at;
            let node = self.value(depth + 1)?;
            members.push(Member { key, key_at, node });
            self.blank()?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                Some(b']') => return self.fail(self.at, "`]` does not close the object"),
                None => return self.fail(self.open_place(open), "an object has no end"),
                Some(_) => return self.fail(self.last - 1, "a comma is missing after this value"),
            }
            self.last = self.at;
        }
        self.at += 1;
        Ok(Value::Object(members))
    }

    fn array(&mut self, depth: usize) -> Result<Value, JsonError> {
        let open = self.at;
        self.at += 1;
        self.last = self.at;
        let mut items = Vec::new();
        loop {
            self.blank()?;
            match self.peek() {
                Some(b']') if items.is_empty() => break,
                Some(b']') => {
                    self.extra_comma(']');
                    break;
                }
                None => return self.fail(self.open_place(open), "an array has no end"),
                Some(b',') => return self.fail(self.at, "there is a comma too many"),
                Some(b'}') => return self.fail(self.at, "`}` does not close the array"),
                Some(_) => {}
            }
            items.push(self.value(depth + 1)?);
            self.blank()?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                Some(b'}') => return self.fail(self.at, "`}` does not close the array"),
                None => return self.fail(self.open_place(open), "an array has no end"),
                Some(_) => return self.fail(self.last - 1, "a comma is missing after this value"),
            }
            self.last = self.at;
        }
        self.at += 1;
        Ok(Value::Array(items))
    }

    /// Where to report that a bracket has no end: at the last token, because that is where the text breaks off.
    fn open_place(&self, open: usize) -> usize {
        self.last.saturating_sub(1).max(open)
    }

    fn string(&mut self) -> Result<String, JsonError> {
        let open = self.at;
        let mut at = self.at + 1;
        let mut has_escape = false;
        loop {
            match self.bytes.get(at) {
                None => return self.fail(open, "a string has no end"),
                Some(b'"') => break,
                Some(b'\\') => match self.bytes.get(at + 1) {
                    Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                        has_escape = true;
                        at += 2;
                    }
                    Some(b'u')
                        if self.bytes.len() > at + 5
                            && self.bytes[at + 2..at + 6].iter().all(u8::is_ascii_hexdigit) =>
                    {
                        has_escape = true;
                        at += 6;
                    }
                    _ => return self.fail(at, "a backslash in a string begins no escape that JSON knows"),
                },
                Some(b'\n') => return self.fail(open, "a string has no end on its line"),
                Some(byte) if *byte < 0x20 && *byte != b'\t' => {
                    return self.fail(at, "a string has a control character");
                }
                Some(_) => at += 1,
            }
        }
        self.at = at + 1;
        let raw = &self.text[open + 1..at];
        Ok(if has_escape { crate::scan::json::unescape(raw) } else { raw.to_owned() })
    }

    fn number(&mut self) -> Result<Value, JsonError> {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'+' | b'.' | b'_'))
        {
            self.at += 1;
        }
        let raw = &self.text[start..self.at];
        // serde_json knows the grammar of numbers: no leading zero, no trailing point.
        match serde_json::from_str::<f64>(raw) {
            Ok(number) => Ok(Value::Number(number)),
            Err(_) => self.fail(start, format!("`{raw}` is not a number of JSON")),
        }
    }

    fn word(&mut self) -> Result<Value, JsonError> {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_') {
            self.at += 1;
        }
        match &self.text.get(start..self.at).unwrap_or_default() {
            &"true" => Ok(Value::Bool(true)),
            &"false" => Ok(Value::Bool(false)),
            &"null" => Ok(Value::Null),
            &"" => self.fail(start, "this character is not JSON"),
            word => self.fail(start, format!("`{word}` is not JSON: a string needs double quotes")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_is_reported_where_it_is() {
        let check = |text: &str, expected: Option<(usize, &str)>| {
            let found = parse(text, Span::new(0, text.len()), true).err();
            let found = found.as_ref().map(|error| (error.at, error.message.as_str()));
            match (found, expected) {
                (Some((at, message)), Some((place, part))) => {
                    assert!(at == place && message.contains(part), "{text:?}: {at} {message}");
                }
                (found, expected) => assert_eq!(found, expected, "{text:?}"),
            }
        };
        check(r#"/* generated */ {"a": [1, -2.5e3, "x\n\u00e9"], "b": {}}"#, None);
        check("{\"a\": 1\n\"b\": 2}", Some((6, "comma is missing")));
        check("{\"a\": 1,,\n}", Some((8, "comma too many")));
        check("{,}", Some((1, "comma too many")));
        check("[,]", Some((1, "comma")));
        check("{\"a\": 1} /", Some((9, "begins with")));
        check("{\"a\" 1}", Some((3, "colon")));
        check("{\"a\": 'x'}", Some((6, "double quotes")));
        check("{\"a\": True}", Some((6, "True")));
        check("{\"a\": 01}", Some((6, "not a number")));
        check("{\"a\": [1, 2}", Some((11, "does not close the array")));
        check("{\"a\": \"x}", Some((6, "no end")));
        check("{} {}", Some((3, "after the end")));
        check("", Some((0, "no JSON")));
    }
    #[test]
    fn what_shopify_reads_and_json_does_not_allow_is_a_doubt_where_it_is() {
        let doubts = |text: &str, comments: bool| {
            let parsed = parse(text, Span::new(0, text.len()), comments).expect("Shopify reads it");
            parsed.doubts.into_iter().map(|doubt| (doubt.at, doubt.message)).collect::<Vec<_>>()
        };
        let found = doubts("{\"a\": [1, 2,\n],\n}", true);
        assert_eq!(found.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [11, 14]);
        assert!(found[0].1.starts_with("a comma stands before `]`. Shopify reads it"), "{found:?}");
        assert!(found[1].1.starts_with("a comma stands before `}`."), "{found:?}");
        let text = "/* a */ {\"a\": 1 // b\n}";
        assert_eq!(doubts(text, true), []);
        let found = doubts(text, false);
        assert_eq!(found.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0, 16]);
        assert!(found[0].1.starts_with("a comment stands in the JSON."), "{found:?}");
        assert_eq!(doubts(&format!("{}1", "/**/".repeat(10_000)), false).len(), super::super::MAX_NOTES + 1);
        // The values are those without the comma.
        let text = "{\"a\": [1, 2,],}";
        let root = parse(text, Span::new(0, text.len()), false).expect("Shopify reads it").root;
        assert_eq!((root.members().len(), root.get("a").map(|list| list.items().len())), (1, Some(2)));
    }
}
