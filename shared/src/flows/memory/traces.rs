//! What is left of a fact that a person deletes or corrects, besides what names the fact: messages that say the same, replies that were
//! told it, titles, summaries of conversations, cards, and what the runs of actions hand on.

use std::collections::{BTreeMap, BTreeSet};

use domain::actions::{Action, Notebook};
use domain::chats::Chat;
use domain::chats::conversation::title_of;
use domain::ids::{ChatId, FactId, MessageId, Owner, RunId, instant_of};
use domain::memory::part::{Collection, MemoryPart};
use domain::memory::session::SaidBy;
use domain::memory::told::{Mark, Told};
use domain::memory::{Card, CardText, Fact, Quoted, Source, UNTITLED};
use domain::runs::Run;
use futures::stream::{self, StreamExt, TryStreamExt};
use jiff::Timestamp;
use memory::{Index, Kind, Query, SAYS, says, share_of_words};

use super::forgotten::Forgotten;
use super::{index, schedules, sources};
use crate::blobs::{BlobError, BlobKey};
use crate::context::{Cx, Data};
use crate::error::{Error, Result};
use crate::flows::messages;
use crate::store::chats::messages::StoredMessage;
use crate::store::keys;
use crate::store::table::{Extras, Order, Write, item};
use crate::store::{Store, Tries, Versioned};

/// How many messages are looked at because they have words of a fact.
const MOST_REPETITIONS: usize = 1_000;

/// How many conversations or outputs are read at once.
const AT_ONCE: usize = 8;

/// How many records a page has.
const PAGE: usize = 200;

/// How many marks one transaction writes.
const MARKS: usize = 50;

/// The messages that say nearly the same as a fact, in any conversation: people repeat themselves, and a model repeats what it was
/// told. `instead`: what is true now. A message that says this at least as much is left out.
///
/// # Errors
/// If the index can't be read.
pub(super) async fn repetitions(
    cx: &Cx,
    owner: &Owner,
    fact: &str,
    instead: Option<&str>,
) -> Result<Vec<Quoted>> {
    let index = index::current(cx, owner).await?;
    let zone = schedules::zone_of(cx, owner, None).await?;
    let (now, fact, instead) = (cx.clock.now(), fact.to_owned(), instead.map(str::to_owned));
    let found = move || {
        let query = Query { limit: MOST_REPETITIONS, kinds: &[Kind::Raw], ..Query::new(&fact, now, zone) };
        repeated(&index, &query, instead.as_deref())
    };
    cx.compute.answers.run(move |_| Ok(found())).await
}

fn repeated(index: &Index, query: &Query<'_>, instead: Option<&str>) -> Vec<Quoted> {
    let mut messages: BTreeMap<Source, Vec<String>> = BTreeMap::new();
    for hit in index.search(query).hits {
        let share = share_of_words(query.text, hit.text);
        let says_what_is_true = instead.is_some_and(|instead| share_of_words(instead, hit.text) >= share);
        if share >= SAYS
            && !says_what_is_true
            && let Ok(source) = hit.session.parse()
        {
            messages.entry(source).or_default().push(hit.document.to_owned());
        }
    }
    messages.into_iter().map(|(source, message_ids)| Quoted { source, message_ids }).collect()
}

/// Whether one of the facts is said in a line of a text.
fn is_said_in(facts: &[String], text: &str) -> bool {
    text.lines().any(|line| facts.iter().any(|fact| says(line, fact)))
}

/// The outputs that runs hand on to the next run and that say a fact.
///
/// # Errors
/// If the table or the bucket does not answer.
pub(super) async fn outputs(cx: &Cx, owner: &Owner, fact: &str) -> Result<Vec<Quoted>> {
    let facts = [fact.to_owned()];
    let mut last = Vec::new();
    for action in all_actions(cx, owner).await? {
        last.extend(cx.store.last_outputs(owner, action.id).await?.outputs);
    }
    let read = last.into_iter().map(async |output| {
        let id = output.asset_id;
        let Some(asset) = cx.store.asset(owner, id).await? else { return Ok(None) };
        let content = BlobKey::asset(owner, id, &asset.value.newest_version().sha256);
        match cx.blobs.get_text(&content).await {
            Ok(text) => Ok(is_said_in(&facts, &text).then_some(output)),
            Err(BlobError::Missing { .. }) => Ok(None),
            Err(error) => Err(Error::from(error)),
        }
    });
    let said: Vec<_> = stream::iter(read).buffered(AT_ONCE).try_collect().await?;
    let quoted = said.into_iter().flatten().map(|output| Quoted {
        source: Source::Run(output.run_id),
        message_ids: vec![output.asset_id.to_string()],
    });
    Ok(quoted.collect())
}

