//! `include`, where `render` shows the same.
//!
//! An included snippet sees and sets the variables of its page, and a rendered one does not. So it must read nothing but its arguments and set
//! nothing. There is one more difference: `include 'icon'` reads the variable `icon`, and repeats the snippet for each element if it is a list.
//! And `include` fails in a file that is rendered.

use rustc_hash::{FxHashMap, FxHashSet};

use super::places::Edit;
use super::{Also, LeftPlace, MendedPlace};
use crate::check::is_global;
use crate::path::{FileKind, handle};
use crate::scan::liquid::{self, TokenKind};
use crate::strict::{self, Lexeme, is_word, lex};
use crate::text::Lines;

/// Filters that give the same in each scope.
const FILTERS: [&str; 16] = [
    "append",
    "asset_url",
    "capitalize",
    "default",
    "downcase",
    "escape",
    "handle",
    "handleize",
    "money",
    "plus",
    "prepend",
    "replace",
    "strip",
    "t",
    "times",
    "upcase",
];

/// What the files of a theme say about their snippets.
#[derive(Clone, Debug, Default)]
pub struct Scopes {
    /// The variables that each snippet reads, or why it needs the scope of its page.
    snippets: FxHashMap<String, Result<FxHashSet<String>, String>>,
    /// All words of the Liquid of the theme that can be variables.
    words: FxHashSet<String>,
    /// The snippets that `render` names, and for each snippet those that it includes.
    rendered: FxHashSet<String>,
    included: FxHashMap<String, Vec<String>>,
}

/// What becomes of the `include` tags of a file.
#[derive(Default)]
pub struct Includes {
    pub mended: Vec<(Edit, MendedPlace)>,
    pub left: Vec<LeftPlace>,
}

impl Scopes {
    /// Learns what a file of the theme has.
    pub fn learn(&mut self, path: &str, text: &str) {
        if !path.ends_with(".liquid") {
            return;
        }
        let is_snippet = FileKind::of(path) == FileKind::Snippet;
        let mut reads = if strict::refusals(text).is_empty() {
            Ok(FxHashSet::default())
        } else {
            Err("strict Liquid refuses a place of it".to_owned())
        };
        for token in liquid::tokens(text).0 {
            let (name, markup) = match token.kind {
                TokenKind::Output { markup } => ("", markup.of(text)),
                TokenKind::Tag { name, markup } => (name.of(text), markup.of(text)),
                TokenKind::Comment { .. } | TokenKind::Raw { .. } => continue,
                TokenKind::Schema { .. } | TokenKind::Style { .. } | TokenKind::Script { .. } => {
                    reads = reads.and(Err("it has a tag that needs a page".to_owned()));
                    continue;
                }
            };
            self.words.extend(words(markup));
            if let Some(named) = snippet_of(markup) {
                match name {
                    "render" => drop(self.rendered.insert(named.to_owned())),
                    "include" => {
                        self.included.entry(handle(path).to_owned()).or_default().push(named.to_owned());
                    }
                    _ => {}
                }
            }
            if is_snippet && let Ok(names) = &mut reads {
                match read_by(name, markup) {
                    Ok(more) => names.extend(more),
                    Err(why) => reads = Err(why),
                }
            }
        }
        if is_snippet {
            self.snippets.insert(handle(path).to_owned(), reads);
        }
    }

    /// The snippets that are rendered, and those that they include.
    fn isolated(&self) -> FxHashSet<&str> {
        let mut found: FxHashSet<&str> = FxHashSet::default();
        let mut open: Vec<&str> = self.rendered.iter().map(String::as_str).collect();
        while let Some(name) = open.pop() {
            if found.insert(name) {
                open.extend(self.included.get(name).into_iter().flatten().map(String::as_str));
            }
        }
        found
    }

    /// Mends the `include` tags of a file.
    pub fn fix(&self, path: &str, text: &str) -> Includes {
        let mut found = Includes::default();
        if !text.contains("include") {
            return found;
        }
        let kind = FileKind::of(path);
        let is_page =
            matches!(kind, FileKind::Layout | FileKind::Template | FileKind::Section | FileKind::Snippet);
        let isolated = if kind == FileKind::Snippet { self.isolated() } else { FxHashSet::default() };
        let lines = Lines::new(text);
        for token in liquid::tokens(text).0 {
            let TokenKind::Tag { name, markup } = token.kind else { continue };
            let line = lines.line_of(token.span.start);
            // What strict Liquid refuses has its own mend.
            if name.of(text) != "include" || !strict::accepts("include", markup.of(text)) {
                continue;
            }
            let why = if !is_page || isolated.contains(handle(path)) {
                Some("`include` shows an error in a file that is rendered".to_owned())
            } else {
                self.against(markup.of(text))
            };
            let before = token.span.of(text).trim_end().to_owned();
            let code = Also::DeprecatedTag.name();
            match why {
                None => {
                    let after = before.replacen("include", "render", 1);
                    let reason = "`include` is deprecated, and `render` shows the same: the snippet reads only its arguments, and sets nothing";
                    let edit = Edit { span: name, new: "render".to_owned() };
                    let (kind, reason) = ("SameSnippet", reason.to_owned());
                    found
                        .mended
                        .push((edit, MendedPlace { line, code, kind, before, after, reason, output: None }));
                }
                Some(why) => found.left.push(LeftPlace {
                    line,
                    code,
                    kind: "OtherScope",
                    place: before,
                    reason: format!("`include` is deprecated, and `render` can show something else: {why}"),
                    choices: vec!["write `render`, and pass what the snippet reads as arguments".to_owned()],
                }),
            }
        }
        found
    }

