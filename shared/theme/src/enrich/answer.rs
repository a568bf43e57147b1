//! Reads a model's answer. The answer is not trusted: paths must be among the files that were sent, lines must exist in
//! the file, and texts are cut and cleaned. Invalid parts are left out. A file without any valid part gets no note.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use super::choose::Candidate;
use super::{Note, NotedFeature};

pub(super) const MAX_PURPOSE: usize = 300;
const MAX_FEATURES: usize = 20;
pub(super) const MAX_FEATURE: usize = 80;
const MAX_KEYWORDS: usize = 12;
pub(super) const MAX_KEYWORD: usize = 40;

/// An answer as it was received.
#[derive(Clone, Debug, PartialEq)]
pub enum Raw {
    /// The arguments of a tool call.
    Call(Value),
    /// Plain text: arguments that are not valid JSON, perhaps because the answer was cut off, or the text of a model
    /// without tools.
    Text(String),
}

/// The notes in an answer about these files, by path.
#[must_use]
pub fn read(raw: &Raw, asked: &[Candidate], model: &str, now: Timestamp) -> BTreeMap<String, Note> {
    let mut notes = BTreeMap::new();
    for file in &entries(raw) {
        let path = file["path"].as_str().unwrap_or_default().trim();
        let Some(candidate) = asked.iter().find(|candidate| candidate.path == path) else { continue };
        if let Some(note) = note(file, candidate.lines, model, now) {
            notes.entry(path.to_owned()).or_insert(note);
        }
    }
    notes
}

/// The list of files, as far as it is complete.
fn entries(raw: &Raw) -> Vec<Value> {
    match raw {
        Raw::Call(Value::Object(fields)) => match fields.get("files") {
            Some(Value::Array(files)) => files.clone(),
            // Some models write the list as a string.
            Some(Value::String(text)) => whole_values(text),
            _ => Vec::new(),
        },
        Raw::Call(_) => Vec::new(),
        Raw::Text(text) => text.find("\"files\"").map(|at| whole_values(&text[at..])).unwrap_or_default(),
    }
}

/// The values of the first list in a text, up to its end or to the first broken value.
fn whole_values(text: &str) -> Vec<Value> {
    let mut values = Vec::new();
    let Some(begin) = text.find('[') else { return values };
    let mut rest = &text[begin + 1..];
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        let mut one = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let Some(Ok(value)) = one.next() else { return values };
        rest = &rest[one.byte_offset()..];
        values.push(value);
    }
}

fn note(file: &Value, lines: u32, model: &str, now: Timestamp) -> Option<Note> {
    let purpose = clean(file["purpose"].as_str()?, MAX_PURPOSE)?;
    let items = |name: &str| file[name].as_array().map_or(&[][..], Vec::as_slice);
    let mut features: Vec<NotedFeature> =
        items("features").iter().filter_map(|feature| noted(feature, lines)).collect();
    features.truncate(MAX_FEATURES);
    features.sort_by_key(|feature| feature.range);
    let mut known = BTreeSet::new();
    let keywords = items("keywords").iter().filter_map(|word| clean(word.as_str()?, MAX_KEYWORD));
    let keywords = keywords.filter(|word| known.insert(word.to_lowercase())).take(MAX_KEYWORDS).collect();
    Some(Note { purpose, features, keywords, model: model.to_owned(), written_at: now })
}

fn noted(feature: &Value, lines: u32) -> Option<NotedFeature> {
    let line = |name: &str| feature[name].as_u64().and_then(|line| u32::try_from(line).ok());
    let (start, end) = (line("start_line")?, line("end_line")?);
    let is_inside = 1 <= start && start <= end && end <= lines;
    Some(NotedFeature { name: clean(feature["name"].as_str()?, MAX_FEATURE)?, range: [start, end] })
        .filter(|_| is_inside)
}

/// A text on one line, with at most `most` characters and without invisible characters. `None` if nothing is left.
fn clean(text: &str, most: usize) -> Option<String> {
    let seen: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).filter(is_seen).collect();
    let line = seen.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut: String = line.chars().take(most).collect();
    let cut = cut.trim_end();
    (!cut.is_empty()).then(|| cut.to_owned())
}

