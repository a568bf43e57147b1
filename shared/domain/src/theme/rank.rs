//! Ranking: how well each file, and each passage of it, answers a request.
//!
//! A file's score is a weighted sum of [`Feature`]s, each between 0 and about 1, so that no prior can outweigh what
//! the words say.

use rustc_hash::FxHashMap;

use super::cues;
use super::fields::{FIELDS, Field};
use super::index::ThemeIndex;
use super::query::{self, Query, QueryWeights};
use super::ranges::RangeWeights;
use super::words::TermId;

/// What a file's score is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Fielded BM25 over the whole file.
    Fields,
    /// BM25 of the best chunk.
    Chunk,
    /// The share of the request that the best chunk has any word of.
    ChunkCover,
    /// BM25 of the best unit.
    Unit,
    Identifier,
    Comment,
    Label,
    Text,
    Body,
    /// How much of the request the path says, of what paths of this theme can say.
    Path,
    /// How much of the file's own name the request says.
    Name,
    /// The best `Fields` of what it renders or loads, or of what renders or loads it.
    Near,
    /// The same of `Path`.
    NearPath,
    StyleCue,
    ScriptCue,
    SettingCue,
    MarkupCue,
    ReleaseCue,
    TemplateCue,
    LayoutCue,
    /// How many files need it, on a logarithmic scale.
    Hub,
    /// How long it is, on a logarithmic scale.
    Size,
}

pub const FEATURES: usize = Feature::Size as usize + 1;

/// The features up to this one are what the request's words say; the others only go with it.
const LAST_OF_WORDS: Feature = Feature::NearPath;

/// What the words of a usual request could score together, [`Ranking::mass`].
const USUAL_MASS: f32 = 8.0;

/// A file's features, by [`Feature`].
pub type Features = [f32; FEATURES];

/// Every number that ranking depends on. [`Weights::TUNED`] is what lookups use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    pub fields: [f32; FIELDS],
    /// How much a field's length counts against it, from 0 to 1.
    pub length: [f32; FIELDS],
    pub saturation: f32,
    pub chunk_saturation: f32,
    pub query: QueryWeights,
    pub features: Features,
    /// How much more the words of a request that says much count: 0 for not at all, 1 for in proportion.
    pub trust: f32,
    /// For the file that is open, and for files that the request names.
    pub active: f32,
    pub mentioned: f32,
    pub ranges: RangeWeights,
}

impl Weights {
    pub const TUNED: Self = Self {
        fields: [3.0, 2.0, 0.5, 0.7, 0.7, 1.0],
        length: [0.3, 0.6, 0.5, 0.5, 0.5, 0.35],
        saturation: 2.0,
        chunk_saturation: 1.5,
        query: QueryWeights { weak: 0.3, context: 0.5, synonym: 0.6, pair: 0.5 },
        features: [
            1.0, 0.5, 0.6, 0.45, 0.35, 0.1, 0.1, 0.1, 0.5, 0.35, 0.55, 0.35, 0.25, 0.45, 0.15, 0.25, 0.1,
            1.0, 1.1, 0.3, 0.4, 0.9,
        ],
        trust: 0.75,
        active: 0.4,
        mentioned: 3.0,
        ranges: RangeWeights { neighbour: 0.15, saturation: 1.0, budget: 5.4, density: 0.9 },
    };
}

