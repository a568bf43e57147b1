//! `docs hook`: hooks of git that report commits.
//!
//! A hook of the person is kept as it is: ours is a marked block in it. The block starts `docs commit --hook` in the background, so a
//! commit neither waits nor fails. It does nothing in a repository where the person has not installed it, nor for another project, so it
//! may be in a folder of hooks that is shared or committed.

use std::fs::{File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use fs_err as fs;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::Docs;
use super::git::Repository;
use super::reported::{self, Reported};
use crate::Failure;
use crate::output::{self, escaped, shown};
use crate::shell::values::counted;

/// Git calls them after a commit, a merge, and an amended commit or a rebase.
const HOOKS: [&str; 3] = ["post-commit", "post-merge", "post-rewrite"];

const BEGIN: &str = "# lamplighter:docs:begin";
const END: &str = "# lamplighter:docs:end";

/// The folder of the person's programs is added because a program with windows may have started git, without the settings of a shell.
const BLOCK: &str = "\
# lamplighter:docs:begin Reports commits; `lamplighter docs hook remove` removes this.
(PATH=\"$PATH:$HOME/.cargo/bin\" lamplighter docs commit --hook </dev/null >/dev/null 2>&1 &)
# lamplighter:docs:end
";

/// A hook that has nothing but our block.
const SHEBANG: &str = "#!/bin/sh\n";

const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "ash"];

/// The longest hook that is changed, in bytes.
const MAX_HOOK: u64 = 1024 * 1024;

/// A file in the folder of hooks.
struct HookFile {
    name: &'static str,
    path: PathBuf,
    before: Option<Before>,
}

/// What is there.
struct Before {
    text: String,
    mode: u32,
}

impl HookFile {
    /// # Errors
    /// If it can't be changed safely.
    fn read(dir: &Path, name: &'static str) -> Result<Self, Failure> {
        let path = dir.join(name);
        let fault = |why: &str| Failure::Message(format!("{}: {why}; nothing was changed", shown(&path)));
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(Self { name, path, before: None }),
            Err(Errno::LOOP) => return Err(fault("it is a link, and links are not followed")),
            Err(error) => return Err(fault(&io::Error::from(error).to_string())),
        };
        let data = file.metadata()?;
        if !data.is_file() || data.len() > MAX_HOOK {
            return Err(fault("it is not a script"));
        }
        let mut text = String::new();
        file.take(MAX_HOOK).read_to_string(&mut text).map_err(|_| fault("it is not a script"))?;
        Ok(Self { name, before: Some(Before { text, mode: data.permissions().mode() & 0o777 }), path })
    }

    fn has_block(&self) -> bool {
        self.before.as_ref().is_some_and(|before| before.text.contains(BLOCK))
    }

    /// The file with the block.
    fn installed(&self) -> Result<String, Failure> {
        let Some(before) = &self.before else { return Ok(format!("{SHEBANG}{BLOCK}")) };
        let fault = |why: &str| {
            Failure::Message(format!(
                "{}: {why}; nothing was changed. You can add these lines where they fit:\n{BLOCK}",
                shown(&self.path)
            ))
        };
        if before.mode & 0o111 == 0 {
            return Err(fault("it is not executable, so git does not call it"));
        }
        let text = self.without_block()?;
        // A script without an interpreter is one of `sh`.
        let Some(after) = text.strip_prefix("#!") else { return Ok(format!("{BLOCK}{text}")) };
        let (interpreter, rest) = after.split_once('\n').unwrap_or((after, ""));
        let is_shell = |word: &str| SHELLS.contains(&word.rsplit('/').next().unwrap_or_default());
        if !interpreter.split_whitespace().any(is_shell) {
            return Err(fault("it is not a script of a shell"));
        }
        // After the first line, because a script may end anywhere.
        Ok(format!("#!{interpreter}\n{BLOCK}{rest}"))
    }

    /// The file without the block.
    fn without_block(&self) -> Result<String, Failure> {
        let text = self.before.as_ref().map_or("", |before| &before.text);
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let marks = |mark: &str| -> Vec<usize> {
            lines.iter().enumerate().filter(|(_, line)| line.starts_with(mark)).map(|(n, _)| n).collect()
        };
        match (&marks(BEGIN)[..], &marks(END)[..]) {
            ([], []) => Ok(text.to_owned()),
            ([begin], [end]) if begin < end => Ok([&lines[..*begin], &lines[end + 1..]].concat().concat()),
            _ => Err(Failure::Message(format!(
                "{}: its lamplighter:docs marks are not exactly one pair; nothing was changed",
                shown(&self.path)
            ))),
        }
    }

    /// Replaces the file. A commit that is made meanwhile calls the old one or the new one.
    fn write(&self, text: &str) -> Result<(), Failure> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let mut new = tempfile::Builder::new();
        let mut new =
            new.prefix(".lamplighter-").permissions(Permissions::from_mode(0o777)).tempfile_in(folder)?;
        new.write_all(text.as_bytes())?;
        match &self.before {
            Some(before) => {
                new.as_file().set_permissions(Permissions::from_mode(before.mode))?;
                new.persist(&self.path).map_err(|error| error.error)?;
            }
            None => drop(new.persist_noclobber(&self.path).map_err(|error| error.error)?),
        }
        Ok(())
    }
}

