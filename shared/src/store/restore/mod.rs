//! Records of an exported account as items of another account.
//!
//! An archive comes from outside, so a record is accepted only if the platform can read it and if its key is the key that
//! the platform would give it. What has not ended is left out, because nobody continues it here.

mod check;

use domain::accounts::plans::Plan;
use domain::accounts::profile::Account;
use domain::actions::{Action, Occurrence};
use domain::agents::{Agent, AgentMetrics};
use domain::assets::{Asset, AssetVersion};
use domain::chats::Chat;
use domain::chats::Thread;
use domain::context::VERSION_DAYS;
use domain::ids::{ActionId, AssetId, ChatId, Owner, RunId};
use domain::log::Entry;
use domain::projects::Project;
use domain::projects::enrichment::Enrichment;
use domain::projects::theme::{Import, ThemeFile, ThemeState};
use domain::runs::{Run, RunEvent};
use domain::validate::FieldErrors;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use theme::index::{MAX_FILES, MAX_THEME_BYTES};
use theme::path::check_path;

use super::actions::OCCURRENCE_LIFETIME;
use super::documents::{DocumentVersion, StoredDocument};
use super::keys::{self, Key};
use super::logs::{
    AgentSession, EarlyStop, GivenName, GivenNames, HotLog, LatestLog, Launch, LineBody, LogHead, LogSession,
    LoggedOnce, REMEMBERED, Segment, StoredLine,
};
use super::messages::StoredMessage;
use super::models::ModelSettings;
use super::partitions::Partition;
use super::runs::{LIFETIME, RunOutput};
use super::steps::StepPart;
use super::table::{Attributes, Extras, item};
use super::themes::IMPORT_KEPT;
use super::usage::{LIFETIME as USAGE_KEPT, Used};
use crate::blobs::BlobKey;

/// The longest sort key that DynamoDB accepts, in bytes.
const LONGEST_KEY: usize = 1_024;

/// The highest number of a step or of a call. Keys have four digits for it.
const MANY_STEPS: u32 = 9_999;

/// The highest number of an event. Keys have ten digits for it.
const MANY_EVENTS: u64 = 9_999_999_999;

/// More lines than any log has.
const MANY_LINES: u64 = 1_000_000_000_000;

/// A line of an export.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    pub partition: String,
    pub key: String,
    #[serde(default)]
    pub version: Option<u64>,
    pub record: Value,
}

/// A record as an item of its new owner.
#[derive(Clone, Debug)]
pub struct Restored {
    pub partition: Partition,
    pub key: Key,
    pub version: u64,
    pub item: Attributes,
    /// The number of the newest line that it belongs to, or has, if it is of a log.
    pub line: Option<u64>,
    /// What it is for people, if it is a thing of its own and not a part of one.
    pub thing: Option<&'static str>,
    /// The objects that the record names.
    pub objects: Vec<Named>,
    /// If an object is missing, the record comes without this attribute. `None`: then the record stays behind.
    pub without: Option<&'static str>,
}

/// An object that a record names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub key: BlobKey,
    /// Its size, if the record says it.
    pub bytes: Option<u64>,
    /// How many lines it has, if the record says it.
    pub lines: Option<u64>,
}

impl From<BlobKey> for Named {
    fn from(key: BlobKey) -> Self {
        Self { key, bytes: None, lines: None }
    }
}

/// What becomes of a line.
#[derive(Clone, Debug)]
pub enum Restore {
    Item(Box<Restored>),
    /// It stays behind.
    LeftOut {
        partition: Partition,
        thing: Option<&'static str>,
    },
    /// The record of a run that has not ended. All of the run stays behind.
    Unfinished(RunId),
}

/// What a record becomes.
struct Kept {
    key: Key,
    item: Attributes,
    objects: Vec<Named>,
    without: Option<&'static str>,
    line: Option<u64>,
}

/// `None` if the record stays behind.
type KeptOrNot = Result<Option<Kept>, String>;

