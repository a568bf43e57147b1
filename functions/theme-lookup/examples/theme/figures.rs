//! Times and sizes for one theme.

use std::time::Instant;

use theme::ThemeIndex;

use crate::Result;
use crate::bench::quantile;
use crate::repeated::REPEATED;

const ROUNDS: usize = 15;

/// The size of the largest open-source theme that was tried.
const LARGE_FILES: usize = 466;
const LARGE_BYTES: usize = 8_000_000;

/// Times in milliseconds, memory in megabytes.
pub struct Figures {
    pub full: f64,
    /// How much memory the process gained at most while it read the theme for the first time. `None` if the system does
    /// not report it.
    pub peak: Option<f64>,
    /// A large theme: the files of this theme, plus minified scripts.
    pub large: f64,
    /// The median file and the slowest file.
    pub one_file: [f64; 2],
    pub slowest: String,
    pub load: f64,
    pub blob_share: f64,
    /// How many times longer a theme of twice the size takes.
    pub twice: f64,
}

impl Figures {
    pub fn of<B: AsRef<[u8]>>(files: &[(String, B)]) -> Result<Self> {
        let files: Vec<(&str, &[u8])> =
            files.iter().map(|(path, content)| (path.as_str(), content.as_ref())).collect();
        let before = memory("VmRSS:");
        forget_peak();
        let mut index = ThemeIndex::build(files.iter().copied())?;
        let peak = before.zip(memory("VmHWM:")).map(|(before, peak)| peak - before);

        let mut changes = Vec::new();
        for &(path, content) in &files {
            let time = median(3, || index.replace(path, content))?;
            changes.push((time, path));
        }
        let mut times: Vec<f64> = changes.iter().map(|change| change.0).collect();
        let slowest = changes.iter().max_by(|a, b| a.0.total_cmp(&b.0)).map_or("", |change| change.1);

        let blob = index.to_blob();
        let large = large(&files);
        let copy = |(path, content): &(&str, &[u8])| (path.replacen('/', "/copy-", 1), content.to_vec());
        let twice: Vec<(String, Vec<u8>)> = files
            .iter()
            .map(|(path, content)| ((*path).to_owned(), content.to_vec()))
            .chain(files.iter().map(copy))
            .collect();
        Ok(Self {
            full: median(ROUNDS, || ThemeIndex::build(files.iter().copied()))?,
            peak,
            large: median(5, || ThemeIndex::build(large.iter().map(|(path, content)| (path, content))))?,
            one_file: [quantile(&mut times, 0.5), quantile(&mut times, 1.0)],
            slowest: slowest.to_owned(),
            load: median(ROUNDS, || ThemeIndex::from_blob(&blob))?,
            blob_share: blob.len() as f64 / files.iter().map(|file| file.1.len()).sum::<usize>() as f64,
            twice: best(7, || ThemeIndex::build(twice.iter().map(|(path, content)| (path, content))))?
                / best(7, || ThemeIndex::build(files.iter().copied()))?,
        })
    }
}

fn large(files: &[(&str, &[u8])]) -> Vec<(String, Vec<u8>)> {
    const SCRIPT: &str = "function a(b){return b?b+1:0}";
    const SCRIPTS: usize = 6;
    let named = |(at, (path, content)): (usize, &(&str, &[u8]))| {
        (path.replacen('/', &format!("/{at}-"), 1), content.to_vec())
    };
    let mut large: Vec<(String, Vec<u8>)> =
        files.iter().cycle().take(LARGE_FILES - SCRIPTS).enumerate().map(named).collect();
    let bytes: usize = large.iter().map(|file| file.1.len()).sum();
    let script = SCRIPT.repeat(LARGE_BYTES.saturating_sub(bytes) / SCRIPTS / SCRIPT.len());
    large.extend((0..SCRIPTS).map(|at| (format!("assets/vendor-{at}.min.js"), script.clone().into_bytes())));
    large
}

fn times<T, E>(
    rounds: usize,
    mut run: impl FnMut() -> std::result::Result<T, E>,
) -> std::result::Result<Vec<f64>, E> {
    let mut times = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let started = Instant::now();
        run()?;
        times.push(milliseconds(started));
    }
    Ok(times)
}

fn median<T, E>(
    rounds: usize,
    run: impl FnMut() -> std::result::Result<T, E>,
) -> std::result::Result<f64, E> {
    Ok(quantile(&mut times(rounds, run)?, 0.5))
}

fn best<T, E>(rounds: usize, run: impl FnMut() -> std::result::Result<T, E>) -> std::result::Result<f64, E> {
    Ok(quantile(&mut times(rounds, run)?, 0.0))
}

/// One value of Linux's process status, in megabytes.
fn memory(name: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<f64>().ok()? / 1e3)
}

/// Resets the peak memory. If the system refuses this, the figure is the peak since the process began.
fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

pub fn run(files: &[(String, Vec<u8>)]) -> Result<()> {
    let figures = Figures::of(files)?;
    let bytes: usize = files.iter().map(|file| file.1.len()).sum();
    println!("{} files, {:.2} MB", files.len(), bytes as f64 / 1e6);
    println!("full index: {:.1} ms", figures.full);
    println!("peak memory: {}", figures.peak.map_or("unknown".to_owned(), |peak| format!("{peak:.1} MB")));
    println!("{LARGE_FILES} files, {} MB: {:.0} ms", LARGE_BYTES / 1_000_000, figures.large);
    let [usual, slowest] = figures.one_file;
    println!("one file: {usual:.2} ms, slowest {slowest:.2} ms ({})", figures.slowest);
    println!("blob: {:.1} % of the text, load {:.2} ms", 100.0 * figures.blob_share, figures.load);
    println!("twice the size: {:.2} times the time", figures.twice);
    let index = ThemeIndex::build(files.iter().map(|(path, content)| (path, content)))?;
    let requests = [
        "make the cart drawer wider on mobile",
        "hamburger menu does not close",
        "change the color of the add to cart button on the product page",
        "Fix focus outline on predictive search results",
        "anouncement bar text size",
        "the filters on the collection page overlap the sticky header",
        "Warenkorb ist leer",
    ];
    let mut lookups = Vec::new();
    for request in requests {
        lookups.extend(times::<_, std::convert::Infallible>(100, || Ok(index.lookup(request, None, 10)))?);
    }
    let [p50, p99] = [0.5, 0.99].map(|at| quantile(&mut lookups, at) * 1e3);
    println!("lookup: median {p50:.0} µs, 99 of 100 {p99:.0} µs");
    let map =
        median::<_, std::convert::Infallible>(ROUNDS, || Ok(index.repo_map(Some(requests[0]), None, 4_000)))?;
    println!("repo map of 4K: {map:.2} ms");
    hostile()
}

/// Repeats one piece, to half a megabyte and to a megabyte: the time must grow linearly with the size.
fn hostile() -> Result<()> {
    let mut worst = (0.0, String::new(), 0.0);
    for piece in REPEATED {
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

pub fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}
