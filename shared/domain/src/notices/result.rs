//! The result of a run, as a notice shows it: the outputs in words.
//!
//! Outputs are Markdown that a model has written, or plain text. A channel gets their words, not their markup: the text of links with the
//! address beside it, numbers of lists, tables as aligned lines. HTML in an output is text like any other. Every word stays.
//!
//! If the run may have read what strangers have written, addresses and mentions in its outputs are broken up, as in titles and reasons.

use std::collections::BTreeMap;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::inert::{cut, inert, visible};
use crate::ids::RunId;
use crate::models::WebSource;
use crate::projects::turn::{ThemeChange, ThemeChanges};
use crate::text::quoting::one_line;

/// The most of an output that a notice has, in bytes. The rest is behind the link.
pub const MAX_TEXT: usize = 48 * 1024;

/// The most of all outputs together that a message has, in bytes. Receivers refuse what is too large.
pub const MAX_TEXTS: usize = 192 * 1024;

/// How many outputs of a run a notice has.
pub const MAX_OUTPUTS: usize = 5;

/// How many sources of a result a message names.
const MAX_SOURCES: usize = 10;

/// How much of a result a line of a digest has, in characters.
const MAX_EXCERPT: usize = 200;

/// The widest table that is shown with its columns aligned, in characters. In a wider one, each cell has a line.
const MAX_WIDTH: usize = 100;

/// How many quotes and lists may be in each other. Deeper ones are shown at this depth.
const MAX_DEPTH: usize = 8;

/// An output of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    pub title: String,
    /// The text, or its first part.
    pub text: String,
    /// Whether `text` is only the first part.
    pub is_cut: bool,
    /// Whether the text is Markdown. Otherwise, its lines are shown as they are.
    pub is_markdown: bool,
    /// Whether the run may have read what strangers have written.
    pub tainted: bool,
}

impl Output {
    /// An output with at most [`MAX_TEXT`] of its text.
    #[must_use]
    pub fn new(title: String, text: String, is_markdown: bool, tainted: bool) -> Self {
        let mut output = Self { title, text, is_cut: false, is_markdown, tainted };
        output.cut_to(MAX_TEXT);
        output
    }

    /// What a run has changed in a theme, as Markdown. Strangers may have written what is in a theme.
    #[must_use]
    pub fn of_theme(changed: &ThemeChanges) -> Self {
        let ThemeChanges { is_applied, files, more, diff, is_cut, .. } = changed;
        let mut text = String::new();
        for ThemeChange { path, added, removed } in files {
            let path = one_line(path).replace('`', "'");
            text.push_str(&format!("- `{path}` +{added} −{removed}\n"));
        }
        if *more > 0 {
            text.push_str(&format!("- and {more} more\n"));
        }
        let longest = diff.split(|c| c != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat((longest + 1).max(3));
        let end = if diff.is_empty() || diff.ends_with('\n') { "" } else { "\n" };
        text.push_str(&format!("\n{fence}diff\n{diff}{end}{fence}\n"));
        if *is_cut {
            text.push_str("\nThe diff goes on in the change set.\n");
        }
        let title =
            if *is_applied { "Changes of the theme, applied" } else { "Changes of the theme, not applied" };
        Self::new(title.to_owned(), text, true, true)
    }

    fn cut_to(&mut self, bytes: usize) {
        let kept = self.text.floor_char_boundary(bytes);
        self.is_cut |= kept < self.text.len();
        self.text.truncate(kept);
    }
}

/// What a run has delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunResult {
    /// At most [`MAX_OUTPUTS`]. Those that were deleted are left out.
    pub outputs: Vec<Output>,
    /// How many outputs were left out.
    pub more: usize,
    pub cost_micros: i64,
    /// The pages of the web that the run has found. Strangers have written their titles.
    pub sources: Vec<WebSource>,
}

/// The results that a message tells.
pub type Results = BTreeMap<RunId, RunResult>;

/// Cuts the outputs so that all together have at most [`MAX_TEXTS`]. Those of the newest runs are kept first.
pub fn limit(results: &mut Results) {
    let mut left = MAX_TEXTS;
    for output in results.values_mut().rev().flat_map(|result| &mut result.outputs) {
        output.cut_to(left);
        left -= output.text.len();
    }
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    Heading(String),
    /// A line of a paragraph or a list, with what stands before it.
    Line(String),
    /// Lines whose columns are aligned: a table, or code.
    Fixed(Vec<String>),
}

