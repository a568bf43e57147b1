//! An agent template as text: Markdown after front matter between two `---` lines.

use super::section::{self, Access, BEGIN, END};

/// The result for a template.
#[derive(Debug, PartialEq, Eq)]
pub enum SectionUpdate {
    /// The text with the current section, and how the agent gets its log.
    Changed(String, Access),
    /// The template already has the current section.
    Unchanged,
    /// The file is not an agent template, because it has no front matter.
    NoTemplate,
    /// The marks are not one pair, so the extent of the section is unknown.
    Damaged,
}

/// Inserts the section after the front matter, or updates it where it is. `stem` names an agent whose front matter has
/// no name.
#[must_use]
pub fn with_section(text: &str, stem: &str) -> SectionUpdate {
    let Some(front) = FrontMatter::read(text) else { return SectionUpdate::NoTemplate };
    let section = section::section(front.name.unwrap_or(stem), front.access).replace('\n', front.newline);
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
        _ => return SectionUpdate::Damaged,
    };
    if changed == text { SectionUpdate::Unchanged } else { SectionUpdate::Changed(changed, front.access) }
}

struct FrontMatter<'a> {
    name: Option<&'a str>,
    access: Access,
    /// The line ends of the file.
    newline: &'static str,
    /// The position after the front matter.
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
        let (mut allowed, mut denied) = (ToolList::default(), ToolList::default());
        for line in lines {
            end += line.len();
            if line.trim_end() == "---" {
                return Some(Self { name, access: access(&allowed, &denied), newline, end });
            }
            allowed.read(line, "tools:");
            denied.read(line, "disallowedTools:");
            let value = line.strip_prefix("name:").map(|value| value.trim().trim_matches(['"', '\'']));
            name = name.or(value.filter(|value| !value.is_empty()));
        }
        None
    }
}

/// A list of tools in front matter: `tools: Read, Grep`, `tools: [Read, Grep]`, or one `- Read` per line below.
#[derive(Default)]
struct ToolList {
    is_open: bool,
    tools: Vec<String>,
}

impl ToolList {
    fn read(&mut self, line: &str, key: &str) {
        let text = if let Some(value) = line.strip_prefix(key) {
            self.is_open = true;
            value.trim()
        } else if let Some(item) = line.trim().strip_prefix("- ").filter(|_| self.is_open) {
            item.trim()
        } else if line.starts_with([' ', '\t']) && self.is_open {
            line.trim()
        } else {
            self.is_open &= line.trim().is_empty() || line.starts_with('#');
            return;
        };
        // After ` #` there is a comment. Commas within `Bash(git add:*, git rm:*)` do not separate tools.
        let text = text.split(" #").next().unwrap_or_default().trim_matches(['[', ']']);
        let mut depth = 0;
        let separates = |c: char| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            c == ',' && depth == 0
        };
        let tools = text.split(separates).map(|tool| tool.trim().trim_matches(['"', '\'']));
        self.tools.extend(tools.filter(|tool| !tool.is_empty()).map(str::to_owned));
    }

    fn any(&self, is_it: impl Fn(&str) -> bool) -> bool {
        self.tools.iter().any(|tool| is_it(tool))
    }
}

