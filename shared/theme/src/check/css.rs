//! A scanner of stylesheets. It knows nesting, layers and containers; it checks what would lose rules or declarations.

use super::Severity::{self, Error, Warning};
use super::{Notes, properties};
use crate::text::Span;

/// What a stylesheet defines.
#[derive(Debug, Default)]
pub struct CssFacts {
    pub classes: Vec<(String, usize)>,
}

const CODE: &str = "CssSyntax";

const AT_RULES: [&str; 24] = [
    "media",
    "supports",
    "container",
    "layer",
    "keyframes",
    "-webkit-keyframes",
    "-moz-keyframes",
    "font-face",
    "import",
    "charset",
    "namespace",
    "page",
    "property",
    "counter-style",
    "font-feature-values",
    "starting-style",
    "scope",
    "view-transition",
    "position-try",
    "font-palette-values",
    "document",
    "-moz-document",
    "-ms-viewport",
    "viewport",
];

struct Block {
    at: usize,
    indent: Option<usize>,
    is_rule: bool,
    /// Whether its content is declarations, and not rules.
    is_keyframes: bool,
}

struct Scanner<'a, 'n> {
    bytes: &'a [u8],
    text: &'a str,
    at: usize,
    end: usize,
    open: Vec<Block>,
    notes: &'n mut Notes,
    facts: CssFacts,
    /// The first rule that seems to lack its end: another rule begins in it no further to the right, or its brace stands
    /// further to the left.
    open_odd: Option<usize>,
    /// The first closing brace that is not below its rule, and how many there are. With many, indentation says nothing.
    closed_odd: Option<usize>,
    odd: usize,
    has_loose: bool,
    quiet: bool,
    /// No `)` stands on the line before here.
    no_bracket_before: usize,
    /// The last `{`.
    last_rule: Option<usize>,
}

/// Checks the part `within` of `text`. `text` has blanks where Liquid stands. `quiet` if Liquid chooses between parts of
/// it: then missing braces are not reported.
pub fn scan(text: &str, within: Span, quiet: bool, notes: &mut Notes) -> CssFacts {
    let mut scanner = Scanner {
        bytes: text.as_bytes(),
        text,
        at: within.start as usize,
        end: (within.end as usize).min(text.len()),
        open: Vec::new(),
        notes,
        facts: CssFacts::default(),
        open_odd: None,
        closed_odd: None,
        odd: 0,
        has_loose: false,
        quiet,
        no_bracket_before: 0,
        last_rule: memchr::memrchr(b'{', &text.as_bytes()[..(within.end as usize).min(text.len())]),
    };
    scanner.run();
    scanner.facts
}

impl Scanner<'_, '_> {
    fn indent(&self, at: usize) -> Option<usize> {
        super::indent_of(self.bytes, at)
    }

    /// The first byte at or after `from` that is neither blank nor in a comment.
    fn first(&self, mut from: usize, to: usize) -> usize {
        loop {
            while from < to && self.bytes[from].is_ascii_whitespace() {
                from += 1;
            }
            if !self.bytes[from..to].starts_with(b"/*") {
                return from;
            }
            from = memchr::memmem::find(&self.bytes[from..to], b"*/").map_or(to, |end| from + end + 2);
        }
    }

