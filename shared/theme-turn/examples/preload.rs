//! Prints how much of a theme a turn sends ahead for ten requests, beside what the same files have as a whole.
//!
//! `cargo run --release -p theme-turn --example preload -- FOLDER`

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "an example reads a folder and prints a table"
)]

use std::error::Error;
use std::path::Path;

use theme::ThemeIndex;

#[path = "../tests/measure/mod.rs"]
mod measure;

/// Rows of `tests/requests.tsv`, of each mode and each size.
const REQUESTS: [&str; 10] = [
    "Make the buy button green",
    "Set the padding of the footer to 20px",
    "Hide the quick add button on products that are sold out",
    "Move the announcement bar below the header",
    "Add a size chart popup to all products",
    "Add colour swatches to the product cards in the collection, four at most and then +2",
    "Refactor the colour schemes across all sections so they use the new colour scheme setting",
    "The sticky header sometimes disappears when I switch variants on the product page",
    "Explain how the cart drawer updates the totals",
    "Plan how you would add a mega menu before you change anything",
];

const FOLDERS: [&str; 8] =
    ["assets", "blocks", "config", "layout", "locales", "sections", "snippets", "templates"];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: preload FOLDER")?;
    let root = Path::new(&folder);
    let mut paths = Vec::new();
    for name in FOLDERS {
        collect(root, name, &mut paths)?;
    }
    paths.sort();
    let mut contents = Vec::new();
    for path in paths {
        let bytes = std::fs::read(root.join(&path))?;
        contents.push((path, bytes));
    }
    let index = ThemeIndex::build(contents.iter().map(|(path, bytes)| (path, bytes)))?;
    let texts: Vec<(String, String)> = contents
        .into_iter()
        .filter_map(|(path, bytes)| Some((path, String::from_utf8(bytes).ok()?)))
        .collect();
    println!(
        "| request | mode, tier | files gated | shown | briefing | its frame | the shown whole | ratio | the gated whole | ratio |"
    );
    println!("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    let (mut sent, mut shown, mut gated) = (0, 0, 0);
    for request in REQUESTS {
        let one = measure::measure(&index, &texts, request);
        println!(
            "| {request} | {:?}, {:?} | {} | {} | {} | {} | {} | {} | {} | {} |",
            one.classified.mode,
            one.classified.tier,
            one.gated,
            one.shown,
            one.briefing,
            one.frame,
            one.shown_whole,
            ratio(one.briefing, one.shown_whole),
            one.gated_whole,
            ratio(one.briefing, one.gated_whole),
        );
        sent += one.briefing;
        shown += one.shown_whole;
        gated += one.gated_whole;
    }
    println!(
        "| all | | | | {sent} | | {shown} | {} | {gated} | {} |",
        ratio(sent, shown),
        ratio(sent, gated)
    );
    Ok(())
}

fn ratio(part: usize, whole: usize) -> String {
    format!("{:.2}", part as f64 / whole.max(1) as f64)
}

/// The files of a folder and of those within it, with their paths from the root. A folder that is not there has none.
fn collect(root: &Path, folder: &str, paths: &mut Vec<String>) -> Result<(), Box<dyn Error>> {
    let full = root.join(folder);
    if !full.is_dir() {
        return Ok(());
    }
    for entry in std::fs::read_dir(full)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = format!("{folder}/{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() {
            collect(root, &path, paths)?;
        } else if kind.is_file() {
            paths.push(path);
        }
    }
    Ok(())
}
