//! The changelog of a project: the commits that no synchronisation has taken yet.
//!
//! A synchronisation takes the commits that are there when it begins, and clears exactly these when it has succeeded. Commits that
//! arrive meanwhile stay. The changelog also remembers which commits were cleared, so a commit that is reported again (a push after a
//! hook, a hook that is repeated) is in no second synchronisation.

use std::collections::{HashMap, HashSet, VecDeque};

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

/// How many replaced commits are remembered.
const REPLACED: usize = 1_000;

/// How many digits of a cleared or replaced commit are remembered.
const DIGITS: usize = 16;

/// The commits that wait, oldest first as they were reported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changelog {
    commits: Vec<Commit>,
    /// The beginnings of the ids that were cleared, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    cleared: Vec<String>,
    /// Commits that were replaced, oldest first, each with the waiting commit that stands for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    replaced: Vec<Replaced>,
    /// When the newest commit of all was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_commit: Option<Timestamp>,
    /// When a synchronisation has cleared commits, or found that none wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_sync: Option<Timestamp>,
}

/// The beginnings of two ids: a waiting commit has replaced another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Replaced {
    old: String,
    by: String,
}

/// What became of commits that were reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// They wait now.
    pub new: usize,
    /// They have replaced a commit of an earlier report with the same author, time and message: a rebase has probably made them.
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
    /// Adds commits, oldest first. Those that are known are left out. `report` has the ids of the whole report, if it comes in several parts.
    ///
    /// The same author, second and message make it probable that two commits are the same change, and no more: programs make many such
    /// commits in one second. So a commit replaces at most one, and none of its own report.
    ///
    /// # Errors
    /// [`Full`].
    pub fn add(&mut self, commits: Vec<Commit>, report: &[CommitId]) -> Result<Added, Full> {
        let mut next = self.clone();
        let mut added = Added::default();
        let mut known: HashSet<CommitId> = self.commits.iter().map(|commit| commit.id.clone()).collect();
        let gone: HashSet<&str> = self
            .cleared
            .iter()
            .chain(self.replaced.iter().map(|pair| &pair.old))
            .map(String::as_str)
            .collect();
        let mut waiting = {
            let of_report: HashSet<&CommitId> =
                report.iter().chain(commits.iter().map(|commit| &commit.id)).collect();
            let mut waiting: HashMap<[u8; 32], VecDeque<usize>> = HashMap::new();
            for (at, commit) in self.commits.iter().enumerate() {
                if !of_report.contains(&commit.id) {
                    waiting.entry(commit.change()).or_default().push_back(at);
                }
            }
            waiting
        };
        for commit in commits {
            if gone.contains(beginning(&commit.id)) || !known.insert(commit.id.clone()) {
                added.known += 1;
                continue;
            }
            next.last_commit = next.last_commit.max(Some(commit.at));
            match waiting.get_mut(&commit.change()).and_then(VecDeque::pop_front) {
                Some(at) => {
                    next.replace(at, commit);
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

    /// The new commit names the files of both, because the two may be different changes after all.
    fn replace(&mut self, at: usize, mut commit: Commit) {
        let (old, by) = (beginning(&self.commits[at].id).to_owned(), beginning(&commit.id).to_owned());
        for pair in self.replaced.iter_mut().filter(|pair| pair.by == old) {
            pair.by.clone_from(&by);
        }
        self.replaced.push(Replaced { old, by });
        let too_many = self.replaced.len().saturating_sub(REPLACED);
        self.replaced.drain(..too_many);
        commit.also_changes(&self.commits[at]);
        self.commits[at] = commit;
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
        if self.replaced.len() > REPLACED {
            errors.add("replaced", format!("must have at most {REPLACED} ids, has {}", self.replaced.len()));
        }
        let is_beginning =
            |id: &String| id.len() == DIGITS && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !self.cleared.iter().all(is_beginning) {
            errors.add("cleared", format!("must have ids of {DIGITS} hexadecimal digits"));
        }
        if !self.replaced.iter().all(|pair| is_beginning(&pair.old) && is_beginning(&pair.by)) {
            errors.add("replaced", format!("must have ids of {DIGITS} hexadecimal digits"));
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

    /// Clears the commits that a synchronisation has taken, which ends now. A commit that has replaced one of them meanwhile counts as the same
    /// one, because the synchronisation has seen its change.
    pub fn clear(&mut self, taken: &[Commit], now: Timestamp) {
        self.last_sync = self.last_sync.max(Some(now));
        let ids: HashSet<&str> = taken.iter().map(|commit| beginning(&commit.id)).collect();
        let seen = self.replaced.iter().filter(|pair| ids.contains(pair.old.as_str()));
        let seen: HashSet<String> = seen.map(|pair| pair.by.clone()).collect();
        let is_taken = |commit: &Commit| {
            let id = beginning(&commit.id);
            ids.contains(id) || seen.contains(id)
        };
        let (gone, kept): (Vec<_>, Vec<_>) = self.commits.drain(..).partition(is_taken);
        self.commits = kept;
        let gone: HashSet<&str> = gone.iter().map(|commit| beginning(&commit.id)).collect();
        let (replaced, kept): (Vec<_>, Vec<_>) =
            self.replaced.drain(..).partition(|pair| gone.contains(pair.by.as_str()));
        self.replaced = kept;
        let mut known: HashSet<String> = self.cleared.iter().cloned().collect();
        let taken = taken.iter().map(|commit| beginning(&commit.id));
        let replaced = replaced.iter().map(|pair| pair.old.as_str());
        for id in taken.chain(gone).chain(replaced).map(str::to_owned) {
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
            log.add(vec![commit(1), commit(2), commit(1)], &[]),
            Ok(Added { new: 2, rebased: 0, known: 1 })
        );
        let taken = log.commits().to_vec();
        assert_eq!(log.add(vec![commit(2), commit(3)], &[]), Ok(Added { new: 1, rebased: 0, known: 1 }));
        log.clear(&taken, NOW);
        assert_eq!(messages(&log), ["Change 3"]);
        assert_eq!(log.add(vec![commit(1), commit(3)], &[]), Ok(Added { new: 0, rebased: 0, known: 2 }));
        assert_eq!((log.last_commit(), log.last_sync()), (Some(commit(3).at), Some(NOW)));
    }

    #[test]
    fn a_rebased_commit_takes_the_place_of_the_old_one() {
        let mut log = Changelog::default();
        log.add(vec![commit(1), commit(2)], &[]).unwrap();
        let taken = log.commits().to_vec();
        let rebased = Commit { id: commit(100).id, ..commit(1) };
        assert_eq!(log.add(vec![rebased.clone()], &[]), Ok(Added { new: 0, rebased: 1, known: 0 }));
        assert_eq!(messages(&log), ["Change 1", "Change 2"]);
        // A synchronisation that had begun with the old one has seen its change.
        log.clear(&taken, NOW);
        assert!(log.commits().is_empty());
        assert_eq!(log.add(vec![rebased, commit(1)], &[]), Ok(Added { new: 0, rebased: 0, known: 2 }));
    }

    /// Programs make many commits in one second, with one message.
    fn same(n: u32) -> Commit {
        Commit { id: commit(n).id, ..commit(0) }
    }

    #[test]
    fn commits_of_one_report_never_replace_each_other() {
        let mut log = Changelog::default();
        let all: Vec<Commit> = (1..=900).map(same).collect();
        let ids: Vec<CommitId> = all.iter().map(|commit| commit.id.clone()).collect();
        for part in all.chunks(200) {
            let added = log.add(part.to_vec(), &ids).unwrap();
            assert_eq!(added, Added { new: part.len(), rebased: 0, known: 0 });
        }
        assert_eq!(log.commits().len(), 900);
        // Half of them are reported again, with new commits: these replace commits that are in no part of the report.
        let again: Vec<Commit> = (451..=910).map(same).collect();
        assert_eq!(log.add(again, &[]), Ok(Added { new: 0, rebased: 10, known: 450 }));
        assert_eq!(log.commits().len(), 900);
        // What was replaced is known, also if it is reported together with what has replaced it.
        assert_eq!(log.add(vec![same(1), same(901)], &[]), Ok(Added { new: 0, rebased: 0, known: 2 }));
        let taken = log.commits().to_vec();
        log.clear(&taken, NOW);
        assert_eq!(log.add((1..=910).map(same).collect(), &[]).unwrap().known, 910);
        assert!(log.commits().is_empty() && log.replaced.is_empty());
    }

    /// A commit that only looks like one that a synchronisation has taken is in the next one.
    #[test]
    fn a_commit_that_is_added_while_a_synchronisation_goes_on_is_not_cleared_with_it() {
        let mut log = Changelog::default();
        log.add(vec![same(1), same(2)], &[]).unwrap();
        let taken = log.commits().to_vec();
        log.add(vec![same(1), same(2), same(3)], &[]).unwrap();
        log.clear(&taken, NOW);
        assert_eq!(log.commits(), [same(3)]);
    }

    #[test]
    fn a_commit_that_replaces_another_one_names_the_files_of_both() {
        let mut log = Changelog::default();
        let with =
            |n, files: &[&str]| Commit { files: files.iter().map(|&f| f.to_owned()).collect(), ..same(n) };
        log.add(vec![with(1, &["a", "b"])], &[]).unwrap();
        log.add(vec![with(2, &["b", "c"])], &[]).unwrap();
        assert_eq!(log.commits(), [with(2, &["b", "c", "a"])]);
        let many: Vec<String> = (0..50).map(|n| n.to_string()).collect();
        log.add(vec![Commit { files: many.clone(), ..same(3) }], &[]).unwrap();
        assert_eq!(log.commits(), [Commit { files: many, more_files: 3, ..same(3) }]);
    }

    #[test]
    fn a_full_changelog_takes_nothing_and_loses_nothing() {
        let mut log = Changelog::default();
        let fits = u32::try_from(MAX_COMMITS).unwrap();
        assert_eq!(log.add((0..fits).map(commit).collect(), &[]).unwrap().new, MAX_COMMITS);
        assert_eq!(log.add(vec![commit(5), commit(fits)], &[]), Err(Full));
        assert_eq!(log.commits().len(), MAX_COMMITS);
        assert_eq!(log.add(vec![commit(5)], &[]), Ok(Added { known: 1, ..Added::default() }));
        let long = |n| Commit { message: "a".repeat(4_000), ..commit(n) };
        let mut log = Changelog::default();
        log.add((0..60).map(long).collect(), &[]).unwrap();
        assert_eq!(log.add((60..70).map(long).collect(), &[]), Err(Full));
        assert_eq!(log.commits().len(), 60);
    }

    #[test]
    fn a_full_changelog_fits_into_an_item_of_the_table() {
        let mut log = Changelog::default();
        for n in 0..3 {
            log.add((0..1_000).map(|m| commit(n * 1_000 + m)).collect(), &[]).unwrap();
            let taken = log.commits().to_vec();
            log.clear(&taken, NOW);
        }
        let long = |n| Commit { message: "a".repeat(4_000), files: Vec::new(), ..commit(n) };
        log.add((5_000..5_060).map(long).collect(), &[]).unwrap();
        assert!(serde_json::to_vec(&log).unwrap().len() < 380_000);
        assert_eq!((log.cleared.len(), log.check()), (REMEMBERED, Ok(())));
    }

    proptest! {
        /// Whatever was reported before: each commit of a report waits for itself, stands for one that it has replaced, or was known.
        #[test]
        fn reports_lose_no_commit(reports in prop::collection::vec(prop::collection::vec((0_u32..30, 0_u32..3), 0..12), 1..10)) {
            let mut log = Changelog::default();
            for report in reports {
                // Three changes, of which many commits are made.
                let report: Vec<Commit> =
                    report.into_iter().map(|(n, change)| Commit { id: commit(n * 3 + change).id, ..commit(change) }).collect();
                let ids: HashSet<CommitId> = report.iter().map(|commit| commit.id.clone()).collect();
                let before: HashSet<CommitId> = log.commits().iter().map(|commit| commit.id.clone()).collect();
                let known: HashSet<String> = log.replaced.iter().map(|pair| pair.old.clone()).collect();
                let added = log.add(report.clone(), &[]).unwrap();
                prop_assert_eq!(added.new + added.rebased + added.known, report.len());
                let after: HashSet<CommitId> = log.commits().iter().map(|commit| commit.id.clone()).collect();
                for id in &ids {
                    prop_assert!(after.contains(id) || known.contains(beginning(id)), "{id} is lost");
                }
                let lost = before.difference(&after).count();
                prop_assert_eq!(lost, added.rebased);
                prop_assert_eq!(after.len(), before.len() + added.new);
            }
        }

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
                log.add(numbers.into_iter().map(commit).collect(), &[]).unwrap();
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
