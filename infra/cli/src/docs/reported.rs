//! Which commits are reported: for each server and project, the newest ones of each branch.
//!
//! Everything that can be reached from them is reported, or was there before. So a hook that did not run, or could not reach the server,
//! is made up for by the next one.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::slice;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Docs;
use super::commits;
use super::git::{Head, Repository, is_id};
use super::kept;
use crate::Failure;
use crate::server::ServerError;
use crate::shell::values::Fields;

/// It exists where the hooks are installed.
const FILE: &str = "commits.json";

/// How many branches are remembered.
const MAX_BRANCHES: usize = 100;

/// How long a hook waits for the end of a rebase. Git calls the last hook of a rebase before it ends.
const REBASE: Duration = Duration::from_secs(10);

/// The file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Content {
    /// By server and project.
    places: BTreeMap<String, Place>,
}

/// What one project knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The newest commits that are reported, or were there before. The latest one is the last.
    pub tips: Vec<Tip>,
    /// Why the last report has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A commit of a branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tip {
    pub branch: String,
    pub commit: String,
}

impl Place {
    fn set(&mut self, branch: &str, commit: String) {
        self.tips.retain(|tip| tip.branch != branch);
        self.tips.push(Tip { branch: branch.to_owned(), commit });
        let many = self.tips.len().saturating_sub(MAX_BRANCHES);
        self.tips.drain(..many);
    }
}

/// The file, for one process at a time.
pub struct Reported {
    path: PathBuf,
    content: Content,
    place: String,
    _lock: File,
}

impl Reported {
    /// `None` if the hooks were never installed for this server and project. A checkout may name any project of the person.
    ///
    /// # Errors
    /// If the folder can't be used.
    pub fn open(docs: &Docs, repository: &Repository) -> Result<Option<Self>, Failure> {
        if !repository.shared_file(FILE).exists() {
            return Ok(None);
        }
        let reported = Self::begin(docs, repository)?;
        Ok(reported.content.places.contains_key(&reported.place).then_some(reported))
    }

    /// # Errors
    /// If the folder can't be used.
    fn begin(docs: &Docs, repository: &Repository) -> Result<Self, Failure> {
        let dir = repository.shared_dir()?;
        let lock = lock_file(&dir.join("commits.lock"))?;
        lock.lock()?;
        let path = dir.join(FILE);
        let content = kept::read(&path);
        Ok(Self { path, content, place: docs.place(), _lock: lock })
    }

    #[must_use]
    pub fn place(&self) -> Place {
        self.content.places.get(&self.place).cloned().unwrap_or_default()
    }

    /// Remembers this place.
    fn keep(&mut self, place: Place) -> Result<(), Failure> {
        let before = self.content.places.insert(self.place.clone(), place.clone());
        if before.as_ref() == Some(&place) { Ok(()) } else { kept::write(&self.path, &self.content) }
    }

    /// The commits that are not reported, oldest first, at most [`commits::MOST`] of the newest.
    ///
    /// # Errors
    /// What git says.
    pub fn missing(&mut self, repository: &Repository, head: &Head) -> Result<Vec<String>, Failure> {
        let Head { branch, commit } = head;
        let mut place = self.place();
        let mut known = existing(repository, &place)?;
        // If nothing was there when the hooks were installed, everything is new. Of a history that has nothing in common with what is
        // known, such as that of an orphan branch, only the newest commit is.
        if !place.tips.is_empty() && !repository.is_related(commit, &known)? {
            let parents = repository.ask(&["rev-list", "--no-walk", &format!("{commit}^@"), "--"])?;
            for (n, parent) in String::from_utf8_lossy(&parents).lines().enumerate() {
                place.set(&format!("{branch}^{}", n + 1), parent.to_owned());
            }
            known = existing(repository, &place)?;
            // Before anything is sent, so that a report that fails is made up for.
            self.keep(place)?;
        }
        commits::since(repository, commit, &known)
    }
}