/// Reads a line as an item of `owner`.
///
/// # Errors
/// What is wrong with the line.
pub fn restore(owner: &Owner, line: Line, now: Timestamp) -> Result<Restore, String> {
    let Line { partition: place, key: sk, version, record } = line;
    let partition = Partition::parse(&place).filter(|found| found.of(owner) == format!("U#{owner}#{place}"));
    let partition = partition.ok_or_else(|| format!("the partition {place:?} is unknown"))?;
    if sk.is_empty() || sk.len() > LONGEST_KEY {
        return Err(format!("the key must have 1 to {LONGEST_KEY} bytes, has {}", sk.len()));
    }
    // Item versions count changes. Nobody has made so many.
    let version = version.unwrap_or(1);
    if !(1..=u64::from(u32::MAX)).contains(&version) {
        return Err(format!("the version must be 1 to {}, is {version}", u32::MAX));
    }
    if let Partition::Run(id) = partition
        && sk == "META"
        && !read::<Run>(&record)?.state.has_ended()
    {
        return Ok(Restore::Unfinished(id));
    }
    let place = Place { owner, partition: &partition, sk: &sk, now };
    let told = |told: String| format!("the record {sk:?} of {:?} {told}", partition.kind());
    let kept = place.kept(&record).map_err(told)?;
    let thing = thing(&partition, &sk);
    let Some(Kept { key, item, objects, without, line }) = kept else {
        return Ok(Restore::LeftOut { partition, thing });
    };
    if key.pk != partition.of(owner) || key.sk != sk {
        return Err(told("does not belong to its key".to_owned()));
    }
    check::item(&partition, &item).map_err(told)?;
    Ok(Restore::Item(Box::new(Restored { partition, key, version, item, line, thing, objects, without })))
}

fn read<T: DeserializeOwned>(record: &Value) -> Result<T, String> {
    T::deserialize(record).map_err(|error| format!("can't be read: {error}"))
}

/// Where a record is stored.
struct Place<'a> {
    owner: &'a Owner,
    partition: &'a Partition,
    sk: &'a str,
    now: Timestamp,
}

