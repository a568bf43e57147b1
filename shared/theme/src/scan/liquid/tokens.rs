//! Splits a template into its pieces of Liquid.
//!
//! As on the platform, a tag ends at the first `%}`, even inside quotes. If another tag begins inside a tag, the outer
//! tag is unclosed and ends where the inner one begins.

use memchr::memmem;
use rustc_hash::FxHashMap;

use crate::scan::DegradedReason;
use crate::strict;
use crate::text::Span;

/// A piece of Liquid. The text between two pieces is plain text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: TokenKind,
    /// From the opening `{` to the closing `}`. Inside `{% liquid %}`, the single line.
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    Output {
        markup: Span,
    },
    Tag {
        name: Span,
        markup: Span,
    },
    /// A comment or doc block, or an inline `{% # %}`.
    Comment {
        body: Span,
    },
    Raw {
        body: Span,
    },
    Schema {
        body: Span,
    },
    /// `{% stylesheet %}` or `{% style %}`.
    Style {
        body: Span,
    },
    Script {
        body: Span,
    },
}

/// The tags whose content is not a template. `style` is not one of them: its content may use Liquid, so it is read as a
/// tag.
const VERBATIM: [&str; 6] = ["comment", "raw", "schema", "stylesheet", "javascript", "doc"];

/// The longest output in which `{{` is looked for in quotes. Each look reads the output.
const LONGEST_OUTPUT: usize = 1024;

struct Scanner<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    degraded: Vec<(usize, DegradedReason)>,
    /// The next `%}` and `}}` at or after the last searched position, so that many unclosed tags still take linear
    /// time.
    next_close: [Option<usize>; 2],
    /// Verbatim tags that have no end tag after this position.
    endless: FxHashMap<&'static str, usize>,
}

/// Splits a text into its Liquid pieces, in order and without overlaps.
pub fn tokens(text: &str) -> (Vec<Token>, Vec<(usize, DegradedReason)>) {
    let mut scanner = Scanner {
        text,
        tokens: Vec::with_capacity(text.len() / 48),
        degraded: Vec::new(),
        next_close: [Some(0), Some(0)],
        endless: FxHashMap::default(),
    };
    scanner.next_close = [scanner.find("%}", 0), scanner.find("}}", 0)];
    scanner.run();
    (scanner.tokens, scanner.degraded)
}

