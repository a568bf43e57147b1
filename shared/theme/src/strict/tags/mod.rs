//! The grammar of each tag.

mod branches;
mod loops;
mod partials;
mod shopify;
mod variables;

pub use self::branches::else_of_case;
pub use self::variables::halves as assign_halves;
use super::expression::{Cursor, Read, Stop};
use super::pieces::is_blank;
use super::{Kind, Span};

/// Tags of Liquid with an end, whose content is Liquid.
pub const BLOCKS: [&str; 13] = [
    "if",
    "unless",
    "case",
    "for",
    "tablerow",
    "capture",
    "ifchanged",
    "form",
    "paginate",
    "style",
    "block",
    "partial",
    "comment",
];

/// Tags whose content is no Liquid. `comment` is not one of them: it counts the comments in it.
pub const VERBATIM: [&str; 5] = ["raw", "doc", "schema", "stylesheet", "javascript"];

const SINGLE: [&str; 15] = [
    "assign",
    "break",
    "content_for",
    "continue",
    "cycle",
    "decrement",
    "echo",
    "include",
    "increment",
    "layout",
    "render",
    "section",
    "sections",
    "#",
    "liquid",
];

/// Whether a tag begins with this name. Ends and branches are no tags of their own.
pub fn is_tag(name: &str) -> bool {
    SINGLE.contains(&name) || BLOCKS.contains(&name) || VERBATIM.contains(&name)
}

/// Reads the markup of a tag, or of an output if `name` is empty. `is_block` says whether a name is a variable that holds a block of the section.
///
/// # Errors
/// The first fault.
pub fn read(name: &str, markup: &str, at: usize, is_block: &dyn Fn(&str) -> bool) -> Read {
    match name {
        "" | "echo" => Cursor::new(markup, at)?.filtered(),
        "assign" => variables::assign(markup, at),
        "capture" | "increment" | "decrement" => variables::target(markup, at),
        "if" | "unless" | "elsif" => branches::condition(markup, at),
        "case" => branches::case(markup, at),
        "when" => branches::when(markup, at),
        "for" => loops::for_loop(markup, at),
        "tablerow" => loops::tablerow(markup, at),
        "cycle" => loops::cycle(markup, at),
        "render" => partials::render(markup, at, is_block),
        "include" => partials::include(markup, at),
        "#" => comment(markup, at),
        "raw" => no_words(markup, at, "Syntax Error in 'raw' - Valid syntax: raw"),
        "doc" => no_words(markup, at, "Syntax Error in 'doc' - Valid syntax: {% doc %}{% enddoc %}"),
        "form" => shopify::form(markup, at),
        "paginate" => shopify::paginate(markup, at),
        "section" | "sections" => shopify::section(markup, at, name),
        "content_for" => shopify::content_for(markup, at),
        "layout" => shopify::layout(markup, at),
        "block" | "partial" => shopify::block(markup, at, name),
        "style" | "javascript" | "schema" => {
            no_words(markup, at, &format!("'{name}' tag does not accept any arguments"))
        }
        "stylesheet" => shopify::stylesheet(markup, at),
        // `break`, `continue`, `ifchanged` and `comment` ignore what follows.
        _ => Ok(()),
    }
}

/// Nothing may follow.
fn no_words(markup: &str, at: usize, said: &str) -> Read {
    let words = trimmed(markup);
    if words.is_empty() {
        return Ok(());
    }
    let start = at + markup.len() - markup.trim_start_matches(blank).len();
    Err(Stop::new(Span::new(start, start + words.len()), Kind::Words, said))
}

fn blank(c: char) -> bool {
    u8::try_from(c).is_ok_and(is_blank)
}

fn trimmed(markup: &str) -> &str {
    markup.trim_matches(blank)
}

/// Each further line of an inline comment begins with `#`, or is empty.
fn comment(markup: &str, at: usize) -> Read {
    let mut starts = Vec::new();
    let mut line_at = at;
    for (index, line) in markup.split_inclusive('\n').enumerate() {
        let words = line.trim_start_matches(blank);
        if index > 0 && !words.is_empty() && !words.starts_with('#') {
            starts.push((line_at + line.len() - words.len()) as u32);
        }
        line_at += line.len();
    }
    let Some(&first) = starts.first() else { return Ok(()) };
    let said = "Syntax error in tag '#' - Each line of comments must be prefixed by the '#' character";
    Err(Stop::new(Span { start: first, end: first }, Kind::CommentLines { starts }, said))
}
