//! Makes the same real edits with this crate and with other programs, and compares the results byte by byte.
//!
//! ```text
//! git clone https://github.com/Shopify/dawn
//! python3 -m venv venv && venv/bin/pip install aider-chat==0.86.2
//! npm install diff@9.0.0 @openai/codex@0.171.0
//! ln -s "$PWD"/node_modules/@openai/codex-linux-x64/vendor/*/bin/codex apply_patch
//! cargo run --release -p theme-edit --example peers -- dawn --python venv/bin/python --node . --codex ./apply_patch
//! ```
//!
//! An edit is what one commit changed in one file. Each program gets it in its own form: replacements (this crate, aider), a patch of
//! Codex, or a unified diff (git, jsdiff). All forms are made from the same blocks of lines, once with three lines around each change
//! and once bare; a bare insertion has the line above it. The edits are written with LF and end with a newline, as models write them.
//!
//! Runs: the files as they are; with CRLF; without a final newline; and diffs whose line numbers are 10 too small, as if somebody had
//! added ten lines above. Left out are edits that change line ends, the final newline or a byte order mark, which only a diff can say.
//! `--only` takes one of `plain`, `CRLF`, `no newline` and `shift`; `--limit` the number of edits; `--show` how many wrong and refused
//! edits of each row are told.
//!
//! Columns:
//! - equal: the bytes of the commit
//! - wrong: it reports success, and the text is another one
//! - ends: it reports success, and line ends or newlines at the file's end differ, nothing else
//! - refused, one place: each block stands in the file once, or as often as it is given, so the edit is clear
//! - refused, several: a block stands in the file more often than it is given
//! - half: it reports a failure, and the file has changed all the same. Such edits are counted as refused, too
//! - ms: the median and the 95th and 99th percentiles of the edits that it did. Of a function, the best of three runs counts,
//!   because other programs run at the same time. What they include:
//!   - ours, function: from the call's JSON to the new bytes, with all guards, the SHA-256 of the new bytes, and the entry of the
//!     journal with the bytes that undo needs. The draft has the file already, as jsdiff has its text
//!   - ours, with the file: the same, and before it a draft is made from the file's bytes, with their copy and their SHA-256. A
//!     caller does this once for each file that it loads
//!   - aider, function: `do_replace`, text to text; with the file: `apply_edits`, which reads the file and writes it
//!   - jsdiff, function: `applyPatch`, text and diff to text
//!   - git and Codex, process: from the start of a process to its end; it reads the file and writes it
//!
//! The programs take turns with each edit, so that what else runs on the machine slows all of them alike.
//!
//! Of the newest 1,500 edits of Dawn (`--only plain --limit 1500`, profile `bench`, two busy processors of a shared machine), this crate
//! takes less time than jsdiff 9.0.0 in all four forms, in the median and at the 95th percentile. At the 99th, jsdiff takes less in
//! three of them. It makes no check, no version and no journal. Median / p95 / p99 in microseconds, in one run:
//!
//! ```text
//!                        three lines around    bare lines
//! search_replace           26.7 / 136 / 314     22.0 / 104 / 157
//!   with the file          37.2 / 178 / 355     32.1 / 151 / 206
//! edit_lines               25.9 / 126 / 264     23.5 / 114 / 221
//!   with the file          36.2 / 169 / 314     34.1 / 160 / 247
//! jsdiff                   29.7 / 172 / 213     27.4 / 160 / 205
//! ```

#![expect(clippy::disallowed_methods, reason = "an example reads files and measures time")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use serde::Deserialize;
use serde_json::json;
use theme::text::LineRange;
use theme_edit::diff::{Hunk, hunks};
use theme_edit::{Call, Draft, LineEdit, Replacement, Tree};

/// What one commit did to one file.
struct Edit {
    path: String,
    before: String,
    after: String,
}

/// Lines that are replaced together: their changes, and lines around them.
struct Block {
    old: Range<usize>,
    new: Range<usize>,
    hunks: Vec<Hunk>,
}

/// An edit, ready for one run.
struct Case<'a> {
    path: &'a str,
    before: String,
    after: String,
    blocks: Vec<Block>,
    is_bare: bool,
    /// Whether each block has one place in the file, or the same block is given for each of several places.
    is_clear: bool,
}

