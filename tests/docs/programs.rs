//! The commands of the programs that are started with cargo, and the folders of the tests, are in their manuals.

use std::collections::BTreeSet;
use std::process::Command;

use crate::page::{after, compare, first_column, read, root, section, set};

const CONTRIBUTING: &str = "CONTRIBUTING.md";

/// The first words after `prefix` at the beginning of a line, without the option that every program has.
fn first_words(text: &str, prefix: &str) -> BTreeSet<String> {
    let lines = text.lines().filter_map(|line| line.trim_start_matches(['$', ' ']).strip_prefix(prefix));
    let words = lines.filter_map(|rest| rest.split_whitespace().next());
    set(words.filter(|word| *word != "--help"))
}

#[test]
fn commands_of_the_local_server_are_in_the_manual() {
    let help = Command::new(env!("CARGO_BIN_EXE_server")).arg("--help").output().expect("it runs");
    let commands = first_words(&String::from_utf8_lossy(&help.stdout), "cargo run -- ");
    let documented =
        after(&section(&read("docs/operations.md"), "## On one machine"), "cargo run -- ", |c| {
            c.is_ascii_lowercase() || c == '-'
        });
    compare("docs/operations.md", &documented, &commands);
}

#[test]
fn commands_of_xtask_are_in_the_manual() {
    let source = read("infra/xtask/src/main.rs");
    let help = source.split("const HELP: &str = ").nth(1).and_then(|rest| rest.split("\n\";").next());
    let commands = first_words(help.expect("there is a help text"), "cargo xtask ");
    let documented = first_words(&section(&read(CONTRIBUTING), "## The inner loop"), "cargo xtask ");
    compare(CONTRIBUTING, &documented, &commands);
}

#[test]
fn folders_of_the_platforms_tests_are_in_the_manual() {
    let platform = "tests/platform/";
    let entries = std::fs::read_dir(root().join(platform)).expect("the folder exists");
    let folders =
        entries.map(|entry| entry.expect("the folder can be read").path()).filter(|path| path.is_dir());
    let folders = folders.filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    let documented = first_column(&section(&read(CONTRIBUTING), "### Where the tests are"));
    let documented = documented.iter().filter_map(|cell| cell.strip_prefix(platform));
    let documented = documented.map(|folder| folder.trim_end_matches('/').to_owned());
    compare(CONTRIBUTING, &set(documented), &set(folders));
}
