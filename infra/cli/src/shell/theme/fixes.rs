//! `theme fix`: what strict Liquid refuses is written so that Shopify takes it.
//!
//! The answer is a diff, and `--write` writes. Links are left out, as everywhere in a folder, so nothing outside of it is written. For a project,
//! the server answers. Both answers have the same shape.

use std::fmt::Write as _;
use std::io::Write as _;
use std::mem;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use fs_err as fs;
use serde_json::{Value, json};
use tempfile::TempPath;
use theme::answers::MAX_READ;
use theme::check::STRICT_CODE;
use theme::fix::Mender;

use super::super::screen::{Look, Screen, block, line, print_json};
use super::super::values::{Fields, counted};
use super::listed::{Listed, bounded};
use crate::Failure;
use crate::output;

/// A file whose new text is written beside it.
struct Staged<'a> {
    file: &'a Listed,
    before: String,
    new: TempPath,
}

/// Mends the files of a theme, or those that are named.
///
/// # Errors
/// If a file can't be read, or is not in the theme, or can't be written.
pub fn fix(files: &[Listed], named: &[String], mut mender: Mender, writes: bool) -> Result<Value, Failure> {
    for name in named {
        if !files.iter().any(|file| file.path == *name) {
            return Err(Failure::Message(format!("the theme has no file {name}")));
        }
    }
    let is_named = |file: &Listed| named.contains(&file.path);
    let read: Vec<&Listed> =
        files.iter().filter(|file| mender.looks_at(&file.path, is_named(file))).collect();
    bounded(read.iter().copied(), MAX_READ, "what is mended of a theme")?;
    let mut texts = Vec::new();
    for file in read {
        let is_asked = named.is_empty() || is_named(file);
        match String::from_utf8(file.read()?) {
            Ok(text) => {
                mender.learn(&file.path, &text);
                if is_asked {
                    texts.push((file, text));
                }
            }
            Err(_) if is_asked => {
                return Err(Failure::Message(format!("{} is not UTF-8, so it can't be mended", file.path)));
            }
            Err(_) => {}
        }
    }
    let (mut fixed, mut staged) = (Vec::new(), Vec::new());
    for (file, text) in texts {
        let Some(mut mended) = mender.mend(&file.path, &text) else { continue };
        let new = mem::take(&mut mended.text);
        if writes && new != text {
            staged.push(stage(file, text, &new)?);
        }
        fixed.push(mended);
    }
    let written = staged.len();
    put(staged)?;
    Ok(json!({
        "files": fixed,
        "refused_before": fixed.iter().filter(|file| file.was_refused()).count(),
        "refused_after": fixed.iter().filter(|file| file.is_refused()).count(),
        "has_more": false,
        "written": written,
    }))
}

/// Writes the new text beside the file, with the rights of the file.
fn stage<'a>(file: &'a Listed, before: String, new: &str) -> Result<Staged<'a>, Failure> {
    let folder = file.file.parent().unwrap_or(Path::new("."));
    let mut temporary = tempfile::Builder::new().prefix(".lamplighter-").tempfile_in(folder)?;
    temporary.write_all(new.as_bytes())?;
    let mode = fs::symlink_metadata(&file.file)?.permissions().mode();
    temporary.as_file().set_permissions(PermissionsExt::from_mode(mode & 0o7777))?;
    temporary.as_file().sync_all()?;
    Ok(Staged { file, before, new: temporary.into_temp_path() })
}

/// Puts the new files in the place of the old ones. All are there before the first one is put.
fn put(staged: Vec<Staged>) -> Result<(), Failure> {
    for Staged { file, before, .. } in &staged {
        // A link that has taken the place of the file is not followed.
        let is_file = fs::symlink_metadata(&file.file)?.is_file();
        if !is_file || file.read()? != before.as_bytes() {
            let path = &file.path;
            return Err(Failure::Message(format!(
                "{path} has changed while it was mended; nothing was written"
            )));
        }
    }
    for (done, Staged { file, new, .. }) in staged.into_iter().enumerate() {
        new.persist(&file.file).map_err(|error| {
            let written = counted(done as i64, "file was", "files were");
            Failure::Message(format!(
                "can't write {}: {}; {written} written before it",
                file.path, error.error
            ))
        })?;
    }
    Ok(())
}

