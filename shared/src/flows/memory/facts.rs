//! What a person does with facts: corrects, confirms and deletes them, and writes the long-term memory.
//!
//! A fact that is deleted or corrected disappears from everything that is built from facts: the long-term memory with its earlier
//! versions, and the summaries of weeks. A line that also comes from other facts becomes the texts of these. A tombstone keeps a
//! deleted fact away. The search does not find the messages that say it, nor the replies that were told it.

use std::collections::{BTreeMap, BTreeSet};

use domain::ids::{FactId, Owner};
use domain::memory::markdown::{self, ParsedSection};
use domain::memory::part::{Collection, MemoryPart};
use domain::memory::tombstone::{Tombstone, TombstoneKind, text_sha256};
use domain::memory::{
    Block, Fact, FactState, Line, LongTerm, MAX_FACT, Origin, Quoted, Section, Source, UNTITLED, Week, tidy,
};
use domain::validate::FieldErrors;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use utoipa::ToSchema;

use super::forgotten::Forgotten;
use super::shown::FactView;
use super::{cards, index, shown, sources, traces};
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::edit;
use crate::request::caller::IfMatch;
use crate::store::memory::{LongTermBy, LongTermRecord, MemoryKept};
use crate::store::table::{Extras, Write, item};
use crate::store::{Store, Tries, Versioned, keys};

/// The clocks of two processes may differ by this much.
const CLOCKS_DIFFER: SignedDuration = SignedDuration::from_mins(10);

/// What is true instead.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"text": "The user lives in Lisbon since 2026."}))]
#[schema(as = FactCorrection)]
pub struct Correction {
    /// 1 to 500 bytes, in one line.
    #[schema(min_length = 1, max_length = 500)]
    pub text: String,
}

/// The long-term memory as a person writes it.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewLongTermMemory)]
pub struct NewLongTerm {
    /// Markdown of at most 80 lines and 5,000 bytes: headings (`## …`), and lines that begin with `- `.
    pub markdown: String,
}

/// # Errors
/// 404 if it does not exist.
pub async fn read(cx: &Cx, owner: &Owner, id: FactId) -> Result<FactView> {
    let found = cx.store.fact(owner, id).await?.ok_or(Error::NotFound("fact"))?;
    Ok(found.value.into())
}

/// Replaces a fact by what is true. The old one stays as history: it says until when it was believed.
///
/// # Errors
/// 400 if the text is invalid; 404 if the fact does not exist; 409 if it was corrected before, by another text.
pub async fn correct(cx: &Cx, owner: &Owner, id: FactId, input: Correction) -> Result<FactView> {
    let date = cards::today(cx, owner).await?;
    let now = cx.clock.now();
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let Versioned { value: old, version } =
            cx.store.fact(owner, id).await?.ok_or(Error::NotFound("fact"))?;
        if let FactState::Corrected { by, .. } = old.state {
            // The same correction again: a process may have ended before the lines of the first one were replaced.
            let new = cx.store.fact(owner, by).await?.map(|found| found.value);
            if let Some(new) = new.filter(|new| new.is_current() && new.text == input.text.trim()) {
                was_corrected(cx, owner, id).await?;
                return Ok(new.into());
            }
            let told = format!("it was corrected before, by {by}: correct that one");
            return Err(Error::conflict("already_corrected", told));
        }
        let new = Fact {
            fact_id: FactId::from_uuid(cx.clock.uuid()),
            text: input.text.trim().to_owned(),
            sources: Vec::new(),
            origin: Origin::Person,
            state: FactState::Current,
            date,
            said_at: now,
            block_id: None,
            corrects: Some(id),
            used_on: None,
            namespace: old.namespace.clone(),
            created_at: now,
        };
        new.check()?;
        let corrected = Fact { state: FactState::Corrected { by: new.fact_id, on: date }, ..old.clone() };
        // The same words elsewhere say what was true, too.
        let mut quoted = old.sources.clone();
        quoted.extend(traces::repetitions(cx, owner, &old.text, Some(&new.text)).await?);
        quoted.extend(traces::told_what_was(cx, owner, (&old, &new.text), &quoted).await?);
        let quoted = joined(quoted.iter());
        let tombstone = tombstone(&old, TombstoneKind::Corrected { by: new.fact_id }, (date, quoted));
        let key = keys::memory_fact(owner, id);
        let mut writes = vec![Write::Replace { key, version, item: item(&corrected, &Extras::default())? }];
        writes.extend(kept_away(owner, &tombstone)?);
        let key = keys::memory_fact(owner, new.fact_id);
        writes.push(Write::Create { key, item: item(&new, &Extras::default())? });
        let mut parts = BTreeSet::from([id, new.fact_id].map(part_of_fact));
        parts.extend(parts_of(cx, owner, &old.sources).await?);
        writes.extend(Store::hidden_marks(owner, parts, cx.clock.uuid(), now)?);
        if !cx.store.write_all(writes).await?.done() {
            continue;
        }
        was_corrected(cx, owner, id).await?;
        return Ok(new.into());
    }
}

