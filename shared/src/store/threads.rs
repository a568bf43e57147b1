//! The turn that is under way in a conversation: at most one.
//!
//! The mark is made with the run and goes with its end, in one transaction each. It is only a mark: whether its run is
//! live is read from the run's own record, so a crash can't leave a conversation locked.

use domain::ids::{Owner, RunId};
use domain::runs::{Run, RunKind};
use serde::{Deserialize, Serialize};

use super::keys;
use super::messages::Thread;
use super::runs::LIFETIME;
use super::table::{Extras, Store, StoreError, Versioned, Write, item};

/// The mark of a conversation with a turn under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveTurn {
    pub run_id: RunId,
}

/// The conversation that a turn is part of. The runs of actions hold none.
#[must_use]
pub fn thread_of(run: &Run) -> Option<Thread> {
    match (run.kind, run.chat_id, run.action_id) {
        (RunKind::Action, ..) => None,
        (_, Some(chat), _) => Some(chat.into()),
        (_, None, Some(action)) => Some(action.into()),
        (_, None, None) => None,
    }
}

impl Store {
    /// The write that marks a conversation as this run's: over the mark that was read at `version`, 0 for none.
    pub fn hold_thread(owner: &Owner, thread: Thread, run: RunId, version: u64) -> Result<Write, StoreError> {
        let item = item(&LiveTurn { run_id: run }, &Extras::expiring(run.instant() + LIFETIME))?;
        Ok(Write::over(keys::live_turn(owner, thread), version, item))
    }

    pub async fn live_turn(
        &self,
        owner: &Owner,
        thread: Thread,
    ) -> Result<Option<Versioned<LiveTurn>>, StoreError> {
        self.get(&keys::live_turn(owner, thread)).await
    }

    /// The write that deletes the mark, for a transaction that ends its run. It is refused if the mark is another run's.
    #[must_use]
    pub fn free_thread(owner: &Owner, thread: Thread, run: RunId) -> Write {
        Write::DeleteWhile {
            key: keys::live_turn(owner, thread),
            attribute: "run_id",
            value: run.to_string(),
        }
    }
}
