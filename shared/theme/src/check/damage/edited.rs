//! Whether an edit can have left damage, found out without reading again what the edit did not touch.

use std::sync::LazyLock;

use memchr::memmem::{self, Finder};

use super::{
    Block, characters, diff_sign, end_of_file, escaped_text, is_ellipsis, is_liquid, numbered_line, repeated,
};
use crate::check::{Notes, script};
use crate::path::FileKind;

/// What each line has that begins or ends a comment or a block that is no code.
const BORDERS: [&str; 7] = ["/*", "*/", "<!--", "-->", "comment", "raw", "doc"];
static BORDER_FINDERS: LazyLock<[Finder; 7]> = LazyLock::new(|| BORDERS.map(Finder::new));
/// What a line has that ends one.
const ENDS: [&str; 5] = ["*/", "-->", "endcomment", "endraw", "enddoc"];

/// The lines of a text, as `memchr` finds them: most texts have short lines, and for them it is faster than [`str::lines`].
fn lines_of(text: &str) -> impl Iterator<Item = &str> {
    let mut at = 0;
    let ends = memchr::memchr_iter(b'\n', text.as_bytes()).chain([text.len()]);
    ends.map(move |end| &text[std::mem::replace(&mut at, end + 1)..end])
}

/// Whether the text after an edit may have damage that the text before it lacks. `removed` and `added` are the lines of both that
/// differ. If the answer is no, it is certain, provided that `added` alone has no damage: lines that stay are damage only for what
/// stands around them, and this compares it.
pub fn may_have_new(path: &str, text: &str, removed: &str, added: &str) -> bool {
    let kind = FileKind::of(path);
    let is_liquid = is_liquid(kind);
    let bytes = text.as_bytes();
    // A line that begins or ends a comment changes what all lines behind it are.
    let is_border = |line: &str| {
        Block::after(None, line.trim(), is_liquid).is_some() || ENDS.iter().any(|end| line.contains(end))
    };
    let may_have_border =
        |lines: &str| BORDER_FINDERS.iter().any(|mark| mark.find(lines.as_bytes()).is_some());
    if [removed, added].into_iter().any(|lines| may_have_border(lines) && lines_of(lines).any(is_border))
        || lines_of(added).any(|line| numbered_line(line.trim()))
    {
        return true;
    }
    // Signs and dots count beside other lines.
    let end_of_line = |at: usize| memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |end| at + end);
    let is_signed = |start: usize| diff_sign(&text[start..end_of_line(start)]);
    let has_sign = |sign: &str| memmem::find_iter(bytes, sign).any(|end| is_signed(end + 1));
    let has_dots = |dots: &str| {
        // A line can have many dots. It is looked at once.
        let mut seen = 0;
        memmem::find_iter(bytes, dots).any(|at| {
            if at < seen {
                return false;
            }
            let start = memchr::memrchr(b'\n', &bytes[seen..at]).map_or(seen, |end| seen + end + 1);
            seen = end_of_line(at);
            is_ellipsis(text[start..seen].trim())
        })
    };
    let is_ascii = text.is_ascii();
    if is_signed(0) || has_sign("\n+") || has_sign("\n-") || has_dots("...") || !is_ascii && has_dots("…") {
        return true;
    }
    // Of the lines of a listing, four in five have numbers. A file becomes one only if it loses other lines, and then the first fifth
    // of its lines has a number.
    fn filled(text: &str) -> impl Iterator<Item = &str> {
        lines_of(text).map(str::trim).filter(|line| !line.is_empty())
    }
    if filled(removed).count() > filled(added).count() {
        let fifth = memchr::memchr_iter(b'\n', bytes).count() / 5 + 1;
        if filled(text).take(fifth).any(numbered_line) {
            return true;
        }
    }
    let mut notes = Notes::default();
    if memchr::memchr2(b'\\', b'&', bytes).is_some() {
        escaped_text(kind, text, path.ends_with(".json"), &mut notes);
    }
    if !is_ascii {
        let is_library = kind == FileKind::Script && script::is_library(path, text);
        characters(kind, is_library, text, &mut notes);
    }
    let last = text.trim_end();
    let start = memchr::memrchr(b'\n', last.as_bytes()).map_or(0, |end| end + 1);
    let line = last[start..].trim_start();
    end_of_file(is_liquid, text, (line, last.len() - line.len()), &mut notes);
    repeated(text, &mut notes);
    !notes.list.is_empty()
}
