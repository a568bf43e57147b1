//! The strict grammar of Liquid: which places of a file Shopify refuses.
//!
//! Shopify accepts a file only if Liquid's strictest parser (`strict2` of Liquid 5.13.0) accepts it. [`refusals`] gives the same verdict:
//! a file without a refusal is accepted. Liquid stops at its first error. This goes on, and names one place for each tag or output.
//! For the tags that only Shopify has, such as `form`, theme-check is the reference, because their parser is not public.
//!
//! - `pieces`: cuts a file into tags, outputs and text
//! - `blocks`: what opens, what ends, and what is not read (`raw`, `comment`, `doc`)
//! - `lexer`, `expression`: the markup of one tag
//! - `tags`: the grammar of each tag
//! - `range`: the types that a range can't count
//! - `lax`: what the tolerant parser makes of a refused markup, and of an accepted one that it reads otherwise
//! - `sentence`: what a refusal says
//!
//! Recorded verdicts of Liquid are in `tests/liquid/strict`.

mod blocks;
mod expression;
mod lax;
mod lexer;
mod pieces;
mod range;
mod sentence;
mod tags;
#[cfg(test)]
mod tests;

use crate::text::Span;

pub(crate) use self::expression::Stop;
pub(crate) use self::lexer::{Lexed, Lexeme, lex};
pub(crate) use self::pieces::{is_blank, is_word};
pub(crate) use self::sentence::is_hidden;
pub(crate) use self::sentence::quoted;

/// The deepest nesting of blocks that Liquid reads.
pub const MAX_NESTING: usize = 100;

/// A place that Shopify refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What is wrong: a word, a sign, or what the parser did not expect. It can be empty, where something is missing.
    pub place: Span,
    /// The tag or output from its opening brace to its closing one. In `{% liquid %}`, the line.
    pub tag: Span,
    /// The markup of the tag or output: what stands behind its name. It can have blanks at its end.
    pub markup: Span,
    /// The kind of fault.
    pub kind: Kind,
    /// What Shopify refuses, and what to write.
    pub message: String,
    /// What Liquid itself says.
    pub parser: String,
    /// What the tolerant parser made of it, if it accepted the tag.
    pub lax: Option<Lax>,
}

/// What strict Liquid makes of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    pub refusals: Vec<Refusal>,
    pub otherwise: Vec<Otherwise>,
}

/// A tag that both parsers accept, and that the strict one reads otherwise. The page changes, and nothing says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Otherwise {
    /// The tag from its opening brace to its closing one. In `{% liquid %}`, the line.
    pub tag: Span,
    /// What the tolerant parser made of it.
    pub sentence: String,
}

/// What the tolerant parser made of the markup of a tag or output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lax {
    /// A markup that strict Liquid reads as the tolerant parser read the old one, if there is one. It takes the place of [`Refusal::markup`].
    pub markup: Option<String>,
    /// What became of the place, as a sentence.
    pub sentence: String,
}

/// The kinds of faults, for programs. The spans are places in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An output without its `}}`.
    OpenOutput,
    /// A tag without its `%}`.
    OpenTag,
    /// A tag without a name: `{% %}`.
    NamelessTag,
    /// A tag that Liquid does not have.
    UnknownTag,
    /// An end that ends nothing.
    StrayEnd,
    /// `else`, `elsif` or `when` outside of their block.
    StrayBranch,
    /// A block without its end.
    OpenBlock,
    /// Blocks are nested too deep.
    TooDeep,
    /// `raw` or `doc` in `{% liquid %}`, where they can't end.
    VerbatimInLiquid,
    /// Words behind a tag that takes none, such as `raw`.
    Words,
    /// `doc` in a `doc`.
    NestedDoc,
    /// Lines of an inline comment that do not begin with `#`: the place of each first character.
    CommentLines { starts: Vec<u32> },
    /// A character that begins nothing: `=`, `&`, `!`, a curly quote.
    Character,
    /// A quote without its partner.
    OpenQuote,
    /// `['a']` without a name before it.
    BareBrackets,
    /// `list.0`: the place of the number.
    NumberAsProperty,
    /// A range whose end is not a number: `(true..2)`.
    RangeType,
    /// A value is missing, or something that is no value is in its place.
    Value,
    /// A name is missing behind a dot or an `as`, or a filter has none.
    Name,
    /// A bracket or a colon, or the `..` of a range, is missing.
    Sign { expected: &'static str },
    /// The markup could end here, and more follows. The place is all of the rest.
    Rest,
    /// `assign`, `capture`, `increment` or `decrement` of what is no name.
    Target,
    /// A loop without `in`.
    LoopWithoutIn,
    /// An option that a loop does not have.
    LoopOption,
    /// A snippet or section whose name is not in quotes.
    NameWithoutQuotes,
    /// `paginate` without `by`.
    PaginateWithoutBy,
    /// Arguments that the tag does not take, or not in this order.
    Arguments,
    /// `else` of a `case` with a condition.
    ElseWithWords,
}

