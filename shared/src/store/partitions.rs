//! Every partition of an owner's items, and which partitions the items of a partition lead to.
//!
//! Together with [`Walk`](super::Walk) this finds everything that an owner has, without a scan of the table.
//! A new kind of partition must be added here, because `keys` builds partition keys only from [`Partition`].

use std::str::FromStr;

use domain::context::Workflow;
use domain::ids::{ActionId, AgentId, AssetId, ChatId, ImportId, Owner, ProjectId, RunId};
use domain::log::{InstanceId, SessionId};
use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use super::table::Attributes;

/// A partition of an owner's items.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Partition {
    Account,
    Action(ActionId),
    Actions,
    Agent(AgentId),
    /// The sessions that have a log of an agent.
    AgentSessions(InstanceId),
    Agents,
    ApiKeys,
    Asset(AssetId),
    Assets,
    Chat(ChatId),
    Chats,
    ClientChats,
    /// The versions of a context document.
    Document(ProjectId, Workflow),
    DroppedHooks,
    Exports,
    HotLogs,
    Idempotency,
    LatestLogs,
    /// The lines and segments of a log.
    Log(SessionId, InstanceId),
    LogImports,
    Models,
    Places,
    Project(ProjectId),
    Projects,
    Proposals,
    ProviderKeys,
    Quota,
    RefusedHooks,
    Run(RunId),
    /// The list of the runs that no action lists.
    Runs,
    Servers,
    Session(SessionId),
    Sessions,
    Spend,
    /// The files of a theme that came from one import.
    ThemeFiles(ProjectId, ImportId),
    /// The use of models in the month of this day.
    Usage(Date),
}

/// The month before the first one that can have a record of usage.
const BEFORE_USAGE: Date = date(2025, 12, 1);

impl Partition {
    /// The partition key.
    #[must_use]
    pub fn of(&self, owner: &Owner) -> String {
        let kind = match self {
            Self::Account => "ACCOUNT".to_owned(),
            Self::Action(id) => format!("ACTION#{id}"),
            Self::Actions => "ACTION".to_owned(),
            Self::Agent(id) => format!("AGENT#{id}"),
            Self::AgentSessions(agent) => format!("LOGOF#{agent}"),
            Self::Agents => "AGENT".to_owned(),
            Self::ApiKeys => "KEY".to_owned(),
            Self::Asset(id) => format!("ASSET#{id}"),
            Self::Assets => "ASSET".to_owned(),
            Self::Chat(id) => format!("CHAT#{id}"),
            Self::Chats => "CHAT".to_owned(),
            Self::ClientChats => "CLIENTCHAT".to_owned(),
            Self::Document(project, workflow) => format!("PROJECT#{project}#CONTEXT#{workflow}"),
            Self::DroppedHooks => "LOGDROPPED".to_owned(),
            Self::Exports => "EXPORT".to_owned(),
            Self::HotLogs => "LOGHOT".to_owned(),
            Self::Idempotency => "IDEMPOTENCY".to_owned(),
            Self::LatestLogs => "LOGLAST".to_owned(),
            Self::Log(session, agent) => format!("LOG#{session}#{agent}"),
            Self::LogImports => "LOGIMPORT".to_owned(),
            Self::Models => "MODELS".to_owned(),
            Self::Places => "PLACE".to_owned(),
            Self::Project(id) => format!("PROJECT#{id}"),
            Self::Projects => "PROJECT".to_owned(),
            Self::Proposals => "PROPOSAL".to_owned(),
            Self::ProviderKeys => "PROVIDERKEY".to_owned(),
            Self::Quota => "QUOTA".to_owned(),
            Self::RefusedHooks => "LOGREFUSED".to_owned(),
            Self::Run(id) => format!("RUN#{id}"),
            Self::Runs => "RUN".to_owned(),
            Self::Servers => "SERVER".to_owned(),
            Self::Session(session) => format!("LOG#{session}"),
            Self::Sessions => "LOG".to_owned(),
            Self::Spend => "SPEND".to_owned(),
            Self::ThemeFiles(project, generation) => format!("PROJECT#{project}#FILES#{generation}"),
            Self::Usage(month) => format!("USAGE#{}", month.strftime("%Y-%m")),
        };
        format!("U#{owner}#{kind}")
    }

