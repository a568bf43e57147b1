//! The pairing of blocks: what opens, what ends, and what has no end.

use super::{BLOCKS, Open, Pair, Walker};
use crate::check::{MAX_NOTES, indent_of};
use crate::scan::DegradedReason;
use crate::strict::MAX_NESTING;

impl<'a> Walker<'a, '_> {
    pub(super) fn unclosed_pieces(&mut self, degraded: &[(usize, DegradedReason)]) {
        for &(at, reason) in degraded {
            self.is_broken |= matches!(
                reason,
                DegradedReason::UnclosedTag | DegradedReason::UnclosedOutput | DegradedReason::UnclosedBlock
            );
            if reason == DegradedReason::UnclosedBlock {
                let name = self.text[at..].trim_start_matches(['{', '%', '-', ' ']);
                let end = name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(name.len());
                self.unpaired(at, format!("`{}` has no `end{0}`", &name[..end]));
            }
        }
    }

    /// Notes where blocks and ends are not paired.
    fn unpaired(&mut self, at: usize, message: String) {
        self.misplaced.push((at, message));
    }

    pub(super) fn other(&mut self, at: usize, name: &'a str) {
        if let Some(ended) = name.strip_prefix("end")
            && (BLOCKS.contains(&ended)
                || ["comment", "raw", "schema", "stylesheet", "javascript", "doc"].contains(&ended))
        {
            self.end(at, ended);
            return;
        }
        let lower = name.to_ascii_lowercase();
        if lower == "fi" || lower.starts_with("end") {
            // It stands for the end of the innermost block, so that one mistake gives one finding.
            self.is_broken = true;
            self.stack.pop();
        }
    }

    /// The width of the blanks before a tag, if the tag begins its line.
    fn indent(&self, at: usize) -> Option<usize> {
        indent_of(self.text.as_bytes(), at)
    }

    pub(super) fn open(&mut self, name: &'a str, at: usize) -> &mut Open<'a> {
        if self.stack.len() >= MAX_NESTING {
            self.is_broken = true;
            self.stack.pop();
        }
        let indent = self.indent(at);
        self.stack.push(Open {
            name,
            at,
            indent,
            has_else: false,
            variable: None,
            case_of_type: false,
            has_when: false,
            block_types: None,
        });
        self.stack.last_mut().expect("one was pushed")
    }

    pub(super) fn end(&mut self, at: usize, name: &'a str) {
        if self.misplaced.len() >= MAX_NOTES {
            self.is_broken = true;
            return; // a text of ends only, each of which would look back
        }
        match self.stack.iter().rposition(|open| open.name == name) {
            Some(index) if index + 1 == self.stack.len() => {
                let open = self.stack.pop().expect("it is there");
                self.pair(&open, at);
            }
            Some(index) => {
                self.is_broken = true;
                let inner = self.stack[index + 1..].last().expect("it is not the last");
                // How many ends of the inner block follow that no later opening explains.
                let rest =
                    self.ends.get(inner.name).map_or(0, |ends| ends.iter().filter(|&&end| end > at).count());
                let begun = self
                    .opens
                    .get(inner.name)
                    .map_or(0, |opens| opens.iter().filter(|&&open| open > at).count());
                let below = self.stack[..index].iter().filter(|open| open.name == inner.name).count();
                if rest > begun + below {
                    self.unpaired(at, format!("`end{name}` stands before the end of `{}`", inner.name));
                    self.stack.remove(index);
                    return;
                }
                let rest: Vec<Open> = self.stack.drain(index + 1..).collect();
                for open in rest.iter().rev() {
                    self.unclosed(open);
                }
                let open = self.stack.pop().expect("it is there");
                self.pair(&open, at);
            }
            None => {
                self.is_broken = true;
                // If an opening was lost, an outer block was closed by the end of an inner one, further to the right.
                let culprit = self
                    .pairs
                    .iter()
                    .filter(|pair| {
                        pair.name == name && pair.indents.is_some_and(|(open, close)| close > open)
                    })
                    .map(|pair| pair.close)
                    .min();
                self.unpaired(culprit.unwrap_or(at), format!("`end{name}` has no `{name}`"));
            }
        }
    }

    fn pair(&mut self, open: &Open<'a>, close: usize) {
        let indents = open.indent.zip(self.indent(close));
        self.pairs.push(Pair { name: open.name.to_owned(), open: open.at, close, indents });
        if open.name == "case" && !open.has_when {
            self.doubtful(open.at, "`case` has no `when`");
        }
    }

    /// Reports a block without its end. If an inner block of the same kind ends further to the left than it begins,
    /// the end is missing there.
    fn unclosed(&mut self, open: &Open<'a>) {
        self.is_broken = true;
        let culprit = self
            .pairs
            .iter()
            .filter(|pair| pair.name == open.name && pair.open > open.at)
            .filter(|pair| pair.indents.is_some_and(|(open, close)| close < open))
            .map(|pair| pair.open)
            .max();
        self.unpaired(culprit.unwrap_or(open.at), format!("`{}` has no `end{0}`", open.name));
    }

    pub(super) fn close_rest(&mut self) {
        for open in std::mem::take(&mut self.stack).iter().rev() {
            self.unclosed(open);
        }
    }
}
