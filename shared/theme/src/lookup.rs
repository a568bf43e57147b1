//! The answer to a request: files, lines, related files, and the order of edits.

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::fields::{FIELDS, Field};
use super::history::History;
use super::index::ThemeIndex;
use super::query::Query;
use super::ranges::RangeChooser;
use super::rank::{Feature, Features, Ranked, Ranking, Weights, rank};
use super::scan::{EdgeKind, EdgeNature};
use super::text::LineRange;

/// The largest number of related files in an answer.
const MAX_RELATED: usize = 12;
/// Most reasons are shorter than this. It is used to reserve memory.
const USUAL_REASON_BYTES: usize = 48;
/// `confident` refers to this many first targets, and their neighbours are listed as related.
const CONFIDENT_TARGETS: usize = 3;
/// The largest share of a request that a theme may not know.
const MAX_UNKNOWN: f32 = 0.5;
/// The log-odds from which an answer is called confident.
const CONFIDENT_LOG_ODDS: f32 = 1.6;

/// The result of a lookup.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Lookup {
    /// Whether a file to edit is very likely among the first three targets. It is right nine times out of ten.
    pub confident: bool,
    /// Best first.
    pub targets: Vec<Target>,
    pub related: Vec<Related>,
    /// The targets in the order of edits: each comes after the files it needs.
    pub edit_order: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Target {
    pub path: String,
    /// Scores can be compared only within one answer.
    pub score: f32,
    /// The lines to look at first, sorted and not adjacent.
    pub ranges: Vec<LineRange>,
    /// Which words of the request were found where, for example `name: cart, drawer`.
    pub reasons: Vec<String>,
}

/// A file that is not a target but is connected to one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Related {
    pub path: String,
    pub edge: EdgeKind,
    /// The target that it is connected to.
    pub via: String,
}

/// The data that the measuring programs fit weights to.
#[derive(Clone, Debug)]
pub struct Observation {
    /// Path, score and features of every file that matches the request, best first.
    pub files: Vec<(String, f32, Features)>,
    /// The highest total score that the request's words could reach.
    pub mass: f32,
    pub groups: usize,
    /// The share of the request's words that the theme does not know.
    pub unknown: f32,
}

impl ThemeIndex {
    /// Answers a request with at most `limit` targets. The file that the person has open gets a small bonus.
    pub fn lookup(&self, request: &str, active_file: Option<&str>, limit: usize) -> Lookup {
        self.lookup_weighted(request, active_file, limit, None, &Weights::TUNED)
    }

    /// [`lookup`](Self::lookup) that knows what was asked and edited before.
    pub fn lookup_with_history(
        &self,
        request: &str,
        active_file: Option<&str>,
        limit: usize,
        history: &History,
    ) -> Lookup {
        self.lookup_weighted(request, active_file, limit, Some(history), &Weights::TUNED)
    }

    /// The ranking features for a request, for measuring.
    pub fn observe(&self, request: &str, history: Option<&History>, weights: &Weights) -> Observation {
        let query = Query::parse(self, request, &weights.query);
        let ranking = rank(self, &query, None, history, weights);
        Observation {
            files: ranking
                .files
                .iter()
                .map(|r| (self.path(r.file).to_owned(), r.score, ranking.features[r.file as usize]))
                .collect(),
            mass: ranking.mass,
            groups: query.groups.len(),
            unknown: query.unknown,
        }
    }

    /// [`lookup`](Self::lookup) with other weights, for measuring.
    pub fn lookup_weighted(
        &self,
        request: &str,
        active_file: Option<&str>,
        limit: usize,
        history: Option<&History>,
        weights: &Weights,
    ) -> Lookup {
        let query = Query::parse(self, request, &weights.query);
        let active = active_file.and_then(|path| self.file(path));
        let ranking = rank(self, &query, active, history, weights);
        let first = &ranking.files[..ranking.files.len().min(limit)];
        let mut ranges = RangeChooser::new(self, &query, &weights.ranges);
        let edits = |file: u32| {
            let edits =
                history.zip(ranking.recalled.of(file)).map(|(history, found)| history.edits(found.path));
            edits.into_iter().flatten()
        };
        let targets = first.iter().map(|ranked| Target {
            path: self.path(ranked.file).to_owned(),
            score: ranked.score,
            ranges: ranges.of(ranked.file, edits(ranked.file)),
            reasons: self.reasons(ranked.file, &query),
        });
        Lookup {
            confident: confident(&query, &ranking),
            targets: targets.collect(),
            related: self.related(first),
            edit_order: self.edit_order(first),
        }
    }

