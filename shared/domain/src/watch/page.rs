//! What an answer of a server says: the visible text of a page, or a value in JSON.
//!
//! Answers come from strangers. Every function here takes any input, works in time linear in its length, and does not recurse.

use std::borrow::Cow;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::json;
use super::markup::{INLINE, Piece, Walk};
use crate::text::charset;

/// How much of what was found a run is shown, in bytes.
pub const MAX_SHOWN: usize = 4_000;

/// The longest title of a page, in characters.
const MAX_TITLE: usize = 150;

/// What was found at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// SHA-256 of what counts, hexadecimal.
    pub sha256: String,
    /// What earlier versions took for it, if that is another hash: they read all pages as UTF-8, and JSON byte by byte.
    pub earlier_sha256: Option<String>,
    /// The title of a page in HTML, otherwise empty.
    pub title: String,
    /// The beginning of what counts, at most [`MAX_SHOWN`] bytes. Empty if it is not text.
    pub shown: String,
}

/// Why an answer can't be read. It follows the name of the address in a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// A server in trouble often sends nothing with status 200.
    #[error("is empty")]
    Empty,
    #[error("has no text that a person can see")]
    NothingToSee,
    #[error("is not JSON: {0}")]
    NotJson(String),
    #[error("has no value at {0}")]
    NoValue(String),
}

/// Reads the answer of an address.
///
/// # Errors
/// If it is empty, or if `pointer` is set and there is no such value.
pub fn read(content_type: &str, body: &[u8], pointer: Option<&str>) -> Result<Page, Unreadable> {
    let text = charset::decode(content_type, body);
    if text.trim().is_empty() {
        return Err(Unreadable::Empty);
    }
    if let Some(pointer) = pointer {
        let json: Value =
            serde_json::from_str(&text).map_err(|error| Unreadable::NotJson(error.to_string()))?;
        let value = json.pointer(pointer).ok_or_else(|| Unreadable::NoValue(pointer.to_owned()))?;
        let text = value.to_string();
        return Ok(page(hash(text.as_bytes()), None, String::new(), &text));
    }
    let content_type = content_type.to_ascii_lowercase();
    if content_type.contains("html") {
        let (title, visible_text) = visible(&text);
        if visible_text.is_empty() {
            return Err(Unreadable::NothingToSee);
        }
        let as_utf_8 = String::from_utf8_lossy(body);
        let earlier = (as_utf_8 != text).then(|| hash(visible(&as_utf_8).1.as_bytes()));
        return Ok(page(hash(visible_text.as_bytes()), earlier, title, &visible_text));
    }
    let bytes = hash(body);
    if content_type.contains("json") || text.trim_start().starts_with(['{', '[']) {
        // Several values one after another are not JSON. Then each byte counts.
        if let Some(value) = json::hash(&text) {
            return Ok(page(value, Some(bytes), String::new(), &text));
        }
    }
    let is_named_text = content_type.starts_with("text/") || content_type.contains("xml");
    let is_text = is_named_text || matches!(text, Cow::Borrowed(_));
    Ok(page(bytes, None, String::new(), if is_text { &text } else { "" }))
}

fn page(sha256: String, earlier: Option<String>, title: String, text: &str) -> Page {
    let earlier_sha256 = earlier.filter(|earlier| *earlier != sha256);
    Page { sha256, earlier_sha256, title, shown: beginning(text) }
}

fn hash(bytes: &[u8]) -> String {
    crate::hex(&Sha256::digest(bytes))
}

/// The first bytes of a text.
fn beginning(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_SHOWN)].to_owned()
}

/// The title and the visible text of a page: without tags, comments, scripts and styles, and with single spaces. Pages often
/// have numbers in their scripts and attributes that differ at each request, and nobody reads those.
fn visible(html: &str) -> (String, String) {
    // The text is never longer than the page.
    let (mut title, mut out) =
        (String::new(), Text { text: String::with_capacity(html.len()), space: false });
    let mut walk = Walk(html);
    while let Some(piece) = walk.next() {
        match piece {
            Piece::Text(text) => out.push(text),
            Piece::Tag { name, closes } => {
                if !INLINE.contains(&name.as_str()) {
                    out.new_line();
                }
                if !closes && name == "title" && title.is_empty() {
                    let mut text = Text::default();
                    text.push(walk.rest_of(&name));
                    title = text.text.chars().take(MAX_TITLE).collect();
                }
            }
        }
    }
    (title, out.text)
}

/// A text with single spaces and line breaks.
#[derive(Default)]
struct Text {
    text: String,
    /// Whether a space must come before the next word.
    space: bool,
}

impl Text {
    fn push(&mut self, html: &str) {
        let mut rest = html;
        while let Some(next) = rest.chars().next() {
            let (c, length) = match next {
                '&' => entity(rest),
                c => (c, c.len_utf8()),
            };
            rest = &rest[length..];
            if c.is_whitespace() || c.is_control() {
                self.space = true;
            } else {
                if std::mem::take(&mut self.space) && !self.text.is_empty() && !self.text.ends_with('\n') {
                    self.text.push(' ');
                }
                self.text.push(c);
            }
        }
    }

    fn new_line(&mut self) {
        self.space = false;
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }
}

