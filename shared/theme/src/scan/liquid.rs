//! What the tags, outputs and blocks of a template refer to.

mod tokens;

use memchr::memmem;

use super::{DegradedReason, EdgeKind, EdgeNature, ScanResult, css, hints, markup, schema, script};
use crate::text::Span;

pub use tokens::{Token, TokenKind, tokens};
use tokens::{split_name, trim};

/// Reads a Liquid template.
pub fn scan(text: &str, found: &mut ScanResult) {
    let masked = scan_tokens(text, found);
    markup::scan(&masked, found);
}

/// Reads the Liquid of a stylesheet or script. Returns its text with the Liquid replaced by blanks.
pub fn scan_asset(text: &str, found: &mut ScanResult) -> String {
    scan_tokens(text, found)
}

fn scan_tokens(text: &str, found: &mut ScanResult) -> String {
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
    // Variables that get a computed value, by whether the value's literal parts are known.
    let (mut narrow, mut wide) = (Vec::new(), Vec::new());
    for (index, token) in tokens.iter().enumerate() {
        blank(token.span);
        if let TokenKind::Output { markup } | TokenKind::Tag { markup, .. } = token.kind {
            hints::liquid(text, markup, &strings(text, markup), found);
        }
        if let TokenKind::Tag { name, markup } = token.kind {
            let (variable, rest) = split_name(text, markup);
            match name.of(text) {
                "assign" => {
                    let value = rest.of(text).trim_start().trim_start_matches('=');
                    if hints::is_narrow(value) { &mut narrow } else { &mut wide }.push(variable);
                }
                "capture" => {
                    let next = tokens.get(index + 1);
                    let end = next.map_or(text.len(), |next| next.span.start as usize);
                    let is_whole = next.is_some_and(|next| {
                        matches!(next.kind, TokenKind::Tag { name, .. } if name.of(text) == "endcapture")
                    });
                    let start = trim(text, Span::new((token.span.end as usize).min(end), end));
                    let is_known = hints::capture(text, start, is_whole, found);
                    if is_known { &mut narrow } else { &mut wide }.push(variable);
                }
                _ => {}
            }
        }
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
                hints::stylesheet(text, body, found);
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
    hints::computed(text, &narrow, &wide, found);
    String::from_utf8(masked).expect("whole tokens were blanked, and tokens begin and end at ASCII")
}

const BLOCK_TAGS: [&str; 10] =
    ["if", "unless", "case", "for", "tablerow", "form", "paginate", "capture", "style", "block"];

/// Maintains the stack of open block tags.
fn nest<'a>(name: &'a str, span: Span, text: &str, open: &mut Vec<(&'a str, Span)>, found: &mut ScanResult) {
    if BLOCK_TAGS.contains(&name) {
        open.push((name, span));
    } else if let Some(of) = name.strip_prefix("end").filter(|of| BLOCK_TAGS.contains(of)) {
        // A missing end tag is usually near. A deep search would take quadratic time on hostile input.
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
            let body = Span { start: opening.end, end: span.start };
            css::scan(text, body, found);
            hints::stylesheet(text, body, found);
        }
    }
}

/// What one tag refers to.
fn tag(text: &str, name: Span, markup: Span, found: &mut ScanResult) {
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
            // `{% layout none %}` does not name a layout.
            if kind != EdgeKind::Layout {
                found.reference(kind, EdgeNature::Indirect, variable);
            }
        }
    }
    arguments(text, markup, found);
}

/// `{% content_for 'block', type: 'slide', id: 'x' %}` or `{% content_for 'blocks' %}`.
fn content_for(text: &str, markup: Span, found: &mut ScanResult) {
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
fn expression(text: &str, markup: Span, found: &mut ScanResult) {
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
    found: &mut ScanResult,
) {
    match literal {
        Some(name) if !built => found.reference(kind, EdgeNature::Direct, name),
        _ => {
            let expression = Span { start: markup.start, end: stage.start };
            found.reference(kind, EdgeNature::Indirect, expression);
        }
    }
}

/// The parts of an expression between pipes. Pipes inside quotes are text.
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

/// The settings that an expression or a tag's arguments read.
fn arguments(text: &str, markup: Span, found: &mut ScanResult) {
    let inner = markup.of(text);
    for at in memmem::find_iter(inner.as_bytes(), b"settings.") {
        let start = markup.start as usize + at + "settings.".len();
        let (name, _) = split_name(text, Span { start: start as u32, end: markup.end });
        let before = text[..markup.start as usize + at].chars().next_back();
        if before == Some('.') {
            found.identifiers.push(name); // a setting of the section or block itself
        } else {
            found.reference(EdgeKind::Setting, EdgeNature::Direct, name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::SymbolKind;

    fn references(text: &str) -> Vec<(EdgeKind, EdgeNature, &str)> {
        let mut found = ScanResult::default();
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
            let mut found = ScanResult::default();
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
        let mut found = ScanResult::default();
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
