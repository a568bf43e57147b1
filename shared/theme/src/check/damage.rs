//! Damage that editing tools leave behind: placeholders, fences, diff signs, escaped text, wrong encodings.

pub mod edited;

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::Severity::{Error, Warning};
use super::{Notes, script};
use crate::path::FileKind;
use crate::scan::liquid;

const CODE: &str = "EditingDamage";

/// Checks the bytes of a file before they become text. `invalid` is the first place that is not UTF-8.
pub fn check_bytes(bytes: &[u8], invalid: Option<usize>, notes: &mut Notes) {
    if bytes.starts_with("\u{feff}".as_bytes()) {
        notes.add(0, Warning, "ByteOrderMark", "the file begins with a byte order mark");
    }
    if bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) {
        notes.add(0, Error, "Encoding", "the file is UTF-16: it must be UTF-8");
    } else if let Some(at) = memchr::memchr(0, bytes) {
        notes.add(at, Error, "Encoding", "the file contains a NUL character");
    } else if let Some(at) = invalid {
        notes.add(at, Error, "Encoding", "the file is not UTF-8 here");
    }
}

/// Checks the text of a file that people write.
pub fn check_text(kind: FileKind, path: &str, text: &str, notes: &mut Notes) {
    let is_code = !matches!(kind, FileKind::Other);
    if !is_code {
        return;
    }
    if text.trim().is_empty() {
        let severity = match kind {
            FileKind::Script
            | FileKind::Stylesheet
            | FileKind::Snippet
            | FileKind::Section
            | FileKind::Block => Warning,
            _ => Error,
        };
        notes.add(0, severity, "EmptyFile", "the file is empty");
        return;
    }
    line_ends(text, notes);
    let is_json = path.ends_with(".json");
    let is_library = kind == FileKind::Script && script::is_library(path, text);
    escaped_text(kind, text, is_json, notes);
    let is_liquid = is_liquid(kind);
    let mut at = 0;
    let mut signs = (0, 0, 0);
    let mut numbered = 0;
    let mut lines = 0;
    // What the whole text lacks, no line has.
    let has_dots = DOT_FINDERS.iter().any(|dots| dots.find(text.as_bytes()).is_some());
    let mut marks = MARK_FINDERS.each_ref().map(|mark| Next::new(text, mark));
    let mut block: Option<Block> = None;
    let mut last = ("", 0);
    for line in text.split_inclusive('\n') {
        let here = at;
        at += line.len();
        let unindented = line.trim_start();
        let trimmed = unindented.trim_end();
        // Each mark must see each line.
        let mut has_mark = false;
        for mark in &mut marks {
            has_mark |= mark.is_within(here, at);
        }
        let was_in = block;
        if has_mark || was_in.is_some() {
            block = Block::after(block, trimmed, is_liquid);
        }
        let Some(first) = trimmed.bytes().next() else { continue };
        lines += 1;
        let start = here + (line.len() - unindented.len());
        let is_code = was_in.is_none();
        // Most lines begin with a byte that begins none of these.
        match first {
            b'`' | b'~' if is_code && is_fence(trimmed) => {
                notes.add(start, Error, CODE, "a Markdown fence stands in the file");
            }
            b'<' | b'>' | b'=' => {
                let is_end = ["<<<<<<< ", ">>>>>>> "].iter().any(|mark| line.starts_with(mark))
                    || ["<<<<<<<", ">>>>>>>", "======="].contains(&trimmed)
                        && line.as_bytes()[0] == first
                        && is_code
                    || is_code && first != b'=' && trimmed.len() >= 4 && trimmed.bytes().all(|b| b == first);
                if is_end {
                    let message = "a marker of a merge or of a replacement stands in the file";
                    notes.add(start, Error, CODE, message);
                }
            }
            b'@' | b'-' | b'+' | b'd' | b'*' => {
                if (trimmed.starts_with("@@ -") && trimmed.contains(" @@"))
                    || ["--- a/", "+++ b/", "diff --git "].iter().any(|mark| line.starts_with(mark))
                    || trimmed.starts_with("*** Begin Patch")
                    || trimmed.starts_with("*** End Patch")
                    || trimmed.starts_with("*** Update File")
                {
                    notes.add(start, Error, CODE, "a header of a diff stands in the file");
                } else if is_code && diff_sign(line) && !continues(last.0, line) {
                    if signs.0 + signs.1 == 0 {
                        signs.2 = start;
                    }
                    if line.starts_with('+') { signs.0 += 1 } else { signs.1 += 1 }
                }
            }
            b'0'..=b'9' if numbered_line(trimmed) => numbered += 1,
            _ => {}
        }
        if has_dots && is_code && is_ellipsis(trimmed) {
            let next = text[at..].trim_start();
            // Between a tag and its end it is a text, such as a gap between the numbers of pages.
            let is_text = last.0.ends_with('>') && next.starts_with("</");
            if kind != FileKind::Locale && !is_text {
                let message = "an ellipsis stands for code that is not there";
                notes.add(start, Error, "Placeholder", message);
            }
        } else if !matches!(was_in, Some(Block::Shown(_))) {
            placeholder(kind, trimmed, start, has_mark, is_code, notes);
        }
        talk(trimmed, start, notes);
        last = (trimmed, start);
    }
    if block.is_none() {
        end_of_file(is_liquid, text, last, notes);
    }
    if signs.0 + signs.1 > 0 && !is_json || signs.0 + signs.1 > 1 {
        notes.add(signs.2, Error, CODE, "a sign of a diff stands before the line");
    }
    if lines >= 3 && numbered * 10 >= lines * 8 {
        notes.add(0, Error, CODE, "the lines begin with the line numbers of a listing");
    }
    characters(kind, is_library, text, notes);
    repeated(text, notes);
}

