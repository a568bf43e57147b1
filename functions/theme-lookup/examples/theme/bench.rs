//! The localisation benchmark: queries and the files that a commit changed for them, each on the tree before its
//! commit.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use theme::lookup::Lookup;
use theme::path::FileKind;
use theme::{History, ThemeIndex};

use crate::Result;
use crate::figures::{Figures, milliseconds};
use crate::gates;
use crate::histories::Histories;

/// The number of files per answer in a measurement.
pub const LIMIT: usize = 20;

#[derive(Deserialize)]
pub struct Question {
    pub id: String,
    pub parent: String,
    pub query: String,
    pub gold: Vec<String>,
    #[serde(default)]
    pub gold_lines: HashMap<String, Vec<[u32; 2]>>,
    #[serde(default)]
    pub commit: String,
    #[serde(default)]
    split: String,
}

/// A ranker's answer to one question, in the format of the public evaluation.
#[derive(Serialize)]
pub struct BenchAnswer {
    id: String,
    pub ranked: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confident: Option<bool>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    ranges: BTreeMap<String, Vec<[u32; 2]>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lookup_ms: Option<f64>,
}

impl BenchAnswer {
    pub fn of(question: &Question, lookup: &Lookup, lookup_ms: Option<f64>) -> Self {
        let ranges = lookup.targets.iter().map(|target| {
            (target.path.clone(), target.ranges.iter().map(|range| [range.start, range.end]).collect())
        });
        Self {
            id: question.id.clone(),
            ranked: lookup.targets.iter().map(|target| target.path.clone()).collect(),
            confident: Some(lookup.confident),
            ranges: ranges.collect(),
            lookup_ms,
        }
    }

    fn ranking(question: &Question, ranked: Vec<String>) -> Self {
        let (id, ranges) = (question.id.clone(), BTreeMap::new());
        Self { id, ranked, confident: None, ranges, lookup_ms: None }
    }
}

pub fn questions(file: &Path, split: &str) -> Result<Vec<Question>> {
    let mut questions = Vec::new();
    for line in fs::read_to_string(file)?.lines().filter(|line| !line.trim().is_empty()) {
        let question: Question = serde_json::from_str(line)?;
        if split == "all" || question.split.is_empty() || question.split == split {
            questions.push(question);
        }
    }
    Ok(questions)
}

/// The trees next to a question file. Trees share blobs, so each blob is read once.
pub struct Trees {
    folder: PathBuf,
    blobs: HashMap<String, Arc<[u8]>>,
}

pub type Tree = Vec<(String, Arc<[u8]>)>;

impl Trees {
    pub fn beside(file: &Path) -> Self {
        let folder = file.parent().map(Path::to_owned).unwrap_or_default();
        Self { folder, blobs: HashMap::new() }
    }

    pub fn tree(&mut self, parent: &str) -> Result<Tree> {
        let mut tree = Vec::new();
        for line in fs::read_to_string(self.folder.join("trees").join(format!("{parent}.tsv")))?.lines() {
            let (path, sha) = line.split_once('\t').ok_or("a tree's line is path, tab, blob")?;
            let blob = match self.blobs.get(sha) {
                Some(blob) => blob.clone(),
                None => {
                    let blob: Arc<[u8]> = fs::read(self.folder.join("blobs").join(sha))?.into();
                    self.blobs.insert(sha.to_owned(), blob.clone());
                    blob
                }
            };
            tree.push((path.to_owned(), blob));
        }
        Ok(tree)
    }
}

#[derive(Default, Clone, Copy)]
pub struct Metrics {
    pub questions: f64,
    pub hit1: f64,
    pub hit5: f64,
    pub recall10: f64,
    pub mrr: f64,
    sure: f64,
    sure_right: f64,
    hunks: f64,
    hunks_shown: f64,
    lines: f64,
    lines_shown: f64,
}

