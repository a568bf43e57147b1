//! The steps of a run: each one's result is stored before the next begins, so that another executor resumes and does not
//! repeat.

use domain::ids::{Owner, RunId};
use domain::models::Message;
use serde::{Deserialize, Serialize};

use super::keys;
use super::runs::LIFETIME;
use super::table::{Extras, Order, Store, StoreError, Write, item};

/// One step: what was said in it, and what it decided.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// From 1.
    pub n: u32,
    /// What the conversation has more, in its order.
    #[serde(default)]
    pub messages: Vec<Message>,
    /// The messages lie in S3, and the record's are empty.
    #[serde(default)]
    pub overflow: bool,
    /// The model has nothing more to do; what it saved is to be checked.
    #[serde(default)]
    pub work_done: bool,
    /// The score of a check, where this step was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<u8>,
    /// The check asked for a better version.
    #[serde(default)]
    pub revise: bool,
}

impl Store {
    /// All steps of a run, in their order.
    pub async fn steps(&self, owner: &Owner, run: RunId) -> Result<Vec<Step>, StoreError> {
        let (mut steps, mut after) = (Vec::new(), None::<String>);
        loop {
            let found =
                self.query(&keys::run_steps(owner, run), after.as_deref(), 100, Order::Oldest).await?;
            steps.extend(found.items.into_iter().map(|(_, step)| step.value));
            after = found.last;
            if after.is_none() {
                return Ok(steps);
            }
        }
    }

    /// The write of a step: refused where another executor has stored it.
    pub fn step_write(owner: &Owner, run: RunId, step: &Step) -> Result<Write, StoreError> {
        let extras = Extras::expiring(run.instant() + LIFETIME);
        Ok(Write::Create { key: keys::run_step(owner, run, step.n), item: item(step, &extras)? })
    }
}