    /// Reads a partition key without its owner. The opposite of [`Partition::of`].
    #[must_use]
    pub fn parse(place: &str) -> Option<Self> {
        let Some((kind, rest)) = place.split_once('#') else {
            return Some(match place {
                "ACCOUNT" => Self::Account,
                "ACTION" => Self::Actions,
                "AGENT" => Self::Agents,
                "KEY" => Self::ApiKeys,
                "ASSET" => Self::Assets,
                "CHAT" => Self::Chats,
                "CLIENTCHAT" => Self::ClientChats,
                "LOGDROPPED" => Self::DroppedHooks,
                "EXPORT" => Self::Exports,
                "LOGHOT" => Self::HotLogs,
                "IDEMPOTENCY" => Self::Idempotency,
                "LOGLAST" => Self::LatestLogs,
                "LOGIMPORT" => Self::LogImports,
                "MODELS" => Self::Models,
                "PLACE" => Self::Places,
                "PROJECT" => Self::Projects,
                "PROPOSAL" => Self::Proposals,
                "PROVIDERKEY" => Self::ProviderKeys,
                "QUOTA" => Self::Quota,
                "LOGREFUSED" => Self::RefusedHooks,
                "RUN" => Self::Runs,
                "SERVER" => Self::Servers,
                "LOG" => Self::Sessions,
                "SPEND" => Self::Spend,
                _ => return None,
            });
        };
        match kind {
            "ACTION" => parsed(rest, Self::Action),
            "LOGOF" => parsed(rest, Self::AgentSessions),
            "AGENT" => parsed(rest, Self::Agent),
            "ASSET" => parsed(rest, Self::Asset),
            "CHAT" => parsed(rest, Self::Chat),
            "RUN" => parsed(rest, Self::Run),
            "LOG" => match rest.split_once('#') {
                Some((session, agent)) => Some(Self::Log(session.parse().ok()?, agent.parse().ok()?)),
                None => parsed(rest, Self::Session),
            },
            "PROJECT" => {
                let mut parts = rest.splitn(3, '#');
                let project = parts.next()?.parse().ok()?;
                match (parts.next(), parts.next()) {
                    (None, None) => Some(Self::Project(project)),
                    (Some("CONTEXT"), Some(workflow)) => {
                        parsed(workflow, |workflow| Self::Document(project, workflow))
                    }
                    (Some("FILES"), Some(import)) => {
                        parsed(import, |import| Self::ThemeFiles(project, import))
                    }
                    _ => None,
                }
            }
            "USAGE" => format!("{rest}-01").parse().ok().map(Self::Usage),
            _ => None,
        }
    }