struct Answer {
    is_ok: bool,
    text: Vec<u8>,
    milliseconds: Vec<f64>,
    why: String,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut options: BTreeMap<String, String> = BTreeMap::new();
    let mut repository = None;
    while let Some(argument) = arguments.next() {
        match argument.strip_prefix("--") {
            Some(name) => {
                options.insert(name.to_owned(), arguments.next().unwrap_or_default());
            }
            None => repository = Some(PathBuf::from(argument)),
        }
    }
    let repository = repository.expect("the first argument is a clone of Dawn");
    let limit = options.get("limit").map_or(usize::MAX, |limit| limit.parse().expect("a number"));
    let show: usize = options.get("show").map_or(0, |show| show.parse().expect("a number"));

    let (edits, left_out) = history(&repository, limit);
    println!(
        "{} edits, from the newest; {left_out} left out, because only a diff can say them.",
        edits.len()
    );

    let mut peers = peers(&options);
    println!("An empty process takes {:.2} ms (median of 200).", empty_process());
    for (variant, around) in [
        ("plain", 3),
        ("plain", 0),
        ("CRLF", 3),
        ("CRLF", 0),
        ("no newline", 3),
        ("no newline", 0),
        ("shift", 3),
    ] {
        if options.get("only").is_some_and(|only| only != variant) {
            continue;
        }
        let cases: Vec<Case> = edits.iter().filter_map(|edit| case(edit, variant, around)).collect();
        let blocks: usize = cases.iter().map(|case| case.blocks.len()).sum();
        let clear = cases.iter().filter(|case| case.is_clear).count();
        let form = if around == 0 { "bare lines" } else { "three lines around" };
        let files = match variant {
            "CRLF" => "CRLF files",
            "no newline" => "files without a final newline",
            "shift" => "line numbers 10 too small",
            _ => "files as they are",
        };
        println!("\n{files}, {form}: {} edits, {blocks} blocks; {clear} edits are clear", cases.len());
        println!(
            "{:<22} {:>6} {:>6} {:>5} {:>11} {:>9} {:>5}   ms (median / p95 / p99)",
            "", "equal", "wrong", "ends", "refused one", "several", "half"
        );
        let shift = if variant == "shift" { 10 } else { 0 };
        let takes_part = |peer: &&mut Peer| variant != "shift" || peer.has_line_numbers();
        let mut rows: Vec<(&mut Peer, Counts)> =
            peers.iter_mut().filter(takes_part).map(|peer| (peer, Counts::default())).collect();
        for case in &cases {
            for (peer, counts) in &mut rows {
                let answer = peer.run(case, shift);
                counts.count(case, answer, &peer.name(), show);
            }
        }
        for (peer, counts) in rows {
            println!("{}", counts.row(&peer.name(), peer.times()));
        }
    }
}

// The edits.