const fn is_liquid(kind: FileKind) -> bool {
    matches!(
        kind,
        FileKind::Layout | FileKind::Template | FileKind::Section | FileKind::Block | FileKind::Snippet
    )
}

/// What a line has with which a comment, or a block whose text is no code, begins or ends.
const MARKS: [&str; 7] = ["comment", "raw", "doc ", "doc-", "<!--", "/*", " //"];
/// What an ellipsis has.
static DOT_FINDERS: LazyLock<[Finder; 2]> = LazyLock::new(|| ["...", "…"].map(Finder::new));
static MARK_FINDERS: LazyLock<[Finder; 7]> = LazyLock::new(|| MARKS.map(Finder::new));

/// A block of several lines that are no code, with its end.
#[derive(Clone, Copy, PartialEq)]
enum Block {
    Comment(&'static str),
    /// Its text may show code: `raw` and `doc`.
    Shown(&'static str),
}

impl Block {
    /// The block that is open behind a line.
    fn after(open: Option<Self>, line: &str, is_liquid: bool) -> Option<Self> {
        if let Some(Self::Comment(end) | Self::Shown(end)) = open {
            return if line.contains(end) { None } else { open };
        }
        let behind = |at: usize, mark: &str, block: Self, end: &str| {
            (!line[at + mark.len()..].contains(end)).then_some(block)
        };
        // `image/*` begins no comment.
        if line.starts_with("/*") {
            return behind(0, "/*", Self::Comment("*/"), "*/");
        }
        if !is_liquid {
            return None;
        }
        if let Some(at) = line.find("<!--") {
            return behind(at, "<!--", Self::Comment("-->"), "-->");
        }
        // A line of `{% liquid %}`.
        if line == "comment" {
            return Some(Self::Comment("endcomment"));
        }
        for (word, block) in [
            ("comment", Self::Comment("endcomment")),
            ("raw", Self::Shown("endraw")),
            ("doc", Self::Shown("enddoc")),
        ] {
            let (Self::Comment(end) | Self::Shown(end)) = block;
            let is_tag = |at: &(usize, &str)| {
                let before = line[..at.0].trim_end_matches([' ', '-']);
                let after = line[at.0 + word.len()..].trim_start_matches([' ', '-']);
                before.ends_with("{%") && after.starts_with("%}")
            };
            if let Some((at, _)) = line.match_indices(word).find(is_tag) {
                return behind(at, word, block, end);
            }
        }
        None
    }
}

/// Whether a line consists of dots that stand for something.
fn is_ellipsis(line: &str) -> bool {
    matches!(line, "..." | "…" | "[...]" | "(...)")
}

/// What writing a file through a shell or a chat leaves at its end.
fn end_of_file(is_liquid: bool, text: &str, (line, at): (&str, usize), notes: &mut Notes) {
    if matches!(line, "EOF" | "EOT" | "<EOF>" | "[EOF]" | "END_OF_FILE" | "'EOF'") {
        notes.add(at, Error, CODE, "the mark of the end of a text stands in the file");
    } else if is_liquid
        && line.starts_with("// ")
        && text[..at].trim_end().ends_with(['>', '}'])
        && is_shown(text, &[], at)
    {
        notes.add(at, Error, CODE, "the page shows this line: `//` begins no comment here");
    }
}

/// Finds the places of a mark in a text, in order.
struct Next<'a> {
    text: &'a [u8],
    mark: &'static Finder<'static>,
    /// The first place at or after the part that was asked for last.
    at: usize,
}

impl<'a> Next<'a> {
    fn new(text: &'a str, mark: &'static Finder<'static>) -> Self {
        let mut next = Self { text: text.as_bytes(), mark, at: 0 };
        next.go_to(0);
        next
    }

