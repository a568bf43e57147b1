//! How a file differs from the one before.

use theme::text::LineRange;

use crate::diff::{Hunk, hunks};
use crate::text::{Text, line_range};

/// How a new file differs from the old one.
pub(crate) struct Differs {
    /// The lines of the new file. Where lines were only removed, the line behind them.
    pub lines: Vec<LineRange>,
    /// How many lines the new file has.
    pub total: usize,
}

impl Differs {
    pub(crate) fn of(changed: &[Hunk], new: &Text) -> Self {
        let total = new.count();
        let range = |hunk: &Hunk| {
            if hunk.new.is_empty() {
                let line = hunk.new.start.min(total.saturating_sub(1));
                line_range(line, line + 1)
            } else {
                line_range(hunk.new.start, hunk.new.end)
            }
        };
        Self { lines: changed.iter().map(range).collect(), total }
    }
}

/// How a new file differs from the old one.
pub(crate) fn differs(before: &[u8], after: &[u8]) -> Differs {
    let (old, new) = (Text::new(before), Text::new(after));
    Differs::of(&hunks(&old.lines(), &new.lines()), &new)
}

/// The lines of the new file that differ from the old one.
pub(crate) fn changed_lines(before: &[u8], after: &[u8]) -> Vec<LineRange> {
    differs(before, after).lines
}