    fn reasons(&self, file: u32, query: &Query) -> Vec<String> {
        // The most informative place is reported.
        const ORDER: [Field; FIELDS] =
            [Field::Path, Field::Label, Field::Text, Field::Identifier, Field::Comment, Field::Body];
        const NAMES: [&str; FIELDS] = ["path", "name", "comment", "label", "text", "body"];
        let mut by_field: [String; FIELDS] = Default::default();
        for group in &query.groups {
            let mut fields = [0_u8; FIELDS];
            for &(term, _) in &group.variants {
                let postings = self.postings.files(term);
                if let Ok(at) = postings.binary_search_by_key(&file, |posting| posting.file) {
                    for (all, count) in fields.iter_mut().zip(postings[at].counts) {
                        *all |= count;
                    }
                }
            }
            if let Some(field) = ORDER.into_iter().find(|&field| fields[field as usize] > 0) {
                let reason = &mut by_field[field as usize];
                if reason.is_empty() {
                    reason.reserve(USUAL_REASON_BYTES);
                    reason.extend([NAMES[field as usize], ": "]);
                } else {
                    reason.push_str(", ");
                }
                reason.push_str(&group.word);
            }
        }
        let named = query.mentioned.contains(&file).then(|| "named in the request".to_owned());
        named.into_iter().chain(by_field.into_iter().filter(|reason| !reason.is_empty())).collect()
    }

    /// The files that the first targets need, and the files that need them, without the targets themselves.
    fn related(&self, targets: &[Ranked]) -> Vec<Related> {
        let mut seen: FxHashSet<u32> = targets.iter().map(|target| target.file).collect();
        let mut related = Vec::new();
        for target in targets.iter().take(CONFIDENT_TARGETS) {
            let outgoing = self.graph.outgoing(target.file).iter().map(|edge| (edge, edge.to));
            let incoming = self.graph.incoming(target.file).map(|edge| (edge, Some(edge.from)));
            let mut near: Vec<(EdgeKind, u32)> = outgoing
                .chain(incoming)
                .filter(|(edge, _)| edge.nature != EdgeNature::Indirect)
                .filter_map(|(edge, to)| Some((edge.kind, to?)))
                .collect();
            // Stronger kinds come first: rendering and loading before sharing a class or a setting.
            near.sort_unstable();
            for (edge, file) in near {
                if related.len() == MAX_RELATED {
                    return related;
                }
                if seen.insert(file) {
                    let via = self.path(target.file).to_owned();
                    related.push(Related { path: self.path(file).to_owned(), edge, via });
                }
            }
        }
        related
    }

    /// Each target comes after the targets it needs. Among independent targets the better one comes first.
    fn edit_order(&self, targets: &[Ranked]) -> Vec<String> {
        let mut left: Vec<u32> = targets.iter().map(|target| target.file).collect();
        let mut is_target = vec![false; self.files.len()];
        left.iter().for_each(|&file| is_target[file as usize] = true);
        // Which of the remaining files need which.
        let mut needs: Vec<(u32, u32)> = Vec::new();
        for &file in &left {
            let edges = self.graph.outgoing(file).iter().filter(|edge| edge.nature != EdgeNature::Indirect);
            let needed = edges.filter_map(|edge| edge.to).filter(|&to| to != file && is_target[to as usize]);
            needs.extend(needed.map(|to| (file, to)));
        }
        let mut order = Vec::with_capacity(left.len());
        while !left.is_empty() {
            // In a cycle the best target goes first.
            let is_free = |&file: &u32| needs.iter().all(|&(needing, _)| needing != file);
            let file = left.remove(left.iter().position(is_free).unwrap_or(0));
            needs.retain(|&(_, needed)| needed != file);
            order.push(self.path(file).to_owned());
        }
        order
    }
}

/// Whether a file to edit is among the first three: a logistic model, fitted on the questions that tuned
/// [`super::rank`]. In cross-validation (fitted on four fifths, tested on the rest) it was right nine times out of ten,
/// and it said `true` for half of the requests. [`Ranking::mass`] is not used: it changes with the size of the theme,
/// and it added nothing to the score gaps.
///
/// A request that names no place, or mostly says what the theme does not know, is never called confident.
fn confident(query: &Query, ranking: &Ranking) -> bool {
    if ranking.files.is_empty() || !query.names_a_place || query.unknown > MAX_UNKNOWN {
        return false;
    }
    let score = |place: usize| ranking.files.get(place).map_or(0.0, |ranked| ranked.score);
    let first_three = ranking.files.iter().take(CONFIDENT_TARGETS);
    let name = |ranked: &Ranked| ranking.features[ranked.file as usize][Feature::Name as usize];
    let name = first_three.map(name).fold(0.0, f32::max);
    // The features are the leads of the first and of the third file, and how well a file's name matches the request.
    let odds = 0.66 * (score(0) - score(3)) + 0.91 * (score(2) - score(5)) + 0.96 * name - 0.14;
    odds >= CONFIDENT_LOG_ODDS
}
