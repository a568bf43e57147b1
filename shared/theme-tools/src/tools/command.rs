//! `run_command`: a few commands on the files of a theme, without a shell.

use theme::ThemeIndex;
use theme::path::{FileKind, check_path};

use super::diff;
use crate::answer::{Page, Report, short};
use crate::arguments::RunCommand;
use crate::error::ToolError;
use crate::needs::Needs;
use crate::outcome::{Grep, Outcome};
use crate::tree::Tree;

const DEFAULT_LINES: usize = 10;
const MAX_LINES: usize = 2_000;
const MAX_FILES: usize = 20;
/// The longest line of a file that is shown.
const MAX_LINE: usize = 600;

const WORKS: &str = "These work: ls [FOLDER]; cat FILE…; head [-n N] FILE…; tail [-n N] FILE…; wc [-l] FILE…; grep [-n -i -r -l -c] [-E | -F] PATTERN [FILE or FOLDER…]; find [FOLDER] [-name 'PATTERN'] [-type f]; diff FILE FILE; theme check [FILE]. One command at a time; no pipes, redirections, variables or substitutions.";

/// A command that was understood.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    pub action: Action,
    offset: usize,
    limit: usize,
}

/// What a command does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// `None` is the theme's root.
    Ls {
        folder: Option<String>,
    },
    Cat {
        paths: Vec<String>,
    },
    Head {
        lines: usize,
        paths: Vec<String>,
    },
    Tail {
        lines: usize,
        paths: Vec<String>,
    },
    Wc {
        lines_only: bool,
        paths: Vec<String>,
    },
    Grep(Grep),
    Find {
        folder: Option<String>,
        name: Option<String>,
    },
    Diff {
        left: String,
        right: String,
    },
    ThemeCheck {
        path: Option<String>,
    },
}

fn refused(problem: &str) -> ToolError {
    ToolError::Command(format!("{problem}. {WORKS}"))
}

/// A word, and whether any part of it was in quotes.
type Word = (String, bool);

/// Splits a command into words. Quotes hold a word together. What a shell would act on is refused.
fn words(command: &str) -> Result<Vec<Word>, ToolError> {
    let mut words: Vec<Word> = Vec::new();
    let mut word: Option<Word> = None;
    let mut quote = None;
    let mut chars = command.trim().chars();
    while let Some(c) = chars.next() {
        if matches!(c, '\0'..='\x08' | '\x0a'..='\x1f' | '\x7f') {
            return Err(refused("A command is one line without control characters"));
        }
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('"'), '$' | '`') => {
                return Err(refused("`$` and backquotes in double quotes do not work; use single quotes"));
            }
            (Some('"'), '\\') => {
                let next = chars.next().ok_or_else(|| refused("A backslash ends the command"))?;
                let (text, _) = word.get_or_insert_default();
                // As in a shell, other backslashes stay.
                if !matches!(next, '"' | '\\' | '$' | '`') {
                    text.push('\\');
                }
                text.push(next);
            }
            (Some(_), c) => word.get_or_insert_default().0.push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default().1 = true;
            }
            (None, '|') => return Err(refused("Pipes do not work")),
            (None, '<' | '>') => return Err(refused("Redirections do not work")),
            (None, ';' | '&') => return Err(refused("Only one command works at a time")),
            (None, '$' | '`') => return Err(refused("Variables and substitutions do not work")),
            (None, '(' | ')' | '{' | '}' | '!' | '#' | '~') => {
                return Err(refused(&format!("`{c}` does not work outside of quotes")));
            }
            (None, '\\') => {
                let next = chars.next().ok_or_else(|| refused("A backslash ends the command"))?;
                let word = word.get_or_insert_default();
                word.0.push(next);
                word.1 = true;
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c @ ('*' | '?' | '[' | ']')) => {
                let word = word.get_or_insert_default();
                word.0.push(c);
                // Only a pattern of `grep` or `find` may have it, and that is checked where it is known.
            }
            (None, c) => word.get_or_insert_default().0.push(c),
        }
    }
    if quote.is_some() {
        return Err(refused("A quote has no end"));
    }
    words.extend(word);
    Ok(words)
}

