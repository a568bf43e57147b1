//! Cuts a file at the ends of its own structures.
//!
//! A *unit* is the smallest part that is shown: a rule, a method, a setting, a few lines of markup. A *chunk* is a run
//! of units with 30 to 60 lines in total. A request is matched against each chunk as a whole.

use super::scan::ScanResult;
use super::text::{LineRange, Lines};

/// The largest number of lines in a unit.
pub const MAX_UNIT_LINES: usize = 12;
const UNIT_LINES: std::ops::Range<usize> = 3..MAX_UNIT_LINES;
const CHUNK_LINES: std::ops::Range<usize> = 30..60;

/// A run of lines that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    pub lines: LineRange,
    /// The chunk that contains the unit, counted from 0 in the file.
    pub chunk: u32,
}

/// Cuts the whole file. The units follow each other without gaps.
pub fn units(text: &str, lines: &Lines, found: &ScanResult, minified: bool) -> Vec<Unit> {
    let costs = if minified { vec![0; lines.count() as usize] } else { costs(text, lines, found) };
    let unit_starts = cut(&costs, UNIT_LINES, |at| costs[at]);
    // Each chunk begins where a unit begins.
    let mut is_start = vec![false; costs.len()];
    for &start in &unit_starts {
        is_start[start] = true;
    }
    let chunk_starts = cut(&costs, CHUNK_LINES, |at| if is_start[at] { costs[at] } else { u32::MAX });
    let mut chunk = 0;
    let ends = unit_starts.iter().skip(1).copied().chain([costs.len()]);
    let mut units = Vec::with_capacity(unit_starts.len());
    for (&start, end) in unit_starts.iter().zip(ends) {
        if chunk_starts.get(chunk as usize + 1).is_some_and(|&next| next <= start) {
            chunk += 1;
        }
        units.push(Unit { lines: LineRange::new(start as u32 + 1, end as u32), chunk });
    }
    units
}

/// Goes through the lines and chooses the cheapest of the allowed places for each next cut. Of equally cheap places it
/// takes the last.
fn cut(costs: &[u32], allowed: std::ops::Range<usize>, cost: impl Fn(usize) -> u32) -> Vec<usize> {
    let mut starts = vec![0];
    let mut at = 0;
    while at + allowed.end < costs.len() {
        let places = at + allowed.start..=at + allowed.end;
        at = places.rev().min_by_key(|&place| cost(place)).expect("the range is not empty");
        starts.push(at);
    }

    starts
}

/// The cost of beginning a unit at each line: it grows with the nesting depth and the indentation.
fn costs(text: &str, lines: &Lines, found: &ScanResult) -> Vec<u32> {
    let count = lines.count() as usize;
    let mut depth_changes = vec![0_i32; count + 2];
    for &block in &found.blocks {
        let range = lines.range_of(block);
        // The first line counts as outside the block, and the line of the closing brace as inside.
        depth_changes[range.start as usize + 1] += 1;
        depth_changes[(range.end as usize + 1).max(range.start as usize + 1)] -= 1;
    }
    let mut is_cut = vec![false; count + 2];
    for &offset in &found.cuts {
        is_cut[lines.line_of(offset) as usize] = true;
    }
    let mut depth = 0;
    let mut after_blank = true;
    let mut costs = Vec::with_capacity(count);
    for line in 1..=count {
        depth += depth_changes[line];
        let content = lines.span_of(line as u32).of(text).as_bytes();
        let indent = content.iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
        let content = content.trim_ascii();
        let blank = content.is_empty();
        let mut cost = 8 * depth.max(0) as u32 + indent.min(60) as u32 * 2;
        if after_blank && !blank {
            cost = cost.saturating_sub(3);
        }
        // A blank line belongs to the text before it, and a closing bracket to what it closes.
        if blank {
            cost += 100;
        } else if matches!(content[0], b'}' | b')' | b']')
            || content.starts_with(b"{%- end")
            || content.starts_with(b"{% end")
        {
            cost += 6;
        }
        if is_cut[line] {
            cost = 0;
        }
        costs.push(cost);
        after_blank = blank;
    }
    costs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::path::FileKind;
    use crate::scan::scan;

    fn cut_up(path: &str, text: &str) -> Vec<Unit> {
        let lines = Lines::new(text);
        units(text, &lines, &scan(FileKind::of(path), path, text), false)
    }

    #[test]
    fn rules_are_not_cut_in_two() {
        let rule = |n: usize| format!(".r{n} {{\n{}}}\n\n", "  top: 0;\n".repeat(5));
        let text: String = (0..12).map(rule).collect();
        let starts: Vec<u32> = cut_up("assets/a.css", &text).iter().map(|u| u.lines.start).collect();
        assert!(starts.iter().all(|start| (start - 1) % 8 == 0), "{starts:?}");
        assert!(starts.len() >= 4);
    }

    #[test]
    fn chunks_are_runs_of_units() {
        let text = "<p>line</p>\n".repeat(400);
        let units = cut_up("sections/a.liquid", &text);
        let mut sizes = vec![0; units.last().unwrap().chunk as usize + 1];
        for unit in &units {
            sizes[unit.chunk as usize] += unit.lines.count();
        }
        assert!(sizes[..sizes.len() - 1].iter().all(|size| (30..=60).contains(size)), "{sizes:?}");
    }

    proptest! {
        #[test]
        fn units_cover_every_line_once(text in "([ a-z{}%.#;:<>/\"']{0,12}\n){0,90}") {
            for path in ["sections/a.liquid", "assets/a.css", "assets/a.js", "templates/a.json"] {
                let mut next = 1;
                for unit in cut_up(path, &text) {
                    prop_assert_eq!(unit.lines.start, next);
                    next = unit.lines.end + 1;
                }
                prop_assert_eq!(next, Lines::new(&text).count() + 1);
            }
        }
    }
}
