//! The search index of an owner: immutable objects in the bucket, and a record that lists them.
//!
//! Each change of anything that can be found marks its part. [`refresh`] reads the marked parts, writes them as one further object, and
//! lists it. So a search finds what was written before it, and costs one read of the table if nothing has changed. Many small objects are
//! merged into one. Objects that are no longer listed are deleted at once, because they may have text that a person has deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use domain::ids::{FactId, Owner, instant_of};
use domain::memory::part::{Collection, MemoryPart, day_of};
use domain::memory::session::{SaidBy, Session};
use domain::memory::{Card, Fact, FactState, Source};
use futures::stream::{self, StreamExt, TryStreamExt};
use jiff::SignedDuration;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use memory::{Document, Index, Kind, Part, Segment, Writer};
use uuid::Uuid;

use super::forgotten::Forgotten;
use super::{schedules, sources};
use crate::blobs::{BlobError, BlobKey};
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::store::memory::{IndexHead, MemoryMark};
use crate::store::{Tries, Versioned};

/// More objects than this are merged.
const MOST_INCREMENTS: usize = 8;

/// As many changes are read without storing them.
const FEW_CHANGES: usize = 16;

/// The most bytes of changes that are not stored.
const MOST_UNSTORED: usize = 512 * 1024;

/// Increments of more bytes than this part of the base are merged with it.
const MERGED_AT: u64 = 4;

/// The longest text of a message in the index, in bytes.
const MAX_TEXT: usize = 4_000;

/// How many parts are read at once.
const AT_ONCE: usize = 8;

/// A new object is listed within this time, or never.
const LISTED_WITHIN: SignedDuration = SignedDuration::from_mins(2);

/// How many chats a page has.
const PAGE: usize = 200;

/// The index with all that was written before this call. A few changes are only read, and stay marked: the next call reads them again,
/// or finds them in its process. So a conversation does not write an object for each of its messages.
pub(super) async fn current(cx: &Cx, owner: &Owner) -> Result<Arc<Index>> {
    if let (Some(head), changes) =
        futures::try_join!(cx.store.memory_index(owner), cx.store.memory_changes(owner))?
        && changes.len() <= FEW_CHANGES
        && !changes.iter().any(|mark| mark.part.day.is_none())
        && let Some(index) = with_changes(cx, owner, &head.value, &changes).await?
    {
        return Ok(index);
    }
    refresh(cx, owner).await
}

/// The stored index and these changes. `None` if it was just replaced, or if the changes are large.
async fn with_changes(
    cx: &Cx,
    owner: &Owner,
    head: &IndexHead,
    changes: &[MemoryMark],
) -> Result<Option<Arc<Index>>> {
    let stamps: Vec<Uuid> = changes.iter().map(|mark| mark.stamp).collect();
    if let Some(index) = cx.memories.get(owner, head, &stamps) {
        return Ok(Some(index));
    }
    let Some(segments) = segments(cx, owner, head).await? else { return Ok(None) };
    let old = joined(cx, segments.clone()).await?;
    if changes.is_empty() {
        cx.memories.put(owner, head, segments, (stamps, old.clone()));
        return Ok(Some(old));
    }
    let bytes = changed(cx, owner, &old, changes).await?;
    if bytes.len() > MOST_UNSTORED {
        return Ok(None);
    }
    let newest = Segment::load(bytes).map_err(|error| Error::internal(error.to_string()))?;
    let index = joined(cx, segments.iter().cloned().chain([Arc::new(newest)]).collect()).await?;
    cx.memories.put(owner, head, segments, (stamps, index.clone()));
    Ok(Some(index))
}

/// Segments as one index. For a large memory that takes milliseconds, so it does not hold up other requests.
async fn joined(cx: &Cx, segments: Vec<Arc<Segment>>) -> Result<Arc<Index>> {
    cx.compute.answers.run(move |_| Ok(Arc::new(Index::new(segments)))).await
}

/// The index with all that was written before this call, and all of it is stored.
pub(super) async fn refresh(cx: &Cx, owner: &Owner) -> Result<Arc<Index>> {
    // One request of this process builds, and the others find it done.
    let _lock = cx.locks.lock((owner, "memory index")).await;
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let (head, changes) =
            futures::try_join!(cx.store.memory_index(owner), cx.store.memory_changes(owner))?;
        let refreshed = match head {
            None => build(cx, owner, &changes).await?,
            // If another process has merged the objects meanwhile, it is read again.
            Some(head) if changes.is_empty() => load(cx, owner, &head.value).await?,
            Some(head) => add(cx, owner, head, &changes).await?,
        };
        if let Some(index) = refreshed {
            return Ok(index);
        }
    }
}