/// A path as the theme has it. `None` is the theme's root.
fn theme_path(word: &Word) -> Result<Option<String>, ToolError> {
    if word.0.contains(['*', '?', '[']) && !word.1 {
        return Err(refused("Patterns in file names work only as `find -name 'PATTERN'`"));
    }
    let path = word.0.strip_prefix("./").unwrap_or(&word.0).trim_end_matches('/');
    if matches!(path, "" | ".") {
        if word.0.starts_with('/') {
            return Err(refused("Paths begin within the theme"));
        }
        return Ok(None);
    }
    check_path(path)
        .map_err(|problem| refused(&format!("`{}` is not a path of a theme: {problem}", short(path, 80))))?;
    Ok(Some(path.to_owned()))
}

fn file(word: &Word) -> Result<String, ToolError> {
    theme_path(word)?.ok_or_else(|| refused("A file is needed, not a folder"))
}

fn files(words: &[Word]) -> Result<Vec<String>, ToolError> {
    if words.is_empty() {
        return Err(refused("A file is missing"));
    }
    if words.len() > MAX_FILES {
        return Err(refused(&format!("At most {MAX_FILES} files work at a time")));
    }
    words.iter().map(file).collect()
}

fn option_error(command: &str, option: &str) -> ToolError {
    refused(&format!("`{command}` has no option `{}` here", short(option, 40)))
}

/// Reads a command.
///
/// # Errors
/// If it is not one of those that work. The message lists them.
pub fn parse(call: &RunCommand) -> Result<Command, ToolError> {
    let words = words(&call.command)?;
    let action = match words.split_first() {
        Some((name, rest)) => action(&name.0, rest)?,
        None => return Err(refused("The command is empty")),
    };
    Ok(Command { action, offset: call.offset, limit: call.limit })
}

fn is_option(word: &Word) -> bool {
    word.0.len() > 1 && word.0.starts_with('-') && !word.1
}

fn action(name: &str, rest: &[Word]) -> Result<Action, ToolError> {
    match name {
        "ls" => {
            let (options, paths): (Vec<&Word>, Vec<&Word>) = rest.iter().partition(|word| is_option(word));
            if let Some(option) = options
                .iter()
                .find(|o| !o.0[1..].bytes().all(|b| matches!(b, b'l' | b'a' | b'1' | b'h' | b'A')))
            {
                return Err(option_error("ls", &option.0));
            }
            match *paths {
                [] => Ok(Action::Ls { folder: None }),
                [path] => Ok(Action::Ls { folder: theme_path(path)? }),
                _ => Err(refused("`ls` lists one folder")),
            }
        }
        "cat" => match rest.iter().find(|word| is_option(word)) {
            Some(option) if option.0 != "-n" => Err(option_error("cat", &option.0)),
            _ => {
                let paths: Vec<Word> = rest.iter().filter(|word| !is_option(word)).cloned().collect();
                Ok(Action::Cat { paths: files(&paths)? })
            }
        },
        "head" | "tail" => {
            let (lines, paths) = first_lines(name, rest)?;
            Ok(if name == "head" { Action::Head { lines, paths } } else { Action::Tail { lines, paths } })
        }
        "wc" => {
            let (options, paths): (Vec<Word>, Vec<Word>) = rest.iter().cloned().partition(is_option);
            match options.iter().find(|option| option.0 != "-l") {
                Some(option) => Err(option_error("wc", &option.0)),
                None => Ok(Action::Wc { lines_only: !options.is_empty(), paths: files(&paths)? }),
            }
        }
        "grep" => grep(rest),
        "find" => find(rest),
        "diff" => {
            let (options, paths): (Vec<Word>, Vec<Word>) = rest.iter().cloned().partition(is_option);
            if let Some(option) = options.iter().find(|option| option.0 != "-u") {
                return Err(option_error("diff", &option.0));
            }
            match paths.as_slice() {
                [left, right] => Ok(Action::Diff { left: file(left)?, right: file(right)? }),
                _ => Err(refused("`diff` compares two files")),
            }
        }
        "theme" | "shopify" => {
            let rest = if name == "shopify" {
                rest.split_first()
                    .filter(|(word, _)| word.0 == "theme")
                    .map(|(_, rest)| rest)
                    .unwrap_or_default()
            } else {
                rest
            };
            match rest {
                [check] if check.0 == "check" => Ok(Action::ThemeCheck { path: None }),
                [check, path] if check.0 == "check" && !is_option(path) => {
                    Ok(Action::ThemeCheck { path: theme_path(path)? })
                }
                _ => Err(refused("Of `theme`, only `theme check [FILE]` works")),
            }
        }
        other => Err(refused(&format!("`{}` does not work here", short(other, 40)))),
    }
}

