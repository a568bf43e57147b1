//! What a person has deleted or corrected: facts, the messages that they came from, and the replies that were told them.

use std::collections::{BTreeMap, BTreeSet};

use domain::chats::ChatMessage;
use domain::ids::{FactId, Owner};
use domain::memory::recall::{Recalled, RecalledKind};
use domain::memory::session::{Said, SaidBy};
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
    /// The deleted facts and the hidden messages.
    marks: BTreeSet<Mark>,
    /// For each deleted fact, the hashes of the words that tell of it.
    telling: Vec<Vec<u32>>,
    /// For each of the marks, the places of its facts in `telling`.
    tells_of: BTreeMap<Mark, Vec<usize>>,
    /// For each outside session that said a deleted fact, the places of its facts in `telling`.
    said_outside: BTreeMap<Source, BTreeSet<usize>>,
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
        for Tombstone { fact_id, kind, sources, date, telling, .. } in tombstones {
            let messages = sources.into_iter().flat_map(|Quoted { source, message_ids }| {
                message_ids.into_iter().map(move |id| (source.clone(), id))
            });
            match kind {
                TombstoneKind::Deleted => {
                    forgotten.facts.insert(fact_id);
                    let mut marks: Vec<Mark> = Mark::of(&fact_id.to_string()).into_iter().collect();
                    let place = forgotten.telling.len();
                    for (source, id) in messages {
                        marks.extend(Mark::of(&id));
                        if matches!(source, Source::Outside(_)) {
                            forgotten.said_outside.entry(source.clone()).or_default().insert(place);
                        }
                        forgotten.hidden.insert((source, id));
                    }
                    forgotten.telling.push(telling);
                    for mark in marks {
                        forgotten.marks.insert(mark);
                        forgotten.tells_of.entry(mark).or_default().push(place);
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

    /// Whether a message of an outside session said what was deleted, or is a reply that speaks of it. What the writer of such a reply was
    /// told is not known, so every reply counts as told what its session said.
    pub(super) fn hides_said(&self, source: &Source, said: &Said) -> bool {
        if self.hides(source, &said.id) {
            return true;
        }
        let Some(places) = self.said_outside.get(source).filter(|_| said.role != SaidBy::Person) else {
            return false;
        };
        self.tells_at(places, || memory::word_hashes(&said.text))
    }

    /// Whether something that was deleted is among what the writer of a message was told, for whatever reason.
    pub fn was_told(&self, told: &Told) -> bool {
        told.has_any(&self.marks)
    }

    /// Whether a reply whose writer was told this is hidden. It is, if something that was deleted was found for the question or said in
    /// the conversation. What every reply is told hides those that have a word which tells of it, or all if it has no such word. `words`:
    /// the hashes of the reply's words.
    pub fn hides_reply(&self, told: &Told, words: impl FnOnce() -> Vec<u32>) -> bool {
        told.found_any(&self.marks) || self.speaks_of(told.always(), words)
    }

    /// Whether a text with words of these hashes speaks of something that was deleted, if its writer was told it.
    pub(super) fn may_speak_in(&self, words: &[u32]) -> bool {
        self.telling.iter().any(|of| of.is_empty() || words.iter().any(|word| of.binary_search(word).is_ok()))
    }

    /// Whether a text whose writer was told these things speaks of one that was deleted.
    fn speaks_of(&self, told: impl Iterator<Item = Mark>, words: impl FnOnce() -> Vec<u32>) -> bool {
        let places: BTreeSet<usize> =
            told.filter_map(|mark| self.tells_of.get(&mark)).flatten().copied().collect();
        self.tells_at(&places, words)
    }

    /// Whether a text has a word that tells of one of the facts at these places, or one of them has no such word.
    fn tells_at(&self, places: &BTreeSet<usize>, words: impl FnOnce() -> Vec<u32>) -> bool {
        if places.is_empty() {
            return false;
        }
        let words = words();
        let has = |of: &Vec<u32>| words.iter().any(|word| of.binary_search(word).is_ok());
        places.iter().filter_map(|place| self.telling.get(*place)).any(|of| of.is_empty() || has(of))
    }

    /// Whether anything was deleted.
    pub(super) fn has_marks(&self) -> bool {
        !self.marks.is_empty()
    }

    pub(super) fn has(&self, mark: Mark) -> bool {
        self.marks.contains(&mark)
    }

    fn hides_message(&self, source: &Source, message: &ChatMessage) -> bool {
        self.hides(source, &message.message_id.to_string())
            || self.hides_reply(&message.told, || memory::word_hashes(&message.all_words()))
    }

    /// Leaves out the messages that said what was deleted, and the replies that speak of it.
    pub(super) fn retain(&self, source: &Source, messages: &mut Vec<ChatMessage>) {
        messages.retain(|message| !self.hides_message(source, message));
    }

    /// Leaves out the messages that said what was deleted, and all replies that were told it: what is left may be told to other agents.
    pub(super) fn retain_untold(&self, source: &Source, messages: &mut Vec<ChatMessage>) {
        messages.retain(|message| {
            !self.hides(source, &message.message_id.to_string()) && !self.was_told(&message.told)
        });
    }

    /// Takes the words out of the messages that said what was deleted, and of the replies that were told it and speak of it, for a model
    /// that goes on with this conversation.
    pub fn take_words(&self, source: &Source, messages: &mut [ChatMessage]) {
        for message in messages {
            if self.hides(source, &message.message_id.to_string())
                || self.speaks_of(message.told.all(), || memory::word_hashes(&message.all_words()))
            {
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
        let is_deleted_card =
            recalled.kind == RecalledKind::Card && Mark::of(&recalled.of).is_some_and(|card| self.has(card));
        !is_hidden && !is_deleted_card && !facts_of(recalled).any(|fact| self.facts.contains(&fact))
    }

    /// Whether it is told as true although it was corrected since.
    pub(super) fn is_outdated(&self, recalled: &Recalled) -> bool {
        let source = recalled.source.as_ref();
        let is_old_message = source.is_some_and(|source| self.corrected_on(source, &recalled.of).is_some());
        recalled.until.is_none()
            && (is_old_message || facts_of(recalled).any(|fact| self.corrected_facts.contains(&fact)))
    }
}

fn facts_of(recalled: &Recalled) -> impl Iterator<Item = FactId> {
    recalled.of.parse().ok().into_iter().chain(recalled.other_facts.iter().copied())
}

#[cfg(test)]
mod tests {
    use domain::ids::MessageId;
    use domain::models::{Block, Role};
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
            telling: Vec::new(),
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
            always: false,
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

    #[test]
    fn replies_of_an_outside_session_are_hidden_if_they_speak_of_what_it_said() {
        let index = memory::Index::load(Vec::new()).unwrap();
        let source = |name: &str| -> Source { name.parse().unwrap() };
        let tombstone = |number, text: &str, said_in: &str| Tombstone {
            fact_id: fact(number),
            kind: TombstoneKind::Deleted,
            sources: vec![Quoted { source: source(said_in), message_ids: vec!["m1".to_owned()] }],
            shingles: Vec::new(),
            telling: index.telling_words(text, &[], |_| false),
            text_sha256: String::new(),
            date: "2026-11-27".parse().unwrap(),
        };
        let forgotten = Forgotten::from_tombstones(vec![
            tombstone(1, "The user is allergic to hazelnuts", "ext:a"),
            tombstone(2, "The user has it", "ext:b"),
        ]);
        let said = |id: &str, role, text: &str| Said {
            id: id.to_owned(),
            parent_id: None,
            role,
            name: None,
            text: text.to_owned(),
            at: None,
            date_text: None,
        };
        for (name, id, role, text, is_hidden) in [
            ("ext:a", "m1", SaidBy::Person, "I can't eat them", true),
            ("ext:a", "m2", SaidBy::Agent, "So no HAZELNUT cake", true),
            ("ext:a", "m2", SaidBy::Tool, "allergic: yes", true),
            ("ext:a", "m2", SaidBy::System, "hazelnuts: none", true),
            ("ext:a", "m2", SaidBy::Agent, "It rains", false),
            // The person's own other words stay.
            ("ext:a", "m3", SaidBy::Person, "Where do hazelnuts grow?", false),
            // Nothing tells of the fact, so no reply of its session is sure not to.
            ("ext:b", "m2", SaidBy::Agent, "It rains", true),
            ("ext:b", "m3", SaidBy::Person, "It rains", false),
            ("ext:c", "m2", SaidBy::Agent, "No hazelnut cake", false),
        ] {
            assert_eq!(
                forgotten.hides_said(&source(name), &said(id, role, text)),
                is_hidden,
                "{name}: {text}"
            );
        }
    }

    #[test]
    fn what_every_reply_is_told_hides_only_those_that_speak_of_it() {
        let index = memory::Index::load(Vec::new()).unwrap();
        let message = MessageId::from_uuid(Uuid::from_u128(9));
        let tombstone = |number, text: &str, sources| Tombstone {
            fact_id: fact(number),
            kind: TombstoneKind::Deleted,
            sources,
            shingles: Vec::new(),
            telling: index.telling_words(text, &[], |_| false),
            text_sha256: String::new(),
            date: "2026-11-27".parse().unwrap(),
        };
        let here: Source = "cht_01938f2a7c5e7d3a9b1f4c6d8e0a2b4c".parse().unwrap();
        let quoted = Quoted { source: here.clone(), message_ids: vec![message.to_string()] };
        let forgotten = Forgotten::from_tombstones(vec![
            tombstone(1, "The user is allergic to hazelnuts", vec![quoted]),
            tombstone(2, "The user has it", Vec::new()),
        ]);
        let told = |number, always| {
            let mut told = Told::default();
            told.add(&[Recalled {
                kind: RecalledKind::Memory,
                of: fact(number).to_string(),
                source: None,
                date: None,
                until: None,
                other_facts: vec![fact(7)],
                always,
                text: "A text".to_owned(),
            }]);
            told
        };
        let mut said_here = told(8, true);
        said_here.add_message(message);
        let (speaks, other) = ("No HAZELNUT cake", "It rains");
        for (told, text, (is_hidden, loses_words)) in [
            (told(1, true), speaks, (true, true)),
            (told(1, true), other, (false, false)),
            (told(1, false), other, (true, false)),
            (told(1, false), speaks, (true, true)),
            // It has no telling word.
            (told(2, true), other, (true, true)),
            (told(3, true), speaks, (false, false)),
            (told(3, false), speaks, (false, false)),
            (said_here.clone(), other, (true, false)),
            (said_here, speaks, (true, true)),
            (Told::default(), speaks, (false, false)),
        ] {
            let words = || memory::word_hashes(text);
            assert_eq!(forgotten.hides_reply(&told, words), is_hidden, "{told:?}: {text}");
            let mut messages = [ChatMessage {
                message_id: MessageId::from_uuid(Uuid::from_u128(10)),
                role: Role::Assistant,
                content: vec![Block::text(text)],
                created_at: jiff::Timestamp::UNIX_EPOCH,
                run_id: None,
                author: None,
                told,
            }];
            forgotten.take_words(&here, &mut messages);
            assert_eq!(messages[0].text() != text, loses_words, "{:?}: {text}", messages[0].told);
        }
    }
}