/// Like [`refresh`], and no object has a text that is not found any more.
pub(super) async fn purge(cx: &Cx, owner: &Owner) -> Result<()> {
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        refresh(cx, owner).await?;
        let Some(head) = cx.store.memory_index(owner).await? else { break };
        if head.value.increments.is_empty() || merge(cx, owner, &head).await? {
            break;
        }
    }
    clean(cx, owner).await
}

/// Deletes the objects that the index does not list: what is left of processes that ended while they replaced the list. They may have
/// texts that a person has deleted since. An object that is newer than [`LISTED_WITHIN`] may be about to be listed.
pub(super) async fn clean(cx: &Cx, owner: &Owner) -> Result<()> {
    let before = cx.clock.now() - LISTED_WITHIN;
    let all = BlobKey::memory_prefix(owner);
    let mut after: Option<String> = None;
    loop {
        let names = cx.blobs.list(&all, after.as_deref()).await?;
        after = names.last().cloned();
        if after.is_none() {
            return Ok(());
        }
        // The list is read after the objects, so an object that was listed meanwhile is in it.
        let head = cx.store.memory_index(owner).await?.map(|head| head.value).unwrap_or_default();
        let listed: BTreeSet<Uuid> = head.objects().collect();
        let ids = names.iter().filter_map(|name| Uuid::try_parse(name).ok());
        for id in ids.filter(|id| !listed.contains(id) && instant_of(*id) < before) {
            cx.blobs.delete(&BlobKey::memory(owner, id)).await?;
        }
    }
}

/// The stored index. `None` if one of its objects was just deleted.
async fn load(cx: &Cx, owner: &Owner, head: &IndexHead) -> Result<Option<Arc<Index>>> {
    with_changes(cx, owner, head, &[]).await
}

/// The objects of the index. `None` if one of them was just deleted.
async fn segments(cx: &Cx, owner: &Owner, head: &IndexHead) -> Result<Option<Vec<Arc<Segment>>>> {
    let read = |id: Uuid| async move {
        if let Some(segment) = cx.memories.segment(owner, id) {
            return Ok(Some(segment));
        }
        let bytes = match cx.blobs.get(&BlobKey::memory(owner, id)).await {
            Ok(bytes) => bytes,
            Err(BlobError::Missing { .. }) => return Ok(None),
            Err(error) => return Err(Error::from(error)),
        };
        // The check of a large object takes milliseconds, too.
        let loaded = cx.compute.answers.run(move |_| Ok(Segment::load(bytes.to_vec()))).await?;
        Ok(match loaded {
            Ok(segment) => Some(Arc::new(segment)),
            Err(error) => {
                tracing::error!(%error, "an object of the memory's index is damaged; the index is built again");
                None
            }
        })
    };
    let segments: Vec<Option<Arc<Segment>>> =
        stream::iter(head.objects().map(read)).buffered(AT_ONCE).try_collect().await?;
    let whole = segments.into_iter().collect::<Option<Vec<_>>>();
    if whole.is_none() {
        // If the record still lists an object that is missing or damaged, only a new index helps.
        let current = cx.store.memory_index(owner).await?;
        if let Some(current) = current.filter(|current| current.value == *head) {
            cx.store.delete_memory_index(owner, current.version).await?;
        }
    }
    Ok(whole)
}

/// The changed parts as a segment.
async fn changed(cx: &Cx, owner: &Owner, old: &Arc<Index>, changes: &[MemoryMark]) -> Result<Vec<u8>> {
    let rules = Rules::of(cx, owner).await?;
    let read = |mark: &MemoryMark| {
        let (rules, part) = (&rules, mark.part.clone());
        async move { parts_of(cx, owner, &part, old, rules).await }
    };
    let parts: Vec<Vec<Part>> =
        stream::iter(changes.iter().map(read)).buffered(AT_ONCE).try_collect().await?;
    segment(cx, parts.into_iter().flatten().collect()).await
}

