//! Whether an edit can have left damage, found out without reading again what the edit did not touch.

use memchr::memmem;

use super::{
    Block, characters, contains, end_of_file, escaped_text, is_ellipsis, is_liquid, numbered_line, repeated,
};
use crate::check::{Notes, script};
use crate::path::FileKind;

/// What a line has that begins a comment or a block that is no code, and what one has that ends it.
const BEGINNINGS: [&str; 5] = ["/*", "<!--", "comment", "raw", "doc"];
const ENDS: [&str; 5] = ["*/", "-->", "endcomment", "endraw", "enddoc"];

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
    let may_have_border = |lines: &str| BEGINNINGS.iter().chain(&ENDS).any(|mark| contains(lines, mark));
    if [removed, added].into_iter().any(|lines| may_have_border(lines) && lines.lines().any(is_border))
        || added.lines().any(|line| numbered_line(line.trim()))
    {
        return true;
    }
    // Signs and dots count beside other lines.
    let line_around = |at: usize| {
        let start = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |end| end + 1);
        let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |end| at + end);
        text[start..end].trim()
    };
    let has_dots = |dots: &str| memmem::find_iter(bytes, dots).any(|at| is_ellipsis(line_around(at)));
    if text.starts_with(['+', '-'])
        || contains(text, "\n+")
        || contains(text, "\n-")
        || has_dots("...")
        || !text.is_ascii() && has_dots("…")
    {
        return true;
    }
    // Of the lines of a listing, four in five have numbers. A file becomes one only if it loses other lines, and then the first fifth
    // of its lines has a number.
    fn filled(text: &str) -> impl Iterator<Item = &str> {
        text.lines().map(str::trim).filter(|line| !line.is_empty())
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
    if !text.is_ascii() {
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
