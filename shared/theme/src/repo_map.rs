//! The repo map: an outline of the theme within a token budget, the most important files first.
//!
//! Relevance to a request is spread along the graph (personalised PageRank): a file is important if important files
//! need it.

use std::fmt::Write;

use super::graph::Graph;
use super::index::ThemeIndex;
use super::query::Query;
use super::rank::{Weights, rank};
use super::record::FileRecord;
use super::scan::{EdgeKind, EdgeNature, SymbolKind};

/// The possible token budgets of a repo map.
pub const BUDGETS: [usize; 4] = [2_000, 4_000, 8_000, 12_000];

/// Bytes per token. All prompts are measured with this estimate.
pub const BYTES_PER_TOKEN: usize = 4;

const ROUNDS: usize = 20;
/// The walk continues almost as often as it returns, so neighbours of the requested files count more than files that
/// everything needs.
const DAMPING: f32 = 0.6;

/// How much detail the map shows of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// Path, kind and length.
    Line,
    /// Also what it renders and loads.
    Links,
    /// Also settings, blocks, classes and methods.
    Symbols,
}

impl ThemeIndex {
    /// An outline of at most `max_tokens` tokens. If the theme is large enough, it uses at least nine tenths of them.
    pub fn repo_map(&self, request: Option<&str>, active_file: Option<&str>, max_tokens: usize) -> String {
        let budget = max_tokens * BYTES_PER_TOKEN;
        let mut order: Vec<(f32, u32)> = self
            .importance(request, active_file)
            .into_iter()
            .zip(0_u32..)
            .filter(|&(_, file)| self.files[file as usize].kind.is_target())
            .collect();
        order.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut map = Map { text: String::new(), budget };
        // Half of the budget goes to the most important files in full. The rest goes first to more files, then to
        // single lines.
        let mut rest = order.as_slice();
        for (detail, share) in [(Detail::Symbols, 60), (Detail::Links, 85), (Detail::Line, 100)] {
            let limit = budget * share / 100;
            while let Some((&(_, file), more)) = rest.split_first() {
                if map.text.len() >= limit || !map.add(&self.entry(file, detail), limit) {
                    break;
                }
                rest = more;
            }
        }
        // The remaining budget is too small for the next file, but a smaller file may fit.
        for &(_, file) in rest {
            map.add(&self.entry(file, Detail::Line), budget);
        }
        // All files are listed and budget is left: show more files in full.
        if rest.is_empty() && map.text.len() < budget * 9 / 10 {
            return self.full_map(&order, budget);
        }
        map.text
    }

    /// Shows as many files in full as fit next to a line for every other file.
    fn full_map(&self, order: &[(f32, u32)], budget: usize) -> String {
        let lines: Vec<String> = order.iter().map(|&(_, file)| self.entry(file, Detail::Line)).collect();
        let mut left = budget - lines.iter().map(String::len).sum::<usize>().min(budget);
        let mut text = String::new();
        for (&(_, file), line) in order.iter().zip(lines) {
            let details = [Detail::Symbols, Detail::Links].map(|detail| self.entry(file, detail));
            let fits = |entry: &String| entry.len() - line.len() <= left;
            let entry = details.into_iter().find(fits).unwrap_or_else(|| line.clone());
            left -= entry.len() - line.len();
            text += &entry;
        }
        text
    }

    pub(super) fn importance(&self, request: Option<&str>, active_file: Option<&str>) -> Vec<f32> {
        let mut wanted = vec![0.05 / self.files.len().max(1) as f32; self.files.len()];
        let active = active_file.and_then(|path| self.file(path));
        if let Some(request) = request {
            let query = Query::parse(self, request, &Weights::TUNED.query);
            let ranked = rank(self, &query, active, None, &Weights::TUNED).files;
            for (place, ranked) in ranked.iter().take(20).enumerate() {
                wanted[ranked.file as usize] += 1.0 / (1.0 + place as f32);
            }
        }
        if let Some(active) = active {
            wanted[active as usize] += 1.0;
        }
        page_rank(&self.graph, &wanted)
    }

