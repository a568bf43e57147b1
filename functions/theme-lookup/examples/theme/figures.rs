//! How long things take, and how large they are, on one theme.

use std::time::Instant;

use domain::theme::ThemeIndex;

use crate::Result;
use crate::bench::quantile;

const ROUNDS: usize = 15;

type Files = Vec<(String, Vec<u8>)>;

pub fn run(files: Files) -> Result<()> {
    let bytes: usize = files.iter().map(|file| file.1.len()).sum();
    println!("{} files, {:.2} MB", files.len(), bytes as f64 / 1e6);
    let translated = |path: &str| path.starts_with("locales/") && !path.contains(".default.");
    let own: Files = files.iter().filter(|(path, _)| !translated(path)).cloned().collect();
    build_figure("full index, one language", &own)?;
    build_figure("full index, all languages", &files)?;

    let mut index = ThemeIndex::build(pairs(&files))?;
    let mut changes: Vec<(f64, &str)> = Vec::new();
    for (path, content) in &files {
        let started = Instant::now();
        index.replace(path, content)?;
        changes.push((milliseconds(started), path));
    }
    let mut times: Vec<f64> = changes.iter().map(|change| change.0).collect();
    let slowest = changes.iter().max_by(|a, b| a.0.total_cmp(&b.0)).map_or("", |change| change.1);
    println!("one file: {}, slowest {slowest}", spread(&mut times));

    let blob = index.to_blob();
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            let loaded = ThemeIndex::from_blob(&blob);
            assert!(loaded.is_ok(), "a blob just written is readable");
            milliseconds(started)
        })
        .collect();
    println!("blob: {} bytes, {:.1} % of the text", blob.len(), 100.0 * blob.len() as f64 / bytes as f64);
    println!("blob load: {}", spread(&mut times));

    let requests = [
        "make the cart drawer wider on mobile",
        "hamburger menu does not close",
        "change the color of the add to cart button on the product page",
        "Fix focus outline on predictive search results",
        "anouncement bar text size",
        "the filters on the collection page overlap the sticky header",
        "Warenkorb ist leer",
    ];
    let mut times = Vec::new();
    for _ in 0..100 {
        for request in requests {
            let started = Instant::now();
            let lookup = index.lookup(request, None, 10);
            times.push(milliseconds(started));
            assert!(lookup.targets.len() <= 10, "the limit holds");
        }
    }
    println!("lookup: {}", spread(&mut times));
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            let map = index.repo_map(Some(requests[0]), None, 4_000);
            assert!(map.len() <= 16_000, "the budget holds");
            milliseconds(started)
        })
        .collect();
    println!("repo map of 4K: {}", spread(&mut times));

    let copy = |(path, content): &(String, Vec<u8>)| (path.replacen('/', "/copy-", 1), content.clone());
    let twice: Files = files.iter().cloned().chain(files.iter().map(copy)).collect();
    let (once, twice) = (best_build(&files)?, best_build(&twice)?);
    println!("twice the size: {:.2} times the time", twice / once);
    hostile()
}

fn pairs(files: &Files) -> Vec<(&str, &[u8])> {
    files.iter().map(|(path, content)| (path.as_str(), content.as_slice())).collect()
}

fn build_figure(name: &str, files: &Files) -> Result<()> {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let index = ThemeIndex::build(pairs(files))?;
        times.push(milliseconds(started));
        assert_eq!(index.len(), files.len(), "every file is in");
    }
    println!("{name}: {}", spread(&mut times));
    Ok(())
}

fn best_build(files: &Files) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..7 {
        let started = Instant::now();
        ThemeIndex::build(pairs(files))?;
        best = best.min(milliseconds(started));
    }
    Ok(best)
}

/// One thing over and over, half a megabyte and a whole one: time must grow as size does.
fn hostile() -> Result<()> {
    let pieces = [
        "{% ",
        "{{ ",
        "{% comment %}",
        "{% if a %}",
        "{% if a %}{% endfor %}",
        "{% schema %}",
        "<a b=\"",
        "<!--",
        "<script>",
        "[",
        "{\"a\":",
        "[}",
        "(]",
        "/*",
        "`${",
        "=/[",
        "\"",
        "@media{",
        ".a{",
        "function a(",
        "class A ",
        "customElements.define(",
        "a",
    ];
    let mut worst = (0.0, String::new(), 0.0);
    for piece in pieces {
        for path in
            ["sections/a.liquid", "assets/a.css", "assets/a.js", "templates/a.json", "locales/fr.json"]
        {
            for separator in ["", "\n"] {
                let time = |size: usize| -> Result<f64> {
                    let text = format!("{piece}{separator}").repeat(size / (piece.len() + separator.len()));
                    let started = Instant::now();
                    ThemeIndex::build([(path, text)])?;
                    Ok(milliseconds(started))
                };
                let (half, whole) = (time(500_000)?, time(1_000_000)?);
                if whole > worst.0 {
                    worst = (whole, format!("{path} {piece:?} {separator:?}"), whole / half);
                }
            }
        }
    }
    println!("worst hostile megabyte: {:.0} ms, {:.2} times its half ({})", worst.0, worst.2, worst.1);
    Ok(())
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn spread(times: &mut [f64]) -> String {
    let (p50, p99) = (quantile(times, 0.5), quantile(times, 0.99));
    format!("p50 {p50:.3} ms, p99 {p99:.3} ms, best {:.3} ms", quantile(times, 0.0))
}
