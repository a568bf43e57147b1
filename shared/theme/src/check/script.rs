//! Scripts. Their parser is outside of this crate, because it is large: see [`ScriptReader`].

use super::html::{Element, Markup};
use crate::scan::liquid::{Token, TokenKind};
use crate::text::Span;

/// Reads JavaScript.
pub trait ScriptReader: Sync {
    /// Positions are bytes of `source`.
    fn read(&self, source: &str, is_module: bool) -> ScriptFacts;
}

/// What a script defines and uses.
#[derive(Clone, Debug, Default)]
pub struct ScriptFacts {
    /// Errors of syntax, and names that are declared twice.
    pub errors: Vec<(usize, String)>,
    /// If the reader refused to read the script: the place, and the limit as a sentence. Nothing is known of the script then.
    pub unread: Option<(usize, String)>,
    /// Names that no scope of the script defines.
    pub unresolved: Vec<Unresolved>,
    /// Names that other scripts of the page can use: declarations at the top level, properties of `window`, and what a library sets on an
    /// object that it gets.
    pub globals: Vec<String>,
    /// Selectors given to `querySelector` and its kin. An id begins with `#`.
    pub selectors: Vec<(String, usize)>,
    /// Custom elements that the script defines.
    pub elements: Vec<(String, usize)>,
}

/// A name that no scope of a script defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unresolved {
    pub name: String,
    pub at: usize,
    /// Whether each use is one of a library that the page may load: `Name`, `x.y` or `new x()`.
    pub is_library: bool,
}

/// Whether a script is a library of others: its name says that it is minified, or its lines are very long.
pub fn is_library(path: &str, text: &str) -> bool {
    const LONG: usize = 2_000;
    path.contains(".min.")
        || path.contains(".bundle.")
        || text.len() > LONG && text.lines().any(|line| line.len() > LONG)
}

/// A body of JavaScript in a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Body {
    pub span: Span,
    pub is_module: bool,
}

/// The scripts within a file of Liquid that are JavaScript.
pub fn bodies(text: &str, markup: &Markup) -> Vec<Body> {
    let script = |(span, element): &(Span, Option<usize>)| {
        let element: Option<&Element> = element.and_then(|index| markup.elements.get(index));
        let kind = element.and_then(|element| element.value(text, "type")).unwrap_or_default();
        let is_script = matches!(kind, "" | "text/javascript" | "application/javascript" | "module");
        // A browser runs the file that `src` names, and not what stands within the element: settings for that file, for example.
        let has_file = element.is_some_and(|element| element.value(text, "src").is_some());
        (is_script && !has_file && !span.of(text).trim().is_empty())
            .then_some(Body { span: *span, is_module: kind == "module" })
    };
    markup.scripts.iter().filter_map(script).collect()
}

/// Replaces a part of the text that begins at `start` by blanks.
fn blank(bytes: &mut [u8], start: usize, part: Span) {
    for byte in &mut bytes[part.start as usize - start..part.end as usize - start] {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
}

/// Whether a condition holds only between the rounds of a loop, of which the text has one.
fn is_between(word: &str, condition: &str) -> bool {
    const ENDS: [&str; 4] = ["forloop.first", "forloop.last", "forloop.index == 1", "forloop.index0 == 0"];
    const BETWEEN: [&str; 6] = [
        "forloop.first == false",
        "forloop.last == false",
        "forloop.index > 1",
        "forloop.index != 1",
        "forloop.index0 > 0",
        "forloop.index0 != 0",
    ];
    let condition = condition.trim();
    if word == "unless" { ENDS.contains(&condition) } else { word == "if" && BETWEEN.contains(&condition) }
}

/// Whether a script has tags that print what is not in the file.
pub fn prints_files(text: &str, within: Span, tokens: &[Token]) -> bool {
    const PRINT: [&str; 7] = ["render", "include", "section", "content_for", "echo", "cycle", "increment"];
    let first = tokens.partition_point(|token| token.span.start < within.start);
    tokens[first..]
        .iter()
        .take_while(|token| token.span.end <= within.end)
        .any(|token| matches!(token.kind, TokenKind::Tag { name, .. } if PRINT.contains(&name.of(text))))
}

/// The text of [`without_liquid`] with other values of its outputs: blanks if an output stands alone on its lines, because it may print
/// statements or nothing, and zeros if it stands beside a digit. `None` if there is no such output.
pub fn with_other_outputs(text: &str, within: Span, tokens: &[Token], source: &str) -> Option<String> {
    let start = within.start as usize;
    let bytes = text.as_bytes();
    let mut other = source.as_bytes().to_vec();
    let mut is_other = false;
    let first = tokens.partition_point(|token| (token.span.start as usize) < start);
    for token in tokens[first..].iter().take_while(|token| token.span.end <= within.end) {
        if !matches!(token.kind, TokenKind::Output { .. }) {
            continue;
        }
        let (from, to) = (token.span.start as usize, token.span.end as usize);
        let mut before = bytes[start..from].iter().rev().copied();
        let mut after = bytes[to..within.end as usize].iter().copied();
        let is_digit = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_digit() || byte == b'.');
        let fill = if is_digit(before.clone().next()) || is_digit(after.clone().next()) {
            b'0'
        } else {
            let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b';');
            let is_end = |byte: Option<u8>| matches!(byte, None | Some(b'\n'));
            let is_alone =
                is_end(before.find(|byte| !is_blank(byte))) && is_end(after.find(|byte| !is_blank(byte)));
            if !is_alone {
                continue;
            }
            b' '
        };
        is_other = true;
        for byte in &mut other[from - start..to - start] {
            if *byte == b'_' {
                *byte = fill;
            }
        }
    }
    is_other.then(|| String::from_utf8_lossy(&other).into_owned())
}

