//! Memory as Markdown: the days, the cards, the summaries of weeks, and the long-term memory, which people also write in this form.
//!
//! Every text stands in one line after `- ` or in a heading, so no text can begin a heading or another item. What is written here
//! is read again without a difference.

use std::borrow::Cow;
use std::fmt::Write;

use jiff::civil::Date;

use super::words::is_hidden;
use super::{
    Block, Card, CardText, Fact, FactState, LongTerm, MAX_BYTES, MAX_CARD_TITLE, MAX_FACT, MAX_LINES, Week,
};
use crate::text::quoting::breaks_line;
use crate::validate::FieldErrors;

/// The longest heading of a section of the long-term memory, in bytes.
pub const MAX_HEADING: usize = 120;

/// The heading of the long-term memory.
const HEADING: &str = "Memory";
/// Follows the heading of a section that the person has written. Browsers do not show it.
const BY_HAND: &str = "<!-- by hand -->";
/// The heading of lines that have none, but stand after a heading.
const MORE: &str = "More";
/// Characters that begin something in Markdown.
const SPECIAL: [char; 13] = ['#', '-', '*', '+', '>', '`', '~', '=', '|', '\\', '<', '[', '_'];
/// The errors of this many lines are reported.
const MAX_WRONG: usize = 20;

/// A text on one line, without characters that nobody sees or that control something.
pub(super) fn clean(text: &str) -> String {
    let text: String =
        text.chars().filter(|c| !is_hidden(*c) || matches!(c, '\u{300}'..='\u{36F}')).collect();
    let is_blank = |c: char| c.is_whitespace() || c.is_control() || breaks_line(c);
    text.split(is_blank).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A text of an item. A character at its beginning that means something in Markdown has a backslash before it.
fn escaped(text: &str) -> String {
    let text = clean(text);
    if text.starts_with(SPECIAL) { format!("\\{text}") } else { text }
}

fn unescaped(text: &str) -> &str {
    text.strip_prefix('\\').filter(|rest| rest.starts_with(SPECIAL)).unwrap_or(text)
}

/// A heading, which can't end with the mark of the person's sections or with the signs that close a heading.
pub(super) fn heading(title: &str) -> String {
    let title = clean(title).replace("<!--", "< !--");
    clean(title.trim_end_matches(['#', ' ']))
}

fn item(out: &mut String, text: &str) {
    let text = escaped(text);
    if !text.is_empty() {
        let _ = writeln!(out, "- {text}");
    }
}

/// What a day has taught: a heading for each conversation, and its facts. A fact that is not simply true says so. A conversation
/// without facts is left out.
#[must_use]
pub fn day(date: Date, blocks: &[(Block, Vec<Fact>)]) -> String {
    let mut out = format!("# {date}\n");
    for (block, facts) in blocks.iter().filter(|(_, facts)| !facts.is_empty()) {
        let _ = write!(out, "\n## {}\nFrom {}:\n\n", heading(&block.title), block.source);
        for fact in facts {
            let text = match fact.state {
                FactState::Current => Cow::Borrowed(fact.text.as_str()),
                FactState::Unconfirmed => format!("{} (not confirmed)", fact.text).into(),
                FactState::Corrected { on, .. } => format!("{} (until {on})", fact.text).into(),
            };
            item(&mut out, &text);
        }
    }
    out
}

/// The parts of a card, in order.
const PARTS: [&str; 7] = ["goal", "boundary", "acceptance", "actions", "artifacts", "status", "next"];

impl CardText {
    pub(super) fn part_mut(&mut self, name: &str) -> Option<&mut String> {
        Some(match name {
            "goal" => &mut self.goal,
            "boundary" => &mut self.boundary,
            "acceptance" => &mut self.acceptance,
            "actions" => &mut self.actions,
            "artifacts" => &mut self.artifacts,
            "status" => &mut self.status,
            "next" => &mut self.next,
            _ => return None,
        })
    }
}

pub(super) fn is_time(text: &str) -> bool {
    let digits = text.as_bytes();
    let number = |at: usize| text[at..at + 2].parse::<u8>().ok();
    digits.len() == 5
        && digits[2] == b':'
        && [0, 1, 3, 4].iter().all(|at| digits[*at].is_ascii_digit())
        && number(0).is_some_and(|hour| hour < 24)
        && number(3).is_some_and(|minute| minute < 60)
}

/// A card: `## HH:MM title`, and an item for each part that is not empty.
#[must_use]
pub fn card(card: &Card) -> String {
    card_of(&card.time, &card.title, &card.text)
}

fn card_of(time: &str, title: &str, text: &CardText) -> String {
    let time = if is_time(time) { time } else { "00:00" };
    let mut out = format!("## {time} {}", heading(title)).trim_end().to_owned();
    out.push('\n');
    for (name, text) in text.named() {
        let text = escaped(text);
        if !text.is_empty() {
            let _ = writeln!(out, "- {name}: {text}");
        }
    }
    out
}

/// The cards of a day.
#[must_use]
pub fn cards(date: Date, cards: &[Card]) -> String {
    let mut out = format!("# {date}\n");
    for one in cards {
        let _ = write!(out, "\n{}", card(one));
    }
    out
}

/// A card that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParsedCard {
    /// `HH:MM`.
    pub time: String,
    /// At most 200 bytes.
    pub title: String,
    /// Each text has at most 500 bytes.
    pub text: CardText,
}

