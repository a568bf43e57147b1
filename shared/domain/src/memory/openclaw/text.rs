//! Files of Markdown: days, weeks and cards.

use std::collections::HashMap;

use jiff::Timestamp;

use super::hash_of;
use crate::memory::markdown::{Row, append, clean, heading, is_time, rows};
use crate::memory::session::{MAX_MESSAGE, Said, SaidBy};
use crate::memory::{CardText, MAX_CARD_TITLE, MAX_FACT};

/// The most messages of a file.
const MAX_PASSAGES: usize = 2_000;

/// The most cards of a file.
const MAX_CARDS: usize = 500;

/// The items and paragraphs of a file, each as a message that an agent wrote at this time, and how many there were more. Headings are
/// left out. An id is that of its text, so a file that has grown gives the same ids again.
#[must_use]
pub fn passages(text: &str, at: Timestamp) -> (Vec<Said>, u64) {
    let mut passages: Vec<String> = Vec::new();
    let (mut open, mut last, mut more) = (false, 0, 0);
    for (number, row) in rows(text) {
        let is_next = open && number == last + 1;
        last = number;
        match row {
            Row::Heading { .. } => open = false,
            Row::Text(text) if is_next => {
                // Of a paragraph that is too long, the beginning is kept.
                if let Some(passage) = passages.last_mut().filter(|it| it.len() < MAX_MESSAGE) {
                    append(passage, text);
                }
            }
            Row::Item(text) | Row::Text(text) => {
                let text = clean(text);
                // Lines and fences say nothing.
                open = text.chars().any(char::is_alphanumeric);
                if open && passages.len() == MAX_PASSAGES {
                    (more, open) = (more + 1, false);
                } else if open {
                    passages.push(text);
                }
            }
        }
    }
    let mut times: HashMap<String, u32> = HashMap::new();
    let said = |mut text: String| {
        if let Some((cut, _)) = text.char_indices().nth(MAX_MESSAGE) {
            text.truncate(cut);
        }
        let time = times.entry(text.clone()).and_modify(|time| *time += 1).or_default();
        let id = hash_of("passage", &[&text, &time.to_string()])[..32].to_owned();
        let (parent_id, name, date_text) = (None, None, None);
        Said { id, parent_id, role: SaidBy::Agent, name, text, at: Some(at), date_text }
    };
    (passages.into_iter().map(said).collect(), more)
}

/// A card of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileCard {
    /// `HH:MM`.
    pub time: String,
    /// 1 to 200 bytes.
    pub title: String,
    /// Each has at most 500 bytes.
    pub text: CardText,
}

/// The cards of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileCards {
    pub cards: Vec<FileCard>,
    /// Lines that are no part of a card, and cards without a title.
    pub left_out: u64,
    /// Titles and texts that were too long, and were cut.
    pub cut: u64,
}

/// The names of the parts of a card, here and in OpenClaw.
const NAMES: [(&str, &str); 31] = [
    ("goal", "goal"),
    ("目标", "goal"),
    ("boundary", "boundary"),
    ("boundaries", "boundary"),
    ("constraints", "boundary"),
    ("boundary/constraints", "boundary"),
    ("边界", "boundary"),
    ("边界/约束", "boundary"),
    ("acceptance", "acceptance"),
    ("acceptance criteria", "acceptance"),
    ("验收", "acceptance"),
    ("验收标准", "acceptance"),
    ("actions", "actions"),
    ("key actions", "actions"),
    ("关键动作", "actions"),
    ("artifacts", "artifacts"),
    ("artifact", "artifacts"),
    ("artifact path", "artifacts"),
    ("artifact paths", "artifacts"),
    ("产物", "artifacts"),
    ("产物路径", "artifacts"),
    ("status", "status"),
    ("final status", "status"),
    ("状态", "status"),
    ("最终状态", "status"),
    ("next", "next"),
    ("next step", "next"),
    ("next steps", "next"),
    ("下一步", "next"),
    ("key action", "actions"),
    ("constraint", "boundary"),
];

