//! An agent template, as text: Markdown behind front matter between two `---`.

use super::section::{self, BEGIN, END};

/// What a template is like.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The text with the section as it should be.
    Changed(String),
    /// It has the section as it should be.
    Unchanged,
    /// It is no agent template: it has no front matter.
    NoTemplate,
    /// Its marks are not one pair, so nobody can tell what is whose.
    Damaged,
}

/// Puts the section behind the front matter, or in the place where it is. `stem` names an agent whose front matter does not.
#[must_use]
pub fn with_section(text: &str, stem: &str) -> Outcome {
    let Some(front) = FrontMatter::read(text) else { return Outcome::NoTemplate };
    let section = section::section(front.name.unwrap_or(stem)).replace('\n', front.newline);
    let marks = (text.matches(BEGIN).count(), text.matches(END).count());
    let changed = match (marks, text.find(BEGIN), text.find(END)) {
        ((0, 0), ..) => {
            let (head, rest) = text.split_at(front.end);
            let newline = front.newline;
            let open = if head.ends_with('\n') { "" } else { newline };
            let gap = if rest.is_empty() || rest.starts_with(['\n', '\r']) { "" } else { newline };
            format!("{head}{open}{newline}{section}{newline}{gap}{rest}")
        }
        ((1, 1), Some(begin), Some(end)) if front.end <= begin && begin < end => {
            format!("{}{section}{}", &text[..begin], &text[end + END.len()..])
        }
        _ => return Outcome::Damaged,
    };
    if changed == text { Outcome::Unchanged } else { Outcome::Changed(changed) }
}

struct FrontMatter<'a> {
    name: Option<&'a str>,
    /// How the file ends its lines.
    newline: &'static str,
    /// Where the line behind it begins.
    end: usize,
}

impl<'a> FrontMatter<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let mut lines = text.split_inclusive('\n');
        let first = lines.next()?;
        if first.trim_start_matches('\u{feff}').trim_end() != "---" {
            return None;
        }
        let newline = if first.ends_with("\r\n") { "\r\n" } else { "\n" };
        let (mut end, mut name) = (first.len(), None);
        for line in lines {
            end += line.len();
            if line.trim_end() == "---" {
                return Some(Self { name, newline, end });
            }
            let value = line.strip_prefix("name:").map(|value| value.trim().trim_matches(['"', '\'']));
            name = name.or(value.filter(|value| !value.is_empty()));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn changed(text: &str) -> String {
        match with_section(text, "the-tester") {
            Outcome::Changed(text) => text,
            other => panic!("{other:?} for {text:?}"),
        }
    }

    #[test]
    fn the_section_goes_behind_the_front_matter() {
        let section = |name: &str| section::section(name);
        let architect = section("the-architect");
        let tester = section("the-tester");
        // before, after
        for (before, after) in [
            (
                "---\nname: the-architect\n---\nYou are.\n",
                format!("---\nname: the-architect\n---\n\n{architect}\n\nYou are.\n"),
            ),
            (
                "---\nname: the-architect\n---\n\nYou are.",
                format!("---\nname: the-architect\n---\n\n{architect}\n\nYou are."),
            ),
            (
                "---\nname: \"the-architect\"\n---",
                format!("---\nname: \"the-architect\"\n---\n\n{architect}\n"),
            ),
            ("---\nmodel: x\n---\n", format!("---\nmodel: x\n---\n\n{tester}\n")),
            ("\u{feff}---\n---\nText", format!("\u{feff}---\n---\n\n{tester}\n\nText")),
            (
                "---\r\nname: 'the-architect'\r\n---\r\nYou are.\r\n",
                format!(
                    "---\r\nname: 'the-architect'\r\n---\r\n\r\n{}\r\n\r\nYou are.\r\n",
                    architect.replace('\n', "\r\n")
                ),
            ),
        ] {
            assert_eq!(changed(before), after);
        }
    }

    #[test]
    fn an_old_section_is_replaced_where_it_is() {
        let text = format!("---\nname: the-tester\n---\nYou are.\n\n{BEGIN}\nold\n{END} and more\n## Rest\n");
        let expected = format!(
            "---\nname: the-tester\n---\nYou are.\n\n{} and more\n## Rest\n",
            section::section("the-tester")
        );
        assert_eq!(changed(&text), expected);
    }

    #[test]
    fn what_is_no_template_or_can_not_be_told_apart_is_left() {
        for text in ["", "# Readme\n", "---\nname: x\n", "--- \nname", "text\n---\n---\n", "----\n---\n"] {
            assert_eq!(with_section(text, "x"), Outcome::NoTemplate, "{text:?}");
        }
        for marks in [
            BEGIN.to_owned(),
            END.to_owned(),
            format!("{END}\n{BEGIN}"),
            format!("{BEGIN}\n{BEGIN}\n{END}"),
            format!("{BEGIN}\n{END}\n{END}"),
        ] {
            assert_eq!(with_section(&format!("---\n---\n{marks}\n"), "x"), Outcome::Damaged, "{marks}");
        }
        let in_front = format!("---\nnote: {BEGIN}\n{END}\n---\n");
        assert_eq!(with_section(&in_front, "x"), Outcome::Damaged);
    }

    proptest! {
        /// Once is enough, nothing of the hand-written text is touched, and lines end as they did.
        #[test]
        fn a_second_time_changes_nothing(
            name in "[a-z-]{0,20}",
            lines in proptest::collection::vec("[^\u{0}\r\n<]{0,30}", 0..8),
            ends in proptest::bool::ANY,
            windows in proptest::bool::ANY,
        ) {
            let newline = if windows { "\r\n" } else { "\n" };
            let mut body = lines.join(newline);
            if ends {
                body.push_str(newline);
            }
            let front = format!("---{newline}name: {name}{newline}---{newline}");
            let text = format!("{front}{body}");
            let once = changed(&text);
            prop_assert_eq!(with_section(&once, "the-tester"), Outcome::Unchanged);
            prop_assert!(once.starts_with(&front) && once.ends_with(&body));
            prop_assert_eq!(once.matches('\n').count(), once.matches(newline).count());
        }

        #[test]
        fn no_text_is_too_much(text in "(---|\r|\n|name:|<!-- lamplighter:context:(begin|end) -->|\u{feff}|.){0,40}") {
            drop(with_section(&text, "x"));
        }
    }
}