/// The changed text files of all commits but merges, from the newest. Locale files are left out: each commit changes fifty of them in
/// the same way. The second result is how many edits have no form as replacement.
fn history(repository: &Path, limit: usize) -> (Vec<Edit>, usize) {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.arg("-C").arg(repository).args(arguments);
        command
    };
    let listed = git(&[
        "log",
        "--no-merges",
        "--raw",
        "--no-abbrev",
        "--no-renames",
        "--diff-filter=M",
        "--format=",
        "--",
        "assets",
        "config",
        "layout",
        "sections",
        "snippets",
        "templates",
    ])
    .output()
    .expect("git log");
    assert!(listed.status.success(), "git log: {}", String::from_utf8_lossy(&listed.stderr));
    let mut reader = git(&["cat-file", "--batch"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("git cat-file");
    let mut asks = reader.stdin.take().expect("a pipe");
    let mut answers = BufReader::new(reader.stdout.take().expect("a pipe"));
    let mut text_of = |id: &str| -> Option<String> {
        writeln!(asks, "{id}").expect("git cat-file");
        let mut head = String::new();
        answers.read_line(&mut head).expect("git cat-file");
        let size: usize = head.trim().rsplit_once(' ')?.1.parse().ok()?;
        let mut bytes = vec![0; size + 1];
        std::io::Read::read_exact(&mut answers, &mut bytes).expect("git cat-file");
        bytes.pop();
        String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
    };
    let (mut edits, mut left_out) = (Vec::new(), 0);
    for line in String::from_utf8_lossy(&listed.stdout).lines() {
        let Some((head, path)) = line.split_once('\t') else { continue };
        let ids: Vec<&str> = head.split(' ').collect();
        let (Some(before), Some(after)) = (text_of(ids[2]), text_of(ids[3])) else { continue };
        if before == after || before.is_empty() || after.is_empty() {
            continue;
        }
        let has_mark = |text: &str| text.starts_with('\u{feff}');
        if before.ends_with('\n') != after.ends_with('\n')
            || before.contains('\r') != after.contains('\r')
            || has_mark(&before) != has_mark(&after)
        {
            left_out += 1;
            continue;
        }
        edits.push(Edit { path: path.to_owned(), before, after });
        if edits.len() == limit {
            break;
        }
    }
    drop(asks);
    let _ = reader.wait();
    (edits, left_out)
}

fn lines_of(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn case<'a>(edit: &'a Edit, variant: &str, around: usize) -> Option<Case<'a>> {
    let change = |text: &str| match variant {
        "CRLF" => text.replace('\n', "\r\n"),
        "no newline" => text.strip_suffix('\n').unwrap_or(text).to_owned(),
        _ => text.to_owned(),
    };
    // A file that ends with empty lines has a final newline also without its last one.
    let is_plain = |text: &str| !text.contains('\r') && text.ends_with('\n') && !text.ends_with("\n\n");
    if matches!(variant, "CRLF" | "no newline") && !(is_plain(&edit.before) && is_plain(&edit.after)) {
        return None;
    }
    let (before, after) = (change(&edit.before), change(&edit.after));
    let (olds, news) = (lines_of(&before), lines_of(&after));
    let blocks = blocks(&olds, &news, around);
    if blocks.is_empty() {
        return None;
    }
    // The last line counts as equal to another one, though it may lack the newline.
    let bare: Vec<&str> = olds.iter().map(|line| line.strip_suffix('\n').unwrap_or(line)).collect();
    let is_clear = blocks.iter().all(|block| {
        let (wanted, new) = (&bare[block.old.clone()], &news[block.new.clone()]);
        let is_same = |other: &&Block| &bare[other.old.clone()] == wanted && &news[other.new.clone()] == new;
        let places = bare.windows(wanted.len()).filter(|lines| lines == &wanted).count();
        places == blocks.iter().filter(is_same).count()
    });
    Some(Case { path: &edit.path, blocks, is_bare: around == 0, is_clear, before, after })
}

/// The changes with lines around them. A bare insertion takes the line above it, or at the beginning the line below. Blocks that touch
/// are joined.
fn blocks(olds: &[&str], news: &[&str], around: usize) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for hunk in hunks(olds, news) {
        let is_bare_insertion = around == 0 && hunk.old.is_empty();
        let above = if is_bare_insertion { 1 } else { around }.min(hunk.old.start);
        let below =
            if is_bare_insertion && above == 1 { 0 } else { around.max(usize::from(is_bare_insertion)) };
        let below = below.min(olds.len() - hunk.old.end);
        let (old, new) =
            (hunk.old.start - above..hunk.old.end + below, hunk.new.start - above..hunk.new.end + below);
        match blocks.last_mut() {
            Some(last) if old.start < last.old.end || (around > 0 && old.start == last.old.end) => {
                (last.old.end, last.new.end) = (old.end, new.end);
                last.hunks.push(hunk);
            }
            _ => blocks.push(Block { old, new, hunks: vec![hunk] }),
        }
    }
    blocks
}

// The forms of an edit.

/// Lines as a model writes them: with LF, and one at the end.
fn written(lines: &[&str]) -> String {
    let mut text = lines.concat().replace("\r\n", "\n");
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Calls `line` for each line of a block with its sign: those that stay, those that go and those that come.
fn each_line<'a>(block: &Block, olds: &[&'a str], news: &[&'a str], mut line: impl FnMut(char, &'a str)) {
    let mut at = block.old.start;
    for hunk in &block.hunks {
        olds[at..hunk.old.start].iter().for_each(|text| line(' ', text));
        olds[hunk.old.clone()].iter().for_each(|text| line('-', text));
        news[hunk.new.clone()].iter().for_each(|text| line('+', text));
        at = hunk.old.end;
    }
    olds[at..block.old.end].iter().for_each(|text| line(' ', text));
}

