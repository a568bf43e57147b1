//! Embeddings: they help if they know something, and change nothing if they do not.

use super::*;
use crate::{Layer, Vector, Vectors};

/// Made-up topics. Each has words, and a direction among the vectors.
const TOPICS: usize = 24;
const DIMENSION: usize = 32;

/// A simple source of numbers between -0.5 and 0.5.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 40) as f32 / (1_u64 << 24) as f32 - 0.5
    }

    fn vector(&mut self) -> Vec<f32> {
        (0..DIMENSION).map(|_| self.next()).collect()
    }

    fn below(&mut self, below: usize) -> usize {
        (((self.next() + 0.5) * below as f32) as usize).min(below - 1)
    }
}

/// For the vectors of documents and queries.
#[derive(Clone, Copy, PartialEq)]
enum Source {
    None,
    /// The direction of the topic, with much noise.
    Informed,
    Random,
    /// Random, but alike within a conversation.
    Session,
    Constant,
    Empty,
    WrongDimension,
    WrongModel,
}

struct World {
    index: Index,
    /// Text, vector, and the documents of its topic.
    queries: Vec<(String, Vec<f32>, Vec<String>)>,
}

/// Conversations in which each message has words of one topic. Half of the words of a query are in no message, as with a
/// person who uses other words.
fn world(source: Source) -> World {
    let mut random = Random(0x1234_5678_9ABC_DEF1);
    let directions: Vec<Vec<f32>> = (0..TOPICS).map(|_| random.vector()).collect();
    let mut vector_of = |topic: usize, session: &[f32], source: Source| {
        let noise = random.vector();
        let mix =
            |a: &[f32], share: f32| a.iter().zip(&noise).map(|(a, b)| a * share + b).collect::<Vec<_>>();
        match source {
            Source::None => None,
            Source::Informed | Source::WrongModel => Some(mix(&directions[topic], 0.8)),
            Source::Random => Some(noise),
            Source::Session => Some(mix(session, 2.0)),
            Source::Constant => Some(vec![0.25; DIMENSION]),
            Source::Empty => Some(Vec::new()),
            Source::WrongDimension => Some(vec![0.5; DIMENSION / 2]),
        }
    };
    let word = |topic: usize, number: usize| format!("t{topic}w{number}");
    let mut numbers = Random(0xFEED_5678_9ABC_0001);
    let mut of_topic: Vec<Vec<String>> = vec![Vec::new(); TOPICS];
    let mut parts = Vec::new();
    for session in 0..30 {
        let direction = numbers.vector();
        let documents = (0..20).map(|place| {
            let topic = numbers.below(TOPICS);
            let key = format!("{session}-{place}");
            let words = (0..6).map(|_| {
                let from = if numbers.below(3) == 0 { topic } else { numbers.below(TOPICS) };
                word(from, numbers.below(8))
            });
            let text = words.collect::<Vec<_>>().join(" ");
            of_topic[topic].push(key.clone());
            // What is stored has the right dimension also if the query's has not.
            let stored = match source {
                Source::WrongDimension => Source::Informed,
                source => source,
            };
            Document { vector: vector_of(topic, &direction, stored), ..said(&key, "", "", &text) }
        });
        parts.push(part(&format!("{session:02}"), documents.collect()));
    }
    let mut queries = Vec::new();
    for number in 0..240 {
        let topic = number % TOPICS;
        let text = [word(topic, numbers.below(8)), word(topic, numbers.below(8)), format!("unknown{number}")]
            .join(" ");
        let direction = numbers.vector();
        let vector = vector_of(topic, &direction, source).unwrap_or_default();
        queries.push((text, vector, of_topic[topic].clone()));
    }
    World { index: index(parts), queries }
}