fn lock_file(path: &Path) -> std::io::Result<File> {
    File::options().write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// The known commits that are still there: git deletes those that no branch has any more.
fn existing(repository: &Repository, place: &Place) -> Result<Vec<String>, Failure> {
    let ids = place.tips.iter().map(|tip| &tip.commit).filter(|id| is_id(id));
    let lines: String = ids.map(|id| format!("{id}\n")).collect();
    let found = repository.ask_about(&["cat-file", "--batch-check=%(objecttype) %(objectname)"], &lines)?;
    let found = String::from_utf8_lossy(&found);
    Ok(found.lines().filter_map(|line| line.strip_prefix("commit ")).map(str::to_owned).collect())
}

/// Remembers that the hooks are installed. What is there now is not reported.
///
/// # Errors
/// If it can't be written.
pub fn begin(docs: &Docs, repository: &Repository) -> Result<(), Failure> {
    let mut reported = Reported::begin(docs, repository)?;
    if reported.content.places.contains_key(&reported.place) {
        return Ok(());
    }
    let mut place = Place::default();
    if let Some(Head { branch, commit }) = repository.head()? {
        place.set(&branch, commit);
    }
    reported.keep(place)
}

/// Forgets it, so that hooks which are still there do nothing.
///
/// # Errors
/// If it can't be deleted.
pub fn end(repository: &Repository) -> Result<(), Failure> {
    let dir = repository.shared_dir()?;
    // A hook that is reporting now would write it again.
    let lock = lock_file(&dir.join("commits.lock"))?;
    lock.lock()?;
    match std::fs::remove_file(dir.join(FILE)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Reports what is not reported yet. Does nothing where the hooks were never installed.
///
/// # Errors
/// If the server does not answer. It is tried again the next time.
pub fn catch_up(docs: &Docs, repository: &Repository) -> Result<(), Failure> {
    let Some(mut reported) = Reported::open(docs, repository)? else { return Ok(()) };
    let Some(head) = repository.head()? else { return Ok(()) };
    let ids = reported.missing(repository, &head)?;
    let commits = commits::read(repository, &ids)?;
    let result = report(docs, &commits);
    let mut place = reported.place();
    place.error = result.as_ref().map_or_else(|error| Some(error.to_string()), Clone::clone);
    if result.is_ok() {
        place.set(&head.branch, head.commit);
    }
    reported.keep(place)?;
    Ok(result.map(drop)?)
}

/// Reports commits. What the server refuses for ever must not keep back the others; then it returns the last reason.
fn report(docs: &Docs, all: &[Value]) -> Result<Option<String>, ServerError> {
    match commits::report(docs, all) {
        Err(error) if error.is_final() => {}
        done => return done.map(|_| None),
    }
    let mut refused = None;
    for one in all {
        match commits::report(docs, slice::from_ref(one)) {
            Err(error) if error.is_final() => {
                refused = Some(format!("{error} (the commit {})", one.text("id")));
            }
            done => drop(done?),
        }
    }
    Ok(refused)
}

/// For a hook: like [`catch_up`], once for many hooks that come at the same time, and not amid a rebase.
///
/// # Errors
/// Nobody reads them. `docs hook show` shows the last one.
pub fn from_hook(docs: &Docs) -> Result<(), Failure> {
    let repository = Repository::find()?;
    if !repository.shared_file(FILE).exists() {
        return Ok(());
    }
    loop {
        let lock = lock_file(&repository.own_dir()?.join("hook.lock"))?;
        if lock.try_lock().is_err() {
            // The other process looks again after it has released the lock.
            return Ok(());
        }
        let begun = Instant::now();
        while repository.is_rebasing() {
            if begun.elapsed() > REBASE {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(50));
        }
        let head = repository.head()?;
        let done = catch_up(docs, &repository);
        drop(lock);
        if repository.head()? == head && !repository.is_rebasing() {
            return done;
        }
    }
}
