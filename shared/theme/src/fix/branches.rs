//! `else if`: Liquid accepts it and ignores the condition, so the branch is shown as an `else`.

use super::places::Edit;
use crate::scan::liquid::{self, TokenKind};
use crate::strict::{self, Refusal};
use crate::text::Span;

/// An `else if` that is written as `elsif`.
pub struct Branch {
    pub tag: Span,
    pub edit: Edit,
}

/// The places, if all blocks of the file are paired.
pub fn read(text: &str, found: &[Refusal]) -> Vec<Branch> {
    if found.iter().any(|refusal| refusal.kind.is_pairing()) {
        return Vec::new();
    }
    let mut open: Vec<&str> = Vec::new();
    let mut branches = Vec::new();
    for token in liquid::tokens(text).0 {
        let TokenKind::Tag { name, markup } = token.kind else { continue };
        let word = name.of(text);
        match word {
            "if" | "unless" | "case" | "for" | "tablerow" => open.push(word),
            "endif" | "endunless" | "endcase" | "endfor" | "endtablerow" => drop(open.pop()),
            "else" if matches!(open.last(), Some(&("if" | "unless"))) => {
                let condition = markup.of(text).trim_start().strip_prefix("if");
                let is_clear = condition.is_some_and(|rest| {
                    rest.starts_with([' ', '\t', '(']) && strict::accepts("elsif", rest.trim())
                });
                if let Some(at) = markup.of(text).find("if").filter(|_| is_clear) {
                    let span = Span { start: name.start, end: markup.start + at as u32 + 2 };
                    branches.push(Branch { tag: token.span, edit: Edit { span, new: "elsif".to_owned() } });
                }
            }
            _ => {}
        }
    }
    branches
}