/// How an agent with these tools gets its log. Without a list it has every tool.
fn access(allowed: &ToolList, denied: &ToolList) -> Access {
    let every = allowed.tools.is_empty();
    let runs = |tool: &str| match tool.strip_prefix("Bash") {
        Some("") => true,
        // Only some commands are allowed.
        Some(rest) => rest == "(*)" || rest.contains("lamplighter"),
        None => tool == "*",
    };
    if (every || allowed.any(runs)) && !denied.any(|tool| matches!(tool, "Bash" | "Bash(*)" | "*")) {
        return Access::Command;
    }
    let reads = |tool: &str| {
        tool.ends_with("__read_agent_log") || tool == "mcp__lamplighter" || tool == "mcp__lamplighter__*"
    };
    if allowed.any(reads) && !denied.any(reads) { Access::Mcp } else { Access::HandedOver }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn changed(text: &str) -> String {
        match with_section(text, "the-tester") {
            SectionUpdate::Changed(text, _) => text,
            other => panic!("{other:?} for {text:?}"),
        }
    }

    #[test]
    fn the_section_is_inserted_after_the_front_matter() {
        let section = |name: &str| section::section(name, Access::Command);
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
            section::section("the-tester", Access::Command)
        );
        assert_eq!(changed(&text), expected);
    }

    #[test]
    fn the_section_says_what_the_tools_allow() {
        use Access::{Command, HandedOver, Mcp};
        for (front, expected) in [
            ("model: x", Command),
            ("tools:", Command),
            ("tools: Read, Bash, Grep", Command),
            ("tools: \"*\"", Command),
            ("tools: ['Read', \"Bash\"]", Command),
            ("tools:\n  - Read\n  - Bash\nmodel: x", Command),
            ("tools: Bash(lamplighter log:*)", Command),
            ("tools: Read, Grep", HandedOver),
            ("tools: Read, Grep # not Bash", HandedOver),
            ("tools: [Read, Grep]", HandedOver),
            ("tools: [\n  Read,\n  Bash,\n]", Command),
            ("tools:\n- Read\n\n- Grep\ndescription: uses\n  - Bash", HandedOver),
            ("tools: Bash(git add:*, git rm:*), Read", HandedOver),
            ("tools: BashOutput", HandedOver),
            ("disallowedTools: Bash", HandedOver),
            ("tools: Read, mcp__lamplighter__read_agent_log", Mcp),
            ("tools: mcp__lamplighter\ndisallowedTools: Write", Mcp),
            ("tools: mcp__memory__read_agent_log", Mcp),
            ("tools: mcp__lamplighter__read_context", HandedOver),
        ] {
            let text = format!("---\nname: the-tester\n{front}\n---\nYou are.\n");
            match with_section(&text, "x") {
                SectionUpdate::Changed(text, access) => {
                    assert_eq!(access, expected, "{front}");
                    assert_eq!(text.contains("```bash"), expected == Command, "{front}");
                    assert_eq!(text.contains("read_agent_log` with"), expected == Mcp, "{front}");
                }
                other => panic!("{other:?} for {front}"),
            }
        }
    }

    #[test]
    fn files_that_are_not_templates_are_not_changed() {
        for text in ["", "# Readme\n", "---\nname: x\n", "--- \nname", "text\n---\n---\n", "----\n---\n"] {
            assert_eq!(with_section(text, "x"), SectionUpdate::NoTemplate, "{text:?}");
        }
        for marks in [
            BEGIN.to_owned(),
            END.to_owned(),
            format!("{END}\n{BEGIN}"),
            format!("{BEGIN}\n{BEGIN}\n{END}"),
            format!("{BEGIN}\n{END}\n{END}"),
        ] {
            assert_eq!(with_section(&format!("---\n---\n{marks}\n"), "x"), SectionUpdate::Damaged, "{marks}");
        }
        let in_front = format!("---\nnote: {BEGIN}\n{END}\n---\n");
        assert_eq!(with_section(&in_front, "x"), SectionUpdate::Damaged);
    }

    proptest! {
        /// A second run changes nothing. The hand-written text and the line ends are never changed.
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
            prop_assert_eq!(with_section(&once, "the-tester"), SectionUpdate::Unchanged);
            prop_assert!(once.starts_with(&front) && once.ends_with(&body));
            prop_assert_eq!(once.matches('\n').count(), once.matches(newline).count());
        }

        #[test]
        fn every_text_is_accepted(text in "(---|\r|\n|name:|<!-- lamplighter:context:(begin|end) -->|\u{feff}|.){0,40}") {
            drop(with_section(&text, "x"));
        }
    }
}