    fn go_to(&mut self, from: usize) {
        self.at = self.mark.find(&self.text[from..]).map_or(usize::MAX, |at| from + at);
    }

    /// Whether the mark begins in a part of the text. Each part must begin at or after the one before.
    fn is_within(&mut self, start: usize, end: usize) -> bool {
        self.from(start) < end
    }

    /// The first place at or after another one, or a number above all places. The other one must not be before the last one asked for.
    fn from(&mut self, start: usize) -> usize {
        if self.at < start {
            self.go_to(start);
        }
        self.at
    }
}

/// A line that begins with the sign of a diff in its first column, and with code after it.
fn diff_sign(line: &str) -> bool {
    let Some(rest) = line.strip_prefix(['+', '-']) else { return false };
    let rest = rest.trim_end();
    // An item of a list of Markdown, with a text in bold letters or a link.
    if rest.starts_with(" **") || rest.starts_with(" [") || rest.starts_with(" `") {
        return false;
    }
    if rest.starts_with(['+', '-']) || rest.trim().is_empty() {
        return false;
    }
    let body = rest.trim_start();
    let is_code = body.starts_with(['<', '{', '.', '#', '}', '"', '/', '@', '*'])
        || body.ends_with([';', '{', '}', '>', ','])
        || body.starts_with("--");
    // `-webkit-…: x;` and `--x: y;` in CSS begin with a dash of their own, as does `-1px` in a long value.
    let is_name = line.starts_with('-')
        && rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '%' || c == '}');
    is_code && !is_name
}

/// Whether a line with a sign goes on with the expression of the line before: `'a'` and `+ 'b';`.
fn continues(last: &str, line: &str) -> bool {
    let is_value = last.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '\'' | '"' | '`' | ')' | ']'));
    is_value
        && line[1..]
            .trim_start()
            .starts_with(|c: char| c.is_alphanumeric() || matches!(c, '\'' | '"' | '`' | '(' | '$' | '_'))
}

/// Whether a line opens or closes a block of code of Markdown.
fn is_fence(line: &str) -> bool {
    let info = line.strip_prefix("```").or_else(|| line.strip_prefix("~~~"));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ' ' | '.' | '/' | ':');
    info.is_some_and(|info| info.chars().all(is_plain))
}

fn numbered_line(line: &str) -> bool {
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if digits == 0 || digits > 6 {
        return false;
    }
    let rest = &line[digits..];
    rest.starts_with('|')
        || rest.starts_with(" |")
        || rest.starts_with('\t')
        || rest.starts_with("→")
        || rest.starts_with(": ")
        || rest.is_empty()
}

fn line_ends(text: &str, notes: &mut Notes) {
    let bytes = text.as_bytes();
    if memchr::memchr(b'\r', bytes).is_none() {
        return;
    }
    let total = memchr::memchr_iter(b'\n', bytes).count();
    let crlf = memchr::memmem::find_iter(bytes, b"\r\n").count();
    if crlf > 0 && crlf < total {
        let (is_crlf_rare, mut from) = (crlf * 2 < total, 0);
        for line in text.split_inclusive('\n') {
            if line.ends_with("\r\n") == is_crlf_rare && line.ends_with('\n') {
                break;
            }
            from += line.len();
        }
        notes.add(from.min(text.len()), Warning, "MixedLineEnds", "the file has two kinds of line ends");
    }
}