impl ParsedCard {
    /// The card as it was read.
    #[must_use]
    pub fn markdown(&self) -> String {
        card_of(&self.time, &self.title, &self.text)
    }
}

/// What a line of Markdown is.
pub(super) enum Row<'a> {
    Heading {
        level: usize,
        text: &'a str,
    },
    Item(&'a str),
    /// The rest of an item, or a line without any mark.
    Text(&'a str),
}

/// The lines that are not empty, with their numbers.
pub(super) fn rows(text: &str) -> impl Iterator<Item = (usize, Row<'_>)> {
    let rows = text.split('\n').enumerate().map(|(at, line)| (at + 1, line.trim()));
    rows.filter(|(_, line)| !line.is_empty()).map(|(at, line)| {
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        let after_mark = |mark: char| line.strip_prefix(mark).filter(|rest| rest.starts_with([' ', '\t']));
        let row = match ['-', '*', '+'].into_iter().find_map(after_mark) {
            _ if (1..=6).contains(&level)
                && (line.len() == level || line[level..].starts_with([' ', '\t'])) =>
            {
                Row::Heading { level, text: line[level..].trim() }
            }
            Some(text) => Row::Item(text.trim()),
            None => Row::Text(line),
        };
        (at, row)
    })
}

/// Adds errors for lines, and says when there are enough.
struct Wrong(FieldErrors);

impl Wrong {
    fn add(&mut self, line: usize, message: &str) -> bool {
        self.0.add(format!("line {line}"), message);
        self.0.0.len() >= MAX_WRONG
    }
}

/// Adds the rest of an item.
pub(super) fn append(to: &mut String, text: &str) {
    let text = clean(text);
    if !to.is_empty() && !text.is_empty() {
        to.push(' ');
    }
    to.push_str(&text);
}

/// Reads cards as [`cards`] writes them.
///
/// # Errors
/// The lines that are not a part of a card, and the texts that are too long, with the limit.
pub fn parse_cards(text: &str) -> Result<Vec<ParsedCard>, FieldErrors> {
    let mut wrong = Wrong(FieldErrors::default());
    let mut cards: Vec<ParsedCard> = Vec::new();
    let mut part: Option<&str> = None;
    for (at, row) in rows(text) {
        let is_enough = match (row, cards.last_mut()) {
            (Row::Heading { level: 1, .. }, None) => false,
            (Row::Heading { level: 2, text }, _) => {
                let (time, title) = text.split_once(' ').unwrap_or((text, ""));
                let title = heading(title);
                part = None;
                let is_enough = if !is_time(time) {
                    wrong.add(at, "must be `## HH:MM title`")
                } else if title.len() > MAX_CARD_TITLE {
                    let is = title.len();
                    wrong.add(at, &format!("must have a title of at most {MAX_CARD_TITLE} bytes, is {is}"))
                } else {
                    false
                };
                cards.push(ParsedCard { time: time.to_owned(), title, text: CardText::default() });
                is_enough
            }
            (Row::Item(text), Some(card)) => {
                let (name, text) = text.split_once(':').unwrap_or((text, ""));
                let name = PARTS.into_iter().find(|part| part.eq_ignore_ascii_case(name.trim()));
                part = name;
                match name.and_then(|name| card.text.part_mut(name)) {
                    Some(of_card) => {
                        append(of_card, unescaped(text.trim()));
                        let is = of_card.len();
                        let told = format!("must be at most {MAX_FACT} bytes, is {is}");
                        is > MAX_FACT && wrong.add(at, &told)
                    }
                    None => wrong.add(at, &format!("must begin with one of {}", PARTS.join(", "))),
                }
            }
            (Row::Text(text), Some(card)) => match part.and_then(|name| card.text.part_mut(name)) {
                Some(of_card) => {
                    append(of_card, text);
                    let is = of_card.len();
                    is > MAX_FACT && wrong.add(at, &format!("must be at most {MAX_FACT} bytes, is {is}"))
                }
                None => wrong.add(at, "must be an item such as `- goal: text`"),
            },
            _ => wrong.add(at, "must follow a heading `## HH:MM title`"),
        };
        if is_enough {
            break;
        }
    }
    wrong.0.into_result(cards)
}

/// A section of the long-term memory without the facts that its lines come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParsedSection {
    /// Empty for lines before the first heading.
    pub title: String,
    /// It is marked as written by the person.
    pub by_hand: bool,
    /// Each has 1 to 500 bytes.
    pub lines: Vec<String>,
}