/// The parts of an output, harmless in every channel but for what the channel's own format needs.
#[must_use]
pub fn parts(output: &Output) -> Vec<Part> {
    let parts = match output.is_markdown {
        true => Reader::default().read(&output.text),
        false => output.text.lines().map(|line| Part::Line(line.to_owned())).collect(),
    };
    parts.into_iter().filter_map(|part| shown(part, output.tainted)).collect()
}

/// The sources of a result, each as a line that is harmless in every channel: the title and the host.
#[must_use]
pub fn sources(result: &RunResult) -> Vec<String> {
    let line = |source: &WebSource| {
        let host = url::Url::parse(&source.url).ok().and_then(|url| url.host_str().map(str::to_owned));
        let host = host.unwrap_or_default();
        inert(&if source.title.is_empty() { host } else { format!("{} ({host})", source.title) })
    };
    let mut lines: Vec<String> = result.sources.iter().take(MAX_SOURCES).map(line).collect();
    let more = result.sources.len().saturating_sub(MAX_SOURCES);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines
}

/// The beginning of a result, on one line.
#[must_use]
pub fn excerpt(result: &RunResult) -> Option<String> {
    let output = result.outputs.first()?;
    let mut text = String::new();
    for part in parts(output) {
        let line = match part {
            // It mostly repeats the title.
            Part::Heading(_) => continue,
            Part::Line(line) => line.trim().to_owned(),
            Part::Fixed(lines) => lines.join(" "),
        };
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&line);
        if text.chars().count() > MAX_EXCERPT {
            break;
        }
    }
    Some(cut(&visible(&text), MAX_EXCERPT)).filter(|text| !text.is_empty())
}

/// A part without what nobody sees, and without addresses if it is `tainted`.
fn shown(part: Part, tainted: bool) -> Option<Part> {
    let harmless: fn(&str) -> String = if tainted { inert } else { visible };
    let line = |text: &str| {
        // Blanks at the beginning say how deep a line stands.
        let begin = text.len() - text.trim_start_matches(' ').len();
        let rest = harmless(&text[begin..]);
        if rest.is_empty() { rest } else { format!("{}{rest}", &text[..begin]) }
    };
    let part = match part {
        Part::Heading(text) => Part::Heading(line(&text)),
        Part::Line(text) => Part::Line(line(&text)),
        // Blanks within a line align its columns.
        Part::Fixed(lines) => {
            let words = |text: &str| -> String {
                let words: Vec<String> = text.split(' ').map(harmless).collect();
                words.join(" ").trim_end().to_owned()
            };
            Part::Fixed(lines.iter().map(|text| words(text)).collect())
        }
    };
    let is_empty = match &part {
        Part::Heading(text) | Part::Line(text) => text.is_empty(),
        Part::Fixed(lines) => lines.iter().all(String::is_empty),
    };
    (!is_empty).then_some(part)
}

/// Reads Markdown into parts.
#[derive(Default)]
struct Reader {
    parts: Vec<Part>,
    /// The text of the line that is read.
    line: String,
    /// What stands before the next line of an item: its number or bullet.
    marker: Option<String>,
    /// The lists that are open, each with the number of its next item. `None`: its items have no numbers.
    lists: Vec<Option<u64>>,
    quotes: usize,
    /// The code that is read.
    code: Option<String>,
    rows: Vec<Vec<String>>,
    /// The addresses of the links that are open, with where their texts begin.
    links: Vec<(usize, String)>,
}