/// The whole file was escaped once too often.
fn escaped_text(kind: FileKind, text: &str, is_json: bool, notes: &mut Notes) {
    let breaks = memchr::memchr_iter(b'\n', text.as_bytes()).count();
    let has_backslash = memchr::memchr(b'\\', text.as_bytes()).is_some();
    let count = |needle: &str| match has_backslash {
        true => memchr::memmem::find_iter(text.as_bytes(), needle.as_bytes()).count(),
        false => 0,
    };
    let first = |needle: &str| memchr::memmem::find(text.as_bytes(), needle.as_bytes()).unwrap_or(0);
    let (line_ends, quotes) = (count("\\n"), count("\\\""));
    if !is_json && kind != FileKind::Script {
        // The lines of a minified script are longer, and have line ends in their strings.
        let is_text = text.len() < line_ends * 400;
        if line_ends >= 3 && line_ends > breaks * 2 && is_text {
            notes.add(first("\\n"), Error, CODE, "line ends are escaped: the file contains `\\n` as text");
        } else if line_ends >= 2 {
            // One line with several escaped line ends, outside of scripts.
            let mut at = 0;
            for line in text.split_inclusive('\n') {
                let found = memchr::memmem::find_iter(line.as_bytes(), b"\\n").count();
                if found >= 2
                    && line.len() < 2_000
                    && line.contains(['<', '{'])
                    && (line.contains("\\n<") || line.contains("\\n  ") || line.contains("\\n{"))
                    && !line.contains("split")
                    && !line.contains("replace")
                {
                    let message = "line ends are escaped: the line contains `\\n` as text";
                    notes.add(at + line.find("\\n").unwrap_or(0), Error, CODE, message);
                    break;
                }
                at += line.len();
            }
        }
    }
    if kind == FileKind::Script
        && line_ends >= 5
        && breaks <= 2
        // Most line ends are behind statements and braces, and not in strings.
        && (count(";\\n") + count("{\\n") + count("}\\n")) * 2 > line_ends
        && (text.contains("\\n  ") || text.contains(";\\n"))
    {
        // In strings they are right. Elsewhere the parser of scripts refuses them.
        notes.add(first("\\n"), Warning, CODE, "line ends are escaped: the file contains `\\n` as text");
    }
    if is_liquid(kind) {
        if quotes >= 2
            && let Some(at) = memchr::memmem::find(text.as_bytes(), b"=\\\"")
            && text.find("<script").is_none_or(|script| script > at)
            && !is_in_string(text, at)
        {
            notes.add(at, Error, CODE, "quotes are escaped: attributes begin with `\\\"`");
        }
        // Markup as text: more escaped elements than a text would mention.
        let escaped = [
            "&lt;div",
            "&lt;/",
            "&lt;p",
            "&lt;span",
            "&lt;a ",
            "&lt;img",
            "&lt;section",
            "&lt;h2",
            "&lt;ul",
            "&lt;li",
            "&lt;button",
            "&lt;svg",
            "&lt;script",
            "&lt;style",
        ];
        // What is escaped has this sign.
        let has_any = memchr::memchr(b'&', text.as_bytes()).is_some();
        let places = |mark: &'static str| memchr::memmem::find_iter(text.as_bytes(), mark);
        let is_element = |at: &usize| escaped.iter().any(|mark| text[*at..].starts_with(mark));
        const LIQUID: [&str; 5] = ["{&#37;", "&#123;", "{{&quot;", "{% if a &gt;", "&#x7B;"];
        let (elements, outputs): (Vec<usize>, Vec<usize>) = match has_any {
            true => (
                places("&lt;").filter(is_element).take(MOST_LOOKS).collect(),
                LIQUID.iter().filter_map(|mark| places(mark).next()).collect(),
            ),
            false => Default::default(),
        };
        if elements.len() >= 2 || !outputs.is_empty() {
            let (tokens, _) = liquid::tokens(text);
            let shown = |places: &[usize]| -> Vec<usize> {
                let is_text = |at: &usize| !is_in_tag(text, *at) && !is_in_string(text, *at);
                places.iter().copied().filter(|at| is_text(at) && is_shown(text, &tokens, *at)).collect()
            };
            if let [at, _, ..] = shown(&elements).as_slice() {
                // A page that shows markup has it within elements.
                let line = text[..*at].rfind('\n').map_or(0, |newline| newline + 1);
                let severity = if text[line..*at].contains('<') { Warning } else { Error };
                notes.add(*at, severity, CODE, "markup is escaped: the page shows it as text");
            }
            if let [at, ..] = shown(&outputs).as_slice() {
                notes.add(*at, Error, CODE, "Liquid is escaped: the page shows it as text");
            }
        }
        if has_backslash
            && let Some(at) = memchr::memmem::find(text.as_bytes(), b"\\{{")
                .or_else(|| memchr::memmem::find(text.as_bytes(), b"\\{%"))
        {
            notes.add(at, Warning, CODE, "a backslash stands before Liquid");
        }
    }
}