/// The long-term memory. It is empty if there is no section.
#[must_use]
pub fn long_term(memory: &LongTerm) -> String {
    let sections = memory.sections.iter();
    sections_of(sections.map(|section| {
        (
            section.title.as_str(),
            section.by_hand,
            section.lines.iter().map(|line| line.text.as_str()).collect(),
        )
    }))
}

/// The long-term memory as it was read.
#[must_use]
pub fn parsed_long_term(sections: &[ParsedSection]) -> String {
    sections_of(sections.iter().map(|section| {
        (section.title.as_str(), section.by_hand, section.lines.iter().map(String::as_str).collect())
    }))
}

fn sections_of<'a>(sections: impl Iterator<Item = (&'a str, bool, Vec<&'a str>)>) -> String {
    let mut out = String::new();
    for (title, by_hand, lines) in sections {
        let mut items = String::new();
        lines.into_iter().for_each(|line| item(&mut items, line));
        let is_first = out.is_empty();
        let title = match heading(title) {
            title if title.is_empty() && !is_first => MORE.to_owned(),
            title => title,
        };
        if title.is_empty() && !by_hand && items.is_empty() {
            continue;
        }
        if is_first {
            let _ = writeln!(out, "# {HEADING}");
        }
        out.push('\n');
        let _ = match (title.as_str(), by_hand) {
            ("", false) => Ok(()),
            ("", true) => writeln!(out, "{BY_HAND}"),
            (title, false) => writeln!(out, "## {title}"),
            (title, true) => writeln!(out, "## {title} {BY_HAND}"),
        };
        out.push_str(&items);
    }
    out
}

/// Whether a text of the long-term memory is within the limits.
#[must_use]
pub fn fits(text: &str) -> bool {
    text.len() <= MAX_BYTES && text.lines().count() <= MAX_LINES
}

/// The errors of a text that is not within the limits.
pub(super) fn check_size(errors: &mut FieldErrors, field: &str, text: &str) {
    if text.len() > MAX_BYTES {
        errors.add(field, format!("must be at most {MAX_BYTES} bytes, is {}", text.len()));
    }
    let lines = text.lines().count();
    if lines > MAX_LINES {
        errors.add(field, format!("must have at most {MAX_LINES} lines, has {lines}"));
    }
}

