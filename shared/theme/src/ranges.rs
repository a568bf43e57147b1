//! Chooses the lines of a file to look at first.
//!
//! Within a file, different words are distinctive than between files. In the footer's stylesheet, for example, `footer`
//! is everywhere. So here the weight of a word depends on how few of the file's own units contain it.

use std::collections::BinaryHeap;
use std::ops::Range;

use super::chunks::MAX_UNIT_LINES;
use super::index::ThemeIndex;
use super::query::{Group, Query};
use super::text::LineRange;

/// Words like `mobile` and `check` say little about the file, but they do say where in the file to look.
const LEAST_WEIGHT: f32 = 0.6;

/// The most places of edits that are shown of a file.
const MAX_EDITED: usize = 100;

/// The parameters for choosing lines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RangeWeights {
    /// How much the units directly before and after a unit contribute to its score.
    pub neighbour: f32,
    pub saturation: f32,
    /// The number of lines shown of a file, in square roots of its length. So most of a small file is shown, and little
    /// of a large one.
    pub budget: f32,
    /// How much a unit's length lowers its score: 0 means not at all, 1 means score per line.
    pub density: f32,
    /// The share of the budget that may go to the lines of the last edits.
    pub edited: f32,
    /// How many lines together tell a place. More are a rewriting, of which the request tells the best parts.
    pub edited_lines: u32,
    /// How many of the last edits are shown.
    pub edits: usize,
    /// The budget of a file that was edited, relative to that of another file.
    pub edited_budget: f32,
}

/// Chooses the lines of several files for one request. It is reused from file to file.
pub(super) struct RangeChooser<'a> {
    index: &'a ThemeIndex,
    query: &'a Query,
    weights: &'a RangeWeights,
    /// The divisor of a unit's score, indexed by its number of lines.
    sizes: [f32; MAX_UNIT_LINES + 1],
    /// The scores of the file's units, with an empty entry before the first and after the last.
    scores: Vec<f32>,
    /// The scores for one group. All zero between groups.
    group_scores: Vec<f32>,
    best: BinaryHeap<Candidate>,
    /// The units to show.
    taken: Vec<usize>,
}

/// A unit and its score packed into one number, so that a better unit has a greater number. Of equal scores the earlier
/// unit has the greater number. This works because the bits of positive floats sort like the floats.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate(u64);

impl Candidate {
    fn new(score: f32, unit: usize) -> Self {
        Self(u64::from(score.to_bits()) << 32 | u64::from(!(unit as u32)))
    }

    fn unit(self) -> usize {
        !(self.0 as u32) as usize
    }
}

impl<'a> RangeChooser<'a> {
    pub fn new(index: &'a ThemeIndex, query: &'a Query, weights: &'a RangeWeights) -> Self {
        let sizes = std::array::from_fn(|lines| (lines as f32).powf(weights.density));
        Self {
            index,
            query,
            weights,
            sizes,
            scores: Vec::new(),
            group_scores: Vec::new(),
            best: BinaryHeap::new(),
            taken: Vec::new(),
        }
    }

