//! The text of an answer, within its bounds.

use theme::text::{Lines, Span};

use crate::text::line_of;

/// The longest answer, in bytes: about 25,000 tokens.
pub const MAX_ANSWER: usize = 100_000;
/// The part of an answer that its items can take. The rest is for its head and its notes.
const MAX_ITEMS: usize = 70_000;
const MAX_HEAD: usize = 10_000;
const MAX_NOTES: usize = 16_000;
/// The longest line of an answer.
const MAX_LINE: usize = 700;
/// The longest excerpt of a file's line.
const MAX_EXCERPT: usize = 160;

/// The part of a list that a call asks for.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    pub offset: usize,
    pub limit: usize,
}

/// A head, a list of which one page is shown, and notes.
pub struct Report {
    page: Page,
    /// What an item is called: one, and many.
    noun: [&'static str; 2],
    head: Text,
    items: Text,
    shown: usize,
    total: usize,
    is_full: bool,
    notes: Text,
}

struct Text {
    text: String,
    most: usize,
    left_out: usize,
}

impl Text {
    fn new(most: usize) -> Self {
        Self { text: String::new(), most, left_out: 0 }
    }

    fn line(&mut self, line: &str) -> bool {
        let line = cut(line, MAX_LINE);
        let fits = self.left_out == 0 && self.text.len() + line.len() < self.most;
        if fits {
            self.text.push_str(line);
            if line.ends_with('\n') {
                return true;
            }
            self.text.push('\n');
        } else {
            self.left_out += 1;
        }
        fits
    }

    fn end(mut self) -> String {
        if self.left_out > 0 {
            self.text += &format!("({} more lines here are left out.)\n", self.left_out);
        }
        self.text
    }
}

impl Report {
    pub fn new(page: Page, one: &'static str, many: &'static str) -> Self {
        Self {
            page,
            noun: [one, many],
            head: Text::new(MAX_HEAD),
            items: Text::new(MAX_ITEMS),
            shown: 0,
            total: 0,
            is_full: false,
            notes: Text::new(MAX_NOTES),
        }
    }

    pub fn head(&mut self, line: impl AsRef<str>) {
        self.head.line(line.as_ref());
    }

    pub fn note(&mut self, line: impl AsRef<str>) {
        self.notes.line(line.as_ref());
    }

    /// Counts an item. Its text is only made if the page shows it.
    pub fn item(&mut self, text: impl FnOnce() -> String) {
        let index = self.total;
        self.total += 1;
        if index < self.page.offset || self.is_full {
            return;
        }
        if self.shown < self.page.limit && self.items.line(&text()) {
            self.shown += 1;
        } else {
            self.is_full = true;
        }
    }

    pub fn total(&self) -> usize {
        self.total
    }

    pub fn finish(self) -> String {
        let noun = self.noun[usize::from(self.total != 1)];
        let (offset, end) = (self.page.offset, self.page.offset + self.shown);
        let count = if self.total == 0 {
            format!("No {}.", self.noun[1])
        } else if self.shown == 0 {
            format!("{} {noun}; the offset {offset} is past the last.", self.total)
        } else if self.shown == self.total {
            format!("{} {noun}.", self.total)
        } else if end == self.total {
            format!("{} {noun}; shown: {}–{end}.", self.total, offset + 1)
        } else {
            format!("{} {noun}; shown: {}–{end}. Next offset: {end}.", self.total, offset + 1)
        };
        let items = self.items.text;
        self.head.end() + &items + &count + "\n" + &self.notes.end()
    }
}

/// The beginning of a text with at most `most` bytes.
pub fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most.min(text.len()))]
}

/// A text as an answer shows it: on one line, and with at most `most` bytes.
pub fn short(text: &str, most: usize) -> String {
    let part = cut(text, most.saturating_mul(2));
    let mut line = String::with_capacity(part.len().min(most + 4));
    for word in part.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line.retain(|c| !c.is_control());
    if line.len() > most || part.len() < text.len() {
        line.truncate(line.floor_char_boundary(most));
        line.push('…');
    }
    line
}

/// The line of a place, without the blanks around it; of a long line, the part around the place.
pub fn excerpt(text: &str, lines: &Lines, at: u32) -> String {
    let span = lines.span_of(line_of(lines, at));
    let at = (at as usize).min(text.len());
    let from = text.ceil_char_boundary((span.start as usize).max(at.saturating_sub(MAX_EXCERPT / 2)));
    let to = text.floor_char_boundary((span.end as usize).min(from + MAX_EXCERPT));
    let part = text.get(from..to.max(from)).unwrap_or_default().trim();
    let before = if from > span.start as usize { "…" } else { "" };
    let after = if to < text[..span.end as usize].trim_end_matches(['\n', '\r']).len() { "…" } else { "" };
    let part: String = part.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("{before}{part}{after}")
}

/// The first `most` bytes of a span, on one line.
pub fn short_of(text: &str, span: Span, most: usize) -> String {
    short(span.of(text), most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(offset: usize, limit: usize, items: usize) -> String {
        let mut report = Report::new(Page { offset, limit }, "thing", "things");
        for item in 0..items {
            report.item(|| format!("item {item}"));
        }
        report.finish()
    }

    #[test]
    fn a_page_says_how_many_there_are_and_where_to_go_on() {
        assert_eq!(shown(0, 5, 0), "No things.\n");
        assert_eq!(shown(0, 5, 1), "item 0\n1 thing.\n");
        assert_eq!(shown(0, 2, 3), "item 0\nitem 1\n3 things; shown: 1–2. Next offset: 2.\n");
        assert_eq!(shown(2, 2, 3), "item 2\n3 things; shown: 3–3.\n");
        assert_eq!(shown(9, 2, 3), "3 things; the offset 9 is past the last.\n");
    }

    #[test]
    fn an_answer_has_an_end() {
        let mut report = Report::new(Page { offset: 0, limit: 10_000 }, "thing", "things");
        for _ in 0..5_000 {
            report.head("ä".repeat(900));
            report.item(|| "ü".repeat(900));
            report.note("ö".repeat(900));
        }
        let text = report.finish();
        assert!(text.len() <= MAX_ANSWER, "{}", text.len());
        assert!(text.contains("5000 things; shown: 1–99. Next offset: 99."));
        assert!(text.contains("more lines here are left out"));
    }

    #[test]
    fn an_excerpt_is_the_line_or_the_part_around_the_place() {
        let text = "a\n   the line\r\nb";
        assert_eq!(excerpt(text, &Lines::new(text), 6), "the line");
        let long = format!("{}x{}", "é".repeat(400), "é".repeat(400));
        let part = excerpt(&long, &Lines::new(&long), 800);
        assert!(part.starts_with('…') && part.ends_with('…') && part.contains('x'), "{part}");
    }
}
