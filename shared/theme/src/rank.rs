//! Ranking: how well each file, and each passage in it, matches a request.
//!
//! A file's score is a weighted sum of [`Feature`]s. Each feature is between 0 and about 1, so no prior can outweigh
//! the words of the request.

use rustc_hash::FxHashMap;

use super::cues;
use super::fields::{FIELDS, Field};
use super::history::{History, Recalled};
use super::index::ThemeIndex;
use super::priors::Priors;
use super::query::{Query, QueryWeights};
use super::ranges::RangeWeights;
use super::words::TermId;

/// The features of a file's score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Fielded BM25 over the whole file.
    Fields,
    /// BM25 of the best chunk.
    Chunk,
    /// The share of the request that occurs in the best chunk.
    ChunkCover,
    /// BM25 of the best unit.
    Unit,
    Identifier,
    Comment,
    Label,
    Text,
    Body,
    /// How much of the request the path matches, relative to what paths of this theme can match.
    Path,
    /// How much of the file's own name occurs in the request.
    Name,
    /// The best `Fields` value among the files that it renders or loads, or that render or load it.
    Near,
    /// The same for `Path`.
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
    /// How much of the request's rarest words it contains.
    Rare,
    /// The best `Fields` value among the sections and templates, or sections and groups, that belong together.
    SectionNear,
    /// How much of the name of an alternate template the request says: `prices` of `page.prices`.
    Suffix,
    /// Whether it is other people's code, which is replaced rather than edited.
    Vendor,
    /// Whether one of the last changes edited it, see [`super::history`].
    Recent,
    /// How many of the last changes edited it.
    Busy,
    /// How much one of the requests for which it was edited says the same as this request.
    Asked,
}

pub const FEATURES: usize = Feature::Asked as usize + 1;

/// The features up to this one measure the request's words. The others only support them.
const LAST_OF_WORDS: Feature = Feature::NearPath;

/// The highest total score of the words of a typical request, see [`Ranking::mass`].
const USUAL_MASS: f32 = 8.0;

/// A file's features, indexed by [`Feature`].
pub type Features = [f32; FEATURES];

/// All parameters of ranking. Lookups use [`Weights::TUNED`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    pub fields: [f32; FIELDS],
    /// How much a field's length lowers its score, from 0 to 1.
    pub length: [f32; FIELDS],
    pub saturation: f32,
    pub chunk_saturation: f32,
    pub query: QueryWeights,
    pub features: Features,
    /// How strongly the words count more in requests that say much: 0 means not at all, 1 means in proportion.
    pub trust: f32,
    /// Bonuses for the open file and for files that the request names.
    pub active: f32,
    pub mentioned: f32,
    /// How much of the weight of recent files is left if the request says the whole name of a file.
    pub named: f32,
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
            1.0, 1.1, 0.3, 0.4, 0.9, 0.2, 0.2, 0.3, -0.4, 1.8, 0.3, 0.9,
        ],
        trust: 0.75,
        active: 0.4,
        mentioned: 3.0,
        named: 0.3,
        ranges: RangeWeights {
            neighbour: 0.15,
            saturation: 1.0,
            budget: 5.4,
            density: 0.9,
            edited: 0.6,
            edited_lines: 10,
            edits: 12,
            edited_budget: 0.9,
        },
    };
}

pub(super) struct Ranking {
    /// All files that match a request, best first.
    pub files: Vec<Ranked>,
    /// Indexed by file.
    pub features: Vec<Features>,
    /// The highest total score that the request's words could reach.
    pub mass: f32,
    /// What the history says.
    pub recalled: Recalled,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked {
    pub file: u32,
    pub score: f32,
}

pub(super) fn rank(
    index: &ThemeIndex,
    query: &Query,
    active: Option<u32>,
    history: Option<&History>,
    weights: &Weights,
) -> Ranking {
    let files = index.files.len();
    let chunks = index.postings.chunk_files.len();
    let mut ranker = Ranker {
        index,
        weights,
        features: vec![[0.0; FEATURES]; files],
        units: vec![0.0; index.postings.unit_chunks.len()],
        chunks: vec![(0.0, 0.0); chunks],
        group_files: vec![[0.0; FIELDS + 2]; files],
        group_chunks: vec![0.0; chunks],
        touched: Vec::new(),
    };
    let (mut mass, mut path_mass, mut weight, mut rare_mass) = (1e-6, 1e-6, 1e-6, 1e-6);
    for group in &query.groups {
        let variants: Vec<Variant> = group.variants.iter().map(|v| Variant::of(index, v)).collect();
        let best = variants.iter().map(|variant| variant.idf).fold(0.0, f32::max);
        mass += group.weight * best;
        rare_mass += group.weight * best * best;
        path_mass += group.weight * variants.iter().map(|variant| variant.path_idf).fold(0.0, f32::max);
        weight += group.weight;
        ranker.files(group.weight, best, &variants);
        ranker.passages(group.weight, &variants);
    }
    ranker.normalize(query, [mass, path_mass, weight, rare_mass]);
    let recalled = history.map(|history| history.recall(index, &query.stems)).unwrap_or_default();
    let files = ranker.scores(query, active, mass, &recalled);
    Ranking { files, features: ranker.features, mass, recalled }
}

/// A possible term and its value. A less certain term has a lower value.
struct Variant {
    term: TermId,
    idf: f32,
    path_idf: f32,
}

impl Variant {
    fn of(index: &ThemeIndex, &(term, share): &(TermId, f32)) -> Self {
        Self { term, idf: share * index.idf(term), path_idf: share * index.path_idf(term) }
    }
}

struct Ranker<'a> {
    index: &'a ThemeIndex,
    weights: &'a Weights,
    /// Before division by the highest possible score.
    features: Vec<Features>,
    units: Vec<f32>,
    /// Score and covered weight.
    chunks: Vec<(f32, f32)>,
    /// The best score of a group per file and field. The path field holds the path's own score; after the fields come the
    /// score over all fields, and the rarity of the rarest variant in the file.
    group_files: Vec<[f32; FIELDS + 2]>,
    group_chunks: Vec<f32>,
    touched: Vec<u32>,
}