impl Scanner<'_> {
    fn find(&self, needle: &str, from: usize) -> Option<usize> {
        memmem::find(&self.text.as_bytes()[from..], needle.as_bytes()).map(|at| at + from)
    }

    fn run(&mut self) {
        let bytes = self.text.as_bytes();
        let mut at = 0;
        while let Some(open) = next_opener(bytes, at) {
            let is_tag = bytes[open + 1] == b'%';
            let end = self.close(open, is_tag);
            let mut inner = Span::new((open + 2).min(end.inner), end.inner);
            let token_end = end.outer;
            // A `-` for whitespace control belongs to the braces.
            if bytes.get(inner.start as usize) == Some(&b'-') && !inner.is_empty() {
                inner.start += 1;
            }
            if !inner.is_empty() && bytes[inner.end as usize - 1] == b'-' {
                inner.end -= 1;
            }
            let span = Span::new(open, token_end);
            at = if is_tag {
                self.tag(span, inner)
            } else {
                self.tokens.push(Token { kind: TokenKind::Output { markup: trim(self.text, inner) }, span });
                token_end
            };
        }
    }

    /// The position where the tag or output that opens at `open` ends.
    fn close(&mut self, open: usize, is_tag: bool) -> End {
        let (slot, needle) = if is_tag { (0, "%}") } else { (1, "}}") };
        if self.next_close[slot].is_some_and(|close| close < open + 2) {
            self.next_close[slot] = self.find(needle, open + 2);
        }
        let close = self.next_close[slot];
        let limit = close.unwrap_or(self.text.len());
        // `{{` within a tag is only text, for example in a comment of `{% liquid %}`.
        let opener = if is_tag { next_tag } else { next_opener };
        match opener(&self.text.as_bytes()[..limit], open + 2) {
            None if close.is_some() => End { inner: limit, outer: limit + 2 },
            // `{{` in quotes is text.
            Some(_) if !is_tag && close.is_some() && self.is_output(open, limit) => {
                End { inner: limit, outer: limit + 2 }
            }
            opener => {
                let reason =
                    if is_tag { DegradedReason::UnclosedTag } else { DegradedReason::UnclosedOutput };
                self.degraded.push((open, reason));
                // An unclosed tag takes at most the rest of its line.
                let limit = opener.unwrap_or(limit);
                let line_end = memchr::memchr(b'\n', &self.text.as_bytes()[open..limit]);
                let end = line_end.map_or(limit, |at| open + at).max(open + 2);
                End { inner: end, outer: end }
            }
        }
    }

    /// Whether strict Liquid accepts the content of an output.
    fn is_output(&self, open: usize, end: usize) -> bool {
        let content = self.text.get(open + 2..end).unwrap_or_default();
        content.len() <= LONGEST_OUTPUT
            && strict::accepts("", content.trim_start_matches('-').trim_end_matches('-'))
    }

    /// Adds the tokens of a tag. Returns the position to continue from.
    fn tag(&mut self, span: Span, inner: Span) -> usize {
        let inner = trim(self.text, inner);
        let (name, markup) = split_name(self.text, inner);
        let end = span.end as usize;
        match name.of(self.text) {
            "liquid" => self.liquid_lines(markup),
            "#" => self.tokens.push(Token { kind: TokenKind::Comment { body: markup }, span }),
            word => {
                if let Some(&word) = VERBATIM.iter().find(|&&known| known == word) {
                    match self.end_of(word, end) {
                        Some((body_end, outer_end)) => {
                            self.verbatim(word, Span::new(span.start as usize, outer_end), end, body_end);
                            return outer_end;
                        }
                        None => self.degraded.push((span.start as usize, DegradedReason::UnclosedBlock)),
                    }
                } else {
                    self.tokens.push(Token { kind: TokenKind::Tag { name, markup }, span });
                }
            }
        }
        end
    }

    fn verbatim(&mut self, word: &str, span: Span, start: usize, end: usize) {
        let body = Span::new(start, end);
        let kind = match word {
            "schema" => TokenKind::Schema { body },
            "stylesheet" => TokenKind::Style { body },
            "javascript" => TokenKind::Script { body },
            "raw" => TokenKind::Raw { body },
            _ => TokenKind::Comment { body },
        };
        self.tokens.push(Token { kind, span });
    }

    /// Finds `{% endWORD %}`. Returns where it begins and ends. Comments can be nested.
    fn end_of(&mut self, word: &'static str, from: usize) -> Option<(usize, usize)> {
        if self.endless.get(word).is_some_and(|&since| since <= from) {
            return None;
        }
        let bytes = self.text.as_bytes();
        let (mut at, mut depth) = (from, 1);
        while let Some(open) = self.find("{%", at) {
            let mut name = open + 2;
            while bytes.get(name).is_some_and(|b| *b == b'-' || b.is_ascii_whitespace()) {
                name += 1;
            }
            let rest = &bytes[name..];
            at = name;
            let is = |rest: &[u8], word: &str| {
                rest.starts_with(word.as_bytes())
                    && !rest.get(word.len()).is_some_and(u8::is_ascii_alphanumeric)
            };
            if rest.starts_with(b"end") && is(&rest[3..], word) {
                depth -= 1;
                if depth == 0 {
                    let close = self.find("%}", name).map_or(self.text.len(), |close| close + 2);
                    return Some((open, close));
                }
            } else if word == "comment" && is(rest, word) {
                depth += 1;
            } else if word == "comment" && is(rest, "raw") {
                // A `raw` in a comment must end, and what stands in it does not end the comment.
                let Some((_, end)) = self.end_of("raw", name) else { break };
                at = end;
            }
        }
        self.endless.insert(word, from);
        None
    }

    /// Reads `{% liquid %}`, which has one tag per line.
    fn liquid_lines(&mut self, markup: Span) {
        // Where the comment begins, and how many comments are open.
        let mut comment_from = None;
        let mut depth = 0;
        let mut at = markup.start as usize;
        for line in markup.of(self.text).split_inclusive('\n') {
            let span = trim(self.text, Span::new(at, at + line.len()));
            at += line.len();
            if span.is_empty() {
                continue;
            }
            let (name, rest) = split_name(self.text, span);
            let kind = match (name.of(self.text), comment_from) {
                ("comment", Some(_)) => {
                    depth += 1;
                    continue;
                }
                ("endcomment", Some(start)) => {
                    depth -= 1;
                    if depth > 0 {
                        continue;
                    }
                    comment_from = None;
                    TokenKind::Comment { body: Span { start, end: span.start } }
                }
                (_, Some(_)) => continue,
                ("comment", None) => {
                    (comment_from, depth) = (Some(span.end), 1);
                    continue;
                }
                ("#", None) => TokenKind::Comment { body: rest },
                _ => TokenKind::Tag { name, markup: rest },
            };
            let span = match kind {
                TokenKind::Comment { body } => Span { start: body.start.min(span.start), end: span.end },
                _ => span,
            };
            self.tokens.push(Token { kind, span });
        }
        if let Some(start) = comment_from {
            self.degraded.push((start as usize, DegradedReason::UnclosedBlock));
        }
    }
}

struct End {
    inner: usize,
    outer: usize,
}