/// All files that a request has to do with, best first.
pub struct Ranking {
    pub files: Vec<Ranked>,
    /// What the request's words could score together.
    pub mass: f32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked {
    pub file: u32,
    pub score: f32,
    pub features: Features,
}

pub(super) fn rank(index: &ThemeIndex, query: &Query, active: Option<u32>, weights: &Weights) -> Ranking {
    let files = index.files.len();
    let chunks = index.postings.chunk_files.len();
    let mut ranker = Ranker {
        index,
        weights,
        features: vec![[0.0; FEATURES]; files],
        units: vec![0.0; index.postings.unit_chunks.len()],
        chunks: vec![(0.0, 0.0); chunks],
        group_files: vec![[0.0; FIELDS + 1]; files],
        group_chunks: vec![0.0; chunks],
        touched: Vec::new(),
    };
    let (mut mass, mut path_mass, mut weight) = (1e-6, 1e-6, 1e-6);
    for group in &query.groups {
        let best = |of: &dyn Fn(TermId) -> f32| {
            group.variants.iter().map(|&(term, share)| share * of(term)).fold(0.0, f32::max)
        };
        mass += group.weight * best(&|term| index.idf(term));
        path_mass += group.weight * best(&|term| index.path_idf(term));
        weight += group.weight;
        ranker.files(group);
        ranker.passages(group);
    }
    let files = ranker.finish(query, active, [mass, path_mass, weight]);
    Ranking { files, mass }
}

struct Ranker<'a> {
    index: &'a ThemeIndex,
    weights: &'a Weights,
    /// Not yet divided by what the request could score.
    features: Vec<Features>,
    units: Vec<f32>,
    /// Score and covered weight.
    chunks: Vec<(f32, f32)>,
    /// A group's best by field; the path's place has the path's own score, the last one all fields together.
    group_files: Vec<[f32; FIELDS + 1]>,
    group_chunks: Vec<f32>,
    touched: Vec<u32>,
}

/// The feature that a field's own score is.
const FIELD_FEATURES: [Feature; FIELDS + 1] = [
    Feature::Path,
    Feature::Identifier,
    Feature::Comment,
    Feature::Label,
    Feature::Text,
    Feature::Body,
    Feature::Fields,
];