    fn run(&mut self) {
        let mut start = self.at;
        let mut brackets: Vec<(u8, usize)> = Vec::new();
        while self.at < self.end {
            let byte = self.bytes[self.at];
            match byte {
                b'/' if self.bytes[self.at..self.end].starts_with(b"/*") => {
                    match memchr::memmem::find(&self.bytes[self.at + 2..self.end], b"*/") {
                        Some(length) => self.at += length + 4,
                        None => {
                            let severity = self.loss_after(self.at);
                            self.notes.add(self.at, severity, CODE, "a comment has no `*/`");
                            return;
                        }
                    }
                    continue;
                }
                b'*' if self.bytes[self.at..self.end].starts_with(b"*/") => {
                    // Within a rule, one declaration is lost.
                    let severity = if self.open.last().is_some_and(|block| block.is_rule) {
                        Warning
                    } else {
                        self.loss_after(self.at)
                    };
                    self.notes.add(self.at, severity, CODE, "`*/` closes no comment");
                    self.at += 2;
                    start = self.at;
                    continue;
                }
                b'"' | b'\'' => self.string(byte),
                b'\\' => self.at += 1,
                b'(' | b'[' => {
                    if byte == b'(' && self.bytes[..self.at].ends_with(b"url") && self.url() {
                        continue;
                    }
                    brackets.push((byte, self.at));
                }
                b')' | b']' => {
                    let partner = if byte == b')' { b'(' } else { b'[' };
                    if brackets.last().is_some_and(|(open, _)| *open == partner) {
                        brackets.pop();
                    } else {
                        // It takes at most one declaration with it.
                        self.notes.add(self.at, Warning, CODE, format!("`{}` closes nothing", byte as char));
                    }
                }
                b'{' => {
                    self.brackets(&mut brackets);
                    self.open_block(start);
                    start = self.at + 1;
                }
                b'}' => {
                    self.brackets(&mut brackets);
                    self.declaration(start, self.at);
                    self.close_block();
                    start = self.at + 1;
                }
                // A URL without quotes may hold a semicolon, but it was skipped.
                b';' if brackets.is_empty() || self.next_line_is_declaration() => {
                    self.brackets(&mut brackets);
                    self.declaration(start, self.at);
                    start = self.at + 1;
                }
                _ => {}
            }
            self.at += 1;
        }
        self.at = self.end;
        self.brackets(&mut brackets);
        self.rest(start);
    }

    /// How bad it is if the part of a rule that follows is lost. At the end of a sheet there is none.
    fn loss_after(&self, at: usize) -> Severity {
        if self.last_rule.is_some_and(|last| at < last) { Error } else { Warning }
    }

    fn next_line_is_declaration(&self) -> bool {
        self.bytes[self.at + 1..self.end].iter().take_while(|b| b.is_ascii_whitespace()).any(|b| *b == b'\n')
    }

    fn brackets(&mut self, brackets: &mut Vec<(u8, usize)>) {
        if let Some((byte, at)) = brackets.first().copied() {
            self.notes.add(at, Error, CODE, format!("`{}` has no closing bracket", byte as char));
        }
        brackets.clear();
    }

    fn string(&mut self, quote: u8) {
        let start = self.at;
        self.at += 1;
        while self.at < self.end {
            match self.bytes[self.at] {
                b'\\' => self.at += 1,
                b'\n' => {
                    self.notes.add(start, Error, CODE, "a string has no closing quote");
                    return;
                }
                byte if byte == quote => return,
                _ => {}
            }
            self.at += 1;
        }
        self.notes.add(start, Error, CODE, "a string has no closing quote");
    }

    /// Skips the URL without quotes that begins here.
    fn url(&mut self) -> bool {
        let from = self.first(self.at + 1, self.end);
        if matches!(self.bytes.get(from), Some(b'"' | b'\'')) {
            return false;
        }
        if self.at < self.no_bracket_before {
            return false;
        }
        let rest = &self.bytes[self.at..self.end];
        match memchr::memchr2(b')', b'\n', rest) {
            Some(length) if rest[length] == b')' => {
                self.at += length + 1;
                true
            }
            // The next `url(` of this line does not look again.
            end => {
                self.no_bracket_before = end.map_or(self.end, |length| self.at + length);
                false
            }
        }
    }

    fn open_block(&mut self, start: usize) {
        let at = self.first(start, self.at);
        let prelude = self.text.get(at..self.at).unwrap_or_default().trim_end();
        let indent = self.indent(at);
        let is_rule = !prelude.starts_with('@');
        if let Some(parent) = self.open.last()
            && parent.is_rule
            && let (Some(outer), Some(inner)) = (parent.indent, indent)
            && inner <= outer
        {
            self.open_odd.get_or_insert(parent.at);
        }
        let in_keyframes = self.open.last().is_some_and(|parent| parent.is_keyframes);
        if let Some(rule) = prelude.strip_prefix('@') {
            self.at_rule(at, rule);
        } else if !in_keyframes {
            self.selector(at, prelude);
        }
        self.open.push(Block {
            at,
            indent,
            is_rule,
            is_keyframes: prelude.contains("keyframes") && !is_rule,
        });
    }

