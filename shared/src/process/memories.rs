//! The search indexes of memories that a process keeps.
//!
//! An entry names the objects that it was made of. Each search first reads which objects the index has. So an entry is never used for other
//! contents or for another owner, and it needs no invalidation.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use domain::ids::Owner;
use memory::{Index, Segment};
use uuid::Uuid;

use crate::store::memory::IndexHead;

/// The most memories that are kept.
const MEMORIES: usize = 64;
/// The most bytes that they may have together.
const BYTES: u64 = 128 << 20;

struct Kept {
    owner: Owner,
    head: IndexHead,
    segments: Vec<Arc<Segment>>,
    /// The changes that the index has besides the objects, by their stamps.
    changes: Vec<Uuid>,
    index: Arc<Index>,
}

impl Kept {
    fn bytes(&self) -> u64 {
        self.head.base_bytes + self.head.increment_bytes
    }
}

/// The most vectors of questions that are kept.
const QUESTIONS: usize = 64;

/// The vector of a question.
struct Question {
    owner: Owner,
    model: String,
    text: String,
    vector: Arc<[f32]>,
}

/// The newest index of each memory. The most recently used one is last. Cheap to clone.
#[derive(Clone, Default)]
pub struct MemoryCache(Arc<Mutex<Vec<Kept>>>, Arc<Mutex<VecDeque<Question>>>);

impl MemoryCache {
    fn entries(&self) -> std::sync::MutexGuard<'_, Vec<Kept>> {
        // The entries are consistent whenever the lock is released, even by a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The index of these objects and these changes.
    #[must_use]
    pub fn get(&self, owner: &Owner, head: &IndexHead, changes: &[Uuid]) -> Option<Arc<Index>> {
        let mut entries = self.entries();
        let is_it = |kept: &Kept| kept.owner == *owner && kept.head == *head && kept.changes == changes;
        let at = entries.iter().position(is_it)?;
        entries[at..].rotate_left(1);
        entries.last().map(|kept| kept.index.clone())
    }

    /// A segment of an earlier index of this owner.
    #[must_use]
    pub fn segment(&self, owner: &Owner, id: Uuid) -> Option<Arc<Segment>> {
        let entries = self.entries();
        let kept = entries.iter().find(|kept| kept.owner == *owner)?;
        let at = kept.head.objects().position(|object| object == id)?;
        kept.segments.get(at).cloned()
    }

    /// Stores an index, replaces the previous one of its owner, and drops the least recently used ones.
    pub fn put(
        &self,
        owner: &Owner,
        head: &IndexHead,
        segments: Vec<Arc<Segment>>,
        (changes, index): (Vec<Uuid>, Arc<Index>),
    ) {
        let mut entries = self.entries();
        entries.retain(|kept| kept.owner != *owner);
        entries.push(Kept { owner: owner.clone(), head: head.clone(), segments, changes, index });
        let total = |entries: &[Kept]| entries.iter().map(Kept::bytes).sum::<u64>();
        while entries.len() > MEMORIES || entries.len() > 1 && total(&entries) > BYTES {
            entries.remove(0);
        }
    }

    /// The vector of a question of this owner, made by this model.
    #[must_use]
    pub fn question(&self, owner: &Owner, model: &str, text: &str) -> Option<Arc<[f32]>> {
        let questions = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |it: &&Question| it.text == text && it.model == model && it.owner == *owner;
        questions.iter().find(is_it).map(|question| question.vector.clone())
    }

    /// Keeps the vector of a question, and drops the oldest one.
    pub fn put_question(&self, owner: &Owner, model: &str, text: &str, vector: Arc<[f32]>) {
        let mut questions = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        if questions.len() == QUESTIONS {
            questions.pop_front();
        }
        let (owner, model, text) = (owner.clone(), model.to_owned(), text.to_owned());
        questions.push_back(Question { owner, model, text, vector });
    }

    /// Drops the index of an owner.
    pub fn forget(&self, owner: &Owner) {
        self.entries().retain(|kept| kept.owner != *owner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index() -> Arc<Index> {
        Arc::new(Index::new(Vec::new()))
    }

    #[test]
    fn an_index_is_found_by_its_owner_and_its_objects() {
        let (me, you) = (Owner::new("me").unwrap(), Owner::new("you").unwrap());
        let head = |id| IndexHead { base: Some(Uuid::from_u128(id)), base_bytes: 10, ..IndexHead::default() };
        let cache = MemoryCache::default();
        cache.put(&me, &head(1), Vec::new(), (Vec::new(), index()));
        assert!(cache.get(&me, &head(1), &[]).is_some());
        assert!(cache.get(&me, &head(2), &[]).is_none());
        assert!(cache.get(&you, &head(1), &[]).is_none());
        assert!(cache.get(&me, &head(1), &[Uuid::nil()]).is_none(), "it has no such change");
        cache.put(&me, &head(2), Vec::new(), (Vec::new(), index()));
        assert!(cache.get(&me, &head(1), &[]).is_none(), "an owner has one index");
        cache.forget(&me);
        assert!(cache.get(&me, &head(2), &[]).is_none());
    }

    #[test]
    fn the_least_recently_used_go_first() {
        let owner = |n: usize| Owner::new(format!("o{n}")).unwrap();
        let head = IndexHead { base: Some(Uuid::nil()), base_bytes: BYTES / 4, ..IndexHead::default() };
        let cache = MemoryCache::default();
        for n in 0..4 {
            cache.put(&owner(n), &head, Vec::new(), (Vec::new(), index()));
        }
        assert!(cache.get(&owner(0), &head, &[]).is_some());
        cache.put(&owner(4), &head, Vec::new(), (Vec::new(), index()));
        assert!(cache.get(&owner(0), &head, &[]).is_some());
        assert!(cache.get(&owner(1), &head, &[]).is_none());
    }
}
