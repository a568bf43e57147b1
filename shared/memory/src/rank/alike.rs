//! How alike the embeddings of a query and of documents are.

use std::ops::Range;

use super::Weights;
use super::scope::Scope;
use crate::document::Kind;
use crate::index::Index;
use crate::search::Query;
use crate::vectors;

/// Agreement of vectors with words, in standard deviations: up to here it is chance, and vectors count nothing.
const CHANCE: f32 = 2.0;
/// From here on vectors count fully.
const CERTAINTY: f32 = 6.0;

/// For each document, what its embedding adds to its score. `own` are the scores of the words in the documents
/// themselves.
///
/// Vectors that say nothing, because they are random, constant or of another text, agree with the words only by chance.
/// Then the result is `None`.
pub(super) fn scores(
    index: &Index,
    query: &Query<'_>,
    scope: &Scope,
    weights: &Weights,
    own: &[f32],
) -> Option<Vec<f32>> {
    let asked = query.vector?;
    let (scale, values) = vectors::quantized(asked.values)?;
    let values: Vec<i16> = values.into_iter().map(i16::from).collect();
    let mut cosines = vec![f32::NAN; index.documents];
    for loaded in &index.segments {
        let segment = &loaded.segment;
        if segment.model() == asked.model && segment.dimension == values.len() {
            for (document, of, stored) in segment.all_vectors() {
                cosines[loaded.first + document as usize] = vectors::cosine(&values, scale, stored, of);
            }
        }
    }
    let parts = || {
        index.segments.iter().zip(&scope.allowed).flat_map(|(loaded, allowed)| {
            let parts = loaded.segment.parts.iter().zip(allowed).filter(|(_, is_allowed)| **is_allowed);
            parts.map(|(part, _)| {
                let range =
                    loaded.first + part.documents.start as usize..loaded.first + part.documents.end as usize;
                (part.kind, range)
            })
        })
    };
    // Within each part, because neighbours are alike in both.
    let mut agreement = Agreement::default();
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for (_, range) in parts() {
        agreement.add(own[range.clone()].iter().copied().zip(cosines[range.clone()].iter().copied()));
        for cosine in cosines[range].iter().filter(|cosine| !cosine.is_nan()).copied().map(f64::from) {
            count += 1.0;
            sum += cosine;
            squares += cosine * cosine;
        }
    }
    let trust = ((agreement.score() - CHANCE) / (CERTAINTY - CHANCE)).clamp(0.0, 1.0);
    if trust == 0.0 {
        return None;
    }
    let mean = sum / count;
    let spread = (squares / count - mean * mean).max(1e-9).sqrt();
    let mut scores = vec![0.0; index.documents];
    let full = weights.vector * trust;
    for (kind, range) in parts() {
        let (near, further) =
            if kind == Kind::Raw { (weights.vector_near, weights.vector_further) } else { (0.0, 0.0) };
        let deviation = |at: Option<usize>| deviation(&cosines, &range, at, mean, spread);
        for at in range.clone() {
            let alike = deviation(Some(at))
                + near * (deviation(at.checked_sub(1)) + deviation(Some(at + 1)))
                + further * (deviation(at.checked_sub(2)) + deviation(Some(at + 2)));
            scores[at] = (full * alike / weights.vector_spread).clamp(0.0, full);
        }
    }
    Some(scores)
}

/// How far a cosine is from the mean, in standard deviations. 0 for documents without a vector or of another part.
fn deviation(cosines: &[f32], part: &Range<usize>, at: Option<usize>, mean: f64, spread: f64) -> f32 {
    let cosine = at.filter(|at| part.contains(at)).map_or(f32::NAN, |at| cosines[at]);
    if cosine.is_nan() { 0.0 } else { ((f64::from(cosine) - mean) / spread) as f32 }
}

/// How much two measures of the same documents agree, within groups.
#[derive(Default)]
struct Agreement {
    count: f64,
    common: f64,
    first: f64,
    second: f64,
}

impl Agreement {
    /// Adds a group. Documents without the second measure are left out.
    fn add(&mut self, pairs: impl Iterator<Item = (f32, f32)> + Clone) {
        let pairs = pairs.filter(|(_, second)| !second.is_nan()).map(|(a, b)| (f64::from(a), f64::from(b)));
        let (mut count, mut sums) = (0.0, (0.0, 0.0));
        for (first, second) in pairs.clone() {
            count += 1.0;
            sums = (sums.0 + first, sums.1 + second);
        }
        if count < 2.0 {
            return;
        }
        for (first, second) in pairs {
            let (first, second) = (first - sums.0 / count, second - sums.1 / count);
            self.common += first * second;
            self.first += first * first;
            self.second += second * second;
        }
        self.count += count - 1.0;
    }

    /// The correlation in standard deviations of that of unrelated measures.
    fn score(&self) -> f32 {
        let both = (self.first * self.second).sqrt();
        if both < 1e-12 { 0.0 } else { (self.common / both * self.count.sqrt()) as f32 }
    }
}
