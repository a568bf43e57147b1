//! Questions to git.
//!
//! A repository may be hostile: its names may begin with `-`, its configuration may name programs, and objects may be missing. So only
//! plumbing is called, which starts no pager, no filter and no program of the configuration; nothing is fetched; and names go after
//! `--end-of-options`.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use fs_err as fs;

use crate::Failure;
use crate::output::shown;
use crate::spool::private_dir;

/// A working tree of a repository.
#[derive(Debug)]
pub struct Repository {
    /// The top of the working tree.
    pub root: PathBuf,
    /// Of this working tree. A repository may have several.
    git_dir: PathBuf,
    /// Of all working trees.
    common_dir: PathBuf,
}

/// Where the working tree is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its full name, or `HEAD` if there is none.
    pub branch: String,
    /// Its newest commit.
    pub commit: String,
}

impl Repository {
    /// The one that the current folder is in.
    ///
    /// # Errors
    /// If it is in none, or if there is no git.
    pub fn find() -> Result<Self, Failure> {
        let here = Path::new(".");
        let root = path(git(here, &["rev-parse", "--show-toplevel"], "")?);
        let git_dir = path(git(&root, &["rev-parse", "--absolute-git-dir"], "")?);
        let common_dir = root.join(path(git(&root, &["rev-parse", "--git-common-dir"], "")?));
        Ok(Self { root, git_dir, common_dir })
    }

    /// # Errors
    /// What git says.
    pub fn ask(&self, args: &[&str]) -> Result<Vec<u8>, Failure> {
        git(&self.root, args, "")
    }

    /// # Errors
    /// What git says.
    pub fn ask_about(&self, args: &[&str], stdin: &str) -> Result<Vec<u8>, Failure> {
        git(&self.root, args, stdin)
    }

    /// As [`Self::ask`]. `None` if git says no: it ends with 1 and no error.
    fn ask_whether(&self, args: &[&str]) -> Result<Option<Vec<u8>>, Failure> {
        let output = output_of(&self.root, args, "")?;
        if output.status.code() == Some(1) && output.stderr.is_empty() {
            return Ok(None);
        }
        printed(output).map(Some)
    }

    /// Whether the commit has history in common with one of the others.
    ///
    /// # Errors
    /// What git says.
    pub fn is_related(&self, commit: &str, others: &[String]) -> Result<bool, Failure> {
        let mut args = vec!["merge-base", commit];
        args.extend(others.iter().map(String::as_str));
        Ok(!others.is_empty() && self.ask_whether(&args)?.is_some())
    }

    /// The folder of hooks: that of `core.hooksPath`, or that of the repository.
    ///
    /// # Errors
    /// What git says.
    pub fn hooks_dir(&self) -> Result<PathBuf, Failure> {
        Ok(self.root.join(path(self.ask(&["rev-parse", "--git-path", "hooks"])?)))
    }

    /// A folder of our own for this working tree, where git never looks.
    ///
    /// # Errors
    /// If it can't be made, or is a link.
    pub fn own_dir(&self) -> Result<PathBuf, Failure> {
        folder(self.git_dir.join("lamplighter"))
    }

    /// A file of [`Self::shared_dir`], which may not be there.
    #[must_use]
    pub fn shared_file(&self, name: &str) -> PathBuf {
        self.common_dir.join("lamplighter").join(name)
    }

    /// As [`Self::own_dir`], for all working trees.
    ///
    /// # Errors
    /// If it can't be made, or is a link.
    pub fn shared_dir(&self) -> Result<PathBuf, Failure> {
        folder(self.common_dir.join("lamplighter"))
    }

    /// The branch and its newest commit. `None` if there is no commit yet.
    ///
    /// # Errors
    /// What git says.
    pub fn head(&self) -> Result<Option<Head>, Failure> {
        let branch = self.ask_whether(&["symbolic-ref", "--quiet", "HEAD"])?;
        let branch = branch.map_or_else(|| "HEAD".to_owned(), |branch| text(&branch));
        // Of this branch, and not of `HEAD`, which may be another one by now.
        let commit = format!("{branch}^{{commit}}");
        let commit = self.ask_whether(&["rev-parse", "--verify", "--quiet", &commit])?;
        Ok(commit.map(|commit| Head { branch, commit: text(&commit) }))
    }

    /// Whether a rebase is under way. Its commits may be replaced by the next step.
    #[must_use]
    pub fn is_rebasing(&self) -> bool {
        ["rebase-merge", "rebase-apply"].iter().any(|name| self.git_dir.join(name).exists())
    }
}

/// Makes a folder of our own.
///
/// # Errors
/// If it can't be made, or is a link.
pub fn folder(dir: PathBuf) -> Result<PathBuf, Failure> {
    private_dir(&dir)?;
    if fs::symlink_metadata(&dir)?.is_dir() {
        return Ok(dir);
    }
    Err(Failure::Message(format!("{} is a link, and links are not followed", shown(&dir))))
}

/// Whether the text is the whole hash of a commit.
#[must_use]
pub fn is_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn git(dir: &Path, args: &[&str], stdin: &str) -> Result<Vec<u8>, Failure> {
    printed(output_of(dir, args, stdin)?)
}

fn output_of(dir: &Path, args: &[&str], stdin: &str) -> Result<Output, Failure> {
    let failed = |error: io::Error| Failure::Message(format!("failed to run git: {error}"));
    let mut child = Command::new("git")
        .args(["--no-pager", "-c", "core.fsmonitor=false"])
        .args(args)
        .current_dir(dir)
        .envs([("GIT_OPTIONAL_LOCKS", "0"), ("GIT_NO_LAZY_FETCH", "1"), ("GIT_TERMINAL_PROMPT", "0")])
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    // Git may answer before it has read everything.
    let (input, given) = (child.stdin.take(), stdin.to_owned());
    let writer = thread::spawn(move || input.map(|mut input| input.write_all(given.as_bytes())));
    let output = child.wait_with_output().map_err(failed)?;
    drop(writer.join());
    Ok(output)
}

/// What git has printed, or the first line of its error.
fn printed(output: Output) -> Result<Vec<u8>, Failure> {
    if output.status.success() {
        return Ok(output.stdout);
    }
    let told = String::from_utf8_lossy(&output.stderr);
    let told = told.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let told = told.trim_start_matches("fatal: ").trim_start_matches("error: ");
    Err(Failure::Message(format!("git: {}", if told.is_empty() { "it failed" } else { told })))
}

/// A path that git has printed, which ends with a line feed.
fn path(mut printed: Vec<u8>) -> PathBuf {
    if printed.last() == Some(&b'\n') {
        printed.pop();
    }
    PathBuf::from(OsString::from_vec(printed))
}

/// One line that git has printed.
fn text(printed: &[u8]) -> String {
    String::from_utf8_lossy(printed).trim_end_matches('\n').to_owned()
}