    /// Why `render` can show something else than `include` with this markup.
    fn against(&self, markup: &str) -> Option<String> {
        let Some((name, arguments)) = snippet_of(markup).zip(arguments(markup)) else {
            return Some("it has more than the name of the snippet in quotes, and arguments".to_owned());
        };
        let reads = match self.snippets.get(name) {
            None => return Some(format!("there is no snippet `{name}`")),
            Some(Err(why)) => return Some(why.clone()),
            Some(Ok(reads)) => reads,
        };
        if is_global(name) || self.words.contains(name) {
            return Some(format!("the snippet is repeated if the variable `{name}` is a list"));
        }
        let mut missing: Vec<&String> =
            reads.iter().filter(|read| !arguments.contains(&read.as_str())).collect();
        missing.sort_unstable();
        missing.first().map(|read| format!("the snippet reads `{read}`, which is no argument"))
    }
}

/// The name in quotes with which a markup begins.
fn snippet_of(markup: &str) -> Option<&str> {
    let markup = markup.trim_start();
    let quote = markup.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    markup.get(1..)?.split_once(quote).map(|(name, _)| name)
}

/// The names of the arguments, if nothing else follows the name in quotes.
fn arguments(markup: &str) -> Option<Vec<&str>> {
    let lexed = lex(markup, 0).ok()?;
    let second = lexed.get(1)?;
    let third = lexed.get(2).map_or(Lexeme::End, |third| third.lexeme);
    let is_plain = match second.lexeme {
        Lexeme::End | Lexeme::Comma => true,
        Lexeme::Name => third == Lexeme::Colon,
        _ => false,
    };
    let pairs = lexed.iter().zip(lexed.iter().skip(1));
    let named = pairs.filter(|(one, next)| one.lexeme == Lexeme::Name && next.lexeme == Lexeme::Colon);
    (is_plain && strict::accepts("render", markup))
        .then(|| named.map(|(one, _)| one.span.of(markup)).collect())
}

/// All words of a markup that can be variables. If it can't be read, all of its words.
fn words(markup: &str) -> Vec<String> {
    match lex(markup, 0) {
        Ok(lexed) => {
            let names = lexed.iter().filter(|word| word.lexeme == Lexeme::Name);
            names.map(|word| word.span.of(markup).to_owned()).collect()
        }
        Err(_) => {
            let is_part = |c: char| u8::try_from(c).is_ok_and(|byte| is_word(byte) || byte == b'-');
            markup.split(|c| !is_part(c)).filter(|word| !word.is_empty()).map(str::to_owned).collect()
        }
    }
}

/// The variables that a tag or output of a snippet reads.
///
/// # Errors
/// Why the snippet needs the scope of its page.
fn read_by<'a>(name: &str, markup: &'a str) -> Result<Vec<String>, String> {
    match name {
        "" | "echo" | "if" | "unless" | "elsif" | "case" | "when" => {}
        "else" | "endif" | "endunless" | "endcase" => return Ok(Vec::new()),
        _ => return Err(format!("the snippet has the tag `{name}`")),
    }
    let lexed = lex(markup, 0).map_err(|_| "a markup of the snippet can't be read".to_owned())?;
    let mut before = Lexeme::End;
    let mut reads = Vec::new();
    for (index, word) in lexed.iter().enumerate() {
        let after = lexed.get(index + 1).map_or(Lexeme::End, |next| next.lexeme);
        let text: &'a str = word.span.of(markup);
        match (word.lexeme, before) {
            (Lexeme::Name, Lexeme::Pipe) if !FILTERS.contains(&text) => {
                return Err(format!("the snippet has the filter `{text}`"));
            }
            (Lexeme::Name, Lexeme::Pipe | Lexeme::Dot) => {}
            (Lexeme::Name, _) if after == Lexeme::Colon => {}
            (Lexeme::Name, _)
                if matches!(
                    text,
                    "and" | "or" | "contains" | "nil" | "null" | "true" | "false" | "blank" | "empty"
                ) => {}
            (Lexeme::Name, _) => reads.push(text.to_owned()),
            _ => {}
        }
        before = word.lexeme;
    }
    Ok(reads)
}
