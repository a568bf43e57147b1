//! The parts of an action that people, models and tools name: its state, its priority, its task, its conditions, a draft and a
//! change. The modules of actions, chats and tools use them, so they are below all three.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::schedule::ScheduleInput;

/// The longest notebook of an action, in bytes of UTF-8.
pub const MAX_NOTEBOOK: usize = 4_000;

/// The state of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActionState {
    /// Nothing is due: it has no approval or no schedule, or its approval was withdrawn.
    Defined,
    /// Approved, and due in the future.
    Scheduled,
    /// Approved, but nothing starts by itself.
    Paused,
    InProgress,
    Completed,
    Failed,
    /// A person was asked. Until the answer, all fire times are held.
    NeedsApproval,
    Dismissed,
}

impl ActionState {
    pub const ALL: [Self; 8] = [
        Self::Defined,
        Self::Scheduled,
        Self::Paused,
        Self::InProgress,
        Self::Completed,
        Self::Failed,
        Self::NeedsApproval,
        Self::Dismissed,
    ];

    /// As in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Defined => "defined",
            Self::Scheduled => "scheduled",
            Self::Paused => "paused",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::NeedsApproval => "needs_approval",
            Self::Dismissed => "dismissed",
        }
    }
}

/// A command for an action, as a model proposes it to a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActionCommand {
    /// Nothing of it runs by itself until it is resumed.
    Pause,
    /// It runs again at its due times.
    Resume,
    /// It runs once, now.
    RunNow,
    /// It is tried without any effect.
    Rehearse,
    /// It never runs again.
    Dismiss,
}

impl ActionCommand {
    pub const ALL: [Self; 5] = [Self::Pause, Self::Resume, Self::RunNow, Self::Rehearse, Self::Dismiss];

    /// As in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::RunNow => "run_now",
            Self::Rehearse => "rehearse",
            Self::Dismiss => "dismiss",
        }
    }

    /// What a person is asked, before the title of the action.
    #[must_use]
    pub const fn verb(self) -> &'static str {
        match self {
            Self::Pause => "Pause",
            Self::Resume => "Resume",
            Self::RunNow => "Run now",
            Self::Rehearse => "Rehearse",
            Self::Dismiss => "Dismiss",
        }
    }

    /// A sentence for a list of what waits.
    #[must_use]
    pub const fn proposed(self) -> &'static str {
        match self {
            Self::Pause => "It is proposed to pause the action.",
            Self::Resume => "It is proposed to resume the action.",
            Self::RunNow => "It is proposed to run the action now.",
            Self::Rehearse => "It is proposed to rehearse the action.",
            Self::Dismiss => "It is proposed to dismiss the action.",
        }
    }

    /// What becomes of the action, as a sentence for the person who decides.
    #[must_use]
    pub const fn consequence(self) -> &'static str {
        match self {
            Self::Pause => "It does not run until you resume it.",
            Self::Resume => "It runs again at its due times.",
            Self::RunNow => "It runs once, now. Its due times stay.",
            Self::Rehearse => {
                "It is tried now, and what it would do is shown and not done. Its due times stay."
            }
            Self::Dismiss => "It never runs again. Its runs and their outputs stay.",
        }
    }
}

/// How urgent an action is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    High,
    #[default]
    Medium,
    Low,
}

/// What the agent is told to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TaskConfig {
    /// What to do, 1 to 20,000 characters.
    #[schema(max_length = 20_000)]
    pub instructions: String,
    /// What the output should contain, 1 to 5,000 characters.
    #[schema(max_length = 5_000)]
    pub expected_output: String,
}

/// The parts of the task that change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TaskConfigPatch {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 20_000)]
    pub instructions: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 5_000)]
    pub expected_output: Option<String>,
}