impl Place<'_> {
    #[expect(clippy::too_many_lines, reason = "one line for each kind of record")]
    fn kept(&self, record: &Value) -> KeptOrNot {
        let (owner, sk) = (self.owner, self.sk);
        let kind = sk.split_once('#').map_or(sk, |(kind, _)| kind);
        match (self.partition, kind) {
            (Partition::Account, "PROFILE") => {
                let mut account: Account = read(record)?;
                valid(account.check())?;
                account.alerts.sort_unstable();
                account.alerts.dedup();
                // Who pays is a matter of the other deployment.
                let (plan, billing_mode, overage) = (None::<Plan>, Default::default(), Default::default());
                keep(keys::account(owner), &Account { plan, billing_mode, overage, ..account })
            }
            (Partition::Actions, _) => {
                let action: Action = read(record)?;
                valid(action.check())?;
                keep(keys::action(owner, action.id), &action.unapproved())
            }
            (Partition::Action(_), "RUN") => {
                let occurrence: Occurrence = read(record)?;
                if !occurrence.state.is_final() {
                    return Ok(None);
                }
                let key = keys::occurrence(owner, occurrence.action_id, occurrence.run_id);
                self.expiring(key, &occurrence, occurrence.due_at, OCCURRENCE_LIFETIME)
            }
            (Partition::Action(id), "MSG") => self.message(Thread::Action(*id), record),
            (Partition::Agents, _) => {
                let agent: Agent = read(record)?;
                valid(agent.check())?;
                keep(keys::agent(owner, agent.agent_id), &agent)
            }
            (Partition::Agent(id), "METRICS") => {
                keep(keys::agent_metrics(owner, *id), &read::<AgentMetrics>(record)?)
            }
            // A mark that something belongs to the agent. Proposals stay behind.
            (Partition::Agent(id), _) => {
                let is_kept = parses::<ActionId>(sk) || parses::<AssetId>(sk) || parses::<ChatId>(sk);
                if is_kept { self.mark(keys::agent_child(owner, *id, sk)) } else { Ok(None) }
            }
            (Partition::AgentSessions(_), _) => {
                let (_, session) = sk.split_once('#').unwrap_or_default();
                let listed: AgentSession = read(record)?;
                if session != listed.session_id.as_str() {
                    return Err("does not belong to its key".to_owned());
                }
                self.plain(&listed)
            }
            (Partition::Assets, _) => {
                let asset: Asset = read(record)?;
                valid(asset.check())?;
                let object = content_of(owner, asset.asset_id, &asset.sha256, asset.bytes);
                naming(keep(keys::asset(owner, asset.asset_id), &asset), vec![object])
            }
            (Partition::Asset(id), "V") => {
                let version: AssetVersion = read(record)?;
                valid(version.check())?;
                let object = content_of(owner, *id, &version.sha256, version.bytes);
                naming(keep(keys::asset_version(owner, *id, version.content_version), &version), vec![object])
            }
            (Partition::Chats, _) => {
                let chat: Chat = read(record)?;
                valid(chat.check())?;
                keep(keys::chat(owner, chat.chat_id), &chat)
            }
            (Partition::Chat(id), "MSG") => self.message(Thread::Chat(*id), record),
            (Partition::Chat(_), "GEN") => self.plain(&super::chats::generated(&sk["GEN#".len()..])),
            (Partition::Document(project, workflow), "V") => {
                let version: DocumentVersion = read(record)?;
                let key = keys::document_version(owner, *project, workflow, version.version);
                self.expiring(key, &version, version.expires_at, SignedDuration::ZERO)
            }
            (Partition::Document(_, workflow), "TEXT") => {
                let kept: StoredDocument = read(record)?;
                if kept.workflow != *workflow {
                    return Err("does not belong to its key".to_owned());
                }
                valid(kept.document.clone().validated())?;
                self.expiring(self.key(), &kept, self.now, SignedDuration::from_hours(24 * VERSION_DAYS))
            }
            (Partition::HotLogs, _) => {
                let hot: HotLog = read(record)?;
                keep(hot.key(owner), &hot)
            }
            (Partition::LatestLogs, _) => self.plain(&read::<LatestLog>(record)?),
            (Partition::Log(session, agent), "LINE") if is_number(sk, "LINE#") => {
                let line: StoredLine = read(record)?;
                let objects = match &line.body {
                    LineBody::Line(text) => {
                        Entry::from_line(text.as_bytes(), session, agent)
                            .map_err(|error| format!("has an invalid `line`: {error}"))?;
                        Vec::new()
                    }
                    LineBody::Blob(blob) => vec![BlobKey::log_line(owner, session, agent, *blob).into()],
                };
                let number = keys::log_number(sk).ok_or("has no valid key")?;
                of_line(naming(self.plain(&line), objects), number)
            }
            (Partition::Log(session, agent), "SEGMENT") => {
                let segment: Segment = read(record)?;
                if !(1..=segment.last).contains(&segment.first) || segment.last > MANY_LINES {
                    return Err("has impossible numbers of lines".to_owned());
                }
                let key = segment.key(owner, session, agent);
                let object = Named { key, bytes: Some(segment.bytes), lines: Some(segment.lines()) };
                let kept = naming(
                    keep(keys::log_segment(owner, session, agent, segment.first), &segment),
                    vec![object],
                );
                of_line(kept, segment.last)
            }
            (Partition::Models, "SETTINGS") => {
                keep(keys::model_settings(owner), &read::<ModelSettings>(record)?)
            }
            (Partition::Project(project), "CONTEXT") => {
                let kept: StoredDocument = read(record)?;
                valid(kept.document.clone().validated())?;
                keep(keys::document(owner, *project, &kept.workflow), &kept)
            }
            (Partition::Project(project), "THEME") => {
                let state: ThemeState = read(record)?;
                valid(state.check(MAX_FILES as u64, MAX_THEME_BYTES as u64))?;
                let map = state.map.iter().map(|map| BlobKey::theme_map(owner, *project, &map.sha256).into());
                let map = map.collect();
                // The indexer of the other deployment does not work here. Without its object, the map is built again.
                let kept =
                    naming(keep(keys::theme(owner, *project), &ThemeState { lease: None, ..state }), map);
                without(kept, "map")
            }
            (Partition::Project(project), "ENRICHMENT") => {
                let enrichment: Enrichment = read(record)?;
                let notes = enrichment.notes.map(|notes| BlobKey::theme_notes(owner, *project, notes).into());
                let kept = keep(keys::enrichment(owner, *project), &Enrichment { hold: None, ..enrichment });
                without(naming(kept, notes.into_iter().collect()), "notes")
            }
            (Partition::Project(project), "IMPORT") => {
                let import: Import = read(record)?;
                if !import.state.is_final() {
                    return Ok(None);
                }
                let key = keys::theme_import(owner, *project, import.import_id);
                self.expiring(key, &import, self.now, IMPORT_KEPT)
            }
            (Partition::Projects, _) => {
                let project: Project = read(record)?;
                valid(project.check())?;
                keep(keys::project(owner, project.project_id), &project)
            }
            (Partition::Run(id), _) => self.of_run(*id, kind, record),
            (Partition::Runs, _) => {
                let id: RunId = sk.parse().map_err(|_| "has no valid key".to_owned())?;
                #[derive(Serialize)]
                struct Listed {
                    run_id: RunId,
                }
                self.expiring(keys::run_listed(owner, id), &Listed { run_id: id }, id.instant(), LIFETIME)
            }
            (Partition::Session(session), "SESSION") => {
                let found: LogSession = read(record)?;
                if found.session_id != *session {
                    return Err("does not belong to its key".to_owned());
                }
                keep(keys::log_session(owner, session), &found)
            }
            (Partition::Session(_), "HEAD") => {
                let head: LogHead = read(record)?;
                if head.entries > MANY_LINES || head.sealed > head.entries {
                    return Err("has impossible numbers of lines".to_owned());
                }
                of_line(keep(keys::log_head(owner, &head.session_id, &head.agent_id), &head), head.entries)
            }
            (Partition::Session(_), "ONCE") => self.remembered(&read::<LoggedOnce>(record)?),
            (Partition::Session(_), "LAUNCH") => self.remembered(&read::<Launch>(record)?),
            (Partition::Session(_), "STOP") => self.remembered(&read::<EarlyStop>(record)?),
            (Partition::Session(_), "NAME") => self.plain(&read::<GivenName>(record)?),
            (Partition::Session(_), "NAMES") => self.plain(&read::<GivenNames>(record)?),
            (Partition::Sessions, _) => {
                let session: LogSession = read(record)?;
                keep(session.key_in_list(owner), &session)
            }
            (Partition::ThemeFiles(project, generation), "FILE") => {
                let file: ThemeFile = read(record)?;
                valid(file.check(check_path(&file.path)))?;
                let key = BlobKey::theme_file(owner, *project, &file.sha256);
                let object = Named { key, bytes: Some(file.bytes), lines: None };
                naming(keep(keys::theme_file(owner, *project, *generation, &file.path), &file), vec![object])
            }
            (Partition::Usage(month), _) => {
                let used: Used = read(record)?;
                let (date, ..) = keys::usage_parts(sk).ok_or("has no valid key")?;
                if date.first_of_month() != *month {
                    return Err("does not belong to its month".to_owned());
                }
                let at = date.to_zoned(TimeZone::UTC).map_err(|error| error.to_string())?.timestamp();
                self.expiring(self.key(), &used, at, USAGE_KEPT)
            }
            // What only matters while the platform works, what expires soon, secrets, and what limits an owner here.
            (
                Partition::Account
                | Partition::Action(_)
                | Partition::ApiKeys
                | Partition::Asset(_)
                | Partition::Chat(_)
                | Partition::ClientChats
                | Partition::Document(..)
                | Partition::DroppedHooks
                | Partition::Exports
                | Partition::Idempotency
                | Partition::Log(..)
                | Partition::LogImports
                | Partition::Models
                | Partition::Places
                | Partition::Project(_)
                | Partition::Proposals
                | Partition::ProviderKeys
                | Partition::Quota
                | Partition::RefusedHooks
                | Partition::Servers
                | Partition::Session(_)
                | Partition::Spend
                | Partition::ThemeFiles(..),
                _,
            ) => Ok(None),
        }
    }

    fn of_run(&self, id: RunId, kind: &str, record: &Value) -> KeptOrNot {
        let (owner, begun) = (self.owner, id.instant());
        match kind {
            "META" => {
                let run: Run = read(record)?;
                self.expiring(keys::run(owner, run.run_id), &run, begun, LIFETIME)
            }
            "EVENT" => {
                let event: RunEvent = read(record)?;
                if !(1..=MANY_EVENTS).contains(&event.id) {
                    return Err(format!("has an invalid `id`: must be 1 to {MANY_EVENTS}, is {}", event.id));
                }
                self.expiring(keys::run_event(owner, id, event.id), &event, begun, LIFETIME)
            }
            "STEP" => {
                let part: StepPart = read(record)?;
                let is_numbered = |number: u32| number <= MANY_STEPS;
                if part.n == 0 || !is_numbered(part.n) || !part.call.is_none_or(is_numbered) {
                    return Err(format!("has an invalid `n` or `call`: must be at most {MANY_STEPS}"));
                }
                let kept =
                    self.expiring(keys::run_step(owner, id, part.n, part.call), &part, begun, LIFETIME);
                let object = part.overflow.then(|| BlobKey::step(owner, id, part.n, part.call, part.fence));
                naming(kept, object.into_iter().map(Named::from).collect())
            }
            "OUT" if is_number(self.sk, "OUT#") => self.plain(&read::<RunOutput>(record)?),
            _ => Ok(None),
        }
    }

    fn message(&self, thread: Thread, record: &Value) -> KeptOrNot {
        let stored: StoredMessage = read(record)?;
        let (owner, message) = (self.owner, &stored.message);
        valid(message.check())?;
        let images = message.images().map(|image| Named {
            key: BlobKey::image(owner, thread, &image.object),
            bytes: Some(u64::from(image.bytes)),
            lines: None,
        });
        let mut objects: Vec<Named> = images.collect();
        if stored.overflow {
            objects.push(BlobKey::message(owner, thread, message.message_id).into());
        }
        naming(keep(keys::message(owner, thread, message.message_id), &stored), objects)
    }

    fn mark(&self, key: Key) -> KeptOrNot {
        #[derive(Serialize)]
        struct Mark {}
        keep(key, &Mark {})
    }

    /// The key that the line says.
    fn key(&self) -> Key {
        Key::new(self.partition.of(self.owner), self.sk)
    }

    fn plain<T: Serialize>(&self, record: &T) -> KeptOrNot {
        keep(self.key(), record)
    }

    fn remembered<T: Serialize>(&self, record: &T) -> KeptOrNot {
        self.expiring(self.key(), record, self.now, REMEMBERED)
    }

    fn expiring<T: Serialize>(
        &self,
        key: Key,
        record: &T,
        from: Timestamp,
        lifetime: SignedDuration,
    ) -> KeptOrNot {
        let expires = from.checked_add(lifetime).map_err(|_| "has an impossible time".to_owned())?;
        let item = item(record, &Extras::expiring(expires)).map_err(|error| error.to_string())?;
        Ok(Some(Kept { key, item, objects: Vec::new(), without: None, line: None }))
    }
}