impl Kind {
    /// The name of the kind, for programs.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::OpenOutput => "OpenOutput",
            Self::OpenTag => "OpenTag",
            Self::NamelessTag => "NamelessTag",
            Self::UnknownTag => "UnknownTag",
            Self::StrayEnd => "StrayEnd",
            Self::StrayBranch => "StrayBranch",
            Self::OpenBlock => "OpenBlock",
            Self::TooDeep => "TooDeep",
            Self::VerbatimInLiquid => "VerbatimInLiquid",
            Self::Words => "Words",
            Self::NestedDoc => "NestedDoc",
            Self::CommentLines { .. } => "CommentLines",
            Self::Character => "Character",
            Self::OpenQuote => "OpenQuote",
            Self::BareBrackets => "BareBrackets",
            Self::NumberAsProperty => "NumberAsProperty",
            Self::RangeType => "RangeType",
            Self::Value => "Value",
            Self::Name => "Name",
            Self::Sign { .. } => "Sign",
            Self::Rest => "Rest",
            Self::Target => "Target",
            Self::LoopWithoutIn => "LoopWithoutIn",
            Self::LoopOption => "LoopOption",
            Self::NameWithoutQuotes => "NameWithoutQuotes",
            Self::PaginateWithoutBy => "PaginateWithoutBy",
            Self::Arguments => "Arguments",
            Self::ElseWithWords => "ElseWithWords",
        }
    }

    /// Whether tags or blocks are not paired, so that it is not clear which part of the file belongs to which block.
    #[must_use]
    pub const fn is_pairing(&self) -> bool {
        matches!(
            self,
            Self::OpenOutput
                | Self::OpenTag
                | Self::StrayEnd
                | Self::StrayBranch
                | Self::OpenBlock
                | Self::UnknownTag
                | Self::NamelessTag
                | Self::TooDeep
                | Self::VerbatimInLiquid
        )
    }
}

/// The first fault of the markup of a tag or output that is alone, as in [`accepts`]. Its place counts from the beginning of the markup.
pub(crate) fn first_fault(name: &str, markup: &str) -> Option<Stop> {
    tags::read(name, markup, 0, &|_| false).err()
}

/// All places of a Liquid file that Shopify refuses, in the order in which Liquid reads them. Without one, the file is accepted.
#[must_use]
pub fn refusals(text: &str) -> Vec<Refusal> {
    blocks::read(text, false).refusals
}

/// The refused places of a file, and the accepted ones that show something else than they did.
#[must_use]
pub fn read(text: &str) -> Reading {
    blocks::read(text, true)
}

/// Whether Shopify accepts the markup of a tag or output that is alone: `name` is empty for an output. Blocks need no end here.
#[must_use]
pub fn accepts(name: &str, markup: &str) -> bool {
    tags::read(name, markup, 0, &|_| false).is_ok()
}

/// Where the name is that an `assign` sets. What stands before it is ignored.
#[must_use]
pub fn assign_target(markup: &str) -> Option<Span> {
    tags::assign_halves(markup).map(|(target, _)| target)
}
