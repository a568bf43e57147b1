//! What a question says besides its words: speakers, dates, cues, corrections.

use jiff::civil::date;

use super::*;
use crate::Layer;

/// Two people, three days. Each text has the same topic, so words alone do not decide.
fn chat() -> Index {
    index([
        part(
            "c/1",
            vec![
                said(
                    "1",
                    "Ada Long",
                    "2026-02-02T09:00:00Z",
                    "I went to the market yesterday and bought apples.",
                ),
                said("2", "Bela", "2026-02-02T09:01:00Z", "I went to the market too and bought pears."),
            ],
        ),
        part(
            "c/2",
            vec![
                said("3", "Ada Long", "2026-03-04T09:00:00Z", "The market was closed because of the storm."),
                said("4", "Bela", "2026-03-04T09:01:00Z", "I bought 12 eggs at the market in Brno."),
            ],
        ),
        part(
            "c/3",
            vec![
                said("5", "Bela", "2026-03-09T09:00:00Z", "What did you bring home from the market?"),
                said("6", "Ada Long", "2026-03-09T09:01:00Z", "Two lamps and a carpet."),
                said("7", "Bela", "2026-03-09T09:02:00Z", "Sounds great, I want to see them."),
            ],
        ),
    ])
}

#[test]
fn speakers_dates_and_cues_decide() {
    let index = chat();
    let check = |text: &str, best: &str| assert_eq!(found(&index, &query(text))[0], best, "{text}");
    check("What did Ada buy at the market in February?", "1");
    check("What did Bela buy at the market in February?", "2");
    check("What happened at the market on 1 February 2026?", "1");
    check("What was bought at the market last month by Bela?", "2");
    check("Was the market closed on 4 March?", "3");
    check("How many eggs did Bela buy?", "4");
    check("What did Ada bring home from the market?", "6");
    check("What was at the market yesterday, Ada?", "6");
}

#[test]
fn names_that_are_other_words_too_are_names() {
    let index = index([part(
        "c",
        vec![said("1", "Will", "", "The kite is broken."), said("2", "Ann", "", "The kite is broken again.")],
    )]);
    assert_eq!(found(&index, &query("What did Will break, the kite?"))[0], "1");
    assert_eq!(index.search(&query("will the kite be repaired")).layers, [Layer::Words]);
}

#[test]
fn layers_tell_what_took_part() {
    let index = chat();
    let layers = |text: &str| index.search(&query(text)).layers;
    assert_eq!(layers("apples"), [Layer::Words]);
    assert_eq!(
        layers("When did Ada buy apples in February?"),
        [Layer::Words, Layer::Speakers, Layer::Dates, Layer::Cues]
    );
    assert_eq!(layers("xylophone"), []);
}

#[test]
fn what_has_nothing_of_the_query_is_not_found() {
    let index = chat();
    assert_eq!(found(&index, &query("xylophone")), [""; 0]);
    assert_eq!(found(&index, &query("")), [""; 0]);
    assert_eq!(found(&index, &Query { limit: 0, ..query("market") }), [""; 0]);
    // A name alone finds what its owner says.
    let hits = index.search(&query("Ada")).hits.iter().map(|hit| hit.speaker).collect::<Vec<_>>();
    assert_eq!(hits, ["Ada Long"; 3]);
}

#[test]
fn i_and_you_are_speakers() {
    let index = index([part(
        "c",
        vec![
            said("1", "user", "", "The blue tent is good for the mountains."),
            said("2", "assistant", "", "The red tent is good for the mountains."),
        ],
    )]);
    let ask = |text: &'static str| Query { me: Some("user"), you: Some("assistant"), ..query(text) };
    assert_eq!(found(&index, &ask("Which tent did I say is good?"))[0], "1");
    assert_eq!(found(&index, &ask("Which tent did you say is good?"))[0], "2");
    assert_eq!(found(&index, &ask("Welches tent mag ich?"))[0], "1");
}

#[test]
fn dates_come_from_free_text_too() {
    let of = |key: &str, date: &str| Document {
        date_text: date.to_owned(),
        ..said(key, "", "", "We had dinner at the harbour.")
    };
    let index = index([
        part("a", vec![of("1", "1:56 pm on 8 May, 2023")]),
        part("b", vec![of("2", "10.06.2024, 20:15:00")]),
        part("c", vec![of("3", "some day")]),
    ]);
    assert_eq!(found(&index, &query("Where was dinner in May 2023?"))[0], "1");
    assert_eq!(found(&index, &query("Where was dinner on 10 June 2024?"))[0], "2");
    // Without a year, the day may be of any year.
    assert_eq!(found(&index, &query("Where was dinner on 8 May?"))[0], "1");
    let answer = index.search(&query("dinner"));
    let hit = answer.hits.iter().find(|hit| hit.document == "1").unwrap();
    assert_eq!((hit.date, hit.date_text, hit.time), (Some(date(2023, 5, 8)), "1:56 pm on 8 May, 2023", None));
    assert_eq!(answer.hits.iter().find(|hit| hit.document == "3").unwrap().date, None);
}

#[test]
fn yesterday_is_meant_in_the_zone_of_the_part() {
    // It is 4 March in Auckland and 3 March in Los Angeles.
    let part_in = |key: &str, zone: &str| Part {
        zone: TimeZone::get(zone).unwrap(),
        ..part(key, vec![said(key, "", "2026-03-03T20:00:00Z", "Two days ago we saw the comet.")])
    };
    let index = index([part_in("auckland", "Pacific/Auckland"), part_in("angeles", "America/Los_Angeles")]);
    assert_eq!(found(&index, &query("Who saw the comet on the 2nd of March 2026?"))[0], "auckland");
    assert_eq!(found(&index, &query("Who saw the comet on 1 March 2026?"))[0], "angeles");
}

