//! The theme of a folder: the index and the checks of the platform, without a server.
//!
//! Links are not followed, because one could lead out of the folder or in a circle. Hidden files and `node_modules` are left out.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::mem::ManuallyDrop;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use fs_err as fs;
use serde_json::Value;
use theme::ThemeIndex;
use theme::answers::{
    CheckAnswer, DEFAULT_TARGETS, Findings, LookupAnswer, MAX_READ, MAX_REQUEST, Neighbours, RepoMapAnswer,
    Source,
};
use theme::archive::theme_paths;
use theme::check::{CheckedFile, CheckedTheme, Surroundings, is_read};
use theme::fix::{Also, How, Mender};
use theme::index::MAX_THEME_BYTES;
use theme::path::check_path;
use theme_scripts::Oxc;

use super::super::values::counted;
use super::fixes;
use super::listed::{Listed, bounded};
use crate::Failure;
use crate::args::ThemeCommand;
use crate::output;

/// The most threads that read files.
const MAX_THREADS: usize = 8;

/// The most bytes of a file beside the theme that is read for signs of tools.
const MAX_SIGNS: u64 = 256 * 1024;

/// The most files that are listed. A folder with more of them is not that of a theme.
const MAX_LISTED: usize = 50_000;

/// Answers from the files of a folder, in the shape of the server's answers, and says in which folder the theme is.
///
/// # Errors
/// If the folder can't be read, or has no theme.
pub fn ask(folder: &Path, command: &ThemeCommand) -> Result<(Value, PathBuf), Failure> {
    let answer = match command {
        ThemeCommand::Check { overlay, deleted, limit, .. } => {
            let (files, within) = theme(folder)?;
            let most = if *limit == 0 { usize::MAX } else { *limit as usize };
            let around = surroundings(folder, &within, &files)?;
            return Ok((check(&files, around, overlay.as_deref(), deleted, most)?, folder.join(within)));
        }
        ThemeCommand::Fix { files, as_meant, also, write, .. } => {
            let (found, within) = theme(folder)?;
            let how = if *as_meant { How::AsMeant } else { How::AsShown };
            let also = also.iter().filter_map(|name| Also::of(name)).collect();
            let mender = Mender::new(how).also(also);
            return Ok((fixes::fix(&found, files, mender, *write)?, folder.join(within)));
        }
        ThemeCommand::Lookup { request, active, .. } => {
            check_request(request, 1)?;
            let index = index(folder)?;
            let started = Instant::now();
            let answer = LookupAnswer::of(&index, Source::Scout, request, active.as_deref(), DEFAULT_TARGETS);
            value(&LookupAnswer { took_us: micros(started), ..answer })
        }
        ThemeCommand::Map { request, active, tokens, .. } => {
            let (request, active) = (request.as_deref(), active.as_deref());
            check_request(request.unwrap_or_default(), 0)?;
            let index = index(folder)?;
            let started = Instant::now();
            let answer = RepoMapAnswer::of(&index, Source::Scout, request, active, *tokens as usize);
            value(&RepoMapAnswer { took_us: micros(started), ..answer })
        }
        ThemeCommand::Graph { file: Some(file), .. } => match Neighbours::of(&index(folder)?, file) {
            Some(neighbours) => value(&neighbours),
            None => Err(Failure::Message(format!("the theme has no file {file}"))),
        },
        ThemeCommand::Graph { file: None, .. } => value(&Findings::of(&index(folder)?)),
    };
    Ok((answer?, folder.to_owned()))
}

/// The limits of the server.
fn check_request(request: &str, least: usize) -> Result<(), Failure> {
    let length = request.chars().count();
    if length > MAX_REQUEST || request.trim().chars().count() < least {
        let message = format!("the request must have {least} to {MAX_REQUEST} characters, has {length}");
        return Err(Failure::Message(message));
    }
    Ok(())
}

fn refused(folder: &Path, why: &str) -> Failure {
    Failure::Message(format!("{} {why}", output::shown(folder)))
}

fn check_paths(folder: &Path, files: &[Listed]) -> Result<(), Failure> {
    files.iter().try_for_each(|file| {
        let refused = |error| refused(folder, &format!("has the file {}: {error}", file.path));
        check_path(&file.path).map_err(refused)
    })
}

/// The theme of a folder, and the folder within it where the theme is, as in an archive.
fn theme(folder: &Path) -> Result<(Vec<Listed>, String), Failure> {
    if !folder.is_dir() {
        let ids = "`default`, or `prj_` and 32 lower-case hexadecimal digits";
        return Err(refused(folder, &format!("is neither a folder nor the id of a project ({ids})")));
    }
    let found = list(folder)?;
    let entries: Vec<&str> = found.iter().map(|file| file.path.as_str()).collect();
    let paths = theme_paths(&entries).map_err(|error| refused(folder, &error.to_string()))?;
    let paths: Vec<Option<String>> = paths.into_iter().map(|path| path.map(str::to_owned)).collect();
    let (mut files, mut within) = (Vec::new(), String::new());
    for (file, path) in found.into_iter().zip(paths) {
        if let Some(path) = path {
            within = file.path[..file.path.len() - path.len()].to_owned();
            files.push(Listed { path, ..file });
        }
    }
    if !within.is_empty() {
        output::note(&format!("the theme is in {within}"));
    }
    check_paths(folder, &files)?;
    Ok((files, within))
}