/// The cards that say a fact. They are deleted, and so are their texts where a model was told them, so their ids stand among those of its
/// messages.
///
/// # Errors
/// If the table does not answer.
pub(super) async fn in_cards(data: &Data, owner: &Owner, fact: &Fact) -> Result<Vec<Quoted>> {
    let Some(source) = fact.sources.first().map(|quoted| quoted.source.clone()) else {
        return Ok(Vec::new());
    };
    let texts = [fact.text.clone()];
    let says = |card: &Card| is_said_in(&texts, &words_of(card));
    let cards = data.store.all_cards(owner).await?.into_iter().filter(says);
    let message_ids: Vec<String> = cards.map(|card| card.card_id.to_string()).collect();
    Ok(if message_ids.is_empty() { Vec::new() } else { vec![Quoted { source, message_ids }] })
}

/// All that a card says.
fn words_of(card: &Card) -> String {
    let named = card.text.named();
    let all: Vec<&str> = named.into_iter().map(|(_, text)| text).chain([card.title.as_str()]).collect();
    all.join(" ")
}

async fn all_actions(data: &Data, owner: &Owner) -> Result<Vec<Action>> {
    let (mut all, mut after) = (Vec::new(), None::<String>);
    loop {
        let found = data.store.actions(owner, after.as_deref(), PAGE).await?;
        all.extend(found.items.into_iter().map(|(_, action)| action.value));
        after = found.last;
        if after.is_none() {
            return Ok(all);
        }
    }
}

/// The messages of all conversations since a time of which `wanted` says something.
async fn scanned<T: Send>(
    cx: &Cx,
    owner: &Owner,
    since: Timestamp,
    wanted: impl Fn(StoredMessage) -> Option<T> + Send + Sync,
) -> Result<Vec<(Source, Vec<T>)>> {
    let wanted = &wanted;
    let read = async |source: Source| {
        let mut found = Vec::new();
        let Some(thread) = sources::thread_of(&source) else { return Ok((source, found)) };
        let mut after = Some(sources::just_before(since));
        while after.is_some() {
            let page = cx.store.messages(owner, thread, after.as_deref(), PAGE, Order::Oldest).await?;
            found.extend(page.items.into_iter().filter_map(|(_, stored)| wanted(stored.value)));
            after = page.last;
        }
        Ok::<_, Error>((source, found))
    };
    let all = index::all_sources(cx, owner).await?;
    let mut scanned: Vec<(Source, Vec<T>)> =
        stream::iter(all.into_iter().map(read)).buffered(AT_ONCE).try_collect().await?;
    scanned.retain(|(_, found)| !found.is_empty());
    Ok(scanned)
}

/// A reply that was told something that is forgotten.
struct ToldReply {
    id: MessageId,
    told: Told,
    /// The hashes of its words. `None` if it is so long that they are stored elsewhere.
    words: Option<Vec<u32>>,
}

/// Replies that were told something that is forgotten.
pub(super) struct ToldReplies(Vec<(Source, Vec<ToldReply>)>);

impl ToldReplies {
    /// Their conversations.
    pub fn sources(&self) -> BTreeSet<Source> {
        self.0.iter().map(|(source, _)| source.clone()).collect()
    }

    pub fn ids(&self) -> impl Iterator<Item = MessageId> {
        self.0.iter().flat_map(|(_, replies)| replies.iter().map(|reply| reply.id))
    }

    /// The parts of the index with those that are hidden.
    pub fn hidden_parts(&self, forgotten: &Forgotten) -> BTreeSet<MemoryPart> {
        let is_hidden = |reply: &&ToldReply| match &reply.words {
            Some(words) => forgotten.hides_reply(&reply.told, || words.clone()),
            None => true,
        };
        let hidden = |(source, replies): &(Source, Vec<ToldReply>)| -> Vec<MemoryPart> {
            let part =
                |reply: &ToldReply| MemoryPart::with(Collection::Messages(source.clone()), reply.id.uuid());
            replies.iter().filter(is_hidden).map(part).collect()
        };
        self.0.iter().flat_map(hidden).collect()
    }
}