impl Metrics {
    /// `line_counts` returns the length of a file, for the share of lines that is shown.
    pub fn add(&mut self, question: &Question, answer: &BenchAnswer, line_counts: impl Fn(&str) -> u32) {
        let gold: HashSet<&str> = question.gold.iter().map(String::as_str).collect();
        let places: Vec<usize> = answer
            .ranked
            .iter()
            .enumerate()
            .filter(|(_, p)| gold.contains(p.as_str()))
            .map(|(i, _)| i)
            .collect();
        let first = places.first().copied();
        let hit = |k: usize| f64::from(u8::from(first.is_some_and(|place| place < k)));
        self.questions += 1.0;
        self.hit1 += hit(1);
        self.hit5 += hit(5);
        self.mrr += first.map_or(0.0, |place| 1.0 / (place as f64 + 1.0));
        self.recall10 += places.iter().filter(|&&place| place < 10).count() as f64 / gold.len() as f64;
        if answer.confident == Some(true) {
            self.sure += 1.0;
            self.sure_right += hit(3);
        }
        for path in answer.ranked.iter().take(5).filter(|path| gold.contains(path.as_str())) {
            let Some(ranges) = answer.ranges.get(path).filter(|_| !answer.ranges.is_empty()) else {
                continue;
            };
            self.lines += f64::from(line_counts(path));
            self.lines_shown += ranges.iter().map(|[a, b]| f64::from(b - a + 1)).sum::<f64>();
            for [start, end] in question.gold_lines.get(path).into_iter().flatten() {
                self.hunks += 1.0;
                let shown = ranges.iter().any(|[a, b]| a.saturating_sub(3) <= *end && *start <= b + 3);
                self.hunks_shown += f64::from(u8::from(shown));
            }
        }
    }

    /// hit@1, hit@5, recall@10, MRR, precision and coverage of `confident`, hunks and lines shown.
    pub fn shares(&self) -> [Option<f64>; 8] {
        let share = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        let of_all = |part: f64| share(part, self.questions);
        [
            of_all(self.hit1),
            of_all(self.hit5),
            of_all(self.recall10),
            of_all(self.mrr),
            share(self.sure_right, self.sure),
            of_all(self.sure).filter(|share| *share > 0.0),
            share(self.hunks_shown, self.hunks),
            share(self.lines_shown, self.lines),
        ]
    }

    pub fn row(&self, name: &str) -> String {
        let show = |share: Option<f64>| share.map_or("–".into(), |share| format!("{share:.3}"));
        let shares = self.shares().map(|share| format!("{:>7}", show(share)));
        format!("{name:<22} {:>4} {}", self.questions, shares.join(" "))
    }

    pub const HEAD: &'static str =
        "ranker                    n   hit@1   hit@5  rec@10     mrr  sure-p  sure-c   hunks   lines";
}

/// With histories, one more row shows the answers that know them, and the gates are measured on these.
pub fn run(file: &Path, histories: &Histories, split: &str, out: Option<&Path>) -> Result<()> {
    let mut trees = Trees::beside(file);
    let questions = questions(file, split)?;
    // This comes first, before the process has loaded another theme, because its memory is measured.
    let tree = trees.tree(&questions.first().ok_or("there is no question")?.parent)?;
    let figures = Figures::of(&tree)?;
    let mut lookup_ms = Vec::new();
    let mut lookup_with_history_ms = Vec::new();
    let mut read_history_ms = Vec::new();
    let rows = ["path overlap", "plain bm25", "theme index", "  first half", "  second half"];
    let more = ["with history", "  first half", "  second half"];
    let more = if histories.is_empty() { &[][..] } else { &more[..] };
    let mut rows: Vec<(&str, Metrics)> =
        rows.iter().chain(more).map(|&name| (name, Metrics::default())).collect();
    let mut lines = String::new();
    for question in questions {
        let tree = trees.tree(&question.parent)?;
        let index = ThemeIndex::build(tree.iter().map(|(path, bytes)| (path, bytes)))?;
        let (lookup, took) = timed(|| index.lookup(&question.query, None, LIMIT));
        lookup_ms.push(took);
        let mut answer = BenchAnswer::of(&question, &lookup, Some(took));
        let line_counts = |path: &str| {
            let file = tree.iter().find(|(other, _)| other == path);
            file.map_or(0, |(_, bytes)| bytes.iter().filter(|&&b| b == b'\n').count() as u32)
        };
        let baselines = baselines(&question.query, &tree);
        for (row, ranked) in rows.iter_mut().zip(baselines) {
            row.1.add(&question, &BenchAnswer::ranking(&question, ranked), line_counts);
        }
        rows[2].1.add(&question, &answer, line_counts);
        rows[if is_first_half(&question) { 3 } else { 4 }].1.add(&question, &answer, line_counts);
        if let Some(history) = histories.get(&question.id) {
            let stored = serde_json::to_string(history)?;
            read_history_ms.push(timed(|| serde_json::from_str::<History>(&stored).is_ok()).1);
            let (lookup, took) = timed(|| index.lookup_with_history(&question.query, None, LIMIT, history));
            lookup_with_history_ms.push(took);
            answer = BenchAnswer::of(&question, &lookup, Some(took));
            rows[5].1.add(&question, &answer, line_counts);
            rows[if is_first_half(&question) { 6 } else { 7 }].1.add(&question, &answer, line_counts);
        }
        lines += &serde_json::to_string(&answer)?;
        lines.push('\n');
    }
    if let Some(out) = out {
        fs::write(out, lines)?;
    }
    println!("{}", Metrics::HEAD);
    for (name, metrics) in &rows {
        println!("{}", metrics.row(name));
    }
    let mut lookups = [0.5, 0.99].map(|at| quantile(&mut lookup_ms, at));
    if !histories.is_empty() {
        let [half, most] = lookups.map(|time| time * 1e3);
        println!("\nlookup without history: median {half:.1} µs, 99 of 100 {most:.1} µs");
        let [half, most] = [0.5, 0.99].map(|at| quantile(&mut read_history_ms, at));
        println!("reading a stored history: median {half:.3} ms, 99 of 100 {most:.3} ms");
        lookups = [0.5, 0.99].map(|at| quantile(&mut lookup_with_history_ms, at));
    }
    let measured = &rows[if histories.is_empty() { 2 } else { 5 }].1;
    gates::print(measured, [&rows[0].1, &rows[1].1], &figures, lookups);
    Ok(())
}

