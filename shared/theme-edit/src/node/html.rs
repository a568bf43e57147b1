//! Elements of the HTML between the Liquid of a file, as far as it is certain where they end.

use std::collections::BTreeMap;
use std::ops::Range;

use memchr::{memchr, memchr2, memmem};
use theme::text::Span;

use super::Finder;
use super::liquid::Blocks;
use crate::kind::NodeKind;

const VOID: [&str; 14] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track",
    "wbr",
];
/// Elements whose end may be left out.
const OPTIONAL: [&str; 14] = [
    "body", "dd", "dt", "head", "html", "li", "optgroup", "option", "p", "tbody", "td", "tfoot", "thead",
    "tr",
];

struct Element {
    tag: String,
    /// Its tag, id and classes, as a selector.
    name: String,
    start: usize,
    branch: u32,
}

/// Adds the elements of a template.
pub(super) fn read(finder: &mut Finder, blocks: &Blocks) {
    let masked = blocks.masked.as_str();
    let bytes = masked.as_bytes();
    let mut open: Vec<Element> = Vec::new();
    let mut pairs: Vec<(Element, Range<usize>)> = Vec::new();
    let mut doubts: BTreeMap<String, usize> = BTreeMap::new();
    let branch = |at: usize| {
        let index = blocks.branches.partition_point(|(start, _)| *start <= at);
        blocks.branches[index.saturating_sub(1)].1
    };
    let mut at = 0;
    while let Some(found) = memchr(b'<', &bytes[at..]) {
        let start = at + found;
        at = start + 1;
        let rest = &bytes[at..];
        if rest.starts_with(b"!--") {
            at = memmem::find(rest, b"-->").map_or(bytes.len(), |end| at + end + 3);
        } else if rest.first() == Some(&b'/') && rest.get(1).is_some_and(u8::is_ascii_alphabetic) {
            let tag = tag_name(masked, at + 1);
            let end = memchr2(b'>', b'<', rest).map_or(bytes.len(), |end| at + end);
            if bytes.get(end) != Some(&b'>') {
                doubts.entry(tag).or_insert(start);
                continue;
            }
            at = end + 1;
            let near = open.len().saturating_sub(64);
            match open[near..].iter().rposition(|element| element.tag == tag) {
                None => {
                    doubts.entry(tag).or_insert(start);
                }
                Some(depth) => {
                    for unclosed in open.drain(near + depth + 1..) {
                        if !OPTIONAL.contains(&unclosed.tag.as_str()) {
                            doubts.entry(unclosed.tag).or_insert(unclosed.start);
                        }
                    }
                    if let Some(element) = open.pop() {
                        if element.branch != branch(start) {
                            doubts.entry(tag).or_insert(start);
                        }
                        let span = element.start..at;
                        pairs.push((element, span));
                    }
                }
            }
        } else if rest.first().is_some_and(u8::is_ascii_alphabetic) {
            let tag = tag_name(masked, at);
            let (element, end) = match opened(masked, tag.clone(), start, branch(start)) {
                Ok(read) => read,
                Err(stopped) => {
                    doubts.entry(tag).or_insert(start);
                    at = stopped;
                    continue;
                }
            };
            at = end;
            if VOID.contains(&tag.as_str()) || bytes[..end].ends_with(b"/>") {
                pairs.push((element, start..end));
            } else if let "script" | "style" | "textarea" | "title" = tag.as_str() {
                let close = format!("</{tag}");
                let Some(body_end) = memmem::find(&bytes[end..], close.as_bytes()).map(|found| end + found)
                else {
                    doubts.entry(tag).or_insert(start);
                    break;
                };
                at = memchr(b'>', &bytes[body_end..]).map_or(bytes.len(), |found| body_end + found + 1);
                pairs.push((element, start..at));
                let body = Span::new(end, body_end);
                match tag.as_str() {
                    "style" => finder.css(masked, body),
                    "script" => finder.script(masked, body),
                    _ => {}
                }
            } else {
                open.push(element);
            }
        }
    }
    for element in open {
        if !OPTIONAL.contains(&element.tag.as_str()) {
            doubts.entry(element.tag).or_insert(element.start);
        }
    }
    for (element, span) in pairs {
        let doubt = doubts.get(&element.tag).map(|at| {
            let line = finder.lines.line_of(*at as u32);
            format!("a `{}` opens or closes alone, or on one branch only (line {line})", element.tag)
        });
        let doubt = blocks.doubt.clone().or(doubt);
        finder.add(NodeKind::HtmlElement, &element.name, span, doubt.as_ref());
    }
}

fn tag_name(text: &str, at: usize) -> String {
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b':');
    let length = text.as_bytes()[at..].iter().take_while(|b| is_name(b)).count();
    text[at..at + length].to_ascii_lowercase()
}

/// Reads the tag that begins at `start`. The second value is where it ends.
///
/// # Errors
/// Where the reading stopped, if the tag has no end.
fn opened(masked: &str, tag: String, start: usize, branch: u32) -> Result<(Element, usize), usize> {
    let bytes = masked.as_bytes();
    let quoted = |at: usize| memchr(bytes[at], &bytes[at + 1..]).ok_or(bytes.len());
    let mut at = start + 1 + tag.len();
    let (mut id, mut classes) = (None, Vec::new());
    loop {
        match *bytes.get(at).ok_or(bytes.len())? {
            b'>' => break,
            b'<' => return Err(at),
            b'"' | b'\'' => at += quoted(at)? + 2,
            b if b.is_ascii_alphabetic() => {
                let name = tag_name(masked, at);
                at += name.len();
                if bytes.get(at) != Some(&b'=') {
                    continue;
                }
                at += 1;
                let value = match bytes.get(at) {
                    Some(b'"' | b'\'') => {
                        let length = quoted(at)?;
                        let value = &masked[at + 1..at + 1 + length];
                        at += length + 2;
                        value
                    }
                    _ => {
                        let is_end = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'>' | b'<');
                        let length = bytes[at..].iter().take_while(|b| !is_end(b)).count();
                        let value = &masked[at..at + length];
                        at += length;
                        value
                    }
                };
                match name.as_str() {
                    "id" if !value.trim().is_empty() => id = Some(value.trim()),
                    "class" => classes.extend(value.split_ascii_whitespace()),
                    _ => {}
                }
            }
            _ => at += 1,
        }
    }
    let mut name = tag.clone();
    if let Some(id) = id {
        name.push('#');
        name.push_str(id);
    }
    for class in classes {
        name.push('.');
        name.push_str(class);
    }
    Ok((Element { tag, name, start, branch }, at + 1))
}

/// Whether an element's full name has all parts of a simple selector.
pub(super) fn is_selected(name: &str, selector: &str) -> bool {
    let parts = |text: &str| -> Vec<String> {
        let mut parts: Vec<String> = Vec::new();
        for c in text.chars() {
            if matches!(c, '.' | '#') || parts.is_empty() {
                parts.push(String::new());
            }
            if let Some(part) = parts.last_mut() {
                part.push(c);
            }
        }
        parts
    };
    let has = parts(name);
    let asked = parts(selector.trim());
    !asked.is_empty() && asked.iter().all(|part| has.contains(part))
}