/// Whether a line has one of the words, or the dots, that each text has which stands for code.
fn may_stand_for_code(line: &str) -> bool {
    let bytes = line.as_bytes();
    bytes.iter().enumerate().any(|(at, byte)| {
        let word = match byte.to_ascii_lowercase() {
            b'.' => "...",
            b'c' => "code",
            b'o' => "omitted for brevity",
            b'r' => "rest",
            b's' => "same as before",
            b't' => "truncated",
            b'u' => "unchanged",
            0xE2 => "…",
            _ => return false,
        };
        bytes.get(at..at + word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word.as_bytes()))
    })
}

/// A comment that stands for code which is not there. Within a comment of several lines, only what says so clearly counts.
fn placeholder(kind: FileKind, line: &str, at: usize, has_comment: bool, is_code: bool, notes: &mut Notes) {
    let is_comment = match line.as_bytes() {
        [b'*' | b'#' | b'[' | b'(', ..] | [b'/', b'/' | b'*', ..] | [b'{', b'%' | b'#', ..] => true,
        // Dots before a name spread it.
        [b'.', b'.', b'.', b' ', ..] => true,
        [b'<', b'!', ..] if line.starts_with("<!--") => true,
        [0xE2, ..] if line.starts_with('…') => true,
        _ => has_comment,
    };
    if !is_comment || !may_stand_for_code(line) {
        return;
    }
    let bare = line.trim_matches(|c: char| {
        matches!(c, '/' | '*' | '<' | '>' | '!' | '-' | '{' | '}' | '%' | '#' | ' ' | '[' | ']' | '(' | ')')
    });
    let bare = bare.trim_start_matches("comment").trim_end_matches("endcomment");
    let bare = bare.trim_matches(|c: char| matches!(c, '-' | '%' | '{' | '}' | ' '));
    if (bare == "..." || bare == "…") && kind != FileKind::Locale && is_code {
        notes.add(at, Error, "Placeholder", "an ellipsis stands for code that is not there");
        return;
    }
    let lower = bare.to_ascii_lowercase();
    let has_dots = lower.contains("...") || lower.contains('…');
    const STRONG: [&str; 20] = [
        "rest of the code",
        "rest of code",
        "rest of the file",
        "rest of file",
        "rest of your code",
        "rest of the existing",
        "remaining code",
        "code remains the same",
        "code unchanged",
        "rest remains",
        "rest stays",
        "remains unchanged",
        "same as before",
        "unchanged code",
        "rest of the template",
        "rest of the section",
        "rest of the styles",
        "rest of the schema",
        "keep the rest",
        "rest is unchanged",
    ];
    // Authors write these, too, in longer sentences.
    const ALONE: [&str; 4] = ["existing code", "previous code", "original code", "code goes here"];
    /// What a file has a rest of.
    const PARTS: [&str; 14] = [
        "code",
        "file",
        "function",
        "functions",
        "styles",
        "css",
        "markup",
        "html",
        "content",
        "template",
        "schema",
        "settings",
        "script",
        "methods",
    ];
    const WITH_DOTS: [&str; 12] = [
        "rest",
        "unchanged",
        "existing",
        "remaining",
        "same",
        "omitted",
        "truncated",
        "snip",
        "other",
        "continue",
        "etc",
        "previous",
    ];
    let count = lower.split_whitespace().count();
    let is_strong = STRONG.iter().any(|words| lower.contains(words))
        && (count <= 6 || has_dots && count <= 14)
        || ALONE.iter().any(|words| lower.contains(words)) && (count <= 3 || has_dots && count <= 8);
    let starts_with_dots = lower.starts_with("...") || lower.starts_with('…');
    let is_weak = has_dots
        && is_code
        && (starts_with_dots || count <= 5 && (lower.ends_with("...") || lower.ends_with('…')))
        && WITH_DOTS.iter().any(|word| lower.split(|c: char| !c.is_alphanumeric()).any(|part| part == *word))
        && lower.split_whitespace().count() <= 12;
    let of_part = lower.strip_prefix("the ").unwrap_or(&lower).strip_prefix("rest of ").is_some_and(|rest| {
        count <= 4 && rest.split_whitespace().next_back().is_some_and(|word| PARTS.contains(&word))
    });
    let is_short = count <= 6
        && (of_part
            || lower.ends_with("omitted for brevity")
            || lower.ends_with("unchanged")
                && (has_dots || ["rest", "code", "other"].iter().any(|word| lower.contains(word)))
            || lower.ends_with("truncated"));
    if is_strong || is_weak || is_short {
        notes.add(at, Error, "Placeholder", "a comment stands for code that is not there");
    }
}

