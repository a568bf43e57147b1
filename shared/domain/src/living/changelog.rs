//! The changelog of a project: the commits that no synchronisation has taken yet.
//!
//! A synchronisation takes the commits that are there when it begins, and clears exactly these when it has succeeded. Commits that
//! arrive meanwhile stay. The changelog also remembers which commits were cleared, so a commit that is reported again (a push after a
//! hook, a hook that is repeated) is in no second synchronisation.

use std::collections::HashSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::commit::{Commit, CommitId};
use crate::validate::FieldErrors;

/// How many commits may wait.
pub const MAX_COMMITS: usize = 1_000;

/// How much may wait, in bytes. With what is remembered, it fits into one item of the table.
pub const MAX_BYTES: usize = 256 * 1024;

/// How many cleared commits are remembered.
const REMEMBERED: usize = 2_000;

/// How many digits of a cleared commit are remembered.
const DIGITS: usize = 16;

/// The commits that wait, oldest first as they were reported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changelog {
    commits: Vec<Commit>,
    /// The beginnings of the ids that were cleared, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    cleared: Vec<String>,
    /// When the newest commit of all was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_commit: Option<Timestamp>,
    /// When a synchronisation has cleared commits, or found that none wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_sync: Option<Timestamp>,
}

/// What became of commits that were reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// They wait now.
    pub new: usize,
    /// They have replaced a commit with the same author, time and message: a rebase has made them.
    pub rebased: usize,
    /// They waited already, or a synchronisation has taken them.
    pub known: usize,
}

/// The changelog is full. Nothing was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a changelog has at most {MAX_COMMITS} commits and {MAX_BYTES} bytes: synchronise the documents first"
)]
pub struct Full;

impl Changelog {
    /// Adds commits, oldest first. Those that are known are left out.
    ///
    /// # Errors
    /// [`Full`].
    pub fn add(&mut self, commits: Vec<Commit>) -> Result<Added, Full> {
        let mut next = self.clone();
        let mut added = Added::default();
        let mut known: HashSet<CommitId> = next.commits.iter().map(|commit| commit.id.clone()).collect();
        let cleared: HashSet<&str> = self.cleared.iter().map(String::as_str).collect();
        for commit in commits {
            if cleared.contains(beginning(&commit.id)) || !known.insert(commit.id.clone()) {
                added.known += 1;
                continue;
            }
            next.last_commit = next.last_commit.max(Some(commit.at));
            let change = commit.change();
            match next.commits.iter_mut().find(|waits| waits.at == commit.at && waits.change() == change) {
                Some(waits) => {
                    *waits = commit;
                    added.rebased += 1;
                }
                None => {
                    next.commits.push(commit);
                    added.new += 1;
                }
            }
        }
        if is_full(&next.commits) {
            return Err(Full);
        }
        *self = next;
        Ok(added)
    }

    /// Checks a record that comes from outside, such as from an archive.
    ///
    /// # Errors
    /// Every invalid field, with its limit.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        for (n, commit) in self.commits.iter().enumerate().take(MAX_COMMITS) {
            errors.nest(&format!("commits[{n}]"), commit.check());
        }
        if is_full(&self.commits) {
            errors.add("commits", Full.to_string());
        }
        if self.cleared.len() > REMEMBERED {
            errors.add("cleared", format!("must have at most {REMEMBERED} ids, has {}", self.cleared.len()));
        }
        let is_beginning =
            |id: &String| id.len() == DIGITS && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !self.cleared.iter().all(is_beginning) {
            errors.add("cleared", format!("must have ids of {DIGITS} hexadecimal digits"));
        }
        for (field, at) in [("last_commit", self.last_commit), ("last_sync", self.last_sync)] {
            if let Some(at) = at {
                errors.time(field, at);
            }
        }
        errors.into_result(())
    }

    /// The commits that wait, as they were reported.
    #[must_use]
    pub fn commits(&self) -> &[Commit] {
        &self.commits
    }

    /// When the newest commit of all was made, also if it was cleared.
    #[must_use]
    pub const fn last_commit(&self) -> Option<Timestamp> {
        self.last_commit
    }

    /// When a synchronisation has ended well last.
    #[must_use]
    pub const fn last_sync(&self) -> Option<Timestamp> {
        self.last_sync
    }

    /// Clears the commits that a synchronisation has taken, which ends now. A commit that was rebased meanwhile counts as the same one, because the
    /// synchronisation has seen its change.
    pub fn clear(&mut self, taken: &[Commit], now: Timestamp) {
        self.last_sync = self.last_sync.max(Some(now));
        let ids: HashSet<&CommitId> = taken.iter().map(|commit| &commit.id).collect();
        let changes: HashSet<[u8; 32]> = taken.iter().map(Commit::change).collect();
        let is_taken = |commit: &Commit| ids.contains(&commit.id) || changes.contains(&commit.change());
        let (gone, kept): (Vec<_>, Vec<_>) = self.commits.drain(..).partition(is_taken);
        self.commits = kept;
        let mut known: HashSet<String> = self.cleared.iter().cloned().collect();
        for id in taken.iter().chain(&gone).map(|commit| beginning(&commit.id).to_owned()) {
            if known.insert(id.clone()) {
                self.cleared.push(id);
            }
        }
        let too_many = self.cleared.len().saturating_sub(REMEMBERED);
        self.cleared.drain(..too_many);
    }
}

