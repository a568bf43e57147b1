//! The stored steps of a run. They are read at the start, and each new step is written when it is complete.

use std::collections::{BTreeMap, BTreeSet};

use domain::agent_loop::cards::Asks;
use domain::agent_loop::{CallId, CallResult, Card, Purpose, Reply, Step};
use domain::ids::{Owner, RunId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::blobs::BlobKey;
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::store::Store;
use crate::store::runs::steps::{StepPart, continued};
use crate::store::table::Write;

/// A part of a step that is larger than this is stored in S3. In bytes of JSON.
const MAX_INLINE: usize = 64 * 1024;

/// Where a run's steps are written.
#[derive(Clone, Debug)]
pub struct Journal {
    run: RunId,
    fence: u64,
    /// The number of the last stored step.
    last: u32,
    /// Whether the earlier steps have expired, so that the conversation begins with the next step.
    anew: bool,
}

/// The content of a part that is stored in S3.
#[derive(Serialize, Deserialize)]
struct Body {
    #[serde(default)]
    reply: Option<Reply>,
    #[serde(default)]
    result: Option<CallResult>,
}

/// Checks that bytes are the content of a part, as the bucket has it.
///
/// # Errors
/// What is wrong.
pub(crate) fn check_stored(bytes: &[u8]) -> Result<(), serde_json::Error> {
    serde_json::from_slice::<Body>(bytes).map(|_| ())
}

impl Journal {
    /// For a run without stored steps.
    #[must_use]
    pub const fn new(run: RunId, fence: u64) -> Self {
        Self { run, fence, last: 0, anew: false }
    }

    /// Reads the stored steps. `done` is the number of stored replies, if it is known.
    ///
    /// # Errors
    /// If the table or the bucket does not answer.
    pub async fn load(
        cx: &Cx,
        owner: &Owner,
        run: RunId,
        fence: u64,
        done: Option<u32>,
    ) -> Result<(Self, Vec<Step>)> {
        let parts = parts(cx, owner, run).await?;
        let last = parts.last().map_or(0, |part| part.n).max(done.unwrap_or(0));
        let steps = continued(parts, done);
        Ok((Self { run, fence, last, anew: steps.is_empty() && last > 0 }, steps))
    }

    /// The write of the next step's reply. Call [`Journal::stored`] once it is stored.
    ///
    /// # Errors
    /// If a large reply can't be stored.
    pub async fn reply(
        &self,
        cx: &Cx,
        owner: &Owner,
        purpose: Purpose,
        reply: &Reply,
        event: u64,
    ) -> Result<Write> {
        let part = StepPart {
            n: self.last + 1,
            purpose,
            reply: Some(reply.clone()),
            event,
            anew: self.anew,
            ..StepPart::default()
        };
        self.write(cx, owner, part).await
    }

    /// Notes that the next step's reply is stored.
    pub fn stored(&mut self) {
        self.last += 1;
        self.anew = false;
    }

    /// The write of the result of one of the last step's calls.
    ///
    /// # Errors
    /// If a large result can't be stored.
    pub async fn result(
        &self,
        cx: &Cx,
        owner: &Owner,
        call: usize,
        result: &CallResult,
        event: u64,
    ) -> Result<Write> {
        let call = Some(u32::try_from(call).unwrap_or(u32::MAX));
        let part =
            StepPart { n: self.last, call, result: Some(result.clone()), event, ..StepPart::default() };
        self.write(cx, owner, part).await
    }

    async fn write(&self, cx: &Cx, owner: &Owner, mut part: StepPart) -> Result<Write> {
        part.fence = self.fence;
        let body = Body { reply: part.reply.clone(), result: part.result.clone() };
        let json = serde_json::to_vec(&body).map_err(|error| Error::internal(error.to_string()))?;
        if json.len() > MAX_INLINE {
            let key = BlobKey::step(owner, self.run, part.n, part.call, part.fence);
            cx.blobs.put(&key, json, "application/json").await?;
            part.overflow = true;
            (part.reply, part.result) = (None, None);
        }
        Ok(Store::step_write(owner, self.run, &part)?)
    }

    /// The number of the current step, from 1.
    #[must_use]
    pub const fn last(&self) -> u32 {
        self.last
    }
}

/// The parts of a run's steps, in order, with their content.
///
/// # Errors
/// If the table or the bucket does not answer.
pub async fn parts(cx: &Cx, owner: &Owner, run: RunId) -> Result<Vec<StepPart>> {
    let mut parts = cx.store.step_parts(owner, run).await?;
    for part in &mut parts {
        fill(cx, owner, run, part).await?;
    }
    Ok(parts)
}

/// Reads the content of a part that is stored in S3.
async fn fill(cx: &Cx, owner: &Owner, run: RunId, part: &mut StepPart) -> Result<()> {
    if part.overflow {
        let json = cx.blobs.get(&BlobKey::step(owner, run, part.n, part.call, part.fence)).await?;
        let body: Body = serde_json::from_slice(&json).map_err(|error| Error::internal(error.to_string()))?;
        (part.reply, part.result) = (body.reply, body.result);
    }
    Ok(())
}

/// The arguments of the calls that these cards are about. Calls whose steps are no longer stored are left out.
///
/// # Errors
/// If the table or the bucket does not answer.
pub async fn arguments(
    cx: &Cx,
    owner: &Owner,
    run: RunId,
    cards: &[Card],
) -> Result<BTreeMap<CallId, Value>> {
    let mut found = BTreeMap::new();
    if cards.is_empty() {
        return Ok(found);
    }
    let steps: BTreeSet<u32> = cards.iter().map(|card| card.call_id.step).collect();
    for mut part in cx.store.step_parts(owner, run).await? {
        if part.call.is_some() || !steps.contains(&part.n) {
            continue;
        }
        fill(cx, owner, run, &mut part).await?;
        let calls = part.reply.map(|reply| reply.calls).unwrap_or_default();
        for (at, call) in calls.into_iter().enumerate() {
            let id = CallId::new(part.n, at);
            if cards.iter().any(|card| card.call_id == id && card.asks != Asks::Ceiling) {
                found.insert(id, call.input);
            }
        }
    }
    Ok(found)
}
