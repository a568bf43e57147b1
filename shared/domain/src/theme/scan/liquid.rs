//! The Liquid scanner: tags, outputs and blocks, and what they refer to.
//!
//! As the platform does it, a tag ends at the first `%}` whatever quotes say. A tag that another tag begins in is
//! unclosed; it ends where that one begins.

use memchr::memmem;
use rustc_hash::FxHashMap;

use super::{DegradedReason, EdgeKind, EdgeNature, Found, css, markup, schema, script};
use crate::theme::text::Span;

/// A piece of Liquid; what lies between two pieces is plain text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: TokenKind,
    /// From the opening `{` to the closing `}`; within `{% liquid %}` the one line.
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
    /// A comment or a doc block, or an inline `{% # %}`.
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

/// The tags whose content is no template. `style` is one that renders: it has Liquid inside, and is read as a tag.
const VERBATIM: [&str; 6] = ["comment", "raw", "schema", "stylesheet", "javascript", "doc"];

struct Scanner<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    degraded: Vec<(usize, DegradedReason)>,
    /// The next `%}` and `}}` at or after the last place asked for, so that many unclosed tags stay linear.
    next_close: [Option<usize>; 2],
    /// Verbatim tags with no end after this place.
    endless: FxHashMap<&'static str, usize>,
}