/// What follows from a correction that is stored.
async fn was_corrected(cx: &Cx, owner: &Owner, id: FactId) -> Result<()> {
    let tombstones = cx.store.tombstones(owner).await?;
    let quoted = tombstones.into_iter().filter(|tombstone| tombstone.fact_id == id);
    let quoted: Vec<Quoted> = quoted.flat_map(|tombstone| tombstone.sources).collect();
    // There may be more of them than one transaction can mark.
    traces::mark(cx, owner, parts_of(cx, owner, &quoted).await?).await?;
    replace_lines(cx, owner, id).await?;
    index::refresh(cx, owner).await?;
    Ok(())
}

/// A fact of an outside session is true: from now on it is used like any other.
///
/// # Errors
/// 404 if it does not exist; 409 if it does not wait for that.
pub async fn confirm(cx: &Cx, owner: &Owner, id: FactId) -> Result<FactView> {
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let found = cx.store.fact(owner, id).await?.ok_or(Error::NotFound("fact"))?;
        if found.value.state != FactState::Unconfirmed {
            return Err(Error::conflict("not_unconfirmed", "it does not wait for a confirmation"));
        }
        let confirmed = Fact { state: FactState::Current, ..found.value };
        let key = keys::memory_fact(owner, id);
        let item = item(&confirmed, &Extras::default())?;
        let mut writes = vec![Write::Replace { key, version: found.version, item }];
        writes.extend(Store::fact_marks(owner, [id], cx.clock.uuid(), cx.clock.now())?);
        if cx.store.write_all(writes).await?.done() {
            return Ok(confirmed.into());
        }
    }
}

