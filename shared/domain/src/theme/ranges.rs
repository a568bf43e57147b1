//! Which lines of a file to look at first.
//!
//! Within one file other words tell than between files: in a stylesheet of the footer `footer` stands everywhere. So
//! a word counts here by how few of the file's own units have it.

use super::index::ThemeIndex;
use super::query::Query;
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

impl ThemeIndex {
    /// The best units of a file within its budget, joined where they touch.
    pub(super) fn ranges(&self, file: u32, query: &Query, weights: &RangeWeights) -> Vec<LineRange> {
        let record = &self.files[file as usize];
        let scores = self.unit_scores(file, query, weights);
        let mut units: Vec<(f32, usize)> = (0..scores.len())
            .map(|at| {
                let side = |at: Option<usize>| at.and_then(|at| scores.get(at)).copied().unwrap_or(0.0);
                let score = scores[at] + weights.neighbour * (side(at.checked_sub(1)) + side(Some(at + 1)));
                (score / (record.units[at].lines.count() as f32).powf(weights.density), at)
            })
            .filter(|&(score, _)| score > 0.0)
            .collect();
        units.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let budget = ((record.lines as f32).sqrt() * weights.budget) as u32;
        let (mut taken, mut lines) = (Vec::new(), 0);
        for (_, at) in units {
            let range = record.units[at].lines;
            if lines > 0 && lines + range.count() > budget {
                continue;
            }
            lines += range.count();
            taken.push(range);
        }
        taken.sort_unstable();
        let mut joined: Vec<LineRange> = Vec::new();
        for range in taken {
            match joined.last_mut() {
                Some(last) if last.end + 1 >= range.start => last.end = range.end,
                _ => joined.push(range),
            }
        }
        joined
    }

    fn unit_scores(&self, file: u32, query: &Query, weights: &RangeWeights) -> Vec<f32> {
        let first = self.postings.unit_starts[file as usize];
        let end = self.postings.unit_starts[file as usize + 1];
        let count = (end - first) as usize;
        let mut scores = vec![0.0_f32; count];
        let mut group_scores = vec![0.0_f32; count];
        for group in &query.groups {
            for &(term, share) in &group.variants {
                let postings = self.postings.units(term);
                let start = postings.partition_point(|posting| posting.unit() < first as usize);
                for posting in postings[start..].iter().take_while(|posting| posting.unit() < end as usize) {
                    let times = f32::from(posting.count());
                    let score = &mut group_scores[posting.unit() - first as usize];
                    *score = score.max(share * times / (weights.saturation + times));
                }
            }
            let having = group_scores.iter().filter(|score| **score > 0.0).count();
            let rarity = group.weight.max(LEAST_WEIGHT)
                * ((count as f32 + 1.0) / (having as f32 + 0.5)).ln().max(0.05);
            for (score, own) in scores.iter_mut().zip(&mut group_scores) {
                *score += rarity * std::mem::take(own);
            }
        }
        scores
    }
}