fn replacements(case: &Case) -> Vec<Replacement> {
    let (olds, news) = (lines_of(&case.before), lines_of(&case.after));
    let replacement = |block: &Block| Replacement {
        old: written(&olds[block.old.clone()]),
        new: written(&news[block.new.clone()]),
        expected_matches: None,
    };
    case.blocks.iter().map(replacement).collect()
}

fn search_replace_blocks(case: &Case) -> String {
    let mut text = String::new();
    for Replacement { old, new, .. } in replacements(case) {
        let path = case.path;
        text.push_str(&format!("{path}\n```\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n```\n\n"));
    }
    text
}

fn codex_patch(case: &Case) -> String {
    let (olds, news) = (lines_of(&case.before), lines_of(&case.after));
    let mut text = format!("*** Begin Patch\n*** Update File: {}\n", case.path);
    for block in &case.blocks {
        text.push_str("@@\n");
        each_line(block, &olds, &news, |sign, line| {
            text.push(sign);
            text.push_str(&written(&[line]));
        });
    }
    text.push_str("*** End Patch\n");
    text
}

/// A unified diff with LF. A last line without a newline is marked, as the format wants it.
fn unified_diff(case: &Case, shift: usize) -> String {
    let (olds, news) = (lines_of(&case.before), lines_of(&case.after));
    let mut text = format!("--- a/{0}\n+++ b/{0}\n", case.path);
    let range = |lines: &Range<usize>| {
        let first = if lines.is_empty() { lines.start } else { lines.start + 1 };
        format!("{},{}", first.saturating_sub(shift).max(1), lines.len())
    };
    for block in &case.blocks {
        text.push_str(&format!("@@ -{} +{} @@\n", range(&block.old), range(&block.new)));
        each_line(block, &olds, &news, |sign, line| {
            text.push(sign);
            text.push_str(&written(&[line]));
            if !line.ends_with('\n') {
                text.push_str("\\ No newline at end of file\n");
            }
        });
    }
    text
}

// The programs.

enum Peer {
    Ours,
    OursByLines,
    Script { name: String, with_file: bool, child: Child, asks: ChildStdin, answers: BufReader<ChildStdout> },
    Git { name: String },
    Codex { name: String, binary: PathBuf },
}

/// What a script answers.
#[derive(Deserialize)]
struct Reply {
    ok: bool,
    text: String,
    nanoseconds: Option<f64>,
    with_file: Option<f64>,
    why: String,
}

fn peers(options: &BTreeMap<String, String>) -> Vec<Peer> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/peers");
    let mut peers = vec![Peer::Ours, Peer::OursByLines];
    let skipped = |name: &str, why: &str| println!("{name} is skipped: {why}");
    let mut script = |name: &str, option: &str, with_file: bool, command: &dyn Fn(&str) -> Command| {
        let Some(value) = options.get(option) else { return skipped(name, &format!("no --{option}")) };
        let mut command = command(value);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = match child {
            Ok(child) => child,
            Err(error) => return skipped(name, &error.to_string()),
        };
        let asks = child.stdin.take().expect("a pipe");
        let mut answers = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut head = String::new();
        let _ = answers.read_line(&mut head);
        let head: serde_json::Value = serde_json::from_str(&head).unwrap_or_default();
        match head["version"].as_str() {
            Some(version) => {
                peers.push(Peer::Script {
                    name: format!("{name} {version}"),
                    with_file,
                    child,
                    asks,
                    answers,
                });
            }
            None => skipped(name, head["missing"].as_str().unwrap_or("the script did not start")),
        }
    };
    script("aider-chat", "python", true, &|python| {
        let mut command = Command::new(python);
        command.arg(folder.join("run_aider.py")).env("PYTHONUTF8", "1");
        command
    });
    script("jsdiff", "node", false, &|modules| {
        let mut command = Command::new("node");
        command.arg(folder.join("run_jsdiff.mjs")).arg(std::path::absolute(modules).expect("a folder"));
        command
    });
    match Command::new("git").arg("--version").output() {
        Ok(output) => {
            let version = String::from_utf8_lossy(&output.stdout);
            let version = version.trim().trim_start_matches("git version ");
            peers.push(Peer::Git { name: format!("git apply {version}") });
        }
        Err(error) => skipped("git apply", &error.to_string()),
    }
    match options.get("codex").map(|binary| std::path::absolute(binary).expect("a path")) {
        None => skipped("Codex", "no --codex"),
        Some(binary) if !binary.ends_with("apply_patch") => {
            skipped("Codex", "its binary edits files only if it is started as `apply_patch`");
        }
        Some(binary) => {
            // Under its own name it says its version.
            let real = std::fs::canonicalize(&binary).unwrap_or_else(|_| binary.clone());
            match Command::new(real).arg("--version").output() {
                Ok(output) => {
                    let version = String::from_utf8_lossy(&output.stdout);
                    let version = version.trim().rsplit(' ').next().unwrap_or_default().to_owned();
                    peers.push(Peer::Codex { name: format!("apply_patch {version}"), binary });
                }
                Err(error) => skipped("Codex", &error.to_string()),
            }
        }
    }
    peers
}

