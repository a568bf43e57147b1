//! The elements of a template, with their attributes.

use memchr::{memchr, memmem};
use theme::text::Span;

pub struct Attribute {
    pub name: Span,
    /// Empty if the attribute has no value.
    pub value: Span,
}

pub struct Element {
    pub name: Span,
    /// Behind the `>`.
    pub end: u32,
    pub attributes: Vec<Attribute>,
}

impl Element {
    /// The value of an attribute, in the file's text.
    pub fn get<'a>(&self, text: &'a str, name: &str) -> Option<&'a str> {
        self.find(text, name).map(|attribute| attribute.value.of(text))
    }

    pub fn find(&self, text: &str, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|attribute| attribute.name.of(text).eq_ignore_ascii_case(name))
    }

    pub fn has(&self, text: &str, name: &str) -> bool {
        self.find(text, name).is_some()
    }

    pub fn is(&self, text: &str, name: &str) -> bool {
        self.name.of(text).eq_ignore_ascii_case(name)
    }
}

/// Reads a text whose Liquid was replaced by blanks. Returns its elements, and the contents of `<style>` and `<script>`.
pub fn read(masked: &str) -> (Vec<Element>, Vec<Span>, Vec<Span>) {
    let bytes = masked.as_bytes();
    let (mut elements, mut styles, mut scripts) = (Vec::new(), Vec::new(), Vec::new());
    let mut at = 0;
    while let Some(open) = memchr(b'<', &bytes[at..]).map(|found| found + at) {
        at = open + 1;
        let rest = &bytes[at..];
        if rest.starts_with(b"!--") {
            at = memmem::find(rest, b"-->").map_or(bytes.len(), |end| at + end + 3);
        } else if rest.first().is_some_and(u8::is_ascii_alphabetic) {
            let name = Span::new(at, at + rest.iter().take_while(|b| is_name(**b)).count());
            let (attributes, end) = attributes(bytes, name.end as usize);
            at = end;
            let end = end as u32;
            let word = name.of(masked);
            let is_style = word.eq_ignore_ascii_case("style");
            if is_style || word.eq_ignore_ascii_case("script") {
                let close: &[u8] = if is_style { b"</style" } else { b"</script" };
                let end = memmem::find(&bytes[at..], close).map_or(bytes.len(), |end| at + end);
                let body = Span::new(at, end);
                if is_style {
                    styles.push(body);
                } else {
                    scripts.push(body);
                }
                at = end;
            }
            elements.push(Element { name, end, attributes });
        }
    }
    (elements, styles, scripts)
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b':' | b'.' | b'@')
}

fn attributes(bytes: &[u8], from: usize) -> (Vec<Attribute>, usize) {
    let mut attributes = Vec::new();
    let mut at = from;
    while at < bytes.len() {
        match bytes[at] {
            b'>' => return (attributes, at + 1),
            b'<' => return (attributes, at),
            b if is_name(b) => {
                let start = at;
                at += bytes[at..].iter().take_while(|b| is_name(**b)).count();
                let name = Span::new(start, at);
                let mut value = Span::new(at, at);
                if bytes.get(at) == Some(&b'=') {
                    at += 1;
                    match bytes.get(at) {
                        Some(&quote @ (b'"' | b'\'')) => {
                            let rest = &bytes[at + 1..];
                            // A value without its end goes to the next element.
                            let length = memchr::memchr2(quote, b'<', rest).unwrap_or(rest.len());
                            value = Span::new(at + 1, at + 1 + length);
                            at = value.end as usize + usize::from(rest.get(length) == Some(&quote));
                        }
                        _ => {
                            let is_end = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'>' | b'<');
                            let length = bytes[at..].iter().take_while(|b| !is_end(b)).count();
                            value = Span::new(at, at + length);
                            at += length;
                        }
                    }
                }
                attributes.push(Attribute { name, value });
            }
            _ => at += 1,
        }
    }
    (attributes, at)
}