/// The share of the first ten hits that are of the right topic, and the share of searches with vectors.
fn precision(source: Source) -> (f32, f32) {
    let World { index, queries } = world(source);
    let model = if source == Source::WrongModel { "another" } else { "model" };
    let (mut right, mut all, mut with_vectors) = (0, 0, 0);
    for (text, vector, topic) in &queries {
        let vector = (source != Source::None).then_some(Vector { model, values: vector });
        let answer = index.search(&Query { vector, ..query(text) });
        right += answer.hits.iter().filter(|hit| topic.iter().any(|key| key == hit.document)).count();
        all += 10;
        with_vectors += usize::from(answer.layers.contains(&Layer::Vectors));
    }
    (right as f32 / all as f32, with_vectors as f32 / queries.len() as f32)
}

#[test]
fn vectors_never_make_it_worse() {
    let (without, none) = precision(Source::None);
    assert_eq!(none, 0.0);
    for (source, most) in [
        (Source::Random, 0.06),
        (Source::Session, 0.06),
        (Source::Constant, 0.0),
        (Source::Empty, 0.0),
        (Source::WrongDimension, 0.0),
        (Source::WrongModel, 0.0),
    ] {
        let (with, share) = precision(source);
        assert!((with - without).abs() <= 0.01, "{with} instead of {without}");
        assert!(share <= most, "{share} of the searches used vectors");
    }
}

#[test]
fn vectors_that_know_something_help() {
    let (without, _) = precision(Source::None);
    let (with, share) = precision(Source::Informed);
    assert!(with > without + 0.1, "{with} instead of {without}");
    assert!(share > 0.5, "{share} of the searches used vectors");
}

/// A text says nothing about a topic in its words, but its vector does.
#[test]
fn vectors_can_be_added_later() {
    let message = |key: &str, text: &str| Document {
        key: key.to_owned(),
        speaker: "user".to_owned(),
        text: text.to_owned(),
        ..Document::default()
    };
    let part = |key: &str, documents| Part {
        key: key.to_owned(),
        session: key.to_owned(),
        namespace: String::new(),
        kind: Kind::Raw,
        date: None,
        zone: TimeZone::UTC,
        documents,
    };
    let written = |part| {
        let mut writer = Writer::new();
        writer.add(part);
        writer.finish().unwrap()
    };
    let first = written(part("a", vec![message("1", "The car is in the garage."), message("2", "Good.")]));
    let second = written(part("b", vec![message("3", "Good."), message("4", "Rain today.")]));
    let index = Index::load(vec![first, second]).unwrap();
    assert_eq!(index.model(), "");
    let texts: Vec<String> = index.texts_without_vector("m", 3).into_iter().collect();
    assert_eq!(texts, ["user: Good.", "user: Rain today.", "user: The car is in the garage."]);
    let mut vectors = Vectors::new("m", 3);
    vectors.add("user: The car is in the garage.".to_owned(), &[1.0, 0.0, 0.0]);
    vectors.add("user: Good.".to_owned(), &[0.0, 1.0, 0.0]);
    vectors.add("user: Rain today.".to_owned(), &[0.0, 1.0]);
    assert!(vectors.has("user: Good.") && !vectors.has("user: Rain today."), "its length is wrong");
    let merged = Index::load(vec![index.merged(&vectors).unwrap()]).unwrap();
    assert_eq!(merged.model(), "m");
    let left: Vec<String> = merged.texts_without_vector("m", 3).into_iter().collect();
    assert_eq!(left, ["user: Rain today."]);
    // A merge keeps them, another model replaces them, and without a model they go.
    assert_eq!(merged.merge().unwrap(), index.merged(&vectors).unwrap());
    assert_eq!(merged.texts_without_vector("n", 3).len(), 3);
    let other = Index::load(vec![merged.merged(&Vectors::new("n", 3)).unwrap()]).unwrap();
    assert_eq!((other.model(), other.texts_without_vector("n", 3).len()), ("", 3));
    assert_eq!(merged.merged(&Vectors::new("", 0)).unwrap(), index.merge().unwrap());
}
