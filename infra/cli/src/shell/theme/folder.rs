//! The theme of a folder: the index and the checks of the platform, without a server.
//!
//! Links are not followed, because one could lead out of the folder or in a circle. Hidden files and `node_modules` are left out.

use std::path::Path;
use std::time::Instant;

use fs_err as fs;
use serde_json::Value;
use theme::ThemeIndex;
use theme::answers::{
    CheckAnswer, DEFAULT_TARGETS, Findings, LookupAnswer, MAX_READ, Neighbours, RepoMapAnswer, Source,
};
use theme::archive::theme_paths;
use theme::check::{CheckedTheme, is_read};
use theme::index::MAX_THEME_BYTES;
use theme::path::check_path;
use theme_scripts::Oxc;

use super::super::values::counted;
use crate::Failure;
use crate::args::ThemeCommand;
use crate::output;

/// The most files that are listed. A folder with more of them is not that of a theme.
const MAX_LISTED: usize = 50_000;

/// Answers from the files of a folder, in the shape of the server's answers.
///
/// # Errors
/// If the folder can't be read, or has no theme.
pub fn ask(folder: &Path, command: &ThemeCommand) -> Result<Value, Failure> {
    let files = theme(folder)?;
    match command {
        ThemeCommand::Check { overlay, deleted, .. } => check(&files, overlay.as_deref(), deleted),
        ThemeCommand::Lookup { request, active, .. } => {
            let index = index(&files)?;
            let started = Instant::now();
            let answer = LookupAnswer::of(&index, Source::Scout, request, active.as_deref(), DEFAULT_TARGETS);
            value(&LookupAnswer { took_us: micros(started), ..answer })
        }
        ThemeCommand::Map { request, active, tokens, .. } => {
            let index = index(&files)?;
            let started = Instant::now();
            let (request, active) = (request.as_deref(), active.as_deref());
            let answer = RepoMapAnswer::of(&index, Source::Scout, request, active, *tokens as usize);
            value(&RepoMapAnswer { took_us: micros(started), ..answer })
        }
        ThemeCommand::Graph { file: Some(file), .. } => match Neighbours::of(&index(&files)?, file) {
            Some(neighbours) => value(&neighbours),
            None => Err(Failure::Message(format!("the theme has no file {file}"))),
        },
        ThemeCommand::Graph { file: None, .. } => value(&Findings::of(&index(&files)?)),
    }
}

/// A file of a folder.
struct Listed {
    /// Its path in the theme.
    path: String,
    /// Its path in the folder.
    inside: String,
    bytes: u64,
}

/// The files of a theme, not yet read.
struct Files<'a> {
    folder: &'a Path,
    list: Vec<Listed>,
}

impl Files<'_> {
    fn read(&self, file: &Listed) -> Result<Vec<u8>, Failure> {
        Ok(fs::read(self.folder.join(&file.inside))?)
    }
}

/// The theme of a folder. It may be within another folder, as in an archive.
fn theme(folder: &Path) -> Result<Files<'_>, Failure> {
    let refused = |why: String| Failure::Message(format!("{} {why}", output::shown(folder)));
    if !folder.is_dir() {
        return Err(refused(
            "is neither a folder nor the id of a project (`default`, or `prj_` and 32 lower-case hexadecimal digits)".to_owned(),
        ));
    }
    let found = list(folder)?;
    let entries: Vec<&str> = found.iter().map(|file| file.0.as_str()).collect();
    let paths = theme_paths(&entries).map_err(|error| refused(error.to_string()))?;
    let mut files = Vec::new();
    for (&(ref inside, bytes), path) in found.iter().zip(paths) {
        if let Some(path) = path {
            check_path(path).map_err(|error| refused(format!("has the file {inside}: {error}")))?;
            files.push(Listed { path: path.to_owned(), inside: inside.clone(), bytes });
        }
    }
    if let Some(first) = files.first()
        && let Some(within) = first.inside.strip_suffix(&first.path).filter(|within| !within.is_empty())
    {
        output::note(&format!("the theme is in {within}"));
    }
    Ok(Files { folder, list: files })
}