/// A text of the same length without the Liquid in `within`. Outputs become a name, so that they are a value where one
/// is expected. With `first_only`, only the first branch of each condition is kept.
pub fn without_liquid(text: &str, within: Span, tokens: &[Token], first_only: bool) -> (String, bool) {
    let (start, end) = (within.start as usize, within.end as usize);
    let mut bytes = text.as_bytes()[start..end].to_vec();
    let mut has_control = false;
    let mut depth = 0_u32;
    let mut hidden_from: Option<(u32, usize)> = None;
    // Whether a `case` is hidden until its first `when`.
    let mut first_when = false;
    let mut covered = start;
    // The tokens are in order. A file can have many parts, so each looks only at its own.
    let first = tokens.partition_point(|token| (token.span.start as usize) < start);
    for token in &tokens[first..] {
        let (from, to) = (token.span.start as usize, token.span.end as usize);
        if from >= end {
            break;
        }
        if to > end || from < covered {
            continue;
        }
        covered = to;
        // What stands in `raw` is printed as it is.
        if let TokenKind::Raw { body } = token.kind {
            for span in [Span::new(from, body.start as usize), Span::new(body.end as usize, to)] {
                blank(&mut bytes, start, span);
            }
            continue;
        }
        let is_output = matches!(token.kind, TokenKind::Output { .. });
        let fill = if is_output { b'_' } else { b' ' };
        for byte in &mut bytes[from - start..to - start] {
            if *byte != b'\n' {
                *byte = fill;
            }
        }
        if is_output {
            // A name can't span lines.
            let mut is_first = true;
            for byte in &mut bytes[from - start..to - start] {
                match *byte {
                    b'\n' => is_first = false,
                    _ if !is_first => *byte = b' ',
                    _ => {}
                }
            }
        }
        let TokenKind::Tag { name, markup } = token.kind else { continue };
        match name.of(text) {
            word @ ("if" | "unless" | "case" | "for" | "capture") => {
                depth += 1;
                has_control = true;
                // What is captured is printed elsewhere.
                let is_hidden = word == "capture" || is_between(word, markup.of(text));
                if hidden_from.is_none() && (is_hidden || word == "case" && first_only) {
                    hidden_from = Some((depth, to));
                    first_when = word == "case";
                }
            }
            "when" if first_only && first_when && hidden_from.is_some_and(|(level, _)| level == depth) => {
                (hidden_from, first_when) = (None, false);
            }
            "else" | "elsif" | "when" if first_only && hidden_from.is_none() => {
                hidden_from = Some((depth, to));
            }
            "endif" | "endunless" | "endcase" | "endfor" | "endcapture" => {
                if let Some((_, since)) = hidden_from.take_if(|(level, _)| *level == depth) {
                    blank(&mut bytes, start, Span::new(since, from));
                }
                depth = depth.saturating_sub(1);
            }
            "liquid" | "render" | "include" | "echo" => has_control = true,
            _ => {}
        }
    }
    // `{% liquid %}` and pieces without an end.
    let mut at = 0;
    while let Some(found) = memchr::memmem::find(&bytes[at..], b"{%") {
        let open = at + found;
        let close =
            memchr::memmem::find(&bytes[open..], b"%}").map_or(bytes.len(), |length| open + length + 2);
        has_control = true;
        for byte in &mut bytes[open..close] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = close;
    }
    (String::from_utf8_lossy(&bytes).into_owned(), has_control)
}
