//! What to check after a change of these files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::packages::Workspace;

/// The crate of the tests that start the whole platform. It has folders of tests that can run alone.
const TESTS: &str = "tests";

/// What a change needs.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The packages with changed files, and with `--all` those that use them.
    packages: BTreeSet<String>,
    /// The packages that use a changed package and are not checked, or only in part.
    unchecked: BTreeSet<String>,
    /// The arguments of each `cargo test`.
    tests: Vec<Vec<String>>,
    /// Changed files that concern more than one package, so no check here covers them.
    general: BTreeSet<String>,
    /// Changed files that only CI checks.
    other: BTreeSet<String>,
}

/// The tests of the crate `tests` that a change needs.
#[derive(Debug, Default)]
struct Selected {
    /// All tests, because a file changed that all use.
    whole: bool,
    /// The test programs, each with the names that select its tests. Without a name, all its tests run.
    programs: BTreeMap<&'static str, BTreeSet<String>>,
}

impl Selected {
    /// A file of the crate, by its path within it.
    fn file(&mut self, path: &str) {
        let folders: Vec<&str> = path.split('/').collect();
        match folders.as_slice() {
            ["platform", area, _, ..] => self.some("platform", Some(format!("{area}::"))),
            ["platform", _] => self.some("platform", None),
            ["lambda", ..] => self.some("lambda", None),
            ["docs", ..] => self.some("docs", None),
            _ => self.whole = true,
        }
    }

    /// Tests of one program. If one change needs the whole program, a name adds nothing.
    fn some(&mut self, program: &'static str, name: Option<String>) {
        match (self.programs.get_mut(program), name) {
            (_, None) => {
                self.programs.insert(program, BTreeSet::new());
            }
            (None, Some(name)) => {
                self.programs.insert(program, BTreeSet::from([name]));
            }
            (Some(names), Some(name)) if !names.is_empty() => {
                names.insert(name);
            }
            (Some(_), Some(_)) => {}
        }
    }

    /// The arguments of each `cargo test`.
    fn commands(&self) -> Vec<Vec<String>> {
        let command = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        if self.whole {
            return vec![command(&["--package", TESTS])];
        }
        let commands = self.programs.iter().map(|(program, names)| {
            let mut words = command(&["--package", TESTS, "--test", program]);
            if !names.is_empty() {
                words.push("--".to_owned());
                words.extend(names.iter().cloned());
            }
            words
        });
        commands.collect()
    }
}

impl Plan {
    /// `all` adds the packages that use a changed package.
    pub fn of(workspace: &Workspace, files: &BTreeSet<String>, all: bool) -> Self {
        let mut plan = Self::default();
        let mut selected = Selected::default();
        for file in files {
            // What Liquid says of templates: a test of the crate `theme` reads it.
            if file.starts_with("tests/liquid/") {
                plan.packages.insert("theme".to_owned());
                continue;
            }
            if let Some(package) = workspace.package_of(file) {
                plan.packages.insert(package.to_owned());
                if package == TESTS {
                    selected.file(workspace.within(TESTS, file));
                }
            }
            match file.as_str() {
                "infra/openapi.json" => {
                    plan.packages.insert("catalog".to_owned());
                }
                file if file.starts_with("events/") => selected.some("lambda", None),
                // The manuals of the whole repository are compared with the code.
                file if file.ends_with(".md") && workspace.package_of(file).is_none() => {
                    selected.some("docs", None);
                }
                "Cargo.toml" | "Cargo.lock" | "clippy.toml" | "rustfmt.toml" | ".cargo/config.toml" => {
                    plan.general.insert(file.clone());
                }
                _ if workspace.package_of(file).is_none() => {
                    plan.other.insert(file.clone());
                }
                _ => {}
            }
        }
        // Not what uses the tests, and not what is checked as a whole.
        let mut changed = plan.packages.clone();
        changed.remove(TESTS);
        let users = workspace.dependents(&changed);
        if all {
            selected.whole |= users.contains(TESTS);
            plan.packages.extend(workspace.dependents(&plan.packages));
        } else {
            plan.unchecked = users;
            if selected.whole {
                plan.unchecked.remove(TESTS);
            }
        }
        let mut words = Vec::new();
        for package in plan.packages.iter().filter(|package| *package != TESTS) {
            words.extend(["--package".to_owned(), package.clone()]);
        }
        if !words.is_empty() {
            // One command for all: cargo builds them together.
            words.push("--no-fail-fast".to_owned());
            plan.tests.push(words);
        }
        plan.tests.extend(selected.commands());
        plan
    }

    pub fn packages(&self) -> &BTreeSet<String> {
        &self.packages
    }