/// Reads the long-term memory as [`long_term`] writes it, or as people do: headings of any level begin a section, each item and each
/// paragraph is a line. The heading `Memory` at the beginning is not a section.
///
/// # Errors
/// The lines and headings that are too long, or that the whole is too long, with the limits.
pub fn parse_long_term(text: &str) -> Result<Vec<ParsedSection>, FieldErrors> {
    let mut wrong = Wrong(FieldErrors::default());
    let sections = sections_in(text, |line, told| wrong.add(line, told));
    if wrong.0.0.is_empty() {
        check_size(&mut wrong.0, "text", &parsed_long_term(&sections));
    }
    wrong.0.into_result(sections)
}

/// Reads a long-term memory from its top, as far as it is within the limits, as sections that a person has written. Counts the lines that
/// are left out: those that are too long, and those after the end.
#[must_use]
pub fn parse_long_term_from_top(text: &str) -> (Vec<ParsedSection>, u64) {
    let (mut kept, mut left_out, mut is_full): (Vec<ParsedSection>, _, _) = (Vec::new(), 0, false);
    for ParsedSection { mut title, lines, .. } in sections_in(text, |_, _| false) {
        title.truncate(title.floor_char_boundary(MAX_HEADING));
        kept.push(ParsedSection { title: heading(&title), by_hand: true, lines: Vec::new() });
        for line in lines {
            if is_full || line.len() > MAX_FACT {
                left_out += 1;
                continue;
            }
            if let Some(section) = kept.last_mut() {
                section.lines.push(line);
            }
            if !fits(&parsed_long_term(&kept)) {
                (is_full, left_out) = (true, left_out + 1);
                kept.last_mut().and_then(|section| section.lines.pop());
            }
        }
        // A heading alone says nothing.
        kept.pop_if(|section| section.lines.is_empty());
    }
    (kept, left_out)
}

/// The sections of a text. `wrong` is told the lines that are wrong, and says whether that is enough.
fn sections_in(text: &str, mut wrong: impl FnMut(usize, &str) -> bool) -> Vec<ParsedSection> {
    let mut sections: Vec<ParsedSection> = Vec::new();
    // Whether a line without a mark belongs to the item before it, and where that began.
    let mut open: Option<usize> = None;
    let mut last = 0;
    for (at, row) in rows(text) {
        let is_next = at == last + 1;
        last = at;
        match row {
            Row::Heading { level: 1, text } if sections.is_empty() && text == HEADING => open = None,
            Row::Heading { text, .. } => {
                let (title, by_hand) = match text.strip_suffix(BY_HAND) {
                    Some(title) => (title, true),
                    None => (text, false),
                };
                let title = heading(title);
                if title.len() > MAX_HEADING {
                    let told =
                        format!("must be a heading of at most {MAX_HEADING} bytes, is {}", title.len());
                    if wrong(at, &told) {
                        break;
                    }
                }
                let title = if title.is_empty() && !sections.is_empty() { MORE.to_owned() } else { title };
                sections.push(ParsedSection { title, by_hand, lines: Vec::new() });
                open = None;
            }
            Row::Text(BY_HAND) if sections.is_empty() => {
                sections.push(ParsedSection { by_hand: true, ..ParsedSection::default() });
                open = None;
            }
            Row::Item(text) | Row::Text(text) => {
                let is_text = matches!(row, Row::Text(_));
                if sections.is_empty() {
                    sections.push(ParsedSection::default());
                }
                let Some(section) = sections.last_mut() else { continue };
                let begin = match (section.lines.last_mut(), open.filter(|_| is_text && is_next)) {
                    (Some(line), Some(begin)) => {
                        append(line, text);
                        begin
                    }
                    _ => {
                        let text = clean(unescaped(text));
                        if text.is_empty() {
                            continue;
                        }
                        section.lines.push(text);
                        at
                    }
                };
                open = Some(begin);
                let is = section.lines.last().map_or(0, String::len);
                if is > MAX_FACT && wrong(begin, &format!("must be at most {MAX_FACT} bytes, is {is}")) {
                    break;
                }
            }
        }
    }
    sections
}