/// The part of a card that an item begins, and its text: `Goal: text`, also `**Goal**：text`.
fn part(text: &str) -> Option<(&'static str, &str)> {
    let (name, rest) = text.split_once([':', '：'])?;
    let name = name.trim_matches(|c: char| c == '*' || c == '_' || c == '`' || c.is_whitespace());
    let name = name.to_lowercase().replace(" / ", "/");
    let (_, part) = NAMES.iter().find(|(known, _)| *known == name)?;
    // `**Goal:** text` has the end of the bold name after its colon.
    Some((part, rest.trim().trim_start_matches("**").trim()))
}

/// Reads cards of this platform and of OpenClaw. Nothing is an error: what is no part of a card is counted, and what is too long is cut.
#[must_use]
pub fn cards(text: &str) -> FileCards {
    let mut found = FileCards::default();
    let mut part_of: Option<&str> = None;
    for (_, row) in rows(text) {
        let (name, text) = match row {
            Row::Heading { level: 1, .. } if found.cards.is_empty() => continue,
            Row::Heading { text, .. } if found.cards.len() < MAX_CARDS => {
                found.cards.push(titled(text));
                part_of = None;
                continue;
            }
            Row::Heading { .. } => (None, ""),
            Row::Item(text) | Row::Text(text) => match part(text) {
                Some((name, text)) => (Some(name), text),
                // The rest of a part, such as a list below it.
                None => (part_of, text),
            },
        };
        let Some((to, name)) = found.cards.last_mut().zip(name) else {
            found.left_out += 1;
            continue;
        };
        part_of = Some(name);
        if let Some(to) = to.text.part_mut(name)
            && to.len() <= MAX_FACT
        {
            append(to, text);
        }
    }
    let read = std::mem::take(&mut found.cards);
    for mut card in read {
        if card.title.is_empty() {
            card.title.clone_from(&card.text.goal);
        }
        found.cut += u64::from(shorten(&mut card.title, MAX_CARD_TITLE));
        for (name, _) in CardText::default().named() {
            let text = card.text.part_mut(name);
            found.cut += text.map_or(0, |text| u64::from(shorten(text, MAX_FACT)));
        }
        if card.title.is_empty() {
            found.left_out += 1;
        } else {
            found.cards.push(card);
        }
    }
    found
}

/// The card that a heading begins: `14:05 title`, also `[14:05] title`, and without a time.
fn titled(text: &str) -> FileCard {
    let text = text.trim().trim_start_matches('[');
    let is_time_here = text.get(..5).is_some_and(is_time);
    let (time, title) = if is_time_here { text.split_at(5) } else { ("00:00", text) };
    let mark = |c: char| matches!(c, ']' | '-' | '–' | '—' | '|' | ':' | '·' | '：') || c.is_whitespace();
    let title = if is_time_here { title.trim_start_matches(mark) } else { title };
    FileCard { time: time.to_owned(), title: heading(title), text: CardText::default() }
}

