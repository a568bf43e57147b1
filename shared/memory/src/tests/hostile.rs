//! Texts that want to be a burden.

use std::time::Instant;

use proptest::prelude::*;

use super::*;

#[test]
fn long_texts_are_bounded() {
    let texts = [
        "word ".repeat(200_000),
        (0..100_000).map(|number| format!("w{number}x ")).collect::<String>(),
        "a".repeat(1_000_000),
        "北".repeat(300_000),
        "\u{202E}\u{200F}שלום ".repeat(50_000),
        "\0\u{FFFD}\u{301}".repeat(50_000),
        "yesterday 8 May 2023 ".repeat(40_000),
        "é".repeat(100_000),
        "?! ".repeat(300_000),
        "1 ".repeat(400_000),
    ];
    for text in texts {
        let start = text.chars().take(12).collect::<String>();
        let bytes = segment([part("p", vec![said("1", "", "2026-01-01T00:00:00Z", &text)])]);
        // The text itself, and a bounded number of words.
        assert!(bytes.len() < text.len() + 500_000, "{start:?}: {} bytes", bytes.len());
        let index = Index::load(vec![bytes]).unwrap();
        let answer = index.search(&Query { limit: 1_000_000, ..query(&text) });
        assert!(answer.hits.len() <= 1);
        assert!(answer.hits.iter().all(|hit| hit.score.is_finite()));
    }
}

#[test]
fn a_long_text_does_not_outrank_a_short_one() {
    let long = "cheese and many other things that nobody asked for, again and again. ".repeat(5_000);
    let index = index([
        part("a", vec![said("long", "", "", &long)]),
        part("b", vec![said("short", "", "", "The goat cheese is in the cellar.")]),
    ]);
    assert_eq!(found(&index, &query("Where is the goat cheese?"))[0], "short");
}

#[test]
fn many_speakers_and_sessions_are_quick() {
    let parts = (0..5_000).map(|number| {
        let text = format!("number {number} likes tea");
        Part {
            session: format!("s{number}"),
            ..part(&format!("p{number}"), vec![said("m", &format!("Sam {number}"), "", &text)])
        }
    });
    let index = index(parts);
    #[allow(clippy::disallowed_methods)]
    let start = Instant::now();
    assert_eq!(index.search(&query("What does Sam like? tea")).hits.len(), 10);
    index.search(&query(&"Sam ".repeat(2_000)));
    // Without optimisation it takes 20 ms. Something quadratic would take minutes.
    assert!(start.elapsed().as_secs() < 5);
}

#[test]
fn limits_of_vectors_are_errors() {
    let with = |vectors: [Vec<f32>; 2]| {
        let documents = vectors.map(|vector| Document { vector: Some(vector), ..said("1", "", "", "a") });
        let mut writer = Writer::with_model("m");
        writer.add(part("p", documents.to_vec()));
        writer.finish().map(|_| ())
    };
    assert_eq!(with([vec![1.0; 4], vec![1.0; 4]]), Ok(()));
    assert_eq!(with([vec![1.0; 4], vec![1.0; 5]]), Err(crate::WriteError::Dimension));
    assert_eq!(with([vec![1.0; 5000], vec![1.0; 5000]]), Err(crate::WriteError::Dimension));
    // Vectors without a direction are left out.
    assert_eq!(with([vec![f32::NAN; 9], vec![]]), Ok(()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_text_panics(text in "\\PC{0,80}", other in any::<String>(), date in any::<String>()) {
        let document = Document { date_text: date, ..said("1", &other, "", &text) };
        let index = index([part("p", vec![document, said("2", "x", "", &other)])]);
        for asked in [&text, &other] {
            let answer = index.search(&query(asked));
            prop_assert!(answer.hits.iter().all(|hit| hit.score.is_finite() && hit.score >= 0.0));
        }
    }

    #[test]
    fn no_date_panics(number in any::<u32>(), count in "[0-9]{1,5}", unit in 0..6_usize, when in -377_000_000_000_i64..253_000_000_000) {
        let unit = ["years", "days", "months", "weeks", "May", "weekend"][unit];
        let text = format!("{count} {unit} ago, in {count} {unit}, last {unit}, the past {count} {unit}, {number} May {count}, {count}-{number}-01");
        let time = Timestamp::from_second(when).unwrap();
        let document = Document { time: Some(time), ..said("1", "", "", &text) };
        let index = index([part("p", vec![document])]);
        let now = Query { now: time, ..query(&text) };
        prop_assert!(index.search(&now).hits.len() <= 1);
    }
}
