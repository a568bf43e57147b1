//! The import of OpenClaw's files: its memory, sessions, cards and jobs become a part of an account, which need not be empty.
//!
//! The archive is read as that of an account is: first all of it, and nothing is written if anything of it can't be read. Then the
//! files are written one by one, in the order of the archive. Each has a number, and the job notes how many are done, so another executor
//! continues with the next one. A file that was written in part is written again: ids are hashes of what is written, and what exists stays.
//!
//! All texts are data of strangers. Sessions become outside sessions, of which nothing is believed until a person confirms it, and jobs
//! become actions that a person must approve.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, BufRead, BufReader, Read};

use domain::accounts::import::AccountImport;
use domain::actions::DefineAction;
use domain::agents::{Agent, NewAgent};
use domain::history::{Change, ChangedBy};
use domain::ids::{AgentId, Owner};
use domain::log::SessionId;
use domain::memory::openclaw::{self, Job, Known, MAX_LINE, Transcript, TranscriptReader, told};
use domain::memory::session::{MAX_MESSAGES, Said};
use domain::memory::{Card, markdown};
use domain::text::quoting::one_line;
use domain::work::TaskConfigPatch;
use jiff::civil::{Date, time};
use jiff::tz::TimeZone;
use tokio::sync::mpsc;

use super::stopped::{Stop, Unreadable};
use crate::blobs::BlobReader;
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::actions;
use crate::flows::archive::{self, ArchiveError, ArchiveLimits, Ratio};
use crate::flows::background::lease::ClaimedJob;
use crate::flows::memory::outside::{self, Ingest, Ingested};
use crate::flows::memory::{cards, facts, shown};
use crate::flows::schedules;
use crate::request::caller::IfMatch;
use crate::store::Once;

/// What an archive may have. The bytes are counted here, because a session is read line by line.
const LIMITS: ArchiveLimits = ArchiveLimits {
    entries: 50_000,
    entry_bytes: u64::MAX,
    total_bytes: u64::MAX,
    path_bytes: 1_000,
    ratio: Some(Ratio { entry: 250, archive: 100 }),
};

/// The most agents that the jobs of an archive become.
const MAX_AGENTS: usize = 50;

/// How many files that are left out are counted at once.
const COUNTED_AT: u64 = 500;

/// The work of one executor.
pub(super) struct Work<'a> {
    pub cx: &'a Cx,
    pub owner: &'a Owner,
    pub claimed: ClaimedJob<'a, AccountImport>,
    pub reader: BlobReader,
    /// The most bytes of all files that the platform knows, inflated.
    pub most_bytes: u64,
}

/// What a pass over the archive is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    Check,
    /// Without this many files, which are written.
    Write(u64),
}

/// What of the archive the executor must know.
enum Piece {
    /// The check has read a file.
    Read,
    /// So many files that the platform does not know.
    Unknown(u64),
    TooLarge(String, u64),
    Text(String, Known, Vec<u8>),
    Session {
        path: String,
        agent: Option<String>,
        name: String,
        read: Box<Transcript>,
    },
}

/// The sessions that jobs have begun, by their agents.
type Scheduled = HashMap<Option<String>, BTreeSet<String>>;

