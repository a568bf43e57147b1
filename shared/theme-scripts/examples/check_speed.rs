//! Measures the checks of the theme in a folder.
//!
//! `check_speed THEME` reads and checks the folder once, as `lamplighter theme check` does, and prints the findings as JSON.
//! `check_speed THEME ROUNDS` prints how long each part takes: the least and the median of so many rounds. `check_speed THEME ROUNDS PATH...`
//! measures edits of these files, not of some of Dawn's.

use std::convert::Infallible;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::time::{Duration, Instant};

use theme::answers::CheckAnswer;
use theme::check::{CheckedFile, CheckedTheme, Surroundings, is_read};
use theme_scripts::Oxc;

/// The files whose edits are measured, if no others are named.
const DAWN: [&str; 5] = [
    "snippets/card-product.liquid",
    "sections/header.liquid",
    "locales/de.json",
    "assets/base.css",
    "assets/global.js",
];

fn list(folder: &Path, inside: &str, files: &mut Vec<(String, Vec<u8>)>) {
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

fn read_on(threads: usize, files: &[(String, Vec<u8>)]) -> CheckedTheme {
    let mut order: Vec<&(String, Vec<u8>)> = files.iter().collect();
    order.sort_by_key(|(_, bytes)| std::cmp::Reverse(bytes.len()));
    let read = |(path, bytes): &&(String, Vec<u8>)| {
        let size = bytes.len() as u64;
        let file = if is_read(path, size) {
            CheckedFile::read(path, bytes, Some(&Oxc))
        } else {
            CheckedFile::unread(path, size)
        };
        Ok::<_, Infallible>((path.clone(), file))
    };
    match CheckedTheme::read_on(threads, &order, read) {
        Ok(theme) => theme,
        Err(never) => match never {},
    }
}

fn read(files: &[(String, Vec<u8>)]) -> CheckedTheme {
    read_on(1, files)
}

fn timed<T>(rounds: usize, what: &str, mut work: impl FnMut() -> T) {
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..rounds {
        let started = Instant::now();
        std::hint::black_box(work());
        times.push(started.elapsed());
    }
    times.sort_unstable();
    println!("{what}: least {:?}, median {:?}", times[0], times[times.len() / 2]);
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let folder = Path::new(arguments.first().expect("the folder of a theme"));
    let mut files = Vec::new();
    list(folder, "", &mut files);
    files.sort();
    let Some(rounds) = arguments.get(1).and_then(|rounds| rounds.parse().ok()) else {
        // As the command does, it leaves it to the end of the process to give the memory back.
        let mut theme = ManuallyDrop::new(read_on(2, &files));
        let text = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
        let root = std::fs::read_dir(folder).expect("a folder").filter_map(Result::ok);
        let mut names: Vec<String> = root.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.extend(files.iter().map(|(path, _)| path.clone()));
        let (package, ignored) = (text("package.json"), text(".gitignore"));
        let names = names.iter().map(String::as_str);
        theme.set_surroundings(Surroundings::of(names, package.as_deref(), ignored.as_deref()));
        let answer = CheckAnswer::of(theme.findings(), &theme);
        println!("{}", serde_json::to_string_pretty(&answer).expect("JSON"));
        return;
    };
    timed(rounds, "read and check", || read(&files).findings());
    timed(rounds, "read and check on two threads", || read_on(2, &files).findings());
    timed(rounds, "read", || read(&files));
    for ext in [".js", ".css", ".json", ".liquid"] {
        let part: Vec<_> = files.iter().filter(|(path, _)| path.ends_with(ext)).cloned().collect();
        let bytes: usize = part.iter().map(|(_, bytes)| bytes.len()).sum();
        timed(rounds, &format!("read {} {ext}, {bytes} bytes", part.len()), || read(&part));
    }
    let theme = read(&files);
    timed(rounds, "compare", || theme.findings());
    // One edit of a theme that is in memory: the whole result, and what the edit adds.
    let named: Vec<&str> = arguments.iter().skip(2).map(String::as_str).collect();
    for changed in if named.is_empty() { &DAWN[..] } else { &named } {
        let Some((path, bytes)) = files.iter().find(|(path, _)| path == changed) else { continue };
        let mut edits = 0_usize;
        timed(rounds, &format!("one edit of {path}"), || {
            edits += 1;
            let mut bytes = bytes.clone();
            bytes.resize(bytes.len() + edits, b'\n');
            theme.changed([(path, bytes)], &[], Some(&Oxc)).findings()
        });
    }
}
