//! What a person has deleted or corrected: facts, the messages that they came from, and the replies that were told them.

use std::collections::{BTreeMap, BTreeSet};

use domain::chats::ChatMessage;
use domain::ids::{FactId, Owner};
use domain::memory::recall::Recalled;
use domain::memory::told::{Mark, Told};
use domain::memory::tombstone::{Tombstone, TombstoneKind};
use domain::memory::{Quoted, Source};
use jiff::civil::Date;

use crate::context::Data;
use crate::error::Result;

/// A message of a conversation, or an output of a run.
type MessageRef = (Source, String);

/// What must not be found, shown or told any more.
#[derive(Debug, Default)]
pub(crate) struct Forgotten {
    facts: BTreeSet<FactId>,
    hidden: BTreeSet<MessageRef>,
    /// The deleted facts and the hidden messages. A reply that was told one of them is hidden, too.
    marks: BTreeSet<Mark>,
    corrected: BTreeMap<MessageRef, Date>,
    corrected_facts: BTreeSet<FactId>,
}

impl Forgotten {
    /// # Errors
    /// If the table does not answer.
    pub async fn of(data: &Data, owner: &Owner) -> Result<Self> {
        Ok(Self::from_tombstones(data.store.tombstones(owner).await?))
    }

    pub(super) fn from_tombstones(tombstones: Vec<Tombstone>) -> Self {
        let mut forgotten = Self::default();
        for Tombstone { fact_id, kind, sources, date, .. } in tombstones {
            let messages = sources.into_iter().flat_map(|Quoted { source, message_ids }| {
                message_ids.into_iter().map(move |id| (source.clone(), id))
            });
            match kind {
                TombstoneKind::Deleted => {
                    forgotten.facts.insert(fact_id);
                    forgotten.marks.extend(Mark::of(&fact_id.to_string()));
                    for (source, id) in messages {
                        forgotten.marks.extend(Mark::of(&id));
                        forgotten.hidden.insert((source, id));
                    }
                }
                TombstoneKind::Corrected { .. } => {
                    forgotten.corrected_facts.insert(fact_id);
                    forgotten.corrected.extend(messages.map(|message| (message, date)));
                }
            }
        }
        forgotten
    }

    /// Whether a message or an output said what was deleted.
    pub fn hides(&self, source: &Source, message: &str) -> bool {
        self.hidden.contains(&(source.clone(), message.to_owned()))
    }

    /// Whether something that was deleted is among what the writer of a message was told.
    pub fn was_told(&self, told: &Told) -> bool {
        told.has_any(&self.marks)
    }

    pub(super) fn has(&self, mark: Mark) -> bool {
        self.marks.contains(&mark)
    }

    /// Leaves out the messages that said what was deleted, and the replies that were told it.
    pub(super) fn retain(&self, source: &Source, messages: &mut Vec<ChatMessage>) {
        messages.retain(|message| {
            !self.hides(source, &message.message_id.to_string()) && !self.was_told(&message.told)
        });
    }

    /// Takes the words out of the messages that said what was deleted, for a model that goes on with this conversation.
    pub fn take_words(&self, source: &Source, messages: &mut [ChatMessage]) {
        for message in messages {
            if self.hides(source, &message.message_id.to_string()) {
                message.lose_words();
            }
        }
    }

    /// The messages of a conversation that said what was deleted.
    pub fn in_source(&self, source: &Source) -> BTreeSet<&str> {
        let of = self.hidden.iter().filter(|(hidden, _)| hidden == source);
        of.map(|(_, id)| id.as_str()).collect()
    }

    /// The day on which what a message said was corrected.
    pub fn corrected_on(&self, source: &Source, message: &str) -> Option<Date> {
        self.corrected.get(&(source.clone(), message.to_owned())).copied()
    }

    /// Whether a text that a model was once told may still be shown, told and taken along.
    pub fn keeps(&self, recalled: &Recalled) -> bool {
        let is_hidden = recalled.source.as_ref().is_some_and(|source| self.hides(source, &recalled.of));
        !is_hidden && !facts_of(recalled).any(|fact| self.facts.contains(&fact))
    }

    /// Whether it is told as true although it was corrected since.
    fn is_outdated(&self, recalled: &Recalled) -> bool {
        let source = recalled.source.as_ref();
        let is_old_message = source.is_some_and(|source| self.corrected_on(source, &recalled.of).is_some());
        recalled.until.is_none()
            && (is_old_message || facts_of(recalled).any(|fact| self.corrected_facts.contains(&fact)))
    }
}

fn facts_of(recalled: &Recalled) -> impl Iterator<Item = FactId> {
    recalled.of.parse().ok().into_iter().chain(recalled.other_facts.iter().copied())
}

/// Without what was deleted since.
///
/// # Errors
/// If the table does not answer.
pub async fn still_known(data: &Data, owner: &Owner, mut recalled: Vec<Recalled>) -> Result<Vec<Recalled>> {
    if !recalled.is_empty() {
        let forgotten = Forgotten::of(data, owner).await?;
        recalled.retain(|one| forgotten.keeps(one));
    }
    Ok(recalled)
}

/// Without what was deleted or corrected since, for a model that goes on with its work.
///
/// # Errors
/// If the table does not answer.
pub(crate) async fn still_true(
    data: &Data,
    owner: &Owner,
    mut recalled: Vec<Recalled>,
) -> Result<Vec<Recalled>> {
    if !recalled.is_empty() {
        let forgotten = Forgotten::of(data, owner).await?;
        recalled.retain(|one| forgotten.keeps(one) && !forgotten.is_outdated(one));
    }
    Ok(recalled)
}

#[cfg(test)]
mod tests {
    use domain::memory::recall::RecalledKind;
    use uuid::Uuid;

    use super::*;

    fn fact(number: u128) -> FactId {
        FactId::from_uuid(Uuid::from_u128(number))
    }

    #[test]
    fn what_was_told_is_kept_unless_one_of_its_facts_or_its_message_was_deleted() {
        let source: Source = "ext:a".parse().unwrap();
        let tombstone = |number, kind, message: &str| Tombstone {
            fact_id: fact(number),
            kind,
            sources: vec![Quoted { source: source.clone(), message_ids: vec![message.to_owned()] }],
            shingles: Vec::new(),
            text_sha256: String::new(),
            date: "2026-11-27".parse().unwrap(),
        };
        let forgotten = Forgotten::from_tombstones(vec![
            tombstone(1, TombstoneKind::Deleted, "m1"),
            tombstone(2, TombstoneKind::Corrected { by: fact(3) }, "m2"),
        ]);
        let told = |of: String, other_facts: &[FactId]| Recalled {
            kind: RecalledKind::Memory,
            source: of.starts_with('m').then(|| source.clone()),
            of,
            date: None,
            until: None,
            other_facts: other_facts.to_vec(),
            text: "A text".to_owned(),
        };
        assert!(!forgotten.keeps(&told(fact(1).to_string(), &[])));
        assert!(!forgotten.keeps(&told(fact(4).to_string(), &[fact(5), fact(1)])));
        assert!(forgotten.keeps(&told(fact(2).to_string(), &[fact(4)])));
        assert!(!forgotten.keeps(&told("m1".to_owned(), &[])));
        assert!(forgotten.keeps(&told("m2".to_owned(), &[])));
        assert_eq!(forgotten.corrected_on(&source, "m2"), Some("2026-11-27".parse().unwrap()));
        assert_eq!(forgotten.in_source(&source), BTreeSet::from(["m1"]));
    }
}
