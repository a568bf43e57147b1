//! The declarations of stylesheets that hide elements.

use memchr::memmem;
use theme::text::Span;

pub struct Hiding {
    pub selector: Span,
    pub at: u32,
    /// The declaration: `display: none`.
    pub what: &'static str,
    /// The condition of the innermost `@media`, `@container` or `@supports` around it.
    pub condition: Option<Span>,
}

const HIDES: [(&str, &str, &str); 4] = [
    ("display", "none", "display: none"),
    ("visibility", "hidden", "visibility: hidden"),
    ("opacity", "0", "opacity: 0"),
    ("content-visibility", "hidden", "content-visibility: hidden"),
];

struct Open {
    prelude: Span,
    condition: Option<Span>,
}

/// Reads the part `within` of a text.
pub fn hiding(text: &str, within: Span) -> Vec<Hiding> {
    let bytes = text.as_bytes();
    let (mut at, end) = (within.start as usize, (within.end as usize).min(bytes.len()));
    let mut start = at;
    let mut open: Vec<Open> = Vec::new();
    let mut found = Vec::new();
    let skip = |from: usize, needle: &[u8]| {
        memmem::find(&bytes[from.min(end)..end], needle).map_or(end, |length| from + length + needle.len())
    };
    while at < end {
        match bytes[at] {
            b'/' if bytes[at..end].starts_with(b"/*") => {
                let is_first = text.get(start..at).is_some_and(|before| before.trim().is_empty());
                at = skip(at + 2, b"*/");
                if is_first {
                    start = at;
                }
            }
            b'{' if bytes[at..end].starts_with(b"{{") => at = skip(at + 2, b"}}"),
            b'{' if bytes[at..end].starts_with(b"{%") => {
                let is_first = text.get(start..at).is_some_and(|before| before.trim().is_empty());
                at = skip(at + 2, b"%}");
                if is_first {
                    start = at;
                }
            }
            quote @ (b'"' | b'\'') => {
                at += 1;
                while at < end && bytes[at] != quote && bytes[at] != b'\n' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at = (at + 1).min(end);
            }
            b'{' => {
                let prelude = trimmed(text, start, at);
                let word = prelude.of(text);
                let is_condition =
                    ["@media", "@container", "@supports"].iter().any(|name| word.starts_with(name));
                let outer = open.last().and_then(|outer| outer.condition);
                open.push(Open { prelude, condition: if is_condition { Some(prelude) } else { outer } });
                at += 1;
                start = at;
            }
            b';' | b'}' => {
                if let Some(rule) = open.last()
                    && let Some(what) = hides(trimmed(text, start, at).of(text))
                {
                    let selector = if rule.prelude.of(text).starts_with('@') {
                        // Within a nested `@media`, the rule around it has the selector.
                        let outer =
                            open.iter().rev().take(8).find(|outer| !outer.prelude.of(text).starts_with('@'));
                        outer.map_or(rule.prelude, |outer| outer.prelude)
                    } else {
                        rule.prelude
                    };
                    let place = trimmed(text, start, at).start;
                    found.push(Hiding { selector, at: place, what, condition: rule.condition });
                }
                if bytes[at] == b'}' {
                    open.pop();
                }
                at += 1;
                start = at;
            }
            _ => at += 1,
        }
    }
    found
}

fn trimmed(text: &str, start: usize, end: usize) -> Span {
    let inner = text.get(start..end).unwrap_or_default();
    let from = start + (inner.len() - inner.trim_start().len());
    Span::new(from, from + inner.trim().len())
}

/// What a declaration, or the list of a `style` attribute, hides with.
pub fn hides(declarations: &str) -> Option<&'static str> {
    // A declaration is short. Hostile ones need not be read to their end.
    declarations.split(';').take(64).find_map(|declaration| {
        let (name, value) = declaration.split_once(':')?;
        let value = value.trim().trim_end_matches("!important").trim_end();
        let name = name.trim();
        let is = |(property, word, _): &&(&str, &str, &str)| {
            name.eq_ignore_ascii_case(property) && value.eq_ignore_ascii_case(word)
        };
        HIDES.iter().find(is).map(|(_, _, what)| *what)
    })
}

/// Whether the last part of one of the selectors is about this class, id or element: `.a .price:hover` is about `.price`. A state or
/// a negation of it counts, too.
pub fn is_about(selectors: &str, target: &str) -> bool {
    selectors.split(',').any(|selector| {
        let last = selector.trim_end().rsplit([' ', '>', '+', '~', '\n', '\t']).next().unwrap_or_default();
        let mut from = 0;
        while let Some(found) = last[from..].find(target) {
            let (start, end) = (from + found, from + found + target.len());
            let is_start = target.starts_with(['.', '#']) || start == 0;
            let is_end = !last.as_bytes().get(end).is_some_and(|&b| crate::text::is_word(b));
            if is_start && is_end && !last[..start].contains(":not(") {
                return true;
            }
            from = end;
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_hide_are_found_with_their_conditions() {
        let css = "/* x */ .a { color: red; display: none !important }\n@media (max-width: 9px) { .b, .c { visibility:hidden; } }\n.d { &:hover { opacity: 0 } @media print { display: none; } }\n.e { --x: \"display: none\"; background: {{ c }} }";
        let found = hiding(css, Span::new(0, css.len()));
        let shown: Vec<_> = found
            .iter()
            .map(|hiding| (hiding.selector.of(css), hiding.what, hiding.condition.map_or("", |c| c.of(css))))
            .collect();
        assert_eq!(
            shown,
            [
                (".a", "display: none", ""),
                (".b, .c", "visibility: hidden", "@media (max-width: 9px)"),
                ("&:hover", "opacity: 0", ""),
                (".d", "display: none", "@media print"),
            ]
        );
    }

    #[test]
    fn a_selector_is_about_its_last_part() {
        let check = |selectors: &str, target: &str, expected: bool| {
            assert_eq!(is_about(selectors, target), expected, "{selectors} {target}");
        };
        check(".price", ".price", true);
        check(".card .price.on:hover", ".price", true);
        check(".price .badge", ".price", false);
        check(".price-list", ".price", false);
        check("a, .b > .price", ".price", true);
        check(".x:not(.price)", ".price", false);
        check("cart-drawer[open]", "cart-drawer", true);
        check("my-cart-drawer", "cart-drawer", false);
    }
}