/// Deletes a fact everywhere, with all facts that it has corrected, because they say the same about the past, and all facts with the
/// same words.
///
/// # Errors
/// 404 if it does not exist.
pub async fn forget(cx: &Cx, owner: &Owner, id: FactId) -> Result<()> {
    let date = cards::today(cx, owner).await?;
    let Some(found) = cx.store.fact(owner, id).await? else {
        // A process may have ended before everything of a fact was gone.
        if is_forgotten(cx, owner, id).await? {
            replace_lines(cx, owner, id).await?;
            index::purge(cx, owner).await?;
        }
        return Err(Error::NotFound("fact"));
    };
    let mut facts = vec![found.value];
    while let Some(before) = facts.last().and_then(|fact| fact.corrects) {
        let Some(found) = cx.store.fact(owner, before).await? else { break };
        facts.push(found.value);
    }
    let said: BTreeSet<String> = facts.iter().map(|fact| text_sha256(&fact.text)).collect();
    let known: BTreeSet<FactId> = facts.iter().map(|fact| fact.fact_id).collect();
    let others = cx.store.all_facts(owner).await?.into_iter();
    facts.extend(
        others.filter(|fact| !known.contains(&fact.fact_id) && said.contains(&text_sha256(&fact.text))),
    );
    // People repeat themselves, and a model repeats what it was told. Such messages are hidden like those that a fact came from.
    let mut repeated: BTreeMap<&str, Vec<Quoted>> = BTreeMap::new();
    for fact in &facts {
        if !repeated.contains_key(fact.text.as_str()) {
            let mut quoted = traces::repetitions(cx, owner, &fact.text, None).await?;
            quoted.extend(traces::outputs(cx, owner, &fact.text).await?);
            quoted.extend(traces::in_cards(cx, owner, fact).await?);
            repeated.insert(&fact.text, quoted);
        }
    }
    // If a process ended in between, its tombstones name messages that the search no longer finds.
    let before = cx.store.tombstones(owner).await?;
    let of_fact = |fact: &Fact| {
        let known = before.iter().filter(|tombstone| tombstone.fact_id == fact.fact_id);
        let known = known.flat_map(|tombstone| &tombstone.sources);
        let repeated = repeated.get(fact.text.as_str()).into_iter().flatten();
        let quoted = joined(fact.sources.iter().chain(known).chain(repeated));
        tombstone(fact, TombstoneKind::Deleted, (date, quoted))
    };
    let mut tombstones: Vec<Tombstone> = facts.iter().map(of_fact).collect();
    let quoted: Vec<Quoted> = tombstones.iter().flat_map(|tombstone| tombstone.sources.clone()).collect();
    let began = cx.clock.now();
    let forgotten = Forgotten::from_tombstones(tombstones.clone());
    let told = traces::told(cx, owner, &forgotten, traces::first_of(&facts, &quoted)).await?;
    let telling = traces::telling(cx, owner, &facts, (&told, &quoted)).await?;
    for (tombstone, telling) in tombstones.iter_mut().zip(telling) {
        tombstone.telling = telling;
    }
    // From here on, nothing new says it. The facts go last: if the process ends before, the next try finds them.
    for tombstone in &tombstones {
        let _ = cx.store.write_all(kept_away(owner, tombstone)?.into()).await?;
    }
    // Turns may have ended meanwhile.
    let forgotten = Forgotten::from_tombstones(tombstones.clone());
    let later = traces::told(cx, owner, &forgotten, began - CLOCKS_DIFFER).await?;
    let sources = told.sources().into_iter().chain(later.sources()).collect();
    traces::clear(cx, owner, &facts, (&quoted, &sources, &forgotten)).await?;
    leave_blocks(cx, owner, &facts, (&quoted, &sources)).await?;
    let mut parts = told.hidden_parts(&forgotten);
    parts.extend(later.hidden_parts(&forgotten));
    parts.extend(parts_of(cx, owner, &quoted).await?);
    // The replies of an outside session may speak of it on any day.
    for quoted in quoted.iter().filter(|quoted| matches!(quoted.source, Source::Outside(_))) {
        parts.extend(sources::parts_of_session(cx, owner, &quoted.source).await?);
    }
    traces::mark(cx, owner, parts).await?;
    for (fact, tombstone) in facts.iter().zip(&tombstones).rev() {
        let id = fact.fact_id;
        let mut writes = vec![Write::Delete { key: keys::memory_fact(owner, id), must_exist: false }];
        writes.extend(kept_away(owner, tombstone)?);
        writes.extend(Store::hidden_marks(owner, [part_of_fact(id)], cx.clock.uuid(), cx.clock.now())?);
        let _ = cx.store.write_all(writes).await?;
        replace_lines(cx, owner, id).await?;
    }
    // The old objects of the index go at once: they have the text.
    index::purge(cx, owner).await?;
    Ok(())
}

/// Whether a fact was deleted before.
///
/// # Errors
/// If the table does not answer.
pub async fn is_forgotten(cx: &Cx, owner: &Owner, id: FactId) -> Result<bool> {
    let tombstones = cx.store.tombstones(owner).await?;
    Ok(tombstones.iter().any(|tombstone| tombstone.fact_id == id && tombstone.kind == TombstoneKind::Deleted))
}

fn part_of_fact(id: FactId) -> MemoryPart {
    MemoryPart::with(Collection::Facts, id.uuid())
}