/// A sentence of a conversation, at the beginning of a line.
fn talk(line: &str, at: usize, notes: &mut Notes) {
    const BEGINNINGS: [&str; 16] = [
        "Here is the updated",
        "Here's the updated",
        "Here is the complete",
        "Here's the complete",
        "Here is the full",
        "Here's the full",
        "Here is the modified",
        "Here's the modified",
        "Here is your updated",
        "Certainly! Here",
        "Sure! Here",
        "Sure, here",
        "I've updated the",
        "I have updated the",
        "Below is the updated",
        "As an AI",
    ];
    const TAGS: [&str; 10] = [
        "<file_content",
        "</file_content",
        "<file_text>",
        "</file_text>",
        "<new_str>",
        "</new_str>",
        "<old_str>",
        "</old_str>",
        "<|endoftext|>",
        "<content path=",
    ];
    let (first, last) = (line.as_bytes().first(), line.as_bytes().last());
    let is_talk = matches!(first, Some(b'A' | b'B' | b'C' | b'H' | b'I' | b'S'))
        && BEGINNINGS.iter().any(|words| line.starts_with(words));
    // Each tag has one `<`, at its beginning.
    let starts = || first == Some(&b'<') && TAGS.iter().any(|tag| line.starts_with(tag));
    let ends = || {
        matches!(last, Some(b'>' | b't' | b'='))
            && line.rfind('<').is_some_and(|open| TAGS.contains(&&line[open..]))
    };
    if is_talk {
        notes.add(at, Error, CODE, "a sentence of a conversation stands in the file");
    } else if starts() || ends() {
        notes.add(at, Error, CODE, "a marker of an editing tool stands in the file");
    }
}

/// Whether the beginning of a character that was decoded with the wrong encoding is there: `Ã`, `Â`, `â` or `ï` and what follows.
fn has_wrong_encoding(bytes: &[u8]) -> bool {
    memchr::memchr_iter(0xC3, bytes).any(|at| match bytes.get(at + 1) {
        Some(0x82 | 0x83) => true,
        Some(0xA2) => bytes.get(at + 2) == Some(&0xE2),
        Some(0xAF) => bytes.get(at + 2) == Some(&0xC2),
        _ => false,
    })
}

fn characters(kind: FileKind, is_library: bool, text: &str, notes: &mut Notes) {
    if text.is_ascii() {
        return;
    }
    const WRONG: [&str; 24] = [
        "Ã©", "Ã¨", "Ã¼", "Ã¶", "Ã¤", "Ã±", "Ã ", "Ã§", "â€™", "â€œ", "â€“", "â€”", "â€¦", "Â©", "Â ", "ï»¿",
        "â€˜", "Â·", "â†’", "Â®", "Ã³", "Ã¡", "Ã\u{AD}", "ÃŸ",
    ];
    let has_any = has_wrong_encoding(text.as_bytes());
    for wrong in WRONG.iter().filter(|_| has_any) {
        if let Some(at) = memchr::memmem::find(text.as_bytes(), wrong.as_bytes()) {
            notes.add(at, Warning, "Encoding", "characters were decoded with the wrong encoding here");
            break;
        }
    }
    if let Some(at) = memchr::memmem::find(text.as_bytes(), "\u{fffd}".as_bytes()) {
        notes.add(at, Warning, "Encoding", "a replacement character stands here: a character was lost");
    }
    if kind == FileKind::Locale || kind == FileKind::SchemaLocale {
        return;
    }
    for mark in ["=“", "=”", "=‘", "=’"] {
        let places = memchr::memmem::find_iter(text.as_bytes(), mark.as_bytes()).take(MOST_LOOKS);
        if let Some(found) = places.into_iter().find(|at| !is_in_liquid(text, *at)) {
            let message = "a curly quote stands in an attribute: use a straight one";
            // Outside of tags it may be a text.
            let severity = if is_in_tag(text, found) { Error } else { Warning };
            notes.add(found, severity, "SmartQuotes", message);
            break;
        }
    }
    if (kind == FileKind::Script && !is_library || kind == FileKind::Stylesheet)
        && let Some(found) = text.find(['\u{200b}', '\u{200c}'])
    {
        // The parser of scripts says whether it does harm there. In a comment and in a string of a stylesheet it does none.
        let is_harmless =
            kind == FileKind::Script || is_in_string(text, found) || is_in_block_comment(text, found);
        let severity = if is_harmless { Warning } else { Error };
        notes.add(found, severity, "InvisibleCharacter", "an invisible character stands in the code");
    }
}