/// What a program checks of the outputs of a run, without a model. `links_only_to` holds for all outputs together. Each other
/// condition is met if at least one output meets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case", try_from = "ConditionFields")]
pub enum Condition {
    /// An output has at least this number of words.
    MinWords {
        /// 1 to 50,000. Words are separated by white space; each Chinese or Japanese character is a word.
        #[schema(minimum = 1, maximum = 50_000, example = 200)]
        words: u32,
    },
    /// An output names the date on which the run began, in the time zone of the schedule, or else of the account. In one of
    /// these forms: `2026-11-25`, `25 November 2026`, `November 25, 2026`, `25.11.2026`, `25/11/2026`.
    NamesToday,
    /// An output has all of these Markdown headings, of any level and in any order.
    Headings {
        /// 1 to 20 headings of 1 to 200 characters. Case, `#` and white space around them do not matter.
        #[schema(example = json!(["Summary", "Sources"]))]
        headings: Vec<String>,
    },
    /// An output is JSON that matches this JSON Schema.
    Json {
        /// A JSON Schema of at most 16,384 bytes. Only keywords that the platform checks are accepted.
        #[schema(value_type = Value)]
        schema: Value,
    },
    /// All links and URLs of all outputs lead to these hosts.
    LinksOnlyTo {
        /// 1 to 20 host names. `example.com` permits `example.com` and `*.example.com`, at any port.
        #[schema(example = json!(["example.com"]))]
        hosts: Vec<String>,
    },
}

/// A condition as it arrives. So an error about a field has the path of the field.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConditionFields {
    kind: ConditionKind,
    words: Option<u32>,
    headings: Option<Vec<String>>,
    schema: Option<Value>,
    hosts: Option<Vec<String>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ConditionKind {
    MinWords,
    NamesToday,
    Headings,
    Json,
    LinksOnlyTo,
}

impl TryFrom<ConditionFields> for Condition {
    type Error = String;

    /// The errors have the words of serde, which the readers of input put into plain words.
    fn try_from(fields: ConditionFields) -> Result<Self, String> {
        let ConditionFields { kind, words, headings, schema, hosts } = fields;
        let own = match kind {
            ConditionKind::MinWords => "words",
            ConditionKind::NamesToday => "kind",
            ConditionKind::Headings => "headings",
            ConditionKind::Json => "schema",
            ConditionKind::LinksOnlyTo => "hosts",
        };
        let given = [
            ("words", words.is_some()),
            ("headings", headings.is_some()),
            ("schema", schema.is_some()),
            ("hosts", hosts.is_some()),
        ];
        if let Some((other, _)) = given.into_iter().find(|(name, given)| *given && *name != own) {
            let known = if own == "kind" { "`kind`".to_owned() } else { format!("`kind` or `{own}`") };
            return Err(format!("unknown field `{other}`, expected {known}"));
        }
        let missing = || format!("missing field `{own}`");
        Ok(match kind {
            ConditionKind::MinWords => Self::MinWords { words: words.ok_or_else(missing)? },
            ConditionKind::NamesToday => Self::NamesToday,
            ConditionKind::Headings => Self::Headings { headings: headings.ok_or_else(missing)? },
            ConditionKind::Json => Self::Json { schema: schema.ok_or_else(missing)? },
            ConditionKind::LinksOnlyTo => Self::LinksOnlyTo { hosts: hosts.ok_or_else(missing)? },
        })
    }
}

/// An action that a person may approve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ActionDraft {
    pub title: String,
    pub description: String,
    pub priority: Priority,
    pub task_config: TaskConfig,
    /// As the model wrote it. The rules of schedules check it later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub schedule: Option<Value>,
    /// What a program checks of the outputs. Checked when the action is defined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// The fields that would change. A model may not change what a run is allowed to do or to spend: grants, model tier and budget
/// are decided by people.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ActionChange {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_config: Option<TaskConfigPatch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleInput>,
    /// The complete new list of conditions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
}

impl ActionChange {
    /// Whether it sets every field that `other` sets.
    #[must_use]
    pub fn sets_all_of(&self, other: &Self) -> bool {
        let Self { title, description, priority, task_config, schedule, conditions } = self;
        let task = |change: &Option<TaskConfigPatch>| {
            change
                .as_ref()
                .map_or([false; 2], |task| [task.instructions.is_some(), task.expected_output.is_some()])
        };
        let [instructions, expected_output] = task(task_config);
        let [other_instructions, other_expected_output] = task(&other.task_config);
        [
            (title.is_some(), other.title.is_some()),
            (description.is_some(), other.description.is_some()),
            (priority.is_some(), other.priority.is_some()),
            (instructions, other_instructions),
            (expected_output, other_expected_output),
            (schedule.is_some(), other.schedule.is_some()),
            (conditions.is_some(), other.conditions.is_some()),
        ]
        .into_iter()
        .all(|(sets, must)| sets || !must)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_round_trip() {
        for state in ActionState::ALL {
            let json = serde_json::to_value(state).unwrap();
            assert_eq!(json, state.as_str());
            assert_eq!(serde_json::from_value::<ActionState>(json).unwrap(), state);
        }
    }
}
