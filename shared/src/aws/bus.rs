//! Publishing events on EventBridge.

use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use serde::{Deserialize, Serialize};

use domain::actions::reason::ReasonCode;
use domain::actions::{Occurrence, OccurrenceState};
use domain::assets::{Asset, AssetType};
use domain::ids::{ActionId, AgentId, AssetId, Owner, ProjectId, RunId};
use domain::watchdog::Check;
use jiff::Timestamp;

use crate::aws::{self, Lazy};

/// The `source` of all our events.
pub const SOURCE: &str = "lamplighter";

/// The AWS limit of entries per call.
const ENTRIES: usize = 10;

/// An event. EventBridge rules match on its detail type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A theme's map is up to date.
    IndexCompleted(IndexCompleted),
    /// The costs of a month have reached a threshold of the account.
    SpendingAlert(SpendingAlert),
    /// An action needs a person.
    ActionAlert(ActionAlert),
    /// A run of an action has come to rest.
    Run(RunEvent),
    /// The watchdog has found that something of an owner is wrong, or right again.
    WatchdogAlert(WatchdogEvent),
    /// An asset has a new content.
    AssetSaved(AssetSaved),
}

/// A run that has come to rest. It has no texts, because they may quote what a model or a person has written; the run has them. The event
/// may be sent twice: `run_id`, `state` and `fence` are the same then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEvent {
    pub owner: Owner,
    pub agent_id: AgentId,
    pub action_id: ActionId,
    pub run_id: RunId,
    pub state: OccurrenceState,
    /// The number of the executor that brought it to rest. It grows with each question of a run.
    pub fence: u64,
    pub due_at: Timestamp,
    /// The code of the error or of the reason, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What it has cost, in micro-dollars.
    pub cost_micros: i64,
}

impl RunEvent {
    /// None if nobody is told of an occurrence in this state.
    #[must_use]
    pub fn of(owner: &Owner, agent_id: AgentId, occurrence: &Occurrence) -> Option<Self> {
        let event = Self {
            owner: owner.clone(),
            agent_id,
            action_id: occurrence.action_id,
            run_id: occurrence.run_id,
            state: occurrence.state,
            fence: occurrence.fence,
            due_at: occurrence.due_at,
            code: occurrence.error_code.clone().or_else(|| occurrence.reason_code.map(ReasonCode::code)),
            cost_micros: occurrence.cost_micros,
        };
        event.named().map(|_| event)
    }

    /// Its detail type.
    const fn named(&self) -> Option<&'static str> {
        match self.state {
            OccurrenceState::Succeeded | OccurrenceState::NothingNew => Some(Event::RUN_COMPLETED),
            OccurrenceState::Failed | OccurrenceState::Missed | OccurrenceState::Unknown => {
                Some(Event::RUN_FAILED)
            }
            OccurrenceState::Waiting => Some(Event::RUN_WAITING),
            OccurrenceState::Held => Some(Event::RUN_HELD),
            OccurrenceState::Due
            | OccurrenceState::Claimed
            | OccurrenceState::Running
            | OccurrenceState::Unchanged
            | OccurrenceState::Skipped
            | OccurrenceState::Cancelled => None,
        }
    }
}

/// A new asset, or a new content of one. It has no texts, because a model or a person has written them; the asset has them. The event may
/// be sent twice: `asset_id` and `content_version` are the same then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssetSaved {
    pub owner: Owner,
    pub agent_id: AgentId,
    pub asset_id: AssetId,
    /// From 1.
    pub content_version: u64,
    pub asset_type: AssetType,
    /// Size of the content.
    pub bytes: u64,
    /// The run that made the asset, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
}

impl AssetSaved {
    /// The newest content of an asset.
    #[must_use]
    pub fn of(owner: &Owner, asset: &Asset) -> Self {
        Self {
            owner: owner.clone(),
            agent_id: asset.agent_id,
            asset_id: asset.asset_id,
            content_version: asset.content_version,
            asset_type: asset.asset_type,
            bytes: asset.bytes,
            run_id: asset.run_id,
        }
    }
}

