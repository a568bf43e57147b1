//! Damage that editing tools leave behind: placeholders, fences, diff signs, escaped text, wrong encodings.

use super::Notes;
use super::Severity::{Error, Warning};
use crate::path::FileKind;

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
            FileKind::Script | FileKind::Stylesheet | FileKind::Snippet => Warning,
            _ => Error,
        };
        notes.add(0, severity, "EmptyFile", "the file is empty");
        return;
    }
    line_ends(text, notes);
    let is_json = path.ends_with(".json");
    escaped_text(kind, text, is_json, notes);
    let mut at = 0;
    let mut signs = (0, 0, 0);
    let mut numbered = 0;
    let mut lines = 0;
    let mut in_raw_block = false;
    // What the whole text lacks, no line has.
    let has_raw = RAW.iter().any(|mark| contains(text, mark));
    let has_dots = ["...", "…"].iter().any(|dots| contains(text, dots));
    let mut comments = COMMENTS.map(|mark| Next::new(text, mark));
    for line in text.split_inclusive('\n') {
        let here = at;
        at += line.len();
        let unindented = line.trim_start();
        let trimmed = unindented.trim_end();
        if has_raw {
            if RAW.iter().any(|mark| trimmed.contains(mark)) {
                in_raw_block = true;
            }
            if trimmed.contains("endraw") || trimmed.contains("enddoc") {
                in_raw_block = false;
            }
        }
        let Some(first) = trimmed.bytes().next() else { continue };
        lines += 1;
        let start = here + (line.len() - unindented.len());
        // Most lines begin with a byte that begins none of these.
        match first {
            b'`' | b'~' if !in_raw_block && is_fence(trimmed) => {
                notes.add(start, Error, CODE, "a Markdown fence stands in the file");
            }
            b'<' | b'>' | b'=' => {
                let is_end = ["<<<<<<< ", ">>>>>>> "].iter().any(|mark| line.starts_with(mark))
                    || ["<<<<<<<", ">>>>>>>", "======="].contains(&trimmed) && line.as_bytes()[0] == first;
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
                } else if diff_sign(line) {
                    if signs.0 + signs.1 == 0 {
                        signs.2 = start;
                    }
                    if line.starts_with('+') { signs.0 += 1 } else { signs.1 += 1 }
                }
            }
            b'0'..=b'9' if numbered_line(trimmed) => numbered += 1,
            _ => {}
        }
        if !in_raw_block {
            let mut has_comment = false;
            // Each mark must see each line.
            for mark in &mut comments {
                has_comment |= mark.is_within(here, at);
            }
            placeholder(kind, trimmed, start, (has_comment, has_dots), notes);
        }
        talk(trimmed, start, notes);
    }
    if signs.0 + signs.1 > 0 && !is_json || signs.0 + signs.1 > 1 {
        notes.add(signs.2, Error, CODE, "a sign of a diff stands before the line");
    }
    if lines >= 3 && numbered * 10 >= lines * 8 {
        notes.add(0, Error, CODE, "the lines begin with the line numbers of a listing");
    }
    characters(kind, text, notes);
    repeated(text, notes);
}

fn contains(text: &str, part: &str) -> bool {
    memchr::memmem::find(text.as_bytes(), part.as_bytes()).is_some()
}

/// Beginnings of blocks whose text may show code.
const RAW: [&str; 4] = ["{% raw", "@example", "{% doc", "{%- doc"];

/// Beginnings of comments that can stand anywhere in a line.
const COMMENTS: [&str; 4] = ["{% comment", "<!--", "/*", " //"];

/// Finds the places of a mark in a text, in order.
struct Next<'a> {
    text: &'a [u8],
    mark: &'static [u8],
    /// The first place at or after the part that was asked for last.
    at: usize,
}

impl<'a> Next<'a> {
    fn new(text: &'a str, mark: &'static str) -> Self {
        let mut next = Self { text: text.as_bytes(), mark: mark.as_bytes(), at: 0 };
        next.go_to(0);
        next
    }

    fn go_to(&mut self, from: usize) {
        self.at = memchr::memmem::find(&self.text[from..], self.mark).map_or(usize::MAX, |at| from + at);
    }

    /// Whether the mark begins in a part of the text. Each part must begin at or after the one before.
    fn is_within(&mut self, start: usize, end: usize) -> bool {
        if self.at < start {
            self.go_to(start);
        }
        self.at < end
    }
}