impl Reader {
    fn read(mut self, text: &str) -> Vec<Part> {
        let options = Options::ENABLE_TABLES
            | Options::ENABLE_STRIKETHROUGH
            | Options::ENABLE_TASKLISTS
            | Options::ENABLE_FOOTNOTES;
        for event in Parser::new_ext(text, options) {
            self.event(event);
        }
        self.end_line();
        self.parts
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some(code) => code.push_str(&text),
                None => self.line.push_str(&text),
            },
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.line.push_str(&text);
            }
            Event::InlineHtml(text) => self.line.push_str(&text),
            Event::Html(text) => {
                self.line.push_str(text.trim_end());
                self.end_line();
            }
            Event::FootnoteReference(name) => self.line.push_str(&format!("[{name}]")),
            Event::SoftBreak => self.line.push(' '),
            Event::HardBreak => self.end_line(),
            Event::Rule => {
                self.end_line();
                self.parts.push(Part::Line("———".to_owned()));
            }
            Event::TaskListMarker(done) => self.line.push_str(if done { "[x] " } else { "[ ] " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { .. } => self.end_line(),
            Tag::BlockQuote(_) => {
                self.end_line();
                self.quotes += 1;
            }
            Tag::CodeBlock(_) => {
                self.end_line();
                self.code = Some(String::new());
            }
            Tag::List(first) => {
                self.end_line();
                self.lists.push(first);
            }
            Tag::Item => {
                self.end_line();
                self.marker = self.lists.last_mut().map(|next| match next {
                    Some(number) => {
                        let marker = format!("{number}. ");
                        *number = number.saturating_add(1);
                        marker
                    }
                    None => "• ".to_owned(),
                });
            }
            Tag::FootnoteDefinition(name) => {
                self.end_line();
                self.marker = Some(format!("[{name}] "));
            }
            Tag::Table(_) => {
                self.end_line();
                self.rows.clear();
            }
            Tag::TableHead | Tag::TableRow => self.rows.push(Vec::new()),
            Tag::TableCell => self.line.clear(),
            Tag::Link { dest_url, .. } => self.links.push((self.line.len(), dest_url.into_string())),
            Tag::Image { dest_url, .. } => {
                self.line.push_str("[image: ");
                self.links.push((self.line.len(), dest_url.into_string()));
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => self.end_line(),
            TagEnd::Heading(_) => {
                let text = std::mem::take(&mut self.line);
                self.parts.push(Part::Heading(text));
            }
            TagEnd::BlockQuote(_) => {
                self.end_line();
                self.quotes = self.quotes.saturating_sub(1);
            }
            TagEnd::CodeBlock => {
                let code = self.code.take().unwrap_or_default();
                let before = self.before();
                self.parts.push(Part::Fixed(code.lines().map(|line| format!("{before}{line}")).collect()));
            }
            TagEnd::List(_) => {
                self.end_line();
                self.lists.pop();
            }
            TagEnd::Item | TagEnd::FootnoteDefinition => {
                self.end_line();
                // An item without a text.
                if let Some(marker) = self.marker.take() {
                    let before = self.before();
                    self.parts.push(Part::Line(format!("{before}{}", marker.trim_end())));
                }
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.line);
                if let Some(row) = self.rows.last_mut() {
                    row.push(cell.trim().to_owned());
                }
            }
            TagEnd::Table => {
                let rows = std::mem::take(&mut self.rows);
                self.parts.push(Part::Fixed(table(&rows)));
            }
            TagEnd::Link => {
                // Of `<https://example.com>` and `<anna@example.com>`, the text is the address.
                if let Some((begin, url)) = self.links.pop()
                    && self
                        .line
                        .get(begin..)
                        .is_none_or(|text| url.strip_prefix("mailto:").unwrap_or(&url) != text)
                {
                    self.line.push_str(&format!(" ({url})"));
                }
            }
            TagEnd::Image => {
                if let Some((_, url)) = self.links.pop() {
                    self.line.push_str(&format!("] ({url})"));
                }
            }
            _ => {}
        }
    }

    /// What stands before a line here: blanks for the lists, and a mark for each quote.
    fn before(&self) -> String {
        let lists = self.lists.len().saturating_sub(1).min(MAX_DEPTH);
        format!("{}{}", "  ".repeat(lists), "> ".repeat(self.quotes.min(MAX_DEPTH)))
    }

    fn end_line(&mut self) {
        let text = std::mem::take(&mut self.line);
        // The rest of an open link stands in the next line.
        self.links.iter_mut().for_each(|(begin, _)| *begin = 0);
        if text.trim().is_empty() {
            return;
        }
        let marker = self.marker.take().unwrap_or_default();
        let line = format!("{}{marker}{}", self.before(), text.trim());
        self.parts.push(Part::Line(line));
    }
}