/// Characters that reverse or hide text are not allowed in a description.
fn is_seen(c: &char) -> bool {
    !matches!(*c, '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}'
        | '\u{FEFF}' | '\u{E0000}'..='\u{E007F}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::path::FileKind;

    fn asked() -> Vec<Candidate> {
        let candidate = |path: &str| Candidate {
            path: path.into(),
            kind: FileKind::Snippet,
            content: [0; 16],
            bytes: 100,
            lines: 10,
        };
        vec![candidate("a.liquid"), candidate("b.liquid")]
    }

    fn answered(raw: &Raw) -> BTreeMap<String, Note> {
        read(raw, &asked(), "m", Timestamp::UNIX_EPOCH)
    }

    fn plain(purpose: &str) -> Note {
        Note {
            purpose: purpose.into(),
            features: vec![],
            keywords: vec![],
            model: "m".into(),
            written_at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn valid_parts_of_an_answer_are_kept() {
        let file = json!({
            "path": " a.liquid ",
            "purpose": format!(" Shows\nthe \u{202E}price\u{0}. {}", "x".repeat(400)),
            "features": [
                {"name": "Sale", "start_line": 4, "end_line": 9},
                {"name": "Unit\tprice", "start_line": 1, "end_line": 1},
                {"name": "Outside", "start_line": 9, "end_line": 11},
                {"name": "Nowhere", "start_line": 0, "end_line": 2},
                {"name": "Backwards", "start_line": 5, "end_line": 4},
                {"name": " ", "start_line": 1, "end_line": 2},
                {"name": "Text", "start_line": "1", "end_line": 2},
                "nonsense",
            ],
            "keywords": ["bag", "Bag", "", 7, "k".repeat(99)],
        });
        let notes = answered(&Raw::Call(json!({"files": [file, {"path": "a.liquid", "purpose": "later"}]})));
        let expected = Note {
            purpose: format!("Shows the price . {}", "x".repeat(282)),
            features: vec![
                NotedFeature { name: "Unit price".into(), range: [1, 1] },
                NotedFeature { name: "Sale".into(), range: [4, 9] },
            ],
            keywords: vec!["bag".into(), "k".repeat(40)],
            ..plain("")
        };
        assert_eq!(notes, BTreeMap::from([("a.liquid".into(), expected)]));
    }

    #[test]
    fn answers_are_read_in_every_form() {
        let file = |path: &str| json!({"path": path, "purpose": "p"});
        let (a, both) = (file("a.liquid"), json!({"files": [file("a.liquid"), file("b.liquid")]}));
        let check = |raw: Raw, expected: &[&str]| {
            let paths: Vec<String> = answered(&raw).into_keys().collect();
            assert_eq!(paths, expected, "{raw:?}");
        };
        let text = |text: String| Raw::Text(text);
        check(Raw::Call(both.clone()), &["a.liquid", "b.liquid"]);
        check(Raw::Call(json!({"files": both["files"].to_string()})), &["a.liquid", "b.liquid"]);
        check(text(format!("USE_TOOL: describe_files\n{both}\nDone.")), &["a.liquid", "b.liquid"]);
        check(
            text(format!("```json\n{}\n```", serde_json::to_string_pretty(&both).unwrap())),
            &["a.liquid", "b.liquid"],
        );
        // Cut off in the middle of the second file.
        check(text(format!("{{\"files\": [{a}, {{\"path\": \"b.liq")), &["a.liquid"]);
        check(Raw::Call(json!({"files": [file("c.liquid"), file(""), 7, null, a]})), &["a.liquid"]);
        check(
            Raw::Call(
                json!({"files": [{"path": "a.liquid", "purpose": " \u{200B} "}, {"path": "b.liquid"}]}),
            ),
            &[],
        );
        check(Raw::Call(json!([both])), &[]);
        check(Raw::Call(json!({"files": {"a.liquid": "p"}})), &[]);
        check(text("I can't do that.".into()), &[]);
        check(text("\"files\"".into()), &[]);
        check(text("{\"files\": [oops".into()), &[]);
    }

    fn anything() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::from),
            (0u32..30).prop_map(Value::from),
            ".{0,400}".prop_map(Value::from),
            Just(json!("a.liquid")),
        ];
        leaf.prop_recursive(3, 40, 30, |inner| {
            let names = prop::sample::select(vec![
                "files",
                "path",
                "purpose",
                "features",
                "keywords",
                "name",
                "start_line",
                "end_line",
            ]);
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..30).prop_map(Value::from),
                prop::collection::btree_map(names.prop_map(str::to_owned), inner, 0..8)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// Files of almost the right form. Random values never have it.
    fn files() -> impl Strategy<Value = Value> {
        let feature = (".{0,120}", 0u32..14, 0u32..14)
            .prop_map(|(name, start, end)| json!({"name": name, "start_line": start, "end_line": end}));
        let file = (
            prop::sample::select(vec!["a.liquid", "b.liquid", "c.liquid"]),
            "\\PC{0,400}|.{0,400}",
            prop::collection::vec(prop_oneof![9 => feature, 1 => anything()], 0..40),
            prop::collection::vec(".{0,80}", 0..30),
        );
        let file = file.prop_map(|(path, purpose, features, keywords)| {
            json!({"path": path, "purpose": purpose, "features": features, "keywords": keywords})
        });
        prop::collection::vec(file, 0..4).prop_map(|files| json!({"files": files}))
    }

    proptest! {
        #[test]
        fn every_note_keeps_the_limits(
            value in prop_oneof![3 => files(), 1 => anything()],
            as_text in any::<bool>(),
            cut in 0usize..4_000,
        ) {
            let raw = if as_text {
                let mut text = value.to_string();
                text.truncate(text.floor_char_boundary(cut));
                Raw::Text(text)
            } else {
                Raw::Call(value)
            };
            for (path, note) in answered(&raw) {
                prop_assert!(asked().iter().any(|candidate| candidate.path == path));
                let is_text = |text: &str, most: usize| {
                    let length = text.chars().count();
                    (1..=most).contains(&length) && !text.chars().any(char::is_control) && text.trim() == text
                };
                prop_assert!(is_text(&note.purpose, 300), "{:?}", note.purpose);
                prop_assert!(note.features.len() <= 20 && note.keywords.len() <= 12);
                prop_assert!(note.features.is_sorted_by_key(|feature| feature.range));
                for feature in &note.features {
                    let [start, end] = feature.range;
                    prop_assert!(1 <= start && start <= end && end <= 10 && is_text(&feature.name, 80));
                }
                prop_assert!(note.keywords.iter().all(|word| is_text(word, 40)));
            }
        }
    }
}
