//! Memory as files, in the layout of OpenClaw. The zip is written while it is sent, so only a little of it is in memory.
//!
//! What was deleted is in no file, and what was corrected is in no file as current. A message that a deleted fact came from is left out:
//! a search in another place would find it again.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use domain::ids::Owner;
use domain::memory::session::Said;
use domain::memory::{Block, Card, Source, markdown, openclaw};
use futures::Stream;
use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::{Map, Value, json};

use super::forgotten::Forgotten;
use super::{shown, sources};
use crate::context::Cx;
use crate::error::Result;
use crate::flows::archive::{self, Sent, Stopped};
use crate::store::memory::{OutsideMessage, OutsideSession};
use crate::store::table::Order;

/// How many messages of a session are read at once.
const PAGE: usize = 200;

/// Everything of a memory as a zip, piece by piece. It ends with an error if something could not be read.
pub fn archive(cx: Cx, owner: Owner) -> impl Stream<Item = Result<Bytes>> + use<> {
    archive::sent(|zip| async move { write(&cx, &owner, zip).await })
}

async fn write(cx: &Cx, owner: &Owner, mut zip: Sent) -> Result<(), Stopped> {
    let long_term = shown::long_term(cx, owner).await?.markdown;
    if !long_term.is_empty() {
        zip.whole_file("MEMORY.md", &long_term).await?;
    }
    days(cx, owner, &mut zip).await?;
    for week in cx.store.memory_weeks(owner).await? {
        let week = week.value;
        if !week.lines.is_empty() {
            zip.whole_file(&format!("memory/weekly/{}.md", week.monday), &markdown::week(&week)).await?;
        }
    }
    let mut days: BTreeMap<Date, Vec<Card>> = BTreeMap::new();
    for card in cx.store.all_cards(owner).await? {
        days.entry(card.date).or_default().push(card);
    }
    for (date, mut cards) in days {
        cards.sort_by(|a, b| (&a.time, a.card_id).cmp(&(&b.time, b.card_id)));
        zip.whole_file(&format!("memory/tasks/{date}.md"), &markdown::cards(date, &cards)).await?;
    }
    sessions(cx, owner, &mut zip).await?;
    let processed = processed(cx, owner).await?;
    zip.whole_file("memory/state/processed-sessions.json", &format!("{processed:#}\n")).await?;
    zip.finish().await
}

/// The days. One of which all is archived is in the folder of its year.
async fn days(cx: &Cx, owner: &Owner, zip: &mut Sent) -> Result<(), Stopped> {
    let mut days: BTreeMap<Date, Vec<Block>> = BTreeMap::new();
    let (open, archived) =
        futures::try_join!(cx.store.open_blocks(owner), cx.store.archived_blocks(owner, None))?;
    for block in open.into_iter().chain(archived) {
        days.entry(block.value.date).or_default().push(block.value);
    }
    for (date, blocks) in days {
        let is_archived = blocks.iter().all(|block| block.archived_by.is_some());
        let text = shown::blocks_markdown(cx, owner, date, blocks).await?;
        // Everything that it has taught was deleted or corrected.
        if text == markdown::day(date, &[]) {
            continue;
        }
        let path = match is_archived {
            true => format!("memory/archive/{}/{date}.md", date.year()),
            false => format!("memory/{date}.md"),
        };
        zip.whole_file(&path, &text).await?;
    }
    Ok(())
}

/// The outside sessions, and which of them a schedule has begun.
async fn sessions(cx: &Cx, owner: &Owner, zip: &mut Sent) -> Result<(), Stopped> {
    let forgotten = Forgotten::of(cx, owner).await?;
    let mut scheduled = Map::new();
    for session in cx.store.outside_sessions(owner).await? {
        let OutsideSession { session_id, namespace, created_at, by_schedule, .. } = &session;
        let source = Source::Outside(session_id.clone());
        let is_hidden = |said: &Said| forgotten.hides_said(&source, said);
        // A message whose parent is left out gets the parent of that.
        let mut links: BTreeMap<String, Option<String>> = BTreeMap::new();
        if !forgotten.in_source(&source).is_empty() {
            let mut pages = Messages::new(owner, &session);
            while let Some(page) = pages.next(cx).await? {
                let gone = page.into_iter().filter(is_hidden);
                links.extend(gone.map(|said| (said.id, said.parent_id)));
            }
        }
        zip.file(&format!("sessions/{session_id}.jsonl"))?;
        zip.write(openclaw::header(session_id.as_str(), namespace, *created_at).as_bytes()).await?;
        let mut pages = Messages::new(owner, &session);
        while let Some(page) = pages.next(cx).await? {
            for said in page.iter().filter(|said| !is_hidden(said)) {
                let parent = parent_of(said, &links);
                zip.write(openclaw::line(said, parent).as_bytes()).await?;
            }
        }
        if *by_schedule {
            scheduled.insert(format!("cron:{session_id}"), json!({"sessionId": session_id.as_str()}));
        }
    }
    if !scheduled.is_empty() {
        let text = format!("{:#}\n", Value::Object(scheduled));
        zip.whole_file("sessions/sessions.json", &text).await?;
    }
    Ok(())
}

/// The nearest ancestor that is not left out.
fn parent_of<'a>(said: &'a Said, left_out: &'a BTreeMap<String, Option<String>>) -> Option<&'a str> {
    let (mut parent, mut seen) = (said.parent_id.as_deref(), BTreeSet::new());
    while let Some(next) = parent.and_then(|id| left_out.get(id)) {
        // A circle leads to nothing.
        if !seen.insert(parent) {
            return None;
        }
        parent = next.as_deref();
    }
    parent
}

/// The messages of an outside session, page by page, in the order of their arrival.
struct Messages<'a> {
    owner: &'a Owner,
    session: &'a OutsideSession,
    after: Option<String>,
    is_done: bool,
}

impl<'a> Messages<'a> {
    fn new(owner: &'a Owner, session: &'a OutsideSession) -> Self {
        Self { owner, session, after: None, is_done: false }
    }

    async fn next(&mut self, cx: &Cx) -> Result<Option<Vec<Said>>> {
        if self.is_done {
            return Ok(None);
        }
        let (id, after) = (&self.session.session_id, self.after.as_deref());
        let page = cx.store.outside_messages(self.owner, id, after, PAGE, Order::Oldest).await?;
        self.is_done = page.last.is_none();
        self.after = page.last;
        let said =
            |(_, message): (String, crate::store::Versioned<OutsideMessage>)| sources::timed(message.value);
        Ok(Some(page.items.into_iter().map(said).collect()))
    }
}

/// The state of each conversation that was learned last.
async fn processed(cx: &Cx, owner: &Owner) -> Result<Value> {
    let learned = cx.store.all_learned(owner).await?;
    let newest = learned.iter().map(|learned| learned.at).max().unwrap_or(Timestamp::UNIX_EPOCH);
    let of = |learned: &crate::store::memory::Learned| {
        let state = json!({
            "lastFingerprint": learned.fingerprint,
            "lastProcessedAt": learned.at.as_millisecond(),
        });
        (learned.source.to_string(), state)
    };
    let sessions: Map<String, Value> = learned.iter().map(of).collect();
    Ok(json!({
        "version": 2, "updatedAt": newest.as_millisecond(), "schema": "message-fingerprint-v1", "sessions": sessions,
    }))
}
