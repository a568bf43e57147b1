//! The goals of the index, next to the measured figures.

use crate::bench::Metrics;
use crate::figures::Figures;

enum Reach {
    AtLeast(f64),
    AtMost(f64),
}

use Reach::{AtLeast, AtMost};

/// The goals for [`Metrics::shares`], in the same order.
const ACCURACY: [(&str, Reach); 8] = [
    ("hit@1", AtLeast(0.52)),
    ("hit@5", AtLeast(0.88)),
    ("recall@10", AtLeast(0.83)),
    ("MRR", AtLeast(0.67)),
    ("confident: precision", AtLeast(0.90)),
    ("confident: coverage", AtLeast(0.45)),
    ("changed hunks shown", AtLeast(0.65)),
    ("lines shown", AtMost(0.17)),
];

/// Prints a row for each goal. `baselines` are path overlap and plain BM25, measured in the same run.
pub fn print(metrics: &Metrics, baselines: [&Metrics; 2], figures: &Figures, lookups: [f64; 2]) {
    println!("\n{:<34} {:>8} {:>10}  {:<7}{:>12}{:>12}", "gate", "reach", "figure", "", "overlap", "bm25");
    let shares = metrics.shares();
    let others = baselines.map(Metrics::shares);
    for (at, (name, reach)) in ACCURACY.iter().enumerate() {
        row(name, "", reach, shares[at], others.map(|other| other[at]));
    }
    let times = [
        ("full index, median", "ms", AtMost(60.0), Some(figures.full)),
        ("full index, peak memory", "MB", AtMost(60.0), figures.peak),
        ("466 files, 8 MB, median", "ms", AtMost(400.0), Some(figures.large)),
        ("one file, median", "ms", AtMost(3.0), Some(figures.one_file[0])),
        ("one file, slowest", "ms", AtMost(3.0), Some(figures.one_file[1])),
        ("lookup, median", "µs", AtMost(100.0), Some(lookups[0] * 1e3)),
        ("lookup, 99 of 100", "µs", AtMost(1_000.0), Some(lookups[1] * 1e3)),
        ("blob, load, median", "ms", AtMost(10.0), Some(figures.load)),
        ("blob, of the text's size", "", AtMost(0.6), Some(figures.blob_share)),
        ("twice the size, times the time", "", AtMost(2.3), Some(figures.twice)),
    ];
    for (name, unit, reach, figure) in times {
        row(name, unit, &reach, figure, [None, None]);
    }
}

fn row(name: &str, unit: &str, reach: &Reach, figure: Option<f64>, baselines: [Option<f64>; 2]) {
    let digits = if unit.is_empty() { 3 } else { 1 };
    let show = |figure: Option<f64>| figure.map_or("–".into(), |figure| format!("{figure:.digits$}"));
    let (sign, limit, is_reached) = match *reach {
        AtLeast(limit) => ("≥", limit, figure.map(|figure| figure >= limit)),
        AtMost(limit) => ("≤", limit, figure.map(|figure| figure <= limit)),
    };
    let verdict = match is_reached {
        Some(true) => "ok",
        Some(false) => "missed",
        None => "–",
    };
    let name = if unit.is_empty() { name.to_owned() } else { format!("{name}, {unit}") };
    let [overlap, bm25] = baselines.map(show);
    println!(
        "{name:<34} {:>8} {:>10}  {verdict:<7}{overlap:>12}{bm25:>12}",
        format!("{sign} {limit}"),
        show(figure)
    );
}
