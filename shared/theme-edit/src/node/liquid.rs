//! Blocks of Liquid, and the parts in other languages between them.

use std::ops::Range;

use theme::scan::ScanResult;
use theme::scan::liquid::{TokenKind, scan_asset, tokens};
use theme::text::Span;

use super::Finder;
use crate::kind::NodeKind;

const BLOCKS: [&str; 9] = ["if", "unless", "case", "for", "tablerow", "form", "paginate", "capture", "style"];
const BRANCHES: [&str; 3] = ["else", "elsif", "when"];

/// The structure of a file's Liquid.
pub(super) struct Blocks {
    /// The text with blanks for Liquid. Line ends stay.
    pub masked: String,
    /// Where another branch begins, and its number. Places with the same number are always printed together.
    pub branches: Vec<(usize, u32)>,
    /// Why the blocks can't be paired.
    pub doubt: Option<String>,
    /// The bodies of `{% style %}`.
    pub styles: Vec<Range<usize>>,
}

/// Adds the blocks of tags outside of `{% liquid %}`.
pub(super) fn blocks(finder: &mut Finder) -> Blocks {
    let text = finder.text;
    let (all, degraded) = tokens(text);
    let mut open: Vec<(&str, &str, Span, u32)> = Vec::new();
    let mut pairs: Vec<(&str, Range<usize>)> = Vec::new();
    let (mut branches, mut next, mut current) = (vec![(0, 0)], 1, 0);
    let mut doubt_at = degraded.first().map(|(at, _)| *at);
    let mut styles = Vec::new();
    for token in &all {
        let (start, end) = (token.span.start as usize, token.span.end as usize);
        if !text[start..].starts_with("{%") {
            continue;
        }
        let verbatim = match token.kind {
            TokenKind::Schema { .. } => "schema",
            TokenKind::Style { .. } => "stylesheet",
            TokenKind::Script { .. } => "javascript",
            TokenKind::Raw { .. } => "raw",
            _ => "",
        };
        if !verbatim.is_empty() {
            pairs.push((verbatim, start..end));
            continue;
        }
        let TokenKind::Tag { name, markup } = token.kind else { continue };
        let word = name.of(text);
        if BLOCKS.contains(&word) {
            let whole = &text[name.start as usize..(markup.end.max(name.end)) as usize];
            open.push((word, whole, token.span, current));
            current = next;
            next += 1;
            branches.push((end, current));
        } else if BRANCHES.contains(&word) {
            current = next;
            next += 1;
            branches.push((end, current));
        } else if let Some(of) = word.strip_prefix("end").filter(|of| BLOCKS.contains(of)) {
            match open.pop() {
                Some((word, whole, span, outer)) if word == of => {
                    pairs.push((whole, span.start as usize..end));
                    if word == "style" {
                        styles.push(span.end as usize..start);
                    }
                    current = outer;
                    branches.push((start, current));
                }
                // The blocks around it may be meant.
                Some(other) => {
                    doubt_at.get_or_insert(start);
                    if let Some(at) = open.iter().rev().take(64).position(|(word, ..)| *word == of) {
                        let (_, whole, span, outer) = open[open.len() - 1 - at];
                        open.truncate(open.len() - 1 - at);
                        pairs.push((whole, span.start as usize..end));
                        current = outer;
                    } else {
                        open.push(other);
                    }
                }
                None => {
                    doubt_at.get_or_insert(start);
                }
            }
        }
    }
    if let Some((_, _, span, _)) = open.last() {
        doubt_at.get_or_insert(span.start as usize);
    }
    let line = |at: usize| finder.lines.line_of(at as u32);
    let doubt = doubt_at.map(|at| format!("the Liquid blocks of the file do not pair (line {})", line(at)));
    for (name, span) in pairs {
        finder.add(NodeKind::LiquidBlock, name, span, doubt.as_ref());
    }
    let masked = scan_asset(text, &mut ScanResult::default());
    Blocks { masked, branches, doubt, styles }
}
