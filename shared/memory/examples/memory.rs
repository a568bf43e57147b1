//! Measures the search of memory.
//!
//! - `bench --turns FILE.jsonl --queries FILE.jsonl`: how much of the evidence is found, and how fast. A turn is
//!   `{"id", "session", "time", "speaker", "text"}`; the time is RFC 3339 or free text. A query is
//!   `{"query", "gold": [ids]}`. Both may have a `vector`, a list of numbers. Several pairs may follow each other: each is an index of its own, and the figures are
//!   over all queries.
//! - `figures`: an index of 100,000 made-up messages: time to build, to add, to load and to search, and its size.

// A program that measures reads files and the clock. The library does not.
#![allow(clippy::disallowed_methods)]

use std::error::Error;
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use lexopt::prelude::*;
use memory::{Document, Index, Kind, Part, Query, Segment, Vector, Writer};
use serde_json::Value;

type Failure = Box<dyn Error>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failure> {
    let mut arguments = lexopt::Parser::from_env();
    let (mut command, mut turns, mut queries) = (String::new(), Vec::new(), Vec::new());
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("turns") => turns.push(arguments.value()?.string()?),
            Long("queries") => queries.push(arguments.value()?.string()?),
            Value(name) if command.is_empty() => command = name.string()?,
            other => return Err(other.unexpected().into()),
        }
    }
    match command.as_str() {
        "bench" if turns.len() == queries.len() && !turns.is_empty() => bench(&turns, &queries),
        "figures" => figures(),
        _ => Err("usage: memory bench --turns FILE --queries FILE … | memory figures".into()),
    }
}

/// The lines of a file, each a JSON object.
fn lines(path: &str) -> Result<Vec<Value>, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let all: Result<Vec<Value>, _> =
        text.lines().filter(|line| !line.trim().is_empty()).map(serde_json::from_str).collect();
    Ok(all?)
}

fn field(line: &Value, name: &str) -> String {
    line[name].as_str().unwrap_or_default().to_owned()
}

fn vector(line: &Value) -> Option<Vec<f32>> {
    let values = line["vector"].as_array()?;
    Some(values.iter().map(|value| value.as_f64().unwrap_or_default() as f32).collect())
}

/// The name under which all vectors are stored.
const MODEL: &str = "model";

/// A part for each session.
fn parts(turns: &[Value]) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for turn in turns {
        let session = field(turn, "session");
        if parts.last().is_none_or(|part| part.session != session) {
            parts.push(Part {
                key: format!("{:06} {session}", parts.len()),
                session,
                namespace: String::new(),
                kind: Kind::Raw,
                date: None,
                zone: TimeZone::UTC,
                documents: Vec::new(),
            });
        }
        let time = field(turn, "time");
        let exact: Option<Timestamp> = time.parse().ok();
        let document = Document {
            key: field(turn, "id"),
            speaker: field(turn, "speaker"),
            time: exact,
            date_text: if exact.is_some() { String::new() } else { time },
            text: field(turn, "text"),
            vector: vector(turn),
            ..Document::default()
        };
        parts.last_mut().expect("one was just pushed").documents.push(document);
    }
    parts
}

fn built(parts: Vec<Part>) -> Result<Vec<u8>, Failure> {
    let mut writer = Writer::with_model(MODEL);
    parts.into_iter().for_each(|part| writer.add(part));
    Ok(writer.finish()?)
}

const DEPTHS: [usize; 3] = [5, 10, 20];

