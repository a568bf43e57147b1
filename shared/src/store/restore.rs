//! Records of an exported account as items of another account.
//!
//! An archive comes from outside, so a record is accepted only if the platform can read it and if its key is the key that
//! the platform would give it. What has not ended is left out, because nobody continues it here.

use domain::accounts::plans::Plan;
use domain::accounts::profile::Account;
use domain::actions::{Action, ApprovalRecord, Occurrence};
use domain::agents::{Agent, AgentMetrics};
use domain::assets::{Asset, AssetVersion};
use domain::chats::Chat;
use domain::context::VERSION_DAYS;
use domain::ids::{ActionId, AssetId, ChatId, Owner, RunId};
use domain::projects::Project;
use domain::projects::enrichment::Enrichment;
use domain::projects::theme::{Import, ThemeFile, ThemeState};
use domain::runs::{Run, RunEvent};
use domain::schedule::timezone_named;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::actions::OCCURRENCE_LIFETIME;
use super::documents::{DocumentVersion, StoredDocument};
use super::keys::{self, Key};
use super::logs::{
    AgentSession, EarlyStop, GivenName, GivenNames, HotLog, LatestLog, Launch, LogHead, LogSession,
    LoggedOnce, REMEMBERED, Segment, StoredLine,
};
use super::messages::{StoredMessage, Thread};
use super::models::ModelSettings;
use super::partitions::Partition;
use super::runs::{LIFETIME, RunOutput};
use super::steps::StepPart;
use super::table::{Attributes, Extras, item};
use super::themes::IMPORT_KEPT;
use super::usage::{LIFETIME as USAGE_KEPT, Used};

/// The longest sort key that DynamoDB accepts, in bytes.
const LONGEST_KEY: usize = 1_024;

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
}

/// What becomes of a line.
#[derive(Clone, Debug)]
pub enum Restore {
    Item(Box<Restored>),
    /// It stays behind.
    LeftOut(Partition),
    /// The record of a run that has not ended. All of the run stays behind.
    Unfinished(RunId),
}

