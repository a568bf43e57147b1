//! Runs: the record, its events, its steps and its outputs. They are kept for 30 days, outputs as long as their action.
//!
//! Beside them, the records of background jobs, and the places of runs on the executors.

mod job_runs;
pub(super) mod jobs;
pub mod places;
pub mod steps;

use domain::ids::{AssetId, Owner, RunId};
use domain::runs::{Run, RunError, RunEvent, RunKind, RunState};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::keys;
use super::table::{Extras, Order, QueryPage, Store, StoreError, Versioned, Write, Written, item};

/// How long a run can be read.
pub const LIFETIME: SignedDuration = SignedDuration::from_hours(30 * 24);

/// An output of a scheduled run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunOutput {
    pub asset_id: AssetId,
    pub title: String,
    pub bytes: u64,
    /// Whether its run may have read what strangers have written. What it says may be false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub tainted: bool,
}

/// Why a run is asked to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelCause {
    /// A person cancels it.
    #[default]
    Person,
    /// The account is stopped.
    AccountStopped,
}

impl CancelCause {
    /// The error of a run that has ended for this cause. A run that a person cancels needs no explanation.
    #[must_use]
    pub fn error(self) -> Option<RunError> {
        match self {
            Self::Person => None,
            Self::AccountStopped => Some(RunError {
                code: "stopped".to_owned(),
                detail: "the account was stopped".to_owned(),
                retryable: false,
            }),
        }
    }
}

/// A run in the list of the runs that no action lists. It says what a look at all of them must know, so that such a look need not
/// read the runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedRun {
    pub run_id: RunId,
    /// Earlier versions did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<RunKind>,
    /// Whether the run has ended. It is written in the transaction that ends the run. Earlier versions did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<bool>,
}

/// The mark that somebody asked a run to stop.
#[derive(Serialize, Deserialize)]
struct Cancel {
    requested_at: Timestamp,
    #[serde(default)]
    cause: CancelCause,
}

fn kept(run: RunId) -> Extras {
    Extras::expiring(run.instant() + LIFETIME)
}

/// The record's place in the `due` index: the end of its lease while it runs, and the end of the time for an answer while it
/// waits for a person. The runs of actions have none: their action's place covers them.
fn extras(run: &Run) -> Extras {
    let due_at = match run.state {
        _ if run.kind == RunKind::Action => None,
        RunState::Running => Some(run.lease_until),
        _ => run.answer_by(),
    };
    let due = due_at.map(|at| (keys::shard(run.run_id.uuid()), at));
    Extras { due, ..kept(run.run_id) }
}

impl Store {
    /// The write that creates a run. It is refused if the run exists already.
    pub fn run_write(owner: &Owner, run: &Run) -> Result<Write, StoreError> {
        Ok(Write::Create { key: keys::run(owner, run.run_id), item: item(run, &extras(run))? })
    }

    /// The write of a run's entry in the list of the runs that no action lists, as the run is now. The entry expires with the run.
    pub fn run_listed_write(owner: &Owner, run: &Run) -> Result<Write, StoreError> {
        let (kind, ended) = (Some(run.kind), Some(run.state.has_ended()));
        let listed = item(&ListedRun { run_id: run.run_id, kind, ended }, &kept(run.run_id))?;
        Ok(Write::Put { key: keys::run_listed(owner, run.run_id), item: listed })
    }

