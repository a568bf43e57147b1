//! Measures what a process keeps of the theme in a folder, and how long one edit of the kept theme takes.
//!
//! `kept THEME FILES ROUNDS` adds copies of the theme's files under other names until there are FILES files. With 0, there are no copies.
//! It prints the bytes of the heap that the checked theme and the search index hold, and for each edit the least and the median time of
//! ROUNDS rounds.

use std::alloc::System;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use cap::Cap;
use theme::ThemeIndex;
use theme::check::CheckedTheme;
use theme_edit::{Call, Draft, Linter, Tree};
use theme_scripts::Oxc;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// The files whose edits are measured.
const EDITED: [&str; 8] = [
    "snippets/card-product.liquid",
    "sections/header.liquid",
    "layout/theme.liquid",
    "templates/index.json",
    "locales/de.json",
    "locales/en.default.json",
    "assets/base.css",
    "assets/global.js",
];

type Files = Vec<(String, Vec<u8>)>;

fn list(folder: &Path, inside: &str, files: &mut Files) {
    for entry in std::fs::read_dir(folder.join(inside)).expect("a folder") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("UTF-8");
        if name.starts_with('.') || name == "node_modules" {
            continue;
        }
        let path = if inside.is_empty() { name } else { format!("{inside}/{name}") };
        if entry.file_type().expect("a kind").is_dir() {
            list(folder, &path, files);
        } else if path.contains('/') {
            files.push((path, std::fs::read(entry.path()).expect("a file")));
        }
    }
}

/// Adds copies under other names. A copied default locale is a locale as the others are.
fn grow(files: &mut Files, count: usize) {
    let own = files.len();
    for number in 0..count.saturating_sub(own) {
        let (path, bytes) = &files[number % own];
        let (folder, name) = path.rsplit_once('/').expect("a folder");
        let copied = format!("{folder}/copy{}-{}", number / own, name.replace(".default.", "."));
        files.push((copied, bytes.clone()));
    }
}

fn held<T>(what: &str, build: impl FnOnce() -> T) -> T {
    let before = ALLOCATOR.allocated();
    let built = build();
    let bytes = ALLOCATOR.allocated().saturating_sub(before);
    println!("{what}: holds {:.1} MB", bytes as f64 / 1e6);
    built
}

fn timed<T>(rounds: usize, what: &str, mut work: impl FnMut() -> T) {
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..rounds {
        let started = Instant::now();
        black_box(work());
        times.push(started.elapsed());
    }
    times.sort_unstable();
    println!("{what}: least {:?}, median {:?}", times[0], times[times.len() / 2]);
}

/// The call that adds a line to the end of a file.
fn longer(path: &str, text: &[u8], number: usize) -> Call {
    let text = String::from_utf8_lossy(text);
    let more = match path.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "json" => " ".repeat(number) + "\n",
        "js" | "css" => format!("\n/* {number} */\n"),
        _ => format!("\n<p>{number}</p>\n"),
    };
    Call::WriteFile {
        path: path.to_owned(),
        version: None,
        content: format!("{text}{more}"),
        allow_shrink: Vec::new(),
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |at: usize| arguments.get(at).and_then(|number| number.parse::<usize>().ok()).unwrap_or_default();
    let folder = Path::new(arguments.first().expect("the folder of a theme"));
    let (count, rounds) = (number(1), number(2).max(1));
    let mut files = Files::new();
    list(folder, "", &mut files);
    files.sort();
    grow(&mut files, count);
    let bytes: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
    println!("{} files, {:.1} MB", files.len(), bytes as f64 / 1e6);
    for (folder, part) in ["assets", "config", "layout", "locales", "sections", "snippets", "templates"]
        .map(|folder| (folder, files.iter().filter(move |(path, _)| path.starts_with(folder))))
    {
        let bytes: usize = part.clone().map(|(_, bytes)| bytes.len()).sum();
        let what = format!("a checked theme of {folder}, {:.1} MB", bytes as f64 / 1e6);
        held(&what, || CheckedTheme::read(part.map(|(path, bytes)| (path, bytes)), Some(&Oxc)));
    }
    let theme = held("the checked theme", || {
        CheckedTheme::read(files.iter().map(|(path, bytes)| (path, bytes)), Some(&Oxc))
    });
    held("its first findings", || drop(theme.findings()));
    held("the index", || {
        ThemeIndex::build(files.iter().map(|(path, bytes)| (path, bytes))).expect("an index")
    });
    println!("{} findings", theme.findings().len());
    timed(rounds, "the findings of a kept theme", || theme.findings());
    let tree: Tree = files.iter().map(|(path, bytes)| (path.clone(), bytes.clone())).collect();
    let mut edits = 0_usize;
    for path in EDITED {
        let Some((_, text)) = files.iter().find(|(known, _)| known == path) else { continue };
        let mut changed = || {
            edits += 1;
            let mut bytes = text.clone();
            bytes.resize(bytes.len() + edits, b'\n');
            theme.changed([(path, bytes)], &[], Some(&Oxc))
        };
        timed(rounds, &format!("{path}: changed"), &mut changed);
        timed(rounds, &format!("{path}: changed and its findings"), || changed().findings());
        timed(rounds, &format!("{path}: changed and what it adds"), || changed().added_since(&theme));
        let mut draft = Draft::new("run", tree.clone());
        draft.note_seen(path);
        let mut before = theme.clone();
        let mut times: Vec<Duration> = Vec::new();
        for round in 0..rounds {
            let outcome = draft.apply(&longer(path, text, round)).expect("an edit");
            let started = Instant::now();
            let mut linter = Linter::over(before, Some(&Oxc));
            let lint = linter.after(&draft, &outcome);
            times.push(started.elapsed());
            black_box(lint);
            before = linter.theme().clone();
        }
        times.sort_unstable();
        println!("{path}: a lint, least {:?}, median {:?}", times[0], times[times.len() / 2]);
    }
}