/// A table as lines: with its columns aligned, or with a line for each cell if it is too wide for that.
fn table(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |text: &String| text.chars().count();
    let widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().filter_map(|row| row.get(column)).map(width).max().unwrap_or(0))
        .collect();
    let (head, body) = rows.split_first().map_or((&[][..], rows), |(head, body)| (head.as_slice(), body));
    if widths.iter().sum::<usize>() + 2 * columns <= MAX_WIDTH {
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        let rule = widths.iter().map(|width| "-".repeat((*width).max(1))).collect::<Vec<_>>().join("  ");
        let mut lines: Vec<String> = rows.iter().map(line).collect();
        if lines.len() > 1 {
            lines.insert(1, rule);
        }
        return lines;
    }
    let mut lines = Vec::new();
    for row in body {
        for (at, cell) in row.iter().enumerate() {
            let name = head.get(at).map(String::as_str).unwrap_or_default();
            lines.push(if name.is_empty() { cell.clone() } else { format!("{name}: {cell}") });
        }
        lines.push(String::new());
    }
    // A table of one row.
    if lines.is_empty() { head.to_vec() } else { lines }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn output(text: &str) -> Output {
        Output::new("Report".to_owned(), text.to_owned(), true, false)
    }

    /// The parts as lines: `#` before a heading, `|` before a line with aligned columns.
    fn lines(output: &Output) -> Vec<String> {
        let of = |part: Part| match part {
            Part::Heading(text) => vec![format!("# {text}")],
            Part::Line(text) => vec![text],
            Part::Fixed(lines) => lines.into_iter().map(|line| format!("|{line}")).collect(),
        };
        parts(output).into_iter().flat_map(of).collect()
    }

    #[test]
    fn changes_of_a_theme_are_shown_as_they_are_and_reach_nobody() {
        let project_id = crate::ids::ProjectId::DEFAULT;
        let mut changed = ThemeChanges {
            project_id,
            change_set_id: crate::ids::ChangeSetId::from_uuid(project_id.uuid()),
            is_applied: false,
            files: vec![ThemeChange { path: "assets/a`b\n.css".to_owned(), added: 2, removed: 0 }],
            more: 3,
            diff: "--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n ```\n+# Heading https://evil.example @all\n".to_owned(),
            is_cut: true,
        };
        let told = Output::of_theme(&changed);
        assert_eq!((told.title.as_str(), told.tainted), ("Changes of the theme, not applied", true));
        let shown = lines(&told);
        assert_eq!(shown[0], "• assets/a'b .css +2 −0");
        assert_eq!(shown[1], "• and 3 more");
        assert!(shown.contains(&"|--- a/x".to_owned()) && shown.contains(&"| ```".to_owned()), "{shown:#?}");
        assert!(!shown.iter().any(|line| line.starts_with("# ")), "a diff has no headings: {shown:#?}");
        assert!(!shown.iter().any(|line| line.contains("https://evil.example")), "{shown:#?}");
        assert_eq!(shown.last().map(String::as_str), Some("The diff goes on in the change set."));
        (changed.is_applied, changed.diff) = (true, String::new());
        assert_eq!(Output::of_theme(&changed).title, "Changes of the theme, applied");
    }

    #[test]
    fn markup_becomes_words_and_every_word_stays() {
        for (text, expected) in [
            ("# Prices\n\nTwo *changed*, **one** `fell`.", vec!["# Prices", "Two changed, one fell."]),
            // Numbers of lists stay, also if they do not begin at one.
            (
                "3. three\n4. four\n   - deep\n\n- a\n- b",
                vec!["3. three", "4. four", "  • deep", "• a", "• b"],
            ),
            ("- [x] done\n- [ ] open\n-", vec!["• [x] done", "• [ ] open", "•"]),
            // HTML is text.
            ("Ask <name> about <b>it</b>.", vec!["Ask <name> about <b>it</b>."]),
            ("<div>\nhidden?\n</div>", vec!["<div>", "hidden?", "</div>"]),
            (
                "[the page](https://example.com/a) and <https://example.com/b>",
                vec!["the page (https://example.com/a) and https://example.com/b"],
            ),
            // No address is hidden behind a text that looks like its end, or that has two lines.
            (
                "[com](https://example.com) <anna@example.com>",
                vec!["com (https://example.com) anna@example.com"],
            ),
            ("[one  \ntwo](https://example.com)", vec!["one", "two (https://example.com)"]),
            ("![a cat](https://example.com/c.png)", vec!["[image: a cat] (https://example.com/c.png)"]),
            ("> said\n> twice\n\nafter", vec!["> said twice", "after"]),
            ("one  \ntwo\nthree", vec!["one", "two three"]),
            ("| a | long |\n|---|---|\n| 1 | 2 |\n| 33 | |", vec!["|a   long", "|--  ----", "|1   2", "|33"]),
            ("```\nlet x = 1;\n  let y;\n```", vec!["|let x = 1;", "|  let y;"]),
            ("a[^1]\n\n[^1]: note", vec!["a[1]", "[1] note"]),
            ("~~old~~ new\n\n---\nend", vec!["old new", "———", "end"]),
        ] {
            assert_eq!(lines(&output(text)), expected, "{text}");
        }
        let plain = Output { is_markdown: false, ..output("1 * 2 * 3\n# no heading") };
        assert_eq!(lines(&plain), ["1 * 2 * 3", "# no heading"]);
    }

    #[test]
    fn a_wide_table_has_a_line_for_each_cell() {
        let long = "x".repeat(120);
        let text = format!("| name | price |\n|---|---|\n| {long} | 12 |");
        assert_eq!(
            lines(&output(&text)),
            [format!("|name: {long}"), "|price: 12".to_owned(), "|".to_owned()]
        );
    }

    #[test]
    fn nothing_in_an_output_of_a_tainted_run_is_an_address() {
        let text =
            "See [this](https://evil.example/x), ask @bob, /start\n\n| a |\n|---|\n| www.evil.example |";
        let of = |tainted| lines(&Output { tainted, ..output(text) }).join("\n");
        assert!(of(false).contains("https://evil.example/x") && of(false).contains("@bob"));
        let harmless = of(true);
        assert!(
            !harmless.contains("https://") && !harmless.contains("www.evil") && !harmless.contains('@'),
            "{harmless}"
        );
    }

    #[test]
    fn a_long_output_is_cut_and_says_so() {
        let long = Output::new("t".to_owned(), "ä".repeat(MAX_TEXT), true, false);
        assert!(long.is_cut && long.text.len() <= MAX_TEXT);
        assert!(!output("short").is_cut);
        let run = |n: u128| RunId::from_uuid(uuid::Uuid::from_u128(n));
        let many = RunResult { outputs: vec![long.clone(); 3], ..RunResult::default() };
        let mut results: Results = (1..=3).map(|n| (run(n), many.clone())).collect();
        limit(&mut results);
        let kept = |n| results[&run(n)].outputs.iter().map(|output| output.text.len()).sum::<usize>();
        assert_eq!((kept(3), kept(2), kept(1)), (3 * MAX_TEXT, MAX_TEXTS - 3 * MAX_TEXT, 0));
        assert!(results[&run(1)].outputs[0].is_cut);
        let result = RunResult {
            outputs: vec![output(&format!("# Title\n\n{}", "word ".repeat(100)))],
            ..RunResult::default()
        };
        let excerpt = excerpt(&result).unwrap();
        assert!(
            excerpt.starts_with("word word")
                && excerpt.chars().count() == MAX_EXCERPT
                && excerpt.ends_with('…')
        );
    }

    proptest! {
        /// Every word of letters and digits in plain paragraphs, lists and tables is in the parts, in its order.
        #[test]
        fn no_word_is_lost(words in proptest::collection::vec("[a-z]{1,8}", 1..30), shape in 0..5) {
            let text = match shape {
                0 => words.join(" "),
                1 => words.iter().map(|word| format!("- {word}\n")).collect(),
                2 => words.iter().map(|word| format!("1. **{word}**\n   - `{word}`\n")).collect(),
                3 => format!("| {} |\n|{}\n| {} |", words.join(" | "), "---|".repeat(words.len()), words.join(" | ")),
                _ => words.iter().map(|word| format!("> # {word}\n\n")).collect(),
            };
            let shown = lines(&output(&text)).join(" ");
            let mut rest = shown.as_str();
            for word in &words {
                let at = rest.find(word.as_str());
                prop_assert!(at.is_some(), "{word} of {text} is not in {shown}");
                rest = &rest[at.unwrap_or_default() + word.len()..];
            }
        }

        /// Whatever a model writes, no part has a line break or an invisible character.
        #[test]
        fn every_part_is_lines_that_a_person_sees(text in "\\PC{0,200}|[\\x00-\\u{ffff}]{0,100}|([#>*`|~_\\[\\]()<!-]|\n| |a){0,120}") {
            for line in lines(&output(&text)) {
                prop_assert!(!line.chars().any(|c| c.is_control() || crate::text::quoting::is_invisible(c)), "{line:?}");
            }
        }
    }
}
