//! HTML as its readers see it.

use quick_xml::escape::resolve_html5_entity;

/// The longest name of a character in HTML, in bytes, is `CounterClockwiseContourIntegral`.
const MAX_NAME: usize = 32;

/// Elements whose content nobody sees.
const HIDDEN: [&str; 5] = ["script", "style", "template", "noscript", "svg"];

/// Elements that stand within a line. All others begin a new line.
pub(super) const INLINE: [&str; 18] = [
    "a", "abbr", "b", "bdi", "cite", "code", "em", "font", "i", "img", "kbd", "mark", "s", "small", "span",
    "strong", "sub", "sup",
];

/// Elements whose tags make a text look like HTML, besides those that stand within a line.
const BLOCKS: [&str; 24] = [
    "blockquote",
    "br",
    "dd",
    "del",
    "div",
    "dl",
    "dt",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "ins",
    "li",
    "ol",
    "p",
    "pre",
    "q",
    "table",
    "tt",
    "u",
    "ul",
];

/// Whether a text that may be HTML or not is HTML: it has an end tag or a reference, all tags are of HTML, and so are all references.
/// `Use <b> in HTML` and `if a < b` are not.
pub(super) fn looks_like_html(text: &str) -> bool {
    let mut is_marked = false;
    let mut rest = text;
    while let Some(at) = rest.find(['<', '&']) {
        let begins_tag = rest[at..].starts_with('<');
        rest = &rest[at + 1..];
        if begins_tag {
            let closes = rest.starts_with('/');
            let name = word(&rest[usize::from(closes)..]).to_ascii_lowercase();
            if name.is_empty() {
                continue;
            }
            if !INLINE.contains(&name.as_str()) && !BLOCKS.contains(&name.as_str()) {
                return false;
            }
            is_marked |= closes;
        } else if let Some((name, _)) = reference(rest) {
            if !name.starts_with('#') && resolve_html5_entity(name).is_none() {
                return false;
            }
            is_marked = true;
        }
    }
    is_marked
}

/// A part of HTML that is seen.
pub(super) enum Piece<'a> {
    /// With its references.
    Text(&'a str),
    /// A tag of an element, with its name in lower case.
    Tag { name: String, closes: bool },
}

/// Walks through HTML, without comments and without the content of elements that nobody sees.
pub(super) struct Walk<'a>(pub &'a str);

impl<'a> Walk<'a> {
    /// The rest of the element that was opened last, without its end tag.
    pub(super) fn rest_of(&mut self, name: &str) -> &'a str {
        let (inner, rest) = self.0.split_at(end_of(self.0, name));
        self.0 = rest;
        inner
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        while let Some(comment) = self.0.strip_prefix("<!--") {
            self.0 = comment.find("-->").map_or("", |end| &comment[end + 3..]);
        }
        let html = self.0;
        let first = html.chars().next()?;
        let is_tag = first == '<'
            && html[1..].starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?'));
        if !is_tag {
            let after = first.len_utf8();
            let end = html[after..].find('<').map_or(html.len(), |at| after + at);
            self.0 = &html[end..];
            return Some(Piece::Text(&html[..end]));
        }
        let closes = html[1..].starts_with('/');
        let name = word(&html[1 + usize::from(closes)..]).to_ascii_lowercase();
        self.0 = after_tag(html);
        if !closes && HIDDEN.contains(&name.as_str()) {
            self.rest_of(&name);
        }
        Some(Piece::Tag { name, closes })
    }
}

/// The text of HTML: without tags, comments and what nobody sees.
pub(super) fn text(html: &str) -> String {
    let mut out = String::with_capacity(html.len());
    for piece in Walk(html) {
        match piece {
            Piece::Text(text) => out.push_str(&characters(text)),
            Piece::Tag { name, .. } if !INLINE.contains(&name.as_str()) => out.push(' '),
            Piece::Tag { .. } => {}
        }
    }
    out
}