/// The messages, each once.
fn joined<'a>(quoted: impl Iterator<Item = &'a Quoted>) -> Vec<Quoted> {
    let mut of: BTreeMap<&Source, BTreeSet<&String>> = BTreeMap::new();
    for quoted in quoted {
        of.entry(&quoted.source).or_default().extend(&quoted.message_ids);
    }
    let quoted = of.into_iter().map(|(source, ids)| Quoted {
        source: source.clone(),
        message_ids: ids.into_iter().cloned().collect(),
    });
    quoted.collect()
}

/// The parts of the index that have these messages.
async fn parts_of(cx: &Cx, owner: &Owner, quoted: &[Quoted]) -> Result<BTreeSet<MemoryPart>> {
    let mut parts = BTreeSet::new();
    for quoted in quoted {
        parts.extend(sources::parts_of(cx, owner, quoted).await?);
    }
    Ok(parts)
}

/// Takes facts out of their blocks, and the titles of all blocks of conversations that say the facts, or whose replies were told them and
/// whose titles have a word of them that nothing else in the conversation has. A clean-up may move a block at the same time; then all are read again.
async fn leave_blocks(
    cx: &Cx,
    owner: &Owner,
    facts: &[Fact],
    (quoted, told): (&[Quoted], &BTreeSet<Source>),
) -> Result<()> {
    let ids: BTreeSet<FactId> = facts.iter().map(|fact| fact.fact_id).collect();
    let quoted: BTreeSet<&Source> = quoted.iter().map(|quoted| &quoted.source).collect();
    let forgotten = Forgotten::of(cx, owner).await?;
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let mut refused = false;
        let (open, archived) =
            futures::try_join!(cx.store.open_blocks(owner), cx.store.archived_blocks(owner, None))?;
        for Versioned { value: block, version } in open.into_iter().chain(archived) {
            let has_fact = block.facts.iter().any(|id| ids.contains(id));
            let says = has_fact
                || quoted.contains(&block.source)
                || told.contains(&block.source) && hints(cx, owner, facts, &block, &forgotten).await?;
            if !has_fact && (!says || block.title == UNTITLED) {
                continue;
            }
            let facts = block.facts.iter().copied().filter(|id| !ids.contains(id)).collect();
            let value = Block { facts, title: UNTITLED.to_owned(), ..block };
            let write = Store::block_write(owner, &Versioned { value, version })?;
            refused |= !cx.store.write_all(vec![write]).await?.done();
        }
        if !refused {
            return Ok(());
        }
    }
}

/// Whether the title of a block has a word of one of these facts that is not in what is left of its conversation.
async fn hints(cx: &Cx, owner: &Owner, facts: &[Fact], block: &Block, forgotten: &Forgotten) -> Result<bool> {
    if !facts.iter().any(|fact| memory::share_of_words(&fact.text, &block.title) > 0.0) {
        return Ok(false);
    }
    let session = sources::session(cx, owner, &block.source, forgotten).await?;
    let left = session.map(|session| session.messages).unwrap_or_default();
    let left: String = left.iter().map(|said| format!("{}\n", said.own_words())).collect();
    let with_title = format!("{left}{}", block.title);
    let adds = |fact: &Fact| {
        memory::share_of_words(&fact.text, &with_title) > memory::share_of_words(&fact.text, &left)
    };
    Ok(facts.iter().any(adds))
}

fn tombstone(
    fact: &Fact,
    kind: TombstoneKind,
    (date, sources): (jiff::civil::Date, Vec<Quoted>),
) -> Tombstone {
    Tombstone {
        fact_id: fact.fact_id,
        kind,
        sources,
        shingles: memory::fingerprint(&fact.text).to_vec(),
        telling: Vec::new(),
        text_sha256: text_sha256(&fact.text),
        date,
    }
}

