//! Fits ranking weights to one half of a question file, and shows their effect on the other half.

use std::path::Path;

use theme::rank::Weights;
use theme::{History, ThemeIndex};

use crate::Result;
use crate::bench::{BenchAnswer, LIMIT, Metrics, Question, Trees, is_first_half, questions};
use crate::histories::Histories;

type Case = (Question, ThemeIndex, Option<History>);

pub fn run(file: &Path, histories: &Histories, rounds: usize) -> Result<()> {
    let mut trees = Trees::beside(file);
    let mut halves: [Vec<Case>; 2] = [Vec::new(), Vec::new()];
    for question in questions(file, "all")? {
        let tree = trees.tree(&question.parent)?;
        // Texts in other languages do not matter for questions in English, but they use much memory.
        let files =
            tree.iter().filter(|(path, _)| !path.starts_with("locales/") || path.contains(".default."));
        let index = ThemeIndex::build(files.map(|(path, bytes)| (path, bytes)))?;
        let history = histories.get(&question.id).cloned();
        halves[usize::from(!is_first_half(&question))].push((question, index, history));
    }
    println!("{}", Metrics::HEAD);
    show(&halves, &Weights::TUNED, "as it is");
    for (name, tried) in range_trials() {
        show(&halves, &tried, &name);
    }
    let mut weights = Weights::TUNED;
    let mut best = goal(&halves[0], &weights);
    for round in 0..rounds {
        let before = best;
        for knob in 0..knobs(&mut weights).len() {
            for factor in [0.6, 0.8, 1.25, 1.6] {
                let mut tried = weights;
                *knobs(&mut tried)[knob] *= factor;
                let reached = goal(&halves[0], &tried);
                if reached > best + 5e-4 {
                    (best, weights) = (reached, tried);
                }
            }
        }
        show(&halves, &weights, &format!("round {round}"));
        if best <= before {
            break;
        }
    }
    println!("{weights:#?}");
    // The effect of a single weight on each half.
    for knob in 0..knobs(&mut weights).len() {
        let with = |factor: f32| {
            let mut tried = weights;
            *knobs(&mut tried)[knob] *= factor;
            halves.each_ref().map(|half| format!("{:.4}", goal(half, &tried)))
        };
        println!(
            "knob {knob}: off {:?} half {:?} as is {:?} double {:?}",
            with(0.0),
            with(0.5),
            with(1.0),
            with(2.0)
        );
    }
    Ok(())
}

/// Writes the features of every candidate, so that weights can be fitted elsewhere: half, question, gold, features.
pub fn features(file: &Path, histories: &Histories, out: &Path) -> Result<()> {
    let mut trees = Trees::beside(file);
    let mut lines = String::new();
    for (number, question) in questions(file, "all")?.iter().enumerate() {
        let tree = trees.tree(&question.parent)?;
        let files =
            tree.iter().filter(|(path, _)| !path.starts_with("locales/") || path.contains(".default."));
        let index = ThemeIndex::build(files.map(|(path, bytes)| (path, bytes)))?;
        let observed = index.observe(&question.query, histories.get(&question.id), &Weights::TUNED);
        let (mass, groups, unknown) = (observed.mass, observed.groups, observed.unknown);
        for (path, score, features) in observed.files {
            let gold = u8::from(question.gold.contains(&path));
            let half = u8::from(is_first_half(question));
            let golds = question.gold.len();
            lines +=
                &format!("{half}\t{number}\t{golds}\t{gold}\t{score:.4}\t{mass:.3}\t{groups}\t{unknown:.3}");
            for feature in features {
                lines += &format!("\t{feature:.4}");
            }
            lines.push('\n');
        }
    }
    Ok(std::fs::write(out, lines)?)
}

/// Other ways to choose lines.
fn range_trials() -> Vec<(String, Weights)> {
    let mut trials = Vec::new();
    for neighbour in [0.0, 0.3, 0.6] {
        for saturation in [0.3, 1.0, 3.0] {
            for density in [0.0, 0.3, 0.6, 1.0] {
                let mut weights = Weights::TUNED;
                weights.ranges.neighbour = neighbour;
                weights.ranges.saturation = saturation;
                weights.ranges.density = density;
                trials.push((format!("n{neighbour} s{saturation} d{density}"), weights));
            }
        }
    }
    trials
}

fn knobs(weights: &mut Weights) -> Vec<&mut f32> {
    let mut knobs = Vec::new();
    knobs.extend(weights.fields.iter_mut());
    knobs.extend(weights.length.iter_mut());
    knobs.extend([
        &mut weights.saturation,
        &mut weights.chunk_saturation,
        &mut weights.query.weak,
        &mut weights.query.context,
        &mut weights.query.synonym,
        &mut weights.query.pair,
    ]);
    knobs.extend(weights.features.iter_mut());
    knobs
}

fn measure(cases: &[Case], weights: &Weights) -> Metrics {
    let mut metrics = Metrics::default();
    for (question, index, history) in cases {
        let lookup = index.lookup_weighted(&question.query, None, LIMIT, history.as_ref(), weights);
        metrics
            .add(question, &BenchAnswer::of(question, &lookup, None), |path| index.lines(path).unwrap_or(0));
    }
    metrics
}

fn goal(cases: &[Case], weights: &Weights) -> f64 {
    let metrics = measure(cases, weights);
    (metrics.hit1 + metrics.hit5 + metrics.recall10 + 2.0 * metrics.mrr) / 5.0 / metrics.questions
}

fn show(halves: &[Vec<Case>; 2], weights: &Weights, name: &str) {
    for (half, side) in halves.iter().zip(["tuned on", "other"]) {
        println!("{}", measure(half, weights).row(&format!("{name}, {side}")));
    }
}