impl Work<'_> {
    pub(super) async fn everything(&mut self) -> Result<(), Stop> {
        let folder = self.folder().await?;
        let scheduled = self.check(&folder).await?;
        let zone = schedules::zone_of(self.cx, self.owner, None).await?;
        let (mut pieces, reading) = self.begin(&folder, Pass::Write(self.claimed.job.position.lines));
        while let Some(piece) = pieces.recv().await {
            let files = match &piece {
                Piece::Unknown(files) => *files,
                _ => 1,
            };
            self.write(piece, &scheduled, &zone).await?;
            self.claimed.job.position.objects = 0;
            self.claimed.job.advance(0, files);
            self.claimed.keep().await?;
        }
        self.end(reading).await
    }

    /// The folder that all files are in.
    async fn folder(&self) -> Result<String, Stop> {
        let reader = self.reader.clone();
        let reading = tokio::task::spawn_blocking(move || {
            let mut paths: Vec<String> = Vec::new();
            let read = archive::stream(reader, &LIMITS, |path, _| {
                paths.push(path.to_owned());
                Ok::<(), Unreadable>(())
            });
            read.map(|()| openclaw::common_folder(paths.iter().map(String::as_str)))
        });
        self.end(reading).await
    }

    /// Reads everything and writes nothing. Returns the sessions that jobs have begun, because their names may come after them.
    async fn check(&mut self, folder: &str) -> Result<Scheduled, Stop> {
        let (mut pieces, reading) = self.begin(folder, Pass::Check);
        let (mut scheduled, mut is_any) = (Scheduled::new(), false);
        while let Some(piece) = pieces.recv().await {
            is_any = true;
            if let Piece::Text(_, Known::SessionKeys { agent }, json) = piece {
                scheduled
                    .entry(agent)
                    .or_default()
                    .extend(openclaw::scheduled_sessions(&json).unwrap_or_default());
            }
            self.claimed.keep().await?;
        }
        self.end(reading).await?;
        if is_any {
            return Ok(scheduled);
        }
        let told = "the archive has none of the files of OpenClaw, such as MEMORY.md, memory/2026-02-01.md, agents/main/sessions/….jsonl \
                    and cron/jobs.json";
        Err(Stop::Invalid(told.to_owned()))
    }

    async fn write(&mut self, piece: Piece, scheduled: &Scheduled, zone: &TimeZone) -> Result<(), Stop> {
        match piece {
            Piece::Read => Ok(()),
            Piece::Unknown(files) => {
                self.leave_out("files", files);
                Ok(())
            }
            Piece::TooLarge(path, limit) => {
                self.leave_out("files", 1);
                self.note(&path, &format!("it was left out, because it has more than {limit} bytes"));
                Ok(())
            }
            Piece::Text(path, file, bytes) => self.text(&path, &file, &bytes, zone).await,
            Piece::Session { path, agent, name, read } => {
                self.transcript(&path, (agent, &name), *read, scheduled).await
            }
        }
    }

    async fn text(&mut self, path: &str, file: &Known, bytes: &[u8], zone: &TimeZone) -> Result<(), Stop> {
        let text = String::from_utf8_lossy(bytes);
        match file {
            Known::LongTerm => self.long_term(path, &text).await,
            Known::Day(date) | Known::Week(date) => {
                let Some(id) = openclaw::texts_id(file) else { return Ok(()) };
                let noon = date.to_datetime(time(12, 0, 0, 0)).to_zoned_datetime(zone.clone());
                let at = noon.map_err(|error| Error::internal(error.to_string()))?.timestamp();
                let (messages, more) = openclaw::passages(&text, at);
                self.leave_out("outside_messages", more);
                if more > 0 {
                    self.note(path, &format!("{more} texts were left out, because it has too many"));
                }
                // A model has written it, so nothing is learned from it. A search finds it.
                self.session(path, &id, (String::new(), true), messages).await
            }
            Known::Cards(date) => self.cards(path, *date, &text).await,
            Known::Jobs => self.jobs(path, bytes, zone).await,
            Known::SessionKeys { .. } => {
                if openclaw::scheduled_sessions(bytes).is_none() {
                    self.leave_out("files", 1);
                    self.note(path, "it was left out, because it can't be read");
                }
                Ok(())
            }
            // Its fingerprints are not those of this platform, and nothing would be learned from these sessions without it either: the
            // platform learns from what was said in the last 26 hours, and believes nothing of it until a person confirms it.
            Known::Processed => {
                self.leave_out("files", 1);
                self.note(
                    path,
                    "it was left out, because the platform keeps its own record of what it has learned",
                );
                Ok(())
            }
            Known::Watchdog => {
                self.leave_out("files", 1);
                self.note(path, "it was left out, because the platform watches itself");
                Ok(())
            }
            Known::Session { .. } => Ok(()),
        }
    }

    async fn long_term(&mut self, path: &str, text: &str) -> Result<(), Stop> {
        let (sections, left_out) = markdown::parse_long_term_from_top(text);
        self.leave_out("long_term_lines", left_out);
        if sections.is_empty() {
            return Ok(());
        }
        let wanted = markdown::parsed_long_term(&sections);
        let before = shown::long_term(self.cx, self.owner).await?;
        if !before.markdown.is_empty() {
            self.leave_out("long_term_memory", 1);
            // The same archive again, or an executor that was killed.
            if before.markdown != wanted {
                self.note(path, "it was left out, because the long-term memory is not empty");
            }
            return Ok(());
        }
        let new = facts::NewLongTerm { markdown: wanted };
        match facts::write_long_term(self.cx, self.owner, Some(IfMatch(before.version)), new).await {
            Ok(_) => self.count("long_term_memory", 1),
            // Somebody has written it at this moment.
            Err(Error::Conflict { .. }) => {
                self.leave_out("long_term_memory", 1);
                self.note(path, "it was left out, because the long-term memory is not empty");
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
        if left_out > 0 {
            let told = format!(
                "{left_out} lines were left out, because the long-term memory has at most {} lines and {} bytes, and a line at most {}",
                domain::memory::MAX_LINES,
                domain::memory::MAX_BYTES,
                domain::memory::MAX_FACT
            );
            self.note(path, &told);
        }
        Ok(())
    }

    async fn transcript(
        &mut self,
        path: &str,
        (agent, name): (Option<String>, &str),
        read: Transcript,
        scheduled: &Scheduled,
    ) -> Result<(), Stop> {
        if read.unreadable > 0 {
            self.leave_out("lines", read.unreadable);
            self.note(path, &format!("{} lines can't be read or occur twice", read.unreadable));
        }
        if read.dropped > 0 {
            self.leave_out("outside_messages", read.dropped);
            self.note(
                path,
                &format!("its {} oldest messages were left out, because it is too long", read.dropped),
            );
        }
        let by_job = scheduled.get(&agent).is_some_and(|by_job| {
            by_job.contains(name) || read.id.as_ref().is_some_and(|id| by_job.contains(id))
        });
        // The file of a topic has the id of its session in its name, and is a session of its own.
        let id = read.id.as_deref().filter(|id| !id.is_empty() && !name.contains(id)).unwrap_or(name);
        let id = openclaw::session_id(agent.as_deref(), id);
        let namespace = match agent.as_deref() {
            Some(agent) => openclaw::namespace(Some(agent)),
            // A session that was taken along from here.
            None => openclaw::namespace_named(read.namespace.as_deref().unwrap_or_default()),
        };
        self.session(path, &id, (namespace, by_job || read.by_job), read.messages).await
    }

    /// Stores the messages of an outside session. Those that it has already stay as they were.
    async fn session(
        &mut self,
        path: &str,
        id: &SessionId,
        (namespace, scheduled): (String, bool),
        messages: Vec<Said>,
    ) -> Result<(), Stop> {
        if messages.is_empty() {
            return Ok(());
        }
        // An executor that was told to stop may have stored some.
        let done =
            usize::try_from(self.claimed.job.position.objects).unwrap_or(usize::MAX).min(messages.len());
        let is_new = done == 0 && self.cx.store.outside_session(self.owner, id).await?.is_none();
        for (number, some) in messages[done..].chunks(MAX_MESSAGES).enumerate() {
            if !is_new && self.has_all(id, some).await? {
                // Not even the time of the session changes.
                if number == 0 && done == 0 {
                    self.leave_out("outside_sessions", 1);
                }
                self.leave_out("outside_messages", some.len() as u64);
                continue;
            }
            let namespace = Some(namespace.clone());
            let input = Ingest { messages: some.to_vec(), namespace, scheduled };
            let Ingested { stored, known } = match outside::ingest(self.cx, self.owner, id, input).await {
                Ok(ingested) => ingested,
                // It has another namespace here, or somebody has deleted it at this moment.
                Err(Error::Conflict { .. } | Error::NotFound(_)) => {
                    self.leave_out("outside_sessions", 1);
                    self.note(
                        path,
                        &format!("it was left out, because the session {id} exists with another namespace"),
                    );
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            };
            if number == 0 && is_new {
                self.count("outside_sessions", 1);
            }
            self.count("outside_messages", stored as u64);
            self.leave_out("outside_messages", known as u64);
            self.claimed.job.advance(some.len() as u64, 0);
            self.claimed.keep().await?;
        }
        Ok(())
    }

    /// Whether an outside session has all these messages.
    async fn has_all(&self, id: &SessionId, messages: &[Said]) -> Result<bool> {
        let ids: Vec<&str> = messages.iter().map(|said| said.id.as_str()).collect();
        Ok(self.cx.store.known_outside(self.owner, id, &ids).await?.len() == ids.len())
    }

    async fn cards(&mut self, path: &str, date: Date, text: &str) -> Result<(), Stop> {
        let read = openclaw::cards(text);
        let mut known = cards::of_date(self.cx, self.owner, date).await?;
        let before = known.len();
        for card in read.cards {
            // The person's own cards come back too, if they were taken along from here.
            let is_same = |it: &Card| it.time == card.time && it.title == card.title && it.text == card.text;
            if known.iter().any(is_same) {
                self.leave_out("memory_cards", 1);
                continue;
            }
            let card_id = openclaw::card_id(self.owner, date, &card);
            let openclaw::FileCard { time, title, text } = card;
            let (source, namespace, created_at) = (None, String::new(), self.cx.clock.now());
            let card = Card { card_id, date, time, title, text, source, namespace, created_at };
            match card.check() {
                Ok(()) => known.push(card),
                Err(_) => self.leave_out("memory_cards", 1),
            }
        }
        let new = &known[before..];
        let (stamp, now) = (self.cx.clock.uuid(), self.cx.clock.now());
        // The id is that of the content, so a card that another executor has stored meanwhile becomes the same one.
        self.cx.store.put_cards(self.owner, new, stamp, now).await?;
        self.count("memory_cards", new.len() as u64);
        if read.left_out > 0 {
            self.leave_out("lines", read.left_out);
            self.note(path, &format!("{} lines are no part of a card", read.left_out));
        }
        if read.cut > 0 {
            self.note(path, &format!("{} texts of cards were cut, because they were too long", read.cut));
        }
        Ok(())
    }

    async fn jobs(&mut self, path: &str, json: &[u8], zone: &TimeZone) -> Result<(), Stop> {
        let found = match openclaw::jobs(json, self.cx.clock.now(), zone) {
            Ok(found) => found,
            Err(reason) => {
                self.leave_out("files", 1);
                self.note(path, &format!("it was left out, because {reason}"));
                return Ok(());
            }
        };
        self.leave_out("actions", found.left_out.len() as u64);
        found.left_out.iter().for_each(|told| self.note(path, told));
        let mut agents: BTreeMap<String, Agent> = BTreeMap::new();
        for job in &found.jobs {
            let is_known = agents.contains_key(&job.agent);
            if !is_known && agents.len() >= MAX_AGENTS {
                self.leave_out("actions", 1);
                let name = told(&job.title);
                let most =
                    format!("the job {name} was left out: the jobs belong to more than {MAX_AGENTS} agents");
                self.note(path, &most);
                continue;
            }
            if !is_known {
                let agent = self.agent(&job.agent).await?;
                agents.insert(job.agent.clone(), agent);
            }
            self.action(path, &agents[&job.agent], job).await?;
            self.claimed.keep().await?;
        }
        if found.delivers {
            self.note(path, "the deliveries of jobs were left out: the results are assets of their agents");
        }
        Ok(())
    }

    /// The agent that has the jobs of an agent of OpenClaw.
    async fn agent(&mut self, name: &str) -> Result<Agent, Stop> {
        let id = openclaw::agent_id(self.owner, name);
        if let Some(found) = self.cx.store.agent(self.owner, id).await? {
            return Ok(found.value);
        }
        let agent = new_agent(id, name, self.cx.clock.now())?;
        let change = Change::created(&agent, ChangedBy::Import);
        if self.cx.store.create_agent(self.owner, &Once::none(), &agent, &change).await?.done() {
            self.count("agents", 1);
        }
        Ok(agent)
    }

    /// The action that a job becomes. Nobody has approved it, so it does not run.
    async fn action(&mut self, path: &str, agent: &Agent, job: &Job) -> Result<(), Stop> {
        let id = openclaw::action_id(self.owner, job);
        if self.cx.store.action(self.owner, id).await?.is_some() {
            self.leave_out("actions", 1);
            return Ok(());
        }
        let input = DefineAction {
            title: Some(job.title.clone()),
            description: Some(job.description.clone()),
            task_config: Some(TaskConfigPatch {
                instructions: Some(job.instructions.clone()),
                expected_output: Some("What the instructions ask for".to_owned()),
            }),
            schedule: Some(Some(job.schedule.clone())),
            ..DefineAction::default()
        };
        match actions::define_imported(self.cx, self.owner, id, agent, input).await {
            Ok(true) => self.count("actions", 1),
            Ok(false) => self.leave_out("actions", 1),
            Err(Error::Invalid(errors)) => {
                self.leave_out("actions", 1);
                let errors: String = errors.to_string().chars().take(300).collect();
                self.note(path, &format!("the job {} was left out: {errors}", told(&job.title)));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn count(&mut self, kind: &str, number: u64) {
        if number > 0 {
            *self.claimed.job.records.entry(kind.to_owned()).or_default() += number;
        }
    }

    fn leave_out(&mut self, kind: &str, number: u64) {
        if number > 0 {
            *self.claimed.job.left_out.entry(kind.to_owned()).or_default() += number;
        }
    }

    fn note(&mut self, path: &str, text: &str) {
        let path = one_line(path);
        let cut = path.floor_char_boundary(200);
        self.claimed.job.note(format!("{}: {text}.", &path[..cut]));
    }

    /// Reads the archive on a thread that may block.
    fn begin(
        &self,
        folder: &str,
        pass: Pass,
    ) -> (mpsc::Receiver<Piece>, tokio::task::JoinHandle<Result<(), Unreadable>>) {
        let (sender, pieces) = mpsc::channel(1);
        let (reader, folder, most) = (self.reader.clone(), folder.to_owned(), self.most_bytes);
        (pieces, tokio::task::spawn_blocking(move || read_pieces(reader, &folder, most, pass, &sender)))
    }

    async fn end<T>(&self, reading: tokio::task::JoinHandle<Result<T, Unreadable>>) -> Result<T, Stop> {
        let ended = reading.await.map_err(|error| Error::internal(error.to_string()))?;
        if let Some(failure) = self.reader.failure() {
            return Err(failure.into());
        }
        ended.map_err(Unreadable::stop)
    }
}

fn new_agent(id: AgentId, name: &str, now: jiff::Timestamp) -> Result<Agent> {
    let name: String = one_line(name.trim()).chars().take(150).collect();
    let new = NewAgent {
        name: format!("OpenClaw {name}"),
        goal: "An agent that does the jobs that were brought in from OpenClaw".to_owned(),
        ..NewAgent::default()
    };
    Ok(new.into_agent(id, now)?)
}

fn read_pieces(
    reader: BlobReader,
    folder: &str,
    most_bytes: u64,
    pass: Pass,
    pieces: &mpsc::Sender<Piece>,
) -> Result<(), Unreadable> {
    let send = |piece| pieces.blocking_send(piece).map_err(|_| Unreadable::Unwanted);
    let (mut number, mut unknown, mut left) = (0, 0, most_bytes);
    archive::stream(reader, &LIMITS, |path, file| {
        number += 1;
        let known = path.strip_prefix(folder).and_then(openclaw::known);
        match pass {
            Pass::Check => {
                let Some(known) = known else { return Ok(()) };
                let limit = known.most_bytes().min(left);
                let piece = match &known {
                    Known::SessionKeys { .. } => {
                        let bytes = archive::read_within(path, file, limit)?;
                        left = left.saturating_sub(bytes.len() as u64);
                        Piece::Text(path.to_owned(), known, bytes)
                    }
                    // The bytes are read, so that a damaged archive is found before anything is written.
                    _ => {
                        let read = io::copy(&mut file.take(limit.saturating_add(1)), &mut io::sink());
                        left = left.saturating_sub(read.map_err(|error| ArchiveError::reading(path, error))?);
                        Piece::Read
                    }
                };
                if left == 0 {
                    return Err(ArchiveError::TooLarge { limit: most_bytes }.into());
                }
                send(piece)
            }
            Pass::Write(done) if number <= done => Ok(()),
            Pass::Write(_) => {
                let Some(known) = known else {
                    unknown += 1;
                    return if unknown < COUNTED_AT {
                        Ok(())
                    } else {
                        send(Piece::Unknown(std::mem::take(&mut unknown)))
                    };
                };
                if unknown > 0 {
                    send(Piece::Unknown(std::mem::take(&mut unknown)))?;
                }
                let limit = known.most_bytes();
                let piece = match known {
                    Known::Session { agent, name } => read_session(path, file, limit)?.map(|read| {
                        Piece::Session { path: path.to_owned(), agent, name, read: Box::new(read) }
                    }),
                    known => {
                        let bytes = archive::read_within(path, file, limit)?;
                        (bytes.len() as u64 <= limit).then(|| Piece::Text(path.to_owned(), known, bytes))
                    }
                };
                send(piece.unwrap_or_else(|| Piece::TooLarge(path.to_owned(), limit)))
            }
        }
    })?;
    if unknown > 0 {
        send(Piece::Unknown(unknown))?;
    }
    Ok(())
}

/// Reads a session line by line. `None` if it is larger than `limit`.
fn read_session(path: &str, file: &mut dyn Read, limit: u64) -> Result<Option<Transcript>, ArchiveError> {
    let mut file = BufReader::new(file.take(limit.saturating_add(1)));
    let mut reader = TranscriptReader::default();
    let (mut line, mut total) = (Vec::new(), 0);
    let mut next = |line: &mut Vec<u8>, most: usize| {
        line.clear();
        let read = (&mut file).take(most as u64).read_until(b'\n', line);
        read.map_err(|error| ArchiveError::reading(path, error))
    };
    loop {
        let read = next(&mut line, MAX_LINE + 1)?;
        total += read as u64;
        if read == 0 {
            break;
        }
        if read <= MAX_LINE || line.ends_with(b"\n") {
            reader.line(&line);
            continue;
        }
        reader.too_long();
        while !line.ends_with(b"\n") {
            let read = next(&mut line, 1 << 16)?;
            total += read as u64;
            if read == 0 {
                break;
            }
        }
    }
    Ok((total <= limit).then(|| reader.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, limit: u64) -> Option<Transcript> {
        read_session("s.jsonl", &mut text.as_bytes(), limit).unwrap()
    }

    #[test]
    fn a_session_is_read_within_its_limit() {
        let message = |id: &str, text: &str| {
            format!(
                "{{\"type\":\"message\",\"id\":\"{id}\",\"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}\n"
            )
        };
        let text = message("a", "1") + &message("b", "2");
        let size = text.len() as u64;
        assert_eq!(read(&text, size).unwrap().messages.len(), 2);
        assert!(read(&text, size - 1).is_none());
        assert_eq!(read("", 0).unwrap(), Transcript::default());
        // A line that is too long is skipped to its end.
        let long = message("c", &"x".repeat(MAX_LINE + 100_000));
        let found = read(&(long.clone() + &message("d", "4")), u64::MAX - 1).unwrap();
        assert_eq!((found.messages.len(), found.unreadable), (1, 1));
        let found = read(long.trim_end(), u64::MAX - 1).unwrap();
        assert_eq!((found.messages.len(), found.unreadable), (0, 1));
    }
}