fn kept_away(owner: &Owner, tombstone: &Tombstone) -> Result<[Write; 2]> {
    let plain = Extras::default();
    let key = keys::tombstone(owner, tombstone.fact_id);
    let tombstone = Write::Put { key, item: item(tombstone, &plain)? };
    // A clean-up or a rollback that has read the fact may not end with it: it finds that this record has changed, and begins again.
    let kept = item(&MemoryKept::default(), &plain)?;
    Ok([tombstone, Write::Fill { key: keys::memory_kept(owner), item: kept }])
}

/// Takes a fact that was deleted or corrected out of the long-term memory, all its versions, and the summaries of weeks. A line that names
/// other facts too becomes the texts of these; a correction takes the place of what it corrects.
async fn replace_lines(cx: &Cx, owner: &Owner, id: FactId) -> Result<()> {
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let Some(found) = cx.store.long_term(owner).await? else { break };
        if !found.value.memory.facts().any(|fact| fact == id) {
            break;
        }
        let memory = live(cx, owner, &found.value.memory).await?;
        let (memory, _) = tidy::fit(memory, &BTreeMap::new());
        let (by, at) = (LongTermBy::Forgetting, cx.clock.now());
        let next = LongTermRecord { memory, by, tidy_id: found.value.tidy_id, at };
        // The version that has the fact is not kept.
        let key = keys::long_term(owner);
        let write = Write::Replace { key, version: found.version, item: item(&next, &Extras::default())? };
        if cx.store.write_all(vec![write]).await?.done() {
            break;
        }
    }
    // The others may be changed at the same time, by a clean-up or because of another fact. Then they are read again.
    loop {
        tries.next().await?;
        let mut refused = false;
        for (number, Versioned { value, version }) in cx.store.long_term_versions(owner).await? {
            if value.memory.facts().any(|fact| fact == id) {
                let memory = live(cx, owner, &value.memory).await?;
                let key = keys::long_term_version(owner, number);
                let item = item(&LongTermRecord { memory, ..value }, &Extras::default())?;
                refused |= !cx.store.write_all(vec![Write::Replace { key, version, item }]).await?.done();
            }
        }
        for Versioned { value, version } in cx.store.memory_weeks(owner).await? {
            if value.lines.iter().any(|line| line.facts.contains(&id)) {
                let section = Section { title: String::new(), by_hand: false, lines: value.lines.clone() };
                let memory = live(cx, owner, &LongTerm { sections: vec![section] }).await?;
                let lines = memory.sections.into_iter().flat_map(|section| section.lines).collect();
                let next = Week { lines, ..value };
                let key = keys::memory_week(owner, next.monday);
                let item = item(&next, &Extras::default())?;
                refused |= !cx.store.write_all(vec![Write::Replace { key, version, item }]).await?.done();
            }
        }
        if !refused {
            return Ok(());
        }
    }
}

/// The memory with current facts alone.
pub(super) async fn live(cx: &Cx, owner: &Owner, memory: &LongTerm) -> Result<LongTerm> {
    let known = known(cx, owner, memory.facts().collect()).await?;
    Ok(tidy::live(memory, &known))
}

/// These facts, and the facts that correct them.
pub(super) async fn known(cx: &Cx, owner: &Owner, ids: BTreeSet<FactId>) -> Result<BTreeMap<FactId, Fact>> {
    let mut known = BTreeMap::new();
    let mut wanted: Vec<FactId> = ids.into_iter().collect();
    while !wanted.is_empty() {
        let found = cx.store.facts(owner, &wanted).await?;
        let by = |fact: &Fact| match fact.state {
            FactState::Corrected { by, .. } => Some(by),
            FactState::Current | FactState::Unconfirmed => None,
        };
        let next: BTreeSet<FactId> = found.iter().filter_map(by).collect();
        known.extend(found.into_iter().map(|fact| (fact.fact_id, fact)));
        wanted = next.into_iter().filter(|id| !known.contains_key(id)).collect();
    }
    Ok(known)
}