fn next_tag(bytes: &[u8], from: usize) -> Option<usize> {
    memmem::find(bytes.get(from..)?, b"{%").map(|at| from + at)
}

fn next_opener(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr(b'{', rest)) {
        let open = at + found;
        if matches!(bytes.get(open + 1), Some(b'{' | b'%')) {
            return Some(open);
        }
        at = open + 1;
    }
    None
}

pub fn trim(text: &str, span: Span) -> Span {
    let inner = span.of(text);
    let start = inner.len() - inner.trim_start().len();
    let trimmed = inner.trim();
    Span::new(span.start as usize + start, span.start as usize + start + trimmed.len())
}

/// Splits `render 'x'` into `render` and `'x'`. A `#` is a name by itself.
pub fn split_name(text: &str, span: Span) -> (Span, Span) {
    let inner = span.of(text);
    let length = if inner.starts_with('#') {
        1
    } else {
        inner.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(inner.len())
    };
    let start = span.start as usize;
    let name = Span::new(start, start + length);
    (name, trim(text, Span::new(start + length, span.end as usize)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<(&'static str, &str)> {
        let (tokens, _) = tokens(text);
        let show = |token: &Token| match token.kind {
            TokenKind::Output { markup } => ("output", markup.of(text)),
            TokenKind::Tag { name, .. } => ("tag", name.of(text)),
            TokenKind::Comment { body } => ("comment", body.of(text)),
            TokenKind::Raw { body } => ("raw", body.of(text)),
            TokenKind::Schema { body } => ("schema", body.of(text)),
            TokenKind::Style { body } => ("style", body.of(text)),
            TokenKind::Script { body } => ("script", body.of(text)),
        };
        tokens.iter().map(show).collect()
    }

    #[test]
    fn a_text_is_cut_into_its_pieces() {
        let check = |text: &str, expected: &[(&str, &str)]| assert_eq!(shown(text), expected, "{text:?}");
        check("plain { text } %}", &[]);
        check("{{ a }}{{- b -}}", &[("output", "a"), ("output", "b")]);
        check("{% if a %}x{%- endif -%}", &[("tag", "if"), ("tag", "endif")]);
        check("{{ '%}' }}{%}", &[("output", "'%}'"), ("tag", "")]);
        check("{%%}{{}}", &[("tag", ""), ("output", "")]);
        check("{% comment %}{% if %}{% endcomment %}b", &[("comment", "{% if %}")]);
        check(
            "{% comment %}a{% comment %}b{% endcomment %}c{% endcomment %}{{ d }}",
            &[("comment", "a{% comment %}b{% endcomment %}c"), ("output", "d")],
        );
        check("{{ '{{' | a }}{{ b }}", &[("output", "'{{' | a"), ("output", "b")]);
        check(
            "{% comment %}{% raw %}{% endcomment %}{% endraw %}{% endcomment %}{{ a }}",
            &[("comment", "{% raw %}{% endcomment %}{% endraw %}"), ("output", "a")],
        );
        check(
            "{% liquid\ncomment\ncomment\nendcomment\nif\nendcomment\necho a\n%}",
            &[("comment", "\ncomment\nendcomment\nif\n"), ("tag", "echo")],
        );
        check("{% # a note %}", &[("comment", "a note")]);
        check("{% raw %}{{ x }}{%endraw%}", &[("raw", "{{ x }}")]);
        check("{% schema %}{}{% endschema %}", &[("schema", "{}")]);
        check(
            "{%- liquid\n  assign a = 1\n  # note\n  render 'x'\n-%}",
            &[("tag", "assign"), ("comment", "note"), ("tag", "render")],
        );
        check("{% liquid\ncomment\n if\nendcomment\necho b\n%}", &[("comment", "\n if\n"), ("tag", "echo")]);
    }

    #[test]
    fn unclosed_pieces_are_reported_and_skipped() {
        let check = |text: &str, expected: &[(usize, DegradedReason)], pieces: &[(&str, &str)]| {
            assert_eq!(tokens(text).1, expected, "{text:?}");
            assert_eq!(shown(text), pieces, "{text:?}");
        };
        use DegradedReason::{UnclosedBlock, UnclosedOutput, UnclosedTag};
        check("a {% if b", &[(2, UnclosedTag)], &[("tag", "if")]);
        check("{{ a\n{{ b }}", &[(0, UnclosedOutput)], &[("output", "a"), ("output", "b")]);
        check("{% render 'x' {% endif %}", &[(0, UnclosedTag)], &[("tag", "render"), ("tag", "endif")]);
        check("{% comment %}{{ a }}", &[(0, UnclosedBlock)], &[("output", "a")]);
        check("{%", &[(0, UnclosedTag)], &[("tag", "")]);
    }
}