/// The best time of a few runs, in milliseconds. The first run fills the caches, as in a warm process.
fn timed<T>(mut run: impl FnMut() -> T) -> (T, f64) {
    let mut best = f64::INFINITY;
    let mut timed = || {
        let started = Instant::now();
        let result = run();
        best = best.min(milliseconds(started));
        result
    };
    for _ in 0..4 {
        timed();
    }
    (timed(), best)
}

/// Splits the questions into halves by commit, independent of their topics.
pub fn is_first_half(question: &Question) -> bool {
    question.commit.bytes().next().is_some_and(|b| b < b'8')
}

pub fn quantile(values: &mut [f64], at: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values
        .get(((values.len() as f64 * at) as usize).min(values.len().saturating_sub(1)))
        .copied()
        .unwrap_or(0.0)
}

/// The answers of two simpler programs: overlap of the request with the words of the path, and BM25 over path and body
/// without stemming.
fn baselines(request: &str, tree: &Tree) -> [Vec<String>; 2] {
    let words = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|w| w.len() > 1)
            .map(str::to_lowercase)
            .collect()
    };
    let asked: HashSet<String> = words(request).into_iter().collect();
    let files: Vec<(&str, HashMap<String, f64>, f64)> = tree
        .iter()
        .filter(|(path, _)| FileKind::of(path).is_target())
        .map(|(path, bytes)| {
            let mut counts = HashMap::new();
            let mut length = 0.0;
            for word in words(path).into_iter().chain(words(&String::from_utf8_lossy(bytes))) {
                length += 1.0;
                if asked.contains(&word) {
                    *counts.entry(word).or_insert(0.0) += 1.0;
                }
            }
            (path.as_str(), counts, length)
        })
        .collect();
    let mean = files.iter().map(|file| file.2).sum::<f64>() / files.len() as f64;
    let sorted = |mut scored: Vec<(f64, &str)>| {
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        scored.into_iter().take(LIMIT).map(|(_, path)| path.to_owned()).collect()
    };
    let overlap = files.iter().map(|(path, ..)| {
        let own: HashSet<String> = words(path).into_iter().collect();
        (own.intersection(&asked).count() as f64, *path)
    });
    let bm25 = files.iter().map(|(path, counts, length)| {
        let score = counts.iter().map(|(word, count)| {
            let having = files.iter().filter(|other| other.1.contains_key(word)).count() as f64;
            let idf = (1.0 + (files.len() as f64 - having + 0.5) / (having + 0.5)).ln();
            idf * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length / mean))
        });
        (score.sum(), *path)
    });
    [sorted(overlap.collect()), sorted(bm25.collect())]
}
