//! Measures the theme index, for a folder or against a benchmark, and draws its graph.
//!
//! Run it with `cargo run -p theme-lookup --example theme -- …`. `cargo run --profile bench -p theme-scripts --example
//! theme_quick -- …` is the same program, built without the shared crate and the AWS SDKs.
//!
//! ```text
//! theme figures DIR
//! theme picture DIR
//! theme histories --bench FILE.jsonl --clone DIR --out HISTORIES.jsonl
//! theme bench --bench FILE.jsonl [--histories HISTORIES.jsonl] [--split dev|test|all] [--out RUN.jsonl]
//! theme tune --bench FILE.jsonl [--histories HISTORIES.jsonl] [--rounds N]
//! ```
//!
//! `lamplighter theme` checks, searches and maps a folder.

#![allow(clippy::disallowed_methods, reason = "a program for people reads files and takes times")]

mod bench;
mod figures;
mod gates;
mod histories;
#[path = "../../../../shared/theme/src/tests/repeated.rs"]
mod repeated;
mod svg;
mod tune;

use std::path::{Path, PathBuf};

use theme::ThemeIndex;

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).map(String::as_str)
    };
    let histories = || histories::load(option("--histories").map(Path::new));
    let bench_file = || option("--bench").map(PathBuf::from).ok_or("--bench FILE.jsonl is missing");
    match arguments.first().map(String::as_str) {
        Some("picture") => {
            print!(
                "{}",
                svg::picture(&ThemeIndex::build(files(arguments.get(1).ok_or("DIR is missing")?)?)?)
            );
            Ok(())
        }
        Some("figures") => figures::run(&files(arguments.get(1).ok_or("DIR is missing")?)?),
        Some("bench") => {
            let out = option("--out").map(Path::new);
            bench::run(&bench_file()?, &histories()?, option("--split").unwrap_or("all"), out)
        }
        Some("histories") => {
            let clone = option("--clone").ok_or("--clone DIR is missing")?;
            let out = option("--out").ok_or("--out FILE is missing")?;
            histories::run(&bench_file()?, Path::new(clone), Path::new(out))
        }
        Some("tune") => {
            let rounds = option("--rounds").map_or(Ok(3), str::parse)?;
            tune::run(&bench_file()?, &histories()?, rounds)
        }
        Some("features") => {
            let out = option("--out").ok_or("--out FILE is missing")?;
            tune::features(&bench_file()?, &histories()?, Path::new(out))
        }
        _ => Err("usage: theme figures|picture|histories|bench|tune|features …".into()),
    }
}

/// The files in a theme's folders.
fn files(folder: &str) -> Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::from(folder)];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next)? {
            let path = entry?.path();
            if path.is_dir() {
                if path.file_name().is_none_or(|name| !name.to_string_lossy().starts_with('.')) {
                    folders.push(path);
                }
            } else {
                let name = path.strip_prefix(folder)?.to_string_lossy().into_owned();
                files.push((name, std::fs::read(&path)?));
            }
        }
    }
    Ok(files)
}