/// `-n 5`, `-n5` or `-5`, and the files.
fn first_lines(name: &str, rest: &[Word]) -> Result<(usize, Vec<String>), ToolError> {
    let mut lines = DEFAULT_LINES;
    let mut paths = Vec::new();
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        if !is_option(word) {
            paths.push(word.clone());
            continue;
        }
        let digits = match word.0.as_str() {
            "-n" => words.next().map_or("", |word| word.0.as_str()),
            option => option.strip_prefix("-n").unwrap_or(&option[1..]),
        };
        lines = digits.parse().map_err(|_| option_error(name, &word.0))?;
        if !(1..=MAX_LINES).contains(&lines) {
            return Err(refused(&format!("`{name}` shows from 1 to {MAX_LINES} lines")));
        }
    }
    Ok((lines, files(&paths)?))
}

fn grep(rest: &[Word]) -> Result<Action, ToolError> {
    let mut grep = Grep {
        pattern: String::new(),
        is_fixed: false,
        ignore_case: false,
        names_only: false,
        count_only: false,
        paths: Vec::new(),
    };
    let (mut pattern, mut is_extended, mut only_words) = (None, false, false);
    for word in rest {
        if is_option(word) && !only_words {
            if word.0 == "--" {
                only_words = true;
                continue;
            }
            for letter in word.0[1..].chars() {
                match letter {
                    // Lines always have numbers, and folders are always searched whole.
                    'n' | 'r' | 'R' | 'H' => {}
                    'i' => grep.ignore_case = true,
                    'E' => is_extended = true,
                    'F' => grep.is_fixed = true,
                    'l' => grep.names_only = true,
                    'c' => grep.count_only = true,
                    _ => return Err(option_error("grep", &word.0)),
                }
            }
        } else if pattern.is_none() {
            pattern = Some(word.0.clone());
        } else if grep.paths.len() >= MAX_FILES {
            return Err(refused(&format!("At most {MAX_FILES} files work at a time")));
        } else {
            grep.paths.extend(theme_path(word)?);
        }
    }
    if is_extended && grep.is_fixed {
        return Err(refused("`grep` takes -E or -F, not both"));
    }
    match pattern.filter(|pattern| !pattern.is_empty()) {
        Some(pattern) => Ok(Action::Grep(Grep { pattern, ..grep })),
        None => Err(refused("`grep` needs a pattern")),
    }
}

fn find(rest: &[Word]) -> Result<Action, ToolError> {
    let (mut folder, mut name) = (None, None);
    let mut words = rest.iter().enumerate();
    while let Some((index, word)) = words.next() {
        match word.0.as_str() {
            "-name" => match words.next() {
                Some((_, pattern)) if !pattern.0.is_empty() && !pattern.0.contains(['[', '{']) => {
                    name = Some(pattern.0.clone());
                }
                _ => return Err(refused("`-name` needs a pattern of letters, `*` and `?`")),
            },
            "-type" => match words.next() {
                Some((_, kind)) if kind.0 == "f" => {}
                _ => return Err(refused("Of `-type`, only `f` works")),
            },
            option if option.starts_with('-') => return Err(option_error("find", option)),
            _ if index == 0 => folder = theme_path(word)?,
            _ => return Err(refused("`find` searches one folder, which comes first")),
        }
    }
    Ok(Action::Find { folder, name })
}

