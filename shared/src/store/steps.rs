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
    /// The steps before it had expired: the conversation begins with this one.
    #[serde(default)]
    pub anew: bool,
}

/// The conversation that can be gone on with, of the steps that are `left` of `done`. Steps expire, one at a time, and a
/// person may answer later than that: without its beginning a conversation makes no sense to a model, so it is begun anew.
#[must_use]
pub fn standing(mut left: Vec<Step>, done: u32) -> Vec<Step> {
    if let Some(begin) = left.iter().rposition(|step| step.n == 1 || step.anew) {
        left.drain(..begin);
        let whole = left.last().is_some_and(|last| last.n == done)
            && left.iter().zip(left[0].n..).all(|(step, n)| step.n == n);
        if whole {
            return left;
        }
    }
    Vec::new()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_stands_with_its_beginning_or_not_at_all() {
        let check = |left: &[(u32, bool)], done: u32, expected: &[u32]| {
            let left = left.iter().map(|(n, anew)| Step { n: *n, anew: *anew, ..Step::default() }).collect();
            let standing: Vec<u32> = standing(left, done).iter().map(|step| step.n).collect();
            assert_eq!(standing, expected);
        };
        check(&[], 0, &[]);
        check(&[(1, false), (2, false)], 2, &[1, 2]);
        check(&[(2, false), (3, false)], 3, &[]);
        check(&[(1, false), (3, false)], 3, &[]);
        check(&[(1, false), (2, false)], 3, &[]);
        check(&[(1, false), (2, true), (3, false)], 3, &[2, 3]);
        check(&[(3, true), (4, false)], 4, &[3, 4]);
        check(&[(4, false)], 4, &[]);
    }
}