/// The files of a change of a theme, with their paths in the theme.
///
/// # Errors
/// If the folder can't be read, or has no files.
pub fn changes(folder: &Path) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let refused = |why: String| Failure::Message(format!("{} {why}", output::shown(folder)));
    if !folder.is_dir() {
        return Err(refused("is not a folder".to_owned()));
    }
    let list = list(folder)?;
    if list.is_empty() {
        return Err(refused("has no files".to_owned()));
    }
    bounded(list.iter().map(|file| file.1), MAX_READ, "a change")?;
    let mut files = Vec::new();
    for (path, _) in list {
        check_path(&path).map_err(|error| refused(format!("has the file {path}: {error}")))?;
        let content = fs::read(folder.join(&path))?;
        files.push((path, content));
    }
    Ok(files)
}

/// The visible files of a folder with their sizes, sorted.
fn list(folder: &Path) -> Result<Vec<(String, u64)>, Failure> {
    let (mut files, mut left_out) = (Vec::new(), 0);
    let mut folders = vec![String::new()];
    while let Some(inside) = folders.pop() {
        for entry in fs::read_dir(folder.join(&inside))? {
            let entry = entry?;
            let kind = entry.file_type()?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                left_out += 1;
                continue;
            };
            if name.starts_with('.') || name == "node_modules" {
                continue;
            }
            let path = if inside.is_empty() { name.to_owned() } else { format!("{inside}/{name}") };
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                files.push((path, entry.metadata()?.len()));
            } else {
                left_out += 1;
            }
            if files.len() + folders.len() > MAX_LISTED {
                let message = format!(
                    "{} has more than {MAX_LISTED} files; name the folder of a theme",
                    output::shown(folder)
                );
                return Err(Failure::Message(message));
            }
        }
    }
    if left_out > 0 {
        let what = counted(left_out, "entry is", "entries are");
        output::note(&format!("{what} left out: links, special files, and names that are not UTF-8"));
    }
    files.sort_unstable();
    Ok(files)
}

fn bounded(sizes: impl Iterator<Item = u64>, most: u64, what: &str) -> Result<(), Failure> {
    let bytes = sizes.fold(0, u64::saturating_add);
    if bytes > most {
        return Err(Failure::Message(format!("{what} may have at most {most} bytes, this has {bytes}")));
    }
    Ok(())
}

fn index(files: &Files<'_>) -> Result<ThemeIndex, Failure> {
    bounded(files.list.iter().map(|file| file.bytes), MAX_THEME_BYTES as u64, "a theme")?;
    let mut contents = Vec::new();
    for file in &files.list {
        contents.push((file.path.as_str(), files.read(file)?));
    }
    ThemeIndex::build(contents).map_err(|error| Failure::Message(format!("can't index the theme: {error}")))
}

fn check(files: &Files<'_>, overlay: Option<&Path>, deleted: &[String]) -> Result<Value, Failure> {
    let size = |file: &Listed| usize::try_from(file.bytes).unwrap_or(usize::MAX);
    let (read, unread): (Vec<_>, Vec<_>) =
        files.list.iter().partition(|file| is_read(&file.path, size(file)));
    bounded(read.iter().map(|file| file.bytes), MAX_READ, "the texts of a theme that is checked")?;
    let mut base = CheckedTheme::default();
    for file in read {
        base.add(&file.path, &files.read(file)?, Some(&Oxc));
    }
    for file in unread {
        base.add_unread(file.path.clone(), size(file));
    }
    if overlay.is_none() && deleted.is_empty() {
        return value(&CheckAnswer::of(base.findings(), &base));
    }
    let changes = overlay.map_or(Ok(Vec::new()), changes)?;
    let changed = base.changed(changes, deleted, Some(&Oxc));
    value(&CheckAnswer::of(changed.added_since(&base), &changed))
}

fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// The answer as it would come from the server. (`to_value` would make other numbers of those with single precision.)
fn value(answer: &impl serde::Serialize) -> Result<Value, Failure> {
    let read = serde_json::to_vec(answer).and_then(|text| serde_json::from_slice(&text));
    read.map_err(|error| Failure::Message(error.to_string()))
}
