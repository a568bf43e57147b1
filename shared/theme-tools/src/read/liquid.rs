//! A Liquid file: its tags with their nesting, and its text without the Liquid.

use std::rc::Rc;

use theme::scan::liquid::{Token, TokenKind, tokens};
use theme::text::{Lines, Span};

use crate::text::line_of;

const NONE: u32 = u32::MAX;
/// How far an end tag looks for its beginning, and how many tags around a place are read. Hostile nesting is deeper.
const MAX_NEAR: usize = 64;

/// A tag that contains others, or one branch of it: `if`, `elsif`, `else`, `when`, `for` …
pub struct Frame<'a> {
    pub tag: &'a str,
    pub markup: &'a str,
    pub at: u32,
    /// Where its branch or its whole tag ends.
    pub end: u32,
    parent: u32,
    /// The branch before this one.
    previous: u32,
}

impl Frame<'_> {
    /// The number of the frame around this one. It is smaller than this one's.
    pub fn parent(&self) -> Option<usize> {
        (self.parent != NONE).then_some(self.parent as usize)
    }

    /// The number of the branch before this one. It is smaller than this one's.
    pub fn previous(&self) -> Option<usize> {
        (self.previous != NONE).then_some(self.previous as usize)
    }

    pub fn is_loop(&self) -> bool {
        matches!(self.tag, "for" | "tablerow")
    }
}

pub struct Liquid<'a> {
    pub text: &'a str,
    pub lines: Rc<Lines>,
    pub tokens: Vec<Token>,
    /// The text with all Liquid replaced by blanks, byte by byte.
    pub masked: String,
    frames: Vec<Frame<'a>>,
    /// The innermost frame behind each token.
    after: Vec<u32>,
}

const OPENERS: [&str; 9] =
    ["if", "unless", "case", "for", "tablerow", "form", "paginate", "capture", "style"];

impl<'a> Liquid<'a> {
    pub fn read(text: &'a str) -> Self {
        let (tokens, _) = tokens(text);
        let mut masked = text.as_bytes().to_vec();
        for token in &tokens {
            for byte in &mut masked[token.span.start as usize..token.span.end as usize] {
                if *byte != b'\n' {
                    *byte = b' ';
                }
            }
        }
        let masked = String::from_utf8(masked)
            .unwrap_or_else(|broken| String::from_utf8_lossy(broken.as_bytes()).into_owned());
        let mut all = Self {
            text,
            lines: Rc::new(Lines::new(text)),
            tokens,
            masked,
            frames: Vec::new(),
            after: Vec::new(),
        };
        all.nest();
        all
    }

