//! What the standard output is: its width, and whether it shows colours.

use std::io::{self, IsTerminal, Write};

use serde_json::Value;

use crate::Failure;
use crate::output::{self, escaped, must_be_escaped};

/// The standard output.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// The columns of a terminal.
    pub width: Option<usize>,
    colours: bool,
}

/// How a text looks on a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Look {
    #[default]
    Plain,
    Bold,
    Dim,
    Good,
    Bad,
    Careful,
}

impl Screen {
    #[must_use]
    pub fn look() -> Self {
        let out = io::stdout();
        if !out.is_terminal() {
            return Self { width: None, colours: false };
        }
        let columns = rustix::termios::tcgetwinsize(&out).map(|size| usize::from(size.ws_col));
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let colours = set("NO_COLOR").is_none() && set("TERM").is_some_and(|term| term != "dumb");
        Self { width: columns.ok().filter(|columns| *columns > 0), colours }
    }

    /// A screen without colours, for tests.
    #[cfg(test)]
    pub fn plain(width: Option<usize>) -> Self {
        Self { width, colours: false }
    }

    /// The text, which is already safe, in this look.
    #[must_use]
    pub fn painted(self, text: &str, look: Look) -> String {
        let code = match look {
            Look::Plain => return text.to_owned(),
            Look::Bold => "1",
            Look::Dim => "2",
            Look::Good => "32",
            Look::Bad => "31",
            Look::Careful => "33",
        };
        if self.colours && !text.is_empty() {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    /// Whether the output is a terminal.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        self.width.is_some() || io::stdout().is_terminal()
    }
}

/// One line of a text of somebody else: white space becomes single spaces, and nothing controls the terminal.
#[must_use]
pub fn line(text: &str) -> String {
    escaped(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A text of somebody else with its lines and tabs. Nothing else controls the terminal.
#[must_use]
pub fn block(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for (at, line) in text.split('\n').enumerate() {
        if at > 0 {
            shown.push('\n');
        }
        let line = line.strip_suffix('\r').unwrap_or(line);
        for (at, part) in line.split('\t').enumerate() {
            if at > 0 {
                shown.push('\t');
            }
            shown.push_str(&escaped(part));
        }
    }
    shown
}

/// A block in which each line is indented.
#[must_use]
pub fn indented(text: &str, by: &str) -> String {
    let lines = block(text.trim_end());
    lines
        .lines()
        .map(|line| if line.is_empty() { "\n".to_owned() } else { format!("{by}{line}\n") })
        .collect()
}

/// Prints one JSON document. What could control a terminal is written as an escape of JSON, so the document stays the same.
///
/// # Errors
/// If it can't be written.
pub fn print_json(value: &Value) -> Result<(), Failure> {
    Ok(output::print(format!("{}\n", safe_json(&format!("{value:#}"))))?)
}

/// JSON in which every character that could control a terminal is an escape.
#[must_use]
pub fn safe_json(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        if c != '\n' && must_be_escaped(c) {
            safe.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            safe.push(c);
        }
    }
    safe
}

/// Prints a part of an output that is not finished. Says whether somebody still reads it.
///
/// # Errors
/// If it can't be written for another reason.
pub fn print_part(text: &str) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        done => done.map(|()| true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_others_control_nothing() {
        let hostile = "a\u{1b}[2Jb\u{202e}c\u{9b}d\u{7f}\re\n\tf\u{2028}g\0";
        assert_eq!(line("  a \n\t b  "), "a b");
        let shown = line(hostile);
        assert!(!shown.chars().any(must_be_escaped), "{shown:?}");
        let shown = block(hostile);
        assert!(!shown.chars().any(|c| !matches!(c, '\n' | '\t') && must_be_escaped(c)), "{shown:?}");
        assert_eq!(shown.lines().count(), 2);
        assert_eq!(block("a\r\nb\n"), "a\nb\n");
        assert_eq!(indented("a\n\nb\n", "  "), "  a\n\n  b\n");
    }

    #[test]
    fn json_stays_the_same_document() {
        let value = serde_json::json!({"a\u{202e}": "\u{1b}\u{9b}\u{7f}\u{2028}\"\\\n💡ü"});
        let shown = safe_json(&format!("{value:#}"));
        assert!(!shown.chars().any(|c| c != '\n' && must_be_escaped(c)), "{shown:?}");
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value);
    }
}