/// How many places of the answer are in these lists of its files.
fn places(answer: &Value, list: &str) -> i64 {
    answer.items("files").iter().map(|file| file.items(list).len() as i64).sum()
}

/// Prints what was mended and what is left. `writes` says whether it was to be written.
///
/// # Errors
/// If it can't be printed, or if something is left, or would be mended.
pub fn print(screen: Screen, answer: &Value, writes: bool, is_for_people: bool) -> Result<(), Failure> {
    if is_for_people {
        output::print(text(screen, answer, writes))?;
    } else {
        print_json(answer)?;
    }
    if answer.is("has_more") {
        output::note("more files are to be mended; name some of them");
    }
    let refused = |places| counted(places, "place is", "places are");
    // What was to be mended on request and is left is accepted.
    let left = answer.items("files").iter().flat_map(|file| file.items("left"));
    let left = left.filter(|left| left.text("code") == STRICT_CODE).count() as i64;
    match (writes, places(answer, "changes"), left) {
        (_, 0, 0) | (true, _, 0) => Ok(()),
        (true, _, left) => Err(Failure::Message(format!("{} still refused", refused(left)))),
        (false, 0, left) => {
            Err(Failure::Message(format!("{} refused, and none can be mended", refused(left))))
        }
        (false, mended, _) => {
            let to_mend = counted(mended, "place", "places");
            Err(Failure::Message(format!("nothing is written: `--write` mends {to_mend}")))
        }
    }
}

/// The diff. What is no part of it begins with `#`, so that programs which apply it pass over it.
fn text(screen: Screen, answer: &Value, writes: bool) -> String {
    let mut text = String::new();
    let fixes = answer.items("files");
    for fix in fixes {
        let path = line(fix.text("path"));
        for change in fix.items("changes") {
            let _ = writeln!(text, "{}", comment(screen, &path, change));
            if let Some(output) = change.some("output") {
                let _ = writeln!(text, "#   the page changes: {}", line(output));
            }
        }
        diff(screen, &mut text, fix.text("diff"));
    }
    for fix in fixes {
        let path = line(fix.text("path"));
        for left in fix.items("left") {
            let _ = writeln!(text, "{}", comment(screen, &path, left));
            for choice in left.items("choices").iter().filter_map(Value::as_str) {
                let _ = writeln!(text, "#   - {}", line(choice));
            }
        }
    }
    let (mended, left) = (places(answer, "changes"), places(answer, "left"));
    let summary = if (mended, left) == (0, 0) {
        "Strict Liquid refuses nothing.".to_owned()
    } else {
        let verb = if writes { "mended" } else { "can be mended" };
        let places = counted(mended, "place", "places");
        format!(
            "{places} {verb}, {left} left to a person, in {}",
            counted(fixes.len() as i64, "file", "files")
        )
    };
    let _ = writeln!(text, "# {}", screen.painted(&summary, Look::Bold));
    text
}

fn comment(screen: Screen, path: &str, item: &Value) -> String {
    let place = format!("{path}:{}", item.number("line").unwrap_or(0));
    format!("# {} {}", screen.painted(&place, Look::Bold), line(item.text("reason")))
}

/// A terminal gets colours and nothing that controls it. A program gets all bytes.
fn diff(screen: Screen, text: &mut String, diff: &str) {
    if !screen.is_terminal() {
        text.push_str(diff);
        return;
    }
    for part in diff.lines() {
        let look = match part.as_bytes().first() {
            Some(b'+') => Look::Good,
            Some(b'-') => Look::Bad,
            Some(b'@') => Look::Dim,
            _ => Look::Plain,
        };
        let _ = writeln!(text, "{}", screen.painted(&block(part), look));
    }
}
