//! `docs/cli.md` names exactly the commands, flags, variables and hooks that the command has.

use std::collections::BTreeSet;

use crate::page::{after, column, compare, first_column, in_backticks, read, section, set};

const PAGE: &str = "docs/cli.md";

/// Every command has them.
const OF_ALL: [&str; 2] = ["help", "version"];

fn mentioned() -> String {
    let page = read(PAGE);
    let sections = [
        "## Commands for people",
        "## Living documents",
        "## For programs",
        "## Account and keys",
        "## Agent logs and context documents",
    ];
    sections.map(|heading| in_backticks(&section(&page, heading)).join("\n")).join("\n")
}

#[test]
fn flags_are_those_of_the_command() {
    let mut code = BTreeSet::new();
    let mut commands = vec![lamplighter_cli::args::description()];
    while let Some(command) = commands.pop() {
        let shown = command.get_arguments().filter(|flag| !flag.is_hide_set());
        code.extend(shown.filter_map(|flag| flag.get_long()).map(str::to_owned));
        commands.extend(command.get_subcommands().cloned());
    }
    for flag in OF_ALL {
        code.remove(flag);
    }
    let documented = after(&mentioned(), "--", |c| c.is_ascii_lowercase() || c == '-');
    compare(PAGE, &documented, &code);
}

/// A command with others below it is named by these.
#[test]
fn commands_are_those_of_the_command() {
    let description = lamplighter_cli::args::description();
    let names = |command: &lamplighter_cli::args::Description| -> Vec<String> {
        command
            .get_subcommands()
            .map(|command| command.get_name().to_owned())
            .filter(|name| name != "help")
            .collect()
    };
    let text = mentioned();
    let documented: Vec<&str> = text.lines().collect();
    for name in names(&description) {
        let is_named = documented.iter().any(|text| {
            let text = text.strip_prefix("lamplighter ").unwrap_or(text);
            text == name || text.starts_with(&format!("{name} "))
        });
        assert!(is_named, "{PAGE} does not name `{name}`");
        let below =
            description.get_subcommands().find(|command| command.get_name() == name).expect("it exists");
        for sub in names(below) {
            let whole = format!("{name} {sub}");
            let is_named = documented.iter().any(|text| text.contains(&whole) || *text == sub);
            assert!(is_named, "{PAGE} does not name `{whole}`");
        }
    }
    // Nothing else is named.
    let all = set(names(&description));
    for text in documented.iter().filter_map(|text| text.strip_prefix("lamplighter ")) {
        let first: String = text.split_whitespace().next().unwrap_or_default().to_owned();
        assert!(
            all.contains(&first) || first == "help" || !first.bytes().all(|b| b.is_ascii_lowercase()),
            "{text}"
        );
    }
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