    /// The list of the runs that no action lists, newest first.
    pub async fn listed_runs(
        &self,
        owner: &Owner,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QueryPage<ListedRun>, StoreError> {
        self.query(&keys::runs_listed(owner), after, limit, Order::Newest).await
    }

    /// Runs by their ids. Those that do not exist are left out.
    pub async fn runs(&self, owner: &Owner, ids: &[RunId]) -> Result<Vec<Run>, StoreError> {
        let keys: Vec<_> = ids.iter().map(|id| keys::run(owner, *id)).collect();
        self.get_many(&keys).await
    }

    /// The runs of turns, newest first.
    pub async fn turns(
        &self,
        owner: &Owner,
        after: Option<&str>,
        limit: usize,
    ) -> Result<QueryPage<Run>, StoreError> {
        let marks = self.query(&keys::runs_listed(owner), after, limit, Order::Newest).await?;
        self.resolve(marks, |id: RunId| keys::run(owner, id)).await
    }

    pub async fn run(&self, owner: &Owner, id: RunId) -> Result<Option<Versioned<Run>>, StoreError> {
        self.get(&keys::run(owner, id)).await
    }

    pub fn replace_run_write(owner: &Owner, run: &Run, version: u64) -> Result<Write, StoreError> {
        let item = item(run, &extras(run))?;
        Ok(Write::Replace { key: keys::run(owner, run.run_id), version, item })
    }

    pub async fn replace_run(&self, owner: &Owner, run: &Run, version: u64) -> Result<Written, StoreError> {
        self.write_all(vec![Self::replace_run_write(owner, run, version)?]).await
    }

    /// Asks a run to stop. Repeating the request changes nothing.
    pub async fn request_cancel(
        &self,
        owner: &Owner,
        run: RunId,
        at: Timestamp,
        cause: CancelCause,
    ) -> Result<(), StoreError> {
        let cancel = item(&Cancel { requested_at: at, cause }, &kept(run))?;
        self.put(&keys::run_cancel(owner, run), cancel).await
    }

    /// Why a run was asked to stop. `None` if nobody has asked.
    pub async fn cancel_cause(&self, owner: &Owner, run: RunId) -> Result<Option<CancelCause>, StoreError> {
        let found: Option<Versioned<Cancel>> = self.get(&keys::run_cancel(owner, run)).await?;
        Ok(found.map(|found| found.value.cause))
    }

    /// Why a run was asked to stop, or the turn that it helps.
    pub async fn cancel_cause_of(&self, owner: &Owner, run: &Run) -> Result<Option<CancelCause>, StoreError> {
        let turn = run.theme.as_ref().and_then(|turn| turn.helper.as_ref()).map(|helper| helper.turn);
        let of_turn = async {
            match turn {
                Some(turn) => self.cancel_cause(owner, turn).await,
                None => Ok(None),
            }
        };
        let (own, of_turn) = tokio::try_join!(self.cancel_cause(owner, run.run_id), of_turn)?;
        Ok(own.or(of_turn))
    }

    pub async fn cancel_requested(&self, owner: &Owner, run: RunId) -> Result<bool, StoreError> {
        Ok(self.cancel_cause(owner, run).await?.is_some())
    }

    /// The write of one event. It is refused if the id is taken, so that two writers never mix.
    pub fn event_write(owner: &Owner, run: RunId, event: &RunEvent) -> Result<Write, StoreError> {
        Ok(Write::Create { key: keys::run_event(owner, run, event.id), item: item(event, &kept(run))? })
    }

    /// Events after `after`, oldest first.
    pub async fn run_events(
        &self,
        owner: &Owner,
        run: RunId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<RunEvent>, StoreError> {
        let start = keys::run_event(owner, run, after).sk;
        let found = self.query(&keys::run_events(owner, run), Some(&start), limit, Order::Oldest).await?;
        Ok(found.items.into_iter().map(|(_, event)| event.value).collect())
    }

    /// The id of a run's newest event. 0 if there is none.
    pub async fn last_event_id(&self, owner: &Owner, run: RunId) -> Result<u64, StoreError> {
        let found: QueryPage<RunEvent> =
            self.query(&keys::run_events(owner, run), None, 1, Order::Newest).await?;
        Ok(found.items.first().map_or(0, |(_, event)| event.value.id))
    }

    pub async fn run_outputs(&self, owner: &Owner, run: RunId) -> Result<Vec<RunOutput>, StoreError> {
        let found = self.query(&keys::run_outputs(owner, run), None, 1_000, Order::Oldest).await?;
        Ok(found.items.into_iter().map(|(_, output)| output.value).collect())
    }

    /// The write of one output, numbered from 1.
    pub fn output_write(owner: &Owner, run: RunId, n: u32, output: &RunOutput) -> Result<Write, StoreError> {
        Ok(Write::Put { key: keys::run_output(owner, run, n), item: item(output, &Extras::default())? })
    }
}