/// The feature that holds each field's own score.
const FIELD_FEATURES: [Feature; FIELDS + 2] = [
    Feature::Path,
    Feature::Identifier,
    Feature::Comment,
    Feature::Label,
    Feature::Text,
    Feature::Body,
    Feature::Fields,
    Feature::Rare,
];

impl Ranker<'_> {
    /// Adds a group to the files that contain one of its variants. The best variant counts.
    fn files(&mut self, group_weight: f32, rarest: f32, variants: &[Variant]) {
        let (weights, postings) = (self.weights, &self.index.postings);
        for &Variant { term, idf, path_idf } in variants {
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
                best[FIELDS + 1] = best[FIELDS + 1].max(idf * rarest);
            }
        }
        for file in self.touched.drain(..) {
            let best = std::mem::take(&mut self.group_files[file as usize]);
            for (score, feature) in best.into_iter().zip(FIELD_FEATURES) {
                self.features[file as usize][feature as usize] += group_weight * score;
            }
        }
    }

    /// Adds a group to the units and chunks that contain one of its variants.
    fn passages(&mut self, group_weight: f32, variants: &[Variant]) {
        let postings = &self.index.postings;
        for variant in variants {
            let idf = variant.idf * group_weight;
            let saturate = |count: f32| idf * count / (self.weights.chunk_saturation + count);
            // Most counts are small, so their values are computed in advance.
            let saturated: [f32; 16] = std::array::from_fn(|count| saturate(count as f32));
            let score =
                |count: usize| saturated.get(count).copied().unwrap_or_else(|| saturate(count as f32));
            // A term's postings are ordered by chunk.
            let mut units = postings.units(variant.term).iter().peekable();
            while let Some(first) = units.peek() {
                let chunk = postings.unit_chunks[first.unit()];
                let (mut best_unit, mut count) = (0.0_f32, 0);
                while let Some(next) = units.next_if(|next| postings.unit_chunks[next.unit()] == chunk) {
                    let own = usize::from(next.count());
                    let unit = &mut self.units[next.unit()];
                    *unit += score(own);
                    best_unit = best_unit.max(*unit);
                    count += own;
                }
                let file = postings.chunk_files[chunk as usize];
                let best = &mut self.features[file as usize][Feature::Unit as usize];
                *best = best.max(best_unit);
                let best = &mut self.group_chunks[chunk as usize];
                if *best == 0.0 {
                    self.touched.push(chunk);
                }
                *best = best.max(score(count));
            }
        }
        for chunk in self.touched.drain(..) {
            let (score, cover) = &mut self.chunks[chunk as usize];
            *score += std::mem::take(&mut self.group_chunks[chunk as usize]);
            *cover += group_weight;
        }
    }

    /// Divides each file's scores by the highest score that the request could reach.
    fn normalize(&mut self, query: &Query, [mass, path_mass, weight, rare_mass]: [f32; 4]) {
        for (&file, &(score, cover)) in self.index.postings.chunk_files.iter().zip(&self.chunks) {
            let features = &mut self.features[file as usize];
            if score > features[Feature::Chunk as usize] {
                features[Feature::Chunk as usize] = score;
                features[Feature::ChunkCover as usize] = cover;
            }
        }
        let said: FxHashMap<TermId, f32> =
            query.groups.iter().flat_map(|group| group.variants.iter().copied()).collect();
        let name = |file: usize| {
            let (mut all, mut matched) = (1e-6, 0.0);
            for &(term, weight) in &self.index.own_names[file] {
                all += weight;
                matched += weight * said.get(&term).copied().unwrap_or(0.0);
            }
            matched / all
        };
        for (file, features) in self.features.iter_mut().enumerate() {
            for feature in &mut features[..=Feature::Body as usize] {
                *feature /= mass;
            }
            features[Feature::ChunkCover as usize] *= mass / weight;
            features[Feature::Rare as usize] /= rare_mass;
            let path = features[Feature::Path as usize] / path_mass;
            features[Feature::Path as usize] = path;
            if path > 0.0 {
                features[Feature::Name as usize] = name(file);
            }
        }
        for (file, words) in &self.index.suffixes {
            let share = words.iter().filter_map(|word| said.get(word)).sum::<f32>() / words.len() as f32;
            self.features[*file as usize][Feature::Suffix as usize] = share.min(1.0);
        }
    }

    fn scores(&mut self, query: &Query, active: Option<u32>, mass: f32, recalled: &Recalled) -> Vec<Ranked> {
        // Two rare words say more than two common ones. If a request says little, the kind of file and the files that
        // are edited most often decide more.
        let trust = (mass / USUAL_MASS).powf(self.weights.trust);
        // The more a request says, the less the last edits do.
        let mut recent = recalled.fade * recalled.stick / trust.clamp(0.6, 1.6);
        if recent > 0.0 && self.is_named() {
            recent *= self.weights.named;
        }
        for found in &recalled.files {
            let features = &mut self.features[found.file as usize];
            features[Feature::Recent as usize] = recent * found.recent;
            features[Feature::Busy as usize] = recalled.fade * found.busy;
            features[Feature::Asked as usize] = found.asked;
        }
        let mut ranked = Vec::new();
        for (file, record) in (0_u32..).zip(&self.index.files) {
            let is_mentioned = query.mentioned.contains(&file);
            let is_active = active == Some(file);
            let features = &self.features[file as usize];
            let is_found = features[Feature::Fields as usize] > 0.0 || features[Feature::Busy as usize] > 0.0;
            if !record.kind.is_target() || !(is_found || is_mentioned || is_active) {
                continue;
            }
            self.neighbours(file);
            self.priors(file, query);
            let mut score = self.score(&self.features[file as usize], trust);
            if is_active {
                score += self.weights.active;
            }
            if is_mentioned {
                score += self.weights.mentioned * trust.max(1.0);
            }
            ranked.push(Ranked { file, score });
        }
        ranked.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.file.cmp(&b.file)));
        ranked
    }

    /// Whether the request says the whole name of a file, and the name has several words. Then the request says itself
    /// what it is about.
    fn is_named(&self) -> bool {
        let names = self.index.own_names.iter().zip(&self.features);
        names.into_iter().any(|(name, features)| name.len() > 1 && features[Feature::Name as usize] > 0.99)
    }

    fn score(&self, features: &Features, trust: f32) -> f32 {
        let weighted = features.iter().zip(&self.weights.features).map(|(feature, weight)| feature * weight);
        let (mut words, mut others) = (0.0, 0.0);
        for (at, value) in weighted.enumerate() {
            if at <= LAST_OF_WORDS as usize { words += value } else { others += value }
        }
        trust * words + others
    }

    fn neighbours(&mut self, file: u32) {
        for (near, own) in [(Feature::Near, Feature::Fields), (Feature::NearPath, Feature::Path)] {
            let others = self.index.graph.near(file).iter();
            let best = others.map(|&other| self.features[other as usize][own as usize]).fold(0.0, f32::max);
            self.features[file as usize][near as usize] = best;
        }
        let others = self.index.graph.section_near(file).iter();
        let best = others.map(|&other| self.features[other as usize][Feature::Fields as usize]);
        self.features[file as usize][Feature::SectionNear as usize] = best.fold(0.0, f32::max);
    }

    fn priors(&mut self, file: u32, query: &Query) {
        let features = &mut self.features[file as usize];
        let places = [
            Feature::StyleCue,
            Feature::ScriptCue,
            Feature::SettingCue,
            Feature::MarkupCue,
            Feature::ReleaseCue,
            Feature::TemplateCue,
            Feature::LayoutCue,
        ];
        let kind = self.index.files[file as usize].kind;
        for (cue, fit) in places.into_iter().zip(cues::affinity(query.cues, kind)) {
            features[cue as usize] = fit;
        }
        let Priors { hub, size, vendor } = self.index.priors[file as usize];
        features[Feature::Vendor as usize] = vendor;
        features[Feature::Hub as usize] = hub;
        features[Feature::Size as usize] = size;
    }
}
