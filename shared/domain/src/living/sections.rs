//! Several texts in one answer of a model: each begins with a line `===NAME===`, and the answer ends with a line `===END===`.

use super::parts::PartName;

/// The name in the last line of an answer. An answer without it was cut off.
const END: &str = "END";

/// Why an answer can't be read. It is told to the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("the last line is not ===END===: the answer was cut off")]
    CutOff,
    #[error("==={0}=== names none of the texts")]
    Unknown(String),
    #[error("==={0}=== stands twice")]
    Twice(PartName),
}

/// The texts of an answer, in its order. A text that is not in it is unchanged. What stands before the first section is a remark of the
/// model.
///
/// A document that is one part may be named without its ending if no other one has the same stem. A line in a fenced block begins no
/// section, because a document may explain this form.
///
/// # Errors
/// [`Unreadable`].
pub fn sections(answer: &str, names: &[PartName]) -> Result<Vec<(PartName, String)>, Unreadable> {
    let mut found: Vec<(PartName, Vec<&str>)> = Vec::new();
    let mut fence: Option<&str> = None;
    // A part of a long document may begin within a block of code, so the last line counts also there.
    let lines: Vec<&str> = answer.trim_end().lines().collect();
    let Some((_, lines)) = lines.split_last().filter(|(last, _)| marker(last.trim()) == Some(END)) else {
        return Err(Unreadable::CutOff);
    };
    for line in lines {
        let trimmed = line.trim();
        if fence.is_none()
            && let Some(name) = marker(trimmed)
        {
            let name = known(name, names).ok_or_else(|| Unreadable::Unknown(name.to_owned()))?;
            if found.iter().any(|(earlier, _)| *earlier == name) {
                return Err(Unreadable::Twice(name));
            }
            found.push((name, Vec::new()));
            continue;
        }
        let Some((_, lines)) = found.last_mut() else { continue };
        let mark = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark));
        fence = match (fence, mark) {
            // The first line of a section may open a fence around all of it, which is taken away later.
            (None, Some(mark)) if !lines.is_empty() => Some(mark),
            (Some(open), Some(mark)) if open == mark && trimmed.trim_matches(['`', '~']).is_empty() => None,
            (fence, _) => fence,
        };
        lines.push(line);
    }
    Ok(found.into_iter().map(|(name, lines)| (name, text(&lines))).collect())
}

fn marker(line: &str) -> Option<&str> {
    let name = line.strip_prefix("===")?.strip_suffix("===")?.trim();
    let is_name = !name.is_empty() && !name.contains(|c: char| c == '=' || c.is_whitespace());
    is_name.then_some(name)
}

fn known(name: &str, names: &[PartName]) -> Option<PartName> {
    if let Some(whole) = names.iter().find(|part| part.to_string() == name) {
        return Some(whole.clone());
    }
    let mut of_stem = names.iter().filter(|part| part.number.is_none() && part.document.stem() == name);
    match (of_stem.next(), of_stem.next()) {
        (Some(part), None) => Some(part.clone()),
        _ => None,
    }
}

/// The text of a section. Models like to put a whole document into a fence; that is taken away.
fn text(lines: &[&str]) -> String {
    let is_blank = |line: &&&str| line.trim().is_empty();
    let blank = lines.iter().take_while(is_blank).count();
    let lines = &lines[blank..];
    let blank = lines.iter().rev().take_while(is_blank).count();
    let mut lines = &lines[..lines.len() - blank];
    if let [first, inner @ .., last] = lines
        && last.trim() == "```"
        && match first.trim() {
            "```markdown" | "```md" => true,
            // With fences inside, the first and the last line may belong to two blocks.
            "```" => !inner.iter().any(|line| line.trim_start().starts_with("```")),
            _ => false,
        }
    {
        lines = inner;
    }
    if lines.is_empty() { String::new() } else { format!("{}\n", lines.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(answer: &str) -> Result<Vec<(String, String)>, String> {
        let names: Vec<PartName> = ["ARCHITECTURE.md", "DESIGN.md", "notes.md", "notes.txt"]
            .map(|name| PartName { document: name.parse().unwrap(), number: None })
            .into_iter()
            .chain([PartName { document: "LONG.md".parse().unwrap(), number: Some(2) }])
            .collect();
        let read = sections(&format!("{answer}\n===END===\n"), &names);
        read.map(|all| all.into_iter().map(|(name, text)| (name.to_string(), text)).collect())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn each_section_is_a_document() {
        let of = |all: &[(&str, &str)]| {
            Ok(all.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect())
        };
        for (answer, expected) in [
            (
                "===ARCHITECTURE===\n# A\n\n===DESIGN.md===\n# D",
                of(&[("ARCHITECTURE.md", "# A\n"), ("DESIGN.md", "# D\n")]),
            ),
            ("I have changed one.\n\n=== DESIGN ===\r\n# D\r\n", of(&[("DESIGN.md", "# D\n")])),
            ("===DESIGN===", of(&[("DESIGN.md", "")])),
            // A fence around the whole text, and fences in it.
            ("===DESIGN===\n```markdown\n# D\n```\n", of(&[("DESIGN.md", "# D\n")])),
            (
                "===DESIGN===\n# D\n```\n===NAME===\n```\nx",
                of(&[("DESIGN.md", "# D\n```\n===NAME===\n```\nx\n")]),
            ),
            (
                "===DESIGN===\n```\na\n```\nb\n```\nc\n```",
                of(&[("DESIGN.md", "```\na\n```\nb\n```\nc\n```\n")]),
            ),
            // Underlines of headings are no names.
            ("===DESIGN===\nD\n===\n======\n", of(&[("DESIGN.md", "D\n===\n======\n")])),
            ("===notes.txt===\na", of(&[("notes.txt", "a\n")])),
            ("Nothing changes.", of(&[])),
            ("===LONG.md#2===\na", of(&[("LONG.md#2", "a\n")])),
            ("===SECRETS===\na", Err("===SECRETS=== names none of the texts".to_owned())),
            ("===notes===\na", Err("===notes=== names none of the texts".to_owned())),
            ("===LONG===\na", Err("===LONG=== names none of the texts".to_owned())),
            ("===DESIGN===\na\n===DESIGN.md===\nb", Err("===DESIGN.md=== stands twice".to_owned())),
        ] {
            assert_eq!(read(answer), expected, "{answer}");
        }
    }

    #[test]
    fn an_answer_that_was_cut_off_is_not_taken() {
        let names = [PartName { document: "DESIGN.md".parse().unwrap(), number: None }];
        for answer in ["", "===DESIGN===\n# D\nIt was", "===DESIGN===\n# D\n===END=== and", "===END===\nmore"]
        {
            assert_eq!(sections(answer, &names), Err(Unreadable::CutOff), "{answer}");
        }
        assert_eq!(sections("===END===", &names), Ok(Vec::new()));
    }
}