/// A line that begins with the sign of a diff in its first column, and with code after it.
fn diff_sign(line: &str) -> bool {
    let Some(rest) = line.strip_prefix(['+', '-']) else { return false };
    let rest = rest.trim_end();
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
    let count = |needle: &str| memchr::memmem::find_iter(text.as_bytes(), needle.as_bytes()).count();
    let first = |needle: &str| memchr::memmem::find(text.as_bytes(), needle.as_bytes()).unwrap_or(0);
    let (line_ends, quotes) = (count("\\n"), count("\\\""));
    if !is_json && kind != FileKind::Script {
        if line_ends >= 3 && line_ends > breaks * 2 {
            notes.add(first("\\n"), Error, CODE, "line ends are escaped: the file contains `\\n` as text");
        } else if line_ends >= 2 {
            // One line with several escaped line ends, outside of scripts.
            let mut at = 0;
            for line in text.split_inclusive('\n') {
                let found = memchr::memmem::find_iter(line.as_bytes(), b"\\n").count();
                if found >= 2
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
        && (text.contains("\\n  ") || text.contains(";\\n"))
    {
        notes.add(first("\\n"), Error, CODE, "line ends are escaped: the file contains `\\n` as text");
    }
    let is_liquid = matches!(
        kind,
        FileKind::Layout | FileKind::Template | FileKind::Section | FileKind::Block | FileKind::Snippet
    );
    if is_liquid {
        if quotes >= 2 && memchr::memmem::find(text.as_bytes(), b"=\\\"").is_some() {
            let in_script = text.find("<script").is_some_and(|script| script < first("=\\\""));
            if !in_script {
                notes.add(first("=\\\""), Error, CODE, "quotes are escaped: attributes begin with `\\\"`");
            }
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
        let has_any = contains(text, "&lt;");
        let total: usize = if has_any { escaped.iter().map(|mark| count(mark)).sum() } else { 0 };
        if total >= 2 {
            let at = escaped
                .iter()
                .filter_map(|mark| memchr::memmem::find(text.as_bytes(), mark.as_bytes()))
                .min();
            notes.add(at.unwrap_or(0), Error, CODE, "markup is escaped: the page shows it as text");
        }
        let has_any = memchr::memchr(b'&', text.as_bytes()).is_some();
        for mark in ["{&#37;", "&#123;", "{{&quot;", "{% if a &gt;", "&#x7B;"].iter().filter(|_| has_any) {
            if let Some(at) = memchr::memmem::find(text.as_bytes(), mark.as_bytes()) {
                notes.add(at, Error, CODE, "Liquid is escaped: the page shows it as text");
                break;
            }
        }
        if let Some(at) = memchr::memmem::find(text.as_bytes(), b"\\{{")
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

/// A comment that stands for code which is not there.
fn placeholder(
    kind: FileKind,
    line: &str,
    at: usize,
    (has_comment, has_dots): (bool, bool),
    notes: &mut Notes,
) {
    let is_comment = match line.as_bytes() {
        [b'*' | b'#' | b'[' | b'(', ..]
        | [b'/', b'/' | b'*', ..]
        | [b'{', b'%' | b'#', ..]
        | [b'.', b'.', b'.', ..] => true,
        [b'<', b'!', ..] if line.starts_with("<!--") => true,
        [0xE2, ..] if line.starts_with('…') => true,
        _ => has_comment,
    };
    let may_be_bare = has_dots && kind != FileKind::Locale;
    if !(is_comment || may_be_bare) || !may_stand_for_code(line) {
        return;
    }
    let bare = line.trim_matches(|c: char| {
        matches!(c, '/' | '*' | '<' | '>' | '!' | '-' | '{' | '}' | '%' | '#' | ' ' | '[' | ']' | '(' | ')')
    });
    let bare = bare.trim_start_matches("comment").trim_end_matches("endcomment");
    let bare = bare.trim_matches(|c: char| matches!(c, '-' | '%' | '{' | '}' | ' '));
    if (bare == "..." || bare == "…") && kind != FileKind::Locale {
        notes.add(at, Error, "Placeholder", "an ellipsis stands for code that is not there");
        return;
    }
    if !is_comment {
        return;
    }
    let lower = bare.to_ascii_lowercase();
    let has_dots = lower.contains("...") || lower.contains('…');
    const STRONG: [&str; 26] = [
        "rest of the code",
        "rest of code",
        "rest of the file",
        "rest of file",
        "rest of your code",
        "rest of the existing",
        "remaining code",
        "existing code",
        "code remains the same",
        "code unchanged",
        "rest remains",
        "remains unchanged",
        "same as before",
        "unchanged code",
        "rest of the template",
        "rest of the section",
        "rest of the markup",
        "rest of the styles",
        "rest of the schema",
        "rest of the content",
        "code here",
        "keep the rest",
        "previous code",
        "original code",
        "rest is unchanged",
        "your code goes here",
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
    let is_strong =
        STRONG.iter().any(|words| lower.contains(words)) && (count <= 6 || has_dots && count <= 14);
    let starts_with_dots = lower.starts_with("...") || lower.starts_with('…');
    let is_weak = has_dots
        && (starts_with_dots || count <= 5 && (lower.ends_with("...") || lower.ends_with('…')))
        && WITH_DOTS.iter().any(|word| lower.split(|c: char| !c.is_alphanumeric()).any(|part| part == *word))
        && lower.split_whitespace().count() <= 12;
    let is_short = lower.split_whitespace().count() <= 6
        && (lower.starts_with("rest of ")
            || lower.starts_with("the rest")
            || lower.ends_with("omitted for brevity")
            || lower.ends_with("unchanged")
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

fn characters(kind: FileKind, text: &str, notes: &mut Notes) {
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
            notes.add(found, Error, "SmartQuotes", message);
            break;
        }
    }
    if (kind == FileKind::Script || kind == FileKind::Stylesheet)
        && let Some(found) = text.find(['\u{200b}', '\u{200c}'])
    {
        notes.add(found, Error, "InvisibleCharacter", "an invisible character stands in the code");
    }
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
