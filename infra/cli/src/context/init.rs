//! `context init`: writes the section into every agent template of a folder. It changes nothing else.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::section::Access;
use super::templates::{self, SectionUpdate};
use crate::Failure;
use crate::output::{self, shown};

/// Writes the section into templates where it is missing or old, and prints the result for each file.
///
/// # Errors
/// If the folder has no template, or a file can't be read or written or has damaged marks. The other files are still processed.
pub fn run(dir: &Path) -> Result<(), Failure> {
    let mut files = Vec::new();
    find(dir, &mut files)
        .map_err(|error| Failure::Message(format!("failed to read {}: {error}", shown(dir))))?;
    files.sort();
    let (mut templates, mut failed) = (0, 0);
    for file in &files {
        let said = match apply(file) {
            Ok(SectionUpdate::NoTemplate) => {
                output::warn(&[format!(
                    "{} is skipped: it does not begin with front matter (`---`), so it is not an agent template",
                    shown(file)
                )]);
                continue;
            }
            Ok(SectionUpdate::Changed(_, access)) => &format!("written{}", remark(access)),
            Ok(SectionUpdate::Unchanged) => "unchanged",
            Ok(SectionUpdate::Damaged) => {
                failed += 1;
                "not changed: its lamplighter:context marks are not exactly one pair"
            }
            Err(error) => {
                failed += 1;
                &format!("not changed: {error}")
            }
        };
        templates += 1;
        output::print(format!("{}: {said}\n", shown(file)))?;
    }
    match (templates, failed) {
        (0, _) => Err(Failure::Message(format!(
            "there is no agent template in {}: no .md file that begins with front matter (`---`)",
            shown(dir)
        ))),
        (_, 0) => Ok(()),
        (_, failed) => Err(Failure::Message(format!("{failed} of {templates} templates were not changed"))),
    }
}

/// How an agent that cannot run a command gets its log.
fn remark(access: Access) -> &'static str {
    match access {
        Access::Command => "",
        Access::Mcp => " (without Bash: it reads its log with the tool read_agent_log)",
        Access::HandedOver => {
            " (without Bash: a SubagentStart hook with `lamplighter log --recall` gives it its log)"
        }
    }
}

/// All Markdown files of a folder and those in it. Links to folders and hidden folders are not followed.
fn find(dir: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            if !entry.file_name().as_encoded_bytes().starts_with(b".") {
                find(&path, files)?;
            }
        } else if path.is_file() && path.extension().is_some_and(|end| end.eq_ignore_ascii_case("md")) {
            files.push(path);
        }
    }
    Ok(())
}

fn apply(file: &Path) -> io::Result<SectionUpdate> {
    // If it is a link, its target is changed and the link stays.
    let file = file.canonicalize()?;
    let text = fs::read_to_string(&file)?;
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let outcome = templates::with_section(&text, &stem);
    if let SectionUpdate::Changed(text, _) = &outcome {
        replace(&file, text)?;
    }
    Ok(outcome)
}

/// Replaces a file atomically, with its permissions.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    let mut new = tempfile::NamedTempFile::new_in(file.parent().unwrap_or(Path::new(".")))?;
    new.write_all(text.as_bytes())?;
    fs::set_permissions(new.path(), fs::metadata(file)?.permissions())?;
    new.persist(file).map_err(|error| error.error)?;
    Ok(())
}