/// What the watchdog says. It has no texts, because they may quote an error; `GET /watchdog/alerts` has them. A look that is repeated may
/// send it again: `owner`, `check`, `item` and `at` are the same then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchdogEvent {
    /// Of whom. Absent if it is about the platform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    pub alert: WatchdogEventKind,
    pub check: Check,
    pub item: String,
    /// How many looks in a row have seen it.
    pub count: u32,
    /// When the first of them was.
    pub since: Timestamp,
    /// When the look was that says it.
    pub at: Timestamp,
}

/// Whether something is wrong, or right again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WatchdogEventKind {
    Alert,
    Recovery,
}

/// An action that does not work, or will not. It has no texts, because they may quote what a model or a person has written; the action
/// has them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionAlert {
    pub owner: Owner,
    pub agent_id: AgentId,
    pub action_id: ActionId,
    pub alert: ActionAlertKind,
    /// The codes of what is wrong, separated by commas.
    pub codes: String,
    /// The due time that is concerned, if one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
}

/// What the alert is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionAlertKind {
    /// The platform has paused it after equal failures. Published once for each pause.
    Paused,
    /// The next run will fail. Published once for each due time and code.
    Preflight,
}

/// A threshold that was reached. It is published at most once for each threshold and month.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpendingAlert {
    pub owner: Owner,
    /// The month in UTC, such as `2026-11`.
    pub month: String,
    /// The threshold.
    pub month_micros: i64,
    /// What the month has cost.
    pub spent_micros: i64,
    /// The threshold in dollars, such as `20.00`, for the sentence of an e-mail.
    pub month_dollars: String,
    /// What the month has cost in dollars.
    pub spent_dollars: String,
}

impl SpendingAlert {
    /// All amounts are micro-dollars.
    #[must_use]
    pub fn new(owner: Owner, month: String, month_micros: i64, spent_micros: i64) -> Self {
        let (month_dollars, spent_dollars) = (dollars(month_micros), dollars(spent_micros));
        Self { owner, month, month_micros, spent_micros, month_dollars, spent_dollars }
    }
}

/// Dollars with two decimals, or with six if the amount is less than a cent.
fn dollars(micros: i64) -> String {
    let (whole, rest) = (micros / 1_000_000, micros % 1_000_000);
    if (1..10_000).contains(&micros) {
        return format!("{whole}.{rest:06}");
    }
    format!("{whole}.{:02}", rest / 10_000)
}

/// The map that is ready. The event may be sent twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexCompleted {
    pub owner: Owner,
    pub project_id: ProjectId,
    /// The revision of the files. It increases with each change of a file.
    pub revision: u64,
    pub files: u64,
    /// How many places could not be parsed.
    pub degraded: u64,
    pub took_ms: u64,
}

impl Event {
    #[must_use]
    pub const fn detail_type(&self) -> &'static str {
        match self {
            Self::IndexCompleted(_) => Self::INDEX_COMPLETED,
            Self::SpendingAlert(_) => Self::SPENDING_ALERT,
            Self::ActionAlert(_) => Self::ACTION_ALERT,
            Self::Run(event) => match event.named() {
                Some(named) => named,
                None => Self::RUN_COMPLETED,
            },
            Self::WatchdogAlert(_) => Self::WATCHDOG_ALERT,
            Self::AssetSaved(_) => Self::ASSET_SAVED,
        }
    }

    /// As JSON.
    fn detail(&self) -> String {
        let detail = match self {
            Self::IndexCompleted(completed) => serde_json::to_string(completed),
            Self::SpendingAlert(alert) => serde_json::to_string(alert),
            Self::ActionAlert(alert) => serde_json::to_string(alert),
            Self::Run(run) => serde_json::to_string(run),
            Self::WatchdogAlert(alert) => serde_json::to_string(alert),
            Self::AssetSaved(asset) => serde_json::to_string(asset),
        };
        detail.expect("a struct of strings and numbers is always JSON")
    }

    pub const INDEX_COMPLETED: &'static str = "index.completed";
    pub const SPENDING_ALERT: &'static str = "spending.alert";
    pub const ACTION_ALERT: &'static str = "action.alert";
    pub const RUN_COMPLETED: &'static str = "run.completed";
    pub const RUN_FAILED: &'static str = "run.failed";
    pub const RUN_WAITING: &'static str = "run.waiting";
    pub const RUN_HELD: &'static str = "run.held";
    pub const WATCHDOG_ALERT: &'static str = "watchdog.alert";
    pub const ASSET_SAVED: &'static str = "asset.saved";
}

