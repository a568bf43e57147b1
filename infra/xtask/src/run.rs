//! Runs programs, one after another, and keeps the exit code of the first that failed.

use std::ffi::OsStr;
use std::fmt;
use std::process::{Command, ExitCode};
use std::time::Instant;

/// Why a task failed, and the exit code for it.
#[derive(Debug)]
pub struct Problem {
    what: String,
    code: u8,
}

impl Problem {
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), code: 1 }
    }

    pub fn code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// The cargo that runs this program.
pub fn cargo() -> Command {
    program(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// A program, without the variables that cargo sets for this one: a build script must not take them for its own.
pub fn program(name: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(name);
    for (variable, _) in std::env::vars_os() {
        let is_own =
            |name: &str| ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|begin| name.starts_with(begin));
        if variable.to_str().is_some_and(is_own) {
            command.env_remove(variable);
        }
    }
    command
}

/// The output of a git command.
///
/// # Errors
/// If git cannot be run or fails.
pub fn git(args: &[&str]) -> Result<String, Problem> {
    output(Command::new("git").args(args))
}

/// The standard output of a program.
///
/// # Errors
/// If it cannot be run or fails. The error has its standard error.
pub fn output(command: &mut Command) -> Result<String, Problem> {
    let line = line(command, &[]);
    let output =
        command.output().map_err(|error| Problem::new(format!("`{line}` cannot be run: {error}")))?;
    if !output.status.success() {
        let told = String::from_utf8_lossy(&output.stderr);
        return Err(Problem::new(format!("`{line}` failed: {}", told.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The steps of a task. Each runs, also after one that failed, so that one run names everything that is wrong.
#[derive(Default)]
pub struct Steps {
    failed: Vec<(String, u8)>,
}

impl Steps {
    /// Runs a program with these variables. Its output is shown as it comes.
    pub fn run(&mut self, command: &mut Command, variables: &[(&str, &str)]) {
        let line = line(command, variables);
        println!("\n$ {line}");
        let began = Instant::now();
        let code = match command.envs(variables.iter().copied()).status() {
            Ok(status) if status.success() => 0,
            // A program that a signal ended has no code.
            Ok(status) => status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1),
            Err(error) => {
                eprintln!("`{line}` cannot be run: {error}");
                127
            }
        };
        println!("({:.1} s)", began.elapsed().as_secs_f64());
        if code != 0 {
            self.failed.push((line, code));
        }
    }

    /// # Errors
    /// If a step failed.
    pub fn end(self) -> Result<(), Problem> {
        let Some(&(_, code)) = self.failed.first() else { return Ok(()) };
        let lines: Vec<String> =
            self.failed.iter().map(|(line, code)| format!("\n  {line} (exit code {code})")).collect();
        Err(Problem { what: format!("failed:{}", lines.concat()), code })
    }
}

/// The command as a person would type it.
fn line(command: &Command, variables: &[(&str, &str)]) -> String {
    let mut words: Vec<String> = variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let program = std::path::Path::new(command.get_program());
    // The name is enough for cargo; its whole path says nothing more.
    words.push(match program.file_name() {
        Some(name) if program.is_absolute() => name.to_string_lossy().into_owned(),
        _ => program.display().to_string(),
    });
    words.extend(command.get_args().map(|arg| arg.to_string_lossy().into_owned()));
    words.join(" ")
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_decides_the_exit_code() {
        let mut steps = Steps::default();
        for script in ["exit 0", "exit $CODE", "exit 4"] {
            steps.run(Command::new("sh").args(["-c", script]), &[("CODE", "3")]);
        }
        let problem = steps.end().unwrap_err();
        assert_eq!(problem.code, 3);
        let told = problem.to_string();
        assert!(told.contains("CODE=3 sh -c exit $CODE (exit code 3)"), "{told}");
        assert!(told.contains("exit 4 (exit code 4)") && !told.contains("exit 0"), "{told}");
    }

    #[test]
    fn a_program_that_is_missing_fails() {
        let mut steps = Steps::default();
        steps.run(&mut Command::new("no-such-program"), &[]);
        assert_eq!(steps.end().unwrap_err().code, 127);
        assert!(
            output(&mut Command::new("no-such-program")).unwrap_err().to_string().contains("cannot be run")
        );
    }
}
