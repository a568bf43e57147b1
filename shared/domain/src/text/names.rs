//! Names by which a person tells things apart: of agents, projects, practices, watched schedules and keys.
//!
//! Two names that look the same are the same: a name is stored in the Unicode form NFC, and has no invisible characters.

use icu_normalizer::ComposingNormalizerBorrowed;

use crate::text::quoting::{breaks_line, is_invisible};
use crate::validate::FieldErrors;

/// A name as it is stored: in the form NFC, without blanks around it.
#[must_use]
pub fn canonical(name: &str) -> String {
    ComposingNormalizerBorrowed::new_nfc().normalize(name.trim()).into_owned()
}

/// Whether two names are the same for a person who types them: blanks around them, the case of letters and the form of Unicode do not
/// count.
#[must_use]
pub fn is_same(a: &str, b: &str) -> bool {
    folded(a) == folded(b)
}

/// A name as it is compared.
#[must_use]
pub fn folded(name: &str) -> String {
    canonical(&canonical(name).to_lowercase())
}

/// Checks a name that a person or a model has written: 1 to `max` characters on one line, none of them invisible.
pub fn check(errors: &mut FieldErrors, name: &str, max: usize) {
    let field = "name";
    errors.length(field, name, 1, max);
    if name.contains(|c: char| c.is_control() || breaks_line(c)) {
        errors.add(field, "must be one line without control characters");
    } else if let Some(hidden) = first_hidden(name) {
        let code = u32::from(hidden);
        errors.add(field, format!("must not have invisible characters, has U+{code:04X}"));
    }
}

/// The first character that nobody sees. Joiners are allowed where scripts and emoji need them, and the marks of emoji behind them.
fn first_hidden(name: &str) -> Option<char> {
    let mut before = None;
    let mut characters = name.chars().peekable();
    while let Some(c) = characters.next() {
        let after = characters.peek().copied();
        let is_needed = match c {
            '\u{200C}' => before.is_some_and(is_joined_letter) && after.is_some_and(is_joined_letter),
            '\u{200D}' => {
                before.is_some_and(is_joined_letter) && after.is_some_and(is_joined_letter)
                    || before.is_some_and(is_pictograph) && after.is_some_and(is_pictograph)
            }
            '\u{FE0E}' | '\u{FE0F}' => {
                before.is_some_and(is_pictograph) || (before.is_some_and(is_key) && after == Some('\u{20E3}'))
            }
            _ => false,
        };
        if !is_needed && (is_invisible(c) || is_format(c)) {
            return Some(c);
        }
        before = Some(c);
    }
    None
}

/// Letters and marks of scripts whose words need joiners: Arabic, Syriac, N'Ko, the scripts of India, Myanmar, Khmer and Mongolian.
const fn is_joined_letter(c: char) -> bool {
    matches!(c, '\u{620}'..='\u{DFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}' | '\u{1820}'..='\u{18AF}')
}

/// Emoji, symbols that may be shown as emoji, and the mark behind them.
const fn is_pictograph(c: char) -> bool {
    matches!(c, '©' | '®' | '\u{203C}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2190}'..='\u{27BF}' | '\u{2900}'..='\u{2BFF}'
        | '\u{3030}' | '\u{303D}' | '\u{3297}' | '\u{3299}' | '\u{FE0F}' | '\u{1F000}'..='\u{1FAFF}')
}

/// The keys of a telephone, which are shown as emoji too.
const fn is_key(c: char) -> bool {
    c.is_ascii_digit() || matches!(c, '#' | '*')
}

/// The characters of the category Cf that `is_invisible` does not have.
const fn is_format(c: char) -> bool {
    matches!(c, '\u{600}'..='\u{605}' | '\u{6DD}' | '\u{70F}' | '\u{890}' | '\u{891}' | '\u{8E2}' | '\u{110BD}' | '\u{110CD}'
        | '\u{13430}'..='\u{1343F}' | '\u{1BCA0}'..='\u{1BCA3}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn told(name: &str) -> String {
        let mut errors = FieldErrors::default();
        check(&mut errors, name, 200);
        errors.to_string()
    }

    #[test]
    fn names_that_look_the_same_are_the_same() {
        for (one, other) in [
            ("Café", "Cafe\u{301}"),
            ("  Büro ", "BU\u{308}RO"),
            ("한글", "\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}"),
            ("Ångström", "\u{212b}ngstro\u{308}m"),
        ] {
            assert!(is_same(one, other), "{one} {other}");
        }
        assert_eq!(canonical(" Cafe\u{301} "), "Café");
        // What looks different stays different.
        assert!(!is_same("Cafe", "Café") && !is_same("ﬁle", "file") && !is_same("A1", "A¹"));
    }

    #[test]
    fn invisible_characters_are_refused_by_their_number() {
        for name in [
            "Price\u{200B} report",
            "Price\u{AD}report",
            "\u{202E}troper",
            "\u{2066}a\u{2069}",
            "\u{FEFF}Report",
            "Report\u{200D}",
            "Re\u{200C}port",
            "\u{3164}",
            "a\u{FE0F}",
            "1\u{FE0F}",
            "日\u{200D}本",
            "a\u{34F}b",
            "tag\u{E0041}",
            "\u{601}12",
            "x\u{2061}y",
        ] {
            assert!(told(name).contains("invisible characters, has U+"), "{name:?}: {}", told(name));
        }
        assert_eq!(told("a\u{200B}"), "name: must not have invisible characters, has U+200B");
        for name in ["a\nb", "a\u{2028}b", "a\u{7}b", "a\u{85}b"] {
            assert_eq!(told(name), "name: must be one line without control characters", "{name:?}");
        }
        assert_eq!(told(" "), "name: must not be blank (1 to 200 characters)");
    }

    #[test]
    fn scripts_and_emoji_keep_what_they_need() {
        for name in [
            "می\u{200C}خواهم",
            "क्\u{200D}ष",
            "👩\u{200D}💻 Ada",
            "❤\u{FE0F}\u{200D}🔥",
            "👍🏽",
            "1\u{FE0F}\u{20E3}",
            "⚠\u{FE0F} Alerts",
            "🇦🇹",
            "Ünïcode · 東京 — “quoted”",
        ] {
            assert_eq!(told(name), "", "{name:?}");
        }
    }

    proptest! {
        #[test]
        fn a_stored_name_is_found_by_itself(name in "\\PC{0,60}") {
            let stored = canonical(&name);
            prop_assert!(is_same(&stored, &name));
            prop_assert_eq!(canonical(&stored), stored.clone());
        }
    }
}
