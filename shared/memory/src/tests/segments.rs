//! Segments that are searched as one.

use proptest::prelude::*;

use super::*;
use crate::Hit;

const WORDS: [&str; 16] = [
    "apple",
    "apples",
    "river",
    "Oslo",
    "blue",
    "yesterday",
    "garden",
    "gardener",
    "piano",
    "three",
    "Haus",
    "der",
    "und",
    "北京",
    "market?",
    "May",
];
const SPEAKERS: [&str; 3] = ["Ada", "Bela", ""];

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(0..WORDS.len(), 0..9)
        .prop_map(|words| words.into_iter().map(|word| WORDS[word]).collect::<Vec<_>>().join(" "))
}

fn document() -> impl Strategy<Value = Document> {
    let vector = prop::option::of(prop::collection::vec(-1.0_f32..1.0, 4));
    (text(), 0..SPEAKERS.len(), 0_i64..900, vector).prop_map(|(text, speaker, day, vector)| Document {
        speaker: SPEAKERS[speaker].to_owned(),
        time: Some(Timestamp::from_second(1_700_000_000 + day * 86_400).unwrap()),
        text,
        vector,
        ..Document::default()
    })
}

/// Parts with few different keys, so that later ones replace earlier ones. Some have no documents.
fn parts() -> impl Strategy<Value = Vec<Part>> {
    let some = (0..6_u32, 0..3_u32, 0..2_u32, 0..3_usize, prop::collection::vec(document(), 0..6));
    let some = some.prop_map(|(key, session, namespace, kind, mut documents)| {
        for (number, document) in documents.iter_mut().enumerate() {
            document.key = format!("{key}-{number}");
        }
        Part {
            session: format!("session {session}"),
            namespace: format!("namespace {namespace}"),
            kind: Kind::ALL[kind],
            ..part(&format!("part {key}"), documents)
        }
    });
    prop::collection::vec(some, 1..9)
}

/// What identifies a hit, and its exact score.
fn facts(hits: &[Hit<'_>]) -> Vec<(String, String, String, u32)> {
    hits.iter()
        .map(|hit| (hit.part.to_owned(), hit.document.to_owned(), hit.text.to_owned(), hit.score.to_bits()))
        .collect()
}

/// The parts that are left after replacements and deletions.
fn live(parts: &[Part]) -> Vec<Part> {
    let is_last = |(at, part): &(usize, &Part)| parts[at + 1..].iter().all(|later| later.key != part.key);
    let last = parts.iter().enumerate().filter(is_last).map(|(_, part)| part.clone());
    last.filter(|part| !part.documents.is_empty()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn increments_equal_one_segment(parts in parts(), asked in text(), vector in prop::collection::vec(-1.0_f32..1.0, 4)) {
        let split = Index::load(parts.iter().map(|part| segment([part.clone()])).collect()).unwrap();
        let merged = split.merge().unwrap();
        let whole = segment(live(&parts));
        prop_assert!(merged == whole, "the merged bytes are those of a new segment");
        let merged = Index::load(vec![merged]).unwrap();
        prop_assert_eq!(split.len(), merged.len());
        let query = Query { limit: 50, vector: Some(crate::Vector { model: "model", values: &vector }), ..query(&asked) };
        let (a, b) = (split.search(&query), merged.search(&query));
        prop_assert_eq!(facts(&a.hits), facts(&b.hits));
        prop_assert_eq!(a.layers, b.layers);
        prop_assert_eq!(&a.hits, &b.hits);
        // A smaller limit gives the beginning of the same list.
        let few = split.search(&Query { limit: 3, ..query.clone() });
        prop_assert_eq!(facts(&few.hits), facts(&b.hits[..b.hits.len().min(3)]));
    }

    #[test]
    fn what_is_replaced_or_deleted_is_never_found(parts in parts(), asked in text()) {
        let index = Index::load(parts.iter().map(|part| segment([part.clone()])).collect()).unwrap();
        let live = live(&parts);
        for hit in index.search(&Query { limit: 100, ..query(&asked) }).hits {
            let part = live.iter().find(|part| part.key == hit.part);
            let document = part.and_then(|part| part.documents.iter().find(|of| of.key == hit.document));
            prop_assert_eq!(document.map(|document| document.text.as_str()), Some(hit.text));
        }
    }

    #[test]
    fn other_namespaces_change_nothing(parts in parts(), asked in text()) {
        let all = Index::load(vec![segment(parts.clone())]).unwrap();
        let own: Vec<Part> = live(&parts).into_iter().filter(|part| part.namespace == "namespace 0").collect();
        let alone = Index::load(vec![segment(own)]).unwrap();
        let query = Query { limit: 100, namespace: Some("namespace 0"), ..query(&asked) };
        let hits = all.search(&query);
        prop_assert!(hits.hits.iter().all(|hit| hit.namespace == "namespace 0"));
        prop_assert_eq!(facts(&hits.hits), facts(&alone.search(&query).hits));
    }
}

/// A search leaves out documents that can't be among the best. With a limit for all of them, it leaves out none.
#[test]
fn a_limit_gives_the_beginning_of_the_whole_list() {
    let mut state = 7_u32;
    let mut random = move |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % below
    };
    let parts: Vec<Part> = (0..60)
        .map(|number| {
            let documents = (0..20).map(|place| {
                let words: Vec<&str> = (0..random(12)).map(|_| WORDS[random(16) as usize]).collect();
                let day = 1_760_000_000 + i64::from(random(200)) * 86_400;
                Document {
                    time: Some(Timestamp::from_second(day).unwrap()),
                    vector: Some((0..4).map(|_| random(100) as f32 - 50.0).collect()),
                    corrected_until: (random(9) == 0).then_some(jiff::civil::date(2026, 1, 1)),
                    ..said(&format!("{number}-{place}"), SPEAKERS[random(3) as usize], "", &words.join(" "))
                }
            });
            let documents: Vec<Document> = documents.collect();
            Part { kind: Kind::ALL[number % 3], ..part(&format!("{number:02}"), documents) }
        })
        .collect();
    let index = index(parts);
    for text in [
        "apple",
        "When did Ada see the gardener?",
        "How many apples in October 2025?",
        "Which piano did Bela play yesterday",
        "北京",
        "market in January",
        "Haus und garden",
        "Ada",
        "who was it three weeks ago",
    ] {
        for vector in [None, Some([0.3, -0.2, 0.9, 0.1])] {
            let vector = vector.as_ref().map(|values| crate::Vector { model: "model", values });
            let of = |limit| facts(&index.search(&Query { limit, vector, ..query(text) }).hits);
            let all = of(5000);
            for limit in [1, 10, 40] {
                assert_eq!(of(limit), all[..all.len().min(limit)], "{text}");
            }
        }
    }
}

#[test]
fn a_merge_has_no_byte_of_what_was_replaced() {
    let old = |text: &str, speaker: &str| part("p", vec![said("old-key", speaker, "", text)]);
    let base = segment([
        old("The secret zebra lives in Quito.", "Zephyrine"),
        part("q", vec![said("k", "Ada", "", "Bread")]),
    ]);
    let index = Index::load(vec![
        base,
        segment([old("The second walrus of Kyoto.", "Zephyrine")]),
        segment([Part::deletion("p")]),
    ])
    .unwrap();
    assert_eq!(found(&index, &query("secret zebra walrus")), [""; 0]);
    let merged = index.merge().unwrap();
    let has =
        |word: &str| merged.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word.as_bytes()));
    for gone in ["zebra", "secret", "quito", "walrus", "kyoto", "zephyrine", "old-key", "live"] {
        assert!(!has(gone), "{gone}");
    }
    assert!(has("bread"));
    assert_eq!(found(&Index::load(vec![merged]).unwrap(), &query("bread")), ["k"]);
}