fn bench(turns: &[String], queries: &[String]) -> Result<(), Failure> {
    let (mut found, mut questions, mut times, mut size, mut count) = ([0.0; 3], 0, Vec::new(), 0, 0);
    for (turns, queries) in turns.iter().zip(queries) {
        let turns = lines(turns)?;
        count += turns.len();
        let bytes = built(parts(&turns))?;
        size += bytes.len();
        let index = Index::load(vec![bytes])?;
        let queries = lines(queries)?;
        for line in &queries {
            let text = field(line, "query");
            let gold: Vec<&str> =
                line["gold"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            if gold.is_empty() {
                return Err(format!("a query has no gold: {text}").into());
            }
            let vector = vector(line);
            let vector = vector.as_ref().map(|values| Vector { model: MODEL, values });
            let query = Query { limit: 20, vector, ..Query::new(&text, now(), TimeZone::UTC) };
            times.push(fastest(|| index.search(&query).hits.len()));
            let answer = index.search(&query);
            for (found, depth) in found.iter_mut().zip(DEPTHS) {
                let hits = &answer.hits[..depth.min(answer.hits.len())];
                let of_gold = gold.iter().filter(|id| hits.iter().any(|hit| hit.document == **id)).count();
                *found += of_gold as f64 / gold.len() as f64;
            }
            questions += 1;
        }
    }
    let [five, ten, twenty] = found.map(|sum: f64| sum / f64::from(questions));
    println!(
        "recall of evidence @5/@10/@20  {five:.3} / {ten:.3} / {twenty:.3}  ({questions} queries, {count} turns)"
    );
    println!(
        "query p50 {:?}, p99 {:?}; size {size} bytes",
        quantile(&mut times, 0.5),
        quantile(&mut times, 0.99)
    );
    Ok(())
}

/// The time of all queries. Their dates are absolute.
fn now() -> Timestamp {
    Timestamp::from_second(1_767_225_600).expect("the first second of 2026")
}

fn quantile(times: &mut [Duration], share: f64) -> Duration {
    times.sort_unstable();
    let at = (times.len() as f64 * share) as usize;
    times.get(at.min(times.len().saturating_sub(1))).copied().unwrap_or_default()
}

/// Made-up messages. The words have lengths and frequencies as in a language (Zipf), so postings have realistic sizes.
struct Source {
    state: u64,
    words: Vec<String>,
    /// The sum of the frequencies up to each word.
    sums: Vec<f64>,
}

const SPEAKERS: [&str; 6] = ["Amara Oduya", "Bela", "Chiyo", "Dmitri", "Elena", "Assistant"];
const VOCABULARY: usize = 40_000;
const SESSION: usize = 40;

impl Source {
    fn new() -> Self {
        let mut source = Self { state: 0x9E37_79B9_7F4A_7C15, words: Vec::new(), sums: Vec::new() };
        let mut sum = 0.0;
        let usual = [
            "the",
            "I",
            "and",
            "to",
            "a",
            "is",
            "you",
            "it",
            "of",
            "in",
            "was",
            "my",
            "that",
            "yesterday",
            "week",
        ];
        for rank in 0..VOCABULARY {
            let word = usual.get(rank).map_or_else(|| source.word(), |word| (*word).to_owned());
            source.words.push(word);
            sum += 1.0 / (rank as f64 + 2.7);
            source.sums.push(sum);
        }
        source
    }

    fn random(&mut self, below: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 16) as usize % below
    }

    fn word(&mut self) -> String {
        let syllables = 1 + self.random(3);
        let of = |source: &mut Self, letters: &str| {
            let at = source.random(letters.len());
            letters[at..=at].to_owned()
        };
        (0..=syllables)
            .map(|_| of(self, "bcdfghklmnprstvw") + &of(self, "aeiou") + &of(self, "lmnrst"))
            .collect()
    }

    fn pick(&mut self) -> String {
        let last = self.sums.last().copied().unwrap_or_default();
        let at = self.random(1 << 30) as f64 / f64::from(1 << 30) * last;
        let place = self.sums.partition_point(|sum| *sum < at);
        self.words[place.min(VOCABULARY - 1)].clone()
    }

    fn text(&mut self) -> String {
        let count = 4 + self.random(28);
        let words: Vec<String> = (0..count).map(|_| self.pick()).collect();
        let end = if self.random(5) == 0 { "?" } else { "." };
        words.join(" ") + end
    }

    fn part(&mut self, number: usize) -> Part {
        let start = now() - 48.hours() * (4000 - number as i64);
        let documents = (0..SESSION).map(|place| Document {
            key: format!("msg_{number:06}_{place:03}"),
            speaker: SPEAKERS[(number % 5 + place % 2 * (5 - number % 5)) % SPEAKERS.len()].to_owned(),
            time: Some(start + (place as i64).minutes()),
            text: self.text(),
            ..Document::default()
        });
        Part {
            key: format!("cht_{number:06}/day"),
            session: format!("cht_{number:06}"),
            namespace: String::new(),
            kind: Kind::Raw,
            date: None,
            zone: TimeZone::UTC,
            documents: documents.collect(),
        }
    }

    fn query(&mut self) -> String {
        let mut words: Vec<String> = (0..3 + self.random(6)).map(|_| self.pick()).collect();
        words.insert(
            0,
            ["What did", "When was", "How many", "Where is", "Tell me"][self.random(5)].to_owned(),
        );
        if self.random(2) == 0 {
            words.insert(1, SPEAKERS[self.random(5)].to_owned());
        }
        if self.random(4) == 0 {
            words.push(["in May 2021", "last week", "on 8 May", "yesterday"][self.random(4)].to_owned());
        }
        words.join(" ")
    }
}

