//! Memory: facts, and what is built from them.

use domain::log::SessionId;
use domain::memory::tombstone::Tombstone;
use domain::memory::{Block, Card, Fact, Week};
use serde_json::Value;

use super::{KeptOrNot, Location, keep, read, valid};
use crate::store::keys;
use crate::store::memory::{
    Learned, LongTermRecord, MemoryKept, OutsideMessage, OutsideOnce, OutsideSession, TidyRecord,
};

pub(super) fn block(place: &Location<'_>, record: &Value) -> KeptOrNot {
    let block: Block = read(record)?;
    valid(block.check())?;
    let key = match block.archived_by {
        None => keys::memory_block,
        Some(_) => keys::archived_block,
    };
    keep(key(place.owner, block.date, block.block_id), &block)
}

pub(super) fn card(place: &Location<'_>, record: &Value) -> KeptOrNot {
    let card: Card = read(record)?;
    valid(card.check())?;
    keep(keys::memory_card(place.owner, card.card_id), &card)
}

pub(super) fn fact(place: &Location<'_>, record: &Value) -> KeptOrNot {
    let fact: Fact = read(record)?;
    valid(fact.check())?;
    keep(keys::memory_fact(place.owner, fact.fact_id), &fact)
}

pub(super) fn kept(place: &Location<'_>, record: &Value) -> KeptOrNot {
    keep(keys::memory_kept(place.owner), &read::<MemoryKept>(record)?)
}

pub(super) fn learned(place: &Location<'_>, record: &Value) -> KeptOrNot {
    let learned: Learned = read(record)?;
    keep(keys::learned(place.owner, &learned.source), &learned)
}

pub(super) fn long_term(place: &Location<'_>, record: &Value) -> KeptOrNot {
    let long_term: LongTermRecord = read(record)?;
    valid(long_term.memory.check())?;
    keep(keys::long_term(place.owner), &long_term)
}

pub(super) fn long_term_version(place: &Location<'_>, record: &Value) -> KeptOrNot {
    let long_term: LongTermRecord = read(record)?;
    valid(long_term.memory.check())?;
    let version = place.sk.strip_prefix("LONGV#").and_then(|number| number.parse().ok());
    let version = version.ok_or("the key must end with the number of a version")?;
    keep(keys::long_term_version(place.owner, version), &long_term)
}

pub(super) fn outside_session(place: &Location<'_>, record: &Value) -> KeptOrNot {
    let session: OutsideSession = read(record)?;
    keep(keys::outside_session(place.owner, &session.session_id), &session)
}

pub(super) fn outside_once(place: &Location<'_>, session: &SessionId, record: &Value) -> KeptOrNot {
    let mark: OutsideOnce = read(record)?;
    keep(keys::outside_once(place.owner, session, &mark.id), &mark)
}

pub(super) fn outside_message(place: &Location<'_>, session: &SessionId, record: &Value) -> KeptOrNot {
    let message: OutsideMessage = read(record)?;
    valid(message.said.check())?;
    keep(keys::outside_message(place.owner, session, message.arrived), &message)
}

pub(super) fn tidy(place: &Location<'_>, record: &Value) -> KeptOrNot {
    let tidy: TidyRecord = read(record)?;
    keep(keys::memory_tidy(place.owner, tidy.tidy_id), &tidy)
}

pub(super) fn tombstone(place: &Location<'_>, record: &Value) -> KeptOrNot {
    let tombstone: Tombstone = read(record)?;
    keep(keys::tombstone(place.owner, tombstone.fact_id), &tombstone)
}

pub(super) fn week(place: &Location<'_>, record: &Value) -> KeptOrNot {
    let week: Week = read(record)?;
    valid(week.check())?;
    keep(keys::memory_week(place.owner, week.monday), &week)
}