/// Adds the changed parts as a further object. `None` if another process was faster.
async fn add(
    cx: &Cx,
    owner: &Owner,
    head: Versioned<IndexHead>,
    changes: &[MemoryMark],
) -> Result<Option<Arc<Index>>> {
    let Some(old) = load(cx, owner, &head.value).await? else { return Ok(None) };
    let bytes = changed(cx, owner, &old, changes).await?;
    let Versioned { value: mut next, version } = head;
    let listed = publish(cx, owner, bytes, version, |id, bytes| {
        next.increments.push(id);
        next.increment_bytes += bytes;
        next
    });
    let Some(next) = listed.await? else { return Ok(None) };
    indexed(cx, owner, changes).await?;
    // What a person has deleted goes at once.
    let is_gone = changes.iter().any(|mark| mark.part.day.is_none());
    let is_much = next.increment_bytes > next.base_bytes / MERGED_AT && next.increment_bytes > 256 * 1024;
    if next.increments.len() > MOST_INCREMENTS || is_much || is_gone {
        let merged = Versioned { value: next.clone(), version: version + 1 };
        if merge(cx, owner, &merged).await? {
            return Ok(None);
        }
    }
    load(cx, owner, &next).await
}

/// Stores an object and replaces the list of objects that was read at `version` (0: there was none) by one that has it. Returns that list.
/// `None` if another process was faster; then the object is deleted.
async fn publish(
    cx: &Cx,
    owner: &Owner,
    bytes: Vec<u8>,
    version: u64,
    listed: impl FnOnce(Uuid, u64) -> IndexHead,
) -> Result<Option<IndexHead>> {
    let id = cx.clock.uuid();
    let head = listed(id, bytes.len() as u64);
    cx.blobs.put(&BlobKey::memory(owner, id), bytes, "application/octet-stream").await?;
    if cx.store.replace_memory_index(owner, &head, version).await?.done() {
        return Ok(Some(head));
    }
    cx.blobs.delete(&BlobKey::memory(owner, id)).await?;
    Ok(None)
}

/// A list of one object.
fn only(id: Uuid, bytes: u64) -> IndexHead {
    IndexHead { base: Some(id), base_bytes: bytes, ..IndexHead::default() }
}

async fn indexed(cx: &Cx, owner: &Owner, changes: &[MemoryMark]) -> Result<()> {
    for mark in changes {
        cx.store.unmark_changed(owner, mark).await?;
    }
    Ok(())
}

/// Writes an object from parts. That takes time for many, so it does not hold up other requests.
async fn segment(cx: &Cx, parts: Vec<Part>) -> Result<Vec<u8>> {
    let write = move || {
        let mut writer = Writer::new();
        parts.into_iter().for_each(|part| writer.add(part));
        writer.finish()
    };
    let written = cx.compute.builds.run(move |_| Ok(write())).await?;
    written.map_err(|error| Error::internal(error.to_string()))
}

/// Merges all objects into one. `false` if another process was faster.
async fn merge(cx: &Cx, owner: &Owner, head: &Versioned<IndexHead>) -> Result<bool> {
    let Some(index) = load(cx, owner, &head.value).await? else { return Ok(false) };
    let bytes = cx.compute.builds.run(move |_| Ok(index.merge())).await?;
    let bytes = bytes.map_err(|error| Error::internal(error.to_string()))?;
    replace(cx, owner, head, bytes).await
}

/// The index with all that was written before this call, and the list of its objects. `None` if another process has just replaced it.
pub(super) async fn whole(cx: &Cx, owner: &Owner) -> Result<Option<(Versioned<IndexHead>, Arc<Index>)>> {
    refresh(cx, owner).await?;
    let Some(head) = cx.store.memory_index(owner).await? else { return Ok(None) };
    let index = load(cx, owner, &head.value).await?;
    Ok(index.map(|index| (head, index)))
}

/// Replaces all objects by one. `false` if another process was faster.
pub(super) async fn replace(
    cx: &Cx,
    owner: &Owner,
    head: &Versioned<IndexHead>,
    bytes: Vec<u8>,
) -> Result<bool> {
    if publish(cx, owner, bytes, head.version, only).await?.is_none() {
        return Ok(false);
    }
    for id in head.value.objects() {
        cx.blobs.delete(&BlobKey::memory(owner, id)).await?;
    }
    cx.memories.forget(owner);
    Ok(true)
}