fn files(dir: &Path) -> Result<Vec<HookFile>, Failure> {
    HOOKS.iter().map(|name| HookFile::read(dir, name)).collect()
}

/// Adds the hooks. Doing it twice changes nothing.
///
/// # Errors
/// If a hook of the person can't be kept as it is. Then none is changed.
pub fn install(docs: &Docs) -> Result<(), Failure> {
    let repository = Repository::find()?;
    let dir = repository.hooks_dir()?;
    fs::create_dir_all(&dir)?;
    let files = files(&dir)?;
    let texts: Vec<String> = files.iter().map(HookFile::installed).collect::<Result<_, _>>()?;
    // First, because the hooks do nothing without it.
    reported::begin(docs, &repository)?;
    for (file, text) in files.iter().zip(&texts) {
        if file.before.as_ref().is_none_or(|before| before.text != *text) {
            file.write(text)?;
        }
    }
    if !is_found() {
        output::warn(&[
            "there is no program `lamplighter` in your PATH, so the hooks report nothing until it is there"
                .to_owned(),
        ]);
    }
    Ok(output::print(format!(
        "{} report commits to the project {} from now on; they are in {}\n",
        HOOKS.join(", "),
        docs.project(),
        shown(&dir)
    ))?)
}

/// Whether the block of a hook finds this command.
fn is_found() -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo/bin"));
    std::env::split_paths(&folders).chain(home).any(|folder| {
        let found = folder.join("lamplighter").metadata();
        found.is_ok_and(|program| program.is_file() && program.permissions().mode() & 0o111 != 0)
    })
}

/// Removes the hooks. Those of the person are as they were.
///
/// # Errors
/// If a hook can't be changed. Then none is.
pub fn remove() -> Result<(), Failure> {
    let repository = Repository::find()?;
    let files = files(&repository.hooks_dir()?)?;
    let texts: Vec<String> = files.iter().map(HookFile::without_block).collect::<Result<_, _>>()?;
    reported::end(&repository)?;
    for (file, text) in files.iter().zip(&texts) {
        match &file.before {
            Some(before) if before.text == *text => {}
            Some(_) if text == SHEBANG => fs::remove_file(&file.path)?,
            Some(_) => file.write(text)?,
            None => {}
        }
    }
    Ok(output::print("commits are not reported any more\n")?)
}

/// Shows the hooks, and what they have reported.
///
/// # Errors
/// If the folder can't be read.
pub fn show(docs: &Docs) -> Result<(), Failure> {
    let repository = Repository::find()?;
    let dir = repository.hooks_dir()?;
    let mut text = format!("{:<14}{}\n", "folder", shown(&dir));
    for file in files(&dir)? {
        let state = match (&file.before, file.has_block()) {
            (_, true) => "installed",
            (Some(before), false) if before.text.contains(BEGIN) => "changed; `docs hook install` renews it",
            (Some(_), false) => "not installed; there is another hook, which would be kept",
            (None, false) => "not installed",
        };
        text.push_str(&format!("{:<14}{state}\n", file.name));
    }
    let reported = Reported::open(docs, &repository)?;
    match (reported, repository.head()?) {
        (None, _) => text.push_str(&format!(
            "nothing is reported to the project {} until `lamplighter docs hook install`\n",
            docs.project()
        )),
        (Some(_), None) => text.push_str("there is no commit yet\n"),
        (Some(mut reported), Some(head)) => {
            let missing = reported.missing(&repository, &head)?.len();
            let place = reported.place();
            for tip in &place.tips {
                let branch = tip.branch.trim_start_matches("refs/heads/");
                text.push_str(&format!("{:<14}{:.12} of {}\n", "reported", tip.commit, escaped(branch)));
            }
            let waiting = counted(i64::try_from(missing).unwrap_or(i64::MAX), "commit", "commits");
            text.push_str(&format!("{:<14}{waiting}\n", "not reported"));
            if let Some(error) = &place.error {
                text.push_str(&format!("{:<14}{}\n", "last error", escaped(error)));
            }
        }
    }
    Ok(output::print(text)?)
}
