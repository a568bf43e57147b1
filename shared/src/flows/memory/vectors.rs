//! Vectors of what memory has, if the person has chosen a provider that makes them.
//!
//! Once a week, the texts that have no vector yet are sent to the provider, and the index is written again with their vectors. A search sends
//! its question. If any of that fails, the search uses words alone, as it does for most people.

use std::sync::Arc;
use std::time::Duration;

use domain::accounts::profile::MemoryVectors;
use domain::ids::Owner;
use futures::stream::{self, StreamExt};
use memory::{Index, Vectors};
use models::Embedder;

use super::index;
use crate::context::Cx;
use crate::error::Result;
use crate::flows::ask::{self, Failure, WorkBudget};
use crate::flows::background::lease::{ClaimedJob, Interrupted};
use crate::model_choice;
use crate::store::Tries;
use crate::store::memory::MemoryKept;

/// What one week may cost, in micro-dollars.
const WEEK_MICROS: i64 = 50_000;

/// The most texts of one week. The rest follows in the next one.
const WEEK_TEXTS: usize = 20_000;

/// The most bytes of texts in one call.
const CALL_BYTES: usize = 100_000;

/// How many calls are made at once to a model that takes one text.
const AT_ONCE: usize = 8;

/// How long a call for many texts may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a search waits for the vector of its question. After that, it searches without it.
const QUESTION_PATIENCE: Duration = Duration::from_millis(700);

/// What one question may cost, in micro-dollars.
const QUESTION_MICROS: i64 = 1_000;

const fn at_most(ceiling: i64) -> WorkBudget {
    WorkBudget { name: "the ceiling of vectors", spent: 0, ceiling }
}

/// What a person has chosen.
pub(super) async fn choice(cx: &Cx, owner: &Owner) -> Result<MemoryVectors> {
    Ok(cx.store.account(owner).await?.value.memory_vectors)
}

/// What makes these vectors for an owner. `None` if the person has chosen nothing, or if the provider can't be called.
async fn embedder(cx: &Cx, owner: &Owner, choice: MemoryVectors) -> Result<Option<Embedder>> {
    let Some(vendor) = choice.vendor() else { return Ok(None) };
    let chosen = model_choice::of_owner(cx, owner).await?;
    Ok(cx.models.embedder(&chosen, vendor))
}

/// Asks for the vectors of all texts that have none. A failure is no failure of the clean-up: the next week tries again.
///
/// # Errors
/// If the memory was taken by another process, or the table or the bucket does not answer.
pub(super) async fn weekly(
    cx: &Cx,
    owner: &Owner,
    claimed: &mut ClaimedJob<'_, MemoryKept>,
) -> Result<(), Interrupted> {
    let choice = choice(cx, owner).await?;
    if choice.is_off() && claimed.job.vectors.is_off() {
        // Most people have none, so the index is not read for them.
        return Ok(());
    }
    let embedder = embedder(cx, owner, choice).await?;
    let (model, dimension) = match &embedder {
        Some(embedder) => (embedder.name(), embedder.model.dimensions),
        // Vectors of a provider that is no longer chosen go.
        None => (String::new(), 0),
    };
    let mut vectors = Vectors::new(&model, dimension);
    let mut budget = at_most(WEEK_MICROS);
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let Some((head, current)) = index::whole(cx, owner).await? else { continue };
        if let Some(embedder) = &embedder {
            let texts = current.texts_without_vector(&model, dimension);
            let texts = texts.into_iter().filter(|text| !vectors.has(text) && !text.trim().is_empty());
            let texts: Vec<String> = texts.take(WEEK_TEXTS).collect();
            ask_all(cx, owner, embedder, texts, (&mut vectors, &mut budget), claimed).await?;
        }
        if vectors.is_empty() && (current.model().is_empty() || current.model() == model) {
            claimed.job.vectors = choice;
            return Ok(());
        }
        let (bytes, back) = merged(cx, current, vectors).await?;
        vectors = back;
        if index::replace(cx, owner, &head, bytes).await? {
            tracing::info!(cost_micros = budget.spent, "memory has new vectors");
            claimed.job.vectors = choice;
            return Ok(());
        }
        // Something was written meanwhile. It is merged again, with the vectors that are there.
    }
}

async fn merged(cx: &Cx, index: Arc<Index>, vectors: Vectors) -> Result<(Vec<u8>, Vectors)> {
    let work = move || (index.merged(&vectors), vectors);
    let (bytes, vectors) = cx.compute.builds.run(move |_| Ok(work())).await?;
    Ok((bytes.map_err(|error| crate::error::Error::internal(error.to_string()))?, vectors))
}