/// Builds the index from everything. `None` if another process was faster.
async fn build(cx: &Cx, owner: &Owner, changes: &[MemoryMark]) -> Result<Option<Arc<Index>>> {
    let rules = Rules::of(cx, owner).await?;
    let mut parts: Vec<Part> = Vec::new();
    let (facts, cards) = futures::try_join!(cx.store.all_facts(owner), cx.store.all_cards(owner))?;
    let facts = by(facts, |fact| day_of(fact.fact_id.uuid()));
    parts.extend(facts.into_iter().flat_map(|(day, facts)| of_facts(day, facts, &rules)));
    let cards = by(cards, |card| day_of(card.card_id.uuid()));
    parts.extend(cards.into_iter().flat_map(|(day, cards)| of_cards(day, cards, &rules.zone)));
    for source in all_sources(cx, owner).await? {
        for day in sources::days(cx, owner, &source).await? {
            let session = sources::day(cx, owner, &source, day, &rules.forgotten).await?;
            parts.extend(session.map(|session| of_session(&session, day, &rules)));
        }
    }
    let bytes = segment(cx, parts).await?;
    let Some(head) = publish(cx, owner, bytes, 0, only).await? else { return Ok(None) };
    indexed(cx, owner, changes).await?;
    load(cx, owner, &head).await
}

/// All conversations of an owner.
pub(super) async fn all_sources(cx: &Cx, owner: &Owner) -> Result<Vec<Source>> {
    let mut all = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let found = cx.store.chats(owner, after.as_deref(), PAGE).await?;
        all.extend(found.items.into_iter().map(|(_, chat)| Source::Chat(chat.value.chat_id)));
        after = found.last;
        if after.is_none() {
            break;
        }
    }
    loop {
        let found = cx.store.actions(owner, after.as_deref(), PAGE).await?;
        all.extend(found.items.into_iter().map(|(_, action)| Source::Action(action.value.id)));
        after = found.last;
        if after.is_none() {
            break;
        }
    }
    let outside = cx.store.outside_sessions(owner).await?;
    all.extend(outside.into_iter().map(|session| Source::Outside(session.session_id)));
    Ok(all)
}

/// What decides what of a part may be found.
struct Rules {
    forgotten: Forgotten,
    /// The facts of the long-term memory.
    listed: BTreeSet<FactId>,
    zone: TimeZone,
}

impl Rules {
    async fn of(cx: &Cx, owner: &Owner) -> Result<Self> {
        let (forgotten, long_term, zone) = futures::try_join!(
            Forgotten::of(cx, owner),
            async { Ok(cx.store.long_term(owner).await?) },
            schedules::zone_of(cx, owner, None),
        )?;
        let listed = long_term.map(|found| found.value.memory.facts().collect()).unwrap_or_default();
        Ok(Self { forgotten, listed, zone })
    }

    /// Whether a fact may be found. A line that a person has written into the long-term memory, and taken out again, stands nowhere
    /// else, so nobody would know of it.
    fn has(&self, fact: &Fact) -> bool {
        !fact.is_only_a_line() || fact.state != FactState::Current || self.listed.contains(&fact.fact_id)
    }
}

/// What a changed part has now.
async fn parts_of(
    cx: &Cx,
    owner: &Owner,
    part: &MemoryPart,
    old: &Index,
    rules: &Rules,
) -> Result<Vec<Part>> {
    let (source, day) = match (&part.of, part.day) {
        (Collection::Facts, Some(day)) => {
            return Ok(or_deleted(part, of_facts(day, cx.store.facts_of(owner, day).await?, rules), old));
        }
        (Collection::Cards, Some(day)) => {
            return Ok(or_deleted(
                part,
                of_cards(day, cx.store.cards_of(owner, day).await?, &rules.zone),
                old,
            ));
        }
        (Collection::Messages(source), Some(day)) => (source, day),
        // All of a conversation is gone.
        (of, None) => {
            let begin = MemoryPart { of: of.clone(), day: None }.to_string();
            let begin = begin.trim_end_matches('*');
            let gone = old.part_keys().filter(|key| key.starts_with(begin));
            return Ok(gone.map(Part::deletion).collect());
        }
    };
    let session = sources::day(cx, owner, source, day, &rules.forgotten).await?;
    Ok(match session {
        Some(session) => vec![of_session(&session, day, rules)],
        None => vec![Part::deletion(part.to_string())],
    })
}