impl Ranker<'_> {
    /// Adds a group to the files that have one of its variants; of several the best counts.
    fn files(&mut self, group: &query::Group) {
        let (weights, postings) = (self.weights, &self.index.postings);
        for &(term, share) in &group.variants {
            let idf = self.index.idf(term) * share;
            let path_idf = self.index.path_idf(term) * share;
            for posting in postings.files(term) {
                let file = posting.file as usize;
                let lengths = &postings.lengths[file];
                let best = &mut self.group_files[file];
                if best[FIELDS] == 0.0 {
                    self.touched.push(posting.file);
                }
                let mut all = 0.0;
                for (field, &count) in posting.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                    let b = weights.length[field];
                    let count = f32::from(count) / (1.0 - b + b * lengths[field]);
                    all += weights.fields[field] * count;
                    let own = if field == Field::Path as usize {
                        path_idf
                    } else {
                        idf * count / (weights.saturation + count)
                    };
                    best[field] = best[field].max(own);
                }
                best[FIELDS] = best[FIELDS].max(idf * all / (weights.saturation + all));
            }
        }
        for file in self.touched.drain(..) {
            let best = std::mem::take(&mut self.group_files[file as usize]);
            for (score, feature) in best.into_iter().zip(FIELD_FEATURES) {
                self.features[file as usize][feature as usize] += group.weight * score;
            }
        }
    }

    /// Adds a group to the units and chunks that have one of its variants.
    fn passages(&mut self, group: &query::Group) {
        let postings = &self.index.postings;
        for &(term, share) in &group.variants {
            let idf = self.index.idf(term) * share * group.weight;
            let saturate = |count: f32| idf * count / (self.weights.chunk_saturation + count);
            // A term's postings come chunk by chunk.
            let mut units = postings.units(term).iter().peekable();
            while let Some(first) = units.next() {
                let chunk = postings.unit_chunks[first.unit()];
                let mut count = f32::from(first.count());
                self.units[first.unit()] += saturate(count);
                while let Some(next) = units.next_if(|next| postings.unit_chunks[next.unit()] == chunk) {
                    let own = f32::from(next.count());
                    self.units[next.unit()] += saturate(own);
                    count += own;
                }
                let best = &mut self.group_chunks[chunk as usize];
                if *best == 0.0 {
                    self.touched.push(chunk);
                }
                *best = best.max(saturate(count));
            }
        }
        for chunk in self.touched.drain(..) {
            let (score, cover) = &mut self.chunks[chunk as usize];
            *score += std::mem::take(&mut self.group_chunks[chunk as usize]);
            *cover += group.weight;
        }
    }

    fn finish(
        &mut self,
        query: &Query,
        active: Option<u32>,
        [mass, path_mass, weight]: [f32; 3],
    ) -> Vec<Ranked> {
        let mut all = std::mem::take(&mut self.features);
        for (&file, &(score, cover)) in self.index.postings.chunk_files.iter().zip(&self.chunks) {
            let features = &mut all[file as usize];
            if score > features[Feature::Chunk as usize] {
                features[Feature::Chunk as usize] = score;
                features[Feature::ChunkCover as usize] = cover;
            }
        }
        for (features, units) in all.iter_mut().zip(self.index.postings.unit_starts.windows(2)) {
            let units = &self.units[units[0] as usize..units[1] as usize];
            features[Feature::Unit as usize] = units.iter().copied().fold(0.0, f32::max);
        }
        let said: FxHashMap<TermId, f32> =
            query.groups.iter().flat_map(|group| group.variants.iter().copied()).collect();
        for (file, features) in all.iter_mut().enumerate() {
            for feature in &mut features[..=Feature::Body as usize] {
                *feature /= mass;
            }
            features[Feature::ChunkCover as usize] *= mass / weight;
            let path = features[Feature::Path as usize] / path_mass;
            features[Feature::Path as usize] = path;
            if path > 0.0 {
                let name = self.name(file, &said);
                features[Feature::Name as usize] = name;
            }
        }
        // Two rare words say more than two that stand everywhere: of a request that says little, what kind of file
        // it speaks of and what is edited most decide more.
        let trust = (mass / USUAL_MASS).powf(self.weights.trust);
        let mut ranked = Vec::new();
        for (file, record) in (0_u32..).zip(&self.index.files) {
            let is_mentioned = query.mentioned.contains(&file);
            let is_active = active == Some(file);
            let has_words = all[file as usize][Feature::Fields as usize] > 0.0;
            if !record.kind.is_target() || !(has_words || is_mentioned || is_active) {
                continue;
            }
            let mut features = all[file as usize];
            self.neighbours(file, &all, &mut features);
            self.priors(file, query, &mut features);
            let mut score = self.score(&features, trust);
            if is_active {
                score += self.weights.active;
            }
            if is_mentioned {
                score += self.weights.mentioned * trust.max(1.0);
            }
            ranked.push(Ranked { file, score, features });
        }
        ranked.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.file.cmp(&b.file)));
        ranked
    }

    fn score(&self, features: &Features, trust: f32) -> f32 {
        let weighted = features.iter().zip(&self.weights.features).map(|(feature, weight)| feature * weight);
        let (mut words, mut others) = (0.0, 0.0);
        for (at, value) in weighted.enumerate() {
            if at <= LAST_OF_WORDS as usize { words += value } else { others += value }
        }
        trust * words + others
    }

    /// The share of the file's name that the request says.
    fn name(&self, file: usize, said: &FxHashMap<TermId, f32>) -> f32 {
        let (mut all, mut matched) = (1e-6, 0.0);
        for &(term, weight) in &self.index.own_names[file] {
            all += weight;
            matched += weight * said.get(&term).copied().unwrap_or(0.0);
        }
        matched / all
    }

    fn neighbours(&self, file: u32, all: &[Features], features: &mut Features) {
        for &other in self.index.graph.near(file) {
            for (near, own) in [(Feature::Near, Feature::Fields), (Feature::NearPath, Feature::Path)] {
                let near = &mut features[near as usize];
                *near = near.max(all[other as usize][own as usize]);
            }
        }
    }

    fn priors(&self, file: u32, query: &Query, features: &mut Features) {
        let record = &self.index.files[file as usize];
        let places = [
            Feature::StyleCue,
            Feature::ScriptCue,
            Feature::SettingCue,
            Feature::MarkupCue,
            Feature::ReleaseCue,
            Feature::TemplateCue,
            Feature::LayoutCue,
        ];
        for (cue, fit) in places.into_iter().zip(cues::affinity(query.cues, record.kind)) {
            features[cue as usize] = fit;
        }
        let logarithmic = |value: f32, most: f32| value.min(most).ln_1p() / most.ln_1p();
        features[Feature::Hub as usize] = logarithmic(self.index.graph.incoming(file).len() as f32, 32.0);
        features[Feature::Size as usize] = logarithmic(record.lines as f32, 2_000.0);
    }
}