/// Whether a name fits a pattern with `*` and `?`. The time is at most the product of their lengths, which are short.
fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n, mut star, mut resume) = (0, 0, None, 0);
    while n < name.len() {
        if p < pattern.len() && pattern[p] == '*' {
            star = Some(p);
            resume = n;
            p += 1;
        } else if p < pattern.len() && (pattern[p] == '?' || pattern[p] == name[n]) {
            p += 1;
            n += 1;
        } else if let Some(at) = star {
            resume += 1;
            (p, n) = (at + 1, resume);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

impl Command {
    pub(crate) fn needs(&self, index: &ThemeIndex) -> Needs {
        let files = |paths: &[String]| {
            let mut paths: Vec<String> =
                paths.iter().filter(|path| index.lines(path).is_some()).cloned().collect();
            paths.sort_unstable();
            paths.dedup();
            Needs::Paths(paths)
        };
        match &self.action {
            Action::Cat { paths }
            | Action::Head { paths, .. }
            | Action::Tail { paths, .. }
            | Action::Wc { paths, .. } => files(paths),
            Action::Diff { left, right } => files(&[left.clone(), right.clone()]),
            _ => Needs::Nothing,
        }
    }

    pub(crate) fn run(&self, tree: &Tree<'_>) -> Result<Outcome, ToolError> {
        let page = Page { offset: self.offset, limit: self.limit };
        let text = match &self.action {
            Action::Grep(grep) => return Ok(Outcome::Grep(grep.clone())),
            Action::ThemeCheck { path } => return Ok(Outcome::ThemeCheck { path: path.clone() }),
            Action::Ls { folder } => ls(folder.as_deref(), tree, page)?,
            Action::Find { folder, name } => find_files(folder.as_deref(), name.as_deref(), tree, page),
            Action::Wc { lines_only, paths } => count(*lines_only, paths, tree, page)?,
            Action::Cat { paths } => show(paths, tree, page, |_| 0..usize::MAX)?,
            Action::Head { lines, paths } => show(paths, tree, page, |_| 0..*lines)?,
            Action::Tail { lines, paths } => {
                show(paths, tree, page, |all| all.saturating_sub(*lines)..usize::MAX)?
            }
            Action::Diff { left, right } => {
                let (a, b) = (tree.require_text(left)?, tree.require_text(right)?);
                let mut report = Report::new(page, "line", "lines");
                match diff::unified(a, b) {
                    None => report.head(format!("{left} and {right} are equal.")),
                    Some(lines) => {
                        report.head(format!("--- {left}\n+++ {right}"));
                        for line in &lines {
                            report.item(|| line.trim_end_matches('\r').to_owned());
                        }
                    }
                }
                report.finish()
            }
        };
        Ok(Outcome::Text(text))
    }
}

fn ls(folder: Option<&str>, tree: &Tree<'_>, page: Page) -> Result<String, ToolError> {
    let mut report = Report::new(page, "entry", "entries");
    let prefix = folder.map_or(String::new(), |folder| format!("{folder}/"));
    let mut last = None;
    for (path, size) in tree.sizes() {
        if Some(path) == folder {
            report.item(|| format!("{path}  {size} bytes"));
            continue;
        }
        let Some(rest) = path.strip_prefix(&prefix) else { continue };
        match rest.split_once('/') {
            Some((name, _)) if last == Some(name) => {}
            Some((name, _)) => {
                last = Some(name);
                report.item(|| format!("{name}/"));
            }
            None => report.item(|| format!("{rest}  {size} bytes")),
        }
    }
    if report.total() == 0
        && let Some(folder) = folder
    {
        return Err(ToolError::NoFile { path: folder.to_owned(), near: Vec::new() });
    }
    Ok(report.finish())
}

fn find_files(folder: Option<&str>, name: Option<&str>, tree: &Tree<'_>, page: Page) -> String {
    let mut report = Report::new(page, "file", "files");
    let prefix = folder.map_or(String::new(), |folder| format!("{folder}/"));
    for (path, _) in tree.sizes() {
        let file = path.rsplit('/').next().unwrap_or(path);
        if path.starts_with(&prefix) && name.is_none_or(|name| fits(name, file)) {
            report.item(|| path.to_owned());
        }
    }
    report.finish()
}

fn count(lines_only: bool, paths: &[String], tree: &Tree<'_>, page: Page) -> Result<String, ToolError> {
    let mut report = Report::new(page, "file", "files");
    for path in paths {
        let text = tree.require_text(path)?;
        report.item(|| {
            let lines = memchr::memchr_iter(b'\n', text.as_bytes()).count();
            if lines_only {
                format!("{lines} {path}")
            } else {
                format!("{lines} {} {} {path}", text.split_whitespace().count(), text.len())
            }
        });
    }
    Ok(report.finish())
}

/// Shows lines with their numbers.
fn show(
    paths: &[String],
    tree: &Tree<'_>,
    page: Page,
    part: impl Fn(usize) -> std::ops::Range<usize>,
) -> Result<String, ToolError> {
    let mut report = Report::new(page, "line", "lines");
    for path in paths {
        let text = tree.require_text(path)?;
        let all = text.lines().count();
        let part = part(all);
        for (index, line) in text.lines().enumerate().take(part.end).skip(part.start) {
            report.item(|| {
                let name = if paths.len() > 1 { format!("{path}:") } else { String::new() };
                let line: String = line.chars().take(MAX_LINE).collect();
                format!("{name}{}: {line}", index + 1)
            });
        }
        if FileKind::of(path) == FileKind::Other {
            report.note(format!("{path} is not a file of code."));
        }
    }
    Ok(report.finish())
}