    fn nest(&mut self) {
        // The opening tag of each open block, and its current branch.
        let mut open: Vec<(&'a str, u32)> = Vec::new();
        for token in &self.tokens {
            if let TokenKind::Tag { name, markup } = token.kind {
                let (name, markup) = (name.of(self.text), markup.of(self.text));
                let near = open.len().saturating_sub(MAX_NEAR);
                if OPENERS.contains(&name) {
                    let parent = open.last().map_or(NONE, |&(_, frame)| frame);
                    open.push((name, self.frames.len() as u32));
                    let (at, end) = (token.span.start, self.text.len() as u32);
                    self.frames.push(Frame { tag: name, markup, at, end, parent, previous: NONE });
                } else if let Some(of) = name.strip_prefix("end") {
                    if let Some(depth) = open[near..].iter().rposition(|(word, _)| *word == of) {
                        for (_, closed) in open.drain(near + depth..) {
                            self.frames[closed as usize].end = token.span.start;
                        }
                    }
                } else if matches!(name, "else" | "elsif" | "when") {
                    let has_branches = |&(word, _): &(&str, u32)| match name {
                        "when" => word == "case",
                        "elsif" => matches!(word, "if" | "unless"),
                        _ => matches!(word, "if" | "unless" | "case" | "for"),
                    };
                    if let Some(depth) = open[near..].iter().rposition(has_branches) {
                        let at = token.span.start;
                        for (_, closed) in open.drain(near + depth + 1..) {
                            self.frames[closed as usize].end = at;
                        }
                        let Some((_, current)) = open.last_mut() else { continue };
                        let before = &mut self.frames[*current as usize];
                        before.end = at;
                        let (parent, end) = (before.parent, self.text.len() as u32);
                        self.frames.push(Frame { tag: name, markup, at, end, parent, previous: *current });
                        *current = self.frames.len() as u32 - 1;
                    }
                }
            }
            self.after.push(open.last().map_or(NONE, |&(_, frame)| frame));
        }
    }

    pub fn frames(&self) -> &[Frame<'a>] {
        &self.frames
    }

    /// The number of the innermost frame around a place.
    pub fn frame_at(&self, at: u32) -> Option<usize> {
        let before = self.tokens.partition_point(|token| token.span.start <= at).checked_sub(1)?;
        let (frame, token) = (self.after[before], self.tokens[before].span);
        if frame == NONE {
            return None;
        }
        // A place within the opening tag itself is not within its block.
        let frame = &self.frames[frame as usize];
        if frame.at == token.start && at < token.end {
            frame.parent()
        } else {
            Some(self.after[before] as usize)
        }
    }

    /// The frames around a place, the innermost first, and at most the [`MAX_NEAR`] innermost.
    pub fn around(&self, at: u32) -> impl Iterator<Item = &Frame<'a>> + '_ {
        let mut frame = self.frame_at(at);
        std::iter::from_fn(move || {
            let here = &self.frames[frame?];
            frame = here.parent();
            Some(here)
        })
        .take(MAX_NEAR)
    }

    pub fn line(&self, at: u32) -> u32 {
        line_of(&self.lines, at)
    }

    /// All tags with their names and contents.
    pub fn tags(&self) -> impl Iterator<Item = (&'a str, Span, &Token)> {
        self.tokens.iter().filter_map(|token| match token.kind {
            TokenKind::Tag { name, markup } => Some((name.of(self.text), markup, token)),
            _ => None,
        })
    }

    /// The contents of all tags and outputs.
    pub fn markups(&self) -> impl Iterator<Item = Span> {
        self.tokens.iter().filter_map(|token| match token.kind {
            TokenKind::Tag { markup, .. } | TokenKind::Output { markup } => Some(markup),
            _ => None,
        })
    }

    /// The part between `{% schema %}` and its end.
    pub fn schema(&self) -> Option<Span> {
        self.tokens.iter().find_map(|token| match token.kind {
            TokenKind::Schema { body } => Some(body),
            _ => None,
        })
    }
}

/// The first string of a tag: `card` of `render 'card', a: b`.
pub fn first_string(markup: &str) -> Option<&str> {
    let quote = markup.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    markup[1..].split_once(quote).map(|(name, _)| name)
}

/// Each `settings.ID` in an expression: the owner (`section`, `block` or nothing), the id, and its place.
pub fn settings(text: &str, markup: Span) -> impl Iterator<Item = (Owner, &str, u32)> {
    let inner = markup.of(text);
    memchr::memmem::find_iter(inner.as_bytes(), b"settings.").filter_map(move |at| {
        let start = at + "settings.".len();
        let length = inner.as_bytes()[start..].iter().take_while(|&&b| crate::text::is_word(b)).count();
        let id = inner.get(start..start + length).filter(|id| !id.is_empty())?;
        let before = &inner[..at];
        let owner = if before.ends_with("section.") {
            Owner::Section
        } else if before.ends_with("block.") {
            Owner::Block
        } else if before.ends_with('.') {
            Owner::Unknown
        } else if before.as_bytes().last().is_some_and(|&b| crate::text::is_word(b)) {
            return None;
        } else {
            Owner::Theme
        };
        Some((owner, id, markup.start + at as u32))
    })
}

/// Whose setting an expression reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    Theme,
    Section,
    Block,
    /// A variable holds the section or block.
    Unknown,
}

impl Owner {
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Theme => "settings.",
            Self::Section => "section.settings.",
            Self::Block => "block.settings.",
            Self::Unknown => "….settings.",
        }
    }
}