#[test]
fn what_is_no_longer_true_is_behind() {
    let fact = |key: &str, text: &str, until| Document { corrected_until: until, ..said(key, "", "", text) };
    let index = index([Part {
        kind: Kind::Memory,
        ..part(
            "facts",
            vec![
                fact("old", "Ada uses the phone number 555 for work.", Some(date(2026, 1, 5))),
                fact("new", "Ada uses the phone number 777 for work and travel.", None),
            ],
        )
    }]);
    assert_eq!(found(&index, &query("Which phone number does Ada use for work?")), ["new", "old"]);
    let answer = index.search(&query("Which phone number did Ada use for work before?"));
    assert_eq!(answer.hits[0].document, "old");
    assert_eq!(answer.hits[0].corrected_until, Some(date(2026, 1, 5)));
}

#[test]
fn facts_and_cards_name_people_in_their_texts() {
    let index = index([
        part(
            "c",
            vec![
                said("1", "Ada", "", "I wonder about the harp."),
                said("2", "Bela", "", "Ada, the harp is mine."),
            ],
        ),
        Part {
            kind: Kind::Memory,
            ..part(
                "facts",
                vec![
                    said("3", "", "", "Bela sold a harp in the town."),
                    said("4", "", "", "Ada sold a harp in the town."),
                ],
            )
        },
    ]);
    let facts = |text: &'static str| Query { kinds: &[Kind::Memory], ..query(text) };
    assert_eq!(found(&index, &facts("Did Ada sell a harp?"))[0], "4");
    assert_eq!(found(&index, &facts("Did Bela sell a harp?"))[0], "3");
    assert_eq!(found(&index, &query("Did Ada sell a harp in town?"))[0], "4");
    assert_eq!(found(&index, &query("Did Ada wonder about the harp?"))[0], "1");
}

#[test]
fn names_in_scripts_without_spaces_are_speakers() {
    let index = index([part(
        "c",
        vec![said("1", "田中", "", "犬が好きです。"), said("2", "鈴木", "", "犬が好きです。")],
    )]);
    assert_eq!(found(&index, &query("田中さんは犬が好きですか"))[0], "1");
    assert_eq!(found(&index, &query("鈴木さんは犬が好きですか"))[0], "2");
}

#[test]
fn kinds_and_namespaces_are_kept_apart() {
    let of = |key: &str, namespace: &str, kind| Part {
        namespace: namespace.to_owned(),
        kind,
        ..part(key, vec![said(key, "", "", "The violin is in the attic.")])
    };
    let index = index([
        of("card", "", Kind::Card),
        of("fact", "", Kind::Memory),
        of("raw", "work", Kind::Raw),
        of("other", "home", Kind::Raw),
    ]);
    let all = |query: &Query<'_>| {
        let mut keys = found(&index, query);
        keys.sort();
        keys
    };
    let violin = query("violin");
    assert_eq!(all(&violin), ["card", "fact", "other", "raw"]);
    assert_eq!(all(&Query { kinds: &[Kind::Card, Kind::Memory], ..violin.clone() }), ["card", "fact"]);
    assert_eq!(all(&Query { namespace: Some("work"), ..violin.clone() }), ["raw"]);
    assert_eq!(all(&Query { namespace: Some(""), ..violin.clone() }), ["card", "fact"]);
    assert_eq!(all(&Query { namespace: Some("elsewhere"), ..violin }), [""; 0]);
}

#[test]
fn neighbours_belong_together_in_conversations_only() {
    let texts =
        ["The boat needs paint.", "It is in the northern dock.", "Green or white?", "Dinner was cold."];
    let documents =
        || (0..).zip(texts).map(|(n, text)| said(&format!("{n}"), "", "", text)).collect::<Vec<_>>();
    let raw = index([part("a", documents())]);
    let shares = |index: &Index| {
        let mut hits = index.search(&query("boat")).hits;
        hits.sort_by_key(|hit| hit.document);
        hits.iter().map(|hit| hit.match_share > 0.0).collect::<Vec<_>>()
    };
    assert_eq!(shares(&raw), [true, true, true, false]);
    let facts = index([Part { kind: Kind::Memory, ..part("a", documents()) }]);
    assert_eq!(shares(&facts), [true, false, false, false]);
}

#[test]
fn shares_of_matches_can_be_compared() {
    let index = chat();
    let share = |text: &str| index.search(&query(text)).hits.first().map_or(0.0, |hit| hit.match_share);
    let check = |text: &str, expected: std::ops::RangeInclusive<f32>| {
        let share = share(text);
        assert!(expected.contains(&share), "{text}: {share}");
    };
    check("How many eggs?", 1.0..=1.0);
    check("eggs market", 1.0..=1.0);
    check("eggs xylophone", 0.2..=0.6);
    check("eggs xylophone saxophone trombone", 0.1..=0.4);
    check("Which eggs did Bela have?", 1.0..=1.0);
    check("Which eggs did Ada have?", 0.3..=0.7);
    check("eggs on 4 March 2026", 1.0..=1.0);
    check("eggs on 4 April 2025", 0.3..=0.7);
    check("Ada", 1.0..=1.0);
    for text in ["eggs", "market storm closed", "Ada"] {
        assert!((0.0..=1.0).contains(&share(text)), "{text}");
    }
}