#[test]
fn a_deleted_part_can_come_back() {
    let with = |text: &str| segment([part("p", vec![said("1", "", "", text)])]);
    let deleted = segment([Part::deletion("p")]);
    let index = Index::load(vec![with("violin"), deleted, with("cello")]).unwrap();
    assert_eq!(found(&index, &query("violin")), [""; 0]);
    assert_eq!(found(&index, &query("cello")), ["1"]);
}

#[test]
fn an_empty_index_finds_nothing() {
    for index in [Index::load(Vec::new()).unwrap(), index([]), index([Part::deletion("p")])] {
        assert!(index.is_empty());
        assert_eq!(found(&index, &query("anything")), [""; 0]);
        assert!(Index::load(vec![index.merge().unwrap()]).unwrap().is_empty());
    }
}

#[test]
fn a_document_keeps_all_that_it_was_given() {
    let document = Document {
        date_text: "in May".to_owned(),
        corrected_until: Some(jiff::civil::date(2026, 2, 1)),
        ..said("msg_1", "Ada", "2026-01-31T23:30:00Z", "Shall we paint the fence?\r\n\u{0}🦊 äöü")
    };
    let given = Part {
        session: "s".to_owned(),
        namespace: "n".to_owned(),
        zone: TimeZone::get("Europe/Prague").unwrap(),
        ..part("p", vec![document.clone()])
    };
    let index = index([given]);
    let answer = index.search(&query("fence"));
    let hit = &answer.hits[0];
    assert_eq!((hit.part, hit.session, hit.namespace, hit.document), ("p", "s", "n", "msg_1"));
    assert_eq!((hit.speaker, hit.text, hit.kind), ("Ada", document.text.as_str(), Kind::Raw));
    assert_eq!((hit.time, hit.date_text), (document.time, "in May"));
    // It is February in Prague.
    assert_eq!(hit.date, Some(jiff::civil::date(2026, 2, 1)));
    assert_eq!(hit.corrected_until, document.corrected_until);
    assert!(!hit.is_question, "text follows the question");
}