/// Replaces the long-term memory by what a person has written. Lines that were there keep the facts that they come from. Every other line
/// becomes a fact of the person. Facts whose lines are gone stay in their days; those that a person had written here are not found any more.
///
/// # Errors
/// 400 if the text is invalid or too long; 409 if `If-Match` names another version.
pub async fn write_long_term(
    cx: &Cx,
    owner: &Owner,
    if_match: Option<IfMatch>,
    input: NewLongTerm,
) -> Result<shown::LongTermView> {
    let parsed = markdown::parse_long_term(&input.markdown)?;
    let date = cards::today(cx, owner).await?;
    let now = cx.clock.now();
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let before = cx.store.long_term(owner).await?;
        let version = before.as_ref().map_or(0, |before| before.version);
        if if_match.is_some_and(|seen| seen.0 != version) {
            edit::check(if_match, version, &shown::long_term(cx, owner).await?)?;
        }
        let old = before.as_ref().map(|before| before.value.memory.clone()).unwrap_or_default();
        let (memory, new) = written(cx, &old, &parsed, (date, now))?;
        tidy::check_by_hand(&memory)?;
        let next = LongTermRecord { memory, by: LongTermBy::Person, tidy_id: None, at: now };
        let mut writes = Store::long_term_writes(owner, before.as_ref(), &next)?;
        // The facts that are new are listed from now on, which marks their parts.
        writes.extend(Store::fact_writes(owner, &new)?);
        writes.extend(relisted(cx, owner, &old, &next.memory)?);
        if cx.store.write_all(writes).await?.done() {
            return shown::long_term(cx, owner).await;
        }
    }
}

/// The marks of the facts that stand in only one of these: whether they are found depends on it.
pub(super) fn relisted(cx: &Cx, owner: &Owner, before: &LongTerm, after: &LongTerm) -> Result<Vec<Write>> {
    let (before, after): (BTreeSet<FactId>, BTreeSet<FactId>) =
        (before.facts().collect(), after.facts().collect());
    let parts: BTreeSet<_> = before.symmetric_difference(&after).copied().map(part_of_fact).collect();
    Ok(Store::hidden_marks(owner, parts, cx.clock.uuid(), cx.clock.now())?)
}

/// The memory that a text describes, and the facts that it adds.
fn written(
    cx: &Cx,
    old: &LongTerm,
    parsed: &[ParsedSection],
    (date, now): (jiff::civil::Date, Timestamp),
) -> Result<(LongTerm, Vec<Fact>), FieldErrors> {
    let known: BTreeMap<&str, &Line> = old
        .sections
        .iter()
        .flat_map(|section| &section.lines)
        .map(|line| (line.text.as_str(), line))
        .collect();
    let mut new = Vec::new();
    let mut errors = FieldErrors::default();
    let mut sections = Vec::new();
    for ParsedSection { title, lines, .. } in parsed {
        let of_old = old.sections.iter().find(|section| section.title == *title);
        let lines: Vec<Line> = lines
            .iter()
            .map(|text| match known.get(text.as_str()) {
                Some(line) => (*line).clone(),
                None => {
                    if text.len() > MAX_FACT {
                        errors.add(
                            "markdown",
                            format!("a line must have at most {MAX_FACT} bytes, one has {}", text.len()),
                        );
                    }
                    let fact = Fact {
                        fact_id: FactId::from_uuid(cx.clock.uuid()),
                        text: text.clone(),
                        sources: Vec::new(),
                        origin: Origin::Person,
                        state: FactState::Current,
                        date,
                        said_at: now,
                        block_id: None,
                        corrects: None,
                        used_on: None,
                        namespace: String::new(),
                        created_at: now,
                    };
                    new.push(fact.clone());
                    Line { text: fact.text, facts: vec![fact.fact_id] }
                }
            })
            .collect();
        // A section in which the person has changed a line is the person's from now on.
        let is_same = of_old.is_some_and(|of_old| of_old.lines == lines);
        let by_hand = if is_same { of_old.is_some_and(|of_old| of_old.by_hand) } else { true };
        sections.push(Section { title: title.clone(), by_hand, lines });
    }
    errors.into_result((LongTerm { sections }, new))
}
