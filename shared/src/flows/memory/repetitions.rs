//! Messages that say the same as a fact that a person deletes.

use std::collections::BTreeMap;

use domain::ids::Owner;
use domain::memory::{Quoted, Source};
use memory::{Index, Kind, Query};

use super::{index, schedules};
use crate::context::Cx;
use crate::error::Result;

/// How many messages may be hidden because they say the same as a deleted fact.
const MOST_REPETITIONS: usize = 40;

/// A message repeats a fact if it has this share of the fact's words.
const REPEATS: f32 = 0.75;

/// The messages that say nearly the same as a fact, in any conversation: people repeat themselves, and a model repeats what it was
/// told.
///
/// # Errors
/// If the index can't be read.
pub(super) async fn of(cx: &Cx, owner: &Owner, fact: &str) -> Result<Vec<Quoted>> {
    let index = index::current(cx, owner).await?;
    let zone = schedules::zone_of(cx, owner, None).await?;
    let (now, fact) = (cx.clock.now(), fact.to_owned());
    let found = move || {
        let query = Query { limit: MOST_REPETITIONS, kinds: &[Kind::Raw], ..Query::new(&fact, now, zone) };
        repeated(&index, &query)
    };
    cx.compute.answers.run(move |_| Ok(found())).await
}

fn repeated(index: &Index, query: &Query<'_>) -> Vec<Quoted> {
    let mut messages: BTreeMap<Source, Vec<String>> = BTreeMap::new();
    for hit in index.search(query).hits {
        if memory::share_of_words(query.text, hit.text) >= REPEATS
            && let Ok(source) = hit.session.parse()
        {
            messages.entry(source).or_default().push(hit.document.to_owned());
        }
    }
    messages.into_iter().map(|(source, message_ids)| Quoted { source, message_ids }).collect()
}