/// Why events were not published.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    #[error("EventBridge did not accept the call: {0}")]
    Unavailable(String),
    #[error("EventBridge refused {refused} of {sent} events, the first with {first}")]
    Refused { refused: usize, sent: usize, first: String },
}

/// The event bus of this installation.
#[derive(Clone, Debug)]
pub struct Bus {
    client: Lazy<Client>,
    name: String,
}

impl Bus {
    #[must_use]
    pub fn new(client: Lazy<Client>, name: String) -> Self {
        Self { client, name }
    }

    /// Publishes the events, ten per call.
    ///
    /// # Errors
    /// If any event was not accepted. The others were published.
    pub async fn publish(&self, events: &[Event]) -> Result<(), BusError> {
        let (mut refused, mut first) = (0, None);
        for chunk in events.chunks(ENTRIES) {
            let entries = chunk.iter().map(|event| self.entry(event)).collect();
            let output = self
                .client
                .get()
                .put_events()
                .set_entries(Some(entries))
                .send()
                .await
                .map_err(|error| BusError::Unavailable(aws::cause(&error)))?;
            for entry in output.entries() {
                if let Some(code) = entry.error_code() {
                    refused += 1;
                    first.get_or_insert_with(|| code.to_owned());
                }
            }
        }
        match first {
            None => Ok(()),
            Some(first) => Err(BusError::Refused { refused, sent: events.len(), first }),
        }
    }

    fn entry(&self, event: &Event) -> PutEventsRequestEntry {
        PutEventsRequestEntry::builder()
            .event_bus_name(&self.name)
            .source(SOURCE)
            .detail_type(event.detail_type())
            .detail(event.detail())
            .build()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// The event with this detail type.
    fn read(detail_type: &str, detail: Value) -> Option<Event> {
        match detail_type {
            Event::INDEX_COMPLETED => serde_json::from_value(detail).map(Event::IndexCompleted),
            Event::SPENDING_ALERT => serde_json::from_value(detail).map(Event::SpendingAlert),
            Event::ACTION_ALERT => serde_json::from_value(detail).map(Event::ActionAlert),
            Event::RUN_COMPLETED | Event::RUN_FAILED | Event::RUN_WAITING | Event::RUN_HELD => {
                serde_json::from_value(detail).map(Event::Run)
            }
            Event::WATCHDOG_ALERT => serde_json::from_value(detail).map(Event::WatchdogAlert),
            Event::ASSET_SAVED => serde_json::from_value(detail).map(Event::AssetSaved),
            _ => return None,
        }
        .ok()
    }

    #[test]
    fn the_examples_of_events_are_what_is_published() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../events/bus");
        let mut found = Vec::new();
        for file in std::fs::read_dir(folder).expect("there are examples") {
            let text = std::fs::read_to_string(file.expect("a file").path()).expect("it can be read");
            let example: Value = serde_json::from_str(&text).expect("it is JSON");
            let detail_type = example["detail-type"].as_str().expect("it has a type").to_owned();
            let event = read(&detail_type, example["detail"].clone());
            let event = event.unwrap_or_else(|| panic!("{detail_type} is not what its name says"));
            assert_eq!(event.detail_type(), detail_type);
            assert_eq!(example["source"], SOURCE);
            let detail: Value = serde_json::from_str(&event.detail()).expect("it is JSON");
            assert_eq!(detail, example["detail"], "{detail_type}");
            found.push(detail_type);
        }
        found.sort();
        let all = [
            Event::ACTION_ALERT,
            Event::ASSET_SAVED,
            Event::INDEX_COMPLETED,
            Event::RUN_COMPLETED,
            Event::RUN_FAILED,
            Event::RUN_HELD,
            Event::RUN_WAITING,
            Event::SPENDING_ALERT,
            Event::WATCHDOG_ALERT,
        ];
        assert_eq!(found, all, "each kind of event has one example");
    }

    #[test]
    fn an_alert_has_its_amounts_in_dollars() {
        for (micros, text) in [
            (0, "0.00"),
            (1, "0.000001"),
            (9_999, "0.009999"),
            (10_000, "0.01"),
            (19_999_999, "19.99"),
            (20_000_000, "20.00"),
            (1_000_000_000_000, "1000000.00"),
        ] {
            assert_eq!(dollars(micros), text);
        }
    }
}