/// The character of a reference such as `&amp;`, and the length of the reference. An unknown one stays as it is.
fn entity(text: &str) -> (char, usize) {
    for (reference, character) in
        [("&amp;", '&'), ("&lt;", '<'), ("&gt;", '>'), ("&quot;", '"'), ("&#39;", '\''), ("&nbsp;", ' ')]
    {
        if text.starts_with(reference) {
            return (character, reference.len());
        }
    }
    ('&', 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_the_visible_text_of_a_page_counts() {
        let page = |nonce: &str, price: &str| {
            format!(
                "<!doctype html><html><head><title>Prices &amp; plans</title><script nonce=\"{nonce}\">let a = '<b>{nonce}</b>';</SCRIPT >\
                 <style>p {{ }}</style></head><body data-x='a>b'><!-- {nonce} --><p>Basic:\n  <b>{price}</b></p><p>5 &lt; 6 < 7</p></body></html>"
            )
        };
        let read = |html: &str| read("text/html; charset=utf-8", html.as_bytes(), None).unwrap();
        let first = read(&page("1", "$9"));
        assert_eq!(
            (first.title.as_str(), first.shown.as_str()),
            ("Prices & plans", "Basic: $9\n5 < 6 < 7\n")
        );
        assert_eq!(first, read(&page("2", "$9")));
        assert_ne!(first.sha256, read(&page("1", "$10")).sha256);
    }

    #[test]
    fn a_pointer_names_the_value_that_counts() {
        let read = |body: &str, pointer| read("application/json", body.as_bytes(), Some(pointer));
        let first = read(r#"{"a": {"b": [1, 2]}, "time": 1}"#, "/a").unwrap();
        assert_eq!(first.shown, r#"{"b":[1,2]}"#);
        assert_eq!(read(r#"{"time": 2, "a": {"b":[1,2]}}"#, "/a").unwrap(), first);
        assert_eq!(read("{}", "/a").unwrap_err().to_string(), "has no value at /a");
        assert!(read("<html>", "/a").unwrap_err().to_string().starts_with("is not JSON: "));
        // Nested too deeply: refused, without a stack overflow.
        assert!(read(&"[".repeat(1_000_000), "").is_err());
    }

    #[test]
    fn json_without_a_pointer_counts_by_its_value() {
        let read = |content_type: &str, body: &str| read(content_type, body.as_bytes(), None).unwrap();
        let first = read("application/json", r#"{"a": 1, "b": {"c": [1, 2], "d": null}}"#);
        assert_eq!(first.shown, r#"{"a": 1, "b": {"c": [1, 2], "d": null}}"#);
        for (content_type, same) in [
            ("application/json", r#"{"b":{"d":null,"c":[1,2]},"a":1}"#),
            (
                "application/feed+json; charset=utf-8",
                "\u{feff}{\"b\":{\"d\":null,\"c\":[1,2]},\n\"\\u0061\":1}",
            ),
            ("text/plain", r#" {"b":{"c":[1,2],"d":null},"a":1}"#),
        ] {
            assert_eq!(read(content_type, same).sha256, first.sha256, "{same}");
        }
        let other = read("application/json", r#"{"a": 1, "b": {"c": [2, 1], "d": null}}"#);
        assert_ne!(other.sha256, first.sha256);
        // Not one value: each byte counts.
        let lines = read("application/x-ndjson", "{\"a\":1}\n{\"a\":2}\n");
        assert_ne!(lines.sha256, read("application/x-ndjson", "{\"a\":1}\n{ \"a\":2}\n").sha256);
    }

    #[test]
    fn an_empty_answer_is_not_a_page() {
        for (content_type, body, pointer, said) in [
            ("text/html", "", None, "is empty"),
            ("", " \n", None, "is empty"),
            ("application/json", "\u{feff}", Some(""), "is empty"),
            (
                "text/html",
                "<html><head><title>A</title></head><body><script>x</script></body></html>",
                None,
                "has no text that a person can see",
            ),
        ] {
            assert_eq!(read(content_type, body.as_bytes(), pointer).unwrap_err().to_string(), said, "{body}");
        }
    }

    #[test]
    fn a_page_is_read_in_its_own_encoding() {
        for (content_type, body, text) in [
            ("text/html; charset=ISO-8859-1", &b"<title>\xc9t\xe9</title><p>Caf\xe9</p>"[..], "Café\n"),
            ("text/html", b"<meta charset=windows-1251><p>\xcc\xe8\xf0</p>", "Мир\n"),
            ("text/html; charset=Shift_JIS", b"<p>\x93\xfa\x96{</p>", "日本\n"),
            ("text/plain; charset=latin1", b"Caf\xe9", "Café"),
        ] {
            let page = read(content_type, body, None).unwrap();
            assert_eq!(page.shown, text);
            assert!(page.title.is_empty() || page.title == "Été", "{}", page.title);
        }
    }

    #[test]
    fn other_answers_count_byte_by_byte() {
        let text = read("text/plain", b"a\n b", None).unwrap();
        assert_eq!(text.shown, "a\n b");
        let image = read("image/png", &[0x89, 0xff, 0], None).unwrap();
        assert_eq!((image.shown.as_str(), image.sha256.len()), ("", 64));
        let long = read("text/plain", "é".repeat(5_000).as_bytes(), None).unwrap();
        assert_eq!(long.shown.len(), MAX_SHOWN);
    }

    proptest! {
        #[test]
        fn any_page_is_read(html in "(<|>|/|!|-|script|title|a|=|\"|'|&amp;|é| |\n){0,60}") {
            // A page without a visible text is refused.
            if let Ok(page) = read("text/html", html.as_bytes(), None) {
                prop_assert!(!page.shown.is_empty() && !page.shown.contains("  "));
            }
        }
    }
}