    /// What the items are, for people.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Account => "account",
            Self::Action(_) | Self::Actions => "actions",
            Self::Agent(_) | Self::Agents => "agents",
            Self::ApiKeys => "api_keys",
            Self::Asset(_) | Self::Assets => "assets",
            Self::Chat(_) | Self::Chats | Self::ClientChats => "chats",
            Self::Document(..) => "context_documents",
            Self::Exports => "exports",
            Self::Idempotency => "repeated_requests",
            Self::AgentSessions(_)
            | Self::DroppedHooks
            | Self::HotLogs
            | Self::LatestLogs
            | Self::Log(..)
            | Self::LogImports
            | Self::RefusedHooks
            | Self::Session(_)
            | Self::Sessions => "logs",
            Self::Models => "model_settings",
            Self::Places => "places",
            Self::Project(_) | Self::Projects => "projects",
            Self::Proposals => "proposals",
            Self::ProviderKeys => "provider_keys",
            Self::Quota => "quota",
            Self::Run(_) | Self::Runs => "runs",
            Self::Servers => "servers",
            Self::Spend => "spending",
            Self::ThemeFiles(..) => "theme_files",
            Self::Usage(_) => "usage",
        }
    }

    /// The partitions that are known without reading an item. All others are named by an item.
    pub(super) fn known(now: Timestamp) -> Vec<Self> {
        let this_month = TimeZone::UTC.to_datetime(now).date().first_of_month();
        let months = BEFORE_USAGE.series(1.month()).skip(1).take_while(|month| *month <= this_month);
        let mut known: Vec<Self> = months.map(Self::Usage).collect();
        known.extend([
            Self::Account,
            Self::Actions,
            Self::Agents,
            Self::ApiKeys,
            Self::Assets,
            Self::Chats,
            Self::ClientChats,
            Self::DroppedHooks,
            Self::Exports,
            Self::HotLogs,
            Self::Idempotency,
            Self::LatestLogs,
            Self::LogImports,
            Self::Models,
            Self::Places,
            // The default project may have items without a record of its own.
            Self::Project(ProjectId::DEFAULT),
            Self::Projects,
            Self::Proposals,
            Self::ProviderKeys,
            Self::Quota,
            Self::RefusedHooks,
            Self::Runs,
            Self::Servers,
            Self::Sessions,
            Self::Spend,
        ]);
        known
    }

    /// The partitions that an item of this partition names.
    pub(super) fn named_by(&self, item: &Attributes) -> Vec<Self> {
        let text = |name: &str| item.get(name).and_then(|value| value.as_s().ok()).map_or("", String::as_str);
        let sk = text("sk");
        let run = || parsed(text("run_id"), Self::Run);
        match self {
            // A message, a live turn and a proposal name the run that they belong to. The list of runs began later than
            // the oldest stored runs.
            Self::Action(_) => {
                let occurrence = sk.strip_prefix("RUN#").and_then(|run| parsed(run, Self::Run));
                occurrence.or_else(run).into_iter().collect()
            }
            Self::Chat(_) | Self::Proposals => run().into_iter().collect(),
            Self::Actions => parsed(sk, Self::Action).into_iter().collect(),
            Self::Agents => parsed(sk, Self::Agent).into_iter().collect(),
            Self::Assets => parsed(sk, Self::Asset).into_iter().collect(),
            Self::Chats => parsed(sk, Self::Chat).into_iter().collect(),
            Self::Projects => parsed(sk, Self::Project).into_iter().collect(),
            Self::Runs => parsed(sk, Self::Run).into_iter().collect(),
            Self::Project(project) => {
                let project = *project;
                if let Some(workflow) = sk.strip_prefix("CONTEXT#") {
                    return parsed(workflow, |workflow| Self::Document(project, workflow))
                        .into_iter()
                        .collect();
                }
                let files = |import| Self::ThemeFiles(project, import);
                match sk.strip_prefix("IMPORT#") {
                    Some(import) => parsed(import, files).into_iter().collect(),
                    None if sk == "THEME" => {
                        let current = parsed(text("generation"), files);
                        current.into_iter().chain([files(ImportId::NONE)]).collect()
                    }
                    None => Vec::new(),
                }
            }
            Self::Sessions => {
                let session = sk.split_once('#').map_or("", |(_, session)| session);
                parsed(session, Self::Session).into_iter().collect()
            }
            Self::Session(session) => {
                let agent = sk.strip_prefix("HEAD#").and_then(|agent| agent.parse().ok());
                agent.map_or_else(Vec::new, |agent: InstanceId| {
                    vec![Self::Log(session.clone(), agent.clone()), Self::AgentSessions(agent)]
                })
            }
            Self::Account
            | Self::Agent(_)
            | Self::AgentSessions(_)
            | Self::ApiKeys
            | Self::Asset(_)
            | Self::ClientChats
            | Self::Document(..)
            | Self::DroppedHooks
            | Self::Exports
            | Self::HotLogs
            | Self::Idempotency
            | Self::LatestLogs
            | Self::Log(..)
            | Self::LogImports
            | Self::Models
            | Self::Places
            | Self::ProviderKeys
            | Self::Quota
            | Self::RefusedHooks
            | Self::Run(_)
            | Self::Servers
            | Self::Spend
            | Self::ThemeFiles(..)
            | Self::Usage(_) => Vec::new(),
        }
    }

    /// Whether more than one item can name the partition.
    pub(super) fn is_named_often(&self) -> bool {
        matches!(self, Self::AgentSessions(_) | Self::Project(_) | Self::Run(_) | Self::ThemeFiles(..))
    }
}

fn parsed<T: FromStr>(text: &str, partition: impl FnOnce(T) -> Partition) -> Option<Partition> {
    text.parse().ok().map(partition)
}
