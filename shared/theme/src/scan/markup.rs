//! The HTML scanner: custom elements, classes, ids, and embedded styles and scripts.

use memchr::memmem;

use super::{EdgeKind, EdgeNature, ScanResult, css, hints, script};
use crate::text::Span;

/// Reads `masked`, a template whose Liquid was replaced by blanks byte by byte, so its positions are those of the file.
pub fn scan(masked: &str, found: &mut ScanResult) {
    let bytes = masked.as_bytes();
    let mut at = 0;
    while let Some(open) = memchr::memchr(b'<', &bytes[at..]).map(|found| found + at) {
        at = open + 1;
        let rest = &bytes[at..];
        if rest.starts_with(b"!--") {
            let end = memmem::find(rest, b"-->").map_or(bytes.len(), |end| at + end);
            found.comments.push(Span::new(at + 3.min(end - at), end));
            at = end;
        } else if rest.first().is_some_and(u8::is_ascii_alphabetic) {
            let name = Span::new(at, name_end(bytes, at));
            if name.of(masked).contains('-') {
                found.reference(EdgeKind::CustomElement, EdgeNature::Direct, name);
            }
            at = attributes(masked, name.end as usize, found);
            let verbatim = match name.of(masked) {
                "style" => Some("</style"),
                "script" => Some("</script"),
                _ => None,
            };
            if let Some(close) = verbatim {
                let end = memmem::find(&bytes[at..], close.as_bytes()).map_or(bytes.len(), |end| at + end);
                let body = Span::new(at, end);
                if close == "</style" {
                    css::scan(masked, body, found);
                    hints::stylesheet(masked, body, found);
                } else {
                    script::scan(masked, body, found);
                }
                at = end;
            }
        }
    }
}

fn name_end(bytes: &[u8], from: usize) -> usize {
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b':');
    from + bytes[from..].iter().take_while(|b| is_name(b)).count()
}

/// Reads attributes until the tag ends or another tag begins. Returns the position to continue from.
fn attributes(masked: &str, from: usize, found: &mut ScanResult) -> usize {
    let bytes = masked.as_bytes();
    let mut at = from;
    while at < bytes.len() {
        match bytes[at] {
            b'>' => return at + 1,
            b'<' => return at,
            b if b.is_ascii_alphabetic() => {
                let name = Span::new(at, name_end(bytes, at));
                at = name.end as usize;
                if bytes.get(at) != Some(&b'=') {
                    continue;
                }
                at += 1;
                let value = value(bytes, at);
                let quoted = value.start as usize > at;
                at = value.end as usize;
                at += usize::from(quoted && bytes.get(at).is_some_and(|&b| b != b'<'));
                hints::attribute(masked, name.of(masked), value, found);
                match name.of(masked) {
                    "class" => words(masked, value, |class| {
                        found.reference(EdgeKind::CssClass, EdgeNature::Direct, class);
                    }),
                    "id" | "name" | "is" | "for" => words(masked, value, |id| found.identifiers.push(id)),
                    data if data.starts_with("data-") => found.identifiers.push(name),
                    _ => {}
                }
            }
            _ => at += 1,
        }
    }
    at
}

/// An attribute's value without its quotes. An unclosed value ends at the next tag.
fn value(bytes: &[u8], at: usize) -> Span {
    match bytes.get(at) {
        Some(&quote @ (b'"' | b'\'')) => {
            let rest = &bytes[at + 1..];
            let length = memchr::memchr2(quote, b'<', rest).unwrap_or(rest.len());
            Span::new(at + 1, at + 1 + length)
        }
        _ => {
            let is_end = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'>' | b'<');
            let length = bytes[at..].iter().take_while(|b| !is_end(b)).count();
            Span::new(at, at + length)
        }
    }
}

fn words(text: &str, span: Span, mut each: impl FnMut(Span)) {
    let inner = span.of(text);
    let base = inner.as_ptr() as usize;
    for word in inner.split_ascii_whitespace() {
        let start = span.start as usize + (word.as_ptr() as usize - base);
        // A name that Liquid completes (`card--{{ style }}`) is incomplete, but it is still a useful name.
        each(Span::new(start, start + word.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_classes_and_ids_are_found() {
        let text = "<!-- note --><cart-drawer class=\"drawer  is-open\" id='x' data-url=a hidden>\
                    <b class=one></b></cart-drawer><i class=\"open <u class='two'>";
        let mut found = ScanResult::default();
        scan(text, &mut found);
        let references: Vec<_> = found.references.iter().map(|r| (r.kind, r.name.of(text))).collect();
        assert_eq!(
            references,
            [
                (EdgeKind::CustomElement, "cart-drawer"),
                (EdgeKind::CssClass, "drawer"),
                (EdgeKind::CssClass, "is-open"),
                (EdgeKind::CssClass, "one"),
                (EdgeKind::CssClass, "open"),
                (EdgeKind::CssClass, "two"),
            ]
        );
        assert_eq!(found.comments.iter().map(|c| c.of(text)).collect::<Vec<_>>(), [" note "]);
        assert_eq!(found.identifiers.iter().map(|i| i.of(text)).collect::<Vec<_>>(), ["x", "data-url"]);
    }

    #[test]
    fn styles_and_scripts_within_are_read() {
        let text = "<style>.a{}</style><script>class B {}</script><script>open";
        let mut found = ScanResult::default();
        scan(text, &mut found);
        let symbols: Vec<_> = found.symbols.iter().map(|s| s.name.of(text)).collect();
        assert_eq!(symbols, ["a", "B"]);
    }
}
