//! `docs/architecture.md`: the tests and files that it names exist, and it lists every kind of key.

use std::collections::BTreeSet;

use crate::page::{column, compare, first_column, in_backticks, read, root, section};

const PAGE: &str = "docs/architecture.md";

#[test]
fn named_tests_exist() {
    let text = section(&read(PAGE), "## Invariants");
    let (names, mut wrong) = (column(&text, 1), Vec::new());
    for name in &names {
        let Some((path, function)) = name.split_once("::") else {
            wrong.push(format!("{name} names no test"));
            continue;
        };
        let source = std::fs::read_to_string(root().join(path)).unwrap_or_default();
        let rust = format!("fn {function}(");
        let python = format!("@rule\ndef {function}(");
        let before = source.split(&rust).next().unwrap_or_default();
        // The attribute is above the function, with at most a doc comment or `async` in between.
        let is_test = source.contains(&rust)
            && before.lines().rev().take(4).any(|line| {
                let line = line.trim();
                line.starts_with("#[test") || line.starts_with("#[tokio::test")
            });
        if !is_test && !source.contains(&python) {
            wrong.push(format!("{name} does not exist"));
        }
    }
    assert!(names.len() > 30, "only {} tests are named", names.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_invariant_names_a_test() {
    let text = section(&read(PAGE), "## Invariants");
    let rows = text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| invariant"));
    for row in rows {
        assert!(row.contains("::"), "{row}");
    }
}

#[test]
fn paths_of_the_code_map_exist() {
    let paths = first_column(&section(&read(PAGE), "## Code map"));
    assert!(paths.len() > 20, "{paths:?}");
    let missing: Vec<_> = paths.iter().filter(|path| !root().join(path).exists()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The upper-case words of keys.
fn kinds(texts: impl IntoIterator<Item = String>) -> BTreeSet<String> {
    let words = texts.into_iter().flat_map(|text| {
        text.split(|c: char| !c.is_ascii_uppercase()).map(str::to_owned).collect::<Vec<_>>()
    });
    words.filter(|word| word.len() > 1 || word == "V").collect()
}

#[test]
fn every_kind_of_key_is_in_the_data_model() {
    let text = section(&read(PAGE), "## Data model");
    let documented = kinds(column(&text, 1).into_iter().chain(column(&text, 2)));
    let keys = ["keys.rs", "partitions.rs", "agents.rs", "chats.rs", "runs.rs"]
        .map(|file| read(&format!("shared/src/store/{file}")));
    let literals = keys.iter().flat_map(|source| {
        let source = source.split("#[cfg(test)]").next().unwrap_or_default();
        let code = source.lines().map(str::trim).filter(|line| !line.starts_with("//"));
        code.flat_map(|line| line.split('"').skip(1).step_by(2)).map(str::to_owned).collect::<Vec<_>>()
    });
    let literals = literals.filter(|literal| !literal.contains('%'));
    compare(PAGE, &documented, &kinds(literals));
    // The golden data has the same kinds, see `tests/platform/store/golden.rs`.
    let golden: serde_json::Value =
        serde_json::from_str(&read("tests/golden/data.json")).expect("it is JSON");
    let items = golden["items"].as_array().expect("it has items");
    let part = |item: &serde_json::Value, name: &str| {
        let key = item[name]["S"].as_str().unwrap_or_default();
        key.split('#')
            .filter(|part| part.bytes().all(|b| b.is_ascii_uppercase()))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let stored = kinds(items.iter().flat_map(|item| [part(item, "pk"), part(item, "sk")].concat()));
    let unknown: Vec<_> = stored.difference(&documented).collect();
    assert!(unknown.is_empty(), "{PAGE} does not name what is stored: {unknown:?}");
}

#[test]
fn object_keys_are_those_of_the_bucket() {
    let documented = section(&read(PAGE), "## Data model");
    let objects = documented.split("| object | key |").nth(1).expect("there is a table of objects");
    let kinds: BTreeSet<String> = in_backticks(objects)
        .into_iter()
        .filter(|key| key.starts_with("{owner}/"))
        .filter_map(|key| key.split('/').nth(1).map(str::to_owned))
        .collect();
    let code = crate::page::after(&read("shared/src/blobs/key.rs"), "format!(\"{owner}/", |c| {
        c.is_ascii_lowercase()
    });
    compare(PAGE, &kinds, &code);
}
