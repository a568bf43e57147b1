//! What a person does with facts: corrects, confirms and deletes them, and writes the long-term memory.
//!
//! A fact that is deleted or corrected disappears from everything that is built from facts: the long-term memory with its earlier
//! versions, and the summaries of weeks. A line that also comes from other facts becomes the texts of these. A tombstone keeps a
//! deleted fact away. The search does not find the messages that the fact came from.

use std::collections::{BTreeMap, BTreeSet};

use domain::ids::{FactId, Owner};
use domain::memory::markdown::{self, ParsedSection};
use domain::memory::part::{Collection, MemoryPart};
use domain::memory::tombstone::{Tombstone, TombstoneKind, text_sha256};
use domain::memory::{Fact, FactState, Line, LongTerm, MAX_FACT, Origin, Quoted, Section, Week, tidy};
use domain::validate::FieldErrors;
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::ToSchema;

use super::shown::FactView;
use super::{cards, index, repetitions, shown, sources};
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::edit;
use crate::request::caller::IfMatch;
use crate::store::memory::{LongTermBy, LongTermRecord, MemoryKept};
use crate::store::table::{Extras, Write, item};
use crate::store::{Store, Tries, Versioned, keys};

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
                replace_lines(cx, owner, id).await?;
                index::refresh(cx, owner).await?;
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
        let tombstone =
            tombstone(&old, TombstoneKind::Corrected { by: new.fact_id }, (date, old.sources.clone()));
        let key = keys::memory_fact(owner, id);
        let mut writes = vec![Write::Replace { key, version, item: item(&corrected, &Extras::default())? }];
        writes.extend(kept_away(owner, &tombstone)?);
        let key = keys::memory_fact(owner, new.fact_id);
        writes.push(Write::Create { key, item: item(&new, &Extras::default())? });
        let mut parts = BTreeSet::from([id, new.fact_id].map(part_of_fact));
        // Its messages say what was true.
        for quoted in &old.sources {
            parts.extend(sources::parts_of(cx, owner, quoted).await?);
        }
        writes.extend(Store::hidden_marks(owner, parts, cx.clock.uuid(), now)?);
        if !cx.store.write_all(writes).await?.done() {
            continue;
        }
        replace_lines(cx, owner, id).await?;
        index::refresh(cx, owner).await?;
        return Ok(new.into());
    }
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
    // The asked one last: if the process ends before, the next try finds the others again.
    for fact in facts.iter().rev() {
        forget_one(cx, owner, fact, date).await?;
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

async fn forget_one(cx: &Cx, owner: &Owner, fact: &Fact, date: jiff::civil::Date) -> Result<()> {
    let id = fact.fact_id;
    let now = cx.clock.now();
    leave_block(cx, owner, fact).await?;
    // People repeat themselves, and a model repeats what it was told. Such messages are hidden like those that the fact came from.
    let mut quoted = fact.sources.clone();
    quoted.extend(repetitions::of(cx, owner, &fact.text).await?);
    let tombstone = tombstone(fact, TombstoneKind::Deleted, (date, quoted));
    let mut writes = vec![Write::Delete { key: keys::memory_fact(owner, id), must_exist: false }];
    writes.extend(kept_away(owner, &tombstone)?);
    // The messages are hidden, so their parts change too.
    let mut parts = BTreeSet::from([part_of_fact(id)]);
    for quoted in &tombstone.sources {
        parts.extend(sources::parts_of(cx, owner, quoted).await?);
    }
    writes.extend(Store::hidden_marks(owner, parts, cx.clock.uuid(), now)?);
    let _ = cx.store.write_all(writes).await?;
    replace_lines(cx, owner, id).await
}

fn part_of_fact(id: FactId) -> MemoryPart {
    MemoryPart::with(Collection::Facts, id.uuid())
}

/// Takes a fact out of the block that it belongs to. A tidying may move the block between the two places at the same time, and then
/// moves it as it is read here or as it is written.
async fn leave_block(cx: &Cx, owner: &Owner, fact: &Fact) -> Result<()> {
    let Some(id) = fact.block_id else { return Ok(()) };
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let mut refused = false;
        for key in [keys::memory_block(owner, fact.date, id), keys::archived_block(owner, fact.date, id)] {
            if let Some(Versioned { value, version }) = cx.store.block(&key).await?
                && value.facts.contains(&fact.fact_id)
            {
                let item = item(&value.without(fact.fact_id), &Extras::default())?;
                refused |= !cx.store.write_all(vec![Write::Replace { key, version, item }]).await?.done();
            }
        }
        if !refused {
            return Ok(());
        }
    }
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
        text_sha256: text_sha256(&fact.text),
        date,
    }
}

fn kept_away(owner: &Owner, tombstone: &Tombstone) -> Result<[Write; 2]> {
    let plain = Extras::default();
    let key = keys::tombstone(owner, tombstone.fact_id);
    let tombstone = Write::Put { key, item: item(tombstone, &plain)? };
    // A tidying or a rollback that has read the fact may not end with it: it finds that this record has changed, and begins again.
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
    // The others may be changed at the same time, by a tidying or because of another fact. Then they are read again.
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
