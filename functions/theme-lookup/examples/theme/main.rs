//! The theme index on the command line: for a folder, or against a benchmark.
//!
//! Run it with `cargo run -p theme-lookup --example theme -- …`. `cargo run --profile bench -p theme-scripts --example
//! theme_quick -- …` is the same program, built without the shared crate and the AWS SDKs.
//!
//! ```text
//! theme lookup DIR "request" [--active FILE]
//! theme map DIR [--request "…"] [--active FILE] [--tokens 4000]
//! theme graph DIR [--svg]
//! theme figures DIR
//! theme check DIR [--overlay DIR2] [--deleted PATH]… [--json]
//! theme bench --bench FILE.jsonl [--split dev|test|all] [--out RUN.jsonl]
//! theme tune --bench FILE.jsonl [--rounds N]
//! ```

#![allow(clippy::disallowed_methods, reason = "a program for people reads files and takes times")]

mod bench;
mod check;
mod figures;
mod gates;
#[path = "../../../../shared/theme/src/tests/repeated.rs"]
mod repeated;
mod svg;
mod tune;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use theme::ThemeIndex;

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).map(String::as_str)
    };
    let bench_file = || option("--bench").map(PathBuf::from).ok_or("--bench FILE.jsonl is missing");
    let done = match arguments.first().map(String::as_str) {
        Some("check") => return check::run(&arguments[1..]),
        Some("lookup") => {
            let index = read(arguments.get(1).ok_or("DIR is missing")?)?;
            let request = arguments.get(2).ok_or("the request is missing")?;
            println!("{}", serde_json::to_string_pretty(&index.lookup(request, option("--active"), 8))?);
            Ok(())
        }
        Some("map") => {
            let tokens = option("--tokens").map_or(Ok(4_000), str::parse)?;
            let index = read(arguments.get(1).ok_or("DIR is missing")?)?;
            print!("{}", index.repo_map(option("--request"), option("--active"), tokens));
            Ok(())
        }
        Some("graph") => {
            let index = read(arguments.get(1).ok_or("DIR is missing")?)?;
            if arguments.iter().any(|argument| argument == "--svg") {
                print!("{}", svg::picture(&index));
                return Ok(ExitCode::SUCCESS);
            }
            for edge in index.edges() {
                let to = edge.to.as_deref().unwrap_or("(missing)");
                println!("{}:{} {:?} {to} ({})", edge.from, edge.lines.start, edge.kind, edge.via);
            }
            for orphan in index.orphans() {
                println!("nothing needs {orphan}");
            }
            Ok(())
        }
        Some("figures") => figures::run(&files(arguments.get(1).ok_or("DIR is missing")?)?),
        Some("bench") => {
            let out = option("--out").map(Path::new);
            bench::run(&bench_file()?, option("--split").unwrap_or("all"), out)
        }
        Some("tune") => {
            let rounds = option("--rounds").map_or(Ok(3), str::parse)?;
            tune::run(&bench_file()?, rounds)
        }
        Some("features") => {
            let out = option("--out").ok_or("--out FILE is missing")?;
            tune::features(&bench_file()?, Path::new(out))
        }
        _ => Err("usage: theme lookup|map|graph|check|figures|bench|tune|features …".into()),
    };
    done.map(|()| ExitCode::SUCCESS)
}

fn read(folder: &str) -> Result<ThemeIndex> {
    Ok(ThemeIndex::build(files(folder)?)?)
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