    fn at_rule(&mut self, at: usize, rule: &str) {
        let name =
            &rule[..rule.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).unwrap_or(rule.len())];
        if !name.is_empty()
            && !AT_RULES.contains(&name.to_ascii_lowercase().as_str())
            && !name.starts_with('-')
        {
            self.notes.add(at, Warning, CODE, format!("there is no rule `@{name}`"));
        }
        if matches!(name, "media" | "container" | "supports") && rule[name.len()..].trim().is_empty() {
            self.notes.add(at, Warning, CODE, format!("`@{name}` has no condition"));
        }
        if name == "media" {
            let condition = &rule[name.len()..];
            // `(min-width 750px)` lacks its colon. A bare feature has one word.
            for part in condition.split('(').skip(1) {
                let part = part.split(')').next().unwrap_or_default().trim();
                let mut words = part.split_whitespace();
                let first = words.next().unwrap_or_default();
                if !part.contains([':', '<', '>', '='])
                    && words.next().is_some()
                    && (first.starts_with("min-") || first.starts_with("max-"))
                {
                    self.notes.add(at, Error, CODE, format!("the condition `({part})` lacks its colon"));
                }
            }
        }
    }

    fn selector(&mut self, at: usize, prelude: &str) {
        if prelude.is_empty() {
            if !self.quiet {
                // Nothing but itself is lost.
                self.notes.add(self.at, Warning, CODE, "a rule has no selector");
            }
            return;
        }
        if prelude.starts_with("//") {
            // If its line has the whole rule, the rule is lost as it shall be.
            let severity = if prelude.contains('\n') { Error } else { Warning };
            self.notes.add(at, severity, CODE, "`//` begins no comment in CSS");
            return;
        }
        if prelude.ends_with(',') || prelude.starts_with(',') || prelude.replace(' ', "").contains(",,") {
            self.notes.add(at, Warning, CODE, "a selector is missing beside a comma");
        }
        let bytes = prelude.as_bytes();
        let mut index = 0;
        let mut depth = 0;
        while index < bytes.len() {
            match bytes[index] {
                b'[' => depth += 1,
                b']' => depth -= 1,
                b'\\' => index += 1,
                b'"' | b'\'' => {
                    let quote = bytes[index];
                    index += 1 + memchr::memchr(quote, &bytes[index + 1..]).unwrap_or(bytes.len());
                }
                b'/' if bytes[index..].starts_with(b"/*") => {
                    index += memchr::memmem::find(&bytes[index..], b"*/").map_or(bytes.len(), |end| end + 1);
                }
                b'.' if depth == 0 => {
                    let from = index + 1;
                    let mut to = from;
                    while bytes
                        .get(to)
                        .is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_') || *b >= 0x80)
                    {
                        to += 1;
                    }
                    // An escape continues a class, such as `w-1\/2`: its name is not read.
                    if to > from && bytes.get(to) != Some(&b'\\') {
                        if !bytes[from].is_ascii_digit() {
                            self.facts.classes.push((prelude[from..to].to_owned(), at + index));
                        }
                    } else if to == from && bytes.get(to) != Some(&b'\\') {
                        self.notes.add(at + index, Warning, CODE, "a dot in a selector has no class");
                    }
                }
                _ => {}
            }
            index += 1;
        }
    }

    fn close_block(&mut self) {
        match self.open.pop() {
            Some(block) => {
                if let (Some(open), Some(close)) = (block.indent, self.indent(self.at))
                    && open != close
                {
                    self.closed_odd.get_or_insert(self.at);
                    self.odd += 1;
                    if close < open {
                        self.open_odd.get_or_insert(block.at);
                    }
                }
            }
            None => {
                if !self.quiet && !self.has_loose {
                    let odd = self.closed_odd.filter(|_| self.odd == 1);
                    // The browser drops the rule behind it. At the end there is none.
                    let is_last = self.first(self.at + 1, self.end) >= self.end;
                    let (severity, message) = match odd {
                        None if is_last => (Warning, "there is a `}` too many at the end"),
                        Some(_) if is_last => (Error, "there is a `}` too many, here or at the end"),
                        _ => (Error, "there is a `}` too many: the rule behind it is lost"),
                    };
                    self.notes.add(odd.unwrap_or(self.at), severity, CODE, message);
                }
                self.has_loose = true;
            }
        }
    }

    fn rest(&mut self, start: usize) {
        if self.quiet {
            return;
        }
        if let Some(block) = self.open.last() {
            let at = self.open_odd.unwrap_or(block.at);
            // The end of the sheet ends it, too. With no other rule behind it, nothing is lost.
            let brace = memchr::memchr(b'{', self.bytes.get(at..self.end).unwrap_or_default());
            let severity = self.loss_after(brace.map_or(self.end, |brace| at + brace));
            self.notes.add(at, severity, CODE, "a rule has no `}`");
            return;
        }
        let at = self.first(start, self.end);
        if at < self.end && !self.text.get(at..self.end).unwrap_or_default().trim().is_empty() {
            let tail = self.text[at..self.end].trim();
            // An output can print whole rules, such as `font_face`.
            let is_output = tail.split_whitespace().all(|word| word.bytes().all(|b| b == b'_'));
            if !is_output && !tail.starts_with('@') && tail != "-->" && tail != "<!--" {
                // A file that was cut ends within a selector. A comment or a word behind the last rule takes nothing with it.
                let is_cut = self.indent(at).is_some() && !tail.starts_with("//");
                let severity = if is_cut { Error } else { Warning };
                self.notes.add(at, severity, CODE, "the stylesheet ends within a rule");
            }
        }
    }

    fn declaration(&mut self, start: usize, end: usize) {
        let at = self.first(start, end);
        let text = self.text.get(at..end).unwrap_or_default().trim_end();
        if text.is_empty() {
            return;
        }
        if let Some(rule) = text.strip_prefix('@') {
            if self.bytes.get(end) == Some(&b';') {
                self.at_rule(at, rule);
            }
            return;
        }
        if self.open.is_empty() {
            if !self.has_loose && !self.quiet {
                let severity = self.loss_after(end);
                self.notes.add(at, severity, CODE, "a declaration stands outside of any rule");
                self.has_loose = true;
            }
            return;
        }
        if text.starts_with("//") {
            // One declaration is lost at most.
            self.notes.add(at, Warning, CODE, "`//` begins no comment in CSS");
            return;
        }
        let Some((name, value)) = text.split_once(':') else {
            if !self.quiet {
                let message = format!("the declaration `{}` lacks its colon", clip(text));
                self.notes.add(at, Warning, CODE, message);
            }
            return;
        };
        let property = name.trim_end();
        if property.is_empty() || (property.contains(char::is_whitespace) && !property.contains('\n')) {
            if !self.quiet {
                self.notes.add(at, Warning, CODE, format!("`{}` is not a property", clip(property)));
            }
            return;
        }
        if property.contains('\n') {
            if !self.quiet {
                self.notes.add(
                    at,
                    Warning,
                    CODE,
                    format!(
                        "the declaration `{}` lacks its semicolon or colon",
                        clip(property.lines().next().unwrap_or_default())
                    ),
                );
            }
            return;
        }
        if property.starts_with("--") {
            return; // a custom property holds anything
        }
        // In `@property`, `@font-face` and the like, other rules hold.
        let is_style = self.open.iter().any(|block| block.is_rule);
        if !self.quiet && is_style && !property.contains("__") {
            if let Some(known) = properties::meant(property) {
                let message = format!("there is no property `{}`: `{known}` is meant", clip(property));
                self.notes.add(at, Warning, CODE, message);
            } else if let Some(message) = properties::wrong_value(property, value) {
                self.notes.add(at, Warning, CODE, message);
            }
        }
        self.value(at, name.len() + 1, value);
    }

    fn value(&mut self, at: usize, offset: usize, value: &str) {
        if value.trim().is_empty() {
            if !self.quiet {
                self.notes.add(at, Warning, CODE, "a declaration has no value");
            }
            return;
        }
        // A line of the value that looks like another declaration: the semicolon before it is missing.
        let mut place = at + offset;
        let mut end_of_last = place;
        let mut depth = 0_i32;
        for (number, line) in value.split_inclusive('\n').enumerate() {
            let trimmed = line.trim_start();
            if number > 0 && depth == 0 {
                let word =
                    trimmed.find(|c: char| !(c.is_ascii_alphabetic() || c == '-')).unwrap_or(trimmed.len());
                let after = trimmed[word..].trim_start_matches(' ');
                if word > 1 && after.starts_with(':') && !after.starts_with("::") && !self.quiet {
                    let message = "a semicolon is missing after this declaration";
                    self.notes.add(end_of_last, Warning, CODE, message);
                    return;
                }
            }
            depth += line.bytes().map(|b| i32::from(b == b'(') - i32::from(b == b')')).sum::<i32>();
            let kept = line.trim_end();
            if !kept.is_empty() {
                end_of_last = place + kept.len() - 1;
            }
            place += line.len();
        }
        for (index, _) in value.match_indices('!') {
            let word = value[index + 1..].trim_start();
            let word = &word[..word.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(word.len())];
            if !matches!(word.to_ascii_lowercase().as_str(), "important" | "default" | "ie") && !self.quiet {
                self.notes.add(at + offset + index, Warning, CODE, format!("`!{word}` is not `!important`"));
            }
        }
        if value.contains("url(") || value.contains(['"', '\'']) {
            return;
        }
        for (index, _) in value.match_indices('#') {
            let digits = &value[index + 1..];
            let digits = &digits
                [..digits.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(digits.len())];
            let is_color =
                matches!(digits.len(), 3 | 4 | 6 | 8) && digits.bytes().all(|b| b.is_ascii_hexdigit());
            if !is_color && !self.quiet && !digits.is_empty() {
                self.notes.add(at + offset + index, Warning, CODE, format!("`#{digits}` is not a colour"));
            }
        }
    }
}