/// The parts of a day, and deletions of those that the day had before and does not have any more: one for each namespace.
fn or_deleted(part: &MemoryPart, new: Vec<Part>, old: &Index) -> Vec<Part> {
    let begin = part.to_string();
    let known: BTreeSet<&str> = new.iter().map(|part| part.key.as_str()).collect();
    let is_gone = |key: &&str| {
        let rest = key.strip_prefix(begin.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')) && !known.contains(key)
    };
    let gone: Vec<Part> = old.part_keys().filter(is_gone).map(Part::deletion).collect();
    new.into_iter().chain(gone).collect()
}

/// The key of a part. Facts and cards of a day have one part for each namespace.
fn key(of: Collection, day: Date, namespace: &str) -> String {
    let part = MemoryPart { of, day: Some(day) };
    if namespace.is_empty() { part.to_string() } else { format!("{part} {namespace}") }
}

/// Things in groups.
fn by<K: Ord, T>(things: Vec<T>, key: impl Fn(&T) -> K) -> BTreeMap<K, Vec<T>> {
    let mut groups: BTreeMap<K, Vec<T>> = BTreeMap::new();
    for thing in things {
        groups.entry(key(&thing)).or_default().push(thing);
    }
    groups
}

/// A part whose documents do not belong to a conversation.
fn apart(
    of: Collection,
    kind: Kind,
    (day, zone): (Date, &TimeZone),
    namespace: String,
    documents: Vec<Document>,
) -> Part {
    let (key, zone) = (key(of, day, &namespace), zone.clone());
    Part { key, session: String::new(), namespace, kind, date: None, zone, documents }
}

fn of_facts(day: Date, mut facts: Vec<Fact>, rules: &Rules) -> Vec<Part> {
    facts.retain(|fact| rules.has(fact));
    let document = |fact: Fact| Document {
        key: fact.fact_id.to_string(),
        time: Some(fact.said_at),
        corrected_until: match fact.state {
            FactState::Corrected { on, .. } => Some(on),
            FactState::Current | FactState::Unconfirmed => None,
        },
        text: fact.text,
        ..Document::default()
    };
    let part = |(namespace, facts): (String, Vec<Fact>)| {
        let documents = facts.into_iter().map(document).collect();
        apart(Collection::Facts, Kind::Memory, (day, &rules.zone), namespace, documents)
    };
    by(facts, |fact| fact.namespace.clone()).into_iter().map(part).collect()
}

fn of_cards(day: Date, cards: Vec<Card>, zone: &TimeZone) -> Vec<Part> {
    let text = |card: &Card| {
        let named = card.text.named().into_iter().filter(|(_, text)| !text.is_empty());
        let named: Vec<String> = named.map(|(name, text)| format!("{name}: {text}")).collect();
        format!("{}. {}", card.title, named.join(". "))
    };
    let document = |card: Card| Document {
        key: card.card_id.to_string(),
        time: Some(card.created_at),
        text: text(&card),
        ..Document::default()
    };
    let part = |(namespace, cards): (String, Vec<Card>)| {
        let documents = cards.into_iter().map(document).collect();
        apart(Collection::Cards, Kind::Card, (day, zone), namespace, documents)
    };
    by(cards, |card| card.namespace.clone()).into_iter().map(part).collect()
}

fn of_session(session: &Session, day: Date, Rules { forgotten, zone, .. }: &Rules) -> Part {
    let messages = session.messages.iter().filter(|said| said.role != SaidBy::System);
    let document = |said: &domain::memory::session::Said| {
        let text = said.own_words();
        let text = &text[..text.floor_char_boundary(MAX_TEXT)];
        (!text.trim().is_empty()).then(|| Document {
            key: said.id.clone(),
            speaker: said.name.clone().unwrap_or_else(|| said.role.as_str().to_owned()),
            time: said.at,
            date_text: said.date_text.clone().unwrap_or_default(),
            corrected_until: forgotten.corrected_on(&session.source, &said.id),
            text: text.to_owned(),
            ..Document::default()
        })
    };
    Part {
        key: key(Collection::Messages(session.source.clone()), day, ""),
        session: session.source.to_string(),
        namespace: session.namespace.clone(),
        kind: Kind::Raw,
        date: None,
        zone: zone.clone(),
        documents: messages.filter_map(document).collect(),
    }
}