/// What follows a tag. A `>` in an attribute's quotes does not end it.
fn after_tag(tag: &str) -> &str {
    let mut quote = None;
    for (at, byte) in tag.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return &tag[at + 1..],
            // A quote begins only after the `=` of an attribute. Elsewhere it is a stray character.
            (None, b'"' | b'\'') if tag[..at].trim_end().ends_with('=') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    ""
}

/// Where the end tag of an element begins. An element that is not closed ends with the page.
fn end_of(text: &str, name: &str) -> usize {
    let mut from = 0;
    while let Some(at) = text[from..].find("</") {
        let tag = &text.as_bytes()[from + at + 2..];
        if tag.len() >= name.len() && tag[..name.len()].eq_ignore_ascii_case(name.as_bytes()) {
            return from + at;
        }
        from += at + 2;
    }
    text.len()
}

/// A text with the characters that its references name. An unknown reference stays as it is.
pub(super) fn characters(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        match reference(rest).and_then(|(name, after)| Some((character(name)?, after))) {
            Some((character, after)) => {
                out.push_str(&character);
                rest = after;
            }
            None => out.push('&'),
        }
    }
    out.push_str(rest);
    out
}

/// The name of the reference that begins here, after its `&`, and what follows it.
fn reference(text: &str) -> Option<(&str, &str)> {
    let end = text.bytes().take(MAX_NAME + 1).position(|byte| byte == b';')?;
    let name = &text[..end];
    let letters = name.strip_prefix('#').unwrap_or(name);
    let fits = !letters.is_empty() && letters.bytes().all(|byte| byte.is_ascii_alphanumeric());
    fits.then_some((name, &text[end + 1..]))
}

/// What a reference stands for, by its name: `eacute`, `#233` or `#xe9`.
pub(super) fn character(name: &str) -> Option<String> {
    let Some(number) = name.strip_prefix('#') else { return resolve_html5_entity(name).map(str::to_owned) };
    let code = match number.strip_prefix(['x', 'X']) {
        Some(number) => u32::from_str_radix(number, 16).ok()?,
        None => number.parse().ok()?,
    };
    Some(shown(char::from_u32(code).filter(|c| *c != '\0')?).to_string())
}

/// A control character that a program took from windows-1252, as what it means there.
pub(super) fn shown(c: char) -> char {
    match u8::try_from(u32::from(c)) {
        Ok(byte @ 0x80..=0x9f) => {
            encoding_rs::WINDOWS_1252.decode_without_bom_handling(&[byte]).0.chars().next().unwrap_or(c)
        }
        _ => c,
    }
}

fn word(text: &str) -> &str {
    &text[..text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_is_html_if_all_of_it_can_be() {
        for (html, expected) in [
            ("A <b>B</b> &amp; <i>C</i>", Some("A B & C")),
            ("caf&eacute; &#8211; &#150; &#x41;&hellip;", Some("café – – A…")),
            ("One<br/>two</br> <span title='>'>three</span>", Some("One two  three")),
            ("<!-- no --><p>5 < 6</p>", Some(" 5 < 6 ")),
            ("Use <b> in HTML", None),
            ("if a < b", None),
            ("Vec<String></String>", None),
            ("a &nosuch; b</b>", None),
            ("AT&T; R&D", None),
        ] {
            assert_eq!(looks_like_html(html).then(|| text(html)).as_deref(), expected, "{html}");
        }
        assert_eq!(
            text("<script>if (a) {}</script>b&nosuch;&;&#0;&#xd800;"),
            " b&nosuch;&;&#0;&#xd800;".replacen(' ', "  ", 1)
        );
    }

    proptest! {
        #[test]
        fn any_text_has_a_text(html in "(<|>|/|!|-|script|b|&|#|x|amp|;|9|é| ){0,40}") {
            let _ = (looks_like_html(&html), text(&html));
        }
    }
}
