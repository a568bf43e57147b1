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
    /// Whether each use is a call.
    pub is_called: bool,
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
        (is_script && !span.of(text).trim().is_empty())
            .then_some(Body { span: *span, is_module: kind == "module" })
    };
    markup.scripts.iter().filter_map(script).collect()
}

/// A text of the same length without the Liquid in `within`. Outputs become a name, so that they are a value where one
/// is expected. With `first_only`, only the first branch of each condition is kept.
pub fn without_liquid(text: &str, within: Span, tokens: &[Token], first_only: bool) -> (String, bool) {
    let (start, end) = (within.start as usize, within.end as usize);
    let mut bytes = text.as_bytes()[start..end].to_vec();
    let mut has_control = false;
    let mut depth = 0_u32;
    let mut hidden_from: Option<(u32, usize)> = None;
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
        let TokenKind::Tag { name, .. } = token.kind else { continue };
        let mut hide = |hidden_from: &mut Option<(u32, usize)>, until: usize| {
            if let Some((_, since)) = hidden_from.take() {
                for byte in &mut bytes[since - start..until - start] {
                    if *byte != b'\n' {
                        *byte = b' ';
                    }
                }
            }
        };
        match name.of(text) {
            "if" | "unless" | "case" | "for" => {
                depth += 1;
                has_control = true;
            }
            "else" | "elsif" if first_only && hidden_from.is_none() => hidden_from = Some((depth, to)),
            "endif" | "endunless" | "endcase" | "endfor" => {
                if hidden_from.is_some_and(|(level, _)| level == depth) {
                    hide(&mut hidden_from, from);
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