    /// The arguments of each `cargo test`.
    pub fn tests(&self) -> &[Vec<String>] {
        &self.tests
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(", ");
        if self.packages.is_empty() {
            writeln!(f, "no crate has changed")?;
        } else {
            writeln!(f, "crates to check: {}", list(&self.packages))?;
        }
        if !self.unchecked.is_empty() {
            writeln!(
                f,
                "crates that use them and are not checked as a whole: {}. `cargo xtask check --all` checks them too",
                list(&self.unchecked)
            )?;
        }
        if !self.general.is_empty() {
            writeln!(
                f,
                "changed, and used by every crate: {}. `cargo xtask ci` checks all",
                list(&self.general)
            )?;
        }
        if !self.other.is_empty() {
            writeln!(f, "changed, and of no crate: {}. `cargo xtask ci` checks them", list(&self.other))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packages::tests::{names, workspace};

    fn plan(files: &[&str], all: bool) -> Plan {
        Plan::of(&workspace(), &names(files), all)
    }

    fn commands(files: &[&str], all: bool) -> Vec<String> {
        plan(files, all).tests().iter().map(|words| words.join(" ")).collect()
    }

    #[test]
    fn a_changed_crate_is_checked_and_its_users_are_named() {
        let found = plan(&["shared/src/lib.rs"], false);
        assert_eq!(found.packages(), &names(&["shared"]));
        assert_eq!(found.unchecked, names(&["agents", "bench", "catalog", "tests"]));
        assert_eq!(commands(&["shared/src/lib.rs"], false), ["--package shared --no-fail-fast"]);
        assert!(
            found.to_string().contains("not checked as a whole: agents, bench, catalog, tests."),
            "{found}"
        );
        // A part of the tests is no check of a crate that they use.
        let found = plan(&["shared/src/lib.rs", "tests/docs/links.rs"], false);
        assert_eq!(found.unchecked, names(&["agents", "bench", "catalog", "tests"]));
        let found = plan(&["shared/src/lib.rs", "tests/harness/lib.rs"], false);
        assert_eq!(found.unchecked, names(&["agents", "bench", "catalog"]));
    }

    #[test]
    fn all_adds_the_crates_that_use_a_changed_one() {
        let found = plan(&["functions/agents/src/lib.rs"], true);
        assert_eq!(found.packages(), &names(&["agents", "bench", "catalog", "tests"]));
        assert_eq!(found.unchecked, names(&[]));
        assert_eq!(
            commands(&["functions/agents/src/lib.rs", "tests/docs/links.rs"], true),
            ["--package agents --package bench --package catalog --no-fail-fast", "--package tests"]
        );
    }

    #[test]
    fn of_the_platforms_tests_only_the_changed_folders_run() {
        let runs = "tests/platform/runs/durable.rs";
        let calls = "tests/platform/runs/calls.rs";
        let mcp = "tests/platform/mcp/tools.rs";
        let platform = "--package tests --test platform";
        assert_eq!(commands(&[runs, calls, mcp], false), [format!("{platform} -- mcp:: runs::")]);
        assert_eq!(commands(&[mcp, "tests/platform/main.rs", runs], false), [platform]);
        assert_eq!(commands(&["tests/lambda/http.rs"], false), ["--package tests --test lambda"]);
        let verdicts = "tests/liquid/strict/verdicts.jsonl";
        assert_eq!(commands(&[verdicts], false), ["--package theme --no-fail-fast"]);
        for everything in ["tests/harness/lib.rs", "tests/Cargo.toml", "tests/golden/data.json"] {
            assert_eq!(commands(&[everything, runs], false), ["--package tests"], "{everything}");
        }
    }

    #[test]
    fn files_outside_the_crates_have_their_tests() {
        let docs = "--package tests --test docs";
        for page in ["docs/api.md", "README.md", "infra/README.md"] {
            assert_eq!(commands(&[page], false), [docs], "{page}");
            assert_eq!(plan(&[page], false).packages(), &names(&[]));
        }
        assert_eq!(commands(&["events/agents.json"], false), ["--package tests --test lambda"]);
        assert_eq!(commands(&["infra/openapi.json"], false), ["--package catalog --no-fail-fast"]);
    }

    #[test]
    fn what_no_crate_covers_is_named() {
        let found = plan(&["Cargo.lock", "infra/template.yaml", "shared/domain/fuzz/Cargo.toml"], false);
        assert_eq!(found.general, names(&["Cargo.lock"]));
        assert_eq!(found.other, names(&["infra/template.yaml", "shared/domain/fuzz/Cargo.toml"]));
        assert!(found.packages().is_empty() && found.tests().is_empty());
        assert!(found.to_string().starts_with("no crate has changed\n"), "{found}");
    }

    #[test]
    fn nothing_is_checked_if_nothing_changed() {
        assert_eq!(plan(&[], true), Plan::default());
    }
}
