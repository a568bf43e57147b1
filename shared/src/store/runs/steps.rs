//! The steps of a run. A complete reply is stored before its calls begin, and each call's result when the call ends. So
//! another process can continue the run and repeats nothing that is done.

use domain::agent_loop::{CallResult, Purpose, Reply, Step};
use domain::ids::{Owner, RunId};
use serde::{Deserialize, Serialize};

use super::LIFETIME;
use crate::store::keys;
use crate::store::table::{Extras, Order, QueryPage, Store, StoreError, Write, item};

/// A stored part of a step: its reply, or the result of one of its calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepPart {
    /// The step, from 1.
    pub n: u32,
    /// The call that has this result, from 0. Absent for the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<u32>,
    #[serde(default)]
    pub purpose: Purpose,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<Reply>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<CallResult>,
    /// The reply or result is stored in S3 and not in the record.
    #[serde(default)]
    pub overflow: bool,
    /// The claim under which it was stored.
    #[serde(default)]
    pub fence: u64,
    /// The run's newest event when it was stored.
    #[serde(default)]
    pub event: u64,
    /// The earlier steps had expired, so the conversation begins with this step.
    #[serde(default)]
    pub anew: bool,
}

/// The steps that can be continued, built from the parts that are `left`. Parts expire one by one, and a person may
/// answer later than that. A model can't understand a conversation without its beginning, so such a conversation begins
/// anew. `done` is the number of stored replies, if it is known.
#[must_use]
pub fn continued(mut left: Vec<StepPart>, done: Option<u32>) -> Vec<Step> {
    let begin = left.iter().rposition(|part| part.call.is_none() && (part.n == 1 || part.anew));
    let Some(begin) = begin else { return Vec::new() };
    left.drain(..begin);
    let (mut steps, first): (Vec<Step>, u32) = (Vec::new(), left[0].n);
    for part in left {
        match (part.call, part.reply, part.result) {
            (None, Some(reply), _) if part.n as usize == first as usize + steps.len() => {
                steps.push(Step { purpose: part.purpose, reply, results: Vec::new() });
            }
            (Some(call), _, Some(result)) if part.n as usize + 1 == first as usize + steps.len() => {
                match steps.last_mut() {
                    Some(step) if step.results.len() == call as usize => step.results.push(result),
                    _ => return Vec::new(),
                }
            }
            // A gap, or an earlier format.
            _ => return Vec::new(),
        }
    }
    let last = first as usize + steps.len() - 1;
    if done.is_some_and(|done| done as usize != last) { Vec::new() } else { steps }
}

impl Store {
    /// The parts of a run's steps, in order.
    pub async fn step_parts(&self, owner: &Owner, run: RunId) -> Result<Vec<StepPart>, StoreError> {
        let (mut parts, mut after) = (Vec::new(), None::<String>);
        loop {
            let found =
                self.query(&keys::run_steps(owner, run), after.as_deref(), 100, Order::Oldest).await?;
            parts.extend(found.items.into_iter().map(|(_, part)| part.value));
            after = found.last;
            if after.is_none() {
                return Ok(parts);
            }
        }
    }

    /// The run's newest event about something that is stored. 0 if there is no step.
    pub async fn last_stored_event(&self, owner: &Owner, run: RunId) -> Result<u64, StoreError> {
        let found: QueryPage<StepPart> =
            self.query(&keys::run_steps(owner, run), None, 1, Order::Newest).await?;
        Ok(found.items.first().map_or(0, |(_, part)| part.value.event))
    }

    /// The write of a part of a step. It is refused if another process has stored the part.
    pub fn step_write(owner: &Owner, run: RunId, part: &StepPart) -> Result<Write, StoreError> {
        let key = keys::run_step(owner, run, part.n, part.call);
        Ok(Write::Create { key, item: item(part, &Extras::expiring(run.instant() + LIFETIME))? })
    }
}

#[cfg(test)]
mod tests {
    use domain::agent_loop::Call;
    use serde_json::Value;

    use super::*;

    fn reply(n: u32, calls: usize, anew: bool) -> StepPart {
        let call = Call { id: None, name: "a".into(), input: Value::Null, invalid: None, implied: false };
        let reply = Reply { calls: vec![call; calls], ..Reply::default() };
        StepPart { n, anew, reply: Some(reply), ..StepPart::default() }
    }

    fn result(n: u32, call: u32) -> StepPart {
        StepPart { n, call: Some(call), result: Some(CallResult::told("r")), ..StepPart::default() }
    }

    #[test]
    fn a_conversation_is_continued_with_its_beginning_or_not_at_all() {
        let check = |left: Vec<StepPart>, done: Option<u32>, expected: &[usize]| {
            let steps = continued(left.clone(), done);
            let results: Vec<usize> = steps.iter().map(|step| step.results.len()).collect();
            assert_eq!(results, expected, "{left:?}");
        };
        let plain = |n: u32| reply(n, 0, false);
        check(vec![], Some(0), &[]);
        check(vec![], None, &[]);
        check(vec![plain(1), plain(2)], Some(2), &[0, 0]);
        check(vec![plain(2), plain(3)], Some(3), &[]);
        check(vec![plain(1), plain(3)], Some(3), &[]);
        check(vec![plain(1), plain(2)], Some(3), &[]);
        check(vec![plain(1), reply(2, 0, true), plain(3)], Some(3), &[0, 0]);
        check(vec![reply(3, 0, true), plain(4)], Some(4), &[0, 0]);
        check(vec![plain(4)], Some(4), &[]);
        check(vec![reply(1, 2, false), result(1, 0), result(1, 1), plain(2)], None, &[2, 0]);
        check(vec![reply(1, 2, false), result(1, 0)], None, &[1]);
        check(vec![reply(1, 2, false), result(1, 1)], None, &[]);
        check(vec![result(1, 0), plain(2)], None, &[]);
        // A step of an earlier format has no reply of this form.
        check(vec![StepPart { n: 1, ..StepPart::default() }, plain(2)], Some(2), &[]);
    }
}
