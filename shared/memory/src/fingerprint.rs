//! Fingerprints of texts, for callers that compare texts which they no longer have.

use crate::analysis::stems;

/// How many numbers a fingerprint has.
pub const FINGERPRINT: usize = 16;

/// A fingerprint of the words of a text. Texts with nearly the same words have nearly the same fingerprints, whatever
/// their order, case and inflections. The text can't be recovered from it.
///
/// Callers store fingerprints, so the function must never change.
pub fn fingerprint(text: &str) -> [u32; FINGERPRINT] {
    let mut smallest = [u32::MAX; FINGERPRINT];
    for stem in stems(text) {
        let of_stem = hash(&stem);
        for (seed, smallest) in (1..).zip(&mut smallest) {
            *smallest = (*smallest).min(mixed(of_stem, seed));
        }
    }
    smallest
}

/// The share of words that two texts have in common, from 0 to 1, estimated from their fingerprints. The usual error is
/// 0.1. A text without words is similar to none.
pub fn similarity(a: &[u32; FINGERPRINT], b: &[u32; FINGERPRINT]) -> f32 {
    let same = a.iter().zip(b).filter(|(a, b)| a == b && **a != u32::MAX).count();
    same as f32 / FINGERPRINT as f32
}

/// A text that has this share of the words of another one says it.
pub const SAYS: f32 = 0.75;

/// How many of the words of one text another text has too, from 0 to 1, whatever their order, case and inflections. Words that
/// say little, and "user", do not count. 0 if the text has no other words.
pub fn share_of_words(of: &str, has: &str) -> f32 {
    // A fact says "the user" where a message says "I".
    let wanted: Vec<String> = stems(of).into_iter().filter(|stem| stem != "user").collect();
    let found = stems(has);
    let known = wanted.iter().filter(|stem| found.binary_search(stem).is_ok()).count();
    if wanted.is_empty() { 0.0 } else { known as f32 / wanted.len() as f32 }
}

/// Whether a line says what a fact says: it has three quarters of the fact's words. If the fact has only one word, such as "The user
/// smokes", the line must have hardly another one: "smoke detectors" are something else.
pub fn says(line: &str, fact: &str) -> bool {
    let is_one_word = stems(fact).iter().filter(|stem| *stem != "user").count() == 1;
    share_of_words(fact, line) >= SAYS && (!is_one_word || share_of_words(line, fact) > 0.5)
}

/// The hash of a term.
pub(crate) fn hash(term: &str) -> u64 {
    term.bytes()
        .fold(0xCBF2_9CE4_8422_2325, |hash: u64, b| (hash ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01B3))
}

/// Another hash for each seed.
pub(crate) fn mixed(hash: u64, seed: u64) -> u32 {
    let mut mixed = hash ^ seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    (mixed >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_duplicates_are_similar() {
        let check = |a: &str, b: &str, range: std::ops::RangeInclusive<f32>| {
            let similarity = similarity(&fingerprint(a), &fingerprint(b));
            assert!(range.contains(&similarity), "{a} / {b}: {similarity}");
        };
        let fact = "Ada prefers the window seat on morning trains to Vienna";
        check(fact, fact, 1.0..=1.0);
        check(fact, "ada PREFERS the window seats on morning train, to Vienna!", 1.0..=1.0);
        check(fact, "Ada prefers the window seat on evening trains to Vienna", 0.5..=0.95);
        check(fact, "Bela has sold his old bicycle and bought skis", 0.0..=0.1);
        check("我喜欢喝绿茶", "我喜欢喝绿茶。", 1.0..=1.0);
        check("", "", 0.0..=0.0);
    }

    #[test]
    fn a_message_has_the_words_of_a_fact() {
        let fact = "The user keeps a passport in the blue tin";
        for (text, expected) in [
            ("I keep my passport in the blue tin, and my keys in the hall", 1.0..=1.0),
            ("Noted: your passports are kept in that blue tin.", 0.7..=0.8),
            ("Where is my passport?", 0.0..=0.4),
            ("The user", 0.0..=0.0),
        ] {
            let share = share_of_words(fact, text);
            assert!(expected.contains(&share), "{text}: {share}");
        }
        assert_eq!(share_of_words("The user", "The user"), 0.0);
    }

    #[test]
    fn a_line_says_a_fact() {
        let fact = "The user keeps a passport in the blue tin";
        for (line, fact, expected) in [
            ("- The passport is kept in the blue tin.", fact, true),
            ("The passport is in the drawer", fact, false),
            ("I smoke.", "The user smokes", true),
            ("Checked the smoke detectors", "The user smokes", false),
            ("", fact, false),
            ("The user", "The user", false),
        ] {
            assert_eq!(says(line, fact), expected, "{line} / {fact}");
        }
    }

    #[test]
    fn fingerprints_never_change() {
        let of = fingerprint("The tea is green");
        assert_eq!(of, fingerprint("green teas"));
        let expected = [
            1_009_531_688,
            2_121_736_162,
            1_214_124_609,
            3_905_778_948,
            494_676_477,
            1_942_356_151,
            1_456_089_610,
            2_535_076_899,
            1_103_899_242,
            169_403_270,
            1_573_770_573,
            8_242_147,
            177_575_964,
            342_468_576,
            258_789_681,
            2_294_132_627,
        ];
        assert_eq!(of, expected);
    }
}