/// The time of a search in which vectors are compared too. They are random, so they never change a result.
fn with_vectors(source: &mut Source) -> Result<(), Failure> {
    const DIMENSION: usize = 256;
    let mut parts: Vec<Part> = (0..100_000 / SESSION).map(|number| source.part(number)).collect();
    let mut values = || (0..DIMENSION).map(|_| source.random(2001) as f32 - 1000.0).collect::<Vec<f32>>();
    for document in parts.iter_mut().flat_map(|part| &mut part.documents) {
        document.vector = Some(values());
    }
    let asked = values();
    let index = Index::load(vec![built(parts)?])?;
    let mut times = Vec::new();
    for _ in 0..200 {
        let text = source.query();
        let vector = Some(Vector { model: MODEL, values: &asked });
        let query = Query { vector, ..Query::new(&text, now(), TimeZone::UTC) };
        times.push(fastest(|| index.search(&query).hits.len()));
    }
    let (p50, p99) = (quantile(&mut times, 0.5), quantile(&mut times, 0.99));
    println!("search with vectors of {DIMENSION} values p50 {p50:?}, p99 {p99:?}");
    Ok(())
}

fn timed<T>(what: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let value = black_box(what());
    (value, start.elapsed())
}

/// The fastest of three times, because other programs of the machine disturb single ones.
fn fastest<T>(what: impl Fn() -> T) -> Duration {
    (0..3).map(|_| timed(&what).1).min().unwrap_or_default()
}

fn figures() -> Result<(), Failure> {
    let mut source = Source::new();
    let parts: Vec<Part> = (0..100_000 / SESSION).map(|number| source.part(number)).collect();
    let text: usize = parts.iter().flat_map(|part| &part.documents).map(|document| document.text.len()).sum();
    let (bytes, build) = timed(|| built(parts));
    let bytes = bytes?;
    println!("build {build:?}; {} bytes for {text} bytes of text", bytes.len());
    let copy = bytes.clone();
    let (base, load) = timed(|| Segment::load(copy).map(Arc::new));
    let base = base?;
    let (index, join) = timed(|| Index::new(vec![Arc::clone(&base)]));
    println!("load {load:?} + {join:?} ({} documents)", index.len());
    let mut increments = vec![base];
    let mut times = Vec::new();
    for number in 0..20 {
        let part = source.part(2400 + number * 7);
        let (index, time) = timed(|| -> Result<Index, Failure> {
            increments.push(Arc::new(Segment::load(built(vec![part])?)?));
            Ok(Index::new(increments.clone()))
        });
        index?;
        times.push(time);
    }
    println!(
        "increment of {SESSION} messages p50 {:?}, slowest {:?}",
        quantile(&mut times, 0.5),
        quantile(&mut times, 1.0)
    );
    let index = Index::new(increments);
    let mut times = Vec::new();
    for _ in 0..2000 {
        let text = source.query();
        let query = Query::new(&text, now(), TimeZone::UTC);
        times.push(fastest(|| index.search(&query).hits.len()));
    }
    println!("search p50 {:?}, p99 {:?}", quantile(&mut times, 0.5), quantile(&mut times, 0.99));
    with_vectors(&mut source)?;
    let (merged, merge) = timed(|| index.merge());
    println!("merge of 21 segments {merge:?}; {} bytes", merged?.len());
    Ok(())
}