/// The summary of a week.
#[must_use]
pub fn week(week: &Week) -> String {
    let mut out = format!("# Week of {}\n\n", week.monday);
    week.lines.iter().for_each(|line| item(&mut out, &line.text));
    out
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use jiff::civil::date;
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use crate::ids::{BlockId, CardId, FactId, TidyId};
    use crate::memory::{Line, Origin, Section};

    fn line(text: &str) -> Line {
        Line { text: text.to_owned(), facts: Vec::new() }
    }

    fn section(title: &str, by_hand: bool, lines: &[&str]) -> Section {
        Section { title: title.to_owned(), by_hand, lines: lines.iter().map(|text| line(text)).collect() }
    }

    fn fact(text: &str, state: FactState) -> Fact {
        Fact {
            fact_id: FactId::from_uuid(Uuid::nil()),
            text: text.to_owned(),
            sources: Vec::new(),
            origin: Origin::Conversation,
            state,
            date: date(2026, 11, 26),
            said_at: Timestamp::UNIX_EPOCH,
            block_id: None,
            corrects: None,
            used_on: None,
            namespace: String::new(),
            created_at: Timestamp::UNIX_EPOCH,
        }
    }

    fn card_with(time: &str, title: &str, text: CardText) -> Card {
        Card {
            card_id: CardId::from_uuid(Uuid::nil()),
            date: date(2026, 11, 26),
            time: time.to_owned(),
            title: title.to_owned(),
            text,
            source: None,
            namespace: String::new(),
            created_at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn a_long_term_memory_is_read_from_its_top() {
        let (sections, left_out) = parse_long_term_from_top("# Memory\n\n- z\n## One\n- a\n- b\n");
        let written = "# Memory\n\n<!-- by hand -->\n- z\n\n## One <!-- by hand -->\n- a\n- b\n";
        assert_eq!((parsed_long_term(&sections).as_str(), left_out), (written, 0));
        // A line that is too long, a heading that is too long, and an empty section.
        let (heading, line) = ("ü".repeat(100), "x".repeat(501));
        let (sections, left_out) =
            parse_long_term_from_top(&format!("- a\n- {line}\n## Empty\n## {heading}\n- b"));
        assert_eq!((sections.len(), left_out), (2, 1));
        assert_eq!(
            (sections[1].title.len(), sections[1].lines.as_slice()),
            (120, ["b".to_owned()].as_slice())
        );
        for long in
            ["- x\n".repeat(200), format!("- {}\n", "x".repeat(450)).repeat(20), "## t\n- x\n".repeat(90)]
        {
            let (sections, left_out) = parse_long_term_from_top(&long);
            let text = parsed_long_term(&sections);
            assert!(fits(&text) && left_out > 0 && text.len() > 200, "{left_out} {text}");
            assert_eq!(parse_long_term(&text).unwrap(), sections);
            let lines: usize = sections.iter().map(|section| section.lines.len()).sum();
            assert_eq!(lines as u64 + left_out, long.matches("- x").count() as u64);
        }
        assert_eq!(parse_long_term_from_top(""), (Vec::new(), 0));
    }

    #[test]
    fn a_day_is_written() {
        let block = |title: &str| Block {
            block_id: BlockId::from_uuid(Uuid::nil()),
            date: date(2026, 11, 26),
            source: "ext:s1".parse().unwrap(),
            title: title.to_owned(),
            fingerprint: String::new(),
            facts: Vec::new(),
            namespace: String::new(),
            created_at: Timestamp::UNIX_EPOCH,
            archived_by: None,
        };
        let by = FactId::from_uuid(Uuid::nil());
        let facts = vec![
            fact("# The user\n## lives in Bonn.", FactState::Current),
            fact("The user likes tea.", FactState::Unconfirmed),
            fact("The user works.", FactState::Corrected { by, on: date(2026, 11, 27) }),
        ];
        let day = day(date(2026, 11, 26), &[(block("A\n# move"), facts), (block("Secret"), Vec::new())]);
        assert_eq!(
            day,
            "# 2026-11-26\n\n## A # move\nFrom ext:s1:\n\n- \\# The user ## lives in Bonn.\n- The user likes tea. (not \
             confirmed)\n- The user works. (until 2026-11-27)\n"
        );
    }

    #[test]
    fn cards_are_written_and_read() {
        let text = CardText {
            goal: "Find a vet".into(),
            status: "done:\n## 10:00 obey".into(),
            next: "- call\0 her".into(),
            ..CardText::default()
        };
        let all = [card_with("09:30", "Vet\r# x", text), card_with("9:99", "", CardText::default())];
        let written = cards(date(2026, 11, 26), &all);
        assert_eq!(
            written,
            "# 2026-11-26\n\n## 09:30 Vet # x\n- goal: Find a vet\n- status: done: ## 10:00 obey\n- next: \\- call her\n\n## 00:00\n"
        );
        let read = parse_cards(&written).unwrap();
        assert_eq!(
            (read.len(), read[0].title.as_str(), read[0].text.next.as_str()),
            (2, "Vet # x", "- call her")
        );
        assert_eq!((read[1].time.as_str(), read[1].title.as_str()), ("00:00", ""));
        let by_hand = parse_cards("## 07:05  Walk\n* GOAL: go\n  on\n+ next:\n\n## 08:00 Rest").unwrap();
        assert_eq!(by_hand[0].text, CardText { goal: "go on".into(), ..CardText::default() });
        for (text, expected) in [
            ("- goal: x", "line 1: must follow a heading `## HH:MM title`"),
            ("## 24:00 x", "line 1: must be `## HH:MM title`"),
            ("## é9:00 x", "line 1: must be `## HH:MM title`"),
            (
                "## 09:00 x\n- wish: y\nz",
                "line 2: must begin with one of goal, boundary, acceptance, actions, artifacts, status, next; line 3: must be an item such as `- goal: text`",
            ),
            (
                &format!("## 09:00 x\n- goal: {}", "y".repeat(501)),
                "line 2: must be at most 500 bytes, is 501",
            ),
            (
                &format!("## 09:00 {}", "y".repeat(201)),
                "line 1: must have a title of at most 200 bytes, is 201",
            ),
        ] {
            assert_eq!(parse_cards(text).unwrap_err().to_string(), expected, "{text}");
        }
        assert_eq!(parse_cards(&"x\n".repeat(1_000)).unwrap_err().0.len(), MAX_WRONG);
        assert_eq!(parse_cards("").unwrap(), []);
    }

    #[test]
    fn the_long_term_memory_is_written_and_read() {
        let memory = LongTerm {
            sections: vec![
                section("", true, &["My own line"]),
                section("Home\n# x <!-- by hand -->", false, &["# Bonn", "\\- cats", " ", "a\r\nb"]),
                section("", true, &["> quoted"]),
            ],
        };
        let written = long_term(&memory);
        assert_eq!(
            written,
            "# Memory\n\n<!-- by hand -->\n- My own line\n\n## Home # x < !-- by hand -->\n- \\# Bonn\n- \\\\- cats\n- a b\n\n## More \
             <!-- by hand -->\n- \\> quoted\n"
        );
        let read = parse_long_term(&written).unwrap();
        let by_hand: Vec<bool> = read.iter().map(|section| section.by_hand).collect();
        assert_eq!(by_hand, [true, false, true]);
        assert_eq!(read[1].lines, ["# Bonn", "\\- cats", "a b"]);
        assert_eq!(parsed_long_term(&read), written);
        assert_eq!((long_term(&LongTerm::default()), parse_long_term("").unwrap()), (String::new(), vec![]));
    }

    #[test]
    fn the_long_term_memory_of_a_person_is_read() {
        let text = "# memory of mine\r\nA paragraph\r\nof two lines\r\n\r\nanother\r\n### Home ###\r\n* Bonn\r\n  since May\r\n-not an item\r\n1. one\r\n##\r\n- x";
        let read = parse_long_term(text).unwrap();
        let section = |title: &str, lines: &[&str]| ParsedSection {
            title: title.to_owned(),
            by_hand: false,
            lines: lines.iter().map(|line| (*line).to_owned()).collect(),
        };
        assert_eq!(
            read,
            [
                section("memory of mine", &["A paragraph of two lines", "another"]),
                section("Home", &["Bonn since May -not an item 1. one"]),
                section("More", &["x"]),
            ]
        );
        for (text, expected) in [
            (format!("- {}", "é".repeat(251)), "line 1: must be at most 500 bytes, is 502"),
            (format!("## {}", "x".repeat(121)), "line 1: must be a heading of at most 120 bytes, is 121"),
            ("- x\n".repeat(79), "text: must have at most 80 lines, has 81"),
            (format!("- {}\n", "x".repeat(490)).repeat(11), "text: must be at most 5000 bytes, is 5433"),
        ] {
            assert_eq!(parse_long_term(&text).unwrap_err().to_string(), expected);
        }
        assert!(parse_long_term(&"- x\n".repeat(78)).is_ok());
        assert_eq!(
            parse_long_term(&format!("- {}\n", "x".repeat(501)).repeat(99)).unwrap_err().0.len(),
            MAX_WRONG
        );
    }

    #[test]
    fn a_week_is_written() {
        let week_of = Week {
            monday: date(2026, 11, 16),
            lines: vec![line("The user moved."), line("* x")],
            tidy_id: TidyId::from_uuid(Uuid::nil()),
            created_at: Timestamp::UNIX_EPOCH,
        };
        assert_eq!(week(&week_of), "# Week of 2026-11-16\n\n- The user moved.\n- \\* x\n");
    }

    const HOSTILE: &str =
        "(#|##|-|\\*|\\\\|>|<!-- by hand -->|:| |\n|\r|\u{0}|\u{2028}|\u{200b}|\t|goal|09:00|x|é){0,9}";

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn a_long_term_memory_is_stable(
            sections in prop::collection::vec((HOSTILE, any::<bool>(), prop::collection::vec(HOSTILE, 0..5)), 0..6)
        ) {
            let texts = |(title, by_hand, lines): &(String, bool, Vec<String>)| {
                section(title, *by_hand, &lines.iter().map(String::as_str).collect::<Vec<_>>())
            };
            let memory = LongTerm { sections: sections.iter().map(texts).collect() };
            let written = long_term(&memory);
            let read = parse_long_term(&written).unwrap();
            prop_assert_eq!(&parsed_long_term(&read), &written);
            let by_hand = |by_hand: bool| usize::from(by_hand);
            // Only an empty section without a heading disappears.
            let marks = memory.sections.iter().map(|section| by_hand(section.by_hand)).sum::<usize>();
            prop_assert_eq!(read.iter().map(|section| by_hand(section.by_hand)).sum::<usize>(), marks);
            let headings = written.lines().filter(|line| line.starts_with("## ")).count();
            prop_assert!(headings <= memory.sections.len());
            let items = memory.sections.iter().map(|section| section.lines.len()).sum::<usize>();
            prop_assert!(read.iter().map(|section| section.lines.len()).sum::<usize>() <= items);
            prop_assert!(!written.contains(|c: char| c.is_control() && c != '\n'));
        }

        #[test]
        fn what_people_write_is_stable_when_it_was_read(text in "(#|##|- |\\* |\\\\|<!-- by hand -->| |\n|\r|\u{0}|x|é|# Memory\n){0,30}") {
            let Ok(read) = parse_long_term(&text) else { return Ok(()) };
            let written = parsed_long_term(&read);
            let again = parse_long_term(&written).unwrap();
            prop_assert_eq!(parsed_long_term(&again), written);
        }

        #[test]
        fn cards_are_stable(texts in prop::collection::vec(HOSTILE, 8), time in "(09:00|23:59|x|9:00\n## a)") {
            let mut text = CardText::default();
            for (name, part) in PARTS.iter().zip(&texts) {
                text.part_mut(name).unwrap().clone_from(part);
            }
            let written = cards(date(2026, 11, 26), &[card_with(&time, &texts[7], text)]);
            let read = parse_cards(&written).unwrap();
            prop_assert_eq!(read.len(), 1);
            prop_assert_eq!(format!("# 2026-11-26\n\n{}", read[0].markdown()), written);
        }
    }
}