/// Cuts a text into its Liquid pieces, in order and without overlaps.
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
            // Whitespace control belongs to the braces.
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

    /// Where the tag or output that opens at `open` ends.
    fn close(&mut self, open: usize, is_tag: bool) -> End {
        let (slot, needle) = if is_tag { (0, "%}") } else { (1, "}}") };
        if self.next_close[slot].is_some_and(|close| close < open + 2) {
            self.next_close[slot] = self.find(needle, open + 2);
        }
        let close = self.next_close[slot];
        let limit = close.unwrap_or(self.text.len());
        match next_opener(&self.text.as_bytes()[..limit], open + 2) {
            None if close.is_some() => End { inner: limit, outer: limit + 2 },
            opener => {
                let reason =
                    if is_tag { DegradedReason::UnclosedTag } else { DegradedReason::UnclosedOutput };
                self.degraded.push((open, reason));
                // At most the rest of the line is taken for the tag.
                let limit = opener.unwrap_or(limit);
                let line_end = memchr::memchr(b'\n', &self.text.as_bytes()[open..limit]);
                let end = line_end.map_or(limit, |at| open + at).max(open + 2);
                End { inner: end, outer: end }
            }
        }
    }

    /// Adds what a tag is, and returns where to go on.
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

    /// Finds `{% endWORD %}`: where it begins and where it ends. Comments nest.
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
            }
        }
        self.endless.insert(word, from);
        None
    }

    /// `{% liquid %}`: a tag on every line.
    fn liquid_lines(&mut self, markup: Span) {
        let mut comment_from = None;
        let mut at = markup.start as usize;
        for line in markup.of(self.text).split_inclusive('\n') {
            let span = trim(self.text, Span::new(at, at + line.len()));
            at += line.len();
            if span.is_empty() {
                continue;
            }
            let (name, rest) = split_name(self.text, span);
            let kind = match (name.of(self.text), comment_from) {
                ("endcomment", Some(start)) => {
                    comment_from = None;
                    TokenKind::Comment { body: Span { start, end: span.start } }
                }
                (_, Some(_)) => continue,
                ("comment", None) => {
                    comment_from = Some(span.end);
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

fn trim(text: &str, span: Span) -> Span {
    let inner = span.of(text);
    let start = inner.len() - inner.trim_start().len();
    let trimmed = inner.trim();
    Span::new(span.start as usize + start, span.start as usize + start + trimmed.len())
}

/// `render 'x'` → `render`, `'x'`; a `#` is a name of its own.
fn split_name(text: &str, span: Span) -> (Span, Span) {
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

/// Reads a Liquid template.
pub fn scan(text: &str, found: &mut Found) {
    let masked = scan_tokens(text, found);
    markup::scan(&masked, found);
}

/// Reads the Liquid of a stylesheet or script, and returns its text with the Liquid blanked.
pub fn scan_asset(text: &str, found: &mut Found) -> String {
    scan_tokens(text, found)
}

fn scan_tokens(text: &str, found: &mut Found) -> String {
    let (tokens, degraded) = tokens(text);
    for (offset, reason) in degraded {
        found.degrade(offset, reason);
    }
    let mut masked = text.as_bytes().to_vec();
    let mut blank = |span: Span| {
        for byte in &mut masked[span.start as usize..span.end as usize] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    };
    let mut open = Vec::new();
    for token in &tokens {
        blank(token.span);
        match token.kind {
            TokenKind::Output { markup } => expression(text, markup, found),
            TokenKind::Tag { name, markup } => {
                nest(name.of(text), token.span, text, &mut open, found);
                tag(text, name, markup, found);
            }
            TokenKind::Comment { body } => found.comments.push(body),
            TokenKind::Raw { .. } => {}
            TokenKind::Schema { body } => {
                found.cuts.extend([token.span.start, token.span.end]);
                schema::scan(text, body, found);
            }
            TokenKind::Style { body } => {
                found.cuts.extend([token.span.start, token.span.end]);
                css::scan(text, body, found);
            }
            TokenKind::Script { body } => {
                found.cuts.extend([token.span.start, token.span.end]);
                script::scan(text, body, found);
            }
        }
    }
    for (_, span) in open {
        found.degrade(span.start as usize, DegradedReason::UnclosedBlock);
    }
    String::from_utf8(masked).expect("whole tokens were blanked, and tokens begin and end at ASCII")
}

const BLOCK_TAGS: [&str; 10] =
    ["if", "unless", "case", "for", "tablerow", "form", "paginate", "capture", "style", "block"];

/// Keeps the stack of open block tags.
fn nest<'a>(name: &'a str, span: Span, text: &str, open: &mut Vec<(&'a str, Span)>, found: &mut Found) {
    if BLOCK_TAGS.contains(&name) {
        open.push((name, span));
    } else if let Some(of) = name.strip_prefix("end").filter(|of| BLOCK_TAGS.contains(of)) {
        // A missing end is near: a deep look would make hostile input quadratic.
        let near = open.len().saturating_sub(64);
        let depth = open[near..].iter().rposition(|(word, _)| *word == of).map(|depth| depth + near);
        let Some(depth) = depth else {
            found.degrade(span.start as usize, DegradedReason::StrayEnd);
            return;
        };
        for (_, crossed) in open.drain(depth + 1..) {
            found.degrade(crossed.start as usize, DegradedReason::UnclosedBlock);
        }
        let (_, opening) = open.pop().expect("it was found");
        found.blocks.push(Span { start: opening.start, end: span.end });
        if of == "style" {
            css::scan(text, Span { start: opening.end, end: span.start }, found);
        }
    }
}

/// What one tag refers to.
fn tag(text: &str, name: Span, markup: Span, found: &mut Found) {
    let kind = match name.of(text) {
        "render" => EdgeKind::Render,
        "include" => EdgeKind::Include,
        "section" => EdgeKind::Section,
        "sections" => EdgeKind::SectionGroup,
        "layout" => EdgeKind::Layout,
        "content_for" => {
            content_for(text, markup, found);
            return arguments(text, markup, found);
        }
        "assign" | "capture" => {
            let (variable, _) = split_name(text, markup);
            found.identifiers.push(variable);
            return expression(text, markup, found);
        }
        "echo" => return expression(text, markup, found),
        _ => return arguments(text, markup, found),
    };
    match leading_string(text, markup) {
        Some(target) => found.reference(kind, EdgeNature::Direct, target),
        None => {
            let (variable, _) = split_name(text, markup);
            // `{% layout none %}` names no layout.
            if kind != EdgeKind::Layout {
                found.reference(kind, EdgeNature::Indirect, variable);
            }
        }
    }
    arguments(text, markup, found);
}

/// `{% content_for 'block', type: 'slide', id: 'x' %}` or `{% content_for 'blocks' %}`.
fn content_for(text: &str, markup: Span, found: &mut Found) {
    let inner = markup.of(text);
    if leading_string(text, markup).is_some_and(|what| what.of(text) == "blocks") {
        found.reference(EdgeKind::Block, EdgeNature::Indirect, markup);
        return;
    }
    if let Some(at) = inner.find("type:") {
        let after = Span::new(markup.start as usize + at + "type:".len(), markup.end as usize);
        match leading_string(text, trim(text, after)) {
            Some(target) => found.reference(EdgeKind::Block, EdgeNature::Direct, target),
            None => found.reference(EdgeKind::Block, EdgeNature::Indirect, markup),
        }
    }
}

fn leading_string(text: &str, span: Span) -> Option<Span> {
    let inner = span.of(text);
    let quote = inner.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let length = inner[1..].find(quote)?;
    Some(Span::new(span.start as usize + 1, span.start as usize + 1 + length))
}

/// An expression with filters: `'cart.js' | asset_url`, `x = 'general.title' | t: count: 1`.
fn expression(text: &str, markup: Span, found: &mut Found) {
    arguments(text, markup, found);
    let mut literal: Option<Span> = None;
    let mut built = false;
    for (index, stage) in pipe_stages(text, markup).enumerate() {
        let (filter, _) = split_name(text, stage);
        if index == 0 {
            let strings = strings(text, stage);
            literal = strings.last().copied();
            continue;
        }
        match filter.of(text) {
            "append" | "prepend" | "replace" => built = true,
            "asset_url" | "inline_asset_content" | "asset_img_url" => {
                push_literal(EdgeKind::Asset, literal, built, stage, markup, found);
            }
            "t" | "translate" => {
                push_literal(EdgeKind::Translation, literal, built, stage, markup, found);
            }
            _ => {}
        }
    }
}

fn push_literal(
    kind: EdgeKind,
    literal: Option<Span>,
    built: bool,
    stage: Span,
    markup: Span,
    found: &mut Found,
) {
    match literal {
        Some(name) if !built => found.reference(kind, EdgeNature::Direct, name),
        _ => {
            let expression = Span { start: markup.start, end: stage.start };
            found.reference(kind, EdgeNature::Indirect, expression);
        }
    }
}

/// The parts of an expression between pipes; pipes within quotes are text.
fn pipe_stages(text: &str, markup: Span) -> impl Iterator<Item = Span> {
    let bytes = text.as_bytes();
    let (mut at, end) = (markup.start as usize, markup.end as usize);
    let mut done = false;
    std::iter::from_fn(move || {
        if done {
            return None;
        }
        let start = at;
        let mut quote = None;
        while at < end {
            match (bytes[at], quote) {
                (b'|', None) => break,
                (b @ (b'\'' | b'"'), None) => quote = Some(b),
                (b, Some(open)) if b == open => quote = None,
                _ => {}
            }
            at += 1;
        }
        let stage = trim(text, Span::new(start, at));
        done = at >= end;
        at += 1;
        Some(stage)
    })
}

fn strings(text: &str, span: Span) -> Vec<Span> {
    let bytes = text.as_bytes();
    let (mut at, end) = (span.start as usize, span.end as usize);
    let mut strings = Vec::new();
    while at < end {
        if matches!(bytes[at], b'\'' | b'"') {
            let Some(length) = memchr::memchr(bytes[at], &bytes[at + 1..end]) else { break };
            strings.push(Span::new(at + 1, at + 1 + length));
            at += length + 1;
        }
        at += 1;
    }
    strings
}

/// Settings that an expression or a tag's arguments read.
fn arguments(text: &str, markup: Span, found: &mut Found) {
    let inner = markup.of(text);
    for at in memmem::find_iter(inner.as_bytes(), b"settings.") {
        let start = markup.start as usize + at + "settings.".len();
        let (name, _) = split_name(text, Span { start: start as u32, end: markup.end });
        let before = text[..markup.start as usize + at].chars().next_back();
        if before == Some('.') {
            found.identifiers.push(name); // a section's or block's own
        } else {
            found.reference(EdgeKind::Setting, EdgeNature::Direct, name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::scan::SymbolKind;

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
    fn what_does_not_close_is_named_and_passed_over() {
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

    fn references(text: &str) -> Vec<(EdgeKind, EdgeNature, &str)> {
        let mut found = Found::default();
        scan(text, &mut found);
        found.references.iter().map(|r| (r.kind, r.nature, r.name.of(text))).collect()
    }

    #[test]
    fn tags_and_filters_refer() {
        use EdgeNature::{Direct, Indirect};
        let check = |text: &str, expected: &[(EdgeKind, EdgeNature, &str)]| {
            assert_eq!(references(text), expected, "{text:?}");
        };
        check("{% render 'card', x: y %}", &[(EdgeKind::Render, Direct, "card")]);
        check("{% render block %}", &[(EdgeKind::Render, Indirect, "block")]);
        check("{%- include \"old\" -%}", &[(EdgeKind::Include, Direct, "old")]);
        check(
            "{% section 'header' %}{% sections 'footer-group' %}",
            &[(EdgeKind::Section, Direct, "header"), (EdgeKind::SectionGroup, Direct, "footer-group")],
        );
        check("{% layout none %}{% layout 'bare' %}", &[(EdgeKind::Layout, Direct, "bare")]);
        check("{% content_for 'blocks' %}", &[(EdgeKind::Block, Indirect, "'blocks'")]);
        check("{% content_for 'block', type: \"slide\", id: 'a' %}", &[(EdgeKind::Block, Direct, "slide")]);
        check("{{ 'base.css' | asset_url | stylesheet_tag }}", &[(EdgeKind::Asset, Direct, "base.css")]);
        check(
            "{{ 'icon-' | append: x | asset_url }}",
            &[(EdgeKind::Asset, Indirect, "'icon-' | append: x | ")],
        );
        check("{{ 'a.b' | t: c: 'x | t' | escape }}", &[(EdgeKind::Translation, Direct, "a.b")]);
        check("{% assign x = 'a.b' | t %}", &[(EdgeKind::Translation, Direct, "a.b")]);
        check(
            "{% liquid\n assign x = 'c.d' | t\n render 'y'\n%}",
            &[(EdgeKind::Translation, Direct, "c.d"), (EdgeKind::Render, Direct, "y")],
        );
        check("{{ settings.logo }}{{ section.settings.own }}", &[(EdgeKind::Setting, Direct, "logo")]);
        check("{% comment %}{% render 'no' %}{% endcomment %}", &[]);
    }

    #[test]
    fn blocks_that_cross_or_lack_an_end_are_named() {
        let check = |text: &str, expected: &[(u32, DegradedReason)]| {
            let mut found = Found::default();
            scan(text, &mut found);
            let places: Vec<_> = found.degraded.iter().map(|d| (d.offset, d.reason)).collect();
            assert_eq!(places, expected, "{text:?}");
        };
        check("{% if a %}{% for b in c %}{% endfor %}{% endif %}", &[]);
        check("{% if a %}", &[(0, DegradedReason::UnclosedBlock)]);
        check("{% endfor %}", &[(0, DegradedReason::StrayEnd)]);
        check("{% if a %}{% for b in c %}{% endif %}", &[(10, DegradedReason::UnclosedBlock)]);
    }

    #[test]
    fn a_section_carries_schema_style_and_script() {
        let text = "<a-b></a-b>{% stylesheet %}.x { color: red }{% endstylesheet %}\
                    {% javascript %}class Y {}{% endjavascript %}\
                    {% schema %}{\"name\": \"Hero\", \"settings\": [{\"type\": \"text\", \"id\": \"title\"}]}{% endschema %}";
        let mut found = Found::default();
        scan(text, &mut found);
        let symbols: Vec<_> = found.symbols.iter().map(|s| (s.kind, s.name.of(text))).collect();
        assert_eq!(
            symbols,
            [
                (SymbolKind::CssClass, "x"),
                (SymbolKind::Class, "Y"),
                (SymbolKind::SchemaName, "Hero"),
                (SymbolKind::Setting, "title"),
            ]
        );
        assert_eq!(found.references.len(), 1, "the custom element that is used");
    }
}
