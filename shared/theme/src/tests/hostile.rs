//! Hostile and malformed files.

use proptest::prelude::*;

use super::repeated::REPEATED;
use crate::ThemeIndex;
use crate::index::{DegradedFile, MAX_FILES, ThemeError};
use crate::path::PathError;
use crate::scan::DegradedReason;

const PATHS: [&str; 9] = [
    "sections/a.liquid",
    "assets/a.css",
    "assets/a.js",
    "assets/a.css.liquid",
    "templates/a.json",
    "config/settings_schema.json",
    "locales/en.default.json",
    "locales/fr.json",
    "assets/a.svg",
];

/// Pieces that are special to scanners, in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("{%"),
        Just("%}"),
        Just("{{"),
        Just("}}"),
        Just("{% comment %}"),
        Just("{% endcomment %}"),
        Just("{% raw %}"),
        Just("{% endraw %}"),
        Just("{% schema %}"),
        Just("{% endschema %}"),
        Just("{% if x %}"),
        Just("{% endif %}"),
        Just("{% liquid\n"),
        Just("render 'a'"),
        Just("{% render 'a' %}"),
        Just("'"),
        Just("\""),
        Just("<a-b class=\""),
        Just("<!--"),
        Just("-->"),
        Just("<script>"),
        Just("</script>"),
        Just("<style>"),
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just("("),
        Just(")"),
        Just(","),
        Just(":"),
        Just(";"),
        Just("/*"),
        Just("*/"),
        Just("//"),
        Just("/"),
        Just("`"),
        Just("${"),
        Just("\\"),
        Just("class A"),
        Just("function b("),
        Just("=>"),
        Just(".c"),
        Just("#d"),
        Just("@media"),
        Just("\"type\": \"x\""),
        Just("\"settings\": ["),
        Just("é"),
        Just("日本"),
        Just("\u{FEFF}"),
        Just("\r\n"),
        Just("\n"),
        Just(" "),
        Just("-"),
        Just("|"),
        Just("t"),
        Just("style"),
        Just("endstyle"),
        Just("import 'x'"),
        Just("customElements.define('a-b', A)"),
        Just("&nbsp;"),
    ];
    proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

fn survives(bytes: &[u8]) {
    for path in PATHS {
        let index = ThemeIndex::build([(path, bytes)]).unwrap();
        let lines = index.lines(path).unwrap();
        for edge in index.edges() {
            assert!(1 <= edge.lines.start && edge.lines.start <= edge.lines.end && edge.lines.end <= lines);
        }
        for place in index.degraded() {
            assert!((1..=lines).contains(&place.line), "{path}: {place:?}");
        }
        for target in index.lookup("render a class b x type", Some(path), 5).targets {
            assert!(target.ranges.iter().all(|range| range.start <= range.end && range.end <= lines));
        }
        let loaded = ThemeIndex::from_blob(&index.to_blob()).unwrap();
        assert!(loaded.to_blob() == index.to_blob(), "{path}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn no_text_panics(text in pieces()) {
        survives(text.as_bytes());
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        survives(&bytes);
    }
}

#[test]
fn a_thousand_repetitions_are_read() {
    for piece in REPEATED {
        for separator in ["", "\n"] {
            survives(format!("{piece}{separator}").repeat(1_000).as_bytes());
        }
    }
}

#[test]
fn invalid_themes_are_refused() {
    let refused = |files: Vec<(String, &str)>| ThemeIndex::build(files).err();
    assert_eq!(
        refused((0..=MAX_FILES).map(|n| (format!("assets/{n}"), "")).collect()),
        Some(ThemeError::TooManyFiles)
    );
    let path = "assets/../../x".to_owned();
    let expected = ThemeError::Path { path: path.clone(), source: PathError::Escapes };
    assert_eq!(refused(vec![(path, "")]), Some(expected));
}

#[test]
fn degraded_places_are_reported() {
    let check = |path: &str, bytes: &[u8], line: u32, reason: DegradedReason| {
        let index = ThemeIndex::build([(path, bytes)]).unwrap();
        assert_eq!(index.degraded(), [DegradedFile { path: path.into(), line, reason }]);
    };
    let one_line = "a=1;".repeat(300_000);
    check("assets/a.js", one_line.as_bytes(), 1, DegradedReason::Minified);
    check("assets/a.css", b"a {}\n\xFF { }\n", 2, DegradedReason::InvalidUtf8);
    check("assets/a.css", " ".repeat(3_000_000).as_bytes(), 1, DegradedReason::TooLarge);
}
