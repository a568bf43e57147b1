//! Each file in `test_data/cases` is one call and its answer on the theme in `test_data/harbour`. Its name says the rule.
//!
//! A case has the name of the tool, the arguments as JSON, a line of three hyphens, and the exact answer. Set `BLESS` to write the
//! answers of new cases; read them before they are committed.
#![allow(clippy::disallowed_methods, reason = "a test reads its cases")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use theme_tools::{Call, Needs, Outcome, TOOLS, ThemeIndex, Tree, schema};

type Files = BTreeMap<String, String>;

fn list(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<PathBuf> = entries.collect();
    paths.sort();
    paths
}

fn theme(folder: &Path) -> Files {
    let mut files = Files::new();
    for part in list(folder) {
        for file in list(&part) {
            let path = file.strip_prefix(folder).expect("within").to_str().expect("UTF-8").replace('\\', "/");
            files.insert(path, std::fs::read_to_string(&file).expect("text"));
        }
    }
    files
}

fn answer(index: &ThemeIndex, files: &Files, tool: &str, arguments: &str) -> String {
    let arguments: Value = serde_json::from_str(arguments).expect("the arguments of a case are JSON");
    let call = match Call::parse(tool, arguments) {
        Ok(call) => call,
        Err(problem) => return format!("error: {problem}\n"),
    };
    let needed: Vec<String> = match call.needs(index) {
        Needs::Nothing => Vec::new(),
        Needs::AllText => files.keys().cloned().collect(),
        Needs::Paths(paths) => paths,
    };
    let texts =
        needed.iter().filter_map(|path| files.get_key_value(path)).map(|(path, text)| (&**path, &**text));
    let sizes = files.iter().map(|(path, text)| (&**path, text.len() as u64));
    match call.run(&Tree::new(index, sizes, texts)) {
        Ok(Outcome::Text(text)) => text,
        Ok(other) => format!("{other:?}\n"),
        Err(problem) => format!("error: {problem}\n"),
    }
}

#[test]
fn every_case_has_its_exact_answer() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("test_data");
    let files = theme(&data.join("harbour"));
    let index = ThemeIndex::build(files.iter()).expect("a theme");
    let mut wrong = Vec::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for path in list(&data.join("cases")) {
        let case = std::fs::read_to_string(&path).expect("text").replace("\r\n", "\n");
        let (call, expected) = case.split_once("\n---\n").unwrap_or((&case, ""));
        let (tool, arguments) = call.trim().split_once('\n').expect("a tool and its arguments");
        *counts.entry(tool.to_owned()).or_default() += 1;
        let found = answer(&index, &files, tool, arguments);
        if found == expected {
            continue;
        }
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, format!("{tool}\n{arguments}\n---\n{found}")).expect("written");
        }
        wrong.push(format!("{}\n{found}", path.display()));
    }
    assert!(wrong.is_empty(), "{} cases differ:\n{}", wrong.len(), wrong.join("\n"));
    for tool in TOOLS {
        assert!(counts.get(tool.name).is_some_and(|count| *count >= 4), "{} has too few cases", tool.name);
    }
}

#[test]
fn every_tool_has_a_schema_whose_arguments_it_reads() {
    for tool in TOOLS {
        let schema = schema(tool.name).expect("a schema");
        let properties = schema["properties"].as_object().expect("properties");
        assert_eq!(schema["additionalProperties"], false);
        for required in schema["required"].as_array().expect("a list") {
            assert!(properties.contains_key(required.as_str().expect("a name")), "{}: {required}", tool.name);
        }
        // What the schema does not have is refused by the tool, too.
        let refused =
            Call::parse(tool.name, serde_json::json!({"no_such_field": 1})).expect_err("it is unknown");
        assert!(refused.to_string().contains("no_such_field"), "{}: {refused}", tool.name);
        // What it has is known: only its type is wrong.
        for name in properties.keys() {
            let wrong = serde_json::json!({name: {"an": "object"}});
            let refused = Call::parse(tool.name, wrong).expect_err("the type is wrong").to_string();
            assert!(!refused.contains("unknown field"), "{}: {refused}", tool.name);
        }
    }
    assert_eq!(schema("read_file"), None);
}

/// A text that is not loaded is named, and nothing is made up instead.
#[test]
fn a_text_that_was_not_loaded_is_named() {
    let files = [("sections/a.liquid", "{{ settings.x }}"), ("sections/b.liquid", "{{ settings.x }}")];
    let index = ThemeIndex::build(files).expect("a theme");
    let sizes = files.map(|(path, text)| (path, text.len() as u64));
    let call = Call::parse("check_theme_setting", serde_json::json!({"id": "x"})).expect("fine");
    let tree = Tree::new(&index, sizes, [files[0]]);
    let Ok(Outcome::Text(text)) = call.run(&tree) else { panic!("a text") };
    assert_eq!(
        text,
        "Setting `x`: no problem found.\nsections/a.liquid:1: read as settings.x  {{ settings.x }}\n1 place.\n\
         Not read, so this says nothing about: sections/b.liquid.\n"
    );
}
