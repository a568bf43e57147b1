//! Every partition of an owner's items, and which partitions the items of a partition lead to.
//!
//! Together with [`Walk`](super::Walk) this finds everything that an owner has, without a scan of the table.
//! `records` declares the partitions.

use std::str::FromStr;

use domain::accounts::quota::Month;
use domain::ids::{ImportId, ProjectId};
use domain::log::InstanceId;
use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use super::table::Attributes;

pub use super::record_kinds::Partition;

/// The month before the first one that can have a record of usage.
const BEFORE_USAGE: Date = date(2025, 12, 1);

impl Partition {
    /// The partitions that are known without reading an item. All others are named by an item.
    pub(super) fn known(now: Timestamp) -> Vec<Self> {
        let this_month = TimeZone::UTC.to_datetime(now).date().first_of_month();
        let months = BEFORE_USAGE.series(1.month()).skip(1).take_while(|month| *month <= this_month);
        // The default project may have items without a record of its own.
        let default = Self::Project(ProjectId::DEFAULT);
        let usage = months.map(|month| Self::Usage(Month::of(month)));
        usage.chain([default]).chain(Self::without_fields()).collect()
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
            Self::Memory => {
                let session = sk.strip_prefix("SESSION#");
                session.and_then(|session| parsed(session, Self::OutsideSession)).into_iter().collect()
            }
            Self::Practices => parsed(sk, Self::Practice).into_iter().collect(),
            Self::Projects => parsed(sk, Self::Project).into_iter().collect(),
            Self::Runs => parsed(sk, Self::Run).into_iter().collect(),
            Self::WatchedSchedules => parsed(sk, Self::Watched).into_iter().collect(),
            Self::Project(project) => {
                let project = *project;
                if let Some(workflow) = sk.strip_prefix("CONTEXT#") {
                    return parsed(workflow, |workflow| Self::Document(project, workflow))
                        .into_iter()
                        .collect();
                }
                if let Some(name) = sk.strip_prefix("LIVING#") {
                    return parsed(name, |name| Self::LivingDocument(project, name)).into_iter().collect();
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
            _ => Vec::new(),
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