    /// The lines of the last edits and the best units of a file within its line budget. Adjacent lines are joined.
    /// `edits` are the lines of each edit of the file, newest first.
    pub fn of(&mut self, file: u32, edits: impl Iterator<Item = &'a [LineRange]> + Clone) -> Vec<LineRange> {
        self.score(file);
        let record = &self.index.files[file as usize];
        let budget = (record.lines as f32).sqrt() * self.weights.budget;
        let mut edited = Self::edited(
            edits.clone().take(self.weights.edits),
            self.weights.edited_lines,
            record.lines,
            (budget * self.weights.edited) as u32,
        );
        let budget = if edited.is_empty() { budget } else { budget * self.weights.edited_budget } as u32;
        let mut shortest = u32::MAX;
        let scored = record.units.iter().zip(self.scores.windows(3)).enumerate();
        self.best.clear();
        self.best.extend(scored.filter_map(|(at, (unit, scores))| {
            let score = scores[1] + self.weights.neighbour * (scores[0] + scores[2]);
            let lines = unit.lines.count();
            (score > 0.0).then(|| {
                shortest = shortest.min(lines);
                let size = self.sizes.get(lines as usize).copied();
                Candidate::new(score / size.unwrap_or_else(|| (lines as f32).powf(self.weights.density)), at)
            })
        }));
        let mut lines = edited.iter().map(|range| range.count()).sum::<u32>();
        self.taken.clear();
        while lines == 0 || lines.saturating_add(shortest) <= budget {
            let Some(unit) = self.best.pop().map(Candidate::unit) else { break };
            let count = record.units[unit].lines.count();
            if lines == 0 || lines + count <= budget {
                lines += count;
                self.taken.push(unit);
            }
        }
        if edited.is_empty() && self.taken.is_empty() {
            // The request says nothing about the file: it is here because it was rewritten before.
            edited = Self::edited(edits.take(1), budget, record.lines, budget);
        }
        let taken = self.taken.iter().map(|&unit| record.units[unit].lines);
        let mut ranges: Vec<LineRange> = taken.chain(edited).collect();
        join(&mut ranges);
        ranges
    }

    /// The lines that the last edits changed, newest edit first, at most `budget` lines. They are shown without the
    /// lines around them, so that many places fit in.
    fn edited(
        edits: impl Iterator<Item = &'a [LineRange]>,
        longest: u32,
        lines: u32,
        budget: u32,
    ) -> Vec<LineRange> {
        let mut edited: Vec<LineRange> = Vec::new();
        let mut left = budget;
        // The file may be shorter than it was.
        for &range in edits.flatten().filter(|range| range.count() <= longest && range.end <= lines) {
            if range.count() > left || edited.len() == MAX_EDITED {
                break;
            }
            if !edited.iter().any(|shown| shown.start <= range.start && range.end <= shown.end) {
                left -= range.count();
                edited.push(range);
            }
        }
        edited
    }

    fn score(&mut self, file: u32) {
        let starts = &self.index.postings.unit_starts;
        let units = starts[file as usize]..starts[file as usize + 1];
        self.scores.clear();
        self.scores.resize(units.len() + 2, 0.0);
        self.group_scores.clear();
        self.group_scores.resize(units.len() + 2, 0.0);
        for group in &self.query.groups {
            if !self.score_group(group, &units) {
                continue;
            }
            let having = self.group_scores.iter().filter(|score| **score > 0.0).count();
            let rarity = group.weight.max(LEAST_WEIGHT)
                * ((units.len() as f32 + 1.0) / (having as f32 + 0.5)).ln().max(0.05);
            for (score, own) in self.scores.iter_mut().zip(&mut self.group_scores) {
                *score += rarity * std::mem::take(own);
            }
        }
    }

    /// Scores each unit with the group's best variant. Returns whether any unit has a variant.
    fn score_group(&mut self, group: &Group, units: &Range<u32>) -> bool {
        let mut has_any = false;
        for &(term, share) in &group.variants {
            let postings = self.index.postings.units(term);
            let start = postings.partition_point(|posting| posting.unit() < units.start as usize);
            for posting in postings[start..].iter().take_while(|posting| posting.unit() < units.end as usize)
            {
                let times = f32::from(posting.count());
                let score = &mut self.group_scores[posting.unit() - units.start as usize + 1];
                *score = score.max(share * times / (self.weights.saturation + times));
                has_any = true;
            }
        }
        has_any
    }
}

/// Sorts ranges and joins those that overlap or follow each other.
fn join(ranges: &mut Vec<LineRange>) {
    ranges.sort_unstable();
    ranges.dedup_by(|next, before| {
        let is_joined = next.start <= before.end + 1;
        if is_joined {
            before.end = before.end.max(next.end);
        }
        is_joined
    });
}
