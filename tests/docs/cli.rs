//! `docs/cli.md` names exactly the commands, flags, variables and hooks that the command has.

use std::collections::BTreeSet;
use std::process::Command;

use crate::page::{after, column, compare, first_column, in_backticks, read, section, set};

const PAGE: &str = "docs/cli.md";

/// Only the command itself uses it, to start a background process.
const INTERNAL: &str = "background";

fn flags(text: &str) -> BTreeSet<String> {
    after(text, "--", |c| c.is_ascii_lowercase() || c == '-')
}

#[test]
fn flags_are_those_of_the_command() {
    let source = read("infra/cli/src/args.rs");
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let mut code = after(code, "Long(\"", |c| c.is_ascii_lowercase() || c == '-');
    assert!(code.remove(INTERNAL));
    let documented = flags(&in_backticks(&section(&read(PAGE), "## Commands")).join("\n"));
    compare(PAGE, &documented, &code);
    let help = Command::new(env!("CARGO_BIN_EXE_command")).arg("--help").output().expect("it runs");
    let help = flags(&String::from_utf8_lossy(&help.stdout));
    compare("--help", &help, &code);
}

#[test]
fn commands_are_those_of_the_command() {
    let source = read("infra/cli/src/args.rs");
    let names = |name: &str| {
        let list = source.split(&format!("const {name}: ")).nth(1).expect("the constant exists");
        let list = list.split(';').nth(1).expect("it ends");
        list.split('"').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()
    };
    let mut code = set(names("COMMANDS"));
    code.extend(names("CONTEXT_COMMANDS").into_iter().map(|name| format!("context {name}")));
    code.extend(names("KEYS_COMMANDS").into_iter().map(|name| format!("keys {name}")));
    let words = |text: &str| {
        let words = text.split_whitespace().take_while(|word| word.bytes().all(|b| b.is_ascii_lowercase()));
        words.collect::<Vec<_>>().join(" ")
    };
    let mentioned = in_backticks(&section(&read(PAGE), "## Commands"));
    let documented = mentioned.iter().filter_map(|text| text.strip_prefix("lamplighter "));
    let documented = set(documented.map(words).filter(|words| !words.is_empty()));
    compare(PAGE, &documented, &code);
}

#[test]
fn hooks_are_those_that_the_settings_name() {
    let text = section(&read(PAGE), "## Hooks for coding assistants");
    let json =
        text.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).expect("there is JSON");
    let settings: serde_json::Value = serde_json::from_str(json).expect("the settings are JSON");
    let hooks = settings["hooks"].as_object().expect("there are hooks");
    compare(PAGE, &set(first_column(&text)), &set(hooks.keys().map(String::as_str)));
}

#[test]
fn variables_are_those_that_the_command_reads() {
    let code = after(&crate::page::code(&["infra/cli/src"]), "variable(\"LAMPLIGHTER_", |c| {
        c.is_ascii_uppercase() || c == '_'
    });
    let text = section(&read(PAGE), "## Settings");
    let documented = first_column(&text)
        .into_iter()
        .filter_map(|name| name.strip_prefix("LAMPLIGHTER_").map(str::to_owned));
    compare(PAGE, &set(documented), &code);
    let fields = set(column(&text, 1));
    compare(PAGE, &fields, &set(["url", "api_key", "api_key_file", "project"]));
}
