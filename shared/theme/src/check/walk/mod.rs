//! One pass over the Liquid of a file: pairs its blocks, checks the grammar of its tags, and collects what it uses.

mod blocks;
mod conditions;
mod loops;
mod renders;
mod types;
mod values;
mod variables;

use rustc_hash::{FxHashMap, FxHashSet};

pub use self::types::wrong_property;
use super::Notes;
use super::Severity::{Error, Warning};
use super::expression::Parser;
use super::facts::Facts;
use super::html::HtmlContext;
use super::names::Type;
use super::syntax;
use crate::path::FileKind;
use crate::scan::DegradedReason;
use crate::scan::liquid::{Token, TokenKind};

/// What strict Liquid accepts, and what nevertheless does not work.
const SYNTAX: &str = "LiquidHTMLSyntaxError";

/// Tags with an end, except those whose content is not Liquid.
const BLOCKS: [&str; 10] =
    ["if", "unless", "case", "for", "tablerow", "capture", "form", "paginate", "style", "ifchanged"];

struct Open<'a> {
    name: &'a str,
    at: usize,
    indent: Option<usize>,
    has_else: bool,
    /// The variable of a loop, and its type.
    variable: Option<(&'a str, Type)>,
    /// The variable whose `type` a `case` compares.
    case_of_type: bool,
    has_when: bool,
    /// The block types that this branch is for.
    block_types: Option<Vec<String>>,
}

struct Pair {
    name: String,
    open: usize,
    close: usize,
    indents: Option<(usize, usize)>,
}

pub struct Walker<'a, 'n> {
    kind: FileKind,
    text: &'a str,
    notes: &'n mut Notes,
    facts: Facts,
    stack: Vec<Open<'a>>,
    pairs: Vec<Pair>,
    /// Variables that are assigned, how often, and their type.
    assigned: FxHashMap<&'a str, (u32, Type, usize)>,
    read: FxHashSet<&'a str>,
    doc_types: FxHashMap<String, Type>,
    /// Ends of blocks that follow, by name: positions, in order.
    ends: FxHashMap<&'a str, Vec<usize>>,
    opens: FxHashMap<&'a str, Vec<usize>>,
    is_broken: bool,
    misplaced: Vec<(usize, String)>,
}

/// What the walk found.
pub struct Walked {
    pub facts: Facts,
    /// Where blocks and ends are not paired, as the indentation shows it, and what is wrong there.
    pub misplaced: Vec<(usize, String)>,
    /// Whether blocks or tags are not paired, so that nothing can be said about the markup between them.
    pub is_broken: bool,
}

pub fn walk(
    kind: FileKind,
    text: &str,
    tokens: &[Token],
    degraded: &[(usize, DegradedReason)],
    places: &[HtmlContext],
    notes: &mut Notes,
) -> Walked {
    let mut walker = Walker {
        kind,
        text,
        notes,
        facts: Facts::default(),
        stack: Vec::new(),
        pairs: Vec::new(),
        assigned: FxHashMap::default(),
        read: FxHashSet::default(),
        doc_types: FxHashMap::default(),
        ends: FxHashMap::default(),
        opens: FxHashMap::default(),
        is_broken: false,
        misplaced: Vec::new(),
    };
    walker.unclosed_pieces(degraded);
    walker.definitions(tokens);
    for (index, token) in tokens.iter().enumerate() {
        walker.token(token, places.get(index).copied().unwrap_or(HtmlContext::Text));
    }
    walker.close_rest();
    walker.unused();
    Walked { is_broken: walker.is_broken, misplaced: walker.misplaced, facts: walker.facts }
}

impl<'a> Walker<'a, '_> {
    fn token(&mut self, token: &Token, place: HtmlContext) {
        let at = token.span.start as usize;
        match token.kind {
            TokenKind::Output { markup } => {
                let parser = Parser::new(markup.of(self.text), markup.start as usize);
                let assets = self.facts.assets.len();
                self.printed(at, parser, Some(place));
                // No browser loads what stands in a comment.
                if place == HtmlContext::Comment {
                    self.facts.assets.truncate(assets);
                }
            }
            TokenKind::Tag { name, markup } => {
                self.tag(at, name.of(self.text), markup.of(self.text), markup.start as usize);
            }
            TokenKind::Schema { .. } | TokenKind::Script { .. } | TokenKind::Style { .. } => {
                if let Some(open) = self.stack.last() {
                    let name = match token.kind {
                        TokenKind::Schema { .. } => "schema",
                        TokenKind::Script { .. } => "javascript",
                        _ => "stylesheet",
                    };
                    self.invalid(at, format!("`{name}` must not stand within `{}`", open.name));
                }
            }
            TokenKind::Comment { body } => {
                let words = body.of(self.text).split(|c: char| !c.is_alphanumeric() && c != '_');
                words.filter(|word| !word.is_empty()).for_each(|word| self.facts.commented.insert(word));
            }
            TokenKind::Raw { .. } => {}
        }
    }

    /// Reports what Shopify refuses, and Liquid itself does not.
    fn invalid(&mut self, at: usize, message: impl Into<String>) {
        self.notes.add(at, Error, syntax::CODE, message);
    }

    /// Reports what the platform reads in another way than it looks.
    fn doubtful(&mut self, at: usize, message: impl Into<String>) {
        self.notes.add(at, Warning, SYNTAX, message);
    }

    fn tag(&mut self, at: usize, name: &'a str, markup: &'a str, markup_at: usize) {
        let parser = Parser::new(markup, markup_at);
        match name {
            "if" | "unless" => self.condition(at, name, parser),
            "elsif" => self.elsif(at, parser),
            "else" => self.otherwise(at, parser),
            "case" => self.case(at, parser),
            "when" => self.when(at, parser),
            "for" | "tablerow" => self.for_loop(at, name, parser),
            "assign" => self.assign(at, markup, markup_at),
            "form" => self.form(at, parser, name),
            "paginate" => self.paginate(at, parser, name),
            "capture" | "style" | "ifchanged" => {
                self.open(name, at);
            }
            "echo" => self.printed(at, parser, None),
            "render" | "include" => self.render(at, name, parser),
            "section" | "sections" => self.section(at, name, parser),
            "content_for" => self.content_for(at, parser),
            "layout" => self.layout(at, parser),
            "cycle" => self.cycle(parser),
            "increment" | "decrement" | "break" | "continue" | "liquid" | "#" | "comment" | "raw" | "doc"
            | "schema" | "stylesheet" | "javascript" => {}
            "" => {}
            _ => self.other(at, name),
        }
    }
}