/// Whether the page shows what stands at a place: it is in no tag, comment, schema or script, and in no element that shows code.
fn is_shown(text: &str, tokens: &[liquid::Token], at: usize) -> bool {
    let next = tokens.partition_point(|token| token.span.start as usize <= at);
    if tokens[..next].last().is_some_and(|token| at < token.span.end as usize) {
        return false;
    }
    let before = &text.as_bytes()[..at];
    let is_open = |open: &str, close: &str| {
        memchr::memmem::rfind(before, open.as_bytes())
            .is_some_and(|open| memchr::memmem::find(&before[open..], close.as_bytes()).is_none())
    };
    let hidden = [
        ("<!--", "-->"),
        ("<script", "</script"),
        ("<style", "</style"),
        ("<pre", "</pre"),
        ("<code", "</code"),
        ("<textarea", "</textarea"),
    ];
    !hidden.iter().any(|(open, close)| is_open(open, close))
}

/// Whether a place is within a string of its line, as in JSON in an attribute.
fn is_in_string(text: &str, at: usize) -> bool {
    let line = memchr::memrchr(b'\n', &text.as_bytes()[..at]).map_or(0, |newline| newline + 1);
    let line = &text.as_bytes()[line..at];
    let quotes = memchr::memchr_iter(b'"', line).filter(|at| *at == 0 || line[at - 1] != b'\\').count();
    quotes % 2 == 1
}

/// Whether a tag of HTML is open at a place.
fn is_in_tag(text: &str, at: usize) -> bool {
    let before = &text.as_bytes()[..at];
    memchr::memrchr2(b'<', b'>', before)
        .is_some_and(|sign| before[sign] == b'<' && before.get(sign + 1).is_some_and(u8::is_ascii_alphabetic))
}

/// Whether a place is within `/*` and `*/`.
fn is_in_block_comment(text: &str, at: usize) -> bool {
    let before = &text.as_bytes()[..at];
    let last = |mark: &[u8]| memchr::memmem::rfind(before, mark);
    last(b"/*").is_some_and(|open| last(b"*/").is_none_or(|close| close < open))
}

/// How often a sign is looked for outside of Liquid. Each look can read the whole text before.
const MOST_LOOKS: usize = 8;

/// Whether a tag or output is open at a place.
fn is_in_liquid(text: &str, at: usize) -> bool {
    let before = text.as_bytes().get(..at).unwrap_or_default();
    [("{{", "}}"), ("{%", "%}")].iter().any(|(open, close)| {
        memchr::memmem::rfind(before, open.as_bytes())
            .is_some_and(|open| memchr::memmem::find(&before[open..], close.as_bytes()).is_none())
    })
}

/// The file is there twice.
fn repeated(text: &str, notes: &mut Notes) {
    let text = text.trim_end();
    if text.len() < 200 {
        return;
    }
    let middle = text.len() / 2;
    for at in middle.saturating_sub(2)..=(middle + 2).min(text.len()) {
        if text.is_char_boundary(at) && text[..at].trim() == text[at..].trim() {
            let start = at + (text[at..].len() - text[at..].trim_start().len());
            notes.add(start, Error, CODE, "the whole content is there twice");
            return;
        }
    }
}