fn is_full(commits: &[Commit]) -> bool {
    commits.len() > MAX_COMMITS || commits.iter().map(Commit::size).sum::<usize>() > MAX_BYTES
}

fn beginning(id: &CommitId) -> &str {
    &id.as_str()[..DIGITS]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::commit::tests::commit as numbered;
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    /// A commit whose id has another beginning for each number.
    fn commit(n: u32) -> Commit {
        Commit { id: format!("{n:08x}{:032x}", n + 1).parse().unwrap(), ..numbered(n) }
    }

    fn messages(log: &Changelog) -> Vec<&str> {
        log.commits().iter().map(|commit| commit.message.as_str()).collect()
    }

    #[test]
    fn a_commit_that_is_reported_again_waits_once() {
        let mut log = Changelog::default();
        assert_eq!(
            log.add(vec![commit(1), commit(2), commit(1)]),
            Ok(Added { new: 2, rebased: 0, known: 1 })
        );
        let taken = log.commits().to_vec();
        assert_eq!(log.add(vec![commit(2), commit(3)]), Ok(Added { new: 1, rebased: 0, known: 1 }));
        log.clear(&taken, NOW);
        assert_eq!(messages(&log), ["Change 3"]);
        assert_eq!(log.add(vec![commit(1), commit(3)]), Ok(Added { new: 0, rebased: 0, known: 2 }));
        assert_eq!((log.last_commit(), log.last_sync()), (Some(commit(3).at), Some(NOW)));
    }

    #[test]
    fn a_rebased_commit_takes_the_place_of_the_old_one() {
        let mut log = Changelog::default();
        log.add(vec![commit(1), commit(2)]).unwrap();
        let taken = log.commits().to_vec();
        let rebased = Commit { id: commit(100).id, ..commit(1) };
        assert_eq!(log.add(vec![rebased.clone()]), Ok(Added { new: 0, rebased: 1, known: 0 }));
        assert_eq!(messages(&log), ["Change 1", "Change 2"]);
        // A synchronisation that had begun with the old one has seen its change.
        log.clear(&taken, NOW);
        assert!(log.commits().is_empty());
        assert_eq!(log.add(vec![rebased, commit(1)]), Ok(Added { new: 0, rebased: 0, known: 2 }));
    }

    #[test]
    fn a_full_changelog_takes_nothing_and_loses_nothing() {
        let mut log = Changelog::default();
        let fits = u32::try_from(MAX_COMMITS).unwrap();
        assert_eq!(log.add((0..fits).map(commit).collect()).unwrap().new, MAX_COMMITS);
        assert_eq!(log.add(vec![commit(5), commit(fits)]), Err(Full));
        assert_eq!(log.commits().len(), MAX_COMMITS);
        assert_eq!(log.add(vec![commit(5)]), Ok(Added { known: 1, ..Added::default() }));
        let long = |n| Commit { message: "a".repeat(4_000), ..commit(n) };
        let mut log = Changelog::default();
        log.add((0..60).map(long).collect()).unwrap();
        assert_eq!(log.add((60..70).map(long).collect()), Err(Full));
        assert_eq!(log.commits().len(), 60);
    }

    #[test]
    fn a_full_changelog_fits_into_an_item_of_the_table() {
        let mut log = Changelog::default();
        for n in 0..3 {
            log.add((0..1_000).map(|m| commit(n * 1_000 + m)).collect()).unwrap();
            let taken = log.commits().to_vec();
            log.clear(&taken, NOW);
        }
        let long = |n| Commit { message: "a".repeat(4_000), files: Vec::new(), ..commit(n) };
        log.add((5_000..5_060).map(long).collect()).unwrap();
        assert!(serde_json::to_vec(&log).unwrap().len() < 380_000);
        assert_eq!((log.cleared.len(), log.check()), (REMEMBERED, Ok(())));
    }

    proptest! {
        /// Reports in any order, synchronisations in between, some of which fail: each commit is in exactly one that succeeds.
        #[test]
        fn each_commit_is_in_exactly_one_synchronisation(
            steps in prop::collection::vec((prop::collection::vec(0_u32..40, 0..8), any::<bool>(), any::<bool>()), 1..40),
        ) {
            let mut log = Changelog::default();
            let mut under_way: Option<Vec<Commit>> = None;
            let mut synced: Vec<CommitId> = Vec::new();
            let mut reported: HashSet<CommitId> = HashSet::new();
            for (numbers, begins, succeeds) in steps {
                reported.extend(numbers.iter().map(|n| commit(*n).id));
                log.add(numbers.into_iter().map(commit).collect()).unwrap();
                match under_way.take() {
                    Some(taken) if succeeds => {
                        log.clear(&taken, NOW);
                        synced.extend(taken.into_iter().map(|commit| commit.id));
                    }
                    _ if begins => under_way = Some(log.commits().to_vec()),
                    _ => {}
                }
            }
            let rest = log.commits().to_vec();
            log.clear(&rest, NOW);
            synced.extend(rest.into_iter().map(|commit| commit.id));
            let all: HashSet<CommitId> = synced.iter().cloned().collect();
            prop_assert_eq!(all.len(), synced.len());
            prop_assert_eq!(all, reported);
        }
    }
}