fn keep<T: Serialize>(key: Key, record: &T) -> KeptOrNot {
    let item = item(record, &Extras::default()).map_err(|error| error.to_string())?;
    Ok(Some(Kept { key, item, objects: Vec::new(), without: None, line: None }))
}

/// Adds the objects that a record names.
fn naming(kept: KeptOrNot, objects: Vec<Named>) -> KeptOrNot {
    Ok(kept?.map(|kept| Kept { objects, ..kept }))
}

/// A record about the lines of a log up to this one.
fn of_line(kept: KeptOrNot, line: u64) -> KeptOrNot {
    Ok(kept?.map(|kept| Kept { line: Some(line), ..kept }))
}

/// A record that can do without this attribute.
fn without(kept: KeptOrNot, attribute: &'static str) -> KeptOrNot {
    Ok(kept?.map(|kept| Kept { without: Some(attribute), ..kept }))
}

fn content_of(owner: &Owner, asset: AssetId, sha256: &str, bytes: u64) -> Named {
    Named { key: BlobKey::asset(owner, asset, sha256), bytes: Some(bytes), lines: None }
}

fn valid<T>(checked: Result<T, FieldErrors>) -> Result<T, String> {
    checked.map_err(|errors| format!("is invalid: {errors}"))
}

/// What a record is for people. `None` if it is only a part of something, or if the platform writes it for itself.
fn thing(partition: &Partition, sk: &str) -> Option<&'static str> {
    let kind = sk.split_once('#').map_or(sk, |(kind, _)| kind);
    Some(match (partition, kind) {
        (Partition::Account, "PROFILE") => "account",
        (Partition::Actions, _) => "actions",
        (Partition::Action(_), "APPROVED") => "approvals",
        (Partition::Action(_), "RUN") => "occurrences",
        (Partition::Action(_) | Partition::Chat(_), "MSG") => "messages",
        (Partition::Agents, _) => "agents",
        (Partition::Assets, _) => "assets",
        (Partition::Asset(_), "V") => "asset_versions",
        (Partition::Chats, _) => "chats",
        (Partition::Document(..), "V") => "context_document_versions",
        (Partition::LogImports, kind) if kind != "OPEN" && kind != "LEFT" => "log_imports",
        (Partition::Models, "SETTINGS") => "model_settings",
        (Partition::Project(_), "CONTEXT") => "context_documents",
        (Partition::Project(_), "IMPORT") => "theme_imports",
        (Partition::Project(_), "THEME") => "themes",
        (Partition::Projects, _) => "projects",
        (Partition::Proposals, _) => "proposals",
        (Partition::Run(_), "META") => "runs",
        (Partition::Session(_), "HEAD") => "logs",
        (Partition::Session(_), "SESSION") => "log_sessions",
        (Partition::ThemeFiles(..), "FILE") => "theme_files",
        _ => return None,
    })
}

fn parses<T: std::str::FromStr>(text: &str) -> bool {
    text.parse::<T>().is_ok()
}

fn is_number(sk: &str, prefix: &str) -> bool {
    sk.strip_prefix(prefix).is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}
