//! Cuts a file into tags, outputs and text, exactly where Liquid cuts it.
//!
//! A tag ends at the first `%}`, also within quotes. An output ends at the first `}}`, but one `}` or a `{%` ends it, too: then it is
//! refused, unless it stands in a comment or in `raw`.

use memchr::{memchr, memchr2, memmem};

use crate::text::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceKind {
    /// `{% … %}`. Without a name, it is refused.
    Tag,
    /// `{{ … }}`.
    Output,
    /// An output that ends with one `}`, at a `{%`, or not at all. For `{%`, the place of it.
    BrokenOutput { tag: Option<u32> },
    /// `{%` without `%}`.
    BrokenTag,
}

/// A piece of Liquid.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    pub kind: PieceKind,
    pub span: Span,
}

/// A tag's name and markup.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    pub name: Span,
    pub markup: Span,
}

/// The pieces of Liquid in a text, one after the other.
pub struct Pieces<'a> {
    text: &'a str,
    at: usize,
    /// The first `%}` at or behind a place: the place, and the end of the `%}`.
    close: Option<(usize, Option<usize>)>,
}

impl<'a> Pieces<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0, close: None }
    }

    /// Where the next piece is looked for.
    pub const fn at(&self) -> usize {
        self.at
    }

    /// Goes on at another place.
    pub fn go_to(&mut self, at: usize) {
        self.at = at;
    }

    /// The end of the first `%}` at or behind a place. Each part of the text is searched once.
    fn close(&mut self, from: usize) -> Option<usize> {
        match self.close {
            Some((since, found)) if since <= from && found.is_none_or(|end| from + 2 <= end) => found,
            _ => {
                let rest = self.text.as_bytes().get(from..).unwrap_or_default();
                let found = memmem::find(rest, b"%}").map(|at| from + at + 2);
                self.close = Some((from, found));
                found
            }
        }
    }

    pub fn next(&mut self) -> Option<Piece> {
        let bytes = self.text.as_bytes();
        let mut at = self.at;
        loop {
            at += memchr(b'{', bytes.get(at..)?)?;
            match bytes.get(at + 1) {
                Some(b'%') => {
                    let end = self.close(at + 2);
                    let kind = if end.is_some() { PieceKind::Tag } else { PieceKind::BrokenTag };
                    let end = end.unwrap_or(at + 2);
                    self.at = end;
                    return Some(Piece { kind, span: Span::new(at, end) });
                }
                Some(b'{') => {
                    let (kind, end) = self.output(at + 2);
                    self.at = end;
                    return Some(Piece { kind, span: Span::new(at, end) });
                }
                _ => at += 1,
            }
        }
    }

    /// The kind and the end of an output whose content begins at `from`.
    fn output(&mut self, from: usize) -> (PieceKind, usize) {
        let bytes = self.text.as_bytes();
        let mut at = from;
        while let Some(found) = bytes.get(at..).and_then(|rest| memchr2(b'{', b'}', rest)) {
            let brace = at + found;
            match (bytes.get(brace), bytes.get(brace + 1)) {
                (Some(b'}'), Some(b'}')) => return (PieceKind::Output, brace + 2),
                (Some(b'}'), _) => return (PieceKind::BrokenOutput { tag: None }, brace + 1),
                (_, Some(b'%')) => {
                    let end = self.close(brace + 2).unwrap_or(brace + 2);
                    return (PieceKind::BrokenOutput { tag: Some(brace as u32) }, end);
                }
                _ => at = brace + 1,
            }
        }
        (PieceKind::BrokenOutput { tag: None }, self.text.len())
    }
}

/// Liquid's blanks: those of ASCII with the vertical tab.
pub const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

pub const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The first place at or behind `at` that is no blank.
pub fn skip_blanks(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|byte| is_blank(*byte)) {
        at += 1;
    }
    at
}

/// The end of the name that begins at `at`. `#` is a name by itself.
fn name_end(bytes: &[u8], at: usize) -> usize {
    if bytes.get(at) == Some(&b'#') {
        return at + 1;
    }
    let mut end = at;
    while bytes.get(end).is_some_and(|byte| is_word(*byte)) {
        end += 1;
    }
    end
}

/// The content of a tag or output: without the braces, and without a `-` at each side.
fn content(text: &str, span: Span) -> Span {
    let bytes = text.as_bytes();
    let (mut start, mut end) = (span.start as usize + 2, (span.end as usize).saturating_sub(2));
    if bytes.get(start) == Some(&b'-') {
        start += 1;
    }
    if end > start && bytes.get(end - 1) == Some(&b'-') {
        end -= 1;
    }
    Span::new(start.min(span.end as usize), end.max(start.min(span.end as usize)))
}

/// The name and the markup of a tag, if it has a name.
pub fn named(text: &str, span: Span) -> Option<Named> {
    let inner = content(text, span);
    let end = inner.end as usize;
    split(text, inner.start as usize, end)
}

/// The name and the markup of a line of `{% liquid %}`.
pub fn named_line(text: &str, line: Span) -> Option<Named> {
    split(text, line.start as usize, line.end as usize)
}

fn split(text: &str, start: usize, end: usize) -> Option<Named> {
    let bytes = text.as_bytes().get(..end)?;
    let start = skip_blanks(bytes, start);
    let stop = name_end(bytes, start);
    if stop <= start {
        return None;
    }
    let markup = skip_blanks(bytes, stop);
    Some(Named { name: Span::new(start, stop), markup: Span::new(markup, end) })
}

/// The markup of an output.
pub fn output_markup(text: &str, span: Span) -> Span {
    content(text, span)
}

/// The name of the last tag in a piece, however much stands before it. `raw` and `doc` look for their end in this way: in
/// `{{ a {% endraw %}`, `raw` ends.
pub fn last_name(text: &str, span: Span) -> Option<&str> {
    let piece = span.of(text);
    let bytes = piece.as_bytes();
    if !piece.ends_with("%}") {
        return None;
    }
    for open in memmem::rfind_iter(bytes, b"{%") {
        let at = open + 2 + usize::from(bytes.get(open + 2) == Some(&b'-'));
        let start = skip_blanks(bytes, at);
        let mut end = start;
        while bytes.get(end).is_some_and(|byte| is_word(*byte)) {
            end += 1;
        }
        if end > start {
            return piece.get(start..end);
        }
    }
    None
}
