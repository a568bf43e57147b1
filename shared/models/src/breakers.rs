//! The circuit breakers of a process, and what it shares about them with other processes.
//!
//! A breaker of a deployment's key is shared through the table: a process stores it when it changes, and reads those of others
//! every few seconds. A breaker of an owner's own key concerns only this owner, and stays in the process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::models::breaker::{Breaker, Gate, Opened, Verdict};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// How often a process reads the breakers of others.
const READ_EVERY: SignedDuration = SignedDuration::from_secs(5);

/// How many breakers a process keeps.
const MAX_KEPT: usize = 1_000;

/// A change of a breaker. It is stored as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakerChange {
    /// Names the provider, its endpoint and the model.
    pub name: String,
    #[serde(flatten)]
    pub opened: Opened,
    pub changed_at: Timestamp,
}

impl BreakerChange {
    /// Whether other processes should know. A breaker without a name is only for this process.
    pub(super) fn is_shared(&self) -> bool {
        !self.name.is_empty()
    }
}

/// One circuit breaker.
#[derive(Debug, Default)]
pub struct BreakerCell {
    /// Empty if it is not shared.
    name: String,
    state: Mutex<(Breaker, Option<Timestamp>)>,
}

impl BreakerCell {
    fn state(&self) -> MutexGuard<'_, (Breaker, Option<Timestamp>)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn gate(&self, now: Timestamp) -> Gate {
        self.state().0.gate(now)
    }

    pub(super) fn begin(&self, now: Timestamp) -> Gate {
        self.state().0.begin(now)
    }

    /// Returns the change if the breaker has opened or closed.
    pub(super) fn end(&self, began: Gate, verdict: Verdict, now: Timestamp) -> Option<BreakerChange> {
        let mut state = self.state();
        if !state.0.end(began, verdict, now) {
            return None;
        }
        state.1 = Some(now);
        Some(BreakerChange { name: self.name.clone(), opened: state.0.opened().clone(), changed_at: now })
    }

    fn adopt(&self, change: &BreakerChange) {
        let mut state = self.state();
        if state.1.is_none_or(|own| own < change.changed_at) {
            state.0.adopt(change.opened.clone());
            state.1 = Some(change.changed_at);
        }
    }
}

/// The circuit breakers of a process.
#[derive(Clone, Debug, Default)]
pub struct Breakers {
    cells: Arc<Mutex<HashMap<String, Arc<BreakerCell>>>>,
    read_at: Arc<Mutex<Option<Timestamp>>>,
}

impl Breakers {
    /// The breaker with this name.
    pub(super) fn of(&self, name: &str, shared: bool) -> Arc<BreakerCell> {
        let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cell) = cells.get(name) {
            return Arc::clone(cell);
        }
        if cells.len() >= MAX_KEPT {
            // Breakers of calls in progress are kept by their candidates.
            cells.clear();
        }
        let own_name = if shared { name.to_owned() } else { String::new() };
        let cell = Arc::new(BreakerCell { name: own_name, ..BreakerCell::default() });
        cells.insert(name.to_owned(), Arc::clone(&cell));
        cell
    }

    /// Whether the breakers of others should be read now. Only one requester is told so in each interval.
    #[must_use]
    pub fn should_read(&self, now: Timestamp) -> bool {
        let mut read_at = self.read_at.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = read_at.is_none_or(|at| now < at || at + READ_EVERY <= now);
        if is_due {
            *read_at = Some(now);
        }
        is_due
    }

    /// Adopts what other processes have stored, where it is newer.
    pub fn adopt(&self, changes: &[BreakerChange]) {
        for change in changes {
            self.of(&change.name, true).adopt(change);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000 + second).unwrap()
    }

    fn fail(cell: &BreakerCell, second: i64) -> Option<BreakerChange> {
        let gate = cell.begin(at(second));
        cell.end(gate, Verdict::Limited(None), at(second))
    }

    #[test]
    fn a_process_adopts_newer_changes_of_others() {
        let (mine, others) = (Breakers::default(), Breakers::default());
        let change = fail(&others.of("a", true), 10).unwrap();
        mine.adopt(std::slice::from_ref(&change));
        assert!(matches!(mine.of("a", true).gate(at(11)), Gate::Open { .. }));
        assert_eq!(mine.of("b", true).gate(at(11)), Gate::Closed);
        // An older change does not replace a newer one.
        let closed = BreakerChange { opened: Opened::default(), changed_at: at(9), ..change.clone() };
        mine.adopt(std::slice::from_ref(&closed));
        assert!(matches!(mine.of("a", true).gate(at(11)), Gate::Open { .. }));
        mine.adopt(&[BreakerChange { changed_at: at(12), ..closed }]);
        assert_eq!(mine.of("a", true).gate(at(12)), Gate::Closed);
        let json = serde_json::to_value(&change).unwrap();
        assert_eq!(serde_json::from_value::<BreakerChange>(json).unwrap(), change);
    }

    #[test]
    fn an_owners_own_breaker_is_not_shared() {
        let breakers = Breakers::default();
        assert!(fail(&breakers.of("a", true), 1).unwrap().is_shared());
        assert!(!fail(&breakers.of("b", false), 1).unwrap().is_shared());
        assert!(Arc::ptr_eq(&breakers.of("b", false), &breakers.of("b", false)));
    }

    #[test]
    fn the_breakers_of_others_are_read_every_few_seconds() {
        let breakers = Breakers::default();
        let told: Vec<bool> = [0, 1, 4, 5, 6, 10, 3].map(|second| breakers.should_read(at(second))).into();
        assert_eq!(told, [true, false, false, true, false, true, true]);
    }
}
