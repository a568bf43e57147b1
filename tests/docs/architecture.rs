//! `docs/architecture.md`: the tests and files that it names exist, and it lists every kind of record.

use std::collections::BTreeSet;

use shared::store::keys::RecordKind;

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

/// The table of the data model, from the list of records.
fn data_model() -> String {
    let mut table =
        "| record | partition key | sort key | deleted after | imported |\n|---|---|---|---|---|\n"
            .to_owned();
    for RecordKind { what, partition, sort, deleted, is_restored, .. } in RecordKind::all() {
        let (what, partition) = (what.trim_end_matches('.'), partition.replace("U#{owner}", "U"));
        let imported = if *is_restored { "yes" } else { "" };
        let row = format!("| {what} | `{partition}` | `{sort}` | {deleted} | {imported} |\n");
        table += &row.replace("|  |", "| |").replace("|  |", "| |");
    }
    table
}

#[test]
fn the_data_model_is_the_list_of_records() {
    let (page, table) = (read(PAGE), data_model());
    let start = page.find("| record | partition key").expect("there is a table of records");
    let end = page[start..].find("\n\n").map_or(page.len(), |end| start + end + 1);
    if std::env::var_os("UPDATE_DATA_MODEL").is_some() {
        let updated = [&page[..start], &table, &page[end..]].concat();
        std::fs::write(root().join(PAGE), updated).expect("the page is written");
        return;
    }
    assert!(
        page[start..end] == table,
        "the table of records in {PAGE} is not the list in shared/src/store/record_kinds.rs: run `cargo xtask bless data-model`"
    );
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