    fn entry(&self, file: u32, detail: Detail) -> String {
        let record = &self.files[file as usize];
        let mut entry = format!("{} [{}, {} lines]\n", record.path, record.kind, record.lines);
        if detail == Detail::Line {
            return entry;
        }
        if let Some(headline) = &record.headline {
            let _ = writeln!(entry, "  {headline}");
        }
        let mut needs: Vec<&str> = Vec::new();
        for edge in self.graph.outgoing(file) {
            let is_shown =
                !matches!(edge.kind, EdgeKind::CssClass | EdgeKind::Translation | EdgeKind::Setting);
            if let (Some(to), true, true) = (edge.to, is_shown, edge.nature == EdgeNature::Direct) {
                needs.push(self.path(to));
            }
        }
        needs.sort_unstable();
        needs.dedup();
        push_list(&mut entry, "needs", &needs, 12);
        if detail == Detail::Symbols {
            self.symbols(record, &mut entry);
        }
        entry
    }

    fn symbols(&self, record: &FileRecord, entry: &mut String) {
        let lists = [
            ("settings", SymbolKind::Setting, 16),
            ("blocks", SymbolKind::BlockType, 16),
            ("elements", SymbolKind::CustomElement, 8),
            ("classes", SymbolKind::Class, 8),
            ("functions", SymbolKind::Function, 12),
            ("methods", SymbolKind::Method, 16),
            ("css", SymbolKind::CssClass, 16),
        ];
        for (title, kind, most) in lists {
            let of_kind = record.symbols.iter().filter(|symbol| symbol.kind == kind);
            let names: Vec<&str> = of_kind.map(|symbol| self.tables.names.term(symbol.name)).collect();
            push_list(entry, title, &names, most);
        }
    }
}

struct Map {
    text: String,
    budget: usize,
}

impl Map {
    /// Adds an entry if it stays within `limit`. Returns whether it did.
    fn add(&mut self, entry: &str, limit: usize) -> bool {
        let fits = self.text.len() + entry.len() <= limit.min(self.budget);
        if fits {
            self.text += entry;
        }
        fits
    }
}

fn push_list(entry: &mut String, title: &str, names: &[&str], most: usize) {
    if names.is_empty() {
        return;
    }
    let _ = write!(entry, "  {title}: {}", names[..names.len().min(most)].join(", "));
    if names.len() > most {
        let _ = write!(entry, " and {} more", names.len() - most);
    }
    entry.push('\n');
}

/// Rendering and loading, but not sharing of classes, texts and settings.
fn is_structure(kind: EdgeKind) -> bool {
    !matches!(kind, EdgeKind::CssClass | EdgeKind::Translation | EdgeKind::Setting)
}

/// The share of time that a random walk spends at each file if it keeps returning to the wanted files.
fn page_rank(graph: &Graph, wanted: &[f32]) -> Vec<f32> {
    let sum: f32 = wanted.iter().sum();
    let home: Vec<f32> = wanted.iter().map(|weight| weight / sum).collect();
    let mut rank = home.clone();
    for _ in 0..ROUNDS {
        let mut next: Vec<f32> = home.iter().map(|weight| weight * (1.0 - DAMPING)).collect();
        for (file, &own) in rank.iter().enumerate() {
            let edges = graph.outgoing(file as u32).iter().filter(|edge| is_structure(edge.kind));
            let targets = || edges.clone().filter_map(|edge| edge.to);
            let count = targets().count();
            if count == 0 {
                // At a dead end the walk returns to the wanted files.
                for (next, weight) in next.iter_mut().zip(&home) {
                    *next += DAMPING * own * weight;
                }
            }
            for to in targets() {
                next[to as usize] += DAMPING * own / count as f32;
            }
        }
        rank = next;
    }
    rank
}
