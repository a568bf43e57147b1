//! `cargo xtask`: checks what has changed, runs everything that CI runs, or writes generated files again.

mod changes;
mod packages;
mod plan;
mod run;

use std::path::PathBuf;
use std::process::ExitCode;

use lexopt::prelude::*;

use crate::changes::Changes;
use crate::packages::Workspace;
use crate::plan::Plan;
use crate::run::{Problem, Steps, cargo, git, program};

const HELP: &str = "\
Tasks of this workspace.

Usage:
  cargo xtask check [--all] [--base REF]   check the crates with changed files: format, clippy, tests
  cargo xtask ci                           run everything that CI runs, as `.ci/run` does
  cargo xtask bless [NAME...]              write generated files again
  cargo xtask --help

`cargo xtask COMMAND --help` says more about a command.
The exit code is 0 if everything passed, 2 if the command line is wrong, and otherwise that of the first step that failed.
";

const CHECK_HELP: &str = "\
Checks the crates with changed files: format, clippy without warnings, tests.

Usage: cargo xtask check [--all] [--base REF]

  --all        also checks the crates that use a changed crate
  --base REF   compares with the common ancestor of HEAD and REF (main, or origin/main if there is no main)

Changed files are those that differ from the base, committed or not, and new files that git does not ignore.
A file belongs to the crate of the nearest folder with a Cargo.toml. Of the crate `tests`, only the tests in the changed
folders run, unless a file changed that all of them use. Changed manuals are checked by `tests --test docs`.
";

const CI_HELP: &str = "\
Runs everything that CI runs, as `.ci/run` does. It needs bash, Python 3.11, curl and a network. It takes long:
many minutes, and more the first time, because it installs tools.

Usage: cargo xtask ci
";

const BLESS_HELP: &str = "\
Writes generated files again. Read the difference before you commit it.

Usage: cargo xtask bless [NAME...]

  snapshots   the snapshots of insta, in the crates that use it
  openapi     infra/openapi.json, from the handlers
  data-model  the table of records in docs/architecture.md, from shared/src/store/record_kinds.rs
  golden      tests/golden/data.json. Only to add a kind of record: data that an earlier version wrote must stay readable

Without a name: snapshots, openapi and data-model.
";

/// A parsed command line.
#[derive(Debug, PartialEq, Eq)]
enum Command {
    Say(&'static str),
    Check { all: bool, base: Option<String> },
    Ci,
    Bless(Vec<Generated>),
}

/// Files that a program writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Generated {
    Snapshots,
    OpenApi,
    DataModel,
    Golden,
}

impl Generated {
    fn named(name: &str) -> Result<Self, lexopt::Error> {
        match name {
            "snapshots" => Ok(Self::Snapshots),
            "openapi" => Ok(Self::OpenApi),
            "data-model" => Ok(Self::DataModel),
            "golden" => Ok(Self::Golden),
            other => Err(format!("`{other}` is not one of snapshots, openapi, data-model, golden").into()),
        }
    }
}

fn main() -> ExitCode {
    let command = match parse(lexopt::Parser::from_env()) {
        Ok(command) => command,
        Err(error) => {
            eprintln!("xtask: {error}; see `cargo xtask --help`");
            return ExitCode::from(2);
        }
    };
    let done = match command {
        Command::Say(text) => {
            print!("{text}");
            Ok(())
        }
        command => enter_root().and_then(|()| match command {
            Command::Check { all, base } => check(all, base.as_deref()),
            Command::Ci => {
                let mut steps = Steps::default();
                steps.run(&mut program(".ci/run"), &[]);
                steps.end()
            }
            Command::Bless(which) => bless(&which),
            Command::Say(_) => Ok(()),
        }),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("xtask: {problem}");
            problem.code()
        }
    }
}

fn parse(mut args: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let Some(first) = args.next()? else { return Ok(Command::Say(HELP)) };
    match first {
        Long("help") | Short('h') => Ok(Command::Say(HELP)),
        Value(word) if word == "check" => {
            let (mut all, mut base) = (false, None);
            while let Some(arg) = args.next()? {
                match arg {
                    Long("help") | Short('h') => return Ok(Command::Say(CHECK_HELP)),
                    Long("all") => all = true,
                    Long("base") if base.is_none() => base = Some(args.value()?.string()?),
                    other => return Err(other.unexpected()),
                }
            }
            Ok(Command::Check { all, base })
        }
        Value(word) if word == "ci" => match args.next()? {
            None => Ok(Command::Ci),
            Some(Long("help") | Short('h')) => Ok(Command::Say(CI_HELP)),
            Some(other) => Err(other.unexpected()),
        },
        Value(word) if word == "bless" => {
            let mut which = Vec::new();
            while let Some(arg) = args.next()? {
                match arg {
                    Long("help") | Short('h') => return Ok(Command::Say(BLESS_HELP)),
                    Value(name) => which.push(Generated::named(&name.string()?)?),
                    other => return Err(other.unexpected()),
                }
            }
            if which.is_empty() {
                which = vec![Generated::Snapshots, Generated::OpenApi, Generated::DataModel];
            }
            Ok(Command::Bless(which))
        }
        Value(word) => Err(format!("there is no command `{}`", word.to_string_lossy()).into()),
        other => Err(other.unexpected()),
    }
}

