//! Several documents in one answer of a model: each begins with a line `===NAME===`.

use super::DocName;

/// Why an answer can't be read. It is told to the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("no line has the form ===NAME===")]
    None,
    #[error("==={0}=== names no document of this project")]
    Unknown(String),
    #[error("==={0}=== stands twice")]
    Twice(DocName),
}

/// The texts of an answer, in its order. A document that is not in it is unchanged. What stands before the first section is a remark of
/// the model.
///
/// A name may be written without its ending if no other document has the same stem. A line in a fenced block begins no section, because a
/// document may explain this form.
///
/// # Errors
/// [`Unreadable`].
pub fn sections(answer: &str, documents: &[DocName]) -> Result<Vec<(DocName, String)>, Unreadable> {
    let mut found: Vec<(DocName, Vec<&str>)> = Vec::new();
    let mut fence: Option<&str> = None;
    for line in answer.lines() {
        let trimmed = line.trim();
        if fence.is_none()
            && let Some(name) = marker(trimmed)
        {
            let name = known(name, documents).ok_or_else(|| Unreadable::Unknown(name.to_owned()))?;
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
    if found.is_empty() {
        return Err(Unreadable::None);
    }
    Ok(found.into_iter().map(|(name, lines)| (name, text(&lines))).collect())
}

fn marker(line: &str) -> Option<&str> {
    let name = line.strip_prefix("===")?.strip_suffix("===")?.trim();
    let is_name = !name.is_empty() && !name.contains(|c: char| c == '=' || c.is_whitespace());
    is_name.then_some(name)
}

fn known(name: &str, documents: &[DocName]) -> Option<DocName> {
    if let Some(whole) = documents.iter().find(|document| document.as_str() == name) {
        return Some(whole.clone());
    }
    let mut of_stem = documents.iter().filter(|document| document.stem() == name);
    match (of_stem.next(), of_stem.next()) {
        (Some(document), None) => Some(document.clone()),
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
        let names: Vec<DocName> = ["ARCHITECTURE.md", "DESIGN.md", "notes.md", "notes.txt"]
            .map(|name| name.parse().unwrap())
            .to_vec();
        let read = sections(answer, &names);
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
            ("", Err("no line has the form ===NAME===".to_owned())),
            ("# A", Err("no line has the form ===NAME===".to_owned())),
            ("===SECRETS===\na", Err("===SECRETS=== names no document of this project".to_owned())),
            ("===notes===\na", Err("===notes=== names no document of this project".to_owned())),
            ("===DESIGN===\na\n===DESIGN.md===\nb", Err("===DESIGN.md=== stands twice".to_owned())),
        ] {
            assert_eq!(read(answer), expected, "{answer}");
        }
    }
}