impl Peer {
    fn name(&self) -> String {
        match self {
            Self::Ours => "ours, search_replace".to_owned(),
            Self::OursByLines => "ours, edit_lines".to_owned(),
            Self::Script { name, .. } | Self::Git { name } | Self::Codex { name, .. } => name.clone(),
        }
    }

    fn has_line_numbers(&self) -> bool {
        match self {
            Self::Ours | Self::Codex { .. } => false,
            Self::OursByLines | Self::Git { .. } => true,
            Self::Script { with_file, .. } => !with_file,
        }
    }

    /// What each time is about: see the head of this file.
    fn times(&self) -> &'static [&'static str] {
        match self {
            Self::Ours | Self::OursByLines | Self::Script { with_file: true, .. } => {
                &["function", "with the file"]
            }
            Self::Script { .. } => &["function"],
            Self::Git { .. } | Self::Codex { .. } => &["process"],
        }
    }

    fn run(&mut self, case: &Case, shift: usize) -> Answer {
        match self {
            Self::Ours => ours(
                case,
                &Call::SearchReplace {
                    path: case.path.to_owned(),
                    version: None,
                    replacements: replacements(case),
                    allow_shrink: vec![LineRange { start: 1, end: u32::MAX }],
                },
            ),
            Self::OursByLines => ours(case, &by_lines(case, shift)),
            Self::Script { with_file, asks, answers, .. } => {
                let edit = if *with_file { search_replace_blocks(case) } else { unified_diff(case, shift) };
                let ask = json!({"path": case.path, "before": case.before, "edit": edit});
                writeln!(asks, "{ask}").expect("the script reads");
                let mut line = String::new();
                answers.read_line(&mut line).expect("the script answers");
                let Reply { ok, text, nanoseconds, with_file, why } =
                    serde_json::from_str(&line).expect("an answer");
                let times = [nanoseconds, with_file].into_iter().flatten().map(|time| time / 1e6).collect();
                Answer { is_ok: ok, text: text.into_bytes(), milliseconds: times, why }
            }
            Self::Git { .. } => {
                let mut command = Command::new("git");
                command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").arg("apply");
                // git takes a diff without lines around only with this option.
                if case.is_bare {
                    command.arg("--unidiff-zero");
                }
                process(command, case, &unified_diff(case, shift))
            }
            Self::Codex { binary, .. } => process(Command::new(binary), case, &codex_patch(case)),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let Self::Script { child, .. } = self {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn ours(case: &Case, call: &Call) -> Answer {
    let json = serde_json::to_string(call).expect("a call");
    let once = || {
        let start = Instant::now();
        let files: Tree = [(case.path, case.before.as_bytes())].into_iter().collect();
        let mut draft = Draft::new("peers", files);
        draft.note_seen(case.path);
        let loaded = start.elapsed();
        let call: Call = serde_json::from_str(&json).expect("a call");
        let result = draft.apply(&call);
        let made = draft.file(case.path).and_then(|file| file.bytes.clone()).unwrap_or_default();
        let all = start.elapsed();
        ([all - loaded, all].map(|time| time.as_secs_f64() * 1e3), result, made)
    };
    let (mut best, result, made) = once();
    for _ in 0..2 {
        for (best, time) in best.iter_mut().zip(once().0) {
            *best = time.min(*best);
        }
    }
    let milliseconds = best.to_vec();
    let (is_ok, why) = match result {
        Ok(outcome) => (outcome.edit.is_some(), "already there".to_owned()),
        Err(error) => (false, error.to_string()),
    };
    Answer { is_ok, text: made.to_vec(), milliseconds, why }
}

/// The edit by line numbers, with the lines that the call believes to be there.
fn by_lines(case: &Case, shift: usize) -> Call {
    let (olds, news) = (lines_of(&case.before), lines_of(&case.after));
    let number = |line: usize| u32::try_from(line.saturating_sub(shift).max(1)).unwrap_or(u32::MAX);
    let edit = |block: &Block| LineEdit::Replace {
        start: number(block.old.start + 1),
        end: number(block.old.end),
        content: written(&news[block.new.clone()]),
        old: Some(written(&olds[block.old.clone()])),
    };
    Call::EditLines {
        path: case.path.to_owned(),
        version: None,
        edits: case.blocks.iter().map(edit).collect(),
        allow_shrink: vec![LineRange { start: 1, end: u32::MAX }],
    }
}

/// Runs a program in a new folder that has the file. It reads the edit from its input.
fn process(mut command: Command, case: &Case, edit: &str) -> Answer {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join(case.path);
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    std::fs::write(&file, &case.before).expect("a file");
    let start = Instant::now();
    let mut child = command
        .current_dir(folder.path())
        .env("GIT_CEILING_DIRECTORIES", folder.path().parent().expect("a folder"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    // It may refuse before it has read all.
    let _ = pipe.write_all(edit.as_bytes());
    drop(pipe);
    let output = child.wait_with_output().expect("the program ends");
    let milliseconds = vec![start.elapsed().as_secs_f64() * 1e3];
    let text = std::fs::read(&file).unwrap_or_default();
    let why = String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned();
    Answer { is_ok: output.status.success(), text, milliseconds, why }
}

/// What it takes to start a program that does nothing.
fn empty_process() -> f64 {
    let mut times: Vec<f64> = (0..200)
        .map(|_| {
            let start = Instant::now();
            let _ = Command::new("true").status();
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[100]
}

// The table.

#[derive(Default)]
struct Counts {
    equal: usize,
    wrong: usize,
    ends: usize,
    refused_one: usize,
    refused_several: usize,
    half: usize,
    times: Vec<Vec<f64>>,
    shown: usize,
}

impl Counts {
    fn count(&mut self, case: &Case, answer: Answer, name: &str, show: usize) {
        let Answer { is_ok, text, milliseconds, why } = answer;
        let mut tell = |kind: &str, why: &str| {
            if self.shown < show {
                self.shown += 1;
                eprintln!("{name}: {kind}: {} {why}", case.path);
            }
        };
        if !is_ok {
            if case.is_clear {
                self.refused_one += 1;
                tell("refused", &why);
            } else {
                self.refused_several += 1;
            }
            self.half += usize::from(text != case.before.as_bytes());
            return;
        }
        self.times.resize_with(milliseconds.len(), Vec::new);
        for (all, time) in self.times.iter_mut().zip(milliseconds) {
            all.push(time);
        }
        let without_ends = |bytes: &[u8]| {
            let bytes: Vec<u8> = bytes.iter().copied().filter(|&byte| byte != b'\r').collect();
            let len = bytes.iter().rposition(|&byte| byte != b'\n').map_or(0, |last| last + 1);
            bytes[..len].to_vec()
        };
        if text == case.after.as_bytes() {
            self.equal += 1;
        } else if without_ends(&text) == without_ends(case.after.as_bytes()) {
            self.ends += 1;
        } else {
            self.wrong += 1;
            tell("wrong", if case.is_clear { "though the edit is clear" } else { "" });
        }
    }

    fn row(mut self, name: &str, times: &[&str]) -> String {
        let mut row = format!(
            "{name:<22} {:>6} {:>6} {:>5} {:>11} {:>9} {:>5}",
            self.equal, self.wrong, self.ends, self.refused_one, self.refused_several, self.half
        );
        for (all, about) in self.times.iter_mut().zip(times) {
            all.sort_by(f64::total_cmp);
            let at = |share: f64| all[((all.len() - 1) as f64 * share) as usize];
            row.push_str(&format!("   {:.4} / {:.3} / {:.3} ({about})", at(0.5), at(0.95), at(0.99)));
        }
        row
    }
}