/// The replies since a time that were told something that is forgotten, for whatever reason.
///
/// # Errors
/// If the table does not answer.
pub(super) async fn told(
    cx: &Cx,
    owner: &Owner,
    forgotten: &Forgotten,
    since: Timestamp,
) -> Result<ToldReplies> {
    let was_told = |StoredMessage { message, overflow }: StoredMessage| {
        forgotten.was_told(&message.told).then(|| ToldReply {
            id: message.message_id,
            words: (!overflow).then(|| memory::word_hashes(&message.all_words())),
            told: message.told,
        })
    };
    Ok(ToldReplies(scanned(cx, owner, since, was_told).await?))
}

/// For each fact, the hashes of the words that tell of it. `told`: the replies that were told it. `quoted`: the messages that say it.
///
/// # Errors
/// If the index or the table can't be read.
pub(super) async fn telling(
    cx: &Cx,
    owner: &Owner,
    facts: &[Fact],
    (told, quoted): (&ToldReplies, &[Quoted]),
) -> Result<Vec<Vec<u32>>> {
    let mut texts: Vec<(String, Vec<String>)> = Vec::new();
    for fact in facts {
        texts.push((fact.text.clone(), messages_of(cx, owner, fact).await?));
    }
    let mut of_it: BTreeSet<String> = told.ids().map(|id| id.to_string()).collect();
    of_it.extend(quoted.iter().flat_map(|quoted| quoted.message_ids.iter().cloned()));
    of_it.extend(facts.iter().map(|fact| fact.fact_id.to_string()));
    for quoted in quoted.iter().filter(|quoted| matches!(quoted.source, Source::Outside(_))) {
        let session = sources::session(cx, owner, &quoted.source, &Forgotten::default()).await?;
        let said = session.into_iter().flat_map(|session| session.messages);
        of_it.extend(said.filter(|said| said.role != SaidBy::Person).map(|said| said.id));
    }
    let index = index::current(cx, owner).await?;
    let words = move || {
        let telling = texts
            .iter()
            .map(|(fact, messages)| index.telling_words(fact, messages, |key| of_it.contains(key)));
        telling.collect()
    };
    cx.compute.answers.run(move |_| Ok(words())).await
}

/// The texts of the messages that a fact comes from.
async fn messages_of(cx: &Cx, owner: &Owner, fact: &Fact) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for quoted in &fact.sources {
        for part in sources::parts_of(cx, owner, quoted).await? {
            let Some(day) = part.day else { continue };
            // They are hidden already.
            let all = Forgotten::default();
            let session = sources::day(cx, owner, &quoted.source, day, &all).await?;
            let said = session.into_iter().flat_map(|session| session.messages);
            let said = said.filter(|said| quoted.message_ids.contains(&said.id));
            texts.extend(said.map(|said| said.own_words().into_owned()));
        }
    }
    Ok(texts)
}

/// The replies that were told a fact which is corrected now, or the messages that said it, and that have a word of it which is not true any more.
///
/// # Errors
/// If the table does not answer.
pub(super) async fn told_what_was(
    cx: &Cx,
    owner: &Owner,
    (old, new): (&Fact, &str),
    said: &[Quoted],
) -> Result<Vec<Quoted>> {
    let mut marks: BTreeSet<Mark> = Mark::of(&old.fact_id.to_string()).into_iter().collect();
    marks.extend(said.iter().flat_map(|quoted| &quoted.message_ids).filter_map(|id| Mark::of(id)));
    let still_true = share_of_words(&old.text, new);
    let says_what_was = |stored: StoredMessage| {
        let message = &stored.message;
        if !message.told.has_any(&marks) {
            return None;
        }
        let both = format!("{new}\n{}", message.text());
        let says = stored.overflow || share_of_words(&old.text, &both) > still_true;
        says.then(|| message.message_id.to_string())
    };
    let found = scanned(cx, owner, first_of(std::slice::from_ref(old), said), says_what_was).await?;
    let quoted = found.into_iter().map(|(source, mut message_ids)| {
        message_ids.truncate(MOST_REPETITIONS);
        Quoted { source, message_ids }
    });
    Ok(quoted.collect())
}

