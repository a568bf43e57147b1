//! A document that is written and read again is the same. A text that is read and written again stays stable.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::context::import::import;
use crate::context::markdown::export;
use crate::context::update::merge;
use crate::context::{Confidence, Document, Mode, RecommendedAgent, Section};

/// Text that looks like structure but must not be read as structure.
fn item() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("\n".to_owned()),
        Just("\r".to_owned()),
        Just("  ".to_owned()),
        Just("- ".to_owned()),
        Just("## PLAN".to_owned()),
        Just("### Notes".to_owned()),
        Just("---".to_owned()),
        Just("**Status**: x".to_owned()),
        "[a-z ()*#:.-]{1,6}",
        any::<char>().prop_map(String::from),
    ];
    vec(piece, 1..8).prop_map(|pieces| pieces.concat()).prop_filter("visible", |text| !text.trim().is_empty())
}

fn list() -> impl Strategy<Value = Vec<String>> {
    vec(item(), 0..4).prop_map(|items| {
        let mut unique = Vec::new();
        merge(&mut unique, &items);
        unique
    })
}

fn agent() -> impl Strategy<Value = RecommendedAgent> {
    ("[a-z]{1,9}(-[a-z]{1,9})?", option::of(0.0..=1.0f64)).prop_map(|(name, confidence)| RecommendedAgent {
        name,
        confidence: confidence.map(|confidence| Confidence::try_from(confidence).unwrap()),
    })
}

fn section(mode: Mode) -> impl Strategy<Value = Section> {
    (
        (list(), list(), list(), list(), list()),
        (
            option::of("[a-z_]{1,12}( [a-z]{1,5})?"),
            option::of("[a-z-]{1,12}"),
            option::of(item()),
            option::of(agent()),
        ),
    )
        .prop_map(
            move |(
                (decisions, progress, findings, recommendations, notes),
                (status, primary_agent, task, agent),
            )| {
                let recommended_act_agent = agent;
                let base = Section::new(mode, jiff::Timestamp::UNIX_EPOCH);
                Section {
                    status,
                    primary_agent,
                    task,
                    decisions,
                    progress,
                    findings,
                    recommendations,
                    notes,
                    recommended_act_agent,
                    ..base
                }
            },
        )
}

fn document() -> impl Strategy<Value = Document> {
    let sections = Just(Mode::ALL.to_vec())
        .prop_shuffle()
        .prop_flat_map(|modes| modes.into_iter().map(section).collect::<Vec<_>>());
    (option::of(item()), option::of(item()), 0..4_000_000_000i64, 0..1_000_000i64, sections, 0..=4usize)
        .prop_map(|(title, task, created, later, mut sections, n)| {
            let at = |second| jiff::Timestamp::from_second(second).unwrap();
            let updated_at = at(created + later);
            sections.truncate(n);
            for section in &mut sections {
                section.updated_at = updated_at;
            }
            Document { title, task, created_at: at(created), updated_at, sections }
        })
}

proptest! {
    // Generating a whole document takes a while.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_document_is_read_back_as_it_was(document in document()) {
        let text = export(&document);
        let read = import(&text, jiff::Timestamp::UNIX_EPOCH).unwrap();
        prop_assert_eq!(&read, &document);
        prop_assert_eq!(export(&read), text);
    }
}

proptest! {
    #[test]
    fn a_text_that_can_be_read_settles_at_once(
        lines in vec(prop_oneof![
            Just("## PLAN".to_owned()),
            Just("## ACT (24:05)".to_owned()),
            Just("### Notes".to_owned()),
            Just("### Progress".to_owned()),
            Just("### Task".to_owned()),
            Just("**Status**: x".to_owned()),
            Just("---".to_owned()),
            Just(String::new()),
            Just("\r".to_owned()),
            "(- |\\* |  |   )?[a-z*#-]{0,5}",
        ], 0..20),
    ) {
        let text = format!("# Context: x\n{}", lines.join("\n"));
        if let Ok(document) = import(&text, jiff::Timestamp::UNIX_EPOCH) {
            let written = export(&document);
            prop_assert_eq!(export(&import(&written, jiff::Timestamp::UNIX_EPOCH).unwrap()), written);
        }
    }

    #[test]
    fn no_text_panics(text: String, lines in vec("(#|##|###|-|\\*\\*|  )? ?\\PC{0,10}", 0..10)) {
        let now = jiff::Timestamp::UNIX_EPOCH;
        let _ = import(&text, now);
        let _ = import(&format!("# Context Document\n{}", lines.join("\n")), now);
    }
}
