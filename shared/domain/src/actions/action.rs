//! An action.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::marks::{Failures, Held, Preflight};
use super::reason::Reason;
use crate::actions::http_call::HttpCall;
use crate::ids::{ActionId, AgentId, RunId};
use crate::models::{ModelTier, ProviderTool};
use crate::schedule::Schedule;
use crate::watch::Watch;
use crate::work::{ActionState, Condition, Priority, TaskConfig};

/// Work that an agent does later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Action {
    #[serde(rename = "action_id")]
    pub id: ActionId,
    pub agent_id: AgentId,
    pub title: String,
    pub description: String,
    pub priority: Priority,
    pub task_config: TaskConfig,
    pub schedule: Option<Schedule>,
    /// The names of the tools that it may call without asking a person, sorted.
    pub grants: Vec<String>,
    /// How often a run may use each tool of its model's provider that `grants` names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(example = json!({"web_search": 10}))]
    pub max_uses: BTreeMap<ProviderTool, u32>,
    pub model_tier: ModelTier,
    pub budget: Budget,
    /// What a program checks of the outputs of a run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// What a program looks at before each scheduled run. If none of it has changed since the last run that succeeded, the run does
    /// not take place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watches: Vec<Watch>,
    /// The request that a run sends instead of asking a model. Then the texts of `task_config` are empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<HttpCall>,
    pub state: ActionState,
    pub approval: Option<Approval>,
    /// When the schedule took effect, in whole seconds. `every` counts from it. There are no fire times before it.
    pub anchor: Option<Timestamp>,
    /// The first fire time without a decision.
    pub next_due: Option<Timestamp>,
    /// The newest fire time with a decision. The time of a schedule with `at` is decided once: to run it again, set a new
    /// time.
    #[serde(default)]
    pub last_due: Option<Timestamp>,
    /// When a sweep first found `next_due`, and up to when sweeps have checked without a break. The fire times between the two
    /// are decided as of their own time, even if an executor processes them much later. So a full queue makes no fire time late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub found_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub found_until: Option<Timestamp>,
    /// The run that is due, running, or waiting for a person.
    pub live_run: Option<RunId>,
    /// How many further runs wait for the live run to end.
    #[serde(default)]
    pub queued: u32,
    /// The due times that were held since it needs a person. Absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
    /// What would make the run of the next due time fail, if the newest check has found something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preflight: Option<Preflight>,
    /// The checks before due times are done up to this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub preflighted: Option<Timestamp>,
    /// Its newest failures, if they are equal. Runs by hand do not count. A success, another failure or a resume begins anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<Failures>,
    /// Runs in a row, up to now, that delivered the same as the run before. The watchdog judges it.
    #[serde(default, skip_serializing_if = "super::marks::is_zero")]
    #[schema(ignore)]
    pub same_outputs: u32,
    /// Why the platform has paused it. Absent if a person has paused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_because: Option<Reason>,
    /// When it was paused. Absent if it is not paused, or if it was paused by an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Timestamp>,
    /// Whether it was paused when its run asked a person. After the answer it is paused again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Counts changes.
    pub version: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Action {
    /// Its schedule as a sentence, if it has one.
    #[must_use]
    pub fn schedule_text(&self) -> Option<String> {
        Some(self.schedule.as_ref()?.describe_from(self.anchor))
    }

    /// The time zone of its schedule. Without a schedule, `zone`.
    #[must_use]
    pub fn zone_or<'a>(&'a self, zone: &'a TimeZone) -> &'a TimeZone {
        self.schedule.as_ref().map_or(zone, Schedule::time_zone)
    }

    /// The time that counts as the present in the decision about its next due time. If a sweep found the due time before it came,
    /// this is the due time. If a sweep found it later, this is the time when the sweep found it. Otherwise it is `now`.
    #[must_use]
    pub fn decided_as_of(&self, now: Timestamp) -> Timestamp {
        let wake = |(schedule, due): (&Schedule, Timestamp)| schedule.wake_at(self.id, due);
        let wake = self.schedule.as_ref().zip(self.next_due).map(wake);
        match (wake, self.found_at, self.found_until) {
            (Some(wake), Some(at), Some(until)) if wake <= until => wake.max(at).min(now),
            _ => now,
        }
    }

    /// The action in another account. A person must approve it again there, because the approval was about the tools and
    /// credentials of the old account. Until then nothing is due.
    #[must_use]
    pub fn unapproved(mut self) -> Self {
        self.forget_found();
        if !matches!(self.state, ActionState::Completed | ActionState::Failed | ActionState::Dismissed) {
            self.state = ActionState::Defined;
        }
        (self.approval, self.anchor, self.next_due) = (None, None, None);
        (self.live_run, self.queued, self.paused) = (None, 0, false);
        (self.held, self.failures, self.paused_because, self.paused_at) = (None, None, None, None);
        (self.preflight, self.preflighted, self.same_outputs) = (None, None, 0);
        self
    }

    /// Why nothing runs while it is paused, to follow "the action is" or "the action was".
    #[must_use]
    pub fn paused_words(&self) -> String {
        match &self.paused_because {
            Some(because) => format!("paused {}", because.text),
            None => "paused".to_owned(),
        }
    }

    /// Whether the platform has paused it because this run failed like those before it.
    #[must_use]
    pub fn was_paused_by(&self, run: RunId) -> bool {
        let is_newest = self.failures.as_ref().is_some_and(|failures| failures.run_id == run);
        is_newest && self.paused_because.is_some()
    }

    /// Forgets what sweeps have found: the due times have changed, all that have come are decided, or nobody processed what was
    /// found because the process ended.
    pub fn forget_found(&mut self) {
        (self.found_at, self.found_until) = (None, None);
    }
}

/// A ceiling on costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Budget {
    /// The highest cost of a run in micro-dollars, 1 to 100,000,000.
    #[schema(minimum = 1, maximum = 100_000_000, example = 1_000_000)]
    pub per_run_micros: i64,
    /// The highest cost of its runs in a month (UTC) in micro-dollars, 1 to 1,000,000,000. Default: no ceiling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_000_000_000_i64, example = 20_000_000)]
    pub per_month_micros: Option<i64>,
}

impl Budget {
    /// The highest ceiling of a run: $100.
    pub const MAX_PER_RUN_MICROS: i64 = 100_000_000;
}

/// A ceiling on costs, as people ask for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AskedBudget {
    /// The highest cost of a run in micro-dollars, 1 to 100,000,000. Default for a new action: the agent's, or the installation's
    /// limit, but at most 100,000,000. If a change leaves it out, it keeps its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100_000_000, example = 1_000_000)]
    pub per_run_micros: Option<i64>,
    /// The highest cost of its runs in a month (UTC) in micro-dollars, 1 to 1,000,000,000. Default: no ceiling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_000_000_000_i64, example = 20_000_000)]
    pub per_month_micros: Option<i64>,
}

impl AskedBudget {
    /// The budget, with this ceiling of a run if none is asked for.
    #[must_use]
    pub fn or(self, per_run_micros: i64) -> Budget {
        let Self { per_run_micros: asked, per_month_micros } = self;
        Budget { per_run_micros: asked.unwrap_or(per_run_micros), per_month_micros }
    }
}

/// A person's approval of the content with this hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Approval {
    pub hash: String,
    pub approved_at: Timestamp,
}