/// Goes to the root of the workspace, where all paths begin.
fn enter_root() -> Result<(), Problem> {
    // Cargo sets it for a program that it runs. A path from the build could be that of another copy of the repository.
    let own =
        std::env::var_os("CARGO_MANIFEST_DIR").ok_or_else(|| Problem::new("run it as `cargo xtask`"))?;
    let root = PathBuf::from(own).join("../..");
    std::env::set_current_dir(&root)
        .map_err(|error| Problem::new(format!("{} cannot be entered: {error}", root.display())))
}

/// Checks the packages with changed files. With `all`, also those that use them.
fn check(all: bool, base: Option<&str>) -> Result<(), Problem> {
    let workspace = Workspace::load()?;
    let changes = Changes::since(base)?;
    println!("{} changed files since {}", changes.files.len(), changes.base);
    let plan = Plan::of(&workspace, &changes.files, all);
    print!("{plan}");
    let mut steps = Steps::default();
    // It takes a second for everything, so it does not depend on what changed.
    steps.run(cargo().args(["fmt", "--all", "--check"]), &[]);
    if !plan.packages().is_empty() {
        let mut clippy = cargo();
        clippy.arg("clippy");
        for package in plan.packages() {
            clippy.args(["--package", package]);
        }
        steps.run(clippy.args(["--all-targets", "--", "-D", "warnings"]), &[]);
    }
    for test in plan.tests() {
        steps.run(cargo().arg("test").args(test), &[]);
    }
    steps.end()
}

/// Writes these generated files again, and prints which files changed.
fn bless(which: &[Generated]) -> Result<(), Problem> {
    let mut steps = Steps::default();
    for generated in which {
        match generated {
            Generated::Snapshots => {
                let mut tests = cargo();
                tests.args(["test", "--no-fail-fast"]);
                for package in Workspace::load()?.users_of("insta") {
                    tests.args(["--package", &package]);
                }
                steps.run(&mut tests, &[("INSTA_UPDATE", "always")]);
            }
            Generated::OpenApi => {
                let mut test = cargo();
                steps.run(test.args(["test", "--package", "catalog", "--lib"]), &[("UPDATE_OPENAPI", "1")]);
            }
            Generated::DataModel => {
                let mut test = cargo();
                test.args(["test", "--package", "tests", "--test", "docs", "data_model"]);
                steps.run(&mut test, &[("UPDATE_DATA_MODEL", "1")]);
            }
            Generated::Golden => {
                steps.run(cargo().args(["run", "--package", "bench", "--bin", "golden"]), &[]);
            }
        }
    }
    let generated = ["*.snap", "infra/openapi.json", "docs/architecture.md", "tests/golden/data.json"];
    let changed = git(&[["status", "--short", "--"].as_slice(), generated.as_slice()].concat())?;
    if changed.is_empty() {
        println!("no generated file differs from the last commit");
    } else {
        println!("these generated files differ from the last commit:\n{}", changed.trim_end());
    }
    steps.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &[&str]) -> Result<Command, String> {
        parse(lexopt::Parser::from_args(line)).map_err(|error| error.to_string())
    }

    #[test]
    fn commands_are_parsed() {
        let check = |all, base: Option<&str>| Ok(Command::Check { all, base: base.map(str::to_owned) });
        let usual = vec![Generated::Snapshots, Generated::OpenApi, Generated::DataModel];
        for (line, command) in [
            (&[][..], Ok(Command::Say(HELP))),
            (&["--help"], Ok(Command::Say(HELP))),
            (&["check"], check(false, None)),
            (&["check", "--all", "--base", "v1"], check(true, Some("v1"))),
            (&["check", "-h"], Ok(Command::Say(CHECK_HELP))),
            (&["ci"], Ok(Command::Ci)),
            (&["ci", "--help"], Ok(Command::Say(CI_HELP))),
            (&["bless"], Ok(Command::Bless(usual))),
            (&["bless", "golden"], Ok(Command::Bless(vec![Generated::Golden]))),
            (&["bless", "--help"], Ok(Command::Say(BLESS_HELP))),
        ] {
            assert_eq!(parsed(line), command, "{line:?}");
        }
    }

    #[test]
    fn errors_name_what_is_wrong() {
        for (line, told) in [
            (&["build"][..], "there is no command `build`"),
            (&["check", "--quick"], "--quick"),
            (&["check", "--base"], "--base"),
            (&["bless", "images"], "`images` is not one of snapshots, openapi, data-model, golden"),
            (&["ci", "now"], "now"),
        ] {
            let error = parsed(line).unwrap_err();
            assert!(error.contains(told), "{line:?}: {error}");
        }
    }
}
