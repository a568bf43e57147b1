//! Which lines of a file to look at first.
//!
//! Within one file other words tell than between files: in a stylesheet of the footer `footer` stands everywhere. So
//! a word counts here by how few of the file's own units have it.

use std::collections::BinaryHeap;
use std::ops::Range;

use super::chunks::MAX_UNIT_LINES;
use super::index::ThemeIndex;
use super::query::{Group, Query};
use super::text::LineRange;

/// Words that say little of which file (`mobile`, `check`) do say where in it.
const LEAST_WEIGHT: f32 = 0.6;

/// The numbers that the choice of lines depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RangeWeights {
    /// How much of the units right before and after a unit counts for it.
    pub neighbour: f32,
    pub saturation: f32,
    /// Lines shown of a file, in square roots of its length: most of a small one, few of a large one.
    pub budget: f32,
    /// How much a unit's length counts against it: 0 for not at all, 1 for its score per line.
    pub density: f32,
}

/// Chooses the lines of one file after the other, for one request.
pub(super) struct RangeChooser<'a> {
    index: &'a ThemeIndex,
    query: &'a Query,
    weights: &'a RangeWeights,
    /// By a unit's lines, what its score is divided by.
    sizes: [f32; MAX_UNIT_LINES + 1],
    /// The scores of the file's units, with nothing before the first and after the last.
    scores: Vec<f32>,
    /// The same for one group; all zero between groups.
    group_scores: Vec<f32>,
    best: BinaryHeap<Candidate>,
    /// The units that are shown.
    taken: Vec<usize>,
}

/// A unit with its score, in one number that is the greater the better the unit is, and of equals the earlier: the bits
/// of positive numbers are in the order of the numbers.
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

    /// The best units of a file within its budget, joined where they touch.
    pub fn of(&mut self, file: u32) -> Vec<LineRange> {
        self.score(file);
        let record = &self.index.files[file as usize];
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
        let budget = ((record.lines as f32).sqrt() * self.weights.budget) as u32;
        let mut lines = 0;
        self.taken.clear();
        while let Some(unit) = self.best.pop().map(Candidate::unit) {
            let count = record.units[unit].lines.count();
            if lines == 0 || lines + count <= budget {
                lines += count;
                self.taken.push(unit);
            }
            if lines + shortest > budget {
                break;
            }
        }
        self.taken.sort_unstable();
        let mut joined: Vec<LineRange> = Vec::with_capacity(self.taken.len());
        for range in self.taken.iter().map(|&unit| record.units[unit].lines) {
            match joined.last_mut() {
                Some(last) if last.end + 1 >= range.start => last.end = range.end,
                _ => joined.push(range),
            }
        }
        joined
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

    /// The group's best variant in every unit that has any; says whether one has.
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