/// What a record becomes.
type Kept = Result<Option<(Key, Attributes)>, String>;

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
    let kept =
        place.kept(record).map_err(|told| format!("the record {sk:?} of {:?} {told}", partition.kind()))?;
    let Some((key, item)) = kept else { return Ok(Restore::LeftOut(partition)) };
    if key.pk != partition.of(owner) || key.sk != sk {
        return Err(format!("the record {sk:?} of {:?} does not belong to its key", partition.kind()));
    }
    Ok(Restore::Item(Box::new(Restored { partition, key, version, item })))
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
    fn kept(&self, record: Value) -> Kept {
        let (owner, sk) = (self.owner, self.sk);
        let kind = sk.split_once('#').map_or(sk, |(kind, _)| kind);
        match (self.partition, kind) {
            (Partition::Account, "PROFILE") => {
                let account: Account = read(&record)?;
                if timezone_named(&account.timezone).is_err() {
                    return Err("has an unknown time zone".to_owned());
                }
                // Who pays is a matter of the other deployment.
                let (plan, billing_mode, overage) = (None::<Plan>, Default::default(), Default::default());
                keep(keys::account(owner), &Account { plan, billing_mode, overage, ..account })
            }
            (Partition::Actions, _) => {
                let action: Action = read(&record)?;
                keep(keys::action(owner, action.id), &action.unapproved())
            }
            (Partition::Action(id), "RUN") => {
                let occurrence: Occurrence = read(&record)?;
                if !occurrence.state.is_final() {
                    return Ok(None);
                }
                let key = keys::occurrence(owner, occurrence.action_id, occurrence.run_id);
                debug_assert_eq!(key.pk, Partition::Action(*id).of(owner));
                self.expiring(key, &occurrence, occurrence.due_at, OCCURRENCE_LIFETIME)
            }
            (Partition::Action(id), "APPROVED") => {
                keep(keys::approval(owner, *id), &read::<ApprovalRecord>(&record)?)
            }
            (Partition::Action(id), "MSG") => self.message(Thread::Action(*id), &record),
            (Partition::Agents, _) => {
                let agent: Agent = read(&record)?;
                keep(keys::agent(owner, agent.agent_id), &agent)
            }
            (Partition::Agent(id), "METRICS") => {
                keep(keys::agent_metrics(owner, *id), &read::<AgentMetrics>(&record)?)
            }
            // A mark that something belongs to the agent. Proposals stay behind.
            (Partition::Agent(id), _) => {
                let is_kept = parses::<ActionId>(sk) || parses::<AssetId>(sk) || parses::<ChatId>(sk);
                if is_kept { self.mark(keys::agent_child(owner, *id, sk)) } else { Ok(None) }
            }
            (Partition::AgentSessions(_), _) => {
                let (_, session) = sk.split_once('#').unwrap_or_default();
                let listed: AgentSession = read(&record)?;
                if session != listed.session_id.as_str() {
                    return Err("does not belong to its key".to_owned());
                }
                self.plain(&listed)
            }
            (Partition::Assets, _) => {
                let asset: Asset = read(&record)?;
                keep(keys::asset(owner, asset.asset_id), &asset)
            }
            (Partition::Asset(id), "V") => {
                let version: AssetVersion = read(&record)?;
                keep(keys::asset_version(owner, *id, version.content_version), &version)
            }
            (Partition::Chats, _) => {
                let chat: Chat = read(&record)?;
                keep(keys::chat(owner, chat.chat_id), &chat)
            }
            (Partition::Chat(id), "MSG") => self.message(Thread::Chat(*id), &record),
            (Partition::Chat(_), "GEN") => self.plain(&super::chats::generated(&sk["GEN#".len()..])),
            (Partition::Document(project, workflow), "V") => {
                let version: DocumentVersion = read(&record)?;
                let key = keys::document_version(owner, *project, workflow, version.version);
                self.expiring(key, &version, version.expires_at, SignedDuration::ZERO)
            }
            (Partition::Document(_, workflow), "TEXT") => {
                let kept: StoredDocument = read(&record)?;
                if kept.workflow != *workflow {
                    return Err("does not belong to its key".to_owned());
                }
                self.expiring(self.key(), &kept, self.now, SignedDuration::from_hours(24 * VERSION_DAYS))
            }
            (Partition::HotLogs, _) => {
                let hot: HotLog = read(&record)?;
                keep(keys::hot_log(owner, &hot), &hot)
            }
            (Partition::LatestLogs, _) => self.plain(&read::<LatestLog>(&record)?),
            (Partition::Log(..), "LINE") if is_number(sk, "LINE#") => {
                self.plain(&read::<StoredLine>(&record)?)
            }
            (Partition::Log(session, agent), "SEGMENT") => {
                let segment: Segment = read(&record)?;
                if !(1..=segment.last).contains(&segment.first) || segment.last > MANY_LINES {
                    return Err("has impossible numbers of lines".to_owned());
                }
                keep(keys::log_segment(owner, session, agent, segment.first), &segment)
            }
            (Partition::Models, "SETTINGS") => {
                keep(keys::model_settings(owner), &read::<ModelSettings>(&record)?)
            }
            (Partition::Project(project), "CONTEXT") => {
                let kept: StoredDocument = read(&record)?;
                keep(keys::document(owner, *project, &kept.workflow), &kept)
            }
            (Partition::Project(project), "THEME") => {
                let state: ThemeState = read(&record)?;
                // Whoever indexed it does not index it here.
                keep(keys::theme(owner, *project), &ThemeState { lease: None, ..state })
            }
            (Partition::Project(project), "ENRICHMENT") => {
                let enrichment: Enrichment = read(&record)?;
                keep(keys::enrichment(owner, *project), &Enrichment { hold: None, ..enrichment })
            }
            (Partition::Project(project), "IMPORT") => {
                let import: Import = read(&record)?;
                if !import.state.is_final() {
                    return Ok(None);
                }
                let key = keys::theme_import(owner, *project, import.import_id);
                self.expiring(key, &import, self.now, IMPORT_KEPT)
            }
            (Partition::Projects, _) => {
                let project: Project = read(&record)?;
                keep(keys::project(owner, project.project_id), &project)
            }
            (Partition::Run(id), _) => self.of_run(*id, kind, &record),
            (Partition::Runs, _) => {
                let id: RunId = sk.parse().map_err(|_| "has no valid key".to_owned())?;
                #[derive(Serialize)]
                struct Listed {
                    run_id: RunId,
                }
                self.expiring(keys::run_listed(owner, id), &Listed { run_id: id }, id.instant(), LIFETIME)
            }
            (Partition::Session(session), "SESSION") => {
                let found: LogSession = read(&record)?;
                if found.session_id != *session {
                    return Err("does not belong to its key".to_owned());
                }
                keep(keys::log_session(owner, session), &found)
            }
            (Partition::Session(_), "HEAD") => {
                let head: LogHead = read(&record)?;
                if head.entries > MANY_LINES || head.sealed > head.entries {
                    return Err("has impossible numbers of lines".to_owned());
                }
                keep(keys::log_head(owner, &head.session_id, &head.agent_id), &head)
            }
            (Partition::Session(_), "ONCE") => self.remembered(&read::<LoggedOnce>(&record)?),
            (Partition::Session(_), "LAUNCH") => self.remembered(&read::<Launch>(&record)?),
            (Partition::Session(_), "STOP") => self.remembered(&read::<EarlyStop>(&record)?),
            (Partition::Session(_), "NAME") => self.plain(&read::<GivenName>(&record)?),
            (Partition::Session(_), "NAMES") => self.plain(&read::<GivenNames>(&record)?),
            (Partition::Sessions, _) => {
                let session: LogSession = read(&record)?;
                keep(keys::log_session_listed(owner, &session), &session)
            }
            (Partition::ThemeFiles(project, generation), "FILE") => {
                let file: ThemeFile = read(&record)?;
                keep(keys::theme_file(owner, *project, *generation, &file.path), &file)
            }
            (Partition::Usage(_), _) => {
                let used: Used = read(&record)?;
                let (date, ..) = keys::usage_parts(sk).ok_or("has no valid key")?;
                if used.cost_micros < 0 {
                    return Err("has a negative cost".to_owned());
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
                | Partition::Session(_)
                | Partition::Spend
                | Partition::ThemeFiles(..),
                _,
            ) => Ok(None),
        }
    }

    fn of_run(&self, id: RunId, kind: &str, record: &Value) -> Kept {
        let (owner, begun) = (self.owner, id.instant());
        match kind {
            "META" => {
                let run: Run = read(record)?;
                self.expiring(keys::run(owner, run.run_id), &run, begun, LIFETIME)
            }
            "EVENT" => {
                let event: RunEvent = read(record)?;
                self.expiring(keys::run_event(owner, id, event.id), &event, begun, LIFETIME)
            }
            "STEP" => {
                let part: StepPart = read(record)?;
                self.expiring(keys::run_step(owner, id, part.n, part.call), &part, begun, LIFETIME)
            }
            "OUT" if is_number(self.sk, "OUT#") => self.plain(&read::<RunOutput>(record)?),
            _ => Ok(None),
        }
    }

    fn message(&self, thread: Thread, record: &Value) -> Kept {
        let message: StoredMessage = read(record)?;
        keep(keys::message(self.owner, thread, message.message.message_id), &message)
    }

    fn mark(&self, key: Key) -> Kept {
        #[derive(Serialize)]
        struct Mark {}
        keep(key, &Mark {})
    }

    /// The key that the line says.
    fn key(&self) -> Key {
        Key::new(self.partition.of(self.owner), self.sk)
    }

    fn plain<T: Serialize>(&self, record: &T) -> Kept {
        keep(self.key(), record)
    }

    fn remembered<T: Serialize>(&self, record: &T) -> Kept {
        self.expiring(self.key(), record, self.now, REMEMBERED)
    }

    fn expiring<T: Serialize>(
        &self,
        key: Key,
        record: &T,
        from: Timestamp,
        lifetime: SignedDuration,
    ) -> Kept {
        let expires = from.checked_add(lifetime).map_err(|_| "has an impossible time".to_owned())?;
        let item = item(record, &Extras::expiring(expires)).map_err(|error| error.to_string())?;
        Ok(Some((key, item)))
    }
}

fn keep<T: Serialize>(key: Key, record: &T) -> Kept {
    Ok(Some((key, item(record, &Extras::default()).map_err(|error| error.to_string())?)))
}

fn parses<T: std::str::FromStr>(text: &str) -> bool {
    text.parse::<T>().is_ok()
}

fn is_number(sk: &str, prefix: &str) -> bool {
    sk.strip_prefix(prefix).is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}
