//! The live turn of a conversation. There is at most one.
//!
//! The mark is created together with the run and deleted together with its end, each in one transaction. It is only a
//! mark: the run's own record says whether the run is live. So a crash can't leave a conversation locked.

use std::collections::BTreeMap;

use domain::chats::Thread;
use domain::ids::{ChatId, Owner, RunId};
use domain::runs::{Run, RunKind};
use serde::{Deserialize, Serialize};

use crate::store::keys;
use crate::store::runs::LIFETIME;
use crate::store::table::{Extras, Store, StoreError, Versioned, Write, item};

/// The mark of a conversation with a live turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveTurn {
    pub run_id: RunId,
}

/// The conversation that a turn belongs to. `None` for the runs of actions.
#[must_use]
pub fn thread_of(run: &Run) -> Option<Thread> {
    match (run.kind, run.chat_id, run.action_id) {
        (RunKind::Action | RunKind::Rehearsal | RunKind::Helper, ..) => None,
        (_, Some(chat), _) => Some(chat.into()),
        (_, None, Some(action)) => Some(action.into()),
        (_, None, None) => None,
    }
}

impl Store {
    /// The write that marks a conversation as this run's, over the mark that was read at `version` (0: there was none).
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

    /// The live turns of these chats. Chats without one are left out.
    pub async fn live_turns(
        &self,
        owner: &Owner,
        chats: &[ChatId],
    ) -> Result<BTreeMap<ChatId, RunId>, StoreError> {
        let keys: Vec<_> = chats.iter().map(|id| keys::chat_live_turn(owner, *id)).collect();
        let marks: Vec<LiveTurn> = self.get_many(&keys).await?;
        let runs: Vec<RunId> = marks.iter().map(|mark| mark.run_id).collect();
        // The mark may be older than the end of its run.
        let live = self.runs(owner, &runs).await?.into_iter().filter(|run| !run.state.has_ended());
        Ok(live.filter_map(|run| Some((run.chat_id?, run.run_id))).collect())
    }

    /// The write that deletes the mark, for a transaction that ends its run. It is refused if the mark belongs to
    /// another run.
    #[must_use]
    pub fn free_thread(owner: &Owner, thread: Thread, run: RunId) -> Write {
        Write::DeleteWhile {
            key: keys::live_turn(owner, thread),
            attribute: "run_id",
            value: run.to_string(),
        }
    }
}