fn clip(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(usize, String)> {
        let mut notes = Notes::default();
        scan(text, Span::new(0, text.len()), false, &mut notes);
        notes
            .list
            .iter()
            .map(|note| (text[..note.at].matches('\n').count() + 1, note.message.clone()))
            .collect()
    }

    #[test]
    fn modern_stylesheets_are_fine() {
        for text in [
            ".a { color: red; .b & { color: #fff } &:hover { x: y } @media (width > 3px) { z: 1 } }",
            "@layer base, theme; @layer base { a:has(> img, .x) { b: c } }",
            "@container card (min-width: 3rem) { .a::before { content: '}' } }",
            "@import url(x.css;y); .a { background: url(data:image/png;base64,AA==); --x: {a: b}; }",
            "@keyframes a { from { opacity: 0 } 50.5% { opacity: 1 } }",
            ".a { grid-template-areas:\n 'a b'\n 'c d'; color: red }",
            "@font-face { font-family: a; src: url('a'), url('b') }",
            ".w-1\\/2 { width: calc(1px + (2 * 3px)) !important }",
            "a { transition: opacity 1s,\n transform 2s; filter: progid:DXImageTransform.Microsoft.gradient(startColorstr='#1', endColorstr='#2'); }",
            "",
        ] {
            assert_eq!(found(text), [], "{text}");
        }
    }

    #[test]
    fn damage_is_found_on_its_line() {
        let check = |text: &str, line: usize, part: &str| {
            let found = found(text);
            assert!(
                found.iter().any(|(at, message)| *at == line && message.contains(part)),
                "{text}: {found:?}"
            );
        };
        check(".a {\n  color: red;\n\n.b {\n  x: y;\n}\n", 1, "no `}`");
        check("@media (x) {\n  .a {\n    b: c;\n\n  .d {\n    e: f;\n  }\n}\n", 2, "no `}`");
        check(".a {\n  b: c;\n}\n}\n", 4, "too many");
        check("@media (x) {\n  .a {\n    b: c;\n  }\n  }\n  .d { e: f; }\n}\n", 5, "too many");
        check("/* a\n.b { c: d }", 1, "comment");
        check(".a {\n  color: red\n  top: 1px;\n}", 2, "semicolon");
        check(".a {\n  color red;\n}", 2, "colon");
        check(".a {\n  width: calc(1px + 2px;\n}", 2, "bracket");
        check(".a {\n  content: 'x;\n}", 2, "quote");
        check(".a,\n{ b: c }", 1, "comma");
        check("  b: c;\n}", 1, "outside");
        check("@meda (x) { .a { b: c } }", 1, "@meda");
        check(".a { color: #12g }", 1, "colour");
        check(".a { color: red !importent }", 1, "!important");
    }
}