/// Asks for the vectors of texts, until all have one, the money or the time is used up, or the provider fails.
async fn ask_all(
    cx: &Cx,
    owner: &Owner,
    embedder: &Embedder,
    texts: Vec<String>,
    (vectors, budget): (&mut Vectors, &mut WorkBudget),
    claimed: &mut ClaimedJob<'_, MemoryKept>,
) -> Result<(), Interrupted> {
    let most = jiff::SignedDuration::try_from(PATIENCE).unwrap_or_default();
    let last_call = claimed.deadline() - crate::flows::background::lease::RESERVE - most;
    let calls = calls(texts, embedder.model.most_texts);
    for group in calls.chunks(if embedder.model.most_texts == 1 { AT_ONCE } else { 1 }) {
        if cx.clock.now() > last_call {
            tracing::info!("the time for vectors is up; the next week continues");
            return Ok(());
        }
        claimed.keep().await?;
        // Each call has its share, so that calls at once do not spend the same money.
        let share = (budget.ceiling - budget.spent) / group.len() as i64;
        let one = |texts: &Vec<String>| {
            let texts = texts.clone();
            async move {
                let mut budget = at_most(share);
                let answer = ask::embed(cx, owner, embedder, texts.clone(), (&mut budget, PATIENCE)).await;
                (texts, answer, budget.spent)
            }
        };
        let answers: Vec<_> = stream::iter(group.iter().map(one)).buffered(AT_ONCE).collect().await;
        let mut failure = None;
        for (texts, answer, spent) in answers {
            budget.spent += spent;
            match answer {
                Ok(found) => texts.into_iter().zip(found).for_each(|(text, of)| vectors.add(text, &of)),
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            None => {}
            Some(Failure::Failed(error)) => return Err(error.into()),
            Some(Failure::Unusable(reason)) => {
                // These texts stay without vectors. Others may get theirs.
                tracing::warn!(reason, "a provider made no vectors of some texts");
            }
            Some(Failure::Stop(stop) | Failure::TooDear(stop)) => {
                tracing::warn!(reason = stop.reason, "some texts have no vectors; the next week continues");
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Texts in calls.
fn calls(texts: Vec<String>, most: usize) -> Vec<Vec<String>> {
    let mut calls: Vec<Vec<String>> = Vec::new();
    let mut bytes = 0;
    for text in texts {
        bytes += text.len();
        match calls.last_mut() {
            Some(call) if call.len() < most && bytes <= CALL_BYTES => call.push(text),
            _ => {
                bytes = text.len();
                calls.push(vec![text]);
            }
        }
    }
    calls
}

/// The vector of a question, with the name of its model.
pub(super) type QuestionVector = (String, Arc<[f32]>);

/// The vector of a question. `None` if the index has no vectors, if the person has chosen no provider, or
/// if the provider does not answer in time.
pub(super) async fn of_question(
    cx: &Cx,
    owner: &Owner,
    index: &Index,
    text: &str,
) -> Result<Option<QuestionVector>> {
    let text = text.trim();
    if index.model().is_empty() || text.is_empty() {
        return Ok(None);
    }
    let choice = choice(cx, owner).await?;
    let Some(embedder) = embedder(cx, owner, choice).await? else { return Ok(None) };
    let name = embedder.name();
    if name != index.model() {
        return Ok(None);
    }
    if let Some(known) = cx.memories.question(owner, &name, text) {
        return Ok(Some((name, known)));
    }
    let mut budget = at_most(QUESTION_MICROS);
    let asked = (&mut budget, QUESTION_PATIENCE);
    let reason = match ask::embed(cx, owner, &embedder, vec![text.to_owned()], asked).await {
        Ok(found) => {
            return Ok(found.into_iter().next().map(|vector| {
                let vector: Arc<[f32]> = vector.into();
                cx.memories.put_question(owner, &name, text, vector.clone());
                (name, vector)
            }));
        }
        Err(Failure::Failed(error)) => return Err(error),
        Err(Failure::Unusable(reason)) => reason,
        Err(Failure::Stop(stop) | Failure::TooDear(stop)) => stop.reason,
    };
    tracing::warn!(reason, "a search has no vector of its question");
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_sent_in_calls_within_the_limits() {
        let texts = |count: usize, bytes: usize| vec!["x".repeat(bytes); count];
        let sizes = |texts, most| calls(texts, most).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(sizes(texts(5, 10), 2), [2, 2, 1]);
        assert_eq!(sizes(texts(3, 10), 1), [1, 1, 1]);
        assert_eq!(sizes(texts(3, 40_000), 100), [2, 1]);
        assert_eq!(sizes(texts(2, 200_000), 100), [1, 1], "a long text has a call of its own");
        assert!(calls(Vec::new(), 10).is_empty());
    }
}