/// When the first of these messages was written, or the first of these facts was learned.
pub(super) fn first_of(facts: &[Fact], quoted: &[Quoted]) -> Timestamp {
    let ids = quoted.iter().flat_map(|quoted| &quoted.message_ids);
    let said = ids.filter_map(|id| id.parse::<MessageId>().ok()).map(|id| instant_of(id.uuid()));
    said.chain(facts.iter().map(|fact| fact.created_at)).min().unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Marks parts of the index as changed.
///
/// # Errors
/// If the table does not answer.
pub(super) async fn mark(cx: &Cx, owner: &Owner, parts: BTreeSet<MemoryPart>) -> Result<()> {
    let parts: Vec<MemoryPart> = parts.into_iter().collect();
    for some in parts.chunks(MARKS) {
        let marks = Store::hidden_marks(owner, some.iter().cloned(), cx.clock.uuid(), cx.clock.now())?;
        let _ = cx.store.write_all(marks).await?;
    }
    Ok(())
}

/// Takes these facts out of what does not name them: titles of chats, summaries of conversations, notebooks and cards. `quoted`: the
/// messages that are hidden. `told`: the conversations with replies that were told the facts. `forgotten`: these facts.
///
/// # Errors
/// If the table or the bucket does not answer.
pub(super) async fn clear(
    cx: &Cx,
    owner: &Owner,
    facts: &[Fact],
    (quoted, told, forgotten): (&[Quoted], &BTreeSet<Source>, &Forgotten),
) -> Result<()> {
    let texts: Vec<String> =
        facts.iter().map(|fact| fact.text.clone()).collect::<BTreeSet<_>>().into_iter().collect();
    titles(cx, owner, &texts, quoted).await?;
    summaries(cx, owner, quoted, (told, forgotten)).await?;
    for action in all_actions(cx, owner).await? {
        notebook(cx, owner, &action, &texts).await?;
        old_notebooks(cx, owner, &action, &texts).await?;
    }
    cards(cx, owner, facts, &texts).await
}

/// A chat is called by the beginning of its first message.
async fn titles(cx: &Cx, owner: &Owner, texts: &[String], quoted: &[Quoted]) -> Result<()> {
    let mut hidden: BTreeMap<ChatId, Vec<MessageId>> = BTreeMap::new();
    for quoted in quoted {
        if let Source::Chat(id) = quoted.source {
            let ids = quoted.message_ids.iter().filter_map(|id| id.parse::<MessageId>().ok());
            hidden.entry(id).or_default().extend(ids);
        }
    }
    let mut after: Option<String> = None;
    loop {
        let found = cx.store.chats(owner, after.as_deref(), PAGE).await?;
        for (_, chat) in found.items {
            let Chat { chat_id, title, .. } = chat.value;
            let hidden = hidden.get(&chat_id).map_or(&[][..], Vec::as_slice);
            let says = is_said_in(texts, &title) || is_title_of(cx, owner, chat_id, &title, hidden).await?;
            if says && title != UNTITLED {
                untitle(cx, owner, chat_id, &title).await?;
            }
        }
        after = found.last;
        if after.is_none() {
            return Ok(());
        }
    }
}

/// Whether a title is cut from one of these messages.
async fn is_title_of(
    cx: &Cx,
    owner: &Owner,
    chat: ChatId,
    title: &str,
    messages: &[MessageId],
) -> Result<bool> {
    for id in messages {
        let stored = cx.store.message(owner, chat.into(), *id).await?;
        let whole = messages::whole(cx, owner, chat, stored.into_iter().collect()).await?;
        if whole.iter().any(|message| title_of(&message.text()) == title) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Replaces a title, unless it was changed since.
async fn untitle(cx: &Cx, owner: &Owner, id: ChatId, title: &str) -> Result<()> {
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let Some(Versioned { value, version }) = cx.store.chat(owner, id).await? else { return Ok(()) };
        if value.title != title {
            return Ok(());
        }
        let chat = Chat { title: UNTITLED.to_owned(), ..value };
        let key = keys::chat(owner, id);
        let write = Write::Replace { key, version, item: item(&chat, &Extras::default())? };
        if cx.store.write_all(vec![write]).await?.done() {
            return Ok(());
        }
    }
}

/// Deletes the summaries of conversations that cover a hidden message, or that speak of a fact which a reply was told. The next turn writes
/// another one.
async fn summaries(
    cx: &Cx,
    owner: &Owner,
    quoted: &[Quoted],
    (told, forgotten): (&BTreeSet<Source>, &Forgotten),
) -> Result<()> {
    for quoted in quoted {
        let Some(thread) = sources::thread_of(&quoted.source) else { continue };
        let Some(Versioned { value, version }) = cx.store.summary(owner, thread).await? else { continue };
        let mut hidden = quoted.message_ids.iter().filter_map(|id| id.parse::<MessageId>().ok());
        if hidden.any(|id| (value.first..=value.up_to).contains(&id)) {
            cx.store.delete_summary(owner, thread, version).await?;
        }
    }
    for source in told {
        let Some(thread) = sources::thread_of(source) else { continue };
        let Some(Versioned { value, version }) = cx.store.summary(owner, thread).await? else { continue };
        if forgotten.may_speak_in(&memory::word_hashes(&value.text)) {
            cx.store.delete_summary(owner, thread, version).await?;
        }
    }
    Ok(())
}

/// Takes the lines that say a fact out of the notebook of an action.
async fn notebook(cx: &Cx, owner: &Owner, action: &Action, texts: &[String]) -> Result<()> {
    let mut tries = Tries::default();
    loop {
        tries.next().await?;
        let current = cx.store.notebook(owner, action.id).await?;
        if !is_said_in(texts, &current.text) {
            return Ok(());
        }
        let kept: Vec<&str> = current.text.lines().filter(|line| !is_said_in(texts, line)).collect();
        let mut next = current.rewritten(kept.join("\n"), current.run_id, cx.clock.now())?;
        // The runs that have begun since it was written get it without these lines, too.
        (next.tainted, next.written_at) = (current.tainted, current.written_at);
        let mut writes = Store::notebook_writes(owner, action.id, &next)?;
        writes.push(Write::Exists { key: keys::action(owner, action.id) });
        if cx.store.write_all(writes).await?.done() || cx.store.action(owner, action.id).await?.is_none() {
            return Ok(());
        }
    }
}

/// Takes the lines that say a fact out of the versions that are kept of a notebook.
async fn old_notebooks(cx: &Cx, owner: &Owner, action: &Action, texts: &[String]) -> Result<()> {
    let mut after: Option<String> = None;
    loop {
        let found = cx.store.notebook_versions(owner, action.id, after.as_deref(), PAGE).await?;
        for (_, Versioned { value, version }) in found.items {
            if !is_said_in(texts, &value.text) {
                continue;
            }
            let kept: Vec<&str> = value.text.lines().filter(|line| !is_said_in(texts, line)).collect();
            let key = keys::notebook_version(owner, action.id, value.version);
            let kept = Notebook { text: kept.join("\n"), ..value };
            // Nobody else changes a version. One that was deleted meanwhile stays so.
            let write = Write::Replace { key, version, item: item(&kept, &Extras::default())? };
            let _ = cx.store.write_all(vec![write]).await?;
        }
        after = found.last;
        if after.is_none() {
            return Ok(());
        }
    }
}

/// Deletes the cards that say a fact. A card about a run that was told it loses the titles of outputs and the status, if one of these has
/// a word of the fact.
async fn cards(cx: &Cx, owner: &Owner, facts: &[Fact], texts: &[String]) -> Result<()> {
    let ids: BTreeSet<FactId> = facts.iter().map(|fact| fact.fact_id).collect();
    let cards = cx.store.all_cards(owner).await?;
    let of_runs = cards.iter().filter_map(|card| match card.source {
        Some(Source::Run(id)) => Some(id),
        _ => None,
    });
    let of_runs: Vec<RunId> = of_runs.collect();
    let was_told = |run: &Run| {
        let mut told = run
            .recalled
            .iter()
            .flat_map(|one| one.of.parse().ok().into_iter().chain(one.other_facts.clone()));
        told.any(|fact| ids.contains(&fact))
    };
    let told: BTreeSet<RunId> = cx
        .store
        .runs(owner, &of_runs)
        .await?
        .iter()
        .filter(|run| was_told(run))
        .map(|run| run.run_id)
        .collect();
    for card in cards {
        let says = is_said_in(texts, &words_of(&card));
        let is_of_told = matches!(card.source, Some(Source::Run(id)) if told.contains(&id));
        let by_run = format!("{} {}", card.text.artifacts, card.text.status);
        let hints = is_of_told && texts.iter().any(|text| share_of_words(text, &by_run) > 0.0);
        let key = keys::memory_card(owner, card.card_id);
        let part = MemoryPart::with(Collection::Cards, card.card_id.uuid());
        let write = if says {
            Write::Delete { key, must_exist: false }
        } else if hints {
            let text = CardText { artifacts: String::new(), status: String::new(), ..card.text };
            Write::Put { key, item: item(&Card { text, ..card }, &Extras::default())? }
        } else {
            continue;
        };
        let mut writes = Store::hidden_marks(owner, [part], cx.clock.uuid(), cx.clock.now())?;
        writes.push(write);
        let _ = cx.store.write_all(writes).await?;
    }
    Ok(())
}