/// Cuts a text of more than `most` bytes, and says so.
fn shorten(text: &mut String, most: usize) -> bool {
    let is_long = text.len() > most;
    if is_long {
        text.truncate(text.floor_char_boundary(most - '…'.len_utf8()));
        text.push('…');
    }
    is_long
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use proptest::prelude::*;

    use super::*;
    use crate::ids::CardId;
    use crate::memory::{Card, markdown};

    fn texts(text: &str) -> Vec<String> {
        passages(text, Timestamp::UNIX_EPOCH).0.into_iter().map(|said| said.text).collect()
    }

    #[test]
    fn a_file_has_a_message_for_each_item_and_paragraph() {
        let text = "# 2026-02-01\n\n## Talk\nFrom x:\n\n- One\n- Two\n  goes on\n\nA paragraph\nof two lines.\n\
            * Three\n---\n```\ncode 1\n```\n## Empty\n- \n- One\n";
        assert_eq!(
            texts(text),
            ["From x:", "One", "Two goes on", "A paragraph of two lines.", "Three --- ``` code 1 ```", "One"]
        );
        let ids = |text: &str| -> Vec<String> {
            passages(text, Timestamp::UNIX_EPOCH).0.into_iter().map(|said| said.id).collect()
        };
        let (short, long) = (ids("- a\n- b\n- a\n"), ids("- a\n- b\n- a\n- c\n- a\n"));
        assert_eq!(short, long[..3]);
        assert_eq!(long.iter().collect::<std::collections::BTreeSet<_>>().len(), 5);
        let many = "- x\n\n".repeat(MAX_PASSAGES + 7);
        let (kept, more) = passages(&many, Timestamp::UNIX_EPOCH);
        assert_eq!((kept.len(), more), (MAX_PASSAGES, 7));
        let huge = passages(&"é ".repeat(40_000), Timestamp::UNIX_EPOCH).0;
        assert!(huge.len() == 1 && huge[0].check().is_ok());
    }

    #[test]
    fn cards_are_read_in_both_forms() {
        let text = "# Cards\n## 14:05 Checked links\n- Goal: No dead links\n- Boundary/Constraints: The shop only\n\
            - **Acceptance Criteria**: All found\n- **Key Actions:** First\n  - read the map\n  - fixed 3\n\
            - Artifact Paths: `a.md`\n- Final Status: done\n- Next Step: none\n\n\
            ## [09:00] 整理\n- 目标：快\n- 边界: 无\n- 验收：好\n- 关键动作：做\n- 产物路径：x\n- 最终状态：完成\n- 下一步：无\n\
            ## Without a time\nstatus: open\n";
        let found = cards(text);
        assert_eq!((found.cards.len(), found.left_out, found.cut), (3, 0, 0));
        let expected = CardText {
            goal: "No dead links".into(),
            boundary: "The shop only".into(),
            acceptance: "All found".into(),
            actions: "First read the map fixed 3".into(),
            artifacts: "`a.md`".into(),
            status: "done".into(),
            next: "none".into(),
        };
        assert_eq!(
            found.cards[0],
            FileCard { time: "14:05".into(), title: "Checked links".into(), text: expected }
        );
        let chinese = &found.cards[1];
        assert_eq!((chinese.time.as_str(), chinese.title.as_str()), ("09:00", "整理"));
        assert!(chinese.text.named().iter().all(|(_, text)| !text.is_empty()), "{chinese:?}");
        assert_eq!(found.cards[2].time, "00:00");
        assert_eq!(found.cards[2].text.status, "open");
    }

    #[test]
    fn what_is_no_card_is_counted_and_what_is_too_long_is_cut() {
        let long = "ü".repeat(400);
        let text = format!(
            "- goal: nobody's\n## 25:00 {long}\n- what: ever\n- goal: {long}\n## 10:00\n- goal: G\n## 11:00\n"
        );
        let found = cards(&text);
        assert_eq!((found.cards.len(), found.left_out, found.cut), (2, 3, 2));
        assert!(found.cards[0].title.len() <= MAX_CARD_TITLE && found.cards[0].title.starts_with("25:00"));
        assert_eq!(found.cards[0].text.goal.len(), 499);
        assert_eq!(found.cards[1].title, "G");
        let many = "## 10:00 x\n".repeat(MAX_CARDS + 3);
        assert_eq!(cards(&many).cards.len(), MAX_CARDS);
        assert_eq!(cards(&many).left_out, 3);
    }

    fn stored(card: &FileCard) -> Card {
        Card {
            card_id: CardId::from_uuid(uuid::Uuid::nil()),
            date: date(2026, 2, 1),
            time: card.time.clone(),
            title: card.title.clone(),
            text: card.text.clone(),
            source: None,
            namespace: String::new(),
            created_at: Timestamp::UNIX_EPOCH,
        }
    }

    proptest! {
        #[test]
        fn any_text_gives_valid_cards_and_messages(text in "(## |[0-2][0-9]:[0-5][0-9] |- |goal|: |\n|\\*\\*|下一步：|[a-zé#\u{0}\u{202E}]){0,60}") {
            for card in &cards(&text).cards {
                stored(card).check().unwrap();
            }
            for said in passages(&text, Timestamp::UNIX_EPOCH).0 {
                said.check().unwrap();
            }
        }

        #[test]
        fn what_is_taken_along_reads_back(title in "[a-zA-Z#<!*-]{1,9}( [a-z]{1,9}){0,3}", goal in "[a-z*_#`<é-]{0,20}", next in ".{0,60}") {
            let text = CardText { goal, next, ..CardText::default() };
            let card = stored(&FileCard { time: "07:08".into(), title, text });
            let written = markdown::cards(card.date, std::slice::from_ref(&card));
            let found = cards(&written);
            prop_assert!(found.cards.len() <= 1);
            for read in &found.cards {
                prop_assert_eq!(&read.time, "07:08");
            }
        }
    }
}