/// The files of a change of a theme, with their paths in the theme. None without a folder.
///
/// # Errors
/// If the folder can't be read, if a file is in the change twice, or if nothing is changed: the folder has no files, and no file is deleted.
pub fn changes(folder: Option<&Path>, deleted: &[String]) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let files = folder.map_or(Ok(Vec::new()), |folder| overlay(folder, deleted))?;
    // The rules of the server.
    let mut seen: HashSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    for path in deleted {
        check_path(path).map_err(|error| Failure::Message(format!("--deleted {path}: {error}")))?;
        if !seen.insert(path) {
            return Err(Failure::Message(format!("--deleted {path}: the file is in the change twice")));
        }
    }
    files.into_iter().map(|file| Ok((file.path.clone(), file.read()?))).collect()
}

fn overlay(folder: &Path, deleted: &[String]) -> Result<Vec<Listed>, Failure> {
    if !folder.is_dir() {
        return Err(refused(folder, "is not a folder"));
    }
    let files = list(folder)?;
    if files.is_empty() && deleted.is_empty() {
        return Err(refused(folder, "has no files, and nothing is deleted"));
    }
    check_paths(folder, &files)?;
    bounded(&files, MAX_READ, "a change")?;
    Ok(files)
}

/// The visible files of a folder, sorted by path.
fn list(folder: &Path) -> Result<Vec<Listed>, Failure> {
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
                files.push(Listed { path, file: entry.path(), bytes: entry.metadata()?.len() });
            } else {
                left_out += 1;
            }
            if files.len() + folders.len() > MAX_LISTED {
                let why = format!("has more than {MAX_LISTED} files; name the folder of a theme");
                return Err(refused(folder, &why));
            }
        }
    }
    if left_out > 0 {
        let what = counted(left_out, "entry is", "entries are");
        output::note(&format!("{what} left out: links, special files, and names that are not UTF-8"));
    }
    files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn index(folder: &Path) -> Result<ThemeIndex, Failure> {
    let (files, _) = theme(folder)?;
    bounded(&files, MAX_THEME_BYTES as u64, "a theme")?;
    let mut contents = Vec::new();
    for file in &files {
        contents.push((file.path.as_str(), file.read()?));
    }
    ThemeIndex::build(contents).map_err(|error| Failure::Message(format!("can't index the theme: {error}")))
}

/// What the folder, and the one of the theme within it, say of files that a tool makes.
fn surroundings(folder: &Path, within: &str, files: &[Listed]) -> Result<Surroundings, Failure> {
    let mut names: Vec<String> = files.iter().map(|file| file.path.clone()).collect();
    let (mut package, mut ignored) = (None, String::new());
    let inner = (!within.is_empty()).then(|| folder.join(within));
    for folder in std::iter::once(folder).chain(inner.as_deref()) {
        for entry in fs::read_dir(folder)? {
            names.extend(entry?.file_name().into_string().ok());
        }
        package = small_text(&folder.join("package.json")).or(package);
        ignored.extend(small_text(&folder.join(".gitignore")));
        ignored.push('\n');
    }
    Ok(Surroundings::of(names.iter().map(String::as_str), package.as_deref(), Some(&ignored)))
}

/// The text of a file, unless it can't be read, is a link, or is large. It only gives signs.
fn small_text(file: &Path) -> Option<String> {
    let found = fs::symlink_metadata(file).ok()?;
    if !found.is_file() || found.len() > MAX_SIGNS {
        return None;
    }
    fs::read_to_string(file).ok()
}

fn check(
    files: &[Listed],
    around: Surroundings,
    overlay: Option<&Path>,
    deleted: &[String],
    most: usize,
) -> Result<Value, Failure> {
    let (mut read, unread): (Vec<_>, Vec<_>) = files.iter().partition(|file| is_read(&file.path, file.bytes));
    bounded(read.iter().copied(), MAX_READ, "the texts of a theme that is checked")?;
    // The largest first, so that no thread begins a long one when the others have ended.
    read.sort_by_key(|file| Reverse(file.bytes));
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS);
    let mut base = CheckedTheme::read_on(threads, &read, |file| {
        let bytes = file.read()?;
        Ok::<_, Failure>((file.path.clone(), CheckedFile::read(&file.path, &bytes, Some(&Oxc))))
    })?;
    for file in unread {
        base.add_unread(file.path.clone(), file.bytes);
    }
    base.set_surroundings(around);
    // The process ends soon. To give back each part of the theme before would take a tenth of the time.
    let base = ManuallyDrop::new(base);
    if overlay.is_none() && deleted.is_empty() {
        return value(&CheckAnswer::up_to(base.findings(), &base, most));
    }
    let changes = changes(overlay, deleted)?;
    let changed = base.changed(changes, deleted, Some(&Oxc));
    value(&CheckAnswer::up_to(changed.added_since(&base), &changed, most))
}

fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// The answer as it would come from the server. (`to_value` would make other numbers of those with single precision.)
fn value(answer: &impl serde::Serialize) -> Result<Value, Failure> {
    let read = serde_json::to_vec(answer).and_then(|text| serde_json::from_slice(&text));
    read.map_err(|error| Failure::Message(error.to_string()))
}
